#include "base/arena.h"

#include "base/mem.h"
#include "testing/test.h"

#define ALIGNMENT _Alignof(max_align_t)

static bool is_zero(const uint8_t *p, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (p[i])
            return false;
    }
    return true;
}

TEST(arena_memory_is_aligned_zeroed_and_apart) {
    static const size_t sizes[] = {1, 3, 16, 17, 100, 4000, 5000, 0, 70000, 8};
    static uint8_t first[512 + 8];
    for (size_t skew = 0; skew < 8; skew += 3) {
        memset(first, 0xee, sizeof first);
        struct arena a;
        arena_init(&a, first + skew, 512, 1024 * 1024);
        uint8_t *taken[COUNT_OF(sizes)];
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            taken[i] = arena_take(&a, sizes[i]);
            CHECK(taken[i] != NULL);
            CHECK_EQ((uintptr_t)taken[i] % ALIGNMENT, 0);
            CHECK(is_zero(taken[i], sizes[i]));
            memset(taken[i], (int)i + 1, sizes[i]);
        }
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            for (size_t at = 0; at < sizes[i]; at++)
                CHECK_EQ(taken[i][at], i + 1);
        }
        arena_release(&a);
    }
}

TEST(an_arena_uses_the_first_memory_before_it_takes_any) {
    _Alignas(max_align_t) uint8_t first[64];
    struct arena a;
    arena_init(&a, first, sizeof first, 4096);
    mem_fail_at(1);
    CHECK(arena_take(&a, 32) == first);
    CHECK(arena_take(&a, 32) == first + 32);
    CHECK_EQ(a.taken_bytes, 0);
    CHECK(mem_fail_pending());
    CHECK(arena_take(&a, 1) == NULL); /* that allocation fails */
    CHECK(!mem_fail_pending());
    mem_fail_at(0);
    CHECK(arena_take(&a, 1) != NULL);
    arena_release(&a);
}

/* First memory that is too short to be aligned is no memory. */
TEST(an_arena_stands_a_first_memory_too_short_to_use) {
    _Alignas(max_align_t) uint8_t first[32];
    for (size_t skew = 0; skew < 16; skew++) {
        for (size_t len = 0; len < 17; len++) {
            struct arena a;
            arena_init(&a, first + skew, len < 32 - skew ? len : 32 - skew, 4096);
            uint8_t *p = arena_take(&a, 1);
            CHECK(p != NULL);
            CHECK_EQ((uintptr_t)p % ALIGNMENT, 0);
            memset(p, 1, ALIGNMENT);
            arena_release(&a);
        }
    }
}

TEST(an_arena_takes_exactly_its_limit) {
    static const size_t limits[] = {0, 16, 4096, 5000, 100000};
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        struct arena a;
        arena_init(&a, NULL, 0, limits[i]);
        size_t units = 0;
        while (arena_take(&a, ALIGNMENT))
            units++;
        CHECK(a.taken_bytes <= limits[i]);
        CHECK_EQ(units, limits[i] / ALIGNMENT);
        CHECK(arena_take(&a, 0) == NULL);
        arena_release(&a);

        arena_init(&a, NULL, 0, limits[i]);
        CHECK(arena_take(&a, limits[i] + 1) == NULL);
        CHECK_EQ(a.taken_bytes, 0);
        arena_release(&a);
    }
}

TEST(an_arena_refuses_sizes_that_overflow) {
    struct arena a;
    arena_init(&a, NULL, 0, SIZE_MAX);
    CHECK(arena_take(&a, SIZE_MAX) == NULL);
    CHECK(arena_take(&a, SIZE_MAX - ALIGNMENT + 1) == NULL);
    CHECK(arena_take_many(&a, SIZE_MAX / 8 + 1, 8) == NULL);
    CHECK(arena_take_many(&a, 3, SIZE_MAX / 2) == NULL);
    int64_t *many = arena_take_array(&a, int64_t, 1000);
    CHECK(many != NULL);
    many[999] = 1;
    CHECK(arena_take_array(&a, int64_t, 0) != NULL);
    arena_release(&a);
}

TEST(arena_text_is_terminated_and_never_null) {
    struct arena a;
    arena_init(&a, NULL, 0, 4096);
    struct str copy = arena_text(&a, (struct str){"abcd", 3});
    CHECK_EQ(copy.len, 3);
    CHECK_TEXT(copy.ptr, "abc");
    copy = arena_text(&a, STR_NULL);
    CHECK_EQ(copy.len, 0);
    CHECK_TEXT(copy.ptr, "");
    copy = arena_printf(&a, "%s-%d", "topic", 7);
    CHECK_EQ(copy.len, 7);
    CHECK_TEXT(copy.ptr, "topic-7");
    arena_release(&a);
    arena_init(&a, NULL, 0, 4096);
    copy = arena_printf(&a, "%5000d", 1);
    CHECK(copy.ptr == NULL && copy.len == -1);
    copy = arena_text(&a, (struct str){"abc", 3});
    CHECK_TEXT(copy.ptr, "abc");
    arena_release(&a);
}

TEST(an_arena_is_released_twice_without_harm) {
    struct arena a = {0};
    arena_release(&a);
    arena_init(&a, NULL, 0, 4096);
    CHECK(arena_take(&a, 1) != NULL);
    arena_release(&a);
    arena_release(&a);
    CHECK(arena_take(&a, 1) == NULL); /* its limit is gone */
}

TEST_OOM(an_arena_survives_any_failed_allocation) {
    struct arena a;
    arena_init(&a, NULL, 0, 1024 * 1024);
    for (size_t size = 1; size < 20000; size *= 3) {
        uint8_t *p = arena_take(&a, size);
        if (p)
            memset(p, 1, size);
        struct str text = arena_printf(&a, "%zu", size);
        CHECK(text.ptr ? text.len > 0 : text.len == -1);
        text = arena_text(&a, STR("text"));
        CHECK(text.ptr ? text.len == 4 : text.len == -1);
    }
    arena_release(&a);
}
