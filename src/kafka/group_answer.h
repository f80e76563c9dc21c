/*
 * What the coordinator says, copied for an answer: its texts are valid inside `done` only, and a request's own arena is bounded by what the client
 * sent. Used on the coordinator's loop, then on the request's.
 */
#ifndef KAFKA_GROUP_ANSWER_H
#define KAFKA_GROUP_ANSWER_H

#include "base/arena.h"

#define GROUP_OPERATIONS_ALL \
    3400 /* of a group, as Kafka 4.4: read, delete, describe, describe and alter configs */

struct group_answer {
    struct arena arena; /* as long as the request: arena_release at its end */
    bool no_memory;     /* something could not be copied: the answer is of no use */
};

void group_answer_init(struct group_answer *a, size_t bytes_max);

/* Zeroed memory for count elements; NULL only with no_memory. */
void *group_answer_take(struct group_answer *a, int32_t count, size_t size);

/* Copies. Null stays null in the first, and is empty in the others. Without memory: null, or no bytes. */
struct str group_answer_text(struct group_answer *a, struct str s);
struct str group_answer_some_text(struct group_answer *a, struct str s);
struct bytes group_answer_bytes(struct group_answer *a, struct bytes b);
#endif
