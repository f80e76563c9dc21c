/* The fixture of the tests of committed offsets: see the header. */
#include "store/offsets_fixture.h"

#include "testing/test.h"

#include <fcntl.h>

#include "base/mem.h"
#include "store/file.h"
#include "store/log_fixture.h"

static int32_t partitions_of(void *user, const struct uuid *topic) {
    (void)user;
    return topic->b[15] == 255 ? 0 : 1000000;
}

enum status box_try(struct box *b) {
    b->s.offsets = NULL;
    return offsets_open(b->dir_fd, partitions_of, NULL, &b->s.offsets, b->reason);
}

struct box box_of(const char *dir) {
    struct box b = {.dir = dir};
    CHECK_EQ(file_open(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, &b.dir_fd), ST_OK);
    snprintf(b.path, sizeof b.path, "%s/%s", dir, OFFSETS_FILE);
    return b;
}

struct box box_open(const char *dir) {
    struct box b = box_of(dir);
    CHECK_EQ(box_try(&b), ST_OK);
    return b;
}

void box_close(struct box *b) {
    offsets_close(b->s.offsets);
    file_close(&b->dir_fd);
}

void box_reopen(struct box *b) {
    offsets_close(b->s.offsets);
    CHECK_EQ(box_try(b), ST_OK);
}

/* The file as it is now in another folder, as a crash leaves it. */
struct box box_copy(const struct box *b, int64_t bytes) {
    struct box copy = box_of(log_dir());
    int from, to;
    size_t got;
    uint8_t *memory = mem_take((size_t)bytes);
    CHECK_EQ(file_open(AT_FDCWD, b->path, O_RDONLY, &from), ST_OK);
    CHECK_EQ(file_read(from, memory, (size_t)bytes, 0, &got), ST_OK);
    CHECK_EQ(got, bytes);
    CHECK_EQ(file_open(AT_FDCWD, copy.path, O_RDWR | O_CREAT, &to), ST_OK);
    CHECK_EQ(file_write_flat(to, memory, got, 0), ST_OK);
    file_close(&from);
    file_close(&to);
    mem_free(memory);
    return copy;
}

struct uuid topic_id(int number) {
    struct uuid id = {{0}};
    id.b[0] = 1;
    id.b[15] = (uint8_t)number;
    return id;
}

struct store_offset offset_of(const char *owner, int topic, int32_t partition, int64_t offset) {
    return (struct store_offset){.owner = str_of(owner),
                                 .topic = topic_id(topic),
                                 .partition = partition,
                                 .offset = offset,
                                 .leader_epoch = -1,
                                 .metadata = STR_NULL,
                                 .committed_ms = offset + 7};
}

enum status box_set(struct box *b, const char *owner, int topic, int32_t partition, int64_t offset) {
    struct store_offset o = offset_of(owner, topic, partition, offset);
    return store_offsets_set(&b->s, &o, 1);
}

void box_set_durably(struct box *b, const char *owner, int topic, int32_t partition, int64_t offset) {
    CHECK_EQ(box_set(b, owner, topic, partition, offset), ST_OK);
    CHECK_EQ(store_offsets_sync(&b->s), ST_OK);
}

/* -1: none */
int64_t box_get(struct box *b, const char *owner, int topic, int32_t partition) {
    struct arena a;
    struct store_offset o;
    struct uuid id = topic_id(topic);
    arena_init(&a, NULL, 0, 1 << 20);
    enum status st = store_offset_get(&b->s, str_of(owner), &id, partition, &a, &o);
    CHECK(st == ST_OK || st == ST_NOT_FOUND);
    CHECK(st || (o.partition == partition && uuid_equal(&o.topic, &id) && o.committed_ms == o.offset + 7));
    arena_release(&a);
    return st ? -1 : o.offset;
}

int32_t box_remove(struct box *b, struct str owner, int topic, int32_t partition) {
    struct uuid id = topic_id(topic);
    int32_t count = -1;
    CHECK_EQ(store_offsets_remove(&b->s, owner, topic >= 0 ? &id : NULL, partition, &count), ST_OK);
    return count;
}

enum status listing_add(void *user, const struct store_offset *o) {
    struct listing *l = user;
    size_t at = strlen(l->text);
    snprintf(l->text + at, sizeof l->text - at, "%.*s/%d/%d=%lld ", o->owner.len, o->owner.ptr,
             o->topic.b[15], (int)o->partition, (long long)o->offset);
    return ++l->count == l->count_max ? ST_TIMED_OUT : ST_OK;
}

struct listing box_list(struct box *b, struct str owner) {
    struct listing l = {.count_max = -1};
    CHECK_EQ(store_offsets_each(&b->s, owner, listing_add, &l), ST_OK);
    return l;
}
