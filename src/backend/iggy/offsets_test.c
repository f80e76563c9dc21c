#include "backend/iggy/bridge_rig_test.h"
#include "backend/iggy/fake_log_test.h"
#include "base/clock.h"
#include "iggy/errors.h"
#include "net/loop.h"
#include "testing/test.h"

#define T0_MS   INT64_C(1700000000000) /* when the server's clock begins */
#define HOUR_MS INT64_C(3600000)

static struct bridge_rig rig;

static const uint32_t versions[] = {IGGY_0_12_2, IGGY_0_11};

static void open_with(uint32_t version) {
    rig_open(&rig, (struct rig_options){.version = version});
    fake_add_topic(&rig.server, "kafka", "t", 2);
}

static void at_ms(int64_t ms) {
    fake_lock(&rig.server);
    rig.server.now_us = (uint64_t)ms * 1000;
    fake_unlock(&rig.server);
}

static void write_at(int64_t ms, struct fake_messages m) {
    at_ms(ms);
    m.letter = 'a';
    fake_write(&rig.server, "t", 0, m);
}

struct offsets_turn {
    struct backend_offsets call;
    struct op begin;
    int64_t patience_ms;
    sem_t ended;
};

static void offsets_on_done(struct op *op) {
    sem_post(&container_of(op, struct offsets_turn, call.op)->ended);
}

static void offsets_on_begin(struct op *op) {
    struct offsets_turn *turn = container_of(op, struct offsets_turn, begin);
    turn->call.deadline_ms = clock_ms() + turn->patience_ms;
    backend_offsets(rig.backend, &turn->call);
}

static void find_all(struct backend_offset_part *parts, int32_t count, int64_t patience_ms) {
    struct offsets_turn turn = {.call = {.parts = parts, .parts_count = count}, .patience_ms = patience_ms};
    sem_init(&turn.ended, 0, 0);
    op_init(&turn.call.op, rig.loops[0], offsets_on_done);
    op_init(&turn.begin, rig.loops[0], offsets_on_begin);
    loop_post(&turn.begin);
    while (sem_wait(&turn.ended) != 0)
        continue;
    CHECK_EQ(turn.call.op.status, ST_OK);
}

static struct backend_offset_part find(enum backend_offset_kind kind, int64_t ms) {
    struct backend_offset_part part = {.topic = STR("t"), .kind = kind, .timestamp_ms = ms};
    find_all(&part, 1, RIG_WAIT_MS);
    return part;
}

static void check_found(struct backend_offset_part part, int64_t offset, int64_t ms) {
    CHECK_EQ(part.status, ST_OK);
    CHECK_EQ(part.offset, offset);
    CHECK_EQ(part.timestamp_ms, ms);
}

TEST(the_ends_of_a_partition_are_the_real_ones) { /* D3-1, D3-7 */
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v]);
        check_found(find(OFFSET_EARLIEST, 0), 0, -1);
        check_found(find(OFFSET_LATEST, 0), 0, -1);
        write_at(T0_MS, (struct fake_messages){.count = 1});
        check_found(find(OFFSET_EARLIEST, 0), 0, -1);
        check_found(find(OFFSET_LATEST, 0), 1, -1);
        write_at(T0_MS, (struct fake_messages){.count = 9});
        fake_trim(&rig.server, "t", 0, 4);
        check_found(find(OFFSET_EARLIEST, 0), 4, -1);
        check_found(find(OFFSET_LATEST, 0), 10, -1);
        fake_trim(&rig.server, "t", 0, 10); /* nothing is kept */
        check_found(find(OFFSET_EARLIEST, 0), 10, -1);
        check_found(find(OFFSET_LATEST, 0), 10, -1);
        rig_close(&rig);
    }
}

TEST(a_time_finds_the_first_record_that_has_it_or_a_later_one) { /* D3-2 */
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v]);
        for (int i = 0; i < 5; i++) /* three records each, a millisecond apart; taken after that */
            write_at(T0_MS + i * 1000 + 5,
                     (struct fake_messages){.count = 3, .time_us = (uint64_t)(T0_MS + i * 1000) * 1000});
        check_found(find(OFFSET_BY_TIME, T0_MS - 5), 0, T0_MS);
        check_found(find(OFFSET_BY_TIME, T0_MS), 0, T0_MS);
        check_found(find(OFFSET_BY_TIME, T0_MS + 2000), 6, T0_MS + 2000);
        check_found(find(OFFSET_BY_TIME, T0_MS + 2001), 7,
                    T0_MS + 2001); /* within a batch that came before */
        check_found(find(OFFSET_BY_TIME, T0_MS + 2003), 9, T0_MS + 3000);
        check_found(find(OFFSET_BY_TIME, T0_MS + 4003), -1, -1);
        check_found(find(OFFSET_BY_TIME, 0), 0, T0_MS);
        rig_close(&rig);
    }
}

/* A record may be an hour ahead of the server that took it. */
TEST(a_time_that_nothing_was_taken_at_is_looked_for_from_an_hour_before) { /* D3-7 */
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v]);
        write_at(T0_MS, (struct fake_messages){.count = 2});
        write_at(T0_MS + 1000, (struct fake_messages){.time_us = (uint64_t)(T0_MS + HOUR_MS / 2) * 1000});
        write_at(T0_MS + 2000, (struct fake_messages){.count = 2});
        check_found(find(OFFSET_BY_TIME, T0_MS + HOUR_MS / 3), 2, T0_MS + HOUR_MS / 2);
        check_found(find(OFFSET_BY_TIME, T0_MS + HOUR_MS), -1, -1);
        rig_close(&rig);
    }
}

TEST(the_greatest_time_finds_the_first_record_that_has_it) { /* D3-2 */
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v]);
        check_found(find(OFFSET_MAX_TIME, 0), -1, -1);
        write_at(T0_MS, (struct fake_messages){.count = 2});
        write_at(T0_MS + 9000, (struct fake_messages){.count = 1});
        write_at(T0_MS + 5000, (struct fake_messages){.count = 2});
        write_at(T0_MS + 9000, (struct fake_messages){.count = 1});
        check_found(find(OFFSET_MAX_TIME, 0), 2, T0_MS + 9000);
        rig_close(&rig);
    }
}

TEST(messages_that_are_no_records_have_no_time) {
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v]);
        write_at(T0_MS + 5000, (struct fake_messages){.count = 2, .no_record = true});
        check_found(find(OFFSET_BY_TIME, T0_MS), -1, -1);
        check_found(find(OFFSET_MAX_TIME, 0), -1, -1);
        write_at(T0_MS + 1000, (struct fake_messages){.count = 2});
        check_found(find(OFFSET_BY_TIME, T0_MS), 2, T0_MS + 1000);
        check_found(find(OFFSET_MAX_TIME, 0), 3, T0_MS + 1001);
        rig_close(&rig);
    }
}

TEST(many_messages_are_looked_through_page_by_page) {
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v]);
        rig.server.message_bytes = (1 << 20) / 7; /* so many to a page */
        for (int i = 0; i < 10; i++)
            write_at(T0_MS,
                     (struct fake_messages){.count = 10, .time_us = (uint64_t)(T0_MS + i * 100) * 1000});
        int polls = fake_seen(&rig.server, IGGY_CMD_poll_messages);
        check_found(find(OFFSET_MAX_TIME, 0), 99, T0_MS + 909);
        CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_poll_messages) - polls, (100 + 6) / 7);
        check_found(find(OFFSET_BY_TIME, T0_MS + 905), 95, T0_MS + 905); /* by the second look */
        rig_close(&rig);
    }
}

TEST(a_page_that_is_too_large_is_looked_through_in_smaller_ones) {
    open_with(IGGY_0_11);
    write_at(T0_MS, (struct fake_messages){.count = 300});
    rig.server.poll_count_max = 50;
    check_found(find(OFFSET_MAX_TIME, 0), 299, T0_MS + 299);
    rig_close(&rig);
}

TEST(each_partition_has_its_own_answer) { /* D3-3 */
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v]);
        write_at(T0_MS, (struct fake_messages){.count = 3});
        fake_add_topic(&rig.server, "kafka", "u", 1);
        fake_write(&rig.server, "u", 0, (struct fake_messages){.count = 1});
        fake_refuse_part(&rig.server, "u", 0, IGGY_ERR_UNAUTHORIZED);
        struct backend_offset_part parts[] = {
            {.topic = STR("t"), .kind = OFFSET_LATEST},
            {.topic = STR("t"), .kind = OFFSET_LATEST, .partition = 2},
            {.topic = STR("t"), .kind = OFFSET_LATEST, .partition = -1},
            {.topic = STR("missing"), .kind = OFFSET_LATEST},
            {.topic = STR_NULL, .id = {{7}}, .kind = OFFSET_LATEST},
            {.topic = STR("t"), .kind = OFFSET_LATEST, .status = ST_BAD_NAME},
            {.topic = STR("u"), .kind = OFFSET_EARLIEST},
            {.topic = STR("t"), .kind = OFFSET_EARLIEST},
        };
        static const enum status want[] = {ST_OK,         ST_NOT_FOUND, ST_NOT_FOUND, ST_NOT_FOUND,
                                           ST_UNKNOWN_ID, ST_BAD_NAME,  ST_DENIED,    ST_OK};
        find_all(parts, COUNT_OF(parts), RIG_WAIT_MS);
        for (size_t i = 0; i < COUNT_OF(parts); i++) {
            CHECK_EQ(parts[i].status, want[i]);
            CHECK(want[i] == ST_OK || parts[i].offset == -1);
        }
        CHECK_EQ(parts[0].offset, 3);
        CHECK_EQ(parts[7].offset, 0);
        rig_close(&rig);
    }
}

TEST(what_is_not_found_by_the_deadline_has_timed_out) { /* D3-5, D3-7 */
    static const uint32_t silent[] = {IGGY_CMD_get_topic, IGGY_CMD_poll_messages};
    for (size_t v = 0; v < COUNT_OF(versions); v++)
        for (size_t i = 0; i < COUNT_OF(silent); i++) {
            open_with(versions[v]);
            write_at(T0_MS, (struct fake_messages){.count = 3});
            fake_hold(&rig.server, silent[i]);
            struct backend_offset_part part = {.topic = STR("t"), .kind = OFFSET_EARLIEST};
            find_all(&part, 1, 100);
            CHECK_EQ(part.status, ST_TIMED_OUT);
            CHECK_EQ(part.offset, -1);
            rig_close(&rig);
        }
}

static void find_without_memory(void) {
    struct backend_offset_part parts[] = {{.topic = STR("t"), .kind = OFFSET_LATEST},
                                          {.topic = STR("t"), .kind = OFFSET_EARLIEST},
                                          {.topic = STR("t"), .kind = OFFSET_MAX_TIME}};
    static const int64_t want[] = {3, 0, 2};
    find_all(parts, COUNT_OF(parts), RIG_WAIT_MS);
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        CHECK_EQ(parts[i].offset, parts[i].status ? -1 : want[i]);
}

TEST(looking_for_offsets_survives_any_failed_allocation) {
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        open_with(versions[v]);
        write_at(T0_MS, (struct fake_messages){.count = 3});
        test_oom(find_without_memory);
        rig_close(&rig);
    }
}
