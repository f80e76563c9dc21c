/*
 * Which Iggy stream and topic a Kafka topic is: a default stream, and a list of exceptions that comes from a file.
 * The file is read elsewhere, and comes here as rows. No I/O. Built on one thread; once sealed, any thread may look up.
 */
#ifndef BRIDGE_TOPIC_MAP_H
#define BRIDGE_TOPIC_MAP_H

#include "base/base.h"

struct topic_map_entry;

struct topic_map {
    char *default_stream;            /* owned; NULL: none yet */
    struct topic_map_entry *entries; /* owned; sorted by Kafka name once sealed */
    size_t entries_count, entries_room;
    struct topic_map_entry **by_place; /* owned; sorted by stream and topic; NULL: not sealed */
    char problem[512];                 /* one sentence after ST_INVALID */
};

/* Where a Kafka topic lives. Borrowed from the map, or from the name that was asked for. */
struct iggy_place {
    struct str stream, topic;
};

/*
 * One key of the file.
 *
 * topic   the Kafka name of [topics.NAME]; null (len -1): a key of the top level
 * key     "default_stream" at the top level; "stream" or "topic" of a topic
 * value   copied
 * ST_INVALID     an unknown key, one that was given before, a name that Kafka or Iggy can't have; problem says which
 * ST_NO_MEMORY
 */
enum status topic_map_set(struct topic_map *m, struct str topic, struct str key, struct str value) MUST_USE;

/*
 * No more rows come: checks the whole and makes it fast to look up.
 * ST_INVALID: no default stream, a topic without stream or topic, or two Kafka names that would be one Iggy topic: two
 * entries, or an entry and a name that stands for itself in the default stream. ST_NO_MEMORY.
 */
enum status topic_map_seal(struct topic_map *m) MUST_USE;

/* Whether Kafka can have a topic of this name; no other is listed to its clients. */
bool topic_map_is_kafka_name(struct str name);

/* Where a Kafka topic lives, whether it exists or not; name is a valid Kafka name, and must stay while out is used. Sealed maps only. */
void topic_map_find(const struct topic_map *m, struct str name, struct iggy_place *out);

/*
 * The Kafka name of an Iggy topic, for listings. False: it has none, as no rule points at it. shadowed_out: it lies in the default stream, and
 * an entry of its name points elsewhere, so that no Kafka client can reach it (a start-up error, A-53). Sealed maps only.
 */
bool topic_map_name_of(const struct topic_map *m, const struct iggy_place *place, struct str *name_out,
                       bool *shadowed_out);

/*
 * The streams that the map points at, each once, the default stream first. at: 0 before the first one. False: that was all. Sealed maps only.
 */
bool topic_map_next_stream(const struct topic_map *m, size_t *at, struct str *out);

void topic_map_release(struct topic_map *m); /* fine on zeroed, half-built and released */
#endif
