/* Deadlines: see deadlines.h. */
#include "group/deadlines.h"

/* Two heaps become one; either may be NULL. Neither has neighbours. */
static struct deadline *meld(struct deadline *a, struct deadline *b) {
    if (!a || !b)
        return a ? a : b;
    if (b->key_ms < a->key_ms) {
        struct deadline *swap = a;
        a = b;
        b = swap;
    }
    b->next = a->child;
    if (b->next)
        b->next->prev = b;
    b->prev = a;
    a->child = b;
    return a;
}

static struct deadline *cut_off(struct deadline *d) {
    d->next = d->prev = NULL;
    return d;
}

/* The heap of a list of siblings: in pairs from the left, then all from the right. */
static struct deadline *meld_all(struct deadline *first) {
    struct deadline *pairs = NULL; /* a stack, by next */
    while (first) {
        struct deadline *a = first, *b = a->next;
        first = b ? b->next : NULL;
        struct deadline *pair = meld(cut_off(a), b ? cut_off(b) : NULL);
        pair->next = pairs;
        pairs = pair;
    }
    struct deadline *all = NULL;
    while (pairs) {
        struct deadline *pair = pairs;
        pairs = pair->next;
        all = meld(all, cut_off(pair));
    }
    return all;
}

static void insert(struct deadlines *ds, struct deadline *d) {
    d->child = NULL;
    d->key_ms = d->due_ms;
    d->set = true;
    ds->top = meld(ds->top, cut_off(d));
}

void deadline_clear(struct deadlines *ds, struct deadline *d) {
    if (!d->set)
        return;
    struct deadline *below = meld_all(d->child);
    if (ds->top == d) {
        ds->top = below;
    } else {
        if (d->prev->child == d)
            d->prev->child = d->next;
        else
            d->prev->next = d->next;
        if (d->next)
            d->next->prev = d->prev;
        ds->top = meld(ds->top, below);
    }
    d->child = NULL;
    d->set = false;
    cut_off(d);
}

void deadline_set(struct deadlines *ds, struct deadline *d, int64_t due_ms) {
    d->due_ms = due_ms;
    if (d->set && due_ms >= d->key_ms)
        return;
    deadline_clear(ds, d);
    insert(ds, d);
}

struct deadline *deadlines_pop(struct deadlines *ds, int64_t now_ms) {
    while (ds->top && ds->top->key_ms <= now_ms) {
        struct deadline *d = ds->top;
        deadline_clear(ds, d);
        if (d->due_ms <= now_ms)
            return d;
        insert(ds, d);
    }
    return NULL;
}

int64_t deadlines_next_ms(const struct deadlines *ds) {
    return ds->top ? ds->top->key_ms : INT64_MAX;
}
