/* For tests: a coordinator with a clock by hand and ids that repeat, and calls in short. */
#ifndef GROUP_RIG_TEST_H
#define GROUP_RIG_TEST_H

#include "group/coordinator.h"

#define WAITS     ((enum group_outcome)100) /* what a call that is not done yet is said to have come to */
#define TEXT_SIZE 300

struct rig {
    struct coordinator *c;
    struct coordinator_settings settings;
    int64_t now;
    uint64_t seed;
};

/* The default settings with small changes by the test: rig_settings, changes, rig_start. Each is released with rig_end, which checks that
 * nothing waits. rig_begin is the first two. */
void rig_settings(struct rig *r);
void rig_start(struct rig *r);
void rig_begin(struct rig *r);
void rig_end(struct rig *r);
void rig_wait(struct rig *r, int64_t ms); /* time passes, in steps of what the coordinator asks for */

/* What a call came to. done counts; texts are copies. */
struct joined {
    struct group_join j;
    int done;
    char id[TEXT_SIZE], leader[TEXT_SIZE], protocol[TEXT_SIZE], type[TEXT_SIZE];
    char roster[20000]; /* "id=metadata;id/instance=metadata;" */
    int32_t roster_count;
};
struct join_how {
    const char *group, *member, *instance, *client; /* NULL: "g", "", none, "c" */
    const char *type;                               /* NULL: "consumer" */
    const char *protocols;            /* NULL: "range:m"; "name:metadata,name:metadata"; "": none */
    int32_t session_ms, rebalance_ms; /* 0: 10,000, 60,000; rebalance -1: none */
    bool v4, v9;
};
enum group_outcome join_how(struct rig *r, struct joined *x, struct join_how how);
#define JOIN(r, x, ...) join_how((r), (x), (struct join_how){__VA_ARGS__})

struct synced {
    struct group_sync s;
    int done;
    char assignment[TEXT_SIZE], protocol[TEXT_SIZE], type[TEXT_SIZE];
};
struct sync_how {
    const char *group, *member, *instance;
    int32_t generation;
    const char *assign; /* "member:blob,member:blob" */
    bool v5;
    const char *type, *protocol; /* v5; "-": null */
};
enum group_outcome sync_how(struct rig *r, struct synced *x, struct sync_how how);
#define SYNC(r, x, ...) sync_how((r), (x), (struct sync_how){__VA_ARGS__})

struct who {
    const char *group, *member, *instance;
    int32_t generation;
    bool v9, fetch;
};
enum group_outcome beat_who(struct rig *r, struct who who);
enum group_outcome leave_who(struct rig *r, struct who who);
enum group_outcome check_who(struct rig *r, struct who who);
#define BEAT(r, ...)         beat_who((r), (struct who){__VA_ARGS__})
#define LEAVE(r, ...)        leave_who((r), (struct who){__VA_ARGS__})
#define CHECK_COMMIT(r, ...) check_who((r), (struct who){__VA_ARGS__})

/* "Stable consumer range 3 id@host=metadata>assignment;" of a group, or "Dead" */
const char *described(struct rig *r, const char *group, bool has_offsets);
/* "g Stable consumer classic;" of all groups; with_offsets ends with NULL, or is NULL */
const char *listed(struct rig *r, const char *const *with_offsets);
enum group_outcome deleted(struct rig *r, const char *group, bool has_offsets);
struct coordinator_counts counts(struct rig *r);

/* A group "g" of that many dynamic members (v4), Stable in generation 1; ids into xs. The first one leads, and has rebalance timeout 60 s and session 10 s,
 * as all. Assignments are "a0", "a1" ... */
void stable_group(struct rig *r, struct joined *xs, int count);

struct str text_or_null(const char *text);

/* printf behind what is in text, which has size bytes. */
void text_add(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
#endif
