/* What every file may use: fixed-size integers, status, views, assertions. */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define MUST_USE __attribute__((warn_unused_result))
#else
#define MUST_USE
#endif

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define COUNT_OF(array)                 (sizeof(array) / sizeof((array)[0]))

/* What a call inside this program can come back with. Kafka's own codes: wire/kerr.def. */
enum status {
#define STATUS(name, text) ST_##name,
#include "base/status.def"
#undef STATUS
};

/* English text of a status, for logs; never NULL. Any thread. */
const char *status_text(enum status st);

/* Borrowed text, not terminated. Never freed through; valid as long as what it points into. len -1: null on the wire. */
struct str {
    const char *ptr;
    int32_t len;
};

/* Borrowed bytes; as struct str. */
struct bytes {
    const uint8_t *ptr;
    int32_t len;
};

/* 16 bytes in network order, as Kafka's uuid on the wire. All zero: none. */
struct uuid {
    uint8_t b[16];
};

#define STR(literal) ((struct str){(literal), (int32_t)sizeof(literal) - 1})
#define STR_NULL     ((struct str){NULL, -1})
#define BYTES_NULL   ((struct bytes){NULL, -1})

static inline struct str str_of(const char *text) {
    return (struct str){text, (int32_t)strlen(text)};
}
static inline bool str_equal(struct str a, struct str b) {
    return a.len == b.len && (a.len <= 0 || memcmp(a.ptr, b.ptr, (size_t)a.len) == 0);
}
/* By bytes, a shorter text before a longer one that begins with it: below, at or above 0. */
static inline int str_compare(struct str a, struct str b) {
    int32_t common = a.len < b.len ? a.len : b.len;
    int order = common > 0 ? memcmp(a.ptr, b.ptr, (size_t)common) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}
/* Without white space (isspace in the C locale) at both ends. */
struct str str_trimmed(struct str s);
/* The part of s before the separator; s becomes what follows it, of length -1 after the last one. False: nothing is left. */
bool str_next_part(struct str *s, char separator, struct str *part);
/* Whether a list with commas between its words has this one; white space around them doesn't count. */
bool str_list_has(struct str list, struct str word);
static inline bool uuid_equal(const struct uuid *a, const struct uuid *b) {
    return memcmp(a->b, b->b, sizeof a->b) == 0;
}
static inline bool uuid_is_zero(const struct uuid *u) {
    static const struct uuid zero = {{0}};
    return uuid_equal(u, &zero);
}
#endif
