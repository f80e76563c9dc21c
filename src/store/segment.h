/*
 * One segment: a file of batches and its index. Sealed segments are opened when they are read, and the store keeps only
 * so many of them open; the active one, the last of its partition, stays open.
 */
#ifndef STORE_SEGMENT_H
#define STORE_SEGMENT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"
#include "base/list.h"
#include "store/index.h"

#define SEGMENTS_IDLE_MAX \
    64 /* open and not in use, in a whole store: 64 files, 32 MiB of index at 1 GiB a segment */

/* What the partitions of a store share. */
struct log_env {
    int dir_fd; /* of the data folder */
    int64_t segment_bytes, segment_ms;
    size_t user_bytes; /* this and the next three: struct store_settings */
    void (*user_init)(void *user);
    void (*user_gone)(void *user);
    void (*user_release)(void *user);
    uint64_t boot; /* names this run of the machine */
    int64_t (*now_wall_ms)(void);
    pthread_mutex_t idle_lock; /* for idle and for what segments say is under it; never held over I/O */
    struct link idle;          /* of struct segment.link, the longest unused first */
    int32_t idle_count;
};

struct segment {
    struct log_env *env;
    const char *folder; /* borrowed from the partition */
    int64_t base_offset;
    _Atomic int32_t refs;
    _Atomic int64_t size_bytes;    /* of whole batches */
    _Atomic int64_t end_offset;    /* the one after the last */
    _Atomic int64_t max_timestamp; /* INT64_MIN: no batch has one */
    _Atomic bool times_known;      /* max_timestamp is true; a sealed segment's is read when it is needed */
    /* under idle_lock: */
    int32_t users; /* those between segment_use and segment_done; the active segment has one more */
    bool is_open;
    struct link link;
    /* while is_open; they don't change while there are users, the active one's index excepted: that is under its partition's lock */
    int fd;
    struct index index;
};

/* A closed segment with one reference. NULL: out of memory. */
struct segment *segment_new(struct log_env *env, const char *folder, int64_t base_offset) MUST_USE;
struct segment *segment_ref(struct segment *s);
void segment_unref(struct segment *s); /* the last one closes it; takes NULL */

enum segment_file { SEGMENT_LOG, SEGMENT_INDEX };
#define SEGMENT_PATH_BYTES 96
void segment_path(const struct segment *s, enum segment_file file, char out[SEGMENT_PATH_BYTES]);

/* Take over an open file and its index as the active segment's, with one user. */
void segment_activate(struct segment *s, int fd, struct index *index);

/*
 * Have fd and index at hand until segment_done. A sealed segment is opened, and its index loaded or made again from the log.
 * wait: whether that may block. ST_AGAIN: it would; ST_NOT_FOUND: the file is gone; ST_IO; ST_NO_MEMORY
 */
enum status segment_use(struct segment *s, bool wait) MUST_USE;
void segment_done(struct segment *s);

/* The greatest timestamp in it. Blocks where it isn't known yet. Errors as segment_use. */
enum status segment_max_timestamp(struct segment *s, int64_t *out) MUST_USE;

/* When its log was last written, wall clock. Blocks. ST_NOT_FOUND: the file is gone; ST_IO */
enum status segment_written_ms(const struct segment *s, int64_t *out) MUST_USE;

/* The same for retention: where no batch has a timestamp (Kafka's -1 included), when the file was last written. */
enum status segment_age_timestamp(struct segment *s, int64_t *out) MUST_USE;

/* Remove both files. Readers who hold it keep what they have. */
void segment_remove_files(const struct segment *s);
#endif
