#include "store/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    _Atomic int64_t left; /* calls until the first that fails; 0: off, < 0: failing now */
    _Atomic int error;
} faults[FILE_CALLS];

/* The errno to fail with; 0: go on. */
static int fault(enum file_call call) {
    int64_t left = atomic_load_explicit(&faults[call].left, memory_order_relaxed);
    if (left == 0)
        return 0;
    if (left > 1) {
        atomic_store(&faults[call].left, left - 1);
        return 0;
    }
    atomic_store(&faults[call].left, -1);
    return atomic_load(&faults[call].error);
}

void file_fail_at(enum file_call call, int64_t nth, int error) {
    atomic_store(&faults[call].error, error);
    atomic_store(&faults[call].left, nth);
}

enum status file_status(int error) {
    switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG: /* RLIMIT_FSIZE */
        return ST_NO_SPACE;
    case EROFS:
    case EACCES:
    case EPERM:
        return ST_READ_ONLY;
    case ENOENT:
        return ST_NOT_FOUND;
    case ENOMEM:
        return ST_NO_MEMORY;
    default:
        return ST_IO;
    }
}

enum status file_open(int at_fd, const char *path, int flags, int *fd_out) {
    int fd = openat(at_fd, path, flags | O_CLOEXEC, 0640);
    if (fd < 0)
        return file_status(errno);
    *fd_out = fd;
    return ST_OK;
}

void file_close(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

enum status file_read(int fd, void *out, size_t size, int64_t position, size_t *got_out) {
    size_t got = 0;
    while (got < size) {
        ssize_t n = pread(fd, (uint8_t *)out + got, size - got, position + (int64_t)got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return file_status(errno);
        if (n == 0)
            break;
        got += (size_t)n;
    }
    *got_out = got;
    return ST_OK;
}

/* Drop the first done bytes of the pieces. */
static void pieces_advance(struct iovec **pieces, int *count, size_t done) {
    while (*count > 0 && done >= (*pieces)->iov_len) {
        done -= (*pieces)->iov_len;
        ++*pieces;
        --*count;
    }
    if (*count > 0) {
        (*pieces)->iov_base = (uint8_t *)(*pieces)->iov_base + done;
        (*pieces)->iov_len -= done;
    }
}

enum status file_write(int fd, struct iovec *pieces, int pieces_count, int64_t position) {
    pieces_advance(&pieces, &pieces_count, 0);
    while (pieces_count > 0) {
        int error = fault(FILE_WRITE);
        if (error) {
            ssize_t half = pwrite(fd, pieces->iov_base, pieces->iov_len / 2, position);
            (void)half;
            return file_status(error);
        }
        ssize_t n = pwritev(fd, pieces, pieces_count < IOV_MAX ? pieces_count : IOV_MAX, position);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return file_status(errno);
        position += n;
        pieces_advance(&pieces, &pieces_count, (size_t)n);
    }
    return ST_OK;
}

enum status file_write_flat(int fd, const void *bytes, size_t size, int64_t position) {
    struct iovec piece = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
    return file_write(fd, &piece, 1, position);
}

enum status file_cut(int fd, int64_t size) {
    int error = fault(FILE_CUT);
    if (error)
        return file_status(error);
    return ftruncate(fd, size) == 0 ? ST_OK : file_status(errno);
}

enum status file_sync(int fd) {
    int error = fault(FILE_SYNC);
    if (error)
        return file_status(error);
    return fdatasync(fd) == 0 ? ST_OK : file_status(errno);
}

enum status file_size(int fd, int64_t *size_out) {
    struct stat st;
    if (fstat(fd, &st) != 0)
        return file_status(errno);
    *size_out = st.st_size;
    return ST_OK;
}

enum status file_sync_folder(int at_fd, const char *path) {
    int fd;
    enum status st = file_open(at_fd, path, O_RDONLY | O_DIRECTORY, &fd);
    if (st)
        return st;
    int error = fault(FILE_SYNC);
    if (!error && fsync(fd) != 0)
        error = errno;
    file_close(&fd);
    return error ? file_status(error) : ST_OK;
}

enum status file_make_folders(int at_fd, const char *path) {
    char part[PATH_MAX];
    size_t len = strlen(path);
    if (len >= sizeof part)
        return ST_INVALID;
    for (size_t i = 1; i <= len; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdirat(at_fd, part, 0750) != 0 && errno != EEXIST)
            return errno == ENOTDIR ? ST_EXISTS : file_status(errno);
    }
    struct stat st;
    if (fstatat(at_fd, path, &st, 0) != 0)
        return file_status(errno);
    return S_ISDIR(st.st_mode) ? ST_OK : ST_EXISTS;
}

enum status file_open_folder(int at_fd, const char *path, bool nofollow, DIR **out) {
    int fd;
    enum status st = file_open(at_fd, path, O_RDONLY | O_DIRECTORY | (nofollow ? O_NOFOLLOW : 0), &fd);
    if (st)
        return st;
    *out = fdopendir(fd);
    if (*out)
        return ST_OK;
    file_close(&fd);
    return ST_NO_MEMORY;
}

enum status file_remove_tree(int at_fd, const char *path) {
    DIR *dir;
    enum status st = file_open_folder(at_fd, path, true, &dir);
    if (st)
        return st == ST_NOT_FOUND ? ST_OK : st;
    int fd = dirfd(dir);
    struct dirent *e;
    while (!st && (e = readdir(dir))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, e->d_name, 0) == 0 || errno == ENOENT)
            continue;
        st = errno == EISDIR || errno == EPERM ? file_remove_tree(fd, e->d_name) : file_status(errno);
    }
    closedir(dir);
    if (!st && unlinkat(at_fd, path, AT_REMOVEDIR) != 0 && errno != ENOENT)
        st = file_status(errno);
    return st;
}
