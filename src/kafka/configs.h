/*
 * The settings of topics, and those of this server, as CreateTopics takes and DescribeConfigs shows them.
 * The topics' own stand in configs.def; those of groups in group_configs.h. Any thread.
 */
#ifndef KAFKA_CONFIGS_H
#define KAFKA_CONFIGS_H

#include "kafka/server.h"

enum config_type { /* Kafka's numbers (KIP-569) */
                   CONFIG_BOOLEAN = 1,
                   CONFIG_STRING = 2,
                   CONFIG_INT = 3,
                   CONFIG_LONG = 5,
                   CONFIG_DOUBLE = 6,
                   CONFIG_LIST = 7,
};

enum config_source { /* Kafka's numbers (KIP-226) */
                     CONFIG_OF_TOPIC = 1,
                     CONFIG_OF_SERVER = 4, /* a start-up setting */
                     CONFIG_STANDARD = 5,
                     CONFIG_OF_GROUP = 8,
};

/* One setting with its value. Texts: static, the arena's, or the topic's. */
struct config_shown {
    struct str name, value; /* value len -1: null */
    struct str standard;    /* what holds where nobody sets it */
    struct str server_name; /* Kafka's name of it for a whole server; len -1: none */
    struct str
        started_with; /* groups: what the server was started with in place of that; ptr NULL: nothing else */
    struct str documentation;
    int8_t type, source;
};

/*
 * An INT of 1 or more, as Kafka reads one. name: terminated.
 * problem_out  with ST_INVALID: what is wrong with it, in Kafka's words
 * ST_INVALID; ST_NO_MEMORY
 */
enum status config_int_parse(struct arena *a, const struct backend_setting *from, int32_t *out,
                             struct str *problem_out) MUST_USE;

/* How many settings a topic has, and where one stands among them in name order; -1: there is no such setting. */
int32_t topic_configs_count(void);
int32_t topic_config_find(struct str name);

/*
 * All settings of a topic, in name order.
 *
 * own, own_count  what was set for it (backend_topic.settings)
 * a               for numbers that are made into text
 * out             topic_configs_count() of them; filled on ST_OK
 * ST_NO_MEMORY
 */
enum status topic_configs_show(const struct kafka *k, struct arena *a, const struct backend_setting *own,
                               int32_t own_count, struct config_shown *out) MUST_USE;

/*
 * What a client wants to set for a topic (D6-3). The same key twice: the last one counts.
 *
 * out, out_count  settings to remember, in name order; room for topic_configs_count()
 * problem_out     with ST_INVALID: what is wrong with the first bad one, for error_message
 * ST_INVALID: an unknown key, or a value that is not well formed or not accepted; ST_NO_MEMORY
 */
enum status topic_configs_check(const struct kafka_settings *settings, struct arena *a,
                                const struct backend_setting *wanted, int32_t wanted_count,
                                struct backend_setting *out, int32_t *out_count,
                                struct str *problem_out) MUST_USE;

enum config_verb { /* Kafka's numbers (KIP-339) */
                   CONFIG_SET = 0,
                   CONFIG_DELETE = 1,
                   CONFIG_APPEND = 2,
                   CONFIG_SUBTRACT = 3,
};

/* What a client wants of one setting. Texts: borrowed. */
struct config_wish {
    struct str key, value; /* value len -1 only of CONFIG_DELETE */
    int8_t verb;
};
struct config_wishes {
    const struct config_wish *items; /* each key once */
    int32_t count;
    bool replaces; /* what isn't named is to be as if it had never been set */
};

/*
 * What wishes come to as changes of a topic (D9-7, D9-10). An unknown key is refused, but for one that is to be deleted: it isn't set.
 *
 * shown           topic_configs_show of the topic as it is
 * out, out_count  in name order; room for topic_configs_count(); a list that was made of the one before is bound to that
 * Others as topic_configs_check.
 */
enum status topic_configs_change(const struct kafka_settings *settings, struct arena *a,
                                 const struct config_shown *shown, const struct config_wishes *wishes,
                                 struct backend_change *out, int32_t *out_count,
                                 struct str *problem_out) MUST_USE;

/* Whether the settings ask for compaction, which nobody does (D6-3). */
bool topic_configs_ask_compaction(const struct backend_setting *settings, int32_t count);

/* The settings of this server, as the broker resource shows them; all are read-only. ST_NO_MEMORY. */
enum status server_configs_show(const struct kafka *k, struct arena *a, struct config_shown **out,
                                int32_t *count_out) MUST_USE;
#endif
