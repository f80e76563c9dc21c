#include <ctype.h>

#include "base/base.h"

struct str str_trimmed(struct str s) {
    while (s.len > 0 && isspace((unsigned char)s.ptr[0]))
        s = (struct str){s.ptr + 1, s.len - 1};
    while (s.len > 0 && isspace((unsigned char)s.ptr[s.len - 1]))
        s.len--;
    return s;
}
