/*
 * Waiting for records. With 0.12.1 the server waits: a FetchMessages for each topic, whose answer is kept for the next round. Where that would
 * be too many at once, and with older servers, a timer looks at the topics' views every 100 ms (D2-41, D2-42). A Produce through
 * this gateway wakes at once those who wait by views.
 *
 *   iggy_watch_op -> topic_begin_wait: [any answer] watch_on_fetch -> the others are called back, watch_finish
 *                 -> else, watch_look: view_get each -> watch_on_view -> enough? watch_finish : [100 ms] watch_look
 *   bridge_appended ----^             deadline, cancel -> watch_finish
 *
 * A part that can't be read (-1: what is there is no record) is not waited for, so that it doesn't end each wait at once. What the server
 * has refused for now (6) is asked for again, no more often than every 100 ms.
 */
#include "backend/iggy/reads.h"
#include "base/mem.h"
#include "net/loop.h"

#define FETCH_TOPICS_MAX 4                /* a watch of more topics looks at views */
#define FETCH_SPARE      16               /* what a connection must have room for beside requests that wait */
#define FETCH_WAIT_MS    ((int64_t)60000) /* of one request; 0.12 allows ten times as much */
#define FETCH_LATE_MS    ((int64_t)50)    /* so long after the deadline the server's answer is waited for */
#define FETCH_BYTES_MIN \
    ((int64_t)256 * 1024) /* what answers bring that are kept until there is room for records */

struct watch_topic {
    struct watch *watch;
    bool by_views;
    struct view_want want;
};

/* One backend_watch. */
struct watch {
    struct link link; /* in loop->watches while it waits by views */
    struct bridge_loop *loop;
    struct backend_watch *call;
    struct reading *reading;
    struct timer deadline, pause, tick;
    struct op end; /* runs watch_finish once nothing is under way */
    enum status outcome;
    bool over, ending;
    bool by_views;             /* any topic */
    int32_t fetching, looking; /* requests and views under way */
    int32_t looks;             /* that have begun */
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

/* The first outcome counts. What is still out is called back; its end comes in any case. */
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
    timer_clear(loop_timers(w->loop->loop), &w->tick);
    for (int32_t i = 0; i < w->reading->topics_count; i++) {
        op_cancel(&w->reading->topics[i].request.op);
        op_cancel(&w->topics[i].want.op);
    }
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

static void watch_on_pause(struct timer *t) {
    watch_over(container_of(t, struct watch, pause), ST_OK);
}

/* For who asks again: not at once. */
static void watch_pause(struct watch *w, struct timer *timer, timer_fn *then) {
    struct loop *loop = w->loop->loop;
    if (!w->over && timer_set(loop_timers(loop), timer, then, loop_now_ms(loop) + VIEW_FRESH_MS))
        watch_over(w, ST_TIMED_OUT);
}

/* ---- what is waited for ---- */

/* Errors that a Fetch waits through are no news: who is told of them asks again at once (D2-40). */
static bool status_is_news(enum status st) {
    return st == ST_NOT_FOUND || st == ST_UNKNOWN_ID || st == ST_OUT_OF_RANGE || st == ST_DENIED;
}

/* Whether waiting changes nothing for it. */
static bool part_is_stuck(const struct read_part *p) {
    return p->status != ST_OK && p->status != ST_UNAVAILABLE;
}

/* Before it is asked for again; what is stuck stays as it is. */
static bool topic_reset_for_wait(struct read_topic *t) {
    bool any = false;
    t->kept = false;
    for (int32_t i = 0; i < t->parts_count; i++) {
        struct read_part *p = &t->parts[i];
        p->answered = p->judge = false;
        p->settled = part_is_stuck(p);
        p->messages = BYTES_NULL;
        if (p->settled)
            continue;
        any = true;
        p->status = ST_OK;
        p->end = -1;
    }
    return any;
}

/* ---- the server waits ---- */

static bool topic_has(const struct read_topic *t, bool (*fn)(const struct read_part *p)) {
    for (int32_t i = 0; i < t->parts_count; i++)
        if (t->parts[i].settled && fn(&t->parts[i]))
            return true;
    return false;
}

static bool part_is_refused(const struct read_part *p) {
    return status_is_news(p->status);
}

static bool part_is_unavailable(const struct read_part *p) {
    return p->status == ST_UNAVAILABLE;
}

static bool part_has_messages(const struct read_part *p) {
    return p->messages.len > 0;
}

static int64_t reading_bytes(const struct reading *r) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < r->parts_count; i++)
        bytes += r->parts[i].messages.len > 0 ? r->parts[i].messages.len : 0;
    return bytes;
}

/* What one of its messages takes: by the last answer, else by its view. */
static int64_t topic_message_bytes(const struct read_topic *t) {
    int64_t most = t->message_bytes;
    for (int32_t i = 0; most == 0 && i < t->parts_count; i++) {
        int64_t here = view_message_bytes(&t->view->partitions[t->parts[i].call->partition]);
        most = here > most ? here : most;
    }
    return most;
}

/* For more than a few bytes: so many messages as that may be, and more than were there the last time. */
static uint32_t fetch_min_count(const struct read_topic *t, int64_t bytes_min) {
    int64_t had = 0;
    if (bytes_min <= 1)
        return 1;
    for (int32_t i = 0; i < t->parts_count; i++)
        had += part_is_stuck(&t->parts[i]) ? 0 : t->parts[i].messages_count;
    int64_t count = bytes_min / topic_message_bytes(t);
    count = count > had ? count : had + 1;
    return (uint32_t)(count > INT32_MAX ? INT32_MAX : count);
}

static void watch_on_fetch(struct op *op);

static int64_t clamp_wait(int64_t ms) {
    return ms < 0 ? 0 : ms < FETCH_WAIT_MS ? ms : FETCH_WAIT_MS;
}

/* False: it can't wait there. */
static bool topic_begin_wait(struct watch *w, struct read_topic *t) {
    struct iggy_client *client = bridge_reader(w->loop, t->view->facts.topic_id);
    int64_t bytes_min = w->call->bytes_min, bytes_max = fetch_bytes_max(t->reading);
    int64_t bytes =
        bytes_min < INT64_MAX / 2 && bytes_min * 2 > FETCH_BYTES_MIN ? bytes_min * 2 : FETCH_BYTES_MIN;
    struct fetch_terms terms = {
        .wait_ms = clamp_wait(w->call->deadline_ms - loop_now_ms(w->loop->loop)),
        .min_count = fetch_min_count(t, bytes_min),
        .bytes_max = bytes < bytes_max ? bytes : bytes_max,
    };
    if (!client || iggy_client_in_flight(client) + FETCH_SPARE > READS_FLIGHT_MAX)
        return false;
    if (!topic_reset_for_wait(t))
        return true; /* there is nothing to wait for */
    if (fetch_prepare(t, &terms))
        return false;
    iggy_request_release(&t->request);
    t->request = (struct iggy_request){.deadline_ms = w->call->deadline_ms + CALL_MS};
    op_init(&t->request.op, w->loop->loop, watch_on_fetch);
    w->fetching++;
    iggy_client_call(client, &t->request, IGGY_CMD_fetch_messages, &t->fetch);
    return true;
}

/* Messages are there, but not so many bytes as are waited for: for more of them, while there is time. */
static bool topic_waits_on(struct watch *w, struct read_topic *t) {
    return w->call->bytes_min > 1 && !topic_has(t, part_is_refused) &&
           reading_bytes(w->reading) < w->call->bytes_min &&
           reading_bytes(w->reading) < fetch_bytes_max(w->reading) &&
           loop_now_ms(w->loop->loop) < w->call->deadline_ms && !w->over && topic_begin_wait(w, t);
}

/* An answer that says that something can't be read now is not kept: the next round asks again. */
static void watch_on_answer(struct watch *w, struct read_topic *t) {
    bool in_time = loop_now_ms(w->loop->loop) < w->call->deadline_ms;
    t->kept = !topic_has(t, part_is_unavailable);
    if (topic_has(t, part_is_refused) || topic_has(t, part_has_messages)) {
        if (!topic_waits_on(w, t))
            watch_over(w, ST_OK);
    } else if (in_time) {
        watch_pause(w, &w->pause, watch_on_pause);
    } else if (w->fetching == 0) {
        watch_over(w, ST_TIMED_OUT);
    }
}

static void watch_on_fetch(struct op *op) {
    struct read_topic *t = container_of(op, struct read_topic, request.op);
    struct watch *w = t->reading->watch;
    w->fetching--;
    if (op->status == ST_CANCELED) {
        iggy_request_release(&t->request);
        watch_pause(w, &w->pause, watch_on_pause); /* if not by us, the gateway stops */
    } else if (!fetch_take(t)) {
        watch_over(w, ST_OK); /* the topic was made anew: the next round finds out */
    } else {
        watch_on_answer(w, t);
    }
    watch_end_if_idle(w);
}

/* Whether the server can wait for what is asked of a topic. */
static bool topic_can_wait(const struct read_topic *t) {
    if (t->reading->topics_count > FETCH_TOPICS_MAX || !t->view || !view_fetches(t->view))
        return false;
    for (int32_t i = 0; i < t->parts_count; i++)
        if (t->parts[i].call->partition < 0 ||
            (uint32_t)t->parts[i].call->partition >= t->view->partitions_count)
            return false;
    return true;
}

/* ---- looking at views ---- */

static void watch_on_tick(struct timer *timer);

/* What a view says that the last read has found otherwise is believed after a pause only: it may be that for long. */
static bool part_is_believed(const struct watch *w, const struct read_part *p) {
    return !part_is_stuck(p) && (w->looks > 1 || (p->status == ST_OK && !p->doubt));
}

/* What a part would bring, by the view that its topic has. */
static int64_t part_bytes_there(const struct watch *w, const struct read_part *p) {
    const struct topic_view *view = p->topic->view;
    if (!view || !part_is_believed(w, p) || p->call->partition < 0 ||
        (uint32_t)p->call->partition >= view->partitions_count)
        return 0;
    int64_t bytes = view_bytes_from(&view->partitions[p->call->partition], p->call->offset);
    return bytes < p->call->bytes_max ? bytes : p->call->bytes_max;
}

/* Whether it will be refused: the partition is gone, or what it wants is beyond the end. */
static bool part_is_lost(const struct watch *w, const struct read_part *p) {
    const struct topic_view *view = p->topic->view;
    if (!view || w->looks <= 1 || part_is_stuck(p) || p->call->partition < 0)
        return false;
    return (uint32_t)p->call->partition >= view->partitions_count ||
           p->call->offset > view_end(&view->partitions[p->call->partition]);
}

static bool watch_is_met(const struct watch *w) {
    int64_t bytes = 0;
    bool lost = false;
    for (int32_t i = 0; i < w->reading->topics_count; i++) {
        const struct read_topic *t = &w->reading->topics[i];
        for (int32_t k = 0; w->topics[i].by_views && k < t->parts_count; k++) {
            bytes += part_bytes_there(w, &t->parts[k]);
            lost |= part_is_lost(w, &t->parts[k]);
        }
    }
    return lost || (bytes > 0 && bytes >= w->call->bytes_min);
}

/* So that a part of which a view says again and again what a read doesn't find is noticed. */
static void watch_tell(struct watch *w) {
    for (int32_t i = 0; i < w->reading->parts_count; i++)
        w->reading->parts[i].told = part_bytes_there(w, &w->reading->parts[i]) > 0;
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
    if (!w->over && !status_is_news(op->status) && watch_is_met(w))
        watch_tell(w);
    if (status_is_news(op->status) || watch_is_met(w))
        watch_over(w, ST_OK);
    else if (w->looking == 0)
        watch_pause(w, &w->tick, watch_on_tick);
    watch_end_if_idle(w);
}

/* One look at all topics that are not waited for at the server; not while another is under way. */
static void watch_look(struct watch *w) {
    struct loop *loop = w->loop->loop;
    int64_t now = loop_now_ms(loop);
    if (w->over || w->looking > 0)
        return;
    w->looks++;
    for (int32_t i = 0; i < w->reading->topics_count; i++)
        w->looking += w->topics[i].by_views;
    for (int32_t i = 0; i < w->reading->topics_count; i++) {
        const struct read_topic *t = &w->reading->topics[i];
        struct watch_topic *wt = &w->topics[i];
        if (!wt->by_views)
            continue;
        wt->want = (struct view_want){
            .name = t->parts[0].call->topic,
            .id = t->parts[0].call->id,
            .asked_ms = now,
            .deadline_ms = now + CALL_MS,
        };
        op_init(&wt->want.op, loop, watch_on_view);
        view_get(w->loop, &wt->want);
    }
}

static void watch_on_tick(struct timer *t) {
    watch_look(container_of(t, struct watch, tick));
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

static void watch_begin(struct watch *w) {
    const struct reading *r = w->reading;
    for (int32_t i = 0; i < r->topics_count; i++) {
        struct watch_topic *wt = &w->topics[i];
        struct read_topic *t = &r->topics[i];
        wt->watch = w;
        wt->by_views = !topic_can_wait(t) || !topic_begin_wait(w, t);
        w->by_views |= wt->by_views;
    }
    int64_t late_ms = w->by_views ? 0 : FETCH_LATE_MS;
    if (timer_set(loop_timers(w->loop->loop), &w->deadline, watch_on_deadline,
                  w->call->deadline_ms + late_ms)) {
        watch_over(w, ST_TIMED_OUT);
    } else if (w->by_views) {
        list_push_tail(&w->loop->watches, &w->link);
        atomic_fetch_add(&w->loop->watches_count, 1);
        watch_look(w);
    }
}

void iggy_watch_op(struct backend *backend, struct backend_watch *call) {
    struct reading *r = call->read->backend_use;
    struct bridge_loop *l = bridge_here(bridge_of(backend));
    op_start(&call->op, watch_on_cancel);
    call->backend_use = NULL;
    if (r)
        reading_drop_records(r);
    size_t topics = r ? (size_t)r->topics_count : 0;
    bool late = call->deadline_ms <= loop_now_ms(l->loop);
    struct watch *w = r && !late ? mem_take_zeroed(1, sizeof *w + topics * sizeof w->topics[0]) : NULL;
    if (!w) {
        op_complete(&call->op, ST_TIMED_OUT);
        return;
    }
    w->loop = l;
    w->call = call;
    w->reading = r;
    r->watch = w;
    call->backend_use = w;
    watch_begin(w);
}
