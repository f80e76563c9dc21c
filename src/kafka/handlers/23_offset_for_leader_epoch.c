/*
 * OffsetForLeaderEpoch, v2-v4: where an epoch of leaders ended, so that a consumer can see that its log was cut
 * (KIP-320).
 *
 *   offset_for_leader_epoch_handle -> backend_offsets (latest) -> offset_for_leader_epoch_on_found -> answer
 *
 * There is one epoch, which has not ended: it goes to the end of the log. Of any other nobody knows: no error,
 * epoch and offset -1.
 */
#include "kafka/epoch.h"
#include "kafka/errors.h"
#include "kafka/request.h"

#define EPOCH_WAIT_MS 20000

struct offset_for_leader_epoch {
    struct request *request;
    struct backend_offsets offsets; /* a part for each partition of the request, in wire order */
};

static void offset_for_leader_epoch_on_found(struct op *op);

void offset_for_leader_epoch_handle(struct request *r) {
    const struct offset_for_leader_epoch_req *in = offset_for_leader_epoch_in(r);
    int32_t count = 0;
    for (int32_t t = 0; t < in->topics_count; t++)
        count += in->topics[t].partitions_count;
    struct offset_for_leader_epoch *o = request_array(r, struct offset_for_leader_epoch, 1);
    struct backend_offset_part *part = o ? request_array(r, struct backend_offset_part, count) : NULL;
    if (!part)
        return;
    o->request = r;
    o->offsets.parts = part;
    o->offsets.parts_count = count;
    o->offsets.deadline_ms = r->arrived_ms + EPOCH_WAIT_MS;
    for (int32_t t = 0; t < in->topics_count; t++)
        for (int32_t i = 0; i < in->topics[t].partitions_count; i++)
            *part++ = (struct backend_offset_part){.topic = in->topics[t].topic,
                                                   .partition = in->topics[t].partitions[i].partition,
                                                   .kind = OFFSET_LATEST};
    op_init(&o->offsets.op, r->loop, offset_for_leader_epoch_on_found);

    request_waits_for(r, offset_for_leader_epoch_on_found);
    backend_offsets(r->kafka->settings.backend, &o->offsets);
}

static struct offset_for_leader_epoch_res_partition
epoch_found(const struct offset_for_leader_epoch_req_partition *asked,
            const struct backend_offset_part *part) {
    struct offset_for_leader_epoch_res_partition out = {.error_code = kerr_of_read(part->status),
                                                        .partition = asked->partition,
                                                        .leader_epoch = -1,
                                                        .end_offset = -1};
    if (part->status == ST_OK)
        out.error_code = leader_epoch_error(asked->current_leader_epoch);
    if (out.error_code == KERR_NONE && asked->leader_epoch == KAFKA_LEADER_EPOCH) {
        out.leader_epoch = KAFKA_LEADER_EPOCH;
        out.end_offset = part->offset;
    }
    return out;
}

static void offset_for_leader_epoch_on_found(struct op *op) {
    struct offset_for_leader_epoch *o = container_of(op, struct offset_for_leader_epoch, offsets.op);
    struct request *r = o->request;
    const struct offset_for_leader_epoch_req *in = offset_for_leader_epoch_in(r);
    const struct backend_offset_part *part = o->offsets.parts;
    struct offset_for_leader_epoch_res out = {
        .topics = request_array(r, struct offset_for_leader_epoch_res_topic, in->topics_count),
        .topics_count = in->topics_count};
    if (!out.topics)
        return;
    for (int32_t t = 0; t < in->topics_count; t++) {
        int32_t count = in->topics[t].partitions_count;
        struct offset_for_leader_epoch_res_partition *to =
            request_array(r, struct offset_for_leader_epoch_res_partition, count);
        if (!to)
            return;
        for (int32_t i = 0; i < count; i++)
            to[i] = epoch_found(&in->topics[t].partitions[i], part++);
        out.topics[t] = (struct offset_for_leader_epoch_res_topic){in->topics[t].topic, to, count};
    }
    offset_for_leader_epoch_reply(r, &out);
}
