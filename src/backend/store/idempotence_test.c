/* Batches of idempotent Kafka producers on the embedded log. D1-13. */
#include "backend/store/rig_test.h"
#include "testing/test.h"
#include "wire/records.h"

/* Two records of an idempotent Kafka producer. What comes of it; *offset: where. */
static enum status append_idempotent(struct rig *rig, int32_t sequence, int64_t *offset) {
    const struct bytes value = {(const uint8_t *)"v", 1};
    struct spare out = {0};
    struct batch_builder k;
    struct backend_append_part part = {.topic = STR("orders")};
    CHECK_EQ(batch_builder_init(&k, &out, TIMESTAMP_MS), ST_OK);
    k.producer_id = 77;
    k.producer_epoch = 0;
    k.base_sequence = sequence;
    for (int i = 0; i < 2; i++)
        CHECK_EQ(batch_builder_add(&k, TIMESTAMP_MS, -1, BYTES_NULL, value, NULL, 0), ST_OK);
    CHECK_EQ(batch_builder_finish(&k, 0, CODEC_NONE, NULL, &part.records), ST_OK);
    struct backend_append append = append_of(rig, &part, 1);
    append.durable = true;
    RUN(rig, append, &append);
    spare_release(&out);
    *offset = part.base_offset;
    return part.status;
}

TEST(an_idempotent_kafka_batch_is_stored_once_and_in_order) { /* D1-13 */
    struct rig rig;
    int64_t offset;
    rig_open(&rig, test_dir(), false);
    make_topic(&rig, "orders", 1);
    CHECK_EQ(append_idempotent(&rig, 0, &offset), ST_OK);
    CHECK_EQ(append_records(&rig, "orders", 0, 1, 10, 5), 2); /* another's between them changes nothing */
    CHECK_EQ(append_idempotent(&rig, 2, &offset), ST_OK);
    CHECK_EQ(offset, 3);
    CHECK_EQ(append_idempotent(&rig, 0, &offset), ST_OK); /* again: where it is */
    CHECK_EQ(offset, 0);
    CHECK_EQ(append_idempotent(&rig, 6, &offset), ST_BAD_SEQUENCE);
    CHECK_EQ(append_idempotent(&rig, 1, &offset), ST_BAD_SEQUENCE);
    CHECK_EQ(offset, -1);
    CHECK_EQ(append_records(&rig, "orders", 0, 1, 10, 5), 5);
    rig_close(&rig);
}

TEST(an_idempotent_kafka_batch_is_known_after_a_restart_too) {
    struct rig rig;
    const char *dir = test_dir();
    int64_t offset;
    rig_open(&rig, dir, false);
    make_topic(&rig, "orders", 1);
    for (int32_t sequence = 0; sequence < 6; sequence += 2)
        CHECK_EQ(append_idempotent(&rig, sequence, &offset), ST_OK);
    rig_close(&rig);
    rig_open(&rig, dir, false);
    CHECK_EQ(append_idempotent(&rig, 8, &offset), ST_BAD_SEQUENCE);
    CHECK_EQ(append_idempotent(&rig, 2, &offset), ST_OK);
    CHECK_EQ(offset, 2);
    CHECK_EQ(append_idempotent(&rig, 6, &offset), ST_OK);
    CHECK_EQ(offset, 6);
    rig_close(&rig);
}
