/* Appending, reading, rolling and retention, without crashes. */
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/batch_header.h"
#include "store/file.h"
#include "store/log_fixture.h"
#include "store/segment.h"

#define MIB (1024 * 1024)

TEST(what_is_appended_is_read_back_at_its_offset) {
    struct log l = log_open(log_dir(), MIB);
    log_append_many(&l, 100, 300);
    CHECK_EQ(partition_start(l.p), 0);
    CHECK_EQ(partition_end(l.p), 100);
    log_check_all(&l, 0, 100, 300);
    log_close(&l);
}

TEST(a_read_at_the_end_is_empty_and_one_past_it_is_out_of_range) {
    struct log l = log_open(log_dir(), MIB);
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
    const char *dir = log_dir();
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

/* ---- reading ---- */

static const int32_t sizes[] = {0, 1, 100, 4095, 4096, 5000, 40000, 33000, 7, 700000, 31, 64};
#define SIZES_COUNT ((int)COUNT_OF(sizes))

TEST(every_offset_finds_the_batch_that_holds_it_whatever_the_sizes) {
    const char *dir = log_dir();
    struct log l = log_open(dir, MIB);
    int64_t base_of[600];
    int64_t end = 0;
    for (int i = 0; i < 60; i++) {
        int32_t records = 1 + i % 7;
        for (int32_t k = 0; k < records; k++)
            base_of[end + k] = end;
        CHECK_EQ(log_append(&l, records, sizes[i % SIZES_COUNT], i), ST_OK);
        end += records;
    }
    for (int round = 0; round < 2; round++) {
        for (int64_t offset = 0; offset < end; offset++) {
            struct store_read r;
            CHECK_EQ(partition_read(l.p, offset, 0, true, &r), ST_OK);
            CHECK_EQ(r.runs_count, 1);
            CHECK(payload_is(r.runs[0].bytes.ptr, base_of[offset], r.runs[0].bytes.len));
            CHECK(r.next_offset > offset &&
                  (r.next_offset == end || base_of[r.next_offset] == r.next_offset));
            store_read_release(&r);
        }
        log_close(&l);
        l = log_open(dir, MIB);
    }
    log_close(&l);
}

/* Read all from offset on with reads of bytes_max; the batches are of one size and one record. */
static int read_through(struct log *l, int64_t offset, int64_t bytes_max, int32_t size) {
    int reads = 0;
    int64_t end = partition_end(l->p);
    while (offset < end) {
        struct store_read r;
        CHECK_EQ(partition_read(l->p, offset, bytes_max, true, &r), ST_OK);
        CHECK(r.bytes <= bytes_max || r.next_offset == offset + 1);
        CHECK_EQ(r.bytes, (r.next_offset - offset) * size);
        for (int32_t run = 0; run < r.runs_count; run++)
            for (int32_t at = 0; at < r.runs[run].bytes.len; at += size)
                CHECK(payload_is(r.runs[run].bytes.ptr + at, offset++, size));
        CHECK_EQ(r.next_offset, offset);
        store_read_release(&r);
        reads++;
    }
    return reads;
}

TEST(a_read_brings_as_many_whole_batches_as_bytes_max_allows) {
    struct log l = log_open(log_dir(), 64 * MIB);
    log_append_many(&l, 1000, 1000);
    CHECK_EQ(read_through(&l, 0, 10000, 1000), 100);
    CHECK_EQ(read_through(&l, 0, 10999, 1000), 100);
    CHECK_EQ(read_through(&l, 0, 2 * MIB, 1000), 1);
    CHECK_EQ(read_through(&l, 0, 0, 1000), 1000); /* KIP-74: the first one comes anyway */
    CHECK_EQ(read_through(&l, 500, 1, 1000), 500);
    log_close(&l);
}

TEST(small_batches_come_as_one_run_and_a_large_one_starts_its_own) {
    struct log l = log_open(log_dir(), 64 * MIB);
    struct store_read r;
    log_append_many(&l, 50, 100);
    CHECK_EQ(log_append(&l, 1, 5000, 0), ST_OK);
    log_append_many(&l, 3, 200);
    CHECK_EQ(partition_read(l.p, 0, MIB, true, &r), ST_OK);
    CHECK_EQ(r.runs_count, 2);
    CHECK_EQ(r.runs[0].bytes.len, 5000);
    CHECK_EQ(r.runs[1].bytes.len, 5600);
    for (int i = 0; i < 50; i++)
        CHECK(payload_is(r.runs[0].bytes.ptr + i * 100, i, 100));
    CHECK(payload_is(r.runs[1].bytes.ptr, 50, 5000));
    CHECK(payload_is(r.runs[1].bytes.ptr + 5400, 53, 200));
    store_read_release(&r);
    log_close(&l);
}

TEST(batches_of_another_format_are_another_run) {
    struct log l = log_open(log_dir(), 64 * MIB);
    struct store_batch b[3];
    struct store_read r;
    for (int i = 0; i < 3; i++)
        b[i] = fixture_batch(i, 1, 50, 0);
    b[1].format = STORE_FORMAT_IGGY;
    CHECK_EQ(partition_append(l.p, b, 3), ST_OK);
    CHECK_EQ(partition_read(l.p, 0, 1000, true, &r), ST_OK);
    CHECK_EQ(r.runs_count, 3);
    CHECK_EQ(r.runs[0].format, STORE_FORMAT_KAFKA);
    CHECK_EQ(r.runs[1].format, STORE_FORMAT_IGGY);
    CHECK(payload_is(r.runs[2].bytes.ptr, 2, 50));
    store_read_release(&r);
    for (int i = 0; i < 3; i++)
        fixture_batch_free(&b[i]);
    log_close(&l);
}

TEST(a_read_without_waiting_serves_what_is_cached_and_else_says_again) {
    const char *dir = log_dir();
    struct log l = log_open(dir, 10000);
    struct store_read r;
    log_append_many(&l, 100, 1000);
    CHECK_EQ(partition_read(l.p, 99, 1000, false, &r), ST_OK);
    CHECK_EQ(r.bytes, 1000);
    CHECK(payload_is(r.runs[0].bytes.ptr, 99, 1000));
    store_read_release(&r);
    log_close(&l);
    l = log_open(dir, 10000);
    CHECK_EQ(partition_read(l.p, 99, 1000, false, &r), ST_AGAIN); /* the partition isn't open */
    int64_t cut;
    CHECK_EQ(partition_open(l.p, &cut), ST_OK);
    CHECK_EQ(partition_read(l.p, 0, 1000, false, &r), ST_AGAIN); /* a sealed segment isn't open */
    CHECK_EQ(partition_read(l.p, 0, 1000, true, &r), ST_OK);
    store_read_release(&r);
    CHECK_EQ(partition_read(l.p, 1, 1000, false, &r), ST_OK);
    store_read_release(&r);
    log_close(&l);
}

TEST(bytes_after_never_says_less_than_a_read_would_bring) {
    struct log l = log_open(log_dir(), 100000);
    log_append_many(&l, 400, 1000);
    for (int64_t offset = 0; offset < 400; offset += 13) {
        int64_t stored = (400 - offset) * (1000 + BATCH_HEADER_BYTES);
        int64_t said = partition_bytes_after(l.p, offset);
        CHECK(said >= stored && said <= stored + 32 * 1024 + 2000);
    }
    CHECK_EQ(partition_bytes_after(l.p, 400), 0);
    CHECK_EQ(partition_bytes_after(l.p, 500), 0);
    log_close(&l);
}

TEST(bytes_after_is_exact_for_one_who_read_up_to_the_end) {
    struct log l = log_open(log_dir(), 64 * MIB);
    struct store_read r;
    log_append_many(&l, 40, 1000);
    CHECK_EQ(partition_read(l.p, 40, MIB, true, &r), ST_OK);
    log_append_many(&l, 2, 700);
    CHECK_EQ(partition_bytes_after(l.p, 40), 2 * (700 + BATCH_HEADER_BYTES));
    log_close(&l);
}

/* ---- appending ---- */

TEST(one_append_of_many_batches_is_stored_in_order) {
    struct log l = log_open(log_dir(), 64 * MIB);
    struct store_batch b[700];
    for (int i = 0; i < 700; i++)
        b[i] = fixture_batch(i, 1, 90, i);
    CHECK_EQ(partition_append(l.p, b, 700), ST_OK);
    CHECK_EQ(partition_end(l.p), 700);
    CHECK_EQ(partition_unsynced_bytes(l.p), 700 * (90 + BATCH_HEADER_BYTES));
    CHECK_EQ(partition_sync(l.p), ST_OK);
    CHECK_EQ(partition_unsynced_bytes(l.p), 0);
    CHECK_EQ(partition_append(l.p, b, 0), ST_OK);
    for (int i = 0; i < 700; i++)
        fixture_batch_free(&b[i]);
    log_check_all(&l, 0, 700, 90);
    log_close(&l);
}

TEST(a_batch_that_does_not_continue_the_log_is_refused) {
    struct log l = log_open(log_dir(), MIB);
    log_append_many(&l, 3, 10);
    struct store_batch b = fixture_batch(4, 1, 10, 0);
    CHECK_EQ(partition_append(l.p, &b, 1), ST_INVALID);
    b.base_offset = 2;
    CHECK_EQ(partition_append(l.p, &b, 1), ST_INVALID);
    b.base_offset = 3;
    b.records_count = 0;
    CHECK_EQ(partition_append(l.p, &b, 1), ST_INVALID);
    CHECK_EQ(partition_end(l.p), 3);
    fixture_batch_free(&b);
    log_close(&l);
}

TEST(a_segment_is_sealed_before_it_passes_its_size) {
    const char *dir = log_dir();
    struct log l = log_open(dir, 10 * (1000 + BATCH_HEADER_BYTES));
    log_append_many(&l, 25, 1000);
    CHECK_EQ(file_bytes(log_file(dir, 0, "log")), 10 * (1000 + BATCH_HEADER_BYTES));
    CHECK_EQ(file_bytes(log_file(dir, 10, "log")), 10 * (1000 + BATCH_HEADER_BYTES));
    CHECK_EQ(file_bytes(log_file(dir, 20, "log")), 5 * (1000 + BATCH_HEADER_BYTES));
    CHECK_EQ(partition_size_bytes(l.p), 25 * (1000 + BATCH_HEADER_BYTES));
    CHECK_EQ(log_append(&l, 1, 50000, 0), ST_OK); /* larger than a segment: has its own */
    CHECK_EQ(file_bytes(log_file(dir, 25, "log")), 50000 + BATCH_HEADER_BYTES);
    log_check_all(&l, 0, 25, 1000);
    CHECK_EQ(log_check(&l, 25, 50000), ST_OK);
    log_close(&l);
}

/* A store whose segments age, on the fixture's clock. */
static struct log open_aging(const char *dir, int64_t segment_ms) {
    struct log l = {.dir = dir};
    struct store_error error;
    struct store_settings settings = fixture_settings(dir, MIB);
    struct store_topic_new want = {.stream = STR("kafka"), .name = STR("t"), .partitions_count = 1};
    settings.segment_ms = segment_ms;
    CHECK_EQ(store_open(&settings, &l.s, &error), ST_OK);
    CHECK_EQ(store_stream_ensure(l.s, STR("kafka")), ST_OK);
    enum status st = store_topic_create(l.s, &want, &l.t);
    if (st)
        l.t = store_topic_find(l.s, STR("kafka"), STR("t"));
    l.p = topic_partition(l.t, 0);
    return l;
}

TEST(a_segment_is_sealed_when_its_first_batch_is_too_old_also_after_a_restart) {
    const char *dir = log_dir();
    int32_t dropped;
    struct store_retention keep = {-1, -1};
    fixture_wall_ms = 1000000;
    struct log l = open_aging(dir, 1000);
    log_append_many(&l, 2, 10);
    fixture_wall_ms += 1000;
    log_append_many(&l, 1, 10);
    fixture_wall_ms += 1;
    log_append_many(&l, 1, 10);
    CHECK_EQ(file_bytes(log_file(dir, 3, "log")), 10 + BATCH_HEADER_BYTES);
    log_close(&l);
    fixture_wall_ms += 1000;
    l = open_aging(dir, 1000);
    CHECK_EQ(partition_retain(l.p, &keep, fixture_wall_ms, &dropped), ST_OK);
    CHECK_EQ(file_bytes(log_file(dir, 4, "log")), -1);
    CHECK_EQ(partition_retain(l.p, &keep, fixture_wall_ms + 1, &dropped), ST_OK);
    CHECK_EQ(file_bytes(log_file(dir, 4, "log")), 0);
    CHECK_EQ(partition_retain(l.p, &keep, fixture_wall_ms + 5000, &dropped),
             ST_OK); /* an empty one isn't old */
    CHECK_EQ(partition_end(l.p), 4);
    log_append_many(&l, 1, 10);
    log_check_all(&l, 0, 5, 10);
    log_close(&l);
}

/* ---- retention ---- */

TEST(retention_by_bytes_drops_the_oldest_while_the_rest_is_not_smaller) {
    const char *dir = log_dir();
    int64_t segment = 10 * (1000 + BATCH_HEADER_BYTES);
    int32_t dropped;
    struct store_read r;
    struct log l = log_open(dir, segment);
    log_append_many(&l, 45, 1000);
    struct store_retention keep = {.ms = -1, .bytes = segment * 2 + segment / 2};
    CHECK_EQ(partition_retain(l.p, &keep, 0, &dropped), ST_OK);
    CHECK_EQ(dropped, 2);
    CHECK_EQ(partition_start(l.p), 20);
    CHECK_EQ(file_bytes(log_file(dir, 10, "log")), -1);
    CHECK_EQ(file_bytes(log_file(dir, 10, "idx")), -1);
    CHECK_EQ(partition_read(l.p, 19, 1, true, &r), ST_OUT_OF_RANGE);
    log_check_all(&l, 20, 45, 1000);
    keep.bytes = 0;
    CHECK_EQ(partition_retain(l.p, &keep, 0, &dropped), ST_OK);
    CHECK_EQ(dropped, 2); /* never the active one */
    CHECK_EQ(partition_start(l.p), 40);
    log_close(&l);
    l = log_open(dir, segment);
    CHECK_EQ(log_check(&l, 40, 1000), ST_OK);
    CHECK_EQ(partition_start(l.p), 40);
    CHECK_EQ(partition_end(l.p), 45);
    log_close(&l);
}

/* D9-9: sealed segments only, by the greatest timestamp in them. */
TEST(retention_by_time_drops_segments_whose_newest_batch_is_too_old) {
    const char *dir = log_dir();
    int64_t segment = 10 * (100 + BATCH_HEADER_BYTES);
    int32_t dropped;
    struct store_retention keep = {.ms = 100, .bytes = -1};
    struct log l = log_open(dir, segment);
    for (int i = 0; i < 35; i++)
        CHECK_EQ(log_append(&l, 1, 100, i == 15 ? 5000 : 1000 + i), ST_OK);
    for (int round = 0; round < 2; round++) { /* from memory, then from the files */
        CHECK_EQ(partition_retain(l.p, &keep, 1000 + 9 + 100, &dropped), ST_OK);
        CHECK_EQ(dropped, 0);
        log_close(&l);
        l = log_open(dir, segment);
    }
    CHECK_EQ(partition_retain(l.p, &keep, 1000 + 9 + 101, &dropped), ST_OK);
    CHECK_EQ(dropped, 1);
    CHECK_EQ(partition_retain(l.p, &keep, 4000, &dropped), ST_OK);
    CHECK_EQ(dropped, 0); /* the second has 5000, and the third waits for it */
    CHECK_EQ(partition_retain(l.p, &keep, 5101, &dropped), ST_OK);
    CHECK_EQ(dropped, 2);
    CHECK_EQ(partition_start(l.p), 30);
    log_close(&l);
}

TEST(a_segment_without_timestamps_is_as_old_as_its_file) {
    const char *dir = log_dir();
    int32_t dropped;
    struct store_retention keep = {.ms = 100000, .bytes = -1};
    struct log l = log_open(dir, 150);
    CHECK_EQ(log_append(&l, 1, 100, -1), ST_OK);
    CHECK_EQ(log_append(&l, 1, 100, INT64_MIN), ST_OK);
    CHECK_EQ(log_append(&l, 1, 100, -1), ST_OK);
    struct timespec times[2] = {{.tv_sec = 5000}, {.tv_sec = 5000}};
    CHECK_EQ(utimensat(AT_FDCWD, log_file(dir, 0, "log"), times, 0), 0);
    CHECK_EQ(partition_retain(l.p, &keep, 5000 * 1000 + 100000, &dropped), ST_OK);
    CHECK_EQ(dropped, 0);
    CHECK_EQ(partition_retain(l.p, &keep, 5000 * 1000 + 100001, &dropped), ST_OK);
    CHECK_EQ(dropped, 1);
    CHECK_EQ(partition_start(l.p), 1);
    log_close(&l);
}

TEST(a_reader_may_finish_what_retention_takes_away) {
    const char *dir = log_dir();
    int32_t dropped;
    struct store_read r;
    struct store_retention keep = {.ms = -1, .bytes = 0};
    struct log l = log_open(dir, 10 * (1000 + BATCH_HEADER_BYTES));
    log_append_many(&l, 15, 1000);
    CHECK_EQ(partition_read(l.p, 0, MIB, true, &r), ST_OK);
    CHECK_EQ(partition_retain(l.p, &keep, 0, &dropped), ST_OK);
    CHECK_EQ(dropped, 1);
    CHECK_EQ(r.bytes, 10000);
    CHECK(payload_is(r.runs[0].bytes.ptr, 0, 1000));
    store_read_release(&r);
    log_close(&l);
}

/* ---- time ---- */

static void check_time(struct log *l, int64_t timestamp_ms, int64_t want_offset) {
    struct store_read r;
    int64_t offset = -1;
    enum status st = partition_find_time(l->p, 0, timestamp_ms, &offset, &r);
    if (want_offset < 0) {
        CHECK_EQ(st, ST_NOT_FOUND);
    } else {
        CHECK_EQ(st, ST_OK);
        CHECK_EQ(offset, want_offset);
        CHECK_EQ(r.runs_count, 1);
        CHECK(payload_is(r.runs[0].bytes.ptr, want_offset, r.runs[0].bytes.len));
        CHECK_EQ(r.next_offset, want_offset + 1);
    }
    store_read_release(&r);
}

/* D3, KC-056, KC-058 */
TEST(a_time_finds_the_first_batch_that_is_not_older_also_out_of_order_and_tied) {
    static const int64_t times[] = {50, 10, 10, 30, 90, 90, INT64_MIN, 70, 90, 200, 5, 200};
    const char *dir = log_dir();
    int64_t segment_bytes[] = {MIB, 3 * (100 + BATCH_HEADER_BYTES)};
    for (int k = 0; k < 2; k++) {
        dir = log_dir();
        struct log l = log_open(dir, segment_bytes[k]);
        check_time(&l, 0, -1);
        check_time(&l, INT64_MAX, -1);
        for (size_t i = 0; i < COUNT_OF(times); i++)
            CHECK_EQ(log_append(&l, 1, 100, times[i]), ST_OK);
        for (int round = 0; round < 2; round++) {
            check_time(&l, 0, 0);
            check_time(&l, 50, 0);
            check_time(&l, 51, 4);
            check_time(&l, 90, 4);
            check_time(&l, 91, 9);
            check_time(&l, 200, 9);
            check_time(&l, 201, -1);
            check_time(&l, INT64_MAX, 9);
            log_close(&l);
            l = log_open(dir, segment_bytes[k]);
        }
        log_close(&l);
    }
}

TEST(a_log_without_timestamps_has_no_greatest_one) {
    struct log l = log_open(log_dir(), MIB);
    CHECK_EQ(log_append(&l, 1, 10, INT64_MIN), ST_OK);
    check_time(&l, INT64_MAX, -1);
    check_time(&l, 0, -1);
    log_close(&l);
}

TEST(a_time_is_found_through_the_index_of_a_long_segment) {
    struct log l = log_open(log_dir(), 64 * MIB);
    for (int i = 0; i < 3000; i++)
        CHECK_EQ(log_append(&l, 1, 500, 10 * i), ST_OK);
    for (int i = 0; i < 3000; i += 97) {
        check_time(&l, 10 * i, i);
        check_time(&l, 10 * i - 9, i);
    }
    log_close(&l);
}

/* ---- files and memory ---- */

static int open_files(void) {
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) != -1;
    return count;
}

TEST(a_partition_of_many_segments_keeps_few_files_open) {
    const char *dir = log_dir();
    struct log l = log_open(dir, 100);
    log_append_many(&l, 300, 100);
    log_close(&l);
    l = log_open(dir, 100);
    int before = open_files();
    log_check_all(&l, 0, 300, 100);
    CHECK(open_files() - before <= SEGMENTS_IDLE_MAX + 2);
    log_check_all(&l, 0, 300, 100);
    CHECK(open_files() - before <= SEGMENTS_IDLE_MAX + 2);
    log_close(&l);
}

static int inits, releases;
static void user_init(void *user) {
    CHECK_EQ(*(int64_t *)user, 0);
    *(int64_t *)user = 42;
    inits++;
}
static void user_release(void *user) {
    CHECK_EQ(*(int64_t *)user, 43);
    releases++;
}

TEST(the_callers_memory_beside_a_partition_lives_as_long_as_it) {
    struct log l = {0};
    struct store_error error;
    struct store_settings settings = fixture_settings(log_dir(), MIB);
    settings.user_bytes = 64;
    settings.user_init = user_init;
    settings.user_release = user_release;
    CHECK_EQ(store_open(&settings, &l.s, &error), ST_OK);
    CHECK_EQ(store_stream_ensure(l.s, STR("kafka")), ST_OK);
    struct store_topic_new want = {.stream = STR("kafka"), .name = STR("t"), .partitions_count = 3};
    CHECK_EQ(store_topic_create(l.s, &want, &l.t), ST_OK);
    for (int i = 0; i < 3; i++) {
        int64_t *user = partition_user(topic_partition(l.t, i));
        CHECK_EQ(user[0], 42);
        user[7] = 7;
        user[0] = 43;
    }
    CHECK_EQ(inits, 3);
    log_close(&l);
    CHECK_EQ(releases, 3);
}

static int gone;
static void user_gone(void *user) {
    gone = gone * 10 + *(int *)user;
}

TEST(the_caller_is_told_once_of_each_partition_that_is_deleted_or_shrunk_away) {
    struct log l = {0};
    struct store_error error;
    struct store_settings settings = fixture_settings(log_dir(), MIB);
    settings.user_bytes = sizeof(int);
    settings.user_gone = user_gone;
    CHECK_EQ(store_open(&settings, &l.s, &error), ST_OK);
    CHECK_EQ(store_stream_ensure(l.s, STR("kafka")), ST_OK);
    l.t = fixture_topic(l.s, "t", 4);
    for (int i = 0; i < 4; i++)
        *(int *)partition_user(topic_partition(l.t, i)) = i + 1;
    struct partition *last = topic_partition(l.t, 3), *first = topic_partition(l.t, 0);
    CHECK(!partition_deleted(last));
    CHECK_EQ(store_topic_shrink(l.s, l.t, 2), ST_OK);
    CHECK_EQ(gone, 34);
    CHECK(partition_deleted(last));
    CHECK(!partition_deleted(first));
    CHECK_EQ(store_topic_delete(l.s, l.t), ST_OK);
    CHECK_EQ(gone, 3412);
    CHECK(partition_deleted(first));
    log_close(&l);
}

TEST_OOM(reading_and_appending_survive_any_failed_allocation) {
    static char dir[64];
    struct store_settings settings;
    struct store *s = NULL;
    struct store_error error;
    struct topic *t = NULL;
    struct store_read r = {0};
    int64_t offset;
    if (!dir[0])
        strcpy(dir, log_dir());
    settings = fixture_settings(dir, 300);
    enum status st = store_open(&settings, &s, &error);
    if (!st)
        st = store_stream_ensure(s, STR("kafka"));
    if (!st) {
        struct store_topic_new want = {.stream = STR("kafka"), .name = STR("t"), .partitions_count = 1};
        st = store_topic_create(s, &want, &t);
        if (st == ST_EXISTS) {
            t = store_topic_find(s, STR("kafka"), STR("t"));
            st = ST_OK;
        }
    }
    if (!st)
        st = partition_open(topic_partition(t, 0), NULL);
    for (int i = 0; !st && i < 3 && partition_end(topic_partition(t, 0)) < 45; i++) {
        uint8_t payload[120] = {0};
        struct store_batch b = {
            {payload, 120}, partition_end(topic_partition(t, 0)), 5, 1, STORE_FORMAT_KAFKA};
        st = partition_append(topic_partition(t, 0), &b, 1);
    }
    if (!st)
        st = partition_read(topic_partition(t, 0), 0, 1000, true, &r);
    store_read_release(&r);
    if (!st)
        st = partition_find_time(topic_partition(t, 0), 0, 5, &offset, &r);
    CHECK(st == ST_OK || st == ST_NO_MEMORY);
    store_read_release(&r);
    topic_unref(t);
    store_close(s);
}

/* ---- dropping ---- */

/* Four segments of three batches each, the last one active. */
static struct log four_segments(const char *dir) {
    struct log l = log_open(dir, 3 * (1000 + BATCH_HEADER_BYTES));
    log_append_many(&l, 12, 1000);
    CHECK_EQ(partition_segments_count(l.p), 4);
    return l;
}

TEST(the_oldest_sealed_segments_are_dropped_and_never_the_active_one) {
    int32_t dropped;
    const char *dir = log_dir();
    struct log l = four_segments(dir);
    CHECK_EQ(partition_drop(l.p, 0, &dropped), ST_OK);
    CHECK_EQ(dropped, 0);
    CHECK_EQ(partition_start(l.p), 0);
    CHECK_EQ(partition_drop(l.p, 2, &dropped), ST_OK);
    CHECK_EQ(dropped, 2);
    CHECK_EQ(partition_start(l.p), 6);
    CHECK_EQ(file_bytes(log_file(dir, 3, "log")), -1);
    CHECK_EQ(file_bytes(log_file(dir, 3, "idx")), -1);
    CHECK_EQ(log_check(&l, 5, 1000), ST_OUT_OF_RANGE);
    log_check_all(&l, 6, 12, 1000);
    CHECK_EQ(partition_drop(l.p, 9, &dropped), ST_OK);
    CHECK_EQ(dropped, 1);
    CHECK_EQ(partition_start(l.p), 9);
    CHECK_EQ(partition_segments_count(l.p), 1);
    log_close(&l);
    l = log_open(dir, 1000000);
    CHECK_EQ(partition_open(l.p, NULL), ST_OK);
    CHECK_EQ(partition_start(l.p), 9);
    log_check_all(&l, 9, 12, 1000);
    log_close(&l);
}

TEST(after_everything_was_dropped_offsets_go_on_also_over_a_restart_and_without_an_index) {
    int32_t dropped;
    struct store_read r;
    for (int kind = 0; kind < 3; kind++) {
        const char *dir = log_dir();
        struct log l = four_segments(dir);
        CHECK_EQ(partition_drop(l.p, -1, &dropped), ST_OK);
        CHECK_EQ(dropped, 4);
        if (kind > 0) {
            log_close(&l);
            if (kind == 2)
                CHECK_EQ(unlink(log_file(dir, 12, "idx")), 0);
            l = log_open(dir, 1000000);
            CHECK_EQ(partition_open(l.p, NULL), ST_OK);
        }
        CHECK_EQ(partition_start(l.p), 12);
        CHECK_EQ(partition_end(l.p), 12);
        CHECK_EQ(partition_size_bytes(l.p), 0);
        CHECK_EQ(partition_bytes_after(l.p, 0), 0);
        CHECK_EQ(log_check(&l, 11, 1000), ST_OUT_OF_RANGE);
        CHECK_EQ(partition_read(l.p, 12, 1000, true, &r), ST_OK);
        CHECK_EQ(r.runs_count, 0);
        CHECK_EQ(partition_drop(l.p, -1, &dropped), ST_OK); /* there is nothing any more */
        CHECK_EQ(dropped, 0);
        log_append_many(&l, 2, 1000);
        log_check_all(&l, 12, 14, 1000);
        log_close(&l);
    }
}

static void drop_all(struct log *l) {
    int32_t dropped;
    log_append_many(l, 5, 1000);
    CHECK_EQ(partition_drop(l->p, -1, &dropped), ST_OK);
}

TEST(a_kill_after_everything_was_dropped_brings_nothing_back) {
    const char *dir = log_dir();
    log_crash(dir, 100000, drop_all);
    struct log l = log_open(dir, 100000);
    CHECK_EQ(partition_open(l.p, NULL), ST_OK);
    CHECK_EQ(partition_start(l.p), 5);
    CHECK_EQ(partition_end(l.p), 5);
    log_append_many(&l, 1, 1000);
    log_check_all(&l, 5, 6, 1000);
    log_close(&l);
}

TEST(a_kill_before_the_files_went_leaves_all_of_them) {
    const char *dir = log_dir();
    struct log l = log_open(dir, 1000000);
    log_append_many(&l, 5, 1000);
    log_close(&l);
    file_put(log_file(dir, 5, "log"), 0, "", 0); /* what partition_drop makes first */
    l = log_open(dir, 1000000);
    CHECK_EQ(partition_open(l.p, NULL), ST_OK);
    CHECK_EQ(partition_start(l.p), 0);
    CHECK_EQ(partition_end(l.p), 5);
    CHECK_EQ(partition_segments_count(l.p), 2);
    log_check_all(&l, 0, 5, 1000);
    log_close(&l);
}

TEST(an_empty_partition_has_nothing_to_drop) {
    int32_t dropped = 7;
    struct log l = log_open(log_dir(), 100000);
    CHECK_EQ(partition_drop(l.p, -1, &dropped), ST_OK);
    CHECK_EQ(dropped, 0);
    CHECK_EQ(partition_drop(l.p, 3, &dropped), ST_OK);
    CHECK_EQ(dropped, 0);
    CHECK_EQ(partition_segments_count(l.p), 0);
    log_append_many(&l, 1, 10);
    log_check_all(&l, 0, 1, 10);
    log_close(&l);
}

TEST(a_failed_sync_or_a_full_disk_while_dropping_everything_loses_nothing) {
    int32_t dropped;
    const char *dir = log_dir();
    struct log l = log_open(dir, 1000000);
    log_append_many(&l, 5, 1000);
    file_fail_at(FILE_SYNC, 1, EIO);
    CHECK_EQ(partition_drop(l.p, -1, &dropped), ST_IO);
    file_fail_at(FILE_SYNC, 0, 0);
    CHECK_EQ(dropped, 0);
    log_check_all(&l, 0, 5, 1000);
    CHECK_EQ(partition_drop(l.p, -1, &dropped), ST_CORRUPT); /* closed to appends until the next start */
    log_close(&l);
    l = log_open(dir, 1000000);
    log_check_all(&l, 0, 5, 1000);
    CHECK_EQ(partition_drop(l.p, -1, &dropped), ST_OK);
    CHECK_EQ(dropped, 1);
    log_close(&l);
}

TEST(a_reader_may_finish_what_is_dropped) {
    int32_t dropped;
    struct store_read r;
    struct log l = four_segments(log_dir());
    CHECK_EQ(partition_read(l.p, 0, 3000, true, &r), ST_OK);
    CHECK_EQ(partition_drop(l.p, -1, &dropped), ST_OK);
    CHECK_EQ(r.next_offset, 3);
    for (int i = 0; i < 3; i++)
        CHECK(payload_is(r.runs[0].bytes.ptr + 1000 * i, i, 1000) || r.runs_count > 1);
    store_read_release(&r);
    log_close(&l);
}

TEST(dropping_survives_any_failed_allocation) {
    bool pending = false;
    for (int64_t nth = 1; !pending; nth++) {
        int32_t dropped = 0;
        struct log l = log_open(log_dir(), 3 * (1000 + BATCH_HEADER_BYTES));
        log_append_many(&l, 7, 1000);
        mem_fail_at(nth);
        enum status st = partition_drop(l.p, -1, &dropped);
        pending = mem_fail_pending();
        mem_fail_at(0);
        CHECK_EQ(st, pending ? ST_OK : ST_NO_MEMORY);
        CHECK_EQ(partition_start(l.p), st ? 0 : 7);
        CHECK_EQ(dropped, st ? 0 : 3);
        log_append_many(&l, 1, 1000);
        log_check_all(&l, 7, 8, 1000);
        log_close(&l);
    }
}
