/*
 * Which offsets of a group run out, by what the coordinator says of the group. No clock, no I/O. D11-67; KIP-211.
 *
 * An offset goes when it is as old as the retention time and
 *   - the group is Empty, and has been for as long; or it was never seen with members: a "simple consumer" that was given its partitions;
 *   - or no member reads its topic: in consumer groups, and in Stable classic groups of consumers.
 * What says nothing of its topics is taken to read all.
 */
#ifndef KAFKA_EXPIRY_RULES_H
#define KAFKA_EXPIRY_RULES_H

#include "backend/backend.h"
#include "group/coordinator.h"

/* Whether some of the group's offsets may go at now_ms (monotonic). After coordinator_describe with has_offsets; also inside its done. */
bool expiry_is_possible(const struct group_describe *d, int64_t now_ms, int64_t retention_ms);

struct expiry_pick {
    int64_t now_ms, retention_ms;
    struct backend_committed_part
        *offsets; /* by topic, with their ages; borrowed, ages of topics that are read become -1 */
    int32_t offsets_count;
    struct backend_commit_part *parts; /* out: what to forget, with room for parts_max */
    int32_t parts_max, parts_count;
};

/* Those that go. Inside the describe's done only, which was asked for all_metadata. Time: what members sent, and offsets. */
void expiry_pick(const struct group_describe *d, struct expiry_pick *pick);
#endif
