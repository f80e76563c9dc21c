/*
 * The pool. Not uv_queue_work: its completion always takes a hop over the submitting loop, and its request can't be submitted
 * again before that hop; a disk queue that keeps itself busy would wait for a loop between any two pieces of work.
 */
#include "net/work.h"

#include <pthread.h>
#include <stdio.h>

#include "base/mem.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct link queue; /* struct work, oldest first */
    int idle_count;    /* threads that wait for more */
    bool stopping;
    pthread_t *threads;
    int threads_count;
} pool = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .more = PTHREAD_COND_INITIALIZER,
    .queue = {&pool.queue, &pool.queue},
};

/* The next piece, or NULL: it is time to end. With the lock. */
static struct work *work_next(void) {
    while (list_empty(&pool.queue) && !pool.stopping) {
        pool.idle_count++;
        pthread_cond_wait(&pool.more, &pool.lock);
        pool.idle_count--;
    }
    struct link *l = list_pop_head(&pool.queue);
    return l ? container_of(l, struct work, link) : NULL;
}

static void *work_main(void *arg) {
    (void)arg;
    pthread_mutex_lock(&pool.lock);
    for (struct work *w; (w = work_next());) {
        work_fn *run = w->run;
        pthread_mutex_unlock(&pool.lock);
        run(w); /* w may be submitted again, or gone, from here on */
        pthread_mutex_lock(&pool.lock);
    }
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

enum status work_start(int threads_count) {
    assert(threads_count > 0 && pool.threads_count == 0);
    pool.threads = mem_take_zeroed((size_t)threads_count, sizeof *pool.threads);
    if (!pool.threads)
        return ST_NO_MEMORY;
    for (int i = 0; i < threads_count; i++) {
        char name[32]; /* the system takes 15 bytes of it */
        if (pthread_create(&pool.threads[i], NULL, work_main, NULL) != 0) {
            work_stop();
            return ST_IO;
        }
        snprintf(name, sizeof name, "work-%d", i);
        pthread_setname_np(pool.threads[i], name);
        pool.threads_count++;
    }
    return ST_OK;
}

void work_stop(void) {
    pthread_mutex_lock(&pool.lock);
    pool.stopping = true;
    pthread_cond_broadcast(&pool.more);
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < pool.threads_count; i++)
        pthread_join(pool.threads[i], NULL);
    mem_free(pool.threads);
    pool.threads = NULL;
    pool.threads_count = 0;
    pool.stopping = false; /* so that tests can start it again */
}

void work_submit(struct work *w, work_fn *run) {
    pthread_mutex_lock(&pool.lock);
    w->run = run;
    list_push_tail(&pool.queue, &w->link);
    if (pool.idle_count > 0)
        pthread_cond_signal(&pool.more);
    pthread_mutex_unlock(&pool.lock);
}
