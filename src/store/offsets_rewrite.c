/*
 * The file of committed offsets, written anew without what is out of date, while changes and reads go on: the table as it is found
 * piece by piece, then the entries that were added to the old file meanwhile. Whatever a piece has too early, those set right.
 */
#include <unistd.h>

#include "store/file.h"
#include "store/offsets.h"

#define WORTHWHILE_BYTES (1024 * 1024)
#define PIECE_BYTES      (256 * 1024) /* of the table under its lock, and what may be copied under write_lock */
#define ROUNDS_MAX       16 /* of copying what came meanwhile, before changes are held up for the rest */

bool offsets_rewrite_is_due(const struct offsets *o) {
    int64_t bytes = o->file.end;
    return bytes > WORTHWHILE_BYTES && bytes / 2 > o->table.file_bytes && bytes > o->rewrite_bytes &&
           !o->rewriting && !atomic_load(&o->closed);
}

static enum status take_offset(void *user, const struct store_offset *offset) {
    struct offsets_entry *piece = user;
    enum status st = offsets_entry_set(piece, offset);
    return st ? st : piece->len >= PIECE_BYTES ? ST_AGAIN : ST_OK;
}

static enum status copy_table(struct offsets *o, struct offsets_file *to) {
    struct offsets_entry piece = {0};
    enum status walked = ST_AGAIN, st = ST_OK;
    while (!st && walked == ST_AGAIN) {
        offsets_entry_clear(&piece);
        pthread_rwlock_rdlock(&o->lock);
        walked = offset_table_walk_on(&o->table, take_offset, &piece);
        pthread_rwlock_unlock(&o->lock);
        st = walked == ST_AGAIN ? ST_OK : walked;
        if (!st && piece.count > 0)
            st = offsets_file_append(to, &piece, 0);
    }
    offsets_entry_release(&piece);
    return st;
}

/* The file, and so its end, as it is now. Only this call's caller replaces it. */
static struct offsets_file file_now(struct offsets *o) {
    pthread_mutex_lock(&o->write_lock);
    struct offsets_file now = o->file;
    pthread_mutex_unlock(&o->write_lock);
    return now;
}

/* Copy what changes have added since *position, until little is left. */
static enum status copy_additions(struct offsets *o, int64_t *position, struct offsets_file *to) {
    enum status st = ST_OK;
    for (int round = 0; !st && round < ROUNDS_MAX; round++) {
        struct offsets_file from = file_now(o);
        if (from.end - *position <= PIECE_BYTES)
            break;
        st = offsets_file_copy(&from, *position, from.end, to);
        *position = from.end;
    }
    return st;
}

/* Under write_lock: the last additions, the header, and the change to the new file. */
static enum status finish(struct offsets *o, int64_t position, struct offsets_file *to) {
    if (atomic_load(&o->closed))
        return ST_IO;
    enum status st = offsets_file_copy(&o->file, position, o->file.end, to);
    if (!st)
        st = offsets_file_finish(to);
    if (st)
        return st;
    pthread_mutex_lock(&o->sync_lock);
    st = atomic_load(&o->closed) ? ST_IO : offsets_replace_file(o, to);
    pthread_mutex_unlock(&o->sync_lock);
    return st;
}

void offsets_rewrite(struct offsets *o) {
    struct offsets_file to;
    pthread_mutex_lock(&o->write_lock);
    int64_t position = o->file.end;
    pthread_rwlock_wrlock(&o->lock);
    offset_table_walk_begin(&o->table);
    pthread_rwlock_unlock(&o->lock);
    pthread_mutex_unlock(&o->write_lock);
    enum status st = offsets_file_make(o->dir_fd, offsets_seed(), &to);
    if (!st)
        st = copy_table(o, &to);
    if (!st)
        st = copy_additions(o, &position, &to);
    if (!st)
        st = file_sync(to.fd); /* most of it, while changes go on */
    pthread_mutex_lock(&o->write_lock);
    if (!st)
        st = finish(o, position, &to);
    o->rewriting = false;
    o->rewrite_bytes = st ? o->file.end + o->file.end / 4 : 0;
    pthread_mutex_unlock(&o->write_lock);
    if (st && to.fd >= 0)
        unlinkat(o->dir_fd, OFFSETS_FILE_NEW, 0);
    file_close(&to.fd);
}
