#include "store/index.h"

#include <fcntl.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/le.h"
#include "base/mem.h"
#include "store/file.h"

#define MAGIC         "IGKI"
#define VERSION       1
#define FLAG_SEALED   1
#define HEADER_BYTES  128
#define ENTRY_BYTES   24
#define ENTRIES_MAX   (UINT32_MAX / INDEX_INTERVAL_BYTES + 2)
#define CHUNK_ENTRIES 256

enum { AT_VERSION = 4, AT_FLAGS = 5, AT_COUNT = 8, AT_BASE = 16, AT_BOOT = 24, AT_FIRST_APPEND = 32 };
enum { AT_WRITTEN = 40, AT_SYNCED = 64, AT_CHECK = HEADER_BYTES - 8 };

enum status index_reserve(struct index *x, int32_t count) {
    if (x->room - x->count >= count)
        return ST_OK;
    int32_t room = x->room * 2 > x->count + count ? x->room * 2 : x->count + count + 16;
    struct index_entry *entries = mem_grow(x->entries, (size_t)room * sizeof *entries);
    if (!entries)
        return ST_NO_MEMORY;
    x->entries = entries;
    x->room = room;
    return ST_OK;
}

void index_add(struct index *x, const struct index_entry *e) {
    assert(x->count < x->room);
    x->entries[x->count++] = *e;
}

void index_release(struct index *x) {
    mem_free(x->entries);
    *x = (struct index){0};
}

enum key { BY_OFFSET, BY_POSITION, BY_TIME };

/* The last entry whose key is <= what is sought (for a time: < it), or the first one. */
static const struct index_entry *find(const struct index *x, enum key key, int64_t sought) {
    int32_t low = 0, high = x->count; /* the answer is in [low, high) */
    while (high - low > 1) {
        int32_t mid = low + (high - low) / 2;
        const struct index_entry *e = &x->entries[mid];
        bool not_behind = key == BY_OFFSET     ? (int64_t)e->offset_delta <= sought
                          : key == BY_POSITION ? (int64_t)e->position <= sought
                                               : e->max_timestamp < sought;
        if (not_behind)
            low = mid;
        else
            high = mid;
    }
    return &x->entries[low];
}

const struct index_entry *index_by_offset(const struct index *x, uint32_t offset_delta) {
    return find(x, BY_OFFSET, offset_delta);
}
const struct index_entry *index_by_position(const struct index *x, int64_t position) {
    return find(x, BY_POSITION, position);
}
const struct index_entry *index_by_time(const struct index *x, int64_t timestamp_ms) {
    return find(x, BY_TIME, timestamp_ms);
}

static void point_put(uint8_t *p, const struct index_point *point) {
    le_set64(p, (uint64_t)point->position);
    le_set64(p + 8, (uint64_t)point->offset);
    le_set64(p + 16, (uint64_t)point->max_timestamp);
}

static struct index_point point_get(const uint8_t *p) {
    return (struct index_point){(int64_t)le_get64(p), (int64_t)le_get64(p + 8), (int64_t)le_get64(p + 16)};
}

/* Entries of another segment must not pass: the base offset goes into each check. */
static uint64_t check_of(const uint8_t *bytes, size_t size, int64_t base_offset) {
    return XXH3_64bits_withSeed(bytes, size, (uint64_t)base_offset);
}

static enum status entries_load(int fd, int64_t base_offset, int64_t count, struct index *out) {
    uint8_t chunk[CHUNK_ENTRIES * ENTRY_BYTES];
    enum status st = index_reserve(out, (int32_t)count);
    for (int64_t done = 0; !st && done < count;) {
        int64_t n = count - done < CHUNK_ENTRIES ? count - done : CHUNK_ENTRIES;
        size_t got;
        st = file_read(fd, chunk, (size_t)n * ENTRY_BYTES, HEADER_BYTES + done * ENTRY_BYTES, &got);
        if (!st && got < (size_t)n * ENTRY_BYTES)
            st = ST_CORRUPT;
        for (int64_t i = 0; !st && i < n; i++) {
            const uint8_t *p = chunk + i * ENTRY_BYTES;
            struct index_entry e = {le_get32(p), le_get32(p + 4), (int64_t)le_get64(p + 8)};
            const struct index_entry *before = out->count > 0 ? &out->entries[out->count - 1] : NULL;
            bool ascends =
                !before || (e.offset_delta > before->offset_delta && e.position > before->position);
            if (!ascends || le_get64(p + 16) != check_of(p, 16, base_offset))
                st = ST_CORRUPT;
            else
                index_add(out, &e);
        }
        done += n;
    }
    return st;
}

enum status index_load(int at_fd, const char *path, int64_t base_offset, struct index *index_out,
                       struct index_marks *marks_out) {
    uint8_t h[HEADER_BYTES];
    struct index x = {0};
    size_t got;
    int fd = -1;

    enum status st = file_open(at_fd, path, O_RDONLY, &fd);
    if (st)
        return st;
    st = file_read(fd, h, sizeof h, 0, &got);
    if (st)
        goto fail;
    st = ST_CORRUPT;
    if (got < sizeof h || memcmp(h, MAGIC, 4) != 0 || h[AT_VERSION] != VERSION ||
        le_get64(h + AT_CHECK) != check_of(h, AT_CHECK, base_offset) ||
        (int64_t)le_get64(h + AT_BASE) != base_offset || le_get32(h + AT_COUNT) > ENTRIES_MAX)
        goto fail;
    if (index_out) {
        st = entries_load(fd, base_offset, le_get32(h + AT_COUNT), &x);
        if (st)
            goto fail;
        *index_out = x;
    }
    *marks_out = (struct index_marks){
        .boot = le_get64(h + AT_BOOT),
        .written = point_get(h + AT_WRITTEN),
        .synced = point_get(h + AT_SYNCED),
        .first_append_wall_ms = (int64_t)le_get64(h + AT_FIRST_APPEND),
        .sealed = h[AT_FLAGS] & FLAG_SEALED,
    };
    file_close(&fd);
    return ST_OK;

fail:
    index_release(&x);
    file_close(&fd);
    return st;
}

static enum status entries_save(int fd, int64_t base_offset, const struct index *x, int32_t from) {
    uint8_t chunk[CHUNK_ENTRIES * ENTRY_BYTES];
    enum status st = ST_OK;
    for (int32_t i = from; !st && i < x->count;) {
        int32_t first = i, n = 0;
        for (; n < CHUNK_ENTRIES && i < x->count; n++, i++) {
            uint8_t *p = chunk + n * ENTRY_BYTES;
            le_set32(p, x->entries[i].offset_delta);
            le_set32(p + 4, x->entries[i].position);
            le_set64(p + 8, (uint64_t)x->entries[i].max_timestamp);
            le_set64(p + 16, check_of(p, 16, base_offset));
        }
        st = file_write_flat(fd, chunk, (size_t)n * ENTRY_BYTES, HEADER_BYTES + (int64_t)first * ENTRY_BYTES);
    }
    return st;
}

enum status index_save(int at_fd, const char *path, int64_t base_offset, const struct index *x, int32_t from,
                       const struct index_marks *marks, bool sync) {
    uint8_t h[HEADER_BYTES] = {0};
    int fd = -1;

    enum status st = file_open(at_fd, path, O_WRONLY | O_CREAT | (from == 0 ? O_TRUNC : 0), &fd);
    if (st)
        return st;
    st = entries_save(fd, base_offset, x, from);
    if (st)
        goto fail;
    memcpy(h, MAGIC, 4);
    h[AT_VERSION] = VERSION;
    h[AT_FLAGS] = marks->sealed ? FLAG_SEALED : 0;
    le_set32(h + AT_COUNT, (uint32_t)x->count);
    le_set64(h + AT_BASE, (uint64_t)base_offset);
    le_set64(h + AT_BOOT, marks->boot);
    le_set64(h + AT_FIRST_APPEND, (uint64_t)marks->first_append_wall_ms);
    point_put(h + AT_WRITTEN, &marks->written);
    point_put(h + AT_SYNCED, &marks->synced);
    le_set64(h + AT_CHECK, check_of(h, AT_CHECK, base_offset));
    st = file_write_flat(fd, h, sizeof h, 0);
    if (!st && sync)
        st = file_sync(fd);
fail:
    file_close(&fd);
    return st;
}
