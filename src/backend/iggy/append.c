#include "backend/iggy/producers.h"
#include "net/loop.h"
#include "wire/records.h"

/* ---- one append ---- */

static void state_finish_one(struct append_state *state) {
    struct producer *p = state->producer;
    if (--state->left > 0)
        return;
    if (p) {
        timer_clear(loop_timers(p->loop->loop), &state->timer);
        list_remove(&state->link);
        producer_rest(p);
    }
    op_complete(&state->call->op, ST_OK);
}

void producer_slot_end(struct append_slot *slot, enum status st) {
    const struct bridge_loop *l = slot->state->producer->loop;
    holes_note(producers_holes(l->producers), slot->state->call->connection, slot->part, st == ST_OK,
               loop_now_ms(l->loop));
    slot->part->status = st;
    if (st)
        slot->part->base_offset = -1;
    state_finish_one(slot->state);
}

/* D1-34. What was sent has this deadline of its own. */
static void state_on_deadline(struct timer *t) {
    struct append_state *state = container_of(t, struct append_state, timer);
    struct producer *p = state->producer;
    if (p->preparing && p->preparing->slot->state == state)
        send_give_up(p->preparing);
    state->left++; /* it ends after this loop */
    for (int32_t i = 0; i < state->call->parts_count; i++) {
        struct append_slot *slot = &state->slots[i];
        if (!link_in_list(&slot->link))
            continue;
        list_remove(&slot->link);
        producer_slot_end(slot, ST_TIMED_OUT);
    }
    state_finish_one(state);
}

/* Who sends: the id in the first batch that can be read (D1-13). */
static int64_t producer_id_of(const struct backend_append *a) {
    struct batch batch;
    for (int32_t i = 0; i < a->parts_count; i++)
        if (!a->parts[i].status && batch_read(a->parts[i].records, &batch) == ST_OK)
            return batch.producer_id < 0 ? PRODUCER_NONE : batch.producer_id;
    return PRODUCER_NONE;
}

/* No part is looked at. */
static void append_fail(struct bridge_loop *l, struct backend_append *a, enum status st) {
    for (int32_t i = 0; i < a->parts_count; i++) {
        if (a->parts[i].status)
            continue;
        a->parts[i].status = st;
        holes_note(producers_holes(l->producers), a->connection, &a->parts[i], false, loop_now_ms(l->loop));
    }
    op_complete(&a->op, ST_OK);
}

void iggy_append_op(struct backend *backend, struct backend_append *a) {
    struct bridge_loop *l = bridge_here(bridge_of(backend));
    op_start(&a->op, NULL);
    for (int32_t i = 0; i < a->parts_count; i++)
        a->parts[i].base_offset = a->parts[i].start_offset = a->parts[i].append_ms = -1;
    struct append_state *state =
        arena_take(a->arena, sizeof *state + (size_t)a->parts_count * sizeof state->slots[0]);
    int64_t id = producer_id_of(a);
    struct producer *p = state ? producer_take(l, id) : NULL;
    if (!p || timer_set(loop_timers(l->loop), &state->timer, state_on_deadline, a->deadline_ms)) {
        append_fail(l, a, ST_UNAVAILABLE);
        return;
    }
    state->call = a;
    state->producer = p;
    state->producer_id = id;
    state->left = 1;
    list_push_tail(&p->running, &state->link);
    for (int32_t i = 0; i < a->parts_count; i++) {
        struct append_slot *slot = &state->slots[i];
        if (a->parts[i].status)
            continue;
        *slot = (struct append_slot){.state = state, .part = &a->parts[i]};
        list_push_tail(&p->waiting, &slot->link);
        state->left++;
    }
    producer_run(p);
    state_finish_one(state);
}

/* ---- the line of a producer ---- */

/* The first of those that wait becomes a send. */
static void producer_begin(struct producer *p) {
    struct append_slot *slot = container_of(list_pop_head(&p->waiting), struct append_slot, link);
    struct send *s = p->client ? producers_send_take(p->loop->producers) : NULL;
    if (!s) {
        producer_slot_end(slot, ST_UNAVAILABLE);
        return;
    }
    s->producer = p;
    s->slot = slot;
    list_push_tail(&p->sends, &s->link);
    p->sends_count++;
    p->preparing = s;
    send_begin(s);
}

static bool producer_may_begin(const struct producer *p) {
    if (list_empty(&p->waiting) || p->preparing || p->sends_count >= producers_sends_max(p->loop->producers))
        return false;
    return !container_of(p->waiting.next, struct append_slot, link)->state->converting;
}

void producer_run(struct producer *p) {
    if (p->running_line)
        return; /* what ended at once is seen by the loop below */
    p->running_line = true;
    while (producer_may_begin(p))
        producer_begin(p);
    p->running_line = false;
}
