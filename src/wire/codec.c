/*
 * The interpreter of the tables in kmsg.c. Two walks over a schema's rows, one reading, one writing.
 * A row's struct member is reached by its offset; everything is copied in and out with memcpy, whatever its alignment.
 */
#include "wire/codec.h"

#include <endian.h>

#define STRING_BYTES_MAX 32767

static bool carries(const struct field *f, int16_t version) {
    return f->on.first <= version && version <= f->on.last;
}

static bool allows_null(const struct field *f, int16_t version) {
    return f->nullable && version >= f->null_from;
}

bool kmsg_is_flexible(const struct schema *s, int16_t version) {
    return s->flexible_from >= 0 && version >= s->flexible_from;
}

/* ---- defaults ---- */

static void field_set_default(const struct field *f, uint8_t *out) {
    uint8_t *at = out + f->offset;
    int16_t i16 = (int16_t)f->absent;
    int32_t count = (int32_t)f->absent;
    void *none = NULL;
    switch ((enum field_kind)f->kind) {
    case FK_BOOL:
        *(bool *)at = f->absent != 0;
        break;
    case FK_INT8:
        *(int8_t *)at = (int8_t)f->absent;
        break;
    case FK_INT16:
        memcpy(at, &i16, sizeof i16);
        break;
    case FK_INT32:
        memcpy(at, &count, sizeof count);
        break;
    case FK_INT64:
        memcpy(at, &f->absent, sizeof f->absent);
        break;
    case FK_UUID:
        memset(at, 0, sizeof(struct uuid));
        break;
    case FK_STRING:
        *(struct str *)(void *)at = (struct str){NULL, count};
        break;
    case FK_BYTES:
    case FK_RECORDS:
        *(struct bytes *)(void *)at = (struct bytes){NULL, count};
        break;
    case FK_SLICES:
        *(struct slices *)(void *)at = (struct slices){NULL, 0, f->absent};
        break;
    case FK_INT32S:
        *(struct int32s *)(void *)at = (struct int32s){NULL, count};
        break;
    case FK_STRINGS:
        *(struct strs *)(void *)at = (struct strs){NULL, count};
        break;
    case FK_ARRAY:
        memcpy(at, &none, sizeof none);
        memcpy(out + f->count_offset, &count, sizeof count);
        break;
    case FK_STRUCT:
        memcpy(at, &none, sizeof none);
        break;
    }
}

void kmsg_init(const struct schema *s, void *out) {
    memset(out, 0, s->size);
    for (uint16_t i = 0; i < s->field_count; i++)
        if (s->fields[i].absent != 0)
            field_set_default(&s->fields[i], out);
}

void *kmsg_take(const struct schema *s, struct arena *a, int32_t count) {
    assert(count >= 0);
    uint8_t *items = arena_take_many(a, (size_t)count, s->size);
    for (int32_t i = 0; items && i < count; i++)
        kmsg_init(s, items + (size_t)i * s->size);
    return items;
}

/* ---- decode ---- */

struct decoder {
    struct rbuf in;
    struct arena *arena;
    const struct decode_limits *limits;
    int16_t version;
    bool flexible;
};

/* A length or count; -1: null. width: its bytes where not flexible. */
static enum status decode_len(struct decoder *d, const struct field *f, unsigned width, int32_t *out) {
    int64_t len;
    if (d->flexible) {
        uint32_t u;
        enum status st = rbuf_uvarint(&d->in, &u);
        if (st)
            return st;
        len = (int64_t)u - 1;
    } else {
        uint64_t u;
        enum status st = rbuf_be(&d->in, width, &u);
        if (st)
            return st;
        len = width == 2 ? (int16_t)u : (int32_t)u;
    }
    if (len > INT32_MAX || len < -1 || (len == -1 && !allows_null(f, d->version)))
        return ST_BAD_LENGTH;
    *out = (int32_t)len;
    return ST_OK;
}

/* A count whose elements take element_bytes or more each: refused before anything is taken for them (B-41, B-46). */
static enum status decode_count(struct decoder *d, const struct field *f, size_t element_bytes,
                                int32_t *out) {
    enum status st = decode_len(d, f, 4, out);
    if (st || *out <= 0)
        return st;
    if (*out > d->limits->elements_max || (size_t)*out > rbuf_left(&d->in) / element_bytes)
        return ST_BAD_LENGTH;
    return ST_OK;
}

static enum status decode_view(struct decoder *d, int32_t len, const uint8_t **out) {
    if (len < 0)
        return ST_OK;
    if ((size_t)len > rbuf_left(&d->in))
        return ST_TRUNCATED;
    *out = d->in.at;
    d->in.at += len;
    return ST_OK;
}

static enum status decode_string(struct decoder *d, const struct field *f, struct str *out) {
    const uint8_t *view = NULL;
    enum status st = decode_len(d, f, 2, &out->len);
    if (!st && out->len > d->limits->string_max)
        st = ST_BAD_LENGTH;
    if (!st)
        st = decode_view(d, out->len, &view);
    out->ptr = (const char *)view;
    return st;
}

static enum status decode_bytes(struct decoder *d, const struct field *f, struct bytes *out) {
    out->ptr = NULL;
    enum status st = decode_len(d, f, 4, &out->len);
    return st ? st : decode_view(d, out->len, &out->ptr);
}

static enum status decode_slices(struct decoder *d, const struct field *f, struct slices *out) {
    struct bytes all;
    enum status st = decode_bytes(d, f, &all);
    if (st)
        return st;
    out->len = all.len;
    if (all.len <= 0)
        return ST_OK;
    out->items = arena_take_array(d->arena, struct bytes, 1);
    if (!out->items)
        return ST_NO_MEMORY;
    out->items[0] = all;
    out->count = 1;
    return ST_OK;
}

static enum status decode_int(struct decoder *d, unsigned width, uint8_t *at) {
    if (rbuf_left(&d->in) < width)
        return ST_TRUNCATED;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    switch (width) {
    case 1:
        *at = *d->in.at;
        break;
    case 2:
        memcpy(&u16, d->in.at, 2);
        u16 = be16toh(u16);
        memcpy(at, &u16, 2);
        break;
    case 4:
        memcpy(&u32, d->in.at, 4);
        u32 = be32toh(u32);
        memcpy(at, &u32, 4);
        break;
    default:
        memcpy(&u64, d->in.at, 8);
        u64 = be64toh(u64);
        memcpy(at, &u64, 8);
    }
    d->in.at += width;
    return ST_OK;
}

static enum status decode_int32s(struct decoder *d, const struct field *f, struct int32s *out) {
    enum status st = decode_count(d, f, sizeof(int32_t), &out->count);
    if (st || out->count <= 0)
        return st;
    out->items = arena_take_array(d->arena, int32_t, out->count);
    if (!out->items)
        return ST_NO_MEMORY;
    for (int32_t i = 0; !st && i < out->count; i++)
        st = decode_int(d, sizeof(int32_t), (uint8_t *)&out->items[i]);
    return st;
}

static enum status decode_strings(struct decoder *d, const struct field *f, struct strs *out) {
    static const struct field element; /* never null */
    enum status st = decode_count(d, f, d->flexible ? 1 : 2, &out->count);
    if (st || out->count <= 0)
        return st;
    out->items = arena_take_array(d->arena, struct str, out->count);
    if (!out->items)
        return ST_NO_MEMORY;
    for (int32_t i = 0; i < out->count; i++)
        if ((st = decode_string(d, &element, &out->items[i])))
            return st;
    return ST_OK;
}

static enum status decode_group(struct decoder *d, const struct schema *s, uint8_t *out);

static enum status decode_array(struct decoder *d, const struct field *f, uint8_t *out) {
    const struct schema *group = f->group();
    int32_t count;
    enum status st = decode_count(d, f, 1, &count);
    if (st)
        return st;
    memcpy(out + f->count_offset, &count, sizeof count);
    if (count <= 0)
        return ST_OK;
    uint8_t *items = arena_take_many(d->arena, (size_t)count, group->size);
    if (!items)
        return ST_NO_MEMORY;
    memcpy(out + f->offset, &items, sizeof items);
    for (int32_t i = 0; i < count; i++)
        if ((st = decode_group(d, group, items + (size_t)i * group->size)))
            return st;
    return ST_OK;
}

static enum status decode_struct(struct decoder *d, const struct field *f, uint8_t *out) {
    if (f->nullable) {
        uint64_t marker;
        enum status st = rbuf_be(&d->in, 1, &marker);
        if (st)
            return st;
        if ((int8_t)marker < 0)
            return ST_OK;
    }
    const struct schema *group = f->group();
    uint8_t *item = arena_take(d->arena, group->size);
    if (!item)
        return ST_NO_MEMORY;
    memcpy(out + f->offset, &item, sizeof item);
    return decode_group(d, group, item);
}

/* out is zeroed where f lies. */
static enum status decode_field(struct decoder *d, const struct field *f, uint8_t *out) {
    uint8_t *at = out + f->offset;
    switch ((enum field_kind)f->kind) {
    case FK_BOOL: {
        enum status st = decode_int(d, 1, at);
        if (!st && *at > 1)
            *at = 1; /* any other byte in a C bool is undefined */
        return st;
    }
    case FK_INT8:
        return decode_int(d, 1, at);
    case FK_INT16:
        return decode_int(d, 2, at);
    case FK_INT32:
        return decode_int(d, 4, at);
    case FK_INT64:
        return decode_int(d, 8, at);
    case FK_UUID:
        if (rbuf_left(&d->in) < sizeof(struct uuid))
            return ST_TRUNCATED;
        memcpy(at, d->in.at, sizeof(struct uuid));
        d->in.at += sizeof(struct uuid);
        return ST_OK;
    case FK_STRING:
        return decode_string(d, f, (struct str *)(void *)at);
    case FK_BYTES:
    case FK_RECORDS:
        return decode_bytes(d, f, (struct bytes *)(void *)at);
    case FK_SLICES:
        return decode_slices(d, f, (struct slices *)(void *)at);
    case FK_INT32S:
        return decode_int32s(d, f, (struct int32s *)(void *)at);
    case FK_STRINGS:
        return decode_strings(d, f, (struct strs *)(void *)at);
    case FK_ARRAY:
        return decode_array(d, f, out);
    case FK_STRUCT:
        return decode_struct(d, f, out);
    }
    return ST_BAD_LENGTH;
}

static const struct field *schema_tag(const struct schema *s, int16_t version, uint32_t tag) {
    for (uint16_t i = 0; i < s->field_count; i++) {
        const struct field *f = &s->fields[i];
        if (f->tag >= 0 && (uint32_t)f->tag == tag && carries(f, version))
            return f;
    }
    return NULL;
}

/* One tagged field; what f reads must be all there is. A second one with the same tag replaces the first. */
static enum status decode_tag(struct decoder *d, const struct schema *s, uint8_t *out) {
    uint32_t tag, size;
    enum status st = rbuf_uvarint(&d->in, &tag);
    if (!st)
        st = rbuf_uvarint(&d->in, &size);
    if (st)
        return st;
    if (size > rbuf_left(&d->in))
        return ST_TRUNCATED;
    const struct field *f = schema_tag(s, d->version, tag);
    if (!f) {
        d->in.at += size; /* B-44 */
        return ST_OK;
    }
    const uint8_t *end = d->in.end;
    d->in.end = d->in.at + size;
    st = decode_field(d, f, out);
    if (!st && d->in.at != d->in.end)
        st = ST_BAD_LENGTH;
    d->in.end = end;
    return st;
}

static enum status decode_tags(struct decoder *d, const struct schema *s, uint8_t *out) {
    uint32_t count;
    enum status st = rbuf_uvarint(&d->in, &count);
    for (uint32_t i = 0; !st && i < count; i++)
        st = decode_tag(d, s, out);
    return st;
}

/* out is zeroed */
static enum status decode_group(struct decoder *d, const struct schema *s, uint8_t *out) {
    for (const struct field *f = s->fields, *end = f + s->field_count; f < end; f++) {
        if (f->tag < 0 && carries(f, d->version)) {
            enum status st = decode_field(d, f, out);
            if (st)
                return st;
        } else if (f->absent != 0) {
            field_set_default(f, out);
        }
    }
    return d->flexible ? decode_tags(d, s, out) : ST_OK;
}

enum status kmsg_decode(const struct schema *s, int16_t version, const struct decode_limits *limits,
                        struct rbuf *in, struct arena *a, void *out) {
    if (version < s->versions.first || version > s->versions.last)
        return ST_UNSUPPORTED;
    struct decoder d = {.in = *in,
                        .arena = a,
                        .limits = limits,
                        .version = version,
                        .flexible = kmsg_is_flexible(s, version)};
    memset(out, 0, s->size);
    enum status st = decode_group(&d, s, out);
    in->at = d.in.at;
    return st;
}

/* ---- encode ---- */

#define ROOM_BYTES ((size_t)512)

/* Small writes gather in room and go to the output in one piece. */
struct encoder {
    struct wbuf *out; /* NULL: only `bytes` is wanted */
    size_t bytes;     /* counted while out is NULL */
    uint32_t used;    /* of room */
    int16_t version;
    bool flexible;
    uint8_t *room; /* ROOM_BYTES */
};

static enum status encoder_flush(struct encoder *e) {
    size_t used = e->used;
    e->used = 0;
    return used > 0 ? wbuf_put(e->out, e->room, used) : ST_OK;
}

static enum status put(struct encoder *e, const void *ptr, size_t len) {
    if (!e->out) {
        e->bytes += len;
        return ST_OK;
    }
    if (len > ROOM_BYTES - e->used) {
        enum status st = encoder_flush(e);
        if (st)
            return st;
        if (len > ROOM_BYTES)
            return wbuf_put(e->out, ptr, len);
    }
    if (len > 0)
        memcpy(e->room + e->used, ptr, len);
    e->used += (uint32_t)len;
    return ST_OK;
}

static enum status put_borrowed(struct encoder *e, const void *ptr, size_t len) {
    if (!e->out) {
        e->bytes += len;
        return ST_OK;
    }
    enum status st = encoder_flush(e);
    return st ? st : wbuf_borrow(e->out, ptr, len);
}

/* Eight bytes are stored, of which width count: one branch and one store whatever the width. */
static enum status put_be(struct encoder *e, uint64_t value, unsigned width) {
    if (!e->out) {
        e->bytes += width;
        return ST_OK;
    }
    if (ROOM_BYTES - e->used < 8) {
        enum status st = encoder_flush(e);
        if (st)
            return st;
    }
    uint64_t be = htobe64(value << (64 - 8 * width));
    memcpy(e->room + e->used, &be, 8);
    e->used += width;
    return ST_OK;
}

static enum status put_uvarint(struct encoder *e, uint32_t value) {
    for (; value >= 0x80; value >>= 7) {
        enum status st = put_be(e, (value & 0x7f) | 0x80, 1);
        if (st)
            return st;
    }
    return put_be(e, value, 1);
}

static enum status put_len(struct encoder *e, const struct field *f, unsigned width, int64_t len) {
    if (len < -1 || len > INT32_MAX || (len == -1 && !allows_null(f, e->version)))
        return ST_BAD_LENGTH;
    return e->flexible ? put_uvarint(e, (uint32_t)(len + 1)) : put_be(e, (uint64_t)len, width);
}

static enum status encode_string(struct encoder *e, const struct field *f, const struct str *s) {
    if (s->len > STRING_BYTES_MAX)
        return ST_BAD_LENGTH;
    enum status st = put_len(e, f, 2, s->len);
    return st || s->len <= 0 ? st : put(e, s->ptr, (size_t)s->len);
}

static enum status encode_bytes(struct encoder *e, const struct field *f, const struct bytes *b) {
    enum status st = put_len(e, f, 4, b->len);
    if (st || b->len <= 0)
        return st;
    return f->kind == FK_RECORDS ? put_borrowed(e, b->ptr, (size_t)b->len) : put(e, b->ptr, (size_t)b->len);
}

static enum status encode_slices(struct encoder *e, const struct field *f, const struct slices *s) {
    enum status st = put_len(e, f, 4, s->len);
    if (st || s->len <= 0)
        return st;
    int64_t left = s->len;
    for (int32_t i = 0; i < s->count; i++) {
        if (s->items[i].len <= 0)
            continue;
        left -= s->items[i].len;
        if ((st = put_borrowed(e, s->items[i].ptr, (size_t)s->items[i].len)))
            return st;
    }
    return left == 0 ? ST_OK : ST_BAD_LENGTH;
}

static enum status encode_int32s(struct encoder *e, const struct field *f, const struct int32s *l) {
    enum status st = put_len(e, f, 4, l->count);
    for (int32_t i = 0; !st && i < l->count; i++)
        st = put_be(e, (uint64_t)l->items[i], 4);
    return st;
}

static enum status encode_strings(struct encoder *e, const struct field *f, const struct strs *l) {
    static const struct field element; /* never null */
    enum status st = put_len(e, f, 4, l->count);
    for (int32_t i = 0; !st && i < l->count; i++)
        st = encode_string(e, &element, &l->items[i]);
    return st;
}

static enum status encode_group(struct encoder *e, const struct schema *s, const uint8_t *msg);

static enum status encode_array(struct encoder *e, const struct field *f, const uint8_t *msg) {
    const struct schema *group = f->group();
    const uint8_t *items;
    int32_t count;
    memcpy(&items, msg + f->offset, sizeof items);
    memcpy(&count, msg + f->count_offset, sizeof count);
    enum status st = put_len(e, f, 4, count);
    for (int32_t i = 0; !st && i < count; i++)
        st = encode_group(e, group, items + (size_t)i * group->size);
    return st;
}

static enum status encode_struct(struct encoder *e, const struct field *f, const uint8_t *msg) {
    const uint8_t *item;
    memcpy(&item, msg + f->offset, sizeof item);
    if (!item && !allows_null(f, e->version))
        return ST_BAD_LENGTH;
    if (f->nullable) {
        enum status st = put_be(e, item ? 1 : 0xff, 1);
        if (st || !item)
            return st;
    }
    return encode_group(e, f->group(), item);
}

static uint64_t load(const uint8_t *at, unsigned width) {
    int16_t i16;
    int32_t i32;
    uint64_t u;
    switch (width) {
    case 1:
        return *at;
    case 2:
        memcpy(&i16, at, 2);
        return (uint64_t)i16;
    case 4:
        memcpy(&i32, at, 4);
        return (uint64_t)i32;
    default:
        memcpy(&u, at, 8);
        return u;
    }
}

static enum status encode_field(struct encoder *e, const struct field *f, const uint8_t *msg) {
    const uint8_t *at = msg + f->offset;
    switch ((enum field_kind)f->kind) {
    case FK_BOOL:
    case FK_INT8:
        return put_be(e, load(at, 1), 1);
    case FK_INT16:
        return put_be(e, load(at, 2), 2);
    case FK_INT32:
        return put_be(e, load(at, 4), 4);
    case FK_INT64:
        return put_be(e, load(at, 8), 8);
    case FK_UUID:
        return put(e, at, sizeof(struct uuid));
    case FK_STRING:
        return encode_string(e, f, (const struct str *)(const void *)at);
    case FK_BYTES:
    case FK_RECORDS:
        return encode_bytes(e, f, (const struct bytes *)(const void *)at);
    case FK_SLICES:
        return encode_slices(e, f, (const struct slices *)(const void *)at);
    case FK_INT32S:
        return encode_int32s(e, f, (const struct int32s *)(const void *)at);
    case FK_STRINGS:
        return encode_strings(e, f, (const struct strs *)(const void *)at);
    case FK_ARRAY:
        return encode_array(e, f, msg);
    case FK_STRUCT:
        return encode_struct(e, f, msg);
    }
    return ST_BAD_LENGTH;
}

static bool field_is_default(const struct field *f, const uint8_t *msg) {
    const uint8_t *at = msg + f->offset;
    switch ((enum field_kind)f->kind) {
    case FK_BOOL:
        return *at == (f->absent != 0);
    case FK_INT8:
        return *(const int8_t *)at == f->absent;
    case FK_INT16:
        return (int64_t)load(at, 2) == f->absent;
    case FK_INT32:
        return (int64_t)load(at, 4) == f->absent;
    case FK_INT64:
        return (int64_t)load(at, 8) == f->absent;
    case FK_UUID:
        return uuid_is_zero((const struct uuid *)at);
    case FK_STRING:
        return ((const struct str *)(const void *)at)->len == f->absent;
    case FK_BYTES:
    case FK_RECORDS:
        return ((const struct bytes *)(const void *)at)->len == f->absent;
    case FK_SLICES:
        return ((const struct slices *)(const void *)at)->len == f->absent;
    case FK_INT32S:
        return ((const struct int32s *)(const void *)at)->count == f->absent;
    case FK_STRINGS:
        return ((const struct strs *)(const void *)at)->count == f->absent;
    case FK_ARRAY:
        return (int64_t)load(msg + f->count_offset, 4) == f->absent;
    case FK_STRUCT:
        break;
    }
    const struct schema *group = f->group();
    const uint8_t *item;
    memcpy(&item, at, sizeof item);
    for (uint16_t i = 0; item && i < group->field_count; i++)
        if (!field_is_default(&group->fields[i], item))
            return false;
    return true;
}

/* Tag, size and content; the content is encoded twice, the first time only to learn its size. */
static enum status encode_tag(struct encoder *e, const struct field *f, const uint8_t *msg) {
    struct encoder counter = {.version = e->version, .flexible = e->flexible};
    enum status st = encode_field(&counter, f, msg);
    if (!st && counter.bytes > INT32_MAX)
        st = ST_BAD_LENGTH;
    if (!st)
        st = put_uvarint(e, (uint32_t)f->tag);
    if (!st)
        st = put_uvarint(e, (uint32_t)counter.bytes);
    return st ? st : encode_field(e, f, msg);
}

static bool has_tag(const struct encoder *e, const struct field *f, const uint8_t *msg) {
    return f->tag >= 0 && carries(f, e->version) && !field_is_default(f, msg);
}

static enum status encode_tags(struct encoder *e, const struct schema *s, const uint8_t *msg) {
    uint32_t count = 0;
    for (uint16_t i = 0; i < s->field_count; i++)
        count += has_tag(e, &s->fields[i], msg);
    enum status st = put_uvarint(e, count);
    for (uint16_t i = 0; !st && count > 0 && i < s->field_count; i++)
        if (has_tag(e, &s->fields[i], msg))
            st = encode_tag(e, &s->fields[i], msg);
    return st;
}

static enum status encode_group(struct encoder *e, const struct schema *s, const uint8_t *msg) {
    bool has_tags = false;
    for (const struct field *f = s->fields, *end = f + s->field_count; f < end; f++) {
        if (f->tag >= 0) {
            has_tags = true;
        } else if (carries(f, e->version)) {
            enum status st = encode_field(e, f, msg);
            if (st)
                return st;
        }
    }
    if (!e->flexible)
        return ST_OK;
    return has_tags ? encode_tags(e, s, msg) : put_be(e, 0, 1);
}

enum status kmsg_encode(const struct schema *s, int16_t version, const void *msg, struct wbuf *out) {
    if (version < s->versions.first || version > s->versions.last)
        return ST_UNSUPPORTED;
    uint8_t room[ROOM_BYTES];
    struct encoder e = {
        .out = out, .version = version, .flexible = kmsg_is_flexible(s, version), .room = room};
    enum status st = encode_group(&e, s, msg);
    return st ? st : encoder_flush(&e);
}
