/*
 * An array of pointers that stays sorted: an index over what others own, small enough that moving its tail is cheap (some 100,000).
 * Making room is a step of its own, so that what has been promised, written to disk for example, can't fail for want of memory.
 * Not for sharing between threads at the same time.
 */
#ifndef BASE_SORTED_H
#define BASE_SORTED_H

#include "base/base.h"

/* Less than 0, 0 or more, as what key stands for comes before row, is it, or comes after it. */
typedef int sorted_compare_fn(const void *key, const void *row);

struct sorted {
    void **rows; /* the array is owned, the rows are not */
    size_t count, room;
};

/* Room for so many more rows. ST_NO_MEMORY. */
enum status sorted_reserve(struct sorted *s, size_t more) MUST_USE;

/* The place of the first row that does not come before key; count: there is none. */
size_t sorted_place(const struct sorted *s, sorted_compare_fn *compare, const void *key);

/* The row that key stands for; NULL: there is none. */
void *sorted_find(const struct sorted *s, sorted_compare_fn *compare, const void *key);

/* Put row at a place from sorted_place, in room that was reserved; take `count` rows from there on out. */
void sorted_put(struct sorted *s, size_t place, void *row);
void sorted_take(struct sorted *s, size_t place, size_t count);

void sorted_release(struct sorted *s); /* fine on zeroed and on released */
#endif
