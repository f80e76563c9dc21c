/* Streams, topics and partitions as replies show them. Text and lists: the request's arena. Short, in memory: allowed on a loop. */
#ifndef IGGY_SERVER_DESCRIBE_H
#define IGGY_SERVER_DESCRIBE_H

#include "iggy_server/request.h"

/* ST_NO_MEMORY, all four. */
enum status describe_topic(struct server_request *r, const struct topic *t, struct iggy_topic *out) MUST_USE;
enum status describe_topics(struct server_request *r, struct topic *const *topics, int32_t count,
                            struct iggy_topic **out) MUST_USE;
enum status describe_partitions(struct server_request *r, struct topic *t, uint32_t count,
                                struct iggy_partition **out) MUST_USE;
/* topics: of the stream. */
enum status describe_stream(struct server_request *r, const struct stream_info *s, struct topic **topics,
                            int32_t count, struct iggy_stream *out) MUST_USE;

/* All topics of a stream, or of all streams (UINT32_MAX), by stream and id, held; give them back with topics_release. ST_NO_MEMORY. */
enum status topics_of_stream(struct server_request *r, uint32_t stream_id, struct topic ***out,
                             int32_t *count_out) MUST_USE;
void topics_release(struct topic **topics, int32_t count);
#endif
