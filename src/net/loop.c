#include "net/loop.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>

#include "base/mem.h"
#include "net/loop_impl.h"
#include "net/timer.h"

/* At most so many completions between two looks at the sockets. */
#define READY_MAX 1000

struct loop {
    uv_loop_t uv;
    uv_poll_t wake; /* on wake_fd; what keeps the loop going: its other handles don't count */
    int wake_fd; /* owned; an eventfd: uv_async makes the woken thread spin until the waker's call has returned */
    uv_prepare_t before_poll; /* ready things never wait through a poll: they run before and after it */
    uv_check_t after_poll;
    uv_idle_t again;    /* active while something is ready: then the poll doesn't block */
    struct link ready;  /* struct op: to run, oldest first */
    struct link at_end; /* struct op: to run when ready is empty */
    struct timers *timers;
    struct op stop;
    int index;
    bool started;
    pthread_t thread;

    pthread_mutex_t lock; /* guards the rest */
    struct link mailbox;  /* struct op: posted by other threads */
    bool asleep; /* it may be in the poll, and is to be woken; else it looks into the mailbox by itself */

    uint8_t scratch[LOOP_SCRATCH_BYTES];
};

static _Thread_local struct loop *current;

static void loop_run_op(struct link *l) {
    struct op *op = container_of(l, struct op, link);
    op->pending = false;
    op->cancel = NULL;
    op->done(op);
}

static void loop_run_ready(struct loop *loop) {
    int left = READY_MAX;
    do {
        struct link hooks, *l;
        for (; left > 0 && (l = list_pop_head(&loop->ready)); left--)
            loop_run_op(l);
        list_init(&hooks); /* a hook that asks for another turn gets it after what is ready by then */
        list_move_all(&hooks, &loop->at_end);
        for (; (l = list_pop_head(&hooks)); left--)
            loop_run_op(l);
    } while (left > 0 && !(list_empty(&loop->ready) && list_empty(&loop->at_end)));
}

static void loop_on_again(uv_idle_t *handle) {
    (void)handle; /* its being active is all that matters */
}

static void loop_run_all(struct loop *loop) {
    loop_run_ready(loop);
    if (list_empty(&loop->ready) && list_empty(&loop->at_end))
        uv_idle_stop(&loop->again);
    else
        uv_idle_start(&loop->again, loop_on_again);
}

/* What others have posted is ready. may_sleep: if there is nothing to do then, whoever posts next wakes the loop. */
static void loop_take_mail(struct loop *loop, bool may_sleep) {
    bool idle = may_sleep && list_empty(&loop->ready) && list_empty(&loop->at_end);
    pthread_mutex_lock(&loop->lock);
    loop->asleep = idle && list_empty(&loop->mailbox);
    list_move_all(&loop->ready, &loop->mailbox);
    pthread_mutex_unlock(&loop->lock);
}

static void loop_on_before_poll(uv_prepare_t *handle) {
    struct loop *loop = handle->data;
    loop_run_all(loop);
    loop_take_mail(loop, true);
    if (!list_empty(&loop->ready)) /* it runs after a poll that doesn't block */
        uv_idle_start(&loop->again, loop_on_again);
}

static void loop_on_after_poll(uv_check_t *handle) {
    struct loop *loop = handle->data;
    loop_take_mail(loop, false);
    loop_run_all(loop);
}

static void loop_on_wake(uv_poll_t *handle, int failed, int events) {
    struct loop *loop = handle->data;
    uint64_t count;
    (void)failed;
    (void)events;
    ssize_t ignored = read(loop->wake_fd, &count, sizeof count);
    (void)ignored;
}

static void loop_on_stop(struct op *op) {
    uv_unref((uv_handle_t *)&op->loop->wake);
}

static enum status loop_open_handles(struct loop *loop) {
    if (uv_poll_init(&loop->uv, &loop->wake, loop->wake_fd))
        return ST_IO;
    uv_poll_start(&loop->wake, UV_READABLE, loop_on_wake); /* neither this nor the next ones can fail */
    uv_prepare_init(&loop->uv, &loop->before_poll);
    uv_check_init(&loop->uv, &loop->after_poll);
    uv_idle_init(&loop->uv, &loop->again);
    loop->wake.data = loop->before_poll.data = loop->after_poll.data = loop;
    uv_prepare_start(&loop->before_poll, loop_on_before_poll);
    uv_check_start(&loop->after_poll, loop_on_after_poll);
    uv_unref((uv_handle_t *)&loop->before_poll);
    uv_unref((uv_handle_t *)&loop->after_poll);
    uv_unref((uv_handle_t *)&loop->again);
    return ST_OK;
}

enum status loop_new(int index, struct loop **out) {
    struct loop *loop = mem_take_zeroed(1, sizeof *loop);
    if (!loop)
        return ST_NO_MEMORY;
    loop->index = index;
    list_init(&loop->ready);
    list_init(&loop->at_end);
    list_init(&loop->mailbox);
    op_init(&loop->stop, loop, loop_on_stop);

    enum status st = ST_IO;
    loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (loop->wake_fd < 0 || uv_loop_init(&loop->uv))
        goto fail;
    st = loop_open_handles(loop);
    if (st) {
        uv_loop_close(&loop->uv);
        goto fail;
    }
    pthread_mutex_init(&loop->lock, NULL);
    st = timers_new(&loop->uv, &loop->timers);
    if (st) {
        loop_free(loop);
        return st;
    }
    *out = loop;
    return ST_OK;

fail:
    if (loop->wake_fd >= 0)
        close(loop->wake_fd);
    mem_free(loop);
    return st;
}

static void *loop_main(void *arg) {
    struct loop *loop = arg;
    char name[32]; /* the system takes 15 bytes of it */
    snprintf(name, sizeof name, "loop-%d", loop->index);
    pthread_setname_np(pthread_self(), name);
    current = loop;
    uv_run(&loop->uv, UV_RUN_DEFAULT);

    loop_take_mail(loop, false);
    while (!list_empty(&loop->ready) || !list_empty(&loop->at_end))
        loop_run_ready(loop);
    return NULL;
}

enum status loop_start(struct loop *loop) {
    if (pthread_create(&loop->thread, NULL, loop_main, loop) != 0)
        return ST_IO;
    loop->started = true;
    return ST_OK;
}

void loop_stop(struct loop *loop) {
    if (!loop->started)
        return;
    assert(!current);
    loop_post(&loop->stop);
    pthread_join(loop->thread, NULL);
    loop->started = false;
}

void loop_free(struct loop *loop) {
    if (!loop)
        return;
    assert(!loop->started);
    timers_close(loop->timers);
    uv_close((uv_handle_t *)&loop->wake, NULL);
    uv_close((uv_handle_t *)&loop->before_poll, NULL);
    uv_close((uv_handle_t *)&loop->after_poll, NULL);
    uv_close((uv_handle_t *)&loop->again, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT); /* closing is all that is left to do */
    int still_open = uv_loop_close(&loop->uv);
    assert(!still_open);
    (void)still_open;
    close(loop->wake_fd);
    timers_free(loop->timers);
    pthread_mutex_destroy(&loop->lock);
    mem_free(loop);
}

int64_t loop_now_ms(const struct loop *loop) {
    return (int64_t)uv_now(&loop->uv);
}

struct loop *loop_current(void) {
    return current;
}

struct timers *loop_timers(struct loop *loop) {
    return loop->timers;
}

struct uv_loop_s *loop_uv(struct loop *loop) {
    return &loop->uv;
}

uint8_t *loop_scratch(struct loop *loop) {
    return loop->scratch;
}

void loop_post(struct op *op) {
    struct loop *loop = op->loop;
    assert(!link_in_list(&op->link));
    if (loop == current) {
        list_push_tail(&loop->ready, &op->link);
        return;
    }
    pthread_mutex_lock(&loop->lock);
    list_push_tail(&loop->mailbox, &op->link);
    if (loop->asleep) { /* under the lock: once it is free the loop may take the op, end, and be freed */
        ssize_t ignored = write(loop->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
        (void)ignored;
        loop->asleep = false;
    }
    pthread_mutex_unlock(&loop->lock);
}

void loop_at_end(struct loop *loop, struct op *hook) {
    assert(loop == current && hook->loop == loop);
    if (!link_in_list(&hook->link))
        list_push_tail(&loop->at_end, &hook->link);
}
