/*
 * look up -> one address after the other: socket, connect, writable -> conn -> the user is told -> on_open
 *
 * An attempt has a dial of its own on the heap: what libuv has not given back yet (a look-up that can't be cancelled, a handle that
 * is closing) holds the dial and never the user.
 */
#include "net/connect.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/mem.h"
#include "net/conn_impl.h"
#include "net/loop.h"
#include "net/loop_impl.h"
#include "net/timer.h"

struct connector {
    struct conn_home home;
    struct conn_settings conn;
    char failed[160]; /* of the last handshake */
    bool freed;       /* its user has no use for it: it goes with its last conn */
};

struct dial {
    struct connect *attempt; /* NULL: it is over */
    struct connector *connector;
    uv_getaddrinfo_t lookup;
    bool looking;
    struct addrinfo *addresses; /* owned */
    struct addrinfo *next;      /* the one to try next */
    int fd;                     /* -1: none */
    char peer[CONN_PEER_BYTES]; /* of fd */
    uv_poll_t poll;
    bool poll_open;    /* its close callback hasn't run */
    struct conn *conn; /* shaking hands */
    char *tls_name;    /* owned */
    struct timer timer;
    int64_t due_ms; /* of the attempt */
    const char *failed;
};

static struct loop *dial_loop(const struct dial *d) {
    return d->connector->home.loop;
}

static void dial_free_if_done(struct dial *d) {
    if (d->attempt || d->looking || d->poll_open)
        return;
    if (d->addresses)
        freeaddrinfo(d->addresses);
    mem_free(d->tls_name);
    mem_free(d);
}

static void dial_on_poll_closed(uv_handle_t *handle);

static void dial_close_poll(struct dial *d) {
    if (d->poll_open && !uv_is_closing((uv_handle_t *)&d->poll))
        uv_close((uv_handle_t *)&d->poll, dial_on_poll_closed);
}

static void dial_close_socket(struct dial *d) {
    dial_close_poll(d);
    if (d->fd >= 0)
        close(d->fd);
    d->fd = -1;
}

/* The user hears of it; d may be gone afterwards. */
static void dial_end(struct dial *d, enum status st) {
    struct connect *attempt = d->attempt;
    d->attempt = NULL;
    attempt->use = NULL;
    attempt->failed = st == ST_OK ? "" : st == ST_TIMED_OUT ? "no answer in time" : d->failed;
    timer_clear(loop_timers(dial_loop(d)), &d->timer);
    dial_close_socket(d);
    if (d->looking)
        uv_cancel((uv_req_t *)&d->lookup);
    if (d->conn) {
        conn_set_user(d->conn, NULL);
        conn_close(d->conn);
    }
    op_complete(&attempt->op, st);
    dial_free_if_done(d);
}

static void dial_on_cancel(struct op *op) {
    struct connect *attempt = container_of(op, struct connect, op);
    if (attempt->use)
        dial_end(attempt->use, ST_CANCELED);
}

/* --- an address --- */

/* A port that nobody listens on may become the socket's own: then it has connected to itself. */
static bool is_own_echo(int fd) {
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t here_len = sizeof here, there_len = sizeof there;
    return getsockname(fd, (struct sockaddr *)&here, &here_len) == 0 &&
           getpeername(fd, (struct sockaddr *)&there, &there_len) == 0 && here_len == there_len &&
           memcmp(&here, &there, here_len) == 0;
}

static void dial_on_timer(struct timer *t);

/* There is a server: what is left of the time is for the handshake with it. */
static void dial_set_last_timer(struct dial *d) {
    d->next = NULL;
    enum status st = timer_set(loop_timers(dial_loop(d)), &d->timer, dial_on_timer, d->due_ms);
    assert(!st); /* it only moves */
    (void)st;
}

static void dial_hand_over(struct dial *d, struct conn *c) {
    d->attempt->conn = c;
    dial_end(d, ST_OK);
    conn_open_soon(c);
}

static void dial_connected(struct dial *d) {
    struct conn *c = conn_make(&d->connector->home, d->fd, d->peer);
    if (!c) {
        d->failed = status_text(ST_NO_MEMORY);
        dial_end(d, ST_NO_MEMORY);
        return;
    }
    dial_close_poll(d); /* from here on the conn polls the socket */
    d->fd = -1;
    if ((d->connector->conn.tls && conn_tls_new(c, d->tls_name)) || !conn_start(c)) {
        conn_close(c);
        d->failed = status_text(ST_NO_MEMORY);
        dial_end(d, ST_NO_MEMORY);
    } else if (c->tls) {
        conn_set_user(c, d);
        d->conn = c;
        dial_set_last_timer(d);
    } else {
        dial_hand_over(d, c);
    }
}

static void connector_on_shaken(struct conn *c, enum status st) {
    struct dial *d = conn_user(c);
    if (!d) /* the attempt has ended it */
        return;
    struct connector *connector = d->connector;
    d->conn = NULL;
    conn_set_user(c, NULL);
    if (st == ST_OK) {
        dial_hand_over(d, c);
        return;
    }
    const char *why = conn_tls_failed(c);
    snprintf(connector->failed, sizeof connector->failed, "%s", *why ? why : status_text(st));
    d->failed = connector->failed;
    dial_end(d, st == ST_INVALID || st == ST_TIMED_OUT || st == ST_NO_MEMORY ? st : ST_UNAVAILABLE);
}

static void dial_on_writable(uv_poll_t *handle, int err, int events) {
    struct dial *d = handle->data;
    int error = 0;
    socklen_t len = sizeof error;
    (void)events;
    if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    else if (error == 0 && err) /* libuv has only one word for all errors of a socket */
        error = -err;
    else if (error == 0 && is_own_echo(d->fd))
        error = ECONNREFUSED;
    if (error == 0) {
        dial_connected(d);
        return;
    }
    d->failed = uv_strerror(uv_translate_sys_error(error));
    dial_close_socket(d); /* the next address, when the handle is free */
}

static void dial_on_timer(struct timer *t) {
    struct dial *d = container_of(t, struct dial, timer);
    if (!d->next || loop_now_ms(dial_loop(d)) >= d->due_ms)
        dial_end(d, ST_TIMED_OUT);
    else
        dial_close_socket(d);
}

/* Each address gets its share of the time that is left, so that one which is silent leaves some for the others. */
static enum status dial_set_timer(struct dial *d) {
    int64_t now_ms = loop_now_ms(dial_loop(d)), left_ms = d->due_ms - now_ms, shares = 1;
    for (const struct addrinfo *a = d->next; a; a = a->ai_next)
        shares++;
    return timer_set(loop_timers(dial_loop(d)), &d->timer, dial_on_timer, now_ms + left_ms / shares);
}

/* False: it failed at once, as failed says. */
static bool dial_try(struct dial *d, const struct addrinfo *a) {
    struct sockaddr_storage peer = {0};
    memcpy(&peer, a->ai_addr, a->ai_addrlen < sizeof peer ? a->ai_addrlen : sizeof peer);
    conn_peer_text(&peer, d->peer);
    d->fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int err = 0;
    if (d->fd < 0 || (connect(d->fd, a->ai_addr, a->ai_addrlen) != 0 && errno != EINPROGRESS))
        err = uv_translate_sys_error(errno);
    else
        err = uv_poll_init(loop_uv(dial_loop(d)), &d->poll, d->fd);
    if (err) {
        d->failed = uv_strerror(err);
        dial_close_socket(d);
        return false;
    }
    d->poll_open = true;
    d->poll.data = d;
    uv_poll_start(&d->poll, UV_WRITABLE, dial_on_writable);
    return true;
}

static void dial_next(struct dial *d) {
    while (d->next) {
        const struct addrinfo *a = d->next;
        d->next = a->ai_next;
        if (dial_set_timer(d)) {
            d->failed = status_text(ST_NO_MEMORY);
            dial_end(d, ST_NO_MEMORY);
            return;
        }
        if (dial_try(d, a))
            return;
    }
    dial_end(d, ST_UNAVAILABLE);
}

static void dial_on_poll_closed(uv_handle_t *handle) {
    struct dial *d = handle->data;
    d->poll_open = false;
    if (d->attempt && !d->conn)
        dial_next(d);
    else
        dial_free_if_done(d);
}

/* --- the look-up --- */

static void dial_on_lookup(uv_getaddrinfo_t *lookup, int err, struct addrinfo *addresses) {
    struct dial *d = container_of(lookup, struct dial, lookup);
    d->looking = false;
    d->addresses = d->next = addresses;
    if (!d->attempt) {
        dial_free_if_done(d);
        return;
    }
    if (err)
        d->failed = uv_strerror(err);
    dial_next(d);
}

static void dial_look_up(struct dial *d, const char *host, int port) {
    char service[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    snprintf(service, sizeof service, "%u", (unsigned)(uint16_t)port);
    if (getaddrinfo(host, service, &hints, &d->addresses) == 0) { /* an IP: it can't block */
        d->next = d->addresses;
        dial_next(d);
        return;
    }
    hints.ai_flags = AI_NUMERICSERV;
    int err = uv_getaddrinfo(loop_uv(dial_loop(d)), &d->lookup, dial_on_lookup, host, service, &hints);
    if (err) {
        d->failed = uv_strerror(err);
        dial_end(d, ST_UNAVAILABLE);
        return;
    }
    d->looking = true;
}

void connector_connect(struct connector *c, struct connect *attempt, const char *host, int port,
                       const char *tls_name, int64_t timeout_ms) {
    op_start(&attempt->op, dial_on_cancel);
    attempt->conn = NULL;
    attempt->use = NULL;
    struct dial *d = mem_take_zeroed(1, sizeof *d);
    if (!d) {
        attempt->failed = status_text(ST_NO_MEMORY);
        op_complete(&attempt->op, ST_NO_MEMORY);
        return;
    }
    d->connector = c;
    d->fd = -1;
    d->failed = "no address";
    d->attempt = attempt;
    attempt->use = d;
    d->due_ms = loop_now_ms(c->home.loop) + timeout_ms;
    d->tls_name = mem_text(str_of(tls_name ? tls_name : host));
    if (!d->tls_name || timer_set(loop_timers(c->home.loop), &d->timer, dial_on_timer, d->due_ms)) {
        d->failed = status_text(ST_NO_MEMORY);
        dial_end(d, ST_NO_MEMORY);
        return;
    }
    dial_look_up(d, host, port);
}

/* --- the connector --- */

static void connector_ignore(struct conn_home *home) {
    (void)home; /* nobody counts its sockets: their users do */
}

/* A conn whose handshake has failed was never anybody's, and closes by itself. */
static void connector_on_conn_gone(struct conn_home *home) {
    struct connector *c = container_of(home, struct connector, home);
    if (c->freed && list_empty(&home->conns))
        mem_free(c);
}

enum status connector_new(const struct connector_settings *settings, struct connector **out) {
    struct connector *c = mem_take_zeroed(1, sizeof *c);
    if (!c)
        return ST_NO_MEMORY;
    c->conn = settings->conn;
    c->home = (struct conn_home){
        .loop = settings->loop,
        .protocol = settings->protocol,
        .settings = &c->conn,
        .user = settings->user,
        .on_socket_close = connector_ignore,
        .on_conn_gone = connector_on_conn_gone,
        .on_shaken = connector_on_shaken,
    };
    list_init(&c->home.conns);
    *out = c;
    return ST_OK;
}

void connector_free(struct connector *c) {
    if (!c)
        return;
    c->freed = true;
    if (list_empty(&c->home.conns))
        mem_free(c);
}

void *connector_user(const struct conn *c) {
    return c->home->user;
}
