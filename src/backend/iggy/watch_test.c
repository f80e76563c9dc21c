#include "backend/iggy/reader_test.h"
#include "base/clock.h"
#include "iggy/errors.h"
#include "testing/test.h"

#define LONG_MS  20000
#define SHORT_MS 250

static struct bridge_rig rig;
static struct reader reader;

static void open_with(uint32_t version, int loops) {
    rig_open(&rig, (struct rig_options){.version = version, .loops_count = loops});
    fake_add_topic(&rig.server, "kafka", "t", 2);
    fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 5, .letter = 'a'});
}

/* A round that finds nothing: the reader is at the end. */
static void read_to_end(struct reader *r, int loop) {
    reader_init(r, &rig, loop);
    reader_add(r, "t", 0, 5);
    reader_add(r, "t", 1, 0);
    reader_run(r);
    CHECK_EQ(r->parts[0].status, ST_OK);
    CHECK_EQ(r->read.bytes, 0);
}

static int fetches(void) {
    return fake_seen(&rig.server, IGGY_CMD_fetch_messages);
}

static void close_all(void) {
    reader_release(&reader);
    rig_close(&rig);
}

/* A Fetch's rounds until its time is over, as kafka/handlers does it: how many there were. */
static int rounds_within(int64_t ms) {
    int64_t until_ms = clock_ms() + ms;
    int rounds = 1;
    for (; clock_ms() < until_ms; rounds++) {
        if (reader_watch(&reader, 1, until_ms - clock_ms()) != ST_OK)
            break;
        reader_run(&reader);
        CHECK_EQ(reader.read.bytes, 0);
    }
    return rounds;
}

/* ---- the server waits: 0.12.1 ---- */

TEST(the_server_waits_and_its_answer_is_the_next_round) { /* D2-42 */
    open_with(IGGY_0_12_2, 1);
    read_to_end(&reader, 0);
    reader_watch_begin(&reader, 1, LONG_MS);
    fake_expect_waiting(&rig.server, 1);
    CHECK_EQ(rig.server.fetch.min_count, 1);
    CHECK(rig.server.fetch.wait_us > (LONG_MS - 5000) * 1000 && rig.server.fetch.wait_us <= LONG_MS * 1000);
    fake_write(&rig.server, "t", 1, (struct fake_messages){.count = 3, .letter = 'b'});
    CHECK_EQ(reader_watch_end(&reader), ST_OK);
    CHECK_EQ(fetches(), 2);
    reader_run(&reader);
    CHECK_EQ(fetches(), 2);
    CHECK_EQ(part_records(&reader.parts[1]), 3);
    CHECK_EQ(reader.parts[1].high_watermark, 3);
    CHECK_EQ(reader.parts[0].high_watermark, 5);
    reader_run(&reader); /* an answer serves once */
    CHECK_EQ(fetches(), 3);
    CHECK_EQ(part_records(&reader.parts[1]), 3);
    close_all();
}

TEST(an_answer_without_messages_at_the_end_of_the_wait_is_the_last_round) {
    open_with(IGGY_0_12_2, 1);
    read_to_end(&reader, 0);
    int64_t began_ms = clock_ms();
    CHECK_EQ(reader_watch(&reader, 1, SHORT_MS), ST_TIMED_OUT);
    CHECK(clock_ms() - began_ms >= SHORT_MS - 1);
    reader_run(&reader);
    CHECK_EQ(fetches(), 2);
    CHECK_EQ(reader.parts[0].status, ST_OK);
    CHECK_EQ(reader.parts[0].high_watermark, 5);
    close_all();
}

TEST(a_wait_that_is_cancelled_is_called_back_at_the_server) {
    open_with(IGGY_0_12_2, 1);
    read_to_end(&reader, 0);
    reader_watch_begin(&reader, 1, LONG_MS);
    fake_expect_waiting(&rig.server, 1);
    reader_cancel(&reader);
    CHECK_EQ(reader_watch_end(&reader), ST_CANCELED);
    fake_expect_cancels(&rig.server, 1);
    fake_expect_waiting(&rig.server, 0);
    reader_run(&reader);
    CHECK_EQ(reader.parts[0].status, ST_OK);
    close_all();
}

TEST(a_wait_ends_although_the_server_does_not_answer) {
    open_with(IGGY_0_12_2, 1);
    read_to_end(&reader, 0);
    fake_hold(&rig.server, IGGY_CMD_fetch_messages);
    CHECK_EQ(reader_watch(&reader, 1, SHORT_MS), ST_TIMED_OUT);
    fake_expect_cancels(&rig.server, 1);
    fake_let_go(&rig.server);
    reader_run(&reader);
    CHECK_EQ(reader.parts[0].status, ST_OK);
    close_all();
}

TEST(a_wait_for_many_bytes_asks_for_so_many_messages) { /* D2-2 */
    open_with(IGGY_0_12_2, 1);
    read_to_end(&reader, 0);
    reader_watch_begin(&reader, 5000, LONG_MS);
    fake_expect_waiting(&rig.server, 1);
    CHECK_EQ(rig.server.fetch.min_count, 50); /* by the view, whose messages take 100 bytes */
    /* They are smaller than that: it waits on, and knows better. */
    fake_write(&rig.server, "t", 1, (struct fake_messages){.count = 50, .letter = 'b'});
    fake_expect(&rig.server, IGGY_CMD_fetch_messages, 3);
    fake_expect_waiting(&rig.server, 1);
    uint32_t more = rig.server.fetch.min_count;
    CHECK(more > 80 && more < 103);
    fake_write(&rig.server, "t", 1, (struct fake_messages){.count = more - 40, .letter = 'b'});
    CHECK_EQ(reader_watch_end(&reader), ST_OK);
    reader_run(&reader);
    CHECK_EQ(part_records(&reader.parts[1]), more + 10);
    close_all();
}

TEST(what_came_by_the_end_of_a_wait_for_more_is_found) {
    open_with(IGGY_0_12_2, 1);
    read_to_end(&reader, 0);
    reader_watch_begin(&reader, 100000, SHORT_MS);
    fake_expect_waiting(&rig.server, 1);
    fake_write(&rig.server, "t", 1, (struct fake_messages){.count = 4, .letter = 'b'});
    (void)reader_watch_end(&reader);
    reader_run(&reader);
    CHECK_EQ(part_records(&reader.parts[1]), 4);
    close_all();
}

TEST(a_topic_that_is_deleted_or_made_anew_ends_the_wait) { /* D2-41 */
    static const uint32_t versions[] = {IGGY_0_12_2, IGGY_0_11};
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], 1);
        read_to_end(&reader, 0);
        int looks = fake_seen(&rig.server, IGGY_CMD_get_topic);
        reader_watch_begin(&reader, 1, LONG_MS);
        if (v == 0)
            fake_expect_waiting(&rig.server, 1);
        else
            fake_expect(&rig.server, IGGY_CMD_get_topic, looks + 1);
        fake_remove_topic(&rig.server, "t");
        CHECK_EQ(reader_watch_end(&reader), ST_OK);
        reader_run(&reader);
        CHECK_EQ(reader.parts[0].status, ST_NOT_FOUND);
        close_all();
    }
    open_with(IGGY_0_12_2, 1);
    read_to_end(&reader, 0);
    reader_watch_begin(&reader, 1, LONG_MS);
    fake_expect_waiting(&rig.server, 1);
    fake_lock(&rig.server);
    rig.server.topics[0].incarnation++;
    rig.server.topics[0].next_offset[0] = 0;
    fake_log_changed(&rig.server);
    fake_unlock(&rig.server);
    CHECK_EQ(reader_watch_end(&reader), ST_OK);
    reader_run(&reader);
    CHECK_EQ(reader.parts[0].status, ST_OUT_OF_RANGE);
    close_all();
}

TEST(a_topic_that_is_smaller_than_before_ends_a_wait_by_views) {
    open_with(IGGY_0_11, 1);
    fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 1, .letter = 'a'});
    reader_init(&reader, &rig, 0);
    reader_add(&reader, "t", 0, 6);
    reader_run(&reader);
    reader_watch_begin(&reader, 1, LONG_MS);
    fake_lock(&rig.server); /* purged */
    rig.server.topics[0].next_offset[0] = 3;
    fake_unlock(&rig.server);
    CHECK_EQ(reader_watch_end(&reader), ST_OK);
    reader_run(&reader);
    CHECK_EQ(reader.parts[0].status, ST_OUT_OF_RANGE);
    close_all();
}

TEST(a_connection_that_is_lost_while_the_server_waits_is_made_again) {
    open_with(IGGY_0_12_2, 1);
    read_to_end(&reader, 0);
    reader_watch_begin(&reader, 1, LONG_MS);
    fake_expect_waiting(&rig.server, 1);
    fake_hang_up_all(&rig.server);
    fake_expect(&rig.server, IGGY_CMD_fetch_messages, 3);
    fake_expect_waiting(&rig.server, 2); /* the lost one, too, which nobody will be told of */
    fake_write(&rig.server, "t", 0, (struct fake_messages){.letter = 'b'});
    CHECK_EQ(reader_watch_end(&reader), ST_OK);
    reader_run(&reader);
    CHECK_EQ(part_records(&reader.parts[0]), 1);
    close_all();
}

static void lock_out(void) {
    fake_lock(&rig.server);
    rig.server.shut = true;
    fake_unlock(&rig.server);
    fake_hang_up_all(&rig.server);
}

TEST(a_wait_without_a_server_ends_with_its_time) {
    static const uint32_t versions[] = {IGGY_0_12_2, IGGY_0_11};
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], 1);
        read_to_end(&reader, 0);
        lock_out();
        CHECK(rounds_within(SHORT_MS) <= 4);
        reader.patience_ms = 100;
        reader_run(&reader);
        CHECK_EQ(reader.parts[0].status, ST_UNAVAILABLE);
        close_all();
    }
}

/* ---- what is not waited for, or not at once ---- */

TEST(a_message_that_is_no_record_does_not_end_each_wait_at_once) { /* D2-43 */
    static const uint32_t versions[] = {IGGY_0_12_2, IGGY_0_11};
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], 1);
        fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 2, .letter = 'b', .no_record = true});
        reader_init(&reader, &rig, 0);
        reader_add(&reader, "t", 0, 5);
        reader_run(&reader);
        CHECK_EQ(reader.parts[0].status, ST_UNMAPPABLE);
        CHECK_EQ(rounds_within(SHORT_MS), 1);
        reader_run(&reader);
        CHECK_EQ(reader.parts[0].status, ST_UNMAPPABLE);
        close_all();
    }
}

TEST(others_are_waited_for_beside_a_partition_that_stopped) { /* D2-42 */
    static const uint32_t versions[] = {IGGY_0_12_2, IGGY_0_11};
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], 1);
        fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 2, .letter = 'b', .no_record = true});
        reader_init(&reader, &rig, 0);
        reader_add(&reader, "t", 0, 5);
        reader_add(&reader, "t", 1, 0);
        reader_run(&reader);
        reader_watch_begin(&reader, 1, LONG_MS);
        if (v == 0)
            fake_expect_waiting(&rig.server, 1);
        fake_write(&rig.server, "t", 1, (struct fake_messages){.count = 3, .letter = 'b'});
        CHECK_EQ(reader_watch_end(&reader), ST_OK);
        reader_run(&reader);
        CHECK_EQ(reader.parts[0].status, ST_UNMAPPABLE);
        CHECK_EQ(part_records(&reader.parts[1]), 3);
        close_all();
    }
}

TEST(a_partition_that_cannot_be_read_now_is_asked_for_ten_times_a_second) { /* D2-27 */
    static const uint32_t codes[] = {IGGY_ERR_NOT_PRIMARY, IGGY_ERR_NOT_CONNECTED};
    for (size_t c = 0; c < COUNT_OF(codes); c++) {
        open_with(IGGY_0_12_2, 1);
        read_to_end(&reader, 0);
        fake_refuse_part(&rig.server, "t", 0, codes[c]);
        int before = fetches();
        int rounds = rounds_within(350);
        CHECK(rounds >= 2 && rounds <= 6);
        CHECK(fetches() - before <= 4 * rounds);
        CHECK_EQ(reader.parts[0].status, ST_UNAVAILABLE);
        fake_refuse_part(&rig.server, "t", 0, 0);
        fake_write(&rig.server, "t", 0, (struct fake_messages){.letter = 'b'});
        reader_run(&reader);
        CHECK_EQ(part_records(&reader.parts[0]), 1);
        close_all();
    }
}

TEST(what_a_view_shows_and_a_poll_does_not_find_ends_ten_waits_a_second) { /* D2-25 */
    open_with(IGGY_0_11, 1);
    fake_write(&rig.server, "t", 1, (struct fake_messages){.letter = 'b'});
    fake_mute(&rig.server, "t", 1, true);
    reader_init(&reader, &rig, 0);
    reader_add(&reader, "t", 1, 0);
    reader_run(&reader);
    CHECK_EQ(reader.parts[0].status, ST_OK); /* nothing says that the one message is not the end */
    int rounds = rounds_within(350);
    CHECK(rounds >= 2 && rounds <= 7);
    close_all();
}

/* ---- looking at views ---- */

TEST(many_topics_are_looked_at) { /* D2-41 */
    static const uint32_t versions[] = {IGGY_0_12_2, IGGY_0_11};
    const char *names[] = {"t", "u", "v", "w", "x", "y"};
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], 1);
        reader_init(&reader, &rig, 0);
        for (size_t i = 0; i < COUNT_OF(names); i++) {
            if (i > 0)
                fake_add_topic(&rig.server, "kafka", names[i], 1);
            reader_add(&reader, names[i], 0, i == 0 ? 5 : 0);
        }
        reader_run(&reader);
        CHECK_EQ(reader.read.bytes, 0);
        int before = fetches(), looks = fake_seen(&rig.server, IGGY_CMD_get_topic);
        reader_watch_begin(&reader, 1, LONG_MS);
        fake_expect(&rig.server, IGGY_CMD_get_topic, looks + (int)COUNT_OF(names));
        fake_write(&rig.server, "y", 0, (struct fake_messages){.count = 2, .letter = 'b'});
        CHECK_EQ(reader_watch_end(&reader), ST_OK);
        CHECK_EQ(fetches(), before);
        reader_run(&reader);
        CHECK_EQ(part_records(&reader.parts[5]), 2);
        close_all();
    }
}

TEST(a_wait_by_views_is_met_by_so_many_bytes) { /* D2-2, D2-42 */
    open_with(IGGY_0_11, 1);
    read_to_end(&reader, 0);
    int looks = fake_seen(&rig.server, IGGY_CMD_get_topic);
    reader_watch_begin(&reader, 1000, LONG_MS);
    fake_write(&rig.server, "t", 0, (struct fake_messages){.count = 9, .letter = 'b'});
    fake_expect(&rig.server, IGGY_CMD_get_topic, looks + 3);
    fake_write(&rig.server, "t", 1, (struct fake_messages){.letter = 'b'});
    CHECK_EQ(reader_watch_end(&reader), ST_OK);
    reader_run(&reader);
    CHECK_EQ(part_records(&reader.parts[0]), 9);
    CHECK_EQ(part_records(&reader.parts[1]), 1);
    close_all();
}

TEST(a_look_without_an_answer_does_not_hold_a_wait_up) {
    open_with(IGGY_0_11, 1);
    read_to_end(&reader, 0);
    fake_hold(&rig.server, IGGY_CMD_get_topic);
    CHECK_EQ(reader_watch(&reader, 1, SHORT_MS), ST_TIMED_OUT);
    int looks = fake_seen(&rig.server, IGGY_CMD_get_topic);
    CHECK(looks > 0);
    reader_watch_begin(&reader, 1, LONG_MS);
    reader_cancel(&reader);
    CHECK_EQ(reader_watch_end(&reader), ST_CANCELED);
    fake_let_go(&rig.server);
    close_all();
}

/* ---- a Produce through this gateway ---- */

TEST(a_produce_through_this_gateway_wakes_who_waits_by_views_on_any_loop) { /* D2-41 */
    for (int loop = 0; loop < 2; loop++) {
        open_with(IGGY_0_11, 2);
        CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'b'})), ST_OK);
        reader_init(&reader, &rig, loop);
        reader_add(&reader, "t", 0, 6);
        reader_run(&reader);
        CHECK_EQ(reader.read.bytes, 0);
        fake_hold(&rig.server, IGGY_CMD_get_topic); /* no view can show it */
        int looks = fake_seen(&rig.server, IGGY_CMD_get_topic);
        reader_watch_begin(&reader, 1, LONG_MS);
        fake_expect(&rig.server, IGGY_CMD_get_topic, looks + 1);
        CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'c'})), ST_OK);
        CHECK_EQ(reader_watch_end(&reader), ST_OK);
        reader_run(&reader); /* without a look */
        CHECK_EQ(part_records(&reader.parts[0]), 1);
        CHECK_EQ(reader.parts[0].high_watermark, 7);
        fake_let_go(&rig.server);
        close_all();
    }
}

TEST(a_produce_to_another_partition_or_topic_wakes_nobody) {
    open_with(IGGY_0_11, 1);
    fake_add_topic(&rig.server, "kafka", "u", 1);
    CHECK_EQ(append_run(&rig, "u", rig_batch(&rig, (struct batch_want){.letter = 'b'})), ST_OK);
    reader_init(&reader, &rig, 0);
    reader_add(&reader, "t", 1, 0);
    reader_run(&reader);
    int looks = fake_seen(&rig.server, IGGY_CMD_get_topic);
    reader_watch_begin(&reader, 1, SHORT_MS);
    fake_expect(&rig.server, IGGY_CMD_get_topic, looks + 1);
    CHECK_EQ(append_run(&rig, "u", rig_batch(&rig, (struct batch_want){.letter = 'b'})), ST_OK);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'b'})), ST_OK);
    CHECK_EQ(reader_watch_end(&reader), ST_TIMED_OUT);
    close_all();
}

TEST(several_who_wait_for_a_topic_are_all_woken) {
    static struct reader readers[60];
    static const uint32_t versions[] = {IGGY_0_12_2, IGGY_0_11};
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], 1);
        for (size_t i = 0; i < COUNT_OF(readers); i++) {
            read_to_end(&readers[i], 0);
            reader_watch_begin(&readers[i], 1, LONG_MS);
        }
        if (v == 0) /* of 64; a connection keeps room for those who don't wait; the others look */
            fake_expect_waiting(&rig.server, 49);
        fake_write(&rig.server, "t", 0, (struct fake_messages){.letter = 'b'});
        for (size_t i = 0; i < COUNT_OF(readers); i++) {
            CHECK_EQ(reader_watch_end(&readers[i]), ST_OK);
            reader_run(&readers[i]);
            CHECK_EQ(part_records(&readers[i].parts[0]), 1);
            reader_release(&readers[i]);
        }
        rig_close(&rig);
    }
}

/* ---- ends ---- */

TEST(a_wait_for_a_read_that_never_began_or_whose_time_is_over_ends_at_once) {
    open_with(IGGY_0_12_2, 1);
    reader_init(&reader, &rig, 0);
    reader_add(&reader, "t", 0, 5);
    CHECK_EQ(reader_watch(&reader, 1, LONG_MS), ST_TIMED_OUT);
    reader_run(&reader);
    CHECK_EQ(reader_watch(&reader, 1, 0), ST_TIMED_OUT);
    CHECK_EQ(fetches(), 1);
    close_all();
}

TEST(a_stop_ends_waits) { /* */
    static const uint32_t versions[] = {IGGY_0_12_2, IGGY_0_11};
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], 1);
        read_to_end(&reader, 0);
        reader_watch_begin(&reader, 1, 2 * LONG_MS);
        if (v == 0)
            fake_expect_waiting(&rig.server, 1);
        rig_stop(&rig);
        if (v == 0)
            CHECK_EQ(reader_watch_end(&reader), ST_OK);
        else
            reader_cancel(&reader);
        if (v == 1)
            CHECK_EQ(reader_watch_end(&reader), ST_CANCELED);
        reader_run(&reader);
        CHECK_EQ(reader.parts[0].status, ST_UNAVAILABLE);
        reader_release(&reader);
        rig_close(&rig);
    }
}

static void watch_without_memory(void) {
    reader_run(&reader);
    (void)reader_watch(&reader, 1, 30);
    reader_run(&reader);
    reader_release(&reader);
}

TEST(a_wait_survives_any_failed_allocation) {
    static const uint32_t versions[] = {IGGY_0_12_2, IGGY_0_11};
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v], 1);
        reader_init(&reader, &rig, 0);
        reader_add(&reader, "t", 0, 5);
        reader_add(&reader, "t", 1, 0);
        test_oom(watch_without_memory);
        reader_run(&reader);
        CHECK_EQ(reader.parts[0].status, ST_OK);
        close_all();
    }
}
