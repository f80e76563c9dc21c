/*
 * Iggy bodies to structs and back, by table (iggy/message.h). No I/O, no clock.
 * Decoded texts and bytes are views into the body; lists come from the arena.
 */
#ifndef IGGY_CODEC_H
#define IGGY_CODEC_H

#include "base/arena.h"
#include "base/wbuf.h"
#include "iggy/message.h"

/*
 * Decode a whole body of protocol version `version` into out (a struct of s, overwritten).
 * Fields that the version doesn't carry are zero. A count is believed only as far as the bytes that are left can
 * hold it; the arena's limit bounds the whole. Any thread.
 *
 * ST_TRUNCATED    the body ends too early
 * ST_BAD_LENGTH   a count that the bytes left can't hold, a part that is not as long as it says
 * ST_TRAILING     bytes after the end
 * ST_INVALID      a kind, number, length or text that the protocol doesn't know
 * ST_NO_MEMORY    the arena's limit
 * ST_UNSUPPORTED  a version that the tables don't describe
 */
enum status iggy_decode(const struct iggy_schema *s, uint32_t version, struct bytes body, struct arena *a,
                        void *out) MUST_USE;

/*
 * Append msg at `version`. Fields of kind REST are borrowed by out, all else is copied. Fields that the version
 * doesn't carry are ignored. Any thread.
 *
 * Errors as wbuf_put, and
 * ST_INVALID      what iggy_decode would refuse, or a list that is not as long as the member that counts it
 * ST_UNSUPPORTED  a version that the tables don't describe
 */
enum status iggy_encode(const struct iggy_schema *s, uint32_t version, const void *msg,
                        struct wbuf *out) MUST_USE;
#endif
