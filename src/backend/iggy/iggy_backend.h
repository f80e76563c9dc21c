/*
 * The bridge: an Iggy server or cluster behind the backend interface. Each Kafka record is one Iggy message at the same offset.
 * Nothing is shared between loops but settings and wake-ups: each loop has its own connections, views of topics, and producers.
 * Versions 0.12 (FetchMessages, contexts, producer sections) and 0.11. Spec D, E, F, G; docs/MAPPING.md.
 */
#ifndef BACKEND_IGGY_IGGY_BACKEND_H
#define BACKEND_IGGY_IGGY_BACKEND_H

#include "backend/backend.h"
#include "bridge/topic_map.h"
#include "net/budget.h"

struct tls;

struct iggy_backend_settings {
    const char *host;
    int port;
    const char *username, *password;
    struct tls *tls;                    /* borrowed; NULL: plain */
    const char *tls_name;               /* NULL: host */
    const struct topic_map *topic_map;  /* borrowed; sealed */
    int64_t send_bytes_max;             /* of one send: the server's message_bus.max_message_size */
    int64_t batch_bytes_max, slots_max; /* spec D1-40 */
    int32_t produce_sessions;           /* over all loops; 0: one for all producers of a loop */
    int64_t produce_session_idle_ms;
    bool read_below_start; /* a read below the log's start goes on from there (FETCH_BELOW_START) */
    bool skip_unmappable;
    bool accept_compact;    /* a topic that a client said to keep all of counts as compacted (D6-14) */
    const char *cluster_id; /* NULL: derived from the server's */
    struct budget *budget;  /* borrowed */
    struct loop **loops;    /* borrowed */
    int loops_count;
};

/*
 * Connect once, log in, see that the default stream is there: before anything listens. Blocks, for 15 s at most, on a loop of its
 * own; retries a refused connection. Texts are copied.
 * reason_out  on failure one sentence that names address and cause, never the password
 * ST_LOGIN_REFUSED; ST_UNAVAILABLE; ST_TIMED_OUT; ST_INVALID: the server's certificate, or a version that we don't speak;
 * ST_DENIED: the user may not create the stream; ST_NO_MEMORY
 */
enum status iggy_backend_new(const struct iggy_backend_settings *settings, struct backend **out,
                             char reason_out[512]) MUST_USE;

const char *iggy_backend_cluster_id(const struct backend *b); /* as long as the backend */
uint32_t
iggy_backend_version(const struct backend *b); /* enum iggy_version: what the server spoke at the start */

/* Sign out and close all connections, for 5 s at most. After the listener has drained, while the loops run. Blocks. */
void iggy_backend_stop(struct backend *b);
void iggy_backend_free(struct backend *b); /* after the loops have stopped; takes NULL */
#endif
