/*
 * For the tests of connections: a server whose behaviour the frames themselves choose, and blocking clients.
 *
 * A frame is 4 bytes of length and a body; the first byte of the body is the command:
 *   e  answer with the same bytes           n  no answer
 *   h  answer in server_release              k  no answer; keep the frame, with its reservation, until server_release
 *   p  answer; pause until server_resume     r  answer; pause, and resume from the ready queue
 *   c  answer, then close gently             x  close at once
 *   b  answer with as many pattern bytes as the next 4 bytes say
 *   l  close at once, and try to answer after that
 */
#ifndef NET_SERVER_TEST_H
#define NET_SERVER_TEST_H

#include <netinet/in.h>

#include "net/helper_test.h"
#include "net/listener.h"

#define SESSIONS_MAX  256
#define PATTERN_BYTES ((uint32_t)32 * 1024 * 1024)

struct session {
    struct server *server;
    struct conn *conn; /* NULL: closed */
    int number;        /* in the order of on_open */
    int unanswered;
    int unwritten; /* conn_writes that haven't completed */
    bool ended, resuming;
    struct op resume;
    struct link held; /* struct answer */
};

struct server {
    struct loop *loops[4];
    int loops_count;
    struct budget *budget;
    struct listener *listener;
    struct gate opened, frames, hung_up, ended, closed, written, lost, drained;
    struct gate violations; /* of the contract of net/conn.h, seen from inside */
    struct op drain;
    pthread_mutex_t lock; /* guards the rest */
    struct session *sessions[SESSIONS_MAX];
    int sessions_count;
    int frame_from[4096]; /* session numbers, in the order of the frames */
    int frames_count;
    enum status lost_with;
};

/* Defaults for what a test doesn't care about: nothing ever times out, there is room for everything. */
struct server_options {
    int loops;
    int64_t connections_max, budget_bytes, frame_bytes_max;
    int64_t idle_ms, read_ms, write_ms;
    struct tls *tls;
};
struct server *server_start(struct server_options options);
void server_drain(struct server *s, int64_t drain_ms); /* begins; s->drained counts */
void server_stop(struct server *s); /* drains at once if that wasn't done, checks for violations, frees */

void server_release(struct server *s, int session);
void server_resume(struct server *s, int session);

/* On the session's loop: queue an answer of so many pattern bytes that no frame asked for. */
void session_answer(struct session *s, size_t bytes);

/* fn(session) on the session's loop. */
void server_call(struct server *s, int session, void (*fn)(void *session));

/* When it returns, the loops have handled everything that has reached their sockets before. */
void server_settle(struct server *s);

const uint8_t *pattern(void); /* PATTERN_BYTES */

struct sockaddr_in client_target(const struct server *s);
int client_open(struct server *s);       /* connected; patience of 20 seconds for each call */
int client_open_small(struct server *s); /* with a small receive buffer */
void client_send(int fd, const void *data, size_t len);
void client_send_frame(int fd, char command, uint32_t body_bytes); /* command and a pattern */
void client_send_big(int fd, uint32_t answer_bytes);               /* command b */
void client_expect(int fd, const void *data, size_t len);
void client_expect_frame(int fd, char command, uint32_t body_bytes);
void client_expect_fin(int fd); /* EOF and not a reset */
void client_expect_end(int fd); /* EOF and not a reset; closes fd */
bool client_is_closed(int fd);  /* EOF or reset, after whatever; closes fd */

/* A frame as client_send_frame makes it, at out; returns its size. */
size_t frame_make(uint8_t *out, char command, uint32_t body_bytes);
#endif
