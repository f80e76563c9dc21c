/*
 * The states of a classic group:
 *
 *   Empty ── a member joins ──> PreparingRebalance ── all joined, or time is up ──> CompletingRebalance ── the leader syncs ──> Stable
 *     ^                              ^  │                                                │                                      │
 *     └──────── nobody left ─────────┼──┘ <── somebody joins, leaves, or doesn't sync ───┴──────────────────────────────────────┘
 *
 * A new state is entered in classic_prepare, complete, and classic_stable only.
 */
#include "group/classic.h"

struct classic_group *classic_add(struct coordinator *c, struct str id) {
    struct group *g = group_add(c, id, sizeof(struct classic_group));
    if (!g)
        return NULL;
    g->type = GROUP_CLASSIC;
    classic_of(g)->state = GROUP_STATE_EMPTY;
    return classic_of(g);
}

void classic_release(struct classic_group *g, enum group_outcome outcome) {
    while (g->g.members.count > 0)
        classic_member_remove(classic_member_at(g, g->g.members.count - 1), outcome);
    classic_chosen_set(g, NULL);
    assert(g->protocols.count == 0 && g->roster_bytes == 0);
    sorted_release(&g->protocols);
    keep_free(g->g.c, (void *)g->protocol_type.ptr);
}

/* --- members ------------------------------------------------------------------------------------------------------------------- */

/* A member, or an id that was handed out, more or less. */
static void count(struct classic_member *m, int32_t by) {
    struct classic_group *g = classic_of(m->m.group);
    if (m->pending) {
        g->pending_count += by;
        g->g.c->pending_count += by;
        return;
    }
    g->members_count += by;
    g->g.c->members_count += by;
    g->roster_bytes += by * (m->m.instance.len > 0 ? m->m.instance.len : 0);
}

static struct classic_member *member_make(struct classic_group *g, const struct member_names *names) {
    struct classic_member *m = classic_member_of(member_new(&g->g, names, sizeof *m));
    if (m) {
        list_init(&m->joins);
        list_init(&m->syncs);
    }
    return m;
}

struct classic_member *classic_member_add(struct classic_group *g, const struct member_names *names,
                                          bool pending) {
    if (!members_reserve(&g->g, names->instance.len >= 0))
        return NULL;
    struct classic_member *m = member_make(g, names);
    if (!m)
        return NULL;
    m->pending = pending;
    member_put(&m->m);
    count(m, 1);
    return m;
}

void classic_member_claimed(struct classic_member *m) {
    count(m, -1);
    m->pending = false;
    count(m, 1);
}

struct classic_member *classic_member_replace(struct classic_member *old, const struct member_names *names) {
    struct classic_group *g = classic_of(old->m.group);
    struct classic_member *m = member_make(g, names);
    if (!m)
        return NULL;
    member_take(&old->m);
    member_put(&m->m);
    m->assignment = old->assignment;
    old->assignment = (struct bytes){NULL, 0};
    m->unsynced = old->unsynced; /* counted once, as before */
    if (g->leader == old)
        g->leader = m;
    classic_protocols_set(old, &(struct member_protocols){0});
    classic_end_joins(old, GROUP_FENCED_INSTANCE);
    classic_end_syncs(old, GROUP_FENCED_INSTANCE);
    return m;
}

/* What it counted for is no longer there. */
static void leave_counts(struct classic_member *m) {
    struct classic_group *g = classic_of(m->m.group);
    count(m, -1);
    if (!list_empty(&m->joins))
        g->joined_count--;
    classic_synced(m);
    if (g->leader == m)
        g->leader = NULL;
}

void classic_member_remove(struct classic_member *m, enum group_outcome outcome) {
    struct classic_group *g = classic_of(m->m.group);
    member_take(&m->m);
    leave_counts(m);
    classic_protocols_set(m, &(struct member_protocols){0});
    struct link waiting;
    list_init(&waiting);
    list_move_all(&waiting, &m->joins);
    list_move_all(&waiting, &m->syncs);
    while (!list_empty(&waiting)) {
        struct group_call *call = container_of(waiting.next, struct group_call, link);
        if (call->joins)
            classic_refuse_join(m, container_of(call, struct group_join, call), outcome);
        else
            call_end(g->g.c, call, outcome);
    }
    keep_free(g->g.c, (void *)m->assignment.ptr);
    keep_free(g->g.c, (void *)m->next.ptr);
    member_free(&m->m);
}

void classic_member_gone(struct classic_group *g) {
    if (g->state == GROUP_STATE_STABLE || g->state == GROUP_STATE_COMPLETING_REBALANCE)
        classic_prepare(g);
    else
        classic_go_on(g);
}

void classic_synced(struct classic_member *m) {
    struct classic_group *g = classic_of(m->m.group);
    if (!m->unsynced)
        return;
    m->unsynced = false;
    if (--g->unsynced_count == 0 && g->state == GROUP_STATE_STABLE)
        deadline_clear(&g->g.c->deadlines, &g->g.window);
}

/* --- calls that wait ----------------------------------------------------------------------------------------------------------- */

void classic_park_join(struct classic_member *m, struct group_join *join) {
    struct classic_group *g = classic_of(m->m.group);
    if (list_empty(&m->joins))
        g->joined_count++;
    join->call.member = &m->m;
    join->call.joins = true;
    list_push_tail(&m->joins, &join->call.link);
    g->g.c->waiting_count++;
}

void classic_park_sync(struct classic_member *m, struct group_sync *sync) {
    sync->call.member = &m->m;
    sync->call.joins = false;
    list_push_tail(&m->syncs, &sync->call.link);
    m->m.group->c->waiting_count++;
}

void classic_refuse_join(const struct classic_member *m, struct group_join *join,
                         enum group_outcome outcome) {
    join->member_id = m->m.id;
    call_end(m->m.group->c, &join->call, outcome);
}

void classic_end_joins(struct classic_member *m, enum group_outcome outcome) {
    if (list_empty(&m->joins))
        return;
    classic_of(m->m.group)->joined_count--;
    while (!list_empty(&m->joins))
        classic_refuse_join(m, container_of(m->joins.next, struct group_join, call.link), outcome);
}

void classic_end_syncs(struct classic_member *m, enum group_outcome outcome) {
    while (!list_empty(&m->syncs))
        call_end(m->m.group->c, container_of(m->syncs.next, struct group_call, link), outcome);
}

void classic_answer_join(struct classic_member *m, struct group_join *join) {
    const struct classic_group *g = classic_of_const(m->m.group);
    join->member_id = m->m.id;
    join->leader = g->leader ? g->leader->m.id : STR("");
    join->protocol_name = g->chosen ? g->chosen->name : STR_NULL;
    join->chosen_type = g->protocol_type;
    join->generation = g->generation;
    if (g->leader == m)
        join->members = (struct group_members){&g->g, 0, g->members_count, false};
    m->untold = false;
    call_end(g->g.c, &join->call, GROUP_OK);
}

void classic_answer_sync(const struct classic_member *m, struct group_sync *sync) {
    const struct classic_group *g = classic_of_const(m->m.group);
    sync->chosen_type = g->protocol_type;
    sync->chosen_name = g->chosen ? g->chosen->name : STR_NULL;
    sync->assignment = m->assignment;
    call_end(g->g.c, &sync->call, GROUP_OK);
}

void classic_cancel(struct classic_member *m, struct group_call *call) {
    struct classic_group *g = classic_of(m->m.group);
    bool joins = call->joins, orphan;
    call_end(g->g.c, call, GROUP_CANCELED);
    if (joins && list_empty(&m->joins))
        g->joined_count--;
    orphan = m->untold && list_empty(&m->joins) && m->m.instance.len < 0;
    session_restart(&m->m, m->session_ms);
    if (orphan) {
        classic_member_remove(m, GROUP_UNKNOWN_MEMBER);
        classic_member_gone(g);
    }
}

/* --- the machine --------------------------------------------------------------------------------------------------------------- */

static int32_t rebalance_ms_of(const struct classic_group *g) {
    int32_t most = 1;
    for (size_t i = 0; i < g->g.members.count; i++) {
        const struct classic_member *m = classic_member_at(g, i);
        if (!m->pending && m->rebalance_ms > most)
            most = m->rebalance_ms;
    }
    return most;
}

static void window_set(struct classic_group *g, int64_t due_ms) {
    deadline_set(&g->g.c->deadlines, &g->g.window, due_ms);
}

static bool all_joined(const struct classic_group *g) {
    return g->joined_count == g->members_count && g->pending_count == 0;
}

static void generation_begins(struct classic_group *g) {
    for (size_t i = 0; i < g->g.members.count; i++) {
        struct classic_member *m = classic_member_at(g, i);
        if (m->pending)
            continue;
        m->unsynced = true;
        g->unsynced_count++;
        session_restart(&m->m, m->session_ms);
    }
    for (size_t i = 0; i < g->g.members.count; i++) {
        struct classic_member *m = classic_member_at(g, i);
        if (!list_empty(&m->joins))
            g->joined_count--;
        while (!list_empty(&m->joins))
            classic_answer_join(m, container_of(m->joins.next, struct group_join, call.link));
    }
}

/* The joins so far get a generation. Members that have not joined are out, or, when nobody at all has, the wait begins again. */
static void complete(struct classic_group *g) {
    struct coordinator *c = g->g.c;
    for (size_t i = g->g.members.count; i-- > 0;) {
        struct classic_member *m = classic_member_at(g, i);
        if (!m->pending && list_empty(&m->joins) && m->m.instance.len < 0)
            classic_member_remove(m, GROUP_UNKNOWN_MEMBER);
    }
    if (g->members_count > 0 && g->joined_count == 0) { /* D11-13 */
        window_set(g, c->now_ms + rebalance_ms_of(g));
        return;
    }
    deadline_clear(&c->deadlines, &g->g.window);
    g->generation++;
    if (g->members_count == 0) {
        g->state = GROUP_STATE_EMPTY;
        classic_chosen_set(g, NULL);
        group_emptied(&g->g);
        return;
    }
    if (!g->leader || list_empty(&g->leader->joins)) {
        g->leader = NULL;
        for (size_t i = 0; !g->leader; i++) {
            struct classic_member *m = classic_member_at(g, i);
            g->leader = m->pending || list_empty(&m->joins) ? NULL : m;
        }
    }
    classic_chosen_set(g, classic_protocols_choose(g));
    g->state = GROUP_STATE_COMPLETING_REBALANCE;
    window_set(g, c->now_ms + rebalance_ms_of(g));
    generation_begins(g);
}

void classic_go_on(struct classic_group *g) {
    if (g->state != GROUP_STATE_PREPARING_REBALANCE)
        return;
    if (g->members_count == 0 || (!g->initial && all_joined(g)))
        complete(g);
}

void classic_prepare(struct classic_group *g) {
    struct coordinator *c = g->g.c;
    bool syncing = g->state == GROUP_STATE_COMPLETING_REBALANCE;
    for (size_t i = 0; i < g->g.members.count; i++) {
        struct classic_member *m = classic_member_at(g, i);
        m->unsynced = false;
        if (syncing)
            classic_end_syncs(m, GROUP_REBALANCE_IN_PROGRESS);
    }
    g->unsynced_count = 0;
    g->initial = g->state == GROUP_STATE_EMPTY;
    g->state = GROUP_STATE_PREPARING_REBALANCE;
    g->started_ms = c->now_ms;
    window_set(g, c->now_ms + rebalance_ms_of(g));
    if (g->initial)
        classic_wait_for_more(g);
    else
        classic_go_on(g);
}

void classic_wait_for_more(struct classic_group *g) {
    int64_t last_ms = g->started_ms + rebalance_ms_of(g),
            more_ms = g->g.c->now_ms + g->g.c->settings.initial_delay_ms;
    window_set(g, more_ms < last_ms ? more_ms : last_ms);
}

void classic_stable(struct classic_group *g) {
    g->state = GROUP_STATE_STABLE;
    if (g->unsynced_count == 0)
        deadline_clear(&g->g.c->deadlines, &g->g.window);
    for (size_t i = 0; i < g->g.members.count; i++) {
        struct classic_member *m = classic_member_at(g, i);
        if (list_empty(&m->syncs))
            continue;
        session_restart(&m->m, m->session_ms);
        while (!list_empty(&m->syncs))
            classic_answer_sync(m, container_of(m->syncs.next, struct group_sync, call.link));
    }
}

/* D11-15: who has not come with SyncGroup is out. */
static void sync_due(struct classic_group *g) {
    for (size_t i = g->g.members.count; i-- > 0;) {
        struct classic_member *m = classic_member_at(g, i);
        if (m->unsynced)
            classic_member_remove(m, GROUP_UNKNOWN_MEMBER);
    }
    classic_prepare(g);
}

void classic_due(struct classic_group *g) {
    if (g->state == GROUP_STATE_PREPARING_REBALANCE)
        complete(g);
    else
        sync_due(g);
}

void classic_member_due(struct classic_member *m) {
    struct classic_group *g = classic_of(m->m.group);
    if (classic_member_waits(m)) { /* D11-17 */
        session_restart(&m->m, m->session_ms);
        return;
    }
    classic_member_remove(m, GROUP_UNKNOWN_MEMBER);
    classic_member_gone(g);
}
