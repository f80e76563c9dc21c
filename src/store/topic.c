#include "store/topic.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "store/catalog.h"
#include "store/partition.h"

#define NAME_BYTES_MAX 255 /* Iggy's limit; Kafka's is 249 */

unsigned topic_hash(const void *key, size_t len) {
    return (unsigned)XXH3_64bits(key, len);
}

/* ---- one topic ---- */

struct topic *topic_new(struct log_env *env, const struct topic_info *info, struct str name) {
    size_t len = (size_t)name.len;
    struct topic *t = mem_take_zeroed(1, sizeof *t);
    char *key = mem_take(sizeof info->stream_id + len + 1);
    if (!t || !key) {
        mem_free(t);
        mem_free(key);
        return NULL;
    }
    memcpy(key, &info->stream_id, sizeof info->stream_id);
    memcpy(key + sizeof info->stream_id, name.ptr, len);
    key[sizeof info->stream_id + len] = '\0';
    t->env = env;
    t->key = key;
    t->key_bytes = sizeof info->stream_id + len;
    t->info = *info;
    t->info.name = key + sizeof info->stream_id;
    t->info.name_str = (struct str){t->info.name, name.len};
    atomic_init(&t->refs, 1);
    pthread_rwlock_init(&t->lock, NULL);
    return t;
}

static void topic_free(struct topic *t) {
    for (int32_t i = 0; i < t->partitions_count; i++)
        partition_free(t->partitions[i]);
    mem_free(t->partitions);
    catalog_settings_free(t->settings, t->settings_count);
    pthread_rwlock_destroy(&t->lock);
    mem_free(t->key);
    mem_free(t);
}

struct topic *topic_ref(struct topic *t) {
    atomic_fetch_add(&t->refs, 1);
    return t;
}

void topic_unref(struct topic *t) {
    if (t && atomic_fetch_sub(&t->refs, 1) == 1)
        topic_free(t);
}

const struct topic_info *topic_info(const struct topic *t) {
    return &t->info;
}

bool topic_deleted(const struct topic *t) {
    return atomic_load(&t->deleted);
}

/* Taking the lock changes nothing that a reader of the topic could see. */
static pthread_rwlock_t *lock_of(const struct topic *t) {
    return &((struct topic *)(uintptr_t)t)->lock;
}

int32_t topic_partitions_count(const struct topic *t) {
    pthread_rwlock_rdlock(lock_of(t));
    int32_t count = t->partitions_count;
    pthread_rwlock_unlock(lock_of(t));
    return count;
}

struct partition *topic_partition(struct topic *t, int32_t index) {
    pthread_rwlock_rdlock(&t->lock);
    struct partition *p = index >= 0 && index < t->partitions_count ? t->partitions[index] : NULL;
    pthread_rwlock_unlock(&t->lock);
    return p;
}

char *topic_setting(const struct topic *t, const char *key) {
    char *value = NULL;
    pthread_rwlock_rdlock(lock_of(t));
    for (int32_t i = 0; i < t->settings_count && !value; i++)
        if (strcmp(t->settings[i].key, key) == 0)
            value = mem_text(str_of(t->settings[i].value));
    pthread_rwlock_unlock(lock_of(t));
    return value;
}

void topic_settings_each(const struct topic *t, void (*fn)(void *user, const char *key, const char *value),
                         void *user) {
    pthread_rwlock_rdlock(lock_of(t));
    for (int32_t i = 0; i < t->settings_count; i++)
        fn(user, t->settings[i].key, t->settings[i].value);
    pthread_rwlock_unlock(lock_of(t));
}

void topic_settings_replace(struct topic *t, struct store_setting *settings, int32_t count) {
    pthread_rwlock_wrlock(&t->lock);
    struct store_setting *old = t->settings;
    int32_t old_count = t->settings_count;
    t->settings = settings;
    t->settings_count = count;
    pthread_rwlock_unlock(&t->lock);
    catalog_settings_free(old, old_count);
}

/* Only changes of topics come here, one at a time, so the count needs no lock to be read. */
enum status topic_partitions_prepare(struct topic *t, int32_t partitions_count, struct partition ***out) {
    struct partition **all = mem_take_zeroed((size_t)partitions_count, sizeof(struct partition *));
    if (!all)
        return ST_NO_MEMORY;
    for (int32_t i = 0; i < partitions_count; i++) {
        all[i] = i < t->partitions_count ? t->partitions[i]
                                         : partition_new(t->env, t->info.stream_id, t->info.topic_id, i);
        if (!all[i]) {
            topic_partitions_drop(t, all, partitions_count);
            return ST_NO_MEMORY;
        }
    }
    *out = all;
    return ST_OK;
}

void topic_partitions_drop(struct topic *t, struct partition **partitions, int32_t partitions_count) {
    for (int32_t i = t->partitions_count; i < partitions_count; i++)
        partition_free(partitions[i]);
    mem_free(partitions);
}

void topic_partitions_show(struct topic *t, struct partition **partitions, int32_t partitions_count) {
    pthread_rwlock_wrlock(&t->lock);
    struct partition **old = t->partitions;
    t->partitions = partitions;
    t->partitions_count = partitions_count;
    pthread_rwlock_unlock(&t->lock);
    mem_free(old);
}

/* ---- the registry ---- */

void registry_init(struct registry *r) {
    *r = (struct registry){0};
    pthread_rwlock_init(&r->lock, NULL);
}

void registry_release(struct registry *r) {
    struct topic *t, *next_topic;
    struct stream *s, *next_stream;
    HASH_CLEAR(by_id, r->by_id);
    HASH_ITER(by_name, r->by_name, t, next_topic) {
        HASH_DELETE(by_name, r->by_name, t);
        topic_unref(t);
    }
    HASH_ITER(hh, r->streams, s, next_stream) {
        HASH_DELETE(hh, r->streams, s);
        mem_free(s->name);
        mem_free(s);
    }
    pthread_rwlock_destroy(&r->lock);
}

struct stream *registry_stream(struct registry *r, struct str name) {
    struct stream *s = NULL;
    pthread_rwlock_rdlock(&r->lock);
    HASH_FIND(hh, r->streams, name.ptr, (size_t)name.len, s);
    pthread_rwlock_unlock(&r->lock);
    return s;
}

enum status registry_add_stream(struct registry *r, struct str name, uint32_t id, uint32_t next_topic_id) {
    struct stream *s = mem_take_zeroed(1, sizeof *s);
    char *copy = mem_text(name);
    if (!s || !copy)
        goto fail;
    s->name = copy;
    s->id = id;
    s->next_topic_id = next_topic_id;
    pthread_rwlock_wrlock(&r->lock);
    HASH_ADD_KEYPTR(hh, r->streams, s->name, (size_t)name.len, s);
    pthread_rwlock_unlock(&r->lock);
    if (s->hh.tbl)
        return ST_OK;
fail:
    mem_free(copy);
    mem_free(s);
    return ST_NO_MEMORY;
}

enum status registry_add(struct registry *r, struct topic *t) {
    t->hidden = true;
    pthread_rwlock_wrlock(&r->lock);
    HASH_ADD_KEYPTR(by_name, r->by_name, t->key, t->key_bytes, t);
    bool added = t->by_name.tbl != NULL;
    if (added) {
        HASH_ADD_KEYPTR(by_id, r->by_id, t->info.id.b, sizeof t->info.id.b, t);
        if (!t->by_id.tbl) {
            HASH_DELETE(by_name, r->by_name, t);
            added = false;
        }
    }
    pthread_rwlock_unlock(&r->lock);
    return added ? ST_OK : ST_NO_MEMORY;
}

void registry_show(struct registry *r, struct topic *t) {
    pthread_rwlock_wrlock(&r->lock);
    t->hidden = false;
    pthread_rwlock_unlock(&r->lock);
}

void registry_remove(struct registry *r, struct topic *t) {
    pthread_rwlock_wrlock(&r->lock);
    HASH_DELETE(by_name, r->by_name, t);
    HASH_DELETE(by_id, r->by_id, t);
    pthread_rwlock_unlock(&r->lock);
    topic_unref(t);
}

struct topic *registry_find(struct registry *r, uint32_t stream_id, struct str name) {
    char key[sizeof stream_id + NAME_BYTES_MAX];
    if (name.len < 0 || name.len > NAME_BYTES_MAX)
        return NULL;
    memcpy(key, &stream_id, sizeof stream_id);
    memcpy(key + sizeof stream_id, name.len > 0 ? name.ptr : "", (size_t)name.len);
    struct topic *t = NULL;
    pthread_rwlock_rdlock(&r->lock);
    HASH_FIND(by_name, r->by_name, key, sizeof stream_id + (size_t)name.len, t);
    t = t && !t->hidden ? topic_ref(t) : NULL;
    pthread_rwlock_unlock(&r->lock);
    return t;
}

struct topic *registry_find_id(struct registry *r, const struct uuid *id) {
    struct topic *t = NULL;
    pthread_rwlock_rdlock(&r->lock);
    HASH_FIND(by_id, r->by_id, id->b, sizeof id->b, t);
    t = t && !t->hidden ? topic_ref(t) : NULL;
    pthread_rwlock_unlock(&r->lock);
    return t;
}
