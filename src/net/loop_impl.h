/* What the other files of net/ need of a loop. On the loop's own thread. */
#ifndef NET_LOOP_IMPL_H
#define NET_LOOP_IMPL_H

#include "base/base.h"

struct loop;
struct uv_loop_s;

#define LOOP_SCRATCH_BYTES ((size_t)64 * 1024)

struct uv_loop_s *loop_uv(struct loop *loop);

/* LOOP_SCRATCH_BYTES to receive into, shared by all sockets of the loop: nothing stays in it beyond one event of one socket. */
uint8_t *loop_scratch(struct loop *loop);
#endif
