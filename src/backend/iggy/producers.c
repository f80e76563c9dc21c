#include "backend/iggy/producers.h"

#include "base/logging.h"
#include "base/mem.h"
#include "net/loop.h"

#define BUCKETS           64
#define SWEEP_MS          30000             /* G-3 */
#define SPARES_MAX        16                /* sends that are kept for use on a loop */
#define SPARE_BUILDER_MAX ((size_t)4 << 20) /* of the memory that stays with one */

struct producers {
    struct bridge_loop *loop;
    struct link ids[BUCKETS]; /* producer.id_link */
    struct link used;         /* producer.use_link, least recently used first */
    struct link gone;         /* producer.use_link: closing */
    int32_t count, count_max;
    int32_t sends_max; /* of one connection */
    struct producer shared;
    struct holes *holes; /* owned */
    struct timer sweep;
    struct link spare; /* send */
    int32_t spare_count;
};

struct holes *producers_holes(const struct producers *ps) {
    return ps->holes;
}

int32_t producers_sends_max(const struct producers *ps) {
    return ps->sends_max;
}

static struct link *bucket_of(struct producers *ps, int64_t id) {
    return &ps->ids[(uint64_t)id % BUCKETS];
}

static void producer_init(struct producer *p, struct bridge_loop *l, int64_t id) {
    p->loop = l;
    p->id = id;
    list_init(&p->running);
    list_init(&p->waiting);
    list_init(&p->sends);
}

/* ---- closing ---- */

static void shared_on_gone(struct closing *c) {
    (void)c; /* it stays, and connects again when it is wanted */
}

static void producer_on_gone(struct closing *c) {
    struct producer *p = container_of(c, struct producer, closing);
    if (!list_empty(&p->sends))
        return; /* it is stopping, and a conversion still runs: producers_free */
    list_remove(&p->use_link);
    mem_free(p);
}

static void client_close(struct producer *p) {
    struct iggy_client *client = p->client;
    p->client = NULL;
    p->closing.gone = p->id == PRODUCER_NONE ? shared_on_gone : producer_on_gone;
    bridge_client_close(p->loop, client, &p->closing);
}

/* One that nothing runs in. */
static void producer_close(struct producers *ps, struct producer *p) {
    list_remove(&p->id_link);
    list_remove(&p->use_link);
    list_push_tail(&ps->gone, &p->use_link);
    ps->count--;
    client_close(p);
}

static bool producer_is_unused(const struct producer *p, int64_t since_ms) {
    return list_empty(&p->running) && p->used_ms <= since_ms;
}

static void sweep_on_time(struct timer *t) {
    struct producers *ps = container_of(t, struct producers, sweep);
    struct bridge_loop *l = ps->loop;
    int64_t now = loop_now_ms(l->loop), since = now - l->bridge->settings.produce_session_idle_ms;
    for (struct link *i = ps->used.next, *next; i != &ps->used; i = next) {
        struct producer *p = container_of(i, struct producer, use_link);
        next = i->next;
        if (producer_is_unused(p, since))
            producer_close(ps, p);
    }
    if (ps->shared.client && producer_is_unused(&ps->shared, since) && !ps->shared.closing.op.pending)
        client_close(&ps->shared);
    if ((ps->count > 0 || ps->shared.client) &&
        timer_set(loop_timers(l->loop), &ps->sweep, sweep_on_time, now + SWEEP_MS))
        log_line(LOG_WARN, "iggy", "no memory for a timer: unused connections stay open for now");
}

/* ---- the one for an id ---- */

static struct producer *producer_find(struct producers *ps, int64_t id) {
    struct link *bucket = bucket_of(ps, id);
    for (struct link *i = bucket->next; i != bucket; i = i->next) {
        struct producer *p = container_of(i, struct producer, id_link);
        if (p->id == id)
            return p;
    }
    return NULL;
}

/* G-2: what it has under way in the shared connection would be overtaken. */
static bool shares_now(const struct producers *ps, int64_t id) {
    for (const struct link *i = ps->shared.running.next; i != &ps->shared.running; i = i->next)
        if (container_of(i, struct append_state, link)->producer_id == id)
            return true;
    return false;
}

/* G-2: whether there is room for one more, made by closing another if need be. */
static bool make_room(struct producers *ps, int64_t now) {
    if (ps->count < ps->count_max)
        return true;
    for (struct link *i = ps->used.next; i != &ps->used; i = i->next) {
        struct producer *p = container_of(i, struct producer, use_link);
        if (!producer_is_unused(p, now - PRODUCER_UNUSED_MS))
            continue;
        producer_close(ps, p);
        return true;
    }
    return false;
}

/* NULL: there is no room, or no memory: then the shared one does. */
static struct producer *producer_add(struct producers *ps, int64_t id, int64_t now) {
    if (ps->count_max == 0 || shares_now(ps, id) || !make_room(ps, now))
        return NULL;
    struct producer *p = mem_take_zeroed(1, sizeof *p);
    if (!p)
        return NULL;
    producer_init(p, ps->loop, id);
    list_push_tail(bucket_of(ps, id), &p->id_link);
    list_push_tail(&ps->used, &p->use_link);
    ps->count++;
    return p;
}

/* One without a client has no use: it never had one. */
static void producer_drop(struct producers *ps, struct producer *p) {
    if (p == &ps->shared)
        return;
    list_remove(&p->id_link);
    list_remove(&p->use_link);
    ps->count--;
    mem_free(p);
}

struct producer *producer_take(struct bridge_loop *l, int64_t id) {
    struct producers *ps = l->producers;
    int64_t now = loop_now_ms(l->loop);
    struct producer *p = id == PRODUCER_NONE ? &ps->shared : producer_find(ps, id);
    if (!p)
        p = producer_add(ps, id, now);
    if (!p)
        p = &ps->shared;
    if (!p->client)
        p->client = bridge_client_new(l, ps->sends_max, l->bridge->answers);
    if (!p->client) {
        producer_drop(ps, p);
        return NULL;
    }
    p->used_ms = now;
    if (p != &ps->shared) {
        list_remove(&p->use_link);
        list_push_tail(&ps->used, &p->use_link);
    }
    /* Without memory for it the next take tries again. */
    if (ps->sweep.place == 0 && timer_set(loop_timers(l->loop), &ps->sweep, sweep_on_time, now + SWEEP_MS))
        log_line_limited(LOG_WARN, "iggy", "no memory for a timer: unused connections stay open for now");
    return p;
}

void producer_rest(struct producer *p) {
    p->used_ms = loop_now_ms(p->loop->loop);
}

/* ---- sends that are kept ---- */

struct send *producers_send_take(struct producers *ps) {
    struct link *l = list_pop_head(&ps->spare);
    if (!l)
        return mem_take_zeroed(1, sizeof(struct send));
    ps->spare_count--;
    return container_of(l, struct send, link);
}

static void send_free(struct send *s) {
    iggy_batch_builder_release(&s->builder);
    mem_free(s);
}

void producers_send_give(struct producers *ps, struct send *s) {
    if (ps->spare_count == SPARES_MAX || s->builder.room > SPARE_BUILDER_MAX) {
        send_free(s);
        return;
    }
    *s = (struct send){.builder = s->builder};
    list_push_tail(&ps->spare, &s->link);
    ps->spare_count++;
}

/* ---- all of them ---- */

enum status producers_new(struct bridge_loop *l, struct producers **out) {
    const struct iggy_backend_settings *s = &l->bridge->settings;
    struct producers *ps = mem_take_zeroed(1, sizeof *ps);
    if (!ps || holes_new(&ps->holes)) {
        mem_free(ps);
        return ST_NO_MEMORY;
    }
    int32_t here = (int32_t)(l - l->bridge->per_loop);
    ps->loop = l;
    ps->count_max = s->produce_sessions / s->loops_count + (here < s->produce_sessions % s->loops_count);
    ps->sends_max = SENDS_MAX / s->loops_count > SENDS_MIN ? SENDS_MAX / s->loops_count : SENDS_MIN;
    for (int i = 0; i < BUCKETS; i++)
        list_init(&ps->ids[i]);
    list_init(&ps->used);
    list_init(&ps->gone);
    list_init(&ps->spare);
    producer_init(&ps->shared, l, PRODUCER_NONE);
    *out = ps;
    return ST_OK;
}

/* What was not sent ends as such: the loop makes no clients any more. */
void producers_stop(struct producers *ps) {
    timer_clear(loop_timers(ps->loop->loop), &ps->sweep);
    while (!list_empty(&ps->used)) {
        struct producer *p = container_of(ps->used.next, struct producer, use_link);
        producer_close(ps, p);
        producer_run(p);
    }
    if (ps->shared.client)
        client_close(&ps->shared);
    producer_run(&ps->shared);
}

void producers_free(struct producers *ps) {
    if (!ps)
        return;
    while (!list_empty(&ps->gone))
        mem_free(container_of(list_pop_head(&ps->gone), struct producer, use_link));
    for (struct link *l; (l = list_pop_head(&ps->spare));)
        send_free(container_of(l, struct send, link));
    holes_free(ps->holes);
    mem_free(ps);
}
