/* What members of both types have: names, places in their group's tables, a session. */
#include "group/group.h"

#include <stdio.h>

#define CLIENT_TEXT_BYTES_MAX 255

struct str text_cut(struct str s) {
    if (s.len <= CLIENT_TEXT_BYTES_MAX)
        return s;
    int32_t len = CLIENT_TEXT_BYTES_MAX;
    while (len > 0 && ((uint8_t)s.ptr[len] & 0xc0) == 0x80) /* the middle of a character */
        len--;
    return (struct str){s.ptr, len};
}

static size_t text_room(struct str s) {
    return s.len > 0 ? (size_t)s.len : 0;
}

static struct str text_copy(struct str s, char **at) {
    if (s.len < 0)
        return STR_NULL;
    struct str copy = {*at, s.len};
    if (s.len > 0)
        memcpy(*at, s.ptr, (size_t)s.len);
    *at += s.len;
    return copy;
}

struct group_member *member_new(struct group *g, const struct member_names *names, size_t size) {
    struct str client_id = text_cut(names->client_id), host = text_cut(names->host),
               rack = text_cut(names->rack);
    size_t texts = text_room(names->id) + text_room(names->instance) + text_room(client_id) +
                   text_room(host) + text_room(rack);
    struct group_member *m = keep_take(g->c, size + texts);
    if (!m)
        return NULL;
    char *at = (char *)m + size;
    m->group = g;
    m->id = text_copy(names->id, &at);
    m->instance = text_copy(names->instance, &at);
    m->client_id = text_copy(client_id, &at);
    m->host = text_copy(host, &at);
    m->rack = text_copy(rack, &at);
    m->session.kind = DEADLINE_SESSION;
    return m;
}

void member_free(struct group_member *m) {
    if (!m)
        return;
    deadline_clear(&m->group->c->deadlines, &m->session);
    keep_free(m->group->c, m);
}

static int compare_id(const void *key, const void *row) {
    return str_compare(*(const struct str *)key, ((const struct group_member *)row)->id);
}

static int compare_instance(const void *key, const void *row) {
    return str_compare(*(const struct str *)key, ((const struct group_member *)row)->instance);
}

struct group_member *member_find(const struct group *g, struct str id) {
    return id.len > 0 ? sorted_find(&g->members, compare_id, &id) : NULL;
}

struct group_member *member_of_instance(const struct group *g, struct str instance) {
    return instance.len >= 0 ? sorted_find(&g->instances, compare_instance, &instance) : NULL;
}

bool members_reserve(struct group *g, bool is_static) {
    return sorted_reserve(&g->members, 1) == ST_OK &&
           (!is_static || sorted_reserve(&g->instances, 1) == ST_OK);
}

void member_put(struct group_member *m) {
    struct group *g = m->group;
    sorted_put(&g->members, sorted_place(&g->members, compare_id, &m->id), m);
    if (m->instance.len >= 0)
        sorted_put(&g->instances, sorted_place(&g->instances, compare_instance, &m->instance), m);
}

void member_take(struct group_member *m) {
    struct group *g = m->group;
    sorted_take(&g->members, sorted_place(&g->members, compare_id, &m->id), 1);
    if (m->instance.len >= 0)
        sorted_take(&g->instances, sorted_place(&g->instances, compare_instance, &m->instance), 1);
}

enum group_outcome member_validate(const struct group *g, struct str id, struct str instance) {
    if (instance.len >= 0) {
        const struct group_member *holder = member_of_instance(g, instance);
        if (!holder)
            return GROUP_UNKNOWN_MEMBER;
        if (!str_equal(holder->id, id))
            return GROUP_FENCED_INSTANCE;
    }
    return member_find(g, id) ? GROUP_OK : GROUP_UNKNOWN_MEMBER;
}

struct str member_id_make(struct coordinator *c, struct str prefix, char *out) {
    uint8_t u[16];
    char text[GROUP_UUID_TEXT_BYTES + 2];
    c->settings.random(c->settings.ctx, u);
    u[6] = (uint8_t)((u[6] & 0x0f) | 0x40); /* version 4, variant 1 */
    u[8] = (uint8_t)((u[8] & 0x3f) | 0x80);
    snprintf(text, sizeof text, "-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
             u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
    if (prefix.len > 0)
        memcpy(out, prefix.ptr, (size_t)prefix.len);
    int32_t at = prefix.len > 0 ? prefix.len : 0;
    memcpy(out + at, text, GROUP_UUID_TEXT_BYTES + 1);
    return (struct str){out, at + GROUP_UUID_TEXT_BYTES + 1};
}

void session_restart(struct group_member *m, int64_t session_ms) {
    struct coordinator *c = m->group->c;
    deadline_set(&c->deadlines, &m->session, c->now_ms + session_ms);
}
