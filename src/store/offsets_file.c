#include "store/offsets_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/le.h"
#include "base/mem.h"
#include "store/file.h"

#define MAGIC          0x4f4b4749 /* IGKO */
#define VERSION        1
#define KIND_SET       1
#define KIND_REMOVE    2
#define HAS_OWNER      1
#define HAS_TOPIC      2
#define REMOVAL_BYTES  32
#define WINDOW_BYTES   (1024 * 1024) /* read at once */
#define ENTRY_ROOM_MIN 1024
#define ALIGNMENT      8 /* of entries: where to look for one behind damage */

/* ---- records ---- */

static uint8_t *reserve(struct offsets_entry *e, size_t size, enum status *st) {
    if (e->len + size > OFFSETS_ENTRY_BYTES_MAX - ALIGNMENT) {
        *st = ST_TOO_BIG;
        return NULL;
    }
    size_t room = e->room > 0 ? e->room : ENTRY_ROOM_MIN;
    while (room < e->len + size + ALIGNMENT)
        room *= 2;
    if (room > e->room) {
        uint8_t *bytes = mem_grow(e->bytes, room);
        if (!bytes) {
            *st = ST_NO_MEMORY;
            return NULL;
        }
        e->bytes = bytes;
        e->room = room;
    }
    uint8_t *at = e->bytes + e->len;
    e->len += size;
    e->count++;
    return at;
}

enum status offsets_entry_set(struct offsets_entry *e, const struct store_offset *o) {
    enum status st = ST_OK;
    size_t metadata_len = o->metadata.len > 0 ? (size_t)o->metadata.len : 0;
    bool again = e->count > 0 && e->owner_len == o->owner.len &&
                 memcmp(e->bytes + e->owner_at, o->owner.ptr, (size_t)o->owner.len) == 0;
    size_t owner_len = again ? 0 : (size_t)o->owner.len;
    uint8_t *at = reserve(e, OFFSET_RECORD_BYTES + owner_len + metadata_len, &st);
    if (!at)
        return st;
    memset(at, 0, 8);
    at[0] = KIND_SET;
    le_set(at + 2, 2, owner_len);
    le_set(at + 4, 2, metadata_len);
    memcpy(at + 8, o->topic.b, sizeof o->topic.b);
    le_set32(at + 24, (uint32_t)o->partition);
    le_set32(at + 28, (uint32_t)o->leader_epoch);
    le_set64(at + 32, (uint64_t)o->offset);
    le_set64(at + 40, (uint64_t)o->committed_ms);
    at += OFFSET_RECORD_BYTES;
    if (owner_len > 0) {
        memcpy(at, o->owner.ptr, owner_len);
        e->owner_at = (size_t)(at - e->bytes);
        e->owner_len = o->owner.len;
    }
    if (metadata_len > 0)
        memcpy(at + owner_len, o->metadata.ptr, metadata_len);
    return ST_OK;
}

enum status offsets_entry_remove(struct offsets_entry *e, const struct offset_match *m) {
    enum status st = ST_OK;
    size_t owner_len = m->owner.len > 0 ? (size_t)m->owner.len : 0;
    uint8_t *at = reserve(e, REMOVAL_BYTES + owner_len, &st);
    if (!at)
        return st;
    memset(at, 0, REMOVAL_BYTES);
    at[0] = KIND_REMOVE;
    at[1] = (uint8_t)((owner_len > 0 ? HAS_OWNER : 0) | (m->topic ? HAS_TOPIC : 0));
    le_set(at + 2, 2, owner_len);
    le_set32(at + 4, (uint32_t)m->first);
    le_set32(at + 8, (uint32_t)m->last);
    if (m->topic)
        memcpy(at + 16, m->topic->b, sizeof m->topic->b);
    if (owner_len > 0)
        memcpy(at + REMOVAL_BYTES, m->owner.ptr, owner_len);
    e->owner_len = 0; /* the next record spells its owner out */
    return ST_OK;
}

void offsets_entry_clear(struct offsets_entry *e) {
    e->len = 0;
    e->count = 0;
    e->owner_len = 0;
}

void offsets_entry_release(struct offsets_entry *e) {
    mem_free(e->bytes);
    *e = (struct offsets_entry){0};
}

/* One record at the front of bytes, in which *owner is the last record's. False: not a record. */
static bool read_set(const uint8_t *at, size_t left, struct str *owner, struct offsets_change *out,
                     size_t *used) {
    if (left < OFFSET_RECORD_BYTES)
        return false;
    size_t owner_len = le_get(at + 2, 2), metadata_len = le_get(at + 4, 2);
    if (owner_len > STORE_OWNER_BYTES_MAX || left - OFFSET_RECORD_BYTES < owner_len + metadata_len)
        return false;
    if (owner_len > 0)
        *owner = (struct str){(const char *)at + OFFSET_RECORD_BYTES, (int32_t)owner_len};
    *out = (struct offsets_change){
        .set = {.owner = *owner,
                .partition = (int32_t)le_get32(at + 24),
                .leader_epoch = (int32_t)le_get32(at + 28),
                .offset = (int64_t)le_get64(at + 32),
                .committed_ms = (int64_t)le_get64(at + 40),
                .metadata = {(const char *)at + OFFSET_RECORD_BYTES + owner_len, (int32_t)metadata_len}}};
    memcpy(out->set.topic.b, at + 8, sizeof out->set.topic.b);
    *used = OFFSET_RECORD_BYTES + owner_len + metadata_len;
    return owner->len > 0 && out->set.partition >= 0;
}

static bool read_removal(const uint8_t *at, size_t left, struct uuid *topic, struct offsets_change *out,
                         size_t *used) {
    if (left < REMOVAL_BYTES)
        return false;
    size_t owner_len = le_get(at + 2, 2);
    if (owner_len > STORE_OWNER_BYTES_MAX || left - REMOVAL_BYTES < owner_len)
        return false;
    memcpy(topic->b, at + 16, sizeof topic->b);
    *out = (struct offsets_change){.is_removal = true,
                                   .removed = {.owner = STR_NULL,
                                               .topic = at[1] & HAS_TOPIC ? topic : NULL,
                                               .first = (int32_t)le_get32(at + 4),
                                               .last = (int32_t)le_get32(at + 8)}};
    if (at[1] & HAS_OWNER)
        out->removed.owner = (struct str){(const char *)at + REMOVAL_BYTES, (int32_t)owner_len};
    *used = REMOVAL_BYTES + owner_len;
    return true;
}

static enum status apply_records(const uint8_t *at, size_t left, uint32_t count, struct offsets_load *load) {
    struct str owner = {NULL, 0};
    struct uuid topic;
    enum status st = ST_OK;
    for (uint32_t i = 0; !st && i < count; i++) {
        struct offsets_change change;
        size_t used = 0;
        bool good = left > 0 && ((at[0] == KIND_SET && read_set(at, left, &owner, &change, &used)) ||
                                 (at[0] == KIND_REMOVE && read_removal(at, left, &topic, &change, &used)));
        if (!good)
            return ST_CORRUPT;
        if (change.is_removal)
            owner.len = 0;
        st = load->apply(load->user, &change);
        at += used;
        left -= used;
    }
    return st;
}

/* ---- entries ---- */

struct entry_head {
    uint32_t len, count;
    uint64_t synced, checksum;
};

/* An entry is good only in its file and in its place. */
static uint64_t seed_at(const struct offsets_file *f, int64_t position) {
    return f->seed + (uint64_t)position;
}

static void head_write(const struct offsets_file *f, int64_t position, const struct entry_head *h,
                       uint8_t out[OFFSETS_ENTRY_HEADER_BYTES]) {
    le_set32(out, h->len);
    le_set32(out + 4, h->count);
    le_set64(out + 8, h->synced);
    le_set64(out + 16, h->checksum);
    le_set64(out + 24, XXH3_64bits_withSeed(out, 24, seed_at(f, position)));
}

static bool head_read(const struct offsets_file *f, int64_t position,
                      const uint8_t in[OFFSETS_ENTRY_HEADER_BYTES], struct entry_head *out) {
    *out = (struct entry_head){le_get32(in), le_get32(in + 4), le_get64(in + 8), le_get64(in + 16)};
    return le_get64(in + 24) == XXH3_64bits_withSeed(in, 24, seed_at(f, position)) &&
           out->len <= OFFSETS_ENTRY_BYTES_MAX && out->len % ALIGNMENT == 0;
}

static enum status append_raw(struct offsets_file *f, const uint8_t *records, struct entry_head *h) {
    uint8_t head[OFFSETS_ENTRY_HEADER_BYTES];
    h->checksum = XXH3_64bits_withSeed(records, h->len, seed_at(f, f->end));
    head_write(f, f->end, h, head);
    struct iovec pieces[2] = {{head, sizeof head}, {(void *)(uintptr_t)records, h->len}};
    enum status st = file_write(f->fd, pieces, h->len > 0 ? 2 : 1, f->end);
    if (!st)
        f->end += (int64_t)sizeof head + h->len;
    return st;
}

enum status offsets_file_append(struct offsets_file *f, const struct offsets_entry *e, int64_t synced) {
    static const uint8_t none[1];
    size_t padding = (ALIGNMENT - e->len % ALIGNMENT) % ALIGNMENT; /* there is always room for it */
    if (padding > 0)
        memset(e->bytes + e->len, 0, padding);
    struct entry_head h = {
        .len = (uint32_t)(e->len + padding), .count = e->count, .synced = (uint64_t)synced};
    return append_raw(f, e->bytes ? e->bytes : none, &h);
}

/* ---- reading ---- */

/* A part of a file in memory. */
struct window {
    int fd;
    uint8_t *bytes; /* owned */
    size_t room, got;
    int64_t position;
};

/* *out: size bytes at position, until the next call; *got_out is less at the end of the file. */
static enum status window_get(struct window *w, int64_t position, size_t size, const uint8_t **out,
                              size_t *got_out) {
    if (position < w->position || position + (int64_t)size > w->position + (int64_t)w->got) {
        size_t want = size > WINDOW_BYTES ? size : WINDOW_BYTES;
        if (want > w->room) {
            uint8_t *bytes = mem_grow(w->bytes, want);
            if (!bytes)
                return ST_NO_MEMORY;
            w->bytes = bytes;
            w->room = want;
        }
        w->got = 0;
        w->position = position;
        enum status st = file_read(w->fd, w->bytes, w->room, position, &w->got);
        if (st)
            return st;
    }
    size_t behind = w->got - (size_t)(position - w->position);
    *out = w->bytes + (position - w->position);
    *got_out = size < behind ? size : behind;
    return ST_OK;
}

struct entry_read {
    struct entry_head head;
    bool head_good, good;
    const uint8_t *records; /* when good */
};

static enum status entry_read(const struct offsets_file *f, struct window *w, int64_t position,
                              struct entry_read *out) {
    const uint8_t *at;
    size_t got;
    *out = (struct entry_read){0};
    enum status st = window_get(w, position, OFFSETS_ENTRY_HEADER_BYTES, &at, &got);
    if (st)
        return st;
    out->head_good = got == OFFSETS_ENTRY_HEADER_BYTES && head_read(f, position, at, &out->head);
    if (!out->head_good)
        return ST_OK;
    st = window_get(w, position + OFFSETS_ENTRY_HEADER_BYTES, out->head.len, &at, &got);
    if (st)
        return st;
    out->records = at;
    out->good =
        got == out->head.len && out->head.checksum == XXH3_64bits_withSeed(at, got, seed_at(f, position));
    return ST_OK;
}

enum status offsets_file_copy(const struct offsets_file *from, int64_t position, int64_t end,
                              struct offsets_file *to) {
    struct window w = {.fd = from->fd};
    enum status st = ST_OK;
    while (!st && position < end) {
        struct entry_read e;
        st = entry_read(from, &w, position, &e);
        if (!st && !e.good)
            st = ST_CORRUPT;
        if (!st) {
            struct entry_head h = {.len = e.head.len, .count = e.head.count};
            st = append_raw(to, e.records, &h);
            position += OFFSETS_ENTRY_HEADER_BYTES + (int64_t)e.head.len;
        }
    }
    mem_free(w.bytes);
    return st;
}

/* ---- the file's header ---- */

enum status offsets_file_make(int dir_fd, uint64_t seed, struct offsets_file *out) {
    out->fd = -1;
    out->seed = seed;
    out->end = OFFSETS_HEADER_BYTES;
    return file_open(dir_fd, OFFSETS_FILE_NEW, O_RDWR | O_CREAT | O_TRUNC, &out->fd);
}

enum status offsets_file_finish(struct offsets_file *f) {
    uint8_t header[OFFSETS_HEADER_BYTES];
    le_set32(header, MAGIC);
    le_set32(header + 4, VERSION);
    le_set64(header + 8, f->seed);
    le_set64(header + 16, (uint64_t)f->end);
    le_set64(header + 24, XXH3_64bits(header, 24));
    enum status st = file_write_flat(f->fd, header, sizeof header, 0);
    return st ? st : file_sync(f->fd);
}

static enum status header_read(struct offsets_file *f, struct window *w, int64_t *synced_out, char *reason) {
    const uint8_t *at;
    size_t got;
    enum status st = window_get(w, 0, OFFSETS_HEADER_BYTES, &at, &got);
    if (st)
        return st;
    if (got < OFFSETS_HEADER_BYTES || le_get32(at) != MAGIC ||
        (le_get32(at + 4) <= VERSION && le_get64(at + 24) != XXH3_64bits(at, 24))) {
        snprintf(reason, OFFSETS_REASON_BYTES, "it does not begin as a file of committed offsets");
        return ST_CORRUPT;
    }
    if (le_get32(at + 4) != VERSION) {
        snprintf(reason, OFFSETS_REASON_BYTES, "written by a newer version");
        return ST_CORRUPT;
    }
    f->seed = le_get64(at + 8);
    *synced_out = (int64_t)le_get64(at + 16);
    return ST_OK;
}

/* ---- loading ---- */

/*
 * What stands at f->end is not whole. A crash leaves such an end where nothing was synced; so it is damage if something
 * says that this place was: the header, or an entry behind it. *synced: what the header says; the greatest of all.
 */
static enum status find_synced(const struct offsets_file *f, struct window *w, const struct entry_read *bad,
                               int64_t *synced) {
    const uint8_t *at;
    size_t got;
    struct entry_head h;
    int64_t position = f->end + ALIGNMENT;
    if (bad->head_good) /* then what is inside it is never taken for an entry */
        position = f->end + OFFSETS_ENTRY_HEADER_BYTES + (int64_t)bad->head.len;
    for (;;) {
        enum status st = window_get(w, position, OFFSETS_ENTRY_HEADER_BYTES, &at, &got);
        if (st || got < OFFSETS_ENTRY_HEADER_BYTES)
            return st;
        if (!head_read(f, position, at, &h)) {
            position += ALIGNMENT;
            continue;
        }
        if ((int64_t)h.synced > *synced)
            *synced = (int64_t)h.synced;
        position += OFFSETS_ENTRY_HEADER_BYTES + (int64_t)h.len;
    }
}

static enum status judge_end(const struct offsets_file *f, struct window *w, int64_t synced,
                             struct offsets_load *load) {
    int64_t size;
    struct entry_read bad;
    enum status st = file_size(f->fd, &size);
    if (!st)
        st = entry_read(f, w, f->end, &bad);
    if (!st)
        st = find_synced(f, w, &bad, &synced);
    if (st)
        return st;
    load->torn_bytes = size - f->end;
    if (f->end >= synced)
        return ST_OK;
    snprintf(load->reason, sizeof load->reason,
             "stored data fails its check at byte %lld of %lld, and %lld were on stable storage",
             (long long)f->end, (long long)size, (long long)synced);
    return ST_CORRUPT;
}

enum status offsets_file_load(struct offsets_file *f, struct offsets_load *load) {
    struct window w = {.fd = f->fd};
    struct entry_read e = {.good = true};
    int64_t synced = 0;
    load->torn_bytes = 0;
    load->ends_marked = false;
    f->end = OFFSETS_HEADER_BYTES;
    enum status st = header_read(f, &w, &synced, load->reason);
    while (!st) {
        st = entry_read(f, &w, f->end, &e);
        if (st || !e.good)
            break;
        st = apply_records(e.records, e.head.len, e.head.count, load);
        if (st == ST_CORRUPT)
            snprintf(load->reason, sizeof load->reason, "an entry at byte %lld is not understood",
                     (long long)f->end);
        load->ends_marked = e.head.count == 0;
        f->end += OFFSETS_ENTRY_HEADER_BYTES + (int64_t)e.head.len;
    }
    if (!st)
        st = judge_end(f, &w, synced, load);
    mem_free(w.bytes);
    return st;
}
