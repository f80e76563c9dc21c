/*
 * The registry: streams and topics found by name, id and number. What is being made is in it already, but hidden, so that
 * nothing can fail any more once the catalog has it.
 */
#include <stdlib.h>

#include "store/topic.h"

#define NAME_BYTES_MAX 255 /* Iggy's limit; Kafka's is 249 */

void registry_init(struct registry *r) {
    *r = (struct registry){0};
    topic_lock_init(&r->lock);
}

void registry_release(struct registry *r) {
    struct topic *t, *next_topic;
    struct stream *s, *next_stream;
    HASH_CLEAR(hh, r->topics);
    HASH_CLEAR(by_id, r->by_id);
    HASH_ITER(by_number, r->by_number, t, next_topic) {
        HASH_DELETE(by_number, r->by_number, t);
        topic_unref(t);
    }
    HASH_CLEAR(hh, r->stream_names);
    HASH_ITER(by_id, r->streams, s, next_stream) {
        HASH_DELETE(by_id, r->streams, s);
        mem_free(s->name);
        mem_free(s);
    }
    pthread_rwlock_destroy(&r->lock);
}

/* ---- streams ---- */

static struct stream *stream_named(struct registry *r, struct str name) {
    struct stream_name *n = NULL;
    if (name.len > 0)
        HASH_FIND(hh, r->stream_names, name.ptr, (size_t)name.len, n);
    return n && !n->hidden ? n->stream : NULL;
}

static struct stream *stream_numbered(struct registry *r, uint32_t id) {
    struct stream *s = NULL;
    HASH_FIND(by_id, r->streams, &id, sizeof id, s);
    return s && !s->name->hidden ? s : NULL;
}

static bool stream_describe(const struct stream *s, struct stream_info *out) {
    if (!s)
        return false;
    out->id = s->id;
    out->created_us = s->created_us;
    memcpy(out->name, s->name->text, (size_t)s->name->len + 1);
    return true;
}

struct stream *registry_stream(struct registry *r, struct str name) {
    pthread_rwlock_rdlock(&r->lock);
    struct stream *s = stream_named(r, name);
    pthread_rwlock_unlock(&r->lock);
    return s;
}

struct stream *registry_stream_by_id(struct registry *r, uint32_t id) {
    pthread_rwlock_rdlock(&r->lock);
    struct stream *s = stream_numbered(r, id);
    pthread_rwlock_unlock(&r->lock);
    return s;
}

bool registry_stream_info(struct registry *r, struct str name, struct stream_info *out) {
    pthread_rwlock_rdlock(&r->lock);
    bool found = stream_describe(stream_named(r, name), out);
    pthread_rwlock_unlock(&r->lock);
    return found;
}

bool registry_stream_info_by_id(struct registry *r, uint32_t id, struct stream_info *out) {
    pthread_rwlock_rdlock(&r->lock);
    bool found = stream_describe(stream_numbered(r, id), out);
    pthread_rwlock_unlock(&r->lock);
    return found;
}

static int compare_streams(const void *a, const void *b) {
    const struct stream_info *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

uint32_t registry_streams_count(struct registry *r) {
    pthread_rwlock_rdlock(&r->lock);
    uint32_t count = HASH_CNT(by_id, r->streams);
    pthread_rwlock_unlock(&r->lock);
    return count;
}

enum status registry_streams(struct registry *r, struct stream_info **out, int32_t *count_out) {
    struct stream *s, *next;
    int32_t count = 0;
    pthread_rwlock_rdlock(&r->lock);
    struct stream_info *all = mem_take_zeroed(HASH_CNT(by_id, r->streams), sizeof *all);
    if (all) {
        HASH_ITER(by_id, r->streams, s, next) {
            if (!s->name->hidden)
                count += stream_describe(s, &all[count]);
        }
    }
    pthread_rwlock_unlock(&r->lock);
    if (!all)
        return ST_NO_MEMORY;
    qsort(all, (size_t)count, sizeof *all, compare_streams);
    *out = all;
    *count_out = count;
    return ST_OK;
}

enum status registry_stream_name_add(struct registry *r, struct stream *s, struct str name,
                                     struct stream_name **out) {
    struct stream_name *n = mem_take_zeroed(1, sizeof *n + (size_t)name.len + 1);
    if (!n)
        return ST_NO_MEMORY;
    n->stream = s;
    n->hidden = true;
    n->len = name.len;
    memcpy(n->text, name.ptr, (size_t)name.len);
    pthread_rwlock_wrlock(&r->lock);
    HASH_ADD_KEYPTR(hh, r->stream_names, n->text, (size_t)n->len, n);
    bool added = n->hh.tbl != NULL;
    pthread_rwlock_unlock(&r->lock);
    if (!added) {
        mem_free(n);
        return ST_NO_MEMORY;
    }
    *out = n;
    return ST_OK;
}

void registry_stream_name_remove(struct registry *r, struct stream_name *n) {
    pthread_rwlock_wrlock(&r->lock);
    HASH_DELETE(hh, r->stream_names, n);
    pthread_rwlock_unlock(&r->lock);
    mem_free(n);
}

void registry_stream_show(struct registry *r, struct stream_name *n) {
    struct stream *s = n->stream;
    pthread_rwlock_wrlock(&r->lock);
    struct stream_name *old = s->name != n ? s->name : NULL;
    if (old)
        HASH_DELETE(hh, r->stream_names, old);
    n->hidden = false;
    s->name = n;
    pthread_rwlock_unlock(&r->lock);
    mem_free(old);
}

enum status registry_stream_add(struct registry *r, const struct stream_info *info, uint32_t next_topic_id,
                                struct stream **out) {
    struct stream *s = mem_take_zeroed(1, sizeof *s);
    if (!s)
        return ST_NO_MEMORY;
    s->id = info->id;
    s->created_us = info->created_us;
    s->next_topic_id = next_topic_id;
    enum status st = registry_stream_name_add(r, s, str_of(info->name), &s->name);
    if (st) {
        mem_free(s);
        return st;
    }
    pthread_rwlock_wrlock(&r->lock);
    HASH_ADD(by_id, r->streams, id, sizeof s->id, s);
    bool added = s->by_id.tbl != NULL;
    pthread_rwlock_unlock(&r->lock);
    if (!added) {
        registry_stream_name_remove(r, s->name);
        mem_free(s);
        return ST_NO_MEMORY;
    }
    *out = s;
    return ST_OK;
}

void registry_stream_remove(struct registry *r, struct stream *s) {
    pthread_rwlock_wrlock(&r->lock);
    HASH_DELETE(by_id, r->streams, s);
    HASH_DELETE(hh, r->stream_names, s->name);
    pthread_rwlock_unlock(&r->lock);
    mem_free(s->name);
    mem_free(s);
}

/* ---- topics ---- */

static bool name_put(struct registry *r, struct topic_name *n) {
    n->hidden = true;
    HASH_ADD_KEYPTR(hh, r->topics, n->key, n->key_bytes, n);
    return n->hh.tbl != NULL;
}

static bool topic_put(struct registry *r, struct topic *t) {
    HASH_ADD(by_id, r->by_id, id, sizeof t->id, t);
    if (!t->by_id.tbl)
        return false;
    HASH_ADD(by_number, r->by_number, number, sizeof t->number, t);
    if (!t->by_number.tbl)
        HASH_DELETE(by_id, r->by_id, t);
    return t->by_number.tbl != NULL;
}

enum status registry_add(struct registry *r, struct topic *t) {
    struct topic_name *n = atomic_load(&t->name);
    pthread_rwlock_wrlock(&r->lock);
    bool added = name_put(r, n);
    if (added && !topic_put(r, t)) {
        HASH_DELETE(hh, r->topics, n);
        added = false;
    }
    pthread_rwlock_unlock(&r->lock);
    return added ? ST_OK : ST_NO_MEMORY;
}

void registry_show(struct registry *r, struct topic *t) {
    pthread_rwlock_wrlock(&r->lock);
    atomic_load(&t->name)->hidden = false;
    pthread_rwlock_unlock(&r->lock);
}

void registry_remove(struct registry *r, struct topic *t) {
    struct topic_name *n = atomic_load(&t->name);
    pthread_rwlock_wrlock(&r->lock);
    HASH_DELETE(hh, r->topics, n);
    HASH_DELETE(by_id, r->by_id, t);
    HASH_DELETE(by_number, r->by_number, t);
    pthread_rwlock_unlock(&r->lock);
    topic_unref(t);
}

enum status registry_name_add(struct registry *r, struct topic *t, struct topic_name *n) {
    n->topic = t;
    pthread_rwlock_wrlock(&r->lock);
    bool added = name_put(r, n);
    pthread_rwlock_unlock(&r->lock);
    return added ? ST_OK : ST_NO_MEMORY;
}

void registry_name_remove(struct registry *r, struct topic_name *n) {
    pthread_rwlock_wrlock(&r->lock);
    HASH_DELETE(hh, r->topics, n);
    pthread_rwlock_unlock(&r->lock);
    mem_free(n);
}

void registry_name_show(struct registry *r, struct topic_name *n) {
    struct topic *t = n->topic;
    pthread_rwlock_wrlock(&r->lock);
    struct topic_name *old = atomic_load(&t->name);
    HASH_DELETE(hh, r->topics, old);
    n->older = old;
    n->hidden = false;
    atomic_store(&t->name, n);
    pthread_rwlock_unlock(&r->lock);
}

/* Under the lock. */
static struct topic *hold_if_shown(struct topic *t) {
    return t && !atomic_load(&t->name)->hidden ? topic_ref(t) : NULL;
}

struct topic *registry_find(struct registry *r, uint32_t stream_id, struct str name) {
    char key[sizeof stream_id + NAME_BYTES_MAX];
    if (name.len < 0 || name.len > NAME_BYTES_MAX)
        return NULL;
    memcpy(key, &stream_id, sizeof stream_id);
    memcpy(key + sizeof stream_id, name.len > 0 ? name.ptr : "", (size_t)name.len);
    struct topic_name *n = NULL;
    pthread_rwlock_rdlock(&r->lock);
    HASH_FIND(hh, r->topics, key, sizeof stream_id + (size_t)name.len, n);
    struct topic *t = n && !n->hidden ? topic_ref(n->topic) : NULL;
    pthread_rwlock_unlock(&r->lock);
    return t;
}

struct topic *registry_find_id(struct registry *r, const struct uuid *id) {
    struct topic *t = NULL;
    pthread_rwlock_rdlock(&r->lock);
    HASH_FIND(by_id, r->by_id, id->b, sizeof id->b, t);
    t = hold_if_shown(t);
    pthread_rwlock_unlock(&r->lock);
    return t;
}

struct topic *registry_find_number(struct registry *r, struct topic_number number) {
    struct topic *t = NULL;
    pthread_rwlock_rdlock(&r->lock);
    HASH_FIND(by_number, r->by_number, &number, sizeof number, t);
    t = hold_if_shown(t);
    pthread_rwlock_unlock(&r->lock);
    return t;
}

static const struct topic_name *name_at(const void *p) {
    return *(struct topic_name *const *)p;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(name_at(a)->info.name, name_at(b)->info.name);
}

static int compare_numbers(const void *a, const void *b) {
    const struct topic_info *x = &name_at(a)->info, *y = &name_at(b)->info;
    if (x->stream_id != y->stream_id)
        return x->stream_id < y->stream_id ? -1 : 1;
    return x->topic_id < y->topic_id ? -1 : x->topic_id > y->topic_id;
}

/* The names are sorted, not the topics: theirs could change meanwhile. */
enum status registry_topics(struct registry *r, uint32_t stream_id, bool by_name, struct topic ***out,
                            int32_t *count_out) {
    struct topic_name *n, *next;
    int32_t count = 0;
    pthread_rwlock_rdlock(&r->lock);
    struct topic_name **names = mem_take_zeroed(HASH_CNT(hh, r->topics), sizeof(struct topic_name *));
    struct topic **topics = mem_take_zeroed(HASH_CNT(hh, r->topics), sizeof(struct topic *));
    if (names && topics) {
        HASH_ITER(hh, r->topics, n, next) {
            if (n->hidden || (stream_id != UINT32_MAX && n->info.stream_id != stream_id))
                continue;
            names[count++] = n;
            topic_ref(n->topic);
        }
    }
    pthread_rwlock_unlock(&r->lock);
    if (!names || !topics) {
        mem_free(names);
        mem_free(topics);
        return ST_NO_MEMORY;
    }
    qsort(names, (size_t)count, sizeof(struct topic_name *), by_name ? compare_names : compare_numbers);
    for (int32_t i = 0; i < count; i++)
        topics[i] = names[i]->topic;
    mem_free(names);
    *out = topics;
    *count_out = count;
    return ST_OK;
}
