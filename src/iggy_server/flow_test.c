/* Requests of one connection beside each other: what waits, what holds up the rest, what is given up. */
#include "base/clock.h"
#include "base/mem.h"
#include "iggy_server/client.h"
#include "iggy_server/peer_test.h"
#include "net/loop.h"
#include "testing/test.h"

#define LONG_US UINT64_C(300000000)

static void open_ready(struct peer *p, struct rig *rig) {
    const struct iggy_create_stream_req stream = {.name = STR("s")};
    const struct iggy_create_topic_req topic = {
        .stream = iggy_by_name(STR("s")), .partitions_count = 1, .name = STR("t")};
    rig_start(rig, 0, 0);
    peer_open(p, rig, IGGY_0_12_2, 1);
    peer_log_in(p);
    CHECK_EQ(peer_call(p, IGGY_CMD_create_stream, &stream, NULL), 0);
    CHECK_EQ(peer_call(p, IGGY_CMD_create_topic, &topic, NULL), 0);
}

/* A poll of nothing, that waits. */
static void send_poll(struct peer *p, uint64_t number, uint64_t wait_us) {
    const struct iggy_poll_messages_deferred_req in = {
        .poll = {.consumer = {.kind = IGGY_CONSUMER, .id = iggy_by_id(1)},
                 .stream = iggy_by_name(STR("s")),
                 .topic = iggy_by_name(STR("t")),
                 .partition = {.present = true},
                 .strategy = {.kind = IGGY_FROM_OFFSET},
                 .count = 10},
        .wait_us = wait_us,
        .min_count = 1,
        .bytes_max = 1 << 20,
        .request_timeout_us = wait_us > 0 ? wait_us + 2000000 : 0};
    peer_send(p, IGGY_CMD_poll_messages_deferred, number, &in);
}

static void send_cancel(struct peer *p, uint64_t number) {
    peer_send(p, IGGY_CMD_cancel_deferred_request, number, NULL);
}

/* The number of the poll that is answered. */
static uint64_t read_empty_poll(struct peer *p) {
    struct iggy_poll_messages_res res;
    CHECK(peer_read(p));
    CHECK_EQ(p->code, 0);
    peer_decode(p, IGGY_CMD_poll_messages_deferred, &res);
    CHECK_EQ(res.messages_count, 0);
    return p->h.reply.request;
}

static void expect_empty_poll(struct peer *p, uint64_t number) {
    CHECK_EQ(read_empty_poll(p), number);
}

TEST(a_waiting_poll_holds_nothing_up_and_can_be_cancelled) {
    struct rig rig;
    struct peer p;
    open_ready(&p, &rig);
    send_poll(&p, 100, LONG_US);
    p.number = 200;
    CHECK_EQ(peer_call(&p, IGGY_CMD_ping, NULL, NULL), 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_me, NULL, NULL), 0);
    send_cancel(&p, 99); /* another one: nothing happens, and nothing is answered */
    CHECK_EQ(peer_call(&p, IGGY_CMD_ping, NULL, NULL), 0);
    send_cancel(&p, 100);
    expect_empty_poll(&p, 100);
    peer_close(&p);
    rig_stop(&rig);
}

/* Nobody can say whether it parks before the cancel comes; it ends in both cases. */
TEST(a_poll_and_its_cancel_in_one_go_leave_nothing_waiting) {
    struct rig rig;
    struct peer p;
    open_ready(&p, &rig);
    for (uint64_t n = 100; n < 200; n++) {
        send_poll(&p, n, LONG_US);
        send_cancel(&p, n);
        expect_empty_poll(&p, n);
    }
    peer_close(&p);
    rig_stop(&rig);
}

TEST(sixty_four_polls_may_wait_and_one_more_is_refused) {
    struct rig rig;
    struct peer p;
    open_ready(&p, &rig);
    for (uint64_t n = 1; n <= CLIENT_DEFERRED + 1; n++)
        send_poll(&p, 100 + n, LONG_US);
    CHECK(peer_read(&p));
    CHECK_EQ(p.h.reply.request, 100 + CLIENT_DEFERRED + 1);
    CHECK_EQ(p.code, IGGY_ERR_DEFERRED_POLL_CAPACITY_EXCEEDED);
    send_poll(&p, 300, 0); /* one that doesn't wait is no matter */
    expect_empty_poll(&p, 300);
    send_cancel(&p, 105);
    expect_empty_poll(&p, 105);
    send_poll(&p, 301, LONG_US); /* its place is free again */
    send_cancel(&p, 301);
    expect_empty_poll(&p, 301);
    peer_close(&p); /* the others end with their client: rig_stop looks at the memory */
    rig_stop(&rig);
}

TEST(waiting_polls_are_answered_when_the_server_stops) {
    struct rig rig;
    struct peer p;
    open_ready(&p, &rig);
    for (uint64_t n = 100; n < 120; n++)
        send_poll(&p, n, LONG_US);
    p.number = 200;
    CHECK_EQ(peer_call(&p, IGGY_CMD_ping, NULL, NULL), 0); /* all of them have been taken */
    int64_t before_ms = clock_ms();
    rig_stop(&rig);
    CHECK(clock_ms() - before_ms < 10000);
    bool answered[20] = {false}; /* in any order: some may not have begun to wait */
    for (size_t i = 0; i < COUNT_OF(answered); i++) {
        uint64_t number = read_empty_poll(&p);
        CHECK(number >= 100 && number < 120 && !answered[number - 100]);
        answered[number - 100] = true;
    }
    CHECK(!peer_read(&p));
    peer_close(&p);
}

/* Who creates a topic and writes to it at once, without waiting for the answer, is served in this order. */
TEST(what_changes_the_catalog_is_done_before_what_comes_behind_it) {
    struct rig rig;
    struct peer p;
    open_ready(&p, &rig);
    const struct iggy_topic_req topic = {.stream = iggy_by_name(STR("s")), .topic = iggy_by_name(STR("new"))};
    const struct iggy_create_topic_req create = {
        .stream = iggy_by_name(STR("s")), .partitions_count = 2, .name = STR("new")};
    for (uint64_t n = 100; n < 140; n += 4) {
        struct iggy_get_topic_res res;
        peer_send(&p, IGGY_CMD_create_topic, n, &create);
        peer_send(&p, IGGY_CMD_get_topic, n + 1, &topic);
        peer_send(&p, IGGY_CMD_delete_topic, n + 2, &topic);
        peer_send(&p, IGGY_CMD_get_topic, n + 3, &topic);
        for (uint64_t k = 0; k < 4; k++) {
            CHECK(peer_read(&p));
            CHECK_EQ(p.h.reply.request, n + k);
            CHECK_EQ(p.code, 0);
            if (k % 2 == 0)
                continue;
            peer_decode(&p, IGGY_CMD_get_topic, &res);
            CHECK_EQ(res.found, k == 1);
        }
    }
    peer_close(&p);
    rig_stop(&rig);
}

/* More than may be in flight: the rest waits in the socket, and all are answered. */
TEST(a_flood_of_requests_is_answered_to_the_last) {
    struct rig rig;
    struct peer p;
    open_ready(&p, &rig);
    for (uint64_t n = 0; n < 3 * CLIENT_IN_FLIGHT; n++)
        send_poll(&p, 100 + n, 0);
    bool *seen = mem_take_zeroed(3 * CLIENT_IN_FLIGHT, sizeof *seen);
    CHECK(seen);
    for (uint64_t n = 0; n < 3 * CLIENT_IN_FLIGHT; n++) {
        CHECK(peer_read(&p));
        CHECK_EQ(p.code, 0);
        CHECK(!seen[p.h.reply.request - 100]);
        seen[p.h.reply.request - 100] = true;
    }
    mem_free(seen);
    peer_close(&p);
    rig_stop(&rig);
}

/* The password takes its time: the client has left before it is checked. */
TEST(a_client_that_leaves_during_its_login_leaves_nothing) {
    struct rig rig;
    struct peer p, left[8];
    struct iggy_get_clients_res all;
    open_ready(&p, &rig);
    for (uint8_t i = 0; i < COUNT_OF(left); i++) {
        peer_open(&left[i], &rig, IGGY_0_11, (uint8_t)(i + 2));
        peer_send_login(&left[i], "root", RIG_PASSWORD);
        peer_close(&left[i]);
    }
    do
        CHECK_EQ(peer_call(&p, IGGY_CMD_get_clients, NULL, &all), 0);
    while (all.clients_count != 1 || rig_logins(&rig) > 0);
    peer_close(&p);
    rig_stop(&rig);
}

/* A real server's replies of these three have operations of their own, all with a result section. */
TEST(replies_have_the_operations_that_real_servers_write) {
    struct rig rig;
    struct peer p;
    open_ready(&p, &rig);
    const struct iggy_create_topic_req create = {
        .stream = iggy_by_name(STR("s")), .partitions_count = 2, .name = STR("new")};
    const struct iggy_partitions_req more = {
        .stream = iggy_by_name(STR("s")), .topic = iggy_by_name(STR("new")), .partitions_count = 1};
    const struct iggy_delete_segments_req drop = {
        .stream = iggy_by_name(STR("s")), .topic = iggy_by_name(STR("new")), .segments_count = 1};
    CHECK_EQ(peer_call(&p, IGGY_CMD_create_topic, &create, NULL), 0);
    CHECK_EQ(p.h.reply.operation, 64);
    CHECK_EQ(peer_call(&p, IGGY_CMD_create_partitions, &more, NULL), 0);
    CHECK_EQ(p.h.reply.operation, 65);
    CHECK_EQ(peer_call(&p, IGGY_CMD_delete_segments, &drop, NULL), 0);
    CHECK_EQ(p.h.reply.operation, 68);
    CHECK_EQ(p.body.len, 4);
    peer_close(&p);
    rig_stop(&rig);
}

static struct {
    struct store *store;
    struct loop *loop;
} alone;

static void make_server(void) {
    struct iggy_server_settings settings = {
        .bind_address = "127.0.0.1:0",
        .connections_max = 1,
        .version_least = IGGY_0_11,
        .version_newest = IGGY_NEWEST,
        .cluster_id = CLUSTER_ID,
        .data_dir = "somewhere",
        .store = alone.store,
        .loops = &alone.loop,
        .loops_count = 1,
    };
    struct iggy_server *server = NULL;
    if (budget_new(1 << 20, &settings.budget))
        return;
    enum status st = iggy_server_new(&settings, &server);
    CHECK_EQ(st != ST_OK, server == NULL);
    CHECK(st == ST_OK || st == ST_NO_MEMORY);
    CHECK(st || iggy_server_port(server) > 0);
    iggy_server_free(server);
    budget_free(settings.budget);
}

TEST(a_server_without_memory_is_no_server) {
    struct store_error error;
    const struct store_settings settings = {.data_dir = test_dir(), .segment_bytes = 1 << 20};
    CHECK_EQ(store_open(&settings, &alone.store, &error), ST_OK);
    CHECK_EQ(loop_new(0, &alone.loop), ST_OK);
    test_oom(make_server);
    loop_free(alone.loop);
    store_close(alone.store);
}

TEST(an_address_in_use_is_said) {
    struct rig rig;
    struct iggy_server *server = NULL;
    char address[32];
    rig_start(&rig, 0, 0);
    struct iggy_server_settings settings = rig.server->settings;
    snprintf(address, sizeof address, "127.0.0.1:%d", rig.port);
    settings.bind_address = address;
    CHECK_EQ(iggy_server_new(&settings, &server), ST_IN_USE);
    settings.bind_address = "127.0.0.1";
    CHECK_EQ(iggy_server_new(&settings, &server), ST_INVALID);
    rig_stop(&rig);
}
