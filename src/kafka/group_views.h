/* What the admin APIs of groups share: which groups have committed offsets, before the coordinator is asked. */
#ifndef KAFKA_GROUP_VIEWS_H
#define KAFKA_GROUP_VIEWS_H

#include "kafka/groups.h"
#include "kafka/request.h"

#define GROUP_VIEWS_MS ((int64_t)15000) /* F-1 */

/* Whether a sorted list of group names has one. */
bool groups_listed(const struct backend_groups *list, struct str group);

/* Ask the backend; list->op.done runs next. A backend that keeps no offsets has none. */
void groups_list_begin(struct request *r, struct backend_groups *list, op_fn *done);

/* What to say of a group that isn't in the list: KERR_NONE where that means that it has no offsets; else why the list can't be had now: a
 * failed read never becomes "no such group" (D11-66). */
int16_t groups_list_problem(const struct request *r, const struct backend_groups *list);
#endif
