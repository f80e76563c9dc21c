/*
 * Iggy bodies, frames, TLV blocks and batches. The first two bytes of an input choose a command by its code, the third
 * the version, the fourth the direction; the rest is the body. What decodes must encode, and that must decode and
 * encode to itself.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "iggy/batch.h"
#include "iggy/codec.h"
#include "iggy/commands.h"
#include "iggy/login.h"
#include "iggy/session.h"
#include "iggy/tlv.h"

#define CODES 607 /* the greatest is 606 */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static _Alignas(max_align_t) uint8_t msg[1024];

static void require(bool claim) {
    if (!claim)
        abort();
}

/* {NULL, -1}: body doesn't decode. Else its encoding, on the heap. */
static struct bytes recode(const struct iggy_schema *s, uint32_t version, struct bytes body) {
    struct arena a;
    struct wbuf w;
    struct bytes out = BYTES_NULL;
    arena_init(&a, NULL, 0, 64 * (size_t)body.len + 1024 * 1024);
    wbuf_init(&w, (size_t)body.len);
    require(s->size <= sizeof msg);
    enum status st = iggy_decode(s, version, body, &a, msg);
    require(st != ST_NO_MEMORY);
    if (!st) {
        require(!iggy_encode(s, version, msg, &w));
        uint8_t *flat = mem_take(w.bytes + 1);
        require(flat != NULL);
        wbuf_flatten(&w, flat);
        out = (struct bytes){flat, (int32_t)w.bytes};
    }
    wbuf_release(&w);
    arena_release(&a);
    return out;
}

static void fuzz_body(const uint8_t *data, size_t size) {
    static const uint32_t versions[] = {IGGY_0_11, IGGY_0_12_0, IGGY_0_12_1, IGGY_0_12_2};
    uint32_t version = versions[data[2] % COUNT_OF(versions)];
    const struct iggy_command *c = iggy_command_by_code((uint32_t)(data[0] | data[1] << 8) % CODES, version);
    if (!c)
        return;
    const struct iggy_schema *s = data[3] & 1 ? c->answer() : c->request();
    struct bytes once = recode(s, version, (struct bytes){data + 4, (int32_t)(size - 4)});
    if (once.len < 0)
        return;
    struct bytes twice = recode(s, version, once);
    require(twice.len == once.len && memcmp(twice.ptr, once.ptr, (size_t)once.len) == 0);
    mem_free((void *)(uintptr_t)once.ptr);
    mem_free((void *)(uintptr_t)twice.ptr);
}

static void fuzz_frames(const uint8_t *data, size_t size) {
    struct rbuf in = {data, data + size};
    struct iggy_header h;
    struct bytes body;
    while (!iggy_frame_next(&in, IGGY_FRAME_BYTES_MAX, &h, &body)) {
        struct iggy_outcome outcome;
        struct iggy_login login;
        if (h.frame.kind == IGGY_REPLY && !iggy_reply_open(&h.reply, body, &outcome))
            require(outcome.code == 0 || outcome.payload.len < 0);
        if (h.frame.kind == IGGY_REQUEST && iggy_request_is_sound(&h.request) &&
            iggy_request_checksum_is_good(&h.request, body) && !iggy_login_decode(body, &login))
            require(iggy_version_is_known(login.protocol));
    }
}

/* A batch with good checksums is well formed to its last message. */
static void fuzz_batch(struct bytes in) {
    struct iggy_batch b;
    if (iggy_batch_read(in, true, &b))
        return;
    bool good = iggy_batch_check(&b, false) == ST_OK;
    struct iggy_messages_iter it;
    struct iggy_message m;
    enum status st;
    iggy_messages_init(&it, &b);
    while (!(st = iggy_messages_next(&it, &m)))
        require(m.payload.len >= 0 && m.headers.len >= 0);
    require(!good || st == ST_NOT_FOUND);
}

/*
 * A server that answers anything: each frame of the input, or what is left of it, after whatever the session has sent.
 * Whatever it says, the call ends once, at the latest when the connection is gone and its deadline has come.
 */
static void fuzz_session(uint32_t version, const uint8_t *data, size_t size) {
    static const struct iggy_session_config config = {.username = {"user", 4},
                                                      .password = {"word", 4},
                                                      .sdk_name = {"s", 1},
                                                      .sdk_version = {"1", 1},
                                                      .version_newest = IGGY_NEWEST,
                                                      .in_flight_max = 2,
                                                      .reply_ms = 100,
                                                      .heartbeat_ms = 10};
    struct iggy_session s = {0};
    struct iggy_call call = {.command = iggy_command_by_code(IGGY_CMD_get_streams, IGGY_NEWEST),
                             .deadline_ms = 1000};
    struct iggy_event e;
    uint8_t random[IGGY_SESSION_RANDOM_BYTES] = {1};
    struct rbuf in = {data, data + size};
    int ended = 0;
    iggy_session_init(&s, &config);
    s.version = version;
    iggy_session_call(&s, &call);
    require(!iggy_session_connected(&s, STR("a"), 1, random, 0));
    for (int64_t now_ms = 0; now_ms < 40; now_ms++) {
        while (iggy_session_output(&s, now_ms))
            continue;
        struct rbuf none = {data, data};
        bool event = iggy_session_next(&s, now_ms % 4 == 0 ? &in : &none, now_ms, &e);
        ended += event && e.call == &call;
        if (event && e.kind == IGGY_EVENT_RECONNECT) {
            iggy_session_disconnected(&s, now_ms);
            require(!iggy_session_connected(&s, STR("a"), 1, random, now_ms));
        }
        (void)iggy_session_tick(&s, now_ms);
    }
    iggy_session_disconnected(&s, 2000);
    struct rbuf none = {data, data};
    while (iggy_session_next(&s, &none, 2000, &e))
        ended += e.call == &call;
    require(ended == 1);
    iggy_session_release(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 4)
        return 0;
    struct bytes rest = {data + 4, (int32_t)(size - 4)};
    fuzz_body(data, size);
    fuzz_frames(data + 4, size - 4);
    fuzz_batch(rest);
    fuzz_session(data[0] & 1 ? IGGY_NEWEST : IGGY_0_11, data + 4, size - 4);
    if (tlv_check(rest))
        require(tlv_check_options(rest) != ST_OK);
    return 0;
}
