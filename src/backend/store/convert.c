/*
 * Runs of the wanted format go out as they lie in the store's memory. Of the others, each Kafka batch becomes an Iggy batch, and the Iggy batches
 * of a run become one Kafka batch; in pieces where it gets long, and no more than the reader wants, so that a read takes little more
 * memory than it gives. Batches are inflated and built here: not on a loop.
 */
#include "backend/store/convert.h"

#include "base/mem.h"
#include "bridge/message_map.h"
#include "bridge/record_map.h"
#include "wire/records.h"

#define PIECE_BYTES ((int64_t)1 << 20)
#define SMALL_BYTES \
    (32 * 1024) /* shorter ones are copied together, longer ones stay in the memory they were made in */
#define CHUNK_BYTES (256 * 1024)

/* ---- what goes out ---- */

static enum status out_reserve(struct read_out *out) {
    if (out->count < out->room)
        return ST_OK;
    int32_t room = out->room > 0 ? out->room * 2 : 8;
    struct bytes *slices = mem_grow(out->slices, (size_t)room * sizeof *slices);
    if (!slices)
        return ST_NO_MEMORY;
    out->slices = slices;
    void **made = mem_grow(out->made, (size_t)room * sizeof *made);
    if (!made)
        return ST_NO_MEMORY;
    out->made = made;
    out->room = room;
    return ST_OK;
}

/* memory: what the slice lies in, and is out's from now on; NULL: somebody else's. After a failure it is still the caller's. */
static enum status out_add(struct read_out *out, struct bytes slice, void *memory) {
    enum status st = out_reserve(out); /* each memory comes with a slice, so there is room for both */
    if (st)
        return st;
    if (memory)
        out->made[out->made_count++] = memory;
    out->slices[out->count++] = slice;
    out->bytes += slice.len;
    return ST_OK;
}

/* A slice of no bytes yet, at out->chunk, with room for len. */
static enum status out_begin_copies(struct read_out *out, int32_t len) {
    if (out->chunk_left >= (size_t)len)
        return out_add(out, (struct bytes){out->chunk, 0}, NULL);
    uint8_t *chunk = mem_take(CHUNK_BYTES);
    enum status st = chunk ? out_add(out, (struct bytes){chunk, 0}, chunk) : ST_NO_MEMORY;
    if (st) {
        mem_free(chunk);
        return st;
    }
    out->chunk = chunk;
    out->chunk_left = CHUNK_BYTES;
    return ST_OK;
}

/* A copy, in one slice with the one before where that is a copy as well: what is stored in small batches goes out in few slices. */
static enum status out_copy(struct read_out *out, struct bytes batch) {
    const struct bytes *before = out->count > 0 ? &out->slices[out->count - 1] : NULL;
    if (!before || before->ptr + before->len != out->chunk || out->chunk_left < (size_t)batch.len) {
        enum status st = out_begin_copies(out, batch.len);
        if (st)
            return st;
    }
    memcpy(out->chunk, batch.ptr, (size_t)batch.len);
    out->chunk += batch.len;
    out->chunk_left -= (size_t)batch.len;
    out->slices[out->count - 1].len += batch.len;
    out->bytes += batch.len;
    return ST_OK;
}

void read_out_release(struct read_out *out) {
    for (int32_t i = 0; i < out->made_count; i++)
        mem_free(out->made[i]);
    mem_free(out->made);
    mem_free(out->slices);
    *out = (struct read_out){0};
}

/* The first batch goes out in any case (KIP-74). */
static bool out_takes(const struct convert *c, const struct read_out *out, int64_t bytes) {
    return out->count == 0 || out->bytes + bytes <= c->bytes_max;
}

/* A batch that was made in *memory, which is NULL if it is out's now. ST_OVER_BUDGET: it doesn't fit. */
static enum status out_take(const struct convert *c, struct read_out *out, struct bytes batch,
                            uint8_t **memory) {
    if (!out_takes(c, out, batch.len))
        return ST_OVER_BUDGET;
    if (batch.len <= SMALL_BYTES)
        return out_copy(out, batch);
    enum status st = out_add(out, batch, *memory);
    if (!st)
        *memory = NULL;
    return st;
}

/* How large the next batch may be; 0 for the first at least, which then has one record. -1: there is no room. */
static int64_t piece_bytes(const struct convert *c, const struct read_out *out) {
    int64_t left = c->bytes_max - out->bytes;
    if (left <= 0)
        return out->count == 0 ? 0 : -1;
    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

/* ---- runs: ST_OVER_BUDGET: the reader has enough ---- */

static enum status run_pass(const struct convert *c, const struct store_run *run, struct read_out *out) {
    struct bytes fits = {run->bytes.ptr, 0};
    while (fits.len < run->bytes.len) {
        struct bytes left = {fits.ptr + fits.len, run->bytes.len - fits.len};
        struct batch k;
        struct iggy_batch i;
        bool kafka = run->format == STORE_FORMAT_KAFKA;
        if (kafka ? batch_read(left, &k) : iggy_batch_read(left, true, &i))
            return ST_CORRUPT;
        int32_t size_bytes = kafka ? k.size_bytes : i.size_bytes;
        if (!out_takes(c, out, (int64_t)fits.len + size_bytes))
            break;
        fits.len += size_bytes;
    }
    enum status st = fits.len > 0 ? out_add(out, fits, NULL) : ST_OK;
    if (st)
        return st;
    out->borrows |= fits.len > 0;
    return fits.len < run->bytes.len ? ST_OVER_BUDGET : ST_OK;
}

/* One Kafka batch of what is at the start of run, which moves behind it. Any other status than ST_OK: that was the last. */
static enum status piece_to_kafka(struct convert *c, struct message_map *map, struct spare *made,
                                  struct bytes *run, struct read_out *out) {
    int64_t bytes_max = piece_bytes(c, out);
    if (bytes_max < 0)
        return ST_OVER_BUDGET;
    int64_t guess = run->len < bytes_max ? run->len : bytes_max; /* records are shorter than messages */
    enum status st = spare_reserve(made, (size_t)guess + BATCH_HEADER_BYTES);
    if (st)
        return st;
    message_map_init(map, made, c->offset, c->skip);
    while (!st && run->len > 0) {
        struct iggy_batch b;
        st = iggy_batch_read(*run, true, &b) ? ST_BAD_RECORD : message_map_add(map, &b, bytes_max);
        if (!st)
            *run = (struct bytes){run->ptr + b.size_bytes, run->len - b.size_bytes};
    }
    c->offset = map->next_offset;
    struct bytes batch;
    if (message_map_finish(map, &batch) == ST_OK) {
        enum status taken = out_take(c, out, batch, &made->ptr);
        if (!made->ptr)
            *made = (struct spare){0};
        if (taken)
            return taken;
    }
    return st == ST_OVER_BUDGET ? ST_OK : st;
}

static enum status run_to_kafka(struct convert *c, const struct store_run *run, struct read_out *out) {
    struct message_map map = {0};
    struct spare made = {0};
    struct bytes left = run->bytes;
    enum status st = ST_OK;
    while (!st && left.len > 0)
        st = piece_to_kafka(c, &map, &made, &left, out);
    c->skipped_count += map.skipped_count;
    message_map_release(&map);
    spare_release(&made);
    return st;
}

static enum status batch_to_iggy(struct convert *c, const struct batch *b, struct bytes body,
                                 struct iggy_batch_builder *made, struct read_out *out) {
    struct records_map map;
    struct bytes batch;
    enum status st = records_map_init(&map, b, body, c->offset);
    map.partition = (uint32_t)c->partition;
    while (!st) {
        int64_t bytes_max = piece_bytes(c, out);
        if (bytes_max < 0)
            return ST_OVER_BUDGET;
        st = records_map_next(&map, bytes_max, made, &batch);
        if (!st)
            st = out_take(c, out, batch, &made->ptr);
        if (!made->ptr)
            *made = (struct iggy_batch_builder){0};
    }
    return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status run_to_iggy(struct convert *c, const struct store_run *run, struct read_out *out) {
    struct iggy_batch_builder made = {0};
    struct bytes left = run->bytes;
    struct spare *scratch = spare_of_thread();
    enum status st = scratch ? ST_OK : ST_NO_MEMORY;
    while (!st && left.len > 0) {
        struct batch b;
        struct bytes body = BYTES_NULL;
        st = batch_read(left, &b);
        if (!st)
            st = batch_records(&b, STORED_BATCH_BYTES_MAX, scratch, &body);
        if (!st)
            st = batch_to_iggy(c, &b, body, &made, out);
        left = (struct bytes){left.ptr + b.size_bytes, left.len - b.size_bytes};
    }
    if (scratch)
        spare_put_back(scratch);
    iggy_batch_builder_release(&made);
    return st;
}

/* ---- all of a read ---- */

static uint8_t stored_format(enum backend_format format) {
    return format == FORMAT_KAFKA ? STORE_FORMAT_KAFKA : STORE_FORMAT_IGGY;
}

bool read_is_of(const struct store_read *data, enum backend_format format) {
    for (int32_t i = 0; i < data->runs_count; i++)
        if (data->runs[i].format != stored_format(format))
            return false;
    return true;
}

enum status convert_read(struct convert *c, const struct store_read *data, struct read_out *out) {
    enum status st = ST_OK;
    for (int32_t i = 0; i < data->runs_count && !st; i++) {
        const struct store_run *run = &data->runs[i];
        if (run->format == stored_format(c->format))
            st = run_pass(c, run, out);
        else
            st = c->format == FORMAT_KAFKA ? run_to_kafka(c, run, out) : run_to_iggy(c, run, out);
    }
    if (out->count > 0)
        return ST_OK; /* what comes behind it is the next read's */
    return st == ST_UNMAPPABLE || st == ST_NO_MEMORY ? st : ST_CORRUPT;
}
