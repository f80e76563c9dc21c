/*
 * Iggy messages as Kafka records: what a gateway wrote, and what any Iggy client wrote (E-10, E-11). The way there: bridge/record_map.h.
 * No I/O, no clock, and no allocation for a single record.
 */
#ifndef BRIDGE_MESSAGE_MAP_H
#define BRIDGE_MESSAGE_MAP_H

#include "base/base.h"
#include "iggy/batch.h"
#include "wire/records.h"

/*
 * Iggy batches to one Kafka batch: init, add each, finish; any number of times; release.
 * What is in it may be read, and nothing but skipped_count written.
 */
struct message_map {
    struct spare *out; /* borrowed; the batch grows here */
    struct batch_builder batch;
    int64_t base_offset;
    int64_t next_offset;   /* of the first message that has not been mapped */
    int64_t skipped_count; /* messages left out because they are no records; counts on over several init */
    bool skip;
    bool begun;
    struct record_header *headers; /* owned; used again for each record */
    size_t headers_room;
};

/*
 * from_offset   messages below it are left out
 * skip          leave out messages that can't be a record (E-12), and count them; their offsets stay unused. false: stop at the first (H-15)
 * m             zeroed, or used before
 */
void message_map_init(struct message_map *m, struct spare *out, int64_t from_offset, bool skip);

/*
 * The messages of one batch, whose checksums the caller has checked or trusts. Batches come in the order of their offsets.
 *
 * bytes_max        of the Kafka batch; its first record may pass it (KIP-74)
 * ST_OK            all of them are in
 * ST_OVER_BUDGET   the next one would pass bytes_max, or 2^31 offsets
 * ST_UNMAPPABLE    the next one can't be a record; those before it are in. Not with skip
 * ST_BAD_RECORD    b is not well formed, or its offsets pass 2^63
 * ST_NO_MEMORY     what is in is as before the message
 * After ST_NO_MEMORY the same batch may be added again; after any other error only message_map_finish makes sense.
 */
enum status message_map_add(struct message_map *m, const struct iggy_batch *b, int64_t bytes_max) MUST_USE;

/*
 * The batch (E-13): not compressed, magic 2, at the offset of the first message. Without a record where all of them were skipped: readers go on
 * behind it. batch_out is borrowed from out. ST_NOT_FOUND: no message was added.
 */
enum status message_map_finish(struct message_map *m, struct bytes *batch_out) MUST_USE;
void message_map_release(struct message_map *m); /* fine on zeroed and on released */

/*
 * The time in ms that the record of a message of b has, without building it. m: zeroed, or between finish and init; only its memory is used.
 * ST_UNMAPPABLE: it makes no record; ST_NO_MEMORY.
 */
enum status message_map_time(struct message_map *m, const struct iggy_batch *b, const struct iggy_message *in,
                             int64_t *ms_out) MUST_USE;

/* The greatest of those times in a batch; INT64_MIN: none of its messages makes a record. m as above. ST_BAD_RECORD: not well formed; ST_NO_MEMORY. */
enum status message_map_max_time(struct message_map *m, const struct iggy_batch *b, int64_t *ms_out) MUST_USE;
#endif
