/*
 * A topic's options as Iggy clients set and see them, and as the store keeps them: settings, text to text.
 *
 * What retention obeys is kept under Kafka's names, so that both sides see one thing: message_expiry as retention.ms (rounded up), max_topic_size
 * as retention.bytes, its share of a partition, and beside it as iggy.max_topic_size, which counts as long as the share is as it left it. All other options
 * are kept as iggy.KEY, numbers as digits.
 */
#ifndef IGGY_SERVER_TOPIC_OPTIONS_H
#define IGGY_SERVER_TOPIC_OPTIONS_H

#include "base/arena.h"
#include "iggy/message.h"
#include "store/store.h"

/* Settings under change. Memory: the arena. */
struct topic_settings {
    struct arena *arena;
    struct store_setting *items;
    int32_t count, room;
    uint64_t version; /* what they were loaded as */
    bool no_memory;
};

/* What t has now; t NULL: nothing. */
void topic_settings_load(struct topic_settings *s, struct arena *a, const struct topic *t);

/*
 * Set what a block of options says. 0; 3: the block isn't well formed; 4041: a key that this version doesn't have, or that an update can't
 * set (P12: 4103); 4042: a value that isn't allowed; 1019: max_topic_size below segment_size.
 *
 * version           the client's: which options there are
 * created           whether the topic is being created: else only options that change may be there
 * partitions_count  among which max_topic_size is shared
 * name_out          P12's name, a view into options; len -1: none was given
 */
struct topic_patch {
    struct bytes options;
    uint32_t version, partitions_count;
    bool created;
    struct str name;
};
uint32_t topic_settings_apply(struct topic_settings *s, struct topic_patch *patch);

/* Take an option back. 0; 4041; 4104: it can't be taken back. */
uint32_t topic_settings_reset(struct topic_settings *s, uint32_t version, struct str key);

/* Into the fields of a topic that come from its options: in the arena. ST_NO_MEMORY. */
enum status topic_options_show(const struct topic *t, uint32_t version, struct arena *a,
                               struct iggy_topic *out) MUST_USE;
#endif
