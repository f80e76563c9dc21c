/*
 * SyncGroup, v0-v5: the leader of a classic group brings what each member is to read, the others fetch theirs. D11-40.
 * Parked means: in the coordinator, until the leader has come.
 */
#include "kafka/errors.h"
#include "kafka/group_answer.h"
#include "kafka/groups.h"
#include "kafka/request.h"

#define PROTOCOL_FROM    5
#define ANSWER_BYTES_MAX ((size_t)4 << 20) /* the coordinator's own limit is below */

struct syncing {
    struct request *request;
    struct groups_call hop;
    struct group_sync sync;
    struct group_answer answer;
    struct sync_group_res out;
};

static void sync_at_end(struct request *r) {
    arena_release(&((struct syncing *)r->state)->answer.arena);
}

/* On the coordinator's loop. */
static void sync_done(struct group_call *call) {
    struct syncing *s = container_of(call, struct syncing, sync.call);
    s->out = (struct sync_group_res){
        .error_code = kerr_of_group(call->outcome),
        .protocol_type = group_answer_text(&s->answer, s->sync.chosen_type),
        .protocol_name = group_answer_text(&s->answer, s->sync.chosen_name),
        .assignment = group_answer_bytes(&s->answer, s->sync.assignment),
    };
    if (s->answer.no_memory)
        s->out.error_code = KERR_COORDINATOR_NOT_AVAILABLE;
    groups_call_end(&s->hop);
}

static void sync_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    coordinator_sync(c, &container_of(hop, struct syncing, hop)->sync, now_ms);
}

static void sync_on_back(struct op *op) {
    struct syncing *s = container_of(op, struct syncing, hop.op);
    s->request->parked = NULL;
    sync_group_reply(s->request, &s->out);
}

static bool assignments_take(struct request *r, struct group_sync *sync) {
    const struct sync_group_req *in = sync_group_in(r);
    struct group_assignment *all = request_array(r, struct group_assignment, in->assignments_count);
    if (!all)
        return false;
    for (int32_t i = 0; i < in->assignments_count; i++)
        all[i] = (struct group_assignment){in->assignments[i].member_id, in->assignments[i].assignment};
    sync->assignments = all;
    sync->assignments_count = in->assignments_count;
    return true;
}

void sync_group_handle(struct request *r) {
    const struct sync_group_req *in = sync_group_in(r);
    struct syncing *s = request_take(r, 1, sizeof *s);
    if (!s)
        return;
    s->request = r;
    s->sync = (struct group_sync){
        .call.done = sync_done,
        .group = in->group_id,
        .member = in->member_id,
        .instance = in->group_instance_id,
        .generation = in->generation_id,
        .names_protocol = r->version >= PROTOCOL_FROM,
        .protocol_type = in->protocol_type,
        .protocol_name = in->protocol_name,
    };
    if (!assignments_take(r, &s->sync))
        return;
    group_answer_init(&s->answer, ANSWER_BYTES_MAX);
    r->state = s;
    r->at_end = sync_at_end;
    s->hop.begin = sync_begin;
    s->hop.waits = &s->sync.call;
    op_init(&s->hop.op, r->loop, sync_on_back);
    request_waits_for(r, sync_on_back);
    r->parked = &s->hop.op;
    groups_call(r->kafka->groups, &s->hop);
}
