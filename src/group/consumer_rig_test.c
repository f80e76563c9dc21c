#include "group/consumer_rig_test.h"

#include "testing/test.h"

#include <regex.h>
#include <stdlib.h>

#define TOPICS_MAX 32

static struct {
    char name[32];
    struct group_topic topic;
} topics[TOPICS_MAX];
static uint8_t ids_given;
static struct {
    bool known, full;
    int64_t version;
    struct str names[TOPICS_MAX];
    int resolved;
} patterns;

static struct group_topic *topic_named(struct str name, bool make) {
    for (int i = 0; i < TOPICS_MAX; i++) {
        if (topics[i].name[0] && str_equal(str_of(topics[i].name), name))
            return &topics[i].topic;
    }
    for (int i = 0; make && i < TOPICS_MAX; i++) {
        if (!topics[i].name[0]) {
            memcpy(topics[i].name, name.ptr, (size_t)name.len);
            return &topics[i].topic;
        }
    }
    return NULL;
}

static bool find(void *ctx, struct str name, struct group_topic *out) {
    (void)ctx;
    const struct group_topic *t = topic_named(name, false);
    if (!t || t->parts_count == 0)
        return false;
    *out = *t;
    return true;
}

static bool matches(const regex_t *re, const char *name) {
    regmatch_t all;
    return regexec(re, name, 1, &all, 0) == 0 && all.rm_so == 0 && name[all.rm_eo] == 0;
}

static enum group_pattern pattern_find(void *ctx, struct str pattern, struct group_matches *out) {
    (void)ctx;
    char copy[TEXT_SIZE];
    regex_t re;
    snprintf(copy, sizeof copy, "%.*s", pattern.len, pattern.ptr);
    if (regcomp(&re, copy, REG_EXTENDED))
        return GROUP_PATTERN_INVALID;
    out->names = patterns.names;
    out->count = 0;
    for (int i = TOPICS_MAX; i-- > 0;) { /* in no order */
        if (topics[i].name[0] && topics[i].topic.parts_count > 0 && matches(&re, topics[i].name))
            patterns.names[out->count++] = str_of(topics[i].name);
    }
    regfree(&re);
    patterns.resolved += out->version != patterns.version;
    out->version = patterns.version;
    return patterns.full    ? GROUP_PATTERN_NOT_AVAILABLE
           : patterns.known ? GROUP_PATTERN_KNOWN
                            : GROUP_PATTERN_NOT_KNOWN_YET;
}

void topics_clear(struct rig *r) {
    memset(topics, 0, sizeof topics);
    memset(&patterns, 0, sizeof patterns);
    patterns.known = true;
    patterns.version = 1;
    r->settings.topic_find = find;
    r->settings.pattern_find = pattern_find;
}

void patterns_set(bool known, bool full) {
    patterns.known = known;
    patterns.full = full;
}

int patterns_resolved(void) {
    return patterns.resolved;
}

void topic_recreate(const char *name) {
    struct group_topic *t = topic_named(str_of(name), true);
    memset(&t->id, 0, sizeof t->id);
    t->id.b[15] = (uint8_t)name[0];
    t->id.b[0] = ++ids_given;
    patterns.version++;
}

void topic_set(const char *name, int32_t parts) {
    struct group_topic *t = topic_named(str_of(name), false);
    if (!t || t->parts_count == 0) {
        topic_recreate(name);
        t = topic_named(str_of(name), false);
    }
    patterns.version += (t->parts_count > 0) != (parts > 0);
    t->parts_count = parts;
}

/* --- heartbeats ---------------------------------------------------------------------------------------------------------------- */

static void parts_add(char *out, size_t size, struct group_parts parts) {
    struct group_part p;
    struct uuid last = {{0}};
    bool any = false;
    while (group_parts_next(&parts, &p)) {
        if (any && uuid_equal(&last, &p.topic_id))
            text_add(out, size, ",%d", p.part);
        else
            text_add(out, size, "%s%.*s:%d", any ? ";" : "", p.topic.len, p.topic.ptr, p.part);
        last = p.topic_id;
        any = true;
    }
    text_add(out, size, "%s", any ? ";" : "");
}

static void beaten_done(struct group_call *call) {
    struct beaten *x = container_of(call, struct beaten, h.call);
    x->done++;
    snprintf(x->id, sizeof x->id, "%.*s", x->h.member_id.len, x->h.member_id.ptr);
    strcpy(x->assignment, x->h.has_assignment ? "" : "-");
    parts_add(x->assignment, sizeof x->assignment, x->h.assignment);
}

/* "t:0,1;u:2;" */
static int32_t owned_of(const char *text, struct group_topic_parts *out, int32_t *parts) {
    int32_t count = 0;
    while (*text) {
        const char *colon = strchr(text, ':');
        struct group_topic *t = topic_named((struct str){text, (int32_t)(colon - text)}, false);
        out[count] = (struct group_topic_parts){.parts = parts};
        if (t)
            out[count].topic_id = t->id;
        char *at = (char *)colon;
        while (*at != ';') {
            *parts++ = (int32_t)strtol(at + 1, &at, 10);
            out[count].parts_count++;
        }
        count++;
        text = at + 1;
    }
    return count;
}

static int32_t names_of(const char *text, struct str *out) {
    int32_t count = 0;
    while (*text) {
        const char *comma = strchr(text, ',');
        int32_t len = comma ? (int32_t)(comma - text) : (int32_t)strlen(text);
        out[count++] = (struct str){text, len};
        text += len + (comma != NULL);
    }
    return count;
}

enum group_outcome consumer_beat(struct rig *r, struct beaten *x, struct beat_how how) {
    static struct group_topic_parts owned[64];
    static int32_t parts[4000];
    static struct str names[64];
    bool joins = how.epoch == 0;
    const char *owns = how.owned || !joins ? how.owned : "";
    char member[TEXT_SIZE];
    snprintf(member, sizeof member, "%s", how.member ? how.member : ""); /* it may be x->id */
    *x = (struct beaten){.h = {
                             .call.done = beaten_done,
                             .group = how.group ? str_of(how.group) : STR("g"),
                             .member = str_of(member),
                             .instance = text_or_null(how.instance),
                             .rack = text_or_null(how.rack),
                             .client_id = STR("c"),
                             .host = STR("/h"),
                             .epoch = how.epoch,
                             .rebalance_ms = how.rebalance_ms ? how.rebalance_ms
                                             : joins          ? 60000
                                                              : -1,
                             .topics = names,
                             .topics_count = how.topics ? names_of(how.topics, names) : -1,
                             .regex = text_or_null(how.regex),
                             .assignor = text_or_null(how.assignor),
                             .owned = owned,
                             .owned_count = owns ? owned_of(owns, owned, parts) : -1,
                         }};
    coordinator_consumer_heartbeat(r->c, &x->h, r->now);
    CHECK_EQ(x->done, 1);
    return x->h.call.outcome;
}

/* --- looking ------------------------------------------------------------------------------------------------------------------- */

static char text[100000];

static void described_done(struct group_call *call) {
    struct group_describe *d = container_of(call, struct group_describe, call);
    if (call->outcome) {
        strcpy(text, d->other_type ? "other" : "Dead");
        return;
    }
    CHECK_TEXT(d->protocol_type.ptr, "consumer");
    text[0] = 0;
    text_add(text, sizeof text, "%s %.*s %d %d", group_state_text(d->state), d->protocol.len, d->protocol.ptr,
             d->generation, d->target_epoch);
    struct group_member_view m;
    while (group_members_next(&d->members, &m)) {
        text_add(text, sizeof text, " %.*s:%d ", m.id.len, m.id.ptr, m.epoch);
        if (m.pattern.len > 0)
            text_add(text, sizeof text, "%.*s ", m.pattern.len, m.pattern.ptr);
        parts_add(text, sizeof text, m.assigned);
        text_add(text, sizeof text, ">");
        parts_add(text, sizeof text, m.target);
    }
}

const char *consumer_described(struct rig *r, const char *group) {
    struct group_describe d = {.call.done = described_done, .group = str_of(group), .type = GROUP_CONSUMER};
    coordinator_describe(r->c, &d, r->now);
    return text;
}
