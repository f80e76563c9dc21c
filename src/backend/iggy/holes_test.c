/* G-6 */
#include "backend/iggy/holes.h"

#include "base/mem.h"
#include "testing/test.h"
#include "wire/records.h"

struct numbered {
    struct spare memory;
    struct backend_append_part part;
};

/* Ten records from a sequence number on, to partition 0 of "t". */
static struct backend_append_part *ten_from(struct numbered *n, int64_t producer_id, int16_t epoch,
                                            int32_t sequence) {
    struct batch_builder b;
    struct bytes made;
    CHECK_EQ(batch_builder_init(&b, &n->memory, 1000), ST_OK);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(batch_builder_add(&b, 1000, -1, BYTES_NULL, BYTES_NULL, NULL, 0), ST_OK);
    b.producer_id = producer_id;
    b.producer_epoch = epoch;
    b.base_sequence = sequence;
    CHECK_EQ(batch_builder_finish(&b, 0, CODEC_NONE, NULL, &made), ST_OK);
    n->part = (struct backend_append_part){.topic = STR("t"), .records = made};
    return &n->part;
}

static struct numbered n;
static int64_t now_ms;

static void note(struct holes *h, int32_t sequence, bool stored) {
    holes_note(h, 1, ten_from(&n, 7, 0, sequence), stored, now_ms);
}

static bool before(struct holes *h, int32_t sequence) {
    return holes_before(h, 1, ten_from(&n, 7, 0, sequence), now_ms);
}

static struct holes *open_holes(void) {
    struct holes *h = NULL;
    CHECK_EQ(holes_new(&h), ST_OK);
    return h;
}

static void close_holes(struct holes *h) {
    holes_free(h);
    spare_release(&n.memory);
    n = (struct numbered){0};
}

TEST(what_is_behind_a_failed_batch_waits_until_it_comes_again) {
    struct holes *h = open_holes();
    note(h, 0, true);
    CHECK(!before(h, 10));
    note(h, 20, false);
    note(h, 10, false); /* fails later than the one behind it */
    note(h, 30, false);
    CHECK(!before(h, 10));
    CHECK(before(h, 20));
    CHECK(before(h, 30));
    note(h, 0, true); /* once more: it fills nothing */
    CHECK(before(h, 20));
    note(h, 10, true);
    CHECK(!before(h, 20));
    CHECK(before(h, 30)); /* 20 has failed, too */
    note(h, 20, true);
    CHECK(!before(h, 30));
    CHECK(before(h, 40));
    note(h, 30, true);
    CHECK(!before(h, 40));
    CHECK(!before(h, 50));
    close_holes(h);
}

TEST(one_that_fails_again_is_missing_though_those_before_it_have_come) {
    struct holes *h = open_holes();
    note(h, 0, false);
    note(h, 10, false);
    note(h, 10, false);
    note(h, 0, true);
    CHECK(before(h, 20));
    close_holes(h);
}

TEST(what_is_before_a_stored_batch_is_not_missing) {
    struct holes *h = open_holes();
    note(h, 10, false);
    note(h, 20, true); /* by a server that has looked at the numbers */
    CHECK(!before(h, 30));
    note(h, 40, false);
    note(h, 30, true);
    CHECK(before(h, 50));
    close_holes(h);
}

TEST(a_newer_epoch_knows_nothing_of_failed_batches) {
    struct holes *h = open_holes();
    note(h, 10, false);
    CHECK(!holes_before(h, 1, ten_from(&n, 7, 1, 20), now_ms));
    holes_note(h, 1, ten_from(&n, 7, 1, 0), true, now_ms);
    CHECK(!before(h, 20));
    note(h, 10, false);
    holes_note(h, 1, ten_from(&n, 7, 1, 0), false, now_ms);
    CHECK(holes_before(h, 1, ten_from(&n, 7, 1, 10), now_ms));
    CHECK(!before(h, 20));
    close_holes(h);
}

TEST(other_producers_partitions_and_topics_don_t_wait) {
    struct holes *h = open_holes();
    note(h, 10, false);
    CHECK(!holes_before(h, 1, ten_from(&n, 8, 0, 20), now_ms));
    struct backend_append_part *part = ten_from(&n, 7, 0, 20);
    part->partition = 1;
    CHECK(!holes_before(h, 1, part, now_ms));
    part->partition = 0;
    part->topic = STR("u");
    CHECK(!holes_before(h, 1, part, now_ms));
    part->topic = STR_NULL;
    CHECK(!holes_before(h, 1, part, now_ms));
    holes_note(h, 1, part, false, now_ms);
    part = ten_from(&n, 7, 0, 30);
    part->topic = STR_NULL;
    CHECK(holes_before(h, 1, part, now_ms));
    part->id.b[3] = 1;
    CHECK(!holes_before(h, 1, part, now_ms));
    close_holes(h);
}

TEST(a_new_connection_knows_nothing_of_failed_batches) {
    struct holes *h = open_holes();
    note(h, 10, false);
    CHECK(!holes_before(h, 2, ten_from(&n, 7, 0, 20), now_ms));
    holes_note(h, 2, ten_from(&n, 7, 0, 10), true, now_ms);
    CHECK(before(h, 20));
    close_holes(h);
}

TEST(numbers_of_batches_begin_again_after_the_greatest) {
    struct holes *h = open_holes();
    note(h, INT32_MAX - 4, false);
    CHECK(before(h, 5));
    CHECK(!before(h, INT32_MAX - 14));
    note(h, INT32_MAX - 4, true);
    CHECK(!before(h, 5));
    close_holes(h);
}

TEST(batches_without_a_number_are_not_looked_at) {
    struct holes *h = open_holes();
    holes_note(h, 1, ten_from(&n, -1, -1, -1), false, now_ms);
    CHECK(!holes_before(h, 1, ten_from(&n, -1, -1, -1), now_ms));
    struct backend_append_part none = {.topic = STR("t"), .records = BYTES_NULL};
    holes_note(h, 1, &none, false, now_ms);
    note(h, 10, false);
    CHECK(!holes_before(h, 1, &none, now_ms));
    close_holes(h);
}

TEST(a_failed_batch_that_does_not_come_again_is_forgotten) {
    struct holes *h = open_holes();
    now_ms = 1000;
    note(h, 10, false);
    now_ms += HOLE_MS - 1;
    CHECK(before(h, 20));
    note(h, 20, false); /* refused for it: that keeps nothing missing */
    now_ms += 1;
    CHECK(!before(h, 20));
    note(h, 30, false);
    CHECK(!before(h, 20));
    CHECK(before(h, 40));
    now_ms += HOLE_MS - 1;
    note(h, 30, false); /* has failed again */
    now_ms += HOLE_MS - 1;
    CHECK(before(h, 40));
    close_holes(h);
}

TEST(so_many_failed_batches_are_known_and_then_the_oldest_is_not) {
    struct holes *h = open_holes();
    for (int64_t id = 0; id < HOLES_MAX; id++)
        holes_note(h, 1, ten_from(&n, id, 0, 10), false, now_ms);
    CHECK(holes_before(h, 1, ten_from(&n, 0, 0, 20), now_ms));
    for (int64_t id = HOLES_MAX; id < HOLES_MAX + 5; id++)
        holes_note(h, 1, ten_from(&n, id, 0, 10), false, now_ms);
    CHECK(holes_before(h, 1, ten_from(&n, HOLES_MAX + 4, 0, 20), now_ms));
    CHECK(!holes_before(h, 1, ten_from(&n, 0, 0, 20), now_ms));
    CHECK(!holes_before(h, 1, ten_from(&n, 4, 0, 20), now_ms));
    CHECK(holes_before(h, 1, ten_from(&n, 5, 0, 20), now_ms));
    for (int64_t id = 5; id < HOLES_MAX + 5; id++)
        holes_note(h, 1, ten_from(&n, id, 0, 10), true, now_ms);
    for (int64_t id = 0; id < HOLES_MAX + 5; id++)
        CHECK(!holes_before(h, 1, ten_from(&n, id, 0, 20), now_ms));
    close_holes(h);
}
