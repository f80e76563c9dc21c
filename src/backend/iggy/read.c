/*
 *   iggy_read_op -> topic_begin, each: view_get -> read_on_view -> fetch_begin | pages_begin .. read_topic_done
 *     -> [something is left to judge: view_get of now] read_on_judge -> read_map -> [pool] -> read_finish
 */
#include "backend/iggy/reads.h"
#include "base/logging.h"
#include "base/mem.h"
#include "bridge/message_map.h"
#include "net/loop.h"

#define MAP_INLINE_BYTES (32 * 1024) /* of messages: what a loop maps itself, in some 50 us */
#define VIEW_OLD_MS      30000       /* D2-51 */
#define VIEW_WAIT_MS     2000        /* for a newer one, where an old one can do */

static void read_on_view(struct op *op);
static void read_on_judge(struct op *op);
static void read_map(struct reading *r);

/* The offset of the oldest one. */
static int64_t view_start(const struct view_partition *p) {
    int64_t end = view_end(p);
    return p->messages_count < (uint64_t)end ? end - (int64_t)p->messages_count : 0;
}

/* ---- memory ---- */

static bool same_topic(const struct backend_read_part *a, const struct backend_read_part *b) {
    if (a->topic.len < 0 || b->topic.len < 0)
        return a->topic.len < 0 && b->topic.len < 0 && uuid_equal(&a->id, &b->id);
    return str_equal(a->topic, b->topic);
}

/* Parts that follow each other and are of one topic are asked for together, as many as a fetch may name. */
static void reading_group(struct reading *r) {
    for (int32_t i = 0; i < r->parts_count; i++) {
        struct read_part *p = &r->parts[i];
        p->call = &r->call->parts[i];
        if (i == 0 || !same_topic(p[-1].call, p->call) ||
            p[-1].topic->parts_count == IGGY_FETCH_PARTITIONS_MAX)
            r->topics[r->topics_count++] = (struct read_topic){.reading = r, .parts = p};
        p->topic = &r->topics[r->topics_count - 1];
        p->topic->parts_count++;
    }
}

static struct reading *reading_new(struct bridge_loop *l, struct backend_read *call) {
    size_t count = (size_t)call->parts_count;
    struct reading *r = mem_take_zeroed(1, sizeof *r + count * sizeof r->parts[0]);
    if (!r)
        return NULL;
    r->topics = mem_take_zeroed(count > 0 ? count : 1, sizeof *r->topics);
    if (!r->topics) {
        mem_free(r);
        return NULL;
    }
    r->loop = l;
    r->call = call;
    r->parts_count = call->parts_count;
    reading_group(r);
    return r;
}

static void part_drop(struct read_part *p) {
    spare_release(&p->made);
    p->batch = BYTES_NULL;
    p->call->records = NULL;
    p->call->records_count = 0;
    p->call->bytes = 0;
}

static void topic_drop_answer(struct read_topic *t) {
    for (int32_t i = 0; i < t->parts_count; i++) {
        struct read_part *p = &t->parts[i];
        iggy_request_release(&p->request);
        frame_free(p->frame);
        p->frame = NULL;
        p->messages = BYTES_NULL;
    }
    iggy_request_release(&t->request);
    frame_free(t->frame);
    t->frame = NULL;
    t->kept = false;
    mem_free(t->fetch.partitions);
    t->fetch.partitions = NULL;
}

void reading_drop_records(struct reading *r) {
    for (int32_t i = 0; i < r->parts_count; i++)
        part_drop(&r->parts[i]);
    r->call->bytes = 0;
}

void iggy_read_release_op(struct backend *backend, struct backend_read *call) {
    (void)backend;
    struct reading *r = call->backend_use;
    if (!r)
        return;
    reading_drop_records(r);
    for (int32_t i = 0; i < r->topics_count; i++) {
        topic_drop_answer(&r->topics[i]);
        view_unref(r->topics[i].view);
    }
    mem_free(r->topics);
    mem_free(r);
    call->backend_use = NULL;
}

/* ---- a round ---- */

static bool topic_is_looked_for(const struct read_topic *t) {
    for (int32_t i = 0; i < t->parts_count; i++)
        if (t->parts[i].look)
            return true;
    return false;
}

/* What was seen last is still the topic that this reading knows. */
static bool topic_is_same(const struct read_topic *t) {
    const struct topic_view *last = view_peek(t->reading->loop, t->view->name);
    return last && uuid_equal(&last->facts.id, &t->view->facts.id);
}

/*
 * Whether a view that is there is good enough however old: a fetch of 0.12.1 says itself when it is not. What was appended through us is
 * polled for anyway, and a watch has looked at the topic not long ago.
 */
static bool any_view_does(const struct read_topic *t) {
    if (!t->view)
        return t->reading->loop->bridge->version >= IGGY_0_12_1;
    return view_fetches(t->view) || (topic_is_looked_for(t) && topic_is_same(t));
}

/* D2-51: what was known, where the server doesn't say what is. NULL: nothing that would do. */
static struct topic_view *topic_old_view(const struct read_topic *t) {
    struct bridge_loop *l = t->reading->loop;
    struct str name = t->parts[0].call->topic;
    struct topic_view *old = t->view;
    if (!old)
        old = name.len >= 0 ? view_peek(l, name) : view_peek_id(l, &t->parts[0].call->id);
    if (!old || t->again || loop_now_ms(l->loop) - old->asked_ms > VIEW_OLD_MS)
        return NULL;
    for (int32_t i = 0; i < t->parts_count; i++)
        if (t->parts[i].call->partition < 0 || (uint32_t)t->parts[i].call->partition >= old->partitions_count)
            return NULL;
    return old;
}

static void topic_want(struct read_topic *t, int64_t asked_ms, op_fn *done) {
    struct reading *r = t->reading;
    struct loop *loop = r->loop->loop;
    int64_t soon_ms = loop_now_ms(loop) + VIEW_WAIT_MS;
    t->want = (struct view_want){
        .name = t->parts[0].call->topic,
        .id = t->parts[0].call->id,
        .asked_ms = asked_ms,
        .deadline_ms = r->call->deadline_ms,
    };
    if (!r->judging && soon_ms < t->want.deadline_ms && topic_old_view(t))
        t->want.deadline_ms = soon_ms;
    op_init(&t->want.op, loop, done);
    view_get(r->loop, &t->want);
}

static void topic_ask(struct read_topic *t) {
    if (view_fetches(t->view))
        fetch_begin(t);
    else
        pages_begin(t);
}

/* Partitions that the topic doesn't have are refused; one that it may have got since asks for a newer view. */
static bool parts_are_there(struct read_topic *t) {
    bool all = true;
    for (int32_t i = 0; i < t->parts_count; i++) {
        struct read_part *p = &t->parts[i];
        if (p->settled ||
            (p->call->partition >= 0 && (uint32_t)p->call->partition < t->view->partitions_count))
            continue;
        all = false;
        if (p->call->partition < 0 || t->again) {
            p->status = ST_NOT_FOUND;
            p->settled = true;
        }
    }
    return all;
}

void read_topic_reset(struct read_topic *t) {
    t->again = false;
    t->kept = false;
    for (int32_t i = 0; i < t->parts_count; i++) {
        struct read_part *p = &t->parts[i];
        p->status = ST_OK;
        p->settled = p->answered = p->judge = false;
        p->end = -1;
        p->messages = BYTES_NULL;
        p->messages_count = 0;
    }
}

static void topic_begin(struct read_topic *t) {
    if (t->kept) {
        t->kept = false;
        read_topic_done(t);
        return;
    }
    read_topic_reset(t);
    t->any_age = any_view_does(t);
    if (t->view && t->any_age && parts_are_there(t))
        topic_ask(t);
    else
        topic_want(t, t->any_age ? 0 : loop_now_ms(t->reading->loop->loop) - VIEW_FRESH_MS, read_on_view);
}

static void topic_set_view(struct read_topic *t, struct topic_view *view) {
    view_unref(t->view);
    t->view = view;
}

/* Goes on with what was known, which doesn't prove that nothing new is there. */
static bool topic_take_old_view(struct read_topic *t) {
    struct topic_view *old = topic_old_view(t);
    if (!old)
        return false;
    view_ref(old);
    topic_set_view(t, old);
    for (int32_t i = 0; i < t->parts_count; i++)
        t->parts[i].look = true;
    return true;
}

static bool status_is_transient(enum status st) {
    return st == ST_UNAVAILABLE || st == ST_TIMED_OUT;
}

static void read_on_view(struct op *op) {
    struct read_topic *t = container_of(op, struct read_topic, want.op);
    int64_t now = loop_now_ms(t->reading->loop->loop);
    if (status_is_transient(op->status) && topic_take_old_view(t)) {
        topic_ask(t);
        return;
    }
    if (op->status) {
        read_topic_fail(t, op->status);
        read_topic_done(t);
        return;
    }
    topic_set_view(t, t->want.view);
    if (t->any_age && !any_view_does(t) && t->view->asked_ms < now - VIEW_FRESH_MS) {
        t->any_age = false;
        topic_want(t, now - VIEW_FRESH_MS, read_on_view);
        return;
    }
    if (!parts_are_there(t) && !t->again) {
        t->again = true;
        topic_want(t, now, read_on_view);
        return;
    }
    topic_ask(t);
}

bool read_topic_again(struct read_topic *t) {
    if (t->again)
        return false;
    t->again = true;
    views_forget(t->reading->loop->bridge, t->view->name);
    topic_want(t, loop_now_ms(t->reading->loop->loop), read_on_view);
    return true;
}

/* D2-20: who asks by id hears that the id is unknown. */
static enum status topic_status(const struct read_topic *t, enum status st) {
    return st == ST_NOT_FOUND && t->parts[0].call->topic.len < 0 ? ST_UNKNOWN_ID : st;
}

void read_topic_fail(struct read_topic *t, enum status st) {
    for (int32_t i = 0; i < t->parts_count; i++) {
        struct read_part *p = &t->parts[i];
        if (!p->settled)
            p->status = topic_status(t, st);
        p->settled = true;
    }
    if (st == ST_NOT_FOUND && t->view)
        views_forget(t->reading->loop->bridge, t->view->name);
}

void read_part_fail(struct read_part *p, enum status st) {
    p->status = topic_status(p->topic, st);
    p->settled = true;
    if (st == ST_NOT_FOUND)
        views_forget(p->topic->reading->loop->bridge, p->topic->view->name);
}

/* ---- what an answer means ---- */

/* The first message's offset; -1: none, or not well formed. */
static int64_t first_offset(struct bytes messages) {
    struct iggy_batch b;
    struct iggy_messages_iter it;
    struct iggy_message m;
    if (messages.len <= 0 || iggy_batch_read(messages, true, &b))
        return -1;
    iggy_messages_init(&it, &b);
    if (iggy_messages_next(&it, &m) || b.base_offset + m.offset_delta > INT64_MAX)
        return -1;
    return (int64_t)(b.base_offset + m.offset_delta);
}

/* With messages: they must begin where they were asked for, or the log does (D2-23, D2-24). */
static void judge_messages(struct read_part *p) {
    bool read_below = p->topic->reading->loop->bridge->settings.read_below_start;
    int64_t first = first_offset(p->messages);
    p->end = (int64_t)p->current_offset + 1;
    if (first < 0) {
        p->status = ST_REFUSED;
    } else if (first > p->call->offset && !read_below) {
        p->status = ST_OUT_OF_RANGE;
        p->messages = BYTES_NULL;
    }
}

/*
 * Without any: at the end that is all there is to say; else a newer look must tell (D2-24, D2-25). 0 as the last offset also stands for
 * an empty partition: who is at 1 is at the end only where there is a message.
 */
static void judge_nothing(struct read_part *p) {
    int64_t offset = p->call->offset;
    const struct topic_view *view = p->topic->view;
    if (p->current_offset > 0) {
        p->end = (int64_t)p->current_offset + 1;
        p->judge = offset != p->end && (offset > p->end || !p->topic->crowded);
    } else {
        p->end = offset;
        p->judge = offset > 1 || (offset == 1 && view->partitions[p->call->partition].messages_count == 0);
    }
    p->messages = BYTES_NULL;
    p->doubt = p->told;
}

void read_part_answer(struct read_part *p, struct bytes messages, uint32_t count, uint64_t current_offset) {
    p->settled = p->answered = true;
    p->messages = messages;
    p->messages_count = count;
    p->current_offset = current_offset < INT64_MAX ? current_offset : INT64_MAX - 1;
    p->doubt = false;
    if (count > 0) {
        judge_messages(p);
        p->topic->message_bytes = messages.len > 0 ? messages.len / (int64_t)count + 1 : 0;
    } else {
        judge_nothing(p);
    }
}

/*
 * By a view that is newer than the answer. 0.11 shows an end of 0 or 1 also for a partition that it loads or rebuilds, so there nobody is told
 * that he is beyond it (D2-26).
 */
static void part_judge(struct read_part *p, const struct topic_view *view) {
    int64_t offset = p->call->offset;
    p->judge = false;
    if ((uint32_t)p->call->partition >= view->partitions_count) {
        p->status = ST_NOT_FOUND;
        return;
    }
    const struct view_partition *seen = &view->partitions[p->call->partition];
    bool loading = view->version < IGGY_0_12_0 && view_end(seen) <= 1;
    bool was_below = p->current_offset > 0 && offset <= (int64_t)p->current_offset;
    p->end = view_end(seen);
    if (offset > p->end)
        p->status = loading ? ST_UNAVAILABLE : ST_OUT_OF_RANGE;
    else if (offset < view_start(seen) && !p->topic->reading->loop->bridge->settings.read_below_start)
        p->status = ST_OUT_OF_RANGE;
    else if (offset < p->end && offset >= view_start(seen) && was_below)
        p->status = ST_UNAVAILABLE; /* D2-25 */
}

static void read_on_judge(struct op *op) {
    struct read_topic *t = container_of(op, struct read_topic, want.op);
    if (!op->status)
        topic_set_view(t, t->want.view);
    for (int32_t i = 0; i < t->parts_count; i++) {
        struct read_part *p = &t->parts[i];
        if (!p->judge)
            continue;
        if (op->status)
            p->status = op->status;
        else
            part_judge(p, t->view);
    }
    read_topic_done(t);
}

static bool topic_must_judge(const struct read_topic *t) {
    for (int32_t i = 0; i < t->parts_count; i++)
        if (t->parts[i].judge)
            return true;
    return false;
}

void read_topic_done(struct read_topic *t) {
    struct reading *r = t->reading;
    if (--r->waiting > 0)
        return;
    if (r->judging) {
        read_map(r);
        return;
    }
    r->judging = true;
    r->waiting = 1;
    for (int32_t i = 0; i < r->topics_count; i++) {
        if (!topic_must_judge(&r->topics[i]))
            continue;
        r->waiting++;
        topic_want(&r->topics[i], loop_now_ms(r->loop->loop), read_on_judge);
    }
    if (--r->waiting == 0)
        read_map(r);
}

/* ---- messages to records ---- */

static void part_map(struct read_part *p, struct message_map *map, int64_t bytes_max, bool skip) {
    struct bytes left = p->messages;
    enum status st = ST_OK;
    map->skipped_count = 0;
    message_map_init(map, &p->made, p->call->offset, skip);
    while (!st && left.len > 0) {
        struct iggy_batch b;
        st = iggy_batch_read(left, true, &b) ? ST_BAD_RECORD : message_map_add(map, &b, bytes_max);
        if (!st)
            left = (struct bytes){left.ptr + b.size_bytes, left.len - b.size_bytes};
    }
    p->skipped_count = map->skipped_count;
    enum status finished = message_map_finish(map, &p->batch);
    if (!finished) {
        p->end = map->next_offset > p->end ? map->next_offset : p->end;
        return;
    }
    p->batch = BYTES_NULL;
    if (finished != ST_NOT_FOUND)
        st = finished;
    if (st != ST_OK && st != ST_OVER_BUDGET)
        p->status = st == ST_BAD_RECORD ? ST_REFUSED : st;
}

/* Any thread. The first records of the whole call come in any case (KIP-74). */
static void reading_map(struct reading *r) {
    struct message_map map = {0};
    bool skip = r->loop->bridge->settings.skip_unmappable;
    int64_t bytes = 0;
    for (int32_t i = 0; i < r->parts_count; i++) {
        struct read_part *p = &r->parts[i];
        if (p->status || p->messages.len <= 0)
            continue;
        int64_t left = r->call->bytes_max - bytes;
        if (bytes > 0 && left <= 0)
            continue;
        left = left < p->call->bytes_max ? left : p->call->bytes_max;
        part_map(p, &map, left > 0 ? left : 0, skip);
        if (bytes > 0 && p->batch.len > left)
            p->batch = BYTES_NULL;
        bytes += p->batch.len > 0 ? p->batch.len : 0;
    }
    message_map_release(&map);
}

static void tell_skipped(const struct read_part *p) {
    if (p->skipped_count > 0)
        log_line_limited(LOG_WARN, "bridge", "messages passed over that can't be Kafka records",
                         LSTR("topic", p->topic->view->name), LINT("partition", p->call->partition),
                         LINT("messages", p->skipped_count));
    else if (p->status == ST_UNMAPPABLE)
        log_line_limited(LOG_WARN, "bridge", "a message that can't be a Kafka record stops the partition",
                         LSTR("topic", p->topic->view->name), LINT("partition", p->call->partition),
                         LINT("offset", p->call->offset));
}

static void part_finish(struct read_part *p) {
    struct backend_read_part *call = p->call;
    tell_skipped(p);
    if (p->status == ST_TIMED_OUT || p->status == ST_CANCELED || p->status == ST_NO_MEMORY)
        p->status = ST_UNAVAILABLE; /* D2-27 */
    call->status = p->status;
    call->start_offset = -1;
    call->high_watermark = p->status ? -1 : p->end;
    if (p->status || p->batch.len <= 0)
        return;
    call->records = &p->batch;
    call->records_count = 1;
    call->bytes = p->batch.len;
}

static void read_finish(struct reading *r) {
    for (int32_t i = 0; i < r->topics_count; i++)
        topic_drop_answer(&r->topics[i]);
    for (int32_t i = 0; i < r->parts_count; i++) {
        part_finish(&r->parts[i]);
        r->parts[i].look = r->parts[i].told = false;
        r->call->bytes += r->call->parts[i].bytes;
    }
    op_complete(&r->call->op, ST_OK);
}

static void read_run_map(struct work *w) {
    struct reading *r = container_of(w, struct reading, work);
    reading_map(r);
    loop_post(&r->mapped);
}

static void read_on_mapped(struct op *op) {
    read_finish(container_of(op, struct reading, mapped));
}

static void read_map(struct reading *r) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < r->parts_count; i++)
        bytes += r->parts[i].messages.len > 0 ? r->parts[i].messages.len : 0;
    if (bytes > MAP_INLINE_BYTES) {
        op_init(&r->mapped, r->loop->loop, read_on_mapped);
        work_submit(&r->work, read_run_map);
        return;
    }
    reading_map(r);
    read_finish(r);
}

void iggy_read_op(struct backend *backend, struct backend_read *call) {
    struct reading *r = call->backend_use;
    op_start(&call->op, NULL);
    if (!r)
        r = reading_new(bridge_here(bridge_of(backend)), call);
    if (!r) {
        for (int32_t i = 0; i < call->parts_count; i++) {
            struct backend_read_part *p = &call->parts[i];
            p->status = ST_UNAVAILABLE;
            p->high_watermark = p->start_offset = -1;
        }
        op_complete(&call->op, ST_OK);
        return;
    }
    call->backend_use = r;
    reading_drop_records(r);
    r->judging = false;
    r->waiting = r->topics_count + 1;
    for (int32_t i = 0; i < r->topics_count; i++)
        topic_begin(&r->topics[i]);
    if (--r->waiting == 0) { /* as in read_topic_done: every topic had its answer already */
        r->waiting = 1;
        if (r->topics_count > 0)
            read_topic_done(&r->topics[0]);
        else
            read_finish(r);
    }
}
