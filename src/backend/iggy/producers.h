/*
 * The connections that send (G.1). A producer id gets one of its own, so that its batches reach a partition in order; what has no id
 * shares one, and so does who finds all taken. Inside a connection many sends are under way at once.
 *
 *   append_slot: waiting -> send: preparing (version, view, memory) -> converting -> ready -> sent -> answered
 *
 * Sends leave in the order of the calls, whichever conversion ends first. All on the loop; conversions of 64 KiB and more in the pool.
 */
#ifndef BACKEND_IGGY_PRODUCERS_H
#define BACKEND_IGGY_PRODUCERS_H

#include "backend/iggy/holes.h"
#include "backend/iggy/view.h"
#include "iggy/batch.h"

/* Sends under way in the connections that the loops share with those who have none of their own, together: an Iggy server of 0.11 queues so many
 * for a partition, and says nothing of what comes beyond. */
#define SENDS_MAX          32
#define SENDS_MIN          4                /* in one connection, however many loops there are */
#define PRODUCER_UNUSED_MS ((int64_t)30000) /* G-2 */
#define PRODUCER_NONE      (-1)             /* the id of who has none */

/* One connection, and what goes through it. */
struct producer {
    struct bridge_loop *loop;
    struct iggy_client *client; /* NULL: none now */
    int64_t id;                 /* PRODUCER_NONE: shared */
    struct link id_link;        /* in its bucket */
    struct link use_link;       /* least recently used first; then among those that close */
    int64_t used_ms;
    struct link running; /* append_state */
    struct link waiting; /* append_slot */
    struct link sends;   /* send, in the order in which they leave */
    int32_t sends_count, sent_count, rerouted_count;
    struct send *preparing; /* the last of sends; NULL: none is */
    bool draining;          /* nothing new leaves before all that was sent has an answer */
    bool running_line;      /* producer_run is on the stack */
    struct closing closing;
};

/* One part of an append, until a send has it. */
struct append_slot {
    struct link link; /* in its producer's waiting */
    struct append_state *state;
    struct backend_append_part *part;
};

/* One backend_append between start and done; in the request's arena. */
struct append_state {
    struct backend_append *call;
    struct producer *producer;
    int64_t producer_id;
    struct link link; /* in producer->running */
    struct timer timer;
    int64_t used_bytes, used_slots; /* D1-41 */
    int32_t left;                   /* parts without an outcome, and one for the start itself */
    bool converting;                /* D1-47: one partition at a time */
    bool over_budget;               /* D1-41: for this part and all that follow */
    struct append_slot slots[];
};

/* ---- producers.c ---- */

/* The connection for a producer id, which is in use until its running is empty; NULL: no memory, or it is stopping. */
struct producer *producer_take(struct bridge_loop *l, int64_t id);

/* How many sends may be under way in one connection. */
int32_t producers_sends_max(const struct producers *ps);

/* What is missing of numbered batches, of all producers of the loop. */
struct holes *producers_holes(const struct producers *ps);

/* Its last append has ended. */
void producer_rest(struct producer *p);

enum status producers_new(struct bridge_loop *l, struct producers **out) MUST_USE;
void producers_stop(struct producers *ps); /* close all; what waits ends */
void producers_free(struct producers *ps); /* takes NULL */

/* A send to use, its builder's memory kept from earlier; NULL: no memory. */
struct send *producers_send_take(struct producers *ps) MUST_USE;
void producers_send_give(struct producers *ps, struct send *s);

/* ---- send.c ---- */

enum send_phase {
    SEND_PREPARING,
    SEND_CONVERTING,
    SEND_READY,
    SEND_SENT,
    SEND_EARLY, /* stored, while one before it in the partition has no answer */
    SEND_REROUTED,
};

/* One batch under way. */
struct send {
    struct link link; /* in producer->sends, or spare */
    struct producer *producer;
    struct append_slot *slot;
    enum send_phase phase;
    struct iggy_wait wait;
    struct view_want want;
    struct topic_view *view; /* held */
    struct budget_wait memory;
    struct budget *budget; /* from which reserved came */
    int64_t reserved;
    bool pooled, with_producer, rerouted;
    struct work work;
    struct op converted;
    enum status status; /* of the conversion */
    struct iggy_batch_builder builder;
    struct bytes batch; /* in builder */
    struct iggy_send_messages_req body;
    struct iggy_request request;
};

void send_begin(struct send *s);   /* s->producer and s->slot are set, all else is zero but the builder */
void send_give_up(struct send *s); /* its deadline has passed: it waits for memory no longer */
void producer_flush(struct producer *p); /* let leave what is ready */

/* ---- append.c ---- */

/* Begin what waits, as far as it may. */
void producer_run(struct producer *p);
void producer_slot_end(struct append_slot *slot, enum status st);
#endif
