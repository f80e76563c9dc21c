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

/* Who changes something goes first: with the usual lock, threads that keep looking up would hold up a creation without end. */
void topic_lock_init(pthread_rwlock_t *lock);

/* How Iggy names a topic. */
struct topic_number {
    uint32_t stream_id, topic_id;
};

/* A name that a topic has or had. Nothing that topic_info shows of it ever changes, so it is read without a lock. */
struct topic_name {
    struct topic_info info;
    struct topic *topic;      /* borrowed */
    struct topic_name *older; /* owned: what it was called before */
    bool hidden;              /* under the registry's lock: not its name yet, or the topic is being created */
    UT_hash_handle hh;        /* the registry's */
    size_t key_bytes;
    char key[]; /* four bytes of the stream id, then the name, terminated */
};

#define TOPIC_NAMES_MAX   10000 /* kept of one topic: 4 MiB. Those who hold it may still read the older ones */
#define TOPIC_RETIRED_MAX 10000 /* partitions kept after shrinking, for the same reason */

struct topic {
    struct topic_number number;
    struct uuid id;
    struct log_env *env;
    _Atomic(struct topic_name *) name; /* owned, with the older ones */
    _Atomic int32_t refs;              /* one is the registry's */
    _Atomic bool deleted;
    pthread_mutex_t change_lock;   /* held over growing, shrinking and deletion, with their files */
    int32_t names_count;           /* under the store's catalog_lock */
    int32_t stale_end;             /* under change_lock: partitions before this may have left files behind */
    pthread_rwlock_t lock;         /* for the rest */
    struct partition **partitions; /* owned */
    int32_t partitions_count;
    struct partition *retired; /* owned: what shrinking took away */
    int32_t retired_count;
    struct store_setting *settings; /* owned */
    int32_t settings_count;
    _Atomic uint64_t settings_version;
    UT_hash_handle by_id, by_number; /* the registry's */
};

struct stream_name {
    struct stream *stream; /* borrowed */
    bool hidden;           /* not its name yet */
    UT_hash_handle hh;
    int32_t len;
    char text[]; /* terminated */
};

/* Changed under the store's catalog_lock and the registry's, so it can be read under either. */
struct stream {
    uint32_t id, next_topic_id; /* the latter under catalog_lock alone, as the next */
    int32_t topics_count;
    int64_t created_us;
    struct stream_name *name; /* owned */
    UT_hash_handle by_id;
};

struct registry {
    pthread_rwlock_t lock;
    struct topic_name *topics;        /* by name */
    struct topic *by_id, *by_number;  /* owned, one reference */
    struct stream_name *stream_names; /* by name */
    struct stream *streams;           /* owned */
};

/* A name for a topic like info. NULL: out of memory. */
struct topic_name *topic_name_new(const struct topic_info *info, struct str name) MUST_USE;
/* info without name and name_str: the name is copied. One reference, the caller's. NULL: out of memory. */
struct topic *topic_new(struct log_env *env, const struct topic_info *info, struct str name) MUST_USE;
/* Settings are taken over, as the next version. */
void topic_settings_replace(struct topic *t, struct store_setting *settings, int32_t count);
/* Make partitions beyond those there are, and show them only with topic_partitions_show. ST_NO_MEMORY: nothing has changed. */
enum status topic_partitions_prepare(struct topic *t, int32_t partitions_count,
                                     struct partition ***out) MUST_USE;
void topic_partitions_show(struct topic *t, struct partition **partitions, int32_t partitions_count);
void topic_partitions_drop(struct topic *t, struct partition **partitions, int32_t partitions_count);

/* Take partitions from the end away, which live on until the topic goes. */
void topic_partitions_retire(struct topic *t, int32_t partitions_count);

void registry_init(struct registry *r);
void registry_release(struct registry *r);

/* For who has the store's catalog_lock; NULL: none. */
struct stream *registry_stream(struct registry *r, struct str name);
struct stream *registry_stream_by_id(struct registry *r, uint32_t id);
/* For everybody. */
bool registry_stream_info(struct registry *r, struct str name, struct stream_info *out);
bool registry_stream_info_by_id(struct registry *r, uint32_t id, struct stream_info *out);
uint32_t registry_streams_count(struct registry *r);
enum status registry_streams(struct registry *r, struct stream_info **out, int32_t *count_out) MUST_USE;

/* Invisible by name until registry_stream_show. ST_NO_MEMORY */
enum status registry_stream_add(struct registry *r, const struct stream_info *info, uint32_t next_topic_id,
                                struct stream **out) MUST_USE;
void registry_stream_remove(struct registry *r, struct stream *s);
/* A second name, invisible until registry_stream_show, which drops the first. ST_NO_MEMORY */
enum status registry_stream_name_add(struct registry *r, struct stream *s, struct str name,
                                     struct stream_name **out) MUST_USE;
void registry_stream_name_remove(struct registry *r, struct stream_name *n);
void registry_stream_show(struct registry *r, struct stream_name *n);

/* Put it in, invisible until registry_show; takes over the caller's reference on ST_OK. ST_NO_MEMORY. */
enum status registry_add(struct registry *r, struct topic *t) MUST_USE;
void registry_show(struct registry *r, struct topic *t);
/* Take it out, with the registry's reference. */
void registry_remove(struct registry *r, struct topic *t);
/* A second name, invisible until registry_name_show takes the place of the first with it. ST_NO_MEMORY: n is still the caller's. */
enum status registry_name_add(struct registry *r, struct topic *t, struct topic_name *n) MUST_USE;
void registry_name_remove(struct registry *r, struct topic_name *n);
void registry_name_show(struct registry *r, struct topic_name *n);

/* Held; NULL: none, or hidden. */
struct topic *registry_find(struct registry *r, uint32_t stream_id, struct str name);
struct topic *registry_find_id(struct registry *r, const struct uuid *id);
struct topic *registry_find_number(struct registry *r, struct topic_number number);
/* All of a stream, or of all (UINT32_MAX), each held, in the order of names or of numbers. ST_NO_MEMORY */
enum status registry_topics(struct registry *r, uint32_t stream_id, bool by_name, struct topic ***out,
                            int32_t *count_out) MUST_USE;
#endif
