/*
 * One connection to an Iggy server on a libuv loop: it connects, logs in (iggy/session.h), keeps itself alive, connects again after a
 * loss, and carries calls, many at once. A call always ends: with an answer, or with a status that says whether it may have been done.
 * Everything here runs on the client's loop.
 *
 *   idle -> [first call, or iggy_client_connect] connecting -> logging in -> ready -> [loss] pause -> connecting ..
 */
#ifndef IGGY_CLIENT_IGGY_CLIENT_H
#define IGGY_CLIENT_IGGY_CLIENT_H

#include "base/arena.h"
#include "iggy/session.h"
#include "net/conn.h"

struct iggy_client;
struct tls;

/* Texts are copied. */
struct iggy_client_settings {
    struct loop *loop;
    const char *host; /* a name or an IP */
    int port;
    const char *username, *password;
    uint32_t version_newest; /* the first to try: IGGY_NEWEST, or an older one to stay with it (or below) */
    int32_t in_flight_max;   /* requests without an answer on the connection */
    int64_t connect_ms;      /* one attempt: look-up, connect, TLS */
    struct tls *tls;         /* borrowed; NULL: plain */
    const char *tls_name;    /* NULL: host */
    struct budget *budget;   /* borrowed; for answers */
};

/* ST_NO_MEMORY. Nothing is connected yet. */
enum status iggy_client_new(const struct iggy_client_settings *settings, struct iggy_client **out) MUST_USE;

/*
 * Close. Requests that are left end first (ST_CANCELED; may_have_landed as it is). done runs when nothing of the client is left:
 * it is freed then.
 */
void iggy_client_close(struct iggy_client *c, struct op *done);

/*
 * Wait until it is ready: connects if need be.
 * op.status  ST_OK; ST_UNAVAILABLE: an attempt that began after the call has failed; ST_LOGIN_REFUSED; ST_TIMED_OUT
 */
struct iggy_wait {
    struct op op;               /* op_init'ed by the user; can be cancelled */
    int64_t deadline_ms;        /* monotonic */
    struct iggy_client *client; /* the rest is the client's */
    uint64_t attempt;
    struct link link;
};
void iggy_client_connect(struct iggy_client *c, struct iggy_wait *wait);

bool iggy_client_is_ready(const struct iggy_client *c);
uint32_t iggy_client_version(
    const struct iggy_client *c); /* enum iggy_version; 0: never ready yet. Layouts depend on it */
struct iggy_u128
iggy_client_cluster(const struct iggy_client *c);           /* of the login's reply header; zero: none */
int32_t iggy_client_in_flight(const struct iggy_client *c); /* requests queued and sent */
int64_t iggy_client_used_ms(const struct iggy_client *c);   /* monotonic: when the last request ended */
const char *
iggy_client_failed(const struct iggy_client *c); /* why the last attempt or login failed, in English; "" */

/*
 * One request. Embedded by its user; zeroed, then op_init, then iggy_client_call; release when it is done with.
 *
 * in   op, deadline_ms (monotonic), context (P12: of the partition), once (never send twice though it reads)
 * out  op.status     ST_OK             an answer came: code tells what it is
 *                    ST_UNAVAILABLE    no connection: it was not done
 *                    ST_TIMED_OUT      deadline or loss: may_have_landed tells
 *                    ST_LOGIN_REFUSED  the user may not log in: it was not done
 *                    ST_CANCELED       as asked
 *                    ST_INVALID, ST_TOO_BIG, ST_NO_MEMORY   it could not be encoded
 *      code          Iggy's, 0: done
 *      payload       the answer's, in frame: good until iggy_request_release
 *      header        of the reply
 */
struct iggy_request {
    struct op op;
    int64_t deadline_ms;
    struct iggy_partition_context context;
    bool once;

    uint32_t code, version; /* version: of the layouts */
    bool may_have_landed;
    struct bytes payload;
    struct iggy_reply_header header;
    const struct iggy_command *command;

    struct iggy_client *client; /* the rest is the client's */
    struct iggy_call call;
    struct conn_write write; /* of head and body, which it borrows: the request ends after it */
    struct frame *frame;     /* owned */
    struct link link;
    const void *in;   /* of a request that waits for the version; NULL: no body */
    uint64_t attempt; /* how many had begun by then */
    uint32_t wanted;  /* the command's code */
    bool waits_for_version;
    bool over;           /* what it ends with is settled */
    enum status outcome; /* when over */
};

/*
 * Encode `in` (the struct of the command's request body; NULL: no body) for the client's version, and send it as soon as it can go.
 * Before the client was ever ready its version isn't known: then it connects first, and in must stay until op is done; else only
 * fields of kind REST must. A client whose version changes under queued requests ends them with ST_UNAVAILABLE.
 * code: enum iggy_command_code; one that the version doesn't have: ST_UNSUPPORTED.
 * Requests go out in the order of the calls. A cancelled one ends at once, or, if half of it is sent, when the rest is; its
 * answer is dropped (P12: deferred polls and fetches are cancelled at the server, CancelDeferredRequest).
 */
void iggy_client_call(struct iggy_client *c, struct iggy_request *r, uint32_t code, const void *in);

/* Decode the payload of a request that ended with ST_OK and code 0. Texts and bytes point into the frame. As iggy_decode. */
enum status iggy_request_decode(const struct iggy_request *r, struct arena *a, void *out) MUST_USE;

/* The frame as the caller's own, for who keeps payload longer than the request; NULL: there is none. */
struct frame *iggy_request_take_frame(struct iggy_request *r) MUST_USE;
void iggy_request_release(struct iggy_request *r); /* fine on zeroed and released */
#endif
