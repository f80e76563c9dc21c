/* Kafka's error codes: what stands in the error_code of an answer. This program's own failures: base.h enum status. */
#ifndef WIRE_KERR_H
#define WIRE_KERR_H

#include "base/base.h"

enum kerr {
#define KERR(number, name, retriable) KERR_##name = (number),
#include "wire/kerr.def"
#undef KERR
};

/* The name, as "UNKNOWN_TOPIC_OR_PARTITION"; "?" for a number that Kafka doesn't use. Static text. Any thread. */
const char *kerr_name(int16_t code);

/* Whether the Java client tries again on its own; false for a number that Kafka doesn't use. Any thread. */
bool kerr_is_retriable(int16_t code);
#endif
