/*
 * The four compressions of Kafka record batches, bounded while inflating: a declared size is never trusted (spec D1-10, D1-42).
 * gzip (several members), snappy (raw, or Java's xerial framing), lz4 frame, zstd (several and skippable frames).
 */
#ifndef WIRE_COMPRESS_H
#define WIRE_COMPRESS_H

#include "base/base.h"

enum codec { CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD };

/* Memory that grows and is used again. Zeroed is empty. */
struct spare {
    uint8_t *ptr;
    size_t len, room;
};
/* Room for len bytes at least; what is there stays. ST_NO_MEMORY. */
enum status spare_reserve(struct spare *s, size_t len) MUST_USE;
void spare_release(struct spare *s); /* fine on zeroed */

/*
 * Inflate all of in into out (from byte 0). Never produces more than bytes_max; memory grows as bytes appear, not as declared.
 * ST_TOO_BIG: there is more than bytes_max; ST_BAD_RECORD: not decodable; ST_NO_MEMORY. Any thread; keeps per-thread contexts.
 */
enum status codec_inflate(enum codec codec, struct bytes in, size_t bytes_max, struct spare *out) MUST_USE;

/* Compress all of in into out, in the form Java clients write (snappy: xerial framing). ST_NO_MEMORY. Any thread. */
enum status codec_deflate(enum codec codec, struct bytes in, struct spare *out) MUST_USE;

const char *codec_name(enum codec codec); /* "none", "gzip", "snappy", "lz4", "zstd" */
#endif
