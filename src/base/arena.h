/*
 * Memory with one lifetime: that of a request. Chunks are taken when needed, nothing is freed alone.
 * Not for sharing between threads at the same time.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/base.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* owned; newest first */
    uint8_t *at, *end;          /* free room of the newest chunk, or of the first memory */
    size_t taken_bytes;         /* all chunks, the first memory not counted */
    size_t bytes_max;
};

/*
 * An empty arena.
 * first, first_bytes  memory used before any chunk is taken; borrowed, may be NULL and 0
 * bytes_max           limit on what is taken beyond it
 */
void arena_init(struct arena *a, void *first, size_t first_bytes, size_t bytes_max);

/* Zeroed memory, aligned for any type; lives until arena_release. NULL: over bytes_max, or out of memory. */
void *arena_take(struct arena *a, size_t size) MUST_USE;

/* The same for count elements; NULL also when the product overflows. count 0 gives a valid pointer. */
void *arena_take_many(struct arena *a, size_t count, size_t size) MUST_USE;
#define arena_take_array(a, type, count) ((type *)arena_take_many((a), (size_t)(count), sizeof(type)))

/* A copy of s in the arena, terminated beyond its length. ptr NULL with len >= 0 never comes back; len -1 and ptr NULL: no memory. */
struct str arena_text(struct arena *a, struct str s) MUST_USE;

/* printf into the arena. ptr NULL, len -1: no memory. */
struct str arena_printf(struct arena *a, const char *format, ...)
    __attribute__((format(printf, 2, 3))) MUST_USE;

void arena_release(struct arena *a); /* fine on zeroed and on released */
#endif
