/* For the tests of bridge/: Kafka batches of any content, the same for the same seed. */
#ifndef BRIDGE_ANY_BATCH_TEST_H
#define BRIDGE_ANY_BATCH_TEST_H

#include "base/base.h"
#include "wire/records.h"

void any_seed(uint64_t number);
uint32_t any_below(uint32_t n);

#define ANY_RECORDS_MAX 24
#define ANY_HEADERS_MAX 6

/* What the last any_batch has, to compare with. */
struct any_record {
    int64_t timestamp; /* -1 or later */
    struct bytes key, value;
    struct record_header headers[ANY_HEADERS_MAX];
    int32_t headers_count;
};
extern struct any_record any_produced[ANY_RECORDS_MAX];

/* Some records, of all forms that the mapping tells apart; not finished yet. Their number. */
int any_batch(struct batch_builder *k, struct spare *out);
#endif
