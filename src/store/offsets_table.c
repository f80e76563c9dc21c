#include "store/offsets_table.h"

#include <endian.h>

#include "base/mem.h"

#define OWNER_BYTES  ((int64_t)(sizeof(struct offset_owner) + 32)) /* with its share of the hash's buckets */
#define MALLOC_BYTES 16

void offset_table_init(struct offset_table *t, uint64_t random) {
    *t = (struct offset_table){.random = random != 0 ? random : 1};
}

/* Free a whole tree, without recursion: a left child is turned up until there is none. Tells how many there were. */
static int32_t free_tree(struct offset_table *t, struct offset_node *n) {
    int32_t count = 0;
    while (n) {
        struct offset_node *left = n->left;
        if (left) {
            n->left = left->right;
            left->right = n;
            n = left;
            continue;
        }
        struct offset_node *right = n->right;
        t->memory_bytes -= offset_node_bytes(n);
        t->file_bytes -= OFFSET_RECORD_BYTES + (int64_t)n->metadata_len;
        mem_free(n);
        count++;
        n = right;
    }
    t->count -= count;
    return count;
}

void offset_table_release(struct offset_table *t) {
    struct offset_owner *owner, *next;
    HASH_ITER(hh, t->owners, owner, next) {
        free_tree(t, owner->root);
        owner->root = NULL;
        offset_table_drop_if_empty(t, owner);
    }
}

/* ---- owners ---- */

struct offset_owner *offset_table_owner(const struct offset_table *t, struct str name) {
    struct offset_owner *owner = NULL;
    HASH_FIND(hh, t->owners, name.ptr, (size_t)name.len, owner);
    return owner;
}

struct offset_owner *offset_table_ensure_owner(struct offset_table *t, struct str name) {
    struct offset_owner *owner = offset_table_owner(t, name);
    if (owner)
        return owner;
    size_t len = (size_t)name.len;
    owner = mem_take(sizeof *owner + len);
    if (!owner)
        return NULL;
    *owner = (struct offset_owner){.name_len = name.len};
    memcpy(owner->name, name.ptr, len);
    HASH_ADD_KEYPTR(hh, t->owners, owner->name, len, owner);
    if (!owner->hh.tbl) {
        mem_free(owner);
        return NULL;
    }
    t->memory_bytes += OWNER_BYTES + name.len;
    t->file_bytes += name.len;
    return owner;
}

void offset_table_drop_if_empty(struct offset_table *t, struct offset_owner *owner) {
    if (owner->root)
        return;
    if (t->cursor.owner == owner) {
        t->cursor.owner = owner->hh.next;
        t->cursor.begun = false;
    }
    t->memory_bytes -= OWNER_BYTES + owner->name_len;
    t->file_bytes -= owner->name_len;
    HASH_DELETE(hh, t->owners, owner);
    mem_free(owner);
}

/* ---- one owner's tree ---- */

int64_t offset_node_bytes(const struct offset_node *n) {
    return (int64_t)sizeof *n + (int64_t)n->metadata_len + MALLOC_BYTES;
}

struct offset_node *offset_node_new(const struct store_offset *o) {
    size_t len = o->metadata.len > 0 ? (size_t)o->metadata.len : 0;
    struct offset_node *n = mem_take(sizeof *n + len);
    if (!n)
        return NULL;
    *n = (struct offset_node){.topic = o->topic,
                              .partition = o->partition,
                              .offset = o->offset,
                              .leader_epoch = o->leader_epoch,
                              .committed_ms = o->committed_ms,
                              .metadata_len = (uint32_t)len};
    if (len > 0)
        memcpy(n->metadata, o->metadata.ptr, len);
    return n;
}

static uint64_t half(const struct uuid *id, size_t at) {
    uint64_t v;
    memcpy(&v, id->b + at, sizeof v);
    return be64toh(v);
}

static int compare(const struct uuid *topic, int32_t partition, const struct offset_node *n) {
    uint64_t a = half(topic, 0), b = half(&n->topic, 0);
    if (a == b) {
        a = half(topic, 8);
        b = half(&n->topic, 8);
    }
    return a != b ? (a > b) - (a < b) : (partition > n->partition) - (partition < n->partition);
}

struct offset_node *offset_owner_find(const struct offset_owner *owner, const struct uuid *topic,
                                      int32_t partition) {
    struct offset_node *n = owner->root;
    for (int order; n && (order = compare(topic, partition, n)) != 0;)
        n = order < 0 ? n->left : n->right;
    return n;
}

/* The first that doesn't come before topic and partition. */
static struct offset_node *find_from(const struct offset_owner *owner, const struct uuid *topic,
                                     int32_t partition) {
    struct offset_node *found = NULL;
    for (struct offset_node *n = owner->root; n;) {
        if (compare(topic, partition, n) <= 0) {
            found = n;
            n = n->left;
        } else {
            n = n->right;
        }
    }
    return found;
}

static uint32_t next_priority(struct offset_table *t) {
    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    return (uint32_t)(t->random >> 32);
}

/* Hang what comes before node to its left and what comes behind it to its right. */
static void split(struct offset_node *tree, struct offset_node *node) {
    struct offset_node **left = &node->left, **right = &node->right;
    while (tree) {
        if (compare(&node->topic, node->partition, tree) < 0) {
            *right = tree;
            right = &tree->left;
            tree = tree->left;
        } else {
            *left = tree;
            left = &tree->right;
            tree = tree->right;
        }
    }
    *left = *right = NULL;
}

void offset_table_put(struct offset_table *t, struct offset_owner *owner, struct offset_node *node) {
    struct offset_node **at = &owner->root;
    struct offset_node **place = NULL; /* where its priority would put it */
    uint32_t priority = next_priority(t);
    int order = 1;
    for (; *at && (order = compare(&node->topic, node->partition, *at)) != 0;
         at = order < 0 ? &(*at)->left : &(*at)->right)
        if (!place && (*at)->priority < priority)
            place = at;
    struct offset_node *old = *at;
    t->memory_bytes += offset_node_bytes(node);
    t->file_bytes += OFFSET_RECORD_BYTES + (int64_t)node->metadata_len;
    if (!old) {
        at = place ? place : at;
        node->priority = priority;
        split(*at, node);
        t->count++;
    } else {
        node->left = old->left;
        node->right = old->right;
        node->priority = old->priority;
        t->memory_bytes -= offset_node_bytes(old);
        t->file_bytes -= OFFSET_RECORD_BYTES + (int64_t)old->metadata_len;
        mem_free(old);
    }
    *at = node;
}

/* Take out the node for topic and partition, which is there. */
static void remove_one(struct offset_table *t, struct offset_owner *owner, const struct uuid *topic,
                       int32_t partition) {
    struct offset_node **at = &owner->root;
    for (int order; (order = compare(topic, partition, *at)) != 0;)
        at = order < 0 ? &(*at)->left : &(*at)->right;
    struct offset_node *gone = *at, *left = gone->left, *right = gone->right;
    while (left && right) {
        if (left->priority >= right->priority) {
            *at = left;
            at = &left->right;
            left = left->right;
        } else {
            *at = right;
            at = &right->left;
            right = right->left;
        }
    }
    *at = left ? left : right;
    gone->left = gone->right = NULL;
    free_tree(t, gone);
}

/* ---- matches ---- */

static struct offset_node *first_match(const struct offset_owner *owner, const struct offset_match *m) {
    struct offset_node *n = find_from(owner, m->topic, m->first);
    return n && n->partition <= m->last && uuid_equal(&n->topic, m->topic) ? n : NULL;
}

bool offset_owner_has(const struct offset_owner *owner, const struct offset_match *m) {
    return m->topic ? first_match(owner, m) != NULL : owner->root != NULL;
}

int32_t offset_owner_remove(struct offset_table *t, struct offset_owner *owner,
                            const struct offset_match *m) {
    int32_t count = 0;
    if (!m->topic) {
        count = free_tree(t, owner->root);
        owner->root = NULL;
    } else {
        for (struct offset_node *n; (n = first_match(owner, m)); count++) {
            struct uuid topic = n->topic; /* the node is freed on the way */
            remove_one(t, owner, &topic, n->partition);
        }
    }
    offset_table_drop_if_empty(t, owner);
    return count;
}

const struct uuid *offset_owner_next_topic(const struct offset_owner *owner, const struct uuid *behind) {
    static const struct uuid zero;
    const struct offset_node *n = find_from(owner, behind ? behind : &zero, behind ? INT32_MAX : 0);
    /* The greatest number of all may be an offset's: then this is not behind it yet. */
    if (n && behind && uuid_equal(&n->topic, behind)) {
        struct uuid next = *behind;
        for (size_t i = sizeof next.b; i-- > 0 && ++next.b[i] == 0;)
            ;
        n = uuid_is_zero(&next) ? NULL : find_from(owner, &next, 0);
    }
    return n ? &n->topic : NULL;
}

/* ---- walks ---- */

void offset_view(const struct offset_owner *owner, const struct offset_node *n, struct store_offset *out) {
    *out = (struct store_offset){.owner = {owner->name, owner->name_len},
                                 .topic = n->topic,
                                 .partition = n->partition,
                                 .offset = n->offset,
                                 .leader_epoch = n->leader_epoch,
                                 .metadata = {n->metadata, (int32_t)n->metadata_len},
                                 .committed_ms = n->committed_ms};
}

struct walk {
    const struct offset_owner *owner;
    offset_fn *fn;
    void *user;
    struct offset_table *keep; /* whose cursor follows; NULL: none */
    bool skip;                 /* up to and with the two below */
    struct uuid topic;
    int32_t partition;
};

static enum status visit(struct walk *w, const struct offset_node *n) {
    struct store_offset view;
    offset_view(w->owner, n, &view);
    enum status st = w->fn(w->user, &view);
    if (w->keep && (!st || st == ST_AGAIN)) {
        w->keep->cursor.begun = true;
        w->keep->cursor.topic = n->topic;
        w->keep->cursor.partition = n->partition;
    }
    return st;
}

/* As deep as the tree: some 60 for a million. */
static enum status walk_tree(struct walk *w, const struct offset_node *n) {
    enum status st = ST_OK;
    for (; !st && n; n = n->right) {
        if (w->skip && compare(&w->topic, w->partition, n) >= 0)
            continue;
        st = walk_tree(w, n->left);
        if (!st)
            st = visit(w, n);
    }
    return st;
}

enum status offset_owner_each(const struct offset_owner *owner, offset_fn *fn, void *user) {
    struct walk w = {.owner = owner, .fn = fn, .user = user};
    return walk_tree(&w, owner->root);
}

void offset_table_walk_begin(struct offset_table *t) {
    t->cursor.owner = t->owners;
    t->cursor.begun = false;
}

enum status offset_table_walk_on(struct offset_table *t, offset_fn *fn, void *user) {
    enum status st = ST_OK;
    while (t->cursor.owner) {
        struct walk w = {.owner = t->cursor.owner,
                         .fn = fn,
                         .user = user,
                         .keep = t,
                         .skip = t->cursor.begun,
                         .topic = t->cursor.topic,
                         .partition = t->cursor.partition};
        st = walk_tree(&w, w.owner->root);
        if (st)
            return st;
        t->cursor.owner = t->cursor.owner->hh.next;
        t->cursor.begun = false;
    }
    return ST_OK;
}
