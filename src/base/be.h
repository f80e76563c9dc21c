/* Big-endian integers in memory that is known to be long enough. */
#ifndef BASE_BE_H
#define BASE_BE_H

#include "base/base.h"

static inline uint64_t be_get(const uint8_t *p, unsigned width) {
    uint64_t v = 0;
    for (unsigned i = 0; i < width; i++)
        v = v << 8 | p[i];
    return v;
}
static inline void be_set(uint8_t *p, unsigned width, uint64_t value) {
    for (unsigned i = 0; i < width; i++)
        p[i] = (uint8_t)(value >> (8 * (width - 1 - i)));
}
#endif
