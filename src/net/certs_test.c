#include "net/certs_test.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "testing/test.h"

#define DAY_S 86400L

static void add_extension(X509 *x, int nid, const char *value) {
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, x, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    CHECK(e != NULL);
    CHECK_EQ(X509_add_ext(x, e, -1), 1);
    X509_EXTENSION_free(e);
}

static void write_pem(struct cert *c) {
    const char *dir = test_dir();
    snprintf(c->cert_file, sizeof c->cert_file, "%s/cert.pem", dir);
    snprintf(c->key_file, sizeof c->key_file, "%s/key.pem", dir);
    FILE *f = fopen(c->cert_file, "w");
    CHECK(f && PEM_write_X509(f, c->x509) == 1);
    CHECK_EQ(fclose(f), 0);
    f = fopen(c->key_file, "w");
    CHECK(f && PEM_write_PrivateKey(f, c->key, NULL, NULL, 0, NULL, NULL) == 1);
    CHECK_EQ(fclose(f), 0);
}

struct cert cert_make(struct cert_wish wish) {
    static long serial;
    struct cert c = {.x509 = X509_new(), .key = EVP_EC_gen("P-256")};
    CHECK(c.x509 && c.key);
    char name[32];
    snprintf(name, sizeof name, "test %ld", ++serial);
    X509_set_version(c.x509, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(c.x509), serial);
    X509_gmtime_adj(X509_getm_notBefore(c.x509), -2 * DAY_S);
    X509_gmtime_adj(X509_getm_notAfter(c.x509), wish.expired ? -DAY_S : DAY_S);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(c.x509), "CN", MBSTRING_ASC, (const unsigned char *)name,
                               -1, -1, 0);
    X509_set_issuer_name(c.x509, X509_get_subject_name(wish.issuer ? wish.issuer->x509 : c.x509));
    X509_set_pubkey(c.x509, c.key);
    add_extension(c.x509, NID_basic_constraints, wish.issuer ? "critical,CA:FALSE" : "critical,CA:TRUE");
    if (wish.names)
        add_extension(c.x509, NID_subject_alt_name, wish.names);
    CHECK(X509_sign(c.x509, wish.issuer ? wish.issuer->key : c.key, EVP_sha256()) > 0);
    write_pem(&c);
    return c;
}

void cert_free(struct cert *c) {
    X509_free(c->x509);
    EVP_PKEY_free(c->key);
    *c = (struct cert){0};
}

struct tls *client_context(const struct cert *roots) {
    char reason[TLS_REASON_BYTES];
    struct tls *t;
    CHECK_EQ(tls_client_new(roots->cert_file, &t, reason), ST_OK);
    return t;
}

struct tls *server_context(const struct cert *own, const struct cert *clients) {
    char reason[TLS_REASON_BYTES];
    struct tls *t;
    CHECK_EQ(tls_server_new(own->cert_file, own->key_file, clients ? clients->cert_file : NULL, &t, reason),
             ST_OK);
    return t;
}

SSL *tls_client_on(int fd, const struct cert *roots, const struct cert *own) {
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    CHECK(ctx != NULL);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    CHECK_EQ(SSL_CTX_load_verify_locations(ctx, roots->cert_file, NULL), 1);
    if (own) {
        CHECK_EQ(SSL_CTX_use_certificate(ctx, own->x509), 1);
        CHECK_EQ(SSL_CTX_use_PrivateKey(ctx, own->key), 1);
    }
    SSL *ssl = SSL_new(ctx);
    CHECK(ssl != NULL);
    SSL_CTX_free(ctx); /* ssl has it */
    CHECK_EQ(SSL_set_fd(ssl, fd), 1);
    return ssl;
}

void tls_client_end(SSL *ssl) {
    SSL_free(ssl);
}
