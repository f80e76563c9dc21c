#include "net/server_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/be.h"
#include "base/mem.h"
#include "net/budget.h"
#include "testing/test.h"

#define NEVER_MS   600000
#define PATIENCE_S 20

const uint8_t *pattern(void) {
    static uint8_t *bytes;
    static uint8_t memory[PATTERN_BYTES];
    if (bytes)
        return bytes;
    uint32_t random = 1;
    for (size_t i = 0; i < PATTERN_BYTES; i++) {
        random = random * 1664525 + 1013904223;
        memory[i] = (uint8_t)(random >> 24);
    }
    return bytes = memory;
}

/* --- the server's side; on a loop: violations are counted, as CHECK belongs to the test's thread --- */

struct answer {
    struct conn_write write;
    struct session *session;
    struct frame *frame;
    struct link held;
    bool answers;
};

static void expect(struct session *s, bool condition) {
    if (!condition)
        gate_add(&s->server->violations, 1);
}

static int64_t server_frame_bytes(const uint8_t *head, int64_t frame_bytes_max) {
    int32_t body = (int32_t)be_get(head, 4);
    return body <= 0 || body > frame_bytes_max ? -1 : (int64_t)body + 4;
}

static void session_one_less(struct session *s) {
    if (--s->unanswered > 0 || !s->conn)
        return;
    conn_set_busy(s->conn, false);
    if (s->ended)
        conn_close_gently(s->conn);
}

static void answer_on_written(struct op *op) {
    struct answer *a = container_of(op, struct answer, write.op);
    struct session *s = a->session;
    s->unwritten--;
    expect(s, s->conn && a->write.out.pieces == NULL);
    if (op->status == ST_OK) {
        gate_add(&s->server->written, 1);
    } else {
        pthread_mutex_lock(&s->server->lock);
        s->server->lost_with = op->status;
        pthread_mutex_unlock(&s->server->lock);
        gate_add(&s->server->lost, 1);
    }
    session_one_less(s);
    frame_free(a->frame);
    mem_free(a);
}

static void answer_send(struct answer *a, const uint8_t *data, size_t len) {
    enum { SLICE = 10000 };
    struct session *s = a->session;
    wbuf_init(&a->write.out, PATTERN_BYTES);
    for (size_t at = 0; at < len; at += SLICE) {
        size_t part = len - at < SLICE ? len - at : SLICE;
        if (wbuf_borrow(&a->write.out, data + at, part)) {
            wbuf_release(&a->write.out);
            conn_close(s->conn);
            break;
        }
    }
    op_init(&a->write.op, conn_loop(s->conn), answer_on_written);
    s->unwritten++;
    conn_write(s->conn, &a->write);
}

void session_answer(struct session *s, size_t bytes) {
    struct answer *a = mem_take_zeroed(1, sizeof *a);
    expect(s, a != NULL);
    a->session = s;
    s->unanswered++;
    answer_send(a, pattern(), bytes);
}

static void session_on_resume(struct op *op) {
    struct session *s = container_of(op, struct session, resume);
    if (!s->conn)
        return;
    s->resuming = true;
    conn_resume(s->conn);
    s->resuming = false;
}

static void session_note_frame(struct session *s) {
    struct server *server = s->server;
    pthread_mutex_lock(&server->lock);
    if (server->frames_count < (int)COUNT_OF(server->frame_from))
        server->frame_from[server->frames_count++] = s->number;
    pthread_mutex_unlock(&server->lock);
    gate_add(&server->frames, 1);
}

static void session_obey(struct session *s, struct answer *a) {
    struct conn *c = s->conn;
    struct frame *f = a->frame;
    switch (f->data[4]) {
    case 'h':
    case 'k':
        list_push_tail(&s->held, &a->held);
        return;
    case 'n':
        session_one_less(s);
        frame_free(f);
        mem_free(a);
        return;
    case 'x':
        conn_close(c);
        conn_close(c);
        session_one_less(s);
        frame_free(f);
        mem_free(a);
        return;
    case 'l':
        conn_close(c);
        answer_send(a, f->data, f->size_bytes);
        return;
    case 'b':
        answer_send(a, pattern(), be_get(f->data + 5, 4));
        return;
    case 'p':
    case 'r':
        conn_pause(c);
        if (f->data[4] == 'r')
            loop_post(&s->resume);
        break;
    default:
        break;
    }
    answer_send(a, f->data, f->size_bytes);
    if (f->data[4] == 'c')
        conn_close_gently(c);
}

static void session_on_frame(struct conn *c, struct frame *f) {
    struct session *s = conn_user(c);
    expect(s, !s->resuming && !s->ended && f->size_bytes == be_get(f->data, 4) + 4 && f->reserved_bytes > 0);
    expect(s, conn_rtt_us(c) > 0 && conn_rtt_us(c) < 60 * 1000 * 1000); /* the handshake was measured */
    struct answer *a = mem_take_zeroed(1, sizeof *a);
    if (!a) {
        frame_free(f);
        conn_close(c);
        return;
    }
    a->session = s;
    a->frame = f;
    a->answers = f->data[4] == 'h';
    s->unanswered++;
    conn_set_busy(c, true);
    session_obey(s, a); /* the count comes last: who waits for it may look at what the command has done */
    session_note_frame(s);
}

static void session_on_open(struct conn *c) {
    struct server *server = listener_user(c);
    struct session *s = mem_take_zeroed(1, sizeof *s);
    if (!s) {
        conn_close(c);
        return;
    }
    s->server = server;
    s->conn = c;
    list_init(&s->held);
    op_init(&s->resume, conn_loop(c), session_on_resume);
    conn_set_user(c, s);
    pthread_mutex_lock(&server->lock);
    s->number = server->sessions_count++;
    server->sessions[s->number] = s;
    pthread_mutex_unlock(&server->lock);
    expect(s, strncmp(conn_peer(c), "127.0.0.1:", 10) == 0 && loop_current() == conn_loop(c));
    gate_add(&server->opened, 1);
}

static void session_on_hangup(struct conn *c) {
    struct session *s = conn_user(c);
    gate_add(&s->server->hung_up, 1);
}

static void session_on_idle_end(struct conn *c) {
    struct session *s = conn_user(c);
    if (!s)
        return;
    expect(s, !s->ended);
    s->ended = true;
    gate_add(&s->server->ended, 1);
    if (s->unanswered == 0)
        conn_close(c);
}

static void session_drop_held(struct session *s) {
    for (struct link *l; (l = list_pop_head(&s->held));) {
        struct answer *a = container_of(l, struct answer, held);
        frame_free(a->frame);
        mem_free(a);
        s->unanswered--;
    }
}

static void session_on_closed(struct conn *c) {
    struct session *s = conn_user(c);
    if (!s)
        return;
    expect(s, s->ended && s->unwritten == 0);
    s->conn = NULL;
    list_remove(&s->resume.link);
    session_drop_held(s);
    gate_add(&s->server->closed, 1);
}

static const struct conn_protocol server_protocol = {
    .head_bytes = 4,
    .frame_bytes = server_frame_bytes,
    .on_open = session_on_open,
    .on_frame = session_on_frame,
    .on_hangup = session_on_hangup,
    .on_idle_end = session_on_idle_end,
    .on_closed = session_on_closed,
};

/* --- for the test's thread --- */

static int64_t or_default(int64_t value, int64_t otherwise) {
    return value > 0 ? value : otherwise;
}

struct server *server_start(struct server_options o) {
    static const struct gate gate = GATE_INIT;
    struct server *s = mem_take_zeroed(1, sizeof *s);
    CHECK(s != NULL);
    s->opened = s->frames = s->hung_up = s->ended = s->closed = s->written = s->lost = s->drained =
        s->violations = gate;
    pthread_mutex_init(&s->lock, NULL);
    (void)pattern();
    s->loops_count = (int)or_default(o.loops, 1);
    CHECK_EQ(budget_new(or_default(o.budget_bytes, INT64_C(1) << 30), &s->budget), ST_OK);
    loops_run(s->loops, s->loops_count);
    struct listener_settings settings = {
        .address = "127.0.0.1:0",
        .connections_max = or_default(o.connections_max, SESSIONS_MAX),
        .protocol = &server_protocol,
        .conn =
            {
                .frame_bytes_max = or_default(o.frame_bytes_max, INT64_C(1) << 30),
                .idle_ms = or_default(o.idle_ms, NEVER_MS),
                .read_ms = or_default(o.read_ms, NEVER_MS),
                .write_ms = or_default(o.write_ms, NEVER_MS),
                .budget = s->budget,
                .tls = o.tls,
            },
        .user = s,
        .loops = s->loops,
        .loops_count = s->loops_count,
    };
    CHECK_EQ(listener_new(&settings, &s->listener), ST_OK);
    listener_open(s->listener);
    return s;
}

static void server_on_drained(struct op *op) {
    struct server *s = container_of(op, struct server, drain);
    gate_add(&s->drained, 1);
}

void server_drain(struct server *s, int64_t drain_ms) {
    op_init(&s->drain, s->loops[s->loops_count - 1], server_on_drained);
    listener_drain(s->listener, drain_ms, &s->drain);
}

void server_stop(struct server *s) {
    if (!s->drain.done)
        server_drain(s, 0);
    CHECK(gate_wait(&s->drained, 1));
    loops_stop(s->loops, s->loops_count);
    CHECK_EQ(listener_connections(s->listener), 0);
    CHECK_EQ(gate_value(&s->violations), 0);
    CHECK_EQ(gate_value(&s->closed), gate_value(&s->opened));
    listener_free(s->listener);
    budget_free(s->budget);
    for (int i = 0; i < s->sessions_count; i++)
        mem_free(s->sessions[i]);
    mem_free(s);
}

void server_call(struct server *s, int session, void (*fn)(void *session)) {
    CHECK(gate_wait(&s->opened, session + 1));
    pthread_mutex_lock(&s->lock);
    struct session *to = s->sessions[session];
    pthread_mutex_unlock(&s->lock);
    loop_call(to->resume.loop, fn, to);
}

static void release_all(void *session) {
    struct session *s = session;
    struct link held, *l;
    list_init(&held);
    list_move_all(&held, &s->held);
    while ((l = list_pop_head(&held))) {
        struct answer *a = container_of(l, struct answer, held);
        if (a->answers) {
            answer_send(a, a->frame->data, a->frame->size_bytes);
            continue;
        }
        frame_free(a->frame);
        mem_free(a);
        session_one_less(s);
    }
}

void server_release(struct server *s, int session) {
    server_call(s, session, release_all);
}

static void resume_now(void *session) {
    session_on_resume(&((struct session *)session)->resume);
}

void server_resume(struct server *s, int session) {
    server_call(s, session, resume_now);
}

static void nothing(void *arg) {
    (void)arg;
}

/* The first call may join an iteration that has looked at the sockets before; then accept, start, read. */
void server_settle(struct server *s) {
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < s->loops_count; i++)
            loop_call(s->loops[i], nothing, NULL);
}

struct sockaddr_in client_target(const struct server *s) {
    return (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)listener_port(s->listener)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
}

static int client_connect(struct server *s, int receive_bytes) {
    const int on = 1;
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    const struct sockaddr_in to = client_target(s);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    if (receive_bytes > 0)
        CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes), 0);
    CHECK_EQ(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience), 0);
    CHECK_EQ(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

int client_open(struct server *s) {
    return client_connect(s, 0);
}

int client_open_small(struct server *s) {
    return client_connect(s, 4096);
}

void client_send(int fd, const void *data, size_t len) {
    for (size_t at = 0; at < len;) {
        ssize_t n = send(fd, (const uint8_t *)data + at, len - at, MSG_NOSIGNAL);
        CHECK(n > 0);
        at += (size_t)n;
    }
}

size_t frame_make(uint8_t *out, char command, uint32_t body_bytes) {
    be_set(out, 4, body_bytes);
    memcpy(out + 4, pattern(), body_bytes);
    out[4] = (uint8_t)command;
    return body_bytes + 4;
}

void client_send_frame(int fd, char command, uint32_t body_bytes) {
    uint8_t *frame = mem_take(body_bytes + 4);
    CHECK(frame != NULL);
    client_send(fd, frame, frame_make(frame, command, body_bytes));
    mem_free(frame);
}

void client_send_big(int fd, uint32_t answer_bytes) {
    uint8_t frame[9] = {0, 0, 0, 5, 'b'};
    be_set(frame + 5, 4, answer_bytes);
    client_send(fd, frame, sizeof frame);
}

void client_expect(int fd, const void *data, size_t len) {
    uint8_t got[16384];
    for (size_t at = 0; at < len;) {
        size_t want = len - at < sizeof got ? len - at : sizeof got;
        ssize_t n = recv(fd, got, want, 0);
        CHECK(n > 0);
        CHECK(memcmp(got, (const uint8_t *)data + at, (size_t)n) == 0);
        at += (size_t)n;
    }
}

void client_expect_frame(int fd, char command, uint32_t body_bytes) {
    uint8_t *frame = mem_take(body_bytes + 4);
    CHECK(frame != NULL);
    client_expect(fd, frame, frame_make(frame, command, body_bytes));
    mem_free(frame);
}

void client_expect_fin(int fd) {
    uint8_t got;
    CHECK_EQ(recv(fd, &got, 1, 0), 0);
}

void client_expect_end(int fd) {
    client_expect_fin(fd);
    close(fd);
}

bool client_is_closed(int fd) {
    uint8_t got[16384];
    ssize_t n;
    while ((n = recv(fd, got, sizeof got, 0)) > 0)
        continue;
    bool closed = n == 0 || errno == ECONNRESET;
    close(fd);
    return closed;
}
