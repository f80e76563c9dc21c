/*
 * A socket that carries length-prefixed frames in and answers out, with its deadlines.
 *
 *   head complete -> memory reserved (reading pauses when there is none) -> body read -> on_frame
 *
 * The protocol above says how long a frame is and gets whole frames; it answers with conn_write and says when to pause.
 * Everything here runs on the connection's loop. Spec B.1-B.3, B.7.
 */
#ifndef NET_CONN_H
#define NET_CONN_H

#include "base/base.h"
#include "base/wbuf.h"
#include "net/op.h"

struct budget;
struct conn;
struct tls;

/* One request's bytes, head included (the Kafka length prefix, or an Iggy header). Owned by whom on_frame gave it. */
struct frame {
    uint8_t *data; /* writable: base offsets are patched in place */
    uint32_t size_bytes;
    int64_t reserved_bytes; /* of the budget; given back by frame_free */
    struct budget *budget;
};
void frame_free(struct frame *f); /* memory and reservation; takes NULL. Any thread. */

struct conn_protocol {
    uint32_t head_bytes; /* 1..256: how many bytes tell the length */
    /* Bytes of the whole frame, head included, from its head; <= 0: not acceptable, the connection closes. */
    int64_t (*frame_bytes)(const uint8_t *head, int64_t frame_bytes_max);
    void (*on_open)(struct conn *c);                   /* first; sets conn_set_user */
    void (*on_frame)(struct conn *c, struct frame *f); /* takes f over */
    /* While reading is paused or waits for memory the peer has sent its FIN. What it sent before may be unread; nothing else comes.
     * At most once, before on_idle_end. */
    void (*on_hangup)(struct conn *c);
    /* Reading has ended (EOF, error, deadline, drain): no more frames come. Once, before on_closed. After EOF and in a drain
     * what is being answered can still be written; the conn stays until it is closed (in a drain: or not busy). */
    void (*on_idle_end)(struct conn *c);
    void (*on_closed)(struct conn *c); /* last: the conn goes after it returns; all writes have completed */
};

struct conn_settings {
    int64_t frame_bytes_max; /* of the body that the head announces; below 2 GiB */
    int64_t idle_ms;         /* B-10: for the next head, while nothing is unanswered (conn_set_busy) */
    int64_t read_ms;         /* B-11: for a body, from its head on; waiting for memory doesn't count */
    int64_t write_ms;        /* B-12: for one answer, from when it is the first in the row */
    struct budget *budget;   /* borrowed; outlives the conns and their frames */
    struct tls *
        tls; /* borrowed (net/tls.h); NULL: plain. The handshake must be done within read_ms, before on_open */
};

void conn_set_user(struct conn *c, void *user);
void *conn_user(const struct conn *c);
struct loop *conn_loop(const struct conn *c);
const char *conn_peer(const struct conn *c); /* "127.0.0.1:50123"; as long as the conn */

/* The address that the peer has connected to, as conn_peer; "?" if the kernel doesn't tell. One system call. */
#define CONN_ADDRESS_BYTES 64
void conn_local(const struct conn *c, char out[CONN_ADDRESS_BYTES]);

/* The connection's smoothed round trip as the kernel measures it, microseconds; 0: not known. One system call. */
int64_t conn_rtt_us(const struct conn *c);

/* Whether requests are unanswered: the idle deadline runs only while not busy. */
void conn_set_busy(struct conn *c, bool busy);

/* Another idle deadline from now on (before a login it is shorter). */
void conn_set_idle_ms(struct conn *c, int64_t idle_ms);

/* Another frame_bytes_max, for heads that come from now on (before a login it is smaller). */
void conn_set_frame_bytes_max(struct conn *c, int64_t bytes_max);

/*
 * Take no more frames / go on. After conn_pause no frame is delivered, not even one that is here already, and no read or idle
 * deadline runs; conn_resume never delivers inside, and a frame that was cut by the pause gets its whole read_ms again.
 */
void conn_pause(struct conn *c);
void conn_resume(struct conn *c);

/* One answer on its way. Embedded by its user; out is filled by the user, released by the conn before done runs. */
struct conn_write {
    /* op_init'ed by the user. ST_OK: handed to the kernel. ST_IO, ST_TIMED_OUT, ST_CANCELED: it is lost. */
    struct op op;
    struct wbuf out;
    int32_t piece; /* conn's: how much has gone */
    size_t piece_done;
};

/* Queue w behind the answers before it. All that is queued in one loop iteration leaves in as few system calls as possible. */
void conn_write(struct conn *c, struct conn_write *w);

/* Close at once; queued answers complete with ST_CANCELED. on_closed follows, never inside. Safe to repeat. */
void conn_close(struct conn *c);

/*
 * Send what is queued, then FIN; discard input until the peer's FIN or write_ms, then close. B-60: never a reset over input
 * that wasn't read, for which the peer would lose the answer. No more frames come; a later conn_write completes with
 * ST_CANCELED. Safe to repeat, and after conn_close.
 */
void conn_close_gently(struct conn *c);
#endif
