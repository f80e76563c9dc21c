/*
 * Random histories of a consumer group (KIP-848) in virtual time: clients as Kafka's Java client behave, with heartbeats and answers
 * that are late or lost, revocations that take their time, deaths, static members that come back, topics that grow and are made again,
 * patterns whose topics are known late, and restarts. After every step no two members own one partition, by their own word or the coordinator's, and group epochs only grow; when
 * the disturbances end the group is Stable and every partition is owned, by exactly one member that subscribes to it. Then nothing is left.
 *
 * The seed of a failure is printed; GROUP_SEED=n replays it alone, GROUP_HISTORIES=n runs so many.
 */
#include "group/rig_test.h"

#include "testing/test.h"

#include <stdlib.h>

#define HISTORIES  10000
#define CLIENTS    6
#define TOPICS     3
#define ALL_TOPICS 7 /* as bits */
#define PARTS_MAX  9
#define EVENTS_MAX 200

struct owns {
    bool part[TOPICS][PARTS_MAX];
};

enum event_kind { EVENT_WAKE, EVENT_REQUEST, EVENT_ANSWER, EVENT_REVOKED, EVENT_MISCHIEF, EVENT_LIST };

struct event {
    int64_t at_ms;
    uint64_t order;
    enum event_kind kind;
    int client, life;
    uint64_t serial;
};

/* A heartbeat on its way there, and its answer on its way back. A client has one at a time. */
struct beat {
    struct group_consumer_heartbeat h;
    uint64_t serial;
    int done;
    char member[32], instance[16];
    struct str topics[TOPICS];
    struct group_topic_parts owned[TOPICS];
    int32_t parts[TOPICS][PARTS_MAX];
    int news; /* the client's, if it said all; else -1 */
    enum group_outcome outcome;
    int32_t epoch;
    bool has_assignment;
    struct owns assignment;
    int32_t topic_versions[TOPICS];
};

struct client {
    int life, number; /* of its member id */
    char instance[16];
    bool up, leaves;
    int subscribes; /* bits: the topics that it names */
    int pattern;    /* and one of the patterns */
    enum { NO_TASTE, UNIFORM, RANGE } taste;
    int32_t rebalance_ms;
    int32_t epoch;
    bool must_say_all; /* an answer may be lost, or there is something new */
    int news;
    struct owns owns, wanted;
    int32_t topic_versions[TOPICS]; /* which one of a name it owns partitions of */
    int32_t wanted_versions[TOPICS];
    bool revoking;
    uint64_t wakes, revocations;
    struct beat beat;
};

static struct {
    struct rig rig;
    uint64_t seed, state, order, serial;
    struct client clients[CLIENTS];
    struct event events[EVENTS_MAX];
    int events_count;
    int32_t parts[TOPICS], versions[TOPICS];
    int listed;           /* bits: the topics that patterns are matched with */
    int64_t list_version; /* 0: not yet */
    int32_t epoch;
    bool calm;
    int64_t steps;
    /* as described */
    enum group_state group_state;
    bool member[CLIENTS];
    struct owns assigned[CLIENTS];
    int32_t assigned_versions[CLIENTS][TOPICS];
    int owners[TOPICS][PARTS_MAX];
} sim;

#define SIM(cond)                                                                                         \
    do {                                                                                                  \
        if (!(cond))                                                                                      \
            fail_msg("seed %" PRIu64 " (GROUP_SEED replays it): %s, line %d", sim.seed, #cond, __LINE__); \
    } while (0)

static const char *const topic_names[TOPICS] = {"t", "u", "tt"};
static const struct {
    const char *text;
    int topics; /* bits: those that it matches */
} patterns[] = {{"", 0}, {"t.*", 5}, {".*", ALL_TOPICS}, {"u|v", 2}};

static uint32_t dice(uint32_t sides) {
    sim.state ^= sim.state << 13;
    sim.state ^= sim.state >> 7;
    sim.state ^= sim.state << 17;
    return (uint32_t)(sim.state >> 33) % sides;
}

static bool chance(uint32_t percent) {
    return dice(100) < percent;
}

/* --- topics -------------------------------------------------------------------------------------------------------------------- */

static struct uuid topic_id(int topic, int32_t version) {
    struct uuid id = {{0}};
    id.b[0] = (uint8_t)(1 + topic);
    id.b[1] = (uint8_t)version;
    return id;
}

static bool find_topic(void *ctx, struct str name, struct group_topic *out) {
    (void)ctx;
    for (int i = 0; i < TOPICS; i++) {
        if (str_equal(name, str_of(topic_names[i])) && sim.parts[i] > 0) {
            *out = (struct group_topic){topic_id(i, sim.versions[i]), sim.parts[i]};
            return true;
        }
    }
    return false;
}

static int topics_there(void) {
    int there = 0;
    for (int i = 0; i < TOPICS; i++)
        there |= (sim.parts[i] > 0) << i;
    return there;
}

static enum group_pattern find_pattern(void *ctx, struct str pattern, struct group_matches *out) {
    static struct str names[TOPICS];
    (void)ctx;
    size_t which = 1;
    while (!str_equal(pattern, str_of(patterns[which].text)))
        which++;
    if (sim.list_version == 0)
        return GROUP_PATTERN_NOT_KNOWN_YET;
    if (!out)
        return GROUP_PATTERN_KNOWN;
    out->count = 0;
    for (int i = 0; i < TOPICS; i++) {
        if (patterns[which].topics & sim.listed & 1 << i)
            names[out->count++] = str_of(topic_names[i]);
    }
    out->names = names;
    out->version = sim.list_version;
    return GROUP_PATTERN_KNOWN;
}

static void list_topics(void) {
    sim.listed = topics_there();
    sim.list_version++;
    coordinator_topics_changed(sim.rig.c);
}

static int reads(const struct client *c) {
    return c->subscribes | patterns[c->pattern].topics;
}

/* --- events -------------------------------------------------------------------------------------------------------------------- */

static void event_add(int64_t in_ms, enum event_kind kind, const struct client *c, uint64_t serial) {
    SIM(sim.events_count < EVENTS_MAX);
    sim.events[sim.events_count++] = (struct event){.at_ms = sim.rig.now + in_ms,
                                                    .order = sim.order++,
                                                    .kind = kind,
                                                    .client = c ? (int)(c - sim.clients) : 0,
                                                    .life = c ? c->life : 0,
                                                    .serial = serial};
}

static int event_first(void) {
    int first = 0;
    for (int i = 1; i < sim.events_count; i++) {
        const struct event *a = &sim.events[i], *b = &sim.events[first];
        if (a->at_ms < b->at_ms || (a->at_ms == b->at_ms && a->order < b->order))
            first = i;
    }
    return first;
}

static int64_t latency(void) {
    return sim.calm || !chance(5) ? 1 + dice(30) : dice(6000);
}

static void wake(struct client *c, int64_t in_ms) {
    event_add(in_ms, EVENT_WAKE, c, ++c->wakes);
}

/* --- a client ------------------------------------------------------------------------------------------------------------------ */

static void drop_all(struct client *c) {
    memset(&c->owns, 0, sizeof c->owns);
    memset(&c->wanted, 0, sizeof c->wanted);
    c->revoking = false;
    c->revocations++;
}

/* Dead; another process with the same configuration comes later. */
static void die(struct client *c, int64_t back_in_ms) {
    c->life++;
    c->number++;
    c->up = false;
    c->leaves = false;
    c->epoch = 0;
    c->must_say_all = true;
    c->beat.serial = 0;
    drop_all(c);
    wake(c, back_in_ms);
}

static void rejoin(struct client *c, int64_t in_ms) {
    c->epoch = 0;
    drop_all(c);
    wake(c, in_ms);
}

static void beat_done(struct group_call *call) {
    struct beat *b = container_of(call, struct beat, h.call);
    SIM(++b->done == 1);
    b->outcome = call->outcome;
    b->epoch = b->h.member_epoch;
    b->has_assignment = b->h.has_assignment;
    memset(&b->assignment, 0, sizeof b->assignment);
    struct group_part p;
    while (group_parts_next(&b->h.assignment, &p)) {
        int topic = p.topic_id.b[0] - 1;
        b->assignment.part[topic][p.part] = true;
        b->topic_versions[topic] = p.topic_id.b[1];
    }
}

static void fill_owned(struct client *c) {
    struct beat *b = &c->beat;
    b->h.owned = b->owned;
    b->h.owned_count = 0;
    for (int i = 0; i < TOPICS && c->epoch > 0; i++) {
        struct group_topic_parts *o = &b->owned[b->h.owned_count];
        *o = (struct group_topic_parts){.topic_id = topic_id(i, c->topic_versions[i]), .parts = b->parts[i]};
        for (int32_t part = 0; part < PARTS_MAX; part++) {
            if (c->owns.part[i][part])
                b->parts[i][o->parts_count++] = part;
        }
        b->h.owned_count += o->parts_count > 0;
    }
}

static void fill_topics(struct client *c) {
    struct beat *b = &c->beat;
    b->h.topics = b->topics;
    b->h.topics_count = 0;
    b->h.regex = str_of(patterns[c->pattern].text);
    for (int i = 0; i < TOPICS; i++) {
        if (c->subscribes & 1 << i)
            b->topics[b->h.topics_count++] = str_of(topic_names[i]);
    }
}

static void send(struct client *c) {
    struct beat *b = &c->beat;
    memset(b, 0, sizeof *b);
    b->serial = ++sim.serial;
    snprintf(b->member, sizeof b->member, "m%d-%d", (int)(c - sim.clients), c->number);
    strcpy(b->instance, c->instance);
    bool all = c->epoch == 0 || c->must_say_all;
    b->h = (struct group_consumer_heartbeat){.call.done = beat_done,
                                             .group = STR("g"),
                                             .member = str_of(b->member),
                                             .instance = b->instance[0] ? str_of(b->instance) : STR_NULL,
                                             .rack = STR_NULL,
                                             .client_id = STR("c"),
                                             .host = STR("/h"),
                                             .epoch = c->epoch,
                                             .rebalance_ms = all ? c->rebalance_ms : -1,
                                             .topics_count = -1,
                                             .regex = STR_NULL,
                                             .assignor = STR_NULL,
                                             .owned_count = -1};
    b->news = all ? c->news : -1;
    if (c->leaves) { /* it stops reading first */
        b->h.epoch = c->instance[0] && chance(70) ? -2 : -1;
        drop_all(c);
    }
    if (all && c->taste != NO_TASTE)
        b->h.assignor = c->taste == RANGE ? STR("range") : STR("uniform");
    if (all || chance(5))
        fill_topics(c);
    if (all || chance(50))
        fill_owned(c);
    event_add(latency(), EVENT_REQUEST, c, b->serial);
}

static void deliver(struct client *c) {
    struct beat *b = &c->beat;
    if (!sim.calm && chance(3)) { /* lost, and noticed */
        c->must_say_all = true;
        b->serial = 0;
        wake(c, 3000);
        return;
    }
    coordinator_consumer_heartbeat(sim.rig.c, &b->h, sim.rig.now);
    if (!sim.calm && chance(3) && b->h.epoch >= 0) { /* sent twice */
        struct beat again = *b;
        again.done = 0;
        coordinator_consumer_heartbeat(sim.rig.c, &again.h, sim.rig.now);
    }
    if (!sim.calm && chance(3)) { /* the answer is lost */
        c->must_say_all = true;
        b->serial = 0;
        wake(c, 3000);
        return;
    }
    event_add(latency(), EVENT_ANSWER, c, b->serial);
}

static void settle_owns(struct client *c) {
    c->owns = c->wanted;
    memcpy(c->topic_versions, c->wanted_versions, sizeof c->topic_versions);
}

/* It stops reading what it lost, which takes a while, and then begins with what it gained. */
static void take_assignment(struct client *c, const struct beat *b) {
    bool loses = false;
    struct owns wanted = b->assignment;
    for (int i = 0; i < TOPICS; i++) {
        for (int part = 0; part < PARTS_MAX; part++) {
            bool other = c->topic_versions[i] != b->topic_versions[i];
            loses = loses || (c->owns.part[i][part] && (other || !wanted.part[i][part]));
        }
    }
    c->wanted = wanted;
    memcpy(c->wanted_versions, b->topic_versions, sizeof c->wanted_versions);
    c->revoking = loses;
    c->revocations++;
    if (loses)
        event_add(sim.calm ? 100 : chance(90) ? dice(4000) : dice(30000), EVENT_REVOKED, c, c->revocations);
    else
        settle_owns(c);
}

static void revoked(struct client *c) {
    c->revoking = false;
    /* what it lost is gone first: the next heartbeat says so; what it gained has nobody else by then */
    settle_owns(c);
    if (c->beat.serial == 0)
        wake(c, 1);
}

static void answer(struct client *c) {
    struct beat *b = &c->beat;
    b->serial = 0;
    if (c->leaves) {
        die(c, 500 + dice(sim.calm ? 1000 : 30000));
        return;
    }
    switch (b->outcome) {
    case GROUP_OK:
        c->epoch = b->epoch;
        c->must_say_all = c->must_say_all && b->news != c->news;
        if (b->has_assignment)
            take_assignment(c, b);
        wake(c, 500 + dice(4000));
        break;
    case GROUP_FENCED_EPOCH:
    case GROUP_UNKNOWN_MEMBER:
        rejoin(c, 1);
        break;
    case GROUP_FENCED_INSTANCE:
    case GROUP_UNRELEASED_INSTANCE:
        SIM(c->instance[0] != 0);
        die(c, 5000 + dice(5000));
        break;
    default:
        SIM(b->outcome == GROUP_NOT_COORDINATOR);
        wake(c, 100);
        break;
    }
}

/* --- the world ----------------------------------------------------------------------------------------------------------------- */

static void restart(void) {
    coordinator_shutdown(sim.rig.c, sim.rig.now);
    coordinator_free(sim.rig.c);
    rig_start(&sim.rig);
    sim.epoch = 0;
}

static void subscription_change(struct client *c) {
    c->pattern = chance(50) ? 0 : (int)dice(COUNT_OF(patterns));
    c->subscribes = c->pattern ? (int)dice(ALL_TOPICS + 1) : 1 + (int)dice(ALL_TOPICS);
}

static void mischief(void) {
    struct client *c = &sim.clients[dice(CLIENTS)];
    int topic = (int)dice(TOPICS);
    switch (dice(8)) {
    case 0:
        if (chance(30))
            restart();
        break;
    case 1: /* made again */
        sim.versions[topic]++;
        sim.parts[topic] = 1 + (int32_t)dice(PARTS_MAX);
        coordinator_topics_changed(sim.rig.c);
        event_add(dice(8000), EVENT_LIST, NULL, 0);
        break;
    case 2: /* it grows, or goes */
        sim.parts[topic] += sim.parts[topic] < PARTS_MAX;
        if (chance(10))
            sim.parts[topic] = 0;
        coordinator_topics_changed(sim.rig.c);
        event_add(dice(8000), EVENT_LIST, NULL, 0);
        break;
    case 3:
        subscription_change(c);
        c->must_say_all = true;
        c->news++;
        break;
    case 4:
    case 5:
        c->leaves = c->up && c->epoch > 0;
        break;
    default:
        die(c, 200 + dice(chance(50) ? 3000 : 60000));
        break;
    }
    event_add(500 + dice(9000), EVENT_MISCHIEF, NULL, 0);
}

/* --- what must hold ------------------------------------------------------------------------------------------------------------ */

static void see(struct group_call *call) {
    struct group_describe *d = container_of(call, struct group_describe, call);
    struct group_member_view m;
    sim.group_state = d->state;
    SIM(call->outcome || d->generation >= sim.epoch);
    sim.epoch = call->outcome ? 0 : d->generation;
    while (group_members_next(&d->members, &m)) {
        int client = m.id.ptr[1] - '0', number = 0; /* "m1-12" */
        for (int32_t i = 3; i < m.id.len; i++)
            number = number * 10 + (m.id.ptr[i] - '0');
        bool alive = number == sim.clients[client].number;
        sim.member[client] = sim.member[client] || alive;
        struct group_part p;
        while (group_parts_next(&m.assigned, &p)) {
            int topic = p.topic_id.b[0] - 1;
            bool newest = p.topic_id.b[1] == sim.versions[topic];
            sim.owners[topic][p.part] += newest;
            SIM(!newest || sim.owners[topic][p.part] == 1);
            if (alive)
                sim.assigned[client].part[topic][p.part] = true;
        }
    }
}

static void look(void) {
    memset(sim.member, 0, sizeof sim.member);
    memset(sim.assigned, 0, sizeof sim.assigned);
    memset(sim.owners, 0, sizeof sim.owners);
    struct group_describe d = {.call.done = see, .group = STR("g"), .type = GROUP_CONSUMER};
    coordinator_describe(sim.rig.c, &d, sim.rig.now);
}

static void check_readers(void) {
    for (int topic = 0; topic < TOPICS; topic++) {
        for (int part = 0; part < PARTS_MAX; part++) {
            int readers = 0;
            for (int i = 0; i < CLIENTS; i++) {
                const struct client *c = &sim.clients[i];
                readers += c->up && sim.member[i] && c->epoch > 0 && c->owns.part[topic][part] &&
                           c->topic_versions[topic] == sim.versions[topic];
            }
            SIM(readers <= 1);
        }
    }
}

static void check_world(void) {
    look();
    check_readers();
}

static bool is_settled(void) {
    if (sim.group_state != GROUP_STATE_STABLE || counts(&sim.rig).members != CLIENTS)
        return false;
    for (int topic = 0; topic < TOPICS; topic++) {
        int subscribers = 0;
        for (int i = 0; i < CLIENTS; i++)
            subscribers += reads(&sim.clients[i]) >> topic & 1;
        for (int part = 0; part < PARTS_MAX; part++) {
            if (sim.owners[topic][part] != (subscribers > 0 && part < sim.parts[topic]))
                return false;
        }
    }
    for (int i = 0; i < CLIENTS; i++) {
        const struct client *c = &sim.clients[i];
        if (!sim.member[i] || c->epoch == 0 || c->must_say_all ||
            memcmp(&c->owns, &sim.assigned[i], sizeof c->owns) != 0)
            return false;
        for (int topic = 0; topic < TOPICS; topic++) {
            for (int part = 0; part < PARTS_MAX; part++)
                SIM(!c->owns.part[topic][part] || (reads(c) >> topic & 1));
        }
    }
    return true;
}

/* --- a history ----------------------------------------------------------------------------------------------------------------- */

static void step(void) {
    while (coordinator_due_ms(sim.rig.c) <= sim.events[event_first()].at_ms) {
        int64_t due = coordinator_due_ms(sim.rig.c);
        sim.rig.now = due > sim.rig.now ? due : sim.rig.now;
        SIM(coordinator_tick(sim.rig.c, sim.rig.now) > sim.rig.now);
        check_world();
    }
    int first = event_first();
    struct event e = sim.events[first];
    sim.events[first] = sim.events[--sim.events_count];
    sim.rig.now = e.at_ms;
    sim.steps++;
    struct client *c = &sim.clients[e.client];
    if (e.kind == EVENT_MISCHIEF) {
        if (!sim.calm)
            mischief();
    } else if (e.kind == EVENT_LIST) {
        list_topics();
    } else if (c->life == e.life) {
        if (e.kind == EVENT_WAKE && e.serial == c->wakes && c->beat.serial == 0) {
            c->up = true;
            send(c);
        } else if (e.kind == EVENT_REQUEST && e.serial == c->beat.serial) {
            deliver(c);
        } else if (e.kind == EVENT_ANSWER && e.serial == c->beat.serial) {
            answer(c);
        } else if (e.kind == EVENT_REVOKED && e.serial == c->revocations) {
            revoked(c);
        }
    }
    if (e.kind == EVENT_REQUEST || e.kind == EVENT_MISCHIEF)
        check_world();
    else if (e.kind != EVENT_WAKE)
        check_readers();
}

static void begin(uint64_t seed) {
    memset(&sim, 0, sizeof sim);
    sim.seed = seed;
    sim.state = seed * 0x9e3779b97f4a7c15u + 1;
    rig_settings(&sim.rig);
    sim.rig.settings.topic_find = find_topic;
    sim.rig.settings.pattern_find = find_pattern;
    sim.rig.settings.consumer_session_ms = 15000;
    sim.rig.settings.consumer_refresh_ms = 20000;
    rig_start(&sim.rig);
    for (int i = 0; i < TOPICS; i++)
        sim.parts[i] = chance(30) ? 0 : 1 + (int32_t)dice(PARTS_MAX);
    int taste = (int)dice(4);
    bool alike = chance(50);
    for (int i = 0; i < CLIENTS; i++) {
        struct client *c = &sim.clients[i];
        subscription_change(c);
        if (alike) {
            c->subscribes = sim.clients[0].subscribes;
            c->pattern = sim.clients[0].pattern;
        }
        c->taste = taste == 3 ? dice(3) : (unsigned)taste;
        c->rebalance_ms = 3000 + (int32_t)dice(10000);
        c->must_say_all = true;
        if (chance(35))
            snprintf(c->instance, sizeof c->instance, "i%d", i);
        wake(c, dice(4000));
    }
    event_add(1000, EVENT_MISCHIEF, NULL, 0);
    event_add(dice(10000), EVENT_LIST, NULL, 0);
}

static int64_t history(uint64_t seed) {
    begin(seed);
    int64_t disturbed_ms = sim.rig.now + 10000 + dice(50000);
    while (sim.rig.now < disturbed_ms)
        step();
    sim.calm = true;
    list_topics();
    int64_t calm_ms = sim.rig.now + 150000;
    do {
        SIM(sim.rig.now < calm_ms);
        step();
        look();
    } while (!is_settled());
    coordinator_shutdown(sim.rig.c, sim.rig.now);
    SIM(counts(&sim.rig).bytes == 0);
    coordinator_free(sim.rig.c);
    return sim.steps;
}

TEST(random_histories_of_consumer_groups_keep_their_promises) {
    uint64_t first = test_number("GROUP_SEED", 1);
    uint64_t many = getenv("GROUP_SEED") ? 1 : test_number("GROUP_HISTORIES", HISTORIES);
    int64_t steps = 0;
    for (uint64_t i = 0; i < many; i++)
        steps += history(first + i);
    printf("%" PRIu64 " histories, %" PRId64 " steps\n", many, steps);
}
