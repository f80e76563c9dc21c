#include "backend/iggy/offset_lanes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/logging.h"
#include "base/mem.h"
#include "iggy/errors.h"
#include "net/loop.h"

#define SLOTS         4  /* D12-21: of all loops together, but one in each */
#define LANE_FLIGHT   64 /* calls under way in a lane */
#define CLIENT_FLIGHT 128
#define ANSWER_BYTES  4096

enum lane_kind { LANE_CHANGES, LANE_READS, LANE_KINDS };

struct offset_lane {
    struct bridge_loop *loop;
    enum lane_kind kind;
    struct iggy_client *client; /* NULL: none now */
    struct closing closing;
    struct link queue;   /* offset_part */
    struct link running; /* offset_call */
    int32_t running_count;
};

struct offset_lanes {
    struct bridge_loop *loop;
    int32_t slots_count;
    struct offset_lane lanes[SLOTS][LANE_KINDS];
};

/* A part under way. */
struct offset_call {
    struct link link; /* in lane->running */
    struct offset_lane *lane;
    struct offset_part *part;
    struct view_want want;
    struct topic_view *view; /* held */
    bool looked_again;       /* the view is as new as the call */
    bool group_made;
    struct link followers;     /* offset_call: they wait for the group that this one creates */
    struct link follower_link; /* in another one's followers */
    char group_text[OFFSET_GROUP_BYTES_MAX];
    struct str group;
    bool creates;
    union {
        struct iggy_store_consumer_offset_req store;
        struct iggy_delete_consumer_offset_req remove;
        struct iggy_get_consumer_offset_req get;
        struct iggy_create_group_req create;
    } body;
    struct iggy_request request;
};

static void lane_run(struct offset_lane *lane);
static void call_look(struct offset_call *c, int64_t asked_ms);
static void call_on_view(struct op *op);
static void call_send(struct offset_call *c);
static void call_on_answer(struct op *op);
static void call_create(struct offset_call *c);
static void call_on_created(struct op *op);

struct str offset_group_name(struct str group, char out[OFFSET_GROUP_BYTES_MAX]) {
    const int32_t prefix = (int32_t)sizeof GROUP_PREFIX - 1;
    if (group.len < 1 || group.len > OFFSET_GROUP_BYTES_MAX - prefix)
        return (struct str){out, 0};
    memcpy(out, GROUP_PREFIX, (size_t)prefix);
    memcpy(out + prefix, group.ptr, (size_t)group.len);
    return (struct str){out, prefix + group.len};
}

/* ---- which servers can ---- */

bool offsets_external(const struct bridge_loop *l) {
    uint32_t now = l->control ? iggy_client_version(l->control) : 0;
    return !atomic_load(&l->bridge->offsets_in_topic) && (now ? now : l->bridge->version) >= IGGY_0_12_0;
}

void offsets_external_missing(struct bridge *b) {
    atomic_store(&b->offsets_in_topic, true);
}

/* ---- jobs ---- */

static void job_left(struct offset_job *job) {
    if (--job->left > 0)
        return;
    timer_clear(loop_timers(job->loop->loop), &job->timer);
    op_complete(&job->op, ST_OK);
}

static void part_end(struct offset_part *p, enum status st) {
    p->status = st;
    job_left(p->job);
}

/* D12-20: what was not begun is not done. */
static void job_on_deadline(struct timer *t) {
    struct offset_job *job = container_of(t, struct offset_job, timer);
    job->left++;
    for (int32_t i = 0; i < job->parts_count; i++) {
        struct offset_part *p = &job->parts[i];
        if (!link_in_list(&p->link))
            continue;
        list_remove(&p->link);
        part_end(p, ST_UNAVAILABLE);
    }
    job_left(job);
}

static uint64_t topic_hash(const struct offset_part *p) {
    return p->topic.len < 0 ? XXH3_64bits(p->id.b, sizeof p->id.b)
                            : XXH3_64bits(p->topic.ptr, (size_t)p->topic.len);
}

void offset_job_start(struct bridge_loop *l, struct offset_job *job) {
    struct offset_lanes *lanes = l->offset_lanes;
    enum lane_kind kind = job->reads ? LANE_READS : LANE_CHANGES;
    uint64_t group_hash = XXH3_64bits(job->group.ptr, job->group.len > 0 ? (size_t)job->group.len : 0);
    bool late = timer_set(loop_timers(l->loop), &job->timer, job_on_deadline, job->deadline_ms) != ST_OK;
    op_start(&job->op, NULL);
    job->loop = l;
    job->left = job->parts_count + 1;
    for (int32_t i = 0; i < job->parts_count; i++) {
        struct offset_part *p = &job->parts[i];
        p->job = job;
        p->link = (struct link){0};
        if (p->status || late) {
            part_end(p, p->status ? p->status : ST_NO_MEMORY);
            continue;
        }
        uint64_t place = topic_hash(p) + (uint64_t)(uint32_t)p->partition;
        p->key = XXH3_64bits_withSeed(&place, sizeof place, group_hash);
        list_push_tail(&lanes->lanes[place % (uint64_t)lanes->slots_count][kind].queue, &p->link);
    }
    for (int32_t i = 0; i < lanes->slots_count; i++)
        lane_run(&lanes->lanes[i][kind]);
    job_left(job);
}

/* ---- lanes ---- */

static bool lane_has(const struct offset_lane *lane, uint64_t key) {
    for (struct link *l = lane->running.next; l != &lane->running; l = l->next)
        if (container_of(l, struct offset_call, link)->part->key == key)
            return true;
    return false;
}

static void call_begin(struct offset_lane *lane, struct offset_part *p) {
    struct offset_call *c = mem_take_zeroed(1, sizeof *c);
    if (!c) {
        part_end(p, ST_NO_MEMORY);
        return;
    }
    c->lane = lane;
    c->part = p;
    list_init(&c->followers);
    c->group = offset_group_name(p->job->group, c->group_text);
    list_push_tail(&lane->running, &c->link);
    lane->running_count++;
    call_look(c, 0);
}

static void lane_run(struct offset_lane *lane) {
    while (lane->running_count < LANE_FLIGHT && !list_empty(&lane->queue)) {
        struct offset_part *p = container_of(lane->queue.next, struct offset_part, link);
        if (lane->kind == LANE_CHANGES && lane_has(lane, p->key))
            return; /* it goes on when that one has ended */
        list_remove(&p->link);
        call_begin(lane, p);
    }
}

static struct iggy_client *lane_client(struct offset_lane *lane) {
    struct bridge *b = lane->loop->bridge;
    if (!lane->client)
        lane->client = bridge_client_new(lane->loop, CLIENT_FLIGHT, b->answers);
    return lane->client;
}

struct iggy_client *offsets_reader(struct bridge_loop *l) {
    return lane_client(&l->offset_lanes->lanes[0][LANE_READS]);
}

struct iggy_client *offsets_writer(struct bridge_loop *l) {
    return lane_client(&l->offset_lanes->lanes[0][LANE_CHANGES]);
}

/* ---- one part ---- */

static void call_end(struct offset_call *c, enum status st) {
    struct offset_lane *lane = c->lane;
    struct offset_part *p = c->part;
    list_remove(&c->link);
    lane->running_count--;
    view_unref(c->view);
    iggy_request_release(&c->request);
    mem_free(c);
    part_end(p, st);
    lane_run(lane);
}

/* Where there is nothing there is no offset; a change says so. */
static void call_end_not_found(struct offset_call *c, enum status st) {
    c->part->offset = c->part->job->reads ? -1 : c->part->offset;
    call_end(c, c->part->job->reads ? ST_OK : st);
}

static void call_look(struct offset_call *c, int64_t asked_ms) {
    struct bridge_loop *l = c->lane->loop;
    view_unref(c->view);
    c->view = NULL;
    c->want = (struct view_want){.name = c->part->topic,
                                 .id = c->part->id,
                                 .asked_ms = asked_ms,
                                 .deadline_ms = c->part->job->deadline_ms};
    op_init(&c->want.op, l->loop, call_on_view);
    view_get(l, &c->want);
}

/* What is known may be out of date: look once more. False: that was done. */
static bool call_look_again(struct offset_call *c) {
    struct bridge_loop *l = c->lane->loop;
    if (c->looked_again)
        return false;
    c->looked_again = true;
    call_look(c, loop_now_ms(l->loop));
    return true;
}

static void call_on_view(struct op *op) {
    struct offset_call *c = container_of(op, struct offset_call, want.op);
    int32_t partition = c->part->partition;
    c->view = c->want.view;
    if (op->status == ST_NOT_FOUND || op->status == ST_UNKNOWN_ID)
        call_end_not_found(c, op->status);
    else if (op->status)
        call_end(c, op->status);
    else if (partition < 0)
        call_end_not_found(c, ST_NOT_FOUND);
    else if ((uint32_t)partition < c->view->partitions_count)
        call_send(c);
    else if (!call_look_again(c))
        call_end_not_found(c, ST_NOT_FOUND);
}

static void call_request(struct offset_call *c, op_fn *done, uint32_t code, const void *in) {
    struct bridge_loop *l = c->lane->loop;
    struct iggy_client *client = lane_client(c->lane);
    iggy_request_release(&c->request);
    c->request = (struct iggy_request){.deadline_ms = c->part->job->deadline_ms};
    if (done == call_on_answer)
        c->request.context = c->view->partitions[c->part->partition].context;
    op_init(&c->request.op, l->loop, done);
    if (client) {
        iggy_client_call(client, &c->request, code, in);
        return;
    }
    op_start(&c->request.op, NULL);
    op_complete(&c->request.op, ST_UNAVAILABLE);
}

static void call_send(struct offset_call *c) {
    const struct iggy_get_consumer_offset_req about = {
        .consumer = {.kind = IGGY_EXTERNAL_GROUP, .id = iggy_by_name(c->group)},
        .stream = iggy_by_name(c->view->stream),
        .topic = iggy_by_name(c->view->topic),
        .partition = {.present = true, .id = (uint32_t)c->part->partition}};
    if (c->part->job->reads) {
        c->body.get = about;
        call_request(c, call_on_answer, IGGY_CMD_get_consumer_offset, &c->body.get);
    } else if (c->part->offset < 0) {
        c->body.remove = (struct iggy_delete_consumer_offset_req){about.consumer, about.stream, about.topic,
                                                                  about.partition, IGGY_ACK_QUORUM};
        call_request(c, call_on_answer, IGGY_CMD_delete_consumer_offset, &c->body.remove);
    } else {
        c->body.store = (struct iggy_store_consumer_offset_req){
            about.consumer,  about.stream, about.topic, about.partition, (uint64_t)c->part->offset,
            IGGY_ACK_QUORUM,
        };
        call_request(c, call_on_answer, IGGY_CMD_store_consumer_offset, &c->body.store);
    }
}

static enum status call_take(struct offset_call *c) {
    struct iggy_get_consumer_offset_res res;
    struct arena a;
    arena_init(&a, NULL, 0, ANSWER_BYTES);
    enum status st = iggy_request_decode(&c->request, &a, &res);
    arena_release(&a);
    if (!st && res.found && res.stored_offset > INT64_MAX)
        st = ST_REFUSED;
    if (!st)
        c->part->offset = res.found ? (int64_t)res.stored_offset : -1;
    return st;
}

/* D12-9: a server that doesn't know the kind, or a version that has no bytes for it. */
static bool call_is_unknown(const struct offset_call *c) {
    const struct iggy_request *r = &c->request;
    if (r->op.status == ST_OK)
        return r->code == IGGY_ERR_INVALID_COMMAND;
    return (r->op.status == ST_INVALID || r->op.status == ST_UNSUPPORTED) && r->version < IGGY_0_12_0;
}

static enum status call_status(const struct offset_call *c) {
    const struct iggy_request *r = &c->request;
    if (c->part->job->reads && r->op.status == ST_OK && r->code == IGGY_ERR_REQUEST_ALREADY_APPLIED)
        return ST_REFUSED; /* it says nothing about an offset */
    return bridge_status(r, IGGY_CALL_OFFSETS);
}

static void call_on_answer(struct op *op) {
    struct offset_call *c = container_of(op, struct offset_call, request.op);
    if (call_is_unknown(c)) {
        offsets_external_missing(c->lane->loop->bridge);
        call_end(c, ST_UNAVAILABLE); /* tried again, it finds the topic */
        return;
    }
    enum status st = call_status(c);
    bool other_topic = st == ST_NOT_FOUND ||
                       (op->status == ST_OK && iggy_error_retry(c->request.code) == IGGY_RETRY_NEW_ROUTE);
    if (other_topic && call_look_again(c))
        return;
    if (st == ST_NOT_FOUND)
        call_end_not_found(c, st);
    else if (c->part->job->reads && !st)
        call_end(c, call_take(c));
    else if (st == ST_NO_GROUP && c->part->job->reads)
        call_end_not_found(c, st);
    else if (st == ST_NO_GROUP && c->part->offset < 0)
        call_end(c, ST_OK); /* D12-3 */
    else if (st == ST_NO_GROUP && !c->group_made)
        call_create(c);
    else
        call_end(c, st == ST_NO_GROUP ? ST_UNAVAILABLE : st);
}

/* ---- a group that is missing (D12-2) ---- */

/* The call that creates this one's group just now; NULL: none does. */
static struct offset_call *call_creator(const struct offset_call *c) {
    struct offset_lanes *lanes = c->lane->loop->offset_lanes;
    for (int32_t i = 0; i < lanes->slots_count; i++) {
        struct link *running = &lanes->lanes[i][LANE_CHANGES].running;
        for (struct link *l = running->next; l != running; l = l->next) {
            struct offset_call *other = container_of(l, struct offset_call, link);
            if (other->creates && str_equal(other->group, c->group) &&
                str_equal(other->view->name, c->view->name))
                return other;
        }
    }
    return NULL;
}

static void call_create(struct offset_call *c) {
    struct offset_call *creator = call_creator(c);
    if (creator) {
        list_push_tail(&creator->followers, &c->follower_link);
        return;
    }
    c->creates = true;
    c->body.create =
        (struct iggy_create_group_req){iggy_by_name(c->view->stream), iggy_by_name(c->view->topic), c->group};
    call_request(c, call_on_created, IGGY_CMD_create_group, &c->body.create);
}

static void call_go_on(struct offset_call *c, enum status created) {
    c->group_made = true;
    if (created)
        call_end(c, created);
    else
        call_send(c);
}

/* Somebody else may have made it at the same time. */
static void call_on_created(struct op *op) {
    struct offset_call *c = container_of(op, struct offset_call, request.op);
    struct link *l;
    enum status st = bridge_status(&c->request, IGGY_CALL_ADMIN);
    if (st == ST_EXISTS)
        st = ST_OK;
    struct link followers;
    list_init(&followers);
    list_move_all(&followers, &c->followers);
    c->creates = false;
    call_go_on(c, st);
    while ((l = list_pop_head(&followers)) != NULL)
        call_go_on(container_of(l, struct offset_call, follower_link), st);
}

/* ---- the whole ---- */

enum status offset_lanes_new(struct bridge_loop *l, struct offset_lanes **out) {
    struct offset_lanes *lanes = mem_take_zeroed(1, sizeof *lanes);
    if (!lanes)
        return ST_NO_MEMORY;
    int32_t share = SLOTS / l->bridge->settings.loops_count;
    lanes->loop = l;
    lanes->slots_count = share > 0 ? share : 1;
    for (int32_t i = 0; i < lanes->slots_count; i++)
        for (int kind = 0; kind < LANE_KINDS; kind++) {
            struct offset_lane *lane = &lanes->lanes[i][kind];
            lane->loop = l;
            lane->kind = (enum lane_kind)kind;
            list_init(&lane->queue);
            list_init(&lane->running);
        }
    *out = lanes;
    return ST_OK;
}

void offset_lanes_stop(struct offset_lanes *lanes) {
    for (int32_t i = 0; i < lanes->slots_count; i++)
        for (int kind = 0; kind < LANE_KINDS; kind++) {
            struct offset_lane *lane = &lanes->lanes[i][kind];
            struct iggy_client *client = lane->client;
            lane->client = NULL;
            if (client)
                bridge_client_close(lanes->loop, client, &lane->closing);
        }
}

void offset_lanes_free(struct offset_lanes *lanes) {
    mem_free(lanes);
}
