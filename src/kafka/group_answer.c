#include "kafka/group_answer.h"

void group_answer_init(struct group_answer *a, size_t bytes_max) {
    arena_init(&a->arena, NULL, 0, bytes_max);
    a->no_memory = false;
}

void *group_answer_take(struct group_answer *a, int32_t count, size_t size) {
    void *taken = a->no_memory ? NULL : arena_take_many(&a->arena, (size_t)count, size);
    a->no_memory = !taken;
    return taken;
}

struct str group_answer_text(struct group_answer *a, struct str s) {
    struct str copy = s.len < 0 || a->no_memory ? STR_NULL : arena_text(&a->arena, s);
    a->no_memory = a->no_memory || (s.len >= 0 && copy.len < 0);
    return copy;
}

struct str group_answer_some_text(struct group_answer *a, struct str s) {
    return group_answer_text(a, s.len < 0 ? STR("") : s);
}

struct bytes group_answer_bytes(struct group_answer *a, struct bytes b) {
    struct str copy = group_answer_text(a, (struct str){(const char *)b.ptr, b.len > 0 ? b.len : 0});
    return (struct bytes){(const uint8_t *)copy.ptr, copy.len > 0 ? copy.len : 0};
}
