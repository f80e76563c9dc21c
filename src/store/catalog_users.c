/* The catalog's users, tokens and groups. */
#include "store/catalog_impl.h"

/* ---- reading ---- */

enum status catalog_each_user(struct catalog *c, enum status (*fn)(void *, const struct store_user *),
                              void *user) {
    sqlite3_stmt *q = NULL;
    enum status st = catalog_query(c, &q,
                                   "SELECT user_id, created_us, active, name, password_hash, permissions"
                                   " FROM users ORDER BY user_id",
                                   "");
    while (catalog_next(c, q, &st))
        st = fn(user, &(struct store_user){
                          .id = catalog_column_u32(q, 0),
                          .created_us = sqlite3_column_int64(q, 1),
                          .active = sqlite3_column_int(q, 2) != 0,
                          .name = catalog_column_str(q, 3),
                          .password_hash = catalog_column_str(q, 4),
                          .permissions = catalog_column_bytes(q, 5),
                      });
    sqlite3_finalize(q);
    return st;
}

enum status catalog_each_token(struct catalog *c, enum status (*fn)(void *, const struct store_token *),
                               void *user) {
    sqlite3_stmt *q = NULL;
    enum status st =
        catalog_query(c, &q, "SELECT user_id, name, hash, expires_us FROM tokens ORDER BY user_id, name", "");
    while (catalog_next(c, q, &st))
        st = fn(user, &(struct store_token){
                          .user_id = catalog_column_u32(q, 0),
                          .name = catalog_column_str(q, 1),
                          .hash = catalog_column_bytes(q, 2),
                          .expires_us = sqlite3_column_int64(q, 3),
                      });
    sqlite3_finalize(q);
    return st;
}

enum status catalog_each_group(struct catalog *c, enum status (*fn)(void *, const struct store_group *),
                               void *user) {
    sqlite3_stmt *q = NULL;
    enum status st = catalog_query(c, &q,
                                   "SELECT stream_id, topic_id, group_id, name FROM consumer_groups"
                                   " ORDER BY stream_id, topic_id, group_id",
                                   "");
    while (catalog_next(c, q, &st))
        st = fn(user, &(struct store_group){
                          .stream_id = catalog_column_u32(q, 0),
                          .topic_id = catalog_column_u32(q, 1),
                          .group_id = catalog_column_u32(q, 2),
                          .name = catalog_column_str(q, 3),
                      });
    sqlite3_finalize(q);
    return st;
}

enum status catalog_each_group_settings(struct catalog *c,
                                        enum status (*fn)(void *, const struct store_group_settings *),
                                        void *user) {
    sqlite3_stmt *q = NULL;
    enum status st =
        catalog_query(c, &q, "SELECT name, session_ms, heartbeat_ms FROM group_settings ORDER BY name", "");
    while (catalog_next(c, q, &st)) {
        struct bytes name = catalog_column_bytes(q, 0);
        st = fn(user, &(struct store_group_settings){
                          .group = {(const char *)name.ptr, name.len},
                          .session_ms = sqlite3_column_int(q, 1),
                          .heartbeat_ms = sqlite3_column_int(q, 2),
                      });
    }
    sqlite3_finalize(q);
    return st;
}

/* ---- users ---- */

/* Ids go on behind the greatest that was ever given, which SQLite keeps for an AUTOINCREMENT key; the first is 0. */
enum status catalog_user_add(struct catalog *c, const struct store_user *u, uint32_t *id_out) {
    enum status st = catalog_run(
        c,
        "INSERT INTO users (user_id, name, created_us, active, password_hash, permissions) VALUES"
        " (coalesce((SELECT seq + 1 FROM sqlite_sequence WHERE name = 'users'), 0), ?, ?, ?, ?, ?)",
        "siisx", u->name, u->created_us, (int64_t)u->active, u->password_hash, u->permissions);
    if (!st)
        *id_out = (uint32_t)sqlite3_last_insert_rowid(c->db);
    return st;
}

enum status catalog_user_set(struct catalog *c, const struct store_user *u) {
    enum status st = catalog_run(
        c, "UPDATE users SET name = ?, active = ?, password_hash = ?, permissions = ? WHERE user_id = ?",
        "sisxi", u->name, (int64_t)u->active, u->password_hash, u->permissions, (int64_t)u->id);
    return catalog_changed(c, st);
}

enum status catalog_user_remove(struct catalog *c, uint32_t id) {
    enum status st = catalog_begin(c);
    if (!st)
        st = catalog_run(c, "DELETE FROM tokens WHERE user_id = ?", "i", (int64_t)id);
    if (!st) {
        st = catalog_run(c, "DELETE FROM users WHERE user_id = ?", "i", (int64_t)id);
        st = catalog_changed(c, st);
    }
    return catalog_finish(c, st);
}

/* ---- tokens ---- */

enum status catalog_token_add(struct catalog *c, const struct store_token *t) {
    enum status st = catalog_run(c,
                                 "INSERT INTO tokens (user_id, name, hash, expires_us)"
                                 " SELECT user_id, ?, ?, ? FROM users WHERE user_id = ?",
                                 "sxii", t->name, t->hash, t->expires_us, (int64_t)t->user_id);
    return catalog_changed(c, st);
}

enum status catalog_token_remove(struct catalog *c, uint32_t user_id, struct str name) {
    enum status st =
        catalog_run(c, "DELETE FROM tokens WHERE user_id = ? AND name = ?", "is", (int64_t)user_id, name);
    return catalog_changed(c, st);
}

/* ---- groups ---- */

static enum status next_group_id(struct catalog *c, const struct store_group *g, uint32_t *out) {
    sqlite3_stmt *q = NULL;
    enum status st =
        catalog_query(c, &q, "SELECT next_group_id FROM topics WHERE stream_id = ? AND topic_id = ?", "ii",
                      (int64_t)g->stream_id, (int64_t)g->topic_id);
    if (catalog_next(c, q, &st))
        *out = catalog_column_u32(q, 0);
    else if (!st)
        st = ST_NOT_FOUND;
    sqlite3_finalize(q);
    return st;
}

enum status catalog_group_add(struct catalog *c, const struct store_group *g, uint32_t *group_id_out) {
    uint32_t id = 0;
    enum status st = catalog_begin(c);
    if (!st)
        st = next_group_id(c, g, &id);
    if (!st)
        st = catalog_run(
            c, "INSERT INTO consumer_groups (stream_id, topic_id, group_id, name) VALUES (?, ?, ?, ?)",
            "iiis", (int64_t)g->stream_id, (int64_t)g->topic_id, (int64_t)id, g->name);
    if (!st)
        st = catalog_run(c, "UPDATE topics SET next_group_id = ? WHERE stream_id = ? AND topic_id = ?", "iii",
                         (int64_t)id + 1, (int64_t)g->stream_id, (int64_t)g->topic_id);
    st = catalog_finish(c, st);
    if (!st)
        *group_id_out = id;
    return st;
}

enum status catalog_group_remove(struct catalog *c, uint32_t stream_id, uint32_t topic_id,
                                 uint32_t group_id) {
    enum status st =
        catalog_run(c, "DELETE FROM consumer_groups WHERE stream_id = ? AND topic_id = ? AND group_id = ?",
                    "iii", (int64_t)stream_id, (int64_t)topic_id, (int64_t)group_id);
    return catalog_changed(c, st);
}

enum status catalog_group_settings_set(struct catalog *c, const struct store_group_settings *g) {
    const struct bytes name = {(const uint8_t *)g->group.ptr, g->group.len};
    if (g->session_ms == 0 && g->heartbeat_ms == 0)
        return catalog_run(c, "DELETE FROM group_settings WHERE name = ?", "x", name);
    return catalog_run(
        c, "INSERT OR REPLACE INTO group_settings (name, session_ms, heartbeat_ms) VALUES (?, ?, ?)", "xii",
        name, (int64_t)g->session_ms, (int64_t)g->heartbeat_ms);
}
