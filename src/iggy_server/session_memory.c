#include "iggy_server/session_memory.h"

#include "base/mem.h"
#include "iggy/errors.h"

#define SENDS_ROOM_FIRST 16

void session_memory_init(struct session_memory *m, _Atomic int64_t *replies_bytes) {
    *m = (struct session_memory){.replies_bytes = replies_bytes};
    pthread_mutex_init(&m->lock, NULL);
}

/* ---- metadata ---- */

static void change_clear(struct session_memory *m, struct session_change *c) {
    atomic_fetch_sub(m->replies_bytes, c->reply_bytes);
    mem_free(c->reply);
    *c = (struct session_change){0};
}

void session_memory_release(struct session_memory *m) {
    for (size_t i = 0; i < CHANGES_ROOM; i++)
        change_clear(m, &m->changes[i]);
    mem_free(m->sends);
    pthread_mutex_destroy(&m->lock);
}

static struct session_change *change_find(struct session_memory *m, uint64_t number) {
    for (size_t i = 0; i < CHANGES_ROOM; i++)
        if (m->changes[i].number == number)
            return &m->changes[i];
    return NULL;
}

/* A place for one more; NULL: as many are under way. */
static struct session_change *change_place(struct session_memory *m) {
    struct session_change *oldest = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < CHANGES_ROOM; i++) {
        struct session_change *c = &m->changes[i];
        if (c->turn == 0)
            continue;
        kept++;
        if (!oldest || c->turn < oldest->turn)
            oldest = c;
    }
    struct session_change *free_place = change_find(m, 0);
    if (!free_place && kept > 0) {
        change_clear(m, oldest);
        free_place = oldest;
    }
    return free_place;
}

static enum status change_repeat(const struct session_change *c, enum session_verdict *verdict_out,
                                 struct session_answer *out) {
    *verdict_out = SESSION_REFUSE;
    out->code = c->turn == 0 ? IGGY_ERR_TRANSIENT_NOT_COMMITTED : IGGY_ERR_REQUEST_ALREADY_APPLIED;
    if (c->turn == 0 || !c->reply)
        return ST_OK;
    out->reply = mem_take(c->reply_bytes);
    if (!out->reply)
        return ST_NO_MEMORY;
    memcpy(out->reply, c->reply, c->reply_bytes);
    out->reply_bytes = c->reply_bytes;
    *verdict_out = SESSION_REPEAT;
    return ST_OK;
}

enum status memory_begin_change(struct session_memory *m, uint64_t number, enum session_verdict *verdict_out,
                                struct session_answer *out) {
    enum status st = ST_OK;
    *verdict_out = SESSION_REFUSE;
    pthread_mutex_lock(&m->lock);
    struct session_change *c = number != 0 ? change_find(m, number) : NULL;
    if (c) {
        st = change_repeat(c, verdict_out, out);
    } else if (number <= m->changes_highest) {
        out->code = IGGY_ERR_REQUEST_ALREADY_APPLIED;
    } else if ((c = change_place(m)) != NULL) {
        c->number = number;
        *verdict_out = SESSION_GO;
    } else {
        out->code = IGGY_ERR_TRANSIENT_NOT_ACCEPTED;
    }
    pthread_mutex_unlock(&m->lock);
    return st;
}

/* A copy of the reply, if there is memory and room for it. */
static void change_keep(struct session_memory *m, struct session_change *c, const struct wbuf *reply) {
    int64_t bytes = (int64_t)reply->bytes;
    if (atomic_fetch_add(m->replies_bytes, bytes) + bytes <= SESSIONS_REPLIES_MAX)
        c->reply = mem_take(reply->bytes);
    if (!c->reply) {
        atomic_fetch_sub(m->replies_bytes, bytes);
        return;
    }
    c->reply_bytes = (uint32_t)bytes;
    wbuf_flatten(reply, c->reply);
}

static void changes_trim(struct session_memory *m) {
    for (size_t i = 0; i < CHANGES_ROOM; i++) {
        struct session_change *c = &m->changes[i];
        if (c->turn != 0 && c->turn + SESSION_REPLIES <= m->changes_turn)
            change_clear(m, c);
    }
}

void memory_end_change(struct session_memory *m, uint64_t number, bool counts, const struct wbuf *reply) {
    pthread_mutex_lock(&m->lock);
    struct session_change *c = change_find(m, number);
    if (c && !counts) {
        change_clear(m, c);
    } else if (c) {
        c->turn = ++m->changes_turn;
        if (number > m->changes_highest)
            m->changes_highest = number;
        if (reply)
            change_keep(m, c, reply);
        changes_trim(m);
    }
    pthread_mutex_unlock(&m->lock);
}

/* ---- sends and offsets ---- */

static struct session_send *send_at(const struct session_memory *m, uint32_t place) {
    return &m->sends[(m->sends_at + place) & (m->sends_room - 1)];
}

/* From the newest, which is the likeliest. */
static struct session_send *send_find(const struct session_memory *m, uint64_t number) {
    for (uint32_t i = m->sends_count; i > 0; i--)
        if (send_at(m, i - 1)->number == number)
            return send_at(m, i - 1);
    return NULL;
}

static void sends_forget(struct session_memory *m) {
    while (m->sends_count >= SESSION_SENDS && !send_at(m, 0)->running) {
        if (send_at(m, 0)->number > m->sends_forgotten)
            m->sends_forgotten = send_at(m, 0)->number;
        m->sends_at = (m->sends_at + 1) & (m->sends_room - 1);
        m->sends_count--;
    }
}

static enum status sends_grow(struct session_memory *m) {
    uint32_t room = m->sends_room > 0 ? m->sends_room * 2 : SENDS_ROOM_FIRST;
    struct session_send *sends = mem_take_zeroed(room, sizeof *sends);
    if (!sends)
        return ST_NO_MEMORY;
    for (uint32_t i = 0; i < m->sends_count; i++)
        sends[i] = *send_at(m, i);
    mem_free(m->sends);
    m->sends = sends;
    m->sends_room = room;
    m->sends_at = 0;
    return ST_OK;
}

static enum status send_add(struct session_memory *m, uint64_t number, enum session_verdict *verdict_out,
                            struct session_answer *out) {
    sends_forget(m);
    if (m->sends_count >= SENDS_ROOM) {
        out->code = IGGY_ERR_TRANSIENT_NOT_ACCEPTED;
        return ST_OK;
    }
    if (m->sends_count == m->sends_room && sends_grow(m))
        return ST_NO_MEMORY;
    *send_at(m, m->sends_count++) = (struct session_send){.number = number, .running = true};
    if (number > m->sends_highest)
        m->sends_highest = number;
    *verdict_out = SESSION_GO;
    return ST_OK;
}

enum status memory_begin_send(struct session_memory *m, uint64_t number, enum session_verdict *verdict_out,
                              struct session_answer *out) {
    enum status st = ST_OK;
    *verdict_out = SESSION_REFUSE;
    pthread_mutex_lock(&m->lock);
    struct session_send *s = number <= m->sends_highest ? send_find(m, number) : NULL;
    if (s && s->running) {
        out->code = IGGY_ERR_TRANSIENT_NOT_COMMITTED;
    } else if (s) {
        *verdict_out = SESSION_REPEAT;
        out->offset_known = s->offset_known;
        out->confirmation = s->confirmation;
    } else if (number <= m->sends_forgotten) {
        out->code = IGGY_ERR_REQUEST_TOO_OLD;
    } else {
        st = send_add(m, number, verdict_out, out);
    }
    pthread_mutex_unlock(&m->lock);
    return st;
}

void memory_end_send(struct session_memory *m, uint64_t number, bool counts,
                     const struct iggy_confirmation *confirmation) {
    pthread_mutex_lock(&m->lock);
    struct session_send *s = send_find(m, number);
    if (s) {
        s->running = false;
        s->number = counts ? number : 0;
        s->offset_known = confirmation != NULL;
        if (confirmation)
            s->confirmation = *confirmation;
    }
    pthread_mutex_unlock(&m->lock);
}
