/* What the files of backend/store share. */
#ifndef BACKEND_STORE_STORE_IMPL_H
#define BACKEND_STORE_STORE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "backend/store/lane_producers.h"
#include "backend/store/store_backend.h"
#include "base/sorted.h"
#include "net/timer.h"
#include "net/work.h"
#include "wire/compress.h"

/* Work beside the requests, one at a time. */
struct background {
    struct work work;
    struct store_backend *backend;
    void (*run)(struct store_backend *b);
    _Atomic bool busy; /* it runs or waits */
};

/*
 * Changes to the offsets of groups, in the order in which they came (group_offsets.c): one writer at a time, and beside it one sync for all that
 * has been written by then.
 */
struct offset_changes {
    pthread_mutex_t lock;         /* of what follows; never held over I/O */
    struct link queue, unsynced;  /* offset_change */
    struct link writing, syncing; /* those that a job has in hand */
    bool writes, syncs;           /* a job is queued or runs */
    struct work write_work, sync_work;
    int64_t (*now_ms)(void);         /* monotonic; by hand in tests */
    int64_t start_ms, wall_ahead_ms; /* by now_ms; what the wall clock was ahead of it then */
};

/* What is set for groups (group_settings.c). */
struct configured_groups {
    pthread_mutex_t changes; /* held over the catalog's disk: one change at a time; in the pool only */
    pthread_mutex_t lock;    /* of the rows; taken after `changes`, never held over I/O */
    struct sorted rows;      /* struct configured_group *, by name; owned */
};

struct store_backend {
    struct backend base;
    struct store *store;
    struct store_backend_settings settings; /* texts owned */
    struct str stream;
    char *cluster_id;    /* owned */
    struct uuid cluster; /* what topic ids are derived from */
    struct timer upkeep_timer, sync_timer;
    struct op start_op, stop_op; /* starts and stops the timers on the home loop */
    struct background upkeep, sync;
    struct offset_changes offset_changes;
    struct configured_groups configured_groups;
    _Atomic bool stopping, timers_stopped;
    _Atomic int64_t skipped_count; /* messages that were no records, of all reads (H-15) */
};

static inline struct store_backend *store_backend_of(struct backend *b) {
    return container_of(b, struct store_backend, base);
}

/* ---- one partition's append queue (lane.c) ---- */

/* What the topic's settings ask of a Kafka batch. */
struct lane_settings {
    uint64_t version;   /* of the topic's settings when the writer looked at them last; 0: never */
    bool keys_required; /* cleanup.policy (D6-15) */
    bool append_time;   /* message.timestamp.type (D1-12) */
    bool recodes;       /* compression.type (D1-16): batches are stored in codec, */
    enum codec codec;   /* whatever they come in */
};

/* Beside each struct partition of the store (partition_user). */
struct lane {
    pthread_mutex_t lock; /* of what follows; never held over I/O */
    struct link queue;    /* append_slot: waits for the writer */
    struct link unsynced; /* append_slot: written, waits for a sync */
    struct link watchers; /* watch_slot */
    bool writing;         /* a job is queued or runs: it is the partition's one writer */
    bool syncing;         /* and the one that syncs it */
    struct work write_work, sync_work;
    struct store_backend *backend;          /* set with the first job, with partition */
    struct topic *write_topic, *sync_topic; /* held while writing, syncing */
    struct partition *partition;
    struct lane_producers *producers; /* owned; the writer's; NULL: none yet */
    bool producers_learnt;            /* from the log */
    struct lane_settings settings;    /* the writer's */
};

void lane_init(void *lane);    /* store_settings.user_init */
void lane_release(void *lane); /* store_settings.user_release */

static inline struct lane *lane_of(struct partition *p) {
    return partition_user(p);
}

struct append_state;

/* One part of an append in its lane. */
struct append_slot {
    struct link link;
    struct append_state *state;
    struct backend_append_part *part;
    struct topic *topic; /* held */
    struct partition *partition;
    int32_t records_count;
    int64_t max_timestamp;
    uint64_t base_timestamp_us; /* of an Iggy batch: when it was appended */
    uint8_t *batch;             /* what is stored: the part's records, or recoded */
    int32_t size_bytes;
    struct spare recoded; /* owned, until it is written; empty: it is stored as it came */
    bool seen;            /* the records were looked at: the answer tells where the log starts (K2-1) */
    bool stored;          /* written in this round */
};

/* One backend_append between start and done; in the request's arena. */
struct append_state {
    struct backend_append *call;
    _Atomic int32_t left;                   /* slots not finished, and one for the start itself */
    _Atomic int64_t used_bytes, used_slots; /* D1-41 */
    struct append_slot slots[];
};

/* Queue the slot and see that somebody writes. Any thread. */
void lane_push(struct store_backend *b, struct append_slot *slot);

/* See that what has been appended reaches the disk soon, and finish these slots, which are written, then. Any thread. */
void lane_want_sync(struct topic *t, struct partition *p, struct append_slot **slots, int32_t count);

/* The slot's part has its outcome. Any thread. */
void append_slot_finish(struct append_slot *slot, enum status st);

/* ---- waiting for data (watch.c) ---- */

/* Something was appended: wake who waits for it. Any thread. */
void lane_wake(struct lane *lane);

/* The lane's partition was deleted: wake all who wait there. The store's user_gone. */
void lane_gone(void *memory);

/* ---- a blocking call in the pool ---- */

struct store_job {
    struct work work;
    struct store_backend *backend;
    struct op *op; /* completed with ST_OK when run returns */
    void (*run)(struct store_backend *b, void *call);
    void *call;
};
/* op_start, then run in the pool, then op_complete. Without memory for that, run blocks this thread. */
void store_job_start(struct store_backend *b, struct op *op, void *call,
                     void (*run)(struct store_backend *b, void *call));

/* The topic that a part names, held; by id where topic.len is -1. NULL and *st_out: not there. */
struct topic *topic_of_part(struct store_backend *b, struct str name, const struct uuid *id,
                            enum status *st_out);

void store_topics_op(struct backend *b, struct backend_topics *t);
void store_create_op(struct backend *b, struct backend_create *c);
void store_delete_op(struct backend *b, struct backend_delete *d);
void store_grow_op(struct backend *b, struct backend_grow *g);
void store_configure_op(struct backend *b, struct backend_configure *c);
void store_append_op(struct backend *b, struct backend_append *a);
void store_read_op(struct backend *b, struct backend_read *r);
void store_read_release_op(struct backend *b, struct backend_read *r);
void store_watch_op(struct backend *b, struct backend_watch *w);
void store_offsets_op(struct backend *b, struct backend_offsets *o);
void store_trim_op(struct backend *b, struct backend_trim *t);
void store_commit_op(struct backend *b, struct backend_commit *c);
void store_committed_op(struct backend *b, struct backend_committed *c);
void store_groups_op(struct backend *b, struct backend_groups *g);
bool store_group_has_offsets(struct backend *b, struct str group);
void store_configure_groups_op(struct backend *b, struct backend_configure_groups *c);
struct backend_group_settings store_settings_of_group(struct backend *b, struct str group);

void configured_groups_init(struct configured_groups *c);
/* What the store has. ST_NO_MEMORY, ST_CORRUPT, ST_IO. */
enum status configured_groups_load(struct configured_groups *c, struct store *s) MUST_USE;
/* Blocks. */
void configured_groups_change(struct store_backend *b, struct backend_configure_groups *call);
void configured_groups_release(struct configured_groups *c);

/* The clock by which offsets grow old starts now, at start_ms by now_ms and at wall_ms for others. */
void offset_changes_init(struct offset_changes *c, int64_t (*now_ms)(void), int64_t wall_ms);
void offset_changes_release(struct offset_changes *c); /* when nothing is under way */

/* Gives back what a read has found, and keeps where it found it. */
void read_drop_records(struct backend_read *r);

/* What of a read part watch.c looks at: the partition it was found in; NULL: none. */
struct partition *read_partition(const struct backend_read *r, int32_t part);
#endif
