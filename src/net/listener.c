#include "net/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/logging.h"
#include "base/mem.h"
#include "net/conn_impl.h"
#include "net/loop.h"
#include "net/loop_impl.h"

#define ACCEPTS_MAX     64 /* for one event, so that a flood of connections doesn't hold loop 0 */
#define ACCEPT_PAUSE_MS 10 /* B-9 */
#define PORT_DIGITS_MAX 5
#define ADDRESS_LEN_MAX (INET6_ADDRSTRLEN - 1)

/* The connections of one loop, and its part in the drain. On that loop. */
struct listener_home {
    struct conn_home conns;
    struct listener *listener;
    struct op drain;
    struct op emptied; /* to loop 0: the drain is over here */
    struct timer hard; /* the end of drain_ms */
    bool draining, reported;
};

/* On loops[0], but for connections. */
struct listener {
    struct conn_settings conn;
    int64_t connections_max;
    _Atomic int64_t connections; /* open sockets */
    int fd, port;
    uv_poll_t poll;
    bool handle_open;
    struct timer pause;
    int next_home;
    struct op open, drain;
    struct op *drained; /* the caller's */
    int64_t drain_ms;
    int left; /* homes that aren't empty yet, and our handle */
    int homes_count;
    struct listener_home homes[];
};

/* --- accept --- */

static void listener_on_connection(uv_poll_t *handle, int err, int events);

static struct timers *listener_timers(struct listener *l) {
    return loop_timers(l->open.loop);
}

static void listener_on_pause_end(struct timer *t) {
    struct listener *l = container_of(t, struct listener, pause);
    uv_poll_start(&l->poll, UV_READABLE, listener_on_connection);
}

static void listener_pause(struct listener *l) {
    if (timer_set(listener_timers(l), &l->pause, listener_on_pause_end,
                  loop_now_ms(l->open.loop) + ACCEPT_PAUSE_MS))
        return; /* no memory: try again at once rather than never */
    uv_poll_stop(&l->poll);
}

static void listener_take(struct listener *l, int fd, const struct sockaddr_storage *from) {
    char peer[CONN_PEER_BYTES];
    conn_peer_text(from, peer);
    if (atomic_load(&l->connections) >= l->connections_max) {
        log_line_limited(LOG_WARN, "net", "connection refused: too many", LINT("limit", l->connections_max),
                         LTEXT("peer", peer));
        close(fd);
        return;
    }
    struct listener_home *home = &l->homes[l->next_home];
    l->next_home = (l->next_home + 1) % l->homes_count;
    atomic_fetch_add(&l->connections, 1);
    if (conn_new(&home->conns, fd, peer)) {
        log_line_limited(LOG_WARN, "net", "connection refused: no memory", LTEXT("peer", peer));
        atomic_fetch_sub(&l->connections, 1);
        close(fd);
    }
}

static void listener_on_connection(uv_poll_t *handle, int err, int events) {
    struct listener *l = handle->data;
    (void)events;
    for (int i = 0; i < ACCEPTS_MAX && !err; i++) {
        struct sockaddr_storage from;
        socklen_t from_len = sizeof from;
        int fd = accept4(l->fd, (struct sockaddr *)&from, &from_len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            listener_take(l, fd, &from);
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return;
        else if (errno != EINTR && errno != ECONNABORTED)
            err = errno;
    }
    if (!err)
        return;
    log_line_limited(LOG_WARN, "net", "accept failed, trying again",
                     LTEXT("error", strerror(err > 0 ? err : -err)));
    listener_pause(l);
}

static void listener_on_open(struct op *op) {
    struct listener *l = container_of(op, struct listener, open);
    int err = uv_poll_init(loop_uv(op->loop), &l->poll, l->fd);
    if (err) {
        log_line(LOG_ERROR, "net", "can't accept connections", LTEXT("error", uv_strerror(err)));
        return;
    }
    l->poll.data = l;
    l->handle_open = true;
    uv_poll_start(&l->poll, UV_READABLE, listener_on_connection);
}

void listener_open(struct listener *l) {
    loop_post(&l->open);
}

/* --- drain --- */

static void listener_one_less(struct listener *l) {
    if (--l->left == 0)
        op_complete(l->drained, ST_OK);
}

static void listener_on_emptied(struct op *op) {
    listener_one_less(container_of(op, struct listener_home, emptied)->listener);
}

static void listener_on_handle_closed(uv_handle_t *handle) {
    listener_one_less(handle->data);
}

static void listener_on_conn_gone(struct conn_home *conns) {
    struct listener_home *home = container_of(conns, struct listener_home, conns);
    if (!home->draining || home->reported || !list_empty(&conns->conns))
        return;
    home->reported = true;
    timer_clear(loop_timers(conns->loop), &home->hard);
    loop_post(&home->emptied);
}

static void listener_on_socket_close(struct conn_home *conns) {
    atomic_fetch_sub(&container_of(conns, struct listener_home, conns)->listener->connections, 1);
}

static void listener_close_hard(struct listener_home *home) {
    for (struct link *l = home->conns.conns.next; l != &home->conns.conns; l = l->next)
        conn_close(container_of(l, struct conn, link)); /* it leaves the list later */
}

static void listener_on_hard(struct timer *t) {
    listener_close_hard(container_of(t, struct listener_home, hard));
}

static void listener_on_home_drain(struct op *op) {
    struct listener_home *home = container_of(op, struct listener_home, drain);
    int64_t drain_ms = home->listener->drain_ms;
    home->draining = true;
    if (drain_ms > 0)
        for (struct link *l = home->conns.conns.next; l != &home->conns.conns; l = l->next)
            conn_drain(container_of(l, struct conn, link));
    if (drain_ms <= 0 ||
        timer_set(loop_timers(op->loop), &home->hard, listener_on_hard, loop_now_ms(op->loop) + drain_ms))
        listener_close_hard(home);
    listener_on_conn_gone(&home->conns); /* there may be none */
}

static void listener_on_drain(struct op *op) {
    struct listener *l = container_of(op, struct listener, drain);
    l->left = l->homes_count + (l->handle_open ? 1 : 0);
    timer_clear(listener_timers(l), &l->pause);
    if (l->handle_open)
        uv_close((uv_handle_t *)&l->poll, listener_on_handle_closed);
    close(l->fd);
    l->fd = -1;
    for (int i = 0; i < l->homes_count; i++) /* behind the connections that were handed over before */
        loop_post(&l->homes[i].drain);
}

void listener_drain(struct listener *l, int64_t drain_ms, struct op *done) {
    assert(!l->drained);
    op_start(done, NULL);
    l->drained = done;
    l->drain_ms = drain_ms;
    loop_post(&l->drain);
}

/* --- life --- */

/* "IP:port" or "[IPv6]:port" in numbers. */
static enum status listener_parse(const char *text, struct sockaddr_storage *out, socklen_t *out_len) {
    const char *colon = strrchr(text, ':');
    if (!colon)
        return ST_INVALID;
    size_t digits = strspn(colon + 1, "0123456789");
    if (digits == 0 || digits > PORT_DIGITS_MAX || colon[1 + digits] != '\0')
        return ST_INVALID;
    long port = strtol(colon + 1, NULL, 10);
    bool v6 = text[0] == '[' && colon > text && colon[-1] == ']';
    const char *ip_begin = v6 ? text + 1 : text, *ip_end = v6 ? colon - 1 : colon;
    if (port > UINT16_MAX || ip_end - ip_begin > ADDRESS_LEN_MAX || ip_end < ip_begin)
        return ST_INVALID;

    char ip[ADDRESS_LEN_MAX + 1] = {0};
    memcpy(ip, ip_begin, (size_t)(ip_end - ip_begin));
    memset(out, 0, sizeof *out);
    struct sockaddr_in *in = (void *)out;
    struct sockaddr_in6 *in6 = (void *)out;
    if (v6) {
        *in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
        *out_len = sizeof *in6;
        return inet_pton(AF_INET6, ip, &in6->sin6_addr) == 1 ? ST_OK : ST_INVALID;
    }
    *in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    *out_len = sizeof *in;
    return inet_pton(AF_INET, ip, &in->sin_addr) == 1 ? ST_OK : ST_INVALID;
}

static enum status listener_bind(struct listener *l, const char *address) {
    struct sockaddr_storage at;
    socklen_t at_len;
    const int on = 1;
    enum status st = listener_parse(address, &at, &at_len);
    if (st)
        return st;
    l->fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (l->fd < 0)
        return ST_IO;
    if (setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(l->fd, (const struct sockaddr *)&at, at_len) != 0 || listen(l->fd, SOMAXCONN) != 0 ||
        getsockname(l->fd, (struct sockaddr *)&at, &at_len) != 0)
        return errno == EADDRINUSE ? ST_IN_USE : ST_IO;
    l->port = ntohs(at.ss_family == AF_INET ? ((struct sockaddr_in *)(void *)&at)->sin_port
                                            : ((struct sockaddr_in6 *)(void *)&at)->sin6_port);
    return ST_OK;
}

static void listener_home_init(struct listener *l, struct listener_home *home, struct loop *loop,
                               const struct listener_settings *settings) {
    home->listener = l;
    home->conns = (struct conn_home){
        .loop = loop,
        .protocol = settings->protocol,
        .settings = &l->conn,
        .user = settings->user,
        .on_socket_close = listener_on_socket_close,
        .on_conn_gone = listener_on_conn_gone,
    };
    list_init(&home->conns.conns);
    op_init(&home->drain, loop, listener_on_home_drain);
    op_init(&home->emptied, settings->loops[0], listener_on_emptied);
}

enum status listener_new(const struct listener_settings *settings, struct listener **out) {
    assert(settings->loops_count > 0);
    struct listener *l =
        mem_take_zeroed(1, sizeof *l + (size_t)settings->loops_count * sizeof(struct listener_home));
    if (!l)
        return ST_NO_MEMORY;
    l->fd = -1;
    l->conn = settings->conn;
    l->connections_max = settings->connections_max;
    l->homes_count = settings->loops_count;
    op_init(&l->open, settings->loops[0], listener_on_open);
    op_init(&l->drain, settings->loops[0], listener_on_drain);
    for (int i = 0; i < settings->loops_count; i++)
        listener_home_init(l, &l->homes[i], settings->loops[i], settings);
    enum status st = listener_bind(l, settings->address);
    if (st) {
        int err = errno;
        listener_free(l);
        errno = err;
        return st;
    }
    *out = l;
    return ST_OK;
}

void listener_free(struct listener *l) {
    if (!l)
        return;
    if (l->fd >= 0)
        close(l->fd);
    mem_free(l);
}

int listener_port(const struct listener *l) {
    return l->port;
}

void *listener_user(const struct conn *c) {
    return c->home->user;
}

int64_t listener_connections(const struct listener *l) {
    return atomic_load(&l->connections);
}
