/* Settings of consumer groups: D9-14 to D9-19. The texts are those of Kafka 4.4.0. */
#include "kafka/group_configs.h"

#include "kafka/call_test.h"

#define SESSION   "consumer.session.timeout.ms"
#define HEARTBEAT "consumer.heartbeat.interval.ms"
#define GROUP     32
#define TOPIC     2

static struct call c;

static const struct incremental_alter_configs_res *alter(const char *group,
                                                         struct incremental_alter_configs_req_config *wishes,
                                                         int32_t count, bool validate_only) {
    struct incremental_alter_configs_req_resource resource = {GROUP, str_of(group), wishes, count};
    return call_run(&c, INCREMENTAL_ALTER_CONFIGS, 1,
                    &(struct incremental_alter_configs_req){&resource, 1, validate_only});
}

/* One key of group "g", whose outcome is this. */
static void check_alter(const struct incremental_alter_configs_req_config *one, int16_t code,
                        const char *message) {
    struct incremental_alter_configs_req_config copy = *one;
    const struct incremental_alter_configs_res *out = alter("g", &copy, 1, false);
    CHECK_EQ(out->responses_count, 1);
    CHECK_EQ(out->responses[0].resource_type, GROUP);
    CHECK_EQ(out->responses[0].error_code, code);
    CHECK(message ? str_equal(out->responses[0].error_message, str_of(message))
                  : out->responses[0].error_message.len < 0);
}
#define CHECK_ALTER(key, verb, value, code, message) \
    check_alter(&(struct incremental_alter_configs_req_config){STR(key), (verb), (value)}, (code), (message))

static void check_group(int32_t session_ms, int32_t heartbeat_ms) {
    CHECK_EQ(call_fake.group.session_ms, session_ms);
    CHECK_EQ(call_fake.group.heartbeat_ms, heartbeat_ms);
}

static const struct describe_configs_res_resource *describe(const char *group) {
    struct describe_configs_req_resource resource = {GROUP, str_of(group), {NULL, -1}};
    const struct describe_configs_res *out =
        call_run(&c, DESCRIBE_CONFIGS, 4,
                 &(struct describe_configs_req){.resources = &resource,
                                                .resources_count = 1,
                                                .include_synonyms = true,
                                                .include_documentation = true});
    CHECK_EQ(out->results_count, 1);
    return &out->results[0];
}

static void check_synonyms(const struct describe_configs_res_config *config, const char *expected) {
    char text[400] = "";
    size_t at = 0;
    for (int32_t i = 0; i < config->synonyms_count; i++) {
        const struct describe_configs_res_synonym *s = &config->synonyms[i];
        at += (size_t)snprintf(text + at, sizeof text - at, "%.*s=%.*s(%d);", s->name.len, s->name.ptr,
                               s->value.len, s->value.ptr, s->source);
    }
    CHECK_TEXT(text, expected);
}

TEST(a_group_that_nobody_knows_has_the_servers_settings) {
    call_open(&c, &call_managing);
    const struct describe_configs_res_resource *out = describe("nobody");
    CHECK_EQ(out->error_code, 0);
    CHECK_EQ(out->configs_count, 2);
    CHECK(str_equal(out->configs[0].name, STR(HEARTBEAT)));
    CHECK(str_equal(out->configs[0].value, STR("5000")));
    CHECK_EQ(out->configs[0].config_source, CONFIG_STANDARD);
    CHECK_EQ(out->configs[0].config_type, CONFIG_INT);
    CHECK(!out->configs[0].read_only);
    CHECK(out->configs[0].documentation.len > 0);
    check_synonyms(&out->configs[0], "group." HEARTBEAT "=5000(5);");
    CHECK(str_equal(out->configs[1].name, STR(SESSION)));
    check_synonyms(&out->configs[1], "group." SESSION "=45000(5);");
    call_close(&c);
}

TEST(what_is_set_for_a_group_is_shown_before_what_the_server_was_started_with) {
    call_open(&c, &call_managing);
    c.kafka.group_times = (struct group_times){10000, 5000};
    call_fake.group = (struct backend_group_settings){50000, 0};
    const struct describe_configs_res_resource *out = describe("g");
    CHECK(str_equal(out->configs[1].value, STR("50000")));
    CHECK_EQ(out->configs[1].config_source, CONFIG_OF_GROUP);
    check_synonyms(&out->configs[1],
                   SESSION "=50000(8);group." SESSION "=10000(4);group." SESSION "=45000(5);");
    CHECK_EQ(out->configs[0].config_source, CONFIG_STANDARD);
    out = describe("other");
    CHECK(str_equal(out->configs[1].value, STR("10000")));
    CHECK_EQ(out->configs[1].config_source, CONFIG_OF_SERVER);
    check_synonyms(&out->configs[1], "group." SESSION "=10000(4);group." SESSION "=45000(5);");
    call_close(&c);
}

TEST(single_settings_of_a_group_are_set_and_taken_back) {
    call_open(&c, &call_managing);
    CHECK_ALTER(SESSION, CONFIG_SET, STR("+50000"), 0, NULL);
    check_group(50000, 0);
    CHECK_ALTER(HEARTBEAT, CONFIG_SET, STR(" 6000 "), 0, NULL);
    check_group(50000, 6000);
    CHECK_ALTER("nope", CONFIG_DELETE, STR_NULL, 0, NULL);
    CHECK_ALTER(SESSION, CONFIG_DELETE, STR("7"), 0, NULL);
    check_group(0, 6000);
    call_close(&c);
}

TEST(bad_settings_of_a_group_are_refused_in_kafkas_words) {
    call_open(&c, &call_managing);
    CHECK_ALTER("nope", CONFIG_SET, STR("1"), 40, "Unknown group config name: nope");
    CHECK_ALTER("share.session.timeout.ms", CONFIG_SET, STR("45000"), 40,
                "Unknown group config name: share.session.timeout.ms");
    CHECK_ALTER("nope", CONFIG_APPEND, STR("1"), 40,
                "Can't APPEND to key nope because its type is not LIST.");
    CHECK_ALTER(SESSION, CONFIG_SUBTRACT, STR("1"), 40,
                "Can't SUBTRACT to key " SESSION " because its type is not LIST.");
    CHECK_ALTER(SESSION, 9, STR("1"), 42, "Unknown config operation 9");
    CHECK_ALTER(SESSION, CONFIG_SET, STR_NULL, 42, "Null value not supported for : " SESSION);
    CHECK_ALTER(SESSION, CONFIG_SET, STR("abc"), 40,
                "Invalid value abc for configuration " SESSION ": Not a number of type INT");
    CHECK_ALTER(SESSION, CONFIG_SET, STR(""), 40,
                "Invalid value  for configuration " SESSION ": Not a number of type INT");
    CHECK_ALTER(SESSION, CONFIG_SET, STR("99999999999"), 40,
                "Invalid value 99999999999 for configuration " SESSION ": Not a number of type INT");
    CHECK_ALTER(SESSION, CONFIG_SET, STR("0"), 40,
                "Invalid value 0 for configuration " SESSION ": Value must be at least 1");
    CHECK_EQ(call_fake.groups_configured, 0);
    call_close(&c);
}

TEST(values_of_a_group_stay_within_kafkas_bounds_stretched_to_the_servers_own) { /* D9-16 */
    static const char session[] = SESSION " must be in the range 45000 to 60000 inclusive.";
    static const char heartbeat[] = HEARTBEAT " must be in the range 5000 to 15000 inclusive.";
    call_open(&c, &call_managing);
    CHECK_ALTER(SESSION, CONFIG_SET, STR("44999"), 40, session);
    CHECK_ALTER(SESSION, CONFIG_SET, STR("60001"), 40, session);
    CHECK_ALTER(HEARTBEAT, CONFIG_SET, STR("4999"), 40, heartbeat);
    CHECK_ALTER(HEARTBEAT, CONFIG_SET, STR("15001"), 40, heartbeat);
    check_group(0, 0);
    CHECK_ALTER(SESSION, CONFIG_SET, STR("45000"), 0, NULL);
    CHECK_ALTER(SESSION, CONFIG_SET, STR("60000"), 0, NULL);
    CHECK_ALTER(HEARTBEAT, CONFIG_SET, STR("15000"), 0, NULL);
    CHECK_ALTER(HEARTBEAT, CONFIG_SET, STR("5000"), 0, NULL);
    c.kafka.group_times = (struct group_times){70000, 3000};
    CHECK_ALTER(SESSION, CONFIG_SET, STR("70000"), 0, NULL);
    CHECK_ALTER(SESSION, CONFIG_SET, STR("70001"), 40,
                SESSION " must be in the range 45000 to 70000 inclusive.");
    CHECK_ALTER(HEARTBEAT, CONFIG_SET, STR("3000"), 0, NULL);
    CHECK_ALTER(HEARTBEAT, CONFIG_SET, STR("2999"), 40,
                HEARTBEAT " must be in the range 3000 to 15000 inclusive.");
    check_group(70000, 3000);
    call_close(&c);
}

TEST(a_session_is_longer_than_the_time_between_two_heartbeats) { /* D9-17 */
    static const char problem[] = SESSION " must be greater than " HEARTBEAT;
    call_open(&c, &call_managing);
    c.kafka.group_times = (struct group_times){10000, 3000};
    CHECK_ALTER(HEARTBEAT, CONFIG_SET, STR("10000"), 40, problem); /* the server's counts, too */
    CHECK_ALTER(HEARTBEAT, CONFIG_SET, STR("9999"), 0, NULL);
    CHECK_ALTER(SESSION, CONFIG_SET, STR("10000"), 0, NULL);
    CHECK_ALTER(SESSION, CONFIG_SET, STR("12000"), 0, NULL);
    CHECK_ALTER(HEARTBEAT, CONFIG_SET, STR("11999"), 0, NULL);
    CHECK_ALTER(SESSION, CONFIG_DELETE, STR_NULL, 40, problem); /* it would leave the server's */
    check_group(12000, 11999);
    call_close(&c);
}

TEST(settings_that_no_longer_fit_the_server_count_as_not_set) { /* D9-18 */
    const struct kafka k = {.group_times = {10000, 3000}};
    const struct {
        struct backend_group_settings own;
        int32_t session_ms, heartbeat_ms;
    } cases[] = {
        {{0, 0}, 10000, 3000},         {{50000, 0}, 50000, 3000},   {{0, 6000}, 10000, 6000},
        {{50000, 6000}, 50000, 6000},  {{9999, 6000}, 10000, 6000}, {{60001, 2999}, 10000, 3000},
        {{50000, 15001}, 50000, 3000}, {{0, 10000}, 10000, 3000},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct group_times times = k.group_times;
        group_configs_apply(&k, &cases[i].own, &times);
        CHECK_EQ(times.session_ms, cases[i].session_ms);
        CHECK_EQ(times.heartbeat_ms, cases[i].heartbeat_ms);
    }
}

TEST(the_names_of_groups_are_looked_at) {
    static char name[BACKEND_GROUP_BYTES_MAX + 2];
    struct incremental_alter_configs_req_config set = {STR(SESSION), CONFIG_SET, STR("50000")};
    memset(name, 'g', BACKEND_GROUP_BYTES_MAX);
    call_open(&c, &call_managing);
    CHECK_EQ(alter(name, &set, 1, false)->responses[0].error_code, 0);
    name[BACKEND_GROUP_BYTES_MAX] = 'g';
    CHECK_EQ(alter(name, &set, 1, false)->responses[0].error_code, KERR_INVALID_GROUP_ID);
    const struct incremental_alter_configs_res *out = alter("", &set, 1, false);
    CHECK_EQ(out->responses[0].error_code, 42);
    CHECK(str_equal(out->responses[0].error_message, STR("Default group resources are not allowed.")));
    CHECK_EQ(call_fake.groups_configured, 1);
    CHECK_EQ(describe(name)->error_code, 0);
    CHECK_EQ(describe("")->error_code, 42);
    CHECK(str_equal(describe("")->error_message, STR("Group name must not be empty")));
    call_close(&c);
}

TEST(a_request_changes_topics_and_groups_each_with_its_outcome) {
    struct incremental_alter_configs_req_config set = {STR(SESSION), CONFIG_SET, STR("50000")},
                                                bad = {STR(HEARTBEAT), CONFIG_SET, STR("1")},
                                                retention = {STR("retention.ms"), CONFIG_SET, STR("7")};
    struct incremental_alter_configs_req_resource resources[] = {
        {GROUP, STR("g"), &set, 1},  {TOPIC, STR("here"), &retention, 1}, {GROUP, STR("h"), &bad, 1},
        {GROUP, STR("i"), &set, 1},  {GROUP, STR("i"), &set, 1},          {GROUP, STR("here"), &set, 1},
        {TOPIC, STR("no"), NULL, 0},
    };
    const int16_t codes[] = {0, 0, 40, 42, 42, 0, 3};
    call_open(&c, &call_managing);
    const struct incremental_alter_configs_res *out =
        call_run(&c, INCREMENTAL_ALTER_CONFIGS, 1,
                 &(struct incremental_alter_configs_req){resources, COUNT_OF(resources), false});
    for (size_t i = 0; i < COUNT_OF(resources); i++)
        CHECK_EQ(out->responses[i].error_code, codes[i]);
    CHECK_EQ(call_fake.groups_configured, 2);
    CHECK_EQ(call_fake.configured, 1);
    call_close(&c);
}

TEST(validation_of_a_groups_settings_changes_nothing) {
    struct incremental_alter_configs_req_config good = {STR(SESSION), CONFIG_SET, STR("50000")},
                                                bad = {STR(SESSION), CONFIG_SET, STR("1")};
    call_open(&c, &call_managing);
    CHECK_EQ(alter("g", &good, 1, true)->responses[0].error_code, 0);
    CHECK_EQ(alter("g", &bad, 1, true)->responses[0].error_code, 40);
    CHECK_EQ(call_fake.groups_configured, 0);
    call_close(&c);
}

TEST(alter_configs_replaces_all_settings_of_a_group) { /* D9-7 */
    struct alter_configs_req_config heartbeat = {STR(HEARTBEAT), STR("7000")};
    struct alter_configs_req_resource resource = {GROUP, STR("g"), &heartbeat, 1};
    struct alter_configs_req in = {.resources = &resource, .resources_count = 1};
    call_open(&c, &call_managing);
    call_fake.group = (struct backend_group_settings){50000, 0};
    const struct alter_configs_res *out = call_run(&c, ALTER_CONFIGS, 2, &in);
    CHECK_EQ(out->responses[0].error_code, 0);
    check_group(0, 7000);
    resource.configs_count = 0;
    out = call_run(&c, ALTER_CONFIGS, 2, &in);
    CHECK_EQ(out->responses[0].error_code, 0);
    check_group(0, 0);
    call_close(&c);
}

TEST(a_group_that_somebody_changed_meanwhile_is_looked_at_again) {
    call_open(&c, &call_managing);
    call_fake.group_status = ST_AGAIN; /* 50,000 is set then */
    CHECK_ALTER(HEARTBEAT, CONFIG_SET, STR("6000"), 0, NULL);
    check_group(50000, 6000);
    CHECK_EQ(call_fake.groups_configured, 1);
    call_close(&c);
}

TEST(what_the_backend_says_of_a_group_is_answered) {
    call_open(&c, &call_managing);
    call_fake.group_status = ST_POLICY;
    CHECK_ALTER(HEARTBEAT, CONFIG_SET, STR("6000"), 44, "Settings are kept of 10000 groups at most.");
    call_fake.group_status = ST_TIMED_OUT;
    CHECK_ALTER(HEARTBEAT, CONFIG_SET, STR("6000"), 7, NULL);
    call_fake.group_status = ST_IO;
    CHECK_ALTER(HEARTBEAT, CONFIG_SET, STR("6000"), 56, "the operating system refused");
    call_close(&c);
}

TEST(a_backend_that_keeps_none_shows_the_servers_and_takes_no_other) { /* D9-19 */
    call_open(&c, &call_bridge);
    CHECK(describe("g")->configs[0].read_only);
    CHECK(str_equal(describe("g")->configs[0].value, STR("5000")));
    CHECK_ALTER(SESSION, CONFIG_SET, STR("50000"), 42, "Settings of groups can't be kept by this server.");
    CHECK_ALTER(SESSION, CONFIG_SET, STR("1"), 40, SESSION " must be in the range 45000 to 60000 inclusive.");
    CHECK_ALTER(SESSION, CONFIG_DELETE, STR_NULL, 0, NULL); /* it isn't set */
    call_close(&c);
}

TEST(the_stub_refuses_groups_before_all_else) { /* D9-2 */
    call_open(&c, &call_stub);
    struct incremental_alter_configs_req_config set = {STR("nope"), CONFIG_SET, STR("1")};
    CHECK_EQ(alter("", &set, 1, false)->responses[0].error_code, KERR_NOT_CONTROLLER);
    CHECK_EQ(describe("")->error_code, KERR_NOT_CONTROLLER);
    call_close(&c);
}

TEST(more_than_a_hundred_groups_are_44) { /* D9-2 */
    static char names[101][16];
    static struct incremental_alter_configs_req_resource resources[101];
    for (int i = 0; i < 101; i++) {
        snprintf(names[i], sizeof names[i], "g%d", i);
        resources[i] = (struct incremental_alter_configs_req_resource){GROUP, str_of(names[i]), NULL, 0};
    }
    struct incremental_alter_configs_req in = {.resources = resources, .resources_count = 101};
    call_open(&c, &call_managing);
    const struct incremental_alter_configs_res *out = call_run(&c, INCREMENTAL_ALTER_CONFIGS, 1, &in);
    CHECK_EQ(out->responses[0].error_code, KERR_POLICY_VIOLATION);
    CHECK_EQ(out->responses[100].error_code, KERR_POLICY_VIOLATION);
    in.resources_count = 100;
    out = call_run(&c, INCREMENTAL_ALTER_CONFIGS, 1, &in);
    CHECK_EQ(out->responses[99].error_code, 0);
    call_close(&c);
}
