/* Committed offsets: what is set, removed and kept, and the file after crashes, damage and full disks. */
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/le.h"
#include "base/mem.h"
#include "store/file.h"
#include "store/log_fixture.h"
#include "store/offsets_fixture.h"

/* ---- setting, reading, removing ---- */

TEST(an_offset_is_there_with_all_that_was_given_now_and_after_reopening) {
    struct box b = box_open(log_dir());
    struct arena a;
    struct store_offset o = offset_of("group", 3, 7, INT64_C(0x123456789abcd)), out;
    struct uuid id = topic_id(3);
    o.leader_epoch = 12;
    o.metadata = STR("from a client");
    CHECK_EQ(store_offsets_set(&b.s, &o, 1), ST_OK);
    for (int round = 0; round < 2; round++) {
        arena_init(&a, NULL, 0, 1 << 20);
        CHECK_EQ(store_offset_get(&b.s, STR("group"), &id, 7, &a, &out), ST_OK);
        CHECK(str_equal(out.owner, STR("group")));
        CHECK(str_equal(out.metadata, STR("from a client")));
        CHECK(uuid_equal(&out.topic, &id));
        CHECK_EQ(out.partition, 7);
        CHECK_EQ(out.offset, INT64_C(0x123456789abcd));
        CHECK_EQ(out.leader_epoch, 12);
        CHECK_EQ(out.committed_ms, INT64_C(0x123456789abcd) + 7);
        arena_release(&a);
        box_reopen(&b);
    }
    CHECK_EQ(box_get(&b, "group", 3, 8), -1);
    CHECK_EQ(box_get(&b, "group", 4, 7), -1);
    CHECK_EQ(box_get(&b, "groups", 3, 7), -1);
    CHECK_EQ(box_get(&b, "", 3, 7), -1);
    box_close(&b);
}

TEST(a_walk_goes_by_topic_and_partition_and_ends_where_its_function_says) {
    struct box b = box_open(log_dir());
    struct store_offset o[] = {offset_of("b", 2, 1, 21), offset_of("a", 1, 10, 110),
                               offset_of("b", 1, 300, 1300), offset_of("b", 1, 2, 12),
                               offset_of("b", 2, 0, 20)};
    CHECK_EQ(store_offsets_set(&b.s, o, 5), ST_OK);
    for (int round = 0; round < 2; round++) {
        CHECK_TEXT(box_list(&b, STR("b")).text, "b/1/2=12 b/1/300=1300 b/2/0=20 b/2/1=21 ");
        CHECK_TEXT(box_list(&b, STR("a")).text, "a/1/10=110 ");
        CHECK_TEXT(box_list(&b, STR("c")).text, "");
        CHECK_EQ(box_list(&b, STR_NULL).count, 5);
        box_reopen(&b);
    }
    struct listing l = {.count_max = 2};
    CHECK_EQ(store_offsets_each(&b.s, STR("b"), listing_add, &l), ST_TIMED_OUT);
    CHECK_TEXT(l.text, "b/1/2=12 b/1/300=1300 ");
    box_close(&b);
}

TEST(of_one_place_twice_in_a_call_the_last_counts) {
    struct box b = box_open(log_dir());
    struct store_offset o[] = {offset_of("a", 1, 0, 5), offset_of("a", 1, 0, 4), offset_of("a", 1, 1, 9)};
    CHECK_EQ(store_offsets_set(&b.s, o, 3), ST_OK);
    CHECK_TEXT(box_list(&b, STR_NULL).text, "a/1/0=4 a/1/1=9 ");
    box_reopen(&b);
    CHECK_TEXT(box_list(&b, STR_NULL).text, "a/1/0=4 a/1/1=9 ");
    box_close(&b);
}

static void set_some(struct box *b) {
    struct store_offset o[] = {offset_of("a", 1, 0, 10), offset_of("a", 1, 1, 11), offset_of("a", 1, 2, 12),
                               offset_of("a", 2, 0, 20), offset_of("b", 1, 1, 11), offset_of("b", 3, 0, 30)};
    CHECK_EQ(store_offsets_set(&b->s, o, COUNT_OF(o)), ST_OK);
}

TEST(one_offset_or_all_of_an_owner_or_of_a_topic_can_be_forgotten) {
    const struct {
        struct str owner;
        int topic;
        int32_t partition, count;
        const char *left;
    } cases[] = {
        {STR("a"), 1, 1, 1, "a/1/0=10 a/1/2=12 a/2/0=20 b/1/1=11 b/3/0=30 "},
        {STR("a"), 1, -1, 3, "a/2/0=20 b/1/1=11 b/3/0=30 "},
        {STR("a"), -1, -1, 4, "b/1/1=11 b/3/0=30 "},
        {STR_NULL, 1, -1, 4, "a/2/0=20 b/3/0=30 "},
        {STR_NULL, 1, 1, 2, "a/1/0=10 a/1/2=12 a/2/0=20 b/3/0=30 "},
        {STR("a"), 3, -1, 0, "a/1/0=10 a/1/1=11 a/1/2=12 a/2/0=20 b/1/1=11 b/3/0=30 "},
        {STR("c"), -1, -1, 0, "a/1/0=10 a/1/1=11 a/1/2=12 a/2/0=20 b/1/1=11 b/3/0=30 "},
        {STR(""), -1, -1, 0, "a/1/0=10 a/1/1=11 a/1/2=12 a/2/0=20 b/1/1=11 b/3/0=30 "},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct box b = box_open(log_dir());
        set_some(&b);
        int64_t before = file_bytes(b.path);
        CHECK_EQ(box_remove(&b, cases[i].owner, cases[i].topic, cases[i].partition), cases[i].count);
        CHECK_TEXT(box_list(&b, STR_NULL).text, cases[i].left);
        CHECK_EQ(file_bytes(b.path) > before, cases[i].count > 0);
        box_reopen(&b);
        CHECK_TEXT(box_list(&b, STR_NULL).text, cases[i].left);
        box_close(&b);
    }
}

TEST(what_was_forgotten_can_be_set_again) {
    struct box b = box_open(log_dir());
    set_some(&b);
    CHECK_EQ(box_remove(&b, STR("a"), -1, -1), 4);
    CHECK_EQ(box_set(&b, "a", 1, 1, 5), ST_OK);
    box_reopen(&b);
    CHECK_TEXT(box_list(&b, STR("a")).text, "a/1/1=5 ");
    box_close(&b);
}

TEST(partitions_from_one_on_are_forgotten_when_a_topic_shrinks) {
    struct box b = box_open(log_dir());
    set_some(&b);
    struct uuid id = topic_id(1);
    offsets_partitions_gone(b.s.offsets, &id, 1);
    CHECK_TEXT(box_list(&b, STR_NULL).text, "a/1/0=10 a/2/0=20 b/3/0=30 ");
    box_reopen(&b);
    CHECK_TEXT(box_list(&b, STR_NULL).text, "a/1/0=10 a/2/0=20 b/3/0=30 ");
    box_close(&b);
}

TEST(what_can_not_be_is_refused_and_changes_nothing) {
    struct box b = box_open(log_dir());
    char *text = mem_take_zeroed(STORE_METADATA_BYTES_MAX + 1, 1);
    struct store_offset o[2] = {offset_of("a", 1, 0, 1), offset_of("a", 1, 1, 1)};
    struct uuid id = topic_id(1);
    o[1].owner = (struct str){text, STORE_OWNER_BYTES_MAX + 1};
    CHECK_EQ(store_offsets_set(&b.s, o, 2), ST_INVALID);
    o[1].owner.len = 0;
    CHECK_EQ(store_offsets_set(&b.s, o, 2), ST_INVALID);
    o[1] = offset_of("a", 1, -1, 1);
    CHECK_EQ(store_offsets_set(&b.s, o, 2), ST_INVALID);
    o[1] = offset_of("a", 1, 1, 1);
    o[1].metadata = (struct str){text, STORE_METADATA_BYTES_MAX + 1};
    CHECK_EQ(store_offsets_set(&b.s, o, 2), ST_INVALID);
    CHECK_EQ(store_offsets_set(&b.s, o, -1), ST_INVALID);
    CHECK_EQ(store_offsets_set(&b.s, o, 0), ST_OK);
    CHECK_EQ(store_offsets_remove(&b.s, STR_NULL, NULL, -1, NULL), ST_INVALID);
    CHECK_EQ(store_offsets_remove(&b.s, STR("a"), NULL, 0, NULL), ST_INVALID);
    CHECK_EQ(store_offsets_remove(&b.s, STR("a"), &id, -2, NULL), ST_INVALID);
    CHECK_EQ(box_list(&b, STR_NULL).count, 0);
    CHECK_EQ(file_bytes(b.path), -1);
    o[1].metadata.len = STORE_METADATA_BYTES_MAX;
    o[0].owner = (struct str){text, STORE_OWNER_BYTES_MAX};
    CHECK_EQ(store_offsets_set(&b.s, o, 2), ST_OK);
    box_reopen(&b);
    CHECK_EQ(box_get(&b, "a", 1, 1), 1);
    CHECK_EQ(box_list(&b, STR_NULL).count, 2);
    box_close(&b);
    mem_free(text);
}

TEST(one_call_of_more_than_64_mib_is_refused) {
    struct box b = box_open(log_dir());
    const int32_t count = OFFSETS_ENTRY_BYTES_MAX / STORE_METADATA_BYTES_MAX + 1;
    char *text = mem_take_zeroed(STORE_METADATA_BYTES_MAX, 1);
    struct store_offset *o = mem_take_zeroed((size_t)count, sizeof *o);
    for (int32_t i = 0; i < count; i++) {
        o[i] = offset_of("a", 1, i, i);
        o[i].metadata = (struct str){text, STORE_METADATA_BYTES_MAX};
    }
    CHECK_EQ(store_offsets_set(&b.s, o, count), ST_TOO_BIG);
    CHECK_EQ(box_list(&b, STR_NULL).count, 0);
    box_close(&b);
    mem_free(o);
    mem_free(text);
}

TEST(memory_is_limited_and_what_is_there_can_still_move) {
    struct box b = box_open(log_dir());
    b.s.offsets->memory_max = 10000;
    int32_t count = 0;
    enum status st = ST_OK;
    while (!st && count < 1000) {
        st = box_set(&b, "a", 1, count, count);
        count += !st;
    }
    CHECK_EQ(st, ST_POLICY);
    CHECK(count > 50);
    CHECK_EQ(box_set(&b, "another", 1, 0, 1), ST_POLICY);
    CHECK(offset_table_owner(&b.s.offsets->table, STR("another")) == NULL);
    CHECK_EQ(box_set(&b, "a", 1, 3, 1000), ST_OK);
    CHECK_EQ(box_get(&b, "a", 1, 3), 1000);
    CHECK_EQ(box_remove(&b, STR("a"), 1, 0), 1);
    CHECK_EQ(box_set(&b, "a", 1, 2000, 1), ST_OK);
    box_close(&b);
}

/* ---- expiring ---- */

static int32_t expire(struct box *b, const struct store_offset *o, int32_t count, int64_t before_ms) {
    int32_t gone = -1;
    CHECK_EQ(store_offsets_expire(&b->s, o, count, before_ms, &gone), ST_OK);
    return gone;
}

/* The fixture commits at offset + 7 ms. */
TEST(of_the_offsets_that_are_named_those_go_that_were_committed_long_enough_ago) {
    struct box b = box_open(log_dir());
    struct store_offset o[] = {offset_of("a", 1, 0, 93), offset_of("a", 1, 1, 94), offset_of("a", 2, 0, 1),
                               offset_of("b", 1, 0, 1)};
    CHECK_EQ(store_offsets_set(&b.s, o, COUNT_OF(o)), ST_OK);
    CHECK_EQ(expire(&b, o, 2, 99), 0);
    CHECK_EQ(expire(&b, o, 2, 100), 1);
    const struct store_offset strangers[] = {offset_of("a", 1, 9, 0), offset_of("c", 1, 0, 0),
                                             offset_of("", 1, 0, 0)};
    CHECK_EQ(expire(&b, strangers, COUNT_OF(strangers), 1000), 0);
    for (int round = 0; round < 2; round++) {
        CHECK_TEXT(box_list(&b, STR("a")).text, "a/1/1=94 a/2/0=1 ");
        CHECK_EQ(box_list(&b, STR("b")).count, 1);
        box_reopen(&b);
    }
    box_close(&b);
}

TEST(an_offset_that_was_committed_again_does_not_expire) {
    struct box b = box_open(log_dir());
    struct store_offset seen[] = {offset_of("a", 1, 0, 10), offset_of("a", 1, 1, 10)};
    CHECK_EQ(store_offsets_set(&b.s, seen, 2), ST_OK);
    CHECK_EQ(box_set(&b, "a", 1, 1, 500), ST_OK); /* between the look and the removal */
    CHECK_EQ(expire(&b, seen, 2, 100), 1);
    CHECK_EQ(box_get(&b, "a", 1, 0), -1);
    CHECK_EQ(box_get(&b, "a", 1, 1), 500);
    box_close(&b);
}

TEST(the_owner_goes_with_its_last_offset_also_when_it_is_named_twice) {
    struct box b = box_open(log_dir());
    struct store_offset o[] = {offset_of("a", 1, 0, 1), offset_of("a", 1, 0, 1), offset_of("a", 1, 1, 1)};
    CHECK_EQ(store_offsets_set(&b.s, o, COUNT_OF(o)), ST_OK);
    CHECK_EQ(expire(&b, o, COUNT_OF(o), 1000), 2);
    for (int round = 0; round < 2; round++) {
        CHECK_EQ(box_list(&b, STR_NULL).count, 0);
        box_reopen(&b);
    }
    CHECK_EQ(expire(&b, o, COUNT_OF(o), 1000), 0);
    CHECK_EQ(expire(&b, NULL, 0, 1000), 0);
    box_close(&b);
}

/* ---- the file ---- */

TEST(an_entry_stands_in_the_file_as_it_is_written_down) {
    struct box b = box_of(log_dir());
    struct offsets_file f;
    struct offsets_entry e = {0};
    uint8_t got[256];
    size_t size;
    /* Two offsets of one owner, and a removal. */
    uint8_t expected[] = {
        /* the file: magic, version, seed, on stable storage up to, checksum */
        'I', 'G', 'K', 'O', 1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0,
        /* the entry: bytes, records, on stable storage up to, two checksums */
        136, 0, 0, 0, 3, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        /* kind, owner's and metadata's length, topic, partition, epoch, offset, time, owner, metadata */
        1, 0, 2, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 4, 0, 0, 0, 0xff, 0xff, 0xff,
        0xff, 0x39, 0x30, 0, 0, 0, 0, 0, 0, 0x40, 0x30, 0, 0, 0, 0, 0, 0, 'g', '1', 'm', 'e', 't',
        /* the same owner is not repeated */
        1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 5, 0, 0, 0, 0xff, 0xff, 0xff,
        0xff, 1, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
        /* a removal: kind, flags, owner's length, first and last partition, topic, owner; then up to a multiple of 8 */
        2, 3, 2, 0, 4, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 'g',
        '1', 0};
    struct store_offset o = offset_of("g1", 9, 4, 12345);
    struct offset_match m = {STR("g1"), &o.topic, 4, 5};
    o.metadata = STR("met");
    CHECK_EQ(offsets_file_make(b.dir_fd, 5, &f), ST_OK);
    CHECK_EQ(offsets_file_finish(&f), ST_OK);
    CHECK_EQ(offsets_entry_set(&e, &o), ST_OK);
    o = offset_of("g1", 9, 5, 1);
    CHECK_EQ(offsets_entry_set(&e, &o), ST_OK);
    CHECK_EQ(offsets_entry_remove(&e, &m), ST_OK);
    CHECK_EQ(offsets_file_append(&f, &e, f.end), ST_OK);
    CHECK_EQ(file_read(f.fd, got, sizeof got, 0, &size), ST_OK);
    le_set64(expected + 24, XXH3_64bits(expected, 24));
    le_set64(expected + 48, XXH3_64bits_withSeed(expected + 64, 136, 5 + 32));
    le_set64(expected + 56, XXH3_64bits_withSeed(expected + 32, 24, 5 + 32));
    CHECK_EQ(size, sizeof expected);
    CHECK_MEM(got, expected, sizeof expected);
    offsets_entry_release(&e);
    file_close(&f.fd);
    file_close(&b.dir_fd);
}

TEST(a_torn_end_is_cut_and_told_wherever_the_last_entry_breaks_off) {
    struct box b = box_open(log_dir());
    box_set_durably(&b, "a", 1, 0, 5);
    box_set_durably(&b, "b", 1, 0, 6);
    int64_t before = file_bytes(b.path);
    struct store_offset o[] = {offset_of("a", 1, 0, 7), offset_of("b", 1, 0, 8)};
    CHECK_EQ(store_offsets_set(&b.s, o, 2), ST_OK);
    int64_t after = file_bytes(b.path);
    for (int64_t bytes = before; bytes <= after; bytes++) {
        struct box copy = box_copy(&b, bytes);
        CHECK_EQ(box_try(&copy), ST_OK);
        CHECK_EQ(store_offsets_cut_bytes(&copy.s), bytes < after ? bytes - before : 0);
        CHECK_EQ(box_get(&copy, "a", 1, 0), bytes < after ? 5 : 7);
        CHECK_EQ(box_get(&copy, "b", 1, 0), bytes < after ? 6 : 8);
        CHECK_EQ(file_bytes(copy.path), bytes < after ? before : after);
        box_set_durably(&copy, "a", 1, 0, 9);
        box_reopen(&copy);
        CHECK_EQ(store_offsets_cut_bytes(&copy.s), 0);
        CHECK_EQ(box_get(&copy, "a", 1, 0), 9);
        box_close(&copy);
    }
    box_close(&b);
}

TEST(zeros_behind_the_end_are_a_torn_end) {
    struct box b = box_open(log_dir());
    box_set_durably(&b, "a", 1, 0, 5);
    struct box copy = box_copy(&b, file_bytes(b.path));
    CHECK_EQ(truncate(copy.path, file_bytes(b.path) + 5000), 0);
    CHECK_EQ(box_try(&copy), ST_OK);
    CHECK_EQ(store_offsets_cut_bytes(&copy.s), 5000);
    CHECK_EQ(box_get(&copy, "a", 1, 0), 5);
    box_close(&copy);
    box_close(&b);
}

static void check_damaged(struct box *b) {
    char *before = mem_take((size_t)file_bytes(b->path)), *after = mem_take((size_t)file_bytes(b->path));
    int fd;
    size_t got, got_after;
    CHECK_EQ(file_open(AT_FDCWD, b->path, O_RDONLY, &fd), ST_OK);
    CHECK_EQ(file_read(fd, before, (size_t)file_bytes(b->path), 0, &got), ST_OK);
    CHECK_EQ(box_try(b), ST_CORRUPT);
    CHECK(strstr(b->reason, OFFSETS_FILE) != NULL);
    CHECK_EQ(file_bytes(b->path), got);
    CHECK_EQ(file_read(fd, after, got, 0, &got_after), ST_OK);
    CHECK_MEM(before, after, got);
    file_close(&fd);
    mem_free(before);
    mem_free(after);
}

TEST(any_bad_byte_in_what_was_on_stable_storage_is_damage_and_no_file_is_changed) {
    struct box b = box_open(log_dir());
    box_set_durably(&b, "a", 1, 0, 5);
    box_set_durably(&b, "b", 2, 0, 6);
    int64_t synced = file_bytes(b.path);
    CHECK_EQ(box_set(&b, "c", 3, 0, 7), ST_OK); /* says that the two are on stable storage */
    struct box copy = box_copy(&b, file_bytes(b.path));
    for (int64_t position = 0; position < synced; position++) {
        file_flip(copy.path, position);
        check_damaged(&copy);
        file_flip(copy.path, position);
    }
    CHECK_EQ(box_try(&copy), ST_OK);
    CHECK_EQ(box_list(&copy, STR_NULL).count, 3);
    box_close(&copy);
    box_close(&b);
}

TEST(a_bad_byte_or_a_missing_end_after_an_orderly_stop_is_damage) {
    struct box b = box_open(log_dir());
    CHECK_EQ(box_set(&b, "a", 1, 0, 5), ST_OK);
    CHECK_EQ(box_set(&b, "b", 1, 0, 6), ST_OK);
    int64_t marked = file_bytes(b.path);
    offsets_close(b.s.offsets);
    CHECK_EQ(file_bytes(b.path), marked + OFFSETS_ENTRY_HEADER_BYTES);
    for (int64_t position = OFFSETS_HEADER_BYTES; position < marked; position++) {
        file_flip(b.path, position);
        check_damaged(&b);
        file_flip(b.path, position);
    }
    /* A start and a stop without a change leave the file as it is. */
    CHECK_EQ(box_try(&b), ST_OK);
    CHECK_EQ(store_offsets_cut_bytes(&b.s), 0);
    box_close(&b);
    CHECK_EQ(file_bytes(b.path), marked + OFFSETS_ENTRY_HEADER_BYTES);
}

/* What docs/STORE.md tells an operator to do. */
TEST(a_damaged_file_cut_at_the_byte_that_is_named_keeps_what_is_before_it) {
    struct box b = box_open(log_dir());
    char where[64];
    box_set_durably(&b, "a", 1, 0, 5);
    int64_t first = file_bytes(b.path);
    box_set_durably(&b, "a", 1, 0, 6);
    offsets_close(b.s.offsets);
    file_flip(b.path, first + 40);
    check_damaged(&b);
    snprintf(where, sizeof where, "at byte %lld of", (long long)first);
    CHECK(strstr(b.reason, where) != NULL);
    CHECK_EQ(truncate(b.path, first), 0);
    CHECK_EQ(box_try(&b), ST_OK);
    CHECK_EQ(box_get(&b, "a", 1, 0), 5);
    box_close(&b);
}

TEST(what_was_never_synced_may_come_through_a_power_cut_in_parts_and_is_cut) {
    struct box b = box_open(log_dir());
    box_set_durably(&b, "a", 1, 0, 5);
    int64_t synced = file_bytes(b.path);
    CHECK_EQ(box_set(&b, "a", 1, 0, 6), ST_OK);
    int64_t second = file_bytes(b.path);
    CHECK_EQ(box_set(&b, "a", 1, 0, 7), ST_OK);
    int64_t end = file_bytes(b.path);
    for (int64_t position = synced; position < second; position++) {
        struct box copy = box_copy(&b, end);
        file_flip(copy.path, position);
        CHECK_EQ(box_try(&copy), ST_OK);
        CHECK_EQ(store_offsets_cut_bytes(&copy.s), end - synced);
        CHECK_EQ(box_get(&copy, "a", 1, 0), 5);
        box_close(&copy);
    }
    box_close(&b);
}

TEST(what_a_start_has_read_is_on_stable_storage_from_then_on) {
    struct box b = box_open(log_dir());
    CHECK_EQ(box_set(&b, "a", 1, 0, 5), ST_OK);
    int64_t first = file_bytes(b.path);
    struct box copy = box_copy(&b, first);
    CHECK_EQ(box_try(&copy), ST_OK);
    CHECK_EQ(box_set(&copy, "a", 1, 0, 6), ST_OK);
    struct box second = box_copy(&copy, file_bytes(copy.path));
    file_flip(second.path, first - 1);
    check_damaged(&second);
    file_close(&second.dir_fd);
    box_close(&copy);
    box_close(&b);
}

/* Here they even are an entry of this file, from another place, which says that more was on stable storage. */
TEST(bytes_of_a_client_are_never_taken_for_an_entry) {
    struct box b = box_open(log_dir());
    uint8_t entry[256];
    size_t got;
    int fd;
    box_set_durably(&b, "a", 1, 0, 5);
    struct box earlier = box_copy(&b, file_bytes(b.path));
    for (int64_t i = 0; i < 3; i++)
        box_set_durably(&b, "a", 1, 0, i);
    int64_t last = file_bytes(b.path);
    box_set_durably(&b, "a", 1, 0, 9);
    CHECK_EQ(file_open(AT_FDCWD, b.path, O_RDONLY, &fd), ST_OK);
    CHECK_EQ(file_read(fd, entry, sizeof entry, last, &got), ST_OK);
    CHECK_EQ(le_get64(entry + 8), last);
    file_close(&fd);
    box_close(&b);
    CHECK_EQ(box_try(&earlier), ST_OK);
    int64_t before = file_bytes(earlier.path);
    struct store_offset o =
        offset_of("owner-12", 1, 0, 7); /* so that the metadata stands where an entry may */
    o.metadata = (struct str){(const char *)entry, (int32_t)got};
    CHECK_EQ(store_offsets_set(&earlier.s, &o, 1), ST_OK);
    int64_t after = file_bytes(earlier.path);
    CHECK(after < last);
    for (int64_t position = before; position < before + OFFSETS_ENTRY_HEADER_BYTES + 1; position++) {
        struct box copy = box_copy(&earlier, after);
        file_flip(copy.path, position);
        CHECK_EQ(box_try(&copy), ST_OK);
        CHECK_EQ(store_offsets_cut_bytes(&copy.s), after - before);
        CHECK_EQ(box_list(&copy, STR_NULL).count, 1);
        box_close(&copy);
    }
    box_close(&earlier);
}

TEST(a_file_of_a_newer_version_or_of_something_else_is_refused_and_says_so) {
    struct box b = box_open(log_dir());
    box_set_durably(&b, "a", 1, 0, 5);
    offsets_close(b.s.offsets);
    file_put(b.path, 4, "\2", 1);
    check_damaged(&b);
    CHECK(strstr(b.reason, "newer version") != NULL);
    file_put(b.path, 0, "text", 4);
    check_damaged(&b);
    CHECK(strstr(b.reason, "does not begin") != NULL);
    CHECK_EQ(truncate(b.path, 0), 0);
    CHECK_EQ(box_try(&b), ST_CORRUPT);
    file_close(&b.dir_fd);
}

/* An entry with a good checksum around these bytes. */
static enum status load_records(struct box *b, const uint8_t *bytes, size_t len, uint32_t count) {
    struct offsets_file f;
    uint8_t copy[512] = {0};
    memcpy(copy, bytes, len);
    struct offsets_entry e = {.bytes = copy, .len = len, .room = sizeof copy, .count = count};
    CHECK_EQ(offsets_file_make(b->dir_fd, 1, &f), ST_OK);
    CHECK_EQ(offsets_file_append(&f, &e, 0), ST_OK);
    CHECK_EQ(offsets_file_finish(&f), ST_OK);
    file_close(&f.fd);
    CHECK_EQ(renameat(b->dir_fd, OFFSETS_FILE_NEW, b->dir_fd, OFFSETS_FILE), 0);
    enum status st = box_try(b);
    offsets_close(b->s.offsets);
    return st;
}

TEST(records_that_are_cut_or_unknown_are_refused) {
    struct box b = box_of(log_dir());
    struct offsets_entry e = {0};
    struct store_offset o = offset_of("owner", 1, 2, 3);
    struct offset_match m = {STR("owner"), &o.topic, 0, 5};
    o.metadata = STR("metadata");
    CHECK_EQ(offsets_entry_set(&e, &o), ST_OK);
    size_t first = e.len;
    CHECK_EQ(offsets_entry_remove(&e, &m), ST_OK);
    size_t second = e.len;
    CHECK_EQ(offsets_entry_set(&e, &o), ST_OK);
    for (size_t len = 0; len <= e.len; len += 8) { /* what is less is filled up with zeros */
        uint32_t whole = len >= e.len ? 3 : len >= second ? 2 : len >= first;
        if (whole > 0)
            CHECK_EQ(load_records(&b, e.bytes, len, whole), ST_OK);
        CHECK_EQ(load_records(&b, e.bytes, len, whole + 1), ST_CORRUPT);
        CHECK(strstr(b.reason, "not understood") != NULL);
    }
    CHECK_EQ(load_records(&b, e.bytes, e.len, 3), ST_OK);
    e.bytes[0] = 3;
    CHECK_EQ(load_records(&b, e.bytes, e.len, 3), ST_CORRUPT);
    e.bytes[0] = 1;
    e.bytes[second] = 1;
    le_set(e.bytes + second + 2, 2, 0); /* no owner, and after a removal none to go on with */
    CHECK_EQ(load_records(&b, e.bytes, e.len, 3), ST_CORRUPT);
    le_set32(e.bytes + 24, UINT32_MAX); /* a partition less than 0 */
    CHECK_EQ(load_records(&b, e.bytes, first, 1), ST_CORRUPT);
    offsets_entry_release(&e);
    file_close(&b.dir_fd);
}

/* ---- full and failing disks ---- */

TEST(a_failed_write_leaves_nothing_and_the_next_is_tried_as_usual) {
    struct box b = box_open(log_dir());
    box_set_durably(&b, "a", 1, 0, 5);
    int64_t before = file_bytes(b.path);
    file_fail_at(FILE_WRITE, 1, ENOSPC);
    CHECK_EQ(box_set(&b, "a", 1, 0, 6), ST_NO_SPACE);
    CHECK_EQ(box_set(&b, "new", 1, 0, 6), ST_NO_SPACE);
    CHECK_EQ(store_offsets_remove(&b.s, STR("a"), NULL, -1, NULL), ST_NO_SPACE);
    file_fail_at(FILE_WRITE, 0, 0);
    CHECK_EQ(file_bytes(b.path), before);
    CHECK(offset_table_owner(&b.s.offsets->table, STR("new")) == NULL);
    CHECK_TEXT(box_list(&b, STR_NULL).text, "a/1/0=5 ");
    CHECK_EQ(box_set(&b, "a", 1, 0, 7), ST_OK);
    box_reopen(&b);
    CHECK_TEXT(box_list(&b, STR_NULL).text, "a/1/0=7 ");
    box_close(&b);
}

TEST(a_file_that_can_not_be_made_is_made_with_a_later_change) {
    struct box b = box_open(log_dir());
    file_fail_at(FILE_WRITE, 1, ENOSPC);
    CHECK_EQ(box_set(&b, "a", 1, 0, 6), ST_NO_SPACE);
    file_fail_at(FILE_WRITE, 0, 0);
    file_fail_at(FILE_SYNC, 1, EIO);
    CHECK_EQ(box_set(&b, "a", 1, 0, 6), ST_IO);
    file_fail_at(FILE_SYNC, 0, 0);
    CHECK_EQ(file_bytes(b.path), -1);
    CHECK_EQ(box_list(&b, STR_NULL).count, 0);
    box_set_durably(&b, "a", 1, 0, 7);
    box_reopen(&b);
    CHECK_EQ(box_get(&b, "a", 1, 0), 7);
    box_close(&b);
}

TEST(a_limit_of_the_system_on_file_size_acts_as_a_full_disk_for_offsets) {
    struct box b = box_open(log_dir());
    struct rlimit old, small;
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 10000;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum status st = ST_OK;
    int64_t set_last = -1;
    for (int64_t i = 0; !st && i < 1000; i++) {
        st = box_set(&b, "a", 1, 0, i);
        set_last = st ? set_last : i;
    }
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_DFL);
    CHECK_EQ(st, ST_NO_SPACE);
    CHECK(set_last > 10);
    CHECK_EQ(box_get(&b, "a", 1, 0), set_last);
    CHECK_EQ(box_set(&b, "b", 1, 0, 1), ST_OK);
    box_reopen(&b);
    CHECK_EQ(store_offsets_cut_bytes(&b.s), 0);
    CHECK_EQ(box_get(&b, "a", 1, 0), set_last);
    CHECK_EQ(box_get(&b, "b", 1, 0), 1);
    box_close(&b);
}

TEST(what_a_failed_write_left_and_nobody_could_cut_ends_changes_until_the_next_start) {
    struct box b = box_open(log_dir());
    box_set_durably(&b, "a", 1, 0, 5);
    file_fail_at(FILE_WRITE, 1, EIO);
    file_fail_at(FILE_CUT, 1, EIO);
    CHECK_EQ(box_set(&b, "a", 1, 0, 6), ST_IO);
    file_fail_at(FILE_WRITE, 0, 0);
    file_fail_at(FILE_CUT, 0, 0);
    CHECK_EQ(box_set(&b, "a", 1, 0, 6), ST_IO);
    CHECK_EQ(box_get(&b, "a", 1, 0), 5);
    box_reopen(&b);
    CHECK(store_offsets_cut_bytes(&b.s) > 0);
    CHECK_EQ(box_get(&b, "a", 1, 0), 5);
    CHECK_EQ(box_set(&b, "a", 1, 0, 6), ST_OK);
    box_close(&b);
}

TEST(after_a_failed_sync_nothing_can_be_changed_until_the_next_start) {
    struct box b = box_open(log_dir());
    box_set_durably(&b, "a", 1, 0, 5);
    CHECK_EQ(box_set(&b, "a", 1, 0, 6), ST_OK);
    file_fail_at(FILE_SYNC, 1, EIO);
    CHECK_EQ(store_offsets_sync(&b.s), ST_IO);
    file_fail_at(FILE_SYNC, 0, 0);
    CHECK_EQ(store_offsets_sync(&b.s), ST_IO);
    CHECK_EQ(box_set(&b, "a", 1, 0, 7), ST_IO);
    CHECK_EQ(box_set(&b, "b", 1, 0, 7), ST_IO);
    CHECK_EQ(store_offsets_remove(&b.s, STR("a"), NULL, -1, NULL), ST_IO);
    CHECK_TEXT(box_list(&b, STR_NULL).text, "a/1/0=6 ");
    box_reopen(&b);
    box_set_durably(&b, "a", 1, 0, 8);
    box_close(&b);
}

TEST(a_start_that_can_not_sync_what_it_has_read_is_refused) {
    struct box b = box_open(log_dir());
    CHECK_EQ(box_set(&b, "a", 1, 0, 5), ST_OK);
    offsets_close(b.s.offsets);
    file_fail_at(FILE_SYNC, 1, EIO);
    CHECK_EQ(box_try(&b), ST_IO);
    file_fail_at(FILE_SYNC, 0, 0);
    CHECK_EQ(box_try(&b), ST_OK);
    CHECK_EQ(box_get(&b, "a", 1, 0), 5);
    box_close(&b);
}

TEST(what_was_synced_needs_no_second_sync) {
    struct box b = box_open(log_dir());
    CHECK_EQ(store_offsets_sync(&b.s), ST_OK);
    box_set_durably(&b, "a", 1, 0, 5);
    file_fail_at(FILE_SYNC, 1, EIO);
    CHECK_EQ(store_offsets_sync(&b.s), ST_OK);
    file_fail_at(FILE_SYNC, 0, 0);
    box_reopen(&b);
    file_fail_at(FILE_SYNC, 1, EIO);
    CHECK_EQ(store_offsets_sync(&b.s), ST_OK);
    file_fail_at(FILE_SYNC, 0, 0);
    box_close(&b);
}

TEST_OOM(without_memory_a_call_changes_nothing) {
    struct box b = box_of(log_dir());
    struct store_offset o[] = {offset_of("a", 1, 0, 5), offset_of("b", 1, 0, 6), offset_of("b", 1, 1, 6)};
    enum status st = box_try(&b);
    if (!st) {
        st = store_offsets_set(&b.s, o, 3);
        CHECK_EQ(box_list(&b, STR_NULL).count, st ? 0 : 3);
        CHECK_EQ(HASH_COUNT(b.s.offsets->table.owners), st ? 0 : 2);
        if (!st) {
            st = store_offsets_remove(&b.s, STR("b"), NULL, -1, NULL);
            CHECK_EQ(box_list(&b, STR_NULL).count, st ? 3 : 1);
        }
        offsets_close(b.s.offsets);
    }
    if (!st) {
        st = box_try(&b);
        if (!st)
            CHECK_TEXT(box_list(&b, STR_NULL).text, "a/1/0=5 ");
        offsets_close(b.s.offsets);
    }
    CHECK(st == ST_OK || st == ST_NO_MEMORY);
    file_close(&b.dir_fd);
}

/* ---- topics that go ---- */

static int list_store(struct store *s) {
    struct listing l = {.count_max = -1};
    CHECK_EQ(store_offsets_each(s, STR_NULL, listing_add, &l), ST_OK);
    return l.count;
}

TEST(offsets_go_with_their_topic_and_with_partitions_that_are_dropped) {
    struct log l = log_open(log_dir(), 1 << 20);
    CHECK_EQ(store_topic_grow(l.s, l.t, 3), ST_OK);
    struct store_offset o[] = {offset_of("a", 1, 0, 10), offset_of("a", 1, 1, 11), offset_of("b", 1, 2, 12)};
    for (size_t i = 0; i < COUNT_OF(o); i++)
        o[i].topic = topic_info(l.t)->id;
    CHECK_EQ(store_offsets_set(l.s, o, 3), ST_OK);
    const char *dir = l.dir;
    log_close(&l);
    l = log_open(dir, 1 << 20);
    CHECK_EQ(list_store(l.s), 3);
    CHECK_EQ(store_topic_shrink(l.s, l.t, 1), ST_OK);
    CHECK_EQ(list_store(l.s), 1);
    CHECK_EQ(store_topic_delete(l.s, l.t), ST_OK);
    CHECK_EQ(list_store(l.s), 0);
    log_close(&l);
}

TEST(offsets_of_topics_and_partitions_that_are_not_there_are_forgotten_at_the_start) {
    struct log l = log_open(log_dir(), 1 << 20);
    struct store_offset o[] = {offset_of("a", 1, 0, 10), offset_of("a", 1, 1, 11), offset_of("b", 1, 0, 12),
                               offset_of("b", 7, 0, 12)};
    o[0].topic = o[1].topic = topic_info(l.t)->id;
    CHECK_EQ(store_offsets_set(l.s, o, 4), ST_OK);
    CHECK_EQ(list_store(l.s), 4);
    const char *dir = l.dir;
    log_close(&l);
    l = log_open(dir, 1 << 20);
    CHECK_EQ(list_store(l.s), 1);
    log_close(&l);
}

TEST(a_topic_can_go_although_the_disk_is_full_and_its_offsets_go_too) {
    struct box b = box_open(log_dir());
    set_some(&b);
    struct uuid id = topic_id(1);
    file_fail_at(FILE_WRITE, 1, ENOSPC);
    offsets_partitions_gone(b.s.offsets, &id, 0);
    file_fail_at(FILE_WRITE, 0, 0);
    CHECK_TEXT(box_list(&b, STR_NULL).text, "a/2/0=20 b/3/0=30 ");
    box_close(&b);
}
