/* Classic groups: what the files about them share. The state machine is in classic.c. */
#ifndef GROUP_CLASSIC_H
#define GROUP_CLASSIC_H

#include "group/group.h"

/* A protocol that members of a group have; name behind the struct. */
struct protocol {
    struct str name;
    int32_t members_count; /* who have it */
    int32_t votes;         /* while one is chosen */
};

/* One of a member's protocols, in the order of its preference. */
struct member_protocol {
    struct protocol *protocol;
    struct bytes metadata; /* behind the array */
};

/* What a member sent with its join. */
struct member_protocols {
    struct member_protocol *at; /* owned, one block */
    int32_t count;
    int32_t bytes; /* names and metadata, for the roster */
};

struct classic_group {
    struct group g;
    enum group_state state;
    bool initial; /* PreparingRebalance that began in an Empty group */
    int32_t generation;
    int64_t started_ms;            /* of an initial rebalance */
    struct str protocol_type;      /* owned; length 0: none yet */
    struct protocol *chosen;       /* in protocols; NULL: none */
    struct sorted protocols;       /* struct protocol *, by name; owned */
    struct classic_member *leader; /* NULL: none */
    int32_t members_count, pending_count;
    int32_t joined_count;   /* members with a join that waits */
    int32_t unsynced_count; /* members that have not come with SyncGroup in this generation */
    int64_t roster_bytes;
};

struct classic_member {
    struct group_member m;
    bool pending;  /* only an id that was handed out (KIP-394): nothing below session_ms is used */
    bool untold;   /* its first join waits, and nobody knows its id */
    bool unsynced; /* counted in unsynced_count */
    int32_t session_ms, rebalance_ms;
    struct member_protocols protocols;
    struct bytes assignment;  /* owned */
    struct bytes next;        /* owned: while assignments are taken over */
    struct link joins, syncs; /* calls that wait */
};

static inline struct classic_group *classic_of(struct group *g) {
    return container_of(g, struct classic_group, g);
}
static inline const struct classic_group *classic_of_const(const struct group *g) {
    return container_of(g, const struct classic_group, g);
}
static inline struct classic_member *classic_member_of(struct group_member *m) {
    return m ? container_of(m, struct classic_member, m) : NULL;
}
static inline struct classic_member *classic_member_at(const struct classic_group *g, size_t at) {
    return classic_member_of(g->g.members.rows[at]);
}

/* --- classic.c: the state machine ---------------------------------------------------------------------------------------------- */

struct classic_group *classic_add(struct coordinator *c, struct str id) MUST_USE; /* as group_add */
void classic_release(struct classic_group *g, enum group_outcome outcome);        /* all that is in it */
void classic_due(struct classic_group *g);
void classic_member_due(struct classic_member *m);

/* A member, in the tables, with nothing but its names and times. NULL: out of memory. */
struct classic_member *classic_member_add(struct classic_group *g, const struct member_names *names,
                                          bool pending) MUST_USE;
/* An id that was handed out is a member's now. */
void classic_member_claimed(struct classic_member *m);
/* A new member without protocols and times stands where a static one stood: leader, assignment, sync. What the old one has waiting ends with
 * GROUP_FENCED_INSTANCE; it is out of the tables and has nothing any more: member_free is the caller's. NULL: out of memory. */
struct classic_member *classic_member_replace(struct classic_member *old,
                                              const struct member_names *names) MUST_USE;
/* It goes; what it has waiting ends with outcome. The group is not told: classic_member_gone does that. */
void classic_member_remove(struct classic_member *m, enum group_outcome outcome);
/* A member or an unclaimed id has gone: a rebalance begins, or is over. */
void classic_member_gone(struct classic_group *g);

/* A rebalance begins: what waits for a sync is sent back. */
void classic_prepare(struct classic_group *g);
/* One goes on: is it over? No effect in other states. */
void classic_go_on(struct classic_group *g);
/* The first generation waits for more members from now on (D11-11). */
void classic_wait_for_more(struct classic_group *g);
/* The leader's assignments are in the members. */
void classic_stable(struct classic_group *g);
/* The member has come with SyncGroup, or never will. */
void classic_synced(struct classic_member *m);

void classic_park_join(struct classic_member *m, struct group_join *join);
void classic_park_sync(struct classic_member *m, struct group_sync *sync);
/* All joins, or syncs, of a member that wait end with outcome. */
void classic_end_joins(struct classic_member *m, enum group_outcome outcome);
void classic_end_syncs(struct classic_member *m, enum group_outcome outcome);
void classic_refuse_join(const struct classic_member *m, struct group_join *join, enum group_outcome outcome);
/* A join is told the generation there is; a sync its member's assignment. */
void classic_answer_join(struct classic_member *m, struct group_join *join);
void classic_answer_sync(const struct classic_member *m, struct group_sync *sync);
/* coordinator_cancel, for a call that waits. */
void classic_cancel(struct classic_member *m, struct group_call *call);

/* Waits or not; if so it has nothing to send. */
static inline bool classic_member_waits(const struct classic_member *m) {
    return !list_empty(&m->joins) || !list_empty(&m->syncs);
}

/* --- protocols.c: who has which ------------------------------------------------------------------------------------------------ */

/* A join's protocols, a repeated name left out, for classic_protocols_set or _drop. False: out of memory. */
bool classic_protocols_make(struct classic_group *g, const struct group_join *join,
                            struct member_protocols *out) MUST_USE;
void classic_protocols_drop(struct classic_group *g, struct member_protocols *p); /* fine on zeroed */
/* The member's from now on; the old ones go. */
void classic_protocols_set(struct classic_member *m, struct member_protocols *p);

/* Could this join be a member's (NULL: a new one's), with a protocol that all others have? D11-22. */
bool classic_protocols_fit(const struct classic_group *g, const struct classic_member *m,
                           const struct group_join *join);
/* Are they what the member has? */
bool classic_protocols_same(const struct classic_member *m, const struct group_join *join);
/* D11-14. The group has members; leader may be NULL. */
struct protocol *classic_protocols_choose(const struct classic_group *g);
void classic_chosen_set(struct classic_group *g, struct protocol *p); /* NULL: none */
/* What the member sent for the chosen one. */
struct bytes classic_metadata(const struct classic_member *m);
#endif
