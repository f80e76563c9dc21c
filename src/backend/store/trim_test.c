/* Logs that start later, seen through the backend: reads, times and records of either format. */
#include "backend/store/rig_test.h"
#include "base/clock.h"
#include "testing/test.h"
#include "wire/records.h"

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

static int64_t found_by_time(struct rig *rig, enum backend_offset_kind kind, int64_t after) {
    struct backend_offset_part part = {
        .topic = STR("orders"), .kind = kind, .timestamp_ms = TIMESTAMP_MS + after};
    struct backend_offsets call = {.parts = &part, .parts_count = 1, .deadline_ms = clock_ms() + LONG_MS};
    RUN(rig, offsets, &call);
    CHECK_EQ(part.status, ST_OK);
    return part.offset;
}

TEST(where_a_log_starts_within_a_batch_only_the_messages_from_there_on_count) { /* D3-2, D16-1 */
    const uint64_t first[] = {ORIGIN_US + 90000, ORIGIN_US + 10000, ORIGIN_US + 40000, ORIGIN_US + 30000},
                   second[] = {ORIGIN_US + 20000, ORIGIN_US + 35000};
    struct rig rig;
    int64_t start;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    append_messages(&rig, 0, first, 4);
    append_messages(&rig, 0, second, 2);
    CHECK_EQ(found_by_time(&rig, OFFSET_MAX_TIME, 0), 0);
    CHECK_EQ(trim_one(&rig, 1, &start), ST_OK);
    CHECK_EQ(found_by_time(&rig, OFFSET_MAX_TIME, 0), 2);
    CHECK_EQ(found_by_time(&rig, OFFSET_BY_TIME, 41), -1);
    CHECK_EQ(found_by_time(&rig, OFFSET_BY_TIME, 40), 2);
    CHECK_EQ(found_by_time(&rig, OFFSET_BY_APPEND, 0), 1);
    CHECK_EQ(trim_one(&rig, 3, &start), ST_OK);
    CHECK_EQ(found_by_time(&rig, OFFSET_MAX_TIME, 0), 5);
    CHECK_EQ(found_by_time(&rig, OFFSET_BY_TIME, 31),
             5); /* the batch before has a later one, which is gone */
    CHECK_EQ(found_by_time(&rig, OFFSET_BY_TIME, 5), 3);
    CHECK_EQ(found_by_time(&rig, OFFSET_BY_APPEND, 0), 3);
    struct backend_read_part part = read_part("orders", 0, 3);
    struct backend_read read = read_of(&part, 1);
    struct batch b;
    RUN(&rig, read, &read);
    CHECK_EQ(part.status, ST_OK);
    CHECK_EQ(batch_read(part.records[0], &b), ST_OK);
    CHECK_EQ(b.base_offset, 3); /* mapped for this read, so from there on */
    CHECK_EQ(b.last_offset_delta, 2);
    backend_read_release(rig.backend, &read);
    rig_close(&rig);
}
