/*
 * What a lane remembers of producers that number their messages (Iggy's producer section), so that a batch that comes twice is stored once,
 * and none before one that it follows: a client that has several under way sends anew what was lost, behind the later ones. In memory,
 * learnt from the end of the log. For the lane's writer only.
 */
#ifndef BACKEND_STORE_LANE_PRODUCERS_H
#define BACKEND_STORE_LANE_PRODUCERS_H

#include "base/base.h"
#include "iggy/batch.h"
#include "store/store.h"

#define LANE_PRODUCERS_MAX 1024 /* of one partition; then the one that was silent longest is forgotten */

struct lane_producers;

/* Remember what stands in the last 32 MiB of the partition, which is open. Blocks. What can't be read, or held, is not remembered. */
void lane_producers_learn(struct lane_producers **ps, struct partition *p);

/*
 * A batch of count messages that would be stored at base_offset.
 * ps     *ps NULL: none yet; owned by the caller (lane_producers_free)
 * ST_OK            it is new, and noted as stored: if that fails, they have to be learnt anew
 * ST_EXISTS        it is stored already: *offset_out is where, -1: that isn't known any more
 * ST_BAD_SEQUENCE  something before it is missing, or a part of it is stored
 * ST_UNKNOWN_PRODUCER  nothing is known of the producer, and this is not its first batch
 * ST_FENCED        a newer epoch of the producer was here
 */
enum status lane_producers_check(struct lane_producers **ps, const struct iggy_producer *who, int32_t count,
                                 int64_t base_offset, int64_t *offset_out) MUST_USE;
void lane_producers_free(struct lane_producers *ps); /* takes NULL */
#endif
