/*
 * Which topics the patterns match that members of consumer groups subscribe with, as the group coordinator sees it: from memory. D11-99.
 *
 *   a heartbeat with a pattern: pattern_new in the pool -> [coordinator's loop] group_patterns_offer -> the coordinator -> group_patterns_find
 *   any heartbeat              -> [coordinator's loop] group_patterns_tend: all topics of the backend, if it is time
 *                              -> in the pool: each pattern is matched with them -> [coordinator's loop] what has changed is put in place
 *
 * A pattern is one row however many groups have it, and is matched again only when the names of topics are other ones. It is compiled in the
 * pool alone, and only while it is matched: what stays is a bit a topic. On the coordinator's loop, where nothing else is said.
 */
#ifndef KAFKA_GROUP_PATTERNS_H
#define KAFKA_GROUP_PATTERNS_H

#include "kafka/group_topics.h"

#define GROUP_PATTERNS_MAX 1000 /* patterns kept, of all groups; more: GROUP_PATTERN_NOT_AVAILABLE */
#define GROUP_PATTERNS_LIST_MS \
    5000 /* topics are listed again after so long: consumers send heartbeats as often */
#define GROUP_PATTERNS_STIR_MS    500 /* and after so long where topics were changed through this server */
#define GROUP_PATTERNS_TOPICS_MAX GROUP_TOPICS_MAX /* the first ones by name; more are not seen */

/* A pattern that takes more of a processor to match with all topics is refused: this much, and this much more for each topic. */
#define GROUP_PATTERNS_MATCH_US       50000
#define GROUP_PATTERNS_MATCH_TOPIC_US 20

struct group_patterns;

/* Settings as group_topics_new; topics gets to know the topics that are matched, and is borrowed. ST_NO_MEMORY. */
enum status group_patterns_new(const struct group_topics_settings *settings, struct group_topics *topics,
                               struct group_patterns **out) MUST_USE;
void group_patterns_free(struct group_patterns *t); /* after the loops have stopped; takes NULL */

/*
 * What a heartbeat is about to bring to the coordinator: a pattern, and what pattern_new says of it: ST_OK, ST_INVALID, or ST_NO_MEMORY. Borrowed
 * until the next call of this. Where nothing is offered a pattern is taken for valid.
 * With each heartbeat, before the coordinator is asked, also with a null pattern: group_patterns_find has its time from here.
 */
void group_patterns_offer(struct group_patterns *t, struct str pattern, enum status st, int64_t now_ms);

/* coordinator_settings.pattern_find. A pattern that is new is matched after the next group_patterns_tend. */
enum group_pattern group_patterns_find(struct group_patterns *t, struct str pattern,
                                       struct group_matches *out);

/* Match what is new or due, if nothing is being matched. With each heartbeat, after the coordinator was asked. */
void group_patterns_tend(struct group_patterns *t, int64_t now_ms);

/* As group_topics_stir and group_topics_stop, which call these. Any thread. */
void group_patterns_stir(struct group_patterns *t);
void group_patterns_stop(struct group_patterns *t);
#endif
