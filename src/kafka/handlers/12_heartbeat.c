/* Heartbeat, v0-v4: a member of a classic group lives, and learns that a rebalance is under way. D11-50. */
#include "kafka/errors.h"
#include "kafka/groups.h"
#include "kafka/request.h"

struct beating {
    struct request *request;
    struct groups_call hop;
    struct group_heartbeat heartbeat;
};

static void heartbeat_done(struct group_call *call) {
    groups_call_end(&container_of(call, struct beating, heartbeat.call)->hop);
}

static void heartbeat_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    coordinator_heartbeat(c, &container_of(hop, struct beating, hop)->heartbeat, now_ms);
}

static void heartbeat_on_back(struct op *op) {
    struct beating *b = container_of(op, struct beating, hop.op);
    heartbeat_reply(b->request,
                    &(struct heartbeat_res){.error_code = kerr_of_group(b->heartbeat.call.outcome)});
}

void heartbeat_handle(struct request *r) {
    const struct heartbeat_req *in = heartbeat_in(r);
    struct beating *b = request_take(r, 1, sizeof *b);
    if (!b)
        return;
    b->request = r;
    b->heartbeat = (struct group_heartbeat){
        .call.done = heartbeat_done,
        .group = in->group_id,
        .member = in->member_id,
        .instance = in->group_instance_id,
        .generation = in->generation_id,
    };
    b->hop.begin = heartbeat_begin;
    b->hop.anywhere = true;
    op_init(&b->hop.op, r->loop, heartbeat_on_back);
    request_waits_for(r, heartbeat_on_back);
    groups_call(r->kafka->groups, &b->hop);
}
