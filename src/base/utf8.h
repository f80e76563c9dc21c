/* Whether bytes are UTF-8, as Rust's strings and Iggy's names must be: no surrogates, no overlong forms, at most U+10FFFF. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/base.h"

/* How many bytes after a first byte b; -1: none begins so. least and most bound the byte after it, where the odd cases are told apart. */
static inline int utf8_follow(uint8_t b, uint8_t *least, uint8_t *most) {
    *least = b == 0xe0 ? 0xa0 : b == 0xf0 ? 0x90 : 0x80;
    *most = b == 0xed ? 0x9f : b == 0xf4 ? 0x8f : 0xbf;
    if (b < 0x80)
        return 0;
    if (b < 0xc2 || b > 0xf4)
        return -1;
    return b < 0xe0 ? 1 : b < 0xf0 ? 2 : 3;
}

static inline bool utf8_is_valid(const void *ptr, size_t len) {
    const uint8_t *at = ptr;
    for (size_t i = 0; i < len;) {
        uint8_t least, most;
        int follow = utf8_follow(at[i++], &least, &most);
        if (follow < 0 || len - i < (size_t)follow)
            return false;
        for (; follow > 0; follow--, i++) {
            if (at[i] < least || at[i] > most)
                return false;
            least = 0x80;
            most = 0xbf;
        }
    }
    return true;
}
#endif
