/* Which of the topics that Kafka can see have a group, or which groups of ours they have: one call for each, many at once. All on the loop. */
#ifndef BACKEND_IGGY_GROUP_WALK_H
#define BACKEND_IGGY_GROUP_WALK_H

#include "backend/iggy/listing.h"
#include "base/sorted.h"

#define WALK_FLIGHT 32

struct group_walk;

/* One topic that is asked. */
struct walk_call {
    struct group_walk *walk;
    bool running, deletes;
    int32_t topic; /* in the listing */
    struct iggy_topic_req all;
    struct iggy_group_req one;
    struct iggy_request request;
};

/*
 * in   op, group       the Kafka group that is looked for; len -1: all
 *      remove          and delete it where it is
 *      arena           for names
 *      deadline_ms
 * out  op.status       ST_OK: all topics were asked; those that went meanwhile have nothing. ST_UNAVAILABLE, ST_TIMED_OUT, ST_DENIED ...
 *      listing         held, with ST_OK and with errors, NULL: none (listing_unref)
 *      holds           by topic of the listing: it has the group; owned by the caller, mem_free
 *      holders_count   how many
 *      names           of all: struct str, each once, in order; in the arena, but the array (sorted_release)
 */
struct group_walk {
    struct op op;
    struct str group;
    bool remove;
    struct arena *arena;
    int64_t deadline_ms;
    struct listing *listing;
    bool *holds;
    int32_t holders_count;
    struct sorted names;

    struct bridge_loop *loop; /* the rest is group_walk.c's */
    struct listing_want want;
    char group_text[IGGY_NAME_BYTES_MAX];
    struct str iggy_group;
    int32_t next, running; /* topics */
    enum status status;
    struct walk_call calls[WALK_FLIGHT];
};
void group_walk_start(struct bridge_loop *l, struct group_walk *walk);
#endif
