#include "backend/iggy/listing.h"

#include <stdlib.h>

#include "base/mem.h"
#include "net/loop.h"

#define LIST_BYTES_MAX   ((size_t)256 << 20) /* of names, and of one decoded answer */
#define TOPICS_ROOM_MIN  64
#define TOPICS_COUNT_MAX ((int32_t)1 << 24)

/* One listing under way: get_topics of each stream, one after the other. */
struct listing_run {
    struct listings *listings;
    struct listing *list;
    size_t at; /* in the map's streams */
    struct str stream;
    bool outdated; /* listings_forget was called meanwhile */
    struct iggy_stream_req body;
    struct iggy_request request;
};

struct listings {
    struct bridge_loop *loop;
    struct link wants;
    struct listing *last;    /* held; NULL: none yet */
    struct listing_run *run; /* owned; NULL: none is under way */
};

static void run_ask(struct listing_run *run);
static void run_on_topics(struct op *op);
static void run_end(struct listing_run *run, enum status st);

/* ---- what is wanted ---- */

static void want_end(struct listing_want *want, enum status st) {
    list_remove(&want->link);
    timer_clear(loop_timers(want->loop->loop), &want->timer);
    op_complete(&want->op, st);
}

static void want_on_deadline(struct timer *t) {
    want_end(container_of(t, struct listing_want, timer), ST_TIMED_OUT);
}

static void run_begin(struct listings *ls) {
    struct listing_run *run = mem_take_zeroed(1, sizeof *run);
    struct listing *list = run ? mem_take_zeroed(1, sizeof *list) : NULL;
    if (!list) {
        mem_free(run);
        while (!list_empty(&ls->wants))
            want_end(container_of(ls->wants.next, struct listing_want, link), ST_NO_MEMORY);
        return;
    }
    for (struct link *l = ls->wants.next; l != &ls->wants; l = l->next)
        container_of(l, struct listing_want, link)->covered = true;
    list->refs = 1;
    list->asked_ms = loop_now_ms(ls->loop->loop);
    arena_init(&list->memory, NULL, 0, LIST_BYTES_MAX);
    run->listings = ls;
    run->list = list;
    ls->run = run;
    run_ask(run);
}

void listing_get(struct bridge_loop *l, struct listing_want *want) {
    struct listings *ls = l->listings;
    op_start(&want->op, NULL);
    want->loop = l;
    want->listing = NULL;
    want->covered = false;
    want->late = ls->run && ls->run->outdated;
    if (ls->last && ls->last->asked_ms > want->asked_ms) {
        want->listing = ls->last;
        want->listing->refs++;
        op_complete(&want->op, ST_OK);
        return;
    }
    if (timer_set(loop_timers(l->loop), &want->timer, want_on_deadline, want->deadline_ms)) {
        op_complete(&want->op, ST_NO_MEMORY);
        return;
    }
    list_push_tail(&ls->wants, &want->link);
    if (!ls->run)
        run_begin(ls);
}

/* ---- a listing ---- */

static void run_ask(struct listing_run *run) {
    struct bridge_loop *l = run->listings->loop;
    if (!topic_map_next_stream(l->bridge->settings.topic_map, &run->at, &run->stream)) {
        run_end(run, ST_OK);
        return;
    }
    struct iggy_client *client = bridge_control(l);
    if (!client) {
        run_end(run, ST_NO_MEMORY);
        return;
    }
    run->request = (struct iggy_request){.deadline_ms = loop_now_ms(l->loop) + CALL_MS};
    run->body.stream = iggy_by_name(run->stream);
    op_init(&run->request.op, l->loop, run_on_topics);
    iggy_client_call(client, &run->request, IGGY_CMD_get_topics, &run->body);
}

static enum status list_add(struct listing *list, struct str name, const struct topic_facts *facts) {
    if (list->topics_count == list->topics_room) {
        int32_t room = list->topics_room > 0 ? list->topics_room * 2 : TOPICS_ROOM_MIN;
        struct listed_topic *topics =
            room > TOPICS_COUNT_MAX ? NULL : mem_grow(list->topics, (size_t)room * sizeof *topics);
        if (!topics)
            return ST_NO_MEMORY;
        list->topics = topics;
        list->topics_room = room;
    }
    struct str copy = arena_text(&list->memory, name);
    if (copy.len < 0)
        return ST_NO_MEMORY;
    list->topics[list->topics_count++] = (struct listed_topic){copy, *facts};
    return ST_OK;
}

static enum status run_take(struct listing_run *run) {
    const struct bridge *b = run->listings->loop->bridge;
    struct iggy_get_topics_res res;
    struct arena a;
    arena_init(&a, NULL, 0, LIST_BYTES_MAX);
    enum status st = iggy_request_decode(&run->request, &a, &res);
    for (uint32_t i = 0; !st && i < res.topics_count; i++) {
        struct iggy_place place = {run->stream, res.topics[i].name};
        struct topic_facts facts;
        struct str name;
        bool shadowed;
        if (!topic_map_name_of(b->settings.topic_map, &place, &name, &shadowed))
            continue;
        topic_facts_of(b, run->request.version, run->stream, &res.topics[i], &facts);
        st = list_add(run->list, name, &facts);
    }
    arena_release(&a);
    return st;
}

static void run_on_topics(struct op *op) {
    struct listing_run *run = container_of(op, struct listing_run, request.op);
    enum status st = bridge_status(&run->request, IGGY_CALL_ADMIN);
    if (!st)
        st = run_take(run);
    iggy_request_release(&run->request);
    if (st && st != ST_NOT_FOUND) /* a stream that nobody has made yet */
        run_end(run, st);
    else
        run_ask(run);
}

static int compare_listed(const void *a, const void *b) {
    struct str left = ((const struct listed_topic *)a)->name, right = ((const struct listed_topic *)b)->name;
    int32_t common = left.len < right.len ? left.len : right.len;
    int order = memcmp(left.ptr, right.ptr, (size_t)common);
    return order ? order : left.len - right.len;
}

static void run_end(struct listing_run *run, enum status st) {
    struct listings *ls = run->listings;
    struct listing *list = run->list;
    bool keep = !st && !run->outdated;
    ls->run = NULL;
    mem_free(run);
    if (!st && list->topics_count > 1)
        qsort(list->topics, (size_t)list->topics_count, sizeof *list->topics, compare_listed);
    for (struct link *l = ls->wants.next, *next; l != &ls->wants; l = next) {
        struct listing_want *want = container_of(l, struct listing_want, link);
        next = l->next;
        if (!want->covered && (want->late || list->asked_ms <= want->asked_ms))
            continue;
        if (!st) {
            want->listing = list;
            list->refs++;
        }
        want_end(want, st);
    }
    if (keep) {
        listing_unref(ls->last);
        ls->last = list;
    } else {
        listing_unref(list);
    }
    if (!list_empty(&ls->wants))
        run_begin(ls);
}

void listings_forget(struct listings *ls) {
    listing_unref(ls->last);
    ls->last = NULL;
    if (ls->run)
        ls->run->outdated = true;
}

const struct listed_topic *listing_find_id(const struct listing *list, const struct uuid *id) {
    for (int32_t i = 0; i < list->topics_count; i++)
        if (uuid_equal(&list->topics[i].facts.id, id))
            return &list->topics[i];
    return NULL;
}

void listing_unref(struct listing *list) {
    if (!list || --list->refs > 0)
        return;
    arena_release(&list->memory);
    mem_free(list->topics);
    mem_free(list);
}

enum status listings_new(struct bridge_loop *l, struct listings **out) {
    struct listings *ls = mem_take_zeroed(1, sizeof *ls);
    if (!ls)
        return ST_NO_MEMORY;
    ls->loop = l;
    list_init(&ls->wants);
    *out = ls;
    return ST_OK;
}

void listings_free(struct listings *ls) {
    if (!ls)
        return;
    listing_unref(ls->last);
    mem_free(ls);
}
