/* For the tests of the listener: a whole server on a log of its own, and blocking clients written on the codec. */
#ifndef IGGY_SERVER_PEER_TEST_H
#define IGGY_SERVER_PEER_TEST_H

#include "base/arena.h"
#include "iggy/commands.h"
#include "iggy/errors.h"
#include "iggy_server/server.h"

#define RIG_LOOPS    2
#define RIG_PASSWORD "secret"
#define CLUSTER_ID   "a-cluster"

struct rig {
    struct loop *loops[RIG_LOOPS];
    struct backend *backend;
    struct users *users;
    struct budget *budget;
    struct iggy_server *server;
    int port;
};

/* version_least, version_newest: 0: all. */
void rig_start(struct rig *rig, uint32_t version_least, uint32_t version_newest);
void rig_stop(struct rig *rig);

/* fn(arg) on a loop of the rig, until it has returned. */
void rig_call(struct rig *rig, int loop, void (*fn)(void *arg), void *arg);

/* How many logins are being checked. */
int rig_logins(struct rig *rig);

struct peer {
    int fd;
    uint32_t version;
    struct iggy_u128 id;
    struct iggy_secret secret;
    uint64_t session, number; /* number: of the last request */
    struct iggy_header h;     /* of the last frame that came */
    uint8_t *frame;           /* owned */
    struct bytes body;
    uint32_t code; /* of the last reply */
    struct bytes payload;
    struct arena arena; /* of what is decoded; until the next peer_call */
};

/* Connected, not logged in. id: the first byte of the client id. */
void peer_open(struct peer *p, const struct rig *rig, uint32_t version, uint8_t id);
/* Logged in as root. */
void peer_log_in(struct peer *p);
/* Send the login; what comes is for peer_read. */
void peer_send_login(struct peer *p, const char *name, const char *password);
void peer_close(struct peer *p);

/* A frame with this body, under the header h, whose size, kind and client are filled in. */
void peer_send_frame(struct peer *p, struct iggy_header h, struct bytes body);
/* A request for a command under a number; session and context as they should be. in: of the command's request; NULL: no body. */
void peer_send(struct peer *p, uint32_t code, uint64_t number, const void *in);
void peer_send_body(struct peer *p, uint32_t code, uint64_t number, struct bytes body);

/* The next frame: kind, and of a reply its outcome. False: the connection has ended. */
bool peer_read(struct peer *p);

/* Send under the next number and wait for the answer: its code; out (may be NULL) is decoded on 0. */
uint32_t peer_call(struct peer *p, uint32_t code, const void *in, void *out);
/* The last reply's payload as the answer of a command. */
void peer_decode(struct peer *p, uint32_t code, void *out);

/* The next frame is an Eviction: its reason. */
uint8_t peer_eviction(struct peer *p);
#endif
