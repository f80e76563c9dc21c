/* The topics of a consumer group: names that members subscribed to, and what stands behind them now. */
#include "group/consumer.h"

#include <stdlib.h>

static int compare_name(const void *key, const void *row) {
    return str_compare(*(const struct str *)key, ((const struct consumer_name *)row)->name);
}

static int compare_rows(const void *a, const void *b) {
    return str_compare((*(struct consumer_name *const *)a)->name, (*(struct consumer_name *const *)b)->name);
}

/* --- slots --------------------------------------------------------------------------------------------------------------------- */

static int compare_id(const void *key, const void *row) {
    return memcmp(((const struct uuid *)key)->b, ((const struct slot *)row)->id.b, sizeof(struct uuid));
}

int32_t consumer_slot_find(const struct consumer_group *g, const struct uuid *id) {
    const struct slot *s = sorted_find(&g->by_id, compare_id, id);
    return s ? s->at : -1;
}

static void slot_free(struct consumer_group *g, struct slot *s) {
    sorted_take(&g->by_id, sorted_place(&g->by_id, compare_id, &s->id), 1);
    g->slots[s->at] = NULL;
    if (s->at < g->slots_full)
        g->slots_full = s->at;
    keep_free(g->g.c, s->owners);
    keep_free(g->g.c, s);
}

void consumer_slots_tidy(struct consumer_group *g) {
    for (int32_t i = 0; i < g->slots_count; i++) {
        if (g->slots[i] && !g->slots[i]->name && g->slots[i]->owned_count == 0)
            slot_free(g, g->slots[i]);
    }
}

/* A place in slots that is free; -1: out of memory. */
static int32_t slot_place(struct consumer_group *g) {
    while (g->slots_full < g->slots_count && g->slots[g->slots_full])
        g->slots_full++;
    if (g->slots_full < g->slots_count)
        return g->slots_full;
    int32_t more = g->slots_count + g->slots_count / 2 + 4;
    struct slot **slots = keep_take(g->g.c, (size_t)more * sizeof(struct slot *));
    if (!slots)
        return -1;
    if (g->slots_count > 0)
        memcpy(slots, g->slots, (size_t)g->slots_count * sizeof(struct slot *));
    keep_free(g->g.c, g->slots);
    g->slots = slots;
    g->slots_count = more;
    return g->slots_full;
}

/* owners has room for that many partitions. */
static bool owners_reserve(struct consumer_group *g, struct slot *s, int32_t count) {
    if (count <= s->owners_count)
        return true;
    struct consumer_member **owners = keep_take(g->g.c, (size_t)count * sizeof(struct consumer_member *));
    if (!owners)
        return false;
    if (s->owners_count > 0)
        memcpy(owners, s->owners, (size_t)s->owners_count * sizeof(struct consumer_member *));
    keep_free(g->g.c, s->owners);
    s->owners = owners;
    s->owners_count = count;
    return true;
}

/* The slot of a topic, an old one where there is one; NULL: out of memory. */
static struct slot *slot_for(struct consumer_group *g, const struct group_topic *topic) {
    struct slot *s = sorted_find(&g->by_id, compare_id, &topic->id);
    if (s)
        return s;
    int32_t at = slot_place(g);
    if (at < 0 || sorted_reserve(&g->by_id, 1))
        return NULL;
    s = keep_take(g->g.c, sizeof *s);
    if (!s)
        return NULL;
    s->id = topic->id;
    s->at = at;
    g->slots[at] = s;
    sorted_put(&g->by_id, sorted_place(&g->by_id, compare_id, &s->id), s);
    return s;
}

struct consumer_member *consumer_owner(const struct consumer_group *g, uint64_t key) {
    return g->slots[key_slot(key)]->owners[key_part(key)];
}

void consumer_owner_set(struct consumer_group *g, uint64_t key, struct consumer_member *m) {
    struct slot *s = g->slots[key_slot(key)];
    struct consumer_member **owner = &s->owners[key_part(key)];
    s->owned_count += (m != NULL) - (*owner != NULL);
    *owner = m;
}

/* --- names --------------------------------------------------------------------------------------------------------------------- */

static void name_leave_slot(struct consumer_group *g, struct consumer_name *n) {
    if (n->slot >= 0)
        g->slots[n->slot]->name = NULL;
    n->slot = -1;
}

/* One more subscribes to it. NULL: out of memory. */
static struct consumer_name *name_ref(struct consumer_group *g, struct str name) {
    struct consumer_name *n = sorted_find(&g->names, compare_name, &name);
    if (!n) {
        size_t len = name.len > 0 ? (size_t)name.len : 0;
        if (sorted_reserve(&g->names, 1))
            return NULL;
        n = keep_take(g->g.c, sizeof *n + len);
        if (!n)
            return NULL;
        n->name = (struct str){(char *)(n + 1), (int32_t)len};
        if (len)
            memcpy(n + 1, name.ptr, len);
        n->slot = -1;
        sorted_put(&g->names, sorted_place(&g->names, compare_name, &n->name), n);
    }
    n->subscribers_count++;
    return n;
}

static void name_unref(struct consumer_group *g, struct consumer_name *n) {
    if (--n->subscribers_count > 0)
        return;
    name_leave_slot(g, n);
    sorted_take(&g->names, sorted_place(&g->names, compare_name, &n->name), 1);
    keep_free(g->g.c, n);
}

bool consumer_topics_make(struct consumer_group *g, const struct str *topics, int32_t count,
                          struct consumer_name ***out, int32_t *count_out) {
    struct consumer_name **made = keep_take(g->g.c, (size_t)count * sizeof(struct consumer_name *));
    if (!made)
        return false;
    for (int32_t i = 0; i < count; i++) {
        made[i] = name_ref(g, topics[i]);
        if (!made[i]) {
            consumer_topics_drop(g, made, i);
            return false;
        }
    }
    qsort(made, (size_t)count, sizeof(struct consumer_name *), compare_rows);
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++) {
        if (kept > 0 && made[kept - 1] == made[i])
            name_unref(g, made[i]);
        else
            made[kept++] = made[i];
    }
    *out = made;
    *count_out = kept;
    return true;
}

void consumer_topics_drop(struct consumer_group *g, struct consumer_name **topics, int32_t count) {
    for (int32_t i = 0; i < count; i++)
        name_unref(g, topics[i]);
    keep_free(g->g.c, topics);
}

/* --- looking up ---------------------------------------------------------------------------------------------------------------- */

static bool name_refresh(struct consumer_group *g, struct consumer_name *n, bool *changed) {
    const struct coordinator_settings *s = &g->g.c->settings;
    struct group_topic topic;
    if (!s->topic_find || !s->topic_find(s->ctx, n->name, &topic) || topic.parts_count <= 0) {
        *changed = *changed || n->slot >= 0;
        name_leave_slot(g, n);
        return true;
    }
    struct slot *slot = slot_for(g, &topic);
    if (!slot || !owners_reserve(g, slot, topic.parts_count))
        return false;
    if (n->slot == slot->at && slot->parts_count == topic.parts_count)
        return true;
    name_leave_slot(g, n);
    if (slot->name) /* two names for one topic: it was renamed, and the old name is looked up later */
        slot->name->slot = -1;
    n->slot = slot->at;
    slot->name = n;
    slot->parts_count = topic.parts_count;
    *changed = true;
    return true;
}

bool consumer_refresh(struct consumer_group *g, bool *changed) {
    for (size_t i = 0; i < g->names.count; i++) {
        if (!name_refresh(g, g->names.rows[i], changed))
            return false;
    }
    g->refresh_ms = g->g.c->now_ms + g->g.c->settings.consumer_refresh_ms;
    g->topics_version = g->g.c->topics_version;
    return true;
}
