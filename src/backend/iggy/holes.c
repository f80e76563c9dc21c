#include "backend/iggy/holes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mem.h"
#include "wire/records.h"

#define SEQUENCE_MASK ((uint32_t)INT32_MAX) /* sequences go from 0 to INT32_MAX and begin again */
#define SEQUENCE_HALF (UINT32_C(1) << 30)   /* what is further behind than this is ahead */

/* Whose batches. */
struct line {
    uint64_t connection;
    int64_t producer_id;
    uint64_t topic; /* a hash of its name, or of its id where the client goes by that */
    int32_t partition;
};

struct hole {
    struct line line;
    int16_t epoch;
    uint32_t sequence; /* the batch that begins here is missing */
    uint32_t end;      /* of those that have failed: the last one's */
    int64_t until_ms;
};

struct holes {
    int32_t count, oldest; /* oldest: the next to be forgotten, once all are taken */
    struct hole all[HOLES_MAX];
};

/* False: the batch isn't numbered, or none. */
static bool line_of(uint64_t connection, const struct backend_append_part *part, struct line *line,
                    struct batch *batch) {
    if (batch_read(part->records, batch) || batch->producer_id < 0 || batch->base_sequence < 0)
        return false;
    *line = (struct line){
        .connection = connection, .producer_id = batch->producer_id, .partition = part->partition};
    if (part->topic.len >= 0)
        line->topic = XXH3_64bits(part->topic.ptr, (size_t)part->topic.len);
    else
        line->topic = XXH3_64bits_withSeed(part->id.b, sizeof part->id.b, 1);
    return true;
}

static const struct hole *hole_find(const struct holes *h, const struct line *line) {
    for (int32_t i = 0; i < h->count; i++) {
        const struct line *l = &h->all[i].line;
        if (l->connection == line->connection && l->producer_id == line->producer_id &&
            l->topic == line->topic && l->partition == line->partition)
            return &h->all[i];
    }
    return NULL;
}

static bool is_before(uint32_t a, uint32_t b) {
    return a != b && ((b - a) & SEQUENCE_MASK) < SEQUENCE_HALF;
}

/* One more has failed. */
static void hole_widen(struct hole *hole, uint32_t first, uint32_t end, int64_t now_ms) {
    if (!is_before(hole->sequence, first)) {
        hole->sequence = first;
        hole->until_ms = now_ms + HOLE_MS;
    }
    if (is_before(hole->end, end))
        hole->end = end;
}

/* All before end is stored. */
static void hole_fill(struct holes *h, struct hole *hole, uint32_t end) {
    if (is_before(hole->sequence, end))
        hole->sequence = end;
    if (!is_before(hole->sequence, hole->end))
        *hole = h->all[--h->count];
}

static struct hole *hole_take(struct holes *h) {
    if (h->count < HOLES_MAX)
        return &h->all[h->count++];
    struct hole *hole = &h->all[h->oldest];
    h->oldest = (h->oldest + 1) % HOLES_MAX;
    return hole;
}

static bool hole_is_of(const struct hole *hole, const struct batch *batch, int64_t now_ms) {
    return hole && hole->epoch == batch->producer_epoch && now_ms < hole->until_ms;
}

void holes_note(struct holes *h, uint64_t connection, const struct backend_append_part *part, bool stored,
                int64_t now_ms) {
    struct line line;
    struct batch batch;
    if ((stored && h->count == 0) || !line_of(connection, part, &line, &batch))
        return;
    struct hole *hole = (struct hole *)(uintptr_t)hole_find(h, &line);
    uint32_t first = (uint32_t)batch.base_sequence;
    uint32_t end = (first + (uint32_t)batch.last_offset_delta + 1) & SEQUENCE_MASK;
    bool known = hole_is_of(hole, &batch, now_ms);
    if (!stored && !known) {
        hole = hole ? hole : hole_take(h);
        *hole = (struct hole){line, batch.producer_epoch, first, end, now_ms + HOLE_MS};
    } else if (!stored) {
        hole_widen(hole, first, end, now_ms);
    } else if (hole) {
        hole_fill(h, hole, known ? end : hole->end);
    }
}

bool holes_before(const struct holes *h, uint64_t connection, const struct backend_append_part *part,
                  int64_t now_ms) {
    struct line line;
    struct batch batch;
    if (h->count == 0 || !line_of(connection, part, &line, &batch))
        return false;
    const struct hole *hole = hole_find(h, &line);
    return hole_is_of(hole, &batch, now_ms) && is_before(hole->sequence, (uint32_t)batch.base_sequence);
}

enum status holes_new(struct holes **out) {
    *out = mem_take_zeroed(1, sizeof **out);
    return *out ? ST_OK : ST_NO_MEMORY;
}

void holes_free(struct holes *h) {
    mem_free(h);
}
