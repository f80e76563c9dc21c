/* What the files of iggy_server share: the server, its sessions, its connections. */
#ifndef IGGY_SERVER_SERVER_H
#define IGGY_SERVER_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "iggy_server/iggy_server.h"
#include "net/timer.h"

struct arena;
struct groups;
struct iggy_client_group;
struct listener;
struct sessions;

/* What is the server's on one loop. */
struct iggy_loop {
    struct iggy_server *server;
    struct link clients; /* struct client by link */
    struct op open, stop;
    struct timer timer; /* looks for members that are silent */
};

/* Logins whose password is being checked, and those that wait for their turn: Argon2 takes much memory and time. */
struct iggy_logins {
    pthread_mutex_t lock;
    int running;
    struct link waiting; /* struct server_request by work.link */
};

struct iggy_server {
    struct iggy_server_settings settings; /* cluster_id is owned */
    struct listener *listener;
    struct sessions *sessions; /* session.h */
    struct groups *groups;     /* groups.h */
    struct iggy_u128 cluster;  /* from the cluster id, in replies of what is committed */
    _Atomic uint64_t
        metadata_op; /* how many changes of the metadata plane were done: "op" and "commit" of replies */
    _Atomic uint32_t next_client; /* numbers of connections */
    _Atomic uint32_t balanced;    /* turns of sends that leave the partition to the server */
    struct budget *polls; /* owned: what answers of polls may hold at once, half of settings.budget's bytes */
    _Atomic bool stopping;
    int64_t started_us; /* wall clock */
    struct iggy_logins logins;
    struct iggy_loop *per_loop; /* owned; one a loop */
};

/*
 * A login, from Register to logout, loss or a newer login with its client id. It outlives the connection: a 0.12 client takes it along
 * (BindSession), so what it did last is kept for repeats. Counted; session.h.
 */
struct session {
    struct iggy_u128 client_id;
    uint64_t number;
    uint32_t user_id;
    _Atomic uint32_t
        client_number; /* of its connection: what get_clients shows; 0: it has none now, or it has ended */
};

/* Every login's end is told to the groups, whose member it was. Any thread. */
void groups_forget_session(struct groups *g, uint64_t session_number);
/* How many groups a session is in, and which; for get_me and its kin. Any thread. */
enum status groups_of_session(struct groups *g, uint64_t session_number, struct arena *a,
                              struct iggy_client_group **out, uint32_t *count_out) MUST_USE;
/* All groups of a topic that goes, or of a stream (topic_id UINT32_MAX). The store forgets them with the topic. */
void groups_forget_topic(struct groups *g, uint32_t stream_id, uint32_t topic_id);
uint32_t groups_count(struct groups *g);

enum status groups_open(struct iggy_server *server,
                        struct groups **out) MUST_USE; /* loads them from the store */
void groups_close(struct groups *g);                   /* takes NULL */
#endif
