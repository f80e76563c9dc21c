/*
 * Committed offsets in memory: a hash of owners, each with its offsets in a treap ordered by topic and partition.
 * No locks, no files. Nothing of it allocates but what says so, so that a change can be prepared before it is written down.
 */
#ifndef STORE_OFFSETS_TABLE_H
#define STORE_OFFSETS_TABLE_H

#include "store/store_offsets.h"
#include "store/topic.h"

#define OFFSET_RECORD_BYTES 48 /* of an offset in the file, without owner and metadata */

struct offset_node {
    struct offset_node *left, *right;
    struct uuid topic; /* down to priority: what a search reads, in as few cache lines as can be */
    int32_t partition;
    uint32_t priority;
    int64_t offset, committed_ms;
    int32_t leader_epoch;
    uint32_t metadata_len;
    char metadata[];
};

struct offset_owner {
    struct offset_node *root; /* owned; NULL only while a change is prepared */
    UT_hash_handle hh;
    int32_t name_len;
    char name[];
};

struct offset_table {
    struct offset_owner *owners; /* owned */
    uint64_t random;             /* for priorities; never 0 */
    int64_t count;               /* offsets */
    int64_t memory_bytes;        /* about */
    int64_t file_bytes;          /* what they would take in a new file, about */
    struct {                     /* how far a walk in pieces has come */
        struct offset_owner *owner;
        bool begun; /* inside the owner, behind the two below */
        struct uuid topic;
        int32_t partition;
    } cursor;
};

/* Which offsets: of all owners (len -1) or one; of all topics (NULL) or of partitions first to last of one. */
struct offset_match {
    struct str owner;
    const struct uuid *topic;
    int32_t first, last;
};

typedef enum status offset_fn(void *user, const struct store_offset *o);

void offset_table_init(struct offset_table *t, uint64_t random);
void offset_table_release(struct offset_table *t);

/* NULL: none. */
struct offset_owner *offset_table_owner(const struct offset_table *t, struct str name);
/* The owner, made when it is missing; NULL: out of memory. */
struct offset_owner *offset_table_ensure_owner(struct offset_table *t, struct str name) MUST_USE;
/* Take an owner out that has no offsets. */
void offset_table_drop_if_empty(struct offset_table *t, struct offset_owner *owner);

/* An offset that is in no table yet (mem_free); NULL: out of memory. */
struct offset_node *offset_node_new(const struct store_offset *o) MUST_USE;
int64_t offset_node_bytes(const struct offset_node *n); /* in memory, about */

/* Put it in, in place of the one there is for topic and partition. Takes over node. */
void offset_table_put(struct offset_table *t, struct offset_owner *owner, struct offset_node *node);

struct offset_node *offset_owner_find(const struct offset_owner *owner, const struct uuid *topic,
                                      int32_t partition);
/* Whether one of the owner's offsets matches; the owner of the match is not looked at, here and in the next. */
bool offset_owner_has(const struct offset_owner *owner, const struct offset_match *m);
/* Remove those that match; the owner goes with its last one. How many there were. */
int32_t offset_owner_remove(struct offset_table *t, struct offset_owner *owner, const struct offset_match *m);
/* The first topic behind `behind` (NULL: of all) that the owner has an offset of; NULL: none. */
const struct uuid *offset_owner_next_topic(const struct offset_owner *owner, const struct uuid *behind);

void offset_view(const struct offset_owner *owner, const struct offset_node *n, struct store_offset *out);
/* In order; anything but ST_OK from fn ends it and is returned. */
enum status offset_owner_each(const struct offset_owner *owner, offset_fn *fn, void *user) MUST_USE;

/*
 * Walk all in pieces: begin, then walk_on until ST_OK. fn ends a piece with ST_AGAIN, after having taken the offset it got.
 * Between pieces the table may change: what is there all the time is met once, what comes or goes may be met.
 */
void offset_table_walk_begin(struct offset_table *t);
enum status offset_table_walk_on(struct offset_table *t, offset_fn *fn, void *user) MUST_USE;
#endif
