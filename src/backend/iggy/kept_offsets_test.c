#include "backend/iggy/kept_offsets.h"

#include "base/mem.h"
#include "testing/test.h"

static const struct kept_topic orders = {{"orders", 6}, 7, 0x1122334455667788};

/* A message in flat bytes; the caller's. */
static struct bytes flat_of(struct kept_writer *w) {
    kept_end(w);
    uint8_t *flat = mem_take(w->out.bytes);
    wbuf_flatten(&w->out, flat);
    struct bytes message = {flat, (int32_t)w->out.bytes};
    kept_release(w);
    return message;
}

static void message_free(struct bytes m) {
    mem_free((void *)(uintptr_t)m.ptr);
}

static struct bytes message_of(const char *group, const struct kept_topic *topic, uint32_t partition,
                               int64_t offset) {
    struct kept_writer w;
    CHECK_EQ(kept_begin(&w, str_of(group)), ST_OK);
    CHECK_EQ(kept_put(&w, topic, partition, offset), ST_OK);
    return flat_of(&w);
}

static void apply(struct kept_offsets *k, const char *group, const struct kept_topic *topic,
                  uint32_t partition, int64_t offset) {
    struct bytes m = message_of(group, topic, partition, offset);
    CHECK_EQ(kept_apply(k, m), ST_OK);
    message_free(m);
}

TEST(a_message_has_these_bytes) { /* D12-9 */
    static const uint8_t golden[] = {
        'k',  'g',  'o',  1,                                                   /* form */
        1,                                                                     /* offsets */
        2,    0,    'g',  '1',                                                 /* group */
        6,    0,    'o',  'r',  'd',  'e',  'r',  's',  7,    0,    0,    0,   /* topic, number */
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,                        /* created */
        2,    0,    0,    0,                                                   /* partitions */
        0,    0,    0,    0,    5,    0,    0,    0,    0,    0,    0,    0,   /* 0: 5 */
        1,    2,    0,    0,    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff /* 513: forgotten */
    };
    static const uint8_t forgotten[] = {'k', 'g', 'o', 1, 2, 2, 0, 'g', '1'};
    struct kept_writer w;
    CHECK_EQ(kept_begin(&w, STR("g1")), ST_OK);
    CHECK_EQ(kept_put(&w, &orders, 0, 5), ST_OK);
    CHECK_EQ(kept_put(&w, &orders, 513, -7), ST_OK);
    struct bytes m = flat_of(&w);
    CHECK_EQ(m.len, sizeof golden);
    CHECK_MEM(m.ptr, golden, sizeof golden);
    message_free(m);
    CHECK_EQ(kept_forget(&w, STR("g1")), ST_OK);
    m = flat_of(&w);
    CHECK_EQ(m.len, sizeof forgotten);
    CHECK_MEM(m.ptr, forgotten, sizeof forgotten);
    message_free(m);
}

TEST(the_last_message_about_a_partition_counts) {
    struct kept_offsets k = {0};
    apply(&k, "g", &orders, 0, 5);
    apply(&k, "g", &orders, 9, 1);
    apply(&k, "h", &orders, 0, 50);
    apply(&k, "g", &orders, 0, 3);
    CHECK_EQ(kept_get(&k, STR("g"), &orders, 0), 3);
    CHECK_EQ(kept_get(&k, STR("g"), &orders, 9), 1);
    CHECK_EQ(kept_get(&k, STR("g"), &orders, 8), -1);
    CHECK_EQ(kept_get(&k, STR("g"), &orders, 100), -1);
    CHECK_EQ(kept_get(&k, STR("h"), &orders, 0), 50);
    CHECK_EQ(kept_get(&k, STR("i"), &orders, 0), -1);
    kept_clear(&k);
    CHECK_EQ(kept_get(&k, STR("g"), &orders, 0), -1);
}

TEST(what_is_forgotten_leaves_nothing_behind) {
    struct kept_offsets k = {0};
    apply(&k, "g", &orders, 3, -1);
    CHECK(!kept_has(&k, STR("g")));
    apply(&k, "g", &orders, 3, 12);
    apply(&k, "g", &orders, 4, 12);
    apply(&k, "g", &orders, 3, -1);
    CHECK(kept_has(&k, STR("g")));
    CHECK_EQ(kept_get(&k, STR("g"), &orders, 3), -1);
    apply(&k, "g", &orders, 4, -1);
    CHECK(!kept_has(&k, STR("g")));
    CHECK_EQ(k.bytes, 0);

    apply(&k, "g", &orders, 1, 1);
    apply(&k, "h", &orders, 1, 2);
    struct kept_writer w;
    CHECK_EQ(kept_forget(&w, STR("g")), ST_OK);
    struct bytes m = flat_of(&w);
    CHECK_EQ(kept_apply(&k, m), ST_OK);
    CHECK_EQ(kept_apply(&k, m), ST_OK); /* of a group that isn't there, too */
    message_free(m);
    CHECK_EQ(k.groups.count, 1);
    CHECK(str_equal(kept_group_name(&k, 0), STR("h")));
    kept_clear(&k);
}

TEST(a_topic_made_anew_begins_without_offsets) {
    struct kept_offsets k = {0};
    struct kept_topic later = orders;
    later.topic_id++;
    later.created_us++;
    apply(&k, "g", &orders, 0, 5);
    CHECK_EQ(kept_get(&k, STR("g"), &later, 0), -1);
    apply(&k, "g", &later, 1, 6);
    CHECK_EQ(kept_get(&k, STR("g"), &later, 0), -1);
    CHECK_EQ(kept_get(&k, STR("g"), &later, 1), 6);
    apply(&k, "g", &orders, 1, 7); /* a gateway that had not noticed */
    CHECK_EQ(kept_get(&k, STR("g"), &orders, 1), -1);
    CHECK_EQ(kept_get(&k, STR("g"), &later, 1), 6);
    kept_clear(&k);
}

static struct bytes two_topics(void) {
    struct kept_topic second = {STR("payments"), 8, 99};
    struct kept_writer w;
    CHECK_EQ(kept_begin(&w, STR("g")), ST_OK);
    CHECK_EQ(kept_put(&w, &second, 2, 4), ST_OK);
    CHECK_EQ(kept_put(&w, &orders, 0, 5), ST_OK);
    CHECK_EQ(kept_put(&w, &orders, 1, 6), ST_OK);
    return flat_of(&w);
}

TEST(a_message_that_is_cut_anywhere_changes_nothing) {
    struct kept_offsets k = {0};
    struct bytes whole = two_topics();
    int32_t taken = 0;
    for (int32_t len = 0; len < whole.len; len++) {
        uint8_t *cut = mem_take((size_t)len + 1);
        memcpy(cut, whole.ptr, (size_t)len);
        enum status st = kept_apply(&k, (struct bytes){cut, len});
        CHECK(st == ST_INVALID || st == ST_OK);
        taken += st == ST_OK;
        mem_free(cut);
    }
    CHECK_EQ(taken, 2); /* behind the group, and behind the first topic: messages of less */
    kept_clear(&k);
    CHECK_EQ(kept_apply(&k, whole), ST_OK);
    CHECK_EQ(kept_get(&k, STR("g"), &orders, 1), 6);
    message_free(whole);
    kept_clear(&k);
}

TEST(messages_of_others_are_none) {
    struct kept_offsets k = {0};
    struct bytes m = message_of("g", &orders, KEPT_PARTITIONS_MAX, 5);
    CHECK_EQ(kept_apply(&k, m), ST_INVALID);
    message_free(m);
    m = message_of("g", &orders, 0, 5);
    uint8_t *bytes = (uint8_t *)(uintptr_t)m.ptr;
    for (int i = 0; i < 5; i++) {
        bytes[i] ^= 4;
        CHECK_EQ(kept_apply(&k, m), ST_INVALID);
        bytes[i] ^= 4;
    }
    CHECK_EQ(kept_apply(&k, BYTES_NULL), ST_INVALID);
    CHECK_EQ(kept_apply(&k, m), ST_OK);
    message_free(m);
    kept_clear(&k);
}

/* A message of a few bytes can name the last partition there may be: the table's limit ends that. */
TEST(the_table_has_a_limit) {
    struct kept_offsets k = {0};
    enum status st = ST_OK;
    int count = 0;
    for (; !st && count < 100; count++) {
        char group[16];
        snprintf(group, sizeof group, "g%d", count);
        struct bytes m = message_of(group, &orders, KEPT_PARTITIONS_MAX - 1, 5);
        st = kept_apply(&k, m);
        message_free(m);
    }
    CHECK_EQ(st, ST_POLICY);
    CHECK(count > 30);
    CHECK(k.bytes <= KEPT_BYTES_MAX);
    kept_clear(&k);
}

struct seen {
    int count;
    uint32_t partitions[8];
};

static enum status see(void *user, const struct kept_topic *topic, uint32_t partition, int64_t offset) {
    struct seen *s = user;
    CHECK(topic->name.len > 0);
    CHECK(offset >= 0);
    s->partitions[s->count++] = partition;
    return s->count == 3 ? ST_EXISTS : ST_OK;
}

TEST(a_walk_goes_by_topic_and_partition) {
    struct kept_offsets k = {0};
    struct seen s = {0};
    struct bytes m = two_topics();
    CHECK_EQ(kept_apply(&k, m), ST_OK);
    message_free(m);
    CHECK_EQ(kept_each(&k, STR("g"), see, &s), ST_EXISTS);
    CHECK_EQ(s.count, 3);
    CHECK_EQ(s.partitions[0], 0);
    CHECK_EQ(s.partitions[1], 1);
    CHECK_EQ(s.partitions[2], 2);
    CHECK_EQ(kept_each(&k, STR("nobody"), see, &s), ST_OK);
    kept_clear(&k);
}

TEST_OOM(the_table_survives_any_failed_allocation) {
    struct kept_offsets k = {0};
    struct kept_writer w;
    enum status st = kept_begin(&w, STR("g"));
    for (uint32_t i = 0; !st && i < 100; i++)
        st = kept_put(&w, &orders, i, i);
    kept_end(&w);
    uint8_t *flat = st ? NULL : mem_take(w.out.bytes);
    if (flat) {
        wbuf_flatten(&w.out, flat);
        if (kept_apply(&k, (struct bytes){flat, (int32_t)w.out.bytes}) == ST_OK)
            CHECK_EQ(kept_get(&k, STR("g"), &orders, 99), 99);
    }
    mem_free(flat);
    kept_release(&w);
    kept_clear(&k);
}
