#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>

static _Atomic int64_t fail_in; /* 0: off */

static bool fails_now(void) {
    if (atomic_load_explicit(&fail_in, memory_order_relaxed) == 0)
        return false;
    return atomic_fetch_sub_explicit(&fail_in, 1, memory_order_relaxed) == 1;
}

void *mem_take(size_t size) {
    return fails_now() ? NULL : malloc(size > 0 ? size : 1);
}

void *mem_take_zeroed(size_t count, size_t size) {
    return fails_now() ? NULL : calloc(count > 0 ? count : 1, size > 0 ? size : 1);
}

void *mem_grow(void *ptr, size_t size) {
    return fails_now() ? NULL : realloc(ptr, size > 0 ? size : 1);
}

char *mem_text(struct str s) {
    size_t len = s.len > 0 ? (size_t)s.len : 0;
    char *text = mem_take(len + 1);
    if (!text)
        return NULL;
    if (len > 0)
        memcpy(text, s.ptr, len);
    text[len] = '\0';
    return text;
}

void mem_free(void *ptr) {
    free(ptr);
}

void mem_fail_at(int64_t nth) {
    atomic_store(&fail_in, nth);
}

bool mem_fail_pending(void) {
    return atomic_load(&fail_in) > 0;
}
