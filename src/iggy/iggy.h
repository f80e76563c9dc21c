/*
 * Numbers of the Iggy binary protocol (VSR framing) that every part of this folder shares.
 * The folder turns bytes into structs and back. It knows no socket, no clock and no libuv.
 *
 * All integers on the wire are little-endian. A frame is a 256-byte header (iggy/header.h) and a body (iggy/message.h).
 */
#ifndef IGGY_IGGY_H
#define IGGY_IGGY_H

#include "base/base.h"

#define IGGY_PORT                   8090
#define IGGY_HEADER_BYTES           256
#define IGGY_FRAME_BYTES_MAX        67108864 /* what a server accepts, header included; its replies may be longer */
#define IGGY_PAYLOAD_BYTES_MAX      64000000
#define IGGY_USER_HEADERS_BYTES_MAX 100000 /* of one message */
#define IGGY_OPTIONS_BYTES_MAX      100000
#define IGGY_OPTIONS_MAX            1024
#define IGGY_NAME_BYTES_MAX         255
#define IGGY_USERNAME_BYTES_MIN     3
#define IGGY_USERNAME_BYTES_MAX     50
#define IGGY_PASSWORD_BYTES_MIN     3
#define IGGY_PASSWORD_BYTES_MAX     100
#define IGGY_TOKEN_NAME_BYTES_MIN   3
#define IGGY_TOKEN_NAME_BYTES_MAX   30
#define IGGY_PARTITIONS_MAX         1000 /* in one request */
#define IGGY_SECRET_BYTES           32
#define IGGY_NO_PARTITION           UINT32_MAX /* in a poll's reply: not a member, or not the owner: sync again */
#define IGGY_NEVER                  UINT64_MAX /* message_expiry and a token's expiry; as max_topic_size: unlimited */

#define IGGY_POLL_WAIT_US_MAX     600000000u /* PollMessagesDeferred and FetchMessages */
#define IGGY_POLL_TIMEOUT_US_MAX  630000000u
#define IGGY_POLL_BYTES_MIN       344u
#define IGGY_FETCH_PARTITIONS_MAX 1000u

/* A protocol version as in a login: major << 20 | minor << 10 | patch. The layouts of a body depend on it. */
#define IGGY_VERSION(major, minor, patch) \
    ((uint32_t)(major) << 20 | (uint32_t)(minor) << 10 | (uint32_t)(patch))
enum iggy_version {
    IGGY_0_11 = 0x2c00,   /* P11 and P11s */
    IGGY_0_12_0 = 0x3000, /* P12: UpdateResource, partition contexts */
    IGGY_0_12_1 = 0x3001, /* FetchMessages */
    IGGY_0_12_2 = 0x3002, /* the nodes of a partition */
    IGGY_NEWEST = IGGY_0_12_2,
};
static_assert(IGGY_0_12_2 == IGGY_VERSION(0, 12, 2), "packed as in a login");

/*
 * Whether the tables of this folder describe a version: every patch of 0.11, and the three of 0.12. Edge builds are
 * known to change layouts, so a later patch is not taken for one of these.
 */
static inline bool iggy_version_is_known(uint32_t version) {
    return version >> 10 == IGGY_0_11 >> 10 || (version >= IGGY_0_12_0 && version <= IGGY_NEWEST);
}

/* What a frame is; every other value is traffic between replicas. */
enum iggy_frame_kind {
    IGGY_REQUEST = 5,
    IGGY_REPLY = 8,
    IGGY_EVICTION = 13,
};

/* Operations that are written by hand somewhere; the rest stand in commands.def. */
enum iggy_operation {
    IGGY_OP_REGISTER = 1,
    IGGY_OP_BY_CODE = 2, /* the command's code stands in the header */
    IGGY_OP_LOGOUT = 3,
};

enum iggy_eviction_reason {
    IGGY_EVICTED_NO_SESSION = 1,
    IGGY_EVICTED_INVALID_OPERATION = 4,
    IGGY_EVICTED_INVALID_BODY = 5,
    IGGY_EVICTED_INVALID_BODY_SIZE = 6,
    IGGY_EVICTED_SESSION_TOO_LOW = 7,
    IGGY_EVICTED_RELEASE_MISMATCH = 8,
    IGGY_EVICTED_INVALID_CREDENTIALS = 9,
    IGGY_EVICTED_INVALID_TOKEN = 10,
    IGGY_EVICTED_USER_INACTIVE = 11,
    IGGY_EVICTED_SESSION_ERROR = 12,
    IGGY_EVICTED_STALE_CLIENT = 13,
    IGGY_EVICTED_INCOMPATIBLE_PROTOCOL = 14,
    IGGY_EVICTED_MALFORMED_LOGIN = 15,
};

enum iggy_consumer_kind {
    IGGY_CONSUMER = 1,
    IGGY_CONSUMER_GROUP = 2,
    IGGY_EXTERNAL_GROUP = 3, /* P12: offsets that Iggy keeps for others, unchecked */
};

enum iggy_partitioning_kind {
    IGGY_BALANCED = 1,
    IGGY_PARTITION_ID = 2,
    IGGY_MESSAGES_KEY = 3,
};

enum iggy_strategy {
    IGGY_FROM_OFFSET = 1,
    IGGY_FROM_TIMESTAMP = 2, /* us, the server's time */
    IGGY_FROM_FIRST = 3,
    IGGY_FROM_LAST = 4, /* the last `count` messages */
    IGGY_FROM_NEXT = 5, /* after the stored offset */
};

enum iggy_ack_level {
    IGGY_ACK_NONE = 0,
    IGGY_ACK_QUORUM = 1,
};

enum iggy_resource {
    IGGY_RESOURCE_TOPIC = 1,
    IGGY_RESOURCE_STREAM = 2,
    IGGY_RESOURCE_USER = 3,
};

enum iggy_user_status {
    IGGY_USER_ACTIVE = 1,
    IGGY_USER_INACTIVE = 2,
};

/* 16 bytes as on the wire: a number, least significant byte first. */
struct iggy_u128 {
    uint8_t b[16];
};

/* 32 random bytes that let a P12 client take its session along to another connection. */
struct iggy_secret {
    uint8_t b[IGGY_SECRET_BYTES];
};

static inline bool iggy_u128_is_zero(const struct iggy_u128 *u) {
    static const struct iggy_u128 zero;
    return memcmp(u->b, zero.b, sizeof zero.b) == 0;
}
#endif
