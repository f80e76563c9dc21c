/*
 * Settings of topics, changed: the parts of a call one after the other, on the loop's control connection. Each says only what it changes, so
 * nothing that others change meanwhile is lost. What a server has no word for isn't kept, as in a creation (D6-11), and so isn't asked for.
 *
 *   iggy_configure_op -> configure_next -> view_get -> configure_on_view -> update_topic, from 0.12 on update_resource
 *                     -> configure_on_answer -> configure_next ..
 */
#include "backend/iggy/view.h"
#include "base/logging.h"
#include "base/mem.h"
#include "iggy/errors.h"
#include "net/loop.h"

#define TOO_SMALL                                                                                     \
    "Invalid value for configuration retention.bytes: the storage behind this server keeps at least " \
    "one segment of a topic, and the size of segments is settled when the topic is created"

struct configure_job {
    struct bridge_loop *loop;
    struct backend_configure *call;
    int32_t i;
    struct view_want want;
    struct topic_update update;
    union { /* by the server's version */
        struct iggy_update_topic_req topic;
        struct iggy_update_resource_req resource;
    } body;
    struct iggy_request request;
};

static void configure_next(struct configure_job *job);

static void configure_part_end(struct configure_job *job, enum status st) {
    struct backend_configure_part *part = &job->call->parts[job->i++];
    iggy_request_release(&job->request);
    view_unref(job->want.view);
    part->status = st;
    part->reason = st == ST_INVALID ? TOO_SMALL : NULL;
    if (!st && !job->call->validate_only)
        log_line(LOG_INFO, "iggy", "topic settings changed", LSTR("topic", part->name),
                 LINT("changes", part->changes_count));
    configure_next(job);
}

static void configure_on_answer(struct op *op) {
    struct configure_job *job = container_of(op, struct configure_job, request.op);
    bool too_small = job->request.op.status == ST_OK && job->request.code == IGGY_ERR_INVALID_TOPIC_SIZE;
    views_forget(job->loop->bridge, job->want.view->name); /* also where the outcome isn't known */
    configure_part_end(job, too_small ? ST_INVALID : bridge_status(&job->request, IGGY_CALL_ADMIN));
}

static void configure_call(struct configure_job *job) {
    struct iggy_client *client = bridge_control(job->loop);
    const struct topic_view *view = job->want.view;
    const struct topic_update *update = &job->update;
    struct bytes options = {update->options, update->options_len};
    bool resources = view->version >= IGGY_0_12_0;
    if (!client) {
        configure_part_end(job, ST_UNAVAILABLE);
        return;
    }
    if (resources)
        job->body.resource = (struct iggy_update_resource_req){.scope = IGGY_RESOURCE_TOPIC,
                                                               .stream = iggy_by_name(view->stream),
                                                               .topic = iggy_by_name(view->topic),
                                                               .reset = job->update.reset,
                                                               .reset_count = update->reset_count,
                                                               .options = options};
    else
        job->body.topic = (struct iggy_update_topic_req){.stream = iggy_by_name(view->stream),
                                                         .topic = iggy_by_name(view->topic),
                                                         .name = view->topic,
                                                         .options = options};
    job->request = (struct iggy_request){.deadline_ms = job->call->deadline_ms};
    op_init(&job->request.op, job->loop->loop, configure_on_answer);
    iggy_client_call(client, &job->request, resources ? IGGY_CMD_update_resource : IGGY_CMD_update_topic,
                     &job->body);
}

static void configure_on_view(struct op *op) {
    struct configure_job *job = container_of(op, struct configure_job, want.op);
    const struct backend_configure_part *part = &job->call->parts[job->i];
    const struct topic_view *view = job->want.view;
    const struct topic_changes changes = {part->changes, part->changes_count,
                                          job->loop->bridge->settings.accept_compact};
    enum status st = op->status;
    if (!st)
        st = topic_update_write(&view->facts, view->version, &changes, &job->update);
    bool says_nothing = !st && job->update.options_len == 0 && job->update.reset_count == 0;
    if (st || says_nothing || job->call->validate_only)
        configure_part_end(job, st);
    else
        configure_call(job);
}

static void configure_begin(struct configure_job *job, const struct backend_configure_part *part) {
    job->request = (struct iggy_request){.deadline_ms = 0};
    job->want = (struct view_want){
        .name = part->name, .asked_ms = loop_now_ms(job->loop->loop), .deadline_ms = job->call->deadline_ms};
    op_init(&job->want.op, job->loop->loop, configure_on_view);
    view_get(job->loop, &job->want);
}

static void configure_next(struct configure_job *job) {
    struct backend_configure *call = job->call;
    for (; job->i < call->parts_count; job->i++) {
        struct backend_configure_part *part = &call->parts[job->i];
        if (part->status)
            continue;
        if (loop_now_ms(job->loop->loop) < call->deadline_ms) {
            configure_begin(job, part);
            return;
        }
        part->status = ST_TIMED_OUT;
    }
    mem_free(job);
    op_complete(&call->op, ST_OK);
}

void iggy_configure_op(struct backend *b, struct backend_configure *call) {
    struct bridge_loop *l = bridge_here(bridge_of(b));
    op_start(&call->op, NULL);
    struct configure_job *job = mem_take_zeroed(1, sizeof *job);
    if (job) {
        job->loop = l;
        job->call = call;
        configure_next(job);
        return;
    }
    for (int32_t i = 0; i < call->parts_count; i++)
        if (!call->parts[i].status)
            call->parts[i].status = ST_NO_MEMORY;
    op_complete(&call->op, ST_OK);
}
