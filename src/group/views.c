/* Looking at groups: DescribeGroups, ListGroups, and the iterators that answers are read with. */
#include "group/classic.h"
#include "group/consumer.h"

const char *group_state_text(enum group_state state) {
    static const char *const texts[] = {
        [GROUP_STATE_DEAD] = "Dead",
        [GROUP_STATE_EMPTY] = "Empty",
        [GROUP_STATE_PREPARING_REBALANCE] = "PreparingRebalance",
        [GROUP_STATE_COMPLETING_REBALANCE] = "CompletingRebalance",
        [GROUP_STATE_STABLE] = "Stable",
        [GROUP_STATE_ASSIGNING] = "Assigning",
        [GROUP_STATE_RECONCILING] = "Reconciling",
    };
    return texts[state];
}

const char *group_type_text(enum group_type type) {
    return type == GROUP_CLASSIC ? "classic" : "consumer";
}

static enum group_state state_of(const struct group *g) {
    return g->type == GROUP_CLASSIC ? classic_of_const(g)->state : consumer_state(consumer_of_const(g));
}

static struct str protocol_type_of(const struct group *g) {
    if (g->type == GROUP_CONSUMER)
        return STR("consumer");
    struct str type = classic_of_const(g)->protocol_type;
    return type.len > 0 ? type : STR("");
}

/* --- iterators ----------------------------------------------------------------------------------------------------------------- */

bool group_parts_next(struct group_parts *parts, struct group_part *out) {
    if (parts->at == parts->end)
        return false;
    uint64_t key = *parts->at++;
    const struct slot *s = consumer_of_const(parts->group)->slots[key_slot(key)];
    *out = (struct group_part){s->id, s->name ? s->name->name : STR(""), key_part(key)};
    return true;
}

struct group_parts parts_view(const struct group *g, const struct parts *p) {
    return (struct group_parts){g, p->at, p->count > 0 ? p->at + p->count : p->at};
}

static void view_classic(const struct classic_member *m, bool hide, struct group_member_view *out) {
    if (hide)
        return;
    out->metadata = classic_metadata(m);
    out->assignment = m->assignment;
}

static void view_consumer(const struct consumer_member *m, struct group_member_view *out) {
    out->epoch = m->epoch;
    out->topics_count = m->topics.count;
    out->pattern = m->pattern ? m->pattern->text : STR("");
    out->assigned = parts_view(m->m.group, &m->assigned);
    out->target = parts_view(m->m.group, &m->target);
}

bool group_members_next(struct group_members *members, struct group_member_view *out) {
    const struct group *g = members->group;
    while (g && members->at < g->members.count) {
        struct group_member *m = g->members.rows[members->at++];
        bool classic = g->type == GROUP_CLASSIC;
        if (classic && classic_member_of(m)->pending)
            continue;
        *out = (struct group_member_view){
            .id = m->id,
            .instance = m->instance,
            .client_id = m->client_id,
            .client_host = m->host,
            .rack = m->rack,
            .pattern = STR(""),
            .member = m,
        };
        if (classic)
            view_classic(classic_member_of(m), members->hide_metadata, out);
        else
            view_consumer(consumer_member_of(m), out);
        return true;
    }
    return false;
}

struct str group_member_topic(const struct group_member_view *view, int32_t nth) {
    const struct consumer_member *m = container_of(view->member, const struct consumer_member, m);
    return m->topics.at[nth]->name;
}

bool group_member_topics_next(struct group_member_topics *topics, struct str *out) {
    struct member_topics it = {.m = container_of(topics->view->member, const struct consumer_member, m),
                               .named = topics->named,
                               .matched = topics->matched};
    const struct consumer_name *name = member_topics_next(&it);
    topics->named = it.named;
    topics->matched = it.matched;
    if (name)
        *out = name->name;
    return name;
}

bool group_member_topics_known(const struct group_member_view *view) {
    const struct consumer_member *m = container_of(view->member, const struct consumer_member, m);
    return !m->pattern || m->pattern->version != 0;
}

/* --- DescribeGroups: D11-60 ---------------------------------------------------------------------------------------------------- */

static void describe_classic(const struct classic_group *g, struct group_describe *d) {
    bool stable = g->state == GROUP_STATE_STABLE;
    d->generation = g->generation;
    d->protocol = g->chosen && (stable || d->all_metadata) ? g->chosen->name : STR("");
    d->members = (struct group_members){&g->g, 0, g->members_count, !stable && !d->all_metadata};
}

static void describe_consumer(const struct consumer_group *g, struct group_describe *d) {
    d->generation = g->epoch;
    d->target_epoch = g->target_epoch;
    d->protocol = assignor_name(consumer_assignor(g));
    d->members = (struct group_members){&g->g, 0, (int32_t)g->g.members.count, false};
}

static enum group_outcome describe(const struct coordinator *c, struct group_describe *d) {
    const struct group *g = group_find(c, d->group);
    if (!g && d->has_offsets && d->type == GROUP_CLASSIC) {
        d->state = GROUP_STATE_EMPTY;
        d->empty_since_ms = c->forgotten_ms;
        return GROUP_OK;
    }
    d->other_type = g ? g->type != d->type : d->has_offsets;
    if (!g || d->other_type)
        return GROUP_ID_NOT_FOUND;
    d->state = state_of(g);
    d->protocol_type = protocol_type_of(g);
    if (d->state == GROUP_STATE_EMPTY)
        d->empty_since_ms = g->empty_since_ms;
    if (g->type == GROUP_CLASSIC)
        describe_classic(classic_of_const(g), d);
    else
        describe_consumer(consumer_of_const(g), d);
    return GROUP_OK;
}

void coordinator_describe(struct coordinator *c, struct group_describe *d, int64_t now_ms) {
    d->other_type = false;
    d->state = GROUP_STATE_DEAD;
    d->protocol_type = d->protocol = STR("");
    d->generation = d->target_epoch = -1;
    d->empty_since_ms = -1;
    d->members = (struct group_members){0};
    if (!call_begin(c, &d->call, now_ms))
        return;
    call_end(c, &d->call, describe(c, d));
    call_return(c);
}

/* --- ListGroups: D11-61 -------------------------------------------------------------------------------------------------------- */

void coordinator_list(struct coordinator *c, struct group_list *list, int64_t now_ms) {
    list->coordinator = NULL;
    list->at = 0;
    list->offsets_at = 0;
    if (!call_begin(c, &list->call, now_ms))
        return;
    list->coordinator = c;
    call_end(c, &list->call, GROUP_OK);
    call_return(c);
}

/* Two ascending lists are read as one. */
bool group_list_next(struct group_list *list, struct group_listed *out) {
    const struct coordinator *c = list->coordinator;
    const struct group *g = c && list->at < c->groups.count ? c->groups.rows[list->at] : NULL;
    const struct str *offsets =
        c && list->offsets_at < list->with_offsets_count ? &list->with_offsets[list->offsets_at] : NULL;
    if (!g && !offsets)
        return false;
    int order = !g ? 1 : !offsets ? -1 : str_compare(g->id, *offsets);
    list->at += order <= 0;
    list->offsets_at += order >= 0;
    if (order > 0)
        *out = (struct group_listed){*offsets, STR(""), GROUP_STATE_EMPTY, GROUP_CLASSIC};
    else
        *out = (struct group_listed){g->id, protocol_type_of(g), state_of(g), g->type};
    return true;
}
