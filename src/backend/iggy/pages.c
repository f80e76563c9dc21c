/*
 * 0.11, and 0.12.0: a poll for each partition, on one connection and all at once. A poll is told how many messages, not how many bytes: as many
 * as the bytes that are wanted hold, by the average size that the view shows (D2-31, D2-32). A partition of which the view says that
 * nothing new is there is not polled, unless something was appended through us since.
 */
#include "backend/iggy/ahead.h"
#include "net/loop.h"

#define COUNT_MAX  ((int64_t)1 << 20)
#define COUNT_SURE 16 /* so many can't make an answer too large */
#define COUNT_STEP 16

static void page_on_answer(struct op *op);
static void page_on_ahead(struct op *op);

/* How many messages are worth asking for within so many bytes. */
static uint32_t page_count(const struct view_partition *seen, int64_t bytes) {
    int64_t count = bytes / view_message_bytes(seen);
    return (uint32_t)(count < 1 ? 1 : count > COUNT_MAX ? COUNT_MAX : count);
}

/* The view is all that is needed: the offset is at the end, or can't be. */
static bool part_by_view(struct read_part *p, const struct view_partition *seen) {
    int64_t end = view_end(seen);
    if (p->call->offset < 0) {
        p->status = ST_OUT_OF_RANGE;
    } else if (p->call->offset == end && !p->look) {
        p->end = end;
        p->doubt = false;
    } else {
        return false;
    }
    p->settled = true;
    return true;
}

/* What is left of the call's bytes when others bring what they are thought to bring. */
static int64_t part_bytes(const struct read_part *p, const struct view_partition *seen, int64_t left) {
    int64_t bytes = p->call->bytes_max < left ? p->call->bytes_max : left;
    int64_t here = view_bytes_from(seen, p->call->offset);
    if (!p->look && here > 0 && here < bytes)
        bytes = here;
    return bytes > 0 ? bytes : 0;
}

void poll_one(const struct read_part *p, int64_t offset, uint32_t count, struct iggy_poll_messages_req *out) {
    const struct topic_view *view = p->topic->view;
    *out = (struct iggy_poll_messages_req){
        .consumer = {.kind = IGGY_CONSUMER, .id = iggy_by_name(STR(READ_CONSUMER))},
        .stream = iggy_by_name(view->stream),
        .topic = iggy_by_name(view->topic),
        .partition = {.present = true, .id = (uint32_t)p->call->partition},
        .strategy = {.kind = IGGY_FROM_OFFSET, .value = (uint64_t)offset},
        .count = count,
    };
}

static void page_ask(struct read_part *p, struct iggy_client *client, uint32_t count) {
    struct read_topic *t = p->topic;
    struct reading *r = t->reading;
    struct loop *loop = r->loop->loop;
    poll_one(p, p->call->offset, count, &p->poll);
    iggy_request_release(&p->request);
    p->request = (struct iggy_request){
        .context = t->view->partitions[p->call->partition].context,
        .deadline_ms = loop_now_ms(loop) + CALL_MS,
        .once = count > COUNT_SURE,
    };
    if (r->call->deadline_ms < p->request.deadline_ms)
        p->request.deadline_ms = r->call->deadline_ms;
    t->polls++;
    op_init(&p->request.op, loop, page_on_answer);
    iggy_client_call(client, &p->request, IGGY_CMD_poll_messages, &p->poll);
}

/* It may have been asked for before. */
static void page_begin(struct read_part *p, struct iggy_client *client, uint32_t count) {
    p->poll.count = count;
    switch (ahead_begin(p, page_on_ahead)) {
    case AHEAD_COMING:
        p->topic->polls++;
        return;
    case AHEAD_HERE:
        if (ahead_take(p))
            return;
        break;
    case AHEAD_NONE:
        break;
    }
    page_ask(p, client, count);
}

void pages_begin(struct read_topic *t) {
    struct iggy_client *client = bridge_reader(t->reading->loop, t->view->facts.topic_id);
    int64_t left = t->reading->call->bytes_max;
    if (!client)
        read_topic_fail(t, ST_UNAVAILABLE);
    t->crowded = false;
    t->polls = 1;
    for (int32_t i = 0; i < t->parts_count; i++) {
        struct read_part *p = &t->parts[i];
        if (p->settled)
            continue;
        const struct view_partition *seen = &t->view->partitions[p->call->partition];
        if (part_by_view(p, seen))
            continue;
        if (left <= 0 && t->polls > 1) { /* the others will use the bytes up; a consumer asks again */
            p->settled = true;
            p->end = view_end(seen);
            continue;
        }
        int64_t bytes = part_bytes(p, seen, left);
        left -= bytes;
        page_begin(p, client, page_count(seen, bytes));
    }
    if (--t->polls == 0)
        read_topic_done(t);
}

static void page_take(struct read_part *p) {
    struct arena arena;
    struct iggy_poll_messages_res res;
    enum status st = bridge_status(&p->request, IGGY_CALL_READ);
    arena_init(&arena, NULL, 0, 4096);
    if (!st)
        st = iggy_request_decode(&p->request, &arena, &res);
    if (!st && res.partition_id != (uint32_t)p->call->partition)
        st = ST_REFUSED;
    if (st) {
        read_part_fail(p, st);
    } else {
        read_part_answer(p, res.batches, res.messages_count, res.current_offset);
        frame_free(p->frame);
        p->frame = iggy_request_take_frame(&p->request);
        ahead_go_on(p, p->poll.count);
    }
    arena_release(&arena);
    iggy_request_release(&p->request);
}

/*
 * An answer that is too large ends the connection, before it or with it: messages may be much larger than those before them. So what was
 * under way when a connection was lost is asked for again with fewer. True: it is.
 */
static bool page_ask_fewer(struct read_part *p) {
    const struct iggy_request *r = &p->request;
    struct bridge_loop *l = p->topic->reading->loop;
    bool lost = r->op.status == ST_TIMED_OUT && r->may_have_landed && loop_now_ms(l->loop) < r->deadline_ms;
    struct iggy_client *client = lost && r->once ? bridge_reader(l, p->topic->view->facts.topic_id) : NULL;
    if (!client)
        return false;
    page_ask(p, client, p->poll.count > COUNT_STEP ? p->poll.count / COUNT_STEP : 1);
    return true;
}

static void page_on_ahead(struct op *op) {
    struct read_part *p = container_of(op, struct read_part, ahead_op);
    struct read_topic *t = p->topic;
    struct iggy_client *client = bridge_reader(t->reading->loop, t->view->facts.topic_id);
    bool taken = ahead_take(p);
    if (!taken && client)
        page_ask(p, client, p->poll.count);
    else if (!taken)
        read_part_fail(p, ST_UNAVAILABLE);
    if (--t->polls == 0)
        read_topic_done(t);
}

static void page_on_answer(struct op *op) {
    struct read_part *p = container_of(op, struct read_part, request.op);
    struct read_topic *t = p->topic;
    if (!page_ask_fewer(p))
        page_take(p);
    if (--t->polls == 0)
        read_topic_done(t);
}
