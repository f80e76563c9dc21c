/* What the coordinator knows of topics: D11-97. On a loop with a coordinator. */
#include "kafka/group_topics.h"

#include <errno.h>
#include <semaphore.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/loop.h"
#include "testing/test.h"

#define PATIENCE_S 20
#define START_MS   rig.start_ms /* groups_call has the real clock: times are from there on */

static struct rig {
    struct backend backend;
    struct loop *loop;
    struct groups *groups;
    struct group_topics *topics;
    int64_t start_ms;
    int32_t asked; /* names, by all look-ups */
    int32_t looks;
    bool unknown; /* the backend can't say */
    bool late_is_there;
} rig;

/* The backend knows "here" (id 2.., three partitions), and later "late" (id 7.., two). */
static void fake_topics(struct backend *b, struct backend_topics *call) {
    (void)b;
    rig.looks++;
    rig.asked += call->parts_count;
    for (int32_t i = 0; i < call->parts_count; i++) {
        struct backend_topics_part *part = &call->parts[i];
        bool here = str_equal(part->name, STR("here")), late = str_equal(part->name, STR("late"));
        part->topic = (struct backend_topic){
            .name = part->name, .id = {{here ? 2 : 7}}, .partitions_count = here ? 3 : 2};
        part->status = rig.unknown                           ? ST_UNAVAILABLE
                       : here || (late && rig.late_is_there) ? ST_OK
                                                             : ST_NOT_FOUND;
    }
    op_start(&call->op, NULL);
    op_complete(&call->op, ST_OK);
}

static const struct backend_ops fake_ops = {.name = "fake", .topics = fake_topics};

static void fake_random(void *ctx, uint8_t out[16]) {
    (void)ctx;
    static uint8_t last;
    memset(out, ++last, 16);
}

static bool rig_find(void *ctx, struct str name, struct group_topic *out) {
    (void)ctx;
    return group_topics_find(rig.topics, name, out);
}

static void rig_open(void) {
    rig = (struct rig){.backend = {&fake_ops}, .start_ms = clock_ms()};
    CHECK_EQ(loop_new(0, &rig.loop), ST_OK);
    CHECK_EQ(loop_start(rig.loop), ST_OK);
    const struct group_topics_settings settings = {&rig.backend, rig.loop, &rig.groups};
    CHECK_EQ(group_topics_new(&settings, &rig.topics), ST_OK);
    struct coordinator_settings groups;
    coordinator_settings_default(&groups);
    groups.random = fake_random;
    groups.topic_find = rig_find;
    CHECK_EQ(groups_new(&groups, rig.loop, &rig.groups), ST_OK);
}

static void rig_close(void) {
    loop_stop(rig.loop);
    groups_free(rig.groups);
    group_topics_free(rig.topics);
    loop_free(rig.loop);
}

/* ---- something to do on the coordinator's loop ---- */

struct visit {
    struct groups_call hop;
    void (*body)(struct coordinator *c);
    sem_t ended;
};

static void visit_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    (void)now_ms;
    container_of(hop, struct visit, hop)->body(c);
    groups_call_end(hop);
}

static void visit_on_back(struct op *op) {
    sem_post(&container_of(op, struct visit, hop.op)->ended);
}

static void visit_start(struct op *op) {
    struct visit *v = container_of(op, struct visit, hop.back);
    groups_call(rig.groups, &v->hop);
}

static void on_loop(void (*body)(struct coordinator *c)) {
    struct visit v = {.hop.begin = visit_begin, .body = body};
    sem_init(&v.ended, 0, 0);
    op_init(&v.hop.op, rig.loop, visit_on_back);
    op_init(&v.hop.back, rig.loop, visit_start); /* not in use before the call's end */
    loop_post(&v.hop.back);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    int failed;
    do
        failed = sem_timedwait(&v.ended, &until);
    while (failed && errno == EINTR);
    CHECK_EQ(failed, 0);
    sem_destroy(&v.ended);
}

static bool finds(const char *name, int32_t parts) {
    struct group_topic topic = {.parts_count = 0};
    bool found = group_topics_find(rig.topics, str_of(name), &topic);
    return parts == 0 ? !found : found && topic.parts_count == parts;
}

static void put(struct coordinator *c, const char *name, enum status status, int32_t parts) {
    struct backend_topics_part part = {
        .name = str_of(name), .status = status, .topic = {.id = {{5}}, .partitions_count = parts}};
    group_topics_put(rig.topics, c, &part, 1, START_MS);
}

/* The partitions that a member of group "g" which reads "late" has; it joins with the first call. -1: as before. */
static int32_t member_parts(struct coordinator *c, int32_t epoch);

static int32_t given;
static void member_done(struct group_call *call) {
    const struct group_consumer_heartbeat *h = container_of(call, struct group_consumer_heartbeat, call);
    struct group_parts parts = h->assignment;
    struct group_part part;
    CHECK_EQ(call->outcome, GROUP_OK);
    given = h->has_assignment ? 0 : -1;
    while (h->has_assignment && group_parts_next(&parts, &part))
        given++;
}

static int32_t member_parts(struct coordinator *c, int32_t epoch) {
    const struct str topic = STR("late");
    struct group_consumer_heartbeat h = {.call.done = member_done,
                                         .group = STR("g"),
                                         .member = STR("m"),
                                         .instance = STR_NULL,
                                         .rack = STR_NULL,
                                         .client_id = STR("c"),
                                         .host = STR("h"),
                                         .epoch = epoch,
                                         .rebalance_ms = epoch == 0 ? 1000 : -1,
                                         .topics = &topic,
                                         .topics_count = epoch == 0 ? 1 : -1,
                                         .regex = STR_NULL,
                                         .assignor = STR_NULL,
                                         .owned_count = epoch == 0 ? 0 : -1};
    group_topics_put(rig.topics, c, NULL, 0, START_MS);
    coordinator_consumer_heartbeat(c, &h, START_MS);
    return given;
}

/* ---- what is said stays ---- */

static void body_put(struct coordinator *c) {
    CHECK(finds("t", 0));
    put(c, "t", ST_OK, 4);
    CHECK(finds("t", 4));
    put(c, "t", ST_OK, 5);
    CHECK(finds("t", 5));
    put(c, "t", ST_UNAVAILABLE, 0);
    put(c, "t", ST_TIMED_OUT, 0);
    CHECK(finds("t", 5));
    put(c, "t", ST_NOT_FOUND, 0);
    CHECK(finds("t", 0));
}

TEST(what_a_backend_can_not_say_changes_nothing) { /* D11-97 */
    rig_open();
    on_loop(body_put);
    rig_close();
}

static void body_no_id(struct coordinator *c) {
    struct backend_topics_part part = {.name = STR("t"), .topic = {.partitions_count = 3}};
    group_topics_put(rig.topics, c, &part, 1, START_MS);
    CHECK(finds("t", 0));
    part.name = STR("a b");
    group_topics_put(rig.topics, c, &part, 1, START_MS);
    CHECK(finds("a b", 0));
}

TEST(a_topic_without_id_or_with_a_bad_name_is_none) {
    rig_open();
    on_loop(body_no_id);
    rig_close();
}

/* ---- looking up ---- */

static int64_t tend_ms;

static void body_find_here(struct coordinator *c) {
    (void)c;
    struct group_topic topic;
    bool ignored = group_topics_find(rig.topics, STR("here"), &topic);
    (void)ignored;
}

static void body_tend(struct coordinator *c) {
    (void)c;
    group_topics_tend(rig.topics, tend_ms);
}

static void tend(int64_t now_ms) {
    tend_ms = now_ms;
    on_loop(body_tend);
    for (int i = 0; i < 4; i++) /* the look-up, and what it puts, are behind these */
        on_loop(body_find_here);
}

static void body_here_is_known(struct coordinator *c) {
    (void)c;
    CHECK(finds("here", 3));
}

TEST(a_name_that_a_group_asked_for_is_looked_up_and_again_when_it_is_old) { /* D11-97 */
    rig_open();
    tend(START_MS);
    CHECK_EQ(rig.looks, 0);
    tend(START_MS + GROUP_TOPICS_TEND_MS); /* the find above made it wanted */
    CHECK_EQ(rig.looks, 1);
    CHECK_EQ(rig.asked, 1);
    on_loop(body_here_is_known);
    tend(START_MS + 3 * GROUP_TOPICS_TEND_MS);
    CHECK_EQ(rig.looks, 1);
    tend(START_MS + GROUP_TOPICS_KNOWN_MS + PATIENCE_S * 1000);
    CHECK_EQ(rig.looks, 2);
    CHECK_EQ(rig.asked, 2);
    rig_close();
}

static void body_missing(struct coordinator *c) {
    CHECK_EQ(member_parts(c, 0), 0);
    group_topics_tend(rig.topics, START_MS);
}

static void body_still_missing(struct coordinator *c) {
    CHECK_EQ(member_parts(c, 1), -1);
    rig.late_is_there = true;
    group_topics_stir(rig.topics);
    group_topics_tend(rig.topics, START_MS + GROUP_TOPICS_TEND_MS - 1); /* too soon */
}

static void body_look_again(struct coordinator *c) {
    CHECK_EQ(member_parts(c, 1), -1);
    group_topics_tend(rig.topics, START_MS + GROUP_TOPICS_TEND_MS);
}

static int32_t seen;
static void body_member(struct coordinator *c) {
    seen = member_parts(c, 1);
}

TEST(a_topic_that_is_made_reaches_the_members_that_wait_for_it) { /* D11-97 */
    rig_open();
    on_loop(body_missing);
    on_loop(body_still_missing);
    CHECK_EQ(rig.looks, 1);
    on_loop(body_look_again);
    seen = -1;
    for (int i = 0; i < 4 && seen < 0; i++)
        on_loop(body_member);
    CHECK_EQ(seen, 2);
    CHECK_EQ(rig.looks, 2);
    rig_close();
}

static void body_unwanted(struct coordinator *c) {
    put(c, "never-asked-for", ST_NOT_FOUND, 0);
    put(c, "t", ST_OK, 1);
    group_topics_tend(rig.topics, START_MS + GROUP_TOPICS_UNWANTED_MS + 1);
}

TEST(a_name_that_no_group_wants_is_forgotten) { /* D11-97 */
    rig_open();
    on_loop(body_unwanted);
    CHECK_EQ(rig.looks, 0);
    rig_close();
}

static void body_stopped(struct coordinator *c) {
    group_topics_put(rig.topics, c, NULL, 0, START_MS);
    CHECK(finds("here", 0));
    group_topics_stop(rig.topics);
    group_topics_tend(rig.topics, START_MS);
}

TEST(a_server_that_stops_looks_nothing_up) {
    rig_open();
    on_loop(body_stopped);
    CHECK_EQ(rig.looks, 0);
    rig_close();
}

static void body_fill(struct coordinator *c) {
    char name[32];
    put(c, "kept", ST_OK, 9);
    for (int i = 0; i < GROUP_TOPICS_MAX + 10; i++) {
        snprintf(name, sizeof name, "missing-%d", i);
        CHECK(finds(name, 0));
    }
    CHECK(finds("kept", 9));
    group_topics_tend(rig.topics, START_MS);
}

TEST(names_without_topic_make_room_and_are_looked_up_in_rounds) { /* D11-97 */
    rig_open();
    on_loop(body_fill);
    CHECK_EQ(rig.looks, 1);
    CHECK(rig.asked <= GROUP_TOPICS_LOOK_MAX);
    rig_close();
}

TEST_OOM(a_table_without_memory_says_so) {
    const struct group_topics_settings settings = {&rig.backend, NULL, &rig.groups};
    struct group_topics *t;
    struct group_topic topic;
    if (group_topics_new(&settings, &t) != ST_OK)
        return;
    CHECK(!group_topics_find(t, STR("a"), &topic));
    CHECK(!group_topics_find(t, STR("b"), &topic));
    group_topics_free(t);
}

TEST(nothing_is_stirred_or_freed_where_there_is_no_table) {
    group_topics_stir(NULL);
    group_topics_free(NULL);
}
