/*
 * Groups stand in one row, sorted by stream, topic and id, and in one sorted by name; members in one sorted by session. All are arrays of
 * pointers (base/sorted.h), so that a session's end, a topic's end and a poll find theirs by halving.
 */
#include "iggy_server/groups.h"

#include <pthread.h>

#include "base/logging.h"
#include "base/mem.h"
#include "base/sorted.h"
#include "iggy/errors.h"
#include "iggy_server/owner.h"
#include "iggy_server/request.h"
#include "store/store_offsets.h"
#include "store/store_users.h"

struct member {
    struct group *group;
    uint64_t session;
    uint32_t id;    /* for show: counted within the group */
    uint32_t index; /* in the group's members */
    uint32_t turn;  /* which of its partitions the next poll without one gets */
};

struct group {
    uint32_t stream_id, topic_id, id;
    char *name; /* owned */
    uint64_t generation;
    uint32_t partitions_count; /* what was dealt */
    struct member **members;   /* owned, with the members; in the order they joined */
    uint32_t members_count, members_room, next_member;
};

/*
 * `lock` is for all of the memory, and short. `changes` is held over the store's disk by groups_create and groups_delete, in the pool only,
 * and is taken first. What goes with its topic waits for no disk: it may go while one of these two writes.
 */
struct groups {
    struct store *store; /* borrowed */
    pthread_mutex_t changes, lock;
    struct sorted by_id, by_name; /* struct group; owned */
    struct sorted memberships;    /* struct member, by session and group */
};

/* ---- order ---- */

struct group_key {
    uint32_t stream_id, topic_id, id;
    struct str name; /* instead of id, for by_name */
};
struct member_key {
    uint64_t session;
    struct group_key group;
};

static int number_order(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int topic_order(const struct group_key *key, const struct group *g) {
    int order = number_order(key->stream_id, g->stream_id);
    return order ? order : number_order(key->topic_id, g->topic_id);
}

static int group_by_id(const void *key, const void *row) {
    const struct group_key *k = key;
    const struct group *g = row;
    int order = topic_order(k, g);
    return order ? order : number_order(k->id, g->id);
}

static int group_by_name(const void *key, const void *row) {
    const struct group_key *k = key;
    const struct group *g = row;
    struct str name = str_of(g->name);
    int order = topic_order(k, g);
    if (!order)
        order = number_order((uint64_t)k->name.len, (uint64_t)name.len);
    return order ? order : memcmp(k->name.ptr, name.ptr, (size_t)name.len);
}

static int member_by_group(const void *key, const void *row) {
    const struct member_key *k = key;
    const struct member *m = row;
    int order = number_order(k->session, m->session);
    return order ? order : group_by_id(&k->group, m->group);
}

static int member_by_session(const void *key, const void *row) {
    return number_order(*(const uint64_t *)key, ((const struct member *)row)->session);
}

static struct group_key key_of(const struct group *g) {
    return (struct group_key){g->stream_id, g->topic_id, g->id, str_of(g->name)};
}

static struct group_key key_in(const struct topic *t, uint32_t id) {
    const struct topic_info *info = topic_info(t);
    return (struct group_key){info->stream_id, info->topic_id, id, STR_NULL};
}

static struct group *group_find(const struct groups *g, const struct topic *t,
                                const struct iggy_identifier *id) {
    struct group_key key = key_in(t, id->id);
    key.name = id->name;
    return id->kind == IGGY_BY_ID ? sorted_find(&g->by_id, group_by_id, &key)
                                  : sorted_find(&g->by_name, group_by_name, &key);
}

static struct member *member_find(const struct groups *g, const struct group *group, uint64_t session) {
    struct member_key key = {session, key_of(group)};
    return sorted_find(&g->memberships, member_by_group, &key);
}

/* Where a session's memberships are; gives how many. */
static size_t session_range(const struct groups *g, uint64_t session, size_t *first_out) {
    uint64_t next = session + 1;
    *first_out = sorted_place(&g->memberships, member_by_session, &session);
    size_t end = next == 0 ? g->memberships.count : sorted_place(&g->memberships, member_by_session, &next);
    return end - *first_out;
}

/* Where a topic's groups are in by_id, or a stream's (topic_id UINT32_MAX); gives how many. */
static size_t topic_range(const struct groups *g, uint32_t stream_id, uint32_t topic_id, size_t *first_out) {
    bool all = topic_id == UINT32_MAX;
    struct group_key from = {stream_id, all ? 0 : topic_id, 0, STR_NULL};
    struct group_key last = {stream_id, topic_id, UINT32_MAX, STR_NULL};
    *first_out = sorted_place(&g->by_id, group_by_id, &from);
    return sorted_place(&g->by_id, group_by_id, &last) - *first_out;
}

static uint32_t not_found(const struct iggy_identifier *id) {
    return id->kind == IGGY_BY_ID ? IGGY_ERR_CONSUMER_GROUP_ID_NOT_FOUND
                                  : IGGY_ERR_CONSUMER_GROUP_NAME_NOT_FOUND;
}

/* ---- dealing ---- */

/* How many of the group's partitions are the member's: index, index + n, ... */
static uint32_t share_of(const struct member *m) {
    const struct group *g = m->group;
    return m->index < g->partitions_count ? (g->partitions_count - 1 - m->index) / g->members_count + 1 : 0;
}

static uint32_t share_at(const struct member *m, uint32_t i) {
    return m->index + i * m->group->members_count;
}

/* The topic may have grown or shrunk since the last look. */
static void group_refresh(struct group *group, const struct topic *t) {
    uint32_t count = (uint32_t)topic_partitions_count(t);
    if (group->partitions_count == count)
        return;
    group->partitions_count = count;
    group->generation++;
}

/* Out of its group, whose others move up; not out of memberships. */
static void member_leave(struct member *m) {
    struct group *group = m->group;
    uint32_t after = group->members_count - m->index - 1;
    memmove(group->members + m->index, group->members + m->index + 1, after * sizeof *group->members);
    group->members_count--;
    for (uint32_t i = m->index; i < group->members_count; i++)
        group->members[i]->index = i;
    group->generation++;
    mem_free(m);
}

/* ---- rows ---- */

static void group_free(struct group *group) {
    if (!group)
        return;
    for (uint32_t i = 0; i < group->members_count; i++)
        mem_free(group->members[i]);
    mem_free(group->members);
    mem_free(group->name);
    mem_free(group);
}

static enum status group_new(const struct store_group *from, struct group **out) {
    struct group *group = mem_take_zeroed(1, sizeof *group);
    char *name = mem_text(from->name);
    if (!group || !name) {
        mem_free(group);
        mem_free(name);
        return ST_NO_MEMORY;
    }
    *group = (struct group){
        .stream_id = from->stream_id, .topic_id = from->topic_id, .id = from->group_id, .name = name};
    *out = group;
    return ST_OK;
}

static enum status groups_reserve(struct groups *g) {
    enum status st = sorted_reserve(&g->by_id, 1);
    return st ? st : sorted_reserve(&g->by_name, 1);
}

static void groups_put(struct groups *g, struct group *group) {
    struct group_key key = key_of(group);
    sorted_put(&g->by_id, sorted_place(&g->by_id, group_by_id, &key), group);
    sorted_put(&g->by_name, sorted_place(&g->by_name, group_by_name, &key), group);
}

/* With the lock held: the groups at a place of by_id go, with their members. */
static void groups_drop(struct groups *g, size_t first, size_t count) {
    size_t members = 0;
    for (size_t i = 0; i < count; i++) {
        struct group *group = g->by_id.rows[first + i];
        struct group_key key = key_of(group);
        members += group->members_count;
        group->members_room = 0; /* marks it for the walk below */
        sorted_take(&g->by_name, sorted_place(&g->by_name, group_by_name, &key), 1);
    }
    size_t kept = 0;
    for (size_t i = 0; members > 0 && i < g->memberships.count; i++) {
        const struct member *m = g->memberships.rows[i];
        if (m->group->members_room > 0)
            g->memberships.rows[kept++] = g->memberships.rows[i];
    }
    g->memberships.count -= members;
    for (size_t i = 0; i < count; i++)
        group_free(g->by_id.rows[first + i]);
    sorted_take(&g->by_id, first, count);
}

/* ---- opening ---- */

static enum status load_group(void *groups, const struct store_group *from) {
    struct groups *g = groups;
    struct group *group;
    enum status st = groups_reserve(g);
    if (!st)
        st = group_new(from, &group);
    if (!st)
        groups_put(g, group);
    return st;
}

enum status groups_open(struct iggy_server *server, struct groups **out) {
    struct groups *g = mem_take_zeroed(1, sizeof *g);
    if (!g)
        return ST_NO_MEMORY;
    g->store = server->settings.store;
    pthread_mutex_init(&g->changes, NULL);
    pthread_mutex_init(&g->lock, NULL);
    enum status st = store_each_group(g->store, load_group, g);
    if (st) {
        groups_close(g);
        return st;
    }
    *out = g;
    return ST_OK;
}

void groups_close(struct groups *g) {
    if (!g)
        return;
    for (size_t i = 0; i < g->by_id.count; i++)
        group_free(g->by_id.rows[i]);
    sorted_release(&g->by_id);
    sorted_release(&g->by_name);
    sorted_release(&g->memberships);
    pthread_mutex_destroy(&g->lock);
    pthread_mutex_destroy(&g->changes);
    mem_free(g);
}

/* ---- looking up ---- */

uint32_t groups_find(struct groups *g, const struct topic *t, const struct iggy_identifier *id,
                     uint32_t *group_id_out) {
    pthread_mutex_lock(&g->lock);
    const struct group *group = group_find(g, t, id);
    if (group)
        *group_id_out = group->id;
    pthread_mutex_unlock(&g->lock);
    return group ? 0 : not_found(id);
}

/* With the lock held: the session's membership, with the topic's partitions as they are now. NULL: not a member. */
static struct member *member_now(struct groups *g, const struct topic *t, const struct iggy_identifier *id,
                                 uint64_t session) {
    struct group *group = group_find(g, t, id);
    struct member *m = group ? member_find(g, group, session) : NULL;
    if (m)
        group_refresh(group, t);
    return m;
}

bool groups_owns(struct groups *g, const struct topic *t, uint32_t group_id, uint64_t session_number,
                 uint32_t partition) {
    struct iggy_identifier id = iggy_by_id(group_id);
    pthread_mutex_lock(&g->lock);
    const struct member *m = member_now(g, t, &id, session_number);
    bool owns =
        m && partition < m->group->partitions_count && partition % m->group->members_count == m->index;
    pthread_mutex_unlock(&g->lock);
    return owns;
}

bool groups_next_partition(struct groups *g, const struct topic *t, uint32_t group_id,
                           uint64_t session_number, uint32_t *partition_out) {
    struct iggy_identifier id = iggy_by_id(group_id);
    pthread_mutex_lock(&g->lock);
    struct member *m = member_now(g, t, &id, session_number);
    uint32_t share = m ? share_of(m) : 0;
    if (share > 0) {
        uint32_t turn = m->turn % share;
        m->turn = turn + 1;
        *partition_out = share_at(m, turn);
    }
    pthread_mutex_unlock(&g->lock);
    return share > 0;
}

static enum status share_show(const struct member *m, struct arena *a, struct iggy_number **out,
                              uint32_t *count_out) {
    uint32_t share = share_of(m);
    struct iggy_number *partitions = arena_take_array(a, struct iggy_number, share);
    if (!partitions)
        return ST_NO_MEMORY;
    for (uint32_t i = 0; i < share; i++)
        partitions[i].value = share_at(m, i);
    *out = partitions;
    *count_out = share;
    return ST_OK;
}

static enum status group_show(const struct group *group, struct arena *a, struct iggy_group *out) {
    *out = (struct iggy_group){.id = group->id,
                               .partitions_count = group->partitions_count,
                               .members_count = group->members_count,
                               .name = arena_text(a, str_of(group->name))};
    return out->name.ptr ? ST_OK : ST_NO_MEMORY;
}

static enum status members_show(const struct group *group, struct arena *a, struct iggy_get_group_res *out) {
    enum status st = ST_OK;
    out->members = arena_take_array(a, struct iggy_member, group->members_count);
    out->members_count = group->members_count;
    if (!out->members)
        return ST_NO_MEMORY;
    for (uint32_t i = 0; i < group->members_count && !st; i++) {
        out->members[i].id = group->members[i]->id;
        st = share_show(group->members[i], a, &out->members[i].partitions, &out->members[i].partitions_count);
    }
    return st;
}

enum status groups_get(struct groups *g, const struct topic *t, const struct iggy_identifier *id,
                       struct arena *a, struct iggy_get_group_res *out) {
    enum status st = ST_OK;
    *out = (struct iggy_get_group_res){.found = false};
    pthread_mutex_lock(&g->lock);
    struct group *group = group_find(g, t, id);
    if (group) {
        out->found = true;
        group_refresh(group, t);
        st = group_show(group, a, &out->group);
        if (!st)
            st = members_show(group, a, out);
    }
    pthread_mutex_unlock(&g->lock);
    return st;
}

enum status groups_list(struct groups *g, const struct topic *t, struct arena *a,
                        struct iggy_get_groups_res *out) {
    enum status st = ST_OK;
    size_t first;
    pthread_mutex_lock(&g->lock);
    size_t count = topic_range(g, topic_info(t)->stream_id, topic_info(t)->topic_id, &first);
    *out = (struct iggy_get_groups_res){.groups = arena_take_array(a, struct iggy_group, count),
                                        .groups_count = (uint32_t)count};
    if (!out->groups)
        st = ST_NO_MEMORY;
    for (size_t i = 0; i < count && !st; i++) {
        group_refresh(g->by_id.rows[first + i], t);
        st = group_show(g->by_id.rows[first + i], a, &out->groups[i]);
    }
    pthread_mutex_unlock(&g->lock);
    return st;
}

enum status groups_sync(struct groups *g, const struct topic *t, const struct iggy_identifier *id,
                        uint64_t session_number, struct arena *a, struct iggy_sync_group_res *out) {
    enum status st = ST_OK;
    *out = (struct iggy_sync_group_res){.is_member = false};
    pthread_mutex_lock(&g->lock);
    const struct member *m = member_now(g, t, id, session_number);
    if (m) {
        out->is_member = true;
        out->generation = m->group->generation;
        st = share_show(m, a, &out->partitions, &out->partitions_count);
    }
    pthread_mutex_unlock(&g->lock);
    return st;
}

enum status groups_of_session(struct groups *g, uint64_t session_number, struct arena *a,
                              struct iggy_client_group **out, uint32_t *count_out) {
    size_t first;
    pthread_mutex_lock(&g->lock);
    size_t count = session_range(g, session_number, &first);
    struct iggy_client_group *list = arena_take_array(a, struct iggy_client_group, count);
    for (size_t i = 0; list && i < count; i++) {
        const struct group *group = ((const struct member *)g->memberships.rows[first + i])->group;
        list[i] = (struct iggy_client_group){group->stream_id, group->topic_id, group->id};
    }
    pthread_mutex_unlock(&g->lock);
    if (!list)
        return ST_NO_MEMORY;
    *out = list;
    *count_out = (uint32_t)count;
    return ST_OK;
}

/* ---- groups come and go ---- */

/* With the lock held: groups of topics that went without a word, as when a Kafka client deletes one. */
static void groups_sweep(struct groups *g) {
    for (size_t at = 0; at < g->by_id.count;) {
        const struct group *group = g->by_id.rows[at];
        size_t first, count = topic_range(g, group->stream_id, group->topic_id, &first);
        struct topic *t = store_topic_by_number(g->store, group->stream_id, group->topic_id);
        if (t)
            at += count;
        else
            groups_drop(g, first, count);
        topic_unref(t);
    }
}

uint32_t groups_count(struct groups *g) {
    pthread_mutex_lock(&g->lock);
    groups_sweep(g);
    size_t count = g->by_id.count;
    pthread_mutex_unlock(&g->lock);
    return (uint32_t)count;
}

void groups_forget_topic(struct groups *g, uint32_t stream_id, uint32_t topic_id) {
    size_t first;
    pthread_mutex_lock(&g->lock);
    size_t count = topic_range(g, stream_id, topic_id, &first);
    groups_drop(g, first, count);
    pthread_mutex_unlock(&g->lock);
}

/* Under `changes`: whether there may be one more of this name, and room for it. 0; 5004; 5010. */
static uint32_t group_prepare(struct groups *g, const struct topic *t, struct str name) {
    struct iggy_identifier by_name = iggy_by_name(name);
    uint32_t code = 0;
    pthread_mutex_lock(&g->lock);
    if (g->by_id.count >= GROUPS_MAX)
        groups_sweep(g);
    if (group_find(g, t, &by_name))
        code = IGGY_ERR_CONSUMER_GROUP_NAME_ALREADY_EXISTS;
    else if (g->by_id.count >= GROUPS_MAX)
        code = IGGY_ERR_TOO_MANY_CONSUMER_GROUPS;
    else
        code = code_of_status(groups_reserve(g));
    pthread_mutex_unlock(&g->lock);
    return code;
}

/* With the lock held: the group that key stands for goes, if it is still there. */
static void group_drop(struct groups *g, const struct group_key *key) {
    size_t place = sorted_place(&g->by_id, group_by_id, key);
    if (place < g->by_id.count && group_by_id(key, g->by_id.rows[place]) == 0)
        groups_drop(g, place, 1);
}

/* Under `changes`. The row in memory is made before the store is written, so that nothing can fail after it. */
static uint32_t group_add(struct groups *g, const struct topic *t, struct str name, uint32_t *group_id_out) {
    struct group *group = NULL;
    const struct topic_info *info = topic_info(t);
    struct store_group want = {.stream_id = info->stream_id, .topic_id = info->topic_id, .name = name};
    uint32_t code = group_prepare(g, t, name);
    if (code)
        return code;
    enum status st = group_new(&want, &group);
    if (!st)
        st = store_group_add(g->store, info->stream_id, info->topic_id, name, &group->id);
    if (st) {
        group_free(group);
        return st == ST_EXISTS      ? IGGY_ERR_CONSUMER_GROUP_NAME_ALREADY_EXISTS
               : st == ST_NOT_FOUND ? IGGY_ERR_TOPIC_ID_NOT_FOUND
                                    : code_of_status(st);
    }
    struct group_key key = key_of(group);
    pthread_mutex_lock(&g->lock);
    group_refresh(group, t);
    groups_put(g, group);
    bool too_late = topic_deleted(t); /* its groups may have been forgotten before this one was there */
    if (too_late)
        group_drop(g, &key);
    pthread_mutex_unlock(&g->lock);
    *group_id_out = key.id;
    return too_late ? IGGY_ERR_TOPIC_ID_NOT_FOUND : 0;
}

uint32_t groups_create(struct groups *g, const struct topic *t, struct str name, uint32_t *group_id_out) {
    if (name.len < 1 || name.len > IGGY_NAME_BYTES_MAX || memchr(name.ptr, '\0', (size_t)name.len))
        return IGGY_ERR_INVALID_CONSUMER_GROUP_NAME;
    pthread_mutex_lock(&g->changes);
    uint32_t code = group_add(g, t, name, group_id_out);
    pthread_mutex_unlock(&g->changes);
    return code;
}

/* Ids are not given again, so what could not be removed is out of the way, only not off the disk. */
static void offsets_forget(struct groups *g, const struct topic *t, uint32_t group_id) {
    static const uint8_t kinds[] = {IGGY_CONSUMER_GROUP, IGGY_EXTERNAL_GROUP};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        char buffer[OFFSET_OWNER_BYTES];
        struct str owner = offset_owner(buffer, kinds[i], group_id);
        enum status st = store_offsets_remove(g->store, owner, &topic_info(t)->id, -1, NULL);
        if (st)
            log_line_limited(LOG_WARN, "iggy", "offsets of a deleted group stay on disk",
                             LTEXT("cause", status_text(st)));
    }
}

uint32_t groups_delete(struct groups *g, const struct topic *t, const struct iggy_identifier *id) {
    struct group_key key = key_in(t, 0);
    pthread_mutex_lock(&g->changes);
    uint32_t code = groups_find(g, t, id, &key.id);
    if (!code) {
        enum status st = store_group_remove(g->store, key.stream_id, key.topic_id, key.id);
        code = st == ST_NOT_FOUND ? not_found(id) : code_of_status(st);
    }
    if (!code) {
        pthread_mutex_lock(&g->lock);
        group_drop(g, &key);
        pthread_mutex_unlock(&g->lock);
        offsets_forget(g, t, key.id);
    }
    pthread_mutex_unlock(&g->changes);
    return code;
}

/* ---- members come and go ---- */

static enum status member_room(struct groups *g, struct group *group) {
    if (group->members_count == group->members_room) {
        uint32_t room = group->members_room * 2 + 4;
        struct member **members = mem_grow(group->members, room * sizeof *members);
        if (!members)
            return ST_NO_MEMORY;
        group->members = members;
        group->members_room = room;
    }
    return sorted_reserve(&g->memberships, 1);
}

/* With the lock held. */
static uint32_t member_add(struct groups *g, struct group *group, uint64_t session) {
    size_t first;
    struct member_key key = {session, key_of(group)};
    if (session_range(g, session, &first) >= GROUPS_PER_SESSION_MAX ||
        g->memberships.count >= GROUPS_MEMBERS_MAX)
        return IGGY_ERR_TOO_MANY_CONSUMER_GROUPS;
    struct member *m = mem_take_zeroed(1, sizeof *m);
    enum status st = m ? member_room(g, group) : ST_NO_MEMORY;
    if (st) {
        mem_free(m);
        return code_of_status(st);
    }
    *m = (struct member){
        .group = group, .session = session, .id = group->next_member++, .index = group->members_count};
    group->members[group->members_count++] = m;
    group->generation++;
    sorted_put(&g->memberships, sorted_place(&g->memberships, member_by_group, &key), m);
    return 0;
}

uint32_t groups_join(struct groups *g, const struct topic *t, const struct iggy_identifier *id,
                     uint64_t session_number) {
    pthread_mutex_lock(&g->lock);
    struct group *group = group_find(g, t, id);
    uint32_t code = group ? 0 : not_found(id);
    if (group)
        group_refresh(group, t);
    if (group && !member_find(g, group, session_number))
        code = member_add(g, group, session_number);
    pthread_mutex_unlock(&g->lock);
    return code;
}

uint32_t groups_leave(struct groups *g, const struct topic *t, const struct iggy_identifier *id,
                      uint64_t session_number) {
    pthread_mutex_lock(&g->lock);
    struct group *group = group_find(g, t, id);
    struct member *m = group ? member_find(g, group, session_number) : NULL;
    if (m) {
        struct member_key key = {session_number, key_of(group)};
        sorted_take(&g->memberships, sorted_place(&g->memberships, member_by_group, &key), 1);
        member_leave(m);
    }
    pthread_mutex_unlock(&g->lock);
    if (!group)
        return not_found(id);
    return m ? 0 : IGGY_ERR_CONSUMER_GROUP_MEMBER_NOT_FOUND;
}

void groups_forget_session(struct groups *g, uint64_t session_number) {
    size_t first;
    pthread_mutex_lock(&g->lock);
    size_t count = session_range(g, session_number, &first);
    for (size_t i = 0; i < count; i++)
        member_leave(g->memberships.rows[first + i]);
    sorted_take(&g->memberships, first, count);
    pthread_mutex_unlock(&g->lock);
}
