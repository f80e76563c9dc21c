/*
 * Offsets of groups that are kept as messages (D12-9): what the messages say, and the table that they add up to. Pure functions, no
 * I/O. docs/MAPPING.md has the bytes.
 */
#ifndef BACKEND_IGGY_KEPT_OFFSETS_H
#define BACKEND_IGGY_KEPT_OFFSETS_H

#include "base/sorted.h"
#include "base/wbuf.h"

#define KEPT_BYTES_MAX       ((int64_t)256 << 20) /* of a table */
#define KEPT_PARTITIONS_MAX  1000000              /* as many as Iggy can number */
#define KEPT_GROUP_BYTES_MAX 246                  /* D12-3 */

/* Which creation of a topic an offset belongs to: what is made anew under the same name has other numbers. */
struct kept_topic {
    struct str name; /* Kafka's */
    uint32_t topic_id;
    uint64_t created_us;
};

struct kept_offsets {
    struct sorted groups; /* struct kept_group, owned, in name order */
    int64_t bytes;        /* about */
};

/*
 * Build a message: begin, put each offset (negative: forget it), end. Offsets of one topic that follow each other name it once.
 * Errors as wbuf_put.
 */
struct kept_writer {
    struct wbuf out;
    struct kept_topic topic; /* name borrowed; of the entry that is open; name.len -1: none is */
    uint8_t *count_at;
    uint32_t count;
};
enum status kept_begin(struct kept_writer *w, struct str group) MUST_USE;
enum status kept_put(struct kept_writer *w, const struct kept_topic *topic, uint32_t partition,
                     int64_t offset) MUST_USE;
void kept_end(struct kept_writer *w);     /* the message is w->out */
void kept_release(struct kept_writer *w); /* fine on zeroed and on released */

/* The other kind of message, a whole one: the group has no offsets any more. */
enum status kept_forget(struct kept_writer *w, struct str group) MUST_USE;

/*
 * Let a message count. ST_INVALID: it is none of ours, or of a version that is not known, and nothing has changed; ST_POLICY: over
 * KEPT_BYTES_MAX; ST_NO_MEMORY: what comes before in it may count already, so the table is good for nothing.
 */
enum status kept_apply(struct kept_offsets *k, struct bytes message) MUST_USE;

/* -1: there is none. */
int64_t kept_get(const struct kept_offsets *k, struct str group, const struct kept_topic *topic,
                 uint32_t partition);

/* fn for each offset of a group by topic and partition; anything but ST_OK from it ends the walk and is returned. */
typedef enum status kept_fn(void *user, const struct kept_topic *topic, uint32_t partition, int64_t offset);
enum status kept_each(const struct kept_offsets *k, struct str group, kept_fn *fn, void *user) MUST_USE;

bool kept_has(const struct kept_offsets *k, struct str group);
/* The groups, in name order: number 0 .. groups.count - 1. */
struct str kept_group_name(const struct kept_offsets *k, size_t number);

void kept_clear(struct kept_offsets *k); /* empty again; fine on zeroed */
#endif
