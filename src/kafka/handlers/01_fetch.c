/*
 * Fetch, v4-v18: read record batches, or wait for them.
 *
 *   fetch_handle -> fetch_begin -> [all before it answered] fetch_on_turn -> [memory] fetch_on_room -> backend_read
 *                       ^                                                                                   v
 *                       +------- fetch_on_wake <- backend_watch: too little yet -------------------- fetch_on_read
 *                                                                           enough, or time is up: answer <-+
 *
 * - Parked means: on the backend's watch list, with nothing on any stack and no records in memory.
 * - What is read is reserved before, and given back when the answer has left: thousands of consumers that wake for one large batch
 *   take turns. Only who is first on its connection reads: what others had read would lie there until the first is answered, and
 *   the first might wait for just that memory.
 * - Answers early when min_bytes are there, when a partition has an error other than 6 and -1 (D2-40), or when max_wait_ms has passed.
 * - A wake may be for nothing; the round then ends in fetch_on_read and parks again.
 * - No sessions: every request is a full one, any other epoch than 0 and -1 gets 70 (D2-5, KIP-227).
 * - A partition named twice is answered once, by its later entry (D2-6).
 * - By topic id from v13 (KIP-516). Record slices are the backend's until the answer has left.
 */
#include "base/clock.h"
#include "kafka/errors.h"
#include "kafka/names.h"
#include "kafka/request.h"
#include "kafka/topic_name.h"

#define FETCH_READ_MS     15000              /* F-1: of one round, where the log is on another machine */
#define FETCH_ALL_MS      20000              /* D2-30: of all rounds, */
#define FETCH_LAST_MS     5000               /* but so much after the wait, */
#define FETCH_LEAST_MS    1000               /* and so much after a wait for memory, in any case */
#define FETCH_BYTES_NEAR  ((int64_t)1 << 20) /* for each FETCH_RTT_US of the client's round trip: 2 GB/s */
#define FETCH_RTT_US      500
#define FETCH_BYTES_MAX   ((int64_t)55 << 20) /* Kafka's fetch.max.bytes */
#define FETCH_BYTES_FLOOR ((int64_t)1 << 20)  /* what is tried even when memory is short */
#define BY_ID_FROM        13
#define ISOLATION_MAX     1

/* A partition of the answer, and the part of the read that fills it. */
struct fetch_target {
    struct fetch_res_partition *out;
    int32_t part;  /* -1: refused here */
    int32_t topic; /* in the request */
    int32_t entry;
};

struct fetch {
    struct request *request;
    struct backend_read read;
    struct backend_watch watch;
    struct budget_wait room;
    int64_t room_bytes; /* reserved in kafka->fetches */
    struct fetch_res out;
    struct fetch_target *targets;
    int32_t targets_count;
    int64_t deadline_ms; /* monotonic; the wait's end */
    bool answer_now;     /* whatever this round finds */
    bool woken; /* by data: what this round finds is enough, though limits may make it less than min_bytes */
};

static struct fetch *fetch_new(struct request *r);
static bool fetch_fill(struct fetch *f);
static void fetch_begin(struct fetch *f);
static void fetch_on_turn(struct request *r);
static void fetch_on_room(struct op *op);
static void fetch_read(struct fetch *f);
static void fetch_on_read(struct op *op);
static void fetch_park(struct fetch *f);
static void fetch_on_wake(struct op *op);

static bool isolation_is_known(const struct fetch_req *in) {
    return in->isolation_level >= 0 && in->isolation_level <= ISOLATION_MAX;
}

static void fetch_refuse(struct request *r, int16_t code) {
    fetch_reply(r, &(struct fetch_res){.error_code = code});
}

/* From what is reserved to what is needed. */
static void fetch_set_room(struct fetch *f, int64_t bytes) {
    if (bytes > f->room_bytes)
        budget_force(f->request->kafka->fetches, bytes - f->room_bytes); /* KIP-74's first batch is larger */
    else
        budget_give(f->request->kafka->fetches, f->room_bytes - bytes);
    f->room_bytes = bytes;
}

static void fetch_at_end(struct request *r) {
    struct fetch *f = r->state;
    backend_read_release(r->kafka->settings.backend, &f->read);
    fetch_set_room(f, 0);
}

void fetch_handle(struct request *r) {
    const struct fetch_req *in = fetch_in(r);
    if (in->session_epoch != 0 && in->session_epoch != -1) {
        fetch_refuse(r, KERR_FETCH_SESSION_ID_NOT_FOUND);
        return;
    }
    struct fetch *f = fetch_new(r);
    if (!f || !fetch_fill(f))
        return;
    r->state = f;
    r->at_end = fetch_at_end;
    f->answer_now |= in->max_wait_ms <= 0 || in->min_bytes <= 0 || f->read.parts_count == 0;
    f->deadline_ms = r->arrived_ms + in->max_wait_ms;
    f->out.error_code = isolation_is_known(in) ? KERR_NONE : KERR_UNKNOWN_SERVER_ERROR;
    fetch_begin(f);
}

/* A round begins. */
static void fetch_begin(struct fetch *f) {
    request_waits_for(f->request, fetch_on_turn);
    if (request_has_turn(f->request, fetch_on_turn))
        fetch_on_turn(f->request);
}

/*
 * How large an answer makes sense. One that is larger than what flows in a round trip only makes the client wait for its first
 * byte, and leaves the processor's caches: measured with 6 partitions, 1 MiB is 1.4 times as fast as 6.
 */
static int64_t fetch_bytes_worth(const struct fetch *f) {
    int64_t trips = request_rtt_us(f->request) / FETCH_RTT_US;
    int64_t bytes = FETCH_BYTES_NEAR * (trips > 1 ? trips : 1);
    if (bytes < fetch_in(f->request)->min_bytes)
        bytes = fetch_in(f->request)->min_bytes;
    return bytes < FETCH_BYTES_MAX ? bytes : FETCH_BYTES_MAX;
}

/* What one round may read at most: so that several find room, less where memory is short. */
static int64_t fetch_bytes_max(const struct fetch *f) {
    const struct fetch_req *in = fetch_in(f->request);
    int64_t room = budget_free_bytes(f->request->kafka->fetches) / 4;
    int64_t most = room > FETCH_BYTES_FLOOR ? room : FETCH_BYTES_FLOOR;
    int64_t worth = fetch_bytes_worth(f);
    if (most > worth)
        most = worth;
    return in->max_bytes < most ? in->max_bytes : most;
}

static void fetch_on_turn(struct request *r) {
    struct fetch *f = r->state;
    if (!request_has_client(r)) {
        request_no_reply(r);
        return;
    }
    f->read.bytes_max = fetch_bytes_max(f);
    if (f->read.bytes_max <= 0 || budget_try(r->kafka->fetches, f->read.bytes_max)) {
        f->room_bytes = f->read.bytes_max > 0 ? f->read.bytes_max : 0;
        fetch_read(f);
        return;
    }
    op_init(&f->room.op, r->loop, fetch_on_room);
    request_waits_for(r, fetch_on_room);
    r->parked = &f->room.op;
    budget_take(r->kafka->fetches, &f->room, f->read.bytes_max);
}

static void fetch_on_room(struct op *op) {
    struct fetch *f = container_of(op, struct fetch, room.op);
    struct request *r = f->request;
    r->parked = NULL;
    if (op->status == ST_OK)
        f->room_bytes = f->read.bytes_max;
    else
        fetch_set_room(f, f->read.bytes_max); /* the server stops: this is the last answer */
    if (request_has_client(r))
        fetch_read(f);
    else
        request_no_reply(r);
}

static int64_t fetch_read_deadline(const struct fetch *f) {
    int64_t now_ms = clock_ms(), last_ms = f->request->arrived_ms + FETCH_ALL_MS;
    if (last_ms < f->deadline_ms + FETCH_LAST_MS)
        last_ms = f->deadline_ms + FETCH_LAST_MS;
    if (last_ms < now_ms + FETCH_LEAST_MS)
        last_ms = now_ms + FETCH_LEAST_MS;
    return now_ms + FETCH_READ_MS < last_ms ? now_ms + FETCH_READ_MS : last_ms;
}

static void fetch_read(struct fetch *f) {
    struct request *r = f->request;
    request_waits_for(r, fetch_on_read);
    op_init(&f->read.op, r->loop, fetch_on_read);
    f->read.deadline_ms = fetch_read_deadline(f);
    backend_read(r->kafka->settings.backend, &f->read);
}

/* There is one leader epoch, 0 (D4-1): a later one is unknown, and nothing was ever fetched in it (KIP-320, KIP-595). */
static int16_t target_epoch_error(const struct fetch *f, const struct fetch_target *target) {
    const struct fetch_req_partition *p =
        &fetch_in(f->request)->topics[target->topic].partitions[target->entry];
    if (p->current_leader_epoch > KAFKA_LEADER_EPOCH)
        return KERR_UNKNOWN_LEADER_EPOCH;
    return p->last_fetched_epoch > KAFKA_LEADER_EPOCH ? KERR_OFFSET_OUT_OF_RANGE : KERR_NONE;
}

/* One round's outcome into the answer. True: it can't wait any longer. */
static bool fetch_take(struct fetch *f) {
    bool urgent = false;
    for (int32_t i = 0; i < f->targets_count; i++) {
        const struct fetch_target *target = &f->targets[i];
        if (target->part < 0)
            continue;
        const struct backend_read_part *part = &f->read.parts[target->part];
        struct fetch_res_partition *out = target->out;
        out->error_code = kerr_of_read(part->status);
        if (!out->error_code)
            out->error_code = target_epoch_error(f, target);
        bool good = out->error_code == KERR_NONE;
        bool unknown =
            out->error_code == KERR_UNKNOWN_TOPIC_OR_PARTITION || out->error_code == KERR_UNKNOWN_TOPIC_ID;
        if (unknown && out->high_watermark < 0) /* from the start; not one that went while we waited */
            out->aborted_transactions_count = 0;
        out->high_watermark = out->last_stable_offset = good ? part->high_watermark : -1;
        out->log_start_offset = good ? part->start_offset : -1;
        out->records =
            good ? (struct slices){part->records, part->records_count, part->bytes} : (struct slices){0};
        urgent |= out->error_code != KERR_NONE && out->error_code != KERR_NOT_LEADER_OR_FOLLOWER &&
                  out->error_code != KERR_UNKNOWN_SERVER_ERROR;
    }
    return urgent;
}

static void fetch_on_read(struct op *op) {
    struct fetch *f = container_of(op, struct fetch, read.op);
    struct request *r = f->request;
    bool urgent = fetch_take(f);
    fetch_set_room(f, f->read.bytes);
    bool enough = f->read.bytes >= fetch_in(r)->min_bytes || (f->woken && f->read.bytes > 0);
    if (urgent || enough || f->answer_now || request_must_end(r))
        fetch_reply(r, &f->out);
    else
        fetch_park(f);
}

static void fetch_park(struct fetch *f) {
    struct request *r = f->request;
    fetch_set_room(f, 0);
    f->watch = (struct backend_watch){
        .read = &f->read, .bytes_min = fetch_in(r)->min_bytes, .deadline_ms = f->deadline_ms};
    op_init(&f->watch.op, r->loop, fetch_on_wake);

    request_waits_for(r, fetch_on_wake);
    r->parked = &f->watch.op;
    backend_watch(r->kafka->settings.backend, &f->watch);
}

static void fetch_on_wake(struct op *op) {
    struct fetch *f = container_of(op, struct fetch, watch.op);
    f->request->parked = NULL;
    f->woken = op->status == ST_OK;
    f->answer_now |= op->status != ST_OK; /* its time is up, or the server stops */
    fetch_begin(f);
}

/* ---- the request's shape ---- */

/* What refuses a partition before it is read; KERR_NONE: nothing. Source: K3-1..K3-4. */
static int16_t partition_refusal(const struct request *r, const struct fetch_req_topic *topic,
                                 const struct fetch_req_partition *p) {
    const struct fetch_req *in = fetch_in(r);
    if (request_meets_stub(r))
        return KERR_NONE; /* the backend answers for all alike */
    if (!isolation_is_known(in) || in->max_bytes < 0 || p->partition_max_bytes < 0)
        return KERR_UNKNOWN_SERVER_ERROR; /* D2-3 */
    if (in->replica_id >= 0 || (in->replica_state && in->replica_state->replica_id >= 0))
        return KERR_NOT_LEADER_OR_FOLLOWER; /* nobody replicates from here */
    if (r->version < BY_ID_FROM && !topic_name_is_valid(topic->topic))
        return KERR_UNKNOWN_TOPIC_OR_PARTITION; /* D2-20 */
    return KERR_NONE;
}

static struct fetch_res_partition partition_empty(int32_t index) {
    return (struct fetch_res_partition){.partition_index = index,
                                        .high_watermark = -1,
                                        .last_stable_offset = -1,
                                        .log_start_offset = -1,
                                        .aborted_transactions_count = -1,
                                        .preferred_read_replica = -1};
}

/* The state with room for all partitions. NULL: the request has been closed. */
static struct fetch *fetch_new(struct request *r) {
    const struct fetch_req *in = fetch_in(r);
    int32_t count = 0;
    for (int32_t t = 0; t < in->topics_count; t++)
        count += in->topics[t].partitions_count;
    size_t bytes = sizeof(struct fetch) + (size_t)in->topics_count * sizeof(struct fetch_res_topic) +
                   (size_t)count * (sizeof(struct backend_read_part) + sizeof(struct fetch_res_partition) +
                                    sizeof(struct fetch_target));
    struct fetch *f =
        request_take(r, 1, bytes); /* one piece: each part's size is a multiple of its alignment */
    if (!f)
        return NULL;
    f->request = r;
    f->read.parts = (struct backend_read_part *)(void *)(f + 1);
    struct fetch_res_partition *out = (struct fetch_res_partition *)(void *)(f->read.parts + count);
    f->targets = (struct fetch_target *)(void *)(out + count);
    f->out.responses = (struct fetch_res_topic *)(void *)(f->targets + count);
    for (int32_t t = 0; t < in->topics_count; t++)
        for (int32_t i = 0; i < in->topics[t].partitions_count; i++, out++)
            f->targets[f->targets_count++] = (struct fetch_target){.out = out, .topic = t, .entry = i};
    return f;
}

/* Leave only the last of each partition (D2-6). False: the request has been closed. */
static bool fetch_drop_repeats(struct fetch *f) {
    struct request *r = f->request;
    const struct fetch_req *in = fetch_in(r);
    int32_t count = f->targets_count, kept = 0;
    struct name_key *keys = request_array(r, struct name_key, count);
    if (!keys)
        return false;
    for (int32_t i = 0; i < count; i++) { /* from the end, so that the last one is the first with its key */
        const struct fetch_target *target = &f->targets[count - 1 - i];
        const struct fetch_req_topic *topic = &in->topics[target->topic];
        keys[i].name = r->version < BY_ID_FROM ? topic->topic : name_of_id(&topic->topic_id);
        keys[i].number = topic->partitions[target->entry].partition;
    }
    const struct name_place *places = names_place(r, keys, count);
    if (!places)
        return false;
    for (int32_t i = 0; i < count; i++)
        if (places[count - 1 - i].first == count - 1 - i)
            f->targets[kept++] = f->targets[i];
    f->targets_count = kept;
    return true;
}

/* Parts to read and the answer's topics from the targets. False: the request has been closed. */
static bool fetch_fill(struct fetch *f) {
    struct request *r = f->request;
    const struct fetch_req *in = fetch_in(r);
    if (f->targets_count > 1 && !fetch_drop_repeats(f))
        return false;
    for (int32_t i = 0, topic_now = -1; i < f->targets_count; i++) {
        struct fetch_target *target = &f->targets[i];
        const struct fetch_req_topic *topic = &in->topics[target->topic];
        const struct fetch_req_partition *p = &topic->partitions[target->entry];
        if (target->topic != topic_now) {
            topic_now = target->topic;
            f->out.responses[f->out.responses_count++] = (struct fetch_res_topic){
                .topic = topic->topic, .topic_id = topic->topic_id, .partitions = target->out};
        }
        struct fetch_res_topic *to = &f->out.responses[f->out.responses_count - 1];
        target->out = &to->partitions[to->partitions_count++];
        *target->out = partition_empty(p->partition);
        target->out->error_code = partition_refusal(r, topic, p);
        if (in->isolation_level != 0 || target->out->error_code == KERR_UNKNOWN_TOPIC_OR_PARTITION)
            target->out->aborted_transactions_count =
                0; /* none, which is not the same as unasked (null) on the wire */
        target->part = -1;
        if (target->out->error_code) {
            f->answer_now = true;
            continue;
        }
        target->part = f->read.parts_count;
        f->read.parts[f->read.parts_count++] =
            (struct backend_read_part){.topic = r->version < BY_ID_FROM ? topic->topic : STR_NULL,
                                       .id = topic->topic_id,
                                       .partition = p->partition,
                                       .offset = p->fetch_offset,
                                       .bytes_max = p->partition_max_bytes};
    }
    return true;
}
