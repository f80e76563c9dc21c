/*
 * Every Iggy body as a C struct, and the table that says how it looks on the wire in each protocol version.
 *
 * The rows stand in iggy/commands/, one .def file a noun, in wire order. This header expands them to structs,
 * message.c to tables, and iggy/codec.c interprets the tables: client and listener share one description.
 * Which command has which bodies: iggy/commands.def.
 *
 * How the rows read:
 *   MESSAGE(struct) rows END(struct)         a body or a part of one; the struct is iggy_ and its name
 *   FIELD(kind, name, versions, ..)          versions: ALL, SINCE(v), BEFORE(v)
 *   INLINE(part, name, versions, ..)         a part, here
 *   SIZED(part, name, versions, ..)          u32 length, then a part of that length
 *   LIST(part, name, versions, ..)           u32 count, then parts; struct part *name and uint32_t name_count
 *   LIST8(part, name, versions, ..)          the same with a u8 count
 *   TIMES(part, name, count, versions, ..)   as many parts as an earlier member says
 *   CHAIN(part, name, versions, ..)          a byte that says whether a part follows, before each one and at the end
 *   UNTIL_END(part, name, versions, ..)      parts to the end of the body
 *   ZEROS(n, versions, ..)                   n bytes, written as zero and not read
 * and after the versions, as they apply:
 *   WHEN(member, values)                     only there when an earlier one-byte member has one of values: BIT(1) | ..
 *   WITHIN(least, most)                      the only numbers that are valid
 */
#ifndef IGGY_MESSAGE_H
#define IGGY_MESSAGE_H

#include "base/base.h"
#include "iggy/identifier.h"
#include "iggy/iggy.h"

/* C types: see IC_U8 and so on below. Texts and bytes are views into the body, or borrowed by what is encoded. */
enum iggy_field_kind {
    IK_U8,
    IK_U16,
    IK_U32,
    IK_U64,
    IK_F32,
    IK_BOOL,  /* a byte; any but 0 is true */
    IK_FOUND, /* no byte at all: an empty body is false, and nothing follows */
    IK_U128,
    IK_SECRET,
    IK_NAME8,  /* u8 length, UTF-8 of 1..255 bytes */
    IK_TEXT8,  /* u8 length, anything */
    IK_TEXT32, /* u32 length, anything */
    IK_BYTES8,
    IK_BYTES32,
    IK_REST, /* bytes to the end of the body; borrowed by the output */
    IK_IDENTIFIER,
    IK_CONSUMER,
    IK_PARTITION, /* may be absent */
    IK_PARTITIONING,
    IK_POLLING,
    IK_INLINE,
    IK_SIZED,
    IK_LIST,
    IK_LIST8,
    IK_TIMES,
    IK_CHAIN,
    IK_UNTIL_END,
    IK_ZEROS,
};

struct iggy_versions {
    uint32_t first, last;
};

struct iggy_schema;

struct iggy_field {
    const char *name;
    const struct iggy_schema *(*part)(void); /* of the kinds that hold one; else NULL */
    uint64_t least, most;                    /* valid numbers; most 0: all */
    struct iggy_versions on;                 /* versions that carry the field */
    uint32_t when;                      /* bit n: there when the byte at when_offset is n; 0: always there */
    uint16_t offset, count_offset;      /* in the struct; count_offset: a list's own count */
    uint16_t when_offset, times_offset; /* times_offset: the count that IK_TIMES is told */
    uint16_t zeros;
    uint8_t kind; /* enum iggy_field_kind */
};

struct iggy_schema {
    const char *name;
    const struct iggy_field *fields;
    uint16_t field_count, size; /* size: of the struct, bytes */
};

#define IC_U8           uint8_t
#define IC_U16          uint16_t
#define IC_U32          uint32_t
#define IC_U64          uint64_t
#define IC_F32          float
#define IC_BOOL         bool
#define IC_FOUND        bool
#define IC_U128         struct iggy_u128
#define IC_SECRET       struct iggy_secret
#define IC_NAME8        struct str
#define IC_TEXT8        struct str
#define IC_TEXT32       struct str
#define IC_BYTES8       struct bytes
#define IC_BYTES32      struct bytes
#define IC_REST         struct bytes
#define IC_IDENTIFIER   struct iggy_identifier
#define IC_CONSUMER     struct iggy_consumer
#define IC_PARTITION    struct iggy_maybe_partition
#define IC_PARTITIONING struct iggy_partitioning
#define IC_POLLING      struct iggy_polling

/* clang-format off: macros that balance only together */
/* Pass 1: the structs. A body without any row has a byte, since C has no empty struct. */
#define MESSAGE(name)           struct iggy_##name {
#define FIELD(kind, name, ...)  IC_##kind name;
#define INLINE(part, name, ...) struct iggy_##part name;
#define SIZED(part, name, ...)  struct iggy_##part name;
#define LIST(part, name, ...) \
    struct iggy_##part *name; \
    uint32_t name##_count;
#define LIST8(part, name, ...)        LIST(part, name)
#define TIMES(part, name, count, ...) LIST(part, name)
#define CHAIN(part, name, ...)        LIST(part, name)
#define UNTIL_END(part, name, ...)    LIST(part, name)
#define ZEROS(n, ...)
#define END(name) \
    }             \
    ;
#include "iggy/commands/all.def"
#include "iggy/commands/undef.h"
/* clang-format on */

/* Pass 2: one function each that returns the table, as iggy_stream_schema(). Any thread. */
#define MESSAGE(name) const struct iggy_schema *iggy_##name##_schema(void);
#define FIELD(kind, name, ...)
#define INLINE(part, name, ...)
#define SIZED(part, name, ...)
#define LIST(part, name, ...)
#define LIST8(part, name, ...)
#define TIMES(part, name, count, ...)
#define CHAIN(part, name, ...)
#define UNTIL_END(part, name, ...)
#define ZEROS(n, ...)
#define END(name)
#include "iggy/commands/all.def"
#include "iggy/commands/undef.h"

/* A body without bytes: of ping and logout, and the payload of most answers. */
const struct iggy_schema *iggy_nothing_schema(void);
#endif
