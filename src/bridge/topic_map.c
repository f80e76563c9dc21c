#include "bridge/topic_map.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "iggy/iggy.h"

#define KAFKA_NAME_BYTES_MAX 249
#define ENTRIES_ROOM_MIN     8
#define SHOWN                64 /* bytes of a name in a message */

struct topic_map_entry {
    char *name, *stream, *topic; /* owned; stream and topic NULL until they are set */
};

/* The problem, with what it is about. */
static enum status invalid(struct topic_map *m, struct str what, const char *problem) {
    int shown = what.len < 0 ? 0 : what.len < SHOWN ? what.len : SHOWN;
    snprintf(m->problem, sizeof m->problem, "%.*s%s%s", shown, what.ptr ? what.ptr : "",
             shown > 0 ? ": " : "", problem);
    return ST_INVALID;
}

bool topic_map_is_kafka_name(struct str name) {
    if (name.len < 1 || name.len > KAFKA_NAME_BYTES_MAX || str_equal(name, STR(".")) ||
        str_equal(name, STR("..")))
        return false;
    for (int32_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                    c == '_' || c == '-';
        if (!good)
            return false;
    }
    return true;
}

/* What Iggy can be asked for, and is not blank. */
static bool is_iggy_name(struct str name) {
    if (name.len < 1 || name.len > IGGY_NAME_BYTES_MAX || !utf8_is_valid(name.ptr, (size_t)name.len))
        return false;
    for (int32_t i = 0; i < name.len; i++) {
        if (name.ptr[i] == '\0')
            return false;
    }
    return name.ptr[0] != ' ' && name.ptr[name.len - 1] != ' ';
}

static int place_compare(const struct topic_map_entry *e, const struct iggy_place *place) {
    int order = str_compare(str_of(e->stream), place->stream);
    return order ? order : str_compare(str_of(e->topic), place->topic);
}

static int compare_names(const void *a, const void *b) {
    const struct topic_map_entry *left = a, *right = b;
    return str_compare(str_of(left->name), str_of(right->name));
}

static int compare_places(const void *a, const void *b) {
    const struct topic_map_entry *left = *(struct topic_map_entry *const *)a,
                                 *right = *(struct topic_map_entry *const *)b;
    const struct iggy_place place = {str_of(right->stream), str_of(right->topic)};
    return place_compare(left, &place);
}

static int compare_name_to_entry(const void *name, const void *entry) {
    return str_compare(*(const struct str *)name, str_of(((const struct topic_map_entry *)entry)->name));
}

static int compare_place_to_entry(const void *place, const void *entry) {
    return -place_compare(*(struct topic_map_entry *const *)entry, place);
}

/* ---- build ---- */

/* The entry of a name, added where there is none. Before it is sealed the list is not sorted; a file's rows of a topic come together. */
static enum status entry_of(struct topic_map *m, struct str name, struct topic_map_entry **out) {
    for (size_t i = m->entries_count; i-- > 0;) {
        *out = &m->entries[i];
        if (str_equal(str_of((*out)->name), name))
            return ST_OK;
    }
    if (m->entries_count == m->entries_room) {
        size_t room = m->entries_room * 2 > ENTRIES_ROOM_MIN ? m->entries_room * 2 : ENTRIES_ROOM_MIN;
        struct topic_map_entry *entries = mem_grow(m->entries, room * sizeof *entries);
        if (!entries)
            return ST_NO_MEMORY;
        m->entries = entries;
        m->entries_room = room;
    }
    char *copy = mem_text(name);
    if (!copy)
        return ST_NO_MEMORY;
    *out = &m->entries[m->entries_count++];
    **out = (struct topic_map_entry){.name = copy};
    return ST_OK;
}

static enum status text_set(struct topic_map *m, struct str key, struct str value, char **field) {
    if (*field)
        return invalid(m, key, "is set twice in the topic map");
    if (!is_iggy_name(value))
        return invalid(m, key, "must be a name of 1 to 255 bytes, without blanks around it");
    *field = mem_text(value);
    return *field ? ST_OK : ST_NO_MEMORY;
}

enum status topic_map_set(struct topic_map *m, struct str topic, struct str key, struct str value) {
    if (topic.len < 0) {
        if (!str_equal(key, STR("default_stream")))
            return invalid(m, key, "is not known; the topic map has default_stream and [topics.NAME]");
        return text_set(m, key, value, &m->default_stream);
    }
    bool is_stream = str_equal(key, STR("stream"));
    if (!is_stream && !str_equal(key, STR("topic")))
        return invalid(m, key, "is not known; a topic of the topic map has stream and topic");
    if (!topic_map_is_kafka_name(topic))
        return invalid(m, topic, "is not a name that a Kafka topic can have");
    struct topic_map_entry *e = NULL;
    enum status st = entry_of(m, topic, &e);
    return st ? st : text_set(m, key, value, is_stream ? &e->stream : &e->topic);
}

static struct topic_map_entry *entry_find(const struct topic_map *m, struct str name) {
    return m->entries_count == 0
               ? NULL
               : bsearch(&name, m->entries, m->entries_count, sizeof *m->entries, compare_name_to_entry);
}

/* An entry that points into the default stream meets the topic of that name, unless that one has an entry itself. */
static enum status check_places(struct topic_map *m) {
    for (size_t i = 0; i < m->entries_count; i++) {
        const struct topic_map_entry *e = m->by_place[i];
        if (i > 0 && compare_places(&m->by_place[i - 1], &m->by_place[i]) == 0)
            return invalid(m, str_of(e->name),
                           "maps to the same Iggy topic as another name of the topic map");
        struct str topic = str_of(e->topic);
        if (str_equal(str_of(e->stream), str_of(m->default_stream)) && topic_map_is_kafka_name(topic) &&
            !entry_find(m, topic))
            return invalid(m, str_of(e->name),
                           "maps to the Iggy topic that a topic of the default stream stands for");
    }
    return ST_OK;
}

enum status topic_map_seal(struct topic_map *m) {
    if (!m->default_stream)
        return invalid(m, STR_NULL, "the topic map has no default_stream");
    for (size_t i = 0; i < m->entries_count; i++)
        if (!m->entries[i].stream || !m->entries[i].topic)
            return invalid(m, str_of(m->entries[i].name), "needs both stream and topic in the topic map");
    m->by_place = mem_take_zeroed(m->entries_count + 1, sizeof *m->by_place);
    if (!m->by_place)
        return ST_NO_MEMORY;
    if (m->entries_count == 0)
        return ST_OK;
    qsort(m->entries, m->entries_count, sizeof *m->entries, compare_names);
    for (size_t i = 0; i < m->entries_count; i++)
        m->by_place[i] = &m->entries[i];
    qsort(m->by_place, m->entries_count, sizeof(struct topic_map_entry *), compare_places);
    return check_places(m);
}

/* ---- look up ---- */

void topic_map_find(const struct topic_map *m, struct str name, struct iggy_place *out) {
    const struct topic_map_entry *e = entry_find(m, name);
    *out = e ? (struct iggy_place){str_of(e->stream), str_of(e->topic)}
             : (struct iggy_place){str_of(m->default_stream), name};
}

bool topic_map_name_of(const struct topic_map *m, const struct iggy_place *place, struct str *name_out,
                       bool *shadowed_out) {
    struct topic_map_entry *const *e =
        m->entries_count == 0
            ? NULL
            : bsearch(place, m->by_place, m->entries_count, sizeof *m->by_place, compare_place_to_entry);
    *shadowed_out = false;
    if (e) {
        *name_out = str_of((*e)->name);
        return true;
    }
    if (!str_equal(place->stream, str_of(m->default_stream)) || !topic_map_is_kafka_name(place->topic))
        return false;
    *shadowed_out = entry_find(m, place->topic) != NULL;
    *name_out = place->topic;
    return !*shadowed_out;
}

bool topic_map_next_stream(const struct topic_map *m, size_t *at, struct str *out) {
    struct str first = str_of(m->default_stream);
    if ((*at)++ == 0) {
        *out = first;
        return true;
    }
    for (; *at - 2 < m->entries_count; (*at)++) {
        size_t i = *at - 2;
        *out = str_of(m->by_place[i]->stream);
        if (!str_equal(*out, first) && (i == 0 || !str_equal(*out, str_of(m->by_place[i - 1]->stream))))
            return true;
    }
    return false;
}

void topic_map_release(struct topic_map *m) {
    for (size_t i = 0; i < m->entries_count; i++) {
        mem_free(m->entries[i].name);
        mem_free(m->entries[i].stream);
        mem_free(m->entries[i].topic);
    }
    mem_free(m->entries);
    mem_free(m->by_place);
    mem_free(m->default_stream);
    *m = (struct topic_map){0};
}
