/* What the files of backend/iggy share. Everything of a bridge_loop runs on its loop. */
#ifndef BACKEND_IGGY_IGGY_IMPL_H
#define BACKEND_IGGY_IGGY_IMPL_H

#include <semaphore.h>
#include <stdatomic.h>

#include "backend/iggy/iggy_backend.h"
#include "bridge/error_map.h"
#include "iggy_client/iggy_client.h"
#include "net/timer.h"
#include "net/work.h"

#define CALL_MS          ((int64_t)15000) /* F-1: one call to the server, connect included */
#define READERS_MAX      4                /* G-10: connections for polls */
#define VIEW_FRESH_MS    ((int64_t)100)   /* D2-50 */
#define CALLS_FLIGHT_MAX 128  /* look-ups and changes without an answer on a loop's control connection */
#define READS_FLIGHT_MAX 64   /* 0.12 allows so many deferred ones */
#define CLOSE_WAIT_MS    5000 /* */

struct aheads;
struct bridge_loop;
struct commit_job;
struct listings;
struct offset_lanes;
struct offsets_log;
struct producers;
struct views;

struct bridge {
    struct backend base;
    struct iggy_backend_settings settings;    /* texts owned */
    char *cluster_id;                         /* owned */
    struct uuid cluster;                      /* what topic ids are derived from */
    uint32_t version;                         /* at the start */
    _Atomic bool offsets_in_topic;            /* it says that it has no external groups (D12-9) */
    _Atomic bool offsets_topic_told;          /* the log has been told */
    struct budget *decoding, *decoding_small; /* D1-43: owned; what mapped records may hold at once */
    struct budget
        *answers; /* owned; of sends, look-ups and changes: what frees memory must not wait for memory */
    struct bridge_loop *per_loop; /* owned; settings.loops_count of them */
    sem_t closed;                 /* posted by each loop whose clients are gone */
};

/* A client that is being closed. */
struct closing {
    struct op op;
    struct bridge_loop *loop;
    void (*gone)(struct closing *c); /* the client is no more; NULL: nobody cares */
};

struct bridge_loop {
    struct bridge *bridge;
    struct loop *loop;
    struct iggy_client *control; /* topics: look-ups and changes; made with the first use, as all clients */
    struct iggy_client *readers[READERS_MAX]; /* polls and fetches */
    struct producers *producers;              /* producers.h: the connections that send (G.1) */
    struct views *views;                      /* view.h: what is known of topics */
    struct aheads *aheads;                    /* ahead.h: what clients will read next */
    struct listings *listings;                /* listing.h: lists of all topics */
    struct offset_lanes *offset_lanes;        /* offset_lanes.h: connections for offsets of groups */
    struct offsets_log
        *offsets_log; /* offsets_log.h: the topic they are in where the server has no place for them */
    struct link offset_commits;       /* group_commit.c: commit_job, for that topic */
    struct commit_job *offset_commit; /* the one that is prepared; NULL: none is */
    struct link watches;              /* watch.c: those that wait by views */
    _Atomic int32_t watches_count;    /* read by other loops */
    struct closing control_closing, reader_closing[READERS_MAX];
    bool stopping; /* no client is made any more */
    int32_t open;  /* clients that aren't gone yet, and one while it isn't stopping */
    struct op stop_op;
};

static inline struct bridge *bridge_of(struct backend *b) {
    return container_of(b, struct bridge, base);
}

/* The current loop's. */
struct bridge_loop *bridge_here(struct bridge *b);

/* Its connections, made when they are missing; NULL: no memory, or it is stopping. use: spreads readers; the same use, the same connection. */
struct iggy_client *bridge_control(struct bridge_loop *l);
struct iggy_client *bridge_reader(struct bridge_loop *l, uint32_t use);
struct iggy_client *bridge_client_new(struct bridge_loop *l, int32_t in_flight_max, struct budget *answers);

/* What every client of this backend is made of; in_flight_max is 1. Texts are those of s. */
void bridge_client_settings(const struct iggy_backend_settings *s, struct loop *loop,
                            struct iggy_client_settings *out);

/* Close a client that bridge_client_new made. c stays where it is until c->gone, which is set before. */
void bridge_client_close(struct bridge_loop *l, struct iggy_client *client, struct closing *c);

/* What an ended request is to a caller: its op.status, or its code by bridge/error_map.h. A send or a change that may have landed without an
 * answer is ST_TIMED_OUT; what changes nothing, ST_UNAVAILABLE. Logs a code that stands in no table, at most once a second. */
enum status bridge_status(const struct iggy_request *r, enum iggy_call_kind call);

/* Something was appended to a topic through this gateway: wake who waits for it, on every loop (D2-41). On a loop. */
void bridge_appended(struct bridge *b, struct str name, int32_t partition);

void iggy_topics_op(struct backend *b, struct backend_topics *t);
void iggy_create_op(struct backend *b, struct backend_create *c);
void iggy_delete_op(struct backend *b, struct backend_delete *d);
void iggy_grow_op(struct backend *b, struct backend_grow *g);
void iggy_configure_op(struct backend *b, struct backend_configure *c);
void iggy_append_op(struct backend *b, struct backend_append *a);
void iggy_read_op(struct backend *b, struct backend_read *r);
void iggy_read_release_op(struct backend *b, struct backend_read *r);
void iggy_watch_op(struct backend *b, struct backend_watch *w);
void iggy_offsets_op(struct backend *b, struct backend_offsets *o);
#endif
