#include "app/machine.h"

#include <sched.h>
#include <sys/stat.h>

#include "testing/test.h"

static void put(const char *dir, const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    fputs(text, f);
    fclose(f);
}

TEST(a_machine_without_limits_has_all_its_cores_and_memory) {
    cpu_set_t set;
    CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    CHECK_EQ(machine_cores("/no/such/folder"), CPU_COUNT(&set));
    int64_t all = machine_memory_bytes("/no/such/folder");
    CHECK(all > 1 << 20);
    const char *dir = test_dir();
    put(dir, "cpu.max", "max 100000\n");
    put(dir, "memory.max", "max\n");
    CHECK_EQ(machine_cores(dir), CPU_COUNT(&set));
    CHECK_EQ(machine_memory_bytes(dir), all);
}

TEST(a_container_has_what_it_is_given) {
    const char *dir = test_dir();
    put(dir, "cpu.max", "50000 100000\n");
    put(dir, "memory.max", "1048576\n");
    CHECK_EQ(machine_cores(dir), 1);
    CHECK_EQ(machine_memory_bytes(dir), 1048576);
}

TEST(an_older_container_has_its_memory_limit_elsewhere) {
    const char *dir = test_dir();
    char folder[256];
    snprintf(folder, sizeof folder, "%s/memory", dir);
    CHECK_EQ(mkdir(folder, 0700), 0);
    put(dir, "memory/memory.limit_in_bytes", "2097152\n");
    CHECK_EQ(machine_memory_bytes(dir), 2097152);
}
