/*
 * OffsetDelete, v0: committed offsets of a group are forgotten, of topics that no member is subscribed to; of the others: 86. A group that nobody knows is
 * 69, one without a name 24; one with members of another kind than consumers is 68. D11-63.
 *
 *   offset_delete_handle -> backend_groups -> delete_on_listed -> [coordinator's loop] delete_begin: who is subscribed to what
 *     -> delete_on_back -> backend_commit (negative offsets) -> delete_on_committed: answer
 */
#include "kafka/errors.h"
#include "kafka/group_views.h"
#include "kafka/subscription.h"
#include "kafka/topic_name.h"
#include "net/loop.h"

struct offset_deleting {
    struct request *request;
    struct backend_groups listed;
    struct groups_call hop;
    struct group_describe describe;
    struct backend_commit commit;
    struct offset_delete_res out;
    bool *subscribed; /* for each topic of the request */
};

static void delete_on_listed(struct op *op);
static void delete_on_back(struct op *op);
static void delete_on_committed(struct op *op);

/* ---- who is subscribed ---- */

static void subscribed_to(struct offset_deleting *d, struct str topic) {
    const struct offset_delete_req *in = offset_delete_in(d->request);
    for (int32_t i = 0; i < in->topics_count; i++)
        if (str_equal(in->topics[i].name, topic))
            d->subscribed[i] = true;
}

/* False: what the member reads is not known. */
static bool subscription_read(struct offset_deleting *d, const struct group_member_view *member) {
    struct member_reads reads = member_reads_of(d->describe.type, member);
    struct str topic;
    while (member_reads_next(&reads, &topic))
        subscribed_to(d, topic);
    return member_reads_known(&reads);
}

/* Who can't be understood may read any topic. */
static void subscribed_to_all(struct offset_deleting *d) {
    for (int32_t i = 0; i < offset_delete_in(d->request)->topics_count; i++)
        d->subscribed[i] = true;
}

/* On the coordinator's loop. */
static void describe_done(struct group_call *call) {
    struct offset_deleting *d = container_of(call, struct offset_deleting, describe.call);
    struct group_members members = d->describe.members;
    struct group_member_view view;
    d->out.error_code = kerr_of_group(call->outcome);
    if (call->outcome == GROUP_ID_NOT_FOUND && groups_list_problem(d->request, &d->listed))
        d->out.error_code = groups_list_problem(d->request, &d->listed);
    if (call->outcome != GROUP_OK || members.count == 0)
        return;
    if (d->describe.type == GROUP_CLASSIC && !str_equal(d->describe.protocol_type, STR(CONSUMER_TYPE))) {
        d->out.error_code = KERR_NON_EMPTY_GROUP;
        return;
    }
    while (group_members_next(&members, &view)) {
        if (!subscription_read(d, &view))
            subscribed_to_all(d);
    }
}

static void delete_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    struct offset_deleting *d = container_of(hop, struct offset_deleting, hop);
    const struct str group = offset_delete_in(d->request)->group_id;
    d->describe = (struct group_describe){.call.done = describe_done,
                                          .group = group,
                                          .type = GROUP_CLASSIC,
                                          .has_offsets = groups_listed(&d->listed, group),
                                          .all_metadata = true};
    coordinator_describe(c, &d->describe, now_ms);
    if (d->describe.other_type) {
        d->describe = (struct group_describe){
            .call.done = describe_done, .group = group, .type = GROUP_CONSUMER, .all_metadata = true};
        coordinator_describe(c, &d->describe, now_ms);
    }
    groups_call_end(hop);
}

static void delete_on_listed(struct op *op) {
    struct offset_deleting *d = container_of(op, struct offset_deleting, listed.op);
    d->hop.begin = delete_begin;
    op_init(&d->hop.op, d->request->loop, delete_on_back);
    request_waits_for(d->request, delete_on_back);
    groups_call(d->request->kafka->groups, &d->hop);
}

/* ---- the offsets ---- */

static enum status part_status(const struct offset_deleting *d, int32_t topic, int32_t partition) {
    if (d->subscribed[topic])
        return ST_IN_USE;
    return topic_name_is_valid(offset_delete_in(d->request)->topics[topic].name) && partition >= 0
               ? ST_OK
               : ST_NOT_FOUND;
}

/* The answer in the shape of the request, and a part for each partition. False: no memory, the request is closed. */
static bool delete_shape(struct offset_deleting *d) {
    struct request *r = d->request;
    const struct offset_delete_req *in = offset_delete_in(r);
    int32_t parts = 0, at = 0;
    for (int32_t i = 0; i < in->topics_count; i++)
        parts += in->topics[i].partitions_count;
    d->commit.parts = request_array(r, struct backend_commit_part, parts);
    if (!d->commit.parts)
        return false;
    d->commit.parts_count = parts;
    d->out.topics = request_array(r, struct offset_delete_res_topic, in->topics_count);
    if (!d->out.topics)
        return false;
    d->out.topics_count = in->topics_count;
    for (int32_t i = 0; i < in->topics_count; i++) {
        struct offset_delete_res_topic *topic = &d->out.topics[i];
        *topic = (struct offset_delete_res_topic){.name = in->topics[i].name};
        topic->partitions =
            request_array(r, struct offset_delete_res_partition, in->topics[i].partitions_count);
        if (!topic->partitions)
            return false;
        topic->partitions_count = in->topics[i].partitions_count;
        for (int32_t k = 0; k < topic->partitions_count; k++) {
            int32_t index = in->topics[i].partitions[k].partition_index;
            topic->partitions[k].partition_index = index;
            d->commit.parts[at++] = (struct backend_commit_part){.topic = in->topics[i].name,
                                                                 .partition = index,
                                                                 .offset = -1,
                                                                 .leader_epoch = -1,
                                                                 .status = part_status(d, i, index)};
        }
    }
    return true;
}

static void delete_on_back(struct op *op) {
    struct offset_deleting *d = container_of(op, struct offset_deleting, hop.op);
    struct request *r = d->request;
    if (d->out.error_code != KERR_NONE) {
        offset_delete_reply(r, &d->out);
        return;
    }
    if (!delete_shape(d))
        return;
    d->commit.group = offset_delete_in(r)->group_id;
    d->commit.deadline_ms = loop_now_ms(r->loop) + GROUP_VIEWS_MS;
    op_init(&d->commit.op, r->loop, delete_on_committed);
    request_waits_for(r, delete_on_committed);
    backend_commit(r->kafka->settings.backend, &d->commit);
}

static void delete_on_committed(struct op *op) {
    struct offset_deleting *d = container_of(op, struct offset_deleting, commit.op);
    const struct backend_commit_part *part = d->commit.parts;
    for (int32_t i = 0; i < d->out.topics_count; i++)
        for (int32_t k = 0; k < d->out.topics[i].partitions_count; k++, part++)
            d->out.topics[i].partitions[k].error_code =
                part->status == ST_IN_USE ? KERR_GROUP_SUBSCRIBED_TO_TOPIC : kerr_of_offsets(part->status);
    offset_delete_reply(d->request, &d->out);
}

void offset_delete_handle(struct request *r) {
    struct offset_deleting *d = request_take(r, 1, sizeof *d);
    if (!d)
        return;
    d->request = r;
    if (offset_delete_in(r)->group_id.len <= 0) {
        d->out.error_code = KERR_INVALID_GROUP_ID;
        offset_delete_reply(r, &d->out);
        return;
    }
    d->subscribed = request_array(r, bool, offset_delete_in(r)->topics_count);
    if (!d->subscribed)
        return;
    request_waits_for(r, delete_on_listed);
    groups_list_begin(r, &d->listed, delete_on_listed);
}
