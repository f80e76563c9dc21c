/*
 * What Iggy clients send, from the frame to the reply: the whole listener but for its sockets, on a log in a folder that goes with the
 * process, with loop, work pool, users and groups as in the program. Two connections; what comes out must be frames that a client can read,
 * every request must end, and nothing may be left of a connection that has ended.
 *
 * An input: a byte for each connection (its version by the lowest two bits, by the next two who is logged in: root, a user without any
 * permission, or nobody), then frames of a header of 6 bytes and a body:
 *   0  flags: 1 of the second connection, 2 with the number of the last request, 4 the body is a whole frame, 8 with the body's checksum
 *   1  operation   2  code, u16   4  length of the body, u16
 * Passwords are not hashed and nothing is synced, so that it is quick. Topics and users are made anew after an input that has changed them.
 */
#include <argon2.h>
#include <ftw.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/store/store_backend.h"
#include "base/le.h"
#include "base/logging.h"
#include "base/mem.h"
#include "iggy/batch.h"
#include "iggy/codec.h"
#include "iggy_server/client.h"
#include "iggy_server/iggy_server.h"
#include "net/listener.h"
#include "net/loop.h"
#include "net/work.h"

#define CONNS            2
#define ITEM_BYTES       6
#define ROOT             "iggy"
#define NOBODY           "nobody"
#define STREAM           "hostile"
#define TOPICS           2
#define INPUTS_A_WORLD   2048 /* then the topics are made anew: offsets and messages add up */
#define DECODED_MAX      ((size_t)64 << 20)
#define MESSAGES_A_BATCH 3

enum item_flag { ITEM_SECOND = 1, ITEM_SAME_NUMBER = 2, ITEM_RAW = 4, ITEM_CHECKSUM = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t get16(const uint8_t *at) {
    return (uint32_t)(at[0] | at[1] << 8);
}

static void require(bool claim) {
    if (!claim)
        abort();
}

/* ---- the world ---- */

static struct {
    char dir[64];
    struct loop *loop;
    struct backend *backend;
    struct store *store;
    struct users *users;
    struct budget *budget;
    struct iggy_server *server;
    uint32_t nobody;
    int inputs;
} world;

/* One record, uncompressed, as a Kafka client sends it. */
static const uint8_t kafka_batch[] = {
    0,    0,    0,    0,    0,    0,    0,    0, 0,    0, 0, 0x3a, 0xff, 0xff, 0xff, 0xff, 2,    0x54,
    0x6d, 0xc5, 0x52, 0,    0,    0,    0,    0, 0,    0, 0, 1,    0x8b, 0xcf, 0xe6, 0x2d, 0x1c, 0,
    0,    1,    0x8b, 0xcf, 0xe6, 0x2d, 0x1c, 0, 0,    0, 0, 0,    0,    0,    4,    0x19, 0,    3,
    0,    0,    0,    3,    0,    0,    0,    1, 0x10, 0, 0, 0,    1,    4,    0x91, 0x17, 0};

static void add_messages(struct partition *p) {
    struct iggy_batch_builder builder = {0};
    struct bytes batch;
    uint8_t *body;
    require(!iggy_batch_builder_init(&builder, 1, 1024));
    for (int i = 0; i < MESSAGES_A_BATCH; i++) {
        require(!iggy_batch_builder_add(&builder, NULL, 1, 5, 0, &body));
        memcpy(body, "hello", 5);
    }
    iggy_batch_builder_finish(&builder, &batch);
    const struct store_batch stored = {
        .payload = batch, .records_count = MESSAGES_A_BATCH, .format = STORE_FORMAT_IGGY};
    require(!partition_append(p, &stored, 1));
    iggy_batch_builder_release(&builder);
}

static void add_record(struct partition *p) {
    const struct store_batch stored = {
        .payload = {kafka_batch, sizeof kafka_batch}, .records_count = 1, .format = STORE_FORMAT_KAFKA};
    require(!partition_append(p, &stored, 1));
}

static void world_add_topic(const char *name, void (*fill)(struct partition *p)) {
    struct topic *t;
    const struct store_topic_new want = {.stream = STR(STREAM), .name = str_of(name), .partitions_count = 2};
    require(!store_topic_create(world.store, &want, &t));
    fill(topic_partition(t, 0));
    topic_unref(t);
}

static void world_add_nobody(void) {
    struct iggy_create_user_req in = {
        .username = STR(NOBODY), .password = STR("secret"), .status = IGGY_USER_ACTIVE};
    require(users_create(world.users, &in, &world.nobody) == 0);
}

static void world_empty(void) {
    struct topic **topics;
    struct stream_info *streams;
    int32_t count;
    require(!store_topics_in(world.store, UINT32_MAX, &topics, &count));
    for (int32_t i = 0; i < count; i++) {
        const struct topic_info *info = topic_info(topics[i]);
        groups_forget_topic(world.server->groups, info->stream_id, info->topic_id);
        require(!store_topic_delete(world.store, topics[i]));
        topic_unref(topics[i]);
    }
    mem_free(topics);
    require(!store_streams(world.store, &streams, &count));
    for (int32_t i = 0; i < count; i++)
        require(!store_stream_delete(world.store, streams[i].id));
    mem_free(streams);
}

static void users_empty(void) {
    struct arena a;
    struct iggy_get_users_res all;
    arena_init(&a, NULL, 0, DECODED_MAX);
    require(!users_list(world.users, &a, &all));
    for (uint32_t i = 0; i < all.users_count; i++) {
        const struct iggy_identifier id = iggy_by_id(all.users[i].id);
        if (all.users[i].id != USERS_ROOT_ID)
            require(users_delete(world.users, &id) == 0);
    }
    arena_release(&a);
}

/* Whether inputs have changed what is cheap to see. */
static bool world_is_changed(void) {
    struct stream_info *streams;
    int32_t streams_count, topics_count;
    struct topic **topics;
    require(!store_streams(world.store, &streams, &streams_count));
    require(!store_topics_in(world.store, UINT32_MAX, &topics, &topics_count));
    bool changed = streams_count != 1 || topics_count != TOPICS || strcmp(streams[0].name, STREAM) != 0 ||
                   !users_is_active(world.users, world.nobody);
    for (int32_t i = 0; i < topics_count; i++) {
        changed = changed || topic_partitions_count(topics[i]) != 2;
        topic_unref(topics[i]);
    }
    mem_free(topics);
    mem_free(streams);
    return changed;
}

static void world_fill(void) {
    require(!store_stream_create(world.store, STR(STREAM), NULL));
    world_add_topic("target", add_messages);
    world_add_topic("records", add_record);
    world_add_nobody();
}

static void world_renew(void) {
    if (++world.inputs % INPUTS_A_WORLD != 0 && !world_is_changed())
        return;
    world_empty();
    users_empty();
    world_fill();
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

static void world_remove(void) {
    (void)nftw(world.dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void world_make_dir(void) {
    const char *parent = getenv("TMPDIR");
    snprintf(world.dir, sizeof world.dir, "%s/fuzz-iggy-XXXXXX",
             parent && strlen(parent) < 40 ? parent : "/tmp");
    require(mkdtemp(world.dir) != NULL);
    atexit(world_remove);
}

static void world_begin(void) {
    struct store_error error;
    char generated[USERS_PASSWORD_BYTES];
    log_setup(LOG_ERROR, false);
    world_make_dir();
    require(!work_start(1) && !loop_new(0, &world.loop) && !budget_new(256 << 20, &world.budget));
    const struct store_backend_settings log = {.data_dir = world.dir,
                                               .segment_bytes = 1 << 20,
                                               .segment_ms = INT64_MAX,
                                               .retention_ms = -1,
                                               .retention_bytes = -1,
                                               .fsync = FSYNC_NEVER,
                                               .stream = STREAM,
                                               .batch_bytes_max = 1 << 20,
                                               .slots_max = 1 << 14,
                                               .cluster_id = "fuzz",
                                               .home = world.loop};
    require(!store_backend_new(&log, &world.backend, &error));
    world.store = store_backend_store(world.backend);
    require(!users_open(world.store, ROOT, ROOT, &world.users, generated));
    const struct iggy_server_settings settings = {.version_least = IGGY_0_11,
                                                  .version_newest = IGGY_NEWEST,
                                                  .cluster_id = "fuzz",
                                                  .data_dir = world.dir,
                                                  .store = world.store,
                                                  .backend = world.backend,
                                                  .users = world.users,
                                                  .budget = world.budget,
                                                  .loops = &world.loop,
                                                  .loops_count = 1};
    require(!iggy_server_new(&settings, &world.server));
    require(!loop_start(world.loop));
    iggy_server_open(world.server);
    world_empty();
    world_fill();
}

/* ---- what stands for the socket: net/conn.h and net/listener.h ---- */

struct conn {
    void *user;
    bool open, paused, busy, gentle;
    uint64_t number; /* of the last request */
    struct op closed;
};

/* One input under way. On the loop. */
static struct {
    struct rbuf in;
    struct conn conns[CONNS];
    struct op step;
    sem_t over;
} run;

static void conn_on_closed(struct op *op) {
    client_protocol.on_closed(container_of(op, struct conn, closed));
}

void conn_close(struct conn *c) {
    if (!c->open)
        return;
    c->open = false;
    op_init(&c->closed, world.loop, conn_on_closed);
    loop_post(&c->closed);
}

void conn_close_gently(struct conn *c) {
    c->gentle = true;
    conn_close(c);
}

void conn_set_user(struct conn *c, void *user) {
    c->user = user;
}

void *conn_user(const struct conn *c) {
    return c->user;
}

struct loop *conn_loop(const struct conn *c) {
    (void)c;
    return world.loop;
}

const char *conn_peer(const struct conn *c) {
    (void)c;
    return "127.0.0.1:1";
}

void conn_local(const struct conn *c, char out[CONN_ADDRESS_BYTES]) {
    (void)c;
    snprintf(out, CONN_ADDRESS_BYTES, "127.0.0.1:8090");
}

void conn_set_busy(struct conn *c, bool busy) {
    c->busy = busy;
}

void conn_set_idle_ms(struct conn *c, int64_t idle_ms) {
    (void)c;
    (void)idle_ms;
}

void conn_set_frame_bytes_max(struct conn *c, int64_t bytes_max) {
    (void)c;
    (void)bytes_max;
}

void conn_pause(struct conn *c) {
    c->paused = true;
}

void conn_resume(struct conn *c) {
    c->paused = false;
}

void frame_free(struct frame *f) {
    mem_free(f);
}

enum status listener_new(const struct listener_settings *settings, struct listener **out) {
    (void)settings;
    *out = NULL;
    return ST_OK;
}

int listener_port(const struct listener *l) {
    (void)l;
    return 0;
}

void listener_open(struct listener *l) {
    (void)l;
}

void listener_drain(struct listener *l, int64_t drain_ms, struct op *done) {
    (void)l;
    (void)drain_ms;
    (void)done;
}

void listener_free(struct listener *l) {
    (void)l;
}

void *listener_user(const struct conn *c) {
    (void)c;
    return world.server;
}

/* ---- what nobody waits for ---- */

int fsync(int fd) {
    (void)fd;
    return 0;
}

int fdatasync(int fd) {
    (void)fd;
    return 0;
}

/* The "hash" is the password itself. */
int argon2id_hash_encoded(const uint32_t passes, const uint32_t memory_kib, const uint32_t lanes,
                          const void *password, const size_t password_len, const void *salt,
                          const size_t salt_len, const size_t hash_len, char *out, const size_t out_len) {
    (void)passes;
    (void)memory_kib;
    (void)lanes;
    (void)salt;
    (void)salt_len;
    (void)hash_len;
    snprintf(out, out_len, "plain:%.*s", (int)(password_len < 80 ? password_len : 80),
             (const char *)password);
    return ARGON2_OK;
}

int argon2id_verify(const char *encoded, const void *password, const size_t password_len) {
    char own[128];
    snprintf(own, sizeof own, "plain:%.*s", (int)(password_len < 80 ? password_len : 80),
             (const char *)password);
    return strcmp(own, encoded) == 0 ? ARGON2_OK : ARGON2_VERIFY_MISMATCH;
}

/* ---- out: every reply must be one ---- */

/* An answer is read as a client of the request's version reads it. */
static void answer_check(const struct server_request *r, const struct iggy_reply_header *h,
                         struct bytes body) {
    struct iggy_outcome outcome;
    struct arena a;
    require(!iggy_reply_open(h, body, &outcome));
    if (outcome.code != 0 || h->status != 0 || !r->command || h->operation != r->command->reply_operation)
        return; /* the last: a number that was used before has the answer of then */
    const struct iggy_schema *schema = r->command->answer();
    arena_init(&a, NULL, 0, DECODED_MAX);
    void *answer = arena_take(&a, schema->size);
    require(answer && !iggy_decode(schema, r->version, outcome.payload, &a, answer));
    arena_release(&a);
}

void conn_write(struct conn *c, struct conn_write *w) {
    struct iggy_header h;
    uint8_t *flat = mem_take(w->out.bytes);
    require(flat && w->out.bytes >= IGGY_HEADER_BYTES);
    wbuf_flatten(&w->out, flat);
    iggy_header_decode(flat, &h);
    require(h.frame.size == w->out.bytes);
    require(h.frame.kind == IGGY_REPLY || h.frame.kind == IGGY_EVICTION);
    struct bytes body = {flat + IGGY_HEADER_BYTES, (int32_t)(w->out.bytes - IGGY_HEADER_BYTES)};
    if (h.frame.kind == IGGY_REPLY)
        answer_check(container_of(w, struct server_request, write), &h.reply, body);
    mem_free(flat);
    wbuf_release(&w->out);
    op_start(&w->op, NULL);
    op_complete(&w->op, c->open ? ST_OK : ST_CANCELED);
}

/* ---- in ---- */

static struct frame *frame_make(struct conn *c, const uint8_t *item, struct bytes body) {
    const struct client *client = c->user;
    bool raw = (item[0] & ITEM_RAW) && body.len >= IGGY_HEADER_BYTES;
    size_t size = (size_t)body.len + (raw ? 0 : IGGY_HEADER_BYTES);
    struct frame *f = mem_take_zeroed(1, sizeof *f + size);
    require(f != NULL);
    f->data = (uint8_t *)(f + 1);
    f->size_bytes = (uint32_t)size;
    if (!(item[0] & ITEM_SAME_NUMBER))
        c->number++;
    bool is_login = item[1] == IGGY_OP_REGISTER;
    struct iggy_header h = {.frame = {.kind = IGGY_REQUEST, .size = (uint32_t)size},
                            .request = {.client = {.b = {(uint8_t)(1 + (c - run.conns))}},
                                        .request_checksum = item[0] & ITEM_CHECKSUM ? iggy_body_checksum(body)
                                                                                    : (struct iggy_u128){{0}},
                                        .request = is_login ? 0 : c->number,
                                        .operation = item[1],
                                        .session = is_login || !client->session ? 0 : client->session->number,
                                        .code = item[1] == IGGY_OP_BY_CODE ? get16(item + 2) : 0}};
    if (!raw)
        iggy_header_encode(&h, f->data);
    if (body.len > 0)
        memcpy(f->data + (raw ? 0 : IGGY_HEADER_BYTES), body.ptr, (size_t)body.len);
    le_set32(f->data + 48, (uint32_t)size);
    return f;
}

/* The next frame of the input, unless its connection pauses. False: there is none. */
static bool run_feed(void) {
    struct rbuf *in = &run.in;
    if (in->end - in->at < ITEM_BYTES)
        return false;
    const uint8_t *item = in->at;
    struct conn *c = &run.conns[item[0] & ITEM_SECOND];
    if (c->open && c->paused)
        return true;
    int32_t len = (int32_t)get16(item + 4);
    in->at += ITEM_BYTES;
    if (len > in->end - in->at)
        len = (int32_t)(in->end - in->at);
    struct bytes body = {in->at, len};
    in->at += len;
    if (c->open)
        client_protocol.on_frame(c, frame_make(c, item, body));
    return true;
}

static bool run_is_over(void) {
    return list_empty(&world.server->per_loop[0].clients);
}

/* A frame a step, so that what was begun goes on between two. Then the clients leave, with whatever is still waiting. */
static void run_on_step(struct op *op) {
    bool more = run_feed();
    for (int i = 0; !more && i < CONNS; i++) {
        struct conn *c = &run.conns[i];
        if (c->open && !c->gentle) {
            c->gentle = true;
            client_protocol.on_hangup(c);
            client_protocol.on_idle_end(c);
        }
    }
    if (more || !run_is_over())
        loop_post(op);
    else
        sem_post(&run.over);
}

/* Logged in, without a password. */
static void conn_log_in(struct conn *c, uint32_t version, uint32_t user_id) {
    struct client *client = c->user;
    struct session *session;
    const struct session_login login = {.client_id = {.b = {(uint8_t)(1 + (c - run.conns))}},
                                        .user_id = user_id,
                                        .version = version,
                                        .client_number = client->number,
                                        .address = "127.0.0.1:1"};
    if (!session_log_in(world.server->sessions, &login, &session))
        client_set_session(client, session, version);
}

static void conn_begin(struct conn *c, uint8_t how) {
    static const uint32_t versions[] = {IGGY_0_11, IGGY_0_12_0, IGGY_0_12_1, IGGY_0_12_2};
    *c = (struct conn){.open = true};
    client_protocol.on_open(c);
    require(c->user != NULL);
    uint8_t who = how >> 2 & 3;
    if (who < 3)
        conn_log_in(c, versions[how & 3], who == 1 ? world.nobody : USERS_ROOT_ID);
}

static void run_on_begin(struct op *op) {
    const uint8_t *how = run.in.at;
    run.in.at += CONNS;
    for (int i = 0; i < CONNS; i++)
        conn_begin(&run.conns[i], how[i]);
    op_init(op, world.loop, run_on_step);
    loop_post(op);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < CONNS + ITEM_BYTES)
        return 0;
    if (!world.server)
        world_begin();
    run.in = (struct rbuf){data, data + size};
    sem_init(&run.over, 0, 0);
    op_init(&run.step, world.loop, run_on_begin);
    loop_post(&run.step);
    while (sem_wait(&run.over) != 0)
        continue;
    sem_destroy(&run.over);
    require(budget_free_bytes(world.budget) == 256 << 20);
    require(budget_free_bytes(world.server->polls) == 128 << 20);
    world_renew();
    return 0;
}
