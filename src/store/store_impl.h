/*
 * The inside of struct store, for store.c (open, close, values), store_streams.c, store_topics.c, store_users.c and store_offsets.c.
 * The order of locks: a topic's change_lock, catalog_lock, the registry's, a topic's.
 */
#ifndef STORE_STORE_IMPL_H
#define STORE_STORE_IMPL_H

#include <pthread.h>

#include "base/base.h"
#include "store/catalog.h"
#include "store/segment.h"
#include "store/store.h"
#include "store/topic.h"

struct offsets;

struct store {
    struct log_env env;
    char *data_dir; /* owned */
    int lock_fd;
    int reserve_fd; /* of a file that keeps some room on the disk, for what makes room; -1: none */
    pthread_mutex_t catalog_lock; /* held over the catalog's I/O: one change of names at a time */
    struct catalog *catalog;
    struct registry registry;
    struct offsets *offsets; /* owned; committed offsets */
    int64_t parts_count;     /* of all topics (topic_parts); under catalog_lock */
    int32_t leftovers_removed;
};

/* What a topic keeps in memory: names, partitions, and partitions that were taken from it. Under catalog_lock. */
static inline int64_t topic_parts(const struct topic *t) {
    return (int64_t)t->names_count + t->partitions_count + t->retired_count;
}

/*
 * A full disk must not keep topics from being deleted, which writes to the catalog first: some room is held back, given up for that, and taken
 * again when there is more. Both do what they can. With the catalog's lock. False: there was nothing to give up.
 */
void store_reserve_take(struct store *s);
bool store_reserve_give(struct store *s);

/* Of streams and topics alike: 1 to NAME_BYTES_MAX bytes. */
bool store_name_is_possible(struct str name);

/* A topic with its partitions, not in the registry yet. ST_NO_MEMORY. */
enum status store_topic_make(struct store *s, const struct catalog_topic *row, struct topic **out) MUST_USE;

/*
 * Remove the folders of a topic's partitions from <= i < to, or the topic's own (from -1), so that no power cut brings them back.
 * any_out: whether there was one. ST_OK also where there was none; ST_IO, ...: some may be left.
 */
enum status store_files_remove(struct store *s, struct topic_number number, int32_t from, int32_t to,
                               bool *any_out) MUST_USE;
#endif
