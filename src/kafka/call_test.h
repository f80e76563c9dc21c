/*
 * A handler alone: a request made by hand, a backend that knows two topics, and the answer decoded again.
 * No socket, no loop. The topics: "dot.ted" (id 1..) with one partition, "here" (id 2..) with three and
 * retention.ms=5. Every log has the offsets 4 to 39; the record of time t has offset t / 10.
 */
#ifndef KAFKA_CALL_TEST_H
#define KAFKA_CALL_TEST_H

#include "kafka/request_impl.h"
#include "kafka/session.h"
#include "testing/test.h"

#define CALL_NODE 5

enum {
    LIST_OFFSETS = 2,
    OFFSET_COMMIT = 8,
    OFFSET_FETCH = 9,
    FIND_COORDINATOR = 10,
    CREATE_TOPICS = 19,
    DELETE_TOPICS = 20,
    INIT_PRODUCER_ID = 22,
    FOR_LEADER_EPOCH = 23,
    DESCRIBE_CONFIGS = 32,
    CREATE_PARTITIONS = 37,
    DESCRIBE_CLUSTER = 60,
    DESCRIBE_TOPIC_PARTITIONS = 75,
};

/* What the backend was asked to do since call_open. */
struct call_fake {
    struct op *pending;
    int calls, created, deleted, grown, asked;
    int64_t deadline_ms;
    struct backend_commit_part committed; /* the last one */
};
extern struct call_fake call_fake;

extern const struct backend_ops call_managing, call_stub; /* call_stub: not a controller */

struct call {
    struct backend backend;
    struct kafka kafka;
    struct session session;
    struct request first; /* never answered, so that the answer to r stays where a test can read it */
    struct request r;
    struct arena arena; /* of the decoded answer */
    uint8_t *bytes;
};

/* Ready for one call_run; what stands in kafka may be changed before that. */
void call_open(struct call *c, const struct backend_ops *ops);

/* Run the handler and its backend calls to the end; the answer, as long as the call is open. */
const void *call_run(struct call *c, int16_t key, int16_t version, const void *in);

void call_close(struct call *c);
#endif
