#include "backend/store/lane_producers.h"

#define HASH_NONFATAL_OOM          1
#define uthash_malloc(size)        mem_take(size)
#define uthash_free(ptr, size)     mem_free(ptr)
#define HASH_FUNCTION(key, len, h) ((h) = id_hash(key))
#include <uthash.h>

#include "base/list.h"
#include "base/mem.h"

#define BATCHES_KEPT  5                     /* as many as Kafka clients have under way */
#define SEQUENCE_MASK ((uint32_t)INT32_MAX) /* sequences go from 0 to INT32_MAX and begin again */
#define SEQUENCE_HALF (UINT32_C(1) << 30)   /* what is further behind than this is ahead */
#define LEARN_BYTES   ((int64_t)32 << 20)
#define READ_BYTES    ((int64_t)4 << 20)

struct kept_batch {
    uint32_t base_sequence;
    int32_t count; /* 0: none */
    int64_t base_offset;
};

struct lane_producer {
    UT_hash_handle hh;
    struct link link; /* in recent */
    uint64_t id;
    int32_t epoch;
    uint32_t next_sequence;
    int32_t newest; /* of batches */
    struct kept_batch batches[BATCHES_KEPT];
};

struct lane_producers {
    struct lane_producer *by_id; /* owned */
    struct link recent;          /* the one that was silent longest first */
};

static unsigned id_hash(const void *key) {
    uint64_t id;
    memcpy(&id, key, sizeof id);
    return (unsigned)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static void producer_remove(struct lane_producers *ps, struct lane_producer *p) {
    HASH_DEL(ps->by_id, p);
    list_remove(&p->link);
    mem_free(p);
}

/* NULL: no memory; then the batch is taken without being remembered. */
static struct lane_producer *producer_add(struct lane_producers **all, uint64_t id) {
    struct lane_producers *ps = *all;
    if (!ps) {
        ps = mem_take_zeroed(1, sizeof *ps);
        if (!ps)
            return NULL;
        list_init(&ps->recent);
        *all = ps;
    }
    struct lane_producer *p = mem_take_zeroed(1, sizeof *p);
    if (!p)
        return NULL;
    p->id = id;
    HASH_ADD(hh, ps->by_id, id, sizeof p->id, p);
    if (!p->hh.tbl) {
        mem_free(p);
        return NULL;
    }
    list_push_tail(&ps->recent, &p->link);
    if (HASH_COUNT(ps->by_id) > LANE_PRODUCERS_MAX)
        producer_remove(ps, container_of(ps->recent.next, struct lane_producer, link));
    return p;
}

/* NULL: it isn't known. */
static struct lane_producer *producer_find(struct lane_producers *ps, uint64_t id) {
    struct lane_producer *p = NULL;
    if (ps)
        HASH_FIND(hh, ps->by_id, &id, sizeof id, p);
    return p;
}

static void producer_touch(struct lane_producers *ps, struct lane_producer *p) {
    list_remove(&p->link);
    list_push_tail(&ps->recent, &p->link);
}

static void producer_note(struct lane_producer *p, const struct numbered_batch *b) {
    if (p->epoch != b->producer_epoch)
        memset(p->batches, 0, sizeof p->batches);
    p->epoch = b->producer_epoch;
    p->next_sequence = (b->base_sequence + (uint32_t)b->count) & SEQUENCE_MASK;
    p->newest = (p->newest + 1) % BATCHES_KEPT;
    p->batches[p->newest] = (struct kept_batch){b->base_sequence, b->count, b->base_offset};
}

/* A batch that doesn't begin where the last one ended. */
static enum status sequence_check(const struct lane_producer *p, const struct numbered_batch *b,
                                  int64_t *offset_out) {
    uint32_t behind = (p->next_sequence - b->base_sequence) & SEQUENCE_MASK;
    for (int i = 0; i < BATCHES_KEPT; i++)
        if (p->batches[i].count == b->count && p->batches[i].base_sequence == b->base_sequence) {
            *offset_out = p->batches[i].base_offset;
            return ST_EXISTS;
        }
    if (b->kafka || behind >= SEQUENCE_HALF || behind < (uint32_t)b->count)
        return ST_BAD_SEQUENCE;
    *offset_out = -1;
    return ST_EXISTS;
}

enum status lane_producers_check(struct lane_producers **all, const struct numbered_batch *b,
                                 int64_t *offset_out) {
    struct lane_producer *p = producer_find(*all, b->producer_id);
    if (!p) {
        if (!b->kafka && b->base_sequence != 0)
            return ST_UNKNOWN_PRODUCER;
        p = producer_add(all, b->producer_id);
        if (p)
            producer_note(p, b);
        return ST_OK;
    }
    producer_touch(*all, p);
    if (b->producer_epoch < p->epoch)
        return ST_FENCED;
    if (b->producer_epoch == p->epoch && b->base_sequence != p->next_sequence)
        return sequence_check(p, b, offset_out);
    if (b->producer_epoch != p->epoch && b->base_sequence != 0)
        return ST_BAD_SEQUENCE;
    producer_note(p, b);
    return ST_OK;
}

bool numbered_of_kafka(const struct batch *b, struct numbered_batch *out) {
    *out = (struct numbered_batch){
        .producer_id = (uint64_t)b->producer_id,
        .producer_epoch = b->producer_epoch,
        .base_sequence = (uint32_t)b->base_sequence,
        .count = b->last_offset_delta + 1,
        .kafka = true,
    };
    return b->producer_id >= 0 && b->base_sequence >= 0;
}

bool numbered_of_iggy(const struct iggy_batch *b, struct numbered_batch *out) {
    *out = (struct numbered_batch){
        .producer_id = b->producer.id,
        .producer_epoch = b->producer.epoch,
        .base_sequence = b->producer.base_sequence,
        .count = (int32_t)b->messages_count, /* of at least 48 bytes each, in 2 GiB at most */
    };
    return b->producer.present;
}

/* ---- from the log ---- */

static void learn_batch(struct lane_producers **all, const struct numbered_batch *b) {
    struct lane_producer *p = producer_find(*all, b->producer_id);
    if (p)
        producer_touch(*all, p);
    else
        p = producer_add(all, b->producer_id);
    if (p)
        producer_note(p, b);
}

static void learn_kafka(struct lane_producers **all, struct bytes left) {
    struct batch b;
    struct numbered_batch numbered;
    for (; left.len > 0 && batch_read(left, &b) == ST_OK; left.ptr += b.size_bytes, left.len -= b.size_bytes)
        if (numbered_of_kafka(&b, &numbered)) {
            numbered.base_offset = b.base_offset;
            learn_batch(all, &numbered);
        }
}

static void learn_iggy(struct lane_producers **all, struct bytes left) {
    struct iggy_batch b;
    struct numbered_batch numbered;
    for (; left.len > 0 && iggy_batch_read(left, true, &b) == ST_OK;
         left.ptr += b.size_bytes, left.len -= b.size_bytes)
        if (numbered_of_iggy(&b, &numbered)) {
            numbered.base_offset = (int64_t)b.base_offset;
            learn_batch(all, &numbered);
        }
}

/* The first offset, or nearly, with no more than LEARN_BYTES behind it. */
static int64_t learn_from(struct partition *p) {
    int64_t low = partition_start(p), high = partition_end(p);
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (partition_bytes_after(p, middle) > LEARN_BYTES)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void lane_producers_learn(struct lane_producers **all, struct partition *p) {
    int64_t end = partition_end(p);
    for (int64_t offset = learn_from(p), next; offset < end; offset = next) {
        struct store_read data = {0};
        if (partition_read(p, offset, READ_BYTES, true, &data))
            return;
        for (int32_t i = 0; i < data.runs_count; i++)
            if (data.runs[i].format == STORE_FORMAT_IGGY)
                learn_iggy(all, data.runs[i].bytes);
            else
                learn_kafka(all, data.runs[i].bytes);
        next = data.runs_count > 0 ? data.next_offset : end;
        store_read_release(&data);
    }
}

void lane_producers_free(struct lane_producers *ps) {
    struct lane_producer *p, *next;
    if (!ps)
        return;
    HASH_ITER(hh, ps->by_id, p, next)
    producer_remove(ps, p);
    mem_free(ps);
}
