/* Topics whose compression.type is not "producer": batches are stored in its codec. D1-16. */
#include "backend/store/rig_test.h"
#include "base/clock.h"
#include "base/mem.h"
#include "iggy/batch.h"
#include "testing/test.h"
#include "wire/records.h"

#define BATCH_BYTES_MAX (1 << 20) /* of the rig */

static struct rig rig;
static struct spare built, packed, inflated;

static void set(const char *key, const char *value) {
    const struct backend_change change = {.key = str_of(key), .value = str_of(value), .before = STR_NULL};
    struct backend_configure_part part = {.name = STR("orders"), .changes = &change, .changes_count = 1};
    struct backend_configure call = {.parts = &part, .parts_count = 1, .deadline_ms = clock_ms() + LONG_MS};
    RUN(&rig, configure, &call);
    CHECK_EQ(part.status, ST_OK);
}

static const char *setting_of(enum codec codec) {
    return codec == CODEC_NONE ? "uncompressed" : codec_name(codec);
}

static void open_with(const char *compression) {
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    set("compression.type", compression);
}

/* What a batch is made of. */
struct making {
    enum codec codec;
    int32_t count, value_bytes;
    int32_t sequence; /* of producer 77; -1: of no producer */
    bool keyless;
};

/* Its values are zeros; in memory that the next one takes. */
static struct bytes make(const struct making *m) {
    static uint8_t zeros[BATCH_BYTES_MAX];
    const struct bytes value = {zeros, m->value_bytes}, key = {(const uint8_t *)"k", 1};
    struct batch_builder b;
    struct bytes batch;
    CHECK_EQ(batch_builder_init(&b, &built, TIMESTAMP_MS), ST_OK);
    b.base_sequence = m->sequence;
    b.producer_id = m->sequence < 0 ? -1 : 77;
    b.producer_epoch = m->sequence < 0 ? -1 : 0;
    for (int32_t i = 0; i < m->count; i++)
        CHECK_EQ(batch_builder_add(&b, TIMESTAMP_MS + i, -1, m->keyless ? BYTES_NULL : key, value, NULL, 0),
                 ST_OK);
    CHECK_EQ(batch_builder_finish(&b, 0, m->codec, &packed, &batch), ST_OK);
    return batch;
}

static struct backend_append_part append(struct bytes batch) {
    struct backend_append_part part = {.topic = STR("orders"), .records = batch};
    struct backend_append call = append_of(&rig, &part, 1);
    RUN(&rig, append, &call);
    return part;
}

static enum status append_made(const struct making *m) {
    return append(make(m)).status;
}

/* The batch at this offset as it is stored; until stored_release. */
static struct backend_read_part stored_part;
static struct backend_read stored_read;

static struct batch stored_at(int64_t offset) {
    struct batch b;
    stored_part = read_part("orders", 0, offset);
    stored_read = read_of(&stored_part, 1);
    RUN(&rig, read, &stored_read);
    CHECK_EQ(stored_part.status, ST_OK);
    CHECK(stored_part.records_count > 0);
    CHECK_EQ(batch_read(stored_part.records[0], &b), ST_OK);
    CHECK_EQ(b.base_offset, offset);
    return b;
}

static void stored_release(void) {
    backend_read_release(rig.backend, &stored_read);
}

static enum codec stored_codec(int64_t offset) {
    enum codec codec = stored_at(offset).codec;
    stored_release();
    return codec;
}

/* The stored batch is what plain is, in the codec. */
static void check_stored(int64_t offset, enum codec codec, struct bytes plain) {
    const struct batch_limits limits = {BATCH_BYTES_MAX, 1 << 14, INT64_MAX, true, false};
    struct batch b = stored_at(offset), want;
    struct batch_report report;
    CHECK_EQ(batch_read(plain, &want), ST_OK);
    CHECK_EQ(b.codec, codec);
    struct bytes whole = {b.body.ptr - BATCH_HEADER_BYTES, b.size_bytes};
    batch_assign((uint8_t *)(uintptr_t)whole.ptr, 0, 0); /* as a producer sends it */
    CHECK_EQ(batch_check(whole, &limits, &inflated, &report), ST_OK);
    CHECK_EQ(report.body.len, want.body.len);
    CHECK_MEM(report.body.ptr, want.body.ptr, (size_t)want.body.len);
    CHECK_MEM(whole.ptr + 23, plain.ptr + 23, BATCH_HEADER_BYTES - 23);
    stored_release();
}

TEST(batches_of_every_codec_are_stored_in_that_of_the_topic_and_stay_so) {
    for (enum codec to = CODEC_NONE; to <= CODEC_ZSTD; to++) {
        const char *dir = test_dir();
        struct making m = {.count = 20, .value_bytes = 100, .sequence = -1};
        rig_open(&rig, dir, false);
        make_topic(&rig, "orders", 1);
        set("compression.type", setting_of(to));
        for (m.codec = CODEC_NONE; m.codec <= CODEC_ZSTD; m.codec++)
            CHECK_EQ(append_made(&m), ST_OK);
        for (int restart = 0; restart < 2; restart++) {
            m.codec = CODEC_NONE;
            struct bytes plain = make(&m);
            for (int64_t batch = 0; batch <= CODEC_ZSTD; batch++)
                check_stored(batch * m.count, to, plain);
            rig_close(&rig);
            if (restart == 0)
                rig_open(&rig, dir, false);
        }
    }
}

TEST(a_batch_in_the_codec_of_the_topic_is_stored_as_it_came) {
    open_with("gzip");
    struct bytes batch =
        make(&(struct making){.codec = CODEC_GZIP, .count = 20, .value_bytes = 100, .sequence = -1});
    uint8_t *bytes = (uint8_t *)(uintptr_t)batch.ptr;
    bytes[BATCH_HEADER_BYTES + 9] ^= 1; /* the system in gzip's header: ours would write another one */
    batch_set_max_timestamp(bytes, batch.len, TIMESTAMP_MS + 19);
    CHECK_EQ(append(batch).status, ST_OK);
    struct batch b = stored_at(0);
    CHECK_EQ(b.size_bytes, batch.len);
    CHECK_MEM(b.body.ptr, batch.ptr + BATCH_HEADER_BYTES, (size_t)b.body.len);
    stored_release();
    rig_close(&rig);
}

TEST(a_change_of_the_codec_holds_for_what_comes_after_it) { /* D9-11 */
    const struct making m = {.codec = CODEC_LZ4, .count = 2, .value_bytes = 10, .sequence = -1};
    open_with("gzip");
    CHECK_EQ(append_made(&m), ST_OK);
    set("compression.type", "producer");
    CHECK_EQ(append_made(&m), ST_OK);
    set("compression.type", "uncompressed");
    CHECK_EQ(append_made(&m), ST_OK);
    CHECK_EQ(stored_codec(0), CODEC_GZIP);
    CHECK_EQ(stored_codec(2), CODEC_LZ4);
    CHECK_EQ(stored_codec(4), CODEC_NONE);
    rig_close(&rig);
}

TEST(an_idempotent_producers_batch_is_stored_once_in_the_codec_of_the_topic) { /* D1-13 */
    struct making m = {.count = 2, .value_bytes = 10};
    open_with("zstd");
    for (m.sequence = 0; m.sequence < 6; m.sequence += 2)
        CHECK_EQ(append(make(&m)).base_offset, m.sequence);
    m.sequence = 2;
    CHECK_EQ(append(make(&m)).base_offset, 2); /* again: where it is */
    m.sequence = 8;
    CHECK_EQ(append_made(&m), ST_BAD_SEQUENCE);
    struct batch b = stored_at(4);
    CHECK_EQ(b.codec, CODEC_ZSTD);
    CHECK_EQ(b.producer_id, 77);
    CHECK_EQ(b.producer_epoch, 0);
    CHECK_EQ(b.base_sequence, 4);
    stored_release();
    rig_close(&rig);
}

TEST(records_that_get_the_time_of_their_append_get_the_codec_too) { /* D1-12 */
    const struct making m = {.codec = CODEC_SNAPPY, .count = 2, .value_bytes = 10, .sequence = -1};
    open_with("lz4");
    set("message.timestamp.type", "LogAppendTime");
    struct backend_append_part part = append(make(&m));
    CHECK_EQ(part.status, ST_OK);
    struct batch b = stored_at(0);
    CHECK_EQ(b.codec, CODEC_LZ4);
    CHECK(b.log_append_time);
    CHECK_EQ(b.max_timestamp, part.append_ms);
    CHECK_EQ(b.base_timestamp, TIMESTAMP_MS);
    stored_release();
    rig_close(&rig);
}

TEST(what_is_refused_is_refused_in_a_topic_with_a_codec_too) {
    struct making m = {.codec = CODEC_GZIP, .count = 2, .value_bytes = 10, .sequence = -1, .keyless = true};
    open_with("zstd");
    set("cleanup.policy", "compact");
    CHECK_EQ(append_made(&m), ST_NO_KEY); /* D6-15 */
    m.keyless = false;
    struct bytes batch = make(&m);
    uint8_t *bytes = (uint8_t *)(uintptr_t)batch.ptr;
    bytes[batch.len - 1] ^= 1;
    CHECK_EQ(append(batch).status, ST_BAD_CRC);
    batch_set_max_timestamp(bytes, batch.len, TIMESTAMP_MS + 1);
    CHECK_EQ(append(batch).status, ST_BAD_RECORD); /* can't be decompressed */
    CHECK_EQ(append_made(&m), ST_OK);
    CHECK_EQ(stored_codec(0), CODEC_ZSTD); /* nothing else was stored */
    rig_close(&rig);
}

TEST(a_batch_that_the_codec_makes_too_large_is_refused) { /* D1-30, D1-40 */
    struct making m = {.codec = CODEC_GZIP,
                       .count = 1,
                       .value_bytes = BATCH_BYTES_MAX - BATCH_HEADER_BYTES - 13,
                       .sequence = -1};
    open_with("uncompressed");
    CHECK_EQ(append_made(&m), ST_OK);
    struct batch b = stored_at(0);
    m.value_bytes += BATCH_BYTES_MAX - b.size_bytes;
    stored_release();
    CHECK_EQ(append_made(&m), ST_OK); /* exactly as large as is allowed */
    m.value_bytes++;
    struct backend_append_part part = append(make(&m));
    CHECK_EQ(part.status, ST_TOO_BIG);
    CHECK_EQ(part.start_offset, -1); /* K2-1 */
    CHECK_TEXT(part.reason, "In the compression of the topic the batch is larger than is allowed");
    set("compression.type", "producer");
    CHECK_EQ(append_made(&m), ST_OK);
    rig_close(&rig);
}

/* Far more than a round keeps in memory, in requests that wait together. */
TEST(batches_that_become_large_are_stored_in_their_order) {
    enum { CALLS = 20, PARTS = 4 };
    static struct backend_append calls[CALLS];
    static struct backend_append_part parts[CALLS][PARTS];
    static struct turn turns[CALLS];
    const struct making m = {.codec = CODEC_ZSTD, .count = 3, .value_bytes = 300000, .sequence = -1};
    open_with("uncompressed");
    for (int i = 0; i < CALLS; i++) {
        for (int k = 0; k < PARTS; k++) {
            struct bytes batch = make(&m);
            uint8_t *copy = mem_take((size_t)batch.len);
            memcpy(copy, batch.ptr, (size_t)batch.len);
            parts[i][k] = (struct backend_append_part){.topic = STR("orders"), .records = {copy, batch.len}};
        }
        calls[i] = append_of(&rig, parts[i], PARTS);
    }
    for (int i = 0; i < CALLS; i++)
        turn_start(&turns[i], &rig, 0, &calls[i].op, &calls[i], begin_append);
    for (int i = 0; i < CALLS; i++) {
        turn_wait(&turns[i]);
        for (int k = 0; k < PARTS; k++) {
            int64_t offset = (i * PARTS + k) * (int64_t)m.count;
            CHECK_EQ(parts[i][k].status, ST_OK);
            CHECK_EQ(parts[i][k].base_offset, offset);
            CHECK_EQ(stored_codec(offset), CODEC_NONE);
            free_batch(parts[i][k].records);
        }
    }
    rig_close(&rig);
}

TEST(batches_of_iggy_clients_stay_as_they_came) {
    const uint64_t origin = ORIGIN_US;
    open_with("gzip");
    CHECK_EQ(append_messages(&rig, 0, &origin, 1), 0);
    struct backend_read_part part = read_part("orders", 0, 0);
    struct backend_read read = read_of(&part, 1);
    struct iggy_batch b;
    read.format = FORMAT_IGGY;
    RUN(&rig, read, &read);
    CHECK_EQ(iggy_batch_read(part.records[0], true, &b), ST_OK);
    struct bytes sent = messages_at(&origin, 1);
    CHECK_MEM(sent.ptr + IGGY_BATCH_HEADER_BYTES, b.frames.ptr, (size_t)b.frames.len);
    free_batch(sent);
    backend_read_release(rig.backend, &read);
    CHECK_EQ(stored_codec(0), CODEC_NONE); /* as Kafka's clients get it */
    rig_close(&rig);
}

TEST(a_batch_that_finds_no_memory_is_not_stored_and_the_next_one_is) {
    const struct making m = {.codec = CODEC_GZIP, .count = 2, .value_bytes = 1000, .sequence = -1};
    int failed = 0;
    bool unharmed = false;
    open_with("lz4");
    CHECK_EQ(append_made(&m), ST_OK); /* all else that the lane needs is there then */
    for (int64_t nth = 1, offset = 2; nth < 100 && !unharmed; nth++) {
        struct bytes batch = make(&m);
        mem_fail_at(nth);
        struct backend_append_part part = append(batch);
        unharmed = mem_fail_pending();
        mem_fail_at(0);
        CHECK(part.status == ST_OK || part.status == ST_NO_MEMORY || part.status == ST_UNAVAILABLE);
        failed += part.status == ST_NO_MEMORY;
        CHECK_EQ(part.base_offset, part.status ? -1 : offset);
        offset += part.status ? 0 : m.count;
    }
    CHECK(unharmed);
    CHECK(failed > 0);
    rig_close(&rig);
}
