/* Intrusive doubly linked list. A head is a struct link that points to itself; a zeroed link is in no list. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base/base.h"

struct link {
    struct link *prev, *next;
};

static inline void list_init(struct link *head) {
    head->prev = head->next = head;
}
static inline bool list_empty(const struct link *head) {
    return head->next == head;
}
static inline bool link_in_list(const struct link *l) {
    return l->next != NULL;
}
static inline void list_push_tail(struct link *head, struct link *l) {
    l->prev = head->prev;
    l->next = head;
    head->prev->next = l;
    head->prev = l;
}
/* Takes l out of its list; no effect on a link that is in none. */
static inline void list_remove(struct link *l) {
    if (!l->next)
        return;
    l->prev->next = l->next;
    l->next->prev = l->prev;
    l->prev = l->next = NULL;
}
/* The first link, taken out; NULL: the list is empty. */
static inline struct link *list_pop_head(struct link *head) {
    if (list_empty(head))
        return NULL;
    struct link *l = head->next;
    list_remove(l);
    return l;
}
/* Moves all of from to the end of to; from is empty afterwards. */
static inline void list_move_all(struct link *to, struct link *from) {
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}
#endif
