/* What client.c and login.c need of request.c. */
#ifndef IGGY_SERVER_REQUEST_IMPL_H
#define IGGY_SERVER_REQUEST_IMPL_H

#include "iggy_server/client.h"

/* A request around a frame, which it takes over. NULL: no memory, f stays the caller's. */
struct server_request *request_new(struct client *c, struct frame *f) MUST_USE;

/* Find out what it wants, and hand it to its handler; what may not run ends here. */
void request_run(struct server_request *r);

/* After its reply has left. */
void request_free(struct server_request *r);

/* End with an error in the reply's status; request_refuse puts those of committed changes into the result section. */
void request_refuse_early(struct server_request *r, uint32_t code);

/* End with an Eviction: enum iggy_eviction_reason. */
void request_evict(struct server_request *r, uint8_t reason);

/* An Eviction that no request asked for. Errors as wbuf_put. */
enum status eviction_write(const struct iggy_server *s, const struct iggy_u128 *client_id, uint8_t reason,
                           struct wbuf *out) MUST_USE;

/* login.c: a Register, and BindSession. */
void login_start(struct server_request *r);
void bind_start(struct server_request *r);

/* Whether the settings let a client of this version in. */
bool version_is_let_in(const struct iggy_server *s, uint32_t version);
#endif
