/* The listener as a client sees it: framing, logins, what is refused, and what is answered about the server. */
#include <sys/socket.h>
#include <unistd.h>

#include "base/le.h"
#include "base/mem.h"
#include "iggy_server/client.h"
#include "iggy_server/peer_test.h"
#include "testing/test.h"
#include "users/users.h"

static const uint32_t versions[] = {IGGY_0_11, IGGY_0_12_0, IGGY_0_12_1, IGGY_0_12_2};

TEST(every_version_logs_in_and_sees_where_it_is) {
    struct rig rig;
    rig_start(&rig, 0, 0);
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        struct peer p;
        struct iggy_login_res login;
        struct iggy_get_cluster_metadata_res cluster;
        peer_open(&p, &rig, versions[i], 10);
        CHECK_EQ(peer_call(&p, IGGY_CMD_ping, NULL, NULL), 0);
        CHECK_EQ(p.body.len, 0);
        peer_log_in(&p);
        peer_decode(&p, IGGY_CMD_login_password, &login);
        CHECK_EQ(login.user_id, 0);
        CHECK(login.session > 0);
        CHECK_EQ(login.protocol, versions[i]);
        CHECK(p.h.reply.commit > 0);
        CHECK_EQ(p.h.reply.operation, 1);
        CHECK_EQ(peer_call(&p, IGGY_CMD_get_cluster_metadata, NULL, &cluster), 0);
        CHECK(str_equal(cluster.name, STR(CLUSTER_ID)));
        CHECK_EQ(cluster.nodes_count, 1);
        CHECK(str_equal(cluster.nodes[0].ip, STR("127.0.0.1")));
        CHECK_EQ(cluster.nodes[0].tcp_port, rig.port);
        CHECK_EQ(cluster.nodes[0].role, 0);
        CHECK_EQ(cluster.nodes[0].status, 0);
        peer_close(&p);
    }
    rig_stop(&rig);
}

/* ---- frames ---- */

static void send_raw(struct peer *p, uint32_t size, uint8_t kind) {
    uint8_t head[IGGY_HEADER_BYTES] = {0};
    le_set32(head + 48, size);
    head[60] = kind;
    head[128] = 1;
    CHECK_EQ(send(p->fd, head, sizeof head, MSG_NOSIGNAL), (ssize_t)sizeof head);
}

TEST(what_is_no_frame_closes_the_connection) {
    static const struct {
        uint32_t size;
        uint8_t kind;
    } bad[] = {{0, 5}, {255, 5}, {IGGY_FRAME_BYTES_MAX + 1, 5}, {UINT32_MAX, 5}, {256, 30}, {256, 255}};
    struct rig rig;
    struct peer p;
    rig_start(&rig, 0, 0);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        peer_open(&p, &rig, IGGY_0_11, 1);
        send_raw(&p, bad[i].size, bad[i].kind);
        CHECK(!peer_read(&p));
        peer_close(&p);
    }
    rig_stop(&rig);
}

TEST(traffic_between_replicas_is_ignored) {
    struct rig rig;
    struct peer p;
    rig_start(&rig, 0, 0);
    peer_open(&p, &rig, IGGY_0_11, 1);
    for (uint8_t kind = 0; kind < 30; kind++)
        if (kind != IGGY_REQUEST)
            send_raw(&p, IGGY_HEADER_BYTES, kind);
    CHECK_EQ(peer_call(&p, IGGY_CMD_ping, NULL, NULL), 0);
    peer_close(&p);
    rig_stop(&rig);
}

static uint32_t status_of(struct peer *p, struct iggy_request_header h, struct bytes body) {
    peer_send_frame(p, (struct iggy_header){.request = h}, body);
    CHECK(peer_read(p));
    CHECK_EQ(p->h.frame.kind, IGGY_REPLY);
    CHECK_EQ(p->h.reply.request, h.request);
    CHECK_EQ(p->h.reply.operation, h.operation);
    CHECK_EQ(p->body.len, 0);
    return p->h.reply.status;
}

/* A real server says nothing at all to these. */
TEST(a_header_that_breaks_the_rules_is_answered) {
    struct rig rig;
    struct peer p;
    rig_start(&rig, 0, 0);
    peer_open(&p, &rig, IGGY_0_11, 1);
    struct iggy_request_header h = {.client = p.id, .request = 7, .operation = 0};
    CHECK_EQ(status_of(&p, h, BYTES_NULL), IGGY_ERR_INVALID_FORMAT);
    h = (struct iggy_request_header){.request = 7, .operation = 2, .code = IGGY_CMD_ping};
    CHECK_EQ(status_of(&p, h, BYTES_NULL), IGGY_ERR_INVALID_FORMAT);
    h = (struct iggy_request_header){.client = p.id, .request = 1, .operation = 1};
    CHECK_EQ(status_of(&p, h, BYTES_NULL), IGGY_ERR_INVALID_FORMAT);
    peer_log_in(&p);
    h = (struct iggy_request_header){.client = p.id, .request = 0, .session = p.session, .operation = 130};
    CHECK_EQ(status_of(&p, h, BYTES_NULL), IGGY_ERR_INVALID_COMMAND);
    h = (struct iggy_request_header){.client = p.id, .request = 9, .session = 0, .operation = 130};
    CHECK_EQ(status_of(&p, h, BYTES_NULL), IGGY_ERR_INVALID_COMMAND);
    h = (struct iggy_request_header){.client = p.id, .request = 9, .session = p.session, .operation = 69};
    CHECK_EQ(status_of(&p, h, BYTES_NULL), IGGY_ERR_INVALID_COMMAND);
    peer_close(&p);
    rig_stop(&rig);
}

TEST(unknown_codes_and_codes_with_an_operation_of_their_own_are_told_apart) {
    struct rig rig;
    struct peer p;
    rig_start(&rig, 0, 0);
    peer_open(&p, &rig, IGGY_0_11, 1);
    peer_log_in(&p);
    struct iggy_request_header h = {.client = p.id, .request = 1, .operation = 2, .code = 9999};
    CHECK_EQ(status_of(&p, h, BYTES_NULL), IGGY_ERR_INVALID_COMMAND);
    h.code = IGGY_CMD_create_stream;
    CHECK_EQ(status_of(&p, h, BYTES_NULL), IGGY_ERR_FEATURE_UNAVAILABLE);
    h.code = IGGY_CMD_get_partition_route; /* of 0.12 */
    CHECK_EQ(status_of(&p, h, BYTES_NULL), IGGY_ERR_INVALID_COMMAND);
    peer_close(&p);
    rig_stop(&rig);
}

TEST(a_checksum_of_0_11_that_is_not_the_bodys_is_refused) {
    struct rig rig;
    struct peer p;
    rig_start(&rig, 0, 0);
    peer_open(&p, &rig, IGGY_0_11, 1);
    peer_log_in(&p);
    struct iggy_request_header h = {.client = p.id,
                                    .request = 1,
                                    .session = p.session,
                                    .operation = 2,
                                    .code = IGGY_CMD_get_me,
                                    .request_checksum = {{1}}};
    CHECK_EQ(status_of(&p, h, BYTES_NULL), IGGY_ERR_INVALID_FORMAT);
    h.request_checksum = (struct iggy_u128){{0}};
    peer_send_frame(&p, (struct iggy_header){.request = h}, BYTES_NULL);
    CHECK(peer_read(&p));
    CHECK_EQ(p.code, 0);
    peer_close(&p);
    rig_stop(&rig);
}

TEST(the_reply_echoes_what_the_request_was) {
    struct rig rig;
    struct peer p;
    rig_start(&rig, 0, 0);
    peer_open(&p, &rig, IGGY_0_12_2, 3);
    peer_log_in(&p);
    struct iggy_header h = {.request = {.client = p.id,
                                        .request = 77,
                                        .session = p.session,
                                        .operation = 2,
                                        .code = IGGY_CMD_get_me,
                                        .request_checksum = {{5, 6}},
                                        .timestamp_us = 99,
                                        .partition_incarnation = 1234}};
    peer_send_frame(&p, h, BYTES_NULL);
    CHECK(peer_read(&p));
    CHECK_EQ(p.code, 0);
    CHECK_EQ(p.h.reply.request, 77);
    CHECK_EQ(p.h.reply.operation, 2);
    CHECK_EQ(p.h.reply.timestamp_us, 99);
    CHECK_EQ(p.h.reply.partition_incarnation, 1234);
    CHECK_EQ(p.h.reply.is_final, 0);
    CHECK_MEM(p.h.reply.client.b, p.id.b, 16);
    CHECK_MEM(p.h.reply.request_checksum.b, h.request.request_checksum.b, 16);
    CHECK(iggy_u128_is_zero(&p.h.frame.cluster)); /* of a read */

    const struct iggy_create_stream_req create = {.name = STR("s")};
    uint64_t before = p.h.reply.commit;
    p.number = 77;
    CHECK_EQ(peer_call(&p, IGGY_CMD_create_stream, &create, NULL), 0);
    CHECK_EQ(p.h.reply.commit, before + 1);
    CHECK_EQ(p.h.reply.op, before + 1);
    CHECK(!iggy_u128_is_zero(&p.h.frame.cluster));
    peer_close(&p);
    rig_stop(&rig);
}

/* ---- logins ---- */

TEST(before_the_login_only_a_ping_is_served) {
    struct rig rig;
    struct peer p;
    rig_start(&rig, 0, 0);
    peer_open(&p, &rig, IGGY_0_11, 1);
    const struct iggy_create_stream_req create = {.name = STR("s")};
    CHECK_EQ(peer_call(&p, IGGY_CMD_ping, NULL, NULL), 0);
    CHECK_EQ(p.h.reply.commit, 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_me, NULL, NULL), IGGY_ERR_UNAUTHENTICATED);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_cluster_metadata, NULL, NULL), IGGY_ERR_UNAUTHENTICATED);
    p.session = 5;
    peer_send(&p, IGGY_CMD_create_stream, 1, &create);
    CHECK_EQ(peer_eviction(&p), IGGY_EVICTED_NO_SESSION);
    peer_log_in(&p); /* the connection is still good */
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_me, NULL, NULL), 0);
    peer_close(&p);
    rig_stop(&rig);
}

TEST(a_wrong_password_and_an_unknown_user_are_evicted_and_may_try_again) {
    struct rig rig;
    struct peer p;
    rig_start(&rig, 0, 0);
    peer_open(&p, &rig, IGGY_0_12_2, 1);
    peer_send_login(&p, "root", "wrong");
    CHECK_EQ(peer_eviction(&p), IGGY_EVICTED_INVALID_CREDENTIALS);
    peer_send_login(&p, "nobody", RIG_PASSWORD);
    CHECK_EQ(peer_eviction(&p), IGGY_EVICTED_INVALID_CREDENTIALS);
    peer_send_login(&p, "root", "");
    CHECK_EQ(peer_eviction(&p), IGGY_EVICTED_INVALID_CREDENTIALS);
    peer_log_in(&p);
    peer_close(&p);
    rig_stop(&rig);
}

TEST(many_logins_at_once_wait_for_their_turn) {
    struct rig rig;
    struct peer p[12];
    rig_start(&rig, 0, 0);
    for (uint8_t i = 0; i < COUNT_OF(p); i++) {
        peer_open(&p[i], &rig, IGGY_0_11, (uint8_t)(i + 1));
        peer_send_login(&p[i], "root", i % 2 ? RIG_PASSWORD : "wrong");
    }
    for (size_t i = 0; i < COUNT_OF(p); i++) {
        CHECK(peer_read(&p[i]));
        CHECK_EQ(p[i].h.frame.kind, i % 2 ? IGGY_REPLY : IGGY_EVICTION);
        peer_close(&p[i]);
    }
    while (rig_logins(&rig) > 0)
        continue; /* the last one's thread has yet to leave */
    rig_stop(&rig);
}

static void make_token(struct peer *p, char out[USERS_TOKEN_BYTES]) {
    const struct iggy_create_token_req create = {.name = STR("token"), .expiry_us = IGGY_NEVER};
    struct iggy_create_token_res made;
    CHECK_EQ(peer_call(p, IGGY_CMD_create_token, &create, &made), 0);
    CHECK(made.token.len < USERS_TOKEN_BYTES);
    memcpy(out, made.token.ptr, (size_t)made.token.len);
    out[made.token.len] = 0;
}

TEST(a_token_logs_in_and_an_unknown_one_does_not) {
    struct rig rig;
    rig_start(&rig, 0, 0);
    for (size_t i = 0; i < COUNT_OF(versions); i += 3) {
        struct peer p;
        char token[USERS_TOKEN_BYTES];
        peer_open(&p, &rig, versions[i], 1);
        peer_log_in(&p);
        make_token(&p, token);
        const struct iggy_delete_token_req forget = {.name = STR("token")};
        struct iggy_login_token_req in = {
            .client = {.protocol = p.version, .sdk_name = STR("test"), .sdk_version = STR("1")},
            .token = str_of(token)};
        uint64_t session = p.session;
        p.session = 0;
        peer_send(&p, IGGY_CMD_login_token, 0, &in);
        CHECK(peer_read(&p));
        CHECK_EQ(p.h.frame.kind, IGGY_REPLY);
        CHECK_EQ(p.code, 0);
        in.token = STR("not-a-token");
        peer_send(&p, IGGY_CMD_login_token, 0, &in);
        CHECK_EQ(peer_eviction(&p), IGGY_EVICTED_INVALID_TOKEN);
        p.session = session;
        CHECK_EQ(peer_call(&p, IGGY_CMD_delete_token, &forget, NULL), 0);
        peer_close(&p);
    }
    rig_stop(&rig);
}

static void send_version(struct peer *p, uint32_t version) {
    uint8_t body[128] = {0};
    le_set32(body, version);
    struct iggy_header h = {.request = {.client = p->id, .operation = IGGY_OP_REGISTER}};
    peer_send_frame(p, h, (struct bytes){body, sizeof body});
}

static void check_window(struct peer *p, uint32_t least, uint32_t newest) {
    CHECK_EQ(peer_eviction(p), IGGY_EVICTED_INCOMPATIBLE_PROTOCOL);
    CHECK_EQ(p->h.eviction.protocol_min, least);
    CHECK_EQ(p->h.eviction.protocol_max, newest);
}

TEST(a_version_outside_the_window_is_told_the_window) {
    static const uint32_t outside[] = {0, IGGY_VERSION(0, 10, 0), IGGY_0_12_2 + 1, UINT32_MAX};
    struct rig rig;
    struct peer p;
    rig_start(&rig, 0, 0);
    peer_open(&p, &rig, IGGY_0_11, 1);
    for (size_t i = 0; i < COUNT_OF(outside); i++) {
        send_version(&p, outside[i]);
        check_window(&p, IGGY_0_11, IGGY_0_12_2);
    }
    peer_close(&p);
    rig_stop(&rig);

    rig_start(&rig, IGGY_0_11, IGGY_0_11);
    peer_open(&p, &rig, IGGY_0_12_2, 1);
    peer_send_login(&p, "root", RIG_PASSWORD);
    check_window(&p, IGGY_0_11, IGGY_0_11);
    p.version = IGGY_0_11 + 7; /* any patch of 0.11 */
    peer_log_in(&p);
    peer_close(&p);
    rig_stop(&rig);

    rig_start(&rig, IGGY_0_12_0, IGGY_NEWEST);
    peer_open(&p, &rig, IGGY_0_11, 1);
    peer_send_login(&p, "root", RIG_PASSWORD);
    check_window(&p, IGGY_0_12_0, IGGY_0_12_2);
    peer_close(&p);
    rig_stop(&rig);
}

TEST(a_login_that_cannot_be_read_is_malformed) {
    struct rig rig;
    struct peer p;
    rig_start(&rig, 0, 0);
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        peer_open(&p, &rig, versions[i], 1);
        send_version(&p, versions[i]); /* zeros behind it */
        CHECK_EQ(peer_eviction(&p), IGGY_EVICTED_MALFORMED_LOGIN);
        struct iggy_header h = {.request = {.client = p.id, .operation = IGGY_OP_REGISTER}};
        peer_send_frame(&p, h, (struct bytes){(const uint8_t *)"abc", 3});
        CHECK_EQ(peer_eviction(&p), IGGY_EVICTED_MALFORMED_LOGIN);
        peer_send_frame(&p, h, BYTES_NULL);
        CHECK_EQ(peer_eviction(&p), IGGY_EVICTED_MALFORMED_LOGIN);
        h.request = (struct iggy_request_header){.client = p.id, .operation = 2, .code = 38};
        peer_send_frame(&p, h, BYTES_NULL); /* the login of 0.10 */
        CHECK_EQ(peer_eviction(&p), IGGY_EVICTED_MALFORMED_LOGIN);
        peer_close(&p);
    }
    rig_stop(&rig);
}

TEST(a_second_login_of_the_connection_gets_the_same_session) {
    struct rig rig;
    struct peer p;
    rig_start(&rig, 0, 0);
    peer_open(&p, &rig, IGGY_0_11, 1);
    peer_log_in(&p);
    uint64_t session = p.session;
    peer_log_in(&p);
    CHECK_EQ(p.session, session);
    p.id.b[5] = 9; /* and another client id another one */
    peer_log_in(&p);
    CHECK(p.session > session);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_me, NULL, NULL), 0);
    peer_close(&p);
    rig_stop(&rig);
}

TEST(a_client_id_on_another_connection_takes_the_session_over) {
    struct rig rig;
    struct peer first, second;
    const struct iggy_create_stream_req create = {.name = STR("s")};
    rig_start(&rig, 0, 0);
    peer_open(&first, &rig, IGGY_0_11, 1);
    peer_open(&second, &rig, IGGY_0_11, 1);
    peer_log_in(&first);
    peer_log_in(&second);
    CHECK(second.session > first.session);
    peer_send(&first, IGGY_CMD_create_stream, 1, &create);
    CHECK_EQ(peer_eviction(&first), IGGY_EVICTED_NO_SESSION);
    CHECK_EQ(peer_call(&first, IGGY_CMD_get_me, NULL, NULL), IGGY_ERR_UNAUTHENTICATED);
    CHECK_EQ(peer_call(&second, IGGY_CMD_create_stream, &create, NULL), 0);
    peer_close(&first);
    peer_close(&second);
    rig_stop(&rig);
}

TEST(a_logout_ends_the_session_and_not_the_connection) {
    struct rig rig;
    struct peer p;
    rig_start(&rig, 0, 0);
    peer_open(&p, &rig, IGGY_0_11, 1);
    peer_log_in(&p);
    CHECK_EQ(peer_call(&p, IGGY_CMD_logout, NULL, NULL), 0);
    CHECK_EQ(p.body.len, 0);
    CHECK_EQ(p.h.reply.operation, 3);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_me, NULL, NULL), IGGY_ERR_UNAUTHENTICATED);
    p.id.b[5] = 9;
    peer_log_in(&p);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_me, NULL, NULL), 0);
    peer_close(&p);
    rig_stop(&rig);
}

TEST(the_session_of_a_deleted_user_may_do_nothing) {
    struct rig rig;
    struct peer root, p;
    const struct iggy_create_user_req create = {
        .username = STR("reader"), .password = STR("reading"), .status = 1};
    const struct iggy_user_req gone = {.user = iggy_by_name(STR("reader"))};
    const struct iggy_create_stream_req make = {.name = STR("s")};
    rig_start(&rig, 0, 0);
    peer_open(&root, &rig, IGGY_0_11, 1);
    peer_open(&p, &rig, IGGY_0_11, 2);
    peer_log_in(&root);
    CHECK_EQ(peer_call(&root, IGGY_CMD_create_user, &create, NULL), 0);
    peer_send_login(&p, "reader", "reading");
    CHECK(peer_read(&p));
    p.session = le_get64(p.payload.ptr + 4);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_me, NULL, NULL), 0);
    CHECK_EQ(peer_call(&root, IGGY_CMD_delete_user, &gone, NULL), 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_me, NULL, NULL), IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(p.h.reply.status, IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(peer_call(&p, IGGY_CMD_create_stream, &make, NULL), IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(p.h.reply.status, 0); /* a change says it in its result section */
    peer_close(&root);
    peer_close(&p);
    rig_stop(&rig);
}

/* ---- the server and its clients ---- */

TEST(stats_are_those_of_this_process) {
    struct rig rig;
    struct peer p;
    struct iggy_get_stats_res s;
    rig_start(&rig, 0, 0);
    peer_open(&p, &rig, IGGY_0_12_2, 1);
    peer_log_in(&p);
    const struct iggy_create_stream_req stream = {.name = STR("s")};
    const struct iggy_create_topic_req topic = {
        .stream = iggy_by_name(STR("s")), .partitions_count = 3, .name = STR("t")};
    CHECK_EQ(peer_call(&p, IGGY_CMD_create_stream, &stream, NULL), 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_create_topic, &topic, NULL), 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_stats, NULL, &s), 0);
    CHECK_EQ(s.process_id, getpid());
    CHECK(s.memory_usage_bytes > 1 << 20 && s.memory_usage_bytes < s.total_memory_bytes);
    CHECK(s.available_memory_bytes > 0);
    CHECK(s.streams_count >= 1);
    CHECK_EQ(s.topics_count, 1);
    CHECK_EQ(s.partitions_count, 3);
    CHECK_EQ(s.clients_count, 1);
    CHECK_EQ(s.messages_count, 0);
    CHECK(s.threads_count > RIG_LOOPS);
    CHECK(s.total_disk_bytes > s.free_disk_bytes && s.free_disk_bytes > 0);
    CHECK(s.open_files > 5 && s.open_files < s.open_files_max);
    CHECK(str_equal(s.os_name, STR("Linux")));
    CHECK(s.hostname.len > 0);
    CHECK(str_equal(s.server_version, STR(KGW_VERSION)));
    peer_close(&p);
    rig_stop(&rig);
}

TEST(clients_see_themselves_and_each_other) {
    struct rig rig;
    struct peer p, other;
    struct iggy_client_details me;
    struct iggy_get_client_res one;
    struct iggy_get_clients_res all;
    rig_start(&rig, 0, 0);
    peer_open(&p, &rig, IGGY_0_11, 1);
    peer_open(&other, &rig, IGGY_0_12_2, 2);
    peer_log_in(&p);
    peer_log_in(&other);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_me, NULL, &me), 0);
    CHECK_EQ(me.client.user_id, 0);
    CHECK_EQ(me.client.transport, 1);
    CHECK_EQ(me.client.groups_count, 0);
    CHECK(me.client.address.len > 10 && memcmp(me.client.address.ptr, "127.0.0.1:", 10) == 0);
    const struct iggy_get_client_req ask = {.client_id = me.client.client_id};
    CHECK_EQ(peer_call(&other, IGGY_CMD_get_client, &ask, &one), 0);
    CHECK(one.found);
    CHECK_EQ(one.details.client.client_id, ask.client_id);
    const struct iggy_get_client_req nobody = {.client_id = 999999};
    CHECK_EQ(peer_call(&other, IGGY_CMD_get_client, &nobody, &one), 0);
    CHECK(!one.found);
    CHECK_EQ(p.h.reply.status, 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_clients, NULL, &all), 0);
    CHECK_EQ(all.clients_count, 2);
    peer_close(&p);
    peer_close(&other);
    rig_stop(&rig);
}

TEST(options_are_described_for_the_clients_version) {
    static const struct {
        uint32_t version;
        uint8_t scope;
        uint32_t count;
    } rows[] = {{IGGY_0_11, 1, 10},   {IGGY_0_11, 2, 0},   {IGGY_0_11, 3, 0},
                {IGGY_0_12_2, 1, 12}, {IGGY_0_12_2, 2, 1}, {IGGY_0_12_2, 3, 2}};
    struct rig rig;
    rig_start(&rig, 0, 0);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct peer p;
        struct iggy_describe_options_res res;
        const struct iggy_describe_options_req in = {.scope = rows[i].scope}, none = {.scope = 9};
        peer_open(&p, &rig, rows[i].version, 1);
        peer_log_in(&p);
        CHECK_EQ(peer_call(&p, IGGY_CMD_describe_options, &in, &res), 0);
        CHECK_EQ(res.options_count, rows[i].count);
        for (uint32_t k = 0; k < res.options_count; k++) {
            CHECK(res.options[k].description.len > 0);
            if (str_equal(res.options[k].key, STR("segment_size"))) {
                CHECK_EQ(res.options[k].default_value.len, 8);
                CHECK_EQ(le_get64(res.options[k].default_value.ptr), 1 << 30);
            }
        }
        CHECK_EQ(peer_call(&p, IGGY_CMD_describe_options, &none, NULL), IGGY_ERR_INVALID_COMMAND);
        peer_close(&p);
    }
    rig_stop(&rig);
}

TEST(who_may_not_read_the_server_sees_no_stats_and_no_clients) {
    struct rig rig;
    struct peer root, p;
    const struct iggy_create_user_req create = {
        .username = STR("reader"), .password = STR("reading"), .status = 1};
    const struct iggy_get_client_req ask = {.client_id = 1};
    rig_start(&rig, 0, 0);
    peer_open(&root, &rig, IGGY_0_11, 1);
    peer_open(&p, &rig, IGGY_0_11, 2);
    peer_log_in(&root);
    CHECK_EQ(peer_call(&root, IGGY_CMD_create_user, &create, NULL), 0);
    peer_send_login(&p, "reader", "reading");
    CHECK(peer_read(&p));
    p.session = le_get64(p.payload.ptr + 4);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_stats, NULL, NULL), IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_client, &ask, NULL), IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_clients, NULL, NULL), IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_me, NULL, NULL), 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_cluster_metadata, NULL, NULL), 0);
    peer_close(&root);
    peer_close(&p);
    rig_stop(&rig);
}
