/*
 * start: process limits -> work pool -> loops made -> budget -> TLS files -> backend -> listener bound -> loops run -> listener open
 * stop:  signal -> listener drained -> backend drained -> work pool and loops end -> all is freed
 *
 * SIGINT, SIGTERM and SIGHUP are blocked in every thread, so that the main thread can wait for them.
 */
#include "app/server.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <uv.h>

#include "app/iggy_side.h"
#include "app/listen_tls.h"
#include "app/notify.h"
#include "app/topic_map_file.h"
#include "backend/iggy/iggy_backend.h"
#include "backend/store/store_backend.h"
#include "backend/stub/stub_backend.h"
#include "base/logging.h"
#include "base/mem.h"
#include "group/coordinator.h"
#include "kafka/kafka.h"
#include "net/budget.h"
#include "net/loop.h"
#include "net/tls.h"
#include "net/work.h"

#define MINUTE_MS         ((int64_t)60000)
#define OTHER_FILES_COUNT 256 /* what is open beside connections: segments, the catalog, loops */
#define RECORD_BYTES_MIN  64  /* one record slot for so many bytes of a batch (D1-40) */
#define WORK_THREADS_MIN \
    16 /* most of them wait for the disk: a sync takes a thread as long as the disk takes */
#define ARENAS_MAX      4
#define FETCH_READ      1 /* places in config.def's choices */
#define UNMAPPABLE_SKIP 1
#define STUB_CLUSTER_ID "iggy-gateway-kafka" /* it has no place to keep one of its own */

struct server {
    const struct config *config;
    struct loop **loops; /* owned, as all below */
    int loops_count;
    bool work_started;
    struct budget *budget;
    struct topic_map topic_map;
    struct tls *iggy_tls; /* to the Iggy server; NULL: plain */
    struct listen_tls listen_tls;
    struct backend *backend;
    struct kafka *kafka;
    struct iggy_side iggy;
    struct op drain, iggy_drain;
    uv_sem_t drained;
};

/* ---- the process ---- */

static void raise_open_files(int64_t connections_max) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < (rlim_t)connections_max + OTHER_FILES_COUNT)
        log_line(LOG_WARN, "app", "IGGY_KAFKA_MAX_CONNECTIONS is more than the limit on open files allows",
                 LINT("max_connections", connections_max), LINT("open_files_max", limit.rlim_cur));
}

/* Frames and answers of megabytes come and go all the time: keep their memory instead of mapping it anew. */
static void tune_memory(void) {
#ifdef __GLIBC__
    (void)mallopt(M_MMAP_THRESHOLD, 4 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 64 << 20);
    (void)mallopt(M_ARENA_MAX, ARENAS_MAX);
#endif
}

static void awaited_signals(sigset_t *out) {
    sigemptyset(out);
    sigaddset(out, SIGINT);
    sigaddset(out, SIGTERM);
    sigaddset(out, SIGHUP);
}

static void prepare_process(const struct config *c) {
    sigset_t awaited;
    awaited_signals(&awaited);
    pthread_sigmask(SIG_BLOCK, &awaited, NULL);
    signal(SIGPIPE, SIG_IGN); /* a peer that left is an error of one write */
    signal(SIGXFSZ, SIG_IGN); /* so is a file that may not grow */
    raise_open_files(c->max_connections);
    tune_memory();
}

/* ---- building ---- */

static enum status start_failed(enum status st, const char *message, const char *what, const char *value) {
    log_line(LOG_ERROR, "app", message, LTEXT(what, value), LTEXT("reason", status_text(st)));
    return st;
}

static enum status build_loops(struct server *s) {
    const struct config *c = s->config;
    s->loops = mem_take_zeroed((size_t)c->threads, sizeof *s->loops);
    if (!s->loops)
        return ST_NO_MEMORY;
    for (; s->loops_count < c->threads; s->loops_count++) {
        enum status st = loop_new(s->loops_count, &s->loops[s->loops_count]);
        if (st)
            return st;
    }
    return budget_new(c->memory_budget, &s->budget);
}

static enum status build_threads(struct server *s) {
    int work_threads = (int)s->config->threads * 4;
    enum status st = work_start(work_threads < WORK_THREADS_MIN ? WORK_THREADS_MIN : work_threads);
    s->work_started = st == ST_OK;
    if (!st)
        st = build_loops(s);
    return st ? start_failed(st, "can't make the threads", "threads", s->config->texts[CONFIG_THREADS])
              : ST_OK;
}

static enum status build_store(struct server *s) {
    const struct config *c = s->config;
    const struct store_backend_settings settings = {
        .data_dir = c->data_dir,
        .segment_bytes = c->segment_bytes,
        .segment_ms = c->segment_ms,
        .retention_ms = c->retention_ms,
        .retention_bytes = c->retention_bytes,
        .fsync = (enum store_fsync)c->fsync.policy,
        .fsync_interval_ms = c->fsync.interval_ms,
        .stream = c->iggy_stream,
        .batch_bytes_max = c->max_frame_size,
        .slots_max = c->max_frame_size / RECORD_BYTES_MIN,
        .skip_unmappable = c->unmappable == UNMAPPABLE_SKIP,
        .cluster_id = c->cluster_id,
        .home = s->loops[0],
    };
    struct store_error error = {""};
    enum status st = store_backend_new(&settings, &s->backend, &error);
    if (st)
        log_line(LOG_ERROR, "app", "can't open the data folder", LTEXT("data_dir", c->data_dir),
                 LTEXT("reason", error.text[0] ? error.text : status_text(st)));
    return st;
}

/* one line, whatever fails. */
static enum status bridge_failed(enum status st, const char *reason) {
    log_line(LOG_ERROR, "app", "can't start the bridge",
             LTEXT("reason", reason[0] ? reason : status_text(st)));
    return st;
}

static enum status build_bridge_parts(struct server *s, char reason[TOPIC_MAP_REASON_BYTES]) {
    const struct config *c = s->config;
    enum status st = topic_map_load(c->topic_map_path, c->iggy_stream, &s->topic_map, reason);
    if (!st && c->iggy_tls_enabled)
        st = tls_client_new(c->iggy_tls_ca_file, &s->iggy_tls, reason);
    return st;
}

static enum status build_bridge(struct server *s) {
    const struct config *c = s->config;
    char reason[TOPIC_MAP_REASON_BYTES] = "", host[256];
    enum status st = build_bridge_parts(s, reason);
    if (st)
        return bridge_failed(st, reason);
    const struct iggy_backend_settings settings = {
        .host = host,
        .port = address_split(c->iggy_addr, host, sizeof host),
        .username = c->iggy_username,
        .password = c->iggy_password,
        .tls = s->iggy_tls,
        .tls_name = c->iggy_tls_domain && c->iggy_tls_domain[0] ? c->iggy_tls_domain : NULL,
        .topic_map = &s->topic_map,
        .send_bytes_max = c->iggy_max_message_size,
        .batch_bytes_max = c->max_frame_size,
        .slots_max = c->max_frame_size / RECORD_BYTES_MIN,
        .produce_sessions = (int32_t)c->produce_sessions,
        .produce_session_idle_ms = c->produce_session_idle_secs * 1000,
        .read_below_start = c->fetch_below_start == FETCH_READ,
        .accept_compact = c->accept_compact,
        .skip_unmappable = c->unmappable == UNMAPPABLE_SKIP,
        .cluster_id = c->cluster_id,
        .budget = s->budget,
        .loops = s->loops,
        .loops_count = s->loops_count,
    };
    st = iggy_backend_new(&settings, &s->backend, reason);
    return st ? bridge_failed(st, reason) : ST_OK;
}

static enum status build_backend(struct server *s) {
    if (s->config->backend == BACKEND_EMBEDDED)
        return build_store(s);
    if (s->config->backend == BACKEND_IGGY)
        return build_bridge(s);
    enum status st = stub_backend_new(&s->backend);
    return st ? start_failed(st, "can't make the backend", "backend", "stub") : ST_OK;
}

static const char *cluster_id(const struct server *s) {
    if (s->config->backend == BACKEND_EMBEDDED)
        return store_backend_cluster_id(s->backend);
    if (s->config->backend == BACKEND_IGGY)
        return iggy_backend_cluster_id(s->backend);
    return s->config->cluster_id ? s->config->cluster_id : STUB_CLUSTER_ID;
}

/* D11-80; the rest as it stands there. */
static void group_settings(const struct config *c, struct coordinator_settings *out) {
    coordinator_settings_default(out);
    out->session_min_ms = (int32_t)c->group_min_session_timeout_ms;
    out->session_max_ms = (int32_t)c->group_max_session_timeout_ms;
    out->rebalance_max_ms = (int32_t)c->group_max_rebalance_timeout_ms;
    out->initial_delay_ms = (int32_t)c->group_initial_rebalance_delay_ms;
    out->consumer_session_ms = (int32_t)c->group_consumer_session_timeout_ms;
    out->consumer_heartbeat_ms = (int32_t)c->group_consumer_heartbeat_interval_ms;
    out->groups_max = (int32_t)c->group_max_groups;
    out->members_per_group_max = (int32_t)c->group_max_size;
    out->members_max = (int32_t)c->group_max_members;
    out->blob_bytes_max = (int32_t)c->group_max_metadata_size;
    out->roster_bytes_max = (int32_t)c->group_max_roster_size;
    out->bytes_max = c->group_memory;
}

static enum status build_listener(struct server *s) {
    const struct config *c = s->config;
    bool keeps_log = c->backend == BACKEND_EMBEDDED;
    struct coordinator_settings groups;
    group_settings(c, &groups);
    const struct kafka_settings settings = {
        .bind_address = c->bind_addr,
        .advertised_host = c->advertised_host,
        .advertised_port = (int)c->advertised_port,
        .connections_max = c->max_connections,
        .frame_bytes_max = c->max_frame_size,
        .idle_ms = c->idle_timeout_secs * 1000,
        .read_ms = c->read_timeout_secs * 1000,
        .write_ms = c->write_timeout_secs * 1000,
        .in_flight_max = (int32_t)c->max_in_flight,
        .instance_id = (uint16_t)c->instance_id,
        .auto_create_topics = c->auto_create_topics,
        .partitions_default = (int32_t)c->default_partitions,
        .accept_compact = c->accept_compact,
        .accept_any_replication = c->accept_any_replication,
        .append_times = keeps_log,
        .recodes = keeps_log,
        .retention_ms = keeps_log ? c->retention_ms : 0,
        .retention_bytes = keeps_log ? c->retention_bytes : 0,
        .segment_bytes = keeps_log ? c->segment_bytes : 0,
        .segment_ms = keeps_log ? c->segment_ms : 0,
        .offsets_retention_ms = keeps_log ? c->offsets_retention_minutes * MINUTE_MS : 0,
        .groups = &groups,
        .cluster_id = cluster_id(s),
        .backend = s->backend,
        .tls = s->listen_tls.kafka,
        .budget = s->budget,
        .loops = s->loops,
        .loops_count = s->loops_count,
    };
    errno = 0;
    enum status st = kafka_new(&settings, &s->kafka);
    if (st)
        log_line(LOG_ERROR, "app", "can't listen", LTEXT("address", c->bind_addr),
                 LTEXT("reason", st == ST_IO && errno != 0 ? strerror(errno) : status_text(st)));
    return st;
}

static enum status server_build(struct server *s) {
    enum status st = build_threads(s);
    if (!st)
        st = listen_tls_build(&s->listen_tls, s->config);
    if (!st)
        st = build_backend(s);
    if (!st)
        st = build_listener(s);
    const struct iggy_side_parts parts = {s->backend, s->listen_tls.iggy, s->budget, s->loops,
                                          s->loops_count};
    return st ? st : iggy_side_build(&s->iggy, s->config, &parts);
}

/* All that is there; the loops run no more, or never ran. */
static void server_release(struct server *s) {
    kafka_free(s->kafka);
    iggy_side_release(&s->iggy);
    if (s->config->backend == BACKEND_EMBEDDED)
        store_backend_free(s->backend);
    else if (s->config->backend == BACKEND_IGGY)
        iggy_backend_free(s->backend);
    else
        stub_backend_free(s->backend);
    topic_map_release(&s->topic_map);
    tls_free(s->iggy_tls);
    listen_tls_release(&s->listen_tls);
    budget_free(s->budget);
    for (int i = 0; i < s->loops_count; i++)
        loop_free(s->loops[i]);
    mem_free(s->loops);
}

/* ---- running ---- */

static void log_ready(const struct server *s) { /* */
    const struct config *c = s->config;
    char bound[128], advertised[512];
    const char *host = kafka_advertised_host(s->kafka);
    bool is_ipv6 = strchr(host, ':') != NULL;
    snprintf(bound, sizeof bound, "%.*s:%d", (int)(strrchr(c->bind_addr, ':') - c->bind_addr), c->bind_addr,
             kafka_port(s->kafka));
    snprintf(advertised, sizeof advertised, "%s%s%s:%d", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "",
             kafka_advertised_port(s->kafka));
    log_line(LOG_INFO, "app", "listening for Kafka clients", LTEXT("address", bound),
             LTEXT("advertised", advertised), LTEXT("tls", listen_tls_name(c)),
             LTEXT("backend", s->backend->ops->name),
             LTEXT("data_dir", c->backend == BACKEND_EMBEDDED ? c->data_dir : "none"),
             LTEXT("cluster_id", cluster_id(s)), LINT("instance_id", c->instance_id),
             LINT("threads", c->threads), LINT("memory_budget", c->memory_budget),
             LTEXT("version", KGW_VERSION));
}

static enum status server_open(struct server *s) {
    for (int i = 0; i < s->loops_count; i++) {
        enum status st = loop_start(s->loops[i]);
        if (st)
            return start_failed(st, "can't start a thread", "threads", s->config->texts[CONFIG_THREADS]);
    }
    if (s->config->backend == BACKEND_EMBEDDED)
        store_backend_start(s->backend);
    kafka_open(s->kafka);
    log_ready(s);
    iggy_side_open(&s->iggy, s->config);
    notify_send(getenv("NOTIFY_SOCKET"), "READY=1");
    return ST_OK;
}

/*
 * Blocks until the first stop signal; after it the next one has its usual effect and ends the process. SIGHUP never does: it
 * means that there are new files.
 */
static int wait_for_stop(const struct server *s) {
    sigset_t awaited;
    int signal_number = SIGHUP;
    awaited_signals(&awaited);
    while (signal_number == SIGHUP)
        if (sigwait(&awaited, &signal_number) == 0 && signal_number == SIGHUP)
            listen_tls_reload(&s->listen_tls, s->config);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigdelset(&awaited, SIGHUP);
    pthread_sigmask(SIG_UNBLOCK, &awaited, NULL);
    return signal_number;
}

static void server_on_drained(struct op *op) {
    uv_sem_post(&container_of(op, struct server, drain)->drained);
}

static void server_on_iggy_drained(struct op *op) {
    uv_sem_post(&container_of(op, struct server, iggy_drain)->drained);
}

static void server_close(struct server *s) { /* B-50 */
    int64_t drain_ms = s->config->shutdown_drain_timeout_secs * 1000;
    notify_send(getenv("NOTIFY_SOCKET"), "STOPPING=1");
    op_init(&s->drain, s->loops[0], server_on_drained);
    op_init(&s->iggy_drain, s->loops[0], server_on_iggy_drained);
    kafka_stop(s->kafka, drain_ms, &s->drain);
    bool both = iggy_side_stop(&s->iggy, drain_ms, &s->iggy_drain);
    uv_sem_wait(&s->drained);
    if (both)
        uv_sem_wait(&s->drained);
    if (s->config->backend == BACKEND_EMBEDDED)
        store_backend_stop(s->backend);
    if (s->config->backend == BACKEND_IGGY)
        iggy_backend_stop(s->backend);
}

int server_run(const struct config *config) {
    struct server s = {.config = config};
    prepare_process(config);
    enum status st = uv_sem_init(&s.drained, 0) == 0 ? server_build(&s) : ST_NO_MEMORY;
    if (!st && server_open(&s))
        _exit(1); /* some threads run, nothing was accepted: there is nothing to save */
    if (!st) {
        int signal_number = wait_for_stop(&s);
        log_line(LOG_INFO, "app", "stopping",
                 LTEXT("signal", signal_number == SIGINT ? "SIGINT" : "SIGTERM"));
        server_close(&s);
    }
    if (s.work_started)
        work_stop();
    for (int i = 0; !st && i < s.loops_count; i++)
        loop_stop(s.loops[i]);
    server_release(&s);
    if (!st)
        log_line(LOG_INFO, "app", "stopped");
    return st ? 1 : 0;
}
