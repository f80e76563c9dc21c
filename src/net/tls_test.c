/* Contexts, and the accepting side of TLS with OpenSSL's own client. The connecting side: connect_test.c. */
#include "net/tls.h"

#include <openssl/pem.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/certs_test.h"
#include "net/server_test.h"
#include "testing/test.h"

/* --- contexts --- */

TEST(a_file_that_is_missing_or_is_not_pem_is_named) {
    char reason[TLS_REASON_BYTES], text[200];
    struct tls *t = NULL;
    struct cert c = cert_make((struct cert_wish){0});
    char empty[128];
    snprintf(empty, sizeof empty, "%s/empty", test_dir());
    FILE *f = fopen(empty, "w");
    CHECK(f && fclose(f) == 0);
    CHECK_EQ(tls_client_new("/nowhere/ca.pem", &t, reason), ST_INVALID);
    CHECK_TEXT(reason, "/nowhere/ca.pem: No such file or directory");
    CHECK_EQ(tls_client_new(empty, &t, reason), ST_INVALID);
    CHECK(strncmp(reason, empty, strlen(empty)) == 0);
    CHECK_EQ(tls_server_new(empty, c.key_file, NULL, &t, reason), ST_INVALID);
    CHECK(strncmp(reason, empty, strlen(empty)) == 0);
    CHECK_EQ(tls_server_new(c.cert_file, "/nowhere/key.pem", NULL, &t, reason), ST_INVALID);
    CHECK_TEXT(reason, "/nowhere/key.pem: No such file or directory");
    CHECK_EQ(tls_server_new(c.cert_file, c.key_file, empty, &t, reason), ST_INVALID);
    snprintf(text, sizeof text, "%s: ", empty);
    CHECK(strncmp(reason, text, strlen(text)) == 0);
    CHECK(t == NULL);
    cert_free(&c);
}

TEST(a_key_of_another_certificate_is_refused) {
    char reason[TLS_REASON_BYTES], text[300];
    struct tls *t;
    struct cert a = cert_make((struct cert_wish){0}), b = cert_make((struct cert_wish){0});
    snprintf(text, sizeof text, "%s is not the key of the certificate", b.key_file);
    CHECK_EQ(tls_server_new(a.cert_file, b.key_file, NULL, &t, reason), ST_INVALID);
    CHECK_TEXT(reason, text);
    EVP_PKEY *other_kind = EVP_RSA_gen(2048);
    FILE *f = fopen(b.key_file, "w");
    CHECK(f && PEM_write_PrivateKey(f, other_kind, NULL, NULL, 0, NULL, NULL) == 1);
    CHECK_EQ(fclose(f), 0);
    CHECK_EQ(tls_server_new(a.cert_file, b.key_file, NULL, &t, reason), ST_INVALID);
    CHECK_TEXT(reason, text);
    EVP_PKEY_free(other_kind);
    cert_free(&a);
    cert_free(&b);
}

TEST(the_roots_of_the_system_are_the_default) {
    char reason[TLS_REASON_BYTES];
    struct tls *t;
    CHECK_EQ(tls_client_new(NULL, &t, reason), ST_OK);
    tls_free(t);
    tls_free(NULL);
}

static struct cert oom_cert;
static void oom_contexts(void) {
    char reason[TLS_REASON_BYTES];
    struct tls *t = NULL;
    enum status st = tls_server_new(oom_cert.cert_file, oom_cert.key_file, oom_cert.cert_file, &t, reason);
    CHECK(st == ST_OK || st == ST_NO_MEMORY);
    if (st == ST_OK)
        tls_free(t);
}

TEST(a_context_without_memory_says_so) {
    oom_cert = cert_make((struct cert_wish){0});
    test_oom(oom_contexts);
    cert_free(&oom_cert);
}

/* --- connections --- */

struct scene {
    struct cert ca, own;
    struct tls *tls;
    struct server *server;
    int fd;
    SSL *ssl;
};

static void scene_begin(struct scene *s, struct server_options o, bool asks_clients) {
    signal(SIGPIPE, SIG_IGN); /* of the test's own client */
    *s = (struct scene){.fd = -1};
    s->ca = cert_make((struct cert_wish){0});
    s->own = cert_make((struct cert_wish){.names = "DNS:localhost,IP:127.0.0.1", .issuer = &s->ca});
    s->tls = server_context(&s->own, asks_clients ? &s->ca : NULL);
    o.tls = s->tls;
    s->server = server_start(o);
}

static void scene_connect(struct scene *s) {
    s->fd = client_open(s->server);
    s->ssl = tls_client_on(s->fd, &s->ca, NULL);
    CHECK_EQ(SSL_connect(s->ssl), 1);
}

static void scene_hang_up(struct scene *s) {
    tls_client_end(s->ssl);
    s->ssl = NULL;
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

static void scene_end(struct scene *s) {
    scene_hang_up(s);
    server_stop(s->server);
    tls_free(s->tls);
    cert_free(&s->ca);
    cert_free(&s->own);
}

static void secret_send(SSL *ssl, const void *data, size_t len) {
    for (size_t at = 0; at < len;) {
        int n = SSL_write(ssl, (const uint8_t *)data + at, (int)(len - at));
        CHECK(n > 0);
        at += (size_t)n;
    }
}

static void secret_expect(SSL *ssl, const void *data, size_t len) {
    static uint8_t got[16384];
    for (size_t at = 0; at < len;) {
        int n = SSL_read(ssl, got, (int)(len - at < sizeof got ? len - at : sizeof got));
        CHECK(n > 0);
        CHECK(memcmp(got, (const uint8_t *)data + at, (size_t)n) == 0);
        at += (size_t)n;
    }
}

/* close_notify, and then FIN */
static void secret_expect_end(SSL *ssl, int fd) {
    uint8_t byte;
    int n = SSL_read(ssl, &byte, 1);
    CHECK(n <= 0);
    CHECK_EQ(SSL_get_error(ssl, n), SSL_ERROR_ZERO_RETURN);
    CHECK_EQ(recv(fd, &byte, 1, 0), 0);
}

TEST(frames_go_both_ways_under_tls) {
    static const uint32_t sizes[] = {1, 100, 8192, 16380, 16384, 65532, 70000, 1000003, 8 * 1024 * 1024};
    struct scene s;
    scene_begin(&s, (struct server_options){0}, false);
    scene_connect(&s);
    CHECK_EQ(SSL_version(s.ssl), TLS1_3_VERSION);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        uint8_t *frame = mem_take(sizes[i] + 4);
        CHECK(frame != NULL);
        size_t len = frame_make(frame, 'e', sizes[i]);
        secret_send(s.ssl, frame, len);
        secret_expect(s.ssl, frame, len);
        mem_free(frame);
    }
    scene_end(&s);
}

TEST(older_clients_may_speak_tls_1_2_and_nothing_below) {
    uint8_t frame[64];
    struct scene s;
    scene_begin(&s, (struct server_options){0}, false);
    s.fd = client_open(s.server);
    s.ssl = tls_client_on(s.fd, &s.ca, NULL);
    SSL_set_max_proto_version(s.ssl, TLS1_2_VERSION);
    CHECK_EQ(SSL_connect(s.ssl), 1);
    size_t len = frame_make(frame, 'e', 20);
    secret_send(s.ssl, frame, len);
    secret_expect(s.ssl, frame, len);
    scene_hang_up(&s);
    s.fd = client_open(s.server);
    s.ssl = tls_client_on(s.fd, &s.ca, NULL);
    SSL_set_min_proto_version(s.ssl, TLS1_VERSION);
    SSL_set_max_proto_version(s.ssl, TLS1_1_VERSION);
    CHECK(SSL_connect(s.ssl) != 1);
    scene_end(&s);
}

TEST(many_small_frames_in_few_records_are_answered_in_their_order) {
    enum { FRAMES = 3000 };
    static uint8_t all[FRAMES * 200];
    size_t len = 0;
    for (int i = 0; i < FRAMES; i++)
        len += frame_make(all + len, 'e', 1 + (uint32_t)(i * 37 % 190));
    struct scene s;
    scene_begin(&s, (struct server_options){0}, false);
    scene_connect(&s);
    secret_send(s.ssl, all, len);
    secret_expect(s.ssl, all, len);
    scene_end(&s);
}

/* What OpenSSL has read already isn't seen by poll. */
TEST(a_pause_loses_nothing_that_came_in_the_same_record) {
    uint8_t all[600];
    size_t len = frame_make(all, 'r', 100); /* pauses, and resumes from the ready queue */
    len += frame_make(all + len, 'e', 100);
    len += frame_make(all + len, 'p', 50);
    size_t until_pause = len;
    len += frame_make(all + len, 'e', 100);
    struct scene s;
    scene_begin(&s, (struct server_options){0}, false);
    scene_connect(&s);
    for (int round = 0; round < 3; round++) {
        secret_send(s.ssl, all, len);
        secret_expect(s.ssl, all, until_pause);
        server_settle(s.server);
        CHECK_EQ(gate_value(&s.server->frames), round * 4 + 3);
        server_resume(s.server, 0);
        secret_expect(s.ssl, all + until_pause, len - until_pause);
    }
    scene_end(&s);
}

/* Several times what one event may read: the rest is inside of OpenSSL, or comes with no further event. */
TEST(a_pause_amid_much_input_loses_nothing) {
    enum { BIG = 3 * 1024 * 1024 };
    static uint8_t all[BIG + 200];
    size_t len = frame_make(all, 'p', 20);
    len += frame_make(all + len, 'n', BIG);
    size_t last = len;
    len += frame_make(all + len, 'e', 20);
    struct scene s;
    scene_begin(&s, (struct server_options){0}, false);
    scene_connect(&s);
    secret_send(s.ssl, all, 24);
    secret_expect(s.ssl, all, 24);
    int64_t half = BIG / 2;
    secret_send(s.ssl, all + 24, 100000);
    server_settle(s.server);
    server_resume(s.server, 0);
    secret_send(s.ssl, all + 24 + 100000, (size_t)half);
    secret_send(s.ssl, all + 24 + 100000 + half, len - 24 - 100000 - (size_t)half);
    secret_expect(s.ssl, all + last, len - last);
    scene_end(&s);
}

/* B-1: the second frame must wait until the first one's memory is free. */
TEST(frames_that_wait_for_memory_arrive_under_tls_too) {
    static uint8_t all[300];
    size_t len = frame_make(all, 'h', 60);
    len += frame_make(all + len, 'e', 60);
    len += frame_make(all + len, 'e', 60);
    struct scene s;
    scene_begin(&s, (struct server_options){.budget_bytes = 70}, false);
    scene_connect(&s);
    secret_send(s.ssl, all, len);
    CHECK(gate_wait(&s.server->frames, 1));
    server_settle(s.server);
    CHECK_EQ(gate_value(&s.server->frames), 1);
    server_release(s.server, 0);
    secret_expect(s.ssl, all, len);
    scene_end(&s);
}

TEST(a_large_answer_to_a_slow_reader_arrives_under_tls) {
    enum { BYTES = 16 * 1024 * 1024 };
    uint8_t ask[9] = {0, 0, 0, 5, 'b', BYTES >> 24, (BYTES >> 16) & 255, (BYTES >> 8) & 255, BYTES & 255};
    struct scene s;
    scene_begin(&s, (struct server_options){0}, false);
    s.fd = client_open_small(s.server);
    s.ssl = tls_client_on(s.fd, &s.ca, NULL);
    CHECK_EQ(SSL_connect(s.ssl), 1);
    secret_send(s.ssl, ask, sizeof ask);
    secret_send(s.ssl, ask, sizeof ask);
    CHECK(gate_wait(&s.server->frames, 2));
    server_settle(s.server);
    CHECK_EQ(gate_value(&s.server->written), 0);
    secret_expect(s.ssl, pattern(), BYTES);
    secret_expect(s.ssl, pattern(), BYTES);
    CHECK(gate_wait(&s.server->written, 2));
    scene_end(&s);
}

/* B-60 */
TEST(a_gentle_close_ends_with_close_notify_behind_the_last_answer) {
    uint8_t frame[64];
    struct scene s;
    scene_begin(&s, (struct server_options){0}, false);
    scene_connect(&s);
    size_t len = frame_make(frame, 'c', 20);
    secret_send(s.ssl, frame, len);
    secret_expect(s.ssl, frame, len);
    secret_expect_end(s.ssl, s.fd);
    scene_end(&s);
}

TEST(a_drain_says_close_notify) {
    struct scene s;
    scene_begin(&s, (struct server_options){0}, false);
    scene_connect(&s);
    CHECK(gate_wait(&s.server->opened, 1));
    server_drain(s.server, 10000);
    secret_expect_end(s.ssl, s.fd);
    scene_end(&s);
}

TEST(a_client_that_ends_its_side_gets_its_answers_first) {
    static uint8_t all[400000];
    size_t len = frame_make(all, 'e', 150000);
    len += frame_make(all + len, 'e', 10);
    len += frame_make(all + len, 'e', 100000);
    for (int raw = 0; raw < 2; raw++) {
        struct scene s;
        scene_begin(&s, (struct server_options){0}, false);
        scene_connect(&s);
        secret_send(s.ssl, all, len);
        if (!raw)
            CHECK_EQ(SSL_shutdown(s.ssl), 0); /* close_notify, no FIN */
        else
            CHECK_EQ(shutdown(s.fd, SHUT_WR), 0); /* FIN, no close_notify */
        secret_expect(s.ssl, all, len);
        secret_expect_end(s.ssl, s.fd);
        scene_end(&s);
    }
}

TEST(a_key_update_goes_unnoticed) {
    uint8_t frame[64];
    struct scene s;
    scene_begin(&s, (struct server_options){0}, false);
    scene_connect(&s);
    size_t len = frame_make(frame, 'e', 20);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(SSL_key_update(s.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        secret_send(s.ssl, frame, len);
        secret_expect(s.ssl, frame, len);
    }
    scene_end(&s);
}

/* --- handshakes that fail: the protocol never hears of them --- */

TEST(plain_bytes_on_a_port_with_tls_end_the_connection) {
    struct scene s;
    scene_begin(&s, (struct server_options){0}, false);
    s.fd = client_open(s.server);
    client_send_frame(s.fd, 'e', 100);
    CHECK(client_is_closed(s.fd));
    s.fd = -1;
    server_settle(s.server);
    CHECK_EQ(gate_value(&s.server->opened), 0);
    scene_end(&s);
}

/* B-11 */
TEST(a_handshake_that_takes_too_long_ends_the_connection) {
    static const uint8_t start[] = {22, 3, 1, 2, 0, 1}; /* a ClientHello would go on */
    struct scene s;
    scene_begin(&s, (struct server_options){.read_ms = 50}, false);
    s.fd = client_open(s.server);
    CHECK(client_is_closed(s.fd));
    s.fd = client_open(s.server);
    client_send(s.fd, start, sizeof start);
    CHECK(client_is_closed(s.fd));
    s.fd = -1;
    CHECK_EQ(gate_value(&s.server->opened), 0);
    scene_end(&s);
}

TEST(a_client_that_leaves_during_the_handshake_is_forgotten) {
    struct scene s;
    scene_begin(&s, (struct server_options){0}, false);
    for (int i = 0; i < 3; i++) {
        s.fd = client_open(s.server);
        scene_hang_up(&s);
    }
    for (int i = 0; i < 100 && listener_connections(s.server->listener) > 0; i++)
        server_settle(s.server);
    CHECK_EQ(listener_connections(s.server->listener), 0);
    CHECK_EQ(gate_value(&s.server->opened), 0);
    scene_end(&s);
}

TEST(a_drain_does_not_wait_for_handshakes) {
    struct scene s;
    scene_begin(&s, (struct server_options){0}, false);
    s.fd = client_open(s.server);
    server_settle(s.server);
    server_drain(s.server, 60000);
    CHECK(gate_wait(&s.server->drained, 1));
    scene_end(&s);
}

/* TLS 1.3 tells a client without a certificate after its side of the handshake is done. */
static bool gets_in(struct scene *s, const struct cert *own) {
    uint8_t frame[64], byte;
    size_t len = frame_make(frame, 'e', 20);
    s->fd = client_open(s->server);
    s->ssl = tls_client_on(s->fd, &s->ca, own);
    bool in = SSL_connect(s->ssl) == 1 && SSL_write(s->ssl, frame, (int)len) == (int)len &&
              SSL_read(s->ssl, &byte, 1) == 1;
    scene_hang_up(s);
    return in;
}

TEST(a_certificate_of_clients_is_demanded_and_checked) {
    struct scene s;
    scene_begin(&s, (struct server_options){0}, true);
    struct cert good = cert_make((struct cert_wish){.issuer = &s.ca});
    struct cert expired = cert_make((struct cert_wish){.issuer = &s.ca, .expired = true});
    struct cert stranger = cert_make((struct cert_wish){0});
    CHECK(!gets_in(&s, NULL));
    CHECK(!gets_in(&s, &stranger));
    CHECK(!gets_in(&s, &expired));
    CHECK_EQ(gate_value(&s.server->opened), 0);
    CHECK(gets_in(&s, &good));
    cert_free(&good);
    cert_free(&expired);
    cert_free(&stranger);
    scene_end(&s);
}

/* --- reloading --- */

static void copy_file(const char *from, const char *to) {
    char text[8192];
    FILE *f = fopen(from, "r");
    CHECK(f != NULL);
    size_t len = fread(text, 1, sizeof text, f);
    CHECK_EQ(fclose(f), 0);
    f = fopen(to, "w");
    CHECK(f && fwrite(text, 1, len, f) == len);
    CHECK_EQ(fclose(f), 0);
}

static long serial_of(SSL *ssl) {
    X509 *x = SSL_get1_peer_certificate(ssl);
    long serial = ASN1_INTEGER_get(X509_get_serialNumber(x));
    X509_free(x);
    return serial;
}

TEST(a_reload_is_for_new_connections_and_a_failed_one_changes_nothing) {
    char reason[TLS_REASON_BYTES];
    uint8_t frame[64];
    size_t len = frame_make(frame, 'e', 20);
    struct scene s;
    scene_begin(&s, (struct server_options){0}, false);
    struct cert next = cert_make((struct cert_wish){.issuer = &s.ca});
    scene_connect(&s);
    long first = serial_of(s.ssl);
    copy_file(next.cert_file, s.own.cert_file);
    CHECK_EQ(tls_reload(s.tls, reason), ST_INVALID); /* the key isn't its */
    scene_hang_up(&s);
    scene_connect(&s);
    CHECK_EQ(serial_of(s.ssl), first);
    copy_file(next.key_file, s.own.key_file);
    CHECK_EQ(tls_reload(s.tls, reason), ST_OK);
    secret_send(s.ssl, frame, len); /* what is open goes on */
    secret_expect(s.ssl, frame, len);
    scene_hang_up(&s);
    scene_connect(&s);
    CHECK_EQ(serial_of(s.ssl), ASN1_INTEGER_get(X509_get_serialNumber(next.x509)));
    cert_free(&next);
    scene_end(&s);
}
