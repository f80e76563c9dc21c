/*
 * Offsets of Kafka's groups, under the owner "k" and the group's name. They are in memory, so reading them is cheap; changes are written in
 * the order in which they came, and answered when they are on stable storage.
 *
 *   store_commit_op, forget -> queue -> [pool] write_run: one after the other -> unsynced -> [pool] sync_run: one sync for all -> done
 *
 * While a sync runs the next changes are written, so that commits of many groups share syncs.
 *
 * Commit times are those of the wall clock at the start and what the monotonic clock has counted since. So the age of what was committed in this run is
 * right whatever the wall clock does; what earlier runs committed has the age of this one, because nobody can say what the clock did before.
 */
#include <stdlib.h>

#include "backend/store/store_impl.h"
#include "base/clock.h"
#include "base/mem.h"
#include "store/store_offsets.h"

#define OWNER_PREFIX     'k'
#define READ_ON_LOOP_MAX 64 /* look-ups of about a microsecond */

/* A commit, or a group that is forgotten. */
struct offset_change {
    struct link link;
    struct backend_commit *commit; /* NULL: forget */
    struct backend_groups *forget;
    bool wrote; /* there is something to sync */
};

struct owner_name {
    char text[STORE_OWNER_BYTES_MAX];
    struct str name; /* len 0: no group has such a name */
};

static void owner_name_of(struct owner_name *o, struct str group) {
    o->name = (struct str){o->text, 0};
    if (group.len < 1 || group.len >= STORE_OWNER_BYTES_MAX)
        return;
    o->text[0] = OWNER_PREFIX;
    memcpy(o->text + 1, group.ptr, (size_t)group.len);
    o->name.len = group.len + 1;
}

/* ---- time ---- */

/* When what is committed now is said to be committed, unless it is to be kept longer. */
static int64_t commit_ms(const struct offset_changes *c) {
    return c->now_ms() + c->wall_ahead_ms;
}

static int64_t age_ms(const struct offset_changes *c, const struct store_offset *o) {
    int64_t age = commit_ms(c) - o->committed_ms, run = c->now_ms() - c->start_ms;
    age = age < run ? age : run;
    return age > 0 ? age : 0;
}

/* ---- changes ---- */

void offset_changes_init(struct offset_changes *c, int64_t (*now_ms)(void), int64_t wall_ms) {
    c->now_ms = now_ms;
    c->start_ms = now_ms();
    c->wall_ahead_ms = wall_ms - c->start_ms;
    pthread_mutex_init(&c->lock, NULL);
    list_init(&c->queue);
    list_init(&c->unsynced);
    list_init(&c->writing);
    list_init(&c->syncing);
}

void offset_changes_release(struct offset_changes *c) {
    pthread_mutex_destroy(&c->lock);
}

/* What of a commit's parts can be written at once: rows, and for each the part it came from. */
struct commit_rows {
    struct store_offset *rows;
    int32_t *parts;
    int32_t count;
};

static enum status commit_flush(struct store_backend *b, struct backend_commit *call,
                                struct commit_rows *rows) {
    enum status st = store_offsets_set(b->store, rows->rows, rows->count);
    for (int32_t i = 0; i < rows->count; i++)
        call->parts[rows->parts[i]].status = st;
    rows->count = 0;
    return st;
}

/* False: it isn't there, and the part says so. */
static bool commit_find(struct store_backend *b, struct backend_commit_part *part, struct uuid *topic_out) {
    struct topic *t = topic_of_part(b, part->topic, &part->id, &part->status);
    if (t && !topic_partition(t, part->partition))
        part->status = ST_NOT_FOUND;
    if (t)
        *topic_out = topic_info(t)->id;
    topic_unref(t);
    return part->status == ST_OK;
}

static void commit_forget(struct store_backend *b, const struct owner_name *owner, const struct uuid *topic,
                          struct backend_commit_part *part) {
    int32_t count;
    part->status = store_offsets_remove(b->store, owner->name, topic, part->partition, &count);
}

/* Those that are old enough, in one change. */
static void expire_parts(struct store_backend *b, struct backend_commit *call, struct commit_rows *rows) {
    struct offset_changes *c = &b->offset_changes;
    struct owner_name owner;
    owner_name_of(&owner, call->group);
    for (int32_t i = 0; i < call->parts_count; i++) {
        struct backend_commit_part *part = &call->parts[i];
        struct store_offset *row = &rows->rows[rows->count];
        if (part->status || !commit_find(b, part, &row->topic))
            continue;
        row->owner = owner.name;
        row->partition = part->partition;
        rows->parts[rows->count++] = i;
    }
    enum status st = ST_OK;
    if (c->now_ms() - c->start_ms >= call->aged_ms)
        st = store_offsets_expire(b->store, rows->rows, rows->count, commit_ms(c) - call->aged_ms,
                                  &call->gone_count);
    for (int32_t i = 0; i < rows->count; i++)
        call->parts[rows->parts[i]].status = st;
}

/* Each part in its turn: what follows one that forgets an offset is written after that. */
static void commit_parts(struct store_backend *b, struct backend_commit *call, struct commit_rows *rows) {
    struct owner_name owner;
    int64_t from_ms = commit_ms(&b->offset_changes) + call->keep_longer_ms;
    owner_name_of(&owner, call->group);
    for (int32_t i = 0; i < call->parts_count; i++) {
        struct backend_commit_part *part = &call->parts[i];
        struct uuid topic;
        if (part->status || !commit_find(b, part, &topic))
            continue;
        if (part->offset < 0) {
            commit_flush(b, call, rows);
            commit_forget(b, &owner, &topic, part);
            continue;
        }
        rows->parts[rows->count] = i;
        rows->rows[rows->count++] = (struct store_offset){.owner = owner.name,
                                                          .topic = topic,
                                                          .partition = part->partition,
                                                          .offset = part->offset,
                                                          .leader_epoch = part->leader_epoch,
                                                          .metadata = part->metadata,
                                                          .committed_ms = from_ms};
    }
    commit_flush(b, call, rows);
}

static void commit_end_all(struct backend_commit *call, enum status from, enum status to) {
    for (int32_t i = 0; i < call->parts_count; i++)
        if (call->parts[i].status == from)
            call->parts[i].status = to;
}

static bool commit_write(struct store_backend *b, struct backend_commit *call) {
    struct commit_rows rows = {
        .rows = mem_take_zeroed((size_t)call->parts_count + 1, sizeof *rows.rows),
        .parts = mem_take_zeroed((size_t)call->parts_count + 1, sizeof *rows.parts),
    };
    call->gone_count = 0;
    if (rows.rows && rows.parts && call->aged_ms > 0)
        expire_parts(b, call, &rows);
    else if (rows.rows && rows.parts)
        commit_parts(b, call, &rows);
    else
        commit_end_all(call, ST_OK, ST_NO_MEMORY);
    mem_free(rows.rows);
    mem_free(rows.parts);
    for (int32_t i = 0; i < call->parts_count; i++)
        if (call->parts[i].status == ST_OK)
            return true;
    return false;
}

static bool forget_write(struct store_backend *b, struct backend_groups *call) {
    struct owner_name owner;
    int32_t count = 0;
    owner_name_of(&owner, call->forget);
    call->status = owner.name.len > 0 ? store_offsets_remove(b->store, owner.name, NULL, -1, &count) : ST_OK;
    if (call->status == ST_OK && count == 0)
        call->status = ST_NO_GROUP;
    return call->status == ST_OK;
}

static void change_end(struct offset_change *c, enum status synced) {
    struct op *op = c->commit ? &c->commit->op : &c->forget->op;
    if (synced && c->commit)
        commit_end_all(c->commit, ST_OK, synced);
    else if (synced)
        c->forget->status = synced;
    mem_free(c);
    op_complete(op, ST_OK);
}

static void sync_run(struct work *w) {
    struct store_backend *b = container_of(w, struct store_backend, offset_changes.sync_work);
    struct offset_changes *c = &b->offset_changes;
    for (;;) {
        struct link *l;
        pthread_mutex_lock(&c->lock);
        list_move_all(&c->syncing, &c->unsynced);
        c->syncs = !list_empty(&c->syncing);
        bool more = c->syncs;
        pthread_mutex_unlock(&c->lock);
        if (!more)
            return;
        enum status st = store_offsets_sync(b->store);
        while ((l = list_pop_head(&c->syncing)) != NULL)
            change_end(container_of(l, struct offset_change, link), st);
    }
}

/* Written: to the disk with it, unless there is nothing to bring there. */
static void change_written(struct offset_changes *c, struct offset_change *change) {
    if (!change->wrote) {
        change_end(change, ST_OK);
        return;
    }
    pthread_mutex_lock(&c->lock);
    list_push_tail(&c->unsynced, &change->link);
    bool begin = !c->syncs;
    c->syncs = true;
    pthread_mutex_unlock(&c->lock);
    if (begin)
        work_submit(&c->sync_work, sync_run);
}

static void write_run(struct work *w) {
    struct store_backend *b = container_of(w, struct store_backend, offset_changes.write_work);
    struct offset_changes *c = &b->offset_changes;
    for (;;) {
        struct link *l;
        pthread_mutex_lock(&c->lock);
        list_move_all(&c->writing, &c->queue);
        c->writes = !list_empty(&c->writing);
        bool more = c->writes;
        pthread_mutex_unlock(&c->lock);
        if (!more)
            return;
        while ((l = list_pop_head(&c->writing)) != NULL) {
            struct offset_change *change = container_of(l, struct offset_change, link);
            change->wrote =
                change->commit ? commit_write(b, change->commit) : forget_write(b, change->forget);
            change_written(c, change);
        }
    }
}

/* False: no memory. */
static bool change_push(struct store_backend *b, struct backend_commit *commit,
                        struct backend_groups *forget) {
    struct offset_changes *c = &b->offset_changes;
    struct offset_change *change = mem_take_zeroed(1, sizeof *change);
    if (!change)
        return false;
    change->commit = commit;
    change->forget = forget;
    pthread_mutex_lock(&c->lock);
    list_push_tail(&c->queue, &change->link);
    bool begin = !c->writes;
    c->writes = true;
    pthread_mutex_unlock(&c->lock);
    if (begin)
        work_submit(&c->write_work, write_run);
    return true;
}

void store_commit_op(struct backend *b, struct backend_commit *call) {
    op_start(&call->op, NULL);
    if (change_push(store_backend_of(b), call, NULL))
        return;
    commit_end_all(call, ST_OK, ST_NO_MEMORY);
    op_complete(&call->op, ST_OK);
}

/* ---- reading ---- */

static void part_read(struct store_backend *b, struct backend_committed *call, const struct owner_name *owner,
                      struct backend_committed_part *part) {
    struct store_offset found;
    enum status gone;
    struct topic *t = topic_of_part(b, part->topic, &part->id, &gone);
    part->offset = -1;
    part->leader_epoch = -1;
    part->metadata = STR("");
    if (!t)
        return; /* D12-12 */
    part->status =
        store_offset_get(b->store, owner->name, &topic_info(t)->id, part->partition, call->arena, &found);
    topic_unref(t);
    if (part->status == ST_NOT_FOUND) {
        part->status = ST_OK;
    } else if (!part->status) {
        part->offset = found.offset;
        part->leader_epoch = found.leader_epoch;
        part->metadata = found.metadata;
    }
}

/* What the walk of all a group's offsets has found. */
struct found_offsets {
    const struct offset_changes *clock;
    struct arena *arena;
    struct backend_committed_part *parts; /* owned */
    int32_t count, room;
};

static enum status found_add(void *user, const struct store_offset *o) {
    struct found_offsets *f = user;
    if (f->count == f->room) {
        int32_t room = f->room > 0 ? f->room * 2 : 64;
        struct backend_committed_part *parts =
            room > 0 ? mem_grow(f->parts, (size_t)room * sizeof *parts) : NULL;
        if (!parts)
            return ST_NO_MEMORY;
        f->parts = parts;
        f->room = room;
    }
    struct backend_committed_part *part = &f->parts[f->count++];
    *part = (struct backend_committed_part){.topic = STR_NULL,
                                            .id = o->topic,
                                            .partition = o->partition,
                                            .leader_epoch = o->leader_epoch,
                                            .offset = o->offset,
                                            .age_ms = age_ms(f->clock, o),
                                            .metadata = STR("")};
    if (o->metadata.len > 0)
        part->metadata = arena_text(f->arena, o->metadata);
    return part->metadata.len < 0 ? ST_NO_MEMORY : ST_OK;
}

/* The names of topics that Kafka's clients can see; the parts of others are dropped. They come topic by topic. */
static enum status found_name(struct store_backend *b, struct found_offsets *f) {
    struct stream_info stream;
    struct str name = STR_NULL;
    int32_t kept = 0;
    if (!store_stream_by_name(b->store, b->stream, &stream))
        f->count = 0;
    for (int32_t i = 0; i < f->count; i++) {
        const struct backend_committed_part *part = &f->parts[i];
        if (i == 0 || !uuid_equal(&part->id, &f->parts[i - 1].id)) {
            struct topic *t = store_topic_by_id(b->store, &part->id);
            bool visible = t && topic_info(t)->stream_id == stream.id;
            name = visible ? arena_text(f->arena, topic_info(t)->name_str) : STR_NULL;
            topic_unref(t);
            if (visible && name.len < 0)
                return ST_NO_MEMORY;
        }
        f->parts[i].topic = name;
    }
    for (int32_t i = 0; i < f->count; i++)
        if (f->parts[i].topic.len >= 0)
            f->parts[kept++] = f->parts[i];
    f->count = kept;
    return ST_OK;
}

static int compare_parts(const void *left, const void *right) {
    const struct backend_committed_part *a = left, *b = right;
    int order = str_compare(a->topic, b->topic);
    return order ? order : (a->partition > b->partition) - (a->partition < b->partition);
}

static enum status read_all(struct store_backend *b, struct backend_committed *call,
                            const struct owner_name *owner, struct found_offsets *f) {
    enum status st = store_offsets_each(b->store, owner->name, found_add, f);
    if (!st)
        st = found_name(b, f);
    if (st)
        return st;
    call->parts = arena_take_array(call->arena, struct backend_committed_part, f->count);
    if (!call->parts)
        return ST_NO_MEMORY;
    if (f->count > 0) {
        qsort(f->parts, (size_t)f->count, sizeof *f->parts, compare_parts);
        memcpy(call->parts, f->parts, (size_t)f->count * sizeof *f->parts);
    }
    call->parts_count = f->count;
    return ST_OK;
}

static void committed_run(struct store_backend *b, void *user) {
    struct backend_committed *call = user;
    struct owner_name owner;
    owner_name_of(&owner, call->group);
    call->status = ST_OK;
    if (call->all) {
        struct found_offsets found = {.clock = &b->offset_changes, .arena = call->arena};
        call->parts_count = 0;
        call->status = read_all(b, call, &owner, &found);
        mem_free(found.parts);
        return;
    }
    for (int32_t i = 0; i < call->parts_count; i++)
        if (call->parts[i].status == ST_OK)
            part_read(b, call, &owner, &call->parts[i]);
}

void store_committed_op(struct backend *backend, struct backend_committed *call) {
    struct store_backend *b = store_backend_of(backend);
    if (call->all || call->parts_count > READ_ON_LOOP_MAX) {
        store_job_start(b, &call->op, call, committed_run);
        return;
    }
    op_start(&call->op, NULL);
    committed_run(b, call);
    op_complete(&call->op, ST_OK);
}

/* ---- groups ---- */

struct found_groups {
    struct arena *arena;
    struct str *names; /* owned */
    int32_t count, room;
};

static enum status group_add(void *user, struct str owner) {
    struct found_groups *f = user;
    if (owner.ptr[0] != OWNER_PREFIX)
        return ST_OK;
    if (f->count == f->room) {
        int32_t room = f->room > 0 ? f->room * 2 : 64;
        struct str *names = room > 0 ? mem_grow(f->names, (size_t)room * sizeof *names) : NULL;
        if (!names)
            return ST_NO_MEMORY;
        f->names = names;
        f->room = room;
    }
    struct str name = arena_text(f->arena, (struct str){owner.ptr + 1, owner.len - 1});
    if (name.len < 0)
        return ST_NO_MEMORY;
    f->names[f->count++] = name;
    return ST_OK;
}

static int compare_groups(const void *a, const void *b) {
    return str_compare(*(const struct str *)a, *(const struct str *)b);
}

static void groups_run(struct store_backend *b, void *user) {
    struct backend_groups *call = user;
    struct found_groups found = {.arena = call->arena};
    call->groups_count = 0;
    call->status = store_offsets_owners(b->store, group_add, &found);
    if (!call->status) {
        call->groups = arena_take_array(call->arena, struct str, found.count);
        call->status = call->groups ? ST_OK : ST_NO_MEMORY;
    }
    if (!call->status && found.count > 0) {
        qsort(found.names, (size_t)found.count, sizeof *found.names, compare_groups);
        memcpy(call->groups, found.names, (size_t)found.count * sizeof *found.names);
        call->groups_count = found.count;
    }
    mem_free(found.names);
}

void store_groups_op(struct backend *backend, struct backend_groups *call) {
    struct store_backend *b = store_backend_of(backend);
    call->groups = NULL;
    call->groups_count = 0;
    if (call->forget.len < 0) {
        store_job_start(b, &call->op, call, groups_run);
        return;
    }
    op_start(&call->op, NULL);
    if (change_push(b, NULL, call))
        return;
    call->status = ST_NO_MEMORY;
    op_complete(&call->op, ST_OK);
}

static enum status stop_at_first(void *found, const struct store_offset *o) {
    (void)o;
    *(bool *)found = true;
    return ST_AGAIN;
}

bool store_group_has_offsets(struct backend *b, struct str group) {
    struct owner_name owner;
    bool found = false;
    owner_name_of(&owner, group);
    enum status ignored = store_offsets_each(store_backend_of(b)->store, owner.name, stop_at_first, &found);
    (void)ignored;
    return found;
}
