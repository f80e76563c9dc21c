/* Timers: a heap of ours behind one uv_timer_t a loop, because removal must be immediate (uv_close is not). */
#ifndef NET_TIMER_H
#define NET_TIMER_H

#include "base/base.h"

struct timer;
struct timers;
typedef void timer_fn(struct timer *t);

/* Embedded by its user; zeroed means not set. */
struct timer {
    timer_fn *fire;
    int64_t due_ms; /* monotonic */
    int32_t place;  /* in the heap, 1..; 0: not set */
};

/* Call t->fire once at due_ms or soon after, on the loop. A timer that is set already moves. ST_NO_MEMORY. On the loop. */
enum status timer_set(struct timers *timers, struct timer *t, timer_fn *fire, int64_t due_ms) MUST_USE;

/* Forget it; no effect if it isn't set. Never fires afterwards. On the loop. */
void timer_clear(struct timers *timers, struct timer *t);
#endif
