/*
 * The 48 bytes before each stored batch: what it is, which offsets it has, and two checksums, one over the payload and
 * one over the header, so that a length can be believed even where the payload is damaged. Bytes: docs/STORE.md.
 */
#ifndef STORE_BATCH_HEADER_H
#define STORE_BATCH_HEADER_H

#include "base/base.h"
#include "store/store.h"

#define BATCH_HEADER_BYTES 48
#define BATCH_MAGIC        "IGKB"
#define BATCH_MAGIC_BYTES  4

struct batch_header {
    uint8_t format;
    uint32_t payload_bytes; /* at most INT32_MAX */
    uint32_t records_count; /* 1 .. INT32_MAX */
    int64_t base_offset;
    int64_t max_timestamp;
    uint64_t payload_check;
    uint32_t
        synced_to; /* position in the segment up to which all was on stable storage when this was written */
};

/* Make the header of b, checksums included. */
void batch_header_write(uint8_t out[BATCH_HEADER_BYTES], const struct store_batch *b, uint32_t synced_to);

/* False: these bytes are not a header, or a damaged one, or of another version. */
bool batch_header_read(const uint8_t in[BATCH_HEADER_BYTES], struct batch_header *out) MUST_USE;

/* Whether the payload is the one that the header was made for. */
bool batch_payload_is_good(const struct batch_header *h, const uint8_t *payload) MUST_USE;

static inline int64_t batch_stored_bytes(const struct batch_header *h) {
    return BATCH_HEADER_BYTES + (int64_t)h->payload_bytes;
}
static inline int64_t batch_next_offset(const struct batch_header *h) {
    return h->base_offset + h->records_count;
}
#endif
