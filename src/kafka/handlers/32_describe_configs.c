/*
 * DescribeConfigs, v1-v4: the settings of topics, of consumer groups, and of this server.
 *
 *   describe_configs_handle -> backend_topics -> describe_configs_on_topics -> answer
 *
 * - Each resource has its own outcome; a type that is none of them, or another broker, spoils only its own entry
 *   (D9-2).
 * - A null or empty list of keys asks for all; unknown keys are left out. What is shown is in name order.
 * - cleanup.policy is read-only (D9-5), as is everything about the server.
 * - A group need not be there (D9-14).
 * - The broker "" stands for what is set for all brokers at run time: nothing.
 */
#include <stdlib.h>

#include "kafka/admin.h"
#include "kafka/configs.h"
#include "kafka/errors.h"
#include "kafka/group_configs.h"
#include "kafka/names.h"
#include "kafka/topic_name.h"

#define DESCRIBE_WAIT_MS 20000 /* D9-2 */

/* Everything stands at the index that the resource has in the request. */
struct describe_configs {
    struct request *request;
    struct backend_topics topics;
    struct describe_configs_res_resource *outcomes;
    struct config_shown *shown; /* room for one topic's */
    struct describe_configs_res_config
        *plain; /* all settings of a topic that has none of its own; made once */
};

static struct describe_configs *describe_configs_new(struct request *r);
static void describe_configs_check(struct describe_configs *d, const struct name_place *places);
static void describe_configs_on_topics(struct op *op);

void describe_configs_handle(struct request *r) {
    const struct describe_configs_req *in = describe_configs_in(r);
    struct describe_configs *d = describe_configs_new(r);
    struct name_key *keys = d ? request_array(r, struct name_key, in->resources_count) : NULL;
    if (!keys)
        return;
    for (int32_t i = 0; i < in->resources_count; i++)
        keys[i] = (struct name_key){in->resources[i].resource_name, in->resources[i].resource_type};
    const struct name_place *places = names_place(r, keys, in->resources_count);
    if (!places)
        return;
    describe_configs_check(d, places);
    op_init(&d->topics.op, r->loop, describe_configs_on_topics);

    request_waits_for(r, describe_configs_on_topics);
    backend_topics(r->kafka->settings.backend, &d->topics);
}

static struct describe_configs *describe_configs_new(struct request *r) {
    const struct describe_configs_req *in = describe_configs_in(r);
    struct describe_configs *d = request_array(r, struct describe_configs, 1);
    if (!d)
        return NULL;
    admin_allow_listing(r);
    d->request = r;
    d->topics.arena = &r->arena;
    d->topics.want_settings = true;
    d->topics.deadline_ms = r->arrived_ms + DESCRIBE_WAIT_MS;
    d->topics.parts_count = in->resources_count;
    d->topics.parts = request_array(r, struct backend_topics_part, in->resources_count);
    d->outcomes =
        d->topics.parts ? request_array(r, struct describe_configs_res_resource, in->resources_count) : NULL;
    d->shown = d->outcomes ? request_array(r, struct config_shown, topic_configs_count()) : NULL;
    return d->shown ? d : NULL;
}

/* ---- what can be said without the backend ---- */

/* What refuses a resource, and the text about it; KERR_NONE: nothing that can be seen here. Source: D9-2. */
static int16_t resource_refusal(struct request *r, const struct describe_configs_req_resource *asked,
                                bool repeated, struct str *message) {
    bool is_topic = asked->resource_type == RESOURCE_TOPIC;
    struct str problem = STR_NULL;
    bool is_group = asked->resource_type == RESOURCE_GROUP;
    if ((is_topic || is_group) && request_meets_stub(r)) {
        *message = admin_message(ST_NOT_CONTROLLER);
        return KERR_NOT_CONTROLLER;
    }
    if (repeated)
        problem = STR("This resource stands more than once in the request.");
    else if (asked->resource_type == RESOURCE_BROKER)
        problem = admin_node_problem(r, asked->resource_name, true);
    else if (is_group && asked->resource_name.len == 0)
        problem = STR("Group name must not be empty");
    else if (!is_topic && !is_group)
        problem = STR("Only topics, brokers and groups have settings here.");
    if (problem.len >= 0) {
        *message = problem;
        return KERR_INVALID_REQUEST;
    }
    if (!is_topic || topic_name_is_valid(asked->resource_name))
        return KERR_NONE;
    *message = topic_name_problem(&r->arena, asked->resource_name);
    return KERR_INVALID_TOPIC_EXCEPTION;
}

static void describe_configs_check(struct describe_configs *d, const struct name_place *places) {
    const struct describe_configs_req *in = describe_configs_in(d->request);
    for (int32_t i = 0; i < in->resources_count; i++) {
        const struct describe_configs_req_resource *asked = &in->resources[i];
        struct describe_configs_res_resource *out = &d->outcomes[i];
        *out = (struct describe_configs_res_resource){.error_message = STR(""),
                                                      .resource_type = asked->resource_type,
                                                      .resource_name = asked->resource_name};
        out->error_code = resource_refusal(d->request, asked, places[i].repeated, &out->error_message);
        bool ask = out->error_code == KERR_NONE && asked->resource_type == RESOURCE_TOPIC;
        d->topics.parts[i].name = asked->resource_name;
        d->topics.parts[i].status = ask ? ST_OK : ST_INVALID;
    }
}

/* ---- the answer ---- */

static int compare_config(const void *name, const void *config) {
    return str_compare(*(const struct str *)name, ((const struct config_shown *)config)->name);
}

/* Which of the settings are asked for, and how many. NULL: the request has been closed. */
static bool *configs_asked(struct request *r, struct strs keys, const struct config_shown *from,
                           int32_t count, int32_t *asked_count) {
    bool *asked = request_array(r, bool, count);
    if (!asked)
        return NULL;
    *asked_count = keys.count > 0 ? 0 : count;
    memset(asked, keys.count <= 0, (size_t)count);
    for (int32_t i = 0; i < keys.count; i++) {
        const struct config_shown *found =
            bsearch(&keys.items[i], from, (size_t)count, sizeof *from, compare_config);
        if (found && !asked[found - from]) {
            asked[found - from] = true;
            (*asked_count)++;
        }
    }
    return asked;
}

/* What it was set to for the topic or the group, then what holds for the server. False: the request has been closed. */
static bool config_add_synonyms(struct request *r, const struct config_shown *from,
                                struct describe_configs_res_config *to) {
    if (!describe_configs_in(r)->include_synonyms)
        return true;
    bool set = from->source == CONFIG_OF_TOPIC || from->source == CONFIG_OF_GROUP;
    bool standard = set || from->started_with.ptr;
    to->synonyms = request_array(r, struct describe_configs_res_synonym, 3);
    if (!to->synonyms)
        return false;
    if (set)
        to->synonyms[to->synonyms_count++] =
            (struct describe_configs_res_synonym){from->name, from->value, from->source};
    if (from->started_with.ptr)
        to->synonyms[to->synonyms_count++] =
            (struct describe_configs_res_synonym){from->server_name, from->started_with, CONFIG_OF_SERVER};
    if (from->server_name.len >= 0)
        to->synonyms[to->synonyms_count++] = (struct describe_configs_res_synonym){
            from->server_name, from->standard, standard ? CONFIG_STANDARD : from->source};
    return true;
}

/* D9-5, D9-19 */
static bool is_read_only(const struct request *r, int8_t type, struct str name) {
    if (type == RESOURCE_GROUP)
        return !r->kafka->settings.backend->ops->configure_groups;
    return type == RESOURCE_BROKER || str_equal(name, STR("cleanup.policy"));
}

/* Those of the settings that resource i is asked for. False: the request has been closed. */
static bool outcome_fill(struct describe_configs *d, int32_t i, const struct config_shown *from,
                         int32_t count) {
    struct request *r = d->request;
    const struct describe_configs_req *in = describe_configs_in(r);
    struct describe_configs_res_resource *out = &d->outcomes[i];
    int32_t asked_count;
    const bool *asked = configs_asked(r, in->resources[i].configuration_keys, from, count, &asked_count);
    if (!asked)
        return false;
    out->configs = request_array(r, struct describe_configs_res_config, asked_count);
    if (!out->configs)
        return false;
    for (int32_t c = 0; c < count; c++) {
        if (!asked[c])
            continue;
        struct describe_configs_res_config *to = &out->configs[out->configs_count++];
        *to = (struct describe_configs_res_config){
            .name = from[c].name,
            .value = from[c].value,
            .read_only = is_read_only(r, out->resource_type, from[c].name),
            .config_source = from[c].source,
            .config_type = from[c].type,
            .documentation = in->include_documentation ? from[c].documentation : STR_NULL};
        if (!config_add_synonyms(r, &from[c], to))
            return false;
    }
    return true;
}

static bool outcome_fill_server(struct describe_configs *d, int32_t i) {
    struct request *r = d->request;
    struct config_shown *configs;
    int32_t count;
    if (d->outcomes[i].resource_name.len == 0)
        return true;
    if (server_configs_show(r->kafka, &r->arena, &configs, &count) != ST_OK) {
        request_close(r, status_text(ST_NO_MEMORY));
        return false;
    }
    return outcome_fill(d, i, configs, count);
}

static bool outcome_fill_group(struct describe_configs *d, int32_t i) {
    struct request *r = d->request;
    struct config_shown configs[GROUP_CONFIGS_COUNT];
    const struct backend_group_settings own =
        backend_group_settings(r->kafka->settings.backend, d->outcomes[i].resource_name);
    if (group_configs_show(r->kafka, &r->arena, &own, configs) != ST_OK) {
        request_close(r, status_text(ST_NO_MEMORY));
        return false;
    }
    return outcome_fill(d, i, configs, GROUP_CONFIGS_COUNT);
}

/* Topics without settings of their own share one list: a client that describes all topics asks for thousands. */
static bool outcome_fill_topic(struct describe_configs *d, int32_t i) {
    struct request *r = d->request;
    const struct backend_topic *topic = &d->topics.parts[i].topic;
    struct describe_configs_res_resource *out = &d->outcomes[i];
    int32_t count = topic_configs_count();
    bool plain =
        topic->settings_count == 0 && describe_configs_in(r)->resources[i].configuration_keys.count <= 0;
    if (plain && d->plain) {
        out->configs = d->plain;
        out->configs_count = count;
        return true;
    }
    if (topic_configs_show(r->kafka, &r->arena, topic->settings, topic->settings_count, d->shown) != ST_OK) {
        request_close(r, status_text(ST_NO_MEMORY));
        return false;
    }
    if (!outcome_fill(d, i, d->shown, count))
        return false;
    if (plain)
        d->plain = out->configs;
    return true;
}

static bool outcome_fill_found(struct describe_configs *d, int32_t i) {
    int8_t type = d->outcomes[i].resource_type;
    if (type == RESOURCE_TOPIC)
        return outcome_fill_topic(d, i);
    return type == RESOURCE_GROUP ? outcome_fill_group(d, i) : outcome_fill_server(d, i);
}

static void describe_configs_on_topics(struct op *op) {
    struct describe_configs *d = container_of(op, struct describe_configs, topics.op);
    struct describe_configs_res out = {.results = d->outcomes, .results_count = d->topics.parts_count};
    for (int32_t i = 0; i < out.results_count; i++) {
        struct describe_configs_res_resource *one = &d->outcomes[i];
        enum status st = d->topics.parts[i].status;
        if (one->error_code)
            continue;
        if (one->resource_type == RESOURCE_TOPIC && st) {
            one->error_code = kerr_of(st);
            one->error_message = st == ST_NOT_FOUND ? STR("") : admin_message(st);
        } else if (!outcome_fill_found(d, i)) {
            return;
        }
    }
    describe_configs_reply(d->request, &out);
}
