#include "kafka/admin.h"

#include <stdio.h>
#include <sys/random.h>

#include "base/logging.h"
#include "kafka/configs.h"

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

static bool is_digits(struct str s) {
    for (int32_t i = 0; i < s.len; i++)
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
    return s.len > 0;
}

struct str admin_node_problem(struct request *r, struct str name, bool any) {
    char own[16];
    int32_t own_len = (int32_t)snprintf(own, sizeof own, "%d", (int)r->kafka->node_id);
    if ((any && name.len == 0) || str_equal(name, (struct str){own, own_len}))
        return STR_NULL;
    struct str problem =
        is_digits(name)
            ? arena_printf(&r->arena, "Unexpected broker id, expected %s, but received %.*s", own, name.len,
                           name.ptr)
            : arena_printf(&r->arena, "Node id must be an integer, but it is: %.*s", name.len, name.ptr);
    return problem.ptr ? problem : STR("Unexpected broker id.");
}

void admin_warn_of_compaction(struct str topic, const struct backend_setting *settings, int32_t count) {
    if (topic_configs_ask_compaction(settings, count))
        log_line(LOG_WARN, "kafka", "topic asks for compaction, which is never done", LSTR("topic", topic));
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
