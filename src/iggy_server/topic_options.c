#include "iggy_server/topic_options.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/le.h"
#include "iggy/errors.h"
#include "iggy_server/options.h"

#define KEPT_PREFIX     "iggy."
#define RETENTION_MS    "retention.ms"
#define RETENTION_BYTES "retention.bytes"
#define KEPT_SIZE       KEPT_PREFIX "max_topic_size"
#define SECTOR_BYTES    512 /* segment_size is a multiple of it */
#define NUMBER_TEXT     24

/* ---- settings ---- */

static struct store_setting *setting_find(const struct topic_settings *s, const char *key) {
    for (int32_t i = 0; i < s->count; i++)
        if (strcmp(s->items[i].key, key) == 0)
            return &s->items[i];
    return NULL;
}

static void setting_drop(struct topic_settings *s, const char *key) {
    struct store_setting *found = setting_find(s, key);
    if (found)
        *found = s->items[--s->count];
}

static char *text_copy(struct topic_settings *s, const char *text) {
    struct str copy = arena_text(s->arena, str_of(text));
    s->no_memory = s->no_memory || copy.len < 0;
    return (char *)(uintptr_t)copy.ptr;
}

static void setting_put(struct topic_settings *s, const char *key, const char *value) {
    struct store_setting *found = setting_find(s, key);
    if (!found && s->count == s->room) {
        int32_t room = s->room * 2 + 16;
        struct store_setting *items = arena_take_array(s->arena, struct store_setting, room);
        if (!items) {
            s->no_memory = true;
            return;
        }
        if (s->count > 0)
            memcpy(items, s->items, (size_t)s->count * sizeof *items);
        s->items = items;
        s->room = room;
    }
    char *value_copy = text_copy(s, value), *key_copy = found ? found->key : text_copy(s, key);
    if (s->no_memory)
        return;
    if (!found)
        found = &s->items[s->count++];
    *found = (struct store_setting){.key = key_copy, .value = value_copy};
}

static void setting_put_number(struct topic_settings *s, const char *key, uint64_t n) {
    char text[NUMBER_TEXT];
    snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    setting_put(s, key, text);
}

static void load_one(void *user, const char *key, const char *value) {
    setting_put(user, key, value);
}

void topic_settings_load(struct topic_settings *s, struct arena *a, const struct topic *t) {
    *s = (struct topic_settings){.arena = a, .version = t ? topic_settings_version(t) : 0};
    if (t)
        topic_settings_each(t, load_one, s);
}

/* ---- values with units ---- */

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit time_units[] = {/* in us */
                                         {"us", 1},
                                         {"ms", 1000},
                                         {"s", 1000000},
                                         {"sec", 1000000},
                                         {"second", 1000000},
                                         {"m", 60000000},
                                         {"min", 60000000},
                                         {"minute", 60000000},
                                         {"h", 3600000000u},
                                         {"hour", 3600000000u},
                                         {"d", 86400000000u},
                                         {"day", 86400000000u},
                                         {"w", 604800000000u},
                                         {"week", 604800000000u},
                                         {NULL, 0}};

static const struct unit size_units[] = {/* in bytes */
                                         {"b", 1},           {"kb", 1000},           {"mb", 1000000},
                                         {"gb", 1000000000}, {"tb", 1000000000000u}, {"kib", 1024},
                                         {"mib", 1048576},   {"gib", 1073741824},    {"tib", 1099511627776u},
                                         {NULL, 0}};

/* A unit's name without regard to case, and with a plural s. */
static const struct unit *unit_find(const struct unit *units, const char *name, size_t len) {
    for (const struct unit *u = units; u->name; u++) {
        size_t own = strlen(u->name);
        bool plural = len == own + 1 && own > 2 && (name[own] == 's' || name[own] == 'S');
        if ((len == own || plural) && strncasecmp(u->name, name, own) == 0)
            return u;
    }
    return NULL;
}

static const char *skip_spaces(const char *at) {
    while (*at == ' ')
        at++;
    return at;
}

/* "7 days", "1h 30m", "1 GiB". */
static bool units_parse(const struct unit *units, const char *text, uint64_t *out) {
    *out = 0;
    const char *at = skip_spaces(text);
    while (*at) {
        char *end;
        if (*at < '0' || *at > '9')
            return false;
        uint64_t n = strtoull(at, &end, 10);
        const char *name = skip_spaces(end);
        size_t len = strcspn(name, " 0123456789");
        const struct unit *unit = unit_find(units, name, len);
        if (!unit || __builtin_mul_overflow(n, unit->factor, &n) || __builtin_add_overflow(*out, n, out))
            return false;
        at = skip_spaces(name + len);
    }
    return at != text;
}

/* The number of an option of a topic, text with units too. */
static bool number_of(const struct option *o, const struct tlv_entry *e, uint64_t *out) {
    bool is_time = str_equal(o->key, STR("message_expiry"));
    bool is_size = str_equal(o->key, STR("max_topic_size")) || str_equal(o->key, STR("segment_size")) ||
                   str_equal(o->key, STR("size_of_messages_required_to_save"));
    if (option_number(o, e, out))
        return true;
    if (e->value_kind != TLV_STRING || (!is_time && !is_size))
        return false;
    char text[TLV_FIELD_BYTES_MAX + 1];
    memcpy(text, e->value.ptr, (size_t)e->value.len);
    text[e->value.len] = '\0';
    if (strcmp(text, "never_expire") == 0 || strcmp(text, "unlimited") == 0) {
        *out = IGGY_NEVER;
    } else if (strcmp(text, "server_default") == 0) {
        *out = 0;
    } else if (!units_parse(is_time ? time_units : size_units, text, out)) {
        return false;
    }
    return o->most == 0 || (*out >= o->least && *out <= o->most);
}

/* ---- setting ---- */

static void kept_key(char out[64], struct str key) {
    snprintf(out, 64, KEPT_PREFIX "%.*s", (int)key.len, key.ptr);
}

static void expiry_put(struct topic_settings *s, uint64_t us) {
    if (us == 0)
        setting_drop(s, RETENTION_MS);
    else if (us == IGGY_NEVER)
        setting_put(s, RETENTION_MS, "-1");
    else
        setting_put_number(s, RETENTION_MS, us / 1000 + (us % 1000 != 0));
}

/* What a partition may hold of a topic's size. */
static uint64_t size_share(uint64_t size, uint32_t partitions_count) {
    uint64_t share = size / (partitions_count > 0 ? partitions_count : 1);
    return share == 0 ? 1 : share > INT64_MAX ? INT64_MAX : share;
}

static void size_put(struct topic_settings *s, uint64_t size, uint32_t partitions_count) {
    setting_drop(s, KEPT_SIZE);
    if (size == 0) {
        setting_drop(s, RETENTION_BYTES);
    } else if (size == IGGY_NEVER) {
        setting_put(s, RETENTION_BYTES, "-1");
    } else {
        setting_put_number(s, RETENTION_BYTES, size_share(size, partitions_count));
        setting_put_number(s, KEPT_SIZE, size);
    }
}

/* 0; 4042. */
static uint32_t option_put(struct topic_settings *s, const struct topic_patch *patch, const struct option *o,
                           const struct tlv_entry *e) {
    char key[64];
    struct str text;
    uint64_t n;
    kept_key(key, o->key);
    if (o->kind == TLV_STRING) {
        if (!option_text(o, e, &text))
            return IGGY_ERR_INVALID_OPTION_VALUE;
        char copy[TLV_FIELD_BYTES_MAX + 1];
        snprintf(copy, sizeof copy, "%.*s", (int)text.len, text.ptr);
        setting_put(s, key, copy);
        return 0;
    }
    if (!number_of(o, e, &n) || (str_equal(o->key, STR("segment_size")) && n % SECTOR_BYTES != 0))
        return IGGY_ERR_INVALID_OPTION_VALUE;
    if (str_equal(o->key, STR("message_expiry"))) {
        expiry_put(s, n);
    } else if (str_equal(o->key, STR("max_topic_size"))) {
        size_put(s, n, patch->partitions_count);
    } else {
        setting_put_number(s, key, n);
    }
    return 0;
}

/* An option that a client may set now; NULL and *code_out: 4041, 4103. */
static const struct option *option_allowed(const struct topic_patch *patch, struct str key,
                                           uint32_t *code_out) {
    const struct option *o = option_find(IGGY_RESOURCE_TOPIC, patch->version, key);
    bool is_name = str_equal(key, STR("name"));
    *code_out = IGGY_ERR_UNSUPPORTED_OPTION_KEY;
    if (!o || (is_name && patch->created))
        return NULL;
    if (patch->created || (o->flags & OPTION_CHANGES))
        return o;
    if (patch->version >= IGGY_0_12_0)
        *code_out = IGGY_ERR_OPTION_NOT_UPDATABLE;
    return NULL;
}

static uint64_t kept_number(const struct topic_settings *s, const char *key, uint64_t otherwise) {
    const struct store_setting *found = setting_find(s, key);
    return found ? strtoull(found->value, NULL, 10) : otherwise;
}

uint32_t topic_settings_apply(struct topic_settings *s, struct topic_patch *patch) {
    struct bytes at = patch->options;
    struct tlv_entry e;
    patch->name = STR_NULL;
    if (tlv_check_options(at))
        return IGGY_ERR_INVALID_COMMAND;
    while (tlv_next(&at, &e) == ST_OK) {
        const struct str key = {(const char *)e.key.ptr, e.key.len};
        uint32_t code;
        const struct option *o = option_allowed(patch, key, &code);
        if (!o)
            return code;
        if (str_equal(key, STR("name"))) {
            if (!option_text(o, &e, &patch->name))
                return IGGY_ERR_INVALID_OPTION_VALUE;
            continue;
        }
        code = option_put(s, patch, o, &e);
        if (code)
            return code;
    }
    const struct option *segment = option_find(IGGY_RESOURCE_TOPIC, patch->version, STR("segment_size"));
    uint64_t size = kept_number(s, KEPT_SIZE, IGGY_NEVER);
    return size < kept_number(s, KEPT_PREFIX "segment_size", segment->number) ? IGGY_ERR_INVALID_TOPIC_SIZE
                                                                              : 0;
}

uint32_t topic_settings_reset(struct topic_settings *s, uint32_t version, struct str key) {
    const struct option *o = option_find(IGGY_RESOURCE_TOPIC, version, key);
    if (!o)
        return IGGY_ERR_UNSUPPORTED_OPTION_KEY;
    if (!(o->flags & OPTION_RESETS))
        return IGGY_ERR_OPTION_NOT_RESETTABLE;
    if (str_equal(key, STR("message_expiry")))
        expiry_put(s, 0);
    else
        size_put(s, 0, 1);
    return 0;
}

/* ---- showing ---- */

/* The value that settings give an option. False: a client has not set it. */
static bool option_value(const struct topic_settings *s, uint32_t partitions_count, const struct option *o,
                         struct store_setting *text_out, uint64_t *number_out) {
    char key[64];
    kept_key(key, o->key);
    const struct store_setting *found = setting_find(s, key);
    const struct store_setting *ms = setting_find(s, RETENTION_MS), *bytes = setting_find(s, RETENTION_BYTES);
    if (str_equal(o->key, STR("message_expiry"))) {
        int64_t n = ms ? strtoll(ms->value, NULL, 10) : 0;
        *number_out = n < 0 || n > INT64_MAX / 1000 ? IGGY_NEVER : (uint64_t)n * 1000;
        return ms != NULL;
    }
    if (str_equal(o->key, STR("max_topic_size"))) {
        int64_t n = bytes ? strtoll(bytes->value, NULL, 10) : 0;
        uint64_t kept = found ? strtoull(found->value, NULL, 10) : 0;
        uint64_t many = partitions_count > 0 ? partitions_count : 1;
        if (n < 0 || (uint64_t)n > UINT64_MAX / many)
            *number_out = IGGY_NEVER;
        else
            *number_out =
                found && size_share(kept, partitions_count) == (uint64_t)n ? kept : (uint64_t)n * many;
        return bytes != NULL;
    }
    if (found) {
        *text_out = *found;
        *number_out = strtoull(found->value, NULL, 10);
    }
    return found != NULL;
}

/* An option as it is shown. */
struct shown {
    const struct option *option;
    const char *text;
    uint64_t number;
    bool is_set;
};

static size_t shown_bytes(const struct shown *o) {
    uint8_t bytes[8];
    size_t value = o->option->kind == TLV_STRING ? strlen(o->text)
                                                 : option_number_bytes(o->option->kind, o->number, bytes);
    return tlv_bytes((size_t)o->option->key.len, value);
}

static uint8_t *shown_write(uint8_t *at, const struct shown *o) {
    uint8_t bytes[8];
    struct tlv_entry e = {.key_kind = TLV_STRING,
                          .value_kind = o->option->kind,
                          .key = {(const uint8_t *)o->option->key.ptr, o->option->key.len}};
    if (o->option->kind == TLV_STRING)
        e.value = (struct bytes){(const uint8_t *)o->text, (int32_t)strlen(o->text)};
    else
        e.value = (struct bytes){bytes, (int32_t)option_number_bytes(o->option->kind, o->number, bytes)};
    return tlv_write(at, &e);
}

/* The fields of 0.11 that the options repeat. */
static void show_field(struct iggy_topic *out, const struct option *o, const char *text, uint64_t number) {
    if (str_equal(o->key, STR("message_expiry")))
        out->message_expiry_us = number;
    else if (str_equal(o->key, STR("max_topic_size")))
        out->max_topic_size = number;
    else if (str_equal(o->key, STR("compression_algorithm")))
        out->compression = strcmp(text, "gzip") == 0 ? 2 : 1;
}

#define SHOWN_MAX 32

/* All options of a topic in this version. How many. */
static int shown_collect(const struct topic_settings *s, uint32_t version, uint32_t partitions_count,
                         struct shown out[SHOWN_MAX]) {
    size_t all_count;
    const struct option *all = options_all(&all_count);
    int count = 0;
    for (size_t i = 0; i < all_count && count < SHOWN_MAX; i++) {
        const struct option *o = &all[i];
        struct store_setting kept = {.value = NULL};
        if (o->scope != IGGY_RESOURCE_TOPIC || !option_is_on(o, version) ||
            o->standard == OPTION_STANDARD_NONE)
            continue;
        struct shown *show = &out[count++];
        *show = (struct shown){.option = o, .text = o->text.ptr, .number = o->number};
        show->is_set = option_value(s, partitions_count, o, &kept, &show->number);
        if (!show->is_set)
            show->number = o->number;
        if (kept.value && kept.value[0])
            show->text = kept.value;
    }
    return count;
}

static struct bytes shown_block(const struct shown *shown, int count, bool is_set, uint8_t **at) {
    uint8_t *from = *at;
    for (int i = 0; i < count; i++)
        if (shown[i].is_set == is_set)
            *at = shown_write(*at, &shown[i]);
    return (struct bytes){from, (int32_t)(*at - from)};
}

enum status topic_options_show(const struct topic *t, uint32_t version, struct arena *a,
                               struct iggy_topic *out) {
    struct topic_settings s;
    struct shown shown[SHOWN_MAX];
    topic_settings_load(&s, a, t);
    int count = shown_collect(&s, version, out->partitions_count, shown);
    size_t bytes = 0;
    for (int i = 0; i < count; i++) {
        bytes += shown_bytes(&shown[i]);
        show_field(out, shown[i].option, shown[i].text, shown[i].number);
    }
    uint8_t *at = arena_take(a, bytes);
    if (s.no_memory || !at)
        return ST_NO_MEMORY;
    out->options = shown_block(shown, count, true, &at);
    out->derived = shown_block(shown, count, false, &at);
    return ST_OK;
}
