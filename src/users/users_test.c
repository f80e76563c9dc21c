/* Users and tokens on a real store. */
#include "users/users_impl.h"

#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "iggy/errors.h"
#include "testing/test.h"

#define ROOT     "iggy"
#define PASSWORD "correct horse"

/* A store and its users; opened again they are what the disk kept. */
struct fixture {
    const char *dir;
    struct store *store;
    struct users *users;
    struct arena arena;
    char generated[USERS_PASSWORD_BYTES];
};

static struct store *open_store(const char *dir) {
    struct store_settings settings = {.data_dir = dir, .segment_bytes = 1 << 20};
    struct store_error error;
    struct store *s = NULL;
    CHECK_EQ(store_open(&settings, &s, &error), ST_OK);
    return s;
}

static void fixture_open(struct fixture *f, const char *dir) {
    *f = (struct fixture){.dir = dir, .store = open_store(dir)};
    CHECK_EQ(users_open(f->store, ROOT, PASSWORD, &f->users, f->generated), ST_OK);
    arena_init(&f->arena, NULL, 0, 1 << 20);
}

static void fixture_close(struct fixture *f) {
    arena_release(&f->arena);
    users_close(f->users);
    store_close(f->store);
}

static void fixture_reopen(struct fixture *f) {
    const char *dir = f->dir;
    fixture_close(f);
    fixture_open(f, dir);
}

static uint32_t login(struct fixture *f, const char *name, const char *password) {
    uint32_t id = UINT32_MAX;
    uint32_t code = users_login(f->users, str_of(name), str_of(password), &id);
    CHECK_EQ(code == 0, id != UINT32_MAX);
    return code;
}

static uint32_t create(struct fixture *f, const char *name, const char *password, uint32_t *id) {
    struct iggy_create_user_req in = {
        .username = str_of(name), .password = str_of(password), .status = IGGY_USER_ACTIVE};
    return users_create(f->users, &in, id);
}

static uint32_t create_good(struct fixture *f, const char *name) {
    uint32_t id = 0;
    CHECK_EQ(create(f, name, PASSWORD, &id), 0);
    return id;
}

static struct iggy_identifier named(const char *name) {
    return iggy_by_name(str_of(name));
}

static bool is_there(struct fixture *f, const char *name) {
    struct iggy_identifier id = named(name);
    struct iggy_user_details found;
    return users_find(f->users, &id, &f->arena, &found) == ST_OK;
}

/* ---- root ---- */

TEST(the_first_start_makes_root_with_the_given_name_and_password) {
    struct fixture f;
    fixture_open(&f, test_dir());
    uint32_t id = UINT32_MAX;
    CHECK_EQ(users_login(f.users, STR(ROOT), STR(PASSWORD), &id), 0);
    CHECK_EQ(id, USERS_ROOT_ID);
    CHECK_TEXT(f.generated, "");
    CHECK_EQ(login(&f, ROOT, "correct hors"), IGGY_ERR_INVALID_CREDENTIALS);
    CHECK_EQ(login(&f, "iggi", PASSWORD), IGGY_ERR_INVALID_CREDENTIALS);
    CHECK(users_may(f.users, id, ACTION_MANAGE_USERS, 0, 0));
    CHECK(users_may(f.users, id, ACTION_SEND, 5, 5));
    fixture_close(&f);
}

TEST(without_a_password_a_random_one_is_made_and_shown_once) {
    const char *dir = test_dir();
    struct store *s = open_store(dir);
    struct users *u;
    char first[USERS_PASSWORD_BYTES], second[USERS_PASSWORD_BYTES];
    uint32_t id;
    CHECK_EQ(users_open(s, "admin", NULL, &u, first), ST_OK);
    CHECK_EQ(strlen(first), USERS_PASSWORD_BYTES - 1);
    users_close(u);
    CHECK_EQ(users_open(s, "other", NULL, &u, second), ST_OK);
    CHECK_TEXT(second, "");
    CHECK_EQ(users_login(u, STR("admin"), str_of(first), &id), 0);
    CHECK_EQ(users_login(u, STR("other"), str_of(first), &id), IGGY_ERR_INVALID_CREDENTIALS);
    users_close(u);
    store_close(s);
}

TEST(a_root_whose_name_or_password_is_not_allowed_is_not_made) {
    struct store *s = open_store(test_dir());
    struct users *u;
    char generated[USERS_PASSWORD_BYTES], long_text[102];
    memset(long_text, 'x', 101);
    long_text[101] = '\0';
    CHECK_EQ(users_open(s, "ab", PASSWORD, &u, generated), ST_INVALID);
    CHECK_EQ(users_open(s, long_text, PASSWORD, &u, generated), ST_INVALID);
    CHECK_EQ(users_open(s, "r\xff\xffot", PASSWORD, &u, generated), ST_INVALID);
    CHECK_EQ(users_open(s, ROOT, "pw", &u, generated), ST_INVALID);
    CHECK_EQ(users_open(s, ROOT, long_text, &u, generated), ST_INVALID);
    CHECK_EQ(users_open(s, ROOT, PASSWORD, &u, generated), ST_OK);
    CHECK_EQ(u->by_id.count, 1);
    users_close(u);
    store_close(s);
}

TEST(root_can_not_be_deleted_deactivated_or_restricted_but_renamed) {
    struct fixture f;
    fixture_open(&f, test_dir());
    struct iggy_identifier root = iggy_by_id(USERS_ROOT_ID);
    struct iggy_permissions nothing = {0};
    CHECK_EQ(users_delete(f.users, &root), IGGY_ERR_CANNOT_DELETE_USER);
    CHECK_EQ(users_set_permissions(f.users, &root, &nothing), IGGY_ERR_CANNOT_CHANGE_PERMISSIONS);
    CHECK_EQ(users_set_permissions(f.users, &root, NULL), IGGY_ERR_CANNOT_CHANGE_PERMISSIONS);
    CHECK_EQ(users_update(f.users, &root, STR("other"), IGGY_USER_INACTIVE),
             IGGY_ERR_CANNOT_MODIFY_ROOT_USER);
    CHECK_EQ(login(&f, ROOT, PASSWORD), 0);
    CHECK_EQ(users_update(f.users, &root, STR("toor"), IGGY_USER_ACTIVE), 0);
    CHECK_EQ(login(&f, "toor", PASSWORD), 0);
    fixture_close(&f);
}

/* ---- logins ---- */

static double login_cpu_ms(struct fixture *f, const char *name) {
    struct timespec from, to;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    CHECK_EQ(login(f, name, "not the password"), IGGY_ERR_INVALID_CREDENTIALS);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    return (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6;
}

/* Without the hashing one of them would take some microseconds, which is far below a quarter of the other. */
TEST(the_login_of_a_user_who_does_not_exist_or_is_inactive_costs_as_much_as_one_with_a_wrong_password) {
    struct fixture f;
    fixture_open(&f, test_dir());
    create_good(&f, "sleepy");
    struct iggy_identifier sleepy = named("sleepy");
    CHECK_EQ(users_update(f.users, &sleepy, STR_NULL, IGGY_USER_INACTIVE), 0);
    double wrong = login_cpu_ms(&f, ROOT);
    CHECK(login_cpu_ms(&f, "nobody") > wrong / 4);
    CHECK(login_cpu_ms(&f, "sleepy") > wrong / 4);
    fixture_close(&f);
}

TEST(an_inactive_user_can_not_log_in_or_do_anything_until_it_is_active_again) {
    struct fixture f;
    fixture_open(&f, test_dir());
    char token[USERS_TOKEN_BYTES];
    uint32_t id = create_good(&f, "reader"), who;
    struct iggy_identifier reader = named("reader");
    struct iggy_permissions p = {.read_streams = true};
    CHECK_EQ(users_set_permissions(f.users, &reader, &p), 0);
    CHECK_EQ(users_create_token(f.users, id, STR("token"), IGGY_NEVER, token), 0);
    CHECK(users_may(f.users, id, ACTION_READ_STREAMS, 0, 0));
    CHECK_EQ(users_update(f.users, &reader, STR_NULL, IGGY_USER_INACTIVE), 0);
    CHECK_EQ(login(&f, "reader", PASSWORD), IGGY_ERR_INVALID_CREDENTIALS);
    CHECK_EQ(users_login_token(f.users, str_of(token), &who), IGGY_ERR_USER_INACTIVE);
    CHECK(!users_may(f.users, id, ACTION_READ_STREAMS, 0, 0));
    CHECK(!users_is_active(f.users, id));
    fixture_reopen(&f);
    CHECK(!users_is_active(f.users, id));
    CHECK_EQ(users_update(f.users, &reader, STR_NULL, IGGY_USER_ACTIVE), 0);
    CHECK_EQ(login(&f, "reader", PASSWORD), 0);
    CHECK(users_may(f.users, id, ACTION_READ_STREAMS, 0, 0));
    fixture_close(&f);
}

/* ---- users ---- */

TEST(names_and_passwords_of_lengths_that_are_not_allowed_are_refused) {
    struct fixture f;
    uint32_t id;
    char text[102];
    fixture_open(&f, test_dir());
    memset(text, 'x', sizeof text);
    const struct str two = {text, 2}, three = {text, 3}, fifty = {text, 50}, fifty_one = {text, 51},
                     hundred = {text, 100}, hundred_one = {text, 101};
    const struct {
        struct str name, password;
        uint32_t code;
    } cases[] = {
        {two, three, IGGY_ERR_INVALID_USERNAME},
        {fifty_one, three, IGGY_ERR_INVALID_USERNAME},
        {three, two, IGGY_ERR_INVALID_PASSWORD},
        {three, hundred_one, IGGY_ERR_INVALID_PASSWORD},
        {STR("a\0b"), three, IGGY_ERR_INVALID_USERNAME},
        {three, three, 0},
        {fifty, hundred, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct iggy_create_user_req in = {
            .username = cases[i].name, .password = cases[i].password, .status = IGGY_USER_ACTIVE};
        CHECK_EQ(users_create(f.users, &in, &id), cases[i].code);
    }
    struct iggy_create_user_req in = {.username = STR("other"), .password = three, .status = 3};
    CHECK_EQ(users_create(f.users, &in, &id), IGGY_ERR_INVALID_USER_STATUS);
    fixture_close(&f);
}

TEST(a_name_is_one_users_and_ids_are_never_given_again) {
    struct fixture f;
    uint32_t id;
    fixture_open(&f, test_dir());
    struct iggy_identifier alice = named("alice"), nobody = named("nobody");
    uint32_t first = create_good(&f, "alice");
    CHECK_EQ(create(&f, "alice", PASSWORD, &id), IGGY_ERR_USER_ALREADY_EXISTS);
    CHECK_EQ(create(&f, ROOT, PASSWORD, &id), IGGY_ERR_USER_ALREADY_EXISTS);
    CHECK_EQ(users_delete(f.users, &alice), 0);
    CHECK_EQ(users_delete(f.users, &alice), IGGY_ERR_RESOURCE_NOT_FOUND);
    CHECK_EQ(users_update(f.users, &nobody, STR("someone"), 0), IGGY_ERR_RESOURCE_NOT_FOUND);
    CHECK_EQ(login(&f, "alice", PASSWORD), IGGY_ERR_INVALID_CREDENTIALS);
    CHECK(!users_is_active(f.users, first));
    fixture_reopen(&f);
    CHECK(create_good(&f, "alice") > first);
    fixture_close(&f);
}

TEST(a_renamed_user_logs_in_by_the_new_name_only) {
    struct fixture f;
    fixture_open(&f, test_dir());
    struct iggy_identifier alice = named("alice"), bob = named("bob");
    create_good(&f, "alice");
    CHECK_EQ(users_update(f.users, &alice, STR(ROOT), 0), IGGY_ERR_USER_ALREADY_EXISTS);
    CHECK_EQ(users_update(f.users, &alice, STR("al"), 0), IGGY_ERR_INVALID_USERNAME);
    CHECK_EQ(users_update(f.users, &alice, STR_NULL, 9), IGGY_ERR_INVALID_USER_STATUS);
    CHECK_EQ(users_update(f.users, &alice, STR("alice"), 0), 0);
    CHECK_EQ(users_update(f.users, &alice, STR("bob"), 0), 0);
    CHECK_EQ(users_update(f.users, &alice, STR("bob"), 0), IGGY_ERR_RESOURCE_NOT_FOUND);
    CHECK_EQ(users_update(f.users, &bob, STR("bob"), 0), 0);
    fixture_reopen(&f);
    CHECK_EQ(login(&f, "bob", PASSWORD), 0);
    CHECK_EQ(login(&f, "alice", PASSWORD), IGGY_ERR_INVALID_CREDENTIALS);
    fixture_close(&f);
}

TEST(permissions_are_given_taken_shown_and_kept) {
    struct fixture f;
    fixture_open(&f, test_dir());
    struct iggy_topic_permissions topic = {.topic_id = 2, .poll_messages = true};
    struct iggy_stream_permissions stream = {.stream_id = 1, .topics = &topic, .topics_count = 1};
    struct iggy_create_user_req in = {.username = STR("poller"),
                                      .password = STR(PASSWORD),
                                      .status = IGGY_USER_ACTIVE,
                                      .has_permissions = true,
                                      .permissions = {.streams = &stream, .streams_count = 1}};
    struct iggy_identifier poller = named("poller");
    struct iggy_user_details found;
    uint32_t id;
    CHECK_EQ(users_create(f.users, &in, &id), 0);
    fixture_reopen(&f);
    CHECK(users_may(f.users, id, ACTION_POLL, 1, 2));
    CHECK(!users_may(f.users, id, ACTION_POLL, 1, 3));
    CHECK(!users_may(f.users, id, ACTION_SEND, 1, 2));
    CHECK_EQ(users_find(f.users, &poller, &f.arena, &found), ST_OK);
    CHECK_EQ(found.user.id, id);
    CHECK(str_equal(found.user.username, STR("poller")));
    CHECK(found.user.created_at_us > 0);
    CHECK(found.has_permissions);
    CHECK_EQ(found.permissions.streams_count, 1);
    CHECK_EQ(found.permissions.streams[0].topics[0].topic_id, 2);
    CHECK_EQ(users_set_permissions(f.users, &poller, NULL), 0);
    CHECK(!users_may(f.users, id, ACTION_POLL, 1, 2));
    fixture_reopen(&f);
    CHECK_EQ(users_find(f.users, &poller, &f.arena, &found), ST_OK);
    CHECK(!found.has_permissions);
    fixture_close(&f);
}

TEST(more_permissions_than_fit_are_refused_and_change_nothing) {
    enum { TOO_MANY = USERS_PERMISSIONS_BYTES_MAX / 12 + 1 };
    struct fixture f;
    fixture_open(&f, test_dir());
    struct iggy_stream_permissions *streams = mem_take_zeroed(TOO_MANY, sizeof *streams);
    struct iggy_permissions p = {.manage_users = true, .streams = streams, .streams_count = TOO_MANY};
    struct iggy_identifier greedy = named("greedy");
    uint32_t id = create_good(&f, "greedy");
    CHECK(streams != NULL);
    CHECK_EQ(users_set_permissions(f.users, &greedy, &p), IGGY_ERR_INVALID_COMMAND);
    CHECK(!users_may(f.users, id, ACTION_MANAGE_USERS, 0, 0));
    mem_free(streams);
    fixture_close(&f);
}

TEST(a_password_is_changed_by_who_knows_the_current_one) {
    struct fixture f;
    fixture_open(&f, test_dir());
    create_good(&f, "alice");
    struct iggy_identifier alice = named("alice"), nobody = named("nobody");
    CHECK_EQ(users_change_password(f.users, &nobody, STR(PASSWORD), STR("fresh")),
             IGGY_ERR_RESOURCE_NOT_FOUND);
    CHECK_EQ(users_change_password(f.users, &alice, STR("wrong"), STR("fresh")),
             IGGY_ERR_INVALID_CREDENTIALS);
    CHECK_EQ(users_change_password(f.users, &alice, STR(PASSWORD), STR("no")), IGGY_ERR_INVALID_PASSWORD);
    CHECK_EQ(login(&f, "alice", PASSWORD), 0);
    CHECK_EQ(users_change_password(f.users, &alice, STR(PASSWORD), STR("fresh")), 0);
    fixture_reopen(&f);
    CHECK_EQ(login(&f, "alice", "fresh"), 0);
    CHECK_EQ(login(&f, "alice", PASSWORD), IGGY_ERR_INVALID_CREDENTIALS);
    fixture_close(&f);
}

TEST(users_are_listed_in_the_order_of_their_ids) {
    struct fixture f;
    struct iggy_get_users_res list;
    fixture_open(&f, test_dir());
    create_good(&f, "zoe");
    create_good(&f, "adam");
    CHECK_EQ(users_list(f.users, &f.arena, &list), ST_OK);
    CHECK_EQ(list.users_count, 3);
    CHECK(str_equal(list.users[0].username, STR(ROOT)));
    CHECK(str_equal(list.users[1].username, STR("zoe")));
    CHECK(str_equal(list.users[2].username, STR("adam")));
    CHECK_EQ(list.users[2].status, IGGY_USER_ACTIVE);
    CHECK(list.users[1].id < list.users[2].id);
    fixture_close(&f);
}

/* ---- tokens ---- */

static int64_t fake_now_us;

static int64_t fake_now(void) {
    return fake_now_us;
}

TEST(a_token_logs_its_user_in_until_it_is_deleted_or_its_user_is) {
    struct fixture f;
    char root_token[USERS_TOKEN_BYTES], token[USERS_TOKEN_BYTES];
    uint32_t who = UINT32_MAX;
    fixture_open(&f, test_dir());
    uint32_t id = create_good(&f, "alice");
    struct iggy_identifier alice = named("alice");
    CHECK_EQ(users_create_token(f.users, USERS_ROOT_ID, STR("one"), IGGY_NEVER, root_token), 0);
    CHECK_EQ(users_create_token(f.users, id, STR("one"), 0, token), 0);
    CHECK_EQ(strlen(token), 68);
    CHECK(strcmp(token, root_token) != 0);
    fixture_reopen(&f);
    CHECK_EQ(users_login_token(f.users, str_of(token), &who), 0);
    CHECK_EQ(who, id);
    CHECK_EQ(users_login_token(f.users, str_of(root_token), &who), 0);
    CHECK_EQ(who, USERS_ROOT_ID);
    CHECK_EQ(users_login_token(f.users, STR(""), &who), IGGY_ERR_INVALID_PERSONAL_ACCESS_TOKEN);
    CHECK_EQ(users_login_token(f.users, (struct str){token, 67}, &who),
             IGGY_ERR_INVALID_PERSONAL_ACCESS_TOKEN);
    CHECK_EQ(users_delete_token(f.users, USERS_ROOT_ID, STR("one")), 0);
    CHECK_EQ(users_delete_token(f.users, USERS_ROOT_ID, STR("one")), IGGY_ERR_RESOURCE_NOT_FOUND);
    CHECK_EQ(users_login_token(f.users, str_of(root_token), &who), IGGY_ERR_INVALID_PERSONAL_ACCESS_TOKEN);
    CHECK_EQ(users_login_token(f.users, str_of(token), &who), 0);
    CHECK_EQ(users_delete(f.users, &alice), 0);
    CHECK_EQ(users_login_token(f.users, str_of(token), &who), IGGY_ERR_INVALID_PERSONAL_ACCESS_TOKEN);
    CHECK_EQ(users_create_token(f.users, id, STR("two"), 0, token), IGGY_ERR_RESOURCE_NOT_FOUND);
    CHECK_TEXT(token, "");
    fixture_close(&f);
}

TEST(a_tokens_name_is_checked_and_its_users_only) {
    struct fixture f;
    char token[USERS_TOKEN_BYTES], text[31];
    fixture_open(&f, test_dir());
    memset(text, 'x', sizeof text);
    uint32_t id = create_good(&f, "alice");
    CHECK_EQ(users_create_token(f.users, id, (struct str){text, 2}, 0, token),
             IGGY_ERR_INVALID_PERSONAL_ACCESS_TOKEN_NAME);
    CHECK_EQ(users_create_token(f.users, id, (struct str){text, 31}, 0, token),
             IGGY_ERR_INVALID_PERSONAL_ACCESS_TOKEN_NAME);
    CHECK_EQ(users_create_token(f.users, id, (struct str){text, 30}, 0, token), 0);
    CHECK_EQ(users_create_token(f.users, id, (struct str){text, 30}, 0, token),
             IGGY_ERR_PERSONAL_ACCESS_TOKEN_ALREADY_EXISTS);
    CHECK_EQ(users_create_token(f.users, USERS_ROOT_ID, (struct str){text, 30}, 0, token), 0);
    fixture_close(&f);
}

TEST(a_token_expires_and_then_makes_room_for_another_of_its_name) {
    struct fixture f;
    char token[USERS_TOKEN_BYTES];
    uint32_t who;
    struct iggy_get_tokens_res list;
    fixture_open(&f, test_dir());
    f.users->now_us = fake_now;
    fake_now_us = 1000;
    CHECK_EQ(users_create_token(f.users, 0, STR("brief"), 500, token), 0);
    CHECK_EQ(users_create_token(f.users, 0, STR("brief"), 500, token),
             IGGY_ERR_PERSONAL_ACCESS_TOKEN_ALREADY_EXISTS);
    CHECK_EQ(users_create_token(f.users, 0, STR("always"), IGGY_NEVER, token), 0);
    CHECK_EQ(users_delete_token(f.users, 0, STR("brief")), 0);
    CHECK_EQ(users_create_token(f.users, 0, STR("brief"), 500, token), 0);
    CHECK_EQ(users_tokens(f.users, 0, &f.arena, &list), ST_OK);
    CHECK_EQ(list.tokens_count, 2);
    CHECK(str_equal(list.tokens[0].name, STR("always")));
    CHECK_EQ(list.tokens[0].expiry_at_us, 0);
    CHECK(str_equal(list.tokens[1].name, STR("brief")));
    CHECK_EQ(list.tokens[1].expiry_at_us, 1500);
    fake_now_us = 1499;
    CHECK_EQ(users_login_token(f.users, str_of(token), &who), 0);
    fake_now_us = 1500;
    CHECK_EQ(users_login_token(f.users, str_of(token), &who), IGGY_ERR_PERSONAL_ACCESS_TOKEN_EXPIRED);
    CHECK_EQ(users_create_token(f.users, 0, STR("brief"), 500, token), 0);
    CHECK_EQ(users_login_token(f.users, str_of(token), &who), 0);
    fixture_close(&f);
}

TEST(an_expiry_beyond_what_a_clock_can_say_is_refused) {
    struct fixture f;
    char token[USERS_TOKEN_BYTES];
    fixture_open(&f, test_dir());
    f.users->now_us = fake_now;
    fake_now_us = 1000;
    CHECK_EQ(users_create_token(f.users, 0, STR("far"), IGGY_NEVER - 1, token),
             IGGY_ERR_INVALID_PERSONAL_ACCESS_TOKEN_EXPIRY);
    CHECK_EQ(users_create_token(f.users, 0, STR("far"), INT64_MAX - 1000, token),
             IGGY_ERR_INVALID_PERSONAL_ACCESS_TOKEN_EXPIRY);
    CHECK_EQ(users_create_token(f.users, 0, STR("far"), INT64_MAX - 1001, token), 0);
    fixture_close(&f);
}

TEST(a_user_has_at_most_a_hundred_tokens) {
    struct fixture f;
    char token[USERS_TOKEN_BYTES], name[24];
    fixture_open(&f, test_dir());
    for (int i = 0; i < USERS_TOKENS_MAX; i++) {
        snprintf(name, sizeof name, "token%d", i);
        CHECK_EQ(users_create_token(f.users, 0, str_of(name), 0, token), 0);
    }
    CHECK_EQ(users_create_token(f.users, 0, STR("more"), 0, token),
             IGGY_ERR_PERSONAL_ACCESS_TOKENS_LIMIT_REACHED);
    CHECK_EQ(users_delete_token(f.users, 0, STR("token7")), 0);
    CHECK_EQ(users_create_token(f.users, 0, STR("more"), 0, token), 0);
    fixture_close(&f);
}

/* ---- secrets ---- */

static const char *sought;
static int files_searched;

static int search_file(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)at;
    if (kind != FTW_F || st->st_size == 0)
        return 0;
    FILE *file = fopen(path, "rb");
    char *all = mem_take((size_t)st->st_size);
    size_t len = fread(all, 1, (size_t)st->st_size, file);
    bool found = memmem(all, len, sought, strlen(sought)) != NULL;
    files_searched++;
    mem_free(all);
    fclose(file);
    return found;
}

static bool disk_has(const char *dir, const char *text) {
    sought = text;
    files_searched = 0;
    return nftw(dir, search_file, 16, FTW_PHYS) != 0;
}

TEST(neither_a_password_nor_a_token_is_on_disk_but_the_name_is) {
    struct fixture f;
    char token[USERS_TOKEN_BYTES];
    fixture_open(&f, test_dir());
    CHECK_EQ(users_create_token(f.users, 0, STR("token name"), IGGY_NEVER, token), 0);
    fixture_reopen(&f);
    CHECK(disk_has(f.dir, "token name"));
    CHECK(!disk_has(f.dir, PASSWORD));
    CHECK(!disk_has(f.dir, token));
    CHECK(files_searched > 0);
    CHECK(disk_has(f.dir, "$argon2id$v=19$m=19456,t=2,p=1$"));
    fixture_close(&f);
}

TEST(the_same_password_has_another_hash_each_time) {
    char a[PASSWORD_HASH_BYTES], b[PASSWORD_HASH_BYTES];
    CHECK_EQ(password_hash(STR(PASSWORD), a), ST_OK);
    CHECK_EQ(password_hash(STR(PASSWORD), b), ST_OK);
    CHECK(strcmp(a, b) != 0);
    CHECK(password_matches(a, STR(PASSWORD)));
    CHECK(password_matches(b, STR(PASSWORD)));
    CHECK(!password_matches(NULL, STR(PASSWORD)));
    CHECK(!password_matches("nonsense", STR(PASSWORD)));
}

TEST(made_up_secrets_are_letters_and_digits_and_differ) {
    char a[USERS_TOKEN_BYTES], b[USERS_TOKEN_BYTES];
    CHECK_EQ(secret_make_up(a, sizeof a - 1), ST_OK);
    CHECK_EQ(secret_make_up(b, sizeof b - 1), ST_OK);
    CHECK_EQ(strspn(a, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"), sizeof a - 1);
    CHECK(strcmp(a, b) != 0);
}

/* ---- many threads ---- */

#define ROUNDS 12

struct crowd {
    struct fixture f;
    uint32_t id;
    _Atomic bool over;
    _Atomic int logins, refused, asked;
};

static void *crowd_logs_in(void *arg) {
    struct crowd *c = arg;
    uint32_t id;
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t code = users_login(c->f.users, STR("busy"), STR(PASSWORD), &id);
        atomic_fetch_add(code == 0 ? &c->logins : &c->refused, 1);
        if (code != 0 && code != IGGY_ERR_INVALID_CREDENTIALS)
            atomic_store(&c->over, true);
    }
    return NULL;
}

static void *crowd_asks(void *arg) {
    struct crowd *c = arg;
    struct iggy_identifier busy = iggy_by_id(c->id);
    while (!atomic_load(&c->over)) {
        struct arena a;
        struct iggy_user_details found;
        arena_init(&a, NULL, 0, 1 << 16);
        users_may(c->f.users, c->id, ACTION_POLL, 3, 3);
        users_is_active(c->f.users, c->id);
        /* Permissions come whole: the stream together with its topic, or not at all. */
        if (users_find(c->f.users, &busy, &a, &found) == ST_OK && found.has_permissions &&
            (found.permissions.streams_count != 1 || found.permissions.streams[0].topics_count != 1))
            abort();
        arena_release(&a);
        atomic_fetch_add(&c->asked, 1);
    }
    return NULL;
}

TEST(logins_questions_and_changes_may_come_from_many_threads_at_once) {
    static struct crowd c;
    pthread_t in, asks[2];
    char token[USERS_TOKEN_BYTES];
    fixture_open(&c.f, test_dir());
    c.id = create_good(&c.f, "busy");
    struct iggy_identifier busy = named("busy"), lazy = named("lazy");
    struct iggy_topic_permissions topic = {.topic_id = 3, .poll_messages = true};
    struct iggy_stream_permissions stream = {.stream_id = 3, .topics = &topic, .topics_count = 1};
    struct iggy_permissions p = {.streams = &stream, .streams_count = 1};
    CHECK_EQ(pthread_create(&in, NULL, crowd_logs_in, &c), 0);
    for (size_t i = 0; i < COUNT_OF(asks); i++)
        CHECK_EQ(pthread_create(&asks[i], NULL, crowd_asks, &c), 0);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(users_set_permissions(c.f.users, &busy, i % 2 ? NULL : &p), 0);
        CHECK_EQ(users_update(c.f.users, &busy, STR("lazy"), 0), 0);
        CHECK_EQ(users_create_token(c.f.users, c.id, STR("token"), 0, token), 0);
        CHECK_EQ(users_update(c.f.users, &lazy, STR("busy"), 0), 0);
        CHECK_EQ(users_delete_token(c.f.users, c.id, STR("token")), 0);
    }
    CHECK_EQ(pthread_join(in, NULL), 0);
    CHECK(!atomic_load(&c.over));
    atomic_store(&c.over, true);
    for (size_t i = 0; i < COUNT_OF(asks); i++)
        CHECK_EQ(pthread_join(asks[i], NULL), 0);
    CHECK_EQ(atomic_load(&c.logins) + atomic_load(&c.refused), ROUNDS);
    CHECK(atomic_load(&c.asked) > 0);
    fixture_close(&c.f);
}

static void *changes_password(void *arg) {
    struct crowd *c = arg;
    struct iggy_identifier id = iggy_by_id(c->id);
    if (users_change_password(c->f.users, &id, STR(PASSWORD), STR("fresh one")) == 0)
        atomic_fetch_add(&c->logins, 1);
    return NULL;
}

TEST(of_two_changes_of_a_password_at_once_one_is_too_late) {
    static struct crowd c;
    pthread_t threads[2];
    fixture_open(&c.f, test_dir());
    c.id = create_good(&c.f, "twice");
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, changes_password, &c), 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(atomic_load(&c.logins), 1);
    fixture_close(&c.f);
}

/* ---- no memory ---- */

/* As TEST_OOM, but with a store that is opened outside, where no allocation fails. step returns whether it was done. */
static void oom_loop(struct fixture *f, bool (*step)(struct fixture *f, int nth)) {
    for (int nth = 1; nth < 1000; nth++) {
        mem_fail_at(nth);
        bool done = step(f, nth);
        bool unharmed = mem_fail_pending();
        mem_fail_at(0);
        CHECK(done || !unharmed);
        if (unharmed)
            return;
    }
    fail_msg("it never runs out of allocations");
}

static bool open_users(struct fixture *f, int nth) {
    (void)nth;
    struct users *u = NULL;
    char generated[USERS_PASSWORD_BYTES];
    enum status st = users_open(f->store, ROOT, PASSWORD, &u, generated);
    CHECK(st == ST_OK || st == ST_NO_MEMORY);
    CHECK_EQ(st == ST_OK, u != NULL);
    users_close(u);
    return st == ST_OK;
}

TEST(opening_without_memory_fails_and_makes_root_later) {
    struct fixture f = {.store = open_store(test_dir())};
    oom_loop(&f, open_users);
    store_close(f.store);
}

TEST(opening_many_rows_without_memory_leaves_nothing) {
    struct fixture f;
    char token[USERS_TOKEN_BYTES];
    fixture_open(&f, test_dir());
    struct iggy_identifier alice = named("alice");
    struct iggy_permissions p = {.read_users = true};
    uint32_t id = create_good(&f, "alice");
    CHECK_EQ(users_set_permissions(f.users, &alice, &p), 0);
    CHECK_EQ(users_create_token(f.users, id, STR("token"), 0, token), 0);
    oom_loop(&f, open_users);
    fixture_close(&f);
}

static bool create_one(struct fixture *f, int nth) {
    char name[24];
    uint32_t id;
    struct iggy_permissions p = {.read_users = true};
    snprintf(name, sizeof name, "user%d", nth);
    struct iggy_create_user_req in = {.username = str_of(name),
                                      .password = STR(PASSWORD),
                                      .status = IGGY_USER_ACTIVE,
                                      .has_permissions = true,
                                      .permissions = p};
    uint32_t code = users_create(f->users, &in, &id);
    mem_fail_at(mem_fail_pending() ? 1000000 : 0); /* whether it was done can be asked in peace */
    CHECK(code == 0 || code == IGGY_ERR_TRANSIENT_NOT_ACCEPTED);
    CHECK_EQ(is_there(f, name), code == 0);
    return code == 0;
}

TEST(a_user_that_could_not_be_made_for_want_of_memory_is_not_there) {
    struct fixture f;
    fixture_open(&f, test_dir());
    oom_loop(&f, create_one);
    fixture_reopen(&f);
    CHECK(!is_there(&f, "user1"));
    fixture_close(&f);
}

static bool change_one(struct fixture *f, int nth) {
    char name[24], token[USERS_TOKEN_BYTES];
    struct iggy_identifier id = iggy_by_id(1);
    struct iggy_permissions p = {.read_users = nth % 2 == 1};
    bool was = users_may(f->users, 1, ACTION_READ_USERS, 0, 0);
    uint32_t code = users_set_permissions(f->users, &id, &p);
    CHECK(code == 0 || code == IGGY_ERR_TRANSIENT_NOT_ACCEPTED);
    CHECK_EQ(users_may(f->users, 1, ACTION_READ_USERS, 0, 0), code == 0 ? p.read_users : was);
    snprintf(name, sizeof name, "token%d", nth);
    uint32_t token_code = users_create_token(f->users, 1, str_of(name), 0, token);
    CHECK(token_code == 0 || token_code == IGGY_ERR_TRANSIENT_NOT_ACCEPTED);
    uint32_t who, login_code = users_login_token(f->users, str_of(token), &who);
    CHECK_EQ(login_code, token_code == 0 ? 0 : IGGY_ERR_INVALID_PERSONAL_ACCESS_TOKEN);
    return code == 0 && token_code == 0;
}

TEST(changes_without_memory_change_nothing) {
    struct fixture f;
    fixture_open(&f, test_dir());
    CHECK_EQ(create_good(&f, "alice"), 1);
    oom_loop(&f, change_one);
    fixture_close(&f);
}
