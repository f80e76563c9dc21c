/*
 * So many bytes at once, for the whole process. Memory is reserved before a frame is read and released when its
 * answer has left. Waiters are served in order; a request larger than all there is passes when nothing else is taken.
 */
#ifndef NET_BUDGET_H
#define NET_BUDGET_H

#include "base/base.h"
#include "net/op.h"

struct budget;

struct budget_wait {
    struct op
        op; /* done: the bytes are reserved (ST_OK), or the wait was given up (ST_CANCELED by op_cancel) */
    int64_t bytes;         /* set by budget_take */
    struct budget *budget; /* the budget's own */
    bool waiting;          /* the budget's own, under its lock: op.link is in its queue */
};

enum status budget_new(int64_t bytes_max, struct budget **out) MUST_USE;
void budget_free(struct budget *b); /* takes NULL */

/* Reserve now: true and it is yours, or false and nothing is. False also while others wait. Any thread. */
bool budget_try(struct budget *b, int64_t bytes) MUST_USE;

/* Reserve as soon as there is room. wait->op was op_init'ed by the caller; can be cancelled. On wait->op.loop. */
void budget_take(struct budget *b, struct budget_wait *wait, int64_t bytes);

/* Reserve at once, whatever is free: for what must go out (KIP-74's first batch). Any thread. */
void budget_force(struct budget *b, int64_t bytes);

/* Give bytes back. Any thread. */
void budget_give(struct budget *b, int64_t bytes);

int64_t budget_free_bytes(struct budget *b); /* what is free now; negative after budget_force. Any thread. */
#endif
