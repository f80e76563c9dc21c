#include "base/clock.h"
#include "base/mem.h"
#include "kafka/call_test.h"

/* ---- OffsetCommit ---- */

static struct offset_commit_req commit_of(struct offset_commit_req_topic *topics, int32_t count) {
    return (struct offset_commit_req){.group_id = STR("g"),
                                      .generation_id_or_member_epoch = -1,
                                      .member_id = STR(""),
                                      .group_instance_id = STR_NULL,
                                      .retention_time_ms = -1,
                                      .topics = topics,
                                      .topics_count = count};
}

/* The code that one partition gets. */
static int16_t commit_code(const struct backend_ops *ops, int16_t version, struct offset_commit_req in,
                           const char *topic, struct offset_commit_req_partition partition) {
    struct offset_commit_req_topic one = {
        .name = str_of(topic), .partitions = &partition, .partitions_count = 1};
    struct call c;
    in.topics = &one;
    in.topics_count = 1;
    call_open(&c, ops);
    const struct offset_commit_res *out = call_run(&c, OFFSET_COMMIT, version, &in);
    CHECK_EQ(out->topics_count, 1);
    CHECK(str_equal(out->topics[0].name, one.name));
    CHECK_EQ(out->topics[0].partitions_count, 1);
    CHECK_EQ(out->topics[0].partitions[0].partition_index, partition.partition_index);
    int16_t code = out->topics[0].partitions[0].error_code;
    call_close(&c);
    return code;
}

TEST(a_commit_reaches_the_backend_with_all_that_it_says) { /* D12-1, D12-20 */
    const int16_t versions[] = {2, 4, 6, 9};
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        struct offset_commit_req_partition partition = {2, 1234, 5, STR("about it")};
        CHECK_EQ(commit_code(&call_managing, versions[i], commit_of(NULL, 0), "here", partition), 0);
        CHECK_EQ(call_fake.committed.partition, 2);
        CHECK_EQ(call_fake.committed.offset, 1234);
        CHECK_EQ(call_fake.committed.leader_epoch, 5);
        CHECK(str_equal(call_fake.committed.metadata, STR("about it")));
        CHECK_EQ(call_fake.deadline_ms, 1000 + 3000);
    }
}

TEST(null_metadata_is_empty_metadata) {
    struct offset_commit_req_partition partition = {0, 1, -1, STR_NULL};
    CHECK_EQ(commit_code(&call_managing, 9, commit_of(NULL, 0), "here", partition), 0);
    CHECK_EQ(call_fake.committed.metadata.len, 0);
}

TEST(a_retention_time_can_only_keep_an_offset_longer) { /* D12-3 */
    static const struct {
        int64_t usual_ms, wanted_ms, longer_ms;
    } table[] = {
        {60000, -1, 0},
        {60000, 1000, 0},
        {60000, 60000, 0},
        {60000, 60001, 1},
        {0, 60001, 0}, /* not this server's matter */
        {60000, INT64_MAX, INT64_C(100) * 365 * 86400000},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct offset_commit_req_partition partition = {0, 1, -1, STR_NULL};
        struct offset_commit_req_topic topic = {
            .name = STR("here"), .partitions = &partition, .partitions_count = 1};
        struct offset_commit_req in = commit_of(&topic, 1);
        struct call c;
        in.retention_time_ms = table[i].wanted_ms;
        call_open(&c, &call_managing);
        c.kafka.settings.offsets_retention_ms = table[i].usual_ms;
        const struct offset_commit_res *out = call_run(&c, OFFSET_COMMIT, 3, &in);
        CHECK_EQ(out->topics[0].partitions[0].error_code, 0);
        CHECK_EQ(call_fake.keep_longer_ms, table[i].longer_ms);
        call_close(&c);
    }
}

TEST(a_group_id_that_cannot_be_is_24_on_every_partition) { /* D12-4 */
    char name[250];
    struct offset_commit_req_partition partition = {0, 1, -1, STR_NULL};
    struct offset_commit_req in = commit_of(NULL, 0);
    memset(name, 'g', sizeof name);
    in.group_id = STR("");
    CHECK_EQ(commit_code(&call_managing, 9, in, "here", partition), KERR_INVALID_GROUP_ID);
    in.group_id = (struct str){name, 247};
    CHECK_EQ(commit_code(&call_managing, 9, in, "here", partition), KERR_INVALID_GROUP_ID);
    CHECK_EQ(commit_code(&call_stub, 9, in, "here", partition), KERR_INVALID_GROUP_ID);
    CHECK_EQ(call_fake.calls, 0);
    in.group_id.len = 246;
    CHECK_EQ(commit_code(&call_managing, 9, in, "here", partition), 0);
}

TEST(who_claims_to_be_a_member_is_not_known) { /* D12-4, D12-5 */
    struct offset_commit_req_partition partition = {0, 1, -1, STR_NULL};
    struct offset_commit_req in = commit_of(NULL, 0);
    in.generation_id_or_member_epoch = 0;
    in.member_id = STR("me");
    CHECK_EQ(commit_code(&call_managing, 9, in, "here", partition), KERR_UNKNOWN_MEMBER_ID);
    CHECK_EQ(commit_code(&call_managing, 2, in, "here", partition), KERR_UNKNOWN_MEMBER_ID);
    CHECK_EQ(call_fake.calls, 0);
    in.generation_id_or_member_epoch = -1; /* any member id will do then */
    CHECK_EQ(commit_code(&call_managing, 9, in, "here", partition), 0);
}

TEST(each_partition_of_a_commit_has_its_own_outcome_in_the_order_of_the_request) { /* D12-6 */
    char *large = mem_take_zeroed(1, 4097);
    memset(large, 'm', 4097);
    struct offset_commit_req_partition here[] = {
        {2, 5, -1, STR_NULL}, {-1, 5, -1, STR_NULL},     {3, 5, -1, STR_NULL},      {0, -5, -1, STR_NULL},
        {2, 6, -1, STR_NULL}, {1, 5, -1, {large, 4097}}, {1, 5, -1, {large, 4096}},
    };
    struct offset_commit_req_partition one = {0, 1, -1, STR_NULL};
    struct offset_commit_req_topic topics[] = {
        {.name = STR("nowhere"), .partitions = &one, .partitions_count = 1},
        {.name = STR("here"), .partitions = here, .partitions_count = (int32_t)COUNT_OF(here)},
        {.name = STR("a b"), .partitions = &one, .partitions_count = 1},
        {.name = STR("dot.ted"), .partitions = NULL, .partitions_count = 0},
    };
    struct offset_commit_req in = commit_of(topics, COUNT_OF(topics));
    struct call c;
    call_open(&c, &call_managing);
    const struct offset_commit_res *out = call_run(&c, OFFSET_COMMIT, 8, &in);
    CHECK_EQ(out->topics_count, 4);
    CHECK_EQ(out->topics[0].partitions[0].error_code, 3);
    const int16_t codes[] = {0, 3, 3, 0, 0, 12, 0};
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        CHECK_EQ(out->topics[1].partitions[i].partition_index, here[i].partition_index);
        CHECK_EQ(out->topics[1].partitions[i].error_code, codes[i]);
    }
    CHECK_EQ(out->topics[2].partitions[0].error_code, 17);
    CHECK_EQ(out->topics[3].partitions_count, 0);
    call_close(&c);
    mem_free(large);
}

TEST(without_a_backend_a_commit_is_to_be_tried_again) { /* D12-7 */
    struct offset_commit_req_partition partition = {-1, 1, -1, STR_NULL};
    struct offset_commit_req in = commit_of(NULL, 0);
    CHECK_EQ(commit_code(&call_stub, 2, in, "a b", partition), 14);
    in.generation_id_or_member_epoch = 4; /* the check comes first */
    CHECK_EQ(commit_code(&call_stub, 2, in, "a b", partition), 25);
}

/* ---- OffsetFetch ---- */

static int32_t three[] = {0, 1, -7};

TEST(what_nobody_committed_is_minus_one_and_no_error) { /* D12-12 */
    struct offset_fetch_req_topic topics[] = {
        {STR("here"), {three, 3}}, {STR("nowhere"), {three, 1}}, {STR("a b"), {three, 1}}};
    for (int16_t version = 1; version <= 7; version++) {
        struct offset_fetch_req in = {
            .group_id = STR("g"), .topics = topics, .topics_count = 3, .require_stable = true};
        struct call c;
        call_open(&c, &call_managing);
        const struct offset_fetch_res *out = call_run(&c, OFFSET_FETCH, version, &in);
        CHECK_EQ(out->error_code, 0);
        CHECK_EQ(out->topics_count, 3);
        CHECK_EQ(out->topics[0].partitions_count, 3);
        const struct offset_fetch_res_partition *p = out->topics[0].partitions;
        CHECK_EQ(p[0].committed_offset, 17);
        CHECK_EQ(p[0].committed_leader_epoch, version >= 5 ? 3 : -1);
        CHECK(str_equal(p[0].metadata, STR("m")));
        for (int i = 1; i < 3; i++) {
            CHECK_EQ(p[i].partition_index, three[i]);
            CHECK_EQ(p[i].committed_offset, -1);
            CHECK_EQ(p[i].committed_leader_epoch, -1);
            CHECK_EQ(p[i].metadata.len, 0);
            CHECK_EQ(p[i].error_code, 0);
        }
        CHECK_EQ(out->topics[1].partitions[0].committed_offset, -1);
        CHECK_EQ(out->topics[2].partitions[0].committed_offset, -1);
        CHECK_EQ(out->topics[2].partitions[0].error_code, 0);
        call_close(&c);
    }
}

TEST(null_topics_are_all_that_was_committed) { /* D12-11 */
    struct call c;
    call_open(&c, &call_managing);
    struct offset_fetch_req in = {.group_id = STR("g"), .topics_count = -1};
    const struct offset_fetch_res *out = call_run(&c, OFFSET_FETCH, 2, &in);
    CHECK_EQ(out->topics_count, 2);
    CHECK(str_equal(out->topics[0].name, STR("dot.ted")));
    CHECK_EQ(out->topics[0].partitions_count, 1);
    CHECK(str_equal(out->topics[1].name, STR("here")));
    CHECK_EQ(out->topics[1].partitions_count, 2);
    CHECK_EQ(out->topics[1].partitions[1].partition_index, 2);
    CHECK_EQ(out->topics[1].partitions[1].committed_offset, 18);
    call_close(&c);

    call_open(&c, &call_managing);
    in.topics_count = 0;
    out = call_run(&c, OFFSET_FETCH, 2, &in);
    CHECK_EQ(out->topics_count, 0);
    call_close(&c);
}

TEST(several_groups_are_answered_in_order_and_one_spoils_no_other) { /* D12-10, D12-13 */
    struct offset_fetch_req_group_topic topic = {.name = STR("here"), .partition_indexes = {three, 2}};
    struct offset_fetch_req_group groups[] = {
        {.group_id = STR("g"), .member_id = STR_NULL, .topics = &topic, .topics_count = 1},
        {.group_id = STR("lost"), .member_id = STR_NULL, .topics = &topic, .topics_count = 1},
        {.group_id = STR(""), .member_id = STR_NULL, .topics = &topic, .topics_count = 1},
        {.group_id = STR("lost"), .member_id = STR_NULL, .topics_count = -1},
        {.group_id = STR("g"), .member_id = STR("who"), .member_epoch = 9, .topics_count = -1},
    };
    const int16_t codes[] = {0, 14, 24, 14, 0};
    const int32_t topics[] = {1, 0, 0, 0, 2};
    struct offset_fetch_req in = {.groups = groups, .groups_count = COUNT_OF(groups)};
    for (int16_t version = 8; version <= 9; version++) {
        struct call c;
        call_open(&c, &call_managing);
        const struct offset_fetch_res *out = call_run(&c, OFFSET_FETCH, version, &in);
        CHECK_EQ(out->groups_count, 5);
        for (int i = 0; i < 5; i++) {
            CHECK(str_equal(out->groups[i].group_id, groups[i].group_id));
            CHECK_EQ(out->groups[i].error_code, codes[i]);
            CHECK_EQ(out->groups[i].topics_count, topics[i]);
        }
        CHECK_EQ(out->groups[0].topics[0].partitions[0].committed_offset, 17);
        CHECK_EQ(out->groups[0].topics[0].partitions[1].committed_offset, -1);
        call_close(&c);
    }
}

TEST(no_groups_have_an_empty_answer) {
    struct call c;
    call_open(&c, &call_managing);
    const struct offset_fetch_res *out =
        call_run(&c, OFFSET_FETCH, 8, &(struct offset_fetch_req){.groups_count = 0});
    CHECK_EQ(out->groups_count, 0);
    call_close(&c);
    call_open(&c, &call_managing);
    struct offset_commit_req in = commit_of(NULL, 0);
    CHECK_EQ(((const struct offset_commit_res *)call_run(&c, OFFSET_COMMIT, 8, &in))->topics_count, 0);
    call_close(&c);
}

TEST(a_read_that_failed_is_never_no_offset) { /* D12-13 */
    struct offset_fetch_req_topic topic = {STR("here"), {three, 2}};
    struct offset_fetch_req in = {.group_id = STR("lost"), .topics = &topic, .topics_count = 1};
    struct call c;
    call_open(&c, &call_managing);
    const struct offset_fetch_res *out = call_run(&c, OFFSET_FETCH, 1, &in);
    CHECK_EQ(out->topics[0].partitions_count, 2);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(out->topics[0].partitions[i].error_code, 14);
        CHECK_EQ(out->topics[0].partitions[i].committed_offset, -1);
    }
    call_close(&c);
    for (int16_t version = 2; version <= 7; version++) {
        call_open(&c, &call_managing);
        out = call_run(&c, OFFSET_FETCH, version, &in);
        CHECK_EQ(out->error_code, 14);
        CHECK_EQ(out->topics_count, 0);
        call_close(&c);
    }
}

TEST(without_a_backend_offsets_are_to_be_asked_for_again) { /* D12-10 */
    struct offset_fetch_req_topic topic = {STR("a b"), {three, 1}};
    struct offset_fetch_req in = {.group_id = STR("g"), .topics = &topic, .topics_count = 1};
    struct call c;
    call_open(&c, &call_stub);
    const struct offset_fetch_res *out = call_run(&c, OFFSET_FETCH, 7, &in);
    CHECK_EQ(out->error_code, 14);
    call_close(&c);
    call_open(&c, &call_stub);
    out = call_run(&c, OFFSET_FETCH, 1, &in);
    CHECK_EQ(out->topics[0].partitions[0].error_code, 14);
    call_close(&c);
    in.group_id = STR("");
    call_open(&c, &call_stub);
    out = call_run(&c, OFFSET_FETCH, 5, &in);
    CHECK_EQ(out->error_code, 24);
    call_close(&c);
}
