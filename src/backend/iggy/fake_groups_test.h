/* For tests: consumer groups of a fake server, and the offsets of external groups (kind 3). */
#ifndef BACKEND_IGGY_FAKE_GROUPS_TEST_H
#define BACKEND_IGGY_FAKE_GROUPS_TEST_H

#include "backend/iggy/fake_server_test.h"

/* What is stored; false: nothing. */
bool fake_offset(struct fake_server *f, const char *topic, const char *group, uint32_t partition,
                 uint64_t *out);
void fake_add_group(struct fake_server *f, const char *topic, const char *group);
bool fake_has_group(struct fake_server *f, const char *topic, const char *group);
void fake_without_external(struct fake_server *f, bool without); /* kind 3 is refused with 3 */

/* --- for fake_server_test.c, with the lock held --- */

void fake_on_create_group(struct fake_call *c);
void fake_on_delete_group(struct fake_call *c);
void fake_on_get_group(struct fake_call *c);
void fake_on_get_groups(struct fake_call *c);
void fake_on_store_offset(struct fake_call *c);
void fake_on_get_offset(struct fake_call *c);
void fake_on_delete_offset(struct fake_call *c);
#endif
