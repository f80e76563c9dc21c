#include "kafka/configs.h"

#include "kafka/topic_name.h"
#include "testing/test.h"

#define ROOM 64 /* settings */

static struct kafka_settings some_settings(void) {
    return (struct kafka_settings){.frame_bytes_max = 8388608, .partitions_default = 3};
}

/* The outcome of setting one key; the text of a problem goes to `text`. */
static enum status set_one(const struct kafka_settings *settings, const char *key, struct str value,
                           char text[512]) {
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    struct backend_setting wanted = {str_of(key), value};
    struct backend_setting out[ROOM];
    struct str problem = STR_NULL;
    int32_t count;
    enum status st = topic_configs_check(settings, &arena, &wanted, 1, out, &count, &problem);
    snprintf(text, 512, "%.*s", problem.len > 0 ? problem.len : 0, problem.ptr ? problem.ptr : "");
    CHECK_EQ(count, st ? 0 : 1);
    arena_release(&arena);
    return st;
}

static void check_taken(const char *key, const char *value) {
    struct kafka_settings settings = some_settings();
    char text[512];
    if (set_one(&settings, key, str_of(value), text) != ST_OK)
        fail_msg("%s=%s: %s", key, value, text);
}

static void check_refused(const char *key, const char *value, const char *expected) {
    struct kafka_settings settings = some_settings();
    char text[512];
    CHECK_EQ(set_one(&settings, key, str_of(value), text), ST_INVALID);
    CHECK_TEXT(text, expected);
}

TEST(the_settings_stand_in_name_order_and_are_all_found) {
    struct arena arena;
    struct kafka k = {.settings = some_settings()};
    struct config_shown shown[ROOM];
    arena_init(&arena, NULL, 0, 1 << 20);
    CHECK_EQ(topic_configs_show(&k, &arena, NULL, 0, shown), ST_OK);
    CHECK_EQ(topic_configs_count(), 37); /* as many as Kafka 4.4 has */
    for (int32_t i = 0; i < topic_configs_count(); i++)
        CHECK_EQ(topic_config_find(shown[i].name), i);
    CHECK_EQ(topic_config_find(STR("nonsense")), -1);
    CHECK_EQ(topic_config_find(STR("")), -1);
    CHECK_EQ(topic_config_find(STR("retention.m")), -1);
    arena_release(&arena);
}

/* D6-3: a client that sends back what it was shown changes nothing. */
TEST(every_standard_value_is_accepted) {
    struct arena arena;
    struct kafka k = {.settings = some_settings()};
    struct config_shown shown[ROOM];
    struct backend_setting wanted[ROOM], out[ROOM];
    struct str problem = STR_NULL;
    int32_t count;
    arena_init(&arena, NULL, 0, 1 << 20);
    CHECK_EQ(topic_configs_show(&k, &arena, NULL, 0, shown), ST_OK);
    for (int32_t i = 0; i < topic_configs_count(); i++)
        wanted[i] = (struct backend_setting){shown[i].name, shown[i].value};
    CHECK_EQ(topic_configs_check(&k.settings, &arena, wanted, topic_configs_count(), out, &count, &problem),
             ST_OK);
    CHECK_EQ(count, topic_configs_count());
    arena_release(&arena);
}

/* D6-3 */
TEST(values_that_say_what_happens_anyway_are_accepted) {
    check_taken("cleanup.policy", "delete");
    check_taken("compression.type", "producer");
    check_taken("compression.type", "uncompressed");
    check_taken("min.insync.replicas", "1");
    check_taken("message.timestamp.type", "CreateTime");
    check_taken("segment.bytes", "1048576");
    check_taken("max.message.bytes", "2000000");
    check_taken("retention.bytes", "-1");
    check_taken("retention.ms", "-1");
    check_taken("retention.ms", "3600000");
    check_taken("remote.storage.enable", "FALSE");
    check_taken("unclean.leader.election.enable", "true");
    check_taken("segment.ms", "60000");
    check_taken("segment.index.bytes", "1048576");
    check_taken("segment.jitter.ms", "1000");
    check_taken("index.interval.bytes", "2048");
    check_taken("delete.retention.ms", "900");
    check_taken("file.delete.delay.ms", "1000");
    check_taken("flush.messages", "1");
    check_taken("flush.ms", "1000");
    check_taken("min.compaction.lag.ms", "1000");
    check_taken("max.compaction.lag.ms", "3600000");
    check_taken("preallocate", "true");
    check_taken("unclean.leader.election.enable", "false");
    check_taken("message.timestamp.after.max.ms", "3600000");
    check_taken("message.timestamp.before.max.ms", "9223372036854775807");
    check_taken("remote.log.copy.disable", "true");
    check_taken("remote.log.delete.on.disable", "false");
    check_taken("local.retention.ms", "-2");
    check_taken("local.retention.bytes", "1000000");
    check_taken("min.cleanable.dirty.ratio", "0.01");
    check_taken("leader.replication.throttled.replicas", "0:1,1:1");
    check_taken("leader.replication.throttled.replicas", "*");
}

TEST(a_list_has_a_length_that_ends_somewhere) {
    static char list[4097 * 4];
    for (size_t i = 0; i < sizeof list; i += 4)
        memcpy(list + i, "0:1,", 4);
    list[sizeof list - 5] = '\0'; /* of 16,383 bytes */
    check_taken("leader.replication.throttled.replicas", list);
    list[sizeof list - 5] = ',';
    list[sizeof list - 1] = '\0'; /* of 16,387 */
    check_refused(
        "leader.replication.throttled.replicas", list,
        "Invalid value for configuration leader.replication.throttled.replicas: The list must have no "
        "more than 16384 bytes");
}

TEST(values_that_promise_what_is_not_done_are_refused) {
    check_refused(
        "compression.type", "lz4", /* over the bridge */
        "Invalid value lz4 for configuration compression.type: this server only does producer|uncompressed");
    check_refused("message.timestamp.type", "LogAppendTime", /* over the bridge */
                  "Invalid value LogAppendTime for configuration message.timestamp.type: this server only "
                  "does CreateTime");
    check_refused("remote.storage.enable", "true",
                  "Invalid value true for configuration remote.storage.enable: this server only does false");
    check_refused(
        "message.timestamp.before.max.ms", "1000",
        "Invalid value 1000 for configuration message.timestamp.before.max.ms: this server only does "
        "9223372036854775807");
    check_refused("min.insync.replicas", "2",
                  "Invalid value 2 for configuration min.insync.replicas: this server only does 1");
}

/* K6-3 */
TEST(badly_formed_values_are_refused_in_kafkas_words) {
    check_refused("nonsense", "1", "Unknown topic config name: nonsense");
    check_refused("", "", "Unknown topic config name: ");
    check_refused("log.retention.ms", "5", "Unknown topic config name: log.retention.ms");
    check_refused("retention.ms", "abc",
                  "Invalid value abc for configuration retention.ms: Not a number of type LONG");
    check_refused("retention.ms", "",
                  "Invalid value  for configuration retention.ms: Not a number of type LONG");
    check_refused("retention.ms", "-2",
                  "Invalid value -2 for configuration retention.ms: Value must be at least -1");
    check_refused("retention.ms", "5x",
                  "Invalid value 5x for configuration retention.ms: Not a number of type LONG");
    check_refused(
        "retention.ms", "9223372036854775808",
        "Invalid value 9223372036854775808 for configuration retention.ms: Not a number of type LONG");
    check_refused("segment.bytes", "2147483648",
                  "Invalid value 2147483648 for configuration segment.bytes: Not a number of type INT");
    check_refused("segment.bytes", "1",
                  "Invalid value 1 for configuration segment.bytes: Value must be at least 1048576");
    check_refused("compression.zstd.level", "99",
                  "Invalid value 99 for configuration compression.zstd.level: Value must be no more than 22");
    check_refused("compression.gzip.level", "0",
                  "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 "
                  "or equal to -1");
    check_refused(
        "preallocate", "yes",
        "Invalid value yes for configuration preallocate: Expected value to be either true or false");
    check_refused(
        "min.cleanable.dirty.ratio", "1.5",
        "Invalid value 1.5 for configuration min.cleanable.dirty.ratio: Value must be no more than 1");
    check_refused("min.cleanable.dirty.ratio", "nan",
                  "Invalid value nan for configuration min.cleanable.dirty.ratio: Value must be at least 0");
    check_refused(
        "cleanup.policy", "delete,bogus",
        "Invalid value bogus for configuration cleanup.policy: String must be one of: compact, delete");
    check_refused("compression.type", "zip",
                  "Invalid value zip for configuration compression.type: String must be one of: "
                  "uncompressed, zstd, lz4, "
                  "snappy, gzip, producer");
}

TEST(a_null_value_is_refused) {
    struct kafka_settings settings = some_settings();
    char text[512];
    CHECK_EQ(set_one(&settings, "retention.ms", STR_NULL, text), ST_INVALID);
    CHECK_TEXT(text, "Null value not supported for topic configs: retention.ms");
}

/* D6-3 */
TEST(times_of_appends_are_accepted_where_the_backend_puts_them_on_records) {
    struct kafka_settings settings = some_settings();
    char text[512];
    settings.append_times = true;
    CHECK_EQ(set_one(&settings, "message.timestamp.type", STR("LogAppendTime"), text), ST_OK);
    CHECK_EQ(set_one(&settings, "message.timestamp.type", STR("NoTime"), text), ST_INVALID);
}

/* D6-3 */
TEST(every_compression_is_accepted_where_the_backend_compresses_anew) {
    struct kafka_settings settings = some_settings();
    char text[512];
    settings.recodes = true;
    static const char *const types[] = {"gzip", "snappy", "lz4", "zstd", "uncompressed", "producer"};
    for (size_t i = 0; i < COUNT_OF(types); i++)
        CHECK_EQ(set_one(&settings, "compression.type", str_of(types[i]), text), ST_OK);
    CHECK_EQ(set_one(&settings, "compression.type", STR("none"), text), ST_INVALID);
}

/* D6-3 */
TEST(compaction_is_accepted_only_where_the_operator_says_so) {
    struct kafka_settings settings = some_settings();
    char text[512];
    CHECK_EQ(set_one(&settings, "cleanup.policy", STR("compact"), text), ST_INVALID);
    CHECK_EQ(set_one(&settings, "cleanup.policy", STR("compact, delete"), text), ST_INVALID);
    settings.accept_compact = true;
    CHECK_EQ(set_one(&settings, "cleanup.policy", STR("compact"), text), ST_OK);
    CHECK_EQ(set_one(&settings, "cleanup.policy", STR("compact, delete"), text), ST_OK);
    CHECK_EQ(set_one(&settings, "cleanup.policy", STR("bogus"), text), ST_INVALID);

    CHECK(topic_configs_ask_compaction(
        &(struct backend_setting){STR("cleanup.policy"), STR("delete, compact")}, 1));
    CHECK(!topic_configs_ask_compaction(&(struct backend_setting){STR("cleanup.policy"), STR("delete")}, 1));
    CHECK(!topic_configs_ask_compaction(&(struct backend_setting){STR("retention.ms"), STR("compact")}, 1));
}

/* D6-5 */
TEST(more_in_sync_replicas_are_accepted_where_any_replication_is) {
    struct kafka_settings settings = some_settings();
    char text[512];
    settings.accept_any_replication = true;
    CHECK_EQ(set_one(&settings, "min.insync.replicas", STR("2"), text), ST_OK);
    CHECK_EQ(set_one(&settings, "min.insync.replicas", STR("0"), text), ST_INVALID);
}

/* K6-3 */
TEST(of_a_key_that_is_set_twice_the_last_counts) {
    struct kafka_settings settings = some_settings();
    struct arena arena;
    const struct backend_setting wanted[] = {
        {STR("segment.ms"), STR("7")}, {STR("retention.ms"), STR("abc")}, {STR("retention.ms"), STR(" 6 ")}};
    struct backend_setting out[ROOM];
    struct str problem;
    int32_t count;
    arena_init(&arena, NULL, 0, 1 << 20);
    CHECK_EQ(topic_configs_check(&settings, &arena, wanted, 3, out, &count, &problem), ST_OK);
    CHECK_EQ(count, 2);
    CHECK(str_equal(out[0].key, STR("retention.ms")));
    CHECK(str_equal(out[0].value, STR("6")));
    CHECK(str_equal(out[1].key, STR("segment.ms")));
    arena_release(&arena);
}

/* D9-4 */
TEST(what_was_set_for_a_topic_is_shown_with_its_source) {
    struct kafka k = {.settings = some_settings()};
    struct arena arena;
    const struct backend_setting own[] = {{STR("retention.ms"), STR("5")},
                                          {STR("from.a.newer.version"), STR("1")}};
    struct config_shown shown[ROOM];
    arena_init(&arena, NULL, 0, 1 << 20);
    k.settings.retention_ms = 1000;
    CHECK_EQ(topic_configs_show(&k, &arena, own, 2, shown), ST_OK);
    const struct config_shown *set = &shown[topic_config_find(STR("retention.ms"))];
    CHECK(str_equal(set->value, STR("5")));
    CHECK(str_equal(set->standard, STR("1000")));
    CHECK_EQ(set->source, CONFIG_OF_TOPIC);
    const struct config_shown *unset = &shown[topic_config_find(STR("cleanup.policy"))];
    CHECK(str_equal(unset->value, STR("delete")));
    CHECK_EQ(unset->source, CONFIG_STANDARD);
    CHECK(str_equal(shown[topic_config_find(STR("max.message.bytes"))].value, STR("8388608")));
    arena_release(&arena);
}

TEST(what_the_server_shows_of_itself_is_in_name_order_and_true) {
    static const struct backend_ops ops = {.name = "none", .controller = true};
    struct backend backend = {&ops};
    struct kafka k = {
        .settings = some_settings(), .node_id = 7, .advertised_host = STR("h"), .advertised_port = 99};
    struct arena arena;
    struct config_shown *shown;
    int32_t count;
    arena_init(&arena, NULL, 0, 1 << 20);
    k.settings.backend = &backend;
    k.settings.segment_bytes = 1 << 30;
    CHECK_EQ(server_configs_show(&k, &arena, &shown, &count), ST_OK);
    bool found = false;
    for (int32_t i = 0; i < count; i++) {
        if (i > 0)
            CHECK(str_compare(shown[i - 1].name, shown[i].name) < 0);
        if (str_equal(shown[i].name, STR("num.partitions"))) {
            CHECK(str_equal(shown[i].value, STR("3")));
            found = true;
        }
        if (str_equal(shown[i].name, STR("advertised.listeners")))
            CHECK(str_equal(shown[i].value, STR("PLAINTEXT://h:99")));
    }
    CHECK(found);
    arena_release(&arena);
}

TEST_OOM(settings_survive_running_out_of_memory) {
    struct kafka k = {.settings = some_settings()};
    struct backend backend = {&(const struct backend_ops){.name = "none"}};
    struct arena arena;
    struct config_shown shown[ROOM], *server;
    struct backend_setting out[ROOM], wanted = {STR("retention.ms"), STR("abc")};
    struct str problem;
    int32_t count;
    k.settings.backend = &backend;
    arena_init(&arena, NULL, 0, 1 << 20);
    enum status st = topic_configs_show(&k, &arena, NULL, 0, shown);
    CHECK(st == ST_OK || st == ST_NO_MEMORY);
    st = server_configs_show(&k, &arena, &server, &count);
    CHECK(st == ST_OK || st == ST_NO_MEMORY);
    st = topic_configs_check(&k.settings, &arena, &wanted, 1, out, &count, &problem);
    CHECK(st == ST_INVALID || st == ST_NO_MEMORY);
    arena_release(&arena);
}
