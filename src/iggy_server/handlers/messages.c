/*
 * send_messages 101, flush_unsaved_buffer 102.
 *
 *   send_messages_handle -> [large: pool] send_check -> backend_append -> send_on_stored
 *
 * A batch is stored as it came; partition, offset and append time are filled in where it lies, in the frame.
 * What is acknowledged is written; where the topic's durability is `persisted`, on stable storage.
 */
#include "iggy/batch.h"
#include "iggy_server/request.h"
#include "net/loop.h"
#include "net/work.h"

#define CHECK_INLINE_BYTES (256 * 1024)     /* checksums of so much take a loop 20 us or so */
#define SEND_MS            ((int64_t)30000) /* as long as official clients wait for a reply */

struct send {
    struct server_request *request;
    struct topic *topic; /* held */
    struct work work;
    struct op checked;
    struct backend_append append;
    struct backend_append_part part;
    uint32_t code;
};

static void send_on_checked(struct op *op);
static void send_on_stored(struct op *op);

static void send_at_end(struct server_request *r) {
    struct send *send = r->state;
    topic_unref(send->topic);
}

/* Which partition is meant. 0; 20. */
static uint32_t send_partition(struct server_request *r, const struct topic *t, uint32_t *out) {
    const struct iggy_partitioning *p = &send_messages_in(r)->target.partitioning;
    uint32_t count = (uint32_t)topic_partitions_count(t);
    if (count == 0)
        return IGGY_ERR_RESOURCE_NOT_FOUND;
    if (p->kind == IGGY_BALANCED)
        *out = atomic_fetch_add(&r->server->balanced, 1) % count;
    else if (p->kind == IGGY_MESSAGES_KEY)
        *out = iggy_key_partition(p->key, count);
    else
        *out = p->partition_id;
    return *out < count ? 0 : IGGY_ERR_RESOURCE_NOT_FOUND;
}

/* The topic, and may its user send there. Unknown targets of a send are all 20. */
static uint32_t send_target(struct server_request *r, struct send *send) {
    const struct iggy_send_target *target = &send_messages_in(r)->target;
    if (request_topic(r, &target->stream, &target->topic, &send->topic))
        return IGGY_ERR_RESOURCE_NOT_FOUND;
    const struct topic_info *info = topic_info(send->topic);
    uint32_t code = request_allowed(r, ACTION_SEND, info->stream_id, info->topic_id);
    uint32_t partition = 0;
    if (!code)
        code = send_partition(r, send->topic, &partition);
    if (!code && r->version >= IGGY_0_12_0)
        code = partition_context_check(r, send->topic, partition, r->header.partition_incarnation);
    send->part = (struct backend_append_part){
        .topic = STR_NULL,
        .id = info->id,
        .partition = (int32_t)partition,
        .records = send_messages_in(r)->batch,
    };
    return code;
}

static uint32_t batch_code(enum status st) {
    switch (st) {
    case ST_OK:
        return 0;
    case ST_BAD_CRC:
        return IGGY_ERR_INVALID_BATCH_CHECKSUM;
    default:
        return IGGY_ERR_INVALID_MESSAGES_SIZE;
    }
}

/* Any thread. */
static uint32_t send_check(const struct send *send) {
    const struct server_request *r = send->request;
    const struct iggy_send_messages_req *in = send_messages_in(r);
    struct iggy_batch b;
    enum status st = iggy_batch_read(in->batch, r->version >= IGGY_0_12_0, &b);
    if (!st && b.size_bytes != in->batch.len)
        st = ST_BAD_RECORD;
    if (!st && b.messages_count != in->target.messages_count)
        return IGGY_ERR_INVALID_MESSAGES_COUNT;
    return batch_code(st ? st : iggy_batch_check(&b, true));
}

static void send_store(struct send *send) {
    struct server_request *r = send->request;
    send->append = (struct backend_append){
        .format = FORMAT_IGGY,
        .arena = &r->arena,
        .parts = &send->part,
        .parts_count = 1,
        .durable = topic_setting_is(send->topic, "iggy.durability", "persisted"),
        .deadline_ms = loop_now_ms(r->loop) + SEND_MS,
    };
    op_init(&send->append.op, r->loop, send_on_stored);
    backend_append(r->server->settings.backend, &send->append);
}

static void send_run_check(struct work *w) {
    struct send *send = container_of(w, struct send, work);
    send->code = send_check(send);
    loop_post(&send->checked);
}

static void send_on_checked(struct op *op) {
    struct send *send = container_of(op, struct send, checked);
    if (send->code)
        request_refuse(send->request, send->code);
    else
        send_store(send);
}

void send_messages_handle(struct server_request *r) {
    struct send *send = request_take(r, 1, sizeof *send);
    if (!send)
        return;
    send->request = r;
    r->state = send;
    r->at_end = send_at_end;
    uint32_t code = send_target(r, send);
    if (code) {
        request_refuse(r, code);
        return;
    }
    if (send->part.records.len > CHECK_INLINE_BYTES) {
        op_init(&send->checked, r->loop, send_on_checked);
        work_submit(&send->work, send_run_check);
        return;
    }
    code = send_check(send);
    if (code)
        request_refuse(r, code);
    else
        send_store(send);
}

/* What is not found at that moment is, to a sender, the same as never there. */
static uint32_t send_code(enum status st) {
    return st == ST_NOT_FOUND || st == ST_UNKNOWN_ID ? IGGY_ERR_RESOURCE_NOT_FOUND : code_of_status(st);
}

static void send_on_stored(struct op *op) {
    struct send *send = container_of(op, struct send, append.op);
    struct server_request *r = send->request;
    if (send->part.status) {
        request_refuse(r, send_code(send->part.status));
        return;
    }
    const struct topic_info *info = topic_info(send->topic);
    struct iggy_confirmation confirmation = {
        .stream_id = info->stream_id,
        .topic_id = info->topic_id,
        .partition_id = (uint32_t)send->part.partition,
        .base_offset = (uint64_t)send->part.base_offset,
    };
    request_answer(r, &(struct iggy_send_messages_res){
                          .offset_known = true, .confirmations = &confirmation, .confirmations_count = 1});
}

/* Nothing is unsaved here: what was acknowledged is in the file. */
void flush_unsaved_buffer_handle(struct server_request *r) {
    request_refuse(r, IGGY_ERR_FEATURE_UNAVAILABLE);
}
