/* Appending, reading, rolling and retention, without crashes. */
#include "testing/test.h"

#include "store/log_fixture.h"

#define MIB (1024 * 1024)

TEST(what_is_appended_is_read_back_at_its_offset) {
    struct log l = log_open(test_dir(), MIB);
    log_append_many(&l, 100, 300);
    CHECK_EQ(partition_start(l.p), 0);
    CHECK_EQ(partition_end(l.p), 100);
    log_check_all(&l, 0, 100, 300);
    log_close(&l);
}

TEST(a_read_at_the_end_is_empty_and_one_past_it_is_out_of_range) {
    struct log l = log_open(test_dir(), MIB);
    struct store_read r;
    CHECK_EQ(partition_read(l.p, 0, 100, true, &r), ST_OK);
    CHECK_EQ(r.runs_count, 0);
    CHECK_EQ(partition_read(l.p, 1, 100, true, &r), ST_OUT_OF_RANGE);
    log_append_many(&l, 3, 10);
    CHECK_EQ(partition_read(l.p, 3, 100, true, &r), ST_OK);
    CHECK_EQ(r.runs_count, 0);
    CHECK_EQ(r.next_offset, 3);
    CHECK_EQ(partition_read(l.p, 4, 100, true, &r), ST_OUT_OF_RANGE);
    CHECK_EQ(partition_read(l.p, -1, 100, true, &r), ST_OUT_OF_RANGE);
    log_close(&l);
}

TEST(a_clean_restart_keeps_everything_and_cuts_nothing) {
    const char *dir = test_dir();
    struct log l = log_open(dir, 64 * 1024);
    log_append_many(&l, 1000, 500);
    log_close(&l);
    l = log_open(dir, 64 * 1024);
    int64_t cut = -1;
    CHECK_EQ(partition_open(l.p, &cut), ST_OK);
    CHECK_EQ(cut, 0);
    CHECK_EQ(partition_end(l.p), 1000);
    log_check_all(&l, 0, 1000, 500);
    log_append_many(&l, 10, 500);
    log_check_all(&l, 990, 1010, 500);
    log_close(&l);
}
