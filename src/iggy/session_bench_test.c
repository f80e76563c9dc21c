#include "iggy/session_bench_test.h"

#include "base/mem.h"
#include "iggy/codec.h"
#include "testing/test.h"

static const struct iggy_session_config config = {
    .username = {"iggy", 4},
    .password = {"secret", 6},
    .sdk_name = {"test", 4},
    .sdk_version = {"1", 1},
    .version_newest = IGGY_NEWEST,
    .in_flight_max = 4,
    .reply_ms = 30000,
    .heartbeat_ms = 5000,
};

void bench_init(struct bench *b, uint32_t version) {
    memset(b, 0, sizeof *b);
    iggy_session_init(&b->s, &config);
    b->s.version = version;
    b->now_ms = 1000;
}

void bench_release(struct bench *b) {
    iggy_session_release(&b->s);
}

void connect_to(struct bench *b, uint8_t random) {
    uint8_t bytes[IGGY_SESSION_RANDOM_BYTES];
    memset(bytes, random, sizeof bytes);
    CHECK_EQ(iggy_session_connected(&b->s, STR("10.0.0.1"), 8090, bytes, b->now_ms), ST_OK);
}

bool sends(struct bench *b) {
    struct iggy_call *c = iggy_session_output(&b->s, b->now_ms);
    if (!c)
        return false;
    iggy_header_decode(c->head, &b->out);
    CHECK_EQ(b->out.frame.kind, IGGY_REQUEST);
    CHECK_EQ(b->out.frame.size, IGGY_HEADER_BYTES + c->body.bytes);
    CHECK(iggy_request_is_sound(&b->out.request));
    return true;
}

bool takes(struct bench *b, struct iggy_header *h, struct wbuf *body) {
    h->frame.size = (uint32_t)(IGGY_HEADER_BYTES + (body ? body->bytes : 0));
    CHECK(h->frame.size <= sizeof b->in);
    iggy_header_encode(h, b->in);
    if (body)
        wbuf_flatten(body, b->in + IGGY_HEADER_BYTES);
    struct rbuf in = {b->in, b->in + h->frame.size};
    return iggy_session_next(&b->s, &in, b->now_ms, &b->event);
}

bool event_due(struct bench *b) {
    struct rbuf in = {b->in, b->in};
    return iggy_session_next(&b->s, &in, b->now_ms, &b->event);
}

bool answer_to(struct bench *b, const struct iggy_header *request, uint32_t code, const void *msg) {
    const struct iggy_command *c = iggy_command_of(&request->request, b->s.version);
    CHECK(c);
    struct iggy_header h = {.frame = {.kind = IGGY_REPLY},
                            .reply = {.request = request->request.request, .operation = c->operation}};
    struct wbuf body;
    wbuf_init(&body, 4096);
    if (iggy_operation_has_result(c->operation))
        CHECK_EQ(iggy_reply_begin(c->operation, code, &body), ST_OK);
    else
        h.reply.status = code;
    h.reply.commit = 77;
    if (code == 0 && msg)
        CHECK_EQ(iggy_encode(c->answer(), b->s.version, msg, &body), ST_OK);
    bool event = takes(b, &h, &body);
    wbuf_release(&body);
    return event;
}

bool evicts(struct bench *b, uint8_t reason, uint32_t least, uint32_t most) {
    struct iggy_header h = {.frame = {.kind = IGGY_EVICTION},
                            .eviction = {.reason = reason, .protocol_min = least, .protocol_max = most}};
    return takes(b, &h, NULL);
}

void login_answered(struct bench *b) {
    CHECK(sends(b));
    CHECK_EQ(b->out.request.operation, IGGY_OP_REGISTER);
    struct iggy_login_res res = {.session = 42, .protocol = b->s.version, .server_version = STR("0.9")};
    CHECK(!answer_to(b, &b->out, 0, &res));
    CHECK(sends(b));
    CHECK_EQ(b->out.request.code, IGGY_CMD_get_cluster_metadata);
    CHECK_EQ(b->out.request.session, 42);
}

struct iggy_node node_of(const char *ip, uint8_t role) {
    return (struct iggy_node){.name = STR("n"), .ip = str_of(ip), .tcp_port = 8090, .role = role};
}

void log_in(struct bench *b) {
    connect_to(b, 7);
    login_answered(b);
    struct iggy_node node = node_of("127.0.0.1", 0); /* alone: whatever it calls itself */
    struct iggy_get_cluster_metadata_res res = {.name = STR("c"), .nodes = &node, .nodes_count = 1};
    CHECK(answer_to(b, &b->out, 0, &res));
    CHECK_EQ(b->event.kind, IGGY_EVENT_READY);
    CHECK(!sends(b));
}

void ready(struct bench *b, uint32_t version) {
    bench_init(b, version);
    log_in(b);
}

void call(struct bench *b, struct iggy_call *c, uint32_t code, int64_t deadline_ms) {
    *c = (struct iggy_call){.command = iggy_command_by_code(code, b->s.version), .deadline_ms = deadline_ms};
    CHECK(c->command);
    wbuf_init(&c->body, 64);
    iggy_session_call(&b->s, c);
}

void drop(struct bench *b) {
    iggy_session_disconnected(&b->s, b->now_ms);
}
