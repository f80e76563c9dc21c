/* What both listeners show to clients that speak TLS: the certificate of TLS_CERT_FILE, read again on SIGHUP. H-7. */
#ifndef APP_LISTEN_TLS_H
#define APP_LISTEN_TLS_H

#include "app/config.h"

struct tls;

/* Zeroed: both are plain. */
struct listen_tls {
    struct tls *kafka; /* owned, as below; NULL: plain */
    struct tls *iggy;  /* never asks for a certificate: Iggy clients log in, and have none to show */
};

/* Read the files that c names. On failure one error line has named them, and release is fine on what was made. Blocks. */
enum status listen_tls_build(struct listen_tls *t, const struct config *c) MUST_USE;

/*
 * Read them again, for connections that come from now on; one line says how it went. On failure all stays as it was.
 * Without TLS nothing happens but the line. The main thread; blocks.
 */
void listen_tls_reload(const struct listen_tls *t, const struct config *c);

/* "off", "on", or "mutual": clients must show a certificate as well. */
const char *listen_tls_name(const struct config *c);

void listen_tls_release(struct listen_tls *t); /* when no connection is left */
#endif
