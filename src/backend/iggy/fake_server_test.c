#include "backend/iggy/fake_groups_test.h"
#include "backend/iggy/fake_log_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "iggy/codec.h"
#include "iggy/errors.h"
#include "iggy/login.h"
#include "iggy/tlv.h"
#include "testing/test.h"

#define PATIENCE_S 20
#define ANSWER_MAX ((size_t)1 << 28)
#define SESSION    42
#define FRAME_MAX  ((size_t)IGGY_FRAME_BYTES_MAX)

/* ---- answers ---- */

void *fake_take(size_t size) {
    void *memory = mem_take(size);
    return memory ? memory : mem_take(size);
}

static void write_all(const struct fake_server *f, int fd, const uint8_t *data, size_t len) {
    if (f->silent)
        return;
    for (size_t at = 0; at < len;) {
        ssize_t n = send(fd, data + at, len - at, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* the client has gone */
        at += (size_t)n;
    }
}

static void answer(struct fake_server *f, int conn, const struct iggy_request_header *r, uint32_t code,
                   const void *msg) {
    const struct iggy_command *c = iggy_command_of(r, f->version);
    struct iggy_header h = {.frame = {.kind = IGGY_REPLY},
                            .reply = {.request = r->request, .operation = r->operation}};
    struct wbuf body;
    enum status st;
    if (!iggy_operation_has_result(r->operation))
        h.reply.status = code;
    do { /* again where the test lets an allocation fail: that may be one of ours */
        st = ST_OK;
        wbuf_init(&body, ANSWER_MAX);
        if (iggy_operation_has_result(r->operation))
            st = iggy_reply_begin(r->operation, code, &body);
        if (!st && code == 0 && msg)
            st = iggy_encode(c->answer(), f->version, msg, &body);
        if (st)
            wbuf_release(&body);
    } while (st == ST_NO_MEMORY);
    CHECK_EQ(st, ST_OK);
    h.frame.size = (uint32_t)(IGGY_HEADER_BYTES + body.bytes);
    uint8_t *out = fake_take(h.frame.size);
    iggy_header_encode(&h, out);
    wbuf_flatten(&body, out + IGGY_HEADER_BYTES);
    write_all(f, f->conns[conn].fd, out, h.frame.size);
    mem_free(out);
    wbuf_release(&body);
}

static void evict(struct fake_server *f, int conn, uint8_t reason) {
    uint8_t out[IGGY_HEADER_BYTES];
    struct iggy_header h = {
        .frame = {.kind = IGGY_EVICTION, .size = sizeof out},
        .eviction = {.reason = reason, .protocol_min = f->version, .protocol_max = f->version}};
    iggy_header_encode(&h, out);
    write_all(f, f->conns[conn].fd, out, sizeof out);
}

/* ---- what it knows ---- */

static struct str text(const char *s) {
    return str_of(s);
}

static int stream_find(const struct fake_server *f, struct str name) {
    for (int i = 0; i < FAKE_STREAMS_MAX; i++)
        if (f->streams[i][0] && str_equal(text(f->streams[i]), name))
            return i;
    return -1;
}

static int stream_make(struct fake_server *f, struct str name) {
    for (int i = 0; i < FAKE_STREAMS_MAX; i++)
        if (!f->streams[i][0]) {
            memcpy(f->streams[i], name.ptr, (size_t)name.len);
            return i;
        }
    return -1;
}

static struct fake_topic *topic_find(struct fake_server *f, int stream, struct str name) {
    for (uint32_t i = 0; stream >= 0 && i < f->next_topic; i++)
        if (f->topics[i].there && f->topics[i].stream == (uint32_t)stream &&
            str_equal(text(f->topics[i].name), name))
            return &f->topics[i];
    return NULL;
}

struct fake_topic *fake_topic_of(struct fake_server *f, struct str stream, struct str topic) {
    return topic_find(f, stream_find(f, stream), topic);
}

struct fake_topic *fake_topic_named(struct fake_server *f, const char *name) {
    for (uint32_t i = 0; i < f->next_topic; i++)
        if (f->topics[i].there && strcmp(f->topics[i].name, name) == 0)
            return &f->topics[i];
    fail_msg("no topic %s", name);
    return NULL;
}

static struct fake_topic *topic_make(struct fake_server *f, int stream, struct str name,
                                     uint32_t partitions) {
    CHECK(f->next_topic < FAKE_TOPICS_MAX && partitions <= FAKE_PARTITIONS_MAX);
    struct fake_topic *t = &f->topics[f->next_topic];
    *t = (struct fake_topic){.there = true,
                             .stream = (uint32_t)stream,
                             .id = f->next_topic,
                             .partitions_count = partitions,
                             .created_us = 1000000 + f->next_topic,
                             .incarnation = 100 + f->next_topic};
    memcpy(t->name, name.ptr, (size_t)name.len);
    f->next_topic++;
    return t;
}

/* A number among a topic's options; IGGY_NEVER: not set. */
static uint64_t option_of(const struct fake_topic *t, struct str key) {
    struct tlv_entry e;
    uint64_t value;
    bool found = tlv_find((struct bytes){t->options, t->options_len}, key, &e) && tlv_uint(&e, &value);
    return found && value != 0 ? value : IGGY_NEVER;
}

static void topic_fill(const struct fake_topic *t, struct iggy_topic *out) {
    *out = (struct iggy_topic){.id = t->id,
                               .created_at_us = t->created_us,
                               .partitions_count = t->partitions_count,
                               .message_expiry_us = option_of(t, STR("message_expiry")),
                               .compression = 1,
                               .max_topic_size = option_of(t, STR("max_topic_size")),
                               .name = text(t->name),
                               .options = {t->options, t->options_len}};
}

static void partitions_fill(const struct fake_topic *t, uint64_t message_bytes, struct iggy_partition *out) {
    for (uint32_t i = 0; i < t->partitions_count; i++)
        out[i] = (struct iggy_partition){.id = i,
                                         .segments_count = 1,
                                         .current_offset = t->next_offset[i] ? t->next_offset[i] - 1 : 0,
                                         .messages_count = t->next_offset[i] - t->start[i],
                                         .size_bytes = (t->next_offset[i] - t->start[i]) * message_bytes,
                                         .context = {.incarnation = t->incarnation}};
}

/* ---- commands ---- */

void fake_answer(struct fake_call *c, uint32_t code, const void *msg) {
    answer(c->f, c->conn, c->h, code, msg);
}

void *fake_decoded(struct fake_call *c) {
    const struct iggy_schema *s = c->command->request();
    void *out;
    enum status st = ST_NO_MEMORY;
    while (!(out = arena_take(&c->a, s->size)))
        continue;
    while (st == ST_NO_MEMORY)
        st = iggy_decode(s, c->f->version, c->body, &c->a, out);
    CHECK_EQ(st, ST_OK);
    return out;
}

static void on_login(struct fake_call *c) {
    struct iggy_login login;
    enum status st = iggy_login_decode(c->body, &login);
    if (st == ST_UNSUPPORTED || login.protocol != c->f->version) {
        evict(c->f, c->conn, IGGY_EVICTED_INCOMPATIBLE_PROTOCOL);
        return;
    }
    CHECK_EQ(st, ST_OK);
    if (!str_equal(login.password.password, text(c->f->password))) {
        evict(c->f, c->conn, IGGY_EVICTED_INVALID_CREDENTIALS);
        return;
    }
    struct iggy_login_res res = {
        .session = SESSION + c->f->era, .protocol = c->f->version, .server_version = STR("fake")};
    fake_answer(c, 0, &res);
}

static void on_bind(struct fake_call *c) {
    const struct iggy_bind_session_req *in = fake_decoded(c);
    fake_answer(c, in->session == SESSION + c->f->era ? 0 : IGGY_ERR_STALE_CLIENT, NULL);
}

static void on_cluster(struct fake_call *c) {
    struct iggy_node node = {.name = STR("n"), .ip = STR("127.0.0.1"), .tcp_port = (uint16_t)c->f->port};
    struct iggy_get_cluster_metadata_res res = {.name = STR("c"), .nodes = &node, .nodes_count = 1};
    fake_answer(c, 0, &res);
}

static uint32_t topics_of(struct fake_server *f, int stream, struct iggy_topic *out) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->next_topic; i++)
        if (f->topics[i].there && f->topics[i].stream == (uint32_t)stream)
            topic_fill(&f->topics[i], &out[count++]);
    return count;
}

static void on_get_stream(struct fake_call *c) {
    const struct iggy_stream_req *in = fake_decoded(c);
    struct iggy_topic topics[FAKE_TOPICS_MAX];
    int stream = stream_find(c->f, in->stream.name);
    struct iggy_get_stream_res res = {.found = stream >= 0, .topics = topics};
    if (res.found) {
        res.topics_count = topics_of(c->f, stream, topics);
        res.stream = (struct iggy_stream){.id = (uint32_t)stream,
                                          .created_at_us = 77,
                                          .topics_count = res.topics_count,
                                          .name = in->stream.name};
    }
    fake_answer(c, 0, &res);
}

static void on_create_stream(struct fake_call *c) {
    const struct iggy_create_stream_req *in = fake_decoded(c);
    if (stream_find(c->f, in->name) >= 0) {
        fake_answer(c, IGGY_ERR_STREAM_NAME_ALREADY_EXISTS, NULL);
        return;
    }
    struct iggy_stream res = {.id = (uint32_t)stream_make(c->f, in->name), .name = in->name};
    fake_answer(c, 0, &res);
}

static void on_get_topics(struct fake_call *c) {
    const struct iggy_stream_req *in = fake_decoded(c);
    struct iggy_topic topics[FAKE_TOPICS_MAX];
    struct iggy_get_topics_res res = {.topics = topics};
    int stream = stream_find(c->f, in->stream.name);
    if (stream >= 0)
        res.topics_count = topics_of(c->f, stream, topics);
    fake_answer(c, 0, &res);
}

static void on_get_topic(struct fake_call *c) {
    const struct iggy_topic_req *in = fake_decoded(c);
    const struct fake_topic *t = topic_find(c->f, stream_find(c->f, in->stream.name), in->topic.name);
    struct iggy_partition partitions[FAKE_PARTITIONS_MAX];
    struct iggy_get_topic_res res = {.found = t != NULL, .partitions = partitions};
    if (t) {
        topic_fill(t, &res.topic);
        partitions_fill(t, c->f->message_bytes, partitions);
        res.partitions_count = t->partitions_count;
    }
    fake_answer(c, 0, &res);
}

static void on_create_topic(struct fake_call *c) {
    const struct iggy_create_topic_req *in = fake_decoded(c);
    int stream = stream_find(c->f, in->stream.name);
    if (stream < 0 || topic_find(c->f, stream, in->name)) {
        fake_answer(c, stream < 0 ? IGGY_ERR_STREAM_ID_NOT_FOUND : IGGY_ERR_TOPIC_NAME_ALREADY_EXISTS, NULL);
        return;
    }
    struct fake_topic *t = topic_make(c->f, stream, in->name, in->partitions_count);
    memcpy(t->options, in->options.ptr, (size_t)in->options.len);
    t->options_len = in->options.len;
    struct iggy_partition partitions[FAKE_PARTITIONS_MAX];
    struct iggy_create_topic_res res = {.partitions = partitions, .partitions_count = t->partitions_count};
    topic_fill(t, &res.topic);
    partitions_fill(t, c->f->message_bytes, partitions);
    fake_answer(c, 0, &res);
}

static void on_delete_topic(struct fake_call *c) {
    const struct iggy_topic_req *in = fake_decoded(c);
    struct fake_topic *t = topic_find(c->f, stream_find(c->f, in->stream.name), in->topic.name);
    if (t)
        t->there = false;
    fake_answer(c, t ? 0 : IGGY_ERR_TOPIC_ID_NOT_FOUND, NULL);
    fake_log_changed(c->f);
}

static bool is_reset(const struct iggy_reset_option *reset, uint32_t count, struct str key) {
    for (uint32_t i = 0; i < count; i++)
        if (str_equal(reset[i].key, key))
            return true;
    return false;
}

/* What is set stays, but for what is set anew or taken back. */
static void topic_update(struct fake_topic *t, struct bytes options, const struct iggy_reset_option *reset,
                         uint32_t reset_count) {
    uint8_t merged[sizeof t->options], *at = merged;
    struct bytes old = {t->options, t->options_len};
    struct tlv_entry e, other;
    while (tlv_next(&old, &e) == ST_OK) {
        struct str key = {(const char *)e.key.ptr, e.key.len};
        if (!tlv_find(options, key, &other) && !is_reset(reset, reset_count, key))
            at = tlv_write(at, &e);
    }
    while (tlv_next(&options, &e) == ST_OK)
        at = tlv_write(at, &e);
    t->options_len = (int32_t)(at - merged);
    memcpy(t->options, merged, sizeof merged);
}

static void on_update_topic(struct fake_call *c) { /* 0.11 */
    const struct iggy_update_topic_req *in = fake_decoded(c);
    struct fake_topic *t = topic_find(c->f, stream_find(c->f, in->stream.name), in->topic.name);
    if (t) {
        CHECK(str_equal(in->name, text(t->name)));
        topic_update(t, in->options, NULL, 0);
    }
    fake_answer(c, t ? 0 : IGGY_ERR_TOPIC_ID_NOT_FOUND, NULL);
}

static void on_update_resource(struct fake_call *c) { /* 0.12 */
    const struct iggy_update_resource_req *in = fake_decoded(c);
    struct fake_topic *t = topic_find(c->f, stream_find(c->f, in->stream.name), in->topic.name);
    CHECK_EQ(in->scope, IGGY_RESOURCE_TOPIC);
    if (t)
        topic_update(t, in->options, in->reset, in->reset_count);
    fake_answer(c, t ? 0 : IGGY_ERR_TOPIC_ID_NOT_FOUND, NULL);
}

static void on_create_partitions(struct fake_call *c) {
    const struct iggy_partitions_req *in = fake_decoded(c);
    struct fake_topic *t = topic_find(c->f, stream_find(c->f, in->stream.name), in->topic.name);
    if (t)
        t->partitions_count += in->partitions_count;
    fake_answer(c, t ? 0 : IGGY_ERR_TOPIC_ID_NOT_FOUND, NULL);
}

/* 0: it is the next one, or *repeated */
static uint32_t numbers_check(struct fake_server *f, const struct fake_topic *t, uint32_t partition,
                              const struct iggy_batch *batch, bool *repeated) {
    struct fake_producer *p = f->producers;
    const struct iggy_producer *in = &batch->producer;
    while (p < &f->producers[f->producers_count] &&
           (p->id != in->id || p->topic != t->id || p->partition != partition))
        p++;
    if (p == &f->producers[f->producers_count]) {
        CHECK(f->producers_count < FAKE_PRODUCERS_MAX);
        f->producers_count++;
        *p = (struct fake_producer){.id = in->id, .topic = t->id, .partition = partition};
    }
    for (int i = 0; i < FAKE_REPEATS_MAX; i++)
        if (p->first[i] == in->base_sequence && p->count[i] == batch->messages_count)
            *repeated = true;
    if (*repeated)
        return 0;
    if (in->base_sequence != p->next)
        return IGGY_ERR_PRODUCER_SEQUENCE_OUT_OF_ORDER;
    p->first[p->at] = p->next;
    p->count[p->at] = batch->messages_count;
    p->at = (p->at + 1) % FAKE_REPEATS_MAX;
    p->next += batch->messages_count;
    return 0;
}

static void on_send(struct fake_call *c) {
    struct fake_server *f = c->f;
    const struct iggy_send_messages_req *in = fake_decoded(c);
    struct fake_topic *t = topic_find(f, stream_find(f, in->target.stream.name), in->target.topic.name);
    uint32_t partition = in->target.partitioning.partition_id;
    struct iggy_batch batch;
    struct iggy_messages_iter it;
    struct iggy_message first;
    if (!t || partition >= t->partitions_count) {
        fake_answer(c, IGGY_ERR_RESOURCE_NOT_FOUND, NULL);
        return;
    }
    CHECK_EQ(iggy_batch_read(in->batch, f->version >= IGGY_0_12_0, &batch), ST_OK);
    CHECK_EQ(iggy_batch_check(&batch, true), ST_OK);
    CHECK_EQ(batch.messages_count, in->target.messages_count);
    iggy_messages_init(&it, &batch);
    CHECK_EQ(iggy_messages_next(&it, &first), ST_OK);
    bool repeated = false;
    uint32_t code =
        f->checks_numbers && batch.producer.present ? numbers_check(f, t, partition, &batch, &repeated) : 0;
    if (code || repeated) {
        fake_answer(c, code, NULL);
        return;
    }
    CHECK(f->sends_count < FAKE_SENDS_MAX);
    f->sends[f->sends_count++] = (struct fake_send){.conn = f->conns[c->conn].serial,
                                                    .topic = t->id,
                                                    .partition = partition,
                                                    .messages_count = batch.messages_count,
                                                    .incarnation = c->h->partition_incarnation,
                                                    .producer = batch.producer,
                                                    .first = first.payload.ptr[0]};
    struct iggy_confirmation one = {
        .topic_id = t->id, .partition_id = partition, .base_offset = t->next_offset[partition]};
    struct iggy_send_messages_res res = {
        .offset_known = true, .confirmations = &one, .confirmations_count = 1};
    fake_store(f, t, partition, &batch);
    fake_answer(c, 0, f->forgets_offset ? NULL : &res);
    fake_log_changed(f);
}

static const struct {
    uint32_t code;
    void (*run)(struct fake_call *c);
} commands[] = {
    {IGGY_CMD_login_password, on_login},
    {IGGY_CMD_bind_session, on_bind},
    {IGGY_CMD_get_cluster_metadata, on_cluster},
    {IGGY_CMD_get_stream, on_get_stream},
    {IGGY_CMD_create_stream, on_create_stream},
    {IGGY_CMD_get_topics, on_get_topics},
    {IGGY_CMD_get_topic, on_get_topic},
    {IGGY_CMD_create_topic, on_create_topic},
    {IGGY_CMD_delete_topic, on_delete_topic},
    {IGGY_CMD_update_topic, on_update_topic},
    {IGGY_CMD_update_resource, on_update_resource},
    {IGGY_CMD_create_partitions, on_create_partitions},
    {IGGY_CMD_send_messages, on_send},
    {IGGY_CMD_poll_messages, fake_on_poll},
    {IGGY_CMD_fetch_messages, fake_on_fetch},
    {IGGY_CMD_cancel_deferred_request, fake_on_cancel},
    {IGGY_CMD_create_group, fake_on_create_group},
    {IGGY_CMD_delete_group, fake_on_delete_group},
    {IGGY_CMD_get_group, fake_on_get_group},
    {IGGY_CMD_get_groups, fake_on_get_groups},
    {IGGY_CMD_store_consumer_offset, fake_on_store_offset},
    {IGGY_CMD_get_consumer_offset, fake_on_get_offset},
    {IGGY_CMD_delete_consumer_offset, fake_on_delete_offset},
};

void fake_hang_up(struct fake_server *f, int conn) {
    struct fake_conn *c = &f->conns[conn];
    if (c->fd < 0)
        return;
    close(c->fd);
    mem_free(c->in);
    *c = (struct fake_conn){.fd = -1};
    f->conns_count--;
    for (int i = 0; i < f->held_count; i++)
        if (f->held[i].conn == conn)
            f->held[i].conn = -1;
    for (int i = 0; i < f->waiting_count; i++)
        if (f->waiting[i].conn == conn)
            f->waiting[i].conn = -1;
    pthread_cond_broadcast(&f->changed);
}

static void run(struct fake_server *f, int conn, const struct iggy_request_header *h, struct bytes body,
                bool last) {
    struct fake_call c = {.f = f, .conn = conn, .h = h, .body = body, .last = last};
    c.command = iggy_command_of(h, f->version);
    if (!c.command) { /* a login of a version that it doesn't know */
        evict(f, conn, IGGY_EVICTED_INCOMPATIBLE_PROTOCOL);
        return;
    }
    if (c.command->code == f->fail && f->fail_times > 0) {
        f->fail_times--;
        if (f->fail_code)
            fake_answer(&c, f->fail_code, NULL);
        else
            fake_hang_up(f, conn);
        return;
    }
    arena_init(&c.a, NULL, 0, (size_t)1 << 24);
    void (*fn)(struct fake_call *) = NULL;
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        if (commands[i].code == c.command->code)
            fn = commands[i].run;
    if (fn)
        fn(&c);
    else
        fake_answer(&c, 0, NULL); /* a ping, a farewell */
    arena_release(&c.a);
}

void fake_run(struct fake_server *f, struct fake_held *held, bool last) {
    if (held->conn >= 0)
        run(f, held->conn, &held->header, (struct bytes){held->body, (int32_t)held->body_len}, last);
    mem_free(held->body);
    held->body = NULL;
}

static void take(struct fake_server *f, int conn, const struct iggy_request_header *h, struct bytes body) {
    const struct iggy_command *c = iggy_command_of(h, f->version);
    bool holds = c && f->hold == c->code;
    if (holds) {
        CHECK(f->held_count < FAKE_HELD_MAX);
        struct fake_held *held = &f->held[f->held_count++];
        *held = (struct fake_held){.conn = conn, .header = *h, .body = fake_take((size_t)body.len + 1)};
        held->body_len = (size_t)body.len;
        if (body.len > 0)
            memcpy(held->body, body.ptr, (size_t)body.len);
    }
    if (c && c->code < FAKE_CODES_MAX)
        f->seen[c->code]++;
    if (!holds)
        run(f, conn, h, body, false);
    pthread_cond_broadcast(&f->changed);
}

/* ---- its thread ---- */

static void conn_read(struct fake_server *f, int conn) {
    struct fake_conn *c = &f->conns[conn];
    if (c->in_room - c->in_len < 65536) {
        c->in_room = c->in_room * 2 + 65536;
        uint8_t *in = mem_grow(c->in, c->in_room);
        c->in = in ? in : mem_grow(c->in, c->in_room);
    }
    ssize_t n = recv(c->fd, c->in + c->in_len, c->in_room - c->in_len, 0);
    if (n <= 0) {
        fake_hang_up(f, conn);
        return;
    }
    c->in_len += (size_t)n;
    struct rbuf in = {c->in, c->in + c->in_len};
    struct iggy_header h;
    struct bytes body;
    while (iggy_frame_next(&in, FRAME_MAX, &h, &body) == ST_OK) {
        take(f, conn, &h.request, body);
        if (c->fd < 0)
            return;
    }
    c->in_len = rbuf_left(&in);
    memmove(c->in, in.at, c->in_len);
}

static void conn_accept(struct fake_server *f) {
    int fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    for (int i = 0; fd >= 0 && !f->shut && i < FAKE_CONNS_MAX; i++) {
        if (f->conns[i].fd >= 0)
            continue;
        f->conns[i] = (struct fake_conn){.fd = fd, .serial = ++f->serials};
        f->conns_count++;
        pthread_cond_broadcast(&f->changed);
        return;
    }
    close(fd);
}

static void *fake_main(void *arg) {
    struct fake_server *f = arg;
    bool ending = false;
    while (!ending) {
        struct pollfd fds[FAKE_CONNS_MAX + 2];
        fds[0] = (struct pollfd){.fd = f->listen_fd, .events = POLLIN};
        fds[1] = (struct pollfd){.fd = f->wake[0], .events = POLLIN};
        pthread_mutex_lock(&f->lock);
        for (int i = 0; i < FAKE_CONNS_MAX; i++)
            fds[i + 2] = (struct pollfd){.fd = f->conns[i].fd, .events = POLLIN};
        int timeout_ms = fake_log_timeout_ms(f);
        pthread_mutex_unlock(&f->lock);
        if (poll(fds, COUNT_OF(fds), timeout_ms) < 0)
            continue;
        pthread_mutex_lock(&f->lock);
        fake_log_expire(f);
        if (fds[0].revents)
            conn_accept(f);
        for (int i = 0; i < FAKE_CONNS_MAX; i++)
            if (fds[i + 2].revents && f->conns[i].fd == fds[i + 2].fd)
                conn_read(f, i);
        ending = f->ending;
        pthread_mutex_unlock(&f->lock);
    }
    return NULL;
}

/* ---- for the test ---- */

void fake_lock(struct fake_server *f) {
    pthread_mutex_lock(&f->lock);
}

void fake_unlock(struct fake_server *f) {
    pthread_mutex_unlock(&f->lock);
}

void fake_start(struct fake_server *f, uint32_t version) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    memset(f, 0, sizeof *f);
    f->version = version;
    f->password = "secret";
    f->message_bytes = 100;
    f->now_us = 1700000000000000;
    for (int i = 0; i < FAKE_CONNS_MAX; i++)
        f->conns[i].fd = -1;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    f->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(f->listen_fd >= 0);
    CHECK_EQ(bind(f->listen_fd, (const struct sockaddr *)&at, len), 0);
    CHECK_EQ(listen(f->listen_fd, 32), 0);
    CHECK_EQ(getsockname(f->listen_fd, (struct sockaddr *)&at, &len), 0);
    f->port = ntohs(at.sin_port);
    CHECK_EQ(pipe(f->wake), 0);
    CHECK_EQ(pthread_create(&f->thread, NULL, fake_main, f), 0);
}

void fake_stop(struct fake_server *f) {
    fake_lock(f);
    f->ending = true;
    fake_unlock(f);
    CHECK_EQ(write(f->wake[1], "", 1), 1);
    pthread_join(f->thread, NULL);
    for (int i = 0; i < FAKE_CONNS_MAX; i++)
        fake_hang_up(f, i);
    for (int i = 0; i < f->held_count; i++)
        mem_free(f->held[i].body);
    fake_log_release(f);
    close(f->listen_fd);
    close(f->wake[0]);
    close(f->wake[1]);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->changed);
}

void fake_add_topic(struct fake_server *f, const char *stream, const char *name, uint32_t partitions_count) {
    fake_lock(f);
    int s = stream_find(f, text(stream));
    topic_make(f, s >= 0 ? s : stream_make(f, text(stream)), text(name), partitions_count);
    fake_unlock(f);
}

void fake_remove_topic(struct fake_server *f, const char *name) {
    fake_lock(f);
    for (uint32_t i = 0; i < f->next_topic; i++)
        if (strcmp(f->topics[i].name, name) == 0)
            f->topics[i].there = false;
    fake_log_changed(f);
    fake_unlock(f);
}

void fake_refuse(struct fake_server *f, uint32_t command, uint32_t code, int times) {
    fake_lock(f);
    f->fail = command;
    f->fail_code = code;
    f->fail_times = times;
    fake_unlock(f);
}

void fake_hold(struct fake_server *f, uint32_t command) {
    fake_lock(f);
    f->hold = command;
    fake_unlock(f);
}

void fake_decide(struct fake_server *f, int held, enum fake_fate fate, uint32_t code) {
    struct fake_held h = f->held[held];
    memmove(&f->held[held], &f->held[held + 1], (size_t)(--f->held_count - held) * sizeof h);
    if (fate != FAKE_REFUSED) {
        f->silent = fate != FAKE_DONE;
        fake_run(f, &h, false);
        f->silent = false;
    }
    if ((fate == FAKE_REFUSED || fate == FAKE_UNCERTAIN) && h.conn >= 0)
        answer(f, h.conn, &h.header, code, NULL);
    mem_free(h.body);
}

void fake_let_go(struct fake_server *f) {
    fake_lock(f);
    f->hold = 0;
    while (f->held_count > 0)
        fake_decide(f, 0, FAKE_DONE, 0);
    fake_unlock(f);
}

void fake_let_go_last(struct fake_server *f) {
    fake_lock(f);
    CHECK(f->held_count > 0);
    fake_decide(f, f->held_count - 1, FAKE_DONE, 0);
    fake_unlock(f);
}

void fake_wait_for_change(struct fake_server *f) {
    struct timespec until = {.tv_sec = (time_t)(clock_wall_ms() / 1000 + PATIENCE_S)};
    CHECK(pthread_cond_timedwait(&f->changed, &f->lock, &until) != ETIMEDOUT);
}

void fake_expect(struct fake_server *f, uint32_t command, int count) {
    fake_lock(f);
    while (f->seen[command] < count)
        fake_wait_for_change(f);
    fake_unlock(f);
}

int fake_seen(struct fake_server *f, uint32_t command) {
    fake_lock(f);
    int seen = f->seen[command];
    fake_unlock(f);
    return seen;
}

void fake_expect_conns(struct fake_server *f, int count) {
    fake_lock(f);
    while (f->conns_count != count)
        fake_wait_for_change(f);
    fake_unlock(f);
}
