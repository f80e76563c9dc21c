/*
 * Reconciliation: how a member of a consumer group comes from what it has to what it is to have (KIP-848). Each heartbeat is at most
 * one step; a partition has at most one owner at any time, since only a member that no longer owns it, by its own word, lets it go.
 */
#include "group/consumer.h"

bool parts_has(const struct parts *p, uint64_t key) {
    uint32_t low = 0, high = p->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->at[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->count && p->at[low] == key;
}

/* --- what it says that it owns ------------------------------------------------------------------------------------------------- */

bool consumer_owns_only_assigned(const struct consumer_member *m, const struct group_topic_parts *owned,
                                 int32_t owned_count) {
    const struct consumer_group *g = consumer_of_const(m->m.group);
    for (int32_t i = 0; i < owned_count; i++) {
        int32_t slot = consumer_slot_find(g, &owned[i].topic_id);
        for (int32_t j = 0; j < owned[i].parts_count; j++) {
            if (slot < 0 || !parts_has(&m->assigned, part_key(slot, owned[i].parts[j])))
                return false;
        }
    }
    return owned_count >= 0;
}

/* Does it, or might it, still own any of these? */
static bool owns_any(const struct consumer_member *m, const struct parts *these,
                     const struct group_topic_parts *owned, int32_t owned_count) {
    const struct consumer_group *g = consumer_of_const(m->m.group);
    if (owned_count < 0)
        return true;
    for (int32_t i = 0; i < owned_count; i++) {
        int32_t slot = consumer_slot_find(g, &owned[i].topic_id);
        for (int32_t j = 0; slot >= 0 && j < owned[i].parts_count; j++) {
            if (parts_has(these, part_key(slot, owned[i].parts[j])))
                return true;
        }
    }
    return false;
}

/* --- the step ------------------------------------------------------------------------------------------------------------------ */

/* What becomes of a member's partitions. */
struct step {
    struct parts kept;     /* had and to have */
    struct parts lost;     /* had and not to have */
    struct parts assigned; /* kept, and what it gets now */
    bool gains;            /* it gets something now */
    bool waits;            /* others still have something that it is to have */
};

static bool is_free(const struct consumer_member *m, uint64_t key) {
    const struct consumer_member *owner = consumer_owner(consumer_of_const(m->m.group), key);
    return !owner || owner == m; /* its own: it has just given it up, and is to have it again */
}

static void sort_out(const struct consumer_member *m, struct step *s) {
    uint32_t a = 0;
    for (uint32_t i = 0; i < m->assigned.count; i++) {
        uint64_t key = m->assigned.at[i];
        if (parts_has(&m->target, key))
            s->kept.at[s->kept.count++] = key;
        else
            s->lost.at[s->lost.count++] = key;
    }
    for (uint32_t i = 0; i < m->target.count; i++) {
        uint64_t key = m->target.at[i];
        while (a < m->assigned.count && m->assigned.at[a] < key)
            a++;
        bool had = a < m->assigned.count && m->assigned.at[a] == key;
        if (had || is_free(m, key)) {
            s->assigned.at[s->assigned.count++] = key;
            s->gains = s->gains || !had;
        } else {
            s->waits = true;
        }
    }
}

/* Nothing would change but its epoch and step: no memory is needed. */
static bool stays(const struct consumer_member *m, bool *waits) {
    *waits = false;
    if (m->revoking.count > 0)
        return false;
    uint32_t had = 0;
    for (uint32_t i = 0; i < m->target.count; i++) {
        if (parts_has(&m->assigned, m->target.at[i]))
            had++;
        else if (is_free(m, m->target.at[i]))
            return false;
        else
            *waits = true;
    }
    return had == m->assigned.count;
}

static bool parts_same(const struct parts *a, const struct parts *b) {
    return a->count == b->count && (a->count == 0 || memcmp(a->at, b->at, a->count * sizeof *a->at) == 0);
}

static void epoch_set(struct consumer_member *m, int32_t epoch) {
    if (epoch != m->epoch)
        m->previous_epoch = m->epoch;
    m->epoch = epoch;
}

static void owners_set(struct consumer_member *m, const struct parts *p, struct consumer_member *owner) {
    for (uint32_t i = 0; i < p->count; i++)
        consumer_owner_set(consumer_of(m->m.group), p->at[i], owner);
}

void consumer_give_up(struct consumer_member *m) {
    struct coordinator *c = m->m.group->c;
    owners_set(m, &m->assigned, NULL);
    owners_set(m, &m->revoking, NULL);
    keep_free(c, m->assigned.at);
    keep_free(c, m->revoking.at);
    m->assigned = m->revoking = (struct parts){0};
}

/* assigned and revoking are these from now on; the arrays change hands. */
static void have(struct consumer_member *m, struct parts *assigned, struct parts *revoking) {
    consumer_give_up(m);
    m->assigned = *assigned;
    m->revoking = *revoking;
    *assigned = *revoking = (struct parts){0};
    owners_set(m, &m->assigned, m);
    owners_set(m, &m->revoking, m);
}

static void step_set(struct consumer_member *m, enum consumer_step step) {
    struct coordinator *c = m->m.group->c;
    m->step = step;
    if (step == STEP_UNREVOKED)
        deadline_set(&c->deadlines, &m->revoke, c->now_ms + m->rebalance_ms);
    else
        deadline_clear(&c->deadlines, &m->revoke);
}

static bool parts_take(struct coordinator *c, struct parts *p, uint32_t most) {
    p->at = keep_take(c, most * sizeof *p->at);
    return p->at != NULL;
}

/* From epoch on, with assigned as it is. */
static bool take_step(struct consumer_member *m, int32_t epoch, const struct group_topic_parts *owned,
                      int32_t owned_count, bool *changed) {
    struct consumer_group *g = consumer_of(m->m.group);
    struct coordinator *c = g->g.c;
    bool waits;
    if (stays(m, &waits)) {
        epoch_set(m, g->target_epoch);
        step_set(m, waits ? STEP_UNRELEASED : STEP_STABLE);
        return true;
    }
    struct step s = {0};
    bool fine = parts_take(c, &s.kept, m->assigned.count) && parts_take(c, &s.lost, m->assigned.count) &&
                parts_take(c, &s.assigned, m->target.count);
    if (fine) {
        sort_out(m, &s);
        bool must_give_up = s.lost.count > 0 && owns_any(m, &s.lost, owned, owned_count);
        struct parts *next = must_give_up ? &s.kept : &s.assigned, none = {0};
        *changed = !parts_same(next, &m->assigned);
        have(m, next, must_give_up ? &s.lost : &none);
        epoch_set(m, must_give_up ? epoch : g->target_epoch);
        step_set(m, must_give_up ? STEP_UNREVOKED : s.waits ? STEP_UNRELEASED : STEP_STABLE);
    }
    keep_free(c, s.kept.at);
    keep_free(c, s.lost.at);
    keep_free(c, s.assigned.at);
    return fine;
}

bool consumer_reconcile(struct consumer_member *m, const struct group_topic_parts *owned, int32_t owned_count,
                        bool *changed) {
    *changed = false;
    if (m->step == STEP_UNREVOKED) {
        if (owns_any(m, &m->revoking, owned, owned_count))
            return true;
        return take_step(m, m->epoch + 1, owned, owned_count, changed);
    }
    if (m->step == STEP_STABLE && m->epoch == consumer_of(m->m.group)->target_epoch)
        return true;
    return take_step(m, m->epoch, owned, owned_count, changed);
}
