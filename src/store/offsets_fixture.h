/* Tests: committed offsets without the rest of a store, and copies of their file as a crash leaves it. */
#ifndef STORE_OFFSETS_FIXTURE_H
#define STORE_OFFSETS_FIXTURE_H

#include "store/offsets.h"
#include "store/store_impl.h"

/* A store of which only the offsets are there, and every topic but that of number 255, with 1,000,000 partitions. */
struct box {
    const char *dir;
    int dir_fd;
    char path[128]; /* of the file */
    char reason[OFFSETS_REASON_BYTES];
    struct store s;
};

/* In a folder; not opened yet. */
struct box box_of(const char *dir);
enum status box_try(struct box *b) MUST_USE; /* open; b->reason says why not */
struct box box_open(const char *dir);
void box_close(struct box *b);
void box_reopen(struct box *b);
/* The first bytes of its file in another folder, not opened. */
struct box box_copy(const struct box *b, int64_t bytes);

struct uuid topic_id(int number);
struct store_offset offset_of(const char *owner, int topic, int32_t partition, int64_t offset);
enum status box_set(struct box *b, const char *owner, int topic, int32_t partition, int64_t offset) MUST_USE;
void box_set_durably(struct box *b, const char *owner, int topic, int32_t partition, int64_t offset);
int64_t box_get(struct box *b, const char *owner, int topic, int32_t partition); /* -1: none */
/* How many; topic -1: all. */
int32_t box_remove(struct box *b, struct str owner, int topic, int32_t partition);

/* "owner/topic/partition=offset ..." in the order of the walk. */
struct listing {
    char text[512];
    int count, count_max;
};

enum status listing_add(void *listing, const struct store_offset *o);
struct listing box_list(struct box *b, struct str owner);
#endif
