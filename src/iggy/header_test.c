#include "iggy/header.h"

#include "base/le.h"
#include "iggy/commands.h"
#include "iggy/errors.h"
#include "testing/test.h"

static struct iggy_header request(void) {
    struct iggy_header h = {.frame = {.size = IGGY_HEADER_BYTES, .kind = IGGY_REQUEST}};
    h.request.client.b[0] = 1;
    h.request.operation = 160;
    h.request.session = 7;
    h.request.request = 9;
    return h;
}

TEST(a_request_has_its_fields_where_the_protocol_wants_them) {
    struct iggy_header h = request();
    h.frame.size = 0x129;
    h.request.code = 100;
    h.request.partition_incarnation = 0x1111;
    h.request.owner_generation = 0x2222;
    h.request.metadata_op_min = 0x3333;
    uint8_t out[IGGY_HEADER_BYTES];
    iggy_header_encode(&h, out);
    CHECK_EQ(le_get32(out + 48), 0x129);
    CHECK_EQ(out[60], 5);
    CHECK_EQ(out[128], 1);
    CHECK_EQ(le_get64(out + 168), 9);
    CHECK_EQ(out[176], 160);
    CHECK_EQ(le_get64(out + 184), 7);
    CHECK_EQ(le_get32(out + 196), 100);
    CHECK_EQ(le_get64(out + 200), 0x1111);
    CHECK_EQ(le_get64(out + 208), 0x2222);
    CHECK_EQ(le_get64(out + 216), 0x3333);
}

TEST(an_eviction_has_its_reason_in_the_last_byte) {
    struct iggy_header h = {.frame = {.size = IGGY_HEADER_BYTES, .kind = IGGY_EVICTION},
                            .eviction = {.reason = IGGY_EVICTED_INCOMPATIBLE_PROTOCOL,
                                         .protocol_max = IGGY_0_12_2,
                                         .protocol_min = IGGY_0_11}};
    uint8_t out[IGGY_HEADER_BYTES];
    iggy_header_encode(&h, out);
    CHECK_EQ(out[60], 13);
    CHECK_EQ(out[255], 14);
    CHECK_EQ(le_get32(out + 144), IGGY_0_12_2);
    CHECK_EQ(le_get32(out + 148), IGGY_0_11);
}

TEST(a_frame_shorter_than_its_header_or_over_the_limit_ends_the_connection) {
    struct iggy_header h = request(), got;
    struct bytes body;
    uint8_t out[IGGY_HEADER_BYTES];
    static const struct {
        uint32_t size;
        enum status want;
    } cases[] = {
        {0, ST_BAD_LENGTH},    {255, ST_BAD_LENGTH},       {256, ST_OK}, {257, ST_AGAIN}, {1000, ST_AGAIN},
        {1001, ST_BAD_LENGTH}, {UINT32_MAX, ST_BAD_LENGTH}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        h.frame.size = cases[i].size;
        iggy_header_encode(&h, out);
        struct rbuf in = {out, out + sizeof out};
        CHECK_EQ(iggy_frame_next(&in, 1000, &got, &body), cases[i].want);
        CHECK_EQ(rbuf_left(&in), cases[i].want == ST_OK ? 0 : IGGY_HEADER_BYTES);
    }
}

TEST(frames_behind_one_another_are_taken_one_by_one) {
    struct iggy_header h = request(), got;
    h.frame.size = 258;
    uint8_t two[2 * 258] = {0};
    iggy_header_encode(&h, two);
    two[256] = 0xaa;
    h.request.request = 10;
    iggy_header_encode(&h, two + 258);
    struct rbuf in = {two, two + sizeof two};
    struct bytes body;
    CHECK_EQ(iggy_frame_next(&in, IGGY_FRAME_BYTES_MAX, &got, &body), ST_OK);
    CHECK_EQ(got.request.request, 9);
    CHECK_EQ(body.len, 2);
    CHECK_EQ(body.ptr[0], 0xaa);
    CHECK_EQ(iggy_frame_next(&in, IGGY_FRAME_BYTES_MAX, &got, &body), ST_OK);
    CHECK_EQ(got.request.request, 10);
    CHECK_EQ(iggy_frame_next(&in, IGGY_FRAME_BYTES_MAX, &got, &body), ST_AGAIN);
}

TEST(a_request_without_client_session_or_number_is_not_sound) {
    struct iggy_request_header r = request().request, bad;
    CHECK(iggy_request_is_sound(&r));
    bad = r;
    bad.client.b[0] = 0;
    CHECK(!iggy_request_is_sound(&bad));
    bad = r;
    bad.operation = 0;
    CHECK(!iggy_request_is_sound(&bad));
    bad = r;
    bad.session = 0;
    CHECK(!iggy_request_is_sound(&bad));
    bad = r;
    bad.request = 0;
    CHECK(!iggy_request_is_sound(&bad));
    bad = r;
    bad.operation = IGGY_OP_REGISTER;
    CHECK(!iggy_request_is_sound(&bad));
    bad.session = bad.request = 0;
    CHECK(iggy_request_is_sound(&bad));
    bad.operation = IGGY_OP_BY_CODE;
    CHECK(iggy_request_is_sound(&bad));
}

/* Vectors of the hash itself, as servers compute it. */
TEST(a_body_checksum_is_xxh3_in_the_low_half) {
    static const struct {
        const char *body;
        uint64_t want;
    } cases[] = {{"", 0x2d06800538d394c2}, {"hello", 0x9555e8555c62dcfd}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bytes body = {(const uint8_t *)cases[i].body, (int32_t)strlen(cases[i].body)};
        struct iggy_request_header r = {.request_checksum = iggy_body_checksum(body)};
        CHECK_EQ(le_get64(r.request_checksum.b), cases[i].want);
        CHECK_EQ(le_get64(r.request_checksum.b + 8), 0);
        CHECK(iggy_request_checksum_is_good(&r, body));
        r.request_checksum.b[15] = 1;
        CHECK(!iggy_request_checksum_is_good(&r, body));
        r.request_checksum = (struct iggy_u128){{0}};
        CHECK(iggy_request_checksum_is_good(&r, body));
    }
    uint8_t all[256];
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (uint8_t)i;
    CHECK_EQ(le_get64(iggy_body_checksum((struct bytes){all, sizeof all}).b), 0x9408a4433b952d71);
}

/* ---- replies ---- */

static enum status open_reply(uint8_t operation, uint32_t status, const void *body, int32_t len,
                              struct iggy_outcome *out) {
    struct iggy_reply_header r = {.operation = operation, .status = status};
    return iggy_reply_open(&r, (struct bytes){body, len}, out);
}

TEST(an_error_comes_as_a_status_or_in_a_result_section) {
    static const uint8_t unknown_topic[] = {1, 0, 0, 0, 0, 0, 0, 0, 0xda, 7, 0, 0};
    static const uint8_t good[] = {0, 0, 0, 0, 5};
    struct iggy_outcome o;
    CHECK_EQ(open_reply(134, 41, NULL, 0, &o), ST_OK);
    CHECK_EQ(o.code, IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(open_reply(134, 0, unknown_topic, sizeof unknown_topic, &o), ST_OK);
    CHECK_EQ(o.code, IGGY_ERR_TOPIC_ID_NOT_FOUND);
    CHECK_EQ(open_reply(134, 0, good, sizeof good, &o), ST_OK);
    CHECK_EQ(o.code, IGGY_OK);
    CHECK_EQ(o.payload.len, 1);
    CHECK_EQ(o.payload.ptr[0], 5);
}

TEST(a_result_section_that_is_cut_or_without_an_error_is_refused) {
    static const uint8_t section[] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                         many[] = {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0};
    struct iggy_outcome o;
    for (int32_t cut = 0; cut < (int32_t)sizeof section; cut++)
        CHECK_EQ(open_reply(134, 0, section, cut, &o), ST_TRUNCATED);
    CHECK_EQ(open_reply(134, 0, section, sizeof section, &o), ST_INVALID);
    CHECK_EQ(open_reply(134, 0, many, sizeof many, &o), ST_TRUNCATED);
}

TEST(which_operations_have_a_result_section) {
    static const uint8_t with[] = {1, 64, 65, 68, 72, 74, 127, 128, 137, 139, 150, 161, 162};
    static const uint8_t without[] = {2, 3, 63, 138, 151, 160, 163};
    for (size_t i = 0; i < sizeof with; i++)
        CHECK(iggy_operation_has_result(with[i]));
    for (size_t i = 0; i < sizeof without; i++)
        CHECK(!iggy_operation_has_result(without[i]));
    struct iggy_outcome o;
    CHECK_EQ(open_reply(IGGY_OP_REGISTER, 0, NULL, 0, &o), ST_OK);
    CHECK_EQ(o.code, IGGY_OK);
}

/* ---- commands and codes ---- */

TEST(a_command_is_found_by_operation_or_code_in_the_versions_that_have_it) {
    struct iggy_request_header r = {.operation = 133};
    CHECK_EQ(iggy_command_of(&r, IGGY_0_11)->code, IGGY_CMD_update_topic);
    CHECK(!iggy_command_of(&r, IGGY_0_12_0));
    r = (struct iggy_request_header){.operation = IGGY_OP_BY_CODE, .code = 109};
    CHECK(!iggy_command_of(&r, IGGY_0_12_0));
    CHECK_EQ(iggy_command_of(&r, IGGY_0_12_1)->code, IGGY_CMD_fetch_messages);
    r.code = 202; /* has an operation of its own */
    CHECK(!iggy_command_of(&r, IGGY_0_11));
    CHECK(!iggy_command_by_code(999, IGGY_0_11));
    CHECK(!iggy_command_by_code(1, IGGY_VERSION(0, 13, 0)));
}

TEST(a_command_stamps_what_it_is_found_by) {
    for (uint32_t code = 0; code < 1000; code++) {
        const struct iggy_command *c = iggy_command_by_code(code, IGGY_0_12_2);
        if (!c || c->code == IGGY_CMD_login_token) /* told from login_password by its body only */
            continue;
        struct iggy_request_header r = {0};
        iggy_command_stamp(c, &r);
        CHECK(iggy_command_of(&r, IGGY_0_12_2) == c);
    }
    CHECK_EQ(iggy_command_plane(iggy_command_by_code(IGGY_CMD_send_messages, IGGY_0_11)),
             IGGY_PLANE_PARTITION);
    CHECK_EQ(iggy_command_plane(iggy_command_by_code(IGGY_CMD_create_topic, IGGY_0_11)), IGGY_PLANE_METADATA);
    CHECK_EQ(iggy_command_plane(iggy_command_by_code(IGGY_CMD_poll_messages, IGGY_0_11)), IGGY_PLANE_READ);
}

TEST(codes_have_names_and_say_whether_a_retry_is_safe) {
    CHECK_TEXT(iggy_error_name(2010), "TopicIdNotFound");
    CHECK_TEXT(iggy_error_name(77777), "?");
    CHECK(iggy_error_retry_is_safe(IGGY_ERR_TRANSIENT_NOT_ACCEPTED));
    CHECK(iggy_error_retry_is_safe(IGGY_ERR_NOT_PRIMARY));
    CHECK(!iggy_error_retry_is_safe(IGGY_ERR_TRANSIENT_NOT_COMMITTED));
    CHECK(!iggy_error_retry_is_safe(IGGY_ERR_REQUEST_TOO_OLD));
    CHECK(!iggy_error_retry_is_safe(IGGY_ERR_UNAUTHENTICATED));
    CHECK(!iggy_error_retry_is_safe(77777));
    CHECK_EQ(iggy_error_retry(IGGY_ERR_TRANSIENT_NOT_COMMITTED), IGGY_RETRY_SAME_FRAME);
    CHECK_EQ(iggy_error_retry(IGGY_ERR_REQUEST_ALREADY_APPLIED), IGGY_RETRY_DONE);
    CHECK_EQ(iggy_error_retry(77777), IGGY_RETRY_NO);
}

TEST(evictions_stand_for_the_codes_that_clients_report) {
    CHECK_EQ(iggy_error_of_eviction(IGGY_EVICTED_NO_SESSION), 40);
    CHECK_EQ(iggy_error_of_eviction(IGGY_EVICTED_INVALID_BODY), 3);
    CHECK_EQ(iggy_error_of_eviction(IGGY_EVICTED_INVALID_CREDENTIALS), 42);
    CHECK_EQ(iggy_error_of_eviction(IGGY_EVICTED_INVALID_TOKEN), 53);
    CHECK_EQ(iggy_error_of_eviction(IGGY_EVICTED_STALE_CLIENT), 30);
    CHECK_EQ(iggy_error_of_eviction(IGGY_EVICTED_INCOMPATIBLE_PROTOCOL), 14003);
    CHECK_EQ(iggy_error_of_eviction(IGGY_EVICTED_MALFORMED_LOGIN), 4);
    CHECK_EQ(iggy_error_of_eviction(99), 40);
}
