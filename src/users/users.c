/* The rows in memory: loading, looking up, logging in. Changes: changes.c. */
#include "users/users_impl.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "iggy/errors.h"

/* ---- rows and their order ---- */

static int number_order(uint32_t a, uint32_t b) {
    return (a > b) - (a < b);
}

int user_by_id(const void *key, const void *row) {
    return number_order(*(const uint32_t *)key, ((const struct user *)row)->id);
}

int user_by_name(const void *key, const void *row) {
    return str_compare(*(const struct str *)key, str_of(((const struct user *)row)->name));
}

int token_by_name(const void *key, const void *row) {
    const struct token_key *k = key;
    const struct token *t = row;
    int order = number_order(k->user_id, t->user_id);
    return order != 0 ? order : str_compare(k->name, str_of(t->name));
}

int token_by_hash(const void *key, const void *row) {
    return memcmp(key, ((const struct token *)row)->hash, TOKEN_HASH_BYTES);
}

enum status user_new(const struct store_user *from, struct user **out) {
    enum status st = ST_NO_MEMORY;
    struct user *row = mem_take_zeroed(1, sizeof *row);
    if (!row)
        return st;
    row->id = from->id;
    row->active = from->active;
    row->created_us = from->created_us;
    row->name = mem_text(from->name);
    row->hash = mem_text(from->password_hash);
    if (!row->name || !row->hash)
        goto fail;
    st = from->permissions.len < 0 ? ST_OK : permissions_load(from->permissions, &row->permissions);
    if (st)
        goto fail;
    *out = row;
    return ST_OK;
fail:
    user_free(row);
    return st;
}

void user_free(struct user *row) {
    if (!row)
        return;
    if (row->hash)
        explicit_bzero(row->hash, strlen(row->hash));
    mem_free(row->hash);
    mem_free(row->name);
    permissions_free(row->permissions);
    mem_free(row);
}

enum status token_new(const struct store_token *from, struct token **out) {
    if (from->hash.len != TOKEN_HASH_BYTES)
        return ST_CORRUPT;
    struct token *row = mem_take_zeroed(1, sizeof *row);
    char *name = mem_text(from->name);
    if (!row || !name) {
        mem_free(row);
        mem_free(name);
        return ST_NO_MEMORY;
    }
    *row = (struct token){.user_id = from->user_id, .name = name, .expires_us = from->expires_us};
    memcpy(row->hash, from->hash.ptr, sizeof row->hash);
    *out = row;
    return ST_OK;
}

void token_free(struct token *row) {
    if (!row)
        return;
    mem_free(row->name);
    mem_free(row);
}

enum status users_reserve(struct users *u) {
    enum status st = sorted_reserve(&u->by_id, 1);
    return st ? st : sorted_reserve(&u->by_name, 1);
}

void users_put(struct users *u, struct user *row) {
    struct str name = str_of(row->name);
    sorted_put(&u->by_id, sorted_place(&u->by_id, user_by_id, &row->id), row);
    sorted_put(&u->by_name, sorted_place(&u->by_name, user_by_name, &name), row);
}

void users_take(struct users *u, const struct user *row) {
    struct str name = str_of(row->name);
    sorted_take(&u->by_id, sorted_place(&u->by_id, user_by_id, &row->id), 1);
    sorted_take(&u->by_name, sorted_place(&u->by_name, user_by_name, &name), 1);
}

enum status tokens_reserve(struct users *u) {
    enum status st = sorted_reserve(&u->tokens_by_name, 1);
    return st ? st : sorted_reserve(&u->tokens_by_hash, 1);
}

void tokens_put(struct users *u, struct token *row) {
    struct token_key key = {row->user_id, str_of(row->name)};
    sorted_put(&u->tokens_by_name, sorted_place(&u->tokens_by_name, token_by_name, &key), row);
    sorted_put(&u->tokens_by_hash, sorted_place(&u->tokens_by_hash, token_by_hash, row->hash), row);
}

void tokens_take(struct users *u, const struct token *row) {
    struct token_key key = {row->user_id, str_of(row->name)};
    sorted_take(&u->tokens_by_name, sorted_place(&u->tokens_by_name, token_by_name, &key), 1);
    sorted_take(&u->tokens_by_hash, sorted_place(&u->tokens_by_hash, token_by_hash, row->hash), 1);
}

struct user *user_find(const struct users *u, const struct iggy_identifier *id) {
    return id->kind == IGGY_BY_ID ? sorted_find(&u->by_id, user_by_id, &id->id)
                                  : sorted_find(&u->by_name, user_by_name, &id->name);
}

size_t user_tokens(const struct users *u, uint32_t user_id, size_t *first_out) {
    struct token_key from = {user_id, STR("")}, next = {user_id + 1, STR("")};
    *first_out = sorted_place(&u->tokens_by_name, token_by_name, &from);
    size_t end = user_id == UINT32_MAX ? u->tokens_by_name.count
                                       : sorted_place(&u->tokens_by_name, token_by_name, &next);
    return end - *first_out;
}

/* ---- what is allowed as a name or password ---- */

bool username_is_good(struct str name) {
    return name.len >= IGGY_USERNAME_BYTES_MIN && name.len <= IGGY_USERNAME_BYTES_MAX &&
           utf8_is_valid(name.ptr, (size_t)name.len) && !memchr(name.ptr, '\0', (size_t)name.len);
}

bool password_is_good(struct str password) {
    return password.len >= IGGY_PASSWORD_BYTES_MIN && password.len <= IGGY_PASSWORD_BYTES_MAX;
}

/* ---- opening ---- */

static enum status load_user(void *users, const struct store_user *from) {
    struct users *u = users;
    struct user *row;
    struct iggy_identifier by_name = iggy_by_name(from->name);
    if (user_find(u, &by_name) || sorted_find(&u->by_id, user_by_id, &from->id))
        return ST_CORRUPT;
    enum status st = users_reserve(u);
    if (!st)
        st = user_new(from, &row);
    if (!st)
        users_put(u, row);
    return st;
}

static enum status load_token(void *users, const struct store_token *from) {
    struct users *u = users;
    struct token *row;
    struct token_key key = {from->user_id, from->name};
    if (from->hash.len != TOKEN_HASH_BYTES || sorted_find(&u->tokens_by_name, token_by_name, &key) ||
        sorted_find(&u->tokens_by_hash, token_by_hash, from->hash.ptr))
        return ST_CORRUPT;
    enum status st = tokens_reserve(u);
    if (!st)
        st = token_new(from, &row);
    if (!st)
        tokens_put(u, row);
    return st;
}

/* The first user, who may do everything. */
static enum status create_root(struct users *u, struct str name, struct str password) {
    char hash[PASSWORD_HASH_BYTES];
    struct user *row = NULL;
    if (!username_is_good(name) || !password_is_good(password))
        return ST_INVALID;
    enum status st = password_hash(password, hash);
    if (st)
        return st;
    struct store_user root = {.id = USERS_ROOT_ID,
                              .created_us = u->now_us(),
                              .active = true,
                              .name = name,
                              .password_hash = str_of(hash),
                              .permissions = BYTES_NULL};
    st = users_reserve(u);
    if (!st)
        st = user_new(&root, &row);
    if (!st)
        st = store_user_add(u->store, &root, &row->id);
    explicit_bzero(hash, sizeof hash);
    if (!st && row->id != USERS_ROOT_ID)
        st = ST_CORRUPT;
    if (st)
        user_free(row);
    else
        users_put(u, row);
    return st;
}

/* Changes are rare and must not wait until there is a moment without a reader. */
static void lock_init(pthread_rwlock_t *lock) {
    pthread_rwlockattr_t kind;
    pthread_rwlockattr_init(&kind);
#ifdef __GLIBC__
    pthread_rwlockattr_setkind_np(&kind, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
#endif
    pthread_rwlock_init(lock, &kind);
    pthread_rwlockattr_destroy(&kind);
}

enum status users_open(struct store *store, const char *root_name, const char *root_password,
                       struct users **out, char generated_out[USERS_PASSWORD_BYTES]) {
    struct users *u = mem_take_zeroed(1, sizeof *u);
    uint32_t root = USERS_ROOT_ID;
    if (!u)
        return ST_NO_MEMORY;
    u->store = store;
    u->now_us = clock_wall_us;
    pthread_mutex_init(&u->changes, NULL);
    lock_init(&u->lock);
    generated_out[0] = '\0';
    enum status st = store_each_user(store, load_user, u);
    if (!st)
        st = store_each_token(store, load_token, u);
    if (!st && u->by_id.count == 0 && !root_password)
        st = secret_make_up(generated_out, USERS_PASSWORD_BYTES - 1);
    if (!st && u->by_id.count == 0)
        st = create_root(u, str_of(root_name), str_of(root_password ? root_password : generated_out));
    if (!st && !sorted_find(&u->by_id, user_by_id, &root))
        st = ST_CORRUPT;
    if (st)
        goto fail;
    *out = u;
    return ST_OK;
fail:
    explicit_bzero(generated_out, USERS_PASSWORD_BYTES);
    users_close(u);
    return st;
}

void users_close(struct users *u) {
    if (!u)
        return;
    for (size_t i = 0; i < u->by_id.count; i++)
        user_free(u->by_id.rows[i]);
    for (size_t i = 0; i < u->tokens_by_name.count; i++)
        token_free(u->tokens_by_name.rows[i]);
    sorted_release(&u->by_id);
    sorted_release(&u->by_name);
    sorted_release(&u->tokens_by_name);
    sorted_release(&u->tokens_by_hash);
    pthread_rwlock_destroy(&u->lock);
    pthread_mutex_destroy(&u->changes);
    mem_free(u);
}

/* ---- logging in ---- */

uint32_t users_login(struct users *u, struct str name, struct str password, uint32_t *user_id_out) {
    char hash[PASSWORD_HASH_BYTES];
    uint32_t id = 0;
    struct iggy_identifier by_name = iggy_by_name(name);
    pthread_rwlock_rdlock(&u->lock);
    const struct user *row = user_find(u, &by_name);
    bool known = row && row->active && strlen(row->hash) < sizeof hash;
    if (known) {
        memcpy(hash, row->hash, strlen(row->hash) + 1);
        id = row->id;
    }
    pthread_rwlock_unlock(&u->lock);
    bool good = password_matches(known ? hash : NULL, password);
    explicit_bzero(hash, sizeof hash);
    if (!good)
        return IGGY_ERR_INVALID_CREDENTIALS;
    *user_id_out = id;
    return 0;
}

uint32_t users_login_token(struct users *u, struct str token, uint32_t *user_id_out) {
    uint8_t hash[TOKEN_HASH_BYTES];
    uint32_t code = 0;
    token_hash(token, hash);
    pthread_rwlock_rdlock(&u->lock);
    const struct token *t = sorted_find(&u->tokens_by_hash, token_by_hash, hash);
    const struct user *row = t ? sorted_find(&u->by_id, user_by_id, &t->user_id) : NULL;
    if (!row)
        code = IGGY_ERR_INVALID_PERSONAL_ACCESS_TOKEN;
    else if (t->expires_us <= u->now_us())
        code = IGGY_ERR_PERSONAL_ACCESS_TOKEN_EXPIRED;
    else if (!row->active)
        code = IGGY_ERR_USER_INACTIVE;
    else
        *user_id_out = row->id;
    pthread_rwlock_unlock(&u->lock);
    explicit_bzero(hash, sizeof hash);
    return code;
}

/* ---- looking up ---- */

bool users_may(struct users *u, uint32_t user_id, enum user_action action, uint32_t stream_id,
               uint32_t topic_id) {
    if (user_id == USERS_ROOT_ID)
        return true;
    pthread_rwlock_rdlock(&u->lock);
    const struct user *row = sorted_find(&u->by_id, user_by_id, &user_id);
    bool may = row && row->active && permissions_allow(row->permissions, action, stream_id, topic_id);
    pthread_rwlock_unlock(&u->lock);
    return may;
}

bool users_is_active(struct users *u, uint32_t user_id) {
    pthread_rwlock_rdlock(&u->lock);
    const struct user *row = sorted_find(&u->by_id, user_by_id, &user_id);
    bool active = row && row->active;
    pthread_rwlock_unlock(&u->lock);
    return active;
}

static enum status user_show(const struct user *row, struct arena *a, struct iggy_user *out) {
    *out = (struct iggy_user){
        .id = row->id,
        .created_at_us = (uint64_t)row->created_us,
        .status = row->active ? IGGY_USER_ACTIVE : IGGY_USER_INACTIVE,
        .username = arena_text(a, str_of(row->name)),
    };
    return out->username.ptr ? ST_OK : ST_NO_MEMORY;
}

enum status users_find(struct users *u, const struct iggy_identifier *id, struct arena *a,
                       struct iggy_user_details *out) {
    struct iggy_user_details found = {.has_permissions = false};
    enum status st = ST_NOT_FOUND;
    pthread_rwlock_rdlock(&u->lock);
    const struct user *row = user_find(u, id);
    if (row)
        st = user_show(row, a, &found.user);
    if (!st && row->permissions) {
        found.has_permissions = true;
        st = permissions_show(row->permissions, a, &found.permissions);
    }
    pthread_rwlock_unlock(&u->lock);
    if (!st)
        *out = found;
    return st;
}

enum status users_list(struct users *u, struct arena *a, struct iggy_get_users_res *out) {
    enum status st = ST_OK;
    pthread_rwlock_rdlock(&u->lock);
    size_t count = u->by_id.count;
    struct iggy_user *rows = arena_take_array(a, struct iggy_user, count);
    if (!rows)
        st = ST_NO_MEMORY;
    for (size_t i = 0; i < count && !st; i++)
        st = user_show(u->by_id.rows[i], a, &rows[i]);
    pthread_rwlock_unlock(&u->lock);
    if (!st)
        *out = (struct iggy_get_users_res){.users = rows, .users_count = (uint32_t)count};
    return st;
}

enum status users_tokens(struct users *u, uint32_t user_id, struct arena *a,
                         struct iggy_get_tokens_res *out) {
    enum status st = ST_OK;
    size_t first;
    pthread_rwlock_rdlock(&u->lock);
    size_t count = user_tokens(u, user_id, &first);
    struct iggy_token *rows = arena_take_array(a, struct iggy_token, count);
    if (!rows)
        st = ST_NO_MEMORY;
    for (size_t i = 0; i < count && !st; i++) {
        const struct token *t = u->tokens_by_name.rows[first + i];
        rows[i].name = arena_text(a, str_of(t->name));
        rows[i].expiry_at_us = t->expires_us == INT64_MAX ? 0 : (uint64_t)t->expires_us;
        if (!rows[i].name.ptr)
            st = ST_NO_MEMORY;
    }
    pthread_rwlock_unlock(&u->lock);
    if (!st)
        *out = (struct iggy_get_tokens_res){.tokens = rows, .tokens_count = (uint32_t)count};
    return st;
}
