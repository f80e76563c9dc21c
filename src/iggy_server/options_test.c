#include "iggy_server/options.h"

#include "testing/test.h"

static struct tlv_entry value_of(uint8_t kind, const void *ptr, int32_t len) {
    return (struct tlv_entry){.key_kind = TLV_STRING, .value_kind = kind, .value = {ptr, len}};
}

static bool number_of(const char *key, const char *text, uint64_t *out) {
    const struct option *o = option_find(IGGY_RESOURCE_TOPIC, IGGY_0_11, str_of(key));
    CHECK(o);
    struct tlv_entry e = value_of(TLV_STRING, text, (int32_t)strlen(text));
    return option_number(o, &e, out);
}

TEST(every_default_is_within_its_limits) {
    size_t count;
    const struct option *all = options_all(&count);
    for (size_t i = 0; i < count; i++) {
        const struct option *o = &all[i];
        struct tlv_entry e = value_of(TLV_STRING, o->text.ptr, o->text.len);
        struct str text;
        uint8_t bytes[8];
        CHECK_EQ(o->standard == OPTION_STANDARD_NUMBER, option_number_bytes(o->kind, o->number, bytes) > 0);
        if (o->standard == OPTION_STANDARD_TEXT)
            CHECK(option_text(o, &e, &text));
        if (o->standard == OPTION_STANDARD_NUMBER && o->most != 0)
            CHECK(o->least <= o->number && o->number <= o->most);
    }
}

/* So that describe_options lists each once, sorted. */
TEST(the_keys_of_a_scope_stand_in_order_and_once_a_version) {
    static const uint32_t versions[] = {IGGY_0_11, IGGY_0_12_0, IGGY_0_12_1, IGGY_0_12_2};
    size_t count;
    const struct option *all = options_all(&count);
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        const struct option *before = NULL;
        for (size_t i = 0; i < count; i++) {
            if (!option_is_on(&all[i], versions[v]))
                continue;
            CHECK(!before || before->scope != all[i].scope || strcmp(before->key.ptr, all[i].key.ptr) < 0);
            before = &all[i];
        }
    }
}

TEST(a_client_finds_the_options_of_its_version) {
    CHECK(option_find(IGGY_RESOURCE_TOPIC, IGGY_0_11, STR("enforce_fsync")));
    CHECK(!option_find(IGGY_RESOURCE_TOPIC, IGGY_0_12_2, STR("enforce_fsync")));
    CHECK(!option_find(IGGY_RESOURCE_TOPIC, IGGY_0_11, STR("replication_factor")));
    CHECK(option_find(IGGY_RESOURCE_TOPIC, IGGY_0_12_0, STR("replication_factor")));
    CHECK(!option_find(IGGY_RESOURCE_STREAM, IGGY_0_11, STR("name")));
    CHECK(option_find(IGGY_RESOURCE_USER, IGGY_0_12_0, STR("username")));
    CHECK(!option_find(IGGY_RESOURCE_TOPIC, IGGY_0_12_0, STR("durabilit")));
    CHECK_EQ(option_find(IGGY_RESOURCE_TOPIC, IGGY_0_11, STR("compression_algorithm"))->flags,
             OPTION_CHANGES);
    CHECK_EQ(option_find(IGGY_RESOURCE_TOPIC, IGGY_0_12_0, STR("compression_algorithm"))->flags, 0);
}

TEST(numbers_come_as_their_kind_or_as_text) {
    uint64_t n = 0;
    CHECK(number_of("messages_required_to_save", "16777216", &n));
    CHECK_EQ(n, 16777216);
    CHECK(!number_of("messages_required_to_save", "16777217", &n));
    CHECK(!number_of("messages_required_to_save", "0", &n));
    CHECK(!number_of("messages_required_to_save", "1x", &n));
    CHECK(number_of("message_expiry", "18446744073709551615", &n));
    CHECK(n == IGGY_NEVER);
    CHECK(!number_of("message_expiry", "18446744073709551616", &n));
    CHECK(number_of("enforce_fsync", "true", &n) && n == 1);
    CHECK(number_of("enforce_fsync", "false", &n) && n == 0);
    CHECK(!number_of("enforce_fsync", "2", &n));

    const struct option *o = option_find(IGGY_RESOURCE_TOPIC, IGGY_0_11, STR("messages_required_to_save"));
    struct tlv_entry right = value_of(TLV_U32, "\x02\0\0\0", 4),
                     wrong = value_of(TLV_U64, "\x02\0\0\0\0\0\0\0", 8);
    CHECK(option_number(o, &right, &n) && n == 2);
    CHECK(!option_number(o, &wrong, &n));
}

TEST(a_text_is_one_of_its_choices) {
    const struct option *o = option_find(IGGY_RESOURCE_TOPIC, IGGY_0_11, STR("durability"));
    static const char *good[] = {"replicated", "persisted"},
                      *bad[] = {"", "replicate", "replicated|persisted", "none"};
    struct str text;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        struct tlv_entry e = value_of(TLV_STRING, good[i], (int32_t)strlen(good[i]));
        CHECK(option_text(o, &e, &text) && str_equal(text, str_of(good[i])));
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct tlv_entry e = value_of(TLV_STRING, bad[i], (int32_t)strlen(bad[i]));
        CHECK(!option_text(o, &e, &text));
    }
}
