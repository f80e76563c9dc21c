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
/* Room for len bytes at least; what is there stays, len too. ST_NO_MEMORY. */
enum status spare_reserve(struct spare *s, size_t len) MUST_USE;
void spare_release(struct spare *s); /* fine on zeroed and on released */

/* One that this thread keeps until it ends, for what is inflated and looked at before anything else is. NULL: out of memory. */
struct spare *spare_of_thread(void);

/* Done with it for now: it is kept for the next use, unless it has grown so large that all threads' together would matter. */
void spare_put_back(struct spare *s);

/*
 * Inflate all of in into out (from byte 0). codec is not CODEC_NONE. Any thread; keeps contexts per thread until it ends.
 *
 * Never produces more than bytes_max. Memory grows as bytes appear: a declared size alone gets at most 64 times the input and 64 KiB.
 * Accepts what Kafka 4.4.0 accepts: bytes that are no member after a gzip member, any version numbers in the xerial header,
 * any lz4 block size and checksums. Refuses what Java consumers could not read back: lz4 blocks that depend on each other, bytes
 * after an lz4 frame, a xerial block of length 0.
 *
 * ST_TOO_BIG     there is more than bytes_max, or snappy or zstd declares so
 * ST_BAD_RECORD  not decodable;  ST_NO_MEMORY
 * On failure out->len is what was inflated before.
 */
enum status codec_inflate(enum codec codec, struct bytes in, size_t bytes_max, struct spare *out) MUST_USE;

/*
 * Compress all of in into out from byte out->len on, in the form Java clients write (snappy: xerial framing, lz4: independent blocks of
 * 64 KiB). What is before that byte stays; not inside in. codec is not CODEC_NONE. ST_NO_MEMORY: out->len is as before. Any thread, as codec_inflate.
 */
enum status codec_deflate(enum codec codec, struct bytes in, struct spare *out) MUST_USE;

const char *codec_name(enum codec codec); /* "none", "gzip", "snappy", "lz4", "zstd" */
#endif
