#include "net/listener.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/budget.h"
#include "net/server_test.h"
#include "testing/test.h"

/* --- addresses --- */

static enum status try_address(const char *address, int *port_out) {
    struct loop *loop;
    struct listener *l = NULL;
    CHECK_EQ(loop_new(0, &loop), ST_OK);
    struct listener_settings settings = {.address = address, .loops = &loop, .loops_count = 1};
    enum status st = listener_new(&settings, &l);
    if (st == ST_OK && port_out)
        *port_out = listener_port(l);
    listener_free(l);
    loop_free(loop);
    return st;
}

TEST(what_is_not_a_numeric_address_with_a_port_is_refused) {
    static const char *const bad[] = {
        "",       "127.0.0.1", ":",       "127.0.0.1:",      "127.0.0.1:65536", "127.0.0.1:1x",
        "::1:80", "[::1]",     "[::1:80", "1.2.3:80",        "localhost:0",     "127.0.0.1:-1",
        "[]:0",   "[:0",       "]:0",     "127.0.0.1:000000"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK_EQ(try_address(bad[i], NULL), ST_INVALID);
}

TEST(port_0_binds_a_free_port) {
    int port = 0;
    CHECK_EQ(try_address("127.0.0.1:0", &port), ST_OK);
    CHECK(port > 0);
}

TEST(an_address_that_is_taken_is_in_use) {
    struct server *s = server_start((struct server_options){0});
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%d", listener_port(s->listener));
    CHECK_EQ(try_address(address, NULL), ST_IN_USE);
    server_stop(s);
}

TEST_OOM(listener_new_survives_a_failing_allocation) {
    struct loop *loop;
    struct listener *l;
    if (loop_new(0, &loop))
        return;
    struct listener_settings settings = {.address = "127.0.0.1:0", .loops = &loop, .loops_count = 1};
    if (listener_new(&settings, &l) == ST_OK)
        listener_free(l);
    loop_free(loop);
}

/* --- accepting --- */

TEST(connections_are_spread_over_the_loops_in_turn) {
    struct server *s = server_start((struct server_options){.loops = 2});
    int fd[6], on_loop[2] = {0};
    for (int i = 0; i < 6; i++) {
        fd[i] = client_open(s);
        client_send_frame(fd[i], 'e', 5);
        client_expect_frame(fd[i], 'e', 5);
    }
    CHECK_EQ(listener_connections(s->listener), 6);
    for (int i = 0; i < 6; i++)
        on_loop[s->sessions[i]->resume.loop == s->loops[1]]++;
    CHECK_EQ(on_loop[0], 3);
    for (int i = 0; i < 6; i++)
        close(fd[i]);
    server_stop(s);
}

/* B-20 */
TEST(over_the_cap_a_connection_is_closed_at_once_and_a_freed_slot_is_usable_at_once) {
    struct server *s = server_start((struct server_options){.connections_max = 2});
    int a = client_open(s), b = client_open(s);
    CHECK(gate_wait(&s->opened, 2));
    for (int i = 0; i < 20; i++)
        client_expect_end(client_open(s));
    client_send_frame(a, 'e', 5);
    client_expect_frame(a, 'e', 5);
    for (int i = 0; i < 20; i++) {
        client_send_frame(b, 'x', 5);
        client_expect_end(b);
        b = client_open(s);
        client_send_frame(b, 'e', 6);
        client_expect_frame(b, 'e', 6);
    }
    CHECK_EQ(gate_value(&s->opened), 22);
    close(a);
    close(b);
    server_stop(s);
}

/* B-9 */
TEST(running_out_of_file_descriptors_does_not_stop_the_listener) {
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    CHECK(gate_wait(&s->opened, 1));
    struct rlimit normal, none;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &normal), 0);
    int sockets[3];
    for (int i = 0; i < 3; i++)
        CHECK((sockets[i] = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
    int lowest_free = dup(fd);
    CHECK(lowest_free >= 0);
    close(lowest_free);
    none = normal;
    none.rlim_cur = (rlim_t)lowest_free;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    const struct sockaddr_in to = client_target(s);
    int refused = 0;
    for (int i = 0; i < 3; i++)
        refused |= connect(sockets[i], (const struct sockaddr *)&to, sizeof to);
    server_settle(s);
    int64_t accepted = gate_value(&s->opened) - 1;
    int limited = setrlimit(RLIMIT_NOFILE, &normal);
    CHECK_EQ(limited, 0);
    CHECK_EQ(refused, 0);
    CHECK_EQ(accepted, 0);
    for (int i = 0; i < 3; i++) {
        client_send_frame(sockets[i], 'e', 5);
        client_expect_frame(sockets[i], 'e', 5);
        close(sockets[i]);
    }
    close(fd);
    server_stop(s);
}

/* --- drain, B-50 --- */

TEST(a_drain_closes_idle_connections_at_once_and_accepts_no_more) {
    struct server *s = server_start((struct server_options){.loops = 2});
    int fd[4];
    for (int i = 0; i < 4; i++) {
        fd[i] = client_open(s);
        client_send_frame(fd[i], 'e', 5);
        client_expect_frame(fd[i], 'e', 5);
    }
    client_send(fd[3], "\0\0", 2); /* a part of a head: still between frames */
    server_settle(s);
    server_drain(s, 60000);
    for (int i = 0; i < 4; i++)
        client_expect_end(fd[i]);
    CHECK(gate_wait(&s->drained, 1));
    CHECK_EQ(gate_value(&s->ended), 4);
    int late = socket(AF_INET, SOCK_STREAM, 0);
    const struct sockaddr_in to = client_target(s);
    CHECK_EQ(connect(late, (const struct sockaddr *)&to, sizeof to), -1);
    close(late);
    server_stop(s);
}

TEST(a_drain_lets_begun_requests_finish_and_begins_no_others) {
    struct server *s = server_start((struct server_options){.loops = 2});
    int fd = client_open(s);
    client_send_frame(fd, 'h', 10);
    client_send_frame(fd, 'h', 20);
    CHECK(gate_wait(&s->frames, 2));
    server_drain(s, 60000);
    CHECK(gate_wait(&s->ended, 1));
    client_send_frame(fd, 'e', 30);
    server_settle(s);
    CHECK_EQ(gate_value(&s->drained), 0);
    server_release(s, 0);
    client_expect_frame(fd, 'h', 10);
    client_expect_frame(fd, 'h', 20);
    client_expect_end(fd); /* and not a reset, though a frame was never read */
    CHECK(gate_wait(&s->drained, 1));
    CHECK_EQ(gate_value(&s->frames), 2);
    server_stop(s);
}

TEST(a_drain_sends_an_answer_that_is_on_its_way_to_a_slow_reader) {
    struct server *s = server_start((struct server_options){0});
    int fd = client_open_small(s);
    client_send_big(fd, PATTERN_BYTES / 4);
    CHECK(gate_wait(&s->frames, 1));
    server_drain(s, 60000);
    client_expect(fd, pattern(), PATTERN_BYTES / 4);
    client_expect_end(fd);
    CHECK(gate_wait(&s->drained, 1));
    server_stop(s);
}

TEST(what_is_stuck_is_closed_when_drain_ms_is_over) {
    struct server *s = server_start((struct server_options){.loops = 2});
    int held = client_open(s), slow = client_open_small(s), idle = client_open(s);
    client_send_frame(held, 'h', 10);
    client_send_big(slow, PATTERN_BYTES);
    CHECK(gate_wait(&s->frames, 2));
    server_drain(s, 60);
    CHECK(gate_wait(&s->drained, 1));
    CHECK_EQ(gate_value(&s->closed), gate_value(&s->opened));
    client_expect_end(held);
    CHECK(client_is_closed(slow));
    CHECK(client_is_closed(idle));
    server_stop(s);
}

TEST(a_drain_of_no_time_closes_everything_at_once) {
    struct server *s = server_start((struct server_options){.loops = 3});
    int fd[9];
    for (int i = 0; i < 9; i++) {
        fd[i] = client_open(s);
        client_send_frame(fd[i], 'h', 10);
    }
    CHECK(gate_wait(&s->frames, 9));
    server_drain(s, 0);
    CHECK(gate_wait(&s->drained, 1));
    for (int i = 0; i < 9; i++)
        client_expect_end(fd[i]);
    server_stop(s);
}

/* A grant that is on its way from another loop meets the close of the connection that waited for it. */
TEST(memory_that_is_granted_while_its_connection_closes_is_given_back) {
    for (int round = 0; round < 30; round++) {
        struct server *s = server_start((struct server_options){.loops = 2, .budget_bytes = 1000});
        int fd[6];
        fd[0] = client_open(s);
        client_send_frame(fd[0], 'k', 900);
        CHECK(gate_wait(&s->frames, 1));
        for (int i = 1; i < 6; i++) {
            fd[i] = client_open(s);
            client_send_frame(fd[i], 'e', 200);
        }
        CHECK(gate_wait(&s->opened, 6));
        server_settle(s);
        server_drain(s, 0);
        CHECK(gate_wait(&s->drained, 1));
        CHECK_EQ(budget_free_bytes(s->budget), 1000);
        for (int i = 0; i < 6; i++)
            close(fd[i]);
        server_stop(s);
    }
}

/* --- many at once, over several loops, coming and going; CHECK belongs to the test's thread, so the clients only count --- */

static void *come_and_go(void *arg) {
    struct server *s = arg;
    uint8_t frame[2004], got[2004];
    const struct sockaddr_in to = client_target(s);
    for (int i = 0; i < 60; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        bool answered = i % 3 != 0;
        size_t len = frame_make(frame, answered ? 'e' : 'x', 2000);
        if (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0 ||
            send(fd, frame, len, MSG_NOSIGNAL) != (ssize_t)len)
            gate_add(&s->violations, 1);
        if (answered && (recv(fd, got, len, MSG_WAITALL) != (ssize_t)len || memcmp(got, frame, len) != 0))
            gate_add(&s->violations, 1);
        close(fd);
    }
    return NULL;
}

TEST(clients_of_many_threads_come_and_go_on_several_loops) {
    struct server *s = server_start((struct server_options){.loops = 3, .connections_max = 1000});
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, come_and_go, s), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(gate_wait(&s->closed, 240));
    server_stop(s);
}
