/*
 * Produce, v3-v13: store record batches.
 *
 *   produce_handle -> backend_append -> produce_on_stored -> answer
 *
 * - Every partition gets its own error code, in request order; one bad partition fails no other (D1-15, D1-20).
 * - acks 0 gets no answer; where a partition failed the connection closes instead, so that the client notices (D1-22).
 * - One record batch v2 a partition (KIP-98). No transactions: a transactional id gets 35 everywhere (D1-1).
 * - Versions 0-2 are listed but not served: they close (B-31, B-36; the stub is milder).
 */
#include "base/clock.h"
#include "kafka/errors.h"
#include "kafka/request.h"
#include "kafka/topic_name.h"
#include "wire/records.h"

#define PRODUCE_WAIT_MS_MAX 20000 /* D1-3 */
#define ZSTD_FROM_VERSION   7
#define RECORD_ERRORS_BYTES_MAX \
    ((int64_t)1 << 20) /* larger batches are refused without naming their records */

struct produce {
    struct request *request;
    struct backend_append append; /* one part for each partition of the request, in wire order */
    struct produce_res out;
};

static struct produce *produce_new(struct request *r);
static void produce_on_stored(struct op *op);
static void produce_answer(struct produce *p, bool failed);

/* Versions 0-2, whose body begins with acks. A stub stays open where no answer is expected; all else closes. */
void produce_unserved(struct request *r) {
    uint64_t acks = 0;
    bool silent = rbuf_be(&r->body, sizeof(int16_t), &acks) != ST_OK || acks == 0;
    if (request_meets_stub(r) && silent && r->version >= 0 && r->version < r->api->version_min)
        request_no_reply(r);
    else
        request_close_version(r);
}

/* What refuses the whole request, before any partition is looked at. */
static int16_t produce_refusal(const struct request *r) {
    const struct produce_req *in = produce_in(r);
    if (in->transactional_id.len > 0)
        return KERR_UNSUPPORTED_VERSION;
    bool known = in->acks >= -1 && in->acks <= 1;
    return known || request_meets_stub(r) ? KERR_NONE : KERR_INVALID_REQUIRED_ACKS;
}

static void produce_refuse(struct produce *p, int16_t code) {
    for (int32_t t = 0; t < p->out.responses_count; t++)
        for (int32_t i = 0; i < p->out.responses[t].partition_responses_count; i++)
            p->out.responses[t].partition_responses[i].error_code = code;
    produce_answer(p, true);
}

void produce_handle(struct request *r) {
    const struct produce_req *in = produce_in(r);
    struct produce *p = produce_new(r);
    if (!p)
        return;
    int16_t refusal = produce_refusal(r);
    if (refusal) {
        produce_refuse(p, refusal);
        return;
    }
    struct backend_append_part *part = p->append.parts;
    for (int32_t t = 0; t < in->topic_data_count; t++) {
        const struct produce_req_topic *topic = &in->topic_data[t];
        bool named = r->version < 13;
        bool refused = named && !topic_name_is_valid(topic->name) && !request_meets_stub(r); /* D1-5 */
        for (int32_t i = 0; i < topic->partition_data_count; i++, part++) {
            part->topic = named ? topic->name : STR_NULL;
            part->id = topic->topic_id;
            part->partition = topic->partition_data[i].index;
            part->records = topic->partition_data[i].records;
            part->status = refused ? ST_BAD_NAME : ST_OK;
        }
    }
    bool waits = in->timeout_ms > 0 && in->timeout_ms < PRODUCE_WAIT_MS_MAX;
    p->append.deadline_ms = r->arrived_ms + (waits ? in->timeout_ms : PRODUCE_WAIT_MS_MAX);
    p->append.durable = in->acks == -1;
    p->append.zstd_allowed = r->version >= ZSTD_FROM_VERSION;
    p->append.connection = request_connection(r);
    p->append.arena = &r->arena;
    op_init(&p->append.op, r->loop, produce_on_stored);

    request_waits_for(r, produce_on_stored);
    backend_append(r->kafka->settings.backend, &p->append);
}

/* What KIP-467 says of each record of a batch that was refused for it: too far ahead, or without a key. */
static struct str record_complaint(struct produce *p, const struct backend_append_part *part) {
    if (part->status == ST_BAD_TIMESTAMP)
        return STR("Timestamp is too far ahead of the server's clock");
    if (part->topic.len < 0)
        return STR("Compacted topic cannot accept message without key");
    struct str text = arena_printf(
        &p->request->arena, "Compacted topic cannot accept message without key in topic partition %.*s-%d",
        part->topic.len, part->topic.ptr, part->partition);
    return text.ptr ? text : STR_NULL;
}

static void produce_name_records(struct produce *p, const struct backend_append_part *part,
                                 struct produce_res_partition *out) {
    const struct str complaint = record_complaint(p, part);
    struct spare scratch = {0};
    struct batch batch;
    struct bytes body;
    struct records_iter it;
    struct record record;
    int64_t latest = clock_wall_ms() + BACKEND_TIMESTAMP_AHEAD_MS;
    if (batch_read(part->records, &batch) || batch_records(&batch, RECORD_ERRORS_BYTES_MAX, &scratch, &body))
        goto done;
    out->record_errors =
        arena_take_array(&p->request->arena, struct produce_res_record_error, batch.records_count);
    if (!out->record_errors)
        goto done;
    records_iter_init(&it, body, batch.records_count);
    for (int32_t i = 0; records_next(&it, &record) == ST_OK; i++)
        if (part->status == ST_NO_KEY ? record.key.len < 0 : record_timestamp(&batch, &record) > latest)
            out->record_errors[out->record_errors_count++] =
                (struct produce_res_record_error){.batch_index = i, .batch_index_error_message = complaint};

done:
    spare_release(&scratch);
}

static void produce_on_stored(struct op *op) {
    struct produce *p = container_of(op, struct produce, append.op);
    const struct backend_append_part *part = p->append.parts;
    bool failed = false;
    for (int32_t t = 0; t < p->out.responses_count; t++) {
        struct produce_res_topic *topic = &p->out.responses[t];
        for (int32_t i = 0; i < topic->partition_responses_count; i++, part++) {
            struct produce_res_partition *out = &topic->partition_responses[i];
            failed |= part->status != ST_OK;
            out->error_code = kerr_of_append(part->status);
            out->base_offset = part->status ? -1 : part->base_offset;
            out->log_append_time_ms = part->status ? -1 : part->append_ms;
            out->log_start_offset = part->start_offset;
            if (part->status && part->reason)
                out->error_message = str_of(part->reason);
            if (part->status == ST_BAD_TIMESTAMP || part->status == ST_NO_KEY)
                produce_name_records(p, part, out);
        }
    }
    produce_answer(
        p, failed && !request_meets_stub(
                         p->request)); /* bridge off: what asks for no answer stays open (D1, bridge off) */
}

static void produce_answer(struct produce *p, bool failed) {
    struct request *r = p->request;
    if (produce_in(r)->acks != 0)
        produce_reply(r, &p->out);
    else if (!failed)
        request_no_reply(r);
    else
        request_close(r, "acks 0 and a partition failed");
}

/* The state, with an answer of the same shape as the request. NULL: the request has been closed. */
static struct produce *produce_new(struct request *r) {
    const struct produce_req *in = produce_in(r);
    int32_t count = 0;
    for (int32_t t = 0; t < in->topic_data_count; t++)
        count += in->topic_data[t].partition_data_count;

    size_t bytes =
        sizeof(struct produce) + (size_t)in->topic_data_count * sizeof(struct produce_res_topic) +
        (size_t)count * (sizeof(struct produce_res_partition) + sizeof(struct backend_append_part));
    struct produce *p =
        request_take(r, 1, bytes); /* one piece: each part's size is a multiple of its alignment */
    if (!p)
        return NULL;
    p->request = r;
    p->append.parts = (struct backend_append_part *)(void *)(p + 1);
    p->append.parts_count = count;
    struct produce_res_partition *out = (struct produce_res_partition *)(void *)(p->append.parts + count);
    p->out.responses = (struct produce_res_topic *)(void *)(out + count);
    for (int32_t t = 0; t < in->topic_data_count; t++) {
        const struct produce_req_topic *topic = &in->topic_data[t];
        if (topic->partition_data_count == 0)
            continue; /* not answered, as on Kafka */
        p->out.responses[p->out.responses_count++] =
            (struct produce_res_topic){.name = topic->name,
                                       .topic_id = topic->topic_id,
                                       .partition_responses = out,
                                       .partition_responses_count = topic->partition_data_count};
        for (int32_t i = 0; i < topic->partition_data_count; i++, out++)
            *out = (struct produce_res_partition){.index = topic->partition_data[i].index,
                                                  .base_offset = -1,
                                                  .log_append_time_ms = -1,
                                                  .log_start_offset = -1,
                                                  .error_message = STR_NULL};
    }
    return p;
}
