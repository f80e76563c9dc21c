/*
 * What groups have committed, and which groups have.
 *
 *   iggy_committed_op -> [all: group_walk] -> offset_job -> kept_ask, for what it did not find -> done
 *   iggy_groups_op    -> group_walk -> kept_ask -> [forget: offsets_log_append] -> done
 *
 * Where the server has no external groups both begin with kept_ask: the topic of offsets (D12-9). With external groups that topic counts for
 * what they don't have: a server that learned of them later has not lost what was committed before.
 */
#include "backend/iggy/group_offsets.h"

#include <stdlib.h>

#include "backend/iggy/group_walk.h"
#include "backend/iggy/offset_lanes.h"
#include "backend/iggy/offsets_log.h"
#include "base/logging.h"
#include "base/mem.h"
#include "net/loop.h"

#define PARTS_MAX 10000000 /* in one answer; memory ends before */

/* ---- the topic of offsets, and what its entries are about ---- */

/* in: loop, deadline_ms, listing (held, or NULL), done. out: status; there; listing, where there is one. */
struct kept_ask {
    struct bridge_loop *loop;
    int64_t deadline_ms;
    struct offsets_look look;
    struct listing_want want;
    struct listing *listing;
    bool there;
    enum status status;
    void (*done)(struct kept_ask *ask);
};

static void ask_on_listing(struct op *op) {
    struct kept_ask *ask = container_of(op, struct kept_ask, want.op);
    ask->status = op->status;
    ask->listing = ask->want.listing;
    ask->done(ask);
}

static void ask_on_look(struct op *op) {
    struct kept_ask *ask = container_of(op, struct kept_ask, look.op);
    struct bridge_loop *l = ask->loop;
    ask->status = op->status;
    ask->there = !op->status && ask->look.there;
    if (!ask->there || ask->listing) {
        ask->done(ask);
        return;
    }
    ask->want = (struct listing_want){.asked_ms = loop_now_ms(l->loop), .deadline_ms = ask->deadline_ms};
    op_init(&ask->want.op, l->loop, ask_on_listing);
    listing_get(l, &ask->want);
}

static void kept_ask_start(struct kept_ask *ask) {
    ask->look = (struct offsets_look){.deadline_ms = ask->deadline_ms};
    op_init(&ask->look.op, ask->loop->loop, ask_on_look);
    offsets_log_look(ask->loop, &ask->look);
}

static int compare_listed(const void *key, const void *row) {
    return str_compare(*(const struct str *)key, ((const struct listed_topic *)row)->name);
}

static const struct listed_topic *listed_find(const struct listing *list, struct str name) {
    return list->topics_count > 0 ? bsearch(&name, list->topics, (size_t)list->topics_count,
                                            sizeof *list->topics, compare_listed)
                                  : NULL;
}

/* Whether an entry is about a partition that there is; NULL: it is not. */
static const struct listed_topic *entry_topic(const struct listing *list, const struct kept_topic *topic,
                                              uint32_t partition) {
    const struct listed_topic *t = listed_find(list, topic->name);
    bool same = t && t->facts.topic_id == topic->topic_id && t->facts.created_us == topic->created_us;
    return same && partition < t->facts.partitions_count ? t : NULL;
}

/* ---- committed ---- */

struct committed_job;

struct committed_walk {
    struct group_walk walk;
    struct committed_job *job;
};

struct committed_job {
    struct bridge_loop *loop;
    struct backend_committed *call;
    struct committed_walk *walk; /* owned; of all, else NULL */
    struct offset_job lanes;
    struct offset_part *
        parts; /* owned; those of the call; or, of all, what there is, in the order of topics and partitions */
    int32_t parts_count, parts_room;
    struct kept_ask ask;
};

static void committed_on_walked(struct op *op);
static void committed_read(struct committed_job *job);
static void committed_on_read(struct op *op);
static void committed_on_kept(struct kept_ask *ask);

static void committed_end(struct committed_job *job, enum status st) {
    struct backend_committed *call = job->call;
    listing_unref(job->ask.listing);
    if (job->walk)
        mem_free(job->walk->walk.holds);
    mem_free(job->walk);
    mem_free(job->parts);
    mem_free(job);
    for (int32_t i = 0; st && !call->all && i < call->parts_count; i++)
        if (!call->parts[i].status)
            call->parts[i].status = st;
    if (call->all) {
        call->status = st;
        call->parts_count = st ? 0 : call->parts_count;
    }
    if (st == ST_REFUSED || st == ST_LOGIN_REFUSED || st == ST_POLICY)
        log_line_limited(LOG_ERROR, "iggy", "the offsets of a group can't be read",
                         LSTR("group", call->group), LTEXT("cause", status_text(st)));
    op_complete(&call->op, ST_OK);
}

static void committed_ask_kept(struct committed_job *job) {
    job->ask.loop = job->loop;
    job->ask.deadline_ms = job->call->deadline_ms;
    job->ask.done = committed_on_kept;
    kept_ask_start(&job->ask);
}

/* One more; ST_NO_MEMORY. */
static enum status part_add(struct committed_job *job, struct str topic, int32_t partition, int64_t offset) {
    if (job->parts_count == job->parts_room) {
        int32_t room = job->parts_room > 0 ? job->parts_room * 2 : 64;
        struct offset_part *parts =
            room > PARTS_MAX ? NULL : mem_grow(job->parts, (size_t)room * sizeof *parts);
        if (!parts)
            return ST_NO_MEMORY;
        job->parts = parts;
        job->parts_room = room;
    }
    job->parts[job->parts_count++] =
        (struct offset_part){.topic = topic, .partition = partition, .offset = offset};
    return ST_OK;
}

/* Every partition of the topics that have the group. */
static void committed_on_walked(struct op *op) {
    struct group_walk *w = container_of(op, struct group_walk, op);
    struct committed_job *job = container_of(w, struct committed_walk, walk)->job;
    enum status st = op->status;
    job->ask.listing = w->listing;
    for (int32_t t = 0; !st && t < w->listing->topics_count; t++) {
        const struct listed_topic *topic = &w->listing->topics[t];
        for (uint32_t p = 0; !st && w->holds[t] && p < topic->facts.partitions_count; p++)
            st = part_add(job, topic->name, (int32_t)p, -1);
    }
    if (st)
        committed_end(job, st);
    else
        committed_read(job);
}

static void committed_read(struct committed_job *job) {
    job->lanes = (struct offset_job){.group = job->call->group,
                                     .reads = true,
                                     .deadline_ms = job->call->deadline_ms,
                                     .parts = job->parts,
                                     .parts_count = job->parts_count};
    op_init(&job->lanes.op, job->loop->loop, committed_on_read);
    offset_job_start(job->loop, &job->lanes);
}

/* Of all: what nobody knows spoils it (D12-13), and what isn't there goes. */
static enum status parts_keep_found(struct committed_job *job) {
    int32_t kept = 0;
    for (int32_t i = 0; i < job->parts_count; i++) {
        if (job->parts[i].status)
            return job->parts[i].status;
        if (job->parts[i].offset >= 0)
            job->parts[kept++] = job->parts[i];
    }
    job->parts_count = kept;
    return ST_OK;
}

/* What the call asked for, as far as it was found. True: some of it was not. */
static bool parts_give(struct committed_job *job) {
    bool missing = false;
    for (int32_t i = 0; i < job->parts_count; i++) {
        struct backend_committed_part *to = &job->call->parts[i];
        to->status = job->parts[i].status;
        to->offset = to->status ? -1 : job->parts[i].offset;
        missing |= !to->status && to->offset < 0;
    }
    return missing;
}

static void committed_on_read(struct op *op) {
    struct committed_job *job = container_of(op, struct committed_job, lanes.op);
    enum status st = job->call->all ? parts_keep_found(job) : ST_OK;
    bool missing = job->call->all || parts_give(job);
    if (st || !missing)
        committed_end(job, st);
    else
        committed_ask_kept(job);
}

/* ---- what the topic of offsets says ---- */

static int compare_parts(const void *left, const void *right) {
    const struct offset_part *a = left, *b = right;
    int order = str_compare(a->topic, b->topic);
    return order ? order : (a->partition > b->partition) - (a->partition < b->partition);
}

struct kept_adding {
    struct committed_job *job;
    int32_t known; /* parts that external groups have, sorted */
};

static enum status kept_add(void *user, const struct kept_topic *topic, uint32_t partition, int64_t offset) {
    const struct kept_adding *a = user;
    struct committed_job *job = a->job;
    const struct listed_topic *t = entry_topic(job->ask.listing, topic, partition);
    const struct offset_part key = {.topic = topic->name, .partition = (int32_t)partition};
    if (!t ||
        (a->known > 0 && bsearch(&key, job->parts, (size_t)a->known, sizeof key, compare_parts) != NULL))
        return ST_OK;
    return part_add(job, t->name, (int32_t)partition, offset);
}

/* What was found, into the call's arena. */
static enum status list_give(struct committed_job *job) {
    struct backend_committed *call = job->call;
    call->parts = arena_take_array(call->arena, struct backend_committed_part, job->parts_count);
    if (!call->parts)
        return ST_NO_MEMORY;
    call->parts_count = job->parts_count;
    if (job->parts_count > 1)
        qsort(job->parts, (size_t)job->parts_count, sizeof *job->parts, compare_parts);
    for (int32_t i = 0; i < job->parts_count; i++) {
        const struct offset_part *from = &job->parts[i];
        bool same = i > 0 && str_equal(job->parts[i - 1].topic, from->topic);
        struct str name = same ? call->parts[i - 1].topic : arena_text(call->arena, from->topic);
        if (name.len < 0)
            return ST_NO_MEMORY;
        call->parts[i] = (struct backend_committed_part){.topic = name,
                                                         .partition = from->partition,
                                                         .leader_epoch = -1,
                                                         .offset = from->offset,
                                                         .metadata = STR("")};
    }
    return ST_OK;
}

static void parts_fill(struct committed_job *job) {
    const struct kept_offsets *table = offsets_log_table(job->loop);
    const struct listing *list = job->ask.listing;
    for (int32_t i = 0; i < job->call->parts_count; i++) {
        struct backend_committed_part *part = &job->call->parts[i];
        if (part->status || part->offset >= 0 || part->partition < 0)
            continue;
        const struct listed_topic *t =
            part->topic.len < 0 ? listing_find_id(list, &part->id) : listed_find(list, part->topic);
        if (!t || (uint32_t)part->partition >= t->facts.partitions_count)
            continue;
        const struct kept_topic topic = {t->name, t->facts.topic_id, t->facts.created_us};
        part->offset = kept_get(table, job->call->group, &topic, (uint32_t)part->partition);
    }
}

static void committed_on_kept(struct kept_ask *ask) {
    struct committed_job *job = container_of(ask, struct committed_job, ask);
    struct kept_adding adding = {job, job->parts_count};
    enum status st = ask->status;
    if (!st && ask->there && job->call->all)
        st = kept_each(offsets_log_table(job->loop), job->call->group, kept_add, &adding);
    if (!st && ask->there && !job->call->all)
        parts_fill(job);
    if (!st && job->call->all)
        st = list_give(job);
    committed_end(job, st);
}

/* ---- committed: begin ---- */

static enum status parts_take(struct committed_job *job) {
    struct backend_committed *call = job->call;
    job->parts = mem_take_zeroed((size_t)call->parts_count + 1, sizeof *job->parts);
    if (!job->parts)
        return ST_NO_MEMORY;
    job->parts_count = call->parts_count;
    for (int32_t i = 0; i < call->parts_count; i++)
        job->parts[i] = (struct offset_part){.topic = call->parts[i].topic,
                                             .id = call->parts[i].id,
                                             .partition = call->parts[i].partition,
                                             .status = call->parts[i].status,
                                             .offset = -1};
    return ST_OK;
}

static enum status committed_walk(struct committed_job *job) {
    job->walk = mem_take_zeroed(1, sizeof *job->walk);
    if (!job->walk)
        return ST_NO_MEMORY;
    job->walk->job = job;
    job->walk->walk.group = job->call->group;
    job->walk->walk.deadline_ms = job->call->deadline_ms;
    op_init(&job->walk->walk.op, job->loop->loop, committed_on_walked);
    group_walk_start(job->loop, &job->walk->walk);
    return ST_OK;
}

void iggy_committed_op(struct backend *backend, struct backend_committed *call) {
    struct bridge_loop *l = bridge_here(bridge_of(backend));
    bool external = offsets_external(l);
    op_start(&call->op, NULL);
    for (int32_t i = 0; !call->all && i < call->parts_count; i++) {
        call->parts[i].offset = call->parts[i].leader_epoch = -1;
        call->parts[i].metadata = STR("");
    }
    struct committed_job *job = mem_take_zeroed(1, sizeof *job);
    if (!job) {
        call->status = ST_NO_MEMORY;
        for (int32_t i = 0; !call->all && i < call->parts_count; i++)
            if (!call->parts[i].status)
                call->parts[i].status = ST_NO_MEMORY;
        op_complete(&call->op, ST_OK);
        return;
    }
    job->loop = l;
    job->call = call;
    enum status st = ST_OK;
    if (!external)
        committed_ask_kept(job);
    else if (call->all)
        st = committed_walk(job);
    else if (!(st = parts_take(job)))
        committed_read(job);
    if (st)
        committed_end(job, st);
}

/* ---- groups ---- */

struct groups_job {
    struct group_walk walk;
    struct bridge_loop *loop;
    struct backend_groups *call;
    bool found; /* the group had offsets somewhere */
    struct kept_ask ask;
    struct kept_writer writer;
    struct offsets_append append;
};

static void groups_on_walked(struct op *op);
static void groups_on_kept(struct kept_ask *ask);
static void groups_on_forgotten(struct op *op);

static void groups_end(struct groups_job *job, enum status st) {
    struct backend_groups *call = job->call;
    call->status = st;
    listing_unref(job->ask.listing);
    mem_free(job->walk.holds);
    sorted_release(&job->walk.names);
    kept_release(&job->writer);
    mem_free(job);
    op_complete(&call->op, ST_OK);
}

static void groups_ask_kept(struct groups_job *job) {
    job->ask.loop = job->loop;
    job->ask.deadline_ms = job->call->deadline_ms;
    job->ask.done = groups_on_kept;
    kept_ask_start(&job->ask);
}

static void groups_on_walked(struct op *op) {
    struct groups_job *job = container_of(op, struct groups_job, walk.op);
    job->ask.listing = job->walk.listing;
    job->found = job->walk.holders_count > 0;
    if (op->status)
        groups_end(job, op->status);
    else
        groups_ask_kept(job);
}

/* Ends the walk with ST_EXISTS at the first entry of a partition that there is. */
static enum status kept_alive(void *user, const struct kept_topic *topic, uint32_t partition,
                              int64_t offset) {
    (void)offset;
    return entry_topic(user, topic, partition) ? ST_EXISTS : ST_OK;
}

/* Both lists are in name order; a group may be in both. */
static enum status groups_merge(struct groups_job *job, const struct kept_offsets *table) {
    struct backend_groups *call = job->call;
    const struct sorted *names = &job->walk.names;
    size_t kept_count = table ? table->groups.count : 0, n = 0, k = 0;
    call->groups = arena_take_array(call->arena, struct str, names->count + kept_count);
    if (!call->groups)
        return ST_NO_MEMORY;
    while (n < names->count || k < kept_count) {
        struct str name = k < kept_count ? kept_group_name(table, k) : STR_NULL;
        const struct str *external = n < names->count ? names->rows[n] : NULL;
        int order = !external ? 1 : name.len < 0 ? -1 : str_compare(*external, name);
        if (order <= 0) {
            call->groups[call->groups_count++] = *external;
            n++;
            k += order == 0;
            continue;
        }
        k++;
        if (kept_each(table, name, kept_alive, job->ask.listing) != ST_EXISTS)
            continue;
        name = arena_text(call->arena, name);
        if (name.len < 0)
            return ST_NO_MEMORY;
        call->groups[call->groups_count++] = name;
    }
    return ST_OK;
}

static void groups_forget(struct groups_job *job) {
    enum status st = kept_forget(&job->writer, job->call->forget);
    if (st) {
        groups_end(job, st);
        return;
    }
    job->append = (struct offsets_append){.message = &job->writer.out, .deadline_ms = job->call->deadline_ms};
    op_init(&job->append.op, job->loop->loop, groups_on_forgotten);
    offsets_log_append(job->loop, &job->append);
}

static void groups_on_kept(struct kept_ask *ask) {
    struct groups_job *job = container_of(ask, struct groups_job, ask);
    const struct kept_offsets *table = ask->there ? offsets_log_table(job->loop) : NULL;
    if (ask->status)
        groups_end(job, ask->status);
    else if (job->call->forget.len < 0)
        groups_end(job, groups_merge(job, table));
    else if (table && kept_has(table, job->call->forget))
        groups_forget(job);
    else
        groups_end(job, job->found ? ST_OK : ST_NO_GROUP);
}

static void groups_on_forgotten(struct op *op) {
    groups_end(container_of(op, struct groups_job, append.op), op->status);
}

void iggy_groups_op(struct backend *backend, struct backend_groups *call) {
    struct bridge_loop *l = bridge_here(bridge_of(backend));
    op_start(&call->op, NULL);
    call->groups = NULL;
    call->groups_count = 0;
    struct groups_job *job = mem_take_zeroed(1, sizeof *job);
    if (!job) {
        call->status = ST_NO_MEMORY;
        op_complete(&call->op, ST_OK);
        return;
    }
    job->loop = l;
    job->call = call;
    if (!offsets_external(l)) {
        groups_ask_kept(job);
        return;
    }
    job->walk.group = call->forget;
    job->walk.remove = call->forget.len >= 0;
    job->walk.arena = call->arena;
    job->walk.deadline_ms = call->deadline_ms;
    op_init(&job->walk.op, l->loop, groups_on_walked);
    group_walk_start(l, &job->walk);
}
