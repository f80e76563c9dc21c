#include "backend/store/store_impl.h"

void append_slot_finish(struct append_slot *slot, enum status st) {
    struct append_state *state = slot->state;
    slot->part->status = st;
    if (st)
        slot->part->base_offset = -1;
    struct topic *topic = slot->topic;
    if (atomic_fetch_sub(&state->left, 1) == 1)
        op_complete(&state->call->op, ST_OK);
    topic_unref(topic);
}

struct topic *topic_of_part(struct store_backend *b, struct str name, const struct uuid *id,
                            enum status *st_out) {
    bool by_id = name.len < 0;
    struct topic *t = by_id ? store_topic_by_id(b->store, id) : store_topic_find(b->store, b->stream, name);
    *st_out = t ? ST_OK : by_id ? ST_UNKNOWN_ID : ST_NOT_FOUND;
    return t;
}

/* Find where each part goes. The number of slots made. */
static int32_t append_route(struct store_backend *b, struct append_state *state) {
    struct backend_append *a = state->call;
    int32_t count = 0;
    for (int32_t i = 0; i < a->parts_count; i++) {
        struct backend_append_part *part = &a->parts[i];
        part->base_offset = part->start_offset = part->append_ms = -1;
        if (part->status)
            continue;
        struct topic *t = topic_of_part(b, part->topic, &part->id, &part->status);
        struct partition *p = t ? topic_partition(t, part->partition) : NULL;
        if (!p) {
            topic_unref(t);
            if (!part->status)
                part->status = ST_NOT_FOUND;
            continue;
        }
        state->slots[count++] =
            (struct append_slot){.state = state, .part = part, .topic = t, .partition = p};
    }
    return count;
}

void store_append_op(struct backend *backend, struct backend_append *a) {
    struct store_backend *b = store_backend_of(backend);
    op_start(&a->op, NULL);
    struct append_state *state =
        arena_take(a->arena, sizeof *state + (size_t)a->parts_count * sizeof state->slots[0]);
    if (!state) {
        for (int32_t i = 0; i < a->parts_count; i++)
            a->parts[i].status = ST_UNAVAILABLE;
        op_complete(&a->op, ST_OK);
        return;
    }
    state->call = a;
    int32_t count = append_route(b, state);
    atomic_store(&state->left, count);
    if (count == 0)
        op_complete(&a->op, ST_OK);
    /* The lanes alone end them, so that appends to a partition end in their order. */
    for (int32_t i = 0; i < count; i++)
        lane_push(b, &state->slots[i]);
}
