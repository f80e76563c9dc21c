#include "backend/store/rig_test.h"

#include "base/clock.h"
#include "base/mem.h"
#include "iggy/batch.h"
#include "net/loop.h"
#include "net/work.h"
#include "testing/test.h"
#include "wire/records.h"

void rig_open(struct rig *rig, const char *dir, bool skip_unmappable) {
    *rig = (struct rig){0};
    arena_init(&rig->arena, NULL, 0, 64 << 20);
    CHECK_EQ(work_start(4), ST_OK);
    for (int i = 0; i < LOOPS_COUNT; i++)
        CHECK_EQ(loop_new(i, &rig->loops[i]), ST_OK);
    const struct store_backend_settings settings = {
        .data_dir = dir,
        .segment_bytes = 1 << 20,
        .segment_ms = INT64_MAX,
        .retention_ms = -1,
        .retention_bytes = -1,
        .stream = "kafka",
        .batch_bytes_max = 1 << 20,
        .slots_max = 1 << 14,
        .skip_unmappable = skip_unmappable,
        .home = rig->loops[0],
    };
    struct store_error error;
    CHECK_EQ(store_backend_new(&settings, &rig->backend, &error), ST_OK);
    for (int i = 0; i < LOOPS_COUNT; i++)
        CHECK_EQ(loop_start(rig->loops[i]), ST_OK);
    store_backend_start(rig->backend);
}

void rig_close(struct rig *rig) {
    store_backend_stop(rig->backend);
    for (int i = 0; i < LOOPS_COUNT; i++)
        loop_stop(rig->loops[i]);
    work_stop();
    store_backend_free(rig->backend);
    for (int i = 0; i < LOOPS_COUNT; i++)
        loop_free(rig->loops[i]);
    arena_release(&rig->arena);
}

#define TURNS_MAX 64
static struct turn *turns[TURNS_MAX]; /* to find a turn by its op; a test has few */

static void turn_on_done(struct op *op) {
    for (int i = 0; i < TURNS_MAX; i++) {
        struct turn *turn = __atomic_load_n(&turns[i], __ATOMIC_ACQUIRE);
        if (turn && turn->op == op) {
            __atomic_store_n(&turns[i], NULL, __ATOMIC_RELEASE);
            sem_post(&turn->ended);
            return;
        }
    }
}

static void turn_on_begin(struct op *op) {
    struct turn *turn = container_of(op, struct turn, begin_op);
    turn->begin(turn->backend, turn->call);
}

void turn_start(struct turn *turn, struct rig *rig, int loop, struct op *op, void *call,
                void (*begin)(struct backend *, void *)) {
    *turn = (struct turn){.op = op, .begin = begin, .backend = rig->backend, .call = call};
    sem_init(&turn->ended, 0, 0);
    op_init(op, rig->loops[loop], turn_on_done);
    for (int i = 0;; i = (i + 1) % TURNS_MAX) {
        struct turn *none = NULL;
        if (__atomic_compare_exchange_n(&turns[i], &none, turn, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            break;
    }
    op_init(&turn->begin_op, rig->loops[loop], turn_on_begin);
    loop_post(&turn->begin_op);
}

void turn_wait(struct turn *turn) {
    while (sem_wait(&turn->ended) != 0)
        ;
    sem_destroy(&turn->ended);
}

struct cancel {
    struct op op, *target;
};

static void begin_cancel(struct backend *b, void *call) {
    (void)b;
    struct cancel *c = call;
    op_start(&c->op, NULL);
    op_cancel(c->target);
    op_complete(&c->op, ST_OK);
}

void rig_cancel(struct rig *rig, int loop, struct op *op) {
    struct cancel c = {.target = op};
    struct turn turn;
    turn_start(&turn, rig, loop, &c.op, &c, begin_cancel);
    turn_wait(&turn);
}

#define BEGIN(name)                                    \
    void begin_##name(struct backend *b, void *call) { \
        backend_##name(b, call);                       \
    }
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

void make_topic(struct rig *rig, const char *name, int32_t partitions) {
    struct backend_create_part part = {.name = str_of(name), .partitions_count = partitions};
    struct backend_create call = {.parts = &part, .parts_count = 1, .deadline_ms = clock_ms() + LONG_MS};
    RUN(rig, create, &call);
    CHECK_EQ(part.status, ST_OK);
}

static struct bytes make_batch_with(struct bytes key, int32_t count, int32_t value_bytes, int64_t timestamp) {
    struct spare out = {0};
    struct batch_builder b;
    struct bytes batch;
    uint8_t *value = mem_take_zeroed(1, (size_t)value_bytes);
    CHECK_EQ(batch_builder_init(&b, &out, timestamp), ST_OK);
    for (int32_t i = 0; i < count; i++)
        CHECK_EQ(batch_builder_add(&b, timestamp + i, -1, key, (struct bytes){value, value_bytes}, NULL, 0),
                 ST_OK);
    CHECK_EQ(batch_builder_finish(&b, 0, CODEC_NONE, NULL, &batch), ST_OK);
    mem_free(value);
    return batch;
}

struct bytes make_batch(int32_t count, int32_t value_bytes, int64_t timestamp) {
    return make_batch_with(BYTES_NULL, count, value_bytes, timestamp);
}

struct bytes make_keyed_batch(int32_t count, int32_t value_bytes, int64_t timestamp) {
    return make_batch_with((struct bytes){(const uint8_t *)"k", 1}, count, value_bytes, timestamp);
}

void free_batch(struct bytes batch) {
    mem_free((void *)(uintptr_t)batch.ptr);
}

struct backend_append append_of(struct rig *rig, struct backend_append_part *parts, int32_t count) {
    return (struct backend_append){.arena = &rig->arena,
                                   .parts = parts,
                                   .parts_count = count,
                                   .durable = true,
                                   .zstd_allowed = true,
                                   .deadline_ms = clock_ms() + LONG_MS};
}

int64_t append_one(struct rig *rig, const char *topic, int32_t partition, struct bytes batch,
                   enum backend_format format) {
    struct backend_append_part part = {.topic = str_of(topic), .partition = partition, .records = batch};
    struct backend_append call = append_of(rig, &part, 1);
    call.format = format;
    RUN(rig, append, &call);
    CHECK_EQ(part.status, ST_OK);
    return part.base_offset;
}

int64_t append_records(struct rig *rig, const char *topic, int32_t partition, int32_t records,
                       int32_t value_bytes, int64_t timestamp) {
    struct bytes batch = make_batch(records, value_bytes, timestamp);
    int64_t offset = append_one(rig, topic, partition, batch, FORMAT_KAFKA);
    free_batch(batch);
    return offset;
}

struct bytes sent_batch(const struct message *messages, int count) {
    struct iggy_batch_builder b = {0};
    struct bytes batch;
    uint64_t origin = UINT64_MAX;
    for (int i = 0; i < count; i++)
        origin = messages[i].origin_us < origin ? messages[i].origin_us : origin;
    CHECK_EQ(iggy_batch_builder_init(&b, origin, 0), ST_OK);
    for (int i = 0; i < count; i++) {
        const struct message *m = &messages[i];
        uint8_t *body;
        const struct iggy_u128 id = {{(uint8_t)(i + 1)}};
        CHECK_EQ(iggy_batch_builder_add(&b, &id, m->origin_us, m->payload.len, m->headers.len, &body), ST_OK);
        memcpy(body, m->payload.ptr, (size_t)m->payload.len);
        if (m->headers.len > 0)
            memcpy(body + m->payload.len, m->headers.ptr, (size_t)m->headers.len);
    }
    iggy_batch_builder_finish(&b, &batch);
    return batch;
}

struct bytes messages_at(const uint64_t *origins_us, int count) {
    struct message messages[8];
    for (int i = 0; i < count; i++)
        messages[i] = (struct message){origins_us[i], {(const uint8_t *)"payload", 7}, {NULL, 0}};
    return sent_batch(messages, count);
}

int64_t append_messages(struct rig *rig, int32_t partition, const uint64_t *origins_us, int count) {
    struct bytes batch = messages_at(origins_us, count);
    int64_t offset = append_one(rig, "orders", partition, batch, FORMAT_IGGY);
    free_batch(batch);
    return offset;
}

struct backend_read_part read_part(const char *topic, int32_t partition, int64_t offset) {
    return (struct backend_read_part){
        .topic = str_of(topic), .partition = partition, .offset = offset, .bytes_max = 1 << 20};
}

struct backend_read read_of(struct backend_read_part *parts, int32_t count) {
    return (struct backend_read){
        .parts = parts, .parts_count = count, .bytes_max = 1 << 20, .deadline_ms = clock_ms() + LONG_MS};
}
