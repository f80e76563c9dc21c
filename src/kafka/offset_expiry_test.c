/* The road of a check, on a loop with a coordinator and a backend that only counts: D11-67. The rules: expiry_rules_test.c. */
#include "kafka/offset_expiry.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/loop.h"
#include "testing/test.h"

#define PATIENCE_S   20
#define RETENTION_MS 1     /* so that the next check is never far */
#define GROUPS_COUNT 600   /* more than are looked at in one go */
#define OFFSETS_MANY 10000 /* more than are forgotten in one go */
#define LONG_MS      3600000

/* The backend: groups "g000" and so on; what one has is its number of offsets. */
static struct rig {
    struct backend backend;
    struct loop *loop;
    struct groups *groups;
    struct offset_expiry *expiry;
    _Atomic int32_t offsets[GROUPS_COUNT];
    int32_t groups_count;
    int64_t age_ms;          /* of all offsets */
    _Atomic int64_t aged_ms; /* what a call asked for */
    enum status list_status, read_status, forget_status;
    _Atomic int lists, reads, forgets;
    _Atomic int32_t parts_max; /* of one call */
    _Atomic int state;         /* of "g000", as looked at last */
    sem_t listed;              /* a check begins */
} rig;

static int32_t number_of(struct str group) {
    int32_t number = 0;
    for (int32_t i = 1; i < group.len; i++)
        number = number * 10 + (group.ptr[i] - '0');
    return number;
}

static void fake_groups(struct backend *b, struct backend_groups *g) {
    (void)b;
    atomic_fetch_add(&rig.lists, 1);
    g->status = rig.list_status;
    g->groups = arena_take_array(g->arena, struct str, GROUPS_COUNT);
    for (int32_t i = 0; !g->status && i < rig.groups_count; i++)
        if (rig.offsets[i] > 0)
            g->groups[g->groups_count++] = arena_printf(g->arena, "g%03d", (int)i);
    op_start(&g->op, NULL);
    op_complete(&g->op, ST_OK);
    sem_post(&rig.listed);
}

static void fake_committed(struct backend *b, struct backend_committed *c) {
    (void)b;
    CHECK(c->all);
    atomic_fetch_add(&rig.reads, 1);
    c->status = rig.read_status;
    c->parts_count = c->status ? 0 : rig.offsets[number_of(c->group)];
    c->parts = arena_take_array(c->arena, struct backend_committed_part, c->parts_count);
    for (int32_t i = 0; i < c->parts_count; i++)
        c->parts[i] = (struct backend_committed_part){
            .topic = STR("t"), .partition = i, .offset = 1, .age_ms = rig.age_ms};
    op_start(&c->op, NULL);
    op_complete(&c->op, ST_OK);
}

static void fake_commit(struct backend *b, struct backend_commit *c) {
    (void)b;
    atomic_fetch_add(&rig.forgets, 1);
    rig.aged_ms = c->aged_ms;
    if (c->parts_count > rig.parts_max)
        rig.parts_max = c->parts_count;
    for (int32_t i = 0; i < c->parts_count; i++) {
        CHECK_EQ(c->parts[i].offset, -1);
        c->parts[i].status = rig.forget_status;
    }
    c->gone_count = rig.forget_status ? 0 : c->parts_count;
    rig.offsets[number_of(c->group)] -= c->gone_count;
    op_start(&c->op, NULL);
    op_complete(&c->op, ST_OK);
}

static bool fake_has_offsets(struct backend *b, struct str group) {
    (void)b;
    return rig.offsets[number_of(group)] > 0;
}

static const struct backend_ops fake_ops = {.name = "fake",
                                            .groups = fake_groups,
                                            .committed = fake_committed,
                                            .commit = fake_commit,
                                            .group_has_offsets = fake_has_offsets};

static void fake_random(void *ctx, uint8_t out[16]) {
    (void)ctx;
    static uint8_t last;
    memset(out, ++last, 16);
}

static bool groups_have_offsets(void *ctx, struct str group) {
    return backend_group_has_offsets(ctx, group);
}

static void rig_open(int64_t retention_ms) {
    rig = (struct rig){.backend = {&fake_ops}, .age_ms = LONG_MS};
    sem_init(&rig.listed, 0, 0);
    CHECK_EQ(loop_new(0, &rig.loop), ST_OK);
    struct coordinator_settings groups;
    coordinator_settings_default(&groups);
    groups.initial_delay_ms = 0;
    groups.random = fake_random;
    groups.has_offsets = groups_have_offsets;
    groups.ctx = &rig.backend;
    CHECK_EQ(groups_new(&groups, rig.loop, &rig.groups), ST_OK);
    const struct offset_expiry_settings settings = {&rig.backend, rig.groups, rig.loop, retention_ms};
    CHECK_EQ(offset_expiry_new(&settings, &rig.expiry), ST_OK);
    CHECK_EQ(loop_start(rig.loop), ST_OK);
}

static void rig_close(void) {
    loop_stop(rig.loop);
    offset_expiry_free(rig.expiry);
    groups_free(rig.groups);
    loop_free(rig.loop);
    sem_destroy(&rig.listed);
}

static void wait_on(sem_t *s) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    int failed;
    do
        failed = sem_timedwait(s, &until);
    while (failed && errno == EINTR);
    CHECK_EQ(failed, 0);
}

/* So many checks, and nothing after them: the last one is cut short where it begins. */
static void checks(int count) {
    offset_expiry_start(rig.expiry);
    for (int i = 0; i <= count; i++)
        wait_on(&rig.listed);
    offset_expiry_stop(rig.expiry);
}

/* ---- something to do on the coordinator's loop ---- */

struct visit {
    struct groups_call hop;
    void (*body)(struct coordinator *c, int64_t now_ms);
    sem_t ended;
};

static void visit_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    container_of(hop, struct visit, hop)->body(c, now_ms);
    groups_call_end(hop);
}

static void visit_on_back(struct op *op) {
    sem_post(&container_of(op, struct visit, hop.op)->ended);
}

static void visit_start(struct op *op) {
    groups_call(rig.groups, &container_of(op, struct visit, hop.back)->hop);
}

static void on_loop(void (*body)(struct coordinator *c, int64_t now_ms)) {
    struct visit v = {.hop.begin = visit_begin, .body = body};
    sem_init(&v.ended, 0, 0);
    op_init(&v.hop.op, rig.loop, visit_on_back);
    op_init(&v.hop.back, rig.loop, visit_start); /* not in use before the call's end */
    loop_post(&v.hop.back);
    wait_on(&v.ended);
    sem_destroy(&v.ended);
}

static void ignore(struct group_call *call) {
    (void)call;
}

/* A member of "g000" that never synchronizes, so that the group stays as it is. */
static void join(struct coordinator *c, int64_t now_ms) {
    static struct group_join j;
    static const struct group_protocol protocol = {{"range", 5}, {NULL, 0}};
    j = (struct group_join){.call.done = ignore,
                            .group = STR("g000"),
                            .member = STR(""),
                            .instance = STR_NULL,
                            .client_id = STR("c"),
                            .host = STR("/h"),
                            .session_ms = 1800000,
                            .rebalance_ms = 1800000,
                            .protocol_type = STR("consumer"),
                            .protocols = &protocol,
                            .protocols_count = 1};
    coordinator_join(c, &j, now_ms);
    int64_t ignored = coordinator_tick(c, now_ms);
    (void)ignored;
}

static void look(struct coordinator *c, int64_t now_ms) {
    struct group_describe d = {.call.done = ignore, .group = STR("g000"), .type = GROUP_CLASSIC};
    coordinator_describe(c, &d, now_ms);
    rig.state = d.state;
}

static void refused_join(struct coordinator *c, int64_t now_ms) { /* leaves an Empty group behind: D11-22 */
    struct group_join j = {.call.done = ignore,
                           .group = STR("g000"),
                           .member = STR(""),
                           .instance = STR_NULL,
                           .client_id = STR("c"),
                           .host = STR("/h"),
                           .session_ms = 10000,
                           .protocol_type = STR("")};
    coordinator_join(c, &j, now_ms);
    look(c, now_ms);
}

/* ---- */

TEST(a_check_takes_all_groups_and_all_their_old_offsets) {
    rig_open(RETENTION_MS);
    rig.groups_count = GROUPS_COUNT;
    for (int32_t i = 0; i < GROUPS_COUNT; i++)
        rig.offsets[i] = i % 3;
    rig.offsets[7] = OFFSETS_MANY;
    checks(2); /* a group with members would still be there after the first */
    for (int32_t i = 0; i < GROUPS_COUNT; i++)
        CHECK_EQ(rig.offsets[i], 0);
    CHECK_EQ(rig.aged_ms, RETENTION_MS);
    CHECK(rig.parts_max > 1 && rig.parts_max < OFFSETS_MANY);
    rig_close();
}

TEST(offsets_that_are_not_old_are_only_looked_at) {
    rig_open(RETENTION_MS);
    rig.groups_count = 2;
    rig.offsets[0] = rig.offsets[1] = 1;
    rig.age_ms = 0;
    checks(2);
    CHECK(atomic_load(&rig.reads) >= 4);
    CHECK_EQ(atomic_load(&rig.forgets), 0);
    rig_close();
}

TEST(of_a_group_with_members_nothing_is_even_read) {
    rig_open(RETENTION_MS);
    rig.groups_count = 1;
    rig.offsets[0] = 5;
    on_loop(join);
    checks(3);
    CHECK_EQ(atomic_load(&rig.reads), 0);
    CHECK_EQ(rig.offsets[0], 5);
    groups_stop(rig.groups);
    rig_close();
}

TEST(a_group_goes_with_its_last_offset) {
    rig_open(RETENTION_MS);
    rig.groups_count = 1;
    rig.offsets[0] = 1;
    on_loop(refused_join);
    CHECK_EQ(rig.state, GROUP_STATE_EMPTY);
    checks(10); /* it is Empty since a moment ago only */
    CHECK_EQ(rig.offsets[0], 0);
    on_loop(look);
    CHECK_EQ(rig.state, GROUP_STATE_DEAD);
    rig_close();
}

TEST(what_the_backend_refuses_is_tried_again_with_the_next_check) {
    rig_open(RETENTION_MS);
    rig.groups_count = 1;
    rig.offsets[0] = 1;
    rig.list_status = ST_NO_MEMORY;
    checks(2);
    CHECK_EQ(rig.offsets[0], 1);
    rig_close();
    rig_open(RETENTION_MS);
    rig.groups_count = 1;
    rig.offsets[0] = 1;
    rig.read_status = ST_NO_MEMORY;
    checks(2);
    CHECK_EQ(rig.offsets[0], 1);
    CHECK_EQ(atomic_load(&rig.forgets), 0);
    rig_close();
    rig_open(RETENTION_MS);
    rig.groups_count = 1;
    rig.offsets[0] = OFFSETS_MANY;
    rig.forget_status = ST_IO;
    checks(2);
    CHECK_EQ(rig.offsets[0], OFFSETS_MANY);
    CHECK(atomic_load(&rig.forgets) <= atomic_load(&rig.lists));
    rig_close();
}

TEST(nothing_is_looked_at_before_a_retention_time_has_passed) {
    rig_open(LONG_MS);
    rig.groups_count = 1;
    rig.offsets[0] = 1;
    offset_expiry_start(rig.expiry);
    for (int i = 0; i < 20; i++)
        on_loop(look); /* the loop has had its turns since */
    CHECK_EQ(atomic_load(&rig.lists), 0);
    offset_expiry_stop(rig.expiry);
    rig_close();
}

TEST_OOM(an_expiry_is_made_or_not) {
    struct offset_expiry *e = NULL;
    const struct offset_expiry_settings settings = {.retention_ms = 1};
    enum status st = offset_expiry_new(&settings, &e);
    CHECK(st == ST_OK || (st == ST_NO_MEMORY && !e));
    offset_expiry_free(e);
}
