#include "backend/iggy/bridge_rig_test.h"

#include "base/clock.h"
#include "base/le.h"
#include "net/loop.h"
#include "testing/test.h"

#define ARENA_MAX    ((size_t)256 << 20)
#define TIMESTAMP_MS 1700000000000

void rig_prepare(struct bridge_rig *rig, struct rig_options o) {
    memset(rig, 0, sizeof *rig);
    fake_start(&rig->server, o.version ? o.version : IGGY_NEWEST);
    arena_init(&rig->made, NULL, 0, ARENA_MAX);
    CHECK_EQ(work_start(3), ST_OK);
    CHECK_EQ(budget_new(INT64_C(1) << 30, &rig->budget), ST_OK);
    CHECK_EQ(topic_map_set(&rig->map, STR_NULL, STR("default_stream"), STR("kafka")), ST_OK);
    if (o.mapped) {
        CHECK_EQ(topic_map_set(&rig->map, str_of(o.mapped), STR("stream"), STR("other")), ST_OK);
        CHECK_EQ(topic_map_set(&rig->map, str_of(o.mapped), STR("topic"), STR("place")), ST_OK);
    }
    CHECK_EQ(topic_map_seal(&rig->map), ST_OK);
    rig->loops_count = o.loops_count ? o.loops_count : 1;
    for (int i = 0; i < rig->loops_count; i++) {
        CHECK_EQ(loop_new(i, &rig->loops[i]), ST_OK);
        arena_init(&rig->arenas[i], NULL, 0, ARENA_MAX);
    }
    rig->settings = (struct iggy_backend_settings){
        .host = "127.0.0.1",
        .port = rig->server.port,
        .username = "iggy",
        .password = "secret",
        .topic_map = &rig->map,
        .send_bytes_max = o.send_bytes_max ? o.send_bytes_max : 64 << 20,
        .batch_bytes_max = o.batch_bytes_max ? o.batch_bytes_max : 1 << 20,
        .slots_max = 1 << 14,
        .produce_sessions = o.sessions,
        .produce_session_idle_ms = 600000,
        .budget = rig->budget,
        .loops = rig->loops,
        .loops_count = rig->loops_count,
    };
}

void rig_begin(struct bridge_rig *rig) {
    char reason[512];
    enum status st = iggy_backend_new(&rig->settings, &rig->backend, reason);
    if (st)
        fail_msg("%s", reason);
    rig->bridge = container_of(rig->backend, struct bridge, base);
    for (int i = 0; i < rig->loops_count; i++)
        CHECK_EQ(loop_start(rig->loops[i]), ST_OK);
}

void rig_open(struct bridge_rig *rig, struct rig_options options) {
    rig_prepare(rig, options);
    rig_begin(rig);
}

void rig_stop(struct bridge_rig *rig) {
    iggy_backend_stop(rig->backend);
    rig->stopped = true;
}

void rig_close(struct bridge_rig *rig) {
    if (rig->backend && !rig->stopped)
        rig_stop(rig);
    work_stop();
    for (int i = 0; i < rig->loops_count; i++) {
        loop_stop(rig->loops[i]);
    }
    iggy_backend_free(rig->backend);
    for (int i = 0; i < rig->loops_count; i++) {
        loop_free(rig->loops[i]);
        arena_release(&rig->arenas[i]);
    }
    fake_stop(&rig->server);
    budget_free(rig->budget);
    topic_map_release(&rig->map);
    arena_release(&rig->made);
}

/* ---- calls ---- */

static void turn_on_done(struct op *op) {
    struct turn *turn = container_of(op, struct turn, op);
    sem_post(&turn->ended);
}

static void turn_on_begin(struct op *op) {
    struct turn *turn = container_of(op, struct turn, begin);
    turn->start(turn->rig->backend, turn);
}

void turn_begin(struct bridge_rig *rig, int loop, struct turn *turn,
                void (*start)(struct backend *b, struct turn *turn)) {
    sem_init(&turn->ended, 0, 0);
    turn->rig = rig;
    turn->start = start;
    op_init(&turn->op, rig->loops[loop], turn_on_done);
    op_init(&turn->begin, rig->loops[loop], turn_on_begin);
    loop_post(&turn->begin);
}

void turn_end(struct turn *turn) {
    while (sem_wait(&turn->ended) != 0)
        continue;
    sem_destroy(&turn->ended);
}

void turn_run(struct bridge_rig *rig, struct turn *turn,
              void (*start)(struct backend *b, struct turn *turn)) {
    turn_begin(rig, 0, turn, start);
    turn_end(turn);
}

static struct arena *arena_of(struct turn *turn) {
    return &turn->rig->arenas[turn->op.loop == turn->rig->loops[1]];
}

void start_topics(struct backend *b, struct turn *turn) {
    turn->topics.arena = arena_of(turn);
    turn->topics.deadline_ms = clock_ms() + RIG_WAIT_MS;
    backend_topics(b, &turn->topics);
}

void start_create(struct backend *b, struct turn *turn) {
    turn->create.deadline_ms = clock_ms() + RIG_WAIT_MS;
    backend_create(b, &turn->create);
}

void start_delete(struct backend *b, struct turn *turn) {
    turn->delete_.arena = arena_of(turn);
    turn->delete_.deadline_ms = clock_ms() + RIG_WAIT_MS;
    backend_delete(b, &turn->delete_);
}

void start_grow(struct backend *b, struct turn *turn) {
    turn->grow.deadline_ms = clock_ms() + RIG_WAIT_MS;
    backend_grow(b, &turn->grow);
}

void start_configure(struct backend *b, struct turn *turn) {
    turn->configure.deadline_ms = clock_ms() + RIG_WAIT_MS;
    backend_configure(b, &turn->configure);
}

void start_append(struct backend *b, struct turn *turn) {
    turn->append.arena = arena_of(turn);
    if (turn->append.deadline_ms == 0)
        turn->append.deadline_ms = clock_ms() + RIG_WAIT_MS;
    backend_append(b, &turn->append);
}

void start_commit(struct backend *b, struct turn *turn) {
    if (turn->commit.deadline_ms == 0)
        turn->commit.deadline_ms = clock_ms() + RIG_WAIT_MS;
    backend_commit(b, &turn->commit);
}

void start_committed(struct backend *b, struct turn *turn) {
    turn->committed.arena = arena_of(turn);
    if (turn->committed.deadline_ms == 0)
        turn->committed.deadline_ms = clock_ms() + RIG_WAIT_MS;
    backend_committed(b, &turn->committed);
}

void start_groups(struct backend *b, struct turn *turn) {
    turn->groups.arena = arena_of(turn);
    turn->groups.deadline_ms = clock_ms() + RIG_WAIT_MS;
    backend_groups(b, &turn->groups);
}

struct run {
    struct op op;
    struct bridge_rig *rig;
    void (*fn)(struct bridge_loop *l, void *arg);
    void *arg;
    sem_t ended;
};

static void run_on_loop(struct op *op) {
    struct run *run = container_of(op, struct run, op);
    run->fn(bridge_here(run->rig->bridge), run->arg);
    sem_post(&run->ended);
}

void rig_run(struct bridge_rig *rig, void (*fn)(struct bridge_loop *l, void *arg), void *arg) {
    struct run run = {.rig = rig, .fn = fn, .arg = arg};
    sem_init(&run.ended, 0, 0);
    op_init(&run.op, rig->loops[0], run_on_loop);
    loop_post(&run.op);
    while (sem_wait(&run.ended) != 0)
        continue;
    sem_destroy(&run.ended);
}

/* ---- records ---- */

struct bytes rig_batch(struct bridge_rig *rig, struct batch_want want) {
    struct spare out = {0}, scratch = {0};
    struct batch_builder b;
    struct bytes made;
    int32_t len = want.numbered ? 4 : want.value_len ? want.value_len : 1;
    uint8_t *value = arena_take(&rig->made, (size_t)len);
    memset(value, want.letter, (size_t)len);
    CHECK_EQ(batch_builder_init(&b, &out, TIMESTAMP_MS), ST_OK);
    for (int32_t i = 0; i < (want.records_count ? want.records_count : 1); i++) {
        if (want.numbered)
            le_set32(value, (uint32_t)(want.sequence + i));
        CHECK_EQ(batch_builder_add(&b, TIMESTAMP_MS, -1, BYTES_NULL, (struct bytes){value, len}, NULL, 0),
                 ST_OK);
    }
    if (want.producer_id) {
        b.producer_id = want.producer_id;
        b.producer_epoch = 0;
        b.base_sequence = want.sequence;
    }
    CHECK_EQ(batch_builder_finish(&b, 0, want.codec, &scratch, &made), ST_OK);
    uint8_t *copy = arena_take(&rig->made, (size_t)made.len);
    memcpy(copy, made.ptr, (size_t)made.len);
    spare_release(&out);
    spare_release(&scratch);
    return (struct bytes){copy, made.len};
}

void append_of(struct bridge_rig *rig, struct turn *turn, const char *topic, struct bytes records) {
    memset(turn, 0, sizeof *turn);
    turn->append.parts = arena_take_array(&rig->made, struct backend_append_part, 1);
    turn->append.parts_count = 1;
    turn->append.parts[0] = (struct backend_append_part){.topic = str_of(topic), .records = records};
    turn->append.zstd_allowed = true;
}

enum status append_run(struct bridge_rig *rig, const char *topic, struct bytes records) {
    struct turn turn;
    append_of(rig, &turn, topic, records);
    turn_run(rig, &turn, start_append);
    return turn.append.parts[0].status;
}
