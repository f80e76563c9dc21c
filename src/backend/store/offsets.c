#include "backend/store/convert.h"
#include "backend/store/store_impl.h"
#include "bridge/message_map.h"
#include "wire/records.h"

/* A record that is looked at. True: it is the one. */
static bool part_meets(struct backend_offset_part *part, int64_t wanted_ms, int64_t timestamp_ms,
                       int64_t offset) {
    if (timestamp_ms < wanted_ms)
        return false;
    part->offset = offset;
    part->timestamp_ms = timestamp_ms;
    return true;
}

/* Within one stored batch: the first record at or after the time, or the first with the greatest time. ST_NOT_FOUND: none. */
static enum status kafka_find_time(struct bytes stored, struct backend_offset_part *part) {
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
    int64_t wanted = part->kind == OFFSET_MAX_TIME ? batch.max_timestamp : part->timestamp_ms;
    if (!st)
        records_iter_init(&it, body, batch.records_count);
    while (!st && (st = records_next(&it, &record)) == ST_OK)
        if (part_meets(part, wanted, record_timestamp(&batch, &record),
                       batch.base_offset + record.offset_delta))
            break;
    spare_put_back(scratch);
    return st;
}

/* The same over messages, by the times of the records that they make; those that make none don't count. */
static enum status iggy_find_time(struct bytes stored, struct backend_offset_part *part) {
    struct message_map map = {0};
    struct iggy_batch batch;
    struct iggy_messages_iter it;
    struct iggy_message m;
    int64_t wanted = part->timestamp_ms;
    enum status st = iggy_batch_read(stored, true, &batch);
    if (!st && part->kind == OFFSET_MAX_TIME)
        st = message_map_max_time(&map, &batch, &wanted);
    if (!st)
        iggy_messages_init(&it, &batch);
    while (!st && (st = iggy_messages_next(&it, &m)) == ST_OK) {
        int64_t ms;
        st = message_map_time(&map, &batch, &m, &ms);
        if (!st && part_meets(part, wanted, ms, (int64_t)(batch.base_offset + m.offset_delta)))
            break;
        st = st == ST_UNMAPPABLE ? ST_OK : st;
    }
    message_map_release(&map);
    return st;
}

static enum status run_find_time(const struct store_run *run, struct backend_offset_part *part) {
    enum status st = run->format == STORE_FORMAT_KAFKA ? kafka_find_time(run->bytes, part)
                                                       : iggy_find_time(run->bytes, part);
    return st == ST_OK || st == ST_NOT_FOUND || st == ST_NO_MEMORY ? st : ST_CORRUPT;
}

static enum status partition_offset_by_time(struct partition *p, struct backend_offset_part *part) {
    bool greatest = part->kind == OFFSET_MAX_TIME;
    struct store_read found = {0};
    int64_t base_offset;
    enum status st = partition_find_time(p, greatest ? INT64_MAX : part->timestamp_ms, &base_offset, &found);
    if (!st)
        st = run_find_time(&found.runs[0], part);
    store_read_release(&found);
    if (st == ST_NOT_FOUND) { /* no record matches: offset -1 and no error */
        part->timestamp_ms = -1;
        return ST_OK;
    }
    return st;
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
    int64_t low = partition_start(p), high = partition_end(p);
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
