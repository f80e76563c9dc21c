/* Ten thousand members in a thousand groups: what their heartbeats cost. */
#include "group/rig_test.h"

#include "testing/test.h"

#include "base/clock.h"
#include "base/mem.h"

#define GROUPS  1000
#define MEMBERS 10

static struct { char group[32], id[MEMBERS][64]; } all[GROUPS];
static struct joined x[MEMBERS];

static void group_make(struct rig *r, int which) {
    struct synced s;
    snprintf(all[which].group, sizeof all[which].group, "group-%d", which);
    for (int i = 0; i < MEMBERS; i++)
        CHECK_EQ(JOIN(r, &x[i], .group = all[which].group, .session_ms = 45000), WAITS);
    rig_wait(r, 10);
    for (int i = 0; i < MEMBERS; i++)
        snprintf(all[which].id[i], sizeof all[which].id[i], "%.60s", x[i].id);
    CHECK_EQ(SYNC(r, &s, .group = all[which].group, .member = x[0].leader, .generation = 1), GROUP_OK);
    for (int i = 0; i < MEMBERS; i++)
        CHECK_EQ(SYNC(r, &s, .group = all[which].group, .member = all[which].id[i], .generation = 1),
                 GROUP_OK);
}

TEST(the_heartbeats_of_ten_thousand_members_take_no_memory) {
    struct rig r;
    int64_t beats = 0;
    rig_settings(&r);
    r.settings.initial_delay_ms = 10;
    r.settings.groups_max = GROUPS;
    rig_start(&r);
    for (int i = 0; i < GROUPS; i++)
        group_make(&r, i);
    struct coordinator_counts n = counts(&r);
    CHECK_EQ(n.members, GROUPS * MEMBERS);
    mem_fail_at(1);
    int64_t began_us = clock_us();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < GROUPS; i++) {
            for (int j = 0; j < MEMBERS; j++, beats++)
                CHECK_EQ(BEAT(&r, .group = all[i].group, .member = all[i].id[j], .generation = 1), GROUP_OK);
            coordinator_tick(r.c, r.now += 3);
        }
    }
    int64_t took_us = clock_us() - began_us;
    CHECK(mem_fail_pending());
    mem_fail_at(0);
    printf("%" PRId64 " heartbeats, %" PRId64 " ns each; %" PRId64 " bytes a member\n", beats,
           took_us * 1000 / beats, n.bytes / n.members);
    rig_end(&r);
}
