/*
 * For tests: an Iggy server of one thread, that keeps topics but no messages, and does what the test says: refuse, keep silent, hang up.
 * Connections are served one frame at a time; everything may be looked at with the lock held.
 */
#ifndef BACKEND_IGGY_FAKE_SERVER_TEST_H
#define BACKEND_IGGY_FAKE_SERVER_TEST_H

#include <pthread.h>

#include "base/arena.h"
#include "iggy/batch.h"
#include "iggy/commands.h"

#define FAKE_CONNS_MAX      64
#define FAKE_TOPICS_MAX     64
#define FAKE_STREAMS_MAX    8
#define FAKE_PARTITIONS_MAX 8
#define FAKE_SENDS_MAX      4096
#define FAKE_HELD_MAX       256
#define FAKE_CODES_MAX      700 /* of commands */

struct fake_conn {
    int fd;     /* -1: free */
    int serial; /* 1.. ; of no other connection ever */
    uint32_t version;
    uint8_t *in;
    size_t in_len, in_room;
};

struct fake_topic {
    bool there;
    uint32_t stream;
    uint32_t id, partitions_count;
    uint64_t created_us, incarnation;
    char name[256];
    uint8_t options[256];
    int32_t options_len;
    uint64_t next_offset[FAKE_PARTITIONS_MAX];
};

/* A send that came. */
struct fake_send {
    int conn; /* its serial */
    uint32_t topic, partition, messages_count;
    uint64_t incarnation; /* of the request's context */
    struct iggy_producer producer;
    uint8_t first; /* of the first message's payload */
};

/* A request whose answer waits. */
struct fake_held {
    int conn;
    struct iggy_request_header header;
    uint8_t *body; /* owned */
    size_t body_len;
};

struct fake_server {
    int listen_fd, port, wake[2];
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    bool ending;
    uint32_t version; /* that it speaks */
    const char *password;
    struct fake_conn conns[FAKE_CONNS_MAX];
    int serials;
    int conns_count;                     /* open now */
    char streams[FAKE_STREAMS_MAX][256]; /* "": none */
    struct fake_topic topics[FAKE_TOPICS_MAX];
    uint32_t next_topic;
    int seen[FAKE_CODES_MAX]; /* requests by command */
    struct fake_send sends[FAKE_SENDS_MAX];
    int sends_count;

    uint32_t hold;       /* answers of this command wait; 0: none */
    uint32_t fail;       /* this command ... */
    uint32_t fail_code;  /* ... is refused with this code; 0: hung up on */
    int fail_times;      /* so many times */
    bool forgets_offset; /* sends are answered without a confirmation, as duplicates are */
    struct fake_held held[FAKE_HELD_MAX];
    int held_count;
};

void fake_start(struct fake_server *f, uint32_t version);
void fake_stop(struct fake_server *f);
void fake_lock(struct fake_server *f);
void fake_unlock(struct fake_server *f);

void fake_add_topic(struct fake_server *f, const char *stream, const char *name, uint32_t partitions_count);
void fake_remove_topic(struct fake_server *f, const char *name);
void fake_refuse(struct fake_server *f, uint32_t command, uint32_t code, int times); /* code 0: hang up */
void fake_hold(struct fake_server *f, uint32_t command);
void fake_let_go(struct fake_server *f); /* answer what waits, and hold no more */

/* Until so many requests of the command have come, held ones too. */
void fake_expect(struct fake_server *f, uint32_t command, int count);
int fake_seen(struct fake_server *f, uint32_t command);
void fake_expect_conns(struct fake_server *f, int count); /* until so many are open */
#endif
