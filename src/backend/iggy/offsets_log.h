/*
 * The topic that offsets of groups are kept in where the server has no external groups (D12-9): read whole at the first use, then
 * followed; appended to. Each loop reads it for itself, so that several gateways and loops agree. All on the loop.
 */
#ifndef BACKEND_IGGY_OFFSETS_LOG_H
#define BACKEND_IGGY_OFFSETS_LOG_H

#include "backend/iggy/kept_offsets.h"
#include "backend/iggy/view.h"

#define OFFSETS_TOPIC \
    "__kafka_offsets" /* Kafka's name of it; as long as nobody maps it, of the default stream */

/*
 * Bring the table up to what was appended before the call.
 * out  op.status   ST_OK: offsets_log_table holds it; there: whether there is such a topic at all (if not, the table is empty)
 *                  ST_UNAVAILABLE, ST_TIMED_OUT, ST_DENIED, ST_POLICY: over KEPT_BYTES_MAX; ... : nobody knows
 */
struct offsets_look {
    struct op op;
    int64_t deadline_ms;
    bool there;

    struct bridge_loop *loop; /* the rest is offsets_log.c's */
    bool covered;             /* the look under way was begun after it came */
    struct timer timer;
    struct link link;
};
void offsets_log_look(struct bridge_loop *l, struct offsets_look *look);

/* Good until the caller returns to the loop. */
const struct kept_offsets *offsets_log_table(const struct bridge_loop *l);

/*
 * Append a message; those of one loop land in the order of the calls.
 * in   message     borrowed until done
 *      make        the topic, when it is missing; else nothing is done then, and that is ST_OK
 * out  op.status   ST_OK; ST_UNAVAILABLE: not done; ST_TIMED_OUT: perhaps; ST_TOO_BIG, ST_DENIED, ...
 */
struct offsets_append {
    struct op op;
    const struct wbuf *message;
    bool make;
    int64_t deadline_ms;

    struct link link; /* the rest is offsets_log.c's */
    struct offsets_log *log;
    struct topic_view *view; /* held: the body's names are its */
    struct iggy_send_messages_req body;
    struct iggy_request request;
    uint8_t *batch; /* owned */
};
void offsets_log_append(struct bridge_loop *l, struct offsets_append *a);

enum status offsets_log_new(struct bridge_loop *l, struct offsets_log **out) MUST_USE;
void offsets_log_free(struct offsets_log *log); /* takes NULL */
#endif
