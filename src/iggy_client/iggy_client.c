/*
 * Connection, session and time of a client. What comes goes to the session at once; what is due is looked at in
 * client_pump, at the end of each iteration in which something happened.
 */
#include "iggy_client/iggy_client.h"

#include <stdio.h>
#include <sys/random.h>

#include "base/le.h"
#include "base/logging.h"
#include "base/mem.h"
#include "iggy/errors.h"
#include "iggy_client/client_impl.h"
#include "net/loop.h"

#define PAUSE_MS_FIRST   50
#define PAUSE_MS_MAX     1000
#define REFUSED_MS       1000  /* between tries of a login that was refused */
#define REPLY_MS         10000 /* D13-4: a login takes 10 s at most */
#define HEARTBEAT_MS     5000
#define TRANSFER_MS      30000 /* for the rest of an answer, and for a request to leave */
#define ANSWER_BYTES_MAX ((int64_t)256 * 1024 * 1024)
#define HOPS_MAX \
    8 /* versions, a session that is gone, leaders: more for one attempt is a server in a circle */
#define FRAME_SIZE_OFFSET 48

/* --- ends --- */

static void client_end_waits(struct iggy_client *c, enum status st, bool all) {
    for (struct link *l = c->waits.next, *next; l != &c->waits; l = next) {
        next = l->next;
        struct iggy_wait *wait = container_of(l, struct iggy_wait, link);
        if (!all && wait->attempt >= c->attempts)
            continue;
        list_remove(l);
        op_complete(&wait->op, st);
    }
}

static int64_t client_expire_waits(struct iggy_client *c, int64_t now_ms) {
    int64_t next_ms = INT64_MAX;
    for (struct link *l = c->waits.next, *next; l != &c->waits; l = next) {
        next = l->next;
        struct iggy_wait *wait = container_of(l, struct iggy_wait, link);
        if (wait->deadline_ms <= now_ms) {
            list_remove(l);
            op_complete(&wait->op, ST_TIMED_OUT);
        } else if (wait->deadline_ms < next_ms) {
            next_ms = wait->deadline_ms;
        }
    }
    return next_ms;
}

bool client_is_refused(const struct iggy_client *c) {
    return c->refused_ms > loop_now_ms(c->loop);
}

static void client_refuse(struct iggy_client *c, const char *why) {
    snprintf(c->failed, sizeof c->failed, "the login was refused: %s", why);
    log_line_limited(LOG_ERROR, "iggy", "login refused", LTEXT("host", c->host), LINT("port", c->port),
                     LTEXT("reason", why));
    c->refused_ms = c->again_ms = loop_now_ms(c->loop) + REFUSED_MS;
    c->goes_on = false;
    client_drop(c);
    requests_end_queued(c, ST_LOGIN_REFUSED, true);
    client_end_waits(c, ST_LOGIN_REFUSED, true);
}

/* --- connecting --- */

static void client_on_attempt(struct op *op);

static void client_connect_now(struct iggy_client *c) {
    const char *host = c->leader[0] ? c->leader : c->host;
    c->phase = CLIENT_CONNECTING;
    c->hops++;
    op_init(&c->attempt.op, c->loop, client_on_attempt);
    connector_connect(c->connector, &c->attempt, host, c->leader[0] ? c->leader_port : c->port,
                      c->tls_name ? c->tls_name : host, c->connect_ms);
}

static void client_begin_attempt(struct iggy_client *c) {
    c->attempts++;
    c->hops = 0;
    client_connect_now(c);
}

/* Between half of the pause and all of it, so that many clients don't come back in step. */
static void client_pause(struct iggy_client *c) {
    uint16_t random = 0;
    (void)!getrandom(&random, sizeof random, GRND_NONBLOCK); /* none: no jitter, which is no harm */
    c->phase = CLIENT_PAUSED;
    c->again_ms = loop_now_ms(c->loop) + c->pause_ms / 2 + random % (c->pause_ms / 2);
    c->pause_ms = c->pause_ms * 2 < PAUSE_MS_MAX ? c->pause_ms * 2 : PAUSE_MS_MAX;
}

static void client_fail_attempt(struct iggy_client *c, const char *why) {
    snprintf(c->failed, sizeof c->failed, "%s", why);
    log_line_limited(LOG_WARN, "iggy", "no connection", LTEXT("host", c->leader[0] ? c->leader : c->host),
                     LINT("port", c->leader[0] ? c->leader_port : c->port), LTEXT("reason", why));
    c->leader[0] = 0;
    requests_end_queued(c, ST_UNAVAILABLE, false);
    client_end_waits(c, ST_UNAVAILABLE, false);
    client_pause(c); /* and then only if somebody asks, or if there was a session */
    client_wake(c);
}

static void client_on_attempt(struct op *op) {
    struct iggy_client *c = container_of(op, struct iggy_client, attempt.op);
    if (op->status == ST_OK) {
        c->phase = CLIENT_ONLINE;
        c->conn = c->attempt.conn;
        c->leaving = c->was_ready = c->was_of_use = c->goes_on = false;
        if (c->closed)
            client_drop(c);
    } else if (c->closed) {
        client_check_gone(c);
    } else {
        client_fail_attempt(c, c->attempt.failed);
    }
}

void client_wake(struct iggy_client *c) {
    if (c->closed)
        return;
    if (c->phase == CLIENT_IDLE)
        c->phase = CLIENT_PAUSED;
    loop_at_end(c->loop, &c->pump);
}

/* --- the connection --- */

static int64_t client_frame_bytes(const uint8_t *head, int64_t frame_bytes_max) {
    int64_t bytes = le_get32(head + FRAME_SIZE_OFFSET);
    return bytes < IGGY_HEADER_BYTES || bytes - IGGY_HEADER_BYTES > frame_bytes_max ? -1 : bytes;
}

static void client_on_open(struct conn *conn) {
    struct iggy_client *c = connector_user(conn);
    uint8_t random[IGGY_SESSION_RANDOM_BYTES];
    conn_set_user(conn, c);
    conn_set_busy(conn, true); /* how long the server may be silent is the session's to say */
    if (c->leaving)
        return;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        client_drop(c);
        return;
    }
    struct str host = str_of(c->leader[0] ? c->leader : c->host);
    int port = c->leader[0] ? c->leader_port : c->port;
    enum status st = iggy_session_connected(&c->session, host, (uint16_t)port, random, loop_now_ms(c->loop));
    c->tried_version = c->session.version;
    c->tried_bind = c->session.phase == IGGY_BINDING;
    if (st == ST_INVALID)
        client_refuse(c, "the user's name or password is not one that can be sent");
    else if (st)
        client_drop(c);
    client_wake(c);
}

void client_drop(struct iggy_client *c) {
    if (!c->conn || c->leaving)
        return;
    c->leaving = true;
    conn_close(c->conn);
}

static void client_on_hangup(struct conn *conn) {
    (void)conn; /* what is unread is read first; then it is the end */
}

static void client_on_idle_end(struct conn *conn) {
    client_drop(conn_user(conn));
}

/* What was sent on the connection is the session's to judge; what comes next depends on why it ended. */
static void client_on_closed(struct conn *conn) {
    struct iggy_client *c = conn_user(conn);
    int64_t now_ms = loop_now_ms(c->loop);
    c->conn = NULL;
    c->leaving = false;
    iggy_session_disconnected(&c->session, now_ms);
    if (c->closed) {
        client_check_gone(c);
        return;
    }
    if (client_is_refused(c)) {
        c->phase = CLIENT_IDLE;
    } else if (c->goes_on && c->was_ready) {
        client_begin_attempt(c);
    } else if (c->goes_on && c->hops < HOPS_MAX) {
        client_connect_now(c);
    } else if (c->was_ready) {
        snprintf(c->failed, sizeof c->failed, "the connection was lost");
        log_line_limited(LOG_WARN, "iggy", "connection lost", LTEXT("host", c->host), LINT("port", c->port));
        if (c->was_of_use || now_ms - c->ready_ms >= PAUSE_MS_MAX)
            c->pause_ms = PAUSE_MS_FIRST;
        client_pause(c);
    } else {
        client_fail_attempt(c, "the connection was lost before the login was answered");
    }
    loop_at_end(c->loop, &c->pump);
}

/* --- the session's events --- */

static void client_on_ready(struct iggy_client *c, int64_t now_ms) {
    c->version = c->session.version;
    c->was_ready = true;
    c->ready_ms = now_ms;
    c->refused_ms = 0;
    c->failed[0] = 0;
    log_line(LOG_DEBUG, "iggy", "connected", LTEXT("peer", conn_peer(c->conn)), LINT("protocol", c->version));
    client_end_waits(c, ST_OK, true);
    requests_queue(c);
}

static void client_on_reconnect(struct iggy_client *c, const struct iggy_event *e) {
    bool redirect = e->host.len > 0 && (size_t)e->host.len < sizeof c->leader;
    if (redirect) {
        memcpy(c->leader, e->host.ptr, (size_t)e->host.len);
        c->leader[e->host.len] = 0;
        c->leader_port = e->port;
    }
    bool other_version = c->session.version != c->tried_version;
    bool session_gone = c->tried_bind && c->session.lost;
    c->goes_on = redirect || (!c->was_ready && (other_version || session_gone)); /* else it was lost */
    client_drop(c);
}

static void client_note_cluster(struct iggy_client *c, const struct frame *f) {
    struct iggy_header h;
    iggy_header_decode(f->data, &h);
    if (h.frame.kind == IGGY_REPLY && h.reply.operation == IGGY_OP_REGISTER)
        c->cluster = h.frame.cluster;
}

/* f: what came, owned; NULL: nothing, only what is due */
static void client_take(struct iggy_client *c, struct frame *f) {
    struct rbuf in = {NULL, NULL};
    int64_t now_ms = loop_now_ms(c->loop);
    struct iggy_event e;
    if (f)
        in = (struct rbuf){f->data, f->data + f->size_bytes};
    if (f && c->session.phase == IGGY_LOGGING_IN)
        client_note_cluster(c, f);
    while (iggy_session_next(&c->session, &in, now_ms, &e)) {
        switch (e.kind) {
        case IGGY_EVENT_ANSWER:
            c->was_of_use = true;
            request_on_answer(&e, &f);
            break;
        case IGGY_EVENT_FAILED:
            request_on_failed(&e, now_ms);
            break;
        case IGGY_EVENT_READY:
            client_on_ready(c, now_ms);
            break;
        case IGGY_EVENT_RECONNECT:
            client_on_reconnect(c, &e);
            break;
        case IGGY_EVENT_REFUSED:
            client_refuse(c, iggy_error_name(e.code));
            break;
        }
    }
    frame_free(f);
}

static void client_on_frame(struct conn *conn, struct frame *f) {
    struct iggy_client *c = conn_user(conn);
    if (c->leaving)
        frame_free(f);
    else
        client_take(c, f);
    loop_at_end(c->loop, &c->pump);
}

static const struct conn_protocol client_protocol = {
    .head_bytes = IGGY_HEADER_BYTES,
    .frame_bytes = client_frame_bytes,
    .on_open = client_on_open,
    .on_frame = client_on_frame,
    .on_hangup = client_on_hangup,
    .on_idle_end = client_on_idle_end,
    .on_closed = client_on_closed,
};

/* --- time --- */

static int64_t sooner(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static void client_on_timer(struct timer *t);

static void client_set_timer(struct iggy_client *c, int64_t due_ms) {
    enum status st = timer_set(loop_timers(c->loop), &c->timer, client_on_timer, due_ms);
    assert(!st); /* it takes memory only for a timer that isn't set */
    (void)st;
}

static bool session_is_behind(const struct iggy_session *s, int64_t now_ms) {
    bool own = s->own.state == IGGY_CALL_QUEUED && s->own.again_ms <= now_ms && s->phase >= IGGY_LOGGING_IN &&
               s->phase <= IGGY_READY;
    return own || !list_empty(&s->failed) || s->ready_due || s->reconnect_due || s->refused_due;
}

/* Whether a connection is wanted: somebody waits for it, or there was one before. */
static bool client_is_wanted(const struct iggy_client *c) {
    return c->version != 0 || c->in_flight > 0 || !list_empty(&c->waits);
}

static int64_t client_end_pause(struct iggy_client *c, int64_t now_ms) {
    if (c->phase != CLIENT_PAUSED)
        return INT64_MAX;
    if (c->again_ms > now_ms)
        return c->again_ms;
    if (client_is_wanted(c))
        client_begin_attempt(c);
    else
        c->phase = CLIENT_IDLE;
    return INT64_MAX;
}

static void client_pump(struct iggy_client *c) {
    int64_t now_ms = loop_now_ms(c->loop);
    (void)iggy_session_tick(&c->session, now_ms);
    client_take(c, NULL);
    if (c->conn && !c->leaving && requests_send(c, now_ms))
        client_drop(c);
    int64_t due_ms = iggy_session_tick(&c->session, now_ms); /* once more: for when the next is due */
    due_ms = sooner(due_ms, requests_expire(c, now_ms));
    due_ms = sooner(due_ms, client_expire_waits(c, now_ms));
    due_ms = sooner(due_ms, client_end_pause(c, now_ms));
    client_set_timer(c, due_ms);
    if (session_is_behind(&c->session, now_ms))
        loop_at_end(c->loop, &c->pump);
}

static void client_on_pump(struct op *op) {
    struct iggy_client *c = container_of(op, struct iggy_client, pump);
    if (!c->closed)
        client_pump(c);
}

static void client_on_timer(struct timer *t) {
    struct iggy_client *c = container_of(t, struct iggy_client, timer);
    client_set_timer(c, INT64_MAX); /* its place was free a moment ago */
    loop_at_end(c->loop, &c->pump);
}

/* --- waiting for it --- */

static void wait_on_cancel(struct op *op) {
    struct iggy_wait *wait = container_of(op, struct iggy_wait, op);
    if (!link_in_list(&wait->link))
        return;
    list_remove(&wait->link);
    op_complete(op, ST_CANCELED);
}

void iggy_client_connect(struct iggy_client *c, struct iggy_wait *wait) {
    op_start(&wait->op, wait_on_cancel);
    wait->client = c;
    wait->attempt = c->attempts;
    wait->link = (struct link){0};
    if (c->closed)
        op_complete(&wait->op, ST_CANCELED);
    else if (iggy_client_is_ready(c))
        op_complete(&wait->op, ST_OK);
    else if (client_is_refused(c))
        op_complete(&wait->op, ST_LOGIN_REFUSED);
    else
        list_push_tail(&c->waits, &wait->link);
    client_wake(c);
}

bool iggy_client_is_ready(const struct iggy_client *c) {
    return c->conn && !c->leaving && c->session.phase == IGGY_READY;
}

uint32_t iggy_client_version(const struct iggy_client *c) {
    return c->version;
}

struct iggy_u128 iggy_client_cluster(const struct iggy_client *c) {
    return c->cluster;
}

int32_t iggy_client_in_flight(const struct iggy_client *c) {
    return c->in_flight;
}

int64_t iggy_client_used_ms(const struct iggy_client *c) {
    return c->used_ms;
}

const char *iggy_client_failed(const struct iggy_client *c) {
    return c->failed;
}

/* --- life --- */

static void client_free(struct iggy_client *c) {
    timer_clear(loop_timers(c->loop), &c->timer);
    list_remove(&c->pump.link);
    iggy_session_release(&c->session);
    connector_free(c->connector);
    mem_free(c->host);
    mem_free(c->username);
    mem_free(c->password);
    mem_free(c->tls_name);
    mem_free(c);
}

static void client_on_gone(struct op *op) {
    struct iggy_client *c = container_of(op, struct iggy_client, gone);
    struct op *done = c->closed;
    client_free(c);
    op_complete(done, ST_OK);
}

void client_check_gone(struct iggy_client *c) {
    if (c->closed && !c->conn && !c->attempt.op.pending && list_empty(&c->requests) &&
        !link_in_list(&c->gone.link))
        loop_post(&c->gone); /* behind the ends of its requests */
}

void iggy_client_close(struct iggy_client *c, struct op *done) {
    assert(!c->closed);
    op_start(done, NULL);
    c->closed = done;
    requests_cancel_all(c);
    client_end_waits(c, ST_CANCELED, true);
    op_cancel(&c->attempt.op);
    client_drop(c);
    client_check_gone(c);
}

static enum status client_copy_texts(struct iggy_client *c, const struct iggy_client_settings *settings) {
    c->host = mem_text(str_of(settings->host));
    c->username = mem_text(str_of(settings->username));
    c->password = mem_text(str_of(settings->password));
    if (!c->host || !c->username || !c->password)
        return ST_NO_MEMORY;
    if (!settings->tls_name)
        return ST_OK;
    c->tls_name = mem_text(str_of(settings->tls_name));
    return c->tls_name ? ST_OK : ST_NO_MEMORY;
}

static enum status client_make_connector(struct iggy_client *c, const struct iggy_client_settings *settings) {
    struct connector_settings connector = {
        .loop = c->loop,
        .protocol = &client_protocol,
        .conn =
            {
                .frame_bytes_max = ANSWER_BYTES_MAX,
                .idle_ms = TRANSFER_MS,
                .read_ms = TRANSFER_MS,
                .write_ms = TRANSFER_MS,
                .budget = settings->budget,
                .tls = settings->tls,
            },
        .user = c,
    };
    return connector_new(&connector, &c->connector);
}

enum status iggy_client_new(const struct iggy_client_settings *settings, struct iggy_client **out) {
    struct iggy_client *c = mem_take_zeroed(1, sizeof *c);
    if (!c)
        return ST_NO_MEMORY;
    c->loop = settings->loop;
    c->port = settings->port;
    c->connect_ms = settings->connect_ms;
    c->pause_ms = PAUSE_MS_FIRST;
    c->used_ms = loop_now_ms(c->loop);
    list_init(&c->requests);
    list_init(&c->waits);
    op_init(&c->pump, c->loop, client_on_pump);
    op_init(&c->gone, c->loop, client_on_gone);
    enum status st = client_copy_texts(c, settings);
    if (!st)
        st = client_make_connector(c, settings);
    if (!st)
        st = timer_set(loop_timers(c->loop), &c->timer, client_on_timer, INT64_MAX);
    if (st) {
        client_free(c);
        return st;
    }
    c->config = (struct iggy_session_config){
        .username = str_of(c->username),
        .password = str_of(c->password),
        .sdk_name = STR("iggy-gateway-kafka"),
        .sdk_version = STR(KGW_VERSION),
        .version_newest = settings->version_newest,
        .in_flight_max = settings->in_flight_max,
        .reply_ms = REPLY_MS,
        .heartbeat_ms = HEARTBEAT_MS,
    };
    iggy_session_init(&c->session, &c->config);
    *out = c;
    return ST_OK;
}
