#include "backend/store/store_impl.h"

#include "base/mem.h"

#define INLINE_BYTES_MAX \
    ((int64_t)1 << 20) /* what a loop copies and checks for one request; the rest is the pool's */

/* Where one part reads, and what it has read. */
struct read_hold {
    struct topic *topic; /* held */
    struct partition *partition;
    struct store_read data;
    struct bytes *records; /* owned: the part's slices */
};

/* One backend_read from its first round to its release. */
struct read_state {
    struct work work;
    struct store_backend *backend;
    struct backend_read *call;
    int32_t next; /* the part that is read next */
    struct read_hold holds[];
};

static void hold_release_data(struct read_hold *hold) {
    store_read_release(&hold->data);
    mem_free(hold->records);
    hold->records = NULL;
}

/* The partition the part names. ST_NOT_FOUND, ST_UNKNOWN_ID. */
static enum status hold_find(struct store_backend *b, struct read_hold *hold,
                             const struct backend_read_part *part) {
    if (hold->topic && !topic_deleted(hold->topic))
        return ST_OK;
    topic_unref(hold->topic);
    enum status st;
    hold->topic = topic_of_part(b, part->topic, &part->id, &st);
    hold->partition = hold->topic ? topic_partition(hold->topic, part->partition) : NULL;
    if (hold->topic && !hold->partition) {
        topic_unref(hold->topic);
        hold->topic = NULL;
        return ST_NOT_FOUND;
    }
    return st;
}

/* The runs as the part's slices. */
static enum status part_take(struct backend_read_part *part, struct read_hold *hold) {
    const struct store_read *data = &hold->data;
    if (data->runs_count == 0)
        return ST_OK;
    hold->records = mem_take((size_t)data->runs_count * sizeof *hold->records);
    if (!hold->records)
        return ST_NO_MEMORY;
    for (int32_t i = 0; i < data->runs_count; i++)
        hold->records[i] = data->runs[i].bytes;
    part->records = hold->records;
    part->records_count = data->runs_count;
    part->bytes = data->bytes;
    return ST_OK;
}

/* Read one part within what is left of the call's bytes. The first batch of the whole call comes in any case (KIP-74). */
static enum status part_read(struct backend_read *r, struct backend_read_part *part, struct read_hold *hold,
                             bool wait) {
    if (!wait && !partition_is_open(hold->partition))
        return ST_AGAIN;
    enum status st = partition_open(hold->partition, NULL);
    if (st && st != ST_CORRUPT) /* what is whole before the damage is served */
        return st;
    int64_t room = r->bytes_max - r->bytes < part->bytes_max ? r->bytes_max - r->bytes : part->bytes_max;
    bool first = r->bytes == 0;
    int64_t start = partition_start(hold->partition), end = partition_end(hold->partition);
    if (st &&
        part->offset >= end) /* what was acknowledged behind the damage is not "no more records" (D2-36) */
        return ST_CORRUPT;
    if (part->offset < start || part->offset > end)
        return ST_OUT_OF_RANGE;
    if (part->offset < end && (first || room > 0)) {
        st = partition_read(hold->partition, part->offset, room > 0 ? room : 0, wait, &hold->data);
        if (!st && !first && hold->data.bytes > room)
            hold_release_data(hold);
        if (!st)
            st = part_take(part, hold);
        if (st)
            return st;
    }
    part->start_offset = start;
    part->high_watermark = end;
    r->bytes += part->bytes;
    return ST_OK;
}

static void part_drop_records(struct backend_read_part *part) {
    part->records = NULL;
    part->records_count = 0;
    part->bytes = 0;
}

static void part_clear(struct backend_read_part *part) {
    part_drop_records(part);
    part->high_watermark = part->start_offset = -1;
}

/* Parts from state->next on. False: the next one would block. */
static bool read_parts(struct read_state *state, bool wait) {
    struct backend_read *r = state->call;
    for (; state->next < r->parts_count; state->next++) {
        struct backend_read_part *part = &r->parts[state->next];
        struct read_hold *hold = &state->holds[state->next];
        if (!wait && r->bytes >= INLINE_BYTES_MAX)
            return false;
        hold_release_data(hold);
        part_clear(part);
        enum status st = hold_find(state->backend, hold, part);
        if (!st)
            st = part_read(r, part, hold, wait);
        if (st == ST_AGAIN && !wait)
            return false;
        part->status = st;
    }
    return true;
}

static void read_run(struct work *w) {
    struct read_state *state = container_of(w, struct read_state, work);
    read_parts(state, true);
    op_complete(&state->call->op, ST_OK);
}

void store_read_op(struct backend *backend, struct backend_read *r) {
    struct read_state *state = r->backend_use;
    op_start(&r->op, NULL);
    if (!state) {
        state = mem_take_zeroed(1, sizeof *state + (size_t)r->parts_count * sizeof state->holds[0]);
        if (!state) {
            for (int32_t i = 0; i < r->parts_count; i++) {
                part_clear(&r->parts[i]);
                r->parts[i].status = ST_UNAVAILABLE;
            }
            op_complete(&r->op, ST_OK);
            return;
        }
        state->backend = store_backend_of(backend);
        state->call = r;
        r->backend_use = state;
    }
    r->bytes = 0;
    state->next = 0;
    if (read_parts(state, false))
        op_complete(&r->op, ST_OK);
    else
        work_submit(&state->work, read_run);
}

void store_read_release_op(struct backend *backend, struct backend_read *r) {
    (void)backend;
    struct read_state *state = r->backend_use;
    if (!state)
        return;
    for (int32_t i = 0; i < r->parts_count; i++) {
        hold_release_data(&state->holds[i]);
        topic_unref(state->holds[i].topic);
    }
    mem_free(state);
    r->backend_use = NULL;
}

void read_drop_records(struct backend_read *r) {
    struct read_state *state = r->backend_use;
    for (int32_t i = 0; state && i < r->parts_count; i++) {
        hold_release_data(&state->holds[i]);
        part_drop_records(&r->parts[i]);
    }
    r->bytes = 0;
}

struct partition *read_partition(const struct backend_read *r, int32_t part) {
    const struct read_state *state = r->backend_use;
    return state && r->parts[part].status == ST_OK ? state->holds[part].partition : NULL;
}
