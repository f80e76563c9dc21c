/* The look at the Iggy server before anything listens. */
#ifndef BACKEND_IGGY_START_H
#define BACKEND_IGGY_START_H

#include "backend/iggy/iggy_impl.h"

/*
 * Connect and log in, make the default stream if it is missing, see that no topic of it is shadowed by the topic map. Fills in
 * b->version and b->cluster: the id that the server's login says, or, of a server that says none, one derived from its default stream's
 * number and time of creation, which no two servers share. Blocks, on a loop of its own. Statuses as iggy_backend_new.
 */
enum status bridge_look(struct bridge *b, char reason_out[512]) MUST_USE;
#endif
