/*
 * TLS on a conn's socket: shake hands, then bytes in and out as recv and send would. OpenSSL holds at most a record of either
 * direction. What it has read from the socket and not handed out is not seen by poll: `more` says that there may be some.
 */
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>

#include "base/logging.h"
#include "base/mem.h"
#include "net/conn_impl.h"
#include "net/tls_impl.h"

struct conn_tls {
    SSL *ssl;
    bool shaking;
    bool wants_write; /* what goes on when the socket takes more: the handshake, or reading */
    bool more;        /* reading stopped before OpenSSL had nothing left */
    bool broken;      /* it failed: nothing goes in or out any more */
    char failed[128];
};

enum status conn_tls_new(struct conn *c, const char *name) {
    struct conn_tls *tls = mem_take_zeroed(1, sizeof *tls);
    if (!tls)
        return ST_NO_MEMORY;
    tls->ssl = tls_open(c->home->settings->tls, c->fd, name);
    if (!tls->ssl) {
        mem_free(tls);
        return ST_NO_MEMORY;
    }
    tls->shaking = true;
    tls->wants_write = name != NULL; /* who connects speaks first */
    c->tls = tls;
    return ST_OK;
}

void conn_tls_free(struct conn *c) {
    if (!c->tls)
        return;
    SSL_free(c->tls->ssl);
    mem_free(c->tls);
    c->tls = NULL;
}

bool conn_tls_is_shaking(const struct conn *c) {
    return c->tls && c->tls->shaking;
}

bool conn_tls_wants_write(const struct conn *c) {
    return c->tls && c->tls->wants_write;
}

bool conn_tls_has_more(const struct conn *c) {
    return c->tls && c->tls->more;
}

const char *conn_tls_failed(const struct conn *c) {
    return c->tls ? c->tls->failed : "";
}

/* --- the handshake --- */

static enum status handshake_fails(struct conn *c, int error) {
    struct conn_tls *tls = c->tls;
    long verified = SSL_get_verify_result(tls->ssl);
    const char *why = ERR_reason_error_string(ERR_peek_error());
    enum status st = ST_IO;
    if (verified != X509_V_OK && error == SSL_ERROR_SSL) {
        st = ST_INVALID;
        why = X509_verify_cert_error_string(verified);
    } else if (!why) {
        why = "the connection was closed";
    }
    ERR_clear_error();
    tls->broken = true;
    snprintf(tls->failed, sizeof tls->failed, "%s: %s",
             st == ST_INVALID ? "the certificate is not good" : "no TLS", why);
    log_line_limited(LOG_DEBUG, "net", "handshake failed", LTEXT("peer", c->peer),
                     LTEXT("reason", tls->failed));
    return st;
}

enum status conn_tls_shake(struct conn *c) {
    struct conn_tls *tls = c->tls;
    ERR_clear_error();
    int done = SSL_do_handshake(tls->ssl);
    int error = done == 1 ? SSL_ERROR_NONE : SSL_get_error(tls->ssl, done);
    tls->wants_write = error == SSL_ERROR_WANT_WRITE;
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        return ST_AGAIN;
    if (error != SSL_ERROR_NONE)
        return handshake_fails(c, error);
    tls->shaking = false;
    tls->more = true; /* the first frame may have come with the end of it */
    return ST_OK;
}

/* --- bytes --- */

/* What an error of OpenSSL means to a caller of recv or send: 0 for the end, else -1 and errno. */
static ssize_t conn_tls_outcome(struct conn_tls *tls, int error) {
    ERR_clear_error();
    if (error == SSL_ERROR_ZERO_RETURN)
        return 0;
    bool later = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
    if (!later)
        tls->broken = true;
    errno = later ? EAGAIN : EIO;
    return -1;
}

ssize_t conn_tls_recv(struct conn *c, void *out, size_t len) {
    struct conn_tls *tls = c->tls;
    size_t got = 0;
    int n = 1;
    if (tls->broken) {
        errno = EIO;
        return -1;
    }
    ERR_clear_error();
    while (got < len && n > 0) {
        size_t room = len - got < INT32_MAX ? len - got : INT32_MAX;
        n = SSL_read(tls->ssl, (uint8_t *)out + got, (int)room);
        got += n > 0 ? (size_t)n : 0;
    }
    int error = n > 0 ? SSL_ERROR_NONE : SSL_get_error(tls->ssl, n);
    tls->wants_write = error == SSL_ERROR_WANT_WRITE; /* an answer to a change of keys */
    c->blocked |= tls->wants_write;
    bool dry = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
    tls->more = !dry;
    if (got > 0) { /* an end or an error is met again, as there is more */
        ERR_clear_error();
        return (ssize_t)got;
    }
    ssize_t outcome = conn_tls_outcome(tls, error);
    tls->more = false;
    return outcome;
}

ssize_t conn_tls_send(struct conn *c, const void *data, size_t len) {
    struct conn_tls *tls = c->tls;
    if (tls->broken) {
        errno = EIO;
        return -1;
    }
    ERR_clear_error();
    int n = SSL_write(tls->ssl, data, (int)len);
    if (n > 0)
        return n;
    int error = SSL_get_error(tls->ssl, n);
    /* To read first is asked for in handshakes only, and there is no second one. */
    if (conn_tls_outcome(tls, error == SSL_ERROR_WANT_READ ? SSL_ERROR_SSL : error) == 0)
        errno = EIO;
    return -1;
}

void conn_tls_say_end(struct conn *c) {
    struct conn_tls *tls = c->tls;
    if (!tls || tls->broken || tls->shaking)
        return;
    ERR_clear_error();
    (void)SSL_shutdown(tls->ssl);
    ERR_clear_error();
}
