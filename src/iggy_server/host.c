#include "iggy_server/host.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FILE_BYTES 4096 /* the beginning of a file in /proc is enough */
#define KIB        1024

static void file_read(const char *path, char out[FILE_BYTES]) {
    ssize_t len = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        len = read(fd, out, FILE_BYTES - 1);
        close(fd);
    }
    out[len > 0 ? len : 0] = 0;
}

/* The number behind key, which stands at the beginning of a line. 0: there is none. */
static uint64_t value_of(const char *text, const char *key) {
    size_t key_len = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += line != text;
        if (strncmp(line, key, key_len) == 0)
            return strtoull(line + key_len, NULL, 10);
    }
    return 0;
}

static void look_at_cpu(uint64_t run_us, struct host *out) {
    struct rusage used;
    if (run_us > 0 && getrusage(RUSAGE_SELF, &used) == 0) {
        double us = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
                    (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
        out->cpu_percent = (float)(us * 100 / (double)run_us);
    }
    char text[FILE_BYTES];
    unsigned long long t[8] = {0};
    file_read("/proc/stat", text);
    if (sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3], &t[4], &t[5],
               &t[6], &t[7]) != 8)
        return;
    unsigned long long all = 0, idle = t[3] + t[4];
    for (size_t i = 0; i < COUNT_OF(t); i++)
        all += t[i];
    if (all > 0)
        out->total_cpu_percent = (float)((double)(all - idle) * 100 / (double)all);
}

static void look_at_memory(struct host *out) {
    char text[FILE_BYTES];
    file_read("/proc/self/status", text);
    out->memory_bytes = value_of(text, "VmRSS:") * KIB;
    out->threads_count = (uint32_t)value_of(text, "Threads:");
    file_read("/proc/meminfo", text);
    out->total_memory_bytes = value_of(text, "MemTotal:") * KIB;
    out->available_memory_bytes = value_of(text, "MemAvailable:") * KIB;
}

static uint64_t count_open_files(void) {
    uint64_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count - 1; /* the folder's own */
}

static void look_at_files(const char *dir, struct host *out) {
    char text[FILE_BYTES];
    struct rlimit limit;
    struct statvfs disk;
    file_read("/proc/self/io", text);
    out->read_bytes = value_of(text, "read_bytes:");
    out->written_bytes = value_of(text, "write_bytes:");
    out->open_files = count_open_files();
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        out->open_files_max = limit.rlim_cur;
    if (dir && statvfs(dir, &disk) == 0) {
        out->free_disk_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
        out->total_disk_bytes = (uint64_t)disk.f_blocks * disk.f_frsize;
    }
}

void host_look(const char *dir, uint64_t run_us, struct host *out) {
    *out = (struct host){0};
    look_at_cpu(run_us, out);
    look_at_memory(out);
    look_at_files(dir, out);
    if (uname(&out->names) != 0)
        memset(&out->names, 0, sizeof out->names);
}
