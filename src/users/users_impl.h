/* What the files of users/ share: the rows in memory. */
#ifndef USERS_USERS_IMPL_H
#define USERS_USERS_IMPL_H

#include <pthread.h>

#include "base/sorted.h"
#include "store/store_users.h"
#include "users/permissions.h"
#include "users/secrets.h"
#include "users/users.h"

/* Nothing of a row changes: a changed user is another row. */
struct user {
    uint32_t id;
    bool active;
    int64_t created_us;
    char *name, *hash;               /* owned */
    struct permissions *permissions; /* owned; NULL: none */
};
struct token {
    uint32_t user_id;
    char *name; /* owned */
    uint8_t hash[TOKEN_HASH_BYTES];
    int64_t expires_us; /* wall clock; INT64_MAX: never */
};

/*
 * Rows are read under `lock` and changed under both: `changes` is held over the store's disk and never taken on a loop, `lock` only while
 * pointers are exchanged. Who holds `changes` may read without `lock`.
 */
struct users {
    struct store *store; /* borrowed */
    pthread_mutex_t changes;
    pthread_rwlock_t lock;
    struct sorted by_id, by_name; /* struct user; the rows are owned */
    struct sorted tokens_by_name,
        tokens_by_hash;      /* struct token; the rows are owned; by_name: by user and name */
    int64_t (*now_us)(void); /* wall clock; another one in tests */
};

/* A key of by_name and, with the user, of tokens_by_name. */
struct token_key {
    uint32_t user_id;
    struct str name;
};

sorted_compare_fn user_by_id, user_by_name, token_by_name, token_by_hash;

/* With a lock held: a row by id or by name; NULL: none. */
struct user *user_find(const struct users *u, const struct iggy_identifier *id);
/* With a lock held: where a user's tokens are in tokens_by_name; gives how many. */
size_t user_tokens(const struct users *u, uint32_t user_id, size_t *first_out);

/* A row from the store's, copied. ST_CORRUPT: permissions that can't be read; ST_NO_MEMORY. */
enum status user_new(const struct store_user *from, struct user **out) MUST_USE;
void user_free(struct user *row); /* takes NULL */
enum status token_new(const struct store_token *from, struct token **out) MUST_USE;
void token_free(struct token *row); /* takes NULL */

/* Make room for one more, then put the row in, under `lock`; what takes a row out gives it to the caller. */
enum status users_reserve(struct users *u) MUST_USE;
void users_put(struct users *u, struct user *row);
void users_take(struct users *u, const struct user *row);
enum status tokens_reserve(struct users *u) MUST_USE;
void tokens_put(struct users *u, struct token *row);
void tokens_take(struct users *u, const struct token *row);

/* Whether a text may be a user's name, or a password. */
bool username_is_good(struct str name);
bool password_is_good(struct str password);
#endif
