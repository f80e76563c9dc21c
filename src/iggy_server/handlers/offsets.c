/*
 * store_consumer_offset 121, get_consumer_offset 120, delete_consumer_offset 122, of consumers, groups and external groups (0.12).
 *
 * A stored offset of the first two is the last consumed one, and there must be such a message; of an external group it is a number that is
 * kept as it comes, and the group must exist, whoever is in it. What is stored for external groups is on stable storage when it is answered,
 * for the others where the topic's consumer_offset_durability is `persisted`.
 */
#include "base/clock.h"
#include "iggy_server/groups.h"
#include "iggy_server/owner.h"
#include "iggy_server/request.h"
#include "store/store_offsets.h"

/* Whose offset of which partition a request is about. */
struct target {
    struct topic *topic; /* held */
    struct partition *partition;
    uint32_t partition_id;
    uint8_t kind;
    char owner_text[OFFSET_OWNER_BYTES];
    struct str owner;
};

/* 0; 1009, 2010, 3007, 41; 5000, 5003: no such group. t->topic may be held in any case. */
static uint32_t target_find(struct server_request *r, const struct iggy_consumer *consumer,
                            const struct iggy_identifier *stream, const struct iggy_identifier *topic,
                            struct target *t) {
    uint32_t number = iggy_consumer_number(&consumer->id);
    uint32_t code = request_topic_for(r, ACTION_POLL, stream, topic, &t->topic);
    if (code)
        return code;
    t->partition = topic_partition(t->topic, (int32_t)t->partition_id);
    if (!t->partition)
        return IGGY_ERR_PARTITION_NOT_FOUND;
    t->kind = consumer->kind;
    if (t->kind != IGGY_CONSUMER)
        code = groups_find(r->server->groups, t->topic, &consumer->id, &number);
    t->owner = offset_owner(t->owner_text, t->kind, number);
    return code;
}

/* A change tells unknown targets by one code, but for an external group, which its owner is expected to make. */
static uint32_t change_code(uint32_t code, uint8_t kind) {
    bool group =
        code == IGGY_ERR_CONSUMER_GROUP_ID_NOT_FOUND || code == IGGY_ERR_CONSUMER_GROUP_NAME_NOT_FOUND;
    if (code == IGGY_ERR_STREAM_ID_NOT_FOUND || code == IGGY_ERR_TOPIC_ID_NOT_FOUND ||
        code == IGGY_ERR_PARTITION_NOT_FOUND || (group && kind != IGGY_EXTERNAL_GROUP))
        return IGGY_ERR_RESOURCE_NOT_FOUND;
    return code;
}

/* What both changes check first. 0; 20, 41, 87, 5000, 5003. */
static uint32_t change_target(struct server_request *r, const struct iggy_store_consumer_offset_req *in,
                              struct target *t) {
    if (!in->partition.present)
        return IGGY_ERR_RESOURCE_NOT_FOUND;
    t->partition_id = in->partition.id;
    uint32_t code = change_code(target_find(r, &in->consumer, &in->stream, &in->topic, t), in->consumer.kind);
    if (!code && r->version >= IGGY_0_12_0)
        code = partition_context_check(r, t->topic, t->partition_id, r->header.partition_incarnation);
    return code;
}

static bool wants_sync(const struct target *t) {
    if (t->kind == IGGY_EXTERNAL_GROUP)
        return true;
    return topic_setting_is(t->topic, "iggy.consumer_offset_durability", "persisted");
}

/* A consumer can have consumed only what is there, and a member only of its own partitions. */
static uint32_t check_consumed(struct server_request *r, const struct iggy_store_consumer_offset_req *in,
                               const struct target *t) {
    uint32_t group_id;
    if (in->offset > INT64_MAX)
        return IGGY_ERR_INVALID_OFFSET;
    if (t->kind == IGGY_EXTERNAL_GROUP)
        return 0;
    enum status st = partition_open(t->partition, NULL);
    if (st && st != ST_CORRUPT)
        return code_of_status(st);
    if ((int64_t)in->offset >= partition_end(t->partition))
        return IGGY_ERR_INVALID_OFFSET;
    if (t->kind == IGGY_CONSUMER_GROUP &&
        (groups_find(r->server->groups, t->topic, &in->consumer.id, &group_id) ||
         !groups_owns(r->server->groups, t->topic, group_id, r->session->number, t->partition_id)))
        return IGGY_ERR_RESOURCE_NOT_FOUND;
    return 0;
}

static uint32_t offset_store(struct server_request *r, const struct iggy_store_consumer_offset_req *in,
                             const struct target *t) {
    struct store *store = r->server->settings.store;
    const struct store_offset offset = {
        .owner = t->owner,
        .topic = topic_info(t->topic)->id,
        .partition = (int32_t)t->partition_id,
        .offset = (int64_t)in->offset,
        .leader_epoch = -1,
        .committed_ms = clock_wall_ms(),
    };
    enum status st = store_offsets_set(store, &offset, 1);
    if (!st && wants_sync(t))
        st = store_offsets_sync(store);
    return st == ST_POLICY ? IGGY_ERR_TOO_MANY_CONSUMER_OFFSETS : code_of_status(st);
}

void store_consumer_offset_handle(struct server_request *r) {
    const struct iggy_store_consumer_offset_req *in = store_consumer_offset_in(r);
    struct target t = {0};
    uint32_t code = change_target(r, in, &t);
    if (!code)
        code = check_consumed(r, in, &t);
    if (!code)
        code = offset_store(r, in, &t);
    topic_unref(t.topic);
    request_end(r, code);
}

void delete_consumer_offset_handle(struct server_request *r) {
    const struct iggy_delete_consumer_offset_req *in = delete_consumer_offset_in(r);
    const struct iggy_store_consumer_offset_req same = {
        .consumer = in->consumer, .stream = in->stream, .topic = in->topic, .partition = in->partition};
    struct store *store = r->server->settings.store;
    struct target t = {0};
    int32_t count = 0;
    uint32_t code = change_target(r, &same, &t);
    if (!code) {
        const struct uuid *topic = &topic_info(t.topic)->id;
        enum status st = store_offsets_remove(store, t.owner, topic, (int32_t)t.partition_id, &count);
        if (!st && count > 0 && wants_sync(&t))
            st = store_offsets_sync(store);
        code = code_of_status(st);
    }
    if (!code && count == 0)
        code = IGGY_ERR_CONSUMER_OFFSET_NOT_FOUND;
    topic_unref(t.topic);
    request_end(r, code);
}

void get_consumer_offset_handle(struct server_request *r) {
    const struct iggy_get_consumer_offset_req *in = get_consumer_offset_in(r);
    struct target t = {.partition_id = in->partition.id};
    struct store_offset stored;
    uint32_t code = target_find(r, &in->consumer, &in->stream, &in->topic, &t);
    bool no_group =
        code == IGGY_ERR_CONSUMER_GROUP_ID_NOT_FOUND || code == IGGY_ERR_CONSUMER_GROUP_NAME_NOT_FOUND;
    enum status st = ST_NOT_FOUND;
    int64_t end = 0;
    if (!code) {
        st = store_offset_get(r->server->settings.store, t.owner, &topic_info(t.topic)->id,
                              (int32_t)t.partition_id, &r->arena, &stored);
        end = partition_end(t.partition);
    }
    topic_unref(t.topic);
    if (no_group || (!code && st == ST_NOT_FOUND)) {
        request_not_found(r);
    } else if (code || st) {
        request_refuse(r, code ? code : code_of_status(st));
    } else {
        request_answer(
            r, &(struct iggy_get_consumer_offset_res){.found = true,
                                                      .partition_id = t.partition_id,
                                                      .current_offset = end > 0 ? (uint64_t)end - 1 : 0,
                                                      .stored_offset = (uint64_t)stored.offset});
    }
}
