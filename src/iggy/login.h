/* What a Register asks for: its two shapes share an operation, and its layout depends on the version in its first bytes. */
#ifndef IGGY_LOGIN_H
#define IGGY_LOGIN_H

#include "iggy/codec.h"

struct iggy_login {
    uint32_t protocol; /* the client's; as far as the body could be read, also after an error */
    bool by_token;
    union {
        struct iggy_login_password_req password;
        struct iggy_login_token_req token;
    };
};

/*
 * Read the body of a Register: as a password login, else as a token login, as real servers do. Texts are views into
 * the body. Any thread.
 *
 * ST_UNSUPPORTED  a version that the tables don't know: out->protocol says which. Eviction 14
 * else            it is neither: Eviction 15
 */
enum status iggy_login_decode(struct bytes body, struct iggy_login *out) MUST_USE;
#endif
