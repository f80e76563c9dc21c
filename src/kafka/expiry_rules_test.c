/* Which offsets of a group run out: D11-67, with a coordinator and time as an argument. */
#include "kafka/expiry_rules.h"

#include <stdio.h>

#include "testing/test.h"

#define RETENTION_MS       600000
#define SESSION_MS         1800000
#define PARTS_MAX          4
#define SUBSCRIBES(x)      ((struct bytes){(const uint8_t *)("\0\1\0\0\0\1\0\1" x), 9})
#define SUBSCRIBES_TO_NONE ((struct bytes){(const uint8_t *)"\0\1\0\0\0\0", 6})
#define NO_SUBSCRIPTION    ((struct bytes){(const uint8_t *)"?", 1})

static struct rig {
    struct coordinator *c;
    int64_t now;
    char member[100];
    struct expiry_pick pick;
    struct group_describe describe;
} rig;

static void fake_random(void *ctx, uint8_t out[16]) {
    (void)ctx;
    static uint8_t last;
    memset(out, ++last, 16);
}

static bool fake_topic(void *ctx, struct str name, struct group_topic *out) {
    (void)ctx;
    *out = (struct group_topic){{{(uint8_t)name.ptr[0]}}, 1};
    return true;
}

/* "b.*" matches the topic b; of others it isn't known yet. */
static enum group_pattern fake_pattern(void *ctx, struct str pattern, struct group_matches *out) {
    static const struct str b = {"b", 1};
    (void)ctx;
    if (!str_equal(pattern, STR("b.*")))
        return GROUP_PATTERN_NOT_KNOWN_YET;
    if (out)
        *out = (struct group_matches){.version = 1, .names = &b, .count = 1};
    return GROUP_PATTERN_KNOWN;
}

static bool fake_has_offsets(void *ctx, struct str group) {
    (void)ctx;
    (void)group;
    return true;
}

static void rig_open(void) {
    struct coordinator_settings settings;
    coordinator_settings_default(&settings);
    settings.initial_delay_ms = 0;
    settings.random = fake_random;
    settings.topic_find = fake_topic;
    settings.pattern_find = fake_pattern;
    settings.has_offsets = fake_has_offsets;
    rig = (struct rig){.now = 5000};
    CHECK_EQ(coordinator_new(&settings, &rig.c), ST_OK);
}

static void rig_close(void) {
    coordinator_free(rig.c);
}

/* ---- members of the group "g" ---- */

static void join_done(struct group_call *call) {
    const struct group_join *j = container_of(call, struct group_join, call);
    snprintf(rig.member, sizeof rig.member, "%.*s", j->member_id.len, j->member_id.ptr);
}

/* The only member, whose generation waits for its assignment. */
static void join(const char *type, struct bytes metadata) {
    const struct group_protocol protocol = {STR("range"), metadata};
    struct group_join j = {.call.done = join_done,
                           .group = STR("g"),
                           .member = STR(""),
                           .instance = STR_NULL,
                           .client_id = STR("c"),
                           .host = STR("/h"),
                           .session_ms = SESSION_MS,
                           .rebalance_ms = SESSION_MS,
                           .protocol_type = str_of(type),
                           .protocols = &protocol,
                           .protocols_count = 1};
    coordinator_join(rig.c, &j, rig.now);
    coordinator_tick(rig.c, rig.now);
    CHECK_EQ(j.call.outcome, GROUP_OK);
}

static void sync_done(struct group_call *call) {
    CHECK_EQ(call->outcome, GROUP_OK);
}

static void become_stable(void) {
    struct group_sync s = {.call.done = sync_done,
                           .group = STR("g"),
                           .member = str_of(rig.member),
                           .instance = STR_NULL,
                           .generation = 1};
    coordinator_sync(rig.c, &s, rig.now);
}

static void leave(void) {
    struct group_leave l = {
        .call.done = sync_done, .group = STR("g"), .member = str_of(rig.member), .instance = STR_NULL};
    coordinator_leave(rig.c, &l, rig.now);
}

/* Of a consumer group: joins with epoch 0, leaves with -1. */
static void heartbeat_with(int32_t epoch, const char *topic, struct str pattern) {
    struct str name = str_of(topic ? topic : "");
    struct group_consumer_heartbeat h = {.call.done = sync_done,
                                         .group = STR("g"),
                                         .member = STR("m"),
                                         .instance = STR_NULL,
                                         .rack = STR_NULL,
                                         .client_id = STR("c"),
                                         .host = STR("/h"),
                                         .epoch = epoch,
                                         .rebalance_ms = SESSION_MS,
                                         .topics = &name,
                                         .topics_count = topic ? 1 : 0,
                                         .regex = pattern,
                                         .assignor = STR_NULL,
                                         .owned_count = epoch == 0 ? 0 : -1};
    coordinator_consumer_heartbeat(rig.c, &h, rig.now);
}

static void heartbeat(int32_t epoch, const char *topic) {
    heartbeat_with(epoch, topic, STR_NULL);
}

/* ---- looks ---- */

static void look_done(struct group_call *call) {
    (void)call;
    expiry_pick(&rig.describe, &rig.pick);
}

/* Which offsets go, as "a0 b1", when those of a0, a1, b0 and b1 are of these ages. */
static const char *picked(const int64_t ages[PARTS_MAX]) {
    static char text[50];
    struct backend_commit_part parts[PARTS_MAX];
    struct backend_committed_part offsets[PARTS_MAX];
    for (int32_t i = 0; i < PARTS_MAX; i++)
        offsets[i] = (struct backend_committed_part){.topic = i < 2 ? STR("a") : STR("b"),
                                                     .id = {{(uint8_t)(i < 2 ? 'a' : 'b')}},
                                                     .partition = i % 2,
                                                     .offset = 1,
                                                     .age_ms = ages[i]};
    rig.pick = (struct expiry_pick){.now_ms = rig.now,
                                    .retention_ms = RETENTION_MS,
                                    .offsets = offsets,
                                    .offsets_count = PARTS_MAX,
                                    .parts = parts,
                                    .parts_max = PARTS_MAX};
    const enum group_type types[] = {GROUP_CLASSIC, GROUP_CONSUMER};
    for (int i = 0; i == 0 || (i == 1 && rig.describe.other_type); i++) {
        rig.describe = (struct group_describe){.call.done = look_done,
                                               .group = STR("g"),
                                               .type = types[i],
                                               .has_offsets = true,
                                               .all_metadata = true};
        coordinator_describe(rig.c, &rig.describe, rig.now);
    }
    text[0] = '\0';
    for (int32_t i = 0; i < rig.pick.parts_count; i++) {
        CHECK_EQ(parts[i].offset, -1);
        CHECK_EQ(parts[i].topic.len, -1);
        CHECK_EQ(parts[i].status, ST_OK);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%c%d", i > 0 ? " " : "",
                 parts[i].id.b[0], (int)parts[i].partition);
    }
    if (rig.pick.parts_count > 0)
        CHECK(expiry_is_possible(&rig.describe, rig.now, RETENTION_MS));
    return text;
}

#define R RETENTION_MS
static const int64_t all_old[] = {R, R, 10 * R, R};
static const int64_t mixed[] = {R, R - 1, 0, R + 1};

TEST(offsets_of_which_no_group_is_known_go_each_by_its_own_age) {
    rig_open();
    CHECK_TEXT(picked(all_old), "a0 a1 b0 b1");
    CHECK_TEXT(picked(mixed), "a0 b1");
    rig_close();
}

TEST(a_pick_takes_no_more_than_it_has_room_for) {
    rig_open();
    struct backend_committed_part offsets[] = {{.topic = STR("a"), .age_ms = R},
                                               {.topic = STR("a"), .age_ms = R}};
    struct backend_commit_part part;
    struct expiry_pick pick = {
        .retention_ms = R, .offsets = offsets, .offsets_count = 2, .parts = &part, .parts_max = 1};
    const struct group_describe empty = {.state = GROUP_STATE_EMPTY, .empty_since_ms = -1};
    expiry_pick(&empty, &pick);
    CHECK_EQ(pick.parts_count, 1);
    rig_close();
}

TEST(an_empty_group_keeps_all_for_the_retention_time_from_when_it_became_empty) {
    rig_open();
    join("consumer", SUBSCRIBES("a"));
    become_stable();
    rig.now += 1000000;
    leave();
    CHECK_TEXT(picked(all_old), "");
    rig.now += R - 1;
    CHECK_TEXT(picked(all_old), "");
    rig.now += 1;
    CHECK_TEXT(picked(all_old), "a0 a1 b0 b1");
    CHECK_TEXT(picked(mixed), "a0 b1"); /* an offset that was set without members has its own time */
    rig_close();
}

TEST(a_group_whose_member_died_is_empty_from_the_end_of_its_session) {
    rig_open();
    join("consumer", SUBSCRIBES("a"));
    become_stable();
    int64_t joined = rig.now;
    rig.now = joined + SESSION_MS; /* more than the retention time */
    CHECK_TEXT(picked(all_old), "");
    rig.now = joined + SESSION_MS + R - 1;
    CHECK_TEXT(picked(all_old), "");
    rig.now = joined + SESSION_MS + R;
    CHECK_TEXT(picked(all_old), "a0 a1 b0 b1");
    rig_close();
}

TEST(of_a_stable_group_go_those_of_topics_that_nobody_reads) {
    rig_open();
    join("consumer", SUBSCRIBES("a"));
    become_stable();
    CHECK_TEXT(picked(all_old), "b0 b1");
    CHECK_TEXT(picked(mixed), "b1");
    rig_close();
    rig_open();
    join("consumer", SUBSCRIBES("b"));
    become_stable();
    CHECK_TEXT(picked(all_old), "a0 a1");
    rig_close();
    rig_open();
    join("consumer", SUBSCRIBES_TO_NONE);
    become_stable();
    CHECK_TEXT(picked(all_old), "a0 a1 b0 b1");
    rig_close();
}

TEST(nothing_goes_while_a_group_rebalances) {
    rig_open();
    join("consumer", SUBSCRIBES("a"));
    CHECK_TEXT(picked(all_old), "");
    CHECK_EQ(rig.describe.state, GROUP_STATE_COMPLETING_REBALANCE);
    CHECK(!expiry_is_possible(&rig.describe, rig.now + 100 * R, R));
    rig_close();
}

TEST(nothing_goes_of_members_whose_topics_are_not_known) {
    rig_open();
    join("connect", SUBSCRIBES("a"));
    become_stable();
    CHECK_TEXT(picked(all_old), "");
    rig_close();
    rig_open();
    join("consumer", NO_SUBSCRIPTION);
    become_stable();
    CHECK_TEXT(picked(all_old), "");
    rig_close();
}

TEST(of_a_consumer_group_go_those_of_topics_that_nobody_reads_and_when_it_is_empty_all) {
    rig_open();
    heartbeat(0, "b");
    CHECK_TEXT(picked(all_old), "a0 a1");
    rig.now += 30000;
    heartbeat(-1, "b");
    CHECK_TEXT(picked(all_old), "");
    rig.now += R - 1;
    CHECK_TEXT(picked(all_old), "");
    rig.now += 1;
    CHECK_TEXT(picked(all_old), "a0 a1 b0 b1");
    CHECK_EQ(rig.describe.type, GROUP_CONSUMER);
    rig_close();
}

TEST(topics_that_a_pattern_matches_are_read) {
    rig_open();
    heartbeat_with(0, NULL, STR("b.*"));
    CHECK_TEXT(picked(all_old), "a0 a1");
    rig_close();
    rig_open();
    heartbeat_with(0, "b", STR("not known yet"));
    CHECK_TEXT(picked(all_old), "");
    rig_close();
}

TEST(a_server_that_ends_lets_nothing_go) {
    rig_open();
    coordinator_shutdown(rig.c, rig.now);
    CHECK_TEXT(picked(all_old), "");
    rig_close();
}
