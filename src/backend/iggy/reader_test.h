/* For tests: one backend_read and its backend_watch on a bridge rig, as a Fetch uses them. */
#ifndef BACKEND_IGGY_READER_TEST_H
#define BACKEND_IGGY_READER_TEST_H

#include "backend/iggy/bridge_rig_test.h"
#include "backend/iggy/fake_log_test.h"

#define READER_PARTS_MAX 2500

struct reader {
    struct bridge_rig *rig;
    int loop;
    struct backend_read read;
    struct backend_watch watch;
    struct backend_read_part parts[READER_PARTS_MAX];
    int64_t bytes_min, wait_ms, patience_ms;
    struct op begin;
    void (*fn)(struct reader *r);
    enum status outcome; /* of the last call */
    sem_t ended, begun;
};

void reader_init(struct reader *r, struct bridge_rig *rig, int loop);
struct backend_read_part *reader_add(struct reader *r, const char *topic, int32_t partition, int64_t offset);

/* Another offset, and so on, only between rounds: a reading may not change. What is there is given back first. */
void reader_release(struct reader *r);

void reader_begin(struct reader *r); /* a round */
void reader_end(struct reader *r);
void reader_run(struct reader *r); /* both */
void reader_watch_begin(struct reader *r, int64_t bytes_min, int64_t wait_ms);
enum status reader_watch_end(struct reader *r);
enum status reader_watch(struct reader *r, int64_t bytes_min, int64_t wait_ms); /* both */
void reader_cancel(struct reader *r);                                           /* the watch */

/* Offset of the first record of a part's only batch, after it was checked; how many there are; -1: no batch. */
int64_t part_base(const struct backend_read_part *p);
int32_t part_records(const struct backend_read_part *p);
int32_t part_last_delta(const struct backend_read_part *p);

/* One round for one partition, and its release. */
struct part_found {
    enum status status;
    int64_t end, base; /* base -1: no records */
    int32_t records;
};
struct part_found read_one(struct bridge_rig *rig, const char *topic, int32_t partition, int64_t offset);
#endif
