/* For tests of consumer groups: topics, and heartbeats in short. */
#ifndef GROUP_CONSUMER_RIG_TEST_H
#define GROUP_CONSUMER_RIG_TEST_H

#include "group/rig_test.h"

/* The topics there are, for all rigs. parts 0: none of that name. A recreated one has another id. */
void topics_clear(struct rig *r); /* also tells the settings where to look: before rig_start */
void topic_set(const char *name, int32_t parts);
void topic_recreate(const char *name);
/* Patterns are POSIX's here, and match whole names. Not known: not yet; full: there is no room for one. */
void patterns_set(bool known, bool full);
int patterns_resolved(void); /* how often the topics of one were told */

struct beaten {
    struct group_consumer_heartbeat h;
    int done;
    char id[TEXT_SIZE];
    char assignment[20000]; /* "t:0,1;u:2;", or "-": none was told */
};
struct beat_how {
    const char *group, *member, *instance, *rack, *assignor, *regex;
    int32_t epoch;
    int32_t rebalance_ms; /* 0: 60,000 to join, else -1 */
    const char *topics;   /* "t,u"; NULL: as before */
    const char *owned;    /* "t:0,1;u:2;"; NULL: as before, or nothing to join */
};
enum group_outcome consumer_beat(struct rig *r, struct beaten *x, struct beat_how how);
#define CBEAT(r, x, ...) consumer_beat((r), (x), (struct beat_how){__VA_ARGS__})

/* "Stable uniform 3 3 a:2 t:0,1;>t:0,1;|b:..." : state, assignor, epochs; members with epoch, pattern, assigned > target. */
const char *consumer_described(struct rig *r, const char *group);
#endif
