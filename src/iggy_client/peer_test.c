#include "iggy_client/peer_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/le.h"
#include "iggy/codec.h"
#include "net/budget.h"
#include "net/loop.h"
#include "testing/test.h"

#define PATIENCE_S   20
#define ANSWER_BYTES 4096
#define SESSION      42

/* --- the server --- */

void peer_open(struct peer *p) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    *p = (struct peer){.fd = -1};
    p->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(p->listen_fd >= 0);
    CHECK_EQ(setsockopt(p->listen_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    CHECK_EQ(bind(p->listen_fd, (const struct sockaddr *)&at, len), 0);
    CHECK_EQ(listen(p->listen_fd, 8), 0);
    CHECK_EQ(getsockname(p->listen_fd, (struct sockaddr *)&at, &len), 0);
    p->port = ntohs(at.sin_port);
}

void peer_hang_up(struct peer *p) {
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

void peer_close(struct peer *p) {
    peer_hang_up(p);
    if (p->listen_fd >= 0)
        close(p->listen_fd);
    p->listen_fd = -1;
}

void peer_accept(struct peer *p) {
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    CHECK(p->fd < 0);
    p->fd = accept4(p->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    CHECK(p->fd >= 0);
    CHECK_EQ(setsockopt(p->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
}

static void peer_read(const struct peer *p, uint8_t *out, size_t len) {
    for (size_t at = 0; at < len;) {
        ssize_t n = recv(p->fd, out + at, len - at, 0);
        CHECK(n > 0);
        at += (size_t)n;
    }
}

static void peer_write(const struct peer *p, const uint8_t *data, size_t len) {
    for (size_t at = 0; at < len;) {
        ssize_t n = send(p->fd, data + at, len - at, MSG_NOSIGNAL);
        CHECK(n > 0);
        at += (size_t)n;
    }
}

void peer_take(struct peer *p) {
    uint8_t head[IGGY_HEADER_BYTES];
    struct iggy_header h;
    peer_read(p, head, sizeof head);
    iggy_header_decode(head, &h);
    CHECK_EQ(h.frame.kind, IGGY_REQUEST);
    CHECK(iggy_request_is_sound(&h.request));
    p->h = h.request;
    p->body_bytes = h.frame.size - IGGY_HEADER_BYTES;
    CHECK(p->body_bytes <= sizeof p->body);
    peer_read(p, p->body, p->body_bytes);
}

bool peer_is_quiet(const struct peer *p) {
    struct pollfd fd = {.fd = p->fd, .events = POLLIN};
    return poll(&fd, 1, 0) == 0;
}

void peer_expect(struct peer *p, uint32_t code) {
    peer_take(p);
    const struct iggy_command *c = iggy_command_of(&p->h, p->version ? p->version : IGGY_NEWEST);
    CHECK(c != NULL);
    CHECK_EQ(c->code, code);
}

void peer_expect_end(struct peer *p) {
    uint8_t byte;
    ssize_t n;
    while ((n = recv(p->fd, &byte, 1, 0)) > 0)
        continue;
    CHECK(n == 0 || errno == ECONNRESET);
    peer_hang_up(p);
}

static void peer_send(const struct peer *p, struct iggy_header *h, const struct wbuf *body) {
    uint8_t out[IGGY_HEADER_BYTES + ANSWER_BYTES];
    h->frame.size = (uint32_t)(IGGY_HEADER_BYTES + (body ? body->bytes : 0));
    CHECK(h->frame.size <= sizeof out);
    iggy_header_encode(h, out);
    if (body)
        wbuf_flatten(body, out + IGGY_HEADER_BYTES);
    peer_write(p, out, h->frame.size);
}

void peer_answer_to(struct peer *p, const struct iggy_request_header *request, uint32_t code,
                    const void *msg) {
    const struct iggy_command *c = iggy_command_of(request, p->version);
    struct iggy_header h = {.frame = {.kind = IGGY_REPLY},
                            .reply = {.request = request->request, .operation = request->operation}};
    struct wbuf body;
    wbuf_init(&body, ANSWER_BYTES);
    CHECK(c != NULL);
    if (request->operation == IGGY_OP_REGISTER)
        h.frame.cluster.b[0] = 9;
    if (iggy_operation_has_result(request->operation))
        CHECK_EQ(iggy_reply_begin(request->operation, code, &body), ST_OK);
    else
        h.reply.status = code;
    if (code == 0 && msg)
        CHECK_EQ(iggy_encode(c->answer(), p->version, msg, &body), ST_OK);
    peer_send(p, &h, &body);
    wbuf_release(&body);
}

void peer_answer(struct peer *p, uint32_t code, const void *msg) {
    peer_answer_to(p, &p->h, code, msg);
}

void peer_status(struct peer *p, uint32_t status) {
    struct iggy_header h = {
        .frame = {.kind = IGGY_REPLY},
        .reply = {.request = p->h.request, .operation = p->h.operation, .status = status}};
    peer_send(p, &h, NULL);
}

void peer_send_raw(struct peer *p, const struct iggy_header *h) {
    uint8_t out[IGGY_HEADER_BYTES];
    iggy_header_encode(h, out);
    peer_write(p, out, sizeof out);
}

void peer_evict(struct peer *p, uint8_t reason, uint32_t least, uint32_t most) {
    struct iggy_header h = {.frame = {.kind = IGGY_EVICTION},
                            .eviction = {.reason = reason, .protocol_min = least, .protocol_max = most}};
    peer_send(p, &h, NULL);
}

void peer_finish_login(struct peer *p) {
    struct iggy_login_res res = {.session = SESSION, .protocol = p->version, .server_version = STR("0.9")};
    peer_answer(p, 0, &res);
    struct iggy_node node = {.name = STR("n"), .ip = STR("127.0.0.1"), .tcp_port = (uint16_t)p->port};
    struct iggy_get_cluster_metadata_res cluster = {.name = STR("c"), .nodes = &node, .nodes_count = 1};
    peer_expect(p, IGGY_CMD_get_cluster_metadata);
    peer_answer(p, 0, &cluster);
}

void peer_log_in(struct peer *p, uint32_t version) {
    p->version = version;
    peer_accept(p);
    peer_expect(p, IGGY_CMD_login_password);
    peer_finish_login(p);
}

/* --- waiting --- */

void gate_add(struct gate *g, int64_t n) {
    pthread_mutex_lock(&g->lock);
    g->value += n;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

bool gate_reaches(struct gate *g, int64_t value) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    int err = 0;
    pthread_mutex_lock(&g->lock);
    while (g->value < value && err != ETIMEDOUT)
        err = pthread_cond_timedwait(&g->changed, &g->lock, &until);
    bool reached = g->value >= value;
    pthread_mutex_unlock(&g->lock);
    return reached;
}

static void gate_init(struct gate *g) {
    *g = (struct gate){PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
}

struct run {
    struct op op;
    void (*fn)(void *arg);
    void *arg;
    struct gate returned;
};

static void run_on_loop(struct op *op) {
    struct run *run = container_of(op, struct run, op);
    run->fn(run->arg);
    gate_add(&run->returned, 1);
}

void rig_run(struct rig *g, void (*fn)(void *arg), void *arg) {
    struct run run = {.fn = fn, .arg = arg};
    gate_init(&run.returned);
    op_init(&run.op, g->loop, run_on_loop);
    loop_post(&run.op);
    CHECK(gate_reaches(&run.returned, 1));
}

/* --- the client --- */

struct rig_new {
    struct rig *rig;
    struct iggy_client_settings settings;
    enum status status;
};

static void rig_make_client(void *arg) {
    struct rig_new *n = arg;
    n->status = iggy_client_new(&n->settings, &n->rig->client);
}

void rig_start(struct rig *g, int port, struct rig_options o) {
    *g = (struct rig){0};
    gate_init(&g->close_gate);
    CHECK_EQ(loop_new(0, &g->loop), ST_OK);
    CHECK_EQ(loop_start(g->loop), ST_OK);
    CHECK_EQ(budget_new(INT64_C(1) << 30, &g->budget), ST_OK);
    struct rig_new n = {.rig = g,
                        .settings = {
                            .loop = g->loop,
                            .host = o.host ? o.host : "127.0.0.1",
                            .port = port,
                            .username = "iggy",
                            .password = o.password ? o.password : "secret",
                            .version_newest = o.version_newest ? o.version_newest : IGGY_NEWEST,
                            .in_flight_max = o.in_flight_max ? o.in_flight_max : 16,
                            .connect_ms = LONG_MS,
                            .tls = o.tls,
                            .budget = g->budget,
                        }};
    rig_run(g, rig_make_client, &n);
    CHECK_EQ(n.status, ST_OK);
}

static void rig_on_closed(struct op *op) {
    gate_add(&container_of(op, struct rig, closed)->close_gate, 1);
}

static void rig_begin_close(void *arg) {
    struct rig *g = arg;
    op_init(&g->closed, g->loop, rig_on_closed);
    iggy_client_close(g->client, &g->closed);
}

void rig_close(struct rig *g) {
    rig_run(g, rig_begin_close, g);
    CHECK(gate_reaches(&g->close_gate, 1));
    g->client = NULL;
}

void rig_stop(struct rig *g) {
    if (g->client)
        rig_close(g);
    loop_stop(g->loop);
    loop_free(g->loop);
    CHECK_EQ(budget_free_bytes(g->budget), INT64_C(1) << 30);
    budget_free(g->budget);
}

/* --- calls --- */

static void rig_on_done(struct op *op) {
    static int ended;
    struct rig_call *call = container_of(op, struct rig_call, r.op);
    call->status = op->status;
    call->order = ++ended;
    gate_add(&call->done, 1);
}

static void rig_begin_call(void *arg) {
    struct rig_call *call = arg;
    op_init(&call->r.op, call->rig->loop, rig_on_done);
    call->r.deadline_ms = loop_now_ms(call->rig->loop) + call->patience_ms;
    iggy_client_call(call->rig->client, &call->r, call->code, call->in);
}

void rig_call(struct rig *g, struct rig_call *call, uint32_t code, const void *in, int64_t patience_ms) {
    *call = (struct rig_call){.rig = g, .code = code, .in = in, .patience_ms = patience_ms};
    gate_init(&call->done);
    rig_run(g, rig_begin_call, call);
}

static void rig_cancel_now(void *arg) {
    op_cancel(&((struct rig_call *)arg)->r.op);
}

void rig_cancel(struct rig_call *call) {
    rig_run(call->rig, rig_cancel_now, call);
}

enum status rig_wait(struct rig_call *call) {
    CHECK(gate_reaches(&call->done, 1));
    return call->status;
}

void rig_release(struct rig_call *call) {
    iggy_request_release(&call->r);
}

struct rig_wait_state {
    struct rig *rig;
    struct iggy_wait wait;
    int64_t patience_ms;
    struct gate done;
};

static void rig_on_ready(struct op *op) {
    gate_add(&container_of(op, struct rig_wait_state, wait.op)->done, 1);
}

static void rig_begin_wait(void *arg) {
    struct rig_wait_state *w = arg;
    op_init(&w->wait.op, w->rig->loop, rig_on_ready);
    w->wait.deadline_ms = loop_now_ms(w->rig->loop) + w->patience_ms;
    iggy_client_connect(w->rig->client, &w->wait);
}

enum status rig_connect(struct rig *g, int64_t patience_ms) {
    struct rig_wait_state w = {.rig = g, .patience_ms = patience_ms};
    gate_init(&w.done);
    rig_run(g, rig_begin_wait, &w);
    CHECK(gate_reaches(&w.done, 1));
    return w.wait.op.status;
}
