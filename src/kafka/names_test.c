#include "kafka/names.h"

#include "testing/test.h"

#define ARENA_BYTES (4 << 20)

TEST(each_key_knows_where_it_first_stands) {
    const struct name_key keys[] = {{STR("b"), 0}, {STR("a"), 0}, {STR("b"), 0}, {STR("b"), 1},
                                    {STR("a"), 0}, {STR("b"), 0}, {STR("c"), 0}};
    const struct name_place expected[] = {{0, true}, {1, true}, {0, true}, {3, false},
                                          {1, true}, {0, true}, {6, false}};
    struct request r = {0};
    arena_init(&r.arena, NULL, 0, ARENA_BYTES);
    const struct name_place *places = names_place(&r, keys, (int32_t)COUNT_OF(keys));
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        CHECK_EQ(places[i].first, expected[i].first);
        CHECK_EQ(places[i].repeated, expected[i].repeated);
    }
    arena_release(&r.arena);
}

TEST(a_null_name_is_like_an_empty_one_with_another_length) {
    const struct name_key keys[] = {{STR_NULL, 0}, {STR(""), 0}, {STR_NULL, 0}};
    struct request r = {0};
    arena_init(&r.arena, NULL, 0, ARENA_BYTES);
    const struct name_place *places = names_place(&r, keys, (int32_t)COUNT_OF(keys));
    CHECK_EQ(places[0].first, 0);
    CHECK_EQ(places[1].first, 1);
    CHECK_EQ(places[2].first, 0);
    CHECK(!places[1].repeated);
    arena_release(&r.arena);
}

TEST(no_keys_have_no_places) {
    struct request r = {0};
    arena_init(&r.arena, NULL, 0, ARENA_BYTES);
    CHECK(names_place(&r, NULL, 0) != NULL);
    arena_release(&r.arena);
}

/* B-41: a list may have 65,536 elements; in quadratic time this would take minutes. */
TEST(sixty_five_thousand_equal_keys_are_placed_at_once) {
    enum { COUNT = 65536 };
    struct request r = {0};
    arena_init(&r.arena, NULL, 0, 2 * ARENA_BYTES);
    struct name_key *keys = request_array(&r, struct name_key, COUNT);
    for (int32_t i = 0; i < COUNT; i++)
        keys[i] = (struct name_key){STR("same"), i % 2};
    const struct name_place *places = names_place(&r, keys, COUNT);
    CHECK_EQ(places[COUNT - 1].first, 1);
    CHECK_EQ(places[COUNT - 2].first, 0);
    CHECK(places[0].repeated);
    arena_release(&r.arena);
}
