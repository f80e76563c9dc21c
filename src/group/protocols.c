/* The protocols of a classic group: names are kept once a group, with the number of members that have them. */
#include "group/classic.h"

static int compare_name(const void *key, const void *row) {
    return str_compare(*(const struct str *)key, ((const struct protocol *)row)->name);
}

static struct protocol *protocol_find(const struct classic_group *g, struct str name) {
    return sorted_find(&g->protocols, compare_name, &name);
}

/* One more member will have it. NULL: out of memory. */
static struct protocol *protocol_ref(struct classic_group *g, struct str name) {
    struct protocol *p = protocol_find(g, name);
    if (!p) {
        size_t len = name.len > 0 ? (size_t)name.len : 0;
        if (sorted_reserve(&g->protocols, 1))
            return NULL;
        p = keep_take(g->g.c, sizeof *p + len);
        if (!p)
            return NULL;
        p->name = (struct str){(char *)(p + 1), (int32_t)len};
        if (len)
            memcpy(p + 1, name.ptr, len);
        sorted_put(&g->protocols, sorted_place(&g->protocols, compare_name, &p->name), p);
    }
    p->members_count++;
    return p;
}

static void protocol_unref(struct classic_group *g, struct protocol *p) {
    if (--p->members_count > 0 || g->chosen == p) /* the chosen one's name is told until another is chosen */
        return;
    sorted_take(&g->protocols, sorted_place(&g->protocols, compare_name, &p->name), 1);
    keep_free(g->g.c, p);
}

static bool has(const struct member_protocols *p, const struct protocol *protocol) {
    for (int32_t i = 0; i < p->count; i++) {
        if (p->at[i].protocol == protocol)
            return true;
    }
    return false;
}

/* Was the nth name of a join there before? Kafka's lists are sets that keep the first. */
static bool repeated(const struct group_join *join, int32_t nth) {
    for (int32_t i = 0; i < nth; i++) {
        if (str_equal(join->protocols[i].name, join->protocols[nth].name))
            return true;
    }
    return false;
}

static size_t length_of(struct bytes b) {
    return b.len > 0 ? (size_t)b.len : 0;
}

bool classic_protocols_make(struct classic_group *g, const struct group_join *join,
                            struct member_protocols *out) {
    *out = (struct member_protocols){0};
    size_t bytes = 0;
    for (int32_t i = 0; i < join->protocols_count; i++)
        bytes += length_of(join->protocols[i].metadata);
    out->at = keep_take(g->g.c, (size_t)join->protocols_count * sizeof *out->at + bytes);
    if (!out->at)
        return false;
    uint8_t *at = (uint8_t *)(out->at + join->protocols_count);
    for (int32_t i = 0; i < join->protocols_count; i++) {
        if (repeated(join, i))
            continue;
        struct protocol *p = protocol_ref(g, join->protocols[i].name);
        if (!p) {
            classic_protocols_drop(g, out);
            return false;
        }
        size_t len = length_of(join->protocols[i].metadata);
        if (len)
            memcpy(at, join->protocols[i].metadata.ptr, len);
        out->at[out->count++] = (struct member_protocol){p, {at, (int32_t)len}};
        out->bytes += p->name.len + (int32_t)len;
        at += len;
    }
    return true;
}

void classic_protocols_drop(struct classic_group *g, struct member_protocols *p) {
    for (int32_t i = 0; i < p->count; i++)
        protocol_unref(g, p->at[i].protocol);
    keep_free(g->g.c, p->at);
    *p = (struct member_protocols){0};
}

void classic_protocols_set(struct classic_member *m, struct member_protocols *p) {
    struct classic_group *g = classic_of(m->m.group);
    g->roster_bytes += p->bytes - m->protocols.bytes;
    classic_protocols_drop(g, &m->protocols);
    m->protocols = *p;
    *p = (struct member_protocols){0};
}

bool classic_protocols_fit(const struct classic_group *g, const struct classic_member *m,
                           const struct group_join *join) {
    if (join->protocol_type.len <= 0 || join->protocols_count <= 0)
        return false;
    if (g->members_count == 0)
        return true;
    if (!str_equal(g->protocol_type, join->protocol_type))
        return false;
    int32_t others_count = g->members_count - (m ? 1 : 0);
    if (others_count == 0)
        return true;
    for (int32_t i = 0; i < join->protocols_count; i++) {
        const struct protocol *p = protocol_find(g, join->protocols[i].name);
        if (p && p->members_count - (m && has(&m->protocols, p) ? 1 : 0) == others_count)
            return true;
    }
    return false;
}

bool classic_protocols_same(const struct classic_member *m, const struct group_join *join) {
    int32_t at = 0;
    for (int32_t i = 0; i < join->protocols_count; i++) {
        if (repeated(join, i))
            continue;
        if (at == m->protocols.count)
            return false;
        const struct member_protocol *p = &m->protocols.at[at++];
        size_t len = length_of(join->protocols[i].metadata);
        if (!str_equal(p->protocol->name, join->protocols[i].name) || length_of(p->metadata) != len ||
            (len && memcmp(p->metadata.ptr, join->protocols[i].metadata.ptr, len) != 0))
            return false;
    }
    return at == m->protocols.count;
}

/* A member's vote: its first one that everybody has. */
static struct protocol *vote(const struct classic_group *g, const struct classic_member *m) {
    for (int32_t i = 0; i < m->protocols.count; i++) {
        if (m->protocols.at[i].protocol->members_count == g->members_count)
            return m->protocols.at[i].protocol;
    }
    return NULL;
}

struct protocol *classic_protocols_choose(const struct classic_group *g) {
    const struct classic_member *judge = g->leader;
    for (size_t i = 0; i < g->protocols.count; i++)
        ((struct protocol *)g->protocols.rows[i])->votes = 0;
    for (size_t i = 0; i < g->g.members.count; i++) {
        const struct classic_member *m = classic_member_at(g, i);
        struct protocol *p = m->pending ? NULL : vote(g, m);
        if (p)
            p->votes++;
        if (!judge && !m->pending)
            judge = m;
    }
    struct protocol *best = NULL;
    for (int32_t i = 0; judge && i < judge->protocols.count; i++) {
        struct protocol *p = judge->protocols.at[i].protocol;
        if (p->members_count == g->members_count && (!best || p->votes > best->votes))
            best = p;
    }
    return best;
}

void classic_chosen_set(struct classic_group *g, struct protocol *p) {
    struct protocol *old = g->chosen;
    g->chosen = p;
    if (old && old != p && old->members_count == 0) {
        old->members_count = 1; /* it was kept for its name only */
        protocol_unref(g, old);
    }
}

struct bytes classic_metadata(const struct classic_member *m) {
    const struct classic_group *g = classic_of_const(m->m.group);
    for (int32_t i = 0; i < m->protocols.count; i++) {
        if (m->protocols.at[i].protocol == g->chosen)
            return m->protocols.at[i].metadata;
    }
    return (struct bytes){NULL, 0};
}
