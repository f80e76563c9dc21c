#include "backend/iggy/fake_groups_test.h"

#include "iggy/errors.h"
#include "testing/test.h"

static struct str group_text(const struct fake_group *g) {
    return str_of(g->name);
}

static struct fake_group *group_find(struct fake_server *f, const struct fake_topic *t, struct str name) {
    for (int i = 0; t && i < f->groups_count; i++)
        if (f->groups[i].there && f->groups[i].topic == t->id && str_equal(group_text(&f->groups[i]), name))
            return &f->groups[i];
    return NULL;
}

static struct fake_group *group_make(struct fake_server *f, const struct fake_topic *t, struct str name) {
    CHECK(f->groups_count < FAKE_GROUPS_MAX);
    struct fake_group *g = &f->groups[f->groups_count++];
    *g = (struct fake_group){.there = true, .topic = t->id};
    memcpy(g->name, name.ptr, (size_t)name.len);
    return g;
}

/* ---- groups ---- */

void fake_on_create_group(struct fake_call *c) {
    const struct iggy_create_group_req *in = fake_decoded(c);
    struct fake_topic *t = fake_topic_of(c->f, in->stream.name, in->topic.name);
    if (!t || group_find(c->f, t, in->name)) {
        fake_answer(c, t ? IGGY_ERR_CONSUMER_GROUP_NAME_ALREADY_EXISTS : IGGY_ERR_TOPIC_ID_NOT_FOUND, NULL);
        return;
    }
    group_make(c->f, t, in->name);
    fake_answer(c, 0, &(struct iggy_group){.partitions_count = t->partitions_count, .name = in->name});
}

void fake_on_delete_group(struct fake_call *c) {
    const struct iggy_group_req *in = fake_decoded(c);
    struct fake_topic *t = fake_topic_of(c->f, in->stream.name, in->topic.name);
    struct fake_group *g = group_find(c->f, t, in->group.name);
    if (g)
        g->there = false;
    fake_answer(c, g ? 0 : IGGY_ERR_CONSUMER_GROUP_ID_NOT_FOUND, NULL);
}

void fake_on_get_group(struct fake_call *c) {
    const struct iggy_group_req *in = fake_decoded(c);
    struct fake_topic *t = fake_topic_of(c->f, in->stream.name, in->topic.name);
    const struct fake_group *g = group_find(c->f, t, in->group.name);
    struct iggy_get_group_res res = {.found = g != NULL, .group = {.name = in->group.name}};
    fake_answer(c, t ? 0 : IGGY_ERR_TOPIC_ID_NOT_FOUND, &res);
}

void fake_on_get_groups(struct fake_call *c) {
    const struct iggy_topic_req *in = fake_decoded(c);
    struct fake_topic *t = fake_topic_of(c->f, in->stream.name, in->topic.name);
    struct iggy_group groups[FAKE_GROUPS_MAX];
    struct iggy_get_groups_res res = {.groups = groups};
    for (int i = 0; t && i < c->f->groups_count; i++)
        if (c->f->groups[i].there && c->f->groups[i].topic == t->id)
            groups[res.groups_count++] = (struct iggy_group){.name = group_text(&c->f->groups[i])};
    fake_answer(c, t ? 0 : IGGY_ERR_TOPIC_ID_NOT_FOUND, &res);
}

/* ---- offsets ---- */

static struct fake_offset *offset_find(struct fake_group *g, uint32_t partition) {
    for (int i = 0; g && i < g->offsets_count; i++)
        if (g->offsets[i].partition == partition)
            return &g->offsets[i];
    return NULL;
}

/* The group that a change is about. NULL: it has been refused. */
static struct fake_group *change_group(struct fake_call *c, const struct iggy_consumer *consumer,
                                       struct str stream, struct str topic, uint32_t partition) {
    struct fake_server *f = c->f;
    struct fake_topic *t = fake_topic_of(f, stream, topic);
    CHECK_EQ(consumer->kind, IGGY_EXTERNAL_GROUP);
    struct fake_group *g = group_find(f, t, consumer->id.name);
    uint32_t code = f->no_external                                  ? IGGY_ERR_INVALID_COMMAND
                    : !t || partition >= t->partitions_count        ? IGGY_ERR_RESOURCE_NOT_FOUND
                    : c->h->partition_incarnation != t->incarnation ? IGGY_ERR_HISTORY_UNAVAILABLE
                    : !g                                            ? IGGY_ERR_CONSUMER_GROUP_NAME_NOT_FOUND
                                                                    : 0;
    if (code)
        fake_answer(c, code, NULL);
    return code ? NULL : g;
}

void fake_on_store_offset(struct fake_call *c) {
    const struct iggy_store_consumer_offset_req *in = fake_decoded(c);
    CHECK_EQ(in->ack, IGGY_ACK_QUORUM);
    struct fake_group *g = change_group(c, &in->consumer, in->stream.name, in->topic.name, in->partition.id);
    if (!g)
        return;
    struct fake_offset *o = offset_find(g, in->partition.id);
    if (!o) {
        CHECK(g->offsets_count < FAKE_OFFSETS_MAX);
        o = &g->offsets[g->offsets_count++];
    }
    *o = (struct fake_offset){in->partition.id, in->offset};
    fake_answer(c, 0, NULL);
}

void fake_on_delete_offset(struct fake_call *c) {
    const struct iggy_delete_consumer_offset_req *in = fake_decoded(c);
    struct fake_group *g = change_group(c, &in->consumer, in->stream.name, in->topic.name, in->partition.id);
    if (!g)
        return;
    struct fake_offset *o = offset_find(g, in->partition.id);
    if (o)
        *o = g->offsets[--g->offsets_count];
    fake_answer(c, o ? 0 : IGGY_ERR_CONSUMER_OFFSET_NOT_FOUND, NULL);
}

void fake_on_get_offset(struct fake_call *c) {
    const struct iggy_get_consumer_offset_req *in = fake_decoded(c);
    struct fake_server *f = c->f;
    struct fake_topic *t = fake_topic_of(f, in->stream.name, in->topic.name);
    CHECK_EQ(in->consumer.kind, IGGY_EXTERNAL_GROUP);
    const struct fake_offset *o = offset_find(group_find(f, t, in->consumer.id.name), in->partition.id);
    uint32_t code = f->no_external                                  ? IGGY_ERR_INVALID_COMMAND
                    : !t                                            ? IGGY_ERR_TOPIC_ID_NOT_FOUND
                    : c->h->partition_incarnation != t->incarnation ? IGGY_ERR_HISTORY_UNAVAILABLE
                                                                    : 0;
    struct iggy_get_consumer_offset_res res = {.found = o != NULL, .partition_id = in->partition.id};
    if (o)
        res.stored_offset = o->offset;
    fake_answer(c, code, &res);
}

/* ---- for the test ---- */

bool fake_offset(struct fake_server *f, const char *topic, const char *group, uint32_t partition,
                 uint64_t *out) {
    fake_lock(f);
    const struct fake_offset *o =
        offset_find(group_find(f, fake_topic_named(f, topic), str_of(group)), partition);
    if (o)
        *out = o->offset;
    fake_unlock(f);
    return o != NULL;
}

void fake_add_group(struct fake_server *f, const char *topic, const char *group) {
    fake_lock(f);
    group_make(f, fake_topic_named(f, topic), str_of(group));
    fake_unlock(f);
}

bool fake_has_group(struct fake_server *f, const char *topic, const char *group) {
    fake_lock(f);
    bool has = group_find(f, fake_topic_named(f, topic), str_of(group)) != NULL;
    fake_unlock(f);
    return has;
}

void fake_without_external(struct fake_server *f, bool without) {
    fake_lock(f);
    f->no_external = without;
    fake_unlock(f);
}
