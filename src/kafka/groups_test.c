/* The road to the coordinator and back, between two loops that run: what a handler may rely on when its client leaves or the server ends. */
#include "kafka/groups.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "base/mem.h"
#include "net/loop.h"
#include "testing/test.h"

#define CALLS      3
#define PATIENCE_S 20

/* A join on its way. In its own block of memory, which goes with op.done as a request's would. */
struct guest {
    struct groups_call hop;
    struct group_join join;
    struct group_protocol protocol;
    struct rig *rig;
    bool beats; /* not a join: a heartbeat of nobody */
    struct group_heartbeat heartbeat;
};

struct rig {
    struct loop *home, *here; /* of the coordinator, of the requests */
    struct groups *groups;
    enum group_outcome outcomes[CALLS + 1];
    _Atomic int begun, ended; /* calls */
    _Atomic bool last_begun_here;
    sem_t home_may_go_on;
    sem_t changed;
};

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

/* ---- something to do on a loop, waited for ---- */

struct visit {
    struct op op;
    struct rig *rig;
    struct guest *guest;
    sem_t ended;
};

static void on_loop(struct rig *rig, struct loop *loop, struct guest *guest, op_fn *fn) {
    struct visit v = {.rig = rig, .guest = guest};
    sem_init(&v.ended, 0, 0);
    op_init(&v.op, loop, fn);
    loop_post(&v.op);
    wait_on(&v.ended);
    sem_destroy(&v.ended);
}

static void visit_end(struct op *op) {
    sem_post(&container_of(op, struct visit, op)->ended);
}

/* ---- a call ---- */

static void join_done(struct group_call *call) {
    groups_call_end(&container_of(call, struct guest, join.call)->hop);
}

static void heartbeat_done(struct group_call *call) {
    groups_call_end(&container_of(call, struct guest, heartbeat.call)->hop);
}

static void guest_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    struct guest *g = container_of(hop, struct guest, hop);
    struct rig *rig = g->rig;
    CHECK(loop_current() == rig->home || hop->anywhere);
    rig->last_begun_here = loop_current() == rig->here;
    atomic_fetch_add(&rig->begun, 1);
    if (g->beats)
        coordinator_heartbeat(c, &g->heartbeat, now_ms);
    else
        coordinator_join(c, &g->join, now_ms); /* g may be gone afterwards */
}

static void guest_on_back(struct op *op) {
    struct guest *g = container_of(op, struct guest, hop.op);
    struct rig *rig = g->rig;
    CHECK(loop_current() == rig->here);
    CHECK_EQ(op->status, ST_OK);
    rig->outcomes[atomic_fetch_add(&rig->ended, 1)] =
        g->beats ? g->heartbeat.call.outcome : g->join.call.outcome;
    mem_free(g); /* nothing may touch it afterwards */
    sem_post(&rig->changed);
}

static struct guest *guest_new(struct rig *rig) {
    struct guest *g = mem_take_zeroed(1, sizeof *g);
    CHECK(g != NULL);
    g->rig = rig;
    g->protocol = (struct group_protocol){STR("range"), {NULL, 0}};
    g->join = (struct group_join){.call.done = join_done,
                                  .group = STR("g"),
                                  .member = STR(""),
                                  .instance = STR_NULL,
                                  .client_id = STR("c"),
                                  .host = STR("/h"),
                                  .session_ms = 10000,
                                  .rebalance_ms = 60000,
                                  .protocol_type = STR("consumer"),
                                  .protocols = &g->protocol,
                                  .protocols_count = 1};
    g->heartbeat = (struct group_heartbeat){
        .call.done = heartbeat_done, .group = STR("g"), .member = STR("who"), .instance = STR_NULL};
    g->hop.begin = guest_begin;
    g->hop.waits = &g->join.call;
    return g;
}

static void guest_start_here(struct op *op) {
    struct visit *v = container_of(op, struct visit, op);
    struct guest *g = v->guest;
    op_init(&g->hop.op, v->rig->here, guest_on_back);
    groups_call(v->rig->groups, &g->hop);
    visit_end(op);
}

static void guest_cancel_here(struct op *op) {
    op_cancel(&container_of(op, struct visit, op)->guest->hop.op);
    visit_end(op);
}

/* Started and asked to end before it can even have begun. */
static void guest_start_and_cancel_here(struct op *op) {
    struct visit *v = container_of(op, struct visit, op);
    op_init(&v->guest->hop.op, v->rig->here, guest_on_back);
    groups_call(v->rig->groups, &v->guest->hop);
    op_cancel(&v->guest->hop.op);
    op_cancel(&v->guest->hop.op);
    visit_end(op);
}

static void guest_start(struct guest *g) {
    struct rig *rig = g->rig; /* g goes when its call ends */
    on_loop(rig, rig->here, g, guest_start_here);
    on_loop(rig, rig->home, NULL, visit_end); /* it has begun */
}

static void guest_cancel(struct guest *g) {
    on_loop(g->rig, g->rig->here, g, guest_cancel_here);
}

/* ---- the rig ---- */

static void rig_random(void *ctx, uint8_t out[16]) {
    uint8_t *next = ctx;
    memset(out, 0, 16);
    out[0] = ++*next;
}

static uint8_t next_id;

/* initial_delay_ms: how long the first join of a group waits. */
static void rig_open(struct rig *rig, int32_t initial_delay_ms) {
    *rig = (struct rig){0};
    sem_init(&rig->changed, 0, 0);
    CHECK_EQ(loop_new(0, &rig->home), ST_OK);
    CHECK_EQ(loop_new(1, &rig->here), ST_OK);
    struct coordinator_settings settings;
    coordinator_settings_default(&settings);
    settings.initial_delay_ms = initial_delay_ms;
    settings.random = rig_random;
    settings.ctx = &next_id;
    CHECK_EQ(groups_new(&settings, rig->home, &rig->groups), ST_OK);
    CHECK_EQ(loop_start(rig->home), ST_OK);
    CHECK_EQ(loop_start(rig->here), ST_OK);
}

static void rig_close(struct rig *rig) {
    loop_stop(rig->here);
    loop_stop(rig->home);
    groups_free(rig->groups);
    loop_free(rig->here);
    loop_free(rig->home);
    sem_destroy(&rig->changed);
}

#define LONG_MS 60000 /* longer than a test waits for anything */

/* ---- */

TEST(a_call_runs_on_the_coordinators_loop_and_ends_on_its_own) {
    struct rig rig;
    rig_open(&rig, 0);
    struct guest *g = guest_new(&rig);
    g->beats = true;
    g->hop.waits = NULL;
    guest_start(g);
    wait_on(&rig.changed);
    CHECK_EQ(rig.outcomes[0], GROUP_UNKNOWN_MEMBER);
    rig_close(&rig);
}

TEST(the_timer_ends_what_waits_without_another_call) { /* D11-10 */
    struct rig rig;
    rig_open(&rig, 1);
    guest_start(guest_new(&rig));
    wait_on(&rig.changed);
    CHECK_EQ(rig.outcomes[0], GROUP_OK);
    rig_close(&rig);
}

TEST(a_call_that_waits_is_given_up) { /* D11-54 */
    struct rig rig;
    rig_open(&rig, LONG_MS);
    struct guest *g = guest_new(&rig);
    guest_start(g);
    CHECK_EQ(atomic_load(&rig.ended), 0);
    guest_cancel(g);
    wait_on(&rig.changed);
    CHECK_EQ(rig.outcomes[0], GROUP_CANCELED);
    CHECK_EQ(atomic_load(&rig.ended), 1);
    rig_close(&rig);
}

TEST(a_call_that_is_given_up_at_once_has_begun_nevertheless) {
    struct rig rig;
    rig_open(&rig, LONG_MS);
    struct guest *g = guest_new(&rig);
    on_loop(&rig, rig.here, g, guest_start_and_cancel_here);
    wait_on(&rig.changed);
    CHECK_EQ(atomic_load(&rig.begun), 1);
    CHECK_EQ(rig.outcomes[0], GROUP_CANCELED);
    rig_close(&rig);
}

/* The client leaves while the call, which waits for nothing, is on its way: its end and the giving up meet. */
TEST(giving_up_comes_too_late_and_the_call_ends_once) {
    struct rig rig;
    rig_open(&rig, 0);
    for (int i = 0; i < CALLS; i++) {
        struct guest *g = guest_new(&rig);
        g->beats = true;
        on_loop(&rig, rig.here, g, guest_start_and_cancel_here);
        wait_on(&rig.changed);
        CHECK_EQ(rig.outcomes[i], GROUP_UNKNOWN_MEMBER);
        CHECK_EQ(atomic_load(&rig.ended), i + 1);
    }
    rig_close(&rig);
}

static struct guest *guest_anywhere(struct rig *rig) {
    struct guest *g = guest_new(rig);
    g->beats = g->hop.anywhere = true;
    g->hop.waits = NULL;
    return g;
}

TEST(a_call_that_may_be_made_anywhere_stays_on_its_own_loop) {
    struct rig rig;
    rig_open(&rig, LONG_MS);
    guest_start(guest_anywhere(&rig));
    wait_on(&rig.changed);
    CHECK_EQ(rig.outcomes[0], GROUP_UNKNOWN_MEMBER);
    CHECK(atomic_load(&rig.last_begun_here));
    rig_close(&rig);
}

static void home_waits(struct op *op) {
    wait_on(&container_of(op, struct visit, op)->rig->home_may_go_on);
}

TEST(a_call_that_may_be_made_anywhere_does_not_overtake) {
    struct rig rig;
    struct visit v = {.rig = &rig};
    rig_open(&rig, LONG_MS);
    sem_init(&rig.home_may_go_on, 0, 0);
    op_init(&v.op, rig.home, home_waits);
    loop_post(&v.op);
    on_loop(&rig, rig.here, guest_new(&rig), guest_start_here); /* a join that waits, once it gets there */
    on_loop(&rig, rig.here, guest_anywhere(&rig), guest_start_here);
    CHECK_EQ(atomic_load(&rig.begun), 0);
    sem_post(&rig.home_may_go_on);
    wait_on(&rig.changed);
    CHECK_EQ(rig.outcomes[0], GROUP_UNKNOWN_MEMBER);
    CHECK_EQ(atomic_load(&rig.begun), 2);
    CHECK(!atomic_load(&rig.last_begun_here));
    groups_stop(rig.groups);
    wait_on(&rig.changed);
    sem_destroy(&rig.home_may_go_on);
    rig_close(&rig);
}

TEST(what_cannot_wait_is_not_given_up) {
    struct rig rig;
    rig_open(&rig, 0);
    struct guest *g = guest_new(&rig);
    g->beats = true;
    g->hop.waits = NULL;
    on_loop(&rig, rig.here, g, guest_start_and_cancel_here);
    wait_on(&rig.changed);
    CHECK_EQ(rig.outcomes[0], GROUP_UNKNOWN_MEMBER);
    rig_close(&rig);
}

TEST(a_stop_ends_all_that_waits_and_all_that_comes_later) { /* D11-28 */
    struct rig rig;
    rig_open(&rig, LONG_MS);
    guest_start(guest_new(&rig));
    guest_start(guest_new(&rig));
    CHECK_EQ(atomic_load(&rig.ended), 0);
    groups_stop(rig.groups);
    wait_on(&rig.changed);
    wait_on(&rig.changed);
    guest_start(guest_new(&rig));
    wait_on(&rig.changed);
    for (int i = 0; i < CALLS; i++)
        CHECK_EQ(rig.outcomes[i], GROUP_NOT_COORDINATOR);
    rig_close(&rig);
}

TEST(a_stop_and_a_client_that_leaves_meet) {
    struct rig rig;
    rig_open(&rig, LONG_MS);
    groups_stop(rig.groups);
    for (int i = 0; i < CALLS; i++) {
        on_loop(&rig, rig.here, guest_new(&rig), guest_start_and_cancel_here);
        wait_on(&rig.changed);
        CHECK_EQ(rig.outcomes[i], GROUP_NOT_COORDINATOR);
    }
    CHECK_EQ(atomic_load(&rig.ended), CALLS);
    rig_close(&rig);
}

TEST(settings_that_cannot_be_are_refused) {
    struct loop *loop;
    struct groups *groups = NULL;
    struct coordinator_settings settings;
    coordinator_settings_default(&settings);
    CHECK_EQ(loop_new(0, &loop), ST_OK);
    CHECK_EQ(groups_new(&settings, loop, &groups), ST_INVALID); /* no random */
    CHECK(groups == NULL);
    groups_free(NULL);
    loop_free(loop);
}

TEST_OOM(groups_that_get_no_memory_leave_nothing_behind) {
    struct coordinator_settings settings;
    struct groups *groups;
    coordinator_settings_default(&settings);
    settings.random = rig_random;
    settings.ctx = &next_id;
    if (groups_new(&settings, NULL, &groups) == ST_OK)
        groups_free(groups);
}
