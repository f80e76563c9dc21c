/*
 * One request of an Iggy client, from its decoded body to its written reply; what handlers use.
 *
 * Requests of a connection run beside each other, as far as they don't block, and are answered as they get done: clients match replies by
 * number. One that blocks (IN_POOL), or changes the catalog or the users, runs alone: later frames of its connection wait for its reply, so
 * that who creates a topic and sends at once is served.
 * A handler ends its request with exactly one of request_answer, request_done, request_refuse; after that it must not touch it.
 * Who may log in, whether the session is good, repeats of what was done already, bodies that can't be read: settled before a handler runs.
 */
#ifndef IGGY_SERVER_REQUEST_H
#define IGGY_SERVER_REQUEST_H

#include "base/arena.h"
#include "iggy/commands.h"
#include "iggy/errors.h"
#include "iggy_server/server.h"
#include "net/conn.h"
#include "net/work.h"

/* Kafka's listener has functions of these names as well, and both are in one program. */
#define request_take             server_request_take
#define request_has_client       server_request_has_client
#define request_must_end         server_request_must_end
#define create_partitions_handle server_create_partitions_handle
#define join_group_handle        server_join_group_handle
#define leave_group_handle       server_leave_group_handle
#define sync_group_handle        server_sync_group_handle
#define request_new              server_request_new
#define request_run              server_request_run
#define request_free             server_request_free

struct server_request {
    struct iggy_server *server;
    struct loop *loop;
    struct client
        *client; /* whose request it is; there until the request has ended, even if the connection has gone */
    const struct iggy_command *command;
    struct iggy_request_header header;
    uint32_t version;        /* the client's: of the layouts */
    uint32_t user_id;        /* who is logged in */
    struct session *session; /* its session; NULL: not logged in (ping) */
    const void *
        in; /* the decoded struct of the command's request: NAME_in() gives it its type; texts point into the frame */
    struct bytes body;  /* as it came; writable until the request ends */
    struct arena arena; /* the request's memory; goes with it */
    struct op *
        parked; /* on the loop: what op_cancel may end early when the client leaves or the server stops; NULL: nothing */
    void (*at_end)(struct server_request
                       *r); /* called once, on the loop, just before the memory goes; NULL: nothing to do */
    void *state;            /* the handler's */

    struct link link; /* the rest is client.c's, request.c's and login.c's */
    struct frame *frame;
    struct conn_write write;
    struct op hop; /* from the pool to the loop */
    struct work work;
    int64_t reserved_bytes; /* of the budget, for the reply */
    bool alone, deferred, canceled;
    bool silent;  /* it has no reply */
    bool tracked; /* its number began in the session */
    bool counts;  /* and will be remembered */
    bool has_confirmation;
    struct iggy_confirmation confirmation; /* of a send that was done */
};

/*
 * Answer with a struct of the command's answer; it may live on the stack, but what REST fields borrow must stay until at_end.
 * On the loop, or for IN_POOL handlers in the pool.
 */
void request_answer(struct server_request *r, const void *answer);
/* The same with a struct whose last field, of kind REST, is empty: tail's pieces go out in its place, without a copy. tail, and what it
 * borrows, must stay until at_end. */
void request_answer_tail(struct server_request *r, const void *answer, const struct wbuf *tail);
void request_done(struct server_request *r);      /* an answer without payload */
void request_not_found(struct server_request *r); /* an empty body: the "not found" of get_stream and such */
void request_refuse(struct server_request *r, uint32_t code); /* an Iggy error code */
void request_end(struct server_request *r, uint32_t code);    /* request_refuse, or with 0 request_done */

/* False: nobody is there to read an answer. On the loop. */
bool request_has_client(const struct server_request *r);
/* Whether waiting has no sense any more: the server stops, the client has gone, or takes the request back. On the loop. */
bool request_must_end(const struct server_request *r);

/* Memory of the request, zeroed. NULL: there is no more, and the request has been refused: just return. */
void *request_take(struct server_request *r, size_t count, size_t size) MUST_USE;
#define request_array(r, type, count) ((type *)request_take((r), (size_t)(count), sizeof(type)))

/* ---- what identifiers stand for; on any thread ---- */

/* 0; 1009: no such stream. */
uint32_t request_stream(struct server_request *r, const struct iggy_identifier *id, struct stream_info *out);
/* 0, and *out is held (topic_unref); 1009, 2010. */
uint32_t request_topic(struct server_request *r, const struct iggy_identifier *stream,
                       const struct iggy_identifier *topic, struct topic **out);
/* 0; 41. A topic-wide action: ids as in users_may. */
uint32_t request_allowed(struct server_request *r, enum user_action action, uint32_t stream_id,
                         uint32_t topic_id);

/* Both at once: the topic, which the user may act on. *out is held also where he may not. 0; 1009, 2010, 41. */
uint32_t request_topic_for(struct server_request *r, enum user_action action,
                           const struct iggy_identifier *stream, const struct iggy_identifier *topic,
                           struct topic **out);

/* P12: the context of a partition, in answers. And the check of one in a request: 0; 87: it means another incarnation. */
struct iggy_partition_context partition_context(struct server_request *r, const struct topic *t,
                                                uint32_t partition);
uint32_t partition_context_check(struct server_request *r, const struct topic *t, uint32_t partition,
                                 uint64_t incarnation);

/* What a status of store or backend is to an Iggy client: an error code; ST_OK: 0. */
uint32_t code_of_status(enum status st);

/* ---- handlers: one for each row of handlers.def ---- */

#define COMMAND(name, code, operation, reply_operation, versions, access, request, answer) \
    struct iggy_##request;                                                                 \
    static inline const struct iggy_##request *name##_in(const struct server_request *r) { \
        return r->in;                                                                      \
    }
#include "iggy/commands.def"
#undef COMMAND

#define HANDLER(name, where) void name##_handle(struct server_request *r);
#include "iggy_server/handlers.def"
#undef HANDLER
#endif
