/*
 * Settings of topics, changed: read with their version, changed in memory, and stored if nobody else has done so meanwhile; else once
 * more from the start.
 */
#include "backend/store/store_impl.h"

#include "base/clock.h"
#include "base/logging.h"
#include "base/mem.h"

/* A topic's settings under change. */
struct draft {
    struct store_setting *items; /* owned, as their texts */
    int32_t count, room;
    bool no_memory;
};

static void draft_free(struct draft *d) {
    for (int32_t i = 0; i < d->count; i++) {
        mem_free(d->items[i].key);
        mem_free(d->items[i].value);
    }
    mem_free(d->items);
}

static void draft_add(struct draft *d, struct str key, struct str value) {
    if (d->count == d->room) {
        int32_t room = d->room * 2 + 16;
        struct store_setting *items = mem_grow(d->items, (size_t)room * sizeof *items);
        d->no_memory |= !items;
        if (!items)
            return;
        d->items = items;
        d->room = room;
    }
    const struct store_setting one = {mem_text(key), mem_text(value)};
    d->items[d->count++] = one;
    d->no_memory |= !one.key || !one.value;
}

static void draft_load_one(void *user, const char *key, const char *value) {
    draft_add(user, str_of(key), str_of(value));
}

/* -1: not set. */
static int32_t draft_find(const struct draft *d, struct str key) {
    for (int32_t i = 0; i < d->count; i++)
        if (str_equal(str_of(d->items[i].key), key))
            return i;
    return -1;
}

static void draft_drop(struct draft *d, int32_t i) {
    mem_free(d->items[i].key);
    mem_free(d->items[i].value);
    d->items[i] = d->items[--d->count];
}

static bool is_as_before(const struct draft *d, const struct backend_change *change) {
    int32_t i = draft_find(d, change->key);
    if (i < 0 || change->before.len < 0)
        return i < 0 && change->before.len < 0;
    return str_equal(str_of(d->items[i].value), change->before);
}

static void draft_put(struct draft *d, const struct backend_change *change) {
    int32_t i = draft_find(d, change->key);
    if (i >= 0)
        draft_drop(d, i);
    if (change->value.len >= 0)
        draft_add(d, change->key, change->value);
}

/* ST_AGAIN: a bound value is another one. */
static enum status draft_change(struct draft *d, const struct backend_configure_part *part) {
    for (int32_t i = 0; i < part->changes_count && !d->no_memory; i++) {
        const struct backend_change *change = &part->changes[i];
        if (change->bound && !is_as_before(d, change))
            return ST_AGAIN;
        draft_put(d, change);
    }
    return d->no_memory ? ST_NO_MEMORY : ST_OK;
}

/* One attempt. *raced_out: somebody else has changed settings in between, whichever. */
static enum status configure_try(struct store_backend *b, struct topic *t,
                                 const struct backend_configure *call,
                                 const struct backend_configure_part *part, bool *raced_out) {
    struct draft d = {0};
    uint64_t version = topic_settings_version(t);
    topic_settings_each(t, draft_load_one, &d);
    enum status st = draft_change(&d, part);
    if (!st && !call->validate_only && part->changes_count > 0) {
        const struct store_topic_settings next = {d.items, d.count, version};
        st = store_topic_set(b->store, t, &next);
        *raced_out = st == ST_AGAIN;
    }
    draft_free(&d);
    return st;
}

static enum status configure_one(struct store_backend *b, const struct backend_configure *call,
                                 const struct backend_configure_part *part) {
    enum status st;
    struct topic *t = topic_of_part(b, part->name, NULL, &st);
    bool again = t != NULL;
    while (again) {
        again = false;
        st = clock_ms() >= call->deadline_ms ? ST_TIMED_OUT : configure_try(b, t, call, part, &again);
    }
    if (st == ST_OK && !call->validate_only)
        log_line(LOG_INFO, "store", "topic settings changed", LSTR("topic", part->name),
                 LINT("changes", part->changes_count));
    topic_unref(t);
    return st;
}

static void configure_run(struct store_backend *b, void *user) {
    struct backend_configure *call = user;
    for (int32_t i = 0; i < call->parts_count; i++)
        if (!call->parts[i].status)
            call->parts[i].status = configure_one(b, call, &call->parts[i]);
}

void store_configure_op(struct backend *b, struct backend_configure *call) {
    store_job_start(store_backend_of(b), &call->op, call, configure_run);
}
