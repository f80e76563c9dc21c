#include "kafka/expiry_rules.h"

#include "kafka/subscription.h"

#define AGE_READ (-1) /* a member subscribes to the topic */

bool expiry_is_possible(const struct group_describe *d, int64_t now_ms, int64_t retention_ms) {
    if (d->call.outcome != GROUP_OK)
        return false;
    if (d->state == GROUP_STATE_EMPTY)
        return d->empty_since_ms < 0 || now_ms - d->empty_since_ms >= retention_ms;
    bool consumers = d->state == GROUP_STATE_STABLE && str_equal(d->protocol_type, STR(CONSUMER_TYPE));
    return d->type == GROUP_CONSUMER || consumers;
}

/* The offsets of one topic stand together. */
static void topic_is_read(struct expiry_pick *pick, struct str topic) {
    int32_t low = 0, high = pick->offsets_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (str_compare(pick->offsets[middle].topic, topic) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (struct backend_committed_part *o = &pick->offsets[low];
         low < pick->offsets_count && o->age_ms != AGE_READ && str_equal(o->topic, topic); low++, o++)
        o->age_ms = AGE_READ;
}

/* False: a member's topics are not known. */
static bool member_topics_are_read(const struct group_describe *d, const struct group_member_view *member,
                                   struct expiry_pick *pick) {
    struct member_reads reads = member_reads_of(d->type, member);
    struct str topic;
    while (member_reads_next(&reads, &topic))
        topic_is_read(pick, topic);
    return member_reads_known(&reads);
}

void expiry_pick(const struct group_describe *d, struct expiry_pick *pick) {
    struct group_members members = d->members;
    struct group_member_view member;
    pick->parts_count = 0;
    if (!expiry_is_possible(d, pick->now_ms, pick->retention_ms))
        return;
    while (group_members_next(&members, &member))
        if (!member_topics_are_read(d, &member, pick))
            return;
    for (int32_t i = 0; i < pick->offsets_count && pick->parts_count < pick->parts_max; i++) {
        const struct backend_committed_part *o = &pick->offsets[i];
        if (o->age_ms >= pick->retention_ms)
            pick->parts[pick->parts_count++] = (struct backend_commit_part){
                .topic = STR_NULL, .id = o->id, .partition = o->partition, .offset = -1, .leader_epoch = -1};
    }
}
