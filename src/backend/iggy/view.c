/*
 *   view_get -> at hand: done
 *            -> a get_topic is under way, or begins -> view_on_topic -> every want that it is fresh enough for is done
 *   by id    -> the view with that id, else a listing tells the name (listing.h), and then as above
 *
 * A want that came after the call under way was sent, and wants to see what is newer, gets the next one (D2-50). Milliseconds can't tell
 * which of two came first within one: there a view counts as older.
 */
#include "backend/iggy/view.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "backend/iggy/listing.h"
#include "base/mem.h"
#include "iggy/batch.h"
#include "net/loop.h"

#define BUCKETS             256
#define ANSWER_BYTES_MAX    ((size_t)64 << 20) /* a decoded topic: of 100 bytes a partition */
#define PARTITIONS_MAX      1000000            /* as many as Iggy can number */
#define MESSAGE_BYTES_GUESS 1024

/* A topic that has a view, or is being looked up. */
struct entry {
    struct link link;        /* in its bucket of names */
    struct link id_link;     /* in its bucket of ids, with a view */
    struct topic_view *view; /* held; NULL: none */
    struct link wants;
    struct asking *asking; /* owned; NULL: no get_topic is under way */
    struct str name;       /* owned */
};

/* A get_topic under way. */
struct asking {
    struct views *views;
    struct entry *entry;
    struct iggy_place place;
    int64_t asked_ms;
    bool outdated; /* the topic was forgotten meanwhile: the answer may be older than the cause */
    struct iggy_topic_req body;
    struct iggy_request request;
};

struct views {
    struct bridge_loop *loop;
    struct link names[BUCKETS], ids[BUCKETS];
    struct link unknown; /* view_want: their ids are in no view */
    struct listing_want listing;
};

static void entry_ask(struct views *v, struct entry *e);
static void view_on_topic(struct op *op);

/* ---- entries ---- */

static struct link *bucket_of_name(struct views *v, struct str name) {
    return &v->names[XXH3_64bits(name.ptr, (size_t)name.len) % BUCKETS];
}

static struct link *bucket_of_id(struct views *v, const struct uuid *id) {
    return &v->ids[XXH3_64bits(id->b, sizeof id->b) % BUCKETS];
}

static struct entry *entry_find(struct views *v, struct str name) {
    struct link *bucket = bucket_of_name(v, name);
    for (struct link *l = bucket->next; l != bucket; l = l->next) {
        struct entry *e = container_of(l, struct entry, link);
        if (str_equal(e->name, name))
            return e;
    }
    return NULL;
}

static struct entry *entry_find_id(struct views *v, const struct uuid *id) {
    struct link *bucket = bucket_of_id(v, id);
    for (struct link *l = bucket->next; l != bucket; l = l->next) {
        struct entry *e = container_of(l, struct entry, id_link);
        if (uuid_equal(&e->view->facts.id, id))
            return e;
    }
    return NULL;
}

/* NULL: no memory. */
static struct entry *entry_of(struct views *v, struct str name) {
    struct entry *e = entry_find(v, name);
    if (e)
        return e;
    e = mem_take_zeroed(1, sizeof *e);
    char *copy = mem_text(name);
    if (!e || !copy) {
        mem_free(e);
        mem_free(copy);
        return NULL;
    }
    e->name = (struct str){copy, name.len};
    list_init(&e->wants);
    list_push_tail(bucket_of_name(v, name), &e->link);
    return e;
}

static void entry_set_view(struct views *v, struct entry *e, struct topic_view *view) {
    list_remove(&e->id_link);
    view_unref(e->view);
    e->view = view;
    if (view)
        list_push_tail(bucket_of_id(v, &view->facts.id), &e->id_link);
}

static void entry_free(struct entry *e) {
    list_remove(&e->link);
    list_remove(&e->id_link);
    view_unref(e->view);
    mem_free((void *)(uintptr_t)e->name.ptr);
    mem_free(e);
}

static void entry_free_if_empty(struct entry *e) {
    if (!e->view && !e->asking && list_empty(&e->wants))
        entry_free(e);
}

/* ---- what is wanted ---- */

static void want_end(struct view_want *want, enum status st) {
    list_remove(&want->link);
    timer_clear(loop_timers(want->loop->loop), &want->timer);
    if (st == ST_NOT_FOUND && want->name.len < 0)
        st = ST_UNKNOWN_ID;
    op_complete(&want->op, st);
}

static void want_on_deadline(struct timer *t) {
    want_end(container_of(t, struct view_want, timer), ST_TIMED_OUT);
}

static void want_on_cancel(struct op *op) {
    struct view_want *want = container_of(op, struct view_want, op);
    if (link_in_list(&want->link))
        want_end(want, ST_CANCELED);
}

static void want_take(struct view_want *want, struct topic_view *view) {
    if (want->name.len < 0 && !uuid_equal(&view->facts.id, &want->id)) {
        want_end(want, ST_UNKNOWN_ID); /* made anew, under another id */
        return;
    }
    view_ref(view);
    want->view = view;
    want_end(want, ST_OK);
}

/* Whether what was asked at asked_ms, before or after this want came, is new enough for it. */
static bool want_is_met(const struct view_want *want, int64_t asked_ms) {
    return want->covered || want->asked_ms == 0 || asked_ms > want->asked_ms;
}

/* e is the topic that is wanted, or may be. */
static void want_join(struct views *v, struct entry *e, struct view_want *want) {
    if (e->view && want_is_met(want, e->view->asked_ms)) {
        want_take(want, e->view);
        return;
    }
    list_push_tail(&e->wants, &want->link);
    if (!e->asking)
        entry_ask(v, e);
    entry_free_if_empty(e);
}

/* By name len >= 0, or the entry that a listing has found. */
static void want_join_name(struct views *v, struct str name, struct view_want *want) {
    struct entry *e = entry_of(v, name);
    if (e)
        want_join(v, e, want);
    else
        want_end(want, ST_NO_MEMORY);
}

static void views_list(struct views *v);

void view_get(struct bridge_loop *l, struct view_want *want) {
    struct views *v = l->views;
    op_start(&want->op, want_on_cancel);
    want->loop = l;
    want->view = NULL;
    want->link = (struct link){0};
    want->covered = false;
    struct entry *e = want->name.len >= 0 ? entry_find(v, want->name) : entry_find_id(v, &want->id);
    if (e && e->view && want_is_met(want, e->view->asked_ms)) {
        want_take(want, e->view);
        return;
    }
    if (timer_set(loop_timers(l->loop), &want->timer, want_on_deadline, want->deadline_ms)) {
        op_complete(&want->op, ST_NO_MEMORY);
    } else if (e) {
        want_join(v, e, want);
    } else if (want->name.len >= 0) {
        want_join_name(v, want->name, want);
    } else {
        list_push_tail(&v->unknown, &want->link);
        views_list(v);
    }
}

/* ---- ids that are in no view ---- */

static void views_on_listing(struct op *op) {
    struct views *v = container_of(op, struct views, listing.op);
    struct listing *list = v->listing.listing;
    for (struct link *l = v->unknown.next, *next; l != &v->unknown; l = next) {
        struct view_want *want = container_of(l, struct view_want, link);
        next = l->next;
        if (op->status) {
            want_end(want, op->status);
            continue;
        }
        const struct listed_topic *topic = listing_find_id(list, &want->id);
        if (topic) {
            list_remove(&want->link);
            want->covered = false;
            want_join_name(v, topic->name, want);
        } else if (want->covered) {
            want_end(want, ST_UNKNOWN_ID);
        }
    }
    listing_unref(list);
    v->listing.listing = NULL;
    views_list(v);
}

static void views_list(struct views *v) {
    if (list_empty(&v->unknown) || v->listing.op.pending)
        return;
    int64_t now = loop_now_ms(v->loop->loop);
    for (struct link *l = v->unknown.next; l != &v->unknown; l = l->next)
        container_of(l, struct view_want, link)->covered = true;
    v->listing = (struct listing_want){.asked_ms = now, .deadline_ms = now + CALL_MS};
    op_init(&v->listing.op, v->loop->loop, views_on_listing);
    listing_get(v->loop, &v->listing);
}

/* ---- get_topic ---- */

/* The call has failed: who wanted no more than it could show is told so. */
static void entry_fail(struct entry *e, int64_t asked_ms, enum status st) {
    for (struct link *l = e->wants.next, *next; l != &e->wants; l = next) {
        struct view_want *want = container_of(l, struct view_want, link);
        next = l->next;
        if (want_is_met(want, asked_ms))
            want_end(want, st);
    }
}

static void entry_ask(struct views *v, struct entry *e) {
    struct bridge_loop *l = v->loop;
    int64_t now = loop_now_ms(l->loop);
    struct iggy_client *client = bridge_control(l);
    struct asking *a = client ? mem_take_zeroed(1, sizeof *a) : NULL;
    for (struct link *i = e->wants.next; i != &e->wants; i = i->next)
        container_of(i, struct view_want, link)->covered = true;
    if (!a) {
        entry_fail(e, now, ST_NO_MEMORY);
        return;
    }
    a->views = v;
    a->entry = e;
    a->asked_ms = now;
    topic_map_find(l->bridge->settings.topic_map, e->name, &a->place);
    a->body.stream = iggy_by_name(a->place.stream);
    a->body.topic = iggy_by_name(a->place.topic);
    a->request.deadline_ms = now + CALL_MS;
    e->asking = a;
    op_init(&a->request.op, l->loop, view_on_topic);
    iggy_client_call(client, &a->request, IGGY_CMD_get_topic, &a->body);
}

static char *text_put(char *at, struct str text, struct str *out) {
    memcpy(at, text.ptr, (size_t)text.len);
    *out = (struct str){at, text.len};
    return at + text.len;
}

/* NULL: no memory. */
static struct topic_view *view_make(const struct asking *a, const struct iggy_get_topic_res *res) {
    const struct bridge *b = a->views->loop->bridge;
    uint32_t count = res->topic.partitions_count;
    size_t head = sizeof(struct topic_view) + count * sizeof(struct view_partition);
    size_t texts = (size_t)a->entry->name.len + (size_t)a->place.stream.len + (size_t)a->place.topic.len;
    struct topic_view *view = mem_take_zeroed(1, head + texts);
    if (!view)
        return NULL;
    char *at = (char *)view + head;
    at = text_put(at, a->entry->name, &view->name);
    at = text_put(at, a->place.stream, &view->stream);
    text_put(at, a->place.topic, &view->topic);
    view->refs = 1;
    view->version = a->request.version;
    view->asked_ms = a->asked_ms;
    view->partitions_count = count;
    topic_facts_of(b, view->version, a->place.stream, &res->topic, &view->facts);
    for (uint32_t i = 0; i < count; i++) {
        const struct iggy_partition *from = &res->partitions[i];
        if (from->id >= count)
            continue;
        view->partitions[from->id] = (struct view_partition){.messages_count = from->messages_count,
                                                             .current_offset = from->current_offset,
                                                             .size_bytes = from->size_bytes,
                                                             .context = from->context};
    }
    return view;
}

static enum status asking_take(struct asking *a, struct topic_view **out) {
    struct iggy_get_topic_res res;
    struct arena memory;
    arena_init(&memory, NULL, 0, ANSWER_BYTES_MAX);
    enum status st = iggy_request_decode(&a->request, &memory, &res);
    if (!st && !res.found)
        st = ST_NOT_FOUND;
    if (!st && res.topic.partitions_count > PARTITIONS_MAX)
        st = ST_REFUSED;
    if (!st) {
        *out = view_make(a, &res);
        st = *out ? ST_OK : ST_NO_MEMORY;
    }
    arena_release(&memory);
    return st;
}

/* D2-51: a look-up that fails leaves the view that there is, unless the topic is gone. */
static void view_on_topic(struct op *op) {
    struct asking *a = container_of(op, struct asking, request.op);
    struct views *v = a->views;
    struct entry *e = a->entry;
    struct topic_view *view = NULL;
    enum status st = bridge_status(&a->request, IGGY_CALL_ADMIN);
    if (!st)
        st = asking_take(a, &view);
    int64_t asked_ms = a->asked_ms;
    bool outdated = a->outdated;
    e->asking = NULL;
    iggy_request_release(&a->request);
    mem_free(a);
    if (outdated) {
        view_unref(view);
    } else if (st) {
        if (st == ST_NOT_FOUND)
            entry_set_view(v, e, NULL);
        entry_fail(e, asked_ms, st);
    } else {
        entry_set_view(v, e, view);
        for (struct link *l = e->wants.next, *next; l != &e->wants; l = next) {
            struct view_want *want = container_of(l, struct view_want, link);
            next = l->next;
            if (want_is_met(want, asked_ms))
                want_take(want, view);
        }
    }
    if (!list_empty(&e->wants))
        entry_ask(v, e);
    entry_free_if_empty(e);
}

/* ---- the rest ---- */

struct topic_view *view_peek(struct bridge_loop *l, struct str name) {
    struct entry *e = entry_find(l->views, name);
    return e ? e->view : NULL;
}

struct topic_view *view_peek_id(struct bridge_loop *l, const struct uuid *id) {
    struct entry *e = entry_find_id(l->views, id);
    return e ? e->view : NULL;
}

int64_t view_message_bytes(const struct view_partition *p) {
    uint64_t bytes = p->messages_count > 0 ? p->size_bytes / p->messages_count : 0;
    if (bytes == 0)
        return MESSAGE_BYTES_GUESS;
    if (bytes < IGGY_MESSAGE_HEADER_BYTES)
        return IGGY_MESSAGE_HEADER_BYTES;
    return bytes > INT32_MAX ? INT32_MAX : (int64_t)bytes;
}

int64_t view_end(const struct view_partition *p) {
    if (p->messages_count == 0 && p->current_offset == 0)
        return 0;
    return p->current_offset < INT64_MAX ? (int64_t)p->current_offset + 1 : INT64_MAX;
}

int64_t view_bytes_from(const struct view_partition *p, int64_t offset) {
    int64_t messages = offset >= 0 ? view_end(p) - offset : 0;
    if (messages <= 0)
        return 0;
    return (messages < INT32_MAX ? messages : INT32_MAX) * view_message_bytes(p);
}

void view_ref(struct topic_view *v) {
    v->refs++;
}

void view_unref(struct topic_view *v) {
    if (v && --v->refs == 0)
        mem_free(v);
}

static void entry_forget(struct views *v, struct str name) {
    struct entry *e = entry_find(v, name);
    listings_forget(v->loop->listings);
    if (!e)
        return;
    if (e->asking)
        e->asking->outdated = true;
    entry_set_view(v, e, NULL);
    entry_free_if_empty(e);
}

/* A message to another loop. */
struct forgetting {
    struct op op;
    struct views *views;
    struct str name; /* behind it */
};

static void forgetting_run(struct op *op) {
    struct forgetting *f = container_of(op, struct forgetting, op);
    entry_forget(f->views, f->name);
    mem_free(f);
}

/* Without memory for the message a loop learns it from its own next call. */
void views_forget(struct bridge *b, struct str name) {
    for (int i = 0; i < b->settings.loops_count; i++) {
        struct bridge_loop *l = &b->per_loop[i];
        if (l->loop == loop_current()) {
            entry_forget(l->views, name);
            continue;
        }
        struct forgetting *f = mem_take_zeroed(1, sizeof *f + (size_t)name.len);
        if (!f)
            continue;
        text_put((char *)(f + 1), name, &f->name);
        f->views = l->views;
        op_init(&f->op, l->loop, forgetting_run);
        loop_post(&f->op);
    }
}

enum status views_new(struct bridge_loop *l, struct views **out) {
    struct views *v = mem_take_zeroed(1, sizeof *v);
    if (!v)
        return ST_NO_MEMORY;
    v->loop = l;
    list_init(&v->unknown);
    for (int i = 0; i < BUCKETS; i++) {
        list_init(&v->names[i]);
        list_init(&v->ids[i]);
    }
    *out = v;
    return ST_OK;
}

void views_free(struct views *v) {
    if (!v)
        return;
    for (int i = 0; i < BUCKETS; i++)
        while (!list_empty(&v->names[i]))
            entry_free(container_of(v->names[i].next, struct entry, link));
    mem_free(v);
}
