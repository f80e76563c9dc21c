/*
 * Kafka message bodies to structs and back, by table (wire/kmsg.h). No I/O.
 * Decoded strings, bytes and records are views into the input; groups and lists come from the arena.
 */
#ifndef WIRE_CODEC_H
#define WIRE_CODEC_H

#include "base/arena.h"
#include "base/rbuf.h"
#include "base/wbuf.h"
#include "wire/kmsg.h"

/* Spec B-41. The arena's own limit bounds the whole. */
struct decode_limits {
    int32_t elements_max; /* of one collection */
    int32_t string_max;   /* bytes of one string */
};

/*
 * Decode a body at `version` into out (a struct of s, overwritten whole), reading from in.
 * Fields that the version doesn't carry, and tagged fields that are missing, get their defaults.
 * Bytes after a complete body stay in `in`: the caller decides (Kafka ignores them). Unknown tagged fields are skipped.
 *
 * ST_TRUNCATED    in ends too early
 * ST_BAD_LENGTH   a length or count below -1, over a limit or (a count) over the bytes that are left; a null that the
 *                 schema forbids; a tagged field that is not as long as it says
 * ST_NO_MEMORY    the arena's limit
 * ST_UNSUPPORTED  the table doesn't describe this version
 */
enum status kmsg_decode(const struct schema *s, int16_t version, const struct decode_limits *limits,
                        struct rbuf *in, struct arena *a, void *out) MUST_USE;

/*
 * Encode msg at `version`. Slices and records are borrowed by out, all else is copied. Fields that the version doesn't
 * carry are ignored.
 *
 * Errors as wbuf_put, and
 * ST_BAD_LENGTH   a null that the schema forbids, a string over 32767 bytes (no Java client reads a longer one),
 *                 slices over INT32_MAX bytes, or with a len that is not their sum
 * ST_UNSUPPORTED  the table doesn't describe this version
 */
enum status kmsg_encode(const struct schema *s, int16_t version, const void *msg, struct wbuf *out) MUST_USE;

/* Give every field of out (a struct of s) its default, which is not zero everywhere: leader_epoch -1, rack null. */
void kmsg_init(const struct schema *s, void *out);

/* count structs of s in the arena, each as kmsg_init leaves it; count 0 gives a valid pointer. NULL: arena_take. */
void *kmsg_take(const struct schema *s, struct arena *a, int32_t count) MUST_USE;

/* Whether `version` of a message uses compact lengths and tagged fields. */
bool kmsg_is_flexible(const struct schema *s, int16_t version);
#endif
