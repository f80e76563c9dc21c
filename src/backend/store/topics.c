#include "backend/store/store_impl.h"

#include "base/clock.h"
#include "base/logging.h"
#include "base/mem.h"
#include "bridge/topic_map.h"

/* ---- look up ---- */

struct settings_copy {
    struct arena *arena;
    struct backend_setting *to;
    int32_t count;
    bool failed;
};

static void count_setting(void *user, const char *key, const char *value) {
    (void)key;
    (void)value;
    (*(int32_t *)user)++;
}

static void copy_setting(void *user, const char *key, const char *value) {
    struct settings_copy *copy = user;
    struct backend_setting *to = &copy->to[copy->count++];
    to->key = arena_text(copy->arena, str_of(key));
    to->value = arena_text(copy->arena, str_of(value));
    copy->failed |= !to->key.ptr || !to->value.ptr;
}

static enum status topic_settings_copy(const struct topic *t, struct arena *arena,
                                       struct backend_topic *out) {
    int32_t count = 0;
    topic_settings_each(t, count_setting, &count);
    struct settings_copy copy = {.arena = arena,
                                 .to = arena_take_array(arena, struct backend_setting, count)};
    if (!copy.to)
        return ST_NO_MEMORY;
    topic_settings_each(t, copy_setting, &copy);
    out->settings = copy.to;
    out->settings_count = copy.count;
    return copy.failed ? ST_NO_MEMORY : ST_OK;
}

static enum status topic_describe(const struct topic *t, const struct backend_topics *call,
                                  struct backend_topic *out) {
    const struct topic_info *info = topic_info(t);
    out->name = arena_text(call->arena, info->name_str);
    out->id = info->id;
    out->partitions_count = topic_partitions_count(t);
    if (!out->name.ptr)
        return ST_NO_MEMORY;
    return call->want_settings ? topic_settings_copy(t, call->arena, out) : ST_OK;
}

/* Iggy clients may have made topics of other names: those are not for Kafka's. */
static void topics_list(struct store_backend *b, struct backend_topics *call) {
    struct topic **found;
    int32_t count;
    call->status = store_topics(b->store, b->stream, &found, &count);
    if (call->status)
        return;
    call->topics = arena_take_array(call->arena, struct backend_topic, count);
    call->topics_count = 0;
    if (!call->topics)
        call->status = ST_NO_MEMORY;
    for (int32_t i = 0; i < count; i++) {
        bool listed = topic_map_is_kafka_name(topic_info(found[i])->name_str);
        if (!call->status && listed)
            call->status = topic_describe(found[i], call, &call->topics[call->topics_count++]);
        topic_unref(found[i]);
    }
    mem_free(found);
}

/* False: it has to be created. */
static bool topics_find(struct store_backend *b, struct backend_topics *call,
                        struct backend_topics_part *part) {
    struct topic *t = topic_of_part(b, part->name, &part->id, &part->status);
    if (t)
        part->status = topic_describe(t, call, &part->topic);
    topic_unref(t);
    return part->status != ST_NOT_FOUND || !call->create;
}

static enum status topic_create(struct store_backend *b, const struct store_topic_new *want,
                                struct uuid *id_out) {
    struct topic *t;
    enum status st = store_topic_create(b->store, want, &t);
    if (st) {
        if (st != ST_EXISTS)
            log_line_limited(LOG_ERROR, "store", "topic not created", LSTR("topic", want->name),
                             LTEXT("cause", status_text(st)));
        return st;
    }
    *id_out = topic_info(t)->id;
    topic_unref(t);
    log_line(LOG_INFO, "store", "topic created", LSTR("topic", want->name),
             LINT("partitions", want->partitions_count));
    return ST_OK;
}

static void topics_run(struct store_backend *b, void *user) {
    struct backend_topics *call = user;
    for (int32_t i = 0; i < call->parts_count; i++) {
        struct backend_topics_part *part = &call->parts[i];
        if (part->status != ST_NOT_FOUND || part->name.len < 0)
            continue;
        const struct store_topic_new want = {.stream = b->stream,
                                             .name = part->name,
                                             .partitions_count = call->partitions_default,
                                             .cluster = b->cluster};
        struct uuid id;
        enum status st = topic_create(b, &want, &id);
        if (st && st != ST_EXISTS)
            part->status = st;
        else
            topics_find(b, call, part);
    }
}

void store_topics_op(struct backend *backend, struct backend_topics *call) {
    struct store_backend *b = store_backend_of(backend);
    bool complete = true;
    call->status = ST_OK;
    if (call->all)
        topics_list(b, call);
    for (int32_t i = 0; i < call->parts_count; i++)
        if (!call->parts[i].status)
            complete &= topics_find(b, call, &call->parts[i]);
    if (complete) {
        op_start(&call->op, NULL);
        op_complete(&call->op, ST_OK);
    } else {
        store_job_start(b, &call->op, call, topics_run);
    }
}

/* ---- create ---- */

/* The part's settings as the store takes them; NULL: no memory. */
static struct store_setting *settings_of(const struct backend_create_part *part) {
    struct store_setting *out = mem_take_zeroed((size_t)part->settings_count, sizeof *out);
    for (int32_t i = 0; out && i < part->settings_count; i++) {
        out[i].key = mem_text(part->settings[i].key);
        out[i].value = mem_text(part->settings[i].value);
    }
    return out;
}

static void settings_free(struct store_setting *settings, int32_t count) {
    for (int32_t i = 0; settings && i < count; i++) {
        mem_free(settings[i].key);
        mem_free(settings[i].value);
    }
    mem_free(settings);
}

static enum status create_one(struct store_backend *b, struct backend_create_part *part) {
    struct store_setting *settings = settings_of(part);
    enum status st = settings ? ST_OK : ST_NO_MEMORY;
    for (int32_t i = 0; !st && i < part->settings_count; i++)
        if (!settings[i].key || !settings[i].value)
            st = ST_NO_MEMORY;
    const struct store_topic_new want = {.stream = b->stream,
                                         .name = part->name,
                                         .partitions_count = part->partitions_count,
                                         .settings = settings,
                                         .settings_count = part->settings_count,
                                         .cluster = b->cluster};
    if (!st)
        st = topic_create(b, &want, &part->id);
    settings_free(settings, part->settings_count);
    return st;
}

static void create_run(struct store_backend *b, void *user) {
    struct backend_create *call = user;
    for (int32_t i = 0; i < call->parts_count; i++) {
        struct backend_create_part *part = &call->parts[i];
        if (part->status)
            continue;
        struct topic *there = store_topic_find(b->store, b->stream, part->name);
        if (there)
            part->status = ST_EXISTS;
        else if (clock_ms() >= call->deadline_ms)
            part->status = ST_TIMED_OUT;
        else if (!call->validate_only)
            part->status = create_one(b, part);
        topic_unref(there);
    }
}

void store_create_op(struct backend *b, struct backend_create *call) {
    store_job_start(store_backend_of(b), &call->op, call, create_run);
}

/* ---- delete ---- */

static enum status delete_one(struct store_backend *b, struct topic *t) {
    enum status st = store_topic_delete(b->store, t);
    if (st) {
        if (st != ST_NOT_FOUND)
            log_line_limited(LOG_ERROR, "store", "topic not deleted", LSTR("topic", topic_info(t)->name_str),
                             LTEXT("cause", status_text(st)));
        return st;
    }
    log_line(LOG_INFO, "store", "topic deleted", LSTR("topic", topic_info(t)->name_str));
    return ST_OK;
}

static void delete_run(struct store_backend *b, void *user) {
    struct backend_delete *call = user;
    for (int32_t i = 0; i < call->parts_count; i++) {
        struct backend_delete_part *part = &call->parts[i];
        if (part->status)
            continue;
        struct topic *t = topic_of_part(b, part->name, &part->id, &part->status);
        if (t && part->name.len < 0)
            part->name = arena_text(call->arena, topic_info(t)->name_str);
        if (t)
            part->status = clock_ms() >= call->deadline_ms ? ST_TIMED_OUT : delete_one(b, t);
        topic_unref(t);
    }
}

void store_delete_op(struct backend *b, struct backend_delete *call) {
    store_job_start(store_backend_of(b), &call->op, call, delete_run);
}

/* ---- grow ---- */

static enum status grow_one(struct store_backend *b, const struct backend_grow *call,
                            struct backend_grow_part *part) {
    enum status st;
    struct topic *t = topic_of_part(b, part->name, &part->id, &st);
    part->partitions_before = t ? topic_partitions_count(t) : 0;
    if (!t)
        return st;
    if (part->partitions_count <= part->partitions_before)
        st = ST_INVALID;
    else if (clock_ms() >= call->deadline_ms)
        st = ST_TIMED_OUT;
    else if (!call->validate_only)
        st = store_topic_grow(b->store, t, part->partitions_count);
    topic_unref(t);
    return st;
}

static void grow_run(struct store_backend *b, void *user) {
    struct backend_grow *call = user;
    for (int32_t i = 0; i < call->parts_count; i++)
        if (!call->parts[i].status)
            call->parts[i].status = grow_one(b, call, &call->parts[i]);
}

void store_grow_op(struct backend *b, struct backend_grow *call) {
    store_job_start(store_backend_of(b), &call->op, call, grow_run);
}
