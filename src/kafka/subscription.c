#include "kafka/subscription.h"

struct subscription subscription_of(struct bytes metadata) {
    struct subscription s = {.in = rbuf_of(metadata)};
    uint64_t version, count;
    if (rbuf_be(&s.in, 2, &version) || rbuf_be(&s.in, 4, &count))
        return s;
    s.left = (int32_t)count;
    s.is_whole = s.left >= 0;
    return s;
}

bool subscription_next(struct subscription *s, struct str *topic_out) {
    uint64_t len;
    if (s->left <= 0)
        return false;
    s->left--;
    if (rbuf_be(&s->in, 2, &len) || len > INT16_MAX || rbuf_left(&s->in) < len) {
        s->left = 0;
        s->is_whole = false;
        return false;
    }
    *topic_out = (struct str){(const char *)s->in.at, (int32_t)len};
    s->in.at += len;
    return true;
}

struct member_reads member_reads_of(enum group_type type, const struct group_member_view *member) {
    return (struct member_reads){
        .type = type, .subscription = subscription_of(member->metadata), .topics = {.view = member}};
}

bool member_reads_next(struct member_reads *reads, struct str *topic_out) {
    return reads->type == GROUP_CONSUMER ? group_member_topics_next(&reads->topics, topic_out)
                                         : subscription_next(&reads->subscription, topic_out);
}

bool member_reads_known(const struct member_reads *reads) {
    return reads->type == GROUP_CONSUMER ? group_member_topics_known(reads->topics.view)
                                         : reads->subscription.is_whole;
}
