#include "backend/iggy/reader_test.h"

#include "base/clock.h"
#include "net/loop.h"
#include "testing/test.h"

#define PART_BYTES_MAX (1 << 20)
#define CALL_BYTES_MAX (8 << 20)

void reader_init(struct reader *r, struct bridge_rig *rig, int loop) {
    memset(r, 0, sizeof *r);
    r->rig = rig;
    r->loop = loop;
    r->patience_ms = RIG_WAIT_MS;
    r->read.parts = r->parts;
    r->read.bytes_max = CALL_BYTES_MAX;
    sem_init(&r->ended, 0, 0);
    sem_init(&r->begun, 0, 0);
}

struct backend_read_part *reader_add(struct reader *r, const char *topic, int32_t partition, int64_t offset) {
    CHECK(r->read.parts_count < READER_PARTS_MAX);
    struct backend_read_part *p = &r->parts[r->read.parts_count++];
    *p = (struct backend_read_part){
        .topic = str_of(topic), .partition = partition, .offset = offset, .bytes_max = PART_BYTES_MAX};
    return p;
}

static void wait_for(sem_t *s) {
    while (sem_wait(s) != 0)
        continue;
}

static void read_on_done(struct op *op) {
    struct reader *r = container_of(op, struct reader, read.op);
    r->outcome = op->status;
    sem_post(&r->ended);
}

static void watch_on_done(struct op *op) {
    struct reader *r = container_of(op, struct reader, watch.op);
    r->outcome = op->status;
    sem_post(&r->ended);
}

static void begin_on_loop(struct op *op) {
    struct reader *r = container_of(op, struct reader, begin);
    r->fn(r);
    sem_post(&r->begun);
}

/* Returns after fn. */
static void on_loop(struct reader *r, void (*fn)(struct reader *r)) {
    r->fn = fn;
    op_init(&r->begin, r->rig->loops[r->loop], begin_on_loop);
    loop_post(&r->begin);
    wait_for(&r->begun);
}

static void begin_read(struct reader *r) {
    op_init(&r->read.op, r->rig->loops[r->loop], read_on_done);
    r->read.deadline_ms = clock_ms() + r->patience_ms;
    backend_read(r->rig->backend, &r->read);
}

void reader_begin(struct reader *r) {
    on_loop(r, begin_read);
}

void reader_end(struct reader *r) {
    wait_for(&r->ended);
    CHECK_EQ(r->outcome, ST_OK);
}

void reader_run(struct reader *r) {
    reader_begin(r);
    reader_end(r);
}

static void begin_watch(struct reader *r) {
    r->watch = (struct backend_watch){
        .read = &r->read, .bytes_min = r->bytes_min, .deadline_ms = clock_ms() + r->wait_ms};
    op_init(&r->watch.op, r->rig->loops[r->loop], watch_on_done);
    backend_watch(r->rig->backend, &r->watch);
}

void reader_watch_begin(struct reader *r, int64_t bytes_min, int64_t wait_ms) {
    r->bytes_min = bytes_min;
    r->wait_ms = wait_ms;
    on_loop(r, begin_watch);
}

enum status reader_watch_end(struct reader *r) {
    wait_for(&r->ended);
    return r->outcome;
}

enum status reader_watch(struct reader *r, int64_t bytes_min, int64_t wait_ms) {
    reader_watch_begin(r, bytes_min, wait_ms);
    return reader_watch_end(r);
}

static void cancel_watch(struct reader *r) {
    op_cancel(&r->watch.op);
}

void reader_cancel(struct reader *r) {
    on_loop(r, cancel_watch);
}

static void release(struct reader *r) {
    backend_read_release(r->rig->backend, &r->read);
}

void reader_release(struct reader *r) {
    on_loop(r, release);
}

/* ---- what came ---- */

static bool part_batch(const struct backend_read_part *p, struct batch *out) {
    if (p->records_count == 0) {
        CHECK_EQ(p->bytes, 0);
        return false;
    }
    CHECK_EQ(p->records_count, 1);
    CHECK_EQ(p->records[0].len, p->bytes);
    CHECK_EQ(batch_read(p->records[0], out), ST_OK);
    CHECK_EQ(out->size_bytes, p->bytes);
    struct records_iter it;
    struct record one;
    records_iter_init(&it, out->body, out->records_count);
    for (int32_t i = 0; i < out->records_count; i++)
        CHECK_EQ(records_next(&it, &one), ST_OK);
    CHECK_EQ(records_next(&it, &one), ST_NOT_FOUND);
    return true;
}

int64_t part_base(const struct backend_read_part *p) {
    struct batch b;
    return part_batch(p, &b) ? b.base_offset : -1;
}

int32_t part_records(const struct backend_read_part *p) {
    struct batch b;
    return part_batch(p, &b) ? b.records_count : 0;
}

int32_t part_last_delta(const struct backend_read_part *p) {
    struct batch b;
    return part_batch(p, &b) ? b.last_offset_delta : -1;
}

struct part_found read_one(struct bridge_rig *rig, const char *topic, int32_t partition, int64_t offset) {
    static struct reader r;
    reader_init(&r, rig, 0);
    const struct backend_read_part *p = reader_add(&r, topic, partition, offset);
    reader_run(&r);
    struct part_found found = {
        .status = p->status, .end = p->high_watermark, .base = part_base(p), .records = part_records(p)};
    CHECK_EQ(p->start_offset, -1);
    CHECK_EQ(r.read.bytes, p->bytes);
    reader_release(&r);
    return found;
}
