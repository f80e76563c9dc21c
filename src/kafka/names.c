#include "kafka/names.h"

#include <stdlib.h>

#include "kafka/topic_name.h"

static int key_compare(const struct name_key *a, const struct name_key *b) {
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return str_compare(a->name, b->name);
}

/* Equal keys stay in the order of the request. */
static int place_compare(const void *a, const void *b, void *keys) {
    int32_t x = *(const int32_t *)a;
    int32_t y = *(const int32_t *)b;
    const struct name_key *key = keys;
    int order = key_compare(&key[x], &key[y]);
    return order != 0 ? order : (x > y) - (x < y);
}

struct name_place *names_place(struct request *r, const struct name_key *keys, int32_t count) {
    struct name_place *out = request_array(r, struct name_place, count);
    int32_t *sorted = out ? request_array(r, int32_t, count) : NULL;
    if (!sorted)
        return NULL;
    for (int32_t i = 0; i < count; i++)
        sorted[i] = i;
    qsort_r(sorted, (size_t)count, sizeof *sorted, place_compare, (void *)(uintptr_t)keys);

    int32_t first = 0;
    for (int32_t i = 0; i < count; i++) {
        bool same = i > 0 && key_compare(&keys[sorted[i]], &keys[sorted[i - 1]]) == 0;
        first = same ? first : sorted[i];
        out[sorted[i]] = (struct name_place){first, same};
        out[first].repeated |= same;
    }
    return out;
}
