/*
 * Waiting for data: a watch hangs one slot on the lane of each partition it reads, and fires once.
 *
 *   append -> lane_wake: enough there?; deleted -> lane_gone -> [the watch's loop] watch_end: take the slots off, complete
 *   deadline, cancel ------------------------^
 *
 * Whoever sets `fired` first decides the outcome. Slots of other lanes are taken off on the watch's own loop, so no lane
 * ever needs a second lane's lock.
 */
#include "backend/store/store_impl.h"

#include "base/mem.h"
#include "net/loop.h"

struct watch_slot {
    struct link link; /* in lane->watchers, under its lock */
    struct watch_state *state;
    struct lane *lane;
    int32_t part; /* of the read */
};

struct watch_state {
    struct backend_watch *call;
    struct timer timer;
    struct op end; /* runs watch_end on the call's loop */
    _Atomic bool fired;
    enum status outcome;
    int32_t slots_count;
    struct watch_slot slots[];
};

static void watch_end(struct op *op) {
    struct watch_state *state = container_of(op, struct watch_state, end);
    struct backend_watch *w = state->call;
    for (int32_t i = 0; i < state->slots_count; i++) {
        struct watch_slot *slot = &state->slots[i];
        pthread_mutex_lock(&slot->lane->lock);
        list_remove(&slot->link);
        pthread_mutex_unlock(&slot->lane->lock);
    }
    timer_clear(loop_timers(w->op.loop), &state->timer);
    enum status outcome = state->outcome;
    w->backend_use = NULL;
    mem_free(state);
    op_complete(&w->op, outcome);
}

/* Any thread; the first one counts. */
static void watch_fire(struct watch_state *state, enum status outcome) {
    if (atomic_exchange(&state->fired, true))
        return;
    state->outcome = outcome;
    loop_post(&state->end);
}

static void watch_on_deadline(struct timer *t) {
    watch_fire(container_of(t, struct watch_state, timer), ST_TIMED_OUT);
}

static void watch_on_cancel(struct op *op) {
    struct backend_watch *w = container_of(op, struct backend_watch, op);
    if (w->backend_use)
        watch_fire(w->backend_use, ST_CANCELED);
}

/* Whether a part may hold more than its read found: who has had some, and waits for more, is not woken by what it had. */
static bool part_has_grown(const struct backend_read_part *part, const struct partition *p) {
    int64_t end = partition_end(p);
    return end > part->offset && end > part->high_watermark;
}

/* Is there enough in all parts together? For anything at all: more than there was. */
static bool watch_is_met_by_all(const struct watch_state *state) {
    const struct backend_read *r = state->call->read;
    int64_t bytes = 0;
    for (int32_t i = 0; i < r->parts_count; i++) {
        struct partition *p = read_partition(r, i);
        if (!p)
            continue;
        int64_t here =
            partition_end(p) > r->parts[i].offset ? partition_bytes_after(p, r->parts[i].offset) : 0;
        bytes += here < r->parts[i].bytes_max ? here : r->parts[i].bytes_max;
        bool enough = state->call->bytes_min <= 1 ? part_has_grown(&r->parts[i], p)
                                                  : here > 0 && bytes >= state->call->bytes_min;
        if (enough)
            return true;
    }
    return false;
}

/* What waits for anything at all, as most do, is met by the one partition that got something. */
static bool slot_is_met(const struct watch_slot *slot) {
    const struct watch_state *state = slot->state;
    const struct backend_read *r = state->call->read;
    if (state->call->bytes_min <= 1)
        return part_has_grown(&r->parts[slot->part], read_partition(r, slot->part));
    return watch_is_met_by_all(state);
}

static void wake(struct lane *lane, bool gone) {
    pthread_mutex_lock(&lane->lock);
    for (struct link *l = lane->watchers.next; l != &lane->watchers; l = l->next) {
        struct watch_slot *slot = container_of(l, struct watch_slot, link);
        if (!atomic_load(&slot->state->fired) && (gone || slot_is_met(slot)))
            watch_fire(slot->state, ST_OK);
    }
    pthread_mutex_unlock(&lane->lock);
}

void lane_wake(struct lane *lane) {
    wake(lane, false);
}

void lane_gone(void *memory) {
    wake(memory, true);
}

/* True: a partition was deleted since it was read, and nobody would wake the watch any more. */
static bool watch_hang(struct watch_state *state) {
    const struct backend_read *r = state->call->read;
    bool gone = false;
    for (int32_t i = 0; i < r->parts_count; i++) {
        struct partition *p = read_partition(r, i);
        if (!p)
            continue;
        struct watch_slot *slot = &state->slots[state->slots_count++];
        slot->state = state;
        slot->lane = lane_of(p);
        slot->part = i;
        pthread_mutex_lock(&slot->lane->lock);
        list_push_tail(&slot->lane->watchers, &slot->link);
        pthread_mutex_unlock(&slot->lane->lock);
        gone |= partition_deleted(p);
    }
    return gone;
}

void store_watch_op(struct backend *backend, struct backend_watch *w) {
    (void)backend;
    op_start(&w->op, watch_on_cancel);
    read_drop_records(w->read);
    size_t slots = (size_t)w->read->parts_count;
    struct watch_state *state = mem_take_zeroed(1, sizeof *state + slots * sizeof state->slots[0]);
    if (!state) {
        op_complete(&w->op, ST_TIMED_OUT);
        return;
    }
    state->call = w;
    w->backend_use = state;
    op_init(&state->end, w->op.loop, watch_end);
    if (timer_set(loop_timers(w->op.loop), &state->timer, watch_on_deadline, w->deadline_ms)) {
        watch_fire(state, ST_TIMED_OUT);
        return;
    }
    bool gone = watch_hang(state);
    if (gone || watch_is_met_by_all(state)) /* something came between the read and now */
        watch_fire(state, ST_OK);
}
