#include "base/sorted.h"

#include "base/mem.h"

enum status sorted_reserve(struct sorted *s, size_t more) {
    if (s->room - s->count >= more)
        return ST_OK;
    size_t room = s->room * 2 > s->count + more ? s->room * 2 : s->count + more + 6;
    void **rows = mem_grow(s->rows, room * sizeof *rows);
    if (!rows)
        return ST_NO_MEMORY;
    s->rows = rows;
    s->room = room;
    return ST_OK;
}

size_t sorted_place(const struct sorted *s, sorted_compare_fn *compare, const void *key) {
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(key, s->rows[middle]) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void *sorted_find(const struct sorted *s, sorted_compare_fn *compare, const void *key) {
    size_t place = sorted_place(s, compare, key);
    return place < s->count && compare(key, s->rows[place]) == 0 ? s->rows[place] : NULL;
}

void sorted_put(struct sorted *s, size_t place, void *row) {
    assert(s->count < s->room && place <= s->count);
    memmove(s->rows + place + 1, s->rows + place, (s->count - place) * sizeof *s->rows);
    s->rows[place] = row;
    s->count++;
}

void sorted_take(struct sorted *s, size_t place, size_t count) {
    assert(place <= s->count && count <= s->count - place);
    s->count -= count;
    if (count > 0)
        memmove(s->rows + place, s->rows + place + count, (s->count - place) * sizeof *s->rows);
}

void sorted_release(struct sorted *s) {
    mem_free(s->rows);
    *s = (struct sorted){0};
}
