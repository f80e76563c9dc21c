#include "store/batch_header.h"

#ifdef __x86_64__
#include <xxh_x86dispatch.h> /* AVX where the machine has it: a quarter of the time for 64 KiB */
#else
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif

#include "base/le.h"

#define VERSION 1

enum {
    AT_VERSION = 4,
    AT_FORMAT = 5,
    AT_RESERVED = 6,
    AT_PAYLOAD_BYTES = 8,
    AT_RECORDS = 12,
    AT_BASE_OFFSET = 16
};
enum { AT_MAX_TIMESTAMP = 24, AT_PAYLOAD_CHECK = 32, AT_SYNCED_TO = 40, AT_HEADER_CHECK = 44 };

void batch_header_write(uint8_t out[BATCH_HEADER_BYTES], const struct store_batch *b, uint32_t synced_to) {
    memcpy(out, BATCH_MAGIC, BATCH_MAGIC_BYTES);
    out[AT_VERSION] = VERSION;
    out[AT_FORMAT] = b->format;
    out[AT_RESERVED] = out[AT_RESERVED + 1] = 0;
    le_set32(out + AT_PAYLOAD_BYTES, (uint32_t)b->payload.len);
    le_set32(out + AT_RECORDS, (uint32_t)b->records_count);
    le_set64(out + AT_BASE_OFFSET, (uint64_t)b->base_offset);
    le_set64(out + AT_MAX_TIMESTAMP, (uint64_t)b->max_timestamp);
    le_set64(out + AT_PAYLOAD_CHECK, XXH3_64bits(b->payload.ptr, (size_t)b->payload.len));
    le_set32(out + AT_SYNCED_TO, synced_to);
    le_set32(out + AT_HEADER_CHECK, (uint32_t)XXH3_64bits(out, AT_HEADER_CHECK));
}

bool batch_header_read(const uint8_t in[BATCH_HEADER_BYTES], struct batch_header *out) {
    if (memcmp(in, BATCH_MAGIC, BATCH_MAGIC_BYTES) != 0 || in[AT_VERSION] != VERSION)
        return false;
    if (le_get32(in + AT_HEADER_CHECK) != (uint32_t)XXH3_64bits(in, AT_HEADER_CHECK))
        return false;
    out->format = in[AT_FORMAT];
    out->payload_bytes = le_get32(in + AT_PAYLOAD_BYTES);
    out->records_count = le_get32(in + AT_RECORDS);
    out->base_offset = (int64_t)le_get64(in + AT_BASE_OFFSET);
    out->max_timestamp = (int64_t)le_get64(in + AT_MAX_TIMESTAMP);
    out->payload_check = le_get64(in + AT_PAYLOAD_CHECK);
    out->synced_to = le_get32(in + AT_SYNCED_TO);
    return out->payload_bytes <= INT32_MAX && out->records_count >= 1 && out->records_count <= INT32_MAX &&
           out->base_offset >= 0 && out->base_offset <= INT64_MAX - INT32_MAX;
}

bool batch_payload_is_good(const struct batch_header *h, const uint8_t *payload) {
    return XXH3_64bits(payload, h->payload_bytes) == h->payload_check;
}
