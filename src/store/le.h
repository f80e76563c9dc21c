/* Little-endian integers, the store's own byte order, in memory that is known to be long enough. */
#ifndef STORE_LE_H
#define STORE_LE_H

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
#endif
