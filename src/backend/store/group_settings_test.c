/* What is set for groups: D9-14. */
#include <sqlite3.h>
#include <stdio.h>

#include "backend/store/rig_test.h"
#include "backend/store/store_impl.h"
#include "base/clock.h"
#include "base/mem.h"
#include "testing/test.h"

static struct rig rig;

static enum status set(const char *group, struct backend_group_settings before,
                       struct backend_group_settings settings) {
    struct backend_group_change change = {str_of(group), before, settings, ST_OK};
    struct backend_configure_groups call = {
        .parts = &change, .parts_count = 1, .deadline_ms = clock_ms() + LONG_MS};
    RUN(&rig, configure_groups, &call);
    return change.status;
}
#define SETTINGS(session, heartbeat) ((struct backend_group_settings){(session), (heartbeat)})
#define NONE                         SETTINGS(0, 0)

static void check_set(const char *group, int32_t session_ms, int32_t heartbeat_ms) {
    const struct backend_group_settings now = backend_group_settings(rig.backend, str_of(group));
    CHECK_EQ(now.session_ms, session_ms);
    CHECK_EQ(now.heartbeat_ms, heartbeat_ms);
}

TEST(settings_of_a_group_are_told_at_once_and_after_a_restart) {
    const char *dir = test_dir();
    rig_open(&rig, dir, false);
    check_set("b", 0, 0);
    CHECK_EQ(set("b", NONE, SETTINGS(50000, 0)), ST_OK);
    CHECK_EQ(set("a", NONE, SETTINGS(0, 6000)), ST_OK);
    CHECK_EQ(set("c", NONE, SETTINGS(46000, 7000)), ST_OK);
    CHECK_EQ(set("b", SETTINGS(50000, 0), SETTINGS(50000, 8000)), ST_OK);
    CHECK_EQ(set("a", SETTINGS(0, 6000), NONE), ST_OK);
    for (int round = 0; round < 2; round++) {
        check_set("a", 0, 0);
        check_set("b", 50000, 8000);
        check_set("c", 46000, 7000);
        check_set("bb", 0, 0);
        rig_close(&rig);
        rig_open(&rig, dir, false);
    }
    rig_close(&rig);
}

TEST(a_change_of_what_is_no_longer_there_is_not_made) {
    rig_open(&rig, test_dir(), false);
    CHECK_EQ(set("g", NONE, SETTINGS(50000, 0)), ST_OK);
    CHECK_EQ(set("g", NONE, SETTINGS(0, 6000)), ST_AGAIN); /* somebody was faster */
    CHECK_EQ(set("g", SETTINGS(50000, 1), NONE), ST_AGAIN);
    check_set("g", 50000, 0);
    rig_close(&rig);
}

TEST(a_group_change_past_its_deadline_or_refused_before_is_not_made) {
    struct backend_group_change changes[] = {{STR("a"), NONE, SETTINGS(50000, 0), ST_OK},
                                             {STR("b"), NONE, SETTINGS(50000, 0), ST_INVALID}};
    struct backend_configure_groups call = {.parts = changes, .parts_count = 2, .deadline_ms = clock_ms()};
    rig_open(&rig, test_dir(), false);
    RUN(&rig, configure_groups, &call);
    CHECK_EQ(changes[0].status, ST_TIMED_OUT);
    CHECK_EQ(changes[1].status, ST_INVALID);
    call.deadline_ms = clock_ms() + LONG_MS;
    RUN(&rig, configure_groups, &call);
    check_set("a", 0, 0); /* it had its outcome */
    check_set("b", 0, 0);
    rig_close(&rig);
}

static void run_sql(const char *dir, const char *sql) {
    char path[256];
    sqlite3 *db;
    snprintf(path, sizeof path, "%s/catalog.db", dir);
    CHECK_EQ(sqlite3_open(path, &db), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

TEST(groups_with_settings_have_a_number_that_ends_somewhere) {
    const char *dir = test_dir();
    rig_open(&rig, dir, false);
    rig_close(&rig);
    run_sql(dir, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)"
                 "INSERT INTO group_settings SELECT CAST('g' || i AS BLOB), 50000, 0 FROM n");
    rig_open(&rig, dir, false);
    check_set("g1", 50000, 0);
    check_set("g9999", 50000, 0);
    CHECK_EQ(set("more", NONE, SETTINGS(50000, 0)), ST_POLICY);
    check_set("more", 0, 0);
    CHECK_EQ(set("g77", SETTINGS(50000, 0), SETTINGS(50000, 9000)), ST_OK);
    CHECK_EQ(set("g77", SETTINGS(50000, 9000), NONE), ST_OK);
    CHECK_EQ(set("more", NONE, SETTINGS(50000, 0)), ST_OK); /* there is room again */
    check_set("more", 50000, 0);
    rig_close(&rig);
}

TEST(a_group_change_without_memory_changes_nothing) {
    struct backend_group_change change = {STR("g"), NONE, SETTINGS(50000, 0), ST_OK};
    struct backend_configure_groups call = {
        .parts = &change, .parts_count = 1, .deadline_ms = clock_ms() + LONG_MS};
    rig_open(&rig, test_dir(), false);
    rig_close(&rig);
    for (int nth = 1; nth <= 2; nth++) { /* its row, and the room for it */
        const char *dir = test_dir();
        rig_open(&rig, dir, false);
        mem_fail_at(nth);
        configured_groups_change(store_backend_of(rig.backend), &call);
        mem_fail_at(0);
        CHECK_EQ(change.status, ST_NO_MEMORY);
        check_set("g", 0, 0);
        change.status = ST_OK;
        rig_close(&rig);
        rig_open(&rig, dir, false);
        check_set("g", 0, 0);
        rig_close(&rig);
    }
}
