/*
 * Messages of the topic of offsets (D12-9): each u16 length and so many bytes is one. Whatever counts makes a table that, written out again
 * as messages, makes the same table; cleared, nothing of it is left.
 */
#include <stdlib.h>

#include "backend/iggy/kept_offsets.h"
#include "base/le.h"
#include "base/mem.h"

static void require(bool claim) {
    if (!claim)
        abort();
}

static void apply(struct kept_offsets *k, struct kept_writer *w) {
    kept_end(w);
    uint8_t *flat = mem_take(w->out.bytes);
    require(flat != NULL);
    wbuf_flatten(&w->out, flat);
    require(kept_apply(k, (struct bytes){flat, (int32_t)w->out.bytes}) == ST_OK);
    mem_free(flat);
    kept_release(w);
}

static enum status write_one(void *w, const struct kept_topic *topic, uint32_t partition, int64_t offset) {
    return kept_put(w, topic, partition, offset);
}

struct comparing {
    const struct kept_offsets *other;
    struct str group;
};

static enum status compare_one(void *user, const struct kept_topic *topic, uint32_t partition,
                               int64_t offset) {
    const struct comparing *c = user;
    require(offset >= 0 && kept_get(c->other, c->group, topic, partition) == offset);
    return ST_OK;
}

static void check(const struct kept_offsets *k) {
    struct kept_offsets again = {0};
    for (size_t i = 0; i < k->groups.count; i++) {
        struct kept_writer w;
        struct comparing c = {&again, kept_group_name(k, i)};
        require(kept_has(k, c.group));
        require(kept_begin(&w, c.group) == ST_OK);
        require(kept_each(k, c.group, write_one, &w) == ST_OK);
        apply(&again, &w);
        require(kept_each(k, c.group, compare_one, &c) == ST_OK);
    }
    require(again.groups.count == k->groups.count);
    kept_clear(&again);
    require(again.bytes == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct kept_offsets k = {0};
    while (size >= 2) {
        size_t len = le_get(data, 2);
        data += 2;
        size -= 2;
        len = len < size ? len : size;
        enum status st = kept_apply(&k, (struct bytes){data, (int32_t)len});
        require(st == ST_OK || st == ST_INVALID || st == ST_POLICY);
        require(k.bytes >= 0 && k.bytes <= KEPT_BYTES_MAX + (1 << 20));
        data += len;
        size -= len;
    }
    if (k.bytes < 1 << 20) /* else the walk alone takes seconds */
        check(&k);
    kept_clear(&k);
    require(k.bytes == 0);
    return 0;
}
