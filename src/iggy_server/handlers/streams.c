/* get_stream 200, get_streams 201, create_stream 202, delete_stream 203, update_stream 204, purge_stream 205. */
#include "base/mem.h"
#include "iggy/tlv.h"
#include "iggy_server/describe.h"
#include "iggy_server/resources.h"
#include "net/loop.h"
#include "net/work.h"

#define DELETE_MS ((int64_t)30000)

/* ---- looking ---- */

void get_stream_handle(struct server_request *r) {
    struct stream_info info;
    struct topic **topics = NULL;
    int32_t count = 0;
    struct iggy_get_stream_res answer = {.found = true};
    if (request_stream(r, &get_stream_in(r)->stream, &info)) {
        request_not_found(r);
        return;
    }
    uint32_t code = request_allowed(r, ACTION_READ_STREAM, info.id, 0);
    if (code) {
        request_refuse(r, code);
        return;
    }
    enum status st = topics_of_stream(r, info.id, &topics, &count);
    if (!st)
        st = describe_stream(r, &info, topics, count, &answer.stream);
    if (!st)
        st = describe_topics(r, topics, count, &answer.topics);
    answer.topics_count = (uint32_t)count;
    if (st)
        request_refuse(r, code_of_status(st));
    else
        request_answer(r, &answer);
    topics_release(topics, count);
}

/* Those of a stream among all topics, which are in the order of their streams, as the streams are. Moves *at behind them; how many. */
static int32_t topics_skip(struct topic *const *topics, int32_t count, uint32_t stream_id, int32_t *at) {
    while (*at < count &&
           topic_info(topics[*at])->stream_id < stream_id) /* of a stream that is gone, or new */
        (*at)++;
    int32_t first = *at;
    while (*at < count && topic_info(topics[*at])->stream_id == stream_id)
        (*at)++;
    return *at - first;
}

static enum status streams_fill(struct server_request *r, const struct stream_info *infos, int32_t count,
                                struct iggy_get_streams_res *out) {
    struct topic **topics;
    int32_t topics_count, at = 0;
    enum status st = topics_of_stream(r, UINT32_MAX, &topics, &topics_count);
    if (st)
        return st;
    out->streams = arena_take_array(&r->arena, struct iggy_stream, count);
    out->streams_count = (uint32_t)count;
    if (!out->streams)
        st = ST_NO_MEMORY;
    for (int32_t i = 0; !st && i < count; i++) {
        int32_t own = topics_skip(topics, topics_count, infos[i].id, &at);
        st = describe_stream(r, &infos[i], topics + at - own, own, &out->streams[i]);
    }
    topics_release(topics, topics_count);
    return st;
}

void get_streams_handle(struct server_request *r) {
    struct stream_info *infos = NULL;
    int32_t count = 0;
    struct iggy_get_streams_res answer = {.streams = NULL};
    uint32_t code = request_allowed(r, ACTION_READ_STREAMS, 0, 0);
    if (code) {
        request_refuse(r, code);
        return;
    }
    enum status st = store_streams(r->server->settings.store, &infos, &count);
    if (!st)
        st = streams_fill(r, infos, count, &answer);
    mem_free(infos);
    if (st)
        request_refuse(r, code_of_status(st));
    else
        request_answer(r, &answer);
}

/* ---- changing ---- */

static uint32_t stream_code(enum status st) {
    switch (st) {
    case ST_EXISTS:
        return IGGY_ERR_STREAM_NAME_ALREADY_EXISTS;
    case ST_NOT_FOUND:
        return IGGY_ERR_STREAM_ID_NOT_FOUND;
    case ST_BAD_NAME:
        return IGGY_ERR_INVALID_STREAM_NAME;
    case ST_POLICY:
        return IGGY_ERR_TOO_MANY_STREAMS;
    default:
        return code_of_status(st);
    }
}

void create_stream_handle(struct server_request *r) {
    const struct iggy_create_stream_req *in = create_stream_in(r);
    struct stream_info info;
    struct iggy_stream answer;
    uint32_t code = request_allowed(r, ACTION_CREATE_STREAM, 0, 0);
    if (!code && in->options.len > 0)
        code = tlv_check_options(in->options) ? IGGY_ERR_INVALID_COMMAND : IGGY_ERR_UNSUPPORTED_OPTION_KEY;
    if (!code)
        code = stream_code(store_stream_create(r->server->settings.store, in->name, &info));
    if (!code)
        code = code_of_status(describe_stream(r, &info, NULL, 0, &answer));
    if (code)
        request_refuse(r, code);
    else
        request_answer(r, &answer);
}

/* The stream, which the user may manage. 0; 1009, 41. */
static uint32_t managed_stream(struct server_request *r, const struct iggy_identifier *id,
                               struct stream_info *out) {
    uint32_t code = request_stream(r, id, out);
    return code ? code : request_allowed(r, ACTION_MANAGE_STREAM, out->id, 0);
}

static uint32_t stream_rename(struct server_request *r, const struct iggy_identifier *id, struct str name) {
    struct stream_info info;
    uint32_t code = managed_stream(r, id, &info);
    if (code || str_equal(str_of(info.name), name))
        return code;
    return stream_code(store_stream_rename(r->server->settings.store, info.id, name));
}

void update_stream_handle(struct server_request *r) {
    const struct iggy_update_stream_req *in = update_stream_in(r);
    if (in->options.len > 0)
        request_refuse(r, IGGY_ERR_UNSUPPORTED_OPTION_KEY);
    else
        request_end(r, stream_rename(r, &in->stream, in->name));
}

/* A stream's only option that changes is its name. */
uint32_t stream_update_resource(struct server_request *r, const struct iggy_update_resource_req *in) {
    struct bytes at = in->options;
    struct tlv_entry e;
    if (in->reset_count > 0)
        return IGGY_ERR_OPTION_NOT_RESETTABLE;
    if (at.len <= 0 || tlv_check_options(at) || tlv_next(&at, &e))
        return IGGY_ERR_INVALID_COMMAND;
    if (at.len > 0 || !str_equal((struct str){(const char *)e.key.ptr, e.key.len}, STR("name")))
        return IGGY_ERR_UNSUPPORTED_OPTION_KEY;
    if (e.value_kind != TLV_STRING)
        return IGGY_ERR_INVALID_OPTION_VALUE;
    return stream_rename(r, &in->stream, (struct str){(const char *)e.value.ptr, e.value.len});
}

void purge_stream_handle(struct server_request *r) {
    struct stream_info info;
    struct topic **topics = NULL;
    int32_t count = 0;
    uint32_t code = managed_stream(r, &purge_stream_in(r)->stream, &info);
    if (!code)
        code = code_of_status(topics_of_stream(r, info.id, &topics, &count));
    for (int32_t i = 0; !code && i < count; i++)
        code = topic_purge(topics[i]);
    topics_release(topics, count);
    request_end(r, code);
}

/* ---- deleting: the topics, where their readers and writers learn it, then the stream ---- */

struct stream_delete {
    struct server_request *request;
    uint32_t stream_id;
    struct backend_delete topics;
    struct work work;
    struct op done;
    uint32_t code;
};

static void delete_run(struct work *w) {
    struct stream_delete *d = container_of(w, struct stream_delete, work);
    d->code = stream_code(store_stream_delete(d->request->server->settings.store, d->stream_id));
    loop_post(&d->done);
}

static void delete_on_done(struct op *op) {
    struct stream_delete *d = container_of(op, struct stream_delete, done);
    request_end(d->request, d->code);
}

static void delete_on_topics(struct op *op) {
    struct stream_delete *d = container_of(op, struct stream_delete, topics.op);
    for (int32_t i = 0; i < d->topics.parts_count; i++) {
        enum status st = d->topics.parts[i].status;
        if (st && st != ST_UNKNOWN_ID && st != ST_NOT_FOUND) {
            request_refuse(d->request, code_of_status(st));
            return;
        }
    }
    groups_forget_topic(d->request->server->groups, d->stream_id, UINT32_MAX);
    op_init(&d->done, d->request->loop, delete_on_done);
    work_submit(&d->work, delete_run);
}

static enum status delete_parts(struct server_request *r, struct stream_delete *d) {
    struct topic **topics;
    int32_t count;
    enum status st = topics_of_stream(r, d->stream_id, &topics, &count);
    if (st)
        return st;
    d->topics.parts = arena_take_array(&r->arena, struct backend_delete_part, count);
    d->topics.parts_count = d->topics.parts ? count : 0;
    for (int32_t i = 0; i < d->topics.parts_count; i++)
        d->topics.parts[i] = (struct backend_delete_part){.name = STR_NULL, .id = topic_info(topics[i])->id};
    topics_release(topics, count);
    return d->topics.parts ? ST_OK : ST_NO_MEMORY;
}

void delete_stream_handle(struct server_request *r) {
    struct stream_info info;
    struct stream_delete *d = request_take(r, 1, sizeof *d);
    if (!d)
        return;
    uint32_t code = managed_stream(r, &delete_stream_in(r)->stream, &info);
    d->request = r;
    d->stream_id = info.id;
    if (!code)
        code = code_of_status(delete_parts(r, d));
    if (code) {
        request_refuse(r, code);
        return;
    }
    d->topics.arena = &r->arena;
    d->topics.deadline_ms = loop_now_ms(r->loop) + DELETE_MS;
    op_init(&d->topics.op, r->loop, delete_on_topics);
    backend_delete(r->server->settings.backend, &d->topics);
}
