/*
 * Users and access tokens. What may be done is in users/, who may ask for it here: oneself, and those who may read or manage users.
 * A user that is named and isn't there is said to be missing before anybody's permission is looked at, as Iggy does.
 */
#include "iggy/tlv.h"
#include "iggy_server/request.h"
#include "iggy_server/resources.h"

#define NO_STREAM 0
#define NO_TOPIC  0

static struct users *users_of(const struct server_request *r) {
    return r->server->settings.users;
}

/* A secret in the request's body, which stays in memory until the reply has left. */
static void secret_wipe(struct str secret) {
    if (secret.len > 0)
        explicit_bzero((void *)(uintptr_t)secret.ptr, (size_t)secret.len);
}

static uint32_t may_manage(struct server_request *r) {
    return request_allowed(r, ACTION_MANAGE_USERS, NO_STREAM, NO_TOPIC);
}

/* The user's id, in the request's arena for a while; 0, 20, or what memory says. */
static uint32_t user_id_of(struct server_request *r, const struct iggy_identifier *id, uint32_t *id_out) {
    struct iggy_user_details found;
    enum status st = users_find(users_of(r), id, &r->arena, &found);
    if (st)
        return st == ST_NOT_FOUND ? IGGY_ERR_RESOURCE_NOT_FOUND : code_of_status(st);
    *id_out = found.user.id;
    return 0;
}

/* For changes of others by those who may manage users. */
static uint32_t may_change(struct server_request *r, const struct iggy_identifier *id) {
    uint32_t user_id, code = user_id_of(r, id, &user_id);
    return code ? code : may_manage(r);
}

/* ---- reading ---- */

void get_user_handle(struct server_request *r) {
    struct iggy_get_user_res answer = {.found = true};
    enum status st = users_find(users_of(r), &get_user_in(r)->user, &r->arena, &answer.details);
    if (st == ST_NOT_FOUND) {
        request_not_found(r);
        return;
    }
    uint32_t code = code_of_status(st);
    if (!code && answer.details.user.id != r->user_id)
        code = request_allowed(r, ACTION_READ_USERS, NO_STREAM, NO_TOPIC);
    if (code)
        request_refuse(r, code);
    else
        request_answer(r, &answer);
}

void get_users_handle(struct server_request *r) {
    struct iggy_get_users_res answer;
    uint32_t code = request_allowed(r, ACTION_READ_USERS, NO_STREAM, NO_TOPIC);
    if (!code)
        code = code_of_status(users_list(users_of(r), &r->arena, &answer));
    if (code)
        request_refuse(r, code);
    else
        request_answer(r, &answer);
}

/* ---- changes ---- */

/* Users have no options that can be given when they are created, or by the update command of 0.11: their keys have fields of their own. */
static uint32_t options_check(struct bytes options) {
    struct tlv_entry e;
    enum status st = tlv_check_options(options);
    if (st)
        return st == ST_TOO_BIG ? IGGY_ERR_OPTIONS_BLOCK_TOO_LARGE : IGGY_ERR_INVALID_COMMAND;
    if (options.len <= 0)
        return 0;
    return tlv_find(options, STR("username"), &e) || tlv_find(options, STR("status"), &e)
               ? IGGY_ERR_INVALID_OPTION_VALUE
               : IGGY_ERR_UNSUPPORTED_OPTION_KEY;
}

void create_user_handle(struct server_request *r) {
    const struct iggy_create_user_req *in = create_user_in(r);
    struct iggy_user_details answer;
    uint32_t id, code = may_manage(r);
    if (!code)
        code = options_check(in->options);
    if (!code)
        code = users_create(users_of(r), in, &id);
    secret_wipe(in->password);
    if (!code) {
        struct iggy_identifier by_id = iggy_by_id(id);
        code = code_of_status(users_find(users_of(r), &by_id, &r->arena, &answer));
    }
    if (code)
        request_refuse(r, code);
    else
        request_answer(r, &answer);
}

void delete_user_handle(struct server_request *r) {
    const struct iggy_identifier *id = &delete_user_in(r)->user;
    uint32_t code = may_change(r, id);
    request_end(r, code ? code : users_delete(users_of(r), id));
}

void update_user_handle(struct server_request *r) {
    const struct iggy_update_user_req *in = update_user_in(r);
    uint32_t code = may_change(r, &in->user);
    if (!code)
        code = options_check(in->options);
    if (!code && in->has_status && in->status == 0) /* 0 would leave it as it is */
        code = IGGY_ERR_INVALID_USER_STATUS;
    if (!code)
        code = users_update(users_of(r), &in->user, in->has_username ? in->username : STR_NULL,
                            in->has_status ? in->status : 0);
    request_end(r, code);
}

void update_permissions_handle(struct server_request *r) {
    const struct iggy_update_permissions_req *in = update_permissions_in(r);
    uint32_t code = may_change(r, &in->user);
    if (!code)
        code = users_set_permissions(users_of(r), &in->user, in->has_permissions ? &in->permissions : NULL);
    request_end(r, code);
}

void change_password_handle(struct server_request *r) {
    const struct iggy_change_password_req *in = change_password_in(r);
    uint32_t id, code = user_id_of(r, &in->user, &id);
    if (!code && id != r->user_id)
        code = may_manage(r);
    if (!code) {
        struct iggy_identifier by_id = iggy_by_id(id);
        code = users_change_password(users_of(r), &by_id, in->current, in->wanted);
    }
    secret_wipe(in->current);
    secret_wipe(in->wanted);
    request_end(r, code);
}

/* ---- update_resource, scope 3 ---- */

enum user_option { USER_OPTION_NAME, USER_OPTION_STATUS, USER_OPTION_UNKNOWN };

static enum user_option option_of(struct str key) {
    if (str_equal(key, STR("username")))
        return USER_OPTION_NAME;
    return str_equal(key, STR("status")) ? USER_OPTION_STATUS : USER_OPTION_UNKNOWN;
}

static struct str text_of(struct bytes b) {
    return (struct str){(const char *)b.ptr, b.len};
}

/* Names to reset: each once, and none that is set as well; a user has nothing that can be reset. */
static uint32_t reset_check(const struct iggy_update_resource_req *in) {
    struct tlv_entry e;
    uint32_t code = 0;
    for (uint32_t i = 0; i < in->reset_count; i++) {
        struct str name = in->reset[i].key;
        for (uint32_t k = 0; k < i; k++)
            if (str_equal(name, in->reset[k].key))
                return IGGY_ERR_INVALID_COMMAND;
        if (tlv_find(in->options, name, &e))
            return IGGY_ERR_INVALID_COMMAND;
        if (code != IGGY_ERR_UNSUPPORTED_OPTION_KEY)
            code = option_of(name) == USER_OPTION_UNKNOWN ? IGGY_ERR_UNSUPPORTED_OPTION_KEY
                                                          : IGGY_ERR_OPTION_NOT_RESETTABLE;
    }
    return code;
}

/* What the options say: name as users_update takes it. 0, 43, 45, 4041. */
static uint32_t patch_read(struct bytes options, struct str *name, uint8_t *status) {
    struct tlv_entry e;
    uint32_t code = 0;
    while (!code && tlv_next(&options, &e) == ST_OK) {
        struct str value = e.value_kind == TLV_STRING ? text_of(e.value) : STR("");
        switch (option_of(text_of(e.key))) {
        case USER_OPTION_NAME:
            *name = value;
            break;
        case USER_OPTION_STATUS:
            *status = str_equal(value, STR("active"))     ? IGGY_USER_ACTIVE
                      : str_equal(value, STR("inactive")) ? IGGY_USER_INACTIVE
                                                          : 0;
            code = *status ? 0 : IGGY_ERR_INVALID_USER_STATUS;
            break;
        case USER_OPTION_UNKNOWN:
            code = IGGY_ERR_UNSUPPORTED_OPTION_KEY;
        }
    }
    return code;
}

uint32_t user_update_resource(struct server_request *r, const struct iggy_update_resource_req *in) {
    struct str name = STR_NULL;
    uint8_t status = 0;
    uint32_t code = may_change(r, &in->user);
    if (code)
        return code;
    enum status st = tlv_check_options(in->options);
    if (st)
        return st == ST_TOO_BIG ? IGGY_ERR_OPTIONS_BLOCK_TOO_LARGE : IGGY_ERR_INVALID_COMMAND;
    if (in->reset_count == 0 && in->options.len <= 0)
        return IGGY_ERR_INVALID_COMMAND;
    code = reset_check(in);
    if (!code)
        code = patch_read(in->options, &name, &status);
    return code ? code : users_update(users_of(r), &in->user, name, status);
}

/* ---- tokens: one's own ---- */

void get_tokens_handle(struct server_request *r) {
    struct iggy_get_tokens_res answer;
    uint32_t code = code_of_status(users_tokens(users_of(r), r->user_id, &r->arena, &answer));
    if (code)
        request_refuse(r, code);
    else
        request_answer(r, &answer);
}

void create_token_handle(struct server_request *r) {
    const struct iggy_create_token_req *in = create_token_in(r);
    char raw[USERS_TOKEN_BYTES];
    uint32_t code = users_create_token(users_of(r), r->user_id, in->name, in->expiry_us, raw);
    if (code)
        request_refuse(r, code);
    else
        request_answer(r, &(struct iggy_create_token_res){.token = str_of(raw)});
    explicit_bzero(raw, sizeof raw);
}

void delete_token_handle(struct server_request *r) {
    request_end(r, users_delete_token(users_of(r), r->user_id, delete_token_in(r)->name));
}
