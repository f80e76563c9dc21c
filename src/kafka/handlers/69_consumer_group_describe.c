/*
 * ConsumerGroupDescribe, v0-v1 (KIP-848): consumer groups, their members, what each one has and is to have. D11-98.
 *
 *   consumer_group_describe_handle -> [coordinator's loop] describe_begin -> describe_on_back: answer
 *
 * - A group of the classic protocol gets 69, and so does one that nobody knows: clients ask DescribeGroups then.
 * - A group asked for twice is answered twice.
 */
#include "kafka/errors.h"
#include "kafka/group_answer.h"
#include "kafka/group_topics.h"
#include "kafka/groups.h"
#include "kafka/request.h"

#define ANSWER_BYTES_MAX ((size_t)64 << 20)
#define MEMBER_CONSUMER  1 /* KIP-1099: not one of the classic protocol in such a group */

struct consumer_describing {
    struct request *request;
    struct groups_call hop;
    struct group_answer answer;
    struct consumer_group_describe_res out;
};

/* One group under way, on the coordinator's loop. */
struct consumer_describe_one {
    struct group_describe describe;
    struct consumer_describing *all;
    struct consumer_group_describe_res_group *out;
};

static void describe_on_back(struct op *op);

static void describe_at_end(struct request *r) {
    arena_release(&((struct consumer_describing *)r->state)->answer.arena);
}

/* ---- on the coordinator's loop ---- */

/* Partitions of topics that have no name any more are left out, as on Kafka. */
static struct consumer_group_describe_res_assignment *keep_parts(struct consumer_describing *d,
                                                                 struct group_parts parts) {
    struct consumer_group_describe_res_assignment *out = group_answer_take(&d->answer, 1, sizeof *out);
    struct consumer_group_describe_res_topic *topic = NULL;
    struct group_part part;
    int32_t topics_count, count;
    group_parts_count(parts, &topics_count, &count);
    struct consumer_group_describe_res_topic *topics =
        group_answer_take(&d->answer, topics_count, sizeof *topics);
    int32_t *indexes = group_answer_take(&d->answer, count, sizeof *indexes);
    while (!d->answer.no_memory && group_parts_next(&parts, &part)) {
        if (part.topic.len <= 0)
            continue;
        if (!topic || !uuid_equal(&topic->topic_id, &part.topic_id)) {
            topic = &topics[out->topic_partitions_count++];
            *topic = (struct consumer_group_describe_res_topic){.topic_id = part.topic_id,
                                                                .topic_name =
                                                                    group_answer_text(&d->answer, part.topic),
                                                                .partitions.items = indexes};
        }
        topic->partitions.count++;
        *indexes++ = part.part;
    }
    if (!d->answer.no_memory)
        out->topic_partitions = topics;
    return out;
}

static struct strs keep_topics(struct consumer_describing *d, const struct group_member_view *view) {
    struct strs out = {group_answer_take(&d->answer, view->topics_count, sizeof(struct str)), 0};
    while (!d->answer.no_memory && out.count < view->topics_count) {
        out.items[out.count] = group_answer_text(&d->answer, group_member_topic(view, out.count));
        out.count++;
    }
    return out;
}

static void members_copy(struct consumer_describe_one *one) {
    struct consumer_describing *d = one->all;
    struct group_member_view view;
    struct group_members members = one->describe.members;
    one->out->members = group_answer_take(&d->answer, members.count, sizeof *one->out->members);
    while (!d->answer.no_memory && group_members_next(&members, &view))
        one->out->members[one->out->members_count++] = (struct consumer_group_describe_res_member){
            .member_id = group_answer_text(&d->answer, view.id),
            .instance_id = group_answer_text(&d->answer, view.instance),
            .rack_id = group_answer_text(&d->answer, view.rack),
            .member_epoch = view.epoch,
            .client_id = group_answer_some_text(&d->answer, view.client_id),
            .client_host = group_answer_some_text(&d->answer, view.client_host),
            .subscribed_topic_names = keep_topics(d, &view),
            .subscribed_topic_regex = group_answer_some_text(&d->answer, view.pattern),
            .assignment = keep_parts(d, view.assigned),
            .target_assignment = keep_parts(d, view.target),
            .member_type = MEMBER_CONSUMER,
        };
}

static void describe_done(struct group_call *call) {
    struct consumer_describe_one *one = container_of(call, struct consumer_describe_one, describe.call);
    const struct group_describe *view = &one->describe;
    const struct str id = one->out->group_id;
    one->out->error_code = kerr_of_group(call->outcome);
    if (call->outcome == GROUP_ID_NOT_FOUND) {
        one->out->error_message =
            arena_printf(&one->all->answer.arena,
                         view->other_type ? "Group %.*s is not a consumer group." : "Group %.*s not found.",
                         (int)id.len, id.ptr);
    } else if (call->outcome == GROUP_OK) {
        one->out->group_state = str_of(group_state_text(view->state)); /* static text */
        one->out->group_epoch = view->generation;
        one->out->assignment_epoch = view->target_epoch;
        one->out->assignor_name = group_answer_text(&one->all->answer, view->protocol);
        if (consumer_group_describe_in(one->all->request)->include_authorized_operations)
            one->out->authorized_operations = GROUP_OPERATIONS_ALL;
        members_copy(one);
    }
}

static void describe_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    struct consumer_describing *d = container_of(hop, struct consumer_describing, hop);
    for (int32_t i = 0; i < d->out.groups_count; i++) {
        struct consumer_describe_one one = {.all = d, .out = &d->out.groups[i]};
        if (one.out->group_id.len == 0) {
            one.out->error_code = KERR_INVALID_GROUP_ID;
            continue;
        }
        one.describe.call.done = describe_done;
        one.describe.group = one.out->group_id;
        one.describe.type = GROUP_CONSUMER;
        coordinator_describe(c, &one.describe, now_ms);
    }
    groups_call_end(hop);
}

/* ---- and back ---- */

static void describe_on_back(struct op *op) {
    struct consumer_describing *d = container_of(op, struct consumer_describing, hop.op);
    if (d->answer.no_memory)
        request_close(d->request, status_text(ST_NO_MEMORY));
    else
        consumer_group_describe_reply(d->request, &d->out);
}

void consumer_group_describe_handle(struct request *r) {
    const struct consumer_group_describe_req *in = consumer_group_describe_in(r);
    struct consumer_describing *d = request_take(r, 1, sizeof *d);
    if (!d)
        return;
    d->request = r;
    d->out.groups = request_array(r, struct consumer_group_describe_res_group, in->group_ids.count);
    if (!d->out.groups)
        return;
    d->out.groups_count = in->group_ids.count;
    for (int32_t i = 0; i < in->group_ids.count; i++)
        d->out.groups[i] = (struct consumer_group_describe_res_group){.group_id = in->group_ids.items[i],
                                                                      .error_message = STR_NULL,
                                                                      .group_state = STR(""),
                                                                      .assignor_name = STR(""),
                                                                      .authorized_operations = INT32_MIN};
    group_answer_init(&d->answer, ANSWER_BYTES_MAX);
    r->state = d;
    r->at_end = describe_at_end;
    d->hop.begin = describe_begin;
    op_init(&d->hop.op, r->loop, describe_on_back);
    request_waits_for(r, describe_on_back);
    groups_call(r->kafka->groups, &d->hop);
}
