#include "base/list.h"

#include "testing/test.h"

struct item {
    struct link link;
    char name;
};

/* The names in order, by both directions. */
static const char *names_in(const struct link *head) {
    static char names[16];
    size_t len = 0;
    for (const struct link *l = head->next; l != head; l = l->next)
        names[len++] = container_of(l, struct item, link)->name;
    names[len] = '\0';
    size_t back = len;
    for (const struct link *l = head->prev; l != head; l = l->prev)
        CHECK_EQ(names[--back], container_of(l, struct item, link)->name);
    CHECK_EQ(back, 0);
    return names;
}

TEST(a_list_gives_its_links_in_the_order_they_came) {
    struct link head;
    struct item a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'};
    list_init(&head);
    CHECK(list_empty(&head));
    CHECK(list_pop_head(&head) == NULL);
    CHECK(!link_in_list(&a.link));
    list_push_tail(&head, &a.link);
    list_push_tail(&head, &b.link);
    list_push_tail(&head, &c.link);
    CHECK_TEXT(names_in(&head), "abc");
    CHECK(link_in_list(&b.link));
    CHECK(!list_empty(&head));

    list_remove(&b.link);
    CHECK(!link_in_list(&b.link));
    CHECK_TEXT(names_in(&head), "ac");
    list_remove(&b.link); /* no effect */
    CHECK_TEXT(names_in(&head), "ac");

    CHECK(list_pop_head(&head) == &a.link);
    CHECK(!link_in_list(&a.link));
    CHECK(list_pop_head(&head) == &c.link);
    CHECK(list_empty(&head));
    list_push_tail(&head, &b.link);
    CHECK_TEXT(names_in(&head), "b");
}

TEST(a_list_moved_to_another_follows_what_is_there) {
    struct link to, from;
    struct item items[] = {{.name = 'a'}, {.name = 'b'}, {.name = 'c'}, {.name = 'd'}};
    list_init(&to);
    list_init(&from);
    list_move_all(&to, &from);
    CHECK_TEXT(names_in(&to), "");
    list_push_tail(&from, &items[0].link);
    list_push_tail(&from, &items[1].link);
    list_move_all(&to, &from);
    CHECK_TEXT(names_in(&to), "ab");
    CHECK_TEXT(names_in(&from), "");
    list_push_tail(&from, &items[2].link);
    list_push_tail(&from, &items[3].link);
    list_move_all(&to, &from);
    CHECK_TEXT(names_in(&to), "abcd");
    list_move_all(&to, &from);
    CHECK_TEXT(names_in(&to), "abcd");
    list_remove(&items[2].link);
    CHECK_TEXT(names_in(&to), "abd");
}
