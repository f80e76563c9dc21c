#include "iggy/header.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/le.h"

/* A row: where its bytes are, and where in the struct. Numbers are turned, u128 is copied as it is. */
struct row {
    uint16_t at, offset;
    uint8_t width;
};

struct table {
    const struct row *rows;
    size_t rows_count;
};

#define WIDTH_U8   1
#define WIDTH_U32  4
#define WIDTH_U64  8
#define WIDTH_U128 16

/* clang-format off: macros that balance only together */
/* Pass 1: the rows as arrays of bytes, one behind the other. */
#define HEADER(name, first)       struct name##_wire {
#define FIELD(kind, name, offset) uint8_t name[WIDTH_##kind];
#define GAP(offset, size)         uint8_t gap_##offset[size];
#define END(name, last) \
    }                   \
    ;
#include "iggy/header.def"
#undef HEADER
#undef FIELD
#undef GAP
#undef END

/* Pass 2: the tables. Each offset must be where pass 1 put the row, and the last one must end where it says. */
#define CHECKED(offset, cond, text) \
    ((offset) * sizeof(struct {     \
         char one;                  \
         static_assert(cond, text); \
     }))
#define HEADER(name, first)                       \
    static struct table name##_table(void) {      \
        typedef struct iggy_##name##_header self; \
        typedef struct name##_wire wire;          \
        enum { self_first = (first) };            \
        static const struct row rows[] = {
#define FIELD(kind, f, at_)                                                                     \
    {.at = CHECKED(at_, offsetof(wire, f) + self_first == (at_), #f " doesn't begin at " #at_), \
     .offset = offsetof(self, f),                                                               \
     .width = WIDTH_##kind},
#define GAP(offset, size)
#define END(name, last)                                                                 \
    }                                                                                   \
    ;                                                                                   \
    static_assert(sizeof(wire) + self_first == (last), #name " doesn't end at " #last); \
    return (struct table){rows, COUNT_OF(rows)};                                        \
    }
#include "iggy/header.def"
/* clang-format on */

static void rows_decode(struct table t, const uint8_t *in, void *out) {
    for (const struct row *r = t.rows, *end = r + t.rows_count; r < end; r++) {
        uint8_t *to = (uint8_t *)out + r->offset;
        uint32_t u32;
        uint64_t u64;
        switch (r->width) {
        case WIDTH_U32:
            u32 = le_get32(in + r->at);
            memcpy(to, &u32, sizeof u32);
            break;
        case WIDTH_U64:
            u64 = le_get64(in + r->at);
            memcpy(to, &u64, sizeof u64);
            break;
        default:
            memcpy(to, in + r->at, r->width);
        }
    }
}

static void rows_encode(struct table t, const void *msg, uint8_t *out) {
    for (const struct row *r = t.rows, *end = r + t.rows_count; r < end; r++) {
        const uint8_t *from = (const uint8_t *)msg + r->offset;
        uint32_t u32;
        uint64_t u64;
        switch (r->width) {
        case WIDTH_U32:
            memcpy(&u32, from, sizeof u32);
            le_set32(out + r->at, u32);
            break;
        case WIDTH_U64:
            memcpy(&u64, from, sizeof u64);
            le_set64(out + r->at, u64);
            break;
        default:
            memcpy(out + r->at, from, r->width);
        }
    }
}

void iggy_header_decode(const uint8_t in[IGGY_HEADER_BYTES], struct iggy_header *out) {
    memset(out, 0, sizeof *out);
    rows_decode(frame_table(), in, &out->frame);
    if (out->frame.kind == IGGY_REQUEST)
        rows_decode(request_table(), in, &out->request);
    else if (out->frame.kind == IGGY_REPLY)
        rows_decode(reply_table(), in, &out->reply);
    else if (out->frame.kind == IGGY_EVICTION)
        rows_decode(eviction_table(), in, &out->eviction);
}

void iggy_header_encode(const struct iggy_header *h, uint8_t out[IGGY_HEADER_BYTES]) {
    memset(out, 0, IGGY_HEADER_BYTES);
    rows_encode(frame_table(), &h->frame, out);
    if (h->frame.kind == IGGY_REQUEST)
        rows_encode(request_table(), &h->request, out);
    else if (h->frame.kind == IGGY_REPLY)
        rows_encode(reply_table(), &h->reply, out);
    else if (h->frame.kind == IGGY_EVICTION)
        rows_encode(eviction_table(), &h->eviction, out);
}

enum status iggy_frame_next(struct rbuf *in, size_t frame_bytes_max, struct iggy_header *h,
                            struct bytes *body) {
    assert(frame_bytes_max <= INT32_MAX);
    if (rbuf_left(in) < IGGY_HEADER_BYTES)
        return ST_AGAIN;
    struct iggy_header head;
    iggy_header_decode(in->at, &head);
    if (head.frame.size < IGGY_HEADER_BYTES || head.frame.size > frame_bytes_max)
        return ST_BAD_LENGTH;
    if (rbuf_left(in) < head.frame.size)
        return ST_AGAIN;
    *h = head;
    *body = (struct bytes){in->at + IGGY_HEADER_BYTES, (int32_t)(head.frame.size - IGGY_HEADER_BYTES)};
    in->at += head.frame.size;
    return ST_OK;
}

bool iggy_request_is_sound(const struct iggy_request_header *r) {
    if (iggy_u128_is_zero(&r->client) || r->operation == 0)
        return false;
    switch (r->operation) {
    case IGGY_OP_REGISTER:
        return r->session == 0 && r->request == 0;
    case IGGY_OP_BY_CODE: /* also before login, with any number */
        return true;
    default:
        return r->session > 0 && r->request > 0;
    }
}

struct iggy_u128 iggy_body_checksum(struct bytes body) {
    struct iggy_u128 sum = {{0}};
    le_set64(sum.b, XXH3_64bits(body.ptr, body.len > 0 ? (size_t)body.len : 0));
    return sum;
}

bool iggy_request_checksum_is_good(const struct iggy_request_header *r, struct bytes body) {
    struct iggy_u128 want = iggy_body_checksum(body);
    return iggy_u128_is_zero(&r->request_checksum) ||
           memcmp(r->request_checksum.b, want.b, sizeof want.b) == 0;
}
