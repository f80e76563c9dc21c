#include "backend/store/convert.h"
#include "backend/store/store_impl.h"
#include "bridge/message_map.h"
#include "wire/records.h"

/* What is looked for, and where the log starts: a batch may hold records before that, which are gone. */
struct time_search {
    struct backend_offset_part *part; /* offset -1: nothing found yet */
    int64_t wanted_ms;
    int64_t start;
};

/* A record that is looked at. True: none after it can be the one. */
static bool record_ends_search(struct time_search *q, int64_t timestamp_ms, int64_t offset) {
    struct backend_offset_part *part = q->part;
    bool greatest = part->kind == OFFSET_MAX_TIME;
    bool better =
        greatest ? part->offset < 0 || timestamp_ms > part->timestamp_ms : timestamp_ms >= q->wanted_ms;
    if (offset < q->start || !better)
        return false;
    part->offset = offset;
    part->timestamp_ms = timestamp_ms;
    return !greatest;
}

/* Within one stored batch: the first record at or after the time, or the first with the greatest time. ST_NOT_FOUND: looked at all of them. */
static enum status kafka_find_time(struct bytes stored, struct time_search *q) {
    struct batch batch;
    struct bytes body;
    struct records_iter it;
    struct record record;
    struct spare *scratch = spare_of_thread();
    if (!scratch)
        return ST_NO_MEMORY;
    enum status st = batch_read(stored, &batch);
    if (!st)
        st = batch_records(&batch, STORED_BATCH_BYTES_MAX, scratch, &body);
    if (!st)
        records_iter_init(&it, body, batch.records_count);
    while (!st && (st = records_next(&it, &record)) == ST_OK)
        if (record_ends_search(q, record_timestamp(&batch, &record), batch.base_offset + record.offset_delta))
            break;
    spare_put_back(scratch);
    return st;
}

/* The same over messages, by the times of the records that they make; those that make none don't count. */
static enum status iggy_find_time(struct bytes stored, struct time_search *q) {
    struct message_map map = {0};
    struct iggy_batch batch;
    struct iggy_messages_iter it;
    struct iggy_message m;
    enum status st = iggy_batch_read(stored, true, &batch);
    if (!st)
        iggy_messages_init(&it, &batch);
    while (!st && (st = iggy_messages_next(&it, &m)) == ST_OK) {
        int64_t ms;
        st = message_map_time(&map, &batch, &m, &ms);
        if (!st && record_ends_search(q, ms, (int64_t)(batch.base_offset + m.offset_delta)))
            break;
        st = st == ST_UNMAPPABLE ? ST_OK : st;
    }
    message_map_release(&map);
    return st;
}

static enum status run_find_time(const struct store_run *run, struct time_search *q) {
    enum status st =
        run->format == STORE_FORMAT_KAFKA ? kafka_find_time(run->bytes, q) : iggy_find_time(run->bytes, q);
    return st == ST_OK || st == ST_NOT_FOUND || st == ST_NO_MEMORY ? st : ST_CORRUPT;
}

/*
 * The store knows of batches. Where the log starts within one, the time that the batch is known by may be of a record that is gone:
 * then what stands behind it is looked at, too.
 */
static enum status partition_offset_by_time(struct partition *p, struct backend_offset_part *part) {
    bool greatest = part->kind == OFFSET_MAX_TIME;
    struct time_search q = {.part = part, .wanted_ms = part->timestamp_ms, .start = partition_start(p)};
    enum status st = ST_NOT_FOUND;
    part->timestamp_ms = -1; /* no record matches: offset -1 and no error */
    for (int64_t from = q.start, base_offset = -1; st == ST_NOT_FOUND && base_offset < q.start;) {
        struct store_read found = {0};
        st = partition_find_time(p, from, greatest ? INT64_MAX : q.wanted_ms, &base_offset, &found);
        if (st)
            break;
        st = run_find_time(&found.runs[0], &q);
        from = found.next_offset;
        store_read_release(&found);
    }
    return st == ST_NOT_FOUND ? ST_OK : st;
}

/* The batch that holds an offset: where it begins and ends, and when it was appended, as Iggy clients see it. */
struct stored_batch {
    int64_t base_offset, next_offset;
    uint64_t append_us;
};

static enum status stored_batch_of(const struct store_run *run, struct stored_batch *out) {
    struct batch kafka;
    struct iggy_batch iggy;
    if (run->format == STORE_FORMAT_KAFKA ? batch_read(run->bytes, &kafka)
                                          : iggy_batch_read(run->bytes, true, &iggy))
        return ST_CORRUPT;
    if (run->format == STORE_FORMAT_KAFKA) {
        int64_t ms = kafka.max_timestamp > 0 ? kafka.max_timestamp : 0;
        *out = (struct stored_batch){kafka.base_offset, kafka.base_offset + kafka.last_offset_delta + 1,
                                     ms < INT64_MAX / 1000 ? (uint64_t)ms * 1000 : UINT64_MAX};
    } else {
        *out =
            (struct stored_batch){(int64_t)iggy.base_offset,
                                  (int64_t)(iggy.base_offset + iggy.messages_count), iggy.base_timestamp_us};
    }
    return ST_OK;
}

/* By halves, as append times ascend; those of Kafka batches, which have none, may not quite. */
static enum status partition_offset_by_append(struct partition *p, struct backend_offset_part *part) {
    int64_t start = partition_start(p), low = start, high = partition_end(p);
    part->timestamp_ms = -1;
    while (low < high) {
        struct store_read data = {0};
        struct stored_batch batch = {0};
        int64_t middle = low + (high - low) / 2;
        enum status st = partition_read(p, middle, 0, true, &data);
        if (!st)
            st = data.runs_count > 0 ? stored_batch_of(&data.runs[0], &batch) : ST_CORRUPT;
        store_read_release(&data);
        if (st)
            return st;
        if (batch.append_us >= part->append_us)
            part->offset = high = batch.base_offset;
        else
            low = batch.next_offset;
    }
    if (part->offset >= 0 && part->offset < start) /* the log starts within that batch */
        part->offset = start;
    return ST_OK;
}

static enum status part_find(struct partition *p, struct backend_offset_part *part) {
    enum status st = partition_open(p, NULL);
    if (st && st != ST_CORRUPT)
        return st;
    switch (part->kind) {
    case OFFSET_EARLIEST:
    case OFFSET_LATEST:
        part->offset = part->kind == OFFSET_EARLIEST ? partition_start(p) : partition_end(p);
        part->timestamp_ms = -1;
        return ST_OK;
    case OFFSET_BY_TIME:
    case OFFSET_MAX_TIME:
        return partition_offset_by_time(p, part);
    case OFFSET_BY_APPEND:
        return partition_offset_by_append(p, part);
    }
    return ST_INVALID;
}

static void offsets_run(struct store_backend *b, void *user) {
    struct backend_offsets *call = user;
    for (int32_t i = 0; i < call->parts_count; i++) {
        struct backend_offset_part *part = &call->parts[i];
        part->offset = -1;
        if (part->status)
            continue;
        struct topic *t = topic_of_part(b, part->topic, &part->id, &part->status);
        struct partition *p = t ? topic_partition(t, part->partition) : NULL;
        if (t)
            part->status = p ? part_find(p, part) : ST_NOT_FOUND;
        topic_unref(t);
    }
}

void store_offsets_op(struct backend *b, struct backend_offsets *call) {
    store_job_start(store_backend_of(b), &call->op, call, offsets_run);
}
