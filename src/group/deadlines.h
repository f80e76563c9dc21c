/*
 * Deadlines: a pairing heap whose nodes are embedded, so that setting one never fails. A deadline that moves to a later time, as a
 * session does with every heartbeat, stays where it is and is moved when its old time comes: a heartbeat costs one store.
 */
#ifndef GROUP_DEADLINES_H
#define GROUP_DEADLINES_H

#include "base/base.h"

enum deadline_kind {
    DEADLINE_SESSION, /* of a member */
    DEADLINE_REVOKE,  /* of a member of a consumer group: it must have given up partitions */
    DEADLINE_WINDOW,  /* of a group */
};

/* Zeroed: not set. The owner sets kind. */
struct deadline {
    int64_t due_ms;
    int64_t key_ms;                       /* its place in the heap; due_ms or earlier */
    struct deadline *child, *next, *prev; /* prev: the left neighbour, or the parent of a first child */
    enum deadline_kind kind;
    bool set;
};

struct deadlines {
    struct deadline *top;
};

void deadline_set(struct deadlines *ds, struct deadline *d, int64_t due_ms); /* one that is set moves */
void deadline_clear(struct deadlines *ds, struct deadline *d); /* no effect on one that isn't set */

/* One that is due by now_ms, no longer set; NULL: none. */
struct deadline *deadlines_pop(struct deadlines *ds, int64_t now_ms);

/* No deadline is due before this; INT64_MAX: there are none. */
int64_t deadlines_next_ms(const struct deadlines *ds);
#endif
