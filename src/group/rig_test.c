#include "group/rig_test.h"

#include "testing/test.h"

#include <stdlib.h>

static void rig_random(void *ctx, uint8_t out[16]) {
    struct rig *r = ctx;
    for (int i = 0; i < 16; i++) {
        r->seed = r->seed * 6364136223846793005u + 1442695040888963407u;
        out[i] = (uint8_t)(r->seed >> 56);
    }
}

void rig_settings(struct rig *r) {
    *r = (struct rig){.now = 1000000, .seed = 1};
    coordinator_settings_default(&r->settings);
    r->settings.random = rig_random;
    r->settings.ctx = r;
}

void rig_start(struct rig *r) {
    CHECK_EQ(coordinator_new(&r->settings, &r->c), ST_OK);
}

void rig_begin(struct rig *r) {
    rig_settings(r);
    rig_start(r);
}

void rig_end(struct rig *r) {
    CHECK_EQ(counts(r).waiting, 0);
    coordinator_free(r->c);
}

void rig_wait(struct rig *r, int64_t ms) {
    int64_t end = r->now + ms;
    for (;;) {
        int64_t due = coordinator_due_ms(r->c);
        if (due > end)
            break;
        r->now = due > r->now ? due : r->now;
        CHECK(coordinator_tick(r->c, r->now) > r->now);
    }
    r->now = end;
}

struct str text_or_null(const char *text) {
    return text ? str_of(text) : STR_NULL;
}

void text_add(char *text, size_t size, const char *format, ...) {
    size_t at = strlen(text);
    va_list args;
    va_start(args, format);
    int more = vsnprintf(text + at, size - at, format, args);
    va_end(args);
    CHECK(more >= 0 && at + (size_t)more < size);
}

static struct str text_or_empty(const char *text) {
    return text ? str_of(text) : STR("");
}

static struct str group_or_g(const char *text) {
    return text ? str_of(text) : STR("g");
}

static void copy(char *out, struct str s) {
    int len = s.len < 0 ? 0 : s.len < TEXT_SIZE ? s.len : TEXT_SIZE - 1;
    memcpy(out, len > 0 ? s.ptr : "", (size_t)len);
    out[len] = 0;
}

/* --- joins --------------------------------------------------------------------------------------------------------------------- */

static void joined_done(struct group_call *call) {
    struct joined *x = container_of(call, struct joined, j.call);
    x->done++;
    copy(x->id, x->j.member_id);
    copy(x->leader, x->j.leader);
    copy(x->protocol, x->j.protocol_name);
    copy(x->type, x->j.chosen_type);
    struct group_members members = x->j.members;
    struct group_member_view m;
    x->roster[0] = 0;
    x->roster_count = 0;
    while (group_members_next(&members, &m)) {
        bool fixed = m.instance.len >= 0;
        text_add(x->roster, sizeof x->roster, "%.*s%s%.*s=%.*s;", m.id.len, m.id.ptr, fixed ? "/" : "",
                 fixed ? m.instance.len : 0, fixed ? m.instance.ptr : "",
                 m.metadata.len < 100 ? m.metadata.len : 100, (const char *)m.metadata.ptr);
        x->roster_count++;
    }
    CHECK_EQ(x->roster_count, x->j.members.count);
}

/* "a:b,c:d": the next pair; false: none. */
static bool pair_next(const char **at, struct str *name, struct bytes *value) {
    if (!**at)
        return false;
    const char *colon = strchr(*at, ':'), *comma = strchr(colon, ',');
    const char *end = comma ? comma : colon + strlen(colon);
    *name = (struct str){*at, (int32_t)(colon - *at)};
    *value = (struct bytes){(const uint8_t *)colon + 1, (int32_t)(end - colon - 1)};
    *at = comma ? comma + 1 : end;
    return true;
}

enum group_outcome join_how(struct rig *r, struct joined *x, struct join_how how) {
    struct group_protocol protocols[64];
    int32_t count = 0;
    char member[sizeof x->id]; /* it may be x->id */
    if (how.member && how.member == x->id)
        how.member = strcpy(member, x->id);
    const char *at = how.protocols ? how.protocols : "range:m";
    while (pair_next(&at, &protocols[count].name, &protocols[count].metadata))
        count++;
    *x = (struct joined){.j = {
                             .call.done = joined_done,
                             .group = group_or_g(how.group),
                             .member = text_or_empty(how.member),
                             .instance = text_or_null(how.instance),
                             .client_id = how.client ? str_of(how.client) : STR("c"),
                             .host = STR("/h"),
                             .session_ms = how.session_ms ? how.session_ms : 10000,
                             .rebalance_ms = how.rebalance_ms ? how.rebalance_ms : 60000,
                             .protocol_type = how.type ? str_of(how.type) : STR("consumer"),
                             .protocols = protocols,
                             .protocols_count = count,
                             .id_first = how.v4 || how.v9,
                             .can_skip_assignment = how.v9,
                         }};
    coordinator_join(r->c, &x->j, r->now);
    memset(protocols, 0xee, sizeof protocols); /* nobody may look at it any more */
    return x->done ? x->j.call.outcome : WAITS;
}

/* --- syncs --------------------------------------------------------------------------------------------------------------------- */

static void synced_done(struct group_call *call) {
    struct synced *x = container_of(call, struct synced, s.call);
    x->done++;
    copy(x->assignment, (struct str){(const char *)x->s.assignment.ptr, x->s.assignment.len});
    copy(x->protocol, x->s.chosen_name);
    copy(x->type, x->s.chosen_type);
}

static struct str v5_text(const char *text) {
    return !text || strcmp(text, "-") == 0 ? STR_NULL : str_of(text);
}

enum group_outcome sync_how(struct rig *r, struct synced *x, struct sync_how how) {
    struct group_assignment assignments[64];
    int32_t count = 0;
    const char *at = how.assign ? how.assign : "";
    while (pair_next(&at, &assignments[count].member, &assignments[count].blob))
        count++;
    *x = (struct synced){.s = {
                             .call.done = synced_done,
                             .group = group_or_g(how.group),
                             .member = text_or_empty(how.member),
                             .instance = text_or_null(how.instance),
                             .generation = how.generation,
                             .names_protocol = how.v5,
                             .protocol_type = v5_text(how.type),
                             .protocol_name = v5_text(how.protocol),
                             .assignments = assignments,
                             .assignments_count = count,
                         }};
    coordinator_sync(r->c, &x->s, r->now);
    memset(assignments, 0xee, sizeof assignments);
    return x->done ? x->s.call.outcome : WAITS;
}

/* --- the calls that are done at once ------------------------------------------------------------------------------------------- */

static int plain_done;

static void count_done(struct group_call *call) {
    (void)call;
    plain_done++;
}

enum group_outcome beat_who(struct rig *r, struct who who) {
    struct group_heartbeat h = {.call.done = count_done,
                                .group = group_or_g(who.group),
                                .member = text_or_empty(who.member),
                                .instance = text_or_null(who.instance),
                                .generation = who.generation};
    plain_done = 0;
    coordinator_heartbeat(r->c, &h, r->now);
    CHECK_EQ(plain_done, 1);
    CHECK_EQ(h.session_ms > 0, h.call.outcome == GROUP_OK || h.call.outcome == GROUP_REBALANCE_IN_PROGRESS);
    return h.call.outcome;
}

enum group_outcome leave_who(struct rig *r, struct who who) {
    struct group_leave l = {.call.done = count_done,
                            .group = group_or_g(who.group),
                            .member = text_or_empty(who.member),
                            .instance = text_or_null(who.instance)};
    plain_done = 0;
    coordinator_leave(r->c, &l, r->now);
    CHECK_EQ(plain_done, 1);
    return l.call.outcome;
}

enum group_outcome check_who(struct rig *r, struct who who) {
    struct group_check k = {.call.done = count_done,
                            .group = group_or_g(who.group),
                            .member = who.fetch ? text_or_null(who.member) : text_or_empty(who.member),
                            .instance = text_or_null(who.instance),
                            .generation = who.generation,
                            .fetch = who.fetch,
                            .knows_epochs = who.v9};
    plain_done = 0;
    coordinator_check(r->c, &k, r->now);
    CHECK_EQ(plain_done, 1);
    return k.call.outcome;
}

enum group_outcome deleted(struct rig *r, const char *group, bool has_offsets) {
    struct group_delete d = {.call.done = count_done, .group = str_of(group), .has_offsets = has_offsets};
    plain_done = 0;
    coordinator_delete(r->c, &d, r->now);
    CHECK_EQ(plain_done, 1);
    return d.call.outcome;
}

struct coordinator_counts counts(struct rig *r) {
    struct coordinator_counts out;
    coordinator_count(r->c, &out);
    return out;
}

/* --- looking ------------------------------------------------------------------------------------------------------------------- */

static char text[100000];

static void described_done(struct group_call *call) {
    struct group_describe *d = container_of(call, struct group_describe, call);
    text[0] = 0;
    if (call->outcome) {
        CHECK_EQ(call->outcome, GROUP_ID_NOT_FOUND);
        text_add(text, sizeof text, "%s", d->other_type ? "other" : "Dead");
        return;
    }
    text_add(text, sizeof text, "%s '%.*s' '%.*s' %d ", group_state_text(d->state), d->protocol_type.len,
             d->protocol_type.ptr, d->protocol.len, d->protocol.ptr, d->generation);
    struct group_member_view m;
    while (group_members_next(&d->members, &m))
        text_add(text, sizeof text, "%.*s@%.*s%.*s=%.*s>%.*s;", m.id.len, m.id.ptr, m.client_id.len,
                 m.client_id.ptr, m.client_host.len, m.client_host.ptr, m.metadata.len,
                 (const char *)m.metadata.ptr, m.assignment.len, (const char *)m.assignment.ptr);
}

const char *described(struct rig *r, const char *group, bool has_offsets) {
    struct group_describe d = {
        .call.done = described_done, .group = str_of(group), .has_offsets = has_offsets};
    coordinator_describe(r->c, &d, r->now);
    return text;
}

static void listed_done(struct group_call *call) {
    struct group_list *l = container_of(call, struct group_list, call);
    struct group_listed g;
    text[0] = 0;
    while (group_list_next(l, &g))
        text_add(text, sizeof text, "%.*s %s '%.*s' %s;", g.group.len, g.group.ptr, group_state_text(g.state),
                 g.protocol_type.len, g.protocol_type.ptr, group_type_text(g.type));
}

const char *listed(struct rig *r, const char *const *with_offsets) {
    struct str ids[16];
    int32_t count = 0;
    while (with_offsets && with_offsets[count]) {
        ids[count] = str_of(with_offsets[count]);
        count++;
    }
    struct group_list l = {.call.done = listed_done, .with_offsets = ids, .with_offsets_count = count};
    coordinator_list(r->c, &l, r->now);
    return text;
}

/* --- a group that stands ------------------------------------------------------------------------------------------------------- */

void stable_group(struct rig *r, struct joined *xs, int count) {
    char assign[4000] = "";
    for (int i = 0; i < count; i++) {
        char id[TEXT_SIZE];
        CHECK_EQ(JOIN(r, &xs[i], .v4 = true), GROUP_MEMBER_ID_REQUIRED);
        strcpy(id, xs[i].id);
        CHECK_EQ(JOIN(r, &xs[i], .v4 = true, .member = id), WAITS);
    }
    rig_wait(r, 3000);
    for (int i = 0; i < count; i++) {
        CHECK_EQ(xs[i].done, 1);
        CHECK_EQ(xs[i].j.generation, 1);
        text_add(assign, sizeof assign, "%s%s:a%d", i ? "," : "", xs[i].id, i);
    }
    struct synced s;
    for (int i = 0; i < count; i++) {
        if (strcmp(xs[i].id, xs[0].leader) == 0)
            CHECK_EQ(SYNC(r, &s, .member = xs[i].id, .generation = 1, .assign = assign), GROUP_OK);
    }
    for (int i = 0; i < count; i++)
        CHECK_EQ(SYNC(r, &s, .member = xs[i].id, .generation = 1), GROUP_OK);
}
