/* Walking a segment's file batch by batch, with every check, and finding the way again behind damage. Blocking. */
#ifndef STORE_SCAN_H
#define STORE_SCAN_H

#include "base/base.h"
#include "store/batch_header.h"
#include "store/index.h"

struct scan {
    int fd;                /* borrowed */
    int64_t position;      /* of the next batch */
    int64_t offset;        /* it must begin with this */
    int64_t max_timestamp; /* of all before it */
    int64_t limit;         /* the file ends here */
    bool resynced;         /* the next batch comes after damage: it needs an index entry of its own */
    uint8_t *window;       /* owned */
    size_t window_room, window_bytes;
    int64_t window_at;
};

/* Start at a point between two batches. Nothing is read yet. */
void scan_init(struct scan *s, int fd, const struct index_point *from, int64_t limit);
void scan_release(struct scan *s); /* fine on zeroed and on released */

/*
 * Take the next batch and go behind it. payload_out: valid until the next call; NULL: not wanted, and then not checked either.
 * ST_NOT_FOUND: the limit, exactly; ST_CORRUPT: what stands there is not the whole next batch: the position stays;
 * ST_IO; ST_NO_MEMORY
 */
enum status scan_next(struct scan *s, struct batch_header *out, const uint8_t **payload_out) MUST_USE;

/* As scan_next with a check of the payload, and add an entry to the index where one is due. */
enum status scan_next_indexed(struct scan *s, struct index *x, int64_t base_offset) MUST_USE;

/*
 * After ST_CORRUPT: go to the next whole, good batch with an offset not below the expected one.
 * Bytes inside the payload of a good header are never taken for a batch.
 * ST_NOT_FOUND: there is none; the position stays. ST_IO; ST_NO_MEMORY
 */
enum status scan_resync(struct scan *s) MUST_USE;

/* Whether nothing but zero bytes is left; *end_out: behind the last byte that isn't zero, at least the position. ST_IO; ST_NO_MEMORY */
enum status scan_zero_tail(struct scan *s, int64_t *end_out) MUST_USE;
#endif
