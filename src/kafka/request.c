#include "kafka/request.h"

#include "base/be.h"
#include "base/logging.h"
#include "base/mem.h"
#include "kafka/request_impl.h"
#include "kafka/session.h"
#include "wire/codec.h"
#include "wire/header.h"

#define ROOM_BYTES    4096 /* the request and the first of its arena, in one piece */
#define ARENA_DECODED 4    /* B-41: what a body decodes to takes at most 4 times the frame and 1 MiB */
#define ARENA_HANDLED 16   /* and with what its handler makes of it, 16 times */
#define ARENA_FLOOR   ((size_t)1 << 20)
#define ANSWER_MAX    ((size_t)INT32_MAX)
#define ELEMENTS_MAX  65536 /* B-41 */
#define STRING_MAX    65536

struct request *request_new(struct session *s, struct frame *f, int64_t now_ms) {
    struct request *r = mem_take(ROOM_BYTES);
    if (!r)
        return NULL;
    *r = (struct request){
        .kafka = s->kafka,
        .session = s,
        .loop = conn_loop(s->conn),
        .arrived_ms = now_ms,
        .frame = f,
        .step = "new",
    };
    arena_init(&r->arena, r + 1, ROOM_BYTES - sizeof *r, (size_t)f->size_bytes * ARENA_DECODED + ARENA_FLOOR);
    return r;
}

void request_free(struct request *r) {
    if (r->at_end)
        r->at_end(r);
    if (r->answer_reserved > 0)
        budget_give(r->kafka->settings.budget, r->answer_reserved);
    wbuf_release(&r->write.out);
    frame_free(r->frame);
    arena_release(&r->arena);
    mem_free(r);
}

/* The body by the table. False: the request has been closed. */
static bool request_decode(struct request *r) {
    static const struct decode_limits limits = {.elements_max = ELEMENTS_MAX, .string_max = STRING_MAX};
    const struct schema *schema = r->api->request();
    void *body = arena_take(&r->arena, schema->size);
    enum status st =
        body ? kmsg_decode(schema, r->version, &limits, &r->body, &r->arena, body) : ST_NO_MEMORY;
    if (st) {
        request_close(r, status_text(st));
        return false;
    }
    r->in = body;
    r->arena.bytes_max = (size_t)r->frame->size_bytes * ARENA_HANDLED + ARENA_FLOOR;
    return true;
}

void request_run(struct request *r) {
    struct request_header header;
    r->body = (struct rbuf){r->frame->data + FRAME_PREFIX, r->frame->data + r->frame->size_bytes};
    enum status st = request_header_decode(&r->body, &header);
    if (st) {
        request_close(r, "unreadable request header");
        return;
    }
    r->api = api_find(header.api_key);
    r->version = header.api_version;
    r->correlation_id = header.correlation_id;
    r->client_id = header.client_id;
    if (!r->api || !api_is_served(r->api, r->kafka->settings.backend)) {
        request_close(r, "this API is not served"); /* B-34 */
        return;
    }
    if (r->version < r->api->version_min || r->version > r->api->version_max)
        r->api->unserved(r);
    else if (request_decode(r))
        r->api->handle(r);
}

static void request_end(struct request *r, enum request_state outcome) {
    assert(r->outcome == REQUEST_RUNNING);
    r->outcome = outcome;
    r->step = "answered";
    r->parked = NULL;
    session_advance(r->session);
}

/* Length prefix, response header and body into write.out. */
static enum status request_encode(struct request *r, int16_t version, const void *out) {
    struct wbuf *w = &r->write.out;
    wbuf_init(w, ANSWER_MAX);
    uint8_t *prefix = wbuf_reserve(w, FRAME_PREFIX);
    if (!prefix)
        return ST_NO_MEMORY;
    enum status st = response_header_encode(r->api->key, version, r->correlation_id, w);
    if (!st)
        st = kmsg_encode(r->api->response(), version, out, w);
    if (!st)
        be_set(prefix, FRAME_PREFIX, w->bytes - FRAME_PREFIX);
    return st;
}

void request_reply_as(struct request *r, int16_t version, const void *out) {
    enum status st = request_encode(r, version, out);
    if (st) {
        request_close(r, status_text(st)); /* B-45 */
        return;
    }
    r->answer_reserved = (int64_t)r->write.out.bytes;
    budget_force(r->kafka->settings.budget, r->answer_reserved);
    request_end(r, REQUEST_ANSWERED);
}

void request_reply(struct request *r, const void *out) {
    request_reply_as(r, r->version, out);
}

void request_no_reply(struct request *r) {
    request_end(r, REQUEST_SILENT);
}

void request_close(struct request *r, const char *why) {
    log_line(LOG_DEBUG, "kafka", "request refused, connection closes", LTEXT("why", why),
             LTEXT("api", r->api ? r->api->name : "?"), LINT("version", r->version),
             LTEXT("peer", r->session->conn ? conn_peer(r->session->conn) : "gone"));
    request_end(r, REQUEST_CLOSES);
}

bool request_has_client(const struct request *r) {
    return r->session->conn != NULL;
}

uint64_t request_connection(const struct request *r) {
    return r->session->number;
}

int64_t request_rtt_us(const struct request *r) {
    return r->session->conn ? conn_rtt_us(r->session->conn) : 0;
}

struct str request_client_host(struct request *r) {
    if (!r->session->conn)
        return STR("");
    const char *peer = conn_peer(r->session->conn), *colon = strrchr(peer, ':');
    struct str host = {peer, (int32_t)(colon ? colon - peer : (ptrdiff_t)strlen(peer))};
    if (host.len >= 2 && host.ptr[0] == '[')
        host = (struct str){host.ptr + 1, host.len - 2};
    struct str text = arena_printf(&r->arena, "/%.*s", (int)host.len, host.ptr);
    return text.len < 0 ? STR("") : text;
}

bool request_must_end(const struct request *r) {
    return atomic_load(&r->kafka->stopping) || r->session->ending || r->session->leaving;
}

bool request_has_turn(struct request *r, void (*on_turn)(struct request *r)) {
    bool first = r->session->requests.next == &r->link;
    r->on_turn = first ? NULL : on_turn;
    return first;
}

bool request_meets_stub(const struct request *r) {
    return !r->kafka->settings.backend->ops->controller;
}

void request_close_version(struct request *r) {
    request_close(r, "this version is not served");
}

void *request_take(struct request *r, size_t count, size_t size) {
    void *p = arena_take_many(&r->arena, count, size);
    if (!p)
        request_close(r, status_text(ST_NO_MEMORY));
    return p;
}
