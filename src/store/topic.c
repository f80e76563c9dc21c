#include "store/topic.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "store/catalog.h"
#include "store/partition.h"

unsigned topic_hash(const void *key, size_t len) {
    return (unsigned)XXH3_64bits(key, len);
}

void topic_lock_init(pthread_rwlock_t *lock) {
    pthread_rwlockattr_t attr;
    pthread_rwlockattr_init(&attr);
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(lock, &attr);
    pthread_rwlockattr_destroy(&attr);
}

struct topic_name *topic_name_new(const struct topic_info *info, struct str name) {
    size_t len = (size_t)name.len;
    struct topic_name *n = mem_take_zeroed(1, sizeof *n + sizeof info->stream_id + len + 1);
    if (!n)
        return NULL;
    n->key_bytes = sizeof info->stream_id + len;
    memcpy(n->key, &info->stream_id, sizeof info->stream_id);
    memcpy(n->key + sizeof info->stream_id, name.ptr, len);
    n->info = *info;
    n->info.name = n->key + sizeof info->stream_id;
    n->info.name_str = (struct str){n->info.name, name.len};
    return n;
}

struct topic *topic_new(struct log_env *env, const struct topic_info *info, struct str name) {
    struct topic *t = mem_take_zeroed(1, sizeof *t);
    struct topic_name *n = topic_name_new(info, name);
    if (!t || !n) {
        mem_free(t);
        mem_free(n);
        return NULL;
    }
    n->topic = t;
    t->env = env;
    t->number = (struct topic_number){info->stream_id, info->topic_id};
    t->id = info->id;
    t->names_count = 1;
    atomic_init(&t->name, n);
    atomic_init(&t->refs, 1);
    atomic_init(&t->settings_version, 1);
    pthread_mutex_init(&t->change_lock, NULL);
    topic_lock_init(&t->lock);
    return t;
}

static void topic_free(struct topic *t) {
    for (int32_t i = 0; i < t->partitions_count; i++)
        partition_free(t->partitions[i]);
    mem_free(t->partitions);
    for (struct partition *p = t->retired, *next; p; p = next) {
        next = p->retired_next;
        partition_free(p);
    }
    for (struct topic_name *n = atomic_load(&t->name), *older; n; n = older) {
        older = n->older;
        mem_free(n);
    }
    catalog_settings_free(t->settings, t->settings_count);
    pthread_mutex_destroy(&t->change_lock);
    pthread_rwlock_destroy(&t->lock);
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
    return &atomic_load(&t->name)->info;
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

bool topic_setting_is(const struct topic *t, const char *key, const char *value) {
    bool is = false;
    pthread_rwlock_rdlock(lock_of(t));
    for (int32_t i = 0; i < t->settings_count && !is; i++)
        is = strcmp(t->settings[i].key, key) == 0 && strcmp(t->settings[i].value, value) == 0;
    pthread_rwlock_unlock(lock_of(t));
    return is;
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

uint64_t topic_settings_version(const struct topic *t) {
    return atomic_load(&t->settings_version);
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
    atomic_fetch_add(&t->settings_version, 1);
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
                                         : partition_new(t->env, t->number.stream_id, t->number.topic_id, i);
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

void topic_partitions_retire(struct topic *t, int32_t partitions_count) {
    pthread_rwlock_wrlock(&t->lock);
    while (t->partitions_count > partitions_count) {
        struct partition *p = t->partitions[--t->partitions_count];
        p->retired_next = t->retired;
        t->retired = p;
        t->retired_count++;
    }
    pthread_rwlock_unlock(&t->lock);
}
