#include "backend/stub/stub_backend.h"

#include "base/mem.h"

static void stub_done(struct op *op) {
    op_start(op, NULL);
    op_complete(op, ST_OK);
}

/* Every part that is still good becomes st. */
#define STUB_ANSWER(call, st)                             \
    do {                                                  \
        for (int32_t i = 0; i < (call)->parts_count; i++) \
            if ((call)->parts[i].status == ST_OK)         \
                (call)->parts[i].status = (st);           \
        stub_done(&(call)->op);                           \
    } while (0)

static void stub_topics(struct backend *b, struct backend_topics *t) {
    (void)b;
    t->topics = NULL;
    t->topics_count = 0;
    t->status = ST_OK;
    for (int32_t i = 0; i < t->parts_count; i++)
        if (t->parts[i].status == ST_OK)
            t->parts[i].status = t->parts[i].name.len < 0 ? ST_UNKNOWN_ID : ST_NOT_FOUND;
    stub_done(&t->op);
}

static void stub_create(struct backend *b, struct backend_create *c) {
    (void)b;
    STUB_ANSWER(c, ST_NOT_CONTROLLER);
}

static void stub_delete(struct backend *b, struct backend_delete *d) {
    (void)b;
    STUB_ANSWER(d, ST_NOT_CONTROLLER);
}

static void stub_grow(struct backend *b, struct backend_grow *g) {
    (void)b;
    STUB_ANSWER(g, ST_NOT_CONTROLLER);
}

static void stub_configure(struct backend *b, struct backend_configure *c) {
    (void)b;
    STUB_ANSWER(c, ST_NOT_CONTROLLER);
}

static void stub_append(struct backend *b, struct backend_append *a) {
    (void)b;
    for (int32_t i = 0; i < a->parts_count; i++)
        a->parts[i].base_offset = a->parts[i].start_offset = a->parts[i].append_ms = -1;
    STUB_ANSWER(a, ST_UNAVAILABLE);
}

static void stub_read(struct backend *b, struct backend_read *r) {
    (void)b;
    r->bytes = 0;
    for (int32_t i = 0; i < r->parts_count; i++) {
        r->parts[i].records_count = 0;
        r->parts[i].bytes = 0;
        r->parts[i].high_watermark = r->parts[i].start_offset = -1;
    }
    STUB_ANSWER(r, ST_UNAVAILABLE);
}

static void stub_read_release(struct backend *b, struct backend_read *r) {
    (void)b;
    (void)r;
}

static void stub_watch(struct backend *b, struct backend_watch *w) {
    (void)b;
    op_start(&w->op, NULL);
    op_complete(&w->op, ST_TIMED_OUT);
}

static void stub_offsets(struct backend *b, struct backend_offsets *o) {
    (void)b;
    for (int32_t i = 0; i < o->parts_count; i++)
        o->parts[i].offset = -1;
    STUB_ANSWER(o, ST_UNAVAILABLE);
}

static void stub_trim(struct backend *b, struct backend_trim *t) {
    (void)b;
    for (int32_t i = 0; i < t->parts_count; i++)
        t->parts[i].start_offset = -1;
    STUB_ANSWER(t, ST_UNAVAILABLE);
}

static void stub_commit(struct backend *b, struct backend_commit *c) {
    (void)b;
    STUB_ANSWER(c, ST_UNAVAILABLE);
}

static void stub_committed(struct backend *b, struct backend_committed *c) {
    (void)b;
    c->status = ST_UNAVAILABLE;
    for (int32_t i = 0; i < c->parts_count; i++)
        c->parts[i].offset = -1;
    STUB_ANSWER(c, ST_UNAVAILABLE);
}

static void stub_groups(struct backend *b, struct backend_groups *g) {
    (void)b;
    g->groups = NULL;
    g->groups_count = 0;
    g->status = ST_UNAVAILABLE;
    stub_done(&g->op);
}

static const struct backend_ops stub_ops = {
    .name = "stub",
    .topics = stub_topics,
    .create = stub_create,
    .delete = stub_delete,
    .grow = stub_grow,
    .configure = stub_configure,
    .append = stub_append,
    .read = stub_read,
    .read_release = stub_read_release,
    .watch = stub_watch,
    .offsets = stub_offsets,
    .trim = stub_trim,
    .commit = stub_commit,
    .committed = stub_committed,
    .groups = stub_groups,
};

enum status stub_backend_new(struct backend **out) {
    struct backend *b = mem_take_zeroed(1, sizeof *b);
    if (!b)
        return ST_NO_MEMORY;
    b->ops = &stub_ops;
    *out = b;
    return ST_OK;
}

void stub_backend_free(struct backend *b) {
    mem_free(b);
}
