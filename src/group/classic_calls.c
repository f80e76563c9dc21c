/* The other calls to classic groups: SyncGroup, Heartbeat, LeaveGroup, and what may be committed. */
#include "group/classic.h"
#include "group/consumer.h"

/* The member of that generation. GROUP_OK and the member, or what D11-40 and D11-50 say. */
static enum group_outcome member_of_generation(const struct classic_group *g, struct str id,
                                               struct str instance, int32_t generation,
                                               struct classic_member **out) {
    enum group_outcome outcome = member_validate(&g->g, id, instance);
    if (outcome)
        return outcome;
    struct classic_member *m = classic_member_of(member_find(&g->g, id));
    if (m->pending)
        return GROUP_UNKNOWN_MEMBER;
    if (generation != g->generation)
        return GROUP_ILLEGAL_GENERATION;
    *out = m;
    return GROUP_OK;
}

/* The classic group of that name, or why not. */
static enum group_outcome classic_find(const struct coordinator *c, struct str id,
                                       struct classic_group **out) {
    if (id.len <= 0)
        return GROUP_INVALID_ID;
    struct group *g = group_find(c, id);
    if (!g || g->type != GROUP_CLASSIC)
        return GROUP_UNKNOWN_MEMBER;
    *out = classic_of(g);
    return GROUP_OK;
}

/* --- SyncGroup: D11-40 --------------------------------------------------------------------------------------------------------- */

static bool blobs_fit(const struct classic_group *g, const struct group_sync *sync) {
    for (int32_t i = 0; i < sync->assignments_count; i++) {
        if (sync->assignments[i].blob.len > g->g.c->settings.blob_bytes_max)
            return false;
    }
    return true;
}

/* A copy in m->next; false: out of memory. */
static bool keep_next(struct classic_member *m, struct bytes blob) {
    struct coordinator *c = m->m.group->c;
    keep_free(c, (void *)m->next.ptr);
    m->next = (struct bytes){NULL, 0};
    if (blob.len <= 0)
        return true;
    uint8_t *copy = keep_take(c, (size_t)blob.len);
    if (!copy)
        return false;
    memcpy(copy, blob.ptr, (size_t)blob.len);
    m->next = (struct bytes){copy, blob.len};
    return true;
}

/* Every member has what the leader gave it, and only that. False: out of memory, and nobody has anything. */
static bool take_assignments(struct classic_group *g, const struct group_sync *sync) {
    struct coordinator *c = g->g.c;
    bool fine = true;
    for (size_t i = 0; i < g->g.members.count; i++) { /* what is there goes first: room for what comes */
        struct classic_member *m = classic_member_at(g, i);
        keep_free(c, (void *)m->assignment.ptr);
        m->assignment = (struct bytes){NULL, 0};
    }
    for (int32_t i = 0; fine && i < sync->assignments_count; i++) {
        struct classic_member *m = classic_member_of(member_find(&g->g, sync->assignments[i].member));
        if (m && !m->pending)
            fine = keep_next(m, sync->assignments[i].blob);
    }
    for (size_t i = 0; i < g->g.members.count; i++) {
        struct classic_member *m = classic_member_at(g, i);
        if (fine)
            m->assignment = m->next;
        else
            keep_free(c, (void *)m->next.ptr);
        m->next = (struct bytes){NULL, 0};
    }
    return fine;
}

static void sync_of_leader(struct classic_group *g, const struct group_sync *sync) {
    if (take_assignments(g, sync)) {
        classic_stable(g);
        return;
    }
    for (size_t i = 0; i < g->g.members.count; i++)
        classic_end_syncs(classic_member_at(g, i), GROUP_NOT_AVAILABLE);
    classic_prepare(g);
}

/* GROUP_OK: it has ended, or waits. */
static enum group_outcome sync_start(struct coordinator *c, struct group_sync *sync) {
    struct classic_group *g;
    struct classic_member *m = NULL;
    if (sync->names_protocol && (sync->protocol_type.len < 0 || sync->protocol_name.len < 0))
        return GROUP_INCONSISTENT_PROTOCOL;
    enum group_outcome outcome = classic_find(c, sync->group, &g);
    if (!outcome)
        outcome = member_of_generation(g, sync->member, sync->instance, sync->generation, &m);
    if (outcome)
        return outcome;
    if (sync->names_protocol && (!str_equal(sync->protocol_type, g->protocol_type) ||
                                 (g->chosen && !str_equal(sync->protocol_name, g->chosen->name))))
        return GROUP_INCONSISTENT_PROTOCOL;
    if (!blobs_fit(g, sync))
        return GROUP_INVALID_REQUEST;
    if (g->state == GROUP_STATE_PREPARING_REBALANCE)
        return GROUP_REBALANCE_IN_PROGRESS;
    session_restart(&m->m, m->session_ms);
    if (g->state == GROUP_STATE_STABLE) {
        classic_synced(m);
        classic_answer_sync(m, sync);
        return GROUP_OK;
    }
    classic_synced(m);
    classic_park_sync(m, sync);
    if (g->leader == m)
        sync_of_leader(g, sync);
    return GROUP_OK;
}

void coordinator_sync(struct coordinator *c, struct group_sync *sync, int64_t now_ms) {
    sync->chosen_type = sync->chosen_name = STR_NULL;
    sync->assignment = (struct bytes){NULL, 0};
    if (!call_begin(c, &sync->call, now_ms))
        return;
    enum group_outcome outcome = sync_start(c, sync);
    if (outcome)
        call_end(c, &sync->call, outcome);
    call_return(c);
}

/* --- Heartbeat: D11-50 --------------------------------------------------------------------------------------------------------- */

static enum group_outcome heartbeat(struct coordinator *c, struct group_heartbeat *beat) {
    struct classic_group *g;
    struct classic_member *m = NULL;
    enum group_outcome outcome = classic_find(c, beat->group, &g);
    if (!outcome)
        outcome = member_of_generation(g, beat->member, beat->instance, beat->generation, &m);
    if (outcome)
        return outcome;
    beat->session_ms = m->session_ms;
    session_restart(&m->m, m->session_ms);
    return g->state == GROUP_STATE_PREPARING_REBALANCE ? GROUP_REBALANCE_IN_PROGRESS : GROUP_OK;
}

void coordinator_heartbeat(struct coordinator *c, struct group_heartbeat *beat, int64_t now_ms) {
    beat->session_ms = 0;
    if (!call_begin(c, &beat->call, now_ms))
        return;
    call_end(c, &beat->call, heartbeat(c, beat));
    call_return(c);
}

/* --- LeaveGroup: D11-51 -------------------------------------------------------------------------------------------------------- */

static enum group_outcome leave(struct coordinator *c, const struct group_leave *l) {
    struct classic_group *g;
    enum group_outcome outcome = classic_find(c, l->group, &g);
    if (outcome)
        return outcome;
    struct classic_member *m;
    if (l->member.len <= 0) { /* an operator names it by its instance id */
        m = classic_member_of(member_of_instance(&g->g, l->instance));
        if (!m)
            return GROUP_UNKNOWN_MEMBER;
    } else {
        m = classic_member_of(member_find(&g->g, l->member));
        if (!m || !m->pending) {
            outcome = member_validate(&g->g, l->member, l->instance);
            if (outcome)
                return outcome;
        }
    }
    classic_member_remove(m, GROUP_UNKNOWN_MEMBER);
    classic_member_gone(g);
    return GROUP_OK;
}

void coordinator_leave(struct coordinator *c, struct group_leave *l, int64_t now_ms) {
    if (!call_begin(c, &l->call, now_ms))
        return;
    call_end(c, &l->call, leave(c, l));
    call_return(c);
}

/* --- commits: D11-65 ----------------------------------------------------------------------------------------------------------- */

static enum group_outcome check_classic(struct classic_group *g, struct group_check *check) {
    struct classic_member *m = NULL;
    if (check->generation < 0 && check->member.len <= 0 && check->instance.len < 0)
        return GROUP_UNKNOWN_MEMBER;
    enum group_outcome outcome =
        member_of_generation(g, check->member, check->instance, check->generation, &m);
    if (outcome)
        return outcome;
    if (g->state == GROUP_STATE_COMPLETING_REBALANCE)
        return GROUP_REBALANCE_IN_PROGRESS;
    check->session_ms = m->session_ms;
    session_restart(&m->m, m->session_ms);
    return GROUP_OK;
}

static enum group_outcome check_start(struct coordinator *c, struct group_check *check) {
    struct group *g = group_find(c, check->group);
    if (check->fetch)
        return g && g->type == GROUP_CONSUMER ? consumer_check_fetch(consumer_of(g), check) : GROUP_OK;
    if (check->group.len <= 0 || check->group.len > GROUP_ID_BYTES_MAX)
        return GROUP_INVALID_ID;
    enum group_outcome outcome;
    if (!g || group_is_empty(g))
        outcome = check->generation < 0 ? GROUP_OK : GROUP_UNKNOWN_MEMBER;
    else if (g->type == GROUP_CLASSIC)
        outcome = check_classic(classic_of(g), check);
    else
        outcome = consumer_check_commit(consumer_of(g), check);
    if (g && !outcome)
        g->committed = true;
    return outcome;
}

void coordinator_check(struct coordinator *c, struct group_check *check, int64_t now_ms) {
    check->session_ms = 0;
    if (!call_begin(c, &check->call, now_ms))
        return;
    call_end(c, &check->call, check_start(c, check));
    call_return(c);
}
