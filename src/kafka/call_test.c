#include "kafka/call_test.h"

#include <errno.h>
#include <time.h>

#include "base/mem.h"
#include "kafka/group_patterns.h"
#include "net/budget.h"
#include "net/loop.h"
#include "net/work.h"
#include "wire/codec.h"

#define ARENA_BYTES (1 << 20)

/* ---- the backend: "dot.ted" with one partition, "here" with three and a setting ---- */

static struct backend_setting here_setting = {{"retention.ms", 12}, {"5", 1}};
static struct backend_topic known[] = {
    {.name = {"dot.ted", 7}, .id = {{1}}, .partitions_count = 1},
    {.name = {"here", 4}, .id = {{2}}, .partitions_count = 3, .settings = &here_setting, .settings_count = 1},
};

struct call_fake call_fake;

static const struct backend_topic *known_find(struct str name, const struct uuid *id) {
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (name.len >= 0 ? str_equal(known[i].name, name) : uuid_equal(&known[i].id, id))
            return &known[i];
    return NULL;
}

static void fake_started(struct op *op) {
    call_fake.calls++;
    op_start(op, NULL);
    op_complete(op, ST_OK);
}

static void fake_topics(struct backend *b, struct backend_topics *t) {
    (void)b;
    t->status = ST_OK;
    if (t->all) {
        t->topics = known;
        t->topics_count = (int32_t)COUNT_OF(known);
    }
    for (int32_t i = 0; i < t->parts_count; i++) {
        struct backend_topics_part *part = &t->parts[i];
        if (part->status)
            continue;
        const struct backend_topic *found = known_find(part->name, &part->id);
        if (found)
            part->topic = *found;
        else
            part->status = part->name.len >= 0 ? ST_NOT_FOUND : ST_UNKNOWN_ID;
    }
    fake_started(&t->op);
}

static void fake_create(struct backend *b, struct backend_create *c) {
    for (int32_t i = 0; i < c->parts_count; i++) {
        if (c->parts[i].status)
            continue;
        c->parts[i].status = !b->ops->controller                  ? ST_NOT_CONTROLLER
                             : known_find(c->parts[i].name, NULL) ? ST_EXISTS
                                                                  : ST_OK;
        c->parts[i].id.b[0] = 9;
        call_fake.created += c->parts[i].status == ST_OK && !c->validate_only;
    }
    call_fake.deadline_ms = c->deadline_ms;
    fake_started(&c->op);
}

static void fake_delete(struct backend *b, struct backend_delete *d) {
    for (int32_t i = 0; i < d->parts_count; i++) {
        struct backend_delete_part *part = &d->parts[i];
        if (part->status)
            continue;
        part->status = !b->ops->controller                 ? ST_NOT_CONTROLLER
                       : known_find(part->name, &part->id) ? ST_OK
                                                           : ST_NOT_FOUND;
        call_fake.deleted += part->status == ST_OK;
    }
    fake_started(&d->op);
}

static void fake_grow(struct backend *b, struct backend_grow *g) {
    for (int32_t i = 0; i < g->parts_count; i++) {
        if (!g->parts[i].status && !b->ops->controller)
            g->parts[i].status = ST_NOT_CONTROLLER;
        call_fake.grown += g->parts[i].status == ST_OK && !g->validate_only;
    }
    fake_started(&g->op);
}

static void fake_configure(struct backend *b, struct backend_configure *c) {
    for (int32_t i = 0; i < c->parts_count; i++) {
        struct backend_configure_part *part = &c->parts[i];
        if (part->status)
            continue;
        part->status = !b->ops->controller             ? ST_NOT_CONTROLLER
                       : !known_find(part->name, NULL) ? ST_NOT_FOUND
                                                       : call_fake.configure_status;
        part->reason = call_fake.configure_reason;
        call_fake.configure_status = ST_OK;
        if (part->status || c->validate_only)
            continue;
        CHECK(part->changes_count <= (int32_t)COUNT_OF(call_fake.changes));
        for (int32_t k = 0; k < part->changes_count; k++)
            call_fake.changes[k] = part->changes[k];
        call_fake.changes_count = part->changes_count;
        call_fake.configured++;
    }
    fake_started(&c->op);
}

/* The end of every log is 40, its start 4; the record of time t has offset t / 10. */
static void fake_offsets(struct backend *b, struct backend_offsets *o) {
    for (int32_t i = 0; i < o->parts_count; i++) {
        struct backend_offset_part *part = &o->parts[i];
        const struct backend_topic *topic = known_find(part->topic, NULL);
        part->offset = part->kind == OFFSET_LATEST     ? 40
                       : part->kind == OFFSET_EARLIEST ? 4
                                                       : part->timestamp_ms / 10;
        if (part->kind != OFFSET_BY_TIME)
            part->timestamp_ms = part->kind == OFFSET_MAX_TIME ? 399 : -1;
        if (!b->ops->controller)
            part->status = ST_UNAVAILABLE;
        else if (!topic || part->partition < 0 || part->partition >= topic->partitions_count)
            part->status = ST_NOT_FOUND;
    }
    call_fake.asked += o->parts_count;
    fake_started(&o->op);
}

static void fake_trim(struct backend *b, struct backend_trim *t) {
    for (int32_t i = 0; i < t->parts_count; i++) {
        struct backend_trim_part *part = &t->parts[i];
        const struct backend_topic *topic = known_find(part->topic, NULL);
        if (!part->status && !b->ops->controller)
            part->status = ST_UNAVAILABLE;
        else if (!part->status &&
                 (!topic || part->partition < 0 || part->partition >= topic->partitions_count))
            part->status = ST_NOT_FOUND;
        else if (!part->status && (part->offset < -1 || part->offset > 40))
            part->status = ST_OUT_OF_RANGE;
        else if (!part->status && part->offset == 13)
            part->status = ST_CORRUPT;
        part->start_offset = part->offset == -1 ? 40 : part->offset < 4 ? 4 : part->offset;
        call_fake.trimmed += part->status == ST_OK;
    }
    call_fake.deadline_ms = t->deadline_ms;
    fake_started(&t->op);
}

/* Keeps the last commit; what was committed of partition 0 of "here" and "dot.ted" is 17, with metadata; group "lost" can't be read. */
static void fake_commit(struct backend *b, struct backend_commit *c) {
    for (int32_t i = 0; i < c->parts_count; i++) {
        struct backend_commit_part *part = &c->parts[i];
        const struct backend_topic *topic = known_find(part->topic, NULL);
        if (part->status)
            continue;
        if (!b->ops->controller)
            part->status = ST_UNAVAILABLE;
        else if (!topic || part->partition >= topic->partitions_count)
            part->status = ST_NOT_FOUND;
        else
            call_fake.committed = *part;
    }
    call_fake.deadline_ms = c->deadline_ms;
    call_fake.keep_longer_ms = c->keep_longer_ms;
    call_fake.commits++;
    fake_started(&c->op);
}

static struct str with_offsets[] = {{"committed", 9}, {"lost", 4}};

static void fake_groups(struct backend *b, struct backend_groups *g) {
    bool lists = g->forget.len < 0;
    g->status = b->ops->controller ? call_fake.groups_status : ST_UNAVAILABLE;
    if (lists && !g->status) {
        g->groups = with_offsets;
        g->groups_count = (int32_t)COUNT_OF(with_offsets);
    } else if (!lists) {
        g->status = call_fake.forget_status;
        call_fake.forgotten = g->forget;
        call_fake.forgets++;
    }
    fake_started(&g->op);
}

static struct backend_committed_part all_committed[] = {
    {.topic = {"dot.ted", 7}, .partition = 0, .leader_epoch = 3, .offset = 17, .metadata = {"m", 1}},
    {.topic = {"here", 4}, .partition = 0, .leader_epoch = 3, .offset = 17, .metadata = {"m", 1}},
    {.topic = {"here", 4}, .partition = 2, .leader_epoch = 3, .offset = 18, .metadata = {"m", 1}},
};

static void fake_committed(struct backend *b, struct backend_committed *c) {
    bool lost = !b->ops->controller || str_equal(c->group, STR("lost"));
    if (c->all) {
        c->status = lost ? ST_UNAVAILABLE : ST_OK;
        c->parts = all_committed;
        c->parts_count = lost ? 0 : (int32_t)COUNT_OF(all_committed);
    }
    for (int32_t i = 0; !c->all && i < c->parts_count; i++) {
        struct backend_committed_part *part = &c->parts[i];
        if (part->status)
            continue;
        if (known_find(part->topic, NULL) && part->partition == 0)
            *part = all_committed[0];
        if (lost && i == c->parts_count - 1)
            part->status = ST_UNAVAILABLE;
    }
    fake_started(&c->op);
}

/* Settings of group "g". A change that somebody else was faster than finds 50,000 and nothing. */
static struct backend_group_settings fake_group_settings(struct backend *b, struct str group) {
    (void)b;
    return str_equal(group, STR("g")) ? call_fake.group : (struct backend_group_settings){0};
}

static void fake_configure_groups(struct backend *b, struct backend_configure_groups *c) {
    (void)b;
    for (int32_t i = 0; i < c->parts_count; i++) {
        struct backend_group_change *change = &c->parts[i];
        if (change->status)
            continue;
        change->status = call_fake.group_status;
        call_fake.group_status = ST_OK;
        if (change->status == ST_AGAIN)
            call_fake.group = (struct backend_group_settings){50000, 0};
        if (change->status)
            continue;
        if (str_equal(change->group, STR("g")))
            call_fake.group = change->settings;
        call_fake.groups_configured++;
    }
    call_fake.deadline_ms = c->deadline_ms;
    fake_started(&c->op);
}

const struct backend_ops call_managing = {.name = "managing",
                                          .controller = true,
                                          .topics = fake_topics,
                                          .create = fake_create,
                                          .delete = fake_delete,
                                          .grow = fake_grow,
                                          .configure = fake_configure,
                                          .offsets = fake_offsets,
                                          .trim = fake_trim,
                                          .commit = fake_commit,
                                          .committed = fake_committed,
                                          .groups = fake_groups,
                                          .configure_groups = fake_configure_groups,
                                          .group_settings = fake_group_settings};
const struct backend_ops call_bridge = {
    .name = "bridge", .controller = true, .topics = fake_topics, .configure = fake_configure};
const struct backend_ops call_stub = {.name = "stub",
                                      .topics = fake_topics,
                                      .create = fake_create,
                                      .delete = fake_delete,
                                      .grow = fake_grow,
                                      .configure = fake_configure,
                                      .offsets = fake_offsets,
                                      .trim = fake_trim,
                                      .commit = fake_commit,
                                      .committed = fake_committed,
                                      .groups = fake_groups};

/* ---- one request ---- */

static void fake_random(void *ctx, uint8_t out[16]) {
    (void)ctx;
    static uint8_t last;
    memset(out, 0, 16);
    out[15] = ++last;
}

static bool fake_topic_find(void *ctx, struct str name, struct group_topic *out) {
    return group_topics_find(ctx, name, out);
}

static enum group_pattern fake_pattern_find(void *ctx, struct str pattern, struct group_matches *out) {
    return group_patterns_find(group_topics_patterns(ctx), pattern, out);
}

static void call_make_groups(struct call *c) {
    const struct group_topics_settings topics = {&c->backend, c->loop, &c->kafka.groups};
    CHECK_EQ(group_topics_new(&topics, &c->kafka.group_topics), ST_OK);
    struct coordinator_settings settings;
    coordinator_settings_default(&settings);
    settings.initial_delay_ms = 0;
    settings.random = fake_random;
    settings.topic_find = fake_topic_find;
    settings.pattern_find = fake_pattern_find;
    settings.ctx = c->kafka.group_topics;
    CHECK_EQ(groups_new(&settings, c->loop, &c->kafka.groups), ST_OK);
}

static void call_make_session(struct call *c) {
    list_init(&c->session.requests);
    c->session.kafka = &c->kafka;
    c->session.in_flight = 2;
    c->first = (struct request){.session = &c->session};
    list_push_tail(&c->session.requests, &c->first.link);
    arena_init(&c->arena, NULL, 0, 64 << 20);
    sem_init(&c->answered, 0, 0);
}

void call_open(struct call *c, const struct backend_ops *ops) {
    *c = (struct call){.backend = {ops}, .owns_server = true};
    call_fake = (struct call_fake){0};
    c->kafka = (struct kafka){
        .settings = {.backend = &c->backend, .partitions_default = 2, .frame_bytes_max = 8 << 20},
        .advertised_host = STR("host"),
        .advertised_port = 9093,
        .node_id = CALL_NODE,
        .group_times = {45000, 5000},
        .cluster_id = STR("cluster")};
    CHECK_EQ(budget_new(64 << 20, &c->kafka.settings.budget), ST_OK);
    CHECK_EQ(loop_new(0, &c->loop), ST_OK);
    CHECK_EQ(loop_start(c->loop), ST_OK);
    CHECK_EQ(work_start(1), ST_OK);
    call_make_groups(c);
    call_make_session(c);
}

void call_open_beside(struct call *c, const struct call *server) {
    *c = (struct call){.backend = server->backend, .kafka = server->kafka};
    CHECK_EQ(loop_new(1, &c->loop), ST_OK);
    CHECK_EQ(loop_start(c->loop), ST_OK);
    call_make_session(c);
}

/* Something to do on the call's loop. */
struct visit {
    struct op op;
    struct call *call;
    sem_t ended;
};

static void sem_wait_long(sem_t *s) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    int failed;
    do
        failed = sem_timedwait(s, &until);
    while (failed && errno == EINTR);
    CHECK_EQ(failed, 0);
}

static void on_loop(struct call *c, op_fn *fn) {
    struct visit v = {.call = c};
    sem_init(&v.ended, 0, 0);
    op_init(&v.op, c->loop, fn);
    loop_post(&v.op);
    sem_wait_long(&v.ended);
    sem_destroy(&v.ended);
}

/* The turn of the request that is never answered comes when the one behind it has been. */
static void call_on_answered(struct request *first) {
    sem_post(&container_of(first, struct call, first)->answered);
}

static void call_handle(struct op *op) {
    struct visit *v = container_of(op, struct visit, op);
    struct request *r = &v->call->r;
    v->call->first.on_turn = call_on_answered;
    list_push_tail(&v->call->session.requests, &r->link);
    r->api->handle(r);
    if (r->on_turn)
        r->on_turn(r);
    sem_post(&v->ended);
}

static void call_forget(struct op *op) {
    struct visit *v = container_of(op, struct visit, op);
    struct request *r = &v->call->r;
    if (r->at_end)
        r->at_end(r);
    wbuf_release(&r->write.out);
    arena_release(&r->arena);
    if (link_in_list(&r->link))
        list_remove(&r->link);
    *r = (struct request){0};
    sem_post(&v->ended);
}

static void call_look(struct op *op) {
    sem_post(&container_of(op, struct visit, op)->ended);
}

static void call_cancel(struct op *op) {
    struct visit *v = container_of(op, struct visit, op);
    v->call->session.leaving = true;
    session_cancel(&v->call->session);
    sem_post(&v->ended);
}

void call_leave(struct call *c) {
    on_loop(c, call_cancel);
}

void call_start(struct call *c, int16_t key, int16_t version, const void *in) {
    if (c->r.api)
        on_loop(c, call_forget);
    c->r = (struct request){.kafka = &c->kafka,
                            .loop = c->loop,
                            .session = &c->session,
                            .in = in,
                            .api = api_find(key),
                            .version = version,
                            .client_id = STR("client"),
                            .arrived_ms = 1000};
    arena_init(&c->r.arena, NULL, 0, ARENA_BYTES);
    on_loop(c, call_handle);
}

const void *call_finish(struct call *c) {
    static const struct decode_limits limits = {.elements_max = 1 << 20, .string_max = 65536};
    struct request *r = &c->r;
    sem_wait_long(&c->answered);
    on_loop(c, call_look); /* what ran when it was answered has returned */
    CHECK_EQ(r->outcome, REQUEST_ANSWERED);

    size_t head = kmsg_is_flexible(r->api->response(), r->version) ? 9 : 8;
    uint8_t *bytes = arena_take(&c->arena, r->write.out.bytes);
    wbuf_flatten(&r->write.out, bytes);
    struct rbuf body = {bytes + head, bytes + r->write.out.bytes};
    void *out = arena_take(&c->arena, r->api->response()->size);
    CHECK_EQ(kmsg_decode(r->api->response(), r->version, &limits, &body, &c->arena, out), ST_OK);
    CHECK_EQ(rbuf_left(&body), 0);
    return out;
}

const void *call_run(struct call *c, int16_t key, int16_t version, const void *in) {
    call_start(c, key, version, in);
    return call_finish(c);
}

void call_close(struct call *c) {
    if (c->r.api)
        on_loop(c, call_forget);
    if (c->owns_server)
        work_stop();
    loop_stop(c->loop);
    if (c->owns_server) {
        groups_free(c->kafka.groups);
        group_topics_free(c->kafka.group_topics);
        budget_free(c->kafka.settings.budget);
    }
    loop_free(c->loop);
    arena_release(&c->arena);
    sem_destroy(&c->answered);
}
