#include "base/mem.h"

#include "testing/test.h"

TEST(memory_of_no_bytes_is_memory) {
    void *a = mem_take(0), *b = mem_take_zeroed(0, 0), *c = mem_take_zeroed(0, 8);
    CHECK(a != NULL && b != NULL && c != NULL);
    a = mem_grow(a, 0);
    CHECK(a != NULL);
    mem_free(a);
    mem_free(b);
    mem_free(c);
    mem_free(NULL);
}

TEST(memory_grows_with_what_is_in_it) {
    char *p = mem_grow(NULL, 4);
    CHECK(p != NULL);
    memcpy(p, "abc", 4);
    char *larger = mem_grow(p, 100000);
    CHECK(larger != NULL);
    CHECK_TEXT(larger, "abc");
    mem_free(larger);
}

TEST(mem_text_terminates_a_copy) {
    char *text = mem_text((struct str){"abcd", 3});
    CHECK(text != NULL);
    CHECK_TEXT(text, "abc");
    mem_free(text);
    text = mem_text(STR_NULL);
    CHECK(text != NULL);
    CHECK_TEXT(text, "");
    mem_free(text);
}

TEST(the_nth_allocation_fails_once_and_leaves_the_old_block) {
    for (int64_t nth = 1; nth <= 4; nth++) {
        mem_fail_at(nth);
        char *p[4] = {mem_take(1), mem_take_zeroed(1, 1), mem_text(STR("abc")), NULL};
        CHECK(mem_fail_pending() == (nth == 4));
        p[3] = mem_grow(p[0], 100);
        CHECK(!mem_fail_pending());
        for (int i = 0; i < 4; i++)
            CHECK((p[i] == NULL) == (i == nth - 1));
        if (p[3])
            p[0] = NULL; /* it moved */
        char *after = mem_take(1);
        CHECK(after != NULL);
        mem_free(after);
        for (int i = 0; i < 4; i++)
            mem_free(p[i]);
    }
}

/* test_oom is what every TEST_OOM rests on. */
static int runs, failed_runs;

static void take_three(void) {
    runs++;
    for (int i = 0; i < 3; i++) {
        void *p = mem_take(1);
        failed_runs += p == NULL;
        mem_free(p);
    }
}

TEST(test_oom_lets_each_allocation_fail_in_turn) {
    runs = failed_runs = 0;
    test_oom(take_three);
    CHECK_EQ(runs, 4);
    CHECK_EQ(failed_runs, 3);
}
