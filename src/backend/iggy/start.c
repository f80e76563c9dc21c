/*
 *   bridge_look -> [a loop of its own] connect -> look_on_connected -> get_stream -> look_on_stream
 *                                        ^-- again: DIALS times, a second apart       -> create_stream -> get_stream once more
 *               <- [semaphore] look_end: close the client
 */
#include "backend/iggy/start.h"

#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/le.h"
#include "base/mem.h"
#include "iggy/errors.h"
#include "net/loop.h"

#define LOOK_MS          ((int64_t)14500) /* 15 s in all */
#define DIALS            3                /* after the first */
#define PAUSE_MS         1000
#define LOOP_INDEX       99 /* for its thread's name */
#define ANSWER_BYTES_MAX ((size_t)64 << 20)
#define REASON_BYTES     512

struct look {
    struct bridge *bridge;
    struct loop *loop;
    struct iggy_client *client;
    struct op begin, closed;
    struct iggy_wait wait;
    struct timer pause;
    int dials;
    int64_t deadline_ms;
    struct iggy_create_stream_req create;
    struct iggy_stream_req find;
    struct iggy_request request;
    bool created;
    enum status status;
    char *reason; /* borrowed; REASON_BYTES */
    sem_t ended;
};

static void look_connect(struct look *k);
static void look_on_connected(struct op *op);
static void look_find_stream(struct look *k);
static void look_on_stream(struct op *op);
static void look_create_stream(struct look *k);
static void look_on_created(struct op *op);

static void look_on_closed(struct op *op) {
    sem_post(&container_of(op, struct look, closed)->ended);
}

static void look_end(struct look *k, enum status st) {
    k->status = st;
    iggy_request_release(&k->request);
    op_init(&k->closed, k->loop, look_on_closed);
    if (k->client)
        iggy_client_close(k->client, &k->closed);
    else
        loop_post(&k->closed);
}

/* One sentence: what failed, where, why. */
static void look_fail(struct look *k, enum status st, const char *what, const char *why) {
    const struct iggy_backend_settings *s = &k->bridge->settings;
    snprintf(k->reason, REASON_BYTES, "%s %s:%d: %s", what, s->host, s->port, why[0] ? why : status_text(st));
    look_end(k, st);
}

static const char *stream_of(const struct look *k) {
    return k->bridge->settings.topic_map->default_stream;
}

/* ---- connect and log in ---- */

static void look_begin(struct op *op) {
    struct look *k = container_of(op, struct look, begin);
    struct iggy_client_settings want;
    bridge_client_settings(&k->bridge->settings, k->loop, &want);
    k->deadline_ms = loop_now_ms(k->loop) + LOOK_MS;
    enum status st = iggy_client_new(&want, &k->client);
    if (st)
        look_end(k, st);
    else
        look_connect(k);
}

static void look_connect(struct look *k) {
    k->wait = (struct iggy_wait){.deadline_ms = k->deadline_ms};
    op_init(&k->wait.op, k->loop, look_on_connected);
    iggy_client_connect(k->client, &k->wait);
}

static void look_on_pause(struct timer *t) {
    look_connect(container_of(t, struct look, pause));
}

static void look_on_connected(struct op *op) {
    struct look *k = container_of(op, struct look, wait.op);
    const char *why = iggy_client_failed(k->client);
    if (op->status == ST_OK) {
        k->bridge->version = iggy_client_version(k->client);
        look_find_stream(k);
    } else if (op->status == ST_LOGIN_REFUSED) {
        look_fail(k, op->status, "can't log in with this user name and password to the Iggy server at", why);
    } else if (op->status != ST_UNAVAILABLE || k->dials++ == DIALS ||
               loop_now_ms(k->loop) + PAUSE_MS >= k->deadline_ms ||
               timer_set(loop_timers(k->loop), &k->pause, look_on_pause, loop_now_ms(k->loop) + PAUSE_MS)) {
        look_fail(k, op->status, "can't connect to the Iggy server at", why);
    }
}

/* ---- the default stream ---- */

static void look_call(struct look *k, op_fn *done, uint32_t code, const void *in) {
    iggy_request_release(&k->request);
    k->request = (struct iggy_request){.deadline_ms = k->deadline_ms};
    op_init(&k->request.op, k->loop, done);
    iggy_client_call(k->client, &k->request, code, in);
}

static void look_find_stream(struct look *k) {
    k->find.stream = iggy_by_name(str_of(stream_of(k)));
    look_call(k, look_on_stream, IGGY_CMD_get_stream, &k->find);
}

static void cluster_settle(struct look *k, const struct iggy_stream *stream) {
    struct iggy_u128 id = iggy_client_cluster(k->client);
    uint8_t in[12];
    memcpy(k->bridge->cluster.b, id.b, sizeof id.b);
    if (!iggy_u128_is_zero(&id))
        return;
    le_set32(in, stream->id);
    le_set64(in + 4, stream->created_at_us);
    XXH128_canonicalFromHash((XXH128_canonical_t *)(void *)k->bridge->cluster.b, XXH3_128bits(in, sizeof in));
}

/* The topic that a name of the map hides; len -1: none. */
static struct str shadowed_topic(const struct look *k, const struct iggy_get_stream_res *res) {
    for (uint32_t i = 0; i < res->stream.topics_count; i++) {
        const struct iggy_place place = {str_of(stream_of(k)), res->topics[i].name};
        struct str name;
        bool shadowed;
        if (!topic_map_name_of(k->bridge->settings.topic_map, &place, &name, &shadowed) && shadowed)
            return res->topics[i].name;
    }
    return STR_NULL;
}

static void look_at_stream(struct look *k, const struct iggy_get_stream_res *res) {
    struct str hidden = shadowed_topic(k, res);
    if (hidden.len >= 0) {
        snprintf(k->reason, REASON_BYTES,
                 "the topic map gives the name %.*s to another Iggy topic, and stream %s has a topic of that "
                 "name, which no Kafka client could reach",
                 (int)hidden.len, hidden.ptr, stream_of(k));
        look_end(k, ST_INVALID);
        return;
    }
    cluster_settle(k, &res->stream);
    look_end(k, ST_OK);
}

static void look_on_stream(struct op *op) {
    struct look *k = container_of(op, struct look, request.op);
    struct iggy_get_stream_res res = {.found = false};
    struct arena a;
    arena_init(&a, NULL, 0, ANSWER_BYTES_MAX);
    enum status st = bridge_status(&k->request, IGGY_CALL_ADMIN);
    if (!st)
        st = iggy_request_decode(&k->request, &a, &res);
    if (!k->created && (st == ST_NOT_FOUND || (!st && !res.found)))
        look_create_stream(k);
    else if (st || !res.found)
        look_fail(k, st ? st : ST_NOT_FOUND, "the default stream can't be read from the Iggy server at",
                  k->request.code ? iggy_error_name(k->request.code) : "");
    else
        look_at_stream(k, &res);
    arena_release(&a);
}

static void look_create_stream(struct look *k) {
    k->created = true;
    k->create.name = str_of(stream_of(k));
    look_call(k, look_on_created, IGGY_CMD_create_stream, &k->create);
}

static void look_on_created(struct op *op) {
    struct look *k = container_of(op, struct look, request.op);
    enum status st = bridge_status(&k->request, IGGY_CALL_ADMIN);
    if (st && st != ST_EXISTS)
        look_fail(k, st, "the default stream can't be created on the Iggy server at",
                  k->request.code ? iggy_error_name(k->request.code) : "");
    else
        look_find_stream(k);
}

/* ---- from outside ---- */

enum status bridge_look(struct bridge *b, char reason_out[512]) {
    struct look *k = mem_take_zeroed(1, sizeof *k);
    enum status st = k ? loop_new(LOOP_INDEX, &k->loop) : ST_NO_MEMORY;
    if (st) {
        mem_free(k);
        return st;
    }
    k->bridge = b;
    k->reason = reason_out;
    sem_init(&k->ended, 0, 0);
    op_init(&k->begin, k->loop, look_begin);
    st = loop_start(k->loop);
    if (!st) {
        loop_post(&k->begin);
        while (sem_wait(&k->ended) != 0)
            continue;
        loop_stop(k->loop);
        st = k->status;
    }
    loop_free(k->loop);
    sem_destroy(&k->ended);
    mem_free(k);
    return st;
}
