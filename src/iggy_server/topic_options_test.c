#include "iggy_server/topic_options.h"

#include "base/le.h"
#include "base/mem.h"
#include "iggy/errors.h"
#include "iggy/tlv.h"
#include "testing/test.h"

static uint8_t block[4096];
static int32_t block_len;

static void block_add(const char *key, uint8_t kind, const void *value, size_t len) {
    struct tlv_entry e = {.key_kind = TLV_STRING,
                          .value_kind = kind,
                          .key = {(const uint8_t *)key, (int32_t)strlen(key)},
                          .value = {value, (int32_t)len}};
    block_len = (int32_t)(tlv_write(block + block_len, &e) - block);
}

static void add_text(const char *key, const char *value) {
    block_add(key, TLV_STRING, value, strlen(value));
}

static void add_u64(const char *key, uint64_t n) {
    uint8_t bytes[8];
    le_set64(bytes, n);
    block_add(key, TLV_U64, bytes, sizeof bytes);
}

struct fixture {
    struct arena arena;
    struct topic_settings settings;
    struct store *store;
    struct topic *topic; /* with three partitions */
};

static void fixture_open(struct fixture *f) {
    struct store_error error;
    const struct store_settings settings = {.data_dir = test_dir(), .segment_bytes = 1 << 20};
    arena_init(&f->arena, NULL, 0, 1 << 20);
    topic_settings_load(&f->settings, &f->arena, NULL);
    CHECK_EQ(store_open(&settings, &f->store, &error), ST_OK);
    CHECK_EQ(store_stream_ensure(f->store, STR("s")), ST_OK);
    const struct store_topic_new want = {.stream = STR("s"), .name = STR("t"), .partitions_count = 3};
    CHECK_EQ(store_topic_create(f->store, &want, &f->topic), ST_OK);
    block_len = 0;
}

static void fixture_close(struct fixture *f) {
    topic_unref(f->topic);
    store_close(f->store);
    arena_release(&f->arena);
}

static enum status set_all(struct fixture *f, const struct store_setting *items, int32_t count) {
    const struct store_topic_settings next = {items, count, topic_settings_version(f->topic)};
    return store_topic_set(f->store, f->topic, &next);
}

static uint32_t apply(struct fixture *f, uint32_t version, bool created) {
    struct topic_patch patch = {
        .options = {block, block_len}, .version = version, .partitions_count = 3, .created = created};
    return topic_settings_apply(&f->settings, &patch);
}

static const char *setting(const struct fixture *f, const char *key) {
    for (int32_t i = 0; i < f->settings.count; i++)
        if (strcmp(f->settings.items[i].key, key) == 0)
            return f->settings.items[i].value;
    return "";
}

static bool text_is(const char *a, const char *b) {
    return strcmp(a, b) == 0;
}

TEST(expiry_and_size_are_kept_as_kafka_calls_them) {
    struct fixture f;
    fixture_open(&f);
    add_text("message_expiry", "7 days");
    add_text("max_topic_size", "3 GiB");
    CHECK_EQ(apply(&f, IGGY_0_11, true), 0);
    CHECK(text_is(setting(&f, "retention.ms"), "604800000"));
    CHECK(text_is(setting(&f, "retention.bytes"), "1073741824"));
    fixture_close(&f);
}

TEST(an_expiry_of_less_than_a_millisecond_is_rounded_up) {
    struct fixture f;
    fixture_open(&f);
    add_u64("message_expiry", 1001);
    CHECK_EQ(apply(&f, IGGY_0_12_2, true), 0);
    CHECK(text_is(setting(&f, "retention.ms"), "2"));
    fixture_close(&f);
}

TEST(zero_gives_expiry_and_size_back_to_the_server) {
    struct fixture f;
    fixture_open(&f);
    add_text("message_expiry", "1h 30m");
    add_u64("max_topic_size", IGGY_NEVER);
    CHECK_EQ(apply(&f, IGGY_0_12_2, true), 0);
    CHECK(text_is(setting(&f, "retention.ms"), "5400000"));
    CHECK(text_is(setting(&f, "retention.bytes"), "-1"));
    block_len = 0;
    add_u64("message_expiry", 0);
    add_u64("max_topic_size", 0);
    CHECK_EQ(apply(&f, IGGY_0_12_2, false), 0);
    CHECK_EQ(f.settings.count, 0);
    fixture_close(&f);
}

TEST(options_that_are_not_there_or_not_so_are_refused) {
    static const struct {
        const char *key, *value;
        uint32_t version, code;
        bool created;
    } rows[] = {
        {"colour", "red", IGGY_0_11, IGGY_ERR_UNSUPPORTED_OPTION_KEY, true},
        {"name", "x", IGGY_0_12_2, IGGY_ERR_UNSUPPORTED_OPTION_KEY, true},
        {"enforce_fsync", "true", IGGY_0_12_2, IGGY_ERR_UNSUPPORTED_OPTION_KEY, true},
        {"durability", "hard", IGGY_0_11, IGGY_ERR_INVALID_OPTION_VALUE, true},
        {"durability", "persisted", IGGY_0_11, IGGY_ERR_UNSUPPORTED_OPTION_KEY, false},
        {"durability", "persisted", IGGY_0_12_2, IGGY_ERR_OPTION_NOT_UPDATABLE, false},
        {"message_expiry", "7 dogs", IGGY_0_11, IGGY_ERR_INVALID_OPTION_VALUE, true},
        {"message_expiry", "days", IGGY_0_11, IGGY_ERR_INVALID_OPTION_VALUE, true},
        {"message_expiry", "99999999999999999999 days", IGGY_0_11, IGGY_ERR_INVALID_OPTION_VALUE, true},
        {"segment_size", "1048577", IGGY_0_11, IGGY_ERR_INVALID_OPTION_VALUE, true},
        {"segment_size", "1 KiB", IGGY_0_11, IGGY_ERR_INVALID_OPTION_VALUE, true},
        {"messages_required_to_save", "0", IGGY_0_11, IGGY_ERR_INVALID_OPTION_VALUE, true},
        {"replication_factor", "2", IGGY_0_12_2, IGGY_ERR_INVALID_OPTION_VALUE, true},
        {"max_topic_size", "1 MiB", IGGY_0_11, IGGY_ERR_INVALID_TOPIC_SIZE, true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct fixture f;
        fixture_open(&f);
        add_text(rows[i].key, rows[i].value);
        CHECK_EQ(apply(&f, rows[i].version, rows[i].created), rows[i].code);
        fixture_close(&f);
    }
}

TEST(a_block_that_is_no_options_is_refused) {
    struct fixture f;
    fixture_open(&f);
    add_text("durability", "persisted");
    block_len--;
    CHECK_EQ(apply(&f, IGGY_0_11, true), IGGY_ERR_INVALID_COMMAND);
    fixture_close(&f);
}

TEST(only_what_resets_can_be_taken_back) {
    struct fixture f;
    fixture_open(&f);
    add_text("message_expiry", "1 hour");
    CHECK_EQ(apply(&f, IGGY_0_12_2, true), 0);
    CHECK_EQ(topic_settings_reset(&f.settings, IGGY_0_12_2, STR("message_expiry")), 0);
    CHECK(text_is(setting(&f, "retention.ms"), ""));
    CHECK_EQ(topic_settings_reset(&f.settings, IGGY_0_12_2, STR("durability")),
             IGGY_ERR_OPTION_NOT_RESETTABLE);
    CHECK_EQ(topic_settings_reset(&f.settings, IGGY_0_12_2, STR("colour")), IGGY_ERR_UNSUPPORTED_OPTION_KEY);
    fixture_close(&f);
}

static uint64_t shown_number(struct bytes options, const char *key) {
    struct tlv_entry e;
    uint64_t n = 12345;
    CHECK(tlv_find(options, str_of(key), &e));
    CHECK(tlv_uint(&e, &n));
    return n;
}

TEST(what_was_set_is_shown_and_the_rest_with_its_defaults) {
    struct fixture f;
    struct iggy_topic shown = {.partitions_count = 3};
    struct tlv_entry e;
    fixture_open(&f);
    add_text("message_expiry", "7 days");
    add_u64("max_topic_size", 5000000000);
    add_text("durability", "persisted");
    add_text("compression_algorithm", "gzip");
    CHECK_EQ(apply(&f, IGGY_0_11, true), 0);
    CHECK_EQ(set_all(&f, f.settings.items, f.settings.count), ST_OK);
    CHECK_EQ(topic_options_show(f.topic, IGGY_0_11, &f.arena, &shown), ST_OK);
    CHECK_EQ(shown.message_expiry_us, 604800000000);
    CHECK_EQ(shown.max_topic_size, 5000000000);
    CHECK_EQ(shown.compression, 2);
    CHECK_EQ(tlv_check_options(shown.options), ST_OK);
    CHECK_EQ(tlv_check_options(shown.derived), ST_OK);
    CHECK_EQ(shown_number(shown.options, "message_expiry"), 604800000000);
    CHECK_EQ(shown_number(shown.derived, "messages_required_to_save"), 1024);
    CHECK(tlv_find(shown.options, STR("durability"), &e));
    CHECK(str_equal((struct str){(const char *)e.value.ptr, e.value.len}, STR("persisted")));
    CHECK(!tlv_find(shown.derived, STR("durability"), &e));
    fixture_close(&f);
}

TEST(what_kafka_sets_is_what_iggy_shows) {
    struct fixture f;
    struct iggy_topic shown = {.partitions_count = 3};
    fixture_open(&f);
    char ms_key[] = "retention.ms", ms[] = "60000", bytes_key[] = "retention.bytes", bytes[] = "1000000000";
    const struct store_setting settings[] = {{ms_key, ms}, {bytes_key, bytes}};
    CHECK_EQ(set_all(&f, settings, 2), ST_OK);
    CHECK_EQ(topic_options_show(f.topic, IGGY_0_12_2, &f.arena, &shown), ST_OK);
    CHECK_EQ(shown_number(shown.options, "message_expiry"), 60000000);
    CHECK_EQ(shown_number(shown.options, "max_topic_size"), 3000000000);
    fixture_close(&f);
}
