#include "kafka/admin.h"

#include <sys/random.h>

#define WAIT_MS_LEAST 1000
#define WAIT_MS_MOST  30000
#define LISTING_BYTES ((size_t)64 << 20)

int64_t admin_deadline_ms(const struct request *r, int32_t timeout_ms) {
    int32_t wait_ms = timeout_ms < WAIT_MS_LEAST ? WAIT_MS_LEAST : timeout_ms;
    return r->arrived_ms + (wait_ms > WAIT_MS_MOST ? WAIT_MS_MOST : wait_ms);
}

void admin_allow_listing(struct request *r) {
    r->arena.bytes_max += LISTING_BYTES;
}

struct str admin_assignment_problem(const struct request *r, struct int32s brokers) {
    if (brokers.count <= 0)
        return STR("The manual partition assignment includes an empty replica list.");
    for (int32_t i = 0; i < brokers.count; i++)
        if (brokers.items[i] != r->kafka->node_id)
            return STR("The manual partition assignment includes a broker that is not registered.");
    return brokers.count > 1 ? STR("The manual partition assignment includes a broker more than once.")
                             : STR_NULL;
}

struct str admin_message(enum status st) {
    switch (st) {
    case ST_OK:
    case ST_TIMED_OUT:
    case ST_CANCELED:
        return STR_NULL;
    case ST_NOT_FOUND:
        return STR("This server does not host this topic-partition.");
    case ST_UNKNOWN_ID:
        return STR("This server does not host this topic ID.");
    default:
        return str_of(status_text(st));
    }
}

struct uuid admin_random_uuid(void) {
    struct uuid id;
    if (getrandom(id.b, sizeof id.b, 0) != (ssize_t)sizeof id.b)
        memset(&id, 0x5a, sizeof id); /* before the system has any: it only must not be zero */
    id.b[6] = (uint8_t)((id.b[6] & 0x0f) | 0x40);
    id.b[8] = (uint8_t)((id.b[8] & 0x3f) | 0x80);
    return id;
}
