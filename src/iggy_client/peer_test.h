/*
 * For the tests of the client: a server that the test's own thread plays, frame by frame, on a blocking socket; and a client on a
 * loop with calls that the thread can wait for.
 */
#ifndef IGGY_CLIENT_PEER_TEST_H
#define IGGY_CLIENT_PEER_TEST_H

#include <pthread.h>

#include "iggy_client/iggy_client.h"

#define PEER_BODY_BYTES_MAX ((size_t)1 << 20)

/* --- the server --- */

struct peer {
    int listen_fd, fd; /* -1: none */
    int port;
    uint32_t version;             /* of the layouts that it answers in */
    struct iggy_request_header h; /* of the request that was taken last */
    uint8_t body[PEER_BODY_BYTES_MAX];
    size_t body_bytes;
};

void peer_open(struct peer *p);
void peer_close(struct peer *p);
void peer_accept(struct peer *p);
void peer_hang_up(struct peer *p);               /* close the accepted connection */
void peer_take(struct peer *p);                  /* a request, any */
bool peer_is_quiet(const struct peer *p);        /* nothing to read now */
void peer_expect(struct peer *p, uint32_t code); /* a request of that command */
void peer_expect_end(struct peer *p);            /* the client's FIN or reset; closes */

/* Answer a request with that header: code, and msg as the payload where code is 0 and msg isn't NULL. */
void peer_answer_to(struct peer *p, const struct iggy_request_header *h, uint32_t code, const void *msg);
void peer_answer(struct peer *p, uint32_t code, const void *msg); /* the one taken last */
void peer_status(struct peer *p, uint32_t status);                /* the same, with status and nothing else */
void peer_send_raw(struct peer *p, const struct iggy_header *h);  /* as it is, without a body */
void peer_evict(struct peer *p, uint8_t reason, uint32_t least, uint32_t most);

/* Accept a connection and let it log in. */
void peer_log_in(struct peer *p, uint32_t version);

/* The rest of a login whose request was taken: the reply, then a look at the cluster. */
void peer_finish_login(struct peer *p);

/* --- the client --- */

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t value;
};
void gate_add(struct gate *g, int64_t n);
bool gate_reaches(struct gate *g, int64_t value) MUST_USE; /* within 20 seconds */

struct rig {
    struct loop *loop;
    struct budget *budget;
    struct iggy_client *client;
    struct op closed;
    struct gate close_gate;
};

struct rig_options {
    uint32_t version_newest; /* 0: IGGY_NEWEST */
    int32_t in_flight_max;   /* 0: 16 */
    const char *password;
    struct tls *tls;
    const char *host; /* NULL: 127.0.0.1 */
};
void rig_start(struct rig *g, int port, struct rig_options options);
void rig_close(struct rig *g); /* close the client and wait for it */
void rig_stop(struct rig *g);  /* the same if it isn't closed yet, and end the loop */
void rig_run(struct rig *g, void (*fn)(void *arg), void *arg); /* on the loop; returns after it */

/* One call. */
struct rig_call {
    struct iggy_request r;
    struct rig *rig;
    uint32_t code;
    const void *in;
    int64_t patience_ms;
    struct gate done;
    enum status status;
    int order; /* in which it ended, 1.. */
};
#define LONG_MS 60000
void rig_call(struct rig *g, struct rig_call *call, uint32_t code, const void *in, int64_t patience_ms);
void rig_cancel(struct rig_call *call);
enum status rig_wait(struct rig_call *call); /* until it has ended */
void rig_release(struct rig_call *call);

enum status rig_connect(struct rig *g, int64_t patience_ms); /* iggy_client_connect, and wait */
#endif
