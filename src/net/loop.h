/*
 * A thread with a libuv loop, a ready queue for completed operations, and a mailbox that other threads post into.
 * One a core; connections and their requests live on one loop for life, so handlers need no locks.
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include "base/base.h"
#include "net/op.h"

struct timers;

/* A loop that does not run yet. index: 0.. ; shown in thread names. ST_NO_MEMORY, ST_IO. */
enum status loop_new(int index, struct loop **out) MUST_USE;

/* Start its thread. ST_IO: no thread could be made. */
enum status loop_start(struct loop *loop) MUST_USE;

/*
 * Ask the loop to end once its sockets are closed, and wait for its thread. What was posted before has run by then; what is posted
 * afterwards never runs. Timers don't hold it up. Not from a loop's own thread.
 */
void loop_stop(struct loop *loop);

void loop_free(struct loop *loop); /* after loop_stop, or never started; takes NULL */

/* Monotonic milliseconds, refreshed once each loop iteration. On the loop. */
int64_t loop_now_ms(const struct loop *loop);

/* The loop whose thread this is; NULL on any other thread. */
struct loop *loop_current(void);

/* The loop's timers (net/timer.h). On the loop. */
struct timers *loop_timers(struct loop *loop);

/*
 * Run op->done on op->loop soon. What op_complete does for its callers: same thread: straight into the ready queue;
 * another: through the mailbox, with one wake-up for all that are posted before the loop runs.
 * Also the way to run something on a loop: op_init with that loop, then loop_post. Any thread.
 */
void loop_post(struct op *op);

/*
 * Call hook->done at the end of the current loop iteration, once, after all that was ready has run: for work that
 * is cheaper for many than for one, as writing answers. No effect if it is already waiting. On the loop.
 */
void loop_at_end(struct loop *loop, struct op *hook);
#endif
