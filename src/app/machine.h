/* What this process may use of the machine: what there is, or less where a container limits it. */
#ifndef APP_MACHINE_H
#define APP_MACHINE_H

#include "base/base.h"

/* cgroup_dir: where the limits of this process' control group stand, "/sys/fs/cgroup"; files that are missing limit nothing. */
int machine_cores(const char *cgroup_dir); /* >= 1, <= 256 */
int64_t machine_memory_bytes(const char *cgroup_dir);
#endif
