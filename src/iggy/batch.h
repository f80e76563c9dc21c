/*
 * Message batches: one layout for what a client sends, what a server stores and what a poll answers. Check, iterate, build.
 * No I/O, no clock.
 *
 *   batch   = 256-byte header, message frames
 *   header  = 0 partition_id u64 · 8 base_offset u64 · 16 base_timestamp u64 (us, when it was appended) · 24 origin_timestamp u64
 *             (us, the least producer time of the batch) · 32 batch_length u64 (header included) · 40 batch_checksum u64
 *             · 48 message_count u32 · 52 producer section of 20 bytes (0.12 only, else zero) · 72 zero
 *   section = 0 u8 1 · 4 producer_id u64 · 12 epoch u16 · 16 base_sequence u32, zero between; all zero: there is none
 *   frame   = 48-byte message header, payload, user headers (iggy/tlv.h)
 *   message header = 0 checksum u64 · 8 id u128 · 24 offset_delta u32 · 28 timestamp_delta u32 (us) · 32 user_headers_length u32
 *             · 36 payload_length u32 · 40 zero u64
 * A message's checksum is XXH3-64 over its frame from byte 8 on. The batch's is XXH3-64 over bytes 0 to 40 and the count, then,
 * with a section, u8 1, id, epoch and sequence, then the checksums of all messages. So both cover every byte that may be other than zero.
 */
#ifndef IGGY_BATCH_H
#define IGGY_BATCH_H

#include "base/base.h"
#include "iggy/iggy.h"

#define IGGY_BATCH_HEADER_BYTES   256
#define IGGY_MESSAGE_HEADER_BYTES 48
#define IGGY_BATCH_SPAN_US_MAX    UINT32_MAX /* between the producer times of a batch: 71.6 minutes */

/* Who sent a batch, so that the server refuses what it has already (0.12). */
struct iggy_producer {
    bool present;
    uint16_t epoch;         /* at most INT16_MAX */
    uint32_t base_sequence; /* of the first message; at most INT32_MAX */
    uint64_t id;            /* at most INT64_MAX */
};

struct iggy_batch {
    uint64_t partition_id, base_offset;
    uint64_t base_timestamp_us, origin_timestamp_us;
    uint64_t checksum;
    int32_t size_bytes; /* header included */
    uint32_t messages_count;
    struct iggy_producer producer;
    struct bytes frames; /* borrowed */
};

/* One message; payload and headers are borrowed, of any length, 0 too. */
struct iggy_message {
    struct iggy_u128 id;
    uint64_t checksum;
    uint32_t offset_delta, timestamp_delta_us;
    struct bytes payload, headers;
};

/*
 * The header of the batch at the start of in, which may hold more behind it. Checks no checksum and no message.
 *
 * producer_allowed  false: a producer section is an error (0.11)
 * ST_TRUNCATED   in holds no whole batch
 * ST_BAD_LENGTH  a length below the header's or over 2 GiB, no message, or more messages than it can hold
 * ST_BAD_RECORD  a reserved byte is not zero, or a number of the producer section is out of its range
 */
enum status iggy_batch_read(struct bytes in, bool producer_allowed, struct iggy_batch *out) MUST_USE;

/*
 * Check every message of a batch and both checksums.
 *
 * sent           true: as a producer sends it: partition, offset and append time zero, offset deltas 0, 1, 2, ...
 *                false: as it is stored or polled: each delta greater than the one before, as a poll may cut a batch anywhere
 * ST_BAD_RECORD  frames that don't fill the batch exactly, a reserved byte, a delta, a field that a sender must leave zero
 * ST_BAD_CRC     one of the checksums
 */
enum status iggy_batch_check(const struct iggy_batch *b, bool sent) MUST_USE;

struct iggy_messages_iter {
    const uint8_t *at, *end;
    uint32_t left;
};
void iggy_messages_init(struct iggy_messages_iter *it, const struct iggy_batch *b);

/* The next message. ST_NOT_FOUND: that was all, nothing is left over. ST_BAD_RECORD: not well formed. Checksums are not looked at. */
enum status iggy_messages_next(struct iggy_messages_iter *it, struct iggy_message *out) MUST_USE;

/*
 * Write the header of b: size_bytes and checksum follow from the rest, and are set. Nothing else has to change where a server gives a
 * batch its offset, or answers with a part of it (frames and messages_count cut at a message's border, base_offset as it was).
 * frames must be well formed.
 */
void iggy_batch_write_header(uint8_t out[IGGY_BATCH_HEADER_BYTES], struct iggy_batch *b);

/*
 * Build one batch: init, add each message and fill it in, finish. Zeroed is empty; the memory is used again by the next init.
 * What is sent without the producer section needs nothing more. What stands from next_delta on is set to zero by init, and may be changed:
 * the rest before finish.
 */
struct iggy_batch_builder {
    uint8_t *ptr; /* owned */
    size_t len, room;
    size_t last; /* where the last message begins; 0: there is none */
    uint64_t origin_timestamp_us;
    uint32_t messages_count;
    uint32_t next_delta; /* of the next message's offset; counts on by itself, may be raised before an add */
    uint64_t partition_id, base_offset, base_timestamp_us; /* of what a server stores */
    struct iggy_producer producer;
};

/* origin_timestamp_us: the least of the messages' times. bytes_hint: about how large the batch will be; 0: not known. ST_NO_MEMORY. */
enum status iggy_batch_builder_init(struct iggy_batch_builder *b, uint64_t origin_timestamp_us,
                                    size_t bytes_hint) MUST_USE;
/*
 * Room for a message. Its payload goes to body_out and its user headers right behind, both before the next call.
 *
 * id             NULL: zero, none
 * timestamp_us   of its producer; from the batch's origin_timestamp to IGGY_BATCH_SPAN_US_MAX later, else ST_BAD_TIMESTAMP
 * ST_TOO_BIG     the batch would pass 2 GiB; ST_NO_MEMORY. After a failure the batch is as before the call.
 */
enum status iggy_batch_builder_add(struct iggy_batch_builder *b, const struct iggy_u128 *id,
                                   uint64_t timestamp_us, int32_t payload_len, int32_t headers_len,
                                   uint8_t **body_out) MUST_USE;

/* Header and checksums. batch_out is borrowed: until the next init, or release. At least one message must have been added. */
void iggy_batch_builder_finish(struct iggy_batch_builder *b, struct bytes *batch_out);
void iggy_batch_builder_release(struct iggy_batch_builder *b); /* fine on zeroed and on released */
#endif
