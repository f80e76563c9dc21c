/* For the tests of net/: waiting for another thread without sleeping, and loops that run. */
#ifndef NET_HELPER_TEST_H
#define NET_HELPER_TEST_H

#include <pthread.h>

#include "net/loop.h"
#include "net/op.h"

/* A number that one thread raises and another waits for. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t value;
};
#define GATE_INIT \
    { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 }

void gate_add(struct gate *g, int64_t n);
int64_t gate_value(struct gate *g);
bool gate_wait(struct gate *g,
               int64_t value) MUST_USE; /* until it is at least value; false: not within 20 seconds */

/* count loops that run, at most 4; they end in loops_stop. */
void loops_run(struct loop **loops, int count);
void loops_stop(struct loop **loops, int count);

/* Run fn(arg) on the loop and wait until it has returned. */
void loop_call(struct loop *loop, void (*fn)(void *arg), void *arg);
#endif
