#include <ctype.h>

#include "base/base.h"

struct str str_trimmed(struct str s) {
    while (s.len > 0 && isspace((unsigned char)s.ptr[0]))
        s = (struct str){s.ptr + 1, s.len - 1};
    while (s.len > 0 && isspace((unsigned char)s.ptr[s.len - 1]))
        s.len--;
    return s;
}

bool str_next_part(struct str *s, char separator, struct str *part) {
    if (s->len < 0)
        return false;
    const char *end = s->len > 0 ? memchr(s->ptr, separator, (size_t)s->len) : NULL;
    *part = (struct str){s->ptr, end ? (int32_t)(end - s->ptr) : s->len};
    *s = end ? (struct str){end + 1, s->len - part->len - 1} : STR_NULL;
    return true;
}

bool str_list_has(struct str list, struct str word) {
    struct str part;
    while (str_next_part(&list, ',', &part))
        if (str_equal(str_trimmed(part), word))
            return true;
    return false;
}
