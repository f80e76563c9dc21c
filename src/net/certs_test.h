/* For the tests of TLS: certificates made on the spot, and a blocking client. */
#ifndef NET_CERTS_TEST_H
#define NET_CERTS_TEST_H

#include <openssl/ssl.h>

#include "net/tls.h"

struct cert {
    X509 *x509;
    EVP_PKEY *key;
    char cert_file[128], key_file[128];
};

struct cert_wish {
    const char *names;         /* as in subjectAltName: "DNS:localhost,IP:127.0.0.1"; NULL: none */
    const struct cert *issuer; /* NULL: signed by itself, and an authority */
    bool expired;
};
struct cert cert_make(struct cert_wish wish);
void cert_free(struct cert *c);

struct tls *client_context(const struct cert *roots);
struct tls *server_context(const struct cert *own,
                           const struct cert *clients); /* clients: NULL, or who signs theirs */

/* A client on the test's own thread. SSL_connect hasn't run. own: NULL, or the certificate it shows. */
SSL *tls_client_on(int fd, const struct cert *roots, const struct cert *own);
void tls_client_end(SSL *ssl); /* without a word; fd stays open */
#endif
