#include "store/store_offsets.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "store/file.h"
#include "store/offsets.h"
#include "store/store_impl.h"

#define MEMORY_BYTES_MAX ((int64_t)1024 * 1024 * 1024) /* some 8 million offsets; a start takes more */

/* ---- open and close ---- */

uint64_t offsets_seed(void) {
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed = (uint64_t)clock_wall_ms() << 20 ^ (uint64_t)getpid();
    return seed;
}

static void offsets_free(struct offsets *o) {
    file_close(&o->file.fd);
    offset_table_release(&o->table);
    pthread_rwlock_destroy(&o->lock);
    pthread_mutex_destroy(&o->sync_lock);
    pthread_mutex_destroy(&o->write_lock);
    mem_free(o);
}

static enum status apply_set(struct offset_table *t, const struct store_offset *set) {
    struct offset_owner *owner = offset_table_ensure_owner(t, set->owner);
    struct offset_node *n = owner ? offset_node_new(set) : NULL;
    if (!n)
        return ST_NO_MEMORY;
    offset_table_put(t, owner, n);
    return ST_OK;
}

/* Remove what matches, owner by owner. lock (may be NULL) is taken for each alone, so that readers hardly wait. */
static int64_t remove_matches(struct offset_table *t, const struct offset_match *m, pthread_rwlock_t *lock) {
    int64_t count = 0;
    bool one = m->owner.len >= 0;
    for (struct offset_owner *owner = one ? offset_table_owner(t, m->owner) : t->owners, *next; owner;
         owner = next) {
        next = one ? NULL : owner->hh.next;
        if (!offset_owner_has(owner, m))
            continue;
        if (lock)
            pthread_rwlock_wrlock(lock);
        count += offset_owner_remove(t, owner, m);
        if (lock)
            pthread_rwlock_unlock(lock);
    }
    return count;
}

static enum status apply_change(void *user, const struct offsets_change *change) {
    struct offset_table *t = user;
    if (!change->is_removal)
        return apply_set(t, &change->set);
    remove_matches(t, &change->removed, NULL);
    return ST_OK;
}

static enum status load(struct offsets *o, char *reason) {
    struct offsets_load in = {.apply = apply_change, .user = &o->table};
    enum status st = offsets_file_load(&o->file, &in);
    if (st == ST_CORRUPT)
        snprintf(reason, OFFSETS_REASON_BYTES, "%s", in.reason);
    if (!st && in.torn_bytes > 0)
        st = file_cut(o->file.fd, o->file.end);
    if (!st)
        st = file_sync(o->file.fd);
    o->torn_bytes = in.torn_bytes;
    o->ends_marked = in.ends_marked;
    atomic_store(&o->end, o->file.end);
    atomic_store(&o->synced_end, o->file.end);
    return st;
}

/* Forget the owner's offsets of topics and partitions that are gone, and with the last of them the owner. */
static void forget_gone(struct offset_table *t, struct offset_owner *owner,
                        int32_t (*partitions_of)(void *user, const struct uuid *topic), void *user) {
    for (const struct uuid *next = offset_owner_next_topic(owner, NULL); next;) {
        struct uuid topic = *next;
        struct offset_match gone = {STR_NULL, &topic, partitions_of(user, &topic), INT32_MAX};
        next = offset_owner_next_topic(owner, &topic);
        if (offset_owner_has(owner, &gone))
            offset_owner_remove(t, owner, &gone);
    }
}

/* Readers that never pause must not keep changes out, as they would by default. */
static void init_fair(pthread_rwlock_t *lock) {
    pthread_rwlockattr_t kind;
    pthread_rwlockattr_init(&kind);
    pthread_rwlockattr_setkind_np(&kind, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(lock, &kind);
    pthread_rwlockattr_destroy(&kind);
}

enum status offsets_open(int dir_fd, int32_t (*partitions_of)(void *user, const struct uuid *topic),
                         void *user, struct offsets **out, char reason[OFFSETS_REASON_BYTES]) {
    struct offsets *o = mem_take_zeroed(1, sizeof *o);
    if (!o) {
        snprintf(reason, OFFSETS_REASON_BYTES, "%s", status_text(ST_NO_MEMORY));
        return ST_NO_MEMORY;
    }
    o->dir_fd = dir_fd;
    o->file.fd = -1;
    o->memory_max = MEMORY_BYTES_MAX;
    pthread_mutex_init(&o->write_lock, NULL);
    pthread_mutex_init(&o->sync_lock, NULL);
    init_fair(&o->lock);
    offset_table_init(&o->table, offsets_seed());
    reason[0] = '\0';
    unlinkat(dir_fd, OFFSETS_FILE_NEW, 0); /* of a rewriting that a crash cut short: the old file has all */
    enum status st = file_open(dir_fd, OFFSETS_FILE, O_RDWR, &o->file.fd);
    if (!st)
        st = load(o, reason);
    else if (st == ST_NOT_FOUND)
        st = ST_OK;
    if (st) {
        char why[OFFSETS_REASON_BYTES / 2];
        snprintf(why, sizeof why, "%s", reason[0] ? reason : status_text(st));
        snprintf(reason, OFFSETS_REASON_BYTES, OFFSETS_FILE ": the committed offsets can't be read: %s", why);
        offsets_free(o);
        return st;
    }
    struct offset_owner *owner, *next;
    HASH_ITER(hh, o->table.owners, owner, next) {
        forget_gone(&o->table, owner, partitions_of, user);
    }
    *out = o;
    return ST_OK;
}

static enum status offsets_sync(struct offsets *o) {
    int64_t wanted = atomic_load(&o->written);
    enum status st = ST_OK;
    pthread_mutex_lock(&o->sync_lock);
    if (atomic_load(&o->synced) < wanted) {
        /* All that has been written by now, for those who wait as well. The end is not before that of the changes counted. */
        int64_t upto = atomic_load(&o->written), end = atomic_load(&o->end);
        st = atomic_load(&o->closed) ? ST_IO : file_sync(o->file.fd);
        if (!st) {
            atomic_store(&o->synced, upto);
            atomic_store(&o->synced_end, end);
        } else {
            atomic_store(&o->closed, true);
            st = ST_IO;
        }
    }
    pthread_mutex_unlock(&o->sync_lock);
    return st;
}

/* Write an entry without records, which says that all before it was synced: so a bad byte there is known to be damage. */
static void mark_end(struct offsets *o) {
    struct offsets_entry none = {0};
    if (o->ends_marked || offsets_sync(o) || atomic_load(&o->closed))
        return;
    if (!offsets_file_append(&o->file, &none, o->file.end))
        return;
    /* Half a mark is a torn end, which the next start cuts if this can't. */
    enum status ignored = file_cut(o->file.fd, o->file.end);
    (void)ignored;
}

void offsets_close(struct offsets *o) {
    if (!o)
        return;
    if (o->file.fd >= 0)
        mark_end(o);
    offsets_free(o);
}

/* ---- changing; all below under write_lock ---- */

enum status offsets_replace_file(struct offsets *o, struct offsets_file *with) {
    if (renameat(o->dir_fd, OFFSETS_FILE_NEW, o->dir_fd, OFFSETS_FILE) != 0)
        return ST_IO;
    file_close(&o->file.fd);
    o->file = *with;
    with->fd = -1;
    o->ends_marked = false;
    atomic_store(&o->end, o->file.end);
    atomic_store(&o->synced_end, o->file.end);
    if (file_sync_folder(o->dir_fd, ".")) {
        atomic_store(&o->closed, true); /* after a power cut, the old file may be back */
        return ST_IO;
    }
    atomic_store(&o->synced, atomic_load(&o->written));
    return ST_OK;
}

static enum status make_file(struct offsets *o) {
    struct offsets_file made;
    enum status st = offsets_file_make(o->dir_fd, offsets_seed(), &made);
    if (!st)
        st = offsets_file_finish(&made);
    if (!st) {
        pthread_mutex_lock(&o->sync_lock);
        st = offsets_replace_file(o, &made);
        pthread_mutex_unlock(&o->sync_lock);
    }
    if (made.fd >= 0)
        unlinkat(o->dir_fd, OFFSETS_FILE_NEW, 0);
    file_close(&made.fd);
    return st == ST_NOT_FOUND ? ST_IO : st;
}

static enum status write_entry(struct offsets *o, const struct offsets_entry *e) {
    if (atomic_load(&o->closed))
        return ST_IO;
    enum status st = o->file.fd >= 0 ? ST_OK : make_file(o);
    if (st)
        return st;
    st = offsets_file_append(&o->file, e, atomic_load(&o->synced_end));
    if (st) {
        /* What can't be cut now would stand behind later, shorter entries. */
        if (file_cut(o->file.fd, o->file.end))
            atomic_store(&o->closed, true);
        return st;
    }
    o->ends_marked = false;
    atomic_store(&o->end, o->file.end);
    atomic_fetch_add(&o->written, 1);
    return ST_OK;
}

/* End a change: give write_lock up, and write the file anew when that is due. */
static void unlock_change(struct offsets *o) {
    bool due = offsets_rewrite_is_due(o);
    o->rewriting = o->rewriting || due;
    pthread_mutex_unlock(&o->write_lock);
    if (due)
        offsets_rewrite(o);
}

/* ---- setting ---- */

/* One offset of a call, ready to be put into the table. */
struct pending {
    struct offset_node *node;   /* owned until it is put */
    struct offset_owner *owner; /* borrowed */
};

static bool can_be_set(const struct store_offset *o) {
    return o->owner.len >= 1 && o->owner.len <= STORE_OWNER_BYTES_MAX &&
           o->metadata.len <= STORE_METADATA_BYTES_MAX && o->partition >= 0;
}

static enum status prepare_nodes(const struct store_offset *offsets, int32_t count, struct pending *pending,
                                 struct offsets_entry *e) {
    enum status st = ST_OK;
    for (int32_t i = 0; !st && i < count; i++) {
        st = can_be_set(&offsets[i]) ? offsets_entry_set(e, &offsets[i]) : ST_INVALID;
        if (!st && !(pending[i].node = offset_node_new(&offsets[i])))
            st = ST_NO_MEMORY;
    }
    return st;
}

/* Whether there is room for them; what they replace counts as room. */
static bool fits(const struct offsets *o, const struct pending *pending, int32_t count) {
    int64_t bytes = o->table.memory_bytes;
    for (int32_t i = 0; i < count; i++)
        bytes += offset_node_bytes(pending[i].node);
    for (int32_t i = 0; bytes > o->memory_max && i < count; i++) {
        const struct offset_node *n = pending[i].node, *old;
        if ((old = offset_owner_find(pending[i].owner, &n->topic, n->partition)))
            bytes -= offset_node_bytes(old);
    }
    return bytes <= o->memory_max;
}

static enum status prepare_owners(struct offsets *o, const struct store_offset *offsets, int32_t count,
                                  struct pending *pending) {
    for (int32_t i = 0; i < count; i++) {
        if (i > 0 && str_equal(offsets[i].owner, offsets[i - 1].owner)) {
            pending[i].owner = pending[i - 1].owner;
            continue;
        }
        pending[i].owner = offset_table_owner(&o->table, offsets[i].owner);
        if (pending[i].owner)
            continue;
        pthread_rwlock_wrlock(&o->lock);
        pending[i].owner = offset_table_ensure_owner(&o->table, offsets[i].owner);
        pthread_rwlock_unlock(&o->lock);
        if (!pending[i].owner)
            return ST_NO_MEMORY;
    }
    return ST_OK;
}

/* Take out again the owners that were made for nothing. An owner may come more than once: so each is looked up. */
static void drop_empty_owners(struct offsets *o, const struct store_offset *offsets, int32_t count) {
    pthread_rwlock_wrlock(&o->lock);
    for (int32_t i = 0; i < count; i++) {
        struct offset_owner *owner = offset_table_owner(&o->table, offsets[i].owner);
        if (owner)
            offset_table_drop_if_empty(&o->table, owner);
    }
    pthread_rwlock_unlock(&o->lock);
}

static enum status set_locked(struct offsets *o, const struct store_offset *offsets, int32_t count,
                              struct pending *pending, const struct offsets_entry *e) {
    enum status st = prepare_owners(o, offsets, count, pending);
    if (!st && !fits(o, pending, count))
        st = ST_POLICY;
    if (!st)
        st = write_entry(o, e);
    if (st) {
        drop_empty_owners(o, offsets, count);
        return st;
    }
    pthread_rwlock_wrlock(&o->lock);
    for (int32_t i = 0; i < count; i++) {
        offset_table_put(&o->table, pending[i].owner, pending[i].node);
        pending[i].node = NULL;
    }
    pthread_rwlock_unlock(&o->lock);
    return ST_OK;
}

enum status store_offsets_set(struct store *s, const struct store_offset *offsets, int32_t count) {
    struct offsets *o = s->offsets;
    struct offsets_entry e = {0};
    if (count <= 0)
        return count == 0 ? ST_OK : ST_INVALID;
    struct pending *pending = mem_take_zeroed((size_t)count, sizeof *pending);
    enum status st = pending ? prepare_nodes(offsets, count, pending, &e) : ST_NO_MEMORY;
    if (!st) {
        pthread_mutex_lock(&o->write_lock);
        st = set_locked(o, offsets, count, pending, &e);
        unlock_change(o);
    }
    for (int32_t i = 0; pending && i < count; i++)
        mem_free(pending[i].node);
    mem_free(pending);
    offsets_entry_release(&e);
    return st;
}

enum status store_offsets_sync(struct store *s) {
    return offsets_sync(s->offsets);
}

/* ---- removing ---- */

static bool any_matches(const struct offset_table *t, const struct offset_match *m) {
    if (m->owner.len >= 0) {
        const struct offset_owner *owner = offset_table_owner(t, m->owner);
        return owner && offset_owner_has(owner, m);
    }
    for (const struct offset_owner *owner = t->owners; owner; owner = owner->hh.next)
        if (offset_owner_has(owner, m))
            return true;
    return false;
}

/* anyway: forget them also when it can't be written down. */
static enum status offsets_remove(struct offsets *o, const struct offset_match *m, bool anyway,
                                  int64_t *count_out) {
    struct offsets_entry e = {0};
    int64_t count = 0;
    enum status st = offsets_entry_remove(&e, m);
    if (st && !anyway)
        return st;
    pthread_mutex_lock(&o->write_lock);
    if (any_matches(&o->table, m)) {
        if (!st)
            st = write_entry(o, &e);
        if (!st || anyway)
            count = remove_matches(&o->table, m, &o->lock);
    }
    unlock_change(o);
    offsets_entry_release(&e);
    *count_out = count;
    return st;
}

enum status store_offsets_remove(struct store *s, struct str owner, const struct uuid *topic,
                                 int32_t partition, int32_t *count_out) {
    int64_t count = 0;
    struct offset_match m = {owner, topic, partition, partition};
    if (partition == -1) {
        m.first = 0;
        m.last = INT32_MAX;
    }
    if ((owner.len < 0 && !topic) || (partition >= 0 && !topic) || partition < -1)
        return ST_INVALID;
    enum status st = ST_OK;
    if (owner.len != 0 && owner.len <= STORE_OWNER_BYTES_MAX)
        st = offsets_remove(s->offsets, &m, false, &count);
    if (!st && count_out)
        *count_out = count < INT32_MAX ? (int32_t)count : INT32_MAX;
    return st;
}

/* ---- expiring; all under write_lock ---- */

static struct offset_match match_of(const struct store_offset *o) {
    return (struct offset_match){o->owner, &o->topic, o->partition, o->partition};
}

static bool is_expired(const struct offset_table *t, const struct store_offset *o, int64_t before_ms) {
    const struct offset_owner *owner = o->owner.len > 0 ? offset_table_owner(t, o->owner) : NULL;
    const struct offset_node *n = owner ? offset_owner_find(owner, &o->topic, o->partition) : NULL;
    return n && n->committed_ms <= before_ms;
}

static enum status expire_locked(struct offsets *o, const struct store_offset *offsets, int32_t count,
                                 int64_t before_ms, int64_t *count_out) {
    struct offsets_entry e = {0};
    enum status st = ST_OK;
    for (int32_t i = 0; !st && i < count; i++) {
        struct offset_match m = match_of(&offsets[i]);
        if (is_expired(&o->table, &offsets[i], before_ms))
            st = offsets_entry_remove(&e, &m);
    }
    if (!st && e.count > 0)
        st = write_entry(o, &e);
    for (int32_t i = 0; !st && e.count > 0 && i < count; i++) {
        struct offset_match m = match_of(&offsets[i]);
        if (is_expired(&o->table, &offsets[i], before_ms))
            *count_out += remove_matches(&o->table, &m, &o->lock);
    }
    offsets_entry_release(&e);
    return st;
}

enum status store_offsets_expire(struct store *s, const struct store_offset *offsets, int32_t count,
                                 int64_t before_ms, int32_t *count_out) {
    int64_t gone = 0;
    pthread_mutex_lock(&s->offsets->write_lock);
    enum status st = expire_locked(s->offsets, offsets, count, before_ms, &gone);
    unlock_change(s->offsets);
    *count_out = (int32_t)gone;
    return st;
}

void offsets_partitions_gone(struct offsets *o, const struct uuid *topic, int32_t first) {
    struct offset_match m = {STR_NULL, topic, first, INT32_MAX};
    int64_t count;
    enum status ignored = offsets_remove(o, &m, true, &count);
    (void)ignored;
}

/* ---- reading ---- */

enum status store_offset_get(struct store *s, struct str owner, const struct uuid *topic, int32_t partition,
                             struct arena *a, struct store_offset *out) {
    struct offsets *o = s->offsets;
    enum status st = ST_NOT_FOUND;
    struct store_offset found;
    if (owner.len < 1)
        return ST_NOT_FOUND;
    pthread_rwlock_rdlock(&o->lock);
    const struct offset_owner *of = offset_table_owner(&o->table, owner);
    const struct offset_node *n = of ? offset_owner_find(of, topic, partition) : NULL;
    if (n) {
        offset_view(of, n, &found);
        found.owner = owner;
        found.metadata = found.metadata.len > 0 ? arena_text(a, found.metadata) : STR("");
        st = found.metadata.len < 0 ? ST_NO_MEMORY : ST_OK;
    }
    pthread_rwlock_unlock(&o->lock);
    if (!st)
        *out = found;
    return st;
}

enum status store_offsets_each(struct store *s, struct str owner,
                               enum status (*fn)(void *, const struct store_offset *), void *user) {
    struct offsets *o = s->offsets;
    enum status st = ST_OK;
    bool one = owner.len >= 0;
    pthread_rwlock_rdlock(&o->lock);
    for (const struct offset_owner *at = one ? offset_table_owner(&o->table, owner) : o->table.owners;
         !st && at; at = one ? NULL : at->hh.next)
        st = offset_owner_each(at, fn, user);
    pthread_rwlock_unlock(&o->lock);
    return st;
}

enum status store_offsets_owners(struct store *s, enum status (*fn)(void *, struct str owner), void *user) {
    struct offsets *o = s->offsets;
    enum status st = ST_OK;
    pthread_rwlock_rdlock(&o->lock);
    for (const struct offset_owner *at = o->table.owners; !st && at; at = at->hh.next)
        if (at->root) /* else a change is being prepared */
            st = fn(user, (struct str){at->name, at->name_len});
    pthread_rwlock_unlock(&o->lock);
    return st;
}

int64_t store_offsets_cut_bytes(const struct store *s) {
    return s->offsets->torn_bytes;
}
