#include "iggy_server/describe.h"

#include "base/mem.h"
#include "iggy_server/topic_options.h"

static void partition_counts(const struct partition *p, uint64_t *size_bytes, uint64_t *messages_count) {
    *size_bytes += (uint64_t)partition_size_bytes(p);
    *messages_count += (uint64_t)(partition_end(p) - partition_start(p));
}

enum status describe_topic(struct server_request *r, const struct topic *t, struct iggy_topic *out) {
    const struct topic_info *info = topic_info(t);
    *out = (struct iggy_topic){
        .id = info->topic_id,
        .created_at_us = (uint64_t)info->created_us,
        .partitions_count = (uint32_t)topic_partitions_count(t),
        .name = info->name_str,
    };
    for (uint32_t i = 0; i < out->partitions_count; i++) {
        const struct partition *p = topic_partition((struct topic *)(uintptr_t)t, (int32_t)i);
        if (p)
            partition_counts(p, &out->size_bytes, &out->messages_count);
    }
    return topic_options_show(t, r->version, &r->arena, out);
}

enum status describe_topics(struct server_request *r, struct topic *const *topics, int32_t count,
                            struct iggy_topic **out) {
    *out = arena_take_array(&r->arena, struct iggy_topic, count);
    enum status st = *out ? ST_OK : ST_NO_MEMORY;
    for (int32_t i = 0; !st && i < count; i++)
        st = describe_topic(r, topics[i], &(*out)[i]);
    return st;
}

enum status describe_partitions(struct server_request *r, struct topic *t, uint32_t count,
                                struct iggy_partition **out) {
    static const uint8_t this_node[] = {0};
    struct iggy_partition *partitions = arena_take_array(&r->arena, struct iggy_partition, count);
    if (!partitions)
        return ST_NO_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        const struct partition *p = topic_partition(t, (int32_t)i);
        partitions[i] = (struct iggy_partition){
            .id = i,
            .created_at_us = (uint64_t)topic_info(t)->created_us,
            .context = partition_context(r, t, i),
            .members = {this_node, sizeof this_node},
            .in_sync = {this_node, sizeof this_node},
        };
        if (!p)
            continue;
        int64_t end = partition_end(p);
        partitions[i].segments_count = (uint32_t)partition_segments_count(p);
        partitions[i].current_offset = end > 0 ? (uint64_t)end - 1 : 0;
        partition_counts(p, &partitions[i].size_bytes, &partitions[i].messages_count);
    }
    *out = partitions;
    return ST_OK;
}

enum status describe_stream(struct server_request *r, const struct stream_info *s, struct topic **topics,
                            int32_t count, struct iggy_stream *out) {
    *out = (struct iggy_stream){
        .id = s->id,
        .created_at_us = (uint64_t)s->created_us,
        .topics_count = (uint32_t)count,
        .name = arena_text(&r->arena, str_of(s->name)),
    };
    for (int32_t i = 0; i < count; i++) {
        for (int32_t k = 0; k < topic_partitions_count(topics[i]); k++) {
            const struct partition *p = topic_partition(topics[i], k);
            if (p)
                partition_counts(p, &out->size_bytes, &out->messages_count);
        }
    }
    return out->name.len < 0 ? ST_NO_MEMORY : ST_OK;
}

enum status topics_of_stream(struct server_request *r, uint32_t stream_id, struct topic ***out,
                             int32_t *count_out) {
    return store_topics_in(r->server->settings.store, stream_id, out, count_out);
}

void topics_release(struct topic **topics, int32_t count) {
    for (int32_t i = 0; i < count; i++)
        topic_unref(topics[i]);
    mem_free(topics);
}
