#include "kafka/alter.h"

#include <stdio.h>

#include "kafka/admin.h"
#include "kafka/configs.h"
#include "kafka/errors.h"
#include "kafka/group_configs.h"
#include "kafka/names.h"
#include "kafka/topic_name.h"
#include "net/loop.h"

#define ALTER_WAIT_MS 20000 /* D9-2 */

static void alter_check(struct alter *a, const struct name_place *places, const struct name_place *entries);
static void alter_look_up(struct alter *a);
static void alter_on_topics(struct op *op);
static void alter_on_configured(struct op *op);
static void alter_groups(struct alter *a);
static void alter_on_groups(struct op *op);

struct alter *alter_new(struct request *r, int32_t resources_count) {
    struct alter *a = request_array(r, struct alter, 1);
    if (!a)
        return NULL;
    a->request = r;
    a->resources_count = resources_count;
    a->resources = request_array(r, struct alter_resource, resources_count);
    a->topics.parts = a->resources ? request_array(r, struct backend_topics_part, resources_count) : NULL;
    a->configure.parts =
        a->topics.parts ? request_array(r, struct backend_configure_part, resources_count) : NULL;
    a->groups.parts =
        a->configure.parts ? request_array(r, struct backend_group_change, resources_count) : NULL;
    a->shown = a->groups.parts ? request_array(r, struct config_shown, topic_configs_count()) : NULL;
    return a->shown ? a : NULL;
}

/* The places of all resources' entries, one behind the other. NULL: the request has been closed. */
static struct name_place *entries_place(struct alter *a) {
    int32_t count = 0, next = 0;
    for (int32_t i = 0; i < a->resources_count; i++)
        count += a->resources[i].entries_count;
    struct name_key *keys = request_array(a->request, struct name_key, count);
    if (!keys)
        return NULL;
    for (int32_t i = 0; i < a->resources_count; i++)
        for (int32_t e = 0; e < a->resources[i].entries_count; e++)
            keys[next++] = (struct name_key){a->resources[i].entries[e].key, i};
    return names_place(a->request, keys, count);
}

void alter_start(struct alter *a) {
    struct request *r = a->request;
    struct name_key *keys = request_array(r, struct name_key, a->resources_count);
    if (!keys)
        return;
    for (int32_t i = 0; i < a->resources_count; i++) {
        keys[i] = (struct name_key){a->resources[i].name, a->resources[i].type};
        a->resources[i].error_message = STR_NULL;
    }
    const struct name_place *places = names_place(r, keys, a->resources_count);
    const struct name_place *entries = places ? entries_place(a) : NULL;
    if (!entries)
        return;
    a->topics.arena = &r->arena;
    a->topics.want_settings = true;
    a->topics.parts_count = a->configure.parts_count = a->resources_count;
    a->groups.parts_count = a->resources_count;
    a->groups.deadline_ms = a->topics.deadline_ms = a->configure.deadline_ms = r->arrived_ms + ALTER_WAIT_MS;
    a->configure.validate_only = a->validate_only;
    op_start(&a->op, NULL);
    alter_check(a, places, entries);
    alter_look_up(a);
}

/* ---- outcomes ---- */

static void outcome_set(struct alter *a, int32_t i, int16_t code, struct str message) {
    a->resources[i].error_code = code;
    a->resources[i].error_message = message;
}

/* With a text that is made; where there is no memory for it, without one. */
#define outcome_print(a, i, code, ...) \
    outcome_set((a), (i), (code), arena_printf(&(a)->request->arena, __VA_ARGS__))

/* ---- what can be said without the backend; the texts are Kafka's ---- */

static bool entry_wants_value(const struct config_wish *e) {
    return e->verb != CONFIG_DELETE;
}

/* What is wrong with the entries, whatever they are about; len -1: nothing. */
static struct str entries_problem(struct alter *a, int32_t i, const struct name_place *places) {
    const struct alter_resource *resource = &a->resources[i];
    struct arena *arena = &a->request->arena;
    for (int32_t e = 0; e < resource->entries_count; e++)
        if (places[e].repeated)
            return STR("Error due to duplicate config keys");
    for (int32_t e = 0; e < resource->entries_count; e++) {
        const struct config_wish *entry = &resource->entries[e];
        if (entry_wants_value(entry) && entry->value.len < 0)
            return arena_printf(arena, "Null value not supported for : %.*s", entry->key.len, entry->key.ptr);
        if (entry->verb < CONFIG_SET || entry->verb > CONFIG_SUBTRACT)
            return arena_printf(arena, "Unknown config operation %d", entry->verb);
    }
    return STR_NULL;
}

/* Everything about this server is read-only; that nothing is set at run time can be confirmed. */
static void check_broker(struct alter *a, int32_t i) {
    const struct alter_resource *resource = &a->resources[i];
    for (int32_t e = 0; e < resource->entries_count; e++)
        if (entry_wants_value(&resource->entries[e])) {
            outcome_print(a, i, KERR_INVALID_REQUEST, "Cannot update these configs dynamically: [%.*s]",
                          resource->entries[e].key.len, resource->entries[e].key.ptr);
            return;
        }
}

static void check_logger(struct alter *a, int32_t i) {
    const struct alter_resource *resource = &a->resources[i];
    if (resource->entries_count > 0)
        outcome_print(a, i, KERR_INVALID_CONFIG, "Logger %.*s does not exist!", resource->entries[0].key.len,
                      resource->entries[0].key.ptr);
}

static void check_topic_name(struct alter *a, int32_t i) {
    struct str name = a->resources[i].name;
    if (name.len == 0)
        outcome_set(a, i, KERR_INVALID_REQUEST, STR("Default topic resources are not allowed."));
    else if (!topic_name_is_valid(name))
        outcome_set(a, i, KERR_INVALID_TOPIC_EXCEPTION, topic_name_problem(&a->request->arena, name));
}

static void check_group_name(struct alter *a, int32_t i) {
    struct str name = a->resources[i].name;
    if (name.len == 0)
        outcome_set(a, i, KERR_INVALID_REQUEST, STR("Default group resources are not allowed."));
    else if (name.len > BACKEND_GROUP_BYTES_MAX)
        outcome_set(a, i, KERR_INVALID_GROUP_ID, STR("The group id has more than 246 bytes."));
}

static void check_node(struct alter *a, int32_t i) {
    bool is_broker = a->resources[i].type == RESOURCE_BROKER;
    struct str problem = admin_node_problem(a->request, a->resources[i].name, is_broker);
    if (problem.len >= 0)
        outcome_set(a, i, KERR_INVALID_REQUEST, problem);
    else if (is_broker)
        check_broker(a, i);
    else
        check_logger(a, i);
}

static void check_resource(struct alter *a, int32_t i) {
    int8_t type = a->resources[i].type;
    if (type == RESOURCE_TOPIC)
        check_topic_name(a, i);
    else if (type == RESOURCE_GROUP)
        check_group_name(a, i);
    else if (type == RESOURCE_BROKER || (type == RESOURCE_BROKER_LOGGER && !a->replaces))
        check_node(a, i);
    else
        outcome_print(a, i, KERR_INVALID_REQUEST, "Unknown resource type %d", type);
}

static void check_one(struct alter *a, int32_t i, bool repeated, const struct name_place *entries) {
    struct str problem = STR_NULL;
    int8_t type = a->resources[i].type;
    if ((type == RESOURCE_TOPIC || type == RESOURCE_GROUP) && request_meets_stub(a->request)) {
        outcome_set(a, i, KERR_NOT_CONTROLLER, admin_message(ST_NOT_CONTROLLER));
        return;
    }
    if (repeated)
        problem = STR("Each resource must appear at most once.");
    else
        problem = entries_problem(a, i, entries);
    if (problem.ptr)
        outcome_set(a, i, KERR_INVALID_REQUEST, problem);
    else
        check_resource(a, i);
}

static bool is_open(const struct alter *a, int32_t i, enum resource_type type) {
    return a->resources[i].type == (int8_t)type && a->resources[i].error_code == KERR_NONE;
}

static bool is_open_topic(const struct alter *a, int32_t i) {
    return is_open(a, i, RESOURCE_TOPIC);
}

static bool is_open_group(const struct alter *a, int32_t i) {
    return is_open(a, i, RESOURCE_GROUP);
}

/* places: of the resources; entries: of all their entries, one behind the other. What is left to look up has the status ST_AGAIN. */
static void alter_check(struct alter *a, const struct name_place *places, const struct name_place *entries) {
    int32_t topics = 0, groups = 0;
    for (int32_t i = 0; i < a->resources_count; i++) {
        check_one(a, i, places[i].repeated, entries);
        entries += a->resources[i].entries_count;
        topics += is_open_topic(a, i);
        groups += is_open_group(a, i);
    }
    for (int32_t i = 0; i < a->resources_count; i++) {
        if (is_open_topic(a, i) && topics > ADMIN_TOPICS_MAX)
            outcome_set(a, i, KERR_POLICY_VIOLATION, ADMIN_TOO_MANY_TOPICS);
        if (is_open_group(a, i) && groups > ADMIN_TOPICS_MAX)
            outcome_set(a, i, KERR_POLICY_VIOLATION, ADMIN_TOO_MANY_GROUPS);
        a->configure.parts[i].status = is_open_topic(a, i) ? ST_AGAIN : ST_INVALID;
        a->groups.parts[i].status = is_open_group(a, i) ? ST_AGAIN : ST_INVALID;
    }
}

/* ---- against what there is ---- */

static void alter_look_up(struct alter *a) {
    struct request *r = a->request;
    for (int32_t i = 0; i < a->resources_count; i++)
        a->topics.parts[i] = (struct backend_topics_part){
            .name = a->resources[i].name,
            .status = a->configure.parts[i].status == ST_AGAIN ? ST_OK : ST_INVALID};
    op_init(&a->topics.op, r->loop, alter_on_topics);

    request_waits_for(r, alter_on_topics);
    backend_topics(r->kafka->settings.backend, &a->topics);
}

static void outcome_set_status(struct alter *a, int32_t i, enum status st, const char *reason) {
    struct str name = a->resources[i].name;
    if (st == ST_NOT_FOUND)
        outcome_print(a, i, KERR_UNKNOWN_TOPIC_OR_PARTITION, "The topic '%.*s' does not exist.", name.len,
                      name.ptr);
    else if (st == ST_INVALID)
        outcome_set(a, i, KERR_INVALID_CONFIG, reason ? str_of(reason) : STR_NULL);
    else
        outcome_set(a, i, kerr_of(st), admin_message(st));
}

/* The changes of one topic as the entries want them. */
static enum status changes_make(struct alter *a, int32_t i, struct str *problem_out) {
    struct request *r = a->request;
    const struct backend_topic *topic = &a->topics.parts[i].topic;
    const struct alter_resource *resource = &a->resources[i];
    struct backend_configure_part *part = &a->configure.parts[i];
    struct backend_change *changes =
        arena_take_array(&r->arena, struct backend_change, topic_configs_count());
    enum status st =
        changes ? topic_configs_show(r->kafka, &r->arena, topic->settings, topic->settings_count, a->shown)
                : ST_NO_MEMORY;
    const struct config_wishes wishes = {resource->entries, resource->entries_count, a->replaces};
    if (!st)
        st = topic_configs_change(&r->kafka->settings, &r->arena, a->shown, &wishes, changes,
                                  &part->changes_count, problem_out);
    part->name = resource->name;
    part->changes = changes;
    return st;
}

static void alter_on_topics(struct op *op) {
    struct alter *a = container_of(op, struct alter, topics.op);
    struct request *r = a->request;
    for (int32_t i = 0; i < a->resources_count; i++) {
        struct backend_configure_part *part = &a->configure.parts[i];
        struct str problem = STR_NULL;
        if (part->status != ST_AGAIN)
            continue;
        part->status = a->topics.parts[i].status;
        if (!part->status)
            part->status = changes_make(a, i, &problem);
        if (part->status == ST_INVALID)
            outcome_set(a, i, KERR_INVALID_CONFIG, problem);
        else if (part->status)
            outcome_set_status(a, i, part->status, NULL);
    }
    op_init(&a->configure.op, r->loop, alter_on_configured);

    request_waits_for(r, alter_on_configured);
    backend_configure(r->kafka->settings.backend, &a->configure);
}

static void warn_of_compaction(const struct alter *a, const struct backend_configure_part *part) {
    for (int32_t c = 0; !a->validate_only && c < part->changes_count; c++) {
        const struct backend_setting now = {part->changes[c].key, part->changes[c].value};
        admin_warn_of_compaction(part->name, &now, 1);
    }
}

/* A list that somebody else has changed meanwhile is looked at once more; each time that happens, somebody's change was made. */
static void alter_on_configured(struct op *op) {
    struct alter *a = container_of(op, struct alter, configure.op);
    bool again = false;
    for (int32_t i = 0; i < a->resources_count; i++) {
        struct backend_configure_part *part = &a->configure.parts[i];
        again |= part->status == ST_AGAIN;
        if (part->status == ST_AGAIN || !is_open_topic(a, i))
            continue;
        if (part->status)
            outcome_set_status(a, i, part->status, part->reason);
        else
            warn_of_compaction(a, part);
        part->status = ST_EXISTS; /* it is done */
    }
    if (again)
        alter_look_up(a);
    else
        alter_groups(a);
}

/* ---- groups: what is set for them is known without waiting ---- */

static void group_outcome_set(struct alter *a, int32_t i, enum status st) {
    if (st == ST_POLICY)
        outcome_print(a, i, KERR_POLICY_VIOLATION, "Settings are kept of %d groups at most.",
                      BACKEND_CONFIGURED_GROUPS_MAX);
    else if (st)
        outcome_set(a, i, kerr_of(st), admin_message(st));
}

/* Whether there is something for the backend to do; else the resource has its outcome. */
static bool group_change_make(struct alter *a, int32_t i) {
    struct request *r = a->request;
    struct backend *backend = r->kafka->settings.backend;
    struct backend_group_change *change = &a->groups.parts[i];
    const struct alter_resource *resource = &a->resources[i];
    const struct config_wishes wishes = {resource->entries, resource->entries_count, a->replaces};
    struct str problem = STR_NULL;
    *change = (struct backend_group_change){.group = resource->name,
                                            .before = backend_group_settings(backend, resource->name)};
    enum status st =
        group_configs_change(r->kafka, &r->arena, &change->before, &wishes, &change->settings, &problem);
    if (st == ST_INVALID)
        outcome_set(a, i, KERR_INVALID_CONFIG, problem);
    else if (st)
        group_outcome_set(a, i, st);
    else if (!backend->ops->configure_groups &&
             (change->settings.session_ms || change->settings.heartbeat_ms)) /* D9-19 */
        outcome_set(a, i, KERR_INVALID_REQUEST, STR("Settings of groups can't be kept by this server."));
    return is_open_group(a, i) && backend->ops->configure_groups && !a->validate_only;
}

static void alter_groups(struct alter *a) {
    struct request *r = a->request;
    bool any = false;
    for (int32_t i = 0; i < a->resources_count; i++) {
        struct backend_group_change *change = &a->groups.parts[i];
        if (change->status != ST_AGAIN)
            continue;
        bool asks = group_change_make(a, i);
        change->status = asks ? ST_OK : ST_INVALID;
        any |= asks;
    }
    if (!any) {
        op_complete(&a->op, ST_OK);
        return;
    }
    op_init(&a->groups.op, r->loop, alter_on_groups);

    request_waits_for(r, alter_on_groups);
    backend_configure_groups(r->kafka->settings.backend, &a->groups);
}

/* A group that somebody else has changed meanwhile is looked at once more, as a list of a topic. */
static void alter_on_groups(struct op *op) {
    struct alter *a = container_of(op, struct alter, groups.op);
    for (int32_t i = 0; i < a->resources_count; i++) {
        struct backend_group_change *change = &a->groups.parts[i];
        if (change->status == ST_AGAIN || !is_open_group(a, i))
            continue;
        group_outcome_set(a, i, change->status);
        change->status = ST_EXISTS; /* it is done */
    }
    alter_groups(a);
}
