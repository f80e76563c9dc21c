#include "backend/iggy/topic_facts.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/le.h"
#include "iggy/tlv.h"

#define US_PER_MS     1000
#define EXPIRY_MS_MAX ((int64_t)UINT32_MAX * 1000) /* what Iggy can be told; who wants more wants all */
#define SEGMENT_BYTES_MIN \
    ((uint64_t)1 << 20) /* Iggy's rules for segment_size, of which a topic holds one at least */
#define SEGMENT_BYTES_MAX ((uint64_t)1 << 30)
#define SEGMENT_STEP      ((uint64_t)512)

static struct uuid derive_id(const struct uuid *cluster, struct str stream, const struct iggy_topic *t) {
    uint8_t in[sizeof cluster->b + 4 + 8 + IGGY_NAME_BYTES_MAX];
    uint8_t *at = in + sizeof cluster->b;
    struct uuid id;
    memcpy(in, cluster->b, sizeof cluster->b);
    le_set32(at, t->id);
    le_set64(at + 4, t->created_at_us);
    memcpy(at + 12, stream.ptr, (size_t)stream.len);
    XXH128_canonicalFromHash((XXH128_canonical_t *)(void *)id.b,
                             XXH3_128bits(in, (size_t)(at + 12 - in) + (size_t)stream.len));
    if (uuid_is_zero(&id))
        id.b[0] = 1; /* zero means that there is none */
    return id;
}

/* A number among the options: what a client set, else what the server says that holds. */
static uint64_t option_uint(const struct iggy_topic *t, struct str key, bool *is_set_out) {
    struct tlv_entry e;
    uint64_t value = 0;
    *is_set_out = tlv_check(t->options) == ST_OK && tlv_find(t->options, key, &e);
    bool found = *is_set_out || (tlv_check(t->derived) == ST_OK && tlv_find(t->derived, key, &e));
    return found && tlv_uint(&e, &value) ? value : 0;
}

void topic_facts_of(const struct bridge *b, uint32_t version, struct str stream, const struct iggy_topic *t,
                    struct topic_facts *out) {
    *out = (struct topic_facts){.id = derive_id(&b->cluster, stream, t),
                                .topic_id = t->id,
                                .partitions_count = t->partitions_count,
                                .created_us = t->created_at_us};
    bool ignored;
    out->message_expiry_us = option_uint(t, STR("message_expiry"), &out->expiry_is_set);
    out->max_topic_size = option_uint(t, STR("max_topic_size"), &out->size_is_set);
    out->segment_size = option_uint(t, STR("segment_size"), &ignored);
    out->expiry_is_set &= out->message_expiry_us != 0;
    out->size_is_set &= out->max_topic_size != 0;
    if (version < IGGY_0_12_0) {
        out->message_expiry_us = t->message_expiry_us;
        out->max_topic_size = t->max_topic_size;
    }
}

/* ---- as Kafka's settings ---- */

static enum status setting_add(struct arena *a, struct str key, uint64_t value, struct backend_setting *to) {
    to->key = key;
    to->value = value == IGGY_NEVER ? STR("-1") : arena_printf(a, "%llu", (unsigned long long)value);
    return to->value.len < 0 ? ST_NO_MEMORY : ST_OK;
}

enum status topic_facts_settings(const struct topic_facts *f, struct arena *a, struct backend_setting *out,
                                 int32_t *count_out) {
    uint64_t us = f->message_expiry_us, partitions = f->partitions_count > 0 ? f->partitions_count : 1;
    enum status st = ST_OK;
    *count_out = 0;
    if (f->size_is_set)
        st = setting_add(a, STR("retention.bytes"),
                         f->max_topic_size == IGGY_NEVER ? IGGY_NEVER : f->max_topic_size / partitions,
                         &out[(*count_out)++]);
    if (st || !f->expiry_is_set)
        return st;
    struct backend_setting *to = &out[(*count_out)++];
    if (us != IGGY_NEVER && us % US_PER_MS != 0)
        *to = (struct backend_setting){STR("retention.ms"), STR_NULL};
    else
        st = setting_add(a, STR("retention.ms"), us == IGGY_NEVER ? us : us / US_PER_MS, to);
    return st;
}

bool topic_facts_keep_all(const struct topic_facts *f) {
    return f->expiry_is_set && f->message_expiry_us == IGGY_NEVER && f->size_is_set &&
           f->max_topic_size == IGGY_NEVER;
}

/* ---- as Iggy's options ---- */

/* The number in a text, which kafka/configs.c has checked. False: there is none. */
static bool text_number(struct str value, int64_t *out) {
    char text[24];
    if (value.len < 1 || value.len >= (int32_t)sizeof text)
        return false;
    memcpy(text, value.ptr, (size_t)value.len);
    text[value.len] = '\0';
    *out = strtoll(text, NULL, 10);
    return true;
}

/* The number that a setting holds. False: it isn't set. */
static bool setting_number(const struct backend_setting *settings, int32_t count, struct str key,
                           int64_t *out) {
    for (int32_t i = 0; i < count; i++)
        if (str_equal(settings[i].key, key) && text_number(settings[i].value, out))
            return true;
    return false;
}

static uint8_t *option_write(uint8_t *at, struct str key, uint64_t value) {
    uint8_t number[sizeof value];
    le_set64(number, value);
    const struct tlv_entry e = {.key_kind = TLV_STRING,
                                .value_kind = TLV_U64,
                                .key = {(const uint8_t *)key.ptr, key.len},
                                .value = {number, sizeof number}};
    return tlv_write(at, &e);
}

/* retention.ms -1: never; 0, which is no time to Iggy, is the shortest that it knows. */
static uint64_t expiry_us(int64_t ms) {
    if (ms < 0 || ms > EXPIRY_MS_MAX)
        return IGGY_NEVER;
    return (uint64_t)(ms > 0 ? ms : 1) * US_PER_MS;
}

/* Whether old messages may go under this cleanup.policy: not from what Kafka would compact only. */
static bool policy_deletes(struct str policy) {
    return policy.len < 0 || str_list_has(policy, STR("delete"));
}

static bool settings_delete(const struct backend_setting *settings, int32_t count) {
    for (int32_t i = 0; i < count; i++)
        if (str_equal(settings[i].key, STR("cleanup.policy")))
            return policy_deletes(settings[i].value);
    return true;
}

/* Whether they may go after the changes. */
static bool changes_delete(const struct topic_facts *f, const struct topic_changes *changes) {
    for (int32_t i = 0; i < changes->count; i++)
        if (str_equal(changes->changes[i].key, STR("cleanup.policy")))
            return policy_deletes(changes->changes[i].value);
    return !changes->compacts || !topic_facts_keep_all(f);
}

static int32_t options_keep_all(uint8_t *out) {
    uint8_t *at = option_write(out, STR("message_expiry"), IGGY_NEVER);
    return (int32_t)(option_write(at, STR("max_topic_size"), IGGY_NEVER) - out);
}

int32_t topic_options_write(const struct backend_setting *settings, int32_t count, int32_t partitions_count,
                            uint8_t out[TOPIC_OPTIONS_BYTES_MAX]) {
    int64_t ms, bytes;
    uint8_t *at = out;
    if (!settings_delete(settings, count))
        return options_keep_all(out);
    if (setting_number(settings, count, STR("retention.ms"), &ms))
        at = option_write(at, STR("message_expiry"), expiry_us(ms));
    if (!setting_number(settings, count, STR("retention.bytes"), &bytes))
        return (int32_t)(at - out);
    if (bytes < 0 || bytes > INT64_MAX / partitions_count)
        return (int32_t)(option_write(at, STR("max_topic_size"), IGGY_NEVER) - out);
    uint64_t size = (uint64_t)bytes * (uint64_t)partitions_count;
    if ((uint64_t)bytes < SEGMENT_BYTES_MAX) {
        uint64_t segment = (uint64_t)bytes / SEGMENT_STEP * SEGMENT_STEP;
        segment = segment < SEGMENT_BYTES_MIN ? SEGMENT_BYTES_MIN : segment;
        size = size < segment ? segment : size;
        at = option_write(at, STR("segment_size"), segment);
    }
    return (int32_t)(option_write(at, STR("max_topic_size"), size) - out);
}

static void update_set(struct topic_update *out, struct str key, uint64_t value) {
    out->options_len = (int32_t)(option_write(out->options + out->options_len, key, value) - out->options);
}

/* Before 0.12, 0 is the word for it. */
static void update_reset(struct topic_update *out, uint32_t version, struct str key) {
    if (version < IGGY_0_12_0)
        update_set(out, key, 0);
    else
        out->reset[out->reset_count++] = (struct iggy_reset_option){key};
}

static enum status update_size(const struct topic_facts *f, int64_t bytes, struct topic_update *out) {
    int64_t partitions = f->partitions_count > 0 ? (int64_t)f->partitions_count : 1;
    bool limited = bytes >= 0 && bytes <= INT64_MAX / partitions;
    uint64_t size = limited ? (uint64_t)(bytes * partitions) : IGGY_NEVER;
    if (size == 0 || size < f->segment_size)
        return ST_INVALID;
    update_set(out, STR("max_topic_size"), size);
    return ST_OK;
}

enum status topic_update_write(const struct topic_facts *f, uint32_t version,
                               const struct topic_changes *changes, struct topic_update *out) {
    enum status st = ST_OK;
    *out = (struct topic_update){.options_len = 0};
    if (!changes_delete(f, changes)) {
        out->options_len = topic_facts_keep_all(f) ? 0 : options_keep_all(out->options);
        return ST_OK;
    }
    for (int32_t i = 0; !st && i < changes->count; i++) {
        const struct backend_change *change = &changes->changes[i];
        bool expiry = str_equal(change->key, STR("retention.ms"));
        bool size = str_equal(change->key, STR("retention.bytes"));
        int64_t number;
        bool given = text_number(change->value, &number);
        if (expiry && given)
            update_set(out, STR("message_expiry"), expiry_us(number));
        else if (expiry && f->expiry_is_set)
            update_reset(out, version, STR("message_expiry"));
        else if (size && given)
            st = update_size(f, number, out);
        else if (size && f->size_is_set)
            update_reset(out, version, STR("max_topic_size"));
    }
    return st;
}

int32_t topic_options_save_at_once(uint8_t out[TOPIC_OPTIONS_BYTES_MAX], int32_t len) {
    static const char key[] = "messages_required_to_save";
    uint8_t one[4];
    le_set32(one, 1);
    const struct tlv_entry e = {.key_kind = TLV_STRING,
                                .value_kind = TLV_U32,
                                .key = {(const uint8_t *)key, (int32_t)sizeof key - 1},
                                .value = {one, sizeof one}};
    return (int32_t)(tlv_write(out + len, &e) - out);
}
