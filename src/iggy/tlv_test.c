#include "iggy/tlv.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "iggy/iggy.h"
#include "testing/test.h"

#define VIEW(array) ((struct bytes){(const uint8_t *)(array), (int32_t)sizeof(array) - 1})

/* "k" = raw 01, "attempt" = u32 1 */
static const char two_entries[] = "\x02\x01\0\0\0k"
                                  "\x01\x01\0\0\0\x01"
                                  "\x02\x07\0\0\0"
                                  "attempt"
                                  "\x0b\x04\0\0\0\x01\0\0\0";

TEST(entries_are_read_in_order_and_written_as_they_were) {
    struct bytes at = VIEW(two_entries);
    struct tlv_entry e;
    uint8_t out[64];
    CHECK_EQ(tlv_next(&at, &e), ST_OK);
    CHECK_EQ(e.key_kind, TLV_STRING);
    CHECK_EQ(e.value_kind, TLV_RAW);
    CHECK_EQ(e.key.len, 1);
    CHECK_EQ(e.value.ptr[0], 1);
    CHECK_EQ(tlv_bytes(1, 1), 12);
    uint8_t *end = tlv_write(out, &e);
    CHECK_EQ(tlv_next(&at, &e), ST_OK);
    CHECK_EQ(e.value_kind, TLV_U32);
    uint64_t value = 0;
    CHECK(tlv_uint(&e, &value) && value == 1);
    end = tlv_write(end, &e);
    CHECK_EQ(tlv_next(&at, &e), ST_NOT_FOUND);
    CHECK_EQ(end - out, sizeof two_entries - 1);
    CHECK_MEM(out, two_entries, sizeof two_entries - 1);
    CHECK_EQ(tlv_check((struct bytes){NULL, 0}), ST_OK);
}

TEST(every_cut_inside_an_entry_is_refused) {
    for (int32_t len = 1; len < VIEW(two_entries).len; len++)
        if (len != 12) /* where the first entry ends */
            CHECK_EQ(tlv_check((struct bytes){VIEW(two_entries).ptr, len}), ST_TRUNCATED);
}

TEST(kind_0_and_lengths_of_0_or_over_255_are_refused_and_later_kinds_pass) {
    uint8_t block[10 + 2 * 256] = "\x02\x01\0\0\0k\x01\x01\0\0\0v";
    struct bytes all = {block, 12};
    CHECK_EQ(tlv_check(all), ST_OK);
    block[6] = 200;
    CHECK_EQ(tlv_check(all), ST_OK);
    block[6] = 0;
    CHECK_EQ(tlv_check(all), ST_INVALID);
    block[6] = 1;
    block[7] = 0;
    CHECK_EQ(tlv_check(all), ST_BAD_LENGTH);
    block[8] = 1; /* 256 bytes, which are there */
    CHECK_EQ(tlv_check((struct bytes){block, 11 + 256}), ST_BAD_LENGTH);
    block[7] = 255;
    block[8] = 0;
    CHECK_EQ(tlv_check((struct bytes){block, 11 + 255}), ST_OK);
}

TEST(a_value_is_typed_by_its_kind_and_length) {
    static const uint8_t bytes[16] = {1};
    static const int lengths[] = {[TLV_BOOL] = 1,  [TLV_I8] = 1,  [TLV_I16] = 2, [TLV_I32] = 4, [TLV_I64] = 8,
                                  [TLV_I128] = 16, [TLV_U8] = 1,  [TLV_U16] = 2, [TLV_U32] = 4, [TLV_U64] = 8,
                                  [TLV_U128] = 16, [TLV_F32] = 4, [TLV_F64] = 8};
    for (uint8_t kind = TLV_BOOL; kind <= TLV_F64; kind++) {
        struct tlv_entry e = {TLV_STRING, kind, {bytes, 1}, {bytes, lengths[kind]}};
        CHECK(tlv_is_typed(&e));
        e.value.len--;
        CHECK(!tlv_is_typed(&e));
    }
    struct tlv_entry e = {TLV_STRING, TLV_F64 + 1, {bytes, 1}, {bytes, 1}};
    CHECK(!tlv_is_typed(&e));
    e = (struct tlv_entry){TLV_STRING, TLV_STRING, {bytes, 1}, VIEW("\xff")};
    CHECK(!tlv_is_typed(&e));
    e = (struct tlv_entry){TLV_STRING, TLV_BOOL, {bytes, 1}, VIEW("\x02")};
    CHECK(!tlv_is_typed(&e));
    uint64_t value;
    CHECK(!tlv_uint(&e, &value));
    e.value_kind = TLV_I8;
    CHECK(!tlv_uint(&e, &value));
}

static struct bytes options(uint8_t *out, int count) {
    uint8_t *at = out;
    for (int i = 0; i < count; i++) {
        uint8_t key[2] = {(uint8_t)('0' + i % 64), (uint8_t)('0' + i / 64)};
        at = tlv_write(at, &(struct tlv_entry){TLV_STRING, TLV_U8, {key, 2}, VIEW("\x07")});
    }
    return (struct bytes){out, (int32_t)(at - out)};
}

TEST(options_have_1024_entries_at_most_each_key_a_string_and_none_twice) {
    static uint8_t block[1100 * 13];
    CHECK_EQ(tlv_check_options(options(block, 1024)), ST_OK);
    CHECK_EQ(tlv_check_options(options(block, 1025)), ST_TOO_BIG);
    struct bytes two = options(block, 2);
    block[13] = TLV_RAW;
    CHECK_EQ(tlv_check_options(two), ST_INVALID);
    block[13] = TLV_STRING;
    block[18] = block[5]; /* the same key */
    CHECK_EQ(tlv_check_options(two), ST_INVALID);
    block[18] = 'x';
    block[12] = 9;
    CHECK_EQ(tlv_check_options(two), ST_OK);
    block[7] = TLV_U16; /* of one byte */
    CHECK_EQ(tlv_check_options(two), ST_INVALID);
    CHECK_EQ(tlv_check_options((struct bytes){block, IGGY_OPTIONS_BYTES_MAX + 1}), ST_TOO_BIG);
}

TEST(an_option_is_found_by_its_name_and_the_last_one_counts) {
    static const char twice[] = "\x02\x01\0\0\0k\x09\x01\0\0\0\x05"
                                "\x01\x01\0\0\0k\x09\x01\0\0\0\x06"
                                "\x02\x01\0\0\0k\x09\x01\0\0\0\x07";
    struct tlv_entry e;
    CHECK(tlv_find(VIEW(twice), STR("k"), &e));
    CHECK_EQ(e.value.ptr[0], 7);
    CHECK(!tlv_find(VIEW(twice), STR("kk"), &e));
}

TEST(utf_8_is_what_rust_takes_for_a_string) {
    static const char *const good[] = {
        "", "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {
        "\x80",         "\xc0\x80",         "\xc3",     "\xc3(",    "\xe0\x80\x80",
        "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80", "\xe2\x82", "\xf0\x8f\xbf\xbf",
        "a\xff"};
    for (size_t i = 0; i < COUNT_OF(good); i++)
        CHECK(utf8_is_valid(good[i], strlen(good[i])));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(!utf8_is_valid(bad[i], strlen(bad[i])));
}
