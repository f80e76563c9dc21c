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
