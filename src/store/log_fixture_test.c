/* The fixture of the store's tests: see the header. */
#include "store/log_fixture.h"

#include "testing/test.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/batch_header.h"
#include "store/file.h"
#include "store/partition.h"

const char *log_dir(void) {
    static const char *above;
    static char dirs[4][64];
    static unsigned count;
    if (!above) {
        above = test_dir();
        CHECK_EQ(chmod(above, 0755), 0);
    }
    char *dir = dirs[count % COUNT_OF(dirs)];
    snprintf(dir, sizeof dirs[0], "%s/%u", above, count++);
    CHECK_EQ(mkdir(dir, 0755), 0);
    return dir;
}

int64_t fixture_wall_ms = 1000000;
static int64_t fixture_clock(void) {
    return fixture_wall_ms;
}

struct store_settings fixture_settings(const char *dir, int64_t segment_bytes) {
    return (struct store_settings){
        .data_dir = dir, .segment_bytes = segment_bytes, .segment_ms = -1, .now_wall_ms = fixture_clock};
}

struct store *store_in(const char *dir) {
    struct store *s = NULL;
    struct store_error error;
    struct store_settings settings = fixture_settings(dir, 1024 * 1024);
    CHECK_EQ(store_open(&settings, &s, &error), ST_OK);
    CHECK_EQ(store_stream_ensure(s, STR("kafka")), ST_OK);
    return s;
}

struct topic *fixture_topic(struct store *s, const char *name, int32_t partitions) {
    struct topic *t = NULL;
    struct store_topic_new want = {
        .stream = STR("kafka"), .name = str_of(name), .partitions_count = partitions};
    CHECK_EQ(store_topic_create(s, &want, &t), ST_OK);
    return t;
}

void path_in(const char *dir, const char *name, char out[256]) {
    snprintf(out, 256, "%s/%s", dir, name);
}

bool exists(const char *dir, const char *name) {
    char path[256];
    path_in(dir, name, path);
    return access(path, F_OK) == 0;
}

void run_sql(const char *dir, const char *sql) {
    char path[256];
    sqlite3 *db;
    path_in(dir, "catalog.db", path);
    CHECK_EQ(sqlite3_open(path, &db), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* Open the store in dir with segments of that size, make the topic when it is missing. */
struct log log_open(const char *dir, int64_t segment_bytes) {
    struct log l = {.dir = dir};
    struct store_error error;
    struct store_settings settings = fixture_settings(dir, segment_bytes);
    CHECK_EQ(store_open(&settings, &l.s, &error), ST_OK);
    CHECK_EQ(store_stream_ensure(l.s, STR("kafka")), ST_OK);
    l.t = store_topic_find(l.s, STR("kafka"), STR("t"));
    if (!l.t) {
        struct store_topic_new want = {.stream = STR("kafka"), .name = STR("t"), .partitions_count = 1};
        CHECK_EQ(store_topic_create(l.s, &want, &l.t), ST_OK);
    }
    l.p = topic_partition(l.t, 0);
    return l;
}

void log_close(struct log *l) {
    topic_unref(l->t);
    store_close(l->s);
    l->s = NULL;
}

static uint8_t fixture_byte(int64_t offset, int32_t i) {
    return (uint8_t)((offset * 131 + i * 7 + (i >> 8)) |
                     1); /* zeros have a meaning of their own at the end */
}

/* A batch with a payload of size bytes; memory: the caller's (mem_free of payload.ptr). */
struct store_batch fixture_batch(int64_t offset, int32_t records, int32_t size, int64_t ts) {
    uint8_t *payload = mem_take((size_t)size);
    for (int32_t i = 0; i < size; i++)
        payload[i] = fixture_byte(offset, i);
    return (struct store_batch){.payload = {payload, size},
                                .base_offset = offset,
                                .max_timestamp = ts,
                                .records_count = records,
                                .format = STORE_FORMAT_KAFKA};
}

void fixture_batch_free(struct store_batch *b) {
    mem_free((void *)(uintptr_t)b->payload.ptr);
    b->payload = BYTES_NULL;
}

/* Append one batch of so many records and bytes. */
enum status log_append(struct log *l, int32_t records, int32_t size, int64_t ts) {
    int64_t cut;
    enum status opened = partition_open(l->p, &cut);
    (void)opened; /* the append says it again */
    struct store_batch b = fixture_batch(partition_end(l->p), records, size, ts);
    enum status st = partition_append(l->p, &b, 1);
    fixture_batch_free(&b);
    return st;
}

void log_append_many(struct log *l, int32_t count, int32_t size) {
    for (int32_t i = 0; i < count; i++)
        CHECK_EQ(log_append(l, 1, size, partition_end(l->p)), ST_OK);
}

/* What stands in the runs is the payload of the batch at offset, of that size; then the rest. */
bool payload_is(const uint8_t *p, int64_t offset, int32_t size) {
    for (int32_t i = 0; i < size; i++)
        if (p[i] != fixture_byte(offset, i))
            return false;
    return true;
}

/* Read one batch of one record at offset; whether it is the one that log_append made. */
enum status log_check(struct log *l, int64_t offset, int32_t size) {
    struct store_read r;
    enum status st = partition_read(l->p, offset, 1, true, &r);
    if (!st) {
        CHECK_EQ(r.runs_count, 1);
        CHECK_EQ(r.bytes, size);
        CHECK_EQ(r.next_offset, offset + 1);
        CHECK(payload_is(r.runs[0].bytes.ptr, offset, size));
    }
    store_read_release(&r);
    return st;
}

void log_check_all(struct log *l, int64_t from, int64_t to, int32_t size) {
    for (int64_t offset = from; offset < to; offset++)
        CHECK_EQ(log_check(l, offset, size), ST_OK);
}

/* The path of a segment's file, in static memory valid until the next four calls. */
const char *log_file(const char *dir, int64_t base_offset, const char *ext) {
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/topics/1/1/0/%020" PRId64 ".%s", dir, base_offset, ext);
    return path;
}

int64_t file_bytes(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
}

void file_flip(const char *path, int64_t position) {
    uint8_t b;
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0);
    CHECK_EQ(pread(fd, &b, 1, position), 1);
    b ^= 0x40;
    CHECK_EQ(pwrite(fd, &b, 1, position), 1);
    close(fd);
}

void file_put(const char *path, int64_t position, const void *bytes, size_t size) {
    int fd = open(path, O_RDWR | O_CREAT, 0640);
    CHECK(fd >= 0);
    CHECK_EQ(pwrite(fd, bytes, size, position), size);
    close(fd);
}

/* Run fn on an open log in a child that dies without closing it, as by kill -9. */
void log_crash(const char *dir, int64_t segment_bytes, void (*fn)(struct log *)) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct log l = log_open(dir, segment_bytes);
        fn(&l);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

bool as_nobody(bool (*fn)(const char *dir), const char *dir) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        bool dropped = geteuid() != 0 || (setegid(65534) == 0 && seteuid(65534) == 0);
        _exit(dropped && fn(dir) ? 0 : 1);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
