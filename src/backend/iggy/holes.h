/*
 * Numbered batches that are missing. A client that numbers its batches (an idempotent producer) takes a batch without an answer for stored
 * as soon as a later one of the partition is acknowledged, since Kafka would have refused that one. So when a batch has failed, those behind
 * it are not acknowledged before it comes again (G-6), unless the Iggy server has looked at their numbers: then it has that one, too. On one
 * loop.
 *
 * Those behind it are under way when it fails, or soon come, in the same connection of the client. In its next one it sends again all that
 * it has no answer for.
 */
#ifndef BACKEND_IGGY_HOLES_H
#define BACKEND_IGGY_HOLES_H

#include "backend/backend.h"

#define HOLES_MAX 1024 /* of a loop; then the oldest is forgotten */
#define HOLE_MS \
    ((int64_t)60000) /* a batch is missing so long; a request is over in 20 s (D1-3), and sent again at once */

struct holes;

/* What became of a part with one batch; nothing is noted of one that isn't numbered. With one that is stored all before it are. */
void holes_note(struct holes *h, uint64_t connection, const struct backend_append_part *part, bool stored,
                int64_t now_ms);

/* Whether a batch before this one is missing. */
bool holes_before(const struct holes *h, uint64_t connection, const struct backend_append_part *part,
                  int64_t now_ms);

enum status holes_new(struct holes **out) MUST_USE;
void holes_free(struct holes *h); /* takes NULL */
#endif
