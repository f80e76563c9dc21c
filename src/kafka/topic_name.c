#include "kafka/topic_name.h"

static bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

bool topic_name_is_valid(struct str name) {
    if (name.len < 1 || name.len > TOPIC_NAME_BYTES_MAX || str_equal(name, STR(".")) ||
        str_equal(name, STR("..")))
        return false;
    for (int32_t i = 0; i < name.len; i++)
        if (!is_name_char(name.ptr[i]))
            return false;
    return true;
}

struct str topic_name_problem(struct arena *a, struct str name) {
    if (name.len <= 0)
        return STR("Topic name is invalid: the empty string is not allowed");
    if (str_equal(name, STR(".")) || str_equal(name, STR("..")))
        return arena_printf(a, "Topic name is invalid: '%.*s' is not allowed", name.len, name.ptr);
    if (name.len > TOPIC_NAME_BYTES_MAX)
        return arena_printf(
            a, "Topic name is invalid: the length of '%.*s' is longer than the max allowed length %d",
            name.len, name.ptr, TOPIC_NAME_BYTES_MAX);
    return arena_printf(a,
                        "Topic name is invalid: '%.*s' contains one or more characters other than ASCII "
                        "alphanumerics, '.', '_' and '-'",
                        name.len, name.ptr);
}

bool topic_name_can_collide(struct str name) {
    for (int32_t i = 0; i < name.len; i++)
        if (name.ptr[i] == '.' || name.ptr[i] == '_')
            return true;
    return false;
}

bool topic_name_collides(struct str a, struct str b) {
    if (a.len != b.len || str_equal(a, b))
        return false;
    for (int32_t i = 0; i < a.len; i++) {
        char x = a.ptr[i] == '.' ? '_' : a.ptr[i];
        char y = b.ptr[i] == '.' ? '_' : b.ptr[i];
        if (x != y)
            return false;
    }
    return true;
}

bool topic_name_is_internal(struct str name) {
    return str_equal(name, STR("__consumer_offsets")) || str_equal(name, STR("__transaction_state"));
}
