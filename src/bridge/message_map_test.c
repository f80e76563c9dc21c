#include "bridge/message_map.h"

#include "base/mem.h"
#include "testing/test.h"

#define VIEW(literal) ((struct bytes){(const uint8_t *)(literal), (int32_t)sizeof(literal) - 1})
#define ORIGIN_US     1700000000123456u
#define SERVER_US     1800000000987654u
#define V             "\x02\x07\0\0\0kafka.v\x01\x01\0\0\0\x01"
#define ENVELOPE      "\x02\x0e\0\0\0kafka.envelope\x01\x01\0\0\0\x01"

/* Memory of all tests here, used again by each. */
static struct iggy_batch_builder polled;
static struct spare fetched;
static struct message_map map;

/* A poll's answer, as message by message is added to it. */
static void poll_begin(uint64_t origin_us) {
    CHECK_EQ(iggy_batch_builder_init(&polled, origin_us, 0), ST_OK);
}

static void poll_add(struct bytes payload, struct bytes headers) {
    uint8_t *body;
    CHECK_EQ(
        iggy_batch_builder_add(&polled, NULL, polled.origin_timestamp_us, payload.len, headers.len, &body),
        ST_OK);
    memcpy(body, payload.ptr, (size_t)payload.len);
    memcpy(body + payload.len, headers.ptr, (size_t)headers.len);
}

static struct iggy_batch poll_end(uint64_t base_offset) {
    struct bytes bytes;
    struct iggy_batch b;
    iggy_batch_builder_finish(&polled, &bytes);
    CHECK_EQ(iggy_batch_read(bytes, false, &b), ST_OK);
    b.base_offset = base_offset;
    b.base_timestamp_us = SERVER_US;
    iggy_batch_write_header(polled.ptr, &b);
    return b;
}

static struct iggy_batch one(struct bytes payload, struct bytes headers) {
    poll_begin(ORIGIN_US);
    poll_add(payload, headers);
    return poll_end(40);
}

static struct batch finish(void) {
    struct bytes bytes;
    struct batch k;
    CHECK_EQ(message_map_finish(&map, &bytes), ST_OK);
    CHECK_EQ(batch_read(bytes, &k), ST_OK);
    CHECK_EQ(k.size_bytes, bytes.len);
    return k;
}

static struct batch fetch(const struct iggy_batch *b) {
    message_map_init(&map, &fetched, 0, false);
    CHECK_EQ(message_map_add(&map, b, INT32_MAX), ST_OK);
    return finish();
}

static struct record record_at(const struct batch *k, int number) {
    struct records_iter it;
    struct record r;
    records_iter_init(&it, k->body, k->records_count);
    for (int i = 0; i <= number; i++)
        CHECK_EQ(records_next(&it, &r), ST_OK);
    return r;
}

static bool bytes_equal(struct bytes a, struct bytes b) {
    return a.len == b.len && (a.len <= 0 || memcmp(a.ptr, b.ptr, (size_t)a.len) == 0);
}

/* A message with these user headers and the payload makes this record. */
static void is_record(struct bytes payload, struct bytes user_headers, struct bytes key, struct bytes value,
                      const struct record_header *headers, int32_t count) {
    struct iggy_batch b = one(payload, user_headers);
    struct batch k = fetch(&b);
    struct record r = record_at(&k, 0);
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

/* ---- E-10: an Iggy client wrote it ---- */

TEST(a_message_of_an_iggy_client_is_a_value_without_a_key) {
    is_record(VIEW("hello"), VIEW(""), BYTES_NULL, VIEW("hello"), NULL, 0);
    is_record(VIEW(""), VIEW(""), BYTES_NULL, VIEW(""), NULL, 0);
}

TEST(user_headers_become_headers_with_their_raw_bytes_whatever_the_kind) {
    const struct record_header headers[] = {{STR("attempt"), VIEW("\x05\0\0\0")},
                                            {STR("content-type"), VIEW("text/plain")},
                                            {STR("ok"), VIEW("\x01")},
                                            {STR("later"), VIEW("?")}};
    is_record(VIEW("v"),
              VIEW("\x02\x07\0\0\0attempt\x0b\x04\0\0\0\x05\0\0\0"
                   "\x02\x0c\0\0\0content-type\x02\x0a\0\0\0text/plain"
                   "\x02\x02\0\0\0ok\x03\x01\0\0\0\x01"
                   "\x02\x05\0\0\0later\x63\x01\0\0\0?"),
              BYTES_NULL, VIEW("v"), headers, 4);
}

TEST(keys_of_any_kind_are_names_if_they_are_utf_8_and_equal_ones_all_go_out) {
    const struct record_header headers[] = {{STR("a"), VIEW("1")}, {STR("a"), VIEW("2")}};
    is_record(VIEW("v"),
              VIEW("\x02\x01\0\0\0\x61\x01\x01\0\0\0\x31"
                   "\x02\x02\0\0\0\xff\xfe\x01\x01\0\0\0x"
                   "\x01\x01\0\0\0\x61\x01\x01\0\0\0\x32"),
              BYTES_NULL, VIEW("v"), headers, 2);
}

TEST(without_the_version_no_marker_has_a_meaning) {
    const struct record_header headers[] = {{STR("kafka.key"), VIEW("k")},
                                            {STR("kafka.value"), VIEW("null")},
                                            {STR("kafka.ts"), VIEW("?")},
                                            {STR("kafka.envelope"), VIEW("\x01")},
                                            {STR("kafka.v"), VIEW("\x01")}};
    is_record(VIEW("v"),
              VIEW("\x02\x09\0\0\0kafka.key\x01\x01\0\0\0k"
                   "\x02\x0b\0\0\0kafka.value\x01\x04\0\0\0null"
                   "\x02\x08\0\0\0kafka.ts\x01\x01\0\0\0?" ENVELOPE
                   "\x01\x07\0\0\0kafka.v\x01\x01\0\0\0\x01"),
              BYTES_NULL, VIEW("v"), headers, 5);
}

/* ---- E-11: a gateway wrote it ---- */

TEST(of_a_gateways_message_only_kafkas_headers_go_out_in_their_stored_order) {
    const struct record_header headers[] = {{STR("b"), VIEW("1")}, {STR("a"), VIEW("2")}};
    is_record(VIEW("v"),
              VIEW(V "\x02\x09\0\0\0kafka.h.b\x01\x01\0\0\0\x31"
                     "\x02\x05\0\0\0other\x01\x01\0\0\0x"
                     "\x02\x09\0\0\0kafka.key\x01\x03\0\0\0key"
                     "\x02\x09\0\0\0kafka.h.a\x02\x01\0\0\0\x32"),
              VIEW("key"), VIEW("v"), headers, 2);
}

TEST(null_and_empty_values_are_restored_whatever_the_payload_is) {
    is_record(VIEW("\0"), VIEW(V "\x02\x0b\0\0\0kafka.value\x01\x04\0\0\0null"), BYTES_NULL, BYTES_NULL, NULL,
              0);
    is_record(VIEW("x"), VIEW("\x02\x0b\0\0\0kafka.value\x01\x05\0\0\0empty" V), BYTES_NULL, VIEW(""), NULL,
              0);
}

TEST(markers_are_read_of_any_kind_of_value) {
    is_record(VIEW("\0"),
              VIEW("\x02\x07\0\0\0kafka.v\x09\x01\0\0\0\x01"
                   "\x02\x09\0\0\0kafka.key\x02\x01\0\0\0k"
                   "\x02\x0b\0\0\0kafka.value\x02\x04\0\0\0null"),
              VIEW("k"), BYTES_NULL, NULL, 0);
}

TEST(an_envelope_is_opened) {
    const struct record_header headers[] = {
        {STR("b"), BYTES_NULL}, {STR("a"), VIEW("")}, {STR("b"), VIEW("1")}};
    is_record(VIEW("\x03\0\0\0\0\x01\0\0\0v\x03\0\0\0"
                   "\x01\0\0\0\x62\0\0\0\0\0"
                   "\x01\0\0\0\x61\x01\0\0\0\0"
                   "\x01\0\0\0\x62\x01\x01\0\0\0\x31"),
              VIEW(ENVELOPE V), VIEW(""), VIEW("v"), headers, 3);
}

static int64_t time_of(uint64_t origin_us, struct bytes headers) {
    poll_begin(origin_us);
    poll_add(VIEW("v"), headers);
    struct iggy_batch b = poll_end(0);
    struct batch k = fetch(&b);
    struct record r = record_at(&k, 0);
    CHECK_EQ(k.max_timestamp, record_timestamp(&k, &r));
    return k.max_timestamp;
}

TEST(times_come_from_the_header_the_producer_or_the_server) {
    CHECK_EQ(time_of(ORIGIN_US, VIEW("")), 1700000000123);
    CHECK_EQ(time_of(ORIGIN_US, VIEW(V)), 1700000000123);
    CHECK_EQ(time_of(999, VIEW(V)), 0);
    CHECK_EQ(time_of(0, VIEW("")), 1800000000987);
    CHECK_EQ(time_of(0, VIEW(V)), 1800000000987);
    CHECK_EQ(time_of(ORIGIN_US, VIEW("\x02\x08\0\0\0kafka.ts\x07\x08\0\0\0\x05\0\0\0\0\0\0\0" V)), 5);
    CHECK_EQ(time_of(ORIGIN_US, VIEW("\x02\x08\0\0\0kafka.ts\x07\x08\0\0\0\0\0\0\0\0\0\0\0" V)), 0);
    CHECK_EQ(time_of(0, VIEW("\x02\x08\0\0\0kafka.ts\x01\x05\0\0\0epoch" V)), 0);
    CHECK_EQ(
        time_of(ORIGIN_US, VIEW("\x02\x08\0\0\0kafka.ts\x07\x08\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff" V)),
        1800000000987);
    CHECK_EQ(time_of(ORIGIN_US, VIEW("\x02\x08\0\0\0kafka.ts\x07\x08\0\0\0\x05\0\0\0\0\0\0\0")),
             1700000000123);
}

/* ---- E-12 ---- */

static void is_unmappable(struct bytes payload, struct bytes headers) {
    struct bytes bytes;
    struct iggy_batch b = one(payload, headers);
    message_map_init(&map, &fetched, 0, false);
    CHECK_EQ(message_map_add(&map, &b, INT32_MAX), ST_UNMAPPABLE);
    CHECK_EQ(message_map_finish(&map, &bytes), ST_NOT_FOUND);
}

TEST(what_no_gateway_writes_is_no_record) {
    is_unmappable(VIEW("v"), VIEW("\x02\x07\0\0\0kafka.v\x01\x01\0\0\0\x02"));
    is_unmappable(VIEW("v"), VIEW("\x02\x07\0\0\0kafka.v\x01\x02\0\0\0\x01\x01"));
    is_unmappable(VIEW("v"), VIEW(V "\x02\x0b\0\0\0kafka.value\x01\x04\0\0\0nulL"));
    is_unmappable(VIEW("v"), VIEW(V "\x02\x08\0\0\0kafka.ts\x0c\x08\0\0\0\x05\0\0\0\0\0\0\0"));
    is_unmappable(VIEW("v"), VIEW(V "\x02\x08\0\0\0kafka.ts\x07\x04\0\0\0\x05\0\0\0"));
    is_unmappable(VIEW("v"), VIEW(V "\x02\x08\0\0\0kafka.ts\x07\x08\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff"));
    is_unmappable(
        VIEW("v"),
        VIEW(V "\x02\x09\0\0\0kafka.h.a\x01\x01\0\0\0\x31\x01\x09\0\0\0kafka.h.a\x01\x01\0\0\0\x32"));
    is_unmappable(VIEW("v"),
                  VIEW(V "\x02\x09\0\0\0kafka.h.b\x01\x01\0\0\0\x31\x02\x09\0\0\0kafka.h.a\x01\x01\0\0\0\x32"
                         "\x01\x09\0\0\0kafka.h.b\x01\x01\0\0\0\x32"));
}

TEST(user_headers_that_do_not_parse_are_not_taken_for_none) {
    is_unmappable(VIEW("v"), VIEW("\0"));
    is_unmappable(VIEW("v"), VIEW(V "x"));
    is_unmappable(VIEW("v"), (struct bytes){(const uint8_t *)V, sizeof V - 2});
    is_unmappable(VIEW("v"), VIEW("\x02\0\0\0\0\x01\x01\0\0\0x"));
}

TEST(a_broken_envelope_is_no_record) {
    static const char *const whole = "\x03\x01\0\0\0k\x01\0\0\0v\x01\0\0\0\x01\0\0\0n\x01\x01\0\0\0x";
    enum { BYTES = 26 };
    uint8_t copy[BYTES + 1];
    struct iggy_batch b = one((struct bytes){(const uint8_t *)whole, BYTES}, VIEW(ENVELOPE V));
    CHECK_EQ(fetch(&b).records_count, 1);
    for (int32_t len = 0; len < BYTES; len++)
        is_unmappable((struct bytes){(const uint8_t *)whole, len}, VIEW(ENVELOPE V));
    memcpy(copy, whole, BYTES);
    copy[BYTES] = 0;
    is_unmappable((struct bytes){copy, BYTES + 1}, VIEW(ENVELOPE V));
    copy[0] = 7; /* an unknown flag */
    is_unmappable((struct bytes){copy, BYTES}, VIEW(ENVELOPE V));
    copy[0] = 2; /* no key, and bytes of one */
    is_unmappable((struct bytes){copy, BYTES}, VIEW(ENVELOPE V));
    copy[0] = 3;
    copy[20] = 2; /* a header value neither there nor not */
    is_unmappable((struct bytes){copy, BYTES}, VIEW(ENVELOPE V));
    copy[20] = 1;
    copy[14] = 0xff; /* a count that the bytes can't hold */
    is_unmappable((struct bytes){copy, BYTES}, VIEW(ENVELOPE V));
    is_unmappable((struct bytes){(const uint8_t *)whole, BYTES},
                  VIEW("\x02\x0e\0\0\0kafka.envelope\x01\x01\0\0\0\x02" V));
}

/* ---- the batch: E-13, H-15, D2-35 ---- */

static struct iggy_batch numbered(uint64_t base_offset, int count, int bad) {
    poll_begin(ORIGIN_US);
    for (int i = 0; i < count; i++) {
        uint8_t value = (uint8_t)i;
        poll_add((struct bytes){&value, 1}, i == bad ? VIEW("bad") : VIEW(""));
    }
    return poll_end(base_offset);
}

TEST(the_batch_is_as_kafka_says) {
    struct iggy_batch b = numbered(40, 3, -1);
    struct batch k = fetch(&b);
    CHECK_EQ(k.base_offset, 40);
    CHECK_EQ(k.last_offset_delta, 2);
    CHECK_EQ(k.records_count, 3);
    CHECK_EQ(k.attributes, 0);
    CHECK_EQ(k.producer_id, -1);
    CHECK_EQ(k.producer_epoch, -1);
    CHECK_EQ(k.base_sequence, -1);
    CHECK_EQ(k.leader_epoch, -1);
    CHECK_EQ(k.base_timestamp, 1700000000123);
    CHECK_EQ(k.max_timestamp, 1700000000123);
    CHECK_EQ(record_at(&k, 2).offset_delta, 2);
}

TEST(messages_below_the_wanted_offset_are_left_out_and_batches_go_on) {
    struct iggy_batch b = numbered(40, 3, -1);
    message_map_init(&map, &fetched, 42, false);
    CHECK_EQ(message_map_add(&map, &b, INT32_MAX), ST_OK);
    b = numbered(50, 2, -1); /* with a hole before it */
    CHECK_EQ(message_map_add(&map, &b, INT32_MAX), ST_OK);
    CHECK_EQ(map.next_offset, 52);
    struct batch k = finish();
    CHECK_EQ(k.base_offset, 42);
    CHECK_EQ(k.records_count, 3);
    CHECK_EQ(k.last_offset_delta, 9);
    CHECK_EQ(record_at(&k, 0).value.ptr[0], 2);
    CHECK_EQ(record_at(&k, 1).offset_delta, 8);
}

TEST(a_cut_batch_keeps_its_offsets) {
    struct iggy_batch b = numbered(40, 3, -1);
    const int32_t first = IGGY_MESSAGE_HEADER_BYTES + 1;
    b.frames = (struct bytes){b.frames.ptr + first, b.frames.len - first};
    b.messages_count = 2;
    struct batch k = fetch(&b);
    CHECK_EQ(k.base_offset, 41);
    CHECK_EQ(record_at(&k, 0).value.ptr[0], 1);
}

/* KIP-74: the first always */
TEST(the_budget_ends_the_batch_but_not_before_the_first_record) {
    struct iggy_batch b = numbered(40, 3, -1);
    message_map_init(&map, &fetched, 0, false);
    CHECK_EQ(message_map_add(&map, &b, 1), ST_OVER_BUDGET);
    CHECK_EQ(map.next_offset, 41);
    CHECK_EQ(finish().records_count, 1);
    int32_t whole = fetch(&b).size_bytes;
    message_map_init(&map, &fetched, 0, false);
    CHECK_EQ(message_map_add(&map, &b, whole - 1), ST_OVER_BUDGET);
    struct batch k = finish();
    CHECK_EQ(k.records_count, 2);
    CHECK_EQ(k.last_offset_delta, 1);
    message_map_init(&map, &fetched, 0, false);
    CHECK_EQ(message_map_add(&map, &b, whole), ST_OK);
}

TEST(a_message_that_is_no_record_ends_the_batch_before_it) {
    struct iggy_batch b = numbered(40, 3, 1);
    message_map_init(&map, &fetched, 0, false);
    CHECK_EQ(message_map_add(&map, &b, INT32_MAX), ST_UNMAPPABLE);
    CHECK_EQ(map.next_offset, 41);
    CHECK_EQ(finish().records_count, 1);
    struct bytes bytes;
    message_map_init(&map, &fetched, 41, false);
    CHECK_EQ(message_map_add(&map, &b, INT32_MAX), ST_UNMAPPABLE);
    CHECK_EQ(message_map_finish(&map, &bytes), ST_NOT_FOUND);
}

TEST(skipping_leaves_its_offset_unused_and_counts_it) {
    struct iggy_batch b = numbered(40, 3, 1);
    int64_t before = map.skipped_count;
    message_map_init(&map, &fetched, 0, true);
    CHECK_EQ(message_map_add(&map, &b, INT32_MAX), ST_OK);
    CHECK_EQ(map.skipped_count, before + 1);
    struct batch k = finish();
    CHECK_EQ(k.records_count, 2);
    CHECK_EQ(record_at(&k, 1).offset_delta, 2);
    b = numbered(40, 3, 2);
    message_map_init(&map, &fetched, 0, true);
    CHECK_EQ(message_map_add(&map, &b, INT32_MAX), ST_OK);
    k = finish();
    CHECK_EQ(k.records_count, 2);
    CHECK_EQ(k.last_offset_delta, 2); /* readers go on behind it */
}

TEST(a_batch_of_skipped_messages_alone_moves_readers_on) {
    struct iggy_batch b = one(VIEW("v"), VIEW("bad"));
    message_map_init(&map, &fetched, 0, true);
    CHECK_EQ(message_map_add(&map, &b, INT32_MAX), ST_OK);
    struct batch k = finish();
    CHECK_EQ(k.records_count, 0);
    CHECK_EQ(k.base_offset, 40);
    CHECK_EQ(k.last_offset_delta, 0);
    CHECK_EQ(k.body.len, 0);
}

TEST(offsets_that_kafka_can_not_have_are_refused) {
    struct iggy_batch b = numbered(INT64_MAX - 1, 2, -1);
    message_map_init(&map, &fetched, 0, false);
    CHECK_EQ(message_map_add(&map, &b, INT32_MAX), ST_BAD_RECORD);
    b = numbered(UINT64_MAX, 2, -1);
    CHECK_EQ(message_map_add(&map, &b, INT32_MAX), ST_BAD_RECORD);
    message_map_init(&map, &fetched, 0, false);
    b = numbered(0, 1, -1);
    CHECK_EQ(message_map_add(&map, &b, INT32_MAX), ST_OK);
    b = numbered((uint64_t)INT32_MAX + 1, 1, -1);
    CHECK_EQ(message_map_add(&map, &b, INT32_MAX), ST_OVER_BUDGET);
}

TEST(frames_that_are_not_well_formed_are_refused) {
    struct iggy_batch b = numbered(40, 3, -1);
    b.messages_count = 4;
    message_map_init(&map, &fetched, 0, false);
    CHECK_EQ(message_map_add(&map, &b, INT32_MAX), ST_BAD_RECORD);
    b.messages_count = 2;
    message_map_init(&map, &fetched, 0, false);
    CHECK_EQ(message_map_add(&map, &b, INT32_MAX), ST_BAD_RECORD);
}

static struct iggy_batch three_shapes(void) {
    poll_begin(ORIGIN_US);
    poll_add(VIEW("v"), VIEW(""));
    poll_add(VIEW("v"),
             VIEW("\x02\x09\0\0\0kafka.h.b\x01\x01\0\0\0\x31\x02\x09\0\0\0kafka.h.a\x01\x01\0\0\0\x32" V));
    poll_add(VIEW("\0\0\0\0\0\0\0\0\0\0\0\0\0"), VIEW(ENVELOPE V));
    return poll_end(7);
}

TEST(a_map_without_memory_keeps_what_is_in_and_goes_on_with_some) {
    struct iggy_batch b = three_shapes();
    bool failed = true;
    for (int64_t nth = 1; failed; nth++) {
        struct message_map m = {0};
        struct spare out = {0};
        struct bytes bytes;
        struct batch k;
        message_map_init(&m, &out, 0, false);
        mem_fail_at(nth);
        enum status st = message_map_add(&m, &b, INT32_MAX);
        failed = !mem_fail_pending();
        mem_fail_at(0);
        CHECK_EQ(st, failed ? ST_NO_MEMORY : ST_OK);
        CHECK_EQ(message_map_finish(&m, &bytes), m.next_offset > 7 ? ST_OK : ST_NOT_FOUND);
        CHECK_EQ(message_map_add(&m, &b, INT32_MAX), ST_OK);
        CHECK_EQ(message_map_finish(&m, &bytes), ST_OK);
        CHECK_EQ(batch_read(bytes, &k), ST_OK);
        CHECK_EQ(k.records_count, 3);
        CHECK_EQ(k.base_offset, 7);
        message_map_release(&m);
        spare_release(&out);
    }
}
