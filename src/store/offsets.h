/*
 * Committed offsets as the store holds them: the table in memory, the file, and the locks of both. The public calls: store_offsets.h.
 *
 * The order of locks: write_lock, sync_lock, lock. Readers take lock alone, which nobody holds over I/O. Who holds write_lock
 * may look into the table without it: nobody else changes it.
 */
#ifndef STORE_OFFSETS_H
#define STORE_OFFSETS_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/offsets_file.h"
#include "store/offsets_table.h"

struct offsets {
    int dir_fd; /* borrowed from the store */
    pthread_mutex_t
        write_lock; /* one change at a time, with its write; for file, rewriting, rewrite_bytes, ends_marked */
    pthread_mutex_t sync_lock; /* one sync at a time; file is replaced under both */
    pthread_rwlock_t lock;     /* for the table */
    struct offset_table table;
    struct offsets_file file;        /* fd -1: made with the first change */
    _Atomic int64_t end;             /* file.end, for the sync */
    _Atomic int64_t written, synced; /* changes since the start, in files of any generation */
    _Atomic int64_t synced_end;      /* position in file up to which all is on stable storage */
    _Atomic bool closed; /* to changes: nobody can say any more what is on disk, until the next start */
    bool rewriting;
    bool ends_marked;      /* the file's last entry says that all before it was synced */
    int64_t rewrite_bytes; /* a file that isn't larger is not written anew: the last try failed */
    int64_t memory_max;
    int64_t torn_bytes;
};

/*
 * Open the file below dir_fd, if there is one; cut a torn end. Offsets of topics and partitions that are no longer there are
 * forgotten: a crash has cut a deletion short. partitions_of: how many a topic has; 0: there is no such topic. dir_fd stays open as long as this. reason is filled on every error: a sentence without the folder.
 * ST_CORRUPT: damaged, or of a newer version; ST_IO, ST_READ_ONLY, ST_NO_MEMORY.
 */
enum status offsets_open(int dir_fd, int32_t (*partitions_of)(void *user, const struct uuid *topic),
                         void *user, struct offsets **out, char reason[OFFSETS_REASON_BYTES]) MUST_USE;

/* Sync and close. Takes NULL. */
void offsets_close(struct offsets *o);

/* Forget a topic's partitions from first on, which the catalog no longer has. If that can't be written down, the next start does so again. */
void offsets_partitions_gone(struct offsets *o, const struct uuid *topic, int32_t first);

/* ---- between the files of this part ---- */

/* Put the finished OFFSETS_FILE_NEW in the old file's place, durably; takes it over. Under write_lock and sync_lock. */
enum status offsets_replace_file(struct offsets *o, struct offsets_file *with) MUST_USE;
uint64_t offsets_seed(void);

/* Whether most of the file is out of date. Under write_lock. */
bool offsets_rewrite_is_due(const struct offsets *o);
/* Write the file anew; rewriting was set by the caller. What fails is tried again when the file has grown. Blocks; without locks. */
void offsets_rewrite(struct offsets *o);
#endif
