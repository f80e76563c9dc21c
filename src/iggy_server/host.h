/* What the kernel tells about this process and its machine, for get_stats. Reads /proc; what can't be read is 0. Blocks; any thread. */
#ifndef IGGY_SERVER_HOST_H
#define IGGY_SERVER_HOST_H

#include <sys/utsname.h>

#include "base/base.h"

struct host {
    float cpu_percent;       /* of one core, since the process began */
    float total_cpu_percent; /* of all, since the machine began */
    uint64_t memory_bytes, total_memory_bytes, available_memory_bytes;
    uint64_t read_bytes, written_bytes; /* from and to disks */
    uint64_t free_disk_bytes, total_disk_bytes;
    uint64_t open_files, open_files_max;
    uint32_t threads_count;
    struct utsname names;
};

/* dir: whose disk is meant; NULL: none. run_us: how long the process has run. */
void host_look(const char *dir, uint64_t run_us, struct host *out);
#endif
