/*
 *   offsets_log_look   -> look_begin: view_get -> [no topic: done] look_poll -> look_on_poll -> look_poll .. until a poll brings nothing -> done
 *   offsets_log_append -> append_next: view_get -> [no topic: topic_new -> view_get] -> send_messages -> done
 *                              ^                                                              |
 *                              +---- the next one, while the answers are on their way --------+
 */
#include "backend/iggy/offsets_log.h"

#include "backend/iggy/offset_lanes.h"
#include "backend/iggy/reads.h"
#include "backend/iggy/topic_new.h"
#include "base/clock.h"
#include "base/logging.h"
#include "base/mem.h"
#include "iggy/batch.h"
#include "iggy/errors.h"
#include "net/loop.h"

#define PAGE_BYTES         ((int64_t)1 << 20)
#define PAGE_MESSAGES_MAX  10000
#define PAGE_MESSAGES_SURE 16 /* so many can't make an answer too large */
#define PAGE_STEP          16
#define SEND_HEAD_BYTES    2048 /* header and target of a send, at most */
#define ANSWER_BYTES       4096

struct offsets_log {
    struct bridge_loop *loop;
    struct kept_offsets table;
    uint32_t topic_id; /* of the topic that the table was read from, as the next */
    uint64_t created_us;
    uint64_t next; /* the offset to read on from */
    bool told;     /* of messages that are not ours */

    struct link looks; /* offsets_look */
    bool looking;
    struct view_want want;
    struct topic_view *view; /* held, while looking */
    uint32_t page;
    struct iggy_poll_messages_req poll;
    struct iggy_request request;

    struct link appends;              /* offsets_append, those that were not sent */
    struct offsets_append *preparing; /* the first of them; NULL: none is */
    bool made;                        /* the topic was just made for it */
    struct view_want append_want;
    struct topic_new make;
};

static void look_begin(struct offsets_log *log);
static void look_on_view(struct op *op);
static void look_poll(struct offsets_log *log);
static void look_on_poll(struct op *op);
static void append_next(struct offsets_log *log);
static void append_on_view(struct op *op);
static void append_on_made(struct op *op);
static void append_on_sent(struct op *op);

/* ---- reading ---- */

static void want_end(struct offsets_look *look, enum status st) {
    list_remove(&look->link);
    timer_clear(loop_timers(look->loop->loop), &look->timer);
    op_complete(&look->op, st);
}

static void want_on_deadline(struct timer *t) {
    want_end(container_of(t, struct offsets_look, timer), ST_TIMED_OUT);
}

void offsets_log_look(struct bridge_loop *l, struct offsets_look *look) {
    struct offsets_log *log = l->offsets_log;
    op_start(&look->op, NULL);
    look->loop = l;
    look->there = false;
    look->covered = false;
    look->link = (struct link){0};
    look->timer = (struct timer){0};
    if (timer_set(loop_timers(l->loop), &look->timer, want_on_deadline, look->deadline_ms)) {
        op_complete(&look->op, ST_NO_MEMORY);
        return;
    }
    list_push_tail(&log->looks, &look->link);
    if (!log->looking)
        look_begin(log);
}

const struct kept_offsets *offsets_log_table(const struct bridge_loop *l) {
    return &l->offsets_log->table;
}

static void table_reset(struct offsets_log *log) {
    kept_clear(&log->table);
    log->next = 0;
}

static void look_begin(struct offsets_log *log) {
    int64_t now = loop_now_ms(log->loop->loop);
    for (struct link *l = log->looks.next; l != &log->looks; l = l->next)
        container_of(l, struct offsets_look, link)->covered = true;
    log->looking = true;
    log->want = (struct view_want){.name = STR(OFFSETS_TOPIC), .asked_ms = now, .deadline_ms = now + CALL_MS};
    op_init(&log->want.op, log->loop->loop, look_on_view);
    view_get(log->loop, &log->want);
}

static void look_end(struct offsets_log *log, enum status st, bool there) {
    view_unref(log->view);
    log->view = NULL;
    log->looking = false;
    for (struct link *l = log->looks.next, *next; l != &log->looks; l = next) {
        struct offsets_look *look = container_of(l, struct offsets_look, link);
        next = l->next;
        if (!look->covered)
            continue;
        look->there = there;
        want_end(look, st);
    }
    if (!list_empty(&log->looks))
        look_begin(log);
}

static void look_on_view(struct op *op) {
    struct offsets_log *log = container_of(op, struct offsets_log, want.op);
    log->view = log->want.view;
    if (op->status == ST_NOT_FOUND) {
        table_reset(log);
        look_end(log, ST_OK, false);
        return;
    }
    if (op->status || log->view->partitions_count == 0) {
        look_end(log, op->status ? op->status : ST_UNAVAILABLE, false);
        return;
    }
    const struct topic_facts *facts = &log->view->facts;
    if (facts->topic_id != log->topic_id || facts->created_us != log->created_us)
        table_reset(log);
    log->topic_id = facts->topic_id;
    log->created_us = facts->created_us;
    int64_t page = PAGE_BYTES / view_message_bytes(&log->view->partitions[0]);
    log->page = page < 1 ? 1 : page < PAGE_MESSAGES_MAX ? (uint32_t)page : PAGE_MESSAGES_MAX;
    look_poll(log);
}

static void look_poll(struct offsets_log *log) {
    struct bridge_loop *l = log->loop;
    struct iggy_client *client = offsets_reader(l);
    if (!client) {
        look_end(log, ST_UNAVAILABLE, false);
        return;
    }
    log->poll = (struct iggy_poll_messages_req){
        .consumer = {.kind = IGGY_CONSUMER, .id = iggy_by_name(STR(READ_CONSUMER))},
        .stream = iggy_by_name(log->view->stream),
        .topic = iggy_by_name(log->view->topic),
        .partition = {.present = true},
        .strategy = {.kind = log->next > 0 ? IGGY_FROM_OFFSET : IGGY_FROM_FIRST, .value = log->next},
        .count = log->page,
    };
    iggy_request_release(&log->request);
    log->request = (struct iggy_request){.context = log->view->partitions[0].context,
                                         .deadline_ms = loop_now_ms(l->loop) + CALL_MS,
                                         .once = log->page > PAGE_MESSAGES_SURE};
    op_init(&log->request.op, l->loop, look_on_poll);
    iggy_client_call(client, &log->request, IGGY_CMD_poll_messages, &log->poll);
}

/* What is none of ours is passed over: anybody may write to a topic. */
static enum status message_take(struct offsets_log *log, struct bytes payload) {
    enum status st = kept_apply(&log->table, payload);
    if (st != ST_INVALID)
        return st;
    if (!log->told)
        log_line(LOG_WARN, "iggy", "a message among the offsets of groups is none of this gateway's",
                 LTEXT("topic", OFFSETS_TOPIC));
    log->told = true;
    return ST_OK;
}

static enum status page_take(struct offsets_log *log, struct bytes page) {
    struct iggy_batch b;
    while (page.len > 0) {
        struct iggy_messages_iter it;
        struct iggy_message m;
        enum status st = iggy_batch_read(page, true, &b);
        if (st)
            return st;
        iggy_messages_init(&it, &b);
        while (iggy_messages_next(&it, &m) == ST_OK) {
            uint64_t offset = b.base_offset + m.offset_delta;
            if (offset < log->next)
                continue;
            st = message_take(log, m.payload);
            if (st)
                return st;
            log->next = offset + 1;
        }
        page = (struct bytes){page.ptr + b.size_bytes, page.len - b.size_bytes};
    }
    return ST_OK;
}

/* An answer that was too large has ended the connection: smaller ones from now on. True: it is asked for. */
static bool look_ask_fewer(struct offsets_log *log) {
    const struct iggy_request *r = &log->request;
    if (r->op.status != ST_TIMED_OUT || !r->may_have_landed || !r->once ||
        loop_now_ms(log->loop->loop) >= r->deadline_ms)
        return false;
    log->page = log->page > PAGE_STEP ? log->page / PAGE_STEP : 1;
    look_poll(log);
    return true;
}

static void look_on_poll(struct op *op) {
    struct offsets_log *log = container_of(op, struct offsets_log, request.op);
    struct iggy_poll_messages_res res = {0};
    struct arena a;
    if (look_ask_fewer(log))
        return;
    enum status st = bridge_status(&log->request, IGGY_CALL_READ);
    arena_init(&a, NULL, 0, ANSWER_BYTES);
    if (!st)
        st = iggy_request_decode(&log->request, &a, &res);
    arena_release(&a);
    uint64_t before = log->next;
    if (!st) {
        st = page_take(log, res.batches);
        if (st)
            table_reset(log); /* half of a message may count */
    }
    iggy_request_release(&log->request);
    if (st == ST_NOT_FOUND) { /* deleted just now */
        views_forget(log->loop->bridge, STR(OFFSETS_TOPIC));
        st = ST_UNAVAILABLE;
    }
    if (!st && log->next > before)
        look_poll(log);
    else
        look_end(log, st, !st);
}

/* ---- appending ---- */

void offsets_log_append(struct bridge_loop *l, struct offsets_append *a) {
    struct offsets_log *log = l->offsets_log;
    op_start(&a->op, NULL);
    a->log = log;
    a->batch = NULL;
    a->view = NULL;
    a->request = (struct iggy_request){.deadline_ms = 0};
    a->link = (struct link){0};
    list_push_tail(&log->appends, &a->link);
    append_next(log);
}

static void append_end(struct offsets_append *a, enum status st) {
    iggy_request_release(&a->request);
    view_unref(a->view);
    mem_free(a->batch);
    op_complete(&a->op, st);
}

/* The one that was prepared is on its way, or over. */
static void append_prepared(struct offsets_log *log) {
    log->preparing = NULL;
    append_next(log);
}

static void append_look(struct offsets_log *log) {
    log->append_want =
        (struct view_want){.name = STR(OFFSETS_TOPIC), .deadline_ms = log->preparing->deadline_ms};
    op_init(&log->append_want.op, log->loop->loop, append_on_view);
    view_get(log->loop, &log->append_want);
}

static void append_next(struct offsets_log *log) {
    if (log->preparing || list_empty(&log->appends))
        return;
    log->preparing = container_of(list_pop_head(&log->appends), struct offsets_append, link);
    log->made = false;
    append_look(log);
}

static void append_make(struct offsets_log *log) {
    static const struct backend_setting keep = {.key = {"retention.ms", 12}, .value = {"-1", 2}};
    log->made = true;
    log->make = (struct topic_new){.name = STR(OFFSETS_TOPIC),
                                   .partitions_count = 1,
                                   .settings = &keep,
                                   .settings_count = 1,
                                   .save_at_once = true,
                                   .deadline_ms = log->preparing->deadline_ms};
    op_init(&log->make.op, log->loop->loop, append_on_made);
    topic_new_start(log->loop, &log->make);
}

static void append_on_made(struct op *op) {
    struct offsets_log *log = container_of(op, struct offsets_log, make.op);
    if (op->status == ST_OK || op->status == ST_EXISTS) {
        append_look(log);
        return;
    }
    append_end(log->preparing, op->status);
    append_prepared(log);
}

/* The message as a batch of one. */
static enum status append_build(struct offsets_append *a) {
    struct iggy_batch_builder b = {0};
    struct bytes batch;
    uint8_t *payload;
    size_t len = a->message->bytes;
    uint64_t now_us = (uint64_t)clock_wall_us();
    if (len + SEND_HEAD_BYTES > (size_t)a->log->loop->bridge->settings.send_bytes_max)
        return ST_REFUSED;
    enum status st = iggy_batch_builder_init(&b, now_us, len + SEND_HEAD_BYTES);
    if (!st)
        st = iggy_batch_builder_add(&b, NULL, now_us, (int32_t)len, 0, &payload);
    if (st) {
        iggy_batch_builder_release(&b);
        return st;
    }
    wbuf_flatten(a->message, payload);
    iggy_batch_builder_finish(&b, &batch);
    a->batch = b.ptr;
    a->body.batch = batch;
    return ST_OK;
}

static void append_send(struct offsets_append *a) {
    struct bridge_loop *l = a->log->loop;
    const struct topic_view *view = a->view;
    struct iggy_client *client = offsets_writer(l);
    enum status st = client ? append_build(a) : ST_UNAVAILABLE;
    if (st) {
        append_end(a, st);
        return;
    }
    a->body.target.stream = iggy_by_name(view->stream);
    a->body.target.topic = iggy_by_name(view->topic);
    a->body.target.partitioning = (struct iggy_partitioning){.kind = IGGY_PARTITION_ID};
    a->body.target.messages_count = 1;
    a->request.deadline_ms = a->deadline_ms;
    a->request.context = view->partitions[0].context;
    op_init(&a->request.op, l->loop, append_on_sent);
    iggy_client_call(client, &a->request, IGGY_CMD_send_messages, &a->body);
}

static void append_on_view(struct op *op) {
    struct offsets_log *log = container_of(op, struct offsets_log, append_want.op);
    struct offsets_append *a = log->preparing;
    bool missing = op->status == ST_NOT_FOUND;
    a->view = log->append_want.view;
    if (missing && a->make && !log->made) {
        append_make(log);
        return;
    }
    if (missing && !a->make)
        append_end(a, ST_OK);
    else if (op->status || a->view->partitions_count == 0)
        append_end(a, op->status && !missing ? op->status : ST_UNAVAILABLE);
    else
        append_send(a);
    append_prepared(log);
}

static void append_on_sent(struct op *op) {
    struct offsets_append *a = container_of(op, struct offsets_append, request.op);
    enum status st = bridge_status(&a->request, IGGY_CALL_SEND);
    if (!st) {
        bridge_appended(a->log->loop->bridge, STR(OFFSETS_TOPIC), 0);
    } else if (st == ST_NOT_FOUND || iggy_error_retry(a->request.code) == IGGY_RETRY_NEW_ROUTE) {
        views_forget(a->log->loop->bridge, STR(OFFSETS_TOPIC));
        st = ST_UNAVAILABLE;
    }
    append_end(a, st);
}

/* ---- the whole ---- */

enum status offsets_log_new(struct bridge_loop *l, struct offsets_log **out) {
    struct offsets_log *log = mem_take_zeroed(1, sizeof *log);
    if (!log)
        return ST_NO_MEMORY;
    log->loop = l;
    list_init(&log->looks);
    list_init(&log->appends);
    *out = log;
    return ST_OK;
}

void offsets_log_free(struct offsets_log *log) {
    if (!log)
        return;
    kept_clear(&log->table);
    mem_free(log);
}
