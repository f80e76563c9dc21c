/*
 * DescribeGroups, v0-v6: state and members of classic groups. D11-60.
 *
 *   describe_groups_handle -> backend_groups -> describe_on_listed -> [coordinator's loop] describe_begin -> describe_on_back: answer
 *
 * - A group with committed offsets and no members is Empty; one that nobody knows is Dead, without an error below v6 and with 69 from v6 on.
 * - A group asked for twice is answered twice.
 */
#include "kafka/errors.h"
#include "kafka/group_answer.h"
#include "kafka/group_views.h"

#define NOT_FOUND_FROM   6
#define ANSWER_BYTES_MAX ((size_t)64 << 20)

struct describing {
    struct request *request;
    struct backend_groups listed;
    struct groups_call hop;
    struct group_answer answer;
    struct describe_groups_res out;
};

/* One group under way, on the coordinator's loop. */
struct describe_one {
    struct group_describe describe;
    struct describing *all;
    struct describe_groups_res_group *out;
};

static void describe_on_listed(struct op *op);
static void describe_on_back(struct op *op);

static void describe_at_end(struct request *r) {
    arena_release(&((struct describing *)r->state)->answer.arena);
}

static void members_copy(struct describe_one *one) {
    struct describing *d = one->all;
    struct group_member_view view;
    struct group_members members = one->describe.members;
    one->out->members = group_answer_take(&d->answer, members.count, sizeof *one->out->members);
    while (!d->answer.no_memory && group_members_next(&members, &view))
        one->out->members[one->out->members_count++] = (struct describe_groups_res_member){
            .member_id = group_answer_some_text(&d->answer, view.id),
            .group_instance_id = group_answer_text(&d->answer, view.instance),
            .client_id = group_answer_some_text(&d->answer, view.client_id),
            .client_host = group_answer_some_text(&d->answer, view.client_host),
            .member_metadata = group_answer_bytes(&d->answer, view.metadata),
            .member_assignment = group_answer_bytes(&d->answer, view.assignment),
        };
}

static void describe_done(struct group_call *call) {
    struct describe_one *one = container_of(call, struct describe_one, describe.call);
    const struct group_describe *view = &one->describe;
    bool there = call->outcome == GROUP_OK;
    one->out->error_code = kerr_of_group(call->outcome);
    if (call->outcome == GROUP_ID_NOT_FOUND && !view->other_type &&
        groups_list_problem(one->all->request, &one->all->listed))
        one->out->error_code = groups_list_problem(one->all->request, &one->all->listed);
    one->out->group_state =
        str_of(group_state_text(there ? view->state : GROUP_STATE_DEAD)); /* static texts */
    one->out->protocol_type =
        there ? group_answer_some_text(&one->all->answer, view->protocol_type) : STR("");
    one->out->protocol_data = there ? group_answer_some_text(&one->all->answer, view->protocol) : STR("");
    if (there)
        members_copy(one);
}

static void describe_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    struct describing *d = container_of(hop, struct describing, hop);
    const struct describe_groups_req *in = describe_groups_in(d->request);
    for (int32_t i = 0; i < in->groups.count; i++) {
        struct describe_one one = {.all = d, .out = &d->out.groups[i]};
        one.describe.call.done = describe_done;
        one.describe.group = in->groups.items[i];
        one.describe.type = GROUP_CLASSIC;
        one.describe.has_offsets = groups_listed(&d->listed, in->groups.items[i]);
        coordinator_describe(c, &one.describe, now_ms);
    }
    groups_call_end(hop);
}

static void describe_on_listed(struct op *op) {
    struct describing *d = container_of(op, struct describing, listed.op);
    d->hop.begin = describe_begin;
    op_init(&d->hop.op, d->request->loop, describe_on_back);
    request_waits_for(d->request, describe_on_back);
    groups_call(d->request->kafka->groups, &d->hop);
}

static void group_finish(const struct request *r, struct describe_groups_res_group *out) {
    if (out->error_code == KERR_GROUP_ID_NOT_FOUND && r->version >= NOT_FOUND_FROM)
        out->error_message = arena_printf((struct arena *)(uintptr_t)&r->arena, "Group %.*s not found.",
                                          (int)out->group_id.len, out->group_id.ptr);
    else if (out->error_code == KERR_GROUP_ID_NOT_FOUND)
        out->error_code = KERR_NONE;
    bool shows = out->error_code == KERR_NONE && describe_groups_in(r)->include_authorized_operations;
    out->authorized_operations = shows ? GROUP_OPERATIONS_ALL : INT32_MIN;
}

static void describe_on_back(struct op *op) {
    struct describing *d = container_of(op, struct describing, hop.op);
    struct request *r = d->request;
    if (d->answer.no_memory) {
        request_close(r, status_text(ST_NO_MEMORY));
        return;
    }
    for (int32_t i = 0; i < d->out.groups_count; i++)
        group_finish(r, &d->out.groups[i]);
    describe_groups_reply(r, &d->out);
}

void describe_groups_handle(struct request *r) {
    const struct describe_groups_req *in = describe_groups_in(r);
    struct describing *d = request_take(r, 1, sizeof *d);
    if (!d)
        return;
    d->request = r;
    d->out.groups = request_array(r, struct describe_groups_res_group, in->groups.count);
    if (!d->out.groups)
        return;
    d->out.groups_count = in->groups.count;
    for (int32_t i = 0; i < in->groups.count; i++)
        d->out.groups[i] =
            (struct describe_groups_res_group){.group_id = in->groups.items[i], .error_message = STR_NULL};
    group_answer_init(&d->answer, ANSWER_BYTES_MAX);
    r->state = d;
    r->at_end = describe_at_end;
    request_waits_for(r, describe_on_listed);
    groups_list_begin(r, &d->listed, describe_on_listed);
}
