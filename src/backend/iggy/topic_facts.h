/* What get_topic and get_topics say of a topic, in one form for all versions. */
#ifndef BACKEND_IGGY_TOPIC_FACTS_H
#define BACKEND_IGGY_TOPIC_FACTS_H

#include "backend/backend.h"
#include "backend/iggy/iggy_impl.h"

struct topic_facts {
    struct uuid
        id; /* Kafka's: another one for each creation; of the cluster, the stream's name, the topic's number and its time */
    uint32_t topic_id, partitions_count;
    uint64_t created_us;
    uint64_t message_expiry_us, max_topic_size; /* IGGY_NEVER: unlimited; 0: the server's default */
    uint64_t segment_size;                      /* 0: not shown */
    bool expiry_is_set, size_is_set;            /* by a client */
};

/* version: of the layout that t was decoded from. */
void topic_facts_of(const struct bridge *b, uint32_t version, struct str stream, const struct iggy_topic *t,
                    struct topic_facts *out);

/*
 * The settings that a client set, as Kafka's: retention.ms, retention.bytes (D9-4). A time that is no whole number of milliseconds has the
 * value null; 0, the server's default, is none that was set.
 * out     room for two; texts: the arena's
 * ST_NO_MEMORY
 */
enum status topic_facts_settings(const struct topic_facts *f, struct arena *a, struct backend_setting *out,
                                 int32_t *count_out) MUST_USE;

/* Whether a client said that nothing ever goes from it. */
bool topic_facts_keep_all(const struct topic_facts *f);

/*
 * The options of a new topic for Kafka's settings: retention.ms is message_expiry; retention.bytes, of one partition, max_topic_size of all;
 * what is kept of less than a segment of the server's makes segments smaller. A cleanup.policy without delete: both never (D6-14). Other
 * settings say nothing to Iggy.
 * Returns the bytes written to out, TLVs.
 */
#define TOPIC_OPTIONS_BYTES_MAX 192
int32_t topic_options_write(const struct backend_setting *settings, int32_t count, int32_t partitions_count,
                            uint8_t out[TOPIC_OPTIONS_BYTES_MAX]);

/*
 * The update of a topic for changes of Kafka's settings: the options of topic_options_write, but for the size of segments, which is settled;
 * what is not set any more is the server's default again. Other settings say nothing to Iggy.
 * f         the topic as it is
 * version   of the server's layouts
 * ST_INVALID: less than a segment of the topic: the server keeps that much
 */
struct topic_changes {
    const struct backend_change *changes;
    int32_t count;
    bool
        compacts; /* what keeps all is a compacted topic, and goes on to be one whatever its retention is (D6-14) */
};
struct topic_update {
    uint8_t options[TOPIC_OPTIONS_BYTES_MAX];
    int32_t options_len;
    struct iggy_reset_option reset[2]; /* none before 0.12 */
    uint32_t reset_count;
};
enum status topic_update_write(const struct topic_facts *f, uint32_t version,
                               const struct topic_changes *changes, struct topic_update *out) MUST_USE;

/* One more, behind the len bytes that are there: the server saves each message at once, where it would keep a thousand in memory first. Returns
 * the bytes there are then. */
int32_t topic_options_save_at_once(uint8_t out[TOPIC_OPTIONS_BYTES_MAX], int32_t len);
#endif
