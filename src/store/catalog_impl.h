/* SQLite in our terms, for catalog.c (schema, streams, topics) and catalog_users.c. */
#ifndef STORE_CATALOG_IMPL_H
#define STORE_CATALOG_IMPL_H

#include <sqlite3.h>

#include "base/base.h"
#include "store/catalog.h"

struct catalog {
    sqlite3 *db;
    char failure[256]; /* why the file could not be brought to this version */
};

/* What a result code of SQLite means: ST_OK for rows and their end too; ST_EXISTS: a row with that key is there. */
enum status catalog_status(const struct catalog *c, int code) MUST_USE;

/*
 * Prepare and bind; finalize *out also after an error. types: per letter one argument, text and bytes borrowed until then:
 * i int64_t; s struct str; u const struct uuid *; x struct bytes (len -1: NULL).
 */
enum status catalog_query(struct catalog *c, sqlite3_stmt **out, const char *sql, const char *types,
                          ...) MUST_USE;

/* Run a statement that gives no rows, or whose rows don't matter. */
enum status catalog_run(struct catalog *c, const char *sql, const char *types, ...) MUST_USE;

/* ST_NOT_FOUND where the last statement changed no row; st otherwise. */
enum status catalog_changed(const struct catalog *c, enum status st) MUST_USE;

enum status catalog_begin(struct catalog *c) MUST_USE;
/* Commit if all went well (st), else take all back and return st. */
enum status catalog_finish(struct catalog *c, enum status st) MUST_USE;

/* Step; false: no more rows, or an error, which is in *st. */
bool catalog_next(struct catalog *c, sqlite3_stmt *q, enum status *st) MUST_USE;

/* Borrowed until the next step. */
struct str catalog_column_str(sqlite3_stmt *q, int column);
struct bytes catalog_column_bytes(sqlite3_stmt *q, int column); /* len -1: NULL */
uint32_t catalog_column_u32(sqlite3_stmt *q, int column);
#endif
