#include "bridge/error_map.h"

#include "iggy/errors.h"

/* What a code means for each call. An empty place (ST_OK): as `status`. */
struct row {
    uint32_t code;
    enum status status, send, read, offsets;
};

/* In the order of F's table; the codes that 0.12 added where they belong by what a client can do. */
static const struct row rows[] = {
    {IGGY_ERR_RESOURCE_NOT_FOUND, .status = ST_NOT_FOUND},
    {IGGY_ERR_STREAM_ID_NOT_FOUND, .status = ST_NOT_FOUND},
    {IGGY_ERR_STREAM_NAME_NOT_FOUND, .status = ST_NOT_FOUND},
    {IGGY_ERR_TOPIC_ID_NOT_FOUND, .status = ST_NOT_FOUND},
    {IGGY_ERR_TOPIC_NAME_NOT_FOUND, .status = ST_NOT_FOUND},
    {IGGY_ERR_PARTITION_NOT_FOUND, .status = ST_NOT_FOUND},
    {IGGY_ERR_NO_PARTITIONS, .status = ST_NOT_FOUND},
    {IGGY_ERR_UNAUTHORIZED, .status = ST_DENIED},
    {IGGY_ERR_INVALID_CREDENTIALS, .status = ST_LOGIN_REFUSED},
    {IGGY_ERR_INVALID_USERNAME, .status = ST_LOGIN_REFUSED},
    {IGGY_ERR_INVALID_PASSWORD, .status = ST_LOGIN_REFUSED},
    {IGGY_ERR_USER_INACTIVE, .status = ST_LOGIN_REFUSED},
    /* The connection: a send, or a change, may have landed. */
    {IGGY_ERR_DISCONNECTED, .status = ST_UNAVAILABLE, .send = ST_TIMED_OUT},
    {IGGY_ERR_CONNECTION_CLOSED, .status = ST_UNAVAILABLE, .send = ST_TIMED_OUT},
    {IGGY_ERR_EMPTY_RESPONSE, .status = ST_UNAVAILABLE, .send = ST_TIMED_OUT},
    {IGGY_ERR_TCP_ERROR, .status = ST_UNAVAILABLE, .send = ST_TIMED_OUT},
    {IGGY_ERR_STALE_CLIENT, .status = ST_UNAVAILABLE, .send = ST_TIMED_OUT},
    {IGGY_ERR_TRANSIENT_NOT_COMMITTED, .status = ST_TIMED_OUT, .read = ST_UNAVAILABLE,
     .offsets = ST_UNAVAILABLE},
    {IGGY_ERR_TASK_TIMEOUT, .status = ST_TIMED_OUT, .read = ST_UNAVAILABLE, .offsets = ST_UNAVAILABLE},
    /* Nothing was done. */
    {IGGY_ERR_NOT_CONNECTED, .status = ST_UNAVAILABLE},
    {IGGY_ERR_CLIENT_SHUTDOWN, .status = ST_UNAVAILABLE},
    {IGGY_ERR_TRANSIENT_NOT_ACCEPTED, .status = ST_UNAVAILABLE},
    {IGGY_ERR_UNAUTHENTICATED, .status = ST_UNAVAILABLE},
    {IGGY_ERR_HISTORY_UNAVAILABLE, .status = ST_UNAVAILABLE},
    {IGGY_ERR_LIFECYCLE_BUSY, .status = ST_UNAVAILABLE},
    {IGGY_ERR_NOT_PRIMARY, .status = ST_UNAVAILABLE},
    {IGGY_ERR_DEFERRED_POLL_CAPACITY_EXCEEDED, .status = ST_UNAVAILABLE},
    {IGGY_ERR_PARTITION_HISTORY_CHANGED, .status = ST_UNAVAILABLE},
    /* Below what a server remembers: nobody knows. Not a code that a producer would take for "again". */
    {IGGY_ERR_REQUEST_TOO_OLD, .status = ST_REFUSED, .offsets = ST_UNAVAILABLE},
    {IGGY_ERR_INVALID_TOPIC_NAME, .status = ST_BAD_NAME},
    {IGGY_ERR_STREAM_NAME_ALREADY_EXISTS, .status = ST_EXISTS},
    {IGGY_ERR_TOPIC_NAME_ALREADY_EXISTS, .status = ST_EXISTS},
    {IGGY_ERR_CONSUMER_GROUP_NAME_ALREADY_EXISTS, .status = ST_EXISTS},
    {IGGY_ERR_TOO_MANY_PARTITIONS, .status = ST_BAD_PARTITIONS},
    {IGGY_ERR_INVALID_PARTITIONS_COUNT, .status = ST_BAD_PARTITIONS},
    {IGGY_ERR_PARTITIONS_LIMIT_REACHED, .status = ST_POLICY},
    {IGGY_ERR_TOO_BIG_MESSAGE_PAYLOAD, .status = ST_TOO_BIG, .read = ST_REFUSED},
    {IGGY_ERR_TOO_BIG_USER_HEADERS, .status = ST_TOO_BIG, .read = ST_REFUSED},
    {IGGY_ERR_CONSUMER_OFFSET_NOT_FOUND, .status = ST_NO_GROUP},
    {IGGY_ERR_CONSUMER_GROUP_ID_NOT_FOUND, .status = ST_NO_GROUP},
    {IGGY_ERR_CONSUMER_GROUP_NAME_NOT_FOUND, .status = ST_NO_GROUP},
    {IGGY_ERR_TOO_MANY_CONSUMER_OFFSETS, .status = ST_REFUSED, .offsets = ST_POLICY},
    {IGGY_ERR_PRODUCER_SEQUENCE_OUT_OF_ORDER, .status = ST_BAD_SEQUENCE},
    {IGGY_ERR_PRODUCER_EPOCH_FENCED, .status = ST_FENCED},
    {IGGY_ERR_PRODUCER_UNKNOWN, .status = ST_UNKNOWN_PRODUCER},
};

static enum status pick(const struct row *r, enum iggy_call_kind call) {
    const enum status by_call[] = {
        [IGGY_CALL_SEND] = r->send,
        [IGGY_CALL_READ] = r->read,
        [IGGY_CALL_OFFSETS] = r->offsets,
    };
    return by_call[call] ? by_call[call] : r->status;
}

enum status iggy_status_of(uint32_t code, enum iggy_call_kind call) {
    if (code == IGGY_OK)
        return ST_OK;
    if (code == IGGY_ERR_REQUEST_ALREADY_APPLIED)
        return call == IGGY_CALL_READ ? ST_REFUSED : ST_OK;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].code == code)
            return pick(&rows[i], call);
    return ST_REFUSED;
}
