/*
 * Metadata, v0-v13: this server, and the topics asked for.
 *
 *   metadata_handle -> backend_topics (looks up, lists, creates) -> metadata_on_topics -> answer
 *
 * - One broker, which leads every partition (D4-1).
 * - v0 empty, v1+ null: all topics; v1+ empty: none (D4-2). A topic asked twice is answered once (D4-4).
 * - With auto-creation on, what is asked for and missing is made before the answer, where the request allows it (D4-5).
 * - v10 has topic ids in the answer, v12 in the request (KIP-516). v10, v11: an id or no name is an invalid request.
 * - v13 has an error for the whole answer (KIP-1102).
 */
#include "kafka/admin.h"
#include "kafka/errors.h"
#include "kafka/names.h"
#include "kafka/request.h"
#include "kafka/topic_name.h"

#define METADATA_WAIT_MS 20000 /* D4-3 */
#define ASK_BY_ID_FROM   12

struct metadata {
    struct request *request;
    struct backend_topics topics;
    struct metadata_res out;
    struct metadata_res_broker broker;
    struct name_place *places; /* of parts */
    struct int32s this_node;   /* replicas and isr of every partition */
};

static void metadata_on_topics(struct op *op);

/* v10, v11: names only; from v12 one of both (K5-2). */
static bool topics_are_askable(const struct request *r) {
    const struct metadata_req *in = metadata_in(r);
    for (int32_t i = 0; i < in->topics_count; i++) {
        bool by_id = !uuid_is_zero(&in->topics[i].topic_id);
        if (r->version < ASK_BY_ID_FROM ? by_id || in->topics[i].name.len < 0
                                        : !by_id && in->topics[i].name.len < 0)
            return false;
    }
    return true;
}

/* An answer without a cluster: every topic asked for with the same error. */
static void metadata_refuse(struct request *r, int16_t code) {
    const struct metadata_req *in = metadata_in(r);
    struct metadata_res out = {.cluster_id = STR_NULL,
                               .controller_id = -1,
                               .cluster_authorized_operations = OPERATIONS_NOT_ASKED,
                               .error_code = code};
    out.topics = request_array(r, struct metadata_res_topic, in->topics_count);
    if (!out.topics)
        return;
    for (int32_t i = 0; i < in->topics_count; i++) {
        out.topics[i] =
            (struct metadata_res_topic){.error_code = code,
                                        .name = in->topics[i].name.len < 0 ? STR("") : in->topics[i].name,
                                        .topic_id = in->topics[i].topic_id,
                                        .topic_authorized_operations = OPERATIONS_NOT_ASKED};
    }
    out.topics_count = in->topics_count;
    metadata_reply(r, &out);
}

/* What is asked for: ids when there are any, else names (Kafka answers only the ids of a mixed request). */
static void metadata_ask(struct metadata *m) {
    const struct metadata_req *in = metadata_in(m->request);
    struct backend_topics *ask = &m->topics;
    bool by_id = false;
    for (int32_t i = 0; i < in->topics_count; i++)
        by_id |= !uuid_is_zero(&in->topics[i].topic_id);
    for (int32_t i = 0; i < in->topics_count; i++) {
        if (by_id && uuid_is_zero(&in->topics[i].topic_id))
            continue;
        struct backend_topics_part *part = &ask->parts[ask->parts_count++];
        part->name = by_id ? STR_NULL : in->topics[i].name;
        part->id = in->topics[i].topic_id;
        bool refused =
            !by_id && !topic_name_is_valid(part->name) && !request_meets_stub(m->request); /* D4-8 */
        part->status = refused ? ST_BAD_NAME : ST_OK;
    }
}

void metadata_handle(struct request *r) {
    const struct metadata_req *in = metadata_in(r);
    if (!topics_are_askable(r)) {
        metadata_refuse(r, r->version < ASK_BY_ID_FROM ? KERR_INVALID_REQUEST : KERR_UNKNOWN_SERVER_ERROR);
        return;
    }
    struct metadata *m = request_array(r, struct metadata, 1);
    if (!m)
        return;
    m->request = r;
    m->topics.parts =
        request_array(r, struct backend_topics_part, in->topics_count > 0 ? in->topics_count : 0);
    if (!m->topics.parts)
        return;
    admin_allow_listing(r);
    m->topics.arena = &r->arena;
    m->topics.all = in->topics_count < 0 || (r->version == 0 && in->topics_count == 0);
    m->topics.create = r->kafka->settings.auto_create_topics && in->allow_auto_topic_creation;
    m->topics.partitions_default = r->kafka->settings.partitions_default;
    m->topics.deadline_ms = r->arrived_ms + METADATA_WAIT_MS;
    metadata_ask(m);
    op_init(&m->topics.op, r->loop, metadata_on_topics);

    request_waits_for(r, metadata_on_topics);
    backend_topics(r->kafka->settings.backend, &m->topics);
}

/* ---- the answer ---- */

/* False: the request has been closed. */
static bool topic_fill(struct metadata *m, const struct backend_topic *topic,
                       struct metadata_res_topic *out) {
    out->name = topic->name;
    out->topic_id = topic->id;
    out->is_internal = topic_name_is_internal(topic->name);
    out->partitions = request_array(m->request, struct metadata_res_partition, topic->partitions_count);
    if (!out->partitions)
        return false;
    out->partitions_count = topic->partitions_count;
    for (int32_t i = 0; i < topic->partitions_count; i++)
        out->partitions[i] = (struct metadata_res_partition){.partition_index = i,
                                                             .leader_id = m->request->kafka->node_id,
                                                             .leader_epoch = KAFKA_LEADER_EPOCH,
                                                             .replica_nodes = m->this_node,
                                                             .isr_nodes = m->this_node};
    return true;
}

/* What was asked before isn't answered again (D4-4). False: the request has been closed. */
static bool parts_place(struct metadata *m) {
    int32_t count = m->topics.parts_count;
    struct name_key *keys = request_array(m->request, struct name_key, count);
    if (!keys)
        return false;
    for (int32_t i = 0; i < count; i++) {
        const struct backend_topics_part *part = &m->topics.parts[i];
        keys[i].name = part->name.len < 0 ? name_of_id(&part->id) : part->name;
    }
    m->places = names_place(m->request, keys, count);
    return m->places != NULL;
}

/* K5-1: in this order, and within it as asked. */
static int part_rank(const struct backend_topics_part *part) {
    return part->status == ST_UNKNOWN_ID ? 0
           : part->status == ST_OK       ? 1
           : part->status == ST_BAD_NAME ? 2
                                         : 3;
}

static bool parts_fill_rank(struct metadata *m, int rank, int32_t operations) {
    for (int32_t i = 0; i < m->topics.parts_count; i++) {
        const struct backend_topics_part *part = &m->topics.parts[i];
        if (m->places[i].first != i || part_rank(part) != rank)
            continue;
        struct metadata_res_topic *out = &m->out.topics[m->out.topics_count++];
        *out = (struct metadata_res_topic){.error_code = kerr_of(part->status),
                                           .name = part->name,
                                           .topic_id = part->id,
                                           .topic_authorized_operations = operations};
        if (!part->status && !topic_fill(m, &part->topic, out))
            return false;
    }
    return true;
}

static bool parts_fill(struct metadata *m, int32_t operations) {
    bool fine = true;
    for (int rank = 0; fine && rank <= 3; rank++)
        fine = parts_fill_rank(m, rank, operations);
    return fine;
}

static bool list_fill(struct metadata *m, int32_t operations) {
    for (int32_t i = 0; i < m->topics.topics_count; i++) {
        struct metadata_res_topic *out = &m->out.topics[m->out.topics_count++];
        *out = (struct metadata_res_topic){.topic_authorized_operations = operations};
        if (!topic_fill(m, &m->topics.topics[i], out))
            return false;
    }
    return true;
}

/* The one broker there is, as everything else about this server. */
static bool metadata_fill_server(struct metadata *m) {
    struct request *r = m->request;
    const struct kafka *k = r->kafka;
    m->this_node = (struct int32s){request_array(r, int32_t, 1), 1};
    if (!m->this_node.items)
        return false;
    m->this_node.items[0] = k->node_id;
    m->broker = (struct metadata_res_broker){
        .node_id = k->node_id, .host = k->advertised_host, .port = k->advertised_port, .rack = STR_NULL};
    m->out.brokers = &m->broker;
    m->out.brokers_count = 1;
    m->out.cluster_id = k->cluster_id;
    m->out.controller_id = k->node_id;
    m->out.cluster_authorized_operations =
        metadata_in(r)->include_cluster_authorized_operations ? OPERATIONS_OF_CLUSTER : OPERATIONS_NOT_ASKED;
    return true;
}

static void metadata_on_topics(struct op *op) {
    struct metadata *m = container_of(op, struct metadata, topics.op);
    struct request *r = m->request;
    if (m->topics.all && m->topics.status) {
        request_close(r, status_text(m->topics.status)); /* D4-7: there is no honest list */
        return;
    }
    int32_t operations =
        metadata_in(r)->include_topic_authorized_operations ? OPERATIONS_OF_TOPIC : OPERATIONS_NOT_ASKED;
    m->out.topics =
        request_array(r, struct metadata_res_topic, m->topics.parts_count + m->topics.topics_count);
    if (!m->out.topics || !metadata_fill_server(m) || !parts_place(m))
        return;
    if (!parts_fill(m, operations) || !list_fill(m, operations))
        return;
    metadata_reply(r, &m->out);
}
