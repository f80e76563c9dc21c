#include "kafka/groups.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/loop.h"
#include "net/timer.h"

struct groups {
    struct coordinator *coordinator; /* owned */
    pthread_mutex_t
        lock; /* guards the coordinator. Home takes it; others only try, so no loop waits for another */
    atomic_int coming; /* calls that were posted to home and have not begun */
    struct loop *home;
    struct timer timer;
    struct op stop, retime;
    bool retimes; /* under the lock: retime is on its way */
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
    pthread_mutex_init(&g->lock, NULL);
    *out = g;
    return ST_OK;
}

void groups_free(struct groups *g) {
    if (!g)
        return;
    coordinator_free(g->coordinator);
    pthread_mutex_destroy(&g->lock);
    mem_free(g);
}

/* ---- into the coordinator and out of it, on home ---- */

static void groups_on_time(struct timer *t);

static struct coordinator *groups_enter(struct groups *g) {
    pthread_mutex_lock(&g->lock);
    return g->coordinator;
}

/* A timer that can't be set is tried again with the next call. */
static void groups_leave(struct groups *g) {
    int64_t due_ms = coordinator_due_ms(g->coordinator);
    pthread_mutex_unlock(&g->lock);
    if (due_ms == INT64_MAX) {
        timer_clear(loop_timers(g->home), &g->timer);
    } else {
        enum status ignored = timer_set(loop_timers(g->home), &g->timer, groups_on_time, due_ms);
        (void)ignored;
    }
}

static void groups_on_time(struct timer *t) {
    struct groups *g = container_of(t, struct groups, timer);
    int64_t ignored = coordinator_tick(groups_enter(g), clock_ms());
    (void)ignored;
    groups_leave(g);
}

static void groups_on_retime(struct op *op) {
    struct groups *g = container_of(op, struct groups, retime);
    struct coordinator *ignored = groups_enter(g);
    (void)ignored;
    g->retimes = false;
    groups_leave(g);
}

static void groups_stop_here(struct op *op) {
    struct groups *g = container_of(op, struct groups, stop);
    coordinator_shutdown(groups_enter(g), clock_ms());
    groups_leave(g);
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
    atomic_fetch_sub(&g->coming, 1);
    call->begin(call, groups_enter(g), clock_ms());
    groups_leave(g);
}

void groups_call_end(struct groups_call *call) {
    call->over = true;
    op_init(&call->back, call->op.loop, call_on_back);
    loop_post(&call->back);
}

static void call_cancel_here(struct op *op) {
    struct groups_call *call = container_of(op, struct groups_call, cancel);
    struct groups *g = call->groups;
    struct coordinator *c = groups_enter(g);
    if (!call->over)
        coordinator_cancel(c, call->waits, clock_ms());
    groups_leave(g);
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

/* The timer is home's; what is due can get nearer from here, as the session of a member whose join waits. */
static void groups_retime(struct groups *g) {
    if (g->retimes)
        return;
    g->retimes = true;
    op_init(&g->retime, g->home, groups_on_retime);
    loop_post(&g->retime);
}

/*
 * A call that may be made from any loop, at once: that saves waking home's thread and then this one. Not while something is due, which would end
 * calls of others here; nor before a call that was made earlier, perhaps on the same connection.
 */
static bool call_from_here(struct groups_call *call) {
    struct groups *g = call->groups;
    if (!call->anywhere || atomic_load(&g->coming) > 0 || pthread_mutex_trylock(&g->lock))
        return false;
    int64_t now_ms = clock_ms(), due_ms = coordinator_due_ms(g->coordinator);
    bool nothing_due = due_ms > now_ms;
    if (nothing_due)
        call->begin(call, g->coordinator, now_ms);
    if (coordinator_due_ms(g->coordinator) < due_ms)
        groups_retime(g);
    pthread_mutex_unlock(&g->lock);
    return nothing_due;
}

void groups_call(struct groups *g, struct groups_call *call) {
    call->groups = g;
    op_start(&call->op, call_on_cancel);
    if (call_from_here(call))
        return;
    atomic_fetch_add(&g->coming, 1);
    op_init(&call->there, g->home, call_begin);
    loop_post(&call->there);
}
