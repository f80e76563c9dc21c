/* The topics of a consumer group: names and patterns that members subscribed with, and what stands behind them now. */
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

/* One more refers to it. NULL: out of memory. */
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
    n->refs++;
    return n;
}

static void name_unref(struct consumer_group *g, struct consumer_name *n) {
    if (--n->refs > 0)
        return;
    name_leave_slot(g, n);
    sorted_take(&g->names, sorted_place(&g->names, compare_name, &n->name), 1);
    keep_free(g->g.c, n);
}

bool consumer_names_make(struct consumer_group *g, const struct str *names, int32_t count,
                         struct names *out) {
    struct names made = {keep_take(g->g.c, (size_t)count * sizeof *made.at), 0};
    if (!made.at)
        return false;
    while (made.count < count) {
        made.at[made.count] = name_ref(g, names[made.count]);
        if (!made.at[made.count]) {
            consumer_names_drop(g, &made);
            return false;
        }
        made.count++;
    }
    qsort(made.at, (size_t)count, sizeof *made.at, compare_rows);
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++) {
        if (kept > 0 && made.at[kept - 1] == made.at[i])
            name_unref(g, made.at[i]);
        else
            made.at[kept++] = made.at[i];
    }
    made.count = kept;
    *out = made;
    return true;
}

void consumer_names_drop(struct consumer_group *g, struct names *names) {
    for (int32_t i = names->count; i-- > 0;) /* from the end of the sorted table: cheap where these are all */
        name_unref(g, names->at[i]);
    keep_free(g->g.c, names->at);
    *names = (struct names){0};
}

/* --- patterns ------------------------------------------------------------------------------------------------------------------ */

static int compare_pattern(const void *key, const void *row) {
    return str_compare(*(const struct str *)key, ((const struct consumer_pattern *)row)->text);
}

/* May the group have it? Its topics, if they are known, are looked up later. */
static enum group_outcome pattern_check(const struct consumer_group *g, struct str text) {
    const struct coordinator_settings *s = &g->g.c->settings;
    struct group_matches ignored = {0};
    switch (s->pattern_find ? s->pattern_find(s->ctx, text, &ignored) : GROUP_PATTERN_INVALID) {
    case GROUP_PATTERN_INVALID:
        return GROUP_INVALID_REGULAR_EXPRESSION;
    case GROUP_PATTERN_NOT_AVAILABLE:
        return GROUP_NOT_AVAILABLE;
    default:
        return g->roster_bytes + text.len > s->roster_bytes_max ? GROUP_MAX_SIZE_REACHED : GROUP_OK;
    }
}

enum group_outcome consumer_pattern_ref(struct consumer_group *g, struct str text,
                                        struct consumer_pattern **out) {
    struct consumer_pattern *p = sorted_find(&g->patterns, compare_pattern, &text);
    if (!p) {
        enum group_outcome outcome = pattern_check(g, text);
        if (outcome)
            return outcome;
        if (sorted_reserve(&g->patterns, 1))
            return GROUP_NOT_AVAILABLE;
        p = keep_take(g->g.c, sizeof *p + (size_t)text.len);
        if (!p)
            return GROUP_NOT_AVAILABLE;
        memcpy(p + 1, text.ptr, (size_t)text.len);
        p->text = (struct str){(char *)(p + 1), text.len};
        sorted_put(&g->patterns, sorted_place(&g->patterns, compare_pattern, &p->text), p);
        g->roster_bytes += text.len;
    }
    p->subscribers_count++;
    *out = p;
    return GROUP_OK;
}

void consumer_pattern_unref(struct consumer_group *g, struct consumer_pattern *p) {
    if (!p || --p->subscribers_count > 0)
        return;
    consumer_names_drop(g, &p->topics);
    sorted_take(&g->patterns, sorted_place(&g->patterns, compare_pattern, &p->text), 1);
    g->roster_bytes -= p->text.len;
    keep_free(g->g.c, p);
}

struct consumer_name *member_topics_next(struct member_topics *it) {
    const struct names none = {0}, *named = &it->m->topics;
    const struct names *matched = it->m->pattern ? &it->m->pattern->topics : &none;
    struct consumer_name *a = it->named < named->count ? named->at[it->named] : NULL;
    struct consumer_name *b = it->matched < matched->count ? matched->at[it->matched] : NULL;
    int order = !a ? 1 : !b ? -1 : str_compare(a->name, b->name);
    it->named += a && order <= 0;
    it->matched += b && order >= 0;
    return order <= 0 ? a : b;
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

/* Its topics, if other ones are known than last time. */
static bool pattern_refresh(struct consumer_group *g, struct consumer_pattern *p, bool *changed) {
    const struct coordinator_settings *s = &g->g.c->settings;
    struct group_matches matches = {.version = p->version};
    struct names topics;
    if (s->pattern_find(s->ctx, p->text, &matches) != GROUP_PATTERN_KNOWN || matches.version == p->version)
        return true;
    if (!consumer_names_make(g, matches.names, matches.count, &topics))
        return false;
    *changed = *changed || !names_same(&topics, &p->topics);
    consumer_names_drop(g, &p->topics);
    p->topics = topics;
    p->version = matches.version;
    return true;
}

bool consumer_refresh(struct consumer_group *g, bool *changed) {
    for (size_t i = 0; i < g->patterns.count; i++) {
        if (!pattern_refresh(g, g->patterns.rows[i], changed))
            return false;
    }
    for (size_t i = 0; i < g->names.count; i++) {
        if (!name_refresh(g, g->names.rows[i], changed))
            return false;
    }
    g->refresh_ms = g->g.c->now_ms + g->g.c->settings.consumer_refresh_ms;
    g->topics_version = g->g.c->topics_version;
    return true;
}
