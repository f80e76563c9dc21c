/*
 * Kafka message bodies to structs and back, by table (wire/kmsg.h). No I/O.
 * Decoded strings, bytes and records are views into the input; groups and int lists come from the arena.
 */
#ifndef WIRE_CODEC_H
#define WIRE_CODEC_H

#include "base/arena.h"
#include "base/rbuf.h"
#include "base/wbuf.h"
#include "wire/kmsg.h"

/* Spec B-41 as decisions.md settles it. The arena's own limit bounds the whole. */
struct decode_limits {
    int32_t elements_max; /* of one collection */
    int32_t string_max;   /* bytes of one string */
};

/*
 * Decode a body at `version` into out (a struct of s, zeroed before), reading from in.
 * Bytes after a complete body stay in `in`: the caller decides (Kafka ignores them). Unknown tagged fields are skipped.
 * ST_TRUNCATED: in ends too early; ST_BAD_LENGTH: a length, count or null that the schema forbids, or over a limit;
 * ST_NO_MEMORY: the arena's limit.
 */
enum status kmsg_decode(const struct schema *s, int16_t version, const struct decode_limits *limits, struct rbuf *in, struct arena *a,
                        void *out) MUST_USE;

/* Encode msg at `version`. Slices and records are borrowed by out, all else is copied. Errors as wbuf_put; ST_BAD_LENGTH: null where
 * the schema forbids it, or a string over 32767 bytes where its length has 2 bytes. */
enum status kmsg_encode(const struct schema *s, int16_t version, const void *msg, struct wbuf *out) MUST_USE;

/* Whether `version` of a message uses compact lengths and tagged fields. */
bool kmsg_is_flexible(const struct schema *s, int16_t version);
#endif
