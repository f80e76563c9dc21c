#include "net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/tls_impl.h"

struct tls {
    bool accepts;                             /* a server's */
    char *cert_file, *key_file, *client_file; /* owned; NULL: none. client_file: for a client, its roots */
    BIO_METHOD *socket;
    pthread_mutex_t lock; /* guards ctx */
    SSL_CTX *ctx;
};

/* --- the socket as OpenSSL sees it: without SIGPIPE --- */

static int socket_fd(BIO *b) {
    return (int)(intptr_t)BIO_get_data(b);
}

static bool is_for_later(int error) {
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static int socket_write(BIO *b, const char *data, int len) {
    ssize_t n = send(socket_fd(b), data, (size_t)len, MSG_NOSIGNAL);
    BIO_clear_retry_flags(b);
    if (n < 0 && is_for_later(errno))
        BIO_set_retry_write(b);
    return (int)n;
}

static int socket_read(BIO *b, char *out, int len) {
    ssize_t n = recv(socket_fd(b), out, (size_t)len, 0);
    BIO_clear_retry_flags(b);
    if (n < 0 && is_for_later(errno))
        BIO_set_retry_read(b);
    if (n == 0)
        BIO_set_flags(b, BIO_FLAGS_IN_EOF);
    return (int)n;
}

static long socket_ctrl(BIO *b, int command, long number, void *pointer) {
    (void)number;
    (void)pointer;
    if (command == BIO_CTRL_EOF)
        return BIO_test_flags(b, BIO_FLAGS_IN_EOF) != 0;
    return command == BIO_CTRL_FLUSH;
}

static enum status socket_method_new(BIO_METHOD **out) {
    BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "conn");
    if (!m)
        return ST_NO_MEMORY;
    BIO_meth_set_write(m, socket_write);
    BIO_meth_set_read(m, socket_read);
    BIO_meth_set_ctrl(m, socket_ctrl);
    *out = m;
    return ST_OK;
}

/* --- contexts --- */

/* What is wrong with file, from OpenSSL's queue of errors, which is empty afterwards. */
static enum status file_fails(const char *file, char reason[TLS_REASON_BYTES]) {
    const char *why = access(file, R_OK) != 0 ? strerror(errno) : ERR_reason_error_string(ERR_peek_error());
    snprintf(reason, TLS_REASON_BYTES, "%s: %s", file, why ? why : "not PEM");
    ERR_clear_error();
    return ST_INVALID;
}

static int no_password(char *out, int size, int writes, void *user) {
    (void)out;
    (void)size;
    (void)writes;
    (void)user;
    return -1; /* else OpenSSL asks for it on the terminal */
}

static enum status load_roots(SSL_CTX *ctx, const char *file, char reason[TLS_REASON_BYTES]) {
    return SSL_CTX_load_verify_locations(ctx, file, NULL) == 1 ? ST_OK : file_fails(file, reason);
}

static enum status load_client_side(SSL_CTX *ctx, const struct tls *t, char reason[TLS_REASON_BYTES]) {
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    if (t->client_file)
        return load_roots(ctx, t->client_file, reason);
    if (SSL_CTX_set_default_verify_paths(ctx) == 1)
        return ST_OK;
    snprintf(reason, TLS_REASON_BYTES, "the system's certificates can't be read");
    return ST_INVALID;
}

/* Whether the key in the file is fine, only of another certificate: of one that has the same kind of key. */
static bool key_is_foreign(void) {
    unsigned long error = ERR_peek_error();
    int why = ERR_GET_REASON(error);
    return ERR_GET_LIB(error) == ERR_LIB_X509 &&
           (why == X509_R_KEY_VALUES_MISMATCH || why == X509_R_KEY_TYPE_MISMATCH);
}

static enum status load_server_side(SSL_CTX *ctx, const struct tls *t, char reason[TLS_REASON_BYTES]) {
    static const unsigned char id[] = "igk"; /* what a ticket is good for: this program */
    if (SSL_CTX_use_certificate_chain_file(ctx, t->cert_file) != 1)
        return file_fails(t->cert_file, reason);
    bool taken = SSL_CTX_use_PrivateKey_file(ctx, t->key_file, SSL_FILETYPE_PEM) == 1;
    if (!taken && !key_is_foreign())
        return file_fails(t->key_file, reason);
    if (!taken || SSL_CTX_check_private_key(ctx) != 1) {
        ERR_clear_error();
        snprintf(reason, TLS_REASON_BYTES, "%s is not the key of the certificate", t->key_file);
        return ST_INVALID;
    }
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_session_id_context(ctx, id, sizeof id);
    if (!t->client_file)
        return ST_OK;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(t->client_file);
    if (!names)
        return file_fails(t->client_file, reason);
    SSL_CTX_set_client_CA_list(ctx, names);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return load_roots(ctx, t->client_file, reason);
}

static enum status context_new(const struct tls *t, SSL_CTX **out, char reason[TLS_REASON_BYTES]) {
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(t->accepts ? TLS_server_method() : TLS_client_method());
    if (!ctx) {
        snprintf(reason, TLS_REASON_BYTES, "%s", status_text(ST_NO_MEMORY));
        return ST_NO_MEMORY;
    }
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_default_passwd_cb(ctx, no_password);
    /* Frames have lengths, so that an end without a word is nothing that could be mistaken. */
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(ctx, 1);
    enum status st = t->accepts ? load_server_side(ctx, t, reason) : load_client_side(ctx, t, reason);
    if (st) {
        SSL_CTX_free(ctx);
        return st;
    }
    *out = ctx;
    return ST_OK;
}

enum status tls_reload(struct tls *t, char reason_out[TLS_REASON_BYTES]) {
    SSL_CTX *ctx;
    enum status st = context_new(t, &ctx, reason_out);
    if (st)
        return st;
    pthread_mutex_lock(&t->lock);
    SSL_CTX *old = t->ctx;
    t->ctx = ctx;
    pthread_mutex_unlock(&t->lock);
    SSL_CTX_free(old); /* connections have references of their own */
    return ST_OK;
}

/* --- life --- */

static enum status copy_text(const char *text, char **out) {
    *out = text ? mem_text(str_of(text)) : NULL;
    return text && !*out ? ST_NO_MEMORY : ST_OK;
}

static enum status tls_fill(struct tls *t, const char *cert_file, const char *key_file,
                            const char *client_file) {
    enum status st = copy_text(cert_file, &t->cert_file);
    if (!st)
        st = copy_text(key_file, &t->key_file);
    if (!st)
        st = copy_text(client_file, &t->client_file);
    return st ? st : socket_method_new(&t->socket);
}

static enum status tls_new(const char *cert_file, const char *key_file, const char *client_file,
                           struct tls **out, char reason_out[TLS_REASON_BYTES]) {
    snprintf(reason_out, TLS_REASON_BYTES, "%s", status_text(ST_NO_MEMORY));
    struct tls *t = mem_take_zeroed(1, sizeof *t);
    if (!t)
        return ST_NO_MEMORY;
    pthread_mutex_init(&t->lock, NULL);
    t->accepts = cert_file != NULL;
    enum status st = tls_fill(t, cert_file, key_file, client_file);
    if (!st)
        st = context_new(t, &t->ctx, reason_out);
    if (st) {
        tls_free(t);
        return st;
    }
    *out = t;
    return ST_OK;
}

enum status tls_client_new(const char *ca_file, struct tls **out, char reason_out[TLS_REASON_BYTES]) {
    return tls_new(NULL, NULL, ca_file, out, reason_out);
}

enum status tls_server_new(const char *cert_file, const char *key_file, const char *client_ca_file,
                           struct tls **out, char reason_out[TLS_REASON_BYTES]) {
    return tls_new(cert_file, key_file, client_ca_file, out, reason_out);
}

void tls_free(struct tls *t) {
    if (!t)
        return;
    SSL_CTX_free(t->ctx);
    BIO_meth_free(t->socket);
    pthread_mutex_destroy(&t->lock);
    mem_free(t->cert_file);
    mem_free(t->key_file);
    mem_free(t->client_file);
    mem_free(t);
}

/* --- one socket --- */

/* An IP has to stand in the certificate as one, and isn't sent as a name (RFC 6066). */
static bool expect_name(SSL *ssl, const char *name) {
    struct in6_addr ip;
    if (inet_pton(AF_INET, name, &ip) == 1 || inet_pton(AF_INET6, name, &ip) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

SSL *tls_open(struct tls *t, int fd, const char *name) {
    assert(t->accepts == !name);
    pthread_mutex_lock(&t->lock);
    SSL *ssl = SSL_new(t->ctx);
    pthread_mutex_unlock(&t->lock);
    BIO *b = ssl ? BIO_new(t->socket) : NULL;
    if (!b)
        goto fail;
    BIO_set_data(b, (void *)(intptr_t)fd);
    BIO_set_init(b, 1);
    SSL_set_bio(ssl, b, b);
    if (name && !expect_name(ssl, name))
        goto fail;
    if (name)
        SSL_set_connect_state(ssl);
    else
        SSL_set_accept_state(ssl);
    return ssl;

fail:
    ERR_clear_error();
    SSL_free(ssl);
    return NULL;
}
