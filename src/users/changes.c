/* Changes: checked, made durable by the store, then exchanged in memory. One at a time, under `changes`; the costly hashing comes before. */
#include "base/mem.h"
#include "iggy/errors.h"
#include "users/users_impl.h"

/* What a status of the store is, where the caller has no code of its own for it. */
static uint32_t code_of(enum status st) {
    switch (st) {
    case ST_OK:
        return 0;
    case ST_NO_MEMORY:
        return IGGY_ERR_TRANSIENT_NOT_ACCEPTED;
    case ST_TOO_BIG:
        return IGGY_ERR_INVALID_COMMAND;
    case ST_NOT_FOUND:
        return IGGY_ERR_RESOURCE_NOT_FOUND;
    default:
        return IGGY_ERR_IO_ERROR;
    }
}

/* A row as the store has it, borrowed. */
static struct store_user store_row(const struct user *row) {
    return (struct store_user){.id = row->id,
                               .created_us = row->created_us,
                               .active = row->active,
                               .name = str_of(row->name),
                               .password_hash = str_of(row->hash),
                               .permissions = row->permissions ? row->permissions->wire : BYTES_NULL};
}

/* ---- users ---- */

/* Under `changes`. The row in memory is made before the store is written, so that nothing can fail after it. */
static uint32_t user_add(struct users *u, const struct store_user *want, uint32_t *user_id_out) {
    struct user *row = NULL;
    struct iggy_identifier by_name = iggy_by_name(want->name);
    if (user_find(u, &by_name))
        return IGGY_ERR_USER_ALREADY_EXISTS;
    if (u->by_id.count >= USERS_MAX)
        return IGGY_ERR_USERS_LIMIT_REACHED;
    enum status st = user_new(want, &row);
    if (st)
        return code_of(st);
    pthread_rwlock_wrlock(&u->lock);
    st = users_reserve(u);
    pthread_rwlock_unlock(&u->lock);
    if (!st)
        st = store_user_add(u->store, want, &row->id);
    if (st) {
        user_free(row);
        return st == ST_EXISTS ? IGGY_ERR_USER_ALREADY_EXISTS : code_of(st);
    }
    *user_id_out = row->id;
    pthread_rwlock_wrlock(&u->lock);
    users_put(u, row);
    pthread_rwlock_unlock(&u->lock);
    return 0;
}

uint32_t users_create(struct users *u, const struct iggy_create_user_req *in, uint32_t *user_id_out) {
    char hash[PASSWORD_HASH_BYTES];
    struct permissions *permissions = NULL;
    enum status st = ST_OK;
    if (!username_is_good(in->username))
        return IGGY_ERR_INVALID_USERNAME;
    if (!password_is_good(in->password))
        return IGGY_ERR_INVALID_PASSWORD;
    if (in->status != IGGY_USER_ACTIVE && in->status != IGGY_USER_INACTIVE)
        return IGGY_ERR_INVALID_USER_STATUS;
    if (in->has_permissions)
        st = permissions_new(&in->permissions, &permissions);
    if (!st)
        st = password_hash(in->password, hash);
    uint32_t code = code_of(st);
    if (!st) {
        struct store_user want = {.created_us = u->now_us(),
                                  .active = in->status == IGGY_USER_ACTIVE,
                                  .name = in->username,
                                  .password_hash = str_of(hash),
                                  .permissions = permissions ? permissions->wire : BYTES_NULL};
        pthread_mutex_lock(&u->changes);
        code = user_add(u, &want, user_id_out);
        pthread_mutex_unlock(&u->changes);
    }
    explicit_bzero(hash, sizeof hash);
    permissions_free(permissions);
    return code;
}

/* Under `changes`: `changed` takes the place of old, on disk and in memory; old is freed. */
static uint32_t user_replace(struct users *u, struct user *old, const struct store_user *changed) {
    struct user *row;
    enum status st = user_new(changed, &row);
    if (st)
        return code_of(st);
    st = store_user_set(u->store, changed);
    if (st) {
        user_free(row);
        return st == ST_EXISTS ? IGGY_ERR_USER_ALREADY_EXISTS : code_of(st);
    }
    pthread_rwlock_wrlock(&u->lock);
    users_take(u, old);
    users_put(u, row);
    pthread_rwlock_unlock(&u->lock);
    user_free(old);
    return 0;
}

/* Under `changes`. */
static uint32_t user_update(struct users *u, const struct iggy_identifier *id, struct str name,
                            uint8_t status) {
    struct iggy_identifier by_name = iggy_by_name(name);
    struct user *old = user_find(u, id);
    if (!old)
        return IGGY_ERR_RESOURCE_NOT_FOUND;
    struct store_user changed = store_row(old);
    if (old->id == USERS_ROOT_ID && status == IGGY_USER_INACTIVE)
        return IGGY_ERR_CANNOT_MODIFY_ROOT_USER;
    if (name.len >= 0) {
        const struct user *other = user_find(u, &by_name);
        if (other && other != old)
            return IGGY_ERR_USER_ALREADY_EXISTS;
        changed.name = name;
    }
    if (status != 0)
        changed.active = status == IGGY_USER_ACTIVE;
    return user_replace(u, old, &changed);
}

uint32_t users_update(struct users *u, const struct iggy_identifier *id, struct str name, uint8_t status) {
    if (name.len >= 0 && !username_is_good(name))
        return IGGY_ERR_INVALID_USERNAME;
    if (status != 0 && status != IGGY_USER_ACTIVE && status != IGGY_USER_INACTIVE)
        return IGGY_ERR_INVALID_USER_STATUS;
    pthread_mutex_lock(&u->changes);
    uint32_t code = user_update(u, id, name, status);
    pthread_mutex_unlock(&u->changes);
    return code;
}

uint32_t users_set_permissions(struct users *u, const struct iggy_identifier *id,
                               const struct iggy_permissions *p) {
    struct permissions *permissions = NULL;
    enum status st = p ? permissions_new(p, &permissions) : ST_OK;
    if (st)
        return code_of(st);
    pthread_mutex_lock(&u->changes);
    struct user *old = user_find(u, id);
    uint32_t code = !old                       ? IGGY_ERR_RESOURCE_NOT_FOUND
                    : old->id == USERS_ROOT_ID ? IGGY_ERR_CANNOT_CHANGE_PERMISSIONS
                                               : 0;
    if (!code) {
        struct store_user changed = store_row(old);
        changed.permissions = permissions ? permissions->wire : BYTES_NULL;
        code = user_replace(u, old, &changed);
    }
    pthread_mutex_unlock(&u->changes);
    permissions_free(permissions);
    return code;
}

/* Under both locks: a user's tokens out of memory; the store forgets them with the user. */
static void tokens_forget(struct users *u, uint32_t user_id) {
    size_t first;
    for (size_t left = user_tokens(u, user_id, &first); left > 0; left--) {
        struct token *t = u->tokens_by_name.rows[first];
        tokens_take(u, t);
        token_free(t);
    }
}

uint32_t users_delete(struct users *u, const struct iggy_identifier *id) {
    pthread_mutex_lock(&u->changes);
    struct user *row = user_find(u, id);
    uint32_t code = !row                       ? IGGY_ERR_RESOURCE_NOT_FOUND
                    : row->id == USERS_ROOT_ID ? IGGY_ERR_CANNOT_DELETE_USER
                                               : code_of(store_user_remove(u->store, row->id));
    if (!code) {
        pthread_rwlock_wrlock(&u->lock);
        users_take(u, row);
        tokens_forget(u, row->id);
        pthread_rwlock_unlock(&u->lock);
        user_free(row);
    }
    pthread_mutex_unlock(&u->changes);
    return code;
}

/* The hash is of the password as it was checked: when another change came between, that one counts. */
static uint32_t password_replace(struct users *u, uint32_t user_id, const char *checked, const char *hash) {
    pthread_mutex_lock(&u->changes);
    struct user *old = sorted_find(&u->by_id, user_by_id, &user_id);
    uint32_t code = !old                              ? IGGY_ERR_RESOURCE_NOT_FOUND
                    : strcmp(old->hash, checked) != 0 ? IGGY_ERR_INVALID_CREDENTIALS
                                                      : 0;
    if (!code) {
        struct store_user changed = store_row(old);
        changed.password_hash = str_of(hash);
        code = user_replace(u, old, &changed);
    }
    pthread_mutex_unlock(&u->changes);
    return code;
}

uint32_t users_change_password(struct users *u, const struct iggy_identifier *id, struct str current,
                               struct str changed) {
    char checked[PASSWORD_HASH_BYTES] = "", hash[PASSWORD_HASH_BYTES] = "";
    uint32_t user_id = 0, code = 0;
    if (!password_is_good(changed))
        return IGGY_ERR_INVALID_PASSWORD;
    pthread_rwlock_rdlock(&u->lock);
    const struct user *row = user_find(u, id);
    if (!row || strlen(row->hash) >= sizeof checked) {
        code = IGGY_ERR_RESOURCE_NOT_FOUND;
    } else {
        memcpy(checked, row->hash, strlen(row->hash) + 1);
        user_id = row->id;
    }
    pthread_rwlock_unlock(&u->lock);
    if (!code && !password_matches(checked, current))
        code = IGGY_ERR_INVALID_CREDENTIALS;
    if (!code)
        code = code_of(password_hash(changed, hash));
    if (!code)
        code = password_replace(u, user_id, checked, hash);
    explicit_bzero(checked, sizeof checked);
    explicit_bzero(hash, sizeof hash);
    return code;
}

/* ---- tokens ---- */

/* Under `changes`. */
static uint32_t token_remove(struct users *u, struct token *row) {
    enum status st = store_token_remove(u->store, row->user_id, str_of(row->name));
    if (st)
        return code_of(st);
    pthread_rwlock_wrlock(&u->lock);
    tokens_take(u, row);
    pthread_rwlock_unlock(&u->lock);
    token_free(row);
    return 0;
}

/* Under `changes`: tokens that have expired make room, for the limit and for their names. */
static uint32_t tokens_expire(struct users *u, uint32_t user_id, int64_t now_us) {
    size_t first, i = 0;
    uint32_t code = 0;
    for (size_t left = user_tokens(u, user_id, &first); left > 0 && !code; left--) {
        struct token *row = u->tokens_by_name.rows[first + i];
        if (row->expires_us <= now_us)
            code = token_remove(u, row);
        else
            i++;
    }
    return code;
}

/* Under `changes`. */
static uint32_t token_add(struct users *u, const struct store_token *want, int64_t now_us) {
    struct token *row = NULL;
    struct token_key key = {want->user_id, want->name};
    size_t first;
    if (!sorted_find(&u->by_id, user_by_id, &want->user_id))
        return IGGY_ERR_RESOURCE_NOT_FOUND;
    uint32_t code = tokens_expire(u, want->user_id, now_us);
    if (code)
        return code;
    if (sorted_find(&u->tokens_by_name, token_by_name, &key))
        return IGGY_ERR_PERSONAL_ACCESS_TOKEN_ALREADY_EXISTS;
    if (user_tokens(u, want->user_id, &first) >= USERS_TOKENS_MAX)
        return IGGY_ERR_PERSONAL_ACCESS_TOKENS_LIMIT_REACHED;
    enum status st = token_new(want, &row);
    if (st)
        return code_of(st);
    pthread_rwlock_wrlock(&u->lock);
    st = tokens_reserve(u);
    pthread_rwlock_unlock(&u->lock);
    if (!st)
        st = store_token_add(u->store, want);
    if (st) {
        token_free(row);
        return st == ST_EXISTS ? IGGY_ERR_PERSONAL_ACCESS_TOKEN_ALREADY_EXISTS : code_of(st);
    }
    pthread_rwlock_wrlock(&u->lock);
    tokens_put(u, row);
    pthread_rwlock_unlock(&u->lock);
    return 0;
}

static bool token_name_is_good(struct str name) {
    return name.len >= IGGY_TOKEN_NAME_BYTES_MIN && name.len <= IGGY_TOKEN_NAME_BYTES_MAX &&
           !memchr(name.ptr, '\0', (size_t)name.len);
}

uint32_t users_create_token(struct users *u, uint32_t user_id, struct str name, uint64_t expiry_us,
                            char raw_out[USERS_TOKEN_BYTES]) {
    uint8_t hash[TOKEN_HASH_BYTES];
    int64_t now_us = u->now_us(), expires_us = INT64_MAX;
    if (!token_name_is_good(name))
        return IGGY_ERR_INVALID_PERSONAL_ACCESS_TOKEN_NAME;
    if (expiry_us != 0 && expiry_us != IGGY_NEVER &&
        (__builtin_add_overflow(now_us, expiry_us, &expires_us) || expires_us == INT64_MAX))
        return IGGY_ERR_INVALID_PERSONAL_ACCESS_TOKEN_EXPIRY;
    enum status st = secret_make_up(raw_out, USERS_TOKEN_BYTES - 1);
    if (st)
        return code_of(st);
    token_hash((struct str){raw_out, USERS_TOKEN_BYTES - 1}, hash);
    struct store_token want = {
        .user_id = user_id, .name = name, .hash = {hash, sizeof hash}, .expires_us = expires_us};
    pthread_mutex_lock(&u->changes);
    uint32_t code = token_add(u, &want, now_us);
    pthread_mutex_unlock(&u->changes);
    if (code)
        explicit_bzero(raw_out, USERS_TOKEN_BYTES);
    explicit_bzero(hash, sizeof hash);
    return code;
}

uint32_t users_delete_token(struct users *u, uint32_t user_id, struct str name) {
    struct token_key key = {user_id, name};
    pthread_mutex_lock(&u->changes);
    struct token *row = sorted_find(&u->tokens_by_name, token_by_name, &key);
    uint32_t code = row ? token_remove(u, row) : IGGY_ERR_RESOURCE_NOT_FOUND;
    pthread_mutex_unlock(&u->changes);
    return code;
}
