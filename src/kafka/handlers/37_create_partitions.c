/*
 * CreatePartitions, v0-v3: more partitions for topics (KIP-195).
 *
 *   create_partitions_handle -> backend_topics -> create_partitions_on_known
 *                            -> backend_grow -> create_partitions_on_grown -> answer
 *
 * - The count is that of all partitions; one that is no increase: 37 (D8-1). Assignments are of the new ones,
 *   this node alone each: 39.
 * - A name twice: one entry with 42. A topic that doesn't exist, or has a bad name: 3.
 * - A timeout of 0 or less is over at once: 7 on all as they were asked, as on Kafka; otherwise D6-7.
 */
#include "kafka/admin.h"
#include "kafka/errors.h"
#include "kafka/group_topics.h"
#include "kafka/names.h"
#include "kafka/topic_name.h"

/* Everything stands at the index that the topic has in the request. */
struct create_partitions {
    struct request *request;
    struct backend_topics known;
    struct backend_grow grow; /* what has an error already has a status, too */
    struct create_partitions_res_topic *outcomes;
    struct name_place *places;
};

static struct create_partitions *create_partitions_new(struct request *r);
static void create_partitions_check(struct create_partitions *c);
static void create_partitions_look_up(struct create_partitions *c);
static void create_partitions_on_known(struct op *op);
static void create_partitions_start(struct create_partitions *c);
static void create_partitions_on_grown(struct op *op);

void create_partitions_handle(struct request *r) {
    struct create_partitions *c = create_partitions_new(r);
    if (!c)
        return;
    if (create_partitions_in(r)->timeout_ms <= 0) {
        for (int32_t i = 0; i < c->grow.parts_count; i++)
            c->outcomes[i].error_code = KERR_REQUEST_TIMED_OUT;
        create_partitions_reply(
            r, &(struct create_partitions_res){.results = c->outcomes, .results_count = c->grow.parts_count});
        return;
    }
    create_partitions_check(c);
    if (request_meets_stub(r))
        create_partitions_start(c);
    else
        create_partitions_look_up(c);
}

/* The state, with an outcome for each topic that says nothing yet. NULL: the request has been closed. */
static struct create_partitions *create_partitions_new(struct request *r) {
    const struct create_partitions_req *in = create_partitions_in(r);
    int32_t count = in->topics_count;
    struct create_partitions *c = request_array(r, struct create_partitions, 1);
    struct name_key *keys = c ? request_array(r, struct name_key, count) : NULL;
    struct backend_grow_part *parts = keys ? request_array(r, struct backend_grow_part, count) : NULL;
    struct create_partitions_res_topic *outcomes =
        parts ? request_array(r, struct create_partitions_res_topic, count) : NULL;
    if (!outcomes)
        return NULL;
    for (int32_t i = 0; i < count; i++) {
        keys[i].name = parts[i].name = outcomes[i].name = in->topics[i].name;
        parts[i].partitions_count = in->topics[i].count;
        outcomes[i].error_message = STR_NULL;
    }
    c->request = r;
    c->outcomes = outcomes;
    c->grow.parts = parts;
    c->grow.parts_count = count;
    c->grow.validate_only = in->validate_only;
    c->grow.deadline_ms = admin_deadline_ms(r, in->timeout_ms);
    c->places = names_place(r, keys, count);
    return c->places ? c : NULL;
}

/* An error that the backend needs not be asked for. */
static void outcome_set(struct create_partitions *c, int32_t i, int16_t code, struct str message) {
    c->outcomes[i].error_code = code;
    c->outcomes[i].error_message = message;
    c->grow.parts[i].status = ST_INVALID;
}

/* ---- what can be said without the backend; the texts are Kafka's ---- */

static void create_partitions_check(struct create_partitions *c) {
    int32_t once = 0;
    for (int32_t i = 0; i < c->grow.parts_count; i++)
        once += !c->places[i].repeated;
    for (int32_t i = 0; i < c->grow.parts_count; i++) {
        const struct backend_grow_part *part = &c->grow.parts[i];
        if (c->places[i].repeated)
            outcome_set(c, i, KERR_INVALID_REQUEST, STR("Duplicate topic name."));
        else if (once > ADMIN_TOPICS_MAX)
            outcome_set(c, i, KERR_POLICY_VIOLATION, ADMIN_TOO_MANY_TOPICS);
        else if (!topic_name_is_valid(part->name))
            outcome_set(c, i, KERR_UNKNOWN_TOPIC_OR_PARTITION, STR_NULL);
    }
}

/* ---- against what there is ---- */

static void create_partitions_look_up(struct create_partitions *c) {
    struct request *r = c->request;
    c->known.parts = request_array(r, struct backend_topics_part, c->grow.parts_count);
    if (!c->known.parts)
        return;
    c->known.parts_count = c->grow.parts_count;
    for (int32_t i = 0; i < c->grow.parts_count; i++)
        c->known.parts[i] =
            (struct backend_topics_part){.name = c->grow.parts[i].name, .status = c->grow.parts[i].status};
    c->known.arena = &r->arena;
    c->known.deadline_ms = c->grow.deadline_ms;
    op_init(&c->known.op, r->loop, create_partitions_on_known);

    request_waits_for(r, create_partitions_on_known);
    backend_topics(r->kafka->settings.backend, &c->known);
}

static void outcome_set_no_increase(struct create_partitions *c, int32_t i, int32_t before) {
    const struct backend_grow_part *part = &c->grow.parts[i];
    struct arena *a = &c->request->arena;
    outcome_set(
        c, i, KERR_INVALID_PARTITIONS,
        part->partitions_count == before
            ? arena_printf(a, "Topic already has %d partition(s).", (int)before)
            : arena_printf(a, "The topic %.*s currently has %d partition(s); %d would not be an increase.",
                           (int)part->name.len, part->name.ptr, (int)before, (int)part->partitions_count));
}

static void check_assignments(struct create_partitions *c, int32_t i, int32_t added) {
    const struct create_partitions_req_topic *topic = &create_partitions_in(c->request)->topics[i];
    if (topic->assignments_count >= 0 && topic->assignments_count != added)
        outcome_set(
            c, i, KERR_INVALID_REPLICA_ASSIGNMENT,
            arena_printf(
                &c->request->arena,
                "Attempted to add %d additional partition(s), but only %d assignment(s) were specified.",
                (int)added, (int)topic->assignments_count));
    for (int32_t a = 0; a < topic->assignments_count && c->grow.parts[i].status == ST_OK; a++) {
        struct str problem = admin_assignment_problem(c->request, topic->assignments[a].broker_ids);
        if (problem.len >= 0)
            outcome_set(c, i, KERR_INVALID_REPLICA_ASSIGNMENT, problem);
    }
}

static void check_known(struct create_partitions *c, int32_t i, const struct backend_topics_part *known) {
    int32_t before = known->topic.partitions_count;
    int32_t wanted = c->grow.parts[i].partitions_count;
    if (known->status)
        outcome_set(c, i, kerr_of(known->status),
                    known->status == ST_NOT_FOUND ? STR_NULL : admin_message(known->status));
    else if (wanted <= before)
        outcome_set_no_increase(c, i, before);
    else if (wanted > ADMIN_PARTITIONS_MAX)
        outcome_set(c, i, KERR_INVALID_PARTITIONS, ADMIN_TOO_MANY_PARTITIONS);
    else
        check_assignments(c, i, wanted - before);
}

static void create_partitions_on_known(struct op *op) {
    struct create_partitions *c = container_of(op, struct create_partitions, known.op);
    int64_t added = 0;
    for (int32_t i = 0; i < c->grow.parts_count; i++) {
        if (c->grow.parts[i].status == ST_OK)
            check_known(c, i, &c->known.parts[i]);
        if (c->grow.parts[i].status == ST_OK)
            added += c->grow.parts[i].partitions_count - c->known.parts[i].topic.partitions_count;
    }
    for (int32_t i = 0; added > ADMIN_REQUEST_PARTITIONS_MAX && i < c->grow.parts_count; i++)
        if (c->grow.parts[i].status == ST_OK)
            outcome_set(c, i, KERR_POLICY_VIOLATION,
                        STR("Excessively large number of additional partitions per request."));
    create_partitions_start(c);
}

/* ---- growth and the answer ---- */

static void create_partitions_start(struct create_partitions *c) {
    struct request *r = c->request;
    op_init(&c->grow.op, r->loop, create_partitions_on_grown);
    request_waits_for(r, create_partitions_on_grown);
    backend_grow(r->kafka->settings.backend, &c->grow);
}

/* In the order of the request, a repeated name once. */
static void create_partitions_on_grown(struct op *op) {
    struct create_partitions *c = container_of(op, struct create_partitions, grow.op);
    struct create_partitions_res out = {.results = c->outcomes};
    for (int32_t i = 0; i < c->grow.parts_count; i++) {
        const struct backend_grow_part *part = &c->grow.parts[i];
        bool is_new = part->status && !c->outcomes[i].error_code;
        if (is_new && part->status == ST_INVALID)
            outcome_set_no_increase(c, i, part->partitions_before);
        else if (is_new)
            outcome_set(c, i, kerr_of(part->status), admin_message(part->status));
        if (c->places[i].first == i)
            c->outcomes[out.results_count++] = c->outcomes[i];
    }
    if (!c->grow.validate_only)
        group_topics_stir(c->request->kafka->group_topics);
    create_partitions_reply(c->request, &out);
}
