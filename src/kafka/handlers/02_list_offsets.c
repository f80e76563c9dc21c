/*
 * ListOffsets, v1-v11: the first offset, the end, or the first record of a time.
 *
 *   list_offsets_handle -> list_offsets_ask -> backend_offsets -> list_offsets_on_found -> all are there: answer
 *                                ^                                    |
 *                                +------------------------------------+ more are left to ask for
 *
 * - timestamp -1: the end; -2: the start; -3 (v7, KIP-734): the first record with the greatest time; -4 (v8):
 *   the start, as there is no tiered storage; -5 (v9), -6 (v11): nothing, for the same reason. Below those
 *   versions, and other negative ones: 35 (D3-2).
 * - A partition that stands twice in a request is answered once, with 42 (K4-2); a topic that does once.
 * - An isolation level that doesn't exist spoils the whole request, as on Kafka; committed is all (D15-1).
 * - Tens of thousands of partitions are usual where one consumer reads all there is. So that they fit into the
 *   request's memory (B-41), what was asked waits in the answer's own fields until it is answered, some
 *   thousands at a time.
 */
#include <stdlib.h>

#include "kafka/epoch.h"
#include "kafka/errors.h"
#include "kafka/names.h"
#include "kafka/request.h"

#define LIST_OFFSETS_WAIT_MS 20000 /* D3-5 */
#define ISOLATION_COMMITTED  1
#define ASKED_AT_ONCE        4096

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
    struct backend_offsets offsets;
    struct list_offsets_res out;
    struct list_offsets_cursor {
        int32_t topic, partition; /* of out */
    } asked, answered;            /* the first that isn't */
};

static struct list_offsets *list_offsets_new(struct request *r);
static void list_offsets_ask(struct list_offsets *l);
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

void list_offsets_handle(struct request *r) {
    int8_t isolation = list_offsets_in(r)->isolation_level;
    if (isolation < 0 || isolation > ISOLATION_COMMITTED) {
        list_offsets_refuse(r, KERR_UNKNOWN_SERVER_ERROR);
        return;
    }
    struct list_offsets *l = list_offsets_new(r);
    if (l)
        list_offsets_ask(l);
}

/* ---- what is asked, in the place of what is answered ---- */

static int compare_partitions(const void *a, const void *b) {
    int32_t x = ((const struct list_offsets_res_partition *)a)->partition_index;
    int32_t y = ((const struct list_offsets_res_partition *)b)->partition_index;
    return (x > y) - (x < y);
}

/* Each partition once, in order. Those that were there twice, or ask for what the version doesn't know, have their error. */
static void topic_settle(struct list_offsets_res_topic *topic, int16_t version) {
    struct list_offsets_res_partition *partitions = topic->partitions;
    int32_t count = 0;
    qsort(partitions, (size_t)topic->partitions_count, sizeof *partitions, compare_partitions);
    for (int32_t i = 0; i < topic->partitions_count; i++) {
        if (count > 0 && partitions[i].partition_index == partitions[count - 1].partition_index) {
            partitions[count - 1].error_code = KERR_INVALID_REQUEST;
            continue;
        }
        partitions[count] = partitions[i];
        if (!timestamp_is_known(version, partitions[i].timestamp))
            partitions[count].error_code = KERR_UNSUPPORTED_VERSION;
        count++;
    }
    topic->partitions_count = count;
}

/* Room for each topic at the index where it first stands in the request; the others stay empty. */
static struct list_offsets_res_topic *topics_make(struct request *r, const struct name_place *places) {
    const struct list_offsets_req *in = list_offsets_in(r);
    struct list_offsets_res_topic *topics = request_array(r, struct list_offsets_res_topic, in->topics_count);
    if (!topics)
        return NULL;
    for (int32_t t = 0; t < in->topics_count; t++)
        topics[places[t].first].partitions_count += in->topics[t].partitions_count;
    for (int32_t t = 0; t < in->topics_count; t++) {
        topics[t].name = in->topics[t].name;
        topics[t].partitions =
            request_array(r, struct list_offsets_res_partition, topics[t].partitions_count);
        if (!topics[t].partitions)
            return NULL;
        topics[t].partitions_count = 0;
    }
    for (int32_t t = 0; t < in->topics_count; t++) {
        struct list_offsets_res_topic *to = &topics[places[t].first];
        for (int32_t i = 0; i < in->topics[t].partitions_count; i++) {
            const struct list_offsets_req_partition *asked = &in->topics[t].partitions[i];
            to->partitions[to->partitions_count++] =
                (struct list_offsets_res_partition){.partition_index = asked->partition_index,
                                                    .timestamp = asked->timestamp,
                                                    .leader_epoch = asked->current_leader_epoch};
        }
    }
    return topics;
}

/* NULL: the request has been closed. */
static struct list_offsets *list_offsets_new(struct request *r) {
    const struct list_offsets_req *in = list_offsets_in(r);
    struct list_offsets *l = request_array(r, struct list_offsets, 1);
    struct name_key *keys = l ? request_array(r, struct name_key, in->topics_count) : NULL;
    if (!keys)
        return NULL;
    for (int32_t t = 0; t < in->topics_count; t++)
        keys[t].name = in->topics[t].name;
    const struct name_place *places = names_place(r, keys, in->topics_count);
    l->out.topics = places ? topics_make(r, places) : NULL;
    if (!l->out.topics)
        return NULL;
    int64_t partitions = 0;
    for (int32_t t = 0; t < in->topics_count; t++) {
        if (l->out.topics[t].partitions_count == 0)
            continue;
        topic_settle(&l->out.topics[t], r->version);
        partitions += l->out.topics[t].partitions_count;
        l->out.topics[l->out.topics_count++] = l->out.topics[t];
    }
    l->request = r;
    l->offsets.parts =
        request_array(r, struct backend_offset_part, partitions < ASKED_AT_ONCE ? partitions : ASKED_AT_ONCE);
    l->offsets.deadline_ms = r->arrived_ms + LIST_OFFSETS_WAIT_MS;
    return l->offsets.parts ? l : NULL;
}

/* ---- the rounds ---- */

/* The next partition from the cursor on that has no error yet, and its topic's name; NULL: there is none. */
static struct list_offsets_res_partition *next_open(const struct list_offsets *l,
                                                    struct list_offsets_cursor *at, struct str *topic_name) {
    for (; at->topic < l->out.topics_count; at->topic++, at->partition = 0) {
        const struct list_offsets_res_topic *topic = &l->out.topics[at->topic];
        while (at->partition < topic->partitions_count) {
            struct list_offsets_res_partition *partition = &topic->partitions[at->partition++];
            *topic_name = topic->name;
            if (partition->error_code == KERR_NONE)
                return partition;
            *partition = nothing_found(partition->partition_index, partition->error_code);
        }
    }
    return NULL;
}

static void list_offsets_ask(struct list_offsets *l) {
    struct list_offsets_res_partition *partition = NULL;
    struct str topic;
    l->answered = l->asked;
    l->offsets.parts_count = 0;
    while (l->offsets.parts_count < ASKED_AT_ONCE && (partition = next_open(l, &l->asked, &topic)) != NULL)
        l->offsets.parts[l->offsets.parts_count++] =
            (struct backend_offset_part){.topic = topic,
                                         .partition = partition->partition_index,
                                         .kind = kind_of(partition->timestamp),
                                         .timestamp_ms = partition->timestamp};
    if (l->offsets.parts_count == 0) {
        list_offsets_reply(l->request, &l->out);
        return;
    }
    op_init(&l->offsets.op, l->request->loop, list_offsets_on_found);
    request_waits_for(l->request, list_offsets_on_found);
    backend_offsets(l->request->kafka->settings.backend, &l->offsets);
}

static struct list_offsets_res_partition partition_found(const struct list_offsets_res_partition *asked,
                                                         const struct backend_offset_part *part) {
    int16_t code = part->status == ST_TIMED_OUT ? KERR_REQUEST_TIMED_OUT : kerr_of_read(part->status);
    if (part->status == ST_OK)
        code = leader_epoch_error(asked->leader_epoch);
    if (code != KERR_NONE || part->offset < 0 || finds_nothing(asked->timestamp))
        return nothing_found(asked->partition_index, code);
    return (struct list_offsets_res_partition){.partition_index = asked->partition_index,
                                               .timestamp = part->timestamp_ms,
                                               .offset = part->offset,
                                               .leader_epoch = KAFKA_LEADER_EPOCH};
}

static void list_offsets_on_found(struct op *op) {
    struct list_offsets *l = container_of(op, struct list_offsets, offsets.op);
    struct str topic;
    for (int32_t i = 0; i < l->offsets.parts_count; i++) {
        struct list_offsets_res_partition *partition = next_open(l, &l->answered, &topic);
        *partition = partition_found(partition, &l->offsets.parts[i]);
    }
    list_offsets_ask(l);
}
