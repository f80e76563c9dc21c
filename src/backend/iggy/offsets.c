/*
 * Offsets: the end by a view of now, the start by the first message, times by looking through messages (D3-1, D3-2, D3-7).
 *
 *   iggy_offsets_op -> offset_begin, each: view_get -> offset_on_view -> [not the end: poll] offset_on_poll .. offset_done
 *
 * A time is looked for from the first message that the server took at that time, by the messages' own times; when that finds nothing, once
 * more from an hour before, as records may be so far ahead of the clock. The greatest time is looked for in all that is kept.
 */
#include "backend/iggy/reads.h"
#include "base/clock.h"
#include "base/mem.h"
#include "bridge/message_map.h"
#include "net/loop.h"

#define PAGE_BYTES         ((int64_t)1 << 20)
#define PAGE_MESSAGES_MAX  10000
#define PAGE_MESSAGES_SURE 16 /* so many can't make an answer too large */
#define PAGE_STEP          16

struct offset_call {
    struct bridge_loop *loop;
    struct backend_offsets *call;
    int32_t left; /* parts that are not done, and one while they are begun */
    struct offset_part {
        struct offset_call *all;
        struct backend_offset_part *call;
        struct view_want want;
        struct topic_view *view; /* held */
        struct iggy_request request;
        struct iggy_poll_messages_req poll;
        uint32_t page;                /* messages of one */
        bool from_before;             /* it looks from an hour before */
        int64_t best_offset, best_ms; /* the greatest time so far; best_offset -1: none */
        uint64_t end;
    } parts[];
};

static void offset_on_view(struct op *op);
static void offset_on_poll(struct op *op);

/* D3-5, D3-7: what the request's time is over for is 7. */
static void offset_done(struct offset_part *p, enum status st) {
    struct offset_call *all = p->all;
    if (st == ST_UNAVAILABLE && loop_now_ms(all->loop->loop) >= all->call->deadline_ms)
        st = ST_TIMED_OUT;
    p->call->status = st;
    view_unref(p->view);
    p->view = NULL;
    if (--all->left > 0)
        return;
    struct backend_offsets *call = all->call;
    mem_free(all);
    op_complete(&call->op, ST_OK);
}

/* ---- polls ---- */

static void offset_poll(struct offset_part *p, uint8_t strategy, uint64_t value, uint32_t count) {
    struct bridge_loop *l = p->all->loop;
    struct iggy_client *client = bridge_reader(l, p->view->facts.topic_id);
    if (!client) {
        offset_done(p, ST_UNAVAILABLE);
        return;
    }
    p->poll = (struct iggy_poll_messages_req){
        .consumer = {.kind = IGGY_CONSUMER, .id = iggy_by_name(STR(READ_CONSUMER))},
        .stream = iggy_by_name(p->view->stream),
        .topic = iggy_by_name(p->view->topic),
        .partition = {.present = true, .id = (uint32_t)p->call->partition},
        .strategy = {.kind = strategy, .value = value},
        .count = count,
    };
    iggy_request_release(&p->request);
    p->request = (struct iggy_request){
        .context = p->view->partitions[p->call->partition].context,
        .deadline_ms = p->all->call->deadline_ms,
        .once = count > PAGE_MESSAGES_SURE,
    };
    op_init(&p->request.op, l->loop, offset_on_poll);
    iggy_client_call(client, &p->request, IGGY_CMD_poll_messages, &p->poll);
}

/* The time of a look, in us of the server. */
static uint64_t look_time_us(const struct offset_part *p) {
    int64_t from_ms = p->call->timestamp_ms - (p->from_before ? BACKEND_TIMESTAMP_AHEAD_MS : 0);
    int64_t latest_ms = clock_wall_ms() - (p->from_before ? BACKEND_TIMESTAMP_AHEAD_MS : 0);
    from_ms = from_ms < latest_ms ? from_ms : latest_ms;
    return from_ms > 0 ? (uint64_t)from_ms * 1000 : 0;
}

static void offset_look(struct offset_part *p) {
    if (p->call->kind == OFFSET_BY_TIME)
        offset_poll(p, IGGY_FROM_TIMESTAMP, look_time_us(p), p->page);
    else
        offset_poll(p, IGGY_FROM_FIRST, 0, p->call->kind == OFFSET_EARLIEST ? 1 : p->page);
}

/* An answer that was too large has ended the connection: smaller ones from now on (pages.c). True: it is asked for. */
static bool offset_ask_fewer(struct offset_part *p) {
    const struct iggy_request *r = &p->request;
    if (r->op.status != ST_TIMED_OUT || !r->may_have_landed || !r->once ||
        loop_now_ms(p->all->loop->loop) >= r->deadline_ms)
        return false;
    p->page = p->page > PAGE_STEP ? p->page / PAGE_STEP : 1;
    offset_poll(p, p->poll.strategy.kind, p->poll.strategy.value, p->page);
    return true;
}

/* ---- what a page says ---- */

/* Looks at one message. True: it is the one. ST_UNMAPPABLE ones have no time, and are no record. */
static bool message_is_it(struct offset_part *p, struct message_map *map, const struct iggy_batch *b,
                          const struct iggy_message *m) {
    int64_t ms;
    int64_t offset = (int64_t)(b->base_offset + m->offset_delta);
    if (message_map_time(map, b, m, &ms))
        return false;
    if (p->call->kind == OFFSET_MAX_TIME && (p->best_offset < 0 || ms > p->best_ms)) {
        p->best_offset = offset;
        p->best_ms = ms;
    }
    if (p->call->kind != OFFSET_BY_TIME || ms < p->call->timestamp_ms)
        return false;
    p->best_offset = offset;
    p->best_ms = ms;
    return true;
}

/* Goes through a page. next_out: the offset after it. True: found. */
static bool page_search(struct offset_part *p, struct bytes page, uint64_t *next_out) {
    struct message_map map = {0};
    bool found = false;
    struct iggy_batch b;
    while (!found && page.len > 0 && !iggy_batch_read(page, true, &b)) {
        struct iggy_messages_iter it;
        struct iggy_message m;
        iggy_messages_init(&it, &b);
        while (!found && iggy_messages_next(&it, &m) == ST_OK) {
            *next_out = b.base_offset + m.offset_delta + 1;
            found = message_is_it(p, &map, &b, &m);
        }
        page = (struct bytes){page.ptr + b.size_bytes, page.len - b.size_bytes};
    }
    message_map_release(&map);
    return found;
}

static void offset_found(struct offset_part *p) {
    p->call->offset = p->best_offset;
    p->call->timestamp_ms = p->best_offset < 0 ? -1 : p->best_ms;
    offset_done(p, ST_OK);
}

static void offset_take_first(struct offset_part *p, struct bytes page) {
    struct iggy_batch b;
    struct iggy_messages_iter it;
    struct iggy_message m;
    p->call->offset = view_end(&p->view->partitions[p->call->partition]); /* nothing is kept */
    if (page.len > 0 && !iggy_batch_read(page, true, &b)) {
        iggy_messages_init(&it, &b);
        if (iggy_messages_next(&it, &m) == ST_OK)
            p->call->offset = (int64_t)(b.base_offset + m.offset_delta);
    }
    offset_done(p, ST_OK);
}

/* No more messages: what was found counts, or a look from before. */
static void offset_ends(struct offset_part *p) {
    if (p->best_offset < 0 && p->call->kind == OFFSET_BY_TIME && !p->from_before) {
        p->from_before = true;
        offset_look(p);
    } else {
        offset_found(p);
    }
}

/* What a page that was not the one for the start says. */
static void offset_take_page(struct offset_part *p, struct bytes page) {
    uint64_t next = 0;
    bool found = page_search(p, page, &next);
    bool behind = p->poll.strategy.kind == IGGY_FROM_OFFSET && next <= p->poll.strategy.value;
    if (found)
        offset_found(p);
    else if (next == 0 || next >= p->end || behind)
        offset_ends(p);
    else
        offset_poll(p, IGGY_FROM_OFFSET, next, p->page);
}

static void offset_on_poll(struct op *op) {
    struct offset_part *p = container_of(op, struct offset_part, request.op);
    struct arena arena;
    struct iggy_poll_messages_res res = {0};
    if (offset_ask_fewer(p))
        return;
    enum status st = bridge_status(&p->request, IGGY_CALL_READ);
    arena_init(&arena, NULL, 0, 4096);
    if (!st)
        st = iggy_request_decode(&p->request, &arena, &res);
    arena_release(&arena);
    struct frame *frame = iggy_request_take_frame(&p->request);
    iggy_request_release(&p->request);
    if (st)
        offset_done(p, st);
    else if (p->call->kind == OFFSET_EARLIEST)
        offset_take_first(p, res.batches);
    else
        offset_take_page(p, res.batches);
    frame_free(frame);
}

/* ---- begin ---- */

static void offset_on_view(struct op *op) {
    struct offset_part *p = container_of(op, struct offset_part, want.op);
    if (op->status) {
        offset_done(p, op->status);
        return;
    }
    p->view = p->want.view;
    if (p->call->partition < 0 || (uint32_t)p->call->partition >= p->view->partitions_count) {
        offset_done(p, ST_NOT_FOUND);
        return;
    }
    const struct view_partition *seen = &p->view->partitions[p->call->partition];
    int64_t end = view_end(seen);
    int64_t page = PAGE_BYTES / view_message_bytes(seen);
    p->end = (uint64_t)end;
    p->page = page < 1 ? 1 : page < PAGE_MESSAGES_MAX ? (uint32_t)page : PAGE_MESSAGES_MAX;
    bool empty = seen->messages_count == 0;
    if (p->call->kind == OFFSET_LATEST || p->call->kind == OFFSET_EARLIEST)
        p->call->timestamp_ms = -1;
    if (p->call->kind == OFFSET_LATEST || (p->call->kind == OFFSET_EARLIEST && empty)) {
        p->call->offset = end;
        offset_done(p, ST_OK);
    } else if (empty) {
        offset_found(p);
    } else {
        offset_look(p);
    }
}

void iggy_offsets_op(struct backend *backend, struct backend_offsets *call) {
    struct bridge_loop *l = bridge_here(bridge_of(backend));
    op_start(&call->op, NULL);
    struct offset_call *all =
        mem_take_zeroed(1, sizeof *all + (size_t)call->parts_count * sizeof all->parts[0]);
    for (int32_t i = 0; i < call->parts_count; i++) {
        call->parts[i].offset = -1;
        if (!all && !call->parts[i].status)
            call->parts[i].status = ST_UNAVAILABLE;
    }
    if (!all) {
        op_complete(&call->op, ST_OK);
        return;
    }
    all->loop = l;
    all->call = call;
    all->left = call->parts_count + 1;
    for (int32_t i = 0; i < call->parts_count; i++) {
        struct offset_part *p = &all->parts[i];
        struct backend_offset_part *part = &call->parts[i];
        *p = (struct offset_part){.all = all, .call = part, .best_offset = -1};
        if (part->status) {
            all->left--;
            continue;
        }
        p->want = (struct view_want){.name = part->topic,
                                     .id = part->id,
                                     .asked_ms = loop_now_ms(l->loop),
                                     .deadline_ms = call->deadline_ms};
        op_init(&p->want.op, l->loop, offset_on_view);
        view_get(l, &p->want);
    }
    if (--all->left == 0) {
        mem_free(all);
        op_complete(&call->op, ST_OK);
    }
}
