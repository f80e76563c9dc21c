#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"

struct arena_chunk {
    struct arena_chunk *next;
    size_t bytes;
    _Alignas(max_align_t) uint8_t data[];
};

#define CHUNK_BYTES_MIN ((size_t)4096)
#define ALIGNMENT       _Alignof(max_align_t)

void arena_init(struct arena *a, void *first, size_t first_bytes, size_t bytes_max) {
    uint8_t *at = first;
    size_t skew = (uintptr_t)at % ALIGNMENT;
    if (skew > 0 && first_bytes >= ALIGNMENT) {
        at += ALIGNMENT - skew;
        first_bytes -= ALIGNMENT - skew;
    }
    *a = (struct arena){.at = at, .end = at ? at + first_bytes : NULL, .bytes_max = bytes_max};
}

static bool arena_add_chunk(struct arena *a, size_t need) {
    size_t bytes = a->chunks ? a->chunks->bytes * 2 : CHUNK_BYTES_MIN;
    size_t room = a->bytes_max - a->taken_bytes;
    if (bytes > room)
        bytes = room;
    if (bytes < need)
        bytes = need;
    if (bytes > room)
        return false;
    struct arena_chunk *chunk = mem_take(sizeof *chunk + bytes);
    if (!chunk)
        return false;
    chunk->next = a->chunks;
    chunk->bytes = bytes;
    a->chunks = chunk;
    a->taken_bytes += bytes;
    a->at = chunk->data;
    a->end = chunk->data + bytes;
    return true;
}

void *arena_take(struct arena *a, size_t size) {
    if (size > SIZE_MAX - ALIGNMENT)
        return NULL;
    size_t need = (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
    if (need == 0)
        need = ALIGNMENT;
    if (need > (size_t)(a->end - a->at) && !arena_add_chunk(a, need))
        return NULL;
    void *p = a->at;
    a->at += need;
    memset(p, 0, need);
    return p;
}

void *arena_take_many(struct arena *a, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return arena_take(a, bytes);
}

struct str arena_text(struct arena *a, struct str s) {
    size_t len = s.len > 0 ? (size_t)s.len : 0;
    char *p = arena_take(a, len + 1);
    if (!p)
        return STR_NULL;
    if (len > 0)
        memcpy(p, s.ptr, len);
    return (struct str){p, (int32_t)len};
}

struct str arena_printf(struct arena *a, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *p = len < 0 ? NULL : arena_take(a, (size_t)len + 1);
    if (p)
        vsnprintf(p, (size_t)len + 1, format, again);
    va_end(again);
    return p ? (struct str){p, (int32_t)len} : STR_NULL;
}

void arena_release(struct arena *a) {
    while (a->chunks) {
        struct arena_chunk *next = a->chunks->next;
        mem_free(a->chunks);
        a->chunks = next;
    }
    *a = (struct arena){0};
}
