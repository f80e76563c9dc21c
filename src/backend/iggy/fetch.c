/*
 * 0.12.1: one FetchMessages brings what all partitions of a topic have, from the offsets on, within the bytes that are wanted; the server
 * waits itself where it is told to. Partitions are named with the incarnation that the view shows: one that was made anew answers 87.
 */
#include "backend/iggy/ahead.h"
#include "base/mem.h"
#include "iggy/errors.h"
#include "net/loop.h"

#define SECTIONS_BYTES_MAX \
    ((size_t)1 << 20)         /* decoded: a section is some 100 bytes, there are 1000 at most */
#define TIMEOUT_SLACK_MS 2000 /* the server may answer so long after the wait */

static void fetch_on_answer(struct op *op);
static void fetch_on_ahead(struct op *op);

static uint32_t limit_u32(int64_t bytes) {
    if (bytes < (int64_t)IGGY_POLL_BYTES_MIN)
        return IGGY_POLL_BYTES_MIN;
    return bytes > INT32_MAX ? INT32_MAX : (uint32_t)bytes;
}

/* Each topic may bring its share of the whole, and some more, since most have nothing. */
int64_t fetch_bytes_max(const struct reading *r) {
    int64_t share = r->call->bytes_max / (r->topics_count > 1 ? (r->topics_count + 1) / 2 : 1);
    int64_t least = 64 * 1024;
    if (share < least)
        share = least;
    return share < r->call->bytes_max ? share : r->call->bytes_max;
}

/* Whether a part is asked for; an offset that can't be is answered here. */
static bool part_is_asked(struct read_part *p) {
    if (!p->settled && p->call->offset < 0) {
        p->status = ST_OUT_OF_RANGE;
        p->settled = true;
    }
    return !p->settled;
}

static struct iggy_fetch_messages_req fetch_of(const struct topic_view *view,
                                               const struct fetch_terms *terms) {
    return (struct iggy_fetch_messages_req){
        .consumer = {.kind = IGGY_CONSUMER, .id = iggy_by_name(STR(READ_CONSUMER))},
        .stream = iggy_by_name(view->stream),
        .topic = iggy_by_name(view->topic),
        .wait_us = (uint64_t)terms->wait_ms * 1000,
        .request_timeout_us = (uint64_t)(terms->wait_ms + TIMEOUT_SLACK_MS) * 1000,
        .min_count = terms->min_count,
        .count = UINT32_MAX,
        .bytes_max = limit_u32(terms->bytes_max),
    };
}

static struct iggy_fetch_partition fetch_partition_of(const struct read_part *p, int64_t offset) {
    const struct view_partition *seen = &p->topic->view->partitions[p->call->partition];
    return (struct iggy_fetch_partition){
        .partition_id = (uint32_t)p->call->partition,
        .strategy = {.kind = IGGY_FROM_OFFSET, .value = (uint64_t)offset},
        .bytes_max = limit_u32(p->call->bytes_max),
        .incarnation = seen->context.incarnation,
        .owner_generation = seen->context.owner_generation,
    };
}

void fetch_one(const struct read_part *p, int64_t offset, struct iggy_fetch_messages_req *out,
               struct iggy_fetch_partition *partition_out) {
    const struct fetch_terms terms = {.min_count = 1, .bytes_max = fetch_bytes_max(p->topic->reading)};
    *partition_out = fetch_partition_of(p, offset);
    *out = fetch_of(p->topic->view, &terms);
    out->partitions = partition_out;
    out->partitions_count = 1;
}

enum status fetch_prepare(struct read_topic *t, const struct fetch_terms *terms) {
    mem_free(t->fetch.partitions);
    t->fetch = fetch_of(t->view, terms);
    t->fetch.partitions = mem_take_zeroed((size_t)t->parts_count, sizeof *t->fetch.partitions);
    if (!t->fetch.partitions)
        return ST_NO_MEMORY;
    for (int32_t i = 0; i < t->parts_count; i++) {
        struct read_part *p = &t->parts[i];
        if (!part_is_asked(p))
            continue;
        t->fetch.partitions[t->fetch.partitions_count++] = fetch_partition_of(p, p->call->offset);
    }
    return ST_OK;
}

static struct read_part *part_of(struct read_topic *t, uint32_t partition) {
    for (int32_t i = 0; i < t->parts_count; i++)
        if (!t->parts[i].settled && (uint32_t)t->parts[i].call->partition == partition)
            return &t->parts[i];
    return NULL;
}

/* Sections stand in the order of the request, which is that of the parts. */
static void take_sections(struct read_topic *t, const struct iggy_fetch_messages_res *res) {
    struct bytes left = res->batches;
    int32_t next = 0;
    t->crowded = left.len > 0;
    for (uint32_t i = 0; i < res->sections_count; i++) {
        const struct iggy_fetch_section *s = &res->sections[i];
        if (s->batches_bytes > (uint32_t)(left.len > 0 ? left.len : 0))
            return;
        struct bytes messages = {left.ptr, (int32_t)s->batches_bytes};
        left = (struct bytes){left.ptr + messages.len, left.len - messages.len};
        while (next < t->parts_count &&
               (t->parts[next].settled || (uint32_t)t->parts[next].call->partition != s->partition_id))
            next++;
        struct read_part *p = next < t->parts_count ? &t->parts[next] : part_of(t, s->partition_id);
        if (!p)
            continue;
        if (s->status)
            read_part_fail(p, iggy_status_of(s->status, IGGY_CALL_READ));
        else
            read_part_answer(p, messages, s->messages_count, s->current_offset);
    }
}

static bool is_about_incarnation(uint32_t code) {
    return code == IGGY_ERR_HISTORY_UNAVAILABLE || code == IGGY_ERR_NOT_PRIMARY ||
           code == IGGY_ERR_PARTITION_HISTORY_CHANGED;
}

static bool a_section_is_about_incarnation(const struct iggy_fetch_messages_res *res) {
    for (uint32_t i = 0; i < res->sections_count; i++)
        if (is_about_incarnation(res->sections[i].status))
            return true;
    return false;
}

bool fetch_take(struct read_topic *t) {
    struct arena arena;
    struct iggy_fetch_messages_res res;
    enum status st = bridge_status(&t->request, IGGY_CALL_READ);
    bool outdated = t->request.op.status == ST_OK && is_about_incarnation(t->request.code);
    arena_init(&arena, NULL, 0, SECTIONS_BYTES_MAX);
    if (!st)
        st = iggy_request_decode(&t->request, &arena, &res);
    if (!st && !t->again && a_section_is_about_incarnation(&res))
        outdated = true;
    if (!st && !outdated)
        take_sections(t, &res);
    arena_release(&arena);
    if (outdated && !t->again)
        return false;
    read_topic_fail(t, st ? st : ST_REFUSED); /* those that the answer leaves out */
    frame_free(t->frame);
    t->frame = iggy_request_take_frame(&t->request);
    iggy_request_release(&t->request);
    return true;
}

/* The only part that is to be asked for; NULL: there are others. */
static struct read_part *topic_only_part(struct read_topic *t) {
    return t->parts_count == 1 && part_is_asked(&t->parts[0]) ? &t->parts[0] : NULL;
}

/* What is asked for may be under way or here: that is looked for where one partition is read alone. True: so it is. */
static bool fetch_from_ahead(struct read_topic *t) {
    struct read_part *p = topic_only_part(t);
    enum ahead_state found = p ? ahead_begin(p, fetch_on_ahead) : AHEAD_NONE;
    if (found == AHEAD_HERE && ahead_take(p)) {
        t->crowded = true;
        read_topic_done(t);
        return true;
    }
    return found == AHEAD_COMING;
}

static void fetch_ask(struct read_topic *t);

static void fetch_on_ahead(struct op *op) {
    struct read_part *p = container_of(op, struct read_part, ahead_op);
    struct read_topic *t = p->topic;
    if (ahead_take(p)) {
        t->crowded = true;
        read_topic_done(t);
    } else {
        fetch_ask(t);
    }
}

void fetch_begin(struct read_topic *t) {
    if (!fetch_from_ahead(t))
        fetch_ask(t);
}

static void fetch_ask(struct read_topic *t) {
    struct bridge_loop *l = t->reading->loop;
    struct iggy_client *client = bridge_reader(l, t->view->facts.topic_id);
    const struct fetch_terms terms = {.min_count = 1, .bytes_max = fetch_bytes_max(t->reading)};
    enum status st = client ? fetch_prepare(t, &terms) : ST_UNAVAILABLE;
    if (st || t->fetch.partitions_count == 0) {
        read_topic_fail(t, st);
        read_topic_done(t);
        return;
    }
    iggy_request_release(&t->request);
    t->request = (struct iggy_request){.deadline_ms = loop_now_ms(l->loop) + CALL_MS};
    if (t->reading->call->deadline_ms < t->request.deadline_ms)
        t->request.deadline_ms = t->reading->call->deadline_ms;
    op_init(&t->request.op, l->loop, fetch_on_answer);
    iggy_client_call(client, &t->request, IGGY_CMD_fetch_messages, &t->fetch);
}

/* One partition alone, which brought messages. */
static bool topic_was_read(const struct read_topic *t) {
    return t->parts_count == 1 && t->parts[0].answered;
}

static void fetch_on_answer(struct op *op) {
    struct read_topic *t = container_of(op, struct read_topic, request.op);
    if (fetch_take(t)) {
        if (topic_was_read(t))
            ahead_go_on(&t->parts[0], 0);
        read_topic_done(t);
    } else if (!read_topic_again(t)) {
        read_topic_done(t);
    }
}
