/* All topics that Kafka clients can see: one listing at a time on a loop, shared by all who want it. All on the loop. */
#ifndef BACKEND_IGGY_LISTING_H
#define BACKEND_IGGY_LISTING_H

#include "backend/iggy/iggy_impl.h"
#include "backend/iggy/topic_facts.h"
#include "base/arena.h"

struct listed_topic {
    struct str name; /* Kafka's */
    struct topic_facts facts;
};

/* Never changes. Counted. */
struct listing {
    int32_t refs;
    int64_t asked_ms; /* monotonic: what it shows is not older */
    struct arena memory;
    struct listed_topic *topics; /* owned; in name order */
    int32_t topics_count, topics_room;
};

/*
 * in   asked_ms     what it shows must not be older (monotonic)
 *      deadline_ms
 * out  op.status    ST_OK and listing is held (listing_unref); ST_DENIED; ST_UNAVAILABLE; ST_TIMED_OUT; ST_LOGIN_REFUSED; ST_REFUSED;
 *                   ST_NO_MEMORY
 */
struct listing_want {
    struct op op;
    int64_t asked_ms, deadline_ms;
    struct listing *listing;

    struct bridge_loop *loop; /* the rest is listing.c's */
    bool covered;             /* the listing under way was begun after it came */
    bool late;                /* it came when the listing under way was outdated already */
    struct timer timer;
    struct link link;
};
void listing_get(struct bridge_loop *l, struct listing_want *want);

/* A topic was made, deleted or changed: no listing that was begun before is given to who comes from now on. */
void listings_forget(struct listings *ls);

/* The topic with this id; NULL: none. */
const struct listed_topic *listing_find_id(const struct listing *list, const struct uuid *id);

void listing_unref(struct listing *list); /* takes NULL */

enum status listings_new(struct bridge_loop *l, struct listings **out) MUST_USE;
void listings_free(struct listings *ls); /* takes NULL */
#endif
