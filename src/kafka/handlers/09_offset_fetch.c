/*
 * OffsetFetch, v1-v9: from where a group's members read on.
 *
 *   offset_fetch_handle -> offset_fetch_on_turn -> [v9, members: the coordinator's loop] checks_begin -> offset_fetch_on_checked
 *                       -> offset_fetch_next -> backend_committed -> offset_fetch_on_read
 *                                ^                                        |
 *                                +--- the next group (v8+) ---------------+--> all are there: answer
 *
 * - It waits for what its connection sent before it: a client that commits and then asks is told what it committed.
 * - What nobody committed is -1 and no error (D12-12). What could not be read is never taken for that: the consumer would begin
 *   anew. So it fails the whole group: at the top from v2 on, on each partition in v1 (D12-13).
 * - Null topics (v2+) are all that the group has committed (D12-11).
 * - A member of a consumer group that names itself (v9) must be there, and of that epoch (D11-95). require_stable (v7+) changes
 *   nothing (D12-14).
 * - v10 names topics by id, and is not served.
 */
#include "base/clock.h"
#include "kafka/admin.h"
#include "kafka/errors.h"
#include "kafka/groups.h"
#include "kafka/request.h"
#include "kafka/topic_name.h"

#define FETCH_WAIT_MS       3000 /* D12-20 */
#define SEVERAL_GROUPS_FROM 8
#define TOP_CODE_FROM       2
#define MEMBERS_FROM        9

struct offset_fetch {
    struct request *request;
    const struct offset_fetch_req_group *groups; /* those of the request, or the one of v1-v7 */
    struct offset_fetch_res_group *answers;      /* in the same order */
    int32_t groups_count, at;
    struct groups_call hop;
    struct group_check *checks;         /* of each group; NULL: none names a member */
    struct backend_committed committed; /* of the group at `at` */
};

static void offset_fetch_on_turn(struct request *r);
static void offset_fetch_on_checked(struct op *op);
static void offset_fetch_next(struct offset_fetch *f);
static void offset_fetch_on_read(struct op *op);

/* ---- what is asked ---- */

/* The group of v1-v7 as one of v8. NULL: the request has been closed. */
static struct offset_fetch_req_group *only_group(struct request *r) {
    const struct offset_fetch_req *in = offset_fetch_in(r);
    struct offset_fetch_req_group *group = request_array(r, struct offset_fetch_req_group, 1);
    if (!group)
        return NULL;
    *group = (struct offset_fetch_req_group){.group_id = in->group_id, .topics_count = in->topics_count};
    if (in->topics_count < 0)
        return group;
    group->topics = request_array(r, struct offset_fetch_req_group_topic, in->topics_count);
    if (!group->topics)
        return NULL;
    for (int32_t t = 0; t < in->topics_count; t++)
        group->topics[t] = (struct offset_fetch_req_group_topic){
            .name = in->topics[t].name, .partition_indexes = in->topics[t].partition_indexes};
    return group;
}

void offset_fetch_handle(struct request *r) {
    const struct offset_fetch_req *in = offset_fetch_in(r);
    bool several = r->version >= SEVERAL_GROUPS_FROM;
    struct offset_fetch *f = request_array(r, struct offset_fetch, 1);
    if (!f)
        return;
    f->request = r;
    f->groups = several ? in->groups : only_group(r);
    if (!several && !f->groups)
        return;
    f->groups_count = several ? in->groups_count : 1;
    f->answers = request_array(r, struct offset_fetch_res_group, f->groups_count);
    if (!f->answers)
        return;
    r->state = f;
    admin_allow_listing(r);
    request_waits_for(r, offset_fetch_on_turn);
    if (request_has_turn(r, offset_fetch_on_turn))
        offset_fetch_on_turn(r);
}

/* ---- may its members? ---- */

static bool members_are_named(const struct offset_fetch *f) {
    bool named = false;
    for (int32_t i = 0; f->request->version >= MEMBERS_FROM && i < f->groups_count; i++)
        named = named || f->groups[i].member_id.len > 0 || f->groups[i].member_epoch >= 0;
    return named;
}

static void check_done(struct group_call *call) {
    (void)call; /* a check never waits: all are done when checks_begin ends */
}

/* On the coordinator's loop. */
static void checks_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    struct offset_fetch *f = container_of(hop, struct offset_fetch, hop);
    for (int32_t i = 0; i < f->groups_count; i++) {
        f->checks[i] = (struct group_check){.call.done = check_done,
                                            .group = f->groups[i].group_id,
                                            .member = f->groups[i].member_id,
                                            .instance = STR_NULL,
                                            .generation = f->groups[i].member_epoch,
                                            .fetch = true,
                                            .knows_epochs = true};
        coordinator_check(c, &f->checks[i], now_ms);
    }
    groups_call_end(hop);
}

static void offset_fetch_on_turn(struct request *r) {
    struct offset_fetch *f = r->state;
    f->committed.arena = &r->arena;
    f->committed.deadline_ms = clock_ms() + FETCH_WAIT_MS;
    if (!members_are_named(f)) {
        offset_fetch_next(f);
        return;
    }
    f->checks = request_array(r, struct group_check, f->groups_count);
    if (!f->checks)
        return;
    f->hop.begin = checks_begin;
    op_init(&f->hop.op, r->loop, offset_fetch_on_checked);
    request_waits_for(r, offset_fetch_on_checked);
    groups_call(r->kafka->groups, &f->hop);
}

static void offset_fetch_on_checked(struct op *op) {
    offset_fetch_next(container_of(op, struct offset_fetch, hop.op));
}

/* A part for each partition of the group, in wire order. NULL: the request has been closed. */
static struct backend_committed_part *parts_of(struct request *r, const struct offset_fetch_req_group *group,
                                               int32_t *count_out) {
    int32_t count = 0;
    for (int32_t t = 0; t < group->topics_count; t++)
        count += group->topics[t].partition_indexes.count;
    struct backend_committed_part *parts = request_array(r, struct backend_committed_part, count);
    struct backend_committed_part *part = parts;
    for (int32_t t = 0; parts && t < group->topics_count; t++)
        for (int32_t i = 0; i < group->topics[t].partition_indexes.count; i++)
            *part++ =
                (struct backend_committed_part){.topic = group->topics[t].name,
                                                .partition = group->topics[t].partition_indexes.items[i],
                                                .leader_epoch = -1,
                                                .offset = -1,
                                                .metadata = STR("")};
    *count_out = count;
    return parts;
}

/* What can't be there need not be asked for (D12-12). */
static void parts_check(const struct request *r, struct backend_committed *c) {
    for (int32_t i = 0; !request_meets_stub(r) && i < c->parts_count; i++)
        if (!topic_name_is_valid(c->parts[i].topic) || c->parts[i].partition < 0)
            c->parts[i].status = ST_NOT_FOUND;
}

/* ---- the answer ---- */

/* What a group asked for, each partition with its part or, where parts is NULL, with the same code. False: closed. */
static bool group_fill(struct offset_fetch *f, const struct backend_committed_part *parts, int16_t code) {
    const struct offset_fetch_req_group *group = &f->groups[f->at];
    struct offset_fetch_res_group *out = &f->answers[f->at];
    out->topics = request_array(f->request, struct offset_fetch_res_group_topic, group->topics_count);
    if (!out->topics)
        return false;
    out->topics_count = group->topics_count;
    for (int32_t t = 0; t < group->topics_count; t++) {
        int32_t count = group->topics[t].partition_indexes.count;
        struct offset_fetch_res_group_partition *to =
            request_array(f->request, struct offset_fetch_res_group_partition, count);
        if (!to)
            return false;
        for (int32_t i = 0; i < count; i++) {
            to[i] = (struct offset_fetch_res_group_partition){group->topics[t].partition_indexes.items[i], -1,
                                                              -1, STR(""), code};
            if (!parts)
                continue;
            to[i].committed_offset = parts->offset;
            to[i].committed_leader_epoch = parts->leader_epoch;
            to[i].metadata = parts->metadata;
            parts++;
        }
        out->topics[t] = (struct offset_fetch_res_group_topic){
            .name = group->topics[t].name, .partitions = to, .partitions_count = count};
    }
    return true;
}

/* All that was found, which comes topic by topic. False: closed. */
static bool list_fill(struct offset_fetch *f) {
    const struct backend_committed *c = &f->committed;
    struct offset_fetch_res_group *out = &f->answers[f->at];
    struct offset_fetch_res_group_topic *topic = NULL;
    out->topics = request_array(f->request, struct offset_fetch_res_group_topic, c->parts_count);
    struct offset_fetch_res_group_partition *to =
        out->topics ? request_array(f->request, struct offset_fetch_res_group_partition, c->parts_count)
                    : NULL;
    if (!to)
        return false;
    for (int32_t i = 0; i < c->parts_count; i++, to++) {
        const struct backend_committed_part *part = &c->parts[i];
        *to = (struct offset_fetch_res_group_partition){part->partition, part->offset, part->leader_epoch,
                                                        part->metadata, KERR_NONE};
        if (!topic || !str_equal(topic->name, part->topic)) {
            topic = &out->topics[out->topics_count++];
            *topic = (struct offset_fetch_res_group_topic){.name = part->topic, .partitions = to};
        }
        topic->partitions_count++;
    }
    return true;
}

/* The whole group has failed. False: closed. */
static bool group_refuse(struct offset_fetch *f, int16_t code) {
    f->answers[f->at].error_code = code;
    return f->request->version >= TOP_CODE_FROM || group_fill(f, NULL, code);
}

/* v1-v7: the only group's answer stands in fields of its own. */
static void offset_fetch_answer_one(struct request *r, const struct offset_fetch_res_group *group) {
    struct offset_fetch_res out = {.topics =
                                       request_array(r, struct offset_fetch_res_topic, group->topics_count),
                                   .topics_count = group->topics_count,
                                   .error_code = group->error_code};
    if (!out.topics)
        return;
    for (int32_t t = 0; t < group->topics_count; t++) {
        const struct offset_fetch_res_group_topic *from = &group->topics[t];
        struct offset_fetch_res_partition *to =
            request_array(r, struct offset_fetch_res_partition, from->partitions_count);
        if (!to)
            return;
        for (int32_t i = 0; i < from->partitions_count; i++)
            to[i] = (struct offset_fetch_res_partition){
                from->partitions[i].partition_index, from->partitions[i].committed_offset,
                from->partitions[i].committed_leader_epoch, from->partitions[i].metadata,
                from->partitions[i].error_code};
        out.topics[t] = (struct offset_fetch_res_topic){from->name, to, from->partitions_count};
    }
    offset_fetch_reply(r, &out);
}

static void offset_fetch_answer(struct offset_fetch *f) {
    if (f->request->version < SEVERAL_GROUPS_FROM)
        offset_fetch_answer_one(f->request, &f->answers[0]);
    else
        offset_fetch_reply(f->request,
                           &(struct offset_fetch_res){.groups = f->answers, .groups_count = f->groups_count});
}

/* ---- one group after the other ---- */

static void offset_fetch_ask(struct offset_fetch *f, const struct offset_fetch_req_group *group) {
    struct request *r = f->request;
    struct backend_committed *c = &f->committed;
    c->group = group->group_id;
    c->all = group->topics_count < 0;
    c->parts_count = 0;
    c->parts = c->all ? NULL : parts_of(r, group, &c->parts_count);
    if (!c->all && !c->parts)
        return;
    parts_check(r, c);
    op_init(&c->op, r->loop, offset_fetch_on_read);

    request_waits_for(r, offset_fetch_on_read);
    backend_committed(r->kafka->settings.backend, c);
}

/* What the group is refused with before anything is read. */
static int16_t group_code(const struct offset_fetch *f) {
    struct str id = f->groups[f->at].group_id;
    if (id.len < 1 || id.len > BACKEND_GROUP_BYTES_MAX)
        return KERR_INVALID_GROUP_ID;
    return f->checks ? kerr_of_group(f->checks[f->at].call.outcome) : KERR_NONE;
}

static void offset_fetch_next(struct offset_fetch *f) {
    for (; f->at < f->groups_count; f->at++) {
        struct str id = f->groups[f->at].group_id;
        int16_t code = group_code(f);
        f->answers[f->at].group_id = id;
        if (!code) {
            offset_fetch_ask(f, &f->groups[f->at]);
            return;
        }
        if (!group_refuse(f, code))
            return;
    }
    offset_fetch_answer(f);
}

/* What has become of the group's read: ST_OK, or the first thing that nobody knows. */
static enum status read_status(const struct backend_committed *c) {
    if (c->all)
        return c->status;
    for (int32_t i = 0; i < c->parts_count; i++)
        if (c->parts[i].status && c->parts[i].status != ST_NOT_FOUND)
            return c->parts[i].status;
    return ST_OK;
}

static void offset_fetch_on_read(struct op *op) {
    struct offset_fetch *f = container_of(op, struct offset_fetch, committed.op);
    enum status st = read_status(&f->committed);
    bool open = st                 ? group_refuse(f, kerr_of_offsets(st))
                : f->committed.all ? list_fill(f)
                                   : group_fill(f, f->committed.parts, KERR_NONE);
    if (!open)
        return;
    f->at++;
    offset_fetch_next(f);
}
