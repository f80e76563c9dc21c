/* Subscriptions by pattern in consumer groups: D11-99. */
#include "group/consumer_rig_test.h"

#include "testing/test.h"

#include "base/clock.h"

static struct beaten a, b;

static void begin(struct rig *r) {
    rig_settings(r);
    topics_clear(r);
    topic_set("t", 2);
    topic_set("tt", 1);
    topic_set("u", 3);
    rig_start(r);
}

static void change(const struct rig *r, const char *topic, int32_t parts) {
    topic_set(topic, parts);
    coordinator_topics_changed(r->c);
}

TEST(a_member_with_a_pattern_has_the_topics_whose_whole_names_it_matches) {
    struct rig r;
    begin(&r);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .regex = "t.*"), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 1);
    CHECK_TEXT(a.assignment, "t:0,1;tt:0;");
    CHECK_EQ(CBEAT(&r, &b, .group = "h", .member = "b", .regex = "t"), GROUP_OK);
    CHECK_TEXT(b.assignment, "t:0,1;");
    CHECK_TEXT(consumer_described(&r, "g"), "Stable uniform 1 1 a:1 t.* t:0,1;tt:0;>t:0,1;tt:0;");
    rig_end(&r);
}

TEST(topics_that_come_grow_and_go_reach_a_member_with_a_pattern) {
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .regex = "t.*");
    change(&r, "tx", 2);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 2);
    CHECK_TEXT(a.assignment, "t:0,1;tt:0;tx:0,1;");
    change(&r, "tx", 3);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 2), GROUP_OK);
    CHECK_TEXT(a.assignment, "t:0,1;tt:0;tx:0,1,2;");
    change(&r, "t", 0);
    change(&r, "v", 1); /* not matched */
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 3, .owned = ""), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 4);
    CHECK_TEXT(a.assignment, "tt:0;tx:0,1,2;");
    change(&r, "w", 1);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 4), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 4);
    topic_set("ty", 1); /* nobody says so: it is seen when it is time */
    rig_wait(&r, 30000);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 4), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 4);
    rig_wait(&r, 30000);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 4), GROUP_OK);
    CHECK_TEXT(a.assignment, "tt:0;tx:0,1,2;ty:0;");
    rig_end(&r);
}

TEST(a_member_reads_what_it_names_and_what_its_pattern_matches_each_once) {
    struct rig r;
    begin(&r);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .topics = "u,t", .regex = "t.*"), GROUP_OK);
    CHECK_TEXT(a.assignment, "t:0,1;tt:0;u:0,1,2;");
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .topics = "tt", .assignor = "range"), GROUP_OK);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1, .owned = ""), GROUP_OK);
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .epoch = 2, .owned = ""), GROUP_OK);
    CHECK_TEXT(consumer_described(&r, "g"),
               "Stable range 2 2 a:2 t.* t:0,1;tt:0;u:0,1,2;>t:0,1;tt:0;u:0,1,2; b:2 >");
    change(&r, "tt", 0);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 2, .owned = "t:0,1;u:0,1,2;"), GROUP_OK);
    CHECK_TEXT(a.assignment, "t:0,1;u:0,1,2;");
    rig_end(&r);
}

TEST(members_with_different_patterns_have_only_what_their_own_matches) {
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .regex = "t.*");
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .regex = "u|tt"), GROUP_OK);
    CHECK_TEXT(b.assignment, "u:0,1,2;");
    CHECK_TEXT(consumer_described(&r, "g"),
               "Reconciling uniform 2 2 a:1 t.* t:0,1;tt:0;>t:0,1;tt:0; b:2 u|tt u:0,1,2;>u:0,1,2;");
    rig_end(&r);
}

TEST(a_pattern_stays_until_another_one_or_an_empty_one_is_sent) {
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .regex = "t.*");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1), GROUP_OK);
    CHECK_TEXT(a.assignment, "-");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1, .regex = "t.*"), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 1); /* the same again */
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1, .regex = "u", .owned = ""), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 2);
    CHECK_TEXT(a.assignment, "u:0,1,2;");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 2, .regex = "", .topics = "tt", .owned = ""), GROUP_OK);
    CHECK_TEXT(a.assignment, "tt:0;");
    CHECK_TEXT(consumer_described(&r, "g"), "Stable uniform 3 3 a:3 tt:0;>tt:0;");
    rig_end(&r);
}

TEST(a_full_heartbeat_with_a_pattern_alone_gets_the_whole_assignment) { /* D11-93 */
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .regex = "t");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1, .regex = "t", .rebalance_ms = 1000, .owned = "t:0,1;"),
             GROUP_OK);
    CHECK_TEXT(a.assignment, "t:0,1;");
    rig_end(&r);
}

TEST(a_pattern_that_is_not_valid_changes_nothing) {
    struct rig r;
    begin(&r);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .regex = "t("), GROUP_INVALID_REGULAR_EXPRESSION);
    CHECK_TEXT(listed(&r, NULL), ""); /* the group isn't made by it */
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1, .regex = "t("), GROUP_UNKNOWN_MEMBER);
    CBEAT(&r, &a, .member = "a", .topics = "t");
    CHECK_EQ(CBEAT(&r, &b, .member = "a", .epoch = 1, .topics = "u", .regex = "t("),
             GROUP_INVALID_REGULAR_EXPRESSION);
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .regex = "t("), GROUP_INVALID_REGULAR_EXPRESSION);
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .epoch = 1, .regex = "t"), GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(counts(&r).members, 1);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1), GROUP_OK);
    CHECK(strstr(consumer_described(&r, "g"), "t:0,1;>t:0,1;"));
    rig_end(&r);
    rig_settings(&r);
    topics_clear(&r);
    r.settings.pattern_find = NULL;
    rig_start(&r);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .regex = "t"), GROUP_INVALID_REGULAR_EXPRESSION);
    rig_end(&r);
}

TEST(a_pattern_whose_topics_are_not_known_yet_has_none_until_they_are) {
    struct rig r;
    begin(&r);
    patterns_set(false, false);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .regex = "t.*"), GROUP_OK);
    CHECK_TEXT(a.assignment, "");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1), GROUP_OK);
    CHECK_TEXT(a.assignment, "-");
    patterns_set(true, false);
    coordinator_topics_changed(r.c);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 1), GROUP_OK);
    CHECK_TEXT(a.assignment, "t:0,1;tt:0;");
    patterns_set(false, false); /* what was known stays */
    coordinator_topics_changed(r.c);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = 2), GROUP_OK);
    CHECK_EQ(a.h.member_epoch, 2);
    rig_end(&r);
}

TEST(patterns_are_bounded) {
    struct rig r;
    static char longer[101], longest[70000];
    memset(longer, 'x', 100);
    memset(longest, 'x', 65537);
    begin(&r);
    patterns_set(true, true);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .regex = "t.*"), GROUP_NOT_AVAILABLE);
    CHECK_TEXT(listed(&r, NULL), "");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .regex = longest), GROUP_INVALID_REQUEST);
    rig_end(&r);
    rig_settings(&r);
    topics_clear(&r);
    r.settings.roster_bytes_max = 150;
    rig_start(&r);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .regex = longer), GROUP_OK);
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .regex = longer), GROUP_OK); /* kept once */
    longer[0] = 'y';
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .epoch = b.h.member_epoch, .regex = longer),
             GROUP_MAX_SIZE_REACHED);
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .epoch = -1), GROUP_OK);
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .epoch = -1), GROUP_OK);
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .regex = longer),
             GROUP_OK); /* and forgotten with its last member */
    rig_end(&r);
}

TEST(who_takes_a_static_members_place_takes_its_pattern_too) { /* D11-94 */
    struct rig r;
    begin(&r);
    CBEAT(&r, &a, .member = "a", .instance = "i", .regex = "t.*");
    CHECK_EQ(CBEAT(&r, &a, .member = "a", .instance = "i", .epoch = -2), GROUP_OK);
    CHECK_EQ(CBEAT(&r, &b, .member = "b", .instance = "i", .regex = "t.*"), GROUP_OK);
    CHECK_EQ(b.h.member_epoch, 1);
    CHECK_TEXT(b.assignment, "t:0,1;tt:0;");
    rig_end(&r);
}

TEST(the_topics_of_a_pattern_are_asked_for_once_however_many_members_have_it) {
    struct rig r;
    char id[16];
    begin(&r);
    CBEAT(&r, &a, .member = "a", .regex = "t.*");
    int once = patterns_resolved();
    for (int i = 0; i < 999; i++) {
        snprintf(id, sizeof id, "m%d", i);
        CHECK_EQ(CBEAT(&r, &b, .member = id, .regex = "t.*"), GROUP_OK);
    }
    CHECK_EQ(patterns_resolved(), once);
    change(&r, "tx", 1000);
    int64_t began_us = clock_us();
    for (int i = 0; i < 999; i++) {
        snprintf(id, sizeof id, "m%d", i);
        CHECK_EQ(CBEAT(&r, &b, .member = id, .epoch = i + 2, .owned = ""), GROUP_OK);
        CHECK_EQ(b.h.member_epoch, 1001);
    }
    CHECK_EQ(patterns_resolved(), once + 1);
    printf("a heartbeat of a thousand members, their topics changed: %" PRId64 " us\n",
           (clock_us() - began_us) / 999);
    rig_end(&r);
}

#define AGAIN(outcome, ...)                 \
    do {                                    \
        outcome = CBEAT(__VA_ARGS__);       \
        if (outcome == GROUP_NOT_AVAILABLE) \
            outcome = CBEAT(__VA_ARGS__);   \
        CHECK_EQ(outcome, GROUP_OK);        \
    } while (0)

TEST_OOM(a_group_with_patterns_survives_the_want_of_memory) {
    struct rig r;
    enum group_outcome outcome;
    rig_settings(&r);
    topics_clear(&r);
    topic_set("t", 2);
    topic_set("u", 1);
    if (coordinator_new(&r.settings, &r.c))
        return;
    AGAIN(outcome, &r, &a, .member = "a", .topics = "t", .regex = "u|v");
    AGAIN(outcome, &r, &b, .member = "b", .regex = "t|u|v");
    change(&r, "v", 2);
    for (int i = 0; i < 3; i++) {
        int32_t epoch = a.h.member_epoch;
        AGAIN(outcome, &r, &a, .member = "a", .epoch = epoch, .owned = "");
        epoch = b.h.member_epoch;
        AGAIN(outcome, &r, &b, .member = "b", .epoch = epoch, .owned = "");
    }
    int32_t epoch = b.h.member_epoch;
    AGAIN(outcome, &r, &b, .member = "b", .epoch = epoch, .owned = "", .regex = "v");
    epoch = a.h.member_epoch;
    AGAIN(outcome, &r, &a, .member = "a", .epoch = epoch, .owned = "");
    epoch = b.h.member_epoch;
    AGAIN(outcome, &r, &b, .member = "b", .epoch = epoch, .owned = "", .regex = "v");
    CHECK(strstr(consumer_described(&r, "g"), "u|v t:0,1;u:0;>t:0,1;u:0;"));
    CHECK(strstr(consumer_described(&r, "g"), "v v:0,1;>v:0,1;"));
    coordinator_shutdown(r.c, r.now);
    CHECK_EQ(counts(&r).bytes, 0);
    rig_end(&r);
}
