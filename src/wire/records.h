/*
 * Record batches, magic 2 (KIP-98): check, iterate, build. No I/O, no clock.
 *
 * A batch is a 61-byte header and its records, which may be compressed as a whole:
 *   0 base_offset i64 · 8 batch_length i32 (of what follows) · 12 partition_leader_epoch i32 · 16 magic i8 · 17 crc u32
 *   (CRC-32C of everything from 21 on) · 21 attributes i16 · 23 last_offset_delta i32 · 27 base_timestamp i64
 *   · 35 max_timestamp i64 · 43 producer_id i64 · 51 producer_epoch i16 · 53 base_sequence i32 · 57 records_count i32
 * base_offset and leader epoch lie before the CRC: a server assigns offsets by patching 12 bytes (batch_assign).
 */
#ifndef WIRE_RECORDS_H
#define WIRE_RECORDS_H

#include "base/base.h"
#include "wire/compress.h"

#define BATCH_HEADER_BYTES 61

struct batch {
    int64_t base_offset, base_timestamp, max_timestamp, producer_id;
    int32_t size_bytes; /* header included */
    int32_t leader_epoch, last_offset_delta, base_sequence, records_count;
    uint32_t crc;
    int16_t attributes, producer_epoch;
    int8_t magic;
    enum codec codec;
    bool log_append_time, transactional, control;
    struct bytes body; /* after the header, as stored; borrowed */
};
#define BATCH_LOG_APPEND_TIME 0x08 /* bits of attributes; the lowest three are the codec */
#define BATCH_TRANSACTIONAL   0x10
#define BATCH_CONTROL         0x20

/*
 * The header of the batch at the start of in; reads nothing behind its end, checks neither CRC nor records.
 * ST_TRUNCATED   in holds no whole batch; ST_BAD_LENGTH: its length is below that of a header, or no i32 with it
 * ST_BAD_RECORD  magic is not 2 (out->magic is set, nothing else), or codec id 5-7 (everything but codec is set)
 */
enum status batch_read(struct bytes in, struct batch *out) MUST_USE;

struct batch_limits {
    int64_t bytes_max;     /* records after decompression; spec D1-40, D1-42 */
    int64_t slots_max;     /* a record costs 1 + floor(headers / 3); D1-40 */
    int64_t timestamp_max; /* later than this: ST_BAD_TIMESTAMP; INT64_MAX: any */
    bool zstd_allowed;     /* false below Produce v7 */
    bool keys_required;    /* a record without a key: ST_NO_KEY */
};

/* What a check found. */
struct batch_report {
    struct batch batch;
    struct bytes
        body; /* the records, decompressed; borrowed from the field or from scratch; set with ST_OK */
    const char *reason; /* one sentence for error_message when the status is not ST_OK; static text */
    int64_t
        max_timestamp; /* the greatest of the records' (record_timestamp), at least -1; what should stand in the header */
    int64_t
        used_bytes; /* after decompression, also of a refused batch; bytes_max where that stopped it; D1-41 */
    int64_t used_slots;
    bool keyless; /* a record has no key */
    bool framed;  /* the field is one whole batch with the right CRC */
};

/*
 * Check a whole Produce records field: exactly one batch, and every record in it. Spec D1-6..D1-12, D1-40..D1-42.
 *
 * records      the field; {NULL, -1} null
 * scratch      grows to hold decompressed records; reusable between calls; spare_release when done with it
 * out          filled as far as the check came, also on failure
 * ST_BAD_RECORD    87: null, empty, no batch, two batches, trailing bytes, counts, lengths, undecodable compression, baseOffset,
 *                  sequence -1 with a producer id, codec id 5-7
 * ST_BAD_CRC       2
 * ST_BAD_TIMESTAMP 32: later than timestamp_max (the batch is else in order: iterate it to find which records), or the
 *                  LogAppendTime bit without a time
 * ST_NO_KEY        87: a record without a key, where keys are required (the batch is else in order, as above)
 * ST_BAD_CODEC     76: zstd where it is not allowed
 * ST_TRANSACTIONAL 35: transactional or control bit (D1-9)
 * ST_TOO_BIG       10: over bytes_max or slots_max;  ST_NO_MEMORY
 * No allocation when the batch is not compressed, and none by what a count declares (B-46). Any thread.
 * Accepted as Kafka does: record attributes, offset deltas and header names of any value, batch attribute bits 6 and 7, any leader epoch.
 */
enum status batch_check(struct bytes records, const struct batch_limits *limits, struct spare *scratch,
                        struct batch_report *out) MUST_USE;

/* Write the offset and epoch a server assigns into the batch's first 16 bytes; the CRC stays right. */
void batch_assign(uint8_t *batch, int64_t base_offset, int32_t leader_epoch);

/* Write max_timestamp into the header and the CRC anew over size_bytes. */
void batch_set_max_timestamp(uint8_t *batch, int32_t size_bytes, int64_t max_timestamp);

/* Give all its records this time in place of their own, which stay in it (LogAppendTime): a bit, the header's max_timestamp, the CRC anew. */
void batch_set_append_time(uint8_t *batch, int32_t size_bytes, int64_t append_ms);

/*
 * The same batch with its records in another codec: all else stays, but for length, attributes and CRC.
 *
 * batch   whole and checked
 * body    its records, decompressed (batch_report); not in out
 * out     gets the batch from byte 0
 * ST_TOO_BIG: the batch would pass 2 GiB; ST_NO_MEMORY. Any thread.
 */
enum status batch_recode(const uint8_t *batch, struct bytes body, enum codec codec,
                         struct spare *out) MUST_USE;

/* One record; key, value, headers are borrowed; len -1: null. */
struct record {
    int64_t timestamp_delta, offset_delta;
    struct bytes key, value;
    struct bytes headers; /* as on the wire, after their count: read with record_header_next */
    int32_t headers_count;
    int8_t attributes;
};

struct record_header {
    struct str key;
    struct bytes value; /* len -1: null */
};

struct records_iter {
    const uint8_t *at, *end;
    int32_t left;
};

/* A record's time, in ms: with the LogAppendTime bit that of the batch. Wraps as Java's long. */
static inline int64_t record_timestamp(const struct batch *b, const struct record *r) {
    return b->log_append_time ? b->max_timestamp
                              : (int64_t)((uint64_t)b->base_timestamp + (uint64_t)r->timestamp_delta);
}

/*
 * Iterate a batch's records. body_out of batch_records is what records_iter_init takes: the batch's body itself or, when
 * compressed, its decompressed form in scratch (valid until scratch is used again).
 * ST_TOO_BIG: over bytes_max; ST_BAD_RECORD: can't be decompressed; ST_NO_MEMORY.
 */
enum status batch_records(const struct batch *b, int64_t bytes_max, struct spare *scratch,
                          struct bytes *body_out) MUST_USE;
void records_iter_init(struct records_iter *it, struct bytes body, int32_t records_count);

/*
 * The next record, its headers checked. ST_OK; ST_NOT_FOUND: that was all, nothing is left over.
 * ST_BAD_RECORD: not well formed; the iterator is good for nothing more.
 */
enum status records_next(struct records_iter *it, struct record *out) MUST_USE;

/* The next header; at must begin as record->headers, and moves. The caller counts. ST_BAD_RECORD. */
enum status record_header_next(struct bytes *at, struct record_header *out) MUST_USE;

/*
 * Build one batch: init, add each record, finish. What stands after records_count is set by init to what a plain producer sends
 * and may be changed before finish.
 */
struct batch_builder {
    struct spare *out; /* borrowed; the batch grows here from byte 0 */
    int64_t base_timestamp, max_timestamp;
    int32_t records_count;
    int32_t last_offset_delta;           /* of the last record */
    int32_t leader_epoch, base_sequence; /* -1 */
    int64_t producer_id;                 /* -1 */
    int16_t producer_epoch;              /* -1 */
    int16_t attributes;                  /* without the codec; 0 */
};
/* base_timestamp: Java's producer takes the first record's. ST_NO_MEMORY. */
enum status batch_builder_init(struct batch_builder *b, struct spare *out, int64_t base_timestamp) MUST_USE;
/*
 * headers: headers_count pairs, a key is never null; offset_delta is the record's number in the batch unless it is >= 0.
 * ST_TOO_BIG: the batch would pass 2 GiB; ST_NO_MEMORY. After a failure the batch is as before the call.
 */
enum status batch_builder_add(struct batch_builder *b, int64_t timestamp, int32_t offset_delta,
                              struct bytes key, struct bytes value, const struct record_header *headers,
                              int32_t headers_count) MUST_USE;
/* Header, compression, CRC. batch_out points into out. ST_NO_MEMORY. scratch is used when codec is not CODEC_NONE. */
enum status batch_builder_finish(struct batch_builder *b, int64_t base_offset, enum codec codec,
                                 struct spare *scratch, struct bytes *batch_out) MUST_USE;
#endif
