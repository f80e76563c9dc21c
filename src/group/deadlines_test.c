#include "group/deadlines.h"

#include "testing/test.h"

#include <stdlib.h>

TEST(deadlines_come_in_the_order_of_their_times) {
    struct deadlines ds = {0};
    struct deadline d[5] = {0};
    const int64_t due[5] = {50, 10, 40, 10, 20};
    for (int i = 0; i < 5; i++)
        deadline_set(&ds, &d[i], due[i]);
    CHECK_EQ(deadlines_next_ms(&ds), 10);
    CHECK(deadlines_pop(&ds, 9) == NULL);
    struct deadline *first = deadlines_pop(&ds, 30), *second = deadlines_pop(&ds, 30);
    CHECK((first == &d[1] && second == &d[3]) || (first == &d[3] && second == &d[1]));
    CHECK(deadlines_pop(&ds, 30) == &d[4]);
    CHECK(deadlines_pop(&ds, 30) == NULL);
    deadline_clear(&ds, &d[2]);
    deadline_clear(&ds, &d[2]);
    CHECK(deadlines_pop(&ds, 100) == &d[0]);
    CHECK(deadlines_pop(&ds, 100) == NULL && !d[0].set);
    CHECK_EQ(deadlines_next_ms(&ds), INT64_MAX);
}

TEST(a_deadline_that_moves_later_comes_later_and_one_that_moves_earlier_earlier) {
    struct deadlines ds = {0};
    struct deadline a = {0}, b = {0};
    deadline_set(&ds, &a, 10);
    deadline_set(&ds, &b, 20);
    deadline_set(&ds, &a, 30);
    CHECK(deadlines_pop(&ds, 25) == &b);
    CHECK(deadlines_pop(&ds, 25) == NULL);
    CHECK_EQ(deadlines_next_ms(&ds), 30);
    deadline_set(&ds, &a, 5);
    CHECK_EQ(deadlines_next_ms(&ds), 5);
    CHECK(deadlines_pop(&ds, 5) == &a);
}

#define MANY 500

TEST(many_random_deadlines_agree_with_a_plain_search) {
    static struct deadline d[MANY];
    struct deadlines ds = {0};
    int64_t now = 0;
    srandom(7);
    memset(d, 0, sizeof d);
    for (int step = 0; step < 20000; step++) {
        struct deadline *one = &d[random() % MANY];
        if (random() % 3 == 0)
            deadline_clear(&ds, one);
        else
            deadline_set(&ds, one, now + random() % 1000);
        if (random() % 4)
            continue;
        now += random() % 50;
        struct deadline *popped;
        while ((popped = deadlines_pop(&ds, now)))
            CHECK(popped->due_ms <= now);
        for (int i = 0; i < MANY; i++)
            CHECK(!d[i].set || (d[i].due_ms > now && deadlines_next_ms(&ds) <= d[i].due_ms));
    }
}
