/*
 * CreateTopics, v2-v7.
 *
 *   create_topics_handle -> backend_topics (only where a name must be looked up) -> create_topics_on_known
 *                        -> backend_create -> create_topics_on_created -> answer
 *
 * - Each topic has its own outcome. Checked in this order: a name twice (42), too many names (44), the name
 *   (42, 17), configs (40), partitions and assignments (37, 42, 39), replication factor (38). A topic that
 *   exists is 36 where one of the last three fails, too: Kafka Connect relies on it (D6-2). A name that differs
 *   from an existing one in '.' and '_' only: 17.
 * - A partition count or factor of -1 is the default, in every version, as on Kafka 4.
 * - A timeout of 0 or less is over at once: 7 on all as they were asked, as on Kafka; otherwise D6-7.
 * - v5 answers with what was made and the topic's settings (KIP-525), v7 with the id (KIP-516), a random one
 *   for validate_only.
 */
#include <stdlib.h>

#include "kafka/admin.h"
#include "kafka/configs.h"
#include "kafka/errors.h"
#include "kafka/group_topics.h"
#include "kafka/names.h"
#include "kafka/topic_name.h"

#define CONFIGS_FROM 5

/* Everything stands at the index that the topic has in the request. */
struct create_topics {
    struct request *request;
    struct backend_topics known;  /* which of the names exist; all of the server's where names may collide */
    struct backend_create create; /* what has an error already has a status, too */
    struct create_topics_res_topic *outcomes;
    struct name_place *places;
    bool *usable; /* a name that can be looked up: good, and once in the request */
};

static struct create_topics *create_topics_new(struct request *r);
static void create_topics_check(struct create_topics *c);
static void create_topics_look_up(struct create_topics *c);
static void create_topics_on_known(struct op *op);
static void create_topics_store(struct create_topics *c);
static void create_topics_on_created(struct op *op);
static void create_topics_answer(struct create_topics *c);

void create_topics_handle(struct request *r) {
    const struct create_topics_req *in = create_topics_in(r);
    struct create_topics *c = create_topics_new(r);
    if (!c)
        return;
    if (in->timeout_ms <= 0) {
        for (int32_t i = 0; i < in->topics_count; i++)
            c->outcomes[i].error_code = KERR_REQUEST_TIMED_OUT;
        create_topics_reply(
            r, &(struct create_topics_res){.topics = c->outcomes, .topics_count = in->topics_count});
        return;
    }
    create_topics_check(c);
    create_topics_look_up(c);
}

/* The state, with an outcome for each topic that says nothing yet. NULL: the request has been closed. */
static struct create_topics *create_topics_new(struct request *r) {
    const struct create_topics_req *in = create_topics_in(r);
    int32_t count = in->topics_count;
    struct create_topics *c = request_array(r, struct create_topics, 1);
    struct name_key *keys = c ? request_array(r, struct name_key, count) : NULL;
    struct backend_create_part *parts = keys ? request_array(r, struct backend_create_part, count) : NULL;
    struct create_topics_res_topic *outcomes =
        parts ? request_array(r, struct create_topics_res_topic, count) : NULL;
    bool *usable = outcomes ? request_array(r, bool, count) : NULL;
    if (!usable)
        return NULL;
    for (int32_t i = 0; i < count; i++) {
        keys[i].name = parts[i].name = in->topics[i].name;
        outcomes[i] = (struct create_topics_res_topic){.name = in->topics[i].name,
                                                       .error_message = STR_NULL,
                                                       .num_partitions = -1,
                                                       .replication_factor = -1};
    }
    c->request = r;
    c->outcomes = outcomes;
    c->usable = usable;
    c->create.parts = parts;
    c->create.parts_count = count;
    c->create.validate_only = in->validate_only;
    c->create.deadline_ms = admin_deadline_ms(r, in->timeout_ms);
    c->places = names_place(r, keys, count);
    return c->places ? c : NULL;
}

/* ---- outcomes ---- */

/* An error that the backend needs not be asked for. */
static void outcome_set(struct create_topics *c, int32_t i, int16_t code, struct str message) {
    c->outcomes[i].error_code = code;
    c->outcomes[i].error_message = message;
    c->create.parts[i].status = ST_INVALID;
}

/* With a text that is made; where there is no memory for it, without one. */
#define outcome_print(c, i, code, ...) \
    outcome_set((c), (i), (code), arena_printf(&(c)->request->arena, __VA_ARGS__))

static bool outcome_is_open(const struct create_topics *c, int32_t i) {
    return c->create.parts[i].status == ST_OK;
}

static void outcomes_set_open(struct create_topics *c, int16_t code, struct str message) {
    for (int32_t i = 0; i < c->create.parts_count; i++)
        if (outcome_is_open(c, i))
            outcome_set(c, i, code, message);
}

/* ---- what can be said without the backend; the texts are Kafka's ---- */

static void check_name(struct create_topics *c, int32_t i) {
    struct str name = c->create.parts[i].name;
    if (str_equal(name, STR("__cluster_metadata")))
        outcome_set(c, i, KERR_INVALID_REQUEST,
                    STR("Creation of internal topic __cluster_metadata is prohibited."));
    else if (!topic_name_is_valid(name))
        outcome_set(c, i, KERR_INVALID_TOPIC_EXCEPTION, topic_name_problem(&c->request->arena, name));
    else
        c->usable[i] = true;
}

static void check_configs(struct create_topics *c, int32_t i) {
    const struct create_topics_req_topic *topic = &create_topics_in(c->request)->topics[i];
    struct arena *arena = &c->request->arena;
    struct backend_create_part *part = &c->create.parts[i];
    if (topic->configs_count == 0)
        return;
    struct backend_setting *wanted = arena_take_array(arena, struct backend_setting, topic->configs_count);
    part->settings = arena_take_array(arena, struct backend_setting, topic_configs_count());
    struct str problem = STR_NULL;
    enum status st = wanted && part->settings ? ST_OK : ST_NO_MEMORY;
    for (int32_t s = 0; !st && s < topic->configs_count; s++)
        wanted[s] = (struct backend_setting){topic->configs[s].name, topic->configs[s].value};
    if (!st)
        st = topic_configs_check(&c->request->kafka->settings, arena, wanted, topic->configs_count,
                                 part->settings, &part->settings_count, &problem);
    if (st)
        outcome_set(c, i, st == ST_INVALID ? KERR_INVALID_CONFIG : kerr_of(st), problem);
}

/* Each index from 0 on must be there once, each on this node alone (D6-4). */
static void check_assigned(struct create_topics *c, int32_t i) {
    const struct create_topics_req_topic *topic = &create_topics_in(c->request)->topics[i];
    const int32_t count = topic->assignments_count;
    uint8_t *seen = arena_take_array(&c->request->arena, uint8_t, count);
    if (!seen) {
        outcome_set(c, i, kerr_of(ST_NO_MEMORY), STR_NULL);
        return;
    }
    for (int32_t a = 0; a < count; a++) {
        int32_t index = topic->assignments[a].partition_index;
        struct str problem = admin_assignment_problem(c->request, topic->assignments[a].broker_ids);
        if (problem.len < 0 && (index < 0 || index >= count))
            problem = STR("partitions should be a consecutive 0-based integer sequence");
        else if (problem.len < 0 && seen[index]++ > 0)
            problem = STR("Found multiple manual partition assignments for a partition");
        if (problem.len >= 0) {
            outcome_set(c, i, KERR_INVALID_REPLICA_ASSIGNMENT, problem);
            return;
        }
    }
    c->create.parts[i].partitions_count = count;
}

/* The count is checked before the factor (K6-2). */
static void check_counted(struct create_topics *c, int32_t i) {
    const struct create_topics_req_topic *topic = &create_topics_in(c->request)->topics[i];
    const struct kafka_settings *settings = &c->request->kafka->settings;
    int32_t partitions = topic->num_partitions == -1 ? settings->partitions_default : topic->num_partitions;
    int16_t factor = topic->replication_factor;
    if (partitions <= 0)
        outcome_set(c, i, KERR_INVALID_PARTITIONS,
                    STR("Number of partitions was set to an invalid non-positive value."));
    else if (partitions > ADMIN_PARTITIONS_MAX)
        outcome_set(c, i, KERR_INVALID_PARTITIONS, ADMIN_TOO_MANY_PARTITIONS);
    else if (factor == 0 || factor < -1)
        outcome_set(c, i, KERR_INVALID_REPLICATION_FACTOR,
                    STR("Replication factor must be larger than 0, or -1 to use the default value."));
    else if (factor > 1 && !settings->accept_any_replication)
        outcome_set(c, i, KERR_INVALID_REPLICATION_FACTOR,
                    STR("The replication factor must be 1 or -1: copies are the matter of the storage behind "
                        "this server."));
    c->create.parts[i].partitions_count = partitions;
}

static void check_partitions(struct create_topics *c, int32_t i) {
    const struct create_topics_req_topic *topic = &create_topics_in(c->request)->topics[i];
    if (topic->assignments_count == 0)
        check_counted(c, i);
    else if (topic->num_partitions != -1 || topic->replication_factor != -1)
        outcome_print(c, i, KERR_INVALID_REQUEST,
                      "A manual partition assignment was specified, but %s was not set to -1.",
                      topic->num_partitions != -1 ? "numPartitions" : "replication factor");
    else
        check_assigned(c, i);
}

static void check_topic(struct create_topics *c, int32_t i) {
    if (outcome_is_open(c, i))
        check_name(c, i);
    if (outcome_is_open(c, i))
        check_configs(c, i);
    if (outcome_is_open(c, i))
        check_partitions(c, i);
}

static void create_topics_check(struct create_topics *c) {
    int32_t once = 0;
    int64_t partitions = 0;
    for (int32_t i = 0; i < c->create.parts_count; i++) {
        if (c->places[i].repeated)
            outcome_set(c, i, KERR_INVALID_REQUEST, STR("Duplicate topic name."));
        else
            once++;
    }
    if (once > ADMIN_TOPICS_MAX) {
        outcomes_set_open(c, KERR_POLICY_VIOLATION, ADMIN_TOO_MANY_TOPICS);
        return;
    }
    for (int32_t i = 0; i < c->create.parts_count; i++) {
        check_topic(c, i);
        partitions += outcome_is_open(c, i) ? c->create.parts[i].partitions_count : 0;
    }
    if (partitions > ADMIN_REQUEST_PARTITIONS_MAX)
        outcomes_set_open(c, KERR_POLICY_VIOLATION,
                          STR("Excessively large number of partitions per request."));
}

/* ---- what exists already ---- */

/* Looks up what a failed check or a collision depends on, if anything does. */
static void create_topics_look_up(struct create_topics *c) {
    struct request *r = c->request;
    bool failed = false;
    for (int32_t i = 0; i < c->create.parts_count; i++) {
        failed |= c->usable[i] && !outcome_is_open(c, i);
        c->known.all |= c->usable[i] && topic_name_can_collide(c->create.parts[i].name);
    }
    if (request_meets_stub(r) || (!failed && !c->known.all)) {
        create_topics_store(c);
        return;
    }
    if (c->known.all) {
        admin_allow_listing(r);
    } else {
        c->known.parts = request_array(r, struct backend_topics_part, c->create.parts_count);
        if (!c->known.parts)
            return;
        c->known.parts_count = c->create.parts_count;
        for (int32_t i = 0; i < c->create.parts_count; i++) {
            c->known.parts[i].name = c->create.parts[i].name;
            c->known.parts[i].status = c->usable[i] ? ST_OK : ST_BAD_NAME;
        }
    }
    c->known.arena = &r->arena;
    c->known.deadline_ms = c->create.deadline_ms;
    op_init(&c->known.op, r->loop, create_topics_on_known);

    request_waits_for(r, create_topics_on_known);
    backend_topics(r->kafka->settings.backend, &c->known);
}

static int compare_topic(const void *name, const void *topic) {
    return str_compare(*(const struct str *)name, ((const struct backend_topic *)topic)->name);
}

static bool topic_is_known(const struct create_topics *c, int32_t i) {
    const struct backend_topics *known = &c->known;
    if (!known->all)
        return known->parts[i].status == ST_OK;
    return known->topics_count > 0 &&
           bsearch(&c->create.parts[i].name, known->topics, (size_t)known->topics_count,
                   sizeof *known->topics, compare_topic) != NULL;
}

/* The topic that this name can't stand beside; NULL: none. */
static const struct backend_topic *topic_colliding(const struct create_topics *c, int32_t i) {
    for (int32_t k = 0; k < c->known.topics_count; k++)
        if (topic_name_collides(c->known.topics[k].name, c->create.parts[i].name))
            return &c->known.topics[k];
    return NULL;
}

static void outcome_set_exists(struct create_topics *c, int32_t i) {
    struct str name = c->create.parts[i].name;
    outcome_print(c, i, KERR_TOPIC_ALREADY_EXISTS, "Topic '%.*s' already exists.", (int)name.len, name.ptr);
}

static void create_topics_on_known(struct op *op) {
    struct create_topics *c = container_of(op, struct create_topics, known.op);
    if (c->known.all && c->known.status)
        outcomes_set_open(c, kerr_of(c->known.status), admin_message(c->known.status));
    for (int32_t i = 0; i < c->create.parts_count; i++) {
        if (!c->usable[i])
            continue;
        struct str name = c->create.parts[i].name;
        if (topic_is_known(c, i)) {
            outcome_set_exists(c, i);
            continue;
        }
        const struct backend_topic *other = topic_name_can_collide(name) ? topic_colliding(c, i) : NULL;
        if (other)
            outcome_print(c, i, KERR_INVALID_TOPIC_EXCEPTION,
                          "Topic '%.*s' collides with existing topic: %.*s", (int)name.len, name.ptr,
                          (int)other->name.len, other->name.ptr);
    }
    create_topics_store(c);
}

/* ---- creation ---- */

static void create_topics_store(struct create_topics *c) {
    struct request *r = c->request;
    op_init(&c->create.op, r->loop, create_topics_on_created);
    request_waits_for(r, create_topics_on_created);
    backend_create(r->kafka->settings.backend, &c->create);
}

static void create_topics_on_created(struct op *op) {
    struct create_topics *c = container_of(op, struct create_topics, create.op);
    for (int32_t i = 0; i < c->create.parts_count; i++) {
        const struct backend_create_part *part = &c->create.parts[i];
        if (c->outcomes[i].error_code)
            continue;
        if (part->status == ST_EXISTS) {
            outcome_set_exists(c, i);
        } else if (part->status) {
            outcome_set(c, i, kerr_of(part->status), admin_message(part->status));
        } else {
            c->outcomes[i].num_partitions = part->partitions_count;
            c->outcomes[i].replication_factor = 1;
            c->outcomes[i].topic_id = c->create.validate_only ? admin_random_uuid() : part->id;
            if (!c->create.validate_only)
                admin_warn_of_compaction(part->name, part->settings, part->settings_count);
        }
    }
    if (!c->create.validate_only)
        group_topics_stir(c->request->kafka->group_topics);
    create_topics_answer(c);
}

/* ---- the answer ---- */

/* The settings of a new topic. False: the request has been closed. */
static bool outcome_add_configs(struct create_topics *c, int32_t i, struct config_shown *shown) {
    struct request *r = c->request;
    const struct backend_create_part *part = &c->create.parts[i];
    int32_t count = topic_configs_count();
    if (topic_configs_show(r->kafka, &r->arena, part->settings, part->settings_count, shown) != ST_OK) {
        request_close(r, status_text(ST_NO_MEMORY));
        return false;
    }
    struct create_topics_res_config *to = request_array(r, struct create_topics_res_config, count);
    if (!to)
        return false;
    for (int32_t s = 0; s < count; s++)
        to[s] = (struct create_topics_res_config){
            .name = shown[s].name, .value = shown[s].value, .config_source = shown[s].source};
    c->outcomes[i].configs = to;
    c->outcomes[i].configs_count = count;
    return true;
}

/* In the order of the request, a repeated name once. */
static void create_topics_answer(struct create_topics *c) {
    struct request *r = c->request;
    struct create_topics_res out = {.topics = c->outcomes};
    struct config_shown *shown = request_array(r, struct config_shown, topic_configs_count());
    if (!shown)
        return;
    for (int32_t i = 0; i < c->create.parts_count; i++) {
        if (c->places[i].first != i)
            continue;
        if (r->version >= CONFIGS_FROM && !c->outcomes[i].error_code && !outcome_add_configs(c, i, shown))
            return;
        c->outcomes[out.topics_count++] = c->outcomes[i];
    }
    create_topics_reply(r, &out);
}
