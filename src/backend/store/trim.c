/*
 * DeleteRecords: where logs start is moved, one partition after the other, in the pool. Not of a topic that is to be compacted only: its newest
 * record of each key was to be kept, so Kafka refuses, and clients count on it (D16-3).
 */
#include "backend/store/store_impl.h"

#include "base/clock.h"
#include "base/logging.h"

static enum status trim_one(struct topic *t, struct backend_trim_part *part) {
    struct partition *p = topic_partition(t, part->partition);
    const struct str name = topic_info(t)->name_str;
    if (!p)
        return ST_NOT_FOUND;
    if (topic_setting_is(t, "cleanup.policy", "compact"))
        return ST_POLICY;
    int64_t before = partition_start(p);
    enum status st = partition_trim(p, part->offset, &part->start_offset);
    if (st && st != ST_NOT_FOUND && st != ST_OUT_OF_RANGE)
        log_line_limited(LOG_ERROR, "store", "records not deleted", LSTR("topic", name),
                         LINT("partition", part->partition), LTEXT("cause", status_text(st)));
    if (!st && part->start_offset > before)
        log_line(LOG_DEBUG, "store", "records deleted", LSTR("topic", name),
                 LINT("partition", part->partition), LINT("start", part->start_offset));
    return st;
}

static void trim_run(struct store_backend *b, void *user) {
    struct backend_trim *call = user;
    for (int32_t i = 0; i < call->parts_count; i++) {
        struct backend_trim_part *part = &call->parts[i];
        part->start_offset = -1;
        if (part->status)
            continue;
        struct topic *t = topic_of_part(b, part->topic, NULL, &part->status);
        if (t)
            part->status = clock_ms() >= call->deadline_ms ? ST_TIMED_OUT : trim_one(t, part);
        topic_unref(t);
    }
}

void store_trim_op(struct backend *b, struct backend_trim *call) {
    store_job_start(store_backend_of(b), &call->op, call, trim_run);
}
