/*
 * What fuzz_request and fuzz_response share. The first byte of an input chooses the API, the second the version, the
 * rest is a body. A body that decodes must encode, to no more bytes, and those must decode and encode to themselves.
 */
#ifndef FUZZ_MESSAGE_H
#define FUZZ_MESSAGE_H

#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "wire/codec.h"

/* Strings no longer than what can be encoded again. */
static const struct decode_limits limits = {.elements_max = 65536, .string_max = 32767};

static _Alignas(max_align_t) uint8_t msg[1024];

static void require(bool claim) {
    if (!claim)
        abort();
}

/* {NULL, -1}: body doesn't decode. Else its encoding, on the heap. */
static struct bytes recode(const struct schema *s, int16_t version, const uint8_t *body, size_t len) {
    struct arena a;
    struct wbuf w;
    struct bytes out = BYTES_NULL;
    arena_init(&a, NULL, 0, 4 * len + 1024 * 1024);
    wbuf_init(&w, len);
    struct rbuf in = {body, body + len};
    require(s->size <= sizeof msg);
    if (!kmsg_decode(s, version, &limits, &in, &a, msg)) {
        require(!kmsg_encode(s, version, msg, &w));
        uint8_t *flat = mem_take(w.bytes + 1);
        require(flat != NULL);
        wbuf_flatten(&w, flat);
        out = (struct bytes){flat, (int32_t)w.bytes};
    }
    wbuf_release(&w);
    arena_release(&a);
    return out;
}

static void fuzz_message(const struct schema *(*schema_of)(int16_t api_key), const uint8_t *data,
                         size_t size) {
    if (size < 2)
        return;
    const struct schema *s = schema_of(data[0] % 76); /* the tables' greatest key is 75 */
    if (!s)
        return;
    int16_t version = (int16_t)(s->versions.first + data[1] % (s->versions.last - s->versions.first + 1));
    struct bytes once = recode(s, version, data + 2, size - 2);
    if (once.len < 0)
        return;
    struct bytes twice = recode(s, version, once.ptr, (size_t)once.len);
    require(twice.len == once.len && memcmp(twice.ptr, once.ptr, (size_t)once.len) == 0);
    mem_free((void *)(uintptr_t)once.ptr);
    mem_free((void *)(uintptr_t)twice.ptr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
#endif
