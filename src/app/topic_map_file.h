/* The file of IGGY_KAFKA_TOPIC_MAP_PATH: default_stream, and [topics.NAME] tables with stream and topic. */
#ifndef APP_TOPIC_MAP_FILE_H
#define APP_TOPIC_MAP_FILE_H

#include "bridge/topic_map.h"

#define TOPIC_MAP_REASON_BYTES 768

/*
 * The sealed map of the file at path; without a file (NULL) one that has nothing but the default stream.
 *
 * out         zeroed; topic_map_release it, also after an error
 * reason_out  on failure one sentence, with path and line where it is about a line
 * ST_INVALID, ST_NO_MEMORY. Blocks.
 */
enum status topic_map_load(const char *path, const char *default_stream, struct topic_map *out,
                           char reason_out[TOPIC_MAP_REASON_BYTES]) MUST_USE;
#endif
