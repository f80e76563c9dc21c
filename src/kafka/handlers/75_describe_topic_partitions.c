/*
 * DescribeTopicPartitions, v0: topics and their partitions in name order, in pages (KIP-966).
 *
 *   describe_topic_partitions_handle -> backend_topics -> describe_topic_partitions_on_topics -> answer
 *
 * - A page holds as many partitions as the request wants, 1 to 2000 over all topics; the cursor says where the
 *   next one begins.
 * - Topics before the cursor's are left out, a name asked twice is answered once, an empty list asks for all.
 * - A cursor that names no topic of the list, or a negative partition, is an invalid request: 42 on every
 *   topic, as asked.
 */
#include <stdlib.h>

#include "kafka/admin.h"
#include "kafka/errors.h"
#include "kafka/topic_name.h"

#define DESCRIBE_WAIT_MS    20000
#define PAGE_PARTITIONS_MAX 2000 /* as Kafka's default */

struct describe_topic_partitions {
    struct request *request;
    struct backend_topics topics; /* in name order, from the cursor's on */
    struct describe_topic_partitions_res out;
    struct describe_topic_partitions_res_cursor next;
    int32_t this_node;
    int32_t room; /* partitions that still fit in the page */
};

static void describe_topic_partitions_on_topics(struct op *op);

static void describe_refuse(struct request *r, int16_t code) {
    const struct describe_topic_partitions_req *in = describe_topic_partitions_in(r);
    struct describe_topic_partitions_res out = {
        .topics = request_array(r, struct describe_topic_partitions_res_topic, in->topics_count),
        .topics_count = in->topics_count};
    if (!out.topics)
        return;
    for (int32_t i = 0; i < in->topics_count; i++)
        out.topics[i] =
            (struct describe_topic_partitions_res_topic){.error_code = code,
                                                         .name = in->topics[i].name,
                                                         .topic_authorized_operations = OPERATIONS_NOT_ASKED};
    describe_topic_partitions_reply(r, &out);
}

static bool cursor_is_asked(const struct describe_topic_partitions_req *in) {
    if (in->cursor->partition_index < 0)
        return false;
    for (int32_t i = 0; i < in->topics_count; i++)
        if (str_equal(in->topics[i].name, in->cursor->topic_name))
            return true;
    return false;
}

static int compare_names(const void *a, const void *b) {
    return str_compare(((const struct backend_topics_part *)a)->name,
                       ((const struct backend_topics_part *)b)->name);
}

/* The names asked for, sorted, once each, from the cursor's on. False: the request has been closed. */
static bool describe_ask(struct describe_topic_partitions *d) {
    const struct describe_topic_partitions_req *in = describe_topic_partitions_in(d->request);
    struct backend_topics_part *parts =
        request_array(d->request, struct backend_topics_part, in->topics_count);
    if (!parts)
        return false;
    for (int32_t i = 0; i < in->topics_count; i++)
        parts[i].name = in->topics[i].name;
    qsort(parts, (size_t)in->topics_count, sizeof *parts, compare_names);
    int32_t count = 0;
    for (int32_t i = 0; i < in->topics_count; i++) {
        struct str name = parts[i].name;
        if ((in->cursor && str_compare(name, in->cursor->topic_name) < 0) ||
            (count > 0 && str_equal(name, parts[count - 1].name)))
            continue;
        parts[count++] = (struct backend_topics_part){
            .name = name, .status = topic_name_is_valid(name) ? ST_OK : ST_BAD_NAME};
    }
    d->topics.parts = parts;
    d->topics.parts_count = count;
    return true;
}

void describe_topic_partitions_handle(struct request *r) {
    const struct describe_topic_partitions_req *in = describe_topic_partitions_in(r);
    if (in->cursor && in->topics_count > 0 && !cursor_is_asked(in)) {
        describe_refuse(r, KERR_INVALID_REQUEST);
        return;
    }
    struct describe_topic_partitions *d = request_array(r, struct describe_topic_partitions, 1);
    if (!d)
        return;
    d->request = r;
    d->this_node = r->kafka->node_id;
    d->room = in->response_partition_limit < 1 ? 1 : in->response_partition_limit;
    if (d->room > PAGE_PARTITIONS_MAX)
        d->room = PAGE_PARTITIONS_MAX;
    d->topics.arena = &r->arena;
    d->topics.all = in->topics_count == 0;
    d->topics.deadline_ms = r->arrived_ms + DESCRIBE_WAIT_MS;
    if (d->topics.all)
        admin_allow_listing(r);
    if (!describe_ask(d))
        return;
    op_init(&d->topics.op, r->loop, describe_topic_partitions_on_topics);

    request_waits_for(r, describe_topic_partitions_on_topics);
    backend_topics(r->kafka->settings.backend, &d->topics);
}

/* ---- the answer ---- */

static int32_t first_partition(const struct describe_topic_partitions *d, struct str topic) {
    const struct describe_topic_partitions_req *in = describe_topic_partitions_in(d->request);
    return in->cursor && str_equal(in->cursor->topic_name, topic) ? in->cursor->partition_index : 0;
}

static struct describe_topic_partitions_res_topic *topic_add(struct describe_topic_partitions *d,
                                                             struct str name, int16_t code) {
    struct describe_topic_partitions_res_topic *out = &d->out.topics[d->out.topics_count++];
    *out = (struct describe_topic_partitions_res_topic){.error_code = code,
                                                        .name = name,
                                                        .is_internal = topic_name_is_internal(name),
                                                        .topic_authorized_operations = OPERATIONS_OF_TOPIC};
    return out;
}

/* As many of the topic's partitions as fit. False: the request has been closed. */
static bool topic_fill(struct describe_topic_partitions *d, const struct backend_topic *topic) {
    struct describe_topic_partitions_res_topic *out = topic_add(d, topic->name, KERR_NONE);
    int32_t first = first_partition(d, topic->name);
    int32_t left = first < topic->partitions_count ? topic->partitions_count - first : 0;
    int32_t count = left < d->room ? left : d->room;
    out->topic_id = topic->id;
    out->partitions = request_array(d->request, struct describe_topic_partitions_res_partition, count);
    if (!out->partitions)
        return false;
    out->partitions_count = count;
    struct int32s node = {&d->this_node, 1};
    for (int32_t i = 0; i < count; i++)
        out->partitions[i] =
            (struct describe_topic_partitions_res_partition){.partition_index = first + i,
                                                             .leader_id = d->this_node,
                                                             .leader_epoch = KAFKA_LEADER_EPOCH,
                                                             .replica_nodes = node,
                                                             .isr_nodes = node};
    d->room -= count;
    if (count < left) {
        d->next = (struct describe_topic_partitions_res_cursor){topic->name, first + count};
        d->out.next_cursor = &d->next;
    }
    return true;
}

/* False: there is no room for it in this page, and the cursor points to it. */
static bool page_has_room(struct describe_topic_partitions *d, struct str name) {
    if (d->room > 0 && !d->out.next_cursor)
        return true;
    if (!d->out.next_cursor) {
        d->next = (struct describe_topic_partitions_res_cursor){name, 0};
        d->out.next_cursor = &d->next;
    }
    return false;
}

static bool fill_asked(struct describe_topic_partitions *d) {
    for (int32_t i = 0; i < d->topics.parts_count && page_has_room(d, d->topics.parts[i].name); i++) {
        const struct backend_topics_part *part = &d->topics.parts[i];
        if (part->status)
            topic_add(d, part->name, kerr_of(part->status));
        else if (!topic_fill(d, &part->topic))
            return false;
    }
    return true;
}

static bool fill_all(struct describe_topic_partitions *d) {
    const struct describe_topic_partitions_req *in = describe_topic_partitions_in(d->request);
    for (int32_t i = 0; i < d->topics.topics_count; i++) {
        const struct backend_topic *topic = &d->topics.topics[i];
        if (in->cursor && str_compare(topic->name, in->cursor->topic_name) < 0)
            continue;
        if (!page_has_room(d, topic->name))
            break;
        if (!topic_fill(d, topic))
            return false;
    }
    return true;
}

static void describe_topic_partitions_on_topics(struct op *op) {
    struct describe_topic_partitions *d = container_of(op, struct describe_topic_partitions, topics.op);
    struct request *r = d->request;
    if (d->topics.all && d->topics.status) {
        request_close(r,
                      status_text(d->topics.status)); /* there is no honest list, and no place for an error */
        return;
    }
    d->out.topics = request_array(r, struct describe_topic_partitions_res_topic,
                                  d->topics.all ? d->topics.topics_count : d->topics.parts_count);
    if (!d->out.topics)
        return;
    if (d->topics.all ? fill_all(d) : fill_asked(d))
        describe_topic_partitions_reply(r, &d->out);
}
