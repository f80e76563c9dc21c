/*
 * The store as a whole: the data folder and its lock, opening and closing. The catalog is right: what it says is deleted
 * goes, and no other file is touched. Streams, topics, users: store_streams.c, store_topics.c, store_users.c.
 */
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/mem.h"
#include "store/catalog.h"
#include "store/file.h"
#include "store/offsets.h"
#include "store/partition.h"
#include "store/store_impl.h"

/* ---- open and close ---- */

static enum status refuse(struct store_error *error, enum status st, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static enum status refuse(struct store_error *error, enum status st, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return st;
}

static enum status refuse_folder(struct store *s, struct store_error *error, enum status st,
                                 const char *doing) {
    return refuse(error, st == ST_NOT_FOUND ? ST_IO : st, "%s: %s: %s", s->data_dir, doing, status_text(st));
}

/* Names this run of the machine, as far as the system tells; never 0. */
static uint64_t boot_hash(void) {
    char id[64] = "";
    size_t got = 0;
    int fd;
    if (!file_open(AT_FDCWD, "/proc/sys/kernel/random/boot_id", O_RDONLY, &fd)) {
        if (file_read(fd, id, sizeof id, 0, &got))
            got = 0;
        file_close(&fd);
    }
    /* Without it no two starts are of one run: everything not synced is checked. */
    if (got == 0)
        got = (size_t)snprintf(id, sizeof id, "%lld %lld", (long long)clock_wall_ms(), (long long)getpid());
    uint64_t hash = XXH3_64bits(id, got);
    return hash != 0 ? hash : 1;
}

static enum status lock_folder(struct store *s, struct store_error *error) {
    char pid[32] = "";
    size_t got = 0;
    enum status st = file_open(s->env.dir_fd, "lock", O_RDWR | O_CREAT, &s->lock_fd);
    if (st)
        return refuse_folder(s, error, st, "can't write its lock file");
    if (flock(s->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK)
            return refuse(error, ST_IO, "%s: can't be locked: %s", s->data_dir, strerror(errno));
        if (file_read(s->lock_fd, pid, sizeof pid - 1, 0, &got))
            got = 0;
        pid[strspn(pid, "0123456789")] = '\0';
        return refuse(error, ST_IN_USE, "%s: another process uses this data folder (process %s)", s->data_dir,
                      pid[0] ? pid : "unknown");
    }
    int len = snprintf(pid, sizeof pid, "%lld\n", (long long)getpid());
    st = file_cut(s->lock_fd, 0);
    if (!st)
        st = file_write_flat(s->lock_fd, pid, (size_t)len, 0);
    return st ? refuse_folder(s, error, st, "can't write its lock file") : ST_OK;
}

static bool folder_has_entries(int at_fd, const char *path) {
    DIR *dir;
    if (file_open_folder(at_fd, path, false, &dir))
        return false;
    int count = 0;
    while (readdir(dir))
        count++;
    closedir(dir);
    return count > 2; /* . and .. */
}

static enum status open_catalog(struct store *s, struct store_error *error) {
    char path[4096], reason[256];
    bool created = false;
    if (snprintf(path, sizeof path, "%s/catalog.db", s->data_dir) >= (int)sizeof path)
        return refuse(error, ST_INVALID, "the name of the data folder is too long");
    /* Without the catalog nobody knows which topic a folder belongs to. An empty one would hide that. */
    if (faccessat(s->env.dir_fd, "catalog.db", F_OK, 0) != 0 && folder_has_entries(s->env.dir_fd, "topics"))
        return refuse(error, ST_CORRUPT, "%s: catalog.db is missing, but there is data in topics/",
                      s->data_dir);
    enum status st = catalog_open(path, &s->catalog, &created, reason);
    if (st)
        return refuse(error, st, "%s: the catalog can't be used: %s", path, reason);
    if (created && file_sync_folder(s->env.dir_fd, "."))
        return refuse(error, ST_IO, "%s: can't be synced", s->data_dir);
    return ST_OK;
}

static enum status load_stream(void *user, const struct catalog_stream *row) {
    struct store *s = user;
    struct stream_info info = {.id = row->id, .created_us = row->created_us};
    if (!store_name_is_possible(row->name))
        return ST_CORRUPT;
    memcpy(info.name, row->name.ptr, (size_t)row->name.len);
    struct stream *stream;
    enum status st = registry_stream_add(&s->registry, &info, row->next_topic_id, &stream);
    if (!st)
        registry_stream_show(&s->registry, stream->name);
    return st;
}

static enum status load_topic(void *user, const struct catalog_topic *row) {
    struct store *s = user;
    struct topic *t;
    struct store_setting *settings;
    int32_t count;
    struct stream *stream = registry_stream_by_id(&s->registry, row->stream_id);
    if (!stream)
        return ST_CORRUPT;
    enum status st = store_topic_make(s, row, &t);
    if (st)
        return st;
    st = catalog_settings_get(s->catalog, row->stream_id, row->topic_id, &settings, &count);
    if (!st) {
        topic_settings_replace(t, settings, count);
        st = registry_add(&s->registry, t);
    }
    if (st) {
        topic_unref(t);
        return st;
    }
    registry_show(&s->registry, t);
    stream->topics_count++;
    s->parts_count += topic_parts(t);
    return ST_OK;
}

static bool is_there(const struct store *s, const char *path) {
    return faccessat(s->env.dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

enum status store_files_remove(struct store *s, struct topic_number number, int32_t from, int32_t to,
                               bool *any_out) {
    char path[64], above[64];
    bool any = false;
    enum status st = ST_OK;
    snprintf(above, sizeof above, from < 0 ? "topics/%u" : "topics/%u/%u", number.stream_id, number.topic_id);
    for (int32_t i = from; !st && i < to; i++) {
        if (i < 0)
            snprintf(path, sizeof path, "topics/%u/%u", number.stream_id, number.topic_id);
        else
            snprintf(path, sizeof path, "topics/%u/%u/%d", number.stream_id, number.topic_id, i);
        bool there = is_there(s, path);
        if (there)
            st = file_remove_tree(s->env.dir_fd, path);
        any |= there;
    }
    if (!st && any)
        st = file_sync_folder(s->env.dir_fd, above);
    *any_out = any;
    return st;
}

/* Remove what deletions were cut short of. Where it fails, the next start tries again, and growing before. */
static enum status remove_leftovers(struct store *s) {
    struct catalog_leftover *rows;
    int32_t count, gone = 0;
    bool any;
    enum status st = catalog_leftovers(s->catalog, &rows, &count);
    if (st)
        return st;
    for (int32_t i = 0; i < count; i++) {
        struct catalog_leftover row = rows[i];
        struct topic_number number = {row.stream_id, row.topic_id};
        struct topic *t = registry_find_number(&s->registry, number);
        if (!store_files_remove(s, number, row.partition, row.partition + 1, &any)) {
            s->leftovers_removed += any;
            rows[gone++] = row;
        } else if (t && t->stale_end <= row.partition) {
            t->stale_end = row.partition + 1;
        }
        topic_unref(t);
    }
    /* Written down or not: they are gone, and trying it again does no harm. */
    enum status ignored = catalog_leftovers_forget(s->catalog, rows, gone);
    (void)ignored;
    mem_free(rows);
    return ST_OK;
}

static int32_t partitions_of(void *user, const struct uuid *id) {
    struct store *s = user;
    struct topic *t = registry_find_id(&s->registry, id);
    int32_t count = t ? topic_partitions_count(t) : 0;
    topic_unref(t);
    return count;
}

static enum status open_offsets(struct store *s, struct store_error *error) {
    char reason[OFFSETS_REASON_BYTES];
    enum status st = offsets_open(s->env.dir_fd, partitions_of, s, &s->offsets, reason);
    return st ? refuse(error, st, "%s: %s", s->data_dir, reason) : ST_OK;
}

static enum status open_parts(struct store *s, struct store_error *error) {
    enum status st = file_make_folders(AT_FDCWD, s->data_dir);
    if (st == ST_EXISTS)
        return refuse(error, ST_INVALID, "%s is not a folder, or lies below something that is none",
                      s->data_dir);
    if (st)
        return refuse_folder(s, error, st, "can't be made");
    st = file_open(AT_FDCWD, s->data_dir, O_RDONLY | O_DIRECTORY, &s->env.dir_fd);
    if (st)
        return refuse_folder(s, error, st, "can't be opened");
    st = lock_folder(s, error);
    if (!st)
        st = open_catalog(s, error);
    if (st)
        return st;
    st = catalog_each_stream(s->catalog, load_stream, s);
    if (!st)
        st = catalog_each_topic(s->catalog, load_topic, s);
    if (!st)
        st = remove_leftovers(s);
    return st ? refuse_folder(s, error, st, "the catalog can't be read") : open_offsets(s, error);
}

#define RESERVE_FILE  "reserve"
#define RESERVE_BYTES (1024 * 1024)

void store_reserve_take(struct store *s) {
    if (s->reserve_fd < 0 &&
        file_open(s->env.dir_fd, RESERVE_FILE, O_RDWR | O_CREAT | O_NOFOLLOW, &s->reserve_fd))
        return;
    if (posix_fallocate(s->reserve_fd, 0, RESERVE_BYTES) != 0) { /* no half reserve on a full disk */
        enum status ignored = file_cut(s->reserve_fd, 0);
        (void)ignored;
    }
}

bool store_reserve_give(struct store *s) {
    int64_t size = 0;
    return s->reserve_fd >= 0 && file_size(s->reserve_fd, &size) == ST_OK && size > 0 &&
           file_cut(s->reserve_fd, 0) == ST_OK;
}

static void store_free(struct store *s) {
    file_close(&s->reserve_fd);
    offsets_close(s->offsets);
    registry_release(&s->registry);
    catalog_close(s->catalog);
    file_close(&s->lock_fd); /* ends the lock */
    file_close(&s->env.dir_fd);
    pthread_mutex_destroy(&s->catalog_lock);
    pthread_mutex_destroy(&s->env.idle_lock);
    mem_free(s->data_dir);
    mem_free(s);
}

enum status store_open(const struct store_settings *settings, struct store **out, struct store_error *error) {
    struct store *s = mem_take_zeroed(1, sizeof *s);
    if (!s)
        return refuse(error, ST_NO_MEMORY, "%s: %s", settings->data_dir, status_text(ST_NO_MEMORY));
    s->lock_fd = s->reserve_fd = s->env.dir_fd = -1;
    s->env.segment_bytes = settings->segment_bytes;
    s->env.segment_ms = settings->segment_ms;
    s->env.user_bytes = settings->user_bytes;
    s->env.user_init = settings->user_init;
    s->env.user_gone = settings->user_gone;
    s->env.user_release = settings->user_release;
    s->env.now_wall_ms = settings->now_wall_ms ? settings->now_wall_ms : clock_wall_ms;
    s->env.boot = boot_hash();
    pthread_mutex_init(&s->env.idle_lock, NULL);
    pthread_mutex_init(&s->catalog_lock, NULL);
    list_init(&s->env.idle);
    registry_init(&s->registry);
    s->data_dir = mem_text(str_of(settings->data_dir));
    enum status st =
        s->data_dir ? open_parts(s, error)
                    : refuse(error, ST_NO_MEMORY, "%s: %s", settings->data_dir, status_text(ST_NO_MEMORY));
    if (st) {
        store_free(s);
        return st;
    }
    store_reserve_take(s);
    *out = s;
    return ST_OK;
}

void store_close(struct store *s) {
    if (!s)
        return;
    struct topic *t, *next;
    HASH_ITER(by_number, s->registry.by_number, t, next) {
        for (int32_t i = 0; i < t->partitions_count; i++)
            partition_close(t->partitions[i]);
    }
    store_free(s);
}

int32_t store_leftovers_removed(const struct store *s) {
    return s->leftovers_removed;
}

enum status store_value_get(struct store *s, const char *key, char **out) {
    pthread_mutex_lock(&s->catalog_lock);
    enum status st = catalog_value_get(s->catalog, key, out);
    pthread_mutex_unlock(&s->catalog_lock);
    return st;
}

enum status store_value_set(struct store *s, const char *key, const char *value) {
    pthread_mutex_lock(&s->catalog_lock);
    enum status st = catalog_value_set(s->catalog, key, value);
    pthread_mutex_unlock(&s->catalog_lock);
    return st;
}
