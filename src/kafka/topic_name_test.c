#include "kafka/topic_name.h"

#include "testing/test.h"

/* A-54, K5-3 */
TEST(a_topic_name_has_1_to_249_letters_digits_dots_underscores_and_dashes) {
    char longest[TOPIC_NAME_BYTES_MAX + 1];
    memset(longest, 'x', sizeof longest);
    CHECK(topic_name_is_valid(STR("a")));
    CHECK(topic_name_is_valid(STR("AZaz09._-")));
    CHECK(topic_name_is_valid(STR("...")));
    CHECK(topic_name_is_valid((struct str){longest, TOPIC_NAME_BYTES_MAX}));
    CHECK(!topic_name_is_valid((struct str){longest, TOPIC_NAME_BYTES_MAX + 1}));
    CHECK(!topic_name_is_valid(STR("")));
    CHECK(!topic_name_is_valid(STR_NULL));
}

TEST(every_other_byte_is_refused_in_a_topic_name) {
    const char *allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    for (int byte = 0; byte < 256; byte++) {
        const char name[3] = {'a', (char)byte, 'b'};
        bool good = byte != 0 && strchr(allowed, byte) != NULL;
        CHECK_EQ(topic_name_is_valid((struct str){name, 3}), good);
    }
}

TEST(one_and_two_dots_alone_are_no_topic_names) {
    CHECK(!topic_name_is_valid(STR(".")));
    CHECK(!topic_name_is_valid(STR("..")));
}

static void check_problem(struct str name, const char *expected) {
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 16);
    CHECK_TEXT(topic_name_problem(&arena, name).ptr, expected);
    arena_release(&arena);
}

TEST(a_bad_topic_name_is_explained_in_kafkas_words) {
    check_problem(STR(""), "Topic name is invalid: the empty string is not allowed");
    check_problem(STR(".."), "Topic name is invalid: '..' is not allowed");
    check_problem(STR("a b"), "Topic name is invalid: 'a b' contains one or more characters other than ASCII "
                              "alphanumerics, '.', '_' and '-'");
}

TEST(the_explanation_of_a_bad_name_survives_running_out_of_memory) {
    struct arena arena;
    arena_init(&arena, NULL, 0, 0);
    struct str text = topic_name_problem(&arena, STR("a b"));
    CHECK(text.ptr == NULL);
    CHECK_EQ(text.len, -1);
    arena_release(&arena);
}

TEST(names_that_differ_only_in_dots_and_underscores_collide) {
    CHECK(topic_name_collides(STR("a.b_c"), STR("a_b.c")));
    CHECK(topic_name_collides(STR("a.b"), STR("a_b")));
    CHECK(!topic_name_collides(STR("a.b"), STR("a.b")));
    CHECK(!topic_name_collides(STR("a.b"), STR("a-b")));
    CHECK(!topic_name_collides(STR("a.b"), STR("a_bc")));
    CHECK(topic_name_can_collide(STR("a.b")));
    CHECK(topic_name_can_collide(STR("_")));
    CHECK(!topic_name_can_collide(STR("a-b")));
}

TEST(topic_names_are_ordered_by_bytes) {
    CHECK(str_compare(STR("a"), STR("b")) < 0);
    CHECK(str_compare(STR("b"), STR("a")) > 0);
    CHECK(str_compare(STR("a"), STR("ab")) < 0);
    CHECK(str_compare(STR("ab"), STR("a")) > 0);
    CHECK(str_compare(STR(""), STR("a")) < 0);
    CHECK_EQ(str_compare(STR("ab"), STR("ab")), 0);
    CHECK(str_compare(STR("Z"), STR("_")) < 0);
}
