/* The handlers of consumer groups (KIP-848): what reaches the coordinator, and how its answers look. */
#include "kafka/call_test.h"

#include "base/clock.h"

#define HERE_PARTS 3 /* of the backend's topic "here" */

static struct str here = {"here", 4};

static struct consumer_group_heartbeat_req beat_of(const char *member, int32_t epoch) {
    return (struct consumer_group_heartbeat_req){.group_id = STR("g"),
                                                 .member_id = str_of(member),
                                                 .member_epoch = epoch,
                                                 .instance_id = STR_NULL,
                                                 .rack_id = STR_NULL,
                                                 .rebalance_timeout_ms = -1,
                                                 .subscribed_topic_names = {NULL, -1},
                                                 .subscribed_topic_regex = STR_NULL,
                                                 .server_assignor = STR_NULL,
                                                 .topic_partitions_count = -1};
}

static struct consumer_group_heartbeat_req join_of(const char *member) {
    struct consumer_group_heartbeat_req in = beat_of(member, 0);
    in.rebalance_timeout_ms = 30000;
    in.subscribed_topic_names = (struct strs){&here, 1};
    in.topic_partitions_count = 0;
    return in;
}

static const struct consumer_group_heartbeat_res *beat(struct call *c, int16_t version,
                                                       const struct consumer_group_heartbeat_req *in) {
    return call_run(c, CONSUMER_GROUP_HEARTBEAT, version, in);
}

/* Member "m" of group "g", alone, with all partitions of "here"; its epoch. */
static int32_t joined(struct call *c) {
    struct consumer_group_heartbeat_req in = join_of("m");
    const struct consumer_group_heartbeat_res *out = beat(c, 1, &in);
    CHECK_EQ(out->error_code, 0);
    return out->member_epoch;
}

/* ---- ConsumerGroupHeartbeat ---- */

TEST(a_member_that_joins_has_its_partitions_at_once) { /* D11-93, D11-97 */
    for (int16_t version = 0; version <= 1; version++) {
        struct consumer_group_heartbeat_req in = join_of("m");
        struct call c;
        call_open(&c, &call_managing);
        const struct consumer_group_heartbeat_res *out = beat(&c, version, &in);
        CHECK_EQ(out->error_code, 0);
        CHECK_EQ(out->error_message.len, -1);
        CHECK(str_equal(out->member_id, STR("m")));
        CHECK(out->member_epoch > 0);
        CHECK_EQ(out->heartbeat_interval_ms, 5000);
        CHECK_EQ(out->assignment->topic_partitions_count, 1);
        CHECK_EQ(out->assignment->topic_partitions[0].topic_id.b[0], 2);
        CHECK_EQ(out->assignment->topic_partitions[0].partitions.count, HERE_PARTS);
        for (int32_t i = 0; i < HERE_PARTS; i++)
            CHECK_EQ(out->assignment->topic_partitions[0].partitions.items[i], i);

        in = beat_of("m", out->member_epoch);
        out = beat(&c, version, &in);
        CHECK_EQ(out->error_code, 0);
        CHECK(!out->assignment); /* as before */
        call_close(&c);
    }
}

TEST(topics_come_one_after_the_other_each_with_its_partitions) { /* D11-93 */
    struct str names[] = {{"dot.ted", 7}, {"here", 4}, {"nope", 4}, {"a b", 3}};
    struct consumer_group_heartbeat_req in = join_of("m");
    in.subscribed_topic_names = (struct strs){names, (int32_t)COUNT_OF(names)};
    struct call c;
    call_open(&c, &call_managing);
    const struct consumer_group_heartbeat_res *out = beat(&c, 1, &in);
    CHECK_EQ(out->error_code, 0);
    CHECK_EQ(out->assignment->topic_partitions_count, 2);
    int32_t by_id[3] = {0};
    for (int32_t i = 0; i < 2; i++)
        by_id[out->assignment->topic_partitions[i].topic_id.b[0]] =
            out->assignment->topic_partitions[i].partitions.count;
    CHECK_EQ(by_id[1], 1);
    CHECK_EQ(by_id[2], HERE_PARTS);
    call_close(&c);
}

TEST(a_member_makes_its_id_from_v1_on_and_gets_one_before) { /* D11-90 */
    struct consumer_group_heartbeat_req in = join_of("");
    struct call c;
    call_open(&c, &call_managing);
    const struct consumer_group_heartbeat_res *out = beat(&c, 1, &in);
    CHECK_EQ(out->error_code, 42);
    CHECK(str_equal(out->error_message, STR("MemberId can't be empty.")));
    out = beat(&c, 0, &in);
    CHECK_EQ(out->error_code, 0);
    CHECK_EQ(out->member_id.len, 36);
    call_close(&c);
}

TEST(a_refused_heartbeat_says_why_and_nothing_else) { /* D11-90, D11-91 */
    static const struct {
        const char *group, *member, *instance, *rack, *regex, *assignor;
        int32_t epoch, rebalance_ms, topics, owned;
        int16_t code;
        const char *text;
    } table[] = {
        {"", "m", NULL, NULL, NULL, NULL, 0, 1, 1, 0, 42, "GroupId can't be empty."},
        {"g", "", NULL, NULL, NULL, NULL, 4, 1, 1, 0, 42, "MemberId can't be empty."},
        {"g", "m", "", NULL, NULL, NULL, 0, 1, 1, 0, 42, "InstanceId can't be empty."},
        {"g", "m", NULL, "", NULL, NULL, 0, 1, 1, 0, 42, "RackId can't be empty."},
        {"g", "m", NULL, NULL, NULL, NULL, -3, 1, 1, 0, 42, "MemberEpoch is invalid."},
        {"g", "m", NULL, NULL, NULL, NULL, -2, 1, 1, 0, 42, "InstanceId can't be null."},
        {"g", "m", NULL, NULL, NULL, NULL, 0, -1, 1, 0, 42,
         "RebalanceTimeoutMs must be provided in first request."},
        {"g", "m", NULL, NULL, NULL, NULL, 0, 1, 1, -1, 42,
         "TopicPartitions must be empty when (re-)joining."},
        {"g", "m", NULL, NULL, NULL, NULL, 0, 1, -1, 0, 42,
         "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."},
        {"g", "m", NULL, NULL, NULL, "nope", 0, 1, 1, 0, 112,
         "ServerAssignor nope is not supported. Supported assignors: uniform, range."},
        {"g", "m", NULL, NULL, "a(", NULL, 0, 1, -1, 0, 128,
         "SubscribedTopicRegex `a(` is not a valid regular expression: missing closing )."},
        {"nope", "m", NULL, NULL, "a(", NULL, 3, -1, -1, -1, 25, "Member m is not a member of group nope."},
        {"nope", "m", NULL, NULL, "a(", NULL, -1, -1, -1, -1, 25, "Member m is not a member of group nope."},
        {"nope", "m", NULL, NULL, NULL, NULL, 3, -1, -1, -1, 25, "Member m is not a member of group nope."},
        {"nope", "m", NULL, NULL, NULL, NULL, -1, -1, -1, -1, 25, "Member m is not a member of group nope."},
        {"g", "other", NULL, NULL, NULL, NULL, 1, -1, -1, -1, 25, "Member other is not a member of group g."},
        {"g", "m", NULL, NULL, NULL, NULL, 99, -1, -1, -1, 110,
         "The member epoch is not the one known by the group coordinator. The member must abandon all its "
         "partitions and rejoin."},
    };
    struct call c;
    call_open(&c, &call_managing);
    joined(&c);
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct consumer_group_heartbeat_req in = beat_of(table[i].member, table[i].epoch);
        in.group_id = str_of(table[i].group);
        in.instance_id = table[i].instance ? str_of(table[i].instance) : STR_NULL;
        in.rack_id = table[i].rack ? str_of(table[i].rack) : STR_NULL;
        in.rebalance_timeout_ms = table[i].rebalance_ms;
        in.subscribed_topic_names = (struct strs){&here, table[i].topics};
        in.subscribed_topic_regex = table[i].regex ? str_of(table[i].regex) : STR_NULL;
        in.server_assignor = table[i].assignor ? str_of(table[i].assignor) : STR_NULL;
        in.topic_partitions_count = table[i].owned;
        const struct consumer_group_heartbeat_res *out = beat(&c, 1, &in);
        CHECK_EQ(out->error_code, table[i].code);
        CHECK(str_equal(out->error_message, str_of(table[i].text)));
        CHECK_EQ(out->member_id.len, -1);
        CHECK_EQ(out->member_epoch, 0);
        CHECK_EQ(out->heartbeat_interval_ms, 0);
        CHECK(!out->assignment);
    }
    call_close(&c);
}

TEST(names_that_are_too_long_together_are_not_even_looked_up) { /* D11-80, D11-90 */
    static char text[200];
    static struct str names[1000];
    memset(text, 'x', sizeof text);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        names[i] = (struct str){text, (int32_t)sizeof text};
    struct consumer_group_heartbeat_req in = join_of("m");
    in.subscribed_topic_names = (struct strs){names, (int32_t)COUNT_OF(names)};
    struct call c;
    call_open(&c, &call_managing);
    CHECK_EQ(beat(&c, 1, &in)->error_code, 42);
    CHECK_EQ(call_fake.calls, 0);
    call_close(&c);
}

TEST(who_leaves_is_told_so_without_an_interval) { /* D11-93, D11-94 */
    struct consumer_group_heartbeat_req in = join_of("m");
    struct call c;
    call_open(&c, &call_managing);
    in.instance_id = STR("i");
    CHECK_EQ(beat(&c, 1, &in)->error_code, 0);
    in = beat_of("m", -2);
    in.instance_id = STR("i");
    const struct consumer_group_heartbeat_res *out = beat(&c, 1, &in);
    CHECK_EQ(out->error_code, 0);
    CHECK_EQ(out->member_epoch, -2);
    CHECK_EQ(out->heartbeat_interval_ms, 0);
    CHECK(!out->assignment);
    in = join_of("n"); /* the next one with that name has its place */
    in.instance_id = STR("i");
    out = beat(&c, 1, &in);
    CHECK_EQ(out->error_code, 0);
    CHECK_EQ(out->assignment->topic_partitions[0].partitions.count, HERE_PARTS);
    in = beat_of("n", -1);
    in.instance_id = STR("i");
    out = beat(&c, 1, &in);
    CHECK_EQ(out->error_code, 0);
    CHECK_EQ(out->member_epoch, -1);
    call_close(&c);
}

TEST(members_of_a_classic_group_keep_consumers_out) { /* D11-96 */
    struct join_group_req_protocol range = {{"range", 5}, {(const uint8_t *)"", 0}};
    struct join_group_req join = {.group_id = STR("g"),
                                  .session_timeout_ms = 10000,
                                  .rebalance_timeout_ms = 10000,
                                  .member_id = STR(""),
                                  .group_instance_id = STR_NULL,
                                  .protocol_type = STR("consumer"),
                                  .protocols = &range,
                                  .protocols_count = 1};
    struct consumer_group_heartbeat_req in = join_of("m");
    struct str group = STR("g");
    struct consumer_group_describe_req describe = {.group_ids = {&group, 1}};
    struct call c;
    call_open(&c, &call_managing);
    const struct join_group_res *member = call_run(&c, JOIN_GROUP, 3, &join);
    CHECK_EQ(member->error_code, 0);
    const struct consumer_group_heartbeat_res *refused = beat(&c, 1, &in);
    CHECK_EQ(refused->error_code, 69);
    CHECK(str_equal(refused->error_message, STR("Group g is not a consumer group.")));
    const struct consumer_group_describe_res *out = call_run(&c, CONSUMER_GROUP_DESCRIBE, 1, &describe);
    CHECK_EQ(out->groups[0].error_code, 69);
    CHECK(str_equal(out->groups[0].error_message, STR("Group g is not a consumer group.")));
    call_close(&c);
}

/* ---- ConsumerGroupDescribe ---- */

TEST(a_description_has_what_members_read_have_and_are_to_have) { /* D11-98 */
    for (int16_t version = 0; version <= 1; version++) {
        struct str groups[] = {{"g", 1}, {"nope", 4}, {"", 0}, {"g", 1}};
        struct consumer_group_describe_req in = {.group_ids = {groups, 4},
                                                 .include_authorized_operations = true};
        struct consumer_group_heartbeat_req join = join_of("m");
        struct call c;
        call_open(&c, &call_managing);
        join.rack_id = STR("r");
        int32_t epoch = beat(&c, 1, &join)->member_epoch;
        const struct consumer_group_describe_res *out = call_run(&c, CONSUMER_GROUP_DESCRIBE, version, &in);
        CHECK_EQ(out->groups_count, 4);
        for (int32_t i = 0; i < 4; i += 3) {
            const struct consumer_group_describe_res_group *g = &out->groups[i];
            CHECK_EQ(g->error_code, 0);
            CHECK_EQ(g->error_message.len, -1);
            CHECK(str_equal(g->group_id, STR("g")));
            CHECK(str_equal(g->group_state, STR("Stable")));
            CHECK_EQ(g->group_epoch, epoch);
            CHECK_EQ(g->assignment_epoch, epoch);
            CHECK(str_equal(g->assignor_name, STR("uniform")));
            CHECK_EQ(g->authorized_operations, 3400);
            CHECK_EQ(g->members_count, 1);
            const struct consumer_group_describe_res_member *m = &g->members[0];
            CHECK(str_equal(m->member_id, STR("m")));
            CHECK_EQ(m->instance_id.len, -1);
            CHECK(str_equal(m->rack_id, STR("r")));
            CHECK_EQ(m->member_epoch, epoch);
            CHECK(str_equal(m->client_id, STR("client")));
            CHECK_EQ(m->subscribed_topic_names.count, 1);
            CHECK(str_equal(m->subscribed_topic_names.items[0], STR("here")));
            CHECK_EQ(m->subscribed_topic_regex.len, 0);
            CHECK_EQ(m->member_type, version >= 1 ? 1 : -1);
            CHECK_EQ(m->assignment->topic_partitions_count, 1);
            CHECK(str_equal(m->assignment->topic_partitions[0].topic_name, STR("here")));
            CHECK_EQ(m->assignment->topic_partitions[0].topic_id.b[0], 2);
            CHECK_EQ(m->assignment->topic_partitions[0].partitions.count, HERE_PARTS);
            CHECK_EQ(m->target_assignment->topic_partitions[0].partitions.count, HERE_PARTS);
        }
        CHECK_EQ(out->groups[1].error_code, 69);
        CHECK(str_equal(out->groups[1].error_message, STR("Group nope not found.")));
        CHECK_EQ(out->groups[1].authorized_operations, INT32_MIN);
        CHECK_EQ(out->groups[2].error_code, 24);
        call_close(&c);
    }
}

TEST(a_member_with_a_pattern_gets_its_topics_with_a_later_heartbeat) { /* D11-99 */
    struct str group = STR("g");
    struct consumer_group_describe_req describe = {.group_ids = {&group, 1}};
    struct consumer_group_heartbeat_req in = join_of("m");
    struct call c;
    call_open(&c, &call_managing);
    in.subscribed_topic_names = (struct strs){NULL, -1};
    in.subscribed_topic_regex = STR("^h.*e$|nothing");
    const struct consumer_group_heartbeat_res *out = beat(&c, 1, &in);
    CHECK_EQ(out->error_code, 0);
    int64_t until_ms = clock_ms() + 20000;
    in = beat_of("m", out->member_epoch);
    while (!out->assignment || out->assignment->topic_partitions_count == 0) {
        CHECK(clock_ms() < until_ms);
        out = beat(&c, 1, &in); /* the topics are listed and matched meanwhile */
        CHECK_EQ(out->error_code, 0);
    }
    CHECK_EQ(out->assignment->topic_partitions_count, 1);
    CHECK_EQ(out->assignment->topic_partitions[0].topic_id.b[0], 2);
    CHECK_EQ(out->assignment->topic_partitions[0].partitions.count, HERE_PARTS);
    const struct consumer_group_describe_res *seen = call_run(&c, CONSUMER_GROUP_DESCRIBE, 1, &describe);
    CHECK_EQ(seen->groups[0].members[0].subscribed_topic_names.count, 0);
    CHECK(str_equal(seen->groups[0].members[0].subscribed_topic_regex, STR("^h.*e$|nothing")));
    call_close(&c);
}

/* ---- the offsets of its members ---- */

TEST(offsets_are_told_to_members_of_this_epoch_only) { /* D11-95 */
    int32_t partition = 0;
    struct offset_fetch_req_group_topic topic = {.name = here, .partition_indexes = {&partition, 1}};
    struct offset_fetch_req_group groups[4];
    struct offset_fetch_req in = {.groups = groups, .groups_count = 4};
    struct call c;
    call_open(&c, &call_managing);
    int32_t epoch = joined(&c);
    for (int32_t i = 0; i < 4; i++)
        groups[i] = (struct offset_fetch_req_group){.group_id = STR("g"),
                                                    .member_id = STR("m"),
                                                    .member_epoch = epoch,
                                                    .topics = &topic,
                                                    .topics_count = 1};
    groups[1].member_epoch = epoch + 1;
    groups[2].member_id = STR("other");
    groups[3].member_id = STR_NULL; /* an admin client */
    groups[3].member_epoch = -1;
    static const int16_t codes[] = {0, 113, 25, 0};
    const struct offset_fetch_res *out = call_run(&c, OFFSET_FETCH, 9, &in);
    CHECK_EQ(out->groups_count, 4);
    for (int32_t i = 0; i < 4; i++) {
        CHECK_EQ(out->groups[i].error_code, codes[i]);
        CHECK_EQ(out->groups[i].topics_count, codes[i] ? 0 : 1);
        CHECK(codes[i] || out->groups[i].topics[0].partitions[0].committed_offset == 17);
    }
    call_close(&c);
}

TEST(commits_of_another_epoch_are_refused) { /* D11-95 */
    struct offset_commit_req_partition partition = {.partition_index = 0, .committed_offset = 5};
    struct offset_commit_req_topic topic = {.name = here, .partitions = &partition, .partitions_count = 1};
    struct offset_commit_req in = {.group_id = STR("g"),
                                   .member_id = STR("m"),
                                   .group_instance_id = STR_NULL,
                                   .topics = &topic,
                                   .topics_count = 1};
    struct call c;
    call_open(&c, &call_managing);
    int32_t epoch = joined(&c);
    static const struct {
        int32_t more;
        int16_t version, code;
    } table[] = {{0, 9, 0}, {1, 9, 113}, {0, 8, 35}};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        in.generation_id_or_member_epoch = epoch + table[i].more;
        const struct offset_commit_res *out = call_run(&c, OFFSET_COMMIT, table[i].version, &in);
        CHECK_EQ(out->topics[0].partitions[0].error_code, table[i].code);
    }
    CHECK_EQ(call_fake.commits, 1);
    call_close(&c);
}
