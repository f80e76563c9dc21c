/* The 256-byte header of every frame, and where a frame ends. Rows: header.def. */
#ifndef IGGY_HEADER_H
#define IGGY_HEADER_H

#include "base/base.h"
#include "base/rbuf.h"
#include "iggy/iggy.h"

/* clang-format off: macros that balance only together */
#define HC_U8                     uint8_t
#define HC_U32                    uint32_t
#define HC_U64                    uint64_t
#define HC_U128                   struct iggy_u128
#define HEADER(name, first)       struct iggy_##name##_header {
#define FIELD(kind, name, offset) HC_##kind name;
#define GAP(offset, size)
#define END(name, last) \
    }                   \
    ;
#include "iggy/header.def"
#undef HEADER
#undef FIELD
#undef GAP
#undef END
/* clang-format on */

/* One of the three, by frame.kind; of another kind, none. */
struct iggy_header {
    struct iggy_frame_header frame;
    union {
        struct iggy_request_header request;
        struct iggy_reply_header reply;
        struct iggy_eviction_header eviction;
    };
};

/* Any 256 bytes are a header: what is in it is for the caller to judge. Any thread. */
void iggy_header_decode(const uint8_t in[IGGY_HEADER_BYTES], struct iggy_header *out);
void iggy_header_encode(const struct iggy_header *h, uint8_t out[IGGY_HEADER_BYTES]);

/*
 * The frame at the head of `in`, which is moved behind it.
 * frame_bytes_max   of header and body; IGGY_FRAME_BYTES_MAX for a server, at most INT32_MAX
 * body              a view into in
 *
 * ST_AGAIN       the frame isn't complete, in stays as it is
 * ST_BAD_LENGTH  its size is below 256 or over the limit: the connection can't go on
 */
enum status iggy_frame_next(struct rbuf *in, size_t frame_bytes_max, struct iggy_header *h,
                            struct bytes *body) MUST_USE;

/*
 * Whether a server may look at a request: it has a client and an operation, and a session and a request number exactly
 * where its operation wants them. Real servers drop others without a word.
 */
bool iggy_request_is_sound(const struct iggy_request_header *r) MUST_USE;

/* What P11 writes to request_checksum: XXH3-64 of the body in the low 8 bytes. */
struct iggy_u128 iggy_body_checksum(struct bytes body);

/* P11: whether request_checksum is the body's, or 0, which is none. */
bool iggy_request_checksum_is_good(const struct iggy_request_header *r, struct bytes body) MUST_USE;
#endif
