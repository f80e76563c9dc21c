/*
 * Who may do what on the embedded log: users with passwords (Argon2id) and Iggy's permissions, and their access tokens.
 * All in memory under one lock, kept in the store's catalog. Changes and logins block (disk, Argon2): in the work pool; looking up and
 * asking for a permission is short and allowed on a loop. Any thread.
 * Codes are Iggy's (iggy/errors.h), 0: done; beside those that are named, any call that blocks may end with 58 (no memory) or 13000 (the
 * disk), and has changed nothing then. Iggy protocol: users, tokens, permissions.
 */
#ifndef USERS_USERS_H
#define USERS_USERS_H

#include "base/arena.h"
#include "iggy/message.h"
#include "store/store.h"

struct users;

#define USERS_ROOT_ID        0
#define USERS_PASSWORD_BYTES 33 /* of a generated one, terminated */
#define USERS_TOKEN_BYTES    69 /* raw token, terminated */

#define USERS_MAX                   10000
#define USERS_TOKENS_MAX            100   /* of one user */
#define USERS_PERMISSIONS_BYTES_MAX 65536 /* of one user, on the wire: some 7,000 topics */

/*
 * Load them. Where there is none yet, create root with this name and password; password NULL: a random one is made and given to
 * generated_out, to be shown once ("" otherwise).
 * ST_INVALID: a name or password that isn't allowed; ST_CORRUPT: rows that can't be; others as the store's.
 */
enum status users_open(struct store *store, const char *root_name, const char *root_password,
                       struct users **out, char generated_out[USERS_PASSWORD_BYTES]) MUST_USE;
void users_close(struct users *u); /* takes NULL */

/* ---- logins: block ---- */

/* 42: no such user, wrong password, or inactive; takes as long whichever it is. */
uint32_t users_login(struct users *u, struct str name, struct str password, uint32_t *user_id_out) MUST_USE;
/* 53: unknown; 54: expired; 47: the user is inactive. */
uint32_t users_login_token(struct users *u, struct str token, uint32_t *user_id_out) MUST_USE;

/* ---- what may be done ---- */

enum user_action {
    ACTION_POLL,         /* poll, get, store and delete offsets; stream and topic */
    ACTION_SEND,         /* stream and topic */
    ACTION_READ_TOPIC,   /* get_topic, all group commands; stream and topic */
    ACTION_READ_TOPICS,  /* get_topics; stream */
    ACTION_CREATE_TOPIC, /* stream */
    ACTION_MANAGE_TOPIC, /* update, delete, purge, partitions, segments; stream and topic */
    ACTION_READ_STREAM,  /* stream */
    ACTION_READ_STREAMS,
    ACTION_CREATE_STREAM,
    ACTION_MANAGE_STREAM, /* update, delete, purge; stream */
    ACTION_READ_SERVER,   /* stats, clients, snapshot */
    ACTION_READ_USERS,
    ACTION_MANAGE_USERS,
};

/* stream_id, topic_id: ignored where the action has none. A user that is gone or inactive may do nothing; root may do everything. */
bool users_may(struct users *u, uint32_t user_id, enum user_action action, uint32_t stream_id,
               uint32_t topic_id);

/* False: it is gone or inactive: its sessions may do nothing any more. */
bool users_is_active(struct users *u, uint32_t user_id);

/* ---- looking up ---- */

/* Text and permissions are copied to the arena. options and derived stay empty. ST_NOT_FOUND; ST_NO_MEMORY. */
enum status users_find(struct users *u, const struct iggy_identifier *id, struct arena *a,
                       struct iggy_user_details *out) MUST_USE;
/* In id order, in the arena. ST_NO_MEMORY. */
enum status users_list(struct users *u, struct arena *a, struct iggy_get_users_res *out) MUST_USE;
enum status users_tokens(struct users *u, uint32_t user_id, struct arena *a,
                         struct iggy_get_tokens_res *out) MUST_USE;

/* ---- changes: block ---- */

/* 3: more permissions than fit, here and below; 43, 44, 45: name, password or status not allowed; 46: the name; 55: too many. */
uint32_t users_create(struct users *u, const struct iggy_create_user_req *in, uint32_t *user_id_out) MUST_USE;
/* name.len -1, status 0: as it is. 20: no such user; 43, 45, 46; 4108: root can't be made inactive. */
uint32_t users_update(struct users *u, const struct iggy_identifier *id, struct str name,
                      uint8_t status) MUST_USE;
uint32_t users_set_permissions(struct users *u, const struct iggy_identifier *id,
                               const struct iggy_permissions *p /* NULL: none */) MUST_USE; /* 20; 49: root */
uint32_t users_delete(struct users *u, const struct iggy_identifier *id) MUST_USE;          /* 20; 48: root */
/* 20; 42: current is wrong; 44. */
uint32_t users_change_password(struct users *u, const struct iggy_identifier *id, struct str current,
                               struct str changed) MUST_USE;

/*
 * expiry_us: from now; IGGY_NEVER, or 0 as official clients say it. raw_out: shown once. 20: no such user; 50: the name's length; 51: the
 * name; 52: USERS_TOKENS_MAX of them that are good; 56: the expiry.
 */
uint32_t users_create_token(struct users *u, uint32_t user_id, struct str name, uint64_t expiry_us,
                            char raw_out[USERS_TOKEN_BYTES]) MUST_USE;
uint32_t users_delete_token(struct users *u, uint32_t user_id, struct str name) MUST_USE; /* 20 */
#endif
