/*
 *   ahead_go_on -> [first page] MARKED, only a note that a client may go on there
 *               -> [p followed such a note, or was read ahead] COMING -> ahead_on_answer -> HERE
 *   ahead_begin takes it out of the list; from then on it is the part's. All others end with their timer.
 *
 * Pages of one partition that nobody has taken yet are up to DEPTH: one travels while the other one is made.
 */
#include "backend/iggy/ahead.h"

#include "base/mem.h"
#include "iggy/batch.h"
#include "net/loop.h"

#define AHEADS_MAX      32 /* on a loop */
#define DEPTH           2
#define ROOM_MIN        ((int64_t)128 << 20) /* of the answers' memory that stays free */
#define IN_FLIGHT_MAX   (READS_FLIGHT_MAX / 2)
#define DECODED_MAX     4096
#define RECORD_OVERHEAD 32 /* at least so much shorter is a record's frame than a message's header */

enum progress { MARKED, COMING, HERE };

struct answer {
    struct bytes messages; /* in the request's frame */
    uint32_t count;
    uint64_t current_offset;
};

struct ahead {
    struct aheads *aheads;
    struct link link; /* in aheads->all until it is taken */
    struct uuid topic;
    uint32_t partition;
    int64_t offset;
    enum progress progress;
    struct timer timer; /* its end, while it isn't under way */
    struct op *reader;  /* who waits for the answer */
    uint32_t count;
    int64_t bytes_max;       /* of the records that a client takes at once */
    int64_t last_offset;     /* that the partition was known to have */
    struct topic_view *view; /* held; NULL: a mark */
    struct iggy_request request;
    struct iggy_poll_messages_req poll;
    struct iggy_fetch_messages_req fetch;
    struct iggy_fetch_partition fetched;
    bool good; /* there is an answer */
    struct answer answer;
};

struct aheads {
    struct bridge_loop *loop;
    struct link all; /* oldest first */
    int32_t count;
    bool stopping;
};

static void ahead_ask(struct ahead *a);
static void ahead_on_answer(struct op *op);

/* ---- the list ---- */

static void ahead_unlist(struct ahead *a) {
    if (!link_in_list(&a->link))
        return;
    list_remove(&a->link);
    a->aheads->count--;
}

static void ahead_free(struct ahead *a) {
    ahead_unlist(a);
    timer_clear(loop_timers(a->aheads->loop->loop), &a->timer);
    iggy_request_release(&a->request);
    view_unref(a->view);
    mem_free(a);
}

/* NULL: there is no room. */
static struct ahead *ahead_new(struct aheads *as, const struct uuid *topic, uint32_t partition,
                               int64_t offset) {
    struct ahead *oldest = as->count == AHEADS_MAX ? container_of(as->all.next, struct ahead, link) : NULL;
    if (oldest && oldest->progress != MARKED)
        return NULL;
    if (oldest)
        ahead_free(oldest);
    struct ahead *a = mem_take_zeroed(1, sizeof *a);
    if (!a)
        return NULL;
    a->aheads = as;
    a->topic = *topic;
    a->partition = partition;
    a->offset = offset;
    list_push_tail(&as->all, &a->link);
    as->count++;
    return a;
}

static bool ahead_is_of(const struct ahead *a, const struct uuid *topic, uint32_t partition) {
    return a->partition == partition && uuid_equal(&a->topic, topic);
}

static struct ahead *ahead_find(struct aheads *as, const struct uuid *topic, uint32_t partition,
                                int64_t offset) {
    for (struct link *l = as->all.next; l != &as->all; l = l->next) {
        struct ahead *a = container_of(l, struct ahead, link);
        if (a->offset == offset && ahead_is_of(a, topic, partition))
            return a;
    }
    return NULL;
}

static bool ahead_is_deep(const struct aheads *as, const struct uuid *topic, uint32_t partition) {
    int32_t count = 0;
    for (const struct link *l = as->all.next; l != &as->all; l = l->next) {
        const struct ahead *a = container_of(l, struct ahead, link);
        count += a->progress != MARKED && ahead_is_of(a, topic, partition);
    }
    return count >= DEPTH;
}

static void ahead_on_time(struct timer *t) {
    ahead_free(container_of(t, struct ahead, timer));
}

/* It is no longer of use after a while. False: it is gone at once. */
static bool ahead_keep(struct ahead *a) {
    struct loop *loop = a->aheads->loop->loop;
    if (!timer_set(loop_timers(loop), &a->timer, ahead_on_time, loop_now_ms(loop) + AHEAD_MS))
        return true;
    ahead_free(a);
    return false;
}

/* ---- going on ---- */

/* What messages take as records, at most. */
static int64_t records_bytes_max(struct bytes messages, uint32_t count) {
    return messages.len - (int64_t)count * (IGGY_MESSAGE_HEADER_BYTES - RECORD_OVERHEAD);
}

static bool may_ask(struct aheads *as, const struct topic_view *view) {
    struct iggy_client *client = bridge_reader(as->loop, view->facts.topic_id);
    return !as->stopping && client && iggy_client_is_ready(client) &&
           iggy_client_in_flight(client) < IN_FLIGHT_MAX &&
           budget_free_bytes(as->loop->bridge->settings.budget) >= ROOM_MIN;
}

/* Where the page after a begins; -1: that isn't known. A poll for so many messages is thought to bring them. */
static int64_t ahead_next(const struct ahead *a) {
    if (a->progress == HERE)
        return records_bytes_max(a->answer.messages, a->answer.count) > a->bytes_max
                   ? -1
                   : a->offset + (int64_t)a->answer.count;
    return view_fetches(a->view) ? -1 : a->offset + (int64_t)a->count;
}

/* Ask for what comes behind a, and so on, while that is there and isn't too much. */
static void aheads_ask_behind(struct ahead *a) {
    struct aheads *as = a->aheads;
    for (int64_t next; (next = ahead_next(a)) >= 0;) {
        struct ahead *b = ahead_find(as, &a->topic, a->partition, next);
        if (!b) {
            bool wanted = next <= a->last_offset && !ahead_is_deep(as, &a->topic, a->partition);
            b = wanted && may_ask(as, a->view) ? ahead_new(as, &a->topic, a->partition, next) : NULL;
            if (!b)
                return;
            b->count = a->count;
            b->bytes_max = a->bytes_max;
            b->last_offset = a->last_offset;
            b->view = a->view;
            view_ref(b->view);
            b->poll = a->poll;
            b->fetch = a->fetch;
            b->fetched = a->fetched;
            ahead_ask(b);
        }
        if (b->progress == MARKED)
            return;
        a = b;
    }
}

static void ahead_ask_first(struct ahead *a, struct read_part *p, uint32_t count) {
    a->count = count;
    a->last_offset = (int64_t)p->current_offset;
    a->view = p->topic->view;
    view_ref(a->view);
    if (view_fetches(a->view))
        fetch_one(p, a->offset, &a->fetch, &a->fetched);
    else
        poll_one(p, a->offset, count, &a->poll);
    ahead_ask(a);
}

static int64_t part_bytes_max(const struct read_part *p) {
    int64_t all = p->topic->reading->call->bytes_max;
    return p->call->bytes_max < all ? p->call->bytes_max : all;
}

/* Records that don't fit into the answer come again with the next read, which then begins before what follows. */
void ahead_go_on(struct read_part *p, uint32_t count) {
    struct aheads *as = p->topic->reading->loop->aheads;
    const struct topic_view *view = p->topic->view;
    uint32_t partition = (uint32_t)p->call->partition;
    int64_t next = p->call->offset + (int64_t)p->messages_count, bytes_max = part_bytes_max(p);
    if (p->status || p->messages_count == 0 || next > (int64_t)p->current_offset || as->stopping ||
        records_bytes_max(p->messages, p->messages_count) > bytes_max)
        return;
    struct ahead *a = ahead_find(as, &view->facts.id, partition, next);
    if (!a) {
        bool ask = p->follows && may_ask(as, view) && !ahead_is_deep(as, &view->facts.id, partition);
        a = ahead_new(as, &view->facts.id, partition, next);
        if (!a)
            return;
        a->bytes_max = bytes_max;
        if (!ask) {
            ahead_keep(a);
            return;
        }
        ahead_ask_first(a, p, count);
    }
    if (a->progress != MARKED)
        aheads_ask_behind(a);
}

static void ahead_ask(struct ahead *a) {
    struct bridge_loop *l = a->aheads->loop;
    struct iggy_client *client = bridge_reader(l, a->view->facts.topic_id);
    const struct iggy_polling from = {.kind = IGGY_FROM_OFFSET, .value = (uint64_t)a->offset};
    a->progress = COMING;
    a->request = (struct iggy_request){
        .context = a->view->partitions[a->partition].context,
        .deadline_ms = loop_now_ms(l->loop) + CALL_MS,
        .once = true, /* who wants it asks again */
    };
    op_init(&a->request.op, l->loop, ahead_on_answer);
    if (view_fetches(a->view)) {
        a->fetched.strategy = from;
        a->fetch.partitions = &a->fetched;
        iggy_client_call(client, &a->request, IGGY_CMD_fetch_messages, &a->fetch);
    } else {
        a->poll.strategy = from;
        iggy_client_call(client, &a->request, IGGY_CMD_poll_messages, &a->poll);
    }
}

/* ---- what came ---- */

static bool poll_read(const struct ahead *a, struct arena *arena, struct answer *out) {
    struct iggy_poll_messages_res res;
    if (iggy_request_decode(&a->request, arena, &res) || res.partition_id != a->partition)
        return false;
    *out = (struct answer){res.batches, res.messages_count, res.current_offset};
    return true;
}

static bool fetch_read(const struct ahead *a, struct arena *arena, struct answer *out) {
    struct iggy_fetch_messages_res res;
    if (iggy_request_decode(&a->request, arena, &res) || res.sections_count != 1)
        return false;
    const struct iggy_fetch_section *s = &res.sections[0];
    if (s->status || s->partition_id != a->partition || (int64_t)s->batches_bytes != res.batches.len)
        return false;
    *out = (struct answer){res.batches, s->messages_count, s->current_offset};
    return true;
}

/* An answer without messages is none: what that means is for others to find out. */
static bool answer_read(const struct ahead *a, struct answer *out) {
    struct arena arena;
    arena_init(&arena, NULL, 0, DECODED_MAX);
    bool good = a->request.op.status == ST_OK && a->request.code == 0 &&
                (view_fetches(a->view) ? fetch_read(a, &arena, out) : poll_read(a, &arena, out)) &&
                out->count > 0 && out->current_offset <= INT64_MAX;
    arena_release(&arena);
    return good;
}

static void ahead_on_answer(struct op *op) {
    struct ahead *a = container_of(op, struct ahead, request.op);
    a->progress = HERE;
    a->good = answer_read(a, &a->answer);
    if (a->good)
        a->last_offset = (int64_t)a->answer.current_offset;
    if (a->reader)
        op_complete(a->reader, ST_OK);
    else if (!a->good || a->aheads->stopping)
        ahead_free(a);
    else if (ahead_keep(a))
        aheads_ask_behind(a);
}

/* ---- taking it ---- */

enum ahead_state ahead_begin(struct read_part *p, op_fn *done) {
    struct aheads *as = p->topic->reading->loop->aheads;
    struct ahead *a =
        ahead_find(as, &p->topic->view->facts.id, (uint32_t)p->call->partition, p->call->offset);
    p->follows = a != NULL;
    if (!a)
        return AHEAD_NONE;
    if (a->progress == MARKED) {
        ahead_free(a);
        return AHEAD_NONE;
    }
    if (a->progress == COMING && a->request.deadline_ms > p->topic->reading->call->deadline_ms)
        return AHEAD_NONE;
    ahead_unlist(a);
    timer_clear(loop_timers(as->loop->loop), &a->timer);
    p->ahead = a;
    if (a->progress == HERE)
        return AHEAD_HERE;
    op_init(&p->ahead_op, as->loop->loop, done);
    op_start(&p->ahead_op, NULL);
    a->reader = &p->ahead_op;
    return AHEAD_COMING;
}

bool ahead_take(struct read_part *p) {
    struct ahead *a = p->ahead;
    bool good = a->good;
    p->ahead = NULL;
    if (good) {
        read_part_answer(p, a->answer.messages, a->answer.count, a->answer.current_offset);
        frame_free(p->frame);
        p->frame = iggy_request_take_frame(&a->request);
        ahead_go_on(p, a->count);
    }
    ahead_free(a);
    return good;
}

/* ---- all of them ---- */

enum status aheads_new(struct bridge_loop *l, struct aheads **out) {
    struct aheads *as = mem_take_zeroed(1, sizeof *as);
    if (!as)
        return ST_NO_MEMORY;
    as->loop = l;
    list_init(&as->all);
    *out = as;
    return ST_OK;
}

void aheads_stop(struct aheads *as) {
    as->stopping = true;
    for (struct link *l = as->all.next, *next; l != &as->all; l = next) {
        struct ahead *a = container_of(l, struct ahead, link);
        next = l->next;
        if (a->progress != COMING)
            ahead_free(a);
    }
}

void aheads_free(struct aheads *as) {
    if (!as)
        return;
    for (struct link *l; (l = list_pop_head(&as->all));) {
        struct ahead *a = container_of(l, struct ahead, link);
        view_unref(a->view);
        mem_free(a);
    }
    mem_free(as);
}
