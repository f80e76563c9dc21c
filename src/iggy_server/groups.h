/*
 * Consumer groups: who is in them, and which partition is whose. Names and ids are kept in the store, the rest in memory: a membership is
 * of a session and goes with it.
 *
 * Partitions are dealt round robin: of n members in the order they joined, the i-th has the partitions i, i + n, i + 2n, ... Every change
 * of the members, or of the topic's number of partitions, deals anew at once and makes a new generation; a member learns it by
 * sync_group, or by a poll that is refused because the partition is another's now.
 *
 * Threads: any. All is short and allowed on a loop, but groups_create and groups_delete, which block.
 * Codes are Iggy's (iggy/errors.h), 0: done. Iggy protocol: consumer groups. Opening, closing and forgetting: server.h.
 */
#ifndef IGGY_SERVER_GROUPS_H
#define IGGY_SERVER_GROUPS_H

#include "base/arena.h"
#include "iggy/message.h"
#include "iggy_server/server.h"

/* Of the whole server; over one of them: error 5010. */
#define GROUPS_MAX             100000
#define GROUPS_MEMBERS_MAX     100000
#define GROUPS_PER_SESSION_MAX 1000

/* 0; 5000: no group of the topic has this id; 5003: this name. */
uint32_t groups_find(struct groups *g, const struct topic *t, const struct iggy_identifier *id,
                     uint32_t *group_id_out) MUST_USE;

/* Whether the session is a member and the partition is dealt to it. */
bool groups_owns(struct groups *g, const struct topic *t, uint32_t group_id, uint64_t session_number,
                 uint32_t partition);

/* For a poll that names no partition: the member's partitions in turn. False: not a member, or it has none. */
bool groups_next_partition(struct groups *g, const struct topic *t, uint32_t group_id,
                           uint64_t session_number, uint32_t *partition_out);

/* One group with its members, in the arena. found false: there is none. ST_NO_MEMORY. */
enum status groups_get(struct groups *g, const struct topic *t, const struct iggy_identifier *id,
                       struct arena *a, struct iggy_get_group_res *out) MUST_USE;
/* All groups of a topic in id order, in the arena. ST_NO_MEMORY. */
enum status groups_list(struct groups *g, const struct topic *t, struct arena *a,
                        struct iggy_get_groups_res *out) MUST_USE;

/* Blocks. 5004: the name is taken; 5005: not 1..255 bytes; 5010; 2010: the topic has gone; others: the store's. */
uint32_t groups_create(struct groups *g, const struct topic *t, struct str name,
                       uint32_t *group_id_out) MUST_USE;
/* With its committed offsets, of kinds 2 and 3. Blocks. 5000, 5003 as groups_find; others: the store's. */
uint32_t groups_delete(struct groups *g, const struct topic *t, const struct iggy_identifier *id) MUST_USE;

/* Who is a member already stays as it is. 5000, 5003, 5010. */
uint32_t groups_join(struct groups *g, const struct topic *t, const struct iggy_identifier *id,
                     uint64_t session_number) MUST_USE;
/* 5000, 5003; 5006: not a member. */
uint32_t groups_leave(struct groups *g, const struct topic *t, const struct iggy_identifier *id,
                      uint64_t session_number) MUST_USE;
/* The generation and the member's partitions, in the arena. is_member false: no such group, or not in it. ST_NO_MEMORY. */
enum status groups_sync(struct groups *g, const struct topic *t, const struct iggy_identifier *id,
                        uint64_t session_number, struct arena *a, struct iggy_sync_group_res *out) MUST_USE;
#endif
