/* A binary heap, earliest first, that starts at place 1: the parent of i is i / 2. Each timer knows its place. */
#include "net/timer.h"

#include <uv.h>

#include "base/mem.h"

struct timers {
    struct timer **heap; /* owned array of borrowed timers; heap[0] is not used */
    int32_t count, room;
    bool running;     /* inside timers_run, which arms at its end */
    int64_t armed_ms; /* what the uv timer waits for; -1: nothing */
    uv_timer_t uv;
};

static void timers_on_time(uv_timer_t *handle) {
    struct timers *timers = handle->data;
    timers->armed_ms = -1;
    timers_run(timers, (int64_t)uv_now(handle->loop));
}

static void timers_arm(struct timers *timers) {
    int64_t due_ms = timers->count > 0 ? timers->heap[1]->due_ms : -1;
    if (timers->running || due_ms == timers->armed_ms)
        return;
    timers->armed_ms = due_ms;
    if (due_ms < 0) {
        uv_timer_stop(&timers->uv);
        return;
    }
    int64_t wait_ms = due_ms - (int64_t)uv_now(timers->uv.loop);
    uv_timer_start(&timers->uv, timers_on_time, wait_ms > 0 ? (uint64_t)wait_ms : 0, 0);
}

static void timers_put(struct timers *timers, int32_t place, struct timer *t) {
    timers->heap[place] = t;
    t->place = place;
}

/* t belongs at place or above it or below it: move others until it stands right */
static void timers_settle(struct timers *timers, int32_t place, struct timer *t) {
    while (place > 1 && timers->heap[place / 2]->due_ms > t->due_ms) {
        timers_put(timers, place, timers->heap[place / 2]);
        place /= 2;
    }
    for (int32_t child; (child = place * 2) <= timers->count; place = child) {
        if (child < timers->count && timers->heap[child + 1]->due_ms < timers->heap[child]->due_ms)
            child++;
        if (timers->heap[child]->due_ms >= t->due_ms)
            break;
        timers_put(timers, place, timers->heap[child]);
    }
    timers_put(timers, place, t);
}

static enum status timers_grow(struct timers *timers) {
    if (timers->count + 1 < timers->room)
        return ST_OK;
    int32_t room = timers->room > 0 ? timers->room * 2 : 64;
    struct timer **heap = mem_grow(timers->heap, (size_t)room * sizeof *heap);
    if (!heap)
        return ST_NO_MEMORY;
    timers->heap = heap;
    timers->room = room;
    return ST_OK;
}

enum status timer_set(struct timers *timers, struct timer *t, timer_fn *fire, int64_t due_ms) {
    if (t->place == 0) {
        enum status st = timers_grow(timers);
        if (st)
            return st;
        t->place = ++timers->count;
    }
    t->fire = fire;
    t->due_ms = due_ms > 0 ? due_ms : 0;
    timers_settle(timers, t->place, t);
    timers_arm(timers);
    return ST_OK;
}

void timer_clear(struct timers *timers, struct timer *t) {
    int32_t place = t->place;
    if (place == 0)
        return;
    struct timer *last = timers->heap[timers->count--];
    t->place = 0;
    if (last != t)
        timers_settle(timers, place, last);
    timers_arm(timers);
}

void timers_run(struct timers *timers, int64_t now_ms) {
    timers->running = true;
    for (int32_t most = timers->count; most > 0 && timers->count > 0; most--) {
        struct timer *t = timers->heap[1];
        if (t->due_ms > now_ms)
            break;
        timer_clear(timers, t);
        t->fire(t);
    }
    timers->running = false;
    timers_arm(timers);
}

enum status timers_new(struct uv_loop_s *uv, struct timers **out) {
    struct timers *timers = mem_take_zeroed(1, sizeof *timers);
    if (!timers)
        return ST_NO_MEMORY;
    uv_timer_init(uv, &timers->uv);
    uv_unref((uv_handle_t *)&timers->uv);
    timers->uv.data = timers;
    timers->armed_ms = -1;
    *out = timers;
    return ST_OK;
}

void timers_close(struct timers *timers) {
    if (timers)
        uv_close((uv_handle_t *)&timers->uv, NULL);
}

void timers_free(struct timers *timers) {
    if (!timers)
        return;
    mem_free(timers->heap);
    mem_free(timers);
}
