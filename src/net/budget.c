#include "net/budget.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"

/*
 * While nobody waits everything is one atomic number. A waiter first counts itself in waiters_count and then looks at
 * free_bytes; who gives first adds to free_bytes and then looks at waiters_count. Both in one total order (seq_cst), so that at
 * least one of them sees the other, and no waiter sleeps beside free bytes.
 */
struct budget {
    int64_t bytes_max;
    _Atomic int64_t free_bytes;
    _Atomic int64_t waiters_count; /* changed under the lock only */
    pthread_mutex_t lock;
    struct link waiters; /* struct budget_wait by op.link, in the order they came */
};

enum status budget_new(int64_t bytes_max, struct budget **out) {
    struct budget *b = mem_take_zeroed(1, sizeof *b);
    if (!b)
        return ST_NO_MEMORY;
    b->bytes_max = bytes_max;
    atomic_init(&b->free_bytes, bytes_max);
    pthread_mutex_init(&b->lock, NULL);
    list_init(&b->waiters);
    *out = b;
    return ST_OK;
}

void budget_free(struct budget *b) {
    if (!b)
        return;
    assert(list_empty(&b->waiters));
    pthread_mutex_destroy(&b->lock);
    mem_free(b);
}

/* Reserve if there is room, whoever waits. What is larger than everything passes alone, or it would never pass. */
static bool budget_reserve(struct budget *b, int64_t bytes) {
    int64_t free_bytes = atomic_load(&b->free_bytes);
    while (bytes <= free_bytes || free_bytes >= b->bytes_max)
        if (atomic_compare_exchange_weak(&b->free_bytes, &free_bytes, free_bytes - bytes))
            return true;
    return false;
}

/* Serve the waiters, in their order, as far as there is room. With the lock. */
static void budget_serve(struct budget *b) {
    while (!list_empty(&b->waiters)) {
        struct budget_wait *wait = container_of(b->waiters.next, struct budget_wait, op.link);
        if (!budget_reserve(b, wait->bytes))
            return;
        list_remove(&wait->op.link);
        wait->waiting = false;
        atomic_fetch_sub(&b->waiters_count, 1);
        op_complete(&wait->op, ST_OK);
    }
}

bool budget_try(struct budget *b, int64_t bytes) {
    return atomic_load(&b->waiters_count) == 0 && budget_reserve(b, bytes);
}

static void budget_cancel(struct op *op) {
    struct budget_wait *wait = container_of(op, struct budget_wait, op);
    struct budget *b = wait->budget;
    pthread_mutex_lock(&b->lock);
    if (wait->waiting) {
        list_remove(&op->link);
        wait->waiting = false;
        atomic_fetch_sub(&b->waiters_count, 1);
        op_complete(op, ST_CANCELED);
        budget_serve(b); /* the one behind it may be smaller */
    }
    pthread_mutex_unlock(&b->lock);
}

void budget_take(struct budget *b, struct budget_wait *wait, int64_t bytes) {
    wait->bytes = bytes;
    wait->budget = b;
    op_start(&wait->op, budget_cancel);
    pthread_mutex_lock(&b->lock);
    wait->waiting = true;
    list_push_tail(&b->waiters, &wait->op.link);
    atomic_fetch_add(&b->waiters_count, 1);
    budget_serve(b);
    pthread_mutex_unlock(&b->lock);
}

void budget_force(struct budget *b, int64_t bytes) {
    atomic_fetch_sub(&b->free_bytes, bytes);
}

void budget_give(struct budget *b, int64_t bytes) {
    atomic_fetch_add(&b->free_bytes, bytes);
    if (atomic_load(&b->waiters_count) == 0)
        return;
    pthread_mutex_lock(&b->lock);
    budget_serve(b);
    pthread_mutex_unlock(&b->lock);
}

int64_t budget_free_bytes(struct budget *b) {
    return atomic_load(&b->free_bytes);
}
