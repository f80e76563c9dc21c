/*
 * Idempotent producers, as librdkafka and the Java client are, whose connections break, before a server that does everything a server may: answers
 * late, out of order (0.11) or not at all, refuses, hangs up, forgets its sessions. What is acknowledged must be stored; a producer must never be
 * told what ends it: 45 for the batch that it takes for the next one. With 0.12 each batch is stored once, in order (G-5, G-6).
 *
 * env: PRODUCER_SEED (the first; a failure prints its own), PRODUCER_ROUNDS (of each version)
 */
#include <unistd.h>

#include "backend/iggy/bridge_rig_test.h"
#include "backend/iggy/fake_log_test.h"
#include "base/clock.h"
#include "base/le.h"
#include "iggy/errors.h"
#include "testing/test.h"

#define ROUNDS    6
#define BATCHES   40 /* of a line */
#define IN_FLIGHT 5  /* max.in.flight.requests.per.connection */
#define FAULTS    40 /* then the server does what it is asked for */
#define ROUND_MS  30000
#define LINES     3
#define LEFT_MAX  (LINES * IN_FLIGHT * FAULTS)

/*
 * What a producer sends to a partition, in a connection. For all it knows, batches below acked are stored; those below taken have been answered.
 * Draining: one has failed, so the others in flight are waited for, and then all goes again from acked on.
 */
struct line {
    int64_t producer_id;
    int32_t partition;
    int loop; /* that has the connection */
    uint64_t connection;
    struct bytes batch[BATCHES];
    int32_t first[BATCHES + 1]; /* number of a batch's first record */
    struct turn *turn[BATCHES];
    int acked, taken, sent;
    bool draining;
};

struct simulation {
    struct bridge_rig rig;
    uint32_t version, random, seed;
    struct line lines[LINES];
    uint64_t connections;
    struct turn *left[LEFT_MAX]; /* whose connection has gone, so that nobody hears of them */
    int left_count;
    int faults_left;
    int64_t end_ms;
};

static struct simulation sim;

static uint32_t below(uint32_t limit) {
    sim.random = sim.random * 1664525 + 1013904223;
    return (sim.random >> 8) % limit;
}

/* ---- the producers ---- */

static void line_connect(struct line *line) {
    line->loop = (int)below(2);
    line->connection = ++sim.connections;
}

static void line_open(struct line *line, int64_t producer_id, int32_t partition) {
    *line = (struct line){.producer_id = producer_id, .partition = partition};
    line_connect(line);
    for (int i = 0; i < BATCHES; i++) {
        line->first[i + 1] = line->first[i] + 1 + (int32_t)below(3);
        line->batch[i] =
            rig_batch(&sim.rig, (struct batch_want){.producer_id = producer_id,
                                                    .sequence = line->first[i],
                                                    .records_count = line->first[i + 1] - line->first[i],
                                                    .numbered = true});
    }
}

static void line_send(struct line *line) {
    struct turn *turn = arena_take(&sim.rig.made, sizeof *turn);
    append_of(&sim.rig, turn, "t", line->batch[line->sent]);
    turn->append.parts[0].partition = line->partition;
    turn->append.deadline_ms = clock_ms() + (below(8) == 0 ? 5 + below(60) : 500 + below(500));
    turn->append.connection = line->connection;
    turn_begin(&sim.rig, line->loop, turn, start_append);
    line->turn[line->sent++] = turn;
}

static bool is_stored(const struct line *line, int32_t number) {
    const struct fake_server *f = &sim.rig.server;
    for (int i = 0; i < f->stored_count; i++) {
        const struct fake_stored *s = &f->stored[i];
        struct iggy_batch batch;
        struct iggy_messages_iter it;
        struct iggy_message m;
        if (s->partition != (uint32_t)line->partition)
            continue;
        CHECK_EQ(iggy_batch_read((struct bytes){s->bytes, s->len}, true, &batch), ST_OK);
        iggy_messages_init(&it, &batch);
        while (iggy_messages_next(&it, &m) == ST_OK)
            if (le_get32(m.payload.ptr) == (uint32_t)number)
                return true;
    }
    return false;
}

/* What comes behind one that failed and is acknowledged tells the producer that this is stored, too. */
static void line_acked(struct line *line, int batch) {
    fake_lock(&sim.rig.server);
    for (int32_t n = line->first[line->acked]; n < line->first[batch + 1]; n++)
        if (!is_stored(line, n))
            fail_msg("seed %u: producer %d, partition %d: record %d is acknowledged and not stored", sim.seed,
                     (int)line->producer_id, line->partition, n);
    fake_unlock(&sim.rig.server);
    line->acked = batch + 1;
}

/* Answers come in the order of the requests. */
static void line_take(struct line *line) {
    while (line->taken < line->sent && sem_trywait(&line->turn[line->taken]->ended) == 0) {
        enum status st = line->turn[line->taken]->append.parts[0].status;
        if (st == ST_OK)
            line_acked(line, line->taken);
        else if (st == ST_TIMED_OUT || st == ST_UNAVAILABLE ||
                 (st == ST_BAD_SEQUENCE && line->taken > line->acked))
            line->draining = true;
        else
            fail_msg("seed %u: producer %d, partition %d: %s for batch %d, %d is next", sim.seed,
                     (int)line->producer_id, line->partition, status_text(st), line->taken, line->acked);
        line->taken++;
    }
    if (line->draining && line->taken == line->sent) {
        line->draining = false;
        line->taken = line->sent = line->acked;
    }
}

/* What is under way goes on, and all that has no answer is sent again. */
static void line_reconnect(struct line *line) {
    for (; line->taken < line->sent; line->taken++)
        sim.left[sim.left_count++] = line->turn[line->taken];
    line->taken = line->sent = line->acked;
    line->draining = false;
    line_connect(line);
}

static void line_step(struct line *line) {
    if (sim.faults_left > 0 && below(40) == 0) {
        sim.faults_left--;
        line_reconnect(line);
    }
    if (below(2) == 0)
        line_take(line);
    if (!line->draining && line->sent < BATCHES && line->sent - line->taken < IN_FLIGHT && below(2) == 0)
        line_send(line);
}

/* ---- the server ---- */

static bool is_0_12(void) {
    return sim.version >= IGGY_0_12_0;
}

/* Some of what has come is done before the connection ends. */
static void server_hang_up(struct fake_server *f) {
    int conn = f->held[0].conn;
    for (uint32_t left = below(4); left > 0 && f->held_count > 0; left--)
        fake_decide(f, 0, FAKE_UNHEARD, 0);
    if (conn >= 0)
        fake_hang_up(f, conn);
}

static void server_restart(struct fake_server *f) {
    for (uint32_t left = below(6); left > 0 && f->held_count > 0; left--)
        fake_decide(f, 0, FAKE_UNHEARD, 0);
    for (int i = 0; i < FAKE_CONNS_MAX; i++)
        fake_hang_up(f, i);
    f->era++;
}

static void server_fault(struct fake_server *f) {
    static const uint32_t refusals[] = {IGGY_ERR_TRANSIENT_NOT_ACCEPTED, IGGY_ERR_NOT_PRIMARY,
                                        IGGY_ERR_HISTORY_UNAVAILABLE};
    switch (below(is_0_12() ? 6 : 5)) {
    case 0:
        server_hang_up(f);
        break;
    case 1:
        server_restart(f);
        break;
    case 2:
        fake_decide(f, 0, FAKE_UNCERTAIN, IGGY_ERR_TRANSIENT_NOT_COMMITTED);
        break;
    case 3: /* nobody waits for it any more */
        usleep(70000);
        break;
    case 4:
        fake_decide(f, 0, FAKE_REFUSED, IGGY_ERR_TRANSIENT_NOT_ACCEPTED);
        break;
    default: /* 0.11 has no routes */
        fake_decide(f, 0, FAKE_REFUSED, refusals[below(COUNT_OF(refusals))]);
        break;
    }
}

static void server_step(struct fake_server *f) {
    fake_lock(f);
    if (f->held_count > 0 && sim.faults_left > 0 && below(10) == 0) {
        sim.faults_left--;
        server_fault(f);
    } else if (f->held_count > 0 && below(3) > 0) {
        bool any = !is_0_12() && below(4) == 0; /* it keeps no order between requests */
        fake_decide(f, any ? (int)below((uint32_t)f->held_count) : 0, FAKE_DONE, 0);
    }
    fake_unlock(f);
}

/* ---- a round ---- */

static bool round_is_over(void) {
    for (int i = 0; i < LINES; i++)
        if (sim.lines[i].acked < BATCHES || sim.lines[i].taken < sim.lines[i].sent)
            return false;
    return true;
}

/* Once, in order, in its partition. */
static void check_stored_once(const struct line *line) {
    const struct fake_server *f = &sim.rig.server;
    int32_t next = 0;
    for (int i = 0; i < f->sends_count; i++) {
        const struct fake_send *s = &f->sends[i];
        if (s->partition != (uint32_t)line->partition)
            continue;
        CHECK_EQ(s->producer.id, line->producer_id);
        CHECK_EQ(s->producer.base_sequence, next);
        next += (int32_t)s->messages_count;
    }
    CHECK_EQ(next, line->first[BATCHES]);
}

static void round_run(uint32_t version, uint32_t seed) {
    sim = (struct simulation){.version = version, .seed = seed, .random = seed, .faults_left = FAULTS};
    struct fake_server *f = &sim.rig.server;
    rig_open(&sim.rig,
             (struct rig_options){.version = version, .loops_count = 2, .sessions = (int32_t)below(3)});
    fake_add_topic(f, "kafka", "t", LINES);
    fake_hold(f, IGGY_CMD_send_messages);
    f->checks_numbers = version >= IGGY_0_12_0;
    for (int i = 0; i < LINES; i++)
        line_open(&sim.lines[i], i == 0 ? 8 : 7, i);
    sim.end_ms = clock_ms() + ROUND_MS;
    while (!round_is_over()) {
        line_step(&sim.lines[below(LINES)]);
        server_step(f);
        if (below(4) == 0)
            usleep(below(1000));
        if (clock_ms() > sim.end_ms)
            fail_msg("seed %u: no end", seed);
    }
    for (int i = 0; i < sim.left_count; i++)
        turn_end(sim.left[i]);
    if (is_0_12())
        for (int i = 0; i < LINES; i++)
            check_stored_once(&sim.lines[i]);
    rig_close(&sim.rig);
}

static void rounds_run(uint32_t version) {
    uint64_t first = test_number("PRODUCER_SEED", 1), count = test_number("PRODUCER_ROUNDS", ROUNDS);
    for (uint64_t i = 0; i < count; i++)
        round_run(version, (uint32_t)(first + i));
}

TEST(producers_of_0_11_are_told_the_truth_whatever_the_server_does) {
    rounds_run(IGGY_0_11);
}

TEST(producers_of_0_12_are_told_the_truth_whatever_the_server_does) {
    rounds_run(IGGY_0_12_2);
}
