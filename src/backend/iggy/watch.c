/*
 * Waiting for records. With 0.12.1 the server waits: a FetchMessages for each topic, whose answer is kept for the next round. Where that would
 * be too many at once, and with older servers, a timer looks at the topics' views every 100 ms (D2-41, D2-42). A Produce through
 * this gateway wakes at once those who wait by views.
 *
 *   iggy_watch_op -> fetches_begin: [any answer] watch_on_fetch -> the others are called back, watch_finish
 *                 -> views_begin: [100 ms] watch_look -> view_get each -> watch_on_view -> enough? watch_finish
 *   bridge_appended ----^             deadline, cancel -> watch_finish
 */
#include "backend/iggy/reads.h"
#include "base/mem.h"
#include "net/loop.h"

#define FETCH_TOPICS_MAX 4  /* a watch of more topics looks at views */
#define FETCH_SPARE      16 /* what a connection must have room for beside requests that wait */

struct watch_topic {
    struct watch *watch;
    struct view_want want;
};

/* One backend_watch. */
struct watch {
    struct link link; /* in loop->watches while it waits by views */
    struct bridge_loop *loop;
    struct backend_watch *call;
    struct reading *reading;
    struct timer deadline, pause;
    struct op end; /* runs watch_finish once nothing is under way */
    enum status outcome;
    bool over, ending;
    int32_t fetching, looking; /* requests and views under way */
    struct watch_topic topics[];
};

/* ---- the end ---- */

static void watch_finish(struct op *op) {
    struct watch *w = container_of(op, struct watch, end);
    struct backend_watch *call = w->call;
    enum status outcome = w->outcome;
    w->reading->watch = NULL;
    call->backend_use = NULL;
    mem_free(w);
    op_complete(&call->op, outcome);
}

static void watch_end_if_idle(struct watch *w) {
    if (!w->over || w->fetching + w->looking > 0 || w->ending)
        return;
    w->ending = true;
    op_init(&w->end, w->loop->loop, watch_finish);
    loop_post(&w->end);
}

/* The first outcome counts. Fetches that are still out are called back; their ends come in any case. */
static void watch_over(struct watch *w, enum status outcome) {
    if (w->over)
        return;
    w->over = true;
    w->outcome = outcome;
    if (w->link.next) {
        list_remove(&w->link);
        atomic_fetch_sub(&w->loop->watches_count, 1);
    }
    timer_clear(loop_timers(w->loop->loop), &w->deadline);
    timer_clear(loop_timers(w->loop->loop), &w->pause);
    for (int32_t i = 0; i < w->reading->topics_count; i++)
        if (w->reading->topics[i].request.op.pending)
            op_cancel(&w->reading->topics[i].request.op);
    watch_end_if_idle(w);
}

static void watch_on_deadline(struct timer *t) {
    watch_over(container_of(t, struct watch, deadline), ST_TIMED_OUT);
}

static void watch_on_cancel(struct op *op) {
    struct backend_watch *call = container_of(op, struct backend_watch, op);
    if (call->backend_use)
        watch_over(call->backend_use, ST_CANCELED);
}

static void watch_pause(struct watch *w, timer_fn *then) {
    struct loop *loop = w->loop->loop;
    if (!w->over && timer_set(loop_timers(loop), &w->pause, then, loop_now_ms(loop) + VIEW_FRESH_MS))
        watch_over(w, ST_OK);
}

static void watch_on_pause(struct timer *t) {
    watch_over(container_of(t, struct watch, pause), ST_OK);
}

/* ---- the server waits ---- */

/* Errors that a Fetch waits through are no news: who is told of them asks again at once (D2-40). */
static bool status_is_news(enum status st) {
    return st == ST_NOT_FOUND || st == ST_UNKNOWN_ID || st == ST_OUT_OF_RANGE || st == ST_DENIED;
}

static bool topic_has_news(const struct read_topic *t) {
    for (int32_t i = 0; i < t->parts_count; i++) {
        const struct read_part *p = &t->parts[i];
        if (p->settled && (status_is_news(p->status) || p->messages_count > 0))
            return true;
    }
    return false;
}

static void watch_on_fetch(struct op *op) {
    struct read_topic *t = container_of(op, struct read_topic, request.op);
    struct watch *w = t->reading->watch;
    w->fetching--;
    if (op->status == ST_CANCELED) {
        iggy_request_release(&t->request);
    } else if (!fetch_take(t)) {
        watch_over(w, ST_OK); /* the topic was made anew: the next round finds out */
    } else {
        t->kept = true;
        if (topic_has_news(t))
            watch_over(w, ST_OK);
        else
            watch_pause(w, watch_on_pause); /* it could not, or its time was over: not at once again */
    }
    watch_end_if_idle(w);
}

/* For more than a few bytes: so many messages as that may be, and more than were there the last time. */
static uint32_t fetch_min_count(const struct read_topic *t, int64_t bytes_min) {
    int64_t had = 0, average = 1;
    if (bytes_min <= 1)
        return 1;
    for (int32_t i = 0; i < t->parts_count; i++) {
        const struct read_part *p = &t->parts[i];
        had += p->messages_count;
        if (p->call->partition >= 0 && (uint32_t)p->call->partition < t->view->partitions_count) {
            int64_t here = view_message_bytes(&t->view->partitions[p->call->partition]);
            average = here > average ? here : average;
        }
    }
    int64_t count = bytes_min / average;
    count = count > had ? count : had + 1;
    return (uint32_t)(count > INT32_MAX ? INT32_MAX : count);
}

/* False: it can't wait there; nothing has begun. */
static bool fetch_begin_wait(struct watch *w, struct read_topic *t) {
    struct iggy_client *client = bridge_reader(w->loop, t->view->facts.topic_id);
    int64_t wait_ms = w->call->deadline_ms - loop_now_ms(w->loop->loop);
    uint32_t min_count = fetch_min_count(t, w->call->bytes_min);
    if (!client || iggy_client_in_flight(client) + FETCH_SPARE > READS_FLIGHT_MAX)
        return false;
    read_topic_reset(t);
    if (fetch_prepare(t, wait_ms > 0 ? wait_ms : 0, min_count) || t->fetch.partitions_count == 0)
        return false;
    iggy_request_release(&t->request);
    t->request = (struct iggy_request){.deadline_ms = w->call->deadline_ms + CALL_MS};
    op_init(&t->request.op, w->loop->loop, watch_on_fetch);
    w->fetching++;
    iggy_client_call(client, &t->request, IGGY_CMD_fetch_messages, &t->fetch);
    return true;
}

/* Whether the server can wait for all of it. */
static bool fetches_can(const struct watch *w) {
    const struct reading *r = w->reading;
    if (r->topics_count > FETCH_TOPICS_MAX)
        return false;
    for (int32_t i = 0; i < r->topics_count; i++) {
        const struct read_topic *t = &r->topics[i];
        if (!t->view || !view_fetches(t->view))
            return false;
        for (int32_t k = 0; k < t->parts_count; k++)
            if (t->parts[k].call->partition < 0 ||
                (uint32_t)t->parts[k].call->partition >= t->view->partitions_count)
                return false;
    }
    return true;
}

/* False: views must do for what could not begin. */
static bool fetches_begin(struct watch *w) {
    if (!fetches_can(w))
        return false;
    for (int32_t i = 0; i < w->reading->topics_count; i++)
        if (!fetch_begin_wait(w, &w->reading->topics[i]))
            return false;
    return true;
}

/* ---- looking at views ---- */

static void watch_on_tick(struct timer *timer);

/* What a part would bring, by the view that its topic has. */
static int64_t part_bytes_there(const struct read_part *p) {
    const struct topic_view *view = p->topic->view;
    if (!view || p->call->partition < 0 || (uint32_t)p->call->partition >= view->partitions_count)
        return 0;
    const struct view_partition *seen = &view->partitions[p->call->partition];
    int64_t bytes = (view_end(seen) - p->call->offset) * view_message_bytes(seen);
    bytes = bytes < p->call->bytes_max ? bytes : p->call->bytes_max;
    return bytes > 0 ? bytes : 0;
}

static bool watch_is_met(const struct watch *w) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < w->reading->parts_count; i++)
        bytes += part_bytes_there(&w->reading->parts[i]);
    return bytes > 0 && bytes >= w->call->bytes_min;
}

static void watch_on_view(struct op *op) {
    struct watch_topic *wt = container_of(op, struct watch_topic, want.op);
    struct watch *w = wt->watch;
    struct read_topic *t = &w->reading->topics[wt - w->topics];
    w->looking--;
    if (!op->status) {
        view_unref(t->view);
        t->view = wt->want.view;
    }
    if (status_is_news(op->status) || watch_is_met(w))
        watch_over(w, ST_OK);
    else if (w->looking == 0)
        watch_pause(w, watch_on_tick);
    watch_end_if_idle(w);
}

/* One look at all topics; not while another is under way. */
static void watch_look(struct watch *w) {
    int64_t now = loop_now_ms(w->loop->loop);
    if (w->over || w->looking > 0)
        return;
    w->looking = w->reading->topics_count;
    for (int32_t i = 0; i < w->reading->topics_count; i++) {
        const struct read_topic *t = &w->reading->topics[i];
        struct watch_topic *wt = &w->topics[i];
        wt->want = (struct view_want){
            .name = t->parts[0].call->topic,
            .id = t->parts[0].call->id,
            .asked_ms = now,
            .deadline_ms = now + CALL_MS,
        };
        op_init(&wt->want.op, w->loop->loop, watch_on_view);
        view_get(w->loop, &wt->want);
    }
}

static void watch_on_tick(struct timer *t) {
    watch_look(container_of(t, struct watch, pause));
}

static void views_begin(struct watch *w) {
    list_push_tail(&w->loop->watches, &w->link);
    atomic_fetch_add(&w->loop->watches_count, 1);
    watch_look(w);
}

/* ---- a Produce through this gateway ---- */

struct appended {
    struct op op;
    struct bridge_loop *loop;
    int32_t partition;
    struct str name; /* behind the struct */
};

static void watch_on_append(struct watch *w, struct str name, int32_t partition) {
    bool mine = false;
    for (int32_t i = 0; i < w->reading->parts_count; i++) {
        struct read_part *p = &w->reading->parts[i];
        if (p->call->partition == partition && p->topic->view && str_equal(p->topic->view->name, name))
            mine = p->look = true;
    }
    if (mine && w->call->bytes_min <= 1)
        watch_over(w, ST_OK);
    else if (mine)
        watch_look(w);
}

static void loop_appended(struct bridge_loop *l, struct str name, int32_t partition) {
    struct link *next;
    for (struct link *at = l->watches.next; at != &l->watches; at = next) {
        next = at->next;
        watch_on_append(container_of(at, struct watch, link), name, partition);
    }
}

static void appended_run(struct op *op) {
    struct appended *a = container_of(op, struct appended, op);
    loop_appended(a->loop, a->name, a->partition);
    mem_free(a);
}

void bridge_appended(struct bridge *b, struct str name, int32_t partition) {
    struct bridge_loop *here = bridge_here(b);
    for (int i = 0; i < b->settings.loops_count; i++) {
        struct bridge_loop *l = &b->per_loop[i];
        if (atomic_load(&l->watches_count) == 0)
            continue;
        if (l == here) {
            loop_appended(l, name, partition);
            continue;
        }
        struct appended *a = mem_take_zeroed(1, sizeof *a + (size_t)name.len);
        if (!a)
            continue; /* the next tick sees it */
        char *copy = (char *)(a + 1);
        memcpy(copy, name.ptr, (size_t)name.len);
        a->loop = l;
        a->partition = partition;
        a->name = (struct str){copy, name.len};
        op_init(&a->op, l->loop, appended_run);
        loop_post(&a->op);
    }
}

/* ---- begin ---- */

void iggy_watch_op(struct backend *backend, struct backend_watch *call) {
    struct reading *r = call->read->backend_use;
    op_start(&call->op, watch_on_cancel);
    (void)backend;
    size_t topics = r ? (size_t)r->topics_count : 0;
    struct watch *w = r ? mem_take_zeroed(1, sizeof *w + topics * sizeof w->topics[0]) : NULL;
    if (!w) {
        op_complete(&call->op, ST_TIMED_OUT);
        return;
    }
    reading_drop_records(r);
    w->loop = r->loop;
    w->call = call;
    w->reading = r;
    r->watch = w;
    call->backend_use = w;
    for (size_t i = 0; i < topics; i++)
        w->topics[i].watch = w;
    if (timer_set(loop_timers(w->loop->loop), &w->deadline, watch_on_deadline, call->deadline_ms))
        watch_over(w, ST_TIMED_OUT);
    else if (!fetches_begin(w))
        views_begin(w);
}
