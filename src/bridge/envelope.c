#include "bridge/envelope.h"

#include "base/le.h"

enum {
    KEY_PRESENT = 1,
    VALUE_PRESENT = 2,
};
#define BYTES_MIN        13 /* flags, two lengths, the count */
#define HEADER_BYTES_MIN 9

static int64_t len_of(int32_t len) {
    return len > 0 ? len : 0;
}

int64_t envelope_bytes(const struct record *r) {
    int64_t bytes = BYTES_MIN + len_of(r->key.len) + len_of(r->value.len);
    struct bytes at = r->headers;
    for (int32_t i = 0; i < r->headers_count; i++) {
        struct record_header h;
        if (record_header_next(&at, &h))
            break;
        bytes += HEADER_BYTES_MIN + len_of(h.key.len) + len_of(h.value.len);
    }
    return bytes;
}

static uint8_t *field_write(uint8_t *at, const void *ptr, int32_t len) {
    le_set32(at, (uint32_t)len_of(len));
    at += 4;
    if (len <= 0)
        return at;
    memcpy(at, ptr, (size_t)len);
    return at + len;
}

uint8_t *envelope_write(uint8_t *at, const struct record *r) {
    *at++ = (uint8_t)((r->key.len >= 0 ? KEY_PRESENT : 0) | (r->value.len >= 0 ? VALUE_PRESENT : 0));
    at = field_write(at, r->key.ptr, r->key.len);
    at = field_write(at, r->value.ptr, r->value.len);
    le_set32(at, (uint32_t)r->headers_count);
    at += 4;
    struct bytes left = r->headers;
    for (int32_t i = 0; i < r->headers_count; i++) {
        struct record_header h;
        if (record_header_next(&left, &h))
            break;
        at = field_write(at, h.key.ptr, h.key.len);
        *at++ = h.value.len >= 0;
        at = field_write(at, h.value.ptr, h.value.len);
    }
    return at;
}

/* ---- read: false where the bytes end too early, or say what can't be ---- */

static bool u8_read(struct bytes *in, uint8_t *out) {
    if (in->len < 1)
        return false;
    *out = in->ptr[0];
    *in = (struct bytes){in->ptr + 1, in->len - 1};
    return true;
}

static bool u32_read(struct bytes *in, uint32_t *out) {
    if (in->len < 4)
        return false;
    *out = le_get32(in->ptr);
    *in = (struct bytes){in->ptr + 4, in->len - 4};
    return true;
}

/* A length and as many bytes; not present: null, and the length must be 0. */
static bool field_read(struct bytes *in, bool present, struct bytes *out) {
    uint32_t len;
    if (!u32_read(in, &len) || len > (uint32_t)in->len || (!present && len > 0))
        return false;
    *out = present ? (struct bytes){in->ptr, (int32_t)len} : BYTES_NULL;
    *in = (struct bytes){in->ptr + len, in->len - (int32_t)len};
    return true;
}

static bool header_read(struct bytes *in, struct record_header *out) {
    struct bytes name;
    uint8_t present;
    if (!field_read(in, true, &name) || !u8_read(in, &present) || present > 1)
        return false;
    out->key = (struct str){(const char *)name.ptr, name.len};
    return field_read(in, present, &out->value);
}

enum status envelope_read(struct bytes payload, struct envelope *out) {
    struct bytes in = payload;
    uint8_t flags;
    if (!u8_read(&in, &flags) || flags > (KEY_PRESENT | VALUE_PRESENT))
        return ST_BAD_RECORD;
    if (!field_read(&in, flags & KEY_PRESENT, &out->key) ||
        !field_read(&in, flags & VALUE_PRESENT, &out->value))
        return ST_BAD_RECORD;
    if (!u32_read(&in, &out->headers_count) || out->headers_count > (uint32_t)in.len / HEADER_BYTES_MIN)
        return ST_BAD_RECORD;
    out->headers = in;
    for (uint32_t i = 0; i < out->headers_count; i++) {
        struct record_header h;
        if (!header_read(&in, &h))
            return ST_BAD_RECORD;
    }
    return in.len == 0 ? ST_OK : ST_BAD_RECORD;
}

void envelope_header_next(struct bytes *at, struct record_header *out) {
    *out = (struct record_header){{"", 0}, BYTES_NULL};
    bool read = header_read(at, out);
    assert(read);
    (void)read;
}
