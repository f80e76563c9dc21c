#include "wire/compress.h"

#include <lz4frame.h>
#include <pthread.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "base/be.h"
#include "base/mem.h"
#include "testing/test.h"

#define KIB               ((size_t)1024)
#define MIB               ((size_t)1024 * 1024)
#define FOR_EACH_CODEC(c) for (enum codec c = CODEC_GZIP; c <= CODEC_ZSTD; c++)

/* Memory of all tests here, used again by each. */
static struct spare input, packed, inflated;

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static struct bytes content(const struct spare *s) {
    return (struct bytes){s->ptr, (int32_t)s->len};
}

static void put(struct spare *s, const void *ptr, size_t len) {
    CHECK_EQ(spare_reserve(s, s->len + len), ST_OK);
    memcpy(s->ptr + s->len, ptr, len);
    s->len += len;
}

/* len bytes that compress as text does, or not at all. */
static struct bytes make_input(size_t len, bool compressible, uint64_t seed) {
    CHECK_EQ(spare_reserve(&input, len), ST_OK);
    for (size_t i = 0; i < len; i++) {
        uint64_t r = next_random(&seed);
        input.ptr[i] = !compressible         ? (uint8_t)r
                       : i > 40 && r % 8 > 0 ? input.ptr[i - 40]
                                             : (uint8_t)('a' + r % 26);
    }
    input.len = len;
    return content(&input);
}

static struct bytes pack(enum codec codec, struct bytes in) {
    packed.len = 0;
    CHECK_EQ(codec_deflate(codec, in, &packed), ST_OK);
    return content(&packed);
}

static enum status unpack(enum codec codec, struct bytes in) {
    return codec_inflate(codec, in, 64 * MIB, &inflated);
}

static bool unpacks_to(enum codec codec, struct bytes in, struct bytes want) {
    return unpack(codec, in) == ST_OK && inflated.len == (size_t)want.len &&
           (want.len == 0 || memcmp(inflated.ptr, want.ptr, inflated.len) == 0);
}

TEST(every_codec_gives_back_what_it_was_given) {
    static const size_t lens[] = {0,        1,         100,        32 * KIB - 1, 32 * KIB, 32 * KIB + 1,
                                  64 * KIB, 300 * KIB, 5 * MIB + 7};
    FOR_EACH_CODEC(codec) {
        for (size_t i = 0; i < COUNT_OF(lens) * 2; i++) {
            struct bytes in = make_input(lens[i / 2], i % 2, i);
            if (!unpacks_to(codec, pack(codec, in), in))
                fail_msg("%s, %d bytes", codec_name(codec), in.len);
        }
    }
}

TEST(every_codec_gives_back_random_sizes_into_memory_of_any_size) {
    uint64_t seed = 11;
    FOR_EACH_CODEC(codec) {
        for (int i = 0; i < 100; i++) {
            struct bytes in = make_input(next_random(&seed) % (1u << next_random(&seed) % 19), i % 3, seed);
            struct spare fresh = {0};
            CHECK_EQ(codec_inflate(codec, pack(codec, in), (size_t)in.len, &fresh), ST_OK);
            CHECK_EQ(fresh.len, in.len);
            if (in.len > 0)
                CHECK_MEM(fresh.ptr, in.ptr, fresh.len);
            spare_release(&fresh);
        }
    }
}

/* D1-42 */
TEST(a_limit_is_reached_exactly_and_never_passed) {
    static const size_t lens[] = {1, 1000, 64 * KIB, 200 * KIB + 3, 3 * MIB};
    FOR_EACH_CODEC(codec) {
        for (size_t i = 0; i < COUNT_OF(lens) * 2; i++) {
            size_t len = lens[i / 2];
            struct bytes in = pack(codec, make_input(len, i % 2, i));
            struct spare fresh = {0};
            CHECK_EQ(codec_inflate(codec, in, len, &fresh), ST_OK);
            CHECK_EQ(fresh.len, len);
            CHECK(fresh.room <= len);
            CHECK_EQ(codec_inflate(codec, in, len - 1, &fresh), ST_TOO_BIG);
            CHECK(fresh.len < len);
            spare_release(&fresh);
            CHECK_EQ(codec_inflate(codec, in, len - 1, &fresh), ST_TOO_BIG);
            CHECK(fresh.len < len);
            CHECK(fresh.room < len);
            spare_release(&fresh);
            /* Memory that is larger than the limit makes the limit no larger. */
            CHECK_EQ(spare_reserve(&fresh, 8 * MIB), ST_OK);
            CHECK_EQ(codec_inflate(codec, in, len, &fresh), ST_OK);
            CHECK_EQ(codec_inflate(codec, in, len - 1, &fresh), ST_TOO_BIG);
            CHECK(fresh.len < len);
            spare_release(&fresh);
        }
    }
}

TEST(no_cut_of_a_compressed_block_is_taken_for_a_whole_one) {
    FOR_EACH_CODEC(codec) {
        struct bytes in = pack(codec, make_input(500, true, 1));
        for (int32_t cut = 0; cut < in.len; cut++) {
            /* The xerial header alone is a stream of no blocks. */
            enum status want = codec == CODEC_SNAPPY && cut == 16 ? ST_OK : ST_BAD_RECORD;
            CHECK_EQ(unpack(codec, (struct bytes){in.ptr, cut}), want);
            CHECK(want || inflated.len == 0);
        }
    }
}

/* ---- bombs ---- */

/* len zeros, compressed as hard as their codec can, the size not declared. */
static struct bytes zstd_of_zeros(size_t len, int window_log) {
    static uint8_t zeros[256 * KIB];
    ZSTD_CCtx *c = ZSTD_createCCtx();
    CHECK(c != NULL);
    ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, window_log);
    packed.len = 0;
    CHECK_EQ(spare_reserve(&packed, 256 * KIB), ST_OK);
    ZSTD_outBuffer out = {packed.ptr, packed.room, 0};
    for (size_t done = 0; done < len; done += sizeof zeros) {
        ZSTD_inBuffer in = {zeros, sizeof zeros, 0};
        bool last = done + sizeof zeros >= len;
        CHECK(!ZSTD_isError(ZSTD_compressStream2(c, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue)));
        CHECK_EQ(in.pos, in.size);
    }
    ZSTD_freeCCtx(c);
    CHECK(out.pos < out.size);
    packed.len = out.pos;
    return content(&packed);
}

static void check_cut_at_limit(enum codec codec, struct bytes bomb, size_t bytes_max) {
    struct spare fresh = {0};
    CHECK_EQ(codec_inflate(codec, bomb, bytes_max, &fresh), ST_TOO_BIG);
    CHECK(fresh.room <= bytes_max);
    spare_release(&fresh);
}

TEST(bombs_are_cut_at_the_limit) {
    check_cut_at_limit(CODEC_ZSTD, zstd_of_zeros(200 * MIB, 20), 8 * MIB);
    CHECK(packed.len < 32 * KIB);
    CHECK_EQ(spare_reserve(&input, 64 * MIB), ST_OK);
    memset(input.ptr, 0, 64 * MIB);
    input.len = 64 * MIB;
    FOR_EACH_CODEC(codec)
    check_cut_at_limit(codec, pack(codec, content(&input)), 8 * MIB);
}

TEST(the_largest_zstd_window_costs_no_more_than_the_limit) {
    struct bytes in = zstd_of_zeros(4 * MIB, 27);
    struct spare fresh = {0};
    CHECK_EQ(codec_inflate(CODEC_ZSTD, in, 4 * MIB, &fresh), ST_OK);
    CHECK_EQ(fresh.len, 4 * MIB);
    CHECK(fresh.room <= 4 * MIB);
    spare_release(&fresh);
}

/* What is declared and not there may cost 64 KiB and 64 times the input, as the header says. */
TEST(a_declared_size_that_is_a_lie_costs_little) {
    static const struct {
        enum codec codec;
        int32_t len;
        uint8_t in[24];
        enum status want;
    } cases[] = {
        {CODEC_SNAPPY, 6, {0xff, 0xff, 0xff, 0xff, 0x0f, 0x00}, ST_TOO_BIG},    /* 4 GiB */
        {CODEC_SNAPPY, 5, {0x80, 0x80, 0x80, 0x02, 0x00}, ST_BAD_RECORD},       /* 4 MiB from 5 bytes */
        {CODEC_SNAPPY, 6, {0xff, 0xff, 0xff, 0xff, 0xff, 0x0f}, ST_BAD_RECORD}, /* more than 32 bits */
        {CODEC_ZSTD, 10, {0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0x40, 0, 1}, ST_BAD_RECORD}, /* 4 MiB */
        {CODEC_ZSTD, 10, {0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40, 1}, ST_TOO_BIG},    /* 1 GiB */
        {CODEC_GZIP,
         20,
         {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0x40, 0},
         ST_BAD_RECORD},
        {CODEC_GZIP,
         20,
         {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
         ST_BAD_RECORD},
        {CODEC_GZIP,
         20,
         {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0},
         ST_OK}, /* the truth */
        /* lz4: 1 GiB declared, then the end mark; the header checksum is right */
        {CODEC_LZ4,
         19,
         {4, 0x22, 0x4d, 0x18, 0x68, 0x40, 0, 0, 0, 0x40, 0, 0, 0, 0, 0x61, 0, 0, 0, 0},
         ST_BAD_RECORD},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct spare fresh = {0};
        struct bytes in = {cases[i].in, cases[i].len};
        enum status st = codec_inflate(cases[i].codec, in, 8 * MIB, &fresh);
        if (st != cases[i].want)
            fail_msg("case %zu: status %d", i, (int)st);
        CHECK(fresh.room <= 64 * KIB + 64 * (size_t)in.len);
        spare_release(&fresh);
    }
}

/* ---- gzip ---- */

TEST(all_members_of_gzip_are_read) {
    struct spare two = {0}, want = {0};
    for (uint64_t i = 0; i < 3; i++) {
        struct bytes in = make_input(i == 1 ? 0 : 70 * KIB, true, i), member = pack(CODEC_GZIP, in);
        put(&want, in.ptr, (size_t)in.len);
        put(&two, member.ptr, (size_t)member.len);
    }
    CHECK(unpacks_to(CODEC_GZIP, content(&two), content(&want)));
    struct spare fresh = {0};
    CHECK_EQ(codec_inflate(CODEC_GZIP, content(&two), want.len, &fresh), ST_OK);
    CHECK_EQ(codec_inflate(CODEC_GZIP, content(&two), want.len - 1, &fresh), ST_TOO_BIG);
    two.len -= 5; /* the last member is cut */
    CHECK_EQ(unpack(CODEC_GZIP, content(&two)), ST_BAD_RECORD);
    spare_release(&fresh);
    spare_release(&two);
    spare_release(&want);
}

TEST(what_follows_a_gzip_member_and_is_none_is_not_looked_at) {
    struct bytes in = make_input(1000, true, 3), member = pack(CODEC_GZIP, in);
    CHECK(unpacks_to(CODEC_GZIP, member, in));
    static const char *const garbage[] = {"\0\0\0\0\0\0\0\0\0\0\0", "garbage garbage garbage", "\x1f\x8b",
                                          "\x1f\x8b\x08\0\0\0\0\0\0"};
    static const size_t lens[] = {11, 23, 2, 9};
    for (size_t i = 0; i < COUNT_OF(garbage); i++) {
        size_t before = packed.len;
        put(&packed, garbage[i], lens[i]);
        CHECK(unpacks_to(CODEC_GZIP, content(&packed), in));
        packed.len = before;
    }
}

TEST(gzip_that_is_damaged_is_refused) {
    struct bytes in = pack(CODEC_GZIP, make_input(3000, true, 4));
    for (int32_t at = in.len - 8; at < in.len; at++) { /* CRC and size */
        packed.ptr[at] ^= 1;
        CHECK_EQ(unpack(CODEC_GZIP, in), ST_BAD_RECORD);
        packed.ptr[at] ^= 1;
    }
    CHECK_EQ(unpack(CODEC_GZIP, in), ST_OK);
    uLongf len = (uLongf)packed.room;
    CHECK_EQ(compress(packed.ptr, &len, input.ptr, 100), Z_OK); /* zlib's own header */
    CHECK_EQ(unpack(CODEC_GZIP, (struct bytes){packed.ptr, (int32_t)len}), ST_BAD_RECORD);
}

/* ---- snappy ---- */

static const uint8_t raw_abcd[] = {4, 3 << 2, 'a', 'b', 'c', 'd'};

static void xerial_start(int64_t version) {
    packed.len = 0;
    put(&packed, "\x82SNAPPY\0", 8);
    uint8_t versions[8];
    be_set(versions, 8, (uint64_t)version);
    put(&packed, versions, 8);
}

static void xerial_block(int64_t declared_len, const void *block, size_t len) {
    uint8_t b[4];
    be_set(b, 4, (uint64_t)declared_len);
    put(&packed, b, 4);
    put(&packed, block, len);
}

TEST(snappy_is_read_raw_and_framed) {
    struct bytes abcd = {(const uint8_t *)"abcdabcd", 4};
    CHECK(unpacks_to(CODEC_SNAPPY, (struct bytes){raw_abcd, sizeof raw_abcd}, abcd));
    static const int64_t versions[] = {0x100000001, 0, -1, 0x7f0000001234};
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        xerial_start(versions[i]);
        xerial_block(sizeof raw_abcd, raw_abcd, sizeof raw_abcd);
        CHECK(unpacks_to(CODEC_SNAPPY, content(&packed), abcd));
    }
    xerial_block(1, "\0", 1); /* a block that inflates to nothing */
    xerial_block(sizeof raw_abcd, raw_abcd, sizeof raw_abcd);
    abcd.len = 8;
    CHECK(unpacks_to(CODEC_SNAPPY, content(&packed), abcd));
    CHECK_EQ(codec_inflate(CODEC_SNAPPY, content(&packed), 8, &inflated), ST_OK);
    CHECK_EQ(codec_inflate(CODEC_SNAPPY, content(&packed), 7, &inflated), ST_TOO_BIG);
    CHECK_EQ(inflated.len, 4);
}

TEST(snappy_frames_whose_lengths_are_wrong_are_refused) {
    static const int64_t lens[] = {0, -1, INT32_MIN, 5, 7, 6 + 4, INT32_MAX};
    for (size_t i = 0; i < COUNT_OF(lens); i++) {
        xerial_start(0x100000001);
        xerial_block(sizeof raw_abcd, raw_abcd, sizeof raw_abcd);
        xerial_block(lens[i], raw_abcd, sizeof raw_abcd);
        CHECK_EQ(unpack(CODEC_SNAPPY, content(&packed)), ST_BAD_RECORD);
    }
    xerial_start(0x100000001);
    put(&packed, "\0\0\0", 3);
    CHECK_EQ(unpack(CODEC_SNAPPY, content(&packed)), ST_BAD_RECORD);
    packed.len = 15; /* too short for a frame, so it is raw */
    CHECK_EQ(unpack(CODEC_SNAPPY, content(&packed)), ST_BAD_RECORD);
    CHECK_EQ(unpack(CODEC_SNAPPY, (struct bytes){raw_abcd, 0}), ST_BAD_RECORD);
}

/* As Java's stream does, which reads 32 KiB at a time. */
TEST(snappy_is_written_in_xerial_blocks_of_32_kib) {
    struct bytes out = pack(CODEC_SNAPPY, make_input(70 * KIB, true, 5));
    CHECK_MEM(out.ptr, "\x82SNAPPY\0\0\0\0\1\0\0\0\1", 16);
    size_t at = 16, blocks = 0, len;
    for (; at < (size_t)out.len; blocks++) {
        size_t block = be_get(out.ptr + at, 4);
        CHECK_EQ(snappy_uncompressed_length((const char *)out.ptr + at + 4, block, &len), SNAPPY_OK);
        CHECK_EQ(len, blocks < 2 ? 32 * KIB : 6 * KIB);
        at += 4 + block;
    }
    CHECK_EQ(blocks, 3);
}

/* ---- lz4 ---- */

static struct bytes lz4_frame(struct bytes in, LZ4F_frameInfo_t form) {
    LZ4F_preferences_t all = {.frameInfo = form};
    CHECK_EQ(spare_reserve(&packed, LZ4F_compressFrameBound((size_t)in.len, &all)), ST_OK);
    packed.len = LZ4F_compressFrame(packed.ptr, packed.room, in.ptr, (size_t)in.len, &all);
    CHECK(!LZ4F_isError(packed.len));
    return content(&packed);
}

TEST(lz4_frames_are_read_whatever_their_block_size_and_checksums) {
    struct bytes in = make_input(6 * MIB, true, 6);
    static const LZ4F_frameInfo_t forms[] = {
        {.blockMode = LZ4F_blockIndependent, .blockSizeID = LZ4F_max64KB},
        {.blockMode = LZ4F_blockIndependent, .blockSizeID = LZ4F_max4MB},
        {.blockMode = LZ4F_blockIndependent,
         .blockSizeID = LZ4F_max256KB,
         .blockChecksumFlag = LZ4F_blockChecksumEnabled},
        {.blockMode = LZ4F_blockIndependent,
         .blockSizeID = LZ4F_max1MB,
         .contentChecksumFlag = LZ4F_contentChecksumEnabled},
        {.blockMode = LZ4F_blockIndependent, .blockSizeID = LZ4F_max64KB, .contentSize = 1},
    };
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        CHECK(unpacks_to(CODEC_LZ4, lz4_frame(in, forms[i]), in));
        packed.ptr[packed.len / 2] ^= 1;
        if (forms[i].blockChecksumFlag || forms[i].contentChecksumFlag)
            CHECK_EQ(unpack(CODEC_LZ4, content(&packed)), ST_BAD_RECORD);
    }
}

TEST(lz4_that_a_java_consumer_could_not_read_is_refused) {
    struct bytes in = make_input(200 * KIB, true, 7);
    CHECK_EQ(unpack(CODEC_LZ4, lz4_frame(in, (LZ4F_frameInfo_t){.blockMode = LZ4F_blockLinked})),
             ST_BAD_RECORD);
    LZ4F_frameInfo_t with_dictionary = {.blockMode = LZ4F_blockIndependent, .dictID = 5};
    CHECK_EQ(unpack(CODEC_LZ4, lz4_frame(in, with_dictionary)), ST_BAD_RECORD);

    pack(CODEC_LZ4, in);
    packed.ptr[6] ^= 1; /* header checksum */
    CHECK_EQ(unpack(CODEC_LZ4, content(&packed)), ST_BAD_RECORD);
    packed.ptr[6] ^= 1;
    CHECK_EQ(unpack(CODEC_LZ4, content(&packed)), ST_OK);
    size_t one = packed.len;
    put(&packed, "\0", 1);
    CHECK_EQ(unpack(CODEC_LZ4, content(&packed)), ST_BAD_RECORD);
    packed.len = one;
    CHECK_EQ(spare_reserve(&packed, 2 * one), ST_OK);
    put(&packed, packed.ptr, one); /* two frames */
    CHECK_EQ(unpack(CODEC_LZ4, content(&packed)), ST_BAD_RECORD);

    packed.len = 0;
    put(&packed, "\x50\x2a\x4d\x18\x20\0\0\0", 8); /* a skippable frame of 32 bytes */
    put(&packed, in.ptr, 32);
    CHECK_EQ(unpack(CODEC_LZ4, content(&packed)), ST_BAD_RECORD);
}

/* A thread's context serves one client after the other. */
static void check_that_failures_leave_no_trace(enum codec codec, struct bytes out) {
    CHECK_EQ(unpack(codec, (struct bytes){out.ptr, out.len / 2}), ST_BAD_RECORD);
    CHECK_EQ(codec_inflate(codec, out, 50 * KIB, &inflated), ST_TOO_BIG);
    struct bytes in = content(&input);
    CHECK(unpacks_to(codec, pack(codec, in), in));
}

TEST(a_broken_frame_does_not_spoil_the_next_one) {
    struct bytes in = make_input(100 * KIB, true, 10);
    FOR_EACH_CODEC(codec)
    check_that_failures_leave_no_trace(codec, pack(codec, in));
    /* lz4 remembered the size that a frame had declared */
    LZ4F_frameInfo_t sized = {.blockMode = LZ4F_blockIndependent, .contentSize = 1};
    check_that_failures_leave_no_trace(CODEC_LZ4, lz4_frame(in, sized));
}

/* ---- zstd ---- */

TEST(all_frames_of_zstd_are_read_and_skippable_ones_skipped) {
    struct bytes in = make_input(300 * KIB, true, 8), frame = pack(CODEC_ZSTD, in);
    struct spare all = {0}, want = {0};
    put(&all, "\x50\x2a\x4d\x18\x04\0\0\0abcd", 12);
    for (int i = 0; i < 2; i++) {
        put(&all, frame.ptr, (size_t)frame.len);
        put(&want, in.ptr, (size_t)in.len);
    }
    put(&all, "\x5f\x2a\x4d\x18\0\0\0\0", 8);
    CHECK(unpacks_to(CODEC_ZSTD, content(&all), content(&want)));
    struct spare fresh = {0};
    CHECK_EQ(codec_inflate(CODEC_ZSTD, content(&all), want.len, &fresh), ST_OK);
    CHECK_EQ(codec_inflate(CODEC_ZSTD, content(&all), want.len - 1, &fresh), ST_TOO_BIG);
    put(&all, "garbage", 7);
    CHECK_EQ(unpack(CODEC_ZSTD, content(&all)), ST_BAD_RECORD);
    spare_release(&fresh);
    spare_release(&all);
    spare_release(&want);
}

TEST(zstd_that_needs_a_dictionary_or_is_damaged_is_refused) {
    /* a frame of one raw block "a": first with dictionary id 5, then without one */
    static const uint8_t with_dictionary[] = {0x28, 0xb5, 0x2f, 0xfd, 0x21, 5, 1, 9, 0, 0, 'a'};
    static const uint8_t without[] = {0x28, 0xb5, 0x2f, 0xfd, 0x20, 1, 9, 0, 0, 'a'};
    CHECK_EQ(unpack(CODEC_ZSTD, (struct bytes){with_dictionary, sizeof with_dictionary}), ST_BAD_RECORD);
    CHECK(unpacks_to(CODEC_ZSTD, (struct bytes){without, sizeof without},
                     (struct bytes){(const uint8_t *)"a", 1}));

    ZSTD_CCtx *c = ZSTD_createCCtx();
    CHECK(c != NULL);
    ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
    struct bytes in = make_input(1000, true, 9);
    CHECK_EQ(spare_reserve(&packed, 2000), ST_OK);
    packed.len = ZSTD_compress2(c, packed.ptr, packed.room, in.ptr, (size_t)in.len);
    ZSTD_freeCCtx(c);
    CHECK(unpacks_to(CODEC_ZSTD, content(&packed), in));
    packed.ptr[packed.len - 1] ^= 1;
    CHECK_EQ(unpack(CODEC_ZSTD, content(&packed)), ST_BAD_RECORD);
}

/* ---- memory ---- */

TEST(a_spare_keeps_what_is_in_it_when_it_grows) {
    struct spare s = {0};
    CHECK_EQ(spare_reserve(&s, 0), ST_OK);
    CHECK(s.ptr != NULL);
    put(&s, "abc", 3);
    for (size_t len = 4; len < 100000; len += 999) {
        CHECK_EQ(spare_reserve(&s, len), ST_OK);
        CHECK(s.room >= len);
        CHECK_EQ(s.len, 3);
        CHECK_MEM(s.ptr, "abc", 3);
        s.ptr[len - 1] = 1;
        memcpy(s.ptr, "abc", 3);
    }
    uint8_t *before = s.ptr;
    CHECK_EQ(spare_reserve(&s, 10), ST_OK);
    CHECK(s.ptr == before);
    spare_release(&s);
    CHECK(s.ptr == NULL && s.room == 0 && s.len == 0);
    spare_release(&s);
}

TEST(a_threads_spare_is_kept_while_it_is_small) {
    struct spare *s = spare_of_thread();
    CHECK(s == spare_of_thread());
    CHECK_EQ(spare_reserve(s, 1 << 20), ST_OK);
    spare_put_back(s);
    CHECK(s->room >= 1 << 20);
    CHECK_EQ(spare_reserve(s, 8 << 20), ST_OK);
    spare_put_back(s);
    CHECK_EQ(s->room, 0);
}

/* A thread of its own has no contexts and no spare yet: theirs are among the allocations that fail. The leak checker sees that they go with it. */
static void *all_codecs(void *unused) {
    (void)unused;
    FOR_EACH_CODEC(codec) {
        struct spare out = {0}, *again = spare_of_thread();
        enum status st = codec_deflate(codec, (struct bytes){(const uint8_t *)"abcdabcdabcdabcd", 16}, &out);
        CHECK(st == ST_OK || st == ST_NO_MEMORY);
        if (!st)
            st = again ? codec_inflate(codec, content(&out), 16, again) : ST_NO_MEMORY;
        CHECK(st == ST_OK || st == ST_NO_MEMORY);
        CHECK(st || again->len == 16);
        CHECK(!again || again == spare_of_thread());
        spare_release(&out);
    }
    return NULL;
}

TEST_OOM(every_codec_survives_any_failed_allocation) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, all_codecs, NULL), 0);
    pthread_join(thread, NULL);
}

/* The stream form of gzip, which libdeflate leaves to zlib. */
TEST_OOM(inflating_what_grows_survives_any_failed_allocation) {
    struct spare out = {0};
    FOR_EACH_CODEC(codec) {
        static uint8_t zeros[2 * 1024 * 1024];
        packed.len = 0;
        enum status st = codec_deflate(codec, (struct bytes){zeros, sizeof zeros}, &packed);
        if (!st)
            st = codec_inflate(codec, content(&packed), sizeof zeros, &out);
        CHECK(st == ST_OK || st == ST_NO_MEMORY);
        CHECK(st || out.len == sizeof zeros);
        spare_release(&out);
    }
}
