#include "kafka/errors.h"

/* What a status means where no API says otherwise. Not listed: UNKNOWN_SERVER_ERROR. */
static const int16_t codes[] = {
    [ST_OK] = KERR_NONE,
    [ST_BAD_CRC] = KERR_CORRUPT_MESSAGE, /* D1-8: clients resend */
    [ST_CORRUPT] = KERR_CORRUPT_MESSAGE,
    [ST_BAD_RECORD] = KERR_INVALID_RECORD,
    [ST_BAD_TIMESTAMP] = KERR_INVALID_TIMESTAMP,
    [ST_BAD_CODEC] = KERR_UNSUPPORTED_COMPRESSION_TYPE,
    [ST_TRANSACTIONAL] = KERR_UNSUPPORTED_VERSION, /* D1-1, D1-9 */
    [ST_NOT_FOUND] = KERR_UNKNOWN_TOPIC_OR_PARTITION,
    [ST_UNKNOWN_ID] = KERR_UNKNOWN_TOPIC_ID,
    [ST_EXISTS] = KERR_TOPIC_ALREADY_EXISTS,
    [ST_BAD_NAME] = KERR_INVALID_TOPIC_EXCEPTION,
    [ST_TOO_BIG] = KERR_MESSAGE_TOO_LARGE,
    [ST_OVER_BUDGET] = KERR_NOT_LEADER_OR_FOLLOWER, /* D1-41: the client retries */
    [ST_OUT_OF_RANGE] = KERR_OFFSET_OUT_OF_RANGE,
    [ST_UNAVAILABLE] = KERR_NOT_LEADER_OR_FOLLOWER,
    [ST_NOT_CONTROLLER] = KERR_NOT_CONTROLLER,
    [ST_TIMED_OUT] = KERR_REQUEST_TIMED_OUT,
    [ST_CANCELED] = KERR_REQUEST_TIMED_OUT,
    [ST_NO_SPACE] = KERR_KAFKA_STORAGE_ERROR,
    [ST_READ_ONLY] = KERR_KAFKA_STORAGE_ERROR,
    [ST_IO] = KERR_KAFKA_STORAGE_ERROR,
    [ST_INVALID] = KERR_INVALID_REQUEST,
    [ST_UNSUPPORTED] = KERR_UNSUPPORTED_VERSION,
    [ST_DENIED] = KERR_TOPIC_AUTHORIZATION_FAILED,
    [ST_BAD_PARTITIONS] = KERR_INVALID_PARTITIONS,
    [ST_POLICY] = KERR_POLICY_VIOLATION,
    [ST_BAD_SEQUENCE] = KERR_OUT_OF_ORDER_SEQUENCE_NUMBER,
    [ST_FENCED] = KERR_INVALID_PRODUCER_EPOCH,
    [ST_UNKNOWN_PRODUCER] = KERR_UNKNOWN_PRODUCER_ID,
};

int16_t kerr_of(enum status st) {
    if ((size_t)st >= COUNT_OF(codes) || (st != ST_OK && codes[st] == KERR_NONE))
        return KERR_UNKNOWN_SERVER_ERROR;
    return codes[st];
}

int16_t kerr_of_append(enum status st) {
    return st == ST_CORRUPT ? KERR_KAFKA_STORAGE_ERROR : kerr_of(st); /* the log is damaged, not the batch */
}

int16_t kerr_of_read(enum status st) {
    if (st == ST_TIMED_OUT || st == ST_CANCELED)
        return KERR_NOT_LEADER_OR_FOLLOWER; /* D.2: 7 folds to 6 */
    if (st == ST_BAD_NAME)
        return KERR_UNKNOWN_TOPIC_OR_PARTITION; /* D2-20 */
    return kerr_of(st);
}

int16_t kerr_of_offsets(enum status st) {
    switch (st) {
    case ST_UNAVAILABLE:
    case ST_TIMED_OUT:
    case ST_CANCELED:
    case ST_OVER_BUDGET:
    case ST_NO_MEMORY:
        return KERR_COORDINATOR_LOAD_IN_PROGRESS;
    case ST_NO_SPACE:
    case ST_READ_ONLY:
    case ST_IO:
        return KERR_NOT_COORDINATOR;
    case ST_TOO_BIG:
        return KERR_OFFSET_METADATA_TOO_LARGE;
    case ST_POLICY:
    case ST_INVALID:
        return KERR_UNKNOWN_SERVER_ERROR;
    default:
        return kerr_of(st);
    }
}
