#include "backend/store/store_backend.h"

#include "backend/store/rig_test.h"
#include "base/clock.h"
#include "base/mem.h"
#include "store/store.h"
#include "testing/test.h"
#include "wire/records.h"

#define SHORT_MS 30

TEST(what_was_appended_is_read_back_at_the_offset_that_was_given) {
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    CHECK_EQ(append_records(&rig, "orders", 0, 3, 10, TIMESTAMP_MS), 0);
    CHECK_EQ(append_records(&rig, "orders", 0, 1, 10, TIMESTAMP_MS), 3);

    struct backend_read_part part = read_part("orders", 0, 3);
    struct backend_read read = read_of(&part, 1);
    RUN(&rig, read, &read);
    CHECK_EQ(part.status, ST_OK);
    CHECK_EQ(part.high_watermark, 4);
    CHECK_EQ(part.start_offset, 0);
    struct batch batch;
    CHECK_EQ(part.records_count, 1);
    CHECK_EQ(batch_read(part.records[0], &batch), ST_OK);
    CHECK_EQ(batch.base_offset, 3);
    CHECK_EQ(batch.size_bytes, part.bytes);
    backend_read_release(rig.backend, &read);
    rig_close(&rig);
}

TEST(records_and_cluster_id_are_there_after_a_restart) {
    const char *dir = test_dir();
    struct rig rig;
    char cluster[64];
    rig_open(&rig, dir, false);
    snprintf(cluster, sizeof cluster, "%s", store_backend_cluster_id(rig.backend));
    CHECK_EQ(strlen(cluster), 22);
    make_topic(&rig, "orders", 2);
    append_records(&rig, "orders", 1, 5, 100, TIMESTAMP_MS);
    rig_close(&rig);

    rig_open(&rig, dir, false);
    CHECK_TEXT(store_backend_cluster_id(rig.backend), cluster);
    CHECK_EQ(append_records(&rig, "orders", 1, 1, 100, TIMESTAMP_MS), 5);
    rig_close(&rig);
}

TEST(a_bad_part_spoils_no_other) { /* D1-15 */
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 2);
    struct bytes good = make_batch(1, 10, TIMESTAMP_MS), bad = make_batch(1, 10, TIMESTAMP_MS),
                 old = make_batch(1, 10, TIMESTAMP_MS);
    ((uint8_t *)(uintptr_t)bad.ptr)[bad.len - 1] ^= 1;
    struct backend_append_part parts[] = {
        {.topic = STR("orders"), .partition = 0, .records = bad},
        {.topic = STR("orders"), .partition = 1, .records = good},
        {.topic = STR("orders"), .partition = 2, .records = old},
        {.topic = STR("orders"), .partition = -1, .records = old},
        {.topic = STR("nowhere"), .partition = 0, .records = old},
        {.topic = STR_NULL, .partition = 0, .records = old},
        {.topic = STR("orders"), .partition = 0, .records = BYTES_NULL},
    };
    struct backend_append call = append_of(&rig, parts, COUNT_OF(parts));
    RUN(&rig, append, &call);
    CHECK_EQ(parts[0].status, ST_BAD_CRC);
    CHECK_EQ(parts[1].status, ST_OK);
    CHECK_EQ(parts[1].base_offset, 0);
    CHECK_EQ(parts[2].status, ST_NOT_FOUND);
    CHECK_EQ(parts[3].status, ST_NOT_FOUND);
    CHECK_EQ(parts[4].status, ST_NOT_FOUND);
    CHECK_EQ(parts[5].status, ST_UNKNOWN_ID);
    CHECK_EQ(parts[6].status, ST_BAD_RECORD);
    CHECK_EQ(parts[6].base_offset, -1);
    free_batch(good);
    free_batch(bad);
    free_batch(old);
    rig_close(&rig);
}

TEST(a_part_past_its_deadline_is_not_stored) { /* D1-3 */
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    struct bytes batch = make_batch(1, 10, TIMESTAMP_MS);
    struct backend_append_part part = {.topic = STR("orders"), .records = batch};
    struct backend_append call = append_of(&rig, &part, 1);
    call.deadline_ms = clock_ms() - 1;
    RUN(&rig, append, &call);
    CHECK_EQ(part.status, ST_TIMED_OUT);
    CHECK_EQ(append_records(&rig, "orders", 0, 1, 10, TIMESTAMP_MS), 0);
    free_batch(batch);
    rig_close(&rig);
}

TEST(appends_from_two_loops_get_every_offset_once) {
    enum { EACH = 200 };
    static struct turn in_flight[LOOPS_COUNT][16];
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    bool seen[LOOPS_COUNT * EACH] = {false};
    for (int round = 0; round < EACH / 16; round++) {
        struct backend_append_part parts[LOOPS_COUNT][16];
        struct backend_append calls[LOOPS_COUNT][16];
        struct bytes batches[LOOPS_COUNT][16];
        for (int i = 0; i < LOOPS_COUNT * 16; i++) {
            int loop = i % LOOPS_COUNT, k = i / LOOPS_COUNT;
            batches[loop][k] = make_batch(1, 50, TIMESTAMP_MS);
            parts[loop][k] =
                (struct backend_append_part){.topic = STR("orders"), .records = batches[loop][k]};
            calls[loop][k] = append_of(&rig, &parts[loop][k], 1);
            calls[loop][k].durable = k % 3 == 0;
        }
        struct arena arenas[LOOPS_COUNT];
        for (int loop = 0; loop < LOOPS_COUNT; loop++) {
            arena_init(&arenas[loop], NULL, 0, 1 << 20);
            for (int k = 0; k < 16; k++) {
                calls[loop][k].arena = &arenas[loop];
                turn_start(&in_flight[loop][k], &rig, loop, &calls[loop][k].op, &calls[loop][k],
                           begin_append);
            }
        }
        for (int i = 0; i < LOOPS_COUNT * 16; i++) {
            int loop = i % LOOPS_COUNT, k = i / LOOPS_COUNT;
            turn_wait(&in_flight[loop][k]);
            CHECK_EQ(parts[loop][k].status, ST_OK);
            CHECK(!seen[parts[loop][k].base_offset]);
            seen[parts[loop][k].base_offset] = true;
            CHECK(k == 0 || parts[loop][k].base_offset >
                                parts[loop][k - 1].base_offset); /* in the order of the calls */
            free_batch(batches[loop][k]);
        }
        for (int loop = 0; loop < LOOPS_COUNT; loop++)
            arena_release(&arenas[loop]);
    }
    rig_close(&rig);
}

TEST(the_first_batch_passes_every_byte_limit_and_later_parts_then_come_empty) { /* KIP-74 */
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 2);
    append_records(&rig, "orders", 0, 1, 5000, TIMESTAMP_MS);
    append_records(&rig, "orders", 1, 1, 5000, TIMESTAMP_MS);
    struct backend_read_part parts[] = {read_part("orders", 0, 0), read_part("orders", 1, 0)};
    parts[0].bytes_max = 1;
    struct backend_read read = read_of(parts, 2);
    read.bytes_max = 1;
    RUN(&rig, read, &read);
    CHECK(parts[0].bytes > 5000);
    CHECK_EQ(parts[1].bytes, 0);
    CHECK_EQ(parts[1].high_watermark, 1);

    read.bytes_max = parts[0].bytes + 100; /* not enough for the second one's batch */
    RUN(&rig, read, &read);
    CHECK(parts[0].bytes > 5000);
    CHECK_EQ(parts[1].status, ST_OK);
    CHECK_EQ(parts[1].bytes, 0);
    backend_read_release(rig.backend, &read);
    rig_close(&rig);
}

TEST(an_offset_outside_the_log_is_out_of_range) {
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    append_records(&rig, "orders", 0, 2, 10, TIMESTAMP_MS);
    struct backend_read_part parts[] = {read_part("orders", 0, -1), read_part("orders", 0, 3),
                                        read_part("orders", 0, 2), read_part("orders", 7, 0),
                                        read_part("nowhere", 0, 0)};
    struct backend_read read = read_of(parts, COUNT_OF(parts));
    RUN(&rig, read, &read);
    CHECK_EQ(parts[0].status, ST_OUT_OF_RANGE);
    CHECK_EQ(parts[1].status, ST_OUT_OF_RANGE);
    CHECK_EQ(parts[2].status, ST_OK);
    CHECK_EQ(parts[2].bytes, 0);
    CHECK_EQ(parts[3].status, ST_NOT_FOUND);
    CHECK_EQ(parts[4].status, ST_NOT_FOUND);
    CHECK_EQ(parts[1].high_watermark, -1);
    backend_read_release(rig.backend, &read);
    rig_close(&rig);
}

/* A read of an empty end, and a watch on it. */
struct waiting {
    struct backend_read_part part;
    struct backend_read read;
    struct backend_watch watch;
    struct turn turn;
};

static void wait_begin(struct waiting *w, struct rig *rig, int64_t bytes_min, int64_t wait_ms) {
    w->part = read_part("orders", 0, 0);
    w->read = read_of(&w->part, 1);
    RUN(rig, read, &w->read);
    w->watch =
        (struct backend_watch){.read = &w->read, .bytes_min = bytes_min, .deadline_ms = clock_ms() + wait_ms};
    turn_start(&w->turn, rig, 1, &w->watch.op, &w->watch, begin_watch);
}

static void wait_end(struct waiting *w, struct rig *rig, enum status want) {
    turn_wait(&w->turn);
    CHECK_EQ(w->watch.op.status, want);
    backend_read_release(rig->backend, &w->read);
}

TEST(a_watch_wakes_when_something_is_appended) {
    struct rig rig;
    struct waiting w;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    wait_begin(&w, &rig, 1, LONG_MS);
    append_records(&rig, "orders", 0, 1, 10, TIMESTAMP_MS);
    wait_end(&w, &rig, ST_OK);
    rig_close(&rig);
}

TEST(a_watch_sees_what_came_between_the_read_and_it) {
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    struct backend_read_part part = read_part("orders", 0, 0);
    struct backend_read read = read_of(&part, 1);
    RUN(&rig, read, &read);
    append_records(&rig, "orders", 0, 1, 10, TIMESTAMP_MS);
    struct backend_watch watch = {.read = &read, .bytes_min = 1, .deadline_ms = clock_ms() + LONG_MS};
    RUN(&rig, watch, &watch);
    CHECK_EQ(watch.op.status, ST_OK);
    backend_read_release(rig.backend, &read);
    rig_close(&rig);
}

TEST(a_watch_is_not_met_by_what_its_read_has_found) {
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    append_records(&rig, "orders", 0, 2, 10, TIMESTAMP_MS);
    struct backend_read_part part = read_part("orders", 0, 1);
    struct backend_read read = read_of(&part, 1);
    RUN(&rig, read, &read);
    CHECK(part.bytes > 0);
    struct backend_watch watch = {.read = &read, .bytes_min = 1, .deadline_ms = clock_ms() + SHORT_MS};
    RUN(&rig, watch, &watch);
    CHECK_EQ(watch.op.status, ST_TIMED_OUT);
    append_records(&rig, "orders", 0, 1, 10, TIMESTAMP_MS);
    watch.deadline_ms = clock_ms() + LONG_MS;
    RUN(&rig, watch, &watch);
    CHECK_EQ(watch.op.status, ST_OK);
    backend_read_release(rig.backend, &read);
    rig_close(&rig);
}

TEST(a_watch_for_many_bytes_sleeps_through_few) {
    struct rig rig;
    struct waiting w;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    wait_begin(&w, &rig, 100000, SHORT_MS);
    append_records(&rig, "orders", 0, 1, 10, TIMESTAMP_MS);
    wait_end(&w, &rig, ST_TIMED_OUT);
    wait_begin(&w, &rig, 100000, LONG_MS);
    append_records(&rig, "orders", 0, 1, 200000, TIMESTAMP_MS);
    wait_end(&w, &rig, ST_OK);
    rig_close(&rig);
}

TEST(who_waits_holds_no_records_and_reads_them_again) {
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    append_records(&rig, "orders", 0, 2, 100, TIMESTAMP_MS);
    struct backend_read_part part = read_part("orders", 0, 0);
    struct backend_read read = read_of(&part, 1);
    RUN(&rig, read, &read);
    int64_t bytes = part.bytes;
    CHECK(bytes > 0);
    struct backend_watch watch = {.read = &read, .bytes_min = 100000, .deadline_ms = clock_ms() + SHORT_MS};
    RUN(&rig, watch, &watch);
    CHECK_EQ(watch.op.status, ST_TIMED_OUT);
    CHECK(part.records == NULL && part.records_count == 0 && part.bytes == 0 && read.bytes == 0);
    CHECK_EQ(part.status, ST_OK);
    RUN(&rig, read, &read);
    CHECK_EQ(part.bytes, bytes);
    backend_read_release(rig.backend, &read);
    rig_close(&rig);
}

TEST(a_watch_can_be_given_up) {
    struct rig rig;
    struct waiting w;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    wait_begin(&w, &rig, 1, LONG_MS);
    rig_cancel(&rig, 1, &w.watch.op);
    wait_end(&w, &rig, ST_CANCELED);
    rig_close(&rig);
}

TEST(a_watch_wakes_when_its_topic_goes) {
    struct rig rig;
    struct waiting w;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    wait_begin(&w, &rig, 1, LONG_MS);
    struct backend_delete_part part = {.name = STR("orders")};
    struct backend_delete call = {
        .arena = &rig.arena, .parts = &part, .parts_count = 1, .deadline_ms = clock_ms() + LONG_MS};
    RUN(&rig, delete, &call);
    CHECK_EQ(part.status, ST_OK);
    turn_wait(&w.turn);
    CHECK_EQ(w.watch.op.status, ST_OK);
    RUN(&rig, read, &w.read);
    CHECK_EQ(w.part.status, ST_NOT_FOUND);
    backend_read_release(rig.backend, &w.read);
    rig_close(&rig);
}

TEST(a_watch_on_a_topic_that_went_after_its_read_ends_at_once) {
    struct rig rig;
    struct waiting w;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    w.part = read_part("orders", 0, 0);
    w.read = read_of(&w.part, 1);
    RUN(&rig, read, &w.read);
    struct backend_delete_part part = {.name = STR("orders")};
    struct backend_delete call = {
        .arena = &rig.arena, .parts = &part, .parts_count = 1, .deadline_ms = clock_ms() + LONG_MS};
    RUN(&rig, delete, &call);
    w.watch = (struct backend_watch){.read = &w.read, .bytes_min = 1, .deadline_ms = clock_ms() + LONG_MS};
    turn_start(&w.turn, &rig, 1, &w.watch.op, &w.watch, begin_watch);
    wait_end(&w, &rig, ST_OK);
    rig_close(&rig);
}

TEST(a_watch_wakes_when_its_partition_is_shrunk_away) {
    struct rig rig;
    struct waiting w;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    wait_begin(&w, &rig, 1, LONG_MS);
    struct store *store = store_backend_store(rig.backend);
    struct topic *t = store_topic_find(store, STR("kafka"), STR("orders"));
    CHECK_EQ(store_topic_shrink(store, t, 0), ST_OK);
    topic_unref(t);
    wait_end(&w, &rig, ST_OK);
    rig_close(&rig);
}

TEST(topics_of_names_that_kafka_can_not_have_are_not_listed) { /* */
    static const char *const names[] = {"a/b", "..", " ", "\n", "\xc3\xbc", "b"};
    struct rig rig;
    char longest[251] = "";
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "a", 1);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        make_topic(&rig, names[i], 1);
    memset(longest, 'n', sizeof longest - 1);
    make_topic(&rig, longest, 1);
    struct backend_topics call = {.arena = &rig.arena, .all = true};
    RUN(&rig, topics, &call);
    CHECK_EQ(call.topics_count, 2);
    CHECK(str_equal(call.topics[0].name, STR("a")));
    CHECK(str_equal(call.topics[1].name, STR("b")));
    rig_close(&rig);
}

TEST(topics_are_found_by_name_and_id_and_a_new_one_of_the_same_name_has_another_id) {
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 3);
    struct backend_topics_part parts[2] = {{.name = STR("orders")}, {.name = STR("nowhere")}};
    struct backend_topics call = {
        .arena = &rig.arena, .parts = parts, .parts_count = 2, .all = true, .want_settings = true};
    RUN(&rig, topics, &call);
    CHECK_EQ(parts[0].status, ST_OK);
    CHECK_EQ(parts[0].topic.partitions_count, 3);
    CHECK(!uuid_is_zero(&parts[0].topic.id));
    CHECK_EQ(parts[1].status, ST_NOT_FOUND);
    CHECK_EQ(call.topics_count, 1);
    struct uuid old = parts[0].topic.id;

    struct backend_delete_part gone = {.name = STR_NULL, .id = old};
    struct backend_delete delete = {
        .arena = &rig.arena, .parts = &gone, .parts_count = 1, .deadline_ms = clock_ms() + LONG_MS};
    RUN(&rig, delete, &delete);
    CHECK_EQ(gone.status, ST_OK);
    CHECK(str_equal(gone.name, STR("orders")));
    make_topic(&rig, "orders", 1);
    struct backend_topics_part again[2] = {{.name = STR("orders")}, {.name = STR_NULL, .id = old}};
    struct backend_topics second = {.arena = &rig.arena, .parts = again, .parts_count = 2};
    RUN(&rig, topics, &second);
    CHECK(!uuid_equal(&again[0].topic.id, &old));
    CHECK_EQ(again[1].status, ST_UNKNOWN_ID);
    rig_close(&rig);
}

TEST(a_missing_topic_is_made_when_asked_for) {
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    struct backend_topics_part parts[2] = {{.name = STR("fresh")}, {.name = STR("fresh")}};
    struct backend_topics call = {.arena = &rig.arena,
                                  .parts = parts,
                                  .parts_count = 2,
                                  .create = true,
                                  .partitions_default = 4,
                                  .deadline_ms = clock_ms() + LONG_MS};
    RUN(&rig, topics, &call);
    CHECK_EQ(parts[0].status, ST_OK);
    CHECK_EQ(parts[0].topic.partitions_count, 4);
    CHECK_EQ(parts[1].status, ST_OK);
    rig_close(&rig);
}

TEST(partitions_grow_and_never_shrink) { /* D8-1 */
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 2);
    struct backend_grow_part parts[] = {{.name = STR("orders"), .partitions_count = 2},
                                        {.name = STR("orders"), .partitions_count = 5}};
    struct backend_grow call = {.parts = parts, .parts_count = 2, .deadline_ms = clock_ms() + LONG_MS};
    RUN(&rig, grow, &call);
    CHECK_EQ(parts[0].status, ST_INVALID);
    CHECK_EQ(parts[0].partitions_before, 2);
    CHECK_EQ(parts[1].status, ST_OK);
    CHECK_EQ(append_records(&rig, "orders", 4, 1, 10, TIMESTAMP_MS), 0);
    rig_close(&rig);
}

TEST(offsets_are_found_at_the_ends_and_by_time) { /* D3-1, D3-2 */
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 2);
    append_records(&rig, "orders", 0, 3, 10, TIMESTAMP_MS);      /* ..000 ..001 ..002 */
    append_records(&rig, "orders", 0, 2, 10, TIMESTAMP_MS + 50); /* ..050 ..051 */
    append_records(&rig, "orders", 0, 1, 10, TIMESTAMP_MS + 20);
    struct backend_offset_part parts[] = {
        {.topic = STR("orders"), .kind = OFFSET_EARLIEST},
        {.topic = STR("orders"), .kind = OFFSET_LATEST},
        {.topic = STR("orders"), .kind = OFFSET_BY_TIME, .timestamp_ms = TIMESTAMP_MS + 1},
        {.topic = STR("orders"), .kind = OFFSET_BY_TIME, .timestamp_ms = TIMESTAMP_MS + 3},
        {.topic = STR("orders"), .kind = OFFSET_BY_TIME, .timestamp_ms = TIMESTAMP_MS + 52},
        {.topic = STR("orders"), .kind = OFFSET_MAX_TIME},
        {.topic = STR("orders"), .kind = OFFSET_MAX_TIME, .partition = 1},
        {.topic = STR("orders"), .kind = OFFSET_LATEST, .partition = 2},
    };
    static const int64_t offsets[] = {0, 6, 1, 3, -1, 4, -1, -1};
    static const int64_t times[] = {-1, -1, TIMESTAMP_MS + 1, TIMESTAMP_MS + 50, -1, TIMESTAMP_MS + 51, -1};
    struct backend_offsets call = {
        .parts = parts, .parts_count = COUNT_OF(parts), .deadline_ms = clock_ms() + LONG_MS};
    RUN(&rig, offsets, &call);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        CHECK_EQ(parts[i].status, i < 7 ? ST_OK : ST_NOT_FOUND);
        CHECK_EQ(parts[i].offset, offsets[i]);
        CHECK(i >= 7 || parts[i].timestamp_ms == times[i]);
    }
    rig_close(&rig);
}

/* ---- trimming ---- */

static enum status trim_one(struct rig *rig, int64_t offset, int64_t *start_out) {
    struct backend_trim_part part = {.topic = STR("orders"), .offset = offset};
    struct backend_trim call = {.parts = &part, .parts_count = 1, .deadline_ms = clock_ms() + LONG_MS};
    RUN(rig, trim, &call);
    *start_out = part.start_offset;
    return part.status;
}

TEST(logs_start_where_they_were_trimmed_to_also_after_a_restart) { /* D16-1, D16-3 */
    struct rig rig;
    const char *dir = test_dir();
    rig_open(&rig, dir, false);
    make_topic(&rig, "orders", 4);
    for (int32_t i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++)
            append_records(&rig, "orders", i, 3, 10, TIMESTAMP_MS);
    struct backend_trim_part parts[] = {
        {.topic = STR("orders"), .partition = 0, .offset = 4},
        {.topic = STR("orders"), .partition = 1, .offset = -1},
        {.topic = STR("orders"), .partition = 2, .offset = 10},
        {.topic = STR("orders"), .partition = 3, .offset = 2, .status = ST_INVALID},
        {.topic = STR("orders"), .partition = 4, .offset = 0},
        {.topic = STR("nope"), .partition = 0, .offset = 0},
    };
    static const enum status want[] = {ST_OK, ST_OK, ST_OUT_OF_RANGE, ST_INVALID, ST_NOT_FOUND, ST_NOT_FOUND};
    static const int64_t starts[] = {4, 9, -1, -1, -1, -1};
    struct backend_trim call = {
        .parts = parts, .parts_count = COUNT_OF(parts), .deadline_ms = clock_ms() + LONG_MS};
    RUN(&rig, trim, &call);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        CHECK_EQ(parts[i].status, want[i]);
        CHECK_EQ(parts[i].start_offset, starts[i]);
    }
    rig_close(&rig);
    rig_open(&rig, dir, false);
    struct backend_read_part reads[] = {read_part("orders", 0, 3), read_part("orders", 0, 4),
                                        read_part("orders", 1, 9), read_part("orders", 2, 0),
                                        read_part("orders", 3, 0)};
    static const int64_t log_starts[] = {-1, 4, 9, 0, 0};
    struct backend_read read = read_of(reads, COUNT_OF(reads));
    RUN(&rig, read, &read);
    for (size_t i = 0; i < COUNT_OF(reads); i++) {
        CHECK_EQ(reads[i].status, i == 0 ? ST_OUT_OF_RANGE : ST_OK);
        CHECK_EQ(reads[i].start_offset, log_starts[i]);
    }
    struct batch b;
    CHECK_EQ(batch_read(reads[1].records[0], &b), ST_OK);
    CHECK_EQ(b.base_offset, 3); /* whole, as on Kafka (K3-2) */
    CHECK_EQ(reads[2].bytes, 0);
    CHECK_EQ(append_records(&rig, "orders", 1, 1, 10, TIMESTAMP_MS), 9);
    backend_read_release(rig.backend, &read);
    rig_close(&rig);
}

TEST(what_is_to_be_compacted_only_is_not_trimmed) { /* D16-3 */
    static const char *const policies[] = {"compact", "compact,delete", "delete"}, *const names[] = {
                                                                                       "c", "cd", "d"};
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct backend_setting setting = {STR("cleanup.policy"), str_of(policies[i])};
        struct backend_create_part made = {
            .name = str_of(names[i]), .partitions_count = 1, .settings = &setting, .settings_count = 1};
        struct backend_create create = {
            .parts = &made, .parts_count = 1, .deadline_ms = clock_ms() + LONG_MS};
        RUN(&rig, create, &create);
        CHECK_EQ(made.status, ST_OK);
        struct backend_trim_part part = {.topic = made.name, .offset = -1};
        struct backend_trim call = {.parts = &part, .parts_count = 1, .deadline_ms = clock_ms() + LONG_MS};
        RUN(&rig, trim, &call);
        CHECK_EQ(part.status, i == 0 ? ST_POLICY : ST_OK);
        CHECK_EQ(part.start_offset, i == 0 ? -1 : 0);
    }
    rig_close(&rig);
}

TEST(a_log_is_not_trimmed_after_the_deadline) { /* D6-7 */
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    append_records(&rig, "orders", 0, 3, 10, TIMESTAMP_MS);
    struct backend_trim_part part = {.topic = STR("orders"), .offset = 2};
    struct backend_trim call = {.parts = &part, .parts_count = 1, .deadline_ms = clock_ms() - 1};
    RUN(&rig, trim, &call);
    CHECK_EQ(part.status, ST_TIMED_OUT);
    CHECK_EQ(part.start_offset, -1);
    int64_t start;
    CHECK_EQ(trim_one(&rig, 0, &start), ST_OK);
    CHECK_EQ(start, 0);
    rig_close(&rig);
}

TEST(times_of_records_before_the_start_are_not_found) { /* D3-2, D16-1 */
    static const struct {
        int64_t trim_to, offsets[5]; /* earliest; times 0, 1, 51; the greatest */
    } cases[] = {{0, {0, 0, 1, 4, 4}},
                 {2, {2, 2, 2, 4, 4}},
                 {4, {4, 4, 4, 4, 4}},
                 {5, {5, 5, 5, -1, 5}},
                 {6, {6, -1, -1, -1, -1}}};
    struct rig rig;
    int64_t start;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    append_records(&rig, "orders", 0, 3, 10, TIMESTAMP_MS);      /* ..000 ..001 ..002 */
    append_records(&rig, "orders", 0, 2, 10, TIMESTAMP_MS + 50); /* ..050 ..051 */
    append_records(&rig, "orders", 0, 1, 10, TIMESTAMP_MS + 20);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct backend_offset_part parts[] = {
            {.topic = STR("orders"), .kind = OFFSET_EARLIEST},
            {.topic = STR("orders"), .kind = OFFSET_BY_TIME, .timestamp_ms = TIMESTAMP_MS},
            {.topic = STR("orders"), .kind = OFFSET_BY_TIME, .timestamp_ms = TIMESTAMP_MS + 1},
            {.topic = STR("orders"), .kind = OFFSET_BY_TIME, .timestamp_ms = TIMESTAMP_MS + 51},
            {.topic = STR("orders"), .kind = OFFSET_MAX_TIME},
        };
        struct backend_offsets call = {
            .parts = parts, .parts_count = COUNT_OF(parts), .deadline_ms = clock_ms() + LONG_MS};
        CHECK_EQ(trim_one(&rig, cases[i].trim_to, &start), ST_OK);
        RUN(&rig, offsets, &call);
        for (size_t k = 0; k < COUNT_OF(parts); k++) {
            CHECK_EQ(parts[k].status, ST_OK);
            CHECK_EQ(parts[k].offset, cases[i].offsets[k]);
            CHECK_EQ(parts[k].timestamp_ms == -1, k == 0 || cases[i].offsets[k] < 0);
        }
    }
    rig_close(&rig);
}

TEST(a_request_that_inflates_too_much_is_refused_from_there_on) { /* D1-41 */
    enum { PARTS = 12 };
    struct rig rig;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    struct backend_append_part parts[PARTS];
    struct bytes batches[PARTS];
    for (int i = 0; i < PARTS; i++) {
        batches[i] = make_batch(1, 900 * 1024, TIMESTAMP_MS);
        parts[i] = (struct backend_append_part){.topic = STR("orders"), .records = batches[i]};
    }
    struct backend_append call = append_of(&rig, parts, PARTS);
    RUN(&rig, append, &call);
    CHECK_EQ(parts[0].status, ST_OK);
    CHECK_EQ(parts[8].status, ST_OK); /* 8 caps of 1 MiB hold 9 of them */
    CHECK_EQ(parts[9].status, ST_OVER_BUDGET);
    CHECK_EQ(parts[PARTS - 1].status, ST_OVER_BUDGET);
    for (int i = 0; i < PARTS; i++)
        free_batch(batches[i]);
    rig_close(&rig);
}
