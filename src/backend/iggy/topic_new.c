/*
 *   create_topic -> made -> done
 *     ^          -> no stream -> create_stream --+
 *     +------------------------------------------+
 *                -> it was made before, and the answer is lost (59) -> view_get, for the id -> done
 */
#include "backend/iggy/topic_new.h"

#include "base/logging.h"
#include "net/loop.h"

#define ANSWER_BYTES_MAX ((size_t)16 << 20)

static void new_topic(struct topic_new *n);
static void new_on_topic(struct op *op);
static void new_on_stream(struct op *op);
static void new_on_view(struct op *op);

static void new_end(struct topic_new *n, enum status st) {
    iggy_request_release(&n->request);
    views_forget(n->loop->bridge, n->name);
    if (!st)
        log_line(LOG_INFO, "iggy", "topic created", LSTR("topic", n->name),
                 LINT("partitions", n->partitions_count));
    op_complete(&n->op, st);
}

static void new_call(struct topic_new *n, op_fn *done, uint32_t code, const void *in) {
    struct iggy_client *client = bridge_control(n->loop);
    iggy_request_release(&n->request);
    if (!client) {
        new_end(n, ST_UNAVAILABLE);
        return;
    }
    n->request = (struct iggy_request){.deadline_ms = n->deadline_ms};
    op_init(&n->request.op, n->loop->loop, done);
    iggy_client_call(client, &n->request, code, in);
}

void topic_new_start(struct bridge_loop *l, struct topic_new *n) {
    op_start(&n->op, NULL);
    n->loop = l;
    n->request = (struct iggy_request){.deadline_ms = 0};
    n->stream_made = false;
    topic_map_find(l->bridge->settings.topic_map, n->name, &n->place);
    new_topic(n);
}

static void new_topic(struct topic_new *n) {
    int32_t len = topic_options_write(n->settings, n->settings_count, n->partitions_count, n->options);
    if (n->save_at_once)
        len = topic_options_save_at_once(n->options, len);
    n->topic = (struct iggy_create_topic_req){.stream = iggy_by_name(n->place.stream),
                                              .partitions_count = (uint32_t)n->partitions_count,
                                              .name = n->place.topic,
                                              .options = {n->options, len}};
    new_call(n, new_on_topic, IGGY_CMD_create_topic, &n->topic);
}

/* False: the answer holds no topic. */
static bool new_take(struct topic_new *n) {
    struct iggy_create_topic_res res;
    struct topic_facts facts;
    struct arena a;
    if (n->request.code != 0)
        return false;
    arena_init(&a, NULL, 0, ANSWER_BYTES_MAX);
    bool good = iggy_request_decode(&n->request, &a, &res) == ST_OK;
    if (good) {
        topic_facts_of(n->loop->bridge, n->request.version, n->place.stream, &res.topic, &facts);
        n->id = facts.id;
    }
    arena_release(&a);
    return good;
}

static void new_on_topic(struct op *op) {
    struct topic_new *n = container_of(op, struct topic_new, request.op);
    enum status st = bridge_status(&n->request, IGGY_CALL_ADMIN);
    if (st == ST_NOT_FOUND && !n->stream_made) {
        n->stream_made = true;
        n->stream = (struct iggy_create_stream_req){.name = n->place.stream};
        new_call(n, new_on_stream, IGGY_CMD_create_stream, &n->stream);
    } else if (st || new_take(n)) {
        new_end(n, st);
    } else {
        n->want = (struct view_want){
            .name = n->name, .asked_ms = loop_now_ms(n->loop->loop), .deadline_ms = n->deadline_ms};
        op_init(&n->want.op, n->loop->loop, new_on_view);
        view_get(n->loop, &n->want);
    }
}

/* Somebody else may have made it at the same time (D6-11). */
static void new_on_stream(struct op *op) {
    struct topic_new *n = container_of(op, struct topic_new, request.op);
    enum status st = bridge_status(&n->request, IGGY_CALL_ADMIN);
    if (st && st != ST_EXISTS)
        new_end(n, st);
    else
        new_topic(n);
}

static void new_on_view(struct op *op) {
    struct topic_new *n = container_of(op, struct topic_new, want.op);
    if (!op->status)
        n->id = n->want.view->facts.id;
    view_unref(n->want.view);
    new_end(n, op->status);
}
