/*
 * Kafka records as Iggy messages: one record is one message, in the same form that Apache's own gateway writes, so that each reads what
 * the other stored (spec E; docs/MAPPING.md spells out the bytes). The way back: bridge/message_map.h. No I/O, no clock.
 */
#ifndef BRIDGE_RECORD_MAP_H
#define BRIDGE_RECORD_MAP_H

#include "base/base.h"
#include "iggy/batch.h"
#include "wire/records.h"

/*
 * One Kafka batch to one Iggy batch, as a client sends it.
 *
 * b, body         a batch that batch_check passed, and what batch_records gave for it
 * with_producer   put the batch's producer id, epoch and sequence, where it has them, into the producer section (0.12)
 * out             grows to hold the batch; used again between calls
 * batch_out       borrowed from out, until its next use
 * reason_out      one sentence for error_message when the status is not ST_OK; static text
 * ST_BAD_RECORD   a timestamp that is no number of microseconds in 64 bits: below -1, or too large (D1-12)
 * ST_TOO_BIG      a record that makes a message of more than 64,000,000 bytes of payload (E-22), or a batch over 2 GiB
 * ST_NO_MEMORY
 * Any thread.
 */
enum status records_to_messages(const struct batch *b, struct bytes body, bool with_producer,
                                struct iggy_batch_builder *out, struct bytes *batch_out,
                                const char **reason_out) MUST_USE;

/*
 * The same for a batch in our own log, as an Iggy server stores and polls it, in one or several Iggy batches. Nothing that batch_check passed
 * is refused: a time that messages can't have goes into kafka.ts whatever it is, and LogAppendTime counts. Offsets are kept, gaps too; deltas
 * that don't ascend within the batch, as no client writes them, are replaced by the records' numbers. No producer section; the append time is the
 * greatest time of the batch (0: it has none).
 * What is in it is its own, but for partition.
 */
struct records_map {
    const struct batch *b;     /* borrowed, and the body that it iterates */
    bool stored;               /* in our own log */
    bool by_number;            /* the offset deltas are none that messages can have */
    uint64_t start_us, end_us; /* what the messages of one send may have as their time (E-3) */
    struct records_iter it;
    int32_t number;      /* of the record that comes next */
    int64_t from_offset; /* records below it are left out */
    uint32_t partition;  /* goes into the batches; 0 after init */
};

/* b, body: as above, with the offset it was stored at; kept. ST_BAD_RECORD: not well formed. Any thread. */
enum status records_map_init(struct records_map *m, const struct batch *b, struct bytes body,
                             int64_t from_offset) MUST_USE;

/*
 * The next Iggy batch.
 *
 * bytes_max       of it, >= 0; its first message may pass it
 * ST_NOT_FOUND    that was all;  ST_TOO_BIG: one record makes a message of 2 GiB;  ST_NO_MEMORY: may be called again
 */
enum status records_map_next(struct records_map *m, int64_t bytes_max, struct iggy_batch_builder *out,
                             struct bytes *batch_out) MUST_USE;
#endif
