/* A connection's requests over a real socket, with a backend that answers when the test says so. */
#include "kafka/session.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/be.h"
#include "base/clock.h"
#include "base/mem.h"
#include "net/loop.h"
#include "testing/test.h"
#include "wire/codec.h"

#define ANSWER_BYTES_MAX 65536
#define WAIT_MS          10000
#define QUIET_MS         50 /* so long nothing must come */
#define HELD_MAX         8

/* ---- the backend: holds appends and watches until told ---- */

struct held_backend {
    struct backend base;
    bool hold_appends;
    struct backend_append *held[HELD_MAX]; /* on the loop */
    int held_count;
    struct backend_watch *watch;
    int64_t read_bytes; /* that a read says to have found */
    enum status append_status;
    _Atomic uint64_t connection; /* of the last append */
    _Atomic int appends_seen, topics_seen, reads_seen, watches_seen, cancels_seen;
};

static struct held_backend held;

static void append_answer(struct backend_append *a) {
    for (int32_t i = 0; i < a->parts_count; i++) {
        a->parts[i].status = held.append_status;
        a->parts[i].base_offset = 7;
        a->parts[i].start_offset = 0;
        a->parts[i].append_ms = -1;
    }
    op_complete(&a->op, ST_OK);
}

static void held_append(struct backend *b, struct backend_append *a) {
    (void)b;
    op_start(&a->op, NULL);
    atomic_fetch_add(&held.appends_seen, 1);
    atomic_store(&held.connection, a->connection);
    if (held.hold_appends)
        held.held[held.held_count++] = a;
    else
        append_answer(a);
}

static void held_topics(struct backend *b, struct backend_topics *t) {
    (void)b;
    atomic_fetch_add(&held.topics_seen, 1);
    op_start(&t->op, NULL);
    for (int32_t i = 0; i < t->parts_count; i++)
        t->parts[i].status = ST_NOT_FOUND;
    op_complete(&t->op, ST_OK);
}

static void held_read(struct backend *b, struct backend_read *r) {
    (void)b;
    atomic_fetch_add(&held.reads_seen, 1);
    op_start(&r->op, NULL);
    r->bytes = held.read_bytes;
    op_complete(&r->op, ST_OK);
}

static void held_read_release(struct backend *b, struct backend_read *r) {
    (void)b;
    (void)r;
}

static void watch_cancel(struct op *op) {
    if (!held.watch)
        return;
    held.watch = NULL;
    atomic_fetch_add(&held.cancels_seen, 1);
    op_complete(op, ST_CANCELED);
}

static void held_watch(struct backend *b, struct backend_watch *w) {
    (void)b;
    held.watch = w;
    op_start(&w->op, watch_cancel);
    atomic_fetch_add(&held.watches_seen, 1);
}

static void held_trim(struct backend *b, struct backend_trim *t) {
    (void)b;
    op_start(&t->op, NULL);
    op_complete(&t->op, ST_OK);
}

static const struct backend_ops held_ops = {
    .name = "held",
    .controller = true,
    .topics = held_topics,
    .append = held_append,
    .read = held_read,
    .read_release = held_read_release,
    .watch = held_watch,
    .trim = held_trim,
};

/* ---- the server and its client ---- */

struct rig {
    struct loop *loop;
    struct budget *budget;
    struct kafka *kafka;
    struct backend_ops ops;
    int fd;
    bool stopped;
};

struct stop {
    struct op op;
    sem_t ended;
};

static void stop_on_done(struct op *op) {
    sem_post(&container_of(op, struct stop, op)->ended);
}

static int rig_connect(const struct rig *rig) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)kafka_port(rig->kafka))};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    CHECK_EQ(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void rig_open(struct rig *rig, int32_t in_flight_max, bool controller) {
    *rig = (struct rig){.ops = held_ops};
    rig->ops.controller = controller;
    held = (struct held_backend){.base = {&rig->ops}};
    CHECK_EQ(loop_new(0, &rig->loop), ST_OK);
    CHECK_EQ(budget_new(64 << 20, &rig->budget), ST_OK);
    const struct kafka_settings settings = {
        .bind_address = "127.0.0.1:0",
        .connections_max = 10,
        .frame_bytes_max = 1 << 20,
        .idle_ms = 60000,
        .read_ms = 60000,
        .write_ms = 60000,
        .in_flight_max = in_flight_max,
        .partitions_default = 1,
        .cluster_id = "cluster",
        .backend = &held.base,
        .budget = rig->budget,
        .loops = &rig->loop,
        .loops_count = 1,
    };
    CHECK_EQ(kafka_new(&settings, &rig->kafka), ST_OK);
    CHECK_EQ(loop_start(rig->loop), ST_OK);
    kafka_open(rig->kafka);
    rig->fd = rig_connect(rig);
}

static void rig_stop(struct rig *rig, int64_t drain_ms) {
    struct stop stop;
    sem_init(&stop.ended, 0, 0);
    op_init(&stop.op, rig->loop, stop_on_done);
    kafka_stop(rig->kafka, drain_ms, &stop.op);
    while (sem_wait(&stop.ended) != 0)
        ;
    sem_destroy(&stop.ended);
    rig->stopped = true;
}

static void rig_close(struct rig *rig) {
    if (!rig->stopped)
        rig_stop(rig, WAIT_MS);
    close(rig->fd);
    loop_stop(rig->loop);
    kafka_free(rig->kafka);
    loop_free(rig->loop);
    budget_free(rig->budget);
}

/* Run fn on the loop and wait until it has. */
struct visit {
    struct op op;
    void (*fn)(void);
    sem_t ended;
};

static void visit_run(struct op *op) {
    struct visit *v = container_of(op, struct visit, op);
    v->fn();
    sem_post(&v->ended);
}

static void on_loop(struct rig *rig, void (*fn)(void)) {
    struct visit v = {.fn = fn};
    sem_init(&v.ended, 0, 0);
    op_init(&v.op, rig->loop, visit_run);
    loop_post(&v.op);
    while (sem_wait(&v.ended) != 0)
        ;
    sem_destroy(&v.ended);
}

static void hold_appends(void) {
    held.hold_appends = true;
}

static void release_appends(void) {
    held.hold_appends = false;
    for (int i = 0; i < held.held_count; i++)
        append_answer(held.held[i]);
    held.held_count = 0;
}

static void wait_for(_Atomic int *count, int want) {
    int64_t end = clock_ms() + WAIT_MS;
    while (atomic_load(count) < want && clock_ms() < end)
        sched_yield();
    CHECK_EQ(atomic_load(count), want);
}

static void send_all(int fd, const void *bytes, size_t len) {
    CHECK_EQ(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* A whole request frame. in NULL: the raw body. */
static void send_request(int fd, int16_t key, int16_t version, int32_t correlation, const void *in,
                         const void *raw, size_t raw_len) {
    struct wbuf body;
    wbuf_init(&body, 1 << 20);
    if (in)
        CHECK_EQ(kmsg_encode(kmsg_request(key), version, in, &body), ST_OK);
    else
        CHECK_EQ(wbuf_put(&body, raw, raw_len), ST_OK);
    bool flexible = kmsg_request(key) && kmsg_is_flexible(kmsg_request(key), version);
    size_t header = 8 + 2 + 1 + (flexible ? 1 : 0), len = header + body.bytes;
    uint8_t *frame = mem_take_zeroed(1, 4 + len);
    be_set(frame, 4, len);
    be_set(frame + 4, 2, (uint16_t)key);
    be_set(frame + 6, 2, (uint16_t)version);
    be_set(frame + 8, 4, (uint32_t)correlation);
    be_set(frame + 12, 2, 1);
    frame[14] = 'c';
    wbuf_flatten(&body, frame + 4 + header);
    send_all(fd, frame, 4 + len);
    mem_free(frame);
    wbuf_release(&body);
}

static void read_all(int fd, uint8_t *to, size_t len) {
    for (size_t have = 0; have < len;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        CHECK_EQ(poll(&p, 1, WAIT_MS), 1);
        ssize_t n = recv(fd, to + have, len - have, 0);
        CHECK(n > 0);
        have += (size_t)n;
    }
}

struct answer {
    int32_t correlation;
    size_t len;
    uint8_t bytes[ANSWER_BYTES_MAX]; /* after the correlation id */
};

static void read_answer(int fd, struct answer *out) {
    uint8_t head[8];
    read_all(fd, head, sizeof head);
    out->len = be_get(head, 4) - 4;
    out->correlation = (int32_t)be_get(head + 4, 4);
    CHECK(out->len <= sizeof out->bytes);
    read_all(fd, out->bytes, out->len);
}

static void expect_end(int fd) {
    uint8_t byte;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    CHECK_EQ(poll(&p, 1, WAIT_MS), 1);
    CHECK_EQ(recv(fd, &byte, 1, 0), 0);
}

static void expect_quiet(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    CHECK_EQ(poll(&p, 1, QUIET_MS), 0);
}

static void send_metadata(int fd, int32_t correlation) {
    send_request(fd, 3, 1, correlation, &(struct metadata_req){0}, NULL, 0);
}

static void send_produce(int fd, int16_t version, int32_t correlation, int16_t acks) {
    struct produce_req_partition partition = {.records = BYTES_NULL};
    struct produce_req_topic topic = {
        .name = STR("t"), .partition_data = &partition, .partition_data_count = 1};
    struct produce_req in = {.transactional_id = STR_NULL,
                             .acks = acks,
                             .timeout_ms = WAIT_MS,
                             .topic_data = &topic,
                             .topic_data_count = 1};
    send_request(fd, 0, version, correlation, &in, NULL, 0);
}

static void send_fetch(int fd, int32_t correlation, int32_t min_bytes) {
    struct fetch_req_partition partition = {.current_leader_epoch = -1, .partition_max_bytes = 1000};
    struct fetch_req_topic topic = {.topic = STR("t"), .partitions = &partition, .partitions_count = 1};
    struct fetch_req in = {.replica_id = -1,
                           .max_wait_ms = 60000,
                           .min_bytes = min_bytes,
                           .max_bytes = 1000,
                           .session_epoch = -1,
                           .topics = &topic,
                           .topics_count = 1};
    send_request(fd, 1, 11, correlation, &in, NULL, 0);
}

/* ---- */

static struct answer answer; /* large */

TEST(api_versions_lists_what_is_served_in_key_order) { /* B-30, B-31 */
    struct rig rig;
    rig_open(&rig, 16, true);
    send_request(rig.fd, 18, 0, 5, &(struct api_versions_req){0}, NULL, 0);
    read_answer(rig.fd, &answer);
    CHECK_EQ(answer.correlation, 5);
    CHECK_EQ(be_get(answer.bytes, 2), 0);
    int32_t count;
    const struct api *rows = api_all(&count);
    CHECK_EQ(be_get(answer.bytes + 2, 4), count);
    CHECK_EQ(answer.len, 6 + 6 * (size_t)count);
    for (int32_t i = 0; i < count; i++) {
        const uint8_t *row = answer.bytes + 6 + 6 * i;
        CHECK_EQ(be_get(row, 2), rows[i].key);
        CHECK_EQ(be_get(row + 2, 2), rows[i].key == 0 ? 0 : rows[i].version_min);
        CHECK_EQ(be_get(row + 4, 2), rows[i].version_max);
        CHECK(i == 0 || rows[i].key > rows[i - 1].key);
    }
    rig_close(&rig);
}

TEST(what_the_backend_can_not_do_is_not_listed_and_closes_like_an_unknown_key) { /* B-30, B-34 */
    struct rig rig;
    struct delete_records_req in = {.timeout_ms = 1000};
    rig_open(&rig, 16, true);
    send_request(rig.fd, 21, 0, 1, &in, NULL, 0);
    read_answer(rig.fd, &answer);
    CHECK_EQ(answer.correlation, 1);
    rig_close(&rig);

    rig_open(&rig, 16, true);
    rig.ops.trim = NULL;
    send_request(rig.fd, 18, 0, 5, &(struct api_versions_req){0}, NULL, 0);
    read_answer(rig.fd, &answer);
    int32_t count;
    const struct api *rows = api_all(&count);
    CHECK_EQ(be_get(answer.bytes + 2, 4), count - 1);
    CHECK_EQ(answer.len, 6 + 6 * (size_t)(count - 1));
    for (int32_t i = 0, at = 0; i < count; i++)
        if (rows[i].key != 21)
            CHECK_EQ(be_get(answer.bytes + 6 + 6 * at++, 2), rows[i].key);
    send_request(rig.fd, 21, 0, 1, &in, NULL, 0);
    expect_end(rig.fd);
    rig_close(&rig);
}

TEST(an_unknown_version_of_api_versions_is_answered_and_the_connection_stays) { /* B-32, KIP-511 */
    static const uint8_t want[] = {0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 5};
    struct rig rig;
    rig_open(&rig, 16, true);
    send_request(rig.fd, 18, 99, 1, NULL, "", 0);
    read_answer(rig.fd, &answer);
    CHECK_EQ(answer.len, sizeof want);
    CHECK_MEM(answer.bytes, want, sizeof want);
    send_request(rig.fd, 18, -1, 2, NULL, "", 0);
    read_answer(rig.fd, &answer);
    CHECK_EQ(answer.correlation, 2);
    CHECK_EQ(answer.bytes[1], 35);
    rig_close(&rig);
}

TEST(an_odd_software_name_is_an_invalid_request_and_gets_no_list) { /* KIP-511 */
    static const struct str odd[] = {STR(""), STR("a b"), STR("-a"), STR("a-"), STR("\xc3\xa9")};
    struct rig rig;
    rig_open(&rig, 16, true);
    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        send_request(
            rig.fd, 18, 3, 1,
            &(struct api_versions_req){.client_software_name = odd[i], .client_software_version = STR("1")},
            NULL, 0);
        read_answer(rig.fd, &answer);
        CHECK_EQ(be_get(answer.bytes, 2), 42);
        CHECK_EQ(answer.bytes[2], 1); /* compact: no elements */
    }
    rig_close(&rig);
}

TEST(a_client_of_another_cluster_is_sent_back_to_its_bootstrap_list) { /* KIP-1242 */
    struct rig rig;
    rig_open(&rig, 16, true);
    struct api_versions_req in = {.client_software_name = STR("a"),
                                  .client_software_version = STR("1"),
                                  .cluster_id = STR("cluster"),
                                  .node_id = 1};
    static const int16_t want[] = {0, 129, 129};
    for (size_t i = 0; i < COUNT_OF(want); i++) {
        in.cluster_id = i == 1 ? STR("other") : STR("cluster");
        in.node_id = i == 2 ? 9 : 1;
        send_request(rig.fd, 18, 5, 1, &in, NULL, 0);
        read_answer(rig.fd, &answer);
        CHECK_EQ(be_get(answer.bytes, 2), want[i]);
    }
    rig_close(&rig);
}

TEST(what_is_not_served_or_not_readable_closes_and_others_stay) { /* B-2, B-3, B-33, B-34, B-41, B-43 */
    static const uint8_t frames[][24] = {
        {0, 0, 0, 12, 3, 0xe7, 0, 0, 0, 0, 0, 1, 0, 1, 'c', 0},                   /* key 999 */
        {0, 0, 0, 11, 0, 4, 0, 0, 0, 0, 0, 1, 0, 1, 'c'},                         /* internal key 4 */
        {0, 0, 0, 11, 0, 3, 0, 14, 0, 0, 0, 1, 0, 1, 'c'},                        /* Metadata v14 */
        {0, 0, 0, 11, 0, 3, 0xff, 0xff, 0, 0, 0, 1, 0, 1, 'c'},                   /* Metadata v-1 */
        {0, 0, 0, 7, 0, 3, 0, 1, 0, 0, 0, 1, 0, 1, 'c'},                          /* no whole header */
        {0, 0, 0, 10, 0, 3, 0, 1, 0, 0, 0, 1, 0x7f, 0xff},                        /* client id past the end */
        {0, 0, 0, 13, 0, 3, 0, 1, 0, 0, 0, 1, 0, 1, 'c', 0, 0},                   /* a body cut short */
        {0, 0, 0, 15, 0, 3, 0, 1, 0, 0, 0, 1, 0, 1, 'c', 0x7f, 0xff, 0xff, 0xff}, /* 2^31-1 topics */
        {0, 0, 0, 15, 0, 3, 0, 0, 0, 0, 0, 1, 0, 1, 'c', 0xff, 0xff, 0xff, 0xff}, /* null topics at v0 */
        {0, 0, 0, 11, 0, 0, 0, 2, 0, 0, 0, 1, 0, 1, 'c'},                         /* Produce v2 (B-36) */
        {0xff, 0xff, 0xff, 0xff},
        {0, 0, 0, 0},
        {0, 0x10, 0, 1}, /* over the largest frame */
    };
    struct rig rig;
    rig_open(&rig, 16, true);
    for (size_t i = 0; i < COUNT_OF(frames); i++) {
        int fd = rig_connect(&rig);
        uint32_t body = (uint32_t)be_get(frames[i], 4);
        send_all(fd, frames[i], body <= 20 ? 4 + body : 4);
        expect_end(fd);
        close(fd);
    }
    send_metadata(rig.fd, 1);
    read_answer(rig.fd, &answer);
    CHECK_EQ(answer.correlation, 1);
    rig_close(&rig);
}

TEST(bytes_after_a_complete_body_are_ignored) { /* B-40 */
    struct rig rig;
    rig_open(&rig, 16, true);
    send_request(rig.fd, 3, 1, 1, NULL, "\0\0\0\0more", 8);
    read_answer(rig.fd, &answer);
    CHECK_EQ(answer.correlation, 1);
    rig_close(&rig);
}

TEST(answers_leave_in_the_order_of_the_requests) { /* B-5 */
    struct rig rig;
    rig_open(&rig, 16, true);
    on_loop(&rig, hold_appends);
    send_produce(rig.fd, 7, 1, -1);
    send_metadata(rig.fd, 2);
    send_metadata(rig.fd, 3);
    wait_for(&held.topics_seen, 2); /* both were started beside the first */
    expect_quiet(rig.fd);
    on_loop(&rig, release_appends);
    for (int i = 1; i <= 3; i++) {
        read_answer(rig.fd, &answer);
        CHECK_EQ(answer.correlation, i);
    }
    rig_close(&rig);
}

TEST(no_more_requests_than_allowed_are_started) { /* B-5 */
    struct rig rig;
    rig_open(&rig, 2, true);
    on_loop(&rig, hold_appends);
    for (int i = 1; i <= 4; i++)
        send_produce(rig.fd, 7, i, -1);
    wait_for(&held.appends_seen, 2);
    expect_quiet(rig.fd);
    CHECK_EQ(atomic_load(&held.appends_seen), 2);
    on_loop(&rig, release_appends);
    for (int i = 1; i <= 4; i++) {
        read_answer(rig.fd, &answer);
        CHECK_EQ(answer.correlation, i);
    }
    rig_close(&rig);
}

TEST(a_request_that_closes_lets_the_answers_before_it_out) {
    struct rig rig;
    rig_open(&rig, 16, true);
    on_loop(&rig, hold_appends);
    send_produce(rig.fd, 7, 1, -1);
    send_request(rig.fd, 3, 1, 2, NULL, "\0", 1);
    send_produce(rig.fd, 7, 3, -1);
    expect_quiet(rig.fd);
    on_loop(&rig, release_appends);
    read_answer(rig.fd, &answer);
    CHECK_EQ(answer.correlation, 1);
    expect_end(rig.fd);
    rig_close(&rig);
}

TEST(acks_0_is_silent_when_all_is_stored_and_closes_when_not) { /* D1-22 */
    struct rig rig;
    rig_open(&rig, 16, true);
    send_produce(rig.fd, 7, 1, 0);
    send_metadata(rig.fd, 2);
    read_answer(rig.fd, &answer);
    CHECK_EQ(answer.correlation, 2);
    held.append_status = ST_NOT_FOUND; /* before the next request is sent, so before the loop reads it */
    send_produce(rig.fd, 7, 3, 0);
    expect_end(rig.fd);
    rig_close(&rig);
}

TEST(a_stub_leaves_a_silent_old_produce_open) { /* B-36 */
    struct rig rig;
    rig_open(&rig, 16, false);
    send_request(rig.fd, 0, 2, 1, NULL, "\0\0\0\0\0\0", 6); /* acks 0 */
    send_request(rig.fd, 0, 2, 1, NULL, "", 0);
    send_metadata(rig.fd, 2);
    read_answer(rig.fd, &answer);
    CHECK_EQ(answer.correlation, 2);
    send_request(rig.fd, 0, 2, 3, NULL, "\0\1\0\0\0\0", 6); /* acks 1 */
    expect_end(rig.fd);
    rig_close(&rig);
}

TEST(a_fetch_whose_client_leaves_is_given_up) {
    struct rig rig;
    rig_open(&rig, 16, true);
    send_fetch(rig.fd, 1, 1);
    wait_for(&held.watches_seen, 1);
    shutdown(rig.fd, SHUT_WR);
    wait_for(&held.cancels_seen, 1);
    rig_close(&rig);
}

TEST(a_client_that_leaves_with_a_full_row_is_not_waited_for) {
    struct rig rig;
    rig_open(&rig, 2, true);
    for (int32_t i = 1; i <= 3; i++) /* the third is not even read: reading pauses at two */
        send_fetch(rig.fd, i, 1);
    wait_for(&held.watches_seen, 1);
    shutdown(rig.fd, SHUT_WR);
    for (int32_t i = 1; i <= 3; i++) {
        read_answer(rig.fd, &answer);
        CHECK_EQ(answer.correlation, i);
    }
    expect_end(rig.fd);
    CHECK_EQ(atomic_load(&held.watches_seen), 1);
    rig_close(&rig);
}

static void time_out_watch(void) {
    struct backend_watch *watch = held.watch;
    held.watch = NULL;
    op_complete(&watch->op, ST_TIMED_OUT);
}

TEST(a_fetch_reads_once_those_before_it_are_answered) { /* B-5 */
    struct rig rig;
    rig_open(&rig, 16, true);
    send_fetch(rig.fd, 1, 1);
    wait_for(&held.watches_seen, 1);
    send_fetch(rig.fd, 2, 1);
    send_metadata(rig.fd, 3);
    wait_for(&held.topics_seen, 1); /* so the second was looked at, too */
    CHECK_EQ(atomic_load(&held.reads_seen), 1);
    on_loop(&rig, time_out_watch);
    read_answer(rig.fd, &answer);
    CHECK_EQ(answer.correlation, 1);
    wait_for(&held.watches_seen, 2);
    CHECK_EQ(atomic_load(&held.reads_seen), 3); /* the first twice: for its answer again */
    shutdown(rig.fd, SHUT_WR);
    read_answer(rig.fd, &answer);
    CHECK_EQ(answer.correlation, 2);
    rig_close(&rig);
}

TEST(a_fetch_waits_for_memory_before_it_reads) {
    struct rig rig;
    rig_open(&rig, 16, true);
    int64_t all = budget_free_bytes(rig.kafka->fetches);
    budget_force(rig.kafka->fetches, all - 500); /* less than the 1000 bytes that are asked for */
    send_fetch(rig.fd, 1, 1);
    send_metadata(rig.fd, 2);
    wait_for(&held.topics_seen, 1);
    CHECK_EQ(atomic_load(&held.reads_seen), 0);
    budget_give(rig.kafka->fetches, all - 500);
    wait_for(&held.watches_seen, 1);
    CHECK_EQ(atomic_load(&held.reads_seen), 1);
    CHECK_EQ(budget_free_bytes(rig.kafka->fetches), all); /* who waits for records holds nothing */
    rig_close(&rig);
}

TEST(a_fetch_that_waits_for_memory_ends_with_its_client_and_with_the_server) {
    struct rig rig;
    rig_open(&rig, 16, true);
    int64_t all = budget_free_bytes(rig.kafka->fetches);
    budget_force(rig.kafka->fetches, all);
    int other = rig_connect(&rig);
    send_fetch(other, 1, 1);
    send_fetch(rig.fd, 1, 1);
    send_metadata(rig.fd, 2);
    wait_for(&held.topics_seen, 1);
    close(other);
    rig_stop(&rig, WAIT_MS);
    read_answer(rig.fd, &answer);
    CHECK_EQ(answer.correlation, 1);
    budget_give(rig.kafka->fetches, all);
    while (budget_free_bytes(rig.kafka->fetches) != all) /* what both took comes back, or this never ends */
        sched_yield();
    rig_close(&rig);
}

static void find_few_bytes(void) {
    held.read_bytes = 10;
}

static void wake_watch(void) {
    struct backend_watch *w = held.watch;
    held.watch = NULL;
    op_complete(&w->op, ST_OK);
}

/* Limits of partitions, of the request or of memory may let a read bring less than the watch saw: waiting on would never end. */
TEST(a_fetch_that_data_woke_answers_what_it_can_read) {
    struct rig rig;
    rig_open(&rig, 16, true);
    on_loop(&rig, find_few_bytes);
    send_fetch(rig.fd, 1, 100);
    wait_for(&held.watches_seen, 1);
    expect_quiet(rig.fd);
    on_loop(&rig, wake_watch);
    read_answer(rig.fd, &answer);
    CHECK_EQ(answer.correlation, 1);
    rig_close(&rig);
}

TEST(a_waiting_fetch_is_answered_when_the_server_stops) { /* B-50 */
    struct rig rig;
    rig_open(&rig, 16, true);
    send_fetch(rig.fd, 1, 1);
    wait_for(&held.watches_seen, 1);
    rig_stop(&rig, WAIT_MS);
    read_answer(rig.fd, &answer);
    CHECK_EQ(answer.correlation, 1);
    CHECK_EQ(atomic_load(&held.reads_seen), 2); /* nothing is kept while it waits */
    expect_end(rig.fd);
    rig_close(&rig);
}

TEST(an_appended_part_answers_its_offsets) { /* D1-20, D1-21 */
    static const uint8_t want[] = {
        0,    0,    0,    1,    0,    1,    't',  0,    0, 0, 1, /* one topic, one partition: */
        0,    0,    0,    0,    0,    0,                         /* index, error */
        0,    0,    0,    0,    0,    0,    0,    7,             /* base offset */
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0,
        0,    0,    0,    0,    0, /* append time, start offset */
        0,    0,    0,    0};      /* throttle */
    struct rig rig;
    rig_open(&rig, 16, true);
    send_produce(rig.fd, 7, 1, 1);
    read_answer(rig.fd, &answer);
    CHECK_EQ(answer.len, sizeof want);
    CHECK_MEM(answer.bytes, want, sizeof want);
    rig_close(&rig);
}

static uint64_t connection_of_produce(int fd) {
    send_produce(fd, 7, 1, 1);
    read_answer(fd, &answer);
    return atomic_load(&held.connection);
}

TEST(an_append_says_which_connection_it_comes_from) { /* G-6 */
    struct rig rig;
    rig_open(&rig, 16, true);
    int other = rig_connect(&rig);
    uint64_t one = connection_of_produce(rig.fd), two = connection_of_produce(other);
    CHECK(one != 0 && two != 0 && one != two);
    CHECK_EQ(connection_of_produce(rig.fd), one);
    close(other);
    int third = rig_connect(&rig);
    uint64_t three = connection_of_produce(third);
    CHECK(three != one && three != two);
    close(third);
    rig_close(&rig);
}

TEST(other_acks_than_those_there_are_refuse_every_partition) { /* D1-2 */
    struct rig rig;
    rig_open(&rig, 16, true);
    send_produce(rig.fd, 7, 1, 2);
    read_answer(rig.fd, &answer);
    CHECK_EQ(be_get(answer.bytes + 15, 2), 21);
    CHECK_EQ(atomic_load(&held.appends_seen), 0);
    rig_close(&rig);
}
