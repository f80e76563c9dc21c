#include "iggy/cut.h"

/* Messages in a row of one batch. */
struct piece {
    const uint8_t *from, *to;
    uint32_t count;
    uint64_t next_offset;
};

static bool message_fits(const struct iggy_cut *cut, const struct piece *p, const uint8_t *end) {
    int64_t bytes = IGGY_BATCH_HEADER_BYTES + (end - p->from);
    if (p->count >= cut->count_max)
        return false;
    return bytes <= cut->bytes_max || (cut->count == 0 && p->count == 0);
}

/* What of b is wanted. */
static enum status piece_find(struct iggy_cut *cut, const struct iggy_batch *b, struct piece *out) {
    struct iggy_messages_iter it;
    struct iggy_message m;
    iggy_messages_init(&it, b);
    *out = (struct piece){0};
    for (uint32_t i = 0; i < b->messages_count; i++) {
        const uint8_t *frame = it.at;
        enum status st = iggy_messages_next(&it, &m);
        if (st)
            return ST_BAD_RECORD;
        if (b->base_offset + m.offset_delta < cut->offset)
            continue;
        if (!out->from)
            out->from = out->to = frame;
        if (!message_fits(cut, out, it.at)) {
            cut->full = true;
            return ST_OK;
        }
        out->to = it.at;
        out->count++;
        out->next_offset = b->base_offset + m.offset_delta + 1;
    }
    return ST_OK;
}

static enum status cut_batch(struct iggy_cut *cut, const struct iggy_batch *b, const uint8_t *header,
                             struct wbuf *out) {
    struct piece p;
    enum status st = piece_find(cut, b, &p);
    if (st || p.count == 0)
        return st;
    int32_t frames_len = (int32_t)(p.to - p.from);
    if (p.count == b->messages_count && !(cut->no_producer && b->producer.present)) {
        st = wbuf_borrow(out, header, (size_t)b->size_bytes);
    } else {
        uint8_t written[IGGY_BATCH_HEADER_BYTES];
        struct iggy_batch rest = *b;
        rest.frames = (struct bytes){p.from, frames_len};
        rest.messages_count = p.count;
        if (cut->no_producer)
            rest.producer = (struct iggy_producer){0};
        iggy_batch_write_header(written, &rest);
        st = wbuf_put(out, written, sizeof written);
        if (!st)
            st = wbuf_borrow(out, p.from, (size_t)frames_len);
    }
    cut->offset = p.next_offset;
    cut->count += p.count;
    cut->count_max -= p.count;
    cut->bytes += IGGY_BATCH_HEADER_BYTES + frames_len;
    cut->bytes_max -= IGGY_BATCH_HEADER_BYTES + frames_len;
    return st;
}

enum status iggy_cut_add(struct iggy_cut *cut, struct bytes batches, struct wbuf *out) {
    while (batches.len > 0 && !cut->full) {
        struct iggy_batch b;
        enum status st = iggy_batch_read(batches, true, &b);
        if (!st)
            st = cut_batch(cut, &b, batches.ptr, out);
        if (st)
            return st == ST_TRUNCATED || st == ST_BAD_LENGTH ? ST_BAD_RECORD : st;
        batches.ptr += b.size_bytes;
        batches.len -= b.size_bytes;
    }
    return ST_OK;
}
