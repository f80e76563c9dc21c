/* Stored records in the format that a reader wants, when it is not the stored one. */
#ifndef BACKEND_STORE_CONVERT_H
#define BACKEND_STORE_CONVERT_H

#include "backend/backend.h"
#include "store/store.h"

/* No stored batch is inflated further than this: all passed a smaller limit when they came in. */
#define STORED_BATCH_BYTES_MAX ((int64_t)256 << 20)

/* Slices that go out, and what was made for them. Zeroed is empty. */
struct read_out {
    struct bytes *slices; /* owned array; what they point to is in made, or borrowed from the store's read */
    int32_t count, room;
    void **made; /* owned, and each of them */
    int32_t made_count;
    int64_t bytes; /* in all slices */
    bool borrows;  /* a slice is borrowed */
    uint8_t *chunk;
    size_t chunk_left; /* free room of the chunk that short batches are copied to */
};
void read_out_release(struct read_out *out);

/* Whether all that was read is of this format already. */
bool read_is_of(const struct store_read *data, enum backend_format format) MUST_USE;

/* What is wanted. */
struct convert {
    enum backend_format format;
    int32_t partition;
    int64_t offset;    /* records below it may be left out; moves on */
    int64_t bytes_max; /* of all slices; the first batch may pass it */
    bool
        skip; /* leave out messages that can't be a Kafka record (H-15); false: end before the first of them */
    int64_t skipped_count; /* out: how many were left out */
};

/*
 * What was read, as slices of one format, in out, which is empty before.
 * ST_OK            at least one batch is there
 * ST_UNMAPPABLE    the first message can't be a record, and skip is false
 * ST_CORRUPT       the first batch can't be read
 * ST_NO_MEMORY
 */
enum status convert_read(struct convert *c, const struct store_read *data, struct read_out *out) MUST_USE;
#endif
