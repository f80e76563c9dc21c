#include "wire/records.h"

#include "base/be.h"
#include "base/crc32c.h"

/* Where the header's fields stand; the CRC covers everything from AT_ATTRIBUTES on. */
enum {
    AT_BASE_OFFSET = 0,
    AT_LENGTH = 8,
    AT_LEADER_EPOCH = 12,
    AT_MAGIC = 16,
    AT_CRC = 17,
    AT_ATTRIBUTES = 21,
    AT_LAST_OFFSET_DELTA = 23,
    AT_BASE_TIMESTAMP = 27,
    AT_MAX_TIMESTAMP = 35,
    AT_PRODUCER_ID = 43,
    AT_PRODUCER_EPOCH = 51,
    AT_BASE_SEQUENCE = 53,
    AT_RECORDS_COUNT = 57,
};
#define LENGTH_END        12 /* batch_length counts what follows it */
#define MAGIC             2
#define CODEC_MASK        7
#define RECORD_BYTES_MIN  7 /* a record is at least a length, attributes and five varints */
#define VARINT_BYTES_MAX  5
#define VARLONG_BYTES_MAX 10
#define TIMESTAMP_NONE    (-1)

/* ---- batch header ---- */

static enum status batch_parse(struct bytes in, struct batch *out) {
    *out = (struct batch){0};
    if (in.len <= AT_MAGIC)
        return ST_TRUNCATED;
    const uint8_t *p = in.ptr;
    out->magic = (int8_t)p[AT_MAGIC];
    if (out->magic != MAGIC)
        return ST_BAD_RECORD;
    int32_t length = (int32_t)be_get(p + AT_LENGTH, 4);
    if (length < BATCH_HEADER_BYTES - LENGTH_END || length > INT32_MAX - LENGTH_END)
        return ST_BAD_LENGTH;
    if (in.len < LENGTH_END + length)
        return ST_TRUNCATED;
    out->size_bytes = LENGTH_END + length;
    out->base_offset = (int64_t)be_get(p + AT_BASE_OFFSET, 8);
    out->leader_epoch = (int32_t)be_get(p + AT_LEADER_EPOCH, 4);
    out->crc = (uint32_t)be_get(p + AT_CRC, 4);
    out->attributes = (int16_t)be_get(p + AT_ATTRIBUTES, 2);
    out->last_offset_delta = (int32_t)be_get(p + AT_LAST_OFFSET_DELTA, 4);
    out->base_timestamp = (int64_t)be_get(p + AT_BASE_TIMESTAMP, 8);
    out->max_timestamp = (int64_t)be_get(p + AT_MAX_TIMESTAMP, 8);
    out->producer_id = (int64_t)be_get(p + AT_PRODUCER_ID, 8);
    out->producer_epoch = (int16_t)be_get(p + AT_PRODUCER_EPOCH, 2);
    out->base_sequence = (int32_t)be_get(p + AT_BASE_SEQUENCE, 4);
    out->records_count = (int32_t)be_get(p + AT_RECORDS_COUNT, 4);
    out->log_append_time = (out->attributes & BATCH_LOG_APPEND_TIME) != 0;
    out->transactional = (out->attributes & BATCH_TRANSACTIONAL) != 0;
    out->control = (out->attributes & BATCH_CONTROL) != 0;
    out->body = (struct bytes){p + BATCH_HEADER_BYTES, out->size_bytes - BATCH_HEADER_BYTES};
    return ST_OK;
}

/* Not part of batch_parse: a batch whose CRC is wrong may have any codec id, and is to be sent again. */
static enum status batch_set_codec(struct batch *b) {
    unsigned id = (unsigned)b->attributes & CODEC_MASK;
    if (id > CODEC_ZSTD)
        return ST_BAD_RECORD;
    b->codec = (enum codec)id;
    return ST_OK;
}

enum status batch_read(struct bytes in, struct batch *out) {
    enum status st = batch_parse(in, out);
    return st ? st : batch_set_codec(out);
}

static uint32_t batch_crc(const uint8_t *batch, int32_t size_bytes) {
    return crc32c(0, batch + AT_ATTRIBUTES, (size_t)(size_bytes - AT_ATTRIBUTES));
}

void batch_assign(uint8_t *batch, int64_t base_offset, int32_t leader_epoch) {
    be_set(batch + AT_BASE_OFFSET, 8, (uint64_t)base_offset);
    be_set(batch + AT_LEADER_EPOCH, 4, (uint32_t)leader_epoch);
}

void batch_set_max_timestamp(uint8_t *batch, int32_t size_bytes, int64_t max_timestamp) {
    be_set(batch + AT_MAX_TIMESTAMP, 8, (uint64_t)max_timestamp);
    be_set(batch + AT_CRC, 4, batch_crc(batch, size_bytes));
}

void batch_set_append_time(uint8_t *batch, int32_t size_bytes, int64_t append_ms) {
    be_set(batch + AT_ATTRIBUTES, 2, be_get(batch + AT_ATTRIBUTES, 2) | BATCH_LOG_APPEND_TIME);
    batch_set_max_timestamp(batch, size_bytes, append_ms);
}

enum status batch_recode(const uint8_t *batch, struct bytes body, enum codec codec, struct spare *out) {
    enum status st = spare_reserve(out, BATCH_HEADER_BYTES + (codec == CODEC_NONE ? (size_t)body.len : 0));
    if (st)
        return st;
    memcpy(out->ptr, batch, BATCH_HEADER_BYTES);
    out->len = BATCH_HEADER_BYTES;
    if (codec == CODEC_NONE) {
        memcpy(out->ptr + BATCH_HEADER_BYTES, body.ptr, (size_t)body.len);
        out->len += (size_t)body.len;
    } else {
        st = codec_deflate(codec, body, out);
    }
    if (st)
        return st;
    if (out->len > INT32_MAX)
        return ST_TOO_BIG;
    uint8_t *p = out->ptr;
    int32_t size_bytes = (int32_t)out->len;
    be_set(p + AT_LENGTH, 4, (uint32_t)(size_bytes - LENGTH_END));
    be_set(p + AT_ATTRIBUTES, 2, (be_get(p + AT_ATTRIBUTES, 2) & ~(uint64_t)CODEC_MASK) | codec);
    be_set(p + AT_CRC, 4, batch_crc(p, size_bytes));
    return ST_OK;
}

/* ---- records: readers return where they stopped, or NULL: not well formed ---- */

static const uint8_t *varint_read_slow(const uint8_t *at, const uint8_t *end, int bytes_max, uint64_t *out) {
    uint64_t v = 0;
    for (int i = 0; i < bytes_max; i++) {
        if (at == end)
            return NULL;
        uint8_t b = *at++;
        v |= (uint64_t)(b & 0x7f) << (7 * i);
        if (b & 0x80)
            continue;
        /* The last byte holds what is left of 32 or 64 bits. Clients disagree on what more in it would mean. */
        bool fits =
            i + 1 < bytes_max || b < (bytes_max == VARINT_BYTES_MAX ? 1u << (32 - 28) : 1u << (64 - 63));
        *out = v;
        return fits ? at : NULL;
    }
    return NULL;
}

/* Nearly all are of one or two bytes. */
static inline const uint8_t *varint_read(const uint8_t *at, const uint8_t *end, int bytes_max, int64_t *out) {
    uint64_t v;
    if (at < end && at[0] < 0x80) {
        v = *at++;
    } else if (end - at >= 2 && at[1] < 0x80) {
        v = (uint64_t)(at[0] & 0x7f) | (uint64_t)at[1] << 7;
        at += 2;
    } else {
        uint64_t slow = 0;
        at = varint_read_slow(at, end, bytes_max, &slow);
        v = slow;
    }
    *out = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
    return at;
}

/* A length and as many bytes. */
static inline const uint8_t *field_read(const uint8_t *at, const uint8_t *end, int64_t len_min,
                                        struct bytes *out) {
    int64_t len;
    at = varint_read(at, end, VARINT_BYTES_MAX, &len);
    if (!at || len < len_min || len > end - at)
        return NULL;
    *out = (struct bytes){len < 0 ? NULL : at, (int32_t)len};
    return len < 0 ? at : at + len;
}

static inline const uint8_t *header_read(const uint8_t *at, const uint8_t *end, struct record_header *out) {
    struct bytes name;
    at = field_read(at, end, 0, &name);
    if (!at)
        return NULL;
    out->key = (struct str){(const char *)name.ptr, name.len};
    return field_read(at, end, -1, &out->value);
}

/* The record that is exactly [at, end). NULL: well formed; else what is wrong with it. */
static inline const char *record_parse(const uint8_t *at, const uint8_t *end, struct record *out) {
    int64_t headers_count;
    if (at == end)
        return "A record is empty.";
    out->attributes = (int8_t)*at++;
    if (!(at = varint_read(at, end, VARLONG_BYTES_MAX, &out->timestamp_delta)))
        return "A record's timestamp delta is not a varint.";
    if (!(at = varint_read(at, end, VARINT_BYTES_MAX, &out->offset_delta)))
        return "A record's offset delta is not a varint.";
    if (!(at = field_read(at, end, -1, &out->key)))
        return "A record's key does not fit into the record.";
    if (!(at = field_read(at, end, -1, &out->value)))
        return "A record's value does not fit into the record.";
    if (!(at = varint_read(at, end, VARINT_BYTES_MAX, &headers_count)))
        return "A record's header count is not a varint.";
    if (headers_count < 0)
        return "A record's header count is negative.";
    out->headers = (struct bytes){at, (int32_t)(end - at)};
    out->headers_count = (int32_t)headers_count;
    for (int64_t i = 0; i < headers_count; i++) {
        struct record_header h;
        if (!(at = header_read(at, end, &h)))
            return "A record header is not well formed.";
    }
    return at == end ? NULL : "Bytes are left at the end of a record.";
}

/* The record at *at, which moves behind it. NULL: well formed; else what is wrong. */
static inline const char *record_take(const uint8_t **at, const uint8_t *end, struct record *out) {
    int64_t len;
    const uint8_t *start = varint_read(*at, end, VARINT_BYTES_MAX, &len);
    if (!start || len < 0 || len > end - start)
        return "A record's length is more than the batch holds.";
    /* By the length, not by where the parsing ends: the processor then starts on the next record at once. */
    *at = start + len;
    return record_parse(start, start + len, out);
}

void records_iter_init(struct records_iter *it, struct bytes body, int32_t records_count) {
    *it = (struct records_iter){body.ptr, body.len > 0 ? body.ptr + body.len : body.ptr, records_count};
}

enum status records_next(struct records_iter *it, struct record *out) {
    if (it->left <= 0)
        return it->left == 0 && it->at == it->end ? ST_NOT_FOUND : ST_BAD_RECORD;
    it->left--;
    return record_take(&it->at, it->end, out) ? ST_BAD_RECORD : ST_OK;
}

enum status record_header_next(struct bytes *at, struct record_header *out) {
    const uint8_t *next = at->len > 0 ? header_read(at->ptr, at->ptr + at->len, out) : NULL;
    if (!next)
        return ST_BAD_RECORD;
    *at = (struct bytes){next, (int32_t)(at->ptr + at->len - next)};
    return ST_OK;
}

enum status batch_records(const struct batch *b, int64_t bytes_max, struct spare *scratch,
                          struct bytes *body_out) {
    bytes_max = bytes_max < INT32_MAX ? bytes_max : INT32_MAX;
    if (b->codec == CODEC_NONE) {
        *body_out = b->body;
        return b->body.len > bytes_max ? ST_TOO_BIG : ST_OK;
    }
    enum status st = codec_inflate(b->codec, b->body, bytes_max > 0 ? (size_t)bytes_max : 0, scratch);
    if (!st)
        *body_out = (struct bytes){scratch->ptr, (int32_t)scratch->len};
    return st;
}

/* ---- check ---- */

static enum status refuse(struct batch_report *out, enum status st, const char *reason) {
    out->reason = reason;
    return st;
}

/* Exactly one batch whose CRC is right. */
static enum status check_frame(struct bytes records, struct batch_report *out) {
    if (records.len <= 0)
        return refuse(out, ST_BAD_RECORD, "There are no records.");
    enum status st = batch_parse(records, &out->batch);
    if (st == ST_BAD_RECORD)
        return refuse(out, st, "Only record batches of magic 2 are accepted.");
    if (st)
        return refuse(out, ST_BAD_RECORD, "There is no whole record batch.");
    if (records.len > out->batch.size_bytes)
        return refuse(out, ST_BAD_RECORD, "A partition must get exactly one record batch.");
    if (batch_crc(records.ptr, out->batch.size_bytes) != out->batch.crc)
        return refuse(out, ST_BAD_CRC, "The CRC of the record batch is wrong.");
    return ST_OK;
}

/* What the header says must be what a producer may send. */
static enum status check_header(const struct batch_limits *limits, struct batch_report *out) {
    struct batch *b = &out->batch;
    if (batch_set_codec(b))
        return refuse(out, ST_BAD_RECORD, "The compression type is unknown.");
    if (b->codec == CODEC_ZSTD && !limits->zstd_allowed)
        return refuse(out, ST_BAD_CODEC, "Produce requests below version 7 may not use zstd.");
    if (b->transactional || b->control)
        return refuse(out, ST_TRANSACTIONAL, "Transactional and control batches are not supported.");
    if (b->base_offset != 0)
        return refuse(out, ST_BAD_RECORD, "The base offset of a produced batch must be 0.");
    if (b->records_count <= 0 || b->last_offset_delta != b->records_count - 1)
        return refuse(out, ST_BAD_RECORD, "The record count does not match the last offset delta.");
    if (b->producer_id >= 0 && b->base_sequence < 0)
        return refuse(out, ST_BAD_RECORD, "A batch with a producer id needs a sequence number.");
    if (b->log_append_time && b->max_timestamp == TIMESTAMP_NONE)
        return refuse(out, ST_BAD_TIMESTAMP, "A batch marked LogAppendTime has no time.");
    return ST_OK;
}

/* Declared counts against what there is, before any of it is inflated or walked (D1-7, D1-40). */
static enum status check_count(const struct batch_limits *limits, struct batch_report *out) {
    const struct batch *b = &out->batch;
    int64_t needed = (int64_t)b->records_count * RECORD_BYTES_MIN;
    int64_t inflated_max = limits->bytes_max < INT32_MAX ? limits->bytes_max : INT32_MAX;
    if (needed > b->body.len + (b->codec == CODEC_NONE ? 0 : inflated_max))
        return refuse(out, ST_BAD_RECORD, "The batch declares more records than its bytes can hold.");
    if (b->records_count > limits->slots_max) {
        out->used_slots = limits->slots_max;
        return refuse(out, ST_TOO_BIG, "The batch holds more records than are allowed for a partition.");
    }
    return ST_OK;
}

static enum status check_body(const struct batch_limits *limits, struct spare *scratch,
                              struct batch_report *out, struct bytes *body_out) {
    enum status st = batch_records(&out->batch, limits->bytes_max, scratch, body_out);
    if (out->batch.codec != CODEC_NONE)
        out->used_bytes = st == ST_TOO_BIG ? limits->bytes_max : (int64_t)scratch->len;
    if (st == ST_TOO_BIG)
        return refuse(out, st, "The records are larger than is allowed for a partition.");
    if (st == ST_BAD_RECORD)
        return refuse(out, st, "The compressed records can't be decompressed.");
    return st ? refuse(out, st, status_text(st)) : ST_OK;
}

/* Every record. NULL: all well formed and as many as declared; else what is wrong. */
static const char *walk_records(struct bytes body, struct batch_report *out) {
    const struct batch b = out->batch;
    const uint8_t *at = body.ptr, *end = body.ptr + body.len;
    int64_t max_timestamp = TIMESTAMP_NONE, slots = 0;
    const char *reason = NULL;
    for (int32_t i = 0; i < b.records_count && !reason; i++) {
        struct record r;
        reason = record_take(&at, end, &r);
        if (reason)
            break;
        out->keyless |= r.key.len < 0;
        slots += 1 + r.headers_count / 3; /* D1-40: a slot holds three headers */
        int64_t timestamp = record_timestamp(&b, &r);
        max_timestamp = timestamp > max_timestamp ? timestamp : max_timestamp;
    }
    out->used_slots = slots;
    out->max_timestamp = max_timestamp;
    if (!reason && at != end)
        reason = "Bytes are left after the last record that the batch declares.";
    return reason;
}

enum status batch_check(struct bytes records, const struct batch_limits *limits, struct spare *scratch,
                        struct batch_report *out) {
    *out = (struct batch_report){.max_timestamp = TIMESTAMP_NONE};
    struct bytes body;
    enum status st = check_frame(records, out);
    out->used_bytes = (out->batch.attributes & CODEC_MASK) == CODEC_NONE ? out->batch.body.len : 0;
    out->framed = st == ST_OK;
    if (!st)
        st = check_header(limits, out);
    if (!st)
        st = check_count(limits, out);
    if (!st)
        st = check_body(limits, scratch, out, &body);
    if (st)
        return st;
    out->body = body;
    const char *reason = walk_records(body, out);
    if (reason)
        return refuse(out, ST_BAD_RECORD, reason);
    if (out->used_slots > limits->slots_max)
        return refuse(out, ST_TOO_BIG, "The records have more headers than are allowed for a partition.");
    if (out->max_timestamp > limits->timestamp_max)
        return refuse(out, ST_BAD_TIMESTAMP,
                      "One or more records have been rejected due to invalid timestamp");
    if (out->keyless && limits->keys_required)
        return refuse(out, ST_NO_KEY, "One or more records without a key have been rejected");
    return ST_OK;
}

/* ---- build ---- */

static uint64_t zigzag(int64_t v) {
    return (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0);
}

static size_t varint_bytes(int64_t value) {
    size_t n = 1;
    for (uint64_t v = zigzag(value); v >= 0x80; v >>= 7)
        n++;
    return n;
}

static uint8_t *varint_write(uint8_t *at, int64_t value) {
    uint64_t v = zigzag(value);
    for (; v >= 0x80; v >>= 7)
        *at++ = (uint8_t)(v | 0x80);
    *at++ = (uint8_t)v;
    return at;
}

static size_t field_bytes(int32_t len) {
    return varint_bytes(len) + (len > 0 ? (size_t)len : 0);
}

static uint8_t *field_write(uint8_t *at, const void *ptr, int32_t len) {
    at = varint_write(at, len);
    if (len <= 0)
        return at;
    memcpy(at, ptr, (size_t)len);
    return at + len;
}

enum status batch_builder_init(struct batch_builder *b, struct spare *out, int64_t base_timestamp) {
    *b = (struct batch_builder){.out = out,
                                .base_timestamp = base_timestamp,
                                .max_timestamp = TIMESTAMP_NONE,
                                .last_offset_delta = -1,
                                .leader_epoch = -1,
                                .base_sequence = -1,
                                .producer_id = -1,
                                .producer_epoch = -1};
    out->len = 0;
    enum status st = spare_reserve(out, BATCH_HEADER_BYTES);
    if (!st)
        out->len = BATCH_HEADER_BYTES;
    return st;
}

enum status batch_builder_add(struct batch_builder *b, int64_t timestamp, int32_t offset_delta,
                              struct bytes key, struct bytes value, const struct record_header *headers,
                              int32_t headers_count) {
    int64_t timestamp_delta = (int64_t)((uint64_t)timestamp - (uint64_t)b->base_timestamp);
    if (offset_delta < 0)
        offset_delta = b->records_count;
    size_t size = 1 + varint_bytes(timestamp_delta) + varint_bytes(offset_delta) + field_bytes(key.len) +
                  field_bytes(value.len) + varint_bytes(headers_count);
    for (int32_t i = 0; i < headers_count; i++)
        size += field_bytes(headers[i].key.len) + field_bytes(headers[i].value.len);
    size_t end = b->out->len + VARINT_BYTES_MAX + size;
    if (end > INT32_MAX)
        return ST_TOO_BIG;
    enum status st = spare_reserve(b->out, end);
    if (st)
        return st;
    uint8_t *at = varint_write(b->out->ptr + b->out->len, (int64_t)size);
    *at++ = 0; /* record attributes: none are defined */
    at = varint_write(at, timestamp_delta);
    at = varint_write(at, offset_delta);
    at = field_write(at, key.ptr, key.len);
    at = field_write(at, value.ptr, value.len);
    at = varint_write(at, headers_count);
    for (int32_t i = 0; i < headers_count; i++) {
        at = field_write(at, headers[i].key.ptr, headers[i].key.len);
        at = field_write(at, headers[i].value.ptr, headers[i].value.len);
    }
    b->out->len = (size_t)(at - b->out->ptr);
    b->records_count++;
    b->last_offset_delta = offset_delta;
    if (timestamp > b->max_timestamp)
        b->max_timestamp = timestamp;
    return ST_OK;
}

enum status batch_builder_finish(struct batch_builder *b, int64_t base_offset, enum codec codec,
                                 struct spare *scratch, struct bytes *batch_out) {
    struct spare *out = b->out;
    if (codec != CODEC_NONE) {
        struct bytes body = {out->ptr + BATCH_HEADER_BYTES, (int32_t)(out->len - BATCH_HEADER_BYTES)};
        scratch->len = 0;
        enum status st = codec_deflate(codec, body, scratch);
        if (!st)
            st = spare_reserve(out, BATCH_HEADER_BYTES + scratch->len);
        if (st)
            return st;
        memcpy(out->ptr + BATCH_HEADER_BYTES, scratch->ptr, scratch->len);
        out->len = BATCH_HEADER_BYTES + scratch->len;
    }
    uint8_t *p = out->ptr;
    int32_t size_bytes = (int32_t)out->len;
    batch_assign(p, base_offset, b->leader_epoch);
    be_set(p + AT_LENGTH, 4, (uint32_t)(size_bytes - LENGTH_END));
    p[AT_MAGIC] = MAGIC;
    be_set(p + AT_ATTRIBUTES, 2, (uint16_t)((unsigned)b->attributes | codec));
    be_set(p + AT_LAST_OFFSET_DELTA, 4, (uint32_t)b->last_offset_delta);
    be_set(p + AT_BASE_TIMESTAMP, 8, (uint64_t)b->base_timestamp);
    be_set(p + AT_PRODUCER_ID, 8, (uint64_t)b->producer_id);
    be_set(p + AT_PRODUCER_EPOCH, 2, (uint16_t)b->producer_epoch);
    be_set(p + AT_BASE_SEQUENCE, 4, (uint32_t)b->base_sequence);
    be_set(p + AT_RECORDS_COUNT, 4, (uint32_t)b->records_count);
    batch_set_max_timestamp(p, size_bytes, b->max_timestamp);
    *batch_out = (struct bytes){p, size_bytes};
    return ST_OK;
}
