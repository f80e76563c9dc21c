#include "wire/header.h"

#include "testing/test.h"
#include "wire/kerr.h"

/* B-3 */
TEST(the_request_header_follows_key_and_version) {
    CHECK_EQ(request_header_version(0, 8), 1);
    CHECK_EQ(request_header_version(0, 9), 2);
    CHECK_EQ(request_header_version(18, 2), 1);
    CHECK_EQ(request_header_version(18, 3), 2);
    CHECK_EQ(request_header_version(18, 99), 2); /* a version to come is flexible too: it gets an answer */
    CHECK_EQ(request_header_version(17, 1), 1);
    CHECK_EQ(request_header_version(4, 7), 1); /* not in the tables */
    CHECK_EQ(request_header_version(-1, 0), 1);
}

/* B-4 */
TEST(the_response_header_follows_key_and_version_but_for_api_versions) {
    CHECK_EQ(response_header_version(0, 8), 0);
    CHECK_EQ(response_header_version(0, 9), 1);
    CHECK_EQ(response_header_version(18, 0), 0);
    CHECK_EQ(response_header_version(18, 3), 0);
    CHECK_EQ(response_header_version(17, 1), 0);
}

TEST(a_request_header_reads_up_to_the_body) {
    static const uint8_t v1[] = {0, 12, 0, 3, 0, 0, 0, 9, 0, 2, 'm', 'e', 0xbb};
    static const uint8_t v2[] = {0, 12, 0, 4, 0, 0, 0, 9, 0, 2, 'm', 'e', 1, 5, 1, 0xaa, 0xbb};
    struct request_header got;
    struct rbuf in = {v1, v1 + sizeof v1};
    CHECK_EQ(request_header_decode(&in, &got), ST_OK);
    CHECK_EQ(got.api_key, 12);
    CHECK_EQ(got.api_version, 3);
    CHECK_EQ(got.correlation_id, 9);
    CHECK(str_equal(got.client_id, STR("me")));
    CHECK_EQ(rbuf_left(&in), 1);
    in = (struct rbuf){v2, v2 + sizeof v2};
    CHECK_EQ(request_header_decode(&in, &got), ST_OK);
    CHECK(str_equal(got.client_id, STR("me")));
    CHECK_EQ(rbuf_left(&in), 1);
}

/* B-2 */
TEST(every_cut_of_a_request_header_is_refused) {
    static const uint8_t header[] = {0, 12, 0, 4, 0, 0, 0, 9, 0, 2, 'm', 'e', 1, 5, 1, 0xaa};
    for (size_t cut = 0; cut < sizeof header; cut++) {
        struct request_header got;
        struct rbuf in = {header, header + cut};
        CHECK_EQ(request_header_decode(&in, &got), ST_TRUNCATED);
        CHECK_EQ(got.correlation_id, cut < 8 ? 0 : 9);
        CHECK_EQ(got.client_id.len, cut < 12 ? -1 : 2);
    }
}

TEST(a_client_id_may_be_null_and_not_less) {
    static const uint8_t null[] = {0, 12, 0, 3, 0, 0, 0, 9, 0xff, 0xff};
    static const uint8_t less[] = {0, 12, 0, 3, 0, 0, 0, 9, 0xff, 0xfe};
    struct request_header got;
    struct rbuf in = {null, null + sizeof null};
    CHECK_EQ(request_header_decode(&in, &got), ST_OK);
    CHECK_EQ(got.client_id.len, -1);
    in = (struct rbuf){less, less + sizeof less};
    CHECK_EQ(request_header_decode(&in, &got), ST_BAD_LENGTH);
}

/* B-6 */
TEST(a_response_header_echoes_the_correlation_id_bit_for_bit) {
    struct wbuf w;
    uint8_t got[5];
    wbuf_init(&w, sizeof got);
    CHECK_EQ(response_header_encode(0, 9, INT32_MIN + 1, &w), ST_OK);
    CHECK_EQ(w.bytes, 5);
    wbuf_flatten(&w, got);
    CHECK_MEM(got, "\x80\x00\x00\x01\x00", 5);
    wbuf_release(&w);
}

TEST(error_codes_have_kafkas_names) {
    CHECK_EQ(KERR_UNKNOWN_SERVER_ERROR, -1);
    CHECK_EQ(KERR_NONE, 0);
    CHECK_EQ(KERR_UNKNOWN_TOPIC_ID, 100);
    CHECK_TEXT(kerr_name(3), "UNKNOWN_TOPIC_OR_PARTITION");
    CHECK_TEXT(kerr_name(999), "?");
    CHECK(kerr_is_retriable(KERR_NOT_LEADER_OR_FOLLOWER));
    CHECK(!kerr_is_retriable(KERR_MESSAGE_TOO_LARGE));
    CHECK(!kerr_is_retriable(999));
    for (int16_t code = -1; code <= 136; code++) /* there are no gaps */
        CHECK(kerr_name(code)[0] != '?');
}
