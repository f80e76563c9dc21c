/*
 * The interpreter of the tables in message.c. Two walks over a schema's rows, one reading, one writing.
 * A row's struct member is reached by its offset; numbers are copied in and out with memcpy, whatever their alignment.
 */
#include "iggy/codec.h"

#include "base/le.h"
#include "base/utf8.h"

static bool carries(const struct iggy_field *f, uint32_t version) {
    return f->on.first <= version && version <= f->on.last;
}

/* Whether the field is there, as far as an earlier member decides. */
static bool is_wanted(const struct iggy_field *f, const uint8_t *msg) {
    if (f->when == 0)
        return true;
    uint8_t value = msg[f->when_offset];
    return value < 32 && (f->when >> value & 1);
}

static bool is_within(const struct iggy_field *f, uint64_t value) {
    return f->most == 0 || (f->least <= value && value <= f->most);
}

/* Bytes of a number on the wire; 0: the kind is another. */
static unsigned number_width(uint8_t kind) {
    static const uint8_t widths[] = {[IK_U8] = 1, [IK_U16] = 2, [IK_U32] = 4, [IK_U64] = 8, [IK_F32] = 4};
    return kind < COUNT_OF(widths) ? widths[kind] : 0;
}

/* The host's number of `width` bytes at `at`. */
static uint64_t number_load(const uint8_t *at, unsigned width) {
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    switch (width) {
    case 1:
        return *at;
    case 2:
        memcpy(&u16, at, 2);
        return u16;
    case 4:
        memcpy(&u32, at, 4);
        return u32;
    default:
        memcpy(&u64, at, 8);
        return u64;
    }
}

static void number_store(uint8_t *at, unsigned width, uint64_t value) {
    uint16_t u16 = (uint16_t)value;
    uint32_t u32 = (uint32_t)value;
    switch (width) {
    case 1:
        *at = (uint8_t)value;
        break;
    case 2:
        memcpy(at, &u16, 2);
        break;
    case 4:
        memcpy(at, &u32, 4);
        break;
    default:
        memcpy(at, &value, 8);
    }
}

/* The fewest bytes that a part takes: what bounds a count. At least 1. */
static size_t schema_bytes_min(const struct iggy_schema *s, uint32_t version) {
    static const uint8_t least[] = {
        [IK_U8] = 1,        [IK_U16] = 2,     [IK_U32] = 4,          [IK_U64] = 8,        [IK_F32] = 4,
        [IK_BOOL] = 1,      [IK_U128] = 16,   [IK_SECRET] = 32,      [IK_NAME8] = 2,      [IK_TEXT8] = 1,
        [IK_TEXT32] = 4,    [IK_BYTES8] = 1,  [IK_BYTES32] = 4,      [IK_IDENTIFIER] = 3, [IK_CONSUMER] = 4,
        [IK_PARTITION] = 5, [IK_POLLING] = 9, [IK_PARTITIONING] = 2, [IK_SIZED] = 4,      [IK_LIST] = 4,
        [IK_LIST8] = 1,     [IK_CHAIN] = 1,   [IK_ZEROS] = 0,
    };
    size_t bytes = 0;
    for (const struct iggy_field *f = s->fields, *end = f + s->field_count; f < end; f++) {
        if (!carries(f, version) || f->when != 0)
            continue;
        bytes += f->kind == IK_INLINE ? schema_bytes_min(f->part(), version) : least[f->kind];
    }
    return bytes > 0 ? bytes : 1;
}

/* ---- decode ---- */

struct decoder {
    struct rbuf in;
    struct arena *arena;
    uint32_t version;
};

static enum status decode_part(struct decoder *d, const struct iggy_schema *s, uint8_t *out);

static enum status decode_number(struct decoder *d, unsigned width, uint64_t *out) {
    if (rbuf_left(&d->in) < width)
        return ST_TRUNCATED;
    *out = le_get(d->in.at, width);
    d->in.at += width;
    return ST_OK;
}

static enum status decode_view(struct decoder *d, uint64_t len, struct bytes *out) {
    if (len > rbuf_left(&d->in))
        return ST_TRUNCATED;
    *out = (struct bytes){d->in.at, (int32_t)len};
    if (len > 0)
        d->in.at += len;
    return ST_OK;
}

/* width: bytes of the length */
static enum status decode_bytes(struct decoder *d, unsigned width, struct bytes *out) {
    uint64_t len;
    enum status st = decode_number(d, width, &len);
    return st ? st : decode_view(d, len, out);
}

static enum status decode_text(struct decoder *d, const struct iggy_field *f, struct str *out) {
    struct bytes view;
    enum status st = decode_bytes(d, f->kind == IK_TEXT32 ? 4 : 1, &view);
    if (st)
        return st;
    *out = (struct str){(const char *)view.ptr, view.len};
    return f->kind != IK_NAME8 || (view.len > 0 && utf8_is_valid(view.ptr, (size_t)view.len)) ? ST_OK
                                                                                              : ST_INVALID;
}

static enum status decode_fixed(struct decoder *d, size_t len, void *out) {
    struct bytes view;
    enum status st = decode_view(d, len, &view);
    if (!st)
        memcpy(out, view.ptr, len);
    return st;
}

static enum status decode_sized(struct decoder *d, const struct iggy_field *f, uint8_t *at) {
    struct bytes view;
    enum status st = decode_bytes(d, 4, &view);
    if (st)
        return st;
    struct rbuf after = d->in;
    d->in = (struct rbuf){view.ptr, view.ptr + view.len};
    st = decode_part(d, f->part(), at);
    if (st == ST_TRUNCATED || (!st && rbuf_left(&d->in) > 0))
        st = ST_BAD_LENGTH;
    d->in = after;
    return st;
}

static void list_store(const struct iggy_field *f, uint8_t *msg, uint8_t *items, uint32_t count) {
    memcpy(msg + f->offset, &items, sizeof items);
    memcpy(msg + f->count_offset, &count, sizeof count);
}

static enum status decode_counted(struct decoder *d, const struct iggy_field *f, uint8_t *msg) {
    const struct iggy_schema *part = f->part();
    uint64_t count;
    if (f->kind == IK_TIMES) {
        count = number_load(msg + f->times_offset, 4);
    } else {
        enum status st = decode_number(d, f->kind == IK_LIST8 ? 1 : 4, &count);
        if (st)
            return st;
    }
    if (count > rbuf_left(&d->in) / schema_bytes_min(part, d->version))
        return ST_BAD_LENGTH;
    if (count == 0)
        return ST_OK;
    uint8_t *items = arena_take_many(d->arena, (size_t)count, part->size);
    if (!items)
        return ST_NO_MEMORY;
    list_store(f, msg, items, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        enum status st = decode_part(d, part, items + i * part->size);
        if (st)
            return st;
    }
    return ST_OK;
}

/* Whether another part follows in a list that has no count. */
static enum status decode_more(struct decoder *d, const struct iggy_field *f, bool *out) {
    uint64_t flag = rbuf_left(&d->in) > 0;
    enum status st = f->kind == IK_CHAIN ? decode_number(d, 1, &flag) : ST_OK;
    *out = flag != 0;
    return st;
}

/* The array doubles as it grows: the arena holds at most twice what the list needs. */
static enum status decode_uncounted(struct decoder *d, const struct iggy_field *f, uint8_t *msg) {
    const struct iggy_schema *part = f->part();
    uint8_t *items = NULL;
    uint32_t count = 0, room = 0;
    bool more;
    enum status st = decode_more(d, f, &more);
    while (!st && more) {
        if (count == room) {
            room = room > 0 ? 2 * room : 4;
            uint8_t *grown = arena_take_many(d->arena, room, part->size);
            if (!grown)
                return ST_NO_MEMORY;
            if (count > 0)
                memcpy(grown, items, (size_t)count * part->size);
            items = grown;
        }
        st = decode_part(d, part, items + (size_t)count++ * part->size);
        if (!st)
            st = decode_more(d, f, &more);
    }
    if (!st)
        list_store(f, msg, items, count);
    return st;
}

/* long: a kind a case. msg is zeroed where f lies. */
static enum status decode_field(struct decoder *d, const struct iggy_field *f, uint8_t *msg) {
    void *at = msg + f->offset;
    uint64_t number;
    enum status st;
    switch ((enum iggy_field_kind)f->kind) {
    case IK_U8:
    case IK_U16:
    case IK_U32:
    case IK_U64:
    case IK_F32:
        st = decode_number(d, number_width(f->kind), &number);
        if (!st && !is_within(f, number))
            st = ST_INVALID;
        if (!st)
            number_store(at, number_width(f->kind), number);
        return st;
    case IK_BOOL:
        st = decode_number(d, 1, &number);
        *(bool *)at = !st && number != 0;
        return st;
    case IK_FOUND: /* decode_part has seen to it */
        return ST_OK;
    case IK_U128:
        return decode_fixed(d, sizeof(struct iggy_u128), at);
    case IK_SECRET:
        return decode_fixed(d, sizeof(struct iggy_secret), at);
    case IK_NAME8:
    case IK_TEXT8:
    case IK_TEXT32:
        return decode_text(d, f, at);
    case IK_BYTES8:
        return decode_bytes(d, 1, at);
    case IK_BYTES32:
        return decode_bytes(d, 4, at);
    case IK_REST:
        return decode_view(d, rbuf_left(&d->in), at);
    case IK_IDENTIFIER:
        return iggy_identifier_decode(&d->in, at);
    case IK_CONSUMER:
        return iggy_consumer_decode(&d->in, d->version, at);
    case IK_PARTITION:
        return iggy_maybe_partition_decode(&d->in, at);
    case IK_PARTITIONING:
        return iggy_partitioning_decode(&d->in, at);
    case IK_POLLING:
        return iggy_polling_decode(&d->in, at);
    case IK_INLINE:
        return decode_part(d, f->part(), at);
    case IK_SIZED:
        return decode_sized(d, f, at);
    case IK_LIST:
    case IK_LIST8:
    case IK_TIMES:
        return decode_counted(d, f, msg);
    case IK_CHAIN:
    case IK_UNTIL_END:
        return decode_uncounted(d, f, msg);
    case IK_ZEROS: {
        struct bytes ignored;
        return decode_view(d, f->zeros, &ignored);
    }
    }
    return ST_INVALID;
}

/* out is zeroed */
static enum status decode_part(struct decoder *d, const struct iggy_schema *s, uint8_t *out) {
    for (const struct iggy_field *f = s->fields, *end = f + s->field_count; f < end; f++) {
        if (!carries(f, d->version) || !is_wanted(f, out))
            continue;
        if (f->kind == IK_FOUND) {
            bool found = rbuf_left(&d->in) > 0;
            *(bool *)(out + f->offset) = found;
            if (!found)
                return ST_OK;
        }
        enum status st = decode_field(d, f, out);
        if (st)
            return st;
    }
    return ST_OK;
}

enum status iggy_decode(const struct iggy_schema *s, uint32_t version, struct bytes body, struct arena *a,
                        void *out) {
    if (!iggy_version_is_known(version))
        return ST_UNSUPPORTED;
    memset(out, 0, s->size);
    struct decoder d = {.in = rbuf_of(body), .arena = a, .version = version};
    enum status st = decode_part(&d, s, out);
    return !st && rbuf_left(&d.in) > 0 ? ST_TRAILING : st;
}

/* ---- encode ---- */

/* out NULL: only count */
struct encoder {
    struct wbuf *out;
    size_t bytes;
    uint32_t version;
};

static enum status encode_part(struct encoder *e, const struct iggy_schema *s, const uint8_t *msg);

static enum status put(struct encoder *e, const void *ptr, size_t len) {
    e->bytes += len;
    return e->out && len > 0 ? wbuf_put(e->out, ptr, len) : ST_OK;
}

static enum status put_number(struct encoder *e, unsigned width, uint64_t value) {
    uint8_t le[8];
    le_set64(le, value);
    return put(e, le, width);
}

/* width: bytes of the length */
static enum status encode_bytes(struct encoder *e, unsigned width, const void *ptr, int32_t len) {
    if (len < 0 || (width == 1 && len > UINT8_MAX))
        return ST_INVALID;
    enum status st = put_number(e, width, (uint64_t)len);
    return st ? st : put(e, ptr, (size_t)len);
}

static enum status encode_text(struct encoder *e, const struct iggy_field *f, const struct str *s) {
    if (f->kind == IK_NAME8 && (s->len < 1 || !utf8_is_valid(s->ptr, (size_t)s->len)))
        return ST_INVALID;
    return encode_bytes(e, f->kind == IK_TEXT32 ? 4 : 1, s->ptr, s->len);
}

static enum status encode_rest(struct encoder *e, const struct bytes *b) {
    if (b->len < 0)
        return ST_INVALID;
    e->bytes += (size_t)b->len;
    return e->out && b->len > 0 ? wbuf_borrow(e->out, b->ptr, (size_t)b->len) : ST_OK;
}

/* The fields of iggy/identifier.h. */
static enum status encode_small(struct encoder *e, const struct iggy_field *f, const void *at) {
    uint8_t room[IGGY_FIELD_BYTES_MAX];
    size_t len = 0;
    if (f->kind == IK_IDENTIFIER)
        len = iggy_identifier_encode(at, room);
    else if (f->kind == IK_CONSUMER)
        len = iggy_consumer_encode(at, e->version, room);
    else if (f->kind == IK_PARTITION)
        len = iggy_maybe_partition_encode(at, room);
    else if (f->kind == IK_PARTITIONING)
        len = iggy_partitioning_encode(at, room);
    else
        len = iggy_polling_encode(at, room);
    return len > 0 ? put(e, room, len) : ST_INVALID;
}

/* The part is encoded twice, the first time only to learn its length. */
static enum status encode_sized(struct encoder *e, const struct iggy_field *f, const uint8_t *at) {
    struct encoder counter = {.version = e->version};
    enum status st = encode_part(&counter, f->part(), at);
    if (!st)
        st = put_number(e, 4, counter.bytes);
    return st ? st : encode_part(e, f->part(), at);
}

static enum status encode_list(struct encoder *e, const struct iggy_field *f, const uint8_t *msg) {
    const struct iggy_schema *part = f->part();
    const uint8_t *items;
    memcpy(&items, msg + f->offset, sizeof items);
    uint64_t count = number_load(msg + f->count_offset, 4);
    bool chain = f->kind == IK_CHAIN;
    enum status st = ST_OK;
    if (f->kind == IK_LIST || f->kind == IK_LIST8)
        st = f->kind == IK_LIST8 && count > UINT8_MAX ? ST_INVALID
                                                      : put_number(e, f->kind == IK_LIST8 ? 1 : 4, count);
    else if (f->kind == IK_TIMES && count != number_load(msg + f->times_offset, 4))
        st = ST_INVALID;
    for (size_t i = 0; !st && i < count; i++) {
        if (chain)
            st = put_number(e, 1, 1);
        if (!st)
            st = encode_part(e, part, items + i * part->size);
    }
    return st || !chain ? st : put_number(e, 1, 0);
}

static enum status encode_zeros(struct encoder *e, size_t count) {
    static const uint8_t zeros[8];
    assert(count <= sizeof zeros);
    return put(e, zeros, count);
}

static enum status encode_field(struct encoder *e, const struct iggy_field *f, const uint8_t *msg) {
    const void *at = msg + f->offset;
    uint64_t number;
    switch ((enum iggy_field_kind)f->kind) {
    case IK_U8:
    case IK_U16:
    case IK_U32:
    case IK_U64:
    case IK_F32:
        number = number_load(at, number_width(f->kind));
        return is_within(f, number) ? put_number(e, number_width(f->kind), number) : ST_INVALID;
    case IK_BOOL:
        return put_number(e, 1, *(const bool *)at);
    case IK_FOUND:
        return ST_OK;
    case IK_U128:
        return put(e, at, sizeof(struct iggy_u128));
    case IK_SECRET:
        return put(e, at, sizeof(struct iggy_secret));
    case IK_NAME8:
    case IK_TEXT8:
    case IK_TEXT32:
        return encode_text(e, f, at);
    case IK_BYTES8:
    case IK_BYTES32: {
        const struct bytes *b = at;
        return encode_bytes(e, f->kind == IK_BYTES8 ? 1 : 4, b->ptr, b->len);
    }
    case IK_REST:
        return encode_rest(e, at);
    case IK_IDENTIFIER:
    case IK_CONSUMER:
    case IK_PARTITION:
    case IK_PARTITIONING:
    case IK_POLLING:
        return encode_small(e, f, at);
    case IK_INLINE:
        return encode_part(e, f->part(), at);
    case IK_SIZED:
        return encode_sized(e, f, at);
    case IK_LIST:
    case IK_LIST8:
    case IK_TIMES:
    case IK_CHAIN:
    case IK_UNTIL_END:
        return encode_list(e, f, msg);
    case IK_ZEROS:
        return encode_zeros(e, f->zeros);
    }
    return ST_INVALID;
}

static enum status encode_part(struct encoder *e, const struct iggy_schema *s, const uint8_t *msg) {
    for (const struct iggy_field *f = s->fields, *end = f + s->field_count; f < end; f++) {
        if (!carries(f, e->version) || !is_wanted(f, msg))
            continue;
        if (f->kind == IK_FOUND && !*(const bool *)(msg + f->offset))
            return ST_OK;
        enum status st = encode_field(e, f, msg);
        if (st)
            return st;
    }
    return ST_OK;
}

enum status iggy_encode(const struct iggy_schema *s, uint32_t version, const void *msg, struct wbuf *out) {
    if (!iggy_version_is_known(version))
        return ST_UNSUPPORTED;
    struct encoder e = {.out = out, .version = version};
    return encode_part(&e, s, msg);
}
