/*
 * The writer of a partition, and beside it the one who syncs.
 *
 *   append -> lane_push -> [pool] lane_write: take what waits -> check -> assign offsets -> one write -> wake readers -> answer
 *                               ^                                                             |   or, where a sync is wanted:
 *                               +---- more has come meanwhile                                 v
 *                                                            [pool] lane_sync: take what is unsynced -> one sync -> answer
 *
 * There is one job of each kind a lane at a time, so batches are stored in the order of the calls, and one write and one
 * sync serve all that has gathered (group commit). Writing goes on while a sync waits for the disk: readers don't feel it.
 * A job gives its thread back after some rounds, so that lanes share the pool.
 *
 * A Kafka batch is written from where it lies in the request. Where the topic wants another codec it is checked and compressed anew in one go, while its
 * records are inflated (D1-16); such batches are written before they take too much memory, whatever else waits.
 */
#include "backend/store/store_impl.h"

#include "base/clock.h"
#include "base/logging.h"
#include "bridge/message_map.h"
#include "wire/records.h"

#define ROUND_SLOTS_MAX 256
#define ROUND_BYTES_MAX ((int64_t)8 << 20)
#define ROUNDS_MAX      8
#define REQUEST_CAPS    8 /* D1-41: a request may use so many partition caps */

void lane_init(void *memory) {
    struct lane *lane = memory;
    pthread_mutex_init(&lane->lock, NULL);
    list_init(&lane->queue);
    list_init(&lane->unsynced);
    list_init(&lane->watchers);
}

void lane_release(void *memory) {
    struct lane *lane = memory;
    lane_producers_free(lane->producers);
    pthread_mutex_destroy(&lane->lock);
}

/* With the lock; once, because jobs that run read it without. */
static void lane_is_of(struct lane *lane, struct partition *p) {
    if (!lane->partition)
        lane->partition = p;
}

static void lane_write(struct work *w);
static void lane_sync(struct work *w);

void lane_push(struct store_backend *b, struct append_slot *slot) {
    struct lane *lane = lane_of(slot->partition);
    pthread_mutex_lock(&lane->lock);
    list_push_tail(&lane->queue, &slot->link);
    bool submit = !lane->writing;
    if (submit) {
        lane->writing = true;
        lane->backend = b;
        lane->write_topic = topic_ref(slot->topic);
        lane_is_of(lane, slot->partition);
    }
    pthread_mutex_unlock(&lane->lock);
    if (submit)
        work_submit(&lane->write_work, lane_write);
}

void lane_want_sync(struct topic *t, struct partition *p, struct append_slot **slots, int32_t count) {
    struct lane *lane = lane_of(p);
    pthread_mutex_lock(&lane->lock);
    for (int32_t i = 0; i < count; i++)
        list_push_tail(&lane->unsynced, &slots[i]->link);
    bool submit = !lane->syncing;
    if (submit) {
        lane->syncing = true;
        lane->sync_topic = topic_ref(t);
        lane_is_of(lane, p);
    }
    pthread_mutex_unlock(&lane->lock);
    if (submit)
        work_submit(&lane->sync_work, lane_sync);
}

/* What waits, as far as one round takes it. 0: nothing, and the lane is no longer written. */
static int32_t lane_take(struct lane *lane, struct append_slot **slots) {
    int32_t count = 0;
    int64_t bytes = 0;
    pthread_mutex_lock(&lane->lock);
    while (count < ROUND_SLOTS_MAX && bytes < ROUND_BYTES_MAX && !list_empty(&lane->queue)) {
        slots[count] = container_of(list_pop_head(&lane->queue), struct append_slot, link);
        bytes += slots[count++]->part->records.len;
    }
    if (count == 0)
        lane->writing = false;
    pthread_mutex_unlock(&lane->lock);
    return count;
}

static struct bytes slot_batch(const struct append_slot *slot) {
    return (struct bytes){slot->batch, slot->size_bytes};
}

static bool slot_is_iggy(const struct append_slot *slot) {
    return slot->state->call->format == FORMAT_IGGY;
}

/* D1-41: the request has decoded as much as one may. */
static bool append_over_budget(struct append_state *state, const struct store_backend_settings *settings) {
    return atomic_load(&state->used_bytes) > settings->batch_bytes_max * REQUEST_CAPS ||
           atomic_load(&state->used_slots) > settings->slots_max * REQUEST_CAPS;
}

/* The time that the batch is known by: its records' own, or that of now (D1-12). */
static enum status slot_set_time(const struct lane *lane, struct append_slot *slot,
                                 const struct batch_report *report) {
    slot->max_timestamp = report->max_timestamp;
    if (lane->settings.append_time && report->batch.log_append_time) {
        slot->part->reason = "A producer can't say when its records are appended";
        return ST_BAD_TIMESTAMP;
    }
    if (lane->settings.append_time) {
        slot->max_timestamp = slot->part->append_ms = clock_wall_ms();
        batch_set_append_time(slot->batch, slot->size_bytes, slot->max_timestamp);
    } else if (report->max_timestamp != report->batch.max_timestamp) {
        batch_set_max_timestamp(slot->batch, slot->size_bytes, report->max_timestamp);
    }
    return ST_OK;
}

/* The codec that the topic wants, where the batch has another one (D1-16). */
static enum status slot_recode(const struct lane *lane, struct append_slot *slot,
                               const struct batch_report *report) {
    if (!lane->settings.recodes || lane->settings.codec == report->batch.codec)
        return ST_OK;
    enum status st = batch_recode(slot->batch, report->body, lane->settings.codec, &slot->recoded);
    if (!st && (int64_t)slot->recoded.len > lane->backend->settings.batch_bytes_max)
        st = ST_TOO_BIG;
    if (st == ST_TOO_BIG)
        slot->part->reason = "In the compression of the topic the batch is larger than is allowed";
    if (st)
        return st;
    slot->batch = slot->recoded.ptr;
    slot->size_bytes = (int32_t)slot->recoded.len;
    return ST_OK;
}

/* From the batch as it was sent, which is good, to the one that is stored. */
static enum status slot_prepare_kafka(const struct lane *lane, struct append_slot *slot,
                                      const struct batch_report *report) {
    slot->records_count = report->batch.last_offset_delta + 1;
    slot->size_bytes = report->batch.size_bytes;
    enum status st = slot_set_time(lane, slot, report);
    return st ? st : slot_recode(lane, slot, report);
}

/* Is the Kafka batch good, and does the request have budget left? Spec D1-6..D1-12, D1-40, D1-41. */
static enum status slot_check_kafka(const struct lane *lane, struct append_slot *slot) {
    struct append_state *state = slot->state;
    const struct store_backend_settings *settings = &lane->backend->settings;
    if (append_over_budget(state, settings))
        return ST_OVER_BUDGET;
    const struct batch_limits limits = {
        .bytes_max = settings->batch_bytes_max,
        .slots_max = settings->slots_max,
        .timestamp_max =
            lane->settings.append_time ? INT64_MAX : clock_wall_ms() + BACKEND_TIMESTAMP_AHEAD_MS,
        .zstd_allowed = state->call->zstd_allowed,
        .keys_required = lane->settings.keys_required,
    };
    struct batch_report report;
    struct spare *scratch = spare_of_thread();
    if (!scratch)
        return ST_NO_MEMORY;
    enum status st = batch_check(slot->part->records, &limits, scratch, &report);
    slot->part->reason = report.reason;
    atomic_fetch_add(&state->used_bytes, report.used_bytes);
    atomic_fetch_add(&state->used_slots, report.used_slots);
    if (!st && append_over_budget(state, settings))
        st = ST_OVER_BUDGET;
    if (!st)
        st = slot_prepare_kafka(lane, slot, &report);
    spare_put_back(scratch);
    slot->seen = report.framed && st != ST_BAD_CODEC && st != ST_TOO_BIG;
    return st;
}

/* Who sent an Iggy batch has had it checked; it is appended now. */
static enum status slot_check_iggy(struct append_slot *slot) {
    struct iggy_batch b;
    struct message_map map = {0};
    enum status st = iggy_batch_read(slot->part->records, true, &b);
    if (st || b.size_bytes != slot->part->records.len)
        return ST_BAD_RECORD;
    slot->seen = true;
    slot->records_count = (int32_t)b.messages_count; /* of at least 48 bytes each, in 2 GiB at most */
    slot->size_bytes = b.size_bytes;
    slot->base_timestamp_us = b.base_timestamp_us = (uint64_t)clock_wall_us();
    st = message_map_max_time(&map, &b, &slot->max_timestamp);
    message_map_release(&map);
    return st;
}

static enum status slot_check(const struct lane *lane, struct append_slot *slot) {
    if (clock_ms() >= slot->state->call->deadline_ms) /* D1-3 */
        return ST_TIMED_OUT;
    slot->batch = (uint8_t *)(uintptr_t)slot->part->records.ptr;
    return slot_is_iggy(slot) ? slot_check_iggy(slot) : slot_check_kafka(lane, slot);
}

/* A batch of a producer that numbers its batches must be its next one. ST_EXISTS: it is stored, at part->base_offset. */
static enum status producer_check(struct lane *lane, struct append_slot *slot, struct numbered_batch *batch) {
    if (!lane->producers_learnt)
        lane_producers_learn(&lane->producers, lane->partition);
    lane->producers_learnt = true;
    batch->base_offset = slot->part->base_offset;
    return lane_producers_check(&lane->producers, batch, &slot->part->base_offset);
}

static enum status slot_assign_kafka(struct lane *lane, struct append_slot *slot) {
    struct batch b;
    struct numbered_batch numbered;
    enum status st = batch_read(slot_batch(slot), &b); /* as it was when it was checked */
    if (!st && numbered_of_kafka(&b, &numbered))
        st = producer_check(lane, slot, &numbered);
    if (!st)
        batch_assign(slot->batch, slot->part->base_offset, 0);
    return st;
}

static enum status slot_assign_iggy(struct lane *lane, struct append_slot *slot) {
    struct iggy_batch b;
    struct numbered_batch numbered;
    enum status st = iggy_batch_read(slot_batch(slot), true, &b); /* as it was when it was checked */
    if (!st && numbered_of_iggy(&b, &numbered))
        st = producer_check(lane, slot, &numbered);
    if (st)
        return st;
    b.partition_id = (uint64_t)slot->part->partition;
    b.base_offset = (uint64_t)slot->part->base_offset;
    b.base_timestamp_us = slot->base_timestamp_us;
    iggy_batch_write_header(slot->batch, &b);
    return ST_OK;
}

/* What a server writes into a batch that it stores. */
static enum status slot_assign(struct lane *lane, struct append_slot *slot, int64_t base_offset) {
    slot->part->base_offset = base_offset;
    return slot_is_iggy(slot) ? slot_assign_iggy(lane, slot) : slot_assign_kafka(lane, slot);
}

/* Nothing of a round was stored: neither is it remembered. */
static void lane_forget(struct lane *lane) {
    lane_producers_free(lane->producers);
    lane->producers = NULL;
    lane->producers_learnt = false;
}

/* Write all slots that are good, with their offsets assigned. */
static enum status lane_store(struct lane *lane, struct append_slot **slots, int32_t count) {
    struct store_batch batches[ROUND_SLOTS_MAX];
    int32_t good = 0;
    int64_t next = partition_end(lane->partition);
    for (int32_t i = 0; i < count; i++) {
        struct append_slot *slot = slots[i];
        if (!slot->stored)
            continue;
        enum status assigned = slot_assign(lane, slot, next);
        if (assigned == ST_EXISTS) /* answered like the first time, after a sync if that is wanted */
            continue;
        if (assigned) {
            slot->part->status = assigned;
            slot->stored = false;
            continue;
        }
        batches[good++] = (struct store_batch){
            .payload = slot_batch(slot),
            .base_offset = next,
            .max_timestamp = slot->max_timestamp,
            .records_count = slot->records_count,
            .format = slot_is_iggy(slot) ? STORE_FORMAT_IGGY : STORE_FORMAT_KAFKA,
        };
        next += slot->records_count;
    }
    enum status st = good > 0 ? partition_append(lane->partition, batches, good) : ST_OK;
    if (st)
        lane_forget(lane);
    return st;
}

static bool slot_wants_sync(const struct lane *lane, const struct append_slot *slot) {
    switch (lane->backend->settings.fsync) {
    case FSYNC_ACKS:
        return slot->state->call->durable;
    case FSYNC_ALWAYS:
        return true;
    case FSYNC_INTERVAL:
    case FSYNC_NEVER:
        break;
    }
    return false;
}

static void topic_complain(const struct topic *t, const char *what, enum status st) {
    log_line_limited(LOG_ERROR, "store", what, LSTR("topic", topic_info(t)->name_str),
                     LTEXT("cause", status_text(st)));
}

/* Finish each slot: with st where it was to be stored; what wants a sync is finished by that. */
static void lane_answer(struct lane *lane, struct append_slot **slots, int32_t count, enum status st) {
    int32_t waiting = 0;
    int64_t start = partition_start(lane->partition);
    for (int32_t i = 0; i < count; i++) {
        struct append_slot *slot = slots[i];
        spare_release(&slot->recoded);
        slot->part->start_offset = slot->seen ? start : -1;
        if (slot->stored && !st && slot_wants_sync(lane, slot))
            slots[waiting++] = slot;
        else
            append_slot_finish(slot, slot->stored ? st : slot->part->status);
    }
    if (waiting > 0)
        lane_want_sync(lane->write_topic, lane->partition, slots, waiting);
}

/* What compression.type asks for; "producer" is none of the codecs. */
static void setting_look_codec(struct lane_settings *settings, const char *value) {
    for (enum codec codec = CODEC_NONE; codec <= CODEC_ZSTD; codec++) {
        if (strcmp(value, codec == CODEC_NONE ? "uncompressed" : codec_name(codec)) != 0)
            continue;
        settings->recodes = true;
        settings->codec = codec;
    }
}

static void setting_look(void *user, const char *key, const char *value) {
    struct lane_settings *settings = user;
    if (strcmp(key, "cleanup.policy") == 0 && str_list_has(str_of(value), STR("compact")))
        settings->keys_required = true;
    if (strcmp(key, "message.timestamp.type") == 0 && strcmp(value, "LogAppendTime") == 0)
        settings->append_time = true;
    if (strcmp(key, "compression.type") == 0)
        setting_look_codec(settings, value);
}

/* What the topic's settings ask of a batch, looked at when they have changed only. */
static void lane_obey_settings(struct lane *lane) {
    uint64_t version = topic_settings_version(lane->write_topic);
    if (version == lane->settings.version)
        return;
    lane->settings = (struct lane_settings){.version = version};
    topic_settings_each(lane->write_topic, setting_look, &lane->settings);
}

/* Check slots, but no more than whose recoded batches take what a round may. How many it were. */
static int32_t lane_check(struct lane *lane, struct append_slot **slots, int32_t count, enum status opened) {
    int32_t checked = 0;
    for (size_t recoded_bytes = 0; checked < count && recoded_bytes < ROUND_BYTES_MAX; checked++) {
        struct append_slot *slot = slots[checked];
        slot->part->status = opened ? opened : slot_check(lane, slot);
        slot->stored = slot->part->status == ST_OK;
        recoded_bytes += slot->recoded.room;
    }
    return checked;
}

static void lane_round(struct lane *lane, struct append_slot **slots, int32_t count) {
    lane_obey_settings(lane);
    enum status opened = partition_open(lane->partition, NULL);
    for (int32_t checked; count > 0; slots += checked, count -= checked) {
        checked = lane_check(lane, slots, count, opened);
        enum status st = opened ? opened : lane_store(lane, slots, checked);
        if (st && st != ST_NOT_FOUND)
            topic_complain(lane->write_topic, "append failed", st);
        if (!st)
            lane_wake(lane);
        lane_answer(lane, slots, checked, st);
    }
}

static void lane_write(struct work *w) {
    struct lane *lane = container_of(w, struct lane, write_work);
    struct append_slot *slots[ROUND_SLOTS_MAX];
    struct topic *topic = lane->write_topic;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        int32_t count = lane_take(lane, slots);
        if (count == 0) {
            topic_unref(topic); /* the lane may go with it */
            return;
        }
        lane_round(lane, slots, count);
    }
    work_submit(&lane->write_work, lane_write);
}

/* Sync once, and finish all that was written before. */
static void lane_sync_round(struct lane *lane) {
    struct link written, *l;
    list_init(&written);
    pthread_mutex_lock(&lane->lock);
    list_move_all(&written, &lane->unsynced);
    pthread_mutex_unlock(&lane->lock);
    enum status st = partition_sync(lane->partition);
    if (st && st != ST_NOT_FOUND)
        topic_complain(lane->sync_topic,
                       "sync failed, the partition takes no more records until the next start", st);
    while ((l = list_pop_head(&written)))
        append_slot_finish(container_of(l, struct append_slot, link), st);
}

static void lane_sync(struct work *w) {
    struct lane *lane = container_of(w, struct lane, sync_work);
    struct topic *topic = lane->sync_topic;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        lane_sync_round(lane);
        pthread_mutex_lock(&lane->lock);
        bool more = !list_empty(&lane->unsynced);
        lane->syncing = more;
        pthread_mutex_unlock(&lane->lock);
        if (!more) {
            topic_unref(topic); /* the lane may go with it */
            return;
        }
    }
    work_submit(&lane->sync_work, lane_sync);
}
