/*
 * The Iggy protocol over the embedded log: official SDKs log in, and read and write the same topics as Kafka clients.
 * Protocol versions 0.11 and 0.12, each client in its own layouts. One node, no cluster. docs/IGGY.md.
 */
#ifndef IGGY_SERVER_IGGY_SERVER_H
#define IGGY_SERVER_IGGY_SERVER_H

#include "backend/backend.h"
#include "iggy/iggy.h"
#include "net/budget.h"
#include "store/store.h"
#include "users/users.h"

struct iggy_server;
struct tls;

struct iggy_server_settings {
    const char *bind_address; /* "IP:port"; port 0: any */
    int64_t connections_max, read_ms, write_ms;
    uint32_t version_least,
        version_newest; /* whom to let in: enum iggy_version; IGGY_0_11 .. IGGY_NEWEST is everyone */
    const char *cluster_id;
    const char *data_dir;    /* whose disk get_stats tells about */
    struct store *store;     /* the backend's */
    struct backend *backend; /* backend/store */
    struct users *users;
    struct budget *budget;
    struct tls *tls; /* NULL: plain */
    struct loop **loops;
    int loops_count;
};

/* Bind. Texts are copied, all else is borrowed. Before the loops start. Statuses as listener_new. */
enum status iggy_server_new(const struct iggy_server_settings *settings, struct iggy_server **out) MUST_USE;
int iggy_server_port(const struct iggy_server *s); /* bound */
void iggy_server_open(struct iggy_server *s);      /* begin to accept; any thread */

/* Drain as listener_drain; polls that wait end at once. done: all connections are gone. Any thread. */
void iggy_server_stop(struct iggy_server *s, int64_t drain_ms, struct op *done);
void iggy_server_free(struct iggy_server *s); /* after the loops have stopped; takes NULL */
#endif
