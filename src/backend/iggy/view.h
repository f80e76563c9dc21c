/*
 * What a loop knows of a topic: its place, its numbers, its partitions as get_topic showed them. One get_topic a topic at a time, shared by all
 * who want it; a view that is not older than they ask is used again (D2-50, D2-51). All on the loop.
 */
#ifndef BACKEND_IGGY_VIEW_H
#define BACKEND_IGGY_VIEW_H

#include "backend/iggy/iggy_impl.h"

struct view_partition {
    uint64_t messages_count, current_offset, size_bytes;
    struct iggy_partition_context context; /* 0.12, else zeros */
};

/* Never changes once it is there; a newer one takes its place. Counted. */
struct topic_view {
    int32_t refs;
    struct str name;          /* Kafka's; owned, as all below */
    struct str stream, topic; /* Iggy's */
    uint32_t stream_id, topic_id;
    struct uuid id; /* Kafka's topic id */
    uint64_t created_us;
    uint64_t message_expiry_us, max_topic_size; /* IGGY_NEVER: unlimited; 0: the server's default */
    bool expiry_is_set, size_is_set;            /* by a client */
    int64_t asked_ms; /* monotonic: when get_topic was sent: what it shows is not older */
    uint32_t partitions_count;
    struct view_partition partitions[];
};

/*
 * in   name         Kafka topic; len -1: by id
 *      asked_ms     what it shows must not be older (monotonic); 0: any will do
 *      deadline_ms
 * out  op.status    ST_OK and view is held (view_unref); ST_NOT_FOUND, ST_UNKNOWN_ID; ST_DENIED; ST_UNAVAILABLE; ST_TIMED_OUT; ST_LOGIN_REFUSED; ...
 * With a good view at hand op completes without a call.
 */
struct view_want {
    struct op op;
    struct str name;
    struct uuid id;
    int64_t asked_ms, deadline_ms;
    struct topic_view *view;
    struct link link;
};
void view_get(struct bridge_loop *l, struct view_want *want);

/* What is at hand, of any age, not held; NULL: nothing. */
struct topic_view *view_peek(struct bridge_loop *l, struct str name);

void view_ref(struct topic_view *v);
void view_unref(struct topic_view *v); /* takes NULL */

/* The topic was deleted, changed or isn't as the view shows it (20, 87, 89 ..): the next view_get asks. On every loop. */
void views_forget(struct bridge *b, struct str name);

enum status views_new(struct bridge_loop *l, struct views **out) MUST_USE;
void views_free(struct views *v); /* takes NULL */
#endif
