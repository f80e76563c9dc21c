/* What the requests that manage topics have in common. */
#ifndef KAFKA_ADMIN_H
#define KAFKA_ADMIN_H

#include "kafka/request.h"

#define ADMIN_TOPICS_MAX \
    100 /* D6-6, D7-3, D9-2: topics a request may create, delete, grow or change; groups alike */
#define ADMIN_PARTITIONS_MAX         1000  /* of a topic */
#define ADMIN_REQUEST_PARTITIONS_MAX 10000 /* that one request may make, as Kafka */

#define ADMIN_TOO_MANY_TOPICS     STR("A request may name at most 100 topics.")
#define ADMIN_TOO_MANY_GROUPS     STR("A request may name at most 100 groups.")
#define ADMIN_TOO_MANY_PARTITIONS STR("A topic may have at most 1000 partitions.")

/* Bits of the operations that Kafka knows, all of them: nothing is refused to anyone who may connect. */
#define OPERATIONS_OF_CLUSTER 8096
#define OPERATIONS_OF_TOPIC   3576
#define OPERATIONS_NOT_ASKED  INT32_MIN

enum resource_type {
    RESOURCE_TOPIC = 2,
    RESOURCE_BROKER = 4,
    RESOURCE_BROKER_LOGGER = 8,
    RESOURCE_GROUP = 32
};

/* What is wrong with the name of a node whose settings are asked for; len -1: nothing. any: "" stands for all nodes. */
struct str admin_node_problem(struct request *r, struct str name, bool any);

/* Log where settings that a topic has got ask for compaction, which is never done (D6-3). */
void admin_warn_of_compaction(struct str topic, const struct backend_setting *settings, int32_t count);

/* Until when a request with this timeout_ms may run: 1 s to 30 s from its arrival (D6-7). Monotonic. */
int64_t admin_deadline_ms(const struct request *r, int32_t timeout_ms);

/* Call where an answer grows with what the server holds, not with what was sent: 64 MiB more for the request. */
void admin_allow_listing(struct request *r);

/* What is wrong with the brokers that a partition is wanted on: this node alone is right. len -1: nothing.
 * Static text. */
struct str admin_assignment_problem(const struct request *r, struct int32s brokers);

/* The text that goes with what a backend said; null where Kafka sends none. Static text. */
struct str admin_message(enum status st);

/* An id that nobody has: version 4, from the system's random numbers. */
struct uuid admin_random_uuid(void);
#endif
