/* Request numbers: what a client sends again is done once, and answered as the first time; also over another connection (0.12). */
#include "base/clock.h"
#include "base/mem.h"
#include "iggy/batch.h"
#include "iggy_server/client.h"
#include "iggy_server/peer_test.h"
#include "iggy_server/session_memory.h"
#include "testing/test.h"

/* Logged in, with the stream "s" and the topic "t" of one partition. */
static void open_ready(struct peer *p, struct rig *rig, uint32_t version) {
    const struct iggy_create_stream_req stream = {.name = STR("s")};
    const struct iggy_create_topic_req topic = {
        .stream = iggy_by_name(STR("s")), .partitions_count = 1, .name = STR("t")};
    rig_start(rig, 0, 0);
    peer_open(p, rig, version, 1);
    peer_log_in(p);
    CHECK_EQ(peer_call(p, IGGY_CMD_create_stream, &stream, NULL), 0);
    CHECK_EQ(peer_call(p, IGGY_CMD_create_topic, &topic, NULL), 0);
}

static void close_ready(struct peer *p, struct rig *rig) {
    peer_close(p);
    rig_stop(rig);
}

/* One message to a topic of "s" under a number. The code. */
static uint32_t send_one(struct peer *p, const char *topic, uint64_t number) {
    struct iggy_batch_builder b = {0};
    struct bytes batch;
    uint8_t *body;
    CHECK_EQ(iggy_batch_builder_init(&b, 1000, 0), ST_OK);
    CHECK_EQ(iggy_batch_builder_add(&b, NULL, 1000, 3, 0, &body), ST_OK);
    memcpy(body, "abc", 3);
    iggy_batch_builder_finish(&b, &batch);
    const struct iggy_send_messages_req in = {.target = {.stream = iggy_by_name(STR("s")),
                                                         .topic = iggy_by_name(str_of(topic)),
                                                         .partitioning = {.kind = IGGY_PARTITION_ID},
                                                         .messages_count = 1},
                                              .batch = batch};
    peer_send(p, IGGY_CMD_send_messages, number, &in);
    iggy_batch_builder_release(&b);
    CHECK(peer_read(p));
    CHECK_EQ(p->h.reply.request, number);
    return p->code;
}

static uint64_t offset_of_last(struct peer *p) {
    struct iggy_send_messages_res res;
    peer_decode(p, IGGY_CMD_send_messages, &res);
    CHECK(res.offset_known);
    CHECK_EQ(res.confirmations_count, 1);
    return res.confirmations[0].base_offset;
}

/* How many messages there are, as get_topic tells. */
static uint64_t messages_in(struct peer *p) {
    const struct iggy_topic_req ask = {.stream = iggy_by_name(STR("s")), .topic = iggy_by_name(STR("t"))};
    struct iggy_get_topic_res res;
    CHECK_EQ(peer_call(p, IGGY_CMD_get_topic, &ask, &res), 0);
    return res.topic.messages_count;
}

/* ---- changes ---- */

static uint32_t create_stream(struct peer *p, const char *name, uint64_t number) {
    const struct iggy_create_stream_req in = {.name = str_of(name)};
    peer_send(p, IGGY_CMD_create_stream, number, &in);
    CHECK(peer_read(p));
    CHECK_EQ(p->h.reply.request, number);
    return p->code;
}

TEST(a_change_that_comes_again_is_answered_byte_for_byte) {
    static const uint32_t versions[] = {IGGY_0_11, IGGY_0_12_2};
    for (size_t v = 0; v < COUNT_OF(versions); v++) {
        struct rig rig;
        struct peer p;
        rig_start(&rig, 0, 0);
        peer_open(&p, &rig, versions[v], 1);
        peer_log_in(&p);
        CHECK_EQ(create_stream(&p, "a", 5), 0);
        size_t len = p.h.frame.size;
        uint8_t *first = mem_take(len);
        CHECK(first);
        memcpy(first, p.frame, len);
        CHECK_EQ(create_stream(&p, "a", 5), 0);
        CHECK_EQ(p.h.frame.size, len);
        CHECK_MEM(p.frame, first, len);
        CHECK_EQ(create_stream(&p, "a", 6), IGGY_ERR_STREAM_NAME_ALREADY_EXISTS);     /* it was made once */
        CHECK_EQ(create_stream(&p, "other", 6), IGGY_ERR_STREAM_NAME_ALREADY_EXISTS); /* so is a refusal */
        mem_free(first);
        close_ready(&p, &rig);
    }
}

TEST(the_last_five_changes_are_remembered) {
    struct rig rig;
    struct peer p;
    char name[8];
    rig_start(&rig, 0, 0);
    peer_open(&p, &rig, IGGY_0_12_2, 1);
    peer_log_in(&p);
    for (uint64_t n = 11; n <= 16; n++) {
        snprintf(name, sizeof name, "s%d", (int)n);
        CHECK_EQ(create_stream(&p, name, n), 0);
    }
    CHECK_EQ(create_stream(&p, "x", 11), IGGY_ERR_REQUEST_ALREADY_APPLIED);
    CHECK_EQ(p.h.reply.status, 0); /* it stands in the result section */
    CHECK_EQ(create_stream(&p, "x", 3), IGGY_ERR_REQUEST_ALREADY_APPLIED);
    for (uint64_t n = 12; n <= 16; n++)
        CHECK_EQ(create_stream(&p, "x", n), 0);
    close_ready(&p, &rig);
}

TEST(a_number_whose_body_was_unreadable_is_still_good) {
    struct rig rig;
    struct peer p;
    rig_start(&rig, 0, 0);
    peer_open(&p, &rig, IGGY_0_11, 1);
    peer_log_in(&p);
    peer_send_body(&p, IGGY_CMD_create_stream, 5, (struct bytes){(const uint8_t *)"\x09\x09", 2});
    CHECK(peer_read(&p));
    CHECK_EQ(p.code, IGGY_ERR_INVALID_COMMAND);
    CHECK_EQ(create_stream(&p, "a", 5), 0);
    close_ready(&p, &rig);
}

/* ---- sends ---- */

TEST(a_send_that_comes_again_is_stored_once) {
    struct rig rig;
    struct peer p;
    open_ready(&p, &rig, IGGY_0_12_2);
    CHECK_EQ(send_one(&p, "t", 50), 0);
    CHECK_EQ(send_one(&p, "t", 51), 0);
    CHECK_EQ(offset_of_last(&p), 1);
    CHECK_EQ(send_one(&p, "t", 50), 0);
    CHECK_EQ(offset_of_last(&p), 0);
    p.number = 60;
    CHECK_EQ(messages_in(&p), 2);
    close_ready(&p, &rig);
}

/* 0.11 gives the answer away: stored, offset unknown. */
TEST(a_0_11_send_that_comes_again_is_answered_empty) {
    struct rig rig;
    struct peer p;
    open_ready(&p, &rig, IGGY_0_11);
    CHECK_EQ(send_one(&p, "t", 50), 0);
    CHECK_EQ(offset_of_last(&p), 0);
    CHECK_EQ(send_one(&p, "t", 50), 0);
    CHECK_EQ(p.body.len, 0);
    p.number = 60;
    CHECK_EQ(messages_in(&p), 1);
    close_ready(&p, &rig);
}

TEST(a_send_that_was_refused_may_come_again) {
    struct rig rig;
    struct peer p;
    const struct iggy_create_topic_req topic = {
        .stream = iggy_by_name(STR("s")), .partitions_count = 1, .name = STR("later")};
    open_ready(&p, &rig, IGGY_0_12_2);
    CHECK_EQ(send_one(&p, "later", 50), IGGY_ERR_RESOURCE_NOT_FOUND);
    p.number = 50;
    CHECK_EQ(peer_call(&p, IGGY_CMD_create_topic, &topic, NULL), 0);
    CHECK_EQ(send_one(&p, "later", 50), 0);
    CHECK_EQ(offset_of_last(&p), 0);
    close_ready(&p, &rig);
}

TEST(a_number_from_before_the_last_128_sends_is_too_old) {
    struct rig rig;
    struct peer p;
    open_ready(&p, &rig, IGGY_0_12_2);
    for (uint64_t n = 100; n < 100 + SESSION_SENDS + 1; n++)
        CHECK_EQ(send_one(&p, "t", n), 0);
    CHECK_EQ(send_one(&p, "t", 100), IGGY_ERR_REQUEST_TOO_OLD);
    CHECK_EQ(send_one(&p, "t", 7), IGGY_ERR_REQUEST_TOO_OLD);
    CHECK_EQ(send_one(&p, "t", 101), 0);
    CHECK_EQ(offset_of_last(&p), 1);
    p.number = 500;
    CHECK_EQ(messages_in(&p), SESSION_SENDS + 1);
    close_ready(&p, &rig);
}

/* ---- over another connection ---- */

static void send_bind(struct peer *p, uint64_t session) {
    const struct iggy_bind_session_req in = {
        .client = {.protocol = p->version, .sdk_name = STR("test"), .sdk_version = STR("1")},
        .client_id = p->id,
        .session = session,
        .bind_secret = p->secret};
    peer_send(p, IGGY_CMD_bind_session, ++p->number, &in);
}

static void reconnect(struct peer *p, const struct rig *rig) {
    struct peer before = *p;
    peer_close(&before);
    peer_open(p, rig, before.version, 1);
    p->secret = before.secret;
    p->session = before.session;
    p->number = before.number;
}

TEST(a_client_takes_its_session_along) {
    struct rig rig;
    struct peer p;
    struct iggy_login_res res;
    open_ready(&p, &rig, IGGY_0_12_2);
    CHECK_EQ(send_one(&p, "t", 50), 0);
    CHECK_EQ(create_stream(&p, "made", 51), 0);
    p.number = 51;
    for (int i = 0; i < 2; i++) {
        reconnect(&p, &rig);
        send_bind(&p, i == 0 ? p.session : 0);
        CHECK(peer_read(&p));
        CHECK_EQ(p.h.frame.kind, IGGY_REPLY);
        CHECK_EQ(p.code, 0);
        peer_decode(&p, IGGY_CMD_bind_session, &res);
        CHECK_EQ(res.session, p.session);
        CHECK_EQ(res.user_id, 0);
        CHECK_EQ(res.protocol, IGGY_0_12_2);
    }
    CHECK_EQ(send_one(&p, "t", 50), 0);
    CHECK_EQ(offset_of_last(&p), 0);
    CHECK_EQ(create_stream(&p, "made", 51), 0);
    CHECK_EQ(send_one(&p, "t", 60), 0);
    CHECK_EQ(offset_of_last(&p), 1);
    close_ready(&p, &rig);
}

TEST(only_who_has_the_secret_takes_a_session_along) {
    struct rig rig;
    struct peer p;
    open_ready(&p, &rig, IGGY_0_12_2);
    reconnect(&p, &rig);
    p.secret.b[31] ^= 1;
    send_bind(&p, p.session);
    CHECK_EQ(peer_eviction(&p), IGGY_EVICTED_NO_SESSION);
    p.secret.b[31] ^= 1;
    send_bind(&p, p.session + 1);
    CHECK_EQ(peer_eviction(&p), IGGY_EVICTED_NO_SESSION);
    p.id.b[9] ^= 1;
    send_bind(&p, p.session);
    CHECK_EQ(peer_eviction(&p), IGGY_EVICTED_NO_SESSION);
    p.id.b[9] ^= 1;
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_me, NULL, NULL), IGGY_ERR_UNAUTHENTICATED);
    send_bind(&p, p.session);
    CHECK(peer_read(&p));
    CHECK_EQ(p.code, 0);
    close_ready(&p, &rig);
}

TEST(a_session_that_was_taken_along_is_gone_where_it_was) {
    struct rig rig;
    struct peer p, other;
    open_ready(&p, &rig, IGGY_0_12_2);
    peer_open(&other, &rig, IGGY_0_12_2, 1);
    send_bind(&other, p.session);
    CHECK(peer_read(&other));
    CHECK_EQ(other.code, 0);
    other.session = p.session;
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_me, NULL, NULL), IGGY_ERR_UNAUTHENTICATED);
    CHECK_EQ(peer_call(&other, IGGY_CMD_get_me, NULL, NULL), 0);
    peer_close(&other);
    close_ready(&p, &rig);
}

/* Until the server has seen that a connection is closed: only so many are still there. */
static void wait_for_clients(struct peer *p, uint32_t count) {
    struct iggy_get_clients_res all;
    do
        CHECK_EQ(peer_call(p, IGGY_CMD_get_clients, NULL, &all), 0);
    while (all.clients_count != count);
}

TEST(a_0_11_session_ends_with_its_connection) {
    struct rig rig;
    struct peer p, other;
    open_ready(&p, &rig, IGGY_0_12_2);
    peer_open(&other, &rig, IGGY_0_11, 2);
    peer_log_in(&other);
    uint64_t session = other.session;
    wait_for_clients(&p, 2);
    peer_close(&other);
    wait_for_clients(&p, 1);
    peer_open(&other, &rig, IGGY_0_12_2, 2);
    other.secret = (struct iggy_secret){{0}}; /* a 0.11 login brings none */
    send_bind(&other, session);
    CHECK_EQ(peer_eviction(&other), IGGY_EVICTED_NO_SESSION);
    peer_close(&other);
    close_ready(&p, &rig);
}

/* ---- groups, and time ---- */

static const struct iggy_group_req group_req = {.stream = {.kind = IGGY_BY_NAME, .name = {"s", 1}},
                                                .topic = {.kind = IGGY_BY_NAME, .name = {"t", 1}},
                                                .group = {.kind = IGGY_BY_NAME, .name = {"g", 1}}};

static void join(struct peer *p) {
    CHECK_EQ(peer_call(p, IGGY_CMD_join_group, &group_req, NULL), 0);
}

static void make_group(struct peer *p) {
    const struct iggy_create_group_req create = {
        .stream = iggy_by_name(STR("s")), .topic = iggy_by_name(STR("t")), .name = STR("g")};
    CHECK_EQ(peer_call(p, IGGY_CMD_create_group, &create, NULL), 0);
}

static uint32_t members(struct peer *p) {
    struct iggy_get_group_res res;
    CHECK_EQ(peer_call(p, IGGY_CMD_get_group, &group_req, &res), 0);
    CHECK(res.found);
    return res.group.members_count;
}

TEST(places_in_groups_end_at_once_with_0_11_and_later_with_0_12) {
    struct rig rig;
    struct peer p, old, new;
    open_ready(&p, &rig, IGGY_0_12_2);
    make_group(&p);
    peer_open(&old, &rig, IGGY_0_11, 2);
    peer_open(&new, &rig, IGGY_0_12_2, 3);
    peer_log_in(&old);
    peer_log_in(&new);
    join(&old);
    join(&new);
    CHECK_EQ(members(&p), 2);
    peer_close(&old);
    peer_close(&new);
    wait_for_clients(&p, 1);
    CHECK_EQ(members(&p), 1);

    struct sessions *s = rig.server->sessions;
    int64_t now_ms = clock_ms();
    sessions_sweep(s, now_ms + SESSIONS_MEMBER_MS - 1000);
    CHECK_EQ(members(&p), 1);
    sessions_sweep(s, now_ms + SESSIONS_MEMBER_MS + 1000);
    CHECK_EQ(members(&p), 0);
    sessions_sweep(s, now_ms + SESSIONS_KEPT_MS - 1000);
    uint64_t session = new.session;
    peer_open(&new, &rig, IGGY_0_12_2, 3);
    send_bind(&new, session); /* it is still there, without its place */
    CHECK(peer_read(&new));
    CHECK_EQ(new.h.frame.kind, IGGY_REPLY);
    peer_close(&new);
    wait_for_clients(&p, 1);
    sessions_sweep(s, clock_ms() + SESSIONS_KEPT_MS + 1000);
    peer_open(&new, &rig, IGGY_0_12_2, 3);
    send_bind(&new, session);
    CHECK_EQ(peer_eviction(&new), IGGY_EVICTED_NO_SESSION);
    peer_close(&new);
    close_ready(&p, &rig);
}

TEST(the_oldest_session_without_a_connection_goes_first) {
    struct rig rig;
    rig_start(&rig, 0, 0);
    struct sessions *s = rig.server->sessions;
    struct session *session;
    struct session_login login = {.version = IGGY_0_12_2, .address = "here"};
    for (uint32_t i = 0; i <= SESSIONS_MAX; i++) {
        login.client_number = 1000 + i;
        memcpy(login.client_id.b, &i, sizeof i);
        login.client_id.b[7] = 1;
        CHECK_EQ(session_log_in(s, &login, &session), ST_OK);
        session_leave(s, session, login.client_number, clock_ms());
        session_unref(session);
    }
    memset(login.client_id.b, 0, 4);
    CHECK_EQ(session_bind(s, &login, 0, &session), ST_NOT_FOUND);
    login.client_id.b[0] = 1;
    CHECK_EQ(session_bind(s, &login, 0, &session), ST_OK);
    session_unref(session);
    CHECK_EQ(sessions_connected(s), 1);
    rig_stop(&rig);
}

TEST(a_client_id_is_the_users_who_has_it) {
    struct rig rig;
    rig_start(&rig, 0, 0);
    struct sessions *s = rig.server->sessions;
    struct session *mine, *other;
    struct session_login login = {
        .client_id = {{1}}, .user_id = 1, .version = IGGY_0_12_2, .client_number = 1000, .address = ""};
    CHECK_EQ(session_log_in(s, &login, &mine), ST_OK);
    login.user_id = 2;
    login.client_number = 1001;
    CHECK_EQ(session_log_in(s, &login, &other), ST_DENIED);
    CHECK(session_is_of(mine, 1000));
    session_unref(mine);
    rig_stop(&rig);
}

struct silence {
    struct iggy_loop *here;
    int64_t after_ms;
};

static void look_at_silence(void *arg) {
    const struct silence *s = arg;
    for (struct link *l = s->here->clients.next; l != &s->here->clients; l = l->next) {
        struct client *c = container_of(l, struct client, link);
        client_check_silence(c, c->heard_ms + s->after_ms);
    }
}

static void all_silent(struct rig *rig, int64_t after_ms) {
    for (int i = 0; i < RIG_LOOPS; i++) {
        struct silence s = {&rig->server->per_loop[i], after_ms};
        rig_call(rig, i, look_at_silence, &s);
    }
}

TEST(a_silent_member_is_evicted_and_a_silent_client_is_not) {
    struct rig rig;
    struct peer p, member;
    open_ready(&p, &rig, IGGY_0_11);
    make_group(&p);
    peer_open(&member, &rig, IGGY_0_11, 2);
    peer_log_in(&member);
    join(&member);
    all_silent(&rig, CLIENT_SILENT_MS - 1);
    CHECK_EQ(members(&p), 1);
    CHECK_EQ(peer_call(&member, IGGY_CMD_get_me, NULL, NULL), 0);
    all_silent(&rig, CLIENT_SILENT_MS);
    CHECK_EQ(peer_eviction(&member), IGGY_EVICTED_STALE_CLIENT);
    CHECK_EQ(peer_call(&member, IGGY_CMD_get_me, NULL, NULL), IGGY_ERR_UNAUTHENTICATED);
    CHECK_EQ(members(&p), 0);
    peer_close(&member);
    close_ready(&p, &rig);
}

/* ---- what a session remembers, alone ---- */

static enum session_verdict begin(struct session_memory *m, enum iggy_plane plane, uint64_t number,
                                  uint32_t *code_out) {
    enum session_verdict verdict;
    struct session_answer answer = {0};
    enum status st = plane == IGGY_PLANE_METADATA ? memory_begin_change(m, number, &verdict, &answer)
                                                  : memory_begin_send(m, number, &verdict, &answer);
    CHECK_EQ(st, ST_OK);
    mem_free(answer.reply);
    *code_out = answer.code;
    return verdict;
}

TEST(what_is_under_way_is_not_begun_again) {
    static const enum iggy_plane planes[] = {IGGY_PLANE_METADATA, IGGY_PLANE_PARTITION};
    _Atomic int64_t bytes = 0;
    struct session_memory m;
    uint32_t code;
    session_memory_init(&m, &bytes);
    for (size_t i = 0; i < COUNT_OF(planes); i++) {
        CHECK_EQ(begin(&m, planes[i], 9, &code), SESSION_GO);
        CHECK_EQ(begin(&m, planes[i], 9, &code), SESSION_REFUSE);
        CHECK_EQ(code, IGGY_ERR_TRANSIENT_NOT_COMMITTED);
    }
    memory_end_change(&m, 9, false, NULL); /* nothing came of them */
    memory_end_send(&m, 9, false, NULL);
    for (size_t i = 0; i < COUNT_OF(planes); i++)
        CHECK_EQ(begin(&m, planes[i], 9, &code), SESSION_GO);
    session_memory_release(&m);
}

TEST(sends_under_way_are_never_forgotten) {
    _Atomic int64_t bytes = 0;
    struct session_memory m;
    uint32_t code;
    session_memory_init(&m, &bytes);
    for (uint64_t n = 1; n <= SENDS_ROOM; n++)
        CHECK_EQ(begin(&m, IGGY_PLANE_PARTITION, n, &code), SESSION_GO);
    CHECK_EQ(begin(&m, IGGY_PLANE_PARTITION, SENDS_ROOM + 1, &code), SESSION_REFUSE);
    CHECK_EQ(code, IGGY_ERR_TRANSIENT_NOT_ACCEPTED);
    for (uint64_t n = 1; n <= SENDS_ROOM; n++) {
        CHECK_EQ(begin(&m, IGGY_PLANE_PARTITION, n, &code), SESSION_REFUSE);
        CHECK_EQ(code, IGGY_ERR_TRANSIENT_NOT_COMMITTED);
    }
    for (uint64_t n = 1; n <= SENDS_ROOM; n++)
        memory_end_send(&m, n, true, NULL);
    CHECK_EQ(begin(&m, IGGY_PLANE_PARTITION, SENDS_ROOM + 1, &code), SESSION_GO);
    CHECK_EQ(begin(&m, IGGY_PLANE_PARTITION, SENDS_ROOM, &code), SESSION_REPEAT);
    session_memory_release(&m);
}

/* A reply that is too large for all that is kept is forgotten, its number is not. */
TEST(kept_replies_take_so_much_and_no_more) {
    _Atomic int64_t bytes = SESSIONS_REPLIES_MAX - 10;
    struct session_memory m;
    struct wbuf reply;
    uint32_t code;
    session_memory_init(&m, &bytes);
    wbuf_init(&reply, 100);
    CHECK_EQ(wbuf_put(&reply, "0123456789", 10), ST_OK);
    for (uint64_t n = 1; n <= 2; n++) {
        CHECK_EQ(begin(&m, IGGY_PLANE_METADATA, n, &code), SESSION_GO);
        memory_end_change(&m, n, true, &reply);
    }
    CHECK_EQ(begin(&m, IGGY_PLANE_METADATA, 1, &code), SESSION_REPEAT);
    CHECK_EQ(begin(&m, IGGY_PLANE_METADATA, 2, &code), SESSION_REFUSE);
    CHECK_EQ(code, IGGY_ERR_REQUEST_ALREADY_APPLIED);
    CHECK_EQ(bytes, SESSIONS_REPLIES_MAX);
    session_memory_release(&m);
    CHECK_EQ(bytes, SESSIONS_REPLIES_MAX - 10);
    wbuf_release(&reply);
}

TEST_OOM(a_session_without_memory_is_no_session) {
    _Atomic int64_t bytes = 0;
    struct sessions *s = NULL;
    struct session *session = NULL;
    struct iggy_server none = {0};
    const struct session_login login = {
        .client_id = {{1}}, .version = IGGY_0_12_2, .client_number = 1, .address = ""};
    struct session_memory m;
    enum session_verdict verdict;
    struct session_answer answer;
    session_memory_init(&m, &bytes);
    if (memory_begin_send(&m, 1, &verdict, &answer) == ST_OK)
        CHECK_EQ(verdict, SESSION_GO);
    session_memory_release(&m);
    if (sessions_new(&none, 1, &s))
        return;
    if (session_log_in(s, &login, &session) == ST_OK)
        session_unref(session);
    sessions_free(s);
}
