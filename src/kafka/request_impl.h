/* What session.c needs of request.c. */
#ifndef KAFKA_REQUEST_IMPL_H
#define KAFKA_REQUEST_IMPL_H

#include "kafka/request.h"

#define FRAME_PREFIX 4 /* bytes of the length that stands before each request and answer (B-1) */

/* A request around a frame, which it takes over. NULL: no memory, f stays the caller's. */
struct request *request_new(struct session *s, struct frame *f, int64_t now_ms) MUST_USE;

/* Read header and body, and hand it to its handler; what can't be read ends here. */
void request_run(struct request *r);

/* After its answer has left. */
void request_free(struct request *r);
#endif
