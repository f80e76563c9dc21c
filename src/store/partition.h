/*
 * The inside of struct partition, for partition.c (open, append, sync, where the log starts), recover.c and partition_read.c.
 * The order of locks: open_lock, front_lock, write_lock, lock, then the store's idle_lock.
 */
#ifndef STORE_PARTITION_H
#define STORE_PARTITION_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"
#include "store/segment.h"
#include "store/store.h"

#define PARTITION_HINTS 16

/* Where reads ended, so that the next one needs no index. Offset 0 is in no hint. */
struct read_hint {
    int64_t offset, segment_base, position;
};

struct partition {
    struct log_env *env;
    struct partition *retired_next; /* the topic's */
    char folder[48];                /* below the data folder */
    pthread_mutex_t open_lock;      /* held over the I/O of opening */
    pthread_mutex_t front_lock; /* held over moving the start: retention, partition_drop, partition_trim */
    pthread_mutex_t write_lock; /* held over the I/O of writing, not of syncing; nobody who reads takes it */
    pthread_mutex_t lock;       /* for segments, hints and the active index; never held over I/O */
    _Atomic bool is_open, deleted;
    _Atomic int closed; /* enum status: why nothing is appended any more; ST_OK */
    _Atomic int64_t start, end;
    int64_t
        noted_start; /* the greatest that a file says (START_SUFFIX); 0: none. Under front_lock once it is open */
    _Atomic int64_t cut_bytes; /* by recovery, not yet told */
    _Atomic int64_t unsynced_bytes;
    struct segment **segments; /* owned, each referenced; ascending; the last one is active */
    int32_t segments_count, segments_room;
    struct read_hint hints[PARTITION_HINTS];
    uint32_t hints_next;
    /* the writer's, under write_lock: */
    struct segment *active;       /* the last of segments; NULL: there are none */
    struct index_marks marks;     /* of the active segment, as they would be written now */
    int64_t marked_position;      /* what its index file says is written */
    int32_t index_saved;          /* entries in the index file */
    int64_t writeback_position;   /* up to here the kernel was asked to write */
    bool folder_new, parents_new; /* names not on stable storage yet */
    _Alignas(16) uint8_t user[];  /* the caller's, env->user_bytes */
};

/* stream_id and topic_id name the folder. NULL: out of memory. Nothing is opened. */
struct partition *partition_new(struct log_env *env, uint32_t stream_id, uint32_t topic_id,
                                int32_t index) MUST_USE;
void partition_free(struct partition *p); /* takes NULL */

/* Sync, and write down that nothing needs to be checked when it is opened next. Errors are left for that opening to find. */
void partition_close(struct partition *p);

/* From now on every call says ST_NOT_FOUND. Waits for a running append or opening. */
void partition_delete(struct partition *p);

/* Open it; ST_OK also where it is damaged and serves a part. Blocks. ST_NOT_FOUND: deleted; ST_IO; ST_NO_MEMORY */
enum status partition_ensure_open(struct partition *p) MUST_USE;

/* Read the folder and check the end of the log; called once, under open_lock. Errors: nothing is changed. recover.c */
enum status partition_recover(struct partition *p) MUST_USE;

/*
 * The log starts at the offset that is the name of a file before this, whatever its segments hold. The file is empty, so it is there as a
 * whole or not at all; of several the greatest counts.
 */
#define START_SUFFIX ".start"

/* Room in the array for one more segment. ST_NO_MEMORY */
enum status partition_reserve_segment(struct partition *p) MUST_USE;
#endif
