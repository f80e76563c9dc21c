/* What a consumer sends with its JoinGroup for the protocol type "consumer": the topics that it subscribes to. */
#ifndef KAFKA_SUBSCRIPTION_H
#define KAFKA_SUBSCRIPTION_H

#include "base/rbuf.h"

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
#endif
