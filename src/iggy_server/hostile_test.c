/*
 * Bodies that can't be read. A real server of August 2026 dies of some of them, and does not start again (Iggy protocol, fatal bug).
 * Ours answers each, and serves on.
 */
#include <stdlib.h>

#include <jansson.h>
#include <zlib.h>

#include "base/le.h"
#include "base/mem.h"
#include "iggy_server/peer_test.h"
#include "testing/test.h"

static const uint32_t versions[] = {IGGY_0_11, IGGY_0_12_2};

/* Every command that has a body and no road of its own. */
static const uint32_t commands[] = {
#define HANDLER(name, where) IGGY_CMD_##name,
#include "iggy_server/handlers.def"
#undef HANDLER
};

static bool is_served(uint32_t code, uint32_t version) {
    return iggy_command_by_code(code, version) != NULL;
}

static bool has_body(uint32_t code, uint32_t version) {
    return iggy_command_by_code(code, version)->request()->field_count > 0;
}

/* The answer to a body: a reply under its number. Its status. */
static uint32_t status_after(struct peer *p, uint32_t code, struct bytes body) {
    peer_send_body(p, code, ++p->number, body);
    CHECK(peer_read(p));
    CHECK_EQ(p->h.frame.kind, IGGY_REPLY);
    CHECK_EQ(p->h.reply.request, p->number);
    return p->h.reply.status;
}

static void check_alive(struct peer *p) {
    CHECK_EQ(peer_call(p, IGGY_CMD_ping, NULL, NULL), 0);
}

TEST(the_fatal_body_is_refused_by_every_command) {
    static const uint8_t fatal[] = {9, 9};
    struct rig rig;
    rig_start(&rig, 0, 0);
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        struct peer p;
        peer_open(&p, &rig, versions[v], 1);
        peer_log_in(&p);
        for (size_t i = 0; i < COUNT_OF(commands); i++)
            if (is_served(commands[i], versions[v]) && has_body(commands[i], versions[v]))
                CHECK_EQ(status_after(&p, commands[i], (struct bytes){fatal, sizeof fatal}),
                         IGGY_ERR_INVALID_COMMAND);
        check_alive(&p);
        peer_close(&p);
    }
    rig_stop(&rig);
}

TEST(commands_without_a_body_take_none) {
    static const uint8_t one[] = {0};
    struct rig rig;
    rig_start(&rig, 0, 0);
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        struct peer p;
        peer_open(&p, &rig, versions[v], 1);
        peer_log_in(&p);
        for (size_t i = 0; i < COUNT_OF(commands); i++)
            if (is_served(commands[i], versions[v]) && !has_body(commands[i], versions[v]) &&
                commands[i] != IGGY_CMD_ping)
                CHECK_EQ(status_after(&p, commands[i], (struct bytes){one, sizeof one}),
                         IGGY_ERR_INVALID_COMMAND);
        check_alive(&p);
        peer_close(&p);
    }
    rig_stop(&rig);
}

/* Bytes that look like long lists, long texts and long names. Some are even a request; each is answered. */
TEST(wild_bodies_are_answered_by_every_command) {
    static const uint8_t fills[] = {0, 1, 2, 4, 0x7f, 0xff};
    uint8_t body[600];
    struct rig rig;
    rig_start(&rig, 0, 0);
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        struct peer p;
        peer_open(&p, &rig, versions[v], 1);
        peer_log_in(&p);
        for (size_t i = 0; i < COUNT_OF(commands); i++)
            for (size_t k = 0; is_served(commands[i], versions[v]) && k < COUNT_OF(fills); k++)
                for (int32_t len = 0; len <= (int32_t)sizeof body; len += 75) {
                    memset(body, fills[k], sizeof body);
                    (void)status_after(&p, commands[i], (struct bytes){body, len});
                }
        check_alive(&p);
        peer_close(&p);
    }
    rig_stop(&rig);
}

/* ---- what official clients have sent, cut short ---- */

#define FRAME_BYTES_MAX ((size_t)8 * 1024)

static struct bytes bytes_of_hex(const char *hex, uint8_t *out) {
    size_t len = strlen(hex) / 2;
    CHECK(len <= FRAME_BYTES_MAX);
    for (size_t i = 0; i < len; i++) {
        char two[3] = {hex[2 * i], hex[2 * i + 1], 0};
        out[i] = (uint8_t)strtoul(two, NULL, 16);
    }
    return (struct bytes){out, (int32_t)len};
}

/* All cuts near the start, where the fields are, and some of the rest. */
static int32_t next_cut(int32_t cut) {
    return cut < 80 ? cut + 1 : cut + 61;
}

static void check_cuts(struct peer *p, uint32_t code, struct bytes body) {
    for (int32_t cut = 0; cut < body.len; cut = next_cut(cut))
        (void)status_after(p, code, (struct bytes){body.ptr, cut});
    check_alive(p);
}

static void check_frame(struct peer *p, struct bytes frame) {
    struct iggy_header h;
    if (frame.len < IGGY_HEADER_BYTES)
        return;
    iggy_header_decode(frame.ptr, &h);
    const struct iggy_command *c =
        h.frame.kind == IGGY_REQUEST ? iggy_command_of(&h.request, p->version) : NULL;
    if (!c || c->operation == IGGY_OP_REGISTER || c->code == IGGY_CMD_logout ||
        c->code == IGGY_CMD_bind_session)
        return;
    check_cuts(p, c->code, (struct bytes){frame.ptr + IGGY_HEADER_BYTES, frame.len - IGGY_HEADER_BYTES});
}

static int check_recorded(struct peer *p) {
    static uint8_t bytes[FRAME_BYTES_MAX];
    static char line[4 * FRAME_BYTES_MAX];
    gzFile file = gzopen(TESTS_DIR "/golden/iggy.jsonl.gz", "rb");
    int count = 0;
    CHECK(file);
    for (; gzgets(file, line, sizeof line); count++) {
        json_t *row = json_loads(line, 0, NULL);
        CHECK(row);
        uint32_t version = (uint32_t)json_integer_value(json_object_get(row, "version"));
        if (version == p->version)
            check_frame(p, bytes_of_hex(json_string_value(json_object_get(row, "hex")), bytes));
        json_decref(row);
    }
    gzclose(file);
    return count;
}

TEST(every_cut_of_a_recorded_body_is_answered) {
    struct rig rig;
    rig_start(&rig, 0, 0);
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        struct peer p;
        peer_open(&p, &rig, versions[v], 1);
        peer_log_in(&p);
        CHECK(check_recorded(&p) > 300);
        peer_close(&p);
    }
    rig_stop(&rig);
}

/* Of logins, too: each is an Eviction, and nobody is logged in. */
TEST(every_cut_of_a_login_is_refused) {
    struct rig rig;
    rig_start(&rig, 0, 0);
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        uint8_t body[128] = {0};
        int32_t len = 4;
        struct peer p;
        peer_open(&p, &rig, versions[v], 1);
        le_set32(body, versions[v]);
        static const char names[] = "\4test\1"
                                    "1",
                          login[] = "\4root\6secret\0\0\0\0";
        memcpy(body + len, names, sizeof names - 1);
        len += (int32_t)sizeof names - 1 + (versions[v] >= IGGY_0_12_0 ? IGGY_SECRET_BYTES : 0);
        memcpy(body + len, login, sizeof login - 1);
        len += (int32_t)sizeof login - 1;
        struct iggy_header h = {.request = {.client = p.id, .operation = IGGY_OP_REGISTER}};
        for (int32_t cut = 0; cut < len; cut++) {
            peer_send_frame(&p, h, (struct bytes){body, cut});
            CHECK_EQ(peer_eviction(&p), IGGY_EVICTED_MALFORMED_LOGIN);
        }
        peer_send_frame(&p, h, (struct bytes){body, len});
        CHECK(peer_read(&p));
        CHECK_EQ(p.h.frame.kind, IGGY_REPLY);
        CHECK_EQ(p.code, 0);
        peer_close(&p);
    }
    rig_stop(&rig);
}
