#include "kafka/offset_expiry.h"

#include <stdatomic.h>

#include "base/logging.h"
#include "base/mem.h"
#include "kafka/expiry_rules.h"
#include "net/loop.h"
#include "net/timer.h"

#define CHECK_MS_MAX   ((int64_t)10 * 60 * 1000) /* Kafka's offsets.retention.check.interval.ms */
#define CHECKS_MIN     10                 /* in a retention time: nothing stays much longer than that */
#define LOOKS_MAX      256                /* groups that are looked at before the loop goes on with others */
#define PICK_MAX       4096               /* offsets in one change of the store's file */
#define ARENA_BYTES    ((size_t)64 << 20) /* names of groups; offsets of one */
#define ANSWER_WAIT_MS ((int64_t)15000)   /* F-1 */

struct offset_expiry {
    struct offset_expiry_settings settings;
    struct timer timer;
    struct op start, stop;
    _Atomic bool stopping;
    struct arena names, offsets; /* of the check; of the group */
    struct backend_groups list;
    int32_t at; /* in the list: the group that it is about */
    struct groups_call hop;
    struct group_describe describe;
    int64_t now_ms; /* of the describe */
    bool possible;  /* what it came to */
    struct backend_committed committed;
    struct expiry_pick pick;
    struct backend_commit forget;
    int32_t gone_count; /* of the group */
};

enum status offset_expiry_new(const struct offset_expiry_settings *settings, struct offset_expiry **out) {
    struct offset_expiry *e = mem_take_zeroed(1, sizeof *e);
    if (!e)
        return ST_NO_MEMORY;
    e->settings = *settings;
    *out = e;
    return ST_OK;
}

void offset_expiry_free(struct offset_expiry *e) {
    if (!e)
        return;
    arena_release(&e->names);
    arena_release(&e->offsets);
    mem_free(e);
}

/* ---- time ---- */

static void check_begin(struct timer *t);

static void timer_again(struct offset_expiry *e, int64_t wait_ms) {
    struct loop *home = e->settings.home;
    if (!atomic_load(&e->stopping) &&
        timer_set(loop_timers(home), &e->timer, check_begin, loop_now_ms(home) + wait_ms))
        log_line(LOG_ERROR, "kafka", "no memory for a timer: offsets of groups no longer run out");
}

static void start_here(struct op *op) {
    struct offset_expiry *e = container_of(op, struct offset_expiry, start);
    timer_again(e, e->settings.retention_ms);
}

static void stop_here(struct op *op) {
    struct offset_expiry *e = container_of(op, struct offset_expiry, stop);
    timer_clear(loop_timers(e->settings.home), &e->timer);
}

void offset_expiry_start(struct offset_expiry *e) {
    if (!e)
        return;
    op_init(&e->start, e->settings.home, start_here);
    loop_post(&e->start);
}

void offset_expiry_stop(struct offset_expiry *e) {
    if (!e)
        return;
    atomic_store(&e->stopping, true);
    op_init(&e->stop, e->settings.home, stop_here);
    loop_post(&e->stop);
}

/* ---- the coordinator ---- */

static void expiry_hop(struct offset_expiry *e,
                       void (*begin)(struct groups_call *, struct coordinator *, int64_t), op_fn *back) {
    e->hop = (struct groups_call){.begin = begin};
    op_init(&e->hop.op, e->settings.home, back);
    groups_call(e->settings.groups, &e->hop);
}

/* A group of either type; done runs for the one that it is last. */
static void describe(struct offset_expiry *e, struct coordinator *c, void (*done)(struct group_call *)) {
    static const enum group_type types[] = {GROUP_CLASSIC, GROUP_CONSUMER};
    bool is_other = true;
    for (size_t i = 0; is_other && i < COUNT_OF(types); i++) {
        e->describe = (struct group_describe){.call.done = done,
                                              .group = e->list.groups[e->at],
                                              .type = types[i],
                                              .has_offsets = true,
                                              .all_metadata = true};
        coordinator_describe(c, &e->describe, e->now_ms);
        is_other = e->describe.other_type;
    }
}

/* ---- a check ---- */

static void check_on_listed(struct op *op);
static void look_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms);
static void look_on_back(struct op *op);
static void group_read(struct offset_expiry *e);
static void read_on_done(struct op *op);
static void pick_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms);
static void pick_on_back(struct op *op);
static void forget_on_done(struct op *op);
static void group_end(struct offset_expiry *e);
static void drop_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms);
static void drop_on_back(struct op *op);

static void check_begin(struct timer *t) {
    struct offset_expiry *e = container_of(t, struct offset_expiry, timer);
    struct loop *home = e->settings.home;
    if (atomic_load(&e->stopping))
        return;
    arena_init(&e->names, NULL, 0, ARENA_BYTES);
    e->list = (struct backend_groups){
        .arena = &e->names, .forget = STR_NULL, .deadline_ms = loop_now_ms(home) + ANSWER_WAIT_MS};
    op_init(&e->list.op, home, check_on_listed);
    backend_groups(e->settings.backend, &e->list);
}

static void check_end(struct offset_expiry *e) {
    int64_t wait_ms = e->settings.retention_ms / CHECKS_MIN;
    arena_release(&e->names);
    if (wait_ms < 1)
        wait_ms = 1;
    timer_again(e, wait_ms < CHECK_MS_MAX ? wait_ms : CHECK_MS_MAX);
}

/* The groups from e->at on. */
static void check_go_on(struct offset_expiry *e) {
    if (atomic_load(&e->stopping) || e->at == e->list.groups_count)
        check_end(e);
    else
        expiry_hop(e, look_begin, look_on_back);
}

static void check_on_listed(struct op *op) {
    struct offset_expiry *e = container_of(op, struct offset_expiry, list.op);
    e->at = 0;
    if (e->list.status) {
        log_line_limited(LOG_WARN, "kafka", "can't look for offsets of groups that ran out",
                         LTEXT("cause", status_text(e->list.status)));
        e->list.groups_count = 0;
    }
    check_go_on(e);
}

static void look_done(struct group_call *call) {
    struct offset_expiry *e = container_of(call, struct offset_expiry, describe.call);
    e->possible = expiry_is_possible(&e->describe, e->now_ms, e->settings.retention_ms);
}

/* Up to a group that may have something to forget. */
static void look_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    struct offset_expiry *e = container_of(hop, struct offset_expiry, hop);
    e->now_ms = now_ms;
    e->possible = false;
    for (int i = 0; i < LOOKS_MAX && e->at < e->list.groups_count; i++) {
        describe(e, c, look_done);
        if (e->possible)
            break;
        e->at++;
    }
    groups_call_end(hop);
}

static void look_on_back(struct op *op) {
    struct offset_expiry *e = container_of(op, struct offset_expiry, hop.op);
    if (e->possible)
        group_read(e);
    else
        check_go_on(e);
}

/* ---- a group ---- */

static void group_read(struct offset_expiry *e) {
    struct loop *home = e->settings.home;
    arena_init(&e->offsets, NULL, 0, ARENA_BYTES);
    e->committed = (struct backend_committed){.arena = &e->offsets,
                                              .group = e->list.groups[e->at],
                                              .all = true,
                                              .deadline_ms = loop_now_ms(home) + ANSWER_WAIT_MS};
    op_init(&e->committed.op, home, read_on_done);
    backend_committed(e->settings.backend, &e->committed);
}

static bool any_is_old(const struct backend_committed *c, int64_t retention_ms) {
    for (int32_t i = 0; i < c->parts_count; i++)
        if (c->parts[i].age_ms >= retention_ms)
            return true;
    return false;
}

static void read_on_done(struct op *op) {
    struct offset_expiry *e = container_of(op, struct offset_expiry, committed.op);
    int64_t retention_ms = e->settings.retention_ms;
    e->pick = (struct expiry_pick){.retention_ms = retention_ms,
                                   .offsets = e->committed.parts,
                                   .offsets_count = e->committed.parts_count,
                                   .parts_max = PICK_MAX};
    enum status st = e->committed.status;
    if (!st && any_is_old(&e->committed, retention_ms)) {
        e->pick.parts = arena_take_array(&e->offsets, struct backend_commit_part, PICK_MAX);
        st = e->pick.parts ? ST_OK : ST_NO_MEMORY;
    }
    if (st)
        log_line_limited(LOG_WARN, "kafka", "can't look for offsets of a group that ran out",
                         LSTR("group", e->committed.group), LTEXT("cause", status_text(st)));
    if (e->pick.parts && !atomic_load(&e->stopping))
        expiry_hop(e, pick_begin, pick_on_back);
    else
        group_end(e);
}

static void pick_done(struct group_call *call) {
    struct offset_expiry *e = container_of(call, struct offset_expiry, describe.call);
    expiry_pick(&e->describe, &e->pick);
}

static void pick_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    struct offset_expiry *e = container_of(hop, struct offset_expiry, hop);
    e->now_ms = e->pick.now_ms = now_ms;
    describe(e, c, pick_done);
    groups_call_end(hop);
}

static void pick_on_back(struct op *op) {
    struct offset_expiry *e = container_of(op, struct offset_expiry, hop.op);
    struct loop *home = e->settings.home;
    if (e->pick.parts_count == 0 || atomic_load(&e->stopping)) {
        group_end(e);
        return;
    }
    e->forget = (struct backend_commit){.group = e->list.groups[e->at],
                                        .parts = e->pick.parts,
                                        .parts_count = e->pick.parts_count,
                                        .aged_ms = e->settings.retention_ms,
                                        .deadline_ms = loop_now_ms(home) + ANSWER_WAIT_MS};
    op_init(&e->forget.op, home, forget_on_done);
    backend_commit(e->settings.backend, &e->forget);
}

/* What keeps offsets from being forgotten; that their topic has gone does not. */
static enum status forget_problem(const struct backend_commit *forget) {
    for (int32_t i = 0; i < forget->parts_count; i++) {
        enum status st = forget->parts[i].status;
        if (st && st != ST_NOT_FOUND && st != ST_UNKNOWN_ID)
            return st;
    }
    return ST_OK;
}

static void forget_on_done(struct op *op) {
    struct offset_expiry *e = container_of(op, struct offset_expiry, forget.op);
    enum status st = forget_problem(&e->forget);
    if (st)
        log_line_limited(LOG_ERROR, "kafka", "offsets of a group that ran out can't be removed",
                         LSTR("group", e->forget.group), LTEXT("cause", status_text(st)));
    e->gone_count += e->forget.gone_count;
    if (e->forget.gone_count == 0 || e->pick.parts_count < PICK_MAX || st) {
        group_end(e);
        return;
    }
    arena_release(&e->offsets);
    group_read(e);
}

static void group_next(struct offset_expiry *e) {
    e->gone_count = 0;
    e->at++;
    check_go_on(e);
}

static void group_end(struct offset_expiry *e) {
    arena_release(&e->offsets);
    if (e->gone_count == 0) {
        group_next(e);
        return;
    }
    log_line_limited(LOG_INFO, "kafka", "offsets of a group ran out", LSTR("group", e->list.groups[e->at]),
                     LINT("offsets", e->gone_count));
    expiry_hop(e, drop_begin, drop_on_back);
}

static void drop_done(struct group_call *call) {
    (void)call;
}

/* A group with its last offset; one with members stays. */
static void drop_begin(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    struct offset_expiry *e = container_of(hop, struct offset_expiry, hop);
    struct group_delete drop = {.call.done = drop_done, .group = e->list.groups[e->at]};
    if (!backend_group_has_offsets(e->settings.backend, drop.group))
        coordinator_delete(c, &drop, now_ms);
    groups_call_end(hop);
}

static void drop_on_back(struct op *op) {
    group_next(container_of(op, struct offset_expiry, hop.op));
}
