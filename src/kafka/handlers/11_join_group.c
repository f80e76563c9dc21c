/*
 * JoinGroup, v0-v9: a client becomes a member of a classic group, or comes back to it, and waits until the others have too. D11-20 to D11-30.
 *
 *   join_group_handle -> [coordinator's loop] join_begin .. join_done: what it says is copied -> join_on_back: answer
 *
 * - Parked means: in the coordinator, until the generation is there. A client that leaves gives the call up; a server that stops answers 16.
 * - Members and their metadata go to the leader alone.
 */
#include "kafka/errors.h"
#include "kafka/group_answer.h"
#include "kafka/groups.h"
#include "kafka/request.h"

#define ID_FIRST_FROM     4
#define CHOSEN_TYPE_FROM  7
#define CAN_SKIP_FROM     9
#define MEMBERS_BYTES_MAX ((size_t)64 << 20) /* the coordinator's own limit is far below */

struct joining {
    struct request *request;
    struct groups_call hop;
    struct group_join join;
    struct group_answer answer;
    struct join_group_res out;
};

static void join_at_end(struct request *r) {
    arena_release(&((struct joining *)r->state)->answer.arena);
}

static void members_copy(struct joining *j) {
    struct group_member_view view;
    struct group_members members = j->join.members;
    j->out.members = group_answer_take(&j->answer, members.count, sizeof *j->out.members);
    while (!j->answer.no_memory && group_members_next(&members, &view))
        j->out.members[j->out.members_count++] = (struct join_group_res_member){
            .member_id = group_answer_text(&j->answer, view.id),
            .group_instance_id = group_answer_text(&j->answer, view.instance),
            .metadata = group_answer_bytes(&j->answer, view.metadata),
        };
}

/* On the coordinator's loop. */
static void join_done(struct group_call *call) {
    struct joining *j = container_of(call, struct joining, join.call);
    const struct group_join *join = &j->join;
    j->out = (struct join_group_res){
        .error_code = kerr_of_group(call->outcome),
        .generation_id = join->generation,
        .leader = group_answer_text(&j->answer, join->leader),
        .member_id = group_answer_text(&j->answer, join->member_id),
        .protocol_name = group_answer_text(&j->answer, join->protocol_name),
        .protocol_type = group_answer_text(&j->answer, join->chosen_type),
        .skip_assignment = join->skip_assignment,
    };
    members_copy(j);
    if (j->answer.no_memory)
        j->out = (struct join_group_res){.error_code = KERR_COORDINATOR_NOT_AVAILABLE,
                                         .generation_id = -1,
                                         .leader = STR(""),
                                         .member_id = STR(""),
                                         .protocol_name = STR_NULL,
                                         .protocol_type = STR_NULL};
    groups_call_end(&j->hop);
}

static void join_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    coordinator_join(c, &container_of(hop, struct joining, hop)->join, now_ms);
}

static void join_on_back(struct op *op) {
    struct joining *j = container_of(op, struct joining, hop.op);
    struct request *r = j->request;
    r->parked = NULL;
    if (r->version < CHOSEN_TYPE_FROM && j->out.protocol_name.len < 0)
        j->out.protocol_name = STR("");
    join_group_reply(r, &j->out);
}

static bool protocols_take(struct request *r, struct group_join *join) {
    const struct join_group_req *in = join_group_in(r);
    struct group_protocol *protocols = request_array(r, struct group_protocol, in->protocols_count);
    if (!protocols)
        return false;
    for (int32_t i = 0; i < in->protocols_count; i++)
        protocols[i] = (struct group_protocol){in->protocols[i].name, in->protocols[i].metadata};
    join->protocols = protocols;
    join->protocols_count = in->protocols_count;
    return true;
}

void join_group_handle(struct request *r) {
    const struct join_group_req *in = join_group_in(r);
    struct joining *j = request_take(r, 1, sizeof *j);
    if (!j)
        return;
    j->request = r;
    j->join = (struct group_join){
        .call.done = join_done,
        .group = in->group_id,
        .member = in->member_id,
        .instance = in->group_instance_id,
        .client_id = r->client_id,
        .host = request_client_host(r),
        .session_ms = in->session_timeout_ms,
        .rebalance_ms = in->rebalance_timeout_ms,
        .protocol_type = in->protocol_type,
        .id_first = r->version >= ID_FIRST_FROM,
        .can_skip_assignment = r->version >= CAN_SKIP_FROM,
    };
    if (!protocols_take(r, &j->join))
        return;
    group_answer_init(&j->answer, MEMBERS_BYTES_MAX);
    r->state = j;
    r->at_end = join_at_end;
    j->hop.begin = join_begin;
    j->hop.waits = &j->join.call;
    op_init(&j->hop.op, r->loop, join_on_back);
    request_waits_for(r, join_on_back);
    r->parked = &j->hop.op;
    groups_call(r->kafka->groups, &j->hop);
}
