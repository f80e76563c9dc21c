/*
 * The embedded log behind the backend interface: each partition has a queue of appends and at most one job in the work
 * pool that empties it. What gathers while a job writes or syncs goes out together with the next one (group commit).
 */
#ifndef BACKEND_STORE_STORE_BACKEND_H
#define BACKEND_STORE_STORE_BACKEND_H

#include "backend/backend.h"
#include "store/store.h"

/* When a batch is on stable storage (docs/STORE.md). */
enum store_fsync {
    FSYNC_ACKS,     /* before acks -1 is answered */
    FSYNC_ALWAYS,   /* before anything is answered */
    FSYNC_INTERVAL, /* every so many milliseconds */
    FSYNC_NEVER,    /* when the kernel likes */
};

struct store_backend_settings {
    const char *data_dir;
    int64_t segment_bytes, segment_ms;
    int64_t retention_ms, retention_bytes; /* of topics that set none; -1: unlimited */
    enum store_fsync fsync;
    int64_t fsync_interval_ms;
    const char *stream;                 /* the Iggy stream that Kafka topics live in */
    int64_t batch_bytes_max, slots_max; /* spec D1-40 */
    bool skip_unmappable;   /* Kafka clients' reads pass over messages that are no records (H-15) */
    const char *cluster_id; /* NULL: the one kept in the data folder, or a new one */
    struct loop *home;      /* runs the timers: retention, interval syncs */
};

/* Open the data folder. Before the loops start. Statuses and error as store_open. Settings are copied. */
enum status store_backend_new(const struct store_backend_settings *settings, struct backend **out,
                              struct store_error *error) MUST_USE;

/* As long as the backend. */
const char *store_backend_cluster_id(const struct backend *b);
struct uuid store_backend_cluster(const struct backend *b); /* what topic ids are derived from */

/* What it keeps topics in; as long as the backend. */
struct store *store_backend_store(struct backend *b);

/* Begin timers and open all partitions in the background; once the loops run. Any thread. */
void store_backend_start(struct backend *b);

/* Wait until nothing is queued, then sync everything. After the listener has drained, while loops and work pool still run. Blocks. */
void store_backend_stop(struct backend *b);

void store_backend_free(struct backend *b); /* after the work pool and the loops have stopped; takes NULL */
#endif
