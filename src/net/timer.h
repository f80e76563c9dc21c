/* Timers: a heap of ours behind one uv_timer_t a loop, because removal must be immediate (uv_close is not). */
#ifndef NET_TIMER_H
#define NET_TIMER_H

#include "base/base.h"

struct timer;
struct timers;
struct uv_loop_s;
typedef void timer_fn(struct timer *t);

/* Embedded by its user; zeroed means not set. */
struct timer {
    timer_fn *fire;
    int64_t due_ms; /* monotonic */
    int32_t place;  /* in the heap, 1..; 0: not set */
};

/* Call t->fire once at due_ms or soon after, on the loop. A timer that is set already moves. ST_NO_MEMORY: only for
 * one that wasn't set. On the loop. */
enum status timer_set(struct timers *timers, struct timer *t, timer_fn *fire, int64_t due_ms) MUST_USE;

/* Forget it; no effect if it isn't set. Never fires afterwards. On the loop. */
void timer_clear(struct timers *timers, struct timer *t);

/* For net/loop.c: a heap on a uv loop, which it doesn't keep alive. Closed while that loop can still run, freed when it has. */
enum status timers_new(struct uv_loop_s *uv, struct timers **out) MUST_USE;
void timers_close(struct timers *timers); /* takes NULL */
void timers_free(struct timers *timers);  /* takes NULL */

/* Fire what is due at now_ms, earliest first, but no more than were set at the beginning: one that always sets itself again
 * doesn't hold the loop. */
void timers_run(struct timers *timers, int64_t now_ms);
#endif
