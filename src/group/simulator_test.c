/*
 * Random histories of classic groups in virtual time: clients as Kafka's behave join, sync, send heartbeats, commit, leave, die, come back;
 * requests and answers are late, doubled and lost; the coordinator restarts. After every step:
 *   - every call is done exactly once, and none waits longer than the largest rebalance timeout;
 *   - a Stable group has given every partition to exactly one member, and only its generation is served;
 *   - generations only grow, limits hold;
 * and when the disturbances end all living clients are members of Stable groups, and nobody else is. Then nothing is left.
 *
 * The seed of a failure is printed; GROUP_SEED=n in the environment replays it alone, GROUP_HISTORIES=n runs so many.
 */
#include "group/rig_test.h"

#include "testing/test.h"

#include <stdlib.h>

#include "base/mem.h"

#define HISTORIES     10000
#define GROUPS        2
#define CLIENTS       7
#define PARTS         12
#define ROSTER_MAX    40 /* the dead count until their sessions end */
#define REBALANCE_MAX 20000
#define SESSION_MAX   12000
#define EVENTS_MAX    400
#define ID_SIZE       80

enum kind { OP_JOIN, OP_SYNC, OP_BEAT, OP_LEAVE, OP_CHECK };
enum phase { OUT, JOINING, SYNCING, STABLE, GONE };

/* A request under way, and its answer. */
struct op {
    union {
        struct group_call call; /* first in all of them */
        struct group_join join;
        struct group_sync sync;
        struct group_heartbeat beat;
        struct group_leave leave;
        struct group_check check;
    };
    enum kind kind;
    int client, life, done;
    uint64_t serial;
    bool given, lost;
    int64_t given_ms;
    struct link all;
    /* what it points to */
    char group[8], member[ID_SIZE], instance[8];
    struct group_protocol protocols[3];
    struct group_assignment assignments[ROSTER_MAX];
    char ids[ROSTER_MAX][ID_SIZE];
    uint8_t blobs[ROSTER_MAX][PARTS];
    /* the answer */
    enum group_outcome outcome;
    char new_id[ID_SIZE];
    int32_t generation;
    bool leads, skip;
    int roster_count;
    char roster[ROSTER_MAX][ID_SIZE];
};

enum event_kind { EVENT_REQUEST, EVENT_ANSWER, EVENT_LOST, EVENT_WAKE, EVENT_MISCHIEF };

struct event {
    int64_t at_ms;
    uint64_t order;
    enum event_kind kind;
    struct op *op;
    int client, life;
    uint64_t wake;
    uint64_t serial; /* of op: its memory may be another one's by then */
};

struct client {
    int life; /* goes up with each death: answers to an earlier life are nobody's */
    int group;
    char instance[8]; /* "": not static */
    bool v4, v9;
    int32_t session_ms, rebalance_ms;
    int taste; /* order of protocols */
    enum phase phase;
    char member[ID_SIZE];
    int32_t generation;
    uint64_t waits_for; /* serial of a join or sync; 0: none */
    uint64_t wakes;     /* only the last wake counts */
};

static struct {
    struct rig rig;
    uint64_t seed, state, serial, order;
    struct client clients[CLIENTS];
    struct event events[EVENTS_MAX];
    int events_count;
    struct link ops;
    int32_t generations[GROUPS];
    enum group_state states[GROUPS];
    bool calm;  /* the disturbances are over */
    bool roomy; /* all clients fit in */
    int64_t steps;
    struct {
        enum group_state state;
        int32_t generation;
        int members, owners[PARTS];
    } seen;
} sim;

#define SIM(cond)                                                                                         \
    do {                                                                                                  \
        if (!(cond))                                                                                      \
            fail_msg("seed %" PRIu64 " (GROUP_SEED replays it): %s, line %d", sim.seed, #cond, __LINE__); \
    } while (0)

static uint32_t dice(uint32_t sides) {
    sim.state ^= sim.state << 13;
    sim.state ^= sim.state >> 7;
    sim.state ^= sim.state << 17;
    return (uint32_t)(sim.state >> 33) % sides;
}

static bool chance(uint32_t percent) {
    return dice(100) < percent;
}

/* --- events -------------------------------------------------------------------------------------------------------------------- */

static void event_add(int64_t in_ms, struct event e) {
    SIM(sim.events_count < EVENTS_MAX);
    e.at_ms = sim.rig.now + in_ms;
    e.order = sim.order++;
    sim.events[sim.events_count++] = e;
}

static bool event_before(const struct event *a, const struct event *b) {
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static int event_first(void) {
    int first = 0;
    for (int i = 1; i < sim.events_count; i++)
        first = event_before(&sim.events[i], &sim.events[first]) ? i : first;
    return first;
}

static struct event event_take(void) {
    int first = event_first();
    struct event e = sim.events[first];
    sim.events[first] = sim.events[--sim.events_count];
    return e;
}

static int64_t latency(void) {
    return sim.calm || !chance(5) ? 1 + dice(30) : dice(8000);
}

static void wake(struct client *c, int64_t in_ms) {
    event_add(in_ms,
              (struct event){
                  .kind = EVENT_WAKE, .client = (int)(c - sim.clients), .life = c->life, .wake = ++c->wakes});
}

/* --- requests ------------------------------------------------------------------------------------------------------------------ */

static void text_of(char *out, struct str s) {
    SIM(s.len < ID_SIZE);
    memcpy(out, s.len > 0 ? s.ptr : "", s.len > 0 ? (size_t)s.len : 0);
    out[s.len > 0 ? s.len : 0] = 0;
}

static void op_done(struct group_call *call) {
    struct op *op = container_of(call, struct op, call);
    SIM(++op->done == 1);
    op->outcome = call->outcome;
    if (op->kind == OP_JOIN) {
        struct group_member_view m;
        text_of(op->new_id, op->join.member_id);
        op->generation = op->join.generation;
        op->leads = op->outcome == GROUP_OK && str_equal(op->join.leader, op->join.member_id);
        op->skip = op->join.skip_assignment;
        SIM(op->join.members.count <= ROSTER_MAX);
        while (group_members_next(&op->join.members, &m))
            text_of(op->roster[op->roster_count++], m.id);
    }
    if (!op->lost)
        event_add(latency(),
                  (struct event){.kind = EVENT_ANSWER, .op = op, .client = op->client, .life = op->life});
}

static struct op *op_new(const struct client *c, enum kind kind) {
    struct op *op = mem_take_zeroed(1, sizeof *op);
    SIM(op != NULL);
    op->kind = kind;
    op->client = (int)(c - sim.clients);
    op->life = c->life;
    op->serial = ++sim.serial;
    op->call.done = op_done;
    snprintf(op->group, sizeof op->group, "g%d", c->group);
    strcpy(op->member, c->member);
    strcpy(op->instance, c->instance);
    list_push_tail(&sim.ops, &op->all);
    return op;
}

static struct str instance_of(const struct op *op) {
    return op->instance[0] ? str_of(op->instance) : STR_NULL;
}

static void send(struct op *op) {
    event_add(latency(),
              (struct event){.kind = EVENT_REQUEST, .op = op, .client = op->client, .life = op->life});
}

static void fill_join(struct op *op, const struct client *c) {
    static const char *const tastes[3][3] = {{"a", "b", "x"}, {"b", "a", "y"}, {"a", "b", "z"}};
    for (int i = 0; i < 3; i++)
        op->protocols[i] =
            (struct group_protocol){str_of(tastes[c->taste][i]), {(const uint8_t *)"meta", 1 + c->taste}};
    struct group_call call = op->call;
    op->join = (struct group_join){.call = call,
                                   .group = str_of(op->group),
                                   .member = str_of(op->member),
                                   .instance = instance_of(op),
                                   .client_id = STR("c"),
                                   .host = STR("/h"),
                                   .session_ms = c->session_ms,
                                   .rebalance_ms = c->rebalance_ms,
                                   .protocol_type = STR("consumer"),
                                   .protocols = op->protocols,
                                   .protocols_count = 3,
                                   .id_first = c->v4,
                                   .can_skip_assignment = c->v9};
}

static void go_join(struct client *c) {
    c->phase = JOINING;
    for (int copies = !sim.calm && chance(4) ? 2 : 1; copies > 0; copies--) {
        struct op *op = op_new(c, OP_JOIN);
        fill_join(op, c);
        c->waits_for = op->serial;
        send(op);
    }
    wake(c, REBALANCE_MAX + 5000); /* the request's own timeout */
}

/* The model assignor: partition i goes to the (i mod n)th of the roster. */
static void fill_assignments(struct op *op, const struct op *joined) {
    for (int i = 0; i < joined->roster_count; i++) {
        int32_t len = 0;
        for (int part = 0; part < PARTS; part++) {
            if (part % joined->roster_count == i)
                op->blobs[i][len++] = (uint8_t)part;
        }
        strcpy(op->ids[i], joined->roster[i]);
        op->assignments[i] = (struct group_assignment){str_of(op->ids[i]), {op->blobs[i], len}};
    }
    op->sync.assignments = op->assignments;
    op->sync.assignments_count = joined->roster_count;
}

static void go_sync(struct client *c, const struct op *joined) {
    if (!sim.calm && chance(2)) { /* a client that sends heartbeats and never syncs */
        c->phase = STABLE;
        wake(c, 1000);
        return;
    }
    c->phase = SYNCING;
    for (int copies = !sim.calm && chance(4) ? 2 : 1; copies > 0; copies--) {
        struct op *op = op_new(c, OP_SYNC);
        op->sync.group = str_of(op->group);
        op->sync.member = str_of(op->member);
        op->sync.instance = instance_of(op);
        op->sync.generation = c->generation;
        if (joined->leads && !joined->skip)
            fill_assignments(op, joined);
        c->waits_for = op->serial;
        send(op);
    }
    wake(c, REBALANCE_MAX + 5000);
}

static void go_beat(const struct client *c, enum kind kind) {
    struct op *op = op_new(c, kind);
    if (kind == OP_BEAT) {
        op->beat.group = str_of(op->group);
        op->beat.member = str_of(op->member);
        op->beat.instance = instance_of(op);
        op->beat.generation = c->generation;
    } else if (kind == OP_CHECK) {
        op->check.group = str_of(op->group);
        op->check.member = str_of(op->member);
        op->check.instance = instance_of(op);
        op->check.generation = c->generation;
    } else {
        op->leave.group = str_of(op->group);
        op->leave.member = str_of(op->member);
        op->leave.instance = STR_NULL;
    }
    send(op);
}

/* --- what clients do with answers ---------------------------------------------------------------------------------------------- */

static void die(struct client *c, int64_t back_in_ms) {
    c->life++;
    c->phase = GONE;
    c->member[0] = 0;
    c->generation = -1;
    c->waits_for = 0;
    wake(c, back_in_ms);
}

/* A code that any request may come back with. True: it was one. */
static bool setback(struct client *c, enum group_outcome outcome) {
    switch (outcome) {
    case GROUP_OK:
        return false;
    case GROUP_FENCED_INSTANCE:
        SIM(c->instance[0] != 0);
        die(c, 30000); /* fatal to a client; somebody else has its instance */
        return true;
    case GROUP_UNKNOWN_MEMBER:
    case GROUP_ILLEGAL_GENERATION:
        c->member[0] = 0;
        c->generation = -1;
        go_join(c);
        return true;
    case GROUP_REBALANCE_IN_PROGRESS:
        go_join(c);
        return true;
    case GROUP_NOT_AVAILABLE:
    case GROUP_NOT_COORDINATOR:
    case GROUP_MAX_SIZE_REACHED:
        c->phase = OUT;
        wake(c, 1000);
        return true;
    default:
        SIM(outcome == GROUP_MEMBER_ID_REQUIRED);
        return false;
    }
}

static void answer_join(struct client *c, const struct op *op) {
    if (op->serial != c->waits_for || c->phase != JOINING)
        return;
    c->waits_for = 0;
    if (setback(c, op->outcome))
        return;
    strcpy(c->member, op->new_id);
    if (op->outcome == GROUP_MEMBER_ID_REQUIRED) {
        SIM(c->v4 && !c->instance[0]);
        go_join(c);
        return;
    }
    SIM(op->generation > 0);
    c->generation = op->generation;
    go_sync(c, op);
}

static void answer_sync(struct client *c, const struct op *op) {
    if (op->serial != c->waits_for || c->phase != SYNCING)
        return;
    c->waits_for = 0;
    if (setback(c, op->outcome))
        return;
    c->phase = STABLE;
    wake(c, 1000);
}

static void answer_beat(struct client *c, const struct op *op) {
    bool current = c->phase == STABLE && (op->kind == OP_BEAT || op->kind == OP_CHECK) &&
                   strcmp(op->member, c->member) == 0;
    if (current && op->outcome != GROUP_OK && c->waits_for == 0)
        setback(c, op->outcome);
}

static void answer(struct op *op) {
    struct client *c = &sim.clients[op->client];
    if (c->life != op->life)
        return;
    if (op->kind == OP_JOIN)
        answer_join(c, op);
    else if (op->kind == OP_SYNC)
        answer_sync(c, op);
    else
        answer_beat(c, op);
}

/* --- the world ----------------------------------------------------------------------------------------------------------------- */

static void op_free(struct op *op) {
    list_remove(&op->all);
    mem_free(op);
}

/* The request reaches the coordinator. */
static void give(struct op *op) {
    op->given = true;
    op->given_ms = sim.rig.now;
    struct coordinator *co = sim.rig.c;
    switch (op->kind) {
    case OP_JOIN:
        coordinator_join(co, &op->join, sim.rig.now);
        break;
    case OP_SYNC:
        coordinator_sync(co, &op->sync, sim.rig.now);
        break;
    case OP_BEAT:
        coordinator_heartbeat(co, &op->beat, sim.rig.now);
        break;
    case OP_LEAVE:
        coordinator_leave(co, &op->leave, sim.rig.now);
        break;
    default:
        coordinator_check(co, &op->check, sim.rig.now);
        break;
    }
    if (!op->done && !sim.calm && chance(3)) /* its connection will break */
        event_add(dice(5000), (struct event){.kind = EVENT_LOST, .op = op, .serial = op->serial});
}

static void restart(void) {
    coordinator_shutdown(sim.rig.c, sim.rig.now);
    coordinator_free(sim.rig.c);
    rig_start(&sim.rig);
    memset(sim.generations, 0, sizeof sim.generations);
    memset(sim.states, 0, sizeof sim.states);
}

static void awake(struct client *c) {
    if (c->phase == GONE || c->phase == OUT) {
        go_join(c);
    } else if (c->waits_for) { /* the request's timeout: perhaps an answer was lost */
        bool found = false;
        for (struct link *l = sim.ops.next; l != &sim.ops; l = l->next)
            found = found || container_of(l, struct op, all)->serial == c->waits_for;
        if (found)
            wake(c, 5000);
        else
            go_join(c);
    } else if (c->phase == STABLE) {
        if (!sim.calm && chance(2)) {
            go_beat(c, OP_LEAVE);
            die(c, 500 + dice(20000));
            return;
        }
        if (!sim.calm && chance(3)) { /* another subscription, or a topic has grown */
            c->taste = (int)dice(3);
            go_join(c);
            return;
        }
        go_beat(c, chance(20) ? OP_CHECK : OP_BEAT);
        wake(c, 1500 + dice(2500));
    }
}

static void mischief(void) {
    struct client *c = &sim.clients[dice(CLIENTS)];
    if (chance(6)) {
        restart();
    } else if (chance(50)) {
        die(c, chance(50) ? dice(3000) : dice(40000)); /* without a word */
    } else {                                           /* a message from the past */
        struct op *op = op_new(c, chance(50) ? OP_BEAT : OP_CHECK);
        op->beat = (struct group_heartbeat){
            .call = op->call, .group = str_of(op->group), .member = str_of(op->member), .instance = STR_NULL};
        if (op->kind == OP_CHECK)
            op->check = (struct group_check){.call = op->call,
                                             .group = str_of(op->group),
                                             .member = str_of(op->member),
                                             .instance = STR_NULL,
                                             .generation = c->generation - 1};
        op->life = -1;
        send(op);
    }
    if (!sim.calm)
        event_add(500 + dice(8000), (struct event){.kind = EVENT_MISCHIEF});
}

/* --- what must hold ------------------------------------------------------------------------------------------------------------ */

static void see(struct group_call *call) {
    struct group_describe *d = container_of(call, struct group_describe, call);
    struct group_member_view m;
    memset(&sim.seen, 0, sizeof sim.seen);
    sim.seen.state = d->state;
    sim.seen.generation = d->generation;
    while (group_members_next(&d->members, &m)) {
        sim.seen.members++;
        for (int32_t i = 0; i < m.assignment.len; i++)
            sim.seen.owners[m.assignment.ptr[i]]++;
    }
    SIM(sim.seen.members == d->members.count);
}

static void look_at(int group) {
    char id[8];
    snprintf(id, sizeof id, "g%d", group);
    struct group_describe d = {.call.done = see, .group = str_of(id)};
    coordinator_describe(sim.rig.c, &d, sim.rig.now);
}

static void check_world(void) {
    struct coordinator_counts n = counts(&sim.rig);
    SIM(n.members + n.pending <= sim.rig.settings.members_max);
    for (int i = 0; i < GROUPS; i++) {
        look_at(i);
        SIM(sim.seen.members <= sim.rig.settings.members_per_group_max);
        SIM(sim.seen.state == GROUP_STATE_DEAD || sim.seen.generation >= sim.generations[i]);
        /* what was collected anew is a new generation */
        SIM(sim.seen.state != GROUP_STATE_COMPLETING_REBALANCE || sim.states[i] == sim.seen.state ||
            sim.seen.generation > sim.generations[i]);
        sim.generations[i] = sim.seen.state == GROUP_STATE_DEAD ? 0 : sim.seen.generation;
        sim.states[i] = sim.seen.state;
        for (int part = 0; part < PARTS && sim.seen.state == GROUP_STATE_STABLE; part++)
            SIM(sim.seen.owners[part] == 1);
    }
    int32_t waiting = 0;
    for (struct link *l = sim.ops.next; l != &sim.ops; l = l->next) {
        struct op *op = container_of(l, struct op, all);
        SIM(!op->given || op->done || sim.rig.now <= op->given_ms + REBALANCE_MAX);
        waiting += op->given && !op->done;
    }
    SIM(waiting == n.waiting);
}

/* What was let through was of the generation that is served. */
static void check_answer(const struct op *op) {
    if (op->outcome != GROUP_OK || (op->kind != OP_BEAT && op->kind != OP_CHECK))
        return;
    look_at(op->group[1] - '0');
    int32_t generation = op->kind == OP_BEAT ? op->beat.generation : op->check.generation;
    SIM(generation < 0 || generation == sim.seen.generation);
    SIM(sim.seen.state == GROUP_STATE_STABLE ||
        sim.seen.state ==
            (op->kind == OP_BEAT ? GROUP_STATE_COMPLETING_REBALANCE : GROUP_STATE_PREPARING_REBALANCE) ||
        generation < 0);
}

/* --- a history ----------------------------------------------------------------------------------------------------------------- */

/* The coordinator's own time comes before the next event's; what it does then may bring earlier events. */
static void tick_until_next(void) {
    while (coordinator_due_ms(sim.rig.c) <= sim.events[event_first()].at_ms) {
        int64_t due = coordinator_due_ms(sim.rig.c);
        sim.rig.now = due > sim.rig.now ? due : sim.rig.now;
        SIM(coordinator_tick(sim.rig.c, sim.rig.now) > sim.rig.now);
        check_world();
    }
}

static void step(void) {
    tick_until_next();
    struct event e = event_take();
    sim.rig.now = e.at_ms;
    sim.steps++;
    if (e.kind == EVENT_REQUEST) {
        give(e.op);
        if (e.op->done)
            check_answer(e.op);
    } else if (e.kind == EVENT_ANSWER) {
        bool lost = !sim.calm && chance(3);
        if (!lost)
            answer(e.op);
        op_free(e.op);
    } else if (e.kind == EVENT_LOST) {
        bool there = false; /* it may be answered by now */
        for (struct link *l = sim.ops.next; l != &sim.ops && !there; l = l->next)
            there = container_of(l, struct op, all) == e.op && e.op->serial == e.serial && !e.op->done;
        if (there) {
            e.op->lost = true;
            coordinator_cancel(sim.rig.c, &e.op->call, sim.rig.now);
            SIM(e.op->done == 1 && e.op->outcome == GROUP_CANCELED);
            struct client *c = &sim.clients[e.op->client];
            if (c->life == e.op->life && c->waits_for == e.op->serial) {
                c->waits_for = 0;
                c->phase = OUT;
                wake(c, dice(500));
            }
            op_free(e.op);
        }
    } else if (e.kind == EVENT_MISCHIEF) {
        mischief();
    } else if (sim.clients[e.client].life == e.life && sim.clients[e.client].wakes == e.wake) {
        awake(&sim.clients[e.client]);
    }
    if (e.kind != EVENT_ANSWER && e.kind != EVENT_WAKE) /* those don't reach the coordinator */
        check_world();
}

static void begin(uint64_t seed) {
    memset(&sim, 0, sizeof sim);
    sim.seed = seed;
    sim.state = seed * 0x9e3779b97f4a7c15u + 1;
    list_init(&sim.ops);
    rig_settings(&sim.rig);
    sim.rig.seed = seed;
    sim.roomy = chance(80);
    sim.rig.settings.members_per_group_max = sim.roomy ? 200 : 3;
    sim.rig.settings.members_max = sim.roomy ? 400 : 5;
    sim.rig.settings.groups_max = sim.roomy || chance(50) ? 10 : 1;
    rig_start(&sim.rig);
    for (int i = 0; i < CLIENTS; i++) {
        struct client *c = &sim.clients[i];
        c->group = (int)dice(GROUPS);
        c->v9 = chance(40);
        c->v4 = c->v9 || chance(60);
        c->session_ms = 6000 + (int32_t)dice(SESSION_MAX - 6000);
        c->rebalance_ms = chance(20) ? 0 : 1000 + (int32_t)dice(REBALANCE_MAX - 1000);
        c->taste = (int)dice(3);
        c->generation = -1;
        if (chance(35)) /* sometimes two of the same */
            snprintf(c->instance, sizeof c->instance, "i%d", (int)dice(4));
        wake(c, dice(5000));
    }
    event_add(1000, (struct event){.kind = EVENT_MISCHIEF});
}

/* Two living clients of one group with one instance id fence each other for ever: one of them has to stop. */
static void settle(void) {
    sim.calm = true;
    for (int i = 0; i < CLIENTS; i++) {
        for (int j = 0; j < i; j++) {
            struct client *c = &sim.clients[i], *other = &sim.clients[j];
            if (c->group == other->group && c->instance[0] && strcmp(c->instance, other->instance) == 0) {
                c->instance[0] = 0;
                die(c, 100);
            }
        }
    }
}

/* All living clients, and nobody else, are members of Stable groups. */
static bool is_settled(void) {
    int members[GROUPS] = {0};
    bool settled = counts(&sim.rig).members == CLIENTS && counts(&sim.rig).pending == 0;
    for (int i = 0; i < CLIENTS; i++) {
        members[sim.clients[i].group]++;
        settled = settled && sim.clients[i].phase == STABLE;
    }
    for (int i = 0; settled && i < GROUPS; i++) {
        look_at(i);
        settled = sim.seen.members == members[i] && (members[i] == 0 || sim.seen.state == GROUP_STATE_STABLE);
    }
    return settled;
}

static void end(void) {
    for (int i = 0; i < sim.events_count; i++)
        sim.events[i].op = NULL;
    coordinator_shutdown(sim.rig.c, sim.rig.now);
    SIM(counts(&sim.rig).bytes == 0 && counts(&sim.rig).waiting == 0);
    while (!list_empty(&sim.ops)) {
        struct op *op = container_of(sim.ops.next, struct op, all);
        SIM(op->done == op->given);
        op_free(op);
    }
    coordinator_free(sim.rig.c);
}

static int64_t history(uint64_t seed) {
    begin(seed);
    int64_t disturbed_ms = sim.rig.now + 10000 + dice(40000);
    while (sim.rig.now < disturbed_ms)
        step();
    if (sim.roomy) {
        settle();
        int64_t calm_ms = sim.rig.now + 3 * (REBALANCE_MAX + SESSION_MAX);
        while (!is_settled()) {
            SIM(sim.rig.now < calm_ms);
            step();
        }
    }
    end();
    return sim.steps;
}

TEST(random_histories_of_classic_groups_keep_their_promises) {
    uint64_t first = test_number("GROUP_SEED", 1);
    uint64_t many = getenv("GROUP_SEED") ? 1 : test_number("GROUP_HISTORIES", HISTORIES);
    int64_t steps = 0;
    for (uint64_t i = 0; i < many; i++)
        steps += history(first + i);
    printf("%" PRIu64 " histories, %" PRId64 " steps\n", many, steps);
}
