#include "kafka/group_configs.h"

#include <inttypes.h>

/* The bounds are Kafka's standards for group.consumer.min. and max., which a server that was started with something else stretches (D9-16). */
struct group_config {
    struct str name, server_name, documentation;
    int32_t standard, least, most;
};

enum { HEARTBEAT, SESSION };

static const struct group_config group_configs[GROUP_CONFIGS_COUNT] = {
    [HEARTBEAT] = {STR("consumer.heartbeat.interval.ms"), STR("group.consumer.heartbeat.interval.ms"),
                   STR("How often members with group.protocol=consumer are told to send a heartbeat."), 5000,
                   5000, 15000},
    [SESSION] =
        {STR("consumer.session.timeout.ms"), STR("group.consumer.session.timeout.ms"),
         STR("How long a member with group.protocol=consumer stays in the group without a heartbeat."), 45000,
         45000, 60000},
};

static int32_t *value_of(struct backend_group_settings *s, int config) {
    return config == SESSION ? &s->session_ms : &s->heartbeat_ms;
}

static int32_t servers_value(const struct kafka *k, int config) {
    return config == SESSION ? k->group_times.session_ms : k->group_times.heartbeat_ms;
}

static int32_t least_of(const struct kafka *k, int config) {
    int32_t own = servers_value(k, config);
    return own < group_configs[config].least ? own : group_configs[config].least;
}

static int32_t most_of(const struct kafka *k, int config) {
    int32_t own = servers_value(k, config);
    return own > group_configs[config].most ? own : group_configs[config].most;
}

static bool is_in_bounds(const struct kafka *k, int config, int32_t value) {
    return value >= least_of(k, config) && value <= most_of(k, config);
}

/* -1: there is no such setting. */
static int group_config_find(struct str name) {
    for (int i = 0; i < GROUP_CONFIGS_COUNT; i++)
        if (str_equal(name, group_configs[i].name))
            return i;
    return -1;
}

void group_configs_apply(const struct kafka *k, const struct backend_group_settings *own,
                         struct group_times *times) {
    struct group_times set = *times;
    if (is_in_bounds(k, SESSION, own->session_ms))
        set.session_ms = own->session_ms;
    if (is_in_bounds(k, HEARTBEAT, own->heartbeat_ms))
        set.heartbeat_ms = own->heartbeat_ms;
    if (set.session_ms > set.heartbeat_ms)
        *times = set;
}

/* ---- what is shown ---- */

static struct str number_text(struct arena *a, int32_t number) {
    return arena_printf(a, "%" PRId32, number);
}

enum status group_configs_show(const struct kafka *k, struct arena *a,
                               const struct backend_group_settings *own,
                               struct config_shown out[GROUP_CONFIGS_COUNT]) {
    struct backend_group_settings set = *own;
    for (int i = 0; i < GROUP_CONFIGS_COUNT; i++) {
        const struct group_config *config = &group_configs[i];
        int32_t server = servers_value(k, i), group = *value_of(&set, i);
        bool started = server != config->standard;
        out[i] = (struct config_shown){.name = config->name,
                                       .value = number_text(a, group ? group : server),
                                       .standard = number_text(a, config->standard),
                                       .started_with = started ? number_text(a, server) : STR_NULL,
                                       .server_name = config->server_name,
                                       .documentation = config->documentation,
                                       .type = CONFIG_INT,
                                       .source = (int8_t)(group     ? CONFIG_OF_GROUP
                                                          : started ? CONFIG_OF_SERVER
                                                                    : CONFIG_STANDARD)};
        if (!out[i].value.ptr || !out[i].standard.ptr || (started && !out[i].started_with.ptr))
            return ST_NO_MEMORY;
    }
    return ST_OK;
}

/* ---- what is changed; the texts are Kafka's ---- */

static enum status refuse(struct str problem, struct str *problem_out) {
    *problem_out = problem;
    return problem.ptr ? ST_INVALID : ST_NO_MEMORY;
}

static enum status wish_take(struct arena *a, const struct config_wish *wish,
                             struct backend_group_settings *out, struct str *problem_out) {
    int config = group_config_find(wish->key);
    if (wish->verb == CONFIG_APPEND || wish->verb == CONFIG_SUBTRACT)
        return refuse(arena_printf(a, "Can't %s to key %.*s because its type is not LIST.",
                                   wish->verb == CONFIG_APPEND ? "APPEND" : "SUBTRACT", wish->key.len,
                                   wish->key.ptr),
                      problem_out);
    if (wish->verb == CONFIG_DELETE) {
        if (config >= 0)
            *value_of(out, config) = 0;
        return ST_OK;
    }
    if (config < 0)
        return refuse(arena_printf(a, "Unknown group config name: %.*s", wish->key.len, wish->key.ptr),
                      problem_out);
    const struct backend_setting setting = {group_configs[config].name, wish->value};
    return config_int_parse(a, &setting, value_of(out, config), problem_out);
}

static enum status check_bounds(const struct kafka *k, struct arena *a, struct backend_group_settings *s,
                                struct str *problem_out) {
    for (int i = 0; i < GROUP_CONFIGS_COUNT; i++)
        if (*value_of(s, i) && !is_in_bounds(k, i, *value_of(s, i)))
            return refuse(arena_printf(a, "%s must be in the range %" PRId32 " to %" PRId32 " inclusive.",
                                       group_configs[i].name.ptr, least_of(k, i), most_of(k, i)),
                          problem_out);
    int32_t session = s->session_ms ? s->session_ms : k->group_times.session_ms;
    int32_t heartbeat = s->heartbeat_ms ? s->heartbeat_ms : k->group_times.heartbeat_ms;
    if (session > heartbeat)
        return ST_OK;
    return refuse(arena_printf(a, "%s must be greater than %s", group_configs[SESSION].name.ptr,
                               group_configs[HEARTBEAT].name.ptr),
                  problem_out);
}

enum status group_configs_change(const struct kafka *k, struct arena *a,
                                 const struct backend_group_settings *own, const struct config_wishes *wishes,
                                 struct backend_group_settings *out, struct str *problem_out) {
    *out = wishes->replaces ? (struct backend_group_settings){0} : *own;
    for (int32_t i = 0; i < wishes->count; i++) {
        enum status st = wish_take(a, &wishes->items[i], out, problem_out);
        if (st)
            return st;
    }
    return check_bounds(k, a, out, problem_out);
}
