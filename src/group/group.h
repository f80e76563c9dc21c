/* What the files of the coordinator share: the coordinator, groups and members of both types. */
#ifndef GROUP_GROUP_H
#define GROUP_GROUP_H

#include "base/sorted.h"
#include "group/coordinator.h"
#include "group/deadlines.h"

struct coordinator {
    struct coordinator_settings settings;
    struct sorted groups; /* struct group *, by id; owned */
    struct deadlines deadlines;
    int64_t now_ms; /* the latest time that was told */
    int64_t
        forgotten_ms; /* no group that was forgotten with its offsets there was Empty later than this; -1: none was */
    int64_t bytes; /* taken with keep_take */
    int32_t members_count, pending_count, waiting_count;
    int32_t topics_version; /* goes up with coordinator_topics_changed */
    bool busy;              /* a call is being served: done must not call in */
    bool ended;
};

/* The first part of a classic or a consumer group. */
struct group {
    struct coordinator *c;
    enum group_type type;
    struct str id; /* in the group's own block */
    struct sorted
        members; /* struct group_member *, by id; owned. Classic: also ids that are not claimed yet */
    struct sorted instances; /* the static ones of them, by instance id */
    struct deadline window;  /* of a join, a sync, or of an Empty group */
    int64_t empty_since_ms;  /* valid without members */
    bool committed;          /* somebody committed offsets */
};

/* The first part of a member of either type. Strings are in the member's own block, or of length -1. */
struct group_member {
    struct group *group;
    struct deadline session;
    struct str id, instance, client_id, host, rack;
};

/* What a member is made of; cut and copied by member_new. */
struct member_names {
    struct str id, instance, client_id, host, rack;
};

#define GROUP_ID_BYTES_MAX    246   /* D11-20: with "kafka.cg." before it a name in Iggy has 255 */
#define GROUP_TEXT_BYTES_MAX  32767 /* member id, instance id, protocol type: what a Kafka string can have */
#define GROUP_UUID_TEXT_BYTES 36

/* --- coordinator.c ------------------------------------------------------------------------------------------------------------- */

/* Memory that counts towards bytes_max, zeroed; NULL: over it, or out of memory. Free with keep_free, which takes NULL. */
void *keep_take(struct coordinator *c, size_t size) MUST_USE;
void keep_free(struct coordinator *c, void *ptr);

/* A call begins: time moves on, what is due happens. False: it has ended already, the server does. */
bool call_begin(struct coordinator *c, struct group_call *call, int64_t now_ms) MUST_USE;
/* It is over: what became due by it happens. Every call_begin that gave true needs one. */
void call_return(struct coordinator *c);
/* done runs; a call that waited does so no longer. */
void call_end(struct coordinator *c, struct group_call *call, enum group_outcome outcome);

struct group *group_find(const struct coordinator *c, struct str id); /* NULL: none */

/* Room for one more group, if need be by forgetting an Empty one. */
enum group_outcome groups_make_room(struct coordinator *c) MUST_USE;
/* A new group of that many bytes in the table, which groups_make_room made room in; NULL: out of memory. The type is set by the caller. */
struct group *group_add(struct coordinator *c, struct str id, size_t size) MUST_USE;
bool group_is_empty(const struct group *g); /* no members; ids that are not claimed don't count */
void group_emptied(struct group *g);        /* its last member has gone */
/* Out of the table and gone, whatever is in it; what waits ends with outcome. */
void group_remove(struct group *g, enum group_outcome outcome);

/* --- member.c ------------------------------------------------------------------------------------------------------------------ */

/* A member in no group's tables, of that many bytes (its type's struct); NULL: out of memory. */
struct group_member *member_new(struct group *g, const struct member_names *names, size_t size) MUST_USE;
void member_free(struct group_member *m); /* its deadlines are cleared; takes NULL */

struct group_member *member_find(const struct group *g, struct str id); /* NULL: none; "" is nobody's */
struct group_member *member_of_instance(const struct group *g,
                                        struct str instance); /* NULL: none, or length -1 */

/* Room in the tables for one more; then it may be put there. False: out of memory. */
bool members_reserve(struct group *g, bool is_static) MUST_USE;
void member_put(struct group_member *m);
void member_take(struct group_member *m); /* out of the tables */

/* Does the instance id, if one is given, belong to the member? GROUP_OK, GROUP_UNKNOWN_MEMBER, GROUP_FENCED_INSTANCE. */
enum group_outcome member_validate(const struct group *g, struct str id, struct str instance) MUST_USE;

/* "<prefix>-<uuid>" into out, which has room for prefix and 37 bytes. */
struct str member_id_make(struct coordinator *c, struct str prefix, char *out);

/* A member's client id: at most 255 bytes, no character cut in two. */
struct str text_cut(struct str s);

void session_restart(struct group_member *m, int64_t session_ms);

#endif
