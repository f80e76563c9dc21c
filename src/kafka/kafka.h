/* The Kafka listener: all that app/ needs. Spec A.1-A.2, B. */
#ifndef KAFKA_KAFKA_H
#define KAFKA_KAFKA_H

#include "backend/backend.h"
#include "net/budget.h"

struct coordinator_settings;
struct kafka;
struct tls;

struct kafka_settings {
    const char *bind_address;    /* "IP:port"; port 0: any */
    const char *advertised_host; /* NULL: the bound IP, an error when that is a wildcard */
    int advertised_port;         /* 0: the bound one */
    int64_t connections_max, frame_bytes_max;
    int64_t idle_ms, read_ms, write_ms;
    int32_t in_flight_max; /* requests started on one connection */
    uint16_t instance_id;
    bool auto_create_topics;
    int32_t partitions_default;
    bool accept_compact, accept_any_replication;
    bool append_times; /* the backend does what message.timestamp.type=LogAppendTime asks for */
    bool recodes;      /* and what compression.type asks for */
    int64_t retention_ms,
        retention_bytes; /* of topics that set none, as DescribeConfigs shows it; -1: unlimited */
    int64_t segment_bytes, segment_ms; /* 0, all four: the backend has no such settings */
    int64_t offsets_retention_ms;      /* of groups that nobody uses; 0: for ever, or the backend's matter */
    const struct coordinator_settings *groups; /* without random and ctx; NULL: the defaults */
    const char *cluster_id;
    struct backend *backend;
    struct tls *tls; /* NULL: plain */
    struct budget *budget;
    struct loop **loops;
    int loops_count;
};

/* Bind. Settings, those of groups and their texts are copied; backend, tls, budget and loops are borrowed. Before the loops start.
 * ST_INVALID: not an address, or a wildcard without advertised host; others as listener_new. */
enum status kafka_new(const struct kafka_settings *settings, struct kafka **out) MUST_USE;

int kafka_port(const struct kafka *k);                    /* bound */
const char *kafka_advertised_host(const struct kafka *k); /* as long as k */
int kafka_advertised_port(const struct kafka *k);

void kafka_open(struct kafka *k); /* begin to accept; any thread */

/* Drain as listener_drain, waiting Fetches end at once. done: all connections are gone. Any thread. */
void kafka_stop(struct kafka *k, int64_t drain_ms, struct op *done);

void kafka_free(struct kafka *k); /* after the loops have stopped; takes NULL */
#endif
