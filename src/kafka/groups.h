/*
 * The group coordinator (group/coordinator.h) as handlers use it: it lives on one loop, and calls hop there and back.
 *
 *   [request's loop] groups_call -> [home] call->begin: coordinator_x -> .. its done: the handler copies what it needs, groups_call_end
 *                                                                                              -> [request's loop] call->op.done
 * A call that says `anywhere` stays on its own loop where it can; op.done never runs inside groups_call all the same.
 */
#ifndef KAFKA_GROUPS_H
#define KAFKA_GROUPS_H

#include "group/coordinator.h"
#include "net/op.h"

struct groups;

/* home: where the coordinator lives, with its timer; borrowed. Statuses as coordinator_new. */
enum status groups_new(const struct coordinator_settings *settings, struct loop *home,
                       struct groups **out) MUST_USE;
void groups_free(struct groups *g); /* after the loops have stopped; takes NULL */

/* Calls that wait end (GROUP_NOT_COORDINATOR), later ones too. Any thread. */
void groups_stop(struct groups *g);

/* Embedded by a handler's state; zeroed, then op is op_init'ed and begin set. */
struct groups_call {
    struct op op; /* on the request's loop; op_cancel gives up a call that waits */
    /* On the coordinator's loop: hands `call` (below) or several calls of its own to the coordinator; the last one's done calls groups_call_end. The
     * request's arena may be used there: its loop doesn't touch it meanwhile. */
    void (*begin)(struct groups_call *call, struct coordinator *c, int64_t now_ms);
    struct group_call *waits; /* what may wait: a join's or sync's call; NULL: nothing */
    bool
        anywhere; /* begin makes one call that never waits, looks at no topics and lets nothing be due earlier: a heartbeat of a classic member */

    struct groups *groups; /* the rest is groups.c's */
    bool over; /* home: it has ended; away from what the other loop has, which is read in one word */
    struct op there, back, cancel;
    bool is_back;       /* request's loop, as the next one */
    bool cancel_is_out; /* until cancel has been there and is back */
};

void groups_call(struct groups *g, struct groups_call *call);

/* On the coordinator's loop, once for each call: all that is copied stays valid in op.done. */
void groups_call_end(struct groups_call *call);
#endif
