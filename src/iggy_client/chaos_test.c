/*
 * A server on a thread of its own that cuts connections, answers late and out of order, and refuses for a while; and many calls,
 * some of them cancelled or short of time. Each call must end, and what it says must be true of what the server has seen.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/le.h"
#include "base/mem.h"
#include "iggy/errors.h"
#include "iggy_client/peer_test.h"
#include "net/loop.h"
#include "testing/test.h"

#define CALLS 150
#define HELD  3 /* requests that the server keeps back, to answer them out of order */
#define BODY  64

struct chaos {
    struct peer peer;
    uint32_t random;
    pthread_t thread;
    _Atomic bool ends;
    struct iggy_request_header held[HELD];
    int held_count;
    int seen[CALLS], answered[CALLS];       /* by the call's own number, which stands in its body */
    uint64_t number[CALLS], session[CALLS]; /* of the request that it came with last */
    bool renumbered;                        /* in one session with two numbers */
};

static uint32_t chaos_random(struct chaos *c, uint32_t below) {
    c->random = c->random * 1664525 + 1013904223;
    return (c->random >> 8) % below;
}

static bool chaos_recv(struct chaos *c, uint8_t *out, size_t len) {
    for (size_t at = 0; at < len;) {
        ssize_t n = recv(c->peer.fd, out + at, len - at, 0);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static bool chaos_take(struct chaos *c) {
    uint8_t head[IGGY_HEADER_BYTES];
    struct iggy_header h;
    if (!chaos_recv(c, head, sizeof head))
        return false;
    iggy_header_decode(head, &h);
    c->peer.h = h.request;
    c->peer.body_bytes = h.frame.size - IGGY_HEADER_BYTES;
    return c->peer.body_bytes <= PEER_BODY_BYTES_MAX && chaos_recv(c, c->peer.body, c->peer.body_bytes);
}

/* Frames of the server by hand: its memory is not the client's, of which some is missing in one of the tests. */
static bool chaos_answer(struct chaos *c, const struct iggy_request_header *request, const void *body,
                         size_t len) {
    uint8_t out[IGGY_HEADER_BYTES + 64] = {0};
    struct iggy_header h = {.frame = {.kind = IGGY_REPLY, .size = (uint32_t)(IGGY_HEADER_BYTES + len)},
                            .reply = {.request = request->request, .operation = request->operation}};
    iggy_header_encode(&h, out);
    memcpy(out + IGGY_HEADER_BYTES, body, len);
    return send(c->peer.fd, out, IGGY_HEADER_BYTES + len, MSG_NOSIGNAL) == (ssize_t)(IGGY_HEADER_BYTES + len);
}

/* user_id, session, protocol, version; behind a result section of 0 in the answer to a login */
static bool chaos_admit(struct chaos *c, bool login) {
    uint8_t body[4 + 4 + 8 + 4 + 2] = {0};
    le_set64(body + 8, login ? 1 + c->random : c->peer.h.session);
    le_set32(body + 16, c->peer.version);
    body[20] = 1;
    body[21] = '1';
    return chaos_answer(c, &c->peer.h, login ? body : body + 4, login ? sizeof body : sizeof body - 4);
}

static int32_t chaos_call_of(const struct chaos *c) {
    uint32_t at = c->peer.body_bytes >= BODY ? le_get32(c->peer.body + c->peer.body_bytes - BODY) : CALLS;
    return at < CALLS ? (int32_t)at : -1;
}

static bool chaos_answer_held(struct chaos *c) {
    bool sent = true;
    for (int i = c->held_count - 1; i >= 0; i--) /* the last one first */
        sent = sent && chaos_answer(c, &c->held[i], "", 0);
    c->held_count = 0;
    return sent;
}

static void chaos_note(struct chaos *c, int32_t call) {
    if (c->seen[call] > 0 && c->session[call] == c->peer.h.session && c->number[call] != c->peer.h.request)
        c->renumbered = true;
    c->seen[call]++;
    c->number[call] = c->peer.h.request;
    c->session[call] = c->peer.h.session;
}

static bool chaos_serve_one(struct chaos *c) {
    if (!chaos_take(c))
        return false;
    if (c->peer.h.operation == IGGY_OP_REGISTER)
        return chaos_admit(c, true);
    if (c->peer.h.code == IGGY_CMD_bind_session)
        return chaos_random(c, 4) == 0 ? false : chaos_admit(c, false);
    int32_t call = c->peer.h.operation == IGGY_OP_BY_CODE ? -1 : chaos_call_of(c);
    if (call >= 0)
        chaos_note(c, call);
    if (chaos_random(c, 25) == 0) /* before the answer */
        return false;
    c->held[c->held_count++] = c->peer.h;
    if (c->held_count == HELD || peer_is_quiet(&c->peer))
        return chaos_answer_held(c);
    return true;
}

static void *chaos_run(void *arg) {
    struct chaos *c = arg;
    while (!atomic_load(&c->ends)) {
        c->peer.fd = accept4(c->peer.listen_fd, NULL, NULL, SOCK_CLOEXEC);
        c->held_count = 0;
        while (c->peer.fd >= 0 && chaos_serve_one(c))
            continue;
        peer_hang_up(&c->peer);
    }
    return NULL;
}

static struct chaos chaos;
static struct rig rig;
static struct rig_call calls[CALLS];
static uint8_t bodies[CALLS][BODY];
static struct iggy_send_messages_req sends[CALLS];

static void chaos_start(uint32_t version, uint32_t seed) {
    memset(&chaos, 0, sizeof chaos);
    peer_open(&chaos.peer);
    chaos.random = seed;
    chaos.peer.version = version;
    CHECK_EQ(pthread_create(&chaos.thread, NULL, chaos_run, &chaos), 0);
    rig_start(&rig, chaos.peer.port, (struct rig_options){.version_newest = version, .in_flight_max = 8});
}

static void chaos_stop(void) {
    rig_stop(&rig);
    atomic_store(&chaos.ends, true);
    shutdown(chaos.peer.listen_fd, SHUT_RDWR); /* ends accept */
    CHECK_EQ(pthread_join(chaos.thread, NULL), 0);
    peer_close(&chaos.peer);
    CHECK(!chaos.renumbered);
}

static void call_begin(int i, uint32_t random) {
    le_set32(bodies[i], (uint32_t)i);
    sends[i] = (struct iggy_send_messages_req){
        .target = {.stream = iggy_by_id(1),
                   .topic = iggy_by_id(1),
                   .partitioning = {.kind = IGGY_PARTITION_ID, .partition_id = 0}},
        .batch = {bodies[i], BODY},
    };
    int64_t patience_ms = random % 10 == 1 ? 2 : LONG_MS;
    if (random % 3 == 0)
        rig_call(&rig, &calls[i], IGGY_CMD_get_streams, NULL, patience_ms);
    else
        rig_call(&rig, &calls[i], IGGY_CMD_send_messages, &sends[i], patience_ms);
    if (random % 11 == 2)
        rig_cancel(&calls[i]);
}

static bool is_an_end(const struct rig_call *c) {
    switch (c->status) {
    case ST_OK:
        return c->r.code == 0;
    case ST_TIMED_OUT:
    case ST_UNAVAILABLE:
    case ST_CANCELED:
        return true;
    default:
        return false;
    }
}

static void chaos_drive(uint32_t version, uint32_t seed) {
    uint32_t random = seed;
    chaos_start(version, seed);
    for (int i = 0; i < CALLS; i++) {
        random = random * 1664525 + 1013904223;
        call_begin(i, random >> 8);
        if (random >> 29 == 0)
            (void)rig_wait(&calls[i]);
    }
    for (int i = 0; i < CALLS; i++) {
        (void)rig_wait(&calls[i]);
        rig_release(&calls[i]);
    }
    chaos_stop();
    int done = 0;
    for (int i = 0; i < CALLS; i++) {
        CHECK(is_an_end(&calls[i]));
        bool write = calls[i].code == IGGY_CMD_send_messages;
        done += calls[i].status == ST_OK;
        if (write && calls[i].status == ST_OK)
            CHECK(chaos.seen[i] > 0);
        if (write && calls[i].status != ST_OK && !calls[i].r.may_have_landed)
            CHECK_EQ(chaos.seen[i], 0);
        if (version == IGGY_0_11)
            CHECK(chaos.seen[i] <= 1); /* nothing keeps a second one from being stored again */
    }
    CHECK(done > CALLS / 4);
}

TEST(whatever_happens_each_call_ends_with_what_is_true_on_0_11) {
    for (uint32_t seed = 1; seed <= 3; seed++)
        chaos_drive(IGGY_0_11, seed);
}

TEST(whatever_happens_each_call_ends_with_what_is_true_on_0_12) {
    for (uint32_t seed = 1; seed <= 3; seed++)
        chaos_drive(IGGY_0_12_2, seed);
}

/* One allocation after the other fails, from the call on: connection, login, frames. */
TEST(a_call_without_memory_ends) {
    bool all_done = false;
    for (int64_t nth = 1; !all_done; nth++) {
        chaos_start(IGGY_0_12_2, 7);
        chaos.random = 1;
        mem_fail_at(nth);
        call_begin(0, 1);
        enum status st = rig_wait(&calls[0]);
        all_done = mem_fail_pending();
        mem_fail_at(0);
        CHECK(st == ST_NO_MEMORY || is_an_end(&calls[0]));
        CHECK(nth < 200);
        rig_release(&calls[0]);
        chaos_stop();
    }
}
