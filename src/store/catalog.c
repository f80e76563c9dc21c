#include "store/catalog.h"

#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "store/file.h"

#define APPLICATION_ID 0x49474b43 /* "IGKC" */
#define SCHEMA_VERSION 1

struct catalog {
    sqlite3 *db;
};

static const char schema[] =
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE streams (stream_id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,"
    " next_topic_id INTEGER NOT NULL DEFAULT 1);"
    "CREATE TABLE topics (stream_id INTEGER NOT NULL, topic_id INTEGER NOT NULL, name TEXT NOT NULL, uuid "
    "BLOB NOT NULL,"
    " partitions_count INTEGER NOT NULL, created_us INTEGER NOT NULL,"
    " PRIMARY KEY (stream_id, topic_id), UNIQUE (stream_id, name)) WITHOUT ROWID;"
    "CREATE TABLE topic_settings (stream_id INTEGER NOT NULL, topic_id INTEGER NOT NULL, key TEXT NOT NULL,"
    " value TEXT NOT NULL, PRIMARY KEY (stream_id, topic_id, key)) WITHOUT ROWID;";

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

static enum status status_of(const struct catalog *c, int code) {
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
    case SQLITE_BUSY:
        return ST_IN_USE;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        return status_of_file(c);
    default:
        return ST_IO;
    }
}

/* Prepare and bind: per letter of types one argument: i int64_t, s struct str, b const struct uuid *. */
static enum status prepare(struct catalog *c, sqlite3_stmt **out, const char *sql, const char *types,
                           va_list args) {
    int code = sqlite3_prepare_v2(c->db, sql, -1, out, NULL);
    for (int i = 0; code == SQLITE_OK && types[i]; i++) {
        if (types[i] == 'i') {
            code = sqlite3_bind_int64(*out, i + 1, va_arg(args, int64_t));
        } else if (types[i] == 's') {
            struct str s = va_arg(args, struct str);
            code =
                sqlite3_bind_text(*out, i + 1, s.len > 0 ? s.ptr : "", s.len > 0 ? s.len : 0, SQLITE_STATIC);
        } else {
            code = sqlite3_bind_blob(*out, i + 1, va_arg(args, const struct uuid *)->b, 16, SQLITE_STATIC);
        }
    }
    return status_of(c, code);
}

static enum status query(struct catalog *c, sqlite3_stmt **out, const char *sql, const char *types, ...) {
    va_list args;
    va_start(args, types);
    enum status st = prepare(c, out, sql, types, args);
    va_end(args);
    return st;
}

/* Run a statement that gives no rows, or whose rows don't matter. */
static enum status run(struct catalog *c, const char *sql, const char *types, ...) {
    sqlite3_stmt *q = NULL;
    va_list args;
    va_start(args, types);
    enum status st = prepare(c, &q, sql, types, args);
    va_end(args);
    int code = SQLITE_ROW;
    while (!st && code == SQLITE_ROW) {
        code = sqlite3_step(q);
        st = status_of(c, code);
    }
    sqlite3_finalize(q);
    return st;
}

static enum status begin(struct catalog *c) {
    return run(c, "BEGIN IMMEDIATE", "");
}

/* Commit if all went well, else take all back. */
static enum status finish(struct catalog *c, enum status st) {
    if (!st)
        st = run(c, "COMMIT", "");
    if (st && !sqlite3_get_autocommit(c->db)) {
        enum status ignored = run(c, "ROLLBACK", "");
        (void)ignored;
    }
    return st;
}

static struct str column_str(sqlite3_stmt *q, int column) {
    const char *text = (const char *)sqlite3_column_text(q, column);
    return text ? (struct str){text, sqlite3_column_bytes(q, column)} : STR("");
}

/* ---- open ---- */

static enum status number_of(struct catalog *c, const char *sql, int64_t *out) {
    sqlite3_stmt *q = NULL;
    enum status st = query(c, &q, sql, "");
    if (!st) {
        int code = sqlite3_step(q);
        st = status_of(c, code);
        *out = code == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
    }
    sqlite3_finalize(q);
    return st;
}

static enum status create_schema(struct catalog *c) {
    enum status st = begin(c);
    if (!st)
        st = status_of(c, sqlite3_exec(c->db, schema, NULL, NULL, NULL));
    if (!st)
        st = run(c, "PRAGMA application_id = 1229409091", "");
    if (!st)
        st = run(c, "PRAGMA user_version = 1", "");
    return finish(c, st);
}
_Static_assert(APPLICATION_ID == 1229409091 && SCHEMA_VERSION == 1, "as create_schema spells them");

static enum status check_sound(struct catalog *c, const char **reason) {
    sqlite3_stmt *q = NULL;
    enum status st = query(c, &q, "PRAGMA quick_check(1)", "");
    if (!st)
        st = status_of(c, sqlite3_step(q));
    if (!st && !str_equal(column_str(q, 0), STR("ok"))) {
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
        return create_schema(c);
    if (application != APPLICATION_ID) {
        *reason = "it is a database, but not a catalog";
        return ST_CORRUPT;
    }
    if (version != SCHEMA_VERSION) {
        *reason = "it was written by a newer version of this program";
        return ST_CORRUPT;
    }
    return check_sound(c, reason);
}

enum status catalog_open(const char *path, struct catalog **out, bool *created_out, char reason_out[256]) {
    const char *reason = NULL;
    struct catalog *c = mem_take_zeroed(1, sizeof *c);
    if (!c) {
        snprintf(reason_out, 256, "%s", status_text(ST_NO_MEMORY));
        return ST_NO_MEMORY;
    }
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    enum status st = status_of(c, sqlite3_open_v2(path, &c->db, flags, NULL));
    /* The store holds its own lock on the folder; with an exclusive one SQLite needs no shared memory file. */
    if (!st)
        st = run(c, "PRAGMA locking_mode = EXCLUSIVE", "");
    if (!st)
        st = run(c, "PRAGMA journal_mode = WAL", "");
    if (!st)
        st = run(c, "PRAGMA synchronous = FULL", "");
    if (!st)
        st = check_schema(c, created_out, &reason);
    if (st) {
        snprintf(reason_out, 256, "%s", reason ? reason : c->db ? sqlite3_errmsg(c->db) : status_text(st));
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
    enum status st = query(c, &q, "SELECT value FROM meta WHERE key = ?", "s", str_of(key));
    if (!st) {
        int code = sqlite3_step(q);
        st = status_of(c, code);
        if (code == SQLITE_ROW) {
            value = mem_text(column_str(q, 0));
            st = value ? ST_OK : ST_NO_MEMORY;
        }
    }
    sqlite3_finalize(q);
    if (!st)
        *out = value;
    return st;
}

enum status catalog_each_stream(struct catalog *c, enum status (*fn)(void *, const struct catalog_stream *),
                                void *user) {
    sqlite3_stmt *q = NULL;
    enum status st = query(c, &q, "SELECT stream_id, next_topic_id, name FROM streams", "");
    while (!st) {
        int code = sqlite3_step(q);
        st = status_of(c, code);
        if (st || code == SQLITE_DONE)
            break;
        st = fn(user, &(struct catalog_stream){
                          .id = (uint32_t)sqlite3_column_int64(q, 0),
                          .next_topic_id = (uint32_t)sqlite3_column_int64(q, 1),
                          .name = column_str(q, 2),
                      });
    }
    sqlite3_finalize(q);
    return st;
}

enum status catalog_each_topic(struct catalog *c, enum status (*fn)(void *, const struct catalog_topic *),
                               void *user) {
    sqlite3_stmt *q = NULL;
    enum status st =
        query(c, &q, "SELECT stream_id, topic_id, name, uuid, partitions_count, created_us FROM topics", "");
    while (!st) {
        int code = sqlite3_step(q);
        st = status_of(c, code);
        if (st || code == SQLITE_DONE)
            break;
        struct catalog_topic t = {
            .stream_id = (uint32_t)sqlite3_column_int64(q, 0),
            .topic_id = (uint32_t)sqlite3_column_int64(q, 1),
            .name = column_str(q, 2),
            .partitions_count = sqlite3_column_int(q, 4),
            .created_us = sqlite3_column_int64(q, 5),
        };
        const void *uuid = sqlite3_column_blob(q, 3);
        if (!uuid || sqlite3_column_bytes(q, 3) != sizeof t.id || t.partitions_count < 1) {
            st = ST_CORRUPT;
            break;
        }
        memcpy(&t.id, uuid, sizeof t.id);
        st = fn(user, &t);
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
        query(c, &q, "SELECT key, value FROM topic_settings WHERE stream_id = ? AND topic_id = ?", "ii",
              (int64_t)stream_id, (int64_t)topic_id);
    while (!st) {
        int code = sqlite3_step(q);
        st = status_of(c, code);
        if (st || code == SQLITE_DONE)
            break;
        struct store_setting *grown = mem_grow(all, (size_t)(count + 1) * sizeof *all);
        if (grown) {
            all = grown;
            all[count] = (struct store_setting){mem_text(column_str(q, 0)), mem_text(column_str(q, 1))};
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
    return run(
        c,
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        "ss", str_of(key), str_of(value));
}

enum status catalog_stream_add(struct catalog *c, struct str name, uint32_t *id_out) {
    enum status st = run(c, "INSERT INTO streams (name) VALUES (?)", "s", name);
    if (!st)
        *id_out = (uint32_t)sqlite3_last_insert_rowid(c->db);
    return st;
}

static enum status insert_settings(struct catalog *c, uint32_t stream_id, uint32_t topic_id,
                                   const struct store_setting *settings, int32_t count) {
    enum status st = ST_OK;
    for (int32_t i = 0; !st && i < count; i++)
        st = run(
            c, "INSERT OR REPLACE INTO topic_settings (stream_id, topic_id, key, value) VALUES (?, ?, ?, ?)",
            "iiss", (int64_t)stream_id, (int64_t)topic_id, str_of(settings[i].key),
            str_of(settings[i].value));
    return st;
}

static enum status delete_settings(struct catalog *c, uint32_t stream_id, uint32_t topic_id) {
    return run(c, "DELETE FROM topic_settings WHERE stream_id = ? AND topic_id = ?", "ii", (int64_t)stream_id,
               (int64_t)topic_id);
}

enum status catalog_topic_add(struct catalog *c, const struct catalog_topic *t,
                              const struct store_setting *settings, int32_t count) {
    enum status st = begin(c);
    if (!st)
        st = run(c, "UPDATE streams SET next_topic_id = ? WHERE stream_id = ?", "ii",
                 (int64_t)t->topic_id + 1, (int64_t)t->stream_id);
    if (!st)
        st = run(c,
                 "INSERT INTO topics (stream_id, topic_id, name, uuid, partitions_count, created_us)"
                 " VALUES (?, ?, ?, ?, ?, ?)",
                 "iisbii", (int64_t)t->stream_id, (int64_t)t->topic_id, t->name, &t->id,
                 (int64_t)t->partitions_count, t->created_us);
    if (!st)
        st = insert_settings(c, t->stream_id, t->topic_id, settings, count);
    return finish(c, st);
}

enum status catalog_topic_remove(struct catalog *c, uint32_t stream_id, uint32_t topic_id) {
    enum status st = begin(c);
    if (!st)
        st = delete_settings(c, stream_id, topic_id);
    if (!st)
        st = run(c, "DELETE FROM topics WHERE stream_id = ? AND topic_id = ?", "ii", (int64_t)stream_id,
                 (int64_t)topic_id);
    return finish(c, st);
}

enum status catalog_topic_grow(struct catalog *c, uint32_t stream_id, uint32_t topic_id,
                               int32_t partitions_count) {
    return run(c, "UPDATE topics SET partitions_count = ? WHERE stream_id = ? AND topic_id = ?", "iii",
               (int64_t)partitions_count, (int64_t)stream_id, (int64_t)topic_id);
}

enum status catalog_topic_set(struct catalog *c, uint32_t stream_id, uint32_t topic_id,
                              const struct store_setting *settings, int32_t count) {
    enum status st = begin(c);
    if (!st)
        st = delete_settings(c, stream_id, topic_id);
    if (!st)
        st = insert_settings(c, stream_id, topic_id, settings, count);
    return finish(c, st);
}
