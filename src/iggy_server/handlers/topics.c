/*
 * get_topic 300, get_topics 301, create_topic 302, delete_topic 303, update_topic 304, purge_topic 305, update_resource 16, create_partitions 402,
 * delete_partitions 403, delete_segments 503, get_partition_route 105.
 *
 * A purge drops what is stored and lets offsets go on, so that nobody who reads finds himself beyond the end.
 */
#include "backend/store/store_backend.h"
#include "base/mem.h"
#include "iggy/tlv.h"
#include "iggy_server/describe.h"
#include "iggy_server/resources.h"
#include "iggy_server/topic_options.h"
#include "net/loop.h"

#define DELETE_MS     ((int64_t)30000)
#define TOPICS_MAX    4096 /* in a stream */
#define RESIZE_POLICY "iggy.partition_resize_policy"

static uint32_t topic_code(enum status st) {
    switch (st) {
    case ST_EXISTS:
        return IGGY_ERR_TOPIC_NAME_ALREADY_EXISTS;
    case ST_NOT_FOUND:
    case ST_UNKNOWN_ID:
        return IGGY_ERR_TOPIC_ID_NOT_FOUND;
    case ST_BAD_NAME:
        return IGGY_ERR_INVALID_TOPIC_NAME;
    default:
        return code_of_status(st);
    }
}

/* ---- looking ---- */

static enum status topic_details(struct server_request *r, struct topic *t, struct iggy_topic *topic,
                                 struct iggy_partition **partitions) {
    enum status st = describe_topic(r, t, topic);
    return st ? st : describe_partitions(r, t, topic->partitions_count, partitions);
}

void get_topic_handle(struct server_request *r) {
    const struct iggy_topic_req *in = get_topic_in(r);
    struct iggy_get_topic_res answer = {.found = true};
    struct topic *t = NULL;
    if (request_topic(r, &in->stream, &in->topic, &t)) {
        request_not_found(r);
        return;
    }
    const struct topic_info *info = topic_info(t);
    uint32_t code = request_allowed(r, ACTION_READ_TOPIC, info->stream_id, info->topic_id);
    if (!code)
        code = code_of_status(topic_details(r, t, &answer.topic, &answer.partitions));
    answer.partitions_count = answer.topic.partitions_count;
    if (code)
        request_refuse(r, code);
    else
        request_answer(r, &answer);
    topic_unref(t);
}

void get_topics_handle(struct server_request *r) {
    struct stream_info info;
    struct topic **topics = NULL;
    int32_t count = 0;
    struct iggy_get_topics_res answer = {.topics = NULL};
    if (request_stream(r, &get_topics_in(r)->stream, &info)) {
        request_answer(r, &answer);
        return;
    }
    uint32_t code = request_allowed(r, ACTION_READ_TOPICS, info.id, 0);
    if (code) {
        request_refuse(r, code);
        return;
    }
    enum status st = topics_of_stream(r, info.id, &topics, &count);
    if (!st)
        st = describe_topics(r, topics, count, &answer.topics);
    answer.topics_count = (uint32_t)count;
    if (st)
        request_refuse(r, code_of_status(st));
    else
        request_answer(r, &answer);
    topics_release(topics, count);
}

void get_partition_route_handle(struct server_request *r) {
    const struct iggy_get_partition_route_req *in = get_partition_route_in(r);
    struct topic *t = NULL;
    uint32_t code = request_topic(r, &in->stream, &in->topic, &t);
    if (!code && in->partition_id >= (uint32_t)topic_partitions_count(t))
        code = IGGY_ERR_PARTITION_NOT_FOUND;
    if (code) {
        request_refuse(r, code);
    } else {
        const struct iggy_partition_context context = partition_context(r, t, in->partition_id);
        request_answer(r, &(struct iggy_get_partition_route_res){
                              .incarnation = context.incarnation,
                              .metadata_op = context.metadata_op,
                              .partitions_count = (uint32_t)topic_partitions_count(t),
                          });
    }
    topic_unref(t);
}

/* ---- creating ---- */

/* 0; 2015, 2021. */
static uint32_t create_counts(struct server_request *r, uint32_t stream_id, uint32_t partitions_count) {
    struct topic **topics;
    int32_t count;
    if (partitions_count > IGGY_PARTITIONS_MAX)
        return IGGY_ERR_TOO_MANY_PARTITIONS;
    uint32_t code = code_of_status(topics_of_stream(r, stream_id, &topics, &count));
    if (code)
        return code;
    topics_release(topics, count);
    return count >= TOPICS_MAX ? IGGY_ERR_TOO_MANY_TOPICS : 0;
}

static uint32_t topic_make(struct server_request *r, const struct stream_info *stream, struct topic **out) {
    const struct iggy_create_topic_req *in = create_topic_in(r);
    struct topic_patch patch = {.options = in->options,
                                .version = r->version,
                                .partitions_count = in->partitions_count,
                                .created = true};
    struct topic_settings settings;
    topic_settings_load(&settings, &r->arena, NULL);
    uint32_t code = topic_settings_apply(&settings, &patch);
    if (code || settings.no_memory)
        return code ? code : code_of_status(ST_NO_MEMORY);
    struct store_topic_new want = {
        .stream = str_of(stream->name),
        .name = in->name,
        .partitions_count = (int32_t)in->partitions_count,
        .settings = settings.items,
        .settings_count = settings.count,
        .cluster = store_backend_cluster(r->server->settings.backend),
    };
    enum status st = store_topic_create(r->server->settings.store, &want, out);
    return st == ST_NOT_FOUND ? IGGY_ERR_STREAM_ID_NOT_FOUND : topic_code(st);
}

void create_topic_handle(struct server_request *r) {
    const struct iggy_create_topic_req *in = create_topic_in(r);
    struct stream_info stream;
    struct topic *t = NULL;
    struct iggy_create_topic_res answer = {.partitions = NULL};
    uint32_t code = request_stream(r, &in->stream, &stream);
    if (!code)
        code = request_allowed(r, ACTION_CREATE_TOPIC, stream.id, 0);
    if (!code)
        code = create_counts(r, stream.id, in->partitions_count);
    if (!code)
        code = topic_make(r, &stream, &t);
    if (!code)
        code = code_of_status(topic_details(r, t, &answer.topic, &answer.partitions));
    answer.partitions_count = answer.topic.partitions_count;
    if (code)
        request_refuse(r, code);
    else
        request_answer(r, &answer);
    topic_unref(t);
}

/* ---- changing ---- */

/* A change of a topic: options to set, and options to take back. */
struct topic_change {
    struct topic_patch patch;
    struct str name; /* P11's, beside the options; len -1: none */
    const struct iggy_reset_option *reset;
    uint32_t reset_count;
};

/* The settings of t as they will be. */
static uint32_t topic_settings_next(struct server_request *r, struct topic *t, struct topic_change *change,
                                    struct topic_settings *out) {
    topic_settings_load(out, &r->arena, t);
    uint32_t code = topic_settings_apply(out, &change->patch);
    for (uint32_t i = 0; !code && i < change->reset_count; i++)
        code = topic_settings_reset(out, r->version, change->reset[i].key);
    return !code && out->no_memory ? code_of_status(ST_NO_MEMORY) : code;
}

/* Once more as long as somebody else, a Kafka client too, changes settings meanwhile: none of them loses what it set. */
static uint32_t topic_change_run(struct server_request *r, struct topic *t, struct topic_change *change) {
    struct store *store = r->server->settings.store;
    struct topic_settings settings;
    enum status st = ST_AGAIN;
    while (st == ST_AGAIN) {
        uint32_t code = topic_settings_next(r, t, change, &settings);
        if (code)
            return code;
        struct str name = change->name.len >= 0 ? change->name : change->patch.name;
        st = name.len >= 0 && !str_equal(name, topic_info(t)->name_str) ? store_topic_rename(store, t, name)
                                                                        : ST_OK;
        const struct store_topic_settings next = {settings.items, settings.count, settings.version};
        if (!st)
            st = store_topic_set(store, t, &next);
    }
    return topic_code(st);
}

void update_topic_handle(struct server_request *r) {
    const struct iggy_update_topic_req *in = update_topic_in(r);
    struct topic *t = NULL;
    uint32_t code = request_topic_for(r, ACTION_MANAGE_TOPIC, &in->stream, &in->topic, &t);
    if (!code) {
        struct topic_change change = {.patch = {.options = in->options,
                                                .version = r->version,
                                                .partitions_count = (uint32_t)topic_partitions_count(t)},
                                      .name = in->name};
        code = topic_change_run(r, t, &change);
    }
    topic_unref(t);
    request_end(r, code);
}

/* Whether a key is in the options, too, or twice in the list. */
static bool reset_repeats(const struct iggy_update_resource_req *in, uint32_t index) {
    struct tlv_entry e;
    if (tlv_find(in->options, in->reset[index].key, &e))
        return true;
    for (uint32_t i = 0; i < index; i++)
        if (str_equal(in->reset[i].key, in->reset[index].key))
            return true;
    return false;
}

static uint32_t topic_update_resource(struct server_request *r, const struct iggy_update_resource_req *in) {
    struct topic *t = NULL;
    struct topic_change change = {.patch = {.options = in->options, .version = r->version},
                                  .name = STR_NULL,
                                  .reset = in->reset,
                                  .reset_count = in->reset_count};
    uint32_t code = request_topic_for(r, ACTION_MANAGE_TOPIC, &in->stream, &in->topic, &t);
    if (!code && ((in->options.len <= 0 && in->reset_count == 0) || tlv_check_options(in->options)))
        code = IGGY_ERR_INVALID_COMMAND;
    for (uint32_t i = 0; !code && i < in->reset_count; i++)
        code = reset_repeats(in, i) ? IGGY_ERR_INVALID_COMMAND : 0;
    if (!code) {
        change.patch.partitions_count = (uint32_t)topic_partitions_count(t);
        code = topic_change_run(r, t, &change);
    }
    topic_unref(t);
    return code;
}

void update_resource_handle(struct server_request *r) {
    const struct iggy_update_resource_req *in = update_resource_in(r);
    switch ((enum iggy_resource)in->scope) {
    case IGGY_RESOURCE_TOPIC:
        request_end(r, topic_update_resource(r, in));
        break;
    case IGGY_RESOURCE_STREAM:
        request_end(r, stream_update_resource(r, in));
        break;
    case IGGY_RESOURCE_USER:
        request_end(r, user_update_resource(r, in));
        break;
    }
}

/* ---- dropping what is stored ---- */

uint32_t topic_purge(struct topic *t) {
    for (int32_t i = 0; i < topic_partitions_count(t); i++) {
        struct partition *p = topic_partition(t, i);
        enum status st = p ? partition_drop(p, -1, NULL) : ST_OK;
        if (st)
            return code_of_status(st);
    }
    return 0;
}

void purge_topic_handle(struct server_request *r) {
    const struct iggy_topic_req *in = purge_topic_in(r);
    struct topic *t = NULL;
    uint32_t code = request_topic_for(r, ACTION_MANAGE_TOPIC, &in->stream, &in->topic, &t);
    if (!code)
        code = topic_purge(t);
    topic_unref(t);
    request_end(r, code);
}

void delete_segments_handle(struct server_request *r) {
    const struct iggy_delete_segments_req *in = delete_segments_in(r);
    struct topic *t = NULL;
    uint32_t code = request_topic_for(r, ACTION_MANAGE_TOPIC, &in->stream, &in->topic, &t);
    struct partition *p =
        code || in->partition_id > INT32_MAX ? NULL : topic_partition(t, (int32_t)in->partition_id);
    if (!code && !p)
        code = IGGY_ERR_PARTITION_NOT_FOUND;
    int32_t count = in->segments_count > INT32_MAX ? INT32_MAX : (int32_t)in->segments_count;
    if (!code && count > 0)
        code = code_of_status(partition_drop(p, count, NULL));
    topic_unref(t);
    request_end(r, code);
}

/* ---- deleting a topic ---- */

struct topic_delete {
    struct server_request *request;
    struct backend_delete call;
    struct backend_delete_part part;
    uint32_t stream_id, topic_id;
};

static void delete_on_done(struct op *op) {
    struct topic_delete *d = container_of(op, struct topic_delete, call.op);
    if (!d->part.status)
        groups_forget_topic(d->request->server->groups, d->stream_id, d->topic_id);
    request_end(d->request, topic_code(d->part.status));
}

void delete_topic_handle(struct server_request *r) {
    const struct iggy_topic_req *in = delete_topic_in(r);
    struct topic *t = NULL;
    struct topic_delete *d = request_take(r, 1, sizeof *d);
    if (!d)
        return;
    uint32_t code = request_topic_for(r, ACTION_MANAGE_TOPIC, &in->stream, &in->topic, &t);
    if (code) {
        topic_unref(t);
        request_refuse(r, code);
        return;
    }
    const struct topic_info *info = topic_info(t);
    *d = (struct topic_delete){
        .request = r,
        .part = {.name = STR_NULL, .id = info->id},
        .stream_id = info->stream_id,
        .topic_id = info->topic_id,
        .call = {.arena = &r->arena, .parts_count = 1, .deadline_ms = loop_now_ms(r->loop) + DELETE_MS},
    };
    d->call.parts = &d->part;
    topic_unref(t);
    op_init(&d->call.op, r->loop, delete_on_done);
    backend_delete(r->server->settings.backend, &d->call);
}

/* ---- partitions ---- */

/* The topic of a request that changes the number of partitions. 0; 1009, 2010, 41, 2015, 2023. */
static uint32_t resized_topic(struct server_request *r, const struct iggy_partitions_req *in,
                              struct topic **out) {
    uint32_t code = request_topic_for(r, ACTION_MANAGE_TOPIC, &in->stream, &in->topic, out);
    if (!code && (in->partitions_count == 0 || in->partitions_count > IGGY_PARTITIONS_MAX))
        code = IGGY_ERR_TOO_MANY_PARTITIONS;
    if (!code && topic_setting_is(*out, RESIZE_POLICY, "fixed"))
        code = IGGY_ERR_PARTITION_RESIZE_DISABLED;
    return code;
}

void create_partitions_handle(struct server_request *r) {
    const struct iggy_partitions_req *in = create_partitions_in(r);
    struct topic *t = NULL;
    uint32_t code = resized_topic(r, in, &t);
    if (!code)
        code = topic_code(store_topic_grow(r->server->settings.store, t,
                                           topic_partitions_count(t) + (int32_t)in->partitions_count));
    topic_unref(t);
    request_end(r, code);
}

void delete_partitions_handle(struct server_request *r) {
    const struct iggy_partitions_req *in = delete_partitions_in(r);
    struct topic *t = NULL;
    uint32_t code = resized_topic(r, in, &t);
    if (!code && in->partitions_count > (uint32_t)topic_partitions_count(t))
        code = IGGY_ERR_TOO_MANY_PARTITIONS;
    if (!code)
        code = topic_code(store_topic_shrink(r->server->settings.store, t,
                                             topic_partitions_count(t) - (int32_t)in->partitions_count));
    topic_unref(t);
    request_end(r, code);
}
