/* What a session remembers of its requests: session_begin and session_done of session.h, by plane. Under a lock of its own; any thread. */
#ifndef IGGY_SERVER_SESSION_MEMORY_H
#define IGGY_SERVER_SESSION_MEMORY_H

#include <pthread.h>

#include "iggy_server/session.h"

#define CHANGES_ROOM \
    (SESSION_REPLIES + 4) /* kept, and under way: on connections that the session was taken away from, too */
#define SENDS_ROOM 512    /* kept and under way */

/* A request of the metadata plane. number 0: the place is free. */
struct session_change {
    uint64_t number;
    uint64_t turn;  /* of its end; 0: it is under way */
    uint8_t *reply; /* owned; NULL: there was no room */
    uint32_t reply_bytes;
};

/* One of the partition plane. */
struct session_send {
    uint64_t number; /* 0: may come again */
    struct iggy_confirmation confirmation;
    bool running, offset_known;
};

struct session_memory {
    pthread_mutex_t lock;
    _Atomic int64_t *replies_bytes; /* of all sessions */
    uint64_t changes_highest, changes_turn;
    struct session_change changes[CHANGES_ROOM];
    struct session_send *sends; /* owned: a ring, in the order they came; NULL: there were none */
    uint32_t sends_at, sends_count, sends_room;
    uint64_t sends_highest;
    uint64_t sends_forgotten; /* the highest number that has left the ring */
};

void session_memory_init(struct session_memory *m, _Atomic int64_t *replies_bytes);
void session_memory_release(struct session_memory *m);

enum status memory_begin_change(struct session_memory *m, uint64_t number, enum session_verdict *verdict_out,
                                struct session_answer *out) MUST_USE;
void memory_end_change(struct session_memory *m, uint64_t number, bool counts, const struct wbuf *reply);

enum status memory_begin_send(struct session_memory *m, uint64_t number, enum session_verdict *verdict_out,
                              struct session_answer *out) MUST_USE;
void memory_end_send(struct session_memory *m, uint64_t number, bool counts,
                     const struct iggy_confirmation *confirmation);
#endif
