/* For the tests of backend/store: a whole server side without sockets: loops, pool, store. */
#ifndef BACKEND_STORE_RIG_TEST_H
#define BACKEND_STORE_RIG_TEST_H

#include <semaphore.h>

#include "backend/store/store_backend.h"

#define LOOPS_COUNT  2
#define LONG_MS      20000
#define TIMESTAMP_MS 1700000000000

struct rig {
    struct loop *loops[LOOPS_COUNT];
    struct backend *backend;
    struct arena arena;
};

void rig_open(struct rig *rig, const char *dir, bool skip_unmappable);
void rig_close(struct rig *rig);

/* Runs begin(call) on a loop; the op that it starts, at `op`, posts `ended` when it is done. */
struct turn {
    struct op begin_op, *op;
    void (*begin)(struct backend *b, void *call);
    struct backend *backend;
    void *call;
    sem_t ended;
};
void turn_start(struct turn *turn, struct rig *rig, int loop, struct op *op, void *call,
                void (*begin)(struct backend *, void *));
void turn_wait(struct turn *turn);

/* op_cancel on the op's loop, and wait until it was called. */
void rig_cancel(struct rig *rig, int loop, struct op *op);

#define BEGIN(name) void begin_##name(struct backend *b, void *call);
BEGIN(topics)
BEGIN(create)
BEGIN(delete)
BEGIN(grow)
BEGIN(configure)
BEGIN(append)
BEGIN(read)
BEGIN(watch)
BEGIN(offsets)
BEGIN(trim)
BEGIN(commit)
BEGIN(committed)
BEGIN(groups)
BEGIN(configure_groups)
#undef BEGIN

/* Start a call on loop 0 and wait for its end. */
#define RUN(rig, name, call)                                             \
    do {                                                                 \
        struct turn turn_;                                               \
        turn_start(&turn_, (rig), 0, &(call)->op, (call), begin_##name); \
        turn_wait(&turn_);                                               \
    } while (0)

void make_topic(struct rig *rig, const char *name, int32_t partitions);

/* A batch of count records with values of value_bytes each; owned by the caller. */
struct bytes make_batch(int32_t count, int32_t value_bytes, int64_t timestamp);
struct bytes make_keyed_batch(int32_t count, int32_t value_bytes, int64_t timestamp);
void free_batch(struct bytes batch);

struct backend_append append_of(struct rig *rig, struct backend_append_part *parts, int32_t count);

/* The offset it got. */
int64_t append_one(struct rig *rig, const char *topic, int32_t partition, struct bytes batch,
                   enum backend_format format);
int64_t append_records(struct rig *rig, const char *topic, int32_t partition, int32_t records,
                       int32_t value_bytes, int64_t timestamp);

/* An Iggy batch as a client sends it; owned by the caller. */
#define ORIGIN_US ((uint64_t)TIMESTAMP_MS * 1000)
struct message {
    uint64_t origin_us;
    struct bytes payload, headers;
};

struct bytes sent_batch(const struct message *messages, int count);
struct bytes messages_at(const uint64_t *origins_us, int count);
int64_t append_messages(struct rig *rig, int32_t partition, const uint64_t *origins_us, int count);

struct backend_read_part read_part(const char *topic, int32_t partition, int64_t offset);
struct backend_read read_of(struct backend_read_part *parts, int32_t count);
#endif
