/* Status to Kafka error code: the one place where that is translated. */
#ifndef KAFKA_ERRORS_H
#define KAFKA_ERRORS_H

#include "base/base.h"
#include "wire/kerr.h"

/* The code that says what st means to a Kafka client. */
int16_t kerr_of(enum status st);

/* As kerr_of, for Produce: what a producer must retry gets a code it retries. */
int16_t kerr_of_append(enum status st);

/* As kerr_of, within what a Java consumer takes for a partition: 0, 1, 3, 6, 29, 100, 2, -1 (D.2 codes). */
int16_t kerr_of_read(enum status st);

/* As kerr_of, for the offsets of groups: what can be tried again is 14, or 16 where the disk refused, as on Kafka (D12-4, D12-13, F). */
int16_t kerr_of_offsets(enum status st);
#endif
