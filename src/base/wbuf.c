#include "base/wbuf.h"

#include "base/mem.h"

struct wbuf_chunk {
    struct wbuf_chunk *next;
    size_t bytes;
    uint8_t data[];
};

#define CHUNK_BYTES_MIN  ((size_t)512)
#define CHUNK_BYTES_MAX  ((size_t)64 * 1024)
#define RESERVE_MAX      ((size_t)64)
#define BORROW_BYTES_MIN ((size_t)256) /* below it a copy is cheaper than a piece of its own */

void wbuf_init(struct wbuf *w, size_t bytes_max) {
    *w = (struct wbuf){.bytes_max = bytes_max};
}

static enum status wbuf_add_piece(struct wbuf *w, const void *ptr, size_t len) {
    if (w->pieces_count == w->pieces_room) {
        int32_t room = w->pieces_room > 0 ? w->pieces_room * 2 : 4;
        struct iovec *pieces = mem_grow(w->pieces, (size_t)room * sizeof *pieces);
        if (!pieces)
            return ST_NO_MEMORY;
        w->pieces = pieces;
        w->pieces_room = room;
    }
    w->pieces[w->pieces_count++] = (struct iovec){(void *)(uintptr_t)ptr, len};
    return ST_OK;
}

static enum status wbuf_add_chunk(struct wbuf *w) {
    size_t bytes = w->chunks ? w->chunks->bytes * 4 : CHUNK_BYTES_MIN;
    if (bytes > CHUNK_BYTES_MAX)
        bytes = CHUNK_BYTES_MAX;
    struct wbuf_chunk *chunk = mem_take(sizeof *chunk + bytes);
    if (!chunk)
        return ST_NO_MEMORY;
    chunk->next = w->chunks;
    chunk->bytes = bytes;
    w->chunks = chunk;
    w->at = chunk->data;
    w->end = chunk->data + bytes;
    w->own_open = false;
    return ST_OK;
}

/* len bytes of the current chunk, which has room for them, become part of the output */
static enum status wbuf_take_own(struct wbuf *w, size_t len) {
    if (!w->own_open) {
        enum status st = wbuf_add_piece(w, w->at, 0);
        if (st)
            return st;
        w->own_open = true;
    }
    w->pieces[w->pieces_count - 1].iov_len += len;
    w->at += len;
    w->bytes += len;
    return ST_OK;
}

enum status wbuf_put(struct wbuf *w, const void *ptr, size_t len) {
    if (len > w->bytes_max - w->bytes)
        return ST_TOO_BIG;
    const uint8_t *from = ptr;
    while (len > 0) {
        if (w->at == w->end) {
            enum status st = wbuf_add_chunk(w);
            if (st)
                return st;
        }
        size_t room = (size_t)(w->end - w->at), part = len < room ? len : room;
        memcpy(w->at, from, part);
        enum status st = wbuf_take_own(w, part);
        if (st)
            return st;
        from += part;
        len -= part;
    }
    return ST_OK;
}

enum status wbuf_put_be(struct wbuf *w, uint64_t value, unsigned width) {
    uint8_t b[8];
    for (unsigned i = 0; i < width; i++)
        b[i] = (uint8_t)(value >> (8 * (width - 1 - i)));
    return wbuf_put(w, b, width);
}

uint8_t *wbuf_reserve(struct wbuf *w, size_t len) {
    assert(len <= RESERVE_MAX);
    if (len > w->bytes_max - w->bytes)
        return NULL;
    if ((size_t)(w->end - w->at) < len && wbuf_add_chunk(w))
        return NULL;
    uint8_t *at = w->at;
    return wbuf_take_own(w, len) ? NULL : at;
}

enum status wbuf_borrow(struct wbuf *w, const void *ptr, size_t len) {
    if (len < BORROW_BYTES_MIN)
        return wbuf_put(w, ptr, len);
    if (len > w->bytes_max - w->bytes)
        return ST_TOO_BIG;
    enum status st = wbuf_add_piece(w, ptr, len);
    if (st)
        return st;
    w->own_open = false;
    w->bytes += len;
    return ST_OK;
}

void wbuf_flatten(const struct wbuf *w, uint8_t *out) {
    for (int32_t i = 0; i < w->pieces_count; i++) {
        memcpy(out, w->pieces[i].iov_base, w->pieces[i].iov_len);
        out += w->pieces[i].iov_len;
    }
}

void wbuf_release(struct wbuf *w) {
    while (w->chunks) {
        struct wbuf_chunk *next = w->chunks->next;
        mem_free(w->chunks);
        w->chunks = next;
    }
    mem_free(w->pieces);
    *w = (struct wbuf){0};
}
