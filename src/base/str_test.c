#include "base/base.h"
#include "testing/test.h"

TEST(the_parts_of_a_text_come_one_after_the_other) {
    struct str s = STR("a||bc"), part;
    CHECK(str_next_part(&s, '|', &part) && str_equal(part, STR("a")));
    CHECK(str_next_part(&s, '|', &part) && part.len == 0);
    CHECK(str_next_part(&s, '|', &part) && str_equal(part, STR("bc")));
    CHECK(!str_next_part(&s, '|', &part));
    s = STR("");
    CHECK(str_next_part(&s, '|', &part) && part.len == 0);
    CHECK(!str_next_part(&s, '|', &part));
}

TEST(a_list_has_whole_words_only) {
    CHECK(str_list_has(STR("compact, delete"), STR("delete")));
    CHECK(str_list_has(STR("compact"), STR("compact")));
    CHECK(!str_list_has(STR("compacted,deleted"), STR("compact")));
    CHECK(!str_list_has(STR(""), STR("delete")));
    CHECK(!str_list_has(STR_NULL, STR("delete")));
}
