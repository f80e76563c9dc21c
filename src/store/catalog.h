/*
 * The catalog: one SQLite file with the streams, the topics, their settings, users, tokens, groups, and values of the store itself.
 * Each change is one transaction, on stable storage when the call returns. One caller at a time (the store's catalog_lock). Blocking.
 */
#ifndef STORE_CATALOG_H
#define STORE_CATALOG_H

#include "base/base.h"
#include "store/store.h"
#include "store/store_users.h"

struct catalog;

/*
 * Open the file, made when missing; one of an older version is brought to this one, in one transaction.
 * created_out  whether it was missing
 * reason_out   on failure: the cause in English, for store_error; static or SQLite's own text, copied
 * ST_CORRUPT: no catalog, damaged, or of a newer version; ST_READ_ONLY; ST_NO_SPACE; ST_IO; ST_NO_MEMORY
 */
enum status catalog_open(const char *path, struct catalog **out, bool *created_out,
                         char reason_out[256]) MUST_USE;
void catalog_close(struct catalog *c); /* takes NULL */

/* *out: owned by the caller; NULL: not set. */
enum status catalog_value_get(struct catalog *c, const char *key, char **out) MUST_USE;
enum status catalog_value_set(struct catalog *c, const char *key, const char *value) MUST_USE;

/* Text is borrowed, until fn returns. Anything but ST_OK from fn ends the walk and is returned. */
struct catalog_stream {
    uint32_t id, next_topic_id;
    int64_t created_us;
    struct str name;
};
struct catalog_topic {
    uint32_t stream_id, topic_id;
    struct str name;
    struct uuid id;
    int32_t partitions_count;
    int64_t created_us;
};
enum status catalog_each_stream(struct catalog *c, enum status (*fn)(void *, const struct catalog_stream *),
                                void *user) MUST_USE;
enum status catalog_each_topic(struct catalog *c, enum status (*fn)(void *, const struct catalog_topic *),
                               void *user) MUST_USE;

/* All settings of a topic, owned by the caller (catalog_settings_free). */
enum status catalog_settings_get(struct catalog *c, uint32_t stream_id, uint32_t topic_id,
                                 struct store_setting **out, int32_t *count_out) MUST_USE;
void catalog_settings_free(struct store_setting *settings, int32_t count);

/* Changes. ST_EXISTS: a name; ST_IO, ST_NO_SPACE, ST_READ_ONLY, ST_CORRUPT, ST_NO_MEMORY: nothing has changed. */
enum status catalog_stream_next_id(struct catalog *c, uint32_t *id_out) MUST_USE; /* one never given before */
enum status catalog_stream_add(struct catalog *c, const struct catalog_stream *stream) MUST_USE;
enum status catalog_stream_rename(struct catalog *c, uint32_t stream_id, struct str name) MUST_USE;
enum status catalog_stream_remove(struct catalog *c, uint32_t stream_id) MUST_USE; /* one without topics */
enum status catalog_topic_add(struct catalog *c, const struct catalog_topic *t,
                              const struct store_setting *settings,
                              int32_t count) MUST_USE; /* also: its number is never given again */
enum status catalog_topic_rename(struct catalog *c, uint32_t stream_id, uint32_t topic_id,
                                 struct str name) MUST_USE;
/* With its groups. Its folder becomes a left-over. */
enum status catalog_topic_remove(struct catalog *c, uint32_t stream_id, uint32_t topic_id) MUST_USE;
/* No folder of the new partitions is a left-over any more: the caller has seen to it that there are none. */
enum status catalog_topic_grow(struct catalog *c, uint32_t stream_id, uint32_t topic_id,
                               int32_t partitions_count) MUST_USE;
/* From so many partitions to fewer. Folders of those that go become left-overs. */
enum status catalog_topic_shrink(struct catalog *c, uint32_t stream_id, uint32_t topic_id, int32_t before,
                                 int32_t after) MUST_USE;
enum status catalog_topic_set(struct catalog *c, uint32_t stream_id, uint32_t topic_id,
                              const struct store_setting *settings, int32_t count) MUST_USE;

/* Left-overs: folders that a deletion has left to be removed, written down with it. */
struct catalog_leftover {
    uint32_t stream_id, topic_id;
    int32_t partition; /* -1: the topic's folder */
};
/* All; *out: the caller's (mem_free). */
enum status catalog_leftovers(struct catalog *c, struct catalog_leftover **out, int32_t *count_out) MUST_USE;
enum status catalog_leftovers_forget(struct catalog *c, const struct catalog_leftover *rows,
                                     int32_t count) MUST_USE;
enum status catalog_leftovers_forget_partitions(struct catalog *c, uint32_t stream_id,
                                                uint32_t topic_id) MUST_USE;

/* Users, tokens, groups: as the functions of store_users.h that are named alike. catalog_users.c */
enum status catalog_each_user(struct catalog *c, enum status (*fn)(void *, const struct store_user *),
                              void *user) MUST_USE;
enum status catalog_each_token(struct catalog *c, enum status (*fn)(void *, const struct store_token *),
                               void *user) MUST_USE;
enum status catalog_each_group(struct catalog *c, enum status (*fn)(void *, const struct store_group *),
                               void *user) MUST_USE;
enum status catalog_user_add(struct catalog *c, const struct store_user *u, uint32_t *id_out) MUST_USE;
enum status catalog_user_set(struct catalog *c, const struct store_user *u) MUST_USE;
enum status catalog_user_remove(struct catalog *c, uint32_t id) MUST_USE;
enum status catalog_token_add(struct catalog *c, const struct store_token *t) MUST_USE;
enum status catalog_token_remove(struct catalog *c, uint32_t user_id, struct str name) MUST_USE;
/* group_id of g is not looked at. */
enum status catalog_group_add(struct catalog *c, const struct store_group *g,
                              uint32_t *group_id_out) MUST_USE;
enum status catalog_group_remove(struct catalog *c, uint32_t stream_id, uint32_t topic_id,
                                 uint32_t group_id) MUST_USE;
enum status catalog_each_group_settings(struct catalog *c,
                                        enum status (*fn)(void *, const struct store_group_settings *),
                                        void *user) MUST_USE;
enum status catalog_group_settings_set(struct catalog *c, const struct store_group_settings *g) MUST_USE;
#endif
