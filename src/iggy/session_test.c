#include "base/mem.h"
#include "iggy/codec.h"
#include "iggy/errors.h"
#include "iggy/session_bench_test.h"
#include "testing/test.h"

/* ---- login ---- */

TEST(a_login_is_the_first_frame_and_ready_comes_after_a_look_at_the_cluster) {
    struct bench b;
    ready(&b, IGGY_0_12_2);
    CHECK_EQ(b.s.phase, IGGY_READY);
    CHECK_EQ(b.s.session, 42);
    bench_release(&b);
}

TEST(a_login_of_0_12_has_a_request_id_and_one_of_0_11_has_none) {
    struct bench b;
    bench_init(&b, IGGY_0_12_2);
    connect_to(&b, 7);
    CHECK(sends(&b));
    CHECK(!iggy_u128_is_zero(&b.out.request.request_checksum));
    bench_release(&b);
    bench_init(&b, IGGY_0_11);
    connect_to(&b, 7);
    CHECK(sends(&b));
    CHECK(iggy_u128_is_zero(&b.out.request.request_checksum));
    bench_release(&b);
}

TEST(an_eviction_that_names_the_versions_of_the_server_chooses_the_newest_of_them) {
    struct bench b;
    bench_init(&b, IGGY_0_12_2);
    connect_to(&b, 7);
    CHECK(sends(&b));
    CHECK(evicts(&b, IGGY_EVICTED_INCOMPATIBLE_PROTOCOL, IGGY_0_12_0, IGGY_0_12_1));
    CHECK_EQ(b.event.kind, IGGY_EVENT_RECONNECT);
    CHECK_EQ(b.event.host.len, 0);
    CHECK(!sends(&b));
    drop(&b);
    CHECK_EQ(b.s.version, IGGY_0_12_1);
    log_in(&b);
    bench_release(&b);
}

TEST(a_server_that_takes_the_request_id_for_a_checksum_is_one_of_0_11) {
    struct bench b;
    bench_init(&b, IGGY_0_12_2);
    connect_to(&b, 7);
    CHECK(sends(&b));
    struct iggy_header h = {.frame = {.kind = IGGY_REPLY}, .reply = {.operation = 1, .status = 4}};
    CHECK(takes(&b, &h, NULL));
    CHECK_EQ(b.event.kind, IGGY_EVENT_RECONNECT);
    drop(&b);
    CHECK_EQ(b.s.version, IGGY_0_11);
    log_in(&b);
    bench_release(&b);
}

TEST(a_server_without_a_version_of_ours_is_refused_for_good) {
    struct bench b;
    bench_init(&b, IGGY_0_12_2);
    connect_to(&b, 7);
    CHECK(sends(&b));
    CHECK(evicts(&b, IGGY_EVICTED_INCOMPATIBLE_PROTOCOL, IGGY_VERSION(0, 13, 0), IGGY_VERSION(0, 13, 0)));
    CHECK_EQ(b.event.kind, IGGY_EVENT_REFUSED);
    CHECK_EQ(b.event.code, IGGY_ERR_INCOMPATIBLE_PROTOCOL_VERSION);
    CHECK(!event_due(&b));
    bench_release(&b);
}

TEST(a_wrong_password_is_refused_for_good) {
    struct bench b;
    bench_init(&b, IGGY_0_11);
    connect_to(&b, 7);
    CHECK(sends(&b));
    CHECK(evicts(&b, IGGY_EVICTED_INVALID_CREDENTIALS, 0, 0));
    CHECK_EQ(b.event.kind, IGGY_EVENT_REFUSED);
    CHECK_EQ(b.event.code, IGGY_ERR_INVALID_CREDENTIALS);
    bench_release(&b);
}

TEST(a_login_that_is_not_taken_yet_is_sent_again_as_it_was) {
    struct bench b;
    bench_init(&b, IGGY_0_12_2);
    connect_to(&b, 7);
    CHECK(sends(&b));
    struct iggy_header first = b.out;
    CHECK(!answer_to(&b, &b.out, IGGY_ERR_TRANSIENT_NOT_ACCEPTED, NULL));
    CHECK(!sends(&b));
    CHECK_EQ(iggy_session_tick(&b.s, b.now_ms), b.now_ms + 50);
    b.now_ms += 50;
    CHECK(sends(&b));
    CHECK_MEM(&b.out, &first, sizeof first);
    bench_release(&b);
}

TEST(a_login_without_an_answer_ends_the_connection) {
    struct bench b;
    bench_init(&b, IGGY_0_11);
    connect_to(&b, 7);
    CHECK(sends(&b));
    CHECK_EQ(iggy_session_tick(&b.s, b.now_ms), b.now_ms + 30000);
    b.now_ms += 30000;
    iggy_session_tick(&b.s, b.now_ms);
    CHECK(event_due(&b));
    CHECK_EQ(b.event.kind, IGGY_EVENT_RECONNECT);
    bench_release(&b);
}

/* ---- leader ---- */

static bool cluster_answered(struct bench *b, uint8_t here, uint8_t there) {
    struct iggy_node nodes[] = {node_of("10.0.0.1", here), node_of("10.0.0.2", there)};
    struct iggy_get_cluster_metadata_res res = {.name = STR("c"), .nodes = nodes, .nodes_count = 2};
    return answer_to(b, &b->out, 0, &res);
}

TEST(a_session_goes_to_the_leader_three_times_at_most) {
    struct bench b;
    bench_init(&b, IGGY_0_11);
    for (int i = 0; i < 3; i++) {
        connect_to(&b, 7);
        login_answered(&b);
        CHECK(cluster_answered(&b, 1, 0));
        CHECK_EQ(b.event.kind, IGGY_EVENT_RECONNECT);
        CHECK(str_equal(b.event.host, STR("10.0.0.2")));
        CHECK_EQ(b.event.port, 8090);
        drop(&b);
    }
    connect_to(&b, 7);
    login_answered(&b);
    CHECK(cluster_answered(&b, 1, 0));
    CHECK_EQ(b.event.kind, IGGY_EVENT_READY);
    bench_release(&b);
}

TEST(a_session_with_the_leader_stays) {
    struct bench b;
    bench_init(&b, IGGY_0_11);
    connect_to(&b, 7);
    login_answered(&b);
    CHECK(cluster_answered(&b, 0, 1));
    CHECK_EQ(b.event.kind, IGGY_EVENT_READY);
    bench_release(&b);
}

TEST(a_cluster_without_a_leader_is_asked_for_five_seconds) {
    struct bench b;
    bench_init(&b, IGGY_0_11);
    connect_to(&b, 7);
    login_answered(&b);
    int asked = 0;
    while (!cluster_answered(&b, 1, 1)) {
        CHECK(!sends(&b));
        b.now_ms += 250;
        CHECK(sends(&b));
        asked++;
    }
    CHECK_EQ(asked, 20);
    CHECK_EQ(b.event.kind, IGGY_EVENT_READY);
    bench_release(&b);
}

TEST(two_seconds_of_refusals_are_a_reason_to_look_for_the_leader) {
    struct bench b;
    struct iggy_call c;
    ready(&b, IGGY_0_11);
    call(&b, &c, IGGY_CMD_create_topic, FAR);
    for (int i = 0; i < 40; i++) {
        CHECK(sends(&b));
        CHECK_EQ(b.out.request.operation, 132);
        CHECK(!answer_to(&b, &b.out, IGGY_ERR_TRANSIENT_NOT_ACCEPTED, NULL));
        b.now_ms += 50;
        iggy_session_tick(&b.s, b.now_ms);
    }
    CHECK(sends(&b));
    CHECK_EQ(b.out.request.code, IGGY_CMD_get_cluster_metadata);
    CHECK(cluster_answered(&b, 1, 0));
    CHECK_EQ(b.event.kind, IGGY_EVENT_RECONNECT);
    CHECK(str_equal(b.event.host, STR("10.0.0.2")));
    drop(&b);
    CHECK(!event_due(&b)); /* nothing of it was done */
    connect_to(&b, 9);
    login_answered(&b);
    CHECK(cluster_answered(&b, 0, 1));
    CHECK(sends(&b));
    CHECK_EQ(b.out.request.operation, 132);
    bench_release(&b);
}

/* ---- calls ---- */

TEST(answers_are_matched_by_number_in_any_order) {
    struct bench b;
    struct iggy_call first, second;
    ready(&b, IGGY_0_11);
    call(&b, &first, IGGY_CMD_send_messages, FAR);
    call(&b, &second, IGGY_CMD_get_streams, FAR);
    CHECK(sends(&b));
    struct iggy_header send = b.out;
    CHECK(sends(&b));
    CHECK(b.out.request.request > send.request.request);
    struct iggy_get_streams_res none = {0};
    CHECK(answer_to(&b, &b.out, 0, &none));
    CHECK_EQ(b.event.kind, IGGY_EVENT_ANSWER);
    CHECK(b.event.call == &second);
    CHECK(answer_to(&b, &send, IGGY_ERR_RESOURCE_NOT_FOUND, NULL));
    CHECK(b.event.call == &first);
    CHECK_EQ(b.event.code, 20);
    CHECK(!b.event.may_have_landed);
    CHECK(!answer_to(&b, &send, 0, NULL)); /* it has been answered */
    bench_release(&b);
}

TEST(no_more_calls_are_out_than_the_limit) {
    struct bench b;
    struct iggy_call calls[5];
    ready(&b, IGGY_0_11);
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        call(&b, &calls[i], IGGY_CMD_send_messages, FAR);
    for (int i = 0; i < 4; i++)
        CHECK(sends(&b));
    CHECK(!sends(&b));
    CHECK(answer_to(&b, &b.out, IGGY_ERR_UNAUTHORIZED, NULL));
    CHECK(sends(&b));
    bench_release(&b);
}

TEST(partition_calls_of_0_12_carry_the_context_of_their_route) {
    struct bench b;
    struct iggy_call c, read;
    ready(&b, IGGY_0_12_2);
    call(&b, &c, IGGY_CMD_create_topic, FAR);
    CHECK(sends(&b));
    CHECK(!iggy_u128_is_zero(&b.out.request.request_checksum));
    CHECK(answer_to(&b, &b.out, IGGY_ERR_TOPIC_NAME_ALREADY_EXISTS, NULL));
    call(&b, &c, IGGY_CMD_send_messages, FAR);
    c.context = (struct iggy_partition_context){11, 12, 13};
    CHECK(sends(&b));
    CHECK_EQ(b.out.request.partition_incarnation, 11);
    CHECK_EQ(b.out.request.owner_generation, 12);
    CHECK_EQ(b.out.request.metadata_op_min, 13);
    CHECK(iggy_u128_is_zero(&b.out.request.request_checksum));
    call(&b, &read, IGGY_CMD_get_topic, FAR);
    CHECK(sends(&b));
    CHECK_EQ(b.out.request.metadata_op_min, 77); /* the commit of the answer to create_topic */
    CHECK_EQ(b.out.request.partition_incarnation, 0);
    bench_release(&b);
}

TEST(what_was_not_taken_goes_out_again_with_its_number_until_its_deadline) {
    struct bench b;
    struct iggy_call c;
    ready(&b, IGGY_0_11);
    call(&b, &c, IGGY_CMD_send_messages, b.now_ms + 120);
    CHECK(sends(&b));
    uint64_t number = b.out.request.request;
    for (int i = 0; i < 2; i++) {
        CHECK(!answer_to(&b, &b.out, IGGY_ERR_TRANSIENT_NOT_ACCEPTED, NULL));
        CHECK(!sends(&b));
        b.now_ms += 50;
        CHECK(sends(&b));
        CHECK_EQ(b.out.request.request, number);
    }
    CHECK(answer_to(&b, &b.out, IGGY_ERR_TRANSIENT_NOT_ACCEPTED, NULL));
    CHECK_EQ(b.event.code, 58);
    CHECK(!b.event.may_have_landed);
    bench_release(&b);
}

TEST(an_unknown_outcome_is_repeated_only_where_the_number_protects) {
    struct bench b;
    struct iggy_call c;
    ready(&b, IGGY_0_11);
    call(&b, &c, IGGY_CMD_send_messages, FAR);
    CHECK(sends(&b));
    CHECK(answer_to(&b, &b.out, IGGY_ERR_TRANSIENT_NOT_COMMITTED, NULL));
    CHECK(b.event.may_have_landed);
    bench_release(&b);
    ready(&b, IGGY_0_12_2);
    call(&b, &c, IGGY_CMD_send_messages, FAR);
    CHECK(sends(&b));
    struct iggy_header first = b.out;
    CHECK(!answer_to(&b, &b.out, IGGY_ERR_TRANSIENT_NOT_COMMITTED, NULL));
    b.now_ms += 50;
    CHECK(sends(&b));
    CHECK_MEM(&b.out, &first, sizeof first);
    bench_release(&b);
}

TEST(a_busy_lifecycle_is_tried_again_under_a_new_number) {
    struct bench b;
    struct iggy_call c;
    ready(&b, IGGY_0_12_2);
    call(&b, &c, IGGY_CMD_create_topic, FAR);
    CHECK(sends(&b));
    uint64_t number = b.out.request.request;
    CHECK(!answer_to(&b, &b.out, IGGY_ERR_LIFECYCLE_BUSY, NULL));
    b.now_ms += 50;
    CHECK(sends(&b));
    CHECK(b.out.request.request > number);
    bench_release(&b);
}

/* ---- time ---- */

TEST(a_call_that_was_not_sent_by_its_deadline_fails_as_not_done) {
    struct bench b;
    struct iggy_call c;
    bench_init(&b, IGGY_0_11);
    call(&b, &c, IGGY_CMD_send_messages, b.now_ms + 10);
    CHECK_EQ(iggy_session_tick(&b.s, b.now_ms), b.now_ms + 10);
    CHECK(!event_due(&b));
    b.now_ms += 10;
    CHECK_EQ(iggy_session_tick(&b.s, b.now_ms), INT64_MAX);
    CHECK(event_due(&b));
    CHECK_EQ(b.event.kind, IGGY_EVENT_FAILED);
    CHECK(b.event.call == &c);
    CHECK(!b.event.may_have_landed);
    bench_release(&b);
}

TEST(silence_ends_the_connection_and_then_the_write_that_waited) {
    struct bench b;
    struct iggy_call c;
    ready(&b, IGGY_0_11);
    call(&b, &c, IGGY_CMD_send_messages, b.now_ms + 3000);
    CHECK(sends(&b));
    CHECK_EQ(iggy_session_tick(&b.s, b.now_ms), b.now_ms + 3000);
    b.now_ms += 3000;
    iggy_session_tick(&b.s, b.now_ms);
    CHECK(event_due(&b));
    CHECK_EQ(b.event.kind, IGGY_EVENT_RECONNECT);
    CHECK(!event_due(&b));
    drop(&b);
    CHECK(event_due(&b));
    CHECK_EQ(b.event.kind, IGGY_EVENT_FAILED);
    CHECK(b.event.may_have_landed);
    bench_release(&b);
}

TEST(an_idle_session_pings_and_an_unanswered_ping_ends_the_connection) {
    struct bench b;
    ready(&b, IGGY_0_11);
    CHECK_EQ(iggy_session_tick(&b.s, b.now_ms), b.now_ms + 5000);
    CHECK(!sends(&b));
    b.now_ms += 5000;
    iggy_session_tick(&b.s, b.now_ms);
    CHECK(sends(&b));
    CHECK_EQ(b.out.request.code, IGGY_CMD_ping);
    CHECK(!answer_to(&b, &b.out, 0, NULL));
    b.now_ms += 5000;
    iggy_session_tick(&b.s, b.now_ms);
    CHECK(sends(&b));
    b.now_ms += 30000;
    iggy_session_tick(&b.s, b.now_ms);
    CHECK(event_due(&b));
    CHECK_EQ(b.event.kind, IGGY_EVENT_RECONNECT);
    bench_release(&b);
}

/* ---- connections that end ---- */

TEST(without_a_session_to_take_along_reads_go_out_again_and_writes_fail) {
    struct bench b;
    struct iggy_call write, read, once, later;
    ready(&b, IGGY_0_11);
    call(&b, &write, IGGY_CMD_send_messages, FAR);
    call(&b, &read, IGGY_CMD_get_streams, FAR);
    call(&b, &once, IGGY_CMD_poll_messages, FAR);
    once.once = true;
    for (int i = 0; i < 3; i++)
        CHECK(sends(&b));
    call(&b, &later, IGGY_CMD_send_messages, FAR);
    drop(&b);
    CHECK(event_due(&b));
    CHECK(b.event.call == &write);
    CHECK(b.event.may_have_landed);
    CHECK(event_due(&b));
    CHECK(b.event.call == &once);
    CHECK(!event_due(&b));
    connect_to(&b, 9);
    login_answered(&b);
    CHECK(cluster_answered(&b, 0, 1));
    CHECK(sends(&b));
    CHECK_EQ(b.out.request.code, IGGY_CMD_get_streams);
    CHECK(sends(&b));
    CHECK_EQ(b.out.request.operation, 160);
    bench_release(&b);
}

TEST(a_session_of_0_12_is_taken_along_with_its_numbers) {
    struct bench b;
    struct iggy_call write, later;
    ready(&b, IGGY_0_12_2);
    call(&b, &write, IGGY_CMD_send_messages, FAR);
    CHECK(sends(&b));
    struct iggy_header first = b.out;
    call(&b, &later, IGGY_CMD_send_messages, FAR);
    drop(&b);
    CHECK(!event_due(&b));
    connect_to(&b, 9);
    CHECK(sends(&b));
    CHECK_EQ(b.out.request.code, IGGY_CMD_bind_session);
    CHECK_EQ(b.out.request.session, 42);
    CHECK(b.out.request.request > first.request.request);
    CHECK(!sends(&b));
    struct iggy_login_res res = {.session = 42, .protocol = b.s.version, .server_version = STR("0.9")};
    CHECK(answer_to(&b, &b.out, 0, &res));
    CHECK_EQ(b.event.kind, IGGY_EVENT_READY);
    CHECK(sends(&b));
    CHECK_MEM(&b.out, &first, sizeof first);
    CHECK(sends(&b));
    CHECK(b.out.request.request > first.request.request);
    bench_release(&b);
}

TEST(a_session_that_is_not_known_any_more_is_followed_by_a_login) {
    struct bench b;
    struct iggy_call write;
    ready(&b, IGGY_0_12_2);
    call(&b, &write, IGGY_CMD_send_messages, FAR);
    CHECK(sends(&b));
    drop(&b);
    connect_to(&b, 9);
    CHECK(sends(&b));
    CHECK(answer_to(&b, &b.out, IGGY_ERR_UNAUTHENTICATED, NULL));
    CHECK_EQ(b.event.kind, IGGY_EVENT_RECONNECT);
    drop(&b);
    CHECK(event_due(&b));
    CHECK(b.event.call == &write);
    CHECK(b.event.may_have_landed);
    log_in(&b);
    bench_release(&b);
}

TEST(an_eviction_ends_the_session_and_calls_end_after_the_connection) {
    struct bench b;
    struct iggy_call write;
    ready(&b, IGGY_0_12_2);
    call(&b, &write, IGGY_CMD_send_messages, FAR);
    CHECK(sends(&b));
    CHECK(evicts(&b, IGGY_EVICTED_STALE_CLIENT, 0, 0));
    CHECK_EQ(b.event.kind, IGGY_EVENT_RECONNECT);
    CHECK(!event_due(&b));
    CHECK_EQ(write.state, IGGY_CALL_SENT);
    drop(&b);
    CHECK(event_due(&b));
    CHECK_EQ(b.event.kind, IGGY_EVENT_FAILED);
    log_in(&b); /* not a bind */
    bench_release(&b);
}

TEST(a_new_session_knows_nothing_of_the_commits_of_the_one_before) {
    struct bench b;
    struct iggy_call c;
    ready(&b, IGGY_0_12_2);
    call(&b, &c, IGGY_CMD_create_topic, FAR);
    CHECK(sends(&b));
    CHECK(answer_to(&b, &b.out, IGGY_ERR_UNAUTHORIZED, NULL));
    CHECK(evicts(&b, IGGY_EVICTED_NO_SESSION, 0, 0));
    drop(&b);
    log_in(&b);
    call(&b, &c, IGGY_CMD_get_topic, FAR);
    CHECK(sends(&b));
    CHECK_EQ(b.out.request.metadata_op_min, 0);
    bench_release(&b);
}

TEST(each_metadata_request_of_0_12_has_an_id_of_its_own) {
    struct bench b;
    struct iggy_call first, second;
    ready(&b, IGGY_0_12_2);
    call(&b, &first, IGGY_CMD_create_topic, FAR);
    call(&b, &second, IGGY_CMD_create_topic, FAR);
    CHECK(sends(&b));
    struct iggy_u128 id = b.out.request.request_checksum;
    CHECK(answer_to(&b, &b.out, IGGY_ERR_TOPIC_NAME_ALREADY_EXISTS, NULL));
    CHECK(sends(&b));
    CHECK(memcmp(id.b, b.out.request.request_checksum.b, sizeof id.b) != 0);
    bench_release(&b);
}

TEST(a_read_that_finds_the_session_gone_goes_out_in_the_next_one) {
    struct bench b;
    struct iggy_call read;
    ready(&b, IGGY_0_11);
    call(&b, &read, IGGY_CMD_get_streams, FAR);
    CHECK(sends(&b));
    CHECK(answer_to(&b, &b.out, IGGY_ERR_UNAUTHENTICATED, NULL));
    CHECK_EQ(b.event.kind, IGGY_EVENT_RECONNECT);
    drop(&b);
    CHECK(!event_due(&b));
    connect_to(&b, 9);
    b.now_ms += 50;
    login_answered(&b);
    CHECK(cluster_answered(&b, 0, 1));
    CHECK(sends(&b));
    CHECK_EQ(b.out.request.code, IGGY_CMD_get_streams);
    bench_release(&b);
}

TEST(calls_of_another_version_fail_as_not_sent) {
    struct bench b;
    struct iggy_call c;
    bench_init(&b, IGGY_0_12_2);
    call(&b, &c, IGGY_CMD_send_messages, FAR);
    connect_to(&b, 7);
    CHECK(sends(&b));
    CHECK(evicts(&b, IGGY_EVICTED_INCOMPATIBLE_PROTOCOL, IGGY_0_11, IGGY_0_11));
    drop(&b);
    connect_to(&b, 7);
    login_answered(&b);
    CHECK(cluster_answered(&b, 0, 1));
    CHECK_EQ(b.event.kind, IGGY_EVENT_FAILED);
    CHECK(!b.event.may_have_landed);
    CHECK(event_due(&b));
    CHECK_EQ(b.event.kind, IGGY_EVENT_READY);
    bench_release(&b);
}

TEST(a_frame_without_a_legal_size_ends_the_connection) {
    struct bench b;
    ready(&b, IGGY_0_11);
    uint8_t zeros[IGGY_HEADER_BYTES] = {0};
    struct rbuf in = {zeros, zeros + sizeof zeros};
    CHECK(iggy_session_next(&b.s, &in, b.now_ms, &b.event));
    CHECK_EQ(b.event.kind, IGGY_EVENT_RECONNECT);
    bench_release(&b);
}

TEST(a_call_that_is_taken_back_has_no_event_and_its_answer_is_dropped) {
    struct bench b;
    struct iggy_call queued, sent, other;
    ready(&b, IGGY_0_11);
    call(&b, &sent, IGGY_CMD_send_messages, FAR);
    CHECK(sends(&b));
    struct iggy_header first = b.out;
    call(&b, &other, IGGY_CMD_get_streams, FAR);
    CHECK(sends(&b));
    call(&b, &queued, IGGY_CMD_get_streams, FAR);
    iggy_session_cancel(&b.s, &queued);
    iggy_session_cancel(&b.s, &sent);
    CHECK_EQ(queued.state, IGGY_CALL_IDLE);
    CHECK_EQ(sent.state, IGGY_CALL_IDLE);
    CHECK(sent.may_have_landed);
    CHECK(!sends(&b));
    CHECK_EQ(b.s.in_flight, 1);
    CHECK(!answer_to(&b, &first, 0, NULL));
    CHECK(answer_to(&b, &b.out, 0, NULL));
    CHECK(b.event.call == &other);
    bench_release(&b);
}

TEST(an_answer_that_says_nothing_was_done_is_believed) {
    struct bench b;
    struct iggy_call c;
    ready(&b, IGGY_0_12_2);
    call(&b, &c, IGGY_CMD_send_messages, FAR);
    CHECK(sends(&b));
    CHECK(answer_to(&b, &b.out, IGGY_ERR_HISTORY_UNAVAILABLE, NULL));
    CHECK(!b.event.may_have_landed);
    bench_release(&b);
}

TEST(a_failed_call_that_is_taken_back_has_no_event) {
    struct bench b;
    struct iggy_call c;
    bench_init(&b, IGGY_0_11);
    call(&b, &c, IGGY_CMD_get_streams, b.now_ms);
    (void)iggy_session_tick(&b.s, b.now_ms);
    CHECK_EQ(c.state, IGGY_CALL_FAILED);
    iggy_session_cancel(&b.s, &c);
    CHECK(!event_due(&b));
    bench_release(&b);
}

TEST(deferred_calls_that_are_taken_back_are_cancelled_at_the_server) {
    struct bench b;
    struct iggy_call fetch, poll, read;
    ready(&b, IGGY_0_12_2);
    call(&b, &fetch, IGGY_CMD_fetch_messages, FAR);
    call(&b, &poll, IGGY_CMD_poll_messages_deferred, FAR);
    call(&b, &read, IGGY_CMD_get_streams, FAR);
    CHECK(sends(&b) && sends(&b) && sends(&b));
    uint64_t next = b.s.next_request;
    iggy_session_cancel(&b.s, &read);
    iggy_session_cancel(&b.s, &poll);
    CHECK(sends(&b));
    CHECK_EQ(b.out.request.code, IGGY_CMD_cancel_deferred_request);
    CHECK_EQ(b.out.request.request, poll.number);
    CHECK_EQ(b.out.request.session, 42);
    CHECK(!sends(&b));
    CHECK_EQ(b.s.next_request, next);
    iggy_session_cancel(&b.s, &fetch);
    drop(&b);
    connect_to(&b, 9);
    CHECK(sends(&b));
    CHECK_EQ(b.out.request.code, IGGY_CMD_bind_session);
    CHECK(answer_to(&b, &b.out, 0, NULL));
    CHECK_EQ(b.event.kind, IGGY_EVENT_READY);
    CHECK(!sends(&b)); /* the number meant something on the connection before only */
    bench_release(&b);
}

static void oom_log_in(void) {
    struct bench b;
    bench_init(&b, IGGY_0_12_2);
    uint8_t random[IGGY_SESSION_RANDOM_BYTES] = {1};
    enum status st = iggy_session_connected(&b.s, STR("10.0.0.1"), 8090, random, b.now_ms);
    CHECK(st == ST_OK || st == ST_NO_MEMORY);
    bench_release(&b);
}

TEST_OOM(a_login_without_memory_says_so) {
    oom_log_in();
}
