#include "bridge/record_map.h"

#include <jansson.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/le.h"
#include "base/mem.h"
#include "bridge/any_batch_test.h"
#include "bridge/message_map.h"
#include "testing/test.h"

#define VIEW(literal) ((struct bytes){(const uint8_t *)(literal), (int32_t)sizeof(literal) - 1})
#define T0            1700000000000 /* ms */
#define SPAN_US       4294967295u
#define SERVER_MS     1800000000000
#define V             "\x02\x07\0\0\0kafka.v\x01\x01\0\0\0\x01"
#define ENVELOPE      "\x02\x0e\0\0\0kafka.envelope\x01\x01\0\0\0\x01"

/* Memory of all tests here, used again by each. */
static struct spare built, packed, scratch, fetched;
static struct iggy_batch_builder sent;
static struct message_map map;
static const char *reason;

/* ---- one batch there, and back ---- */

static struct batch checked(struct batch_builder *k, enum codec codec) {
    static const struct batch_limits wide = {1 << 30, 1 << 20, INT64_MAX, true, false};
    struct bytes bytes;
    struct batch_report report;
    CHECK_EQ(batch_builder_finish(k, 0, codec, &packed, &bytes), ST_OK);
    CHECK_EQ(batch_check(bytes, &wide, &scratch, &report), ST_OK);
    return report.batch;
}

static enum status to_iggy(const struct batch *b, bool with_producer, struct iggy_batch *out) {
    struct bytes body, bytes;
    CHECK_EQ(batch_records(b, 1 << 30, &scratch, &body), ST_OK);
    reason = NULL;
    enum status st = records_to_messages(b, body, with_producer, &sent, &bytes, &reason);
    CHECK_EQ(st == ST_OK, reason == NULL);
    if (st)
        return st;
    CHECK_EQ(iggy_batch_read(bytes, with_producer, out), ST_OK);
    CHECK_EQ(out->size_bytes, bytes.len);
    CHECK_EQ(iggy_batch_check(out, true), ST_OK);
    return ST_OK;
}

/* As a server stores it, at an offset and a time of its own. */
static void stored(struct iggy_batch *b, uint64_t base_offset) {
    b->partition_id = 3;
    b->base_offset = base_offset;
    b->base_timestamp_us = (uint64_t)SERVER_MS * 1000;
    iggy_batch_write_header(sent.ptr, b);
    CHECK_EQ(iggy_batch_check(b, false), ST_OK);
}

static struct batch to_kafka(const struct iggy_batch *b) {
    struct bytes bytes;
    struct batch k;
    message_map_init(&map, &fetched, 0, false);
    CHECK_EQ(message_map_add(&map, b, INT32_MAX), ST_OK);
    CHECK_EQ(message_map_finish(&map, &bytes), ST_OK);
    CHECK_EQ(batch_read(bytes, &k), ST_OK);
    return k;
}

/* ---- single records ---- */

static struct iggy_batch one_message(int64_t timestamp, struct bytes key, struct bytes value,
                                     const struct record_header *headers, int32_t count,
                                     struct iggy_message *out) {
    struct batch_builder k;
    struct iggy_batch b;
    struct iggy_messages_iter it;
    CHECK_EQ(batch_builder_init(&k, &built, timestamp), ST_OK);
    CHECK_EQ(batch_builder_add(&k, timestamp, -1, key, value, headers, count), ST_OK);
    struct batch checked_batch = checked(&k, CODEC_NONE);
    CHECK_EQ(to_iggy(&checked_batch, false, &b), ST_OK);
    iggy_messages_init(&it, &b);
    CHECK_EQ(iggy_messages_next(&it, out), ST_OK);
    CHECK_EQ(it.left, 0);
    return b;
}

static bool bytes_equal(struct bytes a, struct bytes b) {
    return a.len == b.len && (a.len <= 0 || memcmp(a.ptr, b.ptr, (size_t)a.len) == 0);
}

static void check_record(const struct batch *k, int64_t timestamp, struct bytes key, struct bytes value,
                         const struct record_header *headers, int32_t count) {
    struct records_iter it;
    struct record r;
    records_iter_init(&it, k->body, k->records_count);
    CHECK_EQ(records_next(&it, &r), ST_OK);
    CHECK_EQ(record_timestamp(k, &r), timestamp);
    CHECK(bytes_equal(r.key, key));
    CHECK(bytes_equal(r.value, value));
    CHECK_EQ(r.headers_count, count);
    for (int32_t i = 0; i < count; i++) {
        struct record_header h;
        CHECK_EQ(record_header_next(&r.headers, &h), ST_OK);
        CHECK(str_equal(h.key, headers[i].key));
        CHECK(bytes_equal(h.value, headers[i].value));
    }
}

/* A record makes exactly this payload and these user headers, and they make the record again. */
static void is_message(struct bytes key, struct bytes value, const struct record_header *headers,
                       int32_t count, struct bytes payload, struct bytes user_headers) {
    struct iggy_message m;
    struct iggy_batch b = one_message(T0, key, value, headers, count, &m);
    CHECK_EQ(b.origin_timestamp_us, (uint64_t)T0 * 1000);
    CHECK_EQ(m.timestamp_delta_us, 0);
    CHECK(iggy_u128_is_zero(&m.id)); /* E-2 */
    CHECK_EQ(m.payload.len, payload.len);
    CHECK_MEM(m.payload.ptr, payload.ptr, (size_t)payload.len);
    CHECK_EQ(m.headers.len, user_headers.len);
    CHECK_MEM(m.headers.ptr, user_headers.ptr, (size_t)user_headers.len);
    stored(&b, 5);
    struct batch k = to_kafka(&b);
    CHECK_EQ(k.base_offset, 5);
    check_record(&k, T0, key, value, headers, count);
}

/* E-1 */
TEST(a_value_alone_has_only_the_version) {
    is_message(BYTES_NULL, VIEW("value"), NULL, 0, VIEW("value"), VIEW(V));
}

TEST(a_null_and_an_empty_value_are_a_zero_byte_and_a_marker) {
    is_message(BYTES_NULL, BYTES_NULL, NULL, 0, VIEW("\0"),
               VIEW(V "\x02\x0b\0\0\0kafka.value\x01\x04\0\0\0null"));
    is_message(BYTES_NULL, VIEW(""), NULL, 0, VIEW("\0"),
               VIEW(V "\x02\x0b\0\0\0kafka.value\x01\x05\0\0\0empty"));
    is_message(BYTES_NULL, VIEW("\0"), NULL, 0, VIEW("\0"), VIEW(V));
    is_message(BYTES_NULL, VIEW("null"), NULL, 0, VIEW("null"), VIEW(V));
}

TEST(a_key_is_a_header) {
    is_message(VIEW("key"), VIEW("v"), NULL, 0, VIEW("v"),
               VIEW("\x02\x09\0\0\0kafka.key\x01\x03\0\0\0key" V));
    is_message(
        VIEW("\0"), BYTES_NULL, NULL, 0, VIEW("\0"),
        VIEW("\x02\x09\0\0\0kafka.key\x01\x01\0\0\0\0" V "\x02\x0b\0\0\0kafka.value\x01\x04\0\0\0null"));
}

TEST(headers_in_the_order_of_their_names_are_user_headers) {
    const struct record_header headers[] = {
        {STR(""), VIEW("x")}, {STR("a"), VIEW("1")}, {STR("a.b"), VIEW("\0\xff")}};
    is_message(VIEW("k"), VIEW("v"), headers, 3, VIEW("v"),
               VIEW("\x02\x08\0\0\0kafka.h.\x01\x01\0\0\0x"
                    "\x02\x09\0\0\0kafka.h.a\x01\x01\0\0\0\x31"
                    "\x02\x0b\0\0\0kafka.h.a.b\x01\x02\0\0\0\0\xff"
                    "\x02\x09\0\0\0kafka.key\x01\x01\0\0\0k" V));
}

TEST(a_header_named_like_a_marker_stays_one_header) {
    const struct record_header headers[] = {{STR("kafka.h.x"), VIEW("1")}, {STR("kafka.v"), VIEW("9")}};
    is_message(BYTES_NULL, VIEW("v"), headers, 2, VIEW("v"),
               VIEW("\x02\x11\0\0\0kafka.h.kafka.h.x\x01\x01\0\0\0\x31"
                    "\x02\x0f\0\0\0kafka.h.kafka.v\x01\x01\0\0\0\x39" V));
}

/* E-20, E-21 */
TEST(an_empty_key_goes_into_the_envelope) {
    is_message(VIEW(""), VIEW("v"), NULL, 0, VIEW("\x03\0\0\0\0\x01\0\0\0v\0\0\0\0"), VIEW(ENVELOPE V));
    is_message(VIEW(""), BYTES_NULL, NULL, 0, VIEW("\x01\0\0\0\0\0\0\0\0\0\0\0\0"), VIEW(ENVELOPE V));
    is_message(VIEW(""), VIEW(""), NULL, 0, VIEW("\x03\0\0\0\0\0\0\0\0\0\0\0\0"), VIEW(ENVELOPE V));
}

TEST(null_and_empty_header_values_go_into_the_envelope) {
    const struct record_header null[] = {{STR("a"), BYTES_NULL}};
    is_message(VIEW("key"), VIEW("v"), null, 1,
               VIEW("\x03\x03\0\0\0key\x01\0\0\0v\x01\0\0\0"
                    "\x01\0\0\0\x61\0\0\0\0\0"),
               VIEW(ENVELOPE V));
    const struct record_header empty[] = {{STR("a"), VIEW("")}, {STR(""), VIEW("b")}};
    is_message(BYTES_NULL, VIEW("v"), empty, 2,
               VIEW("\x02\0\0\0\0\x01\0\0\0v\x02\0\0\0"
                    "\x01\0\0\0\x61\x01\0\0\0\0"
                    "\0\0\0\0\x01\x01\0\0\0\x62"),
               VIEW(ENVELOPE V));
}

/* H-19: not 87, and nothing is reordered */
TEST(repeated_names_and_another_order_go_into_the_envelope) {
    const struct record_header twice[] = {{STR("a"), VIEW("1")}, {STR("a"), VIEW("2")}};
    is_message(BYTES_NULL, VIEW("v"), twice, 2,
               VIEW("\x02\0\0\0\0\x01\0\0\0v\x02\0\0\0"
                    "\x01\0\0\0\x61\x01\x01\0\0\0\x31"
                    "\x01\0\0\0\x61\x01\x01\0\0\0\x32"),
               VIEW(ENVELOPE V));
    const struct record_header order[] = {{STR("b"), VIEW("1")}, {STR("a"), VIEW("2")}};
    is_message(BYTES_NULL, VIEW("v"), order, 2,
               VIEW("\x02\0\0\0\0\x01\0\0\0v\x02\0\0\0"
                    "\x01\0\0\0\x62\x01\x01\0\0\0\x31"
                    "\x01\0\0\0\x61\x01\x01\0\0\0\x32"),
               VIEW(ENVELOPE V));
}

TEST(a_header_name_that_is_not_utf_8_goes_into_the_envelope) {
    const struct record_header headers[] = {{STR("\xc3("), VIEW("1")}};
    is_message(BYTES_NULL, VIEW("v"), headers, 1,
               VIEW("\x02\0\0\0\0\x01\0\0\0v\x01\0\0\0"
                    "\x02\0\0\0\xc3(\x01\x01\0\0\0\x31"),
               VIEW(ENVELOPE V));
}

/* Whether a record with a key, a header name and a header value of these lengths is enveloped; -1: there is none of it. */
static bool is_enveloped(int32_t key_len, int32_t name_len, int32_t value_len) {
    static const uint8_t text[300] = {'t'};
    const struct record_header h = {{(const char *)text, name_len}, {text, value_len}};
    struct bytes key = {text, key_len};
    int32_t count = name_len >= 0 ? 1 : 0;
    struct iggy_message m;
    struct iggy_batch b = one_message(T0, key, VIEW("v"), &h, count, &m);
    stored(&b, 0);
    struct batch k = to_kafka(&b);
    check_record(&k, T0, key, VIEW("v"), &h, count);
    return m.headers.len == (int32_t)sizeof(ENVELOPE V) - 1 &&
           memcmp(m.headers.ptr, ENVELOPE, sizeof ENVELOPE - 1) == 0;
}

TEST(lengths_over_255_go_into_the_envelope) {
    CHECK(!is_enveloped(255, -1, 0));
    CHECK(is_enveloped(256, -1, 0));
    CHECK(!is_enveloped(1, 247, 1));
    CHECK(is_enveloped(1, 248, 1));
    CHECK(!is_enveloped(1, 1, 255));
    CHECK(is_enveloped(1, 1, 256));
}

/* E-20: all user headers together at most 100,000 bytes. */
TEST(user_headers_of_more_than_100000_bytes_go_into_the_envelope) {
    enum { COUNT = 363 };
    static const uint8_t value[255] = {'x'};
    static char names[COUNT][3];
    static struct record_header headers[COUNT];
    for (int i = 0; i < COUNT; i++) {
        names[i][0] = (char)('a' + i / 20);
        names[i][1] = (char)('a' + i % 20);
        headers[i] = (struct record_header){{names[i], 2}, {value, 255}};
    }
    struct iggy_message m;
    one_message(T0, BYTES_NULL, VIEW("v"), headers, COUNT, &m);
    CHECK_EQ(m.headers.len, 363 * (10 + 10 + 255) + 18);
    static const uint8_t key[139]; /* 10 + 9 + 138 fill it up */
    one_message(T0, (struct bytes){key, 138}, VIEW("v"), headers, COUNT, &m);
    CHECK_EQ(m.headers.len, 100000);
    one_message(T0, (struct bytes){key, 139}, VIEW("v"), headers, COUNT, &m);
    CHECK_EQ(m.headers.len, (int32_t)sizeof(ENVELOPE V) - 1);
}

/* E-22 */
TEST(a_payload_over_64000000_bytes_is_too_big) {
    struct batch_builder k;
    struct iggy_batch b;
    uint8_t *large = mem_take_zeroed(1, 64000001);
    CHECK(large != NULL);
    for (int32_t over = 0; over < 2; over++) {
        CHECK_EQ(batch_builder_init(&k, &built, T0), ST_OK);
        CHECK_EQ(batch_builder_add(&k, T0, -1, BYTES_NULL, (struct bytes){large, 64000000 + over}, NULL, 0),
                 ST_OK);
        struct batch checked_batch = checked(&k, CODEC_NONE);
        CHECK_EQ(to_iggy(&checked_batch, false, &b), over ? ST_TOO_BIG : ST_OK);
        CHECK_EQ(batch_builder_init(&k, &built, T0), ST_OK);
        CHECK_EQ(
            batch_builder_add(&k, T0, -1, VIEW(""), (struct bytes){large, 64000000 - 13 + over}, NULL, 0),
            ST_OK);
        checked_batch = checked(&k, CODEC_NONE);
        CHECK_EQ(to_iggy(&checked_batch, false, &b), over ? ST_TOO_BIG : ST_OK);
    }
    mem_free(large);
}

/* ---- timestamps (E-3) ---- */

/* What became of one record's time. */
struct expected_time {
    int64_t sent_ms;
    uint64_t origin_us;
    bool header;
    int64_t fetched_ms;
};

static void is_time(const struct expected_time *e, int count) {
    struct batch_builder k;
    struct iggy_batch b;
    struct iggy_messages_iter it;
    struct records_iter records;
    struct iggy_message m;
    struct record r;
    CHECK_EQ(batch_builder_init(&k, &built, e[0].sent_ms), ST_OK);
    for (int i = 0; i < count; i++)
        CHECK_EQ(batch_builder_add(&k, e[i].sent_ms, -1, BYTES_NULL, VIEW("v"), NULL, 0), ST_OK);
    struct batch checked_batch = checked(&k, CODEC_NONE);
    CHECK_EQ(to_iggy(&checked_batch, false, &b), ST_OK);
    stored(&b, 100);
    struct batch fetch = to_kafka(&b);
    iggy_messages_init(&it, &b);
    records_iter_init(&records, fetch.body, fetch.records_count);
    for (int i = 0; i < count; i++) {
        uint8_t ts[26 + 18] = "\x02\x08\0\0\0kafka.ts\x07\x08\0\0";
        le_set64(ts + 18, (uint64_t)e[i].sent_ms);
        memcpy(ts + 26, V, sizeof V - 1);
        CHECK_EQ(iggy_messages_next(&it, &m), ST_OK);
        CHECK(b.origin_timestamp_us + m.timestamp_delta_us == e[i].origin_us);
        CHECK_EQ(m.headers.len, e[i].header ? 44 : 18);
        CHECK_MEM(m.headers.ptr, e[i].header ? (const void *)ts : (const void *)V, (size_t)m.headers.len);
        CHECK_EQ(records_next(&records, &r), ST_OK);
        CHECK_EQ(record_timestamp(&fetch, &r), e[i].fetched_ms);
    }
}

TEST(times_within_the_window_are_the_messages_own) {
    const struct expected_time e[] = {{T0, T0 * 1000ull, false, T0},
                                      {T0 + 4294967, (T0 + 4294967) * 1000ull, false, T0 + 4294967}};
    is_time(e, 2);
}

TEST(times_outside_the_window_are_kept_in_a_header) {
    const struct expected_time e[] = {
        {T0 + 4294968, T0 * 1000ull + SPAN_US, true, T0 + 4294968},
        {T0, T0 * 1000ull, false, T0},
        {INT64_C(18446744073709551), T0 * 1000ull + SPAN_US, true, INT64_C(18446744073709551)},
        {0, T0 * 1000ull, true, 0},
        {-1, T0 * 1000ull, true, SERVER_MS}};
    is_time(e, 5);
}

TEST(no_time_alone_is_no_time) {
    const struct expected_time e[] = {{-1, 0, false, SERVER_MS}, {-1, 0, false, SERVER_MS}};
    is_time(e, 2);
}

TEST(a_time_of_zero_is_always_kept_in_a_header) {
    const struct expected_time e[] = {{0, 0, true, 0}, {-1, 0, false, SERVER_MS}};
    is_time(e, 2);
}

TEST(the_last_window_ends_with_64_bits) {
    const struct expected_time e[] = {
        {INT64_C(18446744073709551), UINT64_C(18446744073709551000), false, INT64_C(18446744073709551)}};
    is_time(e, 1);
}

/* D1-12 */
TEST(times_that_are_no_microseconds_are_refused) {
    static const int64_t bad[] = {-2, INT64_MIN, INT64_C(18446744073709552), INT64_MAX};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct batch_builder k;
        struct iggy_batch b;
        CHECK_EQ(batch_builder_init(&k, &built, T0), ST_OK);
        CHECK_EQ(batch_builder_add(&k, T0, -1, BYTES_NULL, VIEW("v"), NULL, 0), ST_OK);
        CHECK_EQ(batch_builder_add(&k, bad[i], -1, BYTES_NULL, VIEW("v"), NULL, 0), ST_OK);
        struct batch checked_batch = checked(&k, CODEC_NONE);
        CHECK_EQ(to_iggy(&checked_batch, false, &b), ST_BAD_RECORD);
    }
}

/* E-4 */
TEST(a_batch_marked_log_append_time_keeps_its_records_own_times) {
    struct batch_builder k;
    struct iggy_batch b;
    CHECK_EQ(batch_builder_init(&k, &built, T0), ST_OK);
    k.attributes = BATCH_LOG_APPEND_TIME;
    CHECK_EQ(batch_builder_add(&k, T0, -1, BYTES_NULL, VIEW("v"), NULL, 0), ST_OK);
    CHECK_EQ(batch_builder_add(&k, T0 + 5, -1, BYTES_NULL, VIEW("v"), NULL, 0), ST_OK);
    struct batch checked_batch = checked(&k, CODEC_NONE);
    CHECK_EQ(to_iggy(&checked_batch, false, &b), ST_OK);
    CHECK_EQ(b.origin_timestamp_us, (uint64_t)T0 * 1000);
}

/* ---- the batch ---- */

TEST(the_producer_goes_into_its_section_where_that_is_asked_for) {
    struct batch_builder k;
    struct iggy_batch b;
    CHECK_EQ(batch_builder_init(&k, &built, T0), ST_OK);
    k.producer_id = 77;
    k.producer_epoch = 2;
    k.base_sequence = 9;
    CHECK_EQ(batch_builder_add(&k, T0, -1, BYTES_NULL, VIEW("v"), NULL, 0), ST_OK);
    struct batch checked_batch = checked(&k, CODEC_NONE);
    CHECK_EQ(to_iggy(&checked_batch, false, &b), ST_OK);
    CHECK(!b.producer.present);
    CHECK_EQ(to_iggy(&checked_batch, true, &b), ST_OK);
    CHECK(b.producer.present && b.producer.id == 77 && b.producer.epoch == 2 &&
          b.producer.base_sequence == 9);
    checked_batch.producer_id = -1;
    CHECK_EQ(to_iggy(&checked_batch, true, &b), ST_OK);
    CHECK(!b.producer.present);
}

/* ---- any batch: there and back ---- */

static void check_fetched(const struct batch *k, int count) {
    struct records_iter it;
    struct record r;
    CHECK_EQ(k->records_count, count);
    CHECK_EQ(k->last_offset_delta, count - 1);
    records_iter_init(&it, k->body, count);
    for (int i = 0; i < count; i++) {
        CHECK_EQ(records_next(&it, &r), ST_OK);
        CHECK_EQ(r.offset_delta, i);
        CHECK_EQ(record_timestamp(k, &r),
                 any_produced[i].timestamp == -1 ? SERVER_MS : any_produced[i].timestamp);
        CHECK(bytes_equal(r.key, any_produced[i].key));
        CHECK(bytes_equal(r.value, any_produced[i].value));
        CHECK_EQ(r.headers_count, any_produced[i].headers_count);
        for (int32_t h = 0; h < r.headers_count; h++) {
            struct record_header header;
            CHECK_EQ(record_header_next(&r.headers, &header), ST_OK);
            CHECK(str_equal(header.key, any_produced[i].headers[h].key));
            CHECK(bytes_equal(header.value, any_produced[i].headers[h].value));
        }
    }
    CHECK_EQ(records_next(&it, &r), ST_NOT_FOUND);
}

TEST(any_batch_comes_back_with_the_same_records) {
    for (uint64_t run = 1; run <= 4000; run++) {
        any_seed(run);
        struct batch_builder k;
        struct iggy_batch b;
        int count = any_batch(&k, &built);
        bool with_producer = any_below(2);
        if (any_below(2)) {
            k.producer_id = any_below(1000);
            k.producer_epoch = (int16_t)any_below(3);
            k.base_sequence = (int32_t)any_below(INT32_MAX);
        }
        struct batch checked_batch = checked(&k, (enum codec)any_below(5));
        CHECK_EQ(to_iggy(&checked_batch, with_producer, &b), ST_OK);
        CHECK_EQ(b.messages_count, count);
        stored(&b, run);
        struct batch fetch = to_kafka(&b);
        CHECK_EQ(fetch.base_offset, run);
        check_fetched(&fetch, count);
    }
}

/* Every record of served is that of made, with the time of its own. */
static void check_same(const struct batch *made, struct bytes body, const struct batch *served) {
    struct records_iter a, b;
    struct record x, y;
    CHECK_EQ(made->records_count, served->records_count);
    CHECK_EQ(made->last_offset_delta, served->last_offset_delta);
    records_iter_init(&a, body, made->records_count);
    records_iter_init(&b, served->body, served->records_count);
    while (records_next(&a, &x) == ST_OK) {
        CHECK_EQ(records_next(&b, &y), ST_OK);
        CHECK_EQ(x.offset_delta, y.offset_delta);
        CHECK_EQ(made->base_timestamp + x.timestamp_delta, record_timestamp(served, &y));
        CHECK(bytes_equal(x.key, y.key));
        CHECK(bytes_equal(x.value, y.value));
        CHECK_EQ(x.headers_count, y.headers_count);
        for (int32_t i = 0; i < x.headers_count; i++) {
            struct record_header h, again;
            CHECK_EQ(record_header_next(&x.headers, &h), ST_OK);
            CHECK_EQ(record_header_next(&y.headers, &again), ST_OK);
            CHECK(str_equal(h.key, again.key));
            CHECK(bytes_equal(h.value, again.value));
        }
    }
}

static struct bytes bytes_of_hex(const char *hex) {
    size_t len = strlen(hex) / 2;
    uint8_t *p = mem_take(len);
    CHECK(p != NULL);
    for (size_t i = 0; i < len; i++) {
        const char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        p[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return (struct bytes){p, (int32_t)len};
}

TEST(batches_of_kafkas_own_client_come_back_with_the_same_records) {
    static const struct batch_limits wide = {1 << 30, 1 << 20, INT64_MAX, true, false};
    static char line[256 * 1024];
    gzFile file = gzopen(TESTS_DIR "/golden/records.jsonl.gz", "rb");
    CHECK(file != NULL);
    int mapped = 0;
    while (gzgets(file, line, sizeof line)) {
        json_t *row = json_loads(line, 0, NULL);
        CHECK(row != NULL);
        struct bytes batch = bytes_of_hex(json_string_value(json_object_get(row, "hex"))), body;
        struct batch_report report;
        struct iggy_batch b;
        batch_assign((uint8_t *)(uintptr_t)batch.ptr, 0, -1);
        if (batch_check(batch, &wide, &scratch, &report) == ST_OK) {
            CHECK_EQ(to_iggy(&report.batch, true, &b), ST_OK);
            stored(&b, 1000);
            CHECK_EQ(batch_records(&report.batch, 1 << 30, &scratch, &body), ST_OK);
            struct batch served = to_kafka(&b);
            check_same(&report.batch, body, &served);
            mapped++;
        }
        mem_free((void *)(uintptr_t)batch.ptr);
        json_decref(row);
    }
    gzclose(file);
    CHECK_EQ(mapped, 35); /* the others are transactional, or control batches */
}

TEST(a_thousand_records_take_one_allocation_each_way) {
    struct batch_builder k;
    struct bytes bytes, body;
    struct iggy_batch b;
    CHECK_EQ(batch_builder_init(&k, &built, T0), ST_OK);
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(batch_builder_add(&k, T0 + i, -1, BYTES_NULL, VIEW("0123456789"), NULL, 0), ST_OK);
    struct batch checked_batch = checked(&k, CODEC_NONE);
    CHECK_EQ(batch_records(&checked_batch, 1 << 30, &scratch, &body), ST_OK);
    struct iggy_batch_builder fresh = {0};
    mem_fail_at(2);
    CHECK_EQ(records_to_messages(&checked_batch, body, false, &fresh, &bytes, &reason), ST_OK);
    CHECK(mem_fail_pending());
    mem_fail_at(0);
    CHECK_EQ(iggy_batch_read(bytes, false, &b), ST_OK);
    CHECK_EQ(b.messages_count, 1000);
    CHECK_EQ(spare_reserve(&fetched, 1 << 20), ST_OK);
    mem_fail_at(1);
    struct batch fetch = to_kafka(&b);
    CHECK(mem_fail_pending());
    mem_fail_at(0);
    CHECK_EQ(fetch.records_count, 1000);
    iggy_batch_builder_release(&fresh);
}

TEST_OOM(a_batch_without_memory_is_refused_with_a_reason) {
    static struct spare kept;
    struct iggy_batch_builder fresh = {0};
    struct batch_builder k;
    struct bytes bytes;
    const struct record_header headers[] = {{STR("b"), VIEW("1")}, {STR("a"), VIEW("2")}};
    const char *why = NULL;
    enum status st = batch_builder_init(&k, &kept, T0);
    for (int i = 0; i < 50 && !st; i++)
        st = batch_builder_add(&k, T0, -1, VIEW(""), VIEW("v"), headers, 2);
    if (!st)
        st = batch_builder_finish(&k, 0, CODEC_NONE, NULL, &bytes);
    struct batch b;
    if (!st && !batch_read(bytes, &b)) {
        st = records_to_messages(&b, b.body, false, &fresh, &bytes, &why);
        CHECK_EQ(st == ST_OK, why == NULL);
    }
    CHECK(!st || st == ST_NO_MEMORY);
    iggy_batch_builder_release(&fresh);
    spare_release(&kept);
}
