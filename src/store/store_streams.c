/* Streams: catalog and registry. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "store/store_impl.h"

#define NAME_BYTES_MAX 255

bool store_name_is_possible(struct str name) {
    return name.len >= 1 && name.len <= NAME_BYTES_MAX && !memchr(name.ptr, '\0', (size_t)name.len);
}

static enum status create_locked(struct store *s, struct str name, uint32_t count_max,
                                 struct stream_info *out) {
    if (registry_stream(&s->registry, name))
        return ST_EXISTS;
    if (registry_streams_count(&s->registry) >= count_max)
        return ST_POLICY;
    struct stream_info info = {.created_us = s->env.now_wall_ms() * 1000};
    memcpy(info.name, name.ptr, (size_t)name.len);
    enum status st = catalog_stream_next_id(s->catalog, &info.id);
    struct stream *stream = NULL;
    if (!st)
        st = registry_stream_add(&s->registry, &info, 1, &stream);
    if (st)
        return st;
    st = catalog_stream_add(
        s->catalog, &(struct catalog_stream){
                        .id = info.id, .next_topic_id = 1, .created_us = info.created_us, .name = name});
    if (st) {
        registry_stream_remove(&s->registry, stream);
        return st;
    }
    registry_stream_show(&s->registry, stream->name);
    if (out)
        *out = info;
    return ST_OK;
}

static enum status stream_create(struct store *s, struct str name, uint32_t count_max,
                                 struct stream_info *out) {
    if (!store_name_is_possible(name))
        return ST_BAD_NAME;
    pthread_mutex_lock(&s->catalog_lock);
    enum status st = create_locked(s, name, count_max, out);
    pthread_mutex_unlock(&s->catalog_lock);
    return st;
}

enum status store_stream_create(struct store *s, struct str name, struct stream_info *out) {
    return stream_create(s, name, STORE_STREAMS_MAX, out);
}

/* Without the limit: what the server itself needs must not depend on what clients have made. */
enum status store_stream_ensure(struct store *s, struct str name) {
    enum status st = stream_create(s, name, UINT32_MAX, NULL);
    return st == ST_EXISTS ? ST_OK : st;
}

static enum status rename_locked(struct store *s, uint32_t id, struct str name) {
    struct stream_name *n;
    struct stream *stream = registry_stream_by_id(&s->registry, id);
    struct stream *other = registry_stream(&s->registry, name);
    if (!stream)
        return ST_NOT_FOUND;
    if (other)
        return other == stream ? ST_OK : ST_EXISTS;
    enum status st = registry_stream_name_add(&s->registry, stream, name, &n);
    if (st)
        return st;
    st = catalog_stream_rename(s->catalog, id, name);
    if (st)
        registry_stream_name_remove(&s->registry, n);
    else
        registry_stream_show(&s->registry, n);
    return st;
}

enum status store_stream_rename(struct store *s, uint32_t id, struct str name) {
    if (!store_name_is_possible(name))
        return ST_BAD_NAME;
    pthread_mutex_lock(&s->catalog_lock);
    enum status st = rename_locked(s, id, name);
    pthread_mutex_unlock(&s->catalog_lock);
    return st;
}

static enum status delete_locked(struct store *s, uint32_t id) {
    char path[32];
    struct stream *stream = registry_stream_by_id(&s->registry, id);
    if (!stream)
        return ST_NOT_FOUND;
    if (stream->topics_count > 0)
        return ST_IN_USE;
    enum status st = catalog_stream_remove(s->catalog, id);
    if (st)
        return st;
    registry_stream_remove(&s->registry, stream);
    /* Usually empty by now. If not, it stays; no stream gets this number again. */
    snprintf(path, sizeof path, "topics/%u", id);
    unlinkat(s->env.dir_fd, path, AT_REMOVEDIR);
    return ST_OK;
}

enum status store_stream_delete(struct store *s, uint32_t id) {
    pthread_mutex_lock(&s->catalog_lock);
    enum status st = delete_locked(s, id);
    pthread_mutex_unlock(&s->catalog_lock);
    return st;
}

bool store_stream_by_name(struct store *s, struct str name, struct stream_info *out) {
    return registry_stream_info(&s->registry, name, out);
}

bool store_stream_by_id(struct store *s, uint32_t id, struct stream_info *out) {
    return registry_stream_info_by_id(&s->registry, id, out);
}

enum status store_streams(struct store *s, struct stream_info **out, int32_t *count_out) {
    return registry_streams(&s->registry, out, count_out);
}
