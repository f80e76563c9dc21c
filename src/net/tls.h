/* TLS contexts for connections of either side: which certificate is shown, whom is trusted. OpenSSL; TLS 1.2 and newer. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "base/base.h"

struct tls;

#define TLS_REASON_BYTES 256

/*
 * For connections that we make.
 * ca_file     PEM roots to trust; NULL: those of the system
 * reason_out  on failure: one sentence that names the file and the cause
 * ST_INVALID: a file that can't be read or isn't PEM; ST_NO_MEMORY
 */
enum status tls_client_new(const char *ca_file, struct tls **out, char reason_out[TLS_REASON_BYTES]) MUST_USE;

/*
 * For connections that we accept.
 * cert_file, key_file  PEM: the chain, leaf first, and its key
 * client_ca_file       PEM roots that clients' certificates must come from; NULL: clients show none
 * Statuses as tls_client_new; ST_INVALID also where key and certificate don't match.
 */
enum status tls_server_new(const char *cert_file, const char *key_file, const char *client_ca_file,
                           struct tls **out, char reason_out[TLS_REASON_BYTES]) MUST_USE;

/* Read the files of a server's again, for new connections; what is open keeps what it has. On failure all stays as it was. Any thread. */
enum status tls_reload(struct tls *t, char reason_out[TLS_REASON_BYTES]) MUST_USE;

void tls_free(struct tls *t); /* when no connection uses it; takes NULL */
#endif
