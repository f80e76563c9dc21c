/* records_map: batches of our own log as Iggy messages. */
#include <stdlib.h>

#include "base/le.h"
#include "base/mem.h"
#include "bridge/any_batch_test.h"
#include "bridge/message_map.h"
#include "bridge/record_map.h"
#include "iggy/tlv.h"
#include "testing/test.h"

#define VIEW(literal) ((struct bytes){(const uint8_t *)(literal), (int32_t)sizeof(literal) - 1})
#define T0            1700000000000 /* ms */
#define SPAN_US       4294967295u
#define BASE          500
#define PARTITION     3

/* Memory of all tests here, used again by each. */
static struct spare built, packed, scratch, fetched;
static struct iggy_batch_builder polled;
static struct message_map map;

/* ---- small batches with times and offset deltas as given ---- */

struct given {
    int64_t timestamp;
    int32_t delta;
};

static struct batch stored_batch(const struct given *given, int count, int16_t attributes) {
    struct batch_builder k;
    struct bytes bytes;
    struct batch b;
    CHECK_EQ(batch_builder_init(&k, &built, given[0].timestamp), ST_OK);
    k.attributes = attributes;
    for (int i = 0; i < count; i++)
        CHECK_EQ(batch_builder_add(&k, given[i].timestamp, given[i].delta, BYTES_NULL, VIEW("v"), NULL, 0),
                 ST_OK);
    CHECK_EQ(batch_builder_finish(&k, BASE, CODEC_NONE, NULL, &bytes), ST_OK);
    CHECK_EQ(batch_read(bytes, &b), ST_OK);
    return b;
}

static struct iggy_batch next(struct records_map *m, int64_t bytes_max) {
    struct bytes bytes;
    struct iggy_batch b;
    m->partition = PARTITION;
    CHECK_EQ(records_map_next(m, bytes_max, &polled, &bytes), ST_OK);
    CHECK_EQ(iggy_batch_read(bytes, false, &b), ST_OK); /* readers of 0.11 take it */
    CHECK_EQ(b.size_bytes, bytes.len);
    CHECK_EQ(iggy_batch_check(&b, false), ST_OK);
    CHECK_EQ(b.partition_id, PARTITION);
    return b;
}

static struct iggy_batch converted(const struct batch *k) {
    struct records_map m;
    struct bytes bytes;
    CHECK_EQ(records_map_init(&m, k, k->body, 0), ST_OK);
    struct iggy_batch b = next(&m, INT32_MAX);
    struct iggy_batch_builder unused = {0};
    CHECK_EQ(records_map_next(&m, INT32_MAX, &unused, &bytes), ST_NOT_FOUND);
    iggy_batch_builder_release(&unused);
    return b;
}

static struct iggy_message message_at(const struct iggy_batch *b, int number) {
    struct iggy_messages_iter it;
    struct iggy_message m;
    iggy_messages_init(&it, b);
    for (int i = 0; i <= number; i++)
        CHECK_EQ(iggy_messages_next(&it, &m), ST_OK);
    return m;
}

static uint64_t offset_at(const struct iggy_batch *b, int number) {
    return b->base_offset + message_at(b, number).offset_delta;
}

/* The message's own time, and that in kafka.ts; INT64_MAX: it has none. */
static void check_time(const struct iggy_batch *b, int number, uint64_t origin_us, int64_t marker_ms) {
    struct iggy_message m = message_at(b, number);
    struct tlv_entry e;
    bool marked = tlv_find(m.headers, STR("kafka.ts"), &e);
    CHECK(b->origin_timestamp_us + m.timestamp_delta_us == origin_us);
    CHECK_EQ(marked, marker_ms != INT64_MAX);
    if (marked) {
        CHECK_EQ(e.value_kind, TLV_I64);
        CHECK_EQ(e.value.len, 8);
        CHECK((int64_t)le_get64(e.value.ptr) == marker_ms);
    }
}

/* D1-12: the log has what Kafka accepts. */
TEST(a_time_that_no_message_can_have_is_kept_in_a_header) {
    const struct given given[] = {{T0, -1}, {-2, -1},           {INT64_MIN, -1}, {0, -1},
                                  {-1, -1}, {T0 + 7200000, -1}, {INT64_MAX, -1}};
    struct batch k = stored_batch(given, COUNT_OF(given), 0);
    struct iggy_batch b = converted(&k);
    const uint64_t start = (uint64_t)T0 * 1000;
    check_time(&b, 0, start, INT64_MAX);
    check_time(&b, 1, start, -2);
    check_time(&b, 2, start, INT64_MIN);
    check_time(&b, 3, start, 0);
    check_time(&b, 4, start, -1);
    check_time(&b, 5, start + SPAN_US, T0 + 7200000);
    CHECK(message_at(&b, 6).timestamp_delta_us == SPAN_US);
    CHECK(b.base_timestamp_us == UINT64_MAX);
}

TEST(times_before_1970_alone_need_no_window) {
    const struct given given[] = {{-5, -1}, {-1, -1}};
    struct batch k = stored_batch(given, 2, 0);
    struct iggy_batch b = converted(&k);
    check_time(&b, 0, 0, -5);
    check_time(&b, 1, 0, INT64_MAX);
    CHECK(b.base_timestamp_us == 0);
}

TEST(the_append_time_is_the_greatest_time_of_the_batch) {
    const struct given given[] = {{T0 + 5, -1}, {T0, -1}};
    struct batch k = stored_batch(given, 2, 0);
    struct iggy_batch b = converted(&k);
    CHECK(b.base_timestamp_us == (uint64_t)(T0 + 5) * 1000);
    CHECK_EQ(b.base_offset, BASE);
}

TEST(log_append_time_is_the_time_of_all_its_records) {
    const struct given given[] = {{T0 + 5, -1}, {T0, -1}};
    struct batch k = stored_batch(given, 2, BATCH_LOG_APPEND_TIME);
    struct iggy_batch b = converted(&k);
    check_time(&b, 0, (uint64_t)(T0 + 5) * 1000, INT64_MAX);
    check_time(&b, 1, (uint64_t)(T0 + 5) * 1000, INT64_MAX);
}

TEST(gaps_between_offsets_stay) {
    const struct given given[] = {{T0, 2}, {T0, 3}, {T0, 900}};
    struct batch k = stored_batch(given, 3, 0);
    struct iggy_batch b = converted(&k);
    CHECK_EQ(offset_at(&b, 0), BASE + 2);
    CHECK_EQ(offset_at(&b, 1), BASE + 3);
    CHECK_EQ(offset_at(&b, 2), BASE + 900);
}

TEST(offset_deltas_that_do_not_ascend_are_the_records_numbers) {
    static const int32_t deltas[][3] = {{0, 0, 2}, {1, 0, 2}, {7, 8, 2}, {0, 1, 1}};
    for (size_t i = 0; i < COUNT_OF(deltas); i++) {
        const struct given given[] = {{T0, deltas[i][0]}, {T0, deltas[i][1]}, {T0, deltas[i][2]}};
        struct batch k = stored_batch(given, 3, 0);
        k.last_offset_delta = 2;
        struct iggy_batch b = converted(&k);
        for (int n = 0; n < 3; n++)
            CHECK_EQ(offset_at(&b, n), BASE + n);
    }
}

TEST(a_batch_with_fewer_offsets_than_records_is_refused) {
    const struct given given[] = {{T0, 0}, {T0, 1}};
    struct batch k = stored_batch(given, 2, 0);
    struct records_map m;
    k.last_offset_delta = 0;
    CHECK_EQ(records_map_init(&m, &k, k.body, 0), ST_BAD_RECORD);
    k.last_offset_delta = 1;
    k.records_count = 3;
    CHECK_EQ(records_map_init(&m, &k, k.body, 0), ST_BAD_RECORD);
}

TEST(records_below_the_offset_are_left_out) {
    const struct given given[] = {{T0, 0}, {T0, 5}, {T0, 6}};
    struct batch k = stored_batch(given, 3, 0);
    struct records_map m;
    struct bytes bytes;
    CHECK_EQ(records_map_init(&m, &k, k.body, BASE + 3), ST_OK);
    struct iggy_batch b = next(&m, INT32_MAX);
    CHECK_EQ(b.messages_count, 2);
    CHECK_EQ(b.base_offset, BASE + 5);
    CHECK_EQ(message_at(&b, 0).offset_delta, 0);
    CHECK_EQ(records_map_init(&m, &k, k.body, BASE + 7), ST_OK);
    CHECK_EQ(records_map_next(&m, INT32_MAX, &polled, &bytes), ST_NOT_FOUND);
}

TEST(a_limit_cuts_a_batch_and_the_next_one_goes_on) {
    enum { COUNT = 100 };
    struct given given[COUNT];
    struct records_map m;
    struct bytes bytes;
    for (int i = 0; i < COUNT; i++)
        given[i] = (struct given){T0 + i, i * 2};
    struct batch k = stored_batch(given, COUNT, 0);
    const int64_t one = IGGY_MESSAGE_HEADER_BYTES + 1 + (int64_t)tlv_bytes(7, 1);
    CHECK_EQ(records_map_init(&m, &k, k.body, 0), ST_OK);
    for (int i = 0; i < COUNT; i += 4) {
        struct iggy_batch b = next(&m, IGGY_BATCH_HEADER_BYTES + 4 * one + one - 1);
        CHECK_EQ(b.messages_count, 4);
        CHECK_EQ(b.base_offset, BASE + 2 * i);
        CHECK_EQ(message_at(&b, 3).offset_delta, 6);
    }
    CHECK_EQ(records_map_next(&m, INT32_MAX, &polled, &bytes), ST_NOT_FOUND);
    CHECK_EQ(records_map_init(&m, &k, k.body, 0), ST_OK);
    CHECK_EQ(next(&m, 0).messages_count, 1); /* the first comes in any case */
}

/* ---- any batch: to messages in any pieces, and back ---- */

static void check_record(const struct record *r, const struct any_record *want) {
    struct bytes headers = r->headers;
    CHECK_EQ(r->key.len, want->key.len);
    CHECK_EQ(r->value.len, want->value.len);
    if (r->key.len > 0)
        CHECK_MEM(r->key.ptr, want->key.ptr, (size_t)r->key.len);
    if (r->value.len > 0)
        CHECK_MEM(r->value.ptr, want->value.ptr, (size_t)r->value.len);
    CHECK_EQ(r->headers_count, want->headers_count);
    for (int32_t i = 0; i < r->headers_count; i++) {
        struct record_header h;
        CHECK_EQ(record_header_next(&headers, &h), ST_OK);
        CHECK(str_equal(h.key, want->headers[i].key));
        CHECK_EQ(h.value.len, want->headers[i].value.len);
        if (h.value.len > 0)
            CHECK_MEM(h.value.ptr, want->headers[i].value.ptr, (size_t)h.value.len);
    }
}

TEST(any_stored_batch_in_any_pieces_comes_back_with_the_same_records) {
    static const struct batch_limits wide = {1 << 30, 1 << 20, INT64_MAX, true, false};
    for (uint64_t run = 1; run <= 2000; run++) {
        struct batch_builder k;
        struct batch_report report;
        struct bytes bytes, body;
        struct records_map m;
        any_seed(run);
        int count = any_batch(&k, &built);
        CHECK_EQ(batch_builder_finish(&k, 0, (enum codec)any_below(5), &packed, &bytes), ST_OK);
        CHECK_EQ(batch_check(bytes, &wide, &scratch, &report), ST_OK);
        report.batch.base_offset = BASE;
        CHECK_EQ(batch_records(&report.batch, 1 << 30, &scratch, &body), ST_OK);
        int number = (int)any_below((uint32_t)count);
        CHECK_EQ(records_map_init(&m, &report.batch, body, BASE + number), ST_OK);
        int64_t server_ms = report.batch.max_timestamp > 0 ? report.batch.max_timestamp : 0;
        while (number < count) {
            struct iggy_batch b = next(&m, any_below(3000));
            struct batch served;
            struct records_iter it;
            struct record r;
            CHECK_EQ(b.base_offset, BASE + number);
            message_map_init(&map, &fetched, 0, false);
            CHECK_EQ(message_map_add(&map, &b, INT32_MAX), ST_OK);
            CHECK_EQ(message_map_finish(&map, &bytes), ST_OK);
            CHECK_EQ(batch_read(bytes, &served), ST_OK);
            records_iter_init(&it, served.body, served.records_count);
            for (; records_next(&it, &r) == ST_OK; number++) {
                const struct any_record *want = &any_produced[number];
                CHECK_EQ(served.base_offset + r.offset_delta, BASE + number);
                CHECK_EQ(record_timestamp(&served, &r), want->timestamp == -1 ? server_ms : want->timestamp);
                check_record(&r, want);
            }
        }
        CHECK_EQ(number, count);
        CHECK_EQ(records_map_next(&m, 0, &polled, &bytes), ST_NOT_FOUND);
    }
}

TEST_OOM(a_piece_without_memory_can_be_asked_for_again) {
    const struct given given[] = {{T0, 0}, {T0, 1}};
    struct iggy_batch_builder fresh = {0};
    struct spare kept = {0};
    struct batch_builder k;
    struct bytes bytes;
    struct batch b;
    struct records_map m;
    enum status st = batch_builder_init(&k, &kept, T0);
    for (int i = 0; i < 2 && !st; i++)
        st = batch_builder_add(&k, given[i].timestamp, given[i].delta, BYTES_NULL, VIEW("v"), NULL, 0);
    if (!st)
        st = batch_builder_finish(&k, BASE, CODEC_NONE, NULL, &bytes);
    if (!st && !batch_read(bytes, &b)) {
        CHECK_EQ(records_map_init(&m, &b, b.body, 0), ST_OK);
        st = records_map_next(&m, INT32_MAX, &fresh, &bytes);
        if (st == ST_NO_MEMORY)
            st = records_map_next(&m, INT32_MAX, &fresh, &bytes);
        CHECK_EQ(st, ST_OK);
        CHECK_EQ(fresh.messages_count, 2);
    }
    CHECK(!st || st == ST_NO_MEMORY);
    iggy_batch_builder_release(&fresh);
    spare_release(&kept);
}

/* ---- times without records ---- */

#define SERVER_US 1800000000987654u

static void add(struct bytes payload, struct bytes headers, uint64_t origin_us) {
    uint8_t *body;
    CHECK_EQ(iggy_batch_builder_add(&polled, NULL, origin_us, payload.len, headers.len, &body), ST_OK);
    memcpy(body, payload.ptr, (size_t)payload.len);
    memcpy(body + payload.len, headers.ptr, (size_t)headers.len);
}

static struct iggy_batch built_batch(void) {
    struct bytes bytes;
    struct iggy_batch b;
    polled.base_timestamp_us = SERVER_US;
    iggy_batch_builder_finish(&polled, &bytes);
    CHECK_EQ(iggy_batch_read(bytes, false, &b), ST_OK);
    return b;
}

#define BAD_VERSION "\x02\x07\0\0\0kafka.v\x01\x01\0\0\0\x02"
#define MARKED \
    "\x02\x08\0\0\0kafka.ts\x07\x08\0\0\0\x39\x30\0\0\0\0\0\0\x02\x07\0\0\0kafka.v\x01\x01\0\0\0\x01"

TEST(a_messages_time_is_that_of_its_record) {
    static const int64_t want[] = {SERVER_US / 1000, 4000, 12345};
    int64_t ms = 0;
    CHECK_EQ(iggy_batch_builder_init(&polled, 0, 0), ST_OK);
    add(VIEW("a"), VIEW(""), 0);
    add(VIEW("b"), VIEW(""), 4000999);
    add(VIEW("c"), VIEW(MARKED), 0);
    add(VIEW("d"), VIEW(BAD_VERSION), 0);
    struct iggy_batch b = built_batch();
    struct iggy_message m;
    for (int i = 0; i < 3; i++) {
        m = message_at(&b, i);
        CHECK_EQ(message_map_time(&map, &b, &m, &ms), ST_OK);
        CHECK_EQ(ms, want[i]);
    }
    m = message_at(&b, 3);
    CHECK_EQ(message_map_time(&map, &b, &m, &ms), ST_UNMAPPABLE);
    CHECK_EQ(message_map_max_time(&map, &b, &ms), ST_OK);
    CHECK_EQ(ms, SERVER_US / 1000);
}

TEST(messages_that_are_no_records_have_no_time) {
    int64_t ms = 0;
    CHECK_EQ(iggy_batch_builder_init(&polled, 0, 0), ST_OK);
    add(VIEW("d"), VIEW(BAD_VERSION), 5000000);
    struct iggy_batch b = built_batch();
    CHECK_EQ(message_map_max_time(&map, &b, &ms), ST_OK);
    CHECK(ms == INT64_MIN);
}
