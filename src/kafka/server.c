#include "kafka/server.h"

#include <arpa/inet.h>

#include <sys/random.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kafka/group_configs.h"
#include "kafka/group_patterns.h"
#include "kafka/groups.h"
#include "kafka/offset_expiry.h"
#include "kafka/session.h"
#include "net/loop.h"

/* The host part of "IP:port" or "[IPv6]:port", as a copy; NULL: no memory. */
static char *host_of(const char *address) {
    const char *colon = strrchr(address, ':');
    struct str host = {address, (int32_t)(colon ? colon - address : (ptrdiff_t)strlen(address))};
    if (host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
        host = (struct str){host.ptr + 1, host.len - 2};
    return mem_text(host);
}

static bool is_wildcard(const char *host) {
    struct in6_addr any6;
    struct in_addr any4;
    if (inet_pton(AF_INET, host, &any4) == 1)
        return any4.s_addr == htonl(INADDR_ANY);
    return inet_pton(AF_INET6, host, &any6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&any6);
}

static enum status kafka_set_address(struct kafka *k, const struct kafka_settings *from) {
    char *host =
        from->advertised_host ? mem_text(str_of(from->advertised_host)) : host_of(from->bind_address);
    if (!host)
        return ST_NO_MEMORY;
    k->advertised_host = str_of(host);
    if (!from->advertised_host && is_wildcard(host))
        return ST_INVALID; /* */
    char *cluster = mem_text(str_of(from->cluster_id));
    if (!cluster)
        return ST_NO_MEMORY;
    k->cluster_id = str_of(cluster);
    return ST_OK;
}

/* Unguessable as long as the kernel gives bytes; else at least never the same. */
static void groups_random(void *ctx, uint8_t out[16]) {
    struct kafka *k = ctx;
    if (getrandom(out, 16, 0) != 16) {
        int64_t parts[2] = {clock_us(), atomic_fetch_add(&k->next_producer, 1)};
        memcpy(out, parts, 16);
    }
}

static bool groups_topic_find(void *ctx, struct str name, struct group_topic *out) {
    return group_topics_find(((struct kafka *)ctx)->group_topics, name, out);
}

static bool groups_has_offsets(void *ctx, struct str group) {
    return backend_group_has_offsets(((struct kafka *)ctx)->settings.backend, group);
}

static enum status kafka_make_expiry(struct kafka *k) {
    const struct offset_expiry_settings settings = {k->settings.backend, k->groups, k->settings.loops[0],
                                                    k->settings.offsets_retention_ms};
    return settings.retention_ms > 0 ? offset_expiry_new(&settings, &k->offset_expiry) : ST_OK;
}

static enum group_pattern groups_pattern_find(void *ctx, struct str pattern, struct group_matches *out) {
    return group_patterns_find(group_topics_patterns(((struct kafka *)ctx)->group_topics), pattern, out);
}

static void groups_times_find(void *ctx, struct str group, struct group_times *times) {
    const struct kafka *k = ctx;
    const struct backend_group_settings own = backend_group_settings(k->settings.backend, group);
    group_configs_apply(k, &own, times);
}

static enum status kafka_make_groups(struct kafka *k) {
    const struct group_topics_settings topics = {k->settings.backend, k->settings.loops[0], &k->groups};
    struct coordinator_settings settings;
    coordinator_settings_default(&settings);
    if (k->settings.groups)
        settings = *k->settings.groups;
    k->settings.groups = NULL; /* copied */
    k->group_times = (struct group_times){settings.consumer_session_ms, settings.consumer_heartbeat_ms};
    settings.random = groups_random;
    settings.topic_find = groups_topic_find;
    settings.has_offsets = k->settings.backend->ops->group_has_offsets ? groups_has_offsets : NULL;
    settings.pattern_find = groups_pattern_find;
    settings.times_find = groups_times_find;
    settings.ctx = k;
    enum status st = group_topics_new(&topics, &k->group_topics);
    if (!st)
        st = groups_new(&settings, k->settings.loops[0], &k->groups);
    return st ? st : kafka_make_expiry(k);
}

/* ---- the end ----
 *
 * The listener's drain comes first on every loop, so that no request is read any more when the groups end: a heartbeat or commit that is under way
 * has its real answer, what comes later a closed connection, as with Kafka. Some clients (kafkajs) give up when they are sent elsewhere (16) by a
 * server that then goes.
 */

static void kafka_on_loop_stop(struct op *op) {
    struct kafka_loop *here = container_of(op, struct kafka_loop, stop);
    struct kafka *k = here->kafka;
    for (struct link *l = here->sessions.next; l != &here->sessions; l = l->next)
        session_cancel(container_of(l, struct session, link));
    if (atomic_fetch_sub(&k->reading, 1) == 1)
        groups_stop(k->groups);
}

/* Behind the start of the drain, which goes to the loops from this one. */
static void kafka_on_stop(struct op *op) {
    struct kafka *k = container_of(op, struct kafka, stop);
    for (int i = 0; i < k->settings.loops_count; i++)
        loop_post(&k->per_loop[i].stop);
}

enum status kafka_new(const struct kafka_settings *settings, struct kafka **out) {
    struct kafka *k = mem_take_zeroed(1, sizeof *k);
    if (!k)
        return ST_NO_MEMORY;
    k->settings = *settings;
    int64_t fetches_bytes = budget_free_bytes(settings->budget) / 2;
    k->node_id = settings->instance_id + 1;
    atomic_store(&k->next_producer, clock_wall_ms() > 0 ? clock_wall_ms() : 0);
    enum status st = kafka_set_address(k, settings);
    if (!st)
        st = budget_new(fetches_bytes, &k->fetches);
    if (!st)
        st = kafka_make_groups(k);
    if (st)
        goto fail;

    k->per_loop = mem_take_zeroed((size_t)settings->loops_count, sizeof *k->per_loop);
    st = ST_NO_MEMORY;
    if (!k->per_loop)
        goto fail;
    for (int i = 0; i < settings->loops_count; i++) {
        k->per_loop[i].kafka = k;
        list_init(&k->per_loop[i].sessions);
        op_init(&k->per_loop[i].stop, settings->loops[i], kafka_on_loop_stop);
    }
    op_init(&k->stop, settings->loops[0], kafka_on_stop);
    atomic_store(&k->reading, settings->loops_count);
    const struct listener_settings listen = {
        .address = settings->bind_address,
        .connections_max = settings->connections_max,
        .protocol = &session_protocol,
        .conn = {.frame_bytes_max = settings->frame_bytes_max,
                 .idle_ms = settings->idle_ms,
                 .read_ms = settings->read_ms,
                 .write_ms = settings->write_ms,
                 .budget = settings->budget,
                 .tls = settings->tls},
        .user = k,
        .loops = settings->loops,
        .loops_count = settings->loops_count,
    };
    st = listener_new(&listen, &k->listener);
    if (st)
        goto fail;
    k->advertised_port =
        settings->advertised_port > 0 ? settings->advertised_port : listener_port(k->listener);
    *out = k;
    return ST_OK;

fail:
    kafka_free(k);
    return st;
}

int kafka_port(const struct kafka *k) {
    return listener_port(k->listener);
}

const char *kafka_advertised_host(const struct kafka *k) {
    return k->advertised_host.ptr;
}

int kafka_advertised_port(const struct kafka *k) {
    return k->advertised_port;
}

void kafka_open(struct kafka *k) {
    offset_expiry_start(k->offset_expiry);
    listener_open(k->listener);
}

void kafka_stop(struct kafka *k, int64_t drain_ms, struct op *done) {
    atomic_store(&k->stopping, true);
    group_topics_stop(k->group_topics);
    offset_expiry_stop(k->offset_expiry);
    listener_drain(k->listener, drain_ms, done);
    loop_post(&k->stop);
}

void kafka_free(struct kafka *k) {
    if (!k)
        return;
    listener_free(k->listener);
    mem_free((void *)(uintptr_t)k->advertised_host.ptr);
    mem_free((void *)(uintptr_t)k->cluster_id.ptr);
    mem_free(k->per_loop);
    budget_free(k->fetches);
    offset_expiry_free(k->offset_expiry);
    groups_free(k->groups);
    group_topics_free(k->group_topics);
    mem_free(k);
}
