#include "backend/iggy/bridge_rig_test.h"
#include "backend/iggy/fake_log_test.h"
#include "backend/iggy/producers.h"
#include "base/clock.h"
#include "iggy/errors.h"
#include "testing/test.h"

static struct bridge_rig rig;

TEST(batches_are_sent_and_answered_with_their_offset) {
    struct turn turn;
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    for (int i = 0; i < 3; i++) {
        append_of(&rig, &turn, "t", rig_batch(&rig, (struct batch_want){.records_count = 5, .letter = 'a'}));
        turn_run(&rig, &turn, start_append);
        CHECK_EQ(turn.append.parts[0].status, ST_OK);
        CHECK_EQ(turn.append.parts[0].base_offset, 5 * i);
        CHECK_EQ(turn.append.parts[0].start_offset, -1); /* D1-21 */
    }
    CHECK_EQ(rig.server.sends[2].messages_count, 5);
    CHECK_EQ(rig.server.sends[2].incarnation, rig.server.topics[0].incarnation);
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_get_topic), 1);
    rig_close(&rig);
}

/* Larger ones are converted in the pool, several at once, and small ones at once, on the loop. */
TEST(batches_of_a_partition_are_sent_in_the_order_of_the_calls_whichever_is_converted_first) {
    enum { COUNT = 120 };
    static struct turn turns[COUNT];
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    for (int i = 0; i < COUNT; i++) {
        struct batch_want want = {.letter = (char)('!' + i % 90)};
        if (i % 3 == 0)
            want = (struct batch_want){.letter = want.letter, .value_len = 900, .records_count = 1000};
        if (i % 3 == 1)
            want = (struct batch_want){.letter = want.letter, .value_len = 500, .codec = CODEC_ZSTD};
        append_of(&rig, &turns[i], "t", rig_batch(&rig, want));
        turn_begin(&rig, 0, &turns[i], start_append);
    }
    for (int i = 0; i < COUNT; i++) {
        turn_end(&turns[i]);
        CHECK_EQ(turns[i].append.parts[0].status, ST_OK);
        CHECK_EQ(rig.server.sends[i].first, '!' + i % 90);
    }
    rig_close(&rig);
}

TEST(many_sends_are_under_way_in_one_connection) {
    static struct turn turns[SENDS_MAX + 1];
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    fake_hold(&rig.server, IGGY_CMD_send_messages);
    for (int i = 0; i <= SENDS_MAX; i++) {
        append_of(&rig, &turns[i], "t", rig_batch(&rig, (struct batch_want){.letter = 'a'}));
        turn_begin(&rig, 0, &turns[i], start_append);
    }
    fake_expect(&rig.server, IGGY_CMD_send_messages, SENDS_MAX);
    fake_let_go(&rig.server);
    for (int i = 0; i <= SENDS_MAX; i++) {
        turn_end(&turns[i]);
        CHECK_EQ(turns[i].append.parts[0].base_offset, i);
    }
    rig_close(&rig);
}

/* G-1 */
TEST(producers_have_connections_of_their_own_and_others_share_one) {
    rig_open(&rig, (struct rig_options){.sessions = 8});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    const int64_t ids[] = {7, 0, 8, 7, 0, 8};
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        CHECK_EQ(
            append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a', .producer_id = ids[i]})),
            ST_OK);
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ(rig.server.sends[i].conn, rig.server.sends[i + 3].conn);
        CHECK(rig.server.sends[i].conn != rig.server.sends[(i + 1) % 3].conn);
    }
    rig_close(&rig);
}

static void age_producers(struct bridge_loop *l, void *arg) {
    const int64_t *ids = arg;
    for (; *ids; ids++)
        producer_take(l, *ids)->used_ms -= PRODUCER_UNUSED_MS + 1;
}

static int conn_of(int64_t id) {
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a', .producer_id = id})),
             ST_OK);
    return rig.server.sends[rig.server.sends_count - 1].conn;
}

/* G-2 */
TEST(a_new_producer_takes_the_place_of_the_one_unused_for_longest_or_shares) {
    rig_open(&rig, (struct rig_options){.sessions = 2});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    int shared = conn_of(0), one = conn_of(1), two = conn_of(2);
    CHECK(one != shared && two != shared && one != two);
    CHECK_EQ(conn_of(3), shared); /* both were used just now */
    int64_t unused[] = {2, 1, 0};
    rig_run(&rig, age_producers, unused);
    CHECK(conn_of(3) != shared);
    CHECK_EQ(conn_of(1), one); /* it was used after 2 */
    CHECK_EQ(conn_of(2), shared);
    rig_close(&rig);
}

TEST(without_sessions_all_producers_share_one_connection) { /* G-4 */
    rig_open(&rig, (struct rig_options){.sessions = 0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    CHECK_EQ(conn_of(1), conn_of(2));
    CHECK_EQ(conn_of(0), conn_of(2));
    rig_close(&rig);
}

/* Reference 15.9 */
TEST(what_kafka_knows_of_a_producer_goes_along_where_the_server_has_a_place_for_it) {
    struct bytes batch;
    rig_open(&rig, (struct rig_options){.version = IGGY_0_12_2, .sessions = 1});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    batch = rig_batch(&rig, (struct batch_want){.letter = 'a', .producer_id = 9, .sequence = 17});
    CHECK_EQ(append_run(&rig, "t", batch), ST_OK);
    CHECK(rig.server.sends[0].producer.present);
    CHECK_EQ(rig.server.sends[0].producer.id, 9);
    CHECK_EQ(rig.server.sends[0].producer.base_sequence, 17);
    rig_close(&rig);
    rig_open(&rig, (struct rig_options){.version = IGGY_0_11, .sessions = 1});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    batch = rig_batch(&rig, (struct batch_want){.letter = 'a', .producer_id = 9, .sequence = 17});
    CHECK_EQ(append_run(&rig, "t", batch), ST_OK);
    CHECK(!rig.server.sends[0].producer.present);
    rig_close(&rig);
}

TEST(a_duplicate_is_stored_and_its_offset_is_not_known) { /* D1-21 */
    struct turn turn;
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    rig.server.forgets_offset = true;
    append_of(&rig, &turn, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'}));
    turn_run(&rig, &turn, start_append);
    CHECK_EQ(turn.append.parts[0].status, ST_OK);
    CHECK_EQ(turn.append.parts[0].base_offset, -1);
    rig_close(&rig);
}

/* F */
TEST(refused_sends_say_why) {
    static const struct {
        uint32_t code;
        enum status status;
    } rows[] = {
        {IGGY_ERR_RESOURCE_NOT_FOUND, ST_NOT_FOUND},
        {IGGY_ERR_UNAUTHORIZED, ST_DENIED},
        {IGGY_ERR_TRANSIENT_NOT_COMMITTED, ST_TIMED_OUT},
        {IGGY_ERR_PRODUCER_SEQUENCE_OUT_OF_ORDER, ST_BAD_SEQUENCE},
        {IGGY_ERR_PRODUCER_EPOCH_FENCED, ST_FENCED},
        {IGGY_ERR_PRODUCER_UNKNOWN, ST_UNKNOWN_PRODUCER},
        {IGGY_ERR_TOO_BIG_MESSAGE_PAYLOAD, ST_TOO_BIG},
        {IGGY_ERR_REQUEST_ALREADY_APPLIED, ST_OK},
        {IGGY_ERR_CANNOT_APPEND_MESSAGE, ST_REFUSED},
    };
    rig_open(&rig, (struct rig_options){.version = IGGY_0_11});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fake_refuse(&rig.server, IGGY_CMD_send_messages, rows[i].code, 1);
        CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), rows[i].status);
    }
    rig_close(&rig);
}

TEST(a_partition_that_has_moved_is_looked_up_and_sent_to_once_more) { /* 87, 89 */
    struct turn turn;
    rig_open(&rig, (struct rig_options){.version = IGGY_0_12_2});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), ST_OK);
    fake_lock(&rig.server);
    rig.server.topics[0].incarnation = 5555;
    fake_unlock(&rig.server);
    fake_refuse(&rig.server, IGGY_CMD_send_messages, IGGY_ERR_HISTORY_UNAVAILABLE, 1);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'b'})), ST_OK);
    CHECK_EQ(rig.server.sends_count, 2);
    CHECK_EQ(rig.server.sends[1].incarnation, 5555);
    fake_refuse(&rig.server, IGGY_CMD_send_messages, IGGY_ERR_NOT_PRIMARY, 2);
    append_of(&rig, &turn, "t", rig_batch(&rig, (struct batch_want){.letter = 'c'}));
    turn_run(&rig, &turn, start_append);
    CHECK_EQ(turn.append.parts[0].status, ST_UNAVAILABLE);
    CHECK_EQ(rig.server.sends_count, 2);
    rig_close(&rig);
}

TEST(what_is_sent_anew_keeps_its_place) {
    enum { COUNT = 10 };
    static struct turn turns[COUNT];
    rig_open(&rig, (struct rig_options){.version = IGGY_0_12_2});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'x'})), ST_OK);
    fake_hold(&rig.server, IGGY_CMD_send_messages);
    for (int i = 0; i < COUNT; i++) {
        append_of(&rig, &turns[i], "t", rig_batch(&rig, (struct batch_want){.letter = (char)('a' + i)}));
        turn_begin(&rig, 0, &turns[i], start_append);
    }
    fake_expect(&rig.server, IGGY_CMD_send_messages, 1 + COUNT);
    fake_refuse(&rig.server, IGGY_CMD_send_messages, IGGY_ERR_NOT_PRIMARY, COUNT);
    fake_let_go(&rig.server);
    for (int i = 0; i < COUNT; i++) {
        turn_end(&turns[i]);
        CHECK_EQ(turns[i].append.parts[0].status, ST_OK);
        CHECK_EQ(rig.server.sends[1 + i].first, 'a' + i);
    }
    rig_close(&rig);
}

TEST(a_topic_deleted_under_a_producer_is_not_found_and_may_come_back) {
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), ST_OK);
    fake_remove_topic(&rig.server, "t");
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), ST_NOT_FOUND);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), ST_NOT_FOUND);
    fake_add_topic(&rig.server, "kafka", "t", 1);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), ST_OK);
    rig_close(&rig);
}

TEST(partitions_that_do_not_exist_are_not_found) { /* D1-4 */
    struct turn turn;
    const int32_t bad[] = {-1, 2, INT32_MAX};
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 2);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        append_of(&rig, &turn, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'}));
        turn.append.parts[0].partition = bad[i];
        turn_run(&rig, &turn, start_append);
        CHECK_EQ(turn.append.parts[0].status, ST_NOT_FOUND);
    }
    CHECK_EQ(rig.server.sends_count, 0);
    rig_close(&rig);
}

TEST(bad_batches_are_refused_with_a_reason_and_do_not_stop_the_next) { /* D1-15 */
    struct turn turn;
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    append_of(&rig, &turn, "t", (struct bytes){(const uint8_t *)"garbage", 7});
    turn_run(&rig, &turn, start_append);
    CHECK_EQ(turn.append.parts[0].status, ST_BAD_RECORD);
    CHECK(turn.append.parts[0].reason != NULL);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), ST_OK);
    rig_close(&rig);
}

/* D1-30, D1-40 */
TEST(what_is_too_large_for_the_server_or_for_a_partition_is_refused) {
    struct turn turn;
    rig_open(&rig, (struct rig_options){.batch_bytes_max = 100000, .send_bytes_max = 50000});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    append_of(&rig, &turn, "t", rig_batch(&rig, (struct batch_want){.letter = 'a', .value_len = 60000}));
    turn_run(&rig, &turn, start_append);
    CHECK_EQ(turn.append.parts[0].status, ST_TOO_BIG);
    CHECK_TEXT(turn.append.parts[0].reason,
               "The records are larger than one send to the Iggy server may be.");
    struct bytes large =
        rig_batch(&rig, (struct batch_want){.letter = 'a', .value_len = 200000, .codec = CODEC_GZIP});
    CHECK_EQ(append_run(&rig, "t", large), ST_TOO_BIG);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a', .value_len = 40000})),
             ST_OK);
    rig_close(&rig);
}

/* D1-33, D1-41: eight partition caps, then the rest of the request is refused unseen. */
TEST(a_request_that_has_used_up_its_budget_is_cut_there) {
    enum { COUNT = 12 };
    struct turn turn = {.append = {.parts_count = COUNT}};
    struct backend_append_part parts[COUNT];
    rig_open(&rig, (struct rig_options){.batch_bytes_max = 70000});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    for (int i = 0; i < COUNT; i++)
        parts[i] = (struct backend_append_part){
            .topic = STR("t"),
            .records = rig_batch(&rig, (struct batch_want){.letter = 'a', .value_len = 60000})};
    turn.append.parts = parts;
    turn_run(&rig, &turn, start_append);
    for (int i = 0; i < COUNT; i++)
        CHECK_EQ(parts[i].status, i < 9 ? ST_OK : ST_OVER_BUDGET);
    CHECK_EQ(budget_free_bytes(rig.bridge->decoding), 4 * 70000);
    CHECK_EQ(budget_free_bytes(rig.bridge->decoding_small), 70000);
    rig_close(&rig);
}

static void take_all(struct bridge_loop *l, void *arg) {
    (void)arg;
    CHECK(budget_try(l->bridge->decoding, 4 << 20));
}

/* D1-34, D1-43, D1-44 */
TEST(large_batches_wait_for_memory_and_small_ones_of_other_producers_pass) {
    struct turn large;
    rig_open(&rig, (struct rig_options){.sessions = 2});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    rig_run(&rig, take_all, NULL);
    append_of(&rig, &large, "t",
              rig_batch(&rig, (struct batch_want){.letter = 'a', .value_len = 100000, .producer_id = 1}));
    large.append.deadline_ms = clock_ms() + 300;
    turn_begin(&rig, 0, &large, start_append);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'b', .producer_id = 2})),
             ST_OK);
    turn_end(&large);
    CHECK_EQ(large.append.parts[0].status, ST_TIMED_OUT);
    CHECK_EQ(rig.server.sends_count, 1);
    budget_give(rig.bridge->decoding, 4 << 20);
    rig_close(&rig);
}

TEST(a_send_without_an_answer_ends_with_the_request_and_may_have_landed) { /* D1-34 */
    struct turn turn;
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    fake_hold(&rig.server, IGGY_CMD_send_messages);
    append_of(&rig, &turn, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'}));
    turn.append.deadline_ms = clock_ms() + 200;
    turn_run(&rig, &turn, start_append);
    CHECK_EQ(turn.append.parts[0].status, ST_TIMED_OUT);
    rig_close(&rig);
}

TEST(a_connection_lost_in_a_send_leaves_its_outcome_open) { /* F, D1-34; 0.11 has no way to ask */
    rig_open(&rig, (struct rig_options){.version = IGGY_0_11});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    fake_refuse(&rig.server, IGGY_CMD_send_messages, 0, 1);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), ST_TIMED_OUT);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), ST_OK);
    rig_close(&rig);
}

static struct bytes numbered(int32_t sequence) {
    return rig_batch(&rig, (struct batch_want){.letter = 'a', .producer_id = 7, .sequence = sequence});
}

/* Two numbered batches have come to the server, which has answered neither. first_ms: until the first is waited for. */
static void send_two(struct turn turns[2], uint32_t version, int64_t first_ms) {
    rig_open(&rig, (struct rig_options){.version = version});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    fake_hold(&rig.server, IGGY_CMD_send_messages);
    for (int i = 0; i < 2; i++) {
        append_of(&rig, &turns[i], "t", numbered(i));
        if (i == 0 && first_ms > 0)
            turns[i].append.deadline_ms = clock_ms() + first_ms;
        turn_begin(&rig, 0, &turns[i], start_append);
    }
    fake_expect(&rig.server, IGGY_CMD_send_messages, 2);
}

/* Of 0.11 the second one is answered first. */
static void answer_second_first(struct turn turns[2]) {
    send_two(turns, IGGY_0_11, 0);
    fake_let_go_last(&rig.server);
}

TEST(a_batch_that_is_stored_while_one_before_it_has_no_answer_waits_for_that) { /* G-6 */
    struct turn turns[2];
    answer_second_first(turns);
    fake_let_go(&rig.server);
    for (int i = 0; i < 2; i++) {
        turn_end(&turns[i]);
        CHECK_EQ(turns[i].append.parts[0].status, ST_OK);
        CHECK_EQ(turns[i].append.parts[0].base_offset, 1 - i); /* as it was stored */
    }
    rig_close(&rig);
}

TEST(a_batch_that_is_stored_is_not_acknowledged_when_one_before_it_fails_later) { /* G-6 */
    struct turn turns[2];
    answer_second_first(turns);
    fake_hang_up_all(&rig.server);
    for (int i = 0; i < 2; i++) {
        turn_end(&turns[i]);
        CHECK_EQ(turns[i].append.parts[0].status, ST_TIMED_OUT);
    }
    rig_close(&rig);
}

/* G-6, the server looks at the numbers: the second is stored only behind the first, whichever outcome is known earlier. */
static void check_third_follows(bool second_first) {
    struct turn turns[2];
    send_two(turns, IGGY_0_12_2, 300);
    if (second_first)
        fake_let_go_last(&rig.server);
    turn_end(&turns[0]);
    CHECK_EQ(turns[0].append.parts[0].status, ST_TIMED_OUT);
    fake_let_go(&rig.server);
    turn_end(&turns[1]);
    CHECK_EQ(turns[1].append.parts[0].status, ST_OK);
    CHECK_EQ(append_run(&rig, "t", numbered(2)), ST_OK);
    rig_close(&rig);
}

TEST(a_batch_that_is_stored_shows_that_one_without_an_answer_is) {
    check_third_follows(false);
}

TEST(a_batch_that_was_stored_shows_that_one_without_an_answer_is) {
    check_third_follows(true);
}

TEST(a_session_that_can_be_taken_along_sends_again_and_stores_once) { /* 0.12 */
    rig_open(&rig, (struct rig_options){.version = IGGY_0_12_2});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    fake_refuse(&rig.server, IGGY_CMD_send_messages, 0, 1);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), ST_OK);
    CHECK_EQ(rig.server.sends_count, 1);
    rig_close(&rig);
}

TEST(a_server_that_is_gone_makes_appends_unavailable) { /* D1-33 */
    struct turn turn;
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    fake_lock(&rig.server);
    rig.server.password = "changed";
    fake_unlock(&rig.server);
    append_of(&rig, &turn, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'}));
    turn_run(&rig, &turn, start_append);
    CHECK_EQ(turn.append.parts[0].status, ST_LOGIN_REFUSED);
    rig_close(&rig);
}

TEST(a_stop_ends_what_is_under_way_and_what_waits) { /* */
    static struct turn turns[SENDS_MAX + 10];
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    fake_hold(&rig.server, IGGY_CMD_send_messages);
    for (size_t i = 0; i < COUNT_OF(turns); i++) {
        append_of(&rig, &turns[i], "t", rig_batch(&rig, (struct batch_want){.letter = 'a'}));
        turn_begin(&rig, 0, &turns[i], start_append);
    }
    fake_expect(&rig.server, IGGY_CMD_send_messages, SENDS_MAX);
    rig_stop(&rig);
    for (size_t i = 0; i < COUNT_OF(turns); i++) {
        turn_end(&turns[i]);
        CHECK_EQ(turns[i].append.parts[0].status, i < SENDS_MAX ? ST_TIMED_OUT : ST_UNAVAILABLE);
    }
    fake_expect_conns(&rig.server, 0);
    rig_close(&rig);
}
