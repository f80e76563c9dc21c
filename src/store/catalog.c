#include "store/catalog.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "store/catalog_impl.h"
#include "store/file.h"

#define APPLICATION_ID 0x49474b43 /* "IGKC" */

/* What brings a catalog from version i to i + 1. A version that has been released is never changed again. */
static const char *const steps[] = {
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE streams (stream_id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,"
    " next_topic_id INTEGER NOT NULL DEFAULT 1);"
    "CREATE TABLE topics (stream_id INTEGER NOT NULL, topic_id INTEGER NOT NULL, name TEXT NOT NULL, uuid "
    "BLOB NOT NULL,"
    " partitions_count INTEGER NOT NULL, created_us INTEGER NOT NULL,"
    " PRIMARY KEY (stream_id, topic_id), UNIQUE (stream_id, name)) WITHOUT ROWID;"
    "CREATE TABLE topic_settings (stream_id INTEGER NOT NULL, topic_id INTEGER NOT NULL, key TEXT NOT NULL,"
    " value TEXT NOT NULL, PRIMARY KEY (stream_id, topic_id, key)) WITHOUT ROWID;",

    /* Version 1 removed, at each start, all folders of numbers given and not in use: they become left-overs. */
    "ALTER TABLE streams ADD COLUMN created_us INTEGER NOT NULL DEFAULT 0;"
    "UPDATE streams SET created_us = coalesce("
    " (SELECT min(t.created_us) FROM topics t WHERE t.stream_id = streams.stream_id),"
    " CAST(strftime('%s', 'now') AS INTEGER) * 1000000);"
    "ALTER TABLE topics ADD COLUMN next_group_id INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE leftovers (stream_id INTEGER NOT NULL, topic_id INTEGER NOT NULL, partition INTEGER NOT "
    "NULL,"
    " PRIMARY KEY (stream_id, topic_id, partition)) WITHOUT ROWID;"
    "WITH RECURSIVE given (stream_id, topic_id, behind) AS ("
    " SELECT stream_id, 1, next_topic_id FROM streams WHERE next_topic_id > 1"
    " UNION ALL SELECT stream_id, topic_id + 1, behind FROM given WHERE topic_id + 1 < behind)"
    "INSERT INTO leftovers SELECT g.stream_id, g.topic_id, -1 FROM given g WHERE NOT EXISTS ("
    " SELECT 1 FROM topics t WHERE t.stream_id = g.stream_id AND t.topic_id = g.topic_id);"
    "CREATE TABLE users (user_id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,"
    " created_us INTEGER NOT NULL, active INTEGER NOT NULL, password_hash TEXT NOT NULL, permissions BLOB);"
    "CREATE TABLE tokens (user_id INTEGER NOT NULL, name TEXT NOT NULL, hash BLOB NOT NULL UNIQUE,"
    " expires_us INTEGER NOT NULL, PRIMARY KEY (user_id, name)) WITHOUT ROWID;"
    "CREATE TABLE consumer_groups (stream_id INTEGER NOT NULL, topic_id INTEGER NOT NULL,"
    " group_id INTEGER NOT NULL, name TEXT NOT NULL,"
    " PRIMARY KEY (stream_id, topic_id, group_id), UNIQUE (stream_id, topic_id, name)) WITHOUT ROWID;",

    ("CREATE TABLE group_settings (name BLOB PRIMARY KEY, session_ms INTEGER NOT NULL,"
     " heartbeat_ms INTEGER NOT NULL) WITHOUT ROWID;"),
};
#define SCHEMA_VERSION ((int)COUNT_OF(steps))

/* ---- SQLite in our terms ---- */

/* Why the file layer failed. A full quota or a size limit isn't SQLITE_FULL, and the log is a file of its own. */
static enum status status_of_file(const struct catalog *c) {
    int error = 0;
    sqlite3_file *log = NULL;
    if (!c->db)
        return ST_IO;
    sqlite3_file_control(c->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (log && log->pMethods)
        log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &error);
    if (error == 0)
        sqlite3_file_control(c->db, "main", SQLITE_FCNTL_LAST_ERRNO, &error);
    if (error == 0)
        error = sqlite3_system_errno(c->db);
    enum status st = file_status(error);
    return st == ST_NO_SPACE || st == ST_READ_ONLY ? st : ST_IO;
}

enum status catalog_status(const struct catalog *c, int code) {
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return ST_OK;
    case SQLITE_NOMEM:
        return ST_NO_MEMORY;
    case SQLITE_FULL:
        return ST_NO_SPACE;
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return ST_READ_ONLY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return ST_CORRUPT;
    case SQLITE_CONSTRAINT: /* of keys; no other is ever broken */
        return ST_EXISTS;
    case SQLITE_BUSY:
        return ST_IN_USE;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        return status_of_file(c);
    default:
        return ST_IO;
    }
}

static int bind(sqlite3_stmt *q, int at, char type, va_list *args) {
    if (type == 'i')
        return sqlite3_bind_int64(q, at, va_arg(*args, int64_t));
    if (type == 'u')
        return sqlite3_bind_blob(q, at, va_arg(*args, const struct uuid *)->b, 16, SQLITE_STATIC);
    if (type == 's') {
        struct str s = va_arg(*args, struct str);
        return sqlite3_bind_text(q, at, s.len > 0 ? s.ptr : "", s.len > 0 ? s.len : 0, SQLITE_STATIC);
    }
    struct bytes b = va_arg(*args, struct bytes);
    if (b.len < 0)
        return sqlite3_bind_null(q, at);
    return sqlite3_bind_blob(q, at, b.len > 0 ? (const void *)b.ptr : "", b.len, SQLITE_STATIC);
}

static enum status prepare(struct catalog *c, sqlite3_stmt **out, const char *sql, const char *types,
                           va_list *args) {
    int code = sqlite3_prepare_v2(c->db, sql, -1, out, NULL);
    for (int i = 0; code == SQLITE_OK && types[i]; i++)
        code = bind(*out, i + 1, types[i], args);
    return catalog_status(c, code);
}

enum status catalog_query(struct catalog *c, sqlite3_stmt **out, const char *sql, const char *types, ...) {
    va_list args;
    va_start(args, types);
    enum status st = prepare(c, out, sql, types, &args);
    va_end(args);
    return st;
}

enum status catalog_run(struct catalog *c, const char *sql, const char *types, ...) {
    sqlite3_stmt *q = NULL;
    va_list args;
    va_start(args, types);
    enum status st = prepare(c, &q, sql, types, &args);
    va_end(args);
    int code = SQLITE_ROW;
    while (!st && code == SQLITE_ROW) {
        code = sqlite3_step(q);
        st = catalog_status(c, code);
    }
    sqlite3_finalize(q);
    return st;
}

enum status catalog_begin(struct catalog *c) {
    return catalog_run(c, "BEGIN IMMEDIATE", "");
}

enum status catalog_finish(struct catalog *c, enum status st) {
    if (!st)
        st = catalog_run(c, "COMMIT", "");
    if (st && !sqlite3_get_autocommit(c->db)) {
        enum status ignored = catalog_run(c, "ROLLBACK", "");
        (void)ignored;
    }
    return st;
}

enum status catalog_changed(const struct catalog *c, enum status st) {
    return !st && sqlite3_changes(c->db) == 0 ? ST_NOT_FOUND : st;
}

bool catalog_next(struct catalog *c, sqlite3_stmt *q, enum status *st) {
    if (*st)
        return false;
    int code = sqlite3_step(q);
    *st = catalog_status(c, code);
    return code == SQLITE_ROW;
}

struct str catalog_column_str(sqlite3_stmt *q, int column) {
    const char *text = (const char *)sqlite3_column_text(q, column);
    return text ? (struct str){text, sqlite3_column_bytes(q, column)} : STR("");
}

struct bytes catalog_column_bytes(sqlite3_stmt *q, int column) {
    if (sqlite3_column_type(q, column) == SQLITE_NULL)
        return BYTES_NULL;
    const uint8_t *bytes = sqlite3_column_blob(q, column);
    return (struct bytes){bytes ? bytes : (const uint8_t *)"", sqlite3_column_bytes(q, column)};
}

uint32_t catalog_column_u32(sqlite3_stmt *q, int column) {
    return (uint32_t)sqlite3_column_int64(q, column);
}

/* ---- open ---- */

static enum status number_of(struct catalog *c, const char *sql, int64_t *out) {
    sqlite3_stmt *q = NULL;
    enum status st = catalog_query(c, &q, sql, "");
    *out = catalog_next(c, q, &st) ? sqlite3_column_int64(q, 0) : 0;
    sqlite3_finalize(q);
    return st;
}

/* From version (0: an empty file) to this one, all or nothing. */
static enum status upgrade(struct catalog *c, int64_t version, const char **reason) {
    char pragma[64];
    enum status st = catalog_begin(c);
    for (; !st && version < SCHEMA_VERSION; version++)
        st = catalog_status(c, sqlite3_exec(c->db, steps[version], NULL, NULL, NULL));
    snprintf(pragma, sizeof pragma, "PRAGMA application_id = %d", APPLICATION_ID);
    if (!st)
        st = catalog_run(c, pragma, "");
    snprintf(pragma, sizeof pragma, "PRAGMA user_version = %d", SCHEMA_VERSION);
    if (!st)
        st = catalog_run(c, pragma, "");
    if (st) { /* taking it back would let SQLite forget why */
        snprintf(c->failure, sizeof c->failure, "%s", sqlite3_errmsg(c->db));
        *reason = c->failure;
    }
    return catalog_finish(c, st);
}

static enum status check_sound(struct catalog *c, const char **reason) {
    sqlite3_stmt *q = NULL;
    enum status st = catalog_query(c, &q, "PRAGMA quick_check(1)", "");
    if (!st)
        st = catalog_status(c, sqlite3_step(q));
    if (!st && !str_equal(catalog_column_str(q, 0), STR("ok"))) {
        st = ST_CORRUPT;
        *reason = "it is damaged";
    }
    sqlite3_finalize(q);
    return st;
}

static enum status check_schema(struct catalog *c, bool *created, const char **reason) {
    int64_t application = 0, version = 0, tables = 0;
    enum status st = number_of(c, "PRAGMA application_id", &application);
    if (!st)
        st = number_of(c, "PRAGMA user_version", &version);
    if (!st)
        st = number_of(c, "SELECT count(*) FROM sqlite_schema", &tables);
    if (st)
        return st;
    *created = tables == 0 && application == 0 && version == 0;
    if (*created)
        return upgrade(c, 0, reason);
    if (application != APPLICATION_ID) {
        *reason = "it is a database, but not a catalog";
        return ST_CORRUPT;
    }
    if (version < 1 || version > SCHEMA_VERSION) {
        *reason = version < 1 ? "it is damaged" : "it was written by a newer version of this program";
        return ST_CORRUPT;
    }
    st = check_sound(c, reason);
    return st || version == SCHEMA_VERSION ? st : upgrade(c, version, reason);
}

enum status catalog_open(const char *path, struct catalog **out, bool *created_out, char reason_out[256]) {
    const char *reason = NULL;
    struct catalog *c = mem_take_zeroed(1, sizeof *c);
    if (!c) {
        snprintf(reason_out, 256, "%s", status_text(ST_NO_MEMORY));
        return ST_NO_MEMORY;
    }
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    enum status st = catalog_status(c, sqlite3_open_v2(path, &c->db, flags, NULL));
    /* The store holds its own lock on the folder; with an exclusive one SQLite needs no shared memory file. */
    if (!st)
        st = catalog_run(c, "PRAGMA locking_mode = EXCLUSIVE", "");
    if (!st)
        st = catalog_run(c, "PRAGMA journal_mode = WAL", "");
    if (!st)
        st = catalog_run(c, "PRAGMA synchronous = FULL", "");
    if (!st)
        st = check_schema(c, created_out, &reason);
    if (st) {
        bool told = c->db && sqlite3_errcode(c->db) != SQLITE_OK;
        snprintf(reason_out, 256, "%s", reason ? reason : told ? sqlite3_errmsg(c->db) : status_text(st));
        catalog_close(c);
        return st;
    }
    *out = c;
    return ST_OK;
}

void catalog_close(struct catalog *c) {
    if (!c)
        return;
    sqlite3_close(c->db);
    mem_free(c);
}

/* ---- reading ---- */

enum status catalog_value_get(struct catalog *c, const char *key, char **out) {
    sqlite3_stmt *q = NULL;
    char *value = NULL;
    enum status st = catalog_query(c, &q, "SELECT value FROM meta WHERE key = ?", "s", str_of(key));
    if (catalog_next(c, q, &st)) {
        value = mem_text(catalog_column_str(q, 0));
        st = value ? ST_OK : ST_NO_MEMORY;
    }
    sqlite3_finalize(q);
    if (!st)
        *out = value;
    return st;
}

enum status catalog_each_stream(struct catalog *c, enum status (*fn)(void *, const struct catalog_stream *),
                                void *user) {
    sqlite3_stmt *q = NULL;
    enum status st =
        catalog_query(c, &q, "SELECT stream_id, next_topic_id, created_us, name FROM streams", "");
    while (catalog_next(c, q, &st))
        st = fn(user, &(struct catalog_stream){
                          .id = catalog_column_u32(q, 0),
                          .next_topic_id = catalog_column_u32(q, 1),
                          .created_us = sqlite3_column_int64(q, 2),
                          .name = catalog_column_str(q, 3),
                      });
    sqlite3_finalize(q);
    return st;
}

enum status catalog_each_topic(struct catalog *c, enum status (*fn)(void *, const struct catalog_topic *),
                               void *user) {
    sqlite3_stmt *q = NULL;
    enum status st = catalog_query(
        c, &q, "SELECT stream_id, topic_id, name, uuid, partitions_count, created_us FROM topics", "");
    while (catalog_next(c, q, &st)) {
        struct catalog_topic t = {
            .stream_id = catalog_column_u32(q, 0),
            .topic_id = catalog_column_u32(q, 1),
            .name = catalog_column_str(q, 2),
            .partitions_count = sqlite3_column_int(q, 4),
            .created_us = sqlite3_column_int64(q, 5),
        };
        struct bytes uuid = catalog_column_bytes(q, 3);
        bool good = uuid.len == sizeof t.id && t.partitions_count >= 0;
        if (good)
            memcpy(&t.id, uuid.ptr, sizeof t.id);
        st = good ? fn(user, &t) : ST_CORRUPT;
    }
    sqlite3_finalize(q);
    return st;
}

void catalog_settings_free(struct store_setting *settings, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        mem_free(settings[i].key);
        mem_free(settings[i].value);
    }
    mem_free(settings);
}

enum status catalog_settings_get(struct catalog *c, uint32_t stream_id, uint32_t topic_id,
                                 struct store_setting **out, int32_t *count_out) {
    sqlite3_stmt *q = NULL;
    struct store_setting *all = NULL;
    int32_t count = 0;
    enum status st =
        catalog_query(c, &q, "SELECT key, value FROM topic_settings WHERE stream_id = ? AND topic_id = ?",
                      "ii", (int64_t)stream_id, (int64_t)topic_id);
    while (catalog_next(c, q, &st)) {
        struct store_setting *grown = mem_grow(all, (size_t)(count + 1) * sizeof *all);
        if (grown) {
            all = grown;
            all[count] = (struct store_setting){mem_text(catalog_column_str(q, 0)),
                                                mem_text(catalog_column_str(q, 1))};
            count++;
        }
        if (!grown || !all[count - 1].key || !all[count - 1].value)
            st = ST_NO_MEMORY;
    }
    sqlite3_finalize(q);
    if (st) {
        catalog_settings_free(all, count);
        return st;
    }
    *out = all;
    *count_out = count;
    return ST_OK;
}

/* ---- changes ---- */

enum status catalog_value_set(struct catalog *c, const char *key, const char *value) {
    return catalog_run(
        c,
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        "ss", str_of(key), str_of(value));
}

enum status catalog_stream_next_id(struct catalog *c, uint32_t *id_out) {
    int64_t last;
    enum status st = number_of(c, "SELECT seq FROM sqlite_sequence WHERE name = 'streams'", &last);
    *id_out = (uint32_t)last + 1;
    return st;
}

enum status catalog_stream_add(struct catalog *c, const struct catalog_stream *stream) {
    return catalog_run(c, "INSERT INTO streams (stream_id, name, created_us) VALUES (?, ?, ?)", "isi",
                       (int64_t)stream->id, stream->name, stream->created_us);
}

enum status catalog_stream_rename(struct catalog *c, uint32_t stream_id, struct str name) {
    return catalog_run(c, "UPDATE streams SET name = ? WHERE stream_id = ?", "si", name, (int64_t)stream_id);
}

enum status catalog_stream_remove(struct catalog *c, uint32_t stream_id) {
    return catalog_run(c, "DELETE FROM streams WHERE stream_id = ?", "i", (int64_t)stream_id);
}

static enum status insert_settings(struct catalog *c, uint32_t stream_id, uint32_t topic_id,
                                   const struct store_setting *settings, int32_t count) {
    enum status st = ST_OK;
    for (int32_t i = 0; !st && i < count; i++)
        st = catalog_run(
            c, "INSERT OR REPLACE INTO topic_settings (stream_id, topic_id, key, value) VALUES (?, ?, ?, ?)",
            "iiss", (int64_t)stream_id, (int64_t)topic_id, str_of(settings[i].key),
            str_of(settings[i].value));
    return st;
}

static enum status delete_settings(struct catalog *c, uint32_t stream_id, uint32_t topic_id) {
    return catalog_run(c, "DELETE FROM topic_settings WHERE stream_id = ? AND topic_id = ?", "ii",
                       (int64_t)stream_id, (int64_t)topic_id);
}

enum status catalog_topic_add(struct catalog *c, const struct catalog_topic *t,
                              const struct store_setting *settings, int32_t count) {
    enum status st = catalog_begin(c);
    if (!st)
        st = catalog_run(c, "UPDATE streams SET next_topic_id = ? WHERE stream_id = ?", "ii",
                         (int64_t)t->topic_id + 1, (int64_t)t->stream_id);
    if (!st)
        st = catalog_run(c,
                         "INSERT INTO topics (stream_id, topic_id, name, uuid, partitions_count, created_us)"
                         " VALUES (?, ?, ?, ?, ?, ?)",
                         "iisuii", (int64_t)t->stream_id, (int64_t)t->topic_id, t->name, &t->id,
                         (int64_t)t->partitions_count, t->created_us);
    if (!st)
        st = insert_settings(c, t->stream_id, t->topic_id, settings, count);
    return catalog_finish(c, st);
}

enum status catalog_topic_rename(struct catalog *c, uint32_t stream_id, uint32_t topic_id, struct str name) {
    return catalog_run(c, "UPDATE topics SET name = ? WHERE stream_id = ? AND topic_id = ?", "sii", name,
                       (int64_t)stream_id, (int64_t)topic_id);
}

static enum status leave(struct catalog *c, const struct catalog_leftover *row) {
    return catalog_run(c,
                       "INSERT OR REPLACE INTO leftovers (stream_id, topic_id, partition) VALUES (?, ?, ?)",
                       "iii", (int64_t)row->stream_id, (int64_t)row->topic_id, (int64_t)row->partition);
}

static enum status forget(struct catalog *c, const struct catalog_leftover *row) {
    return catalog_run(c, "DELETE FROM leftovers WHERE stream_id = ? AND topic_id = ? AND partition = ?",
                       "iii", (int64_t)row->stream_id, (int64_t)row->topic_id, (int64_t)row->partition);
}

enum status catalog_leftovers_forget_partitions(struct catalog *c, uint32_t stream_id, uint32_t topic_id) {
    return catalog_run(c, "DELETE FROM leftovers WHERE stream_id = ? AND topic_id = ? AND partition >= 0",
                       "ii", (int64_t)stream_id, (int64_t)topic_id);
}

enum status catalog_topic_remove(struct catalog *c, uint32_t stream_id, uint32_t topic_id) {
    static const char *const deletions[] = {
        "DELETE FROM topic_settings WHERE stream_id = ? AND topic_id = ?",
        "DELETE FROM consumer_groups WHERE stream_id = ? AND topic_id = ?",
        "DELETE FROM leftovers WHERE stream_id = ? AND topic_id = ?",
        "DELETE FROM topics WHERE stream_id = ? AND topic_id = ?",
    };
    enum status st = catalog_begin(c);
    for (size_t i = 0; !st && i < COUNT_OF(deletions); i++)
        st = catalog_run(c, deletions[i], "ii", (int64_t)stream_id, (int64_t)topic_id);
    if (!st)
        st = leave(c, &(struct catalog_leftover){stream_id, topic_id, -1});
    return catalog_finish(c, st);
}

static enum status set_partitions_count(struct catalog *c, uint32_t stream_id, uint32_t topic_id,
                                        int32_t partitions_count) {
    return catalog_run(c, "UPDATE topics SET partitions_count = ? WHERE stream_id = ? AND topic_id = ?",
                       "iii", (int64_t)partitions_count, (int64_t)stream_id, (int64_t)topic_id);
}

enum status catalog_topic_grow(struct catalog *c, uint32_t stream_id, uint32_t topic_id,
                               int32_t partitions_count) {
    enum status st = catalog_begin(c);
    if (!st)
        st = set_partitions_count(c, stream_id, topic_id, partitions_count);
    if (!st)
        st = catalog_run(
            c, "DELETE FROM leftovers WHERE stream_id = ? AND topic_id = ? AND partition BETWEEN 0 AND ?",
            "iii", (int64_t)stream_id, (int64_t)topic_id, (int64_t)partitions_count - 1);
    return catalog_finish(c, st);
}

enum status catalog_topic_shrink(struct catalog *c, uint32_t stream_id, uint32_t topic_id, int32_t before,
                                 int32_t after) {
    enum status st = catalog_begin(c);
    if (!st)
        st = set_partitions_count(c, stream_id, topic_id, after);
    for (int32_t i = after; !st && i < before; i++)
        st = leave(c, &(struct catalog_leftover){stream_id, topic_id, i});
    return catalog_finish(c, st);
}

enum status catalog_leftovers(struct catalog *c, struct catalog_leftover **out, int32_t *count_out) {
    sqlite3_stmt *q = NULL;
    int64_t room = 0;
    int32_t count = 0;
    enum status st = number_of(c, "SELECT count(*) FROM leftovers", &room);
    if (st)
        return st;
    struct catalog_leftover *rows = mem_take_zeroed((size_t)room, sizeof *rows);
    st = rows ? catalog_query(c, &q, "SELECT stream_id, topic_id, partition FROM leftovers", "")
              : ST_NO_MEMORY;
    while (count < room && catalog_next(c, q, &st))
        rows[count++] = (struct catalog_leftover){catalog_column_u32(q, 0), catalog_column_u32(q, 1),
                                                  sqlite3_column_int(q, 2)};
    sqlite3_finalize(q);
    if (st) {
        mem_free(rows);
        return st;
    }
    *out = rows;
    *count_out = count;
    return ST_OK;
}

enum status catalog_leftovers_forget(struct catalog *c, const struct catalog_leftover *rows, int32_t count) {
    if (count == 0)
        return ST_OK;
    enum status st = catalog_begin(c);
    for (int32_t i = 0; !st && i < count; i++)
        st = forget(c, &rows[i]);
    return catalog_finish(c, st);
}

enum status catalog_topic_set(struct catalog *c, uint32_t stream_id, uint32_t topic_id,
                              const struct store_setting *settings, int32_t count) {
    enum status st = catalog_begin(c);
    if (!st)
        st = delete_settings(c, stream_id, topic_id);
    if (!st)
        st = insert_settings(c, stream_id, topic_id, settings, count);
    return catalog_finish(c, st);
}
