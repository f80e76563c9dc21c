/* JoinGroup, SyncGroup, Heartbeat: D11-10 to D11-50. */
#include "group/rig_test.h"

#include "testing/test.h"

static struct joined a, b, c, d;
static struct synced s, s2, s3;

/* --- the first generation ------------------------------------------------------------------------------------------------------ */

/* D11-11 */
TEST(the_first_join_waits_three_seconds_and_leads) {
    struct rig r;
    rig_begin(&r);
    CHECK_EQ(JOIN(&r, &a), WAITS);
    rig_wait(&r, 2999);
    CHECK_EQ(a.done, 0);
    rig_wait(&r, 1);
    CHECK_EQ(a.done, 1);
    CHECK_EQ(a.j.call.outcome, GROUP_OK);
    CHECK_EQ(a.j.generation, 1);
    CHECK_TEXT(a.leader, a.id);
    CHECK_TEXT(a.protocol, "range");
    CHECK_TEXT(a.type, "consumer");
    CHECK_EQ(a.roster_count, 1);
    CHECK(strncmp(a.id, "c-", 2) == 0 && strlen(a.id) == 2 + 36); /* D11-29 */
    rig_end(&r);
}

TEST(each_member_of_the_first_generation_prolongs_the_wait) {
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a);
    rig_wait(&r, 2500);
    JOIN(&r, &b);
    rig_wait(&r, 2500);
    JOIN(&r, &c);
    rig_wait(&r, 2999);
    CHECK_EQ(a.done + b.done + c.done, 0);
    rig_wait(&r, 1);
    CHECK_EQ(a.done + b.done + c.done, 3);
    CHECK_EQ(a.j.generation + b.j.generation + c.j.generation, 3);
    rig_end(&r);
}

TEST(the_first_wait_is_no_longer_than_the_largest_rebalance_timeout) {
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .rebalance_ms = 5000);
    for (int i = 0; i < 4; i++) {
        rig_wait(&r, 1000);
        JOIN(&r, &b, .rebalance_ms = 5000, .client = "b");
        CHECK_EQ(b.done, 0);
        coordinator_cancel(r.c, &b.j.call, r.now); /* D11-54: as if it never was */
        CHECK_EQ(b.j.call.outcome, GROUP_CANCELED);
    }
    rig_wait(&r, 999);
    CHECK_EQ(a.done, 0);
    rig_wait(&r, 1);
    CHECK_EQ(a.done, 1);
    rig_end(&r);
}

TEST(without_an_initial_delay_the_first_member_goes_on_at_once) {
    struct rig r;
    rig_settings(&r);
    r.settings.initial_delay_ms = 0;
    rig_start(&r);
    CHECK_EQ(JOIN(&r, &a), GROUP_OK);
    rig_end(&r);
}

/* D11-28 */
TEST(only_the_leader_is_told_the_members) {
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .protocols = "range:one");
    JOIN(&r, &b, .protocols = "range:two", .instance = "i");
    rig_wait(&r, 3000);
    CHECK_EQ(b.roster_count, 0);
    CHECK_TEXT(b.leader, a.id);
    char both[2][700];
    snprintf(both[0], sizeof both[0], "%s=one;%s/i=two;", a.id, b.id);
    snprintf(both[1], sizeof both[1], "%s/i=two;%s=one;", b.id, a.id);
    CHECK(strcmp(a.roster, both[0]) == 0 || strcmp(a.roster, both[1]) == 0);
    rig_end(&r);
}

/* --- refusals: D11-20 to D11-24 ------------------------------------------------------------------------------------------------ */

TEST(a_group_id_has_1_to_246_bytes) {
    struct rig r;
    char id[248];
    rig_begin(&r);
    memset(id, 'x', sizeof id);
    id[247] = 0;
    CHECK_EQ(JOIN(&r, &a, .group = ""), GROUP_INVALID_ID);
    CHECK_EQ(JOIN(&r, &a, .group = id), GROUP_INVALID_ID);
    CHECK_EQ(a.j.generation, -1);
    CHECK_EQ(a.j.protocol_name.len, -1);
    id[246] = 0;
    CHECK_EQ(JOIN(&r, &a, .group = id, .v4 = true), GROUP_MEMBER_ID_REQUIRED);
    rig_end(&r);
}

TEST(sessions_are_from_6_s_to_30_min_both_ends_included) {
    struct rig r;
    rig_begin(&r);
    CHECK_EQ(JOIN(&r, &a, .v4 = true, .session_ms = 5999), GROUP_INVALID_SESSION_TIMEOUT);
    CHECK_EQ(JOIN(&r, &a, .v4 = true, .session_ms = 1800001), GROUP_INVALID_SESSION_TIMEOUT);
    CHECK_TEXT(listed(&r, NULL), "");
    CHECK_EQ(JOIN(&r, &a, .v4 = true, .session_ms = 6000), GROUP_MEMBER_ID_REQUIRED);
    CHECK_EQ(JOIN(&r, &a, .v4 = true, .session_ms = 1800000), GROUP_MEMBER_ID_REQUIRED);
    rig_end(&r);
}

TEST(too_many_or_too_large_protocols_are_refused) {
    struct rig r;
    static char large[70000];
    rig_begin(&r);
    CHECK_EQ(JOIN(&r, &a, .protocols = "1:,2:,3:,4:,5:,6:,7:,8:,9:,10:,11:,12:,13:,14:,15:,16:,17:"),
             GROUP_INVALID_REQUEST);
    memset(large, 'm', sizeof large);
    memcpy(large, "range:", 6);
    large[6 + 65536 - 5 + 1] = 0; /* one more than name and metadata may have */
    CHECK_EQ(JOIN(&r, &a, .protocols = large), GROUP_INVALID_REQUEST);
    CHECK_TEXT(listed(&r, NULL), "");
    large[6 + 65536 - 5] = 0;
    CHECK_EQ(JOIN(&r, &a, .protocols = large, .v4 = true), GROUP_MEMBER_ID_REQUIRED);
    rig_end(&r);
}

TEST(long_names_are_refused) {
    struct rig r;
    static char name[32769];
    rig_settings(&r);
    r.settings.blob_bytes_max = 1 << 20;
    rig_start(&r);
    memset(name, 'n', sizeof name);
    name[32768] = 0;
    CHECK_EQ(JOIN(&r, &a, .type = name), GROUP_INVALID_REQUEST);
    CHECK_EQ(JOIN(&r, &a, .member = name), GROUP_INVALID_REQUEST);
    name[32731] = 0;
    CHECK_EQ(JOIN(&r, &a, .instance = name), GROUP_INVALID_REQUEST);
    rig_end(&r);
}

TEST(a_join_without_type_or_protocols_leaves_an_empty_group_behind) {
    struct rig r;
    rig_begin(&r);
    CHECK_EQ(JOIN(&r, &a, .type = ""), GROUP_INCONSISTENT_PROTOCOL);
    CHECK_EQ(JOIN(&r, &a, .group = "h", .protocols = ""), GROUP_INCONSISTENT_PROTOCOL);
    CHECK_TEXT(listed(&r, NULL), "g Empty '' classic;h Empty '' classic;");
    rig_end(&r);
}

TEST(a_member_id_in_an_unknown_group_is_unknown) { /* D11-21 */
    struct rig r;
    rig_begin(&r);
    CHECK_EQ(JOIN(&r, &a, .member = "m"), GROUP_UNKNOWN_MEMBER);
    CHECK_TEXT(a.id, "m");
    CHECK_TEXT(listed(&r, NULL), "");
    rig_end(&r);
}

TEST(another_type_or_no_common_protocol_is_refused) { /* D11-22 */
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .protocols = "range:,sticky:");
    CHECK_EQ(JOIN(&r, &b, .type = "connect"), GROUP_INCONSISTENT_PROTOCOL);
    CHECK_EQ(JOIN(&r, &b, .protocols = "roundrobin:"), GROUP_INCONSISTENT_PROTOCOL);
    CHECK_EQ(JOIN(&r, &b, .protocols = "roundrobin:,sticky:"), WAITS);
    CHECK_EQ(JOIN(&r, &c, .protocols = "range:"), GROUP_INCONSISTENT_PROTOCOL); /* b has not */
    rig_wait(&r, 3000);
    CHECK_TEXT(a.protocol, "sticky");
    CHECK_EQ(JOIN(&r, &c, .member = a.id, .protocols = "other:"), GROUP_INCONSISTENT_PROTOCOL);
    rig_end(&r);
}

TEST(the_only_member_may_change_to_other_protocols) { /* D11-22: nobody else has to have them */
    struct rig r;
    rig_begin(&r);
    stable_group(&r, &a, 1);
    CHECK_EQ(JOIN(&r, &b, .member = a.id, .protocols = "cooperative-sticky:x"), GROUP_OK);
    CHECK_TEXT(b.protocol, "cooperative-sticky");
    CHECK_EQ(b.j.generation, 2);
    rig_end(&r);
}

TEST(the_protocol_that_most_members_prefer_is_chosen_and_a_tie_goes_by_the_leaders_list) { /* D11-14 */
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .protocols = "x:,y:,z:");
    JOIN(&r, &b, .protocols = "z:,y:,x:");
    JOIN(&r, &c, .protocols = "y:,z:,x:");
    JOIN(&r, &d, .protocols = "w:,z:,y:,x:"); /* w is not everybody's: a vote for z */
    rig_wait(&r, 3000);
    CHECK_TEXT(a.protocol, "z");
    rig_end(&r);
    rig_begin(&r);
    JOIN(&r, &a, .protocols = "x:,y:");
    JOIN(&r, &b, .protocols = "y:,x:");
    rig_wait(&r, 3000);
    CHECK_TEXT(b.protocol, "x");
    rig_end(&r);
}

TEST(a_protocol_that_is_named_twice_counts_once) {
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .protocols = "x:first,x:second");
    JOIN(&r, &b, .protocols = "x:b");
    rig_wait(&r, 3000);
    CHECK(strstr(a.roster, "=first;") != NULL);
    CHECK_EQ(SYNC(&r, &s, .member = a.id, .generation = 1), GROUP_OK);
    CHECK_EQ(JOIN(&r, &c, .member = b.id, .protocols = "x:b,x:c"),
             GROUP_OK); /* the same as before: no rebalance */
    CHECK_EQ(c.j.generation, 1);
    rig_end(&r);
}

/* --- KIP-394: D11-23 ----------------------------------------------------------------------------------------------------------- */

TEST(from_v4_a_new_member_gets_an_id_first_and_before_it_joins_at_once) {
    struct rig r;
    rig_begin(&r);
    CHECK_EQ(JOIN(&r, &a, .v4 = true), GROUP_MEMBER_ID_REQUIRED);
    CHECK(strlen(a.id) > 30);
    CHECK_EQ(a.j.generation, -1);
    CHECK_EQ(a.roster_count, 0);
    CHECK_TEXT(listed(&r, NULL), "g Empty '' classic;");
    CHECK_EQ(BEAT(&r, .member = a.id, .generation = 0), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(SYNC(&r, &s, .member = a.id), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(JOIN(&r, &b, .member = a.id, .v4 = true), WAITS);
    CHECK_EQ(JOIN(&r, &c), WAITS);
    CHECK_EQ(JOIN(&r, &d, .v4 = true, .instance = "i"), WAITS); /* static members are exempt */
    rig_wait(&r, 3000);
    CHECK_TEXT(b.id, a.id);
    CHECK_EQ(b.done + c.done + d.done, 3);
    rig_end(&r);
}

TEST(an_id_is_good_for_its_session_timeout) {
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .v4 = true);
    rig_wait(&r, 9999);
    CHECK_EQ(counts(&r).pending, 1);
    rig_wait(&r, 1);
    CHECK_EQ(counts(&r).pending, 0);
    CHECK_EQ(JOIN(&r, &b, .member = a.id, .v4 = true), GROUP_UNKNOWN_MEMBER);
    rig_end(&r);
}

TEST(an_unclaimed_id_doesnt_go_to_a_static_member) {
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .v4 = true);
    CHECK_EQ(JOIN(&r, &b, .member = a.id, .instance = "i"), GROUP_UNKNOWN_MEMBER);
    rig_end(&r);
}

TEST(a_rebalance_waits_for_an_unclaimed_id_until_its_time_is_over) { /* D11-12 */
    struct rig r;
    struct joined m[1];
    rig_begin(&r);
    stable_group(&r, m, 1);
    JOIN(&r, &b, .v4 = true, .session_ms = 6000);
    CHECK_EQ(JOIN(&r, &c, .member = m[0].id, .protocols = "range:new"), WAITS);
    rig_wait(&r, 5999);
    CHECK_EQ(c.done, 0);
    rig_wait(&r, 1);
    CHECK_EQ(c.done, 1);
    CHECK_EQ(c.j.generation, 2);
    rig_end(&r);
}

TEST(when_only_unclaimed_ids_are_left_the_group_is_empty_at_once) { /* D11-13, D11-64 */
    struct rig r;
    struct joined m[1];
    rig_begin(&r);
    stable_group(&r, m, 1);
    JOIN(&r, &b, .v4 = true);
    CHECK_EQ(LEAVE(&r, .member = m[0].id), GROUP_OK);
    CHECK_TEXT(listed(&r, NULL), "g Empty 'consumer' classic;");
    CHECK_EQ(JOIN(&r, &c, .member = b.id, .type = "connect", .v4 = true), WAITS);
    rig_wait(&r, 3000);
    CHECK_EQ(c.j.generation, 3); /* 2 was Empty */
    CHECK_TEXT(c.type, "connect");
    rig_end(&r);
}

/* --- later rebalances: D11-12 to D11-17, D11-25 -------------------------------------------------------------------------------- */

TEST(a_new_member_makes_everybody_join_again) {
    struct rig r;
    struct joined m[2];
    rig_begin(&r);
    stable_group(&r, m, 2);
    CHECK_EQ(JOIN(&r, &c), WAITS);
    CHECK_EQ(BEAT(&r, .member = m[0].id, .generation = 1), GROUP_REBALANCE_IN_PROGRESS); /* D11-50 */
    CHECK_EQ(SYNC(&r, &s, .member = m[0].id, .generation = 1), GROUP_REBALANCE_IN_PROGRESS);
    CHECK_EQ(JOIN(&r, &a, .member = m[0].id), WAITS);
    CHECK_EQ(JOIN(&r, &b, .member = m[1].id), GROUP_OK); /* the last one: all are answered at once */
    CHECK_EQ(a.done + b.done + c.done, 3);
    CHECK_EQ(a.j.generation, 2);
    CHECK_TEXT(a.leader, m[0].leader); /* who led still does */
    rig_end(&r);
}

TEST(who_doesnt_join_again_within_the_largest_rebalance_timeout_is_out) {
    struct rig r;
    struct joined m[2];
    rig_begin(&r);
    stable_group(&r, m, 2);
    int follower = strcmp(m[0].id, m[0].leader) == 0, leader = !follower;
    JOIN(&r, &a, .member = m[leader].id, .rebalance_ms = 90000);
    CHECK_EQ(a.done, 0);
    for (int i = 0; i < 11; i++) {
        rig_wait(&r, 8000);
        CHECK_EQ(BEAT(&r, .member = m[follower].id, .generation = 1), GROUP_REBALANCE_IN_PROGRESS);
    }
    rig_wait(&r, 1999);
    CHECK_EQ(a.done, 0);
    rig_wait(&r, 1);
    CHECK_EQ(a.done, 1);
    CHECK_EQ(a.roster_count, 1);
    CHECK_EQ(BEAT(&r, .member = m[follower].id, .generation = 1), GROUP_UNKNOWN_MEMBER);
    rig_end(&r);
}

TEST(when_the_leader_stays_away_another_member_leads) {
    struct rig r;
    struct joined m[3];
    rig_begin(&r);
    stable_group(&r, m, 3);
    CHECK_EQ(LEAVE(&r, .member = m[0].leader), GROUP_OK);
    struct joined *again[2] = {&a, &b};
    int at = 0;
    for (int i = 0; i < 3; i++) {
        if (strcmp(m[i].id, m[0].leader) != 0)
            JOIN(&r, again[at++], .member = m[i].id);
    }
    CHECK_EQ(a.done + b.done, 2);
    CHECK_TEXT(a.leader, strcmp(a.id, b.id) < 0 ? a.id : b.id); /* D11-13 */
    CHECK_EQ(a.roster_count + b.roster_count, 2);
    rig_end(&r);
}

TEST(
    in_a_stable_group_the_leaders_join_begins_a_rebalance_and_a_followers_only_with_other_protocols) { /* D11-25 */
    struct rig r;
    struct joined m[2];
    rig_begin(&r);
    stable_group(&r, m, 2);
    int follower = strcmp(m[0].id, m[0].leader) == 0;
    CHECK_EQ(JOIN(&r, &a, .member = m[follower].id), GROUP_OK);
    CHECK_EQ(a.j.generation, 1);
    CHECK_EQ(a.roster_count, 0);
    CHECK_EQ(JOIN(&r, &a, .member = m[follower].id, .protocols = "range:other"), WAITS);
    CHECK_EQ(JOIN(&r, &b, .member = m[!follower].id), GROUP_OK);
    CHECK_EQ(a.j.generation, 2);
    CHECK(strstr(b.roster, "=other;") != NULL);
    CHECK_EQ(SYNC(&r, &s, .member = b.id, .generation = 2), GROUP_OK);
    CHECK_EQ(JOIN(&r, &b, .member = b.id), WAITS);
    CHECK_EQ(JOIN(&r, &a, .member = a.id, .protocols = "range:other"), GROUP_OK);
    CHECK_EQ(b.j.generation, 3);
    rig_end(&r);
}

TEST(while_the_leader_is_waited_for_the_same_join_gets_the_same_answer_and_another_begins_anew) { /* D11-25 */
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .protocols = "range:a");
    JOIN(&r, &b, .protocols = "range:b");
    rig_wait(&r, 3000);
    CHECK_EQ(JOIN(&r, &c, .member = a.id, .protocols = "range:a"), GROUP_OK);
    CHECK_EQ(c.j.generation, 1);
    CHECK_EQ(c.roster_count, 2); /* the leader's first answer may be lost: it is told all again */
    CHECK_EQ(SYNC(&r, &s, .member = b.id, .generation = 1), WAITS);
    CHECK_EQ(JOIN(&r, &c, .member = a.id, .protocols = "range:new"), WAITS);
    CHECK_EQ(s.done, 1);
    CHECK_EQ(s.s.call.outcome, GROUP_REBALANCE_IN_PROGRESS);
    CHECK_EQ(JOIN(&r, &d, .member = b.id, .protocols = "range:b"), GROUP_OK);
    CHECK_EQ(c.j.generation, 2);
    rig_end(&r);
}

TEST(a_member_whose_session_ends_leaves_the_others_to_rebalance) { /* D11-16, D11-10 */
    struct rig r;
    struct joined m[2];
    rig_begin(&r);
    stable_group(&r, m, 2);
    rig_wait(&r, 9000);
    CHECK_EQ(BEAT(&r, .member = m[0].id, .generation = 1), GROUP_OK);
    rig_wait(&r, 999);
    CHECK_EQ(counts(&r).members, 2);
    rig_wait(&r, 1);
    CHECK_EQ(counts(&r).members, 1);
    CHECK_EQ(BEAT(&r, .member = m[0].id, .generation = 1), GROUP_REBALANCE_IN_PROGRESS);
    CHECK_EQ(BEAT(&r, .member = m[1].id, .generation = 1), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(JOIN(&r, &a, .member = m[0].id), GROUP_OK);
    CHECK_EQ(a.j.generation, 2);
    rig_end(&r);
}

TEST(a_heartbeat_after_its_deadline_finds_the_member_gone_even_before_the_tick) { /* D11-10 */
    struct rig r;
    struct joined m[1];
    rig_begin(&r);
    stable_group(&r, m, 1);
    r.now += 10000;
    CHECK_EQ(BEAT(&r, .member = m[0].id, .generation = 1), GROUP_UNKNOWN_MEMBER);
    CHECK_TEXT(listed(&r, NULL), "g Empty 'consumer' classic;");
    rig_end(&r);
}

TEST(a_member_that_waits_is_not_expired) { /* D11-17 */
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .session_ms = 6000);
    JOIN(&r, &b, .session_ms = 6000);
    rig_wait(&r, 3000);
    struct joined *leader = strcmp(a.id, a.leader) == 0 ? &a : &b, *follower = leader == &a ? &b : &a;
    CHECK_EQ(SYNC(&r, &s, .member = follower->id, .generation = 1), WAITS);
    for (int i = 0; i < 8; i++) {
        rig_wait(&r, 5000);
        CHECK_EQ(BEAT(&r, .member = leader->id, .generation = 1), GROUP_OK);
    }
    CHECK_EQ(s.done, 0);
    CHECK_EQ(SYNC(&r, &s2, .member = leader->id, .generation = 1), GROUP_OK);
    CHECK_EQ(s.done, 1);
    CHECK_EQ(s.s.call.outcome, GROUP_OK);
    rig_wait(&r, 5999);
    CHECK_EQ(BEAT(&r, .member = follower->id, .generation = 1),
             GROUP_OK); /* its session began with the answer */
    rig_end(&r);
}

TEST(a_last_missing_member_that_goes_lets_the_rest_go_on_at_once) { /* D11-16 */
    struct rig r;
    struct joined m[2];
    rig_begin(&r);
    stable_group(&r, m, 2);
    CHECK_EQ(JOIN(&r, &c), WAITS);
    CHECK_EQ(JOIN(&r, &a, .member = m[0].id), WAITS);
    CHECK_EQ(LEAVE(&r, .member = m[1].id), GROUP_OK);
    CHECK_EQ(a.done + c.done, 2);
    CHECK_EQ(c.j.generation, 2); /* a leave alone counts for nothing */
    rig_end(&r);
}

TEST(the_generation_counts_on_through_empty) { /* D11-13 */
    struct rig r;
    struct joined m[1];
    rig_begin(&r);
    stable_group(&r, m, 1);
    CHECK_EQ(LEAVE(&r, .member = m[0].id), GROUP_OK);
    CHECK_TEXT(described(&r, "g", false), "Empty 'consumer' '' 2 ");
    JOIN(&r, &a);
    rig_wait(&r, 3000);
    CHECK_EQ(a.j.generation, 3);
    rig_end(&r);
}

TEST(a_rebalance_timeout_of_nothing_is_the_session_timeout_and_half_an_hour_the_most) { /* D11-27 */
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .rebalance_ms = -1, .session_ms = 7000);
    rig_wait(&r, 3000);
    CHECK_EQ(a.done, 1);
    rig_wait(&r, 6999);
    CHECK_EQ(counts(&r).members, 1);
    CHECK_EQ(BEAT(&r, .member = a.id, .generation = 1), GROUP_OK);
    rig_wait(&r, 1);
    CHECK_EQ(counts(&r).members, 0); /* it never synced */
    JOIN(&r, &b, .rebalance_ms = INT32_MAX, .session_ms = 1800000);
    rig_wait(&r, 3000 + 1799999);
    CHECK_EQ(counts(&r).members, 1);
    rig_wait(&r, 1);
    CHECK_EQ(counts(&r).members, 0);
    rig_end(&r);
}

/* --- SyncGroup: D11-40, D11-15 ------------------------------------------------------------------------------------------------- */

TEST(the_leaders_assignments_reach_everybody_who_waits_and_who_comes_later) {
    struct rig r;
    char assign[2 * TEXT_SIZE + 50];
    rig_begin(&r);
    JOIN(&r, &a);
    JOIN(&r, &b);
    JOIN(&r, &c);
    rig_wait(&r, 3000);
    CHECK_EQ(SYNC(&r, &s, .member = b.id, .generation = 1), WAITS);
    CHECK_EQ(BEAT(&r, .member = b.id, .generation = 1), GROUP_OK); /* CompletingRebalance */
    snprintf(assign, sizeof assign, "%s:old,%s:new,nobody:x", b.id, b.id);
    CHECK_EQ(SYNC(&r, &s2, .member = a.id, .generation = 1, .assign = assign), GROUP_OK);
    CHECK_TEXT(s2.assignment, ""); /* left out */
    CHECK_TEXT(s2.protocol, "range");
    CHECK_TEXT(s2.type, "consumer");
    CHECK_EQ(s.done, 1);
    CHECK_TEXT(s.assignment, "new");
    CHECK_EQ(SYNC(&r, &s3, .member = c.id, .generation = 1), GROUP_OK);
    CHECK_TEXT(s3.assignment, "");
    CHECK_EQ(SYNC(&r, &s3, .member = b.id, .generation = 1), GROUP_OK);
    CHECK_TEXT(s3.assignment, "new");
    rig_end(&r);
}

TEST(sync_is_refused_in_this_order) {
    struct rig r;
    struct joined m[1];
    static char large[70000];
    rig_begin(&r);
    CHECK_EQ(SYNC(&r, &s, .group = "", .v5 = true, .type = "-", .protocol = "x"),
             GROUP_INCONSISTENT_PROTOCOL);
    CHECK_EQ(SYNC(&r, &s, .group = ""), GROUP_INVALID_ID);
    CHECK_EQ(SYNC(&r, &s, .member = "m"), GROUP_UNKNOWN_MEMBER);
    stable_group(&r, m, 1);
    CHECK_EQ(SYNC(&r, &s, .member = "m", .generation = 7), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(SYNC(&r, &s, .member = m[0].id, .instance = "i", .generation = 7), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(SYNC(&r, &s, .member = m[0].id, .generation = 7, .v5 = true, .type = "x", .protocol = "x"),
             GROUP_ILLEGAL_GENERATION);
    CHECK_EQ(SYNC(&r, &s, .member = m[0].id, .generation = 1, .v5 = true, .type = "x", .protocol = "range"),
             GROUP_INCONSISTENT_PROTOCOL);
    CHECK_EQ(
        SYNC(&r, &s, .member = m[0].id, .generation = 1, .v5 = true, .type = "consumer", .protocol = "x"),
        GROUP_INCONSISTENT_PROTOCOL);
    CHECK_EQ(
        SYNC(&r, &s, .member = m[0].id, .generation = 1, .v5 = true, .type = "consumer", .protocol = "-"),
        GROUP_INCONSISTENT_PROTOCOL);
    memset(large, 'x', sizeof large);
    memcpy(large, "m:", 2);
    large[2 + 65536] = 0;
    CHECK_EQ(SYNC(&r, &s, .member = m[0].id, .generation = 1, .assign = large), GROUP_OK);
    large[2 + 65536] = 'x';
    large[2 + 65537] = 0;
    CHECK_EQ(SYNC(&r, &s, .member = m[0].id, .generation = 1, .assign = large), GROUP_INVALID_REQUEST);
    CHECK_EQ(
        SYNC(&r, &s, .member = m[0].id, .generation = 1, .v5 = true, .type = "consumer", .protocol = "range"),
        GROUP_OK);
    rig_end(&r);
}

TEST(who_never_syncs_is_removed_after_the_rebalance_timeout_and_the_rest_rebalances) { /* D11-15 */
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .rebalance_ms = 8000);
    JOIN(&r, &b, .rebalance_ms = 8000);
    rig_wait(&r, 3000);
    CHECK_EQ(SYNC(&r, &s, .member = a.id, .generation = 1), GROUP_OK); /* a leads: Stable, without b */
    CHECK_EQ(strncmp(described(&r, "g", false), "Stable", 6), 0);
    rig_wait(&r, 7000);
    CHECK_EQ(BEAT(&r, .member = a.id, .generation = 1), GROUP_OK);
    CHECK_EQ(BEAT(&r, .member = b.id, .generation = 1), GROUP_OK);
    rig_wait(&r, 1000);
    CHECK_EQ(counts(&r).members, 1);
    CHECK_EQ(BEAT(&r, .member = a.id, .generation = 1), GROUP_REBALANCE_IN_PROGRESS);
    CHECK_EQ(BEAT(&r, .member = b.id, .generation = 1), GROUP_UNKNOWN_MEMBER);
    rig_end(&r);
}

TEST(a_leader_that_never_syncs_is_removed_and_the_waiting_ones_go_back_to_joining) {
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .rebalance_ms = 8000);
    JOIN(&r, &b, .rebalance_ms = 8000);
    rig_wait(&r, 3000);
    CHECK_EQ(SYNC(&r, &s, .member = b.id, .generation = 1), WAITS);
    rig_wait(&r, 8000);
    CHECK_EQ(s.done, 1);
    CHECK_EQ(s.s.call.outcome, GROUP_REBALANCE_IN_PROGRESS);
    CHECK_EQ(JOIN(&r, &c, .member = b.id), GROUP_OK);
    CHECK_TEXT(c.leader, b.id);
    rig_end(&r);
}

TEST(a_member_that_all_have_synced_with_stays_without_a_window) {
    struct rig r;
    struct joined m[2];
    rig_begin(&r);
    stable_group(&r, m, 2);
    for (int i = 0; i < 100; i++) {
        rig_wait(&r, 5000);
        CHECK_EQ(BEAT(&r, .member = m[0].id, .generation = 1), GROUP_OK);
        CHECK_EQ(BEAT(&r, .member = m[1].id, .generation = 1), GROUP_OK);
    }
    rig_end(&r);
}

/* --- several calls of one member, and calls that are given up ------------------------------------------------------------------ */

TEST(two_joins_of_one_member_are_both_answered) { /* D11-30 */
    struct rig r;
    struct joined m[2];
    rig_begin(&r);
    stable_group(&r, m, 2);
    int follower = strcmp(m[0].id, m[0].leader) == 0;
    CHECK_EQ(JOIN(&r, &a, .member = m[!follower].id), WAITS);
    CHECK_EQ(JOIN(&r, &b, .member = m[!follower].id), WAITS);
    CHECK_EQ(JOIN(&r, &c, .member = m[follower].id), GROUP_OK);
    CHECK_EQ(a.done + b.done, 2);
    CHECK_EQ(a.j.generation, 2);
    CHECK_EQ(b.j.generation, 2);
    CHECK_EQ(b.roster_count, 2);
    CHECK_EQ(SYNC(&r, &s, .member = c.id, .generation = 2), WAITS);
    CHECK_EQ(SYNC(&r, &s2, .member = c.id, .generation = 2), WAITS);
    CHECK_EQ(SYNC(&r, &s3, .member = a.id, .generation = 2), GROUP_OK);
    CHECK_EQ(s.done + s2.done, 2);
    rig_end(&r);
}

TEST(a_first_join_that_is_given_up_takes_its_member_along) { /* D11-54 */
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a);
    JOIN(&r, &b);
    coordinator_cancel(r.c, &a.j.call, r.now);
    CHECK_EQ(a.done, 1);
    CHECK_EQ(a.j.call.outcome, GROUP_CANCELED);
    CHECK_EQ(counts(&r).members, 1);
    rig_wait(&r, 3000);
    CHECK_EQ(b.roster_count, 1);
    rig_end(&r);
}

TEST(a_member_that_knows_its_id_keeps_its_session_when_its_connection_closes) { /* D11-17 */
    struct rig r;
    struct joined m[2];
    rig_begin(&r);
    stable_group(&r, m, 2);
    int follower = strcmp(m[0].id, m[0].leader) == 0;
    JOIN(&r, &a, .member = m[!follower].id);
    rig_wait(&r, 9000);
    CHECK_EQ(BEAT(&r, .member = m[follower].id, .generation = 1), GROUP_REBALANCE_IN_PROGRESS);
    coordinator_cancel(r.c, &a.j.call, r.now);
    coordinator_cancel(r.c, &a.j.call, r.now); /* no effect */
    CHECK_EQ(a.done, 1);
    CHECK_EQ(JOIN(&r, &b, .member = m[follower].id), WAITS); /* the other one is waited for again */
    rig_wait(&r, 9999);
    CHECK_EQ(b.done, 0);
    rig_wait(&r, 1);
    CHECK_EQ(b.done, 1);
    CHECK_TEXT(b.leader, b.id);
    rig_end(&r);
}

TEST(a_sync_that_is_given_up_leaves_its_member_in) {
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a);
    JOIN(&r, &b);
    rig_wait(&r, 3000);
    CHECK_EQ(SYNC(&r, &s, .member = b.id, .generation = 1), WAITS);
    coordinator_cancel(r.c, &s.s.call, r.now);
    CHECK_EQ(s.s.call.outcome, GROUP_CANCELED);
    CHECK_EQ(SYNC(&r, &s2, .member = a.id, .generation = 1), GROUP_OK);
    CHECK_EQ(SYNC(&r, &s3, .member = b.id, .generation = 1), GROUP_OK);
    CHECK_EQ(counts(&r).members, 2);
    rig_end(&r);
}

TEST(shutdown_ends_what_waits_and_refuses_what_comes) { /* D11-28 */
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a);
    JOIN(&r, &b, .group = "h");
    JOIN(&r, &c, .group = "h");
    rig_wait(&r, 3000);
    CHECK_EQ(SYNC(&r, &s, .group = "h", .member = c.id, .generation = 1), WAITS);
    JOIN(&r, &d, .group = "i");
    coordinator_shutdown(r.c, r.now);
    CHECK_EQ(s.s.call.outcome, GROUP_NOT_COORDINATOR);
    CHECK_EQ(d.j.call.outcome, GROUP_NOT_COORDINATOR);
    CHECK_EQ(s.done + d.done, 2);
    CHECK_EQ(JOIN(&r, &d), GROUP_NOT_COORDINATOR);
    CHECK_EQ(BEAT(&r, .member = a.id, .generation = 1), GROUP_NOT_COORDINATOR);
    CHECK_EQ(coordinator_due_ms(r.c), INT64_MAX);
    rig_end(&r);
}

TEST(freeing_ends_what_waits) {
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a);
    coordinator_free(r.c);
    CHECK_EQ(a.done, 1);
    CHECK_EQ(a.j.call.outcome, GROUP_NOT_COORDINATOR);
}

TEST(after_a_restart_members_are_unknown_and_come_again) {
    struct rig r;
    struct joined m[1];
    rig_begin(&r);
    stable_group(&r, m, 1);
    rig_end(&r);
    rig_begin(&r);
    CHECK_EQ(BEAT(&r, .member = m[0].id, .generation = 1), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(JOIN(&r, &a, .member = m[0].id), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(JOIN(&r, &a), WAITS);
    rig_wait(&r, 3000);
    CHECK_EQ(a.j.generation, 1);
    rig_end(&r);
}

/* --- Heartbeat: D11-50 --------------------------------------------------------------------------------------------------------- */

TEST(heartbeats_are_refused_in_this_order) {
    struct rig r;
    struct joined m[1];
    rig_begin(&r);
    CHECK_EQ(BEAT(&r, .group = "", .member = "m"), GROUP_INVALID_ID);
    CHECK_EQ(BEAT(&r, .member = "m"), GROUP_UNKNOWN_MEMBER);
    stable_group(&r, m, 1);
    CHECK_EQ(BEAT(&r, .member = "m", .generation = 5), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(BEAT(&r, .member = "", .generation = 1), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(BEAT(&r, .member = m[0].id, .generation = 0), GROUP_ILLEGAL_GENERATION);
    CHECK_EQ(BEAT(&r, .member = m[0].id, .generation = -1), GROUP_ILLEGAL_GENERATION);
    CHECK_EQ(BEAT(&r, .member = m[0].id, .generation = 2), GROUP_ILLEGAL_GENERATION);
    CHECK_EQ(BEAT(&r, .member = m[0].id, .generation = 1), GROUP_OK);
    rig_end(&r);
}
