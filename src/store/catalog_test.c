/* The catalog's versions, and users, tokens and groups, through the store. */
#include "testing/test.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/log_fixture.h"
#include "store/store_users.h"

/* ---- versions ---- */

/* As version 1 of the program wrote it, byte by byte of SQL. */
static const char version_1[] =
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE streams (stream_id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,"
    " next_topic_id INTEGER NOT NULL DEFAULT 1);"
    "CREATE TABLE topics (stream_id INTEGER NOT NULL, topic_id INTEGER NOT NULL, name TEXT NOT NULL, uuid "
    "BLOB NOT NULL,"
    " partitions_count INTEGER NOT NULL, created_us INTEGER NOT NULL,"
    " PRIMARY KEY (stream_id, topic_id), UNIQUE (stream_id, name)) WITHOUT ROWID;"
    "CREATE TABLE topic_settings (stream_id INTEGER NOT NULL, topic_id INTEGER NOT NULL, key TEXT NOT NULL,"
    " value TEXT NOT NULL, PRIMARY KEY (stream_id, topic_id, key)) WITHOUT ROWID;"
    "PRAGMA application_id = 1229409091; PRAGMA user_version = 1;"
    "INSERT INTO meta VALUES ('cluster.id', 'c');"
    "INSERT INTO streams (name, next_topic_id) VALUES ('kafka', 5), ('other', 1);"
    "INSERT INTO topics VALUES (1, 1, 'orders', x'00112233445566778899aabbccddeeff', 2, 5000000),"
    " (1, 3, 'a', x'11112233445566778899aabbccddeeff', 1, 4000000);"
    "INSERT INTO topic_settings VALUES (1, 1, 'retention.ms', '7');";

static int64_t sql_number(const char *dir, const char *sql) {
    char path[256];
    sqlite3 *db;
    sqlite3_stmt *q = NULL;
    int64_t out = -1;
    path_in(dir, "catalog.db", path);
    CHECK_EQ(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
        out = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return out;
}

static void make_folder(const char *dir, const char *name) {
    char path[256];
    path_in(dir, name, path);
    CHECK_EQ(mkdir(path, 0700), 0);
}

TEST(a_catalog_of_version_1_is_brought_to_this_one_with_all_that_is_in_it) {
    const char *dir = log_dir();
    struct stream_info stream;
    run_sql(dir, version_1);
    for (int round = 0; round < 2; round++) {
        struct store *s = store_in(dir);
        struct topic *t = store_topic_find(s, STR("kafka"), STR("orders"));
        CHECK(t != NULL);
        CHECK_EQ(topic_info(t)->topic_id, 1);
        CHECK_EQ(topic_info(t)->id.b[1], 0x11);
        CHECK_EQ(topic_info(t)->created_us, 5000000);
        CHECK_EQ(topic_partitions_count(t), 2);
        char *value = topic_setting(t, "retention.ms");
        CHECK_TEXT(value, "7");
        mem_free(value);
        topic_unref(t);
        CHECK_EQ(store_value_get(s, "cluster.id", &value), ST_OK);
        CHECK_TEXT(value, "c");
        mem_free(value);
        CHECK(store_stream_by_id(s, 1, &stream));
        CHECK_TEXT(stream.name, "kafka");
        CHECK_EQ(stream.created_us, 4000000); /* its oldest topic's */
        CHECK(store_stream_by_name(s, STR("other"), &stream));
        CHECK(stream.created_us > 4000000); /* no topic says: now */
        t = fixture_topic(s, round ? "c" : "b", 1);
        CHECK_EQ(topic_info(t)->topic_id, 5 + round);
        topic_unref(t);
        uint32_t id;
        CHECK_EQ(store_group_add(s, 1, 3, str_of(round ? "g" : "h"), &id), ST_OK);
        CHECK_EQ(id, round);
        store_close(s);
        CHECK_EQ(sql_number(dir, "PRAGMA user_version"), 3);
    }
}

TEST(a_deletion_that_version_1_left_unfinished_is_finished_and_no_other_folder_goes) {
    const char *dir = log_dir();
    run_sql(dir, version_1);
    make_folder(dir, "topics");
    make_folder(dir, "topics/1");
    make_folder(dir, "topics/1/1");
    make_folder(dir, "topics/1/2"); /* given, and no topic has it */
    make_folder(dir, "topics/1/5"); /* never given */
    struct store *s = store_in(dir);
    CHECK_EQ(store_leftovers_removed(s), 1);
    CHECK(exists(dir, "topics/1/1"));
    CHECK(!exists(dir, "topics/1/2"));
    CHECK(exists(dir, "topics/1/5"));
    store_close(s);
    CHECK_EQ(sql_number(dir, "SELECT count(*) FROM leftovers"), 0);
}

TEST(bringing_a_catalog_to_this_version_fails_as_a_whole) {
    const char *dir = log_dir();
    struct store *s = NULL;
    struct store_error error;
    struct store_settings settings = fixture_settings(dir, 1 << 20);
    run_sql(dir, version_1);
    run_sql(dir, "CREATE TABLE tokens (in_the_way INTEGER)");
    CHECK(store_open(&settings, &s, &error) != ST_OK);
    CHECK(strstr(error.text, "tokens") != NULL);
    CHECK_EQ(sql_number(dir, "PRAGMA user_version"), 1);
    CHECK_EQ(sql_number(dir, "SELECT count(created_us) FROM streams"), -1); /* there is no such column */
    run_sql(dir, "DROP TABLE tokens");
    CHECK_EQ(store_open(&settings, &s, &error), ST_OK);
    store_close(s);
}

TEST(a_topic_passed_over_folders_of_elsewhere_and_they_stay_over_restarts) {
    const char *dir = log_dir();
    struct store *s = store_in(dir);
    make_folder(dir, "topics");
    make_folder(dir, "topics/1");
    make_folder(dir, "topics/1/1");
    struct topic *t = fixture_topic(s, "a", 1);
    CHECK_EQ(topic_info(t)->topic_id, 2);
    CHECK_EQ(store_topic_delete(s, t), ST_OK);
    topic_unref(t);
    store_close(s);
    s = store_in(dir);
    CHECK_EQ(store_leftovers_removed(s), 0);
    CHECK(exists(dir, "topics/1/1"));
    store_close(s);
}

/* ---- users and tokens ---- */

/* What is walked over, as text. */
struct seen {
    char text[400];
};

static void see(struct seen *seen, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void see(struct seen *seen, const char *format, ...) {
    size_t len = strlen(seen->text);
    va_list args;
    va_start(args, format);
    vsnprintf(seen->text + len, sizeof seen->text - len, format, args);
    va_end(args);
}

static enum status see_user(void *user, const struct store_user *u) {
    see(user, "%u %.*s %.*s %s %d %lld;", u->id, u->name.len, u->name.ptr, u->password_hash.len,
        u->password_hash.ptr, u->active ? "active" : "idle", u->permissions.len, (long long)u->created_us);
    return ST_OK;
}

static enum status see_token(void *user, const struct store_token *t) {
    see(user, "%u %.*s %d %lld;", t->user_id, t->name.len, t->name.ptr, t->hash.ptr[0],
        (long long)t->expires_us);
    return ST_OK;
}

static enum status see_group(void *user, const struct store_group *g) {
    see(user, "%u/%u/%u %.*s;", g->stream_id, g->topic_id, g->group_id, g->name.len, g->name.ptr);
    return ST_OK;
}

static void users_are(struct store *s, const char *text) {
    struct seen seen = {""};
    CHECK_EQ(store_each_user(s, see_user, &seen), ST_OK);
    CHECK_TEXT(seen.text, text);
}

static void tokens_are(struct store *s, const char *text) {
    struct seen seen = {""};
    CHECK_EQ(store_each_token(s, see_token, &seen), ST_OK);
    CHECK_TEXT(seen.text, text);
}

static void groups_are(struct store *s, const char *text) {
    struct seen seen = {""};
    CHECK_EQ(store_each_group(s, see_group, &seen), ST_OK);
    CHECK_TEXT(seen.text, text);
}

static struct store_user user_of(const char *name) {
    return (struct store_user){.id = 77, /* not looked at by store_user_add */
                               .created_us = 5,
                               .active = true,
                               .name = str_of(name),
                               .password_hash = STR("h"),
                               .permissions = {(const uint8_t *)"\0\1\2", 3}};
}

TEST(users_survive_a_restart_and_an_id_is_never_given_again) {
    const char *dir = log_dir();
    uint32_t id = 9;
    struct store *s = store_in(dir);
    struct store_user root = user_of("root"), other = user_of("other");
    other.permissions = BYTES_NULL;
    other.active = false;
    CHECK_EQ(store_user_add(s, &root, &id), ST_OK);
    CHECK_EQ(id, 0);
    CHECK_EQ(store_user_remove(s, 0), ST_OK); /* also the first one's */
    CHECK_EQ(store_user_add(s, &root, &id), ST_OK);
    CHECK_EQ(id, 1);
    CHECK_EQ(store_user_add(s, &other, &id), ST_OK);
    CHECK_EQ(id, 2);
    CHECK_EQ(store_user_add(s, &root, &id), ST_EXISTS);
    users_are(s, "1 root h active 3 5;2 other h idle -1 5;");
    CHECK_EQ(store_user_remove(s, 2), ST_OK);
    CHECK_EQ(store_user_remove(s, 2), ST_NOT_FOUND);
    store_close(s);
    s = store_in(dir);
    CHECK_EQ(store_user_add(s, &other, &id), ST_OK);
    CHECK_EQ(id, 3);
    users_are(s, "1 root h active 3 5;3 other h idle -1 5;");
    store_close(s);
}

TEST(a_user_is_changed_but_for_id_and_birth) {
    uint32_t id;
    struct store *s = store_in(log_dir());
    struct store_user a = user_of("a"), b = user_of("b");
    CHECK_EQ(store_user_add(s, &a, &id), ST_OK);
    CHECK_EQ(store_user_add(s, &b, &id), ST_OK);
    b = (struct store_user){.id = 1,
                            .created_us = 99,
                            .name = STR("a"),
                            .password_hash = STR("new"),
                            .permissions = {(const uint8_t *)"", 0}};
    CHECK_EQ(store_user_set(s, &b), ST_EXISTS);
    b.name = STR("c");
    CHECK_EQ(store_user_set(s, &b), ST_OK);
    users_are(s, "0 a h active 3 5;1 c new idle 0 5;");
    b.id = 2;
    b.name = STR("d");
    CHECK_EQ(store_user_set(s, &b), ST_NOT_FOUND);
    store_close(s);
}

TEST(tokens_are_named_by_user_and_go_with_it) {
    const char *dir = log_dir();
    uint32_t id;
    struct store *s = store_in(dir);
    struct store_user a = user_of("a"), b = user_of("b");
    CHECK_EQ(store_user_add(s, &a, &id), ST_OK);
    CHECK_EQ(store_user_add(s, &b, &id), ST_OK);
    struct store_token t = {
        .user_id = 0, .name = STR("ci"), .hash = {(const uint8_t *)"1234", 4}, .expires_us = INT64_MAX};
    CHECK_EQ(store_token_add(s, &t), ST_OK);
    t.hash.ptr = (const uint8_t *)"2234";
    CHECK_EQ(store_token_add(s, &t), ST_EXISTS); /* the name */
    t.user_id = 1;
    t.expires_us = 8;
    CHECK_EQ(store_token_add(s, &t), ST_OK);
    t.name = STR("again");
    CHECK_EQ(store_token_add(s, &t), ST_EXISTS); /* the hash */
    t.hash.ptr = (const uint8_t *)"3234";
    CHECK_EQ(store_token_add(s, &t), ST_OK);
    t.user_id = 2;
    t.hash.ptr = (const uint8_t *)"4234";
    CHECK_EQ(store_token_add(s, &t), ST_NOT_FOUND); /* the user */
    store_close(s);
    s = store_in(dir);
    tokens_are(s, "0 ci 49 9223372036854775807;1 again 51 8;1 ci 50 8;");
    CHECK_EQ(store_token_remove(s, 1, STR("ci")), ST_OK);
    CHECK_EQ(store_token_remove(s, 1, STR("ci")), ST_NOT_FOUND);
    CHECK_EQ(store_user_remove(s, 1), ST_OK);
    tokens_are(s, "0 ci 49 9223372036854775807;");
    store_close(s);
}

static enum status stop_at_second(void *user, const struct store_user *u) {
    (void)u;
    return ++*(int *)user == 2 ? ST_CANCELED : ST_OK;
}

TEST(a_walk_ends_with_the_status_of_its_function) {
    int count = 0;
    uint32_t id;
    struct store *s = store_in(log_dir());
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "u%d", i);
        struct store_user u = user_of(name);
        CHECK_EQ(store_user_add(s, &u, &id), ST_OK);
    }
    CHECK_EQ(store_each_user(s, stop_at_second, &count), ST_CANCELED);
    CHECK_EQ(count, 2);
    store_close(s);
}

/* ---- groups ---- */

TEST(groups_are_numbered_by_topic_never_twice_and_go_with_it) {
    const char *dir = log_dir();
    uint32_t id;
    struct store *s = store_in(dir);
    struct topic *a = fixture_topic(s, "a", 1), *b = fixture_topic(s, "b", 0);
    CHECK_EQ(store_group_add(s, 1, 1, STR("x"), &id), ST_OK);
    CHECK_EQ(id, 0);
    CHECK_EQ(store_group_add(s, 1, 1, STR("x"), &id), ST_EXISTS);
    CHECK_EQ(store_group_add(s, 1, 1, STR("y"), &id), ST_OK);
    CHECK_EQ(id, 1);
    CHECK_EQ(store_group_add(s, 1, 2, STR("x"), &id), ST_OK);
    CHECK_EQ(id, 0);
    CHECK_EQ(store_group_add(s, 1, 3, STR("x"), &id), ST_NOT_FOUND);
    CHECK_EQ(store_group_remove(s, 1, 1, 1), ST_OK);
    CHECK_EQ(store_group_remove(s, 1, 1, 1), ST_NOT_FOUND);
    topic_unref(a);
    topic_unref(b);
    store_close(s);
    s = store_in(dir);
    CHECK_EQ(store_group_add(s, 1, 1, STR("z"), &id), ST_OK);
    CHECK_EQ(id, 2);
    groups_are(s, "1/1/0 x;1/1/2 z;1/2/0 x;");
    a = store_topic_by_number(s, 1, 1);
    CHECK_EQ(store_topic_delete(s, a), ST_OK);
    topic_unref(a);
    groups_are(s, "1/2/0 x;");
    CHECK_EQ(store_group_add(s, 1, 1, STR("z"), &id), ST_NOT_FOUND);
    store_close(s);
}

static enum status group_settings_add(void *user, const struct store_group_settings *g) {
    char *text = user;
    size_t end = strlen(text);
    snprintf(text + end, 200 - end, "%.*s/%d %d %d;", g->group.len, g->group.ptr, g->group.len, g->session_ms,
             g->heartbeat_ms);
    return ST_OK;
}

static void group_settings_are(struct store *s, const char *expected) {
    char text[200] = "";
    CHECK_EQ(store_each_group_settings(s, group_settings_add, text), ST_OK);
    CHECK_TEXT(text, expected);
}

TEST(settings_of_groups_survive_a_restart_and_go_when_nothing_is_set) {
    const char *dir = log_dir();
    struct store *s = store_in(dir);
    group_settings_are(s, "");
    CHECK_EQ(store_group_settings_set(s, &(struct store_group_settings){STR("b"), 50000, 0}), ST_OK);
    CHECK_EQ(store_group_settings_set(s, &(struct store_group_settings){STR("a"), 0, 6000}), ST_OK);
    CHECK_EQ(store_group_settings_set(s, &(struct store_group_settings){{"a\0b", 3}, 1, 2}), ST_OK);
    CHECK_EQ(store_group_settings_set(s, &(struct store_group_settings){STR("b"), 50000, 7000}), ST_OK);
    group_settings_are(s, "a/1 0 6000;a/3 1 2;b/1 50000 7000;");
    store_close(s);
    s = store_in(dir);
    group_settings_are(s, "a/1 0 6000;a/3 1 2;b/1 50000 7000;");
    CHECK_EQ(store_group_settings_set(s, &(struct store_group_settings){STR("a"), 0, 0}), ST_OK);
    CHECK_EQ(store_group_settings_set(s, &(struct store_group_settings){STR("none"), 0, 0}), ST_OK);
    group_settings_are(s, "a/3 1 2;b/1 50000 7000;");
    store_close(s);
}
