/*
 * LeaveGroup, v0-v5: members go, and the others rebalance at once. From v3 several in one request, each with its own outcome, in order;
 * before, one. D11-51, D11-52.
 */
#include "kafka/errors.h"
#include "kafka/groups.h"
#include "kafka/request.h"

#define SEVERAL_FROM 3

struct leaving {
    struct request *request;
    struct groups_call hop;
    struct leave_one {
        struct group_leave leave;
        struct str member, instance; /* as they came */
        int16_t code;
    } * all;
    int32_t count;
};

static void leave_done(struct group_call *call) {
    struct leave_one *one = container_of(call, struct leave_one, leave.call);
    one->code = kerr_of_group(call->outcome);
}

/* A leave never waits: all are done when the loop ends. */
static void leave_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    struct leaving *l = container_of(hop, struct leaving, hop);
    for (int32_t i = 0; i < l->count; i++)
        coordinator_leave(c, &l->all[i].leave, now_ms);
    groups_call_end(hop);
}

/* The whole group is not there, or its id can't be: then there is one code for all. */
static bool code_is_of_all(int16_t code) {
    return code == KERR_INVALID_GROUP_ID || code == KERR_NOT_COORDINATOR;
}

static void leave_on_back(struct op *op) {
    struct leaving *l = container_of(op, struct leaving, hop.op);
    struct request *r = l->request;
    struct leave_group_res out = {.error_code = KERR_NONE};
    bool several = r->version >= SEVERAL_FROM;
    if (l->count > 0 && (!several || code_is_of_all(l->all[0].code)))
        out.error_code = l->all[0].code;
    if (several && out.error_code == KERR_NONE) {
        out.members = request_array(r, struct leave_group_res_member, l->count);
        if (!out.members)
            return;
        out.members_count = l->count;
        for (int32_t i = 0; i < l->count; i++)
            out.members[i] = (struct leave_group_res_member){.member_id = l->all[i].member,
                                                             .group_instance_id = l->all[i].instance,
                                                             .error_code = l->all[i].code};
    }
    leave_group_reply(r, &out);
}

static void leave_take(struct leave_one *one, const struct leave_group_req *in, struct str member,
                       struct str instance) {
    *one = (struct leave_one){.member = member, .instance = instance};
    one->leave = (struct group_leave){
        .call.done = leave_done, .group = in->group_id, .member = member, .instance = instance};
}

void leave_group_handle(struct request *r) {
    const struct leave_group_req *in = leave_group_in(r);
    struct leaving *l = request_take(r, 1, sizeof *l);
    if (!l)
        return;
    l->request = r;
    l->count = r->version >= SEVERAL_FROM ? in->members_count : 1;
    l->all = request_array(r, struct leave_one, l->count);
    if (!l->all)
        return;
    if (r->version < SEVERAL_FROM)
        leave_take(&l->all[0], in, in->member_id, STR_NULL);
    for (int32_t i = 0; r->version >= SEVERAL_FROM && i < l->count; i++)
        leave_take(&l->all[i], in, in->members[i].member_id, in->members[i].group_instance_id);
    l->hop.begin = leave_begin;
    op_init(&l->hop.op, r->loop, leave_on_back);
    request_waits_for(r, leave_on_back);
    groups_call(r->kafka->groups, &l->hop);
}
