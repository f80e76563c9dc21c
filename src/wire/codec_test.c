#include "wire/codec.h"

#include "testing/test.h"

static const struct decode_limits limits = {.elements_max = 100, .string_max = 50};

/* Decodes bytes from a block of exactly their size; the arena may take bytes_max beyond `memory`. */
static enum status decode_within(const struct schema *s, int16_t version, const void *bytes, size_t len,
                                 size_t bytes_max, void *out) {
    static uint8_t input[4096];
    static _Alignas(max_align_t) uint8_t memory[4096];
    struct arena a;
    arena_init(&a, memory, bytes_max < sizeof memory ? bytes_max : sizeof memory, 0);
    CHECK(len <= sizeof input);
    uint8_t *end = input + sizeof input;
    memcpy(end - len, bytes, len); /* ends where the array does: a read past it is seen */
    struct rbuf in = {end - len, end};
    return kmsg_decode(s, version, &limits, &in, &a, out);
}

#define DECODE(schema, version, bytes, out) \
    decode_within((schema), (version), (bytes), sizeof(bytes), SIZE_MAX, (out))

/* Encodes into flat (flat_max bytes); gives the length. */
static size_t encode(const struct schema *s, int16_t version, const void *msg, uint8_t *flat,
                     size_t flat_max) {
    struct wbuf w;
    wbuf_init(&w, flat_max);
    CHECK_EQ(kmsg_encode(s, version, msg, &w), ST_OK);
    wbuf_flatten(&w, flat);
    size_t len = w.bytes;
    wbuf_release(&w);
    return len;
}

static enum status encode_status(const struct schema *s, int16_t version, const void *msg) {
    struct wbuf w;
    wbuf_init(&w, SIZE_MAX);
    enum status st = kmsg_encode(s, version, msg, &w);
    wbuf_release(&w);
    return st;
}

/* ---- decode ---- */

static const uint8_t heartbeat_v4[] = {
    0x02, 'g',              /* group_id "g" */
    0x00, 0x00, 0x00, 0x07, /* generation_id 7 */
    0x03, 'm',  '1',        /* member_id "m1" */
    0x00,                   /* group_instance_id null */
    0x00,                   /* tagged fields: none */
};

TEST(heartbeat_v4_decodes_field_by_field) {
    struct heartbeat_req got;
    CHECK_EQ(DECODE(heartbeat_req_schema(), 4, heartbeat_v4, &got), ST_OK);
    CHECK(str_equal(got.group_id, STR("g")));
    CHECK_EQ(got.generation_id, 7);
    CHECK(str_equal(got.member_id, STR("m1")));
    CHECK_EQ(got.group_instance_id.len, -1);
}

TEST(fields_that_a_version_lacks_get_their_defaults) {
    static const uint8_t metadata_v1[] = {0xff, 0xff, 0xff, 0xff}; /* topics null */
    struct metadata_req metadata;
    CHECK_EQ(DECODE(metadata_req_schema(), 1, metadata_v1, &metadata), ST_OK);
    CHECK_EQ(metadata.topics_count, -1);
    CHECK(metadata.allow_auto_topic_creation); /* from v4 */

    static const uint8_t heartbeat_v0[] = {0, 1, 'g', 0, 0, 0, 7, 0, 1, 'm'};
    struct heartbeat_req heartbeat;
    CHECK_EQ(DECODE(heartbeat_req_schema(), 0, heartbeat_v0, &heartbeat), ST_OK);
    CHECK_EQ(heartbeat.group_instance_id.len, -1); /* from v3 */
}

/* B-43; the topics of Metadata may be null from v1 */
TEST(a_null_that_its_version_forbids_is_refused) {
    static const uint8_t null_array[] = {0xff, 0xff, 0xff, 0xff};
    static const uint8_t null_group_id[] = {0xff, 0xff, 0, 0, 0, 7, 0, 1, 'm'};
    static const uint8_t null_group_id_compact[] = {0, 0, 0, 0, 7, 2, 'm', 0, 0};
    struct metadata_req metadata;
    struct heartbeat_req heartbeat;
    CHECK_EQ(DECODE(metadata_req_schema(), 0, null_array, &metadata), ST_BAD_LENGTH);
    CHECK_EQ(DECODE(metadata_req_schema(), 1, null_array, &metadata), ST_OK);
    CHECK_EQ(DECODE(heartbeat_req_schema(), 0, null_group_id, &heartbeat), ST_BAD_LENGTH);
    CHECK_EQ(DECODE(heartbeat_req_schema(), 4, null_group_id_compact, &heartbeat), ST_BAD_LENGTH);
}

/* B-41, B-43 */
TEST(lengths_and_counts_below_null_are_refused) {
    static const uint8_t count[] = {0xff, 0xff, 0xff, 0xfe};
    static const uint8_t length[] = {0xff, 0xfe, 0, 0, 0, 7, 0, 1, 'm'};
    static const uint8_t count_compact[] = {0xff, 0xff, 0xff, 0xff,
                                            0x0f, 1,    0,    0}; /* 2^32 - 1: -2 as an int32 */
    struct metadata_req metadata;
    struct heartbeat_req heartbeat;
    CHECK_EQ(DECODE(metadata_req_schema(), 1, count, &metadata), ST_BAD_LENGTH);
    CHECK_EQ(DECODE(metadata_req_schema(), 12, count_compact, &metadata), ST_BAD_LENGTH);
    CHECK_EQ(DECODE(heartbeat_req_schema(), 0, length, &heartbeat), ST_BAD_LENGTH);
}

/* B-41, B-46: nothing is taken for elements that can't be there */
TEST(a_count_over_the_bytes_that_are_left_is_refused_without_memory) {
    static const uint8_t claims[] = {0x7f, 0xff, 0xff, 0xff};
    static const uint8_t claims_two[] = {0, 0, 0, 2, 0};
    static const uint8_t claims_two_int32[] = {0, 0, 0, 1, 0, 1, 't', 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0};
    struct metadata_req metadata;
    CHECK_EQ(decode_within(metadata_req_schema(), 0, claims, sizeof claims, 0, &metadata), ST_BAD_LENGTH);
    CHECK_EQ(decode_within(metadata_req_schema(), 0, claims_two, sizeof claims_two, 0, &metadata),
             ST_BAD_LENGTH);
    struct describe_log_dirs_req dirs;
    CHECK_EQ(DECODE(describe_log_dirs_req_schema(), 1, claims_two_int32, &dirs), ST_BAD_LENGTH);
}

/* B-41: both limits are the caller's */
TEST(a_collection_or_a_string_over_its_limit_is_refused) {
    uint8_t topics[4 + 101 * 2] = {0, 0, 0, 100};
    struct metadata_req metadata;
    CHECK_EQ(decode_within(metadata_req_schema(), 0, topics, sizeof topics, SIZE_MAX, &metadata), ST_OK);
    topics[3] = 101;
    CHECK_EQ(decode_within(metadata_req_schema(), 0, topics, sizeof topics, SIZE_MAX, &metadata),
             ST_BAD_LENGTH);

    uint8_t name[6 + 51] = {0, 0, 0, 1, 0, 50};
    CHECK_EQ(decode_within(metadata_req_schema(), 0, name, sizeof name, SIZE_MAX, &metadata), ST_OK);
    name[5] = 51;
    CHECK_EQ(decode_within(metadata_req_schema(), 0, name, sizeof name, SIZE_MAX, &metadata), ST_BAD_LENGTH);
}

TEST(the_arena_limits_what_a_body_may_take) {
    uint8_t topics[4 + 100 * 2] = {0, 0, 0, 100};
    struct metadata_req metadata;
    CHECK_EQ(decode_within(metadata_req_schema(), 0, topics, sizeof topics, 64, &metadata), ST_NO_MEMORY);
}

TEST(a_version_outside_the_table_is_not_decoded) {
    struct heartbeat_req got;
    CHECK_EQ(DECODE(heartbeat_req_schema(), 5, heartbeat_v4, &got), ST_UNSUPPORTED);
    CHECK_EQ(DECODE(heartbeat_req_schema(), -1, heartbeat_v4, &got), ST_UNSUPPORTED);
    CHECK_EQ(encode_status(heartbeat_req_schema(), 5, &got), ST_UNSUPPORTED);
}

TEST(a_bool_of_any_byte_is_true_or_false) {
    static const uint8_t metadata_v4[] = {0, 0, 0, 0, 0x40};
    struct metadata_req got;
    CHECK_EQ(DECODE(metadata_req_schema(), 4, metadata_v4, &got), ST_OK);
    CHECK_EQ(*(const uint8_t *)&got.allow_auto_topic_creation, 1);
}

/* ---- tagged fields ---- */

/* A Fetch v12 body up to its tagged fields. */
#define FETCH_V12 \
    0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 1, 1

TEST(a_known_tag_is_read_and_an_unknown_one_is_skipped) { /* B-44 */
    static const uint8_t body[] = {FETCH_V12, 2, 0, 3, 3, 'c', '1', 99, 2, 0xde, 0xad};
    struct fetch_req got;
    CHECK_EQ(DECODE(fetch_req_schema(), 12, body, &got), ST_OK);
    CHECK(str_equal(got.cluster_id, STR("c1")));
    CHECK_EQ(got.session_epoch, -1);
}

TEST(a_tagged_field_that_is_missing_has_its_default) {
    static const uint8_t body[] = {FETCH_V12, 0};
    struct fetch_req got;
    CHECK_EQ(DECODE(fetch_req_schema(), 12, body, &got), ST_OK);
    CHECK_EQ(got.cluster_id.len, -1);
    CHECK(!got.replica_state);
}

TEST(a_tag_of_another_version_is_skipped) {
    static const uint8_t body[] = {FETCH_V12, 1, 1, 2, 0xde, 0xad}; /* replica_state is v15 */
    struct fetch_req got;
    CHECK_EQ(DECODE(fetch_req_schema(), 12, body, &got), ST_OK);
    CHECK(!got.replica_state);
}

TEST(a_tagged_field_must_be_as_long_as_it_says) {
    static const uint8_t longer[] = {FETCH_V12, 1, 0, 4, 3, 'c', '1', 'x'};
    static const uint8_t shorter[] = {FETCH_V12, 1, 0, 2, 3, 'c', '1'};
    static const uint8_t beyond[] = {FETCH_V12, 1, 99, 5, 1};
    struct fetch_req got;
    CHECK_EQ(DECODE(fetch_req_schema(), 12, longer, &got), ST_BAD_LENGTH);
    CHECK_EQ(DECODE(fetch_req_schema(), 12, shorter, &got), ST_TRUNCATED);
    CHECK_EQ(DECODE(fetch_req_schema(), 12, beyond, &got), ST_TRUNCATED);
}

TEST(only_tagged_fields_that_differ_from_their_default_are_written) {
    uint8_t flat[64];
    struct produce_res_leader leader = {.leader_id = -1, .leader_epoch = -1};
    struct produce_res_partition partition;
    kmsg_init(produce_res_partition_schema(), &partition);
    struct produce_res_topic topic = {
        .name = STR("t"), .partition_responses = &partition, .partition_responses_count = 1};
    struct produce_res res = {.responses = &topic, .responses_count = 1};

    size_t plain = encode(produce_res_schema(), 10, &res, flat, sizeof flat);
    partition.current_leader = &leader;
    CHECK_EQ(encode(produce_res_schema(), 10, &res, flat, sizeof flat), plain);
    leader.leader_id = 4;
    /* tag, size, two int32 and an empty tagged section */
    CHECK_EQ(encode(produce_res_schema(), 10, &res, flat, sizeof flat), plain + 2 + 9);
    CHECK_EQ(encode(produce_res_schema(), 9, &res, flat, sizeof flat), plain);
}

/* ---- encode ---- */

TEST(records_and_slices_are_borrowed_by_the_output) {
    static uint8_t first[300], second[400];
    memset(first, 1, sizeof first);
    memset(second, 2, sizeof second);
    struct bytes parts[] = {{first, sizeof first}, {second, sizeof second}};
    struct fetch_res_partition partition;
    kmsg_init(fetch_res_partition_schema(), &partition);
    partition.records = (struct slices){.items = parts, .count = 2, .len = sizeof first + sizeof second};
    struct fetch_res_topic topic = {.topic = STR("t"), .partitions = &partition, .partitions_count = 1};
    struct fetch_res res = {.responses = &topic, .responses_count = 1};

    struct wbuf w;
    wbuf_init(&w, SIZE_MAX);
    CHECK_EQ(kmsg_encode(fetch_res_schema(), 11, &res, &w), ST_OK);
    CHECK_EQ(w.pieces_count, 3);
    CHECK(w.pieces[1].iov_base == first && w.pieces[1].iov_len == sizeof first);
    CHECK(w.pieces[2].iov_base == second && w.pieces[2].iov_len == sizeof second);
    const uint8_t *own_end = (const uint8_t *)w.pieces[0].iov_base + w.pieces[0].iov_len;
    CHECK_MEM(own_end - 4, "\x00\x00\x02\xbc", 4); /* 700 bytes of records */
    wbuf_release(&w);
}

TEST(what_was_decoded_from_one_body_encodes_to_it_across_many_chunks) {
    static uint8_t flat[200 * 1024], again[200 * 1024];
    enum { TOPICS = 60, PARTITIONS = 40 };
    static struct list_offsets_res_partition partitions[PARTITIONS];
    static struct list_offsets_res_topic topics[TOPICS];
    for (int i = 0; i < PARTITIONS; i++)
        partitions[i] =
            (struct list_offsets_res_partition){.partition_index = i, .offset = 1000 + i, .timestamp = -1};
    for (int i = 0; i < TOPICS; i++)
        topics[i] = (struct list_offsets_res_topic){
            .name = STR("a topic's name"), .partitions = partitions, .partitions_count = PARTITIONS};
    struct list_offsets_res res = {.topics = topics, .topics_count = TOPICS}, got;
    size_t len = encode(list_offsets_res_schema(), 6, &res, flat, sizeof flat);

    struct arena a;
    arena_init(&a, NULL, 0, SIZE_MAX);
    struct rbuf in = {flat, flat + len};
    CHECK_EQ(kmsg_decode(list_offsets_res_schema(), 6, &limits, &in, &a, &got), ST_OK);
    CHECK_EQ(got.topics[59].partitions[39].offset, 1039);
    CHECK_EQ(encode(list_offsets_res_schema(), 6, &got, again, sizeof again), len);
    CHECK_MEM(again, flat, len);
    arena_release(&a);
}

/* B-43, B-45 */
TEST(what_a_client_could_not_read_is_not_encoded) {
    struct heartbeat_req heartbeat = {.group_id = STR_NULL};
    CHECK_EQ(encode_status(heartbeat_req_schema(), 4, &heartbeat), ST_BAD_LENGTH);

    static char text[32768];
    heartbeat.group_id = (struct str){text, 32767};
    CHECK_EQ(encode_status(heartbeat_req_schema(), 0, &heartbeat), ST_OK);
    heartbeat.group_id.len = 32768;
    CHECK_EQ(encode_status(heartbeat_req_schema(), 0, &heartbeat), ST_BAD_LENGTH);
    CHECK_EQ(encode_status(heartbeat_req_schema(), 4, &heartbeat), ST_BAD_LENGTH);

    struct metadata_req metadata = {.topics_count = -1};
    CHECK_EQ(encode_status(metadata_req_schema(), 0, &metadata), ST_BAD_LENGTH);
    CHECK_EQ(encode_status(metadata_req_schema(), 1, &metadata), ST_OK);
    metadata.topics_count = -2;
    CHECK_EQ(encode_status(metadata_req_schema(), 1, &metadata), ST_BAD_LENGTH);

    struct fetch_res_partition partition = {.records = {.len = (int64_t)INT32_MAX + 1}};
    struct fetch_res_topic topic = {.partitions = &partition, .partitions_count = 1};
    struct fetch_res fetch = {.responses = &topic, .responses_count = 1};
    CHECK_EQ(encode_status(fetch_res_schema(), 11, &fetch), ST_BAD_LENGTH);
    struct bytes slice = {(const uint8_t *)text, 10};
    partition.records = (struct slices){.items = &slice, .count = 1, .len = 10};
    CHECK_EQ(encode_status(fetch_res_schema(), 11, &fetch), ST_OK);
    partition.records.len = 11;
    CHECK_EQ(encode_status(fetch_res_schema(), 11, &fetch), ST_BAD_LENGTH);
}

TEST(encode_stops_at_the_limit_of_its_output) {
    struct heartbeat_req heartbeat = {.group_id = STR("0123456789")};
    struct wbuf w;
    wbuf_init(&w, 12);
    CHECK_EQ(kmsg_encode(heartbeat_req_schema(), 0, &heartbeat, &w), ST_TOO_BIG);
    wbuf_release(&w);
}

TEST_OOM(encode_reports_that_memory_is_out) {
    static char text[2000];
    struct sasl_handshake_req req = {.mechanism = {text, sizeof text}};
    struct wbuf w;
    wbuf_init(&w, SIZE_MAX);
    enum status st = kmsg_encode(sasl_handshake_req_schema(), 1, &req, &w);
    CHECK(st == ST_OK || st == ST_NO_MEMORY);
    CHECK(st == ST_NO_MEMORY || w.bytes == 2 + sizeof text);
    wbuf_release(&w);
}

/* ---- tables ---- */

TEST(taken_structs_hold_their_defaults) {
    struct arena a;
    arena_init(&a, NULL, 0, 4096);
    struct metadata_res_partition *partitions = kmsg_take(metadata_res_partition_schema(), &a, 3);
    CHECK(partitions);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(partitions[i].leader_epoch, -1);
        CHECK_EQ(partitions[i].leader_id, 0);
        CHECK_EQ(partitions[i].isr_nodes.count, 0);
    }
    CHECK(kmsg_take(metadata_res_partition_schema(), &a, 0));
    CHECK(!kmsg_take(metadata_res_partition_schema(), &a, 4096));
    struct metadata_res res;
    memset(&res, 0xa5, sizeof res);
    kmsg_init(metadata_res_schema(), &res);
    CHECK_EQ(res.cluster_id.len, -1);
    CHECK_EQ(res.controller_id, -1);
    CHECK_EQ(res.cluster_authorized_operations, INT32_MIN);
    CHECK_EQ(res.topics_count, 0);
    arena_release(&a);
}

TEST(a_key_has_a_request_and_a_response_of_the_same_versions_or_neither) {
    int found = 0;
    for (int key = INT16_MIN; key <= INT16_MAX; key++) {
        const struct schema *req = kmsg_request((int16_t)key), *res = kmsg_response((int16_t)key);
        CHECK_EQ(req != NULL, res != NULL);
        if (!req)
            continue;
        found++;
        CHECK_EQ(req->api_key, key);
        CHECK_EQ(res->api_key, key);
        CHECK_EQ(req->versions.first, res->versions.first);
        CHECK_EQ(req->versions.last, res->versions.last);
        CHECK_EQ(req->flexible_from, res->flexible_from);
    }
    CHECK_EQ(found, 33);
}

static void check_rows(const struct schema *s) {
    int last_tag = -1;
    for (uint16_t i = 0; i < s->field_count; i++) {
        const struct field *f = &s->fields[i];
        CHECK(f->on.first <= f->on.last);
        if (f->tag >= 0) {
            CHECK(f->tag > last_tag); /* Java writes them in this order */
            last_tag = f->tag;
        }
        if (f->group)
            check_rows(f->group());
    }
}

TEST(tags_ascend_in_every_table) {
    for (int16_t key = 0; key < 128; key++)
        if (kmsg_request(key)) {
            check_rows(kmsg_request(key));
            check_rows(kmsg_response(key));
        }
}

TEST(a_message_is_flexible_from_its_version_on) {
    CHECK(!kmsg_is_flexible(produce_req_schema(), 8));
    CHECK(kmsg_is_flexible(produce_req_schema(), 9));
    CHECK(kmsg_is_flexible(describe_cluster_req_schema(), 0));
    CHECK(!kmsg_is_flexible(sasl_handshake_req_schema(), INT16_MAX));
}
