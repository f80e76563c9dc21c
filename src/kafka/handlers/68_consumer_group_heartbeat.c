/*
 * ConsumerGroupHeartbeat, v0-v1 (KIP-848): a member of a consumer group comes, says what it reads and owns, is told what to have, and goes.
 * D11-90 to D11-99.
 *
 *   consumer_group_heartbeat_handle -> [it has a pattern: in the pool pattern_new -> heartbeat_on_checked]
 *                                   -> [topics are named: backend_topics -> heartbeat_on_topics]
 *                                   -> [coordinator's loop] heartbeat_begin .. heartbeat_done: what it says is copied -> heartbeat_on_back: answer
 *
 * - The coordinator doesn't wait for topics: a heartbeat brings what it names, others look again from time to time (group_topics.h).
 * - An error has no member id and no interval, as on Kafka. From v1 on a member brings its id (KIP-1082).
 * - Nor does it compile patterns, which may take milliseconds; what they match is known to later heartbeats (group_patterns.h).
 */
#include "kafka/errors.h"
#include "kafka/group_answer.h"
#include "kafka/group_patterns.h"
#include "kafka/groups.h"
#include "kafka/pattern.h"
#include "kafka/request.h"
#include "kafka/topic_name.h"
#include "net/work.h"

#define LOOK_WAIT_MS   3000
#define MEMBER_ID_FROM 1
#define NAMES_BYTES_MAX \
    (64 << 10) /* D11-80: with more the coordinator refuses, or group_topics.h looks them up later */
#define ANSWER_BYTES_MAX ((size_t)16 << 20)

struct consumer_beating {
    struct request *request;
    struct op checked; /* the pattern; its status is pattern_new's */
    struct work work;
    const char *pattern_problem;
    struct backend_topics topics; /* that it names; none: parts_count 0 */
    struct groups_call hop;
    struct group_consumer_heartbeat heartbeat;
    struct group_answer answer;
    struct consumer_group_heartbeat_res out;
    struct consumer_group_heartbeat_res_assignment assignment;
};

static bool beating_take(struct consumer_beating *b);
static void heartbeat_check(struct work *work);
static void heartbeat_on_checked(struct op *op);
static void heartbeat_find_topics(struct consumer_beating *b);
static bool beating_look_up(struct consumer_beating *b);
static void heartbeat_on_topics(struct op *op);
static void heartbeat_ask(struct consumer_beating *b);
static void heartbeat_on_back(struct op *op);

static void heartbeat_at_end(struct request *r) {
    arena_release(&((struct consumer_beating *)r->state)->answer.arena);
}

/* ---- errors: the texts are Kafka's, where it can be told what is wrong ---- */

/* What is wrong with the first heartbeat of a member, or one that begins again; NULL: nothing. */
static const char *joining_problem(const struct request *r) {
    const struct consumer_group_heartbeat_req *in = consumer_group_heartbeat_in(r);
    if (in->rebalance_timeout_ms == -1)
        return "RebalanceTimeoutMs must be provided in first request.";
    if (in->topic_partitions_count != 0)
        return "TopicPartitions must be empty when (re-)joining.";
    if (in->subscribed_topic_names.count < 0 && in->subscribed_topic_regex.len < 0)
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.";
    return NULL;
}

/* D11-90, in Kafka's order; NULL: nothing. */
static const char *shape_problem(const struct request *r) {
    const struct consumer_group_heartbeat_req *in = consumer_group_heartbeat_in(r);
    bool needs_id = r->version >= MEMBER_ID_FROM || in->member_epoch != 0;
    if (needs_id && in->member_id.len == 0)
        return "MemberId can't be empty.";
    if (in->group_id.len == 0)
        return "GroupId can't be empty.";
    if (in->instance_id.len == 0)
        return "InstanceId can't be empty.";
    if (in->rack_id.len == 0)
        return "RackId can't be empty.";
    if (in->member_epoch == 0)
        return joining_problem(r);
    if (in->member_epoch == -2 && in->instance_id.len < 0)
        return "InstanceId can't be null.";
    return in->member_epoch < -2 ? "MemberEpoch is invalid." : NULL;
}

/* pattern_problem: what is wrong with the pattern, as far as that could be seen; NULL: nothing. */
static struct str error_text(struct request *r, int16_t code, const char *pattern_problem) {
    const struct consumer_group_heartbeat_req *in = consumer_group_heartbeat_in(r);
    struct arena *a = &r->arena;
    switch (code) {
    case KERR_UNKNOWN_MEMBER_ID:
        return arena_printf(a, "Member %.*s is not a member of group %.*s.", (int)in->member_id.len,
                            in->member_id.ptr, (int)in->group_id.len, in->group_id.ptr);
    case KERR_GROUP_ID_NOT_FOUND:
        return arena_printf(a, "Group %.*s is not a consumer group.", (int)in->group_id.len,
                            in->group_id.ptr);
    case KERR_UNSUPPORTED_ASSIGNOR:
        return arena_printf(a, "ServerAssignor %.*s is not supported. Supported assignors: uniform, range.",
                            (int)in->server_assignor.len, in->server_assignor.ptr);
    case KERR_FENCED_MEMBER_EPOCH:
        return STR(
            "The member epoch is not the one known by the group coordinator. The member must abandon all its "
            "partitions and rejoin.");
    case KERR_UNRELEASED_INSTANCE_ID:
        return STR("The instance id is owned by another member, which has not left.");
    case KERR_FENCED_INSTANCE_ID:
        return STR("The instance id belongs to another member.");
    case KERR_GROUP_MAX_SIZE_REACHED:
        return STR("The consumer group has reached its maximum capacity.");
    case KERR_INVALID_REGULAR_EXPRESSION:
        return arena_printf(a, "SubscribedTopicRegex `%.*s` is not a valid regular expression: %s.",
                            (int)in->subscribed_topic_regex.len, in->subscribed_topic_regex.ptr,
                            pattern_problem ? pattern_problem : "matching takes too long");
    case KERR_INVALID_REQUEST:
        return STR("The heartbeat is larger than this server allows.");
    default:
        return STR_NULL;
    }
}

static void heartbeat_refuse(struct request *r, int16_t code, struct str message) {
    consumer_group_heartbeat_reply(r, &(struct consumer_group_heartbeat_res){.error_code = code,
                                                                             .error_message = message,
                                                                             .member_id = STR_NULL});
}

/* ---- the road ---- */

void consumer_group_heartbeat_handle(struct request *r) {
    const char *problem = shape_problem(r);
    if (problem) {
        heartbeat_refuse(r, KERR_INVALID_REQUEST, str_of(problem));
        return;
    }
    struct consumer_beating *b = request_take(r, 1, sizeof *b);
    if (!b)
        return;
    b->request = r;
    group_answer_init(&b->answer, ANSWER_BYTES_MAX);
    r->state = b;
    r->at_end = heartbeat_at_end;
    if (!beating_take(b))
        return;
    if (b->heartbeat.regex.len <= 0 || b->heartbeat.epoch < 0) {
        heartbeat_find_topics(b);
        return;
    }
    op_init(&b->checked, r->loop, heartbeat_on_checked);
    op_start(&b->checked, NULL);
    request_waits_for(r, heartbeat_on_checked);
    work_submit(&b->work, heartbeat_check);
}

/* In the pool. */
static void heartbeat_check(struct work *work) {
    struct consumer_beating *b = container_of(work, struct consumer_beating, work);
    struct pattern *p = NULL;
    enum status st = pattern_new(b->heartbeat.regex, &p, &b->pattern_problem);
    pattern_free(p);
    op_complete(&b->checked, st);
}

static void heartbeat_on_checked(struct op *op) {
    heartbeat_find_topics(container_of(op, struct consumer_beating, checked));
}

static void heartbeat_find_topics(struct consumer_beating *b) {
    struct request *r = b->request;
    if (!beating_look_up(b))
        return;
    if (b->topics.parts_count == 0) {
        heartbeat_ask(b);
        return;
    }
    op_init(&b->topics.op, r->loop, heartbeat_on_topics);
    request_waits_for(r, heartbeat_on_topics);
    backend_topics(r->kafka->settings.backend, &b->topics);
}

/* False: the request has been closed. */
static bool beating_take(struct consumer_beating *b) {
    struct request *r = b->request;
    const struct consumer_group_heartbeat_req *in = consumer_group_heartbeat_in(r);
    int32_t count = in->topic_partitions_count;
    struct group_topic_parts *owned = request_array(r, struct group_topic_parts, count > 0 ? count : 0);
    if (!owned)
        return false;
    for (int32_t i = 0; i < count; i++)
        owned[i] = (struct group_topic_parts){.topic_id = in->topic_partitions[i].topic_id,
                                              .parts = in->topic_partitions[i].partitions.items,
                                              .parts_count = in->topic_partitions[i].partitions.count};
    b->heartbeat = (struct group_consumer_heartbeat){
        .group = in->group_id,
        .member = in->member_id,
        .instance = in->instance_id,
        .rack = in->rack_id,
        .client_id = r->client_id,
        .host = request_client_host(r),
        .epoch = in->member_epoch,
        .rebalance_ms = in->rebalance_timeout_ms,
        .topics = in->subscribed_topic_names.items,
        .topics_count = in->subscribed_topic_names.count,
        .regex = in->subscribed_topic_regex,
        .assignor = in->server_assignor,
        .owned = owned,
        .owned_count = count,
    };
    return true;
}

/* The topics that have to be looked up first: all that are named, unless the heartbeat leaves or is refused anyway. False: closed. */
static bool beating_look_up(struct consumer_beating *b) {
    struct request *r = b->request;
    const struct strs *names = &consumer_group_heartbeat_in(r)->subscribed_topic_names;
    int64_t bytes = 0;
    for (int32_t i = 0; i < names->count; i++)
        bytes += names->items[i].len;
    if (names->count <= 0 || bytes > NAMES_BYTES_MAX || b->heartbeat.epoch < 0)
        return true;
    b->topics = (struct backend_topics){.arena = &b->answer.arena,
                                        .parts = request_array(r, struct backend_topics_part, names->count),
                                        .parts_count = names->count,
                                        .deadline_ms = r->arrived_ms + LOOK_WAIT_MS};
    if (!b->topics.parts)
        return false;
    for (int32_t i = 0; i < names->count; i++)
        b->topics.parts[i] = (struct backend_topics_part){
            .name = names->items[i], .status = topic_name_is_valid(names->items[i]) ? ST_OK : ST_BAD_NAME};
    return true;
}

static void heartbeat_on_topics(struct op *op) {
    heartbeat_ask(container_of(op, struct consumer_beating, topics.op));
}

/* ---- on the coordinator's loop ---- */

static void assignment_copy(struct consumer_beating *b) {
    struct group_parts parts = b->heartbeat.assignment;
    struct consumer_group_heartbeat_res_topic *topic = NULL;
    struct group_part part;
    int32_t topics_count, count;
    group_parts_count(parts, &topics_count, &count);
    b->assignment.topic_partitions =
        group_answer_take(&b->answer, topics_count, sizeof *b->assignment.topic_partitions);
    int32_t *indexes = group_answer_take(&b->answer, count, sizeof *indexes);
    while (!b->answer.no_memory && group_parts_next(&parts, &part)) {
        if (!topic || !uuid_equal(&topic->topic_id, &part.topic_id)) {
            topic = &b->assignment.topic_partitions[b->assignment.topic_partitions_count++];
            *topic = (struct consumer_group_heartbeat_res_topic){.topic_id = part.topic_id,
                                                                 .partitions.items = indexes};
        }
        topic->partitions.count++;
        *indexes++ = part.part;
    }
    b->out.assignment = &b->assignment;
}

static void heartbeat_done(struct group_call *call) {
    struct consumer_beating *b = container_of(call, struct consumer_beating, heartbeat.call);
    const struct group_consumer_heartbeat *h = &b->heartbeat;
    b->out = (struct consumer_group_heartbeat_res){
        .error_code = kerr_of_group(call->outcome), .error_message = STR_NULL, .member_id = STR_NULL};
    if (call->outcome == GROUP_OK) {
        b->out.member_id = group_answer_text(&b->answer, h->member_id);
        b->out.member_epoch = h->member_epoch;
        b->out.heartbeat_interval_ms = h->heartbeat_ms;
        if (h->has_assignment)
            assignment_copy(b);
    }
}

static void heartbeat_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    struct consumer_beating *b = container_of(hop, struct consumer_beating, hop);
    struct group_topics *topics = b->request->kafka->group_topics;
    struct group_patterns *patterns = group_topics_patterns(topics);
    group_topics_put(topics, c, b->topics.parts, b->topics.parts_count, now_ms);
    group_patterns_offer(patterns, b->heartbeat.regex, b->checked.status, now_ms);
    coordinator_consumer_heartbeat(c, &b->heartbeat, now_ms);
    group_patterns_offer(patterns, STR_NULL, ST_OK, now_ms); /* the request's text goes */
    group_topics_tend(topics, now_ms);
    groups_call_end(hop);
}

/* ---- and back ---- */

static void heartbeat_ask(struct consumer_beating *b) {
    struct request *r = b->request;
    b->heartbeat.call.done = heartbeat_done; /* it never waits */
    b->hop.begin = heartbeat_begin;
    op_init(&b->hop.op, r->loop, heartbeat_on_back);
    request_waits_for(r, heartbeat_on_back);
    groups_call(r->kafka->groups, &b->hop);
}

static void heartbeat_on_back(struct op *op) {
    struct consumer_beating *b = container_of(op, struct consumer_beating, hop.op);
    struct request *r = b->request;
    if (b->answer.no_memory)
        request_close(r, status_text(ST_NO_MEMORY));
    else if (b->out.error_code)
        heartbeat_refuse(r, b->out.error_code, error_text(r, b->out.error_code, b->pattern_problem));
    else
        consumer_group_heartbeat_reply(r, &b->out);
}
