#include "iggy/message.h"

/* clang-format off: macros that balance only together */
#define ALL \
    { 0, UINT32_MAX }
#define SINCE(v) \
    { (v), UINT32_MAX }
#define BEFORE(v) \
    { 0, (v)-1 }
#define BIT(n)                (UINT32_C(1) << (n))
#define WHEN(member, values)  .when_offset = offsetof(self, member), .when = (values)
#define WITHIN(least_, most_) .least = (least_), .most = (most_)

/*
 * Each message becomes a function that returns its table. Inside it `self` names the struct, so that a row can take
 * offsetof without repeating the message's name; a part is named by its function, which is a constant.
 */
#define MESSAGE(name_)                                      \
    const struct iggy_schema *iggy_##name_##_schema(void) { \
        typedef struct iggy_##name_ self;                   \
        static const char self_name[] = #name_;             \
        static const struct iggy_field fields[] = {
#define ROW(kind_, f, ...)        .name = #f, .kind = IK_##kind_, .offset = offsetof(self, f), .on = __VA_ARGS__
#define PART(kind, part_, f, ...) ROW(kind, f, __VA_ARGS__), .part = iggy_##part_##_schema
#define MANY(kind, part, f, ...)  PART(kind, part, f, __VA_ARGS__), .count_offset = offsetof(self, f##_count)

#define FIELD(kind, f, ...)        {ROW(kind, f, __VA_ARGS__)},
#define INLINE(part, f, ...)       {PART(INLINE, part, f, __VA_ARGS__)},
#define SIZED(part, f, ...)        {PART(SIZED, part, f, __VA_ARGS__)},
#define LIST(part, f, ...)         {MANY(LIST, part, f, __VA_ARGS__)},
#define LIST8(part, f, ...)        {MANY(LIST8, part, f, __VA_ARGS__)},
#define TIMES(part, f, count, ...) {MANY(TIMES, part, f, __VA_ARGS__), .times_offset = offsetof(self, count)},
#define CHAIN(part, f, ...)        {MANY(CHAIN, part, f, __VA_ARGS__)},
#define UNTIL_END(part, f, ...)    {MANY(UNTIL_END, part, f, __VA_ARGS__)},
#define ZEROS(n, ...)              {.name = "zeros", .kind = IK_ZEROS, .zeros = (n), .on = __VA_ARGS__},
#define END(name_)                             \
    }                                          \
    ;                                          \
    static const struct iggy_schema schema = { \
        .name = self_name,                     \
        .fields = fields,                      \
        .field_count = COUNT_OF(fields),       \
        .size = sizeof(self),                  \
    };                                         \
    return &schema;                            \
    }
#include "iggy/commands/all.def"
#include "iggy/commands/undef.h"
/* clang-format on */

const struct iggy_schema *iggy_nothing_schema(void) {
    static const struct iggy_field none[1]; /* a pointer that may be counted from */
    static const struct iggy_schema schema = {.name = "nothing", .fields = none};
    return &schema;
}
