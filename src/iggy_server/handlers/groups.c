/* Consumer groups: who may read the topic may use its groups. Names and members: iggy_server/groups.c. */
#include "iggy_server/groups.h"
#include "iggy_server/request.h"
#include "iggy_server/session.h"

/* The topic, held (topic_unref), if its groups may be used. 0, or 1009, 2010, 41. */
static uint32_t topic_of_groups(struct server_request *r, const struct iggy_identifier *stream,
                                const struct iggy_identifier *topic, struct topic **out) {
    struct topic *t = NULL;
    uint32_t code = request_topic_for(r, ACTION_READ_TOPIC, stream, topic, &t);
    if (code)
        topic_unref(t);
    else
        *out = t;
    return code;
}

void get_group_handle(struct server_request *r) {
    const struct iggy_group_req *in = get_group_in(r);
    struct iggy_get_group_res answer;
    struct topic *t;
    uint32_t code = topic_of_groups(r, &in->stream, &in->topic, &t);
    if (!code) {
        code = code_of_status(groups_get(r->server->groups, t, &in->group, &r->arena, &answer));
        topic_unref(t);
    }
    if (code)
        request_refuse(r, code);
    else if (!answer.found)
        request_not_found(r);
    else
        request_answer(r, &answer);
}

void get_groups_handle(struct server_request *r) {
    const struct iggy_topic_req *in = get_groups_in(r);
    struct iggy_get_groups_res answer;
    struct topic *t;
    uint32_t code = topic_of_groups(r, &in->stream, &in->topic, &t);
    if (!code) {
        code = code_of_status(groups_list(r->server->groups, t, &r->arena, &answer));
        topic_unref(t);
    }
    if (code)
        request_refuse(r, code);
    else
        request_answer(r, &answer);
}

void create_group_handle(struct server_request *r) {
    const struct iggy_create_group_req *in = create_group_in(r);
    struct iggy_group answer = {.name = in->name};
    struct topic *t;
    uint32_t code = topic_of_groups(r, &in->stream, &in->topic, &t);
    if (!code) {
        code = groups_create(r->server->groups, t, in->name, &answer.id);
        answer.partitions_count = (uint32_t)topic_partitions_count(t);
        topic_unref(t);
    }
    if (code)
        request_refuse(r, code);
    else
        request_answer(r, &answer);
}

/* These commands call a group that isn't there by one code, also when it was named; only offsets of kind 3 tell. */
static void group_end(struct server_request *r, uint32_t code) {
    request_end(r,
                code == IGGY_ERR_CONSUMER_GROUP_NAME_NOT_FOUND ? IGGY_ERR_CONSUMER_GROUP_ID_NOT_FOUND : code);
}

void delete_group_handle(struct server_request *r) {
    const struct iggy_group_req *in = delete_group_in(r);
    struct topic *t;
    uint32_t code = topic_of_groups(r, &in->stream, &in->topic, &t);
    if (!code) {
        code = groups_delete(r->server->groups, t, &in->group);
        topic_unref(t);
    }
    group_end(r, code);
}

void join_group_handle(struct server_request *r) {
    const struct iggy_group_req *in = join_group_in(r);
    struct topic *t;
    uint32_t code = topic_of_groups(r, &in->stream, &in->topic, &t);
    if (!code) {
        code = groups_join(r->server->groups, t, &in->group, r->session->number);
        topic_unref(t);
    }
    /* A session that ended meanwhile has left its groups already, and will not leave this one. */
    if (!code && session_has_ended(r->server->sessions, r->session))
        groups_forget_session(r->server->groups, r->session->number);
    group_end(r, code);
}

void leave_group_handle(struct server_request *r) {
    const struct iggy_group_req *in = leave_group_in(r);
    struct topic *t;
    uint32_t code = topic_of_groups(r, &in->stream, &in->topic, &t);
    if (!code) {
        code = groups_leave(r->server->groups, t, &in->group, r->session->number);
        topic_unref(t);
    }
    group_end(r, code);
}

/* Any login may ask: who isn't a member, for whatever reason, gets an empty body and joins again. */
void sync_group_handle(struct server_request *r) {
    const struct iggy_group_req *in = sync_group_in(r);
    struct iggy_sync_group_res answer = {.is_member = false};
    struct topic *t;
    uint32_t code = 0;
    if (request_topic(r, &in->stream, &in->topic, &t) == 0) {
        code = code_of_status(
            groups_sync(r->server->groups, t, &in->group, r->session->number, &r->arena, &answer));
        topic_unref(t);
    }
    if (code)
        request_refuse(r, code);
    else if (!answer.is_member)
        request_not_found(r);
    else
        request_answer(r, &answer);
}
