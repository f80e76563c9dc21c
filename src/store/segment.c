#include "store/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/file.h"
#include "store/scan.h"

struct segment *segment_new(struct log_env *env, const char *folder, int64_t base_offset) {
    struct segment *s = mem_take_zeroed(1, sizeof *s);
    if (!s)
        return NULL;
    s->env = env;
    s->folder = folder;
    s->base_offset = base_offset;
    s->fd = -1;
    atomic_init(&s->refs, 1);
    atomic_init(&s->end_offset, base_offset);
    atomic_init(&s->max_timestamp, INT64_MIN);
    return s;
}

struct segment *segment_ref(struct segment *s) {
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void segment_unref(struct segment *s) {
    if (!s || atomic_fetch_sub(&s->refs, 1) > 1)
        return;
    pthread_mutex_lock(&s->env->idle_lock);
    if (link_in_list(&s->link)) {
        list_remove(&s->link);
        s->env->idle_count--;
    }
    pthread_mutex_unlock(&s->env->idle_lock);
    file_close(&s->fd);
    index_release(&s->index);
    mem_free(s);
}

void segment_path(const struct segment *s, enum segment_file file, char out[SEGMENT_PATH_BYTES]) {
    snprintf(out, SEGMENT_PATH_BYTES, "%s/%020" PRId64 ".%s", s->folder, s->base_offset,
             file == SEGMENT_LOG ? "log" : "idx");
}

void segment_activate(struct segment *s, int fd, struct index *index) {
    pthread_mutex_lock(&s->env->idle_lock);
    s->fd = fd;
    s->index = *index;
    s->is_open = true;
    s->users = 1;
    pthread_mutex_unlock(&s->env->idle_lock);
    *index = (struct index){0};
}

/* Make the index again from the log; behind damage it goes on at the next whole batch. */
static enum status rebuild(struct segment *s, int fd, struct index *x, int64_t *max_timestamp_out) {
    struct scan scan;
    int64_t size = atomic_load(&s->size_bytes);
    scan_init(&scan, fd, &(struct index_point){0, s->base_offset, INT64_MIN}, size);
    enum status st = ST_OK;
    while (!st) {
        st = scan_next_indexed(&scan, x, s->base_offset);
        if (st == ST_CORRUPT)
            st = scan_resync(&scan);
    }
    *max_timestamp_out = scan.max_timestamp;
    scan_release(&scan);
    if (st != ST_NOT_FOUND)
        return st;
    struct index_point end = {size, atomic_load(&s->end_offset), *max_timestamp_out};
    struct index_marks marks = {.boot = s->env->boot, .written = end, .synced = end, .sealed = true};
    char path[SEGMENT_PATH_BYTES];
    segment_path(s, SEGMENT_INDEX, path);
    /* A disk that can't take it costs only this work again, next time. */
    enum status ignored = index_save(s->env->dir_fd, path, s->base_offset, x, 0, &marks, false);
    (void)ignored;
    return ST_OK;
}

static bool marks_fit(const struct segment *s, const struct index_marks *marks) {
    return marks->sealed && marks->written.position == atomic_load(&s->size_bytes) &&
           marks->written.offset == atomic_load(&s->end_offset);
}

static void times_set(struct segment *s, int64_t max_timestamp) {
    atomic_store(&s->max_timestamp, max_timestamp);
    atomic_store(&s->times_known, true);
}

/* Open a sealed segment's file and get its index, into what nobody else sees yet. */
static enum status load(struct segment *s, int *fd_out, struct index *index_out) {
    char path[SEGMENT_PATH_BYTES];
    struct index x = {0};
    struct index_marks marks;
    int fd = -1;

    segment_path(s, SEGMENT_LOG, path);
    enum status st = file_open(s->env->dir_fd, path, O_RDONLY, &fd);
    if (st)
        return st;
    segment_path(s, SEGMENT_INDEX, path);
    st = index_load(s->env->dir_fd, path, s->base_offset, &x, &marks);
    int64_t max_timestamp = st ? INT64_MIN : marks.written.max_timestamp;
    if (st == ST_NO_MEMORY)
        goto fail;
    if (st || !marks_fit(s, &marks)) {
        index_release(&x);
        st = rebuild(s, fd, &x, &max_timestamp);
        if (st)
            goto fail;
    }
    times_set(s, max_timestamp);
    *fd_out = fd;
    *index_out = x;
    return ST_OK;

fail:
    index_release(&x);
    file_close(&fd);
    return st;
}

static bool use_if_open(struct segment *s) {
    pthread_mutex_lock(&s->env->idle_lock);
    bool is_open = s->is_open;
    if (is_open) {
        s->users++;
        if (link_in_list(&s->link)) {
            list_remove(&s->link);
            s->env->idle_count--;
        }
    }
    pthread_mutex_unlock(&s->env->idle_lock);
    return is_open;
}

enum status segment_use(struct segment *s, bool wait) {
    if (use_if_open(s))
        return ST_OK;
    if (!wait)
        return ST_AGAIN;
    int fd;
    struct index x;
    enum status st = load(s, &fd, &x);
    if (st)
        return st;
    pthread_mutex_lock(&s->env->idle_lock);
    if (!s->is_open) {
        s->fd = fd;
        s->index = x;
        s->is_open = true;
        s->users++;
        pthread_mutex_unlock(&s->env->idle_lock);
        return ST_OK;
    }
    pthread_mutex_unlock(&s->env->idle_lock);
    /* Another reader was quicker. */
    file_close(&fd);
    index_release(&x);
    return segment_use(s, wait);
}

void segment_done(struct segment *s) {
    struct log_env *env = s->env;
    int fd = -1;
    struct index x = {0};
    pthread_mutex_lock(&env->idle_lock);
    if (--s->users == 0) {
        list_push_tail(&env->idle, &s->link);
        if (++env->idle_count > SEGMENTS_IDLE_MAX) {
            struct segment *oldest = container_of(list_pop_head(&env->idle), struct segment, link);
            env->idle_count--;
            fd = oldest->fd;
            x = oldest->index;
            oldest->fd = -1;
            oldest->index = (struct index){0};
            oldest->is_open = false;
        }
    }
    pthread_mutex_unlock(&env->idle_lock);
    file_close(&fd);
    index_release(&x);
}

enum status segment_max_timestamp(struct segment *s, int64_t *out) {
    if (!atomic_load(&s->times_known)) {
        char path[SEGMENT_PATH_BYTES];
        struct index_marks marks;
        segment_path(s, SEGMENT_INDEX, path);
        if (!index_load(s->env->dir_fd, path, s->base_offset, NULL, &marks) && marks_fit(s, &marks)) {
            times_set(s, marks.written.max_timestamp);
        } else {
            enum status st = segment_use(s, true);
            if (st)
                return st;
            segment_done(s);
        }
    }
    *out = atomic_load(&s->max_timestamp);
    return ST_OK;
}

enum status segment_written_ms(const struct segment *s, int64_t *out) {
    char path[SEGMENT_PATH_BYTES];
    struct stat file;
    segment_path(s, SEGMENT_LOG, path);
    if (fstatat(s->env->dir_fd, path, &file, 0) != 0)
        return file_status(errno);
    *out = (int64_t)file.st_mtim.tv_sec * 1000 + file.st_mtim.tv_nsec / 1000000;
    return ST_OK;
}

enum status segment_age_timestamp(struct segment *s, int64_t *out) {
    enum status st = segment_max_timestamp(s, out);
    return st || *out >= 0 ? st : segment_written_ms(s, out);
}

void segment_remove_files(const struct segment *s) {
    char path[SEGMENT_PATH_BYTES];
    segment_path(s, SEGMENT_LOG, path);
    unlinkat(s->env->dir_fd, path, 0);
    segment_path(s, SEGMENT_INDEX, path);
    unlinkat(s->env->dir_fd, path, 0);
}
