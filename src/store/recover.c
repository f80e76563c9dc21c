/*
 * Opening a partition. Only the last segment can have an unclean end: one is on stable storage before the next is made.
 *
 *   folder -> segments -> last one: load index -> scan from the newest point that can be trusted -> judge the end -> cut or close
 *
 * Points to start from, newest first: what was written, if the machine has not been started since (after a kill the page
 * cache is whole); what was synced; the beginning. A point counts only if the log really has a batch boundary there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/file.h"
#include "store/partition.h"
#include "store/scan.h"

struct recovery {
    struct segment *segment; /* borrowed */
    int fd;                  /* owned until it is the segment's */
    bool read_only;
    int64_t file_bytes;
    int64_t noted_start; /* the log had all that is before it on stable storage */
    struct index index;
    struct index_marks marks; /* zeroed: none */
    struct index_point end;   /* of what is whole */
    int64_t cut_bytes;        /* that are not zero, behind the end */
    bool damaged;
    bool clean; /* the index file says all that is true */
};

static void recovery_release(struct recovery *r) {
    file_close(&r->fd);
    index_release(&r->index);
}

/*
 * Scan from the index entry before point to the end or to the first batch that isn't good, leaving scan there.
 * ST_CORRUPT: the log has no boundary at the point.
 */
static enum status scan_from(struct recovery *r, const struct index_point *point, struct scan *scan) {
    int64_t base = r->segment->base_offset;
    struct index_point from = {0, base, INT64_MIN};
    if (point->position == 0) {
        r->index.count = 0;
    } else if (r->index.count > 0) {
        const struct index_entry *e = index_by_position(&r->index, point->position);
        if (e->position <= point->position)
            from = (struct index_point){e->position, base + e->offset_delta, e->max_timestamp};
        r->index.count = (int32_t)(e - r->index.entries) + 1;
    }
    scan_init(scan, r->fd, &from, r->file_bytes);
    bool passed = from.position == point->position && from.offset == point->offset;
    enum status st = ST_OK;
    while (!st) {
        st = scan_next_indexed(scan, &r->index, base);
        if (!st && scan->position == point->position && scan->offset == point->offset)
            passed = true;
    }
    if (st != ST_NOT_FOUND && st != ST_CORRUPT)
        return st;
    return passed ? ST_OK : ST_CORRUPT;
}

/*
 * A later batch is whole. Damage, or one write of several batches that a power cut let through in parts? The latter only
 * if the machine is known to have been started anew since, and if none of the later ones knew the bad place as synced.
 */
static enum status judge_what_follows(struct recovery *r, struct scan *scan) {
    int64_t bad_position = scan->position;
    bool power_cut = r->marks.boot != 0 && r->marks.boot != r->segment->env->boot;
    enum status st = scan_resync(scan);
    if (!st && !power_cut)
        r->damaged = true;
    while (!st && !r->damaged) {
        struct batch_header h;
        const uint8_t *payload;
        st = scan_next(scan, &h, &payload);
        if (!st && (int64_t)h.synced_to > bad_position)
            r->damaged = true;
        if (st == ST_CORRUPT)
            st = scan_resync(scan);
    }
    return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status judge_end(struct recovery *r, struct scan *scan) {
    r->end = (struct index_point){scan->position, scan->offset, scan->max_timestamp};
    int64_t data_end;
    enum status st = scan_zero_tail(scan, &data_end);
    if (st)
        return st;
    r->damaged = r->end.position < r->marks.synced.position || r->end.offset < r->noted_start;
    if (r->damaged || data_end == r->end.position)
        return ST_OK;
    r->cut_bytes = data_end - r->end.position;
    return judge_what_follows(r, scan);
}

static enum status check_log(struct recovery *r) {
    struct log_env *env = r->segment->env;
    bool same_boot = r->marks.boot == env->boot;
    struct index_point points[3] = {{0, 0, 0}};
    int count = 0;
    if (same_boot && r->marks.written.position > 0)
        points[count++] = r->marks.written;
    if (r->marks.synced.position > 0)
        points[count++] = r->marks.synced;
    points[count++] = (struct index_point){0, r->segment->base_offset, INT64_MIN};

    for (int i = 0; i < count; i++) {
        if (points[i].position > r->file_bytes)
            continue;
        struct scan scan;
        enum status st = scan_from(r, &points[i], &scan);
        bool last = i == count - 1;
        if (!st || (last && st == ST_CORRUPT)) {
            r->clean = same_boot && scan.position == points[i].position && scan.position == r->file_bytes;
            st = judge_end(r, &scan);
            last = true;
        }
        scan_release(&scan);
        if (last || st != ST_CORRUPT)
            return st;
    }
    return ST_OK;
}

static enum status open_files(struct recovery *r) {
    char path[SEGMENT_PATH_BYTES];
    int dir_fd = r->segment->env->dir_fd;
    segment_path(r->segment, SEGMENT_LOG, path);
    enum status st = file_open(dir_fd, path, O_RDWR, &r->fd);
    if (st == ST_READ_ONLY) {
        r->read_only = true;
        st = file_open(dir_fd, path, O_RDONLY, &r->fd);
    }
    if (!st)
        st = file_size(r->fd, &r->file_bytes);
    if (st)
        return st;
    segment_path(r->segment, SEGMENT_INDEX, path);
    st = index_load(dir_fd, path, r->segment->base_offset, &r->index, &r->marks);
    if (st == ST_NO_MEMORY)
        return st;
    if (st)
        r->marks = (struct index_marks){0};
    return ST_OK;
}

/* Take what was found over into the partition and its last segment. */
static void adopt(struct partition *p, struct recovery *r) {
    struct segment *s = r->segment;
    atomic_store(&s->size_bytes, r->end.position);
    atomic_store(&s->end_offset, r->end.offset);
    atomic_store(&s->max_timestamp, r->end.max_timestamp);
    atomic_store(&s->times_known, true);
    p->marked_position = r->clean ? r->end.position : -1;
    p->index_saved = r->clean ? r->index.count : 0;
    p->writeback_position = r->end.position;
    p->marks = r->marks;
    p->marks.boot = p->env->boot;
    p->marks.written = r->end;
    p->marks.sealed = false;
    if (r->marks.synced.position == 0)
        p->marks.synced = (struct index_point){0, s->base_offset, INT64_MIN};
    if (p->marks.first_append_wall_ms == 0)
        p->marks.first_append_wall_ms = p->env->now_wall_ms();
    atomic_store(&p->unsynced_bytes, r->damaged ? 0 : r->end.position - p->marks.synced.position);
    atomic_store(&p->end, r->end.offset);
    atomic_store(&p->closed, r->damaged ? ST_CORRUPT : r->read_only ? ST_READ_ONLY : ST_OK);
    segment_activate(s, r->fd, &r->index);
    p->active = s;
    r->fd = -1;
}

static enum status recover_last(struct partition *p, struct segment *s) {
    struct recovery r = {.segment = s, .fd = -1, .noted_start = p->noted_start};
    enum status st = open_files(&r);
    if (!st)
        st = check_log(&r);
    if (st)
        goto fail;
    if (!r.damaged && !r.read_only && r.file_bytes > r.end.position) {
        st = file_cut(r.fd, r.end.position);
        if (!st)
            st = file_sync(r.fd);
        if (st)
            goto fail;
        atomic_store(&p->cut_bytes, r.cut_bytes);
    }
    adopt(p, &r);
    return ST_OK;

fail:
    recovery_release(&r);
    return st;
}

/* The offset in the name of a file with this suffix; -1: not such a name. */
static int64_t offset_of_name(const char *name, const char *suffix) {
    if (strspn(name, "0123456789") != 20 || strcmp(name + 20, suffix) != 0)
        return -1;
    errno = 0;
    long long offset = strtoll(name, NULL, 10);
    return errno ? -1 : offset;
}

static int compare_segments(const void *a, const void *b) {
    int64_t x = (*(struct segment *const *)a)->base_offset, y = (*(struct segment *const *)b)->base_offset;
    return x < y ? -1 : x > y;
}

static enum status list_segments(struct partition *p) {
    DIR *dir;
    enum status st = file_open_folder(p->env->dir_fd, p->folder, false, &dir);
    if (st)
        return st == ST_NOT_FOUND ? ST_OK : st;
    int fd = dirfd(dir);
    struct dirent *e;
    while (!st && (e = readdir(dir))) {
        struct stat file;
        int64_t base = offset_of_name(e->d_name, ".log");
        int64_t start = offset_of_name(e->d_name, START_SUFFIX);
        if (start > p->noted_start)
            p->noted_start = start;
        if (base < 0 || fstatat(fd, e->d_name, &file, 0) != 0)
            continue;
        st = partition_reserve_segment(p);
        if (st)
            break;
        struct segment *s = segment_new(p->env, p->folder, base);
        st = s ? ST_OK : ST_NO_MEMORY;
        if (!s)
            break;
        atomic_store(&s->size_bytes, file.st_size);
        p->segments[p->segments_count++] = s;
    }
    closedir(dir);
    return st;
}

enum status partition_recover(struct partition *p) {
    enum status st = list_segments(p);
    int32_t count = p->segments_count;
    if (!st && count > 0) {
        qsort(p->segments, (size_t)count, sizeof(struct segment *), compare_segments);
        for (int32_t i = 0; i + 1 < count; i++)
            atomic_store(&p->segments[i]->end_offset, p->segments[i + 1]->base_offset);
        st = recover_last(p, p->segments[count - 1]);
    }
    if (st) {
        while (p->segments_count > 0)
            segment_unref(p->segments[--p->segments_count]);
        return st;
    }
    if (count == 0) /* nobody knows what became of the files, but no offset is given twice */
        atomic_store(&p->end, p->noted_start);
    int64_t start = count > 0 ? p->segments[0]->base_offset : 0, end = atomic_load(&p->end);
    if (start < p->noted_start)
        start = p->noted_start < end ? p->noted_start : end;
    atomic_store(&p->start, start);
    return ST_OK;
}
