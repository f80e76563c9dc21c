#include "backend/iggy/bridge_rig_test.h"
#include "backend/iggy/fake_groups_test.h"
#include "backend/iggy/fake_log_test.h"
#include "backend/iggy/offsets_log.h"
#include "backend/iggy/view.h"
#include "base/clock.h"
#include "iggy/errors.h"
#include "testing/test.h"

#define SOON_MS  200
#define FOR_EVER 1000000

static struct bridge_rig rig;

/* ---- calls ---- */

static struct backend_commit_part commit_part(const char *topic, int32_t partition, int64_t offset) {
    return (struct backend_commit_part){
        .topic = str_of(topic), .partition = partition, .offset = offset, .leader_epoch = 4};
}

static void commit_on(int loop, const char *group, struct backend_commit_part *parts, int32_t count) {
    struct turn turn = {.commit = {.group = str_of(group), .parts = parts, .parts_count = count}};
    turn_begin(&rig, loop, &turn, start_commit);
    turn_end(&turn);
}

static enum status commit_one(const char *group, const char *topic, int32_t partition, int64_t offset) {
    struct backend_commit_part part = commit_part(topic, partition, offset);
    commit_on(0, group, &part, 1);
    return part.status;
}

static struct backend_committed_part fetch_on(int loop, const char *group, const char *topic,
                                              int32_t partition) {
    struct backend_committed_part part = {
        .topic = str_of(topic), .partition = partition, .offset = 77, .leader_epoch = 8};
    struct turn turn = {.committed = {.group = str_of(group), .parts = &part, .parts_count = 1}};
    turn_begin(&rig, loop, &turn, start_committed);
    turn_end(&turn);
    return part;
}

/* The offset; the read must not fail. */
static int64_t fetch_one(const char *group, const char *topic, int32_t partition) {
    struct backend_committed_part part = fetch_on(0, group, topic, partition);
    CHECK_EQ(part.status, ST_OK);
    CHECK_EQ(part.leader_epoch, -1);
    CHECK_EQ(part.metadata.len, 0);
    return part.offset;
}

static struct turn fetch_all(const char *group) {
    struct turn turn = {.committed = {.group = str_of(group), .all = true, .status = ST_IO}};
    turn_run(&rig, &turn, start_committed);
    return turn;
}

static struct turn groups_of(struct str forget) {
    struct turn turn = {.groups = {.forget = forget, .status = ST_IO}};
    turn_run(&rig, &turn, start_groups);
    return turn;
}

static void open_with(uint32_t version, int loops) {
    rig_open(&rig, (struct rig_options){.version = version, .loops_count = loops});
    fake_add_topic(&rig.server, "kafka", "orders", 3);
    fake_add_topic(&rig.server, "kafka", "b", 12);
}

/* ---- what holds for both ways ---- */

static void check_commit_and_fetch(void) {
    CHECK_EQ(commit_one("g", "orders", 0, 5), ST_OK);
    CHECK_EQ(commit_one("g", "orders", 2, 0), ST_OK);
    CHECK_EQ(commit_one("h", "orders", 0, 6), ST_OK);
    CHECK_EQ(commit_one("g", "orders", 0, 4), ST_OK);
    CHECK_EQ(fetch_one("g", "orders", 0), 4);
    CHECK_EQ(fetch_one("g", "orders", 2), 0);
    CHECK_EQ(fetch_one("h", "orders", 0), 6);
}

static void check_nothing_there(void) {
    CHECK_EQ(fetch_one("g", "orders", 1), -1);
    CHECK_EQ(fetch_one("g", "orders", 3), -1);
    CHECK_EQ(fetch_one("g", "orders", -1), -1);
    CHECK_EQ(fetch_one("g", "b", 0), -1);
    CHECK_EQ(fetch_one("g", "nowhere", 0), -1);
    CHECK_EQ(fetch_one("nobody", "orders", 0), -1);
}

static void check_bad_parts(void) {
    struct backend_commit_part parts[] = {
        commit_part("nowhere", 0, 1), commit_part("orders", 3, 1), commit_part("orders", -1, 1),
        commit_part("orders", 1, 1),  commit_part("b", 1, 1),      {.topic = STR_NULL, .id = {{9}}},
    };
    parts[4].status = ST_BAD_NAME;
    commit_on(0, "g", parts, COUNT_OF(parts));
    CHECK_EQ(parts[0].status, ST_NOT_FOUND);
    CHECK_EQ(parts[1].status, ST_NOT_FOUND);
    CHECK_EQ(parts[2].status, ST_NOT_FOUND);
    CHECK_EQ(parts[3].status, ST_OK);
    CHECK_EQ(parts[4].status, ST_BAD_NAME);
    CHECK_EQ(parts[5].status, ST_UNKNOWN_ID);
    CHECK_EQ(fetch_one("g", "orders", 1), 1);
    CHECK_EQ(fetch_one("g", "b", 1), -1);
}

static void check_forget(void) {
    CHECK_EQ(commit_one("g", "b", 3, -1), ST_OK); /* nothing is there */
    CHECK_EQ(commit_one("g", "b", 3, 9), ST_OK);
    CHECK_EQ(commit_one("g", "b", 4, 9), ST_OK);
    CHECK_EQ(commit_one("g", "b", 3, -5), ST_OK);
    CHECK_EQ(fetch_one("g", "b", 3), -1);
    CHECK_EQ(fetch_one("g", "b", 4), 9);
}

static void check_all(void) {
    const char *topics[] = {"b", "orders", "orders"};
    const int32_t partitions[] = {4, 0, 2};
    struct turn turn = fetch_all("g");
    CHECK_EQ(turn.committed.status, ST_OK);
    CHECK_EQ(turn.committed.parts_count, 3);
    for (int i = 0; i < 3; i++) {
        CHECK(str_equal(turn.committed.parts[i].topic, str_of(topics[i])));
        CHECK_EQ(turn.committed.parts[i].partition, partitions[i]);
        CHECK_EQ(turn.committed.parts[i].status, ST_OK);
        CHECK_EQ(turn.committed.parts[i].leader_epoch, -1);
        CHECK(turn.committed.parts[i].offset >= 0);
    }
    turn = fetch_all("nobody");
    CHECK_EQ(turn.committed.status, ST_OK);
    CHECK_EQ(turn.committed.parts_count, 0);
}

static void check_groups(void) {
    struct turn turn = groups_of(STR_NULL);
    CHECK_EQ(turn.groups.status, ST_OK);
    CHECK_EQ(turn.groups.groups_count, 2);
    CHECK(str_equal(turn.groups.groups[0], STR("g")));
    CHECK(str_equal(turn.groups.groups[1], STR("h")));
    CHECK_EQ(groups_of(STR("g")).groups.status, ST_OK);
    CHECK_EQ(groups_of(STR("g")).groups.status, ST_NO_GROUP);
    CHECK_EQ(fetch_one("g", "orders", 0), -1);
    CHECK_EQ(fetch_one("h", "orders", 0), 6);
    CHECK_EQ(groups_of(STR_NULL).groups.groups_count, 1);
}

/* D12-1, D12-3, D12-6, D12-11, D12-12 */
static void check_all_rules(uint32_t version) {
    open_with(version, 1);
    check_commit_and_fetch();
    check_nothing_there();
    check_bad_parts();
    CHECK_EQ(commit_one("g", "orders", 1, -1), ST_OK);
    check_forget();
    check_all();
    check_groups();
    rig_close(&rig);
}

TEST(offsets_are_kept_by_a_server_of_0_12) {
    check_all_rules(IGGY_0_12_2);
}

TEST(offsets_are_kept_by_a_server_of_0_12_0) {
    check_all_rules(IGGY_0_12_0);
}

TEST(offsets_are_kept_by_a_server_of_0_11) { /* D12-9 */
    check_all_rules(IGGY_0_11);
}

TEST(offsets_are_kept_by_a_server_of_0_12_that_has_no_external_groups) { /* D12-9 */
    open_with(IGGY_0_12_2, 1);
    fake_without_external(&rig.server, true);
    CHECK_EQ(commit_one("g", "orders", 0, 5),
             ST_UNAVAILABLE); /* now it is known, and the client tries again */
    check_commit_and_fetch();
    check_nothing_there();
    rig_close(&rig);
}

static enum status append_after(const char *group) {
    struct backend_commit_part part = commit_part("orders", 0, 6);
    commit_on(0, group, &part, 1);
    return part.status;
}

/* What a topic had goes with it. */
static void check_made_anew(uint32_t version) {
    open_with(version, 1);
    CHECK_EQ(commit_one("g", "orders", 0, 5), ST_OK);
    struct backend_delete_part gone = {.name = STR("orders")};
    struct turn turn = {.delete_ = {.parts = &gone, .parts_count = 1}};
    turn_run(&rig, &turn, start_delete);
    CHECK_EQ(gone.status, ST_OK);
    CHECK_EQ(fetch_all("g").committed.parts_count, 0);
    fake_add_topic(&rig.server, "kafka", "orders", 3);
    CHECK_EQ(fetch_one("g", "orders", 0), -1);
    CHECK_EQ(append_after("g"), ST_OK);
    CHECK_EQ(fetch_one("g", "orders", 0), 6);
    rig_close(&rig);
}

TEST(a_topic_made_anew_has_no_offsets) {
    check_made_anew(IGGY_0_12_2);
    check_made_anew(IGGY_0_11);
}

/* The view that the gateway has is of the topic before: the server says so (87). */
TEST(a_topic_that_others_made_anew_is_found) {
    open_with(IGGY_0_12_2, 1);
    CHECK_EQ(commit_one("g", "orders", 0, 5), ST_OK);
    fake_remove_topic(&rig.server, "orders");
    fake_add_topic(&rig.server, "kafka", "orders", 4);
    CHECK_EQ(commit_one("g", "orders", 0, 6), ST_OK);
    CHECK_EQ(fetch_one("g", "orders", 0), 6);
    CHECK_EQ(commit_one("g", "orders", 3, 7), ST_OK);
    fake_remove_topic(&rig.server, "orders");
    CHECK_EQ(commit_one("g", "orders", 0, 6), ST_NOT_FOUND);
    CHECK_EQ(fetch_one("g", "orders", 0), -1);
    rig_close(&rig);
}

TEST(a_partition_that_others_added_is_found) {
    const uint32_t versions[] = {IGGY_0_12_2, IGGY_0_11};
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        open_with(versions[i], 1);
        CHECK_EQ(commit_one("g", "orders", 3, 5), ST_NOT_FOUND);
        fake_grow(&rig.server, "orders", 4);
        CHECK_EQ(commit_one("g", "orders", 3, 5), ST_OK);
        CHECK_EQ(fetch_one("g", "orders", 3), 5);
        rig_close(&rig);
    }
}

/* ---- external groups ---- */

TEST(a_group_is_made_with_its_first_offset_and_named_after_kafkas) { /* D12-1, D12-2 */
    uint64_t offset = 0;
    open_with(IGGY_0_12_2, 1);
    CHECK_EQ(commit_one("g", "orders", 1, 5), ST_OK);
    CHECK(fake_offset(&rig.server, "orders", "kafka.cg.g", 1, &offset));
    CHECK_EQ(offset, 5);
    CHECK_EQ(commit_one("g", "orders", 2, 6), ST_OK);
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_create_group), 1);
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_store_consumer_offset), 3);
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_create_topic), 0);
    CHECK(!fake_has_group(&rig.server, "b", "kafka.cg.g"));
    rig_close(&rig);
}

TEST(many_first_offsets_make_their_group_once) {
    enum { COUNT = 12 };
    struct backend_commit_part parts[COUNT];
    open_with(IGGY_0_12_2, 1);
    for (int32_t i = 0; i < COUNT; i++)
        parts[i] = commit_part("b", i, 100 + i);
    commit_on(0, "g", parts, COUNT);
    for (int32_t i = 0; i < COUNT; i++) {
        CHECK_EQ(parts[i].status, ST_OK);
        CHECK_EQ(fetch_one("g", "b", i), 100 + i);
    }
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_create_group), 1);
    rig_close(&rig);
}

TEST(a_group_that_somebody_else_made_meanwhile_is_as_good) { /* D12-2: 5004 */
    open_with(IGGY_0_12_2, 1);
    fake_hold(&rig.server, IGGY_CMD_create_group);
    struct backend_commit_part part = commit_part("orders", 0, 5);
    struct turn turn = {.commit = {.group = STR("g"), .parts = &part, .parts_count = 1}};
    turn_begin(&rig, 0, &turn, start_commit);
    fake_expect(&rig.server, IGGY_CMD_create_group, 1);
    fake_add_group(&rig.server, "orders", "kafka.cg.g");
    fake_let_go(&rig.server);
    turn_end(&turn);
    CHECK_EQ(part.status, ST_OK);
    CHECK_EQ(fetch_one("g", "orders", 0), 5);
    rig_close(&rig);
}

/* D12-21 */
TEST(commits_for_a_partition_go_out_one_after_the_other) {
    enum { COUNT = 5 };
    struct backend_commit_part parts[COUNT];
    struct turn turns[COUNT];
    open_with(IGGY_0_12_2, 1);
    fake_hold(&rig.server, IGGY_CMD_store_consumer_offset);
    for (int i = 0; i < COUNT; i++) {
        parts[i] = commit_part("orders", 0, COUNT - i);
        turns[i] = (struct turn){.commit = {.group = STR("g"), .parts = &parts[i], .parts_count = 1}};
        turn_begin(&rig, 0, &turns[i], start_commit);
    }
    struct backend_commit_part other = commit_part("orders", 1, 9);
    struct turn beside = {.commit = {.group = STR("g"), .parts = &other, .parts_count = 1}};
    turn_begin(&rig, 0, &beside, start_commit);
    fake_expect(&rig.server, IGGY_CMD_store_consumer_offset, 2);
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_store_consumer_offset), 2); /* of each partition the first */
    fake_let_go(&rig.server);
    for (int i = 0; i < COUNT; i++) {
        turn_end(&turns[i]);
        CHECK_EQ(parts[i].status, ST_OK);
    }
    turn_end(&beside);
    CHECK_EQ(fetch_one("g", "orders", 0), 1);
    rig_close(&rig);
}

static enum status fetch_soon(const char *group, bool all) {
    struct backend_committed_part part = {.topic = STR("orders")};
    struct turn turn = {.committed = {.group = str_of(group), .all = all}};
    turn.committed.parts = all ? NULL : &part;
    turn.committed.parts_count = all ? 0 : 1;
    turn.committed.deadline_ms = clock_ms() + SOON_MS;
    turn_run(&rig, &turn, start_committed);
    return all ? turn.committed.status : part.status;
}

/* D12-13 */
TEST(a_read_that_fails_is_never_no_offset) {
    const uint32_t codes[] = {IGGY_ERR_TRANSIENT_NOT_ACCEPTED,  IGGY_ERR_TRANSIENT_NOT_COMMITTED,
                              IGGY_ERR_REQUEST_ALREADY_APPLIED, IGGY_ERR_REQUEST_TOO_OLD,
                              IGGY_ERR_LIFECYCLE_BUSY,          0};
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        open_with(IGGY_0_12_2, 1);
        CHECK_EQ(commit_one("g", "orders", 0, 5), ST_OK);
        fake_refuse(&rig.server, IGGY_CMD_get_consumer_offset, codes[i], FOR_EVER);
        CHECK(fetch_soon("g", false) != ST_OK);
        CHECK(fetch_soon("g", true) != ST_OK);
        fake_refuse(&rig.server, IGGY_CMD_get_consumer_offset, 0, 0);
        CHECK_EQ(fetch_one("g", "orders", 0), 5);
        rig_close(&rig);
    }
}

TEST(a_listing_of_groups_that_fails_is_never_an_empty_one) {
    open_with(IGGY_0_12_2, 1);
    CHECK_EQ(commit_one("g", "orders", 0, 5), ST_OK);
    fake_refuse(&rig.server, IGGY_CMD_get_group, IGGY_ERR_TRANSIENT_NOT_ACCEPTED, FOR_EVER);
    CHECK(fetch_soon("g", true) != ST_OK);
    fake_refuse(&rig.server, IGGY_CMD_get_groups, IGGY_ERR_UNAUTHORIZED, 1);
    CHECK_EQ(groups_of(STR_NULL).groups.status, ST_DENIED);
    fake_refuse(&rig.server, IGGY_CMD_delete_group, IGGY_ERR_UNAUTHORIZED, 1);
    CHECK_EQ(groups_of(STR("g")).groups.status, ST_DENIED);
    CHECK_EQ(groups_of(STR("g")).groups.status, ST_OK);
    rig_close(&rig);
}

TEST(a_full_table_of_offsets_is_said) { /* F: 3024 */
    open_with(IGGY_0_12_2, 1);
    fake_refuse(&rig.server, IGGY_CMD_store_consumer_offset, IGGY_ERR_TOO_MANY_CONSUMER_OFFSETS, 1);
    CHECK_EQ(commit_one("g", "orders", 0, 5), ST_POLICY);
    fake_refuse(&rig.server, IGGY_CMD_store_consumer_offset, IGGY_ERR_UNAUTHORIZED, 1);
    CHECK_EQ(commit_one("g", "orders", 0, 5), ST_DENIED);
    CHECK_EQ(commit_one("g", "orders", 0, 5), ST_OK);
    rig_close(&rig);
}

/* D12-20 */
TEST(what_is_not_under_way_at_the_deadline_is_not_done) {
    enum { COUNT = 1000 };
    static struct backend_commit_part parts[COUNT];
    rig_open(&rig, (struct rig_options){.version = IGGY_0_12_2});
    fake_add_topic(&rig.server, "kafka", "wide", COUNT);
    for (int32_t i = 0; i < COUNT; i++)
        parts[i] = commit_part("wide", i, i);
    struct turn turn = {.commit = {.group = STR("g"), .parts = parts, .parts_count = COUNT}};
    turn.commit.deadline_ms = clock_ms() - 1;
    turn_run(&rig, &turn, start_commit);
    for (int32_t i = 0; i < COUNT; i++)
        CHECK(parts[i].status == ST_UNAVAILABLE || parts[i].status == ST_TIMED_OUT);
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_store_consumer_offset), 0);
    rig_close(&rig);
}

TEST(a_thousand_offsets_go_through_in_one_commit) {
    enum { COUNT = 500 };
    static struct backend_commit_part parts[COUNT];
    static struct backend_committed_part back[COUNT];
    rig_open(&rig, (struct rig_options){.version = IGGY_0_12_2, .loops_count = 2});
    fake_add_topic(&rig.server, "kafka", "wide", COUNT);
    for (int32_t i = 0; i < COUNT; i++) {
        parts[i] = commit_part("wide", i, i * 2);
        back[i] = (struct backend_committed_part){.topic = STR("wide"), .partition = i};
    }
    commit_on(1, "g", parts, COUNT);
    for (int32_t i = 0; i < COUNT; i++)
        CHECK_EQ(parts[i].status, ST_OK);
    struct turn turn = {.committed = {.group = STR("g"), .parts = back, .parts_count = COUNT}};
    turn_run(&rig, &turn, start_committed);
    for (int32_t i = 0; i < COUNT; i++)
        CHECK_EQ(back[i].offset, i * 2);
    struct turn all = fetch_all("g");
    CHECK_EQ(all.committed.parts_count, COUNT);
    CHECK_EQ(all.committed.parts[COUNT - 1].offset, COUNT * 2 - 2);
    rig_close(&rig);
}

/* ---- the topic of offsets ---- */

static int messages_of_offsets(void) {
    fake_lock(&rig.server);
    int count = (int)fake_topic_named(&rig.server, OFFSETS_TOPIC)->next_offset[0];
    fake_unlock(&rig.server);
    return count;
}

TEST(a_commit_is_one_message_in_a_topic_that_is_made_once) { /* D12-9 */
    struct backend_commit_part parts[] = {commit_part("orders", 0, 5), commit_part("b", 1, 6),
                                          commit_part("nowhere", 1, 6), commit_part("b", 2, 7)};
    open_with(IGGY_0_11, 1);
    CHECK_EQ(fetch_one("g", "orders", 0), -1); /* a read makes no topic */
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_create_topic), 0);
    commit_on(0, "g", parts, COUNT_OF(parts));
    CHECK_EQ(parts[3].status, ST_OK);
    CHECK_EQ(messages_of_offsets(), 1);
    CHECK_EQ(commit_one("g", "nowhere", 0, 5), ST_NOT_FOUND);
    CHECK_EQ(messages_of_offsets(), 1); /* nothing to say */
    CHECK_EQ(commit_one("g", "b", 1, 8), ST_OK);
    CHECK_EQ(messages_of_offsets(), 2);
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_create_topic), 1);
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_store_consumer_offset), 0);
    CHECK_EQ(fetch_one("g", "b", 1), 8);
    CHECK_EQ(fetch_one("g", "b", 2), 7);
    rig_close(&rig);
}

TEST(the_topic_of_offsets_never_expires_and_is_saved_at_once) { /* D12-9 */
    open_with(IGGY_0_11, 1);
    CHECK_EQ(commit_one("g", "orders", 0, 5), ST_OK);
    fake_lock(&rig.server);
    const struct fake_topic *t = fake_topic_named(&rig.server, OFFSETS_TOPIC);
    CHECK_EQ(t->partitions_count, 1);
    CHECK(memmem(t->options, (size_t)t->options_len, "message_expiry", 14) != NULL);
    CHECK(memmem(t->options, (size_t)t->options_len, "messages_required_to_save", 25) != NULL);
    fake_unlock(&rig.server);
    rig_close(&rig);
}

TEST(several_readers_of_the_topic_agree) { /* D12-9 */
    open_with(IGGY_0_11, 2);
    struct backend_commit_part part = commit_part("orders", 0, 5);
    for (int round = 0; round < 4; round++) {
        part = commit_part("orders", 0, 5 + round);
        commit_on(round % 2, "g", &part, 1);
        CHECK_EQ(part.status, ST_OK);
        for (int loop = 0; loop < 2; loop++)
            CHECK_EQ(fetch_on(loop, "g", "orders", 0).offset, 5 + round);
    }
    rig_close(&rig);
}

TEST(commits_into_the_topic_keep_their_order) {
    enum { COUNT = 20 };
    struct backend_commit_part parts[COUNT];
    struct turn turns[COUNT];
    open_with(IGGY_0_11, 1);
    for (int i = 0; i < COUNT; i++) {
        parts[i] = commit_part(i % 2 ? "orders" : "b", 0, COUNT - i);
        turns[i] = (struct turn){.commit = {.group = STR("g"), .parts = &parts[i], .parts_count = 1}};
        turn_begin(&rig, 0, &turns[i], start_commit);
    }
    for (int i = 0; i < COUNT; i++) {
        turn_end(&turns[i]);
        CHECK_EQ(parts[i].status, ST_OK);
    }
    CHECK_EQ(fetch_one("g", "b", 0), 2);
    CHECK_EQ(fetch_one("g", "orders", 0), 1);
    rig_close(&rig);
}

static void forget_offsets_topic(struct bridge_loop *l, void *arg) {
    (void)arg;
    views_forget(l->bridge, STR(OFFSETS_TOPIC));
}

/* A send waits for its connection, and borrows the names of what was known of the topic until it can go. */
TEST(a_commit_goes_out_whatever_is_learned_of_the_topic_meanwhile) {
    open_with(IGGY_0_11, 1);
    fake_add_topic(&rig.server, "kafka", OFFSETS_TOPIC, 1);
    CHECK_EQ(fetch_one("g", "orders", 0), -1);
    int logins = fake_seen(&rig.server, IGGY_CMD_login_password);
    fake_hold(&rig.server, IGGY_CMD_login_password);
    struct backend_commit_part part = commit_part("orders", 0, 5);
    struct turn turn = {.commit = {.group = STR("g"), .parts = &part, .parts_count = 1}};
    turn_begin(&rig, 0, &turn, start_commit);
    fake_expect(&rig.server, IGGY_CMD_login_password, logins + 1);
    rig_run(&rig, forget_offsets_topic, NULL);
    fake_let_go(&rig.server);
    turn_end(&turn);
    CHECK_EQ(part.status, ST_OK);
    CHECK_EQ(fetch_one("g", "orders", 0), 5);
    rig_close(&rig);
}

TEST(a_long_topic_is_read_in_pages_and_messages_of_others_are_passed_over) {
    open_with(IGGY_0_11, 2);
    CHECK_EQ(commit_one("g", "orders", 0, 1), ST_OK);
    for (int i = 0; i < 300; i++)
        fake_write(&rig.server, OFFSETS_TOPIC, 0, (struct fake_messages){.count = 3, .letter = 'k'});
    CHECK_EQ(commit_one("g", "orders", 1, 2), ST_OK);
    fake_lock(&rig.server);
    rig.server.poll_count_max = 100; /* so that larger pages lose the connection */
    fake_unlock(&rig.server);
    CHECK_EQ(fetch_on(1, "g", "orders", 0).offset, 1);
    CHECK_EQ(fetch_on(1, "g", "orders", 1).offset, 2);
    rig_close(&rig);
}

TEST(a_topic_of_offsets_that_cannot_be_read_fails_the_read) { /* D12-13 */
    open_with(IGGY_0_11, 1);
    CHECK_EQ(commit_one("g", "orders", 0, 1), ST_OK);
    fake_refuse(&rig.server, IGGY_CMD_poll_messages, IGGY_ERR_UNAUTHORIZED, 1);
    CHECK_EQ(fetch_on(0, "g", "orders", 0).status, ST_DENIED);
    fake_refuse(&rig.server, IGGY_CMD_poll_messages, IGGY_ERR_TRANSIENT_NOT_ACCEPTED, FOR_EVER);
    CHECK(fetch_soon("g", false) != ST_OK);
    CHECK(fetch_soon("g", true) != ST_OK);
    fake_refuse(&rig.server, IGGY_CMD_poll_messages, 0, 0);
    CHECK_EQ(fetch_one("g", "orders", 0), 1);
    fake_refuse(&rig.server, IGGY_CMD_send_messages, IGGY_ERR_UNAUTHORIZED, 1);
    CHECK_EQ(commit_one("g", "orders", 0, 2), ST_DENIED);
    CHECK_EQ(fetch_one("g", "orders", 0), 1);
    rig_close(&rig);
}

TEST(a_topic_of_offsets_that_was_deleted_is_made_again) {
    open_with(IGGY_0_11, 1);
    CHECK_EQ(commit_one("g", "orders", 0, 1), ST_OK);
    CHECK_EQ(fetch_one("g", "orders", 0), 1);
    fake_remove_topic(&rig.server, OFFSETS_TOPIC);
    CHECK_EQ(fetch_one("g", "orders", 0), -1);
    enum status st = commit_one("g", "orders", 1, 2); /* what was known of it may be out of date: try again */
    CHECK(st == ST_OK || st == ST_UNAVAILABLE);
    CHECK_EQ(commit_one("g", "orders", 1, 2), ST_OK);
    CHECK_EQ(fetch_one("g", "orders", 1), 2);
    CHECK_EQ(fetch_one("g", "orders", 0), -1);
    rig_close(&rig);
}

/* D12-9: the server was changed for a newer one. */
TEST(what_the_topic_has_counts_where_external_groups_have_nothing) {
    open_with(IGGY_0_12_2, 1);
    fake_without_external(&rig.server, true);
    CHECK_EQ(commit_one("g", "orders", 0, 5), ST_UNAVAILABLE);
    CHECK_EQ(commit_one("g", "orders", 0, 5), ST_OK);
    CHECK_EQ(commit_one("g", "orders", 1, 6), ST_OK);
    CHECK_EQ(commit_one("old", "orders", 1, 7), ST_OK);
    fake_without_external(&rig.server, false);
    atomic_store(&rig.bridge->offsets_in_topic, false);

    CHECK_EQ(fetch_one("g", "orders", 0), 5);
    CHECK_EQ(commit_one("g", "orders", 0, 8), ST_OK);
    CHECK_EQ(fetch_one("g", "orders", 0), 8);
    CHECK_EQ(fetch_one("g", "orders", 1), 6);
    struct turn all = fetch_all("g");
    CHECK_EQ(all.committed.parts_count, 2);
    CHECK_EQ(all.committed.parts[0].offset, 8);
    CHECK_EQ(all.committed.parts[1].offset, 6);
    CHECK_EQ(groups_of(STR_NULL).groups.groups_count, 2);

    CHECK_EQ(commit_one("g", "orders", 1, -1), ST_OK);
    CHECK_EQ(fetch_one("g", "orders", 1), -1);
    CHECK_EQ(groups_of(STR("old")).groups.status, ST_OK);
    CHECK_EQ(groups_of(STR("old")).groups.status, ST_NO_GROUP);
    CHECK_EQ(groups_of(STR("g")).groups.status, ST_OK);
    CHECK_EQ(fetch_all("g").committed.parts_count, 0);
    rig_close(&rig);
}

/* Mapped topics, and groups of others. */
TEST(topics_elsewhere_have_offsets_and_groups_of_others_are_none) {
    rig_open(&rig, (struct rig_options){.version = IGGY_0_12_2, .mapped = "orders"});
    fake_add_topic(&rig.server, "other", "place", 2);
    fake_add_topic(&rig.server, "kafka", "b", 2);
    fake_add_group(&rig.server, "b", "theirs");
    fake_add_group(&rig.server, "b", "kafka.cg.");
    CHECK_EQ(commit_one("g", "orders", 1, 5), ST_OK);
    CHECK(fake_has_group(&rig.server, "place", "kafka.cg.g"));
    struct turn all = fetch_all("g");
    CHECK_EQ(all.committed.parts_count, 1);
    CHECK(str_equal(all.committed.parts[0].topic, STR("orders")));
    CHECK_EQ(groups_of(STR_NULL).groups.groups_count, 1);
    CHECK_EQ(groups_of(STR("theirs")).groups.status, ST_NO_GROUP);
    rig_close(&rig);
}

TEST(a_commit_survives_a_lost_connection) {
    open_with(IGGY_0_12_2, 1);
    CHECK_EQ(commit_one("g", "orders", 0, 5), ST_OK);
    fake_refuse(&rig.server, IGGY_CMD_store_consumer_offset, 0, 1);
    enum status st =
        commit_one("g", "orders", 0, 6); /* it goes out again under its number, or the client has to */
    CHECK(st == ST_OK || st == ST_UNAVAILABLE);
    CHECK_EQ(commit_one("g", "orders", 0, 7), ST_OK);
    CHECK_EQ(fetch_one("g", "orders", 0), 7);
    rig_close(&rig);
}

TEST(commits_that_wait_end_when_the_gateway_does) {
    open_with(IGGY_0_12_2, 1);
    CHECK_EQ(commit_one("g", "orders", 0, 5), ST_OK);
    fake_hold(&rig.server, IGGY_CMD_store_consumer_offset);
    struct backend_commit_part parts[3];
    struct turn turns[3];
    for (int i = 0; i < 3; i++) {
        parts[i] = commit_part("orders", 0, 6);
        turns[i] = (struct turn){.commit = {.group = STR("g"), .parts = &parts[i], .parts_count = 1}};
        turn_begin(&rig, 0, &turns[i], start_commit);
    }
    fake_expect(&rig.server, IGGY_CMD_store_consumer_offset, 3);
    rig_stop(&rig);
    for (int i = 0; i < 3; i++) {
        turn_end(&turns[i]);
        CHECK_EQ(parts[i].status, ST_UNAVAILABLE);
    }
    fake_expect_conns(&rig.server, 0);
    rig_close(&rig);
}
