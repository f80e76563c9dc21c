/*
 * What a loop knows of a topic: its place, its numbers, its partitions as get_topic showed them. One get_topic a topic at a time, shared by all
 * who want it; a view that is not older than they ask is used again (D2-50, D2-51). All on the loop.
 */
#ifndef BACKEND_IGGY_VIEW_H
#define BACKEND_IGGY_VIEW_H

#include "backend/iggy/iggy_impl.h"
#include "backend/iggy/topic_facts.h"

struct view_partition {
    uint64_t messages_count, current_offset, size_bytes;
    struct iggy_partition_context context; /* 0.12, else zeros */
};

/* Never changes once it is there; a newer one takes its place. Counted. */
struct topic_view {
    int32_t refs;
    struct str name;          /* Kafka's; owned, as all below */
    struct str stream, topic; /* Iggy's: what requests name */
    struct topic_facts facts;
    uint32_t version; /* of the layouts it was read with; 0.12 and newer: partitions have contexts */
    int64_t asked_ms; /* monotonic: when get_topic was sent: what it shows is not older */
    uint32_t partitions_count;
    struct view_partition partitions[];
};

/*
 * in   name         Kafka topic; len -1: by id
 *      asked_ms     what it shows must not be older (monotonic); 0: any will do
 *      deadline_ms
 * out  op.status    ST_OK and view is held (view_unref); ST_NOT_FOUND, ST_UNKNOWN_ID; ST_DENIED; ST_UNAVAILABLE; ST_TIMED_OUT; ST_LOGIN_REFUSED; ...
 * With a good view at hand op completes without a call. It can be cancelled.
 */
struct view_want {
    struct op op;
    struct str name;
    struct uuid id;
    int64_t asked_ms, deadline_ms;
    struct topic_view *view;

    struct bridge_loop *loop; /* the rest is view.c's */
    bool covered;             /* there is a call that was sent after it came */
    struct timer timer;
    struct link link;
};
void view_get(struct bridge_loop *l, struct view_want *want);

/* What is at hand, of any age, not held; NULL: nothing. */
struct topic_view *view_peek(struct bridge_loop *l, struct str name);
struct topic_view *view_peek_id(struct bridge_loop *l, const struct uuid *id);

/* What a message takes, by the view; a guess where it shows none. */
int64_t view_message_bytes(const struct view_partition *p);
/* The offset after the last one, by the view. */
int64_t view_end(const struct view_partition *p);
/* About what the messages from offset on take, by the view; 0: it shows none there. */
int64_t view_bytes_from(const struct view_partition *p, int64_t offset);

void view_ref(struct topic_view *v);
void view_unref(struct topic_view *v); /* takes NULL */

/* The topic was made, deleted, changed or isn't as the view shows it (20, 87, 89 ..): the next view_get and listing_get ask. On every loop;
 * on this one at once. name must stay meanwhile: not that of a view that nobody holds. */
void views_forget(struct bridge *b, struct str name);

enum status views_new(struct bridge_loop *l, struct views **out) MUST_USE;
void views_free(struct views *v); /* takes NULL */
#endif
