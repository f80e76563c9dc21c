#include "iggy/cut.h"

#include "base/le.h"
#include "base/mem.h"
#include "testing/test.h"

#define MESSAGES 5 /* in a batch */
#define BATCHES  3
#define PAYLOAD  10

/* Batches of five messages each: offsets 100 to 114, message n has n as its payload. */
struct stored {
    uint8_t *ptr;
    int32_t len;
};

static struct stored make_stored(bool producer) {
    struct stored all = {mem_take(65536), 0};
    struct iggy_batch_builder builder = {0};
    CHECK(all.ptr);
    for (uint64_t i = 0; i < BATCHES; i++) {
        struct bytes sent;
        struct iggy_batch b;
        CHECK_EQ(iggy_batch_builder_init(&builder, 1000, 0), ST_OK);
        if (producer)
            builder.producer = (struct iggy_producer){.present = true, .id = 7};
        for (uint64_t k = 0; k < MESSAGES; k++) {
            uint8_t *body;
            CHECK_EQ(iggy_batch_builder_add(&builder, NULL, 1000 + k, PAYLOAD, 0, &body), ST_OK);
            memset(body, (int)(100 + i * MESSAGES + k), PAYLOAD);
        }
        iggy_batch_builder_finish(&builder, &sent);
        CHECK_EQ(iggy_batch_read(sent, true, &b), ST_OK);
        b.base_offset = 100 + i * MESSAGES;
        b.partition_id = 2;
        b.base_timestamp_us = 5000 + i;
        memcpy(all.ptr + all.len, sent.ptr, (size_t)sent.len);
        b.frames.ptr = all.ptr + all.len + IGGY_BATCH_HEADER_BYTES;
        iggy_batch_write_header(all.ptr + all.len, &b);
        all.len += sent.len;
    }
    iggy_batch_builder_release(&builder);
    return all;
}

/* Cut, and look at every message that comes out. The first offset; -1: nothing. */
static int64_t run_cut(struct iggy_cut *cut, bool producer) {
    struct stored all = make_stored(producer);
    struct wbuf out;
    int64_t first = -1;
    uint32_t seen = 0;
    wbuf_init(&out, 1 << 20);
    CHECK_EQ(iggy_cut_add(cut, (struct bytes){all.ptr, all.len}, &out), ST_OK);
    CHECK_EQ((int64_t)out.bytes, cut->bytes);
    uint8_t *flat = mem_take(out.bytes + 1);
    CHECK(flat);
    wbuf_flatten(&out, flat);
    struct bytes in = {flat, (int32_t)out.bytes};
    while (in.len > 0) {
        struct iggy_batch b;
        struct iggy_messages_iter it;
        struct iggy_message m;
        CHECK_EQ(iggy_batch_read(in, producer && !cut->no_producer, &b), ST_OK);
        CHECK_EQ(iggy_batch_check(&b, false), ST_OK);
        CHECK_EQ(b.base_offset % MESSAGES, 0);
        iggy_messages_init(&it, &b);
        while (iggy_messages_next(&it, &m) == ST_OK) {
            int64_t offset = (int64_t)(b.base_offset + m.offset_delta);
            first = first < 0 ? offset : first;
            CHECK_EQ(offset, first + seen);
            CHECK_EQ(m.payload.ptr[0], offset);
            seen++;
        }
        in.ptr += b.size_bytes;
        in.len -= b.size_bytes;
    }
    CHECK_EQ(seen, cut->count);
    mem_free(flat);
    wbuf_release(&out);
    mem_free(all.ptr);
    return first;
}

TEST(all_of_it_goes_out_as_it_is) {
    struct iggy_cut cut = {.offset = 0, .count_max = 1000, .bytes_max = 1 << 20};
    CHECK_EQ(run_cut(&cut, false), 100);
    CHECK_EQ(cut.count, 15);
    CHECK_EQ(cut.offset, 115);
    CHECK(!cut.full);
}

TEST(a_poll_begins_within_a_batch) {
    struct iggy_cut cut = {.offset = 107, .count_max = 1000, .bytes_max = 1 << 20};
    CHECK_EQ(run_cut(&cut, false), 107);
    CHECK_EQ(cut.count, 8);
}

TEST(a_poll_ends_with_its_count) {
    for (uint32_t count = 1; count <= 15; count++) {
        struct iggy_cut cut = {.offset = 103, .count_max = count, .bytes_max = 1 << 20};
        CHECK_EQ(run_cut(&cut, false), 103);
        CHECK_EQ(cut.count, count < 12 ? count : 12);
        CHECK_EQ(cut.offset, 103 + cut.count);
        CHECK_EQ(cut.full, count < 12);
    }
}

TEST(bytes_end_it_but_one_message_comes_in_any_case) {
    const int64_t message = IGGY_MESSAGE_HEADER_BYTES + PAYLOAD;
    struct iggy_cut one = {.offset = 101, .count_max = 1000, .bytes_max = 1};
    CHECK_EQ(run_cut(&one, false), 101);
    CHECK_EQ(one.count, 1);
    CHECK(one.full);
    struct iggy_cut some = {
        .offset = 100, .count_max = 1000, .bytes_max = 2 * IGGY_BATCH_HEADER_BYTES + 7 * message};
    CHECK_EQ(run_cut(&some, false), 100);
    CHECK_EQ(some.count, 7);
}

TEST(nothing_beyond_the_end) {
    struct iggy_cut cut = {.offset = 115, .count_max = 1000, .bytes_max = 1 << 20};
    CHECK_EQ(run_cut(&cut, false), -1);
    CHECK_EQ(cut.offset, 115);
}

TEST(readers_of_0_11_get_no_producer_section) {
    struct iggy_cut with = {.offset = 0, .count_max = 1000, .bytes_max = 1 << 20};
    CHECK_EQ(run_cut(&with, true), 100);
    struct iggy_cut without = {.offset = 0, .count_max = 1000, .bytes_max = 1 << 20, .no_producer = true};
    CHECK_EQ(run_cut(&without, true), 100);
    CHECK_EQ(without.count, 15);
}

TEST(what_is_no_batch_is_refused) {
    struct stored all = make_stored(false);
    struct wbuf out;
    for (int32_t len = 1; len < all.len; len += 37) {
        struct iggy_cut cut = {.offset = 0, .count_max = 1000, .bytes_max = 1 << 20};
        wbuf_init(&out, 1 << 20);
        bool whole = len % (all.len / BATCHES) == 0;
        CHECK_EQ(iggy_cut_add(&cut, (struct bytes){all.ptr, len}, &out), whole ? ST_OK : ST_BAD_RECORD);
        wbuf_release(&out);
    }
    mem_free(all.ptr);
}
