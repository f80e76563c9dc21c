#include "base/rbuf.h"

#include "base/be.h"
#include "testing/test.h"

TEST(integers_of_every_width_are_read_most_significant_byte_first) {
    static const uint8_t in[] = {0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88};
    uint64_t want = 0;
    for (unsigned width = 1; width <= 8; width++) {
        want = want << 8 | in[width - 1];
        struct rbuf r = {in, in + width};
        uint64_t got = 0;
        CHECK_EQ(rbuf_be(&r, width, &got), ST_OK);
        CHECK_EQ(got, want);
        CHECK_EQ(rbuf_left(&r), 0);
        CHECK_EQ(be_get(in, width), want);
        uint8_t out[8] = {0};
        be_set(out, width, want);
        CHECK_MEM(out, in, width);

        r = (struct rbuf){in, in + width - 1};
        got = 42;
        CHECK_EQ(rbuf_be(&r, width, &got), ST_TRUNCATED);
        CHECK_EQ(got, 42);
        CHECK_EQ(rbuf_left(&r), width - 1);
    }
}

TEST(null_bytes_are_an_input_at_its_end) {
    struct rbuf r = rbuf_of(BYTES_NULL);
    uint64_t be;
    uint32_t varint;
    CHECK_EQ(rbuf_left(&r), 0);
    CHECK_EQ(rbuf_be(&r, 1, &be), ST_TRUNCATED);
    CHECK_EQ(rbuf_uvarint(&r, &varint), ST_TRUNCATED);
}

TEST(unsigned_varints_are_read_up_to_five_bytes) {
    static const struct {
        size_t len;
        uint8_t in[6];
        uint32_t want;
    } cases[] = {
        {1, {0}, 0},
        {1, {0x7f}, 127},
        {2, {0x80, 0x01}, 128},
        {2, {0xff, 0x7f}, 16383},
        {3, {0x80, 0x80, 0x01}, 16384},
        {5, {0xff, 0xff, 0xff, 0xff, 0x0f}, UINT32_MAX},
        {2, {0x80, 0x00}, 0},                            /* longer than it must be */
        {5, {0xff, 0xff, 0xff, 0xff, 0x7f}, UINT32_MAX}, /* B-41: bits above 32 are dropped */
        {5, {0xff, 0xff, 0xff, 0xff, 0xff}, UINT32_MAX}, /* and a sixth byte is not read */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct rbuf r = {cases[i].in, cases[i].in + sizeof cases[i].in};
        uint32_t got = 7;
        CHECK_EQ(rbuf_uvarint(&r, &got), ST_OK);
        CHECK_EQ(got, cases[i].want);
        CHECK_EQ(r.at - cases[i].in, cases[i].len);
        for (size_t cut = 0; cut < cases[i].len; cut++) {
            r = (struct rbuf){cases[i].in, cases[i].in + cut};
            CHECK_EQ(rbuf_uvarint(&r, &got), ST_TRUNCATED);
        }
    }
}
