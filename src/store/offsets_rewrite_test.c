/* The file of committed offsets written anew: what it keeps, crashes and failures on the way, and others at work beside it. */
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/file.h"
#include "store/log_fixture.h"
#include "store/offsets_fixture.h"

#define MIB          (1024 * 1024)
#define LIVE_COUNT   2000 /* of each owner: with all of them more than one piece of the table */
#define OWNERS_COUNT 4

static const char *const owners[OWNERS_COUNT] = {"a", "b", "owner-c", "owner-d"};

/* Offsets of all owners at one value, in one call each; false: refused. */
static bool set_all(struct box *b, int64_t value) {
    struct store_offset *o = mem_take_zeroed(LIVE_COUNT, sizeof *o);
    bool all = true;
    for (int i = 0; all && i < OWNERS_COUNT; i++) {
        for (int32_t p = 0; p < LIVE_COUNT; p++)
            o[p] = offset_of(owners[i], 1 + p % 3, p, value);
        all = !store_offsets_set(&b->s, o, LIVE_COUNT);
    }
    mem_free(o);
    return all;
}

static enum status check_value(void *user, const struct store_offset *o) {
    const int64_t *value = user;
    CHECK_EQ(o->offset, *value);
    return ST_OK;
}

static void check_all(struct box *b, int64_t value) {
    CHECK_EQ(store_offsets_each(&b->s, STR_NULL, check_value, &value), ST_OK);
    CHECK_EQ(b->s.offsets->table.count, OWNERS_COUNT * LIVE_COUNT);
}

static bool new_file_is_there(const struct box *b) {
    return faccessat(b->dir_fd, OFFSETS_FILE_NEW, F_OK, 0) == 0;
}

static void rewrite_now(struct box *b) {
    b->s.offsets->rewriting = true;
    offsets_rewrite(b->s.offsets);
}

TEST(a_file_that_is_mostly_out_of_date_is_written_anew_and_keeps_what_counts) {
    struct box b = box_open(log_dir());
    int times = 0;
    for (int64_t value = 1; value <= 40; value++) {
        uint64_t seed = value > 1 ? b.s.offsets->file.seed : 0;
        CHECK(set_all(&b, value));
        CHECK(file_bytes(b.path) <= MIB);
        times += seed != 0 && b.s.offsets->file.seed != seed;
    }
    CHECK(times > 10);
    CHECK(!new_file_is_there(&b));
    CHECK_EQ(store_offsets_sync(&b.s), ST_OK);
    check_all(&b, 40);
    struct box copy = box_copy(&b, file_bytes(b.path));
    CHECK_EQ(box_try(&copy), ST_OK);
    CHECK_EQ(store_offsets_cut_bytes(&copy.s), 0);
    check_all(&copy, 40);
    box_close(&copy);
    box_reopen(&b);
    check_all(&b, 40);
    box_close(&b);
}

TEST(what_is_live_is_not_written_anew_again_and_again) {
    struct box b = box_open(log_dir());
    struct store_offset *o = mem_take_zeroed(LIVE_COUNT, sizeof *o);
    for (int32_t call = 0; call < 40; call++) {
        for (int32_t p = 0; p < LIVE_COUNT; p++)
            o[p] = offset_of("a", 1, call * LIVE_COUNT + p, 1);
        CHECK_EQ(store_offsets_set(&b.s, o, LIVE_COUNT), ST_OK);
    }
    CHECK(b.s.offsets->file.end > MIB);
    CHECK_EQ(b.s.offsets->rewrite_bytes, 0);
    int fd = b.s.offsets->file.fd;
    uint64_t seed = b.s.offsets->file.seed;
    CHECK_EQ(box_set(&b, "a", 1, 0, 2), ST_OK);
    CHECK_EQ(b.s.offsets->file.fd, fd);
    CHECK_EQ(b.s.offsets->file.seed, seed);
    box_close(&b);
    mem_free(o);
}

TEST(any_bad_byte_in_a_file_written_anew_is_damage) {
    struct box b = box_open(log_dir());
    CHECK(set_all(&b, 1));
    rewrite_now(&b);
    struct box copy = box_copy(&b, file_bytes(b.path));
    for (int64_t position = 0; position < file_bytes(copy.path); position += 997) {
        file_flip(copy.path, position);
        CHECK_EQ(box_try(&copy), ST_CORRUPT);
        file_flip(copy.path, position);
    }
    CHECK_EQ(truncate(copy.path, file_bytes(copy.path) - 1), 0);
    CHECK_EQ(box_try(&copy), ST_CORRUPT);
    file_close(&copy.dir_fd);
    box_close(&b);
}

TEST(a_new_file_that_a_crash_left_unfinished_is_dropped_and_the_old_one_counts) {
    struct box b = box_open(log_dir());
    struct box other = box_open(log_dir());
    char path[160];
    box_set_durably(&b, "a", 1, 0, 5);
    box_set_durably(&other, "a", 1, 0, 6);
    int64_t whole = file_bytes(other.path);
    for (int64_t bytes = 0; bytes <= whole; bytes += 8) {
        struct box copy = box_copy(&b, file_bytes(b.path)), half = box_copy(&other, bytes);
        snprintf(path, sizeof path, "%s/%s", copy.dir, OFFSETS_FILE_NEW);
        CHECK_EQ(rename(half.path, path), 0);
        CHECK_EQ(box_try(&copy), ST_OK);
        CHECK_EQ(box_get(&copy, "a", 1, 0), 5);
        CHECK(!new_file_is_there(&copy));
        box_close(&copy);
        file_close(&half.dir_fd);
    }
    box_close(&other);
    box_close(&b);
}

/* Let the nth call of its kind fail while the file is written anew, and see that nothing is lost. False: it was not needed. */
static bool survives_failure_at(enum file_call call, int64_t nth, int error) {
    struct box b = box_open(log_dir());
    CHECK(set_all(&b, 1));
    CHECK(set_all(&b, 2));
    uint64_t seed = b.s.offsets->file.seed;
    file_fail_at(call, nth, error);
    rewrite_now(&b);
    file_fail_at(call, 0, 0);
    bool is_new = b.s.offsets->file.seed != seed, closed = b.s.offsets->closed;
    CHECK(is_new || b.s.offsets->rewrite_bytes > b.s.offsets->file.end);
    CHECK(!new_file_is_there(&b));
    check_all(&b, 2);
    CHECK_EQ(set_all(&b, 3), !closed);
    CHECK_EQ(store_offsets_sync(&b.s), closed ? ST_IO : ST_OK);
    box_reopen(&b);
    check_all(&b, closed ? 2 : 3);
    box_close(&b);
    return !is_new || closed;
}

TEST(a_full_disk_while_the_file_is_written_anew_costs_nothing) {
    int64_t nth = 1;
    while (survives_failure_at(FILE_WRITE, nth, ENOSPC))
        nth++;
    CHECK(nth > 2); /* two pieces and the header, at least */
}

TEST(a_sync_that_fails_while_the_file_is_written_anew_loses_nothing) {
    int64_t nth = 1;
    while (survives_failure_at(FILE_SYNC, nth, EIO))
        nth++;
    CHECK_EQ(
        nth,
        4); /* the new file twice, then its folder: after that nothing can be changed until the next start */
}

TEST_OOM(without_memory_the_file_stays_as_it_was) {
    struct box b = box_of(log_dir());
    enum status st = box_try(&b);
    if (!st) {
        st = box_set(&b, "a", 1, 0, 5);
        uint64_t seed = b.s.offsets->file.seed;
        if (!st) {
            rewrite_now(&b);
            CHECK(b.s.offsets->file.seed != seed || b.s.offsets->rewrite_bytes > 0);
            CHECK_EQ(b.s.offsets->table.count, 1);
            CHECK(!new_file_is_there(&b));
        }
        offsets_close(b.s.offsets);
    }
    file_close(&b.dir_fd);
}

TEST(entries_are_copied_to_another_file_and_damaged_ones_are_not) {
    struct box b = box_open(log_dir());
    struct offsets_file to;
    box_set_durably(&b, "a", 1, 0, 5);
    int64_t first = file_bytes(b.path);
    box_set_durably(&b, "b", 1, 0, 6);
    int64_t second = file_bytes(b.path);
    box_set_durably(&b, "c", 1, 0, 7);
    CHECK_EQ(offsets_file_make(b.dir_fd, 77, &to), ST_OK);
    CHECK_EQ(offsets_file_copy(&b.s.offsets->file, first, second, &to), ST_OK);
    CHECK_EQ(offsets_file_finish(&to), ST_OK);
    file_flip(b.path, second + OFFSETS_ENTRY_HEADER_BYTES + 3);
    CHECK_EQ(offsets_file_copy(&b.s.offsets->file, second, file_bytes(b.path), &to), ST_CORRUPT);
    CHECK_EQ(to.end, OFFSETS_HEADER_BYTES + second - first);
    file_close(&to.fd);
    offsets_close(b.s.offsets);
    CHECK_EQ(renameat(b.dir_fd, OFFSETS_FILE_NEW, b.dir_fd, OFFSETS_FILE), 0);
    CHECK_EQ(box_try(&b), ST_OK);
    CHECK_TEXT(box_list(&b, STR_NULL).text, "b/1/0=6 ");
    box_close(&b);
}

/* ---- threads ---- */

#define ROUNDS_COUNT 25

struct crew {
    struct box *b;
    _Atomic bool stop;
};

struct worker {
    struct crew *crew;
    int number;
    pthread_t thread;
};

/* All of its owner's offsets, again and again. */
static void *writer(void *arg) {
    struct worker *w = arg;
    struct store_offset *o = mem_take_zeroed(LIVE_COUNT, sizeof *o);
    for (int64_t round = 1; round <= ROUNDS_COUNT; round++) {
        for (int32_t p = 0; p < LIVE_COUNT; p++)
            o[p] = offset_of(owners[w->number], 1, p, round);
        CHECK_EQ(store_offsets_set(&w->crew->b->s, o, LIVE_COUNT), ST_OK);
        CHECK_EQ(store_offsets_sync(&w->crew->b->s), ST_OK);
    }
    mem_free(o);
    return NULL;
}

static void *remover(void *arg) {
    struct worker *w = arg;
    struct box *b = w->crew->b;
    while (!atomic_load(&w->crew->stop)) {
        int32_t count = 0;
        CHECK_EQ(box_set(b, "gone", 2, 0, 1), ST_OK);
        CHECK_EQ(box_set(b, "gone", 1, 1, 1), ST_OK);
        struct uuid id = topic_id(2);
        CHECK_EQ(store_offsets_remove(&b->s, STR_NULL, &id, -1, &count), ST_OK);
        CHECK_EQ(count, 1);
        CHECK_EQ(store_offsets_remove(&b->s, STR("gone"), NULL, -1, &count), ST_OK);
        CHECK_EQ(count, 1);
    }
    return NULL;
}

struct seen {
    int64_t value;
    int32_t count;
};

static enum status see(void *user, const struct store_offset *o) {
    struct seen *seen = user;
    if (seen->count == 0)
        seen->value = o->offset;
    CHECK_EQ(o->offset, seen->value);
    CHECK_EQ(o->partition, seen->count);
    seen->count++;
    return ST_OK;
}

/* All of a call, or none of it, and never an older one. */
static void *reader(void *arg) {
    struct worker *w = arg;
    int64_t before = 0;
    while (!atomic_load(&w->crew->stop)) {
        struct seen seen = {0};
        CHECK_EQ(store_offsets_each(&w->crew->b->s, str_of(owners[w->number]), see, &seen), ST_OK);
        CHECK(seen.count == 0 || seen.count == LIVE_COUNT);
        CHECK(seen.value >= before);
        before = seen.value;
        CHECK(box_get(w->crew->b, owners[w->number], 1, 5) >= (before > 0 ? before : -1));
    }
    return NULL;
}

TEST(threads_set_forget_read_and_rewrite_at_the_same_time_and_all_is_there_at_the_end) {
    struct box b = box_open(log_dir());
    struct crew crew = {.b = &b};
    struct worker workers[OWNERS_COUNT + 3];
    for (int i = 0; i < OWNERS_COUNT + 3; i++) {
        workers[i] = (struct worker){.crew = &crew, .number = i % OWNERS_COUNT};
        void *(*work)(void *) = i < OWNERS_COUNT ? writer : i == OWNERS_COUNT ? remover : reader;
        CHECK_EQ(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < OWNERS_COUNT + 3; i++) {
        if (i == OWNERS_COUNT)
            atomic_store(&crew.stop, true);
        CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
    }
    CHECK(b.s.offsets->file.end <
          (int64_t)OWNERS_COUNT * ROUNDS_COUNT * LIVE_COUNT * OFFSET_RECORD_BYTES / 2);
    struct box copy = box_copy(&b, file_bytes(b.path));
    CHECK_EQ(box_try(&copy), ST_OK);
    CHECK_EQ(store_offsets_cut_bytes(&copy.s), 0);
    check_all(&copy, ROUNDS_COUNT);
    box_close(&copy);
    check_all(&b, ROUNDS_COUNT);
    box_close(&b);
}
