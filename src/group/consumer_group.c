/*
 * ConsumerGroupHeartbeat (KIP-848): members of consumer groups come, say what they read and own, are told what to have, and go. What a
 * heartbeat changes it changes in steps, each of which leaves the group whole: where memory ends in between, the next one goes on.
 */
#include "group/consumer.h"

static struct consumer_group *consumer_add(struct coordinator *c, struct str id) {
    struct group *g = group_add(c, id, sizeof(struct consumer_group));
    if (!g)
        return NULL;
    g->type = GROUP_CONSUMER;
    return consumer_of(g);
}

/* --- members ------------------------------------------------------------------------------------------------------------------- */

static struct consumer_member *member_make(struct consumer_group *g, const struct member_names *names) {
    struct consumer_member *m = consumer_member_of(member_new(&g->g, names, sizeof *m));
    if (!m)
        return NULL;
    m->revoke.kind = DEADLINE_REVOKE;
    m->assignor = ASSIGNOR_NONE;
    return m;
}

/* It is out of the tables: what it had is free. */
static void member_let_go(struct consumer_member *m) {
    struct consumer_group *g = consumer_of(m->m.group);
    consumer_give_up(m);
    consumer_names_drop(g, &m->topics);
    consumer_pattern_unref(g, m->pattern);
    g->roster_bytes -= m->topics_bytes;
    keep_free(g->g.c, m->target.at);
    deadline_clear(&g->g.c->deadlines, &m->revoke);
    member_free(&m->m);
}

/* It goes, and the group has another epoch. */
static void member_remove(struct consumer_member *m) {
    struct consumer_group *g = consumer_of(m->m.group);
    member_take(&m->m);
    g->g.c->members_count--;
    member_let_go(m);
    g->epoch++;
    if (g->g.members.count == 0) {
        consumer_slots_tidy(g);
        group_emptied(&g->g);
    }
}

void consumer_member_due(struct consumer_member *m) {
    member_remove(m);
}

void consumer_release(struct consumer_group *g) {
    while (g->g.members.count > 0)
        member_remove(consumer_member_at(g, g->g.members.count - 1));
    consumer_slots_tidy(g);
    assert(g->names.count == 0 && g->patterns.count == 0);
    keep_free(g->g.c, g->slots);
    sorted_release(&g->names);
    sorted_release(&g->patterns);
    sorted_release(&g->by_id);
}

enum group_state consumer_state(const struct consumer_group *g) {
    if (g->g.members.count == 0)
        return GROUP_STATE_EMPTY;
    if (g->epoch > g->target_epoch)
        return GROUP_STATE_ASSIGNING;
    for (size_t i = 0; i < g->g.members.count; i++) {
        const struct consumer_member *m = consumer_member_at(g, i);
        if (m->step != STEP_STABLE || m->epoch != g->target_epoch)
            return GROUP_STATE_RECONCILING;
    }
    return GROUP_STATE_STABLE;
}

static struct group_times consumer_times(const struct consumer_group *g) {
    const struct coordinator_settings *s = &g->g.c->settings;
    struct group_times times = {s->consumer_session_ms, s->consumer_heartbeat_ms};
    if (s->times_find)
        s->times_find(s->ctx, g->g.id, &times);
    return times;
}

/* --- commits: D11-95 ----------------------------------------------------------------------------------------------------------- */

enum group_outcome consumer_check_commit(struct consumer_group *g, struct group_check *check) {
    const struct consumer_member *m = consumer_member_of(member_find(&g->g, check->member));
    if (!m)
        return GROUP_UNKNOWN_MEMBER;
    if (!check->knows_epochs)
        return GROUP_UNSUPPORTED_VERSION;
    if (check->generation != m->epoch)
        return GROUP_STALE_EPOCH;
    check->session_ms = consumer_times(g).session_ms;
    return GROUP_OK;
}

enum group_outcome consumer_check_fetch(const struct consumer_group *g, const struct group_check *check) {
    if (!check->knows_epochs || (check->member.len <= 0 && check->generation < 0))
        return GROUP_OK;
    const struct consumer_member *m = consumer_member_of(member_find(&g->g, check->member));
    if (!m)
        return GROUP_UNKNOWN_MEMBER;
    return check->generation == m->epoch ? GROUP_OK : GROUP_STALE_EPOCH;
}

/* --- a heartbeat's shape: D11-90 ----------------------------------------------------------------------------------------------- */

static int64_t bytes_of(const struct group_consumer_heartbeat *h) {
    int64_t bytes = h->instance.len > 0 ? h->instance.len : 0;
    for (int32_t i = 0; i < h->topics_count; i++)
        bytes += h->topics[i].len > 0 ? h->topics[i].len : 0;
    return bytes;
}

static bool lists_fit(const struct coordinator_settings *s, const struct group_consumer_heartbeat *h) {
    int64_t bytes = bytes_of(h);
    return bytes <= s->blob_bytes_max && h->regex.len <= s->blob_bytes_max &&
           h->topics_count <= s->blob_bytes_max && h->member.len <= GROUP_TEXT_BYTES_MAX &&
           h->group.len <= GROUP_ID_BYTES_MAX;
}

static enum group_outcome check_shape(const struct coordinator_settings *s,
                                      const struct group_consumer_heartbeat *h) {
    bool joins = h->epoch == 0;
    if (h->group.len <= 0 || h->instance.len == 0 || h->rack.len == 0 || !lists_fit(s, h))
        return GROUP_INVALID_REQUEST;
    if (h->epoch < EPOCH_LEAVE_STATIC || (h->epoch == EPOCH_LEAVE_STATIC && h->instance.len < 0) ||
        (!joins && h->member.len <= 0))
        return GROUP_INVALID_REQUEST;
    if (joins && (h->rebalance_ms == -1 || h->owned_count != 0 || (h->topics_count < 0 && h->regex.len < 0)))
        return GROUP_INVALID_REQUEST;
    if (h->assignor.len >= 0 && assignor_named(h->assignor) == ASSIGNOR_NONE)
        return GROUP_UNSUPPORTED_ASSIGNOR;
    return GROUP_OK;
}

/* --- leaving ------------------------------------------------------------------------------------------------------------------- */

/* D11-94: its place is kept until its session ends, but it has nothing to give up any more. */
static void go_away(struct consumer_member *m) {
    m->epoch = EPOCH_LEAVE_STATIC;
    m->step = STEP_STABLE;
    deadline_clear(&m->m.group->c->deadlines, &m->revoke);
    for (uint32_t i = 0; i < m->revoking.count; i++)
        consumer_owner_set(consumer_of(m->m.group), m->revoking.at[i], NULL);
    keep_free(m->m.group->c, m->revoking.at);
    m->revoking = (struct parts){0};
}

static enum group_outcome leave(struct consumer_group *g, struct group_consumer_heartbeat *h) {
    enum group_outcome outcome = member_validate(&g->g, h->member, h->instance);
    if (outcome)
        return outcome;
    struct consumer_member *m = consumer_member_of(member_find(&g->g, h->member));
    h->member_epoch = h->epoch;
    if (h->epoch == EPOCH_LEAVE_STATIC)
        go_away(m);
    else
        member_remove(m);
    return GROUP_OK;
}

/* --- who it is: D11-91, D11-94 ------------------------------------------------------------------------------------------------- */

/* A new member, in the tables. */
static enum group_outcome member_join(struct consumer_group *g, const struct member_names *names,
                                      struct consumer_member **out) {
    struct coordinator *c = g->g.c;
    if (g->g.members.count >= (size_t)c->settings.members_per_group_max)
        return GROUP_MAX_SIZE_REACHED;
    if (c->members_count + c->pending_count >= c->settings.members_max ||
        !members_reserve(&g->g, names->instance.len >= 0))
        return GROUP_NOT_AVAILABLE;
    struct consumer_member *m = member_make(g, names);
    if (!m)
        return GROUP_NOT_AVAILABLE;
    if (g->g.members.count == 0)
        deadline_clear(&c->deadlines, &g->g.window);
    member_put(&m->m);
    c->members_count++;
    *out = m;
    return GROUP_OK;
}

/* A static member takes the place of one that is away, with all it has. */
static enum group_outcome member_replace(struct consumer_member *old, const struct member_names *names,
                                         struct consumer_member **out) {
    struct consumer_group *g = consumer_of(old->m.group);
    if (member_find(&g->g, names->id))
        return GROUP_UNRELEASED_INSTANCE; /* of another instance, or none */
    struct consumer_member *m = member_make(g, names);
    if (!m)
        return GROUP_NOT_AVAILABLE;
    m->rebalance_ms = old->rebalance_ms;
    m->assignor = old->assignor;
    m->topics = old->topics;
    m->pattern = old->pattern;
    m->topics_bytes = old->topics_bytes;
    m->assigned = old->assigned;
    m->target = old->target;
    for (uint32_t i = 0; i < m->assigned.count; i++)
        consumer_owner_set(g, m->assigned.at[i], m);
    old->topics = (struct names){0};
    old->pattern = NULL;
    old->topics_bytes = 0;
    old->assigned = old->target = (struct parts){0};
    member_take(&old->m);
    member_put(&m->m);
    member_let_go(old);
    *out = m;
    return GROUP_OK;
}

static enum group_outcome member_joining(struct consumer_group *g, const struct group_consumer_heartbeat *h,
                                         struct str id, struct consumer_member **out) {
    struct member_names names = {
        .id = id, .instance = h->instance, .client_id = h->client_id, .host = h->host, .rack = h->rack};
    struct consumer_member *m = consumer_member_of(member_find(&g->g, id));
    struct consumer_member *holder = consumer_member_of(member_of_instance(&g->g, h->instance));
    if (holder && holder != m)
        return holder->epoch == EPOCH_LEAVE_STATIC ? member_replace(holder, &names, out)
                                                   : GROUP_UNRELEASED_INSTANCE;
    if (m && h->instance.len >= 0 && !holder) { /* it was somebody else, or nobody static: it begins anew */
        member_remove(m);
        m = NULL;
    }
    if (!m)
        return member_join(g, &names, out);
    if (m->epoch == EPOCH_LEAVE_STATIC)
        m->epoch = m->previous_epoch = 0;
    *out = m;
    return GROUP_OK;
}

static enum group_outcome member_known(struct consumer_group *g, const struct group_consumer_heartbeat *h,
                                       struct consumer_member **out) {
    enum group_outcome outcome = member_validate(&g->g, h->member, h->instance);
    if (outcome)
        return outcome;
    struct consumer_member *m = consumer_member_of(member_find(&g->g, h->member));
    if (h->epoch > m->epoch)
        return GROUP_FENCED_EPOCH;
    if (h->epoch < m->epoch &&
        (h->epoch != m->previous_epoch || !consumer_owns_only_assigned(m, h->owned, h->owned_count)))
        return GROUP_FENCED_EPOCH;
    *out = m;
    return GROUP_OK;
}

/* --- what it says -------------------------------------------------------------------------------------------------------------- */

/* The topics that it names. True in changed: they are other ones. */
static enum group_outcome take_topics(struct consumer_member *m, const struct group_consumer_heartbeat *h,
                                      bool *changed) {
    struct consumer_group *g = consumer_of(m->m.group);
    struct names topics;
    if (h->topics_count < 0)
        return GROUP_OK;
    int64_t bytes = bytes_of(h), roster_bytes = g->roster_bytes - m->topics_bytes + bytes;
    if (roster_bytes > g->g.c->settings.roster_bytes_max)
        return GROUP_MAX_SIZE_REACHED;
    if (!consumer_names_make(g, h->topics, h->topics_count, &topics))
        return GROUP_NOT_AVAILABLE;
    g->roster_bytes = roster_bytes;
    m->topics_bytes = bytes;
    *changed = *changed || !names_same(&topics, &m->topics);
    consumer_names_drop(g, &m->topics);
    m->topics = topics;
    return GROUP_OK;
}

/* All that it subscribes to, or nothing. D11-99. */
static enum group_outcome take_subscription(struct consumer_member *m,
                                            const struct group_consumer_heartbeat *h, bool *changed) {
    struct consumer_group *g = consumer_of(m->m.group);
    struct consumer_pattern *pattern = NULL;
    enum group_outcome outcome = h->regex.len > 0 ? consumer_pattern_ref(g, h->regex, &pattern) : GROUP_OK;
    if (!outcome)
        outcome = take_topics(m, h, changed);
    if (outcome || h->regex.len < 0) {
        consumer_pattern_unref(g, pattern);
        return outcome;
    }
    *changed = *changed || pattern != m->pattern;
    consumer_pattern_unref(g, m->pattern);
    m->pattern = pattern;
    return GROUP_OK;
}

static void take_times(struct consumer_member *m, const struct group_consumer_heartbeat *h,
                       int32_t session_ms) {
    const struct coordinator_settings *s = &m->m.group->c->settings;
    if (h->rebalance_ms > 0)
        m->rebalance_ms = h->rebalance_ms < s->rebalance_max_ms ? h->rebalance_ms : s->rebalance_max_ms;
    if (m->rebalance_ms <= 0)
        m->rebalance_ms = session_ms;
    if (h->assignor.len >= 0)
        m->assignor = assignor_named(h->assignor);
    session_restart(&m->m, session_ms);
}

/* Topics are looked up, where members or their topics changed, or it is time. True in changed also: the topics did. False: out of memory. */
static bool look_up(struct consumer_group *g, bool *changed) {
    struct coordinator *c = g->g.c;
    if (!*changed && c->now_ms < g->refresh_ms && g->topics_version == c->topics_version)
        return true;
    g->refresh_ms = c->now_ms; /* in case it can't be finished */
    return consumer_refresh(g, changed);
}

/* The targets are those of the group's epoch. False: out of memory. */
static bool retarget(struct consumer_group *g) {
    if (g->epoch == g->target_epoch)
        return true;
    if (!consumer_assign(g))
        return false;
    g->target_epoch = g->epoch;
    consumer_slots_tidy(g);
    return true;
}

/* fresh: the member is a new one. */
static enum group_outcome serve(struct consumer_member *m, struct group_consumer_heartbeat *h, bool fresh) {
    struct consumer_group *g = consumer_of(m->m.group);
    struct group_times times = consumer_times(g);
    bool changed = fresh, reassigned = false;
    enum group_outcome outcome = take_subscription(m, h, &changed);
    take_times(m, h, times.session_ms);
    if (!outcome && !look_up(g, &changed))
        outcome = GROUP_NOT_AVAILABLE;
    g->epoch += changed;
    if (!outcome && (!retarget(g) || !consumer_reconcile(m, h->owned, h->owned_count, &reassigned)))
        outcome = GROUP_NOT_AVAILABLE;
    if (outcome)
        return outcome;
    h->member_id = m->m.id;
    h->member_epoch = m->epoch;
    h->heartbeat_ms = times.heartbeat_ms;
    bool names_all = h->topics_count >= 0 || h->regex.len >= 0;
    bool full = h->epoch == 0 || (h->rebalance_ms != -1 && names_all && h->owned_count >= 0);
    h->has_assignment = full || reassigned;
    if (h->has_assignment)
        h->assignment = parts_view(&g->g, &m->assigned);
    return GROUP_OK;
}

/* --- the call ------------------------------------------------------------------------------------------------------------------ */

/* The group of that name; NULL: outcome says why. */
static struct consumer_group *group_for(struct coordinator *c, const struct group_consumer_heartbeat *h,
                                        enum group_outcome *outcome) {
    struct group *g = group_find(c, h->group);
    if (g && g->type == GROUP_CONSUMER)
        return consumer_of(g);
    *outcome = GROUP_UNKNOWN_MEMBER; /* not 69 as Kafka, which groups outlive there: Java clients die of it */
    if (h->epoch != 0)
        return NULL;
    *outcome = GROUP_ID_NOT_FOUND;
    if (g && !group_is_empty(g))
        return NULL;
    if (g) /* D11-96 */
        group_remove(g, GROUP_UNKNOWN_MEMBER);
    *outcome = groups_make_room(c);
    if (*outcome)
        return NULL;
    *outcome = GROUP_NOT_AVAILABLE;
    return consumer_add(c, h->group);
}

/* GROUP_OK: the answer is in h. */
static enum group_outcome beat(struct coordinator *c, struct group_consumer_heartbeat *h) {
    enum group_outcome outcome = check_shape(&c->settings, h);
    if (!outcome && h->epoch == 0 &&
        h->regex.len > 0) /* before a group or a static member's place changes hands */
        outcome = consumer_pattern_check(c, h->regex);
    if (outcome)
        return outcome;
    struct consumer_group *g = group_for(c, h, &outcome);
    if (!g)
        return outcome;
    bool made = g->epoch == 0;
    if (h->epoch < 0)
        return leave(g, h);
    char text[GROUP_UUID_TEXT_BYTES + 1];
    struct str id = h->member;
    if (id.len <= 0) {
        id = member_id_make(c, STR(""), text);
        id = (struct str){id.ptr + 1, id.len - 1}; /* without the hyphen */
    }
    struct consumer_member *m = NULL;
    size_t before = g->g.members.count;
    outcome = h->epoch == 0 ? member_joining(g, h, id, &m) : member_known(g, h, &m);
    bool fresh = g->g.members.count > before;
    if (!outcome)
        outcome = serve(m, h, fresh);
    if (outcome && fresh) /* it was never told that it is in */
        member_remove(m);
    if (outcome && made)
        group_remove(&g->g, GROUP_UNKNOWN_MEMBER);
    return outcome;
}

void coordinator_consumer_heartbeat(struct coordinator *c, struct group_consumer_heartbeat *h,
                                    int64_t now_ms) {
    h->member_id = h->member;
    h->member_epoch = 0;
    h->heartbeat_ms = 0;
    h->has_assignment = false;
    h->assignment = (struct group_parts){0};
    if (!call_begin(c, &h->call, now_ms))
        return;
    call_end(c, &h->call, beat(c, h));
    call_return(c);
}

void coordinator_topics_changed(struct coordinator *c) {
    c->topics_version++;
}
