/* In which order writes leave, when some have to leave again. */
#include "iggy/errors.h"
#include "iggy/session_bench_test.h"
#include "testing/test.h"

static uint64_t next_number(struct bench *b) {
    CHECK(sends(b));
    return b->out.request.request;
}

TEST(writes_keep_their_order_behind_one_that_was_not_taken) {
    struct bench b;
    struct iggy_call first, second, third, read;
    ready(&b, IGGY_0_12_2);
    call(&b, &first, IGGY_CMD_send_messages, FAR);
    call(&b, &second, IGGY_CMD_send_messages, FAR);
    uint64_t number = next_number(&b);
    struct iggy_header first_out = b.out;
    CHECK_EQ(next_number(&b), number + 1);
    struct iggy_header second_out = b.out;
    CHECK(!answer_to(&b, &first_out, IGGY_ERR_TRANSIENT_NOT_ACCEPTED, NULL));
    call(&b, &third, IGGY_CMD_send_messages, FAR);
    call(&b, &read, IGGY_CMD_get_topic, FAR);
    CHECK_EQ(next_number(&b), number + 2); /* a read waits for no write */
    CHECK_EQ(b.out.request.code, IGGY_CMD_get_topic);
    CHECK(!sends(&b));
    b.now_ms += 10;
    CHECK(!answer_to(&b, &second_out, IGGY_ERR_TRANSIENT_NOT_ACCEPTED, NULL));
    b.now_ms += 40;
    CHECK_EQ(next_number(&b), number);
    CHECK(!sends(&b)); /* the third is behind the second, whose time has not come */
    b.now_ms += 10;
    CHECK_EQ(next_number(&b), number + 1);
    CHECK_EQ(next_number(&b), number + 3);
    CHECK(!sends(&b));
    bench_release(&b);
}

TEST(writes_of_metadata_go_out_one_at_a_time) {
    struct bench b;
    struct iggy_call first, second, read;
    ready(&b, IGGY_0_11);
    call(&b, &first, IGGY_CMD_create_topic, FAR);
    call(&b, &second, IGGY_CMD_create_topic, FAR);
    call(&b, &read, IGGY_CMD_get_topic, FAR);
    uint64_t number = next_number(&b);
    struct iggy_header first_out = b.out;
    CHECK_EQ(next_number(&b), number + 1);
    CHECK_EQ(b.out.request.code, IGGY_CMD_get_topic);
    CHECK(!sends(&b));
    CHECK(!answer_to(&b, &first_out, IGGY_ERR_TRANSIENT_NOT_COMMITTED, NULL));
    CHECK(!sends(&b));
    b.now_ms += 50;
    CHECK_EQ(next_number(&b), number);
    CHECK(!sends(&b));
    CHECK(answer_to(&b, &b.out, IGGY_ERR_REQUEST_ALREADY_APPLIED, NULL));
    CHECK_EQ(next_number(&b), number + 2);
    bench_release(&b);
}

TEST(what_was_not_taken_before_a_loss_goes_out_in_its_place_after_it) {
    struct bench b;
    struct iggy_call first, second;
    ready(&b, IGGY_0_12_2);
    call(&b, &first, IGGY_CMD_send_messages, FAR);
    call(&b, &second, IGGY_CMD_send_messages, FAR);
    uint64_t number = next_number(&b);
    struct iggy_header first_out = b.out;
    CHECK_EQ(next_number(&b), number + 1);
    CHECK(!answer_to(&b, &first_out, IGGY_ERR_TRANSIENT_NOT_ACCEPTED, NULL));
    drop(&b);
    connect_to(&b, 9);
    CHECK(sends(&b));
    CHECK_EQ(b.out.request.code, IGGY_CMD_bind_session);
    struct iggy_login_res res = {.session = 42, .protocol = b.s.version, .server_version = STR("0.9")};
    CHECK(answer_to(&b, &b.out, 0, &res));
    CHECK(!sends(&b));
    b.now_ms += 50;
    CHECK_EQ(next_number(&b), number);
    CHECK_EQ(next_number(&b), number + 1);
    bench_release(&b);
}
