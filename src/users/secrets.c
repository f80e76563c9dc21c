#include "users/secrets.h"

#include <argon2.h>
#include <errno.h>
#include <openssl/sha.h>
#include <sys/random.h>

/* The second of the parameter sets that RFC 9106's authors and OWASP recommend; Iggy's own as well. */
#define ARGON2_PASSES     2
#define ARGON2_MEMORY_KIB 19456
#define ARGON2_LANES      1
#define SALT_BYTES        16
#define HASH_BYTES        32

/* With the parameters above, and of no password that anyone could find: what the login of an unknown user is checked against. */
static const char nobodys_hash[] =
    "$argon2id$v=19$m=19456,t=2,p=1$MTIzNDU2Nzg5MGFiY2RlZg$bm8gcGFzc3dvcmQgZXZlciBjb21lcyB0byB0aGlzLi4";

static enum status random_bytes(void *out, size_t len) {
    uint8_t *at = out;
    while (len > 0) {
        ssize_t got = getrandom(at, len, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return ST_IO;
        at += got;
        len -= (size_t)got;
    }
    return ST_OK;
}

enum status password_hash(struct str password, char out[PASSWORD_HASH_BYTES]) {
    uint8_t salt[SALT_BYTES];
    enum status st = random_bytes(salt, sizeof salt);
    if (st)
        return st;
    int err =
        argon2id_hash_encoded(ARGON2_PASSES, ARGON2_MEMORY_KIB, ARGON2_LANES, password.ptr,
                              (size_t)password.len, salt, sizeof salt, HASH_BYTES, out, PASSWORD_HASH_BYTES);
    return err == ARGON2_OK ? ST_OK : ST_NO_MEMORY;
}

bool password_matches(const char *hash, struct str password) {
    bool same = argon2id_verify(hash ? hash : nobodys_hash, password.ptr, (size_t)password.len) == ARGON2_OK;
    return hash && same;
}

enum status secret_make_up(char *out, size_t len) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    const unsigned count = sizeof letters - 1, fair = 256 / count * count;
    uint8_t bytes[64];
    enum status st = ST_OK;
    for (size_t at = 0; at < len && !st;) {
        st = random_bytes(bytes, sizeof bytes);
        for (size_t i = 0; i < sizeof bytes && at < len && !st; i++)
            if (bytes[i] < fair)
                out[at++] = letters[bytes[i] % count];
    }
    explicit_bzero(bytes, sizeof bytes);
    out[st ? 0 : len] = '\0';
    return st;
}

void token_hash(struct str token, uint8_t out[TOKEN_HASH_BYTES]) {
    SHA256((const uint8_t *)token.ptr, (size_t)token.len, out);
}
