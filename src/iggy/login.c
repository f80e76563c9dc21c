#include "iggy/login.h"

#include "base/le.h"

enum status iggy_login_decode(struct bytes body, struct iggy_login *out) {
    *out = (struct iggy_login){0};
    if (body.len < 4)
        return ST_TRUNCATED;
    uint32_t protocol = out->protocol = le_get32(body.ptr);
    struct arena none = {0}; /* neither shape has a list */
    enum status st = iggy_decode(iggy_login_password_req_schema(), protocol, body, &none, &out->password);
    if (!st || st == ST_UNSUPPORTED)
        return st;
    out->by_token = true;
    return iggy_decode(iggy_login_token_req_schema(), protocol, body, &none, &out->token);
}
