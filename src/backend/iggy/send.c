/*
 *   send_begin -> [the version isn't known yet] connect -> view_get -> memory -> convert, here or in the pool -> producer_flush
 *   producer_flush -> send_call -> send_on_answer -> send_settle -> send_end
 *                        ^-- view_get <--+  once, where the partition has moved or is another one (87, 89)
 *
 * What is sent anew would come behind what left after it. So after the first such answer nothing new leaves until all that was sent has its
 * answer (producer.draining). What came to the server before a send that goes out again, and that the server refuses for that (92), is
 * ready once more.
 */
#include "backend/iggy/producers.h"
#include "bridge/record_map.h"
#include "iggy/errors.h"
#include "net/loop.h"
#include "wire/records.h"

#define POOL_FROM_BYTES   (64 << 10) /* D1-44, D1-47 */
#define SLOT_BYTES        64         /* D1-43: what a record takes at least */
#define REQUEST_CAPS      8          /* D1-41: a request may use so many partition caps */
#define TARGET_BYTES_MAX  1024       /* of a send beside its batch: names, partition, count */
#define CONFIRMATION_ROOM 512

static void send_look_up(struct send *s);
static void send_on_view(struct op *op);
static void send_reserve(struct send *s);
static void send_convert(struct send *s);
static void send_call(struct send *s);
static void send_on_answer(struct op *op);
static void send_settle(struct send *s, enum status st);

static struct bridge *bridge_of_send(const struct send *s) {
    return s->producer->loop->bridge;
}

static int64_t deadline_of(const struct send *s) {
    return s->slot->state->call->deadline_ms;
}

static int64_t now_of(const struct send *s) {
    return loop_now_ms(s->producer->loop->loop);
}

/* The part has its outcome. */
static void send_end(struct send *s, enum status st) {
    struct producer *p = s->producer;
    struct append_slot *slot = s->slot;
    if (p->preparing == s)
        p->preparing = NULL;
    if (s->reserved > 0)
        budget_give(s->budget, s->reserved);
    view_unref(s->view);
    iggy_request_release(&s->request);
    list_remove(&s->link);
    p->sends_count--;
    producers_send_give(p->loop->producers, s);
    producer_slot_end(slot, st);
    producer_flush(p);
    producer_run(p);
}

/* ---- preparing ---- */

static void send_on_connected(struct op *op) {
    struct send *s = container_of(op, struct send, wait.op);
    if (op->status)
        send_end(s, op->status == ST_CANCELED ? ST_UNAVAILABLE : op->status);
    else
        send_look_up(s);
}

void send_begin(struct send *s) {
    struct iggy_client *client = s->producer->client;
    s->phase = SEND_PREPARING;
    if (s->slot->state->over_budget) {
        send_end(s, ST_OVER_BUDGET);
    } else if (now_of(s) >= deadline_of(s)) {
        send_end(s, ST_TIMED_OUT);
    } else if (iggy_client_version(client) == 0) { /* what a batch looks like depends on it */
        s->wait.deadline_ms = deadline_of(s);
        op_init(&s->wait.op, s->producer->loop->loop, send_on_connected);
        iggy_client_connect(client, &s->wait);
    } else {
        send_look_up(s);
    }
}

static void view_ask(struct send *s, int64_t asked_ms) {
    const struct backend_append_part *part = s->slot->part;
    s->want = (struct view_want){
        .name = part->topic, .id = part->id, .asked_ms = asked_ms, .deadline_ms = deadline_of(s)};
    op_init(&s->want.op, s->producer->loop->loop, send_on_view);
    view_get(s->producer->loop, &s->want);
}

static void send_look_up(struct send *s) {
    view_ask(s, 0);
}

/* A partition that the view doesn't show may be new. */
static void send_on_view(struct op *op) {
    struct send *s = container_of(op, struct send, want.op);
    const struct backend_append_part *part = s->slot->part;
    int64_t fresh_ms = now_of(s) - VIEW_FRESH_MS;
    view_unref(s->view);
    s->view = op->status ? NULL : s->want.view;
    if (s->phase == SEND_REROUTED)
        s->producer->rerouted_count--;
    if (op->status) {
        send_end(s, op->status);
    } else if (part->partition < 0 || part->partition >= (int64_t)s->view->partitions_count) {
        if (part->partition >= 0 && s->phase == SEND_PREPARING && s->view->asked_ms < fresh_ms)
            view_ask(s, fresh_ms);
        else
            send_end(s, ST_NOT_FOUND);
    } else if (s->phase == SEND_REROUTED) {
        send_call(s);
    } else {
        send_reserve(s);
    }
}

/* ---- memory ---- */

static void send_on_memory(struct op *op) {
    struct send *s = container_of(op, struct send, memory.op);
    if (op->status) {
        s->reserved = 0;
        send_end(s, ST_TIMED_OUT);
    } else {
        send_convert(s);
    }
}

void send_give_up(struct send *s) {
    op_cancel(&s->memory.op);
}

/* D1-43, D1-44: what is large has its own share, so that it never keeps out what is small. */
static void send_reserve(struct send *s) {
    struct bridge *b = bridge_of_send(s);
    int64_t cap = b->settings.batch_bytes_max;
    struct batch batch = {.codec = CODEC_NONE};
    if (batch_read(s->slot->part->records, &batch) == ST_OK && batch.records_count > 0) {
        int64_t slots = (int64_t)batch.records_count * SLOT_BYTES;
        s->reserved = batch.body.len > slots ? batch.body.len : slots;
    }
    if (batch.codec != CODEC_NONE || s->reserved > cap)
        s->reserved = cap;
    s->pooled = s->reserved >= POOL_FROM_BYTES || batch.codec != CODEC_NONE;
    s->budget = s->pooled ? b->decoding : b->decoding_small;
    if (budget_try(s->budget, s->reserved)) {
        send_convert(s);
        return;
    }
    op_init(&s->memory.op, s->producer->loop->loop, send_on_memory);
    budget_take(s->budget, &s->memory, s->reserved);
}

/* Hold what it has really become. */
static void send_resettle(struct send *s, enum status st) {
    int64_t holds = st ? 0 : s->batch.len;
    if (holds > s->reserved)
        budget_force(s->budget, holds - s->reserved);
    else
        budget_give(s->budget, s->reserved - holds);
    s->reserved = holds;
}

/* ---- converting ---- */

/* D1-41 */
static bool state_is_over(const struct append_state *state, const struct iggy_backend_settings *settings) {
    return state->used_bytes > settings->batch_bytes_max * REQUEST_CAPS ||
           state->used_slots > settings->slots_max * REQUEST_CAPS;
}

/* Check the batch and charge the request for it (D1-6 .. D1-12, D1-40, D1-41). What was inflated is then in scratch. */
static enum status batch_admit(struct send *s, struct spare *scratch, struct batch_report *report) {
    const struct iggy_backend_settings *settings = &bridge_of_send(s)->settings;
    struct append_state *state = s->slot->state;
    const struct batch_limits limits = {.bytes_max = settings->batch_bytes_max,
                                        .slots_max = settings->slots_max,
                                        .timestamp_max = INT64_MAX,
                                        .zstd_allowed = state->call->zstd_allowed};
    enum status st = batch_check(s->slot->part->records, &limits, scratch, report);
    s->slot->part->reason = report->reason;
    state->used_bytes += report->used_bytes;
    state->used_slots += report->used_slots;
    state->over_budget = state_is_over(state, settings);
    return !st && state->over_budget ? ST_OVER_BUDGET : st;
}

static enum status batch_map(struct send *s, struct spare *scratch) {
    struct backend_append_part *part = s->slot->part;
    struct batch_report report = {.reason = NULL};
    enum status st = batch_admit(s, scratch, &report);
    if (st)
        return st;
    struct bytes body = report.batch.body;
    if (report.batch.codec != CODEC_NONE)
        body = (struct bytes){scratch->ptr, (int32_t)scratch->len};
    st = records_to_messages(&report.batch, body, s->with_producer, &s->builder, &s->batch, &part->reason);
    if (st)
        return st;
    part->reason = NULL;
    s->body.target.messages_count = (uint32_t)report.batch.records_count;
    if (IGGY_HEADER_BYTES + TARGET_BYTES_MAX + (int64_t)s->batch.len >
        bridge_of_send(s)->settings.send_bytes_max) {
        part->reason = "The records are larger than one send to the Iggy server may be.";
        return ST_TOO_BIG;
    }
    return ST_OK;
}

/* On the loop or in the pool. */
static void convert_run(struct send *s) {
    struct spare *scratch = spare_of_thread();
    s->status = scratch ? batch_map(s, scratch) : ST_NO_MEMORY;
    if (scratch)
        spare_put_back(scratch);
}

static void convert_work(struct work *w) {
    struct send *s = container_of(w, struct send, work);
    convert_run(s);
    op_complete(&s->converted, ST_OK);
}

static void send_converted(struct send *s) {
    struct producer *p = s->producer;
    s->slot->state->converting = false;
    send_resettle(s, s->status);
    if (s->status) {
        send_end(s, s->status);
        return;
    }
    s->phase = SEND_READY;
    producer_flush(p);
    producer_run(p);
}

static void send_on_converted(struct op *op) {
    send_converted(container_of(op, struct send, converted));
}

static void send_convert(struct send *s) {
    struct producer *p = s->producer;
    s->phase = SEND_CONVERTING;
    s->with_producer = p->client && iggy_client_version(p->client) >= IGGY_0_12_0;
    s->slot->state->converting = true;
    p->preparing = NULL;
    if (!s->pooled) {
        convert_run(s);
        send_converted(s);
        return;
    }
    op_init(&s->converted, p->loop->loop, send_on_converted);
    op_start(&s->converted, NULL);
    work_submit(&s->work, convert_work);
    producer_run(p);
}

/* ---- sending ---- */

/* Whether one to the same partition left before it and isn't over. */
static bool send_follows_another(const struct send *s) {
    for (struct link *l = s->producer->sends.next; l != &s->link; l = l->next) {
        const struct send *before = container_of(l, struct send, link);
        if (before->slot->part->partition == s->slot->part->partition &&
            str_equal(before->view->name, s->view->name))
            return true;
    }
    return false;
}

/* G-6 */
static bool send_misses_another(const struct send *s) {
    return holes_before(producers_holes(s->producer->loop->producers), s->slot->state->call->connection,
                        s->slot->part, now_of(s));
}

/* One that came early and no longer does; NULL: none. */
static struct send *producer_early(const struct producer *p) {
    for (struct link *l = p->sends.next; l != &p->sends; l = l->next) {
        struct send *s = container_of(l, struct send, link);
        if (s->phase == SEND_EARLY && !send_follows_another(s))
            return s;
    }
    return NULL;
}

void producer_flush(struct producer *p) {
    p->draining = p->draining && p->sent_count + p->rerouted_count > 0;
    struct send *early = producer_early(p);
    if (early) {
        send_settle(early, ST_OK);
        return; /* that has flushed what is left */
    }
    for (struct link *l = p->sends.next; l != &p->sends && !p->draining; l = l->next) {
        struct send *s = container_of(l, struct send, link);
        if (s->phase == SEND_SENT || s->phase == SEND_EARLY)
            continue;
        if (s->phase != SEND_READY)
            break;
        if (send_misses_another(s) && !send_follows_another(s)) {
            send_end(s, ST_BAD_SEQUENCE);
            return; /* that has flushed what is left */
        }
        send_call(s);
    }
}

static void send_call(struct send *s) {
    struct producer *p = s->producer;
    s->body.target.stream = iggy_by_name(s->view->stream);
    s->body.target.topic = iggy_by_name(s->view->topic);
    s->body.target.partitioning = (struct iggy_partitioning){
        .kind = IGGY_PARTITION_ID, .partition_id = (uint32_t)s->slot->part->partition};
    s->body.batch = s->batch;
    s->request = (struct iggy_request){.deadline_ms = deadline_of(s)};
    s->request.context = s->view->partitions[s->slot->part->partition].context;
    s->phase = SEND_SENT;
    p->sent_count++;
    op_init(&s->request.op, p->loop->loop, send_on_answer);
    if (p->client) {
        iggy_client_call(p->client, &s->request, IGGY_CMD_send_messages, &s->body);
    } else { /* it is stopping */
        op_start(&s->request.op, NULL);
        op_complete(&s->request.op, ST_UNAVAILABLE);
    }
}

/* D1-21. -1: the answer doesn't tell. */
static int64_t base_offset_of(const struct iggy_request *r) {
    struct iggy_send_messages_res res;
    _Alignas(max_align_t) uint8_t room[CONFIRMATION_ROOM];
    struct arena a;
    arena_init(&a, room, sizeof room, CONFIRMATION_ROOM);
    int64_t offset = -1;
    if (iggy_request_decode(r, &a, &res) == ST_OK && res.offset_known && res.confirmations_count > 0 &&
        res.confirmations[0].base_offset <= INT64_MAX)
        offset = (int64_t)res.confirmations[0].base_offset;
    arena_release(&a);
    return offset;
}

static bool send_wants_route(const struct send *s) {
    const struct iggy_request *r = &s->request;
    return r->op.status == ST_OK && iggy_error_retry(r->code) == IGGY_RETRY_NEW_ROUTE && !s->rerouted &&
           now_of(s) < deadline_of(s);
}

/* Unless it is known already. */
static void route_forget(struct send *s) {
    if (view_peek(s->producer->loop, s->view->name) == s->view)
        views_forget(bridge_of_send(s), s->view->name);
}

static void send_reroute(struct send *s) {
    s->rerouted = true;
    s->phase = SEND_REROUTED;
    s->producer->rerouted_count++;
    s->producer->draining = true;
    route_forget(s);
    iggy_request_release(&s->request);
    view_ask(s, s->view->asked_ms);
}

/* Whether it came too early: the server misses one that isn't over yet. */
static bool send_is_ahead(const struct send *s) {
    const struct iggy_request *r = &s->request;
    return r->op.status == ST_OK && r->code == IGGY_ERR_PRODUCER_SEQUENCE_OUT_OF_ORDER &&
           send_follows_another(s);
}

/* What the server says of its number holds no longer when those before it have come. */
static void send_wait_for_others(struct send *s) {
    struct producer *p = s->producer;
    if (now_of(s) >= deadline_of(s)) {
        send_end(s, ST_TIMED_OUT);
        return;
    }
    iggy_request_release(&s->request);
    s->phase = SEND_READY;
    p->draining = true;
    producer_flush(p);
}

static void send_on_answer(struct op *op) {
    struct send *s = container_of(op, struct send, request.op);
    s->producer->sent_count--;
    if (send_wants_route(s)) {
        send_reroute(s);
        return;
    }
    if (send_is_ahead(s)) {
        send_wait_for_others(s);
        return;
    }
    enum status st = bridge_status(&s->request, IGGY_CALL_SEND);
    if (!st && send_follows_another(s)) { /* G-6 */
        s->phase = SEND_EARLY;
        producer_flush(s->producer);
    } else {
        send_settle(s, st);
    }
}

static void send_settle(struct send *s, enum status st) {
    if (!st && !s->with_producer && send_misses_another(s)) /* the server didn't look */
        st = ST_TIMED_OUT;
    if (!st) {
        s->slot->part->base_offset = base_offset_of(&s->request);
        bridge_appended(bridge_of_send(s), s->view->name, s->slot->part->partition);
    } else if (st == ST_NOT_FOUND || iggy_error_retry(s->request.code) == IGGY_RETRY_NEW_ROUTE) {
        route_forget(s);
    }
    send_end(s, st);
}
