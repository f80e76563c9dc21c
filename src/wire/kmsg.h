/*
 * Every Kafka message as a C struct, and the table that says how it looks on the wire at each version.
 *
 * The rows stand in wire/messages/, one .def file an API, in wire order. This header expands them to structs, kmsg.c
 * to tables, and wire/codec.c interprets the tables: a message is described once and adding one touches no C.
 *
 * How the rows read:
 *   GROUP(struct) rows END(struct)                an element of an array, or a struct within a message
 *   REQUEST(struct, KEY(n), VERSIONS(a, b), FLEXIBLE_FROM(v)) rows END(struct)
 *                                                 a body; from v on with compact lengths and tags, or NOT_FLEXIBLE
 *   RESPONSE(..)                                  the same
 *   FIELD(kind, name, versions, ..)               versions: ALL, FROM(a), BETWEEN(a, b), ONLY(a)
 *   ARRAY(group, name, versions, ..)              becomes struct group *name and int32_t name_count
 *   STRUCT(group, name, versions, ..)             becomes struct group *name
 *   TAGGED(tag, kind, ..), TAGGED_ARRAY(tag, group, ..), TAGGED_STRUCT(tag, group, ..)
 *                                                 in the tagged section; tags ascend within a group
 * and after the versions, as they apply:
 *   NULLABLE, NULLABLE_FROM(v)    null is allowed, wherever the field appears, or from v
 *   DEFAULT(value), DEFAULT_NULL  what a field is at versions that don't carry it; else 0, "", empty, all zero.
 *                                 A tagged field is left out when it has this value.
 * ALL in a group means: wherever the group itself appears. Names are Kafka's, in snake_case.
 *
 * Null is len -1 for strings and bytes, count -1 for lists and arrays, len -1 for slices, a NULL pointer for a struct.
 * A tagged struct that is NULL has its default and is left out.
 */
#ifndef WIRE_KMSG_H
#define WIRE_KMSG_H

#include "base/base.h"

struct int32s {
    int32_t *items;
    int32_t count; /* -1: null */
};

struct strs {
    struct str *items;
    int32_t count; /* -1: null */
};

/* Records that lie in several places, in order. */
struct slices {
    struct bytes *items;
    int32_t count;
    int64_t len; /* of all items together; -1: null */
};

/* C types: see C_BOOL and so on below. The output borrows RECORDS and SLICES and copies BYTES. */
enum field_kind {
    FK_BOOL,
    FK_INT8,
    FK_INT16,
    FK_INT32,
    FK_INT64,
    FK_UUID,
    FK_STRING,
    FK_BYTES,
    FK_RECORDS,
    FK_SLICES,
    FK_INT32S,
    FK_STRINGS,
    FK_ARRAY,
    FK_STRUCT,
};

struct versions {
    int16_t first, last;
};

struct schema;

struct field {
    const char *name;
    const struct schema *(*group)(void); /* of FK_ARRAY and FK_STRUCT; else NULL */
    int64_t absent;                      /* the default: a number, or a length or count (0 empty, -1 null) */
    struct versions on;                  /* versions that carry the field */
    int16_t null_from;                   /* null is allowed from this version on, if nullable */
    uint16_t offset, count_offset;       /* in the struct; count_offset of FK_ARRAY only */
    uint8_t kind;                        /* enum field_kind */
    bool nullable;
    int8_t tag; /* number in the tagged section; -1: an ordinary field */
};

struct schema {
    const char *name;
    const struct field *fields;
    uint16_t field_count, size; /* size: of the struct, bytes */
    int16_t api_key;            /* -1: a group */
    int16_t flexible_from;      /* -1: never; groups follow their message */
    struct versions versions;   /* what the table describes; of a group: all */
};

/* The body of a request or response of an API; NULL: the key is not in the tables. Any thread. */
const struct schema *kmsg_request(int16_t api_key);
const struct schema *kmsg_response(int16_t api_key);

#define C_BOOL    bool
#define C_INT8    int8_t
#define C_INT16   int16_t
#define C_INT32   int32_t
#define C_INT64   int64_t
#define C_UUID    struct uuid
#define C_STRING  struct str
#define C_BYTES   struct bytes
#define C_RECORDS struct bytes
#define C_SLICES  struct slices
#define C_INT32S  struct int32s
#define C_STRINGS struct strs

/* clang-format off: macros that balance only together */
/* Pass 1: the structs. */
#define GROUP(name)            struct name {
#define REQUEST(name, ...)     struct name {
#define RESPONSE(name, ...)    struct name {
#define FIELD(kind, name, ...) C_##kind name;
#define ARRAY(elem, name, ...) \
    struct elem *name;         \
    int32_t name##_count;
#define STRUCT(elem, name, ...)             struct elem *name;
#define TAGGED(tag, kind, name, ...)        FIELD(kind, name)
#define TAGGED_ARRAY(tag, elem, name, ...)  ARRAY(elem, name)
#define TAGGED_STRUCT(tag, elem, name, ...) STRUCT(elem, name)
#define END(name) \
    }             \
    ;
#include "wire/messages/all.def"
#include "wire/messages/undef.h"
/* clang-format on */

/* Pass 2: one function each that returns the table, as produce_req_schema(). Any thread. */
#define GROUP(name)         const struct schema *name##_schema(void);
#define REQUEST(name, ...)  GROUP(name)
#define RESPONSE(name, ...) GROUP(name)
#define FIELD(kind, name, ...)
#define ARRAY(elem, name, ...)
#define STRUCT(elem, name, ...)
#define TAGGED(tag, kind, name, ...)
#define TAGGED_ARRAY(tag, elem, name, ...)
#define TAGGED_STRUCT(tag, elem, name, ...)
#define END(name)
#include "wire/messages/all.def"
#include "wire/messages/undef.h"
#endif
