/* Input cursor over borrowed bytes: every read is checked against the end. Kafka's integers are big-endian. */
#ifndef BASE_RBUF_H
#define BASE_RBUF_H

#include "base/base.h"

struct rbuf {
    const uint8_t *at, *end;
};

static inline struct rbuf rbuf_of(struct bytes b) {
    return b.len > 0 ? (struct rbuf){b.ptr, b.ptr + b.len} : (struct rbuf){NULL, NULL};
}
static inline size_t rbuf_left(const struct rbuf *in) {
    return (size_t)(in->end - in->at);
}
/* width 1..8 bytes as an unsigned integer. ST_TRUNCATED: fewer are left, nothing is read. */
static inline enum status rbuf_be(struct rbuf *in, unsigned width, uint64_t *out) {
    if (rbuf_left(in) < width)
        return ST_TRUNCATED;
    uint64_t v = 0;
    for (unsigned i = 0; i < width; i++)
        v = v << 8 | in->at[i];
    in->at += width;
    *out = v;
    return ST_OK;
}
/* Unsigned varint of at most 5 bytes; what the fifth holds above 32 bits is dropped (spec B-41). */
static inline enum status rbuf_uvarint(struct rbuf *in, uint32_t *out) {
    uint32_t v = 0;
    for (unsigned i = 0; i < 5; i++) {
        if (in->at == in->end)
            return ST_TRUNCATED;
        uint8_t b = *in->at++;
        v |= (uint32_t)(b & 0x7f) << (7 * i);
        if (!(b & 0x80))
            break;
    }
    *out = v;
    return ST_OK;
}
#endif
