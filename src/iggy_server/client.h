/*
 * What a connection is to Iggy: its session and its requests under way.
 *
 *   frame -> request started -> ... -> its reply is written -> gone
 *
 * Up to CLIENT_IN_FLIGHT requests run beside each other; one that blocks, and a login, runs alone: reading pauses until its reply.
 * All on the connection's loop.
 */
#ifndef IGGY_SERVER_CLIENT_H
#define IGGY_SERVER_CLIENT_H

#include "iggy_server/request.h"
#include "iggy_server/session.h"

#define CLIENT_IN_FLIGHT 256
#define CLIENT_DEFERRED  64      /* polls that wait */
#define CLIENT_SILENT_MS 36000   /* a group member that sends nothing for so long is evicted */
#define CLIENT_LOGIN_MS  60000   /* without a login a connection may be idle for so long */
#define CLIENT_IDLE_MS   3600000 /* and with one; official clients ping every 5 s */
#define CLIENT_LOGIN_BYTES \
    65536 /* of a frame before the login: who has no password can't reserve the memory of those who have */

struct client {
    struct iggy_server *server;
    struct conn *conn; /* NULL once it has closed; the client stays until its last request has ended */
    struct link link;  /* in iggy_loop.clients */
    struct link requests;
    uint32_t number;
    struct session *session; /* held; NULL: not logged in */
    uint32_t version;        /* of the session */
    int32_t in_flight, deferred;
    int64_t polls_bytes; /* what its polls have read, or will, and it hasn't taken yet; handlers/polls.c */
    struct link polls;   /* those that wait until it has taken some of that */
    int64_t heard_ms;    /* its last frame, monotonic */
    bool alone;          /* a request that wants to be alone is under way */
    bool ending;         /* no more frames come */
    bool closing;        /* it is being closed by us */
    _Atomic bool left;   /* nobody waits for answers any more; for a login that is still to be checked */
};

/* The protocol table for the listener. */
extern const struct conn_protocol client_protocol;

/* Take a session over, held for it; NULL: logged out. What it had before is let go of. */
void client_set_session(struct client *c, struct session *session, uint32_t version);

/* Whether it is logged in, still. */
bool client_has_session(struct client *c);

/* r has its reply in r->write, or has none (r->write.out is empty). */
void client_send(struct client *c, struct server_request *r);

/* From now on reading pauses until r, the newest, has its reply. */
void client_run_alone(struct client *c);

/* End what the requests wait for (op_cancel): all of them, or the one with this number. */
void client_cancel(struct client *c);
void client_cancel_number(struct client *c, uint64_t number);

/* What is wrong with the connection: an answer can't be made. It closes. */
void client_close(struct client *c, const char *why);

/* Evict a member of a group that has been silent for too long. */
void client_check_silence(struct client *c, int64_t now_ms);
#endif
