/*
 * For tests: an Iggy server of one thread, that keeps topics and messages in memory, and does what the test says: refuse, keep silent,
 * hang up. Connections are served one frame at a time; everything may be looked at with the lock held. Messages: fake_log_test.h,
 * consumer groups: fake_groups_test.h.
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
#define FAKE_PARTITIONS_MAX 2500
#define FAKE_STORED_MAX     4096
#define FAKE_SENDS_MAX      4096
#define FAKE_HELD_MAX       256
#define FAKE_GROUPS_MAX     256
#define FAKE_OFFSETS_MAX    512
#define FAKE_PRODUCERS_MAX  16
#define FAKE_REPEATS_MAX    5
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
    uint64_t start[FAKE_PARTITIONS_MAX]; /* of the oldest message */
    uint32_t code[FAKE_PARTITIONS_MAX];  /* polls of it are refused with this; 0: they aren't */
    bool mute[FAKE_PARTITIONS_MAX];      /* polls of it bring nothing */
};

/* A batch that is kept. */
struct fake_stored {
    uint32_t topic, partition;
    uint64_t end;   /* the offset after its last message */
    uint8_t *bytes; /* owned */
    int32_t len;
};

struct fake_offset {
    uint32_t partition;
    uint64_t offset;
};

struct fake_group {
    bool there;
    uint32_t topic;
    char name[256];
    struct fake_offset offsets[FAKE_OFFSETS_MAX];
    int offsets_count;
};

/* A send that came. */
struct fake_send {
    int conn; /* its serial */
    uint32_t topic, partition, messages_count;
    uint64_t incarnation; /* of the request's context */
    struct iggy_producer producer;
    uint8_t first; /* of the first message's payload */
};

/* What is known of who numbers the messages of a partition. */
struct fake_producer {
    uint64_t id;
    uint32_t topic, partition;
    uint32_t next;                    /* sequence */
    uint32_t first[FAKE_REPEATS_MAX]; /* of its last batches */
    uint32_t count[FAKE_REPEATS_MAX];
    int at;
};

/* A request whose answer waits. */
struct fake_held {
    int conn;
    struct iggy_request_header header;
    uint8_t *body; /* owned */
    size_t body_len;
    int64_t until_ms; /* of a fetch that waits for messages; monotonic */
};

struct fake_server {
    int listen_fd, port, wake[2];
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    bool ending;
    uint32_t version; /* that it speaks */
    const char *password;
    bool shut; /* connections are closed at once */
    struct fake_conn conns[FAKE_CONNS_MAX];
    int serials;
    int conns_count;                     /* open now */
    char streams[FAKE_STREAMS_MAX][256]; /* "": none */
    struct fake_topic topics[FAKE_TOPICS_MAX];
    uint32_t next_topic;
    int seen[FAKE_CODES_MAX]; /* requests by command */
    struct fake_send sends[FAKE_SENDS_MAX];
    int sends_count;
    struct fake_stored stored[FAKE_STORED_MAX];
    int stored_count;
    struct fake_group groups[FAKE_GROUPS_MAX];
    int groups_count;
    bool no_external;        /* offsets of external groups are refused */
    uint64_t now_us;         /* when what comes is appended */
    uint64_t message_bytes;  /* what get_topic says that one takes; 0: nothing */
    uint32_t poll_count_max; /* a poll for more is hung up on, as if its answer were too large; 0: none is */
    struct fake_held waiting[FAKE_HELD_MAX]; /* fetches that wait for messages */
    int waiting_count;
    int cancels;                          /* of those, by request */
    struct iggy_fetch_messages_req fetch; /* the last one's numbers */

    uint32_t hold;       /* answers of this command wait; 0: none */
    uint32_t fail;       /* this command ... */
    uint32_t fail_code;  /* ... is refused with this code; 0: hung up on */
    int fail_times;      /* so many times */
    bool forgets_offset; /* sends are answered without a confirmation, as duplicates are */
    bool silent;         /* what is done is not answered */
    bool
        checks_numbers; /* of producers: what comes twice is stored once, and what doesn't follow is refused */
    struct fake_producer producers[FAKE_PRODUCERS_MAX];
    int producers_count;
    uint64_t era; /* sessions of earlier ones are not known any more */
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
void fake_let_go(struct fake_server *f);      /* answer what waits, and hold no more */
void fake_let_go_last(struct fake_server *f); /* answer what came last, before what waits longer */

/* With the lock held: what becomes of one whose answer waits. */
enum fake_fate {
    FAKE_DONE,     /* and answered */
    FAKE_UNHEARD,  /* done, and not answered: before a hang-up */
    FAKE_REFUSED,  /* with a code */
    FAKE_UNCERTAIN /* done, and answered with a code */
};
void fake_decide(struct fake_server *f, int held, enum fake_fate fate, uint32_t code);

/* Until so many requests of the command have come, held ones too. */
void fake_expect(struct fake_server *f, uint32_t command, int count);
int fake_seen(struct fake_server *f, uint32_t command);
void fake_expect_conns(struct fake_server *f, int count); /* until so many are open */
void fake_wait_for_change(struct fake_server *f); /* with the lock held; fails the test after some time */

/* --- for fake_log_test.c --- */

/* A request that is being answered. */
struct fake_call {
    struct fake_server *f;
    int conn;
    const struct iggy_request_header *h;
    struct bytes body;
    struct arena a;
    const struct iggy_command *command;
    bool last; /* a fetch's wait is over */
};
void *fake_decoded(struct fake_call *c);
void fake_answer(struct fake_call *c, uint32_t code, const void *msg);
void fake_hang_up(struct fake_server *f, int conn);
void fake_run(struct fake_server *f, struct fake_held *held, bool last); /* again; frees its body */
struct fake_topic *fake_topic_of(struct fake_server *f, struct str stream, struct str topic);
struct fake_topic *fake_topic_named(struct fake_server *f, const char *name);
void *fake_take(size_t size); /* memory, also while a test lets an allocation fail */
#endif
