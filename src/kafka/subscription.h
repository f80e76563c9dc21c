/* What a consumer sends with its JoinGroup for the protocol type "consumer": the topics that it subscribes to. */
#ifndef KAFKA_SUBSCRIPTION_H
#define KAFKA_SUBSCRIPTION_H

#include "base/rbuf.h"
#include "group/coordinator.h"

#define CONSUMER_TYPE "consumer"

/* Others may have written it: nothing is believed beyond its end. Source: Kafka's ConsumerProtocolSubscription. */
struct subscription {
    struct rbuf in;
    int32_t left;  /* topics */
    bool is_whole; /* all names that were announced have been there so far */
};

struct subscription subscription_of(struct bytes metadata);

/* The next topic, borrowed from the metadata; false: there are no more. */
bool subscription_next(struct subscription *s, struct str *topic_out);

/* The topics that a member reads, of a classic group of consumers or of a consumer group. Inside the describe's done, which was asked for
 * all_metadata. */
struct member_reads {
    enum group_type type;
    struct subscription subscription;  /* classic */
    struct group_member_topics topics; /* consumer */
};

/* member: borrowed. */
struct member_reads member_reads_of(enum group_type type, const struct group_member_view *member);

/* The next topic, borrowed; false: there are no more. */
bool member_reads_next(struct member_reads *reads, struct str *topic_out);

/* After the last one, whether these are all: else the member may read any topic. */
bool member_reads_known(const struct member_reads *reads);
#endif
