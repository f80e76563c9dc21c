/*
 * Headers, tables and result sections against frames of official SDKs and of a real server: tests/golden/README.md
 * says what is in the file. Every test runs over every frame.
 */
#include <jansson.h>
#include <zlib.h>

#include "base/le.h"
#include "base/mem.h"
#include "iggy/codec.h"
#include "iggy/commands.h"
#include "iggy/login.h"
#include "testing/test.h"

#define FRAMES          337
#define FRAME_BYTES_MAX ((size_t)8 * 1024)
#define ARENA_BYTES     ((size_t)64 * 1024)
#define ASKED_MAX       512

struct frame {
    const char *what, *scenario;
    struct bytes bytes;
    struct iggy_header header;
    struct bytes body; /* behind the header and, in a reply, the result section */
    size_t section;    /* bytes of that */
    uint32_t version;
    const struct iggy_schema *schema; /* NULL: no body to look at */
};

/* What was asked on which connection, so that an answer is read as one to that. */
struct asked {
    int64_t conn;
    uint64_t request;
    const struct iggy_command *command;
};
static struct asked asked[ASKED_MAX];
static size_t asked_count;

static const struct frame *current;

#define FRAME_CHECK(cond)                                                         \
    do {                                                                          \
        if (!(cond)) {                                                            \
            print_error("%s: %s: %s\n", current->scenario, current->what, #cond); \
            fail();                                                               \
        }                                                                         \
    } while (0)

/* ---- frames ---- */

static struct bytes bytes_of_hex(const char *hex, uint8_t *out) {
    size_t len = strlen(hex) / 2;
    CHECK(len <= FRAME_BYTES_MAX);
    for (size_t i = 0; i < len; i++) {
        char two[3] = {hex[2 * i], hex[2 * i + 1], 0};
        out[i] = (uint8_t)strtoul(two, NULL, 16);
    }
    return (struct bytes){out, (int32_t)len};
}

static bool command_answers(const struct iggy_command *c, uint8_t operation) {
    bool resource = c->code == IGGY_CMD_update_resource && operation >= 72 && operation <= 74;
    return operation == c->operation || operation == c->reply_operation || resource;
}

static void request_open(struct frame *f, int64_t conn) {
    const struct iggy_request_header *r = &f->header.request;
    FRAME_CHECK(iggy_request_is_sound(r));
    if (r->operation == IGGY_OP_REGISTER)
        f->version = le_get32(f->body.ptr); /* a login is read as what it says it is */
    const struct iggy_command *c = iggy_command_of(r, f->version);
    FRAME_CHECK(c != NULL);
    FRAME_CHECK(asked_count < ASKED_MAX);
    asked[asked_count++] = (struct asked){conn, r->request, c};
    f->schema = c->request();
}

static void reply_open(struct frame *f, int64_t conn) {
    const struct iggy_reply_header *r = &f->header.reply;
    struct iggy_outcome outcome;
    FRAME_CHECK(iggy_reply_open(r, f->body, &outcome) == ST_OK);
    const struct iggy_command *c = NULL;
    for (size_t i = asked_count; i-- > 0 && !c;)
        if (asked[i].conn == conn && asked[i].request == r->request &&
            command_answers(asked[i].command, r->operation))
            c = asked[i].command;
    FRAME_CHECK(c != NULL);
    if (outcome.code != 0)
        return;
    f->section = (size_t)(outcome.payload.ptr - f->body.ptr);
    f->body = outcome.payload;
    f->schema = c->answer();
}

static int each_frame(void (*check)(const struct frame *)) {
    static uint8_t bytes[FRAME_BYTES_MAX];
    static char line[4 * FRAME_BYTES_MAX];
    gzFile file = gzopen(TESTS_DIR "/golden/iggy.jsonl.gz", "rb");
    CHECK(file);
    int count = 0;
    while (gzgets(file, line, sizeof line)) {
        json_t *row = json_loads(line, 0, NULL);
        CHECK(row);
        struct frame f = {
            .what = json_string_value(json_object_get(row, "what")),
            .scenario = json_string_value(json_object_get(row, "scenario")),
            .version = (uint32_t)json_integer_value(json_object_get(row, "version")),
            .bytes = bytes_of_hex(json_string_value(json_object_get(row, "hex")), bytes),
        };
        current = &f;
        if (json_integer_value(json_object_get(row, "seq")) == 0)
            asked_count = 0;
        struct rbuf in = rbuf_of(f.bytes);
        FRAME_CHECK(iggy_frame_next(&in, IGGY_FRAME_BYTES_MAX, &f.header, &f.body) == ST_OK);
        FRAME_CHECK(rbuf_left(&in) == 0);
        int64_t conn = json_integer_value(json_object_get(row, "conn"));
        if (f.header.frame.kind == IGGY_REQUEST)
            request_open(&f, conn);
        else if (f.header.frame.kind == IGGY_REPLY)
            reply_open(&f, conn);
        else
            FRAME_CHECK(f.header.frame.kind == IGGY_EVICTION && f.body.len == 0);
        check(&f);
        json_decref(row);
        count++;
    }
    gzclose(file);
    current = NULL;
    return count;
}

/* ---- recoding ---- */

/* Decodes a block of exactly len bytes, as both logins where it is one, and encodes what comes out to the heap. */
static enum status recode(const struct frame *f, const uint8_t *from, size_t len, struct bytes *out) {
    static _Alignas(max_align_t) uint8_t memory[ARENA_BYTES], msg[1024];
    const struct iggy_schema *s = f->schema;
    *out = BYTES_NULL;
    uint8_t *block = mem_take(len > 0 ? len : 1);
    CHECK(block);
    if (len > 0)
        memcpy(block, from, len);
    FRAME_CHECK(s->size <= sizeof msg);
    memset(msg, 0xa5, sizeof msg);
    struct arena a;
    arena_init(&a, memory, sizeof memory, 0);
    enum status st = iggy_decode(s, f->version, (struct bytes){block, (int32_t)len}, &a, msg);
    if (!st) {
        struct wbuf w;
        wbuf_init(&w, FRAME_BYTES_MAX);
        FRAME_CHECK(iggy_encode(s, f->version, msg, &w) == ST_OK);
        uint8_t *flat = mem_take(w.bytes > 0 ? w.bytes : 1);
        CHECK(flat);
        wbuf_flatten(&w, flat);
        *out = (struct bytes){flat, (int32_t)w.bytes};
        wbuf_release(&w);
    }
    mem_free(block);
    return st;
}

static void check_same(struct bytes got, const uint8_t *want, size_t len) {
    FRAME_CHECK((size_t)got.len == len);
    FRAME_CHECK(len == 0 || memcmp(got.ptr, want, len) == 0);
}

/* ---- the tests ---- */

static int bodies;

static void check_recoded(const struct frame *f) {
    uint8_t head[IGGY_HEADER_BYTES];
    iggy_header_encode(&f->header, head);
    FRAME_CHECK(memcmp(head, f->bytes.ptr, sizeof head) == 0);
    if (!f->schema)
        return;
    bodies++;
    struct bytes out;
    FRAME_CHECK(recode(f, f->body.ptr, (size_t)f->body.len, &out) == ST_OK);
    check_same(out, f->body.ptr, (size_t)f->body.len);
    mem_free((void *)(uintptr_t)out.ptr);
}

TEST(every_recorded_frame_decodes_and_encodes_to_its_bytes) {
    bodies = 0;
    CHECK_EQ(each_frame(check_recoded), FRAMES);
    CHECK(bodies > FRAMES * 9 / 10);
}

static void check_section(const struct frame *f) {
    const struct iggy_reply_header *r = &f->header.reply;
    if (f->header.frame.kind != IGGY_REPLY || f->bytes.len == IGGY_HEADER_BYTES)
        return;
    struct iggy_outcome outcome;
    struct bytes whole = {f->bytes.ptr + IGGY_HEADER_BYTES, f->bytes.len - IGGY_HEADER_BYTES};
    FRAME_CHECK(iggy_reply_open(r, whole, &outcome) == ST_OK);
    struct wbuf w;
    wbuf_init(&w, FRAME_BYTES_MAX);
    FRAME_CHECK(iggy_reply_begin(r->operation, outcome.code, &w) == ST_OK);
    uint8_t flat[16];
    wbuf_flatten(&w, flat);
    FRAME_CHECK(w.bytes == (outcome.code != 0 ? (size_t)whole.len : f->section));
    FRAME_CHECK(w.bytes == 0 || memcmp(flat, whole.ptr, w.bytes) == 0);
    wbuf_release(&w);
}

TEST(every_recorded_result_section_is_written_as_it_was) {
    CHECK_EQ(each_frame(check_section), FRAMES);
}

static void check_frame_cuts(const struct frame *f) {
    for (size_t cut = 0; cut < (size_t)f->bytes.len; cut++) {
        uint8_t *block = mem_take(cut > 0 ? cut : 1);
        CHECK(block);
        memcpy(block, f->bytes.ptr, cut);
        struct rbuf in = {block, block + cut};
        struct iggy_header header;
        struct bytes body;
        FRAME_CHECK(iggy_frame_next(&in, IGGY_FRAME_BYTES_MAX, &header, &body) == ST_AGAIN);
        FRAME_CHECK(in.at == block);
        mem_free(block);
    }
}

TEST(every_cut_of_a_recorded_frame_is_refused) {
    CHECK_EQ(each_frame(check_frame_cuts), FRAMES);
}

/* A body that ends with a list or bytes to its end has prefixes that are bodies; those mean just that prefix. */
static void check_body_cuts(const struct frame *f) {
    for (size_t cut = 0; f->schema && cut < (size_t)f->body.len; cut++) {
        struct bytes out;
        if (recode(f, f->body.ptr, cut, &out) == ST_OK)
            check_same(out, f->body.ptr, cut);
        mem_free((void *)(uintptr_t)out.ptr);
    }
}

TEST(a_cut_of_a_recorded_body_is_refused_or_is_a_body_of_its_own) {
    CHECK_EQ(each_frame(check_body_cuts), FRAMES);
}

static void check_one_byte_more(const struct frame *f) {
    if (!f->schema)
        return;
    uint8_t longer[FRAME_BYTES_MAX];
    size_t len = (size_t)f->body.len;
    memcpy(longer, f->body.ptr, len);
    longer[len] = 0x7f;
    struct bytes out;
    if (recode(f, longer, len + 1, &out) == ST_OK)
        check_same(out, longer, len + 1);
    mem_free((void *)(uintptr_t)out.ptr);
}

TEST(a_byte_behind_a_recorded_body_is_not_lost) {
    CHECK_EQ(each_frame(check_one_byte_more), FRAMES);
}

/* Sends and reads leave the checksum zero, metadata requests and logins of 0.11 carry the body's. */
static void check_checksum(const struct frame *f) {
    if (f->header.frame.kind == IGGY_REQUEST && f->version < IGGY_0_12_0)
        FRAME_CHECK(iggy_request_checksum_is_good(&f->header.request, f->body));
}

TEST(recorded_0_11_requests_carry_the_checksum_of_their_body) {
    CHECK_EQ(each_frame(check_checksum), FRAMES);
}

static void check_login(const struct frame *f) {
    if (f->header.frame.kind != IGGY_REQUEST || f->header.request.operation != IGGY_OP_REGISTER)
        return;
    struct iggy_login login;
    FRAME_CHECK(iggy_login_decode(f->body, &login) == ST_OK);
    FRAME_CHECK(!login.by_token);
    FRAME_CHECK(login.protocol == f->version);
    FRAME_CHECK(str_equal(login.password.username, STR("iggy")));
    bodies++;
}

TEST(every_recorded_login_is_read_as_one_with_a_password) {
    bodies = 0;
    CHECK_EQ(each_frame(check_login), FRAMES);
    CHECK(bodies >= 10);
}
