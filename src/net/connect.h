/* Outgoing connections: the same struct conn that a listener makes, with frames in and answers out (net/conn.h). */
#ifndef NET_CONNECT_H
#define NET_CONNECT_H

#include "net/conn.h"

struct connector;

struct connector_settings {
    struct loop *loop; /* its connections live here */
    const struct conn_protocol *protocol;
    struct conn_settings conn; /* copied; conn.tls NULL: plain */
    void *user;                /* connector_user(conn) */
};

/* For one loop; borrowed as long as the connector: protocol, budget, tls. ST_NO_MEMORY. */
enum status connector_new(const struct connector_settings *settings, struct connector **out) MUST_USE;

/* One attempt. Embedded by its user. */
struct connect {
    struct op op; /* op_init'ed by the user on the connector's loop. ST_OK: conn is there; can be cancelled */
    struct conn *conn; /* out, with ST_OK; on_open has not run yet, and runs before anything else of it */
    const char *
        failed; /* out, else: what went wrong in English ("connection refused"); static or connector's, until the next attempt */
    void *use;  /* connector's own */
};

/*
 * Look up host (a name or an IP), connect to port, with TLS shake hands; try its addresses in turn. On the loop.
 * tls_name     the name that the certificate must have; NULL: host. Without TLS unused
 * timeout_ms   for all of it
 * op.status    ST_OK; ST_UNAVAILABLE: refused, unreachable, no such host; ST_TIMED_OUT; ST_INVALID: the certificate isn't good;
 *              ST_CANCELED; ST_NO_MEMORY
 */
void connector_connect(struct connector *c, struct connect *attempt, const char *host, int port,
                       const char *tls_name, int64_t timeout_ms);

/* All connections that it has handed out must have been closed (on_closed has returned). Takes NULL. On the loop, or after the loop has stopped. */
void connector_free(struct connector *c);

void *connector_user(const struct conn *c); /* settings.user of the connector that made c */
#endif
