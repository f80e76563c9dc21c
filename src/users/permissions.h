/* What one user may do, made for looking up; and the table of which permission allows which action. Nothing changes once made. */
#ifndef USERS_PERMISSIONS_H
#define USERS_PERMISSIONS_H

#include "base/arena.h"
#include "iggy/message.h"
#include "users/users.h"

struct permissions {
    uint16_t global;                    /* enum permission_global */
    uint32_t streams_count;             /* sorted by id */
    struct permissions_stream *streams; /* owned */
    struct permissions_topic *topics;   /* owned; of all streams, each one's together and sorted by id */
    struct bytes wire;                  /* owned; as the protocol has it, what the store keeps */
};

/*
 * Of a stream or topic that is named twice, the later entry counts.
 * ST_TOO_BIG: more than USERS_PERMISSIONS_BYTES_MAX on the wire; ST_NO_MEMORY.
 */
enum status permissions_new(const struct iggy_permissions *p, struct permissions **out) MUST_USE;
/* From what the store kept. ST_CORRUPT: it isn't permissions; ST_NO_MEMORY. */
enum status permissions_load(struct bytes wire, struct permissions **out) MUST_USE;
void permissions_free(struct permissions *p); /* takes NULL */

/* As the protocol's struct, in the arena. ST_NO_MEMORY. */
enum status permissions_show(const struct permissions *p, struct arena *a,
                             struct iggy_permissions *out) MUST_USE;

/* p NULL: no permissions. No allocation, no lock. stream_id and topic_id as in users_may. */
bool permissions_allow(const struct permissions *p, enum user_action action, uint32_t stream_id,
                       uint32_t topic_id);
#endif
