#include "net/conn.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/conn_impl.h"
#include "net/loop.h"
#include "net/loop_impl.h"

static_assert(sizeof(struct conn) <= 1024, "ten thousand idle connections cost ten megabytes");

void conn_set_user(struct conn *c, void *user) {
    c->user = user;
}

void *conn_user(const struct conn *c) {
    return c->user;
}

struct loop *conn_loop(const struct conn *c) {
    return c->home->loop;
}

const char *conn_peer(const struct conn *c) {
    return c->peer;
}

int64_t conn_rtt_us(const struct conn *c) {
    struct tcp_info info;
    socklen_t len = sizeof info;
    return getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 ? (int64_t)info.tcpi_rtt : 0;
}

/* --- events --- */

static void conn_on_event(uv_poll_t *handle, int err, int events);

static bool conn_discards(const struct conn *c) {
    return c->gentle && !c->peer_ended;
}

static void conn_poll(struct conn *c, int events) {
    c->armed = events;
    if (events)
        uv_poll_start(&c->poll, events, conn_on_event);
    else
        uv_poll_stop(&c->poll);
}

void conn_arm(struct conn *c, int seen) {
    if (c->closing)
        return;
    if (conn_tls_is_shaking(c)) {
        conn_poll(c, conn_tls_wants_write(c) ? UV_WRITABLE : UV_READABLE);
        return;
    }
    int wanted = (conn_reads(c) || conn_discards(c) ? UV_READABLE : 0) | (c->blocked ? UV_WRITABLE : 0) |
                 (c->reading_ended || c->hung_up ? 0 : UV_DISCONNECT);
    if ((wanted & ~c->armed) || (seen & ~wanted))
        conn_poll(c, wanted);
}

static void conn_hang_up(struct conn *c) {
    c->hung_up = true;
    c->home->protocol->on_hangup(c);
}

static void conn_open(struct conn *c) {
    c->opened = true;
    c->home->protocol->on_open(c);
    conn_deadline_update(c);
    conn_read_more(c);
    conn_arm(c, 0);
}

static void conn_shake(struct conn *c) {
    enum status st = conn_tls_shake(c);
    if (st == ST_AGAIN) {
        conn_arm(c, 0);
    } else if (st) {
        conn_close_as(c, st);
    } else if (c->home->on_shaken) {
        conn_poll(c, 0); /* until it is open */
        c->home->on_shaken(c, ST_OK);
    } else {
        conn_open(c);
    }
}

static void conn_on_event(uv_poll_t *handle, int err, int events) {
    struct conn *c = handle->data;
    if (err) {
        conn_close_as(c, ST_IO);
        return;
    }
    if (!c->opened) {
        conn_shake(c);
        return;
    }
    bool read = (events & UV_READABLE) || ((events & UV_WRITABLE) && conn_tls_wants_write(c));
    if (events & UV_WRITABLE) {
        c->blocked = false;
        conn_flush(c);
    }
    if (read && conn_reads(c))
        conn_read(c);
    else if ((events & UV_READABLE) && conn_discards(c))
        conn_discard(c);
    else if ((events & UV_DISCONNECT) && !c->reading_ended && !c->hung_up)
        conn_hang_up(c);
    conn_arm(c, events);
}

/* --- deadlines --- */

void conn_timer_set(struct conn *c, struct timer *t, timer_fn *fire, int64_t due_ms) {
    if (t->place != 0 && t->due_ms <= due_ms)
        return;
    if (timer_set(loop_timers(conn_loop(c)), t, fire, due_ms))
        conn_close_as(c, ST_NO_MEMORY);
}

static void conn_on_read_timer(struct timer *t) {
    struct conn *c = container_of(t, struct conn, read_timer);
    if (c->deadline == CONN_NO_DEADLINE)
        return;
    if (loop_now_ms(conn_loop(c)) < c->deadline_ms)
        conn_timer_set(c, t, conn_on_read_timer, c->deadline_ms);
    else
        conn_close_as(c, ST_TIMED_OUT);
}

static enum conn_deadline conn_deadline_wanted(const struct conn *c) {
    if (c->closing)
        return CONN_NO_DEADLINE;
    if (c->fin_sent)
        return CONN_LINGER;
    if (conn_tls_is_shaking(c))
        return CONN_READ;
    if (!conn_reads(c))
        return CONN_NO_DEADLINE;
    if (c->frame)
        return CONN_READ;
    return c->busy ? CONN_NO_DEADLINE : CONN_IDLE;
}

void conn_deadline_update(struct conn *c) {
    enum conn_deadline wanted = conn_deadline_wanted(c);
    if (wanted == c->deadline)
        return;
    c->deadline = wanted;
    if (wanted == CONN_NO_DEADLINE)
        return;
    const struct conn_settings *settings = c->home->settings;
    int64_t wait_ms = wanted == CONN_IDLE   ? c->idle_ms
                      : wanted == CONN_READ ? settings->read_ms
                                            : settings->write_ms;
    c->deadline_ms = loop_now_ms(conn_loop(c)) + wait_ms;
    conn_timer_set(c, &c->read_timer, conn_on_read_timer, c->deadline_ms);
}

void conn_set_busy(struct conn *c, bool busy) {
    c->busy = busy;
    conn_deadline_update(c);
    conn_drain_check(c);
}

void conn_set_idle_ms(struct conn *c, int64_t idle_ms) {
    c->idle_ms = idle_ms;
    if (c->deadline == CONN_IDLE)
        c->deadline = CONN_NO_DEADLINE;
    conn_deadline_update(c);
}

void conn_set_frame_bytes_max(struct conn *c, int64_t bytes_max) {
    c->frame_bytes_max = bytes_max;
}

/* --- the end --- */

static void conn_on_end(struct op *op) {
    struct conn *c = container_of(op, struct conn, life);
    if (c->written_late) { /* its done is in the queue behind us, and on_closed is the last */
        c->written_late = false;
        loop_post(op);
        return;
    }
    struct conn_home *home = c->home;
    if (c->opened) {
        conn_tell_end(c);
        home->protocol->on_closed(c);
    }
    list_remove(&c->link);
    conn_tls_free(c);
    mem_free(c);
    home->on_conn_gone(home);
}

void conn_end_if_closed(struct conn *c) {
    if (!c->closing || c->handle_open || c->wait.op.pending || link_in_list(&c->life.link))
        return;
    op_init(&c->life, conn_loop(c), conn_on_end);
    loop_post(&c->life);
}

static void conn_on_handle_closed(uv_handle_t *handle) {
    struct conn *c = handle->data;
    c->handle_open = false;
    conn_end_if_closed(c);
}

void conn_close_as(struct conn *c, enum status st) {
    if (c->closing)
        return;
    struct timers *timers = loop_timers(conn_loop(c));
    bool shaking = conn_tls_is_shaking(c);
    conn_tls_say_end(c);
    c->closing = true;
    conn_stop_reading(c);
    conn_drop_writes(c, st);
    timer_clear(timers, &c->read_timer);
    timer_clear(timers, &c->write_timer);
    c->home->on_socket_close(c->home);
    if (c->handle_open)
        uv_close((uv_handle_t *)&c->poll, conn_on_handle_closed);
    close(c->fd);
    conn_end_if_closed(c);
    if (shaking && c->home->on_shaken)
        c->home->on_shaken(c, st);
}

void conn_close(struct conn *c) {
    conn_close_as(c, ST_CANCELED);
}

void conn_close_gently(struct conn *c) {
    if (c->closing || c->gentle)
        return;
    c->gentle = true;
    conn_stop_reading(c);
    conn_deadline_update(c);
    loop_at_end(conn_loop(c), &c->flush);
    conn_arm(c, 0);
}

void conn_drain_check(struct conn *c) {
    if (!c->draining || c->closing || c->gentle || c->busy || !list_empty(&c->writes))
        return;
    int unread = 0;
    if (ioctl(c->fd, FIONREAD, &unread) == 0 && unread == 0)
        conn_close(c);
    else
        conn_close_gently(c); /* closing over unread input would reset, and the last answer might be lost */
}

void conn_drain(struct conn *c) {
    if (!c->opened) {
        conn_close(c);
        return;
    }
    c->draining = true;
    conn_stop_reading(c);
    conn_tell_end(c);
    conn_deadline_update(c);
    conn_drain_check(c);
}

/* --- the beginning --- */

bool conn_start(struct conn *c) {
    const int on = 1;
    list_push_tail(&c->home->conns, &c->link);
    if (c->home->settings->tls && !c->tls && conn_tls_new(c, NULL)) {
        conn_close_as(c, ST_NO_MEMORY);
        return false;
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(c->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    if (uv_poll_init(loop_uv(conn_loop(c)), &c->poll, c->fd)) {
        conn_close_as(c, ST_IO);
        return false;
    }
    c->poll.data = c;
    c->handle_open = true;
    if (c->tls) {
        conn_deadline_update(c);
        conn_arm(c, 0);
    }
    return !c->closing; /* the deadline may have had no memory */
}

static void conn_on_start(struct op *op) {
    struct conn *c = container_of(op, struct conn, life);
    if (conn_start(c) && !c->tls)
        conn_open(c);
}

static void conn_on_open(struct op *op) {
    struct conn *c = container_of(op, struct conn, life);
    conn_open(c);
    conn_end_if_closed(c);
}

void conn_open_soon(struct conn *c) {
    op_init(&c->life, conn_loop(c), conn_on_open);
    loop_post(&c->life);
}

void conn_peer_text(const struct sockaddr_storage *peer, char out[CONN_PEER_BYTES]) {
    char ip[INET6_ADDRSTRLEN] = "?";
    if (peer->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)peer;
        inet_ntop(AF_INET, &in->sin_addr, ip, sizeof ip);
        snprintf(out, CONN_PEER_BYTES, "%s:%u", ip, ntohs(in->sin_port));
    } else {
        const struct sockaddr_in6 *in6 = (const void *)peer;
        inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof ip);
        snprintf(out, CONN_PEER_BYTES, "[%s]:%u", ip, ntohs(in6->sin6_port));
    }
}

void conn_local(const struct conn *c, char out[CONN_ADDRESS_BYTES]) {
    static_assert(CONN_ADDRESS_BYTES == CONN_PEER_BYTES, "both are written by conn_peer_text");
    struct sockaddr_storage at = {0};
    socklen_t at_len = sizeof at;
    snprintf(out, CONN_ADDRESS_BYTES, "?");
    if (getsockname(c->fd, (struct sockaddr *)&at, &at_len) == 0)
        conn_peer_text(&at, out);
}

struct conn *conn_make(struct conn_home *home, int fd, const char *peer) {
    struct conn *c = mem_take_zeroed(1, sizeof *c);
    if (!c)
        return NULL;
    c->home = home;
    c->fd = fd;
    c->idle_ms = home->settings->idle_ms;
    c->frame_bytes_max = home->settings->frame_bytes_max;
    snprintf(c->peer, sizeof c->peer, "%s", peer);
    conn_read_init(c);
    conn_write_init(c);
    return c;
}

enum status conn_new(struct conn_home *home, int fd, const char *peer) {
    struct conn *c = conn_make(home, fd, peer);
    if (!c)
        return ST_NO_MEMORY;
    op_init(&c->life, home->loop, conn_on_start);
    loop_post(&c->life);
    return ST_OK;
}
