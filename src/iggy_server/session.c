#include "iggy_server/session.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/le.h"
#include "base/mem.h"
#include "iggy_server/session_memory.h"

#define BUCKETS_COUNT 4096

struct sessions {
    struct iggy_server *server;
    pthread_mutex_t lock;
    struct login *buckets[BUCKETS_COUNT];
    struct link unbound; /* oldest first */
    uint64_t next_number;
    uint32_t count, connected;
    _Atomic int64_t replies_bytes;
};

/* A session with what only this file knows. */
struct login {
    struct session visible;
    struct sessions *all;
    _Atomic uint32_t refs;
    /* under the lock of all */
    struct login *next; /* in its bucket */
    bool ended;
    uint32_t version;
    struct iggy_secret secret;
    char address[SESSION_ADDRESS_BYTES];
    struct link age; /* in unbound */
    int64_t unbound_ms;
    bool left_groups;
    struct session_memory memory;
};

static struct login *login_of(struct session *session) {
    return container_of(session, struct login, visible);
}

/* ---- life ---- */

enum status sessions_new(struct iggy_server *server, uint64_t first_number, struct sessions **out) {
    struct sessions *s = mem_take_zeroed(1, sizeof *s);
    if (!s)
        return ST_NO_MEMORY;
    s->server = server;
    s->next_number = first_number;
    list_init(&s->unbound);
    pthread_mutex_init(&s->lock, NULL);
    *out = s;
    return ST_OK;
}

void session_ref(struct session *session) {
    atomic_fetch_add(&login_of(session)->refs, 1);
}

void session_unref(struct session *session) {
    if (!session)
        return;
    struct login *l = login_of(session);
    if (atomic_fetch_sub(&l->refs, 1) > 1)
        return;
    session_memory_release(&l->memory);
    mem_free(l);
}

void sessions_free(struct sessions *s) {
    if (!s)
        return;
    for (size_t i = 0; i < BUCKETS_COUNT; i++)
        for (struct login *l = s->buckets[i], *next; l; l = next) {
            next = l->next;
            session_unref(&l->visible);
        }
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

/* ---- the table; all under the lock ---- */

static struct login **bucket_of(struct sessions *s, const struct iggy_u128 *client_id) {
    uint64_t mixed = (le_get64(client_id->b) ^ le_get64(client_id->b + 8)) * UINT64_C(0x9e3779b97f4a7c15);
    return &s->buckets[mixed >> 52];
}
static_assert(BUCKETS_COUNT == 1 << (64 - 52), "the upper bits are the bucket");

static struct login *table_find(struct sessions *s, const struct iggy_u128 *client_id) {
    struct login *l = *bucket_of(s, client_id);
    while (l && memcmp(l->visible.client_id.b, client_id->b, sizeof client_id->b) != 0)
        l = l->next;
    return l;
}

static void set_client(struct login *l, uint32_t client_number) {
    uint32_t before = atomic_exchange(&l->visible.client_number, client_number);
    if (client_number != 0 && before == 0)
        l->all->connected++;
    else if (client_number == 0 && before != 0)
        l->all->connected--;
}

/* Out of the table. Its number, for the groups; the table's hold on it goes in sessions_tell. */
static struct login *table_end(struct login *l) {
    struct login **at = bucket_of(l->all, &l->visible.client_id);
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    l->all->count--;
    l->ended = true;
    list_remove(&l->age);
    set_client(l, 0);
    return l;
}

/* Without the lock: those who ended leave their groups. */
static void sessions_tell(struct sessions *s, struct login *ended) {
    if (!ended)
        return;
    groups_forget_session(s->server->groups, ended->visible.number);
    session_unref(&ended->visible);
}

static struct login *oldest_unbound(struct sessions *s) {
    return list_empty(&s->unbound) ? NULL : container_of(s->unbound.next, struct login, age);
}

static void login_bind(struct login *l, const struct session_login *in) {
    l->version = in->version;
    l->left_groups = false;
    snprintf(l->address, sizeof l->address, "%s", in->address);
    list_remove(&l->age);
    set_client(l, in->client_number);
}

/* ---- logging in ---- */

static struct login *login_new(struct sessions *s, const struct session_login *in) {
    struct login *l = mem_take_zeroed(1, sizeof *l);
    if (!l)
        return NULL;
    l->visible.client_id = in->client_id;
    l->visible.user_id = in->user_id;
    l->all = s;
    atomic_store(&l->refs, 2); /* the table's and the caller's */
    l->secret = in->secret;
    session_memory_init(&l->memory, &s->replies_bytes);
    return l;
}

/* Those whose place the new one takes: with its client id; the connection's own; the oldest, where there are too many. */
struct replaced {
    struct login *same, *before, *oldest;
};

static struct replaced table_replace(struct sessions *s, struct login *l, const struct session_login *in) {
    struct replaced out = {.same = table_find(s, &in->client_id)};
    if (out.same)
        table_end(out.same);
    struct login *before = in->before ? login_of(in->before) : NULL;
    if (before && !before->ended && session_is_of(&before->visible, in->client_number))
        out.before = table_end(before);
    if (s->count >= SESSIONS_MAX && (out.oldest = oldest_unbound(s)) != NULL)
        table_end(out.oldest);
    struct login **bucket = bucket_of(s, &in->client_id);
    l->visible.number = s->next_number++;
    l->next = *bucket;
    *bucket = l;
    s->count++;
    login_bind(l, in);
    return out;
}

enum status session_log_in(struct sessions *s, const struct session_login *in, struct session **out) {
    struct login *l = login_new(s, in);
    if (!l)
        return ST_NO_MEMORY;
    struct replaced replaced = {0};
    enum status st = ST_OK;
    pthread_mutex_lock(&s->lock);
    struct login *there = table_find(s, &in->client_id);
    bool again = there && session_is_of(&there->visible, in->client_number);
    if (there && there->visible.user_id != in->user_id) {
        st = ST_DENIED;
    } else if (again) {
        there->secret = in->secret;
        login_bind(there, in);
        session_ref(&there->visible);
        *out = &there->visible;
    } else {
        replaced = table_replace(s, l, in);
        *out = &l->visible;
    }
    pthread_mutex_unlock(&s->lock);
    if (st || again) {
        atomic_store(&l->refs, 1);
        session_unref(&l->visible);
    }
    sessions_tell(s, replaced.same);
    sessions_tell(s, replaced.before);
    sessions_tell(s, replaced.oldest);
    return st;
}

/* In a time that doesn't tell how much of it is right. */
static bool secret_equal(const struct iggy_secret *a, const struct iggy_secret *b) {
    uint8_t differs = 0;
    for (size_t i = 0; i < sizeof a->b; i++)
        differs |= a->b[i] ^ b->b[i];
    return differs == 0;
}

enum status session_bind(struct sessions *s, const struct session_login *in, uint64_t number,
                         struct session **out) {
    struct login *before = NULL;
    pthread_mutex_lock(&s->lock);
    struct login *l = table_find(s, &in->client_id);
    bool good = l && l->version >= IGGY_0_12_0 && secret_equal(&l->secret, &in->secret) &&
                (number == 0 || number == l->visible.number);
    if (good) {
        before = in->before ? login_of(in->before) : NULL;
        if (before && (before == l || before->ended || !session_is_of(&before->visible, in->client_number)))
            before = NULL;
        if (before)
            table_end(before);
        login_bind(l, in);
        session_ref(&l->visible);
        *out = &l->visible;
    }
    pthread_mutex_unlock(&s->lock);
    sessions_tell(s, before);
    return good ? ST_OK : ST_NOT_FOUND;
}

/* ---- the end ---- */

void session_log_out(struct sessions *s, struct session *session) {
    struct login *l = login_of(session);
    pthread_mutex_lock(&s->lock);
    bool ends = !l->ended;
    if (ends)
        table_end(l);
    pthread_mutex_unlock(&s->lock);
    sessions_tell(s, ends ? l : NULL);
}

bool session_has_ended(struct sessions *s, struct session *session) {
    pthread_mutex_lock(&s->lock);
    bool ended = login_of(session)->ended;
    pthread_mutex_unlock(&s->lock);
    return ended;
}

void session_leave(struct sessions *s, struct session *session, uint32_t client_number, int64_t now_ms) {
    struct login *l = login_of(session), *ended = NULL;
    pthread_mutex_lock(&s->lock);
    if (!l->ended && session_is_of(session, client_number)) {
        if (l->version < IGGY_0_12_0) {
            ended = table_end(l);
        } else {
            set_client(l, 0);
            l->unbound_ms = now_ms;
            list_push_tail(&s->unbound, &l->age);
        }
    }
    pthread_mutex_unlock(&s->lock);
    sessions_tell(s, ended);
}

/* The next one whose membership or life is over, as a step of its own, since groups are told without the lock. 0: there is none. */
static uint64_t sweep_one(struct sessions *s, int64_t now_ms, struct login **ended_out) {
    uint64_t number = 0;
    *ended_out = NULL;
    pthread_mutex_lock(&s->lock);
    for (struct link *at = s->unbound.next; number == 0 && at != &s->unbound; at = at->next) {
        struct login *l = container_of(at, struct login, age);
        if (now_ms - l->unbound_ms < SESSIONS_MEMBER_MS)
            break;
        bool over = now_ms - l->unbound_ms >= SESSIONS_KEPT_MS;
        if (!over && l->left_groups)
            continue;
        number = l->visible.number;
        l->left_groups = true;
        if (over)
            *ended_out = table_end(l);
        if (over)
            break; /* at is no longer in the list */
    }
    pthread_mutex_unlock(&s->lock);
    return number;
}

void sessions_sweep(struct sessions *s, int64_t now_ms) {
    struct login *ended;
    uint64_t number;
    while ((number = sweep_one(s, now_ms, &ended)) != 0) {
        if (ended)
            sessions_tell(s, ended);
        else
            groups_forget_session(s->server->groups, number);
    }
}

/* ---- who is connected ---- */

static struct session_info info_of(const struct login *l) {
    struct session_info info = {.client_number = atomic_load(&l->visible.client_number),
                                .user_id = l->visible.user_id,
                                .number = l->visible.number};
    memcpy(info.address, l->address, sizeof info.address);
    return info;
}

enum status sessions_list(struct sessions *s, struct arena *a, struct session_info **out,
                          uint32_t *count_out) {
    uint32_t count = 0;
    pthread_mutex_lock(&s->lock);
    struct session_info *list = arena_take_array(a, struct session_info, s->connected);
    for (size_t i = 0; list && i < BUCKETS_COUNT; i++)
        for (struct login *l = s->buckets[i]; l; l = l->next)
            if (!session_is_of(&l->visible, 0))
                list[count++] = info_of(l);
    pthread_mutex_unlock(&s->lock);
    *out = list;
    *count_out = count;
    return list ? ST_OK : ST_NO_MEMORY;
}

bool sessions_find(struct sessions *s, uint32_t client_number, struct session_info *out) {
    bool found = false;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; client_number != 0 && !found && i < BUCKETS_COUNT; i++)
        for (struct login *l = s->buckets[i]; l && !found; l = l->next)
            if (session_is_of(&l->visible, client_number)) {
                *out = info_of(l);
                found = true;
            }
    pthread_mutex_unlock(&s->lock);
    return found;
}

uint32_t sessions_connected(struct sessions *s) {
    pthread_mutex_lock(&s->lock);
    uint32_t connected = s->connected;
    pthread_mutex_unlock(&s->lock);
    return connected;
}

/* ---- request numbers ---- */

enum status session_begin(struct session *session, enum iggy_plane plane, uint64_t number,
                          enum session_verdict *verdict_out, struct session_answer *out) {
    struct session_memory *m = &login_of(session)->memory;
    *out = (struct session_answer){0};
    return plane == IGGY_PLANE_METADATA ? memory_begin_change(m, number, verdict_out, out)
                                        : memory_begin_send(m, number, verdict_out, out);
}

void session_done(struct session *session, enum iggy_plane plane, uint64_t number, bool counts,
                  const struct wbuf *reply, const struct iggy_confirmation *confirmation) {
    struct session_memory *m = &login_of(session)->memory;
    if (plane == IGGY_PLANE_METADATA)
        memory_end_change(m, number, counts, reply);
    else
        memory_end_send(m, number, counts, confirmation);
}
