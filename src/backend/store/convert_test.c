#include "backend/store/convert.h"

#include "base/mem.h"
#include "bridge/message_map.h"
#include "iggy/batch.h"
#include "testing/test.h"
#include "wire/records.h"

#define VIEW(literal) ((struct bytes){(const uint8_t *)(literal), (int32_t)sizeof(literal) - 1})
#define T0            1700000000000 /* ms */
#define RUN_BYTES_MAX (8 << 20)
#define NO_RECORD     "\x02\x07\0\0\0kafka.v\x01\x01\0\0\0\x02" /* of a version that nobody knows (E-12) */

/* What a read of the store might have brought: batches of one format are one run. */
struct log {
    uint8_t *memory[16];
    struct store_run runs[16];
    struct store_read data;
    int64_t next;
};

static void log_add(struct log *l, struct bytes batch, uint8_t format, int32_t records) {
    struct store_read *d = &l->data;
    d->runs = l->runs;
    if (d->runs_count == 0 || d->runs[d->runs_count - 1].format != format) {
        uint8_t *memory = mem_take(RUN_BYTES_MAX);
        CHECK(memory != NULL && d->runs_count < (int)COUNT_OF(l->runs));
        l->memory[d->runs_count] = memory;
        d->runs[d->runs_count++] = (struct store_run){{memory, 0}, format};
    }
    struct store_run *run = &d->runs[d->runs_count - 1];
    CHECK(run->bytes.len + batch.len <= RUN_BYTES_MAX);
    memcpy((uint8_t *)(uintptr_t)run->bytes.ptr + run->bytes.len, batch.ptr, (size_t)batch.len);
    run->bytes.len += batch.len;
    d->bytes += batch.len;
    l->next += records;
}

static void log_release(struct log *l) {
    for (int i = 0; i < l->data.runs_count; i++)
        mem_free(l->memory[i]);
}

static void add_kafka(struct log *l, int32_t count, int32_t value_bytes, enum codec codec) {
    struct spare out = {0}, packed = {0};
    struct batch_builder k;
    struct bytes batch;
    uint8_t *value = mem_take_zeroed(1, (size_t)value_bytes);
    CHECK_EQ(batch_builder_init(&k, &out, T0), ST_OK);
    for (int32_t i = 0; i < count; i++)
        CHECK_EQ(batch_builder_add(&k, T0, -1, BYTES_NULL, (struct bytes){value, value_bytes}, NULL, 0),
                 ST_OK);
    CHECK_EQ(batch_builder_finish(&k, l->next, codec, &packed, &batch), ST_OK);
    log_add(l, batch, STORE_FORMAT_KAFKA, count);
    mem_free(value);
    spare_release(&out);
    spare_release(&packed);
}

static void add_iggy(struct log *l, int32_t count, int32_t payload_bytes, struct bytes headers) {
    struct iggy_batch_builder out = {0};
    struct bytes batch;
    CHECK_EQ(iggy_batch_builder_init(&out, T0 * 1000, 0), ST_OK);
    out.base_offset = (uint64_t)l->next;
    for (int32_t i = 0; i < count; i++) {
        uint8_t *body;
        CHECK_EQ(iggy_batch_builder_add(&out, NULL, T0 * 1000, payload_bytes, headers.len, &body), ST_OK);
        memset(body, 0, (size_t)payload_bytes);
        memcpy(body + payload_bytes, headers.ptr, (size_t)headers.len);
    }
    iggy_batch_builder_finish(&out, &batch);
    log_add(l, batch, STORE_FORMAT_IGGY, count);
    iggy_batch_builder_release(&out);
}

/* All offsets of the slices, which must follow one another. The first; *next_out is behind the last. */
static int64_t kafka_offsets(const struct read_out *out, int64_t *next_out, int *batches_out) {
    int64_t first = -1;
    *batches_out = 0;
    for (int32_t i = 0; i < out->count; i++) {
        struct bytes left = out->slices[i];
        while (left.len > 0) {
            struct batch b;
            struct records_iter it;
            struct record r;
            CHECK_EQ(batch_read(left, &b), ST_OK);
            CHECK(first < 0 || b.base_offset == *next_out);
            first = first < 0 ? b.base_offset : first;
            records_iter_init(&it, b.body, b.records_count);
            while (b.codec == CODEC_NONE && records_next(&it, &r) == ST_OK)
                CHECK(r.offset_delta <= b.last_offset_delta);
            *next_out = b.base_offset + b.last_offset_delta + 1;
            left = (struct bytes){left.ptr + b.size_bytes, left.len - b.size_bytes};
            ++*batches_out;
        }
    }
    return first;
}

static int64_t iggy_offsets(const struct read_out *out, int64_t *next_out, int *batches_out) {
    int64_t first = -1;
    *batches_out = 0;
    for (int32_t i = 0; i < out->count; i++) {
        struct bytes left = out->slices[i];
        while (left.len > 0) {
            struct iggy_batch b;
            CHECK_EQ(iggy_batch_read(left, false, &b), ST_OK);
            CHECK_EQ(iggy_batch_check(&b, false), ST_OK);
            CHECK(first < 0 || (int64_t)b.base_offset == *next_out);
            first = first < 0 ? (int64_t)b.base_offset : first;
            *next_out = (int64_t)b.base_offset + b.messages_count;
            left = (struct bytes){left.ptr + b.size_bytes, left.len - b.size_bytes};
            ++*batches_out;
        }
    }
    return first;
}

static struct convert wanted(enum backend_format format, int64_t offset, int64_t bytes_max) {
    return (struct convert){.format = format, .offset = offset, .bytes_max = bytes_max};
}

TEST(each_kafka_batch_is_one_iggy_batch_and_small_ones_share_a_slice) {
    struct log l = {0};
    struct read_out out = {0};
    int64_t next;
    int batches;
    for (int i = 0; i < 100; i++)
        add_kafka(&l, 3, 10, i % 2 ? CODEC_LZ4 : CODEC_NONE);
    struct convert c = wanted(FORMAT_IGGY, 4, 1 << 20);
    CHECK(!read_is_of(&l.data, FORMAT_IGGY));
    CHECK(read_is_of(&l.data, FORMAT_KAFKA));
    CHECK_EQ(convert_read(&c, &l.data, &out), ST_OK);
    CHECK_EQ(iggy_offsets(&out, &next, &batches), 4); /* nothing before it is made */
    CHECK_EQ(next, 300);
    CHECK_EQ(batches, 99);
    CHECK_EQ(out.count, 1);
    CHECK(!out.borrows);
    read_out_release(&out);
    log_release(&l);
}

TEST(the_iggy_batches_of_a_run_are_one_kafka_batch) {
    struct log l = {0};
    struct read_out out = {0};
    int64_t next;
    int batches;
    for (int i = 0; i < 100; i++)
        add_iggy(&l, 3, 10, VIEW(""));
    struct convert c = wanted(FORMAT_KAFKA, 4, 1 << 20);
    CHECK_EQ(convert_read(&c, &l.data, &out), ST_OK);
    CHECK_EQ(kafka_offsets(&out, &next, &batches), 4);
    CHECK_EQ(next, 300);
    CHECK_EQ(batches, 1);
    read_out_release(&out);
    log_release(&l);
}

TEST(runs_of_both_formats_keep_their_order_and_what_fits_is_borrowed) {
    for (int format = FORMAT_KAFKA; format <= FORMAT_IGGY; format++) {
        struct log l = {0};
        struct read_out out = {0};
        int64_t next;
        int batches;
        for (int i = 0; i < 5; i++) {
            add_kafka(&l, 2, 100, CODEC_GZIP);
            add_iggy(&l, 4, 100, VIEW(""));
        }
        struct convert c = wanted((enum backend_format)format, 0, 1 << 20);
        CHECK_EQ(convert_read(&c, &l.data, &out), ST_OK);
        CHECK_EQ(format == FORMAT_KAFKA ? kafka_offsets(&out, &next, &batches)
                                        : iggy_offsets(&out, &next, &batches),
                 0);
        CHECK_EQ(next, 30);
        CHECK_EQ(batches, 10);
        CHECK(out.borrows);
        const uint8_t *stored = l.data.runs[format == FORMAT_KAFKA ? 0 : 1].bytes.ptr;
        CHECK(out.slices[format == FORMAT_KAFKA ? 0 : 1].ptr == stored);
        read_out_release(&out);
        log_release(&l);
    }
}

/* Reads with a limit, one after the other, until all is read; each within the limit but for a first batch of one record. */
static int read_all(const struct log *l, enum backend_format format, int64_t bytes_max, int64_t one_bytes) {
    int rounds = 0;
    for (int64_t at = 0; at < l->next; rounds++) {
        struct read_out out = {0};
        int64_t next;
        int batches;
        struct convert c = wanted(format, at, bytes_max);
        CHECK_EQ(convert_read(&c, &l->data, &out), ST_OK);
        CHECK_EQ(format == FORMAT_KAFKA ? kafka_offsets(&out, &next, &batches)
                                        : iggy_offsets(&out, &next, &batches),
                 at);
        CHECK(out.bytes <= bytes_max || (batches == 1 && out.bytes <= one_bytes));
        at = next;
        read_out_release(&out);
    }
    return rounds;
}

TEST(a_read_gives_no_more_than_its_limit_and_the_next_goes_on) { /* KIP-74 */
    struct log kafka = {0}, iggy = {0};
    for (int i = 0; i < 3; i++) {
        add_kafka(&kafka, 1000, 500, CODEC_ZSTD);
        add_iggy(&iggy, 1000, 500, VIEW(""));
    }
    const int64_t limits[] = {0, 700, 40000, 300000, 5 << 20};
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        int rounds = read_all(&kafka, FORMAT_IGGY, limits[i], 1000);
        CHECK(limits[i] > 0 || rounds == 3000);
        CHECK(limits[i] < 5 << 20 || rounds == 1);
        rounds = read_all(&iggy, FORMAT_KAFKA, limits[i], 1000);
        CHECK(limits[i] > 0 || rounds == 3000);
        CHECK(limits[i] < 5 << 20 || rounds == 1);
    }
    log_release(&kafka);
    log_release(&iggy);
}

TEST(long_runs_go_out_in_pieces_of_a_mebibyte) {
    struct log kafka = {0}, iggy = {0};
    struct read_out out = {0};
    int64_t next;
    int batches;
    add_kafka(&kafka, 5000, 1000, CODEC_NONE);
    for (int i = 0; i < 50; i++)
        add_iggy(&iggy, 100, 1000, VIEW(""));
    struct convert c = wanted(FORMAT_IGGY, 0, 64 << 20);
    CHECK_EQ(convert_read(&c, &kafka.data, &out), ST_OK);
    CHECK_EQ(iggy_offsets(&out, &next, &batches), 0);
    CHECK_EQ(next, 5000);
    CHECK_EQ(batches, 6);
    read_out_release(&out);
    c = wanted(FORMAT_KAFKA, 0, 64 << 20);
    CHECK_EQ(convert_read(&c, &iggy.data, &out), ST_OK);
    CHECK_EQ(kafka_offsets(&out, &next, &batches), 0);
    CHECK_EQ(next, 5000);
    CHECK_EQ(batches, 5);
    for (int32_t i = 0; i < out.count; i++)
        CHECK(out.slices[i].len <= 1 << 20);
    read_out_release(&out);
    log_release(&kafka);
    log_release(&iggy);
}

TEST(batches_as_stored_are_cut_off_where_what_was_made_before_them_left_no_room) {
    struct log l = {0};
    struct read_out out = {0};
    int64_t next;
    int batches;
    add_kafka(&l, 1000, 100, CODEC_ZSTD); /* little, which becomes much */
    for (int i = 0; i < 10; i++)
        add_iggy(&l, 10, 1000, VIEW(""));
    struct convert c = wanted(FORMAT_IGGY, 0, 200000);
    CHECK(l.data.bytes < 150000);
    CHECK_EQ(convert_read(&c, &l.data, &out), ST_OK);
    CHECK_EQ(iggy_offsets(&out, &next, &batches), 0);
    CHECK(next > 1000 && next < 1100 && next % 10 == 0);
    CHECK(out.bytes <= 200000);
    read_out_release(&out);
    log_release(&l);
}

TEST(a_message_that_is_no_record_stops_the_read_before_it) { /* H-15 */
    struct log l = {0};
    struct read_out out = {0};
    int64_t next;
    int batches;
    add_iggy(&l, 2, 10, VIEW(""));
    add_iggy(&l, 1, 10, VIEW(NO_RECORD));
    add_iggy(&l, 2, 10, VIEW(""));
    struct convert c = wanted(FORMAT_KAFKA, 0, 1 << 20);
    CHECK_EQ(convert_read(&c, &l.data, &out), ST_OK);
    CHECK_EQ(kafka_offsets(&out, &next, &batches), 0);
    CHECK_EQ(next, 2);
    read_out_release(&out);
    c = wanted(FORMAT_KAFKA, 2, 1 << 20);
    CHECK_EQ(convert_read(&c, &l.data, &out), ST_UNMAPPABLE);
    CHECK_EQ(out.count, 0);
    read_out_release(&out);
    c = wanted(FORMAT_KAFKA, 3, 1 << 20); /* who seeks past it goes on */
    CHECK_EQ(convert_read(&c, &l.data, &out), ST_OK);
    CHECK_EQ(kafka_offsets(&out, &next, &batches), 3);
    CHECK_EQ(next, 5);
    read_out_release(&out);
    log_release(&l);
}

TEST(messages_that_are_no_records_are_passed_over_when_that_is_wanted) { /* H-15 */
    struct log l = {0};
    struct read_out out = {0};
    int64_t next;
    int batches;
    add_iggy(&l, 3, 10, VIEW(NO_RECORD));
    struct convert c = wanted(FORMAT_KAFKA, 1, 1 << 20);
    c.skip = true;
    CHECK_EQ(convert_read(&c, &l.data, &out), ST_OK);
    CHECK_EQ(kafka_offsets(&out, &next, &batches), 1); /* without records: readers go on behind it */
    CHECK_EQ(next, 3);
    CHECK_EQ(c.skipped_count, 2);
    read_out_release(&out);
    log_release(&l);
}

TEST(a_stored_batch_that_is_none_is_damage_and_what_is_before_it_is_served) {
    for (int good = 0; good < 2; good++)
        for (int format = FORMAT_KAFKA; format <= FORMAT_IGGY; format++) {
            struct log l = {0};
            struct read_out out = {0};
            if (good) {
                add_kafka(&l, 2, 10, CODEC_NONE);
                add_iggy(&l, 2, 10, VIEW(""));
            }
            if (format == FORMAT_KAFKA)
                log_add(&l, VIEW("no batch at all"), STORE_FORMAT_IGGY, 1);
            else
                log_add(&l, VIEW("no batch at all"), STORE_FORMAT_KAFKA, 1);
            struct convert c = wanted((enum backend_format)format, 0, 1 << 20);
            CHECK_EQ(convert_read(&c, &l.data, &out), good ? ST_OK : ST_CORRUPT);
            CHECK_EQ(out.count > 0, good);
            read_out_release(&out);
            log_release(&l);
        }
}

TEST(a_read_without_memory_gives_what_it_has_or_says_so) {
    for (int format = FORMAT_KAFKA; format <= FORMAT_IGGY; format++) {
        struct log l = {0};
        for (int i = 0; i < 7; i++) {
            add_iggy(&l, 30, 1500, VIEW("\x02\x01\0\0\0k\x01\x01\0\0\0v"));
            add_kafka(&l, 400, 100, CODEC_NONE);
        }
        bool pending = false;
        for (int64_t nth = 1; !pending; nth++) {
            struct read_out out = {0};
            struct convert c = wanted((enum backend_format)format, 0, 64 << 20);
            mem_fail_at(nth);
            enum status st = convert_read(&c, &l.data, &out);
            pending = mem_fail_pending();
            mem_fail_at(0);
            int64_t next = 0;
            int batches;
            CHECK_EQ(st, out.count > 0 ? ST_OK : ST_NO_MEMORY);
            if (format == FORMAT_KAFKA)
                kafka_offsets(&out, &next, &batches);
            else
                iggy_offsets(&out, &next, &batches);
            CHECK_EQ(next == l.next, pending);
            read_out_release(&out);
        }
        log_release(&l);
    }
}
