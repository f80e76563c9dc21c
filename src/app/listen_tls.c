#include "app/listen_tls.h"

#include "base/logging.h"
#include "net/tls.h"

static void log_failed(const char *message, const struct config *c, const char *reason) {
    const char *roots = c->tls_client_ca_file;
    log_line(LOG_ERROR, "app", message, LTEXT("reason", reason),
             LTEXT("IGGY_KAFKA_TLS_CERT_FILE", c->tls_cert_file),
             LTEXT("IGGY_KAFKA_TLS_KEY_FILE", c->tls_key_file),
             LTEXT("IGGY_KAFKA_TLS_CLIENT_CA_FILE", roots ? roots : "none"));
}

enum status listen_tls_build(struct listen_tls *t, const struct config *c) {
    char reason[TLS_REASON_BYTES] = "";
    enum status st = ST_OK;
    if (c->tls_cert_file)
        st = tls_server_new(c->tls_cert_file, c->tls_key_file, c->tls_client_ca_file, &t->kafka, reason);
    if (!st && c->tls_cert_file && c->iggy_listen_tls)
        st = tls_server_new(c->tls_cert_file, c->tls_key_file, NULL, &t->iggy, reason);
    if (st)
        log_failed("can't use the files for TLS", c, reason);
    return st;
}

void listen_tls_reload(const struct listen_tls *t, const struct config *c) {
    char reason[TLS_REASON_BYTES] = "";
    if (!t->kafka) {
        log_line(LOG_INFO, "app", "nothing to read again: TLS is off", LTEXT("signal", "SIGHUP"));
        return;
    }
    /* Iggy's needs no file that Kafka's doesn't: what is good for this one is good for that. */
    enum status st = tls_reload(t->kafka, reason);
    if (!st && t->iggy)
        st = tls_reload(t->iggy, reason);
    if (st)
        log_failed("can't use the new files for TLS, the old ones stay", c, reason);
    else
        log_line(LOG_INFO, "app", "new connections get the certificate that was read again",
                 LTEXT("signal", "SIGHUP"), LTEXT("IGGY_KAFKA_TLS_CERT_FILE", c->tls_cert_file));
}

const char *listen_tls_name(const struct config *c) {
    if (!c->tls_cert_file)
        return "off";
    return c->tls_client_ca_file ? "mutual" : "on";
}

void listen_tls_release(struct listen_tls *t) {
    tls_free(t->kafka);
    tls_free(t->iggy);
    *t = (struct listen_tls){0};
}
