/*
 * Topics: what belongs together of catalog, registry and files when one comes, changes or goes. What can fail for lack of
 * memory comes before the catalog is written, what others see after it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/be.h"
#include "base/mem.h"
#include "store/offsets.h"
#include "store/partition.h"
#include "store/store_impl.h"

/* ---- create ---- */

enum status store_topic_make(struct store *s, const struct catalog_topic *row, struct topic **out) {
    struct topic_info info = {
        .id = row->id, .stream_id = row->stream_id, .topic_id = row->topic_id, .created_us = row->created_us};
    struct partition **partitions;
    struct topic *t = topic_new(&s->env, &info, row->name);
    enum status st = t ? topic_partitions_prepare(t, row->partitions_count, &partitions) : ST_NO_MEMORY;
    if (st) {
        topic_unref(t);
        return st;
    }
    topic_partitions_show(t, partitions, row->partitions_count);
    *out = t;
    return ST_OK;
}

/* Recreating a topic must give another id, in another cluster too. */
static struct uuid derive_id(const struct uuid *cluster, uint32_t stream_id, uint32_t topic_id,
                             int64_t created_us) {
    uint8_t in[32];
    struct uuid id;
    memcpy(in, cluster->b, sizeof cluster->b);
    be_set(in + 16, 4, stream_id);
    be_set(in + 20, 4, topic_id);
    be_set(in + 24, 8, (uint64_t)created_us);
    XXH128_canonicalFromHash((XXH128_canonical_t *)(void *)id.b, XXH3_128bits(in, sizeof in));
    if (uuid_is_zero(&id))
        id.b[15] = 1;
    return id;
}

/*
 * The stream's next topic number. One whose folder exists is passed over: it comes from elsewhere, as from a newer catalog that
 * was replaced by an old copy, and its data is not this topic's.
 */
static uint32_t next_number(const struct store *s, const struct stream *stream) {
    char path[64];
    for (uint32_t number = stream->next_topic_id;; number++) {
        snprintf(path, sizeof path, "topics/%u/%u", stream->id, number);
        if (faccessat(s->env.dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
            return number;
    }
}

static enum status settings_copy(const struct store_setting *from, int32_t count,
                                 struct store_setting **out) {
    struct store_setting *all = mem_take_zeroed((size_t)count, sizeof *all);
    enum status st = all ? ST_OK : ST_NO_MEMORY;
    for (int32_t i = 0; !st && i < count; i++) {
        all[i] = (struct store_setting){mem_text(str_of(from[i].key)), mem_text(str_of(from[i].value))};
        if (!all[i].key || !all[i].value)
            st = ST_NO_MEMORY;
    }
    if (st)
        catalog_settings_free(all, all ? count : 0);
    else
        *out = all;
    return st;
}

static enum status create_locked(struct store *s, const struct store_topic_new *want, struct topic **out) {
    struct store_setting *settings;
    struct topic *t;
    struct stream *stream = registry_stream(&s->registry, want->stream);
    if (!stream)
        return ST_NOT_FOUND;
    t = registry_find(&s->registry, stream->id, want->name);
    topic_unref(t);
    if (t)
        return ST_EXISTS;
    if (s->parts_count + 1 + want->partitions_count > STORE_PARTS_MAX)
        return ST_POLICY;
    struct catalog_topic row = {
        .stream_id = stream->id,
        .topic_id = next_number(s, stream),
        .name = want->name,
        .partitions_count = want->partitions_count,
        .created_us = s->env.now_wall_ms() * 1000,
    };
    row.id = derive_id(&want->cluster, row.stream_id, row.topic_id, row.created_us);
    enum status st = store_topic_make(s, &row, &t);
    if (st)
        return st;
    st = settings_copy(want->settings, want->settings_count, &settings);
    if (!st) {
        topic_settings_replace(t, settings, want->settings_count);
        st = registry_add(&s->registry, t);
    }
    if (st) {
        topic_unref(t);
        return st;
    }
    st = catalog_topic_add(s->catalog, &row, want->settings, want->settings_count);
    if (st) {
        registry_remove(&s->registry, t);
        return st;
    }
    stream->next_topic_id = row.topic_id + 1;
    stream->topics_count++;
    s->parts_count += topic_parts(t);
    if (out)
        *out = topic_ref(t);
    registry_show(&s->registry, t);
    return ST_OK;
}

enum status store_topic_create(struct store *s, const struct store_topic_new *want, struct topic **out) {
    if (!store_name_is_possible(want->name))
        return ST_BAD_NAME;
    if (want->partitions_count < 0)
        return ST_INVALID;
    pthread_mutex_lock(&s->catalog_lock);
    enum status st = create_locked(s, want, out);
    pthread_mutex_unlock(&s->catalog_lock);
    return st;
}

/* ---- delete ---- */

static enum status delete_locked(struct store *s, struct topic *t) {
    struct topic_number n = t->number;
    if (topic_deleted(t))
        return ST_NOT_FOUND;
    enum status st = catalog_topic_remove(s->catalog, n.stream_id, n.topic_id);
    if (st)
        return st;
    atomic_store(&t->deleted, true);
    registry_stream_by_id(&s->registry, n.stream_id)->topics_count--;
    s->parts_count -= topic_parts(t);
    registry_remove(&s->registry, t);
    return ST_OK;
}

/* It is gone whatever becomes of the files; what is left of them goes at the next start. */
static void delete_files(struct store *s, struct topic *t) {
    bool any;
    struct catalog_leftover row = {t->number.stream_id, t->number.topic_id, -1};
    int32_t count = topic_partitions_count(t);
    for (int32_t i = 0; i < count; i++)
        partition_delete(topic_partition(t, i));
    offsets_partitions_gone(s->offsets, &t->id, 0);
    if (store_files_remove(s, t->number, -1, 0, &any))
        return;
    pthread_mutex_lock(&s->catalog_lock);
    enum status ignored = catalog_leftovers_forget(s->catalog, &row, 1);
    (void)ignored;
    pthread_mutex_unlock(&s->catalog_lock);
}

enum status store_topic_delete(struct store *s, struct topic *t) {
    pthread_mutex_lock(&t->change_lock);
    pthread_mutex_lock(&s->catalog_lock);
    enum status st = delete_locked(s, t);
    if (st == ST_NO_SPACE && store_reserve_give(s))
        st = delete_locked(s, t);
    pthread_mutex_unlock(&s->catalog_lock);
    if (!st)
        delete_files(s, t);
    pthread_mutex_lock(&s->catalog_lock);
    store_reserve_take(s);
    pthread_mutex_unlock(&s->catalog_lock);
    pthread_mutex_unlock(&t->change_lock);
    return st;
}

/* ---- change ---- */

static enum status rename_locked(struct store *s, struct topic *t, struct str name) {
    if (topic_deleted(t))
        return ST_NOT_FOUND;
    if (str_equal(topic_info(t)->name_str, name))
        return ST_OK;
    struct topic *other = registry_find(&s->registry, t->number.stream_id, name);
    topic_unref(other);
    if (other)
        return ST_EXISTS;
    if (t->names_count >= TOPIC_NAMES_MAX || s->parts_count >= STORE_PARTS_MAX)
        return ST_POLICY;
    struct topic_name *n = topic_name_new(topic_info(t), name);
    if (!n)
        return ST_NO_MEMORY;
    enum status st = registry_name_add(&s->registry, t, n);
    if (st) {
        mem_free(n);
        return st;
    }
    st = catalog_topic_rename(s->catalog, t->number.stream_id, t->number.topic_id, name);
    if (st) {
        registry_name_remove(&s->registry, n);
        return st;
    }
    registry_name_show(&s->registry, n);
    t->names_count++;
    s->parts_count++;
    return ST_OK;
}

enum status store_topic_rename(struct store *s, struct topic *t, struct str name) {
    if (!store_name_is_possible(name))
        return ST_BAD_NAME;
    pthread_mutex_lock(&s->catalog_lock);
    enum status st = rename_locked(s, t, name);
    pthread_mutex_unlock(&s->catalog_lock);
    return st;
}

static enum status grow_locked(struct store *s, struct topic *t, int32_t partitions_count) {
    struct partition **partitions;
    int32_t before = t->partitions_count;
    if (topic_deleted(t))
        return ST_NOT_FOUND;
    if (s->parts_count + partitions_count - before > STORE_PARTS_MAX)
        return ST_POLICY;
    enum status st = topic_partitions_prepare(t, partitions_count, &partitions);
    if (st)
        return st;
    st = catalog_topic_grow(s->catalog, t->number.stream_id, t->number.topic_id, partitions_count);
    if (st) {
        topic_partitions_drop(t, partitions, partitions_count);
        return st;
    }
    topic_partitions_show(t, partitions, partitions_count);
    s->parts_count += partitions_count - before;
    return ST_OK;
}

/* What shrinking could not remove would be taken for data of the new partitions. */
static enum status remove_stale(struct store *s, struct topic *t) {
    bool any;
    if (t->stale_end <= t->partitions_count)
        return ST_OK;
    enum status st = store_files_remove(s, t->number, t->partitions_count, t->stale_end, &any);
    if (!st)
        t->stale_end = 0;
    return st;
}

enum status store_topic_grow(struct store *s, struct topic *t, int32_t partitions_count) {
    pthread_mutex_lock(&t->change_lock);
    enum status st = topic_deleted(t)                          ? ST_NOT_FOUND
                     : partitions_count <= t->partitions_count ? ST_INVALID
                                                               : remove_stale(s, t);
    if (!st) {
        pthread_mutex_lock(&s->catalog_lock);
        st = grow_locked(s, t, partitions_count);
        pthread_mutex_unlock(&s->catalog_lock);
    }
    pthread_mutex_unlock(&t->change_lock);
    return st;
}

static enum status shrink_locked(struct store *s, struct topic *t, int32_t partitions_count) {
    int32_t before = t->partitions_count;
    if (topic_deleted(t))
        return ST_NOT_FOUND;
    if (partitions_count < 0 || partitions_count >= before)
        return ST_INVALID;
    if (t->retired_count + (before - partitions_count) > TOPIC_RETIRED_MAX)
        return ST_POLICY;
    enum status st =
        catalog_topic_shrink(s->catalog, t->number.stream_id, t->number.topic_id, before, partitions_count);
    if (!st)
        topic_partitions_retire(t, partitions_count);
    return st;
}

/* The partitions are gone whatever becomes of their files; what is left of them goes before the topic grows, or at the next start. */
static void shrink_files(struct store *s, struct topic *t, int32_t before) {
    bool any;
    int32_t after = t->partitions_count;
    struct partition *p = t->retired;
    for (int32_t i = after; i < before; i++, p = p->retired_next)
        partition_delete(p);
    offsets_partitions_gone(s->offsets, &t->id, after);
    if (t->stale_end < before)
        t->stale_end = before;
    if (store_files_remove(s, t->number, after, t->stale_end, &any))
        return;
    t->stale_end = 0;
    pthread_mutex_lock(&s->catalog_lock);
    enum status ignored =
        catalog_leftovers_forget_partitions(s->catalog, t->number.stream_id, t->number.topic_id);
    (void)ignored;
    pthread_mutex_unlock(&s->catalog_lock);
}

enum status store_topic_shrink(struct store *s, struct topic *t, int32_t partitions_count) {
    pthread_mutex_lock(&t->change_lock);
    int32_t before = t->partitions_count;
    pthread_mutex_lock(&s->catalog_lock);
    enum status st = shrink_locked(s, t, partitions_count);
    pthread_mutex_unlock(&s->catalog_lock);
    if (!st)
        shrink_files(s, t, before);
    pthread_mutex_unlock(&t->change_lock);
    return st;
}

/* Under the catalog's lock nobody else replaces them. */
static enum status set_locked(struct store *s, struct topic *t, const struct store_topic_settings *settings) {
    if (topic_deleted(t))
        return ST_NOT_FOUND;
    if (topic_settings_version(t) != settings->version)
        return ST_AGAIN;
    return catalog_topic_set(s->catalog, t->number.stream_id, t->number.topic_id, settings->items,
                             settings->count);
}

enum status store_topic_set(struct store *s, struct topic *t, const struct store_topic_settings *settings) {
    struct store_setting *copy;
    enum status st = settings_copy(settings->items, settings->count, &copy);
    if (st)
        return st;
    pthread_mutex_lock(&s->catalog_lock);
    st = set_locked(s, t, settings);
    if (!st)
        topic_settings_replace(t, copy, settings->count);
    pthread_mutex_unlock(&s->catalog_lock);
    if (st)
        catalog_settings_free(copy, settings->count);
    return st;
}

/* ---- find ---- */

struct topic *store_topic_in(struct store *s, uint32_t stream_id, struct str name) {
    return registry_find(&s->registry, stream_id, name);
}

struct topic *store_topic_find(struct store *s, struct str stream, struct str name) {
    struct stream_info found;
    return registry_stream_info(&s->registry, stream, &found) ? store_topic_in(s, found.id, name) : NULL;
}

struct topic *store_topic_by_id(struct store *s, const struct uuid *id) {
    return registry_find_id(&s->registry, id);
}

struct topic *store_topic_by_number(struct store *s, uint32_t stream_id, uint32_t topic_id) {
    return registry_find_number(&s->registry, (struct topic_number){stream_id, topic_id});
}

enum status store_topics(struct store *s, struct str stream, struct topic ***out, int32_t *count_out) {
    struct stream_info found;
    uint32_t id = registry_stream_info(&s->registry, stream, &found) ? found.id : 0; /* no stream has 0 */
    return registry_topics(&s->registry, id, true, out, count_out);
}

enum status store_topics_in(struct store *s, uint32_t stream_id, struct topic ***out, int32_t *count_out) {
    return registry_topics(&s->registry, stream_id, false, out, count_out);
}
