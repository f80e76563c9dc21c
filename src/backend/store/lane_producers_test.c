#include "backend/store/lane_producers.h"

#include "base/mem.h"
#include "testing/test.h"

/* Ten messages, at ten times the sequence. */
static struct numbered_batch from(uint64_t id, int32_t epoch, uint32_t sequence) {
    return (struct numbered_batch){.producer_id = id,
                                   .producer_epoch = epoch,
                                   .base_sequence = sequence,
                                   .count = 10,
                                   .base_offset = (int64_t)sequence * 10};
}

static enum status ten(struct lane_producers **ps, struct numbered_batch batch, int64_t *offset) {
    return lane_producers_check(ps, &batch, offset);
}

static struct numbered_batch kafka(int32_t epoch, uint32_t sequence, int32_t count) {
    struct numbered_batch batch = from(1, epoch, sequence);
    batch.count = count;
    batch.kafka = true;
    return batch;
}

TEST(batches_in_a_row_are_new_and_the_same_again_is_not) {
    struct lane_producers *ps = NULL;
    int64_t offset = -7;
    for (uint32_t i = 0; i < 8; i++)
        CHECK_EQ(ten(&ps, from(1, 0, i * 10), &offset), ST_OK);
    CHECK_EQ(ten(&ps, from(1, 0, 70), &offset), ST_EXISTS);
    CHECK_EQ(offset, 700);
    CHECK_EQ(ten(&ps, from(1, 0, 30), &offset), ST_EXISTS);
    CHECK_EQ(offset, 300);
    CHECK_EQ(ten(&ps, from(1, 0, 20), &offset), ST_EXISTS); /* older than what is kept */
    CHECK_EQ(offset, -1);
    CHECK_EQ(ten(&ps, from(1, 0, 80), &offset), ST_OK);
    lane_producers_free(ps);
}

TEST(a_gap_and_an_overlap_are_out_of_order) {
    struct lane_producers *ps = NULL;
    int64_t offset;
    CHECK_EQ(ten(&ps, from(1, 0, 0), &offset), ST_OK);
    CHECK_EQ(ten(&ps, from(1, 0, 20), &offset), ST_BAD_SEQUENCE);
    CHECK_EQ(ten(&ps, from(1, 0, 5), &offset), ST_BAD_SEQUENCE);
    CHECK_EQ(ten(&ps, from(1, 0, 10), &offset), ST_OK);
    lane_producers_free(ps);
}

TEST(a_newer_epoch_begins_anew_and_fences_the_older_one) {
    struct lane_producers *ps = NULL;
    int64_t offset;
    CHECK_EQ(ten(&ps, from(1, 3, 0), &offset), ST_OK);
    CHECK_EQ(ten(&ps, from(1, 4, 10), &offset), ST_BAD_SEQUENCE);
    CHECK_EQ(ten(&ps, from(1, 4, 0), &offset), ST_OK);
    CHECK_EQ(ten(&ps, from(1, 3, 10), &offset), ST_FENCED);
    CHECK_EQ(ten(&ps, from(1, 4, 0), &offset), ST_EXISTS);
    CHECK_EQ(ten(&ps, from(1, 4, 10), &offset), ST_OK);
    lane_producers_free(ps);
}

TEST(sequences_begin_again_after_the_greatest) {
    struct lane_producers *ps = NULL;
    struct numbered_batch first = from(1, 0, 0);
    int64_t offset;
    first.count = INT32_MAX - 4;
    CHECK_EQ(ten(&ps, first, &offset), ST_OK);
    CHECK_EQ(ten(&ps, from(1, 0, (uint32_t)INT32_MAX - 4), &offset), ST_OK);
    CHECK_EQ(ten(&ps, from(1, 0, 5), &offset), ST_OK);
    CHECK_EQ(ten(&ps, from(1, 0, (uint32_t)INT32_MAX - 4), &offset), ST_EXISTS);
    lane_producers_free(ps);
}

/* Batches 1 to 4 are lost on their way, 5 is not. */
TEST(a_producer_that_is_not_known_begins_at_its_beginning) {
    struct lane_producers *ps = NULL;
    int64_t offset;
    CHECK_EQ(ten(&ps, from(1, 0, 50), &offset), ST_UNKNOWN_PRODUCER);
    CHECK_EQ(ten(&ps, from(1, 0, 0), &offset), ST_OK);
    lane_producers_free(ps);
}

/* D1-13, as Apache Kafka does. */
TEST(of_kafka_the_last_five_batches_are_known_and_older_ones_out_of_order) {
    struct lane_producers *ps = NULL;
    int64_t offset = -7;
    for (uint32_t i = 0; i < 7; i++)
        CHECK_EQ(ten(&ps, kafka(0, i * 10, 10), &offset), ST_OK);
    for (uint32_t i = 2; i < 7; i++) {
        CHECK_EQ(ten(&ps, kafka(0, i * 10, 10), &offset), ST_EXISTS);
        CHECK_EQ(offset, (int64_t)i * 100);
    }
    CHECK_EQ(ten(&ps, kafka(0, 10, 10), &offset), ST_BAD_SEQUENCE);
    CHECK_EQ(ten(&ps, kafka(0, 60, 5), &offset), ST_BAD_SEQUENCE); /* a part of one */
    CHECK_EQ(ten(&ps, kafka(0, 80, 10), &offset), ST_BAD_SEQUENCE);
    CHECK_EQ(ten(&ps, kafka(0, 70, 10), &offset), ST_OK);
    lane_producers_free(ps);
}

TEST(of_kafka_any_first_batch_of_an_unknown_producer_is_taken) {
    struct lane_producers *ps = NULL;
    int64_t offset;
    CHECK_EQ(ten(&ps, kafka(3, 2147483640, 10), &offset), ST_OK);
    CHECK_EQ(ten(&ps, kafka(3, 4, 1), &offset), ST_BAD_SEQUENCE);
    CHECK_EQ(ten(&ps, kafka(3, 2, 1), &offset), ST_OK);
    CHECK_EQ(ten(&ps, kafka(3, 2147483640, 10), &offset), ST_EXISTS);
    CHECK_EQ(ten(&ps, kafka(2, 3, 1), &offset), ST_FENCED);
    CHECK_EQ(ten(&ps, kafka(4, 3, 1), &offset), ST_BAD_SEQUENCE);
    CHECK_EQ(ten(&ps, kafka(7, 0, 1), &offset), ST_OK);
    lane_producers_free(ps);
}

TEST(only_so_many_are_remembered) {
    struct lane_producers *ps = NULL;
    int64_t offset;
    for (uint64_t id = 0; id <= LANE_PRODUCERS_MAX; id++)
        CHECK_EQ(ten(&ps, from(id, 0, 0), &offset), ST_OK);
    CHECK_EQ(ten(&ps, from(1, 0, 0), &offset), ST_EXISTS);
    CHECK_EQ(ten(&ps, from(0, 0, 0), &offset), ST_OK); /* the first was forgotten */
    lane_producers_free(ps);
}

TEST(without_memory_batches_are_taken_and_not_remembered) {
    for (int64_t nth = 1; nth < 6; nth++) {
        struct lane_producers *ps = NULL;
        int64_t offset;
        mem_fail_at(nth);
        CHECK_EQ(ten(&ps, from(1, 0, 0), &offset), ST_OK);
        mem_fail_at(0);
        lane_producers_free(ps);
    }
}
