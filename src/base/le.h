/* Little-endian integers, the byte order of the store and of Iggy, in memory that is known to be long enough. */
#ifndef BASE_LE_H
#define BASE_LE_H

#include <endian.h>

#include "base/base.h"

static inline void le_set32(uint8_t *p, uint32_t v) {
    v = htole32(v);
    memcpy(p, &v, sizeof v);
}
static inline void le_set64(uint8_t *p, uint64_t v) {
    v = htole64(v);
    memcpy(p, &v, sizeof v);
}
static inline uint32_t le_get32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return le32toh(v);
}
static inline uint64_t le_get64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}
/* width 1..8 bytes */
static inline uint64_t le_get(const uint8_t *p, unsigned width) {
    uint64_t v = 0;
    for (unsigned i = 0; i < width; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}
static inline void le_set(uint8_t *p, unsigned width, uint64_t value) {
    for (unsigned i = 0; i < width; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}
#endif
