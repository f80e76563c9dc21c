#include "backend/store/rig_test.h"
#include "backend/store/store_impl.h"
#include "base/clock.h"
#include "base/mem.h"
#include "store/store_offsets.h"
#include "testing/test.h"

static struct rig rig;

static struct backend_commit commit_of(const char *group, struct backend_commit_part *parts, int32_t count) {
    return (struct backend_commit){
        .group = str_of(group), .parts = parts, .parts_count = count, .deadline_ms = clock_ms() + LONG_MS};
}

static struct backend_commit_part commit_part(const char *topic, int32_t partition, int64_t offset) {
    return (struct backend_commit_part){
        .topic = str_of(topic), .partition = partition, .offset = offset, .leader_epoch = -1};
}

static enum status commit_one(const char *group, const char *topic, int32_t partition, int64_t offset) {
    struct backend_commit_part part = commit_part(topic, partition, offset);
    struct backend_commit call = commit_of(group, &part, 1);
    RUN(&rig, commit, &call);
    return part.status;
}

static struct backend_committed_part fetched(const char *group, const char *topic, int32_t partition) {
    struct backend_committed_part part = {.topic = str_of(topic), .partition = partition, .offset = 77};
    struct backend_committed call = {
        .arena = &rig.arena, .group = str_of(group), .parts = &part, .parts_count = 1};
    RUN(&rig, committed, &call);
    CHECK_EQ(part.status, ST_OK);
    return part;
}

static struct backend_committed fetched_all(const char *group) {
    struct backend_committed call = {
        .arena = &rig.arena, .group = str_of(group), .all = true, .status = ST_IO};
    RUN(&rig, committed, &call);
    CHECK_EQ(call.status, ST_OK);
    return call;
}

static struct backend_groups groups(struct str forget) {
    struct backend_groups call = {.arena = &rig.arena, .forget = forget, .status = ST_IO};
    RUN(&rig, groups, &call);
    return call;
}

TEST(a_commit_is_there_after_a_restart_with_metadata_and_epoch) { /* D12-1 */
    const char *dir = test_dir();
    rig_open(&rig, dir, false);
    make_topic(&rig, "orders", 2);
    struct backend_commit_part parts[] = {commit_part("orders", 0, 5), commit_part("orders", 1, 0)};
    parts[0].metadata = STR("from here");
    parts[0].leader_epoch = 7;
    parts[1].metadata = STR_NULL;
    struct backend_commit call = commit_of("readers", parts, 2);
    RUN(&rig, commit, &call);
    CHECK_EQ(parts[0].status, ST_OK);
    CHECK_EQ(parts[1].status, ST_OK);
    rig_close(&rig);

    rig_open(&rig, dir, false);
    struct backend_committed_part part = fetched("readers", "orders", 0);
    CHECK_EQ(part.offset, 5);
    CHECK_EQ(part.leader_epoch, 7);
    CHECK(str_equal(part.metadata, STR("from here")));
    part = fetched("readers", "orders", 1);
    CHECK_EQ(part.offset, 0);
    CHECK_EQ(part.leader_epoch, -1);
    CHECK_EQ(part.metadata.len, 0);
    CHECK_EQ(fetched("others", "orders", 0).offset, -1);
    rig_close(&rig);
}

TEST(an_offset_that_nobody_committed_is_none_and_no_error) { /* D12-12 */
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    commit_one("readers", "orders", 0, 3);
    CHECK_EQ(fetched("readers", "orders", 1).offset, -1);
    CHECK_EQ(fetched("readers", "orders", -1).offset, -1);
    CHECK_EQ(fetched("readers", "nowhere", 0).offset, -1);
    CHECK_EQ(fetched("", "orders", 0).offset, -1);
    CHECK_EQ(fetched("", "orders", 0).leader_epoch, -1);
    rig_close(&rig);
}

TEST(a_bad_part_of_a_commit_spoils_no_other) { /* D12-6 */
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    struct backend_commit_part parts[] = {
        commit_part("nowhere", 0, 1), commit_part("orders", 1, 1), commit_part("orders", -1, 1),
        commit_part("orders", 0, 1),  commit_part("orders", 0, 9), {.topic = STR_NULL, .id = {{9}}},
    };
    parts[4].status = ST_BAD_NAME; /* the caller's: not to be done */
    struct backend_commit call = commit_of("readers", parts, COUNT_OF(parts));
    RUN(&rig, commit, &call);
    CHECK_EQ(parts[0].status, ST_NOT_FOUND);
    CHECK_EQ(parts[1].status, ST_NOT_FOUND);
    CHECK_EQ(parts[2].status, ST_NOT_FOUND);
    CHECK_EQ(parts[3].status, ST_OK);
    CHECK_EQ(parts[4].status, ST_BAD_NAME);
    CHECK_EQ(parts[5].status, ST_UNKNOWN_ID);
    CHECK_EQ(fetched("readers", "orders", 0).offset, 1);
    rig_close(&rig);
}

TEST(of_several_commits_for_a_partition_in_one_call_the_last_counts) {
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 2);
    struct backend_commit_part parts[] = {
        commit_part("orders", 0, 4), commit_part("orders", 0, 2),  commit_part("orders", 1, 8),
        commit_part("orders", 1, 9), commit_part("orders", 1, -1), commit_part("orders", 0, 3),
    };
    struct backend_commit call = commit_of("readers", parts, COUNT_OF(parts));
    RUN(&rig, commit, &call);
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        CHECK_EQ(parts[i].status, ST_OK);
    CHECK_EQ(fetched("readers", "orders", 0).offset, 3);
    CHECK_EQ(fetched("readers", "orders", 1).offset, -1);
    rig_close(&rig);
}

TEST(a_negative_offset_forgets_and_need_not_find_anything) { /* D12-3 */
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    CHECK_EQ(commit_one("readers", "orders", 0, -5), ST_OK);
    CHECK_EQ(commit_one("readers", "orders", 0, 12), ST_OK);
    CHECK_EQ(commit_one("readers", "orders", 0, -1), ST_OK);
    CHECK_EQ(fetched("readers", "orders", 0).offset, -1);
    CHECK_EQ(groups(STR_NULL).groups_count, 0);
    rig_close(&rig);
}

/* Commits that are under way at once end in the order in which they were begun. */
TEST(commits_of_one_loop_are_done_in_their_order) {
    enum { COUNT = 40 };
    struct backend_commit_part parts[COUNT];
    struct backend_commit calls[COUNT];
    struct turn turns[COUNT];
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    for (int i = 0; i < COUNT; i++) {
        parts[i] = commit_part("orders", 0, COUNT - i);
        calls[i] = commit_of("readers", &parts[i], 1);
        turn_start(&turns[i], &rig, 0, &calls[i].op, &calls[i], begin_commit);
    }
    for (int i = 0; i < COUNT; i++) {
        turn_wait(&turns[i]);
        CHECK_EQ(parts[i].status, ST_OK);
    }
    CHECK_EQ(fetched("readers", "orders", 0).offset, 1);
    rig_close(&rig);
}

TEST(all_offsets_of_a_group_come_in_the_order_of_topics_and_partitions) { /* D12-11 */
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "b", 12);
    make_topic(&rig, "a", 1);
    make_topic(&rig, "c", 1);
    make_topic(&rig, "ab", 1);
    struct backend_commit_part parts[] = {commit_part("c", 0, 1), commit_part("b", 11, 2),
                                          commit_part("ab", 0, 3), commit_part("b", 2, 4),
                                          commit_part("a", 0, 5)};
    struct backend_commit call = commit_of("readers", parts, COUNT_OF(parts));
    RUN(&rig, commit, &call);
    commit_one("others", "b", 0, 50);
    struct backend_committed all = fetched_all("readers");
    const char *topics[] = {"a", "ab", "b", "b", "c"};
    const int64_t offsets[] = {5, 3, 4, 2, 1};
    CHECK_EQ(all.parts_count, 5);
    for (int i = 0; i < 5; i++) {
        CHECK(str_equal(all.parts[i].topic, str_of(topics[i])));
        CHECK_EQ(all.parts[i].offset, offsets[i]);
        CHECK_EQ(all.parts[i].status, ST_OK);
        CHECK_EQ(all.parts[i].metadata.len, 0);
    }
    CHECK_EQ(fetched_all("nobody").parts_count, 0);

    struct backend_delete_part gone = {.name = STR("b")};
    struct backend_delete delete = {
        .arena = &rig.arena, .parts = &gone, .parts_count = 1, .deadline_ms = clock_ms() + LONG_MS};
    RUN(&rig, delete, &delete);
    CHECK_EQ(gone.status, ST_OK);
    CHECK_EQ(fetched_all("readers").parts_count, 3);
    rig_close(&rig);
}

TEST(groups_see_nothing_of_topics_in_other_streams) {
    rig_open(&rig, test_dir(), false);
    struct store *store = store_backend_store(rig.backend);
    struct topic *topic;
    const struct store_topic_new want = {
        .stream = STR("other"), .name = STR("theirs"), .partitions_count = 1};
    CHECK_EQ(store_stream_ensure(store, want.stream), ST_OK);
    CHECK_EQ(store_topic_create(store, &want, &topic), ST_OK);
    const struct store_offset theirs = {
        .owner = STR("kreaders"), .topic = topic_info(topic)->id, .offset = 3, .leader_epoch = -1};
    CHECK_EQ(store_offsets_set(store, &theirs, 1), ST_OK);
    CHECK_EQ(fetched_all("readers").parts_count, 0);
    topic_unref(topic);
    rig_close(&rig);
}

TEST(hundreds_of_partitions_are_read_at_once) {
    enum { COUNT = 500 };
    struct backend_commit_part *parts = mem_take_zeroed(COUNT, sizeof *parts);
    struct backend_committed_part *back = mem_take_zeroed(COUNT, sizeof *back);
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "wide", COUNT);
    for (int32_t i = 0; i < COUNT; i++) {
        parts[i] = commit_part("wide", i, i * 3);
        back[i] = (struct backend_committed_part){.topic = STR("wide"), .partition = i};
    }
    struct backend_commit call = commit_of("readers", parts, COUNT);
    RUN(&rig, commit, &call);
    struct backend_committed read = {
        .arena = &rig.arena, .group = STR("readers"), .parts = back, .parts_count = COUNT};
    RUN(&rig, committed, &read);
    for (int32_t i = 0; i < COUNT; i++)
        CHECK_EQ(back[i].offset, i * 3);
    rig_close(&rig);
    mem_free(parts);
    mem_free(back);
}

TEST(groups_are_listed_by_name_and_forgotten_once) {
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    const struct store_offset iggys = {.owner = STR("c7"), .topic = {{1}}, .offset = 3, .leader_epoch = -1};
    CHECK_EQ(store_offsets_set(store_backend_store(rig.backend), &iggys, 1), ST_OK);
    commit_one("beta", "orders", 0, 1);
    commit_one("alpha", "orders", 0, 2);
    commit_one("alphabet", "orders", 0, 3);
    struct backend_groups list = groups(STR_NULL);
    CHECK_EQ(list.status, ST_OK);
    CHECK_EQ(list.groups_count, 3);
    CHECK(str_equal(list.groups[0], STR("alpha")));
    CHECK(str_equal(list.groups[1], STR("alphabet")));
    CHECK(str_equal(list.groups[2], STR("beta")));
    CHECK_EQ(groups(STR("alpha")).status, ST_OK);
    CHECK_EQ(groups(STR("alpha")).status, ST_NO_GROUP);
    CHECK_EQ(groups(STR("")).status, ST_NO_GROUP);
    CHECK_EQ(fetched("alpha", "orders", 0).offset, -1);
    CHECK_EQ(fetched("alphabet", "orders", 0).offset, 3);
    CHECK_EQ(groups(STR_NULL).groups_count, 2);
    rig_close(&rig);
}

/* ---- offsets that run out: D11-67 ---- */

#define RETENTION_MS 60000

static _Atomic int64_t hand_ms;

static int64_t clock_by_hand(void) {
    return atomic_load(&hand_ms);
}

/* The server starts now; its wall clock shows wall_ms. */
static void rig_open_at(const char *dir, int64_t now_ms, int64_t wall_ms) {
    rig_open(&rig, dir, false);
    struct offset_changes *c = &store_backend_of(rig.backend)->offset_changes;
    atomic_store(&hand_ms, now_ms);
    c->now_ms = clock_by_hand;
    c->start_ms = now_ms;
    c->wall_ahead_ms = wall_ms - now_ms;
}

static void time_goes(int64_t ms) {
    atomic_fetch_add(&hand_ms, ms);
}

static int64_t age(const char *group, int32_t nth) {
    struct backend_committed call = fetched_all(group);
    CHECK(nth < call.parts_count);
    return call.parts[nth].age_ms;
}

/* How many of the partitions 0 and 1 of "orders" ran out. */
static int32_t expired(const char *group) {
    struct backend_commit_part parts[] = {commit_part("orders", 0, -1), commit_part("orders", 1, -1)};
    struct backend_commit call = commit_of(group, parts, COUNT_OF(parts));
    call.aged_ms = RETENTION_MS;
    RUN(&rig, commit, &call);
    CHECK_EQ(parts[0].status, ST_OK);
    CHECK_EQ(parts[1].status, ST_OK);
    return call.gone_count;
}

TEST(offsets_go_when_they_are_old_enough_each_by_its_own_commit) {
    rig_open_at(test_dir(), 1000, TIMESTAMP_MS);
    make_topic(&rig, "orders", 2);
    commit_one("readers", "orders", 0, 3);
    time_goes(20000);
    commit_one("readers", "orders", 1, 3);
    CHECK_EQ(age("readers", 0), 20000);
    CHECK_EQ(age("readers", 1), 0);
    time_goes(RETENTION_MS - 20001);
    CHECK_EQ(expired("readers"), 0);
    time_goes(1);
    CHECK_EQ(expired("readers"), 1);
    CHECK_EQ(fetched("readers", "orders", 0).offset, -1);
    CHECK_EQ(fetched("readers", "orders", 1).offset, 3);
    CHECK(backend_group_has_offsets(rig.backend, STR("readers")));
    time_goes(20000);
    CHECK_EQ(expired("readers"), 1);
    CHECK(!backend_group_has_offsets(rig.backend, STR("readers")));
    CHECK_EQ(groups(STR_NULL).groups_count, 0);
    rig_close(&rig);
}

TEST(a_commit_between_the_look_and_the_removal_stays) {
    rig_open_at(test_dir(), 1000, TIMESTAMP_MS);
    make_topic(&rig, "orders", 2);
    commit_one("readers", "orders", 0, 3);
    commit_one("readers", "orders", 1, 3);
    time_goes(RETENTION_MS);
    CHECK_EQ(age("readers", 1), RETENTION_MS);
    commit_one("readers", "orders", 1, 3);
    CHECK_EQ(expired("readers"), 1);
    CHECK_EQ(fetched("readers", "orders", 1).offset, 3);
    rig_close(&rig);
}

TEST(a_part_that_is_not_to_be_done_does_not_run_out) {
    rig_open_at(test_dir(), 1000, TIMESTAMP_MS);
    make_topic(&rig, "orders", 1);
    commit_one("readers", "orders", 0, 3);
    time_goes(RETENTION_MS);
    struct backend_commit_part parts[] = {commit_part("orders", 0, -1), commit_part("nowhere", 0, -1)};
    parts[0].status = ST_IN_USE;
    struct backend_commit call = commit_of("readers", parts, 2);
    call.aged_ms = RETENTION_MS;
    RUN(&rig, commit, &call);
    CHECK_EQ(parts[1].status, ST_NOT_FOUND);
    CHECK_EQ(call.gone_count, 0);
    CHECK_EQ(fetched("readers", "orders", 0).offset, 3);
    rig_close(&rig);
}

TEST(an_offset_that_is_to_be_kept_longer_is_also_after_a_restart) { /* D12-3 */
    const char *dir = test_dir();
    rig_open_at(dir, 1000, TIMESTAMP_MS);
    make_topic(&rig, "orders", 2);
    struct backend_commit_part part = commit_part("orders", 0, 3);
    struct backend_commit call = commit_of("readers", &part, 1);
    call.keep_longer_ms = 3 * RETENTION_MS;
    RUN(&rig, commit, &call);
    time_goes(2 * RETENTION_MS);
    CHECK_EQ(age("readers", 0), 0);
    CHECK_EQ(expired("readers"), 0);
    rig_close(&rig);
    rig_open_at(dir, 1000, TIMESTAMP_MS + 2 * RETENTION_MS);
    time_goes(2 * RETENTION_MS - 1);
    CHECK_EQ(expired("readers"), 0);
    time_goes(1);
    CHECK_EQ(expired("readers"), 1);
    rig_close(&rig);
}

/* What the wall clock showed in either run says nothing: backwards, forwards, or none that was set at all. */
TEST(after_a_start_nothing_is_older_than_it_whatever_the_wall_clock_shows) {
    const int64_t year_ms = INT64_C(365) * 86400000;
    const int64_t walls[] = {TIMESTAMP_MS, TIMESTAMP_MS + year_ms, 0};
    const char *dir = test_dir();
    rig_open_at(dir, 1000, TIMESTAMP_MS);
    make_topic(&rig, "orders", 2);
    commit_one("readers", "orders", 0, 3);
    rig_close(&rig);
    for (size_t i = 0; i < COUNT_OF(walls); i++) {
        rig_open_at(dir, 500, walls[i]);
        CHECK_EQ(age("readers", 0), 0);
        time_goes(RETENTION_MS - 1);
        CHECK(age("readers", 0) < RETENTION_MS);
        CHECK_EQ(expired("readers"), 0);
        rig_close(&rig);
    }
    rig_open_at(dir, 500, TIMESTAMP_MS);
    time_goes(RETENTION_MS);
    CHECK_EQ(age("readers", 0), RETENTION_MS);
    CHECK_EQ(expired("readers"), 1);
    rig_close(&rig);
}

TEST(a_commit_from_ahead_of_the_clock_runs_out_later_not_sooner) {
    const char *dir = test_dir();
    rig_open_at(dir, 1000, TIMESTAMP_MS + 5000);
    make_topic(&rig, "orders", 2);
    commit_one("readers", "orders", 0, 3);
    rig_close(&rig);
    rig_open_at(dir, 1000, TIMESTAMP_MS);
    time_goes(RETENTION_MS + 4999);
    CHECK_EQ(age("readers", 0), RETENTION_MS - 1);
    CHECK_EQ(expired("readers"), 0);
    time_goes(1);
    CHECK_EQ(expired("readers"), 1);
    rig_close(&rig);
}
