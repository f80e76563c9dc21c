/*
 * Calls for single offsets of groups (consumer kind 3, 0.12): store, delete, get, many at once (D12-21). A partition always goes through
 * the same slot, a slot has one lane for changes and one for reads, and a lane is a connection of its own: offsets wait neither
 * behind Produce nor behind polls. All on the loop.
 *
 *   offset_job_start: each part -> its lane's queue -> offset_call: view_get -> store, delete or get -> done
 *                                                              |  no such group -> create_group -> store
 *
 * Of one group and partition one change at a time is under way in a lane; the next one goes out when that has its answer. So they stay in
 * order, whatever has to be asked again.
 */
#ifndef BACKEND_IGGY_OFFSET_LANES_H
#define BACKEND_IGGY_OFFSET_LANES_H

#include "backend/iggy/view.h"

#define GROUP_PREFIX           "kafka.cg." /* D12-1: the Iggy group that keeps a Kafka group's offsets */
#define OFFSET_GROUP_BYTES_MAX IGGY_NAME_BYTES_MAX

/* The Iggy group's name, in out; len 0: no Iggy group can have it. */
struct str offset_group_name(struct str group, char out[OFFSET_GROUP_BYTES_MAX]);

struct offset_job;

/* One offset of a job, while it waits: small, as there may be tens of thousands. */
struct offset_part {
    struct str topic; /* Kafka's; len -1: by id */
    struct uuid id;
    int32_t partition;
    enum status status; /* in: ST_OK: do it. out: also ST_NOT_FOUND, of a change */
    int64_t
        offset; /* store it; negative: delete it. Of a read: what there is, -1: nothing (no such topic or group, too) */

    struct offset_job *job; /* the rest is offset_lanes.c's */
    uint64_t key;
    struct link link;
};

/*
 * in   op, group, reads, deadline_ms, parts
 * out  op.status   ST_OK: each part has its own; changes end in the order in which jobs were started, a partition at a time
 * What isn't under way at the deadline ends with ST_UNAVAILABLE, and is not done.
 */
struct offset_job {
    struct op op;
    struct str group;
    bool reads;
    int64_t deadline_ms;
    struct offset_part *parts;
    int32_t parts_count;

    struct bridge_loop *loop; /* the rest is offset_lanes.c's */
    struct timer timer;
    int32_t left; /* parts that are not done, and one while they are begun */
};
void offset_job_start(struct bridge_loop *l, struct offset_job *job);

/* Whether the server keeps offsets of external groups, as far as is known (D12-9). It does not: said by offsets_external_missing, for good. */
bool offsets_external(const struct bridge_loop *l);
void offsets_external_missing(struct bridge *b);

/* Connections of slot 0, for what isn't about one partition; NULL: no memory, or it is stopping. */
struct iggy_client *offsets_reader(struct bridge_loop *l);
struct iggy_client *offsets_writer(struct bridge_loop *l);

enum status offset_lanes_new(struct bridge_loop *l, struct offset_lanes **out) MUST_USE;
void offset_lanes_stop(struct offset_lanes *lanes); /* close the connections; what waits ends */
void offset_lanes_free(struct offset_lanes *lanes); /* takes NULL */
#endif
