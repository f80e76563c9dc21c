/*
 * Who is to have which partition of a consumer group. Both assignors decide on a plan, an array with one owner a partition; the members'
 * targets are read off it. Balance comes before staying put in `uniform`; `range` gives each member a run of every topic, the same one of
 * topics with equal numbers of partitions.
 */
#include "group/consumer.h"

#include <stdlib.h>

#include "base/mem.h"

#define NOBODY         (-1)
#define BALANCE_ROUNDS 20 /* more is never needed in practice; the work stays bounded */

/* A topic in the plan. */
struct plan_topic {
    int32_t slot, parts_count;
    uint32_t first; /* of its partitions in owner */
    int32_t *
        subscribers; /* of plan.subscribers: places in members, in the order of the members; perhaps shared by all topics */
    int32_t subscribers_count;
};

struct plan {
    const struct consumer_group *g;
    struct consumer_member **members; /* static ones first, by instance id; then by member id */
    int32_t members_count;
    int32_t *loads;  /* partitions a member has */
    int32_t *quotas; /* and is to have, where all subscribe to the same */
    struct plan_topic *topics;
    int32_t topics_count;
    int32_t *subscribers; /* of all topics; one row of all members where everybody subscribes alike */
    int32_t *owner;       /* of each partition: a place in members, or NOBODY */
    uint32_t parts_count;
    struct parts *targets; /* of each member, until they are the members' */
};

/* --- the plan ------------------------------------------------------------------------------------------------------------------ */

static bool array_take(void *out, size_t count, size_t size) {
    void *array = mem_take_zeroed(count > 0 ? count : 1, size);
    memcpy(out, &array, sizeof array);
    return array != NULL;
}

static void plan_release(struct plan *p) {
    for (int32_t i = 0; p->targets && i < p->members_count; i++)
        keep_free(p->g->g.c, p->targets[i].at);
    mem_free(p->members);
    mem_free(p->loads);
    mem_free(p->quotas);
    mem_free(p->topics);
    mem_free(p->subscribers);
    mem_free(p->owner);
    mem_free(p->targets);
}

static void plan_members(struct plan *p) {
    const struct group *g = &p->g->g;
    int32_t at = 0;
    for (size_t i = 0; i < g->instances.count; i++)
        p->members[at++] = consumer_member_of(g->instances.rows[i]);
    for (size_t i = 0; i < g->members.count; i++) {
        struct consumer_member *m = consumer_member_of(g->members.rows[i]);
        if (m->m.instance.len < 0)
            p->members[at++] = m;
    }
}

static void plan_topics(struct plan *p) {
    for (int32_t i = 0; i < p->g->slots_count; i++) {
        const struct slot *s = p->g->slots[i];
        if (!s || !s->name)
            continue;
        p->topics[p->topics_count++] =
            (struct plan_topic){.slot = i, .parts_count = s->parts_count, .first = p->parts_count};
        p->parts_count += (uint32_t)s->parts_count;
    }
}

static struct plan_topic *topic_of_slot(const struct plan *p, int32_t slot) {
    int32_t low = 0, high = p->topics_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (p->topics[middle].slot < slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->topics_count && p->topics[low].slot == slot ? &p->topics[low] : NULL;
}

/* A group of a thousand members with one pattern for ten thousand topics has no ten million subscribers written down. */
static bool members_alike(const struct plan *p) {
    for (int32_t i = 1; i < p->members_count; i++) {
        const struct consumer_member *a = p->members[0], *b = p->members[i];
        if (a->pattern != b->pattern || !names_same(&a->topics, &b->topics))
            return false;
    }
    return true;
}

static bool subscribers_of_all(struct plan *p) {
    if (!array_take(&p->subscribers, (size_t)p->members_count, sizeof *p->subscribers))
        return false;
    for (int32_t i = 0; i < p->members_count; i++)
        p->subscribers[i] = i;
    for (int32_t i = 0; i < p->topics_count; i++) {
        p->topics[i].subscribers = p->subscribers;
        p->topics[i].subscribers_count = p->members_count;
    }
    return true;
}

/* The next topic of the plan that the member subscribes to; NULL: that was all. */
static struct plan_topic *subscribed_next(const struct plan *p, struct member_topics *it) {
    for (const struct consumer_name *n; (n = member_topics_next(it));) {
        struct plan_topic *t = n->slot >= 0 ? topic_of_slot(p, n->slot) : NULL;
        if (t)
            return t;
    }
    return NULL;
}

/* False: out of memory. */
static bool plan_subscribers(struct plan *p) {
    size_t all = 0;
    if (members_alike(p))
        return subscribers_of_all(p);
    for (int32_t i = 0; i < p->members_count; i++) {
        struct member_topics it = {.m = p->members[i]};
        for (struct plan_topic *t; (t = subscribed_next(p, &it)); all++)
            t->subscribers_count++;
    }
    if (!array_take(&p->subscribers, all, sizeof *p->subscribers))
        return false;
    size_t at = 0;
    for (int32_t i = 0; i < p->topics_count; i++) {
        p->topics[i].subscribers = p->subscribers + at;
        at += (size_t)p->topics[i].subscribers_count;
        p->topics[i].subscribers_count = 0;
    }
    for (int32_t i = 0; i < p->members_count; i++) {
        struct member_topics it = {.m = p->members[i]};
        for (struct plan_topic *t; (t = subscribed_next(p, &it));)
            t->subscribers[t->subscribers_count++] = i;
    }
    return true;
}

static bool subscribes(const struct plan_topic *t, int32_t member) {
    int32_t low = 0, high = t->subscribers_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (t->subscribers[middle] < member)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->subscribers_count && t->subscribers[low] == member;
}

/* Everything but owners. False: out of memory. */
static bool plan_make(struct plan *p, const struct consumer_group *g) {
    *p = (struct plan){.g = g, .members_count = (int32_t)g->g.members.count};
    size_t members = g->g.members.count;
    if (!array_take(&p->members, members, sizeof *p->members) ||
        !array_take(&p->loads, members, sizeof *p->loads) ||
        !array_take(&p->quotas, members, sizeof *p->quotas) ||
        !array_take(&p->targets, members, sizeof *p->targets) ||
        !array_take(&p->topics, (size_t)g->slots_count, sizeof *p->topics))
        return false;
    plan_members(p);
    plan_topics(p);
    if (!plan_subscribers(p) || !array_take(&p->owner, p->parts_count, sizeof *p->owner))
        return false;
    for (uint32_t i = 0; i < p->parts_count; i++)
        p->owner[i] = NOBODY;
    return true;
}

/* --- uniform ------------------------------------------------------------------------------------------------------------------- */

static void give(struct plan *p, uint32_t part, int32_t member) {
    if (p->owner[part] != NOBODY)
        p->loads[p->owner[part]]--;
    p->owner[part] = member;
    if (member != NOBODY)
        p->loads[member]++;
}

/* As it was, where that can still be. */
static void keep_targets(struct plan *p) {
    for (int32_t i = 0; i < p->members_count; i++) {
        const struct parts *target = &p->members[i]->target;
        for (uint32_t j = 0; j < target->count; j++) {
            const struct plan_topic *t = topic_of_slot(p, key_slot(target->at[j]));
            int32_t part = key_part(target->at[j]);
            if (t && part < t->parts_count && subscribes(t, i))
                give(p, t->first + (uint32_t)part, i);
        }
    }
}

static bool all_subscribe_alike(const struct plan *p) {
    for (int32_t i = 0; i < p->topics_count; i++) {
        if (p->topics[i].subscribers_count != p->members_count)
            return false;
    }
    return true;
}

/* The partitions over the members' equal shares go to those who have more already. */
static void quotas_set(struct plan *p) {
    int32_t share = (int32_t)(p->parts_count / (uint32_t)p->members_count);
    int32_t more = (int32_t)(p->parts_count % (uint32_t)p->members_count);
    for (int32_t i = 0; i < p->members_count; i++) {
        bool one_more = more > 0 && p->loads[i] > share;
        p->quotas[i] = share + one_more;
        more -= one_more;
    }
    for (int32_t i = 0; i < p->members_count && more > 0; i++) {
        if (p->quotas[i] == share) {
            p->quotas[i]++;
            more--;
        }
    }
}

static void uniform_alike(struct plan *p) {
    quotas_set(p);
    for (uint32_t i = p->parts_count; i-- > 0;) {
        if (p->owner[i] != NOBODY && p->loads[p->owner[i]] > p->quotas[p->owner[i]])
            give(p, i, NOBODY);
    }
    int32_t next = 0;
    for (uint32_t i = 0; i < p->parts_count; i++) {
        if (p->owner[i] != NOBODY)
            continue;
        while (p->loads[next] >= p->quotas[next]) /* the quotas add up to the partitions */
            next++;
        give(p, i, next);
    }
}

/* --- uniform, where members subscribe to different topics: a topic's subscribers as a heap, the least loaded on top --------------- */

struct heap {
    const struct plan *p;
    int32_t *at; /* members */
    int32_t count;
    int32_t *place; /* of each member, in at */
};

static bool heap_before(const struct heap *h, int32_t a, int32_t b) {
    int32_t x = h->at[a], y = h->at[b];
    return h->p->loads[x] != h->p->loads[y] ? h->p->loads[x] < h->p->loads[y] : x < y;
}

static void heap_swap(struct heap *h, int32_t a, int32_t b) {
    int32_t swap = h->at[a];
    h->at[a] = h->at[b];
    h->at[b] = swap;
    h->place[h->at[a]] = a;
    h->place[h->at[b]] = b;
}

static void heap_down(struct heap *h, int32_t at) {
    for (;;) {
        int32_t least = at;
        for (int32_t child = 2 * at + 1; child <= 2 * at + 2 && child < h->count; child++)
            least = heap_before(h, child, least) ? child : least;
        if (least == at)
            return;
        heap_swap(h, at, least);
        at = least;
    }
}

static void heap_up(struct heap *h, int32_t at) {
    for (; at > 0 && heap_before(h, at, (at - 1) / 2); at = (at - 1) / 2)
        heap_swap(h, at, (at - 1) / 2);
}

static void heap_of(struct heap *h, const struct plan_topic *t) {
    h->count = t->subscribers_count;
    for (int32_t i = 0; i < h->count; i++) {
        h->at[i] = t->subscribers[i];
        h->place[h->at[i]] = i;
    }
    for (int32_t i = h->count / 2; i-- > 0;)
        heap_down(h, i);
}

/* What nobody has goes to whom has least; and, where may_move, what somebody has goes there who has at least two less. */
static bool give_of_topic(struct plan *p, const struct plan_topic *t, struct heap *h, bool may_move) {
    bool gave = false;
    heap_of(h, t);
    for (uint32_t i = t->first; h->count > 0 && i < t->first + (uint32_t)t->parts_count; i++) {
        int32_t owner = p->owner[i], least = h->at[0];
        if (owner != NOBODY && (!may_move || p->loads[owner] - p->loads[least] < 2))
            continue;
        give(p, i, least);
        heap_down(h, 0);
        if (owner != NOBODY)
            heap_up(h, h->place[owner]);
        gave = true;
    }
    return gave;
}

static int compare_subscribers(const void *a, const void *b) {
    const struct plan_topic *x = *(struct plan_topic *const *)a, *y = *(struct plan_topic *const *)b;
    if (x->subscribers_count != y->subscribers_count)
        return x->subscribers_count < y->subscribers_count ? -1 : 1;
    return (x->slot > y->slot) - (x->slot < y->slot);
}

/* Topics that few subscribe to come first: others can make up for them. False: out of memory. */
static bool uniform_unlike(struct plan *p) {
    struct heap h = {.p = p};
    struct plan_topic **order = NULL;
    size_t members = (size_t)p->members_count, topics = (size_t)p->topics_count;
    bool fine = array_take(&h.at, members, sizeof *h.at) && array_take(&h.place, members, sizeof *h.place) &&
                array_take(&order, topics, sizeof(struct plan_topic *));
    if (fine) {
        for (size_t i = 0; i < topics; i++)
            order[i] = &p->topics[i];
        qsort(order, topics, sizeof(struct plan_topic *), compare_subscribers);
        for (size_t i = 0; i < topics; i++)
            give_of_topic(p, order[i], &h, false);
        bool moved = true;
        for (int32_t round = 0; moved && round < BALANCE_ROUNDS; round++) {
            moved = false;
            for (size_t i = 0; i < topics; i++)
                moved = give_of_topic(p, order[i], &h, true) || moved;
        }
    }
    mem_free(h.at);
    mem_free(h.place);
    mem_free(order);
    return fine;
}

static bool uniform(struct plan *p) {
    keep_targets(p);
    if (!all_subscribe_alike(p))
        return uniform_unlike(p);
    uniform_alike(p);
    return true;
}

/* --- range --------------------------------------------------------------------------------------------------------------------- */

static void range(struct plan *p) {
    for (int32_t i = 0; i < p->topics_count; i++) {
        const struct plan_topic *t = &p->topics[i];
        uint32_t at = t->first, end = t->first + (uint32_t)t->parts_count;
        for (int32_t j = 0; j < t->subscribers_count; j++) {
            int32_t share =
                t->parts_count / t->subscribers_count + (j < t->parts_count % t->subscribers_count);
            for (; share > 0 && at < end; share--)
                give(p, at++, t->subscribers[j]);
        }
    }
}

/* --- targets ------------------------------------------------------------------------------------------------------------------- */

static bool targets_make(struct plan *p) {
    for (int32_t i = 0; i < p->members_count; i++) {
        if (p->loads[i] == 0)
            continue;
        p->targets[i].at = keep_take(p->g->g.c, (size_t)p->loads[i] * sizeof(uint64_t));
        if (!p->targets[i].at)
            return false;
    }
    for (int32_t i = 0; i < p->topics_count; i++) {
        const struct plan_topic *t = &p->topics[i];
        for (int32_t part = 0; part < t->parts_count; part++) {
            int32_t owner = p->owner[t->first + (uint32_t)part];
            if (owner != NOBODY)
                p->targets[owner].at[p->targets[owner].count++] = part_key(t->slot, part);
        }
    }
    return true;
}

static void targets_take(struct plan *p) {
    for (int32_t i = 0; i < p->members_count; i++) {
        struct parts old = p->members[i]->target;
        p->members[i]->target = p->targets[i];
        p->targets[i] = old;
    }
}

bool consumer_assign(struct consumer_group *g) {
    struct plan p;
    bool fine = plan_make(&p, g);
    if (fine) {
        if (consumer_assignor(g) == ASSIGNOR_RANGE)
            range(&p);
        else
            fine = uniform(&p);
        fine = fine && targets_make(&p);
    }
    if (fine)
        targets_take(&p);
    plan_release(&p);
    return fine;
}

/* --- names --------------------------------------------------------------------------------------------------------------------- */

struct str assignor_name(enum assignor assignor) {
    return assignor == ASSIGNOR_RANGE ? STR("range") : STR("uniform");
}

enum assignor assignor_named(struct str name) {
    for (enum assignor a = ASSIGNOR_UNIFORM; a <= ASSIGNOR_RANGE; a++) {
        if (str_equal(name, assignor_name(a)))
            return a;
    }
    return ASSIGNOR_NONE;
}

enum assignor consumer_assignor(const struct consumer_group *g) {
    int32_t votes[2] = {0};
    for (size_t i = 0; i < g->g.members.count; i++) {
        enum assignor a = consumer_member_at(g, i)->assignor;
        if (a != ASSIGNOR_NONE)
            votes[a]++;
    }
    return votes[ASSIGNOR_RANGE] > votes[ASSIGNOR_UNIFORM] ? ASSIGNOR_RANGE : ASSIGNOR_UNIFORM;
}
