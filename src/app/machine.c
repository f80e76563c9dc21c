#include "app/machine.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#define CORES_MAX 256

/* Up to two numbers at the start of a file; returns how many it has ("max" is none). */
static int read_numbers(const char *dir, const char *name, int64_t *first, int64_t *second) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    int count = fscanf(f, "%" SCNd64 " %" SCNd64, first, second);
    fclose(f);
    return count < 0 ? 0 : count;
}

int machine_cores(const char *cgroup_dir) {
    cpu_set_t set;
    int64_t cores =
        sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
    int64_t quota_us, period_us;
    if (read_numbers(cgroup_dir, "cpu.max", &quota_us, &period_us) == 2 && period_us > 0 &&
        quota_us / period_us < cores)
        cores = (quota_us + period_us - 1) / period_us;
    return cores < 1 ? 1 : cores > CORES_MAX ? CORES_MAX : (int)cores;
}

int64_t machine_memory_bytes(const char *cgroup_dir) {
    int64_t bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGE_SIZE);
    static const char *const files[] = {"memory.max",
                                        "memory/memory.limit_in_bytes"}; /* version 2, version 1 */
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        int64_t limit, none;
        if (read_numbers(cgroup_dir, files[i], &limit, &none) >= 1 && limit > 0 && limit < bytes)
            bytes = limit;
    }
    return bytes;
}
