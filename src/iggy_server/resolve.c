/* What the identifiers of a request stand for, what its user may do, and the codes of other modules' statuses. */
#include "base/le.h"
#include "iggy_server/request.h"

uint32_t request_stream(struct server_request *r, const struct iggy_identifier *id, struct stream_info *out) {
    struct store *store = r->server->settings.store;
    bool found = id->kind == IGGY_BY_ID ? store_stream_by_id(store, id->id, out)
                                        : store_stream_by_name(store, id->name, out);
    return found ? 0 : IGGY_ERR_STREAM_ID_NOT_FOUND;
}

uint32_t request_topic(struct server_request *r, const struct iggy_identifier *stream,
                       const struct iggy_identifier *topic, struct topic **out) {
    struct store *store = r->server->settings.store;
    struct stream_info info;
    uint32_t code = request_stream(r, stream, &info);
    if (code)
        return code;
    struct topic *t = topic->kind == IGGY_BY_ID ? store_topic_by_number(store, info.id, topic->id)
                                                : store_topic_in(store, info.id, topic->name);
    if (!t)
        return IGGY_ERR_TOPIC_ID_NOT_FOUND;
    *out = t;
    return 0;
}

uint32_t request_allowed(struct server_request *r, enum user_action action, uint32_t stream_id,
                         uint32_t topic_id) {
    return users_may(r->server->settings.users, r->user_id, action, stream_id, topic_id)
               ? 0
               : IGGY_ERR_UNAUTHORIZED;
}

uint32_t request_topic_for(struct server_request *r, enum user_action action,
                           const struct iggy_identifier *stream, const struct iggy_identifier *topic,
                           struct topic **out) {
    uint32_t code = request_topic(r, stream, topic, out);
    if (code)
        return code;
    const struct topic_info *info = topic_info(*out);
    return request_allowed(r, action, info->stream_id, info->topic_id);
}

/* Another one for each partition of each topic that ever was; 0 would mean any. */
static uint64_t incarnation_of(const struct topic *t, uint32_t partition) {
    const struct uuid *id = &topic_info(t)->id;
    uint64_t mixed = (le_get64(id->b) ^ (le_get64(id->b + 8) * UINT64_C(0x9e3779b97f4a7c15))) +
                     ((uint64_t)partition + 1) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed ^= mixed >> 31;
    return mixed != 0 ? mixed : 1;
}

struct iggy_partition_context partition_context(struct server_request *r, const struct topic *t,
                                                uint32_t partition) {
    return (struct iggy_partition_context){.incarnation = incarnation_of(t, partition),
                                           .metadata_op = atomic_load(&r->server->metadata_op)};
}

uint32_t partition_context_check(struct server_request *r, const struct topic *t, uint32_t partition,
                                 uint64_t incarnation) {
    (void)r;
    return incarnation == 0 || incarnation == incarnation_of(t, partition) ? 0 : IGGY_ERR_HISTORY_UNAVAILABLE;
}

/* long: a status a row */
uint32_t code_of_status(enum status st) {
    switch (st) {
    case ST_OK:
        return 0;
    case ST_NOT_FOUND:
    case ST_UNKNOWN_ID:
        return IGGY_ERR_RESOURCE_NOT_FOUND;
    case ST_BAD_NAME:
        return IGGY_ERR_INVALID_IDENTIFIER;
    case ST_BAD_LENGTH:
    case ST_BAD_RECORD:
    case ST_TRUNCATED:
    case ST_TRAILING:
        return IGGY_ERR_INVALID_MESSAGES_SIZE;
    case ST_BAD_CRC:
        return IGGY_ERR_INVALID_BATCH_CHECKSUM;
    case ST_BAD_TIMESTAMP:
        return IGGY_ERR_INVALID_MESSAGE_TIMESTAMP_DELTA;
    case ST_TOO_BIG:
        return IGGY_ERR_TOO_BIG_MESSAGE_PAYLOAD;
    case ST_OUT_OF_RANGE:
        return IGGY_ERR_INVALID_OFFSET;
    case ST_CORRUPT:
    case ST_UNMAPPABLE:
        return IGGY_ERR_CANNOT_READ_MESSAGE;
    case ST_NO_SPACE:
    case ST_READ_ONLY:
        return IGGY_ERR_CANNOT_APPEND_MESSAGE;
    case ST_IO:
        return IGGY_ERR_IO_ERROR;
    case ST_NO_MEMORY:
    case ST_OVER_BUDGET:
    case ST_UNAVAILABLE:
    case ST_AGAIN:
        return IGGY_ERR_TRANSIENT_NOT_ACCEPTED;
    case ST_TIMED_OUT:
    case ST_CANCELED:
        return IGGY_ERR_TRANSIENT_NOT_COMMITTED;
    case ST_IN_USE:
        return IGGY_ERR_LIFECYCLE_BUSY;
    case ST_INVALID:
        return IGGY_ERR_INVALID_COMMAND;
    case ST_UNSUPPORTED:
    case ST_BAD_CODEC:
    case ST_TRANSACTIONAL:
        return IGGY_ERR_FEATURE_UNAVAILABLE;
    case ST_DENIED:
        return IGGY_ERR_UNAUTHORIZED;
    case ST_BAD_PARTITIONS:
        return IGGY_ERR_TOO_MANY_PARTITIONS;
    case ST_POLICY:
        return IGGY_ERR_PARTITIONS_LIMIT_REACHED;
    case ST_BAD_SEQUENCE:
        return IGGY_ERR_PRODUCER_SEQUENCE_OUT_OF_ORDER;
    case ST_FENCED:
        return IGGY_ERR_PRODUCER_EPOCH_FENCED;
    case ST_UNKNOWN_PRODUCER:
        return IGGY_ERR_PRODUCER_UNKNOWN;
    case ST_NO_GROUP:
        return IGGY_ERR_CONSUMER_GROUP_ID_NOT_FOUND;
    default:
        return IGGY_ERR_ERROR;
    }
}
