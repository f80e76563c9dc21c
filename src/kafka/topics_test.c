#include "kafka/call_test.h"

/* ---- CreateTopics ---- */

static struct create_topics_req_topic topic_of(const char *name, int32_t partitions, int16_t factor) {
    return (struct create_topics_req_topic){
        .name = str_of(name), .num_partitions = partitions, .replication_factor = factor};
}

#define CREATE(array)                                                                   \
    &(struct create_topics_req) {                                                       \
        .topics = (array), .topics_count = (int32_t)COUNT_OF(array), .timeout_ms = 5000 \
    }

TEST(topics_are_created_with_what_was_asked_for) { /* D6-10 */
    struct call c;
    call_open(&c, &call_managing);
    struct create_topics_req_topic topics[] = {topic_of("a", 7, 1), topic_of("b", -1, -1)};
    const struct create_topics_res *out = call_run(&c, CREATE_TOPICS, 7, CREATE(topics));
    CHECK_EQ(out->topics_count, 2);
    CHECK_EQ(out->topics[0].error_code, 0);
    CHECK_EQ(out->topics[0].error_message.len, -1);
    CHECK_EQ(out->topics[0].num_partitions, 7);
    CHECK_EQ(out->topics[0].replication_factor, 1);
    CHECK_EQ(out->topics[0].topic_id.b[0], 9);
    CHECK_EQ(out->topics[0].configs_count, 37);
    CHECK_EQ(out->topics[1].num_partitions, 2); /* DEFAULT_PARTITIONS */
    CHECK_EQ(call_fake.created, 2);
    CHECK_EQ(call_fake.calls, 1);
    call_close(&c);
}

TEST(a_topic_named_twice_is_refused_once_and_others_go_on) { /* D6-2 */
    struct call c;
    call_open(&c, &call_managing);
    struct create_topics_req_topic topics[] = {topic_of("a", 1, 1), topic_of("b", 1, 1), topic_of("a", 1, 1)};
    const struct create_topics_res *out = call_run(&c, CREATE_TOPICS, 5, CREATE(topics));
    CHECK_EQ(out->topics_count, 2);
    CHECK_EQ(out->topics[0].error_code, KERR_INVALID_REQUEST);
    CHECK_EQ(out->topics[0].num_partitions, -1);
    CHECK_EQ(out->topics[0].replication_factor, -1);
    CHECK_EQ(out->topics[0].configs_count, 0);
    CHECK_EQ(out->topics[1].error_code, 0);
    CHECK_EQ(call_fake.created, 1);
    call_close(&c);
}

TEST(a_topic_that_exists_is_36_even_where_a_check_fails) { /* D6-2 */
    struct call c;
    call_open(&c, &call_managing);
    struct create_topics_req_topic topics[] = {topic_of("here", 0, 1), topic_of("new", 0, 1),
                                               topic_of("dot.ted", 1, 9)};
    const struct create_topics_res *out = call_run(&c, CREATE_TOPICS, 5, CREATE(topics));
    CHECK_EQ(out->topics[0].error_code, KERR_TOPIC_ALREADY_EXISTS);
    CHECK_EQ(out->topics[1].error_code, KERR_INVALID_PARTITIONS);
    CHECK_EQ(out->topics[2].error_code, KERR_TOPIC_ALREADY_EXISTS);
    call_close(&c);
}

TEST(a_name_that_collides_with_an_existing_one_is_17) { /* K6-1 */
    struct call c;
    call_open(&c, &call_managing);
    struct create_topics_req_topic topics[] = {topic_of("dot_ted", 1, 1), topic_of("dot-ted", 1, 1)};
    const struct create_topics_res *out = call_run(&c, CREATE_TOPICS, 5, CREATE(topics));
    CHECK_EQ(out->topics[0].error_code, KERR_INVALID_TOPIC_EXCEPTION);
    CHECK_EQ(out->topics[1].error_code, 0);
    call_close(&c);
}

TEST(partition_counts_and_factors_have_their_limits) { /* D6-5, X-5, K6-2 */
    struct call c;
    call_open(&c, &call_managing);
    struct create_topics_req_topic topics[] = {topic_of("a", 1000, 1), topic_of("b", 1001, 1),
                                               topic_of("c", 0, 3),    topic_of("d", -2, 1),
                                               topic_of("e", 1, 0),    topic_of("f", 1, 3)};
    const int16_t expected[] = {0, 37, 37, 37, 38, 38};
    const struct create_topics_res *out = call_run(&c, CREATE_TOPICS, 5, CREATE(topics));
    for (int32_t i = 0; i < out->topics_count; i++)
        CHECK_EQ(out->topics[i].error_code, expected[i]);
    call_close(&c);

    call_open(&c, &call_managing);
    c.kafka.settings.accept_any_replication = true;
    out = call_run(&c, CREATE_TOPICS, 5, CREATE(topics));
    CHECK_EQ(out->topics[4].error_code, KERR_INVALID_REPLICATION_FACTOR);
    CHECK_EQ(out->topics[5].error_code, 0);
    CHECK_EQ(out->topics[5].replication_factor, 1);
    call_close(&c);
}

static int16_t assigned_code(int32_t partitions, const int32_t *indices, int32_t count,
                             struct int32s brokers) {
    struct call c;
    call_open(&c, &call_managing);
    struct create_topics_req_assignment assignments[4];
    for (int32_t i = 0; i < count; i++)
        assignments[i] = (struct create_topics_req_assignment){indices[i], brokers};
    struct create_topics_req_topic topics[] = {topic_of("a", partitions, -1)};
    topics[0].assignments = assignments;
    topics[0].assignments_count = count;
    const struct create_topics_res *out = call_run(&c, CREATE_TOPICS, 5, CREATE(topics));
    int16_t code = out->topics[0].error_code;
    CHECK(code != 0 || out->topics[0].num_partitions == count);
    call_close(&c);
    return code;
}

TEST(assignments_must_be_each_partition_once_on_this_node) { /* D6-4 */
    int32_t here[] = {CALL_NODE, CALL_NODE}, there[] = {CALL_NODE + 1};
    struct int32s good = {here, 1};
    CHECK_EQ(assigned_code(-1, (int32_t[]){1, 0, 2}, 3, good), 0);
    CHECK_EQ(assigned_code(2, (int32_t[]){0, 1}, 2, good), KERR_INVALID_REQUEST);
    CHECK_EQ(assigned_code(-1, (int32_t[]){0, 2}, 2, good), KERR_INVALID_REPLICA_ASSIGNMENT);
    CHECK_EQ(assigned_code(-1, (int32_t[]){-1, 0}, 2, good), KERR_INVALID_REPLICA_ASSIGNMENT);
    CHECK_EQ(assigned_code(-1, (int32_t[]){0, 0}, 2, good), KERR_INVALID_REPLICA_ASSIGNMENT);
    CHECK_EQ(assigned_code(-1, (int32_t[]){0}, 1, (struct int32s){there, 1}),
             KERR_INVALID_REPLICA_ASSIGNMENT);
    CHECK_EQ(assigned_code(-1, (int32_t[]){0}, 1, (struct int32s){here, 2}), KERR_INVALID_REPLICA_ASSIGNMENT);
    CHECK_EQ(assigned_code(-1, (int32_t[]){0}, 1, (struct int32s){here, 0}), KERR_INVALID_REPLICA_ASSIGNMENT);
}

/* So many topics of `partitions` each: the code of the first. */
static int16_t many_code(int32_t count, int32_t partitions) {
    static char names[200][16];
    static struct create_topics_req_topic topics[200];
    struct call c;
    call_open(&c, &call_managing);
    for (int32_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "n%d", (int)i);
        topics[i] = topic_of(names[i], partitions, 1);
    }
    const struct create_topics_res *out =
        call_run(&c, CREATE_TOPICS, 2,
                 &(struct create_topics_req){.topics = topics, .topics_count = count, .timeout_ms = 5000});
    CHECK_EQ(out->topics_count, count);
    int16_t code = out->topics[0].error_code;
    CHECK_EQ(call_fake.created, code ? 0 : count);
    call_close(&c);
    return code;
}

TEST(more_than_a_hundred_topics_or_ten_thousand_partitions_are_44) { /* D6-6 */
    CHECK_EQ(many_code(100, 1), 0);
    CHECK_EQ(many_code(101, 1), KERR_POLICY_VIOLATION);
    CHECK_EQ(many_code(10, 1000), 0);
    CHECK_EQ(many_code(11, 1000), KERR_POLICY_VIOLATION);
}

TEST(without_time_everything_is_7_as_it_was_asked) { /* K6-1 */
    struct call c;
    call_open(&c, &call_managing);
    struct create_topics_req_topic topics[] = {topic_of("a", 1, 1), topic_of("a", 0, 1)};
    struct create_topics_req in = {.topics = topics, .topics_count = 2};
    const struct create_topics_res *out = call_run(&c, CREATE_TOPICS, 5, &in);
    CHECK_EQ(out->topics_count, 2);
    CHECK_EQ(out->topics[0].error_code, KERR_REQUEST_TIMED_OUT);
    CHECK_EQ(out->topics[1].error_code, KERR_REQUEST_TIMED_OUT);
    CHECK_EQ(call_fake.calls, 0);
    call_close(&c);
}

static int64_t deadline_of(int32_t timeout_ms) {
    struct call c;
    call_open(&c, &call_managing);
    struct create_topics_req_topic topics[] = {topic_of("a", 1, 1)};
    call_run(&c, CREATE_TOPICS, 5,
             &(struct create_topics_req){.topics = topics, .topics_count = 1, .timeout_ms = timeout_ms});
    call_close(&c);
    return call_fake.deadline_ms - 1000;
}

TEST(a_timeout_is_read_between_one_second_and_thirty) { /* D6-7 */
    CHECK_EQ(deadline_of(1), 1000);
    CHECK_EQ(deadline_of(1001), 1001);
    CHECK_EQ(deadline_of(30000), 30000);
    CHECK_EQ(deadline_of(INT32_MAX), 30000);
}

TEST(validation_writes_nothing_and_answers_as_if_it_had) { /* D6-8 */
    struct call c;
    call_open(&c, &call_managing);
    struct create_topics_req_topic topics[] = {topic_of("a", 3, 1), topic_of("here", 1, 1)};
    struct create_topics_req *in = CREATE(topics);
    in->validate_only = true;
    const struct create_topics_res *out = call_run(&c, CREATE_TOPICS, 7, in);
    CHECK_EQ(out->topics[0].error_code, 0);
    CHECK_EQ(out->topics[0].num_partitions, 3);
    CHECK(!uuid_is_zero(&out->topics[0].topic_id));
    CHECK_EQ(out->topics[1].error_code, KERR_TOPIC_ALREADY_EXISTS);
    CHECK(uuid_is_zero(&out->topics[1].topic_id));
    CHECK_EQ(call_fake.created, 0);
    call_close(&c);
}

TEST(the_stub_manages_no_topics_but_checks_the_numbers) { /* D6-12 */
    struct call c;
    call_open(&c, &call_stub);
    struct create_topics_req_topic topics[] = {topic_of("a.b", 1, 1), topic_of("b", 0, 1),
                                               topic_of("c", 1, 2)};
    const struct create_topics_res *out = call_run(&c, CREATE_TOPICS, 5, CREATE(topics));
    CHECK_EQ(out->topics[0].error_code, KERR_NOT_CONTROLLER);
    CHECK_EQ(out->topics[1].error_code, KERR_INVALID_PARTITIONS);
    CHECK_EQ(out->topics[2].error_code, KERR_INVALID_REPLICATION_FACTOR);
    call_close(&c);
}

/* ---- DeleteTopics ---- */

static const struct delete_topics_res *delete_names(struct call *c, int16_t version, struct str *names,
                                                    int32_t count) {
    return call_run(c, DELETE_TOPICS, version,
                    &(struct delete_topics_req){.topic_names = {names, count}, .timeout_ms = 5000});
}

TEST(each_deleted_name_has_its_own_outcome) { /* D7-2, D7-5 */
    struct call c;
    call_open(&c, &call_managing);
    struct str names[] = {STR("here"), STR("nope"), STR("a b"), STR("dot.ted"), STR("dot.ted")};
    const struct delete_topics_res *out = delete_names(&c, 5, names, 5);
    const int16_t expected[] = {0, 3, 17, 42};
    CHECK_EQ(out->responses_count, 4);
    for (int32_t i = 0; i < 4; i++) {
        CHECK_EQ(out->responses[i].error_code, expected[i]);
        CHECK_EQ(out->responses[i].error_message.len > 0, expected[i] != 0);
    }
    CHECK_EQ(call_fake.deleted, 1);
    call_close(&c);
}

TEST(deletion_of_too_many_or_by_the_stub_is_refused) { /* D7-3, D7-5 */
    struct str names[101];
    char text[101][16];
    for (int32_t i = 0; i < 101; i++) {
        snprintf(text[i], sizeof text[i], "n%d", (int)i);
        names[i] = str_of(text[i]);
    }
    struct call c;
    call_open(&c, &call_managing);
    CHECK_EQ(delete_names(&c, 4, names, 101)->responses[0].error_code, KERR_POLICY_VIOLATION);
    call_close(&c);
    call_open(&c, &call_managing);
    CHECK_EQ(delete_names(&c, 4, names, 100)->responses[0].error_code, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    call_close(&c);
    call_open(&c, &call_stub);
    CHECK_EQ(delete_names(&c, 4, names, 1)->responses[0].error_code, KERR_NOT_CONTROLLER);
    call_close(&c);
}

TEST(topics_are_deleted_by_name_or_id_and_answered_with_both) { /* K6-4 */
    struct call c;
    call_open(&c, &call_managing);
    struct delete_topics_req_topic topics[] = {
        {.name = STR_NULL, .topic_id = {{2}}}, {.name = STR("dot.ted")},
        {.name = STR_NULL, .topic_id = {{7}}}, {.name = STR_NULL},
        {.name = STR("x"), .topic_id = {{8}}},
    };
    const int16_t expected[] = {0, 0, 100, 42, 42};
    const struct delete_topics_res *out =
        call_run(&c, DELETE_TOPICS, 6,
                 &(struct delete_topics_req){.topics = topics, .topics_count = 5, .timeout_ms = 5000});
    CHECK_EQ(out->responses_count, 5);
    for (int32_t i = 0; i < 5; i++)
        CHECK_EQ(out->responses[i].error_code, expected[i]);
    CHECK(str_equal(out->responses[0].name, STR("here")));
    CHECK_EQ(out->responses[1].topic_id.b[0], 1);
    CHECK_EQ(out->responses[2].name.len, -1);
    CHECK_EQ(call_fake.deleted, 2);
    call_close(&c);
}

TEST(a_name_and_an_id_of_one_topic_spoil_each_other) { /* K6-4 */
    struct call c;
    call_open(&c, &call_managing);
    struct delete_topics_req_topic topics[] = {{.name = STR("here")}, {.name = STR_NULL, .topic_id = {{2}}}};
    const struct delete_topics_res *out =
        call_run(&c, DELETE_TOPICS, 6,
                 &(struct delete_topics_req){.topics = topics, .topics_count = 2, .timeout_ms = 5000});
    CHECK_EQ(out->responses_count, 1);
    CHECK_EQ(out->responses[0].error_code, KERR_INVALID_REQUEST);
    CHECK_EQ(out->responses[0].topic_id.b[0], 2);
    CHECK_EQ(call_fake.deleted, 0);
    call_close(&c);
}

/* ---- CreatePartitions ---- */

static int16_t grow_code(const struct backend_ops *ops, const char *name, int32_t count,
                         int32_t assignments) {
    int32_t node = CALL_NODE;
    struct create_partitions_req_assignment assigned[4] = {
        {{&node, 1}}, {{&node, 1}}, {{&node, 1}}, {{&node, 1}}};
    struct create_partitions_req_topic topic = {str_of(name), count, assigned, assignments};
    struct create_partitions_req in = {.topics = &topic, .topics_count = 1, .timeout_ms = 5000};
    struct call c;
    call_open(&c, ops);
    const struct create_partitions_res *out = call_run(&c, CREATE_PARTITIONS, 3, &in);
    int16_t code = out->results[0].error_code;
    CHECK_EQ(call_fake.grown, code == 0);
    call_close(&c);
    return code;
}

TEST(partitions_only_grow_up_to_a_thousand_with_matching_assignments) { /* D8-1, K6-5 */
    CHECK_EQ(grow_code(&call_managing, "here", 4, -1), 0);
    CHECK_EQ(grow_code(&call_managing, "here", 1000, -1), 0);
    CHECK_EQ(grow_code(&call_managing, "here", 1001, -1), KERR_INVALID_PARTITIONS);
    CHECK_EQ(grow_code(&call_managing, "here", 3, -1), KERR_INVALID_PARTITIONS);
    CHECK_EQ(grow_code(&call_managing, "here", -1, -1), KERR_INVALID_PARTITIONS);
    CHECK_EQ(grow_code(&call_managing, "here", 5, 2), 0);
    CHECK_EQ(grow_code(&call_managing, "here", 5, 1), KERR_INVALID_REPLICA_ASSIGNMENT);
    CHECK_EQ(grow_code(&call_managing, "here", 5, 0), KERR_INVALID_REPLICA_ASSIGNMENT);
    CHECK_EQ(grow_code(&call_managing, "nope", 4, -1), KERR_UNKNOWN_TOPIC_OR_PARTITION);
    CHECK_EQ(grow_code(&call_managing, "a b", 4, -1), KERR_UNKNOWN_TOPIC_OR_PARTITION);
    CHECK_EQ(grow_code(&call_stub, "here", 4, -1), KERR_NOT_CONTROLLER);
}
