#include "backend/iggy/bridge_rig_test.h"
#include "backend/iggy/view.h"
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
