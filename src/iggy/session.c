/* The phases and the road through them: session.h. A call moves queued -> sent -> the caller, or back to queued. */
#include "iggy/session.h"

#include "base/le.h"
#include "iggy/codec.h"
#include "iggy/errors.h"

#define AGAIN_MS          50   /* after 57, 58, 88 */
#define REFUSED_MS        2000 /* of nothing but 58: perhaps the leader is another now */
#define NO_LEADER_MS      250  /* between looks for a leader */
#define LOOKING_MS        5000 /* all looks together */
#define REDIRECTS_MAX     3
#define OWN_BYTES_MAX     2048
#define CLUSTER_BYTES_MAX ((size_t)64 * 1024)

static struct iggy_call *call_of(struct link *l) {
    return container_of(l, struct iggy_call, link);
}

static bool speaks_p12(const struct iggy_session *s) {
    return s->version >= IGGY_0_12_0;
}

void iggy_session_init(struct iggy_session *s, const struct iggy_session_config *config) {
    s->config = config;
    s->version = config->version_newest;
    s->refused_since_ms = -1;
    list_init(&s->queued);
    list_init(&s->sent);
    list_init(&s->failed);
}

static void list_let_go(struct link *head) {
    for (struct link *l; (l = list_pop_head(head));)
        call_of(l)->state = IGGY_CALL_IDLE;
}

void iggy_session_release(struct iggy_session *s) {
    if (!s->config)
        return;
    list_let_go(&s->queued);
    list_let_go(&s->sent);
    list_let_go(&s->failed);
    wbuf_release(&s->own.body);
    s->config = NULL;
}

/* ---- ends ---- */

static void call_fail(struct iggy_session *s, struct iggy_call *c) {
    list_remove(&c->link);
    c->state = IGGY_CALL_FAILED;
    list_push_tail(&s->failed, &c->link);
}

/* What goes out again: behind what came before it only. */
static void call_queue_again(struct iggy_session *s, struct iggy_call *c, int64_t again_ms) {
    struct link *l = s->queued.next;
    while (l != &s->queued && call_of(l)->serial < c->serial)
        l = l->next;
    list_remove(&c->link);
    c->state = IGGY_CALL_QUEUED;
    c->again_ms = again_ms;
    list_push_tail(l, &c->link);
}

static bool may_repeat(const struct iggy_call *c) {
    return iggy_command_plane(c->command) == IGGY_PLANE_READ && !c->once;
}

static void sent_to_queue(struct iggy_session *s) {
    while (!list_empty(&s->sent))
        call_queue_again(s, call_of(s->sent.next), 0);
    s->in_flight = 0;
}

/* No later session knows the numbers of this one: reads get new ones, writes that may have landed fail. */
static void session_forget(struct iggy_session *s) {
    s->session = 0;
    s->watermark = 0;
    sent_to_queue(s);
    for (struct link *l = s->queued.next, *next; l != &s->queued; l = next) {
        next = l->next;
        struct iggy_call *c = call_of(l);
        c->number = 0;
        if (c->may_have_landed && !may_repeat(c))
            call_fail(s, c);
        else
            c->may_have_landed = false;
    }
}

static void session_end(struct iggy_session *s) {
    s->phase = IGGY_ENDING;
    s->reconnect_due = true;
    s->ready_due = false;
}

/* The frames of what was sent may still be on their way out, so nothing of it ends before the socket is gone. */
static void session_lost(struct iggy_session *s) {
    s->lost = true;
    session_end(s);
}

static void session_refuse(struct iggy_session *s, uint32_t code) {
    s->phase = IGGY_REFUSED;
    s->refused_due = true;
    s->refused_code = code;
}

/* ---- the session's own calls ---- */

static enum status own_start(struct iggy_session *s, uint32_t code, const void *msg, int64_t at_ms) {
    struct iggy_call *own = &s->own;
    wbuf_release(&own->body);
    wbuf_init(&own->body, OWN_BYTES_MAX);
    own->command = iggy_command_by_code(code, s->version);
    own->state = IGGY_CALL_QUEUED;
    own->number = 0;
    own->again_ms = at_ms;
    return msg ? iggy_encode(own->command->request(), s->version, msg, &own->body) : ST_OK;
}

/* Without a body there is nothing that could fail. */
static void own_start_empty(struct iggy_session *s, uint32_t code, int64_t at_ms) {
    enum status st = own_start(s, code, NULL, at_ms);
    assert(!st);
    (void)st;
}

static struct iggy_client_version client_version(const struct iggy_session *s) {
    return (struct iggy_client_version){
        .protocol = s->version, .sdk_name = s->config->sdk_name, .sdk_version = s->config->sdk_version};
}

static enum status login_start(struct iggy_session *s, int64_t now_ms) {
    const struct iggy_session_config *config = s->config;
    s->phase = IGGY_LOGGING_IN;
    s->next_request = 1;
    if (config->token.len > 0) {
        struct iggy_login_token_req token = {
            .client = client_version(s), .bind_secret = s->secret, .token = config->token};
        return own_start(s, IGGY_CMD_login_token, &token, now_ms);
    }
    struct iggy_login_password_req password = {.client = client_version(s),
                                               .bind_secret = s->secret,
                                               .username = config->username,
                                               .password = config->password};
    return own_start(s, IGGY_CMD_login_password, &password, now_ms);
}

static enum status bind_start(struct iggy_session *s, int64_t now_ms) {
    s->phase = IGGY_BINDING;
    struct iggy_bind_session_req bind = {.client = client_version(s),
                                         .client_id = s->client,
                                         .session = s->session,
                                         .metadata_watermark = s->watermark,
                                         .bind_secret = s->secret};
    return own_start(s, IGGY_CMD_bind_session, &bind, now_ms);
}

enum status iggy_session_connected(struct iggy_session *s, struct str host, uint16_t port,
                                   const uint8_t random[IGGY_SESSION_RANDOM_BYTES], int64_t now_ms) {
    if (host.len < 0 || (size_t)host.len >= sizeof s->host)
        return ST_INVALID;
    memcpy(s->host, host.ptr, (size_t)host.len);
    s->host[host.len] = 0;
    s->port = port;
    s->leader[0] = 0;
    s->last_sent_ms = s->looking_since_ms = now_ms;
    s->refused_since_ms = -1;
    if (speaks_p12(s) && s->session != 0)
        return bind_start(s, now_ms);
    memcpy(s->client.b, random, sizeof s->client.b);
    memcpy(s->secret.b, random + 16, sizeof s->secret.b);
    memcpy(s->checksum_seed.b, random + 48, sizeof s->checksum_seed.b);
    s->client.b[15] |= 1; /* neither may be 0 */
    s->checksum_seed.b[15] |= 1;
    return login_start(s, now_ms);
}

void iggy_session_disconnected(struct iggy_session *s, int64_t now_ms) {
    s->own.state = IGGY_CALL_IDLE;
    wbuf_release(&s->own.body);
    s->ready_due = s->reconnect_due = false;
    s->cancels_count = 0;
    if (speaks_p12(s) && s->session != 0 && !s->lost)
        sent_to_queue(s);
    else
        session_forget(s);
    s->lost = false;
    if (s->phase != IGGY_REFUSED)
        s->phase = IGGY_OFFLINE;
    (void)iggy_session_tick(s, now_ms);
}

void iggy_session_call(struct iggy_session *s, struct iggy_call *call) {
    call->version = s->version;
    call->number = 0;
    call->may_have_landed = false;
    call->link = (struct link){0};
    call->serial = s->next_serial++;
    call->state = IGGY_CALL_QUEUED;
    call->again_ms = 0;
    list_push_tail(&s->queued, &call->link);
    if (call->body.bytes > IGGY_FRAME_BYTES_MAX - IGGY_HEADER_BYTES)
        call_fail(s, call);
}

static bool is_deferred(const struct iggy_call *c) {
    return c->command->code == IGGY_CMD_poll_messages_deferred || c->command->code == IGGY_CMD_fetch_messages;
}

void iggy_session_cancel(struct iggy_session *s, struct iggy_call *call) {
    if (call->state == IGGY_CALL_SENT) {
        s->in_flight--;
        if (is_deferred(call) && s->phase == IGGY_READY && s->cancels_count < IGGY_SESSION_CANCELS_MAX)
            s->cancels[s->cancels_count++] = call->number;
    }
    list_remove(&call->link);
    call->state = IGGY_CALL_IDLE;
}

/* ---- out ---- */

/* P12: a request is the same one if this is, so it follows from the number. */
static struct iggy_u128 request_id(const struct iggy_session *s, uint64_t number) {
    struct iggy_u128 id = s->checksum_seed;
    le_set64(id.b, le_get64(id.b) ^ number);
    return id;
}

/* P12: which partition, and how far a node must be, before it may answer. */
static void stamp_context(const struct iggy_session *s, const struct iggy_call *c,
                          struct iggy_request_header *r) {
    switch (c->command->code) {
    case IGGY_CMD_send_messages:
    case IGGY_CMD_poll_messages:
    case IGGY_CMD_poll_messages_deferred:
    case IGGY_CMD_store_consumer_offset:
    case IGGY_CMD_get_consumer_offset:
    case IGGY_CMD_delete_consumer_offset:
        r->partition_incarnation = c->context.incarnation;
        r->owner_generation = c->context.owner_generation;
        r->metadata_op_min = c->context.metadata_op;
        break;
    case IGGY_CMD_get_stream:
    case IGGY_CMD_get_streams:
    case IGGY_CMD_get_topic:
    case IGGY_CMD_get_topics:
    case IGGY_CMD_get_partition_route:
        r->metadata_op_min = s->watermark;
        break;
    default:
        break;
    }
}

static struct iggy_call *call_send(struct iggy_session *s, struct iggy_call *c, int64_t now_ms) {
    struct iggy_header h = {
        .frame = {.size = (uint32_t)(IGGY_HEADER_BYTES + c->body.bytes), .kind = IGGY_REQUEST}};
    iggy_command_stamp(c->command, &h.request);
    h.request.client = s->client;
    if (h.request.operation != IGGY_OP_REGISTER) {
        if (c->number == 0)
            c->number = s->next_request++;
        h.request.request = c->number;
        h.request.session = s->session;
    }
    if (speaks_p12(s)) {
        if (iggy_command_plane(c->command) == IGGY_PLANE_METADATA)
            h.request.request_checksum = request_id(s, c->number);
        stamp_context(s, c, &h.request);
    }
    iggy_header_encode(&h, c->head);
    c->state = IGGY_CALL_SENT;
    c->sent_ms = s->last_sent_ms = now_ms;
    c->may_have_landed = true;
    return c;
}

/* Its number is that of the request it cancels, and it has no answer. */
static struct iggy_call *cancel_send(struct iggy_session *s, int64_t now_ms) {
    s->cancel = (struct iggy_call){
        .command = iggy_command_by_code(IGGY_CMD_cancel_deferred_request, s->version),
        .number = s->cancels[--s->cancels_count],
    };
    return call_send(s, &s->cancel, now_ms);
}

static bool is_metadata(const struct iggy_call *c) {
    return iggy_command_plane(c->command) == IGGY_PLANE_METADATA;
}

static bool metadata_is_out(const struct iggy_session *s) {
    for (struct link *l = s->sent.next; l != &s->sent; l = l->next)
        if (is_metadata(call_of(l)))
            return true;
    return false;
}

/* The first that may go. A write that has to wait keeps back those of its plane behind it. */
static struct iggy_call *queue_next(const struct iggy_session *s, int64_t now_ms) {
    bool partition_waits = false, metadata_waits = false, looked = false;
    for (struct link *l = s->queued.next; l != &s->queued; l = l->next) {
        struct iggy_call *c = call_of(l);
        enum iggy_plane plane = iggy_command_plane(c->command);
        if (plane == IGGY_PLANE_METADATA && !looked) {
            metadata_waits = metadata_is_out(s);
            looked = true;
        }
        bool waits = (plane == IGGY_PLANE_PARTITION && partition_waits) ||
                     (plane == IGGY_PLANE_METADATA && metadata_waits) || c->again_ms > now_ms;
        if (!waits)
            return c;
        partition_waits = partition_waits || plane == IGGY_PLANE_PARTITION;
        metadata_waits = metadata_waits || plane == IGGY_PLANE_METADATA;
    }
    return NULL;
}

struct iggy_call *iggy_session_output(struct iggy_session *s, int64_t now_ms) {
    if (s->phase == IGGY_OFFLINE || s->phase >= IGGY_ENDING)
        return NULL;
    if (s->own.state == IGGY_CALL_QUEUED && s->own.again_ms <= now_ms)
        return call_send(s, &s->own, now_ms);
    if (s->phase == IGGY_READY && s->cancels_count > 0)
        return cancel_send(s, now_ms);
    if (s->phase != IGGY_READY || s->in_flight >= s->config->in_flight_max)
        return NULL;
    struct iggy_call *c = queue_next(s, now_ms);
    if (!c)
        return NULL;
    list_remove(&c->link);
    list_push_tail(&s->sent, &c->link);
    s->in_flight++;
    return call_send(s, c, now_ms);
}

/* ---- in: login and leader ---- */

/* Calls that were encoded for another version can't be sent any more. */
static void session_ready(struct iggy_session *s) {
    s->phase = IGGY_READY;
    s->ready_due = true;
    for (struct link *l = s->queued.next, *next; l != &s->queued; l = next) {
        next = l->next;
        if (call_of(l)->version != s->version)
            call_fail(s, call_of(l));
    }
}

/* The newest version in a server's window that the tables describe; 0: none. */
static uint32_t version_within(uint32_t least, uint32_t most) {
    static const uint32_t newest_first[] = {IGGY_0_12_2, IGGY_0_12_1, IGGY_0_12_0, IGGY_0_11};
    for (size_t i = 0; i < COUNT_OF(newest_first); i++)
        if (least <= newest_first[i] && newest_first[i] <= most)
            return newest_first[i];
    return 0;
}

/* Log in again with another version, or give up with code if there is none. */
static void version_change(struct iggy_session *s, uint32_t version, uint32_t code) {
    if (version == 0 || version == s->version) {
        session_refuse(s, code);
        return;
    }
    s->version = version;
    session_end(s);
}

static void on_login(struct iggy_session *s, const struct iggy_outcome *o, int64_t now_ms) {
    struct iggy_login_res res;
    struct arena none = {0};
    if (o->code == IGGY_ERR_TRANSIENT_NOT_COMMITTED || o->code == IGGY_ERR_TRANSIENT_NOT_ACCEPTED) {
        s->own.state = IGGY_CALL_QUEUED;
        s->own.again_ms = now_ms + AGAIN_MS;
    } else if (o->code == IGGY_ERR_INVALID_FORMAT && speaks_p12(s)) {
        version_change(s, IGGY_0_11, o->code); /* it took the request's id for a checksum */
    } else if (o->code != 0) {
        session_refuse(s, o->code);
    } else if (iggy_decode(iggy_login_res_schema(), s->version, o->payload, &none, &res) ||
               res.session == 0) {
        session_end(s);
    } else {
        s->session = res.session;
        s->phase = IGGY_LOOKING;
        own_start_empty(s, IGGY_CMD_get_cluster_metadata, now_ms);
    }
}

static void on_bound(struct iggy_session *s, const struct iggy_outcome *o) {
    if (o->code == 0) {
        session_ready(s);
        return;
    }
    session_lost(s);
}

static bool is_here(const struct iggy_session *s, const struct iggy_node *n) {
    return n->tcp_port == s->port && str_equal(n->ip, str_of(s->host));
}

/* Where the cluster's leader is, if that is another node and a few more redirections are all right. */
static void on_leader(struct iggy_session *s, const struct iggy_node *leader) {
    bool can_go = s->redirects < REDIRECTS_MAX && leader->ip.len > 0 &&
                  (size_t)leader->ip.len < sizeof s->leader && leader->tcp_port != 0;
    if (is_here(s, leader) || !can_go) {
        s->redirects = 0;
        if (s->phase == IGGY_LOOKING)
            session_ready(s);
        return;
    }
    s->redirects++;
    memcpy(s->leader, leader->ip.ptr, (size_t)leader->ip.len);
    s->leader[leader->ip.len] = 0;
    s->leader_port = leader->tcp_port;
    session_lost(s);
}

static void on_cluster(struct iggy_session *s, const struct iggy_outcome *o, int64_t now_ms) {
    struct iggy_get_cluster_metadata_res res = {.nodes_count = 0};
    struct arena a;
    arena_init(&a, NULL, 0, CLUSTER_BYTES_MAX);
    bool known = o->code == 0 &&
                 !iggy_decode(iggy_get_cluster_metadata_res_schema(), s->version, o->payload, &a, &res);
    const struct iggy_node *leader = NULL;
    for (uint32_t i = 0; known && i < res.nodes_count && !leader; i++)
        if (res.nodes[i].role == 0)
            leader = &res.nodes[i];
    if (known && res.nodes_count > 1 && leader)
        on_leader(s, leader);
    else if (known && res.nodes_count > 1 && now_ms - s->looking_since_ms < LOOKING_MS)
        own_start_empty(s, IGGY_CMD_get_cluster_metadata, now_ms + NO_LEADER_MS);
    else if (s->phase == IGGY_LOOKING)
        session_ready(s);
    arena_release(&a);
}

static void on_own(struct iggy_session *s, const struct iggy_outcome *o, int64_t now_ms) {
    s->own.state = IGGY_CALL_IDLE;
    switch (s->own.command->code) {
    case IGGY_CMD_login_password:
    case IGGY_CMD_login_token:
        on_login(s, o, now_ms);
        break;
    case IGGY_CMD_bind_session:
        on_bound(s, o);
        break;
    case IGGY_CMD_get_cluster_metadata:
        on_cluster(s, o, now_ms);
        break;
    default: /* a ping: that it is answered is all */
        break;
    }
}

static void on_eviction(struct iggy_session *s, const struct iggy_eviction_header *e) {
    uint32_t code = iggy_error_of_eviction(e->reason);
    bool login = s->phase == IGGY_LOGGING_IN;
    s->lost = true;
    if (e->reason == IGGY_EVICTED_INCOMPATIBLE_PROTOCOL)
        version_change(s, version_within(e->protocol_min, e->protocol_max), code);
    else if (login && e->reason == IGGY_EVICTED_MALFORMED_LOGIN)
        version_change(s, speaks_p12(s) ? IGGY_0_11 : 0, code);
    else if (login &&
             (code == IGGY_ERR_INVALID_CREDENTIALS || code == IGGY_ERR_INVALID_PERSONAL_ACCESS_TOKEN ||
              e->reason == IGGY_EVICTED_USER_INACTIVE))
        session_refuse(s, code);
    else
        session_end(s);
}

/* ---- in: answers ---- */

static struct iggy_call *call_by_number(struct iggy_session *s, uint64_t number) {
    for (struct link *l = s->sent.next; l != &s->sent; l = l->next)
        if (call_of(l)->number == number)
            return call_of(l);
    return NULL;
}

/* Whether the very same frame may go out again after 57: whether its number is looked at. */
static bool number_protects(const struct iggy_session *s, const struct iggy_call *c) {
    return speaks_p12(s) || iggy_command_plane(c->command) == IGGY_PLANE_METADATA || may_repeat(c);
}

/* Whether the call goes out again instead of being answered; then it has been queued. */
static bool call_again(struct iggy_session *s, struct iggy_call *c, uint32_t code, int64_t now_ms) {
    enum iggy_retry retry = iggy_error_retry(code);
    bool again = false;
    if (retry == IGGY_RETRY_LATER) {
        if (s->refused_since_ms < 0)
            s->refused_since_ms = now_ms;
        bool ask_route = speaks_p12(s) && iggy_command_plane(c->command) == IGGY_PLANE_PARTITION &&
                         now_ms - s->refused_since_ms >= REFUSED_MS;
        again = !ask_route;
        c->may_have_landed = false;
    } else if (retry == IGGY_RETRY_NEW_NUMBER) {
        again = true;
        c->may_have_landed = false;
        c->number = 0;
    } else if (retry == IGGY_RETRY_SAME_FRAME) {
        again = number_protects(s, c);
    } else if (retry == IGGY_RETRY_LOG_IN && may_repeat(c)) {
        again = true;
        c->number = 0;
    }
    if (again && now_ms + AGAIN_MS >= c->deadline_ms)
        again = false;
    if (again)
        call_queue_again(s, c, now_ms + AGAIN_MS);
    return again;
}

/* True: out is an event. */
static bool on_answer(struct iggy_session *s, const struct iggy_reply_header *r, const struct iggy_outcome *o,
                      int64_t now_ms, struct iggy_event *out) {
    struct iggy_call *c = call_by_number(s, r->request);
    if (!c) /* of a call that is over */
        return false;
    s->in_flight--;
    list_remove(&c->link);
    if (iggy_command_plane(c->command) == IGGY_PLANE_METADATA && r->commit > s->watermark)
        s->watermark = r->commit;
    if (o->code != IGGY_ERR_TRANSIENT_NOT_ACCEPTED)
        s->refused_since_ms = -1;
    bool again = o->code != 0 && call_again(s, c, o->code, now_ms);
    if (iggy_error_retry(o->code) == IGGY_RETRY_LOG_IN) {
        session_lost(s);
    }
    if (again)
        return false;
    c->state = IGGY_CALL_IDLE;
    *out =
        (struct iggy_event){.kind = IGGY_EVENT_ANSWER,
                            .call = c,
                            .outcome = *o,
                            .header = *r,
                            .code = o->code,
                            .may_have_landed = o->code == 0 || (c->may_have_landed &&
                                                                iggy_error_retry(o->code) != IGGY_RETRY_NO &&
                                                                !iggy_error_retry_is_safe(o->code))};
    return true;
}

static bool on_frame(struct iggy_session *s, const struct iggy_header *h, struct bytes body, int64_t now_ms,
                     struct iggy_event *out) {
    struct iggy_outcome o;
    if (h->frame.kind == IGGY_EVICTION)
        on_eviction(s, &h->eviction);
    if (h->frame.kind != IGGY_REPLY)
        return false;
    if (iggy_reply_open(&h->reply, body, &o)) {
        session_end(s);
        return false;
    }
    if (s->own.state == IGGY_CALL_SENT && s->own.number == h->reply.request) {
        on_own(s, &o, now_ms);
        return false;
    }
    return on_answer(s, &h->reply, &o, now_ms, out);
}

/* ---- events ---- */

static bool event_due(struct iggy_session *s, struct iggy_event *out) {
    struct link *l = list_pop_head(&s->failed);
    *out = (struct iggy_event){0};
    if (l) {
        out->kind = IGGY_EVENT_FAILED;
        out->call = call_of(l);
        out->call->state = IGGY_CALL_IDLE;
        out->may_have_landed = out->call->may_have_landed;
    } else if (s->refused_due) {
        out->kind = IGGY_EVENT_REFUSED;
        out->code = s->refused_code;
        s->refused_due = false;
    } else if (s->reconnect_due) {
        out->kind = IGGY_EVENT_RECONNECT;
        out->host = str_of(s->leader);
        out->port = s->leader_port;
        s->reconnect_due = false;
    } else if (s->ready_due) {
        out->kind = IGGY_EVENT_READY;
        s->ready_due = false;
    } else {
        return false;
    }
    return true;
}

bool iggy_session_next(struct iggy_session *s, struct rbuf *in, int64_t now_ms, struct iggy_event *out) {
    for (;;) {
        if (event_due(s, out))
            return true;
        if (s->phase == IGGY_OFFLINE || s->phase >= IGGY_ENDING)
            return false;
        struct iggy_header h;
        struct bytes body;
        enum status st = iggy_frame_next(in, INT32_MAX, &h, &body);
        if (st == ST_AGAIN)
            return false;
        if (st)
            session_end(s);
        else if (on_frame(s, &h, body, now_ms, out))
            return true;
    }
}

/* ---- time ---- */

static int64_t sooner(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Deadlines of what is not on its way: nothing stands between these and their end. */
static int64_t tick_queued(struct iggy_session *s, int64_t now_ms) {
    int64_t next_ms = INT64_MAX;
    for (struct link *l = s->queued.next, *next; l != &s->queued; l = next) {
        next = l->next;
        struct iggy_call *c = call_of(l);
        if (c->deadline_ms <= now_ms) {
            call_fail(s, c);
            continue;
        }
        next_ms = sooner(next_ms, c->deadline_ms);
        if (s->phase == IGGY_READY && c->again_ms > now_ms)
            next_ms = sooner(next_ms, c->again_ms);
    }
    return next_ms;
}

/* An answer that is late ends the connection: the frame of its call can't be taken back. */
static int64_t tick_sent(struct iggy_session *s, int64_t now_ms) {
    int64_t next_ms = INT64_MAX;
    for (struct link *l = s->sent.next; l != &s->sent; l = l->next)
        next_ms = sooner(next_ms, call_of(l)->deadline_ms);
    if (s->own.state == IGGY_CALL_SENT)
        next_ms = sooner(next_ms, s->own.sent_ms + s->config->reply_ms);
    else if (s->own.state == IGGY_CALL_QUEUED && s->own.again_ms > now_ms)
        next_ms = sooner(next_ms, s->own.again_ms);
    if (next_ms <= now_ms)
        session_end(s);
    return next_ms;
}

static int64_t tick_idle(struct iggy_session *s, int64_t now_ms) {
    if (s->phase != IGGY_READY || s->own.state != IGGY_CALL_IDLE)
        return INT64_MAX;
    if (s->refused_since_ms >= 0 && now_ms - s->refused_since_ms >= REFUSED_MS) {
        s->refused_since_ms = -1;
        s->looking_since_ms = now_ms;
        own_start_empty(s, IGGY_CMD_get_cluster_metadata, now_ms);
        return INT64_MAX;
    }
    if (now_ms - s->last_sent_ms >= s->config->heartbeat_ms) {
        own_start_empty(s, IGGY_CMD_ping, now_ms);
        return INT64_MAX;
    }
    return s->last_sent_ms + s->config->heartbeat_ms;
}

int64_t iggy_session_tick(struct iggy_session *s, int64_t now_ms) {
    int64_t next_ms = tick_queued(s, now_ms);
    if (s->phase == IGGY_OFFLINE || s->phase >= IGGY_ENDING)
        return next_ms;
    next_ms = sooner(next_ms, tick_sent(s, now_ms));
    return sooner(next_ms, tick_idle(s, now_ms));
}
