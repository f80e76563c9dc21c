/*
 * Logins, and what each has done last.
 *
 * A session is bound to one connection at a time. A 0.11 client's ends with its connection. A 0.12 client's is kept for SESSIONS_KEPT_MS, so
 * that the client can take it along to another one (BindSession) and send again what it has no answer to: a number that was done is answered
 * as it was, and not done twice.
 *
 * Threads: any; all is short and under locks of its own. Times are monotonic milliseconds.
 */
#ifndef IGGY_SERVER_SESSION_H
#define IGGY_SERVER_SESSION_H

#include "base/wbuf.h"
#include "iggy/commands.h"
#include "iggy_server/server.h"

#define SESSIONS_MAX          8192 /* the oldest without a connection goes */
#define SESSIONS_KEPT_MS      (2 * 60 * 1000)
#define SESSIONS_MEMBER_MS    (5 * 1000) /* without a connection: then its places in groups go to others */
#define SESSION_REPLIES       5          /* of the metadata plane that are kept */
#define SESSION_SENDS         128        /* of the partition plane that are remembered */
#define SESSIONS_REPLIES_MAX  ((int64_t)64 << 20) /* bytes of kept replies, all sessions together */
#define SESSION_ADDRESS_BYTES 64

/* How a server shows who is connected. */
struct session_info {
    uint32_t client_number, user_id;
    uint64_t number;
    char address[SESSION_ADDRESS_BYTES]; /* "IP:port" */
};

/* What a connection brings to its login. Texts are copied. */
struct session_login {
    struct iggy_u128 client_id;
    struct iggy_secret secret; /* of 0.12 */
    uint32_t user_id, version;
    uint32_t client_number;
    const char *address;
    struct session
        *before; /* the connection's own until now: the same is given again, or it ends. NULL: none */
};

/* first_number: of the first session; later ones count on. */
enum status sessions_new(struct iggy_server *server, uint64_t first_number, struct sessions **out) MUST_USE;
void sessions_free(struct sessions *s); /* all sessions have been let go of; takes NULL */

/*
 * A login that is good gets its session, held for the caller (session_unref). A session with this client id on another connection ends.
 * ST_DENIED: the client id is another user's; ST_NO_MEMORY.
 */
enum status session_log_in(struct sessions *s, const struct session_login *login,
                           struct session **out) MUST_USE;

/*
 * BindSession: the session with this client id, number (0: whichever) and secret moves to the connection; held for the caller.
 * login.user_id is ignored. ST_NOT_FOUND: there is none, or the secret is another.
 */
enum status session_bind(struct sessions *s, const struct session_login *login, uint64_t number,
                         struct session **out) MUST_USE;

void session_log_out(struct sessions *s, struct session *session);
/* The connection is gone. No effect if the session has another one. */
void session_leave(struct sessions *s, struct session *session, uint32_t client_number, int64_t now_ms);

void session_ref(struct session *session);
void session_unref(struct session *session); /* takes NULL */

/* Whether it is over for good: nobody can take it along any more. What is done for it after that has to be undone by who did it. */
bool session_has_ended(struct sessions *s, struct session *session);

/* Whether the connection still has the session: it was not taken along, and has not ended. */
static inline bool session_is_of(const struct session *session, uint32_t client_number) {
    return atomic_load_explicit(&session->client_number, memory_order_relaxed) == client_number;
}

/* Forget what has had no connection for too long. */
void sessions_sweep(struct sessions *s, int64_t now_ms);

/* Those with a connection, in the arena. ST_NO_MEMORY. */
enum status sessions_list(struct sessions *s, struct arena *a, struct session_info **out,
                          uint32_t *count_out) MUST_USE;
bool sessions_find(struct sessions *s, uint32_t client_number, struct session_info *out);
uint32_t sessions_connected(struct sessions *s);

/* ---- request numbers ---- */

enum session_verdict {
    SESSION_GO,     /* do it; then session_done with this number */
    SESSION_REPEAT, /* it was done: answer as then */
    SESSION_REFUSE, /* with code */
};

struct session_answer {
    uint32_t
        code; /* of SESSION_REFUSE: 57 it is being done; 59 it was done; 85 nobody knows; 58 too many at once */
    uint8_t *reply; /* of a repeat on the metadata plane: the whole frame; mem_free */
    uint32_t reply_bytes;
    bool offset_known; /* of a repeat on the partition plane */
    struct iggy_confirmation confirmation;
};

/* Of the metadata and the partition plane. ST_NO_MEMORY. */
enum status session_begin(struct session *session, enum iggy_plane plane, uint64_t number,
                          enum session_verdict *verdict_out, struct session_answer *out) MUST_USE;

/*
 * A number that began has its outcome. counts: it was done, or refused for good: repeats are answered the same; else it may come again.
 * reply         of the metadata plane: the whole frame, copied while there is room
 * confirmation  of a send, or NULL
 */
void session_done(struct session *session, enum iggy_plane plane, uint64_t number, bool counts,
                  const struct wbuf *reply, const struct iggy_confirmation *confirmation);
#endif
