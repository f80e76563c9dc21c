/* Topics that Kafka would compact. Nothing here compacts: they keep everything (D6-14). */
#include "backend/iggy/bridge_rig_test.h"
#include "testing/test.h"

static struct bridge_rig rig;

/* The settings of a new topic, as they are shown: "key=value key=value ". */
static const char *shown(const char *policy, const char *retention_ms, const char *retention_bytes) {
    static char text[256];
    struct backend_setting settings[] = {{STR("cleanup.policy"), str_of(policy)},
                                         {STR("retention.ms"), str_of(retention_ms)},
                                         {STR("retention.bytes"), str_of(retention_bytes)}};
    struct backend_create_part made = {
        .name = STR("t"), .partitions_count = 1, .settings = settings, .settings_count = COUNT_OF(settings)};
    struct turn create = {.create = {.parts = &made, .parts_count = 1}};
    struct backend_topics_part seen = {.name = STR("t")};
    struct turn look = {.topics = {.parts = &seen, .parts_count = 1, .want_settings = true}};
    size_t len = 0;
    turn_run(&rig, &create, start_create);
    CHECK_EQ(made.status, ST_OK);
    turn_run(&rig, &look, start_topics);
    CHECK_EQ(seen.status, ST_OK);
    text[0] = '\0';
    for (int32_t i = 0; i < seen.topic.settings_count; i++) {
        const struct backend_setting *s = &seen.topic.settings[i];
        len += (size_t)snprintf(text + len, sizeof text - len, "%.*s=%.*s ", (int)s->key.len, s->key.ptr,
                                (int)s->value.len, s->value.ptr);
    }
    return text;
}

static void open_accepting(uint32_t version, bool accept_compact) {
    rig_prepare(&rig, (struct rig_options){.version = version});
    rig.settings.accept_compact = accept_compact;
    rig_begin(&rig);
}

TEST(a_compacted_topic_keeps_everything_and_is_shown_as_compacted) {
    const uint32_t versions[] = {IGGY_0_11, IGGY_0_12_2};
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        open_accepting(versions[i], true);
        CHECK_TEXT(shown("compact", "8000", "5000000000"),
                   "retention.bytes=-1 retention.ms=-1 cleanup.policy=compact ");
        rig_close(&rig);
    }
}

TEST(a_topic_that_is_compacted_and_deletes_has_its_retention) {
    open_accepting(IGGY_0_12_2, true);
    CHECK_TEXT(shown("compact,delete", "8000", "5000000000"),
               "retention.bytes=5000000000 retention.ms=8000 ");
    rig_close(&rig);
}

TEST(a_topic_that_keeps_everything_is_no_compacted_one_where_those_are_not_accepted) {
    open_accepting(IGGY_0_12_2, false);
    CHECK_TEXT(shown("delete", "-1", "-1"), "retention.bytes=-1 retention.ms=-1 ");
    rig_close(&rig);
}
