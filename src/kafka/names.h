/* Which elements of a request name the same thing. */
#ifndef KAFKA_NAMES_H
#define KAFKA_NAMES_H

#include "kafka/request.h"

/* What an element names: a text (or the bytes of an id) and a number beside it, as a partition or a kind. */
struct name_key {
    struct str name; /* may be null */
    int32_t number;
};

/* An id as the name of a key. Borrows. */
static inline struct str name_of_id(const struct uuid *id) {
    return (struct str){(const char *)id->b, (int32_t)sizeof id->b};
}

struct name_place {
    int32_t first; /* index of the first element with the same key: its own, when it is that */
    bool repeated; /* others have the same key */
};

/*
 * The place of each key, in the order of keys; memory of the request. In O(n log n): a list may have 65,536
 * elements.
 * NULL: no memory, and the request has been closed.
 */
struct name_place *names_place(struct request *r, const struct name_key *keys, int32_t count) MUST_USE;
#endif
