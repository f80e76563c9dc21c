/*
 * Topics in memory: the registry that finds them by name and by id, and each with its partitions and settings.
 * No lock of these is held over I/O. What is on disk follows in store.c.
 */
#ifndef STORE_TOPIC_H
#define STORE_TOPIC_H

#include <pthread.h>
#include <stdatomic.h>

#define HASH_NONFATAL_OOM          1
#define uthash_malloc(size)        mem_take(size)
#define uthash_free(ptr, size)     mem_free(ptr)
#define HASH_FUNCTION(key, len, h) ((h) = topic_hash((key), (len)))
#include <uthash.h>

#include "base/base.h"
#include "base/mem.h"
#include "store/segment.h"
#include "store/store.h"

unsigned topic_hash(const void *key, size_t len);

struct topic {
    struct topic_info info;
    struct log_env *env;
    char *key; /* owned: four bytes of the stream id, then the name, terminated */
    size_t key_bytes;
    _Atomic int32_t refs; /* one is the registry's */
    _Atomic bool deleted;
    bool hidden;                   /* under the registry's lock: being created */
    pthread_rwlock_t lock;         /* for the rest */
    struct partition **partitions; /* owned */
    int32_t partitions_count;
    struct store_setting *settings; /* owned */
    int32_t settings_count;
    UT_hash_handle by_name, by_id; /* the registry's */
};

struct stream {
    char *name; /* owned */
    uint32_t id, next_topic_id;
    UT_hash_handle hh;
};

struct registry {
    pthread_rwlock_t lock;
    struct topic *by_name, *by_id; /* owned, one reference */
    struct stream *streams;        /* owned; none goes before the end */
};

/* info without name and name_str: the name is copied. One reference, the caller's. NULL: out of memory. */
struct topic *topic_new(struct log_env *env, const struct topic_info *info, struct str name) MUST_USE;
/* Settings are taken over. */
void topic_settings_replace(struct topic *t, struct store_setting *settings, int32_t count);
/* Make partitions beyond those there are, and show them only with topic_partitions_show. ST_NO_MEMORY: nothing has changed. */
enum status topic_partitions_prepare(struct topic *t, int32_t partitions_count,
                                     struct partition ***out) MUST_USE;
void topic_partitions_show(struct topic *t, struct partition **partitions, int32_t partitions_count);
void topic_partitions_drop(struct topic *t, struct partition **partitions, int32_t partitions_count);

void registry_init(struct registry *r);
void registry_release(struct registry *r);
/* A stream, NULL: none. Its next_topic_id is the catalog lock's. */
struct stream *registry_stream(struct registry *r, struct str name);
enum status registry_add_stream(struct registry *r, struct str name, uint32_t id,
                                uint32_t next_topic_id) MUST_USE;
/* Put it in, invisible until registry_show; takes over the caller's reference on ST_OK. ST_NO_MEMORY. */
enum status registry_add(struct registry *r, struct topic *t) MUST_USE;
void registry_show(struct registry *r, struct topic *t);
/* Take it out, with the registry's reference. */
void registry_remove(struct registry *r, struct topic *t);
/* Held; NULL: none, or hidden. */
struct topic *registry_find(struct registry *r, uint32_t stream_id, struct str name);
struct topic *registry_find_id(struct registry *r, const struct uuid *id);
#endif
