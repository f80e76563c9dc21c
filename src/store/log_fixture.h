/* Tests: a store with one topic of one partition, batches whose payload follows from their offset, and crashes. */
#ifndef STORE_LOG_FIXTURE_H
#define STORE_LOG_FIXTURE_H

#include "base/base.h"
#include "store/store.h"

struct log {
    const char *dir;
    struct store *s;
    struct topic *t;
    struct partition *p;
};

/* A new folder, removed at the end; static text, valid until the next 4 calls. */
const char *log_dir(void);

extern int64_t fixture_wall_ms; /* what the stores' clock says */
struct store_settings fixture_settings(const char *dir, int64_t segment_bytes);

/* Open the store in dir, with the stream "kafka", and segments of 1 MiB; a topic in it, held. */
struct store *store_in(const char *dir);
struct topic *fixture_topic(struct store *s, const char *name, int32_t partitions);

/* Run SQL on the catalog in dir, which nobody has open. */
void run_sql(const char *dir, const char *sql);
void path_in(const char *dir, const char *name, char out[256]);
bool exists(const char *dir, const char *name);

/* Open the store in dir with segments of that size, make the topic when it is missing. */
struct log log_open(const char *dir, int64_t segment_bytes);
void log_close(struct log *l);

/* A batch with a payload of size bytes that fixture_batch_free frees. */
struct store_batch fixture_batch(int64_t offset, int32_t records, int32_t size, int64_t ts);
void fixture_batch_free(struct store_batch *b);
bool payload_is(const uint8_t *p, int64_t offset, int32_t size);

/* Append one batch of so many records and bytes; or count batches of one record, with the offset as timestamp. */
enum status log_append(struct log *l, int32_t records, int32_t size, int64_t ts);
void log_append_many(struct log *l, int32_t count, int32_t size);

/* Read one batch of one record at offset, and check that it is the one that log_append made; or all in [from, to). */
enum status log_check(struct log *l, int64_t offset, int32_t size);
void log_check_all(struct log *l, int64_t from, int64_t to, int32_t size);

/* The path of a segment's file, in static memory valid until the next four calls; ext: log, idx. */
const char *log_file(const char *dir, int64_t base_offset, const char *ext);
int64_t file_bytes(const char *path); /* -1: not there */
void file_flip(const char *path, int64_t position);
void file_put(const char *path, int64_t position, const void *bytes, size_t size);

/* Run fn in a child that may not write everything, as root may; true: it returned true. */
bool as_nobody(bool (*fn)(const char *dir), const char *dir);

/* Run fn on an open log in a child that dies without closing it, as by kill -9. */
void log_crash(const char *dir, int64_t segment_bytes, void (*fn)(struct log *));
#endif
