/*
 * frame -> what is it? -> is it logged in? -> body -> number -> handler -> reply
 *
 * Where a real server drops what it can't make sense of, the client gets an answer here: status 4 where the header is wrong, 3 where the
 * command or its body is.
 */
#include "iggy_server/request_impl.h"

#include "base/clock.h"
#include "base/le.h"
#include "base/logging.h"
#include "base/mem.h"
#include "iggy/codec.h"
#include "net/loop.h"

#define ROOM_BYTES    2048 /* the request and the first of its arena, in one piece */
#define ARENA_DECODED 4    /* what a body decodes to takes at most 4 times the frame and 1 MiB */
#define ARENA_HANDLED \
    16 /* and with what its handler makes of it, 16 times and 64 MiB: lists are as long as the catalog */
#define DECODED_FLOOR ((size_t)1 << 20)
#define HANDLED_FLOOR ((size_t)64 << 20)
#define REPLY_MAX     ((size_t)INT32_MAX)
#define HEAD_BYTES    64 /* of the header, the part that is patched */
#define SIZE_OFFSET   48
#define OLD_LOGIN     38 /* commands of 0.10 and before */
#define OLD_TOKEN     44
#define GET_SNAPSHOT  11

struct handler {
    void (*handle)(struct server_request *r);
    bool in_pool;
};
#define ON_LOOP false
#define IN_POOL true
static const struct handler handlers[] = {
#define HANDLER(name, where) [IGGY_CMD_##name] = {name##_handle, (where)},
#include "iggy_server/handlers.def"
#undef HANDLER
};

/* ---- life ---- */

struct server_request *request_new(struct client *c, struct frame *f) {
    struct server_request *r = mem_take(ROOM_BYTES);
    struct iggy_header h;
    if (!r)
        return NULL;
    iggy_header_decode(f->data, &h);
    *r = (struct server_request){
        .server = c->server,
        .loop = conn_loop(c->conn),
        .client = c,
        .header = h.request,
        .body = {f->data + IGGY_HEADER_BYTES, (int32_t)(f->size_bytes - IGGY_HEADER_BYTES)},
        .frame = f,
    };
    arena_init(&r->arena, r + 1, ROOM_BYTES - sizeof *r,
               (size_t)f->size_bytes * ARENA_DECODED + DECODED_FLOOR);
    return r;
}

void request_free(struct server_request *r) {
    if (r->at_end)
        r->at_end(r);
    if (r->reserved_bytes > 0)
        budget_give(r->server->settings.budget, r->reserved_bytes);
    wbuf_release(&r->write.out);
    session_unref(r->session);
    frame_free(r->frame);
    arena_release(&r->arena);
    mem_free(r);
}

/* ---- the end ---- */

/* On the loop, with the reply in write.out. */
static void request_leave(struct server_request *r) {
    if (r->tracked)
        session_done(r->session, iggy_command_plane(r->command), r->header.request, r->counts, &r->write.out,
                     r->has_confirmation ? &r->confirmation : NULL);
    r->tracked = false;
    client_send(r->client, r);
}

static void request_on_hop(struct op *op) {
    request_leave(container_of(op, struct server_request, hop));
}

static void request_ended(struct server_request *r) {
    r->reserved_bytes = (int64_t)(r->write.out.bytes + r->arena.taken_bytes); /* both go with the reply */
    if (r->reserved_bytes > 0)
        budget_force(r->server->settings.budget, r->reserved_bytes);
    if (loop_current() == r->loop) {
        request_leave(r);
        return;
    }
    op_init(&r->hop, r->loop, request_on_hop);
    loop_post(&r->hop);
}

/* What goes into a reply. */
struct reply {
    uint32_t status; /* not 0: an error, and nothing else */
    uint32_t result; /* of the result section, where the operation has one; not 0: an error, and no answer */
    const void *answer;
    const struct wbuf *tail;
    bool empty; /* not even a result section */
};

static enum iggy_plane request_plane(const struct server_request *r) {
    return r->command ? iggy_command_plane(r->command) : IGGY_PLANE_READ;
}

/* Room for the header, with the place of its size. */
static enum status reply_write_header(struct server_request *r, const struct reply *reply,
                                      uint8_t **size_out) {
    const struct iggy_request_header *h = &r->header;
    enum iggy_plane plane = request_plane(r);
    bool done = reply->status == 0 && reply->result == 0, committed = done && plane != IGGY_PLANE_READ;
    bool changed = done && plane == IGGY_PLANE_METADATA && r->tracked;
    uint64_t op =
        changed ? atomic_fetch_add(&r->server->metadata_op, 1) + 1 : atomic_load(&r->server->metadata_op);
    uint8_t bytes[IGGY_HEADER_BYTES];
    struct iggy_header out = {
        .frame = {.kind = IGGY_REPLY, .cluster = committed ? r->server->cluster : (struct iggy_u128){{0}}},
        .reply = {.request_checksum = h->request_checksum,
                  .client = h->client,
                  .op = plane == IGGY_PLANE_METADATA ? op : 0,
                  .commit = r->session ? op : 0,
                  .timestamp_us = committed ? (uint64_t)clock_wall_us() : h->timestamp_us,
                  .request = h->request,
                  .operation = r->command ? r->command->reply_operation : h->operation,
                  .status = reply->status,
                  .partition_incarnation = r->version >= IGGY_0_12_0 ? h->partition_incarnation : 0}};
    iggy_header_encode(&out, bytes);
    uint8_t *head = wbuf_reserve(&r->write.out, HEAD_BYTES);
    if (!head)
        return ST_NO_MEMORY;
    memcpy(head, bytes, HEAD_BYTES);
    *size_out = head + SIZE_OFFSET;
    return wbuf_put(&r->write.out, bytes + HEAD_BYTES, sizeof bytes - HEAD_BYTES);
}

static enum status reply_write_body(struct server_request *r, const struct reply *reply) {
    struct wbuf *w = &r->write.out;
    if (reply->status != 0 || reply->empty)
        return ST_OK;
    enum status st = r->command ? iggy_reply_begin(r->command->reply_operation, reply->result, w) : ST_OK;
    if (!st && reply->result == 0 && reply->answer)
        st = iggy_encode(r->command->answer(), r->version, reply->answer, w);
    for (int32_t i = 0; !st && reply->tail && i < reply->tail->pieces_count; i++)
        st = wbuf_borrow(w, reply->tail->pieces[i].iov_base, reply->tail->pieces[i].iov_len);
    return st;
}

static enum status reply_write(struct server_request *r, const struct reply *reply) {
    uint8_t *size;
    wbuf_init(&r->write.out, REPLY_MAX);
    enum status st = reply_write_header(r, reply, &size);
    if (!st)
        st = reply_write_body(r, reply);
    if (!st)
        le_set32(size, (uint32_t)r->write.out.bytes);
    else
        wbuf_release(&r->write.out);
    return st;
}

static void request_reply(struct server_request *r, const struct reply *reply) {
    uint32_t code = reply->status ? reply->status : reply->result;
    r->counts =
        code == 0 || (request_plane(r) == IGGY_PLANE_METADATA && iggy_error_retry(code) == IGGY_RETRY_NO);
    enum status st = reply_write(r, reply);
    if (st) {
        const struct reply failed = {.status = IGGY_ERR_ERROR};
        log_line_limited(LOG_WARN, "iggy", "an answer could not be written",
                         LTEXT("command", r->command ? r->command->name : "?"),
                         LTEXT("reason", status_text(st)));
        st = reply_write(r, &failed);
    }
    request_ended(r); /* without a reply the connection closes */
}

void request_answer_tail(struct server_request *r, const void *answer, const struct wbuf *tail) {
    if (r->command->code == IGGY_CMD_send_messages) {
        const struct iggy_send_messages_res *sent = answer;
        r->has_confirmation = sent->offset_known && sent->confirmations_count == 1;
        if (r->has_confirmation)
            r->confirmation = sent->confirmations[0];
    }
    request_reply(r, &(struct reply){.answer = answer, .tail = tail});
}

void request_answer(struct server_request *r, const void *answer) {
    request_answer_tail(r, answer, NULL);
}

void request_done(struct server_request *r) {
    request_reply(r, &(struct reply){0});
}

void request_not_found(struct server_request *r) {
    request_reply(r, &(struct reply){.empty = true});
}

static void log_refused(const struct server_request *r, uint32_t code) {
    const struct conn *conn = loop_current() == r->loop ? r->client->conn : NULL;
    log_line(LOG_DEBUG, "iggy", "request refused", LTEXT("command", r->command ? r->command->name : "?"),
             LTEXT("error", iggy_error_name(code)), LINT("code", code),
             LINT("operation", r->header.operation), LTEXT("peer", conn ? conn_peer(conn) : "?"));
}

void request_refuse_early(struct server_request *r, uint32_t code) {
    log_refused(r, code);
    request_reply(r, &(struct reply){.status = code});
}

/* Errors that real servers find before they commit a change, so that they stand in the status. */
static bool is_found_early(uint32_t code) {
    switch (code) {
    case IGGY_ERR_INVALID_COMMAND:
    case IGGY_ERR_INVALID_FORMAT:
    case IGGY_ERR_FEATURE_UNAVAILABLE:
    case IGGY_ERR_UNAUTHENTICATED:
    case IGGY_ERR_PERSONAL_ACCESS_TOKENS_LIMIT_REACHED:
    case IGGY_ERR_INVALID_TOPIC_SIZE:
    case IGGY_ERR_TOO_MANY_PARTITIONS:
    case IGGY_ERR_UNSUPPORTED_OPTION_KEY:
    case IGGY_ERR_INVALID_OPTION_VALUE:
    case IGGY_ERR_OPTIONS_BLOCK_TOO_LARGE:
    case IGGY_ERR_OPTION_NOT_UPDATABLE:
    case IGGY_ERR_OPTION_NOT_RESETTABLE:
    case IGGY_ERR_READ_ONLY_OPTION:
        return true;
    default:
        return iggy_error_retry(code) != IGGY_RETRY_NO && iggy_error_retry(code) != IGGY_RETRY_DONE;
    }
}

void request_refuse(struct server_request *r, uint32_t code) {
    bool in_result = request_plane(r) == IGGY_PLANE_METADATA &&
                     iggy_operation_has_result(r->command->reply_operation) && !is_found_early(code);
    if (!in_result) {
        request_refuse_early(r, code);
        return;
    }
    log_refused(r, code);
    request_reply(r, &(struct reply){.result = code});
}

void request_end(struct server_request *r, uint32_t code) {
    if (code)
        request_refuse(r, code);
    else
        request_done(r);
}

enum status eviction_write(const struct iggy_server *s, const struct iggy_u128 *client_id, uint8_t reason,
                           struct wbuf *out) {
    uint8_t bytes[IGGY_HEADER_BYTES];
    bool window = reason == IGGY_EVICTED_INCOMPATIBLE_PROTOCOL;
    struct iggy_header h = {.frame = {.kind = IGGY_EVICTION, .size = IGGY_HEADER_BYTES},
                            .eviction = {.client = *client_id,
                                         .protocol_max = window ? s->settings.version_newest : 0,
                                         .protocol_min = window ? s->settings.version_least : 0,
                                         .reason = reason}};
    iggy_header_encode(&h, bytes);
    wbuf_init(out, REPLY_MAX);
    return wbuf_put(out, bytes, sizeof bytes);
}

void request_evict(struct server_request *r, uint8_t reason) {
    log_line(LOG_DEBUG, "iggy", "client evicted",
             LTEXT("error", iggy_error_name(iggy_error_of_eviction(reason))), LINT("reason", reason),
             LINT("operation", r->header.operation));
    enum status st = eviction_write(r->server, &r->header.client, reason, &r->write.out);
    if (st)
        wbuf_release(&r->write.out);
    request_ended(r);
}

/* ---- the beginning ---- */

/* The body by the table. False: the request has been refused. */
static bool request_decode(struct server_request *r) {
    const struct iggy_schema *schema = r->command->request();
    void *in = arena_take(&r->arena, schema->size);
    enum status st = in ? iggy_decode(schema, r->version, r->body, &r->arena, in) : ST_NO_MEMORY;
    if (st) {
        log_line(LOG_DEBUG, "iggy", "a body can't be read", LTEXT("command", r->command->name),
                 LTEXT("reason", status_text(st)));
        request_refuse_early(r, IGGY_ERR_INVALID_COMMAND);
        return false;
    }
    r->in = in;
    r->arena.bytes_max = (size_t)r->frame->size_bytes * ARENA_HANDLED + HANDLED_FLOOR;
    return true;
}

static void request_on_pool(struct work *w) {
    struct server_request *r = container_of(w, struct server_request, work);
    handlers[r->command->code].handle(r);
}

static void request_dispatch(struct server_request *r) {
    const struct handler *h = &handlers[r->command->code];
    r->alone = h->in_pool || request_plane(r) == IGGY_PLANE_METADATA;
    if (r->alone)
        client_run_alone(r->client);
    if (h->in_pool) {
        work_submit(&r->work, request_on_pool);
    } else {
        h->handle(r);
    }
}

/* It was done before: the very same reply. */
static void request_repeat(struct server_request *r, struct session_answer *answer) {
    const struct iggy_send_messages_res sent = {.offset_known =
                                                    r->version >= IGGY_0_12_0 && answer->offset_known,
                                                .confirmations = &answer->confirmation,
                                                .confirmations_count = 1};
    if (answer->reply) {
        wbuf_init(&r->write.out, REPLY_MAX);
        if (wbuf_put(&r->write.out, answer->reply, answer->reply_bytes))
            wbuf_release(&r->write.out);
        mem_free(answer->reply);
        request_ended(r);
    } else if (r->command->code == IGGY_CMD_send_messages) {
        request_answer(r, &sent);
    } else {
        request_done(r);
    }
}

/* Changes and sends, once for each number. False: it has been answered. */
static bool request_begin(struct server_request *r) {
    enum session_verdict verdict;
    struct session_answer answer;
    enum status st =
        session_begin(r->session, iggy_command_plane(r->command), r->header.request, &verdict, &answer);
    if (st)
        request_refuse_early(r, IGGY_ERR_TRANSIENT_NOT_ACCEPTED);
    else if (verdict == SESSION_REFUSE)
        request_refuse(r, answer.code);
    else if (verdict == SESSION_REPEAT)
        request_repeat(r, &answer);
    else
        r->tracked = true;
    return r->tracked;
}

static uint64_t request_wait_us(const struct server_request *r) {
    if (r->command->code == IGGY_CMD_poll_messages_deferred)
        return poll_messages_deferred_in(r)->wait_us;
    if (r->command->code == IGGY_CMD_wait_for_messages)
        return wait_for_messages_in(r)->wait_us;
    return r->command->code == IGGY_CMD_fetch_messages ? fetch_messages_in(r)->wait_us : 0;
}

/* False: it has been refused. */
static bool request_may_wait(struct server_request *r) {
    r->deferred = request_wait_us(r) > 0 && r->client->deferred < CLIENT_DEFERRED;
    if (r->deferred)
        r->client->deferred++;
    else if (request_wait_us(r) > 0)
        request_refuse_early(r, IGGY_ERR_DEFERRED_POLL_CAPACITY_EXCEEDED);
    return r->deferred || request_wait_us(r) == 0;
}

static void request_log_out(struct server_request *r) {
    session_log_out(r->server->sessions, r->session);
    client_set_session(r->client, NULL, 0);
    request_done(r);
}

static void request_cancel(struct server_request *r) {
    client_cancel_number(r->client, r->header.request);
    r->silent = true;
    request_ended(r);
}

/* Of a client that is logged in. */
static void request_run_member(struct server_request *r) {
    struct client *c = r->client;
    r->session = c->session;
    session_ref(r->session);
    r->user_id = r->session->user_id;
    bool first_form = r->version < IGGY_0_12_0;
    if (!iggy_request_is_sound(&r->header))
        request_refuse_early(r, IGGY_ERR_INVALID_COMMAND);
    else if (first_form && !iggy_request_checksum_is_good(&r->header, r->body))
        request_refuse_early(r, IGGY_ERR_INVALID_FORMAT);
    else if (r->command->code == IGGY_CMD_logout)
        request_log_out(r);
    else if (r->command->code == IGGY_CMD_cancel_deferred_request)
        request_cancel(r);
    else if (!users_is_active(r->server->settings.users, r->user_id))
        request_refuse(r, IGGY_ERR_UNAUTHORIZED);
    else if (request_decode(r) && request_may_wait(r) &&
             (request_plane(r) == IGGY_PLANE_READ || request_begin(r)))
        request_dispatch(r);
}

/* Why there is no such command: it has an operation of its own, it is one that isn't served, or it is none. */
static uint32_t no_command_code(const struct server_request *r) {
    bool by_code = r->header.operation == IGGY_OP_BY_CODE;
    bool is_known =
        by_code && (r->header.code == GET_SNAPSHOT || iggy_command_by_code(r->header.code, r->version));
    return is_known ? IGGY_ERR_FEATURE_UNAVAILABLE : IGGY_ERR_INVALID_COMMAND;
}

static bool is_old_login(const struct iggy_request_header *h) {
    return h->operation == IGGY_OP_BY_CODE && (h->code == OLD_LOGIN || h->code == OLD_TOKEN);
}

void request_run(struct server_request *r) {
    const struct iggy_request_header *h = &r->header;
    struct client *c = r->client;
    bool is_member = client_has_session(c);
    r->version = is_member ? c->version : r->server->settings.version_newest;
    r->command = iggy_command_of(h, r->version);
    if (iggy_u128_is_zero(&h->client) || h->operation == 0)
        request_refuse_early(r, IGGY_ERR_INVALID_FORMAT);
    else if (h->operation == IGGY_OP_REGISTER)
        login_start(r);
    else if (is_old_login(h))
        request_evict(r, IGGY_EVICTED_MALFORMED_LOGIN);
    else if (r->command && r->command->code == IGGY_CMD_ping)
        ping_handle(r);
    else if (r->command && r->command->code == IGGY_CMD_bind_session)
        bind_start(r);
    else if (!is_member && h->operation == IGGY_OP_BY_CODE)
        request_refuse_early(r, IGGY_ERR_UNAUTHENTICATED);
    else if (!is_member)
        request_evict(r, IGGY_EVICTED_NO_SESSION);
    else if (!r->command)
        request_refuse_early(r, no_command_code(r));
    else
        request_run_member(r);
}

/* ---- for handlers ---- */

bool request_has_client(const struct server_request *r) {
    return r->client->conn != NULL;
}

bool request_must_end(const struct server_request *r) {
    return r->canceled || atomic_load(&r->server->stopping) || atomic_load(&r->client->left);
}

void *request_take(struct server_request *r, size_t count, size_t size) {
    void *p = arena_take_many(&r->arena, count, size);
    if (!p)
        request_refuse(r, IGGY_ERR_ERROR);
    return p;
}
