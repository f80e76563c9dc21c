/* Who may do what, row by row, in the words of the protocol's own table. */
#include "users/permissions.h"

#include "base/mem.h"
#include "testing/test.h"

#define STREAM 7
#define TOPIC  3

static const struct row {
    enum user_action action;
    const char *global, *stream, *topic;
} table[] = {
    {ACTION_POLL, "poll_messages read_topics manage_topics read_streams manage_streams",
     "poll_messages read_stream manage_stream read_topics manage_topics",
     "poll_messages read_topic manage_topic"},
    {ACTION_SEND, "send_messages manage_topics manage_streams", "send_messages manage_stream manage_topics",
     "send_messages manage_topic"},
    {ACTION_READ_TOPIC, "read_streams manage_streams read_topics manage_topics",
     "read_stream manage_stream read_topics manage_topics", "read_topic manage_topic"},
    {ACTION_READ_TOPICS, "read_streams manage_streams read_topics manage_topics",
     "read_stream manage_stream read_topics manage_topics", ""},
    {ACTION_CREATE_TOPIC, "manage_streams manage_topics", "manage_stream manage_topics", ""},
    {ACTION_MANAGE_TOPIC, "manage_streams manage_topics", "manage_stream manage_topics", "manage_topic"},
    {ACTION_READ_STREAM, "read_streams manage_streams", "read_stream manage_stream", ""},
    {ACTION_READ_STREAMS, "read_streams manage_streams", "", ""},
    {ACTION_CREATE_STREAM, "manage_streams", "", ""},
    {ACTION_MANAGE_STREAM, "manage_streams", "manage_stream", ""},
    {ACTION_READ_SERVER, "manage_servers read_servers", "", ""},
    {ACTION_READ_USERS, "manage_users read_users", "", ""},
    {ACTION_MANAGE_USERS, "manage_users", "", ""},
};

struct bit {
    const char *name;
    size_t offset;
};
#define GLOBAL_BIT(b) \
    { #b, offsetof(struct iggy_permissions, b) }
#define STREAM_BIT(b) \
    { #b, offsetof(struct iggy_stream_permissions, b) }
#define TOPIC_BIT(b) \
    { #b, offsetof(struct iggy_topic_permissions, b) }
static const struct bit global_bits[] = {
    GLOBAL_BIT(manage_servers), GLOBAL_BIT(read_servers),  GLOBAL_BIT(manage_users),  GLOBAL_BIT(read_users),
    GLOBAL_BIT(manage_streams), GLOBAL_BIT(read_streams),  GLOBAL_BIT(manage_topics), GLOBAL_BIT(read_topics),
    GLOBAL_BIT(poll_messages),  GLOBAL_BIT(send_messages),
};
static const struct bit stream_bits[] = {
    STREAM_BIT(manage_stream), STREAM_BIT(read_stream),   STREAM_BIT(manage_topics),
    STREAM_BIT(read_topics),   STREAM_BIT(poll_messages), STREAM_BIT(send_messages),
};
static const struct bit topic_bits[] = {
    TOPIC_BIT(manage_topic),
    TOPIC_BIT(read_topic),
    TOPIC_BIT(poll_messages),
    TOPIC_BIT(send_messages),
};

/* Whether name is one of the words. */
static bool says(const char *words, const char *name) {
    size_t len = strlen(name);
    for (const char *at = words; (at = strstr(at, name)) != NULL; at += len)
        if ((at == words || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
            return true;
    return false;
}

static bool allows(const struct iggy_permissions *in, enum user_action action, uint32_t stream_id,
                   uint32_t topic_id) {
    struct permissions *p;
    CHECK_EQ(permissions_new(in, &p), ST_OK);
    bool yes = permissions_allow(p, action, stream_id, topic_id);
    permissions_free(p);
    return yes;
}

static void set(void *of, const struct bit *b) {
    *((bool *)of + b->offset) = true;
}

static void expect(bool got, bool wanted, const struct row *row, const char *what) {
    if (got != wanted)
        fail_msg("action %d, %s: %d", (int)row->action, what, (int)got);
}

TEST(each_global_permission_allows_what_its_column_says_and_nothing_else) {
    for (size_t i = 0; i < COUNT_OF(table); i++)
        for (size_t b = 0; b < COUNT_OF(global_bits); b++) {
            struct iggy_permissions p = {0};
            set(&p, &global_bits[b]);
            expect(allows(&p, table[i].action, STREAM, TOPIC), says(table[i].global, global_bits[b].name),
                   &table[i], global_bits[b].name);
        }
}

TEST(each_permission_on_a_stream_allows_what_its_column_says_there_and_nowhere_else) {
    for (size_t i = 0; i < COUNT_OF(table); i++)
        for (size_t b = 0; b < COUNT_OF(stream_bits); b++) {
            struct iggy_stream_permissions s = {.stream_id = STREAM};
            struct iggy_permissions p = {.streams = &s, .streams_count = 1};
            set(&s, &stream_bits[b]);
            expect(allows(&p, table[i].action, STREAM, TOPIC), says(table[i].stream, stream_bits[b].name),
                   &table[i], stream_bits[b].name);
            expect(allows(&p, table[i].action, STREAM + 1, TOPIC), false, &table[i], "another stream");
        }
}

TEST(each_permission_on_a_topic_allows_what_its_column_says_there_and_nowhere_else) {
    for (size_t i = 0; i < COUNT_OF(table); i++)
        for (size_t b = 0; b < COUNT_OF(topic_bits); b++) {
            struct iggy_topic_permissions t = {.topic_id = TOPIC};
            struct iggy_stream_permissions s = {.stream_id = STREAM, .topics = &t, .topics_count = 1};
            struct iggy_permissions p = {.streams = &s, .streams_count = 1};
            set(&t, &topic_bits[b]);
            expect(allows(&p, table[i].action, STREAM, TOPIC), says(table[i].topic, topic_bits[b].name),
                   &table[i], topic_bits[b].name);
            expect(allows(&p, table[i].action, STREAM, TOPIC + 1), false, &table[i], "another topic");
            expect(allows(&p, table[i].action, STREAM + 1, TOPIC), false, &table[i], "another stream");
        }
}

TEST(who_has_no_permissions_may_do_nothing) {
    for (size_t i = 0; i < COUNT_OF(table); i++)
        CHECK(!permissions_allow(NULL, table[i].action, STREAM, TOPIC));
}

/* Streams 90, 80, ..., each with topics 9, 8, ...; only topic 5 of stream 50 may be read. */
TEST(a_topic_is_found_among_many_that_came_in_no_order) {
    struct iggy_topic_permissions topics[9][9];
    struct iggy_stream_permissions streams[9];
    struct iggy_permissions p = {.streams = streams, .streams_count = 9};
    for (uint32_t s = 0; s < 9; s++) {
        streams[s] = (struct iggy_stream_permissions){
            .stream_id = 90 - s * 10, .topics = topics[s], .topics_count = 9};
        for (uint32_t t = 0; t < 9; t++)
            topics[s][t] = (struct iggy_topic_permissions){.topic_id = 9 - t, .read_topic = s == 4 && t == 4};
    }
    struct permissions *made;
    CHECK_EQ(permissions_new(&p, &made), ST_OK);
    for (uint32_t s = 0; s <= 100; s += 10)
        for (uint32_t t = 0; t <= 10; t++)
            CHECK_EQ(permissions_allow(made, ACTION_READ_TOPIC, s, t), s == 50 && t == 5);
    permissions_free(made);
}

TEST(of_a_stream_or_topic_that_is_named_twice_the_later_entry_counts) {
    struct iggy_topic_permissions topics[] = {
        {.topic_id = 1, .read_topic = true}, {.topic_id = 2}, {.topic_id = 1, .send_messages = true}};
    struct iggy_stream_permissions streams[] = {{.stream_id = 4, .manage_stream = true},
                                                {.stream_id = 4, .topics = topics, .topics_count = 3}};
    struct iggy_permissions p = {.streams = streams, .streams_count = 2}, shown;
    struct permissions *made;
    struct arena a;
    CHECK_EQ(permissions_new(&p, &made), ST_OK);
    CHECK(!permissions_allow(made, ACTION_MANAGE_STREAM, 4, 0));
    CHECK(!permissions_allow(made, ACTION_READ_TOPIC, 4, 1));
    CHECK(permissions_allow(made, ACTION_SEND, 4, 1));
    arena_init(&a, NULL, 0, 4096);
    CHECK_EQ(permissions_show(made, &a, &shown), ST_OK);
    CHECK_EQ(shown.streams_count, 1);
    CHECK_EQ(shown.streams[0].topics_count, 2);
    CHECK_EQ(shown.streams[0].topics[1].topic_id, 2);
    arena_release(&a);
    permissions_free(made);
}

/* 10 flags, a stream with its id, 6 flags and a topic with its id and 4 flags; between them whether something follows. */
TEST(permissions_are_kept_as_the_protocol_has_them) {
    static const uint8_t wire[] = {0, 0, 0, 0, 0, 0,      0, 1, 0, 0, /**/ 1, 5, 0, 0, 0,      0,
                                   1, 0, 0, 0, 0, /**/ 1, 9, 0, 0, 0, 0,      0, 1, 0, /**/ 0, /**/ 0};
    struct permissions *made;
    CHECK_EQ(permissions_load((struct bytes){wire, sizeof wire}, &made), ST_OK);
    CHECK_EQ(made->wire.len, sizeof wire);
    CHECK_MEM(made->wire.ptr, wire, sizeof wire);
    CHECK(permissions_allow(made, ACTION_READ_STREAM, 5, 0));
    CHECK(permissions_allow(made, ACTION_POLL, 5, 9));
    permissions_free(made);
    for (int32_t cut = 0; cut < (int32_t)sizeof wire; cut++)
        CHECK_EQ(permissions_load((struct bytes){wire, cut}, &made), ST_CORRUPT);
}

/* The most topics that fit on the wire: 11 bytes and the stream's 12, then 9 a topic. */
static enum status try_topics(uint32_t count, size_t arena_bytes) {
    struct iggy_topic_permissions *topics = mem_take_zeroed(count, sizeof *topics);
    struct iggy_stream_permissions s = {.topics = topics, .topics_count = count};
    struct iggy_permissions p = {.streams = &s, .streams_count = 1}, shown;
    struct permissions *made;
    CHECK(topics != NULL);
    for (uint32_t i = 0; i < count; i++)
        topics[i].topic_id = i * 7919 % count;
    enum status st = permissions_new(&p, &made);
    if (!st) {
        struct arena a;
        arena_init(&a, NULL, 0, arena_bytes);
        CHECK_EQ(permissions_show(made, &a, &shown), ST_OK);
        CHECK_EQ(shown.streams[0].topics_count, count);
        arena_release(&a);
        permissions_free(made);
    }
    mem_free(topics);
    return st;
}

TEST(permissions_have_a_limit_and_up_to_it_a_request_of_no_size_can_show_them) {
    const uint32_t most = (USERS_PERMISSIONS_BYTES_MAX - 11 - 12) / 9;
    CHECK_EQ(try_topics(most, 1024 * 1024), ST_OK);
    CHECK_EQ(try_topics(most + 1, 1024 * 1024), ST_TOO_BIG);
}

TEST(streams_alone_can_reach_the_limit_as_well) {
    const uint32_t most = (USERS_PERMISSIONS_BYTES_MAX - 11) / 12;
    struct iggy_stream_permissions *streams = mem_take_zeroed(most + 1, sizeof *streams);
    struct iggy_permissions p = {.streams = streams, .streams_count = most}, shown;
    struct permissions *made;
    struct arena a;
    CHECK(streams != NULL);
    for (uint32_t i = 0; i <= most; i++)
        streams[i].stream_id = most - i;
    CHECK_EQ(permissions_new(&p, &made), ST_OK);
    arena_init(&a, NULL, 0, 1024 * 1024);
    CHECK_EQ(permissions_show(made, &a, &shown), ST_OK);
    CHECK_EQ(shown.streams_count, most);
    arena_release(&a);
    permissions_free(made);
    p.streams_count = most + 1;
    CHECK_EQ(permissions_new(&p, &made), ST_TOO_BIG);
    mem_free(streams);
}

TEST_OOM(permissions_without_memory_are_refused_and_leave_nothing) {
    struct iggy_topic_permissions topics[] = {{.topic_id = 2}, {.topic_id = 1}};
    struct iggy_stream_permissions s = {.stream_id = 1, .topics = topics, .topics_count = 2};
    struct iggy_permissions p = {.streams = &s, .streams_count = 1};
    struct permissions *made = NULL;
    enum status st = permissions_new(&p, &made);
    CHECK(st == ST_OK || st == ST_NO_MEMORY);
    CHECK_EQ(st == ST_OK, made != NULL);
    permissions_free(made);
}
