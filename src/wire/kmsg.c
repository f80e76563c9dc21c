#include "wire/kmsg.h"

/* clang-format off: macros that balance only together */
#define ALL \
    { 0, INT16_MAX }
#define FROM(a) \
    { (a), INT16_MAX }
#define BETWEEN(a, b) \
    { (a), (b) }
#define ONLY(a) \
    { (a), (a) }
#define NULLABLE         .nullable = true
#define NULLABLE_FROM(v) .nullable = true, .null_from = (v)
#define DEFAULT(value)   .absent = (value)
#define DEFAULT_NULL     .absent = -1

#define KEY(n)           self_key = (n)
#define VERSIONS(a, b)   self_first = (a), self_last = (b)
#define FLEXIBLE_FROM(v) self_flexible_from = (v)
#define NOT_FLEXIBLE     self_flexible_from = -1

/*
 * Each message becomes a function that returns its table. Inside it `self` names the struct, so that a row can take
 * offsetof without repeating the message's name; a group is named by its function, which is a constant.
 */
#define TABLE(name_, ...)                       \
    const struct schema *name_##_schema(void) { \
        typedef struct name_ self;              \
        enum { __VA_ARGS__ };                   \
        static const char self_name[] = #name_; \
        static const struct field fields[] = {
#define GROUP(name)         TABLE(name, KEY(-1), VERSIONS(0, INT16_MAX), NOT_FLEXIBLE)
#define REQUEST(name, ...)  TABLE(name, __VA_ARGS__)
#define RESPONSE(name, ...) TABLE(name, __VA_ARGS__)

#define ROW(tag_, kind_, f, ...) \
    .name = #f, .tag = (tag_), .kind = FK_##kind_, .offset = offsetof(self, f), .on = __VA_ARGS__
#define TAGGED(tag, kind, f, ...) {ROW(tag, kind, f, __VA_ARGS__)},
#define TAGGED_ARRAY(tag, elem, f, ...) \
    {ROW(tag, ARRAY, f, __VA_ARGS__), .group = elem##_schema, .count_offset = offsetof(self, f##_count)},
#define TAGGED_STRUCT(tag, elem, f, ...) {ROW(tag, STRUCT, f, __VA_ARGS__), .group = elem##_schema},
#define FIELD(kind, f, ...)              TAGGED(-1, kind, f, __VA_ARGS__)
#define ARRAY(elem, f, ...)              TAGGED_ARRAY(-1, elem, f, __VA_ARGS__)
#define STRUCT(elem, f, ...)             TAGGED_STRUCT(-1, elem, f, __VA_ARGS__)

#define END(name_)                           \
    }                                        \
    ;                                        \
    static const struct schema schema = {    \
        .name = self_name,                   \
        .fields = fields,                    \
        .field_count = COUNT_OF(fields),     \
        .size = sizeof(self),                \
        .api_key = self_key,                 \
        .flexible_from = self_flexible_from, \
        .versions = {self_first, self_last}, \
    };                                       \
    return &schema;                          \
    }
#include "wire/messages/all.def"
#include "wire/messages/undef.h"
/* clang-format on */

/* The bodies by key: the rows of a message, and groups altogether, expand to nothing. */
#undef KEY
#define KEY(n) n
#define GROUP(name)
#define FIELD(...)
#define ARRAY(...)
#define STRUCT(...)
#define TAGGED(...)
#define TAGGED_ARRAY(...)
#define TAGGED_STRUCT(...)
#define END(name)

const struct schema *kmsg_request(int16_t api_key) {
    switch (api_key) {
#define REQUEST(name, key, versions, flexible) \
    case key:                                  \
        return name##_schema();
#define RESPONSE(...)
#include "wire/messages/all.def"
#undef REQUEST
#undef RESPONSE
    default:
        return NULL;
    }
}

const struct schema *kmsg_response(int16_t api_key) {
    switch (api_key) {
#define REQUEST(...)
#define RESPONSE(name, key, versions, flexible) \
    case key:                                   \
        return name##_schema();
#include "wire/messages/all.def"
    default:
        return NULL;
    }
}
#include "wire/messages/undef.h"
