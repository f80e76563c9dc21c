/* For tests: a session against a server that the test writes by hand: frames in, frames out, and the time it is told. */
#ifndef IGGY_SESSION_BENCH_TEST_H
#define IGGY_SESSION_BENCH_TEST_H

#include "iggy/session.h"

#define FAR INT64_C(1000000)

/* A session, and what the last frame out and the last event were. */
struct bench {
    struct iggy_session s;
    struct iggy_header out;
    struct iggy_event event;
    int64_t now_ms;
    uint8_t in[8192];
};

void bench_init(struct bench *b, uint32_t version);
void bench_release(struct bench *b);
void connect_to(struct bench *b, uint8_t random);
/* Whether a frame goes out; its header is b->out. */
bool sends(struct bench *b);
/* Whether a frame goes in and makes an event, b->event. */
bool takes(struct bench *b, struct iggy_header *h, struct wbuf *body);
bool event_due(struct bench *b);
/* Answers the request with this header: code, and msg as its payload if that is 0. */
bool answer_to(struct bench *b, const struct iggy_header *request, uint32_t code, const void *msg);
bool evicts(struct bench *b, uint8_t reason, uint32_t least, uint32_t most);
void login_answered(struct bench *b);
struct iggy_node node_of(const char *ip, uint8_t role);
void log_in(struct bench *b);
void ready(struct bench *b, uint32_t version);
void call(struct bench *b, struct iggy_call *c, uint32_t code, int64_t deadline_ms);
void drop(struct bench *b);
#endif
