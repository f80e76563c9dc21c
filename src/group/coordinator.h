/*
 * The group coordinator: who is a member of which consumer group, and what each one reads. Classic groups (JoinGroup, SyncGroup) and
 * groups of the consumer protocol (KIP-848). docs/GROUPS.md draws the states.
 *
 * A state machine: no I/O, no threads, no clock. Time is monotonic milliseconds and an argument; one that goes back counts as the
 * latest seen. One caller at a time, on one loop.
 *
 * A call is a struct that its caller embeds. The caller zeroes it, fills the first part, sets call.done and hands it over. `done` runs
 * exactly once: before the function returns or, for a join and a sync, perhaps later, inside another call or the tick. What the first
 * part points to must stay valid until the function returns, no longer: what is kept is copied. The second part is valid inside
 * `done`, and what it points to until `done` returns. `done` must not call the coordinator; the struct is the caller's again in it.
 * A call that waits is given up with coordinator_cancel.
 */
#ifndef GROUP_COORDINATOR_H
#define GROUP_COORDINATOR_H

#include "base/base.h"
#include "base/list.h"

struct coordinator;
struct group;
struct group_member;

/* How a call ended, under Kafka's names for it. The codes are Kafka's, for kafka/errors.c to check itself against. */
enum group_outcome {
    GROUP_OK,                    /* 0 */
    GROUP_NOT_AVAILABLE,         /* 15: a cap of the whole server, or out of memory; the client tries again */
    GROUP_NOT_COORDINATOR,       /* 16: the server is ending */
    GROUP_ILLEGAL_GENERATION,    /* 22 */
    GROUP_INCONSISTENT_PROTOCOL, /* 23 */
    GROUP_INVALID_ID,            /* 24 */
    GROUP_UNKNOWN_MEMBER,        /* 25 */
    GROUP_INVALID_SESSION_TIMEOUT,    /* 26 */
    GROUP_REBALANCE_IN_PROGRESS,      /* 27 */
    GROUP_UNSUPPORTED_VERSION,        /* 35: a member of a consumer group that commits below v9 */
    GROUP_INVALID_REQUEST,            /* 42 */
    GROUP_NON_EMPTY,                  /* 68 */
    GROUP_ID_NOT_FOUND,               /* 69 */
    GROUP_MEMBER_ID_REQUIRED,         /* 79 */
    GROUP_MAX_SIZE_REACHED,           /* 81 */
    GROUP_FENCED_INSTANCE,            /* 82 */
    GROUP_FENCED_EPOCH,               /* 110 */
    GROUP_UNRELEASED_INSTANCE,        /* 111 */
    GROUP_UNSUPPORTED_ASSIGNOR,       /* 112 */
    GROUP_STALE_EPOCH,                /* 113 */
    GROUP_INVALID_REGULAR_EXPRESSION, /* 128 */
    GROUP_CANCELED,                   /* none: coordinator_cancel; nobody waits for an answer */
};

enum group_type {
    GROUP_CLASSIC,
    GROUP_CONSUMER,
};

enum group_state {
    GROUP_STATE_DEAD, /* not there */
    GROUP_STATE_EMPTY,
    GROUP_STATE_PREPARING_REBALANCE,  /* classic: joins are collected */
    GROUP_STATE_COMPLETING_REBALANCE, /* classic: the leader has the members, its assignment is waited for */
    GROUP_STATE_STABLE,
    GROUP_STATE_ASSIGNING,   /* consumer: a new target is computed with the next heartbeat */
    GROUP_STATE_RECONCILING, /* consumer: members move to the target */
};

/* As Kafka spells them: "PreparingRebalance", "classic". Any thread. */
const char *group_state_text(enum group_state state);
const char *group_type_text(enum group_type type);

/* What a topic of that name is now. */
struct group_topic {
    struct uuid id;
    int32_t parts_count;
};

/* What is known of a pattern that members subscribe with. */
enum group_pattern {
    GROUP_PATTERN_INVALID,
    GROUP_PATTERN_NOT_AVAILABLE, /* no room or no memory for one more */
    GROUP_PATTERN_NOT_KNOWN_YET, /* it is valid; coordinator_topics_changed tells when its topics are known */
    GROUP_PATTERN_KNOWN,
};

/* The topics that a pattern matches. */
struct group_matches {
    int64_t
        version; /* in: of the last answer, 0: there was none. out: another one: names are set, and may be other ones */
    const struct str *names; /* each once; valid until the next call of a callback */
    int32_t count;
};

/* How long a member of a consumer group lives without a heartbeat, and how often it is told to send one. */
struct group_times {
    int32_t session_ms, heartbeat_ms;
};

/*
 * Limits and ways out. All times in ms. coordinator_settings_default fills in what D11-80 says; `random` has no default.
 */
struct coordinator_settings {
    int32_t session_min_ms, session_max_ms; /* of a classic member */
    int32_t rebalance_max_ms;               /* a longer rebalance timeout counts as this */
    int32_t initial_delay_ms;               /* how long the first generation waits for more members */
    int32_t
        empty_keep_ms; /* an Empty group is forgotten then, if it has no offsets; looked at again as often */
    int32_t groups_max, members_per_group_max,
        members_max;        /* ids handed out and not claimed count as members */
    int32_t protocols_max;  /* of one join */
    int32_t blob_bytes_max; /* names and metadata of one join; one assignment; topic names of one heartbeat */
    int32_t roster_bytes_max; /* what all members of a group sent with their joins */
    int64_t bytes_max;        /* all that is kept for all groups */
    int32_t consumer_session_ms,
        consumer_heartbeat_ms; /* consumer groups: where times_find says nothing else */
    int32_t
        consumer_refresh_ms; /* consumer groups: topics are looked up again this often, and after coordinator_topics_changed */

    /* 16 unpredictable bytes, for member ids. */
    void (*random)(void *ctx, uint8_t out[16]);
    /* For consumer groups: the topic of that name, from what is known without waiting; false: there is none. NULL: there are no topics. */
    bool (*topic_find)(void *ctx, struct str name, struct group_topic *out);
    /* Whether a group has committed offsets, from memory. NULL: those have in which somebody has committed since they are here. */
    bool (*has_offsets)(void *ctx, struct str group);
    /* For consumer groups: the topics that a pattern (SubscribedTopicRegex, not empty) matches, from what is known without waiting. Asked
     * once for each pattern of a group when its topics are looked up. out NULL: only whether it may be used. Itself NULL: no pattern is valid. */
    enum group_pattern (*pattern_find)(void *ctx, struct str pattern, struct group_matches *out);
    /* For consumer groups: puts those times that are set for the group itself in place of the server's, which stand there. From memory; asked
     * with each heartbeat and commit. NULL: none are. */
    void (*times_find)(void *ctx, struct str group, struct group_times *times);
    void *ctx; /* of all; borrowed */
};

void coordinator_settings_default(struct coordinator_settings *out);

/* An empty coordinator. Settings are copied. ST_NO_MEMORY, ST_INVALID (no random, or a limit of 0 or less where one is needed). */
enum status coordinator_new(const struct coordinator_settings *settings, struct coordinator **out) MUST_USE;

/* Everything goes; calls that still wait end with GROUP_NOT_COORDINATOR. Takes NULL. */
void coordinator_free(struct coordinator *c);

/* Calls that wait end with GROUP_NOT_COORDINATOR, and so does every later one. */
void coordinator_shutdown(struct coordinator *c, int64_t now_ms);

/* Does what is due: sessions that end, windows that close. When it wants to be called next; INT64_MAX: not at all. */
int64_t coordinator_tick(struct coordinator *c, int64_t now_ms);

/* The same time without doing anything: to set the timer again after a call. May be earlier than needed, never later. */
int64_t coordinator_due_ms(const struct coordinator *c);

/* The part that all calls have. */
struct group_call {
    void (*done)(struct group_call *call); /* set by the caller; container_of leads to its own struct */
    enum group_outcome outcome;            /* valid in done */
    struct group_member *member;           /* the coordinator's own: who waits */
    struct link link;                      /* the coordinator's own: in a list while it waits */
    bool joins;                            /* the coordinator's own: it is a group_join that waits */
};

/*
 * The client of a call that waits is gone: done runs now, with GROUP_CANCELED. No effect on a call that is not waiting. A member that
 * nobody can know of (its first join, its id not told yet, not static) is removed; others have their session from now on (D11-17).
 */
void coordinator_cancel(struct coordinator *c, struct group_call *call, int64_t now_ms);

/* Partitions of a consumer group's member, in ascending order of topic, each topic's together. Zeroed: none. */
struct group_parts {
    const struct group *group; /* the coordinator's own */
    const uint64_t *at, *end;  /* the coordinator's own */
};

struct group_part {
    struct uuid topic_id;
    struct str topic; /* the name it had when it was last looked up; empty: not known any more */
    int32_t part;
};

/* The next one; false: there are no more. */
bool group_parts_next(struct group_parts *parts, struct group_part *out);

/* What is known of a member. Strings that don't apply are of length -1, bytes of length 0. */
struct group_member_view {
    struct str id, instance, client_id, client_host, rack;
    struct bytes metadata;               /* classic: what it sent for the chosen protocol */
    struct bytes assignment;             /* classic */
    int32_t epoch;                       /* consumer; also for the next ones */
    int32_t topics_count;                /* names it subscribed to: group_member_topic */
    struct str pattern;                  /* that it subscribed with; length 0: none */
    struct group_parts assigned, target; /* what it has, what it is to have */
    const struct group_member *member;   /* the coordinator's own */
};

/* The nth (0..topics_count-1) topic that a member of a consumer group subscribed to by its name. */
struct str group_member_topic(const struct group_member_view *view, int32_t nth);

/* What a member of a consumer group reads, ascending, each once: topics that it named, and those that its pattern matches. Begin with {view}. */
struct group_member_topics {
    const struct group_member_view *view;
    int32_t named, matched; /* the coordinator's own */
};

/* The next one; false: that was all that is known. */
bool group_member_topics_next(struct group_member_topics *topics, struct str *out);
/* Whether that is all there is: not while its pattern has not been resolved yet. */
bool group_member_topics_known(const struct group_member_view *view);

/* Members, by ascending id. Zeroed: none. */
struct group_members {
    const struct group *group; /* the coordinator's own */
    size_t at;                 /* the coordinator's own */
    int32_t count;             /* all of them */
    bool hide_metadata;        /* the coordinator's own */
};

/* The next one; false: there are no more. */
bool group_members_next(struct group_members *members, struct group_member_view *out);

struct group_protocol {
    struct str name;
    struct bytes metadata;
};

/* JoinGroup. D11-20 to D11-30. */
struct group_join {
    struct group_call call;
    struct str group, member;   /* member empty: a new one */
    struct str instance;        /* length -1: not static */
    struct str client_id, host; /* for operators, cut at 255 bytes */
    int32_t session_ms;
    int32_t rebalance_ms; /* 0 or less (v0 has none): the session's */
    struct str protocol_type;
    const struct group_protocol *protocols;
    int32_t protocols_count;
    bool id_first; /* v4 and later: a new member that is not static must come again with an id (KIP-394) */
    bool can_skip_assignment; /* v9 and later (KIP-814) */

    struct str member_id; /* also with an error: as it came, or the new id */
    struct str leader;    /* empty with an error, as are the next two, of length -1 */
    struct str protocol_name, chosen_type;
    int32_t generation; /* -1 with an error */
    bool skip_assignment;
    struct group_members members; /* for the leader; others get none */
};
void coordinator_join(struct coordinator *c, struct group_join *join, int64_t now_ms);

struct group_assignment {
    struct str member;
    struct bytes blob;
};

/* SyncGroup. D11-40. */
struct group_sync {
    struct group_call call;
    struct str group, member, instance;
    int32_t generation;
    bool names_protocol; /* v5 and later: the next two must be those of the group */
    struct str protocol_type, protocol_name;
    const struct group_assignment *assignments; /* the leader's; a member twice: the last one counts */
    int32_t assignments_count;

    struct str chosen_type, chosen_name; /* length -1 with an error */
    struct bytes assignment;             /* length 0 with an error */
};
void coordinator_sync(struct coordinator *c, struct group_sync *sync, int64_t now_ms);

/* Heartbeat. D11-50. Nothing is allocated. */
struct group_heartbeat {
    struct group_call call;
    struct str group, member, instance;
    int32_t generation;

    int32_t
        session_ms; /* how long this member's session lasts from now; 0 with an error other than GROUP_REBALANCE_IN_PROGRESS */
};
void coordinator_heartbeat(struct coordinator *c, struct group_heartbeat *heartbeat, int64_t now_ms);

/* One identity of a LeaveGroup. D11-51, D11-52. */
struct group_leave {
    struct group_call call;
    struct str group, member, instance;
};
void coordinator_leave(struct coordinator *c, struct group_leave *leave, int64_t now_ms);

/* May this OffsetCommit, or OffsetFetch, be served? D11-65, D11-95. A commit refreshes the member's session. */
struct group_check {
    struct group_call call;
    struct str group, member, instance;
    int32_t generation; /* or member epoch */
    bool fetch; /* OffsetFetch: only members of consumer groups are checked. A member of length -1 is none */
    bool knows_epochs; /* v9 and later of both */

    int32_t session_ms; /* as group_heartbeat; 0: the group has no such member, and is served nevertheless */
};
void coordinator_check(struct coordinator *c, struct group_check *check, int64_t now_ms);

/* ConsumerGroupHeartbeat (KIP-848). D11-90 to D11-95. */
struct group_topic_parts {
    struct uuid topic_id;
    const int32_t *parts;
    int32_t parts_count;
};

struct group_consumer_heartbeat {
    struct group_call call;
    struct str group, member, instance, rack, client_id, host;
    int32_t epoch;        /* 0 joins, -1 leaves, -2: a static member leaves for a while */
    int32_t rebalance_ms; /* -1: as before */
    const struct str *topics;
    int32_t topics_count; /* -1: as before */
    struct str regex;     /* length -1: as before; 0: no pattern any more */
    struct str assignor;  /* length -1: as before, or the server's choice */
    const struct group_topic_parts *owned;
    int32_t owned_count; /* -1: as before */

    struct str member_id; /* also with an error: as it came */
    int32_t member_epoch; /* 0 with an error */
    int32_t heartbeat_ms; /* 0 with an error, and of one that leaves */
    bool has_assignment;
    struct group_parts assignment;
};
void coordinator_consumer_heartbeat(struct coordinator *c, struct group_consumer_heartbeat *heartbeat,
                                    int64_t now_ms);

/* Topics came, went or grew, or those of a pattern became known: consumer groups look theirs up again with their next heartbeat. */
void coordinator_topics_changed(struct coordinator *c);

/*
 * DescribeGroups, ConsumerGroupDescribe. GROUP_ID_NOT_FOUND: nobody knows the group, or it is of the other type (then other_type).
 * D11-60. Members show metadata and assignment when the group is Stable only, unless all_metadata is set (OffsetDelete looks into them).
 */
struct group_describe {
    struct group_call call;
    struct str group;
    enum group_type type;
    bool
        has_offsets; /* the offset store has some for it: then it is there, as an Empty classic group at least */
    bool all_metadata;

    bool other_type; /* with GROUP_ID_NOT_FOUND: it is there, as a group of the other type */
    enum group_state state;
    struct str protocol_type; /* classic; "" where only offsets are known */
    struct str protocol;      /* classic: chosen; consumer: the assignor */
    int32_t generation;       /* or group epoch */
    int32_t target_epoch;     /* consumer */
    int64_t
        empty_since_ms; /* Empty: since when, monotonic, or earlier, of one that is not known any more; -1: not Empty, or never known. D11-67 */
    struct group_members members;
};
void coordinator_describe(struct coordinator *c, struct group_describe *describe, int64_t now_ms);

/* ListGroups. D11-61. group_list_next inside done gives the groups by ascending id; filters are the caller's. */
struct group_list {
    struct group_call call;
    const struct str
        *with_offsets; /* groups that the offset store has something for, ascending by bytes, each once */
    int32_t with_offsets_count;

    const struct coordinator *coordinator; /* the coordinator's own, as the next two */
    size_t at;
    int32_t offsets_at;
};
struct group_listed {
    struct str group;
    struct str protocol_type;
    enum group_state state;
    enum group_type type;
};
void coordinator_list(struct coordinator *c, struct group_list *list, int64_t now_ms);
bool group_list_next(struct group_list *list, struct group_listed *out);

/*
 * DeleteGroups: GROUP_NON_EMPTY, GROUP_ID_NOT_FOUND, or the group is forgotten and its offsets are the caller's to delete. D11-62.
 * Also for a group whose last offset ran out: it goes too when it is Empty.
 */
struct group_delete {
    struct group_call call;
    struct str group;
    bool has_offsets;
};
void coordinator_delete(struct coordinator *c, struct group_delete *del, int64_t now_ms);

/* For metrics and tests. */
struct coordinator_counts {
    int64_t bytes; /* kept for groups and members */
    int32_t groups, members, pending;
    int32_t waiting; /* calls */
};
void coordinator_count(const struct coordinator *c, struct coordinator_counts *out);
#endif
