#include "kafka/groups.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/loop.h"
#include "net/timer.h"

struct groups {
    struct coordinator *coordinator; /* owned; on home only */
    struct loop *home;
    struct timer timer;
    struct op stop;
};

enum status groups_new(const struct coordinator_settings *settings, struct loop *home, struct groups **out) {
    struct groups *g = mem_take_zeroed(1, sizeof *g);
    if (!g)
        return ST_NO_MEMORY;
    g->home = home;
    enum status st = coordinator_new(settings, &g->coordinator);
    if (st) {
        mem_free(g);
        return st;
    }
    *out = g;
    return ST_OK;
}

void groups_free(struct groups *g) {
    if (!g)
        return;
    coordinator_free(g->coordinator);
    mem_free(g);
}

/* ---- time ---- */

static void groups_on_time(struct timer *t);

/* A timer that can't be set is tried again with the next call. */
static void groups_set_timer(struct groups *g) {
    int64_t due_ms = coordinator_due_ms(g->coordinator);
    if (due_ms == INT64_MAX) {
        timer_clear(loop_timers(g->home), &g->timer);
    } else {
        enum status ignored = timer_set(loop_timers(g->home), &g->timer, groups_on_time, due_ms);
        (void)ignored;
    }
}

static void groups_on_time(struct timer *t) {
    struct groups *g = container_of(t, struct groups, timer);
    int64_t ignored = coordinator_tick(g->coordinator, clock_ms());
    (void)ignored;
    groups_set_timer(g);
}

static void groups_stop_here(struct op *op) {
    struct groups *g = container_of(op, struct groups, stop);
    coordinator_shutdown(g->coordinator, clock_ms());
    groups_set_timer(g);
}

void groups_stop(struct groups *g) {
    op_init(&g->stop, g->home, groups_stop_here);
    loop_post(&g->stop);
}

/* ---- there ---- */

static void call_on_back(struct op *op);
static void call_on_cancel_back(struct op *op);

static void call_begin(struct op *op) {
    struct groups_call *call = container_of(op, struct groups_call, there);
    struct groups *g = call->groups;
    call->begin(call, g->coordinator, clock_ms());
    groups_set_timer(g);
}

void groups_call_end(struct groups_call *call) {
    call->over = true;
    op_init(&call->back, call->op.loop, call_on_back);
    loop_post(&call->back);
}

static void call_cancel_here(struct op *op) {
    struct groups_call *call = container_of(op, struct groups_call, cancel);
    struct groups *g = call->groups;
    if (!call->over)
        coordinator_cancel(g->coordinator, call->waits, clock_ms());
    groups_set_timer(g);
    op_init(&call->cancel, call->op.loop, call_on_cancel_back);
    loop_post(&call->cancel);
}

/* ---- and back ---- */

/* The call's memory may go with op.done: nothing of it may be under way then. */
static void call_complete_if_done(struct groups_call *call) {
    if (call->is_back && !call->cancel_is_out)
        op_complete(&call->op, ST_OK);
}

static void call_on_back(struct op *op) {
    struct groups_call *call = container_of(op, struct groups_call, back);
    call->is_back = true;
    call_complete_if_done(call);
}

static void call_on_cancel_back(struct op *op) {
    struct groups_call *call = container_of(op, struct groups_call, cancel);
    call->cancel_is_out = false;
    call_complete_if_done(call);
}

static void call_on_cancel(struct op *op) {
    struct groups_call *call = container_of(op, struct groups_call, op);
    if (call->is_back || call->cancel_is_out || !call->waits)
        return;
    call->cancel_is_out = true;
    op_init(&call->cancel, call->groups->home, call_cancel_here);
    loop_post(&call->cancel);
}

void groups_call(struct groups *g, struct groups_call *call) {
    call->groups = g;
    op_start(&call->op, call_on_cancel);
    op_init(&call->there, g->home, call_begin);
    loop_post(&call->there);
}
