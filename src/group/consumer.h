/* Groups of the consumer protocol (KIP-848): what the files about them share. Heartbeats are in consumer_group.c. */
#ifndef GROUP_CONSUMER_H
#define GROUP_CONSUMER_H

#include "group/group.h"

struct consumer_member;

/* A topic that a group has to do with. Its place in the group's slots stands in the keys of its partitions. */
struct slot {
    struct uuid id;
    int32_t at; /* its place in slots */
    struct consumer_name *
        name; /* NULL: nobody subscribes to it any more, or it is gone: kept while somebody has partitions of it */
    int32_t parts_count;             /* as of the last look */
    int32_t owners_count;            /* length of owners: the most partitions there ever were */
    int32_t owned_count;             /* entries in owners */
    struct consumer_member **owners; /* who has the partition, or has still to give it up; owned array */
};

/* A topic's name that members subscribed to, or that a pattern of theirs matches; text behind the struct. */
struct consumer_name {
    struct str name;
    int32_t refs;
    int32_t slot; /* -1: there is no such topic */
};

/* Topics' names, ascending, each once. The array is owned, with a reference to each name. */
struct names {
    struct consumer_name **at;
    int32_t count;
};

/* A pattern that members subscribed with; text behind the struct. However many they are, it is resolved once. */
struct consumer_pattern {
    struct str text;
    int32_t subscribers_count;
    int64_t version;     /* of the matches; 0: not known yet */
    struct names topics; /* that it matches */
};

/* Partitions as ascending keys; owned (keep_take). */
struct parts {
    uint64_t *at;
    uint32_t count;
};

static inline uint64_t part_key(int32_t slot, int32_t part) {
    return (uint64_t)(uint32_t)slot << 32 | (uint32_t)part;
}
static inline int32_t key_slot(uint64_t key) {
    return (int32_t)(key >> 32);
}
static inline int32_t key_part(uint64_t key) {
    return (int32_t)(uint32_t)key;
}
bool parts_has(const struct parts *p, uint64_t key);

enum assignor {
    ASSIGNOR_NONE = -1, /* the server's choice */
    ASSIGNOR_UNIFORM,
    ASSIGNOR_RANGE,
};

enum consumer_step {
    STEP_STABLE,
    STEP_UNREVOKED,  /* it has to give up what is in revoking */
    STEP_UNRELEASED, /* it is at the target's epoch, but others still have some of its partitions */
};

#define EPOCH_LEAVE        (-1)
#define EPOCH_LEAVE_STATIC (-2) /* also the epoch of a static member that is away */

struct consumer_member {
    struct group_member m;
    struct deadline revoke; /* set in STEP_UNREVOKED */
    int32_t epoch, previous_epoch;
    int32_t rebalance_ms;
    enum consumer_step step;
    enum assignor assignor;
    struct names topics;                     /* that it names */
    int64_t topics_bytes;                    /* for the roster */
    struct consumer_pattern *pattern;        /* one of the group's; NULL: none */
    struct parts assigned, revoking, target; /* the first two are the member's in slot.owners */
};

struct consumer_group {
    struct group g;
    int32_t epoch, target_epoch;
    struct sorted names;    /* struct consumer_name *, by name; owned */
    struct sorted patterns; /* struct consumer_pattern *, by text; owned */
    struct slot **slots;    /* owned; entries may be NULL */
    int32_t slots_count;
    int32_t slots_full;     /* no place before this one is free */
    struct sorted by_id;    /* the slots, by topic id */
    int64_t roster_bytes;   /* what members sent with their last subscription, and each pattern once */
    int64_t refresh_ms;     /* when topics are looked up again */
    int32_t topics_version; /* the coordinator's, at the last look */
};

static inline struct consumer_group *consumer_of(struct group *g) {
    return container_of(g, struct consumer_group, g);
}
static inline const struct consumer_group *consumer_of_const(const struct group *g) {
    return container_of(g, const struct consumer_group, g);
}
static inline struct consumer_member *consumer_member_of(struct group_member *m) {
    return m ? container_of(m, struct consumer_member, m) : NULL;
}
static inline struct consumer_member *consumer_member_at(const struct consumer_group *g, size_t at) {
    return consumer_member_of(g->g.members.rows[at]);
}

/* --- consumer_group.c ---------------------------------------------------------------------------------------------------------- */

void consumer_release(struct consumer_group *g);
void consumer_member_due(struct consumer_member *m); /* silent, or it keeps what it should give up: out */
enum group_state consumer_state(const struct consumer_group *g);
enum group_outcome consumer_check_commit(struct consumer_group *g, struct group_check *check);
enum group_outcome consumer_check_fetch(const struct consumer_group *g, const struct group_check *check);

/* --- views.c ------------------------------------------------------------------------------------------------------------------- */

struct group_parts parts_view(const struct group *g, const struct parts *p);

/* --- consumer_topics.c --------------------------------------------------------------------------------------------------------- */

/* Names, in any order and perhaps twice, as the group's; given back with _drop, which takes what is zeroed. False: out of memory. */
bool consumer_names_make(struct consumer_group *g, const struct str *names, int32_t count,
                         struct names *out) MUST_USE;
void consumer_names_drop(struct consumer_group *g, struct names *names);
static inline bool names_same(const struct names *a, const struct names *b) {
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->at, b->at, (size_t)a->count * sizeof *a->at) == 0);
}

/* The group's pattern of that text (not empty), for one more member. GROUP_INVALID_REGULAR_EXPRESSION, GROUP_MAX_SIZE_REACHED, GROUP_NOT_AVAILABLE. */
enum group_outcome consumer_pattern_ref(struct consumer_group *g, struct str text,
                                        struct consumer_pattern **out) MUST_USE;
void consumer_pattern_unref(struct consumer_group *g, struct consumer_pattern *p); /* takes NULL */

/* What a member reads, by name, each once: topics that it names, and those that its pattern matches. Begin with {m}. */
struct member_topics {
    const struct consumer_member *m;
    int32_t named, matched; /* places */
};
struct consumer_name *member_topics_next(struct member_topics *it); /* NULL: that was all */

/* Look all patterns and names up. True in changed: a topic came, went, grew or is another one. False: out of memory, look again. */
bool consumer_refresh(struct consumer_group *g, bool *changed) MUST_USE;
/* Slots that nothing refers to go; no member's target does. */
void consumer_slots_tidy(struct consumer_group *g);

/* The slot of that topic; -1: none. */
int32_t consumer_slot_find(const struct consumer_group *g, const struct uuid *id);
struct consumer_member *consumer_owner(const struct consumer_group *g, uint64_t key); /* NULL: free */
void consumer_owner_set(struct consumer_group *g, uint64_t key, struct consumer_member *m);

/* --- reconcile.c --------------------------------------------------------------------------------------------------------------- */

/*
 * One step of the member towards its target, as far as what it says it owns (count -1: it doesn't say) allows.
 * False: out of memory, and nothing changed. True in changed: assigned is another one.
 */
bool consumer_reconcile(struct consumer_member *m, const struct group_topic_parts *owned, int32_t owned_count,
                        bool *changed) MUST_USE;
/* Does it own only what is in assigned? */
bool consumer_owns_only_assigned(const struct consumer_member *m, const struct group_topic_parts *owned,
                                 int32_t owned_count);
/* Its partitions are free. */
void consumer_give_up(struct consumer_member *m);

/* --- assignor.c ---------------------------------------------------------------------------------------------------------------- */

enum assignor assignor_named(struct str name); /* ASSIGNOR_NONE: there is none of that name */
/* The one that most members ask for. */
enum assignor consumer_assignor(const struct consumer_group *g);
struct str assignor_name(enum assignor assignor);
/* New targets for all members. False: out of memory, and nothing changed. */
bool consumer_assign(struct consumer_group *g) MUST_USE;
#endif
