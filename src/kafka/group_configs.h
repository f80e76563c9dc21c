/*
 * The settings of consumer groups, as DescribeConfigs shows and AlterConfigs and IncrementalAlterConfigs change them (D9-14 to D9-19): how long members of
 * group.protocol=consumer live without a heartbeat, and how often they send one. Any thread.
 */
#ifndef KAFKA_GROUP_CONFIGS_H
#define KAFKA_GROUP_CONFIGS_H

#include "kafka/configs.h"
#include "kafka/server.h"

#define GROUP_CONFIGS_COUNT 2

/*
 * All settings of a group, in name order.
 *
 * own  what is set for it
 * a    for numbers that are made into text
 * ST_NO_MEMORY
 */
enum status group_configs_show(const struct kafka *k, struct arena *a,
                               const struct backend_group_settings *own,
                               struct config_shown out[GROUP_CONFIGS_COUNT]) MUST_USE;

/*
 * What wishes come to.
 *
 * own          what is set for the group now
 * out          what is to be
 * problem_out  with ST_INVALID: what is wrong with the first bad one, for error_message
 * ST_INVALID: an unknown key that isn't to be taken back, a value that is no number or out of its bounds, a session that is not longer than the
 * time between two heartbeats; ST_NO_MEMORY
 */
enum status group_configs_change(const struct kafka *k, struct arena *a,
                                 const struct backend_group_settings *own, const struct config_wishes *wishes,
                                 struct backend_group_settings *out, struct str *problem_out) MUST_USE;

/* Put what is set for a group in place of the server's times. What does not fit the server's settings any more counts as not set (D9-18). */
void group_configs_apply(const struct kafka *k, const struct backend_group_settings *own,
                         struct group_times *times);
#endif
