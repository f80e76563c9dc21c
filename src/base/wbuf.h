/*
 * Output: bytes that are written here, and slices that are borrowed from elsewhere, in the order they go out.
 * Chunks come from the heap; a borrowed slice is never copied. The model is librdkafka's rdbuf.
 */
#ifndef BASE_WBUF_H
#define BASE_WBUF_H

#include <sys/uio.h>

#include "base/base.h"

struct wbuf_chunk;

struct wbuf {
    struct iovec *pieces; /* owned array; what it points to is a chunk's or borrowed */
    int32_t pieces_count, pieces_room;
    struct wbuf_chunk *chunks; /* owned; newest first */
    uint8_t *at, *end;         /* free room of the newest chunk */
    size_t bytes;              /* in all pieces */
    size_t bytes_max;          /* limit on bytes */
    bool own_open;             /* the last piece is our own and ends at `at` */
};

/* An empty buffer that takes at most bytes_max bytes, borrowed ones included. */
void wbuf_init(struct wbuf *w, size_t bytes_max);

/* Append a copy. ST_TOO_BIG: over bytes_max; ST_NO_MEMORY. After a failure the buffer is good for wbuf_release only. */
enum status wbuf_put(struct wbuf *w, const void *ptr, size_t len) MUST_USE;

/* Append value as `width` bytes, most significant first; width 1..8. Errors as wbuf_put. */
enum status wbuf_put_be(struct wbuf *w, uint64_t value, unsigned width) MUST_USE;

/* Room for len (<= 64) contiguous bytes, filled in by the caller later; NULL: as the errors of wbuf_put. */
uint8_t *wbuf_reserve(struct wbuf *w, size_t len) MUST_USE;

/* Append a borrowed slice: it must stay where it is until the buffer is released. Short ones are copied. Errors as wbuf_put. */
enum status wbuf_borrow(struct wbuf *w, const void *ptr, size_t len) MUST_USE;

/* All of it in one flat copy at out (w->bytes bytes). For tests and small answers. */
void wbuf_flatten(const struct wbuf *w, uint8_t *out);

void wbuf_release(struct wbuf *w); /* fine on zeroed and on released */
#endif
