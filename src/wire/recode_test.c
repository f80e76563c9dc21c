/* batch_recode: a batch from any codec to any other. */
#include "base/be.h"
#include "base/crc32c.h"
#include "testing/test.h"
#include "wire/records.h"

#define HEADER_KEPT_BYTES 8 /* of what stands before the length */

static const struct batch_limits wide = {1 << 20, 1 << 14, INT64_MAX, true, false};
static struct spare built, packed, scratch, again, recoded;

static struct bytes view(const char *text) {
    return (struct bytes){(const uint8_t *)text, (int32_t)strlen(text)};
}

/* Of a producer that numbers its batches, with all that a header may say, and offset deltas that no client sends. */
static struct bytes numbered_batch(enum codec codec) {
    struct batch_builder b;
    struct bytes batch;
    const struct record_header header = {STR("name"), {(const uint8_t *)"header", 6}};
    CHECK_EQ(batch_builder_init(&b, &built, 1000), ST_OK);
    for (int i = 0; i < 50; i++)
        CHECK_EQ(
            batch_builder_add(&b, 1000 + i, 49 - i, view("key"), view("value of a record"), &header, i % 2),
            ST_OK);
    b.last_offset_delta = 49;
    b.leader_epoch = 7;
    b.producer_id = INT64_C(0x1234567890ab);
    b.producer_epoch = 3;
    b.base_sequence = 77;
    b.attributes = BATCH_LOG_APPEND_TIME | 0x40; /* of the bits that mean nothing one */
    CHECK_EQ(batch_builder_finish(&b, 0, codec, &packed, &batch), ST_OK);
    return batch;
}

TEST(a_batch_is_the_same_in_every_other_codec) { /* D1-16 */
    for (enum codec from = CODEC_NONE; from <= CODEC_ZSTD; from++) {
        for (enum codec to = CODEC_NONE; to <= CODEC_ZSTD; to++) {
            struct bytes sent = numbered_batch(from);
            struct batch_report before, after;
            CHECK_EQ(batch_check(sent, &wide, &scratch, &before), ST_OK);
            CHECK_EQ(batch_recode(sent.ptr, before.body, to, &recoded), ST_OK);
            struct bytes got = {recoded.ptr, (int32_t)recoded.len};
            CHECK_EQ(batch_check(got, &wide, &again, &after), ST_OK); /* length and CRC are right */
            CHECK_EQ(after.batch.codec, to);
            CHECK_EQ(after.batch.attributes, (before.batch.attributes & ~7) | (int)to);
            CHECK_MEM(got.ptr, sent.ptr, HEADER_KEPT_BYTES);
            CHECK_MEM(got.ptr + 12, sent.ptr + 12, 5);  /* leader epoch, magic */
            CHECK_MEM(got.ptr + 23, sent.ptr + 23, 38); /* all behind the attributes */
            CHECK_EQ(after.body.len, before.body.len);
            CHECK_MEM(after.body.ptr, before.body.ptr, (size_t)before.body.len);
        }
    }
}

TEST_OOM(a_batch_without_memory_for_its_new_form_stays_as_it_is) {
    struct spare out = {0};
    struct bytes sent = numbered_batch(CODEC_NONE);
    for (enum codec to = CODEC_NONE; to <= CODEC_ZSTD; to++) {
        struct batch b;
        CHECK_EQ(batch_read(sent, &b), ST_OK);
        enum status st = batch_recode(sent.ptr, b.body, to, &out);
        CHECK(st == ST_OK || st == ST_NO_MEMORY);
        CHECK_EQ(be_get(sent.ptr + 17, 4), crc32c(0, sent.ptr + 21, (size_t)sent.len - 21));
        spare_release(&out);
    }
}
