#include "base/mem.h"
#include "kafka/admin.h"
#include "kafka/call_test.h"

/* ---- DeleteRecords ---- */

static const struct delete_records_res *
delete_records(struct call *c, int16_t version, struct delete_records_req_topic *topics, int32_t count) {
    return call_run(c, DELETE_RECORDS, version,
                    &(struct delete_records_req){topics, count, .timeout_ms = 5000});
}

TEST(logs_start_later_and_say_where_or_why_not) { /* D16-1, D16-3 */
    static const struct {
        int32_t partition;
        int64_t offset, low;
        int16_t code;
    } asked[] = {{0, 7, 7, 0},   {1, -1, 40, 0}, {2, 0, 4, 0},          {3, 5, -1, 3},
                 {-1, 5, -1, 3}, {7, 5, -1, 3},  {0x7fffffff, 5, -1, 3}};
    static const int64_t bad[] = {41, -2, INT64_MIN, INT64_MAX};
    struct delete_records_req_partition partitions[COUNT_OF(asked)];
    for (size_t i = 0; i < COUNT_OF(asked); i++)
        partitions[i] = (struct delete_records_req_partition){asked[i].partition, asked[i].offset};
    struct delete_records_req_topic topic = {STR("here"), partitions, COUNT_OF(asked)};
    struct call c;
    call_open(&c, &call_managing);
    for (int16_t version = 0; version <= 2; version++) {
        const struct delete_records_res *out = delete_records(&c, version, &topic, 1);
        CHECK_EQ(out->topics_count, 1);
        CHECK(str_equal(out->topics[0].name, STR("here")));
        CHECK_EQ(out->topics[0].partitions_count, COUNT_OF(asked));
        for (size_t i = 0; i < COUNT_OF(asked); i++) {
            CHECK_EQ(out->topics[0].partitions[i].partition_index, asked[i].partition);
            CHECK_EQ(out->topics[0].partitions[i].low_watermark, asked[i].low);
            CHECK_EQ(out->topics[0].partitions[i].error_code, asked[i].code);
        }
        CHECK_EQ(call_fake.trimmed, 3 * (version + 1));
        CHECK_EQ(call_fake.deadline_ms, 6000); /* D6-7 */
    }
    topic.partitions_count = 1;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        partitions[0].offset = bad[i];
        const struct delete_records_res *out = delete_records(&c, 2, &topic, 1);
        CHECK_EQ(out->topics[0].partitions[0].error_code, KERR_OFFSET_OUT_OF_RANGE);
        CHECK_EQ(out->topics[0].partitions[0].low_watermark, -1);
    }
    partitions[0].offset = 13;
    CHECK_EQ(delete_records(&c, 2, &topic, 1)->topics[0].partitions[0].error_code, KERR_KAFKA_STORAGE_ERROR);
    call_close(&c);
}

TEST(a_topic_or_partition_twice_is_answered_once_and_the_later_offset_counts) { /* D16-2 */
    struct delete_records_req_partition twice[] = {{1, 5}, {0, 6}, {1, 8}}, again[] = {{0, 9}, {2, 10}},
                                        other[] = {{0, 11}};
    struct delete_records_req_topic topics[] = {{STR("here"), twice, 3},    {STR("empty"), NULL, 0},
                                                {STR("dot.ted"), other, 1}, {STR("here"), again, 2},
                                                {STR("a b"), other, 1},     {STR(""), other, 1}};
    static const int64_t lows[] = {8, 9, 10};
    static const int32_t indexes[] = {1, 0, 2};
    struct call c;
    call_open(&c, &call_managing);
    const struct delete_records_res *out = delete_records(&c, 2, topics, COUNT_OF(topics));
    CHECK_EQ(out->topics_count, 4);
    CHECK_EQ(out->topics[0].partitions_count, 3);
    for (int32_t i = 0; i < 3; i++) {
        CHECK_EQ(out->topics[0].partitions[i].partition_index, indexes[i]);
        CHECK_EQ(out->topics[0].partitions[i].low_watermark, lows[i]);
    }
    CHECK(str_equal(out->topics[1].name, STR("dot.ted")));
    CHECK_EQ(out->topics[1].partitions[0].low_watermark, 11);
    CHECK_EQ(out->topics[2].partitions[0].error_code, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    CHECK_EQ(out->topics[3].partitions[0].error_code, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    CHECK_EQ(call_fake.trimmed, 4);
    CHECK_EQ(delete_records(&c, 0, NULL, 0)->topics_count, 0);
    call_close(&c);
}

TEST(ten_thousand_partitions_fit_into_a_request) { /* B-41 */
    enum { MANY = 10000 };
    static struct delete_records_req_partition partitions[MANY];
    struct delete_records_req_topic topic = {STR("here"), partitions, MANY};
    struct call c;
    for (int32_t i = 0; i < MANY; i++)
        partitions[i] = (struct delete_records_req_partition){i / 2, i};
    call_open(&c, &call_managing);
    const struct delete_records_res *out = delete_records(&c, 2, &topic, 1);
    CHECK_EQ(out->topics[0].partitions_count, MANY / 2);
    CHECK_EQ(out->topics[0].partitions[2].low_watermark, 5);
    CHECK_EQ(call_fake.trimmed, 3);
    call_close(&c);
}

TEST(the_stub_deletes_no_records) { /* D16-4 */
    struct delete_records_req_partition partition = {0, -1};
    struct delete_records_req_topic topic = {STR("here"), &partition, 1};
    struct call c;
    call_open(&c, &call_stub);
    const struct delete_records_res *out = delete_records(&c, 1, &topic, 1);
    CHECK_EQ(out->topics[0].partitions[0].error_code, KERR_NOT_LEADER_OR_FOLLOWER);
    CHECK_EQ(out->topics[0].partitions[0].low_watermark, -1);
    call_close(&c);
}

/* ---- ListOffsets, OffsetForLeaderEpoch ---- */

static struct list_offsets_res_partition offset_of(int16_t version, int32_t partition, int64_t timestamp,
                                                   int32_t epoch) {
    struct list_offsets_req_partition asked = {partition, epoch, timestamp};
    struct list_offsets_req_topic topic = {STR("here"), &asked, 1};
    struct call c;
    call_open(&c, &call_managing);
    const struct list_offsets_res *out =
        call_run(&c, LIST_OFFSETS, version, &(struct list_offsets_req){.topics = &topic, .topics_count = 1});
    struct list_offsets_res_partition found = out->topics[0].partitions[0];
    call_close(&c);
    return found;
}

static void check_offset(struct list_offsets_res_partition found, int16_t code, int64_t offset,
                         int64_t timestamp) {
    CHECK_EQ(found.error_code, code);
    CHECK_EQ(found.offset, offset);
    CHECK_EQ(found.timestamp, timestamp);
    CHECK_EQ(found.leader_epoch, offset >= 0 ? 0 : -1);
}

TEST(special_timestamps_have_their_meaning_from_their_version_on) { /* D3-1, D3-2 */
    check_offset(offset_of(11, 0, -1, -1), 0, 40, -1);
    check_offset(offset_of(11, 0, -2, -1), 0, 4, -1);
    check_offset(offset_of(11, 0, 250, -1), 0, 25, 250);
    check_offset(offset_of(7, 0, -3, -1), 0, -3 / 10, 399);
    check_offset(offset_of(6, 0, -3, -1), 35, -1, -1);
    check_offset(offset_of(8, 0, -4, -1), 0, 4, -1);
    check_offset(offset_of(7, 0, -4, -1), 35, -1, -1);
    check_offset(offset_of(9, 0, -5, -1), 0, -1, -1);
    check_offset(offset_of(8, 0, -5, -1), 35, -1, -1);
    check_offset(offset_of(11, 0, -6, -1), 0, -1, -1);
    check_offset(offset_of(10, 0, -6, -1), 35, -1, -1);
    check_offset(offset_of(11, 0, -7, -1), 35, -1, -1);
    check_offset(offset_of(11, 0, INT64_MIN, -1), 35, -1, -1);
}

TEST(unknown_partitions_and_wrong_leader_epochs_are_said) { /* D3-3, K4-2 */
    check_offset(offset_of(11, 3, -1, -1), 3, -1, -1);
    check_offset(offset_of(11, -1, -1, -1), 3, -1, -1);
    check_offset(offset_of(11, 3, -1, 1), 3, -1, -1);
    check_offset(offset_of(11, 0, -1, 0), 0, 40, -1);
    check_offset(offset_of(11, 0, -1, 1), 75, -1, -1);
    check_offset(offset_of(11, 0, -1, -2), 74, -1, -1);
    check_offset(offset_of(11, 3, -5, -1), 3, -1, -1);
}

TEST(a_partition_asked_twice_is_answered_once_with_42) { /* K4-2 */
    struct list_offsets_req_partition a[] = {{2, -1, -1}, {0, -1, -1}, {2, -1, -2}},
                                      b[] = {{0, -1, -2}, {1, -1, -2}};
    struct list_offsets_req_topic topics[] = {
        {STR("here"), a, 3}, {STR("dot.ted"), NULL, 0}, {STR("here"), b, 2}};
    struct call c;
    call_open(&c, &call_managing);
    const struct list_offsets_res *out =
        call_run(&c, LIST_OFFSETS, 5, &(struct list_offsets_req){.topics = topics, .topics_count = 3});
    CHECK_EQ(out->topics_count, 1);
    CHECK_EQ(out->topics[0].partitions_count, 3);
    const int16_t expected[] = {42, 0, 42};
    for (int32_t i = 0; i < 3; i++) {
        CHECK_EQ(out->topics[0].partitions[i].partition_index, i);
        CHECK_EQ(out->topics[0].partitions[i].error_code, expected[i]);
    }
    CHECK_EQ(out->topics[0].partitions[1].offset, 4);
    call_close(&c);
}

TEST(an_unknown_isolation_level_spoils_the_whole_request) {
    struct list_offsets_req_partition asked[] = {{0, -1, -1}, {0, -1, -1}};
    struct list_offsets_req_topic topic = {STR("here"), asked, 2};
    struct call c;
    call_open(&c, &call_managing);
    struct list_offsets_req in = {.isolation_level = 2, .topics = &topic, .topics_count = 1};
    const struct list_offsets_res *out = call_run(&c, LIST_OFFSETS, 5, &in);
    CHECK_EQ(out->topics[0].partitions_count, 2);
    check_offset(out->topics[0].partitions[1], KERR_UNKNOWN_SERVER_ERROR, -1, -1);
    CHECK_EQ(call_fake.calls, 0);
    call_close(&c);
}

TEST(ten_thousand_partitions_are_asked_in_rounds) { /* B-41 */
    enum { COUNT = 10000 };
    struct list_offsets_req_partition *asked = mem_take_zeroed(COUNT, sizeof *asked);
    for (int32_t i = 0; i < COUNT; i++)
        asked[i] = (struct list_offsets_req_partition){COUNT - 1 - i, -1, -1};
    struct list_offsets_req_topic topic = {STR("here"), asked, COUNT};
    struct call c;
    call_open(&c, &call_managing);
    const struct list_offsets_res *out =
        call_run(&c, LIST_OFFSETS, 11, &(struct list_offsets_req){.topics = &topic, .topics_count = 1});
    CHECK_EQ(out->topics[0].partitions_count, COUNT);
    for (int32_t i = 0; i < COUNT; i++) {
        CHECK_EQ(out->topics[0].partitions[i].partition_index, i);
        CHECK_EQ(out->topics[0].partitions[i].error_code, i < 3 ? 0 : 3);
    }
    CHECK_EQ(call_fake.asked, COUNT);
    CHECK(call_fake.calls > 1);
    call_close(&c);
    mem_free(asked);
}

TEST(the_stub_knows_no_offsets) { /* D3-6 */
    struct list_offsets_req_partition asked = {0, -1, -1};
    struct list_offsets_req_topic topic = {STR("here"), &asked, 1};
    struct call c;
    call_open(&c, &call_stub);
    const struct list_offsets_res *out =
        call_run(&c, LIST_OFFSETS, 1, &(struct list_offsets_req){.topics = &topic, .topics_count = 1});
    CHECK_EQ(out->topics[0].partitions[0].error_code, KERR_NOT_LEADER_OR_FOLLOWER);
    CHECK_EQ(out->topics[0].partitions[0].offset, -1);
    call_close(&c);
}

TEST(the_only_leader_epoch_ends_at_the_end_of_the_log) {
    struct offset_for_leader_epoch_req_partition asked[] = {{0, -1, 0}, {0, 0, 5},  {0, -1, -1},
                                                            {0, 1, 0},  {0, -2, 0}, {9, 1, 0}};
    const int16_t codes[] = {0, 0, 0, 75, 74, 3};
    struct offset_for_leader_epoch_req_topic topic = {STR("here"), asked, 6};
    struct call c;
    call_open(&c, &call_managing);
    const struct offset_for_leader_epoch_res *out = call_run(
        &c, FOR_LEADER_EPOCH, 4, &(struct offset_for_leader_epoch_req){.topics = &topic, .topics_count = 1});
    for (int32_t i = 0; i < 6; i++) {
        CHECK_EQ(out->topics[0].partitions[i].error_code, codes[i]);
        CHECK_EQ(out->topics[0].partitions[i].leader_epoch, i == 0 ? 0 : -1);
        CHECK_EQ(out->topics[0].partitions[i].end_offset, i == 0 ? 40 : -1);
    }
    call_close(&c);
}

/* ---- FindCoordinator, InitProducerId, DescribeCluster ---- */

TEST(this_node_coordinates_every_group_and_no_transaction) { /* D11-1, D11-2 */
    struct str keys[] = {STR("g"), STR(""), STR("g")};
    struct find_coordinator_req in = {.coordinator_keys = {keys, 3}};
    struct call c;
    call_open(&c, &call_stub);
    const struct find_coordinator_res *out = call_run(&c, FIND_COORDINATOR, 4, &in);
    CHECK_EQ(out->coordinators_count, 3);
    for (int32_t i = 0; i < 3; i++) {
        CHECK(str_equal(out->coordinators[i].key, keys[i]));
        CHECK_EQ(out->coordinators[i].node_id, CALL_NODE);
        CHECK_EQ(out->coordinators[i].port, 9093);
        CHECK_EQ(out->coordinators[i].error_code, 0);
    }
    call_close(&c);
    const int16_t codes[] = {0, 53, 42, 42};
    for (int8_t type = 0; type < 4; type++) {
        call_open(&c, &call_stub);
        in = (struct find_coordinator_req){.key = STR("g"), .key_type = type};
        out = call_run(&c, FIND_COORDINATOR, 3, &in);
        CHECK_EQ(out->error_code, codes[type]);
        CHECK_EQ(out->node_id, type == 0 ? CALL_NODE : -1);
        CHECK_EQ(out->port, type == 0 ? 9093 : -1);
        CHECK_EQ(out->host.len, type == 0 ? 4 : 0);
        call_close(&c);
    }
}

static struct init_producer_id_res producer_of(struct str transactional_id, int64_t id, int16_t epoch) {
    struct init_producer_id_req in = {
        .transactional_id = transactional_id, .producer_id = id, .producer_epoch = epoch};
    struct call c;
    call_open(&c, &call_stub);
    c.kafka.settings.instance_id = 3;
    atomic_store(&c.kafka.next_producer, ((int64_t)1 << 47) + 7);
    struct init_producer_id_res out =
        *(const struct init_producer_id_res *)call_run(&c, INIT_PRODUCER_ID, 5, &in);
    CHECK_EQ(atomic_load(&c.kafka.next_producer), ((int64_t)1 << 47) + 7 + (out.error_code == 0));
    call_close(&c);
    return out;
}

TEST(a_producer_id_holds_the_instance_and_a_counter) { /* D10-1, D10-2 */
    struct init_producer_id_res out = producer_of(STR_NULL, -1, -1);
    CHECK_EQ(out.error_code, 0);
    CHECK_EQ(out.producer_id, (int64_t)3 << 47 | 7);
    CHECK_EQ(out.producer_epoch, 0);
    out = producer_of(STR_NULL, 12345, 3);
    CHECK_EQ(out.producer_id, (int64_t)3 << 47 | 7);
    CHECK_EQ(out.producer_epoch, 0);
}

TEST(transactional_and_half_given_producers_are_refused) { /* D10-3 */
    CHECK_EQ(producer_of(STR("t"), -1, -1).error_code, KERR_UNSUPPORTED_VERSION);
    CHECK_EQ(producer_of(STR("t"), -1, -1).producer_id, -1);
    CHECK_EQ(producer_of(STR("t"), -1, -1).producer_epoch, -1);
    CHECK_EQ(producer_of(STR(""), -1, -1).error_code, KERR_INVALID_REQUEST);
    CHECK_EQ(producer_of(STR_NULL, -1, 3).error_code, KERR_INVALID_REQUEST);
    CHECK_EQ(producer_of(STR_NULL, -5, -1).error_code, KERR_INVALID_REQUEST);
}

TEST(the_cluster_is_this_node_on_an_endpoint_for_brokers) {
    struct call c;
    call_open(&c, &call_managing);
    const struct describe_cluster_res *out = call_run(
        &c, DESCRIBE_CLUSTER, 2,
        &(struct describe_cluster_req){.include_cluster_authorized_operations = true, .endpoint_type = 1});
    CHECK_EQ(out->controller_id, CALL_NODE);
    CHECK_EQ(out->brokers_count, 1);
    CHECK_EQ(out->brokers[0].rack.len, -1);
    CHECK_EQ(out->error_message.len, -1);
    CHECK_EQ(out->cluster_authorized_operations, OPERATIONS_OF_CLUSTER);
    call_close(&c);
    const int16_t codes[] = {115, 0, 114, 115};
    for (int8_t type = 0; type < 4; type++) {
        call_open(&c, &call_managing);
        out = call_run(&c, DESCRIBE_CLUSTER, 1, &(struct describe_cluster_req){.endpoint_type = type});
        CHECK_EQ(out->error_code, codes[type]);
        CHECK_EQ(out->brokers_count, type == 1);
        CHECK_EQ(out->cluster_authorized_operations, INT32_MIN);
        call_close(&c);
    }
}

/* ---- DescribeTopicPartitions ---- */

TEST(partitions_come_in_pages_that_miss_none_and_repeat_none) {
    struct describe_topic_partitions_req_cursor cursor = {STR("dot.ted"), 0};
    const char *expected[] = {"dot.ted", "here", "here", "here"};
    const int32_t indices[] = {0, 0, 1, 2};
    for (int32_t page = 0; page < 4; page++) {
        struct describe_topic_partitions_req in = {.response_partition_limit = page % 2, .cursor = &cursor};
        struct call c;
        call_open(&c, &call_managing);
        const struct describe_topic_partitions_res *out = call_run(&c, DESCRIBE_TOPIC_PARTITIONS, 0, &in);
        CHECK_EQ(out->topics_count, 1);
        CHECK(str_equal(out->topics[0].name, str_of(expected[page])));
        CHECK_EQ(out->topics[0].partitions_count, 1);
        CHECK_EQ(out->topics[0].partitions[0].partition_index, indices[page]);
        CHECK_EQ(out->topics[0].partitions[0].leader_id, CALL_NODE);
        CHECK_EQ(out->topics[0].partitions[0].eligible_leader_replicas.count, 0);
        CHECK_EQ(out->next_cursor != NULL, page < 3);
        if (out->next_cursor)
            cursor = (struct describe_topic_partitions_req_cursor){
                out->next_cursor->topic_name.len == 4 ? STR("here") : STR("dot.ted"),
                out->next_cursor->partition_index};
        call_close(&c);
    }
}

TEST(topics_are_described_in_name_order_with_unknown_ones_between) {
    struct describe_topic_partitions_req_topic topics[] = {
        {STR("here")}, {STR("a b")}, {STR("dot.ted")}, {STR("nope")}, {STR("here")}};
    const char *names[] = {"a b", "dot.ted", "here", "nope"};
    const int16_t codes[] = {17, 0, 0, 3};
    struct call c;
    call_open(&c, &call_managing);
    const struct describe_topic_partitions_res *out =
        call_run(&c, DESCRIBE_TOPIC_PARTITIONS, 0,
                 &(struct describe_topic_partitions_req){
                     .topics = topics, .topics_count = 5, .response_partition_limit = 2000});
    CHECK_EQ(out->topics_count, 4);
    for (int32_t i = 0; i < 4; i++) {
        CHECK(str_equal(out->topics[i].name, str_of(names[i])));
        CHECK_EQ(out->topics[i].error_code, codes[i]);
        CHECK_EQ(out->topics[i].topic_authorized_operations, OPERATIONS_OF_TOPIC);
    }
    CHECK(!out->next_cursor);
    call_close(&c);
}

TEST(a_cursor_that_was_not_asked_for_is_42_on_every_topic) {
    struct describe_topic_partitions_req_topic topics[] = {{STR("here")}, {STR("dot.ted")}};
    struct describe_topic_partitions_req_cursor cursors[] = {{STR("nope"), 0}, {STR("here"), -1}};
    for (size_t i = 0; i < COUNT_OF(cursors); i++) {
        struct describe_topic_partitions_req in = {
            .topics = topics, .topics_count = 2, .response_partition_limit = 9, .cursor = &cursors[i]};
        struct call c;
        call_open(&c, &call_managing);
        const struct describe_topic_partitions_res *out = call_run(&c, DESCRIBE_TOPIC_PARTITIONS, 0, &in);
        CHECK_EQ(out->topics_count, 2);
        CHECK_EQ(out->topics[0].error_code, KERR_INVALID_REQUEST);
        CHECK_EQ(out->topics[1].error_code, KERR_INVALID_REQUEST);
        CHECK(!out->next_cursor);
        call_close(&c);
    }
}

/* ---- DescribeConfigs ---- */

static const struct describe_configs_res *
describe(struct call *c, struct describe_configs_req_resource *resources, int32_t count) {
    return call_run(c, DESCRIBE_CONFIGS, 4,
                    &(struct describe_configs_req){
                        .resources = resources, .resources_count = count, .include_synonyms = true});
}

TEST(a_bad_resource_spoils_only_its_own_entry) { /* D9-1, D9-2 */
    struct describe_configs_req_resource resources[] = {
        {2, STR("here"), {NULL, -1}}, {2, STR("nope"), {NULL, 0}},    {2, STR("a b"), {NULL, 0}},
        {4, STR("5"), {NULL, 0}},     {4, STR("6"), {NULL, 0}},       {4, STR("x"), {NULL, 0}},
        {9, STR("x"), {NULL, 0}},     {2, STR("dot.ted"), {NULL, 0}}, {4, STR(""), {NULL, 0}},
        {9, STR("x"), {NULL, 0}}};
    const int16_t codes[] = {0, 3, 17, 0, 42, 42, 42, 0, 0, 42};
    struct call c;
    call_open(&c, &call_managing);
    const struct describe_configs_res *out = describe(&c, resources, 10);
    CHECK_EQ(out->results_count, 10);
    for (int32_t i = 0; i < 10; i++) {
        CHECK_EQ(out->results[i].error_code, codes[i]);
        CHECK(out->results[i].error_message.len >= 0);
        CHECK_EQ(out->results[i].configs_count > 0, codes[i] == 0 && i != 8);
    }
    CHECK_EQ(out->results[0].configs_count, 37);
    CHECK_EQ(out->results[7].configs_count, 37);
    call_close(&c);
}

TEST(known_keys_are_shown_once_with_value_source_and_synonyms) { /* D9-3, D9-4, D9-5 */
    struct str keys[] = {STR("retention.ms"), STR("nonsense"), STR("cleanup.policy"), STR("retention.ms")};
    struct describe_configs_req_resource resource = {2, STR("here"), {keys, 4}};
    struct call c;
    call_open(&c, &call_managing);
    const struct describe_configs_res *out = describe(&c, &resource, 1);
    CHECK_EQ(out->results[0].configs_count, 2);
    const struct describe_configs_res_config *policy = &out->results[0].configs[0],
                                             *retention = &out->results[0].configs[1];
    CHECK(str_equal(policy->name, STR("cleanup.policy")));
    CHECK(str_equal(policy->value, STR("delete")));
    CHECK(policy->read_only);
    CHECK_EQ(policy->config_source, 5);
    CHECK_EQ(policy->config_type, 7);
    CHECK_EQ(policy->documentation.len, -1);
    CHECK(str_equal(retention->value, STR("5")));
    CHECK(!retention->read_only);
    CHECK_EQ(retention->config_source, 1);
    CHECK_EQ(retention->synonyms_count, 1);
    CHECK(str_equal(retention->synonyms[0].value, STR("5")));
    call_close(&c);
}

TEST(the_stub_describes_only_the_server) { /* D9-2 */
    struct describe_configs_req_resource resources[] = {{2, STR("here"), {NULL, 0}},
                                                        {4, STR("5"), {NULL, 0}},
                                                        {2, STR("a b"), {NULL, 0}},
                                                        {2, STR("here"), {NULL, 0}}};
    const int16_t codes[] = {41, 0, 41, 41};
    struct call c;
    call_open(&c, &call_stub);
    const struct describe_configs_res *out = describe(&c, resources, 4);
    for (int32_t i = 0; i < 4; i++)
        CHECK_EQ(out->results[i].error_code, codes[i]);
    call_close(&c);
}
