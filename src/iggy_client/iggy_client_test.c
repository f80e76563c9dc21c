#include "iggy_client/iggy_client.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "iggy/codec.h"
#include "iggy/errors.h"
#include "iggy_client/peer_test.h"
#include "net/budget.h"
#include "net/loop.h"
#include "testing/test.h"

static struct peer peer, other;
static struct rig rig;

static void start(uint32_t version, struct rig_options options) {
    peer_open(&peer);
    rig_start(&rig, peer.port, options);
    peer.version = version;
}

static void stop(void) {
    rig_stop(&rig);
    peer_close(&peer);
}

/* A client that is ready, once call, a ping, has been answered. */
static void start_ready(uint32_t version, struct rig_options options) {
    struct rig_call ping;
    options.version_newest = version;
    start(version, options);
    rig_call(&rig, &ping, IGGY_CMD_ping, NULL, LONG_MS);
    peer_log_in(&peer, version);
    peer_expect(&peer, IGGY_CMD_ping);
    peer_answer(&peer, 0, NULL);
    CHECK_EQ(rig_wait(&ping), ST_OK);
    rig_release(&ping);
}

struct facts {
    bool ready;
    uint32_t version;
    struct iggy_u128 cluster;
    int32_t in_flight;
    char failed[200];
};
static struct facts facts;
static void look(void *arg) {
    (void)arg;
    facts.ready = iggy_client_is_ready(rig.client);
    facts.version = iggy_client_version(rig.client);
    facts.cluster = iggy_client_cluster(rig.client);
    facts.in_flight = iggy_client_in_flight(rig.client);
    snprintf(facts.failed, sizeof facts.failed, "%s", iggy_client_failed(rig.client));
}

/* --- answers --- */

TEST(the_first_call_connects_and_logs_in) {
    struct rig_call call;
    start(IGGY_NEWEST, (struct rig_options){0});
    rig_run(&rig, look, NULL);
    CHECK(!facts.ready);
    CHECK_EQ(facts.version, 0);
    rig_call(&rig, &call, IGGY_CMD_get_cluster_metadata, NULL, LONG_MS);
    peer_log_in(&peer, IGGY_NEWEST);
    peer_expect(&peer, IGGY_CMD_get_cluster_metadata);
    CHECK(peer.h.session != 0);
    struct iggy_node node = {.name = STR("node"), .ip = STR("10.0.0.1"), .tcp_port = 8090};
    struct iggy_get_cluster_metadata_res res = {.name = STR("cluster"), .nodes = &node, .nodes_count = 1};
    peer_answer(&peer, 0, &res);
    CHECK_EQ(rig_wait(&call), ST_OK);
    CHECK_EQ(call.r.code, 0);
    struct iggy_get_cluster_metadata_res got;
    struct arena a;
    arena_init(&a, NULL, 0, 65536);
    CHECK_EQ(iggy_request_decode(&call.r, &a, &got), ST_OK);
    CHECK(str_equal(got.name, STR("cluster")));
    CHECK(str_equal(got.nodes[0].name, STR("node")));
    arena_release(&a);
    rig_release(&call);
    rig_run(&rig, look, NULL);
    CHECK(facts.ready);
    CHECK_EQ(facts.version, IGGY_NEWEST);
    CHECK_EQ(facts.cluster.b[0], 9);
    CHECK_EQ(facts.in_flight, 0);
    stop();
}

TEST(an_answer_that_is_an_error_is_an_answer) {
    struct rig_call call;
    start_ready(IGGY_0_11, (struct rig_options){0});
    rig_call(&rig, &call, IGGY_CMD_delete_stream, NULL, LONG_MS);
    peer_expect(&peer, IGGY_CMD_delete_stream);
    peer_answer(&peer, IGGY_ERR_STREAM_ID_NOT_FOUND, NULL);
    CHECK_EQ(rig_wait(&call), ST_OK);
    CHECK_EQ(call.r.code, IGGY_ERR_STREAM_ID_NOT_FOUND);
    CHECK_EQ(call.r.payload.len, 0);
    rig_release(&call);
    stop();
}

TEST(calls_leave_in_their_order_and_answers_find_them_in_any) {
    enum { CALLS = 5 };
    struct rig_call calls[CALLS];
    struct iggy_request_header taken[CALLS];
    start_ready(IGGY_0_12_2, (struct rig_options){0});
    for (int i = 0; i < CALLS; i++)
        rig_call(&rig, &calls[i], i % 2 ? IGGY_CMD_send_messages : IGGY_CMD_get_streams, NULL, LONG_MS);
    for (int i = 0; i < CALLS; i++) {
        peer_expect(&peer, calls[i].code);
        taken[i] = peer.h;
        CHECK(i == 0 || taken[i].request > taken[i - 1].request);
    }
    for (int i = CALLS - 1; i >= 0; i--)
        peer_answer_to(&peer, &taken[i], i == 3 ? IGGY_ERR_STREAM_ID_NOT_FOUND : 0, NULL);
    for (int i = 0; i < CALLS; i++) {
        CHECK_EQ(rig_wait(&calls[i]), ST_OK);
        CHECK_EQ(calls[i].r.code, i == 3 ? IGGY_ERR_STREAM_ID_NOT_FOUND : 0);
        CHECK_EQ(calls[i].r.header.request, taken[i].request);
        rig_release(&calls[i]);
    }
    for (int i = 1; i < CALLS; i++)
        CHECK(calls[i].order < calls[i - 1].order);
    stop();
}

TEST(no_more_are_out_than_the_limit_says) {
    struct rig_call a, b, c;
    start_ready(IGGY_0_11, (struct rig_options){.in_flight_max = 2});
    rig_call(&rig, &a, IGGY_CMD_get_streams, NULL, LONG_MS);
    rig_call(&rig, &b, IGGY_CMD_get_streams, NULL, LONG_MS);
    rig_call(&rig, &c, IGGY_CMD_get_users, NULL, LONG_MS);
    peer_expect(&peer, IGGY_CMD_get_streams);
    peer_expect(&peer, IGGY_CMD_get_streams);
    rig_run(&rig, look, NULL);
    CHECK_EQ(facts.in_flight, 3);
    CHECK(peer_is_quiet(&peer));
    peer_answer(&peer, 0, NULL);
    CHECK_EQ(rig_wait(&b), ST_OK);
    peer_expect(&peer, IGGY_CMD_get_users);
    rig_close(&rig);
    CHECK_EQ(rig_wait(&a), ST_CANCELED);
    CHECK_EQ(rig_wait(&c), ST_CANCELED);
    rig_release(&b);
    stop();
}

/* The frame is larger than any socket buffer; the server reads it only after it has answered. */
TEST(a_call_that_is_answered_before_it_has_left_ends_when_it_has) {
    enum { BODY = 900 * 1024, COUNT = 16 };
    static uint8_t bytes[BODY];
    struct rig_call calls[COUNT];
    struct iggy_request_header first;
    memset(bytes, 7, sizeof bytes);
    struct iggy_send_messages_req send = {
        .target = {.stream = iggy_by_id(1),
                   .topic = iggy_by_id(1),
                   .partitioning = {.kind = IGGY_PARTITION_ID, .partition_id = 0}},
        .batch = {bytes, BODY},
    };
    start_ready(IGGY_0_11, (struct rig_options){.in_flight_max = COUNT});
    for (int i = 0; i < COUNT; i++)
        rig_call(&rig, &calls[i], IGGY_CMD_send_messages, &send, LONG_MS);
    peer_expect(&peer, IGGY_CMD_send_messages);
    first = peer.h;
    for (int i = 1; i < COUNT; i++) { /* numbers follow each other */
        struct iggy_request_header h = first;
        h.request += (uint64_t)i;
        peer_answer_to(&peer, &h, 0, NULL);
    }
    rig_run(&rig, look, NULL);
    CHECK(facts.in_flight > 1); /* what is still to be written is still there */
    for (int i = 1; i < COUNT; i++) {
        peer_expect(&peer, IGGY_CMD_send_messages);
        CHECK_MEM(peer.body + peer.body_bytes - BODY, bytes, BODY);
    }
    peer_answer_to(&peer, &first, 0, NULL);
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQ(rig_wait(&calls[i]), ST_OK);
        rig_release(&calls[i]);
    }
    stop();
}

TEST(a_command_that_the_version_lacks_is_not_sent) {
    struct rig_call call;
    start_ready(IGGY_0_11, (struct rig_options){0});
    rig_call(&rig, &call, IGGY_CMD_fetch_messages, NULL, LONG_MS);
    CHECK_EQ(rig_wait(&call), ST_UNSUPPORTED);
    CHECK(!call.r.may_have_landed);
    stop();
}

TEST(the_frame_of_an_answer_can_outlive_its_request) {
    struct rig_call call;
    start_ready(IGGY_0_11, (struct rig_options){0});
    rig_call(&rig, &call, IGGY_CMD_get_cluster_metadata, NULL, LONG_MS);
    peer_expect(&peer, IGGY_CMD_get_cluster_metadata);
    struct iggy_get_cluster_metadata_res res = {.name = STR("cluster")};
    peer_answer(&peer, 0, &res);
    CHECK_EQ(rig_wait(&call), ST_OK);
    struct bytes payload = call.r.payload;
    struct frame *f = iggy_request_take_frame(&call.r);
    CHECK(f != NULL);
    rig_release(&call);
    CHECK(payload.ptr > f->data && payload.ptr + payload.len == f->data + f->size_bytes);
    frame_free(f);
    stop();
}

/* --- losses and deadlines --- */

/* F-1 */
TEST(a_call_that_was_not_sent_by_its_deadline_was_not_done) {
    struct rig_call call;
    start(IGGY_NEWEST, (struct rig_options){0});
    rig_call(&rig, &call, IGGY_CMD_send_messages, NULL, 30);
    CHECK_EQ(rig_wait(&call), ST_TIMED_OUT);
    CHECK(!call.r.may_have_landed);
    stop();
}

/* F-1 */
TEST(a_write_without_an_answer_by_its_deadline_may_be_done_and_ends_the_connection) {
    struct rig_call write, read;
    start_ready(IGGY_0_11, (struct rig_options){0});
    rig_call(&rig, &read, IGGY_CMD_get_streams, NULL, LONG_MS);
    rig_call(&rig, &write, IGGY_CMD_send_messages, NULL, 50);
    peer_expect(&peer, IGGY_CMD_get_streams);
    peer_expect(&peer, IGGY_CMD_send_messages);
    CHECK_EQ(rig_wait(&write), ST_TIMED_OUT);
    CHECK(write.r.may_have_landed);
    peer_expect_end(&peer);
    peer_log_in(&peer, IGGY_0_11);
    peer_expect(&peer, IGGY_CMD_get_streams);
    peer_answer(&peer, 0, NULL);
    CHECK_EQ(rig_wait(&read), ST_OK);
    rig_release(&read);
    stop();
}

TEST(a_loss_sends_reads_again_and_ends_writes_as_perhaps_done) {
    struct rig_call read, write, poll, later;
    start_ready(IGGY_0_11, (struct rig_options){0});
    rig_call(&rig, &read, IGGY_CMD_get_streams, NULL, LONG_MS);
    rig_call(&rig, &write, IGGY_CMD_send_messages, NULL, LONG_MS);
    rig_call(&rig, &poll, IGGY_CMD_poll_messages, NULL, LONG_MS);
    for (int i = 0; i < 3; i++)
        peer_take(&peer);
    peer_hang_up(&peer);
    CHECK_EQ(rig_wait(&write), ST_TIMED_OUT);
    CHECK(write.r.may_have_landed);
    rig_call(&rig, &later, IGGY_CMD_send_messages, NULL, LONG_MS);
    peer_log_in(&peer, IGGY_0_11);
    static const uint32_t again[] = {IGGY_CMD_get_streams, IGGY_CMD_poll_messages, IGGY_CMD_send_messages};
    for (size_t i = 0; i < COUNT_OF(again); i++) {
        peer_expect(&peer, again[i]);
        peer_answer(&peer, IGGY_ERR_STREAM_ID_NOT_FOUND, NULL);
    }
    CHECK_EQ(rig_wait(&read), ST_OK);
    CHECK_EQ(rig_wait(&poll), ST_OK);
    CHECK_EQ(rig_wait(&later), ST_OK);
    stop();
}

TEST(a_session_of_0_12_goes_on_over_the_next_connection) {
    struct rig_call write;
    start_ready(IGGY_0_12_2, (struct rig_options){0});
    rig_call(&rig, &write, IGGY_CMD_send_messages, NULL, LONG_MS);
    peer_expect(&peer, IGGY_CMD_send_messages);
    struct iggy_request_header first = peer.h;
    peer_hang_up(&peer);
    peer_accept(&peer);
    peer_expect(&peer, IGGY_CMD_bind_session);
    CHECK_EQ(peer.h.session, first.session);
    struct iggy_login_res res = {
        .session = first.session, .protocol = peer.version, .server_version = STR("1")};
    peer_answer(&peer, 0, &res);
    peer_expect(&peer, IGGY_CMD_send_messages);
    CHECK_EQ(peer.h.request, first.request);
    peer_answer(&peer, 0, NULL);
    CHECK_EQ(rig_wait(&write), ST_OK);
    rig_release(&write);
    stop();
}

TEST(a_session_that_the_server_has_forgotten_is_followed_by_a_login_at_once) {
    struct rig_call write, queued;
    start_ready(IGGY_0_12_2, (struct rig_options){0});
    rig_call(&rig, &write, IGGY_CMD_send_messages, NULL, LONG_MS);
    peer_expect(&peer, IGGY_CMD_send_messages);
    peer_hang_up(&peer);
    peer_accept(&peer);
    peer_expect(&peer, IGGY_CMD_bind_session);
    rig_call(&rig, &queued, IGGY_CMD_get_streams, NULL, LONG_MS);
    peer_answer(&peer, IGGY_ERR_UNAUTHENTICATED, NULL);
    CHECK_EQ(rig_wait(&write), ST_TIMED_OUT);
    CHECK(write.r.may_have_landed);
    peer_expect_end(&peer);
    peer_log_in(&peer, IGGY_0_12_2);
    peer_expect(&peer, IGGY_CMD_get_streams);
    peer_answer(&peer, 0, NULL);
    CHECK_EQ(rig_wait(&queued), ST_OK);
    rig_release(&queued);
    stop();
}

TEST(bytes_that_are_no_frame_end_the_connection) {
    struct rig_call call;
    start_ready(IGGY_0_11, (struct rig_options){0});
    rig_call(&rig, &call, IGGY_CMD_send_messages, NULL, LONG_MS);
    peer_expect(&peer, IGGY_CMD_send_messages);
    struct iggy_header h = {.frame = {.kind = IGGY_REPLY, .size = 0}};
    peer_send_raw(&peer, &h);
    CHECK_EQ(rig_wait(&call), ST_TIMED_OUT);
    CHECK(call.r.may_have_landed);
    stop();
}

TEST(a_server_that_refuses_connections_ends_calls_as_not_done) {
    struct rig_call call;
    peer_open(&peer);
    int port = peer.port;
    peer_close(&peer);
    rig_start(&rig, port, (struct rig_options){0});
    int64_t began_ms = clock_ms();
    rig_call(&rig, &call, IGGY_CMD_send_messages, NULL, LONG_MS);
    CHECK_EQ(rig_wait(&call), ST_UNAVAILABLE);
    CHECK(!call.r.may_have_landed);
    CHECK_EQ(rig_connect(&rig, LONG_MS), ST_UNAVAILABLE);
    CHECK(clock_ms() - began_ms < LONG_MS / 4);
    rig_run(&rig, look, NULL);
    CHECK_TEXT(facts.failed, "connection refused");
    rig_stop(&rig);
}

TEST(a_name_that_nobody_has_ends_calls_as_not_done) {
    struct rig_call call;
    rig_start(&rig, 1, (struct rig_options){.host = "no-such-host.invalid"});
    rig_call(&rig, &call, IGGY_CMD_send_messages, NULL, LONG_MS);
    CHECK_EQ(rig_wait(&call), ST_UNAVAILABLE);
    rig_stop(&rig);
}

TEST(a_name_is_looked_up) {
    peer_open(&peer);
    rig_start(&rig, peer.port, (struct rig_options){.host = "localhost"});
    struct rig_call call;
    rig_call(&rig, &call, IGGY_CMD_ping, NULL, LONG_MS);
    peer_log_in(&peer, IGGY_NEWEST);
    stop();
    CHECK_EQ(rig_wait(&call), ST_CANCELED);
}

/* The first attempt has begun before the call: only the second one may end it. */
TEST(a_connection_that_closes_before_the_login_is_a_failed_attempt) {
    struct rig_call first, second;
    start(IGGY_NEWEST, (struct rig_options){0});
    rig_call(&rig, &first, IGGY_CMD_get_streams, NULL, LONG_MS);
    peer_accept(&peer);
    peer_expect(&peer, IGGY_CMD_login_password);
    rig_call(&rig, &second, IGGY_CMD_get_streams, NULL, LONG_MS);
    peer_hang_up(&peer);
    CHECK_EQ(rig_wait(&first), ST_UNAVAILABLE);
    peer_log_in(&peer, IGGY_NEWEST);
    peer_expect(&peer, IGGY_CMD_get_streams);
    peer_answer(&peer, 0, NULL);
    CHECK_EQ(rig_wait(&second), ST_OK);
    rig_release(&second);
    stop();
}

TEST(a_connection_that_nobody_waits_for_comes_back_after_a_loss) {
    start_ready(IGGY_0_11, (struct rig_options){0});
    peer_hang_up(&peer);
    peer_log_in(&peer, IGGY_0_11);
    CHECK_EQ(rig_connect(&rig, LONG_MS), ST_OK);
    stop();
}

/* --- logins --- */

TEST(a_wrong_password_ends_all_and_is_not_tried_again_at_once) {
    struct rig_call call, again;
    start(IGGY_NEWEST, (struct rig_options){.password = "hunter2"});
    rig_call(&rig, &call, IGGY_CMD_send_messages, NULL, LONG_MS);
    peer_accept(&peer);
    peer_expect(&peer, IGGY_CMD_login_password);
    peer_evict(&peer, IGGY_EVICTED_INVALID_CREDENTIALS, 0, 0);
    CHECK_EQ(rig_wait(&call), ST_LOGIN_REFUSED);
    CHECK(!call.r.may_have_landed);
    peer_expect_end(&peer);
    rig_call(&rig, &again, IGGY_CMD_send_messages, NULL, LONG_MS);
    CHECK_EQ(rig_wait(&again), ST_LOGIN_REFUSED);
    CHECK_EQ(rig_connect(&rig, LONG_MS), ST_LOGIN_REFUSED);
    rig_run(&rig, look, NULL);
    CHECK_TEXT(facts.failed, "the login was refused: InvalidCredentials");
    stop();
}

TEST(a_password_that_cannot_be_sent_is_a_refused_login) {
    static char password[300];
    struct rig_call call;
    memset(password, 'x', sizeof password - 1);
    start(IGGY_NEWEST, (struct rig_options){.password = password});
    rig_call(&rig, &call, IGGY_CMD_send_messages, NULL, LONG_MS);
    CHECK_EQ(rig_wait(&call), ST_LOGIN_REFUSED);
    stop();
}

TEST(a_server_of_0_11_is_found_by_the_versions_it_names) {
    struct rig_call call;
    start(IGGY_NEWEST, (struct rig_options){0});
    rig_call(&rig, &call, IGGY_CMD_get_streams, NULL, LONG_MS);
    peer_accept(&peer);
    peer_expect(&peer, IGGY_CMD_login_password);
    peer_evict(&peer, IGGY_EVICTED_INCOMPATIBLE_PROTOCOL, IGGY_0_11, IGGY_0_11);
    peer_expect_end(&peer);
    peer_log_in(&peer, IGGY_0_11);
    peer_expect(&peer, IGGY_CMD_get_streams);
    peer_answer(&peer, 0, NULL);
    CHECK_EQ(rig_wait(&call), ST_OK);
    CHECK_EQ(call.r.version, IGGY_0_11);
    rig_release(&call);
    stop();
}

TEST(a_server_that_cannot_read_the_login_is_one_of_0_11) {
    start(IGGY_NEWEST, (struct rig_options){0});
    struct rig_call call;
    rig_call(&rig, &call, IGGY_CMD_get_streams, NULL, LONG_MS);
    peer_accept(&peer);
    peer_expect(&peer, IGGY_CMD_login_password);
    peer_status(&peer, IGGY_ERR_INVALID_FORMAT);
    peer_expect_end(&peer);
    peer_log_in(&peer, IGGY_0_11);
    peer_expect(&peer, IGGY_CMD_get_streams);
    peer_answer(&peer, 0, NULL);
    CHECK_EQ(rig_wait(&call), ST_OK);
    rig_release(&call);
    stop();
}

TEST(a_version_that_changes_ends_what_was_encoded_for_the_other) {
    struct rig_call call, next;
    start_ready(IGGY_0_12_2, (struct rig_options){0});
    peer_hang_up(&peer);
    peer_accept(&peer);
    peer_expect(&peer, IGGY_CMD_bind_session);
    rig_call(&rig, &call, IGGY_CMD_get_streams, NULL, LONG_MS);
    peer_answer(&peer, IGGY_ERR_UNAUTHENTICATED, NULL);
    peer_expect_end(&peer);
    peer_accept(&peer);
    peer_expect(&peer, IGGY_CMD_login_password);
    peer_evict(&peer, IGGY_EVICTED_INCOMPATIBLE_PROTOCOL, IGGY_0_11, IGGY_0_11);
    peer_expect_end(&peer);
    peer_log_in(&peer, IGGY_0_11);
    CHECK_EQ(rig_wait(&call), ST_UNAVAILABLE);
    CHECK(!call.r.may_have_landed);
    rig_call(&rig, &next, IGGY_CMD_get_streams, NULL, LONG_MS);
    peer_expect(&peer, IGGY_CMD_get_streams);
    peer_answer(&peer, 0, NULL);
    CHECK_EQ(rig_wait(&next), ST_OK);
    rig_release(&next);
    stop();
}

TEST(a_client_goes_to_the_leader) {
    struct rig_call call;
    peer_open(&other);
    start(IGGY_0_12_2, (struct rig_options){0});
    rig_call(&rig, &call, IGGY_CMD_get_streams, NULL, LONG_MS);
    peer_accept(&peer);
    peer_expect(&peer, IGGY_CMD_login_password);
    struct iggy_login_res res = {.session = 1, .protocol = peer.version, .server_version = STR("1")};
    peer_answer(&peer, 0, &res);
    peer_expect(&peer, IGGY_CMD_get_cluster_metadata);
    struct iggy_node nodes[] = {
        {.name = STR("a"), .ip = STR("127.0.0.1"), .tcp_port = (uint16_t)peer.port, .role = 1},
        {.name = STR("b"), .ip = STR("127.0.0.1"), .tcp_port = (uint16_t)other.port, .role = 0}};
    struct iggy_get_cluster_metadata_res cluster = {.name = STR("c"), .nodes = nodes, .nodes_count = 2};
    peer_answer(&peer, 0, &cluster);
    peer_expect_end(&peer);
    peer_log_in(&other, IGGY_0_12_2);
    peer_expect(&other, IGGY_CMD_get_streams);
    peer_answer(&other, 0, NULL);
    CHECK_EQ(rig_wait(&call), ST_OK);
    rig_release(&call);
    stop();
    peer_close(&other);
}

/* --- cancelling, closing --- */

TEST(a_cancelled_call_that_was_not_sent_never_goes_out) {
    struct rig_call call, next;
    start(IGGY_0_11, (struct rig_options){.version_newest = IGGY_0_11});
    rig_call(&rig, &call, IGGY_CMD_send_messages, NULL, LONG_MS);
    rig_call(&rig, &next, IGGY_CMD_get_streams, NULL, LONG_MS);
    rig_cancel(&call);
    rig_cancel(&call);
    CHECK_EQ(rig_wait(&call), ST_CANCELED);
    CHECK(!call.r.may_have_landed);
    peer_log_in(&peer, IGGY_0_11);
    peer_expect(&peer, IGGY_CMD_get_streams);
    peer_answer(&peer, 0, NULL);
    CHECK_EQ(rig_wait(&next), ST_OK);
    rig_release(&next);
    stop();
}

TEST(the_answer_of_a_cancelled_call_is_dropped) {
    struct rig_call call, next;
    struct iggy_request_header cancelled;
    start_ready(IGGY_0_11, (struct rig_options){0});
    rig_call(&rig, &call, IGGY_CMD_send_messages, NULL, LONG_MS);
    peer_expect(&peer, IGGY_CMD_send_messages);
    cancelled = peer.h;
    rig_cancel(&call);
    CHECK_EQ(rig_wait(&call), ST_CANCELED);
    CHECK(call.r.may_have_landed);
    rig_call(&rig, &next, IGGY_CMD_get_streams, NULL, LONG_MS);
    peer_expect(&peer, IGGY_CMD_get_streams);
    peer_answer_to(&peer, &cancelled, 0, NULL);
    peer_answer(&peer, 0, NULL);
    CHECK_EQ(rig_wait(&next), ST_OK);
    rig_release(&next);
    stop();
}

TEST(a_cancelled_fetch_of_0_12_is_cancelled_at_the_server) {
    struct rig_call fetch, read;
    start_ready(IGGY_0_12_2, (struct rig_options){0});
    rig_call(&rig, &fetch, IGGY_CMD_fetch_messages, NULL, LONG_MS);
    peer_expect(&peer, IGGY_CMD_fetch_messages);
    uint64_t number = peer.h.request;
    rig_call(&rig, &read, IGGY_CMD_get_streams, NULL, LONG_MS);
    peer_expect(&peer, IGGY_CMD_get_streams);
    rig_cancel(&read); /* an ordinary read is just answered */
    rig_cancel(&fetch);
    CHECK_EQ(rig_wait(&fetch), ST_CANCELED);
    peer_expect(&peer, IGGY_CMD_cancel_deferred_request);
    CHECK_EQ(peer.h.request, number);
    CHECK_EQ(peer.body_bytes, 0);
    rig_run(&rig, look, NULL);
    CHECK(peer_is_quiet(&peer));
    stop();
}

TEST(closing_ends_what_is_queued_and_what_is_sent) {
    struct rig_call sent, queued;
    start_ready(IGGY_0_11, (struct rig_options){.in_flight_max = 1});
    rig_call(&rig, &sent, IGGY_CMD_send_messages, NULL, LONG_MS);
    rig_call(&rig, &queued, IGGY_CMD_send_messages, NULL, LONG_MS);
    peer_expect(&peer, IGGY_CMD_send_messages);
    rig_close(&rig);
    CHECK_EQ(rig_wait(&sent), ST_CANCELED);
    CHECK(sent.r.may_have_landed);
    CHECK_EQ(rig_wait(&queued), ST_CANCELED);
    CHECK(!queued.r.may_have_landed);
    peer_expect_end(&peer);
    stop();
}

TEST(closing_while_connecting_or_logging_in_or_resting_ends_at_once) {
    start(IGGY_NEWEST, (struct rig_options){0});
    rig_stop(&rig); /* resting */
    struct rig_call call;
    rig_start(&rig, peer.port, (struct rig_options){0});
    rig_call(&rig, &call, IGGY_CMD_ping, NULL, LONG_MS);
    rig_stop(&rig); /* anywhere */
    CHECK_EQ(rig_wait(&call), ST_CANCELED);
    rig_start(&rig, peer.port, (struct rig_options){.host = "localhost"});
    rig_call(&rig, &call, IGGY_CMD_ping, NULL, LONG_MS);
    rig_stop(&rig); /* looking up */
    CHECK_EQ(rig_wait(&call), ST_CANCELED);
    peer_close(&peer);
}

TEST(waiting_for_a_connection_has_its_own_end) {
    start(IGGY_NEWEST, (struct rig_options){0});
    CHECK_EQ(rig_connect(&rig, 20), ST_TIMED_OUT);
    stop();
}
