/* Frames in: socket -> loop's scratch memory, or the frame's own when much of it is missing -> on_frame. */
#include <errno.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "net/conn_impl.h"
#include "net/loop.h"
#include "net/loop_impl.h"

#define READ_ROUNDS_MAX   16 /* receive calls for one event, so that one fast sender doesn't hold the loop */
#define FRAME_BYTES_FIRST ((uint32_t)64 * 1024) /* B-1: what is announced is not allocated before it comes */
#define DIRECT_BYTES_MIN  ((uint32_t)8 * 1024)

void frame_free(struct frame *f) {
    if (!f)
        return;
    budget_give(f->budget, f->reserved_bytes);
    mem_free(f); /* the data is behind it */
}

bool conn_reads(const struct conn *c) {
    return !c->closing && !c->reading_ended && !c->paused && !c->wait.op.pending &&
           !link_in_list(&c->resume.link); /* first what is stashed */
}

/* --- frames --- */

/* Room for have bytes of the frame at least. Grows fourfold: of what has come little is copied again. */
static enum status conn_frame_grow(struct conn *c, uint32_t have) {
    if (have <= c->frame_room)
        return ST_OK;
    uint32_t room = c->frame_bytes / 4 > c->frame_room ? c->frame_room * 4 : c->frame_bytes;
    if (room < have)
        room = have;
    struct frame *f = mem_grow(c->frame, sizeof *f + room);
    if (!f)
        return ST_NO_MEMORY;
    f->data = (uint8_t *)(f + 1);
    c->frame = f;
    c->frame_room = room;
    return ST_OK;
}

/* A head is there: begin its frame. False: it isn't acceptable and the conn closes, or it waits for memory. */
static bool conn_frame_begin(struct conn *c, const uint8_t *head) {
    const struct conn_protocol *protocol = c->home->protocol;
    struct budget *budget = c->home->settings->budget;
    int64_t bytes = protocol->frame_bytes(head, c->frame_bytes_max);
    if (bytes < protocol->head_bytes || bytes > INT32_MAX) {
        conn_close(c);
        return false;
    }
    if (c->granted_bytes == 0 && !budget_try(budget, bytes)) {
        budget_take(budget, &c->wait, bytes);
        return false;
    }
    c->granted_bytes = 0;
    uint32_t room = bytes < FRAME_BYTES_FIRST ? (uint32_t)bytes : FRAME_BYTES_FIRST;
    struct frame *f = mem_take(sizeof *f + room);
    if (!f) {
        budget_give(budget, bytes);
        conn_close_as(c, ST_NO_MEMORY);
        return false;
    }
    *f = (struct frame){(uint8_t *)(f + 1), (uint32_t)bytes, bytes, budget};
    c->frame = f;
    c->frame_bytes = (uint32_t)bytes;
    c->frame_have = 0;
    c->frame_room = room;
    return true;
}

/* len more bytes stand in the frame's memory */
static void conn_frame_add(struct conn *c, uint32_t len) {
    c->frame_have += len;
    if (c->frame_have < c->frame_bytes)
        return;
    struct frame *f = c->frame;
    c->frame = NULL;
    c->deadline = CONN_NO_DEADLINE;
    c->home->protocol->on_frame(c, f);
}

/* Take frames out of len bytes at p; returns how many bytes were used. p may be gone when the conn is closing afterwards. */
static size_t conn_parse(struct conn *c, const uint8_t *p, size_t len) {
    size_t used = 0;
    while (used < len && conn_reads(c)) {
        if (!c->frame && (len - used < c->home->protocol->head_bytes || !conn_frame_begin(c, p + used)))
            break;
        size_t missing = c->frame_bytes - c->frame_have;
        uint32_t part = (uint32_t)(len - used < missing ? len - used : missing);
        if (conn_frame_grow(c, c->frame_have + part)) {
            conn_close_as(c, ST_NO_MEMORY);
            break;
        }
        memcpy(c->frame->data + c->frame_have, p + used, part);
        used += part;
        conn_frame_add(c, part);
    }
    return used;
}

/* --- the stash: what was received and can't be parsed yet --- */

static void conn_stash_drop(struct conn *c) {
    mem_free(c->stash);
    c->stash = NULL;
    c->stash_at = c->stash_end = 0;
}

static void conn_stash_keep(struct conn *c, const uint8_t *p, size_t len) {
    if (len == 0 || c->closing || c->reading_ended)
        return;
    c->stash = mem_take(len);
    if (!c->stash) {
        conn_close_as(c, ST_NO_MEMORY);
        return;
    }
    memcpy(c->stash, p, len);
    c->stash_end = (uint32_t)len;
}

static void conn_go_on(struct conn *c) {
    if (c->stash && conn_reads(c)) {
        size_t used = conn_parse(c, c->stash + c->stash_at, c->stash_end - c->stash_at);
        if (c->stash) {
            c->stash_at += (uint32_t)used;
            if (c->stash_at == c->stash_end)
                conn_stash_drop(c);
        }
    }
    conn_deadline_update(c);
    conn_arm(c, 0);
}

static void conn_on_resume(struct op *op) {
    struct conn *c = container_of(op, struct conn, resume);
    conn_go_on(c);
    if (conn_tls_has_more(c) && conn_reads(c)) {
        conn_read(c);
        conn_arm(c, 0);
    }
}

void conn_read_more(struct conn *c) {
    if (conn_tls_has_more(c) && conn_reads(c))
        loop_post(&c->resume);
}

void conn_pause(struct conn *c) {
    c->paused = true;
    conn_deadline_update(c);
}

void conn_resume(struct conn *c) {
    if (!c->paused)
        return;
    c->paused = false;
    if (!c->stash) {
        conn_read_more(c);
        conn_deadline_update(c);
        conn_arm(c, 0);
    } else if (!link_in_list(&c->resume.link)) {
        loop_post(&c->resume);
    }
}

static void conn_on_budget(struct op *op) {
    struct conn *c = container_of(op, struct conn, wait.op);
    if (op->status == ST_OK && c->reading_ended)
        budget_give(c->wait.budget, c->wait.bytes);
    else if (op->status == ST_OK)
        c->granted_bytes = c->wait.bytes;
    if (c->closing) {
        conn_end_if_closed(c);
        return;
    }
    conn_go_on(c);
    conn_read_more(c);
}

/* --- the socket --- */

static void conn_end_of_input(struct conn *c) {
    c->peer_ended = true;
    conn_stop_reading(c);
    conn_tell_end(c);
}

/* The outcome of a receive call: how many bytes came. 0: none now, or the reading is over. */
static size_t conn_received(struct conn *c, ssize_t n) {
    if (n > 0)
        return (size_t)n;
    if (n == 0)
        conn_end_of_input(c);
    else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        conn_close_as(c, ST_IO);
    return 0;
}

static ssize_t conn_recv(struct conn *c, void *out, size_t len) {
    return c->tls ? conn_tls_recv(c, out, len) : recv(c->fd, out, len, 0);
}

/* Receive once. True: there may be more. */
static bool conn_read_into_frame(struct conn *c) {
    if (c->frame_have == c->frame_room && conn_frame_grow(c, c->frame_have + 1)) {
        conn_close_as(c, ST_NO_MEMORY);
        return false;
    }
    uint32_t room = c->frame_room - c->frame_have;
    size_t n = conn_received(c, conn_recv(c, c->frame->data + c->frame_have, room));
    if (n > 0)
        conn_frame_add(c, (uint32_t)n);
    return n == room;
}

static bool conn_read_into_scratch(struct conn *c) {
    uint8_t *scratch = loop_scratch(conn_loop(c));
    size_t old = c->stash_end - c->stash_at;
    if (old > 0)
        memcpy(scratch, c->stash + c->stash_at, old);
    size_t n = conn_received(c, conn_recv(c, scratch + old, LOOP_SCRATCH_BYTES - old));
    if (n == 0)
        return false;
    conn_stash_drop(c);
    size_t used = conn_parse(c, scratch, old + n);
    conn_stash_keep(c, scratch + used, old + n - used);
    return old + n == LOOP_SCRATCH_BYTES;
}

void conn_read(struct conn *c) {
    bool more = true;
    for (int round = 0; more && round < READ_ROUNDS_MAX && conn_reads(c); round++)
        more = c->frame && c->frame_bytes - c->frame_have >= DIRECT_BYTES_MIN ? conn_read_into_frame(c)
                                                                              : conn_read_into_scratch(c);
    conn_read_more(c);
    conn_deadline_update(c);
}

/* With TLS too: what it says doesn't matter any more. */
void conn_discard(struct conn *c) {
    size_t n = LOOP_SCRATCH_BYTES;
    for (int round = 0; n == LOOP_SCRATCH_BYTES && round < READ_ROUNDS_MAX; round++)
        n = conn_received(c, recv(c->fd, loop_scratch(conn_loop(c)), LOOP_SCRATCH_BYTES, 0));
    if (c->peer_ended && c->fin_sent)
        conn_close(c);
}

void conn_read_init(struct conn *c) {
    op_init(&c->resume, conn_loop(c), conn_on_resume);
    op_init(&c->wait.op, conn_loop(c), conn_on_budget);
}

void conn_stop_reading(struct conn *c) {
    c->reading_ended = true;
    frame_free(c->frame);
    c->frame = NULL;
    conn_stash_drop(c);
    list_remove(&c->resume.link);
    op_cancel(&c->wait.op);
    if (c->granted_bytes > 0) {
        budget_give(c->home->settings->budget, c->granted_bytes);
        c->granted_bytes = 0;
    }
}

void conn_tell_end(struct conn *c) {
    if (c->end_told)
        return;
    c->end_told = true;
    c->home->protocol->on_idle_end(c);
}
