/*
 * DeleteRecords, v0-v2: logs start later (KIP-107). Kafka Streams does it to its repartition topics all the time.
 *
 *   delete_records_handle -> backend_trim -> delete_records_on_trimmed -> answer
 *
 * - Each partition has its own outcome. A topic or a partition that stands twice is answered once, and its later offset counts (D16-2).
 * - Not served where the backend can't do it (api.c): Iggy's protocol has nothing like it.
 */
#include "kafka/admin.h"
#include "kafka/errors.h"
#include "kafka/names.h"
#include "kafka/topic_name.h"

struct delete_records {
    struct request *request;
    struct backend_trim trim; /* a part for each partition of the answer, in its order */
    struct delete_records_res out;
};

static bool delete_records_shape(struct delete_records *d);
static bool delete_records_parts(struct delete_records *d);
static void delete_records_on_trimmed(struct op *op);

void delete_records_handle(struct request *r) {
    struct delete_records *d = request_array(r, struct delete_records, 1);
    if (!d)
        return;
    d->request = r;
    if (!delete_records_shape(d) || !delete_records_parts(d))
        return;
    d->trim.deadline_ms = admin_deadline_ms(r, delete_records_in(r)->timeout_ms);
    op_init(&d->trim.op, r->loop, delete_records_on_trimmed);
    request_waits_for(r, delete_records_on_trimmed);
    backend_trim(r->kafka->settings.backend, &d->trim);
}

/* ---- the answer, with the offsets asked for where the low watermarks will be ---- */

static int32_t partitions_count(const struct delete_records_req *in) {
    int32_t count = 0;
    for (int32_t t = 0; t < in->topics_count; t++)
        count += in->topics[t].partitions_count;
    return count;
}

/* Which topics of the request have the same name. NULL: the request has been closed. */
static const struct name_place *topics_place(struct request *r) {
    const struct delete_records_req *in = delete_records_in(r);
    struct name_key *keys = request_array(r, struct name_key, in->topics_count);
    if (!keys)
        return NULL;
    for (int32_t t = 0; t < in->topics_count; t++)
        keys[t].name = in->topics[t].name;
    return names_place(r, keys, in->topics_count);
}

/* Which partitions of the request, counted through, are the same. NULL: the request has been closed. */
static const struct name_place *partitions_place(struct request *r) {
    const struct delete_records_req *in = delete_records_in(r);
    int32_t count = partitions_count(in), i = 0;
    struct name_key *keys = request_array(r, struct name_key, count);
    if (!keys)
        return NULL;
    for (int32_t t = 0; t < in->topics_count; t++)
        for (int32_t k = 0; k < in->topics[t].partitions_count; k++)
            keys[i++] = (struct name_key){in->topics[t].name, in->topics[t].partitions[k].partition_index};
    return names_place(r, keys, count);
}

/* Room for each topic at the index where it first stands in the request; the others stay empty. False: the request has been closed. */
static bool topics_make(struct delete_records *d, const struct name_place *places) {
    const struct delete_records_req *in = delete_records_in(d->request);
    struct delete_records_res_topic *topics = d->out.topics =
        request_array(d->request, struct delete_records_res_topic, in->topics_count);
    if (!topics)
        return false;
    for (int32_t t = 0; t < in->topics_count; t++)
        topics[places[t].first].partitions_count += in->topics[t].partitions_count;
    for (int32_t t = 0; t < in->topics_count; t++) {
        topics[t].name = in->topics[t].name;
        topics[t].partitions =
            request_array(d->request, struct delete_records_res_partition, topics[t].partitions_count);
        if (!topics[t].partitions)
            return false;
        topics[t].partitions_count = 0;
    }
    return true;
}

static void topics_without_partitions_leave(struct delete_records *d, int32_t topics_count) {
    for (int32_t t = 0; t < topics_count; t++)
        if (d->out.topics[t].partitions_count > 0)
            d->out.topics[d->out.topics_count++] = d->out.topics[t];
}

/* False: the request has been closed. */
static bool delete_records_shape(struct delete_records *d) {
    struct request *r = d->request;
    const struct delete_records_req *in = delete_records_in(r);
    const struct name_place *topics = topics_place(r), *partitions = topics ? partitions_place(r) : NULL;
    if (!partitions || !topics_make(d, topics))
        return false;
    struct delete_records_res_partition **made =
        request_array(r, struct delete_records_res_partition *, partitions_count(in));
    if (!made)
        return false;
    for (int32_t t = 0, i = 0; t < in->topics_count; t++) {
        struct delete_records_res_topic *to = &d->out.topics[topics[t].first];
        for (int32_t k = 0; k < in->topics[t].partitions_count; k++, i++) {
            int32_t first = partitions[i].first;
            if (first == i)
                made[i] = &to->partitions[to->partitions_count++];
            made[first]->partition_index = in->topics[t].partitions[k].partition_index;
            made[first]->low_watermark = in->topics[t].partitions[k].offset;
        }
    }
    topics_without_partitions_leave(d, in->topics_count);
    return true;
}

/* ---- what is done, and what came of it ---- */

/* False: the request has been closed. */
static bool delete_records_parts(struct delete_records *d) {
    int32_t count = 0;
    for (int32_t t = 0; t < d->out.topics_count; t++)
        count += d->out.topics[t].partitions_count;
    struct backend_trim_part *part = d->trim.parts =
        request_array(d->request, struct backend_trim_part, count);
    if (!part)
        return false;
    d->trim.parts_count = count;
    for (int32_t t = 0; t < d->out.topics_count; t++) {
        const struct delete_records_res_topic *topic = &d->out.topics[t];
        enum status st = topic_name_is_valid(topic->name) ? ST_OK : ST_NOT_FOUND;
        for (int32_t k = 0; k < topic->partitions_count; k++)
            *part++ = (struct backend_trim_part){.topic = topic->name,
                                                 .partition = topic->partitions[k].partition_index,
                                                 .offset = topic->partitions[k].low_watermark,
                                                 .status = st};
    }
    return true;
}

static void delete_records_on_trimmed(struct op *op) {
    struct delete_records *d = container_of(op, struct delete_records, trim.op);
    const struct backend_trim_part *part = d->trim.parts;
    for (int32_t t = 0; t < d->out.topics_count; t++)
        for (int32_t k = 0; k < d->out.topics[t].partitions_count; k++, part++) {
            d->out.topics[t].partitions[k].error_code = kerr_of_append(part->status);
            d->out.topics[t].partitions[k].low_watermark = part->status ? -1 : part->start_offset;
        }
    delete_records_reply(d->request, &d->out);
}
