/* Consumer groups as clients of both protocols see them. */
#include "iggy_server/peer_test.h"
#include "testing/test.h"

static const uint32_t versions[] = {IGGY_0_11, IGGY_0_12_2};

static struct iggy_identifier named(const char *name) {
    return iggy_by_name(str_of(name));
}

static struct iggy_group_req group_of(const char *name) {
    return (struct iggy_group_req){.stream = named("s"), .topic = named("t"), .group = named(name)};
}

/* A stream s and a topic t with three partitions. */
static void create_topic(struct peer *p) {
    struct iggy_create_stream_req s = {.name = STR("s")};
    struct iggy_create_topic_req t = {.stream = named("s"), .name = STR("t"), .partitions_count = 3};
    CHECK_EQ(peer_call(p, IGGY_CMD_create_stream, &s, NULL), 0);
    CHECK_EQ(peer_call(p, IGGY_CMD_create_topic, &t, NULL), 0);
}

static void delete_topic(struct peer *p) {
    struct iggy_stream_req s = {.stream = named("s")};
    CHECK_EQ(peer_call(p, IGGY_CMD_delete_stream, &s, NULL), 0);
}

static uint32_t create_group(struct peer *p, const char *name, struct iggy_group *out) {
    struct iggy_create_group_req in = {.stream = named("s"), .topic = named("t"), .name = str_of(name)};
    return peer_call(p, IGGY_CMD_create_group, &in, out);
}

/* How many partitions the member has; -1: it is none. */
static int32_t synced(struct peer *p, const char *group) {
    struct iggy_group_req in = group_of(group);
    struct iggy_sync_group_res res;
    CHECK_EQ(peer_call(p, IGGY_CMD_sync_group, &in, &res), 0);
    return res.is_member ? (int32_t)res.partitions_count : -1;
}

static uint32_t members_of(struct peer *p, const char *group) {
    struct iggy_group_req in = group_of(group);
    struct iggy_get_group_res res;
    CHECK_EQ(peer_call(p, IGGY_CMD_get_group, &in, &res), 0);
    CHECK(res.found);
    return res.group.members_count;
}

static void group_life(struct rig *rig, uint32_t version) {
    struct peer p, q;
    struct iggy_group made;
    struct iggy_get_groups_res list;
    struct iggy_get_group_res shown;
    struct iggy_client_details me;
    struct iggy_topic_req topic = {.stream = named("s"), .topic = named("t")};
    struct iggy_group_req g = group_of("g"), none = group_of("none");
    peer_open(&p, rig, version, 1);
    peer_log_in(&p);
    peer_open(&q, rig, version, 2);
    peer_log_in(&q);
    create_topic(&p);
    CHECK_EQ(create_group(&p, "g", &made), 0);
    CHECK_EQ(made.id, 0);
    CHECK_EQ(made.partitions_count, 3);
    CHECK_EQ(made.members_count, 0);
    CHECK(str_equal(made.name, STR("g")));
    CHECK_EQ(create_group(&p, "g", NULL), IGGY_ERR_CONSUMER_GROUP_NAME_ALREADY_EXISTS);
    CHECK_EQ(synced(&p, "g"), -1);
    CHECK_EQ(peer_call(&p, IGGY_CMD_join_group, &none, NULL), IGGY_ERR_CONSUMER_GROUP_ID_NOT_FOUND);
    CHECK_EQ(peer_call(&p, IGGY_CMD_leave_group, &none, NULL), IGGY_ERR_CONSUMER_GROUP_ID_NOT_FOUND);
    CHECK_EQ(peer_call(&p, IGGY_CMD_delete_group, &none, NULL), IGGY_ERR_CONSUMER_GROUP_ID_NOT_FOUND);
    CHECK_EQ(peer_call(&p, IGGY_CMD_join_group, &g, NULL), 0);
    CHECK_EQ(peer_call(&q, IGGY_CMD_join_group, &g, NULL), 0);
    CHECK_EQ(synced(&p, "g"), 2);
    CHECK_EQ(synced(&q, "g"), 1);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_group, &g, &shown), 0);
    CHECK_EQ(shown.members_count, 2);
    CHECK_EQ(shown.members[1].partitions_count, 1);
    CHECK_EQ(shown.members[1].partitions[0].value, 1);
    CHECK_EQ(peer_call(&q, IGGY_CMD_get_me, NULL, &me), 0);
    CHECK_EQ(me.client.groups_count, 1);
    CHECK_EQ(me.groups[0].group_id, 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_leave_group, &g, NULL), 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_leave_group, &g, NULL), IGGY_ERR_CONSUMER_GROUP_MEMBER_NOT_FOUND);
    CHECK_EQ(synced(&q, "g"), 3);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_groups, &topic, &list), 0);
    CHECK_EQ(list.groups_count, 1);
    CHECK_EQ(list.groups[0].members_count, 1);
    CHECK_EQ(peer_call(&p, IGGY_CMD_delete_group, &g, NULL), 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_group, &g, NULL), 0);
    CHECK_EQ(p.body.len, 0);
    CHECK_EQ(synced(&q, "g"), -1);
    delete_topic(&p);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_groups, &topic, NULL), IGGY_ERR_STREAM_ID_NOT_FOUND);
    peer_close(&p);
    peer_close(&q);
}

TEST(a_group_is_made_joined_dealt_left_and_deleted) {
    struct rig rig;
    rig_start(&rig, 0, 0);
    for (size_t i = 0; i < COUNT_OF(versions); i++)
        group_life(&rig, versions[i]);
    rig_stop(&rig);
}

TEST(a_logout_leaves_all_groups) {
    struct rig rig;
    struct peer p, q;
    struct iggy_group_req g = group_of("g");
    rig_start(&rig, 0, 0);
    peer_open(&p, &rig, IGGY_0_11, 1);
    peer_log_in(&p);
    peer_open(&q, &rig, IGGY_0_12_2, 2);
    peer_log_in(&q);
    create_topic(&p);
    CHECK_EQ(create_group(&p, "g", NULL), 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_join_group, &g, NULL), 0);
    CHECK_EQ(peer_call(&q, IGGY_CMD_join_group, &g, NULL), 0);
    CHECK_EQ(members_of(&p, "g"), 2);
    CHECK_EQ(peer_call(&q, IGGY_CMD_logout, NULL, NULL), 0);
    CHECK_EQ(members_of(&p, "g"), 1);
    CHECK_EQ(synced(&p, "g"), 3);
    peer_close(&p);
    peer_close(&q);
    rig_stop(&rig);
}

/* The close is seen on a loop some time after it was done: the other client asks until it has been. */
TEST(a_0_11_client_that_goes_gives_its_partitions_to_the_others) {
    struct rig rig;
    struct peer p, q;
    struct iggy_group_req g = group_of("g");
    rig_start(&rig, 0, 0);
    peer_open(&p, &rig, IGGY_0_11, 1);
    peer_log_in(&p);
    peer_open(&q, &rig, IGGY_0_11, 2);
    peer_log_in(&q);
    create_topic(&p);
    CHECK_EQ(create_group(&p, "g", NULL), 0);
    CHECK_EQ(peer_call(&q, IGGY_CMD_join_group, &g, NULL), 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_join_group, &g, NULL), 0);
    CHECK_EQ(synced(&p, "g"), 1);
    peer_close(&q);
    int tries = 0;
    while (synced(&p, "g") != 3 && tries++ < 100000)
        ;
    CHECK_EQ(synced(&p, "g"), 3);
    peer_close(&p);
    rig_stop(&rig);
}

TEST(who_may_only_poll_can_not_use_groups_but_ask_for_a_sync) {
    struct rig rig;
    struct peer root, p;
    struct iggy_login_res res;
    struct iggy_group_req g = group_of("g");
    struct iggy_topic_req topic = {.stream = named("s"), .topic = named("t")};
    struct iggy_create_user_req user = {.username = STR("poller"),
                                        .password = STR("password"),
                                        .status = IGGY_USER_ACTIVE,
                                        .has_permissions = true,
                                        .permissions = {.poll_messages = true}};
    rig_start(&rig, 0, 0);
    peer_open(&root, &rig, IGGY_0_12_2, 1);
    peer_log_in(&root);
    create_topic(&root);
    CHECK_EQ(create_group(&root, "g", NULL), 0);
    CHECK_EQ(peer_call(&root, IGGY_CMD_create_user, &user, NULL), 0);
    peer_open(&p, &rig, IGGY_0_12_2, 2);
    peer_send_login(&p, "poller", "password");
    CHECK(peer_read(&p));
    CHECK_EQ(p.code, 0);
    peer_decode(&p, IGGY_CMD_login_password, &res);
    p.session = res.session;
    CHECK_EQ(create_group(&p, "h", NULL), IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(peer_call(&p, IGGY_CMD_join_group, &g, NULL), IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(peer_call(&p, IGGY_CMD_leave_group, &g, NULL), IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(peer_call(&p, IGGY_CMD_delete_group, &g, NULL), IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_group, &g, NULL), IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_groups, &topic, NULL), IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(synced(&p, "g"), -1);
    g.topic = named("elsewhere"); /* what is missing is missing for everyone */
    CHECK_EQ(peer_call(&p, IGGY_CMD_join_group, &g, NULL), IGGY_ERR_TOPIC_ID_NOT_FOUND);
    CHECK_EQ(peer_call(&p, IGGY_CMD_sync_group, &g, NULL), 0);
    CHECK_EQ(p.body.len, 0);
    peer_close(&p);
    peer_close(&root);
    rig_stop(&rig);
}
