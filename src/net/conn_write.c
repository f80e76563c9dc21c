/* Answers out: queued, gathered at the end of the loop's iteration, and sent with one call as far as the kernel takes them. */
#include <errno.h>
#include <sys/socket.h>

#include "net/conn_impl.h"
#include "net/loop.h"
#include "net/loop_impl.h"
#include "net/tls_impl.h"

#define PIECES_MAX       1024 /* Linux: UIO_MAXIOV */
#define WRITE_ROUNDS_MAX 16   /* so that one fast reader doesn't hold the loop */

static struct conn_write *conn_first_write(struct conn *c) {
    return list_empty(&c->writes) ? NULL : container_of(c->writes.next, struct conn_write, op.link);
}

/* The pieces that are to go next; returns their number and their bytes. */
static size_t conn_gather(struct conn *c, struct iovec *pieces, size_t *bytes_out) {
    size_t count = 0, bytes = 0;
    for (struct link *l = c->writes.next; l != &c->writes && count < PIECES_MAX; l = l->next) {
        struct conn_write *w = container_of(l, struct conn_write, op.link);
        size_t done = w->piece_done;
        for (int32_t i = w->piece; i < w->out.pieces_count && count < PIECES_MAX; i++, done = 0) {
            struct iovec v = w->out.pieces[i];
            pieces[count++] = (struct iovec){(char *)v.iov_base + done, v.iov_len - done};
            bytes += v.iov_len - done;
        }
    }
    *bytes_out = bytes;
    return count;
}

/* n bytes have gone: the answers that are complete leave the queue. */
static void conn_advance(struct conn *c, size_t n) {
    for (struct conn_write *w; (w = conn_first_write(c));) {
        for (; w->piece < w->out.pieces_count; w->piece++) {
            size_t left = w->out.pieces[w->piece].iov_len - w->piece_done;
            if (n < left) {
                w->piece_done += n;
                return;
            }
            n -= left;
            w->piece_done = 0;
        }
        list_remove(&w->op.link);
        c->write_due_ms = 0; /* the next one has its own time */
        wbuf_release(&w->out);
        op_complete(&w->op, ST_OK);
    }
}

static ssize_t conn_send_plain(struct conn *c, size_t *bytes_out) {
    struct iovec pieces[PIECES_MAX];
    size_t count = conn_gather(c, pieces, bytes_out);
    struct msghdr msg = {.msg_iov = pieces, .msg_iovlen = count};
    return *bytes_out > 0 ? sendmsg(c->fd, &msg, MSG_NOSIGNAL) : 0;
}

/* At most `most` of the bytes that are to go next, to out; returns how many. */
static size_t conn_copy_next(struct conn *c, uint8_t *out, size_t most) {
    size_t len = 0;
    for (struct link *l = c->writes.next; l != &c->writes && len < most; l = l->next) {
        struct conn_write *w = container_of(l, struct conn_write, op.link);
        size_t done = w->piece_done;
        for (int32_t i = w->piece; i < w->out.pieces_count && len < most; i++, done = 0) {
            size_t left = w->out.pieces[i].iov_len - done;
            size_t part = left < most - len ? left : most - len;
            memcpy(out + len, (const uint8_t *)w->out.pieces[i].iov_base + done, part);
            len += part;
        }
    }
    return len;
}

/* A record, from where it is if it is in one piece. */
static ssize_t conn_send_tls(struct conn *c, size_t *bytes_out) {
    struct conn_write *w = conn_first_write(c);
    const struct iovec *piece = w->piece < w->out.pieces_count ? &w->out.pieces[w->piece] : NULL;
    const uint8_t *from = loop_scratch(conn_loop(c));
    *bytes_out = TLS_RECORD_BYTES;
    if (piece && piece->iov_len - w->piece_done >= TLS_RECORD_BYTES)
        from = (const uint8_t *)piece->iov_base + w->piece_done;
    else
        *bytes_out = conn_copy_next(c, loop_scratch(conn_loop(c)), TLS_RECORD_BYTES);
    return *bytes_out > 0 ? conn_tls_send(c, from, *bytes_out) : 0;
}

/* Send once. True: go on, the kernel may take more. */
static bool conn_send(struct conn *c) {
    size_t bytes;
    ssize_t n = c->tls ? conn_send_tls(c, &bytes) : conn_send_plain(c, &bytes);
    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
        conn_close_as(c, ST_IO);
        return false;
    }
    if (n >= 0)
        conn_advance(c, (size_t)n);
    c->blocked = n < (ssize_t)bytes;
    return !c->blocked;
}

static void conn_on_write_timer(struct timer *t) {
    struct conn *c = container_of(t, struct conn, write_timer);
    if (c->write_due_ms == 0)
        return;
    if (loop_now_ms(conn_loop(c)) < c->write_due_ms)
        conn_timer_set(c, t, conn_on_write_timer, c->write_due_ms);
    else
        conn_close_as(c, ST_TIMED_OUT);
}

/* Everything has gone; what was waiting for that goes on. */
static void conn_on_all_sent(struct conn *c) {
    if (!c->gentle || c->fin_sent) {
        conn_drain_check(c);
        return;
    }
    conn_tls_say_end(c);
    c->fin_sent = true;
    if (c->peer_ended || shutdown(c->fd, SHUT_WR) != 0)
        conn_close(c);
    else
        conn_deadline_update(c);
}

void conn_flush(struct conn *c) {
    for (int round = 0; !c->closing && !c->blocked && !list_empty(&c->writes); round++) {
        if (round == WRITE_ROUNDS_MAX)
            c->blocked = true; /* not really: the next event comes at once, after the others' */
        else
            conn_send(c);
    }
    if (c->closing)
        return;
    if (list_empty(&c->writes)) {
        conn_on_all_sent(c);
    } else if (c->write_due_ms == 0) {
        c->write_due_ms = loop_now_ms(conn_loop(c)) + c->home->settings->write_ms;
        conn_timer_set(c, &c->write_timer, conn_on_write_timer, c->write_due_ms);
    }
}

static void conn_on_flush(struct op *op) {
    struct conn *c = container_of(op, struct conn, flush);
    conn_flush(c);
    conn_arm(c, 0);
}

void conn_write(struct conn *c, struct conn_write *w) {
    w->piece = 0;
    w->piece_done = 0;
    op_start(&w->op, NULL);
    if (c->closing || c->gentle) {
        c->written_late |= c->closing;
        wbuf_release(&w->out);
        op_complete(&w->op, ST_CANCELED);
        return;
    }
    list_push_tail(&c->writes, &w->op.link);
    loop_at_end(conn_loop(c), &c->flush);
}

void conn_write_init(struct conn *c) {
    list_init(&c->writes);
    op_init(&c->flush, conn_loop(c), conn_on_flush);
}

void conn_drop_writes(struct conn *c, enum status st) {
    list_remove(&c->flush.link);
    for (struct conn_write *w; (w = conn_first_write(c));) {
        list_remove(&w->op.link);
        wbuf_release(&w->out);
        op_complete(&w->op, st);
    }
}
