#include "kafka/group_topics.h"

#include <stdatomic.h>

#include "base/mem.h"
#include "base/sorted.h"
#include "kafka/group_patterns.h"
#include "kafka/topic_name.h"

#define NEVER_MS       INT64_MIN
#define LOOK_BYTES_MAX ((size_t)8 << 20) /* 1000 names, and what is said of them */

struct topic_row {
    struct group_topic topic; /* valid while it is there */
    bool is_there;
    int64_t asked_ms;  /* when the backend was last asked; NEVER_MS: not yet, or everything is due */
    int64_t wanted_ms; /* when a group last asked */
    struct str name;   /* text behind the struct */
};

struct group_topics {
    struct group_topics_settings settings;
    struct group_patterns *patterns; /* owned */
    struct sorted rows;              /* struct topic_row *, by name; owned */
    int64_t now_ms;                  /* the latest that was said */
    int64_t tend_ms;                 /* before then nothing is looked up */
    _Atomic int32_t stirred;
    int32_t stirred_seen;
    _Atomic bool stopping;
    bool is_looking; /* the next three are in use */
    struct backend_topics look;
    struct groups_call hop;
    struct arena arena;
};

enum status group_topics_new(const struct group_topics_settings *settings, struct group_topics **out) {
    struct group_topics *t = mem_take_zeroed(1, sizeof *t);
    if (!t)
        return ST_NO_MEMORY;
    t->settings = *settings;
    enum status st = group_patterns_new(settings, t, &t->patterns);
    if (st) {
        group_topics_free(t);
        return st;
    }
    *out = t;
    return ST_OK;
}

void group_topics_free(struct group_topics *t) {
    if (!t)
        return;
    for (size_t i = 0; i < t->rows.count; i++)
        mem_free(t->rows.rows[i]);
    sorted_release(&t->rows);
    group_patterns_free(t->patterns);
    arena_release(&t->arena);
    mem_free(t);
}

void group_topics_stir(struct group_topics *t) {
    if (!t)
        return;
    atomic_fetch_add(&t->stirred, 1);
    group_patterns_stir(t->patterns);
}

void group_topics_stop(struct group_topics *t) {
    atomic_store(&t->stopping, true);
    group_patterns_stop(t->patterns);
}

struct group_patterns *group_topics_patterns(struct group_topics *t) {
    return t->patterns;
}

/* ---- rows ---- */

static int compare_name(const void *name, const void *row) {
    return str_compare(*(const struct str *)name, ((const struct topic_row *)row)->name);
}

/* Rows that keep says no to go. */
static void rows_filter(struct group_topics *t,
                        bool (*keep)(const struct group_topics *, const struct topic_row *)) {
    size_t kept = 0;
    for (size_t i = 0; i < t->rows.count; i++) {
        if (keep(t, t->rows.rows[i]))
            t->rows.rows[kept++] = t->rows.rows[i];
        else
            mem_free(t->rows.rows[i]);
    }
    t->rows.count = kept;
}

static bool keep_there(const struct group_topics *t, const struct topic_row *row) {
    (void)t;
    return row->is_there;
}

static bool keep_wanted(const struct group_topics *t, const struct topic_row *row) {
    return t->now_ms - row->wanted_ms <= GROUP_TOPICS_UNWANTED_MS;
}

/* A name that is not there yet. NULL: no room, or no memory; it is asked for again. */
static struct topic_row *row_add(struct group_topics *t, struct str name) {
    if (t->rows.count >= GROUP_TOPICS_MAX)
        rows_filter(t, keep_there);
    if (t->rows.count >= GROUP_TOPICS_MAX || sorted_reserve(&t->rows, 1))
        return NULL;
    struct topic_row *row = mem_take_zeroed(1, sizeof *row + (size_t)name.len);
    if (!row)
        return NULL;
    memcpy(row + 1, name.ptr, (size_t)name.len);
    row->name = (struct str){(const char *)(row + 1), name.len};
    row->asked_ms = NEVER_MS;
    row->wanted_ms = t->now_ms;
    sorted_put(&t->rows, sorted_place(&t->rows, compare_name, &name), row);
    return row;
}

bool group_topics_find(struct group_topics *t, struct str name, struct group_topic *out) {
    if (!topic_name_is_valid(name))
        return false;
    struct topic_row *row = sorted_find(&t->rows, compare_name, &name);
    if (!row)
        row = row_add(t, name);
    if (!row)
        return false;
    row->wanted_ms = t->now_ms;
    if (row->is_there)
        *out = row->topic;
    return row->is_there;
}

/* True: it is another topic than before, or there is one where none was, or none where one was. */
static bool row_set(struct topic_row *row, const struct backend_topics_part *part) {
    bool is_known = part->status == ST_OK || part->status == ST_NOT_FOUND || part->status == ST_BAD_NAME;
    bool is_there = part->status == ST_OK && !uuid_is_zero(&part->topic.id); /* clients name it by its id */
    if (!is_known)
        return false;
    bool same =
        is_there == row->is_there && (!is_there || (uuid_equal(&row->topic.id, &part->topic.id) &&
                                                    row->topic.parts_count == part->topic.partitions_count));
    row->is_there = is_there;
    if (is_there)
        row->topic = (struct group_topic){part->topic.id, part->topic.partitions_count};
    return !same;
}

void group_topics_put(struct group_topics *t, struct coordinator *c, const struct backend_topics_part *parts,
                      int32_t count, int64_t now_ms) {
    bool changed = false;
    t->now_ms = now_ms;
    for (int32_t i = 0; i < count; i++) {
        struct str name = parts[i].name;
        struct topic_row *row = sorted_find(&t->rows, compare_name, &name);
        if (row) {
            changed |= row_set(row, &parts[i]);
        } else if (parts[i].status == ST_OK && name.len > 0) { /* new: no group has seen anything else */
            row = row_add(t, name);
            bool ignored = row && row_set(row, &parts[i]);
            (void)ignored;
        }
        if (row)
            row->asked_ms = now_ms;
    }
    if (changed)
        coordinator_topics_changed(c);
}

/* ---- looking up ---- */

static void look_on_done(struct op *op);
static void look_put(struct groups_call *hop, struct coordinator *c, int64_t now_ms);
static void look_on_put(struct op *op);

static bool row_is_due(const struct group_topics *t, const struct topic_row *row) {
    int64_t keep_ms = row->is_there ? GROUP_TOPICS_KNOWN_MS : GROUP_TOPICS_MISSING_MS;
    return row->asked_ms == NEVER_MS || t->now_ms - row->asked_ms >= keep_ms;
}

/* Names that are due, as parts in the arena; rows may go meanwhile. False: no memory. */
static bool look_fill(struct group_topics *t) {
    arena_init(&t->arena, NULL, 0, LOOK_BYTES_MAX);
    t->look =
        (struct backend_topics){.arena = &t->arena, .deadline_ms = t->now_ms + GROUP_TOPICS_LOOK_WAIT_MS};
    for (size_t i = 0; i < t->rows.count && t->look.parts_count < GROUP_TOPICS_LOOK_MAX; i++) {
        const struct topic_row *row = t->rows.rows[i];
        if (!row_is_due(t, row))
            continue;
        if (!t->look.parts)
            t->look.parts = arena_take_array(&t->arena, struct backend_topics_part, GROUP_TOPICS_LOOK_MAX);
        struct str name = t->look.parts ? arena_text(&t->arena, row->name) : STR_NULL;
        if (name.len < 0)
            return false;
        t->look.parts[t->look.parts_count++].name = name;
    }
    return true;
}

static void rows_stir(struct group_topics *t) {
    int32_t stirred = atomic_load(&t->stirred);
    for (size_t i = 0; stirred != t->stirred_seen && i < t->rows.count; i++)
        ((struct topic_row *)t->rows.rows[i])->asked_ms = NEVER_MS;
    t->stirred_seen = stirred;
}

void group_topics_tend(struct group_topics *t, int64_t now_ms) {
    t->now_ms = now_ms;
    group_patterns_tend(t->patterns, now_ms);
    if (t->is_looking || now_ms < t->tend_ms || atomic_load(&t->stopping))
        return;
    t->tend_ms = now_ms + GROUP_TOPICS_TEND_MS;
    rows_filter(t, keep_wanted);
    rows_stir(t);
    if (!look_fill(t) || t->look.parts_count == 0) {
        arena_release(&t->arena);
        return;
    }
    t->is_looking = true;
    op_init(&t->look.op, t->settings.home, look_on_done);
    backend_topics(t->settings.backend, &t->look);
}

static void look_on_done(struct op *op) {
    struct group_topics *t = container_of(op, struct group_topics, look.op);
    t->hop = (struct groups_call){.begin = look_put};
    op_init(&t->hop.op, t->settings.home, look_on_put);
    groups_call(*t->settings.groups, &t->hop);
}

static void look_put(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    struct group_topics *t = container_of(hop, struct group_topics, hop);
    group_topics_put(t, c, t->look.parts, t->look.parts_count, now_ms);
    groups_call_end(hop);
}

static void look_on_put(struct op *op) {
    struct group_topics *t = container_of(op, struct group_topics, hop.op);
    arena_release(&t->arena);
    t->is_looking = false;
}

/* ---- assignments ---- */

void group_parts_count(struct group_parts parts, int32_t *topics_out, int32_t *parts_out) {
    struct group_part part;
    struct uuid last = {{0}};
    *topics_out = *parts_out = 0;
    while (group_parts_next(&parts, &part)) {
        *topics_out += *parts_out == 0 || !uuid_equal(&part.topic_id, &last);
        last = part.topic_id;
        ++*parts_out;
    }
}
