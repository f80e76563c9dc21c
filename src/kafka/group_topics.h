/*
 * The topics that members of consumer groups subscribe to, as the group coordinator sees them: it must not wait for a backend, so what
 * the backend said last is kept here. D11-97.
 *
 *   a heartbeat that names topics: backend_topics on its loop -> [coordinator's loop] group_topics_put -> the coordinator -> group_topics_find
 *   any heartbeat                                             -> [coordinator's loop] group_topics_tend: backend_topics for what is due
 *                                                                      -> group_topics_put -> the next heartbeats see it
 *
 * All on the coordinator's loop, where nothing else is said.
 */
#ifndef KAFKA_GROUP_TOPICS_H
#define KAFKA_GROUP_TOPICS_H

#include "backend/backend.h"
#include "kafka/groups.h"

#define GROUP_TOPICS_MAX        32768 /* names kept; those of topics that aren't there go first */
#define GROUP_TOPICS_KNOWN_MS   30000 /* a topic is looked up again after so long */
#define GROUP_TOPICS_MISSING_MS 5000  /* a name without topic: consumers send heartbeats as often */
#define GROUP_TOPICS_TEND_MS    500   /* between two rounds of looking up */
#define GROUP_TOPICS_UNWANTED_MS \
    180000 /* a name that no group has asked for this long is forgotten: three times consumer_refresh_ms */
#define GROUP_TOPICS_LOOK_MAX     1000 /* names looked up in one round */
#define GROUP_TOPICS_LOOK_WAIT_MS 3000 /* for the backend's answer */

struct group_patterns;
struct group_topics;

/*
 * An empty table. backend borrowed; home is the coordinator's loop. groups is where the coordinator will be found once it is made.
 * ST_NO_MEMORY. Before the loops start.
 */
struct group_topics_settings {
    struct backend *backend;
    struct loop *home;
    struct groups *const *groups; /* borrowed */
};
enum status group_topics_new(const struct group_topics_settings *settings,
                             struct group_topics **out) MUST_USE;
void group_topics_free(struct group_topics *t); /* after the loops have stopped; takes NULL */

/* coordinator_settings.topic_find. A name that is new is looked up with the next group_topics_tend. */
bool group_topics_find(struct group_topics *t, struct str name, struct group_topic *out);

/*
 * What a backend said of topics, by name. c is told when a topic is another one than groups have seen. A topic that isn't there is
 * kept only if a group has asked for it; what the backend can't tell changes nothing.
 * With each heartbeat, before the coordinator is asked, also without parts: group_topics_find has its time from here.
 */
void group_topics_put(struct group_topics *t, struct coordinator *c, const struct backend_topics_part *parts,
                      int32_t count, int64_t now_ms);

/* Look up what is due, if nothing is being looked up. Call with each heartbeat. */
void group_topics_tend(struct group_topics *t, int64_t now_ms);

/* Topics were made, deleted or grown here: everything is due. Any thread; takes NULL. */
void group_topics_stir(struct group_topics *t);

/* How many partitions of how many topics there are. */
void group_parts_count(struct group_parts parts, int32_t *topics_out, int32_t *parts_out);

/* Patterns over the same topics (kafka/group_patterns.h): with them tend, stir and stop. */
struct group_patterns *group_topics_patterns(struct group_topics *t);

/* No more look-ups: the server stops. Any thread. */
void group_topics_stop(struct group_topics *t);
#endif
