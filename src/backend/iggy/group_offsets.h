/* The offsets of groups (D12): the three calls of the backend. */
#ifndef BACKEND_IGGY_GROUP_OFFSETS_H
#define BACKEND_IGGY_GROUP_OFFSETS_H

#include "backend/iggy/iggy_impl.h"

void iggy_commit_op(struct backend *b, struct backend_commit *c);
void iggy_committed_op(struct backend *b, struct backend_committed *c);
void iggy_groups_op(struct backend *b, struct backend_groups *g);
#endif
