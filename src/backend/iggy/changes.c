/*
 * Topics, made, deleted and grown: the parts of a call one after the other, on the loop's control connection.
 *
 *   iggy_create_op -> create_next -> topic_new, or view_get where it is only to be said whether it could be -> create_next ..
 *   iggy_delete_op -> delete_next -> [by id] view_get -> delete_topic -> delete_next ..
 *   iggy_grow_op   -> grow_next -> view_get -> create_partitions -> grow_next ..
 *
 * A part is begun before the call's deadline or not at all (D6-7, D7-3).
 */
#include "backend/iggy/topic_new.h"
#include "base/logging.h"
#include "base/mem.h"
#include "net/loop.h"

static bool is_late(const struct bridge_loop *l, int64_t deadline_ms) {
    return loop_now_ms(l->loop) >= deadline_ms;
}

/* ---- create ---- */

struct create_job {
    struct bridge_loop *loop;
    struct backend_create *call;
    int32_t i;
    struct topic_new make;
    struct view_want want;
};

static void create_next(struct create_job *job);

static void create_on_made(struct op *op) {
    struct create_job *job = container_of(op, struct create_job, make.op);
    struct backend_create_part *part = &job->call->parts[job->i++];
    part->status = op->status;
    part->id = job->make.id;
    create_next(job);
}

static void create_on_view(struct op *op) {
    struct create_job *job = container_of(op, struct create_job, want.op);
    job->call->parts[job->i++].status = op->status == ST_OK          ? ST_EXISTS
                                        : op->status == ST_NOT_FOUND ? ST_OK
                                                                     : op->status;
    view_unref(job->want.view);
    create_next(job);
}

static void create_look(struct create_job *job, const struct backend_create_part *part) {
    job->want = (struct view_want){
        .name = part->name, .asked_ms = loop_now_ms(job->loop->loop), .deadline_ms = job->call->deadline_ms};
    op_init(&job->want.op, job->loop->loop, create_on_view);
    view_get(job->loop, &job->want);
}

static void create_make(struct create_job *job, const struct backend_create_part *part) {
    job->make = (struct topic_new){.name = part->name,
                                   .partitions_count = part->partitions_count,
                                   .settings = part->settings,
                                   .settings_count = part->settings_count,
                                   .deadline_ms = job->call->deadline_ms};
    op_init(&job->make.op, job->loop->loop, create_on_made);
    topic_new_start(job->loop, &job->make);
}

static void create_next(struct create_job *job) {
    struct backend_create *call = job->call;
    for (; job->i < call->parts_count; job->i++) {
        struct backend_create_part *part = &call->parts[job->i];
        if (part->status)
            continue;
        if (!is_late(job->loop, call->deadline_ms)) {
            call->validate_only ? create_look(job, part) : create_make(job, part);
            return;
        }
        part->status = ST_TIMED_OUT;
    }
    mem_free(job);
    op_complete(&call->op, ST_OK);
}

void iggy_create_op(struct backend *b, struct backend_create *call) {
    struct bridge_loop *l = bridge_here(bridge_of(b));
    op_start(&call->op, NULL);
    struct create_job *job = mem_take_zeroed(1, sizeof *job);
    if (job) {
        job->loop = l;
        job->call = call;
        create_next(job);
        return;
    }
    for (int32_t i = 0; i < call->parts_count; i++)
        if (!call->parts[i].status)
            call->parts[i].status = ST_NO_MEMORY;
    op_complete(&call->op, ST_OK);
}

/* ---- delete ---- */

struct delete_job {
    struct bridge_loop *loop;
    struct backend_delete *call;
    int32_t i;
    struct view_want want;
    struct iggy_topic_req body;
    struct iggy_request request;
};

static void delete_next(struct delete_job *job);

static void delete_part_end(struct delete_job *job, enum status st) {
    struct backend_delete_part *part = &job->call->parts[job->i++];
    iggy_request_release(&job->request);
    part->status = st;
    if (st == ST_OK)
        log_line(LOG_INFO, "iggy", "topic deleted", LSTR("topic", part->name));
    delete_next(job);
}

static void delete_on_answer(struct op *op) {
    struct delete_job *job = container_of(op, struct delete_job, request.op);
    views_forget(job->loop->bridge,
                 job->call->parts[job->i].name); /* D7-6; also where the outcome isn't known */
    delete_part_end(job, bridge_status(&job->request, IGGY_CALL_ADMIN));
}

static void delete_call(struct delete_job *job) {
    struct iggy_client *client = bridge_control(job->loop);
    struct iggy_place place;
    if (!client) {
        delete_part_end(job, ST_UNAVAILABLE);
        return;
    }
    topic_map_find(job->loop->bridge->settings.topic_map, job->call->parts[job->i].name, &place);
    job->body = (struct iggy_topic_req){iggy_by_name(place.stream), iggy_by_name(place.topic)};
    job->request = (struct iggy_request){.deadline_ms = job->call->deadline_ms};
    op_init(&job->request.op, job->loop->loop, delete_on_answer);
    iggy_client_call(client, &job->request, IGGY_CMD_delete_topic, &job->body);
}

static void delete_on_view(struct op *op) {
    struct delete_job *job = container_of(op, struct delete_job, want.op);
    struct backend_delete_part *part = &job->call->parts[job->i];
    enum status st = op->status;
    if (!st) {
        part->name = arena_text(job->call->arena, job->want.view->name);
        st = part->name.len < 0 ? ST_NO_MEMORY : ST_OK;
    }
    view_unref(job->want.view);
    if (st)
        delete_part_end(job, st);
    else
        delete_call(job);
}

static void delete_begin(struct delete_job *job, const struct backend_delete_part *part) {
    if (part->name.len >= 0) {
        delete_call(job);
        return;
    }
    job->want = (struct view_want){.name = STR_NULL,
                                   .id = part->id,
                                   .asked_ms = loop_now_ms(job->loop->loop),
                                   .deadline_ms = job->call->deadline_ms};
    op_init(&job->want.op, job->loop->loop, delete_on_view);
    view_get(job->loop, &job->want);
}

static void delete_next(struct delete_job *job) {
    struct backend_delete *call = job->call;
    for (; job->i < call->parts_count; job->i++) {
        struct backend_delete_part *part = &call->parts[job->i];
        if (part->status)
            continue;
        if (!is_late(job->loop, call->deadline_ms)) {
            delete_begin(job, part);
            return;
        }
        part->status = ST_TIMED_OUT;
    }
    mem_free(job);
    op_complete(&call->op, ST_OK);
}

void iggy_delete_op(struct backend *b, struct backend_delete *call) {
    struct bridge_loop *l = bridge_here(bridge_of(b));
    op_start(&call->op, NULL);
    struct delete_job *job = mem_take_zeroed(1, sizeof *job);
    if (job) {
        job->loop = l;
        job->call = call;
        delete_next(job);
        return;
    }
    for (int32_t i = 0; i < call->parts_count; i++)
        if (!call->parts[i].status)
            call->parts[i].status = ST_NO_MEMORY;
    op_complete(&call->op, ST_OK);
}

/* ---- grow ---- */

struct grow_job {
    struct bridge_loop *loop;
    struct backend_grow *call;
    int32_t i;
    struct view_want want;
    struct iggy_partitions_req body;
    struct iggy_request request;
};

static void grow_next(struct grow_job *job);

static void grow_part_end(struct grow_job *job, enum status st) {
    iggy_request_release(&job->request);
    view_unref(job->want.view);
    job->call->parts[job->i++].status = st;
    grow_next(job);
}

static void grow_on_answer(struct op *op) {
    struct grow_job *job = container_of(op, struct grow_job, request.op);
    views_forget(job->loop->bridge, job->want.view->name);
    grow_part_end(job, bridge_status(&job->request, IGGY_CALL_ADMIN));
}

static void grow_call(struct grow_job *job, int32_t more) {
    struct iggy_client *client = bridge_control(job->loop);
    const struct topic_view *view = job->want.view;
    if (!client) {
        grow_part_end(job, ST_UNAVAILABLE);
        return;
    }
    job->body = (struct iggy_partitions_req){iggy_by_name(view->stream), iggy_by_name(view->topic),
                                             .partitions_count = (uint32_t)more};
    job->request = (struct iggy_request){.deadline_ms = job->call->deadline_ms};
    op_init(&job->request.op, job->loop->loop, grow_on_answer);
    iggy_client_call(client, &job->request, IGGY_CMD_create_partitions, &job->body);
}

static void grow_on_view(struct op *op) {
    struct grow_job *job = container_of(op, struct grow_job, want.op);
    struct backend_grow_part *part = &job->call->parts[job->i];
    if (op->status) {
        grow_part_end(job, op->status);
        return;
    }
    part->partitions_before = (int32_t)job->want.view->partitions_count;
    if (part->partitions_count <= part->partitions_before)
        grow_part_end(job, ST_INVALID);
    else if (job->call->validate_only)
        grow_part_end(job, ST_OK);
    else
        grow_call(job, part->partitions_count - part->partitions_before);
}

static void grow_begin(struct grow_job *job, const struct backend_grow_part *part) {
    job->request = (struct iggy_request){.deadline_ms = 0};
    job->want = (struct view_want){.name = part->name,
                                   .id = part->id,
                                   .asked_ms = loop_now_ms(job->loop->loop),
                                   .deadline_ms = job->call->deadline_ms};
    op_init(&job->want.op, job->loop->loop, grow_on_view);
    view_get(job->loop, &job->want);
}

static void grow_next(struct grow_job *job) {
    struct backend_grow *call = job->call;
    for (; job->i < call->parts_count; job->i++) {
        struct backend_grow_part *part = &call->parts[job->i];
        if (part->status)
            continue;
        if (!is_late(job->loop, call->deadline_ms)) {
            grow_begin(job, part);
            return;
        }
        part->status = ST_TIMED_OUT;
    }
    mem_free(job);
    op_complete(&call->op, ST_OK);
}

void iggy_grow_op(struct backend *b, struct backend_grow *call) {
    struct bridge_loop *l = bridge_here(bridge_of(b));
    op_start(&call->op, NULL);
    struct grow_job *job = mem_take_zeroed(1, sizeof *job);
    if (job) {
        job->loop = l;
        job->call = call;
        grow_next(job);
        return;
    }
    for (int32_t i = 0; i < call->parts_count; i++)
        if (!call->parts[i].status)
            call->parts[i].status = ST_NO_MEMORY;
    op_complete(&call->op, ST_OK);
}
