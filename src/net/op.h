/*
 * One asynchronous operation.
 *
 * The caller embeds a struct op in its own state, calls op_init, and hands it to a provider, which calls op_start.
 * The provider completes it exactly once with op_complete. Contract:
 *   - done runs on `loop`, and never inside the call that started the operation;
 *   - until done has run the caller keeps the op, and everything it points to, where it is;
 *   - op_cancel only asks: done still runs, with ST_CANCELED or, where that came too late, the real outcome.
 * Why never inside: a completion that may also run inline makes every caller handle two orders of
 * events, and lets a loop of short operations grow the stack (canonical/dqlite #697, #740).
 */
#ifndef NET_OP_H
#define NET_OP_H

#include "base/base.h"
#include "base/list.h"

struct loop;
struct op;
typedef void op_fn(struct op *op);

struct op {
    op_fn *done;
    op_fn *cancel; /* provider's, runs on loop; NULL: can't be cancelled */
    struct loop *loop;
    struct link link;   /* provider's queue, then the loop's ready queue */
    enum status status; /* valid inside done */
    bool pending;       /* from op_start until just before done; changed on loop only */
};

/* Ready for use: done will run on loop. No effect on other threads. */
void op_init(struct op *op, struct loop *loop, op_fn *done);

/* Provider: the operation has begun. On op->loop. cancel may be NULL. */
void op_start(struct op *op, op_fn *cancel);

/* Provider: the outcome is there; done will run on op->loop. Any thread. The op's link must be in no list. */
void op_complete(struct op *op, enum status st);

/* Ask for an early end. On op->loop; no effect when not pending or when it can't be cancelled. The provider's cancel may be
 * called after op_complete and before done: it must then do nothing. */
void op_cancel(struct op *op);
#endif
