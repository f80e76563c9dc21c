/* A client's parts, for iggy_client.c (connection, session, time) and request.c (calls). All on the client's loop. */
#ifndef IGGY_CLIENT_CLIENT_IMPL_H
#define IGGY_CLIENT_CLIENT_IMPL_H

#include "iggy_client/iggy_client.h"
#include "net/connect.h"
#include "net/timer.h"

enum client_phase {
    CLIENT_IDLE,       /* nothing happens until somebody asks */
    CLIENT_PAUSED,     /* until again_ms */
    CLIENT_CONNECTING, /* attempt is under way */
    CLIENT_ONLINE,     /* there is a conn; how far it is, the session says */
};

struct iggy_client {
    struct loop *loop;
    struct connector *connector;
    struct iggy_session session;
    struct iggy_session_config config;
    char *host, *username, *password, *tls_name; /* owned */
    int port;
    int64_t connect_ms;
    char leader[256]; /* if not "": where to connect instead of host */
    int leader_port;

    enum client_phase phase;
    struct connect attempt;
    struct conn *conn;
    bool leaving;    /* conn has been closed, on_closed is still to come */
    bool was_ready;  /* on this connection */
    bool was_of_use; /* and a request was answered */
    bool goes_on;    /* the session wants another connection at once */
    bool tried_bind; /* with this connection: to go on with the session of the last one */
    uint32_t tried_version;
    uint64_t attempts; /* begun: one is all connections until the session is ready */
    int32_t hops;      /* connections of this attempt */
    int64_t again_ms;  /* no attempt before */
    int64_t pause_ms;  /* after the next failure */
    int64_t ready_ms;
    int64_t refused_ms; /* until then the login counts as refused; 0: it doesn't */
    char failed[192];

    struct op pump;       /* hook at the end of the loop's iteration */
    struct timer timer;   /* always set, so that setting it can't fail */
    struct link requests; /* struct iggy_request by link, in the order of the calls */
    struct link waits;    /* struct iggy_wait by link */
    int32_t in_flight, without_version;
    uint32_t version;
    struct iggy_u128 cluster;
    int64_t used_ms;

    struct op *closed; /* the caller's; NULL: the client isn't being closed */
    struct op gone;
};

/* Let the client look at everything at the end of this iteration; connect if it is idle. */
void client_wake(struct iggy_client *c);

/* Whether a login was refused so recently that it isn't tried again. */
bool client_is_refused(const struct iggy_client *c);

/* Close the connection, if there is one: it ends in on_closed. */
void client_drop(struct iggy_client *c);

/* Post the last step when the client is being closed and nothing of it is left. */
void client_check_gone(struct iggy_client *c);

/* request.c */

/* Hand all requests that waited for a version to the session. */
void requests_queue(struct iggy_client *c);

/* End with ST_TIMED_OUT what waits for a version and is late. Gives when the next one is. */
int64_t requests_expire(struct iggy_client *c, int64_t now_ms);

/* The session's event. f: goes to the request if its answer is in it; then it is NULL. */
void request_on_answer(const struct iggy_event *e, struct frame **f);
void request_on_failed(const struct iggy_event *e, int64_t now_ms);

/* End with st what has not been sent, if it was there before the running attempt, or all. A write that may have landed earlier:
 * in the first case it stays, in the second its end says so. */
void requests_end_queued(struct iggy_client *c, enum status st, bool all);
void requests_cancel_all(struct iggy_client *c);

/* Write what the session puts out. ST_NO_MEMORY, ST_INVALID: the connection is of no use any more. */
enum status requests_send(struct iggy_client *c, int64_t now_ms) MUST_USE;
#endif
