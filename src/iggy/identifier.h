/*
 * The small fields that bodies share: which stream, topic, group or user, which consumer, which partition.
 * Decoding leaves names and keys as views into the input. Encoding refuses what a decoder would refuse, because a
 * server of August 2026 does not survive an identifier that it can't read.
 */
#ifndef IGGY_IDENTIFIER_H
#define IGGY_IDENTIFIER_H

#include "base/base.h"
#include "base/rbuf.h"
#include "base/wbuf.h"
#include "iggy/iggy.h"

enum iggy_identifier_kind {
    IGGY_BY_ID = 1,
    IGGY_BY_NAME = 2,
};

/* A name of digits is a name. Id 0 is an id like others. */
struct iggy_identifier {
    uint8_t kind;    /* enum iggy_identifier_kind */
    uint32_t id;     /* of IGGY_BY_ID */
    struct str name; /* of IGGY_BY_NAME: UTF-8 of 1..255 bytes */
};

struct iggy_consumer {
    uint8_t kind; /* enum iggy_consumer_kind */
    struct iggy_identifier id;
};

struct iggy_maybe_partition {
    bool present;
    uint32_t id; /* 0 if absent */
};

struct iggy_partitioning {
    uint8_t kind;          /* enum iggy_partitioning_kind */
    uint32_t partition_id; /* of IGGY_PARTITION_ID */
    struct bytes key;      /* of IGGY_MESSAGES_KEY: 1..255 bytes */
};

struct iggy_polling {
    uint8_t kind; /* enum iggy_strategy */
    uint64_t value;
};

static inline struct iggy_identifier iggy_by_id(uint32_t id) {
    return (struct iggy_identifier){.kind = IGGY_BY_ID, .id = id};
}
static inline struct iggy_identifier iggy_by_name(struct str name) {
    return (struct iggy_identifier){.kind = IGGY_BY_NAME, .name = name};
}

/*
 * Decode one field, at in. Any thread.
 *
 * ST_TRUNCATED   in ends too early
 * ST_INVALID     an unknown kind, a length that the kind doesn't have, a name that is not UTF-8, a flag above 1
 */
enum status iggy_identifier_decode(struct rbuf *in, struct iggy_identifier *out) MUST_USE;
enum status iggy_consumer_decode(struct rbuf *in, uint32_t version, struct iggy_consumer *out) MUST_USE;
enum status iggy_maybe_partition_decode(struct rbuf *in, struct iggy_maybe_partition *out) MUST_USE;
enum status iggy_partitioning_decode(struct rbuf *in, struct iggy_partitioning *out) MUST_USE;
enum status iggy_polling_decode(struct rbuf *in, struct iggy_polling *out) MUST_USE;

/*
 * Write one field to out, which has room for IGGY_FIELD_BYTES_MAX bytes; gives its length, or 0 where decoding would
 * answer ST_INVALID. Any thread.
 */
#define IGGY_FIELD_BYTES_MAX 258
size_t iggy_identifier_encode(const struct iggy_identifier *id, uint8_t *out) MUST_USE;
size_t iggy_consumer_encode(const struct iggy_consumer *c, uint32_t version, uint8_t *out) MUST_USE;
size_t iggy_maybe_partition_encode(const struct iggy_maybe_partition *p, uint8_t *out) MUST_USE;
size_t iggy_partitioning_encode(const struct iggy_partitioning *p, uint8_t *out) MUST_USE;
size_t iggy_polling_encode(const struct iggy_polling *p, uint8_t *out) MUST_USE;

/*
 * The partition that a messages key goes to: XXH32 of it, modulo partitions_count (>= 1). Servers and official clients
 * agree on this. Any thread.
 */
uint32_t iggy_key_partition(struct bytes key, uint32_t partitions_count);

/* The number that a consumer's offsets are kept under: its id, or XXH32 of its name, so that two names may meet. */
uint32_t iggy_consumer_number(const struct iggy_identifier *id);
#endif
