/*
 * Threads for what would block a loop: disk, and compression of more than a few KiB.
 * Work is taken first in, first out; how many threads there are is set once at the start.
 */
#ifndef NET_WORK_H
#define NET_WORK_H

#include "base/base.h"
#include "base/list.h"

struct work;
typedef void work_fn(struct work *w);

/* Embedded by its user; zeroed before first use. May be submitted again once its run has begun. */
struct work {
    work_fn *run; /* on a thread of the pool */
    struct link link;
};

/* Start the pool. ST_NO_MEMORY, ST_IO. Once, before the first work_submit. */
enum status work_start(int threads_count) MUST_USE;

/* Run all that was submitted, then end the threads and wait for them. */
void work_stop(void);

/* Queue w. Any thread, a pool's own included. w stays where it is until run has been called. */
void work_submit(struct work *w, work_fn *run);
#endif
