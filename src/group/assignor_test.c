/* What each member is to have: D11-92. Seen from outside, through the targets that ConsumerGroupDescribe shows. */
#include "group/consumer_rig_test.h"

#include "testing/test.h"

#include <stdlib.h>

#define MEMBERS 12
#define TOPICS  6
#define PARTS   40

static const char *const topic_names[TOPICS] = {"a", "b", "c", "d", "e", "f"};

/* Who is to have what. -1: nobody. Members are named "m0" to "m11". */
static struct {
    int owner[TOPICS][PARTS];
    int load[MEMBERS];
    int32_t parts[TOPICS];
} seen;

static void see(struct group_call *call) {
    struct group_describe *d = container_of(call, struct group_describe, call);
    struct group_member_view m;
    memset(seen.owner, 0xff, sizeof seen.owner);
    memset(seen.load, 0, sizeof seen.load);
    while (group_members_next(&d->members, &m)) {
        int member = (int)strtol(m.id.ptr + 1, NULL, 10); /* the text behind it is not a digit */
        struct group_part p;
        while (group_parts_next(&m.target, &p)) {
            int topic = p.topic.ptr[0] - 'a';
            CHECK_EQ(seen.owner[topic][p.part], -1);
            seen.owner[topic][p.part] = member;
            seen.load[member]++;
        }
    }
}

static void look(struct rig *r) {
    struct group_describe d = {.call.done = see, .group = STR("g"), .type = GROUP_CONSUMER};
    coordinator_describe(r->c, &d, r->now);
}

static void begin(struct rig *r) {
    rig_settings(r);
    topics_clear(r);
    r->settings.members_per_group_max = 1000;
    rig_start(r);
}

static void topic(int which, int32_t parts) {
    seen.parts[which] = parts;
    topic_set(topic_names[which], parts);
}

static void member(struct rig *r, int which, const char *topics, const char *assignor) {
    static struct beaten x;
    char id[16];
    snprintf(id, sizeof id, "m%d-", which);
    CHECK_EQ(CBEAT(r, &x, .member = id, .topics = topics, .assignor = assignor), GROUP_OK);
}

static void gone(struct rig *r, int which) {
    static struct beaten x;
    char id[16];
    snprintf(id, sizeof id, "m%d-", which);
    CHECK_EQ(CBEAT(r, &x, .member = id, .epoch = -1), GROUP_OK);
}

static const char *run(int which, int from, int to) {
    static char text[500];
    text[0] = 0;
    text_add(text, sizeof text, "%s:", topic_names[which]);
    for (int i = from; i <= to; i++)
        text_add(text, sizeof text, i > from ? ",%d" : "%d", i);
    text_add(text, sizeof text, ";");
    return text;
}

/* --- uniform ------------------------------------------------------------------------------------------------------------------- */

TEST(uniform_shares_are_equal_but_for_one) {
    struct rig r;
    begin(&r);
    topic(0, 7);
    topic(1, 4);
    for (int i = 0; i < 3; i++)
        member(&r, i, "a,b", NULL);
    look(&r);
    CHECK_EQ(seen.load[0] + seen.load[1] + seen.load[2], 11);
    for (int i = 0; i < 3; i++)
        CHECK(seen.load[i] == 3 || seen.load[i] == 4);
    rig_end(&r);
}

TEST(uniform_moves_no_more_than_it_has_to) {
    struct rig r;
    int before[TOPICS][PARTS], moved = 0;
    begin(&r);
    topic(0, 20);
    for (int i = 0; i < 4; i++)
        member(&r, i, "a", NULL);
    look(&r);
    memcpy(before, seen.owner, sizeof before);
    member(&r, 4, "a", NULL);
    look(&r);
    for (int i = 0; i < 20; i++) {
        moved += seen.owner[0][i] != before[0][i];
        CHECK(seen.owner[0][i] == before[0][i] || seen.owner[0][i] == 4);
    }
    CHECK_EQ(moved, 4);
    memcpy(before, seen.owner, sizeof before);
    gone(&r, 2);
    member(&r, 0, "a", NULL); /* a heartbeat makes the new target */
    look(&r);
    for (int i = 0; i < 20; i++)
        CHECK(seen.owner[0][i] == before[0][i] || before[0][i] == 2);
    rig_end(&r);
}

TEST(uniform_keeps_the_larger_shares_where_they_are) {
    struct rig r;
    begin(&r);
    topic(0, 5);
    member(&r, 7, "a", NULL);
    member(&r, 5, "a", NULL);
    look(&r);
    CHECK_EQ(seen.load[7], 3);
    CHECK_EQ(seen.load[5], 2);
    rig_end(&r);
}

TEST(with_other_subscriptions_loads_are_as_even_as_they_can_be) {
    struct rig r;
    begin(&r);
    topic(0, 6);
    topic(1, 2);
    member(&r, 0, "a,b", NULL);
    member(&r, 1, "a", NULL);
    look(&r);
    CHECK_EQ(seen.load[0], 4);
    CHECK_EQ(seen.load[1], 4);
    CHECK_EQ(seen.owner[1][0], 0);
    CHECK_EQ(seen.owner[1][1], 0);
    member(&r, 2, "b", NULL); /* b is all it can have: 2 of 8 */
    look(&r);
    CHECK_EQ(seen.load[2], 2);
    CHECK_EQ(seen.load[0], 3);
    CHECK_EQ(seen.load[1], 3);
    rig_end(&r);
}

TEST(more_members_than_partitions_leaves_some_with_nothing) {
    struct rig r;
    begin(&r);
    topic(0, 2);
    for (int i = 0; i < 4; i++)
        member(&r, i, "a", NULL);
    look(&r);
    int most = 0;
    for (int i = 0; i < 4; i++)
        most = seen.load[i] > most ? seen.load[i] : most;
    CHECK_EQ(most, 1);
    rig_end(&r);
}

/* --- range --------------------------------------------------------------------------------------------------------------------- */

TEST(range_gives_runs_and_the_same_ones_of_equal_topics) {
    struct rig r;
    begin(&r);
    topic(0, 7);
    topic(1, 7);
    for (int i = 0; i < 3; i++)
        member(&r, i, "a,b", "range");
    const char *said = consumer_described(&r, "g");
    CHECK(strstr(said, " range 3 3 "));
    CHECK(strstr(said, "m0-:1"));
    for (int t = 0; t < 2; t++) {
        CHECK(strstr(said, run(t, 0, 2)));
        CHECK(strstr(said, run(t, 3, 4)));
        CHECK(strstr(said, run(t, 5, 6)));
    }
    look(&r);
    for (int i = 0; i < 7; i++)
        CHECK_EQ(seen.owner[0][i], seen.owner[1][i]);
    rig_end(&r);
}

TEST(range_counts_only_a_topics_own_subscribers) {
    struct rig r;
    begin(&r);
    topic(0, 4);
    topic(1, 3);
    member(&r, 0, "a", "range");
    member(&r, 1, "a,b", "range");
    member(&r, 2, "b,c", "range");
    look(&r);
    const int a[4] = {0, 0, 1, 1}, b[3] = {1, 1, 2};
    for (int i = 0; i < 4; i++)
        CHECK_EQ(seen.owner[0][i], a[i]);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(seen.owner[1][i], b[i]);
    rig_end(&r);
}

TEST(range_puts_static_members_first_by_instance) {
    struct rig r;
    static struct beaten x;
    begin(&r);
    topic(0, 3);
    member(&r, 0, "a", "range");
    CHECK_EQ(CBEAT(&r, &x, .member = "m9-", .instance = "i1", .topics = "a", .assignor = "range"), GROUP_OK);
    CHECK_EQ(CBEAT(&r, &x, .member = "m5-", .instance = "i2", .topics = "a", .assignor = "range"), GROUP_OK);
    look(&r);
    CHECK_EQ(seen.owner[0][0], 9);
    CHECK_EQ(seen.owner[0][1], 5);
    CHECK_EQ(seen.owner[0][2], 0);
    rig_end(&r);
}

TEST(the_assignor_that_most_members_ask_for_is_taken) {
    struct rig r;
    begin(&r);
    topic(0, 3);
    member(&r, 0, "a", NULL);
    member(&r, 1, "a", "range");
    CHECK(strstr(consumer_described(&r, "g"), " range "));
    member(&r, 2, "a", "uniform");
    CHECK(strstr(consumer_described(&r, "g"), " uniform ")); /* a tie */
    member(&r, 3, "a", "range");
    CHECK(strstr(consumer_described(&r, "g"), " range "));
    rig_end(&r);
}

/* --- at random ----------------------------------------------------------------------------------------------------------------- */

/* Every partition of a topic that somebody subscribes to has one owner, who subscribes to it. */
static void check_cover(const int *subscriptions) {
    for (int t = 0; t < TOPICS; t++) {
        bool wanted = false;
        for (int m = 0; m < MEMBERS; m++)
            wanted = wanted || (subscriptions[m] >> t & 1);
        for (int p = 0; p < PARTS; p++) {
            bool there = wanted && p < seen.parts[t];
            CHECK_EQ(seen.owner[t][p] >= 0, there);
            if (there)
                CHECK(subscriptions[seen.owner[t][p]] >> t & 1);
        }
    }
}

/* No partition could go to somebody who has two less than its owner. */
static void check_even(const int *subscriptions) {
    for (int t = 0; t < TOPICS; t++) {
        for (int p = 0; p < seen.parts[t]; p++) {
            for (int m = 0; seen.owner[t][p] >= 0 && m < MEMBERS; m++)
                CHECK(!(subscriptions[m] >> t & 1) || seen.load[seen.owner[t][p]] - seen.load[m] < 2);
        }
    }
}

static void random_changes(const char *assignor, bool even) {
    struct rig r;
    srandom(11);
    for (int history = 0; history < 60; history++) {
        int subscriptions[MEMBERS] = {0};
        begin(&r);
        for (int t = 0; t < TOPICS; t++)
            topic(t, 1 + (int32_t)(random() % PARTS));
        bool alike = random() % 3 == 0;
        for (int change = 0; change < 40; change++) {
            int m = (int)(random() % MEMBERS);
            if (subscriptions[m] && random() % 3 == 0) {
                gone(&r, m);
                subscriptions[m] = 0;
                continue;
            }
            char topics[3 * TOPICS] = "";
            subscriptions[m] = alike ? (1 << TOPICS) - 1 : 1 + (int)(random() % ((1 << TOPICS) - 1));
            for (int t = 0; t < TOPICS; t++) {
                if (subscriptions[m] >> t & 1)
                    text_add(topics, sizeof topics, "%s%s", topics[0] ? "," : "", topic_names[t]);
            }
            member(&r, m, topics, assignor);
            look(&r);
            check_cover(subscriptions);
            if (even)
                check_even(subscriptions);
        }
        rig_end(&r);
    }
}

TEST(after_random_changes_uniform_covers_everything_evenly) {
    random_changes("uniform", true);
}

TEST(after_random_changes_range_covers_everything) {
    random_changes("range", false);
}
