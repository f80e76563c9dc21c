#include "backend/store/store_impl.h"

#include "wire/records.h"

#define RECORDS_BYTES_MAX \
    ((int64_t)256 << 20) /* of one stored batch, inflated: it passed a smaller limit when it came in */

/* Within one stored batch: the first record at or after the time, or the first with the greatest time. */
static enum status batch_find_time(struct bytes stored, int64_t base_offset, struct spare *scratch,
                                   struct backend_offset_part *part) {
    bool greatest = part->kind == OFFSET_MAX_TIME;
    struct batch batch;
    struct bytes body;
    enum status st = batch_read(stored, &batch);
    if (!st)
        st = batch_records(&batch, RECORDS_BYTES_MAX, scratch, &body);
    if (st)
        return st == ST_NO_MEMORY ? st : ST_CORRUPT;
    int64_t wanted = greatest ? batch.max_timestamp : part->timestamp_ms;
    struct records_iter it;
    struct record record;
    records_iter_init(&it, body, batch.records_count);
    while ((st = records_next(&it, &record)) == ST_OK) {
        int64_t timestamp = record_timestamp(&batch, &record);
        if (timestamp >= wanted) {
            part->offset = base_offset + record.offset_delta;
            part->timestamp_ms = timestamp;
            return ST_OK;
        }
    }
    return st == ST_NOT_FOUND ? ST_NOT_FOUND : ST_CORRUPT;
}

static enum status partition_offset_by_time(struct partition *p, struct backend_offset_part *part) {
    bool greatest = part->kind == OFFSET_MAX_TIME;
    struct store_read found = {0};
    int64_t base_offset;
    struct spare *scratch = spare_of_thread();
    if (!scratch)
        return ST_NO_MEMORY;
    enum status st = partition_find_time(p, greatest ? INT64_MAX : part->timestamp_ms, &base_offset, &found);
    if (!st)
        st = batch_find_time(found.runs[0].bytes, base_offset, scratch, part);
    spare_put_back(scratch);
    store_read_release(&found);
    if (st == ST_NOT_FOUND) { /* no record matches: offset -1 and no error */
        part->timestamp_ms = -1;
        return ST_OK;
    }
    return st;
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
        struct topic *t = store_topic_find(b->store, b->stream, part->topic);
        struct partition *p = t ? topic_partition(t, part->partition) : NULL;
        part->status = p ? part_find(p, part) : ST_NOT_FOUND;
        topic_unref(t);
    }
}

void store_offsets_op(struct backend *b, struct backend_offsets *call) {
    store_job_start(store_backend_of(b), &call->op, call, offsets_run);
}
