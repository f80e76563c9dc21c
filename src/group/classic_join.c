/* JoinGroup: D11-20 to D11-30, and what a static member's return does (D11-70, D11-71). */
#include "group/classic.h"
#include "group/consumer.h"

static int64_t bytes_of(const struct group_join *join) {
    int64_t bytes = join->instance.len > 0 ? join->instance.len : 0;
    for (int32_t i = 0; i < join->protocols_count; i++) {
        bytes += join->protocols[i].name.len > 0 ? join->protocols[i].name.len : 0;
        bytes += join->protocols[i].metadata.len > 0 ? join->protocols[i].metadata.len : 0;
    }
    return bytes;
}

/* What can be said without looking at the group. D11-20 */
static enum group_outcome check_shape(const struct coordinator_settings *s, const struct group_join *join) {
    int32_t instance_max = GROUP_TEXT_BYTES_MAX - (join->member.len > 0 ? 0 : GROUP_UUID_TEXT_BYTES + 1);
    if (join->group.len <= 0 || join->group.len > GROUP_ID_BYTES_MAX)
        return GROUP_INVALID_ID;
    if (join->session_ms < s->session_min_ms || join->session_ms > s->session_max_ms)
        return GROUP_INVALID_SESSION_TIMEOUT;
    if (join->protocols_count > s->protocols_max || join->protocol_type.len > GROUP_TEXT_BYTES_MAX ||
        join->member.len > GROUP_TEXT_BYTES_MAX || join->instance.len > instance_max ||
        bytes_of(join) > s->blob_bytes_max)
        return GROUP_INVALID_REQUEST;
    return GROUP_OK;
}

static int32_t rebalance_ms(const struct coordinator_settings *s, const struct group_join *join) {
    int32_t ms = join->rebalance_ms > 0 ? join->rebalance_ms : join->session_ms; /* D11-27 */
    return ms < s->rebalance_max_ms ? ms : s->rebalance_max_ms;
}

/* Would the group still be within what its members may send, were this join in place of the member's last (NULL: none)? */
static bool roster_fits(const struct classic_group *g, const struct classic_member *m,
                        const struct group_join *join) {
    int64_t other =
        g->roster_bytes - (m ? m->protocols.bytes + (m->m.instance.len > 0 ? m->m.instance.len : 0) : 0);
    return other + bytes_of(join) <= g->g.c->settings.roster_bytes_max;
}

static void take_times(struct classic_member *m, const struct group_join *join) {
    m->session_ms = join->session_ms;
    m->rebalance_ms = rebalance_ms(&m->m.group->c->settings, join);
    session_restart(&m->m, m->session_ms);
}

/* The group's type is that of its first member. */
static bool take_type(struct classic_group *g, struct str type) {
    if (g->members_count > 0 || str_equal(g->protocol_type, type))
        return true;
    char *copy = keep_take(g->g.c, (size_t)type.len);
    if (!copy)
        return false;
    memcpy(copy, type.ptr, (size_t)type.len);
    keep_free(g->g.c, (void *)g->protocol_type.ptr);
    g->protocol_type = (struct str){copy, type.len};
    return true;
}

/* --- new members --------------------------------------------------------------------------------------------------------------- */

/* The join of a member that the group has only just got waits. */
static void wait_first(struct classic_member *m, struct group_join *join) {
    struct classic_group *g = classic_of(m->m.group);
    take_times(m, join);
    classic_park_join(m, join);
    if (g->members_count == 1)
        g->leader = m;
    if (g->state != GROUP_STATE_PREPARING_REBALANCE)
        classic_prepare(g);
    else if (g->initial)
        classic_wait_for_more(g);
    else
        classic_go_on(g);
}

static enum group_outcome admit(struct classic_group *g, const struct member_names *names,
                                struct group_join *join) {
    struct member_protocols protocols;
    if (!take_type(g, join->protocol_type) || !classic_protocols_make(g, join, &protocols))
        return GROUP_NOT_AVAILABLE;
    struct classic_member *m = classic_member_add(g, names, false);
    if (!m) {
        classic_protocols_drop(g, &protocols);
        return GROUP_NOT_AVAILABLE;
    }
    classic_protocols_set(m, &protocols);
    m->untold = true;
    wait_first(m, join);
    return GROUP_OK;
}

/* KIP-394: an id, with which it is to come again. */
static enum group_outcome hand_out(struct classic_group *g, const struct member_names *names,
                                   struct group_join *join) {
    struct classic_member *m = classic_member_add(g, names, true);
    if (!m)
        return GROUP_NOT_AVAILABLE;
    m->session_ms = join->session_ms;
    session_restart(&m->m, m->session_ms);
    classic_refuse_join(m, join, GROUP_MEMBER_ID_REQUIRED);
    return GROUP_OK;
}

/* The id is claimed. */
static enum group_outcome claim(struct classic_member *m, struct group_join *join) {
    struct classic_group *g = classic_of(m->m.group);
    struct member_protocols protocols;
    if (join->instance.len >= 0)
        return GROUP_UNKNOWN_MEMBER;
    if (!roster_fits(g, NULL, join))
        return GROUP_MAX_SIZE_REACHED;
    if (!take_type(g, join->protocol_type) || !classic_protocols_make(g, join, &protocols))
        return GROUP_NOT_AVAILABLE;
    classic_member_claimed(m);
    classic_protocols_set(m, &protocols);
    wait_first(m, join);
    return GROUP_OK;
}

/* --- static members that return ------------------------------------------------------------------------------------------------ */

/* D11-71: in a generation that stays. */
static void answer_returned(struct classic_member *m, struct group_join *join, struct str old_leader) {
    struct classic_group *g = classic_of(m->m.group);
    bool leads = g->leader == m;
    if (join->can_skip_assignment) {
        join->skip_assignment = leads;
        classic_answer_join(m, join);
        return;
    }
    join->member_id = m->m.id;
    join->leader = old_leader;
    join->protocol_name = g->chosen ? g->chosen->name : STR_NULL;
    join->chosen_type = g->protocol_type;
    join->generation = g->generation;
    call_end(g->g.c, &join->call, GROUP_OK);
}

static void go_on_with(struct classic_member *m, struct group_join *join, struct str old_leader) {
    struct classic_group *g = classic_of(m->m.group);
    if (g->state == GROUP_STATE_STABLE && classic_protocols_choose(g) == g->chosen) {
        answer_returned(m, join, old_leader);
        return;
    }
    classic_park_join(m, join);
    if (g->state == GROUP_STATE_PREPARING_REBALANCE)
        classic_go_on(g);
    else
        classic_prepare(g);
}

/* D11-70 */
static enum group_outcome replace(struct classic_member *old, const struct member_names *names,
                                  struct group_join *join) {
    struct classic_group *g = classic_of(old->m.group);
    struct member_protocols protocols;
    if (!roster_fits(g, old, join))
        return GROUP_MAX_SIZE_REACHED;
    if (!classic_protocols_make(g, join, &protocols))
        return GROUP_NOT_AVAILABLE;
    struct classic_member *m = classic_member_replace(old, names);
    if (!m) {
        classic_protocols_drop(g, &protocols);
        return GROUP_NOT_AVAILABLE;
    }
    classic_protocols_set(m, &protocols);
    take_times(m, join);
    bool led = g->leader == m;
    go_on_with(m, join, led ? old->m.id : g->leader ? g->leader->m.id : STR(""));
    member_free(&old->m);
    return GROUP_OK;
}

static enum group_outcome join_new(struct classic_group *g, struct group_join *join) {
    struct coordinator *c = g->g.c;
    struct classic_member *old = classic_member_of(member_of_instance(&g->g, join->instance));
    if (!old && g->members_count + g->pending_count >= c->settings.members_per_group_max)
        return GROUP_MAX_SIZE_REACHED;
    if (!old && c->members_count + c->pending_count >= c->settings.members_max)
        return GROUP_NOT_AVAILABLE;
    if (!classic_protocols_fit(g, old, join))
        return GROUP_INCONSISTENT_PROTOCOL;
    if (!roster_fits(g, old, join))
        return GROUP_MAX_SIZE_REACHED;
    char id[GROUP_TEXT_BYTES_MAX + GROUP_UUID_TEXT_BYTES + 1];
    bool is_static = join->instance.len >= 0;
    struct str client = join->client_id.len > 0 ? text_cut(join->client_id) : STR("member");
    struct member_names names = {
        .id = member_id_make(c, is_static ? join->instance : client, id),
        .instance = join->instance,
        .client_id = join->client_id,
        .host = join->host,
        .rack = STR_NULL,
    };
    if (old)
        return replace(old, &names, join);
    return join->id_first && !is_static ? hand_out(g, &names, join) : admit(g, &names, join);
}

/* --- members that join again --------------------------------------------------------------------------------------------------- */

/* The join is the member's newest word; it may lead to a rebalance. */
static enum group_outcome rejoin(struct classic_member *m, struct group_join *join, bool same) {
    struct classic_group *g = classic_of(m->m.group);
    struct member_protocols protocols;
    if (!same) {
        if (!roster_fits(g, m, join))
            return GROUP_MAX_SIZE_REACHED;
        if (!classic_protocols_make(g, join, &protocols))
            return GROUP_NOT_AVAILABLE;
        classic_protocols_set(m, &protocols);
    }
    take_times(m, join);
    classic_park_join(m, join);
    if (g->state == GROUP_STATE_PREPARING_REBALANCE)
        classic_go_on(g);
    else
        classic_prepare(g);
    return GROUP_OK;
}

static enum group_outcome join_known(struct classic_group *g, struct group_join *join) {
    struct classic_member *m = classic_member_of(member_find(&g->g, join->member));
    bool pending = m && m->pending;
    if (!classic_protocols_fit(g, pending ? NULL : m, join))
        return GROUP_INCONSISTENT_PROTOCOL;
    if (pending)
        return claim(m, join);
    enum group_outcome outcome = member_validate(&g->g, join->member, join->instance);
    if (outcome)
        return outcome;
    bool same = classic_protocols_same(m, join);
    if (g->state == GROUP_STATE_PREPARING_REBALANCE || !same ||
        (g->state == GROUP_STATE_STABLE && g->leader == m)) /* D11-25 */
        return rejoin(m, join, same);
    session_restart(&m->m, m->session_ms);
    classic_answer_join(m, join);
    return GROUP_OK;
}

/* --- the call ------------------------------------------------------------------------------------------------------------------ */

/* The group of that name for a join, made if it may be. NULL: outcome says why. */
static struct classic_group *group_for(struct coordinator *c, const struct group_join *join,
                                       enum group_outcome *outcome, bool *made) {
    struct group *g = group_find(c, join->group);
    *made = false;
    if (g && g->type == GROUP_CLASSIC)
        return classic_of(g);
    *outcome = GROUP_INCONSISTENT_PROTOCOL;
    if (g && !group_is_empty(g))
        return NULL;
    *outcome = GROUP_UNKNOWN_MEMBER; /* D11-21 */
    if (join->member.len > 0)
        return NULL;
    if (g) /* D11-96 */
        group_remove(g, GROUP_UNKNOWN_MEMBER);
    *outcome = groups_make_room(c);
    if (*outcome)
        return NULL;
    *outcome = GROUP_NOT_AVAILABLE;
    *made = true;
    return classic_add(c, join->group);
}

/* GROUP_OK: it has ended, or waits. */
static enum group_outcome join_start(struct coordinator *c, struct group_join *join) {
    bool made;
    enum group_outcome outcome = check_shape(&c->settings, join);
    if (outcome)
        return outcome;
    struct classic_group *g = group_for(c, join, &outcome, &made);
    if (!g)
        return outcome;
    outcome = join->member.len > 0 ? join_known(g, join) : join_new(g, join);
    if (made && outcome && outcome != GROUP_INCONSISTENT_PROTOCOL) /* D11-24, D11-22 */
        group_remove(&g->g, outcome);
    return outcome;
}

void coordinator_join(struct coordinator *c, struct group_join *join, int64_t now_ms) {
    join->member_id = join->member;
    join->leader = STR("");
    join->protocol_name = join->chosen_type = STR_NULL;
    join->generation = -1;
    join->skip_assignment = false;
    join->members = (struct group_members){0};
    if (!call_begin(c, &join->call, now_ms))
        return;
    enum group_outcome outcome = join_start(c, join);
    if (outcome)
        call_end(c, &join->call, outcome);
    call_return(c);
}
