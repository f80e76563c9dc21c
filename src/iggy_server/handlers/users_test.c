/* Users and tokens as clients of both protocols see them. */
#include "iggy/tlv.h"
#include "iggy_server/peer_test.h"
#include "testing/test.h"

#define PASSWORD "a password"

static const uint32_t versions[] = {IGGY_0_11, IGGY_0_12_2};

static struct iggy_identifier named(const char *name) {
    return iggy_by_name(str_of(name));
}

static uint32_t create(struct peer *p, const char *name, const struct iggy_permissions *permissions,
                       struct iggy_user_details *out) {
    struct iggy_create_user_req in = {
        .username = str_of(name), .password = STR(PASSWORD), .status = IGGY_USER_ACTIVE};
    if (permissions) {
        in.has_permissions = true;
        in.permissions = *permissions;
    }
    return peer_call(p, IGGY_CMD_create_user, &in, out);
}

/* A client of its own, logged in. */
static void open_as(struct peer *p, struct rig *rig, uint32_t version, uint8_t id, const char *name) {
    struct iggy_login_res res;
    peer_open(p, rig, version, id);
    peer_send_login(p, name, PASSWORD);
    CHECK(peer_read(p));
    CHECK_EQ(p->h.frame.kind, IGGY_REPLY);
    CHECK_EQ(p->code, 0);
    peer_decode(p, IGGY_CMD_login_password, &res);
    p->session = res.session;
}

static bool can_log_in(struct rig *rig, uint32_t version, const char *name, const char *password) {
    struct peer p;
    peer_open(&p, rig, version, 99);
    peer_send_login(&p, name, password);
    CHECK(peer_read(&p));
    bool in = p.h.frame.kind == IGGY_REPLY && p.code == 0;
    peer_close(&p);
    return in;
}

static void root_makes_shows_and_deletes(struct rig *rig, uint32_t version) {
    struct peer p;
    struct iggy_user_details made;
    struct iggy_get_user_res shown;
    struct iggy_get_users_res list;
    struct iggy_permissions permissions = {.read_streams = true};
    peer_open(&p, rig, version, 1);
    peer_log_in(&p);
    CHECK_EQ(create(&p, "alice", &permissions, &made), 0);
    CHECK(str_equal(made.user.username, STR("alice")));
    CHECK_EQ(made.user.status, IGGY_USER_ACTIVE);
    CHECK(made.has_permissions && made.permissions.read_streams && !made.permissions.manage_streams);
    CHECK_EQ(create(&p, "alice", NULL, NULL), IGGY_ERR_USER_ALREADY_EXISTS);
    CHECK_EQ(create(&p, "al", NULL, NULL), IGGY_ERR_INVALID_USERNAME);
    struct iggy_user_req alice = {.user = iggy_by_id(made.user.id)}, root = {.user = iggy_by_id(0)};
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_user, &alice, &shown), 0);
    CHECK(shown.found && shown.details.user.id == alice.user.id);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_users, NULL, &list), 0);
    CHECK_EQ(list.users_count, 2);
    CHECK(str_equal(list.users[0].username, STR("root")));
    CHECK_EQ(peer_call(&p, IGGY_CMD_delete_user, &root, NULL), IGGY_ERR_CANNOT_DELETE_USER);
    CHECK_EQ(peer_call(&p, IGGY_CMD_delete_user, &alice, NULL), 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_delete_user, &alice, NULL), IGGY_ERR_RESOURCE_NOT_FOUND);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_user, &alice, NULL), 0);
    CHECK_EQ(p.body.len, 0);
    peer_close(&p);
}

TEST(root_makes_shows_and_deletes_users) {
    struct rig rig;
    rig_start(&rig, 0, 0);
    for (size_t i = 0; i < COUNT_OF(versions); i++)
        root_makes_shows_and_deletes(&rig, versions[i]);
    rig_stop(&rig);
}

TEST(who_has_no_permission_sees_and_changes_only_oneself) {
    struct rig rig;
    struct peer root, p;
    struct iggy_get_user_res shown;
    rig_start(&rig, 0, 0);
    peer_open(&root, &rig, IGGY_0_12_2, 1);
    peer_log_in(&root);
    CHECK_EQ(create(&root, "alice", NULL, NULL), 0);
    open_as(&p, &rig, IGGY_0_12_2, 2, "alice");
    struct iggy_user_req alice = {.user = named("alice")}, other = {.user = named("root")},
                         nobody = {.user = named("nobody")};
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_user, &alice, &shown), 0);
    CHECK(shown.found);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_user, &other, NULL), IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_user, &nobody, NULL), 0); /* missing comes before denied */
    CHECK_EQ(p.body.len, 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_users, NULL, NULL), IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(create(&p, "bob", NULL, NULL), IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(peer_call(&p, IGGY_CMD_delete_user, &alice, NULL), IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(peer_call(&p, IGGY_CMD_delete_user, &nobody, NULL), IGGY_ERR_RESOURCE_NOT_FOUND);
    struct iggy_update_permissions_req all = {
        .user = named("alice"), .has_permissions = true, .permissions = {.manage_servers = true}};
    CHECK_EQ(peer_call(&p, IGGY_CMD_update_permissions, &all, NULL), IGGY_ERR_UNAUTHORIZED);
    struct iggy_change_password_req own = {
        .user = named("alice"), .current = STR(PASSWORD), .wanted = STR("fresh")};
    struct iggy_change_password_req roots = {
        .user = named("root"), .current = STR(RIG_PASSWORD), .wanted = STR("fresh")};
    CHECK_EQ(peer_call(&p, IGGY_CMD_change_password, &roots, NULL), IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(peer_call(&p, IGGY_CMD_change_password, &own, NULL), 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_change_password, &own, NULL), IGGY_ERR_INVALID_CREDENTIALS);
    CHECK(can_log_in(&rig, IGGY_0_12_2, "alice", "fresh"));
    CHECK(!can_log_in(&rig, IGGY_0_12_2, "alice", PASSWORD));
    peer_close(&p);
    peer_close(&root);
    rig_stop(&rig);
}

TEST(permissions_count_at_once_and_end_with_the_user) {
    struct rig rig;
    struct peer root, p;
    rig_start(&rig, 0, 0);
    peer_open(&root, &rig, IGGY_0_11, 1);
    peer_log_in(&root);
    CHECK_EQ(create(&root, "alice", NULL, NULL), 0);
    open_as(&p, &rig, IGGY_0_11, 2, "alice");
    struct iggy_update_permissions_req give = {
        .user = named("alice"), .has_permissions = true, .permissions = {.manage_users = true}};
    struct iggy_update_permissions_req take = {.user = named("alice")}, roots = {.user = named("root")};
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_users, NULL, NULL), IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(peer_call(&root, IGGY_CMD_update_permissions, &give, NULL), 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_users, NULL, NULL), 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_update_permissions, &roots, NULL), IGGY_ERR_CANNOT_CHANGE_PERMISSIONS);
    CHECK_EQ(create(&p, "bob", NULL, NULL), 0);
    CHECK_EQ(peer_call(&root, IGGY_CMD_update_permissions, &take, NULL), 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_users, NULL, NULL), IGGY_ERR_UNAUTHORIZED);
    CHECK_EQ(peer_call(&root, IGGY_CMD_update_permissions, &give, NULL), 0);
    struct iggy_user_req alice = {.user = named("alice")};
    CHECK_EQ(peer_call(&root, IGGY_CMD_delete_user, &alice, NULL), 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_users, NULL, NULL), IGGY_ERR_UNAUTHORIZED);
    peer_close(&p);
    peer_close(&root);
    rig_stop(&rig);
}

TEST(a_client_of_0_11_renames_and_deactivates_by_update_user) {
    struct rig rig;
    struct peer p;
    rig_start(&rig, 0, 0);
    peer_open(&p, &rig, IGGY_0_11, 1);
    peer_log_in(&p);
    CHECK_EQ(create(&p, "alice", NULL, NULL), 0);
    struct iggy_update_user_req in = {.user = named("alice"), .has_username = true, .username = STR("root")};
    CHECK_EQ(peer_call(&p, IGGY_CMD_update_user, &in, NULL), IGGY_ERR_USER_ALREADY_EXISTS);
    in.username = STR("bob");
    CHECK_EQ(peer_call(&p, IGGY_CMD_update_user, &in, NULL), 0);
    CHECK(can_log_in(&rig, IGGY_0_11, "bob", PASSWORD));
    CHECK_EQ(peer_call(&p, IGGY_CMD_update_user, &in, NULL), IGGY_ERR_RESOURCE_NOT_FOUND);
    struct iggy_update_user_req change = {.user = named("bob"), .has_status = true, .status = 0};
    CHECK_EQ(peer_call(&p, IGGY_CMD_update_user, &change, NULL), IGGY_ERR_INVALID_USER_STATUS);
    change.status = IGGY_USER_INACTIVE;
    CHECK_EQ(peer_call(&p, IGGY_CMD_update_user, &change, NULL), 0);
    CHECK(!can_log_in(&rig, IGGY_0_11, "bob", PASSWORD));
    change.user = named("root");
    CHECK_EQ(peer_call(&p, IGGY_CMD_update_user, &change, NULL), IGGY_ERR_CANNOT_MODIFY_ROOT_USER);
    peer_close(&p);
    rig_stop(&rig);
}

/* Options as TLVs: pairs of a key and a value, ended by NULL. */
static struct bytes options_of(uint8_t *room, const char *const *pairs) {
    uint8_t *at = room;
    for (; *pairs; pairs += 2) {
        struct tlv_entry e = {
            .key_kind = TLV_STRING,
            .value_kind = TLV_STRING,
            .key = {(const uint8_t *)pairs[0], (int32_t)strlen(pairs[0])},
            .value = {(const uint8_t *)pairs[1], (int32_t)strlen(pairs[1])},
        };
        at = tlv_write(at, &e);
    }
    return (struct bytes){room, (int32_t)(at - room)};
}

TEST(a_client_of_0_12_renames_and_deactivates_by_update_resource) {
    static const struct {
        const char *options[7];
        const char *reset[2];
        uint32_t code;
    } cases[] = {
        {{NULL}, {NULL}, IGGY_ERR_INVALID_COMMAND},
        {{"username", "bob", "username", "eve"}, {NULL}, IGGY_ERR_INVALID_COMMAND},
        {{"username", "bob"}, {"username"}, IGGY_ERR_INVALID_COMMAND},
        {{NULL}, {"status", "status"}, IGGY_ERR_INVALID_COMMAND},
        {{NULL}, {"status"}, IGGY_ERR_OPTION_NOT_RESETTABLE},
        {{NULL}, {"status", "colour"}, IGGY_ERR_UNSUPPORTED_OPTION_KEY},
        {{"colour", "red"}, {NULL}, IGGY_ERR_UNSUPPORTED_OPTION_KEY},
        {{"username", "al"}, {NULL}, IGGY_ERR_INVALID_USERNAME},
        {{"username", "root"}, {NULL}, IGGY_ERR_USER_ALREADY_EXISTS},
        {{"status", "asleep"}, {NULL}, IGGY_ERR_INVALID_USER_STATUS},
        {{"username", "bob", "status", "inactive"}, {NULL}, 0},
        {{"username", "eve"}, {NULL}, IGGY_ERR_RESOURCE_NOT_FOUND}, /* it is bob now */
    };
    struct rig rig;
    struct peer p;
    uint8_t room[256];
    rig_start(&rig, 0, 0);
    peer_open(&p, &rig, IGGY_0_12_2, 1);
    peer_log_in(&p);
    CHECK_EQ(create(&p, "alice", NULL, NULL), 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct iggy_reset_option reset[2];
        struct iggy_update_resource_req in = {.scope = IGGY_RESOURCE_USER,
                                              .user = named("alice"),
                                              .reset = reset,
                                              .options = options_of(room, cases[i].options)};
        for (; in.reset_count < 2 && cases[i].reset[in.reset_count]; in.reset_count++)
            reset[in.reset_count].key = str_of(cases[i].reset[in.reset_count]);
        CHECK_EQ(peer_call(&p, IGGY_CMD_update_resource, &in, NULL), cases[i].code);
    }
    CHECK(!can_log_in(&rig, IGGY_0_12_2, "bob", PASSWORD));
    struct iggy_update_resource_req active = {.scope = IGGY_RESOURCE_USER, .user = named("bob")};
    active.options = options_of(room, (const char *const[]){"status", "active", NULL});
    CHECK_EQ(peer_call(&p, IGGY_CMD_update_resource, &active, NULL), 0);
    CHECK(can_log_in(&rig, IGGY_0_12_2, "bob", PASSWORD));
    peer_close(&p);
    rig_stop(&rig);
}

TEST(options_when_a_user_is_created_are_refused_before_it_is) {
    struct rig rig;
    struct peer p;
    uint8_t room[256];
    struct iggy_create_user_req in = {
        .username = STR("alice"), .password = STR(PASSWORD), .status = IGGY_USER_ACTIVE};
    rig_start(&rig, 0, 0);
    peer_open(&p, &rig, IGGY_0_12_2, 1);
    peer_log_in(&p);
    in.options = options_of(room, (const char *const[]){"colour", "red", NULL});
    CHECK_EQ(peer_call(&p, IGGY_CMD_create_user, &in, NULL), IGGY_ERR_UNSUPPORTED_OPTION_KEY);
    in.options = options_of(room, (const char *const[]){"status", "active", NULL});
    CHECK_EQ(peer_call(&p, IGGY_CMD_create_user, &in, NULL), IGGY_ERR_INVALID_OPTION_VALUE);
    in.options = (struct bytes){(const uint8_t *)"junk", 4};
    CHECK_EQ(peer_call(&p, IGGY_CMD_create_user, &in, NULL), IGGY_ERR_INVALID_COMMAND);
    struct iggy_user_req alice = {.user = named("alice")};
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_user, &alice, NULL), 0);
    CHECK_EQ(p.body.len, 0);
    peer_close(&p);
    rig_stop(&rig);
}

static void token_life(struct rig *rig, uint32_t version) {
    struct peer p, q;
    struct iggy_create_token_res made;
    struct iggy_get_tokens_res list;
    struct iggy_login_res in;
    char raw[USERS_TOKEN_BYTES];
    peer_open(&p, rig, version, 1);
    peer_log_in(&p);
    struct iggy_create_token_req create_it = {.name = STR("laptop"), .expiry_us = IGGY_NEVER};
    struct iggy_create_token_req short_name = {.name = STR("me"), .expiry_us = IGGY_NEVER};
    CHECK_EQ(peer_call(&p, IGGY_CMD_create_token, &create_it, &made), 0);
    CHECK_EQ(made.token.len, USERS_TOKEN_BYTES - 1);
    memcpy(raw, made.token.ptr, sizeof raw - 1);
    raw[sizeof raw - 1] = '\0';
    CHECK_EQ(peer_call(&p, IGGY_CMD_create_token, &create_it, NULL),
             IGGY_ERR_PERSONAL_ACCESS_TOKEN_ALREADY_EXISTS);
    CHECK_EQ(peer_call(&p, IGGY_CMD_create_token, &short_name, NULL),
             IGGY_ERR_INVALID_PERSONAL_ACCESS_TOKEN_NAME);
    CHECK_EQ(peer_call(&p, IGGY_CMD_get_tokens, NULL, &list), 0);
    CHECK_EQ(list.tokens_count, 1);
    CHECK(str_equal(list.tokens[0].name, STR("laptop")));
    CHECK_EQ(list.tokens[0].expiry_at_us, 0);
    peer_open(&q, rig, version, 2);
    const struct iggy_login_token_req login = {
        .client = {.protocol = version, .sdk_name = STR("test"), .sdk_version = STR("1")},
        .bind_secret = q.secret,
        .token = str_of(raw)};
    peer_send(&q, IGGY_CMD_login_token, 0, &login);
    CHECK(peer_read(&q));
    CHECK_EQ(q.h.frame.kind, IGGY_REPLY);
    CHECK_EQ(q.code, 0);
    peer_decode(&q, IGGY_CMD_login_token, &in);
    CHECK_EQ(in.user_id, USERS_ROOT_ID);
    peer_close(&q);
    struct iggy_delete_token_req delete_it = {.name = STR("laptop")};
    CHECK_EQ(peer_call(&p, IGGY_CMD_delete_token, &delete_it, NULL), 0);
    CHECK_EQ(peer_call(&p, IGGY_CMD_delete_token, &delete_it, NULL), IGGY_ERR_RESOURCE_NOT_FOUND);
    peer_open(&q, rig, version, 2);
    peer_send(&q, IGGY_CMD_login_token, 0, &login);
    CHECK_EQ(peer_eviction(&q), IGGY_EVICTED_INVALID_TOKEN);
    peer_close(&q);
    peer_close(&p);
}

TEST(a_token_is_shown_once_and_logs_in_until_it_is_deleted) {
    struct rig rig;
    rig_start(&rig, 0, 0);
    for (size_t i = 0; i < COUNT_OF(versions); i++)
        token_life(&rig, versions[i]);
    rig_stop(&rig);
}
