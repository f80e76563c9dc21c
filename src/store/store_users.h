/*
 * Users, access tokens, consumer groups' names and settings as rows of the catalog. What they mean is others' matter (users/, iggy_server/,
 * backend/store).
 * Each change is one transaction, on stable storage when the call returns. Blocking; any thread.
 */
#ifndef STORE_STORE_USERS_H
#define STORE_STORE_USERS_H

#include "store/store.h"

/* Text and bytes are borrowed: from the caller, or by fn until it returns. */
struct store_user {
    uint32_t id; /* never given again */
    int64_t created_us;
    bool active;
    struct str name;
    struct str password_hash;
    struct bytes permissions; /* opaque; len -1: none */
};
struct store_token {
    uint32_t user_id;
    struct str name;    /* unique for the user */
    struct bytes hash;  /* of the token; unique */
    int64_t expires_us; /* wall clock; INT64_MAX: never */
};
struct store_group {
    uint32_t stream_id, topic_id,
        group_id;    /* group_id: per topic, from 0, never given again while the topic lives */
    struct str name; /* unique for the topic */
};

/* What is set for a group of Kafka's, which belongs to no topic. */
struct store_group_settings {
    struct str group;                 /* any bytes */
    int32_t session_ms, heartbeat_ms; /* 0: not set */
};

/* Anything but ST_OK from fn ends the walk and is returned; fn must not call back into the store. In id order. ST_IO, ST_CORRUPT, ST_NO_MEMORY. */
enum status store_each_user(struct store *s, enum status (*fn)(void *, const struct store_user *),
                            void *user) MUST_USE;
enum status store_each_token(struct store *s, enum status (*fn)(void *, const struct store_token *),
                             void *user) MUST_USE;
enum status store_each_group(struct store *s, enum status (*fn)(void *, const struct store_group *),
                             void *user) MUST_USE;
enum status store_each_group_settings(struct store *s,
                                      enum status (*fn)(void *, const struct store_group_settings *),
                                      void *user) MUST_USE;

/* The first user gets id 0, the next ones 1, 2, ... ST_EXISTS: the name. Others as all changes: ST_IO, ST_NO_SPACE, ST_READ_ONLY, ... */
enum status store_user_add(struct store *s, const struct store_user *u, uint32_t *id_out) MUST_USE;
/* All but id and created_us. ST_NOT_FOUND; ST_EXISTS: the name is another's. */
enum status store_user_set(struct store *s, const struct store_user *u) MUST_USE;
enum status store_user_remove(struct store *s, uint32_t id) MUST_USE; /* with its tokens. ST_NOT_FOUND */

/* ST_EXISTS: the name, or the hash; ST_NOT_FOUND: the user. */
enum status store_token_add(struct store *s, const struct store_token *t) MUST_USE;
enum status store_token_remove(struct store *s, uint32_t user_id,
                               struct str name) MUST_USE; /* ST_NOT_FOUND */

/* ST_EXISTS: the name; ST_NOT_FOUND: the topic, or (removing) the group. Groups go with their topic. */
enum status store_group_add(struct store *s, uint32_t stream_id, uint32_t topic_id, struct str name,
                            uint32_t *group_id_out) MUST_USE;
enum status store_group_remove(struct store *s, uint32_t stream_id, uint32_t topic_id,
                               uint32_t group_id) MUST_USE;

/* In place of what was set for the group; where nothing is left the row goes. */
enum status store_group_settings_set(struct store *s, const struct store_group_settings *g) MUST_USE;
#endif
