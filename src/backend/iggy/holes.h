/*
 * Numbered batches that are missing. A client that numbers its batches (an idempotent producer) takes a batch without an answer for stored
 * as soon as a later one of the partition is acknowledged, since Kafka would have refused that one. So when a batch has failed, those behind
 * it are not acknowledged before it comes again, whether or not the Iggy server looks at the numbers (G-6). On one loop.
 */
#ifndef BACKEND_IGGY_HOLES_H
#define BACKEND_IGGY_HOLES_H

#include "backend/backend.h"

#define HOLES_MAX 1024 /* of a loop; then the oldest is forgotten */

struct holes;

/* What became of a part with one batch; nothing is noted of one that isn't numbered. */
void holes_note(struct holes *h, const struct backend_append_part *part, bool stored);

/* Whether a batch before this one is missing. */
bool holes_before(const struct holes *h, const struct backend_append_part *part);

enum status holes_new(struct holes **out) MUST_USE;
void holes_free(struct holes *h); /* takes NULL */
#endif
