/* CRC-32C (Castagnoli, RFC 3720): the checksum of Kafka's record batches. */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include "base/base.h"

/*
 * The CRC of len bytes at ptr that follow bytes whose CRC is crc; 0 when nothing goes before them.
 * Uses the processor's own instruction where there is one, found out when the program starts. Any thread.
 */
uint32_t crc32c(uint32_t crc, const void *ptr, size_t len);

/* The same by tables alone: what processors without the instruction use, and what the other form is tested against. */
uint32_t crc32c_portable(uint32_t crc, const void *ptr, size_t len);
#endif
