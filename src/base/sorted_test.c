#include "base/sorted.h"

#include "base/mem.h"
#include "testing/test.h"

static int by_number(const void *key, const void *row) {
    int a = *(const int *)key, b = *(const int *)row;
    return (a > b) - (a < b);
}

static void add(struct sorted *s, int *row) {
    CHECK_EQ(sorted_reserve(s, 1), ST_OK);
    sorted_put(s, sorted_place(s, by_number, row), row);
}

TEST(rows_put_in_any_order_are_found_and_stand_in_order) {
    enum { ROWS = 101 };
    int rows[ROWS];
    struct sorted s = {0};
    for (int i = 0; i < ROWS; i++) {
        rows[i] = i * 37 % ROWS * 2; /* each even number once */
        add(&s, &rows[i]);
    }
    CHECK_EQ(s.count, ROWS);
    for (int i = 0; i < ROWS; i++) {
        int even = i * 2, odd = even + 1;
        CHECK_EQ(*(int *)s.rows[i], even);
        CHECK(sorted_find(&s, by_number, &even) == s.rows[i]);
        CHECK(sorted_find(&s, by_number, &odd) == NULL);
    }
    sorted_release(&s);
}

TEST(what_was_taken_out_is_not_found_and_its_neighbours_are) {
    int rows[] = {10, 20, 30};
    struct sorted s = {0};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        add(&s, &rows[i]);
    sorted_take(&s, sorted_place(&s, by_number, &rows[1]), 1);
    CHECK(sorted_find(&s, by_number, &rows[0]) == &rows[0]);
    CHECK(sorted_find(&s, by_number, &rows[1]) == NULL);
    CHECK(sorted_find(&s, by_number, &rows[2]) == &rows[2]);
    CHECK_EQ(sorted_place(&s, by_number, &(int){40}), 2);
    sorted_release(&s);
}

TEST(several_neighbours_are_taken_out_at_once_and_none_as_well) {
    int rows[] = {10, 20, 30, 40};
    struct sorted s = {0};
    sorted_take(&s, 0, 0);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        add(&s, &rows[i]);
    sorted_take(&s, 1, 2);
    CHECK_EQ(s.count, 2);
    CHECK(s.rows[0] == &rows[0] && s.rows[1] == &rows[3]);
    sorted_take(&s, 0, 2);
    CHECK_EQ(s.count, 0);
    sorted_release(&s);
}

TEST(an_empty_index_has_nothing_and_release_may_come_twice) {
    struct sorted s = {0};
    CHECK(sorted_find(&s, by_number, &(int){1}) == NULL);
    sorted_release(&s);
    sorted_release(&s);
}

TEST_OOM(an_index_without_memory_for_more_stays_as_it_is) {
    int rows[20];
    struct sorted s = {0};
    enum status st = ST_OK;
    size_t put = 0;
    for (; put < COUNT_OF(rows) && st == ST_OK; put++) {
        rows[put] = (int)put;
        st = sorted_reserve(&s, 1);
        if (st == ST_OK)
            sorted_put(&s, put, &rows[put]);
    }
    CHECK(st == ST_OK || st == ST_NO_MEMORY);
    CHECK_EQ(s.count, st ? put - 1 : put);
    for (size_t i = 0; i < s.count; i++)
        CHECK(sorted_find(&s, by_number, &rows[i]) == &rows[i]);
    sorted_release(&s);
}
