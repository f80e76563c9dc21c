#include "store/partition.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/batch_header.h"
#include "store/file.h"

#define CHUNK_BATCHES 128 /* written with one call */
#define MARK_BYTES \
    (16 * 1024 * 1024) /* of log between two writes of the index: what a start after a kill scans */
#define SYNC_MARK_BYTES (4 * 1024 * 1024) /* the same for synced ones, after a power cut */
#define WRITEBACK_BYTES (8 * 1024 * 1024) /* the kernel is asked early, so that a sync finds little to do */
#define POSITION_MAX    ((int64_t)UINT32_MAX)

/* ---- life ---- */

struct partition *partition_new(struct log_env *env, uint32_t stream_id, uint32_t topic_id, int32_t index) {
    struct partition *p = mem_take_zeroed(1, sizeof *p + env->user_bytes);
    if (!p)
        return NULL;
    p->env = env;
    snprintf(p->folder, sizeof p->folder, "topics/%u/%u/%d", stream_id, topic_id, index);
    pthread_mutex_init(&p->open_lock, NULL);
    pthread_mutex_init(&p->front_lock, NULL);
    pthread_mutex_init(&p->write_lock, NULL);
    pthread_mutex_init(&p->lock, NULL);
    if (env->user_init)
        env->user_init(p->user);
    return p;
}

void *partition_user(struct partition *p) {
    return p->user;
}

/* Let the segments go; readers keep those they hold. */
static void drop_segments(struct partition *p) {
    pthread_mutex_lock(&p->lock);
    struct segment **segments = p->segments;
    int32_t count = p->segments_count;
    p->segments = NULL;
    p->segments_count = p->segments_room = 0;
    pthread_mutex_unlock(&p->lock);
    if (p->active)
        segment_done(p->active);
    p->active = NULL;
    for (int32_t i = 0; i < count; i++)
        segment_unref(segments[i]);
    mem_free(segments);
}

void partition_free(struct partition *p) {
    if (!p)
        return;
    if (p->env->user_release)
        p->env->user_release(p->user);
    drop_segments(p);
    pthread_mutex_destroy(&p->open_lock);
    pthread_mutex_destroy(&p->front_lock);
    pthread_mutex_destroy(&p->write_lock);
    pthread_mutex_destroy(&p->lock);
    mem_free(p);
}

void partition_delete(struct partition *p) {
    atomic_store(&p->deleted, true);
    pthread_mutex_lock(&p->open_lock);
    pthread_mutex_lock(&p->write_lock);
    drop_segments(p);
    pthread_mutex_unlock(&p->write_lock);
    pthread_mutex_unlock(&p->open_lock);
    if (p->env->user_gone)
        p->env->user_gone(p->user);
}

enum status partition_reserve_segment(struct partition *p) {
    if (p->segments_count < p->segments_room)
        return ST_OK;
    int32_t room = p->segments_room > 0 ? p->segments_room * 2 : 4;
    struct segment **segments = mem_grow(p->segments, (size_t)room * sizeof(struct segment *));
    if (!segments)
        return ST_NO_MEMORY;
    p->segments = segments;
    p->segments_room = room;
    return ST_OK;
}

/* Write down how far the log is good. A disk that can't take it costs only a longer start. */
static void mark(struct partition *p, bool sync) {
    char path[SEGMENT_PATH_BYTES];
    struct segment *active = p->active;
    segment_path(active, SEGMENT_INDEX, path);
    if (index_save(p->env->dir_fd, path, active->base_offset, &active->index, p->index_saved, &p->marks,
                   sync))
        return;
    p->index_saved = active->index.count;
    p->marked_position = p->marks.written.position;
}

enum status partition_ensure_open(struct partition *p) {
    if (atomic_load(&p->deleted))
        return ST_NOT_FOUND;
    if (atomic_load(&p->is_open))
        return ST_OK;
    enum status st = ST_OK;
    pthread_mutex_lock(&p->open_lock);
    if (atomic_load(&p->deleted)) {
        st = ST_NOT_FOUND;
    } else if (!atomic_load(&p->is_open)) {
        st = partition_recover(p);
        if (!st && !atomic_load(&p->closed) && p->active && p->marked_position != p->marks.written.position)
            mark(p, false);
        if (!st)
            atomic_store(&p->is_open, true);
    }
    pthread_mutex_unlock(&p->open_lock);
    return st;
}

enum status partition_open(struct partition *p, int64_t *cut_bytes_out) {
    enum status st = partition_ensure_open(p);
    if (cut_bytes_out)
        *cut_bytes_out = st ? 0 : atomic_exchange(&p->cut_bytes, 0);
    if (!st && atomic_load(&p->closed) == ST_CORRUPT)
        st = ST_CORRUPT;
    return st;
}

int64_t partition_start(const struct partition *p) {
    return atomic_load(&p->start);
}

int64_t partition_end(const struct partition *p) {
    return atomic_load(&p->end);
}

bool partition_deleted(const struct partition *p) {
    return atomic_load(&p->deleted);
}

bool partition_is_open(const struct partition *p) {
    return atomic_load(&p->is_open);
}

int64_t partition_unsynced_bytes(const struct partition *p) {
    return atomic_load(&p->unsynced_bytes);
}

int64_t partition_size_bytes(const struct partition *p) {
    struct partition *changed = (struct partition *)(uintptr_t)p; /* the lock alone */
    int64_t bytes = 0;
    pthread_mutex_lock(&changed->lock);
    for (int32_t i = 0; i < p->segments_count; i++)
        bytes += atomic_load(&p->segments[i]->size_bytes);
    pthread_mutex_unlock(&changed->lock);
    return bytes;
}

int32_t partition_segments_count(const struct partition *p) {
    struct partition *changed = (struct partition *)(uintptr_t)p; /* the lock alone */
    pthread_mutex_lock(&changed->lock);
    int32_t count = p->segments_count;
    pthread_mutex_unlock(&changed->lock);
    return count;
}

/* ---- writing; all below under write_lock ---- */

static void close_to_appends(struct partition *p) {
    atomic_store(&p->closed, ST_CORRUPT);
}

/* Bring the names of new files and folders to stable storage: the partition's, the topic's, the stream's. */
static enum status sync_folders(struct partition *p) {
    if (!p->folder_new)
        return ST_OK;
    mark(p, true); /* from here on, a power cut is told from damage */
    enum status st = file_sync_folder(p->env->dir_fd, p->folder);
    char above[sizeof p->folder];
    snprintf(above, sizeof above, "%s", p->folder);
    for (char *slash; !st && p->parents_new && (slash = strrchr(above, '/'));) {
        *slash = '\0';
        st = file_sync_folder(p->env->dir_fd, above);
    }
    if (!st)
        p->folder_new = p->parents_new = false;
    return st;
}

static enum status sync_active(struct partition *p) {
    struct segment *active = p->active;
    if (!active || (atomic_load(&p->unsynced_bytes) == 0 && !p->folder_new))
        return ST_OK;
    if (atomic_load(&p->closed))
        return ST_IO;
    struct index_point synced_before = p->marks.synced;
    enum status st = file_sync(active->fd);
    if (!st) {
        p->marks.synced = p->marks.written;
        st = sync_folders(p);
    }
    if (st) {
        p->marks.synced = synced_before;
        close_to_appends(p);
        return ST_IO;
    }
    atomic_store(&p->unsynced_bytes, 0);
    p->writeback_position = p->marks.written.position;
    return ST_OK;
}

/* Make the file of a new active segment and put it behind the others; the old one, if any, becomes a sealed one. */
static enum status add_segment(struct partition *p) {
    char path[SEGMENT_PATH_BYTES];
    struct index no_index = {0};
    int fd = -1;
    struct segment *old = p->active;
    struct segment *s = segment_new(p->env, p->folder, atomic_load(&p->end));
    enum status st = s ? ST_OK : ST_NO_MEMORY;
    if (!st && !old)
        st = file_make_folders(p->env->dir_fd, p->folder);
    if (!st) {
        pthread_mutex_lock(&p->lock);
        st = partition_reserve_segment(p);
        pthread_mutex_unlock(&p->lock);
    }
    if (!st) {
        segment_path(s, SEGMENT_INDEX, path); /* of an earlier life, if there is one */
        unlinkat(p->env->dir_fd, path, 0);
        segment_path(s, SEGMENT_LOG, path);
        st = file_open(p->env->dir_fd, path, O_RDWR | O_CREAT | O_TRUNC, &fd);
    }
    if (st) {
        segment_unref(s);
        return st == ST_NOT_FOUND || st == ST_EXISTS ? ST_IO : st;
    }
    atomic_store(&s->times_known, true);
    segment_activate(s, fd, &no_index);
    p->folder_new = true;
    p->parents_new = p->parents_new || !old;
    struct index_point begin = {0, s->base_offset, INT64_MIN};
    p->marks = (struct index_marks){.boot = p->env->boot, .written = begin, .synced = begin};
    p->marked_position = 0;
    p->index_saved = 0;
    p->writeback_position = 0;
    pthread_mutex_lock(&p->lock);
    p->segments[p->segments_count++] = s;
    pthread_mutex_unlock(&p->lock);
    p->active = s;
    if (old)
        segment_done(old);
    return ST_OK;
}

/*
 * Seal the active segment and begin a new one. The old one is on stable storage before the new one's file is there:
 * so recovery never needs to doubt any but the last.
 */
static enum status roll(struct partition *p) {
    enum status st = sync_active(p);
    if (st)
        return st;
    p->marks.sealed = true;
    mark(p, false);
    st = add_segment(p);
    if (st) {
        p->marks.sealed = false;
        p->marked_position = -1;
    }
    return st;
}

static bool is_too_old(const struct partition *p, int64_t now_wall_ms) {
    return p->env->segment_ms > 0 && now_wall_ms - p->marks.first_append_wall_ms > p->env->segment_ms;
}

/* Have an active segment that takes bytes and records more. */
static enum status prepare_segment(struct partition *p, int64_t bytes, int64_t records) {
    struct segment *active = p->active;
    if (bytes > POSITION_MAX || records > POSITION_MAX)
        return ST_TOO_BIG;
    if (!active)
        return add_segment(p);
    int64_t size = p->marks.written.position;
    if (size == 0)
        return ST_OK;
    bool full = size + bytes > p->env->segment_bytes || size + bytes > POSITION_MAX ||
                p->marks.written.offset - active->base_offset + records > POSITION_MAX;
    return full || is_too_old(p, p->env->now_wall_ms()) ? roll(p) : ST_OK;
}

static enum status write_batches(struct partition *p, int fd, const struct store_batch *batches,
                                 int32_t count) {
    uint8_t headers[CHUNK_BATCHES][BATCH_HEADER_BYTES];
    struct iovec pieces[CHUNK_BATCHES * 2];
    int64_t position = p->marks.written.position;
    enum status st = ST_OK;
    for (int32_t done = 0; !st && done < count;) {
        int n = 0;
        int64_t bytes = 0;
        for (; n < CHUNK_BATCHES && done < count; n++, done++) {
            const struct store_batch *b = &batches[done];
            batch_header_write(headers[n], b, (uint32_t)p->marks.synced.position);
            pieces[2 * n] = (struct iovec){headers[n], BATCH_HEADER_BYTES};
            pieces[2 * n + 1] = (struct iovec){(void *)(uintptr_t)b->payload.ptr, (size_t)b->payload.len};
            bytes += BATCH_HEADER_BYTES + b->payload.len;
        }
        st = file_write(fd, pieces, 2 * n, position);
        position += bytes;
    }
    return st;
}

/* Show readers what was written. */
static void publish(struct partition *p, struct segment *active, const struct store_batch *batches,
                    int32_t count) {
    struct index_point at = p->marks.written;
    struct index *x = &active->index;
    pthread_mutex_lock(&p->lock);
    for (int32_t i = 0; i < count; i++) {
        const struct store_batch *b = &batches[i];
        if (x->count == 0 || at.position - x->entries[x->count - 1].position >= INDEX_INTERVAL_BYTES)
            index_add(x, &(struct index_entry){(uint32_t)(at.offset - active->base_offset),
                                               (uint32_t)at.position, at.max_timestamp});
        at.position += BATCH_HEADER_BYTES + b->payload.len;
        at.offset += b->records_count;
        if (b->max_timestamp > at.max_timestamp)
            at.max_timestamp = b->max_timestamp;
    }
    atomic_store(&active->max_timestamp, at.max_timestamp);
    atomic_store(&active->size_bytes, at.position);
    atomic_store(&active->end_offset, at.offset);
    atomic_store(&p->end, at.offset);
    pthread_mutex_unlock(&p->lock);
    atomic_fetch_add(&p->unsynced_bytes, at.position - p->marks.written.position);
    p->marks.written = at;
}

/* Ask the kernel to begin writing what was appended, without waiting, so that a later sync or roll is short. */
static void start_writeback(struct partition *p, int fd) {
    int64_t bytes = p->marks.written.position - p->writeback_position;
    if (bytes < WRITEBACK_BYTES)
        return;
    sync_file_range(fd, p->writeback_position, bytes, SYNC_FILE_RANGE_WRITE);
    p->writeback_position = p->marks.written.position;
}

/* What all batches take. ST_INVALID: an offset, a count or a format that can't be. */
static enum status measure(const struct partition *p, const struct store_batch *batches, int32_t count,
                           int64_t *bytes_out, int64_t *records_out) {
    int64_t bytes = 0, offset = atomic_load(&p->end), first = offset;
    for (int32_t i = 0; i < count; i++) {
        const struct store_batch *b = &batches[i];
        if (b->base_offset != offset || b->records_count < 1 || b->payload.len < 0)
            return ST_INVALID;
        bytes += BATCH_HEADER_BYTES + b->payload.len;
        offset += b->records_count;
    }
    *bytes_out = bytes;
    *records_out = offset - first;
    return ST_OK;
}

static enum status append_locked(struct partition *p, const struct store_batch *batches, int32_t count) {
    int64_t bytes, records;
    if (atomic_load(&p->deleted))
        return ST_NOT_FOUND;
    if (atomic_load(&p->closed))
        return (enum status)atomic_load(&p->closed);
    enum status st = measure(p, batches, count, &bytes, &records);
    if (!st)
        st = prepare_segment(p, bytes, records);
    if (st)
        return st;
    struct segment *active = p->active;
    int64_t entries = bytes / INDEX_INTERVAL_BYTES + 2;
    pthread_mutex_lock(&p->lock);
    st = index_reserve(&active->index, entries < count ? (int32_t)entries : count);
    pthread_mutex_unlock(&p->lock);
    if (st)
        return st;
    if (p->marks.written.position == 0)
        p->marks.first_append_wall_ms = p->env->now_wall_ms();
    st = write_batches(p, active->fd, batches, count);
    if (st) {
        /* What can't be cut now would stand behind later, shorter appends. */
        if (file_cut(active->fd, p->marks.written.position))
            close_to_appends(p);
        return st;
    }
    publish(p, active, batches, count);
    start_writeback(p, active->fd);
    if (p->marks.written.position - p->marked_position >= MARK_BYTES)
        mark(p, false);
    return ST_OK;
}

enum status partition_append(struct partition *p, const struct store_batch *batches, int32_t count) {
    enum status st = partition_ensure_open(p);
    if (st || count == 0)
        return st;
    pthread_mutex_lock(&p->write_lock);
    st = append_locked(p, batches, count);
    pthread_mutex_unlock(&p->write_lock);
    return st;
}

/*
 * Sync what is written by now. The lock is given up meanwhile, so that appends go on; what they write is the next sync's
 * matter. If they roll, the roll has synced this segment itself; the kernel tells of a failure only one of the two.
 */
static enum status sync_beside_appends(struct partition *p) {
    if (p->folder_new || !p->active || atomic_load(&p->closed) || atomic_load(&p->unsynced_bytes) == 0)
        return sync_active(p);
    struct segment *s = segment_ref(p->active);
    struct index_point upto = p->marks.written;
    enum status st = segment_use(s, true);
    if (!st) {
        pthread_mutex_unlock(&p->write_lock);
        st = file_sync(s->fd);
        segment_done(s);
        pthread_mutex_lock(&p->write_lock);
    }
    if (atomic_load(&p->deleted)) {
        st = ST_NOT_FOUND;
    } else if (st || atomic_load(&p->closed)) {
        close_to_appends(p);
        st = ST_IO;
    } else if (p->active == s && upto.position > p->marks.synced.position) {
        p->marks.synced = upto;
        atomic_store(&p->unsynced_bytes, p->marks.written.position - upto.position);
        if (p->writeback_position < upto.position)
            p->writeback_position = upto.position;
    }
    segment_unref(s);
    return st;
}

enum status partition_sync(struct partition *p) {
    enum status st = partition_ensure_open(p);
    if (st)
        return st;
    pthread_mutex_lock(&p->write_lock);
    st = atomic_load(&p->deleted) ? ST_NOT_FOUND : sync_beside_appends(p);
    if (!st && p->active && p->marks.written.position - p->marked_position >= SYNC_MARK_BYTES)
        mark(p, false);
    pthread_mutex_unlock(&p->write_lock);
    return st;
}

void partition_close(struct partition *p) {
    pthread_mutex_lock(&p->write_lock);
    struct segment *active = p->active;
    if (active && !atomic_load(&p->closed)) {
        struct index_point synced = p->marks.synced;
        enum status st = sync_active(p);
        if (!st &&
            (synced.position != p->marks.synced.position || p->marked_position != p->marks.written.position))
            mark(p, false);
    }
    pthread_mutex_unlock(&p->write_lock);
}

/* ---- where the log starts; all below under front_lock ---- */

/* Take the oldest segment out and its files away, if it is still this one and a sealed one. */
static bool drop_first(struct partition *p, struct segment *oldest) {
    pthread_mutex_lock(&p->lock);
    bool still_there = p->segments_count > 1 && p->segments[0] == oldest;
    if (still_there) {
        p->segments_count--;
        memmove(p->segments, p->segments + 1, (size_t)p->segments_count * sizeof(struct segment *));
        if (atomic_load(&p->start) < p->segments[0]->base_offset)
            atomic_store(&p->start, p->segments[0]->base_offset);
    }
    pthread_mutex_unlock(&p->lock);
    if (still_there) {
        segment_remove_files(oldest);
        segment_unref(oldest);
    }
    return still_there;
}

/* The oldest segment, referenced, if it is a sealed one; NULL. */
static struct segment *oldest_sealed(struct partition *p) {
    pthread_mutex_lock(&p->lock);
    struct segment *oldest = p->segments_count > 1 ? segment_ref(p->segments[0]) : NULL;
    pthread_mutex_unlock(&p->lock);
    return oldest;
}

/* Take the oldest sealed segment out if all of it is before the offset. */
static bool drop_before(struct partition *p, int64_t offset) {
    struct segment *oldest = oldest_sealed(p);
    bool went = oldest && atomic_load(&oldest->end_offset) <= offset && drop_first(p, oldest);
    segment_unref(oldest);
    return went;
}

/* Take the oldest sealed segment out if it is over; *over: whether one was. */
static enum status drop_oldest(struct partition *p, const struct store_retention *keep, int64_t now_wall_ms,
                               bool *over) {
    int64_t bytes, max_timestamp;
    struct segment *oldest = oldest_sealed(p);
    *over = false;
    if (!oldest)
        return ST_OK;
    bytes = partition_size_bytes(p) - atomic_load(&oldest->size_bytes);
    *over = (keep->bytes >= 0 && bytes >= keep->bytes) ||
            atomic_load(&oldest->end_offset) <= atomic_load(&p->start);
    if (!*over && keep->ms >= 0) {
        enum status st = segment_age_timestamp(oldest, &max_timestamp);
        if (st) {
            segment_unref(oldest);
            return st;
        }
        *over = max_timestamp < now_wall_ms - keep->ms;
    }
    if (*over)
        drop_first(p, oldest);
    segment_unref(oldest);
    return ST_OK;
}

/* Seal the active segment when it is too old, or when nothing of it can be read any more. */
static enum status seal_if_due(struct partition *p, int64_t now_wall_ms) {
    enum status st = ST_OK;
    pthread_mutex_lock(&p->write_lock);
    if (!atomic_load(&p->deleted) && !atomic_load(&p->closed) && p->active && p->marks.written.position > 0 &&
        (is_too_old(p, now_wall_ms) || p->marks.written.offset <= atomic_load(&p->start)))
        st = roll(p);
    pthread_mutex_unlock(&p->write_lock);
    return st;
}

enum status partition_retain(struct partition *p, const struct store_retention *keep, int64_t now_wall_ms,
                             int32_t *segments_out) {
    int32_t dropped = 0;
    enum status st = partition_ensure_open(p);
    pthread_mutex_lock(&p->front_lock);
    if (!st)
        st = seal_if_due(p, now_wall_ms);
    for (bool over = true; !st && over;) {
        st = drop_oldest(p, keep, now_wall_ms, &over);
        dropped += !st && over;
    }
    pthread_mutex_unlock(&p->front_lock);
    *segments_out = dropped;
    return st;
}

/*
 * Have nothing in the active segment, so that all that is stored stands in sealed ones, before *end_out. The new one's name is on
 * stable storage: without it the next start would find an empty folder, and offsets would begin at 0 again.
 */
static enum status seal_all(struct partition *p, int64_t *end_out) {
    enum status st = ST_OK;
    pthread_mutex_lock(&p->write_lock);
    if (atomic_load(&p->deleted))
        st = ST_NOT_FOUND;
    else if (atomic_load(&p->closed))
        st = (enum status)atomic_load(&p->closed);
    else if (p->active && p->marks.written.position > 0)
        st = roll(p);
    if (!st)
        st = sync_active(p);
    *end_out = atomic_load(&p->end);
    pthread_mutex_unlock(&p->write_lock);
    return st;
}

enum status partition_drop(struct partition *p, int32_t count, int32_t *segments_out) {
    int32_t dropped = 0;
    int64_t upto = INT64_MAX; /* what is appended meanwhile stays */
    enum status st = partition_ensure_open(p);
    pthread_mutex_lock(&p->front_lock);
    if (!st && count < 0)
        st = seal_all(p, &upto);
    while (!st && (count < 0 || dropped < count) && drop_before(p, upto))
        dropped++;
    if (dropped > 0)
        st = file_sync_folder(p->env->dir_fd, p->folder);
    pthread_mutex_unlock(&p->front_lock);
    if (segments_out)
        *segments_out = dropped;
    return atomic_load(&p->deleted) ? ST_NOT_FOUND : st;
}

static void start_path(const struct partition *p, int64_t start, char out[SEGMENT_PATH_BYTES]) {
    snprintf(out, SEGMENT_PATH_BYTES, "%s/%020" PRId64 START_SUFFIX, p->folder, start);
}

/* Write down on stable storage that the log starts here. */
static enum status note_start(struct partition *p, int64_t start) {
    char path[SEGMENT_PATH_BYTES];
    int fd = -1;
    start_path(p, start, path);
    enum status st = file_open(p->env->dir_fd, path, O_WRONLY | O_CREAT, &fd);
    if (!st)
        st = file_sync(fd);
    file_close(&fd);
    if (!st)
        st = file_sync_folder(p->env->dir_fd, p->folder);
    if (st) {
        unlinkat(p->env->dir_fd, path, 0);
        return st == ST_NOT_FOUND ? ST_IO : st;
    }
    start_path(p, p->noted_start, path);
    if (p->noted_start > 0)
        unlinkat(p->env->dir_fd, path, 0);
    p->noted_start = start;
    return ST_OK;
}

/*
 * With write_lock, so that the folder isn't removed meanwhile. All that is before the start is on stable storage first: a log that
 * ends before its start has lost something (recover.c).
 */
static enum status move_start(struct partition *p, int64_t offset) {
    int64_t end = atomic_load(&p->end);
    if (atomic_load(&p->deleted))
        return ST_NOT_FOUND;
    if (atomic_load(&p->closed))
        return (enum status)atomic_load(&p->closed);
    if (offset == -1)
        offset = end;
    if (offset < 0 || offset > end)
        return ST_OUT_OF_RANGE;
    /* Retention may have moved it: no power cut may bring back what that has removed. */
    if (offset <= atomic_load(&p->start))
        return p->active ? file_sync_folder(p->env->dir_fd, p->folder) : ST_OK;
    enum status st = offset > p->marks.synced.offset ? sync_active(p) : ST_OK;
    if (!st)
        st = note_start(p, offset);
    if (!st)
        atomic_store(&p->start, offset);
    return st;
}

enum status partition_trim(struct partition *p, int64_t offset, int64_t *start_out) {
    enum status st = partition_ensure_open(p);
    pthread_mutex_lock(&p->front_lock);
    if (!st) {
        pthread_mutex_lock(&p->write_lock);
        st = move_start(p, offset);
        pthread_mutex_unlock(&p->write_lock);
    }
    int64_t start = atomic_load(&p->start);
    while (!st && drop_before(p, start))
        ;
    pthread_mutex_unlock(&p->front_lock);
    if (!st)
        *start_out = start;
    return st;
}
