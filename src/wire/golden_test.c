/*
 * Our tables against bytes of the official Java codec: tests/golden/README.md says what is in the file.
 * Every test runs over every row, so that a row in a wrong place, a wrong version or a wrong default fails by name.
 */
#include <ctype.h>
#include <jansson.h>
#include <zlib.h>

#include "base/mem.h"
#include "testing/test.h"
#include "wire/codec.h"
#include "wire/header.h"

#define ROW_BYTES_MAX ((size_t)64 * 1024)
#define ARENA_BYTES   ((size_t)1024 * 1024)

static const struct decode_limits limits = {.elements_max = 65536, .string_max = 65536};

struct row {
    const char *api, *dir, *kind;
    int16_t key, version;
    const struct schema *schema; /* NULL: a header */
    bool unknown_tags;
    struct bytes body, alt; /* alt.len -1: none */
    const json_t *json;
};

/* What was being checked, for the message of a failure. */
static const struct row *current;
static const char *current_field = "";

#define ROW_CHECK(cond)                                                                         \
    do {                                                                                        \
        if (!(cond)) {                                                                          \
            print_error("%s v%d %s %s, %s: %s\n", current->api, current->version, current->dir, \
                        current->kind, current_field, #cond);                                   \
            fail();                                                                             \
        }                                                                                       \
    } while (0)

/* ---- rows ---- */

static struct bytes bytes_of_hex(const char *hex, uint8_t *out) {
    if (!hex)
        return BYTES_NULL;
    size_t len = strlen(hex) / 2;
    CHECK(len <= ROW_BYTES_MAX);
    for (size_t i = 0; i < len; i++) {
        char two[3] = {hex[2 * i], hex[2 * i + 1], 0};
        out[i] = (uint8_t)strtoul(two, NULL, 16);
    }
    return (struct bytes){out, (int32_t)len};
}

static const char *text_in(const json_t *object, const char *name) {
    return json_string_value(json_object_get(object, name));
}

/* Runs check on each body (bodies) or each header (else); gives how many there were. */
static int each_row(bool bodies, void (*check)(const struct row *)) {
    static uint8_t body[ROW_BYTES_MAX], alt[ROW_BYTES_MAX];
    static char line[2 * ROW_BYTES_MAX];
    gzFile file = gzopen(TESTS_DIR "/golden/kafka.jsonl.gz", "rb");
    CHECK(file);
    int count = 0;
    while (gzgets(file, line, sizeof line)) {
        json_t *root = json_loads(line, JSON_ALLOW_NUL, NULL);
        CHECK(root);
        struct row row = {.api = text_in(root, "api"),
                          .dir = text_in(root, "dir"),
                          .kind = text_in(root, "kind"),
                          .key = (int16_t)json_integer_value(json_object_get(root, "key")),
                          .version = (int16_t)json_integer_value(json_object_get(root, "version")),
                          .unknown_tags = json_is_true(json_object_get(root, "unknownTags")),
                          .body = bytes_of_hex(text_in(root, "hex"), body),
                          .alt = bytes_of_hex(text_in(root, "alt"), alt),
                          .json = json_object_get(root, "json")};
        bool is_body = strcmp(row.dir, "data") != 0;
        if (is_body)
            row.schema = strcmp(row.dir, "req") == 0 ? kmsg_request(row.key) : kmsg_response(row.key);
        current = &row;
        current_field = "";
        if (is_body == bodies) {
            ROW_CHECK(row.schema || !is_body);
            check(&row);
            count++;
        }
        json_decref(root);
    }
    gzclose(file);
    current = NULL;
    return count;
}

static struct arena body_arena(void) {
    static uint8_t memory[ARENA_BYTES];
    struct arena a;
    arena_init(&a, memory, sizeof memory, 0);
    return a;
}

/* A body's bytes in a block of exactly their size, so that the sanitizer sees a read past the end. */
static uint8_t *block_of(const uint8_t *from, size_t len) {
    uint8_t *block = mem_take(len > 0 ? len : 1);
    CHECK(block);
    memcpy(block, from, len);
    return block;
}

/* ---- a struct against JSON ---- */

static int64_t number_at(const uint8_t *at, size_t width) {
    int16_t i16;
    int32_t i32;
    int64_t i64;
    switch (width) {
    case 1:
        return *(const int8_t *)at;
    case 2:
        memcpy(&i16, at, 2);
        return i16;
    case 4:
        memcpy(&i32, at, 4);
        return i32;
    default:
        memcpy(&i64, at, 8);
        return i64;
    }
}

/* A field as what its default is written in: a number, a length or a count. */
static int64_t field_number(const struct field *f, const uint8_t *msg) {
    const uint8_t *at = msg + f->offset;
    const void *aligned = at;
    switch ((enum field_kind)f->kind) {
    case FK_BOOL:
    case FK_INT8:
        return number_at(at, 1);
    case FK_INT16:
        return number_at(at, 2);
    case FK_INT32:
        return number_at(at, 4);
    case FK_INT64:
        return number_at(at, 8);
    case FK_UUID:
        return !uuid_is_zero(aligned);
    case FK_STRING:
        return ((const struct str *)aligned)->len;
    case FK_BYTES:
    case FK_RECORDS:
        return ((const struct bytes *)aligned)->len;
    case FK_SLICES:
        return ((const struct slices *)aligned)->len;
    case FK_INT32S:
        return ((const struct int32s *)aligned)->count;
    case FK_STRINGS:
        return ((const struct strs *)aligned)->count;
    case FK_ARRAY:
        return number_at(msg + f->count_offset, 4);
    case FK_STRUCT:
        return *(void *const *)aligned != NULL;
    }
    return INT64_MIN;
}

/* base64, with the alphabet of URLs or without, to bytes; gives their number. */
static size_t base64_read(const char *text, uint8_t *out, size_t out_max) {
    size_t len = 0;
    uint32_t bits = 0;
    int held = 0;
    for (; *text && *text != '='; text++) {
        int c = (unsigned char)*text;
        uint32_t value = (uint32_t)(isupper(c)             ? c - 'A'
                                    : islower(c)           ? c - 'a' + 26
                                    : isdigit(c)           ? c - '0' + 52
                                    : c == '+' || c == '-' ? 62
                                                           : 63);
        bits = bits << 6 | value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            CHECK(len < out_max);
            out[len++] = (uint8_t)(bits >> held);
        }
    }
    return len;
}

static void check_string(const struct str *s, const json_t *json) {
    if (json_is_null(json)) {
        ROW_CHECK(s->len == -1);
        return;
    }
    ROW_CHECK(json_is_string(json));
    ROW_CHECK(s->len == (int32_t)json_string_length(json));
    ROW_CHECK(s->len == 0 || memcmp(s->ptr, json_string_value(json), (size_t)s->len) == 0);
}

static void check_bytes(const struct bytes *b, const json_t *json) {
    static uint8_t want[ROW_BYTES_MAX];
    if (json_is_null(json)) {
        ROW_CHECK(b->len == -1);
        return;
    }
    ROW_CHECK(json_is_string(json));
    size_t len = base64_read(json_string_value(json), want, sizeof want);
    ROW_CHECK(b->len == (int32_t)len);
    ROW_CHECK(len == 0 || memcmp(b->ptr, want, len) == 0);
}

static void check_uuid(const struct uuid *u, const json_t *json) {
    struct uuid want;
    ROW_CHECK(json_is_string(json));
    ROW_CHECK(base64_read(json_string_value(json), want.b, sizeof want.b) == sizeof want.b);
    ROW_CHECK(uuid_equal(u, &want));
}

static void check_group(const struct schema *s, const uint8_t *msg, const json_t *json, int16_t version);

/* The count of a list against a JSON array; false: both are null. */
static bool check_count(int64_t count, const json_t *json) {
    if (json_is_null(json)) {
        ROW_CHECK(count == -1);
        return false;
    }
    ROW_CHECK(json_is_array(json));
    ROW_CHECK(count == (int64_t)json_array_size(json));
    return true;
}

static void check_list(const struct field *f, const uint8_t *msg, const json_t *json, int16_t version) {
    const void *at = msg + f->offset;
    int64_t count = field_number(f, msg);
    if (!check_count(count, json))
        return;
    for (size_t i = 0; i < (size_t)count; i++) {
        const json_t *element = json_array_get(json, i);
        if (f->kind == FK_INT32S)
            ROW_CHECK(((const struct int32s *)at)->items[i] == json_integer_value(element));
        else if (f->kind == FK_STRINGS)
            check_string(&((const struct strs *)at)->items[i], element);
        else
            check_group(f->group(), *(const uint8_t *const *)at + i * f->group()->size, element, version);
        current_field = f->name;
    }
}

static void check_field(const struct field *f, const uint8_t *msg, const json_t *json, int16_t version) {
    const void *at = msg + f->offset;
    current_field = f->name;
    switch ((enum field_kind)f->kind) {
    case FK_BOOL:
        ROW_CHECK(json_is_boolean(json));
        ROW_CHECK(*(const bool *)at == json_is_true(json));
        break;
    case FK_INT8:
    case FK_INT16:
    case FK_INT32:
    case FK_INT64:
        ROW_CHECK(json_is_integer(json));
        ROW_CHECK(field_number(f, msg) == json_integer_value(json));
        break;
    case FK_UUID:
        check_uuid(at, json);
        break;
    case FK_STRING:
        check_string(at, json);
        break;
    case FK_BYTES:
        check_bytes(at, json);
        break;
    case FK_RECORDS:
    case FK_SLICES: /* Java prints them as "" whatever they hold; encoding them again compares the content */
        ROW_CHECK(json_is_null(json) == (field_number(f, msg) == -1));
        break;
    case FK_INT32S:
    case FK_STRINGS:
    case FK_ARRAY:
        check_list(f, msg, json, version);
        break;
    case FK_STRUCT: {
        const uint8_t *item = *(const uint8_t *const *)at;
        ROW_CHECK(json_is_null(json) == (item == NULL));
        if (item)
            check_group(f->group(), item, json, version);
        break;
    }
    }
}

/* camelCase to snake_case, as the tables' names are made from Kafka's */
static void snake_of(const char *camel, char *out) {
    for (; *camel; camel++) {
        if (isupper((unsigned char)*camel))
            *out++ = '_';
        *out++ = (char)tolower((unsigned char)*camel);
    }
    *out = 0;
}

static const json_t *member(const json_t *object, const char *name) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        char snake[128];
        snake_of(key, snake);
        if (strcmp(snake, name) == 0)
            return value;
    }
    return NULL;
}

static void check_group(const struct schema *s, const uint8_t *msg, const json_t *json, int16_t version) {
    size_t found = 0;
    for (uint16_t i = 0; i < s->field_count; i++) {
        const struct field *f = &s->fields[i];
        const json_t *value = member(json, f->name);
        current_field = f->name;
        if (value) {
            found++;
            check_field(f, msg, value, version);
        } else {
            ROW_CHECK(f->tag >= 0 || version < f->on.first || version > f->on.last);
            ROW_CHECK(f->kind == FK_STRUCT || field_number(f, msg) == f->absent);
        }
    }
    current_field = s->name;
    ROW_CHECK(found == json_object_size(json));
}

/* ---- the tests ---- */

static enum status decode(const struct row *row, struct rbuf *in, struct arena *a, void **out) {
    static _Alignas(max_align_t) uint8_t msg[1024];
    ROW_CHECK(row->schema->size <= sizeof msg);
    memset(msg, 0xa5, sizeof msg);
    *out = msg;
    return kmsg_decode(row->schema, row->version, &limits, in, a, msg);
}

/* Encodes msg to the heap. */
static struct bytes encode(const struct row *row, const void *msg) {
    struct wbuf w;
    wbuf_init(&w, ROW_BYTES_MAX);
    ROW_CHECK(kmsg_encode(row->schema, row->version, msg, &w) == ST_OK);
    uint8_t *flat = mem_take(w.bytes > 0 ? w.bytes : 1);
    CHECK(flat);
    wbuf_flatten(&w, flat);
    struct bytes out = {flat, (int32_t)w.bytes};
    wbuf_release(&w);
    return out;
}

static void check_decode(const struct row *row) {
    struct arena a = body_arena();
    uint8_t *block = block_of(row->body.ptr, (size_t)row->body.len);
    struct rbuf in = {block, block + row->body.len};
    void *msg;
    ROW_CHECK(decode(row, &in, &a, &msg) == ST_OK);
    ROW_CHECK(rbuf_left(&in) == 0);
    check_group(row->schema, msg, row->json, row->version);
    mem_free(block);
}

TEST(every_golden_body_decodes_to_its_values) {
    CHECK_EQ(each_row(true, check_decode), 2523);
}

static void check_encode_from(const struct row *row, struct bytes body) {
    struct arena a = body_arena();
    struct rbuf in = rbuf_of(body);
    void *msg;
    ROW_CHECK(decode(row, &in, &a, &msg) == ST_OK);
    struct bytes got = encode(row, msg);
    if (row->unknown_tags) {
        in = rbuf_of(got);
        ROW_CHECK(decode(row, &in, &a, &msg) == ST_OK);
        check_group(row->schema, msg, row->json, row->version);
    } else {
        ROW_CHECK(got.len == row->body.len);
        ROW_CHECK(got.len == 0 || memcmp(got.ptr, row->body.ptr, (size_t)got.len) == 0);
    }
    mem_free((void *)(uintptr_t)got.ptr);
}

static void check_encode(const struct row *row) {
    check_encode_from(row, row->body);
    if (row->alt.len >= 0)
        check_encode_from(row, row->alt);
}

TEST(every_golden_body_encodes_to_its_bytes) {
    CHECK_EQ(each_row(true, check_encode), 2523);
}

static void check_cuts(const struct row *row) {
    for (size_t cut = 0; cut < (size_t)row->body.len; cut++) {
        struct arena a = body_arena();
        uint8_t *block = block_of(row->body.ptr, cut);
        struct rbuf in = {block, block + cut};
        void *msg;
        ROW_CHECK(decode(row, &in, &a, &msg) != ST_OK);
        mem_free(block);
    }
}

TEST(every_cut_of_a_golden_body_is_refused) {
    CHECK_EQ(each_row(true, check_cuts), 2523);
}

static void check_one_byte_more(const struct row *row) {
    uint8_t *block = mem_take((size_t)row->body.len + 1);
    CHECK(block);
    if (row->body.len > 0)
        memcpy(block, row->body.ptr, (size_t)row->body.len);
    block[row->body.len] = 0x7f;
    struct arena a = body_arena();
    struct rbuf in = {block, block + row->body.len + 1};
    void *msg;
    ROW_CHECK(decode(row, &in, &a, &msg) == ST_OK);
    ROW_CHECK(in.at == block + row->body.len);
    mem_free(block);
}

/* B-40 */
TEST(a_byte_after_a_golden_body_is_left_over) {
    CHECK_EQ(each_row(true, check_one_byte_more), 2523);
}

static int seen[2][128][32];

static void count_row(const struct row *row) {
    ROW_CHECK(row->version >= 0 && row->version < 32 && row->key >= 0 && row->key < 128);
    seen[strcmp(row->dir, "resp") == 0][row->key][row->version]++;
}

TEST(golden_bodies_cover_exactly_the_versions_of_the_tables) {
    memset(seen, 0, sizeof seen);
    CHECK_EQ(each_row(true, count_row), 2523);
    for (int16_t key = 0; key < 128; key++)
        for (int dir = 0; dir < 2; dir++) {
            const struct schema *s = dir ? kmsg_response(key) : kmsg_request(key);
            for (int16_t version = 0; version < 32; version++)
                CHECK_EQ(s && s->versions.first <= version && version <= s->versions.last,
                         seen[dir][key][version] > 0);
        }
}

/* ---- defaults ---- */

/* Writes a line for each field of s with a default that is not zero, as in tests/golden/defaults.txt. */
static void list_defaults(const struct schema *s, const char *path, char **at, const char *end) {
    for (uint16_t i = 0; i < s->field_count; i++) {
        const struct field *f = &s->fields[i];
        char name[256];
        snprintf(name, sizeof name, "%s.%s", path, f->name);
        bool has_length = f->kind >= FK_STRING;
        if (f->absent == -1 && has_length)
            *at += snprintf(*at, (size_t)(end - *at), "%s null\n", name);
        else if (f->absent != 0)
            *at += snprintf(*at, (size_t)(end - *at), "%s %" PRId64 "\n", name, f->absent);
        if (f->group)
            list_defaults(f->group(), name, at, end);
    }
}

TEST(defaults_of_the_tables_are_those_of_kafka) {
    static char want[32768], got[32768];
    FILE *file = fopen(TESTS_DIR "/golden/defaults.txt", "r");
    CHECK(file);
    size_t len = fread(want, 1, sizeof want - 1, file);
    fclose(file);
    want[len] = 0;
    char *at = got;
    for (int16_t key = 0; key < 128; key++)
        if (kmsg_request(key)) {
            list_defaults(kmsg_request(key), kmsg_request(key)->name, &at, got + sizeof got);
            list_defaults(kmsg_response(key), kmsg_response(key)->name, &at, got + sizeof got);
        }
    CHECK_TEXT(got, want);
}

/* ---- headers ---- */

static void check_request_header(const struct row *row) {
    if (strcmp(row->api, "RequestHeaderData") != 0)
        return;
    for (size_t cut = 0; cut <= (size_t)row->body.len; cut++) {
        uint8_t *block = block_of(row->body.ptr, cut);
        struct rbuf in = {block, block + cut};
        struct request_header got;
        enum status st = request_header_decode_as(&in, row->version, &got);
        if (cut < (size_t)row->body.len) {
            ROW_CHECK(st == ST_TRUNCATED);
        } else {
            ROW_CHECK(st == ST_OK);
            ROW_CHECK(rbuf_left(&in) == 0);
            ROW_CHECK(got.api_key == json_integer_value(member(row->json, "request_api_key")));
            ROW_CHECK(got.api_version == json_integer_value(member(row->json, "request_api_version")));
            ROW_CHECK(got.correlation_id == json_integer_value(member(row->json, "correlation_id")));
            check_string(&got.client_id, member(row->json, "client_id"));
        }
        mem_free(block);
    }
}

TEST(every_golden_request_header_decodes_and_every_cut_is_refused) {
    CHECK_EQ(each_row(false, check_request_header), 26);
}

/* Heartbeat (key 12) has a plain header below v4 and one with tagged fields from there. */
static void check_response_header(const struct row *row) {
    if (strcmp(row->api, "ResponseHeaderData") != 0)
        return;
    int32_t correlation_id = (int32_t)json_integer_value(member(row->json, "correlation_id"));
    struct wbuf w;
    uint8_t got[8];
    wbuf_init(&w, sizeof got);
    ROW_CHECK(response_header_encode(12, row->version == 0 ? 3 : 4, correlation_id, &w) == ST_OK);
    wbuf_flatten(&w, got);
    ROW_CHECK(w.bytes == (row->version == 0 ? 4 : 5));
    ROW_CHECK(memcmp(got, row->body.ptr, row->unknown_tags ? 4 : w.bytes) == 0);
    wbuf_release(&w);
}

TEST(every_golden_response_header_is_what_we_write) {
    CHECK_EQ(each_row(false, check_response_header), 26);
}
