#include "base/wbuf.h"

#include "base/mem.h"
#include "testing/test.h"

#define ROOM ((size_t)1024 * 1024)

static uint8_t flat[ROOM];

static void check_holds(const struct wbuf *w, const void *want, size_t len) {
    CHECK_EQ(w->bytes, len);
    size_t bytes = 0;
    for (int32_t i = 0; i < w->pieces_count; i++)
        bytes += w->pieces[i].iov_len;
    CHECK_EQ(bytes, len);
    CHECK(len <= sizeof flat);
    wbuf_flatten(w, flat);
    CHECK_MEM(flat, want, len);
}

TEST(a_wbuf_holds_what_was_put_in_order) {
    struct wbuf w;
    wbuf_init(&w, ROOM);
    CHECK_EQ(wbuf_put(&w, "", 0), ST_OK);
    CHECK_EQ(w.pieces_count, 0);
    CHECK_EQ(wbuf_put(&w, "abc", 3), ST_OK);
    CHECK_EQ(wbuf_put_be(&w, 0x1122334455667788, 8), ST_OK);
    CHECK_EQ(wbuf_put_be(&w, 0x11223344, 3), ST_OK);
    CHECK_EQ(wbuf_put_be(&w, (uint64_t)-2, 2), ST_OK);
    uint8_t *later = wbuf_reserve(&w, 4);
    CHECK(later != NULL);
    CHECK_EQ(wbuf_put(&w, "z", 1), ST_OK);
    memcpy(later, "len!", 4);
    static const char want[] = "abc\x11\x22\x33\x44\x55\x66\x77\x88\x22\x33\x44\xff\xfelen!z";
    check_holds(&w, want, sizeof want - 1);
    CHECK_EQ(w.pieces_count, 1); /* what lies together is one piece */
    wbuf_release(&w);
}

TEST(a_wbuf_of_many_chunks_is_what_was_put) {
    static uint8_t want[300000];
    for (size_t i = 0; i < sizeof want; i++)
        want[i] = (uint8_t)(i * 7 + i / 256);
    struct wbuf w;
    wbuf_init(&w, sizeof want);
    size_t at = 0;
    for (size_t part = 1; at < sizeof want; part = part * 3 % 5003) {
        part = part < sizeof want - at ? part : sizeof want - at;
        CHECK_EQ(wbuf_put(&w, want + at, part), ST_OK);
        at += part;
    }
    check_holds(&w, want, sizeof want);
    wbuf_release(&w);
}

TEST(a_wbuf_borrows_long_slices_and_copies_short_ones) {
    static uint8_t slice[1000];
    memset(slice, 's', sizeof slice);
    uint8_t want[2 + 1000 + 1 + 10 + 1000 + 1000];
    memset(want, 's', sizeof want);
    want[0] = want[1] = 'a';
    want[1002] = 'b';

    struct wbuf w;
    wbuf_init(&w, ROOM);
    CHECK_EQ(wbuf_put(&w, "aa", 2), ST_OK);
    CHECK_EQ(wbuf_borrow(&w, slice, 1000), ST_OK);
    CHECK_EQ(wbuf_put(&w, "b", 1), ST_OK);
    CHECK_EQ(wbuf_borrow(&w, slice, 10), ST_OK);
    CHECK_EQ(wbuf_borrow(&w, slice, 1000), ST_OK);
    CHECK_EQ(wbuf_borrow(&w, slice, 1000), ST_OK);
    check_holds(&w, want, sizeof want);
    CHECK_EQ(w.pieces_count, 5);
    CHECK(w.pieces[1].iov_base == slice);
    CHECK(w.pieces[3].iov_base == slice);
    CHECK(w.pieces[4].iov_base == slice);
    wbuf_release(&w);
}

TEST(reserved_bytes_are_contiguous_at_the_end_of_a_chunk_too) {
    struct wbuf w;
    wbuf_init(&w, ROOM);
    static uint8_t want[20000];
    for (size_t at = 0; at < sizeof want; at += 50) {
        uint8_t *p = wbuf_reserve(&w, 50);
        CHECK(p != NULL);
        memset(p, (int)(at / 50), 50);
        memset(want + at, (int)(at / 50), 50);
    }
    check_holds(&w, want, sizeof want);
    wbuf_release(&w);
}

TEST(a_wbuf_takes_exactly_its_limit) {
    static const uint8_t slice[300];
    struct wbuf w;
    wbuf_init(&w, 310);
    CHECK_EQ(wbuf_put(&w, "abcdefg", 7), ST_OK);
    CHECK_EQ(wbuf_borrow(&w, slice, 300), ST_OK);
    CHECK_EQ(wbuf_put(&w, "abcd", 4), ST_TOO_BIG);
    CHECK_EQ(wbuf_put_be(&w, 0, 4), ST_TOO_BIG);
    CHECK_EQ(wbuf_borrow(&w, slice, 300), ST_TOO_BIG);
    CHECK_EQ(wbuf_borrow(&w, slice, SIZE_MAX), ST_TOO_BIG);
    CHECK_EQ(wbuf_put(&w, slice, SIZE_MAX), ST_TOO_BIG);
    CHECK(wbuf_reserve(&w, 4) == NULL);
    CHECK(wbuf_reserve(&w, 1) != NULL);
    CHECK_EQ(wbuf_put(&w, "ab", 2), ST_OK);
    CHECK_EQ(wbuf_put(&w, "a", 1), ST_TOO_BIG);
    CHECK_EQ(w.bytes, 310);
    wbuf_release(&w);
    wbuf_release(&w);
    CHECK_EQ(w.bytes, 0);
}

TEST_OOM(a_wbuf_survives_any_failed_allocation) {
    static const uint8_t slice[5000];
    struct wbuf w;
    wbuf_init(&w, ROOM);
    enum status st = ST_OK;
    for (int i = 0; i < 10 && !st; i++) {
        st = wbuf_put(&w, slice, sizeof slice);
        if (!st)
            st = wbuf_borrow(&w, slice, sizeof slice);
        if (!st)
            st = wbuf_reserve(&w, 10) ? ST_OK : ST_NO_MEMORY;
    }
    CHECK(st == ST_NO_MEMORY || (!st && w.bytes == 100100));
    wbuf_release(&w);
}
