/*
 * The sparse index of one segment, and its file. It finds the place of an offset or a time without reading the log, and
 * remembers up to where the log is known to be good, so that a start after a crash needs to read only what follows.
 * All of it is a hint: it can be made again from the log, and what it says is checked there. Bytes: docs/STORE.md.
 */
#ifndef STORE_INDEX_H
#define STORE_INDEX_H

#include "base/base.h"

#define INDEX_INTERVAL_BYTES (32 * 1024) /* of log for each entry; 1 GiB of log takes 512 KiB of memory */

/* A batch of the segment. */
struct index_entry {
    uint32_t offset_delta; /* its base offset, less the segment's */
    uint32_t position;     /* of its header in the file */
    int64_t max_timestamp; /* the greatest of all batches before it; INT64_MIN: none */
};

struct index {
    struct index_entry *entries; /* owned; ascending in all three */
    int32_t count, room;
};

/* A place between two batches: offset is the next one's, max_timestamp as in struct index_entry. */
struct index_point {
    int64_t position, offset, max_timestamp;
};

struct index_marks {
    uint64_t boot; /* of the machine, when this was written: its page cache held the log up to written */
    struct index_point written; /* true after a kill, not after a power cut */
    struct index_point synced;  /* on stable storage */
    int64_t first_append_wall_ms;
    bool sealed; /* written is the end; nothing will be added */
};

/* Room for count more entries, so that adding them can't fail. ST_NO_MEMORY. */
enum status index_reserve(struct index *x, int32_t count) MUST_USE;
void index_add(struct index *x, const struct index_entry *e); /* there is room */
void index_release(struct index *x);

/* The last entry that is not behind the offset, the position; the last one before a batch of that time can come. count > 0. */
const struct index_entry *index_by_offset(const struct index *x, uint32_t offset_delta);
const struct index_entry *index_by_position(const struct index *x, int64_t position);
const struct index_entry *index_by_time(const struct index *x, int64_t timestamp_ms);

/*
 * Read the file of the segment that begins at base_offset. index_out may be NULL: the marks only.
 * ST_NOT_FOUND: no file; ST_CORRUPT: it isn't one, or not of this segment; ST_IO; ST_NO_MEMORY
 */
enum status index_load(int at_fd, const char *path, int64_t base_offset, struct index *index_out,
                       struct index_marks *marks_out) MUST_USE;

/*
 * Write the entries from the given one on and then the marks; 0: the file is made new. sync: also to stable storage.
 * ST_NO_SPACE, ST_READ_ONLY, ST_IO
 */
enum status index_save(int at_fd, const char *path, int64_t base_offset, const struct index *x, int32_t from,
                       const struct index_marks *marks, bool sync) MUST_USE;
#endif
