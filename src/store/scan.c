#include "store/scan.h"

#include "base/mem.h"
#include "store/file.h"

#define WINDOW_BYTES ((size_t)512 * 1024)

void scan_init(struct scan *s, int fd, const struct index_point *from, int64_t limit) {
    *s = (struct scan){
        .fd = fd,
        .position = from->position,
        .offset = from->offset,
        .max_timestamp = from->max_timestamp,
        .limit = limit,
    };
}

void scan_release(struct scan *s) {
    mem_free(s->window);
    s->window = NULL;
    s->window_room = s->window_bytes = 0;
}

/* Bring [position, position + size) into the window. ST_TRUNCATED: it passes the limit, or the file has become shorter. */
static enum status need(struct scan *s, int64_t position, size_t size, const uint8_t **out) {
    if (size > (size_t)(s->limit - position))
        return ST_TRUNCATED;
    if (position < s->window_at || position + (int64_t)size > s->window_at + (int64_t)s->window_bytes) {
        if (size > s->window_room || !s->window) {
            size_t room = size > WINDOW_BYTES ? size : WINDOW_BYTES;
            scan_release(s);
            s->window = mem_take(room);
            if (!s->window)
                return ST_NO_MEMORY;
            s->window_room = room;
        }
        size_t want = s->window_room;
        if ((int64_t)want > s->limit - position)
            want = (size_t)(s->limit - position);
        s->window_bytes = 0;
        s->window_at = position;
        enum status st = file_read(s->fd, s->window, want, position, &s->window_bytes);
        if (st)
            return st;
        if (s->window_bytes < size)
            return ST_TRUNCATED;
    }
    *out = s->window + (position - s->window_at);
    return ST_OK;
}

/* The header at position. ST_CORRUPT: none. */
static enum status header_at(struct scan *s, int64_t position, struct batch_header *out) {
    const uint8_t *p;
    enum status st = need(s, position, BATCH_HEADER_BYTES, &p);
    if (st == ST_TRUNCATED || (!st && !batch_header_read(p, out)))
        return ST_CORRUPT;
    return st;
}

/* The payload behind a header at position, checked. ST_CORRUPT. */
static enum status payload_at(struct scan *s, int64_t position, const struct batch_header *h,
                              const uint8_t **out) {
    enum status st = need(s, position + BATCH_HEADER_BYTES, h->payload_bytes, out);
    if (st == ST_TRUNCATED || (!st && !batch_payload_is_good(h, *out)))
        return ST_CORRUPT;
    return st;
}

enum status scan_next(struct scan *s, struct batch_header *out, const uint8_t **payload_out) {
    if (s->position == s->limit)
        return ST_NOT_FOUND;
    enum status st = header_at(s, s->position, out);
    if (st)
        return st;
    if (out->base_offset != s->offset || batch_stored_bytes(out) > s->limit - s->position)
        return ST_CORRUPT;
    if (payload_out) {
        st = payload_at(s, s->position, out, payload_out);
        if (st)
            return st;
    }
    s->position += batch_stored_bytes(out);
    s->offset = batch_next_offset(out);
    if (out->max_timestamp > s->max_timestamp)
        s->max_timestamp = out->max_timestamp;
    return ST_OK;
}

enum status scan_next_indexed(struct scan *s, struct index *x, int64_t base_offset) {
    struct index_entry e = {
        .offset_delta = (uint32_t)(s->offset - base_offset),
        .position = (uint32_t)s->position,
        .max_timestamp = s->max_timestamp,
    };
    struct batch_header h;
    const uint8_t *payload;
    enum status st = index_reserve(x, 1);
    if (!st)
        st = scan_next(s, &h, &payload);
    bool due = s->resynced || x->count == 0 ||
               e.position - x->entries[x->count - 1].position >= INDEX_INTERVAL_BYTES;
    if (!st && due)
        index_add(x, &e);
    s->resynced = s->resynced && st;
    return st;
}

/* Whether a whole good batch with an offset that may follow stands at position. ST_CORRUPT: no. */
static enum status try_at(struct scan *s, int64_t position, struct batch_header *out) {
    const uint8_t *payload;
    enum status st = header_at(s, position, out);
    if (!st && out->base_offset < s->offset)
        st = ST_CORRUPT;
    return st ? st : payload_at(s, position, out, &payload);
}

/* The next place from position on where the magic stands. ST_NOT_FOUND. */
static enum status find_magic(struct scan *s, int64_t *position) {
    while (s->limit - *position >= BATCH_HEADER_BYTES) {
        const uint8_t *p;
        enum status st = need(s, *position, BATCH_HEADER_BYTES, &p);
        if (st)
            return st == ST_TRUNCATED ? ST_NOT_FOUND : st;
        size_t size = s->window_bytes - (size_t)(p - s->window);
        const uint8_t *hit = memmem(p, size, BATCH_MAGIC, BATCH_MAGIC_BYTES);
        if (hit) {
            *position += hit - p;
            return ST_OK;
        }
        *position += (int64_t)size - (BATCH_MAGIC_BYTES - 1);
    }
    return ST_NOT_FOUND;
}

enum status scan_resync(struct scan *s) {
    struct batch_header h;
    int64_t at = s->position;
    enum status st = try_at(s, at, &h);
    if (st == ST_CORRUPT) {
        enum status header = header_at(s, at, &h);
        if (header && header != ST_CORRUPT)
            return header;
        at += header ? 1 : batch_stored_bytes(&h);
    }
    while (st == ST_CORRUPT) {
        if (at >= s->limit)
            return ST_NOT_FOUND;
        st = find_magic(s, &at);
        if (!st)
            st = try_at(s, at, &h);
        if (st == ST_CORRUPT)
            at++;
    }
    if (st)
        return st;
    s->position = at;
    s->offset = h.base_offset;
    s->resynced = true;
    return ST_OK;
}

enum status scan_zero_tail(struct scan *s, int64_t *end_out) {
    int64_t end = s->position;
    for (int64_t at = s->position; at < s->limit;) {
        const uint8_t *p;
        enum status st = need(s, at, 1, &p);
        if (st == ST_TRUNCATED)
            break;
        if (st)
            return st;
        size_t size = s->window_bytes - (size_t)(p - s->window);
        for (size_t i = size; i > 0; i--) {
            if (p[i - 1] != 0) {
                end = at + (int64_t)i;
                break;
            }
        }
        at += (int64_t)size;
    }
    *end_out = end;
    return ST_OK;
}
