/* DescribeGroups, ListGroups, DeleteGroups, Empty groups, limits, and what happens without memory: D11-60 to D11-64, D11-80. */
#include "group/rig_test.h"

#include "testing/test.h"

#include "base/mem.h"

static struct joined a, b, c;
static struct synced s;

TEST(a_stable_group_is_described_with_everything_and_another_without_metadata) { /* D11-60 */
    struct rig r;
    char expected[3 * TEXT_SIZE];
    rig_begin(&r);
    JOIN(&r, &a, .client = "consumer-1");
    snprintf(expected, sizeof expected, "PreparingRebalance 'consumer' '' 0 %s@consumer-1/h=>;", "%s");
    rig_wait(&r, 3000);
    snprintf(expected, sizeof expected, "CompletingRebalance 'consumer' '' 1 %s@consumer-1/h=>;", a.id);
    CHECK_TEXT(described(&r, "g", false), expected);
    char assign[TEXT_SIZE + 10];
    snprintf(assign, sizeof assign, "%s:x", a.id);
    SYNC(&r, &s, .member = a.id, .generation = 1, .assign = assign);
    snprintf(expected, sizeof expected, "Stable 'consumer' 'range' 1 %s@consumer-1/h=m>x;", a.id);
    CHECK_TEXT(described(&r, "g", false), expected);
    rig_end(&r);
}

TEST(an_unknown_group_is_dead_and_one_with_offsets_empty) {
    struct rig r;
    rig_begin(&r);
    CHECK_TEXT(described(&r, "g", false), "Dead");
    CHECK_TEXT(described(&r, "", false), "Dead");
    CHECK_TEXT(described(&r, "g", true), "Empty '' '' -1 ");
    rig_end(&r);
}

TEST(unclaimed_ids_are_not_described) {
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .v4 = true);
    CHECK_TEXT(described(&r, "g", false), "Empty '' '' 0 ");
    rig_end(&r);
}

static int32_t metadata_seen;

static void look_inside(struct group_call *call) {
    struct group_describe *d = container_of(call, struct group_describe, call);
    struct group_member_view m;
    while (group_members_next(&d->members, &m))
        metadata_seen += m.metadata.len;
}

TEST(a_look_inside_sees_metadata_in_every_state) {
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .protocols = "range:12345");
    rig_wait(&r, 3000);
    struct group_describe d = {.call.done = look_inside, .group = STR("g"), .all_metadata = true};
    metadata_seen = 0;
    coordinator_describe(r.c, &d, r.now);
    CHECK_EQ(metadata_seen, 5);
    CHECK_EQ(d.empty_since_ms, -1);
    rig_end(&r);
}

TEST(groups_are_listed_by_id_with_those_of_which_only_offsets_are_known) { /* D11-61 */
    struct rig r;
    const char *const offsets[] = {"a", "g", "z", NULL};
    rig_begin(&r);
    JOIN(&r, &a, .group = "h");
    JOIN(&r, &b, .group = "g", .v4 = true);
    CHECK_TEXT(
        listed(&r, offsets),
        "a Empty '' classic;g Empty '' classic;h PreparingRebalance 'consumer' classic;z Empty '' classic;");
    coordinator_shutdown(r.c, r.now);
    rig_end(&r);
}

TEST(only_groups_without_members_are_deleted) { /* D11-62 */
    struct rig r;
    struct joined m[1];
    rig_begin(&r);
    CHECK_EQ(deleted(&r, "g", false), GROUP_ID_NOT_FOUND);
    CHECK_EQ(deleted(&r, "g", true), GROUP_OK);
    stable_group(&r, m, 1);
    CHECK_EQ(deleted(&r, "g", true), GROUP_NON_EMPTY);
    LEAVE(&r, .member = m[0].id);
    JOIN(&r, &a, .v4 = true);
    CHECK_EQ(deleted(&r, "g", true), GROUP_OK);
    CHECK_TEXT(described(&r, "g", false), "Dead");
    CHECK_EQ(counts(&r).bytes, 0);
    rig_end(&r);
}

TEST(an_empty_group_in_which_nobody_committed_is_forgotten_after_10_min) { /* D11-64 */
    struct rig r;
    struct joined m[1];
    rig_begin(&r);
    stable_group(&r, m, 1);
    LEAVE(&r, .member = m[0].id);
    rig_wait(&r, 599999);
    CHECK_EQ(strncmp(described(&r, "g", false), "Empty", 5), 0);
    rig_wait(&r, 1);
    CHECK_TEXT(described(&r, "g", false), "Dead");
    CHECK_EQ(coordinator_due_ms(r.c), INT64_MAX);
    rig_end(&r);
}

TEST(an_empty_group_in_which_somebody_committed_stays) {
    struct rig r;
    struct joined m[1];
    rig_begin(&r);
    stable_group(&r, m, 1);
    CHECK_EQ(CHECK_COMMIT(&r, .member = m[0].id, .generation = 1), GROUP_OK);
    LEAVE(&r, .member = m[0].id);
    int64_t since = r.now;
    rig_wait(&r, 7 * 24 * 3600 * 1000LL);
    CHECK_EQ(strncmp(described(&r, "g", false), "Empty 'consumer'", 16), 0);
    struct group_describe d = {.call.done = look_inside, .group = STR("g")};
    coordinator_describe(r.c, &d, r.now);
    CHECK_EQ(d.empty_since_ms, since); /* what offset retention goes by */
    rig_end(&r);
}

static const char *with_offsets; /* the one group that has some */

static bool knows_offsets(void *ctx, struct str group) {
    (void)ctx;
    return with_offsets && str_equal(group, str_of(with_offsets));
}

static int64_t empty_since(struct rig *r, const char *group) {
    struct group_describe d = {.call.done = look_inside, .group = str_of(group), .has_offsets = true};
    coordinator_describe(r->c, &d, r->now);
    CHECK_EQ(d.state, GROUP_STATE_EMPTY);
    return d.empty_since_ms;
}

/* Its offsets may be older than this server's start, so that nobody has committed here. */
TEST(an_empty_group_stays_as_long_as_it_has_offsets_and_not_longer) { /* D11-64 */
    struct rig r;
    struct joined m[1];
    rig_settings(&r);
    r.settings.has_offsets = knows_offsets;
    rig_start(&r);
    stable_group(&r, m, 1);
    CHECK_EQ(CHECK_COMMIT(&r, .member = m[0].id, .generation = 1), GROUP_OK);
    LEAVE(&r, .member = m[0].id);
    int64_t since = r.now;
    with_offsets = "g";
    rig_wait(&r, 24 * 3600 * 1000LL);
    CHECK_EQ(strncmp(described(&r, "g", false), "Empty 'consumer'", 16), 0);
    CHECK_EQ(empty_since(&r, "g"), since);
    with_offsets = NULL;
    rig_wait(&r, 600000);
    CHECK_TEXT(described(&r, "g", false), "Dead");
    rig_end(&r);
}

TEST(a_group_that_was_forgotten_for_want_of_room_is_not_taken_for_empty_longer) { /* D11-67 */
    struct rig r;
    rig_settings(&r);
    r.settings.has_offsets = knows_offsets;
    r.settings.groups_max = 1;
    rig_start(&r);
    with_offsets = "g";
    CHECK_EQ(empty_since(&r, "g"), -1); /* never seen */
    JOIN(&r, &a, .group = "h", .protocols = "");
    rig_wait(&r, 1000);
    JOIN(&r, &a, .group = "g", .protocols = ""); /* h goes, which has none */
    CHECK_EQ(empty_since(&r, "other"), -1);
    int64_t since = r.now;
    rig_wait(&r, 1000);
    JOIN(&r, &a, .group = "h", .protocols = "");
    CHECK_EQ(empty_since(&r, "g"), since);
    CHECK_EQ(empty_since(&r, "other"), since);
    with_offsets = NULL;
    rig_end(&r);
}

TEST(an_empty_group_with_an_unclaimed_id_outlives_the_10_min) {
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .v4 = true, .session_ms = 1800000);
    rig_wait(&r, 600001);
    CHECK_EQ(JOIN(&r, &b, .v4 = true, .member = a.id), WAITS);
    rig_wait(&r, 3000);
    CHECK_EQ(b.done, 1);
    rig_end(&r);
}

/* --- limits -------------------------------------------------------------------------------------------------------------------- */

TEST(groups_members_and_members_of_all_groups_have_limits) { /* D11-21, D11-23 */
    struct rig r;
    rig_settings(&r);
    r.settings.groups_max = 3;
    r.settings.members_per_group_max = 2;
    r.settings.members_max = 4;
    rig_start(&r);
    CHECK_EQ(JOIN(&r, &a, .v4 = true), GROUP_MEMBER_ID_REQUIRED);
    CHECK_EQ(JOIN(&r, &b), WAITS);
    CHECK_EQ(JOIN(&r, &c), GROUP_MAX_SIZE_REACHED); /* an id counts */
    CHECK_EQ(JOIN(&r, &c, .v4 = true), GROUP_MAX_SIZE_REACHED);
    CHECK_EQ(JOIN(&r, &c, .v4 = true, .member = a.id), WAITS); /* who has one gets in */
    CHECK_EQ(JOIN(&r, &a, .group = "h", .v4 = true), GROUP_MEMBER_ID_REQUIRED);
    CHECK_EQ(JOIN(&r, &a, .group = "i", .v4 = true), GROUP_MEMBER_ID_REQUIRED);
    CHECK_EQ(JOIN(&r, &a, .group = "j", .v4 = true), GROUP_NOT_AVAILABLE); /* groups */
    CHECK_EQ(JOIN(&r, &a, .group = "h", .v4 = true), GROUP_NOT_AVAILABLE); /* members of all */
    CHECK_EQ(counts(&r).groups, 3);
    rig_wait(&r, 10000);                                                        /* the ids run out */
    CHECK_EQ(JOIN(&r, &a, .group = "j", .v4 = true), GROUP_MEMBER_ID_REQUIRED); /* h or i made room */
    CHECK_EQ(counts(&r).groups, 3);
    coordinator_shutdown(r.c, r.now);
    rig_end(&r);
}

TEST(a_static_member_that_returns_to_a_full_group_gets_in) {
    struct rig r;
    rig_settings(&r);
    r.settings.members_per_group_max = 1;
    r.settings.members_max = 1;
    rig_start(&r);
    JOIN(&r, &a, .instance = "i");
    CHECK_EQ(JOIN(&r, &b, .instance = "j"), GROUP_MAX_SIZE_REACHED);
    CHECK_EQ(JOIN(&r, &b, .instance = "i"), WAITS);
    rig_wait(&r, 3000);
    CHECK_EQ(b.done, 1);
    rig_end(&r);
}

TEST(the_group_that_is_empty_longest_makes_room) { /* D11-21 */
    struct rig r;
    rig_settings(&r);
    r.settings.groups_max = 2;
    rig_start(&r);
    JOIN(&r, &a, .group = "b", .type = "");
    rig_wait(&r, 1);
    JOIN(&r, &a, .group = "a", .type = "");
    CHECK_EQ(JOIN(&r, &a, .group = "c", .v4 = true), GROUP_MEMBER_ID_REQUIRED);
    CHECK_TEXT(listed(&r, NULL), "a Empty '' classic;c Empty '' classic;");
    rig_end(&r);
}

TEST(what_the_members_of_a_group_send_has_a_limit) { /* D11-23, D11-26 */
    struct rig r;
    rig_settings(&r);
    r.settings.roster_bytes_max = 30;
    rig_start(&r);
    CHECK_EQ(JOIN(&r, &a, .group = "h", .protocols = "range:12345678901234567890123456"),
             GROUP_MAX_SIZE_REACHED);
    CHECK_TEXT(listed(&r, NULL), "");                               /* D11-24 */
    CHECK_EQ(JOIN(&r, &a, .protocols = "range:1234567890"), WAITS); /* 15 */
    CHECK_EQ(JOIN(&r, &b, .protocols = "range:12345678901", .v4 = true), GROUP_MAX_SIZE_REACHED);
    CHECK_EQ(JOIN(&r, &b, .protocols = "range:12345", .instance = "123456"), GROUP_MAX_SIZE_REACHED);
    CHECK_EQ(JOIN(&r, &b, .protocols = "range:12345", .instance = "12345"), WAITS);
    rig_wait(&r, 3000);
    CHECK_EQ(JOIN(&r, &c, .member = a.id, .protocols = "range:12345678901"), GROUP_MAX_SIZE_REACHED);
    CHECK_EQ(JOIN(&r, &c, .protocols = "range:123456", .instance = "12345"), GROUP_MAX_SIZE_REACHED);
    CHECK_EQ(BEAT(&r, .member = a.id, .generation = 1), GROUP_OK); /* nothing changed */
    LEAVE(&r, .instance = "12345");
    CHECK_EQ(JOIN(&r, &c, .member = a.id, .protocols = "range:12345678901"), GROUP_OK);
    rig_end(&r);
}

TEST(what_is_kept_for_all_groups_has_a_limit) { /* D11-80 */
    struct rig r;
    rig_settings(&r);
    r.settings.bytes_max = 4000;
    rig_start(&r);
    enum group_outcome outcome = WAITS;
    for (int i = 0; i < 40 && outcome == WAITS; i++) {
        static struct joined many[40];
        outcome = JOIN(&r, &many[i]);
    }
    CHECK_EQ(outcome, GROUP_NOT_AVAILABLE);
    CHECK(counts(&r).bytes <= 4000 && counts(&r).members > 3);
    coordinator_shutdown(r.c, r.now);
    CHECK_EQ(counts(&r).bytes, 0);
    rig_end(&r);
}

TEST(assignments_that_cant_be_kept_send_everybody_back) { /* D11-40 */
    struct rig r;
    struct synced follower;
    char assign[4000];
    rig_settings(&r);
    r.settings.bytes_max = 4000;
    rig_start(&r);
    JOIN(&r, &a);
    JOIN(&r, &b);
    rig_wait(&r, 3000);
    SYNC(&r, &follower, .member = b.id, .generation = 1);
    memset(assign, 'x', sizeof assign);
    snprintf(assign, 2 * TEXT_SIZE + 10, "%s:ok,%s:", a.id, b.id);
    assign[strlen(assign)] = 'x';
    assign[3999] = 0;
    CHECK_EQ(SYNC(&r, &s, .member = a.id, .generation = 1, .assign = assign), GROUP_NOT_AVAILABLE);
    CHECK_EQ(follower.s.call.outcome, GROUP_NOT_AVAILABLE);
    CHECK_EQ(JOIN(&r, &c, .member = a.id), WAITS);
    CHECK_EQ(JOIN(&r, &a, .member = b.id), GROUP_OK);
    CHECK_EQ(c.j.generation, 2);
    rig_end(&r);
}

TEST(client_texts_are_cut_between_characters) {
    struct rig r;
    static char client[1000];
    rig_begin(&r);
    for (int i = 0; i < 300; i++)
        memcpy(client + 2 * i, "\xc3\xa9", 2);
    JOIN(&r, &a, .client = client);
    rig_wait(&r, 3000);
    CHECK_EQ(strlen(a.id), 254 + 1 + 36); /* 255 would cut one in two */
    rig_end(&r);
}

TEST(a_client_without_a_name_is_a_member) { /* D11-29 */
    struct rig r;
    rig_begin(&r);
    JOIN(&r, &a, .client = "");
    rig_wait(&r, 3000);
    CHECK_EQ(strncmp(a.id, "member-", 7), 0);
    rig_end(&r);
}

TEST(settings_without_random_or_with_an_empty_limit_are_refused) {
    struct rig r;
    rig_settings(&r);
    r.settings.members_max = 0;
    CHECK_EQ(coordinator_new(&r.settings, &r.c), ST_INVALID);
    rig_settings(&r);
    r.settings.random = NULL;
    CHECK_EQ(coordinator_new(&r.settings, &r.c), ST_INVALID);
}

/* --- without memory ------------------------------------------------------------------------------------------------------------ */

/* Whatever can't be had, each call ends once, and a later try works. */
TEST_OOM(a_classic_group_survives_the_want_of_memory) {
    struct rig r;
    static struct joined again;
    rig_settings(&r);
    if (coordinator_new(&r.settings, &r.c))
        return;
    enum group_outcome outcome = JOIN(&r, &a, .instance = "i", .protocols = "x:1,y:2");
    if (outcome == GROUP_NOT_AVAILABLE)
        outcome = JOIN(&r, &a, .instance = "i", .protocols = "x:1,y:2");
    CHECK_EQ(outcome, WAITS);
    outcome = JOIN(&r, &b, .v4 = true, .protocols = "y:3,z:4");
    if (outcome == GROUP_NOT_AVAILABLE)
        outcome = JOIN(&r, &b, .v4 = true, .protocols = "y:3,z:4");
    CHECK_EQ(outcome, GROUP_MEMBER_ID_REQUIRED);
    outcome = JOIN(&r, &c, .member = b.id, .protocols = "y:3,z:4");
    if (outcome == GROUP_NOT_AVAILABLE)
        outcome = JOIN(&r, &c, .member = b.id, .protocols = "y:3,z:4");
    CHECK_EQ(outcome, WAITS);
    rig_wait(&r, 3000);
    CHECK_EQ(a.done + c.done, 2);
    CHECK_EQ(a.roster_count, 2);
    char assign[2 * TEXT_SIZE + 10];
    snprintf(assign, sizeof assign, "%s:one,%s:two", a.id, c.id);
    outcome = SYNC(&r, &s, .member = a.id, .generation = 1, .assign = assign);
    if (outcome == GROUP_NOT_AVAILABLE) { /* D11-40 */
        CHECK_EQ(JOIN(&r, &again, .member = a.id, .instance = "i", .protocols = "x:1,y:2"), WAITS);
        CHECK_EQ(JOIN(&r, &c, .member = c.id, .protocols = "y:3,z:4"), GROUP_OK);
        outcome = SYNC(&r, &s, .member = a.id, .generation = 2, .assign = assign);
    }
    CHECK_EQ(outcome, GROUP_OK);
    outcome = JOIN(&r, &again, .instance = "i", .protocols = "x:new,y:2", .v9 = true);
    if (outcome == GROUP_NOT_AVAILABLE)
        outcome = JOIN(&r, &again, .instance = "i", .protocols = "x:new,y:2", .v9 = true);
    CHECK_EQ(outcome, GROUP_OK);
    CHECK_EQ(again.roster_count, 2);
    outcome = JOIN(&r, &a, .member = c.id, .protocols = "y:other");
    if (outcome == GROUP_NOT_AVAILABLE)
        outcome = JOIN(&r, &a, .member = c.id, .protocols = "y:other");
    CHECK_EQ(outcome, WAITS);
    coordinator_shutdown(r.c, r.now);
    CHECK_EQ(counts(&r).bytes, 0);
    rig_end(&r);
}
