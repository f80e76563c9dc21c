#include "kafka/call_test.h"
#include "kafka/configs.h"

#define TOPIC  2
#define BROKER 4
#define LOGGER 8

static struct call c;

/* The answer to an IncrementalAlterConfigs of one resource; good as long as the call is open. */
static const struct incremental_alter_configs_res_resource *
alter_one(int8_t type, const char *name, struct incremental_alter_configs_req_config *configs,
          int32_t count) {
    struct incremental_alter_configs_req_resource resource = {
        .resource_type = type, .resource_name = str_of(name), .configs = configs, .configs_count = count};
    struct incremental_alter_configs_req in = {.resources = &resource, .resources_count = 1};
    const struct incremental_alter_configs_res *out = call_run(&c, INCREMENTAL_ALTER_CONFIGS, 1, &in);
    CHECK_EQ(out->responses_count, 1);
    CHECK_EQ(out->responses[0].resource_type, type);
    CHECK(str_equal(out->responses[0].resource_name, str_of(name)));
    return &out->responses[0];
}

static struct incremental_alter_configs_req_config config_of(const char *key, int8_t verb,
                                                             const char *value) {
    return (struct incremental_alter_configs_req_config){str_of(key), verb, value ? str_of(value) : STR_NULL};
}

/* One key of one resource: the code, and the text with it. */
static void check_one(int8_t type, const char *name,
                      const struct incremental_alter_configs_req_config *config, int16_t code,
                      const char *message) {
    struct incremental_alter_configs_req_config one = *config;
    call_open(&c, &call_managing);
    const struct incremental_alter_configs_res_resource *out = alter_one(type, name, &one, 1);
    CHECK_EQ(out->error_code, code);
    CHECK(message ? str_equal(out->error_message, str_of(message)) : out->error_message.len < 0);
    CHECK_EQ(call_fake.configured, code ? 0 : type == TOPIC);
    call_close(&c);
}
#define CHECK_ONE(type, name, key, verb, value, code, message)                                           \
    check_one((type), (name), &(struct incremental_alter_configs_req_config){STR(key), (verb), (value)}, \
              (code), (message))

static void check_change(const char *key, const char *value) {
    for (int32_t i = 0; i < call_fake.changes_count; i++)
        if (str_equal(call_fake.changes[i].key, str_of(key))) {
            struct str found = call_fake.changes[i].value;
            CHECK(value ? str_equal(found, str_of(value)) : found.len < 0);
            return;
        }
    fail_msg("no change of %s", key);
}

TEST(single_settings_are_set_and_taken_back_and_others_stay) { /* D9-10 */
    struct incremental_alter_configs_req_config configs[] = {config_of("segment.ms", CONFIG_SET, " 7 "),
                                                             config_of("retention.ms", CONFIG_DELETE, NULL),
                                                             config_of("nonsense", CONFIG_DELETE, NULL)};
    call_open(&c, &call_managing);
    const struct incremental_alter_configs_res_resource *out = alter_one(TOPIC, "here", configs, 3);
    CHECK_EQ(out->error_code, 0);
    CHECK_EQ(out->error_message.len, -1);
    CHECK_EQ(call_fake.changes_count, 2);
    check_change("segment.ms", "7");
    check_change("retention.ms", NULL);
    CHECK(!call_fake.changes[0].bound);
    call_close(&c);
}

TEST(bad_settings_are_refused_in_kafkas_words_and_nothing_changes) { /* D9-10 */
    CHECK_ONE(TOPIC, "here", "nonsense", CONFIG_SET, STR("1"), 40, "Unknown topic config name: nonsense");
    CHECK_ONE(TOPIC, "here", "retention.ms", CONFIG_SET, STR("abc"), 40,
              "Invalid value abc for configuration retention.ms: Not a number of type LONG");
    CHECK_ONE(TOPIC, "here", "retention.ms", CONFIG_APPEND, STR("1"), 40,
              "Can't APPEND to key retention.ms because its type is not LIST.");
    CHECK_ONE(TOPIC, "here", "nonsense", CONFIG_SUBTRACT, STR("1"), 40,
              "Can't SUBTRACT to key nonsense because its type is not LIST.");
    CHECK_ONE(TOPIC, "here", "retention.ms", CONFIG_SET, STR_NULL, 42,
              "Null value not supported for : retention.ms");
    CHECK_ONE(TOPIC, "here", "retention.ms", 7, STR("1"), 42, "Unknown config operation 7");
    CHECK_ONE(TOPIC, "none", "retention.ms", CONFIG_SET, STR("1"), 3, "The topic 'none' does not exist.");
    CHECK_ONE(TOPIC, "", "retention.ms", CONFIG_SET, STR("1"), 42,
              "Default topic resources are not allowed.");
    CHECK_ONE(TOPIC, "a b", "retention.ms", CONFIG_SET, STR("1"), 17,
              "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, "
              "'.', '_' and '-'");
    CHECK_ONE(TOPIC, "here", "cleanup.policy", CONFIG_SET, STR("delete"), 0, NULL); /* D9-5: unchanged */
}

TEST(what_is_named_twice_is_42) { /* D9-2 */
    struct incremental_alter_configs_req_config twice[] = {config_of("retention.ms", CONFIG_SET, "1"),
                                                           config_of("retention.ms", CONFIG_SET, "2")};
    struct incremental_alter_configs_req_config once = config_of("retention.ms", CONFIG_SET, "3");
    struct incremental_alter_configs_req_resource resources[] = {
        {TOPIC, STR("dot.ted"), twice, 2}, {TOPIC, STR("x"), &once, 1},    {TOPIC, STR("here"), &once, 1},
        {TOPIC, STR("x"), &once, 1},       {BROKER, STR("here"), NULL, 0}, {99, STR("y"), &once, 1}};
    struct incremental_alter_configs_req in = {.resources = resources, .resources_count = 6};
    call_open(&c, &call_managing);
    const struct incremental_alter_configs_res *out = call_run(&c, INCREMENTAL_ALTER_CONFIGS, 0, &in);
    CHECK_EQ(out->responses_count, 6);
    CHECK_EQ(out->responses[0].error_code, 42);
    CHECK(str_equal(out->responses[0].error_message, STR("Error due to duplicate config keys")));
    CHECK_EQ(out->responses[1].error_code, 42);
    CHECK(str_equal(out->responses[1].error_message, STR("Each resource must appear at most once.")));
    CHECK_EQ(out->responses[2].error_code, 0); /* the others go on */
    CHECK_EQ(out->responses[3].error_code, 42);
    CHECK_EQ(out->responses[4].error_code, 42); /* no number of a node */
    CHECK_EQ(out->responses[5].error_code, 42);
    CHECK(str_equal(out->responses[5].error_message, STR("Unknown resource type 99")));
    CHECK_EQ(call_fake.configured, 1);
    check_change("retention.ms", "3");
    call_close(&c);
}

TEST(this_server_has_only_settings_that_can_not_be_changed) { /* D9-1, D9-5 */
    CHECK_ONE(BROKER, "5", "log.dirs", CONFIG_SET, STR("/x"), 42,
              "Cannot update these configs dynamically: [log.dirs]");
    CHECK_ONE(BROKER, "", "log.cleaner.threads", CONFIG_SET, STR("1"), 42,
              "Cannot update these configs dynamically: [log.cleaner.threads]");
    CHECK_ONE(BROKER, "5", "leader.replication.throttled.rate", CONFIG_DELETE, STR_NULL, 0, NULL);
    CHECK_ONE(BROKER, "977", "log.dirs", CONFIG_SET, STR("/x"), 42,
              "Unexpected broker id, expected 5, but received 977");
    CHECK_ONE(BROKER, "abc", "log.dirs", CONFIG_SET, STR("/x"), 42,
              "Node id must be an integer, but it is: abc");
    CHECK_ONE(LOGGER, "5", "kafka.server", CONFIG_SET, STR("INFO"), 40,
              "Logger kafka.server does not exist!");
    CHECK_ONE(LOGGER, "", "kafka.server", CONFIG_SET, STR("INFO"), 42,
              "Node id must be an integer, but it is: ");
}

TEST(a_list_takes_more_and_less_of_what_it_was) { /* D9-10 */
    struct incremental_alter_configs_req_config more =
        config_of("leader.replication.throttled.replicas", CONFIG_APPEND, "7:1, 1:1,,0:1,7:1");
    call_open(&c, &call_managing);
    CHECK_EQ(alter_one(TOPIC, "here", &more, 1)->error_code, 0);
    CHECK_EQ(call_fake.changes_count, 1);
    check_change("leader.replication.throttled.replicas", "7:1,1:1,0:1");
    CHECK(call_fake.changes[0].bound);
    CHECK_EQ(call_fake.changes[0].before.len, -1); /* it was not set */
    call_close(&c);
}

TEST(a_list_does_not_grow_without_end) {
    static char list[4097 * 4];
    for (size_t i = 0; i < sizeof list; i += 4)
        memcpy(list + i, "0:1,", 4);
    list[sizeof list - 1] = '\0';
    struct incremental_alter_configs_req_config more =
        config_of("leader.replication.throttled.replicas", CONFIG_APPEND, list);
    call_open(&c, &call_managing);
    CHECK_EQ(alter_one(TOPIC, "here", &more, 1)->error_code, 40); /* though each part would be in it once */
    call_close(&c);
}

TEST(compaction_is_added_to_a_list_only_where_it_is_taken) { /* D6-3 */
    struct incremental_alter_configs_req_config more = config_of("cleanup.policy", CONFIG_APPEND, "compact");
    struct incremental_alter_configs_req_config last = config_of("cleanup.policy", CONFIG_SUBTRACT, "delete");
    struct incremental_alter_configs_req_config absent =
        config_of("cleanup.policy", CONFIG_SUBTRACT, "compact");
    call_open(&c, &call_managing);
    CHECK_EQ(alter_one(TOPIC, "here", &more, 1)->error_code, 40);
    CHECK_EQ(alter_one(TOPIC, "here", &last, 1)->error_code, 40);
    CHECK_EQ(alter_one(TOPIC, "here", &absent, 1)->error_code, 0);
    check_change("cleanup.policy", "delete");
    c.kafka.settings.accept_compact = true;
    CHECK_EQ(alter_one(TOPIC, "here", &more, 1)->error_code, 0);
    check_change("cleanup.policy", "delete,compact");
    CHECK_EQ(alter_one(TOPIC, "here", &last, 1)->error_code, 0);
    check_change("cleanup.policy", "");
    call_close(&c);
}

TEST(a_list_that_somebody_changed_meanwhile_is_looked_at_again) {
    struct incremental_alter_configs_req_config absent =
        config_of("cleanup.policy", CONFIG_SUBTRACT, "compact");
    call_open(&c, &call_managing);
    call_fake.configure_status = ST_AGAIN;
    CHECK_EQ(alter_one(TOPIC, "here", &absent, 1)->error_code, 0);
    CHECK_EQ(call_fake.calls, 4); /* two look-ups, two attempts */
    CHECK_EQ(call_fake.configured, 1);
    call_close(&c);
}

TEST(what_the_backend_says_is_answered) {
    struct incremental_alter_configs_req_config set = config_of("retention.bytes", CONFIG_SET, "5");
    call_open(&c, &call_managing);
    call_fake.configure_status = ST_INVALID;
    call_fake.configure_reason = "too small";
    const struct incremental_alter_configs_res_resource *out = alter_one(TOPIC, "here", &set, 1);
    CHECK_EQ(out->error_code, 40);
    CHECK(str_equal(out->error_message, STR("too small")));
    call_fake.configure_status = ST_TIMED_OUT;
    CHECK_EQ(alter_one(TOPIC, "here", &set, 1)->error_code, 7);
    call_close(&c);
    call_open(&c, &call_stub);
    CHECK_EQ(alter_one(TOPIC, "a b", &set, 1)->error_code, KERR_NOT_CONTROLLER);
    CHECK_EQ(alter_one(BROKER, "5", NULL, 0)->error_code, 0);
    call_close(&c);
}

TEST(more_than_a_hundred_topics_are_44) {
    static char names[101][16];
    static struct incremental_alter_configs_req_resource resources[102];
    resources[101] = (struct incremental_alter_configs_req_resource){BROKER, STR("5"), NULL, 0};
    for (int i = 0; i < 101; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        resources[i] = (struct incremental_alter_configs_req_resource){TOPIC, str_of(names[i]), NULL, 0};
    }
    struct incremental_alter_configs_req in = {.resources = resources, .resources_count = 102};
    call_open(&c, &call_managing);
    const struct incremental_alter_configs_res *out = call_run(&c, INCREMENTAL_ALTER_CONFIGS, 1, &in);
    CHECK_EQ(out->responses[0].error_code, KERR_POLICY_VIOLATION);
    CHECK_EQ(out->responses[100].error_code, KERR_POLICY_VIOLATION);
    CHECK_EQ(out->responses[101].error_code, 0);
    in.resources = resources + 1;
    in.resources_count = 101;
    out = call_run(&c, INCREMENTAL_ALTER_CONFIGS, 1, &in);
    CHECK_EQ(out->responses[0].error_code, 3);
    call_close(&c);
}

/* ---- AlterConfigs ---- */

static int16_t replace(int16_t version, int8_t type, struct alter_configs_req_config *configs, int32_t count,
                       bool validate_only) {
    struct alter_configs_req_resource resource = {type, STR("here"), configs, count};
    struct alter_configs_req in = {
        .resources = &resource, .resources_count = 1, .validate_only = validate_only};
    const struct alter_configs_res *out = call_run(&c, ALTER_CONFIGS, version, &in);
    CHECK_EQ(out->responses_count, 1);
    CHECK(str_equal(out->responses[0].resource_name, STR("here")));
    return out->responses[0].error_code;
}

TEST(the_whole_of_a_topics_settings_is_replaced) { /* D9-7 */
    struct alter_configs_req_config configs[] = {{STR("segment.ms"), STR("7")},
                                                 {STR("cleanup.policy"), STR("delete")}};
    for (int16_t version = 0; version <= 2; version += 2) {
        call_open(&c, &call_managing);
        CHECK_EQ(replace(version, TOPIC, configs, 2, false), 0);
        CHECK_EQ(call_fake.changes_count, topic_configs_count()); /* whatever others have set meanwhile */
        check_change("segment.ms", "7");
        check_change("cleanup.policy", "delete");
        check_change("retention.ms", NULL);
        CHECK_EQ(replace(version, TOPIC, NULL, 0, false), 0);
        check_change("segment.ms", NULL);
        call_close(&c);
    }
}

TEST(a_replacement_with_something_bad_in_it_changes_nothing) { /* D9-7 */
    struct alter_configs_req_config bad[] = {{STR("segment.ms"), STR("7")}, {STR("nonsense"), STR("7")}};
    struct alter_configs_req_config twice[] = {{STR("segment.ms"), STR("7")}, {STR("segment.ms"), STR("8")}};
    struct alter_configs_req_config null[] = {{STR("segment.ms"), STR_NULL}};
    call_open(&c, &call_managing);
    CHECK_EQ(replace(2, TOPIC, bad, 2, false), 40);
    CHECK_EQ(replace(2, TOPIC, twice, 2, false), 42);
    CHECK_EQ(replace(2, TOPIC, null, 1, false), 42);
    CHECK_EQ(replace(2, LOGGER, bad, 1, false), 42); /* only IncrementalAlterConfigs knows loggers */
    CHECK_EQ(replace(2, TOPIC, bad, 1, true), 0);    /* validated only */
    CHECK_EQ(call_fake.configured, 0);
    call_close(&c);
}
