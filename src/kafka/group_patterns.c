#include "kafka/group_patterns.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/logging.h"
#include "base/mem.h"
#include "base/sorted.h"
#include "kafka/pattern.h"
#include "kafka/topic_name.h"
#include "net/work.h"

#define NEVER_MS         INT64_MIN
#define LIST_BYTES_MAX   ((size_t)64 << 20) /* 32,768 topics, as a backend tells them */
#define BUDGET_LOOK_MASK 63                 /* the clock is looked at before every 64th topic */

/* The names of all topics, ascending; one block with their text. */
struct topic_list {
    int32_t count;
    struct str *names;
    struct str *found; /* room for as many: what group_patterns_find says */
};

struct pattern_row {
    int64_t wanted_ms; /* when a group last asked */
    int64_t version;   /* of its matches; 0: none yet */
    uint64_t *bits;    /* one for each topic of the list; NULL: not matched yet. Owned, as the next one */
    uint64_t *next_bits;
    bool is_refused, next_refused;
    bool is_same; /* next_bits stand for the same topics as bits */
    struct str text;
};

struct group_patterns {
    struct group_topics_settings settings;
    struct group_topics *topics;
    struct sorted rows;      /* struct pattern_row *, by text; owned */
    struct topic_list *list; /* that the rows' bits are for; NULL: none yet */
    int64_t version;         /* the last one given */
    int64_t now_ms;          /* the latest that was said */
    int64_t list_ms;         /* when topics were last listed; NEVER_MS: not yet */
    bool has_new;            /* a row is not matched yet */
    struct str offered;
    enum status offered_status;
    _Atomic int32_t stirred;
    int32_t stirred_seen;
    _Atomic bool stopping;

    /* One look at a time; rows stay while it goes on. */
    bool is_looking;
    struct backend_topics look;
    struct arena arena;
    struct pattern_row **job; /* the rows of this look */
    int32_t job_count;
    struct backend_topic *listed; /* what can be matched */
    int32_t listed_count;
    struct topic_list *next_list;      /* NULL: the names are the same */
    struct backend_topics_part *parts; /* topics that something matches */
    int32_t parts_count;
    struct work work;
    struct op matched;
    struct groups_call hop;
};

enum status group_patterns_new(const struct group_topics_settings *settings, struct group_topics *topics,
                               struct group_patterns **out) {
    struct group_patterns *t = mem_take_zeroed(1, sizeof *t);
    if (!t)
        return ST_NO_MEMORY;
    t->settings = *settings;
    t->topics = topics;
    t->list_ms = NEVER_MS;
    t->offered = STR_NULL;
    *out = t;
    return ST_OK;
}

static void row_free(struct pattern_row *row) {
    mem_free(row->bits);
    mem_free(row->next_bits);
    mem_free(row);
}

void group_patterns_free(struct group_patterns *t) {
    if (!t)
        return;
    for (size_t i = 0; i < t->rows.count; i++)
        row_free(t->rows.rows[i]);
    sorted_release(&t->rows);
    mem_free(t->list);
    mem_free(t->next_list);
    arena_release(&t->arena);
    mem_free(t);
}

void group_patterns_stir(struct group_patterns *t) {
    atomic_fetch_add(&t->stirred, 1);
}

void group_patterns_stop(struct group_patterns *t) {
    atomic_store(&t->stopping, true);
}

/* ---- rows ---- */

static int compare_text(const void *text, const void *row) {
    return str_compare(*(const struct str *)text, ((const struct pattern_row *)row)->text);
}

static void rows_forget_unwanted(struct group_patterns *t) {
    size_t kept = 0;
    for (size_t i = 0; i < t->rows.count; i++) {
        struct pattern_row *row = t->rows.rows[i];
        if (t->now_ms - row->wanted_ms <= GROUP_TOPICS_UNWANTED_MS)
            t->rows.rows[kept++] = row;
        else
            row_free(row);
    }
    t->rows.count = kept;
}

/* NULL: no room, or no memory. */
static struct pattern_row *row_add(struct group_patterns *t, struct str text) {
    if (t->rows.count >= GROUP_PATTERNS_MAX || text.len <= 0 || sorted_reserve(&t->rows, 1))
        return NULL;
    struct pattern_row *row = mem_take_zeroed(1, sizeof *row + (size_t)text.len);
    if (!row)
        return NULL;
    memcpy(row + 1, text.ptr, (size_t)text.len);
    row->text = (struct str){(const char *)(row + 1), text.len};
    sorted_put(&t->rows, sorted_place(&t->rows, compare_text, &text), row);
    t->has_new = true;
    return row;
}

void group_patterns_offer(struct group_patterns *t, struct str pattern, enum status st, int64_t now_ms) {
    t->now_ms = now_ms;
    t->offered = pattern;
    t->offered_status = st;
}

static bool bit_of(const uint64_t *bits, int32_t at) {
    return bits[at / 64] >> at % 64 & 1;
}

static void matches_fill(const struct group_patterns *t, const struct pattern_row *row,
                         struct group_matches *out) {
    struct topic_list *list = t->list;
    out->names = list->found;
    out->count = 0;
    out->version = row->version;
    for (int32_t i = 0; i < list->count; i++) {
        if (bit_of(row->bits, i))
            list->found[out->count++] = list->names[i];
    }
}

enum group_pattern group_patterns_find(struct group_patterns *t, struct str pattern,
                                       struct group_matches *out) {
    enum status offered = str_equal(t->offered, pattern) ? t->offered_status : ST_OK;
    struct pattern_row *row = sorted_find(&t->rows, compare_text, &pattern);
    if (!row && offered)
        return offered == ST_INVALID ? GROUP_PATTERN_INVALID : GROUP_PATTERN_NOT_AVAILABLE;
    if (!row)
        row = row_add(t, pattern);
    if (!row)
        return GROUP_PATTERN_NOT_AVAILABLE;
    row->wanted_ms = t->now_ms;
    if (row->is_refused)
        return GROUP_PATTERN_INVALID;
    if (!row->bits)
        return GROUP_PATTERN_NOT_KNOWN_YET;
    if (out->version != row->version)
        matches_fill(t, row, out);
    return GROUP_PATTERN_KNOWN;
}

/* ---- a look: the list ---- */

static void look_on_listed(struct op *op);
static void look_run(struct work *work);
static void look_on_matched(struct op *op);
static void look_put(struct groups_call *hop, struct coordinator *c, int64_t now_ms);
static void look_on_put(struct op *op);

static bool look_is_due(struct group_patterns *t) {
    bool is_stirred = atomic_load(&t->stirred) != t->stirred_seen;
    return t->has_new || t->list_ms == NEVER_MS ||
           t->now_ms - t->list_ms >= (is_stirred ? GROUP_PATTERNS_STIR_MS : GROUP_PATTERNS_LIST_MS);
}

void group_patterns_tend(struct group_patterns *t, int64_t now_ms) {
    t->now_ms = now_ms;
    if (t->is_looking || atomic_load(&t->stopping))
        return;
    rows_forget_unwanted(t);
    if (t->rows.count == 0 || !look_is_due(t))
        return;
    t->is_looking = true;
    t->list_ms = now_ms;
    t->stirred_seen = atomic_load(&t->stirred);
    arena_init(&t->arena, NULL, 0, LIST_BYTES_MAX);
    t->look = (struct backend_topics){
        .arena = &t->arena, .all = true, .deadline_ms = now_ms + GROUP_TOPICS_LOOK_WAIT_MS};
    op_init(&t->look.op, t->settings.home, look_on_listed);
    backend_topics(t->settings.backend, &t->look);
}

static void look_end(struct group_patterns *t) {
    arena_release(&t->arena);
    t->is_looking = false;
}

static void look_on_listed(struct op *op) {
    struct group_patterns *t = container_of(op, struct group_patterns, look.op);
    if (!op->status && !t->look.status)
        t->job = arena_take_array(&t->arena, struct pattern_row *, t->rows.count);
    if (op->status || t->look.status || !t->job || atomic_load(&t->stopping)) {
        look_end(t);
        return;
    }
    t->job_count = (int32_t)t->rows.count;
    memcpy(t->job, t->rows.rows, t->rows.count * sizeof(struct pattern_row *));
    op_init(&t->matched, t->settings.home, look_on_matched);
    op_start(&t->matched, NULL);
    work_submit(&t->work, look_run);
}

/* ---- in the pool ---- */

static bool topic_is_listed(const struct backend_topic *topic) {
    return topic_name_is_valid(topic->name) && !uuid_is_zero(&topic->id); /* clients name it by its id */
}

/* The topics that can be matched. */
static enum status listed_fill(struct group_patterns *t) {
    t->listed_count = 0;
    t->listed = arena_take_array(&t->arena, struct backend_topic, t->look.topics_count);
    if (!t->listed)
        return ST_NO_MEMORY;
    for (int32_t i = 0; i < t->look.topics_count && t->listed_count < GROUP_PATTERNS_TOPICS_MAX; i++) {
        if (topic_is_listed(&t->look.topics[i]))
            t->listed[t->listed_count++] = t->look.topics[i];
    }
    return ST_OK;
}

static bool list_is(const struct topic_list *list, const struct backend_topic *topics, int32_t count) {
    bool same = list && list->count == count;
    for (int32_t i = 0; same && i < count; i++)
        same = str_equal(list->names[i], topics[i].name);
    return same;
}

/* NULL: out of memory. */
static struct topic_list *list_make(const struct backend_topic *topics, int32_t count) {
    size_t text_bytes = 0, names_bytes = (size_t)count * sizeof(struct str);
    for (int32_t i = 0; i < count; i++)
        text_bytes += (size_t)topics[i].name.len;
    struct topic_list *list = mem_take(sizeof *list + 2 * names_bytes + text_bytes);
    if (!list)
        return NULL;
    *list = (struct topic_list){.count = count, .names = (struct str *)(list + 1)};
    list->found = list->names + count;
    char *text = (char *)(list->found + count);
    for (int32_t i = 0; i < count; i++) {
        memcpy(text, topics[i].name.ptr, (size_t)topics[i].name.len);
        list->names[i] = (struct str){text, topics[i].name.len};
        text += topics[i].name.len;
    }
    return list;
}

static int32_t bit_next(const struct topic_list *list, const uint64_t *bits, int32_t at) {
    while (at < list->count && !bit_of(bits, at))
        at++;
    return at;
}

static bool matches_same(const struct topic_list *a, const uint64_t *a_bits, const struct topic_list *b,
                         const uint64_t *b_bits) {
    int32_t i = bit_next(a, a_bits, 0), j = bit_next(b, b_bits, 0);
    while (i < a->count && j < b->count && str_equal(a->names[i], b->names[j])) {
        i = bit_next(a, a_bits, i + 1);
        j = bit_next(b, b_bits, j + 1);
    }
    return i == a->count && j == b->count;
}

/* Each name with the pattern. ST_TOO_BIG: it takes too long. ST_NO_MEMORY. */
static enum status bits_fill(const struct pattern *p, const struct topic_list *list, uint64_t *bits) {
    int64_t until_us =
        clock_thread_us() + GROUP_PATTERNS_MATCH_US + list->count * GROUP_PATTERNS_MATCH_TOPIC_US;
    for (int32_t i = 0; i < list->count; i++) {
        bool matches;
        if ((i & BUDGET_LOOK_MASK) == 0 && clock_thread_us() > until_us)
            return ST_TOO_BIG;
        enum status st = pattern_match(p, list->names[i], &matches);
        if (st)
            return st;
        bits[i / 64] |= (uint64_t)matches << i % 64;
    }
    return ST_OK;
}

/* next_bits, or the row is refused. ST_NO_MEMORY: neither. */
static enum status row_match(const struct group_patterns *t, struct pattern_row *row,
                             const struct topic_list *list) {
    struct pattern *p = NULL;
    const char *ignored;
    row->next_bits = mem_take_zeroed((size_t)list->count / 64 + 1, sizeof *row->next_bits);
    if (!row->next_bits)
        return ST_NO_MEMORY;
    enum status st = pattern_new(row->text, &p, &ignored);
    if (!st)
        st = bits_fill(p, list, row->next_bits);
    pattern_free(p);
    row->next_refused = st == ST_INVALID || st == ST_TOO_BIG;
    row->is_same = row->bits && matches_same(t->list, row->bits, list, row->next_bits);
    return row->next_refused ? ST_OK : st;
}

/* The topics that some pattern matches, for group_topics_put. */
static enum status parts_fill(struct group_patterns *t, const struct topic_list *list) {
    t->parts_count = 0;
    t->parts = arena_take_array(&t->arena, struct backend_topics_part, list->count);
    uint64_t *any = arena_take_array(&t->arena, uint64_t, list->count / 64 + 1);
    if (!t->parts || !any)
        return ST_NO_MEMORY;
    for (int32_t i = 0; i < t->job_count; i++) {
        const uint64_t *bits = t->job[i]->next_bits ? t->job[i]->next_bits : t->job[i]->bits;
        for (int32_t j = 0; bits && j <= list->count / 64; j++)
            any[j] |= bits[j];
    }
    for (int32_t i = 0; i < list->count; i++) {
        if (bit_of(any, i))
            t->parts[t->parts_count++] =
                (struct backend_topics_part){.name = list->names[i], .topic = t->listed[i]};
    }
    return ST_OK;
}

static void look_run(struct work *work) {
    struct group_patterns *t = container_of(work, struct group_patterns, work);
    enum status st = listed_fill(t);
    bool same = list_is(t->list, t->listed, t->listed_count);
    t->next_list = same || st ? NULL : list_make(t->listed, t->listed_count);
    const struct topic_list *list = same ? t->list : t->next_list;
    if (!list)
        st = ST_NO_MEMORY;
    for (int32_t i = 0; !st && i < t->job_count; i++) {
        if (!t->job[i]->is_refused && !(same && t->job[i]->bits))
            st = row_match(t, t->job[i], list);
    }
    if (!st)
        st = parts_fill(t, list);
    op_complete(&t->matched, st);
}

/* ---- and back ---- */

/* What was begun is not used: the old list and its bits stay. */
static void look_drop(struct group_patterns *t) {
    mem_free(t->next_list);
    t->next_list = NULL;
    for (int32_t i = 0; i < t->job_count; i++) {
        mem_free(t->job[i]->next_bits);
        t->job[i]->next_bits = NULL;
    }
    look_end(t);
}

static void look_on_matched(struct op *op) {
    struct group_patterns *t = container_of(op, struct group_patterns, matched);
    if (op->status) {
        look_drop(t);
        return;
    }
    t->hop = (struct groups_call){.begin = look_put};
    op_init(&t->hop.op, t->settings.home, look_on_put);
    groups_call(*t->settings.groups, &t->hop);
}

/* True: it has other topics than before. */
static bool row_put(struct group_patterns *t, struct pattern_row *row) {
    if (!row->next_bits)
        return false;
    bool changed = !row->next_refused && !row->is_same;
    row->is_refused = row->next_refused;
    mem_free(row->bits);
    row->bits = row->next_bits;
    row->next_bits = NULL;
    if (changed)
        row->version = ++t->version;
    if (row->is_refused) {
        mem_free(row->bits);
        row->bits = NULL;
        log_line_limited(LOG_WARN, "kafka", "a subscription's pattern takes too long to match; it is refused",
                         LSTR("pattern", row->text));
    }
    return changed;
}

static void look_put(struct groups_call *hop, struct coordinator *c, int64_t now_ms) {
    struct group_patterns *t = container_of(hop, struct group_patterns, hop);
    bool changed = false;
    if (t->next_list) {
        mem_free(t->list);
        t->list = t->next_list;
        t->next_list = NULL;
    }
    for (int32_t i = 0; i < t->job_count; i++)
        changed |= row_put(t, t->job[i]);
    t->now_ms = now_ms;
    group_topics_put(t->topics, c, t->parts, t->parts_count, now_ms);
    if (changed)
        coordinator_topics_changed(c);
    groups_call_end(hop);
}

static void look_on_put(struct op *op) {
    struct group_patterns *t = container_of(op, struct group_patterns, hop.op);
    look_end(t);
    t->has_new = false;
    for (size_t i = 0; i < t->rows.count; i++) {
        const struct pattern_row *row = t->rows.rows[i];
        t->has_new |= !row->bits && !row->is_refused;
    }
    if (t->has_new) /* it came meanwhile, and nobody may send a heartbeat soon */
        group_patterns_tend(t, t->now_ms);
}
