/*
 * poll_messages 100, poll_messages_deferred 106, wait_for_messages 107, fetch_messages 109: the same road for one partition and for many.
 *
 *   poll_messages_handle, .. -> poll_begin -> [a time, or a partition that isn't open: backend_offsets] poll_on_positions
 *     -> poll_take_room -> [what its client hasn't taken: poll_on_turn] -> [memory] poll_on_room
 *                ^   -> backend_read -> poll_on_read -> poll_finish -> [auto commit: pool] answer
 *                |                             v
 *                +------------- poll_on_wake <- backend_watch: fewer than min_count, and time is left
 *
 * Parked means: on the backend's watch list, without records in memory. Batches leave as they are stored; where a poll begins or ends
 * within one, its header is written anew (iggy/cut.h).
 */
#include "base/clock.h"
#include "iggy/cut.h"
#include "iggy_server/client.h"
#include "iggy_server/groups.h"
#include "iggy_server/owner.h"
#include "iggy_server/request.h"
#include "net/budget.h"
#include "net/loop.h"
#include "net/work.h"
#include "store/store_offsets.h"

#define POLL_BYTES_MAX ((int64_t)32 << 20) /* of one answer, whatever was asked for */
#define READ_BYTES_MIN ((int64_t)64 << 10)
#define READ_BYTES_OVER \
    ((int64_t)1 << 20) /* whole batches are read: so the last one is cut, not left for the next poll */
#define READ_GROWTH      4
#define MESSAGE_OVERHEAD 64               /* what Iggy's form adds to a small Kafka record, and some room */
#define STEP_MS          ((int64_t)30000) /* for what does not wait for records */

struct poll_part {
    struct iggy_polling strategy;
    struct partition *partition; /* the topic's */
    uint32_t partition_id, code;
    int64_t bytes_max;
    uint64_t owner_generation;
    uint64_t offset; /* where it reads */
    uint64_t end;    /* of the partition, when it began to read */
    struct iggy_cut cut;
};

struct poll {
    struct server_request *request;
    struct topic *topic; /* held */
    struct iggy_consumer consumer;
    uint32_t consumer_number;            /* the group's id, or the consumer's number */
    bool auto_commit, is_fetch, is_wait; /* is_wait: only which partitions have a message is told */
    uint32_t count, min_count;
    int64_t bytes_max, read_bytes, room_bytes, held_bytes;
    int64_t deadline_ms; /* monotonic: the wait's end */
    struct poll_part *parts;
    int32_t parts_count;
    struct backend_offsets offsets;
    struct backend_read read;
    struct backend_watch watch;
    struct op turn;        /* waits for others of its client */
    struct link turn_link; /* in client.polls */
    struct budget_wait room;
    struct wbuf out;
    struct work commit;
    struct op committed;
};

static void poll_on_positions(struct op *op);
static void poll_on_turn(struct op *op);
static void poll_on_room(struct op *op);
static void poll_on_read(struct op *op);
static void poll_on_wake(struct op *op);
static void poll_on_committed(struct op *op);

static struct backend *poll_backend(const struct poll *p) {
    return p->request->server->settings.backend;
}

/* The next one of the client's that wait looks whether it may go on. */
static void polls_wake(struct client *c) {
    struct link *next = list_pop_head(&c->polls);
    if (next)
        op_complete(&container_of(next, struct poll, turn_link)->turn, ST_OK);
}

/* What it holds, or is about to. */
static void poll_hold(struct poll *p, int64_t bytes) {
    struct client *c = p->request->client;
    bool less = bytes < p->held_bytes;
    c->polls_bytes += bytes - p->held_bytes;
    p->held_bytes = bytes;
    if (less)
        polls_wake(c);
}

static void poll_set_room(struct poll *p, int64_t bytes) {
    if (bytes > p->room_bytes)
        budget_force(p->request->server->polls, bytes - p->room_bytes); /* a first batch that is larger */
    else
        budget_give(p->request->server->polls, p->room_bytes - bytes);
    p->room_bytes = bytes;
    poll_hold(p, bytes);
}

static void poll_at_end(struct server_request *r) {
    struct poll *p = r->state;
    wbuf_release(&p->out);
    backend_read_release(poll_backend(p), &p->read);
    poll_set_room(p, 0);
    topic_unref(p->topic);
}

/* ---- begin ---- */

static struct poll *poll_new(struct server_request *r, const struct iggy_consumer *consumer,
                             int32_t parts_count) {
    struct poll *p = request_take(r, 1, sizeof *p);
    if (!p)
        return NULL;
    p->request = r;
    p->consumer = *consumer;
    r->state = p;
    r->at_end = poll_at_end;
    p->parts_count = parts_count;
    p->parts = request_array(r, struct poll_part, parts_count);
    if (!p->parts)
        return NULL;
    p->read.parts = request_array(r, struct backend_read_part, parts_count);
    if (!p->read.parts)
        return NULL;
    p->offsets.parts = request_array(r, struct backend_offset_part, parts_count);
    return p->offsets.parts ? p : NULL;
}

/* The topic, and whether its user may poll. 0; 1009, 2010, 41; 3: offsets that Iggy keeps for others can't be polled. */
static uint32_t poll_target(struct poll *p, const struct iggy_identifier *stream,
                            const struct iggy_identifier *topic) {
    struct server_request *r = p->request;
    if (p->consumer.kind == IGGY_EXTERNAL_GROUP)
        return IGGY_ERR_INVALID_COMMAND;
    uint32_t code = request_topic_for(r, ACTION_POLL, stream, topic, &p->topic);
    if (code)
        return code;
    if (p->consumer.kind != IGGY_CONSUMER_GROUP) {
        p->consumer_number = iggy_consumer_number(&p->consumer.id);
        return 0;
    }
    return groups_find(r->server->groups, p->topic, &p->consumer.id, &p->consumer_number);
}

static bool poll_owns(const struct poll *p, uint32_t partition) {
    return p->consumer.kind != IGGY_CONSUMER_GROUP ||
           groups_owns(p->request->server->groups, p->topic, p->consumer_number, p->request->session->number,
                       partition);
}

/* The offset after the one that the consumer has stored; 0: none. */
static uint64_t poll_next_offset(const struct poll *p, uint32_t partition) {
    char owner[OFFSET_OWNER_BYTES];
    struct store_offset stored;
    if (store_offset_get(p->request->server->settings.store,
                         offset_owner(owner, p->consumer.kind, p->consumer_number), &topic_info(p->topic)->id,
                         (int32_t)partition, &p->request->arena, &stored))
        return 0;
    return (uint64_t)stored.offset + 1;
}

static uint64_t clamp_offset(uint64_t offset, uint64_t least, uint64_t most) {
    return offset < least ? least : offset > most ? most : offset;
}

/* Where a part begins. found: what a look-up by time has brought; -1: nothing that late. */
static void part_position(const struct poll *p, struct poll_part *part, int64_t found) {
    uint64_t start = (uint64_t)partition_start(part->partition);
    uint64_t end = (uint64_t)partition_end(part->partition);
    switch (part->strategy.kind) {
    case IGGY_FROM_OFFSET:
        part->offset = clamp_offset(part->strategy.value, start, end);
        break;
    case IGGY_FROM_TIMESTAMP:
        part->offset = found < 0 ? end : clamp_offset((uint64_t)found, start, end);
        break;
    case IGGY_FROM_LAST:
        part->offset = clamp_offset(end > p->count ? end - p->count : 0, start, end);
        break;
    case IGGY_FROM_NEXT:
        part->offset = clamp_offset(poll_next_offset(p, part->partition_id), start, end);
        break;
    default: /* IGGY_FROM_FIRST */
        part->offset = start;
        break;
    }
}

/* A look-up for one part: by time; else only so that the partition is open, and its ends are known. */
static bool part_look_up(const struct poll *p, const struct poll_part *part,
                         struct backend_offset_part *out) {
    bool by_time = part->strategy.kind == IGGY_FROM_TIMESTAMP;
    *out = (struct backend_offset_part){
        .topic = STR_NULL,
        .id = topic_info(p->topic)->id,
        .partition = (int32_t)part->partition_id,
        .kind = by_time ? OFFSET_BY_APPEND : OFFSET_EARLIEST,
        .append_us = part->strategy.value,
        .offset = -1,
    };
    return by_time || !partition_is_open(part->partition);
}

/* The error of a part that the whole request ends with: only the answer to a fetch has room for each. */
static uint32_t poll_refusal(const struct poll *p) {
    uint32_t code = 0;
    for (int32_t i = 0; i < p->parts_count && !p->is_fetch && !code; i++)
        code = p->parts[i].code;
    return code;
}

static void poll_take_room(struct poll *p);

static void poll_begin(struct poll *p) {
    struct server_request *r = p->request;
    bool look_up = false;
    for (int32_t i = 0; i < p->parts_count; i++) {
        struct poll_part *part = &p->parts[i];
        part->partition = topic_partition(p->topic, (int32_t)part->partition_id);
        if (!part->code && !part->partition)
            part->code = IGGY_ERR_PARTITION_NOT_FOUND;
        p->offsets.parts[i].status = part->code ? ST_CANCELED : ST_OK;
        if (!part->code && part_look_up(p, part, &p->offsets.parts[i]))
            look_up = true;
    }
    if (poll_refusal(p)) {
        request_refuse(r, poll_refusal(p));
        return;
    }
    if (look_up) {
        p->offsets.parts_count = p->parts_count;
        p->offsets.deadline_ms = loop_now_ms(r->loop) + STEP_MS;
        op_init(&p->offsets.op, r->loop, poll_on_positions);
        backend_offsets(poll_backend(p), &p->offsets);
        return;
    }
    for (int32_t i = 0; i < p->parts_count; i++) {
        if (!p->parts[i].code)
            part_position(p, &p->parts[i], -1);
    }
    poll_take_room(p);
}

static void poll_on_positions(struct op *op) {
    struct poll *p = container_of(op, struct poll, offsets.op);
    for (int32_t i = 0; i < p->parts_count; i++) {
        struct poll_part *part = &p->parts[i];
        if (part->code)
            continue;
        part->code = code_of_status(p->offsets.parts[i].status);
        if (!part->code)
            part_position(p, part, p->offsets.parts[i].offset);
    }
    poll_take_room(p);
}

/* ---- reading ---- */

/* About what the messages that are wanted take. */
static int64_t poll_estimate(const struct poll *p) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < p->parts_count; i++) {
        const struct poll_part *part = &p->parts[i];
        if (part->code)
            continue;
        int64_t messages = partition_end(part->partition) - partition_start(part->partition);
        int64_t average = partition_size_bytes(part->partition) / (messages > 0 ? messages : 1);
        int64_t wanted = p->count < UINT32_MAX / 2 ? p->count : UINT32_MAX / 2;
        int64_t left = partition_bytes_after(part->partition, (int64_t)part->offset) + READ_BYTES_MIN;
        int64_t here = (average + MESSAGE_OVERHEAD) * wanted;
        here = here < left ? here : left;
        bytes += here < part->bytes_max ? here : part->bytes_max;
    }
    if (bytes < READ_BYTES_MIN)
        bytes = READ_BYTES_MIN;
    return bytes < p->bytes_max ? bytes : p->bytes_max;
}

/* What a client's polls may hold: a quarter of what others have left, so that who asks for much and reads nothing leaves room. */
static int64_t poll_share(const struct poll *p) {
    int64_t share = (budget_free_bytes(p->request->server->polls) + p->request->client->polls_bytes) / 4;
    return share > READ_BYTES_MIN ? share : READ_BYTES_MIN;
}

static void poll_turn_cancel(struct op *op) {
    struct poll *p = container_of(op, struct poll, turn);
    if (!link_in_list(&p->turn_link))
        return;
    list_remove(&p->turn_link);
    op_complete(op, ST_CANCELED);
}

/* False: it waits for what the client has not taken yet. */
static bool poll_has_turn(struct poll *p, int64_t share) {
    struct client *c = p->request->client;
    if (c->polls_bytes == 0 || c->polls_bytes + p->read_bytes <= share)
        return true;
    op_init(&p->turn, p->request->loop, poll_on_turn);
    op_start(&p->turn, poll_turn_cancel);
    list_push_tail(&c->polls, &p->turn_link);
    p->request->parked = &p->turn;
    return false;
}

static void poll_take_room(struct poll *p) {
    int64_t share = poll_share(p);
    if (p->read_bytes == 0) {
        p->bytes_max = p->bytes_max < share ? p->bytes_max : share;
        p->read_bytes = poll_estimate(p);
    }
    if (!poll_has_turn(p, share))
        return;
    poll_hold(p, p->read_bytes);
    op_init(&p->room.op, p->request->loop, poll_on_room);
    p->request->parked = &p->room.op;
    budget_take(p->request->server->polls, &p->room, p->read_bytes);
}

static void poll_on_turn(struct op *op) {
    struct poll *p = container_of(op, struct poll, turn);
    p->request->parked = NULL;
    if (op->status) {
        request_refuse(p->request, IGGY_ERR_TRANSIENT_NOT_ACCEPTED);
        return;
    }
    struct client *c = p->request->client;
    poll_take_room(p);
    if (!link_in_list(&p->turn_link))
        polls_wake(c); /* there may be room for more than one */
}

static void poll_read(struct poll *p) {
    const struct topic_info *info = topic_info(p->topic);
    p->read.format = FORMAT_IGGY;
    p->read.parts_count = p->parts_count;
    p->read.bytes_max = p->read_bytes + READ_BYTES_OVER;
    p->read.deadline_ms = loop_now_ms(p->request->loop) + STEP_MS;
    for (int32_t i = 0; i < p->parts_count; i++) {
        struct poll_part *part = &p->parts[i];
        struct backend_read_part *read = &p->read.parts[i];
        part->end = part->code ? 0 : (uint64_t)partition_end(part->partition);
        read->topic = STR_NULL;
        read->id = info->id;
        read->partition = (int32_t)part->partition_id;
        read->bytes_max =
            (int32_t)((part->bytes_max < p->read_bytes ? part->bytes_max : p->read_bytes) + READ_BYTES_OVER);
        read->offset = part->code ? -1 : (int64_t)part->offset;
    }
    op_init(&p->read.op, p->request->loop, poll_on_read);
    backend_read(poll_backend(p), &p->read);
}

static void poll_on_room(struct op *op) {
    struct poll *p = container_of(op, struct poll, room.op);
    p->request->parked = NULL;
    if (op->status) { /* the client has gone, or the server stops */
        poll_hold(p, 0);
        request_refuse(p->request, IGGY_ERR_TRANSIENT_NOT_ACCEPTED);
        return;
    }
    p->room_bytes = p->read_bytes;
    poll_read(p);
}

/* What of a part goes out, within what others have left; the first message of all comes in any case. */
static enum status part_cut(struct poll *p, struct poll_part *part, const struct backend_read_part *read) {
    int64_t left = p->bytes_max - (int64_t)p->out.bytes;
    if (left <= 0 && p->out.bytes > 0)
        return ST_OK;
    part->cut = (struct iggy_cut){
        .offset = part->offset,
        .count_max = p->count,
        .bytes_max = left < part->bytes_max ? left : part->bytes_max,
        .no_producer = p->request->version < IGGY_0_12_0,
    };
    for (int32_t i = 0; i < read->records_count; i++) {
        enum status st = iggy_cut_add(&part->cut, read->records[i], &p->out);
        if (st)
            return st;
    }
    return ST_OK;
}

/* What this round has found: how many messages, and whether a part has an error, which goes into its code. */
static enum status poll_cut(struct poll *p, uint64_t *found_out, bool *failed_out) {
    wbuf_release(&p->out);
    wbuf_init(&p->out, SIZE_MAX);
    *found_out = 0;
    *failed_out = false;
    for (int32_t i = 0; i < p->parts_count; i++) {
        struct poll_part *part = &p->parts[i];
        part->cut = (struct iggy_cut){.offset = part->offset};
        if (part->code) {
            *failed_out = true;
            continue;
        }
        enum status st = p->read.parts[i].status;
        if (!st)
            st = part_cut(p, part, &p->read.parts[i]);
        if (st == ST_OUT_OF_RANGE) { /* retention was faster: read on from the oldest */
            part_position(p, part, (int64_t)part->offset);
            st = ST_OK;
        }
        if (st == ST_NO_MEMORY || st == ST_BAD_RECORD)
            return st;
        part->code = code_of_status(st);
        *failed_out = *failed_out || part->code;
        *found_out += part->cut.count;
    }
    return ST_OK;
}

/* Whether reading more bytes would bring messages that are still wanted. */
static bool poll_wants_more(const struct poll *p) {
    if (p->read_bytes >= p->bytes_max)
        return false;
    for (int32_t i = 0; i < p->parts_count; i++) {
        const struct poll_part *part = &p->parts[i];
        if (!part->code && !part->cut.full && part->cut.count_max > 0 &&
            part->cut.offset < (uint64_t)partition_end(part->partition) && part->cut.bytes < part->bytes_max)
            return true;
    }
    return false;
}

/* Whether limits, and not the ends of the partitions, are why there are no more messages: waiting would bring none. */
static bool poll_is_full(const struct poll *p, uint64_t found) {
    for (int32_t i = 0; found > 0 && i < p->parts_count; i++) {
        const struct poll_part *part = &p->parts[i];
        if (!part->code && (part->cut.full || part->cut.offset < part->end))
            return true;
    }
    return false;
}

static void poll_park(struct poll *p) {
    wbuf_release(&p->out);
    poll_set_room(p, 0);
    p->watch = (struct backend_watch){.read = &p->read, .bytes_min = 1, .deadline_ms = p->deadline_ms};
    op_init(&p->watch.op, p->request->loop, poll_on_wake);
    p->request->parked = &p->watch.op;
    backend_watch(poll_backend(p), &p->watch);
}

static void poll_on_wake(struct op *op) {
    struct poll *p = container_of(op, struct poll, watch.op);
    p->request->parked = NULL;
    if (op->status != ST_OK)
        p->deadline_ms = 0; /* what is there now is the answer */
    poll_take_room(p);
}

static void poll_finish(struct poll *p);

static void poll_on_read(struct op *op) {
    struct poll *p = container_of(op, struct poll, read.op);
    uint64_t found;
    bool failed;
    poll_set_room(p, p->read.bytes > p->room_bytes ? p->read.bytes : p->room_bytes);
    enum status st = poll_cut(p, &found, &failed);
    if (st || poll_refusal(p)) {
        request_refuse(p->request, st ? code_of_status(st) : poll_refusal(p));
        return;
    }
    if (found < p->count && poll_wants_more(p)) {
        p->read_bytes =
            p->read_bytes * READ_GROWTH < p->bytes_max ? p->read_bytes * READ_GROWTH : p->bytes_max;
        poll_set_room(p, 0);
        poll_take_room(p);
        return;
    }
    bool waits = found < p->min_count && loop_now_ms(p->request->loop) < p->deadline_ms;
    if (waits && !failed && !poll_is_full(p, found) && !request_must_end(p->request))
        poll_park(p);
    else
        poll_finish(p);
}

/* ---- the answer ---- */

static void poll_answer(struct poll *p) {
    struct server_request *r = p->request;
    const struct poll_part *part = &p->parts[0];
    int64_t end = partition_end(part->partition);
    const struct iggy_poll_messages_res answer = {
        .partition_id = part->partition_id,
        .current_offset = end > 0 ? (uint64_t)end - 1 : 0,
        .messages_count = part->cut.count,
        .context = partition_context(r, p->topic, part->partition_id),
    };
    request_answer_tail(r, &answer, &p->out);
}

static void fetch_answer(struct poll *p) {
    struct server_request *r = p->request;
    struct iggy_fetch_section *sections = request_array(r, struct iggy_fetch_section, p->parts_count);
    if (!sections)
        return;
    for (int32_t i = 0; i < p->parts_count; i++) {
        const struct poll_part *part = &p->parts[i];
        int64_t end = part->code ? 0 : partition_end(part->partition);
        sections[i] = (struct iggy_fetch_section){
            .partition_id = part->partition_id,
            .status = part->code,
            .current_offset = end > 0 ? (uint64_t)end - 1 : 0,
            .messages_count = part->cut.count,
            .next_offset = part->cut.offset,
            .batches_bytes = (uint32_t)part->cut.bytes,
        };
        if (part->partition)
            sections[i].context = partition_context(r, p->topic, part->partition_id);
        sections[i].context.owner_generation = part->owner_generation;
    }
    request_answer_tail(
        r,
        &(struct iggy_fetch_messages_res){.sections = sections, .sections_count = (uint32_t)p->parts_count},
        &p->out);
}

static void wait_answer(struct poll *p) {
    struct server_request *r = p->request;
    struct iggy_wait_for_messages_res answer = {.partitions =
                                                    request_array(r, struct iggy_number, p->parts_count)};
    if (!answer.partitions)
        return;
    for (int32_t i = 0; i < p->parts_count; i++)
        if (p->parts[i].cut.count > 0)
            answer.partitions[answer.partitions_count++].value = p->parts[i].partition_id;
    request_answer(r, &answer);
}

static void poll_reply(struct poll *p) {
    if (p->is_wait)
        wait_answer(p);
    else if (p->is_fetch)
        fetch_answer(p);
    else
        poll_answer(p);
}

/* What was polled counts as consumed. In the pool; a failure costs a repetition after the next start, no message. */
static void poll_run_commit(struct work *w) {
    struct poll *p = container_of(w, struct poll, commit);
    char owner[OFFSET_OWNER_BYTES];
    struct store_offset offset = {
        .owner = offset_owner(owner, p->consumer.kind, p->consumer_number),
        .topic = topic_info(p->topic)->id,
        .leader_epoch = -1,
        .committed_ms = clock_wall_ms(),
    };
    for (int32_t i = 0; i < p->parts_count; i++) {
        const struct poll_part *part = &p->parts[i];
        if (part->code || part->cut.count == 0)
            continue;
        offset.partition = (int32_t)part->partition_id;
        offset.offset = (int64_t)part->cut.offset - 1;
        enum status ignored = store_offsets_set(p->request->server->settings.store, &offset, 1);
        (void)ignored;
    }
    loop_post(&p->committed);
}

static void poll_on_committed(struct op *op) {
    poll_reply(container_of(op, struct poll, committed));
}

static void poll_finish(struct poll *p) {
    bool found = false;
    for (int32_t i = 0; i < p->parts_count; i++)
        found = found || p->parts[i].cut.count > 0;
    if (!found || !p->auto_commit) {
        poll_reply(p);
        return;
    }
    op_init(&p->committed, p->request->loop, poll_on_committed);
    work_submit(&p->commit, poll_run_commit);
}

/* ---- the commands ---- */

static int64_t wait_deadline(const struct server_request *r, uint64_t wait_us) {
    return wait_us > 0 ? loop_now_ms(r->loop) + (int64_t)(wait_us / 1000) : 0;
}

/* A poll of a group member that doesn't own the partition: sync again. */
static void poll_answer_none(struct server_request *r, uint32_t partition_id) {
    request_answer(r, &(struct iggy_poll_messages_res){.partition_id = partition_id});
}

/* Which partition a poll means: the named one; else 0, or for a group the member's next. False: none. */
static bool poll_choose_partition(struct poll *p, const struct iggy_maybe_partition *named) {
    p->parts[0].partition_id = named->id;
    if (p->consumer.kind == IGGY_CONSUMER_GROUP && !named->present)
        return groups_next_partition(p->request->server->groups, p->topic, p->consumer_number,
                                     p->request->session->number, &p->parts[0].partition_id);
    return poll_owns(p, p->parts[0].partition_id);
}

static void poll_single(struct server_request *r, const struct iggy_poll_messages_req *in, uint64_t wait_us,
                        uint32_t min_count, int64_t bytes_max) {
    struct poll *p = poll_new(r, &in->consumer, 1);
    if (!p)
        return;
    uint32_t code = poll_target(p, &in->stream, &in->topic);
    if (code) {
        request_refuse(r, code);
        return;
    }
    if (!poll_choose_partition(p, &in->partition)) {
        poll_answer_none(r, IGGY_NO_PARTITION);
        return;
    }
    if (in->count == 0) {
        poll_answer_none(r, p->parts[0].partition_id);
        return;
    }
    struct poll_part *part = &p->parts[0];
    part->strategy = in->strategy;
    part->bytes_max = bytes_max < POLL_BYTES_MAX ? bytes_max : POLL_BYTES_MAX;
    if (r->version >= IGGY_0_12_0)
        part->code =
            partition_context_check(r, p->topic, part->partition_id, r->header.partition_incarnation);
    p->bytes_max = part->bytes_max;
    p->count = in->count;
    p->min_count = min_count;
    p->auto_commit = in->auto_commit;
    p->deadline_ms = wait_deadline(r, wait_us);
    poll_begin(p);
}

void poll_messages_handle(struct server_request *r) {
    poll_single(r, poll_messages_in(r), 0, 0, POLL_BYTES_MAX);
}

/* The waits that an answer can't come within are refused, as are limits that can't hold a message. */
static bool wait_is_sound(uint64_t wait_us, uint64_t timeout_us) {
    return wait_us <= IGGY_POLL_WAIT_US_MAX && timeout_us <= IGGY_POLL_TIMEOUT_US_MAX &&
           (wait_us == 0 || timeout_us >= wait_us + 1000000);
}

void poll_messages_deferred_handle(struct server_request *r) {
    const struct iggy_poll_messages_deferred_req *in = poll_messages_deferred_in(r);
    if (!wait_is_sound(in->wait_us, in->request_timeout_us) || in->min_count == 0 ||
        in->min_count > in->poll.count || in->bytes_max < IGGY_POLL_BYTES_MIN)
        request_refuse(r, IGGY_ERR_INVALID_COMMAND);
    else
        poll_single(r, &in->poll, in->wait_us, in->min_count, in->bytes_max);
}

/* Whether a partition is named twice: ids, `stride` bytes apart. */
static bool ids_repeat(const uint32_t *first, size_t stride, uint32_t count) {
    const char *ids = (const char *)first;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (*(const uint32_t *)(const void *)(ids + i * stride) ==
                *(const uint32_t *)(const void *)(ids + k * stride))
                return true;
    return false;
}

/* A poll of several partitions of a topic. NULL: the request has been refused. */
static struct poll *poll_several(struct server_request *r, const struct iggy_consumer *consumer,
                                 const struct iggy_identifier *stream, const struct iggy_identifier *topic,
                                 uint32_t count) {
    struct poll *p = poll_new(r, consumer, (int32_t)count);
    uint32_t code = p ? poll_target(p, stream, topic) : 0;
    if (!code)
        return p;
    request_refuse(r, code);
    return NULL;
}

/* One partition of a fetch; its own errors stand in its section. */
static void fetch_part(struct poll *p, struct poll_part *part, const struct iggy_fetch_partition *in) {
    part->partition_id = in->partition_id;
    part->strategy = in->strategy;
    part->bytes_max = in->bytes_max < POLL_BYTES_MAX ? in->bytes_max : POLL_BYTES_MAX;
    part->owner_generation = in->owner_generation;
    if (in->strategy.kind != IGGY_FROM_OFFSET && in->strategy.kind != IGGY_FROM_NEXT)
        part->code = IGGY_ERR_INVALID_COMMAND;
    else if (in->partition_id >= (uint32_t)topic_partitions_count(p->topic))
        part->code = IGGY_ERR_PARTITION_NOT_FOUND;
    else if (!poll_owns(p, in->partition_id))
        part->code = IGGY_ERR_CONSUMER_GROUP_PARTITION_NOT_OWNED;
    else
        part->code = partition_context_check(p->request, p->topic, in->partition_id, in->incarnation);
}

/* What a wait reads is thrown away: one message of each partition, if that. */
static void wait_part(struct poll *p, struct poll_part *part, const struct iggy_wait_partition *in) {
    part->partition_id = in->partition_id;
    part->strategy = in->strategy;
    part->bytes_max = READ_BYTES_MIN;
    if (in->strategy.kind != IGGY_FROM_OFFSET && in->strategy.kind != IGGY_FROM_NEXT)
        part->code = IGGY_ERR_INVALID_COMMAND;
    else if (in->partition_id >= (uint32_t)topic_partitions_count(p->topic))
        part->code = IGGY_ERR_PARTITION_NOT_FOUND;
    else if (!poll_owns(p, in->partition_id))
        part->code = IGGY_ERR_CONSUMER_GROUP_PARTITION_NOT_OWNED;
}

void wait_for_messages_handle(struct server_request *r) {
    const struct iggy_wait_for_messages_req *in = wait_for_messages_in(r);
    bool sound = wait_is_sound(in->wait_us, in->request_timeout_us) && in->request_timeout_us > 0 &&
                 in->partitions_count > 0 && in->partitions_count <= IGGY_FETCH_PARTITIONS_MAX;
    if (!sound ||
        ids_repeat(&in->partitions[0].partition_id, sizeof in->partitions[0], in->partitions_count)) {
        request_refuse(r, IGGY_ERR_INVALID_COMMAND);
        return;
    }
    struct poll *p = poll_several(r, &in->consumer, &in->stream, &in->topic, in->partitions_count);
    if (!p)
        return;
    p->is_wait = true;
    p->bytes_max = POLL_BYTES_MAX;
    p->count = p->min_count = 1;
    p->deadline_ms = wait_deadline(r, in->wait_us);
    for (uint32_t i = 0; i < in->partitions_count; i++)
        wait_part(p, &p->parts[i], &in->partitions[i]);
    poll_begin(p);
}

void fetch_messages_handle(struct server_request *r) {
    const struct iggy_fetch_messages_req *in = fetch_messages_in(r);
    if (!wait_is_sound(in->wait_us, in->request_timeout_us) || in->partitions_count == 0 ||
        in->partitions_count > IGGY_FETCH_PARTITIONS_MAX || in->count == 0 ||
        ids_repeat(&in->partitions[0].partition_id, sizeof in->partitions[0], in->partitions_count)) {
        request_refuse(r, IGGY_ERR_INVALID_COMMAND);
        return;
    }
    struct poll *p = poll_several(r, &in->consumer, &in->stream, &in->topic, in->partitions_count);
    if (!p)
        return;
    p->is_fetch = true;
    p->bytes_max = in->bytes_max < POLL_BYTES_MAX ? in->bytes_max : POLL_BYTES_MAX;
    p->count = in->count;
    p->min_count = in->min_count;
    p->auto_commit = in->auto_commit;
    p->deadline_ms = wait_deadline(r, in->wait_us);
    for (uint32_t i = 0; i < in->partitions_count; i++)
        fetch_part(p, &p->parts[i], &in->partitions[i]);
    poll_begin(p);
}
