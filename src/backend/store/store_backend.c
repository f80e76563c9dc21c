#include "backend/store/store_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "backend/store/store_impl.h"
#include "base/clock.h"
#include "base/logging.h"
#include "base/mem.h"
#include "net/loop.h"

#define UPKEEP_MS      ((int64_t)60 * 1000)
#define CLUSTER_ID_KEY "cluster.id"
#define WAIT_STEP_US   1000

static void upkeep_run(struct store_backend *b);
static void sync_run(struct store_backend *b);

static const struct backend_ops store_ops = {
    .name = "embedded",
    .controller = true,
    .topics = store_topics_op,
    .create = store_create_op,
    .delete = store_delete_op,
    .grow = store_grow_op,
    .configure = store_configure_op,
    .append = store_append_op,
    .read = store_read_op,
    .read_release = store_read_release_op,
    .watch = store_watch_op,
    .offsets = store_offsets_op,
    .trim = store_trim_op,
    .commit = store_commit_op,
    .committed = store_committed_op,
    .groups = store_groups_op,
    .group_has_offsets = store_group_has_offsets,
    .configure_groups = store_configure_groups_op,
    .group_settings = store_settings_of_group,
};

/* A new cluster id as Kafka writes them: 16 random bytes in URL-safe base64. */
static enum status cluster_id_make(char out[23]) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint8_t random[18] = {0};
    if (getrandom(random, 16, 0) != 16)
        return ST_IO;
    for (int i = 0; i < 22; i++) {
        int bit = i * 6;
        unsigned pair = (unsigned)random[bit / 8] << 8 | random[bit / 8 + 1];
        out[i] = digits[pair >> (10 - bit % 8) & 63];
    }
    out[22] = '\0';
    return ST_OK;
}

/* The configured cluster id, or the one that is kept, or a new one that is kept from now on. */
static enum status cluster_id_settle(struct store_backend *b, const char *configured) {
    if (configured) {
        b->cluster_id = mem_text(str_of(configured));
        return b->cluster_id ? ST_OK : ST_NO_MEMORY;
    }
    enum status st = store_value_get(b->store, CLUSTER_ID_KEY, &b->cluster_id);
    if (st || b->cluster_id)
        return st;
    char made[23];
    st = cluster_id_make(made);
    if (!st)
        st = store_value_set(b->store, CLUSTER_ID_KEY, made);
    if (st)
        return st;
    b->cluster_id = mem_text(str_of(made));
    return b->cluster_id ? ST_OK : ST_NO_MEMORY;
}

enum status store_backend_new(const struct store_backend_settings *settings, struct backend **out,
                              struct store_error *error) {
    struct store_backend *b = mem_take_zeroed(1, sizeof *b);
    enum status st = ST_NO_MEMORY;
    if (!b)
        goto fail;
    b->base.ops = &store_ops;
    offset_changes_init(&b->offset_changes, clock_ms, clock_wall_ms());
    configured_groups_init(&b->configured_groups);
    b->settings = *settings;
    b->upkeep = (struct background){.backend = b, .run = upkeep_run};
    b->sync = (struct background){.backend = b, .run = sync_run};
    char *stream = mem_text(str_of(settings->stream));
    if (!stream)
        goto fail;
    b->stream = str_of(stream);
    const struct store_settings want = {
        .data_dir = settings->data_dir,
        .segment_bytes = settings->segment_bytes,
        .segment_ms = settings->segment_ms,
        .user_bytes = sizeof(struct lane),
        .user_init = lane_init,
        .user_gone = lane_gone,
        .user_release = lane_release,
    };
    st = store_open(&want, &b->store, error);
    if (st)
        goto fail_told;
    st = store_stream_ensure(b->store, b->stream);
    if (!st)
        st = cluster_id_settle(b, settings->cluster_id);
    if (!st)
        st = configured_groups_load(&b->configured_groups, b->store);
    if (st)
        goto fail;
    size_t id_bytes = strlen(b->cluster_id);
    memcpy(b->cluster.b, b->cluster_id, id_bytes < sizeof b->cluster.b ? id_bytes : sizeof b->cluster.b);
    *out = &b->base;
    return ST_OK;

fail:
    snprintf(error->text, sizeof error->text, "%s: %s", settings->data_dir, status_text(st));
fail_told:
    if (b)
        store_backend_free(&b->base);
    return st;
}

const char *store_backend_cluster_id(const struct backend *backend) {
    return container_of(backend, struct store_backend, base)->cluster_id;
}

struct store *store_backend_store(struct backend *backend) {
    return store_backend_of(backend)->store;
}

struct uuid store_backend_cluster(const struct backend *backend) {
    return container_of(backend, struct store_backend, base)->cluster;
}

/* ---- what runs beside the requests ---- */

/* fn for every partition of every topic of every stream, until the backend stops. */
static void each_partition(struct store_backend *b,
                           void (*fn)(struct store_backend *, struct topic *, struct partition *)) {
    struct topic **topics;
    int32_t count;
    if (store_topics_in(b->store, UINT32_MAX, &topics, &count))
        return;
    for (int32_t i = 0; i < count; i++) {
        for (int32_t k = 0; k < topic_partitions_count(topics[i]) && !atomic_load(&b->stopping); k++)
            fn(b, topics[i], topic_partition(topics[i], k));
        topic_unref(topics[i]);
    }
    mem_free(topics);
}

static int64_t topic_number(const struct topic *t, const char *key, int64_t otherwise) {
    char *text = topic_setting(t, key);
    int64_t value = text ? strtoll(text, NULL, 10) : otherwise;
    mem_free(text);
    return value;
}

/* What Kafka would compact and not delete is kept for ever: nothing here compacts (D6-13). */
static struct store_retention topic_retention(const struct store_backend *b, const struct topic *t) {
    char *policy = topic_setting(t, "cleanup.policy");
    bool deletes = !policy || str_list_has(str_of(policy), STR("delete"));
    mem_free(policy);
    if (!deletes)
        return (struct store_retention){.ms = -1, .bytes = -1};
    return (struct store_retention){.ms = topic_number(t, "retention.ms", b->settings.retention_ms),
                                    .bytes = topic_number(t, "retention.bytes", b->settings.retention_bytes)};
}

static void partition_upkeep(struct store_backend *b, struct topic *t, struct partition *p) {
    int64_t cut = 0;
    enum status st = partition_open(p, &cut);
    const struct str name = topic_info(t)->name_str;
    if (cut > 0)
        log_line(LOG_WARN, "store", "a half-written end was cut", LSTR("topic", name), LINT("bytes", cut));
    if (st == ST_CORRUPT)
        log_line_limited(LOG_ERROR, "store",
                         "damaged segment: what is whole before it is served, appends are refused",
                         LSTR("topic", name));
    if (st)
        return;
    const struct store_retention keep = topic_retention(b, t);
    int32_t gone = 0;
    st = partition_retain(p, &keep, clock_wall_ms(), &gone);
    if (st && st != ST_NOT_FOUND)
        log_line_limited(LOG_ERROR, "store", "retention failed", LSTR("topic", name),
                         LTEXT("cause", status_text(st)));
    if (gone > 0)
        log_line(LOG_INFO, "store", "segments dropped by retention", LSTR("topic", name),
                 LINT("segments", gone));
}

static void upkeep_run(struct store_backend *b) {
    each_partition(b, partition_upkeep);
}

static void partition_sync_soon(struct store_backend *b, struct topic *t, struct partition *p) {
    (void)b;
    if (partition_is_open(p) && partition_unsynced_bytes(p) > 0)
        lane_want_sync(t, p, NULL, 0);
}

static void sync_run(struct store_backend *b) {
    each_partition(b, partition_sync_soon);
}

static void background_run(struct work *w) {
    struct background *g = container_of(w, struct background, work);
    g->run(g->backend);
    atomic_store(&g->busy, false);
}

/* Run it, unless it still runs. */
static void background_begin(struct background *g) {
    if (!atomic_exchange(&g->busy, true))
        work_submit(&g->work, background_run);
}

static void timer_again(struct store_backend *b, struct timer *t, timer_fn *fire, int64_t ms) {
    struct loop *home = b->settings.home;
    if (!atomic_load(&b->stopping) && timer_set(loop_timers(home), t, fire, loop_now_ms(home) + ms))
        log_line(LOG_ERROR, "store", "no memory for a timer: retention and interval syncs stop");
}

static void upkeep_on_time(struct timer *t) {
    struct store_backend *b = container_of(t, struct store_backend, upkeep_timer);
    background_begin(&b->upkeep);
    timer_again(b, t, upkeep_on_time, UPKEEP_MS);
}

static void sync_on_time(struct timer *t) {
    struct store_backend *b = container_of(t, struct store_backend, sync_timer);
    background_begin(&b->sync);
    timer_again(b, t, sync_on_time, b->settings.fsync_interval_ms);
}

static void timers_begin(struct op *op) {
    struct store_backend *b = container_of(op, struct store_backend, start_op);
    upkeep_on_time(&b->upkeep_timer);
    if (b->settings.fsync == FSYNC_INTERVAL)
        sync_on_time(&b->sync_timer);
}

static void timers_end(struct op *op) {
    struct store_backend *b = container_of(op, struct store_backend, stop_op);
    timer_clear(loop_timers(b->settings.home), &b->upkeep_timer);
    timer_clear(loop_timers(b->settings.home), &b->sync_timer);
    atomic_store(&b->timers_stopped, true);
}

void store_backend_start(struct backend *backend) {
    struct store_backend *b = store_backend_of(backend);
    op_init(&b->start_op, b->settings.home, timers_begin);
    loop_post(&b->start_op);
}

void store_backend_stop(struct backend *backend) {
    struct store_backend *b = store_backend_of(backend);
    atomic_store(&b->stopping, true);
    op_init(&b->stop_op, b->settings.home, timers_end);
    loop_post(&b->stop_op);
    while (!atomic_load(&b->timers_stopped) || atomic_load(&b->upkeep.busy) || atomic_load(&b->sync.busy))
        usleep(WAIT_STEP_US);
}

void store_backend_free(struct backend *backend) {
    if (!backend)
        return;
    struct store_backend *b = store_backend_of(backend);
    store_close(b->store);
    offset_changes_release(&b->offset_changes);
    configured_groups_release(&b->configured_groups);
    mem_free(b->cluster_id);
    mem_free((void *)(uintptr_t)b->stream.ptr);
    mem_free(b);
}
