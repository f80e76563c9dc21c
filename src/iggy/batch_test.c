#include "iggy/batch.h"

#include <jansson.h>
#include <stdlib.h>
#include <xxhash.h>
#include <zlib.h>

#include "base/le.h"
#include "base/mem.h"
#include "testing/test.h"

#define VECTOR_BYTES 370
#define ORIGIN_US    1700000000000000u

static struct iggy_batch_builder builder; /* used again by each test */

static struct iggy_u128 id_of(uint8_t number) {
    return (struct iggy_u128){{number}};
}

static void add(uint8_t id, uint64_t timestamp_us, const char *payload, const char *headers,
                int32_t headers_len) {
    struct iggy_u128 number = id_of(id);
    int32_t payload_len = (int32_t)strlen(payload);
    uint8_t *body;
    CHECK_EQ(
        iggy_batch_builder_add(&builder, id ? &number : NULL, timestamp_us, payload_len, headers_len, &body),
        ST_OK);
    memcpy(body, payload, (size_t)payload_len);
    if (headers_len > 0)
        memcpy(body + payload_len, headers, (size_t)headers_len);
}

static struct bytes two_messages(struct iggy_producer producer) {
    static const char header[] = "\x02\x01\0\0\0k\x01\x01\0\0\0\x01";
    struct bytes batch;
    CHECK_EQ(iggy_batch_builder_init(&builder, ORIGIN_US, 0), ST_OK);
    builder.producer = producer;
    add(1, ORIGIN_US, "hello", header, sizeof header - 1);
    add(2, ORIGIN_US + 250, "x", NULL, 0);
    iggy_batch_builder_finish(&builder, &batch);
    return batch;
}

/* As read and checked together. */
static enum status check(struct bytes in, bool producer_allowed, bool sent) {
    struct iggy_batch b;
    enum status st = iggy_batch_read(in, producer_allowed, &b);
    return st ? st : iggy_batch_check(&b, sent);
}

TEST(xxh3_is_the_one_of_iggy) {
    uint8_t all[256];
    for (unsigned i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    CHECK(XXH3_64bits("", 0) == 0x2d06800538d394c2);
    CHECK(XXH3_64bits("hello", 5) == 0x9555e8555c62dcfd);
    CHECK(XXH3_64bits(all, 256) == 0x9408a4433b952d71);
}

/* The bytes were verified against a server's own. */
static const uint8_t head_0_to_52[] = {0,    0,    0,    0,    0,    0,    0,    0,    0,    0, 0, 0,    0,
                                       0,    0,    0,    0,    0,    0,    0,    0,    0,    0, 0, 0x00, 0x40,
                                       0x1e, 0x18, 0x24, 0x0a, 0x06, 0x00, 0x72, 0x01, 0,    0, 0, 0,    0,
                                       0,    0x4d, 0xb8, 0xdc, 0x1a, 0x0a, 0xae, 0xdd, 0x30, 2, 0, 0,    0};
static const uint8_t frames[] = {
    0x04, 0x40, 0x15, 0xdd, 0x5d, 0x57, 0x67, 0xfb, 1,    0,    0,    0,    0,    0, 0, 0,   0,   0,
    0,    0,    0,    0,    0,    0, /* checksum, id */
    0,    0,    0,    0,    0,    0,    0,    0,    12,   0,    0,    0,    5,    0, 0, 0,   0,   0,
    0,    0,    0,    0,    0,    0,    'h',  'e',  'l',  'l',  'o',  2,    1,    0, 0, 0,   'k', 1,
    1,    0,    0,    0,    1,    0x26, 0x58, 0xc4, 0xd6, 0x54, 0xe2, 0x6d, 0xea, 2, 0, 0,   0,   0,
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    1,    0,    0, 0, 250, 0,   0,
    0,    0,    0,    0,    0,    1,    0,    0,    0,    0,    0,    0,    0,    0, 0, 0,   0,   'x'};

TEST(two_messages_make_the_known_bytes) {
    static const uint8_t zero[256 - 52];
    struct bytes batch = two_messages((struct iggy_producer){0});
    CHECK_EQ(batch.len, VECTOR_BYTES);
    CHECK_MEM(batch.ptr, head_0_to_52, sizeof head_0_to_52);
    CHECK_MEM(batch.ptr + 52, zero, sizeof zero);
    CHECK_EQ(sizeof frames, VECTOR_BYTES - 256);
    CHECK_MEM(batch.ptr + 256, frames, sizeof frames);
    CHECK_EQ(check(batch, false, true), ST_OK);
}

static const struct iggy_producer third_epoch = {
    .present = true, .id = 1048576, .epoch = 3, .base_sequence = 7};

TEST(the_producer_section_makes_the_known_bytes_and_0_11_refuses_it) {
    static const uint8_t head_40_to_72[] = {0x4c, 0x28, 0x5c, 0xe3, 0x0b, 0x57, 0x5a, 0xd6, 2, 0, 0,
                                            0,    1,    0,    0,    0,    0,    0,    0x10, 0, 0, 0,
                                            0,    0,    3,    0,    0,    0,    7,    0,    0, 0};
    struct bytes batch = two_messages(third_epoch);
    CHECK_MEM(batch.ptr + 40, head_40_to_72, sizeof head_40_to_72);
    CHECK_MEM(batch.ptr + 256, frames, sizeof frames);
    CHECK_EQ(check(batch, true, true), ST_OK);
    CHECK_EQ(check(batch, false, true), ST_BAD_RECORD);
    struct iggy_batch b;
    CHECK_EQ(iggy_batch_read(batch, true, &b), ST_OK);
    CHECK_EQ(b.producer.id, 1048576);
    CHECK_EQ(b.producer.epoch, 3);
    CHECK_EQ(b.producer.base_sequence, 7);
}

TEST(messages_are_read_as_they_were_added) {
    struct iggy_batch b;
    struct iggy_messages_iter it;
    struct iggy_message m;
    CHECK_EQ(iggy_batch_read(two_messages((struct iggy_producer){0}), false, &b), ST_OK);
    CHECK_EQ(b.messages_count, 2);
    CHECK_EQ(b.size_bytes, VECTOR_BYTES);
    CHECK_EQ(b.origin_timestamp_us, ORIGIN_US);
    iggy_messages_init(&it, &b);
    CHECK_EQ(iggy_messages_next(&it, &m), ST_OK);
    CHECK_EQ(m.id.b[0], 1);
    CHECK_EQ(m.payload.len, 5);
    CHECK_MEM(m.payload.ptr, "hello", 5);
    CHECK_EQ(m.headers.len, 12);
    CHECK_EQ(iggy_messages_next(&it, &m), ST_OK);
    CHECK_EQ(m.offset_delta, 1);
    CHECK_EQ(m.timestamp_delta_us, 250);
    CHECK_EQ(m.headers.len, 0);
    CHECK_EQ(iggy_messages_next(&it, &m), ST_NOT_FOUND);
}

static void for_each_prefix_and_flip(struct bytes batch, bool producer_allowed, bool sent) {
    uint8_t *copy = mem_take((size_t)batch.len);
    CHECK(copy != NULL);
    memcpy(copy, batch.ptr, (size_t)batch.len);
    for (int32_t len = 0; len < batch.len; len++)
        CHECK_EQ(check((struct bytes){copy, len}, producer_allowed, sent), ST_TRUNCATED);
    for (int32_t bit = 0; bit < batch.len * 8; bit++) {
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK(check((struct bytes){copy, batch.len}, producer_allowed, sent) != ST_OK);
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    CHECK_EQ(check((struct bytes){copy, batch.len}, producer_allowed, sent), ST_OK);
    mem_free(copy);
}

TEST(every_prefix_is_refused_and_every_flipped_bit_found) {
    for_each_prefix_and_flip(two_messages((struct iggy_producer){0}), false, true);
    for_each_prefix_and_flip(two_messages((struct iggy_producer){0}), true, false);
    for_each_prefix_and_flip(two_messages(third_epoch), true, true);
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

/* The same batch, made anew from what was read. A polled one has what the server filled in, which is written over the header. */
static void rebuild(const struct iggy_batch *b, struct bytes recorded) {
    struct iggy_messages_iter it;
    struct iggy_message m;
    struct bytes batch;
    CHECK_EQ(iggy_batch_builder_init(&builder, b->origin_timestamp_us, (size_t)recorded.len), ST_OK);
    builder.producer = b->producer;
    iggy_messages_init(&it, b);
    while (iggy_messages_next(&it, &m) == ST_OK) {
        uint8_t *body;
        CHECK_EQ(iggy_batch_builder_add(&builder, &m.id, b->origin_timestamp_us + m.timestamp_delta_us,
                                        m.payload.len, m.headers.len, &body),
                 ST_OK);
        memcpy(body, m.payload.ptr, (size_t)m.payload.len);
        memcpy(body + m.payload.len, m.headers.ptr, (size_t)m.headers.len);
    }
    iggy_batch_builder_finish(&builder, &batch);
    CHECK_EQ(batch.len, recorded.len);
    struct iggy_batch again = *b;
    uint8_t *header = builder.ptr;
    if (b->base_timestamp_us != 0) {
        again.checksum = 0;
        iggy_batch_write_header(header, &again);
        CHECK(again.checksum == b->checksum);
    }
    CHECK_MEM(header, recorded.ptr, IGGY_BATCH_HEADER_BYTES);
}

TEST(recorded_batches_are_read_and_made_again_byte_for_byte) {
    gzFile file = gzopen(TESTS_DIR "/golden/iggy_batches.jsonl.gz", "rb");
    CHECK(file != NULL);
    static char line[64 * 1024];
    int rows = 0;
    for (; gzgets(file, line, sizeof line); rows++) {
        json_t *row = json_loads(line, 0, NULL);
        CHECK(row != NULL);
        bool producer = json_is_true(json_object_get(row, "producer")),
             sent = json_is_true(json_object_get(row, "sent"));
        struct bytes recorded = bytes_of_hex(json_string_value(json_object_get(row, "hex")));
        struct iggy_batch b;
        CHECK_EQ(iggy_batch_read(recorded, producer, &b), ST_OK);
        CHECK_EQ(b.size_bytes, recorded.len);
        CHECK_EQ(iggy_batch_check(&b, sent), ST_OK);
        rebuild(&b, recorded);
        for_each_prefix_and_flip(recorded, producer, sent);
        mem_free((void *)(uintptr_t)recorded.ptr);
        json_decref(row);
    }
    gzclose(file);
    CHECK_EQ(rows, 28);
}

TEST(a_sent_batch_leaves_the_servers_fields_zero_and_counts_from_0) {
    struct iggy_batch b;
    struct bytes batch = two_messages((struct iggy_producer){0});
    uint8_t copy[VECTOR_BYTES];
    memcpy(copy, batch.ptr, sizeof copy);
    CHECK_EQ(iggy_batch_read((struct bytes){copy, VECTOR_BYTES}, false, &b), ST_OK);
    b.base_offset = 7;
    iggy_batch_write_header(copy, &b);
    CHECK_EQ(check((struct bytes){copy, VECTOR_BYTES}, false, false), ST_OK);
    CHECK_EQ(check((struct bytes){copy, VECTOR_BYTES}, false, true), ST_BAD_RECORD);
    CHECK_EQ(iggy_batch_read(batch, false, &b), ST_OK);
    /* A poll answers with the second message alone: its delta stays 1. */
    b.base_offset = 7;
    b.messages_count = 1;
    b.frames = (struct bytes){b.frames.ptr + 48 + 17, b.frames.len - 48 - 17};
    memcpy(copy + IGGY_BATCH_HEADER_BYTES, b.frames.ptr, (size_t)b.frames.len);
    iggy_batch_write_header(copy, &b);
    CHECK_EQ(b.size_bytes, 256 + 49);
    CHECK_EQ(check((struct bytes){copy, b.size_bytes}, false, false), ST_OK);
    CHECK_EQ(check((struct bytes){copy, b.size_bytes}, false, true), ST_BAD_RECORD);
}

/* The two messages with these offset deltas, and checksums that are right. */
static enum status with_deltas(uint32_t first, uint32_t second, bool sent) {
    uint8_t copy[VECTOR_BYTES], *frame = copy + IGGY_BATCH_HEADER_BYTES;
    struct iggy_batch b;
    memcpy(copy, two_messages((struct iggy_producer){0}).ptr, sizeof copy);
    CHECK_EQ(iggy_batch_read((struct bytes){copy, VECTOR_BYTES}, false, &b), ST_OK);
    le_set32(frame + 24, first);
    le_set64(frame, XXH3_64bits(frame + 8, 48 + 17 - 8));
    frame += 48 + 17;
    le_set32(frame + 24, second);
    le_set64(frame, XXH3_64bits(frame + 8, 48 + 1 - 8));
    iggy_batch_write_header(copy, &b);
    return check((struct bytes){copy, VECTOR_BYTES}, false, sent);
}

TEST(offset_deltas_count_from_0_when_sent_and_ascend_when_stored) {
    CHECK_EQ(with_deltas(0, 1, true), ST_OK);
    CHECK_EQ(with_deltas(0, 2, true), ST_BAD_RECORD);
    CHECK_EQ(with_deltas(1, 2, true), ST_BAD_RECORD);
    CHECK_EQ(with_deltas(3, 7, false), ST_OK);
    CHECK_EQ(with_deltas(3, 3, false), ST_BAD_RECORD);
    CHECK_EQ(with_deltas(3, 2, false), ST_BAD_RECORD);
    CHECK_EQ(with_deltas(3, UINT32_MAX, false), ST_BAD_RECORD);
}

TEST(reserved_bytes_of_a_message_are_zero_though_its_checksum_is_right) {
    for (int at = 40; at < 48; at++) {
        uint8_t copy[VECTOR_BYTES], *frame = copy + IGGY_BATCH_HEADER_BYTES;
        struct iggy_batch b;
        memcpy(copy, two_messages((struct iggy_producer){0}).ptr, sizeof copy);
        CHECK_EQ(iggy_batch_read((struct bytes){copy, VECTOR_BYTES}, false, &b), ST_OK);
        frame[at] = 1;
        le_set64(frame, XXH3_64bits(frame + 8, 48 + 17 - 8));
        iggy_batch_write_header(copy, &b);
        CHECK_EQ(check((struct bytes){copy, VECTOR_BYTES}, false, true), ST_BAD_RECORD);
    }
}

/* A batch whose checksums are right and whose frames are not. */
static enum status with_count(uint32_t count) {
    uint8_t copy[VECTOR_BYTES];
    struct iggy_batch b;
    memcpy(copy, two_messages((struct iggy_producer){0}).ptr, sizeof copy);
    CHECK_EQ(iggy_batch_read((struct bytes){copy, VECTOR_BYTES}, false, &b), ST_OK);
    b.messages_count = count;
    if (count < 3)
        iggy_batch_write_header(copy, &b);
    le_set32(copy + 48, count);
    return check((struct bytes){copy, VECTOR_BYTES}, false, true);
}

TEST(a_count_that_is_not_that_of_the_frames_is_refused) {
    CHECK_EQ(with_count(0), ST_BAD_LENGTH);
    CHECK_EQ(with_count(1), ST_BAD_RECORD);
    CHECK_EQ(with_count(2), ST_OK);
    CHECK_EQ(with_count(3), ST_BAD_LENGTH);
    CHECK_EQ(with_count(UINT32_MAX), ST_BAD_LENGTH);
}

TEST(a_length_that_no_batch_has_is_refused) {
    uint8_t copy[VECTOR_BYTES];
    struct iggy_batch b;
    memcpy(copy, two_messages((struct iggy_producer){0}).ptr, sizeof copy);
    static const uint64_t lengths[] = {0, 255, 256, 303, (uint64_t)INT32_MAX + 1, UINT64_MAX};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        le_set64(copy + 32, lengths[i]);
        CHECK_EQ(iggy_batch_read((struct bytes){copy, VECTOR_BYTES}, false, &b), ST_BAD_LENGTH);
    }
    le_set64(copy + 32, INT32_MAX);
    CHECK_EQ(iggy_batch_read((struct bytes){copy, VECTOR_BYTES}, false, &b), ST_TRUNCATED);
}

TEST(producer_numbers_out_of_range_are_refused) {
    uint8_t copy[VECTOR_BYTES];
    struct iggy_batch b;
    static const int tops[] = {63, 65, 71}; /* the highest byte of id, epoch and sequence */
    for (size_t i = 0; i < COUNT_OF(tops); i++) {
        memcpy(copy, two_messages(third_epoch).ptr, sizeof copy);
        copy[tops[i]] |= 0x80;
        CHECK_EQ(iggy_batch_read((struct bytes){copy, VECTOR_BYTES}, true, &b), ST_BAD_RECORD);
    }
}

TEST(a_message_before_the_origin_or_more_than_the_span_after_it_is_not_added) {
    uint8_t *body;
    CHECK_EQ(iggy_batch_builder_init(&builder, 1000, 0), ST_OK);
    CHECK_EQ(iggy_batch_builder_add(&builder, NULL, 999, 1, 0, &body), ST_BAD_TIMESTAMP);
    CHECK_EQ(iggy_batch_builder_add(&builder, NULL, 1001 + (uint64_t)UINT32_MAX, 1, 0, &body),
             ST_BAD_TIMESTAMP);
    CHECK_EQ(iggy_batch_builder_add(&builder, NULL, 1000 + (uint64_t)UINT32_MAX, 0, 0, &body), ST_OK);
    CHECK_EQ(iggy_batch_builder_add(&builder, NULL, 1000, INT32_MAX, INT32_MAX, &body), ST_TOO_BIG);
    struct bytes batch;
    iggy_batch_builder_finish(&builder, &batch);
    CHECK_EQ(batch.len, 256 + 48);
    CHECK_EQ(check(batch, false, true), ST_OK);
}

TEST(a_batch_can_be_built_as_a_server_stores_it) {
    struct bytes bytes;
    struct iggy_batch b;
    struct iggy_messages_iter it;
    struct iggy_message m;
    static const uint32_t deltas[] = {0, 5, 6};
    CHECK_EQ(iggy_batch_builder_init(&builder, ORIGIN_US, 0), ST_OK);
    builder.partition_id = 2;
    builder.base_offset = 40;
    builder.base_timestamp_us = ORIGIN_US + 9;
    add(0, ORIGIN_US, "a", NULL, 0);
    builder.next_delta = 5;
    add(0, ORIGIN_US, "b", NULL, 0);
    add(0, ORIGIN_US, "c", NULL, 0);
    iggy_batch_builder_finish(&builder, &bytes);
    CHECK_EQ(iggy_batch_read(bytes, false, &b), ST_OK);
    CHECK_EQ(iggy_batch_check(&b, false), ST_OK);
    CHECK_EQ(b.partition_id, 2);
    CHECK_EQ(b.base_offset, 40);
    CHECK_EQ(b.base_timestamp_us, ORIGIN_US + 9);
    iggy_messages_init(&it, &b);
    for (size_t i = 0; i < COUNT_OF(deltas); i++) {
        CHECK_EQ(iggy_messages_next(&it, &m), ST_OK);
        CHECK_EQ(m.offset_delta, deltas[i]);
    }
    two_messages((struct iggy_producer){0}); /* init forgets all of it */
    CHECK_EQ(check((struct bytes){builder.ptr, VECTOR_BYTES}, false, true), ST_OK);
}

TEST(many_messages_take_one_allocation_when_the_size_is_known) {
    struct iggy_batch_builder fresh = {0};
    CHECK_EQ(iggy_batch_builder_init(&fresh, 5, 256 + 1000 * 148), ST_OK);
    mem_fail_at(1);
    for (int i = 0; i < 1000; i++) {
        uint8_t *body;
        CHECK_EQ(iggy_batch_builder_add(&fresh, NULL, 5, 100, 0, &body), ST_OK);
        memset(body, i, 100);
    }
    struct bytes batch;
    iggy_batch_builder_finish(&fresh, &batch);
    CHECK_EQ(check(batch, false, true), ST_OK);
    CHECK(mem_fail_pending());
    mem_fail_at(0);
    iggy_batch_builder_release(&fresh);
}

TEST_OOM(a_builder_without_memory_keeps_what_it_has) {
    struct iggy_batch_builder fresh = {0};
    enum status st = iggy_batch_builder_init(&fresh, 5, 0);
    uint32_t added = 0;
    for (int i = 0; i < 40 && !st; i++) {
        uint8_t *body;
        st = iggy_batch_builder_add(&fresh, NULL, 5, 100, 0, &body);
        if (st)
            break;
        memset(body, i, 100);
        added++;
    }
    CHECK(!st || st == ST_NO_MEMORY);
    if (added > 0) {
        struct bytes batch;
        iggy_batch_builder_finish(&fresh, &batch);
        CHECK_EQ(batch.len, 256 + 148 * (int32_t)added);
        CHECK_EQ(check(batch, false, true), ST_OK);
    }
    iggy_batch_builder_release(&fresh);
}
