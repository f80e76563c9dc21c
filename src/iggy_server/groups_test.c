/* Groups on a real store: dealt, left, forgotten. */
#include "iggy_server/groups.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"
#include "iggy/errors.h"
#include "iggy_server/owner.h"
#include "store/store_offsets.h"
#include "testing/test.h"

enum { ALICE = 11, BOB = 22, CAROL = 33 }; /* sessions */

struct fixture {
    const char *dir;
    struct store *store;
    struct iggy_server server; /* of which only the store is looked at */
    struct groups *groups;
    struct topic *topic;
    struct arena arena;
};

static struct topic *create_topic(struct fixture *f, const char *name, int32_t partitions) {
    struct topic *t = NULL;
    struct store_topic_new want = {
        .stream = STR("stream"), .name = str_of(name), .partitions_count = partitions};
    CHECK_EQ(store_topic_create(f->store, &want, &t), ST_OK);
    return t;
}

static void fixture_open(struct fixture *f, const char *dir, int32_t partitions) {
    struct store_settings settings = {.data_dir = dir, .segment_bytes = 1 << 20};
    struct store_error error;
    *f = (struct fixture){.dir = dir};
    CHECK_EQ(store_open(&settings, &f->store, &error), ST_OK);
    CHECK_EQ(store_stream_ensure(f->store, STR("stream")), ST_OK);
    f->server.settings.store = f->store;
    CHECK_EQ(groups_open(&f->server, &f->groups), ST_OK);
    f->topic = store_topic_find(f->store, STR("stream"), STR("topic"));
    if (!f->topic)
        f->topic = create_topic(f, "topic", partitions);
    arena_init(&f->arena, NULL, 0, 1 << 20);
}

static void fixture_close(struct fixture *f) {
    arena_release(&f->arena);
    topic_unref(f->topic);
    groups_close(f->groups);
    store_close(f->store);
}

static struct iggy_identifier named(const char *name) {
    return iggy_by_name(str_of(name));
}

static uint32_t create(struct fixture *f, const char *name) {
    uint32_t id = UINT32_MAX;
    CHECK_EQ(groups_create(f->groups, f->topic, str_of(name), &id), 0);
    return id;
}

static uint32_t join(struct fixture *f, const char *name, uint64_t session) {
    struct iggy_identifier id = named(name);
    return groups_join(f->groups, f->topic, &id, session);
}

static uint32_t leave(struct fixture *f, const char *name, uint64_t session) {
    struct iggy_identifier id = named(name);
    return groups_leave(f->groups, f->topic, &id, session);
}

/* What a member syncs: "generation: partition partition ...", or "-" for who is none. */
static const char *synced(struct fixture *f, const char *name, uint64_t session) {
    struct iggy_identifier id = named(name);
    struct iggy_sync_group_res res;
    CHECK_EQ(groups_sync(f->groups, f->topic, &id, session, &f->arena, &res), ST_OK);
    if (!res.is_member)
        return "-";
    struct str text = arena_printf(&f->arena, "%" PRIu64 ":", res.generation);
    for (uint32_t i = 0; i < res.partitions_count; i++)
        text = arena_printf(&f->arena, "%s %u", text.ptr, (unsigned)res.partitions[i].value);
    return text.ptr;
}

/* Without the generation. */
static const char *dealt(struct fixture *f, const char *name, uint64_t session) {
    const char *text = synced(f, name, session), *colon = strchr(text, ':');
    return colon ? colon + 1 : text;
}

/* ---- names and ids ---- */

TEST(groups_are_found_by_id_and_name_in_their_own_topic) {
    struct fixture f;
    uint32_t id = UINT32_MAX;
    fixture_open(&f, test_dir(), 3);
    struct topic *other = create_topic(&f, "other", 1);
    struct iggy_identifier zero = iggy_by_id(0), one = iggy_by_id(1), two = iggy_by_id(2), b = named("b");
    CHECK_EQ(create(&f, "b"), 0);
    CHECK_EQ(create(&f, "a"), 1);
    CHECK_EQ(groups_create(f.groups, other, STR("b"), &id), 0);
    CHECK_EQ(id, 0);
    CHECK_EQ(groups_find(f.groups, f.topic, &b, &id), 0);
    CHECK_EQ(id, 0);
    CHECK_EQ(groups_find(f.groups, f.topic, &one, &id), 0);
    CHECK_EQ(id, 1);
    CHECK_EQ(groups_find(f.groups, f.topic, &two, &id), IGGY_ERR_CONSUMER_GROUP_ID_NOT_FOUND);
    struct iggy_identifier c = named("c"), a = named("a");
    CHECK_EQ(groups_find(f.groups, f.topic, &c, &id), IGGY_ERR_CONSUMER_GROUP_NAME_NOT_FOUND);
    CHECK_EQ(groups_find(f.groups, other, &a, &id), IGGY_ERR_CONSUMER_GROUP_NAME_NOT_FOUND);
    CHECK_EQ(groups_find(f.groups, other, &zero, &id), 0);
    CHECK_EQ(groups_count(f.groups), 3);
    topic_unref(other);
    fixture_close(&f);
}

TEST(a_groups_name_is_one_in_its_topic_and_its_id_is_never_given_again) {
    struct fixture f;
    uint32_t id;
    fixture_open(&f, test_dir(), 3);
    struct iggy_identifier g = named("g");
    CHECK_EQ(create(&f, "g"), 0);
    CHECK_EQ(groups_create(f.groups, f.topic, STR("g"), &id), IGGY_ERR_CONSUMER_GROUP_NAME_ALREADY_EXISTS);
    CHECK_EQ(groups_create(f.groups, f.topic, STR(""), &id), IGGY_ERR_INVALID_CONSUMER_GROUP_NAME);
    CHECK_EQ(groups_create(f.groups, f.topic, STR("a\0b"), &id), IGGY_ERR_INVALID_CONSUMER_GROUP_NAME);
    CHECK_EQ(groups_delete(f.groups, f.topic, &g), 0);
    CHECK_EQ(groups_delete(f.groups, f.topic, &g), IGGY_ERR_CONSUMER_GROUP_NAME_NOT_FOUND);
    CHECK_EQ(create(&f, "g"), 1);
    fixture_close(&f);
}

TEST(names_and_ids_are_there_after_a_restart_and_members_are_not) {
    struct fixture f;
    uint32_t id;
    const char *dir = test_dir();
    fixture_open(&f, dir, 3);
    create(&f, "first");
    create(&f, "second");
    CHECK_EQ(join(&f, "second", ALICE), 0);
    fixture_close(&f);
    fixture_open(&f, dir, 3);
    struct iggy_identifier second = named("second");
    CHECK_EQ(groups_find(f.groups, f.topic, &second, &id), 0);
    CHECK_EQ(id, 1);
    CHECK_TEXT(synced(&f, "second", ALICE), "-");
    fixture_close(&f);
}

TEST(groups_of_a_topic_are_listed_in_the_order_of_their_ids) {
    struct fixture f;
    struct iggy_get_groups_res list;
    uint32_t id;
    fixture_open(&f, test_dir(), 5);
    struct topic *other = create_topic(&f, "other", 1);
    create(&f, "z");
    create(&f, "a");
    CHECK_EQ(groups_create(f.groups, other, STR("elsewhere"), &id), 0);
    CHECK_EQ(join(&f, "a", ALICE), 0);
    CHECK_EQ(groups_list(f.groups, f.topic, &f.arena, &list), ST_OK);
    CHECK_EQ(list.groups_count, 2);
    CHECK(str_equal(list.groups[0].name, STR("z")));
    CHECK_EQ(list.groups[0].members_count, 0);
    CHECK_EQ(list.groups[0].partitions_count, 5);
    CHECK(str_equal(list.groups[1].name, STR("a")));
    CHECK_EQ(list.groups[1].id, 1);
    CHECK_EQ(list.groups[1].members_count, 1);
    topic_unref(other);
    fixture_close(&f);
}

/* ---- dealing ---- */

TEST(partitions_are_dealt_round_robin_and_anew_when_members_come_and_go) {
    struct fixture f;
    fixture_open(&f, test_dir(), 5);
    create(&f, "g");
    CHECK_TEXT(synced(&f, "g", ALICE), "-");
    CHECK_EQ(join(&f, "g", ALICE), 0);
    CHECK_TEXT(dealt(&f, "g", ALICE), " 0 1 2 3 4");
    CHECK_EQ(join(&f, "g", BOB), 0);
    CHECK_TEXT(dealt(&f, "g", ALICE), " 0 2 4");
    CHECK_TEXT(dealt(&f, "g", BOB), " 1 3");
    CHECK_EQ(join(&f, "g", CAROL), 0);
    CHECK_TEXT(dealt(&f, "g", ALICE), " 0 3");
    CHECK_TEXT(dealt(&f, "g", BOB), " 1 4");
    CHECK_TEXT(dealt(&f, "g", CAROL), " 2");
    CHECK_EQ(leave(&f, "g", ALICE), 0);
    CHECK_TEXT(synced(&f, "g", ALICE), "-");
    CHECK_TEXT(dealt(&f, "g", BOB), " 0 2 4");
    CHECK_TEXT(dealt(&f, "g", CAROL), " 1 3");
    fixture_close(&f);
}

TEST(members_beyond_the_partitions_have_none) {
    struct fixture f;
    uint32_t partition;
    fixture_open(&f, test_dir(), 1);
    uint32_t id = create(&f, "g");
    CHECK_EQ(join(&f, "g", ALICE), 0);
    CHECK_EQ(join(&f, "g", BOB), 0);
    CHECK_TEXT(dealt(&f, "g", ALICE), " 0");
    CHECK_TEXT(dealt(&f, "g", BOB), "");
    CHECK(!groups_next_partition(f.groups, f.topic, id, BOB, &partition));
    fixture_close(&f);
}

TEST(each_change_makes_a_new_generation_and_nothing_else_does) {
    struct fixture f;
    fixture_open(&f, test_dir(), 2);
    create(&f, "g");
    CHECK_EQ(join(&f, "g", ALICE), 0);
    const char *alone = synced(&f, "g", ALICE);
    CHECK_TEXT(synced(&f, "g", ALICE), alone);
    CHECK_EQ(join(&f, "g", ALICE), 0); /* again: as it was */
    CHECK_TEXT(synced(&f, "g", ALICE), alone);
    uint64_t generation = strtoull(alone, NULL, 10);
    CHECK_EQ(join(&f, "g", BOB), 0);
    CHECK_EQ(strtoull(synced(&f, "g", ALICE), NULL, 10), generation + 1);
    CHECK_EQ(strtoull(synced(&f, "g", BOB), NULL, 10), generation + 1);
    CHECK_EQ(leave(&f, "g", BOB), 0);
    CHECK_EQ(strtoull(synced(&f, "g", ALICE), NULL, 10), generation + 2);
    CHECK_TEXT(dealt(&f, "g", ALICE), " 0 1");
    fixture_close(&f);
}

TEST(a_topic_that_grows_or_shrinks_is_dealt_anew) {
    struct fixture f;
    fixture_open(&f, test_dir(), 2);
    uint32_t id = create(&f, "g");
    CHECK_EQ(join(&f, "g", ALICE), 0);
    CHECK_EQ(join(&f, "g", BOB), 0);
    uint64_t generation = strtoull(synced(&f, "g", ALICE), NULL, 10);
    CHECK(!groups_owns(f.groups, f.topic, id, ALICE, 2));
    CHECK_EQ(store_topic_grow(f.store, f.topic, 4), ST_OK);
    CHECK(groups_owns(f.groups, f.topic, id, ALICE, 2));
    CHECK_TEXT(dealt(&f, "g", ALICE), " 0 2");
    CHECK_TEXT(dealt(&f, "g", BOB), " 1 3");
    CHECK_EQ(strtoull(synced(&f, "g", ALICE), NULL, 10), generation + 1);
    CHECK_EQ(store_topic_shrink(f.store, f.topic, 3), ST_OK);
    CHECK_TEXT(dealt(&f, "g", BOB), " 1");
    CHECK(!groups_owns(f.groups, f.topic, id, BOB, 3));
    CHECK_EQ(strtoull(synced(&f, "g", ALICE), NULL, 10), generation + 2);
    fixture_close(&f);
}

TEST(only_the_member_that_a_partition_is_dealt_to_owns_it) {
    struct fixture f;
    fixture_open(&f, test_dir(), 4);
    uint32_t id = create(&f, "g");
    CHECK(!groups_owns(f.groups, f.topic, id, ALICE, 0));
    CHECK_EQ(join(&f, "g", ALICE), 0);
    CHECK_EQ(join(&f, "g", BOB), 0);
    for (uint32_t p = 0; p < 6; p++) {
        CHECK_EQ(groups_owns(f.groups, f.topic, id, ALICE, p), p < 4 && p % 2 == 0);
        CHECK_EQ(groups_owns(f.groups, f.topic, id, BOB, p), p < 4 && p % 2 == 1);
        CHECK(!groups_owns(f.groups, f.topic, id, CAROL, p));
        CHECK(!groups_owns(f.groups, f.topic, id + 1, ALICE, p));
    }
    fixture_close(&f);
}

TEST(polls_without_a_partition_take_the_members_in_turn) {
    struct fixture f;
    uint32_t partition;
    fixture_open(&f, test_dir(), 5);
    uint32_t id = create(&f, "g");
    CHECK(!groups_next_partition(f.groups, f.topic, id, ALICE, &partition));
    CHECK_EQ(join(&f, "g", ALICE), 0);
    CHECK_EQ(join(&f, "g", BOB), 0);
    static const uint32_t alices[] = {0, 2, 4, 0, 2, 4}, bobs[] = {1, 3, 1, 3};
    for (size_t i = 0; i < COUNT_OF(alices); i++) {
        CHECK(groups_next_partition(f.groups, f.topic, id, ALICE, &partition));
        CHECK_EQ(partition, alices[i]);
    }
    for (size_t i = 0; i < COUNT_OF(bobs); i++) {
        CHECK(groups_next_partition(f.groups, f.topic, id, BOB, &partition));
        CHECK_EQ(partition, bobs[i]);
    }
    fixture_close(&f);
}

TEST(a_group_shows_its_members_with_their_partitions) {
    struct fixture f;
    struct iggy_get_group_res res;
    fixture_open(&f, test_dir(), 3);
    create(&f, "g");
    struct iggy_identifier g = named("g"), none = named("none");
    CHECK_EQ(join(&f, "g", BOB), 0);
    CHECK_EQ(join(&f, "g", ALICE), 0);
    CHECK_EQ(groups_get(f.groups, f.topic, &g, &f.arena, &res), ST_OK);
    CHECK(res.found);
    CHECK_EQ(res.group.members_count, 2);
    CHECK_EQ(res.members_count, 2);
    CHECK_EQ(res.group.partitions_count, 3);
    CHECK(res.members[0].id != res.members[1].id);
    CHECK_EQ(res.members[0].partitions_count, 2);
    CHECK_EQ(res.members[0].partitions[1].value, 2);
    CHECK_EQ(res.members[1].partitions_count, 1);
    CHECK_EQ(res.members[1].partitions[0].value, 1);
    CHECK_EQ(groups_get(f.groups, f.topic, &none, &f.arena, &res), ST_OK);
    CHECK(!res.found);
    fixture_close(&f);
}

/* ---- leaving ---- */

TEST(who_is_no_member_can_not_leave_and_nobody_joins_a_group_that_is_not_there) {
    struct fixture f;
    fixture_open(&f, test_dir(), 1);
    create(&f, "g");
    struct iggy_identifier nine = iggy_by_id(9);
    CHECK_EQ(leave(&f, "g", ALICE), IGGY_ERR_CONSUMER_GROUP_MEMBER_NOT_FOUND);
    CHECK_EQ(leave(&f, "none", ALICE), IGGY_ERR_CONSUMER_GROUP_NAME_NOT_FOUND);
    CHECK_EQ(join(&f, "none", ALICE), IGGY_ERR_CONSUMER_GROUP_NAME_NOT_FOUND);
    CHECK_EQ(groups_join(f.groups, f.topic, &nine, ALICE), IGGY_ERR_CONSUMER_GROUP_ID_NOT_FOUND);
    fixture_close(&f);
}

static uint32_t groups_of(struct fixture *f, uint64_t session, struct iggy_client_group **out) {
    uint32_t count;
    CHECK_EQ(groups_of_session(f->groups, session, &f->arena, out, &count), ST_OK);
    return count;
}

TEST(a_session_that_ends_leaves_all_its_groups_and_no_other_does) {
    struct fixture f;
    struct iggy_client_group *list;
    fixture_open(&f, test_dir(), 2);
    create(&f, "g");
    create(&f, "h");
    CHECK_EQ(join(&f, "g", ALICE), 0);
    CHECK_EQ(join(&f, "g", BOB), 0);
    CHECK_EQ(join(&f, "h", ALICE), 0);
    CHECK_EQ(groups_of(&f, ALICE, &list), 2);
    CHECK_EQ(list[0].group_id, 0);
    CHECK_EQ(list[1].group_id, 1);
    CHECK_EQ(list[1].topic_id, topic_info(f.topic)->topic_id);
    CHECK_EQ(list[1].stream_id, topic_info(f.topic)->stream_id);
    groups_forget_session(f.groups, ALICE);
    groups_forget_session(f.groups, CAROL);
    CHECK_EQ(groups_of(&f, ALICE, &list), 0);
    CHECK_EQ(groups_of(&f, BOB, &list), 1);
    CHECK_TEXT(dealt(&f, "g", BOB), " 0 1");
    CHECK_TEXT(synced(&f, "h", ALICE), "-");
    fixture_close(&f);
}

TEST(a_deleted_group_has_no_members_and_its_neighbours_keep_theirs) {
    struct fixture f;
    struct iggy_client_group *list;
    fixture_open(&f, test_dir(), 2);
    create(&f, "g");
    create(&f, "h");
    CHECK_EQ(join(&f, "g", ALICE), 0);
    CHECK_EQ(join(&f, "g", BOB), 0);
    CHECK_EQ(join(&f, "h", ALICE), 0);
    struct iggy_identifier g = named("g");
    CHECK_EQ(groups_delete(f.groups, f.topic, &g), 0);
    CHECK_EQ(groups_of(&f, ALICE, &list), 1);
    CHECK_EQ(list[0].group_id, 1);
    CHECK_EQ(groups_of(&f, BOB, &list), 0);
    CHECK_TEXT(dealt(&f, "h", ALICE), " 0 1");
    fixture_close(&f);
}

TEST(groups_of_a_topic_that_goes_go_with_it_told_or_not) {
    struct fixture f;
    struct iggy_client_group *list;
    uint32_t id;
    fixture_open(&f, test_dir(), 2);
    struct topic *told = create_topic(&f, "told", 1), *untold = create_topic(&f, "untold", 1);
    create(&f, "g");
    CHECK_EQ(join(&f, "g", ALICE), 0);
    struct iggy_identifier h = named("h");
    CHECK_EQ(groups_create(f.groups, told, STR("h"), &id), 0);
    CHECK_EQ(groups_join(f.groups, told, &h, ALICE), 0);
    CHECK_EQ(groups_create(f.groups, untold, STR("h"), &id), 0);
    CHECK_EQ(groups_join(f.groups, untold, &h, ALICE), 0);
    CHECK_EQ(groups_of(&f, ALICE, &list), 3);
    groups_forget_topic(f.groups, topic_info(told)->stream_id, topic_info(told)->topic_id);
    CHECK_EQ(groups_of(&f, ALICE, &list), 2);
    CHECK_EQ(store_topic_delete(f.store, untold), ST_OK); /* as a Kafka client does it */
    CHECK_EQ(groups_count(f.groups), 1);
    CHECK_EQ(groups_of(&f, ALICE, &list), 1);
    CHECK_EQ(groups_create(f.groups, untold, STR("late"), &id), IGGY_ERR_TOPIC_ID_NOT_FOUND);
    CHECK_TEXT(dealt(&f, "g", ALICE), " 0 1");
    groups_forget_topic(f.groups, topic_info(f.topic)->stream_id, UINT32_MAX);
    CHECK_EQ(groups_count(f.groups), 0);
    CHECK_EQ(groups_of(&f, ALICE, &list), 0);
    topic_unref(told);
    topic_unref(untold);
    fixture_close(&f);
}

/* ---- offsets ---- */

static void commit(struct fixture *f, uint8_t kind, uint32_t number) {
    char buffer[OFFSET_OWNER_BYTES];
    struct store_offset o = {.owner = offset_owner(buffer, kind, number),
                             .topic = topic_info(f->topic)->id,
                             .offset = 5,
                             .leader_epoch = -1};
    CHECK_EQ(store_offsets_set(f->store, &o, 1), ST_OK);
}

static bool has_offset(struct fixture *f, uint8_t kind, uint32_t number) {
    char buffer[OFFSET_OWNER_BYTES];
    struct store_offset o;
    return store_offset_get(f->store, offset_owner(buffer, kind, number), &topic_info(f->topic)->id, 0,
                            &f->arena, &o) == ST_OK;
}

TEST(the_offsets_of_a_deleted_group_are_forgotten_and_a_consumers_of_the_same_number_are_not) {
    struct fixture f;
    fixture_open(&f, test_dir(), 1);
    uint32_t id = create(&f, "g"), other = create(&f, "h");
    commit(&f, IGGY_CONSUMER, id);
    commit(&f, IGGY_CONSUMER_GROUP, id);
    commit(&f, IGGY_EXTERNAL_GROUP, id);
    commit(&f, IGGY_CONSUMER_GROUP, other);
    struct iggy_identifier g = named("g");
    CHECK_EQ(groups_delete(f.groups, f.topic, &g), 0);
    CHECK(has_offset(&f, IGGY_CONSUMER, id));
    CHECK(!has_offset(&f, IGGY_CONSUMER_GROUP, id));
    CHECK(!has_offset(&f, IGGY_EXTERNAL_GROUP, id));
    CHECK(has_offset(&f, IGGY_CONSUMER_GROUP, other));
    fixture_close(&f);
}

TEST(owners_are_a_letter_and_the_number) {
    char buffer[OFFSET_OWNER_BYTES];
    CHECK(str_equal(offset_owner(buffer, IGGY_CONSUMER, UINT32_MAX), STR("c4294967295")));
    CHECK(str_equal(offset_owner(buffer, IGGY_CONSUMER_GROUP, 0), STR("g0")));
    CHECK(str_equal(offset_owner(buffer, IGGY_EXTERNAL_GROUP, 12), STR("x12")));
}

/* ---- limits ---- */

TEST(a_session_is_in_a_bounded_number_of_groups) {
    struct fixture f;
    fixture_open(&f, test_dir(), 1);
    for (uint32_t i = 0; i <= GROUPS_PER_SESSION_MAX; i++) {
        char name[24];
        snprintf(name, sizeof name, "g%u", (unsigned)i);
        create(&f, name);
        CHECK_EQ(join(&f, name, ALICE), i < GROUPS_PER_SESSION_MAX ? 0 : IGGY_ERR_TOO_MANY_CONSUMER_GROUPS);
    }
    CHECK_EQ(leave(&f, "g5", ALICE), 0);
    CHECK_EQ(join(&f, "g1000", ALICE), 0);
    fixture_close(&f);
}

/* ---- many threads ---- */

#define ROUNDS 300

struct crowd {
    struct fixture f;
    uint32_t group_id;
    _Atomic uint64_t next_session;
    _Atomic bool failed;
};

/* In and out again; a member's partitions are its own all the time in between, or a newer generation's. */
static void *crowd_member(void *arg) {
    struct crowd *c = arg;
    uint64_t session = atomic_fetch_add(&c->next_session, 1);
    struct iggy_identifier g = iggy_by_id(c->group_id);
    for (int i = 0; i < ROUNDS; i++) {
        struct arena a;
        struct iggy_sync_group_res res;
        uint32_t partition;
        arena_init(&a, NULL, 0, 1 << 16);
        bool ok = groups_join(c->f.groups, c->f.topic, &g, session) == 0 &&
                  groups_sync(c->f.groups, c->f.topic, &g, session, &a, &res) == ST_OK && res.is_member;
        groups_next_partition(c->f.groups, c->f.topic, c->group_id, session, &partition);
        if (i % 2)
            groups_forget_session(c->f.groups, session);
        else
            ok = ok && groups_leave(c->f.groups, c->f.topic, &g, session) == 0;
        ok = ok && !groups_owns(c->f.groups, c->f.topic, c->group_id, session, 0);
        if (!ok)
            atomic_store(&c->failed, true);
        arena_release(&a);
    }
    return NULL;
}

TEST(members_come_and_go_on_many_threads_while_groups_do) {
    static struct crowd c;
    pthread_t threads[3];
    struct iggy_get_group_res res;
    fixture_open(&c.f, test_dir(), 4);
    c.group_id = create(&c.f, "g");
    atomic_store(&c.next_session, 1);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, crowd_member, &c), 0);
    struct iggy_identifier other = named("other"), g = iggy_by_id(c.group_id);
    for (int i = 0; i < 10; i++) {
        create(&c.f, "other");
        CHECK_EQ(join(&c.f, "other", CAROL), 0);
        CHECK_EQ(groups_delete(c.f.groups, c.f.topic, &other), 0);
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK(!atomic_load(&c.failed));
    CHECK_EQ(groups_get(c.f.groups, c.f.topic, &g, &c.f.arena, &res), ST_OK);
    CHECK_EQ(res.members_count, 0);
    fixture_close(&c.f);
}

/* ---- no memory ---- */

/* As TEST_OOM, but with a store that is opened outside, where no allocation fails. step returns whether it was done. */
static void oom_loop(struct fixture *f, bool (*step)(struct fixture *f, int nth)) {
    for (int nth = 1; nth < 1000; nth++) {
        mem_fail_at(nth);
        bool done = step(f, nth);
        bool unharmed = mem_fail_pending();
        mem_fail_at(0);
        CHECK(done || !unharmed);
        if (unharmed)
            return;
    }
    fail_msg("it never runs out of allocations");
}

static bool open_groups(struct fixture *f, int nth) {
    (void)nth;
    struct groups *g = NULL;
    enum status st = groups_open(&f->server, &g);
    CHECK(st == ST_OK || st == ST_NO_MEMORY);
    CHECK_EQ(st == ST_OK, g != NULL);
    groups_close(g);
    return st == ST_OK;
}

TEST(groups_are_not_opened_half_for_want_of_memory) {
    struct fixture f;
    fixture_open(&f, test_dir(), 1);
    create(&f, "g");
    create(&f, "h");
    oom_loop(&f, open_groups);
    fixture_close(&f);
}

static bool create_and_join(struct fixture *f, int nth) {
    char name[24];
    uint32_t id;
    snprintf(name, sizeof name, "g%d", nth);
    struct iggy_identifier by_name = named(name);
    uint32_t created = groups_create(f->groups, f->topic, str_of(name), &id);
    CHECK_EQ(groups_find(f->groups, f->topic, &by_name, &id),
             created ? IGGY_ERR_CONSUMER_GROUP_NAME_NOT_FOUND : 0);
    if (created)
        return false;
    uint32_t joined = groups_join(f->groups, f->topic, &by_name, (uint64_t)nth);
    CHECK_EQ(groups_owns(f->groups, f->topic, id, (uint64_t)nth, 0), joined == 0);
    return joined == 0;
}

TEST(who_could_not_join_for_want_of_memory_is_no_member) {
    struct fixture f;
    fixture_open(&f, test_dir(), 1);
    oom_loop(&f, create_and_join);
    fixture_close(&f);
}
