#include "net/work.h"

#include "base/mem.h"
#include "net/helper_test.h"
#include "testing/test.h"

struct numbered_work {
    struct work w;
    int number;
};
static int order[1000];
static int order_count;

static void note_order(struct work *w) {
    order[order_count++] = container_of(w, struct numbered_work, w)->number;
}

TEST(work_stop_runs_all_that_was_submitted_in_the_order_of_submission) {
    static struct numbered_work w[1000];
    memset(w, 0, sizeof w);
    order_count = 0;
    CHECK_EQ(work_start(1), ST_OK);
    for (int i = 0; i < 1000; i++) {
        w[i].number = i;
        work_submit(&w[i].w, note_order);
    }
    work_stop();
    CHECK_EQ(order_count, 1000);
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(order[i], i);
}

struct again {
    struct work w;
    int runs;
    struct gate over;
};

static void again_run(struct work *w) {
    struct again *a = container_of(w, struct again, w);
    if (++a->runs < 100)
        work_submit(w, again_run);
    else
        gate_add(&a->over, 1);
}

TEST(work_may_submit_itself_from_its_own_run) {
    struct again a = {.over = GATE_INIT};
    CHECK_EQ(work_start(3), ST_OK);
    work_submit(&a.w, again_run);
    CHECK(gate_wait(&a.over, 1));
    work_stop();
    CHECK_EQ(a.runs, 100);
}

static struct gate arrived = GATE_INIT;
static int missed;

static void meet(struct work *w) {
    (void)w;
    gate_add(&arrived, 1);
    if (!gate_wait(&arrived, 3))
        missed++;
}

TEST(as_many_pieces_run_at_once_as_there_are_threads) {
    struct work w[3] = {0};
    CHECK_EQ(work_start(3), ST_OK);
    for (int i = 0; i < 3; i++)
        work_submit(&w[i], meet);
    work_stop();
    CHECK_EQ(missed, 0);
}

struct to_loop {
    struct op op;
    struct work w;
    struct gate *done;
};

static void to_loop_run(struct work *w) {
    op_complete(&container_of(w, struct to_loop, w)->op, ST_OK);
}

static void to_loop_done(struct op *op) {
    gate_add(container_of(op, struct to_loop, op)->done, 1);
}

TEST(a_thousand_pieces_complete_ops_on_a_loop) {
    static struct to_loop t[1000];
    struct gate done = GATE_INIT;
    struct loop *loop;
    memset(t, 0, sizeof t);
    loops_run(&loop, 1);
    CHECK_EQ(work_start(4), ST_OK);
    for (int i = 0; i < 1000; i++) {
        t[i].done = &done;
        op_init(&t[i].op, loop, to_loop_done);
        op_start(&t[i].op, NULL);
        work_submit(&t[i].w, to_loop_run);
    }
    CHECK(gate_wait(&done, 1000));
    work_stop();
    loops_stop(&loop, 1);
}

static void count_run(struct work *w) {
    (void)w;
    gate_add(&arrived, 1);
}

TEST(work_for_a_pool_that_sleeps_wakes_it) {
    struct work w = {0};
    arrived.value = 0;
    CHECK_EQ(work_start(2), ST_OK);
    for (int i = 0; i < 100; i++) {
        work_submit(&w, count_run);
        CHECK(gate_wait(&arrived, i + 1));
    }
    work_stop();
}

TEST_OOM(work_start_survives_a_failing_allocation) {
    enum status st = work_start(2);
    if (st) {
        CHECK_EQ(st, ST_NO_MEMORY);
        return;
    }
    work_stop();
}
