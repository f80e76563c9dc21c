/*
 * Settings that clients change: what AlterConfigs and IncrementalAlterConfigs have in common (D9-7, D9-10). On a request's loop.
 *
 *   alter_start -> backend_topics -> backend_configure -> [groups are named: backend_configure_groups] -> the caller's op
 *                       ^                    |                         ^           |
 *                       +--------------------+                         +-----------+ somebody else has changed the group
 *                       somebody else has changed a list that was to be added to
 */
#ifndef KAFKA_ALTER_H
#define KAFKA_ALTER_H

#include "kafka/configs.h"
#include "kafka/request.h"

/* in: all but the outcome; out: the outcome. */
struct alter_resource {
    struct str name;
    const struct config_wish *entries;
    int32_t entries_count;
    int8_t type;
    int16_t error_code;
    struct str error_message;
};

/* All memory: the request's. */
struct alter {
    struct op op; /* the caller's: done when every resource has its outcome */
    struct request *request;
    struct alter_resource *resources;
    int32_t resources_count;
    bool replaces; /* what isn't named becomes as if it had never been set (AlterConfigs) */
    bool validate_only;

    struct backend_topics
        topics; /* the rest is alter.c's; at the index that the resource has in the request */
    struct backend_configure configure;
    struct backend_configure_groups groups;
    struct config_shown *shown; /* room for one topic's */
};

/* With room for so many resources, each without an outcome. NULL: the request has been closed. */
struct alter *alter_new(struct request *r, int32_t resources_count) MUST_USE;

/* Start it; op is initialised. Where the request must be closed it is, and op never done. */
void alter_start(struct alter *a);
#endif
