/* What may be the name of a topic: Kafka's rule, checked before any backend is asked. Any thread. */
#ifndef KAFKA_TOPIC_NAME_H
#define KAFKA_TOPIC_NAME_H

#include "base/arena.h"

#define TOPIC_NAME_BYTES_MAX 249

/* 1 to 249 bytes of A-Z a-z 0-9 . _ -, and neither "." nor "..". A null name is not valid. */
bool topic_name_is_valid(struct str name);

/* What is wrong with a name that is not valid, in Kafka's words. ptr NULL: no memory. */
struct str topic_name_problem(struct arena *a, struct str name) MUST_USE;

/* Whether it holds a '.' or a '_': only such names can collide. */
bool topic_name_can_collide(struct str name);

/* Two names that differ only in '.' and '_': one metric name in Kafka, so the second is refused.
 * Equal names don't collide. */
bool topic_name_collides(struct str a, struct str b);

/* Kafka's own topics, as Metadata marks them. */
bool topic_name_is_internal(struct str name);

#endif
