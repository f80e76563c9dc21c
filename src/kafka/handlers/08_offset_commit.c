/*
 * OffsetCommit, v2-v9: how far a group has read.
 *
 *   offset_commit_handle -> [coordinator's loop] check_begin: may it? -> offset_commit_on_checked -> backend_commit -> offset_commit_on_done -> answer
 *
 * - There is no error for the whole answer: what spoils all of it stands on every partition (D12-4).
 * - Each partition has its own outcome, in the order of the request, also when one comes twice; the last one counts (D12-6).
 * - A negative offset forgets; a retention time (v2-v4) can only keep an offset longer (D12-3).
 * - v10 names topics by id, and is not served.
 */
#include "kafka/errors.h"
#include "kafka/groups.h"
#include "kafka/request.h"
#include "kafka/topic_name.h"

#define COMMIT_WAIT_MS     3000 /* D12-20 */
#define METADATA_BYTES_MAX 4096 /* Kafka's offset.metadata.max.bytes */
#define EPOCHS_FROM        9
#define KEEP_LONGER_MS_MAX ((int64_t)100 * 365 * 24 * 3600 * 1000) /* far from where times end */

struct offset_commit {
    struct request *request;
    struct groups_call hop;
    struct group_check check;
    struct backend_commit commit; /* a part for each partition of the request, in wire order */
};

static void offset_commit_on_checked(struct op *op);
static void offset_commit_start(struct offset_commit *o);
static void offset_commit_on_done(struct op *op);

/* On the coordinator's loop: a check never waits. */
static void check_done(struct group_call *call) {
    groups_call_end(&container_of(call, struct offset_commit, check.call)->hop);
}

static void check_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    coordinator_check(c, &container_of(hop, struct offset_commit, hop)->check, now_ms);
}

void offset_commit_handle(struct request *r) {
    const struct offset_commit_req *in = offset_commit_in(r);
    struct offset_commit *o = request_array(r, struct offset_commit, 1);
    if (!o)
        return;
    o->request = r;
    o->check = (struct group_check){
        .call.done = check_done,
        .group = in->group_id,
        .member = in->member_id,
        .instance = in->group_instance_id,
        .generation = in->generation_id_or_member_epoch,
        .knows_epochs = r->version >= EPOCHS_FROM,
    };
    o->hop.begin = check_begin;
    op_init(&o->hop.op, r->loop, offset_commit_on_checked);
    request_waits_for(r, offset_commit_on_checked);
    groups_call(r->kafka->groups, &o->hop);
}

/* Every partition as it was sent, with its code: of parts, or the same for all where parts is NULL. */
static void offset_commit_answer(struct request *r, const struct backend_commit_part *parts, int16_t code) {
    const struct offset_commit_req *in = offset_commit_in(r);
    struct offset_commit_res out = {.topics =
                                        request_array(r, struct offset_commit_res_topic, in->topics_count),
                                    .topics_count = in->topics_count};
    if (!out.topics)
        return;
    for (int32_t t = 0; t < in->topics_count; t++) {
        const struct offset_commit_req_topic *topic = &in->topics[t];
        struct offset_commit_res_partition *to =
            request_array(r, struct offset_commit_res_partition, topic->partitions_count);
        if (!to)
            return;
        for (int32_t i = 0; i < topic->partitions_count; i++) {
            to[i].partition_index = topic->partitions[i].partition_index;
            to[i].error_code = parts ? kerr_of_offsets((parts++)->status) : code;
        }
        out.topics[t] = (struct offset_commit_res_topic){
            .name = topic->name, .partitions = to, .partitions_count = topic->partitions_count};
    }
    offset_commit_reply(r, &out);
}

/* D12-4, D12-5; what a backend can name a group by is shorter than what Kafka takes (D12-3). */
static void offset_commit_on_checked(struct op *op) {
    struct offset_commit *o = container_of(op, struct offset_commit, hop.op);
    int16_t code = kerr_of_group(o->check.call.outcome);
    if (o->check.group.len < 1 || o->check.group.len > BACKEND_GROUP_BYTES_MAX)
        code = KERR_INVALID_GROUP_ID;
    if (code)
        offset_commit_answer(o->request, NULL, code);
    else
        offset_commit_start(o);
}

/* What is wrong with a partition before any backend is asked; where nothing is kept it would be told the same anyway (D12-7). */
static enum status partition_problem(const struct request *r, struct str topic,
                                     const struct offset_commit_req_partition *partition) {
    if (request_meets_stub(r))
        return ST_OK;
    if (!topic_name_is_valid(topic))
        return ST_BAD_NAME;
    if (partition->partition_index < 0)
        return ST_NOT_FOUND;
    return partition->committed_metadata.len > METADATA_BYTES_MAX ? ST_TOO_BIG : ST_OK;
}

/* How much longer than others the offsets are to be kept. */
static int64_t keep_longer_ms(const struct request *r) {
    int64_t wanted_ms = offset_commit_in(r)->retention_time_ms,
            usual_ms = r->kafka->settings.offsets_retention_ms;
    if (usual_ms <= 0 || wanted_ms <= usual_ms)
        return 0;
    return wanted_ms - usual_ms < KEEP_LONGER_MS_MAX ? wanted_ms - usual_ms : KEEP_LONGER_MS_MAX;
}

static void offset_commit_start(struct offset_commit *o) {
    struct request *r = o->request;
    const struct offset_commit_req *in = offset_commit_in(r);
    int32_t count = 0;
    for (int32_t t = 0; t < in->topics_count; t++)
        count += in->topics[t].partitions_count;
    struct backend_commit_part *part = request_array(r, struct backend_commit_part, count);
    if (!part)
        return;
    o->commit = (struct backend_commit){.group = in->group_id,
                                        .parts = part,
                                        .parts_count = count,
                                        .keep_longer_ms = keep_longer_ms(r),
                                        .deadline_ms = r->arrived_ms + COMMIT_WAIT_MS};
    for (int32_t t = 0; t < in->topics_count; t++)
        for (int32_t i = 0; i < in->topics[t].partitions_count; i++) {
            const struct offset_commit_req_partition *from = &in->topics[t].partitions[i];
            *part++ = (struct backend_commit_part){
                .topic = in->topics[t].name,
                .partition = from->partition_index,
                .leader_epoch = from->committed_leader_epoch,
                .offset = from->committed_offset,
                .metadata = from->committed_metadata.len < 0 ? STR("") : from->committed_metadata,
                .status = partition_problem(r, in->topics[t].name, from)};
        }
    op_init(&o->commit.op, r->loop, offset_commit_on_done);

    request_waits_for(r, offset_commit_on_done);
    backend_commit(r->kafka->settings.backend, &o->commit);
}

static void offset_commit_on_done(struct op *op) {
    struct offset_commit *o = container_of(op, struct offset_commit, commit.op);
    offset_commit_answer(o->request, o->commit.parts, KERR_NONE);
}
