/*
 * DeleteTopics, v1-v6.
 *
 *   delete_topics_handle -> [v6: backend_topics -> delete_topics_on_known]
 *                        -> backend_delete -> delete_topics_on_deleted -> answer
 *
 * - Each topic has its own outcome. A name or id twice: one entry with 42, and that topic stays (D7-2).
 * - v6 names topics by name or id (KIP-516) and answers with both, so they are looked up first. Both, or
 *   neither: 42 (K6-4). A name and an id that turn out to be one topic: one entry with 42.
 * - A timeout of 0 or less is over at once: 7 on all as they were asked, as on Kafka; otherwise D6-7.
 */
#include "kafka/admin.h"
#include "kafka/errors.h"
#include "kafka/group_topics.h"
#include "kafka/names.h"
#include "kafka/topic_name.h"

#define IDS_FROM 6

enum key_kind { KEY_NAME, KEY_ID };

/* Everything stands at the index that the topic has in the request. */
struct delete_topics {
    struct request *request;
    struct backend_topics known;
    struct backend_delete delete; /* what has an error already has a status, too */
    struct delete_topics_res_topic *outcomes;
    struct name_place *places;
};

static struct delete_topics *delete_topics_new(struct request *r);
static void delete_topics_check(struct delete_topics *d);
static void delete_topics_look_up(struct delete_topics *d);
static void delete_topics_on_known(struct op *op);
static void delete_topics_start(struct delete_topics *d);
static void delete_topics_on_deleted(struct op *op);

void delete_topics_handle(struct request *r) {
    struct delete_topics *d = delete_topics_new(r);
    if (!d)
        return;
    if (delete_topics_in(r)->timeout_ms <= 0) {
        for (int32_t i = 0; i < d->delete.parts_count; i++)
            d->outcomes[i].error_code = KERR_REQUEST_TIMED_OUT;
        delete_topics_reply(r, &(struct delete_topics_res){.responses = d->outcomes,
                                                           .responses_count = d->delete.parts_count});
        return;
    }
    delete_topics_check(d);
    if (r->version >= IDS_FROM && !request_meets_stub(r))
        delete_topics_look_up(d);
    else
        delete_topics_start(d);
}

/* The state, with an outcome for each topic that says nothing yet. NULL: the request has been closed. */
static struct delete_topics *delete_topics_new(struct request *r) {
    const struct delete_topics_req *in = delete_topics_in(r);
    bool ids = r->version >= IDS_FROM;
    int32_t count = ids ? in->topics_count : in->topic_names.count;
    struct delete_topics *d = request_array(r, struct delete_topics, 1);
    struct name_key *keys = d ? request_array(r, struct name_key, count) : NULL;
    struct backend_delete_part *parts = keys ? request_array(r, struct backend_delete_part, count) : NULL;
    struct delete_topics_res_topic *outcomes =
        parts ? request_array(r, struct delete_topics_res_topic, count) : NULL;
    if (!outcomes)
        return NULL;
    for (int32_t i = 0; i < count; i++) {
        struct str name = ids ? in->topics[i].name : in->topic_names.items[i];
        parts[i].name = outcomes[i].name = name;
        outcomes[i].error_message = STR_NULL;
        keys[i] = (struct name_key){name, KEY_NAME};
        if (!ids)
            continue;
        parts[i].id = outcomes[i].topic_id = in->topics[i].topic_id;
        if (name.len < 0)
            keys[i] = (struct name_key){{(const char *)parts[i].id.b, (int32_t)sizeof parts[i].id.b}, KEY_ID};
    }
    d->request = r;
    d->outcomes = outcomes;
    d->delete.arena = &r->arena;
    d->delete.parts = parts;
    d->delete.parts_count = count;
    d->delete.deadline_ms = admin_deadline_ms(r, in->timeout_ms);
    d->places = names_place(r, keys, count);
    return d->places ? d : NULL;
}

/* ---- what can be said without the backend; the texts are Kafka's ---- */

/* An error that the backend needs not be asked for. */
static void outcome_set(struct delete_topics *d, int32_t i, int16_t code, struct str message) {
    d->outcomes[i].error_code = code;
    d->outcomes[i].error_message = message;
    d->delete.parts[i].status = ST_INVALID;
}

static void delete_topics_check(struct delete_topics *d) {
    for (int32_t i = 0; i < d->delete.parts_count; i++) {
        struct str name = d->delete.parts[i].name;
        bool by_id = !uuid_is_zero(&d->delete.parts[i].id);
        if (d->delete.parts_count > ADMIN_TOPICS_MAX)
            outcome_set(d, i, KERR_POLICY_VIOLATION, ADMIN_TOO_MANY_TOPICS);
        else if (by_id && name.len >= 0)
            outcome_set(d, i, KERR_INVALID_REQUEST, STR("You may not specify both topic name and topic id."));
        else if (!by_id && name.len < 0)
            outcome_set(d, i, KERR_INVALID_REQUEST, STR("Neither topic name nor id were specified."));
        else if (d->places[i].repeated)
            outcome_set(d, i, KERR_INVALID_REQUEST,
                        by_id ? STR("Duplicate topic id.") : STR("Duplicate topic name."));
        else if (!by_id && !topic_name_is_valid(name))
            outcome_set(d, i, KERR_INVALID_TOPIC_EXCEPTION, topic_name_problem(&d->request->arena, name));
    }
}

/* ---- names and ids ---- */

static void delete_topics_look_up(struct delete_topics *d) {
    struct request *r = d->request;
    d->known.parts = request_array(r, struct backend_topics_part, d->delete.parts_count);
    if (!d->known.parts)
        return;
    d->known.parts_count = d->delete.parts_count;
    for (int32_t i = 0; i < d->delete.parts_count; i++)
        d->known.parts[i] = (struct backend_topics_part){.name = d->delete.parts[i].name,
                                                         .id = d->delete.parts[i].id,
                                                         .status = d->delete.parts[i].status};
    d->known.arena = &r->arena;
    d->known.deadline_ms = d->delete.deadline_ms;
    op_init(&d->known.op, r->loop, delete_topics_on_known);

    request_waits_for(r, delete_topics_on_known);
    backend_topics(r->kafka->settings.backend, &d->known);
}

/* A name and an id that are one topic spoil each other. False: the request has been closed. */
static bool delete_topics_find_same(struct delete_topics *d) {
    int32_t count = d->delete.parts_count;
    struct name_key *keys = request_array(d->request, struct name_key, count);
    if (!keys)
        return false;
    for (int32_t i = 0; i < count; i++) {
        bool found = d->delete.parts[i].status == ST_OK;
        keys[i] = found ? (struct name_key){d->outcomes[i].name, -1} : (struct name_key){STR_NULL, i};
    }
    struct name_place *places = names_place(d->request, keys, count);
    for (int32_t i = 0; places && i < count; i++) {
        if (!places[i].repeated)
            continue;
        outcome_set(d, i, KERR_INVALID_REQUEST,
                    STR("The provided topic name maps to an ID that was already supplied."));
        d->places[i].first = places[i].first;
    }
    return places != NULL;
}

static void delete_topics_on_known(struct op *op) {
    struct delete_topics *d = container_of(op, struct delete_topics, known.op);
    for (int32_t i = 0; i < d->delete.parts_count; i++) {
        const struct backend_topics_part *part = &d->known.parts[i];
        if (d->delete.parts[i].status)
            continue;
        if (part->status) {
            outcome_set(d, i, kerr_of(part->status), admin_message(part->status));
            continue;
        }
        d->outcomes[i].name = part->topic.name;
        d->outcomes[i].topic_id = part->topic.id;
        d->delete.parts[i].name = uuid_is_zero(&part->topic.id) ? part->topic.name : STR_NULL;
        d->delete.parts[i].id = part->topic.id; /* not the name: it may be another topic's by now */
    }
    if (delete_topics_find_same(d))
        delete_topics_start(d);
}

/* ---- deletion and the answer ---- */

static void delete_topics_start(struct delete_topics *d) {
    struct request *r = d->request;
    op_init(&d->delete.op, r->loop, delete_topics_on_deleted);
    request_waits_for(r, delete_topics_on_deleted);
    backend_delete(r->kafka->settings.backend, &d->delete);
}

/* In the order of the request, what is repeated once. */
static void delete_topics_on_deleted(struct op *op) {
    struct delete_topics *d = container_of(op, struct delete_topics, delete.op);
    struct delete_topics_res out = {.responses = d->outcomes};
    for (int32_t i = 0; i < d->delete.parts_count; i++) {
        enum status st = d->delete.parts[i].status;
        if (st && !d->outcomes[i].error_code)
            outcome_set(d, i, kerr_of(st), admin_message(st));
        if (d->places[i].first == i)
            d->outcomes[out.responses_count++] = d->outcomes[i];
    }
    group_topics_stir(d->request->kafka->group_topics);
    delete_topics_reply(d->request, &out);
}
