/* Accepts connections on one loop and spreads them over all. Spec B.3, B-8, B-9, B.6. */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include "net/conn.h"

struct listener;

struct listener_settings {
    const char *address; /* "IP:port", "[IPv6]:port"; port 0: any */
    int64_t connections_max;
    const struct conn_protocol *protocol; /* borrowed as long as the listener */
    struct conn_settings conn;
    void *user; /* listener_user(conn) for the protocol */
    struct loop **loops;
    int loops_count;
};

/* Bind and listen; nothing is accepted before listener_open. Before the loops start. ST_INVALID: not an address; ST_IN_USE; ST_IO (errno). */
enum status listener_new(const struct listener_settings *settings, struct listener **out) MUST_USE;

int listener_port(const struct listener *l); /* the bound one */
void listener_open(struct listener *l);      /* begin to accept; any thread */

/*
 * Stop accepting; close connections that are idle between frames at once, let the others finish what they have
 * begun, for drain_ms at most; then close the rest. done: all are gone. Any thread.
 */
void listener_drain(struct listener *l, int64_t drain_ms, struct op *done);
void listener_free(struct listener *l); /* after drain, when the loops have stopped; takes NULL */

void *listener_user(const struct conn *c);              /* settings.user of the listener that accepted c */
int64_t listener_connections(const struct listener *l); /* open now; any thread */
#endif
