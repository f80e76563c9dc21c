#include "backend/store/rig_test.h"
#include "base/clock.h"
#include "base/mem.h"
#include "iggy/batch.h"
#include "testing/test.h"
#include "wire/records.h"

static struct rig rig;

static struct backend_change change_of(const char *key, const char *value) {
    return (struct backend_change){
        .key = str_of(key), .value = value ? str_of(value) : STR_NULL, .before = STR_NULL};
}

static enum status configure(const char *topic, const struct backend_change *changes, int32_t count,
                             bool validate_only) {
    struct backend_configure_part part = {.name = str_of(topic), .changes = changes, .changes_count = count};
    struct backend_configure call = {.parts = &part,
                                     .parts_count = 1,
                                     .validate_only = validate_only,
                                     .deadline_ms = clock_ms() + LONG_MS};
    RUN(&rig, configure, &call);
    return part.status;
}

static enum status configure_one(const char *topic, const char *key, const char *value) {
    const struct backend_change change = change_of(key, value);
    return configure(topic, &change, 1, false);
}

/* Whether the topic's setting is this now; NULL: not set. */
static bool setting_is(const char *topic, const char *key, const char *value) {
    struct backend_topics_part part = {.name = str_of(topic)};
    struct backend_topics call = {
        .arena = &rig.arena, .want_settings = true, .parts = &part, .parts_count = 1};
    RUN(&rig, topics, &call);
    CHECK_EQ(part.status, ST_OK);
    for (int32_t i = 0; i < part.topic.settings_count; i++)
        if (str_equal(part.topic.settings[i].key, str_of(key)))
            return value && str_equal(part.topic.settings[i].value, str_of(value));
    return !value;
}

TEST(settings_are_changed_one_by_one_and_are_there_after_a_restart) { /* D9-7, D9-10 */
    const char *dir = test_dir();
    rig_open(&rig, dir, false);
    make_topic(&rig, "t", 1);
    const struct backend_change changes[] = {change_of("retention.ms", "8000"), change_of("segment.ms", "5")};
    CHECK_EQ(configure("t", changes, 2, false), ST_OK);
    CHECK_EQ(configure_one("t", "retention.ms", "9000"), ST_OK);
    CHECK_EQ(configure_one("t", "flush.ms", NULL), ST_OK); /* was never set */
    CHECK(setting_is("t", "retention.ms", "9000"));
    CHECK(setting_is("t", "segment.ms", "5"));
    CHECK_EQ(configure_one("t", "segment.ms", NULL), ST_OK);
    rig_close(&rig);
    rig_open(&rig, dir, false);
    CHECK(setting_is("t", "retention.ms", "9000"));
    CHECK(setting_is("t", "segment.ms", NULL));
    rig_close(&rig);
}

TEST(a_bound_change_is_made_only_to_what_it_was_made_of) {
    struct backend_change changes[] = {change_of("cleanup.policy", "delete,compact"),
                                       change_of("flush.ms", "7")};
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "t", 1);
    changes[0].bound = true;
    CHECK_EQ(configure_one("t", "cleanup.policy", "compact"), ST_OK); /* somebody was faster */
    CHECK_EQ(configure("t", changes, 2, false), ST_AGAIN);
    CHECK(setting_is("t", "cleanup.policy", "compact"));
    CHECK(setting_is("t", "flush.ms", NULL)); /* all or nothing */
    changes[0].before = STR("delete");
    CHECK_EQ(configure("t", changes, 2, true), ST_AGAIN);
    changes[0].before = STR("compact");
    CHECK_EQ(configure("t", changes, 2, false), ST_OK);
    CHECK(setting_is("t", "cleanup.policy", "delete,compact"));
    rig_close(&rig);
}

TEST(validation_changes_nothing_and_finds_what_is_missing) { /* D9-8 */
    const struct backend_change change = change_of("retention.ms", "8000");
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "t", 1);
    CHECK_EQ(configure("t", &change, 1, true), ST_OK);
    CHECK(setting_is("t", "retention.ms", NULL));
    CHECK_EQ(configure("none", &change, 1, true), ST_NOT_FOUND);
    CHECK_EQ(configure("none", &change, 1, false), ST_NOT_FOUND);
    rig_close(&rig);
}

TEST(a_change_past_its_deadline_is_not_made) {
    const struct backend_change change = change_of("retention.ms", "8000");
    struct backend_configure_part parts[] = {{.name = STR("t"), .changes = &change, .changes_count = 1},
                                             {.name = STR("t"), .status = ST_BAD_NAME}};
    struct backend_configure call = {.parts = parts, .parts_count = 2, .deadline_ms = clock_ms()};
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "t", 1);
    RUN(&rig, configure, &call);
    CHECK_EQ(parts[0].status, ST_TIMED_OUT);
    CHECK_EQ(parts[1].status, ST_BAD_NAME);
    CHECK(setting_is("t", "retention.ms", NULL));
    rig_close(&rig);
}

#define AT_A_TIME 8

/* Each of the keys is set by one of the calls; all run beside each other in the pool, and none undoes another's. */
TEST(changes_made_at_the_same_time_lose_none) {
    static const char *const keys[AT_A_TIME] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    struct backend_change changes[AT_A_TIME];
    struct backend_configure_part parts[AT_A_TIME];
    struct backend_configure calls[AT_A_TIME];
    struct turn turns[AT_A_TIME];
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "t", 1);
    for (int i = 0; i < AT_A_TIME; i++) {
        changes[i] = change_of(keys[i], "1");
        parts[i] =
            (struct backend_configure_part){.name = STR("t"), .changes = &changes[i], .changes_count = 1};
        calls[i] = (struct backend_configure){
            .parts = &parts[i], .parts_count = 1, .deadline_ms = clock_ms() + LONG_MS};
        turn_start(&turns[i], &rig, i % 2, &calls[i].op, &calls[i], begin_configure);
    }
    for (int i = 0; i < AT_A_TIME; i++)
        turn_wait(&turns[i]);
    for (int i = 0; i < AT_A_TIME; i++) {
        CHECK_EQ(parts[i].status, ST_OK);
        CHECK(setting_is("t", keys[i], "1"));
    }
    rig_close(&rig);
}

/* What a batch of records without keys comes to. */
static enum status append_keyless(const char *topic) {
    struct bytes batch = make_batch(3, 10, clock_wall_ms());
    struct backend_append_part part = {.topic = str_of(topic), .records = batch};
    struct backend_append call = append_of(&rig, &part, 1);
    RUN(&rig, append, &call);
    free_batch(batch);
    return part.status;
}

TEST(a_topic_that_is_to_be_compacted_takes_no_record_without_a_key) { /* D6-15 */
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "t", 1);
    make_topic(&rig, "other", 1);
    CHECK_EQ(append_keyless("t"), ST_OK);
    CHECK_EQ(configure_one("t", "cleanup.policy", "delete,compact"), ST_OK);
    CHECK_EQ(append_keyless("t"), ST_NO_KEY);
    CHECK_EQ(append_keyless("other"), ST_OK);
    CHECK_EQ(configure_one("t", "cleanup.policy", "delete"), ST_OK);
    CHECK_EQ(append_keyless("t"), ST_OK);
    rig_close(&rig);
}

/* What a batch comes to whose records have the time timestamp; *append_ms: what the answer says. */
static enum status append_at(int64_t timestamp, bool marked, int64_t *append_ms) {
    struct bytes batch = make_batch(2, 10, timestamp);
    if (marked)
        batch_set_append_time((uint8_t *)(uintptr_t)batch.ptr, batch.len, timestamp);
    struct backend_append_part part = {.topic = STR("t"), .records = batch};
    struct backend_append call = append_of(&rig, &part, 1);
    RUN(&rig, append, &call);
    free_batch(batch);
    *append_ms = part.append_ms;
    return part.status;
}

/* The time of the topic's records from this offset on, which are in one batch, as the format's readers see it. */
static int64_t stored_time(int64_t offset, enum backend_format format) {
    struct backend_read_part part = read_part("t", 0, offset);
    struct backend_read read = read_of(&part, 1);
    int64_t ms;
    read.format = format;
    RUN(&rig, read, &read);
    CHECK_EQ(part.status, ST_OK);
    if (format == FORMAT_KAFKA) {
        struct batch b;
        CHECK_EQ(batch_read(part.records[0], &b), ST_OK);
        ms = b.log_append_time ? b.max_timestamp : b.base_timestamp;
    } else {
        struct iggy_batch b;
        CHECK_EQ(iggy_batch_read(part.records[0], true, &b), ST_OK);
        ms = (int64_t)b.origin_timestamp_us / 1000;
    }
    backend_read_release(rig.backend, &read);
    return ms;
}

TEST(records_get_the_time_of_their_append_while_the_topic_says_so) { /* D1-12, D6-3 */
    const int64_t far_ahead = INT64_C(253370764800000);
    int64_t before = clock_wall_ms(), append_ms;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "t", 1);
    CHECK_EQ(append_at(TIMESTAMP_MS, false, &append_ms), ST_OK);
    CHECK_EQ(append_ms, -1);
    CHECK_EQ(configure_one("t", "message.timestamp.type", "LogAppendTime"), ST_OK);
    CHECK_EQ(append_at(far_ahead, false, &append_ms), ST_OK);
    CHECK(append_ms >= before && append_ms <= clock_wall_ms());
    CHECK_EQ(stored_time(2, FORMAT_KAFKA), append_ms);
    CHECK_EQ(stored_time(2, FORMAT_IGGY), append_ms);
    CHECK_EQ(stored_time(0, FORMAT_KAFKA), TIMESTAMP_MS);
    int64_t ignored;
    CHECK_EQ(append_at(TIMESTAMP_MS, true, &ignored), ST_BAD_TIMESTAMP); /* who says so himself */
    struct backend_offset_part found = {.topic = STR("t"), .kind = OFFSET_MAX_TIME};
    struct backend_offsets offsets = {.parts = &found, .parts_count = 1, .deadline_ms = clock_ms() + LONG_MS};
    RUN(&rig, offsets, &offsets);
    CHECK_EQ(found.offset, 2);
    CHECK_EQ(found.timestamp_ms, append_ms);
    CHECK_EQ(configure_one("t", "message.timestamp.type", NULL), ST_OK);
    CHECK_EQ(append_at(far_ahead, false, &append_ms), ST_BAD_TIMESTAMP);
    rig_close(&rig);
}
