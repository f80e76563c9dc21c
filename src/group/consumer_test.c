/* ConsumerGroupHeartbeat: D11-90 to D11-96. */
#include "group/consumer_rig_test.h"

#include "testing/test.h"

static struct beaten a, b, c;

static void begin(struct rig *r) {
    rig_settings(r);
    topics_clear(r);
    topic_set("t", 6);
    rig_start(r);
}

/* --- joining and sharing ------------------------------------------------------------------------------------------------------- */

TEST(a_first_member_has_everything_at_once) {
    struct rig r;
    begin(&r);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .topics = "t"), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 1);
    CHECK_EQ(a.h.heartbeat_ms, 5000);
    CHECK_TEXT(a.id, "a");
    CHECK_TEXT(a.assignment, "t:0,1,2,3,4,5;");
    CHECK_TEXT(consumer_described(&r, "g"), "Stable uniform 1 1 a:1 t:0,1,2,3,4,5;>t:0,1,2,3,4,5;");
    CHECK_TEXT(listed(&r, NULL), "g Stable 'consumer' consumer;");
    CHECK_TEXT(described(&r, "g", false), "other");
    rig_end(&r);
}

static struct group_times own_times; /* of group "g" */

static void times_find(void *ctx, struct str group, struct group_times *times) {
    (void)ctx;
    if (str_equal(group, STR("g")))
        *times = own_times;
}

TEST(a_groups_own_times_hold_from_the_next_heartbeat_on) { /* D9-15 */
    struct rig r;
    rig_settings(&r);
    topics_clear(&r);
    topic_set("t", 6);
    r.settings.times_find = times_find;
    rig_start(&r);
    own_times = (struct group_times){50000, 6000};
    CBEAT(&r, &a, .member = "a", .topics = "t");
    CHECK_EQ(a.h.heartbeat_ms, 6000);
    CBEAT(&r, &b, .group = "other", .member = "b", .topics = "t");
    CHECK_EQ(b.h.heartbeat_ms, 5000);
    own_times = (struct group_times){9000, 3000};
    rig_wait(&r, 49999); /* the session began as the longer one */
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1), GROUP_OK);
    CHECK_EQ(a.h.heartbeat_ms, 3000);
    rig_wait(&r, 8999);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1), GROUP_OK);
    rig_wait(&r, 9000);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(a.h.heartbeat_ms, 0);
    rig_end(&r);
}

TEST(a_member_without_an_id_gets_one) { /* v0 of the API */
    struct rig r;
    begin(&r);
    CHECK_EQ(CBEAT(&r, &a, .topics = "t"), GROUP_OK);
    CHECK_EQ(strlen(a.id), 36);
    CHECK_EQ(CBEAT(&r, &b, .member = a.id, .epoch = 1), GROUP_OK);
    rig_end(&r);
}

TEST(a_partition_goes_to_the_next_owner_when_the_last_one_has_let_it_go) { /* D11-92 */
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .topics = "t");
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .topics = "t"), GROUP_OK);
    CHECK_EQ(b.h.member_epoch, 2);
    CHECK_TEXT(b.assignment, ""); /* a has them still */
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .epoch = 2), GROUP_OK);
    CHECK_TEXT(b.assignment, "-");
    CHECK_TEXT(consumer_described(&r, "g"),
               "Reconciling uniform 2 2 a:1 t:0,1,2,3,4,5;>t:0,1,2; b:2 >t:3,4,5;");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 1); /* it has to give up first */
    CHECK_TEXT(a.assignment, "t:0,1,2;");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1, .owned = "t:0,1,2,3;"), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 1);
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .epoch = 2), GROUP_OK);
    CHECK_TEXT(b.assignment, "-");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1, .owned = "t:0,1,2;"), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 2);
    CHECK_TEXT(a.assignment, "-");
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .epoch = 2), GROUP_OK);
    CHECK_TEXT(b.assignment, "t:3,4,5;");
    CHECK_TEXT(consumer_described(&r, "g"), "Stable uniform 2 2 a:2 t:0,1,2;>t:0,1,2; b:2 t:3,4,5;>t:3,4,5;");
    rig_end(&r);
}

TEST(a_member_that_says_it_owns_nothing_of_it_needs_no_step_in_between) {
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .topics = "t");
    CBEAT(&r, &b, .member = "b", .topics = "t");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1, .owned = "t:0;"), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 2);
    CHECK_TEXT(a.assignment, "t:0,1,2;");
    rig_end(&r);
}

TEST(a_member_that_leaves_frees_its_partitions_for_the_others_next_heartbeat) {
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .topics = "t");
    CBEAT(&r, &b, .member = "b", .topics = "t");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = -1), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, -1);
    CHECK_EQ(strncmp(consumer_described(&r, "g"), "Assigning", 9), 0);
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .epoch = 2), GROUP_OK);
    CHECK_EQ(b.h.member_epoch, 3);
    CHECK_TEXT(b.assignment, "t:0,1,2,3,4,5;");
    CHECK_EQ(CBEAT(&r, &a, .member = "b", .epoch = -1), GROUP_OK);
    CHECK_TEXT(consumer_described(&r, "g"), "Empty uniform 4 3");
    CHECK_EQ(CBEAT(&r, &a, .member = "b", .epoch = -1), GROUP_UNKNOWN_MEMBER);
    rig_end(&r);
}

TEST(a_full_heartbeat_is_told_its_assignment_and_another_only_what_is_new) { /* D11-93 */
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .topics = "t");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1), GROUP_OK);
    CHECK_TEXT(a.assignment, "-");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1, .topics = "t", .rebalance_ms = 60000, .owned = "t:0;"),
             GROUP_OK);
    CHECK_TEXT(a.assignment, "t:0,1,2,3,4,5;");
    CHECK_EQ(a.h.member_epoch, 1);
    rig_end(&r);
}

TEST(subscriptions_that_change_move_partitions) {
    struct rig r;
    begin(&r);
    topic_set("u", 2);
    CBEAT(&r, &a, .member = "a", .topics = "t,u,t,nothing");
    CHECK_TEXT(a.assignment, "t:0,1,2,3,4,5;u:0,1;");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1, .topics = "u,nothing,t"), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 1); /* the same ones */
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1, .topics = "u", .owned = "t:0,1,2,3,4,5;u:0,1;"),
             GROUP_OK);
    CHECK_TEXT(a.assignment, "u:0,1;");
    CHECK_EQ(a.h.member_epoch, 1);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1, .owned = "u:0,1;"), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 2);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 2, .topics = "", .owned = ""), GROUP_OK);
    CHECK_TEXT(a.assignment, "");
    CHECK_EQ(a.h.member_epoch, 3);
    rig_end(&r);
}

/* --- topics -------------------------------------------------------------------------------------------------------------------- */

TEST(topics_are_looked_up_again_after_a_minute_or_a_hint) { /* D11-92 */
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .topics = "t,u");
    topic_set("t", 8);
    CBEAT(&r, &a, .member = "a", .epoch = 1);
    CHECK_TEXT(a.assignment, "-");
    rig_wait(&r, 30000);
    CBEAT(&r, &a, .member = "a", .epoch = 1);
    CHECK_TEXT(a.assignment, "-");
    rig_wait(&r, 30000);
    CBEAT(&r, &a, .member = "a", .epoch = 1);
    CHECK_TEXT(a.assignment, "t:0,1,2,3,4,5,6,7;");
    CHECK_EQ(a.h.member_epoch, 2);
    topic_set("u", 1);
    coordinator_topics_changed(r.c);
    CBEAT(&r, &a, .member = "a", .epoch = 2);
    CHECK_TEXT(a.assignment, "t:0,1,2,3,4,5,6,7;u:0;");
    rig_end(&r);
}

TEST(a_topic_that_is_deleted_is_given_up_and_one_that_is_made_again_is_another) {
    struct rig r;
    begin(&r);
    topic_set("u", 2);
    CBEAT(&r, &a, .member = "a", .topics = "t,u");
    topic_set("t", 0);
    coordinator_topics_changed(r.c);
    CBEAT(&r, &a, .member = "a", .epoch = 1);
    CHECK_TEXT(a.assignment, "u:0,1;");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1, .owned = "u:0,1;"), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 2);
    topic_recreate("u");
    coordinator_topics_changed(r.c);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 2, .owned = ""), GROUP_OK);
    CHECK_TEXT(a.assignment, "u:0,1;");
    CHECK_EQ(a.h.member_epoch, 3);
    rig_end(&r);
}

TEST(a_topic_with_fewer_partitions_takes_the_others_back) {
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .topics = "t");
    topic_set("t", 2);
    coordinator_topics_changed(r.c);
    CBEAT(&r, &a, .member = "a", .epoch = 1);
    CHECK_TEXT(a.assignment, "t:0,1;");
    rig_end(&r);
}

TEST(without_anybody_to_ask_there_are_no_topics) {
    struct rig r;
    rig_begin(&r);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .topics = "t"), GROUP_OK);
    CHECK_TEXT(a.assignment, "");
    rig_end(&r);
}

/* --- refusals: D11-90, D11-91 -------------------------------------------------------------------------------------------------- */

TEST(a_heartbeat_that_makes_no_sense_is_refused) {
    struct rig r;
    static char long_id[300], many[70000];
    begin(&r);
    memset(long_id, 'x', 247);
    CHECK_EQ(CBEAT(&r, &a, .group = "", .member = "a", .topics = "t"), GROUP_INVALID_REQUEST);
    CHECK_EQ(CBEAT(&r, &a, .group = long_id, .member = "a", .topics = "t"), GROUP_INVALID_REQUEST);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .topics = "t", .instance = ""), GROUP_INVALID_REQUEST);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .topics = "t", .rack = ""), GROUP_INVALID_REQUEST);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = -3), GROUP_INVALID_REQUEST);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = -2), GROUP_INVALID_REQUEST);
    CHECK_EQ(CBEAT(&r, &a, .epoch = 1), GROUP_INVALID_REQUEST);
    CHECK_EQ(CBEAT(&r, &a, .epoch = -1), GROUP_INVALID_REQUEST);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .topics = "t", .rebalance_ms = -1), GROUP_INVALID_REQUEST);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .topics = "t", .owned = "t:0;"), GROUP_INVALID_REQUEST);
    CHECK_EQ(CBEAT(&r, &a, .member = "a"), GROUP_INVALID_REQUEST);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .topics = "t", .assignor = "sticky"), GROUP_UNSUPPORTED_ASSIGNOR);
    memset(many, 'n', 65537);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .topics = many), GROUP_INVALID_REQUEST);
    CHECK_TEXT(listed(&r, NULL), "");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .regex = ""), GROUP_OK); /* an empty pattern is none */
    rig_end(&r);
}

TEST(epochs_of_unknown_groups_and_members_are_refused) {
    struct rig r;
    begin(&r);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = -1), GROUP_UNKNOWN_MEMBER);
    CHECK_TEXT(listed(&r, NULL), "");
    CBEAT(&r, &b, .member = "b", .topics = "t");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1), GROUP_UNKNOWN_MEMBER);
    CHECK_TEXT(a.id, "a");
    CHECK_EQ(a.h.member_epoch, 0);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = -1), GROUP_UNKNOWN_MEMBER);
    rig_end(&r);
}

TEST(an_epoch_other_than_the_members_is_fenced_except_the_one_before_it) {
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .topics = "t");
    CBEAT(&r, &b, .member = "b", .topics = "t");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 2), GROUP_FENCED_EPOCH);
    CBEAT(&r, &a, .member = "a", .epoch = 1);
    CBEAT(&r, &a, .member = "a", .epoch = 1, .owned = "t:0,1,2;");          /* the answer, epoch 2, is lost */
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1), GROUP_FENCED_EPOCH); /* nobody knows what it owns */
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1, .owned = "t:0,1,2,3;"), GROUP_FENCED_EPOCH);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1, .owned = "t:0,1;"), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 2);
    CBEAT(&r, &c, .member = "c", .topics = "t");
    CBEAT(&r, &a, .member = "a", .epoch = 2, .owned = "");
    CHECK_EQ(a.h.member_epoch, 3);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1, .owned = ""), GROUP_FENCED_EPOCH);
    rig_end(&r);
}

TEST(a_fenced_member_comes_back_with_epoch_0_as_what_it_was) { /* D11-91 */
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .topics = "t");
    CBEAT(&r, &b, .member = "b", .topics = "t");
    CBEAT(&r, &a, .member = "a", .epoch = 1); /* must give up 3, 4, 5 */
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .topics = "t"), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 2);
    CHECK_TEXT(a.assignment, "t:0,1,2;");
    CHECK_EQ(counts(&r).members, 2);
    rig_end(&r);
}

TEST(consumer_groups_have_the_same_limits) { /* D11-80 */
    struct rig r;
    rig_settings(&r);
    topics_clear(&r);
    r.settings.members_per_group_max = 2;
    r.settings.members_max = 3;
    r.settings.groups_max = 2;
    r.settings.roster_bytes_max = 20;
    rig_start(&r);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .topics = "0123456789"), GROUP_OK);
    CHECK_EQ(CBEAT(&r, &a, .member = "b", .topics = "0123456789x"),
             GROUP_MAX_SIZE_REACHED); /* what they send */
    CHECK_EQ(counts(&r).members, 1);
    CHECK_EQ(CBEAT(&r, &a, .member = "b", .topics = "0123456789"), GROUP_OK);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1, .topics = "0123456789x"), GROUP_MAX_SIZE_REACHED);
    CHECK_EQ(CBEAT(&r, &a, .member = "c", .topics = ""), GROUP_MAX_SIZE_REACHED);
    CHECK_EQ(CBEAT(&r, &a, .group = "h", .member = "c", .topics = ""), GROUP_OK);
    CHECK_EQ(CBEAT(&r, &a, .group = "h", .member = "d", .topics = ""), GROUP_NOT_AVAILABLE); /* of all */
    CHECK_EQ(CBEAT(&r, &a, .group = "i", .member = "d", .topics = ""), GROUP_NOT_AVAILABLE); /* groups */
    CHECK_EQ(counts(&r).members, 3);
    rig_end(&r);
}

/* --- time: D11-93 -------------------------------------------------------------------------------------------------------------- */

TEST(a_silent_member_is_removed_after_45_s) {
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .topics = "t");
    CBEAT(&r, &b, .member = "b", .topics = "t");
    for (int i = 0; i < 9; i++) {
        rig_wait(&r, 4999);
        CHECK_EQ(CBEAT(&r, &b, .member = "b", .epoch = 2), GROUP_OK);
    }
    CHECK_EQ(counts(&r).members, 2);
    rig_wait(&r, 9);
    CHECK_EQ(counts(&r).members, 1);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .epoch = 2), GROUP_OK);
    CHECK_TEXT(b.assignment, "t:0,1,2,3,4,5;");
    rig_end(&r);
}

TEST(a_member_that_doesnt_give_up_within_its_rebalance_timeout_is_removed) {
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .topics = "t", .rebalance_ms = 20000);
    CBEAT(&r, &b, .member = "b", .topics = "t");
    CBEAT(&r, &a, .member = "a", .epoch = 1);
    for (int i = 0; i < 19; i++) {
        rig_wait(&r, 1000);
        CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1, .owned = "t:0,1,2,3;"), GROUP_OK);
    }
    rig_wait(&r, 999);
    CHECK_EQ(counts(&r).members, 2);
    rig_wait(&r, 1);
    CHECK_EQ(counts(&r).members, 1);
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .epoch = 2), GROUP_OK);
    CHECK_TEXT(b.assignment, "t:0,1,2,3,4,5;");
    rig_end(&r);
}

TEST(giving_up_in_time_ends_the_rebalance_timeout) {
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .topics = "t", .rebalance_ms = 20000);
    CBEAT(&r, &b, .member = "b", .topics = "t");
    CBEAT(&r, &a, .member = "a", .epoch = 1);
    CBEAT(&r, &a, .member = "a", .epoch = 1, .owned = "t:0,1,2;");
    rig_wait(&r, 30000);
    CHECK_EQ(counts(&r).members, 2);
    rig_end(&r);
}

/* --- static members: D11-94 ---------------------------------------------------------------------------------------------------- */

TEST(a_static_member_that_leaves_for_a_while_keeps_its_partitions) {
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .instance = "i", .topics = "t");
    CBEAT(&r, &b, .member = "b", .topics = "t");
    CBEAT(&r, &a, .member = "a", .instance = "i", .epoch = 1, .owned = "");
    CBEAT(&r, &b, .member = "b", .epoch = 2);
    CHECK_EQ(CBEAT(&r, &c, .member = "c", .instance = "i", .topics = "t"), GROUP_UNRELEASED_INSTANCE);
    CHECK_EQ(CBEAT(&r, &a, .member = "x", .instance = "i", .epoch = -2), GROUP_FENCED_INSTANCE);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .instance = "j", .epoch = -2), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .instance = "i", .epoch = -2), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, -2);
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .epoch = 2), GROUP_OK);
    CHECK_TEXT(b.assignment, "-"); /* nothing moves */
    CHECK_EQ(CBEAT(&r, &c, .member = "c", .instance = "i", .topics = "t"), GROUP_OK);
    CHECK_EQ(c.h.member_epoch, 2);
    CHECK_TEXT(c.assignment, "t:0,1,2;");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .instance = "i", .epoch = 2), GROUP_FENCED_INSTANCE);
    CHECK_TEXT(consumer_described(&r, "g"), "Stable uniform 2 2 b:2 t:3,4,5;>t:3,4,5; c:2 t:0,1,2;>t:0,1,2;");
    rig_end(&r);
}

TEST(a_static_member_that_stays_away_loses_its_place_with_its_session) {
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .instance = "i", .topics = "t");
    CBEAT(&r, &a, .member = "a", .instance = "i", .epoch = -2);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .instance = "i", .epoch = 1), GROUP_FENCED_EPOCH);
    rig_wait(&r, 45000);
    CHECK_EQ(counts(&r).members, 0);
    rig_end(&r);
}

TEST(a_static_member_may_come_back_under_its_own_id_and_leave_for_good) {
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .instance = "i", .topics = "t");
    CBEAT(&r, &a, .member = "a", .instance = "i", .epoch = -2);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .instance = "i", .topics = "t"), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 1);
    CHECK_TEXT(a.assignment, "t:0,1,2,3,4,5;");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .instance = "i", .epoch = -1), GROUP_OK);
    CHECK_EQ(counts(&r).members, 0);
    rig_end(&r);
}

TEST(a_static_member_that_leaves_in_the_middle_of_giving_up_frees_what_it_had_to) {
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .instance = "i", .topics = "t");
    CBEAT(&r, &b, .member = "b", .topics = "t");
    CBEAT(&r, &a, .member = "a", .instance = "i", .epoch = 1);
    CBEAT(&r, &a, .member = "a", .instance = "i", .epoch = -2);
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .epoch = 2), GROUP_OK);
    CHECK_TEXT(b.assignment, "t:3,4,5;");
    CHECK_EQ(CBEAT(&r, &c, .member = "c", .instance = "i", .topics = "t"), GROUP_OK);
    CHECK_TEXT(c.assignment, "t:0,1,2;");
    rig_end(&r);
}

TEST(a_dynamic_member_that_comes_back_as_a_static_one_begins_anew) {
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .topics = "t");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .instance = "i", .topics = "t"), GROUP_OK);
    CHECK_EQ(counts(&r).members, 1);
    CHECK_TEXT(a.assignment, "t:0,1,2,3,4,5;");
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .instance = "i", .topics = "t"), GROUP_UNRELEASED_INSTANCE);
    rig_end(&r);
}

/* --- commits: D11-95 ----------------------------------------------------------------------------------------------------------- */

TEST(commits_and_fetches_of_members_have_their_epoch) {
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .topics = "t");
    CHECK_EQ(CHECK_COMMIT(&r, .member = "a", .generation = 1, .v9 = true), GROUP_OK);
    CHECK_EQ(CHECK_COMMIT(&r, .member = "a", .generation = 1), GROUP_UNSUPPORTED_VERSION);
    CHECK_EQ(CHECK_COMMIT(&r, .member = "a", .generation = 2, .v9 = true), GROUP_STALE_EPOCH);
    CHECK_EQ(CHECK_COMMIT(&r, .member = "x", .generation = 1, .v9 = true), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(CHECK_COMMIT(&r, .generation = -1, .v9 = true), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(CHECK_COMMIT(&r, .fetch = true, .generation = -1, .v9 = true), GROUP_OK);
    CHECK_EQ(CHECK_COMMIT(&r, .fetch = true, .member = "a", .generation = 1, .v9 = true), GROUP_OK);
    CHECK_EQ(CHECK_COMMIT(&r, .fetch = true, .member = "a", .generation = 2, .v9 = true), GROUP_STALE_EPOCH);
    CHECK_EQ(CHECK_COMMIT(&r, .fetch = true, .member = "x", .generation = 1, .v9 = true),
             GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(CHECK_COMMIT(&r, .fetch = true, .member = "x", .generation = 1),
             GROUP_OK); /* v8 has no members */
    CBEAT(&r, &a, .member = "a", .epoch = -1);
    CHECK_EQ(CHECK_COMMIT(&r, .generation = -1), GROUP_OK); /* Empty: an operator resets offsets */
    CHECK_EQ(CHECK_COMMIT(&r, .member = "a", .generation = 1, .v9 = true), GROUP_UNKNOWN_MEMBER);
    rig_end(&r);
}

/* --- from one protocol to the other: D11-96 ------------------------------------------------------------------------------------ */

TEST(an_empty_group_changes_its_protocol_and_one_with_members_doesnt) {
    struct rig r;
    struct joined j;
    static struct joined k;
    begin(&r);
    CHECK_EQ(JOIN(&r, &j), WAITS);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .topics = "t"), GROUP_ID_NOT_FOUND);
    coordinator_cancel(r.c, &j.j.call, r.now);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .topics = "t"), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 1);
    CHECK_EQ(JOIN(&r, &j), GROUP_INCONSISTENT_PROTOCOL);
    CHECK_EQ(BEAT(&r, .member = "a", .generation = 1), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(LEAVE(&r, .member = "a"), GROUP_UNKNOWN_MEMBER);
    CBEAT(&r, &a, .member = "a", .epoch = -1);
    CHECK_EQ(JOIN(&r, &j, .member = "m"), GROUP_UNKNOWN_MEMBER);
    CHECK_TEXT(consumer_described(&r, "g"), "Empty uniform 2 1"); /* a refused join changes nothing */
    CHECK_EQ(JOIN(&r, &k), WAITS);
    rig_wait(&r, 3000);
    CHECK_EQ(k.j.generation, 1);
    CHECK_TEXT(consumer_described(&r, "g"), "other");
    rig_end(&r);
}

TEST(consumer_groups_are_deleted_when_empty_and_forgotten_after_10_min) {
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .topics = "t");
    CHECK_EQ(deleted(&r, "g", true), GROUP_NON_EMPTY);
    CBEAT(&r, &a, .member = "a", .epoch = -1);
    CHECK_EQ(deleted(&r, "g", true), GROUP_OK);
    CHECK_TEXT(consumer_described(&r, "g"), "Dead");
    CBEAT(&r, &a, .member = "a", .topics = "t");
    CBEAT(&r, &a, .member = "a", .epoch = -1);
    rig_wait(&r, 600000);
    CHECK_TEXT(consumer_described(&r, "g"), "Dead");
    CHECK_EQ(counts(&r).bytes, 0);
    rig_end(&r);
}

TEST(shutdown_refuses_heartbeats_too) {
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .topics = "t");
    coordinator_shutdown(r.c, r.now);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1), GROUP_NOT_COORDINATOR);
    CHECK_EQ(counts(&r).bytes, 0);
    rig_end(&r);
}

/* --- without memory ------------------------------------------------------------------------------------------------------------ */

#define AGAIN(outcome, ...)                 \
    do {                                    \
        outcome = CBEAT(__VA_ARGS__);       \
        if (outcome == GROUP_NOT_AVAILABLE) \
            outcome = CBEAT(__VA_ARGS__);   \
        CHECK_EQ(outcome, GROUP_OK);        \
    } while (0)

TEST_OOM(a_consumer_group_survives_the_want_of_memory) {
    struct rig r;
    enum group_outcome outcome;
    rig_settings(&r);
    topics_clear(&r);
    topic_set("t", 6);
    topic_set("u", 3);
    if (coordinator_new(&r.settings, &r.c))
        return;
    AGAIN(outcome, &r, &a, .member = "a", .topics = "t,u");
    AGAIN(outcome, &r, &b, .member = "b", .instance = "i", .topics = "t");
    int32_t epoch = a.h.member_epoch;
    AGAIN(outcome, &r, &a, .member = "a", .epoch = epoch, .owned = "");
    epoch = b.h.member_epoch;
    AGAIN(outcome, &r, &b, .member = "b", .instance = "i", .epoch = epoch);
    AGAIN(outcome, &r, &b, .member = "b", .instance = "i", .epoch = -2);
    AGAIN(outcome, &r, &c, .member = "c", .instance = "i", .topics = "u,t", .assignor = "range");
    epoch = a.h.member_epoch;
    AGAIN(outcome, &r, &a, .member = "a", .epoch = epoch, .owned = "");
    epoch = c.h.member_epoch;
    AGAIN(outcome, &r, &c, .member = "c", .instance = "i", .epoch = epoch, .owned = "");
    epoch = c.h.member_epoch;
    AGAIN(outcome, &r, &c, .member = "c", .instance = "i", .epoch = epoch);
    const char *state = consumer_described(&r, "g");
    CHECK(strstr(state, "t:0,1,2;u:0,1;>t:0,1,2;u:0,1;") && strstr(state, "t:3,4,5;u:2;>t:3,4,5;u:2;"));
    coordinator_shutdown(r.c, r.now);
    CHECK_EQ(counts(&r).bytes, 0);
    rig_end(&r);
}
