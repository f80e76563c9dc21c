#include "backend/iggy/bridge_rig_test.h"
#include "backend/iggy/fake_log_test.h"
#include "backend/iggy/producers.h"
#include "backend/iggy/view.h"
#include "base/clock.h"
#include "base/mem.h"
#include "iggy/errors.h"
#include "net/loop.h"
#include "testing/test.h"

static struct bridge_rig rig;

/* ---- the start ---- */

/* A-34, D6-11 */
TEST(the_start_makes_the_default_stream_and_learns_the_version) {
    rig_open(&rig, (struct rig_options){.version = IGGY_0_12_2});
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_create_stream), 1);
    CHECK_EQ(iggy_backend_version(rig.backend), IGGY_0_12_2);
    CHECK_EQ(strlen(iggy_backend_cluster_id(rig.backend)), 22);
    fake_expect_conns(&rig.server, 0); /* the connection of the start is gone */
    rig_close(&rig);
}

TEST(the_start_takes_a_server_of_0_11) {
    rig_open(&rig, (struct rig_options){.version = IGGY_0_11});
    CHECK_EQ(iggy_backend_version(rig.backend), IGGY_0_11);
    rig_close(&rig);
}

TEST(the_cluster_id_is_the_same_for_every_gateway_and_another_when_it_is_set) {
    char id[64];
    rig_open(&rig, (struct rig_options){0});
    snprintf(id, sizeof id, "%s", iggy_backend_cluster_id(rig.backend));
    rig_close(&rig);
    rig_open(&rig, (struct rig_options){0});
    CHECK_TEXT(iggy_backend_cluster_id(rig.backend), id);
    rig_close(&rig);
    rig_prepare(&rig, (struct rig_options){0});
    rig.settings.cluster_id = "mine";
    rig_begin(&rig);
    CHECK_TEXT(iggy_backend_cluster_id(rig.backend), "mine");
    rig_close(&rig);
}

static enum status start_fails(char reason[512]) {
    enum status st = iggy_backend_new(&rig.settings, &rig.backend, reason);
    CHECK(st != ST_OK);
    CHECK(rig.backend == NULL);
    CHECK(strstr(reason, rig.settings.password) == NULL);
    CHECK(strchr(reason, '\n') == NULL);
    rig_close(&rig);
    return st;
}

TEST(a_wrong_password_ends_the_start_at_once_and_says_so) {
    char reason[512], address[64];
    rig_prepare(&rig, (struct rig_options){0});
    rig.settings.password = "swordfish";
    snprintf(address, sizeof address, "127.0.0.1:%d", rig.server.port);
    CHECK_EQ(start_fails(reason), ST_LOGIN_REFUSED);
    CHECK(strstr(reason, "can't log in with this user name and password") != NULL);
    CHECK(strstr(reason, address) != NULL);
}

TEST(a_stream_that_may_not_be_made_ends_the_start) {
    char reason[512];
    rig_prepare(&rig, (struct rig_options){0});
    fake_refuse(&rig.server, IGGY_CMD_create_stream, IGGY_ERR_UNAUTHORIZED, 1);
    CHECK_EQ(start_fails(reason), ST_DENIED);
    CHECK(strstr(reason, "the default stream can't be created") != NULL);
    CHECK(strstr(reason, "Unauthorized") != NULL);
}

/* */
TEST(a_topic_that_the_map_hides_ends_the_start) {
    char reason[512];
    rig_prepare(&rig, (struct rig_options){.mapped = "orders"});
    fake_add_topic(&rig.server, "kafka", "orders", 1);
    CHECK_EQ(start_fails(reason), ST_INVALID);
    CHECK(strstr(reason, "the topic map gives the name orders to another Iggy topic") != NULL);
}

/* ---- topics ---- */

static struct backend_topics_part part_of(const char *name) {
    return (struct backend_topics_part){.name = str_of(name)};
}

static enum status look_up(const char *name, struct backend_topic *out) {
    struct turn turn = {.topics = {.want_settings = true}};
    struct backend_topics_part part = part_of(name);
    turn.topics.parts = &part;
    turn.topics.parts_count = 1;
    turn_run(&rig, &turn, start_topics);
    if (out)
        *out = part.topic;
    return part.status;
}

static enum status look_up_id(struct uuid id, struct backend_topic *out) {
    struct turn turn = {.topics = {.want_settings = false}};
    struct backend_topics_part part = {.name = STR_NULL, .id = id};
    turn.topics.parts = &part;
    turn.topics.parts_count = 1;
    turn_run(&rig, &turn, start_topics);
    if (out)
        *out = part.topic;
    return part.status;
}

/* D2-50 */
TEST(one_look_up_serves_all_who_want_a_topic_at_a_time) {
    struct turn turns[20];
    struct backend_topics_part parts[COUNT_OF(turns)];
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 3);
    fake_hold(&rig.server, IGGY_CMD_get_topic);
    for (size_t i = 0; i < COUNT_OF(turns); i++) {
        parts[i] = part_of("t");
        turns[i] = (struct turn){.topics = {.parts = &parts[i], .parts_count = 1}};
        turn_begin(&rig, 0, &turns[i], start_topics);
    }
    fake_expect(&rig.server, IGGY_CMD_get_topic, 1);
    fake_let_go(&rig.server);
    for (size_t i = 0; i < COUNT_OF(turns); i++) {
        turn_end(&turns[i]);
        CHECK_EQ(parts[i].status, ST_OK);
        CHECK_EQ(parts[i].topic.partitions_count, 3);
    }
    CHECK(fake_seen(&rig.server, IGGY_CMD_get_topic) <=
          2); /* those that came more than 100 ms later want a newer one */
    rig_close(&rig);
}

/* One after the other, each wants to see what is there when it comes. */
struct presents {
    struct bridge_loop *loop;
    struct view_want want;
    int left;
    sem_t ended;
};

static void presents_next(struct op *op) {
    struct presents *p = container_of(op, struct presents, want.op);
    view_unref(p->want.view);
    if (p->left-- == 0) {
        sem_post(&p->ended);
        return;
    }
    int64_t now = loop_now_ms(p->loop->loop);
    p->want = (struct view_want){.name = STR("t"), .asked_ms = now, .deadline_ms = now + RIG_WAIT_MS};
    op_init(&p->want.op, p->loop->loop, presents_next);
    view_get(p->loop, &p->want);
}

static void presents_begin(struct bridge_loop *l, void *arg) {
    struct presents *p = arg;
    p->loop = l;
    presents_next(&p->want.op);
}

TEST(who_wants_to_see_the_present_gets_a_call_of_his_own_within_the_same_millisecond_too) {
    struct presents p = {.left = 50};
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    sem_init(&p.ended, 0, 0);
    rig_run(&rig, presents_begin, &p);
    while (sem_wait(&p.ended) != 0)
        continue;
    sem_destroy(&p.ended);
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_get_topic), 50);
    rig_close(&rig);
}

TEST(a_topic_that_is_missing_is_asked_for_each_time) {
    rig_open(&rig, (struct rig_options){0});
    CHECK_EQ(look_up("t", NULL), ST_NOT_FOUND);
    fake_add_topic(&rig.server, "kafka", "t", 1);
    CHECK_EQ(look_up("t", NULL), ST_OK);
    rig_close(&rig);
}

TEST(topics_are_found_by_id_and_a_new_one_of_the_same_name_has_another) {
    struct backend_topic topic, found;
    rig_open(&rig, (struct rig_options){.loops_count = 2});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    CHECK_EQ(look_up("t", &topic), ST_OK);
    CHECK(!uuid_is_zero(&topic.id));
    CHECK_EQ(look_up_id(topic.id, &found), ST_OK);
    CHECK(str_equal(found.name, STR("t")));
    struct turn other = {.topics = {.parts_count = 1}}; /* a loop that has not seen it yet */
    struct backend_topics_part part = {.name = STR_NULL, .id = topic.id};
    other.topics.parts = &part;
    turn_begin(&rig, 1, &other, start_topics);
    turn_end(&other);
    CHECK_EQ(part.status, ST_OK);
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_get_topics), 1);

    struct backend_delete_part gone = {.name = STR("t")};
    struct turn delete = {.delete_ = {.parts = &gone, .parts_count = 1}};
    turn_run(&rig, &delete, start_delete);
    CHECK_EQ(gone.status, ST_OK);
    fake_add_topic(&rig.server, "kafka", "t", 1);
    CHECK_EQ(look_up_id(topic.id, NULL), ST_UNKNOWN_ID);
    CHECK_EQ(look_up("t", &found), ST_OK);
    CHECK(!uuid_equal(&found.id, &topic.id));
    CHECK_EQ(look_up_id(topic.id, NULL), ST_UNKNOWN_ID);
    rig_close(&rig);
}

/* */
TEST(a_listing_shows_the_default_stream_and_what_the_map_points_at) {
    rig_prepare(&rig, (struct rig_options){.mapped = "mapped"});
    fake_add_topic(&rig.server, "kafka", "b", 1);
    fake_add_topic(&rig.server, "kafka", "a", 2);
    fake_add_topic(&rig.server, "other", "place", 3);
    fake_add_topic(&rig.server, "other", "unmapped", 1);
    rig_begin(&rig);
    struct turn turn = {.topics = {.all = true}};
    turn_run(&rig, &turn, start_topics);
    CHECK_EQ(turn.topics.status, ST_OK);
    CHECK_EQ(turn.topics.topics_count, 3);
    const char *names[] = {"a", "b", "mapped"};
    for (int i = 0; i < 3; i++)
        CHECK(str_equal(turn.topics.topics[i].name, str_of(names[i])));
    CHECK_EQ(turn.topics.topics[2].partitions_count, 3);
    CHECK_EQ(look_up("mapped", NULL), ST_OK);
    CHECK_EQ(look_up("place", NULL), ST_NOT_FOUND);
    rig_close(&rig);
}

static int32_t listed_count(void) {
    struct turn turn = {.topics = {.all = true}};
    turn_run(&rig, &turn, start_topics);
    CHECK_EQ(turn.topics.status, ST_OK);
    return turn.topics.topics_count;
}

/* D7-6: however young the last listing is. */
TEST(a_listing_shows_what_was_made_and_deleted_before_it) {
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    CHECK_EQ(listed_count(), 1);
    struct backend_delete_part gone = {.name = STR("t")};
    struct turn delete = {.delete_ = {.parts = &gone, .parts_count = 1}};
    turn_run(&rig, &delete, start_delete);
    CHECK_EQ(gone.status, ST_OK);
    CHECK_EQ(listed_count(), 0);
    struct backend_create_part made = {.name = STR("u"), .partitions_count = 1};
    struct turn create = {.create = {.parts = &made, .parts_count = 1}};
    turn_run(&rig, &create, start_create);
    CHECK_EQ(made.status, ST_OK);
    CHECK_EQ(listed_count(), 1);
    rig_close(&rig);
}

TEST(a_listing_that_fails_says_so) {
    rig_open(&rig, (struct rig_options){0});
    fake_refuse(&rig.server, IGGY_CMD_get_topics, IGGY_ERR_UNAUTHORIZED, 1);
    struct turn turn = {.topics = {.all = true}};
    turn_run(&rig, &turn, start_topics);
    CHECK_EQ(turn.topics.status, ST_DENIED);
    CHECK_EQ(turn.topics.topics_count, 0);
    rig_close(&rig);
}

static enum status create(const char *name, int32_t partitions, struct backend_setting *settings,
                          int32_t count) {
    struct backend_create_part part = {
        .name = str_of(name), .partitions_count = partitions, .settings = settings, .settings_count = count};
    struct turn turn = {.create = {.parts = &part, .parts_count = 1}};
    turn_run(&rig, &turn, start_create);
    CHECK(part.status != ST_OK || !uuid_is_zero(&part.id));
    return part.status;
}

/* D6-2, D6-11 */
TEST(topics_are_made_with_their_stream_and_once) {
    struct backend_topic topic;
    rig_open(&rig, (struct rig_options){.mapped = "mapped"});
    CHECK_EQ(create("t", 3, NULL, 0), ST_OK);
    CHECK_EQ(create("t", 3, NULL, 0), ST_EXISTS);
    CHECK_EQ(create("mapped", 1, NULL, 0), ST_OK);
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_create_stream), 2); /* kafka and other */
    CHECK_EQ(look_up("t", &topic), ST_OK);
    CHECK_EQ(topic.partitions_count, 3);
    CHECK_EQ(topic.settings_count, 0);
    CHECK_EQ(look_up("mapped", NULL), ST_OK);
    rig_close(&rig);
}

TEST(a_creation_whose_answer_is_lost_is_one) { /* F: 59 */
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    fake_refuse(&rig.server, IGGY_CMD_create_topic, IGGY_ERR_REQUEST_ALREADY_APPLIED, 1);
    CHECK_EQ(create("t", 1, NULL, 0), ST_OK);
    rig_close(&rig);
}

TEST(refused_creations_say_why) {
    static const struct {
        uint32_t code;
        enum status status;
    } rows[] = {{IGGY_ERR_UNAUTHORIZED, ST_DENIED},
                {IGGY_ERR_PARTITIONS_LIMIT_REACHED, ST_POLICY},
                {IGGY_ERR_TOO_MANY_PARTITIONS, ST_BAD_PARTITIONS},
                {IGGY_ERR_INVALID_TOPIC_SIZE, ST_REFUSED}};
    rig_open(&rig, (struct rig_options){0});
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fake_refuse(&rig.server, IGGY_CMD_create_topic, rows[i].code, 1);
        CHECK_EQ(create("t", 1, NULL, 0), rows[i].status);
    }
    rig_close(&rig);
}

TEST(validation_makes_nothing) { /* D6-8 */
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "there", 1);
    struct backend_create_part parts[] = {{.name = STR("there"), .partitions_count = 1},
                                          {.name = STR("new"), .partitions_count = 1}};
    struct turn turn = {.create = {.parts = parts, .parts_count = 2, .validate_only = true}};
    turn_run(&rig, &turn, start_create);
    CHECK_EQ(parts[0].status, ST_EXISTS);
    CHECK_EQ(parts[1].status, ST_OK);
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_create_topic), 0);
    rig_close(&rig);
}

static bool has_setting(const struct backend_topic *t, const char *key, const char *value) {
    for (int32_t i = 0; i < t->settings_count; i++)
        if (str_equal(t->settings[i].key, str_of(key)))
            return value ? str_equal(t->settings[i].value, str_of(value)) : t->settings[i].value.len < 0;
    return false;
}

/* D9-4. Of 0.12, where the numbers stand among the options only. */
TEST(retention_goes_to_the_server_and_comes_back) {
    struct backend_topic topic;
    rig_open(&rig, (struct rig_options){.version = IGGY_0_12_2});
    struct backend_setting settings[] = {{STR("retention.ms"), STR("8000")},
                                         {STR("cleanup.policy"), STR("delete")},
                                         {STR("retention.bytes"), STR("5000000000")}};
    CHECK_EQ(create("t", 2, settings, 3), ST_OK);
    CHECK_EQ(look_up("t", &topic), ST_OK);
    CHECK_EQ(topic.settings_count, 2); /* what Iggy has no place for is not kept */
    CHECK(has_setting(&topic, "retention.ms", "8000"));
    CHECK(has_setting(&topic, "retention.bytes", "5000000000"));
    struct backend_setting forever[] = {{STR("retention.ms"), STR("-1")},
                                        {STR("retention.bytes"), STR("-1")}};
    CHECK_EQ(create("u", 2, forever, 2), ST_OK);
    CHECK_EQ(look_up("u", &topic), ST_OK);
    CHECK(has_setting(&topic, "retention.ms", "-1"));
    CHECK(has_setting(&topic, "retention.bytes", "-1"));
    rig_close(&rig);
}

TEST(missing_topics_are_made_where_the_call_asks_for_it) { /* D4-5 */
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "there", 2);
    struct backend_topics_part parts[] = {part_of("there"), part_of("new"), part_of("newer"), part_of("bad")};
    parts[3].status = ST_BAD_NAME;
    struct turn turn = {
        .topics = {.parts = parts, .parts_count = 4, .create = true, .partitions_default = 4}};
    turn_run(&rig, &turn, start_topics);
    CHECK_EQ(parts[0].topic.partitions_count, 2);
    CHECK_EQ(parts[1].status, ST_OK);
    CHECK_EQ(parts[1].topic.partitions_count, 4);
    CHECK_EQ(parts[2].topic.partitions_count, 4);
    CHECK_EQ(parts[3].status, ST_BAD_NAME);
    rig_close(&rig);
}

TEST(topics_are_deleted_by_name_and_id) { /* D7-1, D7-2 */
    struct backend_topic topic;
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "a", 1);
    fake_add_topic(&rig.server, "kafka", "b", 1);
    CHECK_EQ(look_up("b", &topic), ST_OK);
    struct backend_delete_part parts[] = {{.name = STR("a")},
                                          {.name = STR_NULL, .id = topic.id},
                                          {.name = STR("c")},
                                          {.name = STR_NULL, .id = {{9}}}};
    struct turn turn = {.delete_ = {.parts = parts, .parts_count = 4}};
    turn_run(&rig, &turn, start_delete);
    CHECK_EQ(parts[0].status, ST_OK);
    CHECK_EQ(parts[1].status, ST_OK);
    CHECK(str_equal(parts[1].name, STR("b")));
    CHECK_EQ(parts[2].status, ST_NOT_FOUND);
    CHECK_EQ(parts[3].status, ST_UNKNOWN_ID);
    CHECK_EQ(look_up("a", NULL), ST_NOT_FOUND);
    rig_close(&rig);
}

TEST(topics_grow) { /* D8-1 */
    struct backend_topic topic;
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "a", 2);
    struct backend_grow_part parts[] = {{.name = STR("a"), .partitions_count = 5},
                                        {.name = STR("a"), .partitions_count = 5},
                                        {.name = STR("b"), .partitions_count = 5}};
    struct turn turn = {.grow = {.parts = parts, .parts_count = 3}};
    turn_run(&rig, &turn, start_grow);
    CHECK_EQ(parts[0].status, ST_OK);
    CHECK_EQ(parts[0].partitions_before, 2);
    CHECK_EQ(parts[1].status, ST_INVALID);
    CHECK_EQ(parts[1].partitions_before, 5);
    CHECK_EQ(parts[2].status, ST_NOT_FOUND);
    CHECK_EQ(look_up("a", &topic), ST_OK);
    CHECK_EQ(topic.partitions_count, 5);
    rig_close(&rig);
}

/* ---- appends ---- */

TEST(batches_are_sent_and_answered_with_their_offset) {
    struct turn turn;
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    for (int i = 0; i < 3; i++) {
        append_of(&rig, &turn, "t", rig_batch(&rig, (struct batch_want){.records_count = 5, .letter = 'a'}));
        turn_run(&rig, &turn, start_append);
        CHECK_EQ(turn.append.parts[0].status, ST_OK);
        CHECK_EQ(turn.append.parts[0].base_offset, 5 * i);
        CHECK_EQ(turn.append.parts[0].start_offset, -1); /* D1-21 */
    }
    CHECK_EQ(rig.server.sends[2].messages_count, 5);
    CHECK_EQ(rig.server.sends[2].incarnation, rig.server.topics[0].incarnation);
    CHECK_EQ(fake_seen(&rig.server, IGGY_CMD_get_topic), 1);
    rig_close(&rig);
}

/* Larger ones are converted in the pool, several at once, and small ones at once, on the loop. */
TEST(batches_of_a_partition_are_sent_in_the_order_of_the_calls_whichever_is_converted_first) {
    enum { COUNT = 120 };
    static struct turn turns[COUNT];
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    for (int i = 0; i < COUNT; i++) {
        struct batch_want want = {.letter = (char)('!' + i % 90)};
        if (i % 3 == 0)
            want = (struct batch_want){.letter = want.letter, .value_len = 900, .records_count = 1000};
        if (i % 3 == 1)
            want = (struct batch_want){.letter = want.letter, .value_len = 500, .codec = CODEC_ZSTD};
        append_of(&rig, &turns[i], "t", rig_batch(&rig, want));
        turn_begin(&rig, 0, &turns[i], start_append);
    }
    for (int i = 0; i < COUNT; i++) {
        turn_end(&turns[i]);
        CHECK_EQ(turns[i].append.parts[0].status, ST_OK);
        CHECK_EQ(rig.server.sends[i].first, '!' + i % 90);
    }
    rig_close(&rig);
}

TEST(many_sends_are_under_way_in_one_connection) {
    static struct turn turns[SENDS_MAX + 1];
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    fake_hold(&rig.server, IGGY_CMD_send_messages);
    for (int i = 0; i <= SENDS_MAX; i++) {
        append_of(&rig, &turns[i], "t", rig_batch(&rig, (struct batch_want){.letter = 'a'}));
        turn_begin(&rig, 0, &turns[i], start_append);
    }
    fake_expect(&rig.server, IGGY_CMD_send_messages, SENDS_MAX);
    fake_let_go(&rig.server);
    for (int i = 0; i <= SENDS_MAX; i++) {
        turn_end(&turns[i]);
        CHECK_EQ(turns[i].append.parts[0].base_offset, i);
    }
    rig_close(&rig);
}

/* G-1 */
TEST(producers_have_connections_of_their_own_and_others_share_one) {
    rig_open(&rig, (struct rig_options){.sessions = 8});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    const int64_t ids[] = {7, 0, 8, 7, 0, 8};
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        CHECK_EQ(
            append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a', .producer_id = ids[i]})),
            ST_OK);
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ(rig.server.sends[i].conn, rig.server.sends[i + 3].conn);
        CHECK(rig.server.sends[i].conn != rig.server.sends[(i + 1) % 3].conn);
    }
    rig_close(&rig);
}

static void age_producers(struct bridge_loop *l, void *arg) {
    const int64_t *ids = arg;
    for (; *ids; ids++)
        producer_take(l, *ids)->used_ms -= PRODUCER_UNUSED_MS + 1;
}

static int conn_of(int64_t id) {
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a', .producer_id = id})),
             ST_OK);
    return rig.server.sends[rig.server.sends_count - 1].conn;
}

/* G-2 */
TEST(a_new_producer_takes_the_place_of_the_one_unused_for_longest_or_shares) {
    rig_open(&rig, (struct rig_options){.sessions = 2});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    int shared = conn_of(0), one = conn_of(1), two = conn_of(2);
    CHECK(one != shared && two != shared && one != two);
    CHECK_EQ(conn_of(3), shared); /* both were used just now */
    int64_t unused[] = {2, 1, 0};
    rig_run(&rig, age_producers, unused);
    CHECK(conn_of(3) != shared);
    CHECK_EQ(conn_of(1), one); /* it was used after 2 */
    CHECK_EQ(conn_of(2), shared);
    rig_close(&rig);
}

TEST(without_sessions_all_producers_share_one_connection) { /* G-4 */
    rig_open(&rig, (struct rig_options){.sessions = 0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    CHECK_EQ(conn_of(1), conn_of(2));
    CHECK_EQ(conn_of(0), conn_of(2));
    rig_close(&rig);
}

/* Reference 15.9 */
TEST(what_kafka_knows_of_a_producer_goes_along_where_the_server_has_a_place_for_it) {
    struct bytes batch;
    rig_open(&rig, (struct rig_options){.version = IGGY_0_12_2, .sessions = 1});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    batch = rig_batch(&rig, (struct batch_want){.letter = 'a', .producer_id = 9, .sequence = 17});
    CHECK_EQ(append_run(&rig, "t", batch), ST_OK);
    CHECK(rig.server.sends[0].producer.present);
    CHECK_EQ(rig.server.sends[0].producer.id, 9);
    CHECK_EQ(rig.server.sends[0].producer.base_sequence, 17);
    rig_close(&rig);
    rig_open(&rig, (struct rig_options){.version = IGGY_0_11, .sessions = 1});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    batch = rig_batch(&rig, (struct batch_want){.letter = 'a', .producer_id = 9, .sequence = 17});
    CHECK_EQ(append_run(&rig, "t", batch), ST_OK);
    CHECK(!rig.server.sends[0].producer.present);
    rig_close(&rig);
}

TEST(a_duplicate_is_stored_and_its_offset_is_not_known) { /* D1-21 */
    struct turn turn;
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    rig.server.forgets_offset = true;
    append_of(&rig, &turn, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'}));
    turn_run(&rig, &turn, start_append);
    CHECK_EQ(turn.append.parts[0].status, ST_OK);
    CHECK_EQ(turn.append.parts[0].base_offset, -1);
    rig_close(&rig);
}

/* F */
TEST(refused_sends_say_why) {
    static const struct {
        uint32_t code;
        enum status status;
    } rows[] = {
        {IGGY_ERR_RESOURCE_NOT_FOUND, ST_NOT_FOUND},
        {IGGY_ERR_UNAUTHORIZED, ST_DENIED},
        {IGGY_ERR_TRANSIENT_NOT_COMMITTED, ST_TIMED_OUT},
        {IGGY_ERR_PRODUCER_SEQUENCE_OUT_OF_ORDER, ST_BAD_SEQUENCE},
        {IGGY_ERR_PRODUCER_EPOCH_FENCED, ST_FENCED},
        {IGGY_ERR_PRODUCER_UNKNOWN, ST_UNKNOWN_PRODUCER},
        {IGGY_ERR_TOO_BIG_MESSAGE_PAYLOAD, ST_TOO_BIG},
        {IGGY_ERR_REQUEST_ALREADY_APPLIED, ST_OK},
        {IGGY_ERR_CANNOT_APPEND_MESSAGE, ST_REFUSED},
    };
    rig_open(&rig, (struct rig_options){.version = IGGY_0_11});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fake_refuse(&rig.server, IGGY_CMD_send_messages, rows[i].code, 1);
        CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), rows[i].status);
    }
    rig_close(&rig);
}

TEST(a_partition_that_has_moved_is_looked_up_and_sent_to_once_more) { /* 87, 89 */
    struct turn turn;
    rig_open(&rig, (struct rig_options){.version = IGGY_0_12_2});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), ST_OK);
    fake_lock(&rig.server);
    rig.server.topics[0].incarnation = 5555;
    fake_unlock(&rig.server);
    fake_refuse(&rig.server, IGGY_CMD_send_messages, IGGY_ERR_HISTORY_UNAVAILABLE, 1);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'b'})), ST_OK);
    CHECK_EQ(rig.server.sends_count, 2);
    CHECK_EQ(rig.server.sends[1].incarnation, 5555);
    fake_refuse(&rig.server, IGGY_CMD_send_messages, IGGY_ERR_NOT_PRIMARY, 2);
    append_of(&rig, &turn, "t", rig_batch(&rig, (struct batch_want){.letter = 'c'}));
    turn_run(&rig, &turn, start_append);
    CHECK_EQ(turn.append.parts[0].status, ST_UNAVAILABLE);
    CHECK_EQ(rig.server.sends_count, 2);
    rig_close(&rig);
}

TEST(what_is_sent_anew_keeps_its_place) {
    enum { COUNT = 10 };
    static struct turn turns[COUNT];
    rig_open(&rig, (struct rig_options){.version = IGGY_0_12_2});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'x'})), ST_OK);
    fake_hold(&rig.server, IGGY_CMD_send_messages);
    for (int i = 0; i < COUNT; i++) {
        append_of(&rig, &turns[i], "t", rig_batch(&rig, (struct batch_want){.letter = (char)('a' + i)}));
        turn_begin(&rig, 0, &turns[i], start_append);
    }
    fake_expect(&rig.server, IGGY_CMD_send_messages, 1 + COUNT);
    fake_refuse(&rig.server, IGGY_CMD_send_messages, IGGY_ERR_NOT_PRIMARY, COUNT);
    fake_let_go(&rig.server);
    for (int i = 0; i < COUNT; i++) {
        turn_end(&turns[i]);
        CHECK_EQ(turns[i].append.parts[0].status, ST_OK);
        CHECK_EQ(rig.server.sends[1 + i].first, 'a' + i);
    }
    rig_close(&rig);
}

TEST(a_topic_deleted_under_a_producer_is_not_found_and_may_come_back) {
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), ST_OK);
    fake_remove_topic(&rig.server, "t");
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), ST_NOT_FOUND);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), ST_NOT_FOUND);
    fake_add_topic(&rig.server, "kafka", "t", 1);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), ST_OK);
    rig_close(&rig);
}

TEST(partitions_that_do_not_exist_are_not_found) { /* D1-4 */
    struct turn turn;
    const int32_t bad[] = {-1, 2, INT32_MAX};
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 2);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        append_of(&rig, &turn, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'}));
        turn.append.parts[0].partition = bad[i];
        turn_run(&rig, &turn, start_append);
        CHECK_EQ(turn.append.parts[0].status, ST_NOT_FOUND);
    }
    CHECK_EQ(rig.server.sends_count, 0);
    rig_close(&rig);
}

TEST(bad_batches_are_refused_with_a_reason_and_do_not_stop_the_next) { /* D1-15 */
    struct turn turn;
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    append_of(&rig, &turn, "t", (struct bytes){(const uint8_t *)"garbage", 7});
    turn_run(&rig, &turn, start_append);
    CHECK_EQ(turn.append.parts[0].status, ST_BAD_RECORD);
    CHECK(turn.append.parts[0].reason != NULL);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), ST_OK);
    rig_close(&rig);
}

/* D1-30, D1-40 */
TEST(what_is_too_large_for_the_server_or_for_a_partition_is_refused) {
    struct turn turn;
    rig_open(&rig, (struct rig_options){.batch_bytes_max = 100000, .send_bytes_max = 50000});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    append_of(&rig, &turn, "t", rig_batch(&rig, (struct batch_want){.letter = 'a', .value_len = 60000}));
    turn_run(&rig, &turn, start_append);
    CHECK_EQ(turn.append.parts[0].status, ST_TOO_BIG);
    CHECK_TEXT(turn.append.parts[0].reason,
               "The records are larger than one send to the Iggy server may be.");
    struct bytes large =
        rig_batch(&rig, (struct batch_want){.letter = 'a', .value_len = 200000, .codec = CODEC_GZIP});
    CHECK_EQ(append_run(&rig, "t", large), ST_TOO_BIG);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a', .value_len = 40000})),
             ST_OK);
    rig_close(&rig);
}

/* D1-33, D1-41: eight partition caps, then the rest of the request is refused unseen. */
TEST(a_request_that_has_used_up_its_budget_is_cut_there) {
    enum { COUNT = 12 };
    struct turn turn = {.append = {.parts_count = COUNT}};
    struct backend_append_part parts[COUNT];
    rig_open(&rig, (struct rig_options){.batch_bytes_max = 70000});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    for (int i = 0; i < COUNT; i++)
        parts[i] = (struct backend_append_part){
            .topic = STR("t"),
            .records = rig_batch(&rig, (struct batch_want){.letter = 'a', .value_len = 60000})};
    turn.append.parts = parts;
    turn_run(&rig, &turn, start_append);
    for (int i = 0; i < COUNT; i++)
        CHECK_EQ(parts[i].status, i < 9 ? ST_OK : ST_OVER_BUDGET);
    CHECK_EQ(budget_free_bytes(rig.bridge->decoding), 4 * 70000);
    CHECK_EQ(budget_free_bytes(rig.bridge->decoding_small), 70000);
    rig_close(&rig);
}

static void take_all(struct bridge_loop *l, void *arg) {
    (void)arg;
    CHECK(budget_try(l->bridge->decoding, 4 << 20));
}

/* D1-34, D1-43, D1-44 */
TEST(large_batches_wait_for_memory_and_small_ones_of_other_producers_pass) {
    struct turn large;
    rig_open(&rig, (struct rig_options){.sessions = 2});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    rig_run(&rig, take_all, NULL);
    append_of(&rig, &large, "t",
              rig_batch(&rig, (struct batch_want){.letter = 'a', .value_len = 100000, .producer_id = 1}));
    large.append.deadline_ms = clock_ms() + 300;
    turn_begin(&rig, 0, &large, start_append);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'b', .producer_id = 2})),
             ST_OK);
    turn_end(&large);
    CHECK_EQ(large.append.parts[0].status, ST_TIMED_OUT);
    CHECK_EQ(rig.server.sends_count, 1);
    budget_give(rig.bridge->decoding, 4 << 20);
    rig_close(&rig);
}

/* Else requests, which hold it until their answers are there, and those answers would wait for each other. */
TEST(answers_to_sends_do_not_wait_for_the_memory_of_requests) {
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    budget_force(rig.budget, INT64_C(2) << 30);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), ST_OK);
    CHECK_EQ(look_up("t", NULL), ST_OK);
    budget_give(rig.budget, INT64_C(2) << 30);
    rig_close(&rig);
}

TEST(a_send_without_an_answer_ends_with_the_request_and_may_have_landed) { /* D1-34 */
    struct turn turn;
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    fake_hold(&rig.server, IGGY_CMD_send_messages);
    append_of(&rig, &turn, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'}));
    turn.append.deadline_ms = clock_ms() + 200;
    turn_run(&rig, &turn, start_append);
    CHECK_EQ(turn.append.parts[0].status, ST_TIMED_OUT);
    rig_close(&rig);
}

TEST(a_connection_lost_in_a_send_leaves_its_outcome_open) { /* F, D1-34; 0.11 has no way to ask */
    rig_open(&rig, (struct rig_options){.version = IGGY_0_11});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    fake_refuse(&rig.server, IGGY_CMD_send_messages, 0, 1);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), ST_TIMED_OUT);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), ST_OK);
    rig_close(&rig);
}

/* Two numbered batches have gone to a server of 0.11, which answers the second one first. */
static void answer_second_first(struct turn turns[2]) {
    rig_open(&rig, (struct rig_options){.version = IGGY_0_11});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    fake_hold(&rig.server, IGGY_CMD_send_messages);
    for (int i = 0; i < 2; i++) {
        append_of(&rig, &turns[i], "t",
                  rig_batch(&rig, (struct batch_want){.letter = 'a', .producer_id = 7, .sequence = i}));
        turn_begin(&rig, 0, &turns[i], start_append);
    }
    fake_expect(&rig.server, IGGY_CMD_send_messages, 2);
    fake_let_go_last(&rig.server);
}

TEST(a_batch_that_is_stored_while_one_before_it_has_no_answer_waits_for_that) { /* G-6 */
    struct turn turns[2];
    answer_second_first(turns);
    fake_let_go(&rig.server);
    for (int i = 0; i < 2; i++) {
        turn_end(&turns[i]);
        CHECK_EQ(turns[i].append.parts[0].status, ST_OK);
        CHECK_EQ(turns[i].append.parts[0].base_offset, 1 - i); /* as it was stored */
    }
    rig_close(&rig);
}

TEST(a_batch_that_is_stored_is_not_acknowledged_when_one_before_it_fails_later) { /* G-6 */
    struct turn turns[2];
    answer_second_first(turns);
    fake_hang_up_all(&rig.server);
    for (int i = 0; i < 2; i++) {
        turn_end(&turns[i]);
        CHECK_EQ(turns[i].append.parts[0].status, ST_TIMED_OUT);
    }
    rig_close(&rig);
}

TEST(a_session_that_can_be_taken_along_sends_again_and_stores_once) { /* 0.12 */
    rig_open(&rig, (struct rig_options){.version = IGGY_0_12_2});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    fake_refuse(&rig.server, IGGY_CMD_send_messages, 0, 1);
    CHECK_EQ(append_run(&rig, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'})), ST_OK);
    CHECK_EQ(rig.server.sends_count, 1);
    rig_close(&rig);
}

TEST(a_server_that_is_gone_makes_appends_unavailable) { /* D1-33 */
    struct turn turn;
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    fake_lock(&rig.server);
    rig.server.password = "changed";
    fake_unlock(&rig.server);
    append_of(&rig, &turn, "t", rig_batch(&rig, (struct batch_want){.letter = 'a'}));
    turn_run(&rig, &turn, start_append);
    CHECK_EQ(turn.append.parts[0].status, ST_LOGIN_REFUSED);
    rig_close(&rig);
}

TEST(a_stop_ends_what_is_under_way_and_what_waits) { /* */
    static struct turn turns[SENDS_MAX + 10];
    rig_open(&rig, (struct rig_options){0});
    fake_add_topic(&rig.server, "kafka", "t", 1);
    fake_hold(&rig.server, IGGY_CMD_send_messages);
    for (size_t i = 0; i < COUNT_OF(turns); i++) {
        append_of(&rig, &turns[i], "t", rig_batch(&rig, (struct batch_want){.letter = 'a'}));
        turn_begin(&rig, 0, &turns[i], start_append);
    }
    fake_expect(&rig.server, IGGY_CMD_send_messages, SENDS_MAX);
    iggy_backend_stop(rig.backend);
    for (size_t i = 0; i < COUNT_OF(turns); i++) {
        turn_end(&turns[i]);
        CHECK_EQ(turns[i].append.parts[0].status, i < SENDS_MAX ? ST_TIMED_OUT : ST_UNAVAILABLE);
    }
    fake_expect_conns(&rig.server, 0);
    struct backend *b = rig.backend;
    rig.backend = NULL; /* it has stopped */
    work_stop();
    loop_stop(rig.loops[0]);
    iggy_backend_free(b);
    CHECK_EQ(work_start(1), ST_OK);
    rig_close(&rig);
}
