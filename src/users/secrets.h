/* Passwords and tokens: how they are made up, and what is kept of them. Nothing of these is ever logged. Any thread. */
#ifndef USERS_SECRETS_H
#define USERS_SECRETS_H

#include "base/base.h"

#define PASSWORD_HASH_BYTES 128 /* of the encoded text, terminated */
#define TOKEN_HASH_BYTES    32

/*
 * Argon2id as text, with its parameters and a new salt in it. Takes tens of milliseconds and 19 MiB.
 * ST_NO_MEMORY; ST_IO: no random numbers.
 */
enum status password_hash(struct str password, char out[PASSWORD_HASH_BYTES]) MUST_USE;

/* Whether hash is password's; hash NULL: nobody's, which takes as long as another. */
bool password_matches(const char *hash, struct str password);

/* len letters and digits, each value as likely as another, and a terminator. ST_IO: no random numbers. */
enum status secret_make_up(char *out, size_t len) MUST_USE;

/* A token is long and random, so its SHA-256 is enough. */
void token_hash(struct str token, uint8_t out[TOKEN_HASH_BYTES]);
#endif
