#include "users/permissions.h"

#include "base/mem.h"
#include "iggy/codec.h"

/* Lists as structs, twice over while they are sorted. */
#define SCRATCH_BYTES_MAX (64 * USERS_PERMISSIONS_BYTES_MAX)

enum permission_global {
    GLOBAL_MANAGE_SERVERS = 1 << 0,
    GLOBAL_READ_SERVERS = 1 << 1,
    GLOBAL_MANAGE_USERS = 1 << 2,
    GLOBAL_READ_USERS = 1 << 3,
    GLOBAL_MANAGE_STREAMS = 1 << 4,
    GLOBAL_READ_STREAMS = 1 << 5,
    GLOBAL_MANAGE_TOPICS = 1 << 6,
    GLOBAL_READ_TOPICS = 1 << 7,
    GLOBAL_POLL = 1 << 8,
    GLOBAL_SEND = 1 << 9,
};
enum permission_stream {
    STREAM_MANAGE_STREAM = 1 << 0,
    STREAM_READ_STREAM = 1 << 1,
    STREAM_MANAGE_TOPICS = 1 << 2,
    STREAM_READ_TOPICS = 1 << 3,
    STREAM_POLL = 1 << 4,
    STREAM_SEND = 1 << 5,
};
enum permission_topic {
    TOPIC_MANAGE = 1 << 0,
    TOPIC_READ = 1 << 1,
    TOPIC_POLL = 1 << 2,
    TOPIC_SEND = 1 << 3,
};

struct permissions_topic {
    uint32_t id;
    uint8_t bits; /* enum permission_topic */
};
struct permissions_stream {
    uint32_t id;
    uint8_t bits; /* enum permission_stream */
    uint32_t topics_first, topics_count;
};

/* ---- who may do what ---- */

#define GLOBAL_STREAMS (GLOBAL_MANAGE_STREAMS | GLOBAL_READ_STREAMS)
#define GLOBAL_TOPICS  (GLOBAL_MANAGE_TOPICS | GLOBAL_READ_TOPICS)
#define STREAM_STREAM  (STREAM_MANAGE_STREAM | STREAM_READ_STREAM)
#define STREAM_TOPICS  (STREAM_MANAGE_TOPICS | STREAM_READ_TOPICS)

/* Any one bit in any of the three columns is enough. Iggy protocol: permissions. */
static const struct rule {
    uint16_t global;
    uint8_t stream, topic;
} rules[] = {
    /* clang-format off */
    [ACTION_POLL]          = {GLOBAL_POLL | GLOBAL_TOPICS | GLOBAL_STREAMS,
                              STREAM_POLL | STREAM_STREAM | STREAM_TOPICS,
                              TOPIC_POLL | TOPIC_READ | TOPIC_MANAGE},
    [ACTION_SEND]          = {GLOBAL_SEND | GLOBAL_MANAGE_TOPICS | GLOBAL_MANAGE_STREAMS,
                              STREAM_SEND | STREAM_MANAGE_STREAM | STREAM_MANAGE_TOPICS,
                              TOPIC_SEND | TOPIC_MANAGE},
    [ACTION_READ_TOPIC]    = {GLOBAL_STREAMS | GLOBAL_TOPICS, STREAM_STREAM | STREAM_TOPICS, TOPIC_READ | TOPIC_MANAGE},
    [ACTION_READ_TOPICS]   = {GLOBAL_STREAMS | GLOBAL_TOPICS, STREAM_STREAM | STREAM_TOPICS, 0},
    [ACTION_CREATE_TOPIC]  = {GLOBAL_MANAGE_STREAMS | GLOBAL_MANAGE_TOPICS, STREAM_MANAGE_STREAM | STREAM_MANAGE_TOPICS, 0},
    [ACTION_MANAGE_TOPIC]  = {GLOBAL_MANAGE_STREAMS | GLOBAL_MANAGE_TOPICS, STREAM_MANAGE_STREAM | STREAM_MANAGE_TOPICS,
                              TOPIC_MANAGE},
    [ACTION_READ_STREAM]   = {GLOBAL_STREAMS, STREAM_STREAM, 0},
    [ACTION_READ_STREAMS]  = {GLOBAL_STREAMS, 0, 0},
    [ACTION_CREATE_STREAM] = {GLOBAL_MANAGE_STREAMS, 0, 0},
    [ACTION_MANAGE_STREAM] = {GLOBAL_MANAGE_STREAMS, STREAM_MANAGE_STREAM, 0},
    [ACTION_READ_SERVER]   = {GLOBAL_MANAGE_SERVERS | GLOBAL_READ_SERVERS, 0, 0},
    [ACTION_READ_USERS]    = {GLOBAL_MANAGE_USERS | GLOBAL_READ_USERS, 0, 0},
    [ACTION_MANAGE_USERS]  = {GLOBAL_MANAGE_USERS, 0, 0},
    /* clang-format on */
};

static const struct permissions_stream *stream_find(const struct permissions *p, uint32_t id) {
    size_t low = 0, high = p->streams_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->streams[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->streams_count && p->streams[low].id == id ? &p->streams[low] : NULL;
}

static uint8_t topic_bits(const struct permissions *p, const struct permissions_stream *s, uint32_t id) {
    size_t low = s->topics_first, high = low + s->topics_count, end = high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->topics[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && p->topics[low].id == id ? p->topics[low].bits : 0;
}

bool permissions_allow(const struct permissions *p, enum user_action action, uint32_t stream_id,
                       uint32_t topic_id) {
    const struct rule *rule = &rules[action];
    if (!p)
        return false;
    if (p->global & rule->global)
        return true;
    if (!rule->stream && !rule->topic)
        return false;
    const struct permissions_stream *s = stream_find(p, stream_id);
    if (!s)
        return false;
    return (s->bits & rule->stream) || (rule->topic && (topic_bits(p, s, topic_id) & rule->topic));
}

/* ---- making them ---- */

static unsigned bit(bool wanted, unsigned value) {
    return wanted ? value : 0;
}

static uint16_t global_bits(const struct iggy_permissions *p) {
    return (uint16_t)(bit(p->manage_servers, GLOBAL_MANAGE_SERVERS) |
                      bit(p->read_servers, GLOBAL_READ_SERVERS) | bit(p->manage_users, GLOBAL_MANAGE_USERS) |
                      bit(p->read_users, GLOBAL_READ_USERS) | bit(p->manage_streams, GLOBAL_MANAGE_STREAMS) |
                      bit(p->read_streams, GLOBAL_READ_STREAMS) |
                      bit(p->manage_topics, GLOBAL_MANAGE_TOPICS) | bit(p->read_topics, GLOBAL_READ_TOPICS) |
                      bit(p->poll_messages, GLOBAL_POLL) | bit(p->send_messages, GLOBAL_SEND));
}

static uint8_t stream_bits(const struct iggy_stream_permissions *s) {
    return (uint8_t)(bit(s->manage_stream, STREAM_MANAGE_STREAM) | bit(s->read_stream, STREAM_READ_STREAM) |
                     bit(s->manage_topics, STREAM_MANAGE_TOPICS) | bit(s->read_topics, STREAM_READ_TOPICS) |
                     bit(s->poll_messages, STREAM_POLL) | bit(s->send_messages, STREAM_SEND));
}

static uint8_t bits_of_topic(const struct iggy_topic_permissions *t) {
    return (uint8_t)(bit(t->manage_topic, TOPIC_MANAGE) | bit(t->read_topic, TOPIC_READ) |
                     bit(t->poll_messages, TOPIC_POLL) | bit(t->send_messages, TOPIC_SEND));
}

static int by_stream_id(const void *a, const void *b) {
    const struct iggy_stream_permissions *x = a, *y = b;
    return (x->stream_id > y->stream_id) - (x->stream_id < y->stream_id);
}

static int by_topic_id(const void *a, const void *b) {
    const struct iggy_topic_permissions *x = a, *y = b;
    return (x->topic_id > y->topic_id) - (x->topic_id < y->topic_id);
}

struct sorting {
    size_t width;
    int (*compare)(const void *, const void *);
    struct arena *arena;
};

/*
 * A copy of a list in the order of ids, where of several with the same id only the last one is left. *count: of list, then of the copy.
 * The list is sorted by merging, which keeps equals in their order. NULL: no memory.
 */
static void *sorted_copy(const struct sorting *by, const void *list, uint32_t *count) {
    size_t n = *count, width = by->width;
    uint8_t *from = arena_take_many(by->arena, n, width), *to = arena_take_many(by->arena, n, width);
    if (!from || !to)
        return NULL;
    if (n > 0)
        memcpy(from, list, n * width);
    for (size_t run = 1; run < n; run *= 2) {
        for (size_t start = 0; start < n; start += 2 * run) {
            size_t a = start, a_end = start + run < n ? start + run : n;
            size_t b = a_end, b_end = start + 2 * run < n ? start + 2 * run : n;
            for (size_t at = start; at < b_end; at++) {
                bool take_a =
                    a < a_end && (b == b_end || by->compare(from + a * width, from + b * width) <= 0);
                memcpy(to + at * width, from + (take_a ? a++ : b++) * width, width);
            }
        }
        uint8_t *swap = from;
        from = to;
        to = swap;
    }
    uint32_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n && by->compare(from + i * width, from + (i + 1) * width) == 0)
            continue;
        memmove(from + kept++ * width, from + i * width, width);
    }
    *count = kept;
    return from;
}

/* p with all lists sorted, in the arena. */
static enum status permissions_sort(const struct iggy_permissions *p, struct arena *a,
                                    struct iggy_permissions *out, uint32_t *topics_count_out) {
    struct sorting streams = {sizeof(struct iggy_stream_permissions), by_stream_id, a};
    struct sorting topics = {sizeof(struct iggy_topic_permissions), by_topic_id, a};
    *out = *p;
    *topics_count_out = 0;
    out->streams = sorted_copy(&streams, p->streams, &out->streams_count);
    if (!out->streams)
        return ST_NO_MEMORY;
    for (uint32_t i = 0; i < out->streams_count; i++) {
        struct iggy_stream_permissions *s = &out->streams[i];
        s->topics = sorted_copy(&topics, s->topics, &s->topics_count);
        if (!s->topics)
            return ST_NO_MEMORY;
        *topics_count_out += s->topics_count;
    }
    return ST_OK;
}

/* The wire form, as one piece of memory. */
static enum status permissions_encode(const struct iggy_permissions *p, struct bytes *out) {
    struct wbuf w;
    wbuf_init(&w, USERS_PERMISSIONS_BYTES_MAX);
    enum status st = iggy_encode(iggy_permissions_schema(), IGGY_NEWEST, p, &w);
    uint8_t *flat = st ? NULL : mem_take(w.bytes);
    if (!st && !flat)
        st = ST_NO_MEMORY;
    if (!st) {
        wbuf_flatten(&w, flat);
        *out = (struct bytes){flat, (int32_t)w.bytes};
    }
    wbuf_release(&w);
    return st;
}

/* Whether it is short enough for the store, before anything is done with it. */
static bool permissions_fit(const struct iggy_permissions *p) {
    const size_t stream_bytes = 12, topic_bytes = 9;
    size_t bytes = 11 + (size_t)p->streams_count * stream_bytes;
    for (uint32_t i = 0; i < p->streams_count && bytes <= USERS_PERMISSIONS_BYTES_MAX; i++)
        bytes += (size_t)p->streams[i].topics_count * topic_bytes;
    return bytes <= USERS_PERMISSIONS_BYTES_MAX;
}

static void permissions_fill(struct permissions *p, const struct iggy_permissions *from) {
    uint32_t topics = 0;
    p->global = global_bits(from);
    for (uint32_t i = 0; i < from->streams_count; i++) {
        const struct iggy_stream_permissions *s = &from->streams[i];
        p->streams[i] = (struct permissions_stream){.id = s->stream_id,
                                                    .bits = stream_bits(s),
                                                    .topics_first = topics,
                                                    .topics_count = s->topics_count};
        for (uint32_t k = 0; k < s->topics_count; k++)
            p->topics[topics++] =
                (struct permissions_topic){.id = s->topics[k].topic_id, .bits = bits_of_topic(&s->topics[k])};
    }
    p->streams_count = from->streams_count;
}

enum status permissions_new(const struct iggy_permissions *p, struct permissions **out) {
    if (!permissions_fit(p))
        return ST_TOO_BIG;
    struct permissions *made = mem_take_zeroed(1, sizeof *made);
    if (!made)
        return ST_NO_MEMORY;
    struct arena a;
    struct iggy_permissions sorted;
    uint32_t topics_count;
    arena_init(&a, NULL, 0, SCRATCH_BYTES_MAX);
    enum status st = permissions_sort(p, &a, &sorted, &topics_count);
    if (!st)
        st = permissions_encode(&sorted, &made->wire);
    if (st)
        goto fail;
    made->streams = mem_take_zeroed(sorted.streams_count + 1, sizeof *made->streams);
    made->topics = mem_take_zeroed(topics_count + 1, sizeof *made->topics);
    st = ST_NO_MEMORY;
    if (!made->streams || !made->topics)
        goto fail;
    permissions_fill(made, &sorted);
    arena_release(&a);
    *out = made;
    return ST_OK;
fail:
    arena_release(&a);
    permissions_free(made);
    return st;
}

enum status permissions_load(struct bytes wire, struct permissions **out) {
    struct arena a;
    struct iggy_permissions p;
    arena_init(&a, NULL, 0, SCRATCH_BYTES_MAX);
    enum status st = iggy_decode(iggy_permissions_schema(), IGGY_NEWEST, wire, &a, &p);
    if (!st)
        st = permissions_new(&p, out);
    arena_release(&a);
    return st == ST_OK || st == ST_NO_MEMORY ? st : ST_CORRUPT;
}

void permissions_free(struct permissions *p) {
    if (!p)
        return;
    mem_free(p->streams);
    mem_free(p->topics);
    mem_free((void *)(uintptr_t)p->wire.ptr);
    mem_free(p);
}

enum status permissions_show(const struct permissions *p, struct arena *a, struct iggy_permissions *out) {
    return iggy_decode(iggy_permissions_schema(), IGGY_NEWEST, p->wire, a, out);
}
