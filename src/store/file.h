/*
 * The operating system's files: what the store needs of them, with statuses instead of errno. Blocking.
 * Every write, sync and cut of the log goes through here, so that a test can let any of them fail.
 */
#ifndef STORE_FILE_H
#define STORE_FILE_H

#include <dirent.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/base.h"

/* What an errno means to the store: ST_NO_SPACE, ST_READ_ONLY, ST_NO_MEMORY, ST_NOT_FOUND, else ST_IO. */
enum status file_status(int error) MUST_USE;

/* Open below the folder at_fd (or by full path with AT_FDCWD). ST_NOT_FOUND: no such file. Others as file_status. */
enum status file_open(int at_fd, const char *path, int flags, int *fd_out) MUST_USE;
void file_close(int *fd); /* sets it to -1; fine on -1 */

/* Read up to size bytes at position; *got_out is less only at the end of the file. ST_IO. */
enum status file_read(int fd, void *out, size_t size, int64_t position, size_t *got_out) MUST_USE;

/* Write all of it. After an error some of it may be there. pieces are changed. ST_NO_SPACE, ST_READ_ONLY, ST_IO. */
enum status file_write(int fd, struct iovec *pieces, int pieces_count, int64_t position) MUST_USE;
enum status file_write_flat(int fd, const void *bytes, size_t size, int64_t position) MUST_USE;

enum status file_cut(int fd, int64_t size) MUST_USE; /* ftruncate */
enum status file_sync(int fd) MUST_USE;              /* fdatasync */
enum status file_size(int fd, int64_t *size_out) MUST_USE;

/* Bring the folder's own entries to stable storage. */
enum status file_sync_folder(int at_fd, const char *path) MUST_USE;

/* Open a folder for readdir (closedir). nofollow: not through a link. ST_NOT_FOUND, ST_IO, ST_NO_MEMORY ... */
enum status file_open_folder(int at_fd, const char *path, bool nofollow, DIR **out) MUST_USE;

/* Make the folder and those above it. ST_EXISTS: something stands there that is no folder. */
enum status file_make_folders(int at_fd, const char *path) MUST_USE;

/* Remove a folder and everything in it, without following links. ST_OK also when it is not there. */
enum status file_remove_tree(int at_fd, const char *path) MUST_USE;

/*
 * Tests: let the nth call of its kind from now on fail with error, and all after it until it is switched off (nth 0).
 * A failing write leaves half of its bytes in the file.
 */
enum file_call { FILE_WRITE, FILE_SYNC, FILE_CUT, FILE_CALLS };
void file_fail_at(enum file_call call, int64_t nth, int error);
#endif
