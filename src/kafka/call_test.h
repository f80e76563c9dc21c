/*
 * A handler alone: a request made by hand, a backend that knows two topics, and the answer decoded again.
 * No socket; a loop of its own, on which the group coordinator lives too. The topics: "dot.ted" (id 1..) with one partition, "here" (id 2..) with three and
 * retention.ms=5. Every log has the offsets 4 to 39; the record of time t has offset t / 10.
 */
#ifndef KAFKA_CALL_TEST_H
#define KAFKA_CALL_TEST_H

#include <semaphore.h>

#include "kafka/groups.h"
#include "kafka/request_impl.h"
#include "kafka/session.h"
#include "testing/test.h"

#define CALL_NODE 5

enum {
    LIST_OFFSETS = 2,
    OFFSET_COMMIT = 8,
    OFFSET_FETCH = 9,
    FIND_COORDINATOR = 10,
    JOIN_GROUP = 11,
    HEARTBEAT = 12,
    LEAVE_GROUP = 13,
    SYNC_GROUP = 14,
    DESCRIBE_GROUPS = 15,
    LIST_GROUPS = 16,
    CREATE_TOPICS = 19,
    DELETE_TOPICS = 20,
    DELETE_RECORDS = 21,
    INIT_PRODUCER_ID = 22,
    FOR_LEADER_EPOCH = 23,
    DESCRIBE_CONFIGS = 32,
    ALTER_CONFIGS = 33,
    CREATE_PARTITIONS = 37,
    DELETE_GROUPS = 42,
    INCREMENTAL_ALTER_CONFIGS = 44,
    OFFSET_DELETE = 47,
    DESCRIBE_CLUSTER = 60,
    CONSUMER_GROUP_HEARTBEAT = 68,
    CONSUMER_GROUP_DESCRIBE = 69,
    DESCRIBE_TOPIC_PARTITIONS = 75,
};

/* What the backend was asked to do since call_open, and what it says. */
struct call_fake {
    int calls, created, deleted, grown, trimmed, asked, commits, forgets;
    struct str forgotten; /* the last group */
    enum status forget_status;
    enum status groups_status;         /* of a list */
    struct backend_change changes[64]; /* of the last configure that changed something */
    int configured, changes_count;
    enum status configure_status; /* what the next one that would be fine comes to */
    const char *configure_reason;
    int64_t deadline_ms, keep_longer_ms;
    struct backend_commit_part committed; /* the last one */
    struct backend_group_settings group;  /* what is set for group "g" */
    int groups_configured;
    enum status group_status; /* what the next change of a group comes to */
};
extern struct call_fake call_fake;

/* call_bridge: as call_managing, but keeps no settings of groups; call_stub: not a controller. */
extern const struct backend_ops call_managing, call_bridge, call_stub;

/* Groups with offsets: "committed" and "lost". Settings of the coordinator: the first generation waits for nobody. */
struct call {
    struct backend backend;
    struct loop *loop;
    struct kafka kafka;
    struct session session;
    struct request first; /* never answered, so that the answer to r stays where a test can read it */
    struct request r;
    struct arena arena; /* of the decoded answers */
    sem_t answered;
    bool owns_server; /* false: call_open_beside */
};

/* Ready for calls; what stands in kafka may be changed before the first. */
void call_open(struct call *c, const struct backend_ops *ops);

/* Run the handler and what it starts to the end; the answer, as long as the call is open. */
const void *call_run(struct call *c, int16_t key, int16_t version, const void *in);

/* The same in two steps: what happens in between, call_leave or call_run of another, may be what it waits for. */
void call_start(struct call *c, int16_t key, int16_t version, const void *in);
const void *call_finish(struct call *c);

/* The client has hung up: what waits is given up. */
void call_leave(struct call *c);

/* A second client of the same server, which is open longer. */
void call_open_beside(struct call *c, const struct call *server);

void call_close(struct call *c);
#endif
