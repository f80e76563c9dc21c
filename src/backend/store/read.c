#include "backend/store/store_impl.h"

#include "backend/store/convert.h"
#include "base/logging.h"
#include "base/mem.h"

#define INLINE_BYTES_MAX \
    ((int64_t)1 << 20) /* what a loop copies and checks for one request; the rest is the pool's */

/* Where one part reads, and what it has read. */
struct read_hold {
    struct topic *topic; /* held */
    struct partition *partition;
    struct store_read data;
    struct bytes *records;     /* owned: the part's slices, where nothing was converted */
    struct read_out converted; /* else */
};

/* One backend_read from its first round to its release. */
struct read_state {
    struct work work;
    struct store_backend *backend;
    struct backend_read *call;
    int32_t next;  /* the part that is read next */
    bool has_read; /* and its data is there already, to be converted in the pool */
    struct read_hold holds[];
};

static void hold_release_data(struct read_hold *hold) {
    store_read_release(&hold->data);
    mem_free(hold->records);
    hold->records = NULL;
    read_out_release(&hold->converted);
}

/* The partition the part names. ST_NOT_FOUND, ST_UNKNOWN_ID. */
static enum status hold_find(struct store_backend *b, struct read_hold *hold,
                             const struct backend_read_part *part) {
    if (hold->topic && !topic_deleted(hold->topic))
        return ST_OK;
    hold_release_data(hold);
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

static void part_drop_records(struct backend_read_part *part) {
    part->records = NULL;
    part->records_count = 0;
    part->bytes = 0;
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

/* What was read, in the format that is wanted. Blocks. */
static enum status part_convert(struct read_state *state, struct backend_read_part *part,
                                struct read_hold *hold, int64_t bytes_max) {
    struct store_backend *b = state->backend;
    struct convert c = {.format = state->call->format,
                        .partition = part->partition,
                        .offset = part->offset,
                        .bytes_max = bytes_max,
                        .skip = b->settings.skip_unmappable};
    enum status st = convert_read(&c, &hold->data, &hold->converted);
    if (c.skipped_count > 0)
        log_line_limited(LOG_WARN, "store", "messages that can't be Kafka records were passed over",
                         LSTR("topic", topic_info(hold->topic)->name_str), LINT("partition", part->partition),
                         LINT("messages", c.skipped_count),
                         LINT("messages_since_start",
                              atomic_fetch_add(&b->skipped_count, c.skipped_count) + c.skipped_count));
    if (!hold->converted.borrows)
        store_read_release(&hold->data);
    if (st)
        return st;
    part->records = hold->converted.slices;
    part->records_count = hold->converted.count;
    part->bytes = hold->converted.bytes;
    return ST_OK;
}

/* Records from the part's offset on, which is before the end. first: of the whole call, which comes in any case. */
static enum status part_fill(struct read_state *state, struct backend_read_part *part, struct read_hold *hold,
                             int64_t room, bool wait) {
    bool first = state->call->bytes == 0;
    enum status st = ST_OK;
    if (hold->data.runs_count == 0) /* else it waited for the pool */
        st = partition_read(hold->partition, part->offset, room, wait, &hold->data);
    if (!st && !first && hold->data.bytes > room)
        hold_release_data(hold);
    if (st || read_is_of(&hold->data, state->call->format))
        return st ? st : part_take(part, hold);
    if (!wait) {
        state->has_read = true;
        return ST_AGAIN;
    }
    st = part_convert(state, part, hold, room);
    if (!st && !first && part->bytes > room) {
        hold_release_data(hold);
        part_drop_records(part);
    }
    return st;
}

/* Read one part within what is left of the call's bytes. The first batch of the whole call comes in any case (KIP-74). */
static enum status part_read(struct read_state *state, struct backend_read_part *part, struct read_hold *hold,
                             bool wait) {
    struct backend_read *r = state->call;
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
        st = part_fill(state, part, hold, room > 0 ? room : 0, wait);
        if (st)
            return st;
    }
    part->start_offset = start;
    part->high_watermark = end;
    r->bytes += part->bytes;
    return ST_OK;
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
        if (!state->has_read)
            hold_release_data(hold);
        part_clear(part);
        enum status st = hold_find(state->backend, hold, part);
        if (!st)
            st = part_read(state, part, hold, wait);
        if (st == ST_AGAIN && !wait)
            return false;
        state->has_read = false;
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
