/* For tests: a whole bridge in front of a fake server: loops, pool, backend. */
#ifndef BACKEND_IGGY_BRIDGE_RIG_TEST_H
#define BACKEND_IGGY_BRIDGE_RIG_TEST_H

#include "backend/iggy/fake_server_test.h"
#include "backend/iggy/iggy_impl.h"
#include "wire/records.h"

#define RIG_LOOPS_MAX 2
#define RIG_WAIT_MS   20000

struct rig_options {
    uint32_t version;                        /* of the server; 0: IGGY_NEWEST */
    int loops_count;                         /* 0: 1 */
    int32_t sessions;                        /* PRODUCE_SESSIONS */
    int64_t batch_bytes_max, send_bytes_max; /* 0: 1 MiB, 64 MiB */
    const char *mapped;                      /* this Kafka topic is stream "other", topic "place" */
};

struct bridge_rig {
    struct fake_server server;
    struct topic_map map;
    struct budget *budget;
    struct loop *loops[RIG_LOOPS_MAX];
    int loops_count;
    struct iggy_backend_settings settings;
    struct backend *backend;
    struct bridge *bridge;
    bool stopped;
    struct arena arenas[RIG_LOOPS_MAX]; /* of each loop's calls */
    struct arena made;                  /* of what the test makes */
};

void rig_prepare(struct bridge_rig *rig, struct rig_options options); /* all but the backend */
void rig_begin(struct bridge_rig *rig);                               /* the backend, and the loops run */
void rig_open(struct bridge_rig *rig, struct rig_options options);    /* both */
void rig_stop(struct bridge_rig *rig); /* the backend, before rig_close does; its loops go on */
void rig_close(struct bridge_rig *rig);

/* One call of the backend; all begin with an op. */
struct turn {
    union {
        struct op op;
        struct backend_topics topics;
        struct backend_create create;
        struct backend_delete delete_;
        struct backend_grow grow;
        struct backend_configure configure;
        struct backend_append append;
        struct backend_commit commit;
        struct backend_committed committed;
        struct backend_groups groups;
    };
    struct op begin;
    void (*start)(struct backend *b, struct turn *turn);
    struct bridge_rig *rig;
    sem_t ended;
};
void turn_begin(struct bridge_rig *rig, int loop, struct turn *turn,
                void (*start)(struct backend *b, struct turn *turn));
void turn_end(struct turn *turn); /* wait until it is done */
void turn_run(struct bridge_rig *rig, struct turn *turn, void (*start)(struct backend *b, struct turn *turn));

void start_topics(struct backend *b, struct turn *turn);
void start_create(struct backend *b, struct turn *turn);
void start_delete(struct backend *b, struct turn *turn);
void start_grow(struct backend *b, struct turn *turn);
void start_configure(struct backend *b, struct turn *turn);
void start_append(struct backend *b, struct turn *turn);
void start_commit(struct backend *b, struct turn *turn);
void start_committed(struct backend *b, struct turn *turn);
void start_groups(struct backend *b, struct turn *turn);

/* fn on the rig's first loop; returns after it. */
void rig_run(struct bridge_rig *rig, void (*fn)(struct bridge_loop *l, void *arg), void *arg);

/* A batch of Kafka records; memory of the rig. */
struct batch_want {
    int32_t records_count; /* 0: 1 */
    int32_t value_len;     /* 0: 1; all bytes are `letter` */
    char letter;
    enum codec codec;
    int64_t producer_id; /* 0: none */
    int32_t sequence;
    bool numbered; /* a value is its record's number, sequence and on, in 4 bytes */
};
struct bytes rig_batch(struct bridge_rig *rig, struct batch_want want);

/* An append of one batch to partition 0 of topic. */
void append_of(struct bridge_rig *rig, struct turn *turn, const char *topic, struct bytes records);
enum status append_run(struct bridge_rig *rig, const char *topic, struct bytes records);
#endif
