/*
 * Record batches: an input as it is, and again with length, magic, offsets and CRC put right, so that the records are reached.
 * A batch that passes the check must iterate to as many records as it declares, and those, built into a batch again, must
 * pass with the same times and slots; in another codec it must be the same.
 */
#include <stdlib.h>

#include "base/be.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "wire/records.h"

#define BYTES_MAX   (1024 * 1024)
#define HEADERS_MAX 64

static const struct batch_limits limits = {
    .bytes_max = BYTES_MAX, .slots_max = 16384, .timestamp_max = INT64_MAX, .zstd_allowed = true};

/* Memory used again by each input: what one leaves behind must not change what the next gives. */
static struct spare scratch, built, packed, recoded;

static void require(bool claim) {
    if (!claim)
        abort();
}

static bool lies_in(struct bytes part, struct bytes whole) {
    return part.len < 0 || (part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len);
}

/* Reads all headers of a record; the first HEADERS_MAX go to out. */
static void read_headers(struct record *r, struct bytes body, struct record_header *out) {
    for (int32_t i = 0; i < r->headers_count; i++) {
        struct record_header h;
        require(record_header_next(&r->headers, &h) == ST_OK);
        require(lies_in((struct bytes){(const uint8_t *)h.key.ptr, h.key.len}, body) &&
                lies_in(h.value, body));
        if (i < HEADERS_MAX)
            out[i] = h;
    }
    require(r->headers.len == 0);
}

/* Iterates to the end; builds a batch of all records unless one has too many headers. */
static bool rebuild(const struct batch *b, struct bytes body, struct batch_builder *out) {
    struct records_iter it;
    struct record r;
    bool complete = true;
    records_iter_init(&it, body, b->records_count);
    require(batch_builder_init(out, &built, b->base_timestamp) == ST_OK);
    for (int32_t i = 0; i < b->records_count; i++) {
        struct record_header headers[HEADERS_MAX];
        require(records_next(&it, &r) == ST_OK);
        require(lies_in(r.key, body) && lies_in(r.value, body) && lies_in(r.headers, body));
        read_headers(&r, body, headers);
        int64_t timestamp = (int64_t)((uint64_t)b->base_timestamp + (uint64_t)r.timestamp_delta);
        complete = complete && r.headers_count <= HEADERS_MAX;
        if (complete)
            require(batch_builder_add(out, timestamp, -1, r.key, r.value, headers, r.headers_count) == ST_OK);
    }
    require(records_next(&it, &r) == ST_NOT_FOUND);
    return complete;
}

static void recode(struct bytes records, const struct batch_report *report, struct bytes body) {
    enum codec codec = (enum codec)(report->batch.crc % (CODEC_ZSTD + 1));
    struct batch_report again;
    require(batch_recode(records.ptr, body, codec, &recoded) == ST_OK);
    require(batch_check((struct bytes){recoded.ptr, (int32_t)recoded.len}, &limits, &packed, &again) ==
            ST_OK);
    require(again.batch.codec == codec && again.max_timestamp == report->max_timestamp);
    require(again.body.len == body.len && memcmp(again.body.ptr, body.ptr, (size_t)body.len) == 0);
}

static void check(struct bytes records) {
    struct batch_report report;
    if (batch_check(records, &limits, &scratch, &report)) {
        require(report.reason != NULL &&
                report.used_bytes <= (records.len > BYTES_MAX ? records.len : BYTES_MAX));
        return;
    }
    struct bytes body, batch;
    struct batch_builder builder;
    struct batch_report again;
    require(batch_records(&report.batch, BYTES_MAX, &scratch, &body) == ST_OK);
    require(body.len == report.used_bytes && body.len <= BYTES_MAX && scratch.room <= BYTES_MAX);
    recode(records, &report, body);
    if (!rebuild(&report.batch, body, &builder))
        return;
    require(batch_builder_finish(&builder, 0, report.batch.codec, &packed, &batch) == ST_OK);
    require(batch_check(batch, &limits, &scratch, &again) == ST_OK);
    require(again.batch.records_count == report.batch.records_count && again.used_slots == report.used_slots);
    require(report.batch.log_append_time || again.max_timestamp == report.max_timestamp);
    require(again.batch.max_timestamp == again.max_timestamp);
}

/* Whatever the check says: iterating a batch that nobody checked ends, in bounds. */
static void iterate(struct bytes records) {
    struct batch b;
    struct bytes body;
    struct records_iter it;
    struct record r;
    if (batch_read(records, &b) || batch_records(&b, BYTES_MAX, &scratch, &body))
        return;
    records_iter_init(&it, body, b.records_count);
    while (!records_next(&it, &r))
        read_headers(&r, body, (struct record_header[HEADERS_MAX]){0});
}

static void put_right(uint8_t *batch, size_t size) {
    batch_assign(batch, 0, -1);
    be_set(batch + 8, 4, size - 12);
    batch[16] = 2;
    be_set(batch + 23, 4, be_get(batch + 57, 4) - 1);
    be_set(batch + 17, 4, crc32c(0, batch + 21, size - 21));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bytes records = {data, (int32_t)size};
    check(records);
    iterate(records);
    if (size < BATCH_HEADER_BYTES)
        return 0;
    uint8_t *copy = mem_take(size);
    require(copy != NULL);
    memcpy(copy, data, size);
    put_right(copy, size);
    check((struct bytes){copy, (int32_t)size});
    iterate((struct bytes){copy, (int32_t)size});
    mem_free(copy);
    return 0;
}
