#include "net/budget.h"

#include "base/mem.h"
#include "net/helper_test.h"
#include "testing/test.h"

TEST(budget_try_takes_what_is_there_and_never_more) {
    struct budget *b;
    CHECK_EQ(budget_new(100, &b), ST_OK);
    CHECK(budget_try(b, 60));
    CHECK(!budget_try(b, 41));
    CHECK_EQ(budget_free_bytes(b), 40);
    CHECK(budget_try(b, 40));
    budget_give(b, 100);
    CHECK_EQ(budget_free_bytes(b), 100);
    budget_free(b);
}

TEST(a_request_larger_than_the_budget_passes_alone) {
    struct budget *b;
    CHECK_EQ(budget_new(100, &b), ST_OK);
    CHECK(budget_try(b, 1));
    CHECK(!budget_try(b, 1000));
    budget_give(b, 1);
    CHECK(budget_try(b, 1000));
    CHECK(!budget_try(b, 1));
    budget_give(b, 1000);
    CHECK_EQ(budget_free_bytes(b), 100);
    budget_free(b);
}

TEST(budget_force_may_leave_less_than_nothing) {
    struct budget *b;
    CHECK_EQ(budget_new(100, &b), ST_OK);
    budget_force(b, 150);
    CHECK_EQ(budget_free_bytes(b), -50);
    CHECK(!budget_try(b, 1));
    budget_give(b, 150);
    CHECK(budget_try(b, 100));
    budget_give(b, 100);
    budget_free(b);
}

/* --- waiting; what a waiter saw is noted on the loop and read when the loop has stopped --- */

#define WAITERS 4
static struct {
    struct loop *loop;
    struct budget *b;
    struct budget_wait waits[WAITERS];
    int served[WAITERS]; /* numbers of the waiters, in the order their done ran */
    enum status status[WAITERS];
    int served_count;
    bool tried_while_waiting;
    struct gate done;
} queue;

static void queue_done(struct op *op) {
    struct budget_wait *wait = container_of(op, struct budget_wait, op);
    queue.served[queue.served_count] = (int)(wait - queue.waits);
    queue.status[queue.served_count++] = op->status;
    gate_add(&queue.done, 1);
}

static void queue_take_all(void *arg) {
    const int64_t *bytes = arg;
    for (int i = 0; i < WAITERS; i++) {
        op_init(&queue.waits[i].op, queue.loop, queue_done);
        budget_take(queue.b, &queue.waits[i], bytes[i]);
    }
    queue.tried_while_waiting = budget_try(queue.b, 1);
}

static void queue_cancel_first(void *arg) {
    (void)arg;
    op_cancel(&queue.waits[0].op);
    op_cancel(&queue.waits[0].op);
}

static void queue_begin(int64_t bytes_max) {
    memset(&queue, 0, sizeof queue);
    queue.done = (struct gate)GATE_INIT;
    CHECK_EQ(budget_new(bytes_max, &queue.b), ST_OK);
    loops_run(&queue.loop, 1);
}

TEST(waiters_are_served_in_order_also_a_small_one_behind_a_large_one) {
    queue_begin(100);
    CHECK(budget_try(queue.b, 70));
    loop_call(queue.loop, queue_take_all, (int64_t[]){90, 10, 20, 100});
    CHECK_EQ(gate_value(&queue.done), 0);
    CHECK(!queue.tried_while_waiting);
    budget_give(queue.b, 70);
    CHECK(gate_wait(&queue.done, 2));
    budget_give(queue.b, 90);
    CHECK(gate_wait(&queue.done, 3));
    budget_give(queue.b, 10);
    budget_give(queue.b, 20);
    CHECK(gate_wait(&queue.done, 4));
    loops_stop(&queue.loop, 1);
    for (int i = 0; i < WAITERS; i++) {
        CHECK_EQ(queue.served[i], i);
        CHECK_EQ(queue.status[i], ST_OK);
    }
    CHECK_EQ(budget_free_bytes(queue.b), 0);
    budget_give(queue.b, 100);
    budget_free(queue.b);
}

TEST(a_canceled_waiter_reserves_nothing_and_lets_the_next_ones_pass) {
    queue_begin(100);
    CHECK(budget_try(queue.b, 50));
    loop_call(queue.loop, queue_take_all, (int64_t[]){60, 10, 20, 20});
    loop_call(queue.loop, queue_cancel_first, NULL);
    CHECK(gate_wait(&queue.done, 4));
    loops_stop(&queue.loop, 1);
    CHECK_EQ(queue.served[0], 0);
    CHECK_EQ(queue.status[0], ST_CANCELED);
    for (int i = 1; i < WAITERS; i++)
        CHECK_EQ(queue.status[i], ST_OK);
    CHECK_EQ(budget_free_bytes(queue.b), 0);
    budget_give(queue.b, 100);
    budget_free(queue.b);
}

/* --- cancel races with give: whatever wins, what was reserved is what was reported --- */

#define RACES 500
static struct {
    struct loop *loop;
    struct budget *b;
    struct budget_wait wait;
    int64_t granted, canceled;
    struct gate done;
} race;

static void race_done(struct op *op) {
    if (op->status == ST_OK) {
        race.granted++;
        budget_give(race.b, 10);
    } else {
        race.canceled++;
    }
    gate_add(&race.done, 1);
}

static void race_take(void *arg) {
    (void)arg;
    op_init(&race.wait.op, race.loop, race_done);
    budget_take(race.b, &race.wait, 10);
}

static void race_cancel(struct op *op) {
    (void)op;
    op_cancel(&race.wait.op);
    gate_add(&race.done, 1);
}

TEST(a_cancel_that_meets_a_give_ends_the_wait_once_and_loses_no_bytes) {
    struct op cancel;
    memset(&race, 0, sizeof race);
    race.done = (struct gate)GATE_INIT;
    CHECK_EQ(budget_new(10, &race.b), ST_OK);
    loops_run(&race.loop, 1);
    for (int i = 0; i < RACES; i++) {
        budget_force(race.b, 10); /* try may not: the last grant is given back by the loop */
        loop_call(race.loop, race_take, NULL);
        op_init(&cancel, race.loop, race_cancel);
        loop_post(&cancel);
        budget_give(race.b, 10);
        CHECK(gate_wait(&race.done, 2 * (i + 1)));
    }
    loops_stop(&race.loop, 1);
    CHECK_EQ(race.granted + race.canceled, RACES);
    CHECK_EQ(budget_free_bytes(race.b), 10);
    budget_free(race.b);
}

/* --- many threads: never more taken than there is, nothing lost --- */

static void *take_and_give(void *arg) {
    struct budget *b = arg;
    for (int i = 0; i < 20000; i++)
        if (budget_try(b, 1 + i % 7))
            budget_give(b, 1 + i % 7);
    return NULL;
}

TEST(threads_that_take_and_give_leave_the_budget_as_it_was) {
    struct budget *b;
    pthread_t threads[4];
    CHECK_EQ(budget_new(10, &b), ST_OK);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, take_and_give, b), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(budget_free_bytes(b), 10);
    budget_free(b);
}

TEST_OOM(budget_new_survives_a_failing_allocation) {
    struct budget *b;
    if (budget_new(1, &b) == ST_OK)
        budget_free(b);
}
