/*
 * Reading a partition: find the segment, find the place (hint, else index), read once, walk, verify, hand over.
 * No lock is held while the file is read.
 */
#include <errno.h>
#include <sys/uio.h>

#include "base/mem.h"
#include "store/batch_header.h"
#include "store/file.h"
#include "store/partition.h"
#include "store/scan.h"

#define SMALL_BATCH_BYTES 4096        /* shorter payloads are moved next to the one before */
#define FIRST_READ_BYTES  (16 * 1024) /* at least, so that a batch rarely needs a second read */
#define NOWAIT_BYTES_MAX \
    (1088 * 1024) /* what a loop may copy and check at once: 1 MiB of payloads, some 120 us */

/* Where to begin reading: a batch that is not behind the wanted offset. */
struct place {
    struct segment *segment; /* referenced and in use */
    int64_t position, offset;
};

static void place_release(struct place *at) {
    segment_done(at->segment);
    segment_unref(at->segment);
}

/* ---- under the partition's lock ---- */

/* The segment that has the offset, or would have it next; NULL: before the first. */
static struct segment *segment_at(const struct partition *p, int64_t offset) {
    int32_t low = 0, high = p->segments_count;
    while (low < high) { /* the first that begins behind offset */
        int32_t mid = low + (high - low) / 2;
        if (p->segments[mid]->base_offset <= offset)
            low = mid + 1;
        else
            high = mid;
    }
    return low > 0 ? p->segments[low - 1] : NULL;
}

static const struct read_hint *hint_find(const struct partition *p, const struct segment *s, int64_t offset) {
    for (int i = 0; i < PARTITION_HINTS; i++) {
        const struct read_hint *h = &p->hints[i];
        if (h->offset == offset && h->segment_base == s->base_offset)
            return h;
    }
    return NULL;
}

/* The nearest known place at or before offset, of a segment that is in use. */
static void locate(const struct partition *p, const struct segment *s, int64_t offset, struct place *out) {
    out->position = 0;
    out->offset = s->base_offset;
    const struct read_hint *h = offset > 0 ? hint_find(p, s, offset) : NULL;
    if (h) {
        out->position = h->position;
        out->offset = offset;
    } else if (s->index.count > 0) {
        const struct index_entry *e = index_by_offset(&s->index, (uint32_t)(offset - s->base_offset));
        out->position = e->position;
        out->offset = s->base_offset + e->offset_delta;
    }
}

/* ---- */

static void hint_put(struct partition *p, const struct segment *s, int64_t offset, int64_t position) {
    pthread_mutex_lock(&p->lock);
    if (offset > 0 && !hint_find(p, s, offset))
        p->hints[p->hints_next++ % PARTITION_HINTS] = (struct read_hint){offset, s->base_offset, position};
    pthread_mutex_unlock(&p->lock);
}

/* A reader waits at the end: what comes there is found, and measured, without the index. */
static void hint_put_end(struct partition *p, int64_t end) {
    pthread_mutex_lock(&p->lock);
    const struct segment *active = p->segments_count > 0 ? p->segments[p->segments_count - 1] : NULL;
    if (active && end > 0 && end == atomic_load(&active->end_offset) && !hint_find(p, active, end))
        p->hints[p->hints_next++ % PARTITION_HINTS] =
            (struct read_hint){end, active->base_offset, atomic_load(&active->size_bytes)};
    pthread_mutex_unlock(&p->lock);
}

static enum status place_find(struct partition *p, int64_t offset, bool wait, struct place *out) {
    pthread_mutex_lock(&p->lock);
    struct segment *s = segment_at(p, offset);
    if (s)
        segment_ref(s);
    pthread_mutex_unlock(&p->lock);
    if (!s)
        return atomic_load(&p->deleted) ? ST_NOT_FOUND : ST_OUT_OF_RANGE;
    enum status st = segment_use(s, wait);
    if (st) {
        segment_unref(s);
        /* Retention or a deletion was quicker. */
        if (st == ST_NOT_FOUND && !atomic_load(&p->deleted))
            st = offset < atomic_load(&p->start) ? ST_OUT_OF_RANGE : ST_IO;
        return st;
    }
    out->segment = s;
    pthread_mutex_lock(&p->lock);
    locate(p, s, offset, out);
    pthread_mutex_unlock(&p->lock);
    return ST_OK;
}

/* Read from memory only. ST_AGAIN: nothing of it is there, or this file system can't say. */
static enum status read_cached(int fd, void *out, size_t size, int64_t position, size_t *got_out) {
    struct iovec piece = {out, size};
    ssize_t n = preadv2(fd, &piece, 1, position, RWF_NOWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR ? ST_AGAIN : ST_IO;
    *got_out = (size_t)n;
    return ST_OK;
}

/* What a walk over the bytes read came to. */
struct walk {
    struct place at;    /* of the first batch that was not taken */
    int64_t need_bytes; /* it needs so many from its position on; 0: it was not cut off */
    bool bad;           /* it fails a check */
    int32_t runs_room;
};

static enum status take_batch(struct store_read *r, struct walk *w, const struct batch_header *h,
                              uint8_t *payload) {
    struct store_run *last = r->runs_count > 0 ? &r->runs[r->runs_count - 1] : NULL;
    r->bytes += h->payload_bytes;
    r->next_offset = batch_next_offset(h);
    if (last && last->format == h->format && h->payload_bytes < SMALL_BATCH_BYTES &&
        (int64_t)last->bytes.len + h->payload_bytes <= INT32_MAX) {
        memmove(r->memory + (last->bytes.ptr - r->memory) + last->bytes.len, payload, h->payload_bytes);
        last->bytes.len += (int32_t)h->payload_bytes;
        return ST_OK;
    }
    if (r->runs_count == w->runs_room) {
        int32_t room = w->runs_room > 0 ? w->runs_room * 2 : 8;
        struct store_run *runs = mem_grow(r->runs, (size_t)room * sizeof *runs);
        if (!runs)
            return ST_NO_MEMORY;
        r->runs = runs;
        w->runs_room = room;
    }
    r->runs[r->runs_count++] = (struct store_run){{payload, (int32_t)h->payload_bytes}, h->format};
    return ST_OK;
}

/* Take batches out of got bytes that were read at w->at, from the one with offset on. ST_NO_MEMORY. */
static enum status walk(struct store_read *r, struct walk *w, size_t got, int64_t offset, int64_t bytes_max) {
    int64_t left = (int64_t)got;
    uint8_t *p = r->memory;
    for (;;) {
        struct batch_header h;
        w->need_bytes = left < BATCH_HEADER_BYTES ? BATCH_HEADER_BYTES : 0;
        if (w->need_bytes)
            return ST_OK;
        w->bad = !batch_header_read(p, &h) || h.base_offset != w->at.offset;
        if (w->bad)
            return ST_OK;
        w->need_bytes = batch_stored_bytes(&h) > left ? batch_stored_bytes(&h) : 0;
        if (w->need_bytes)
            return ST_OK;
        if (batch_next_offset(&h) > offset) {
            if (r->runs_count > 0 && r->bytes + h.payload_bytes > bytes_max)
                return ST_OK;
            w->bad = !batch_payload_is_good(&h, p + BATCH_HEADER_BYTES);
            if (w->bad)
                return ST_OK;
            enum status st = take_batch(r, w, &h, p + BATCH_HEADER_BYTES);
            if (st)
                return st;
        }
        w->at.position += batch_stored_bytes(&h);
        w->at.offset = batch_next_offset(&h);
        p += batch_stored_bytes(&h);
        left -= batch_stored_bytes(&h);
    }
}

/* Damage between the place and the batch sought: search for that batch, whole. ST_CORRUPT: it is the damaged one. */
static enum status pass_damage(struct place *at, int64_t offset) {
    struct scan scan;
    struct batch_header h;
    const uint8_t *payload;
    struct index_point from = {at->position, at->offset, INT64_MIN};
    scan_init(&scan, at->segment->fd, &from, atomic_load(&at->segment->size_bytes));
    enum status st = ST_OK;
    while (!st) {
        at->position = scan.position;
        at->offset = scan.offset;
        st = scan.offset > offset ? ST_CORRUPT : scan_next(&scan, &h, &payload);
        if (!st && scan.offset > offset)
            break;
        if (st == ST_CORRUPT && scan.offset <= offset)
            st = scan_resync(&scan);
    }
    scan_release(&scan);
    return st == ST_NOT_FOUND ? ST_CORRUPT : st;
}

static enum status read_into(struct store_read *r, const struct place *at, size_t want, bool wait,
                             size_t *got) {
    if (want > r->memory_bytes) {
        mem_free(r->memory);
        r->memory_bytes = 0;
        r->memory = mem_take(want);
        if (!r->memory)
            return ST_NO_MEMORY;
        r->memory_bytes = want;
    }
    return wait ? file_read(at->segment->fd, r->memory, want, at->position, got)
                : read_cached(at->segment->fd, r->memory, want, at->position, got);
}

static int64_t first_want(const struct place *at, int64_t offset, int64_t bytes_max) {
    int64_t want = bytes_max < FIRST_READ_BYTES ? FIRST_READ_BYTES : bytes_max;
    if (at->offset != offset)
        want += INDEX_INTERVAL_BYTES;
    return want + want / 64 + BATCH_HEADER_BYTES; /* and some headers */
}

/* After a walk that took nothing: how much to read next, from w->at. ST_CORRUPT: no more will help. */
static enum status look_further(struct walk *w, int64_t offset, int64_t bytes_max, int64_t *want) {
    int64_t there = atomic_load(&w->at.segment->size_bytes) - w->at.position;
    if (w->bad || w->need_bytes > there) {
        enum status st = pass_damage(&w->at, offset);
        if (st)
            return st;
        w->need_bytes = 0;
    }
    *want = first_want(&w->at, offset, bytes_max);
    if (*want < w->need_bytes)
        *want = w->need_bytes;
    return ST_OK;
}

/* Read from the place until there is a batch. Afterwards w->at is behind what was taken. */
static enum status read_place(struct walk *w, int64_t offset, int64_t bytes_max, bool wait,
                              struct store_read *r) {
    int64_t want = first_want(&w->at, offset, bytes_max);
    /* The second read has the size of the batch, the others come after damage. */
    for (int round = 0; round < 5; round++) {
        int64_t there = atomic_load(&w->at.segment->size_bytes) - w->at.position;
        if (there < want)
            want = there;
        if (!wait && want > NOWAIT_BYTES_MAX)
            want = NOWAIT_BYTES_MAX;
        if (want <= 0)
            return ST_CORRUPT; /* the file ends before its last offset */
        size_t got = 0;
        enum status st = read_into(r, &w->at, (size_t)want, wait, &got);
        if (!st)
            st = walk(r, w, got, offset, bytes_max);
        if (st || r->runs_count > 0)
            return st;
        if (!wait)
            return ST_AGAIN;
        st = look_further(w, offset, bytes_max, &want);
        if (st)
            return st;
    }
    return ST_CORRUPT;
}

enum status partition_read(struct partition *p, int64_t offset, int64_t bytes_max, bool wait,
                           struct store_read *out) {
    struct store_read r = {0};
    struct walk w = {0};

    *out = r;
    if (atomic_load(&p->deleted))
        return ST_NOT_FOUND;
    if (!wait && !atomic_load(&p->is_open))
        return ST_AGAIN;
    enum status st = partition_ensure_open(p);
    if (st)
        return st;
    int64_t end = atomic_load(&p->end);
    if (offset < atomic_load(&p->start) || offset > end)
        return ST_OUT_OF_RANGE;
    if (offset == end) {
        hint_put_end(p, end);
        out->next_offset = end;
        return ST_OK;
    }
    st = place_find(p, offset, wait, &w.at);
    if (st)
        return st;
    st = read_place(&w, offset, bytes_max, wait, &r);
    if (st)
        store_read_release(&r);
    else
        hint_put(p, w.at.segment, w.at.offset, w.at.position);
    place_release(&w.at);
    *out = r;
    return st;
}

void store_read_release(struct store_read *r) {
    mem_free(r->memory);
    mem_free(r->runs);
    *r = (struct store_read){0};
}

int64_t partition_bytes_after(struct partition *p, int64_t offset) {
    struct place at;
    int64_t bytes = 0, base = INT64_MIN;
    if (offset >= atomic_load(&p->end))
        return 0;
    if (place_find(p, offset, false, &at) == ST_OK) {
        base = at.segment->base_offset;
        bytes -= at.position;
        place_release(&at);
    }
    pthread_mutex_lock(&p->lock);
    for (int32_t i = p->segments_count - 1; i >= 0; i--) {
        const struct segment *s = p->segments[i];
        bytes += atomic_load(&s->size_bytes);
        if (s->base_offset == base || s->base_offset <= offset)
            break;
    }
    pthread_mutex_unlock(&p->lock);
    return bytes > 0 ? bytes : 0;
}

/* ---- by time ---- */

struct time_search {
    int64_t from;         /* batches that end at or before it don't count */
    int64_t timestamp_ms; /* what is sought; INT64_MAX: nothing but the greatest */
    int64_t greatest;     /* out: of all that counted; INT64_MIN: none */
    int64_t offset;       /* out: of the batch found, its first */
};

/* The first segment from this base offset on that has something behind `from`, referenced; NULL: none. */
static struct segment *segment_behind(struct partition *p, int64_t base_offset, int64_t from) {
    struct segment *found = NULL;
    pthread_mutex_lock(&p->lock);
    for (int32_t i = 0; i < p->segments_count && !found; i++)
        if (p->segments[i]->base_offset >= base_offset && atomic_load(&p->segments[i]->end_offset) > from)
            found = segment_ref(p->segments[i]);
    pthread_mutex_unlock(&p->lock);
    return found;
}

/* The last entry before anything that is sought. With the partition's lock. */
static struct index_point search_begin(const struct segment *s, const struct time_search *q) {
    const struct index *x = &s->index;
    struct index_point begin = {0, s->base_offset, INT64_MIN};
    if (x->count == 0)
        return begin;
    const struct index_entry *by_time =
        q->timestamp_ms == INT64_MAX ? x->entries : index_by_time(x, q->timestamp_ms);
    const struct index_entry *by_offset =
        q->from > s->base_offset ? index_by_offset(x, (uint32_t)(q->from - s->base_offset)) : x->entries;
    const struct index_entry *e = by_time > by_offset ? by_time : by_offset;
    return (struct index_point){e->position, s->base_offset + e->offset_delta, e->max_timestamp};
}

/* Whether a batch behind `from` has the segment's greatest timestamp, because no earlier one has. With the partition's lock. */
static bool greatest_comes_later(const struct segment *s, int64_t from) {
    const struct index *x = &s->index;
    if (x->count == 0)
        return false;
    const struct index_entry *next = index_by_offset(x, (uint32_t)(from - s->base_offset)) + 1;
    return next < x->entries + x->count && next->max_timestamp < atomic_load(&s->max_timestamp);
}

/* Only headers are read. ST_NOT_FOUND: damaged or none. */
static enum status search_headers(struct partition *p, struct segment *s, struct time_search *q) {
    struct scan scan;
    struct batch_header h;
    enum status st = segment_use(s, true);
    if (st)
        return st;
    pthread_mutex_lock(&p->lock);
    struct index_point begin = search_begin(s, q);
    bool known = q->timestamp_ms == INT64_MAX && greatest_comes_later(s, q->from);
    pthread_mutex_unlock(&p->lock);
    if (known) {
        if (atomic_load(&s->max_timestamp) > q->greatest)
            q->greatest = atomic_load(&s->max_timestamp);
        st = ST_NOT_FOUND;
    }
    scan_init(&scan, s->fd, &begin, atomic_load(&s->size_bytes));
    while (!st) {
        st = scan_next(&scan, &h, NULL);
        bool counts = !st && batch_next_offset(&h) > q->from;
        if (counts && h.max_timestamp > q->greatest)
            q->greatest = h.max_timestamp;
        if (counts && h.max_timestamp >= q->timestamp_ms)
            break;
        if (st == ST_CORRUPT)
            st = scan_resync(&scan);
    }
    if (!st)
        q->offset = h.base_offset;
    scan_release(&scan);
    segment_done(s);
    return st;
}

/* Of a segment that begins behind `from` the greatest is known without reading it. */
static enum status search_segment(struct partition *p, struct segment *s, struct time_search *q) {
    int64_t greatest = INT64_MIN;
    enum status st = segment_max_timestamp(s, &greatest);
    if (st)
        return st;
    bool greatest_alone = q->timestamp_ms == INT64_MAX;
    if (greatest_alone ? s->base_offset >= q->from : greatest < q->timestamp_ms) {
        q->greatest = greatest > q->greatest ? greatest : q->greatest;
        return ST_NOT_FOUND;
    }
    return search_headers(p, s, q);
}

/* ST_NOT_FOUND: none. Segments that retention takes away meanwhile don't count. */
static enum status search(struct partition *p, struct time_search *q) {
    q->greatest = INT64_MIN;
    for (int64_t base_offset = 0;;) {
        struct segment *s = segment_behind(p, base_offset, q->from);
        if (!s)
            return ST_NOT_FOUND;
        base_offset = s->base_offset + 1;
        enum status st = search_segment(p, s, q);
        segment_unref(s);
        if (st != ST_NOT_FOUND)
            return st;
    }
}

enum status partition_find_time(struct partition *p, int64_t from, int64_t timestamp_ms,
                                int64_t *base_offset_out, struct store_read *out) {
    *out = (struct store_read){0};
    enum status st = partition_ensure_open(p);
    if (st)
        return st;
    int64_t start = atomic_load(&p->start);
    struct time_search q = {.from = from > start ? from : start, .timestamp_ms = timestamp_ms};
    st = search(p, &q);
    if (st == ST_NOT_FOUND && timestamp_ms == INT64_MAX && q.greatest != INT64_MIN) {
        q.timestamp_ms = q.greatest;
        st = search(p, &q);
    }
    if (st)
        return st;
    start = atomic_load(&p->start); /* the batch may begin before it */
    st = partition_read(p, q.offset > start ? q.offset : start, 1, true, out);
    if (!st && out->runs_count == 0) /* the start is at the end by now */
        st = ST_NOT_FOUND;
    if (!st)
        *base_offset_out = q.offset;
    return st;
}
