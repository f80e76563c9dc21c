/* LeaveGroup, static members, commits: D11-51 to D11-54, D11-65, D11-70 to D11-72. */
#include "group/rig_test.h"

#include "testing/test.h"

static struct joined a, b, c, d;
static struct synced s, s2;

/* A Stable group of a static member "i" (which leads), and a dynamic one. */
static void mixed_group(struct rig *r, struct joined *fixed, struct joined *other) {
    char assign[2 * TEXT_SIZE + 20];
    CHECK_EQ(JOIN(r, fixed, .instance = "i", .protocols = "range:f,sticky:f"), WAITS);
    CHECK_EQ(JOIN(r, other, .protocols = "range:o,sticky:o"), WAITS);
    rig_wait(r, 3000);
    snprintf(assign, sizeof assign, "%s:af,%s:ao", fixed->id, other->id);
    CHECK_EQ(SYNC(r, &s, .member = fixed->id, .generation = 1, .assign = assign, .instance = "i"), GROUP_OK);
    CHECK_EQ(SYNC(r, &s, .member = other->id, .generation = 1), GROUP_OK);
}

/* --- the table of D11-51, row by row ------------------------------------------------------------------------------------------- */

TEST(leave_a_member_without_instance_is_removed) {
    struct rig r;
    rig_begin(&r);
    mixed_group(&r, &a, &b);
    CHECK_EQ(LEAVE(&r, .member = b.id), GROUP_OK);
    CHECK_EQ(LEAVE(&r, .member = a.id), GROUP_OK); /* a static one too */
    CHECK_EQ(counts(&r).members, 0);
    rig_end(&r);
}

TEST(leave_an_unclaimed_id_is_forgotten_whatever_the_instance) {
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .v4 = true);
    JOIN(&r, &b, .v4 = true);
    CHECK_EQ(LEAVE(&r, .member = a.id), GROUP_OK);
    CHECK_EQ(LEAVE(&r, .member = b.id, .instance = "nobodys"), GROUP_OK);
    CHECK_EQ(counts(&r).pending, 0);
    CHECK_EQ(LEAVE(&r, .member = a.id), GROUP_UNKNOWN_MEMBER);
    rig_end(&r);
}

TEST(leave_a_member_with_its_own_instance_is_removed) {
    struct rig r;
    rig_begin(&r);
    mixed_group(&r, &a, &b);
    CHECK_EQ(LEAVE(&r, .member = a.id, .instance = "i"), GROUP_OK);
    CHECK_EQ(counts(&r).members, 1);
    rig_end(&r);
}

TEST(leave_with_the_instance_of_another_is_fenced) {
    struct rig r;
    rig_begin(&r);
    mixed_group(&r, &a, &b);
    CHECK_EQ(LEAVE(&r, .member = b.id, .instance = "i"), GROUP_FENCED_INSTANCE);
    CHECK_EQ(LEAVE(&r, .member = "stranger", .instance = "i"), GROUP_FENCED_INSTANCE);
    CHECK_EQ(counts(&r).members, 2);
    rig_end(&r);
}

TEST(leave_with_an_instance_that_nobody_holds_is_unknown) {
    struct rig r;
    rig_begin(&r);
    mixed_group(&r, &a, &b);
    CHECK_EQ(LEAVE(&r, .member = a.id, .instance = "x"), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(LEAVE(&r, .member = b.id, .instance = "x"), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(LEAVE(&r, .member = b.id, .instance = ""), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(counts(&r).members, 2);
    rig_end(&r);
}

TEST(leave_by_instance_alone_removes_its_holder) {
    struct rig r;
    rig_begin(&r);
    mixed_group(&r, &a, &b);
    CHECK_EQ(LEAVE(&r, .instance = "i"), GROUP_OK);
    CHECK_EQ(counts(&r).members, 1);
    CHECK_EQ(LEAVE(&r, .instance = "i"), GROUP_UNKNOWN_MEMBER);
    rig_end(&r);
}

TEST(leave_without_member_and_instance_is_unknown) {
    struct rig r;
    rig_begin(&r);
    mixed_group(&r, &a, &b);
    CHECK_EQ(LEAVE(&r), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(LEAVE(&r, .instance = "x"), GROUP_UNKNOWN_MEMBER);
    rig_end(&r);
}

TEST(leave_an_unknown_member_is_unknown_and_makes_no_group) {
    struct rig r;
    rig_begin(&r);
    CHECK_EQ(LEAVE(&r, .group = "", .member = "m"), GROUP_INVALID_ID);
    CHECK_EQ(LEAVE(&r, .member = "m"), GROUP_UNKNOWN_MEMBER);
    CHECK_TEXT(listed(&r, NULL), "");
    mixed_group(&r, &a, &b);
    CHECK_EQ(LEAVE(&r, .member = "m"), GROUP_UNKNOWN_MEMBER);
    rig_end(&r);
}

/* D11-52 */
TEST(a_leavers_own_waiting_calls_are_unknown_and_the_others_syncs_go_back) {
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a);
    JOIN(&r, &b);
    JOIN(&r, &c);
    rig_wait(&r, 3000);
    SYNC(&r, &s, .member = b.id, .generation = 1);
    SYNC(&r, &s2, .member = c.id, .generation = 1);
    CHECK_EQ(LEAVE(&r, .member = b.id), GROUP_OK);
    CHECK_EQ(s.s.call.outcome, GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(s2.s.call.outcome, GROUP_REBALANCE_IN_PROGRESS);
    CHECK_EQ(s.done + s2.done, 2);
    CHECK_EQ(JOIN(&r, &d, .member = c.id), WAITS);
    CHECK_EQ(LEAVE(&r, .member = c.id), GROUP_OK);
    CHECK_EQ(d.j.call.outcome, GROUP_UNKNOWN_MEMBER);
    CHECK_TEXT(d.id, c.id);
    rig_end(&r);
}

TEST(all_who_wait_for_the_first_generation_may_leave) {
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .v4 = true);
    JOIN(&r, &b, .v4 = true, .member = a.id);
    CHECK_EQ(LEAVE(&r, .member = a.id), GROUP_OK);
    CHECK_EQ(b.j.call.outcome, GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(strncmp(described(&r, "g", false), "Empty", 5), 0);
    rig_end(&r);
}

/* --- static members ------------------------------------------------------------------------------------------------------------ */

TEST(a_static_member_that_returns_to_a_stable_group_changes_nothing_but_its_id) { /* D11-70, D11-71 */
    struct rig r;
    rig_begin(&r);
    mixed_group(&r, &a, &b);
    CHECK_EQ(JOIN(&r, &c, .instance = "i", .protocols = "range:new,sticky:f", .v9 = true), GROUP_OK);
    CHECK_EQ(c.j.generation, 1);
    CHECK(strcmp(c.id, a.id) != 0 && strncmp(c.id, "i-", 2) == 0); /* D11-29 */
    CHECK_TEXT(c.leader, c.id);
    CHECK(c.j.skip_assignment);
    CHECK_EQ(c.roster_count, 2);
    CHECK(strstr(c.roster, "/i=new;") != NULL);
    CHECK_EQ(SYNC(&r, &s, .member = c.id, .instance = "i", .generation = 1), GROUP_OK);
    CHECK_TEXT(s.assignment, "af");
    CHECK_EQ(BEAT(&r, .member = b.id, .generation = 1), GROUP_OK);
    CHECK_EQ(counts(&r).members, 2);
    /* the old id is fenced, or without its instance unknown */
    CHECK_EQ(BEAT(&r, .member = a.id, .instance = "i", .generation = 1), GROUP_FENCED_INSTANCE);
    CHECK_EQ(SYNC(&r, &s, .member = a.id, .instance = "i", .generation = 1), GROUP_FENCED_INSTANCE);
    CHECK_EQ(CHECK_COMMIT(&r, .member = a.id, .instance = "i", .generation = 1), GROUP_FENCED_INSTANCE);
    CHECK_EQ(JOIN(&r, &d, .member = a.id, .instance = "i"), GROUP_FENCED_INSTANCE);
    CHECK_EQ(BEAT(&r, .member = a.id, .generation = 1), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(BEAT(&r, .member = a.id, .instance = "x", .generation = 1), GROUP_UNKNOWN_MEMBER);
    rig_end(&r);
}

TEST(below_v9_a_returning_leader_is_told_the_old_leader_and_no_members) { /* D11-71 */
    struct rig r;
    rig_begin(&r);
    mixed_group(&r, &a, &b);
    CHECK_EQ(JOIN(&r, &c, .instance = "i", .protocols = "range:f,sticky:f"), GROUP_OK);
    CHECK_TEXT(c.leader, a.id);
    CHECK_EQ(c.roster_count, 0);
    CHECK(!c.j.skip_assignment);
    CHECK_TEXT(c.protocol, "range");
    CHECK_EQ(JOIN(&r, &d, .member = c.id, .instance = "i"),
             WAITS); /* it leads nevertheless: its join begins a rebalance */
    CHECK_EQ(BEAT(&r, .member = b.id, .generation = 1), GROUP_REBALANCE_IN_PROGRESS);
    rig_wait(&r, 60000);
    CHECK_EQ(d.done, 1);
    rig_end(&r);
}

TEST(a_returning_static_follower_has_nothing_to_assign) {
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a);
    JOIN(&r, &b, .instance = "i");
    rig_wait(&r, 3000);
    SYNC(&r, &s, .member = a.id, .generation = 1);
    SYNC(&r, &s, .member = b.id, .generation = 1);
    CHECK_EQ(JOIN(&r, &c, .instance = "i", .v9 = true), GROUP_OK);
    CHECK_TEXT(c.leader, a.id);
    CHECK_EQ(c.roster_count, 0);
    CHECK(!c.j.skip_assignment);
    CHECK_EQ(JOIN(&r, &d, .instance = "i"), GROUP_OK);
    CHECK_TEXT(d.leader, a.id);
    rig_end(&r);
}

TEST(a_static_member_that_returns_with_another_choice_of_protocol_begins_a_rebalance) {
    struct rig r;
    rig_begin(&r);
    mixed_group(&r, &a, &b);
    CHECK_EQ(JOIN(&r, &c, .instance = "i", .protocols = "sticky:f", .v9 = true), WAITS);
    CHECK_EQ(JOIN(&r, &d, .member = b.id, .protocols = "range:o,sticky:o"), GROUP_OK);
    CHECK_EQ(c.j.generation, 2);
    CHECK_TEXT(c.protocol, "sticky");
    CHECK_TEXT(c.leader, c.id); /* it led before */
    rig_end(&r);
}

TEST(a_static_member_that_returns_while_the_leader_is_waited_for_begins_a_rebalance) {
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a);
    JOIN(&r, &b, .instance = "i");
    rig_wait(&r, 3000);
    SYNC(&r, &s, .member = b.id, .instance = "i", .generation = 1);
    CHECK_EQ(JOIN(&r, &c, .instance = "i"), WAITS);
    CHECK_EQ(s.s.call.outcome, GROUP_FENCED_INSTANCE);
    CHECK_EQ(JOIN(&r, &d, .member = a.id), GROUP_OK);
    CHECK_EQ(d.j.generation, 2);
    CHECK_EQ(d.roster_count, 2);
    CHECK(strstr(d.roster, c.id) != NULL);
    rig_end(&r);
}

TEST(a_second_static_member_during_the_join_fences_the_first_at_once) {
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .instance = "i");
    CHECK_EQ(JOIN(&r, &b, .instance = "i"), WAITS);
    CHECK_EQ(a.done, 1);
    CHECK_EQ(a.j.call.outcome, GROUP_FENCED_INSTANCE);
    CHECK_EQ(a.roster_count, 0);
    rig_wait(&r, 3000);
    CHECK_EQ(b.done, 1);
    CHECK_EQ(b.roster_count, 1);
    CHECK_TEXT(b.leader, b.id);
    rig_end(&r);
}

TEST(a_static_member_keeps_its_place_when_its_connection_closes_during_the_first_join) { /* D11-54 */
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .instance = "i");
    coordinator_cancel(r.c, &a.j.call, r.now);
    CHECK_EQ(counts(&r).members, 1);
    CHECK_EQ(JOIN(&r, &b, .instance = "i"), WAITS);
    rig_wait(&r, 3000);
    CHECK_EQ(b.roster_count, 1);
    rig_end(&r);
}

TEST(an_absent_static_member_stays_through_a_rebalance_until_it_fails_to_sync) { /* D11-72, D11-15 */
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .instance = "i", .session_ms = 600000, .rebalance_ms = 10000);
    JOIN(&r, &b, .instance = "j", .session_ms = 600000, .rebalance_ms = 10000);
    rig_wait(&r, 3000);
    SYNC(&r, &s, .member = a.id, .generation = 1);
    SYNC(&r, &s, .member = b.id, .generation = 1);
    CHECK_EQ(JOIN(&r, &c, .rebalance_ms = 10000), WAITS);
    CHECK_EQ(JOIN(&r, &d, .member = b.id, .instance = "j", .rebalance_ms = 10000), WAITS);
    rig_wait(&r, 10000);
    CHECK_EQ(c.done + d.done, 2);
    CHECK_EQ(c.roster_count + d.roster_count, 3);
    CHECK(strcmp(d.leader, a.id) != 0);
    const char *leader = c.roster_count ? c.id : d.id;
    CHECK_EQ(SYNC(&r, &s, .member = leader, .generation = 2), GROUP_OK);
    CHECK_EQ(SYNC(&r, &s, .member = c.id, .generation = 2), GROUP_OK);
    CHECK_EQ(SYNC(&r, &s, .member = d.id, .generation = 2), GROUP_OK);
    rig_wait(&r, 9000);
    CHECK_EQ(BEAT(&r, .member = c.id, .generation = 2), GROUP_OK);
    CHECK_EQ(BEAT(&r, .member = d.id, .generation = 2), GROUP_OK);
    rig_wait(&r, 1000);
    CHECK_EQ(counts(&r).members, 2);
    CHECK_EQ(BEAT(&r, .member = c.id, .generation = 2), GROUP_REBALANCE_IN_PROGRESS);
    rig_end(&r);
}

TEST(when_only_absent_static_members_are_left_they_are_waited_for_until_their_sessions_end) { /* D11-13 */
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .instance = "i", .session_ms = 60000, .rebalance_ms = 7000);
    JOIN(&r, &b, .rebalance_ms = 7000);
    rig_wait(&r, 3000);
    SYNC(&r, &s, .member = a.id, .generation = 1);
    SYNC(&r, &s, .member = b.id, .generation = 1);
    CHECK_EQ(LEAVE(&r, .member = b.id), GROUP_OK);
    rig_wait(&r, 50000);
    CHECK_EQ(strncmp(described(&r, "g", false), "PreparingRebalance", 18), 0);
    CHECK_EQ(JOIN(&r, &c, .instance = "i", .session_ms = 60000),
             GROUP_OK); /* it is back: nobody else is waited for */
    CHECK_EQ(c.j.generation, 2);
    SYNC(&r, &s, .member = c.id, .generation = 2);
    rig_wait(&r, 60000);
    CHECK_EQ(strncmp(described(&r, "g", false), "Empty", 5), 0);
    rig_end(&r);
}

/* --- commits: D11-65 ----------------------------------------------------------------------------------------------------------- */

TEST(commits_to_groups_without_members_need_a_generation_below_0) {
    struct rig r;
    struct joined m[1];
    rig_begin(&r);
    CHECK_EQ(CHECK_COMMIT(&r, .group = "", .generation = -1), GROUP_INVALID_ID);
    CHECK_EQ(CHECK_COMMIT(&r, .generation = -1), GROUP_OK);
    CHECK_EQ(CHECK_COMMIT(&r, .generation = -1, .member = "any"), GROUP_OK);
    CHECK_EQ(CHECK_COMMIT(&r, .generation = 0), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(CHECK_COMMIT(&r, .generation = 3, .member = "m", .v9 = true),
             GROUP_UNKNOWN_MEMBER); /* never 69 */
    stable_group(&r, m, 1);
    LEAVE(&r, .member = m[0].id);
    JOIN(&r, &a, .v4 = true); /* an unclaimed id is no member */
    CHECK_EQ(CHECK_COMMIT(&r, .generation = -1, .member = "any"), GROUP_OK);
    CHECK_EQ(CHECK_COMMIT(&r, .generation = 2, .member = a.id), GROUP_UNKNOWN_MEMBER);
    rig_end(&r);
}

TEST(commits_to_a_group_with_members_come_from_a_member_of_the_generation) {
    struct rig r;
    rig_begin(&r);
    mixed_group(&r, &a, &b);
    CHECK_EQ(CHECK_COMMIT(&r, .generation = -1), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(CHECK_COMMIT(&r, .generation = -1, .member = b.id), GROUP_ILLEGAL_GENERATION);
    CHECK_EQ(CHECK_COMMIT(&r, .generation = 1, .member = b.id, .instance = "x"), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(CHECK_COMMIT(&r, .generation = 1, .member = b.id, .instance = "i"), GROUP_FENCED_INSTANCE);
    CHECK_EQ(CHECK_COMMIT(&r, .generation = 1, .member = "m"), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(CHECK_COMMIT(&r, .generation = 2, .member = b.id), GROUP_ILLEGAL_GENERATION);
    CHECK_EQ(CHECK_COMMIT(&r, .generation = 1, .member = b.id), GROUP_OK);
    CHECK_EQ(CHECK_COMMIT(&r, .generation = 1, .member = a.id, .instance = "i"), GROUP_OK);
    rig_end(&r);
}

TEST(commits_pass_before_the_join_and_not_before_the_sync) {
    struct rig r;
    struct joined m[2];
    rig_begin(&r);
    stable_group(&r, m, 2);
    JOIN(&r, &a, .member = m[0].leader);
    CHECK_EQ(CHECK_COMMIT(&r, .generation = 1, .member = m[0].id), GROUP_OK); /* PreparingRebalance */
    int follower = strcmp(m[0].id, m[0].leader) == 0;
    JOIN(&r, &b, .member = m[follower].id);
    CHECK_EQ(CHECK_COMMIT(&r, .generation = 2, .member = b.id), GROUP_REBALANCE_IN_PROGRESS);
    rig_end(&r);
}

TEST(a_commit_begins_the_session_anew) {
    struct rig r;
    struct joined m[1];
    rig_begin(&r);
    stable_group(&r, m, 1);
    for (int i = 0; i < 5; i++) {
        rig_wait(&r, 9000);
        CHECK_EQ(CHECK_COMMIT(&r, .generation = 1, .member = m[0].id), GROUP_OK);
    }
    CHECK_EQ(counts(&r).members, 1);
    rig_end(&r);
}

TEST(offset_fetches_of_classic_groups_are_not_checked) {
    struct rig r;
    rig_begin(&r);
    CHECK_EQ(CHECK_COMMIT(&r, .fetch = true, .v9 = true, .member = "x", .generation = 7), GROUP_OK);
    mixed_group(&r, &a, &b);
    CHECK_EQ(CHECK_COMMIT(&r, .fetch = true, .v9 = true, .member = "x", .generation = 7), GROUP_OK);
    rig_end(&r);
}
