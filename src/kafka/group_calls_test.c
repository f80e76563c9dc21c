/* The handlers of consumer groups: what reaches the coordinator, and how its answers look in each version. */
#include "kafka/call_test.h"

#include "base/be.h"
#include "net/loop.h"

#define SESSION_MS 10000

/* ---- members ---- */

static struct join_group_req_protocol range = {{"range", 5}, {(const uint8_t *)"meta", 4}};

static struct join_group_req join_of(struct str member, struct str instance) {
    return (struct join_group_req){.group_id = STR("g"),
                                   .session_timeout_ms = SESSION_MS,
                                   .rebalance_timeout_ms = SESSION_MS,
                                   .member_id = member,
                                   .group_instance_id = instance,
                                   .protocol_type = STR("consumer"),
                                   .protocols = &range,
                                   .protocols_count = 1};
}

static const struct join_group_res *join_as(struct call *c, int16_t version, struct str member,
                                            struct str instance) {
    struct join_group_req in = join_of(member, instance);
    return call_run(c, JOIN_GROUP, version, &in);
}

static const struct sync_group_res *sync_as(struct call *c, int16_t version, struct str member,
                                            struct str instance, int32_t generation, struct str assignment) {
    struct sync_group_req_assignment one = {member, {(const uint8_t *)assignment.ptr, assignment.len}};
    struct sync_group_req in = {.group_id = STR("g"),
                                .generation_id = generation,
                                .member_id = member,
                                .group_instance_id = instance,
                                .protocol_type = STR("consumer"),
                                .protocol_name = STR("range"),
                                .assignments = &one,
                                .assignments_count = 1};
    return call_run(c, SYNC_GROUP, version, &in);
}

/* A group "g" with one static member, Stable; its member id, as long as the call. */
static struct str stable_group(struct call *c) {
    const struct join_group_res *joined = join_as(c, 9, STR(""), STR("i"));
    CHECK_EQ(joined->error_code, 0);
    const struct sync_group_res *synced =
        sync_as(c, 5, joined->member_id, STR("i"), joined->generation_id, STR("mine"));
    CHECK_EQ(synced->error_code, 0);
    return joined->member_id;
}

static int16_t heartbeat_code(struct call *c, struct str member, struct str instance, int32_t generation) {
    struct heartbeat_req in = {.group_id = STR("g"),
                               .generation_id = generation,
                               .member_id = member,
                               .group_instance_id = instance};
    return ((const struct heartbeat_res *)call_run(c, HEARTBEAT, 4, &in))->error_code;
}

/* ---- JoinGroup ---- */

TEST(a_new_member_gets_its_id_first_from_v4_on) { /* D11-23 */
    for (int16_t version = 0; version <= 9; version++) {
        struct call c;
        call_open(&c, &call_managing);
        const struct join_group_res *out = join_as(&c, version, STR(""), STR_NULL);
        CHECK_EQ(out->error_code, version >= 4 ? 79 : 0);
        CHECK(out->member_id.len > 0 && memcmp(out->member_id.ptr, "client-", 7) == 0);
        if (version >= 4) {
            CHECK_EQ(out->generation_id, -1);
            CHECK_EQ(out->protocol_name.len, version >= 7 ? -1 : 0);
            out = join_as(&c, version, out->member_id, STR_NULL);
        }
        CHECK_EQ(out->error_code, 0);
        CHECK_EQ(out->generation_id, 1);
        CHECK(str_equal(out->protocol_name, STR("range")));
        CHECK_EQ(out->protocol_type.len, version >= 7 ? 8 : -1);
        CHECK(str_equal(out->leader, out->member_id));
        CHECK_EQ(out->members_count, 1);
        CHECK(str_equal(out->members[0].member_id, out->member_id));
        CHECK_EQ(out->members[0].group_instance_id.len, -1);
        CHECK_EQ(out->members[0].metadata.len, 4);
        CHECK_MEM(out->members[0].metadata.ptr, "meta", 4);
        call_close(&c);
    }
}

TEST(a_refused_join_says_why_and_echoes_the_member) { /* D11-20, D11-21, D11-28 */
    static const struct {
        const char *group, *member, *type;
        int32_t session_ms;
        int16_t code;
    } table[] = {
        {"", "m", "consumer", SESSION_MS, 24},     {"g", "m", "consumer", 5999, 26},
        {"g", "m", "consumer", SESSION_MS, 25},    {"g", "", "", SESSION_MS, 23},
        {"g", "", "consumer", 30 * 60000 + 1, 26},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct join_group_req in = join_of(str_of(table[i].member), STR_NULL);
        struct call c;
        in.group_id = str_of(table[i].group);
        in.protocol_type = str_of(table[i].type);
        in.session_timeout_ms = table[i].session_ms;
        call_open(&c, &call_managing);
        const struct join_group_res *out = call_run(&c, JOIN_GROUP, 9, &in);
        CHECK_EQ(out->error_code, table[i].code);
        CHECK_EQ(out->generation_id, -1);
        CHECK(str_equal(out->member_id, in.member_id));
        CHECK_EQ(out->leader.len, 0);
        CHECK_EQ(out->members_count, 0);
        CHECK_EQ(out->protocol_name.len, -1);
        call_close(&c);
    }
}

TEST(a_static_leader_that_returns_skips_its_assignment_from_v9_on) { /* D11-70, D11-71 */
    for (int16_t version = 8; version <= 9; version++) {
        struct call c;
        call_open(&c, &call_managing);
        struct str first = stable_group(&c);
        const struct join_group_res *out = join_as(&c, version, STR(""), STR("i"));
        CHECK_EQ(out->error_code, 0);
        CHECK_EQ(out->generation_id, 1);
        CHECK(!str_equal(out->member_id, first));
        CHECK_EQ(out->skip_assignment, version == 9);
        CHECK(str_equal(out->leader, version == 9 ? out->member_id : first));
        CHECK_EQ(out->members_count, version == 9);
        CHECK_EQ(heartbeat_code(&c, first, STR("i"), 1), 82);
        call_close(&c);
    }
}

/* A join of another member waits for the first one. */
static void other_joins(struct call *other, struct join_group_req *in) {
    *in = join_of(STR(""), STR("other"));
    call_start(other, JOIN_GROUP, 9, in);
    CHECK(other->r.parked != NULL);
    CHECK_EQ(other->r.outcome, REQUEST_RUNNING);
}

/* What other_joins began has reached the coordinator: a member is told of the rebalance. */
static void rebalance_begins(struct call *c, struct str member) {
    CHECK_EQ(heartbeat_code(c, member, STR("i"), 1), 27);
}

TEST(a_join_waits_for_the_others_and_the_leader_alone_learns_who_they_are) { /* D11-12, D11-28 */
    struct call c, other;
    struct join_group_req in;
    call_open(&c, &call_managing);
    call_open_beside(&other, &c);
    struct str first = stable_group(&c);
    other_joins(&other, &in);
    rebalance_begins(&c, first);
    const struct join_group_res *leader = join_as(&c, 9, first, STR("i"));
    const struct join_group_res *follower = call_finish(&other);
    CHECK_EQ(leader->error_code, 0);
    CHECK_EQ(leader->generation_id, 2);
    CHECK_EQ(leader->members_count, 2);
    CHECK_EQ(follower->error_code, 0);
    CHECK_EQ(follower->generation_id, 2);
    CHECK_EQ(follower->members_count, 0);
    CHECK(str_equal(follower->leader, first));
    CHECK(!str_equal(follower->member_id, first));
    call_close(&other);
    call_close(&c);
}

TEST(who_hangs_up_while_its_join_waits_is_answered_at_once) { /* D11-17 */
    struct call c, other;
    struct join_group_req in;
    call_open(&c, &call_managing);
    call_open_beside(&other, &c);
    struct str first = stable_group(&c);
    other_joins(&other, &in);
    rebalance_begins(&c, first);
    call_leave(&other);
    const struct join_group_res *out = call_finish(&other);
    CHECK_EQ(out->error_code, 16);
    CHECK_EQ(out->generation_id, -1);
    call_close(&other);
    call_close(&c);
}

TEST(a_stop_answers_the_joins_that_wait_with_16) { /* D11-28 */
    struct call c, other;
    struct join_group_req in;
    call_open(&c, &call_managing);
    call_open_beside(&other, &c);
    struct str first = stable_group(&c);
    other_joins(&other, &in);
    rebalance_begins(&c, first);
    groups_stop(c.kafka.groups);
    const struct join_group_res *out = call_finish(&other);
    CHECK_EQ(out->error_code, 16);
    CHECK_EQ(heartbeat_code(&c, first, STR("i"), 1), 16);
    call_close(&other);
    call_close(&c);
}

/* ---- SyncGroup, Heartbeat ---- */

TEST(the_leader_brings_assignments_and_gets_its_own) { /* D11-40 */
    for (int16_t version = 0; version <= 5; version++) {
        struct call c;
        call_open(&c, &call_managing);
        struct str member = join_as(&c, 3, STR(""), STR_NULL)->member_id;
        const struct sync_group_res *out = sync_as(&c, version, member, STR_NULL, 1, STR("mine"));
        CHECK_EQ(out->error_code, 0);
        CHECK_EQ(out->assignment.len, 4);
        CHECK_MEM(out->assignment.ptr, "mine", 4);
        CHECK_EQ(out->protocol_type.len, version >= 5 ? 8 : -1);
        CHECK_EQ(out->protocol_name.len, version >= 5 ? 5 : -1);
        call_close(&c);
    }
}

TEST(a_sync_of_another_generation_or_nobody_is_refused) { /* D11-40 */
    struct call c;
    call_open(&c, &call_managing);
    struct str member = stable_group(&c);
    CHECK_EQ(sync_as(&c, 5, member, STR("i"), 2, STR("x"))->error_code, 22);
    CHECK_EQ(sync_as(&c, 5, STR("who"), STR_NULL, 1, STR("x"))->error_code, 25);
    CHECK_EQ(sync_as(&c, 5, STR("who"), STR("i"), 1, STR("x"))->error_code, 82);
    struct sync_group_req in = {.group_id = STR("g"),
                                .generation_id = 1,
                                .member_id = member,
                                .group_instance_id = STR("i"),
                                .protocol_type = STR_NULL,
                                .protocol_name = STR_NULL};
    const struct sync_group_res *out = call_run(&c, SYNC_GROUP, 5, &in);
    CHECK_EQ(out->error_code, 23);
    CHECK_EQ(out->assignment.len, 0);
    CHECK_EQ(out->protocol_name.len, -1);
    out = call_run(&c, SYNC_GROUP, 4, &in); /* has no such fields */
    CHECK_EQ(out->error_code, 0);
    CHECK_EQ(out->assignment.len, 4);
    call_close(&c);
}

TEST(a_heartbeat_tells_a_member_how_it_stands) { /* D11-50 */
    struct call c;
    call_open(&c, &call_managing);
    CHECK_EQ(heartbeat_code(&c, STR("who"), STR_NULL, 1), 25);
    struct str member = stable_group(&c);
    CHECK_EQ(heartbeat_code(&c, member, STR("i"), 1), 0);
    CHECK_EQ(heartbeat_code(&c, member, STR_NULL, 1), 0);
    CHECK_EQ(heartbeat_code(&c, member, STR("i"), 0), 22);
    CHECK_EQ(heartbeat_code(&c, STR("who"), STR("i"), 1), 82);
    struct heartbeat_req in = {.member_id = member, .group_instance_id = STR_NULL, .generation_id = 1};
    for (int16_t version = 0; version <= 4; version++)
        CHECK_EQ(((const struct heartbeat_res *)call_run(&c, HEARTBEAT, version, &in))->error_code, 24);
    call_close(&c);
}

/* ---- LeaveGroup ---- */

TEST(several_leave_with_their_own_outcomes_in_order) { /* D11-51 */
    struct call c;
    call_open(&c, &call_managing);
    struct str member = stable_group(&c);
    struct str pending = join_as(&c, 9, STR(""), STR_NULL)->member_id;
    struct leave_group_req_member leavers[] = {
        {member, STR("other"), STR_NULL}, {STR("who"), STR("i"), STR_NULL}, {pending, STR_NULL, STR("bored")},
        {STR(""), STR_NULL, STR_NULL},    {STR(""), STR("i"), STR_NULL},    {member, STR("i"), STR_NULL},
    };
    const int16_t codes[] = {25, 82, 0, 25, 0, 25};
    struct leave_group_req in = {
        .group_id = STR("g"), .members = leavers, .members_count = COUNT_OF(leavers)};
    const struct leave_group_res *out = call_run(&c, LEAVE_GROUP, 5, &in);
    CHECK_EQ(out->error_code, 0);
    CHECK_EQ(out->members_count, (int)COUNT_OF(leavers));
    for (size_t i = 0; i < COUNT_OF(leavers); i++) {
        CHECK(str_equal(out->members[i].member_id, leavers[i].member_id));
        CHECK_EQ(out->members[i].group_instance_id.len, leavers[i].group_instance_id.len);
        CHECK_EQ(out->members[i].error_code, codes[i]);
    }
    call_close(&c);
}

TEST(before_v3_one_leaves_and_its_code_stands_at_the_top) { /* D11-51 */
    for (int16_t version = 0; version <= 2; version++) {
        struct call c;
        call_open(&c, &call_managing);
        struct str member = join_as(&c, 3, STR(""), STR_NULL)->member_id;
        struct leave_group_req in = {.group_id = STR("g"), .member_id = STR("who")};
        CHECK_EQ(((const struct leave_group_res *)call_run(&c, LEAVE_GROUP, version, &in))->error_code, 25);
        in.member_id = member;
        CHECK_EQ(((const struct leave_group_res *)call_run(&c, LEAVE_GROUP, version, &in))->error_code, 0);
        CHECK_EQ(heartbeat_code(&c, member, STR_NULL, 1), 25);
        call_close(&c);
    }
}

TEST(a_group_id_that_cannot_be_is_said_once_for_all_leavers) { /* D11-51 */
    struct call c;
    call_open(&c, &call_managing);
    struct leave_group_req_member leavers[] = {{STR("a"), STR_NULL, STR_NULL},
                                               {STR("b"), STR_NULL, STR_NULL}};
    struct leave_group_req in = {.group_id = STR(""), .members = leavers, .members_count = 2};
    const struct leave_group_res *out = call_run(&c, LEAVE_GROUP, 3, &in);
    CHECK_EQ(out->error_code, 24);
    CHECK_EQ(out->members_count, 0);
    in.group_id = STR("nobody's");
    out = call_run(&c, LEAVE_GROUP, 3, &in);
    CHECK_EQ(out->error_code, 0);
    CHECK_EQ(out->members_count, 2);
    CHECK_EQ(out->members[1].error_code, 25);
    call_close(&c);
}

/* ---- commits of members ---- */

TEST(a_members_commit_counts_in_its_generation_only) { /* D11-65, D12-4 */
    struct call c;
    call_open(&c, &call_managing);
    struct str member = stable_group(&c);
    struct offset_commit_req_partition partition = {0, 5, -1, STR_NULL};
    struct offset_commit_req_topic topic = {
        .name = STR("here"), .partitions = &partition, .partitions_count = 1};
    const int32_t generations[] = {1, 2, -1};
    const int16_t codes[] = {0, 22, 25};
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        struct offset_commit_req in = {.group_id = STR("g"),
                                       .generation_id_or_member_epoch = generations[i],
                                       .member_id = i < 2 ? member : STR(""),
                                       .group_instance_id = STR_NULL,
                                       .topics = &topic,
                                       .topics_count = 1};
        const struct offset_commit_res *out = call_run(&c, OFFSET_COMMIT, 8, &in);
        CHECK_EQ(out->topics[0].partitions[0].error_code, codes[i]);
        CHECK_EQ(call_fake.commits, 1);
    }
    call_close(&c);
}

/* ---- DescribeGroups ---- */

static const struct describe_groups_res *describe(struct call *c, int16_t version, struct str *names,
                                                  int32_t count, bool operations) {
    struct describe_groups_req in = {.groups = {names, count}, .include_authorized_operations = operations};
    return call_run(c, DESCRIBE_GROUPS, version, &in);
}

TEST(a_stable_group_is_described_with_its_members) { /* D11-60 */
    for (int16_t version = 0; version <= 6; version++) {
        struct call c;
        struct str names[] = {STR("g"), STR("g")};
        call_open(&c, &call_managing);
        struct str member = stable_group(&c);
        const struct describe_groups_res *out = describe(&c, version, names, 2, true);
        CHECK_EQ(out->groups_count, 2);
        for (int i = 0; i < 2; i++) {
            const struct describe_groups_res_group *g = &out->groups[i];
            CHECK_EQ(g->error_code, 0);
            CHECK_EQ(g->error_message.len, -1);
            CHECK(str_equal(g->group_id, STR("g")));
            CHECK(str_equal(g->group_state, STR("Stable")));
            CHECK(str_equal(g->protocol_type, STR("consumer")));
            CHECK(str_equal(g->protocol_data, STR("range")));
            CHECK_EQ(g->authorized_operations, version >= 3 ? 3400 : INT32_MIN);
            CHECK_EQ(g->members_count, 1);
            CHECK(str_equal(g->members[0].member_id, member));
            CHECK_EQ(g->members[0].group_instance_id.len, version >= 4 ? 1 : -1);
            CHECK(str_equal(g->members[0].client_id, STR("client")));
            CHECK_EQ(g->members[0].member_metadata.len, 4);
            CHECK_EQ(g->members[0].member_assignment.len, 4);
        }
        call_close(&c);
    }
}

TEST(a_group_that_nobody_knows_is_dead_and_from_v6_on_69) { /* D11-60 */
    struct str names[] = {STR("committed"), STR("nobody's"), STR("")};
    for (int16_t version = 5; version <= 6; version++) {
        struct call c;
        call_open(&c, &call_managing);
        const struct describe_groups_res *out = describe(&c, version, names, 3, true);
        CHECK_EQ(out->groups[0].error_code, 0);
        CHECK(str_equal(out->groups[0].group_state, STR("Empty")));
        CHECK_EQ(out->groups[0].protocol_type.len, 0);
        CHECK_EQ(out->groups[0].authorized_operations, 3400);
        CHECK_EQ(out->groups[1].authorized_operations, version == 6 ? INT32_MIN : 3400);
        CHECK_EQ(out->groups[1].error_code, version == 6 ? 69 : 0);
        CHECK(str_equal(out->groups[1].group_state, STR("Dead")));
        CHECK_EQ(out->groups[1].members_count, 0);
        if (version == 6)
            CHECK(str_equal(out->groups[1].error_message, STR("Group nobody's not found.")));
        call_close(&c);
    }
}

TEST(a_list_that_cannot_be_had_is_no_missing_group) { /* D11-66 */
    struct str names[] = {STR("g"), STR("committed")};
    struct call c;
    call_open(&c, &call_managing);
    stable_group(&c);
    call_fake.groups_status = ST_UNAVAILABLE;
    const struct describe_groups_res *described = describe(&c, 6, names, 2, false);
    CHECK_EQ(described->groups[0].error_code, 0);
    CHECK_EQ(described->groups[1].error_code, 14);
    struct list_groups_req list = {0};
    CHECK_EQ(((const struct list_groups_res *)call_run(&c, LIST_GROUPS, 5, &list))->error_code, 14);
    struct delete_groups_req del = {.groups_names = {names, 2}};
    const struct delete_groups_res *deleted = call_run(&c, DELETE_GROUPS, 2, &del);
    CHECK_EQ(deleted->results[0].error_code, 14);
    CHECK_EQ(deleted->results[1].error_code, 14);
    struct offset_delete_req off = {.group_id = STR("committed")};
    CHECK_EQ(((const struct offset_delete_res *)call_run(&c, OFFSET_DELETE, 0, &off))->error_code, 14);
    CHECK_EQ(call_fake.forgets, 0);
    call_close(&c);
}

TEST(a_backend_that_keeps_no_offsets_has_no_groups_of_its_own) { /* D12-7 */
    struct str name = STR("committed");
    struct list_groups_req list = {0};
    struct call c;
    call_open(&c, &call_stub);
    const struct list_groups_res *out = call_run(&c, LIST_GROUPS, 5, &list);
    CHECK_EQ(out->error_code, 0);
    CHECK_EQ(out->groups_count, 0);
    CHECK_EQ(describe(&c, 6, &name, 1, false)->groups[0].error_code, 69);
    call_close(&c);
}

/* ---- ListGroups ---- */

TEST(groups_are_listed_by_id_with_those_that_have_offsets_alone) { /* D11-61 */
    for (int16_t version = 0; version <= 5; version++) {
        struct list_groups_req in = {0};
        struct call c;
        call_open(&c, &call_managing);
        stable_group(&c);
        const struct list_groups_res *out = call_run(&c, LIST_GROUPS, version, &in);
        CHECK_EQ(out->error_code, 0);
        CHECK_EQ(out->groups_count, 3);
        const char *names[] = {"committed", "g", "lost"};
        for (int i = 0; i < 3; i++) {
            CHECK(str_equal(out->groups[i].group_id, str_of(names[i])));
            CHECK(str_equal(out->groups[i].protocol_type, i == 1 ? STR("consumer") : STR("")));
            if (version >= 4)
                CHECK(str_equal(out->groups[i].group_state, i == 1 ? STR("Stable") : STR("Empty")));
            if (version >= 5)
                CHECK(str_equal(out->groups[i].group_type, STR("classic")));
        }
        call_close(&c);
    }
}

TEST(filters_look_at_no_case_and_what_they_do_not_know_matches_nothing) { /* D11-61 */
    static const struct {
        const char *state, *type;
        int32_t count;
    } table[] = {
        {"stable", NULL, 1}, {" EMPTY ", NULL, 2},      {"Sleeping", NULL, 0}, {NULL, "Classic", 3},
        {NULL, "share", 0},  {"Stable", "consumer", 0}, {"", NULL, 0},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct str wanted_state = str_of(table[i].state ? table[i].state : ""),
                   type = str_of(table[i].type ? table[i].type : "");
        struct list_groups_req in = {.states_filter = {&wanted_state, table[i].state != NULL},
                                     .types_filter = {&type, table[i].type != NULL}};
        struct call c;
        call_open(&c, &call_managing);
        stable_group(&c);
        const struct list_groups_res *out = call_run(&c, LIST_GROUPS, 5, &in);
        CHECK_EQ(out->error_code, 0);
        CHECK_EQ(out->groups_count, table[i].count);
        call_close(&c);
    }
}

/* ---- DeleteGroups ---- */

TEST(groups_without_members_are_deleted_with_their_offsets) { /* D11-62 */
    struct str names[] = {STR("g"), STR("nobody's"), STR("committed")};
    const int16_t codes[] = {68, 69, 0};
    for (int16_t version = 0; version <= 3; version++) {
        struct delete_groups_req in = {.groups_names = {names, 3}};
        struct call c;
        call_open(&c, &call_managing);
        stable_group(&c);
        const struct delete_groups_res *out = call_run(&c, DELETE_GROUPS, version, &in);
        CHECK_EQ(out->results_count, 3);
        for (int i = 0; i < 3; i++) {
            CHECK(str_equal(out->results[i].group_id, names[i]));
            CHECK_EQ(out->results[i].error_code, codes[i]);
            CHECK_EQ(out->results[i].error_message.len, -1);
        }
        CHECK_EQ(call_fake.forgets, 1);
        CHECK(str_equal(call_fake.forgotten, STR("committed")));
        call_close(&c);
    }
}

TEST(a_group_that_is_named_twice_is_deleted_once) { /* D11-62 */
    struct str names[] = {STR("committed"), STR("nobody's"), STR("committed"), STR("lost"), STR("nobody's")};
    const int16_t codes[] = {0, 69, 0};
    struct delete_groups_req in = {.groups_names = {names, COUNT_OF(names)}};
    struct call c;
    call_open(&c, &call_managing);
    const struct delete_groups_res *out = call_run(&c, DELETE_GROUPS, 2, &in);
    CHECK_EQ(out->results_count, 3);
    for (int i = 0; i < 3; i++) {
        CHECK(str_equal(out->results[i].group_id, names[i < 2 ? i : 3]));
        CHECK_EQ(out->results[i].error_code, codes[i]);
    }
    CHECK_EQ(call_fake.forgets, 2);
    call_close(&c);
}

TEST(a_group_whose_offsets_stay_is_not_said_to_be_deleted) { /* D11-62 */
    static const struct {
        enum status st;
        int16_t code;
    } table[] = {{ST_OK, 0}, {ST_NO_GROUP, 0}, {ST_UNAVAILABLE, 14}, {ST_IO, 16}};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct str names[] = {STR("committed"), STR("lost")};
        struct delete_groups_req in = {.groups_names = {names, 2}};
        struct call c;
        call_open(&c, &call_managing);
        call_fake.forget_status = table[i].st;
        const struct delete_groups_res *out = call_run(&c, DELETE_GROUPS, 2, &in);
        CHECK_EQ(out->results[0].error_code, table[i].code);
        CHECK_EQ(out->results[1].error_code, table[i].code);
        CHECK_EQ(call_fake.forgets, 2);
        call_close(&c);
    }
}

/* ---- OffsetDelete ---- */

static struct offset_delete_req_partition two[] = {{0}, {7}};
static struct offset_delete_req_topic asked[] = {{{"here", 4}, two, 2}, {{"dot.ted", 7}, two, 1}};

static const struct offset_delete_res *offset_delete(struct call *c, const char *group) {
    struct offset_delete_req in = {.group_id = str_of(group), .topics = asked, .topics_count = 2};
    return call_run(c, OFFSET_DELETE, 0, &in);
}

TEST(offsets_of_a_group_without_members_are_forgotten) { /* D11-63 */
    struct call c;
    call_open(&c, &call_managing);
    const struct offset_delete_res *out = offset_delete(&c, "committed");
    CHECK_EQ(out->error_code, 0);
    CHECK_EQ(out->topics_count, 2);
    CHECK_EQ(out->topics[0].partitions[0].error_code, 0);
    CHECK_EQ(out->topics[0].partitions[1].partition_index, 7);
    CHECK_EQ(out->topics[0].partitions[1].error_code, 3);
    CHECK_EQ(out->topics[1].partitions[0].error_code, 0);
    CHECK_EQ(call_fake.committed.offset, -1);
    out = offset_delete(&c, "nobody's");
    CHECK_EQ(out->error_code, 69);
    CHECK_EQ(out->topics_count, 0);
    CHECK_EQ(offset_delete(&c, "")->error_code, 24);
    CHECK_EQ(call_fake.commits, 1);
    call_close(&c);
}

/* A consumer's subscription to topics, as it stands in its join: version 0, the names, no user data. */
static struct bytes subscription(uint8_t room[64], const char *topic, int32_t count) {
    size_t len = strlen(topic);
    be_set(room, 2, 0);
    be_set(room + 2, 4, (uint32_t)count);
    be_set(room + 6, 2, len);
    memcpy(room + 8, topic, len);
    be_set(room + 8 + len, 4, UINT32_MAX);
    return (struct bytes){room, (int32_t)len + 12};
}

static const struct offset_delete_res *offset_delete_of_members(struct call *c, const char *type,
                                                                struct bytes metadata) {
    struct join_group_req_protocol protocol = {STR("range"), metadata};
    struct join_group_req in = join_of(STR(""), STR("i"));
    in.protocol_type = str_of(type);
    in.protocols = &protocol;
    CHECK_EQ(((const struct join_group_res *)call_run(c, JOIN_GROUP, 9, &in))->error_code, 0);
    return offset_delete(c, "g");
}

TEST(offsets_of_topics_that_a_member_reads_stay) { /* D11-63 */
    uint8_t room[64];
    struct call c;
    call_open(&c, &call_managing);
    const struct offset_delete_res *out =
        offset_delete_of_members(&c, "consumer", subscription(room, "here", 1));
    CHECK_EQ(out->error_code, 0);
    CHECK_EQ(out->topics[0].partitions[0].error_code, 86);
    CHECK_EQ(out->topics[0].partitions[1].error_code, 86);
    CHECK_EQ(out->topics[1].partitions[0].error_code, 0);
    call_close(&c);
}

TEST(members_of_another_kind_than_consumers_keep_all_offsets) { /* D11-63 */
    uint8_t room[64];
    struct call c;
    call_open(&c, &call_managing);
    const struct offset_delete_res *out =
        offset_delete_of_members(&c, "connect", subscription(room, "here", 1));
    CHECK_EQ(out->error_code, 68);
    CHECK_EQ(out->topics_count, 0);
    CHECK_EQ(call_fake.commits, 0);
    call_close(&c);
}

TEST(a_member_whose_subscription_cannot_be_read_keeps_all_offsets) { /* D11-63 */
    uint8_t room[64];
    const int32_t counts[] = {INT32_MAX, -1, 1};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct bytes whole = subscription(room, "here", counts[i]);
        for (int32_t cut = 0; cut <= whole.len; cut++) {
            bool readable = counts[i] == 1 && cut >= 12; /* what follows the names doesn't matter */
            struct call c;
            call_open(&c, &call_managing);
            const struct offset_delete_res *out =
                offset_delete_of_members(&c, "consumer", (struct bytes){whole.ptr, cut});
            CHECK_EQ(out->error_code, 0);
            CHECK_EQ(out->topics[0].partitions[0].error_code, 86);
            CHECK_EQ(out->topics[1].partitions[0].error_code, readable ? 0 : 86);
            call_close(&c);
        }
    }
}
