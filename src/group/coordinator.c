/* The coordinator: its table of groups, its memory, time, and how a call begins and ends. */
#include "group/classic.h"
#include "group/consumer.h"

#include "base/mem.h"

void coordinator_settings_default(struct coordinator_settings *out) {
    *out = (struct coordinator_settings){
        .session_min_ms = 6000,
        .session_max_ms = 30 * 60 * 1000,
        .rebalance_max_ms = 30 * 60 * 1000,
        .initial_delay_ms = 3000,
        .empty_keep_ms = 10 * 60 * 1000,
        .groups_max = 1000,
        .members_per_group_max = 1000,
        .members_max = 10000,
        .protocols_max = 16,
        .blob_bytes_max = 64 << 10,
        .roster_bytes_max = 4 << 20,
        .bytes_max = 256 << 20,
        .consumer_session_ms = 45000,
        .consumer_heartbeat_ms = 5000,
        .consumer_refresh_ms = 60000,
    };
}

enum status coordinator_new(const struct coordinator_settings *settings, struct coordinator **out) {
    const struct coordinator_settings *s = settings;
    const int32_t positive[] = {
        s->session_min_ms,      s->session_max_ms,   s->rebalance_max_ms,    s->empty_keep_ms,
        s->groups_max,          s->members_max,      s->protocols_max,       s->members_per_group_max,
        s->blob_bytes_max,      s->roster_bytes_max, s->consumer_session_ms, s->consumer_heartbeat_ms,
        s->consumer_refresh_ms,
    };
    bool fine = s->random && s->initial_delay_ms >= 0 && s->bytes_max > 0;
    for (size_t i = 0; i < COUNT_OF(positive); i++)
        fine = fine && positive[i] > 0;
    if (!fine)
        return ST_INVALID;
    struct coordinator *c = mem_take_zeroed(1, sizeof *c);
    if (!c)
        return ST_NO_MEMORY;
    c->settings = *settings;
    c->now_ms = INT64_MIN;
    c->forgotten_ms = -1;
    *out = c;
    return ST_OK;
}

/* --- memory -------------------------------------------------------------------------------------------------------------------- */

/* Before each block: what it counts for. */
struct keep {
    _Alignas(max_align_t) size_t size;
};

void *keep_take(struct coordinator *c, size_t size) {
    size_t whole = size + sizeof(struct keep);
    if (whole < size || whole > (uint64_t)INT64_MAX || (int64_t)whole > c->settings.bytes_max - c->bytes)
        return NULL;
    struct keep *keep = mem_take_zeroed(1, whole);
    if (!keep)
        return NULL;
    keep->size = whole;
    c->bytes += (int64_t)whole;
    return keep + 1;
}

void keep_free(struct coordinator *c, void *ptr) {
    if (!ptr)
        return;
    struct keep *keep = (struct keep *)ptr - 1;
    c->bytes -= (int64_t)keep->size;
    mem_free(keep);
}

/* --- the table ----------------------------------------------------------------------------------------------------------------- */

static int compare_group(const void *key, const void *row) {
    return str_compare(*(const struct str *)key, ((const struct group *)row)->id);
}

struct group *group_find(const struct coordinator *c, struct str id) {
    return sorted_find(&c->groups, compare_group, &id);
}

/* Nobody is in it, and no id of it is out. */
static bool group_is_idle(const struct group *g) {
    return g->members.count == 0;
}

static bool group_has_offsets(const struct group *g) {
    const struct coordinator_settings *s = &g->c->settings;
    return s->has_offsets ? s->has_offsets(s->ctx, g->id) : g->committed;
}

/* It goes for want of room; its offsets stay, and are not to run out before those of groups that are known. */
static void group_forget(struct group *g) {
    struct coordinator *c = g->c;
    if (g->empty_since_ms > c->forgotten_ms && group_has_offsets(g))
        c->forgotten_ms = g->empty_since_ms;
    group_remove(g, GROUP_UNKNOWN_MEMBER);
}

enum group_outcome groups_make_room(struct coordinator *c) {
    if (sorted_reserve(&c->groups, 1))
        return GROUP_NOT_AVAILABLE;
    if (c->groups.count < (size_t)c->settings.groups_max)
        return GROUP_OK;
    struct group *oldest = NULL;
    for (size_t i = 0; i < c->groups.count; i++) {
        struct group *g = c->groups.rows[i];
        if (group_is_idle(g) && (!oldest || g->empty_since_ms < oldest->empty_since_ms))
            oldest = g;
    }
    if (!oldest)
        return GROUP_NOT_AVAILABLE;
    group_forget(oldest);
    return GROUP_OK;
}

struct group *group_add(struct coordinator *c, struct str id, size_t size) {
    struct group *g = keep_take(c, size + (size_t)id.len);
    if (!g)
        return NULL;
    char *text = (char *)g + size;
    memcpy(text, id.ptr, (size_t)id.len);
    g->c = c;
    g->id = (struct str){text, id.len};
    g->window.kind = DEADLINE_WINDOW;
    g->empty_since_ms = c->now_ms;
    sorted_put(&c->groups, sorted_place(&c->groups, compare_group, &g->id), g);
    deadline_set(&c->deadlines, &g->window, c->now_ms + c->settings.empty_keep_ms);
    return g;
}

void group_remove(struct group *g, enum group_outcome outcome) {
    struct coordinator *c = g->c;
    sorted_take(&c->groups, sorted_place(&c->groups, compare_group, &g->id), 1);
    if (g->type == GROUP_CLASSIC)
        classic_release(classic_of(g), outcome);
    else
        consumer_release(consumer_of(g));
    deadline_clear(&c->deadlines, &g->window);
    sorted_release(&g->members);
    sorted_release(&g->instances);
    keep_free(c, g);
}

bool group_is_empty(const struct group *g) {
    return g->type == GROUP_CLASSIC ? classic_of_const(g)->members_count == 0 : g->members.count == 0;
}

void group_emptied(struct group *g) {
    struct coordinator *c = g->c;
    g->empty_since_ms = c->now_ms;
    deadline_set(&c->deadlines, &g->window, c->now_ms + c->settings.empty_keep_ms);
}

/* --- time ---------------------------------------------------------------------------------------------------------------------- */

static void window_due(struct group *g) {
    if (g->type == GROUP_CLASSIC && classic_of(g)->state != GROUP_STATE_EMPTY)
        classic_due(classic_of(g));
    else if (group_is_idle(g) && !group_has_offsets(g))
        group_remove(g, GROUP_UNKNOWN_MEMBER);
    else
        deadline_set(&g->c->deadlines, &g->window, g->c->now_ms + g->c->settings.empty_keep_ms);
}

static void deadline_due(struct deadline *d) {
    if (d->kind == DEADLINE_WINDOW) {
        window_due(container_of(d, struct group, window));
    } else if (d->kind == DEADLINE_REVOKE) {
        consumer_member_due(container_of(d, struct consumer_member, revoke));
    } else {
        struct group_member *m = container_of(d, struct group_member, session);
        if (m->group->type == GROUP_CLASSIC)
            classic_member_due(classic_member_of(m));
        else
            consumer_member_due(consumer_member_of(m));
    }
}

static void run_due(struct coordinator *c) {
    struct deadline *d;
    while ((d = deadlines_pop(&c->deadlines, c->now_ms)))
        deadline_due(d);
}

static void enter(struct coordinator *c, int64_t now_ms) {
    assert(!c->busy); /* done called in, or two callers at a time */
    c->busy = true;
    if (now_ms > c->now_ms)
        c->now_ms = now_ms;
    run_due(c);
}

void call_return(struct coordinator *c) {
    run_due(c);
    c->busy = false;
}

bool call_begin(struct coordinator *c, struct group_call *call, int64_t now_ms) {
    enter(c, now_ms);
    if (!c->ended)
        return true;
    call_end(c, call, GROUP_NOT_COORDINATOR);
    c->busy = false;
    return false;
}

void call_end(struct coordinator *c, struct group_call *call, enum group_outcome outcome) {
    if (link_in_list(&call->link)) {
        list_remove(&call->link);
        c->waiting_count--;
    }
    call->outcome = outcome;
    call->member = NULL;
    call->done(call);
}

int64_t coordinator_tick(struct coordinator *c, int64_t now_ms) {
    enter(c, now_ms);
    c->busy = false;
    return coordinator_due_ms(c);
}

int64_t coordinator_due_ms(const struct coordinator *c) {
    return deadlines_next_ms(&c->deadlines);
}

/* --- the end ------------------------------------------------------------------------------------------------------------------- */

static void remove_all(struct coordinator *c) {
    while (c->groups.count > 0)
        group_remove(c->groups.rows[c->groups.count - 1], GROUP_NOT_COORDINATOR);
}

void coordinator_shutdown(struct coordinator *c, int64_t now_ms) {
    enter(c, now_ms);
    c->ended = true;
    remove_all(c);
    c->busy = false;
}

void coordinator_free(struct coordinator *c) {
    if (!c)
        return;
    remove_all(c);
    assert(c->bytes == 0 && c->waiting_count == 0 && !c->deadlines.top);
    sorted_release(&c->groups);
    mem_free(c);
}

void coordinator_cancel(struct coordinator *c, struct group_call *call, int64_t now_ms) {
    enter(c, now_ms);
    if (link_in_list(&call->link)) /* only classic members' calls wait */
        classic_cancel(classic_member_of(call->member), call);
    call_return(c);
}

void coordinator_count(const struct coordinator *c, struct coordinator_counts *out) {
    *out = (struct coordinator_counts){
        .bytes = c->bytes,
        .groups = (int32_t)c->groups.count,
        .members = c->members_count,
        .pending = c->pending_count,
        .waiting = c->waiting_count,
    };
}

void coordinator_delete(struct coordinator *c, struct group_delete *del, int64_t now_ms) {
    if (!call_begin(c, &del->call, now_ms))
        return;
    struct group *g = group_find(c, del->group);
    enum group_outcome outcome = GROUP_OK;
    if (!g)
        outcome = del->has_offsets ? GROUP_OK : GROUP_ID_NOT_FOUND;
    else if (!group_is_empty(g))
        outcome = GROUP_NON_EMPTY;
    else
        group_remove(g, GROUP_UNKNOWN_MEMBER);
    call_end(c, &del->call, outcome);
    call_return(c);
}
