#include "backend/stub/stub_backend.h"

#include <semaphore.h>

#include "net/loop.h"
#include "testing/test.h"

/*
 * Each call is started on a loop, as every caller does, with two parts: one to be answered, and one that already
 * has an error and must keep it.
 */
static struct rig {
    struct loop *loop;
    struct backend *backend;
    struct op begin;
    void (*start)(op_fn *done);
    enum status status; /* of the operation */
    bool returned;      /* the call had returned when done ran: never inside it */
    sem_t ended;
} rig;

static void rig_on_done(struct op *op) {
    rig.status = op->status;
    CHECK(rig.returned);
    sem_post(&rig.ended);
}

static void rig_on_begin(struct op *op) {
    (void)op;
    rig.start(rig_on_done);
    rig.returned = true;
}

static enum status run(void (*start)(op_fn *done)) {
    rig = (struct rig){.start = start};
    CHECK_EQ(sem_init(&rig.ended, 0, 0), 0);
    CHECK_EQ(stub_backend_new(&rig.backend), ST_OK);
    CHECK_EQ(loop_new(0, &rig.loop), ST_OK);
    CHECK_EQ(loop_start(rig.loop), ST_OK);
    op_init(&rig.begin, rig.loop, rig_on_begin);
    loop_post(&rig.begin);
    while (sem_wait(&rig.ended) != 0)
        continue;
    loop_stop(rig.loop);
    loop_free(rig.loop);
    stub_backend_free(rig.backend);
    sem_destroy(&rig.ended);
    return rig.status;
}

static struct backend_append_part appended[2];
static void start_append(op_fn *done) {
    static struct backend_append call;
    appended[0] = (struct backend_append_part){.topic = STR("t"), .base_offset = 7, .start_offset = 7};
    appended[1] = (struct backend_append_part){.topic = STR("a b"), .status = ST_BAD_NAME};
    call = (struct backend_append){.parts = appended, .parts_count = 2};
    op_init(&call.op, rig.loop, done);
    backend_append(rig.backend, &call);
}

TEST(nothing_is_stored_and_a_retry_is_safe) { /* D1-33 */
    CHECK_EQ(run(start_append), ST_OK);
    CHECK_EQ(appended[0].status, ST_UNAVAILABLE);
    CHECK_EQ(appended[0].base_offset, -1);
    CHECK_EQ(appended[0].start_offset, -1);
    CHECK_EQ(appended[1].status, ST_BAD_NAME);
}

static struct backend_read_part read_parts[2];
static struct backend_read read_call;
static void start_read(op_fn *done) {
    read_parts[0] = (struct backend_read_part){
        .topic = STR("t"), .records_count = 3, .bytes = 9, .high_watermark = 5, .start_offset = 2};
    read_parts[1] = (struct backend_read_part){.topic = STR("u"), .status = ST_BAD_NAME};
    read_call = (struct backend_read){.parts = read_parts, .parts_count = 2, .bytes = 9};
    op_init(&read_call.op, rig.loop, done);
    backend_read(rig.backend, &read_call);
}

TEST(a_read_finds_nothing) { /* D2 */
    CHECK_EQ(run(start_read), ST_OK);
    CHECK_EQ(read_call.bytes, 0);
    CHECK_EQ(read_parts[0].status, ST_UNAVAILABLE);
    CHECK_EQ(read_parts[0].records_count, 0);
    CHECK_EQ(read_parts[0].bytes, 0);
    CHECK_EQ(read_parts[0].high_watermark, -1);
    CHECK_EQ(read_parts[0].start_offset, -1);
    CHECK_EQ(read_parts[1].status, ST_BAD_NAME);
}

static void start_watch(op_fn *done) {
    static struct backend_watch call;
    call = (struct backend_watch){.read = &read_call, .deadline_ms = INT64_MAX};
    op_init(&call.op, rig.loop, done);
    backend_watch(rig.backend, &call);
}

TEST(nothing_is_waited_for) {
    CHECK_EQ(run(start_watch), ST_TIMED_OUT);
}

static struct backend_offset_part offsets[2];
static void start_offsets(op_fn *done) {
    static struct backend_offsets call;
    offsets[0] = (struct backend_offset_part){.topic = STR("t"), .kind = OFFSET_LATEST, .offset = 4};
    offsets[1] = (struct backend_offset_part){.topic = STR("u"), .status = ST_BAD_NAME};
    call = (struct backend_offsets){.parts = offsets, .parts_count = 2};
    op_init(&call.op, rig.loop, done);
    backend_offsets(rig.backend, &call);
}

TEST(no_offset_is_known) { /* D3-6 */
    CHECK_EQ(run(start_offsets), ST_OK);
    CHECK_EQ(offsets[0].status, ST_UNAVAILABLE);
    CHECK_EQ(offsets[0].offset, -1);
    CHECK_EQ(offsets[1].status, ST_BAD_NAME);
}

static struct backend_commit_part committing[2];
static struct backend_committed_part fetched[2];
static struct backend_committed committed;
static struct backend_groups groups;

static void start_commit(op_fn *done) {
    static struct backend_commit call;
    committing[0] = (struct backend_commit_part){.topic = STR("t"), .offset = 4};
    committing[1] = (struct backend_commit_part){.topic = STR("u"), .status = ST_BAD_NAME};
    call = (struct backend_commit){.group = STR("g"), .parts = committing, .parts_count = 2};
    op_init(&call.op, rig.loop, done);
    backend_commit(rig.backend, &call);
}

static void start_committed(op_fn *done) {
    fetched[0] = (struct backend_committed_part){.topic = STR("t"), .offset = 4};
    fetched[1] = (struct backend_committed_part){.topic = STR("u"), .status = ST_BAD_NAME};
    committed = (struct backend_committed){.group = STR("g"), .parts = fetched, .parts_count = 2};
    op_init(&committed.op, rig.loop, done);
    backend_committed(rig.backend, &committed);
}

static void start_groups(op_fn *done) {
    groups = (struct backend_groups){.forget = STR_NULL, .groups_count = 3};
    op_init(&groups.op, rig.loop, done);
    backend_groups(rig.backend, &groups);
}

TEST(offsets_of_groups_can_be_asked_for_again) { /* D12-7, D12-10 */
    CHECK_EQ(run(start_commit), ST_OK);
    CHECK_EQ(committing[0].status, ST_UNAVAILABLE);
    CHECK_EQ(committing[1].status, ST_BAD_NAME);
    CHECK_EQ(run(start_committed), ST_OK);
    CHECK_EQ(committed.status, ST_UNAVAILABLE);
    CHECK_EQ(fetched[0].status, ST_UNAVAILABLE);
    CHECK_EQ(fetched[0].offset, -1);
    CHECK_EQ(fetched[1].status, ST_BAD_NAME);
    CHECK_EQ(run(start_groups), ST_OK);
    CHECK_EQ(groups.status, ST_UNAVAILABLE);
    CHECK_EQ(groups.groups_count, 0);
}

static struct backend_topics_part asked[3];
static struct backend_topics topics;
static void start_topics(op_fn *done) {
    asked[0] = (struct backend_topics_part){.name = STR("t")};
    asked[1] = (struct backend_topics_part){.name = STR_NULL, .id = {{1}}};
    asked[2] = (struct backend_topics_part){.name = STR("a b"), .status = ST_BAD_NAME};
    topics = (struct backend_topics){
        .parts = asked, .parts_count = 3, .create = true, .partitions_default = 1, .status = ST_IO};
    op_init(&topics.op, rig.loop, done);
    backend_topics(rig.backend, &topics);
}

TEST(no_topic_is_there_or_made_and_the_list_is_true) { /* D4-8 */
    CHECK_EQ(run(start_topics), ST_OK);
    CHECK_EQ(asked[0].status, ST_NOT_FOUND);
    CHECK_EQ(asked[1].status, ST_UNKNOWN_ID);
    CHECK_EQ(asked[2].status, ST_BAD_NAME);
    CHECK_EQ(topics.status, ST_OK);
    CHECK_EQ(topics.topics_count, 0);
}

static struct backend_trim_part trimmed[2];
static void start_trim(op_fn *done) {
    static struct backend_trim call;
    trimmed[0] = (struct backend_trim_part){.topic = STR("t"), .start_offset = 7};
    trimmed[1] = (struct backend_trim_part){.topic = STR("a b"), .status = ST_NOT_FOUND};
    call = (struct backend_trim){.parts = trimmed, .parts_count = 2};
    op_init(&call.op, rig.loop, done);
    backend_trim(rig.backend, &call);
}

TEST(nothing_is_deleted_where_nothing_is_kept) { /* D16-4 */
    CHECK_EQ(run(start_trim), ST_OK);
    CHECK_EQ(trimmed[0].status, ST_UNAVAILABLE);
    CHECK_EQ(trimmed[0].start_offset, -1);
    CHECK_EQ(trimmed[1].status, ST_NOT_FOUND);
}

static struct backend_create_part created[2];
static void start_create(op_fn *done) {
    static struct backend_create call;
    created[0] = (struct backend_create_part){.name = STR("t"), .partitions_count = 1};
    created[1] = (struct backend_create_part){.name = STR("u"), .status = ST_INVALID};
    call = (struct backend_create){.parts = created, .parts_count = 2};
    op_init(&call.op, rig.loop, done);
    backend_create(rig.backend, &call);
}

static struct backend_delete_part deleted[2];
static void start_delete(op_fn *done) {
    static struct backend_delete call;
    deleted[0] = (struct backend_delete_part){.name = STR("t")};
    deleted[1] = (struct backend_delete_part){.name = STR("u"), .status = ST_INVALID};
    call = (struct backend_delete){.parts = deleted, .parts_count = 2};
    op_init(&call.op, rig.loop, done);
    backend_delete(rig.backend, &call);
}

static struct backend_grow_part grown[2];
static void start_grow(op_fn *done) {
    static struct backend_grow call;
    grown[0] = (struct backend_grow_part){.name = STR("t"), .partitions_count = 2};
    grown[1] = (struct backend_grow_part){.name = STR("u"), .status = ST_INVALID};
    call = (struct backend_grow){.parts = grown, .parts_count = 2};
    op_init(&call.op, rig.loop, done);
    backend_grow(rig.backend, &call);
}

TEST(topics_are_another_controllers_matter) { /* D6-12, D7-5, D8-1 */
    CHECK_EQ(run(start_create), ST_OK);
    CHECK_EQ(created[0].status, ST_NOT_CONTROLLER);
    CHECK_EQ(created[1].status, ST_INVALID);
    CHECK_EQ(run(start_delete), ST_OK);
    CHECK_EQ(deleted[0].status, ST_NOT_CONTROLLER);
    CHECK_EQ(deleted[1].status, ST_INVALID);
    CHECK_EQ(run(start_grow), ST_OK);
    CHECK_EQ(grown[0].status, ST_NOT_CONTROLLER);
    CHECK_EQ(grown[1].status, ST_INVALID);
}

TEST_OOM(a_stub_survives_any_failed_allocation) {
    struct backend *b = NULL;
    if (stub_backend_new(&b) == ST_OK)
        CHECK(!b->ops->controller);
    stub_backend_free(b);
}
