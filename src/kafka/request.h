/*
 * One Kafka request, from its decoded body to its written answer.
 *
 * Requests of a connection are started in the order of arrival and may run beside each other; answers leave in that order
 * (session.c, B-5). A handler gets the request with its body decoded, starts operations, and ends it with exactly
 * one of request_reply, request_no_reply and request_close. All on the request's loop.
 */
#ifndef KAFKA_REQUEST_H
#define KAFKA_REQUEST_H

#include "backend/backend.h"
#include "base/arena.h"
#include "base/rbuf.h"
#include "kafka/api.h"
#include "kafka/server.h"
#include "net/conn.h"
#include "wire/kerr.h"

struct session;

enum request_state { REQUEST_RUNNING, REQUEST_ANSWERED, REQUEST_SILENT, REQUEST_CLOSES };

struct request {
    struct kafka *kafka;
    struct loop *loop;
    struct arena arena; /* the request's memory; goes with it */
    const void *in;     /* the decoded struct: NAME_in() gives it its type; strings point into the frame */
    struct rbuf body;   /* what follows the header; after decoding: what is left over (ignored, B-40) */
    const struct api *api;
    int64_t arrived_ms; /* monotonic */
    int16_t version;
    int32_t correlation_id;
    struct str client_id;
    const char *step; /* name of the continuation that runs next, for a person who looks at a stuck server */
    struct op
        *parked; /* what op_cancel may end early when the client leaves or the server stops; NULL: nothing */
    void (*on_turn)(struct request *r); /* what waits for all requests before this one (request_has_turn) */
    void (*at_end)(struct request *r);  /* called once, just before the memory goes; NULL: nothing to do */
    void *state;                        /* the handler's, for at_end */

    struct session *session; /* the rest is session.c's and request.c's */
    struct link link;
    struct frame *frame;
    struct conn_write write;
    int64_t answer_reserved;
    enum request_state outcome;
};

/* Answer with a struct of the API's response schema; it may live on the stack, but slices in it are borrowed until at_end. */
void request_reply(struct request *r, const void *out);

/* The same at another version of the schema: ApiVersions answers what it can't read in version 0 (B-32). */
void request_reply_as(struct request *r, int16_t version, const void *out);

/* Ends well without an answer: Produce with acks 0. */
void request_no_reply(struct request *r);

/* No answer fits: drop the connection, once the answers before this one have gone. Logs why at debug. */
void request_close(struct request *r, const char *why);

/* False: nobody is there to read an answer. */
bool request_has_client(const struct request *r);

/* Its connection: a number that no other one of the loop has ever had; 1.. */
uint64_t request_connection(const struct request *r);

/* How far the client is: conn_rtt_us; 0 also when it has gone. */
int64_t request_rtt_us(const struct request *r);

/* The address of the client, without port, as Kafka shows it: "/127.0.0.1"; in the request's arena. */
struct str request_client_host(struct request *r);

/* Whether waiting has no sense any more: the server stops, or the client has said that it will send nothing more. */
bool request_must_end(const struct request *r);

/* Whether all requests before it on its connection have been answered. False: on_turn is called once they have. */
bool request_has_turn(struct request *r, void (*on_turn)(struct request *r)) MUST_USE;

/* B-33: a version that is not served closes. */
void request_close_version(struct request *r);

/* Whether nothing is kept here: then partitions and topics get one answer, whatever else is wrong with them (D1, D2, D4-8). */
bool request_meets_stub(const struct request *r);

/* B-36: Produce v0-v2. */
void produce_unserved(struct request *r);

/* Memory of the request, zeroed. NULL: there is no more, and the request has been closed: just return. */
void *request_take(struct request *r, size_t count, size_t size) MUST_USE;
#define request_array(r, type, count) ((type *)request_take((r), (size_t)(count), sizeof(type)))

/* What runs next. */
#define request_waits_for(r, continuation) ((r)->step = #continuation)

#define API(key, name, min, max, listed, unserved)                                     \
    void name##_handle(struct request *r);                                             \
    static inline const struct name##_req *name##_in(const struct request *r) {        \
        return r->in;                                                                  \
    }                                                                                  \
    static inline void name##_reply(struct request *r, const struct name##_res *out) { \
        request_reply(r, out);                                                         \
    }
#include "kafka/api.def"
#undef API
#endif
