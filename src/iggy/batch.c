#include "iggy/batch.h"

#define XXH_STATIC_LINKING_ONLY /* for a state on the stack */
#include <xxhash.h>

#include "base/le.h"
#include "base/mem.h"

enum {
    AT_PARTITION = 0,
    AT_BASE_OFFSET = 8,
    AT_BASE_TIMESTAMP = 16,
    AT_ORIGIN_TIMESTAMP = 24,
    AT_LENGTH = 32,
    AT_CHECKSUM = 40,
    AT_COUNT = 48,
    AT_PRODUCER = 52,
    AT_ZERO = 72,
};
enum { /* in the producer section */
       IN_PRODUCER_ID = 4,
       IN_PRODUCER_EPOCH = 12,
       IN_PRODUCER_SEQUENCE = 16,
       PRODUCER_BYTES = 20,
       PRODUCER_HASHED_BYTES = 1 + 8 + 2 + 4,
};
enum { /* in a message header */
       IN_CHECKSUM = 0,
       IN_ID = 8,
       IN_OFFSET_DELTA = 24,
       IN_TIMESTAMP_DELTA = 28,
       IN_HEADERS_LENGTH = 32,
       IN_PAYLOAD_LENGTH = 36,
       IN_ZERO = 40,
};
#define PRODUCER_PRESENT 1
#define CHECKSUM_BYTES   8
#define HASHED_BYTES     (AT_CHECKSUM + 4) /* everything before the checksum, and the count */
#define BUILDER_ROOM_MIN 1024

static bool all_zero(const uint8_t *p, size_t len) {
    return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

/* ---- the batch header ---- */

static bool producer_read(const uint8_t *p, bool allowed, struct iggy_producer *out) {
    if (all_zero(p, PRODUCER_BYTES))
        return true;
    uint64_t id = le_get64(p + IN_PRODUCER_ID);
    unsigned epoch = (unsigned)le_get(p + IN_PRODUCER_EPOCH, 2);
    uint32_t sequence = le_get32(p + IN_PRODUCER_SEQUENCE);
    if (!allowed || p[0] != PRODUCER_PRESENT || !all_zero(p + 1, 3) || !all_zero(p + 14, 2))
        return false;
    if (id > INT64_MAX || epoch > INT16_MAX || sequence > INT32_MAX)
        return false;
    *out = (struct iggy_producer){
        .present = true, .id = id, .epoch = (uint16_t)epoch, .base_sequence = sequence};
    return true;
}

static void producer_write(uint8_t *p, const struct iggy_producer *in) {
    memset(p, 0, PRODUCER_BYTES);
    if (!in->present)
        return;
    p[0] = PRODUCER_PRESENT;
    le_set64(p + IN_PRODUCER_ID, in->id);
    le_set(p + IN_PRODUCER_EPOCH, 2, in->epoch);
    le_set32(p + IN_PRODUCER_SEQUENCE, in->base_sequence);
}

enum status iggy_batch_read(struct bytes in, bool producer_allowed, struct iggy_batch *out) {
    *out = (struct iggy_batch){0};
    if (in.len < IGGY_BATCH_HEADER_BYTES)
        return ST_TRUNCATED;
    const uint8_t *p = in.ptr;
    uint64_t length = le_get64(p + AT_LENGTH);
    if (length < IGGY_BATCH_HEADER_BYTES || length > INT32_MAX)
        return ST_BAD_LENGTH;
    if (length > (uint64_t)in.len)
        return ST_TRUNCATED;
    out->size_bytes = (int32_t)length;
    out->frames = (struct bytes){p + IGGY_BATCH_HEADER_BYTES, out->size_bytes - IGGY_BATCH_HEADER_BYTES};
    out->partition_id = le_get64(p + AT_PARTITION);
    out->base_offset = le_get64(p + AT_BASE_OFFSET);
    out->base_timestamp_us = le_get64(p + AT_BASE_TIMESTAMP);
    out->origin_timestamp_us = le_get64(p + AT_ORIGIN_TIMESTAMP);
    out->checksum = le_get64(p + AT_CHECKSUM);
    out->messages_count = le_get32(p + AT_COUNT);
    if (out->messages_count == 0 ||
        out->messages_count > (uint32_t)out->frames.len / IGGY_MESSAGE_HEADER_BYTES)
        return ST_BAD_LENGTH;
    if (!producer_read(p + AT_PRODUCER, producer_allowed, &out->producer) ||
        !all_zero(p + AT_ZERO, IGGY_BATCH_HEADER_BYTES - AT_ZERO))
        return ST_BAD_RECORD;
    return ST_OK;
}

/* ---- checksums ---- */

/* Begins the batch's checksum with what the header holds; the checksums of the messages follow. */
static void checksum_begin(XXH3_state_t *state, const struct iggy_batch *b) {
    uint8_t head[HASHED_BYTES + PRODUCER_HASHED_BYTES];
    size_t len = HASHED_BYTES;
    le_set64(head + AT_PARTITION, b->partition_id);
    le_set64(head + AT_BASE_OFFSET, b->base_offset);
    le_set64(head + AT_BASE_TIMESTAMP, b->base_timestamp_us);
    le_set64(head + AT_ORIGIN_TIMESTAMP, b->origin_timestamp_us);
    le_set64(head + AT_LENGTH, (uint64_t)b->size_bytes);
    le_set32(head + AT_CHECKSUM, b->messages_count);
    if (b->producer.present) {
        head[len] = PRODUCER_PRESENT;
        le_set64(head + len + 1, b->producer.id);
        le_set(head + len + 9, 2, b->producer.epoch);
        le_set32(head + len + 11, b->producer.base_sequence);
        len += PRODUCER_HASHED_BYTES;
    }
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, head, len);
}

/* Of a message whose header stands at p and whose frame is size_bytes long. */
static uint64_t message_checksum(const uint8_t *p, size_t size_bytes) {
    return XXH3_64bits(p + CHECKSUM_BYTES, size_bytes - CHECKSUM_BYTES);
}

static size_t message_bytes(const uint8_t *p) {
    return IGGY_MESSAGE_HEADER_BYTES + (size_t)le_get32(p + IN_HEADERS_LENGTH) +
           le_get32(p + IN_PAYLOAD_LENGTH);
}

/* ---- messages ---- */

void iggy_messages_init(struct iggy_messages_iter *it, const struct iggy_batch *b) {
    *it = (struct iggy_messages_iter){b->frames.ptr, b->frames.ptr + b->frames.len, b->messages_count};
}

enum status iggy_messages_next(struct iggy_messages_iter *it, struct iggy_message *out) {
    if (it->left == 0)
        return it->at == it->end ? ST_NOT_FOUND : ST_BAD_RECORD;
    size_t left = (size_t)(it->end - it->at);
    const uint8_t *p = it->at;
    if (left < IGGY_MESSAGE_HEADER_BYTES || message_bytes(p) > left ||
        !all_zero(p + IN_ZERO, IGGY_MESSAGE_HEADER_BYTES - IN_ZERO))
        return ST_BAD_RECORD;
    out->checksum = le_get64(p + IN_CHECKSUM);
    memcpy(out->id.b, p + IN_ID, sizeof out->id.b);
    out->offset_delta = le_get32(p + IN_OFFSET_DELTA);
    out->timestamp_delta_us = le_get32(p + IN_TIMESTAMP_DELTA);
    out->payload = (struct bytes){p + IGGY_MESSAGE_HEADER_BYTES, (int32_t)le_get32(p + IN_PAYLOAD_LENGTH)};
    out->headers =
        (struct bytes){out->payload.ptr + out->payload.len, (int32_t)le_get32(p + IN_HEADERS_LENGTH)};
    it->at += message_bytes(p);
    it->left--;
    return ST_OK;
}

enum status iggy_batch_check(const struct iggy_batch *b, bool sent) {
    struct iggy_messages_iter it;
    struct iggy_message m;
    XXH3_state_t state;
    if (sent && (b->partition_id | b->base_offset | b->base_timestamp_us) != 0)
        return ST_BAD_RECORD;
    checksum_begin(&state, b);
    iggy_messages_init(&it, b);
    uint32_t delta_min = 0;
    for (uint32_t i = 0; i < b->messages_count; i++) {
        const uint8_t *frame = it.at;
        enum status st = iggy_messages_next(&it, &m);
        if (st)
            return ST_BAD_RECORD;
        if (message_checksum(frame, (size_t)(it.at - frame)) != m.checksum)
            return ST_BAD_CRC;
        if (sent ? m.offset_delta != i : m.offset_delta < delta_min || m.offset_delta == UINT32_MAX)
            return ST_BAD_RECORD;
        delta_min = m.offset_delta + 1;
        XXH3_64bits_update(&state, frame, CHECKSUM_BYTES);
    }
    if (it.at != it.end)
        return ST_BAD_RECORD;
    return XXH3_64bits_digest(&state) == b->checksum ? ST_OK : ST_BAD_CRC;
}

void iggy_batch_write_header(uint8_t out[IGGY_BATCH_HEADER_BYTES], struct iggy_batch *b) {
    XXH3_state_t state;
    b->size_bytes = IGGY_BATCH_HEADER_BYTES + b->frames.len;
    checksum_begin(&state, b);
    const uint8_t *frame = b->frames.ptr;
    for (uint32_t i = 0; i < b->messages_count; i++) {
        XXH3_64bits_update(&state, frame, CHECKSUM_BYTES);
        frame += message_bytes(frame);
    }
    b->checksum = XXH3_64bits_digest(&state);
    memset(out + AT_ZERO, 0, IGGY_BATCH_HEADER_BYTES - AT_ZERO);
    le_set64(out + AT_PARTITION, b->partition_id);
    le_set64(out + AT_BASE_OFFSET, b->base_offset);
    le_set64(out + AT_BASE_TIMESTAMP, b->base_timestamp_us);
    le_set64(out + AT_ORIGIN_TIMESTAMP, b->origin_timestamp_us);
    le_set64(out + AT_LENGTH, (uint64_t)b->size_bytes);
    le_set64(out + AT_CHECKSUM, b->checksum);
    le_set32(out + AT_COUNT, b->messages_count);
    producer_write(out + AT_PRODUCER, &b->producer);
}

/* ---- build ---- */

static enum status builder_reserve(struct iggy_batch_builder *b, size_t room) {
    if (room <= b->room)
        return ST_OK;
    size_t grown = b->room + b->room / 2;
    room = room > grown ? room : grown;
    room = room > BUILDER_ROOM_MIN ? room : BUILDER_ROOM_MIN;
    uint8_t *ptr = mem_grow(b->ptr, room);
    if (!ptr)
        return ST_NO_MEMORY;
    b->ptr = ptr;
    b->room = room;
    return ST_OK;
}

enum status iggy_batch_builder_init(struct iggy_batch_builder *b, uint64_t origin_timestamp_us,
                                    size_t bytes_hint) {
    enum status st =
        builder_reserve(b, bytes_hint > IGGY_BATCH_HEADER_BYTES ? bytes_hint : IGGY_BATCH_HEADER_BYTES);
    if (st)
        return st;
    b->len = IGGY_BATCH_HEADER_BYTES;
    b->last = 0;
    b->origin_timestamp_us = origin_timestamp_us;
    b->messages_count = b->next_delta = 0;
    b->partition_id = b->base_offset = b->base_timestamp_us = 0;
    b->producer = (struct iggy_producer){0};
    return ST_OK;
}

/* The last message is filled in by now, and still in the processor's cache. */
static void seal_last(struct iggy_batch_builder *b) {
    if (b->last == 0)
        return;
    uint8_t *p = b->ptr + b->last;
    le_set64(p + IN_CHECKSUM, message_checksum(p, b->len - b->last));
}

enum status iggy_batch_builder_add(struct iggy_batch_builder *b, const struct iggy_u128 *id,
                                   uint64_t timestamp_us, int32_t payload_len, int32_t headers_len,
                                   uint8_t **body_out) {
    if (timestamp_us < b->origin_timestamp_us ||
        timestamp_us - b->origin_timestamp_us > IGGY_BATCH_SPAN_US_MAX)
        return ST_BAD_TIMESTAMP;
    size_t end = b->len + IGGY_MESSAGE_HEADER_BYTES + (size_t)payload_len + (size_t)headers_len;
    if (end > INT32_MAX)
        return ST_TOO_BIG;
    enum status st = builder_reserve(b, end);
    if (st)
        return st;
    seal_last(b);
    uint8_t *p = b->ptr + b->len;
    memset(p, 0, IGGY_MESSAGE_HEADER_BYTES);
    if (id)
        memcpy(p + IN_ID, id->b, sizeof id->b);
    le_set32(p + IN_OFFSET_DELTA, b->next_delta++);
    le_set32(p + IN_TIMESTAMP_DELTA, (uint32_t)(timestamp_us - b->origin_timestamp_us));
    le_set32(p + IN_HEADERS_LENGTH, (uint32_t)headers_len);
    le_set32(p + IN_PAYLOAD_LENGTH, (uint32_t)payload_len);
    b->last = b->len;
    b->len = end;
    b->messages_count++;
    *body_out = p + IGGY_MESSAGE_HEADER_BYTES;
    return ST_OK;
}

void iggy_batch_builder_finish(struct iggy_batch_builder *b, struct bytes *batch_out) {
    seal_last(b);
    struct iggy_batch batch = {
        .partition_id = b->partition_id,
        .base_offset = b->base_offset,
        .base_timestamp_us = b->base_timestamp_us,
        .origin_timestamp_us = b->origin_timestamp_us,
        .messages_count = b->messages_count,
        .producer = b->producer,
        .frames = {b->ptr + IGGY_BATCH_HEADER_BYTES, (int32_t)(b->len - IGGY_BATCH_HEADER_BYTES)},
    };
    iggy_batch_write_header(b->ptr, &batch);
    *batch_out = (struct bytes){b->ptr, batch.size_bytes};
}

void iggy_batch_builder_release(struct iggy_batch_builder *b) {
    mem_free(b->ptr);
    *b = (struct iggy_batch_builder){0};
}
