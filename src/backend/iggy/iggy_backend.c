#include "backend/iggy/iggy_backend.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "backend/iggy/ahead.h"
#include "backend/iggy/group_offsets.h"
#include "backend/iggy/iggy_impl.h"
#include "backend/iggy/listing.h"
#include "backend/iggy/offset_lanes.h"
#include "backend/iggy/offsets_log.h"
#include "backend/iggy/producers.h"
#include "backend/iggy/start.h"
#include "backend/iggy/view.h"
#include "base/clock.h"
#include "base/logging.h"
#include "base/mem.h"
#include "iggy/errors.h"
#include "net/loop.h"

#define CONNECT_MS       ((int64_t)5000) /* one attempt */
#define DECODE_CAPS      4 /* D1-43, D1-44: so many partition caps for what is large, and one for the rest */
#define ANSWERS_BYTES    ((int64_t)64 << 20)
#define CLUSTER_ID_BYTES 24 /* 16 bytes in base 64, and the end */

static const struct backend_ops iggy_ops = {
    .name = "iggy",
    .controller = true,
    .topics = iggy_topics_op,
    .create = iggy_create_op,
    .delete = iggy_delete_op,
    .grow = iggy_grow_op,
    .configure = iggy_configure_op,
    .append = iggy_append_op,
    .read = iggy_read_op,
    .read_release = iggy_read_release_op,
    .watch = iggy_watch_op,
    .offsets = iggy_offsets_op,
    .commit = iggy_commit_op,
    .committed = iggy_committed_op,
    .groups = iggy_groups_op,
};

/* ---- what belongs to a loop ---- */

struct bridge_loop *bridge_here(struct bridge *b) {
    struct loop *loop = loop_current();
    for (int i = 0; i < b->settings.loops_count; i++)
        if (b->per_loop[i].loop == loop)
            return &b->per_loop[i];
    assert(false); /* backends are called on their loops only */
    return NULL;
}

struct iggy_client *bridge_client_new(struct bridge_loop *l, int32_t in_flight_max, struct budget *answers) {
    struct iggy_client_settings want;
    struct iggy_client *client;
    if (l->stopping)
        return NULL;
    bridge_client_settings(&l->bridge->settings, l->loop, &want);
    want.in_flight_max = in_flight_max;
    want.budget = answers;
    if (iggy_client_new(&want, &client))
        return NULL;
    l->open++;
    return client;
}

void bridge_client_settings(const struct iggy_backend_settings *s, struct loop *loop,
                            struct iggy_client_settings *out) {
    *out = (struct iggy_client_settings){
        .loop = loop,
        .host = s->host,
        .port = s->port,
        .username = s->username,
        .password = s->password,
        .version_newest = IGGY_NEWEST,
        .in_flight_max = 1,
        .connect_ms = CONNECT_MS,
        .tls = s->tls,
        .tls_name = s->tls_name,
        .budget = s->budget,
    };
}

struct iggy_client *bridge_control(struct bridge_loop *l) {
    if (!l->control)
        l->control = bridge_client_new(l, CALLS_FLIGHT_MAX, l->bridge->answers);
    return l->control;
}

struct iggy_client *bridge_reader(struct bridge_loop *l, uint32_t use) {
    struct iggy_client **reader = &l->readers[use % READERS_MAX];
    if (!*reader)
        *reader = bridge_client_new(l, READS_FLIGHT_MAX, l->bridge->settings.budget);
    return *reader;
}

/* one less; the last one of a loop that is stopping says so. */
static void loop_closed_one(struct bridge_loop *l) {
    if (--l->open == 0)
        sem_post(&l->bridge->closed);
}

static void closing_on_gone(struct op *op) {
    struct closing *c = container_of(op, struct closing, op);
    struct bridge_loop *l = c->loop;
    if (c->gone)
        c->gone(c);
    loop_closed_one(l);
}

void bridge_client_close(struct bridge_loop *l, struct iggy_client *client, struct closing *c) {
    c->loop = l;
    op_init(&c->op, l->loop, closing_on_gone);
    iggy_client_close(client, &c->op);
}

static void loop_on_stop(struct op *op) {
    struct bridge_loop *l = container_of(op, struct bridge_loop, stop_op);
    l->stopping = true;
    producers_stop(l->producers);
    offset_lanes_stop(l->offset_lanes);
    aheads_stop(l->aheads);
    for (int i = 0; i < READERS_MAX; i++) {
        if (l->readers[i])
            bridge_client_close(l, l->readers[i], &l->reader_closing[i]);
        l->readers[i] = NULL; /* who still comes finds none */
    }
    if (l->control)
        bridge_client_close(l, l->control, &l->control_closing);
    l->control = NULL;
    loop_closed_one(l);
}

static enum status loop_build(struct bridge_loop *l, struct bridge *b, struct loop *loop) {
    l->bridge = b;
    l->loop = loop;
    l->open = 1;
    list_init(&l->watches);
    list_init(&l->offset_commits);
    enum status st = views_new(l, &l->views);
    if (!st)
        st = offset_lanes_new(l, &l->offset_lanes);
    if (!st)
        st = offsets_log_new(l, &l->offsets_log);
    if (!st)
        st = aheads_new(l, &l->aheads);
    if (!st)
        st = listings_new(l, &l->listings);
    return st ? st : producers_new(l, &l->producers);
}

/* ---- what a request came to ---- */

static enum status answered(const struct iggy_request *r, enum iggy_call_kind call) {
    enum status st = iggy_status_of(r->code, call);
    if (st == ST_REFUSED)
        log_line_limited(LOG_WARN, "iggy", "the Iggy server refused a request",
                         LTEXT("command", r->command ? r->command->name : "?"), LINT("code", r->code),
                         LTEXT("error", iggy_error_name(r->code)));
    return st;
}

enum status bridge_status(const struct iggy_request *r, enum iggy_call_kind call) {
    bool changes = call == IGGY_CALL_SEND || call == IGGY_CALL_ADMIN;
    switch (r->op.status) {
    case ST_OK:
        return answered(r, call);
    case ST_TIMED_OUT: /* F: a look-up of topics, too, is 7 */
        return changes ? ST_TIMED_OUT : ST_UNAVAILABLE;
    case ST_CANCELED:
        return r->may_have_landed && changes ? ST_TIMED_OUT : ST_UNAVAILABLE;
    case ST_INVALID:
    case ST_UNSUPPORTED:
        return ST_REFUSED;
    default:
        return r->op.status;
    }
}

/* ---- the whole ---- */

static bool copy_text(const char **text) {
    if (*text)
        *text = mem_text(str_of(*text));
    return *text != NULL;
}

static enum status settings_copy(struct bridge *b, const struct iggy_backend_settings *settings) {
    struct iggy_backend_settings *s = &b->settings;
    *s = *settings;
    bool fine = copy_text(&s->host);
    fine &= copy_text(&s->username);
    fine &= copy_text(&s->password);
    fine &= copy_text(&s->tls_name) || !settings->tls_name;
    s->cluster_id = NULL; /* b->cluster_id */
    return fine ? ST_OK : ST_NO_MEMORY;
}

static void texts_free(struct iggy_backend_settings *s) {
    mem_free((void *)(uintptr_t)s->host);
    mem_free((void *)(uintptr_t)s->username);
    mem_free((void *)(uintptr_t)s->password);
    mem_free((void *)(uintptr_t)s->tls_name);
}

/* As Kafka writes its own: 16 bytes in base 64 that a URL may hold. */
static enum status cluster_id_settle(struct bridge *b, const char *set) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    char made[CLUSTER_ID_BYTES] = "";
    uint32_t bits = 0;
    int have = 0, len = 0;
    for (size_t i = 0; i < sizeof b->cluster.b; i++) {
        bits = bits << 8 | b->cluster.b[i];
        for (have += 8; have >= 6; have -= 6)
            made[len++] = digits[bits >> (have - 6) & 63];
    }
    made[len] = digits[bits << (6 - have) & 63];
    b->cluster_id = mem_text(str_of(set ? set : made));
    return b->cluster_id ? ST_OK : ST_NO_MEMORY;
}

static enum status bridge_build(struct bridge *b) {
    int64_t cap = b->settings.batch_bytes_max;
    enum status st = budget_new(cap * DECODE_CAPS, &b->decoding);
    if (!st)
        st = budget_new(cap, &b->decoding_small);
    if (!st)
        st = budget_new(ANSWERS_BYTES, &b->answers);
    b->per_loop = mem_take_zeroed((size_t)b->settings.loops_count, sizeof *b->per_loop);
    if (!b->per_loop)
        return ST_NO_MEMORY;
    for (int i = 0; !st && i < b->settings.loops_count; i++)
        st = loop_build(&b->per_loop[i], b, b->settings.loops[i]);
    return st;
}

enum status iggy_backend_new(const struct iggy_backend_settings *settings, struct backend **out,
                             char reason_out[512]) {
    enum status st = ST_NO_MEMORY;
    struct bridge *b = mem_take_zeroed(1, sizeof *b);
    reason_out[0] = '\0';
    if (!b)
        goto fail;
    b->base.ops = &iggy_ops;
    sem_init(&b->closed, 0, 0);
    st = settings_copy(b, settings);
    if (!st)
        st = bridge_build(b);
    if (!st)
        st = bridge_look(b, reason_out);
    if (!st)
        st = cluster_id_settle(b, settings->cluster_id);
    if (st)
        goto fail;
    *out = &b->base;
    return ST_OK;

fail:
    if (!reason_out[0])
        snprintf(reason_out, 512, "the connection to the Iggy server can't be made: %s", status_text(st));
    iggy_backend_free(b ? &b->base : NULL);
    return st;
}

const char *iggy_backend_cluster_id(const struct backend *b) {
    return container_of(b, struct bridge, base)->cluster_id;
}

uint32_t iggy_backend_version(const struct backend *b) {
    return container_of(b, struct bridge, base)->version;
}

void iggy_backend_stop(struct backend *backend) {
    struct bridge *b = bridge_of(backend);
    const struct timespec until = {.tv_sec = (time_t)((clock_wall_ms() + CLOSE_WAIT_MS) / 1000)};
    for (int i = 0; i < b->settings.loops_count; i++) {
        struct bridge_loop *l = &b->per_loop[i];
        op_init(&l->stop_op, l->loop, loop_on_stop);
        loop_post(&l->stop_op);
    }
    for (int i = 0; i < b->settings.loops_count; i++) {
        int failed;
        while ((failed = sem_timedwait(&b->closed, &until)) != 0 && errno == EINTR)
            continue;
        if (failed)
            log_line(LOG_WARN, "iggy", "connections to the Iggy server did not close in time");
    }
}

void iggy_backend_free(struct backend *backend) {
    if (!backend)
        return;
    struct bridge *b = bridge_of(backend);
    for (int i = 0; b->per_loop && i < b->settings.loops_count; i++) {
        struct bridge_loop *l = &b->per_loop[i];
        producers_free(l->producers);
        offsets_log_free(l->offsets_log);
        offset_lanes_free(l->offset_lanes);
        aheads_free(l->aheads);
        views_free(l->views);
        listings_free(l->listings);
    }
    mem_free(b->per_loop);
    budget_free(b->decoding);
    budget_free(b->decoding_small);
    budget_free(b->answers);
    sem_destroy(&b->closed);
    texts_free(&b->settings);
    mem_free(b->cluster_id);
    mem_free(b);
}
