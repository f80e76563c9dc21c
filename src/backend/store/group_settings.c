/*
 * What is set for consumer groups: rows of the catalog, and all of them in memory, where each heartbeat looks (D9-14). A change is made in the pool:
 * first in the catalog, then in memory, so nobody reads what a crash could take back.
 */
#include "backend/store/store_impl.h"

#include "base/clock.h"
#include "base/logging.h"
#include "base/mem.h"
#include "store/store_users.h"

struct configured_group {
    struct backend_group_settings settings;
    struct str name; /* behind the struct */
};

static int compare_group(const void *key, const void *row) {
    return str_compare(*(const struct str *)key, ((const struct configured_group *)row)->name);
}

static struct configured_group *group_new(struct str name, struct backend_group_settings settings) {
    struct configured_group *g = mem_take(sizeof *g + (size_t)name.len);
    if (!g)
        return NULL;
    char *text = (char *)(g + 1);
    memcpy(text, name.ptr, (size_t)name.len);
    *g = (struct configured_group){settings, {text, name.len}};
    return g;
}

static bool settings_equal(struct backend_group_settings a, struct backend_group_settings b) {
    return a.session_ms == b.session_ms && a.heartbeat_ms == b.heartbeat_ms;
}

static bool settings_are_none(struct backend_group_settings s) {
    return s.session_ms == 0 && s.heartbeat_ms == 0;
}

void configured_groups_init(struct configured_groups *c) {
    pthread_mutex_init(&c->changes, NULL);
    pthread_mutex_init(&c->lock, NULL);
}

void configured_groups_release(struct configured_groups *c) {
    for (size_t i = 0; i < c->rows.count; i++)
        mem_free(c->rows.rows[i]);
    sorted_release(&c->rows);
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->changes);
}

/* Before anybody else sees the rows. */
static enum status load_one(void *user, const struct store_group_settings *from) {
    struct configured_groups *c = user;
    if (from->group.len < 1)
        return ST_CORRUPT;
    enum status st = sorted_reserve(&c->rows, 1);
    struct configured_group *g =
        st ? NULL
           : group_new(from->group, (struct backend_group_settings){from->session_ms, from->heartbeat_ms});
    if (!g)
        return ST_NO_MEMORY;
    sorted_put(&c->rows, sorted_place(&c->rows, compare_group, &g->name), g);
    return ST_OK;
}

enum status configured_groups_load(struct configured_groups *c, struct store *s) {
    return store_each_group_settings(s, load_one, c);
}

struct backend_group_settings store_settings_of_group(struct backend *backend, struct str group) {
    struct configured_groups *c = &store_backend_of(backend)->configured_groups;
    struct backend_group_settings settings = {0};
    pthread_mutex_lock(&c->lock);
    const struct configured_group *g = sorted_find(&c->rows, compare_group, &group);
    if (g)
        settings = g->settings;
    pthread_mutex_unlock(&c->lock);
    return settings;
}

/* ---- a change, with `changes` held: nobody else changes the rows ---- */

/* A row for a group that has none, and room for it. */
static enum status row_prepare(struct configured_groups *c, const struct backend_group_change *change,
                               struct configured_group **out) {
    if (c->rows.count >= BACKEND_CONFIGURED_GROUPS_MAX)
        return ST_POLICY;
    struct configured_group *row = group_new(change->group, change->settings);
    if (!row)
        return ST_NO_MEMORY;
    pthread_mutex_lock(&c->lock);
    enum status st = sorted_reserve(&c->rows, 1);
    pthread_mutex_unlock(&c->lock);
    if (st)
        mem_free(row);
    else
        *out = row;
    return st;
}

/* In memory, what the catalog has already. row: of a group that had none; taken over. */
static void rows_change(struct configured_groups *c, const struct backend_group_change *change,
                        struct configured_group *row) {
    struct configured_group *gone = NULL;
    pthread_mutex_lock(&c->lock);
    size_t place = sorted_place(&c->rows, compare_group, &change->group);
    if (row) {
        sorted_put(&c->rows, place, row);
    } else if (settings_are_none(change->settings)) {
        gone = c->rows.rows[place];
        sorted_take(&c->rows, place, 1);
    } else {
        ((struct configured_group *)c->rows.rows[place])->settings = change->settings;
    }
    pthread_mutex_unlock(&c->lock);
    mem_free(gone);
}

static enum status change_make(struct store_backend *b, const struct backend_group_change *change) {
    struct configured_groups *c = &b->configured_groups;
    struct configured_group *row = NULL;
    struct backend_group_settings now = store_settings_of_group(&b->base, change->group);
    if (!settings_equal(now, change->before))
        return ST_AGAIN;
    if (settings_equal(now, change->settings))
        return ST_OK;
    enum status st = settings_are_none(now) ? row_prepare(c, change, &row) : ST_OK;
    if (st)
        return st;
    st = store_group_settings_set(b->store,
                                  &(struct store_group_settings){change->group, change->settings.session_ms,
                                                                 change->settings.heartbeat_ms});
    if (st) {
        mem_free(row);
        return st;
    }
    rows_change(c, change, row);
    log_line(LOG_INFO, "store", "group settings changed", LSTR("group", change->group),
             LINT("session_ms", change->settings.session_ms),
             LINT("heartbeat_ms", change->settings.heartbeat_ms));
    return ST_OK;
}

void configured_groups_change(struct store_backend *b, struct backend_configure_groups *call) {
    for (int32_t i = 0; i < call->parts_count; i++) {
        struct backend_group_change *change = &call->parts[i];
        if (change->status)
            continue;
        pthread_mutex_lock(&b->configured_groups.changes);
        change->status = clock_ms() >= call->deadline_ms ? ST_TIMED_OUT : change_make(b, change);
        pthread_mutex_unlock(&b->configured_groups.changes);
    }
}

static void configure_groups_run(struct store_backend *b, void *call) {
    configured_groups_change(b, call);
}

void store_configure_groups_op(struct backend *b, struct backend_configure_groups *call) {
    store_job_start(store_backend_of(b), &call->op, call, configure_groups_run);
}
