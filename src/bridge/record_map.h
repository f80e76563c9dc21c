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
#endif
