#include "app/topic_map_file.h"

#include "testing/test.h"

static struct topic_map map;
static char reason[TOPIC_MAP_REASON_BYTES];
static char path[512];

static enum status load(const char *text) {
    snprintf(path, sizeof path, "%s/map.toml", test_dir());
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fputs(text, file);
    CHECK_EQ(fclose(file), 0);
    topic_map_release(&map);
    return topic_map_load(path, "unused", &map, reason);
}

static bool is_at(const char *name, const char *stream, const char *topic) {
    struct iggy_place place;
    topic_map_find(&map, str_of(name), &place);
    return str_equal(place.stream, str_of(stream)) && str_equal(place.topic, str_of(topic));
}

/* The reason is the file's path, and this behind it. */
static bool reason_ends(const char *text) {
    size_t len = strlen(path);
    return strncmp(reason, path, len) == 0 && strcmp(reason + len, text) == 0;
}

/* */
TEST(the_rows_of_a_file_become_a_map) {
    CHECK_EQ(load("default_stream = 'main'\n"
                  "[topics.\"orders.eu\"]\nstream = 'sales'\ntopic = 'orders'\n"
                  "[topics.clicks]\ntopic = 'raw clicks'\nstream = 'web'\n"),
             ST_OK);
    CHECK(is_at("orders.eu", "sales", "orders"));
    CHECK(is_at("clicks", "web", "raw clicks"));
    CHECK(is_at("other", "main", "other"));
    topic_map_release(&map);
}

/* */
TEST(without_a_file_all_topics_are_in_the_default_stream) {
    topic_map_release(&map);
    CHECK_EQ(topic_map_load(NULL, "kafka", &map, reason), ST_OK);
    CHECK(is_at("any.name", "kafka", "any.name"));
    topic_map_release(&map);
    CHECK_EQ(topic_map_load(NULL, " kafka", &map, reason), ST_INVALID);
    CHECK_TEXT(
        reason,
        "IGGY_KAFKA_IGGY_STREAM: default_stream: must be a name of 1 to 255 bytes, without blanks around it");
    topic_map_release(&map);
}

TEST(what_is_no_map_says_where_and_why) {
    CHECK_EQ(load("[topics.a]\nstream = 's'\ntopic = 't'\n"), ST_INVALID); /* */
    CHECK(reason_ends(": the topic map has no default_stream"));
    CHECK_EQ(load("default_stream = 7\n"), ST_INVALID);
    CHECK(reason_ends(", line 1: default_stream must be a text"));
    CHECK_EQ(load("default_stream = 'm'\n[topics.orders.eu]\nstream = 's'\n"), ST_INVALID);
    CHECK(reason_ends(", line 2: orders.eu must be a text; a topic name with dots must be in quotes"));
    CHECK_EQ(load("default_stream = 'm'\ntopics = 'x'\n"), ST_INVALID);
    CHECK(reason_ends(", line 2: topics: is not known; the topic map has default_stream and [topics.NAME]"));
    CHECK_EQ(load("default_stream = 'm'\n[topics]\na = 'x'\n"), ST_INVALID);
    CHECK(reason_ends(", line 3: a must be a text"));
    CHECK_EQ(load("default_stream = 'm'\n[topics.a]\nstraem = 's'\n"), ST_INVALID);
    CHECK(reason_ends(", line 3: straem: is not known; a topic of the topic map has stream and topic"));
    CHECK_EQ(load("default_stream = 'm'\n[other]\n"), ST_INVALID);
    CHECK(reason_ends(", line 2: other must be a text"));
    CHECK_EQ(load("default_stream = 'm\n"), ST_INVALID);
    CHECK(strstr(reason, ", line 1: ") != NULL);
    topic_map_release(&map);
    CHECK_EQ(topic_map_load("/no/such/map.toml", "kafka", &map, reason), ST_INVALID);
    CHECK(strncmp(reason, "/no/such/map.toml: ", 19) == 0);
    topic_map_release(&map);
}
