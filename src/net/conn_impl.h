/*
 * A connection's parts, for conn.c (life and deadlines), conn_read.c (frames in), conn_write.c (answers out) and the listener.
 *
 * On a uv_poll_t with recv and sendmsg of our own rather than on a uv_tcp_t: a body goes straight into its frame, how much
 * of an answer has gone is known at any time, and one sendmsg takes the answers of many requests.
 */
#ifndef NET_CONN_IMPL_H
#define NET_CONN_IMPL_H

#include <uv.h>

#include "net/budget.h"
#include "net/conn.h"
#include "net/timer.h"

#define CONN_PEER_BYTES 64

struct sockaddr_storage;

/* Where the connections of one listener, or connector, on one loop are at home. Filled by it; used on the loop. */
struct conn_home {
    struct loop *loop;
    const struct conn_protocol *protocol;
    const struct conn_settings *settings;
    void *user;
    struct link conns;                            /* struct conn by link */
    void (*on_socket_close)(struct conn_home *h); /* a socket is about to be closed: its slot is free */
    void (*on_conn_gone)(struct conn_home *h);    /* a conn has left conns */
    /* With TLS, once: the handshake is over; not ST_OK: the conn is closing. Else NULL, and on_open follows by itself. */
    void (*on_shaken)(struct conn *c, enum status st);
};

struct conn_tls;

/* What the timer of the reading side waits for. */
enum conn_deadline {
    CONN_NO_DEADLINE,
    CONN_IDLE,  /* the next head */
    CONN_READ,  /* the rest of a frame */
    CONN_LINGER /* the peer's FIN after ours */
};

struct conn {
    struct conn_home *home;
    struct link link; /* in home->conns */
    void *user;
    struct op life; /* the hop to the loop at the start, the last step at the end */
    uv_poll_t poll;
    struct conn_tls *tls; /* owned; NULL: plain */
    int fd;
    int armed; /* UV_READABLE, UV_WRITABLE, UV_DISCONNECT: what poll waits for; may be more than is wanted, see conn_arm */
    bool handle_open; /* poll is initialised and its close callback hasn't run */
    bool opened;      /* on_open was called */
    bool closing;     /* the socket is closed */
    bool draining;
    bool gentle;       /* conn_close_gently was called */
    bool fin_sent;     /* and all is written */
    bool written_late; /* an answer was refused since the last step was posted */
    char peer[CONN_PEER_BYTES];

    bool busy;
    bool paused;
    bool reading_ended; /* no more frames */
    bool end_told;      /* on_idle_end was called */
    bool peer_ended;    /* the peer's FIN was read */
    bool hung_up;       /* on_hangup was called */
    int64_t frame_bytes_max;
    uint32_t frame_bytes, frame_have, frame_room;
    struct frame
        *frame; /* being read; NULL: between frames. Its memory grows from frame_room to frame_bytes */
    struct budget_wait wait;
    int64_t granted_bytes; /* reserved by wait for the frame that stands first in stash */
    uint8_t *stash;        /* owned: received, not yet parsed; NULL: nothing */
    uint32_t stash_at, stash_end;
    struct op resume; /* waits to go on from the stash */
    int64_t idle_ms;
    enum conn_deadline deadline;
    int64_t deadline_ms;
    struct timer read_timer; /* due at deadline_ms or earlier, see conn_timer_set */

    struct link writes;   /* struct conn_write by op.link */
    struct op flush;      /* hook at the end of the loop's iteration */
    bool blocked;         /* the kernel takes no more: wait for UV_WRITABLE */
    int64_t write_due_ms; /* for the first of writes; 0: none */
    struct timer write_timer;
};

/* Take over fd, accepted from peer (terminated text), and serve it on home->loop. ST_NO_MEMORY: fd is still the caller's. Any thread. */
enum status conn_new(struct conn_home *home, int fd, const char *peer) MUST_USE;

/*
 * The same in steps, on the loop, for who has to be told first that the connection is there.
 * conn_make      fd is taken over; NULL: no memory, fd is still the caller's
 * conn_start     false: it is closing, and on_open isn't called. With TLS the handshake begins, and home->on_shaken tells its end
 * conn_open_soon on_open runs from the ready queue, behind what is in it; also when the conn has been closed by then
 */
struct conn *conn_make(struct conn_home *home, int fd, const char *peer) MUST_USE;
bool conn_start(struct conn *c) MUST_USE;
void conn_open_soon(struct conn *c);

/* "127.0.0.1:50123", "[::1]:50123" */
void conn_peer_text(const struct sockaddr_storage *peer, char out[CONN_PEER_BYTES]);

/* No more frames; close when nothing is unanswered and unsent. */
void conn_drain(struct conn *c);

/* Close at once; queued answers complete with st. Safe to repeat. */
void conn_close_as(struct conn *c, enum status st);

/* Post the last step when nothing of the closed conn is on its way any more. */
void conn_end_if_closed(struct conn *c);

/* Close if it is draining and has nothing left to do. */
void conn_drain_check(struct conn *c);

/* Set the deadline of the reading side that the state asks for now; one that runs already keeps its time. */
void conn_deadline_update(struct conn *c);

/* Let t fire at due_ms or earlier: a timer that fires too early sets itself again, so that deadlines, which nearly never pass,
 * cost no heap work as they move. */
void conn_timer_set(struct conn *c, struct timer *t, timer_fn *fire, int64_t due_ms);

/*
 * Wait for what is wanted now; seen: the events that were just delivered. Something that is no longer wanted stays armed until
 * it happens: a pause of a few requests costs no system call.
 */
void conn_arm(struct conn *c, int seen);

/* conn_read.c */
bool conn_reads(const struct conn *c); /* frames are wanted now */
void conn_read_more(struct conn *c);   /* TLS: read soon what poll doesn't see */
void conn_read(struct conn *c);        /* the socket is readable, and conn_reads */
void conn_discard(struct conn *c);     /* the socket is readable, and the input is of no use */
void conn_read_init(struct conn *c);
void conn_stop_reading(struct conn *c); /* drop what is half read; no more frames */
void conn_tell_end(struct conn *c);     /* call on_idle_end unless it was called */

/*
 * conn_tls.c. A conn with TLS, as soon as it has c->tls.
 * conn_tls_new     name: of the server, for who connects (tls_open); NULL: for who accepts. ST_NO_MEMORY
 * conn_tls_shake   ST_AGAIN: go on when the socket can be read, or written as conn_tls_wants_write says; ST_INVALID: a certificate
 *                  that isn't good; ST_IO: all else. conn_tls_failed says it in English
 * conn_tls_recv    as recv, but for its not leaving anything behind unless it fills all of out or conn_tls_has_more says so
 * conn_tls_send    as send; what it didn't take (EAGAIN) must stand first in the next call
 * conn_tls_say_end close_notify, if the kernel takes it now: all that has to arrive is frames, which have lengths. Plain: nothing
 */
enum status conn_tls_new(struct conn *c, const char *name) MUST_USE;
void conn_tls_free(struct conn *c);
bool conn_tls_is_shaking(const struct conn *c);
bool conn_tls_wants_write(const struct conn *c);
bool conn_tls_has_more(const struct conn *c);
const char *conn_tls_failed(const struct conn *c);
enum status conn_tls_shake(struct conn *c) MUST_USE;
ssize_t conn_tls_recv(struct conn *c, void *out, size_t len) MUST_USE;
ssize_t conn_tls_send(struct conn *c, const void *data, size_t len) MUST_USE;
void conn_tls_say_end(struct conn *c);

/* conn_write.c */
void conn_write_init(struct conn *c);
void conn_flush(struct conn *c);
void conn_drop_writes(struct conn *c, enum status st);
#endif
