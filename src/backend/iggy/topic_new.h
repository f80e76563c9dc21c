/* The creation of one topic, and of its stream where that is missing (D6-11). */
#ifndef BACKEND_IGGY_TOPIC_NEW_H
#define BACKEND_IGGY_TOPIC_NEW_H

#include "backend/iggy/view.h"

/*
 * in   op, name (Kafka's), partitions_count, settings, deadline_ms
 *      save_at_once   a message that is confirmed is not in the server's memory alone
 * out  op.status    ST_OK: id is there; ST_EXISTS; ST_BAD_PARTITIONS, ST_POLICY; ST_DENIED; ST_UNAVAILABLE; ST_TIMED_OUT; ...
 */
struct topic_new {
    struct op op;
    struct str name;
    int32_t partitions_count;
    const struct backend_setting *settings;
    int32_t settings_count;
    bool save_at_once;
    int64_t deadline_ms;
    struct uuid id;

    struct bridge_loop *loop; /* the rest is topic_new.c's */
    struct iggy_place place;
    bool stream_made;
    uint8_t options[TOPIC_OPTIONS_BYTES_MAX];
    struct iggy_create_topic_req topic;
    struct iggy_create_stream_req stream;
    struct iggy_request request;
    struct view_want want;
};
void topic_new_start(struct bridge_loop *l, struct topic_new *n);
#endif
