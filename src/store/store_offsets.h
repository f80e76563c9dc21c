/*
 * Committed offsets: who has read how far, of Iggy consumers and groups and of Kafka groups. All are in memory; changes go to an
 * append-only file beside the catalog, each entry with its checksum, written anew when most of it is out of date. docs/STORE.md.
 */
#ifndef STORE_STORE_OFFSETS_H
#define STORE_STORE_OFFSETS_H

#include "base/arena.h"
#include "store/store.h"

#define STORE_OWNER_BYTES_MAX    300
#define STORE_METADATA_BYTES_MAX 65535

/* Text is borrowed: from the caller, or from the arena. */
struct store_offset {
    struct str
        owner; /* 1..STORE_OWNER_BYTES_MAX bytes, opaque: the caller's way to tell consumers and groups apart */
    struct uuid topic;
    int32_t partition;
    int64_t offset;
    int32_t leader_epoch; /* -1: none */
    struct str metadata;  /* len <= 0: none */
    int64_t committed_ms; /* wall clock */
};

/*
 * Set offsets, all in memory at once (readers see all or none) and written to the file; not yet on stable storage: store_offsets_sync.
 * The same topic and partition twice for an owner: the last one counts. Topics and partitions need not be there, but the next start forgets offsets of those that aren't.
 * ST_IO, ST_NO_SPACE, ST_READ_ONLY: nothing has changed; ST_INVALID: an owner or metadata of a length that isn't allowed, a partition
 * less than 0; ST_POLICY: all owners together have 1 GiB in memory; ST_TOO_BIG: over 64 MiB in one call; ST_NO_MEMORY.
 * ST_IO also after a failed sync: nothing can be set or removed any more until the next start (fsyncgate). Blocks; any thread; one call
 * in many also writes the file anew.
 */
enum status store_offsets_set(struct store *s, const struct store_offset *offsets, int32_t count) MUST_USE;

/*
 * Bring all that was set or removed before the call to stable storage; callers that come while one syncs share the next sync.
 * ST_IO: it failed, and nobody can say what is on disk. Blocks; any thread.
 */
enum status store_offsets_sync(struct store *s) MUST_USE;

/* One offset; ST_NOT_FOUND: none. Text in out goes to the arena. Short, in memory: allowed on a loop. */
enum status store_offset_get(struct store *s, struct str owner, const struct uuid *topic, int32_t partition,
                             struct arena *a, struct store_offset *out) MUST_USE;

/* Call fn for each offset of an owner, ordered by topic and partition, or of all owners (owner.len -1), under a lock: short, and without
 * calling back into the store. Anything but ST_OK from fn ends the walk and is returned. */
enum status store_offsets_each(struct store *s, struct str owner,
                               enum status (*fn)(void *, const struct store_offset *), void *user) MUST_USE;

/* Call fn for the name of each owner that has offsets, in no order, as store_offsets_each. */
enum status store_offsets_owners(struct store *s, enum status (*fn)(void *, struct str owner),
                                 void *user) MUST_USE;

/*
 * Forget: one offset; all of an owner (topic NULL); all of a topic (owner.len -1), which store_topic_delete and store_topic_shrink do themselves.
 * partition -1: all. Written as store_offsets_set. *count_out (may be NULL): how many there were; none is ST_OK. ST_INVALID: neither owner nor
 * topic, or a partition without its topic; others as store_offsets_set.
 */
enum status store_offsets_remove(struct store *s, struct str owner, const struct uuid *topic,
                                 int32_t partition, int32_t *count_out) MUST_USE;

/*
 * Forget those of these offsets (owner, topic, partition; the rest is not looked at) that were committed at before_ms or earlier; all others stay.
 * That is looked at under the lock that every change takes: an offset that is set meanwhile is never lost. All of them are one change. *count_out:
 * how many there were; none is ST_OK. Statuses as store_offsets_set. Blocks; any thread. KIP-211.
 */
enum status store_offsets_expire(struct store *s, const struct store_offset *offsets, int32_t count,
                                 int64_t before_ms, int32_t *count_out) MUST_USE;

/* Bytes of a half-written end that store_open cut off, because a crash had cut a change short. For the log. */
int64_t store_offsets_cut_bytes(const struct store *s);
#endif
