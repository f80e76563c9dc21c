/*
 * The store as a whole: the data folder and its lock, the catalog, and what belongs together of catalog, registry and
 * files when a topic comes, changes or goes. The catalog is right; files that it doesn't know are left-overs.
 */
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/be.h"
#include "base/clock.h"
#include "base/mem.h"
#include "store/catalog.h"
#include "store/file.h"
#include "store/partition.h"
#include "store/topic.h"

#define NAME_BYTES_MAX 255

struct store {
    struct log_env env;
    char *data_dir; /* owned */
    int lock_fd;
    pthread_mutex_t catalog_lock; /* held over the catalog's I/O: one change of topics at a time */
    struct catalog *catalog;
    struct registry registry;
    int32_t leftovers_removed;
};

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
    return registry_add_stream(&s->registry, row->name, row->id, row->next_topic_id);
}

/* A topic with its partitions, not in the registry yet. */
static enum status make_topic(struct store *s, const struct catalog_topic *row, struct topic **out) {
    struct topic_info info = {
        .id = row->id, .stream_id = row->stream_id, .topic_id = row->topic_id, .created_us = row->created_us};
    struct partition **partitions;
    struct topic *t = topic_new(&s->env, &info, row->name);
    enum status st = t ? topic_partitions_prepare(t, row->partitions_count, &partitions) : ST_NO_MEMORY;
    if (st) {
        topic_unref(t);
        return st;
    }
    topic_partitions_show(t, partitions, row->partitions_count);
    *out = t;
    return ST_OK;
}

static enum status load_topic(void *user, const struct catalog_topic *row) {
    struct store *s = user;
    struct topic *t;
    struct store_setting *settings;
    int32_t count;
    enum status st = make_topic(s, row, &t);
    if (st)
        return st;
    st = catalog_settings_get(s->catalog, row->stream_id, row->topic_id, &settings, &count);
    if (!st) {
        topic_settings_replace(t, settings, count);
        st = registry_add(&s->registry, t);
    }
    if (st)
        topic_unref(t);
    else
        registry_show(&s->registry, t);
    return st;
}

/* The number that a folder's name is; 0: not a number. */
static uint32_t number_of_name(const char *name) {
    size_t len = strlen(name);
    return len > 0 && len < 10 && strspn(name, "0123456789") == len ? (uint32_t)strtoul(name, NULL, 10) : 0;
}

/* One byte for each number that the stream has given: whether a topic has it now. NULL: out of memory. */
static uint8_t *known_numbers(struct store *s, const struct stream *stream) {
    struct topic *t, *next;
    uint8_t *known = mem_take_zeroed(stream->next_topic_id, 1);
    HASH_ITER(by_name, s->registry.by_name, t, next) {
        if (known && t->info.stream_id == stream->id && t->info.topic_id < stream->next_topic_id)
            known[t->info.topic_id] = 1;
    }
    return known;
}

/*
 * Remove folders of topics whose deletion was cut short: numbers that were given, and that no topic has.
 * A number that was never given comes from elsewhere, as from a newer catalog that was replaced by an old copy: it stays.
 */
static void remove_leftovers(struct store *s, const struct stream *stream) {
    char path[64];
    DIR *dir = NULL;
    uint8_t *known = known_numbers(s, stream);
    snprintf(path, sizeof path, "topics/%u", stream->id);
    if (known && file_open_folder(s->env.dir_fd, path, false, &dir))
        dir = NULL;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        uint32_t number = number_of_name(e->d_name);
        if (number > 0 && number < stream->next_topic_id && !known[number] &&
            !file_remove_tree(dirfd(dir), e->d_name))
            s->leftovers_removed++;
    }
    if (dir)
        closedir(dir);
    mem_free(known);
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
    if (st)
        return refuse_folder(s, error, st, "the catalog can't be read");
    for (struct stream *stream = s->registry.streams; stream; stream = stream->hh.next)
        remove_leftovers(s, stream);
    return ST_OK;
}

static void store_free(struct store *s) {
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
    s->lock_fd = s->env.dir_fd = -1;
    s->env.segment_bytes = settings->segment_bytes;
    s->env.segment_ms = settings->segment_ms;
    s->env.user_bytes = settings->user_bytes;
    s->env.user_init = settings->user_init;
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
    *out = s;
    return ST_OK;
}

void store_close(struct store *s) {
    if (!s)
        return;
    struct topic *t, *next;
    HASH_ITER(by_name, s->registry.by_name, t, next) {
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

/* ---- topics ---- */

static bool name_is_possible(struct str name) {
    return name.len >= 1 && name.len <= NAME_BYTES_MAX;
}

static enum status ensure_stream(struct store *s, struct str name) {
    uint32_t id;
    if (!name_is_possible(name))
        return ST_BAD_NAME;
    if (registry_stream(&s->registry, name))
        return ST_OK;
    enum status st = catalog_stream_add(s->catalog, name, &id);
    return st ? st : registry_add_stream(&s->registry, name, id, 1);
}

enum status store_stream_ensure(struct store *s, struct str name) {
    pthread_mutex_lock(&s->catalog_lock);
    enum status st = ensure_stream(s, name);
    pthread_mutex_unlock(&s->catalog_lock);
    return st;
}

/* Recreating a topic must give another id, in another cluster too. */
static struct uuid derive_id(const struct uuid *cluster, uint32_t stream_id, uint32_t topic_id,
                             int64_t created_us) {
    uint8_t in[32];
    struct uuid id;
    memcpy(in, cluster->b, sizeof cluster->b);
    be_set(in + 16, 4, stream_id);
    be_set(in + 20, 4, topic_id);
    be_set(in + 24, 8, (uint64_t)created_us);
    XXH128_canonicalFromHash((XXH128_canonical_t *)(void *)id.b, XXH3_128bits(in, sizeof in));
    if (uuid_is_zero(&id))
        id.b[15] = 1;
    return id;
}

/* The stream's next topic number. One whose folder exists (see remove_leftovers) is passed over: its data is not this topic's. */
static uint32_t next_number(const struct store *s, const struct stream *stream) {
    char path[64];
    for (uint32_t number = stream->next_topic_id;; number++) {
        snprintf(path, sizeof path, "topics/%u/%u", stream->id, number);
        if (faccessat(s->env.dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
            return number;
    }
}

static enum status settings_copy(const struct store_setting *from, int32_t count,
                                 struct store_setting **out) {
    struct store_setting *all = mem_take_zeroed((size_t)count, sizeof *all);
    enum status st = all ? ST_OK : ST_NO_MEMORY;
    for (int32_t i = 0; !st && i < count; i++) {
        all[i] = (struct store_setting){mem_text(str_of(from[i].key)), mem_text(str_of(from[i].value))};
        if (!all[i].key || !all[i].value)
            st = ST_NO_MEMORY;
    }
    if (st)
        catalog_settings_free(all, all ? count : 0);
    else
        *out = all;
    return st;
}

/* Everything that can fail for lack of memory comes before the catalog is written. */
static enum status create_locked(struct store *s, const struct store_topic_new *want, struct topic **out) {
    struct store_setting *settings;
    struct topic *t;
    struct stream *stream = registry_stream(&s->registry, want->stream);
    if (!stream)
        return ST_NOT_FOUND;
    t = registry_find(&s->registry, stream->id, want->name);
    topic_unref(t);
    if (t)
        return ST_EXISTS;
    struct catalog_topic row = {
        .stream_id = stream->id,
        .topic_id = next_number(s, stream),
        .name = want->name,
        .partitions_count = want->partitions_count,
        .created_us = s->env.now_wall_ms() * 1000,
    };
    row.id = derive_id(&want->cluster, row.stream_id, row.topic_id, row.created_us);
    enum status st = make_topic(s, &row, &t);
    if (st)
        return st;
    st = settings_copy(want->settings, want->settings_count, &settings);
    if (!st) {
        topic_settings_replace(t, settings, want->settings_count);
        st = registry_add(&s->registry, t);
    }
    if (st) {
        topic_unref(t);
        return st;
    }
    st = catalog_topic_add(s->catalog, &row, want->settings, want->settings_count);
    if (st) {
        registry_remove(&s->registry, t);
        return st;
    }
    stream->next_topic_id = row.topic_id + 1;
    if (out)
        *out = topic_ref(t);
    registry_show(&s->registry, t);
    return ST_OK;
}

enum status store_topic_create(struct store *s, const struct store_topic_new *want, struct topic **out) {
    if (!name_is_possible(want->name))
        return ST_BAD_NAME;
    if (want->partitions_count < 1)
        return ST_INVALID;
    pthread_mutex_lock(&s->catalog_lock);
    enum status st = create_locked(s, want, out);
    pthread_mutex_unlock(&s->catalog_lock);
    return st;
}

enum status store_topic_delete(struct store *s, struct topic *t) {
    char path[64];
    pthread_mutex_lock(&s->catalog_lock);
    enum status st = topic_deleted(t) ? ST_NOT_FOUND : ST_OK;
    if (!st)
        st = catalog_topic_remove(s->catalog, t->info.stream_id, t->info.topic_id);
    if (!st) {
        atomic_store(&t->deleted, true);
        registry_remove(&s->registry, t);
    }
    pthread_mutex_unlock(&s->catalog_lock);
    if (st)
        return st;
    int32_t count = topic_partitions_count(t);
    for (int32_t i = 0; i < count; i++)
        partition_delete(topic_partition(t, i));
    snprintf(path, sizeof path, "topics/%u/%u", t->info.stream_id, t->info.topic_id);
    /* The topic is gone whatever becomes of the files; what is left of them goes at the next start. */
    enum status ignored = file_remove_tree(s->env.dir_fd, path);
    (void)ignored;
    return ST_OK;
}

static enum status grow_locked(struct store *s, struct topic *t, int32_t partitions_count) {
    struct partition **partitions;
    if (topic_deleted(t))
        return ST_NOT_FOUND;
    if (partitions_count <= t->partitions_count)
        return ST_INVALID;
    enum status st = topic_partitions_prepare(t, partitions_count, &partitions);
    if (st)
        return st;
    st = catalog_topic_grow(s->catalog, t->info.stream_id, t->info.topic_id, partitions_count);
    if (st)
        topic_partitions_drop(t, partitions, partitions_count);
    else
        topic_partitions_show(t, partitions, partitions_count);
    return st;
}

enum status store_topic_grow(struct store *s, struct topic *t, int32_t partitions_count) {
    pthread_mutex_lock(&s->catalog_lock);
    enum status st = grow_locked(s, t, partitions_count);
    pthread_mutex_unlock(&s->catalog_lock);
    return st;
}

enum status store_topic_set(struct store *s, struct topic *t, const struct store_setting *settings,
                            int32_t count) {
    struct store_setting *copy;
    enum status st = settings_copy(settings, count, &copy);
    if (st)
        return st;
    pthread_mutex_lock(&s->catalog_lock);
    st = topic_deleted(t)
             ? ST_NOT_FOUND
             : catalog_topic_set(s->catalog, t->info.stream_id, t->info.topic_id, settings, count);
    if (!st)
        topic_settings_replace(t, copy, count);
    pthread_mutex_unlock(&s->catalog_lock);
    if (st)
        catalog_settings_free(copy, count);
    return st;
}

struct topic *store_topic_find(struct store *s, struct str stream, struct str name) {
    const struct stream *found = registry_stream(&s->registry, stream);
    return found ? registry_find(&s->registry, found->id, name) : NULL;
}

struct topic *store_topic_by_id(struct store *s, const struct uuid *id) {
    return registry_find_id(&s->registry, id);
}

static int compare_topics(const void *a, const void *b) {
    return strcmp((*(struct topic *const *)a)->info.name, (*(struct topic *const *)b)->info.name);
}

enum status store_topics(struct store *s, struct str stream, struct topic ***out, int32_t *count_out) {
    const struct stream *found = registry_stream(&s->registry, stream);
    int32_t count = 0;
    struct topic *t, *next;
    pthread_rwlock_rdlock(&s->registry.lock);
    struct topic **all = mem_take_zeroed(HASH_CNT(by_name, s->registry.by_name), sizeof(struct topic *));
    if (all && found) {
        HASH_ITER(by_name, s->registry.by_name, t, next) {
            if (!t->hidden && t->info.stream_id == found->id)
                all[count++] = topic_ref(t);
        }
    }
    pthread_rwlock_unlock(&s->registry.lock);
    if (!all)
        return ST_NO_MEMORY;
    if (count > 0)
        qsort(all, (size_t)count, sizeof(struct topic *), compare_topics);
    *out = all;
    *count_out = count;
    return ST_OK;
}
