#include "net/loop.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/helper_test.h"
#include "testing/test.h"

#define POSTERS        4
#define OPS_PER_THREAD 2500

struct numbered {
    struct op op;
    int poster, number;
};

static struct {
    struct numbered ops[POSTERS][OPS_PER_THREAD];
    int next[POSTERS]; /* on the loop */
    int misplaced;     /* on the loop: out of order, or on a wrong thread */
    struct gate ran;
} many = {.ran = GATE_INIT};

static void numbered_done(struct op *op) {
    struct numbered *n = container_of(op, struct numbered, op);
    if (many.next[n->poster]++ != n->number || loop_current() != op->loop || op->pending)
        many.misplaced++;
    gate_add(&many.ran, 1);
}

static void *post_many(void *arg) {
    struct numbered *ops = arg;
    for (int i = 0; i < OPS_PER_THREAD; i++)
        op_complete(&ops[i].op, ST_OK);
    return NULL;
}

TEST(ten_thousand_ops_from_four_threads_run_once_each_and_in_each_thread_s_order) {
    struct loop *loop;
    pthread_t threads[POSTERS];
    loops_run(&loop, 1);
    for (int p = 0; p < POSTERS; p++)
        for (int i = 0; i < OPS_PER_THREAD; i++) {
            struct numbered *n = &many.ops[p][i];
            *n = (struct numbered){.poster = p, .number = i};
            op_init(&n->op, loop, numbered_done);
            op_start(&n->op, NULL);
        }
    for (int p = 0; p < POSTERS; p++)
        CHECK_EQ(pthread_create(&threads[p], NULL, post_many, many.ops[p]), 0);
    for (int p = 0; p < POSTERS; p++)
        pthread_join(threads[p], NULL);
    CHECK(gate_wait(&many.ran, (int64_t)POSTERS * OPS_PER_THREAD));
    loops_stop(&loop, 1);
    CHECK_EQ(gate_value(&many.ran), (int64_t)POSTERS * OPS_PER_THREAD);
    CHECK_EQ(many.misplaced, 0);
}

/* --- two loops that have nothing to do but to wake each other --- */

#define THROWS 20000

struct ball {
    struct loop *loops[2];
    struct op ops[2]; /* one for each way */
    int throws;
    struct gate over;
};

static void ball_throw(struct ball *b) {
    if (++b->throws == THROWS)
        gate_add(&b->over, 1);
    else
        loop_post(&b->ops[b->throws % 2]);
}

static void ball_caught_at_0(struct op *op) {
    ball_throw(container_of(op, struct ball, ops[0]));
}

static void ball_caught_at_1(struct op *op) {
    ball_throw(container_of(op, struct ball, ops[1]));
}

TEST(a_loop_that_sleeps_is_woken_each_time) {
    struct ball b = {.over = GATE_INIT};
    loops_run(b.loops, 2);
    op_init(&b.ops[0], b.loops[0], ball_caught_at_0);
    op_init(&b.ops[1], b.loops[1], ball_caught_at_1);
    loop_post(&b.ops[0]);
    CHECK(gate_wait(&b.over, 1));
    loops_stop(b.loops, 2);
    CHECK_EQ(b.throws, THROWS);
}

/* --- what happens on the loop's own thread; all state below is used on the loop only --- */

struct scene {
    struct loop *loop;
    struct op first, second, hook;
    int first_runs, second_runs, hook_runs;
    bool inside, ran_inside, hook_ran_early;
    struct gate over;
};

static void scene_first_done(struct op *op) {
    struct scene *s = container_of(op, struct scene, first);
    s->first_runs++;
    s->ran_inside |= s->inside;
    op_start(&s->second, NULL);
    op_complete(&s->second, ST_TIMED_OUT);
    s->ran_inside |= s->second_runs > 0;
}

static void scene_second_done(struct op *op) {
    struct scene *s = container_of(op, struct scene, second);
    s->second_runs++;
    s->hook_ran_early |= s->hook_runs > 0;
    if (op->status != ST_TIMED_OUT)
        s->second_runs += 100;
}

static void scene_hook_done(struct op *op) {
    struct scene *s = container_of(op, struct scene, hook);
    s->hook_runs++;
    gate_add(&s->over, 1);
}

static void scene_begin(void *arg) {
    struct scene *s = arg;
    op_init(&s->first, s->loop, scene_first_done);
    op_init(&s->second, s->loop, scene_second_done);
    op_init(&s->hook, s->loop, scene_hook_done);
    s->inside = true;
    loop_at_end(s->loop, &s->hook);
    loop_at_end(s->loop, &s->hook); /* no effect */
    op_start(&s->first, NULL);
    op_complete(&s->first, ST_OK);
    s->inside = false;
}

TEST(completions_never_run_inside_and_the_end_hook_runs_once_after_them) {
    struct scene s = {.over = GATE_INIT};
    loops_run(&s.loop, 1);
    loop_call(s.loop, scene_begin, &s);
    CHECK(gate_wait(&s.over, 1));
    loops_stop(&s.loop, 1);
    CHECK_EQ(s.first_runs, 1);
    CHECK_EQ(s.second_runs, 1);
    CHECK_EQ(s.hook_runs, 1);
    CHECK(!s.ran_inside);
    CHECK(!s.hook_ran_early);
}

/* An op that always posts itself again shares the loop with others: a post from outside still gets in. */
struct greedy {
    struct op op;
    bool stop;
    int64_t runs;
};

static void greedy_done(struct op *op) {
    struct greedy *g = container_of(op, struct greedy, op);
    g->runs++;
    if (!g->stop)
        loop_post(op);
}

static void greedy_stop(void *arg) {
    ((struct greedy *)arg)->stop = true;
}

TEST(an_op_that_posts_itself_again_does_not_starve_the_mailbox) {
    struct loop *loop;
    struct greedy g = {0};
    loops_run(&loop, 1);
    op_init(&g.op, loop, greedy_done);
    loop_post(&g.op);
    loop_call(loop, greedy_stop, &g);
    loops_stop(&loop, 1);
    CHECK(g.runs > 0);
}

struct clocks {
    struct loop *loop;
    int64_t before_ms, loop_ms, after_ms;
};

static void clocks_read(void *arg) {
    struct clocks *c = arg;
    c->loop_ms = loop_now_ms(c->loop);
    c->after_ms = clock_ms();
}

TEST(loop_now_ms_and_clock_ms_count_from_the_same_start) {
    struct clocks c = {0};
    loops_run(&c.loop, 1);
    c.before_ms = clock_ms();
    loop_call(c.loop, clocks_read, &c);
    loops_stop(&c.loop, 1);
    CHECK(c.loop_ms >= c.before_ms - 10); /* the loop's clock may be a coarse one: 4 ms a tick */
    CHECK(c.loop_ms <= c.after_ms);
}

TEST(op_cancel_does_nothing_to_an_op_that_is_not_pending_or_has_no_cancel) {
    struct op op;
    op_init(&op, NULL, greedy_done);
    op_cancel(&op);
    op_start(&op, NULL);
    op_cancel(&op);
    CHECK(op.pending);
}

TEST(what_was_posted_before_loop_stop_has_run_when_it_returns) {
    struct loop *loop;
    struct gate ran = GATE_INIT;
    struct scene s = {.over = ran};
    loops_run(&loop, 1);
    s.loop = loop;
    op_init(&s.hook, loop, scene_hook_done);
    loop_post(&s.hook);
    loops_stop(&loop, 1);
    CHECK_EQ(s.hook_runs, 1);
}

TEST_OOM(loop_new_survives_a_failing_allocation) {
    struct loop *loop;
    enum status st = loop_new(0, &loop);
    if (st) {
        CHECK_EQ(st, ST_NO_MEMORY);
        return;
    }
    loop_free(loop);
}
