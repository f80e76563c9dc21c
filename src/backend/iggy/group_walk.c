/*
 *   group_walk_start -> listing_get -> each topic: get_group, or get_groups -> [remove: delete_group] -> the next topic .. all are done
 */
#include "backend/iggy/group_walk.h"

#include "backend/iggy/offset_lanes.h"
#include "base/mem.h"
#include "net/loop.h"

#define ANSWER_BYTES_MAX ((size_t)64 << 20) /* a decoded list of groups */

static void walk_on_listing(struct op *op);
static void walk_run(struct group_walk *w);
static void walk_on_answer(struct op *op);

void group_walk_start(struct bridge_loop *l, struct group_walk *w) {
    op_start(&w->op, NULL);
    w->loop = l;
    w->listing = NULL;
    w->holds = NULL;
    w->names = (struct sorted){0};
    w->holders_count = w->next = w->running = 0;
    w->status = ST_OK;
    memset(w->calls, 0, sizeof w->calls);
    if (w->group.len >= 0)
        w->iggy_group = offset_group_name(w->group, w->group_text);
    w->want = (struct listing_want){.asked_ms = loop_now_ms(l->loop), .deadline_ms = w->deadline_ms};
    op_init(&w->want.op, l->loop, walk_on_listing);
    listing_get(l, &w->want);
}

static void walk_on_listing(struct op *op) {
    struct group_walk *w = container_of(op, struct group_walk, want.op);
    if (op->status) {
        op_complete(&w->op, op->status);
        return;
    }
    w->listing = w->want.listing;
    w->holds = mem_take_zeroed((size_t)w->listing->topics_count + 1, sizeof *w->holds);
    if (!w->holds)
        op_complete(&w->op, ST_NO_MEMORY);
    else
        walk_run(w);
}

static void call_start(struct walk_call *c, uint32_t code, const void *in, struct iggy_client *client) {
    struct bridge_loop *l = c->walk->loop;
    c->request = (struct iggy_request){.deadline_ms = c->walk->deadline_ms};
    op_init(&c->request.op, l->loop, walk_on_answer);
    iggy_client_call(client, &c->request, code, in);
}

static void call_ask(struct walk_call *c, struct iggy_client *client) {
    struct group_walk *w = c->walk;
    struct iggy_place place;
    topic_map_find(w->loop->bridge->settings.topic_map, w->listing->topics[c->topic].name, &place);
    c->deletes = false;
    if (w->group.len < 0) {
        c->all = (struct iggy_topic_req){iggy_by_name(place.stream), iggy_by_name(place.topic)};
        call_start(c, IGGY_CMD_get_groups, &c->all, client);
        return;
    }
    c->one = (struct iggy_group_req){iggy_by_name(place.stream), iggy_by_name(place.topic),
                                     iggy_by_name(w->iggy_group)};
    call_start(c, IGGY_CMD_get_group, &c->one, client);
}

/* As many topics as may be under way; after an error no more. */
static void walk_run(struct group_walk *w) {
    struct iggy_client *client = offsets_reader(w->loop);
    if (!client && !w->status)
        w->status = ST_UNAVAILABLE;
    for (int i = 0; i < WALK_FLIGHT && !w->status && w->next < w->listing->topics_count; i++) {
        struct walk_call *c = &w->calls[i];
        if (c->running)
            continue;
        *c = (struct walk_call){.walk = w, .running = true, .topic = w->next++};
        w->running++;
        call_ask(c, client);
    }
    if (w->running == 0)
        op_complete(&w->op, w->status);
}

static enum status name_add(struct group_walk *w, struct str name);

/* The Kafka groups among a topic's. */
static enum status names_take(struct group_walk *w, const struct iggy_get_groups_res *res) {
    const int32_t prefix = (int32_t)sizeof GROUP_PREFIX - 1;
    enum status st = ST_OK;
    for (uint32_t i = 0; !st && i < res->groups_count; i++) {
        struct str name = res->groups[i].name;
        if (name.len > prefix && memcmp(name.ptr, GROUP_PREFIX, (size_t)prefix) == 0)
            st = name_add(w, (struct str){name.ptr + prefix, name.len - prefix});
    }
    return st;
}

static int compare_name(const void *key, const void *row) {
    return str_compare(*(const struct str *)key, *(const struct str *)row);
}

static enum status name_add(struct group_walk *w, struct str name) {
    if (sorted_find(&w->names, compare_name, &name))
        return ST_OK;
    struct str *row = sorted_reserve(&w->names, 1) ? NULL : arena_take(w->arena, sizeof *row);
    if (!row)
        return ST_NO_MEMORY;
    *row = arena_text(w->arena, name);
    if (row->len < 0)
        return ST_NO_MEMORY;
    sorted_put(&w->names, sorted_place(&w->names, compare_name, row), row);
    return ST_OK;
}

static enum status call_take(struct walk_call *c) {
    struct group_walk *w = c->walk;
    struct arena a;
    enum status st;
    arena_init(&a, NULL, 0, ANSWER_BYTES_MAX);
    if (w->group.len < 0) {
        struct iggy_get_groups_res res;
        st = iggy_request_decode(&c->request, &a, &res);
        if (!st)
            st = names_take(w, &res);
    } else {
        struct iggy_get_group_res res;
        st = iggy_request_decode(&c->request, &a, &res);
        if (!st && res.found) {
            w->holds[c->topic] = true;
            w->holders_count++;
        }
    }
    arena_release(&a);
    return st;
}

/* Where it is it goes. True: that is under way. */
static bool call_delete(struct walk_call *c) {
    struct group_walk *w = c->walk;
    struct iggy_client *client = offsets_writer(w->loop);
    if (!w->remove || c->deletes || !w->holds[c->topic])
        return false;
    if (!client) {
        w->status = ST_UNAVAILABLE;
        return false;
    }
    c->deletes = true;
    call_start(c, IGGY_CMD_delete_group, &c->one, client);
    return true;
}

static void walk_on_answer(struct op *op) {
    struct walk_call *c = container_of(op, struct walk_call, request.op);
    struct group_walk *w = c->walk;
    enum status st = bridge_status(&c->request, c->deletes ? IGGY_CALL_ADMIN : IGGY_CALL_READ);
    bool nothing = st == ST_NOT_FOUND || st == ST_NO_GROUP;
    if (!st && !c->deletes)
        st = call_take(c);
    iggy_request_release(&c->request);
    if (st && !nothing && !w->status)
        w->status = st;
    if (!st && call_delete(c))
        return;
    c->running = false;
    w->running--;
    walk_run(w);
}
