/*
 * The file of committed offsets: a header, then entries, each with its checksum and what one call has changed. docs/STORE.md.
 * No locks: the caller's matter.
 */
#ifndef STORE_OFFSETS_FILE_H
#define STORE_OFFSETS_FILE_H

#include "store/offsets_table.h"
#include "store/store_offsets.h"

#define OFFSETS_FILE               "offsets.log"
#define OFFSETS_FILE_NEW           "offsets.new" /* one that is being written; never read after a crash */
#define OFFSETS_HEADER_BYTES       32
#define OFFSETS_ENTRY_HEADER_BYTES 32
#define OFFSETS_ENTRY_BYTES_MAX    (64 * 1024 * 1024) /* of records in one entry */
#define OFFSETS_REASON_BYTES       320

struct offsets_file {
    int fd;        /* -1: none */
    uint64_t seed; /* of the checksums, not known to clients: nothing that they send can look like an entry */
    int64_t end;   /* of what is whole */
};

/* One change, as it stands in an entry, in which its text lies. */
struct offsets_change {
    bool is_removal;
    struct store_offset set;
    struct offset_match removed;
};

/* Records of an entry that is being made. Zeroed is empty. */
struct offsets_entry {
    uint8_t *bytes; /* owned */
    size_t len, room;
    uint32_t count;
    size_t owner_at; /* of the last record's owner, which the next need not repeat */
    int32_t owner_len;
};

/* Add a record. ST_TOO_BIG: over OFFSETS_ENTRY_BYTES_MAX; ST_NO_MEMORY. */
enum status offsets_entry_set(struct offsets_entry *e, const struct store_offset *o) MUST_USE;
enum status offsets_entry_remove(struct offsets_entry *e, const struct offset_match *m) MUST_USE;
void offsets_entry_clear(struct offsets_entry *e); /* keeps the memory */
void offsets_entry_release(struct offsets_entry *e);

/*
 * Write the entry at f->end and move that. synced: position in f up to which all is on stable storage.
 * An error leaves f->end; what may stand behind it is the caller's to cut.
 */
enum status offsets_file_append(struct offsets_file *f, const struct offsets_entry *e,
                                int64_t synced) MUST_USE;

/* Make OFFSETS_FILE_NEW, without a header yet. */
enum status offsets_file_make(int dir_fd, uint64_t seed, struct offsets_file *out) MUST_USE;
/* Write the header: all up to f->end stands there, whatever comes behind. Sync. */
enum status offsets_file_finish(struct offsets_file *f) MUST_USE;

/* Copy the entries of from that lie in [position, end) to the end of to. ST_CORRUPT: one fails its check. */
enum status offsets_file_copy(const struct offsets_file *from, int64_t position, int64_t end,
                              struct offsets_file *to) MUST_USE;

struct offsets_load {
    enum status (*apply)(void *user, const struct offsets_change *change);
    void *user;
    int64_t torn_bytes;                /* out: behind the last whole entry, and no damage; not cut yet */
    bool ends_marked;                  /* out: the last entry is an empty one */
    char reason[OFFSETS_REASON_BYTES]; /* out, with ST_CORRUPT: what is wrong, without the file's name */
};

/* Read f->fd to its end, with apply for each change in order; f->seed and f->end are set. ST_CORRUPT; ST_IO; ST_NO_MEMORY; as apply. */
enum status offsets_file_load(struct offsets_file *f, struct offsets_load *load) MUST_USE;
#endif
