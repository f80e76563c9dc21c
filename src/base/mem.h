/* The only place that allocates. Nothing else in the tree calls malloc (tools/check_words). */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include "base/base.h"

/* size bytes, not zeroed; NULL: out of memory. Free with mem_free, on any thread. */
void *mem_take(size_t size) MUST_USE;

/* count * size bytes, zeroed; NULL: out of memory, or the product overflows. */
void *mem_take_zeroed(size_t count, size_t size) MUST_USE;

/* As realloc: on NULL the old block stays as it is. */
void *mem_grow(void *ptr, size_t size) MUST_USE;

/* A terminated copy of s on the heap; NULL: out of memory. A null string (len -1) copies as "". */
char *mem_text(struct str s) MUST_USE;

void mem_free(void *ptr); /* takes NULL */

/*
 * Let the nth allocation from now on fail, once (1: the next one; 0: never). For tests, one thread only.
 * mem_fail_pending says whether it is still to come.
 */
void mem_fail_at(int64_t nth);
bool mem_fail_pending(void);
#endif
