/* The table of committed offsets against the plainest one that can be, and its walk in pieces. */
#include "testing/test.h"

#include "base/mem.h"
#include "store/offsets_fixture.h"

#define TOPICS_COUNT     4
#define PARTITIONS_COUNT 40
#define STEPS_COUNT      20000

static uint64_t random_state = 12345;
static int32_t draw(int32_t below) {
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (int32_t)((random_state >> 33) % (uint64_t)below);
}

static const char *const names[3] = {"a", "b", "c"};
static int64_t model[3][TOPICS_COUNT][PARTITIONS_COUNT]; /* 0: none */

static void put(struct offset_table *t, int owner, int topic, int32_t partition, int64_t value) {
    struct store_offset o = offset_of(names[owner], topic, partition, value);
    struct offset_owner *at = offset_table_ensure_owner(t, o.owner);
    offset_table_put(t, at, offset_node_new(&o));
    model[owner][topic][partition] = value;
}

static int32_t model_remove(int owner, int topic, int32_t first, int32_t last) {
    int32_t count = 0;
    for (int i = 0; i < TOPICS_COUNT; i++) {
        for (int32_t p = 0; p < PARTITIONS_COUNT; p++) {
            if ((topic >= 0 && (i != topic || p < first || p > last)) || model[owner][i][p] == 0)
                continue;
            model[owner][i][p] = 0;
            count++;
        }
    }
    return count;
}

struct compared {
    int owner, topic;
    int32_t partition; /* where the walk is in the model */
};

static bool advance(struct compared *c) {
    for (; c->topic < TOPICS_COUNT; c->topic++, c->partition = 0)
        for (; c->partition < PARTITIONS_COUNT; c->partition++)
            if (model[c->owner][c->topic][c->partition] != 0)
                return true;
    return false;
}

static enum status compare_one(void *user, const struct store_offset *o) {
    struct compared *c = user;
    struct uuid id;
    CHECK(advance(c));
    id = topic_id(c->topic);
    CHECK(uuid_equal(&o->topic, &id));
    CHECK_EQ(o->partition, c->partition);
    CHECK_EQ(o->offset, model[c->owner][c->topic][c->partition]);
    c->partition++;
    return ST_OK;
}

static void compare_all(const struct offset_table *t) {
    int64_t count = 0;
    for (int owner = 0; owner < 3; owner++) {
        struct compared c = {.owner = owner};
        const struct offset_owner *at = offset_table_owner(t, str_of(names[owner]));
        if (at)
            CHECK_EQ(offset_owner_each(at, compare_one, &c), ST_OK);
        CHECK(!advance(&c));
        for (int i = 0; i < TOPICS_COUNT * PARTITIONS_COUNT; i++)
            count += model[owner][i / PARTITIONS_COUNT][i % PARTITIONS_COUNT] != 0;
    }
    CHECK_EQ(t->count, count);
}

static void change(struct offset_table *t) {
    int owner = draw(3), topic = draw(TOPICS_COUNT);
    int32_t first = draw(PARTITIONS_COUNT), last = first + draw(4);
    struct uuid id = topic_id(topic);
    struct offset_match m = {STR_NULL, &id, first, last};
    struct offset_owner *at = offset_table_owner(t, str_of(names[owner]));
    if (draw(4) > 0 || !at) {
        put(t, owner, topic, first, 1 + draw(1000000));
        return;
    }
    if (draw(100) == 0) {
        m.topic = NULL;
        topic = -1;
    }
    bool has = offset_owner_has(at, &m);
    int32_t count = offset_owner_remove(t, at, &m);
    CHECK_EQ(count, model_remove(owner, topic, first, last));
    CHECK_EQ(has, count > 0);
}

TEST(a_table_holds_what_the_plainest_one_holds_in_the_same_order) {
    struct offset_table t;
    offset_table_init(&t, 99);
    memset(model, 0, sizeof model);
    for (int step = 0; step < STEPS_COUNT; step++) {
        change(&t);
        if (step % 50 == 0)
            compare_all(&t);
        int owner = draw(3), topic = draw(TOPICS_COUNT);
        int32_t partition = draw(PARTITIONS_COUNT);
        struct uuid id = topic_id(topic);
        const struct offset_owner *at = offset_table_owner(&t, str_of(names[owner]));
        const struct offset_node *n = at ? offset_owner_find(at, &id, partition) : NULL;
        CHECK_EQ(n ? n->offset : 0, model[owner][topic][partition]);
    }
    offset_table_release(&t);
    CHECK_EQ(t.count, 0);
    CHECK_EQ(t.memory_bytes, 0);
    CHECK_EQ(t.file_bytes, 0);
    CHECK(t.owners == NULL);
}

TEST(the_topics_of_an_owner_follow_one_another_to_the_last_that_can_be) {
    struct offset_table t;
    offset_table_init(&t, 1);
    struct store_offset o = offset_of("a", 1, INT32_MAX, 5);
    struct offset_owner *owner = offset_table_ensure_owner(&t, o.owner);
    CHECK(offset_owner_next_topic(owner, NULL) == NULL);
    offset_table_put(&t, owner, offset_node_new(&o));
    o.partition = 0;
    offset_table_put(&t, owner, offset_node_new(&o));
    memset(o.topic.b, 0xff, sizeof o.topic.b);
    offset_table_put(&t, owner, offset_node_new(&o));
    o.partition = INT32_MAX;
    offset_table_put(&t, owner, offset_node_new(&o));
    struct uuid first = topic_id(1);
    const struct uuid *next = offset_owner_next_topic(owner, NULL);
    CHECK(uuid_equal(next, &first));
    next = offset_owner_next_topic(owner, next);
    CHECK(uuid_equal(next, &o.topic));
    CHECK(offset_owner_next_topic(owner, next) == NULL);
    offset_table_release(&t);
}

/* ---- the walk in pieces ---- */

struct pieces {
    int left; /* in this piece */
    uint8_t met[3][TOPICS_COUNT][PARTITIONS_COUNT];
};

static enum status meet(void *user, const struct store_offset *o) {
    struct pieces *w = user;
    int owner = o->owner.ptr[0] - 'a';
    w->met[owner][o->topic.b[15]][o->partition]++;
    return --w->left == 0 ? ST_AGAIN : ST_OK;
}

TEST(a_walk_in_pieces_meets_once_what_is_there_all_the_time) {
    for (int round = 0; round < 200; round++) {
        struct offset_table t;
        struct pieces w = {0};
        static bool stays[3][TOPICS_COUNT][PARTITIONS_COUNT];
        enum status st = ST_AGAIN;
        offset_table_init(&t, (uint64_t)round);
        memset(model, 0, sizeof model);
        for (int i = 0; i < 200; i++)
            put(&t, draw(3), draw(TOPICS_COUNT), draw(PARTITIONS_COUNT), 1);
        for (int i = 0; i < 3 * TOPICS_COUNT * PARTITIONS_COUNT; i++)
            (&stays[0][0][0])[i] = (&model[0][0][0])[i] != 0;
        offset_table_walk_begin(&t);
        while (st == ST_AGAIN) {
            w.left = 1 + draw(30);
            st = offset_table_walk_on(&t, meet, &w);
            for (int changes = 0; changes < 20; changes++) {
                change(&t);
                for (int i = 0; i < 3 * TOPICS_COUNT * PARTITIONS_COUNT; i++)
                    (&stays[0][0][0])[i] = (&stays[0][0][0])[i] && (&model[0][0][0])[i] != 0;
            }
        }
        CHECK_EQ(st, ST_OK);
        for (int i = 0; i < 3 * TOPICS_COUNT * PARTITIONS_COUNT; i++)
            if ((&stays[0][0][0])[i])
                CHECK_EQ((&w.met[0][0][0])[i], 1);
        offset_table_release(&t);
    }
}

TEST(a_walk_goes_on_when_its_owner_goes_and_comes_back) {
    struct offset_table t;
    struct pieces w = {.left = 1};
    offset_table_init(&t, 1);
    memset(model, 0, sizeof model);
    put(&t, 0, 1, 0, 1);
    put(&t, 0, 1, 1, 1);
    put(&t, 1, 1, 0, 1);
    offset_table_walk_begin(&t);
    CHECK_EQ(offset_table_walk_on(&t, meet, &w), ST_AGAIN);
    struct offset_match all = {.owner = STR_NULL};
    CHECK_EQ(offset_owner_remove(&t, offset_table_owner(&t, STR("a")), &all), 2);
    put(&t, 0, 1, 5, 1);
    w.left = 100;
    CHECK_EQ(offset_table_walk_on(&t, meet, &w), ST_OK);
    CHECK_EQ(w.met[0][1][0], 1);
    CHECK_EQ(w.met[0][1][1], 0);
    CHECK_EQ(w.met[1][1][0], 1);
    CHECK_EQ(w.met[0][1][5], 1);
    offset_table_release(&t);
}
