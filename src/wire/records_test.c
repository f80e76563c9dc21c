#include "wire/records.h"

#include <jansson.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/be.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "testing/test.h"

#define MIB          (1024 * 1024)
#define FLIPPED_FROM 21 /* where the bytes begin that the CRC covers */

static const struct batch_limits wide = {8 * MIB, 131072, INT64_MAX, true, false};

/* Memory of all tests here, used again by each. */
static struct spare built, packed, scratch;
static struct batch_report report;

static enum status sent(struct bytes records) {
    enum status st = batch_check(records, &wide, &scratch, &report);
    CHECK_EQ(st == ST_OK, report.reason == NULL);
    return st;
}

/* The same with no memory to begin with: fails when the check asks for any. */
static enum status sent_without_memory(struct bytes records, const struct batch_limits *limits) {
    struct spare none = {0};
    mem_fail_at(1);
    enum status st = batch_check(records, limits, &none, &report);
    CHECK(mem_fail_pending());
    mem_fail_at(0);
    CHECK(none.ptr == NULL);
    return st;
}

static struct bytes view(const char *text) {
    return (struct bytes){(const uint8_t *)text, (int32_t)strlen(text)};
}

static void fix_crc(struct bytes batch) {
    uint8_t *p = (uint8_t *)(uintptr_t)batch.ptr;
    be_set(p + 17, 4, crc32c(0, p + FLIPPED_FROM, (size_t)batch.len - FLIPPED_FROM));
}

/* The batch with one field of its header changed, and a CRC that is right again. */
static struct bytes with(struct bytes batch, int at, unsigned width, int64_t value) {
    be_set((uint8_t *)(uintptr_t)batch.ptr + at, width, (uint64_t)value);
    fix_crc(batch);
    return batch;
}

static struct bytes finish(struct batch_builder *b, enum codec codec) {
    struct bytes batch;
    CHECK_EQ(batch_builder_finish(b, 0, codec, &packed, &batch), ST_OK);
    return batch;
}

/* count records of the key "key" and the value "value", at 1000, 1001, ... ms. */
static struct bytes plain_batch(int count, enum codec codec) {
    struct batch_builder b;
    CHECK_EQ(batch_builder_init(&b, &built, 1000), ST_OK);
    for (int i = 0; i < count; i++)
        CHECK_EQ(batch_builder_add(&b, 1000 + i, -1, view("key"), view("value"), NULL, 0), ST_OK);
    return finish(&b, codec);
}

/* A batch that declares count records and holds these bytes. */
static struct bytes batch_of(const void *body, size_t len, int32_t count, enum codec codec) {
    struct batch_builder b;
    CHECK_EQ(batch_builder_init(&b, &built, 1000), ST_OK);
    CHECK_EQ(spare_reserve(&built, built.len + len), ST_OK);
    memcpy(built.ptr + built.len, body, len);
    built.len += len;
    b.records_count = count;
    b.last_offset_delta = count - 1;
    return finish(&b, codec);
}

/* ---- batches made by Kafka's own Java client ---- */

struct golden {
    json_t *row;
    struct bytes batch;
};

static struct bytes bytes_of_hex(const json_t *value) {
    if (json_is_null(value))
        return BYTES_NULL;
    const char *hex = json_string_value(value);
    size_t len = strlen(hex) / 2;
    uint8_t *p = mem_take(len);
    CHECK(p != NULL);
    for (size_t i = 0; i < len; i++) {
        const char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        p[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return (struct bytes){p, (int32_t)len};
}

static void for_each_golden(void (*body)(const struct golden *g)) {
    gzFile file = gzopen(TESTS_DIR "/golden/records.jsonl.gz", "rb");
    CHECK(file != NULL);
    static char line[256 * 1024];
    int rows = 0;
    for (; gzgets(file, line, sizeof line); rows++) {
        struct golden g = {.row = json_loads(line, 0, NULL)};
        CHECK(g.row != NULL);
        g.batch = bytes_of_hex(json_object_get(g.row, "hex"));
        body(&g);
        mem_free((void *)(uintptr_t)g.batch.ptr);
        json_decref(g.row);
    }
    gzclose(file);
    CHECK_EQ(rows, 60);
}

static int64_t number(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    CHECK(json_is_integer(value) || json_is_boolean(value));
    return json_is_integer(value) ? json_integer_value(value) : json_is_true(value);
}

static void check_bytes(struct bytes got, const json_t *hex) {
    struct bytes want = bytes_of_hex(hex);
    CHECK_EQ(got.len, want.len);
    if (want.len > 0)
        CHECK_MEM(got.ptr, want.ptr, (size_t)want.len);
    mem_free((void *)(uintptr_t)want.ptr);
}

static void check_record(const struct batch *b, const struct record *r, const json_t *want) {
    CHECK_EQ(b->base_offset + r->offset_delta, number(want, "offset"));
    CHECK_EQ(record_timestamp(b, r), number(want, "timestamp"));
    check_bytes(r->key, json_object_get(want, "key"));
    check_bytes(r->value, json_object_get(want, "value"));
    const json_t *headers = json_object_get(want, "headers");
    CHECK_EQ(r->headers_count, json_array_size(headers));
    struct bytes at = r->headers;
    for (int32_t i = 0; i < r->headers_count; i++) {
        struct record_header h;
        CHECK_EQ(record_header_next(&at, &h), ST_OK);
        const json_t *header = json_array_get(headers, (size_t)i);
        CHECK(str_equal(
            h.key, str_of(json_string_value(json_object_get(header, "key"))))); /* text, the others hex */
        check_bytes(h.value, json_object_get(header, "value"));
    }
    CHECK_EQ(at.len, 0);
}

static void check_golden_records(const struct golden *g) {
    struct batch b;
    CHECK_EQ(batch_read(g->batch, &b), ST_OK);
    CHECK_EQ(b.size_bytes, number(g->row, "sizeInBytes"));
    CHECK_EQ(b.base_offset, number(g->row, "baseOffset"));
    CHECK_EQ(b.base_offset + b.last_offset_delta, number(g->row, "lastOffset"));
    CHECK_EQ(b.max_timestamp, number(g->row, "maxTimestamp"));
    CHECK_EQ(b.producer_id, number(g->row, "producerId"));
    CHECK_EQ(b.producer_epoch, number(g->row, "producerEpoch"));
    CHECK_EQ(b.base_sequence, number(g->row, "baseSequence"));
    CHECK_EQ(b.leader_epoch, number(g->row, "partitionLeaderEpoch"));
    CHECK_EQ(b.transactional, number(g->row, "isTransactional"));
    CHECK_EQ(b.control, number(g->row, "isControl"));
    CHECK_EQ(b.crc, number(g->row, "crc"));
    CHECK_EQ(b.log_append_time, false);
    CHECK_TEXT(codec_name(b.codec), json_string_value(json_object_get(g->row, "compression")));
    CHECK_EQ(crc32c(0, g->batch.ptr + FLIPPED_FROM, (size_t)g->batch.len - FLIPPED_FROM), b.crc);

    struct bytes body;
    CHECK_EQ(batch_records(&b, wide.bytes_max, &scratch, &body), ST_OK);
    const json_t *records = json_object_get(g->row, "records");
    CHECK_EQ(b.records_count, json_array_size(records));
    struct records_iter it;
    records_iter_init(&it, body, b.records_count);
    struct record r;
    for (int32_t i = 0; i < b.records_count; i++) {
        CHECK_EQ(records_next(&it, &r), ST_OK);
        check_record(&b, &r, json_array_get(records, (size_t)i));
    }
    CHECK_EQ(records_next(&it, &r), ST_NOT_FOUND);
}

TEST(every_batch_of_the_java_client_decodes_to_its_fields) {
    for_each_golden(check_golden_records);
}

#define HEADERS_MAX 64

static void build_again(const struct golden *g) {
    struct batch b;
    CHECK_EQ(batch_read(g->batch, &b), ST_OK);
    if (b.codec != CODEC_NONE)
        return; /* compressors of other versions write other bytes */
    struct batch_builder again;
    CHECK_EQ(batch_builder_init(&again, &built, b.base_timestamp), ST_OK);
    again.leader_epoch = b.leader_epoch;
    again.producer_id = b.producer_id;
    again.producer_epoch = b.producer_epoch;
    again.base_sequence = b.base_sequence;
    again.attributes = b.attributes;
    struct records_iter it;
    records_iter_init(&it, b.body, b.records_count);
    struct record r;
    while (records_next(&it, &r) == ST_OK) {
        struct record_header headers[HEADERS_MAX];
        CHECK(r.headers_count <= HEADERS_MAX);
        struct bytes at = r.headers;
        for (int32_t i = 0; i < r.headers_count; i++)
            CHECK_EQ(record_header_next(&at, &headers[i]), ST_OK);
        CHECK_EQ(
            batch_builder_add(&again, record_timestamp(&b, &r), -1, r.key, r.value, headers, r.headers_count),
            ST_OK);
    }
    struct bytes batch;
    CHECK_EQ(batch_builder_finish(&again, b.base_offset, CODEC_NONE, NULL, &batch), ST_OK);
    CHECK_EQ(batch.len, g->batch.len);
    CHECK_MEM(batch.ptr, g->batch.ptr, (size_t)batch.len);
}

TEST(an_uncompressed_batch_built_again_has_the_java_clients_bytes) {
    for_each_golden(build_again);
}

/* As a producer would send it: base offset 0, no transaction. */
static void send_golden(const struct golden *g) {
    struct batch b;
    CHECK_EQ(batch_read(g->batch, &b), ST_OK);
    batch_assign((uint8_t *)(uintptr_t)g->batch.ptr, 0, -1);
    if (b.transactional || b.control)
        CHECK_EQ(sent(g->batch), ST_TRANSACTIONAL); /* D1-9 */
    int64_t attributes = b.attributes & ~(BATCH_TRANSACTIONAL | BATCH_CONTROL);
    struct bytes batch = with(g->batch, FLIPPED_FROM, 2, attributes);
    if (b.control)
        batch = with(batch, 43, 8, -1); /* it has a producer id, but no sequence */
    CHECK_EQ(sent(batch), ST_OK);
    CHECK_EQ(report.max_timestamp, b.max_timestamp);
    for (int32_t cut = 0; cut < batch.len; cut++) {
        CHECK_EQ(sent((struct bytes){batch.ptr, cut}), ST_BAD_RECORD);
        CHECK_EQ(batch_read((struct bytes){batch.ptr, cut}, &b), ST_TRUNCATED);
    }
}

TEST(every_batch_of_the_java_client_passes_the_check_and_no_cut_of_it_does) {
    for_each_golden(send_golden);
}

/* ---- the frame: D1-6, D1-7, D1-8 ---- */

TEST(an_uncompressed_batch_is_checked_without_memory) {
    CHECK_EQ(sent_without_memory(plain_batch(1000, CODEC_NONE), &wide), ST_OK);
}

TEST(a_partition_gets_exactly_one_batch) {
    CHECK_EQ(sent(BYTES_NULL), ST_BAD_RECORD);
    CHECK_EQ(sent(view("")), ST_BAD_RECORD);
    CHECK_EQ(sent((struct bytes){(const uint8_t[10]){0}, 10}), ST_BAD_RECORD);

    struct bytes batch = plain_batch(1, CODEC_NONE);
    CHECK_EQ(sent(batch), ST_OK);
    uint8_t two[512];
    CHECK(2 * (size_t)batch.len <= sizeof two);
    memcpy(two, batch.ptr, (size_t)batch.len);
    memcpy(two + batch.len, batch.ptr, (size_t)batch.len);
    CHECK_EQ(sent((struct bytes){two, 2 * batch.len}), ST_BAD_RECORD);
    CHECK_EQ(sent((struct bytes){two, batch.len + 1}), ST_BAD_RECORD);
    CHECK_EQ(sent((struct bytes){two, batch.len}), ST_OK);
}

TEST(another_magic_is_refused_and_named) {
    for (int magic = -1; magic <= 3; magic++) {
        struct bytes batch = with(plain_batch(1, CODEC_NONE), 16, 1, magic);
        CHECK_EQ(sent(batch), magic == 2 ? ST_OK : ST_BAD_RECORD);
        CHECK_EQ(report.batch.magic, magic);
    }
}

TEST(a_length_that_no_batch_can_have_is_refused) {
    static const int64_t lengths[] = {INT32_MIN, -1, 0, 48, INT32_MAX - 11, INT32_MAX};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        struct bytes batch = with(plain_batch(1, CODEC_NONE), 8, 4, lengths[i]);
        struct batch b;
        CHECK_EQ(batch_read(batch, &b), ST_BAD_LENGTH);
        CHECK_EQ(sent(batch), ST_BAD_RECORD);
    }
}

/* Bytes 12 to 15 are the leader epoch, which is the server's to write. */
TEST(every_flipped_bit_is_refused_but_those_of_the_leader_epoch) {
    for (enum codec codec = CODEC_NONE; codec <= CODEC_ZSTD; codec++) {
        struct bytes batch = plain_batch(2, codec);
        for (int32_t at = 0; at < batch.len; at++) {
            for (int bit = 0; bit < 8; bit++) {
                built.ptr[at] ^= (uint8_t)(1 << bit);
                enum status st = sent(batch);
                if (at >= 12 && at < 16)
                    CHECK_EQ(st, ST_OK);
                else if (at < 17)
                    CHECK_EQ(st, ST_BAD_RECORD);
                else
                    CHECK_EQ(st, ST_BAD_CRC);
                built.ptr[at] ^= (uint8_t)(1 << bit);
            }
        }
        CHECK_EQ(sent(batch), ST_OK);
    }
}

/* ---- the header ---- */

TEST(what_a_producer_may_not_write_into_the_header_is_refused) {
    static const struct {
        int at;
        unsigned width;
        int64_t value;
        enum status want;
    } cases[] = {
        {0, 8, 5, ST_BAD_RECORD},              /* base offset */
        {0, 8, -1, ST_BAD_RECORD},             /* */
        {21, 2, 5, ST_BAD_RECORD},             /* codec ids that do not exist */
        {21, 2, 6, ST_BAD_RECORD},             /* */
        {21, 2, 7, ST_BAD_RECORD},             /* */
        {21, 2, 0x10, ST_TRANSACTIONAL},       /* D1-9: transactional */
        {21, 2, 0x20, ST_TRANSACTIONAL},       /* control */
        {23, 4, 0, ST_BAD_RECORD},             /* last offset delta of 2 records */
        {23, 4, 2, ST_BAD_RECORD},             /* */
        {23, 4, -1, ST_BAD_RECORD},            /* */
        {57, 4, 0, ST_BAD_RECORD},             /* records count */
        {57, 4, 1, ST_BAD_RECORD},             /* */
        {57, 4, 3, ST_BAD_RECORD},             /* */
        {57, 4, -1, ST_BAD_RECORD},            /* */
        {57, 4, INT32_MAX, ST_BAD_RECORD},     /* */
        {43, 8, 7, ST_BAD_RECORD},             /* producer id with sequence -1 */
        {12, 4, 77, ST_OK},                    /* leader epoch */
        {21, 2, 0x40, ST_OK},                  /* attribute bits that mean nothing */
        {21, 2, 0x80, ST_OK},                  /* */
        {21, 2, (int16_t)0x8000, ST_OK},       /* */
        {21, 2, BATCH_LOG_APPEND_TIME, ST_OK}, /* kept as sent when there is a time */
        {43, 8, -2, ST_OK},                    /* producer id */
        {51, 2, 3, ST_OK},                     /* producer epoch without an id */
        {53, 4, 9, ST_OK},                     /* sequence without an id */
        {35, 8, -1, ST_OK},                    /* max timestamp */
        {27, 8, INT64_MAX, ST_OK}, /* base timestamp: the second record's time wraps, as in Java */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bytes batch = with(plain_batch(2, CODEC_NONE), cases[i].at, cases[i].width, cases[i].value);
        CHECK_EQ(sent(batch), cases[i].want);
    }
    struct bytes batch = with(plain_batch(2, CODEC_NONE), 43, 8, 7);
    CHECK_EQ(sent(with(batch, 53, 4, 0)), ST_OK); /* a producer id with a sequence, epoch -1 */
    CHECK_EQ(sent(batch_of("", 0, 0, CODEC_NONE)), ST_BAD_RECORD); /* an empty batch */
    CHECK_EQ(sent(batch_of("", 0, 0, CODEC_ZSTD)), ST_BAD_RECORD);
}

TEST(zstd_needs_a_limit_that_allows_it) {
    struct batch_limits old = wide;
    old.zstd_allowed = false;
    for (enum codec codec = CODEC_NONE; codec <= CODEC_ZSTD; codec++) {
        struct bytes batch = plain_batch(3, codec);
        CHECK_EQ(sent(batch), ST_OK);
        CHECK_EQ(batch_check(batch, &old, &scratch, &report), codec == CODEC_ZSTD ? ST_BAD_CODEC : ST_OK);
    }
}

/* B-46: neither the count of records nor that of headers is worth an allocation. */
TEST(batches_of_61_and_72_bytes_that_declare_the_greatest_count_allocate_nothing) {
    static const uint8_t body[] = {20, 0, 0, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f}; /* 2^31-1 headers */
    for (enum codec codec = CODEC_NONE; codec <= CODEC_ZSTD; codec++) {
        for (int with_body = 0; with_body < 2; with_body++) {
            struct bytes batch = batch_of(body, with_body ? sizeof body : 0, 1, CODEC_NONE);
            CHECK_EQ(batch.len, with_body ? 72 : 61);
            batch = with(batch, 57, 4, INT32_MAX);
            batch = with(batch, 23, 4, INT32_MAX - 1);
            batch = with(batch, 21, 2, codec);
            CHECK_EQ(sent_without_memory(batch, &wide), ST_BAD_RECORD);
        }
    }
    CHECK_EQ(sent_without_memory(batch_of(body, sizeof body, 1, CODEC_NONE), &wide), ST_BAD_RECORD);
}

/* ---- records ---- */

/* Each is a whole body; lengths and counts are zigzag: 1 is -1, 2 is 1. */
TEST(a_record_that_is_not_well_formed_is_refused) {
    static const struct {
        int32_t count;
        size_t len;
        uint8_t body[24];
    } cases[] = {
        {1, 8, {14, 0, 0, 0, 1, 1, 0, 0}},           /* a byte after the headers */
        {1, 8, {12, 0, 0, 0, 1, 1, 0, 0}},           /* a byte after the record */
        {1, 7, {14, 0, 0, 0, 1, 1, 0}},              /* a length past the end */
        {1, 7, {11, 0, 0, 0, 1, 1, 0}},              /* a negative length */
        {1, 1, {0}},                                 /* an empty record */
        {1, 7, {0, 0, 0, 0, 1, 1, 0}},               /* and something after it */
        {1, 7, {12, 0, 0, 0, 3, 1, 0}},              /* key length -2 */
        {1, 7, {12, 0, 0, 0, 1, 3, 0}},              /* value length -2 */
        {1, 7, {12, 0, 0, 0, 8, 1, 0}},              /* a key past the end */
        {1, 7, {12, 0, 0, 0, 1, 4, 0}},              /* a value past the end */
        {1, 7, {12, 0, 0, 0, 1, 2, 0}},              /* a value where the header count should be */
        {1, 7, {12, 0, 0, 0, 1, 1, 1}},              /* header count -1 */
        {1, 7, {12, 0, 0, 0, 1, 1, 2}},              /* a header that is not there */
        {1, 8, {14, 0, 0, 0, 1, 1, 2, 0}},           /* half of it */
        {1, 9, {16, 0, 0, 0, 1, 1, 2, 1, 0}},        /* header key null */
        {1, 9, {16, 0, 0, 0, 1, 1, 2, 0, 3}},        /* header value length -2 */
        {1, 9, {16, 0, 0, 0, 1, 1, 2, 0, 2}},        /* a header value past the end */
        {1, 9, {16, 0, 0, 0, 1, 1, 2, 4, 0}},        /* a header key past the end */
        {1, 11, {20, 0, 0, 0, 1, 1, 4, 0, 0, 0, 2}}, /* the second header's value past the end */
        {1, 11, {20, 0, 0, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f}},    /* 2^31-1 headers */
        {1, 11, {20, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x10, 1, 1, 0}},    /* offset delta beyond 32 bits */
        {1, 12, {22, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 1, 1, 0}}, /* offset delta of 6 bytes */
        {1,
         16,
         {30, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2, 0, 1, 1,
          0}}, /* time beyond 64 bits */
        {1,
         17,
         {32, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0, 1, 1,
          0}},                                                 /* time of 11 bytes */
        {1, 7, {12, 0, 0, 0, 1, 1, 0x80}},                     /* a varint that does not end */
        {1, 3, {4, 0, 0x80}},                                  /* */
        {2, 14, {12, 0, 0, 0, 1, 1, 0, 14, 0, 0, 0, 1, 1, 0}}, /* the second record is cut short */
        {3, 21, {12, 0, 0, 0, 1, 1, 0, 20, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0}}, /* two of three */
        {1, 14, {12, 0, 0, 0, 1, 1, 0, 12, 0, 0, 0, 1, 1, 0}},                      /* two of one */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (enum codec codec = CODEC_NONE; codec <= CODEC_ZSTD; codec++) {
            struct bytes batch = batch_of(cases[i].body, cases[i].len, cases[i].count, codec);
            enum status st = sent(batch);
            if (st != ST_BAD_RECORD)
                fail_msg("case %zu, %s: status %d", i, codec_name(codec), (int)st);
        }
    }
}

TEST(what_kafka_takes_in_a_record_is_taken) {
    static const struct {
        size_t len;
        uint8_t body[24];
    } cases[] = {
        {7, {12, 0, 0, 0, 1, 1, 0}},                          /* null key and value */
        {7, {12, 7, 0, 0, 1, 1, 0}},                          /* record attributes */
        {7, {12, 0, 0, 10, 1, 1, 0}},                         /* offset delta 5 in a batch of 0..0 */
        {7, {12, 0, 0, 9, 1, 1, 0}},                          /* offset delta -5 */
        {7, {12, 0, 0, 0, 0, 0, 0}},                          /* empty key and value */
        {9, {16, 0, 0, 0, 1, 1, 2, 0, 0}},                    /* empty header name and value */
        {9, {16, 0, 0, 0, 1, 1, 2, 0, 1}},                    /* null header value */
        {12, {22, 0, 0, 0, 1, 1, 2, 4, 0xc3, 0x28, 2, 0xff}}, /* header name that is not UTF-8 */
        {13, {24, 0, 0, 0, 1, 1, 4, 2, 'h', 0, 2, 'h', 0}},   /* the same header twice */
        {8, {0x8c, 0, 0, 0, 0, 1, 1, 0}},                     /* a length of two bytes where one would do */
        {16,
         {30, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0, 1, 1, 0}}, /* time delta 2^62 */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        enum status st = sent(batch_of(cases[i].body, cases[i].len, 1, CODEC_NONE));
        if (st)
            fail_msg("case %zu: status %d, %s", i, (int)st, report.reason ? report.reason : "");
    }
}

TEST(an_iterator_tells_the_end_from_a_lie_about_it) {
    static const uint8_t two[] = {12, 0, 0, 0, 1, 1, 0, 12, 0, 0, 0, 1, 1, 0};
    struct record r;
    struct records_iter it;
    records_iter_init(&it, (struct bytes){two, sizeof two}, 2);
    CHECK_EQ(records_next(&it, &r), ST_OK);
    CHECK_EQ(records_next(&it, &r), ST_OK);
    CHECK_EQ(records_next(&it, &r), ST_NOT_FOUND);
    records_iter_init(&it, (struct bytes){two, sizeof two}, 1);
    CHECK_EQ(records_next(&it, &r), ST_OK);
    CHECK_EQ(records_next(&it, &r), ST_BAD_RECORD);
    records_iter_init(&it, (struct bytes){two, sizeof two}, 3);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(records_next(&it, &r), ST_OK);
    CHECK_EQ(records_next(&it, &r), ST_BAD_RECORD);
    records_iter_init(&it, (struct bytes){two, sizeof two}, -1);
    CHECK_EQ(records_next(&it, &r), ST_BAD_RECORD);
    records_iter_init(&it, BYTES_NULL, 0);
    CHECK_EQ(records_next(&it, &r), ST_NOT_FOUND);
    struct record_header h;
    CHECK_EQ(record_header_next(&(struct bytes){two, 0}, &h), ST_BAD_RECORD);
}

/* ---- timestamps: D1-12 ---- */

static struct bytes batch_at(const int64_t *times, size_t count) {
    struct batch_builder b;
    CHECK_EQ(batch_builder_init(&b, &built, times[0]), ST_OK);
    for (size_t i = 0; i < count; i++)
        CHECK_EQ(batch_builder_add(&b, times[i], -1, BYTES_NULL, view("v"), NULL, 0), ST_OK);
    return finish(&b, CODEC_NONE);
}

TEST(the_greatest_timestamp_is_found_whatever_the_header_says) {
    struct bytes batch = with(batch_at((const int64_t[]){1000, 1005, 1003}, 3), 35, 8, -1);
    CHECK_EQ(sent(batch), ST_OK);
    CHECK_EQ(report.max_timestamp, 1005);
    CHECK_EQ(report.batch.max_timestamp, -1);
    batch_set_max_timestamp(built.ptr, batch.len, report.max_timestamp);
    CHECK_EQ(sent(batch), ST_OK);
    CHECK_EQ(report.batch.max_timestamp, 1005);

    CHECK_EQ(sent(batch_at((const int64_t[]){1000, -7, 1001}, 3)), ST_OK); /* negative deltas */
    CHECK_EQ(report.max_timestamp, 1001);
    CHECK_EQ(sent(batch_at((const int64_t[]){-1, -1}, 2)), ST_OK);
    CHECK_EQ(report.max_timestamp, -1);
    CHECK_EQ(sent(batch_at((const int64_t[]){-5}, 1)), ST_OK);
    CHECK_EQ(report.max_timestamp, -1);
}

TEST(a_timestamp_past_the_limit_refuses_the_batch) {
    struct batch_limits limits = wide;
    limits.timestamp_max = 5000;
    struct bytes batch = batch_at((const int64_t[]){5000, 4000}, 2);
    CHECK_EQ(batch_check(batch, &limits, &scratch, &report), ST_OK);
    batch = batch_at((const int64_t[]){4000, 5001, 0}, 3);
    CHECK_EQ(batch_check(batch, &limits, &scratch, &report), ST_BAD_TIMESTAMP);
    CHECK_EQ(report.max_timestamp, 5001);
    CHECK(report.reason != NULL);
    batch = batch_at((const int64_t[]){INT64_MAX}, 1);
    CHECK_EQ(batch_check(batch, &limits, &scratch, &report), ST_BAD_TIMESTAMP);
    CHECK_EQ(sent(batch), ST_OK);
}

TEST(a_record_without_a_key_refuses_a_batch_that_must_have_keys) { /* D6-15 */
    struct batch_limits limits = wide;
    struct batch_builder b;
    struct bytes batch;
    limits.keys_required = true;
    for (int keyless = 0; keyless < 2; keyless++) {
        CHECK_EQ(batch_builder_init(&b, &built, 1000), ST_OK);
        CHECK_EQ(batch_builder_add(&b, 1000, -1, view(""), view("v"), NULL, 0), ST_OK); /* empty is a key */
        CHECK_EQ(batch_builder_add(&b, 1000, -1, keyless ? BYTES_NULL : view("k"), view("v"), NULL, 0),
                 ST_OK);
        CHECK_EQ(batch_builder_finish(&b, 0, CODEC_NONE, NULL, &batch), ST_OK);
        CHECK_EQ(batch_check(batch, &limits, &scratch, &report), keyless ? ST_NO_KEY : ST_OK);
        CHECK_EQ(report.keyless, keyless);
        CHECK_EQ(sent(batch), ST_OK);
    }
}

/* With the LogAppendTime bit every record has the batch's time, and it must have one. */
TEST(a_batch_marked_log_append_time_has_one_time) {
    struct bytes batch = with(batch_at((const int64_t[]){1000, 1005}, 2), 21, 2, BATCH_LOG_APPEND_TIME);
    batch = with(batch, 35, 8, 7000);
    CHECK_EQ(sent(batch), ST_OK);
    CHECK_EQ(report.max_timestamp, 7000);
    CHECK_EQ(record_timestamp(&report.batch, &(struct record){.timestamp_delta = 5}), 7000);
    CHECK_EQ(sent(with(batch, 35, 8, -1)), ST_BAD_TIMESTAMP);
}

/* ---- limits: D1-40, D1-42 ---- */

TEST(records_may_take_exactly_the_bytes_of_the_limit) {
    for (enum codec codec = CODEC_NONE; codec <= CODEC_ZSTD; codec++) {
        struct bytes batch = plain_batch(100, CODEC_NONE);
        int32_t body_bytes = batch.len - BATCH_HEADER_BYTES;
        batch = plain_batch(100, codec);
        struct batch_limits limits = wide;
        limits.bytes_max = body_bytes;
        CHECK_EQ(batch_check(batch, &limits, &scratch, &report), ST_OK);
        CHECK_EQ(report.used_bytes, body_bytes);
        CHECK_EQ(report.used_slots, 100);
        limits.bytes_max = body_bytes - 1;
        CHECK_EQ(batch_check(batch, &limits, &scratch, &report), ST_TOO_BIG);
        CHECK_EQ(report.used_bytes, codec == CODEC_NONE ? body_bytes : body_bytes - 1);
        CHECK(report.reason != NULL);
    }
}

TEST(three_headers_cost_a_slot_more) {
    struct record_header headers[7];
    for (size_t i = 0; i < COUNT_OF(headers); i++)
        headers[i] = (struct record_header){STR("h"), view("v")};
    struct batch_builder b;
    CHECK_EQ(batch_builder_init(&b, &built, 0), ST_OK);
    static const int32_t counts[] = {0, 2, 3, 5, 6, 7};
    int64_t slots = 0;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        CHECK_EQ(batch_builder_add(&b, 0, -1, BYTES_NULL, BYTES_NULL, headers, counts[i]), ST_OK);
        slots += 1 + counts[i] / 3;
    }
    struct bytes batch = finish(&b, CODEC_NONE);
    struct batch_limits limits = wide;
    limits.slots_max = slots;
    CHECK_EQ(batch_check(batch, &limits, &scratch, &report), ST_OK);
    CHECK_EQ(report.used_slots, slots);
    limits.slots_max = slots - 1;
    CHECK_EQ(batch_check(batch, &limits, &scratch, &report), ST_TOO_BIG);
    CHECK_EQ(report.used_slots, slots);
}

TEST(more_records_than_slots_are_refused_before_they_are_inflated) {
    struct batch_limits limits = wide;
    limits.slots_max = 9;
    for (enum codec codec = CODEC_NONE; codec <= CODEC_ZSTD; codec++) {
        struct bytes batch = plain_batch(10, codec);
        CHECK_EQ(sent_without_memory(batch, &limits), ST_TOO_BIG);
        limits.slots_max = 10;
        CHECK_EQ(batch_check(batch, &limits, &scratch, &report), ST_OK);
        limits.slots_max = 9;
    }
}

/* The count is checked against what the bytes could hold when inflated to the limit. */
TEST(a_compressed_batch_may_not_declare_more_than_the_limit_holds) {
    struct batch_limits limits = wide;
    limits.bytes_max = 700;
    struct bytes batch = plain_batch(10, CODEC_GZIP);
    int64_t most = (batch.len - BATCH_HEADER_BYTES + limits.bytes_max) / 7;
    batch = with(batch, 57, 4, most + 1);
    batch = with(batch, 23, 4, most);
    CHECK_EQ(sent_without_memory(batch, &limits), ST_BAD_RECORD);
}

TEST(what_does_not_inflate_is_refused) {
    for (enum codec codec = CODEC_GZIP; codec <= CODEC_ZSTD; codec++) {
        struct bytes batch = batch_of("garbagegarbage", 14, 1, CODEC_NONE);
        CHECK_EQ(sent(with(batch, 21, 2, codec)), ST_BAD_RECORD);
        CHECK_EQ(sent(with(batch_of("", 0, 1, CODEC_NONE), 21, 2, codec)), ST_BAD_RECORD);
        CHECK_EQ(sent(batch_of("", 0, 1, codec)), ST_BAD_RECORD); /* inflates to nothing */
    }
}

/* ---- build ---- */

TEST(a_server_writes_offset_and_epoch_without_touching_the_crc) {
    struct bytes batch = plain_batch(3, CODEC_LZ4);
    batch_assign(built.ptr, 123456789012345, 42);
    struct batch b;
    CHECK_EQ(batch_read(batch, &b), ST_OK);
    CHECK_EQ(b.base_offset, 123456789012345);
    CHECK_EQ(b.leader_epoch, 42);
    CHECK_EQ(crc32c(0, batch.ptr + FLIPPED_FROM, (size_t)batch.len - FLIPPED_FROM), b.crc);
}

TEST(a_builder_keeps_gaps_between_offsets) {
    struct batch_builder b;
    CHECK_EQ(batch_builder_init(&b, &built, 0), ST_OK);
    static const int32_t deltas[] = {0, 1, 4, 1000000};
    for (size_t i = 0; i < COUNT_OF(deltas); i++)
        CHECK_EQ(batch_builder_add(&b, 0, deltas[i], BYTES_NULL, BYTES_NULL, NULL, 0), ST_OK);
    struct batch read;
    CHECK_EQ(batch_read(finish(&b, CODEC_NONE), &read), ST_OK);
    CHECK_EQ(read.last_offset_delta, 1000000);
    CHECK_EQ(read.records_count, 4);
    struct records_iter it;
    records_iter_init(&it, read.body, read.records_count);
    struct record r;
    for (size_t i = 0; i < COUNT_OF(deltas); i++) {
        CHECK_EQ(records_next(&it, &r), ST_OK);
        CHECK_EQ(r.offset_delta, deltas[i]);
    }
}

TEST(a_builder_refuses_what_no_batch_length_can_say) {
    struct batch_builder b;
    CHECK_EQ(batch_builder_init(&b, &built, 0), ST_OK);
    struct bytes huge = {built.ptr, INT32_MAX}; /* measured, never read */
    CHECK_EQ(batch_builder_add(&b, 0, -1, BYTES_NULL, huge, NULL, 0), ST_TOO_BIG);
    CHECK_EQ(batch_builder_add(&b, 0, -1, view("k"), view("v"), NULL, 0), ST_OK);
    CHECK_EQ(b.records_count, 1);
    CHECK_EQ(sent(finish(&b, CODEC_NONE)), ST_OK);
}

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* A few bytes, or none, or null, or about as many as change the size of a length. */
static struct bytes random_bytes(uint64_t *seed, const uint8_t *from) {
    static const int32_t lens[] = {-1, 0, 1, 62, 63, 64, 65, 127, 128, 300, 8191, 8192};
    int32_t len = lens[next_random(seed) % COUNT_OF(lens)];
    return (struct bytes){len < 0 ? NULL : from + next_random(seed) % 64, len};
}

TEST(random_records_come_back_from_every_codec_as_they_were_added) {
    static uint8_t pool[64 + 8192];
    uint64_t seed = 7;
    for (size_t i = 0; i < sizeof pool; i++)
        pool[i] = (uint8_t)(next_random(&seed) % 23);
    for (int round = 0; round < 60; round++) {
        uint64_t first = seed;
        int32_t count = 1 + (int32_t)(next_random(&seed) % 20);
        struct batch_builder b;
        CHECK_EQ(batch_builder_init(&b, &built, 1700000000000), ST_OK);
        for (int32_t i = 0; i < count; i++) {
            struct bytes key = random_bytes(&seed, pool), value = random_bytes(&seed, pool);
            struct record_header h = {STR("name"), random_bytes(&seed, pool)};
            int64_t time = (int64_t)(next_random(&seed) << 12);
            CHECK_EQ(batch_builder_add(&b, time, -1, key, value, &h, i % 2), ST_OK);
        }
        struct bytes batch = finish(&b, (enum codec)(round % 5)), body;
        CHECK_EQ(sent(batch), ST_OK);
        CHECK_EQ(batch_records(&report.batch, wide.bytes_max, &scratch, &body), ST_OK);
        seed = first;
        CHECK_EQ(1 + (int32_t)(next_random(&seed) % 20), report.batch.records_count);
        struct records_iter it;
        records_iter_init(&it, body, count);
        for (int32_t i = 0; i < count; i++) {
            struct record r;
            CHECK_EQ(records_next(&it, &r), ST_OK);
            struct bytes want[3] = {random_bytes(&seed, pool), random_bytes(&seed, pool),
                                    random_bytes(&seed, pool)};
            struct record_header h = {.value = want[2]};
            CHECK_EQ(record_timestamp(&report.batch, &r), next_random(&seed) << 12);
            CHECK_EQ(r.offset_delta, i);
            CHECK_EQ(r.headers_count, i % 2);
            if (i % 2)
                CHECK_EQ(record_header_next(&r.headers, &h), ST_OK);
            struct bytes got[3] = {r.key, r.value, h.value};
            for (int field = 0; field < 3; field++) {
                CHECK_EQ(got[field].len, want[field].len);
                if (want[field].len > 0)
                    CHECK_MEM(got[field].ptr, want[field].ptr, (size_t)want[field].len);
            }
        }
    }
}

TEST_OOM(building_and_checking_a_batch_survives_any_failed_allocation) {
    for (enum codec codec = CODEC_NONE; codec <= CODEC_ZSTD; codec++) {
        struct spare out = {0}, work = {0}, room = {0};
        struct batch_builder b;
        struct bytes batch;
        struct batch_report r;
        enum status st = batch_builder_init(&b, &out, 0);
        for (int i = 0; i < 40 && !st; i++)
            st = batch_builder_add(&b, i, -1, view("key"), view("value"), NULL, 0);
        if (!st)
            st = batch_builder_finish(&b, 0, codec, &work, &batch);
        if (!st)
            st = batch_check(batch, &wide, &room, &r);
        CHECK(st == ST_OK || st == ST_NO_MEMORY);
        spare_release(&out);
        spare_release(&work);
        spare_release(&room);
    }
}
