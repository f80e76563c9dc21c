/* What must hold between settings that are fine one by one (spec A.2), and what this version doesn't have yet. */
#include <inttypes.h>

#include "app/config_impl.h"
#include "app/machine.h"

#define MEMORY_BUDGET_MAX (INT64_C(2) << 30)

static bool is_set(const struct config *c, enum config_variable v) {
    return c->sources[v] != FROM_DEFAULT;
}

/* decisions "The product" 1: BRIDGE_ENABLED is another way to say BACKEND; both may be set when they agree. */
static void settle_backend(struct config *c, struct config_report *report) {
    if (!is_set(c, CONFIG_BRIDGE_ENABLED))
        return;
    int meant = c->bridge_enabled ? BACKEND_IGGY : BACKEND_STUB;
    if (is_set(c, CONFIG_BACKEND) && c->backend != meant)
        report_add(report,
                   "IGGY_KAFKA_BACKEND=%s and IGGY_KAFKA_BRIDGE_ENABLED=%s contradict each other: "
                   "true means the backend iggy, false means stub; set one of them",
                   c->texts[CONFIG_BACKEND], c->texts[CONFIG_BRIDGE_ENABLED]);
    c->backend = meant;
}

static void settle_auto(struct config *c) {
    if (c->threads == 0)
        c->threads = machine_cores("/sys/fs/cgroup");
    if (c->memory_budget == 0) {
        c->memory_budget = machine_memory_bytes("/sys/fs/cgroup") / 4;
        if (c->memory_budget > MEMORY_BUDGET_MAX)
            c->memory_budget = MEMORY_BUDGET_MAX;
    }
}

static void check_advertised(const struct config *c, struct config_report *report) { /* */
    if (!c->advertised_host && address_is_wildcard(c->bind_addr))
        report_add(report,
                   "IGGY_KAFKA_BIND_ADDR=%s binds every address of the machine: "
                   "IGGY_KAFKA_ADVERTISED_HOST must say which host clients are to connect to",
                   c->bind_addr);
}

static void check_security(const struct config *c, struct config_report *report) {
    bool iggy_tls_text = (c->iggy_tls_domain && c->iggy_tls_domain[0]) || c->iggy_tls_ca_file;
    if (iggy_tls_text && !c->iggy_tls_enabled) /* */
        report_add(report, "%s is set, but IGGY_KAFKA_IGGY_TLS_ENABLED is not true: nothing would use it",
                   c->iggy_tls_ca_file ? "IGGY_KAFKA_IGGY_TLS_CA_FILE" : "IGGY_KAFKA_IGGY_TLS_DOMAIN");
    if (c->iggy_tls_enabled && !c->sasl_enabled &&
        c->backend != BACKEND_IGGY) /* A-32, and decisions: SCRAM, H-7 */
        report_add(report, "IGGY_KAFKA_IGGY_TLS_ENABLED=true needs a connection to Iggy: "
                           "IGGY_KAFKA_BACKEND=iggy or IGGY_KAFKA_SASL_ENABLED=true");
    if (c->backend == BACKEND_IGGY && !c->iggy_password) /* */
        report_add(report, "IGGY_KAFKA_IGGY_PASSWORD must be set when IGGY_KAFKA_BACKEND is iggy");
    if (!c->tls_cert_file != !c->tls_key_file)
        report_add(report, "IGGY_KAFKA_TLS_CERT_FILE and IGGY_KAFKA_TLS_KEY_FILE must be set together");
    if (c->tls_client_ca_file && !c->tls_cert_file)
        report_add(report, "IGGY_KAFKA_TLS_CLIENT_CA_FILE needs IGGY_KAFKA_TLS_CERT_FILE");
    if (c->iggy_listen_tls && !c->tls_cert_file)
        report_add(report, "IGGY_KAFKA_IGGY_LISTEN_TLS=true needs IGGY_KAFKA_TLS_CERT_FILE");
}

static void check_groups(const struct config *c, struct config_report *report) {
    if (c->group_min_session_timeout_ms > c->group_max_session_timeout_ms)
        report_add(report,
                   "IGGY_KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS=%" PRId64
                   " is more than IGGY_KAFKA_GROUP_MAX_SESSION_TIMEOUT_MS=%" PRId64
                   ": no member could join a group",
                   c->group_min_session_timeout_ms, c->group_max_session_timeout_ms);
    if (c->group_consumer_heartbeat_interval_ms >= c->group_consumer_session_timeout_ms)
        report_add(report,
                   "IGGY_KAFKA_GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS=%" PRId64
                   " must be less than IGGY_KAFKA_GROUP_CONSUMER_SESSION_TIMEOUT_MS=%" PRId64
                   ": sessions would end between two heartbeats",
                   c->group_consumer_heartbeat_interval_ms, c->group_consumer_session_timeout_ms);
}

/* An honest error is better than a switch that does nothing. */
static void check_missing(const struct config *c, struct config_report *report) {
    if (c->sasl_enabled)
        report_add(report, "IGGY_KAFKA_SASL_ENABLED=true: this version has no SASL yet");
    if (c->topic_map_path && c->backend == BACKEND_EMBEDDED)
        report_add(report, "IGGY_KAFKA_TOPIC_MAP_PATH=%s: the embedded log has no topic map yet",
                   c->topic_map_path);
}

void config_apply_rules(struct config *c, struct config_report *report) {
    settle_backend(c, report);
    settle_auto(c);
    check_advertised(c, report);
    check_security(c, report);
    check_groups(c, report);
    check_missing(c, report);
}

static bool user_is_on(const struct config *c, enum config_user user) {
    switch (user) {
    case LOG:
        return c->backend != BACKEND_STUB;
    case EMBEDDED:
        return c->backend == BACKEND_EMBEDDED;
    case IGGY:
        return c->backend == BACKEND_IGGY;
    case SASL:
        return c->sasl_enabled;
    default:
        return true;
    }
}

void config_warnings(const struct config *c, struct config_report *report) {
    static const char *const needs[] = {[LOG] = "a backend that keeps records",
                                        [EMBEDDED] = "IGGY_KAFKA_BACKEND=embedded",
                                        [IGGY] = "IGGY_KAFKA_BACKEND=iggy",
                                        [SASL] = "IGGY_KAFKA_SASL_ENABLED=true"};
    memset(report, 0, sizeof *report);
    if (!is_set(c, CONFIG_INSTANCE_ID)) /* */
        report_add(
            report,
            "IGGY_KAFKA_INSTANCE_ID is not set: it must differ between instances that serve the same topics");
    /* On a loopback address only this machine's own users can reach the embedded log; with mutual TLS only whom the
     * roots vouch for can reach any backend. */
    if (c->backend != BACKEND_STUB && !c->sasl_enabled && !c->tls_client_ca_file &&
        (c->backend == BACKEND_IGGY || !address_is_loopback(c->bind_addr)))
        report_add(report, "SASL is off: whoever can reach the port may create topics, delete them and "
                           "shorten their retention");
    for (int v = 0; v < CONFIG_COUNT; v++)
        if (is_set(c, (enum config_variable)v) && !user_is_on(c, config_variables[v].used_by))
            report_add(report, "IGGY_KAFKA_%s has no effect without %s", config_variables[v].name,
                       needs[config_variables[v].used_by]);
}
