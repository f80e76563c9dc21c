#include "iggy_server/client.h"

#include "base/le.h"
#include "base/logging.h"
#include "base/mem.h"
#include "iggy_server/request_impl.h"
#include "net/listener.h"
#include "net/loop.h"

#define SIZE_OFFSET 48 /* of the frame, in its header */
#define KIND_OFFSET 60
#define KIND_MAX    29

static void client_on_open(struct conn *conn);
static void client_on_frame(struct conn *conn, struct frame *f);
static void client_on_hangup(struct conn *conn);
static void client_on_reading_end(struct conn *conn);
static void client_on_closed(struct conn *conn);
static void client_on_written(struct op *op);

/* What isn't even a frame between an Iggy server and anyone closes. */
static int64_t client_frame_bytes(const uint8_t *head, int64_t frame_bytes_max) {
    uint32_t size = le_get32(head + SIZE_OFFSET);
    if (size < IGGY_HEADER_BYTES || size > frame_bytes_max || head[KIND_OFFSET] > KIND_MAX)
        return -1;
    return size;
}

const struct conn_protocol client_protocol = {
    .head_bytes = IGGY_HEADER_BYTES,
    .frame_bytes = client_frame_bytes,
    .on_open = client_on_open,
    .on_frame = client_on_frame,
    .on_hangup = client_on_hangup,
    .on_idle_end = client_on_reading_end,
    .on_closed = client_on_closed,
};

/* ---- life ---- */

static struct iggy_loop *loop_of(struct iggy_server *s, const struct loop *loop) {
    for (int i = 0; i < s->settings.loops_count; i++)
        if (s->settings.loops[i] == loop)
            return &s->per_loop[i];
    return NULL;
}

static uint32_t client_next_number(struct iggy_server *s) {
    uint32_t number;
    do
        number = atomic_fetch_add(&s->next_client, 1);
    while (number == 0); /* it means none */
    return number;
}

static void client_on_open(struct conn *conn) {
    struct iggy_server *s = listener_user(conn);
    struct client *c = mem_take_zeroed(1, sizeof *c);
    if (!c) {
        conn_close(conn);
        return;
    }
    c->server = s;
    c->conn = conn;
    c->number = client_next_number(s);
    c->heard_ms = loop_now_ms(conn_loop(conn));
    list_init(&c->requests);
    list_init(&c->polls);
    list_push_tail(&loop_of(s, conn_loop(conn))->clients, &c->link);
    conn_set_user(conn, c);
    conn_set_frame_bytes_max(conn, CLIENT_LOGIN_BYTES);
}

static void client_free_if_done(struct client *c) {
    if (c->conn || c->in_flight > 0)
        return;
    list_remove(&c->link);
    mem_free(c);
}

void client_close(struct client *c, const char *why) {
    if (!c->conn || c->closing)
        return;
    log_line_limited(LOG_WARN, "iggy", "connection closes", LTEXT("why", why),
                     LTEXT("peer", conn_peer(c->conn)));
    c->closing = true;
    conn_close(c->conn);
}

/* ---- its session ---- */

void client_set_session(struct client *c, struct session *session, uint32_t version) {
    session_unref(c->session);
    c->session = session;
    c->version = version;
    if (!c->conn)
        return;
    conn_set_idle_ms(c->conn, session ? CLIENT_IDLE_MS : CLIENT_LOGIN_MS);
    if (session) /* for good: who has lost its session must be told so, whatever it sends next */
        conn_set_frame_bytes_max(c->conn, IGGY_FRAME_BYTES_MAX);
}

bool client_has_session(struct client *c) {
    if (c->session && !session_is_of(c->session, c->number))
        client_set_session(c, NULL, 0);
    return c->session != NULL;
}

static void client_leave_session(struct client *c, int64_t now_ms) {
    if (!c->session)
        return;
    session_leave(c->server->sessions, c->session, c->number, now_ms);
    client_set_session(c, NULL, 0);
}

/* ---- requests in ---- */

static void client_update_reading(struct client *c) {
    if (!c->conn || c->closing)
        return;
    if (c->alone || c->in_flight >= CLIENT_IN_FLIGHT)
        conn_pause(c->conn);
    else
        conn_resume(c->conn);
}

void client_run_alone(struct client *c) {
    c->alone = true;
    client_update_reading(c);
}

static void client_on_frame(struct conn *conn, struct frame *f) {
    struct client *c = conn_user(conn);
    if (!c || c->closing || f->data[KIND_OFFSET] != IGGY_REQUEST) {
        frame_free(f); /* traffic between replicas: nobody waits for an answer */
        return;
    }
    c->heard_ms = loop_now_ms(conn_loop(conn));
    struct server_request *r = request_new(c, f);
    if (!r) {
        frame_free(f);
        client_close(c, "no memory for a request");
        return;
    }
    list_push_tail(&c->requests, &r->link);
    c->in_flight++;
    conn_set_busy(conn, true);
    client_update_reading(c);
    request_run(r);
}

/* ---- replies out ---- */

void client_send(struct client *c, struct server_request *r) {
    r->parked = NULL;
    list_remove(&r->link);
    if (r->alone)
        c->alone = false;
    if (r->deferred)
        c->deferred--;
    op_init(&r->write.op, r->loop, client_on_written);
    if (r->write.out.bytes == 0 && !r->silent)
        client_close(c, "no memory for an answer");
    if (r->write.out.bytes > 0 && c->conn && !c->closing) {
        conn_write(c->conn, &r->write);
    } else { /* through the queue, so that a request never goes while its handler is on the stack */
        wbuf_release(&r->write.out);
        loop_post(&r->write.op);
    }
    client_update_reading(c);
}

static void client_on_written(struct op *op) {
    struct server_request *r = container_of(op, struct server_request, write.op);
    struct client *c = r->client;
    request_free(r);
    c->in_flight--;
    client_update_reading(c);
    if (c->conn && !c->closing && c->in_flight == 0) {
        conn_set_busy(c->conn, false);
        if (c->ending)
            conn_close_gently(c->conn);
    }
    client_free_if_done(c);
}

/* ---- the end ---- */

void client_cancel(struct client *c) {
    for (struct link *l = c->requests.next; l != &c->requests; l = l->next) {
        struct server_request *r = container_of(l, struct server_request, link);
        if (r->parked)
            op_cancel(r->parked);
    }
}

void client_cancel_number(struct client *c, uint64_t number) {
    for (struct link *l = c->requests.next; l != &c->requests; l = l->next) {
        struct server_request *r = container_of(l, struct server_request, link);
        if (!r->deferred || r->header.request != number)
            continue;
        r->canceled = true; /* it may be reading just now, and not park any more */
        if (r->parked)
            op_cancel(r->parked);
    }
}

static void client_on_hangup(struct conn *conn) {
    struct client *c = conn_user(conn);
    if (!c)
        return;
    atomic_store(&c->left, true);
    client_cancel(c);
}

static void client_on_reading_end(struct conn *conn) {
    struct client *c = conn_user(conn);
    if (!c)
        return;
    c->ending = true;
    atomic_store(&c->left, true);
    client_cancel(c);
    if (c->in_flight == 0)
        conn_close(conn);
}

static void client_on_closed(struct conn *conn) {
    struct client *c = conn_user(conn);
    if (!c)
        return;
    c->conn = NULL;
    client_leave_session(c, loop_now_ms(conn_loop(conn)));
    client_cancel(c);
    client_free_if_done(c);
}

/* ---- silence ---- */

/* A frame that no request asked for. */
struct notice {
    struct conn_write write;
};

static void notice_on_written(struct op *op) {
    struct notice *n = container_of(op, struct notice, write.op);
    wbuf_release(&n->write.out);
    mem_free(n);
}

static void client_notify_eviction(struct client *c, uint8_t reason) {
    struct notice *n = mem_take_zeroed(1, sizeof *n);
    if (!n || eviction_write(c->server, &c->session->client_id, reason, &n->write.out)) {
        if (n)
            wbuf_release(&n->write.out);
        mem_free(n);
        client_close(c, "no memory for an eviction");
        return;
    }
    op_init(&n->write.op, conn_loop(c->conn), notice_on_written);
    conn_write(c->conn, &n->write);
}

static bool is_member(const struct client *c) {
    struct iggy_client_group *groups;
    uint32_t count = 0;
    struct arena a;
    arena_init(&a, NULL, 0, (size_t)1 << 20);
    enum status st = groups_of_session(c->server->groups, c->session->number, &a, &groups, &count);
    arena_release(&a);
    return st || count > 0; /* more groups than fit are some */
}

void client_check_silence(struct client *c, int64_t now_ms) {
    bool silent = c->conn && !c->closing && now_ms - c->heard_ms >= CLIENT_SILENT_MS;
    if (!silent || !client_has_session(c) || !is_member(c))
        return;
    log_line(LOG_DEBUG, "iggy", "a silent group member is evicted", LTEXT("peer", conn_peer(c->conn)));
    client_notify_eviction(c, IGGY_EVICTED_STALE_CLIENT);
    session_log_out(c->server->sessions, c->session);
    client_set_session(c, NULL, 0);
}
