#include "kafka/session.h"

#include "base/be.h"
#include "base/logging.h"
#include "base/mem.h"
#include "kafka/request_impl.h"
#include "net/loop.h"

static void session_on_open(struct conn *c);
static void session_on_frame(struct conn *c, struct frame *f);
static void session_on_hangup(struct conn *c);
static void session_on_reading_end(struct conn *c);
static void session_on_closed(struct conn *c);
static void session_on_written(struct op *op);
static void session_free_if_done(struct session *s);

/* The 4-byte length prefix; the frame is it and the body. Spec B-1, B-2. */
static int64_t session_frame_bytes(const uint8_t *head, int64_t frame_bytes_max) {
    int32_t body = (int32_t)be_get(head, FRAME_PREFIX);
    return body < 8 || body > frame_bytes_max ? -1 : (int64_t)body + FRAME_PREFIX;
}

const struct conn_protocol session_protocol = {
    .head_bytes = FRAME_PREFIX,
    .frame_bytes = session_frame_bytes,
    .on_open = session_on_open,
    .on_frame = session_on_frame,
    .on_hangup = session_on_hangup,
    .on_idle_end = session_on_reading_end,
    .on_closed = session_on_closed,
};

static struct kafka_loop *session_loop(struct kafka *k, struct loop *loop) {
    for (int i = 0; i < k->settings.loops_count; i++)
        if (k->settings.loops[i] == loop)
            return &k->per_loop[i];
    return NULL;
}

static void session_on_open(struct conn *c) {
    struct kafka *k = listener_user(c);
    struct kafka_loop *here = session_loop(k, conn_loop(c));
    struct session *s = mem_take_zeroed(1, sizeof *s);
    if (!s) {
        conn_close(c);
        return;
    }
    s->kafka = k;
    s->conn = c;
    s->number = ++here->sessions_opened;
    list_init(&s->requests);
    list_push_tail(&here->sessions, &s->link);
    conn_set_user(c, s);
}

static void session_on_frame(struct conn *c, struct frame *f) {
    struct session *s = conn_user(c);
    if (!s || s->closing) {
        frame_free(f);
        return;
    }
    struct request *r = request_new(s, f, loop_now_ms(conn_loop(c)));
    if (!r) {
        frame_free(f);
        log_line_limited(LOG_WARN, "kafka", "no memory for a request", LTEXT("peer", conn_peer(c)));
        conn_close(c);
        return;
    }
    list_push_tail(&s->requests, &r->link);
    s->in_flight++;
    conn_set_busy(c, true);
    if (s->in_flight >= s->kafka->settings.in_flight_max)
        conn_pause(c);
    request_run(r);
}

static void session_give_turn(struct request *r) {
    void (*on_turn)(struct request *) = r->on_turn;
    r->on_turn = NULL;
    if (on_turn)
        on_turn(r);
}

/* Everything that is first in the row and has its outcome leaves. */
void session_advance(struct session *s) {
    while (!list_empty(&s->requests)) {
        struct request *r = container_of(s->requests.next, struct request, link);
        if (r->outcome == REQUEST_RUNNING) {
            session_give_turn(r);
            return;
        }
        list_remove(&r->link);
        if (r->outcome == REQUEST_CLOSES && s->conn && !s->closing) {
            s->closing = true;
            conn_close_gently(s->conn);
        }
        op_init(&r->write.op, r->loop, session_on_written);
        if (r->outcome == REQUEST_ANSWERED && s->conn && !s->closing) {
            conn_write(s->conn, &r->write);
        } else { /* through the queue, so that a request never goes while its handler is on the stack */
            wbuf_release(&r->write.out);
            loop_post(&r->write.op);
        }
    }
}

static void session_on_written(struct op *op) {
    struct request *r = container_of(op, struct request, write.op);
    struct session *s = r->session;
    request_free(r);
    s->in_flight--;
    if (s->conn && !s->closing) {
        if (s->in_flight < s->kafka->settings.in_flight_max)
            conn_resume(s->conn);
        if (s->in_flight == 0) {
            conn_set_busy(s->conn, false);
            if (s->ending)
                conn_close_gently(s->conn);
        }
    }
    session_free_if_done(s);
}

void session_cancel(struct session *s) {
    for (struct link *l = s->requests.next; l != &s->requests; l = l->next) {
        struct request *r = container_of(l, struct request, link);
        if (r->parked)
            op_cancel(r->parked);
    }
}

/* A client that fills its row and leaves would hold its place as long as its Fetches may wait. */
static void session_on_hangup(struct conn *c) {
    struct session *s = conn_user(c);
    if (!s)
        return;
    s->leaving = true;
    session_cancel(s);
}

static void session_on_reading_end(struct conn *c) {
    struct session *s = conn_user(c);
    if (!s)
        return;
    s->ending = true;
    session_cancel(s);
    if (s->in_flight == 0)
        conn_close(c);
}

static void session_on_closed(struct conn *c) {
    struct session *s = conn_user(c);
    if (!s)
        return;
    s->conn = NULL;
    session_cancel(s);
    session_free_if_done(s);
}

static void session_free_if_done(struct session *s) {
    if (s->conn || s->in_flight > 0)
        return;
    list_remove(&s->link);
    mem_free(s);
}
