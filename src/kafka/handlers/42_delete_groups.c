/*
 * DeleteGroups, v0-v3: groups without members are forgotten, with their committed offsets; one with members is 68, one nobody knows 69. A group that is
 * named twice has one entry, where it is named first. D11-62.
 *
 *   delete_groups_handle -> backend_groups -> delete_on_listed -> [coordinator's loop] delete_begin -> delete_on_back
 *     -> delete_next: backend_groups (forget), one group after the other -> delete_on_forgotten .. answer
 */
#include "kafka/errors.h"
#include "kafka/group_views.h"
#include "kafka/names.h"
#include "net/loop.h"

struct deleting {
    struct request *request;
    struct backend_groups listed, forget;
    struct groups_call hop;
    struct delete_groups_res out;
    int32_t next;
};

struct delete_one {
    struct group_delete del;
    struct delete_groups_res_group *out;
};

static void delete_on_listed(struct op *op);
static void delete_on_back(struct op *op);
static void delete_on_forgotten(struct op *op);

static void delete_done(struct group_call *call) {
    struct delete_one *one = container_of(call, struct delete_one, del.call);
    one->out->error_code = kerr_of_group(call->outcome);
}

static void delete_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    struct deleting *d = container_of(hop, struct deleting, hop);
    int16_t problem = groups_list_problem(d->request, &d->listed);
    for (int32_t i = 0; i < d->out.results_count; i++) {
        d->out.results[i].error_code = problem; /* else its offsets would stay */
        if (problem)
            continue;
        struct delete_one one = {.out = &d->out.results[i]};
        one.del = (struct group_delete){.call.done = delete_done,
                                        .group = one.out->group_id,
                                        .has_offsets = groups_listed(&d->listed, one.out->group_id)};
        coordinator_delete(c, &one.del, now_ms);
    }
    groups_call_end(hop);
}

static void delete_on_listed(struct op *op) {
    struct deleting *d = container_of(op, struct deleting, listed.op);
    d->hop.begin = delete_begin;
    op_init(&d->hop.op, d->request->loop, delete_on_back);
    request_waits_for(d->request, delete_on_back);
    groups_call(d->request->kafka->groups, &d->hop);
}

/* Forget the offsets of the next group that is deleted; without one, answer. */
static void delete_next(struct deleting *d) {
    struct request *r = d->request;
    while (d->next < d->out.results_count && (d->out.results[d->next].error_code != KERR_NONE ||
                                              !groups_listed(&d->listed, d->out.results[d->next].group_id)))
        d->next++;
    if (d->next == d->out.results_count) {
        delete_groups_reply(r, &d->out);
        return;
    }
    d->forget = (struct backend_groups){.arena = &r->arena,
                                        .forget = d->out.results[d->next].group_id,
                                        .deadline_ms = loop_now_ms(r->loop) + GROUP_VIEWS_MS};
    op_init(&d->forget.op, r->loop, delete_on_forgotten);
    request_waits_for(r, delete_on_forgotten);
    backend_groups(r->kafka->settings.backend, &d->forget);
}

static void delete_on_back(struct op *op) {
    delete_next(container_of(op, struct deleting, hop.op));
}

static void delete_on_forgotten(struct op *op) {
    struct deleting *d = container_of(op, struct deleting, forget.op);
    if (d->forget.status != ST_OK && d->forget.status != ST_NO_GROUP)
        d->out.results[d->next].error_code = kerr_of_offsets(d->forget.status);
    d->next++;
    delete_next(d);
}

void delete_groups_handle(struct request *r) {
    const struct delete_groups_req *in = delete_groups_in(r);
    struct deleting *d = request_take(r, 1, sizeof *d);
    if (!d)
        return;
    d->request = r;
    struct name_key *keys = request_array(r, struct name_key, in->groups_names.count);
    if (!keys)
        return;
    for (int32_t i = 0; i < in->groups_names.count; i++)
        keys[i].name = in->groups_names.items[i];
    const struct name_place *places = names_place(r, keys, in->groups_names.count);
    if (!places)
        return;
    d->out.results = request_array(r, struct delete_groups_res_group, in->groups_names.count);
    if (!d->out.results)
        return;
    for (int32_t i = 0; i < in->groups_names.count; i++)
        if (places[i].first == i)
            d->out.results[d->out.results_count++] = (struct delete_groups_res_group){
                .group_id = in->groups_names.items[i], .error_message = STR_NULL};
    request_waits_for(r, delete_on_listed);
    groups_list_begin(r, &d->listed, delete_on_listed);
}
