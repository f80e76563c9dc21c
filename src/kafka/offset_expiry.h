/*
 * Offsets of groups that nobody uses any more go: D11-67, KIP-211. One check after the other on the coordinator's loop; the rules are in
 * kafka/expiry_rules.h.
 *
 *   timer -> backend_groups: who has offsets -> [coordinator] look at some hundred groups -> the next some hundred .. -> timer
 *     a group of which some may go: backend_committed -> [coordinator] pick -> backend_commit (forget, if they are still as old)
 *                                                                       -> [coordinator] the group goes with its last offset
 *
 * A member that comes between pick and forget finds what it would have found, had it come a moment later.
 */
#ifndef KAFKA_OFFSET_EXPIRY_H
#define KAFKA_OFFSET_EXPIRY_H

#include "backend/backend.h"
#include "kafka/groups.h"

struct offset_expiry;

struct offset_expiry_settings {
    struct backend *backend; /* one that keeps ages, and knows at once which groups have offsets; borrowed */
    struct groups *groups;   /* borrowed */
    struct loop *home;       /* the coordinator's */
    int64_t retention_ms;    /* more than 0 */
};

/* Does nothing yet. ST_NO_MEMORY. Before the loops start. */
enum status offset_expiry_new(const struct offset_expiry_settings *settings,
                              struct offset_expiry **out) MUST_USE;
void offset_expiry_free(struct offset_expiry *e); /* after the loops have stopped; takes NULL */

/* The first check is a retention time from now: nothing counts as older than this start. Any thread; takes NULL. */
void offset_expiry_start(struct offset_expiry *e);

/* No more checks, and one that is under way goes no further. Any thread; takes NULL. */
void offset_expiry_stop(struct offset_expiry *e);
#endif
