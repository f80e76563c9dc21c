/* The data folder, its lock, the catalog, and topics coming and going. */
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/batch_header.h"
#include "store/file.h"
#include "store/log_fixture.h"

#define MIB (1024 * 1024)

static enum status try_open(const char *dir, struct store_error *error) {
    struct store *s = NULL;
    struct store_settings settings = fixture_settings(dir, MIB);
    memset(error, 0, sizeof *error);
    enum status st = store_open(&settings, &s, error);
    store_close(s);
    return st;
}

/* ---- opening ---- */

static enum status set_all(struct store *s, struct topic *t, const struct store_setting *items,
                           int32_t count) {
    const struct store_topic_settings next = {items, count, topic_settings_version(t)};
    return store_topic_set(s, t, &next);
}

TEST(a_missing_data_folder_is_made_with_those_above_it) {
    char dir[256];
    path_in(log_dir(), "a/b/c", dir);
    store_close(store_in(dir));
    CHECK(exists(dir, "catalog.db"));
}

TEST(a_second_opening_of_the_folder_is_refused_and_names_folder_and_process) {
    const char *dir = log_dir();
    struct store_error error;
    struct store *s = store_in(dir);
    char process[64];
    CHECK_EQ(try_open(dir, &error), ST_IN_USE);
    snprintf(process, sizeof process, "process %d)", (int)getpid());
    CHECK(strstr(error.text, dir) != NULL);
    CHECK(strstr(error.text, process) != NULL);
    store_close(s);
    CHECK_EQ(try_open(dir, &error), ST_OK);
}

static void do_nothing(struct log *l) {
    (void)l;
}

TEST(a_killed_process_leaves_no_lock) {
    const char *dir = log_dir();
    struct store_error error;
    log_crash(dir, MIB, do_nothing);
    CHECK_EQ(try_open(dir, &error), ST_OK);
}

static bool is_refused_as_read_only(const char *dir) {
    struct store *s = NULL;
    struct store_error error = {""};
    struct store_settings settings = fixture_settings(dir, MIB);
    return store_open(&settings, &s, &error) == ST_READ_ONLY && strstr(error.text, dir) != NULL &&
           strstr(error.text, "can't be written") != NULL;
}

TEST(a_folder_that_can_not_be_written_is_refused_with_its_name) {
    const char *dir = log_dir();
    CHECK_EQ(chmod(dir, 0555), 0);
    CHECK(as_nobody(is_refused_as_read_only, dir));
    struct store_error error;
    CHECK_EQ(try_open("/proc/no-data-here", &error), ST_IO);
    CHECK(strstr(error.text, "/proc/no-data-here") != NULL);
}

TEST(a_full_disk_at_the_start_is_said_so) {
    struct store_error error;
    const char *dir = log_dir();
    file_fail_at(FILE_WRITE, 1, ENOSPC);
    CHECK_EQ(try_open(dir, &error), ST_NO_SPACE);
    file_fail_at(FILE_WRITE, 0, 0);
    CHECK(strstr(error.text, "full") != NULL);
    CHECK_EQ(try_open(dir, &error), ST_OK);
}

TEST(a_full_disk_refuses_a_new_topic_and_forgets_it_and_later_it_can_be_made) {
    const char *dir = log_dir();
    struct rlimit old, small;
    struct store *s = store_in(dir);
    struct topic *t = NULL;
    char name[250];
    memset(name, 'n', sizeof name);
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 200000;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum status st = ST_OK;
    int created = 0;
    while (!st && created < 200) {
        name[0] = (char)('A' + created / 26);
        name[1] = (char)('a' + created % 26);
        struct store_topic_new want = {
            .stream = STR("kafka"), .name = {name, sizeof name - 1}, .partitions_count = 1};
        st = store_topic_create(s, &want, NULL);
        created += !st;
    }
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_DFL);
    CHECK_EQ(st, ST_NO_SPACE);
    CHECK(created > 0);
    CHECK(store_topic_find(s, STR("kafka"), (struct str){name, sizeof name - 1}) == NULL);
    struct store_topic_new again = {
        .stream = STR("kafka"), .name = {name, sizeof name - 1}, .partitions_count = 1};
    CHECK_EQ(store_topic_create(s, &again, &t), ST_OK);
    topic_unref(t);
    store_close(s);
    s = store_in(dir);
    struct topic **all;
    int32_t count;
    CHECK_EQ(store_topics(s, STR("kafka"), &all, &count), ST_OK);
    CHECK_EQ(count, created + 1);
    for (int32_t i = 0; i < count; i++)
        topic_unref(all[i]);
    mem_free(all);
    store_close(s);
}

TEST(what_is_no_catalog_is_refused_as_damaged) {
    struct store_error error;
    const char *dir = log_dir();
    char path[256], garbage[8192];
    memset(garbage, 'x', sizeof garbage);
    path_in(dir, "catalog.db", path);
    file_put(path, 0, garbage, sizeof garbage);
    CHECK_EQ(try_open(dir, &error), ST_CORRUPT);
    CHECK(strstr(error.text, path) != NULL);
    unlink(path);
    run_sql(dir, "CREATE TABLE other (x INTEGER)");
    CHECK_EQ(try_open(dir, &error), ST_CORRUPT);
    CHECK(strstr(error.text, "not a catalog") != NULL);
}

TEST(a_catalog_of_a_newer_version_is_refused) {
    struct store_error error;
    const char *dir = log_dir();
    store_close(store_in(dir));
    run_sql(dir, "PRAGMA user_version = 4");
    CHECK_EQ(try_open(dir, &error), ST_CORRUPT);
    CHECK(strstr(error.text, "newer version") != NULL);
}

TEST(a_damaged_page_of_the_catalog_is_found_at_the_start) {
    struct store_error error;
    const char *dir = log_dir();
    char path[256], garbage[4096];
    struct store *s = store_in(dir);
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "topic-%d", i);
        topic_unref(fixture_topic(s, name, 1));
    }
    store_close(s);
    path_in(dir, "catalog.db", path);
    int64_t pages = file_bytes(path) / 4096;
    CHECK(pages >= 5);
    memset(garbage, 0x5a, sizeof garbage);
    file_put(path, (pages - 1) * 4096, garbage, sizeof garbage);
    file_put(path, (pages - 2) * 4096, garbage, sizeof garbage);
    CHECK_EQ(try_open(dir, &error), ST_CORRUPT);
    CHECK(strstr(error.text, path) != NULL);
}

TEST(data_without_a_catalog_is_refused_instead_of_being_hidden) {
    struct store_error error;
    const char *dir = log_dir();
    char path[256];
    struct log l = log_open(dir, MIB);
    log_append_many(&l, 1, 10);
    log_close(&l);
    path_in(dir, "catalog.db", path);
    unlink(path);
    CHECK_EQ(try_open(dir, &error), ST_CORRUPT);
    CHECK(strstr(error.text, "catalog.db is missing") != NULL);
    CHECK(!exists(dir, "catalog.db"));
}

TEST(a_value_is_kept_over_a_restart) {
    const char *dir = log_dir();
    char *value = NULL;
    struct store *s = store_in(dir);
    CHECK_EQ(store_value_get(s, "cluster.id", &value), ST_OK);
    CHECK(value == NULL);
    CHECK_EQ(store_value_set(s, "cluster.id", "first"), ST_OK);
    CHECK_EQ(store_value_set(s, "cluster.id", "second"), ST_OK);
    store_close(s);
    s = store_in(dir);
    CHECK_EQ(store_value_get(s, "cluster.id", &value), ST_OK);
    CHECK_TEXT(value, "second");
    mem_free(value);
    store_close(s);
}

/* ---- topics ---- */

TEST(a_topic_survives_a_restart_with_its_id_partitions_and_settings) {
    const char *dir = log_dir();
    struct store *s = store_in(dir);
    struct store_setting settings[] = {{(char *)"retention.ms", (char *)"1000"}, {(char *)"b", (char *)""}};
    struct store_topic_new want = {.stream = STR("kafka"),
                                   .name = STR("orders"),
                                   .partitions_count = 3,
                                   .settings = settings,
                                   .settings_count = 2,
                                   .cluster = {{1, 2, 3}}};
    struct topic *t;
    CHECK_EQ(store_topic_create(s, &want, &t), ST_OK);
    struct uuid id = topic_info(t)->id;
    CHECK(!uuid_is_zero(&id));
    topic_unref(t);
    store_close(s);
    s = store_in(dir);
    t = store_topic_by_id(s, &id);
    CHECK(t != NULL);
    CHECK_TEXT(topic_info(t)->name, "orders");
    CHECK_EQ(topic_partitions_count(t), 3);
    CHECK(topic_partition(t, 2) != NULL);
    CHECK(topic_partition(t, 3) == NULL);
    CHECK(topic_partition(t, -1) == NULL);
    char *value = topic_setting(t, "retention.ms");
    CHECK_TEXT(value, "1000");
    mem_free(value);
    CHECK(topic_setting(t, "none") == NULL);
    uint64_t version = topic_settings_version(t);
    CHECK_EQ(set_all(s, t, settings + 1, 1), ST_OK);
    const struct store_topic_settings late = {settings, 2, version};
    CHECK_EQ(store_topic_set(s, t, &late), ST_AGAIN); /* somebody was faster */
    CHECK_EQ(store_topic_grow(s, t, 3), ST_INVALID);
    CHECK_EQ(store_topic_grow(s, t, 5), ST_OK);
    CHECK_EQ(topic_partitions_count(t), 5);
    topic_unref(t);
    store_close(s);
    s = store_in(dir);
    t = store_topic_find(s, STR("kafka"), STR("orders"));
    CHECK(uuid_equal(&topic_info(t)->id, &id));
    CHECK_EQ(topic_partitions_count(t), 5);
    CHECK(topic_setting(t, "retention.ms") == NULL);
    value = topic_setting(t, "b");
    CHECK_TEXT(value, "");
    mem_free(value);
    topic_unref(t);
    store_close(s);
}

TEST(creating_what_exists_or_can_not_be_is_refused) {
    struct store *s = store_in(log_dir());
    struct topic *t = fixture_topic(s, "a", 1), *other = NULL;
    struct store_topic_new want = {.stream = STR("kafka"), .name = STR("a"), .partitions_count = 1};
    CHECK_EQ(store_topic_create(s, &want, &other), ST_EXISTS);
    want.stream = STR("nowhere");
    CHECK_EQ(store_topic_create(s, &want, &other), ST_NOT_FOUND);
    want.stream = STR("kafka");
    want.name = STR("");
    CHECK_EQ(store_topic_create(s, &want, &other), ST_BAD_NAME);
    want.name = STR("b");
    want.partitions_count = -1;
    CHECK_EQ(store_topic_create(s, &want, &other), ST_INVALID);
    CHECK(store_topic_find(s, STR("kafka"), STR("b")) == NULL);
    CHECK(store_topic_find(s, STR("nowhere"), STR("a")) == NULL);
    topic_unref(t);
    store_close(s);
}

TEST(topics_are_listed_by_name_and_by_stream) {
    struct store *s = store_in(log_dir());
    struct topic **all;
    int32_t count;
    CHECK_EQ(store_topics(s, STR("kafka"), &all, &count), ST_OK);
    CHECK_EQ(count, 0);
    mem_free(all);
    topic_unref(fixture_topic(s, "b", 1));
    topic_unref(fixture_topic(s, "c", 1));
    topic_unref(fixture_topic(s, "a", 1));
    CHECK_EQ(store_stream_ensure(s, STR("other")), ST_OK);
    struct store_topic_new want = {.stream = STR("other"), .name = STR("a"), .partitions_count = 1};
    CHECK_EQ(store_topic_create(s, &want, NULL), ST_OK);
    CHECK_EQ(store_topics(s, STR("kafka"), &all, &count), ST_OK);
    CHECK_EQ(count, 3);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(topic_info(all[i])->name[0], 'a' + i);
        topic_unref(all[i]);
    }
    mem_free(all);
    store_close(s);
}

TEST(a_deleted_topic_is_gone_for_all_who_hold_it_and_so_are_its_files) {
    const char *dir = log_dir();
    struct log l = log_open(dir, MIB);
    struct store_read r;
    int64_t offset;
    int32_t dropped;
    log_append_many(&l, 3, 10);
    struct uuid id = topic_info(l.t)->id;
    CHECK_EQ(store_topic_delete(l.s, l.t), ST_OK);
    CHECK(topic_deleted(l.t));
    CHECK(!exists(dir, "topics/1/1"));
    CHECK(store_topic_find(l.s, STR("kafka"), STR("t")) == NULL);
    CHECK(store_topic_by_id(l.s, &id) == NULL);
    CHECK_EQ(partition_read(l.p, 0, 1, true, &r), ST_NOT_FOUND);
    CHECK_EQ(partition_find_time(l.p, 0, 0, &offset, &r), ST_NOT_FOUND);
    CHECK_EQ(log_append(&l, 1, 10, 0), ST_NOT_FOUND);
    CHECK_EQ(partition_sync(l.p), ST_NOT_FOUND);
    CHECK_EQ(partition_open(l.p, NULL), ST_NOT_FOUND);
    CHECK_EQ(partition_retain(l.p, &(struct store_retention){-1, -1}, 0, &dropped), ST_NOT_FOUND);
    CHECK_EQ(store_topic_delete(l.s, l.t), ST_NOT_FOUND);
    CHECK_EQ(store_topic_grow(l.s, l.t, 9), ST_NOT_FOUND);
    CHECK_EQ(set_all(l.s, l.t, NULL, 0), ST_NOT_FOUND);
    log_close(&l);
}

TEST(a_recreated_topic_is_another_and_empty) {
    const char *dir = log_dir();
    struct log l = log_open(dir, MIB);
    log_append_many(&l, 3, 10);
    struct topic_info before = *topic_info(l.t);
    CHECK_EQ(store_topic_delete(l.s, l.t), ST_OK);
    log_close(&l);
    for (int round = 0; round < 2; round++) {
        l = log_open(dir, MIB);
        CHECK(!uuid_equal(&topic_info(l.t)->id, &before.id));
        CHECK_EQ(topic_info(l.t)->topic_id, 2); /* numbers are never given twice */
        CHECK_EQ(partition_open(l.p, NULL), ST_OK);
        CHECK_EQ(partition_end(l.p), round);
        log_append_many(&l, 1, 10);
        log_close(&l);
    }
}

static void delete_all_but_files(struct log *l) {
    log_append_many(l, 3, 10);
}

TEST(files_of_a_topic_whose_deletion_was_cut_short_go_at_the_next_start) {
    const char *dir = log_dir();
    char stray[256];
    log_crash(dir, MIB, delete_all_but_files);
    run_sql(dir, "DELETE FROM topics; INSERT INTO leftovers VALUES (1, 1, -1)");
    path_in(dir, "topics/1/77", stray);
    CHECK_EQ(mkdir(stray, 0700), 0); /* nobody has deleted this: not ours to remove */
    struct store *s = store_in(dir);
    CHECK_EQ(store_leftovers_removed(s), 1);
    CHECK(!exists(dir, "topics/1/1"));
    CHECK(exists(dir, "topics/1/77"));
    store_close(s);
    s = store_in(dir);
    CHECK_EQ(store_leftovers_removed(s), 0);
    store_close(s);
}

TEST(a_folder_that_no_topic_has_is_never_taken_over_by_a_new_one) {
    const char *dir = log_dir();
    char stray[256];
    struct store *s = store_in(dir);
    path_in(dir, "topics", stray);
    CHECK_EQ(mkdir(stray, 0700), 0);
    path_in(dir, "topics/1", stray);
    CHECK_EQ(mkdir(stray, 0700), 0);
    path_in(dir, "topics/1/1", stray);
    CHECK_EQ(mkdir(stray, 0700), 0);
    struct topic *t = fixture_topic(s, "a", 1);
    CHECK_EQ(topic_info(t)->topic_id, 2);
    topic_unref(t);
    store_close(s);
}

/* ---- threads ---- */

#define CREATORS 4

static struct {
    struct store *s;
    _Atomic int created, existed, other;
} contest;

static void *creator(void *unused) {
    for (int i = 0; i < 20; i++) {
        char name[32];
        struct topic *t = NULL;
        snprintf(name, sizeof name, "topic-%d", i);
        struct store_topic_new want = {.stream = STR("kafka"), .name = str_of(name), .partitions_count = 2};
        enum status st = store_topic_create(contest.s, &want, &t);
        atomic_fetch_add(st == ST_OK       ? &contest.created
                         : st == ST_EXISTS ? &contest.existed
                                           : &contest.other,
                         1);
        topic_unref(t);
        t = store_topic_find(contest.s, STR("kafka"), str_of(name));
        if (!t)
            atomic_fetch_add(&contest.other, 1);
        topic_unref(t);
    }
    return unused;
}

TEST(of_those_who_create_one_topic_at_once_exactly_one_does) {
    pthread_t threads[CREATORS];
    memset(&contest, 0, sizeof contest);
    contest.s = store_in(log_dir());
    for (int i = 0; i < CREATORS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, creator, NULL), 0);
    for (int i = 0; i < CREATORS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(contest.created, 20);
    CHECK_EQ(contest.existed, 20 * (CREATORS - 1));
    CHECK_EQ(contest.other, 0);
    store_close(contest.s);
}

/* ---- memory ---- */

TEST_OOM(opening_and_changing_topics_survive_any_failed_allocation) {
    static char dir[64];
    static int round;
    char name[32];
    struct store *s = NULL;
    struct store_error error;
    struct topic *t = NULL, **all = NULL;
    int32_t count = 0;
    if (!dir[0])
        strcpy(dir, log_dir());
    struct store_settings settings = fixture_settings(dir, MIB);
    struct store_setting setting = {(char *)"k", (char *)"v"};
    snprintf(name, sizeof name, "t%d", round++);
    enum status st = store_open(&settings, &s, &error);
    if (!st)
        st = store_stream_ensure(s, STR("kafka"));
    struct store_topic_new want = {.stream = STR("kafka"),
                                   .name = str_of(name),
                                   .partitions_count = 2,
                                   .settings = &setting,
                                   .settings_count = 1};
    if (!st)
        st = store_topic_create(s, &want, &t);
    if (!st)
        st = store_topic_grow(s, t, 3);
    if (!st)
        st = set_all(s, t, &setting, 1);
    if (!st)
        st = store_topics(s, STR("kafka"), &all, &count);
    for (int32_t i = 0; i < count; i++)
        topic_unref(all[i]);
    mem_free(all);
    if (t) { /* whether or not something failed behind its creation */
        CHECK_EQ(store_topic_delete(s, t), ST_OK);
    }
    CHECK(st == ST_OK || st == ST_NO_MEMORY);
    topic_unref(t);
    store_close(s);
}

TEST(a_data_folder_that_is_a_file_is_told) {
    char path[128];
    struct store *s = NULL;
    struct store_error error;
    snprintf(path, sizeof path, "%s/file", test_dir());
    close(open(path, O_WRONLY | O_CREAT, 0600));
    const struct store_settings settings = {.data_dir = path, .segment_bytes = 1 << 20};
    CHECK_EQ(store_open(&settings, &s, &error), ST_INVALID);
    CHECK(strstr(error.text, "is not a folder") != NULL);
}
