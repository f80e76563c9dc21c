#include "iggy/identifier.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/le.h"
#include "base/utf8.h"

static bool name_is_valid(struct str s) {
    return s.len >= 1 && s.len <= IGGY_NAME_BYTES_MAX && utf8_is_valid(s.ptr, (size_t)s.len);
}

/* ---- decode ---- */

/* `u8 kind, u8 len, value`: the kind, and the value as a view. */
static enum status field_decode(struct rbuf *in, uint8_t *kind, struct bytes *value) {
    if (rbuf_left(in) < 2 || rbuf_left(in) - 2 < in->at[1])
        return ST_TRUNCATED;
    *kind = in->at[0];
    *value = (struct bytes){in->at + 2, in->at[1]};
    in->at += 2 + value->len;
    return ST_OK;
}

enum status iggy_identifier_decode(struct rbuf *in, struct iggy_identifier *out) {
    struct bytes value;
    uint8_t kind;
    enum status st = field_decode(in, &kind, &value);
    if (st)
        return st;
    *out = (struct iggy_identifier){.kind = kind};
    if (kind == IGGY_BY_ID && value.len == 4) {
        out->id = le_get32(value.ptr);
        return ST_OK;
    }
    out->name = (struct str){(const char *)value.ptr, value.len};
    return kind == IGGY_BY_NAME && name_is_valid(out->name) ? ST_OK : ST_INVALID;
}

static bool consumer_kind_is_valid(uint8_t kind, uint32_t version) {
    return kind >= IGGY_CONSUMER &&
           kind <= (version >= IGGY_0_12_0 ? IGGY_EXTERNAL_GROUP : IGGY_CONSUMER_GROUP);
}

enum status iggy_consumer_decode(struct rbuf *in, uint32_t version, struct iggy_consumer *out) {
    if (rbuf_left(in) < 1)
        return ST_TRUNCATED;
    out->kind = *in->at++;
    enum status st = iggy_identifier_decode(in, &out->id);
    return st || consumer_kind_is_valid(out->kind, version) ? st : ST_INVALID;
}

enum status iggy_maybe_partition_decode(struct rbuf *in, struct iggy_maybe_partition *out) {
    if (rbuf_left(in) < 5)
        return ST_TRUNCATED;
    uint8_t flag = in->at[0];
    *out = (struct iggy_maybe_partition){.present = flag == 1, .id = flag == 1 ? le_get32(in->at + 1) : 0};
    in->at += 5;
    return flag <= 1 ? ST_OK : ST_INVALID;
}

enum status iggy_partitioning_decode(struct rbuf *in, struct iggy_partitioning *out) {
    struct bytes value;
    uint8_t kind;
    enum status st = field_decode(in, &kind, &value);
    if (st)
        return st;
    *out = (struct iggy_partitioning){.kind = kind};
    switch (kind) {
    case IGGY_BALANCED:
        return value.len == 0 ? ST_OK : ST_INVALID;
    case IGGY_PARTITION_ID:
        if (value.len != 4)
            return ST_INVALID;
        out->partition_id = le_get32(value.ptr);
        return ST_OK;
    case IGGY_MESSAGES_KEY:
        out->key = value;
        return value.len > 0 ? ST_OK : ST_INVALID;
    default:
        return ST_INVALID;
    }
}

enum status iggy_polling_decode(struct rbuf *in, struct iggy_polling *out) {
    if (rbuf_left(in) < 9)
        return ST_TRUNCATED;
    *out = (struct iggy_polling){.kind = in->at[0], .value = le_get64(in->at + 1)};
    in->at += 9;
    return out->kind >= IGGY_FROM_OFFSET && out->kind <= IGGY_FROM_NEXT ? ST_OK : ST_INVALID;
}

/* ---- encode ---- */

static size_t field_encode(uint8_t *out, uint8_t kind, const void *value, size_t len) {
    out[0] = kind;
    out[1] = (uint8_t)len;
    if (len > 0)
        memcpy(out + 2, value, len);
    return 2 + len;
}

static size_t number_encode(uint8_t *out, uint8_t kind, uint32_t value) {
    uint8_t le[4];
    le_set32(le, value);
    return field_encode(out, kind, le, sizeof le);
}

size_t iggy_identifier_encode(const struct iggy_identifier *id, uint8_t *out) {
    if (id->kind == IGGY_BY_ID)
        return number_encode(out, IGGY_BY_ID, id->id);
    if (id->kind != IGGY_BY_NAME || !name_is_valid(id->name))
        return 0;
    return field_encode(out, IGGY_BY_NAME, id->name.ptr, (size_t)id->name.len);
}

size_t iggy_consumer_encode(const struct iggy_consumer *c, uint32_t version, uint8_t *out) {
    if (!consumer_kind_is_valid(c->kind, version))
        return 0;
    out[0] = c->kind;
    size_t len = iggy_identifier_encode(&c->id, out + 1);
    return len > 0 ? 1 + len : 0;
}

size_t iggy_maybe_partition_encode(const struct iggy_maybe_partition *p, uint8_t *out) {
    out[0] = p->present;
    le_set32(out + 1, p->present ? p->id : 0);
    return 5;
}

size_t iggy_partitioning_encode(const struct iggy_partitioning *p, uint8_t *out) {
    switch (p->kind) {
    case IGGY_BALANCED:
        return field_encode(out, IGGY_BALANCED, NULL, 0);
    case IGGY_PARTITION_ID:
        return number_encode(out, IGGY_PARTITION_ID, p->partition_id);
    case IGGY_MESSAGES_KEY:
        if (p->key.len < 1 || p->key.len > UINT8_MAX)
            return 0;
        return field_encode(out, IGGY_MESSAGES_KEY, p->key.ptr, (size_t)p->key.len);
    default:
        return 0;
    }
}

size_t iggy_polling_encode(const struct iggy_polling *p, uint8_t *out) {
    if (p->kind < IGGY_FROM_OFFSET || p->kind > IGGY_FROM_NEXT)
        return 0;
    out[0] = p->kind;
    le_set64(out + 1, p->value);
    return 9;
}

/* ---- hashes ---- */

uint32_t iggy_key_partition(struct bytes key, uint32_t partitions_count) {
    return XXH32(key.ptr, (size_t)key.len, 0) % partitions_count;
}

uint32_t iggy_consumer_number(const struct iggy_identifier *id) {
    return id->kind == IGGY_BY_ID ? id->id : XXH32(id->name.ptr, (size_t)id->name.len, 0);
}
