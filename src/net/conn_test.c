#include "net/conn.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/budget.h"
#include "net/conn_impl.h"
#include "net/server_test.h"
#include "testing/test.h"

/* --- framing --- */

/* B-7 */
TEST(frames_cut_at_any_byte_arrive_the_same) {
    uint8_t all[200];
    size_t len = frame_make(all, 'e', 9);
    len += frame_make(all + len, 'e', 1);
    len += frame_make(all + len, 'e', 40);
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    for (size_t cut = 1; cut < len; cut++) {
        client_send(fd, all, cut);
        server_settle(s);
        client_send(fd, all + cut, len - cut);
        client_expect(fd, all, len);
    }
    CHECK_EQ(gate_value(&s->frames), (int64_t)(len - 1) * 3);
    close(fd);
    server_stop(s);
}

/* B-7 */
TEST(frames_sent_byte_by_byte_arrive_the_same) {
    uint8_t all[100];
    size_t len = frame_make(all, 'e', 7);
    len += frame_make(all + len, 'e', 20);
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    for (size_t at = 0; at < len; at++) {
        client_send(fd, all + at, 1);
        server_settle(s);
    }
    client_expect(fd, all, len);
    close(fd);
    server_stop(s);
}

/* B-7; their 1,000 answers are more pieces than one system call takes */
TEST(many_frames_in_one_segment_are_answered_in_their_order) {
    enum { FRAMES = 3000 };
    static uint8_t all[FRAMES * 600];
    size_t len = 0;
    for (int i = 0; i < FRAMES; i++)
        len += frame_make(all + len, 'e', 1 + (uint32_t)(i * 37 % 590));
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    client_send(fd, all, len);
    client_expect(fd, all, len);
    CHECK(gate_wait(&s->written, FRAMES));
    close(fd);
    server_stop(s);
}

TEST(large_frames_arrive_and_leave_byte_for_byte) {
    static const uint32_t sizes[] = {8191,  8192,  65531,  65532,   65533,
                                     65536, 70000, 262144, 1000003, 8 * 1024 * 1024};
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        client_send_frame(fd, 'e', sizes[i]);
        client_expect_frame(fd, 'e', sizes[i]);
    }
    close(fd);
    server_stop(s);
}

/* A large one is received into its own memory; what follows in the socket must not end in it. */
TEST(a_small_frame_right_behind_a_large_one_is_not_lost) {
    static uint8_t all[200000];
    size_t len = frame_make(all, 'e', 150000);
    len += frame_make(all + len, 'e', 10);
    len += frame_make(all + len, 'e', 30000);
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    client_send(fd, all, len);
    client_expect(fd, all, len);
    close(fd);
    server_stop(s);
}

/* B-1 */
TEST(a_length_of_zero_below_it_or_over_the_limit_closes_without_an_answer) {
    static const uint8_t bad[][4] = {
        {0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}, {0x80, 0, 0, 0}, {0, 0, 4, 1}, {0x7f, 0xff, 0xff, 0xff}};
    struct server *s = server_start((struct server_options){.frame_bytes_max = 1024});
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        int fd = client_open(s);
        client_send(fd, bad[i], 4);
        client_expect_end(fd);
    }
    int fd = client_open(s);
    client_send_frame(fd, 'e', 1024);
    client_expect_frame(fd, 'e', 1024);
    close(fd);
    server_stop(s);
}

static void allow_sixteen_bytes(void *session) {
    conn_set_frame_bytes_max(((struct session *)session)->conn, 16);
}

static void allow_more(void *session) {
    conn_set_frame_bytes_max(((struct session *)session)->conn, 1024);
}

TEST(another_limit_of_frames_counts_from_when_it_is_set) {
    struct server *s = server_start((struct server_options){.frame_bytes_max = 1024});
    int fd = client_open(s), other = client_open(s);
    CHECK(gate_wait(&s->opened, 2));
    server_call(s, 0, allow_sixteen_bytes);
    server_call(s, 1, allow_sixteen_bytes);
    client_send_frame(fd, 'e', 16);
    client_expect_frame(fd, 'e', 16);
    client_send_frame(fd, 'e', 17);
    client_expect_end(fd);
    server_call(s, 1, allow_more);
    client_send_frame(other, 'e', 1024);
    client_expect_frame(other, 'e', 1024);
    close(other);
    server_stop(s);
}

static uint32_t seen_room, seen_have;
static void see_frame(void *session) {
    struct conn *c = ((struct session *)session)->conn;
    seen_room = c->frame ? c->frame_room : 0;
    seen_have = c->frame_have;
}

/* B-1, B-46 */
TEST(an_announced_length_takes_no_memory_before_the_bytes_come) {
    const uint8_t head[4] = {0x06, 0x40, 0, 0}; /* 100 MiB */
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    client_send(fd, head, 4);
    server_settle(s);
    server_call(s, 0, see_frame);
    CHECK_EQ(seen_room, 64 * 1024);
    client_send(fd, pattern(), 65533);
    server_settle(s);
    server_call(s, 0, see_frame);
    CHECK_EQ(seen_have, 65537);
    CHECK(seen_room <= 4 * 64 * 1024);
    close(fd);
    CHECK(gate_wait(&s->closed, 1));
    CHECK_EQ(budget_free_bytes(s->budget), INT64_C(1) << 30);
    server_stop(s);
}

/* B-8 */
static int seen_nodelay, seen_keepalive;
static void see_options(void *session) {
    int fd = ((struct session *)session)->conn->fd;
    socklen_t len = sizeof(int);
    getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &seen_nodelay, &len);
    getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &seen_keepalive, &len);
}

TEST(sockets_have_nodelay_and_keepalive) {
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    CHECK(gate_wait(&s->opened, 1));
    server_call(s, 0, see_options);
    CHECK(seen_nodelay);
    CHECK(seen_keepalive);
    close(fd);
    server_stop(s);
}

/* --- pause --- */

TEST(no_frame_comes_after_a_pause_until_resume_and_none_is_lost) {
    uint8_t all[400];
    size_t len = frame_make(all, 'p', 10);
    for (int i = 0; i < 3; i++)
        len += frame_make(all + len, i < 2 ? 'n' : 'p', 50);
    len += frame_make(all + len, 'e', 20);
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    client_send(fd, all, len);
    client_expect_frame(fd, 'p', 10);
    client_send_frame(fd, 'e', 30);
    server_settle(s);
    CHECK_EQ(gate_value(&s->frames), 1);
    server_resume(s, 0);
    client_expect_frame(fd, 'p', 50);
    server_settle(s);
    CHECK_EQ(gate_value(&s->frames), 4);
    server_resume(s, 0);
    client_expect_frame(fd, 'e', 20);
    client_expect_frame(fd, 'e', 30);
    close(fd);
    server_stop(s);
}

TEST(a_pause_after_every_frame_changes_nothing_for_the_client) {
    enum { FRAMES = 3000 };
    static uint8_t all[FRAMES * 104];
    size_t len = 0;
    for (int i = 0; i < FRAMES; i++)
        len += frame_make(all + len, 'r', 1 + (uint32_t)i % 100);
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    client_send(fd, all, len);
    client_expect(fd, all, len);
    close(fd);
    server_stop(s);
}

TEST(a_peer_that_ends_while_reading_is_paused_is_seen_and_its_frames_are_not_lost) {
    uint8_t all[200];
    size_t len = frame_make(all, 'p', 10);
    len += frame_make(all + len, 'e', 20);
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    client_send(fd, all, len);
    client_expect_frame(fd, 'p', 10);
    client_send_frame(fd, 'e', 30);
    server_settle(s);
    CHECK_EQ(gate_value(&s->hung_up), 0);
    shutdown(fd, SHUT_WR);
    CHECK(gate_wait(&s->hung_up, 1));
    CHECK_EQ(gate_value(&s->ended), 0);
    server_settle(s);
    CHECK_EQ(gate_value(&s->frames), 1);
    server_resume(s, 0);
    client_expect_frame(fd, 'e', 20);
    client_expect_frame(fd, 'e', 30);
    CHECK(gate_wait(&s->ended, 1));
    CHECK_EQ(gate_value(&s->hung_up), 1);
    close(fd);
    server_stop(s);
}

TEST(a_reset_while_reading_is_paused_closes) {
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    client_send_frame(fd, 'p', 10);
    client_expect_frame(fd, 'p', 10);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
    close(fd);
    CHECK(gate_wait(&s->closed, 1));
    server_stop(s);
}

TEST(a_peer_that_ends_while_reading_goes_on_is_no_hangup) {
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    client_send_frame(fd, 'n', 10);
    shutdown(fd, SHUT_WR);
    CHECK(gate_wait(&s->ended, 1));
    CHECK_EQ(gate_value(&s->hung_up), 0);
    CHECK_EQ(gate_value(&s->frames), 1);
    close(fd);
    server_stop(s);
}

static bool seen_resume_pending;
static void pause_and_resume(void *session) {
    struct session *t = session;
    conn_pause(t->conn);
    conn_resume(t->conn);
    seen_resume_pending = link_in_list(&t->conn->resume.link);
}

TEST(pause_and_resume_inside_a_half_read_frame_lose_nothing) {
    uint8_t all[100];
    size_t len = frame_make(all, 'e', 60);
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    for (size_t cut = 1; cut < len; cut += 7) {
        client_send(fd, all, cut);
        server_settle(s);
        server_call(s, 0, pause_and_resume);
        client_send(fd, all + cut, len - cut);
        client_expect(fd, all, len);
    }
    close(fd);
    server_stop(s);
}

/* --- memory --- */

TEST(a_frame_waits_for_memory_and_goes_on_in_the_order_of_arrival) {
    struct server *s = server_start((struct server_options){.budget_bytes = 1000});
    int fd[4];
    for (int i = 0; i < 4; i++) {
        fd[i] = client_open(s);
        CHECK(gate_wait(&s->opened, i + 1));
    }
    client_send_frame(fd[0], 'k', 600);
    CHECK(gate_wait(&s->frames, 1));
    client_send_frame(fd[1], 'e', 500); /* doesn't fit */
    client_send_frame(fd[1], 'e', 400);
    server_settle(s);
    client_send_frame(fd[2], 'k', 300); /* would fit but for the one before it */
    server_settle(s);
    client_send_frame(fd[3], 'e', 20);
    server_settle(s);
    CHECK_EQ(gate_value(&s->frames), 1);
    server_release(s, 0);
    client_expect_frame(fd[1], 'e', 500);
    client_expect_frame(fd[1], 'e', 400);
    client_expect_frame(fd[3], 'e', 20);
    CHECK_EQ(s->frame_from[1], 1);
    CHECK_EQ(s->frame_from[2], 2);
    server_release(s, 2);
    for (int i = 0; i < 4; i++)
        close(fd[i]);
    CHECK(gate_wait(&s->closed, 4));
    CHECK_EQ(budget_free_bytes(s->budget), 1000);
    server_stop(s);
}

TEST(a_connection_that_goes_while_it_waits_for_memory_gives_its_place_to_the_next) {
    struct server *s = server_start((struct server_options){.budget_bytes = 1000, .idle_ms = 0});
    int a = client_open(s);
    client_send_frame(a, 'k', 600);
    CHECK(gate_wait(&s->frames, 1));
    int b = client_open(s);
    client_send_frame(b, 'e', 900);
    CHECK(gate_wait(&s->opened, 2));
    server_settle(s);
    int c = client_open(s);
    client_send_frame(c, 'e', 100);
    CHECK(gate_wait(&s->opened, 3));
    server_settle(s);
    CHECK_EQ(gate_value(&s->frames), 1);
    server_drain(s, 60000);
    client_expect_end(b);
    client_expect_end(c);
    CHECK(gate_wait(&s->closed, 2)); /* they don't wait for the memory any longer */
    server_release(s, 0);
    CHECK(gate_wait(&s->drained, 1));
    CHECK(client_is_closed(a));
    CHECK_EQ(budget_free_bytes(s->budget), 1000);
    server_stop(s);
}

/* --- deadlines --- */

/* B-10 */
TEST(a_connection_that_sends_nothing_closes_after_idle_ms) {
    struct server *s = server_start((struct server_options){.idle_ms = 60});
    int64_t from_ms = clock_ms();
    int fd = client_open(s);
    client_expect_end(fd);
    CHECK(clock_ms() - from_ms >=
          50); /* the loop's clock may be 4 ms behind, and more than one tick is a lie */
    server_stop(s);
}

static int64_t seen_due_ms;
static enum conn_deadline seen_deadline;
static void see_deadline(void *session) {
    struct conn *c = ((struct session *)session)->conn;
    seen_due_ms = c->deadline_ms;
    seen_deadline = c->deadline;
}

/* B-10 */
TEST(a_part_of_a_head_does_not_renew_the_idle_deadline_and_a_frame_does) {
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    CHECK(gate_wait(&s->opened, 1));
    server_call(s, 0, see_deadline);
    int64_t due_ms = seen_due_ms;
    CHECK_EQ(seen_deadline, CONN_IDLE);
    while (clock_ms() < due_ms - 600000 + 20) /* so that a new deadline would be another number */
        server_settle(s);
    client_send(fd, (const uint8_t[]){0, 0, 0}, 3);
    server_settle(s);
    server_call(s, 0, see_deadline);
    CHECK_EQ(seen_deadline, CONN_IDLE);
    CHECK_EQ(seen_due_ms, due_ms);
    client_send(fd, (const uint8_t[]){1, 'n'}, 2);
    server_settle(s);
    server_call(s, 0, see_deadline);
    CHECK_EQ(seen_deadline, CONN_IDLE);
    CHECK(seen_due_ms > due_ms);
    close(fd);
    server_stop(s);
}

/* B-11 */
TEST(a_body_that_does_not_come_closes_after_read_ms) {
    struct server *s = server_start((struct server_options){.read_ms = 60});
    int fd = client_open(s);
    int64_t from_ms = clock_ms();
    client_send(fd, (const uint8_t[]){0, 0, 0, 9, 'e'}, 5);
    client_expect_end(fd);
    CHECK(clock_ms() - from_ms >= 50);
    server_stop(s);
}

/* The idle connection, opened later, is the clock: when it has been closed, a deadline of the other would have passed. */
TEST(no_deadline_runs_while_a_request_is_unanswered) {
    struct server *s = server_start((struct server_options){.idle_ms = 60, .read_ms = 30});
    int busy = client_open(s);
    client_send_frame(busy, 'h', 100);
    CHECK(gate_wait(&s->frames, 1));
    client_expect_end(client_open(s));
    client_send_frame(busy, 'h', 50);
    CHECK(gate_wait(&s->frames, 2));
    server_release(s, 0);
    client_expect_frame(busy, 'h', 100);
    client_expect_frame(busy, 'h', 50);
    client_expect_end(busy); /* and now it does */
    server_stop(s);
}

TEST(no_deadline_runs_while_paused) {
    struct server *s = server_start((struct server_options){.idle_ms = 60, .read_ms = 30});
    int paused = client_open(s);
    client_send_frame(paused, 'p', 100);
    client_expect_frame(paused, 'p', 100);
    client_send(paused, (const uint8_t[]){0, 0, 0, 2, 'e'}, 5);
    client_expect_end(client_open(s));
    server_resume(s, 0);
    client_send(paused, "!", 1);
    client_expect(paused, (const uint8_t[]){0, 0, 0, 2, 'e', '!'}, 6);
    client_expect_end(paused);
    server_stop(s);
}

TEST(no_deadline_runs_while_waiting_for_memory) {
    struct server *s =
        server_start((struct server_options){.idle_ms = 100, .read_ms = 30, .budget_bytes = 1000});
    int keeps = client_open(s);
    client_send_frame(keeps, 'k', 900);
    CHECK(gate_wait(&s->frames, 1));
    int waits = client_open(s);
    client_send_frame(waits, 'e', 500);
    CHECK(gate_wait(&s->opened, 2));
    server_settle(s);
    client_expect_end(client_open(s));
    server_release(s, 0);
    client_expect_frame(waits, 'e', 500);
    close(waits);
    close(keeps);
    server_stop(s);
}

static void shorten_idle(void *session) {
    conn_set_idle_ms(((struct session *)session)->conn, 40);
}

TEST(another_idle_deadline_counts_from_when_it_is_set) {
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    CHECK(gate_wait(&s->opened, 1));
    server_call(s, 0, shorten_idle);
    client_expect_end(fd);
    server_stop(s);
}

/* B-12 */
TEST(an_answer_that_is_not_read_ends_the_connection_after_write_ms) {
    struct server *s = server_start((struct server_options){.write_ms = 80});
    int fd = client_open_small(s);
    client_send_big(fd, PATTERN_BYTES);
    client_send_frame(fd, 'e', 10);
    CHECK(gate_wait(&s->closed, 1));
    CHECK_EQ(gate_value(&s->lost), 2);
    CHECK_EQ(s->lost_with, ST_TIMED_OUT);
    close(fd);
    server_stop(s);
}

static void see_write_due(void *session) {
    seen_due_ms = ((struct session *)session)->conn->write_due_ms;
}

/* B-12 */
TEST(every_answer_has_its_own_write_deadline) {
    struct server *s = server_start((struct server_options){0});
    int fd = client_open_small(s);
    client_send_big(fd, PATTERN_BYTES / 2);
    client_send_big(fd, PATTERN_BYTES);
    CHECK(gate_wait(&s->frames, 2));
    server_settle(s);
    server_call(s, 0, see_write_due);
    int64_t first_due_ms = seen_due_ms;
    CHECK(first_due_ms > 0);
    while (clock_ms() < first_due_ms - 600000 + 20)
        server_settle(s);
    server_call(s, 0, see_write_due);
    CHECK_EQ(seen_due_ms, first_due_ms);
    client_expect(fd, pattern(), PATTERN_BYTES / 2);
    CHECK(gate_wait(&s->written, 1));
    server_settle(s);
    server_call(s, 0, see_write_due);
    CHECK(seen_due_ms > first_due_ms);
    close(fd);
    server_stop(s);
}

/* The second connection, begun later, is the clock: it closes when the first one's old deadline has passed. */
TEST(a_deadline_that_was_met_has_no_effect_later) {
    struct server *s = server_start((struct server_options){.read_ms = 40});
    int fd = client_open(s);
    client_send(fd, (const uint8_t[]){0, 0, 0, 2, 'e'}, 5);
    server_settle(s);
    client_send(fd, "!", 1);
    client_expect(fd, (const uint8_t[]){0, 0, 0, 2, 'e', '!'}, 6);
    int clock_fd = client_open(s);
    client_send(clock_fd, (const uint8_t[]){0, 0, 0, 2, 'e'}, 5);
    client_expect_end(clock_fd);
    client_send_frame(fd, 'e', 10);
    client_expect_frame(fd, 'e', 10);
    close(fd);
    server_stop(s);
}

/* --- writing --- */

TEST(a_slow_reader_gets_every_byte_in_order) {
    enum { ANSWER = 5 * 1000 * 1000 + 1 };
    struct server *s = server_start((struct server_options){0});
    int fd = client_open_small(s);
    for (int i = 0; i < 3; i++) {
        client_send_big(fd, ANSWER);
        client_send_frame(fd, 'e', 300);
    }
    for (int i = 0; i < 3; i++) {
        client_expect(fd, pattern(), ANSWER);
        client_expect_frame(fd, 'e', 300);
    }
    CHECK(gate_wait(&s->written, 6));
    close(fd);
    server_stop(s);
}

TEST(an_empty_answer_completes) {
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    client_send_big(fd, 0);
    client_send_frame(fd, 'e', 3);
    client_expect_frame(fd, 'e', 3);
    CHECK(gate_wait(&s->written, 2));
    close(fd);
    server_stop(s);
}

TEST(a_peer_that_goes_loses_the_answers_with_io_or_a_cancel) {
    struct server *s = server_start((struct server_options){0});
    int fd = client_open_small(s);
    client_send_big(fd, PATTERN_BYTES);
    CHECK(gate_wait(&s->frames, 1));
    close(fd); /* with unread input: a reset */
    CHECK(gate_wait(&s->closed, 1));
    CHECK_EQ(gate_value(&s->lost), 1);
    CHECK_EQ(s->lost_with, ST_IO);
    server_stop(s);
}

TEST(an_answer_after_conn_close_is_canceled_before_on_closed) {
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    client_send_frame(fd, 'l', 10);
    CHECK(gate_wait(&s->closed, 1));
    CHECK_EQ(gate_value(&s->lost), 1);
    CHECK_EQ(s->lost_with, ST_CANCELED);
    client_expect_end(fd);
    server_stop(s);
}

static struct op many[2500], late;
static struct session *late_session;

static void do_nothing(struct op *op) {
    (void)op;
}

static void write_late(struct op *op) {
    (void)op;
    session_answer(late_session, 10);
}

/* So many ready things that the loop closes the socket's handle before it comes to write_late. */
static void close_before_a_write(void *session) {
    late_session = session;
    for (size_t i = 0; i < COUNT_OF(many); i++) {
        op_init(&many[i], loop_current(), do_nothing);
        loop_post(&many[i]);
    }
    op_init(&late, loop_current(), write_late);
    conn_close(late_session->conn);
    loop_post(&late);
}

TEST(on_closed_waits_also_for_an_answer_that_came_as_late_as_can_be) {
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    server_call(s, 0, close_before_a_write);
    CHECK(gate_wait(&s->closed, 1));
    CHECK_EQ(gate_value(&s->lost), 1);
    close(fd);
    server_stop(s);
}

/* --- the end --- */

/* B-13 */
TEST(a_peer_that_goes_within_a_frame_closes_quietly) {
    struct server *s = server_start((struct server_options){0});
    for (int cut = 1; cut < 10; cut++) {
        uint8_t frame[16];
        frame_make(frame, 'e', 10);
        int fd = client_open(s);
        client_send(fd, frame, (size_t)cut);
        close(fd);
        CHECK(gate_wait(&s->closed, cut));
    }
    CHECK_EQ(gate_value(&s->ended), 9);
    CHECK_EQ(budget_free_bytes(s->budget), INT64_C(1) << 30);
    server_stop(s);
}

TEST(a_peer_that_has_sent_its_fin_still_gets_its_answers) {
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    client_send_frame(fd, 'h', 10);
    client_send_frame(fd, 'h', 20);
    CHECK_EQ(shutdown(fd, SHUT_WR), 0);
    CHECK(gate_wait(&s->ended, 1));
    server_release(s, 0);
    client_expect_frame(fd, 'h', 10);
    client_expect_frame(fd, 'h', 20);
    client_expect_end(fd);
    server_stop(s);
}

/* B-60 */
TEST(an_answer_then_close_is_readable_behind_input_that_nobody_read) {
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    client_send_frame(fd, 'c', 1000);
    client_send(fd, pattern(), 3 * 1000 * 1000);
    client_expect_frame(fd, 'c', 1000);
    client_expect_fin(fd);
    for (int i = 0; i < 5; i++) { /* what comes after the FIN is taken as well */
        client_send(fd, pattern(), 100000);
        server_settle(s);
    }
    CHECK_EQ(gate_value(&s->closed), 0);
    close(fd);
    CHECK(gate_wait(&s->closed, 1));
    CHECK_EQ(gate_value(&s->frames), 1);
    server_stop(s);
}

/* B-60 */
TEST(a_peer_that_never_answers_the_fin_is_closed_after_write_ms) {
    struct server *s = server_start((struct server_options){.write_ms = 60});
    int fd = client_open(s);
    int64_t from_ms = clock_ms();
    client_send_frame(fd, 'c', 10);
    CHECK(gate_wait(&s->closed, 1));
    CHECK(clock_ms() - from_ms >= 50);
    client_expect_frame(fd, 'c', 10);
    client_expect_end(fd);
    server_stop(s);
}

TEST(no_frame_comes_after_conn_close_inside_on_frame) {
    uint8_t all[100];
    size_t len = frame_make(all, 'n', 10);
    len += frame_make(all + len, 'x', 10);
    len += frame_make(all + len, 'e', 10);
    struct server *s = server_start((struct server_options){0});
    int fd = client_open(s);
    client_send(fd, all, len);
    client_expect_end(fd);
    CHECK(gate_wait(&s->closed, 1));
    CHECK_EQ(gate_value(&s->frames), 2);
    server_stop(s);
}

TEST(any_failing_allocation_costs_one_connection_at_most) {
    struct server *s = server_start((struct server_options){0});
    uint8_t half[8];
    frame_make(half, 'e', 4);
    for (int64_t nth = 1; nth < 200; nth++) {
        int fd = client_open(s);
        static uint8_t large[300000];
        size_t len = frame_make(large, 'e', sizeof large - 4);
        mem_fail_at(nth);
        (void)!send(fd, half, 3, MSG_NOSIGNAL);
        server_settle(s);
        (void)!send(fd, half + 3, 5, MSG_NOSIGNAL);
        for (size_t at = 0; at < len;) {
            ssize_t n = send(fd, large + at, len - at, MSG_NOSIGNAL);
            if (n <= 0)
                break;
            at += (size_t)n;
        }
        (void)!shutdown(fd, SHUT_WR);
        CHECK(client_is_closed(fd));
        bool over = mem_fail_pending();
        mem_fail_at(0);
        if (over)
            break;
    }
    int fd = client_open(s);
    client_send_frame(fd, 'e', 100);
    client_expect_frame(fd, 'e', 100);
    close(fd);
    server_stop(s);
}
