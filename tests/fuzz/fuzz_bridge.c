/*
 * Between Kafka and Iggy. The first byte says what the rest is:
 *   0  a Kafka batch, with its header put right: one that passes the check and maps must come back with the same records; from the log it
 *      always maps
 *   1  Iggy messages (u8 payload length, u16 user headers length, both again and again), put into a batch with the right checksums: must map to
 *      a Kafka batch that can be read, or be refused, with and without skipping
 *   2  an Iggy batch as it is: read, checked, iterated and mapped in bounds, and one that passes makes the same header again
 *   3  TLV blocks and envelopes: what passes the check is read to its end
 */
#include <stdlib.h>

#include "base/be.h"
#include "base/crc32c.h"
#include "base/le.h"
#include "base/mem.h"
#include "bridge/envelope.h"
#include "bridge/message_map.h"
#include "bridge/record_map.h"
#include "iggy/tlv.h"

#define BYTES_MAX (1024 * 1024)

/* Memory used again by each input: what one leaves behind must not change what the next gives. */
static struct spare scratch, fetched;
static struct iggy_batch_builder sent;
static struct message_map map;

static void require(bool claim) {
    if (!claim)
        abort();
}

static bool bytes_equal(struct bytes a, struct bytes b) {
    return a.len == b.len && (a.len <= 0 || memcmp(a.ptr, b.ptr, (size_t)a.len) == 0);
}

/* ---- 0 ---- */

static void put_right(uint8_t *batch, size_t size) {
    batch_assign(batch, 0, -1);
    be_set(batch + 8, 4, size - 12);
    batch[16] = 2;
    be_set(batch + 23, 4, be_get(batch + 57, 4) - 1);
    be_set(batch + 17, 4, crc32c(0, batch + 21, size - 21));
}

static void headers_match(struct record *a, struct record *b) {
    require(a->headers_count == b->headers_count);
    for (int32_t i = 0; i < a->headers_count; i++) {
        struct record_header x, y;
        require(!record_header_next(&a->headers, &x) && !record_header_next(&b->headers, &y));
        require(str_equal(x.key, y.key) && bytes_equal(x.value, y.value));
    }
}

static void records_match(const struct batch *produced, struct bytes body, const struct batch *served) {
    struct records_iter a, b;
    struct record x, y;
    require(produced->records_count == served->records_count);
    records_iter_init(&a, body, produced->records_count);
    records_iter_init(&b, served->body, served->records_count);
    for (int32_t i = 0; i < produced->records_count; i++) {
        require(!records_next(&a, &x) && !records_next(&b, &y));
        require(y.offset_delta == i && bytes_equal(x.key, y.key) && bytes_equal(x.value, y.value));
        int64_t timestamp = (int64_t)((uint64_t)produced->base_timestamp + (uint64_t)x.timestamp_delta);
        require(record_timestamp(served, &y) == (timestamp == -1 ? 0 : timestamp));
        headers_match(&x, &y);
    }
}

/* From the log nothing is refused, and every piece is as a server stores it. */
static void stored_batch(const struct batch *produced, struct bytes body, int64_t bytes_max) {
    struct records_map m;
    struct bytes bytes;
    struct iggy_batch b;
    struct batch stored = *produced;
    uint64_t next = stored.base_offset = 77;
    enum status st;
    require(!records_map_init(&m, &stored, body, 0));
    while ((st = records_map_next(&m, bytes_max, &sent, &bytes)) == ST_OK) {
        require(!iggy_batch_read(bytes, false, &b) && !iggy_batch_check(&b, false));
        require(b.base_offset == next && (bytes.len <= bytes_max || b.messages_count == 1));
        next += b.messages_count;
        message_map_init(&map, &fetched, 0, false);
        require(message_map_add(&map, &b, INT32_MAX) != ST_NO_MEMORY);
    }
    require(st == ST_NOT_FOUND && next == 77 + (uint64_t)stored.records_count);
}

static void kafka_batch(const uint8_t *data, size_t size) {
    static const struct batch_limits limits = {
        .bytes_max = BYTES_MAX, .slots_max = 16384, .timestamp_max = INT64_MAX, .zstd_allowed = true};
    struct batch_report report;
    struct bytes body, bytes;
    struct iggy_batch b;
    struct batch served;
    const char *reason = NULL;
    if (size < BATCH_HEADER_BYTES)
        return;
    uint8_t *copy = mem_take(size);
    require(copy != NULL);
    memcpy(copy, data, size);
    put_right(copy, size);
    if (!batch_check((struct bytes){copy, (int32_t)size}, &limits, &scratch, &report)) {
        require(!batch_records(&report.batch, BYTES_MAX, &scratch, &body));
        stored_batch(&report.batch, body, data[size - 1] * 16);
        if (!records_to_messages(&report.batch, body, true, &sent, &bytes, &reason)) {
            require(!iggy_batch_read(bytes, true, &b) && !iggy_batch_check(&b, true));
            message_map_init(&map, &fetched, 0, false);
            require(!message_map_add(&map, &b, INT32_MAX) && !message_map_finish(&map, &bytes));
            require(!batch_read(bytes, &served));
            records_match(&report.batch, body, &served);
        } else {
            require(reason != NULL);
        }
    }
    mem_free(copy);
}

/* ---- 1, 2 ---- */

static void serve(const struct iggy_batch *b, bool skip) {
    struct bytes bytes;
    struct batch served;
    struct records_iter it;
    struct record r;
    message_map_init(&map, &fetched, 0, skip);
    enum status st = message_map_add(&map, b, INT32_MAX);
    require(st != ST_NO_MEMORY && (st != ST_UNMAPPABLE || !skip));
    if (message_map_finish(&map, &bytes))
        return;
    require(!batch_read(bytes, &served) && served.size_bytes == bytes.len);
    records_iter_init(&it, served.body, served.records_count);
    for (int32_t i = 0; i < served.records_count; i++)
        require(!records_next(&it, &r) && r.offset_delta <= served.last_offset_delta);
    require(records_next(&it, &r) == ST_NOT_FOUND);
}

static void iggy_messages(const uint8_t *at, size_t size) {
    struct bytes bytes;
    struct iggy_batch b;
    require(!iggy_batch_builder_init(&sent, 1700000000000000, 0));
    while (size >= 3) {
        size_t payload = at[0], headers = (size_t)le_get(at + 1, 2);
        at += 3;
        size -= 3;
        payload = payload < size ? payload : size;
        headers = headers < size - payload ? headers : size - payload;
        uint8_t *body;
        require(!iggy_batch_builder_add(&sent, NULL, sent.origin_timestamp_us + payload, (int32_t)payload,
                                        (int32_t)headers, &body));
        memcpy(body, at, payload + headers);
        at += payload + headers;
        size -= payload + headers;
    }
    if (sent.messages_count == 0)
        return;
    iggy_batch_builder_finish(&sent, &bytes);
    require(!iggy_batch_read(bytes, false, &b) && !iggy_batch_check(&b, true));
    serve(&b, false);
    serve(&b, true);
}

static void iggy_batch(struct bytes in) {
    struct iggy_batch b;
    uint8_t header[IGGY_BATCH_HEADER_BYTES];
    if (iggy_batch_read(in, true, &b))
        return;
    serve(&b, true); /* as if nobody had checked it */
    if (iggy_batch_check(&b, false))
        return;
    iggy_batch_write_header(header, &b);
    require(memcmp(header, in.ptr, sizeof header) == 0);
}

/* ---- 3 ---- */

static void blocks(struct bytes in) {
    struct tlv_entry entry;
    struct envelope e;
    struct bytes left = in;
    bool good = !tlv_check(in);
    require(good || tlv_check_options(in) != ST_OK);
    while (!tlv_next(&left, &entry)) {
        uint8_t copy[TLV_ENTRY_OVERHEAD + 2 * TLV_FIELD_BYTES_MAX];
        size_t size = (size_t)(tlv_write(copy, &entry) - copy);
        require(size == tlv_bytes((size_t)entry.key.len, (size_t)entry.value.len));
        require(memcmp(copy, left.ptr - size, size) == 0);
    }
    require(good == (left.len == 0));
    if (envelope_read(in, &e))
        return;
    for (uint32_t i = 0; i < e.headers_count; i++) {
        struct record_header h;
        envelope_header_next(&e.headers, &h);
    }
    require(e.headers.len == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    struct bytes in = {data + 1, (int32_t)(size - 1)};
    switch (data[0] % 4) {
    case 0:
        kafka_batch(in.ptr, size - 1);
        break;
    case 1:
        iggy_messages(in.ptr, size - 1);
        break;
    case 2:
        iggy_batch(in);
        break;
    default:
        blocks(in);
    }
    return 0;
}
