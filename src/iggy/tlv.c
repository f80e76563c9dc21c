#include "iggy/tlv.h"

#include "base/le.h"
#include "base/utf8.h"
#include "iggy/iggy.h"

#define FIELD_HEAD_BYTES 5 /* kind and length */

/* Of the kinds that have a fixed length. */
static const uint8_t kind_bytes[] = {
    [TLV_BOOL] = 1,  [TLV_I8] = 1,  [TLV_I16] = 2, [TLV_I32] = 4, [TLV_I64] = 8,
    [TLV_I128] = 16, [TLV_U8] = 1,  [TLV_U16] = 2, [TLV_U32] = 4, [TLV_U64] = 8,
    [TLV_U128] = 16, [TLV_F32] = 4, [TLV_F64] = 8,
};

static enum status field_read(struct bytes *at, uint8_t *kind_out, struct bytes *out) {
    if (at->len < FIELD_HEAD_BYTES)
        return ST_TRUNCATED;
    uint8_t kind = at->ptr[0];
    uint32_t len = le_get32(at->ptr + 1);
    if (kind == 0)
        return ST_INVALID;
    if (len == 0 || len > TLV_FIELD_BYTES_MAX)
        return ST_BAD_LENGTH;
    if (at->len - FIELD_HEAD_BYTES < (int32_t)len)
        return ST_TRUNCATED;
    *kind_out = kind;
    *out = (struct bytes){at->ptr + FIELD_HEAD_BYTES, (int32_t)len};
    *at = (struct bytes){out->ptr + len, at->len - FIELD_HEAD_BYTES - (int32_t)len};
    return ST_OK;
}

enum status tlv_next(struct bytes *at, struct tlv_entry *out) {
    if (at->len <= 0)
        return ST_NOT_FOUND;
    struct bytes left = *at;
    enum status st = field_read(&left, &out->key_kind, &out->key);
    if (!st)
        st = field_read(&left, &out->value_kind, &out->value);
    if (!st)
        *at = left;
    return st;
}

enum status tlv_check(struct bytes block) {
    struct tlv_entry e;
    enum status st;
    do
        st = tlv_next(&block, &e);
    while (!st);
    return st == ST_NOT_FOUND ? ST_OK : st;
}

bool tlv_is_typed(const struct tlv_entry *e) {
    if (e->value_kind == TLV_RAW)
        return true;
    if (e->value_kind == TLV_STRING)
        return utf8_is_valid(e->value.ptr, (size_t)e->value.len);
    if (e->value_kind >= COUNT_OF(kind_bytes) || e->value.len != kind_bytes[e->value_kind])
        return false;
    return e->value_kind != TLV_BOOL || e->value.ptr[0] <= 1;
}

enum status tlv_check_options(struct bytes block) {
    struct str keys[IGGY_OPTIONS_MAX];
    uint32_t count = 0;
    struct tlv_entry e;
    enum status st;
    if (block.len > IGGY_OPTIONS_BYTES_MAX)
        return ST_TOO_BIG;
    while ((st = tlv_next(&block, &e)) == ST_OK) {
        struct str key = {(const char *)e.key.ptr, e.key.len};
        if (count == IGGY_OPTIONS_MAX)
            return ST_TOO_BIG;
        if (e.key_kind != TLV_STRING || !utf8_is_valid(key.ptr, (size_t)key.len) || !tlv_is_typed(&e))
            return ST_INVALID;
        for (uint32_t i = 0; i < count; i++)
            if (str_equal(keys[i], key))
                return ST_INVALID;
        keys[count++] = key;
    }
    return st == ST_NOT_FOUND ? ST_OK : st;
}

bool tlv_uint(const struct tlv_entry *e, uint64_t *out) {
    switch (e->value_kind) {
    case TLV_BOOL:
    case TLV_U8:
    case TLV_U16:
    case TLV_U32:
    case TLV_U64:
        if (!tlv_is_typed(e))
            return false;
        *out = le_get(e->value.ptr, (unsigned)e->value.len);
        return true;
    default:
        return false;
    }
}

bool tlv_find(struct bytes block, struct str key, struct tlv_entry *out) {
    struct tlv_entry e;
    bool found = false;
    while (tlv_next(&block, &e) == ST_OK) {
        if (e.key_kind != TLV_STRING || !str_equal((struct str){(const char *)e.key.ptr, e.key.len}, key))
            continue;
        *out = e;
        found = true;
    }
    return found;
}

static uint8_t *field_write(uint8_t *at, uint8_t kind, struct bytes field) {
    at[0] = kind;
    le_set32(at + 1, (uint32_t)field.len);
    memcpy(at + FIELD_HEAD_BYTES, field.ptr, (size_t)field.len);
    return at + FIELD_HEAD_BYTES + field.len;
}

uint8_t *tlv_write(uint8_t *at, const struct tlv_entry *e) {
    return field_write(field_write(at, e->key_kind, e->key), e->value_kind, e->value);
}
