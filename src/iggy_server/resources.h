/* The parts of update_resource (P12), one a scope; handlers/topics.c tells them apart. They run in the pool and may block. */
#ifndef IGGY_SERVER_RESOURCES_H
#define IGGY_SERVER_RESOURCES_H

#include "iggy_server/request.h"

/*
 * Scope 3: another name or status for a user; the options are "username" and "status". handlers/users.c.
 * 0: done; 3: nothing to change, or a key twice, or set and reset; 20: no such user; 41; 43, 45, 46: the name or status;
 * 4041: another key; 4104: a reset; 4043: too many options; 4108: root can't be inactive. The codes as of protocol 0.12.2.
 */
uint32_t user_update_resource(struct server_request *r, const struct iggy_update_resource_req *in);

/* Scope 2: another name for a stream. 0; 3: nothing to change; 41, 1009, 1012, 1013; 4041, 4042, 4104. handlers/streams.c. */
uint32_t stream_update_resource(struct server_request *r, const struct iggy_update_resource_req *in);

/* Drop all messages of a topic; offsets go on. Blocks. 0; 3007, and what the store says. handlers/topics.c. */
uint32_t topic_purge(struct topic *t);
#endif
