/* Streams, topics by number, renaming and shrinking. */
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/file.h"
#include "store/log_fixture.h"
#include "store/store_impl.h"
#include "store/store_offsets.h"
#include "store/topic.h"

/* "id name;" of each stream. */
static void streams_are(struct store *s, const char *text) {
    struct stream_info *all;
    int32_t count;
    char seen[400] = "";
    CHECK_EQ(store_streams(s, &all, &count), ST_OK);
    for (int32_t i = 0; i < count; i++) {
        size_t len = strlen(seen);
        snprintf(seen + len, sizeof seen - len, "%u %s;", all[i].id, all[i].name);
    }
    mem_free(all);
    CHECK_TEXT(seen, text);
}

/* "stream/topic name;" of each topic. */
static void topics_are(struct store *s, uint32_t stream_id, const char *text) {
    struct topic **all;
    int32_t count;
    char seen[400] = "";
    CHECK_EQ(store_topics_in(s, stream_id, &all, &count), ST_OK);
    for (int32_t i = 0; i < count; i++) {
        const struct topic_info *info = topic_info(all[i]);
        size_t len = strlen(seen);
        snprintf(seen + len, sizeof seen - len, "%u/%u %s;", info->stream_id, info->topic_id, info->name);
        topic_unref(all[i]);
    }
    mem_free(all);
    CHECK_TEXT(seen, text);
}

/* ---- streams ---- */

TEST(a_stream_is_found_by_name_and_id_also_after_a_restart) {
    const char *dir = log_dir();
    struct stream_info made, found;
    struct store *s = store_in(dir);
    CHECK_EQ(store_stream_create(s, STR("other"), &made), ST_OK);
    CHECK_EQ(made.id, 2);
    CHECK_EQ(made.created_us, fixture_wall_ms * 1000);
    CHECK_TEXT(made.name, "other");
    CHECK_EQ(store_stream_create(s, STR("other"), &made), ST_EXISTS);
    CHECK_EQ(store_stream_ensure(s, STR("other")), ST_OK);
    for (int round = 0; round < 2; round++) {
        CHECK(store_stream_by_name(s, STR("other"), &found));
        CHECK_EQ(found.id, 2);
        CHECK_EQ(found.created_us, made.created_us);
        CHECK(store_stream_by_id(s, 1, &found));
        CHECK_TEXT(found.name, "kafka");
        CHECK(!store_stream_by_id(s, 3, &found));
        CHECK(!store_stream_by_name(s, STR("othe"), &found));
        CHECK(!store_stream_by_name(s, STR(""), &found));
        streams_are(s, "1 kafka;2 other;");
        store_close(s);
        s = store_in(dir);
    }
    store_close(s);
}

TEST(streams_have_a_limit_but_for_what_the_server_needs) {
    struct store *s = store_in(log_dir());
    struct stream *stream;
    for (uint32_t i = registry_streams_count(&s->registry); i < STORE_STREAMS_MAX;
         i++) { /* not through the disk */
        struct stream_info info = {.id = 100 + i};
        snprintf(info.name, sizeof info.name, "stream-%u", i);
        CHECK_EQ(registry_stream_add(&s->registry, &info, 1, &stream), ST_OK);
    }
    CHECK_EQ(store_stream_create(s, STR("one-more"), NULL), ST_POLICY);
    CHECK_EQ(store_stream_ensure(s, STR("needed")), ST_OK);
    registry_stream_remove(&s->registry, stream);
    CHECK_EQ(store_stream_create(s, STR("one-more"), NULL), ST_POLICY);
    CHECK_EQ(store_stream_delete(s, 1), ST_OK);
    CHECK_EQ(store_stream_create(s, STR("one-more"), NULL), ST_OK);
    store_close(s);
}

TEST(a_stream_of_a_name_that_can_not_be_is_refused) {
    char name[256];
    struct stream_info found;
    memset(name, 'n', sizeof name);
    struct store *s = store_in(log_dir());
    CHECK_EQ(store_stream_create(s, STR(""), NULL), ST_BAD_NAME);
    CHECK_EQ(store_stream_create(s, STR_NULL, NULL), ST_BAD_NAME);
    CHECK_EQ(store_stream_create(s, (struct str){name, 256}, NULL), ST_BAD_NAME);
    CHECK_EQ(store_stream_create(s, STR("a\0b"), NULL), ST_BAD_NAME);
    CHECK_EQ(store_stream_rename(s, 1, (struct str){name, 256}), ST_BAD_NAME);
    CHECK_EQ(store_stream_create(s, (struct str){name, 255}, NULL), ST_OK);
    CHECK(store_stream_by_name(s, (struct str){name, 255}, &found));
    CHECK_EQ(strlen(found.name), 255);
    store_close(s);
}

TEST(a_renamed_stream_keeps_id_and_topics) {
    const char *dir = log_dir();
    struct stream_info found;
    struct store *s = store_in(dir);
    topic_unref(fixture_topic(s, "a", 1));
    CHECK_EQ(store_stream_create(s, STR("other"), NULL), ST_OK);
    CHECK_EQ(store_stream_rename(s, 2, STR("kafka")), ST_EXISTS);
    CHECK_EQ(store_stream_rename(s, 3, STR("new")), ST_NOT_FOUND);
    CHECK_EQ(store_stream_rename(s, 1, STR("kafka")), ST_OK);
    CHECK_EQ(store_stream_rename(s, 1, STR("new")), ST_OK);
    CHECK_EQ(store_stream_rename(s, 2, STR("kafka")), ST_OK); /* it is free now */
    for (int round = 0; round < 2; round++) {
        streams_are(s, "1 new;2 kafka;");
        CHECK(store_stream_by_name(s, STR("new"), &found));
        CHECK_EQ(found.id, 1);
        CHECK(!store_stream_by_name(s, STR("other"), &found));
        struct topic *t = store_topic_find(s, STR("new"), STR("a"));
        CHECK(t != NULL);
        topic_unref(t);
        CHECK(store_topic_find(s, STR("kafka"), STR("a")) == NULL);
        store_close(s);
        s = store_in(dir);
    }
    store_close(s);
}

TEST(a_stream_with_topics_is_not_deleted_and_its_id_never_given_again) {
    const char *dir = log_dir();
    struct stream_info made;
    struct log l = log_open(dir, 1 << 20);
    log_append_many(&l, 1, 10);
    CHECK_EQ(store_stream_create(l.s, STR("other"), NULL), ST_OK);
    CHECK_EQ(store_stream_delete(l.s, 1), ST_IN_USE);
    CHECK_EQ(store_topic_delete(l.s, l.t), ST_OK);
    CHECK_EQ(store_stream_delete(l.s, 1), ST_OK);
    CHECK_EQ(store_stream_delete(l.s, 1), ST_NOT_FOUND);
    CHECK_EQ(store_stream_delete(l.s, 2), ST_OK);
    CHECK(!exists(dir, "topics/1"));
    streams_are(l.s, "");
    struct store_topic_new want = {.stream = STR("kafka"), .name = STR("t"), .partitions_count = 1};
    CHECK_EQ(store_topic_create(l.s, &want, NULL), ST_NOT_FOUND);
    log_close(&l);
    struct store *s = store_in(dir);
    streams_are(s, "3 kafka;");
    CHECK_EQ(store_stream_create(s, STR("other"), &made), ST_OK);
    CHECK_EQ(made.id, 4);
    struct topic *t = fixture_topic(s, "t", 1);
    CHECK_EQ(topic_info(t)->stream_id, 3);
    CHECK_EQ(store_stream_delete(s, 3), ST_IN_USE);
    topic_unref(t);
    store_close(s);
    s = store_in(dir);
    CHECK_EQ(store_stream_delete(s, 3), ST_IN_USE); /* also topics of an earlier start count */
    store_close(s);
}

/* ---- numbers ---- */

TEST(topics_are_found_and_listed_by_number) {
    struct store *s = store_in(log_dir());
    topic_unref(fixture_topic(s, "c", 1));
    CHECK_EQ(store_stream_create(s, STR("other"), NULL), ST_OK);
    struct store_topic_new want = {.stream = STR("other"), .name = STR("b"), .partitions_count = 0};
    CHECK_EQ(store_topic_create(s, &want, NULL), ST_OK);
    topic_unref(fixture_topic(s, "a", 1));
    topics_are(s, 1, "1/1 c;1/2 a;");
    topics_are(s, 2, "2/1 b;");
    topics_are(s, 3, "");
    topics_are(s, UINT32_MAX, "1/1 c;1/2 a;2/1 b;");
    struct topic *t = store_topic_by_number(s, 2, 1);
    CHECK_TEXT(topic_info(t)->name, "b");
    CHECK_EQ(store_topic_delete(s, t), ST_OK);
    topic_unref(t);
    CHECK(store_topic_by_number(s, 2, 1) == NULL);
    CHECK(store_topic_by_number(s, 1, 3) == NULL);
    t = store_topic_in(s, 1, STR("a"));
    CHECK_EQ(topic_info(t)->topic_id, 2);
    topic_unref(t);
    CHECK(store_topic_in(s, 2, STR("a")) == NULL);
    store_close(s);
}

TEST(a_topic_without_partitions_survives_a_restart_and_grows) {
    const char *dir = log_dir();
    struct store *s = store_in(dir);
    topic_unref(fixture_topic(s, "a", 0));
    store_close(s);
    s = store_in(dir);
    struct topic *t = store_topic_in(s, 1, STR("a"));
    CHECK_EQ(topic_partitions_count(t), 0);
    CHECK(topic_partition(t, 0) == NULL);
    CHECK_EQ(store_topic_shrink(s, t, 0), ST_INVALID);
    CHECK_EQ(store_topic_grow(s, t, 2), ST_OK);
    CHECK(topic_partition(t, 1) != NULL);
    topic_unref(t);
    store_close(s);
}

/* ---- renaming ---- */

TEST(a_renamed_topic_keeps_its_ids_and_data_and_the_old_text_stays_readable) {
    const char *dir = log_dir();
    struct log l = log_open(dir, 1 << 20);
    log_append_many(&l, 3, 10);
    const struct topic_info *before = topic_info(l.t);
    topic_unref(fixture_topic(l.s, "other", 1));
    CHECK_EQ(store_topic_rename(l.s, l.t, STR("other")), ST_EXISTS);
    CHECK_EQ(store_topic_rename(l.s, l.t, STR("")), ST_BAD_NAME);
    CHECK_EQ(store_topic_rename(l.s, l.t, STR("t")), ST_OK); /* as it is called */
    CHECK(topic_info(l.t) == before);
    CHECK_EQ(store_topic_rename(l.s, l.t, STR("new")), ST_OK);
    CHECK_TEXT(before->name, "t");
    CHECK_TEXT(topic_info(l.t)->name, "new");
    CHECK(uuid_equal(&before->id, &topic_info(l.t)->id));
    CHECK_EQ(topic_info(l.t)->created_us, before->created_us);
    CHECK(store_topic_find(l.s, STR("kafka"), STR("t")) == NULL);
    topic_unref(fixture_topic(l.s, "t", 1)); /* the name is free */
    struct uuid id = before->id;
    log_close(&l);
    struct store *s = store_in(dir);
    topics_are(s, 1, "1/1 new;1/2 other;1/3 t;");
    struct topic *t = store_topic_by_id(s, &id);
    CHECK_TEXT(topic_info(t)->name, "new");
    CHECK_EQ(partition_open(topic_partition(t, 0), NULL), ST_OK);
    CHECK_EQ(partition_end(topic_partition(t, 0)), 3);
    CHECK_EQ(store_topic_delete(s, t), ST_OK);
    CHECK_EQ(store_topic_rename(s, t, STR("x")), ST_NOT_FOUND);
    topic_unref(t);
    store_close(s);
}

TEST(names_kept_of_one_topic_have_a_limit) {
    struct store *s = store_in(log_dir());
    struct topic *t = fixture_topic(s, "a", 1);
    CHECK_EQ(store_topic_rename(s, t, STR("b")), ST_OK);
    CHECK_EQ(t->names_count, 2);
    t->names_count = TOPIC_NAMES_MAX;
    CHECK_EQ(store_topic_rename(s, t, STR("c")), ST_POLICY);
    CHECK_TEXT(topic_info(t)->name, "b");
    topic_unref(t);
    store_close(s);
}

TEST(what_all_topics_keep_has_a_limit) {
    const char *dir = log_dir();
    struct store *s = store_in(dir);
    struct topic *t = fixture_topic(s, "a", 3), *made = NULL;
    const struct store_topic_new want = {.stream = STR("kafka"), .name = STR("b"), .partitions_count = 2};
    CHECK_EQ(s->parts_count, 1 + 3);
    CHECK_EQ(store_topic_rename(s, t, STR("c")), ST_OK);
    CHECK_EQ(store_topic_shrink(s, t, 1), ST_OK);
    CHECK_EQ(store_topic_grow(s, t, 2), ST_OK);
    CHECK_EQ(s->parts_count, 2 + 2 + 2);
    s->parts_count = STORE_PARTS_MAX - 2;
    CHECK_EQ(store_topic_create(s, &want, &made), ST_POLICY);
    CHECK_EQ(store_topic_grow(s, t, 5), ST_POLICY);
    CHECK_EQ(store_topic_grow(s, t, 4), ST_OK);
    CHECK_EQ(store_topic_rename(s, t, STR("d")), ST_POLICY);
    CHECK_EQ(store_topic_shrink(s, t, 1), ST_OK);
    CHECK_EQ(store_topic_delete(s, t), ST_OK);
    CHECK_EQ(s->parts_count, STORE_PARTS_MAX - 8);
    CHECK_EQ(store_topic_create(s, &want, &made), ST_OK);
    topic_unref(t);
    topic_unref(made);
    store_close(s);
    s = store_in(dir);
    CHECK_EQ(s->parts_count, 1 + 2);
    store_close(s);
}

/* ---- shrinking ---- */

/* One batch into each partition. */
static void fill(struct topic *t) {
    for (int32_t i = 0; i < topic_partitions_count(t); i++) {
        struct log l = {.p = topic_partition(t, i)};
        CHECK_EQ(log_append(&l, 1, 100 + i, 0), ST_OK);
    }
}

static int64_t end_of(struct topic *t, int32_t partition) {
    CHECK_EQ(partition_open(topic_partition(t, partition), NULL), ST_OK);
    return partition_end(topic_partition(t, partition));
}

TEST(partitions_leave_from_the_end_with_their_files_and_those_who_hold_them_are_told) {
    const char *dir = log_dir();
    struct store *s = store_in(dir);
    struct topic *t = fixture_topic(s, "a", 4);
    struct store_read r;
    int32_t dropped;
    fill(t);
    struct log gone = {.p = topic_partition(t, 2)};
    CHECK_EQ(store_topic_shrink(s, t, 4), ST_INVALID);
    CHECK_EQ(store_topic_shrink(s, t, -1), ST_INVALID);
    CHECK_EQ(store_topic_shrink(s, t, 2), ST_OK);
    CHECK_EQ(topic_partitions_count(t), 2);
    CHECK(topic_partition(t, 2) == NULL);
    CHECK(exists(dir, "topics/1/1/1"));
    CHECK(!exists(dir, "topics/1/1/2"));
    CHECK(!exists(dir, "topics/1/1/3"));
    CHECK_EQ(partition_read(gone.p, 0, 1, true, &r), ST_NOT_FOUND);
    CHECK_EQ(partition_read(gone.p, 0, 1, false, &r), ST_NOT_FOUND);
    CHECK_EQ(log_append(&gone, 1, 10, 0), ST_NOT_FOUND);
    CHECK_EQ(partition_sync(gone.p), ST_NOT_FOUND);
    CHECK_EQ(partition_drop(gone.p, -1, &dropped), ST_NOT_FOUND);
    CHECK_EQ(partition_size_bytes(gone.p), 0);
    CHECK_EQ(store_topic_grow(s, t, 3), ST_OK);
    CHECK(topic_partition(t, 2) != gone.p);
    CHECK_EQ(end_of(t, 2), 0);
    CHECK_EQ(partition_read(gone.p, 0, 1, true, &r), ST_NOT_FOUND); /* it stays gone */
    fill(t);
    CHECK_EQ(end_of(t, 1), 2);
    topic_unref(t);
    store_close(s);
    s = store_in(dir);
    CHECK_EQ(store_leftovers_removed(s), 0);
    t = store_topic_in(s, 1, STR("a"));
    CHECK_EQ(topic_partitions_count(t), 3);
    CHECK_EQ(end_of(t, 1), 2);
    CHECK_EQ(end_of(t, 2), 1);
    CHECK_EQ(store_topic_delete(s, t), ST_OK);
    CHECK_EQ(store_topic_shrink(s, t, 1), ST_NOT_FOUND);
    topic_unref(t);
    store_close(s);
}

static enum status count_offset(void *user, const struct store_offset *o) {
    CHECK(o->partition < 2);
    ++*(int *)user;
    return ST_OK;
}

TEST(committed_offsets_go_with_their_partitions) {
    const char *dir = log_dir();
    int count = 0;
    struct store *s = store_in(dir);
    struct topic *t = fixture_topic(s, "a", 4);
    for (int32_t i = 0; i < 4; i++) {
        struct store_offset o = {
            .owner = STR("g"), .topic = topic_info(t)->id, .partition = i, .offset = 5, .leader_epoch = -1};
        CHECK_EQ(store_offsets_set(s, &o, 1), ST_OK);
    }
    CHECK_EQ(store_topic_shrink(s, t, 2), ST_OK);
    CHECK_EQ(store_topic_grow(s, t, 4), ST_OK);
    CHECK_EQ(store_offsets_each(s, STR("g"), count_offset, &count), ST_OK);
    CHECK_EQ(count, 2);
    CHECK_EQ(store_topic_delete(s, t), ST_OK);
    CHECK_EQ(store_offsets_each(s, STR("g"), count_offset, &count), ST_OK);
    CHECK_EQ(count, 2);
    topic_unref(t);
    store_close(s);
}

static void fill_four(struct log *l) {
    CHECK_EQ(store_topic_grow(l->s, l->t, 4), ST_OK);
    fill(l->t);
}

/* As a crash leaves it that comes between the catalog and the files. */
static const char shrunk_in_the_catalog_only[] = "UPDATE topics SET partitions_count = 2;"
                                                 "INSERT INTO leftovers VALUES (1, 1, 2), (1, 1, 3)";

TEST(files_of_partitions_whose_shrinking_was_cut_short_go_at_the_next_start) {
    const char *dir = log_dir();
    log_crash(dir, 1 << 20, fill_four);
    run_sql(dir, shrunk_in_the_catalog_only);
    struct store *s = store_in(dir);
    CHECK_EQ(store_leftovers_removed(s), 2);
    CHECK(exists(dir, "topics/1/1/1"));
    CHECK(!exists(dir, "topics/1/1/2"));
    CHECK(!exists(dir, "topics/1/1/3"));
    struct topic *t = store_topic_in(s, 1, STR("t"));
    CHECK_EQ(store_topic_grow(s, t, 4), ST_OK);
    CHECK_EQ(end_of(t, 1), 1);
    CHECK_EQ(end_of(t, 2), 0);
    fill(t);
    topic_unref(t);
    store_close(s);
    s = store_in(dir);
    CHECK_EQ(store_leftovers_removed(s), 0);
    t = store_topic_in(s, 1, STR("t"));
    CHECK_EQ(end_of(t, 3), 1);
    topic_unref(t);
    store_close(s);
}

/* What was removed is there again, as after a power cut. */
static void bring_back(const char *dir) {
    char path[256];
    path_in(dir, "topics/1/1/3", path);
    CHECK_EQ(file_make_folders(AT_FDCWD, path), ST_OK);
    path_in(dir, "topics/1/1/3/00000000000000000007.log", path);
    file_put(path, 0, "", 0);
}

TEST(a_topic_does_not_grow_over_files_that_could_not_be_removed_neither_at_once_nor_at_the_start) {
    for (int at_start = 0; at_start < 2; at_start++) {
        const char *dir = log_dir();
        struct log l;
        struct store_error error;
        struct store_settings settings = fixture_settings(dir, 1 << 20);
        log_crash(dir, 1 << 20, fill_four);
        if (at_start) {
            run_sql(dir, shrunk_in_the_catalog_only);
            file_fail_at(FILE_SYNC, 1, EIO); /* so that nobody can say whether they are gone */
            CHECK_EQ(store_open(&settings, &l.s, &error), ST_OK);
            CHECK_EQ(store_leftovers_removed(l.s), 0);
            l.t = store_topic_in(l.s, 1, STR("t"));
        } else {
            l = log_open(dir, 1 << 20);
            file_fail_at(FILE_SYNC, 1, EIO);
            CHECK_EQ(store_topic_shrink(l.s, l.t, 2), ST_OK);
        }
        bring_back(dir);
        CHECK_EQ(store_topic_grow(l.s, l.t, 4), ST_IO);
        CHECK_EQ(topic_partitions_count(l.t), 2);
        file_fail_at(FILE_SYNC, 0, 0);
        bring_back(dir);
        CHECK_EQ(store_topic_grow(l.s, l.t, 4), ST_OK);
        CHECK_EQ(end_of(l.t, 3), 0);
        fill(l.t);
        log_close(&l);
        l = log_open(dir, 1 << 20);
        CHECK_EQ(store_leftovers_removed(l.s), 0);
        CHECK_EQ(end_of(l.t, 3), 1); /* what was written since is nobody's left-over */
        log_close(&l);
    }
}

/* Grow, fill, shrink, and so on until killed; a byte into the pipe for each step. */
static void change_until_killed(const char *dir, int pipe_fd) {
    struct log l = log_open(dir, 1 << 20);
    for (;;) {
        CHECK_EQ(write(pipe_fd, "", 1), 1);
        CHECK_EQ(store_topic_grow(l.s, l.t, 4), ST_OK);
        CHECK_EQ(write(pipe_fd, "", 1), 1);
        fill(l.t);
        CHECK_EQ(write(pipe_fd, "", 1), 1);
        CHECK_EQ(store_topic_shrink(l.s, l.t, 1), ST_OK);
    }
}

TEST(a_kill_at_any_moment_leaves_the_partitions_of_before_or_after_and_no_files_of_others) {
    const char *dir = log_dir();
    for (int steps = 1; steps <= 24; steps++) {
        int ends[2];
        char byte, path[64];
        CHECK_EQ(pipe(ends), 0);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            change_until_killed(dir, ends[1]);
            _exit(1);
        }
        for (int i = 0; i < steps; i++)
            CHECK_EQ(read(ends[0], &byte, 1), 1);
        kill(child, SIGKILL);
        CHECK_EQ(waitpid(child, NULL, 0), child);
        close(ends[0]);
        close(ends[1]);

        struct log l = log_open(dir, 1 << 20);
        int32_t count = topic_partitions_count(l.t);
        CHECK(count == 1 || count == 4);
        for (int32_t i = 1; i < 4; i++) {
            snprintf(path, sizeof path, "topics/1/1/%d", i);
            CHECK(i < count ? end_of(l.t, i) <= 1 : !exists(dir, path));
        }
        if (count == 4)
            CHECK_EQ(store_topic_shrink(l.s, l.t, 1), ST_OK);
        log_close(&l);
    }
}

TEST(partitions_kept_of_one_topic_have_a_limit) {
    struct store *s = store_in(log_dir());
    struct topic *t = fixture_topic(s, "a", 3);
    CHECK_EQ(store_topic_shrink(s, t, 1), ST_OK);
    CHECK_EQ(t->retired_count, 2);
    CHECK_EQ(store_topic_grow(s, t, 3), ST_OK);
    t->retired_count = TOPIC_RETIRED_MAX - 1;
    CHECK_EQ(store_topic_shrink(s, t, 1), ST_POLICY);
    CHECK_EQ(topic_partitions_count(t), 3);
    CHECK_EQ(store_topic_shrink(s, t, 2), ST_OK);
    topic_unref(t);
    store_close(s);
}

/* ---- threads ---- */

static struct {
    struct store *s;
    struct topic *t;
    _Atomic bool done;
    _Atomic int bad, looks;
} race;

static void expect(bool good) {
    if (!good)
        atomic_fetch_add(&race.bad, 1);
}

static void *look_up(void *unused) {
    while (!atomic_load(&race.done)) {
        struct topic **all;
        struct stream_info *streams, stream;
        int32_t count;
        const struct topic_info *info = topic_info(race.t);
        expect(info->name[0] == 'n' && (int32_t)strlen(info->name) == info->name_str.len);
        struct topic *t = store_topic_by_number(race.s, 1, info->topic_id);
        expect(t == race.t);
        topic_unref(t);
        t = store_topic_in(race.s, 1, info->name_str);
        expect(!t || t == race.t); /* it may be called differently by now */
        topic_unref(t);
        expect(store_topics(race.s, STR("kafka"), &all, &count) == ST_OK && count == 2);
        for (int32_t i = 0; i < count; i++)
            topic_unref(all[i]);
        mem_free(all);
        expect(store_streams(race.s, &streams, &count) == ST_OK && count >= 1);
        mem_free(streams);
        expect(store_stream_by_id(race.s, 1, &stream) && strcmp(stream.name, "kafka") == 0);
        if (store_stream_by_name(race.s, STR("a"), &stream))
            expect(strcmp(stream.name, "a") == 0);
        atomic_fetch_add(&race.looks, 1);
    }
    return unused;
}

TEST(topics_and_streams_may_be_renamed_beside_those_who_look) {
    pthread_t threads[3];
    memset(&race, 0, sizeof race);
    race.s = store_in(log_dir());
    race.t = fixture_topic(race.s, "n", 1);
    topic_unref(fixture_topic(race.s, "other", 1));
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, look_up, NULL), 0);
    for (int i = 0; i < 100 || atomic_load(&race.looks) < 300; i++) {
        struct stream_info made;
        char name[32];
        snprintf(name, sizeof name, "n%.*s", i % 20, "abcdefghijklmnopqrstuvwxyz");
        CHECK_EQ(store_topic_rename(race.s, race.t, str_of(name)), ST_OK);
        CHECK_EQ(store_stream_create(race.s, STR("a"), &made), ST_OK);
        CHECK_EQ(store_stream_rename(race.s, made.id, STR("b")), ST_OK);
        CHECK_EQ(store_stream_delete(race.s, made.id), ST_OK);
    }
    atomic_store(&race.done, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(race.bad, 0);
    topic_unref(race.t);
    store_close(race.s);
}

/* Append to the last partition there is and read it, each as long as it lasts. */
static void *use_last(void *unused) {
    while (!atomic_load(&race.done)) {
        struct log l = {.p = topic_partition(race.t, 1)};
        if (!l.p) {
            sched_yield();
            continue;
        }
        for (enum status st = ST_OK; !st;) {
            struct store_read r;
            st = partition_read(l.p, partition_start(l.p), 1000, true, &r);
            expect(st == ST_OK || st == ST_NOT_FOUND);
            if (!st && r.runs_count > 0)
                expect(payload_is(r.runs[0].bytes.ptr, 0, 100));
            store_read_release(&r);
            if (unused && !st) {
                st = log_append(&l, 1, 100, 0);
                expect(st == ST_OK || st == ST_NOT_FOUND);
            }
            if (atomic_load(&race.done))
                break;
        }
        atomic_fetch_add(&race.looks, 1);
    }
    return NULL;
}

TEST(a_topic_may_shrink_and_grow_beside_its_readers_and_its_writer) {
    pthread_t threads[3];
    const char *dir = log_dir();
    memset(&race, 0, sizeof race);
    race.s = store_in(dir);
    race.t = fixture_topic(race.s, "a", 1);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, use_last, i == 0 ? &race : NULL), 0);
    for (int i = 0; i < 40 || atomic_load(&race.looks) < 60; i++) {
        CHECK_EQ(store_topic_grow(race.s, race.t, 3), ST_OK);
        while (i % 4 == 0 && partition_end(topic_partition(race.t, 1)) < 3)
            sched_yield();
        CHECK_EQ(store_topic_shrink(race.s, race.t, 1), ST_OK);
        CHECK(!exists(dir, "topics/1/1/1"));
    }
    atomic_store(&race.done, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(race.bad, 0);
    topic_unref(race.t);
    store_close(race.s);
}

/* ---- memory ---- */

TEST_OOM(streams_and_topics_are_as_before_after_any_failed_allocation) {
    static char dir[64];
    static struct store *s;
    static struct topic *t;
    struct stream_info made = {.id = 0}, *streams = NULL, found;
    struct topic **all = NULL;
    int32_t count = 0, topics_count = 0;
    if (!s) { /* the first round's failure is spent on this */
        strcpy(dir, log_dir());
        mem_fail_at(0);
        s = store_in(dir);
        t = fixture_topic(s, "t", 1);
        mem_fail_at(1);
    }
    enum status st = store_stream_create(s, STR("a"), &made);
    CHECK_EQ(store_stream_by_name(s, STR("a"), &found), !st);
    if (!st) {
        st = store_stream_rename(s, made.id, STR("b"));
        CHECK_EQ(store_stream_by_name(s, STR("b"), &found), !st);
        CHECK_EQ(store_stream_by_name(s, STR("a"), &found), st != ST_OK);
    }
    if (made.id > 0)
        CHECK_EQ(store_stream_delete(s, made.id), ST_OK);
    if (!st)
        st = store_streams(s, &streams, &count);
    if (!st)
        st = store_topics_in(s, 1, &all, &topics_count);
    if (!st)
        st = store_topic_rename(s, t, STR("u"));
    if (!st)
        st = store_topic_rename(s, t, STR("t"));
    struct topic *same = store_topic_in(s, 1, topic_info(t)->name_str);
    CHECK(same == t);
    topic_unref(same);
    if (!st)
        st = store_topic_grow(s, t, 3);
    CHECK_EQ(topic_partitions_count(t), st ? 1 : 3);
    if (!st)
        CHECK_EQ(store_topic_shrink(s, t, 1), ST_OK);
    CHECK(st == ST_OK || st == ST_NO_MEMORY);
    for (int32_t i = 0; i < topics_count; i++)
        topic_unref(all[i]);
    mem_free(all);
    mem_free(streams);
    if (mem_fail_pending()) { /* the last round */
        topic_unref(t);
        store_close(s);
    }
}
