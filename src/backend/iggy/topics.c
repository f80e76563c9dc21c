/*
 * Topics, looked up.
 *
 *   iggy_topics_op -> view_get for each part, and a listing where all are wanted -> topics_on_part .. -> topics_create_next
 *                     -> topic_new for what is missing, one after the other -> view_get -> topics_create_next .. -> done
 */
#include "backend/iggy/listing.h"
#include "backend/iggy/topic_new.h"
#include "net/loop.h"

#define SETTINGS_MAX 3    /* of a topic: topic_facts_settings, and cleanup.policy */
#define KNOWN_MS     2000 /* for the truth about a topic that was seen before */

/* ---- look up ---- */

struct topics_part {
    struct topics_job *job;
    int32_t i;
    struct view_want want;
};

/* In the call's arena. */
struct topics_job {
    struct bridge_loop *loop;
    struct backend_topics *call;
    struct listing_want listing;
    struct topic_new make;
    int32_t left; /* look-ups under way, and one for the start itself */
    int32_t next; /* the part to look at for creation */
    struct topics_part parts[];
};

static void topics_create_next(struct topics_job *job);

static enum status topic_fill(struct topics_job *job, struct str name, const struct topic_facts *facts,
                              struct backend_topic *out) {
    struct arena *a = job->call->arena;
    out->name = arena_text(a, name);
    out->id = facts->id;
    out->partitions_count = (int32_t)facts->partitions_count;
    if (out->name.len < 0)
        return ST_NO_MEMORY;
    if (!job->call->want_settings)
        return ST_OK;
    out->settings = arena_take_array(a, struct backend_setting, SETTINGS_MAX);
    if (!out->settings)
        return ST_NO_MEMORY;
    enum status st = topic_facts_settings(facts, a, out->settings, &out->settings_count);
    if (!st && job->loop->bridge->settings.accept_compact && topic_facts_keep_all(facts))
        out->settings[out->settings_count++] =
            (struct backend_setting){STR("cleanup.policy"), STR("compact")};
    return st;
}

static void topics_ended_one(struct topics_job *job) {
    if (--job->left == 0)
        topics_create_next(job);
}

static const struct topic_view *part_known(const struct topics_part *p) {
    struct bridge_loop *l = p->job->loop;
    return p->want.name.len >= 0 ? view_peek(l, p->want.name) : view_peek_id(l, &p->want.id);
}

/* A topic that was seen is there, as far as anybody can tell while the server is away: a client that hears of an error takes its partitions for gone. */
static void part_fill(struct topics_part *p) {
    struct backend_topics_part *part = &p->job->call->parts[p->i];
    enum status st = p->want.op.status;
    const struct topic_view *view = p->want.view;
    if (st == ST_UNAVAILABLE || st == ST_TIMED_OUT)
        view = part_known(p);
    part->status = view ? topic_fill(p->job, view->name, &view->facts, &part->topic) : st;
    view_unref(p->want.view);
}

static void topics_on_part(struct op *op) {
    struct topics_part *p = container_of(op, struct topics_part, want.op);
    part_fill(p);
    topics_ended_one(p->job);
}

static enum status list_fill(struct topics_job *job, const struct listing *list) {
    struct backend_topics *call = job->call;
    enum status st = ST_OK;
    call->topics = arena_take_array(call->arena, struct backend_topic, list->topics_count);
    if (!call->topics)
        return ST_NO_MEMORY;
    for (int32_t i = 0; !st && i < list->topics_count; i++)
        st = topic_fill(job, list->topics[i].name, &list->topics[i].facts, &call->topics[i]);
    call->topics_count = list->topics_count;
    return st;
}

static void topics_on_listing(struct op *op) {
    struct topics_job *job = container_of(op, struct topics_job, listing.op);
    job->call->status = op->status ? op->status : list_fill(job, job->listing.listing);
    if (job->call->status)
        job->call->topics_count = 0;
    listing_unref(job->listing.listing);
    topics_ended_one(job);
}

/* A part's look-up; fresh_ms: no older than this. */
static void part_look_up(struct topics_job *job, int32_t i, op_fn *done, int64_t fresh_ms) {
    const struct backend_topics_part *part = &job->call->parts[i];
    struct topics_part *p = &job->parts[i];
    *p = (struct topics_part){.job = job, .i = i};
    p->want = (struct view_want){
        .name = part->name, .id = part->id, .asked_ms = fresh_ms, .deadline_ms = job->call->deadline_ms};
    int64_t soon_ms = loop_now_ms(job->loop->loop) + KNOWN_MS;
    if (soon_ms < p->want.deadline_ms && part_known(p))
        p->want.deadline_ms = soon_ms;
    op_init(&p->want.op, job->loop->loop, done);
    view_get(job->loop, &p->want);
}

/* No memory for a look-up. */
static void topics_fail(struct backend_topics *call) {
    for (int32_t i = 0; i < call->parts_count; i++)
        if (!call->parts[i].status)
            call->parts[i].status = ST_NO_MEMORY;
    call->status = ST_NO_MEMORY;
    op_complete(&call->op, ST_OK);
}

void iggy_topics_op(struct backend *b, struct backend_topics *call) {
    struct bridge_loop *l = bridge_here(bridge_of(b));
    int64_t fresh_ms = loop_now_ms(l->loop) - VIEW_FRESH_MS;
    op_start(&call->op, NULL);
    call->status = ST_OK;
    struct topics_job *job =
        arena_take(call->arena, sizeof *job + (size_t)call->parts_count * sizeof *job->parts);
    if (!job) {
        topics_fail(call);
        return;
    }
    job->loop = l;
    job->call = call;
    job->left = 1;
    for (int32_t i = 0; i < call->parts_count; i++) {
        if (call->parts[i].status)
            continue;
        job->left++;
        part_look_up(job, i, topics_on_part, fresh_ms);
    }
    if (call->all) {
        job->left++;
        job->listing = (struct listing_want){.asked_ms = fresh_ms, .deadline_ms = call->deadline_ms};
        op_init(&job->listing.op, l->loop, topics_on_listing);
        listing_get(l, &job->listing);
    }
    topics_ended_one(job);
}

/* ---- and make what is missing (D4-5) ---- */

static void topics_on_made_part(struct op *op) {
    struct topics_part *p = container_of(op, struct topics_part, want.op);
    part_fill(p);
    topics_create_next(p->job);
}

static void topics_on_made(struct op *op) {
    struct topics_job *job = container_of(op, struct topics_job, make.op);
    int32_t i = job->next++;
    if (op->status && op->status != ST_EXISTS) {
        job->call->parts[i].status = op->status;
        topics_create_next(job);
        return;
    }
    part_look_up(job, i, topics_on_made_part, loop_now_ms(job->loop->loop));
}

static void topics_create_next(struct topics_job *job) {
    struct backend_topics *call = job->call;
    for (; call->create && job->next < call->parts_count; job->next++) {
        const struct backend_topics_part *part = &call->parts[job->next];
        if (part->status != ST_NOT_FOUND || part->name.len < 0)
            continue;
        job->make = (struct topic_new){.name = part->name,
                                       .partitions_count = call->partitions_default,
                                       .deadline_ms = call->deadline_ms};
        op_init(&job->make.op, job->loop->loop, topics_on_made);
        topic_new_start(job->loop, &job->make);
        return;
    }
    op_complete(&call->op, ST_OK);
}
