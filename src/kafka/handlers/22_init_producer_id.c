/*
 * InitProducerId, v0-v5: an id for an idempotent producer.
 *
 * - An id is the instance in 16 bits and a counter in 47; it begins at the clock, so that a restart gives new
 *   ones (D10-2).
 * - The id and epoch that v3 and later send are not continued: a new id, epoch 0, as on Kafka. One of them
 *   without the other: 42.
 * - Transactions are not served: 35, which is final for a Java client; never a code that clients retry (D10-3).
 */
#include "kafka/request.h"

#define COUNTER_BITS 47

static int16_t init_producer_id_error(const struct init_producer_id_req *in) {
    if (in->transactional_id.len == 0)
        return KERR_INVALID_REQUEST;
    if (in->transactional_id.len > 0)
        return KERR_UNSUPPORTED_VERSION;
    return (in->producer_id == -1) != (in->producer_epoch == -1) ? KERR_INVALID_REQUEST : KERR_NONE;
}

void init_producer_id_handle(struct request *r) {
    struct init_producer_id_res out = {.producer_id = -1,
                                       .producer_epoch = -1,
                                       .ongoing_txn_producer_id = -1,
                                       .ongoing_txn_producer_epoch = -1};
    out.error_code = init_producer_id_error(init_producer_id_in(r));
    if (out.error_code == KERR_NONE) {
        int64_t counter = atomic_fetch_add(&r->kafka->next_producer, 1) & (((int64_t)1 << COUNTER_BITS) - 1);
        out.producer_id = (int64_t)r->kafka->settings.instance_id << COUNTER_BITS | counter;
        out.producer_epoch = 0;
    }
    init_producer_id_reply(r, &out);
}
