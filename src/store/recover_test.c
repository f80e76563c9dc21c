/* What a crash leaves behind, and what is made of it. */
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/batch_header.h"
#include "store/file.h"
#include "store/index.h"
#include "store/log_fixture.h"

#define MIB         (1024 * 1024)
#define SIZE        150
#define STORED      (SIZE + BATCH_HEADER_BYTES)
#define BATCHES     12
#define SMALL_BYTES ((int64_t)BATCHES * STORED)

static void append_batches(struct log *l) {
    log_append_many(l, BATCHES, SIZE);
}

/* A log of BATCHES batches whose process was killed, with its bytes. */
static uint8_t *killed_log(const char *dir) {
    log_crash(dir, MIB, append_batches);
    CHECK_EQ(file_bytes(log_file(dir, 0, "log")), SMALL_BYTES);
    uint8_t *bytes = mem_take(SMALL_BYTES);
    int fd = open(log_file(dir, 0, "log"), O_RDONLY);
    CHECK_EQ(read(fd, bytes, SMALL_BYTES), SMALL_BYTES);
    close(fd);
    return bytes;
}

/* Put bytes in the place of the log file, and take the index away. */
static void replace_log(const char *dir, const void *bytes, size_t size) {
    unlink(log_file(dir, 0, "idx"));
    CHECK_EQ(truncate(log_file(dir, 0, "log"), 0), 0);
    file_put(log_file(dir, 0, "log"), 0, bytes, size);
}

TEST(a_kill_loses_nothing_that_was_appended) {
    const char *dir = log_dir();
    int64_t cut = -1;
    mem_free(killed_log(dir));
    struct log l = log_open(dir, MIB);
    CHECK_EQ(partition_open(l.p, &cut), ST_OK);
    CHECK_EQ(cut, 0);
    CHECK_EQ(partition_end(l.p), BATCHES);
    CHECK_EQ(partition_unsynced_bytes(l.p), SMALL_BYTES); /* so that the next sync really is one */
    log_check_all(&l, 0, BATCHES, SIZE);
    log_close(&l);
}

/* Append and sync for ever; tell through shared memory what is synced. */
static void append_until_killed(const char *dir, _Atomic int64_t *synced) {
    struct log l = log_open(dir, 100000);
    for (int64_t i = 0;; i++) {
        struct store_batch b[4];
        CHECK_EQ(partition_open(l.p, NULL), ST_OK);
        for (int k = 0; k < 4; k++)
            b[k] = fixture_batch(partition_end(l.p) + k, 1, SIZE, i);
        CHECK_EQ(partition_append(l.p, b, 4), ST_OK);
        for (int k = 0; k < 4; k++)
            fixture_batch_free(&b[k]);
        int64_t end = partition_end(l.p);
        if (i % 3 == 0) {
            CHECK_EQ(partition_sync(l.p), ST_OK);
            atomic_store(synced, end);
        }
    }
}

TEST(a_kill_at_any_moment_keeps_what_was_synced_and_starts_again) {
    const char *dir = log_dir();
    _Atomic int64_t *synced =
        mmap(NULL, sizeof *synced, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(synced != MAP_FAILED);
    for (int round = 0; round < 8; round++) {
        int64_t before = atomic_load(synced);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            append_until_killed(dir, synced);
        while (atomic_load(synced) < before + 37 + round * 29)
            sched_yield();
        CHECK_EQ(kill(child, SIGKILL), 0);
        CHECK_EQ(waitpid(child, NULL, 0), child);
        struct log l = log_open(dir, 100000);
        CHECK_EQ(partition_open(l.p, NULL), ST_OK);
        CHECK(partition_end(l.p) >= atomic_load(synced));
        log_check_all(&l, 0, partition_end(l.p), SIZE);
        log_close(&l);
    }
    munmap(synced, sizeof *synced);
}

TEST(a_tail_torn_at_any_byte_is_cut_and_the_rest_is_intact) {
    const char *dir = log_dir();
    uint8_t *bytes = killed_log(dir);
    for (int64_t size = SMALL_BYTES - 3 * STORED; size < SMALL_BYTES; size++) {
        int64_t cut = -1, whole = size / STORED;
        replace_log(dir, bytes, (size_t)size);
        struct log l = log_open(dir, MIB);
        CHECK_EQ(partition_open(l.p, &cut), ST_OK);
        CHECK(cut <= size % STORED && (cut > 0) == (size % STORED > 0)); /* zeros at the end don't count */
        CHECK_EQ(partition_end(l.p), whole);
        CHECK_EQ(file_bytes(log_file(dir, 0, "log")), whole * STORED);
        CHECK_EQ(partition_open(l.p, &cut), ST_OK);
        CHECK_EQ(cut, 0); /* told once */
        log_check_all(&l, whole > 3 ? whole - 3 : 0, whole, SIZE);
        log_append_many(&l, 2, SIZE);
        CHECK_EQ(log_check(&l, whole + 1, SIZE), ST_OK);
        log_close(&l);
    }
    mem_free(bytes);
}

TEST(any_changed_byte_of_the_last_batch_is_a_torn_tail_and_is_cut) {
    const char *dir = log_dir();
    uint8_t *bytes = killed_log(dir);
    for (int64_t at = SMALL_BYTES - STORED; at < SMALL_BYTES; at++) {
        int64_t cut = -1;
        bytes[at] ^= 0x10;
        replace_log(dir, bytes, SMALL_BYTES);
        bytes[at] ^= 0x10;
        struct log l = log_open(dir, MIB);
        CHECK_EQ(partition_open(l.p, &cut), ST_OK);
        CHECK_EQ(cut, STORED);
        CHECK_EQ(partition_end(l.p), BATCHES - 1);
        log_close(&l);
    }
    mem_free(bytes);
}

TEST(any_changed_byte_with_whole_batches_behind_it_closes_the_partition_to_appends) {
    const char *dir = log_dir();
    uint8_t *bytes = killed_log(dir);
    for (int64_t at = 5 * STORED; at < 6 * STORED; at++) {
        bytes[at] ^= 0x10;
        replace_log(dir, bytes, SMALL_BYTES);
        bytes[at] ^= 0x10;
        struct log l = log_open(dir, MIB);
        int64_t cut = -1;
        struct store_read r;
        CHECK_EQ(partition_open(l.p, &cut), ST_CORRUPT);
        CHECK_EQ(cut, 0);
        CHECK_EQ(partition_end(l.p), 5);
        log_check_all(&l, 0, 5, SIZE);
        CHECK_EQ(partition_read(l.p, 6, 1, true, &r), ST_OUT_OF_RANGE);
        CHECK_EQ(log_append(&l, 1, SIZE, 0), ST_CORRUPT);
        log_close(&l);
        CHECK_EQ(file_bytes(log_file(dir, 0, "log")), SMALL_BYTES); /* nothing was touched */
        CHECK_EQ(file_bytes(log_file(dir, 0, "idx")), -1);
    }
    mem_free(bytes);
}

TEST(a_tail_of_zeros_is_the_end_and_counts_as_nothing_lost) {
    const char *dir = log_dir();
    uint8_t *bytes = killed_log(dir);
    uint8_t *padded = mem_take_zeroed(1, SMALL_BYTES + 3 * MIB);
    memcpy(padded, bytes, SMALL_BYTES);
    replace_log(dir, padded, SMALL_BYTES + 3 * MIB);
    struct log l = log_open(dir, 16 * MIB);
    int64_t cut = -1;
    CHECK_EQ(partition_open(l.p, &cut), ST_OK);
    CHECK_EQ(cut, 0);
    CHECK_EQ(partition_end(l.p), BATCHES);
    CHECK_EQ(file_bytes(log_file(dir, 0, "log")), SMALL_BYTES);
    log_append_many(&l, 1, SIZE);
    log_check_all(&l, 0, BATCHES + 1, SIZE);
    log_close(&l);
    /* Half a batch before the zeros: that much is lost. */
    memset(padded + SMALL_BYTES - 70, 0, 70);
    replace_log(dir, padded, SMALL_BYTES + 3 * MIB);
    l = log_open(dir, 16 * MIB);
    CHECK_EQ(partition_open(l.p, &cut), ST_OK);
    CHECK_EQ(cut, STORED - 70);
    CHECK_EQ(partition_end(l.p), BATCHES - 1);
    log_close(&l);
    mem_free(padded);
    mem_free(bytes);
}

TEST(a_batch_inside_the_payload_of_a_torn_one_is_not_taken_for_a_stored_one) {
    const char *dir = log_dir();
    struct log l = log_open(dir, MIB);
    log_append_many(&l, 1, SIZE);
    /* The payload is a whole batch of ours, with an offset that would fit. */
    struct store_batch inner = fixture_batch(2, 1, SIZE, 0), outer;
    uint8_t payload[STORED + 100];
    memset(payload, 0x11, sizeof payload);
    batch_header_write(payload, &inner, 0);
    memcpy(payload + BATCH_HEADER_BYTES, inner.payload.ptr, SIZE);
    outer = (struct store_batch){{payload, sizeof payload}, 1, 0, 1, STORE_FORMAT_KAFKA};
    CHECK_EQ(partition_append(l.p, &outer, 1), ST_OK);
    fixture_batch_free(&inner);
    log_close(&l);
    unlink(log_file(dir, 0, "idx"));
    CHECK_EQ(truncate(log_file(dir, 0, "log"), STORED + BATCH_HEADER_BYTES + STORED + 50), 0);
    l = log_open(dir, MIB);
    int64_t cut = -1;
    CHECK_EQ(partition_open(l.p, &cut), ST_OK);
    CHECK_EQ(partition_end(l.p), 1);
    CHECK_EQ(cut, BATCH_HEADER_BYTES + STORED + 50);
    log_close(&l);
}

/* ---- the index and its marks ---- */

static void append_40_mib(struct log *l) {
    log_append_many(l, 640, 65536 - BATCH_HEADER_BYTES);
}

static void check_and_append(const char *dir) {
    struct log l = log_open(dir, 64 * MIB);
    int64_t cut = -1;
    CHECK_EQ(partition_open(l.p, &cut), ST_OK);
    CHECK_EQ(cut, 0);
    CHECK_EQ(partition_end(l.p), 640);
    log_check_all(&l, 0, 640, 65536 - BATCH_HEADER_BYTES);
    log_append_many(&l, 1, 65536 - BATCH_HEADER_BYTES);
    log_close(&l);
    l = log_open(dir, 64 * MIB);
    log_check_all(&l, 0, 641, 65536 - BATCH_HEADER_BYTES);
    log_close(&l);
    CHECK_EQ(truncate(log_file(dir, 0, "log"), 640 * 65536), 0);
}

TEST(a_missing_or_damaged_or_foreign_index_is_made_again_from_the_log) {
    const char *dir = log_dir();
    uint8_t garbage[5000];
    memset(garbage, 0xa5, sizeof garbage);
    log_crash(dir, 64 * MIB, append_40_mib);
    check_and_append(dir);
    const char *idx = log_file(dir, 0, "idx");
    unlink(idx);
    check_and_append(dir);
    unlink(idx);
    file_put(idx, 0, garbage, sizeof garbage);
    check_and_append(dir);
    unlink(idx);
    file_put(idx, 0, garbage, 10);
    check_and_append(dir);
    unlink(idx);
    struct index x = {0};
    struct index_marks marks = {.sealed = true};
    CHECK_EQ(index_save(AT_FDCWD, idx, 12345, &x, 0, &marks, false), ST_OK);
    check_and_append(dir);
}

TEST(a_damaged_entry_or_a_short_file_makes_the_whole_index_untrusted) {
    const char *dir = log_dir();
    struct index x = {0};
    struct index_marks marks;
    const char *idx = log_file(dir, 0, "idx");
    log_crash(dir, 64 * MIB, append_40_mib);
    CHECK_EQ(index_load(AT_FDCWD, idx, 0, &x, &marks), ST_OK);
    CHECK(x.count > 400);
    index_release(&x);
    file_flip(idx, 128 + 24 * 300 + 5);
    CHECK_EQ(index_load(AT_FDCWD, idx, 0, &x, &marks), ST_CORRUPT);
    file_flip(idx, 128 + 24 * 300 + 5);
    CHECK_EQ(index_load(AT_FDCWD, idx, 1, &x, &marks), ST_CORRUPT);
    CHECK_EQ(index_load(AT_FDCWD, idx, 0, &x, &marks), ST_OK);
    index_release(&x);
    CHECK_EQ(truncate(idx, file_bytes(idx) - 1), 0);
    CHECK_EQ(index_load(AT_FDCWD, idx, 0, &x, &marks), ST_CORRUPT);
    CHECK_EQ(index_load(AT_FDCWD, log_file(dir, 7, "idx"), 7, &x, &marks), ST_NOT_FOUND);
}

/* Damage that recovery must not see shows what it doesn't read. */
TEST(after_a_kill_only_what_was_written_last_is_scanned) {
    const char *dir = log_dir();
    log_crash(dir, 64 * MIB, append_40_mib);
    file_flip(log_file(dir, 0, "log"), 31 * MIB);
    struct log l = log_open(dir, 64 * MIB);
    CHECK_EQ(partition_open(l.p, NULL), ST_OK);
    CHECK_EQ(partition_end(l.p), 640);
    CHECK_EQ(log_check(&l, 31 * 16 - 1, 65536 - BATCH_HEADER_BYTES), ST_OK);
    CHECK_EQ(log_check(&l, 31 * 16, 65536 - BATCH_HEADER_BYTES), ST_CORRUPT); /* never served as good */
    CHECK_EQ(log_check(&l, 31 * 16 + 1, 65536 - BATCH_HEADER_BYTES), ST_OK);
    log_append_many(&l, 1, 100);
    log_close(&l);
}

TEST(after_a_kill_what_was_written_last_is_scanned) {
    const char *dir = log_dir();
    log_crash(dir, 64 * MIB, append_40_mib);
    file_flip(log_file(dir, 0, "log"), 39 * MIB);
    struct log l = log_open(dir, 64 * MIB);
    CHECK_EQ(partition_open(l.p, NULL), ST_CORRUPT);
    CHECK_EQ(partition_end(l.p), 39 * 16);
    log_close(&l);
}

/* Give the index file the mark of another run of the machine, as after a power cut. */
static void start_machine_anew(const char *dir, int64_t base_offset) {
    struct index x = {0};
    struct index_marks marks;
    const char *idx = log_file(dir, base_offset, "idx");
    CHECK_EQ(index_load(AT_FDCWD, idx, base_offset, &x, &marks), ST_OK);
    marks.boot++;
    CHECK_EQ(index_save(AT_FDCWD, idx, base_offset, &x, 0, &marks, false), ST_OK);
    index_release(&x);
}

static void append_synced_then_not(struct log *l) {
    log_append_many(l, 160, 65536 - BATCH_HEADER_BYTES); /* 10 MiB */
    CHECK_EQ(partition_sync(l->p), ST_OK);
    log_append_many(l, 480, 65536 - BATCH_HEADER_BYTES); /* 30 MiB */
}

TEST(after_a_power_cut_everything_behind_the_last_sync_is_scanned) {
    const char *dir = log_dir();
    log_crash(dir, 64 * MIB, append_synced_then_not);
    start_machine_anew(dir, 0);
    file_flip(log_file(dir, 0, "log"), 5 * MIB);  /* synced: not read */
    file_flip(log_file(dir, 0, "log"), 11 * MIB); /* written before the mark of 16 MiB */
    struct log l = log_open(dir, 64 * MIB);
    int64_t cut = -1;
    CHECK_EQ(partition_open(l.p, &cut), ST_OK);
    CHECK_EQ(cut, 29 * MIB); /* nothing of it was ever said to be synced */
    CHECK_EQ(partition_end(l.p), 11 * 16);
    log_close(&l);
}

TEST(after_a_power_cut_a_clean_log_is_whole) {
    const char *dir = log_dir();
    log_crash(dir, 64 * MIB, append_synced_then_not);
    start_machine_anew(dir, 0);
    check_and_append(dir);
}

TEST(synced_data_that_is_missing_is_damage_and_never_a_torn_end) {
    const char *dir = log_dir();
    struct log l = log_open(dir, MIB);
    log_append_many(&l, 10, SIZE);
    log_close(&l); /* syncs */
    CHECK_EQ(truncate(log_file(dir, 0, "log"), 10 * STORED - 1), 0);
    l = log_open(dir, MIB);
    int64_t cut = -1;
    CHECK_EQ(partition_open(l.p, &cut), ST_CORRUPT);
    CHECK_EQ(cut, 0);
    CHECK_EQ(partition_end(l.p), 9);
    log_check_all(&l, 0, 9, SIZE);
    log_close(&l);
    /* The operator's way out (docs/STORE.md): without the index the end is judged by the log alone. */
    unlink(log_file(dir, 0, "idx"));
    l = log_open(dir, MIB);
    CHECK_EQ(partition_open(l.p, &cut), ST_OK);
    CHECK_EQ(cut, STORED - 1);
    log_append_many(&l, 1, SIZE);
    log_check_all(&l, 0, 10, SIZE);
    log_close(&l);
}

static void append_group_after_sync(struct log *l) {
    log_append_many(l, 4, SIZE);
    CHECK_EQ(partition_sync(l->p), ST_OK);
    log_append_many(l, 4, SIZE);
}

/* A write of several batches may reach the disk in any order; unless a later sync says otherwise, it is one torn end. */
TEST(batches_behind_a_hole_are_cut_after_a_power_cut_unless_they_knew_it_as_synced) {
    const char *dir = log_dir();
    int64_t cut = -1;
    log_crash(dir, MIB, append_group_after_sync);
    struct index x = {0};
    CHECK_EQ(index_save(AT_FDCWD, log_file(dir, 0, "idx"), 0, &x, 0, &(struct index_marks){.boot = 1}, false),
             ST_OK);
    file_flip(log_file(dir, 0, "log"), 5 * STORED + 60);
    struct log l = log_open(dir, MIB);
    CHECK_EQ(partition_open(l.p, &cut), ST_OK);
    CHECK_EQ(cut, 3 * STORED);
    CHECK_EQ(partition_end(l.p), 5);
    log_close(&l);

    dir = log_dir();
    log_crash(dir, MIB, append_group_after_sync);
    CHECK_EQ(index_save(AT_FDCWD, log_file(dir, 0, "idx"), 0, &x, 0, &(struct index_marks){.boot = 1}, false),
             ST_OK);
    file_flip(log_file(dir, 0, "log"), 2 * STORED + 60);
    l = log_open(dir, MIB);
    CHECK_EQ(partition_open(l.p, &cut), ST_CORRUPT);
    CHECK_EQ(partition_end(l.p), 2);
    log_close(&l);
}

/* ---- sealed segments ---- */

TEST(damage_in_a_sealed_segment_fails_reads_there_and_nowhere_else) {
    const char *dir = log_dir();
    for (int64_t at = 5 * STORED; at < 6 * STORED; at += 5) {
        for (int with_index = 0; with_index < 2; with_index++) {
            struct log l = log_open(dir, 10 * STORED);
            if (partition_open(l.p, NULL) == ST_OK && partition_end(l.p) == 0)
                log_append_many(&l, 35, SIZE);
            log_close(&l);
            file_flip(log_file(dir, 10, "log"), at);
            if (!with_index)
                unlink(log_file(dir, 10, "idx"));
            l = log_open(dir, 10 * STORED);
            CHECK_EQ(partition_open(l.p, NULL), ST_OK);
            for (int round = 0; round < 2; round++)
                for (int64_t offset = 0; offset < 35; offset++)
                    CHECK_EQ(log_check(&l, offset, SIZE), offset == 15 ? ST_CORRUPT : ST_OK);
            struct store_read r;
            CHECK_EQ(partition_read(l.p, 12, MIB, true, &r), ST_OK); /* what is before it is served */
            CHECK_EQ(r.next_offset, 15);
            store_read_release(&r);
            CHECK_EQ(log_append(&l, 1, SIZE, 35), ST_OK);
            log_close(&l);
            file_flip(log_file(dir, 10, "log"), at);
            unlink(log_file(dir, 10, "idx"));
        }
    }
}

TEST(a_sealed_segment_that_lost_its_end_fails_reads_there_and_nowhere_else) {
    const char *dir = log_dir();
    struct log l = log_open(dir, 10 * STORED);
    log_append_many(&l, 25, SIZE);
    log_close(&l);
    CHECK_EQ(truncate(log_file(dir, 0, "log"), 7 * STORED + 3), 0);
    l = log_open(dir, 10 * STORED);
    for (int64_t offset = 0; offset < 25; offset++)
        CHECK_EQ(log_check(&l, offset, SIZE), offset >= 7 && offset < 10 ? ST_CORRUPT : ST_OK);
    log_close(&l);
}

TEST(the_index_of_a_sealed_segment_is_made_again_when_it_is_needed) {
    const char *dir = log_dir();
    struct log l = log_open(dir, 10 * STORED);
    log_append_many(&l, 25, SIZE);
    log_close(&l);
    unlink(log_file(dir, 0, "idx"));
    file_flip(log_file(dir, 10, "idx"), 50);
    l = log_open(dir, 10 * STORED);
    struct store_read r;
    int64_t offset = -1;
    CHECK_EQ(partition_find_time(l.p, 0, 17, &offset, &r), ST_OK);
    CHECK_EQ(offset, 17);
    store_read_release(&r);
    log_check_all(&l, 0, 25, SIZE);
    log_close(&l);
    struct index_marks marks;
    CHECK_EQ(index_load(AT_FDCWD, log_file(dir, 0, "idx"), 0, NULL, &marks), ST_OK);
    CHECK(marks.sealed);
    CHECK_EQ(marks.written.offset, 10);
    CHECK_EQ(marks.written.max_timestamp, 9);
}

/* ---- the disk says no ---- */

TEST(a_full_disk_refuses_the_append_and_the_next_one_works_when_there_is_room) {
    const char *dir = log_dir();
    struct log l = log_open(dir, MIB);
    log_append_many(&l, 5, SIZE);
    struct store_batch b[3];
    for (int i = 0; i < 3; i++)
        b[i] = fixture_batch(5 + i, 1, SIZE, 0);
    file_fail_at(FILE_WRITE, 1, ENOSPC);
    CHECK_EQ(partition_append(l.p, b, 3), ST_NO_SPACE);
    file_fail_at(FILE_WRITE, 0, 0);
    CHECK_EQ(partition_end(l.p), 5);
    CHECK_EQ(file_bytes(log_file(dir, 0, "log")), 5 * STORED);
    log_check_all(&l, 0, 5, SIZE);
    CHECK_EQ(partition_append(l.p, b, 3), ST_OK);
    for (int i = 0; i < 3; i++)
        fixture_batch_free(&b[i]);
    log_check_all(&l, 0, 8, SIZE);
    log_close(&l);
}

TEST(a_limit_of_the_system_on_file_size_acts_as_a_full_disk) {
    struct log l = log_open(log_dir(), 64 * MIB);
    struct rlimit old, small;
    log_append_many(&l, 100, 1000);
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 150000;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum status st = ST_OK;
    for (int i = 0; !st && i < 100; i++)
        st = log_append(&l, 1, 1000, 0);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_DFL);
    CHECK_EQ(st, ST_NO_SPACE);
    int64_t end = partition_end(l.p);
    CHECK_EQ(end, 150000 / (1000 + BATCH_HEADER_BYTES));
    log_append_many(&l, 10, 1000);
    log_check_all(&l, 0, end + 10, 1000);
    log_close(&l);
}

TEST(what_a_failed_write_left_and_nobody_could_cut_closes_the_partition) {
    const char *dir = log_dir();
    struct log l = log_open(dir, MIB);
    log_append_many(&l, 5, SIZE);
    file_fail_at(FILE_WRITE, 1, EIO);
    file_fail_at(FILE_CUT, 1, EIO);
    CHECK_EQ(log_append(&l, 1, SIZE, 0), ST_IO);
    file_fail_at(FILE_WRITE, 0, 0);
    file_fail_at(FILE_CUT, 0, 0);
    CHECK_EQ(log_append(&l, 1, SIZE, 0), ST_CORRUPT);
    log_check_all(&l, 0, 5, SIZE);
    log_close(&l);
    l = log_open(dir, MIB); /* the next start cuts it */
    int64_t cut = -1;
    CHECK_EQ(partition_open(l.p, &cut), ST_OK);
    CHECK(cut > 0);
    log_append_many(&l, 1, SIZE);
    log_check_all(&l, 0, 6, SIZE);
    log_close(&l);
}

/* fsyncgate: a second try may say yes although the pages were dropped. */
TEST(a_failed_sync_closes_the_partition_to_appends_until_the_next_start) {
    const char *dir = log_dir();
    struct log l = log_open(dir, MIB);
    log_append_many(&l, 5, SIZE);
    file_fail_at(FILE_SYNC, 1, EIO);
    CHECK_EQ(partition_sync(l.p), ST_IO);
    file_fail_at(FILE_SYNC, 0, 0);
    CHECK(partition_unsynced_bytes(l.p) > 0);
    CHECK_EQ(partition_sync(l.p), ST_IO);
    CHECK_EQ(log_append(&l, 1, SIZE, 0), ST_CORRUPT);
    log_check_all(&l, 0, 5, SIZE);
    log_close(&l);
    l = log_open(dir, MIB);
    log_append_many(&l, 1, SIZE);
    log_check_all(&l, 0, 6, SIZE);
    log_close(&l);
}

TEST(a_full_disk_when_a_new_segment_is_due_leaves_the_old_one_in_use) {
    const char *dir = log_dir();
    struct log l = log_open(dir, 10 * STORED);
    log_append_many(&l, 10, SIZE);
    file_fail_at(FILE_WRITE, 1, ENOSPC);
    CHECK_EQ(log_append(&l, 1, SIZE, 0), ST_NO_SPACE);
    CHECK_EQ(log_append(&l, 1, SIZE, 0), ST_NO_SPACE);
    file_fail_at(FILE_WRITE, 0, 0);
    log_append_many(&l, 15, SIZE);
    log_check_all(&l, 0, 25, SIZE);
    log_close(&l);
    l = log_open(dir, 10 * STORED);
    log_check_all(&l, 0, 25, SIZE);
    log_close(&l);
}

static bool serves_and_refuses_appends(const char *dir) {
    struct log l = log_open(dir, MIB);
    int64_t end = partition_open(l.p, NULL) ? -1 : partition_end(l.p);
    bool served = end == BATCHES && log_check(&l, BATCHES - 1, SIZE) == ST_OK;
    bool refused = log_append(&l, 1, SIZE, 0) == ST_READ_ONLY;
    log_close(&l);
    return served && refused;
}

TEST(a_read_only_log_file_is_served_and_refuses_appends) {
    const char *dir = log_dir();
    char path[256];
    mem_free(killed_log(dir));
    for (const char **name = (const char *[]){"", "lock", "catalog.db", "catalog.db-wal", "topics",
                                              "topics/1", "topics/1/1", "topics/1/1/0", NULL};
         *name; name++) {
        snprintf(path, sizeof path, "%s/%s", dir, *name);
        CHECK(chmod(path, 0777) == 0 || strstr(*name, "-wal"));
    }
    CHECK_EQ(chmod(log_file(dir, 0, "log"), 0444), 0);
    CHECK(as_nobody(serves_and_refuses_appends, dir));
}

TEST_OOM(recovery_survives_any_failed_allocation) {
    static char dir[64];
    if (!dir[0]) {
        mem_fail_at(0);
        strcpy(dir, log_dir());
        struct log l = log_open(dir, 10 * STORED);
        log_append_many(&l, 25, SIZE);
        log_close(&l);
        mem_fail_at(1);
    }
    unlink(log_file(dir, 0, "idx"));
    unlink(log_file(dir, 20, "idx"));
    struct store *s = NULL;
    struct store_error error;
    struct store_settings settings = fixture_settings(dir, 10 * STORED);
    struct store_read r = {0};
    struct topic *t = NULL;
    enum status st = store_open(&settings, &s, &error);
    if (!st) {
        t = store_topic_find(s, STR("kafka"), STR("t"));
        st = partition_read(topic_partition(t, 0), 3, 1, true, &r);
    }
    CHECK(st == ST_OK || st == ST_NO_MEMORY);
    CHECK(st || payload_is(r.runs[0].bytes.ptr, 3, SIZE));
    store_read_release(&r);
    topic_unref(t);
    store_close(s);
}
