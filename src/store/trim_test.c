/* Letting a log start later: within segments and batches, over restarts, crashes and full disks. */
#include "testing/test.h"

#include <errno.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/batch_header.h"
#include "store/file.h"
#include "store/log_fixture.h"

#define SIZE    1000
#define STORED  (SIZE + BATCH_HEADER_BYTES)
#define RECORDS 4 /* of a batch */
#define BATCHES 9
#define END     (RECORDS * BATCHES)

/* Three segments of three batches of four records, the last one active. The time of a batch is its first offset. */
static void append_batches(struct log *l) {
    for (int64_t i = 0; i < BATCHES; i++)
        CHECK_EQ(log_append(l, RECORDS, SIZE, i * RECORDS), ST_OK);
}

static struct log reopen(struct log *l) {
    const char *dir = l->dir;
    log_close(l);
    *l = log_open(dir, 3 * STORED);
    CHECK_EQ(partition_open(l->p, NULL), ST_OK);
    return *l;
}

static struct log filled_log(void) {
    struct log l = log_open(log_dir(), 3 * STORED);
    append_batches(&l);
    CHECK_EQ(partition_segments_count(l.p), 3);
    return l;
}

static void trim(struct log *l, int64_t offset, int64_t want_start) {
    int64_t start = -7;
    CHECK_EQ(partition_trim(l->p, offset, &start), ST_OK);
    CHECK_EQ(start, want_start);
}

/* What can be read: whole batches, from the one that holds the start on. */
static void check_log(struct log *l, int64_t start, int64_t end) {
    struct store_read r;
    CHECK_EQ(partition_open(l->p, NULL), ST_OK);
    CHECK_EQ(partition_start(l->p), start);
    CHECK_EQ(partition_end(l->p), end);
    for (int64_t offset = -1; offset < start; offset++)
        CHECK_EQ(partition_read(l->p, offset, 1, true, &r), ST_OUT_OF_RANGE);
    for (int64_t offset = start; offset < end; offset++) {
        CHECK_EQ(partition_read(l->p, offset, 1, true, &r), ST_OK);
        CHECK(payload_is(r.runs[0].bytes.ptr, offset - offset % RECORDS, SIZE));
        CHECK_EQ(r.next_offset, offset - offset % RECORDS + RECORDS);
        store_read_release(&r);
    }
    CHECK_EQ(partition_read(l->p, end, 1, true, &r), ST_OK);
    CHECK_EQ(r.runs_count, 0);
}

TEST(a_log_starts_at_any_offset_it_was_trimmed_to_also_after_a_restart) {
    for (int64_t offset = 0; offset <= END; offset++) {
        struct log l = filled_log();
        trim(&l, offset, offset);
        check_log(&l, offset, END);
        CHECK_EQ(partition_segments_count(l.p), offset >= 24 ? 1 : offset >= 12 ? 2 : 3);
        CHECK_EQ(file_bytes(log_file(l.dir, 0, "log")), offset >= 12 ? -1 : 3 * STORED);
        CHECK_EQ(file_bytes(log_file(l.dir, 12, "idx")) < 0, offset >= 24);
        l = reopen(&l);
        check_log(&l, offset, END);
        append_batches(&l);
        check_log(&l, offset, 2 * END);
        log_close(&l);
    }
}

TEST(a_start_never_goes_back_and_an_offset_out_of_range_changes_nothing) {
    int64_t start = -7;
    struct log l = filled_log();
    trim(&l, 17, 17);
    trim(&l, 17, 17);
    trim(&l, 3, 17);
    trim(&l, 0, 17);
    CHECK_EQ(partition_trim(l.p, END + 1, &start), ST_OUT_OF_RANGE);
    CHECK_EQ(partition_trim(l.p, -2, &start), ST_OUT_OF_RANGE);
    CHECK_EQ(partition_trim(l.p, INT64_MIN, &start), ST_OUT_OF_RANGE);
    CHECK_EQ(start, -7);
    check_log(&l, 17, END);
    trim(&l, -1, END);
    check_log(&l, END, END);
    log_append_many(&l, 1, SIZE);
    trim(&l, -1, END + 1);
    l = reopen(&l);
    CHECK_EQ(partition_start(l.p), END + 1);
    CHECK_EQ(file_bytes(log_file(l.dir, 17, "start")), -1); /* one file is enough */
    CHECK_EQ(file_bytes(log_file(l.dir, END, "start")), -1);
    CHECK_EQ(file_bytes(log_file(l.dir, END + 1, "start")), 0);
    log_close(&l);
}

TEST(an_empty_log_can_be_trimmed_to_its_end_only) {
    int64_t start;
    struct log l = log_open(log_dir(), 3 * STORED);
    trim(&l, 0, 0);
    trim(&l, -1, 0);
    CHECK_EQ(partition_trim(l.p, 1, &start), ST_OUT_OF_RANGE);
    append_batches(&l);
    check_log(&l, 0, END);
    CHECK_EQ(store_topic_delete(l.s, l.t), ST_OK);
    CHECK_EQ(partition_trim(l.p, -1, &start), ST_NOT_FOUND);
    log_close(&l);
}

/* ---- crashes ---- */

static int64_t crash_offset;
static void append_and_trim(struct log *l) {
    int64_t start;
    append_batches(l);
    CHECK_EQ(partition_trim(l->p, crash_offset, &start), ST_OK);
    CHECK_EQ(partition_unsynced_bytes(l->p) == 0,
             crash_offset > 24); /* what is before the start is durable */
}

TEST(a_kill_after_a_trim_does_not_bring_the_start_back) {
    for (crash_offset = 1; crash_offset <= END; crash_offset += 5) {
        const char *dir = log_dir();
        log_crash(dir, 3 * STORED, append_and_trim);
        struct log l = log_open(dir, 3 * STORED);
        check_log(&l, crash_offset, END);
        log_close(&l);
        unlink(log_file(dir, 24, "idx"));
        l = log_open(dir, 3 * STORED);
        check_log(&l, crash_offset, END);
        log_close(&l);
    }
}

/* What stands in the folder between two steps of a trim: the new start, with the old one and all segments still there. */
TEST(a_kill_amid_a_trim_leaves_the_later_start_and_retention_removes_what_is_before_it) {
    static const struct store_retention nothing = {-1, -1};
    int32_t dropped;
    struct log l = filled_log();
    trim(&l, 5, 5);
    file_put(log_file(l.dir, 25, "start"), 0, "", 0);
    l = reopen(&l);
    check_log(&l, 25, END);
    CHECK_EQ(partition_segments_count(l.p), 3);
    CHECK_EQ(partition_retain(l.p, &nothing, 0, &dropped), ST_OK);
    CHECK_EQ(dropped, 2);
    CHECK_EQ(file_bytes(log_file(l.dir, 12, "log")), -1);
    check_log(&l, 25, END);
    trim(&l, 30, 30);
    l = reopen(&l);
    check_log(&l, 30, END);
    log_close(&l);
}

TEST(a_tail_torn_behind_the_start_is_cut_and_one_torn_before_it_is_damage) {
    const int64_t start = 29,
                  start_end = 2 * STORED; /* the second batch of the last segment holds the start */
    for (int64_t bytes = STORED - 10; bytes < 3 * STORED; bytes += 97) {
        struct log l = filled_log();
        trim(&l, start, start);
        const char *dir = l.dir;
        log_close(&l);
        unlink(log_file(dir, 24, "idx")); /* else it tells what was synced */
        CHECK_EQ(truncate(log_file(dir, 24, "log"), bytes), 0);
        l = log_open(dir, 3 * STORED);
        if (bytes >= start_end) {
            check_log(&l, start, 32);
            CHECK_EQ(file_bytes(log_file(dir, 24, "log")), start_end);
        } else {
            CHECK_EQ(partition_open(l.p, NULL), ST_CORRUPT);
            CHECK_EQ(partition_end(l.p), bytes < STORED ? 24 : 28);
            CHECK_EQ(partition_start(l.p), partition_end(l.p));
            CHECK_EQ(log_append(&l, 1, SIZE, 0), ST_CORRUPT);
            CHECK_EQ(partition_trim(l.p, -1, &(int64_t){0}), ST_CORRUPT);
            CHECK_EQ(file_bytes(log_file(dir, 24, "log")), bytes);
        }
        log_close(&l);
    }
}

TEST(a_log_whose_files_are_gone_goes_on_at_its_start) {
    struct log l = filled_log();
    trim(&l, 30, 30);
    const char *dir = l.dir;
    log_close(&l);
    CHECK_EQ(unlink(log_file(dir, 24, "log")), 0);
    l = log_open(dir, 3 * STORED);
    CHECK_EQ(partition_open(l.p, NULL), ST_OK);
    CHECK_EQ(partition_start(l.p), 30);
    CHECK_EQ(partition_end(l.p), 30);
    trim(&l, -1, 30);
    log_append_many(&l, 2, SIZE);
    l = reopen(&l);
    log_check_all(&l, 30, 32, SIZE);
    log_close(&l);
}

TEST(names_that_only_look_like_a_start_are_no_start) {
    struct log l = filled_log();
    file_put(log_file(l.dir, 20, "started"), 0, "", 0);
    file_put(log_file(l.dir, 20, "star"), 0, "", 0);
    file_put(log_file(l.dir, INT64_MIN, "start"), 0, "", 0);
    l = reopen(&l);
    check_log(&l, 0, END);
    log_close(&l);
}

TEST(a_failed_sync_leaves_the_start_where_it_was) {
    for (int nth = 1; nth <= 3; nth++) { /* of the log; of the file that names the start; of the folder */
        int64_t start = -7;
        struct log l = filled_log();
        trim(&l, 5, 5);
        if (nth > 1)
            CHECK_EQ(partition_sync(l.p), ST_OK);
        file_fail_at(FILE_SYNC, nth > 1 ? nth - 1 : 1, EIO);
        CHECK_EQ(partition_trim(l.p, 29, &start), ST_IO);
        file_fail_at(FILE_SYNC, 0, 0);
        CHECK_EQ(start, -7);
        CHECK_EQ(partition_start(l.p), 5);
        CHECK_EQ(partition_segments_count(l.p), 3);
        CHECK_EQ(file_bytes(log_file(l.dir, 29, "start")), -1);
        CHECK_EQ(partition_trim(l.p, 30, &start), nth == 1 ? ST_CORRUPT : ST_OK);
        l = reopen(&l);
        check_log(&l, nth == 1 ? 5 : 30, END);
        log_close(&l);
    }
}

/* ---- beside other things that move the start ---- */

TEST(retention_and_dropping_go_on_from_the_start_and_free_an_active_segment_that_is_all_before_it) {
    static const struct store_retention nothing = {-1, -1}, least = {-1, 0};
    int32_t dropped;
    struct log l = filled_log();
    trim(&l, 14, 14);
    CHECK_EQ(partition_drop(l.p, 1, &dropped), ST_OK);
    CHECK_EQ(dropped, 1);
    check_log(&l, 24, END);
    trim(&l, 26, 26);
    CHECK_EQ(partition_retain(l.p, &least, 0, &dropped), ST_OK);
    CHECK_EQ(dropped, 0);
    check_log(&l, 26, END);
    trim(&l, -1, END);
    CHECK_EQ(partition_size_bytes(l.p), 3 * STORED);
    CHECK_EQ(partition_retain(l.p, &nothing, 0, &dropped), ST_OK);
    CHECK_EQ(dropped, 1);
    CHECK_EQ(partition_size_bytes(l.p), 0);
    CHECK_EQ(partition_retain(l.p, &nothing, 0, &dropped), ST_OK);
    CHECK_EQ(dropped, 0);
    l = reopen(&l);
    check_log(&l, END, END);
    append_batches(&l);
    check_log(&l, END, 2 * END);
    CHECK_EQ(partition_drop(l.p, -1, NULL), ST_OK);
    trim(&l, END + 1, 2 * END);
    l = reopen(&l);
    check_log(&l, 2 * END, 2 * END);
    log_close(&l);
}

TEST(what_a_partition_was_trimmed_to_is_forgotten_with_it) {
    struct log l = filled_log();
    trim(&l, 30, 30);
    CHECK_EQ(store_topic_shrink(l.s, l.t, 0), ST_OK);
    CHECK_EQ(store_topic_grow(l.s, l.t, 1), ST_OK);
    l.p = topic_partition(l.t, 0);
    CHECK_EQ(partition_open(l.p, NULL), ST_OK);
    CHECK_EQ(partition_start(l.p), 0);
    append_batches(&l);
    check_log(&l, 0, END);
    log_close(&l);
}

TEST(a_reader_may_finish_what_is_trimmed_away) {
    struct store_read r;
    struct log l = filled_log();
    CHECK_EQ(partition_read(l.p, 0, 3 * SIZE, true, &r), ST_OK);
    trim(&l, -1, END);
    CHECK_EQ(r.next_offset, 12);
    CHECK(payload_is(r.runs[0].bytes.ptr, 0, SIZE));
    store_read_release(&r);
    log_close(&l);
}

/* ---- times ---- */

static int64_t found_at(struct log *l, int64_t from, int64_t timestamp_ms) {
    struct store_read r;
    int64_t offset = -1;
    enum status st = partition_find_time(l->p, from, timestamp_ms, &offset, &r);
    CHECK_EQ(st, offset < 0 ? ST_NOT_FOUND : ST_OK);
    CHECK_EQ(r.runs_count, offset < 0 ? 0 : 1);
    store_read_release(&r);
    return offset;
}

TEST(times_are_looked_for_in_what_is_kept) { /* D3-2 */
    static const int64_t times[] = {50, 90, 40, 20, 30, 80, 10, 70, 60};
    struct log l = log_open(log_dir(), 3 * STORED);
    for (size_t i = 0; i < COUNT_OF(times); i++)
        CHECK_EQ(log_append(&l, RECORDS, SIZE, times[i]), ST_OK);
    for (int round = 0; round < 2; round++) {
        CHECK_EQ(found_at(&l, 0, INT64_MAX), round ? 20 : 4);
        CHECK_EQ(found_at(&l, 0, 45), round ? 20 : 0);
        CHECK_EQ(found_at(&l, 8, INT64_MAX), 20); /* the first segment's greatest is before */
        CHECK_EQ(found_at(&l, 8, 45), 20);
        CHECK_EQ(found_at(&l, 8, 40), 8);
        CHECK_EQ(found_at(&l, 8, 81), -1);
        CHECK_EQ(found_at(&l, 24, INT64_MAX), 28);
        CHECK_EQ(found_at(&l, 33, INT64_MAX), 32);
        CHECK_EQ(found_at(&l, 33, 61), -1);
        CHECK_EQ(found_at(&l, END, INT64_MAX), -1);
        trim(&l, 9, 9);
        l = reopen(&l);
        CHECK_EQ(found_at(&l, 0, 0), 8); /* the batch that holds the start */
    }
    trim(&l, -1, END);
    CHECK_EQ(found_at(&l, 0, INT64_MAX), -1);
    CHECK_EQ(found_at(&l, 0, 0), -1);
    log_close(&l);
}

TEST(times_behind_a_start_deep_in_a_long_segment_are_found_through_its_index) {
    struct log l = log_open(log_dir(), 1 << 26);
    for (int i = 0; i < 3000; i++)
        CHECK_EQ(log_append(&l, 1, 500, i < 1000 ? 100000 - i : 10 * i), ST_OK);
    for (int64_t start = 1100; start < 3000; start += 611) {
        trim(&l, start, start);
        CHECK_EQ(found_at(&l, 0, 0), start);
        CHECK_EQ(found_at(&l, 0, 10 * start + 1), start + 1);
        CHECK_EQ(found_at(&l, 0, INT64_MAX), 2999);
        CHECK_EQ(found_at(&l, 0, 29991), -1);
    }
    CHECK_EQ(log_append(&l, 1, 500, 5), ST_OK);
    trim(&l, 3000, 3000);
    CHECK_EQ(found_at(&l, 0, INT64_MAX), 3000); /* the index knows of greater ones before it */
    log_close(&l);
}

/* ---- memory ---- */

static enum status trim_without_memory(const char *dir, int64_t nth, bool *pending_out) {
    int64_t start, offset;
    struct store_read r = {0};
    struct log l = log_open(dir, 3 * STORED);
    mem_fail_at(nth);
    enum status st = partition_trim(l.p, 30, &start);
    if (!st)
        st = partition_find_time(l.p, 0, INT64_MAX, &offset, &r);
    *pending_out = mem_fail_pending();
    mem_fail_at(0);
    store_read_release(&r);
    log_close(&l);
    return st;
}

TEST(opening_what_was_trimmed_trimming_and_looking_for_times_survive_any_failed_allocation) {
    bool pending = false;
    for (int64_t nth = 1; !pending; nth++) {
        struct log l = filled_log();
        trim(&l, 5, 5);
        log_close(&l);
        enum status st = trim_without_memory(l.dir, nth, &pending); /* not all that is allocated is needed */
        CHECK(st == ST_OK || (st == ST_NO_MEMORY && !pending));
        l = log_open(l.dir, 3 * STORED);
        CHECK_EQ(partition_open(l.p, NULL), ST_OK);
        CHECK(partition_start(l.p) == 30 || (st && partition_start(l.p) == 5));
        log_close(&l);
    }
}
