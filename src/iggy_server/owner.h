/* Under which owner the store keeps the offsets of an Iggy consumer. */
#ifndef IGGY_SERVER_OWNER_H
#define IGGY_SERVER_OWNER_H

#include <stdio.h>

#include "base/base.h"
#include "iggy/iggy.h"

#define OFFSET_OWNER_BYTES 16

/*
 * "c" and the number for a consumer, "g" and the id for a group, "x" and the id for an external group; consumer_kind as in enum
 * iggy_consumer_kind. Kafka's groups are kept under names that begin otherwise. The text is in buffer.
 */
static inline struct str offset_owner(char buffer[OFFSET_OWNER_BYTES], uint8_t consumer_kind,
                                      uint32_t number) {
    char kind = consumer_kind == IGGY_CONSUMER_GROUP ? 'g' : consumer_kind == IGGY_EXTERNAL_GROUP ? 'x' : 'c';
    int len = snprintf(buffer, OFFSET_OWNER_BYTES, "%c%u", kind, (unsigned)number);
    return (struct str){buffer, len};
}
#endif
