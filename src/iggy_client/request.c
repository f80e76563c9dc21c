/*
 * A request's road:
 *
 *   [waits for the version] -> with the session -> over -> done
 *
 * Over is what has its outcome; done runs when its own frame has left as well, since that is borrowed from the request.
 */
#include "base/mem.h"
#include "iggy/codec.h"
#include "iggy_client/client_impl.h"
#include "net/loop.h"

#define BODY_BYTES_MAX ((size_t)IGGY_FRAME_BYTES_MAX - IGGY_HEADER_BYTES)

static struct iggy_request *request_of(struct link *l) {
    return container_of(l, struct iggy_request, link);
}

/* --- the end --- */

static void request_finish(struct iggy_request *r) {
    struct iggy_client *c = r->client;
    list_remove(&r->link);
    wbuf_release(&r->call.body);
    c->in_flight--;
    c->used_ms = loop_now_ms(c->loop);
    op_complete(&r->op, r->outcome);
    client_check_gone(c);
}

static void request_end(struct iggy_request *r, enum status st) {
    assert(!r->over);
    r->over = true;
    r->outcome = st;
    if (r->waits_for_version)
        r->client->without_version--;
    r->waits_for_version = false;
    if (!r->write.op.pending)
        request_finish(r);
}

/* The session forgets it without an event. */
static void request_take_back(struct iggy_request *r) {
    if (r->waits_for_version)
        return;
    r->may_have_landed = r->call.may_have_landed;
    iggy_session_cancel(&r->client->session, &r->call);
}

static void request_on_cancel(struct op *op) {
    struct iggy_request *r = container_of(op, struct iggy_request, op);
    if (r->over)
        return;
    request_take_back(r);
    request_end(r, ST_CANCELED);
    client_wake(r->client);
}

void request_on_answer(const struct iggy_event *e, struct frame **f) {
    struct iggy_request *r = container_of(e->call, struct iggy_request, call);
    r->code = e->code;
    r->header = e->header;
    r->may_have_landed = e->may_have_landed;
    if (e->code == 0) {
        r->payload = e->outcome.payload;
        r->frame = *f;
        *f = NULL;
    }
    request_end(r, ST_OK);
}

void request_on_failed(const struct iggy_event *e, int64_t now_ms) {
    struct iggy_request *r = container_of(e->call, struct iggy_request, call);
    r->may_have_landed = e->may_have_landed;
    request_end(r, r->may_have_landed || r->deadline_ms <= now_ms ? ST_TIMED_OUT : ST_UNAVAILABLE);
}

/* --- the beginning --- */

static enum status request_encode(struct iggy_request *r) {
    r->version = r->client->session.version;
    r->command = iggy_command_by_code(r->wanted, r->version);
    if (!r->command)
        return ST_UNSUPPORTED;
    r->call = (struct iggy_call){
        .command = r->command, .context = r->context, .deadline_ms = r->deadline_ms, .once = r->once};
    wbuf_init(&r->call.body, BODY_BYTES_MAX);
    return r->in ? iggy_encode(r->command->request(), r->version, r->in, &r->call.body) : ST_OK;
}

static void request_queue(struct iggy_request *r) {
    enum status st = request_encode(r);
    if (st) {
        request_end(r, st);
        return;
    }
    if (r->waits_for_version)
        r->client->without_version--;
    r->waits_for_version = false;
    iggy_session_call(&r->client->session, &r->call);
}

void iggy_client_call(struct iggy_client *c, struct iggy_request *r, uint32_t code, const void *in) {
    op_start(&r->op, request_on_cancel);
    r->client = c;
    r->wanted = code;
    r->in = in;
    r->attempt = c->attempts;
    r->waits_for_version = true;
    c->without_version++;
    c->in_flight++;
    list_push_tail(&c->requests, &r->link);
    if (c->closed)
        request_end(r, ST_CANCELED);
    else if (client_is_refused(c))
        request_end(r, ST_LOGIN_REFUSED);
    else if (c->version != 0)
        request_queue(r);
    client_wake(c);
}

void requests_queue(struct iggy_client *c) {
    for (struct link *l = c->requests.next, *next; l != &c->requests && c->without_version > 0; l = next) {
        next = l->next;
        if (request_of(l)->waits_for_version)
            request_queue(request_of(l));
    }
}

/* --- time, and ends of many --- */

int64_t requests_expire(struct iggy_client *c, int64_t now_ms) {
    int64_t next_ms = INT64_MAX;
    for (struct link *l = c->requests.next, *next; l != &c->requests && c->without_version > 0; l = next) {
        next = l->next;
        struct iggy_request *r = request_of(l);
        if (!r->waits_for_version)
            continue;
        if (r->deadline_ms <= now_ms)
            request_end(r, ST_TIMED_OUT);
        else if (r->deadline_ms < next_ms)
            next_ms = r->deadline_ms;
    }
    return next_ms;
}

static bool may_have_written(const struct iggy_request *r) {
    return !r->waits_for_version && r->call.may_have_landed &&
           (r->call.once || iggy_command_plane(r->command) != IGGY_PLANE_READ);
}

void requests_end_queued(struct iggy_client *c, enum status st, bool all) {
    for (struct link *l = c->requests.next, *next; l != &c->requests; l = next) {
        next = l->next;
        struct iggy_request *r = request_of(l);
        bool waits = r->waits_for_version || r->call.state == IGGY_CALL_QUEUED;
        bool written = may_have_written(r);
        if (r->over || !waits || (!all && (written || r->attempt >= c->attempts)))
            continue;
        request_take_back(r);
        r->may_have_landed = written;
        request_end(r, written ? ST_TIMED_OUT : st);
    }
}

void requests_cancel_all(struct iggy_client *c) {
    for (struct link *l = c->requests.next, *next; l != &c->requests; l = next) {
        next = l->next;
        request_on_cancel(&request_of(l)->op);
    }
}

/* --- out --- */

static void request_on_written(struct op *op) {
    struct iggy_request *r = container_of(op, struct iggy_request, write.op);
    if (r->over)
        request_finish(r);
}

static enum status request_send(struct iggy_request *r) {
    if (r->write.op.pending)
        return ST_INVALID; /* the server answered what it can't have read */
    struct iggy_client *c = r->client;
    struct wbuf *out = &r->write.out;
    op_init(&r->write.op, c->loop, request_on_written);
    wbuf_init(out, IGGY_FRAME_BYTES_MAX);
    enum status st = wbuf_borrow(out, r->call.head, IGGY_HEADER_BYTES);
    for (int32_t i = 0; !st && i < r->call.body.pieces_count; i++)
        st = wbuf_borrow(out, r->call.body.pieces[i].iov_base, r->call.body.pieces[i].iov_len);
    if (st) {
        wbuf_release(out);
        return st;
    }
    conn_write(c->conn, &r->write);
    return ST_OK;
}

/* A frame of the session's own, copied. */
struct own_frame {
    struct conn_write write;
};

static void own_frame_on_written(struct op *op) {
    mem_free(container_of(op, struct own_frame, write.op));
}

static enum status own_frame_send(struct iggy_client *c, const struct iggy_call *call) {
    struct own_frame *own = mem_take_zeroed(1, sizeof *own);
    if (!own)
        return ST_NO_MEMORY;
    struct wbuf *out = &own->write.out;
    op_init(&own->write.op, c->loop, own_frame_on_written);
    wbuf_init(out, IGGY_FRAME_BYTES_MAX);
    enum status st = wbuf_put(out, call->head, IGGY_HEADER_BYTES);
    for (int32_t i = 0; !st && i < call->body.pieces_count; i++)
        st = wbuf_put(out, call->body.pieces[i].iov_base, call->body.pieces[i].iov_len);
    if (st) {
        wbuf_release(out);
        mem_free(own);
        return st;
    }
    conn_write(c->conn, &own->write);
    return ST_OK;
}

enum status requests_send(struct iggy_client *c, int64_t now_ms) {
    struct iggy_session *s = &c->session;
    enum status st = ST_OK;
    for (struct iggy_call *call; !st && (call = iggy_session_output(s, now_ms));)
        st = call == &s->own || call == &s->cancel
                 ? own_frame_send(c, call)
                 : request_send(container_of(call, struct iggy_request, call));
    return st;
}

/* --- what came --- */

enum status iggy_request_decode(const struct iggy_request *r, struct arena *a, void *out) {
    return iggy_decode(r->command->answer(), r->version, r->payload, a, out);
}

struct frame *iggy_request_take_frame(struct iggy_request *r) {
    struct frame *f = r->frame;
    r->frame = NULL;
    return f;
}

void iggy_request_release(struct iggy_request *r) {
    frame_free(r->frame);
    r->frame = NULL;
    r->payload = (struct bytes){NULL, 0};
}
