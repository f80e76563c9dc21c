/*
 * The user headers of a message, and the options of a stream, topic or user: entries of a key and a value, one behind the other to
 * the end of the block. No I/O, no allocation. Any thread.
 *
 *   entry = field (the key), field (the value) · field = u8 kind, u32 length (1..255), bytes; numbers are little-endian
 *
 * An empty or null value, and one of more than 255 bytes, can't be said.
 */
#ifndef IGGY_TLV_H
#define IGGY_TLV_H

#include "base/base.h"

/* Of a field. Higher ones than these may come from later versions, and pass; 0 is none. */
enum tlv_kind {
    TLV_RAW = 1,
    TLV_STRING = 2, /* UTF-8 */
    TLV_BOOL = 3,
    TLV_I8 = 4,
    TLV_I16 = 5,
    TLV_I32 = 6,
    TLV_I64 = 7,
    TLV_I128 = 8,
    TLV_U8 = 9,
    TLV_U16 = 10,
    TLV_U32 = 11,
    TLV_U64 = 12,
    TLV_U128 = 13,
    TLV_F32 = 14,
    TLV_F64 = 15,
};

#define TLV_FIELD_BYTES_MAX 255
#define TLV_ENTRY_OVERHEAD  10 /* what an entry takes beside the bytes of key and value */

struct tlv_entry {
    uint8_t key_kind, value_kind; /* enum tlv_kind, or one of a later version */
    struct bytes key, value;      /* 1..255 bytes each; borrowed */
};

/*
 * The entry at the start of *at, which moves behind it.
 * ST_NOT_FOUND   *at is empty: that was all
 * ST_TRUNCATED   it ends in the middle of an entry
 * ST_BAD_LENGTH  a length of 0, or over 255;  ST_INVALID: kind 0. After an error *at is where it was.
 * The length of a number is not checked against its kind (tlv_is_typed), nor a string for UTF-8: Iggy servers store what comes.
 */
enum status tlv_next(struct bytes *at, struct tlv_entry *out) MUST_USE;

/* Whether all of block is entries. Errors as tlv_next. */
enum status tlv_check(struct bytes block) MUST_USE;

/*
 * Whether block may be options: at most 100,000 bytes and 1024 entries, each key a string, none twice, each value typed.
 * ST_TOO_BIG: over one of the two limits; ST_INVALID: another kind of key, a key twice, or a value that isn't of its kind; else as tlv_next.
 */
enum status tlv_check_options(struct bytes block) MUST_USE;

/* Whether the value is of a kind known here, has the length of that kind, and is UTF-8 or 0 or 1 where it must be. */
bool tlv_is_typed(const struct tlv_entry *e);

/* The value of a bool or of an unsigned number of up to 64 bits. False: it is none. */
bool tlv_uint(const struct tlv_entry *e, uint64_t *out) MUST_USE;

/* The last entry with this string as its key, in a block that tlv_check passed. False: there is none. */
bool tlv_find(struct bytes block, struct str key, struct tlv_entry *out) MUST_USE;

/* What an entry takes. */
static inline size_t tlv_bytes(size_t key_len, size_t value_len) {
    return TLV_ENTRY_OVERHEAD + key_len + value_len;
}

/* Write an entry at `at`, where tlv_bytes of room must be; kinds and lengths must be legal. Returns the place behind it. */
uint8_t *tlv_write(uint8_t *at, const struct tlv_entry *e);
#endif
