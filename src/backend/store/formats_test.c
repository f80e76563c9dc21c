/* Both formats in one log: what Iggy clients append and what Kafka clients append, each read as either. */
#include "backend/store/rig_test.h"
#include "base/clock.h"
#include "base/mem.h"
#include "bridge/message_map.h"
#include "iggy/batch.h"
#include "testing/test.h"
#include "wire/records.h"

#define VIEW(literal) ((struct bytes){(const uint8_t *)(literal), (int32_t)sizeof(literal) - 1})
#define NO_RECORD     "\x02\x07\0\0\0kafka.v\x01\x01\0\0\0\x02" /* of a version that nobody knows (E-12) */

static uint64_t seed;

static uint32_t below(uint32_t n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

static uint8_t pattern[1 << 16];

static struct bytes any_bytes(uint32_t most) {
    if (pattern[1] == 0)
        for (size_t i = 0; i < sizeof pattern; i++)
            pattern[i] = (uint8_t)(i * 31 + i / 250);
    return (struct bytes){pattern + below(1000), (int32_t)below(most + 1)};
}

/* ---- batches; the caller's ---- */

static int64_t append_no_record(struct rig *rig) {
    const struct message m = {ORIGIN_US, VIEW("?"), VIEW(NO_RECORD)};
    struct bytes batch = sent_batch(&m, 1);
    int64_t offset = append_one(rig, "orders", 0, batch, FORMAT_IGGY);
    free_batch(batch);
    return offset;
}

/* ---- what a read gives, record by record ---- */

/* Sums over everything that a Kafka client sees of a record, by offset; 0: there is none. */
#define OFFSETS_MAX 20000
struct seen {
    uint64_t records[OFFSETS_MAX];
    int64_t next;
};

static uint64_t mix(uint64_t sum, struct bytes b) {
    sum = (sum ^ (uint64_t)(uint32_t)b.len) * UINT64_C(0x100000001b3);
    for (int32_t i = 0; i < b.len; i++)
        sum = (sum ^ b.ptr[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static void see_kafka(struct seen *seen, struct bytes left, int64_t from) {
    static struct spare scratch;
    while (left.len > 0) {
        struct batch b;
        struct bytes body;
        struct records_iter it;
        struct record r;
        CHECK_EQ(batch_read(left, &b), ST_OK);
        CHECK_EQ(batch_records(&b, 1 << 30, &scratch, &body), ST_OK);
        records_iter_init(&it, body, b.records_count);
        while (records_next(&it, &r) == ST_OK) {
            int64_t offset = b.base_offset + r.offset_delta;
            uint64_t sum = mix(mix((uint64_t)record_timestamp(&b, &r), r.key), r.value);
            struct record_header h;
            for (int32_t i = 0; i < r.headers_count; i++) {
                CHECK_EQ(record_header_next(&r.headers, &h), ST_OK);
                sum = mix(mix(sum, (struct bytes){(const uint8_t *)h.key.ptr, h.key.len}), h.value);
            }
            CHECK(offset < OFFSETS_MAX && seen->records[offset] == 0);
            if (offset >= from)
                seen->records[offset] = sum;
        }
        seen->next = b.base_offset + b.last_offset_delta + 1;
        left = (struct bytes){left.ptr + b.size_bytes, left.len - b.size_bytes};
    }
}

/* Messages as the records that they make: for what Kafka clients wrote that is what it was. */
static void see_iggy(struct seen *seen, struct bytes left, int64_t from) {
    static struct message_map map;
    static struct spare out;
    while (left.len > 0) {
        struct iggy_batch b;
        struct iggy_messages_iter it;
        struct iggy_message m;
        struct bytes made;
        CHECK_EQ(iggy_batch_read(left, true, &b), ST_OK);
        CHECK_EQ(iggy_batch_check(&b, false), ST_OK);
        CHECK_EQ(b.partition_id, 0);
        message_map_init(&map, &out, from, false);
        CHECK_EQ(message_map_add(&map, &b, INT32_MAX), ST_OK);
        CHECK_EQ(message_map_finish(&map, &made), ST_OK);
        see_kafka(seen, made, from);
        iggy_messages_init(&it, &b);
        while (iggy_messages_next(&it, &m) == ST_OK)
            seen->next = (int64_t)(b.base_offset + m.offset_delta + 1);
        left = (struct bytes){left.ptr + b.size_bytes, left.len - b.size_bytes};
    }
}

/* All of partition 0 of "orders", in reads of at most so many bytes. */
static void see_all(struct rig *rig, enum backend_format format, int32_t bytes_max, struct seen *seen) {
    struct backend_read_part part = read_part("orders", 0, 0);
    struct backend_read read = read_of(&part, 1);
    *seen = (struct seen){.next = 0};
    part.bytes_max = bytes_max;
    read.format = format;
    do {
        int64_t from = part.offset = seen->next;
        RUN(rig, read, &read);
        CHECK_EQ(part.status, ST_OK);
        int64_t bytes = 0;
        for (int32_t i = 0; i < part.records_count; i++) {
            bytes += part.records[i].len;
            if (format == FORMAT_KAFKA)
                see_kafka(seen, part.records[i], from);
            else
                see_iggy(seen, part.records[i], from);
        }
        CHECK_EQ(part.bytes, bytes);
        CHECK_EQ(read.bytes, bytes);
        CHECK(part.offset == part.high_watermark || seen->next > part.offset);
    } while (seen->next < part.high_watermark);
    backend_read_release(rig->backend, &read);
}

TEST(an_iggy_batch_is_stored_as_sent_with_partition_offset_and_append_time) {
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 2);
    const uint64_t origins[] = {ORIGIN_US + 5, ORIGIN_US};
    int64_t before = clock_wall_us();
    CHECK_EQ(append_messages(&rig, 1, origins, 2), 0);
    CHECK_EQ(append_messages(&rig, 1, origins, 2), 2);

    struct backend_read_part part = read_part("orders", 1, 2);
    struct backend_read read = read_of(&part, 1);
    read.format = FORMAT_IGGY;
    RUN(&rig, read, &read);
    struct iggy_batch b;
    CHECK_EQ(part.status, ST_OK);
    CHECK_EQ(part.records_count, 1);
    CHECK_EQ(iggy_batch_read(part.records[0], false, &b), ST_OK);
    CHECK_EQ(b.size_bytes, part.bytes);
    CHECK_EQ(iggy_batch_check(&b, false), ST_OK);
    CHECK_EQ(b.partition_id, 1);
    CHECK_EQ(b.base_offset, 2);
    CHECK(b.base_timestamp_us >= (uint64_t)before && b.base_timestamp_us <= (uint64_t)clock_wall_us());
    CHECK_EQ(b.origin_timestamp_us, ORIGIN_US);
    struct bytes sent = messages_at(origins, 2);
    CHECK_EQ(sent.len, part.records[0].len);
    CHECK_MEM(sent.ptr + IGGY_BATCH_HEADER_BYTES, b.frames.ptr, (size_t)b.frames.len);
    free_batch(sent);
    backend_read_release(rig.backend, &read);
    rig_close(&rig);
}

/* One message of a producer that numbers its batches. What comes of it; *offset: where. */
static enum status append_numbered(struct rig *rig, uint16_t epoch, uint32_t sequence, int64_t *offset) {
    const uint64_t origin = ORIGIN_US;
    struct bytes batch = messages_at(&origin, 1);
    struct iggy_batch b;
    CHECK_EQ(iggy_batch_read(batch, true, &b), ST_OK);
    b.producer = (struct iggy_producer){.present = true, .id = 77, .epoch = epoch, .base_sequence = sequence};
    iggy_batch_write_header((uint8_t *)(uintptr_t)batch.ptr, &b);
    struct backend_append_part part = {.topic = STR("orders"), .records = batch};
    struct backend_append append = append_of(rig, &part, 1);
    append.format = FORMAT_IGGY;
    append.durable = true;
    RUN(rig, append, &append);
    free_batch(batch);
    *offset = part.base_offset;
    return part.status;
}

TEST(a_numbered_batch_is_stored_once_and_in_order) {
    struct rig rig;
    int64_t offset;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    CHECK_EQ(append_numbered(&rig, 0, 0, &offset), ST_OK);
    CHECK_EQ(append_numbered(&rig, 0, 1, &offset), ST_OK);
    CHECK_EQ(offset, 1);
    CHECK_EQ(append_numbered(&rig, 0, 0, &offset), ST_OK); /* again: where it is */
    CHECK_EQ(offset, 0);
    CHECK_EQ(append_numbered(&rig, 0, 3, &offset), ST_BAD_SEQUENCE);
    CHECK_EQ(offset, -1);
    CHECK_EQ(append_numbered(&rig, 1, 0, &offset), ST_OK);
    CHECK_EQ(append_numbered(&rig, 0, 2, &offset), ST_FENCED);
    CHECK_EQ(append_records(&rig, "orders", 0, 1, 10, 5), 3); /* three are there */
    rig_close(&rig);
}

/* Else what was lost in a restart would be taken for a repetition, once something behind it is stored. */
TEST(a_numbered_batch_is_in_order_after_a_restart_too) {
    struct rig rig;
    const char *dir = test_dir();
    int64_t offset;
    rig_open(&rig, dir, false);
    make_topic(&rig, "orders", 1);
    for (uint32_t sequence = 0; sequence < 3; sequence++)
        CHECK_EQ(append_numbered(&rig, 0, sequence, &offset), ST_OK);
    rig_close(&rig);
    rig_open(&rig, dir, false);
    CHECK_EQ(append_numbered(&rig, 0, 4, &offset), ST_BAD_SEQUENCE);
    CHECK_EQ(append_numbered(&rig, 0, 2, &offset), ST_OK);
    CHECK_EQ(offset, 2);
    CHECK_EQ(append_numbered(&rig, 0, 3, &offset), ST_OK);
    CHECK_EQ(offset, 3);
    rig_close(&rig);
}

TEST(a_kafka_client_reads_what_an_iggy_client_sent) { /* E-10 */
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    const struct message m = {ORIGIN_US + 1999, VIEW("hello"), VIEW("\x02\x01\0\0\0k\x01\x01\0\0\0\x07")};
    struct bytes sent = sent_batch(&m, 1);
    append_one(&rig, "orders", 0, sent, FORMAT_IGGY);
    free_batch(sent);
    struct backend_read_part part = read_part("orders", 0, 0);
    struct backend_read read = read_of(&part, 1);
    RUN(&rig, read, &read);
    struct batch b;
    struct records_iter it;
    struct record r;
    struct record_header h;
    CHECK_EQ(part.records_count, 1);
    CHECK_EQ(batch_read(part.records[0], &b), ST_OK);
    records_iter_init(&it, b.body, b.records_count);
    CHECK_EQ(records_next(&it, &r), ST_OK);
    CHECK_EQ(record_timestamp(&b, &r), TIMESTAMP_MS + 1);
    CHECK_EQ(r.key.len, -1);
    CHECK_EQ(r.value.len, 5);
    CHECK_MEM(r.value.ptr, "hello", 5);
    CHECK_EQ(r.headers_count, 1);
    CHECK_EQ(record_header_next(&r.headers, &h), ST_OK);
    CHECK(str_equal(h.key, STR("k")) && h.value.len == 1 && h.value.ptr[0] == 7);
    backend_read_release(rig.backend, &read);
    rig_close(&rig);
}

static void append_any_kafka(struct rig *rig) {
    struct spare out = {0}, packed = {0};
    struct batch_builder k;
    struct bytes batch;
    int count = 1 + (int)below(40);
    CHECK_EQ(batch_builder_init(&k, &out, TIMESTAMP_MS), ST_OK);
    for (int i = 0; i < count; i++) {
        struct record_header headers[3];
        for (int h = 0; h < 3; h++)
            headers[h] = (struct record_header){{&"abc"[below(3)], 1}, any_bytes(300)};
        CHECK_EQ(batch_builder_add(&k, TIMESTAMP_MS - 1000 + below(10000000), -1,
                                   below(2) ? BYTES_NULL : any_bytes(300),
                                   below(9) ? any_bytes(3000) : BYTES_NULL, headers, (int32_t)below(4)),
                 ST_OK);
    }
    CHECK_EQ(batch_builder_finish(&k, 0, (enum codec)below(5), &packed, &batch), ST_OK);
    append_one(rig, "orders", 0, batch, FORMAT_KAFKA);
    spare_release(&out);
    spare_release(&packed);
}

static void append_any_iggy(struct rig *rig) {
    struct message messages[40];
    int count = 1 + (int)below(40);
    for (int i = 0; i < count; i++)
        messages[i] = (struct message){.origin_us = below(5) ? ORIGIN_US + below(1000000000) : ORIGIN_US,
                                       .payload = any_bytes(3000),
                                       .headers = below(3) ? (struct bytes){NULL, 0}
                                                           : VIEW("\x02\x01\0\0\0k\x01\x03\0\0\0any")};
    struct bytes batch = sent_batch(messages, count);
    append_one(rig, "orders", 0, batch, FORMAT_IGGY);
    free_batch(batch);
}

TEST(a_mixed_log_has_the_same_records_at_the_same_offsets_in_both_formats) {
    static struct seen kafka, iggy, again;
    static const int32_t limits[] = {1, 3000, 100000, 1 << 20};
    for (uint64_t run = 1; run <= 6; run++) {
        struct rig rig;
        seed = run;
        rig_open(&rig, test_dir(), false);
        make_topic(&rig, "orders", 1);
        for (int i = 0; i < 40; i++) {
            if (below(2))
                append_any_kafka(&rig);
            else
                append_any_iggy(&rig);
        }
        see_all(&rig, FORMAT_KAFKA, 1 << 20, &kafka);
        for (int64_t i = 0; i < kafka.next; i++)
            CHECK(kafka.records[i] != 0);
        for (size_t i = 0; i < COUNT_OF(limits); i++) {
            see_all(&rig, FORMAT_IGGY, limits[i], &iggy);
            CHECK_MEM(&iggy, &kafka, sizeof kafka);
            see_all(&rig, FORMAT_KAFKA, limits[i], &again);
            CHECK_MEM(&again, &kafka, sizeof kafka);
        }
        rig_close(&rig);
    }
}

TEST(appends_of_both_formats_from_two_loops_get_every_offset_once) {
    enum { EACH = 16, ROUNDS = 12 };
    static struct turn in_flight[LOOPS_COUNT][EACH];
    static struct seen kafka, iggy;
    struct rig rig;
    int64_t next = 0;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    for (int round = 0; round < ROUNDS; round++) {
        struct backend_append_part parts[LOOPS_COUNT][EACH];
        struct backend_append calls[LOOPS_COUNT][EACH];
        struct arena arenas[LOOPS_COUNT];
        const uint64_t origins[] = {ORIGIN_US, ORIGIN_US + 1000, ORIGIN_US};
        for (int loop = 0; loop < LOOPS_COUNT; loop++) {
            arena_init(&arenas[loop], NULL, 0, 1 << 20);
            for (int k = 0; k < EACH; k++) {
                bool messages = (k + loop) % 2;
                struct bytes batch = messages ? messages_at(origins, 3) : make_batch(2, 50, TIMESTAMP_MS);
                parts[loop][k] = (struct backend_append_part){.topic = STR("orders"), .records = batch};
                calls[loop][k] = append_of(&rig, &parts[loop][k], 1);
                calls[loop][k].arena = &arenas[loop];
                calls[loop][k].durable = k % 3 == 0;
                calls[loop][k].format = messages ? FORMAT_IGGY : FORMAT_KAFKA;
                turn_start(&in_flight[loop][k], &rig, loop, &calls[loop][k].op, &calls[loop][k],
                           begin_append);
            }
        }
        for (int i = 0; i < LOOPS_COUNT * EACH; i++) {
            int loop = i % LOOPS_COUNT, k = i / LOOPS_COUNT;
            turn_wait(&in_flight[loop][k]);
            CHECK_EQ(parts[loop][k].status, ST_OK);
            CHECK(k == 0 || parts[loop][k].base_offset > parts[loop][k - 1].base_offset);
            free_batch(parts[loop][k].records);
        }
        for (int loop = 0; loop < LOOPS_COUNT; loop++)
            arena_release(&arenas[loop]);
        next += LOOPS_COUNT * EACH / 2 * 5;
    }
    see_all(&rig, FORMAT_KAFKA, 1 << 20, &kafka);
    see_all(&rig, FORMAT_IGGY, 1 << 20, &iggy);
    CHECK_EQ(kafka.next, next);
    CHECK_MEM(&iggy, &kafka, sizeof kafka);
    rig_close(&rig);
}

TEST(what_is_no_iggy_batch_is_not_stored) {
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    const uint64_t origins[] = {ORIGIN_US};
    struct bytes good = messages_at(origins, 1), kafka = make_batch(1, 300, TIMESTAMP_MS);
    struct backend_append_part parts[] = {
        {.topic = STR("orders"), .records = BYTES_NULL},
        {.topic = STR("orders"), .records = {good.ptr, good.len - 1}},
        {.topic = STR("orders"), .records = kafka},
        {.topic = STR("orders"), .records = good},
    };
    struct backend_append call = append_of(&rig, parts, COUNT_OF(parts));
    call.format = FORMAT_IGGY;
    RUN(&rig, append, &call);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(parts[i].status, ST_BAD_RECORD);
        CHECK_EQ(parts[i].base_offset, -1);
    }
    CHECK_EQ(parts[3].status, ST_OK);
    CHECK_EQ(parts[3].base_offset, 0);
    CHECK_EQ(parts[3].start_offset, 0);
    call.deadline_ms = clock_ms() - 1; /* D1-3 */
    parts[3].status = ST_OK;
    RUN(&rig, append, &call);
    CHECK_EQ(parts[3].status, ST_TIMED_OUT);
    free_batch(good);
    free_batch(kafka);
    rig_close(&rig);
}

TEST(iggy_batches_have_no_limit_but_their_frames) {
    enum { BYTES = 4 << 20 }; /* the rig allows Kafka batches of 1 MiB */
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    uint8_t *payload = mem_take_zeroed(1, BYTES);
    struct message messages[6];
    for (int i = 0; i < 6; i++)
        messages[i] = (struct message){ORIGIN_US, {payload, BYTES}, {NULL, 0}};
    struct bytes batch = sent_batch(messages, 6);
    append_one(&rig, "orders", 0, batch, FORMAT_IGGY);
    struct backend_read_part part = read_part("orders", 0, 3);
    struct backend_read read = read_of(&part, 1);
    RUN(&rig, read, &read);
    CHECK_EQ(part.status, ST_OK);
    CHECK(part.bytes > BYTES && part.bytes < 2 * BYTES); /* KIP-74: one record, no more */
    struct batch b;
    CHECK_EQ(batch_read(part.records[0], &b), ST_OK);
    CHECK_EQ(b.base_offset, 3);
    CHECK_EQ(b.records_count, 1);
    backend_read_release(rig.backend, &read);
    free_batch(batch);
    mem_free(payload);
    rig_close(&rig);
}

TEST(later_parts_of_a_read_come_empty_when_what_was_made_for_them_does_not_fit) {
    struct rig rig;
    const uint64_t origins[] = {ORIGIN_US};
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 2);
    append_messages(&rig, 0, origins, 1);
    append_records(&rig, "orders", 1, 1, 10, TIMESTAMP_MS); /* 80 bytes, and over 300 as messages */
    struct backend_read_part parts[] = {read_part("orders", 0, 0), read_part("orders", 1, 0)};
    struct backend_read read = read_of(parts, 2);
    read.format = FORMAT_IGGY;
    RUN(&rig, read, &read);
    CHECK(parts[0].bytes > 0 && parts[1].bytes > 300);
    read.bytes_max = parts[0].bytes + 100;
    RUN(&rig, read, &read);
    CHECK(parts[0].bytes > 0);
    CHECK_EQ(parts[1].status, ST_OK);
    CHECK_EQ(parts[1].bytes, 0);
    CHECK_EQ(parts[1].records_count, 0);
    CHECK_EQ(parts[1].high_watermark, 1);
    CHECK_EQ(read.bytes, parts[0].bytes);
    backend_read_release(rig.backend, &read);
    rig_close(&rig);
}

TEST(a_message_that_is_no_record_stops_kafka_readers_only) { /* H-15, D2-35 */
    struct rig rig;
    const uint64_t origins[] = {ORIGIN_US};
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    append_messages(&rig, 0, origins, 1);
    CHECK_EQ(append_no_record(&rig), 1);
    append_messages(&rig, 0, origins, 1);
    struct backend_read_part part = read_part("orders", 0, 1);
    struct backend_read read = read_of(&part, 1);
    RUN(&rig, read, &read);
    CHECK_EQ(part.status, ST_UNMAPPABLE);
    CHECK_EQ(part.bytes, 0);
    CHECK_EQ(part.high_watermark, -1);
    read.format = FORMAT_IGGY;
    RUN(&rig, read, &read);
    CHECK_EQ(part.status, ST_OK);
    CHECK(part.bytes > 0);
    backend_read_release(rig.backend, &read);
    rig_close(&rig);
}

TEST(a_message_that_is_no_record_is_passed_over_where_that_is_set) { /* H-15 */
    static struct seen seen;
    struct rig rig;
    const uint64_t origins[] = {ORIGIN_US};
    rig_open(&rig, test_dir(), true);
    make_topic(&rig, "orders", 1);
    append_messages(&rig, 0, origins, 1);
    CHECK_EQ(append_no_record(&rig), 1);
    append_messages(&rig, 0, origins, 1);
    CHECK_EQ(append_no_record(&rig), 3);
    for (int round = 0; round < 2; round++) {
        see_all(&rig, FORMAT_KAFKA, round ? 1 << 20 : 1, &seen);
        CHECK_EQ(seen.next, 4);
        for (int i = 0; i < 4; i++)
            CHECK_EQ(seen.records[i] == 0, i % 2);
    }
    rig_close(&rig);
}

TEST(offsets_are_found_by_time_over_both_formats) { /* D3-1, D3-2 */
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    const uint64_t early[] = {ORIGIN_US + 1000, ORIGIN_US + 2999},
                   late[] = {ORIGIN_US + 70000, ORIGIN_US + 60000};
    append_records(&rig, "orders", 0, 1, 10, TIMESTAMP_MS); /* ..000 */
    append_messages(&rig, 0, early, 2);                     /* ..001 ..002 */
    append_records(&rig, "orders", 0, 2, 10, TIMESTAMP_MS + 50);
    append_no_record(&rig);
    append_messages(&rig, 0, late, 2); /* ..070 ..060 */
    struct backend_topics_part topic = {.name = STR("orders")};
    struct backend_topics look = {.arena = &rig.arena, .parts = &topic, .parts_count = 1};
    RUN(&rig, topics, &look);
    static const struct {
        enum backend_offset_kind kind;
        int64_t after, offset, found;
    } cases[] = {{OFFSET_BY_TIME, 1, 1, 1},   {OFFSET_BY_TIME, 2, 2, 2},   {OFFSET_BY_TIME, 3, 3, 50},
                 {OFFSET_BY_TIME, 51, 4, 51}, {OFFSET_BY_TIME, 52, 6, 70}, {OFFSET_BY_TIME, 60, 6, 70},
                 {OFFSET_MAX_TIME, 0, 6, 70}};
    struct backend_offset_part parts[2 * COUNT_OF(cases)];
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        parts[i] = (struct backend_offset_part){.topic = i % 2 ? STR_NULL : STR("orders"),
                                                .id = topic.topic.id,
                                                .kind = cases[i / 2].kind,
                                                .timestamp_ms = TIMESTAMP_MS + cases[i / 2].after};
    struct backend_offsets call = {
        .parts = parts, .parts_count = COUNT_OF(parts), .deadline_ms = clock_ms() + LONG_MS};
    RUN(&rig, offsets, &call);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        CHECK_EQ(parts[i].status, ST_OK);
        CHECK_EQ(parts[i].offset, cases[i / 2].offset);
        CHECK_EQ(parts[i].timestamp_ms, TIMESTAMP_MS + cases[i / 2].found);
    }
    rig_close(&rig);
}

static int64_t found_by_append(struct rig *rig, uint64_t append_us) {
    struct backend_offset_part part = {
        .topic = STR("orders"), .kind = OFFSET_BY_APPEND, .append_us = append_us};
    struct backend_offsets call = {.parts = &part, .parts_count = 1};
    RUN(rig, offsets, &call);
    CHECK_EQ(part.status, ST_OK);
    return part.offset;
}

TEST(batches_are_found_by_the_time_they_were_appended) {
    enum { BATCHES = 23 };
    struct rig rig;
    uint64_t appended_us[BATCHES];
    const uint64_t origins[] = {ORIGIN_US + 5, ORIGIN_US};
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    CHECK_EQ(found_by_append(&rig, 0), -1);
    for (int i = 0; i < BATCHES; i++) {
        CHECK_EQ(append_messages(&rig, 0, origins, 2), i * 2);
        struct backend_read_part part = read_part("orders", 0, i * 2);
        struct backend_read read = read_of(&part, 1);
        struct iggy_batch b;
        read.format = FORMAT_IGGY;
        RUN(&rig, read, &read);
        CHECK_EQ(iggy_batch_read(part.records[0], false, &b), ST_OK);
        appended_us[i] = b.base_timestamp_us;
        backend_read_release(rig.backend, &read);
    }
    CHECK_EQ(found_by_append(&rig, 0), 0);
    for (int i = 1; i < BATCHES; i++) {
        int first = i;
        while (first > 0 && appended_us[first - 1] == appended_us[i])
            first--;
        CHECK_EQ(found_by_append(&rig, appended_us[i]), first * 2);
    }
    CHECK_EQ(found_by_append(&rig, appended_us[BATCHES - 1] + 1), -1);
    rig_close(&rig);
}

static void trim_to(struct rig *rig, int64_t offset) {
    struct backend_trim_part part = {.topic = STR("orders"), .offset = offset};
    struct backend_trim call = {.parts = &part, .parts_count = 1, .deadline_ms = clock_ms() + LONG_MS};
    RUN(rig, trim, &call);
    CHECK_EQ(part.status, ST_OK);
}

TEST(a_numbered_batch_is_stored_once_though_the_first_one_was_trimmed_away) {
    struct rig rig;
    const char *dir = test_dir();
    int64_t offset;
    rig_open(&rig, dir, false);
    make_topic(&rig, "orders", 1);
    for (uint32_t sequence = 0; sequence < 3; sequence++) {
        CHECK_EQ(append_numbered(&rig, 0, sequence, &offset), ST_OK);
        trim_to(&rig, -1);
        CHECK_EQ(append_numbered(&rig, 0, sequence, &offset), ST_OK);
        CHECK_EQ(offset, sequence);
    }
    rig_close(&rig);
    rig_open(&rig, dir, false);
    CHECK_EQ(append_numbered(&rig, 0, 4, &offset), ST_BAD_SEQUENCE);
    CHECK_EQ(append_numbered(&rig, 0, 1, &offset), ST_OK);
    CHECK_EQ(offset, 1);
    CHECK_EQ(append_numbered(&rig, 0, 3, &offset), ST_OK);
    CHECK_EQ(offset, 3);
    rig_close(&rig);
}

TEST(a_message_without_a_time_is_found_by_its_append_time) {
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    const uint64_t none[] = {0};
    int64_t before = clock_wall_ms();
    append_messages(&rig, 0, none, 1);
    struct backend_offset_part part = {
        .topic = STR("orders"), .kind = OFFSET_BY_TIME, .timestamp_ms = before};
    struct backend_offsets call = {.parts = &part, .parts_count = 1, .deadline_ms = clock_ms() + LONG_MS};
    RUN(&rig, offsets, &call);
    CHECK_EQ(part.status, ST_OK);
    CHECK_EQ(part.offset, 0);
    CHECK(part.timestamp_ms >= before && part.timestamp_ms <= clock_wall_ms());
    rig_close(&rig);
}

TEST(an_id_that_nobody_has_is_unknown) {
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    struct backend_offset_part part = {.topic = STR_NULL, .id = {{1}}, .kind = OFFSET_LATEST};
    struct backend_offsets offsets = {.parts = &part, .parts_count = 1, .deadline_ms = clock_ms() + LONG_MS};
    RUN(&rig, offsets, &offsets);
    CHECK_EQ(part.status, ST_UNKNOWN_ID);
    struct backend_grow_part more = {.name = STR_NULL, .id = {{1}}, .partitions_count = 5};
    struct backend_grow grow = {.parts = &more, .parts_count = 1, .deadline_ms = clock_ms() + LONG_MS};
    RUN(&rig, grow, &grow);
    CHECK_EQ(more.status, ST_UNKNOWN_ID);
    rig_close(&rig);
}

/* ---- topics of other streams ---- */

static struct topic *other_topic(struct rig *rig, struct str name, const struct store_setting *settings,
                                 int32_t count) {
    struct store *s = store_backend_store(rig->backend);
    struct topic *t;
    CHECK_EQ(store_stream_ensure(s, STR("sales")), ST_OK);
    const struct store_topic_new want = {.stream = STR("sales"),
                                         .name = name,
                                         .partitions_count = 1,
                                         .settings = settings,
                                         .settings_count = count};
    CHECK_EQ(store_topic_create(s, &want, &t), ST_OK);
    return t;
}

TEST(topics_of_other_streams_are_reached_and_grown_by_id) {
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    struct topic *t = other_topic(&rig, STR("orders"), NULL, 0);
    struct backend_grow_part more = {.name = STR_NULL, .id = topic_info(t)->id, .partitions_count = 3};
    struct backend_grow grow = {.parts = &more, .parts_count = 1, .deadline_ms = clock_ms() + LONG_MS};
    RUN(&rig, grow, &grow);
    CHECK_EQ(more.status, ST_OK);
    CHECK_EQ(more.partitions_before, 1);
    const uint64_t origins[] = {ORIGIN_US};
    struct bytes batch = messages_at(origins, 1);
    struct backend_append_part part = {
        .topic = STR_NULL, .id = topic_info(t)->id, .partition = 2, .records = batch};
    struct backend_append call = append_of(&rig, &part, 1);
    call.format = FORMAT_IGGY;
    RUN(&rig, append, &call);
    CHECK_EQ(part.status, ST_OK);
    struct backend_read_part by_name = read_part("orders", 2, 0);
    struct backend_read read = read_of(&by_name, 1);
    RUN(&rig, read, &read);
    CHECK_EQ(by_name.status, ST_NOT_FOUND);
    backend_read_release(rig.backend, &read);
    free_batch(batch);
    topic_unref(t);
    rig_close(&rig);
}

/* Two batches that don't go into one segment, and whose time is over. */
static struct uuid fill_two_segments(struct rig *rig, struct str name, const struct store_setting *settings,
                                     int32_t count) {
    enum { BYTES = 700 << 10 };
    struct topic *t = other_topic(rig, name, settings, count);
    const struct uuid id = topic_info(t)->id;
    topic_unref(t);
    for (int i = 0; i < 2; i++) {
        struct bytes batch = make_keyed_batch(1, BYTES, TIMESTAMP_MS);
        struct backend_append_part part = {.topic = STR_NULL, .id = id, .records = batch};
        struct backend_append call = append_of(rig, &part, 1);
        RUN(rig, append, &call);
        CHECK_EQ(part.status, ST_OK);
        free_batch(batch);
    }
    return id;
}

/* D6-13. Topics are looked at in the order in which they were made. */
TEST(retention_looks_at_the_topics_of_all_streams_that_delete) {
    struct rig rig;
    const char *dir = test_dir();
    const struct store_setting settings[] = {
        {(char *)(uintptr_t) "retention.ms", (char *)(uintptr_t) "1000"},
        {(char *)(uintptr_t) "cleanup.policy", (char *)(uintptr_t) "compact"},
        {(char *)(uintptr_t) "cleanup.policy", (char *)(uintptr_t) "compact,delete"}};
    const struct store_setting both[] = {settings[0], settings[2]};
    rig_open(&rig, dir, false);
    const struct uuid ids[] = {fill_two_segments(&rig, STR("a-compacted"), settings, 2),
                               fill_two_segments(&rig, STR("b-both"), both, 2),
                               fill_two_segments(&rig, STR("c-deletes"), settings, 1)};
    rig_close(&rig);

    rig_open(&rig, dir, false); /* looks at once */
    struct backend_offset_part parts[COUNT_OF(ids)];
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        parts[i] = (struct backend_offset_part){.topic = STR_NULL, .id = ids[i], .kind = OFFSET_EARLIEST};
    struct backend_offsets call = {
        .parts = parts, .parts_count = COUNT_OF(ids), .deadline_ms = clock_ms() + LONG_MS};
    do
        RUN(&rig, offsets, &call);
    while (parts[2].offset == 0 && clock_ms() < call.deadline_ms);
    RUN(&rig, offsets, &call); /* what was asked before the last topic's turn may be from before its own */
    CHECK_EQ(parts[0].offset, 0);
    CHECK_EQ(parts[1].offset, 1);
    CHECK_EQ(parts[2].offset, 1);
    rig_close(&rig);
}
