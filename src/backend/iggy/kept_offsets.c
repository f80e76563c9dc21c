#include "backend/iggy/kept_offsets.h"

#include "base/le.h"
#include "base/mem.h"
#include "base/rbuf.h"

#define MAGIC_BYTES       4
#define ENTRY_BYTES       12 /* partition, offset */
#define KIND_OFFSETS      1
#define KIND_FORGET       2
#define MESSAGE_BYTES_MAX ((size_t)1 << 30)
#define ROOM_MIN          8

static const uint8_t magic[MAGIC_BYTES] = {'k', 'g', 'o', 1}; /* and the version */

struct kept_offsets_of_topic {
    struct kept_topic topic; /* name owned */
    int32_t count;           /* offsets that are there */
    uint32_t room;
    int64_t *offsets; /* owned; by partition, -1: none */
};

struct kept_group {
    struct str name;      /* owned */
    struct sorted topics; /* struct kept_offsets_of_topic, owned, in name order */
};

/* ---- messages ---- */

static enum status put_le(struct kept_writer *w, uint64_t value, unsigned width) {
    uint8_t *at = wbuf_reserve(&w->out, width);
    if (!at)
        return ST_NO_MEMORY;
    le_set(at, width, value);
    return ST_OK;
}

static enum status put_text(struct kept_writer *w, struct str text) {
    enum status st = put_le(w, (uint64_t)text.len, 2);
    return st ? st : wbuf_put(&w->out, text.ptr, (size_t)text.len);
}

static enum status message_begin(struct kept_writer *w, uint8_t kind, struct str group) {
    *w = (struct kept_writer){.topic = {.name = STR_NULL}};
    wbuf_init(&w->out, MESSAGE_BYTES_MAX);
    enum status st = wbuf_put(&w->out, magic, sizeof magic);
    if (!st)
        st = put_le(w, kind, 1);
    return st ? st : put_text(w, group);
}

enum status kept_begin(struct kept_writer *w, struct str group) {
    return message_begin(w, KIND_OFFSETS, group);
}

enum status kept_forget(struct kept_writer *w, struct str group) {
    return message_begin(w, KIND_FORGET, group);
}

static bool topic_is_same(const struct kept_topic *a, const struct kept_topic *b) {
    return a->topic_id == b->topic_id && a->created_us == b->created_us && str_equal(a->name, b->name);
}

void kept_end(struct kept_writer *w) {
    if (w->count_at)
        le_set(w->count_at, 4, w->count);
    w->count_at = NULL;
    w->topic.name = STR_NULL;
}

static enum status topic_open(struct kept_writer *w, const struct kept_topic *topic) {
    kept_end(w);
    enum status st = put_text(w, topic->name);
    if (!st)
        st = put_le(w, topic->topic_id, 4);
    if (!st)
        st = put_le(w, topic->created_us, 8);
    if (st)
        return st;
    w->count_at = wbuf_reserve(&w->out, 4);
    w->count = 0;
    w->topic = *topic;
    return w->count_at ? ST_OK : ST_NO_MEMORY;
}

enum status kept_put(struct kept_writer *w, const struct kept_topic *topic, uint32_t partition,
                     int64_t offset) {
    enum status st = ST_OK;
    if (w->topic.name.len < 0 || !topic_is_same(&w->topic, topic))
        st = topic_open(w, topic);
    if (!st)
        st = put_le(w, partition, 4);
    if (!st)
        st = put_le(w, (uint64_t)(offset < 0 ? -1 : offset), 8);
    w->count += !st;
    return st;
}

void kept_release(struct kept_writer *w) {
    wbuf_release(&w->out);
}

/* ---- the table ---- */

static int compare_group(const void *key, const void *row) {
    return str_compare(*(const struct str *)key, ((const struct kept_group *)row)->name);
}

static int compare_topic(const void *key, const void *row) {
    return str_compare(*(const struct str *)key, ((const struct kept_offsets_of_topic *)row)->topic.name);
}

static int64_t topic_bytes(const struct kept_offsets_of_topic *t) {
    return (int64_t)sizeof *t + t->topic.name.len + (int64_t)t->room * (int64_t)sizeof t->offsets[0];
}

static int64_t group_bytes(const struct kept_group *g) {
    return (int64_t)sizeof *g + g->name.len;
}

static void topic_free(struct kept_offsets_of_topic *t) {
    mem_free((void *)(uintptr_t)t->topic.name.ptr);
    mem_free(t->offsets);
    mem_free(t);
}

static void group_drop(struct kept_offsets *k, struct kept_group *g) {
    for (size_t i = 0; i < g->topics.count; i++) {
        k->bytes -= topic_bytes(g->topics.rows[i]);
        topic_free(g->topics.rows[i]);
    }
    sorted_release(&g->topics);
    sorted_take(&k->groups, sorted_place(&k->groups, compare_group, &g->name), 1);
    k->bytes -= group_bytes(g);
    mem_free((void *)(uintptr_t)g->name.ptr);
    mem_free(g);
}

static void topic_drop(struct kept_offsets *k, struct kept_group *g, struct kept_offsets_of_topic *t) {
    sorted_take(&g->topics, sorted_place(&g->topics, compare_topic, &t->topic.name), 1);
    k->bytes -= topic_bytes(t);
    topic_free(t);
}

/* The group, made when it is missing; NULL: no memory. */
static struct kept_group *group_of(struct kept_offsets *k, struct str name) {
    struct kept_group *g = sorted_find(&k->groups, compare_group, &name);
    if (g || sorted_reserve(&k->groups, 1))
        return g;
    g = mem_take_zeroed(1, sizeof *g);
    char *copy = g ? mem_text(name) : NULL;
    if (!copy) {
        mem_free(g);
        return NULL;
    }
    g->name = (struct str){copy, name.len};
    sorted_put(&k->groups, sorted_place(&k->groups, compare_group, &name), g);
    k->bytes += group_bytes(g);
    return g;
}

/* The topic as it is now, made when it is missing; NULL: no memory. Offsets of an earlier one of the name go. */
static struct kept_offsets_of_topic *topic_of(struct kept_offsets *k, struct kept_group *g,
                                              const struct kept_topic *topic) {
    struct kept_offsets_of_topic *t = sorted_find(&g->topics, compare_topic, &topic->name);
    if (t && topic_is_same(&t->topic, topic))
        return t;
    if (t)
        topic_drop(k, g, t);
    if (sorted_reserve(&g->topics, 1))
        return NULL;
    t = mem_take_zeroed(1, sizeof *t);
    char *copy = t ? mem_text(topic->name) : NULL;
    if (!copy) {
        mem_free(t);
        return NULL;
    }
    t->topic = *topic;
    t->topic.name = (struct str){copy, topic->name.len};
    sorted_put(&g->topics, sorted_place(&g->topics, compare_topic, &topic->name), t);
    k->bytes += topic_bytes(t);
    return t;
}

static enum status topic_make_room(struct kept_offsets *k, struct kept_offsets_of_topic *t,
                                   uint32_t partition) {
    if (partition < t->room)
        return ST_OK;
    uint32_t room = t->room * 2 > ROOM_MIN ? t->room * 2 : ROOM_MIN;
    room = room > partition ? room : partition + 1;
    int64_t more = ((int64_t)room - (int64_t)t->room) * (int64_t)sizeof t->offsets[0];
    if (k->bytes + more > KEPT_BYTES_MAX)
        return ST_POLICY;
    int64_t *offsets = mem_grow(t->offsets, room * sizeof *offsets);
    if (!offsets)
        return ST_NO_MEMORY;
    for (uint32_t i = t->room; i < room; i++)
        offsets[i] = -1;
    t->offsets = offsets;
    t->room = room;
    k->bytes += more;
    return ST_OK;
}

static enum status offset_set(struct kept_offsets *k, struct kept_offsets_of_topic *t, uint32_t partition,
                              int64_t offset) {
    if (offset < 0 && partition >= t->room)
        return ST_OK;
    enum status st = topic_make_room(k, t, partition);
    if (st)
        return st;
    t->count += (offset >= 0) - (t->offsets[partition] >= 0);
    t->offsets[partition] = offset < 0 ? -1 : offset;
    return ST_OK;
}

/* ---- applying ---- */

static bool get_le(struct rbuf *in, unsigned width, uint64_t *out) {
    if (rbuf_left(in) < width)
        return false;
    *out = le_get(in->at, width);
    in->at += width;
    return true;
}

static bool get_text(struct rbuf *in, uint64_t len_max, struct str *out) {
    uint64_t len;
    if (!get_le(in, 2, &len) || len < 1 || len > len_max || rbuf_left(in) < len)
        return false;
    *out = (struct str){(const char *)in->at, (int32_t)len};
    in->at += len;
    return true;
}

static bool get_topic(struct rbuf *in, struct kept_topic *topic, uint64_t *count) {
    uint64_t id;
    if (!get_text(in, UINT16_MAX, &topic->name) || !get_le(in, 4, &id) ||
        !get_le(in, 8, &topic->created_us) || !get_le(in, 4, count))
        return false;
    topic->topic_id = (uint32_t)id;
    return *count <= rbuf_left(in) / ENTRY_BYTES;
}

/* Whether what follows the group is well formed to the end, so that a message counts as a whole. */
static bool entries_are_good(struct rbuf in) {
    struct kept_topic topic;
    uint64_t count, partition, offset;
    while (rbuf_left(&in) > 0) {
        if (!get_topic(&in, &topic, &count))
            return false;
        for (; count > 0; count--)
            if (!get_le(&in, 4, &partition) || !get_le(&in, 8, &offset) || partition >= KEPT_PARTITIONS_MAX)
                return false;
    }
    return true;
}

static enum status topic_apply(struct kept_offsets *k, struct kept_group *g, const struct kept_topic *topic,
                               struct rbuf *in, uint64_t count) {
    const struct kept_offsets_of_topic *known = sorted_find(&g->topics, compare_topic, &topic->name);
    if (known && known->topic.created_us > topic->created_us) { /* of a gateway that did not know yet */
        in->at += count * ENTRY_BYTES;
        return ST_OK;
    }
    struct kept_offsets_of_topic *t = topic_of(k, g, topic);
    enum status st = t ? ST_OK : ST_NO_MEMORY;
    for (; !st && count > 0; count--) {
        uint64_t partition, offset;
        if (!get_le(in, 4, &partition) || !get_le(in, 8, &offset))
            return ST_INVALID;
        st = offset_set(k, t, (uint32_t)partition, (int64_t)offset);
    }
    if (!st && t->count == 0)
        topic_drop(k, g, t);
    return st;
}

static enum status offsets_apply(struct kept_offsets *k, struct str group, struct rbuf in) {
    struct kept_topic topic;
    uint64_t count;
    if (!entries_are_good(in))
        return ST_INVALID;
    if (k->bytes > KEPT_BYTES_MAX)
        return ST_POLICY;
    struct kept_group *g = group_of(k, group);
    enum status st = g ? ST_OK : ST_NO_MEMORY;
    while (!st && rbuf_left(&in) > 0 && get_topic(&in, &topic, &count))
        st = topic_apply(k, g, &topic, &in, count);
    if (g && g->topics.count == 0)
        group_drop(k, g);
    return st;
}

enum status kept_apply(struct kept_offsets *k, struct bytes message) {
    struct rbuf in = rbuf_of(message);
    uint64_t kind;
    struct str group;
    if (rbuf_left(&in) < MAGIC_BYTES || memcmp(in.at, magic, MAGIC_BYTES) != 0)
        return ST_INVALID;
    in.at += MAGIC_BYTES;
    if (!get_le(&in, 1, &kind) || !get_text(&in, KEPT_GROUP_BYTES_MAX, &group))
        return ST_INVALID;
    if (kind == KIND_OFFSETS)
        return offsets_apply(k, group, in);
    if (kind != KIND_FORGET || rbuf_left(&in) > 0)
        return ST_INVALID;
    struct kept_group *g = sorted_find(&k->groups, compare_group, &group);
    if (g)
        group_drop(k, g);
    return ST_OK;
}

/* ---- looking ---- */

int64_t kept_get(const struct kept_offsets *k, struct str group, const struct kept_topic *topic,
                 uint32_t partition) {
    const struct kept_group *g = sorted_find(&k->groups, compare_group, &group);
    const struct kept_offsets_of_topic *t = g ? sorted_find(&g->topics, compare_topic, &topic->name) : NULL;
    return t && topic_is_same(&t->topic, topic) && partition < t->room ? t->offsets[partition] : -1;
}

enum status kept_each(const struct kept_offsets *k, struct str group, kept_fn *fn, void *user) {
    const struct kept_group *g = sorted_find(&k->groups, compare_group, &group);
    enum status st = ST_OK;
    for (size_t i = 0; g && i < g->topics.count; i++) {
        const struct kept_offsets_of_topic *t = g->topics.rows[i];
        for (uint32_t p = 0; !st && p < t->room; p++)
            if (t->offsets[p] >= 0)
                st = fn(user, &t->topic, p, t->offsets[p]);
    }
    return st;
}

bool kept_has(const struct kept_offsets *k, struct str group) {
    return sorted_find(&k->groups, compare_group, &group) != NULL;
}

struct str kept_group_name(const struct kept_offsets *k, size_t number) {
    return ((const struct kept_group *)k->groups.rows[number])->name;
}

void kept_clear(struct kept_offsets *k) {
    while (k->groups.count > 0)
        group_drop(k, k->groups.rows[k->groups.count - 1]);
    sorted_release(&k->groups);
    k->bytes = 0;
}
