/*
 * A client's session with an Iggy server, without its socket: a driver hands in what came and what time it is, and is
 * told what to write and what happened. No allocation but the bodies of logins, no clock, no thread of its own: all
 * calls for one session come from one thread at a time.
 *
 * The road of a connection:
 *   session_connected -> login, or P12 and a session at hand: BindSession -> is this the leader? -> READY
 *   calls go out in the order they came, answers are matched by request number, in any order
 *   a write that has to go out again keeps its place: what came after it and isn't out yet waits for it. Writes of metadata go out one at
 *   a time, since a server takes a number below one that it has done for a repetition.
 *   RECONNECT: the driver closes the socket, says session_disconnected, and connects again, with a pause of its own
 *
 * The driver's loop, after each input, each tick and each session_call:
 *   while (iggy_session_next(s, &in, now, &event)) ..
 *   while ((call = iggy_session_output(s, now))) write call->head, then call->body
 *
 * Versions: the newest is tried first; a refusal says what the server takes (Eviction 14), or that it is so old that it
 * could not read the login at all (status 4, Eviction 15), which means 0.11. The choice is kept for later connections.
 */
#ifndef IGGY_SESSION_H
#define IGGY_SESSION_H

#include "base/list.h"
#include "base/rbuf.h"
#include "base/wbuf.h"
#include "iggy/commands.h"

/* Times in ms. Texts are borrowed for the session's life. */
struct iggy_session_config {
    struct str username, password;
    struct str token; /* if not empty: instead of those two */
    struct str sdk_name, sdk_version;
    uint32_t version_newest; /* the first to try */
    int32_t in_flight_max;   /* calls without an answer */
    int64_t reply_ms;        /* silence of the server on a login, bind or ping; official clients: 30,000 */
    int64_t heartbeat_ms;    /* a ping after so long without a request; 5,000 */
};

enum iggy_call_state {
    IGGY_CALL_IDLE, /* not in a session */
    IGGY_CALL_QUEUED,
    IGGY_CALL_SENT,
    IGGY_CALL_FAILED, /* its event is still to come */
};

/* One request. The caller fills the first part, and leaves the call and its body alone until its event. */
struct iggy_call {
    const struct iggy_command *command;
    struct wbuf body;                      /* as encoded for the session's version */
    struct iggy_partition_context context; /* P12: from the partition's route; for sends, polls and offsets */
    int64_t
        deadline_ms; /* an answer must be there by then: after it, a call that was sent ends the connection */
    bool once;       /* never send it twice, even though it reads: a poll that commits */

    uint8_t head[IGGY_HEADER_BYTES]; /* what to write in front of body */
    enum iggy_call_state state;
    struct link link;
    uint64_t serial;  /* of session_call: the order in which writes go out, again too */
    uint32_t version; /* the session's when it was queued */
    uint64_t number;  /* 0: none yet */
    int64_t again_ms; /* not to be sent before */
    int64_t sent_ms;
    bool may_have_landed;
};

enum iggy_phase {
    IGGY_OFFLINE,
    IGGY_LOGGING_IN,
    IGGY_BINDING,
    IGGY_LOOKING, /* for the leader */
    IGGY_READY,
    IGGY_ENDING,  /* the driver has been told to reconnect */
    IGGY_REFUSED, /* for good */
};

enum iggy_event_kind {
    IGGY_EVENT_READY,     /* calls go out from now on; session->version is settled */
    IGGY_EVENT_ANSWER,    /* to call: outcome, header; the call is the caller's again */
    IGGY_EVENT_FAILED,    /* call has no answer: may_have_landed tells whether it may have been done */
    IGGY_EVENT_RECONNECT, /* close the socket; host not empty: connect there, it is the leader */
    IGGY_EVENT_REFUSED,   /* the login was refused with code: trying again is pointless */
};

struct iggy_event {
    enum iggy_event_kind kind;
    struct iggy_call *call;
    struct iggy_outcome outcome; /* payload: a view into the input, good until it is given up */
    struct iggy_reply_header header;
    bool may_have_landed; /* of FAILED, and of an ANSWER that is an error */
    uint32_t code;
    struct str host; /* the session's, until the next connection */
    uint16_t port;
};

#define IGGY_SESSION_CANCELS_MAX 64 /* deferred requests of one client at a server */

struct iggy_session {
    const struct iggy_session_config *config;
    enum iggy_phase phase;
    uint32_t version;
    struct iggy_u128 client, checksum_seed;
    struct iggy_secret secret;
    uint64_t session; /* 0: none */
    uint64_t next_request, next_serial;
    uint64_t watermark; /* P12: the highest commit seen in a metadata reply */
    struct link queued, sent, failed;
    int32_t in_flight;
    struct iggy_call own; /* login, bind, cluster metadata or ping: one at a time */
    struct iggy_call cancel;
    uint64_t
        cancels[IGGY_SESSION_CANCELS_MAX]; /* numbers of cancelled calls that a server would go on with */
    int32_t cancels_count;
    int64_t last_sent_ms, looking_since_ms, refused_since_ms; /* -1: not since */
    int32_t redirects;
    bool lost; /* the server has ended the session: it can't be taken along */
    bool ready_due, reconnect_due, refused_due; /* events that are still to come */
    uint32_t refused_code;
    char host[256], leader[256];
    uint16_t port, leader_port;
};

#define IGGY_SESSION_RANDOM_BYTES 64

/* Zeroed memory becomes a session that is offline. config is borrowed for its life. */
void iggy_session_init(struct iggy_session *s, const struct iggy_session_config *config);

/* Calls that are left fail without an event: the caller takes them back with this. */
void iggy_session_release(struct iggy_session *s);

/*
 * There is a new connection to host:port (as text: a node of a cluster is known by it).
 * random       unpredictable bytes: client id, secret and request ids come from them
 * ST_NO_MEMORY, ST_INVALID (a name, password or token that can't be sent): the connection is of no use
 */
enum status iggy_session_connected(struct iggy_session *s, struct str host, uint16_t port,
                                   const uint8_t random[IGGY_SESSION_RANDOM_BYTES], int64_t now_ms) MUST_USE;

/*
 * The connection is gone, and nothing of what was to be written will be. What was not sent stays queued. What was sent
 * is sent again with its number if the session can be taken along (P12); else reads are sent again, and writes fail
 * as perhaps done.
 */
void iggy_session_disconnected(struct iggy_session *s, int64_t now_ms);

/* Queue a call. It ends with an ANSWER or a FAILED event, always. */
void iggy_session_call(struct iggy_session *s, struct iggy_call *call);

/*
 * Take back a call that has had no event: it gets none, and an answer that still comes is dropped. P12: a deferred poll or a fetch
 * that was sent is cancelled at the server too (64 of them between two rounds of output; others end there when their wait is over).
 */
void iggy_session_cancel(struct iggy_session *s, struct iggy_call *call);

/*
 * The next frame to write, whole and in this order; NULL: none now. A call that the caller doesn't know is the session's own, and
 * good until the next call of one of these functions: its frame has to be copied. No call that was sent ends before its answer or
 * the end of the connection; a server that answers before it can have read all is for the driver to notice, as only it
 * knows what is written.
 */
struct iggy_call *iggy_session_output(struct iggy_session *s, int64_t now_ms) MUST_USE;

/* The next event, from what is due or from frames in `in`, which moves behind them. False: none, read on. */
bool iggy_session_next(struct iggy_session *s, struct rbuf *in, int64_t now_ms,
                       struct iggy_event *out) MUST_USE;

/* Look at the time: deadlines, silence, heartbeat. Gives when to call it next at the latest; INT64_MAX: no need. */
int64_t iggy_session_tick(struct iggy_session *s, int64_t now_ms);
#endif
