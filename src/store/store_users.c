/* Users, tokens and groups: the catalog's, under its lock. */
#include "store/store_users.h"

#include "store/store_impl.h"

/* Run a call on the catalog, one at a time. */
#define WITH_CATALOG(s, call)                     \
    ({                                            \
        pthread_mutex_lock(&(s)->catalog_lock);   \
        enum status with_st = (call);             \
        pthread_mutex_unlock(&(s)->catalog_lock); \
        with_st;                                  \
    })

enum status store_each_user(struct store *s, enum status (*fn)(void *, const struct store_user *),
                            void *user) {
    return WITH_CATALOG(s, catalog_each_user(s->catalog, fn, user));
}

enum status store_each_token(struct store *s, enum status (*fn)(void *, const struct store_token *),
                             void *user) {
    return WITH_CATALOG(s, catalog_each_token(s->catalog, fn, user));
}

enum status store_each_group(struct store *s, enum status (*fn)(void *, const struct store_group *),
                             void *user) {
    return WITH_CATALOG(s, catalog_each_group(s->catalog, fn, user));
}

enum status store_each_group_settings(struct store *s,
                                      enum status (*fn)(void *, const struct store_group_settings *),
                                      void *user) {
    return WITH_CATALOG(s, catalog_each_group_settings(s->catalog, fn, user));
}

enum status store_user_add(struct store *s, const struct store_user *u, uint32_t *id_out) {
    return WITH_CATALOG(s, catalog_user_add(s->catalog, u, id_out));
}

enum status store_user_set(struct store *s, const struct store_user *u) {
    return WITH_CATALOG(s, catalog_user_set(s->catalog, u));
}

enum status store_user_remove(struct store *s, uint32_t id) {
    return WITH_CATALOG(s, catalog_user_remove(s->catalog, id));
}

enum status store_token_add(struct store *s, const struct store_token *t) {
    return WITH_CATALOG(s, catalog_token_add(s->catalog, t));
}

enum status store_token_remove(struct store *s, uint32_t user_id, struct str name) {
    return WITH_CATALOG(s, catalog_token_remove(s->catalog, user_id, name));
}

enum status store_group_add(struct store *s, uint32_t stream_id, uint32_t topic_id, struct str name,
                            uint32_t *group_id_out) {
    struct store_group g = {.stream_id = stream_id, .topic_id = topic_id, .name = name};
    return WITH_CATALOG(s, catalog_group_add(s->catalog, &g, group_id_out));
}

enum status store_group_remove(struct store *s, uint32_t stream_id, uint32_t topic_id, uint32_t group_id) {
    return WITH_CATALOG(s, catalog_group_remove(s->catalog, stream_id, topic_id, group_id));
}

enum status store_group_settings_set(struct store *s, const struct store_group_settings *g) {
    return WITH_CATALOG(s, catalog_group_settings_set(s->catalog, g));
}
