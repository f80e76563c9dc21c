#include "net/helper_test.h"

#include <errno.h>
#include <time.h>

#include "testing/test.h"

#define PATIENCE_S 20

void gate_add(struct gate *g, int64_t n) {
    pthread_mutex_lock(&g->lock);
    g->value += n;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

int64_t gate_value(struct gate *g) {
    pthread_mutex_lock(&g->lock);
    int64_t value = g->value;
    pthread_mutex_unlock(&g->lock);
    return value;
}

bool gate_wait(struct gate *g, int64_t value) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    int err = 0;
    pthread_mutex_lock(&g->lock);
    while (g->value < value && err != ETIMEDOUT)
        err = pthread_cond_timedwait(&g->changed, &g->lock, &until);
    bool reached = g->value >= value;
    pthread_mutex_unlock(&g->lock);
    return reached;
}

void loops_run(struct loop **loops, int count) {
    for (int i = 0; i < count; i++) {
        CHECK_EQ(loop_new(i, &loops[i]), ST_OK);
        CHECK_EQ(loop_start(loops[i]), ST_OK);
    }
}

void loops_stop(struct loop **loops, int count) {
    for (int i = 0; i < count; i++)
        loop_stop(loops[i]);
    for (int i = 0; i < count; i++)
        loop_free(loops[i]);
}

struct call {
    struct op op;
    void (*fn)(void *arg);
    void *arg;
    struct gate returned;
};

static void call_run(struct op *op) {
    struct call *call = container_of(op, struct call, op);
    call->fn(call->arg);
    gate_add(&call->returned, 1);
}

void loop_call(struct loop *loop, void (*fn)(void *arg), void *arg) {
    struct call call = {.fn = fn, .arg = arg, .returned = GATE_INIT};
    op_init(&call.op, loop, call_run);
    loop_post(&call.op);
    CHECK(gate_wait(&call.returned, 1));
}
