/*
 * What a connection is to Kafka: its requests, in the order they came.
 *
 *   frame -> request started -> ... -> answered -> first in the row? -> written -> gone
 *
 * Up to in_flight_max requests run beside each other; then reading pauses until the first answer has left (B-5).
 */
#ifndef KAFKA_SESSION_H
#define KAFKA_SESSION_H

#include "kafka/request.h"

struct session {
    struct kafka *kafka;
    struct conn *conn; /* NULL once it has closed; the session stays until its last request has ended */
    uint64_t number;   /* no other one of the loop has ever had it; 1.. */
    struct link requests;
    struct link link; /* in kafka_loop.sessions */
    int32_t in_flight;
    bool ending;  /* no more frames come */
    bool leaving; /* none but those that the client has sent already */
    bool closing; /* an answer that closes has been reached */
};

/* The protocol table for the listener. */
extern const struct conn_protocol session_protocol;

/* r has its outcome: send what is first in the row. */
void session_advance(struct session *s);

/* End the waits of all requests (op_cancel). */
void session_cancel(struct session *s);
#endif
