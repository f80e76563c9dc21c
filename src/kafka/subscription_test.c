#include "kafka/subscription.h"

#include "testing/test.h"

/* Version 1, "ab" and "c", then user data. */
static const uint8_t two[] = {0, 1, 0, 0, 0, 2, 0, 2, 'a', 'b', 0, 1, 'c', 0xff, 0xff, 0xff, 0xff};
#define NAMES_END 13

static int32_t count_of(const uint8_t *bytes, int32_t len, bool *is_whole_out) {
    struct subscription s = subscription_of((struct bytes){bytes, len});
    struct str topic;
    int32_t count = 0;
    while (subscription_next(&s, &topic))
        count++;
    *is_whole_out = s.is_whole;
    return count;
}

TEST(topics_come_in_their_order) {
    struct subscription s = subscription_of((struct bytes){two, sizeof two});
    struct str topic;
    CHECK(subscription_next(&s, &topic));
    CHECK(str_equal(topic, STR("ab")));
    CHECK(subscription_next(&s, &topic));
    CHECK(str_equal(topic, STR("c")));
    CHECK(!subscription_next(&s, &topic));
    CHECK(s.is_whole);
}

TEST(what_is_cut_short_is_not_whole) {
    for (int32_t len = 0; len <= (int32_t)sizeof two; len++) {
        bool is_whole;
        int32_t count = count_of(two, len, &is_whole);
        CHECK_EQ(count, len >= NAMES_END ? 2 : len >= 10 ? 1 : 0);
        CHECK_EQ(is_whole, len >= NAMES_END);
    }
}

TEST(counts_and_lengths_that_lie_are_not_believed) {
    static const uint8_t huge[] = {0, 1, 0x7f, 0xff, 0xff, 0xff, 0, 1, 'a'};
    static const uint8_t negative[] = {0, 1, 0xff, 0xff, 0xff, 0xff};
    static const uint8_t null_name[] = {0, 1, 0, 0, 0, 1, 0xff, 0xff};
    static const uint8_t none[] = {0, 1, 0, 0, 0, 0};
    bool is_whole;
    CHECK_EQ(count_of(huge, sizeof huge, &is_whole), 1);
    CHECK(!is_whole);
    CHECK_EQ(count_of(negative, sizeof negative, &is_whole), 0);
    CHECK(!is_whole);
    CHECK_EQ(count_of(null_name, sizeof null_name, &is_whole), 0);
    CHECK(!is_whole);
    CHECK_EQ(count_of(none, sizeof none, &is_whole), 0);
    CHECK(is_whole);
}
