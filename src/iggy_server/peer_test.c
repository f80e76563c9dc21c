#include "iggy_server/peer_test.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/store/store_backend.h"
#include "base/mem.h"
#include "iggy/codec.h"
#include "net/loop.h"
#include "net/work.h"
#include "testing/test.h"

#define PATIENCE_S 20
#define DRAIN_MS   2000

/* ---- the server ---- */

static void rig_build(struct rig *rig, uint32_t version_least, uint32_t version_newest) {
    const char *dir = test_dir();
    const struct store_backend_settings log = {
        .data_dir = dir,
        .segment_bytes = 1 << 20,
        .segment_ms = INT64_MAX,
        .retention_ms = -1,
        .retention_bytes = -1,
        .fsync = FSYNC_NEVER,
        .stream = "kafka",
        .batch_bytes_max = 1 << 20,
        .slots_max = 1 << 14,
        .cluster_id = CLUSTER_ID,
        .home = rig->loops[0],
    };
    struct store_error error;
    char generated[USERS_PASSWORD_BYTES];
    CHECK_EQ(store_backend_new(&log, &rig->backend, &error), ST_OK);
    struct store *store = store_backend_store(rig->backend);
    CHECK_EQ(users_open(store, "root", RIG_PASSWORD, &rig->users, generated), ST_OK);
    CHECK_EQ(budget_new(256 << 20, &rig->budget), ST_OK);
    const struct iggy_server_settings settings = {
        .bind_address = "127.0.0.1:0",
        .connections_max = 64,
        .read_ms = PATIENCE_S * 1000,
        .write_ms = PATIENCE_S * 1000,
        .version_least = version_least ? version_least : IGGY_0_11,
        .version_newest = version_newest ? version_newest : IGGY_NEWEST,
        .cluster_id = CLUSTER_ID,
        .data_dir = dir,
        .store = store,
        .backend = rig->backend,
        .users = rig->users,
        .budget = rig->budget,
        .loops = rig->loops,
        .loops_count = RIG_LOOPS,
    };
    CHECK_EQ(iggy_server_new(&settings, &rig->server), ST_OK);
}

void rig_start(struct rig *rig, uint32_t version_least, uint32_t version_newest) {
    *rig = (struct rig){0};
    CHECK_EQ(work_start(4), ST_OK);
    for (int i = 0; i < RIG_LOOPS; i++)
        CHECK_EQ(loop_new(i, &rig->loops[i]), ST_OK);
    rig_build(rig, version_least, version_newest);
    for (int i = 0; i < RIG_LOOPS; i++)
        CHECK_EQ(loop_start(rig->loops[i]), ST_OK);
    store_backend_start(rig->backend);
    iggy_server_open(rig->server);
    rig->port = iggy_server_port(rig->server);
}

struct turn {
    struct op op;
    sem_t ended;
    void (*fn)(void *arg);
    void *arg;
};

static void turn_on_done(struct op *op) {
    struct turn *turn = container_of(op, struct turn, op);
    if (turn->fn)
        turn->fn(turn->arg);
    sem_post(&turn->ended);
}

static void turn_wait(struct turn *turn) {
    while (sem_wait(&turn->ended) != 0)
        continue;
    sem_destroy(&turn->ended);
}

void rig_call(struct rig *rig, int loop, void (*fn)(void *arg), void *arg) {
    struct turn turn = {.fn = fn, .arg = arg};
    sem_init(&turn.ended, 0, 0);
    op_init(&turn.op, rig->loops[loop], turn_on_done);
    loop_post(&turn.op);
    turn_wait(&turn);
}

int rig_logins(struct rig *rig) {
    struct iggy_logins *logins = &rig->server->logins;
    pthread_mutex_lock(&logins->lock);
    int running = logins->running;
    pthread_mutex_unlock(&logins->lock);
    return running;
}

void rig_stop(struct rig *rig) {
    struct turn drained = {.fn = NULL};
    sem_init(&drained.ended, 0, 0);
    op_init(&drained.op, rig->loops[0], turn_on_done);
    iggy_server_stop(rig->server, DRAIN_MS, &drained.op);
    turn_wait(&drained);
    store_backend_stop(rig->backend);
    for (int i = 0; i < RIG_LOOPS; i++)
        loop_stop(rig->loops[i]);
    work_stop();
    CHECK_EQ(budget_free_bytes(rig->budget), 256 << 20);
    iggy_server_free(rig->server);
    users_close(rig->users);
    store_backend_free(rig->backend);
    budget_free(rig->budget);
    for (int i = 0; i < RIG_LOOPS; i++)
        loop_free(rig->loops[i]);
}

/* ---- a client ---- */

void peer_open(struct peer *p, const struct rig *rig, uint32_t version, uint8_t id) {
    const int on = 1;
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)rig->port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *p = (struct peer){.version = version, .id = {{id, 1}}, .secret = {{id, 2}}};
    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(p->fd >= 0);
    CHECK_EQ(setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
    CHECK_EQ(setsockopt(p->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    CHECK_EQ(connect(p->fd, (const struct sockaddr *)&to, sizeof to), 0);
    arena_init(&p->arena, NULL, 0, 64 << 20);
}

void peer_close(struct peer *p) {
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
    mem_free(p->frame);
    p->frame = NULL;
    arena_release(&p->arena);
}

static void send_all(int fd, const uint8_t *at, size_t len) {
    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        CHECK(n > 0);
        at += n;
        len -= (size_t)n;
    }
}

void peer_send_frame(struct peer *p, struct iggy_header h, struct bytes body) {
    size_t body_len = body.len > 0 ? (size_t)body.len : 0;
    uint8_t *frame = mem_take(IGGY_HEADER_BYTES + body_len);
    CHECK(frame);
    h.frame.kind = IGGY_REQUEST;
    h.frame.size = (uint32_t)(IGGY_HEADER_BYTES + body_len);
    iggy_header_encode(&h, frame);
    if (body_len > 0)
        memcpy(frame + IGGY_HEADER_BYTES, body.ptr, body_len);
    send_all(p->fd, frame, IGGY_HEADER_BYTES + body_len);
    mem_free(frame);
}

void peer_send_body(struct peer *p, uint32_t code, uint64_t number, struct bytes body) {
    struct iggy_header h = {.request = {.client = p->id, .request = number, .session = p->session}};
    const struct iggy_command *c = iggy_command_by_code(code, p->version);
    CHECK(c);
    iggy_command_stamp(c, &h.request);
    if (p->version < IGGY_0_12_0)
        h.request.request_checksum = iggy_body_checksum(body);
    else if (iggy_command_plane(c) == IGGY_PLANE_METADATA)
        h.request.request_checksum = (struct iggy_u128){{(uint8_t)number, 7}};
    peer_send_frame(p, h, body);
}

/* The body of a message, on the heap; empty for NULL. */
static struct bytes body_of(struct peer *p, const struct iggy_schema *schema, const void *in) {
    struct wbuf w;
    wbuf_init(&w, 64 << 20);
    if (in)
        CHECK_EQ(iggy_encode(schema, p->version, in, &w), ST_OK);
    uint8_t *flat = mem_take(w.bytes + 1);
    CHECK(flat);
    wbuf_flatten(&w, flat);
    struct bytes body = {flat, (int32_t)w.bytes};
    wbuf_release(&w);
    return body;
}

void peer_send(struct peer *p, uint32_t code, uint64_t number, const void *in) {
    const struct iggy_command *c = iggy_command_by_code(code, p->version);
    CHECK(c);
    struct bytes body = body_of(p, c->request(), in);
    peer_send_body(p, code, number, body);
    mem_free((void *)(uintptr_t)body.ptr);
}

static bool receive_all(int fd, uint8_t *at, size_t len) {
    while (len > 0) {
        ssize_t n = recv(fd, at, len, 0);
        if (n == 0)
            return false;
        CHECK(n > 0);
        at += n;
        len -= (size_t)n;
    }
    return true;
}

bool peer_read(struct peer *p) {
    uint8_t head[IGGY_HEADER_BYTES];
    struct iggy_outcome o;
    if (!receive_all(p->fd, head, sizeof head))
        return false;
    iggy_header_decode(head, &p->h);
    size_t body_len = p->h.frame.size - IGGY_HEADER_BYTES;
    mem_free(p->frame);
    p->frame = mem_take(IGGY_HEADER_BYTES + body_len);
    CHECK(p->frame);
    memcpy(p->frame, head, sizeof head);
    CHECK(receive_all(p->fd, p->frame + IGGY_HEADER_BYTES, body_len));
    p->body = (struct bytes){p->frame + IGGY_HEADER_BYTES, (int32_t)body_len};
    if (p->h.frame.kind == IGGY_REPLY) {
        CHECK_EQ(iggy_reply_open(&p->h.reply, p->body, &o), ST_OK);
        p->code = o.code;
        p->payload = o.payload;
    }
    return true;
}

void peer_decode(struct peer *p, uint32_t code, void *out) {
    const struct iggy_command *c = iggy_command_by_code(code, p->version);
    arena_release(&p->arena);
    arena_init(&p->arena, NULL, 0, 64 << 20);
    CHECK_EQ(iggy_decode(c->answer(), p->version, p->payload, &p->arena, out), ST_OK);
}

uint32_t peer_call(struct peer *p, uint32_t code, const void *in, void *out) {
    peer_send(p, code, ++p->number, in);
    CHECK(peer_read(p));
    CHECK_EQ(p->h.frame.kind, IGGY_REPLY);
    CHECK_EQ(p->h.reply.request, p->number);
    CHECK_MEM(p->h.reply.client.b, p->id.b, sizeof p->id.b);
    if (p->code == 0 && out)
        peer_decode(p, code, out);
    return p->code;
}

uint8_t peer_eviction(struct peer *p) {
    CHECK(peer_read(p));
    CHECK_EQ(p->h.frame.kind, IGGY_EVICTION);
    CHECK_MEM(p->h.eviction.client.b, p->id.b, sizeof p->id.b);
    return p->h.eviction.reason;
}

void peer_send_login(struct peer *p, const char *name, const char *password) {
    const struct iggy_login_password_req in = {
        .client = {.protocol = p->version, .sdk_name = STR("test"), .sdk_version = STR("1")},
        .bind_secret = p->secret,
        .username = str_of(name),
        .password = str_of(password)};
    uint64_t session = p->session;
    p->session = 0;
    peer_send(p, IGGY_CMD_login_password, 0, &in);
    p->session = session;
}

void peer_log_in(struct peer *p) {
    struct iggy_login_res res;
    peer_send_login(p, "root", RIG_PASSWORD);
    CHECK(peer_read(p));
    CHECK_EQ(p->h.frame.kind, IGGY_REPLY);
    CHECK_EQ(p->code, 0);
    peer_decode(p, IGGY_CMD_login_password, &res);
    p->session = res.session;
}
