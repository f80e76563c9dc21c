#include "net/connect.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/budget.h"
#include "net/certs_test.h"
#include "net/server_test.h"
#include "testing/test.h"

#define LONG_MS 60000

/* A connector on a loop of its own, one attempt at a time, and what has come of it. */
struct dialer {
    struct loop *loop;
    struct budget *budget;
    struct connector *connector;
    struct connect attempt;
    struct conn_settings settings;
    const char *host, *tls_name;
    int port;
    int64_t timeout_ms;
    bool close_at_once;    /* before on_open */
    bool free_when_failed; /* the connector, before anything else runs */
    struct gate done, opened, frames, ended, closed, written;
    enum status status;
    char failed[200];
    struct conn *conn;
    struct conn_write write;
    uint8_t *out; /* to send as soon as it is open; owned */
    size_t out_bytes;
    struct frame *in; /* the last that came */
};

static int64_t dialer_frame_bytes(const uint8_t *head, int64_t frame_bytes_max) {
    int64_t body = (int64_t)head[0] << 24 | head[1] << 16 | head[2] << 8 | head[3];
    return body <= 0 || body > frame_bytes_max ? -1 : body + 4;
}

static void dialer_on_written(struct op *op) {
    gate_add(&container_of(op, struct dialer, write.op)->written, 1);
}

static void dialer_on_open(struct conn *c) {
    struct dialer *d = connector_user(c);
    conn_set_user(c, d);
    conn_set_busy(c, true);
    gate_add(&d->opened, 1);
    if (!d->out)
        return;
    op_init(&d->write.op, d->loop, dialer_on_written);
    wbuf_init(&d->write.out, SIZE_MAX);
    if (wbuf_borrow(&d->write.out, d->out, d->out_bytes))
        conn_close(c);
    else
        conn_write(c, &d->write);
}

static void dialer_on_frame(struct conn *c, struct frame *f) {
    struct dialer *d = conn_user(c);
    frame_free(d->in);
    d->in = f;
    gate_add(&d->frames, 1);
}

static void dialer_on_hangup(struct conn *c) {
    (void)c;
}

static void dialer_on_idle_end(struct conn *c) {
    struct dialer *d = conn_user(c);
    gate_add(&d->ended, 1);
    conn_close(c);
}

static void dialer_on_closed(struct conn *c) {
    struct dialer *d = conn_user(c);
    d->conn = NULL;
    gate_add(&d->closed, 1);
}

static const struct conn_protocol dialer_protocol = {
    .head_bytes = 4,
    .frame_bytes = dialer_frame_bytes,
    .on_open = dialer_on_open,
    .on_frame = dialer_on_frame,
    .on_hangup = dialer_on_hangup,
    .on_idle_end = dialer_on_idle_end,
    .on_closed = dialer_on_closed,
};

static void dialer_init(struct dialer *d, int port, struct tls *tls) {
    static const struct gate gate = GATE_INIT;
    *d = (struct dialer){.host = "127.0.0.1", .port = port, .timeout_ms = LONG_MS};
    d->done = d->opened = d->frames = d->ended = d->closed = d->written = gate;
    loops_run(&d->loop, 1);
    CHECK_EQ(budget_new(INT64_C(1) << 30, &d->budget), ST_OK);
    struct connector_settings settings = {
        .loop = d->loop,
        .protocol = &dialer_protocol,
        .conn = {.frame_bytes_max = INT64_C(1) << 30,
                 .idle_ms = LONG_MS,
                 .read_ms = LONG_MS,
                 .write_ms = LONG_MS,
                 .budget = d->budget,
                 .tls = tls},
        .user = d,
    };
    CHECK_EQ(connector_new(&settings, &d->connector), ST_OK);
}

static void dialer_on_done(struct op *op) {
    struct dialer *d = container_of(op, struct dialer, attempt.op);
    d->status = op->status;
    snprintf(d->failed, sizeof d->failed, "%s", d->attempt.failed);
    if (op->status == ST_OK) {
        d->conn = d->attempt.conn;
        if (gate_value(&d->opened) != 0)
            d->status = ST_CORRUPT; /* on_open was first */
        if (d->close_at_once)
            conn_close(d->conn);
    } else if (d->free_when_failed) {
        connector_free(d->connector);
        d->connector = NULL;
    }
    gate_add(&d->done, 1);
}

static void dialer_begin(void *arg) {
    struct dialer *d = arg;
    op_init(&d->attempt.op, d->loop, dialer_on_done);
    connector_connect(d->connector, &d->attempt, d->host, d->port, d->tls_name, d->timeout_ms);
}

static enum status dialer_wait(struct dialer *d) {
    CHECK(gate_wait(&d->done, 1));
    d->done.value = 0;
    return d->status;
}

static enum status dialer_connect(struct dialer *d) {
    loop_call(d->loop, dialer_begin, d);
    return dialer_wait(d);
}

static void dialer_cancel(void *arg) {
    op_cancel(&((struct dialer *)arg)->attempt.op);
}

static void dialer_close(void *arg) {
    struct dialer *d = arg;
    if (d->conn)
        conn_close(d->conn);
}

static void dialer_close_gently(void *arg) {
    struct dialer *d = arg;
    if (d->conn)
        conn_close_gently(d->conn);
}

static void dialer_release(struct dialer *d) {
    loop_call(d->loop, dialer_close, d);
    CHECK(gate_wait(&d->closed, gate_value(&d->opened)));
    loops_stop(&d->loop, 1);
    connector_free(d->connector);
    frame_free(d->in);
    mem_free(d->out);
    CHECK_EQ(budget_free_bytes(d->budget), INT64_C(1) << 30);
    budget_free(d->budget);
}

static void dialer_will_send(struct dialer *d, char command, uint32_t body_bytes) {
    d->out = mem_take(body_bytes + 4);
    CHECK(d->out != NULL);
    d->out_bytes = frame_make(d->out, command, body_bytes);
}

/* --- plain --- */

TEST(a_connection_that_was_made_carries_frames) {
    static const char *const hosts[] = {"127.0.0.1", "localhost"};
    struct server *s = server_start((struct server_options){0});
    for (size_t i = 0; i < COUNT_OF(hosts); i++) {
        struct dialer d;
        dialer_init(&d, listener_port(s->listener), NULL);
        d.host = hosts[i];
        dialer_will_send(&d, 'e', 3 * 1024 * 1024);
        CHECK_EQ(dialer_connect(&d), ST_OK);
        CHECK_TEXT(d.failed, "");
        CHECK(gate_wait(&d.frames, 1));
        CHECK(gate_wait(&d.written, 1));
        CHECK_EQ(d.in->size_bytes, d.out_bytes);
        CHECK_MEM(d.in->data, d.out, d.out_bytes);
        dialer_release(&d);
    }
    server_stop(s);
}

TEST(the_end_of_the_server_is_told) {
    struct server *s = server_start((struct server_options){0});
    struct dialer d;
    dialer_init(&d, listener_port(s->listener), NULL);
    dialer_will_send(&d, 'x', 10);
    CHECK_EQ(dialer_connect(&d), ST_OK);
    CHECK(gate_wait(&d.closed, 1));
    CHECK_EQ(gate_value(&d.ended), 1);
    dialer_release(&d);
    server_stop(s);
}

TEST(a_connection_that_is_closed_before_it_opens_opens_and_ends) {
    struct server *s = server_start((struct server_options){0});
    struct dialer d;
    dialer_init(&d, listener_port(s->listener), NULL);
    d.close_at_once = true;
    CHECK_EQ(dialer_connect(&d), ST_OK);
    CHECK(gate_wait(&d.closed, 1));
    CHECK_EQ(gate_value(&d.opened), 1);
    dialer_release(&d);
    server_stop(s);
}

static int listen_on_any(int backlog, int *port_out) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK_EQ(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    CHECK_EQ(listen(fd, backlog), 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *port_out = ntohs(at.sin_port);
    return fd;
}

TEST(a_port_that_nobody_listens_on_is_unavailable) {
    struct dialer d;
    int port, fd = listen_on_any(1, &port);
    close(fd);
    dialer_init(&d, port, NULL);
    CHECK_EQ(dialer_connect(&d), ST_UNAVAILABLE);
    CHECK_TEXT(d.failed, "connection refused");
    d.host = "localhost"; /* one address after the other */
    CHECK_EQ(dialer_connect(&d), ST_UNAVAILABLE);
    CHECK_TEXT(d.failed, "connection refused");
    dialer_release(&d);
}

TEST(a_name_that_nobody_has_is_unavailable) {
    struct dialer d;
    dialer_init(&d, 1, NULL);
    d.host = "nobody.invalid";
    CHECK_EQ(dialer_connect(&d), ST_UNAVAILABLE);
    CHECK(d.failed[0] != '\0');
    dialer_release(&d);
}

/* A row that is full: the kernel lets the next one wait without a word. */
struct full_row {
    int listen_fd, port;
    int fds[4];
};
static void row_fill(struct full_row *row) {
    row->listen_fd = listen_on_any(0, &row->port);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)row->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (size_t i = 0; i < COUNT_OF(row->fds); i++) {
        row->fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(row->fds[i], (const struct sockaddr *)&to, sizeof to);
    }
}
static void row_close(struct full_row *row) {
    close(row->listen_fd);
    for (size_t i = 0; i < COUNT_OF(row->fds); i++)
        close(row->fds[i]);
}

TEST(silence_ends_an_attempt_in_time) {
    struct full_row row;
    struct dialer d;
    row_fill(&row);
    dialer_init(&d, row.port, NULL);
    d.timeout_ms = 40;
    CHECK_EQ(dialer_connect(&d), ST_TIMED_OUT);
    CHECK_TEXT(d.failed, "no answer in time");
    dialer_release(&d);
    row_close(&row);
}

TEST(an_attempt_can_be_cancelled_whatever_it_waits_for) {
    struct full_row row;
    struct dialer d;
    row_fill(&row);
    dialer_init(&d, row.port, NULL);
    loop_call(d.loop, dialer_begin, &d);
    loop_call(d.loop, dialer_cancel, &d);
    CHECK_EQ(dialer_wait(&d), ST_CANCELED);
    loop_call(d.loop, dialer_cancel, &d); /* too late: nothing */
    d.host = "nobody.invalid";
    loop_call(d.loop, dialer_begin, &d);
    loop_call(d.loop, dialer_cancel, &d);
    CHECK(dialer_wait(&d) != ST_OK);
    dialer_release(&d);
    row_close(&row);
}

/* Also the server's memory for it: then the connection is there, and ends. */
TEST(an_attempt_without_memory_says_so) {
    struct server *s = server_start((struct server_options){0});
    bool all_served = false;
    for (int64_t nth = 1; !all_served; nth++) {
        struct dialer d;
        dialer_init(&d, listener_port(s->listener), NULL);
        mem_fail_at(nth);
        enum status st = dialer_connect(&d);
        all_served = mem_fail_pending();
        mem_fail_at(0);
        CHECK(st == ST_OK || (st == ST_NO_MEMORY && !all_served));
        dialer_release(&d);
    }
    server_stop(s);
}

/* --- TLS --- */

struct secret_scene {
    struct cert ca, own;
    struct tls *server_tls, *client_tls;
    struct server *server;
};

static void secret_begin(struct secret_scene *s, struct cert_wish own) {
    s->ca = cert_make((struct cert_wish){0});
    own.issuer = &s->ca;
    s->own = cert_make(own);
    s->server_tls = server_context(&s->own, NULL);
    s->client_tls = client_context(&s->ca);
    s->server = server_start((struct server_options){.tls = s->server_tls});
}

static void secret_end(struct secret_scene *s) {
    server_stop(s->server);
    tls_free(s->server_tls);
    tls_free(s->client_tls);
    cert_free(&s->ca);
    cert_free(&s->own);
}

/* One attempt; what it ends with, and why. */
static enum status secret_try(struct secret_scene *s, const char *host, const char *tls_name,
                              char failed[200]) {
    struct dialer d;
    dialer_init(&d, listener_port(s->server->listener), s->client_tls);
    d.host = host;
    d.tls_name = tls_name;
    enum status st = dialer_connect(&d);
    memcpy(failed, d.failed, sizeof d.failed);
    CHECK_EQ(gate_value(&d.frames), 0);
    dialer_release(&d);
    return st;
}

TEST(both_sides_of_ours_carry_frames_under_tls) {
    static const uint32_t sizes[] = {1, 1000, 100000, 20 * 1024 * 1024};
    struct secret_scene s;
    secret_begin(&s, (struct cert_wish){.names = "IP:127.0.0.1"});
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct dialer d;
        dialer_init(&d, listener_port(s.server->listener), s.client_tls);
        dialer_will_send(&d, 'e', sizes[i]);
        CHECK_EQ(dialer_connect(&d), ST_OK);
        CHECK(gate_wait(&d.frames, 1));
        CHECK(gate_wait(&d.written, 1));
        CHECK_EQ(d.in->size_bytes, d.out_bytes);
        CHECK_MEM(d.in->data, d.out, d.out_bytes);
        dialer_release(&d);
    }
    secret_end(&s);
}

TEST(a_gentle_close_of_ours_under_tls_ends_both_sides) {
    struct secret_scene s;
    struct dialer d;
    secret_begin(&s, (struct cert_wish){.names = "IP:127.0.0.1"});
    dialer_init(&d, listener_port(s.server->listener), s.client_tls);
    dialer_will_send(&d, 'n', 100000);
    CHECK_EQ(dialer_connect(&d), ST_OK);
    CHECK(gate_wait(&d.opened, 1));
    loop_call(d.loop, dialer_close_gently, &d);
    CHECK(gate_wait(&s.server->frames, 1)); /* what was queued arrives first */
    CHECK(gate_wait(&s.server->closed, 1));
    CHECK(gate_wait(&d.closed, 1));
    dialer_release(&d);
    secret_end(&s);
}

TEST(a_certificate_is_for_its_names_and_addresses_only) {
    char failed[200];
    struct secret_scene s;
    secret_begin(&s, (struct cert_wish){.names = "DNS:localhost,DNS:iggy.example,IP:127.0.0.1"});
    CHECK_EQ(secret_try(&s, "127.0.0.1", NULL, failed), ST_OK);
    CHECK_EQ(secret_try(&s, "localhost", NULL, failed), ST_OK);
    CHECK_EQ(secret_try(&s, "127.0.0.1", "iggy.example", failed), ST_OK);
    CHECK_EQ(secret_try(&s, "127.0.0.1", "kafka.example", failed), ST_INVALID);
    CHECK_TEXT(failed, "the certificate is not good: hostname mismatch");
    CHECK_EQ(secret_try(&s, "127.0.0.1", "127.0.0.2", failed), ST_INVALID);
    CHECK_TEXT(failed, "the certificate is not good: IP address mismatch");
    secret_end(&s);
}

TEST(a_certificate_of_a_stranger_is_refused) {
    char failed[200];
    struct secret_scene s;
    secret_begin(&s, (struct cert_wish){.names = "IP:127.0.0.1"});
    struct cert other = cert_make((struct cert_wish){0});
    tls_free(s.client_tls);
    s.client_tls = client_context(&other);
    CHECK_EQ(secret_try(&s, "127.0.0.1", NULL, failed), ST_INVALID);
    CHECK(strstr(failed, "unable to get local issuer certificate") != NULL);
    cert_free(&other);
    secret_end(&s);
}

TEST(an_expired_certificate_is_refused) {
    char failed[200];
    struct secret_scene s;
    secret_begin(&s, (struct cert_wish){.names = "IP:127.0.0.1", .expired = true});
    CHECK_EQ(secret_try(&s, "127.0.0.1", NULL, failed), ST_INVALID);
    CHECK_TEXT(failed, "the certificate is not good: certificate has expired");
    secret_end(&s);
}

TEST(a_server_that_wants_a_certificate_of_ours_ends_the_connection) {
    struct secret_scene s;
    struct dialer d;
    secret_begin(&s, (struct cert_wish){.names = "IP:127.0.0.1"});
    struct tls *asks = server_context(&s.own, &s.ca);
    struct server *server = server_start((struct server_options){.tls = asks});
    dialer_init(&d, listener_port(server->listener), s.client_tls);
    CHECK_EQ(dialer_connect(&d), ST_OK); /* our side of TLS 1.3 is done before the server has looked */
    CHECK(gate_wait(&d.closed, 1));
    CHECK_EQ(gate_value(&server->opened), 0);
    dialer_release(&d);
    server_stop(server);
    tls_free(asks);
    secret_end(&s);
}

TEST(a_server_without_tls_is_unavailable_and_a_silent_one_times_out) {
    char failed[200];
    struct secret_scene s;
    struct dialer d;
    secret_begin(&s, (struct cert_wish){.names = "IP:127.0.0.1"});
    struct server *with_tls = s.server;
    s.server = server_start((struct server_options){.frame_bytes_max = 100}); /* a ClientHello is no frame */
    CHECK_EQ(secret_try(&s, "127.0.0.1", NULL, failed), ST_UNAVAILABLE);
    server_stop(s.server);
    s.server = with_tls;
    int port, fd = listen_on_any(1, &port);
    dialer_init(&d, port, s.client_tls);
    d.timeout_ms = 40;
    CHECK_EQ(dialer_connect(&d), ST_TIMED_OUT);
    CHECK_TEXT(d.failed, "no answer in time");
    dialer_release(&d);
    close(fd);
    secret_end(&s);
}

TEST(a_connector_may_be_freed_as_soon_as_its_handshake_has_failed) {
    struct secret_scene s;
    struct dialer d;
    secret_begin(&s, (struct cert_wish){.names = "DNS:elsewhere"});
    dialer_init(&d, listener_port(s.server->listener), s.client_tls);
    d.free_when_failed = true;
    CHECK_EQ(dialer_connect(&d), ST_INVALID);
    dialer_release(&d);
    secret_end(&s);
}

TEST(a_handshake_can_be_cancelled) {
    struct secret_scene s;
    struct dialer d;
    int port, fd = listen_on_any(1, &port);
    secret_begin(&s, (struct cert_wish){.names = "IP:127.0.0.1"});
    dialer_init(&d, port, s.client_tls);
    loop_call(d.loop, dialer_begin, &d);
    int peer = accept(fd, NULL, NULL);
    uint8_t hello[1];
    CHECK(peer >= 0);
    CHECK_EQ(recv(peer, hello, 1, 0), 1); /* it has begun */
    loop_call(d.loop, dialer_cancel, &d);
    CHECK_EQ(dialer_wait(&d), ST_CANCELED);
    close(peer);
    close(fd);
    CHECK_EQ(gate_value(&d.opened), 0);
    dialer_release(&d);
    secret_end(&s);
}
