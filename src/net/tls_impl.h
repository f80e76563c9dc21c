/* What conn_tls.c and connect.c need of a TLS context. */
#ifndef NET_TLS_IMPL_H
#define NET_TLS_IMPL_H

#include <openssl/ssl.h>

#include "net/tls.h"

/* The application's bytes in one record, at most. */
#define TLS_RECORD_BYTES ((size_t)16 * 1024)

/*
 * The TLS side of one socket, before its handshake. It reads and writes fd itself, which stays the caller's.
 * name  of the server, for who connects: a name or an IP that its certificate must have; NULL: for who accepts
 * NULL: no memory, or a name that can't be one. Any thread.
 */
SSL *tls_open(struct tls *t, int fd, const char *name) MUST_USE;
#endif
