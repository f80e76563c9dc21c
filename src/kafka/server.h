/* What the handlers know of the listener they serve; the same for all connections, and constant while it runs. */
#ifndef KAFKA_SERVER_H
#define KAFKA_SERVER_H

#include <stdatomic.h>

#include "group/coordinator.h"
#include "kafka/kafka.h"
#include "net/listener.h"

#define KAFKA_LEADER_EPOCH 0 /* D4-1: everywhere, for ever */

struct kafka {
    struct kafka_settings settings; /* texts owned */
    struct listener *listener;
    struct str advertised_host; /* owned text */
    int32_t advertised_port;
    int32_t node_id; /* instance id + 1 */
    struct str cluster_id;
    _Atomic int64_t next_producer; /* D10-2, low 47 bits */
    _Atomic bool stopping;
    struct op stop;                      /* on loop 0 */
    atomic_int reading;                  /* loops that have not stopped to read requests */
    struct kafka_loop *per_loop;         /* owned; one a loop */
    struct groups *groups;               /* owned; kafka/groups.h */
    struct group_times group_times;      /* of consumer groups that have none of their own */
    struct group_topics *group_topics;   /* owned; kafka/group_topics.h */
    struct offset_expiry *offset_expiry; /* owned; kafka/offset_expiry.h; NULL: offsets stay */
    struct budget *fetches; /* owned; what Fetches have read and the clients have not yet taken */
};

/* The sessions of one loop, so that a stop can end what they wait for. */
struct kafka_loop {
    struct kafka *kafka;
    struct link sessions;
    uint64_t sessions_opened; /* ever */
    struct op stop;
};
#endif
