/*
 * ListGroups, v0-v5: all groups by id, those with committed offsets and no members too (Empty). Filters by state (v4) and type (v5) don't look at
 * case, and an unknown value matches nothing. D11-61.
 *
 *   list_groups_handle -> backend_groups -> list_on_listed -> [coordinator's loop] list_begin -> list_on_back: answer
 */
#include <strings.h>

#include "kafka/errors.h"
#include "kafka/group_answer.h"
#include "kafka/group_views.h"

#define ANSWER_BYTES_MAX ((size_t)64 << 20)

struct listing {
    struct request *request;
    struct backend_groups listed;
    struct groups_call hop;
    struct group_list list;
    struct group_answer answer;
    struct list_groups_res out;
    int32_t room;
};

static void list_on_listed(struct op *op);
static void list_on_back(struct op *op);

static void list_at_end(struct request *r) {
    arena_release(&((struct listing *)r->state)->answer.arena);
}

/* No values: all pass. */
static bool filter_passes(const struct strs *filter, const char *text) {
    for (int32_t i = 0; i < filter->count; i++) {
        struct str wanted = str_trimmed(filter->items[i]);
        if ((size_t)wanted.len == strlen(text) && strncasecmp(wanted.ptr, text, (size_t)wanted.len) == 0)
            return true;
    }
    return filter->count <= 0;
}

/* Room for one more. NULL: no memory. */
static struct list_groups_res_group *list_grow(struct listing *l) {
    if (l->out.groups_count == l->room) {
        int32_t room = l->room * 2 + 16;
        struct list_groups_res_group *groups = group_answer_take(&l->answer, room, sizeof *groups);
        if (!groups)
            return NULL;
        if (l->out.groups_count > 0)
            memcpy(groups, l->out.groups, (size_t)l->out.groups_count * sizeof *groups);
        l->out.groups = groups;
        l->room = room;
    }
    return &l->out.groups[l->out.groups_count++];
}

/* On the coordinator's loop. */
static void list_done(struct group_call *call) {
    struct listing *l = container_of(call, struct listing, list.call);
    const struct list_groups_req *in = list_groups_in(l->request);
    struct group_listed group;
    l->out.error_code =
        call->outcome ? kerr_of_group(call->outcome) : groups_list_problem(l->request, &l->listed);
    while (!l->answer.no_memory && call->outcome == GROUP_OK && group_list_next(&l->list, &group)) {
        const char *state = group_state_text(group.state), *type = group_type_text(group.type);
        if (!filter_passes(&in->states_filter, state) || !filter_passes(&in->types_filter, type))
            continue;
        struct list_groups_res_group *out = list_grow(l);
        if (out)
            *out = (struct list_groups_res_group){.group_id = group_answer_text(&l->answer, group.group),
                                                  .protocol_type =
                                                      group_answer_text(&l->answer, group.protocol_type),
                                                  .group_state = str_of(state),
                                                  .group_type = str_of(type)};
    }
    groups_call_end(&l->hop);
}

static void list_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    coordinator_list(c, &container_of(hop, struct listing, hop)->list, now_ms);
}

static void list_on_listed(struct op *op) {
    struct listing *l = container_of(op, struct listing, listed.op);
    l->list = (struct group_list){.call.done = list_done,
                                  .with_offsets = l->listed.groups,
                                  .with_offsets_count = l->listed.groups_count};
    l->hop.begin = list_begin;
    op_init(&l->hop.op, l->request->loop, list_on_back);
    request_waits_for(l->request, list_on_back);
    groups_call(l->request->kafka->groups, &l->hop);
}

static void list_on_back(struct op *op) {
    struct listing *l = container_of(op, struct listing, hop.op);
    if (l->answer.no_memory)
        request_close(l->request, status_text(ST_NO_MEMORY));
    else
        list_groups_reply(l->request, &l->out);
}

void list_groups_handle(struct request *r) {
    struct listing *l = request_take(r, 1, sizeof *l);
    if (!l)
        return;
    l->request = r;
    group_answer_init(&l->answer, ANSWER_BYTES_MAX);
    r->state = l;
    r->at_end = list_at_end;
    request_waits_for(r, list_on_listed);
    groups_list_begin(r, &l->listed, list_on_listed);
}
