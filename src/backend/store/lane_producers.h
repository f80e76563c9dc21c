/*
 * What a lane remembers of producers that number their records, so that a batch that comes twice is stored once, and none before one that it
 * follows: a client that has several under way sends anew what was lost, behind the later ones. In memory, learnt from the end of the log.
 * For the lane's writer only.
 */
#ifndef BACKEND_STORE_LANE_PRODUCERS_H
#define BACKEND_STORE_LANE_PRODUCERS_H

#include "base/base.h"
#include "iggy/batch.h"
#include "store/store.h"
#include "wire/records.h"

#define LANE_PRODUCERS_MAX 1024 /* of one partition; then the one that was silent longest is forgotten */

struct lane_producers;

/* Remember what stands in the last 32 MiB of the partition, which is open. Blocks. What can't be read, or held, is not remembered. */
void lane_producers_learn(struct lane_producers **ps, struct partition *p);

/* A batch whose producer numbers its records: Kafka's idempotent producers, Iggy's producer section. */
struct numbered_batch {
    uint64_t producer_id;
    int32_t producer_epoch;
    uint32_t base_sequence; /* at most INT32_MAX */
    int32_t count;          /* of records or messages */
    bool kafka;             /* Kafka's rules, not Iggy's */
    int64_t base_offset;
};

/* Is the Kafka batch a numbered one? Then *out is it, but for base_offset. */
bool numbered_of_kafka(const struct batch *b, struct numbered_batch *out) MUST_USE;
bool numbered_of_iggy(const struct iggy_batch *b, struct numbered_batch *out) MUST_USE;

/*
 * A batch that would be stored at its base_offset. D1-13.
 * ps     *ps NULL: none yet; owned by the caller (lane_producers_free)
 * ST_OK            it is new, and noted as stored: if that fails, they have to be learnt anew
 * ST_EXISTS        it is stored already: *offset_out is where; Iggy: also one older than what is remembered, then -1
 * ST_BAD_SEQUENCE  something before it is missing, or a part of it is stored; Kafka: also one older than what is remembered
 * ST_UNKNOWN_PRODUCER  Iggy: nothing is known of the producer, and this is not its first batch. Kafka takes any first one
 * ST_FENCED        a newer epoch of the producer was here
 */
enum status lane_producers_check(struct lane_producers **ps, const struct numbered_batch *batch,
                                 int64_t *offset_out) MUST_USE;
void lane_producers_free(struct lane_producers *ps); /* takes NULL */
#endif
