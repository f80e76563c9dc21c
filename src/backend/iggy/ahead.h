/*
 * Reading ahead. A client that reads a partition page by page without a pause has the next page asked for while this one becomes records
 * and travels to it, so that server, gateway and client work at the same time. What nobody takes within 100 ms, as long as a view is good
 * (D2-50), goes; a loop keeps a few, and none when memory is short. All on the loop.
 */
#ifndef BACKEND_IGGY_AHEAD_H
#define BACKEND_IGGY_AHEAD_H

#include "backend/iggy/reads.h"

#define AHEAD_MS VIEW_FRESH_MS

enum ahead_state {
    AHEAD_NONE,   /* ask for the part */
    AHEAD_HERE,   /* ahead_take it */
    AHEAD_COMING, /* done will run, then ahead_take */
};

/* Whether what p wants has been asked for. p->ahead is set to it. */
enum ahead_state ahead_begin(struct read_part *p, op_fn *done);

/* p->ahead as the answer for p, and what follows is asked for. False: it has failed, so ask for the part. Either way it is gone. */
bool ahead_take(struct read_part *p);

/* p has an answer to a request for so many messages: remember what follows it; or ask for that, if p followed what was remembered. */
void ahead_go_on(struct read_part *p, uint32_t count);

enum status aheads_new(struct bridge_loop *l, struct aheads **out) MUST_USE;
void aheads_stop(struct aheads *as); /* before the clients are closed, which ends what is under way */
void aheads_free(struct aheads *as); /* takes NULL */
#endif
