#include "net/timer.h"

#include <uv.h>

#include "base/mem.h"
#include "net/helper_test.h"
#include "testing/test.h"

/* Most tests here never let the uv loop run: timers_run gets the time as an argument. */
struct bench {
    uv_loop_t uv;
    struct timers *timers;
};

static void bench_init(struct bench *b) {
    CHECK_EQ(uv_loop_init(&b->uv), 0);
    CHECK_EQ(timers_new(&b->uv, &b->timers), ST_OK);
}

static void bench_release(struct bench *b) {
    timers_close(b->timers);
    uv_run(&b->uv, UV_RUN_DEFAULT);
    CHECK_EQ(uv_loop_close(&b->uv), 0);
    timers_free(b->timers);
}

static int64_t fired_due_ms[2000];
static int fired_count;

static void note_fire(struct timer *t) {
    fired_due_ms[fired_count++] = t->due_ms;
}

TEST(timers_fire_in_the_order_of_their_due_times_whatever_the_order_they_were_set_in) {
    static struct timer t[1000];
    struct bench b;
    bench_init(&b);
    fired_count = 0;
    uint32_t random = 12345;
    for (size_t i = 0; i < COUNT_OF(t); i++) {
        random = random * 1664525 + 1013904223;
        CHECK_EQ(timer_set(b.timers, &t[i], note_fire, 1000 + random % 5000), ST_OK);
    }
    for (size_t i = 0; i < COUNT_OF(t); i += 3) /* every third moves, every fifth goes */
        CHECK_EQ(timer_set(b.timers, &t[i], note_fire, 1000 + (int64_t)((i * 7919) % 5000)), ST_OK);
    for (size_t i = 0; i < COUNT_OF(t); i += 5)
        timer_clear(b.timers, &t[i]);
    timers_run(b.timers, 999);
    CHECK_EQ(fired_count, 0);
    timers_run(b.timers, 3000);
    for (int i = 0; i < fired_count; i++)
        CHECK(fired_due_ms[i] <= 3000);
    timers_run(b.timers, 6000);
    CHECK_EQ(fired_count, 800);
    for (int i = 1; i < fired_count; i++)
        CHECK(fired_due_ms[i - 1] <= fired_due_ms[i]);
    bench_release(&b);
}

TEST(a_cleared_timer_never_fires_and_clearing_twice_is_fine) {
    struct bench b;
    struct timer t = {0};
    bench_init(&b);
    fired_count = 0;
    timer_clear(b.timers, &t);
    CHECK_EQ(timer_set(b.timers, &t, note_fire, 10), ST_OK);
    timer_clear(b.timers, &t);
    timer_clear(b.timers, &t);
    timers_run(b.timers, 100);
    CHECK_EQ(fired_count, 0);
    bench_release(&b);
}

static struct {
    struct bench *b;
    struct timer t[3];
    int fires;
} chain;

static void chain_fire(struct timer *t) {
    chain.fires++;
    timer_clear(chain.b->timers, &chain.t[1]);
    (void)!timer_set(chain.b->timers, t, chain_fire, 0); /* has room: it was just taken out */
}

TEST(a_timer_may_clear_another_that_is_due_and_set_itself_without_holding_the_loop) {
    struct bench b;
    bench_init(&b);
    memset(&chain, 0, sizeof chain);
    chain.b = &b;
    CHECK_EQ(timer_set(b.timers, &chain.t[0], chain_fire, 5), ST_OK);
    CHECK_EQ(timer_set(b.timers, &chain.t[1], note_fire, 6), ST_OK);
    fired_count = 0;
    timers_run(b.timers, 10);
    CHECK_EQ(fired_count, 0);
    CHECK_EQ(chain.fires, 2);
    timer_clear(b.timers, &chain.t[0]);
    bench_release(&b);
}

struct real {
    struct loop *loop;
    struct timer late, soon;
    int64_t set_at_ms, fired_at_ms;
    bool late_fired;
    struct gate over;
};

static void real_soon_fire(struct timer *t) {
    struct real *r = container_of(t, struct real, soon);
    r->fired_at_ms = loop_now_ms(r->loop);
    timer_clear(loop_timers(r->loop), &r->late);
    gate_add(&r->over, 1);
}

static void real_late_fire(struct timer *t) {
    container_of(t, struct real, late)->late_fired = true;
}

static void real_begin(void *arg) {
    struct real *r = arg;
    r->set_at_ms = loop_now_ms(r->loop);
    (void)!timer_set(loop_timers(r->loop), &r->late, real_late_fire, r->set_at_ms + 60000);
    (void)!timer_set(loop_timers(r->loop), &r->soon, real_soon_fire, r->set_at_ms + 20);
}

TEST(a_loop_fires_its_earliest_timer_when_it_is_due_and_not_before) {
    struct real r = {.over = GATE_INIT};
    loops_run(&r.loop, 1);
    loop_call(r.loop, real_begin, &r);
    CHECK(gate_wait(&r.over, 1));
    loops_stop(&r.loop, 1);
    CHECK(r.fired_at_ms >= r.set_at_ms + 20);
    CHECK(!r.late_fired);
}

TEST(a_timer_that_is_set_does_not_keep_a_loop_from_stopping) {
    struct real r = {.over = GATE_INIT};
    loops_run(&r.loop, 1);
    loop_call(r.loop, real_begin, &r);
    loops_stop(&r.loop, 1); /* would take a minute otherwise */
    CHECK(!r.late_fired);
}

TEST_OOM(timer_set_survives_a_failing_allocation) {
    uv_loop_t uv;
    struct timers *timers = NULL;
    struct timer t = {0};
    CHECK_EQ(uv_loop_init(&uv), 0);
    if (timers_new(&uv, &timers) == ST_OK && timer_set(timers, &t, note_fire, 1) != ST_OK)
        CHECK_EQ(t.place, 0);
    timers_close(timers);
    uv_run(&uv, UV_RUN_DEFAULT);
    CHECK_EQ(uv_loop_close(&uv), 0);
    timers_free(timers);
}
