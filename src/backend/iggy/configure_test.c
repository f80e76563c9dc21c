#include "backend/iggy/bridge_rig_test.h"
#include "iggy/errors.h"
#include "testing/test.h"

static struct bridge_rig rig;

static void make(const char *name, int32_t partitions, struct backend_setting *settings, int32_t count) {
    struct backend_create_part part = {
        .name = str_of(name), .partitions_count = partitions, .settings = settings, .settings_count = count};
    struct turn turn = {.create = {.parts = &part, .parts_count = 1}};
    turn_run(&rig, &turn, start_create);
    CHECK_EQ(part.status, ST_OK);
}

static struct backend_change change_of(const char *key, const char *value) {
    return (struct backend_change){
        .key = str_of(key), .value = value ? str_of(value) : STR_NULL, .before = STR_NULL};
}

/* The outcome; a text with it goes to *reason. */
static enum status configure(const char *topic, const struct backend_change *changes, int32_t count,
                             bool validate_only, const char **reason) {
    struct backend_configure_part part = {.name = str_of(topic), .changes = changes, .changes_count = count};
    struct turn turn = {.configure = {.parts = &part, .parts_count = 1, .validate_only = validate_only}};
    turn_run(&rig, &turn, start_configure);
    if (reason)
        *reason = part.reason;
    return part.status;
}

static enum status configure_one(const char *topic, const char *key, const char *value) {
    const struct backend_change change = change_of(key, value);
    return configure(topic, &change, 1, false, NULL);
}

/* Whether the topic's setting is this now; NULL: not set. */
static bool setting_is(const char *topic, const char *key, const char *value) {
    struct backend_topics_part part = {.name = str_of(topic)};
    struct turn turn = {.topics = {.want_settings = true, .parts = &part, .parts_count = 1}};
    turn_run(&rig, &turn, start_topics);
    CHECK_EQ(part.status, ST_OK);
    for (int32_t i = 0; i < part.topic.settings_count; i++)
        if (str_equal(part.topic.settings[i].key, str_of(key)))
            return value && str_equal(part.topic.settings[i].value, str_of(value));
    return !value;
}

static void check_retention(uint32_t version, uint32_t command) {
    rig_open(&rig, (struct rig_options){.version = version});
    make("t", 2, NULL, 0);
    CHECK_EQ(configure_one("t", "retention.ms", "8000"), ST_OK);
    CHECK(setting_is("t", "retention.ms", "8000"));
    CHECK_EQ(configure_one("t", "retention.bytes", "5000000000"), ST_OK);
    CHECK(setting_is("t", "retention.bytes", "5000000000")); /* of one of two partitions */
    CHECK(setting_is("t", "retention.ms", "8000"));          /* what isn't named stays */
    CHECK_EQ(configure_one("t", "retention.ms", NULL), ST_OK);
    CHECK(setting_is("t", "retention.ms", NULL));
    CHECK(setting_is("t", "retention.bytes", "5000000000"));
    CHECK_EQ(configure_one("t", "retention.bytes", "-1"), ST_OK);
    CHECK(setting_is("t", "retention.bytes", "-1"));
    CHECK_EQ(configure_one("t", "retention.bytes", NULL), ST_OK);
    CHECK(setting_is("t", "retention.bytes", NULL));
    CHECK_EQ(fake_seen(&rig.server, command), 5);
    rig_close(&rig);
}

TEST(retention_is_changed_by_update_resource) { /* D9-7, D9-10 */
    check_retention(IGGY_0_12_2, IGGY_CMD_update_resource);
}

TEST(retention_is_changed_by_update_topic_before_0_12) { /* D9-7, D9-10 */
    check_retention(IGGY_0_11, IGGY_CMD_update_topic);
}

/* D6-14 */
TEST(a_topic_that_becomes_compacted_keeps_everything_until_it_deletes_again) {
    const struct backend_change back[] = {change_of("cleanup.policy", "delete"),
                                          change_of("retention.ms", "9000")};
    rig_prepare(&rig, (struct rig_options){.version = IGGY_0_12_2});
    rig.settings.accept_compact = true;
    rig_begin(&rig);
    make("t", 2, NULL, 0);
    CHECK_EQ(configure_one("t", "retention.ms", "8000"), ST_OK);
    CHECK_EQ(configure_one("t", "cleanup.policy", "compact"), ST_OK);
    CHECK(setting_is("t", "retention.ms", "-1"));
    CHECK(setting_is("t", "cleanup.policy", "compact"));
    CHECK_EQ(configure_one("t", "retention.ms", "8000"), ST_OK);
    CHECK(setting_is("t", "retention.ms", "-1"));
    CHECK_EQ(configure("t", back, COUNT_OF(back), false, NULL), ST_OK);
    CHECK(setting_is("t", "retention.ms", "9000"));
    CHECK(setting_is("t", "cleanup.policy", NULL));
    rig_close(&rig);
}

/* D6-11 */
TEST(what_iggy_has_no_place_for_and_what_is_not_set_anyway_asks_for_nothing) {
    const struct backend_change changes[] = {change_of("cleanup.policy", "delete"),
                                             change_of("retention.bytes", NULL),
                                             change_of("retention.ms", NULL), change_of("segment.ms", "5")};
    rig_open(&rig, (struct rig_options){0});
    make("t", 1, NULL, 0);
    CHECK_EQ(configure("t", changes, COUNT_OF(changes), false, NULL), ST_OK);
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_update_resource), 0);
    CHECK(setting_is("t", "cleanup.policy", NULL));
    rig_close(&rig);
}

/* The size of segments is settled by the creation: 1 MiB here. */
TEST(less_than_a_segment_is_refused_with_a_reason) {
    struct backend_setting small[] = {{STR("retention.bytes"), STR("1048576")}};
    const struct backend_change smaller = change_of("retention.bytes", "1000000");
    const char *reason;
    rig_open(&rig, (struct rig_options){0});
    make("t", 1, small, 1);
    make("plain", 1, NULL, 0);
    CHECK_EQ(configure("t", &smaller, 1, true, &reason), ST_INVALID);
    CHECK(reason && strstr(reason, "retention.bytes"));
    CHECK_EQ(configure_one("t", "retention.bytes", "0"), ST_INVALID);
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_update_resource), 0);
    CHECK_EQ(configure_one("t", "retention.bytes", "2000000"), ST_OK);
    fake_refuse(&rig.server, IGGY_CMD_update_resource, IGGY_ERR_INVALID_TOPIC_SIZE, 1);
    CHECK_EQ(configure("plain", &smaller, 1, false, &reason), ST_INVALID); /* a server that doesn't show it */
    CHECK(reason && strstr(reason, "retention.bytes"));
    rig_close(&rig);
}

TEST(validation_changes_nothing) { /* D9-8 */
    const struct backend_change change = change_of("retention.ms", "8000");
    rig_open(&rig, (struct rig_options){0});
    make("t", 1, NULL, 0);
    CHECK_EQ(configure("t", &change, 1, true, NULL), ST_OK);
    CHECK_EQ(configure("none", &change, 1, true, NULL), ST_NOT_FOUND);
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_update_resource), 0);
    rig_close(&rig);
}

TEST(each_part_has_its_outcome) {
    const struct backend_change change = change_of("retention.ms", "8000");
    rig_open(&rig, (struct rig_options){0});
    make("t", 1, NULL, 0);
    make("u", 1, NULL, 0);
    struct backend_configure_part parts[] = {
        {.name = STR("t"), .changes = &change, .changes_count = 1},
        {.name = STR("none"), .changes = &change, .changes_count = 1},
        {.name = STR("bad"), .changes = &change, .changes_count = 1, .status = ST_BAD_NAME},
        {.name = STR("u"), .changes = &change, .changes_count = 1}};
    struct turn turn = {.configure = {.parts = parts, .parts_count = 4}};
    fake_refuse(&rig.server, IGGY_CMD_update_resource, IGGY_ERR_UNAUTHORIZED, 1);
    turn_run(&rig, &turn, start_configure);
    CHECK_EQ(parts[0].status, ST_DENIED);
    CHECK_EQ(parts[1].status, ST_NOT_FOUND);
    CHECK_EQ(parts[2].status, ST_BAD_NAME);
    CHECK_EQ(parts[3].status, ST_OK);
    rig_close(&rig);
}
