#include "iggy_server/iggy_server.h"

#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "iggy/header.h"
#include "iggy_server/client.h"
#include "net/listener.h"
#include "net/loop.h"

#define CHECK_MS 2000 /* between looks at silent members and old sessions */

/* ---- new ---- */

static void loops_init(struct iggy_server *s) {
    for (int i = 0; i < s->settings.loops_count; i++) {
        s->per_loop[i].server = s;
        list_init(&s->per_loop[i].clients);
    }
}

/* Numbers that go on where those of an earlier process may have ended: it can't have given more than one a millisecond. */
static enum status numbers_init(struct iggy_server *s) {
    int64_t now_ms = clock_wall_ms();
    uint64_t first = now_ms > 0 ? (uint64_t)now_ms : 1;
    s->started_us = now_ms * 1000;
    atomic_store(&s->metadata_op, first);
    atomic_store(&s->next_client, 1);
    return sessions_new(s, first, &s->sessions);
}

static enum status iggy_server_listen(struct iggy_server *s) {
    const struct iggy_server_settings *from = &s->settings;
    const struct listener_settings listen = {
        .address = from->bind_address,
        .connections_max = from->connections_max,
        .protocol = &client_protocol,
        .conn = {.frame_bytes_max = IGGY_FRAME_BYTES_MAX,
                 .idle_ms = CLIENT_LOGIN_MS,
                 .read_ms = from->read_ms,
                 .write_ms = from->write_ms,
                 .budget = from->budget,
                 .tls = from->tls},
        .user = s,
        .loops = from->loops,
        .loops_count = from->loops_count,
    };
    return listener_new(&listen, &s->listener);
}

static enum status texts_copy(struct iggy_server *s) {
    const struct iggy_server_settings *from = &s->settings;
    char *cluster_id = mem_text(str_of(from->cluster_id));
    char *data_dir = from->data_dir ? mem_text(str_of(from->data_dir)) : NULL;
    s->settings.cluster_id = cluster_id;
    bool missing = !cluster_id || (s->settings.data_dir && !data_dir);
    s->settings.data_dir = data_dir;
    if (missing)
        return ST_NO_MEMORY;
    struct bytes id = {(const uint8_t *)cluster_id, (int32_t)strlen(cluster_id)};
    s->cluster = iggy_body_checksum(id);
    return ST_OK;
}

enum status iggy_server_new(const struct iggy_server_settings *settings, struct iggy_server **out) {
    struct iggy_server *s = mem_take_zeroed(1, sizeof *s);
    if (!s)
        return ST_NO_MEMORY;
    s->settings = *settings;
    pthread_mutex_init(&s->logins.lock, NULL);
    list_init(&s->logins.waiting);
    int64_t polls_bytes = budget_free_bytes(settings->budget) / 2;
    enum status st = texts_copy(s);
    s->per_loop = mem_take_zeroed((size_t)settings->loops_count, sizeof *s->per_loop);
    if (!s->per_loop && !st)
        st = ST_NO_MEMORY;
    if (!st)
        loops_init(s);
    if (!st)
        st = budget_new(polls_bytes, &s->polls);
    if (!st)
        st = numbers_init(s);
    if (!st)
        st = groups_open(s, &s->groups);
    if (!st)
        st = iggy_server_listen(s);
    if (st)
        goto fail;
    *out = s;
    return ST_OK;

fail:;
    int err = errno; /* the listener's */
    iggy_server_free(s);
    errno = err;
    return st;
}

int iggy_server_port(const struct iggy_server *s) {
    return listener_port(s->listener);
}

void iggy_server_free(struct iggy_server *s) {
    if (!s)
        return;
    listener_free(s->listener);
    groups_close(s->groups);
    sessions_free(s->sessions);
    budget_free(s->polls);
    mem_free(s->per_loop);
    mem_free((void *)(uintptr_t)s->settings.cluster_id);
    mem_free((void *)(uintptr_t)s->settings.data_dir);
    pthread_mutex_destroy(&s->logins.lock);
    mem_free(s);
}

/* ---- running ---- */

static void loop_on_timer(struct timer *t) {
    struct iggy_loop *here = container_of(t, struct iggy_loop, timer);
    struct loop *loop = here->open.loop;
    int64_t now_ms = loop_now_ms(loop);
    for (struct link *l = here->clients.next; l != &here->clients; l = l->next)
        client_check_silence(container_of(l, struct client, link), now_ms);
    if (here == here->server->per_loop)
        sessions_sweep(here->server->sessions, now_ms);
    (void)!timer_set(loop_timers(loop), t, loop_on_timer, now_ms + CHECK_MS); /* no memory: it ends */
}

static void loop_on_open(struct op *op) {
    struct iggy_loop *here = container_of(op, struct iggy_loop, open);
    if (!atomic_load(&here->server->stopping))
        loop_on_timer(&here->timer);
}

void iggy_server_open(struct iggy_server *s) {
    for (int i = 0; i < s->settings.loops_count; i++) {
        op_init(&s->per_loop[i].open, s->settings.loops[i], loop_on_open);
        loop_post(&s->per_loop[i].open);
    }
    listener_open(s->listener);
}

static void loop_on_stop(struct op *op) {
    struct iggy_loop *here = container_of(op, struct iggy_loop, stop);
    timer_clear(loop_timers(op->loop), &here->timer);
    for (struct link *l = here->clients.next; l != &here->clients; l = l->next)
        client_cancel(container_of(l, struct client, link));
}

void iggy_server_stop(struct iggy_server *s, int64_t drain_ms, struct op *done) {
    atomic_store(&s->stopping, true);
    listener_drain(s->listener, drain_ms, done);
    for (int i = 0; i < s->settings.loops_count; i++) {
        op_init(&s->per_loop[i].stop, s->settings.loops[i], loop_on_stop);
        loop_post(&s->per_loop[i].stop);
    }
}
