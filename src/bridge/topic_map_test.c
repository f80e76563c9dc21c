#include "bridge/topic_map.h"

#include <stdlib.h>

#include "base/mem.h"
#include "testing/test.h"

static struct topic_map map;

static void begin(void) {
    topic_map_release(&map);
    CHECK_EQ(topic_map_set(&map, STR_NULL, STR("default_stream"), STR("kafka")), ST_OK);
}

static void add(const char *name, const char *stream, const char *topic) {
    CHECK_EQ(topic_map_set(&map, str_of(name), STR("stream"), str_of(stream)), ST_OK);
    CHECK_EQ(topic_map_set(&map, str_of(name), STR("topic"), str_of(topic)), ST_OK);
}

static bool is_at(const char *name, const char *stream, const char *topic) {
    struct iggy_place place;
    topic_map_find(&map, str_of(name), &place);
    return str_equal(place.stream, str_of(stream)) && str_equal(place.topic, str_of(topic));
}

/* The Kafka name of a place; "" none, "!" shadowed. */
static struct str name_of(const char *stream, const char *topic) {
    const struct iggy_place place = {str_of(stream), str_of(topic)};
    struct str name = STR_NULL;
    bool shadowed;
    if (topic_map_name_of(&map, &place, &name, &shadowed))
        return name;
    return shadowed ? STR("!") : STR("");
}

/* */
TEST(a_topic_that_is_not_listed_stands_for_itself_in_the_default_stream) {
    begin();
    CHECK_EQ(topic_map_seal(&map), ST_OK);
    CHECK(is_at("orders", "kafka", "orders"));
    CHECK(str_equal(name_of("kafka", "orders"), STR("orders")));
    CHECK(str_equal(name_of("other", "orders"), STR("")));
    CHECK(str_equal(name_of("kafka", "not a kafka name"), STR("")));
}

TEST(listed_topics_are_found_both_ways) {
    begin();
    add("z", "kafka", "no kafka name");
    add("orders.eu", "sales", "orders");
    add("a", "sales", "all");
    CHECK_EQ(topic_map_seal(&map), ST_OK);
    CHECK(is_at("orders.eu", "sales", "orders"));
    CHECK(is_at("a", "sales", "all"));
    CHECK(is_at("z", "kafka", "no kafka name"));
    CHECK(is_at("b", "kafka", "b"));
    CHECK(str_equal(name_of("sales", "orders"), STR("orders.eu")));
    CHECK(str_equal(name_of("sales", "all"), STR("a")));
    CHECK(str_equal(name_of("kafka", "no kafka name"), STR("z")));
    CHECK(str_equal(name_of("sales", "other"), STR("")));
}

/* */
TEST(a_default_topic_whose_name_points_elsewhere_is_shadowed) {
    begin();
    add("a", "sales", "all");
    CHECK_EQ(topic_map_seal(&map), ST_OK);
    CHECK(str_equal(name_of("kafka", "a"), STR("!")));
    CHECK(str_equal(name_of("kafka", "b"), STR("b")));
}

TEST(two_names_of_one_iggy_topic_are_refused) {
    begin();
    add("a", "sales", "all");
    add("b", "sales", "all");
    CHECK_EQ(topic_map_seal(&map), ST_INVALID);
    CHECK(strstr(map.problem, "same Iggy topic") != NULL);
    begin();
    add("a", "kafka", "b"); /* b, which is not listed, is kafka/b too */
    CHECK_EQ(topic_map_seal(&map), ST_INVALID);
    CHECK(strstr(map.problem, "default stream") != NULL);
    begin();
    add("a", "kafka", "b");
    add("b", "kafka", "a");
    CHECK_EQ(topic_map_seal(&map), ST_OK);
    CHECK(is_at("a", "kafka", "b"));
    CHECK(str_equal(name_of("kafka", "b"), STR("a")));
}

/* */
TEST(a_map_without_a_default_stream_or_with_half_an_entry_is_refused) {
    topic_map_release(&map);
    CHECK_EQ(topic_map_seal(&map), ST_INVALID);
    CHECK(strstr(map.problem, "default_stream") != NULL);
    begin();
    CHECK_EQ(topic_map_set(&map, STR("a"), STR("stream"), STR("s")), ST_OK);
    CHECK_EQ(topic_map_seal(&map), ST_INVALID);
    CHECK(strstr(map.problem, "a: needs both") != NULL);
}

TEST(rows_that_mean_nothing_are_refused) {
    static char long_name[300];
    memset(long_name, 'n', sizeof long_name);
    begin();
    CHECK_EQ(topic_map_set(&map, STR_NULL, STR("default_stream"), STR("again")), ST_INVALID);
    CHECK_EQ(topic_map_set(&map, STR_NULL, STR("stream"), STR("s")), ST_INVALID);
    CHECK_EQ(topic_map_set(&map, STR("a"), STR("default_stream"), STR("s")), ST_INVALID);
    CHECK_EQ(topic_map_set(&map, STR("a"), STR("stream"), STR("")), ST_INVALID);
    CHECK_EQ(topic_map_set(&map, STR("a"), STR("stream"), STR(" s")), ST_INVALID);
    CHECK_EQ(topic_map_set(&map, STR("a"), STR("stream"), STR("\xff")), ST_INVALID);
    CHECK_EQ(topic_map_set(&map, STR("a"), STR("stream"), ((struct str){long_name, 256})), ST_INVALID);
    CHECK_EQ(topic_map_set(&map, STR("a"), STR("stream"), ((struct str){long_name, 255})), ST_OK);
    CHECK_EQ(topic_map_set(&map, STR("a"), STR("stream"), STR("s")), ST_INVALID);
    CHECK_EQ(topic_map_set(&map, STR("a b"), STR("stream"), STR("s")), ST_INVALID);
    CHECK_EQ(topic_map_set(&map, STR(".."), STR("stream"), STR("s")), ST_INVALID);
    CHECK_EQ(topic_map_set(&map, ((struct str){long_name, 250}), STR("stream"), STR("s")), ST_INVALID);
    CHECK_EQ(topic_map_set(&map, STR_NULL, ((struct str){long_name, 300}), STR("s")), ST_INVALID);
    topic_map_release(&map);
}

TEST_OOM(a_map_without_memory_is_released) {
    struct topic_map m = {0};
    enum status st = topic_map_set(&m, STR_NULL, STR("default_stream"), STR("kafka"));
    for (char c = 'a'; c <= 'l' && !st; c++) {
        struct str name = {&c, 1};
        st = topic_map_set(&m, name, STR("stream"), STR("s"));
        if (!st)
            st = topic_map_set(&m, name, STR("topic"), name);
    }
    if (!st)
        st = topic_map_seal(&m);
    CHECK(!st || st == ST_NO_MEMORY);
    topic_map_release(&m);
}

/* */
TEST(the_streams_of_a_map_come_once_each_and_the_default_one_first) {
    begin();
    add("b", "sales", "b");
    add("c", "archive", "c");
    add("a", "sales", "a");
    add("d", "kafka", "not a kafka name");
    CHECK_EQ(topic_map_seal(&map), ST_OK);
    const char *expected[] = {"kafka", "archive", "sales"};
    struct str stream;
    size_t at = 0;
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        CHECK(topic_map_next_stream(&map, &at, &stream));
        CHECK(str_equal(stream, str_of(expected[i])));
    }
    CHECK(!topic_map_next_stream(&map, &at, &stream));
    topic_map_release(&map);
}
