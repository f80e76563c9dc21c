/*
 * ListOffsets, v1-v11: the first offset, the end, or the first record of a time.
 *
 *   list_offsets_handle -> backend_offsets -> list_offsets_on_found -> answer
 *
 * - timestamp -1: the end; -2: the start; -3 (v7, KIP-734): the first record with the greatest time; -4 (v8): the start, as there is
 *   no tiered storage; -5 (v9), -6 (v11): nothing, for the same reason. Below those versions, and other negative ones: 35 (D3-2).
 * - A partition that stands twice in a request is answered once, with 42 (K4-2); a topic that does once.
 * - An isolation level that doesn't exist spoils the whole request, as on Kafka; committed is all (D15-1).
 */
#include "kafka/epoch.h"
#include "kafka/errors.h"
#include "kafka/names.h"
#include "kafka/request.h"

#define LIST_OFFSETS_WAIT_MS 20000 /* D3-5 */
#define ISOLATION_COMMITTED  1

enum asked_timestamp {
    ASKED_LATEST = -1,
    ASKED_EARLIEST = -2,
    ASKED_MAX_TIME = -3,
    ASKED_EARLIEST_LOCAL = -4,
    ASKED_LATEST_TIERED = -5,
    ASKED_EARLIEST_PENDING = -6,
};

struct list_offsets {
    struct request *request;
    struct backend_offsets offsets; /* a part for each partition of the request, in wire order */
    struct name_place *topics;      /* by topic of the request */
    struct name_place *partitions;  /* by part */
};

static void list_offsets_on_found(struct op *op);

static struct list_offsets_res_partition nothing_found(int32_t index, int16_t code) {
    return (struct list_offsets_res_partition){
        .partition_index = index, .error_code = code, .timestamp = -1, .offset = -1, .leader_epoch = -1};
}

/* Every partition as it was asked, with the same error. */
static void list_offsets_refuse(struct request *r, int16_t code) {
    const struct list_offsets_req *in = list_offsets_in(r);
    struct list_offsets_res out = {.topics =
                                       request_array(r, struct list_offsets_res_topic, in->topics_count),
                                   .topics_count = in->topics_count};
    if (!out.topics)
        return;
    for (int32_t t = 0; t < in->topics_count; t++) {
        const struct list_offsets_req_topic *topic = &in->topics[t];
        struct list_offsets_res_partition *to =
            request_array(r, struct list_offsets_res_partition, topic->partitions_count);
        if (!to)
            return;
        for (int32_t i = 0; i < topic->partitions_count; i++)
            to[i] = nothing_found(topic->partitions[i].partition_index, code);
        out.topics[t] = (struct list_offsets_res_topic){topic->name, to, topic->partitions_count};
    }
    list_offsets_reply(r, &out);
}

/* The version from which a negative timestamp has a meaning; 0: never. */
static int16_t timestamp_from_version(int64_t timestamp) {
    static const int16_t from[] = {
        [-ASKED_LATEST] = 1,         [-ASKED_EARLIEST] = 1,      [-ASKED_MAX_TIME] = 7,
        [-ASKED_EARLIEST_LOCAL] = 8, [-ASKED_LATEST_TIERED] = 9, [-ASKED_EARLIEST_PENDING] = 11,
    };
    return timestamp >= -(int64_t)COUNT_OF(from) + 1 ? from[-timestamp] : 0;
}

static bool timestamp_is_known(int16_t version, int64_t timestamp) {
    if (timestamp >= 0)
        return true;
    int16_t from = timestamp_from_version(timestamp);
    return from > 0 && version >= from;
}

static enum backend_offset_kind kind_of(int64_t timestamp) {
    if (timestamp >= 0)
        return OFFSET_BY_TIME;
    if (timestamp == ASKED_MAX_TIME)
        return OFFSET_MAX_TIME;
    return timestamp == ASKED_LATEST ? OFFSET_LATEST : OFFSET_EARLIEST;
}

static bool finds_nothing(int64_t timestamp) {
    return timestamp == ASKED_LATEST_TIERED || timestamp == ASKED_EARLIEST_PENDING;
}

/* Parts, and which of them stand there twice. False: the request has been closed. */
static bool list_offsets_ask(struct list_offsets *l, int32_t count) {
    struct request *r = l->request;
    const struct list_offsets_req *in = list_offsets_in(r);
    struct name_key *names = request_array(r, struct name_key, in->topics_count);
    struct name_key *keys = names ? request_array(r, struct name_key, count) : NULL;
    l->offsets.parts = keys ? request_array(r, struct backend_offset_part, count) : NULL;
    if (!l->offsets.parts)
        return false;
    l->offsets.parts_count = count;
    int32_t at = 0;
    for (int32_t t = 0; t < in->topics_count; t++) {
        const struct list_offsets_req_topic *topic = &in->topics[t];
        names[t].name = topic->name;
        for (int32_t i = 0; i < topic->partitions_count; i++, at++) {
            const struct list_offsets_req_partition *asked = &topic->partitions[i];
            keys[at] = (struct name_key){topic->name, asked->partition_index};
            l->offsets.parts[at] = (struct backend_offset_part){
                .topic = topic->name,
                .partition = asked->partition_index,
                .kind = kind_of(asked->timestamp),
                .timestamp_ms = asked->timestamp,
                .status = timestamp_is_known(r->version, asked->timestamp) ? ST_OK : ST_UNSUPPORTED};
        }
    }
    l->topics = names_place(r, names, in->topics_count);
    l->partitions = l->topics ? names_place(r, keys, count) : NULL;
    return l->partitions != NULL;
}

void list_offsets_handle(struct request *r) {
    const struct list_offsets_req *in = list_offsets_in(r);
    if (in->isolation_level < 0 || in->isolation_level > ISOLATION_COMMITTED) {
        list_offsets_refuse(r, KERR_UNKNOWN_SERVER_ERROR);
        return;
    }
    int32_t count = 0;
    for (int32_t t = 0; t < in->topics_count; t++)
        count += in->topics[t].partitions_count;
    struct list_offsets *l = request_array(r, struct list_offsets, 1);
    if (!l)
        return;
    l->request = r;
    if (!list_offsets_ask(l, count))
        return;
    for (int32_t i = 0; i < count; i++)
        if (l->partitions[i].repeated)
            l->offsets.parts[i].status = ST_INVALID;
    l->offsets.deadline_ms = r->arrived_ms + LIST_OFFSETS_WAIT_MS;
    op_init(&l->offsets.op, r->loop, list_offsets_on_found);

    request_waits_for(r, list_offsets_on_found);
    backend_offsets(r->kafka->settings.backend, &l->offsets);
}

/* ---- the answer ---- */

static struct list_offsets_res_partition partition_found(const struct list_offsets_req_partition *asked,
                                                         const struct backend_offset_part *part) {
    int16_t code = part->status == ST_TIMED_OUT ? KERR_REQUEST_TIMED_OUT : kerr_of_read(part->status);
    if (part->status == ST_OK)
        code = leader_epoch_error(asked->current_leader_epoch);
    if (code != KERR_NONE || part->offset < 0 || finds_nothing(asked->timestamp))
        return nothing_found(asked->partition_index, code);
    return (struct list_offsets_res_partition){.partition_index = asked->partition_index,
                                               .timestamp = part->timestamp_ms,
                                               .offset = part->offset,
                                               .leader_epoch = KAFKA_LEADER_EPOCH};
}

/* Room for the answer of each topic, at the index where it first stands in the request. */
static struct list_offsets_res_topic *topics_make(struct list_offsets *l) {
    struct request *r = l->request;
    const struct list_offsets_req *in = list_offsets_in(r);
    struct list_offsets_res_topic *topics = request_array(r, struct list_offsets_res_topic, in->topics_count);
    if (!topics)
        return NULL;
    for (int32_t t = 0; t < in->topics_count; t++)
        topics[l->topics[t].first].partitions_count += in->topics[t].partitions_count;
    for (int32_t t = 0; t < in->topics_count; t++) {
        topics[t].name = in->topics[t].name;
        topics[t].partitions =
            request_array(r, struct list_offsets_res_partition, topics[t].partitions_count);
        if (!topics[t].partitions)
            return NULL;
        topics[t].partitions_count = 0;
    }
    return topics;
}

static void list_offsets_on_found(struct op *op) {
    struct list_offsets *l = container_of(op, struct list_offsets, offsets.op);
    struct request *r = l->request;
    const struct list_offsets_req *in = list_offsets_in(r);
    struct list_offsets_res_topic *topics = topics_make(l);
    if (!topics)
        return;
    int32_t at = 0;
    for (int32_t t = 0; t < in->topics_count; t++) {
        struct list_offsets_res_topic *to = &topics[l->topics[t].first];
        for (int32_t i = 0; i < in->topics[t].partitions_count; i++, at++)
            if (l->partitions[at].first == at)
                to->partitions[to->partitions_count++] =
                    partition_found(&in->topics[t].partitions[i], &l->offsets.parts[at]);
    }
    struct list_offsets_res out = {.topics = topics};
    for (int32_t t = 0; t < in->topics_count; t++)
        if (topics[t].partitions_count > 0)
            topics[out.topics_count++] = topics[t];
    list_offsets_reply(r, &out);
}
