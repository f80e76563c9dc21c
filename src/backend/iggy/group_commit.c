/*
 * Commits of groups: to the Iggy group of the topic, or into the topic of offsets where the server has no external groups (D12-9).
 *
 *   iggy_commit_op -> offset_job -> [some were forgotten: offsets_log_append, where there is such a topic] -> done
 *                  -> commit_log_next, one after the other: view_get for each topic -> offsets_log_append -> done
 */
#include "backend/iggy/group_offsets.h"
#include "backend/iggy/offset_lanes.h"
#include "backend/iggy/offsets_log.h"
#include "base/logging.h"
#include "base/mem.h"
#include "net/loop.h"

#define VIEW_AGE_MS ((int64_t)1000) /* so old may be what is known of a topic that is committed for */

struct commit_job {
    struct bridge_loop *loop;
    struct backend_commit *call;
    struct offset_job lanes;
    struct offset_part *parts; /* owned; NULL: it goes into the topic */
    struct link link;          /* in loop->offset_commits */
    int32_t at;                /* the part that is prepared */
    int64_t begun_ms;
    struct view_want want;
    struct topic_view *view; /* held; NULL: none */
    struct kept_writer writer;
    struct offsets_append append;
};

static void commit_on_stored(struct op *op);
static void commit_on_noted(struct op *op);
static void commit_log_next(struct bridge_loop *l);
static void commit_log_parts(struct commit_job *job);
static void commit_log_on_view(struct op *op);
static void commit_log_on_appended(struct op *op);

/* D12-4: what can't be tried again is for an operator to know, once a call. */
static void commit_report(const struct backend_commit *call) {
    for (int32_t i = 0; i < call->parts_count; i++) {
        enum status st = call->parts[i].status;
        if (st != ST_REFUSED && st != ST_POLICY && st != ST_LOGIN_REFUSED)
            continue;
        log_line_limited(
            LOG_ERROR, "iggy", "a commit was refused for good", LSTR("group", call->group),
            LTEXT("cause", st == ST_POLICY ? "the server's table of offsets is full" : status_text(st)));
        return;
    }
}

static void job_end(struct commit_job *job) {
    struct backend_commit *call = job->call;
    view_unref(job->view);
    kept_release(&job->writer);
    mem_free(job->parts);
    mem_free(job);
    commit_report(call);
    op_complete(&call->op, ST_OK);
}

static void parts_end(struct backend_commit *call, enum status st) {
    for (int32_t i = 0; i < call->parts_count; i++)
        if (!call->parts[i].status)
            call->parts[i].status = st;
}

/* ---- external groups ---- */

static void commit_store(struct commit_job *job) {
    const struct backend_commit *call = job->call;
    for (int32_t i = 0; i < call->parts_count; i++) {
        const struct backend_commit_part *from = &call->parts[i];
        job->parts[i] = (struct offset_part){.topic = from->topic,
                                             .id = from->id,
                                             .partition = from->partition,
                                             .status = from->status,
                                             .offset = from->offset};
    }
    job->lanes = (struct offset_job){.group = call->group,
                                     .deadline_ms = call->deadline_ms,
                                     .parts = job->parts,
                                     .parts_count = call->parts_count};
    op_init(&job->lanes.op, job->loop->loop, commit_on_stored);
    offset_job_start(job->loop, &job->lanes);
}

static enum status view_put(struct commit_job *job, const struct topic_view *view,
                            const struct backend_commit_part *part) {
    const struct kept_topic topic = {view->name, view->facts.topic_id, view->facts.created_us};
    return kept_put(&job->writer, &topic, (uint32_t)part->partition, part->offset);
}

/* What was forgotten must not come back out of a topic from an earlier time (D12-9). False: nothing was. */
static bool commit_note(struct commit_job *job) {
    bool any = false;
    enum status st = ST_OK;
    for (int32_t i = 0; !st && i < job->call->parts_count; i++) {
        struct backend_commit_part *part = &job->call->parts[i];
        if (part->status || part->offset >= 0)
            continue;
        if (!any)
            st = kept_begin(&job->writer, job->call->group);
        any = true;
        const struct topic_view *view = part->topic.len < 0 ? NULL : view_peek(job->loop, part->topic);
        if (!view)
            part->status = ST_UNAVAILABLE; /* it has changed just now */
        else if (!st)
            st = view_put(job, view, part);
    }
    if (st)
        parts_end(job->call, st);
    return any && !st;
}

static void commit_append(struct commit_job *job, op_fn *done, bool make) {
    kept_end(&job->writer);
    job->append = (struct offsets_append){
        .message = &job->writer.out, .make = make, .deadline_ms = job->call->deadline_ms};
    op_init(&job->append.op, job->loop->loop, done);
    offsets_log_append(job->loop, &job->append);
}

static void commit_on_stored(struct op *op) {
    struct commit_job *job = container_of(op, struct commit_job, lanes.op);
    for (int32_t i = 0; i < job->call->parts_count; i++)
        job->call->parts[i].status = job->parts[i].status;
    if (commit_note(job))
        commit_append(job, commit_on_noted, false);
    else
        job_end(job);
}

static void commit_on_noted(struct op *op) {
    struct commit_job *job = container_of(op, struct commit_job, append.op);
    for (int32_t i = 0; op->status && i < job->call->parts_count; i++)
        if (!job->call->parts[i].status && job->call->parts[i].offset < 0)
            job->call->parts[i].status = ST_UNAVAILABLE;
    job_end(job);
}

/* ---- the topic ---- */

static void commit_log_next(struct bridge_loop *l) {
    if (l->offset_commit || list_empty(&l->offset_commits))
        return;
    struct commit_job *job = container_of(list_pop_head(&l->offset_commits), struct commit_job, link);
    l->offset_commit = job;
    job->begun_ms = loop_now_ms(l->loop);
    enum status st = job->begun_ms >= job->call->deadline_ms ? ST_UNAVAILABLE : ST_OK;
    if (!st)
        st = kept_begin(&job->writer, job->call->group);
    if (st)
        parts_end(job->call, st);
    commit_log_parts(job);
}

/* Its message is on its way, or there is none. */
static void commit_log_prepared(struct commit_job *job) {
    struct bridge_loop *l = job->loop;
    bool any = false;
    for (int32_t i = 0; i < job->call->parts_count; i++)
        any |= job->call->parts[i].status == ST_OK;
    l->offset_commit = NULL;
    if (any)
        commit_append(job, commit_log_on_appended, true);
    else
        job_end(job);
    commit_log_next(l);
}

static bool view_is_of(const struct topic_view *view, const struct backend_commit_part *part) {
    return view && (part->topic.len < 0 ? uuid_equal(&view->facts.id, &part->id)
                                        : str_equal(view->name, part->topic));
}

static void commit_log_look(struct commit_job *job, const struct backend_commit_part *part,
                            int64_t asked_ms) {
    view_unref(job->view);
    job->view = NULL;
    job->want = (struct view_want){
        .name = part->topic, .id = part->id, .asked_ms = asked_ms, .deadline_ms = job->call->deadline_ms};
    op_init(&job->want.op, job->loop->loop, commit_log_on_view);
    view_get(job->loop, &job->want);
}

static void commit_log_parts(struct commit_job *job) {
    for (; job->at < job->call->parts_count; job->at++) {
        struct backend_commit_part *part = &job->call->parts[job->at];
        if (part->status)
            continue;
        if (!view_is_of(job->view, part)) {
            commit_log_look(job, part, job->begun_ms - VIEW_AGE_MS);
            return;
        }
        bool there = part->partition >= 0 && (uint32_t)part->partition < job->view->partitions_count;
        if (!there && job->view->asked_ms <= job->begun_ms) { /* it may have grown */
            commit_log_look(job, part, job->begun_ms);
            return;
        }
        part->status = there ? view_put(job, job->view, part) : ST_NOT_FOUND;
        if (part->status && there) { /* half of it may stand in the message */
            parts_end(job->call, part->status);
            for (int32_t i = 0; i < job->at; i++)
                job->call->parts[i].status = part->status;
        }
    }
    commit_log_prepared(job);
}

static void commit_log_on_view(struct op *op) {
    struct commit_job *job = container_of(op, struct commit_job, want.op);
    job->view = job->want.view;
    if (op->status)
        job->call->parts[job->at++].status = op->status;
    commit_log_parts(job);
}

static void commit_log_on_appended(struct op *op) {
    struct commit_job *job = container_of(op, struct commit_job, append.op);
    if (op->status)
        parts_end(job->call, op->status);
    job_end(job);
}

/* ---- begin ---- */

void iggy_commit_op(struct backend *backend, struct backend_commit *call) {
    struct bridge_loop *l = bridge_here(bridge_of(backend));
    bool external = offsets_external(l);
    op_start(&call->op, NULL);
    struct commit_job *job = mem_take_zeroed(1, sizeof *job);
    struct offset_part *parts =
        job && external ? mem_take_zeroed((size_t)call->parts_count + 1, sizeof *parts) : NULL;
    if (!job || (external && !parts)) {
        mem_free(job);
        parts_end(call, ST_NO_MEMORY);
        op_complete(&call->op, ST_OK);
        return;
    }
    job->loop = l;
    job->call = call;
    job->parts = parts;
    if (external) {
        commit_store(job);
        return;
    }
    if (!atomic_exchange(&l->bridge->offsets_topic_told, true))
        log_line(LOG_WARN, "iggy", "the Iggy server keeps no offsets of external groups: a topic keeps them",
                 LTEXT("topic", OFFSETS_TOPIC));
    list_push_tail(&l->offset_commits, &job->link);
    commit_log_next(l);
}
