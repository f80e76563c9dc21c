/*
 * login_start -> [waits for its turn] -> login_on_pool: password or token -> login_on_checked: the session -> reply
 * The connection waits with it. A refusal is an Eviction, and the connection stays open for another try.
 */
#include "iggy/login.h"
#include "base/logging.h"
#include "iggy/codec.h"
#include "iggy_server/request_impl.h"
#include "net/loop.h"
#include "users/users.h"

#define LOGINS_AT_ONCE 4 /* Argon2: each takes a core and some 20 MB */

/* server_request.state */
struct login_check {
    struct iggy_login in;
    uint32_t code; /* of users_login; 0: user_id is good */
    uint32_t user_id;
};

bool version_is_let_in(const struct iggy_server *s, uint32_t version) {
    if (version >> 10 == IGGY_0_11 >> 10)
        version = IGGY_0_11; /* every patch of it is the same */
    return iggy_version_is_known(version) && s->settings.version_least <= version &&
           version <= s->settings.version_newest;
}

/* What we say that we speak: the client's version, but for the patches of 0.11. */
static uint32_t version_shown(uint32_t version) {
    return version < IGGY_0_12_0 ? IGGY_0_11 : version;
}

static struct iggy_login_res login_answer(const struct server_request *r, const struct session *session) {
    return (struct iggy_login_res){.user_id = session->user_id,
                                   .session = session->number,
                                   .protocol = version_shown(r->version),
                                   .server_version = STR(KGW_VERSION)};
}

static struct session_login session_wanted(const struct server_request *r, const struct iggy_u128 *client_id,
                                           const struct iggy_secret *secret) {
    const struct client *c = r->client;
    return (struct session_login){.client_id = *client_id,
                                  .secret = *secret,
                                  .version = r->version,
                                  .client_number = c->number,
                                  .address = c->conn ? conn_peer(c->conn) : "",
                                  .before = c->session};
}

/* The connection has its session. */
static void login_done(struct server_request *r, struct session *session) {
    client_set_session(r->client, session, r->version);
    r->session = session;
    session_ref(session);
    log_line(LOG_DEBUG, "iggy", "logged in", LINT("user", session->user_id), LINT("session", session->number),
             LINT("protocol", r->version), LTEXT("peer", r->client->conn ? conn_peer(r->client->conn) : ""));
    struct iggy_login_res res = login_answer(r, session);
    request_answer(r, &res);
}

/* ---- checked ---- */

static uint8_t reason_of(uint32_t code) {
    switch (code) {
    case IGGY_ERR_INVALID_CREDENTIALS:
    case IGGY_ERR_INVALID_USERNAME:
    case IGGY_ERR_INVALID_PASSWORD:
        return IGGY_EVICTED_INVALID_CREDENTIALS;
    case IGGY_ERR_INVALID_PERSONAL_ACCESS_TOKEN:
    case IGGY_ERR_PERSONAL_ACCESS_TOKEN_EXPIRED:
        return IGGY_EVICTED_INVALID_TOKEN;
    case IGGY_ERR_USER_INACTIVE:
        return IGGY_EVICTED_USER_INACTIVE;
    default:
        return IGGY_EVICTED_SESSION_ERROR;
    }
}

static void login_on_checked(struct op *op) {
    struct server_request *r = container_of(op, struct server_request, hop);
    const struct login_check *check = r->state;
    const struct iggy_secret *secret =
        check->in.by_token ? &check->in.token.bind_secret : &check->in.password.bind_secret;
    struct session_login wanted = session_wanted(r, &r->header.client, secret);
    struct session *session = NULL;
    wanted.user_id = check->user_id;
    if (check->code != 0) {
        request_evict(r, reason_of(check->code));
        return;
    }
    if (!r->client->conn) { /* nobody would end the session again */
        request_evict(r, IGGY_EVICTED_NO_SESSION);
        return;
    }
    enum status st = session_log_in(r->server->sessions, &wanted, &session);
    if (st == ST_DENIED)
        request_evict(r, IGGY_EVICTED_SESSION_ERROR);
    else if (st)
        request_refuse_early(r, IGGY_ERR_TRANSIENT_NOT_ACCEPTED);
    else
        login_done(r, session);
}

/* ---- being checked ---- */

static void login_on_pool(struct work *w);

/* One is done: the next one's turn. */
static void logins_next(struct iggy_logins *logins) {
    pthread_mutex_lock(&logins->lock);
    struct link *next = list_pop_head(&logins->waiting);
    if (!next)
        logins->running--;
    pthread_mutex_unlock(&logins->lock);
    if (next)
        work_submit(container_of(next, struct work, link), login_on_pool);
}

static void login_on_pool(struct work *w) {
    struct server_request *r = container_of(w, struct server_request, work);
    struct iggy_logins *logins = &r->server->logins;
    struct users *users = r->server->settings.users;
    struct login_check *check = r->state;
    if (request_must_end(r)) /* nobody waits for it any more */
        check->code = IGGY_ERR_DISCONNECTED;
    else if (check->in.by_token)
        check->code = users_login_token(users, check->in.token.token, &check->user_id);
    else
        check->code =
            users_login(users, check->in.password.username, check->in.password.password, &check->user_id);
    op_init(&r->hop, r->loop, login_on_checked);
    loop_post(&r->hop);
    logins_next(logins);
}

static void login_submit(struct server_request *r) {
    struct iggy_logins *logins = &r->server->logins;
    pthread_mutex_lock(&logins->lock);
    bool waits = logins->running >= LOGINS_AT_ONCE;
    if (waits)
        list_push_tail(&logins->waiting, &r->work.link);
    else
        logins->running++;
    pthread_mutex_unlock(&logins->lock);
    if (!waits)
        work_submit(&r->work, login_on_pool);
}

/* ---- in ---- */

void login_start(struct server_request *r) {
    struct login_check *check = request_array(r, struct login_check, 1);
    if (!check)
        return;
    r->state = check;
    r->command = iggy_command_by_code(IGGY_CMD_login_password, IGGY_0_11);
    enum status st = iggy_login_decode(r->body, &check->in);
    r->version = check->in.protocol;
    bool too_short = r->body.len < 4;
    if (!iggy_request_is_sound(&r->header))
        request_refuse_early(r, IGGY_ERR_INVALID_FORMAT);
    else if (!too_short && !version_is_let_in(r->server, r->version))
        request_evict(r, IGGY_EVICTED_INCOMPATIBLE_PROTOCOL);
    else if (r->version < IGGY_0_12_0 && !iggy_request_checksum_is_good(&r->header, r->body))
        request_refuse_early(r, IGGY_ERR_INVALID_FORMAT);
    else if (st)
        request_evict(r, IGGY_EVICTED_MALFORMED_LOGIN);
    else {
        r->alone = true;
        client_run_alone(r->client);
        login_submit(r);
    }
}

/* P12: a session moves here from a connection that was lost. Refusals make the client log in. */
void bind_start(struct server_request *r) {
    struct iggy_bind_session_req in;
    struct session *session = NULL;
    enum status st = iggy_decode(iggy_bind_session_req_schema(), r->version, r->body, &r->arena, &in);
    if (st) {
        request_refuse_early(r, IGGY_ERR_INVALID_COMMAND);
        return;
    }
    r->version = in.client.protocol;
    if (r->version < IGGY_0_12_0 || !version_is_let_in(r->server, r->version)) {
        request_evict(r, IGGY_EVICTED_INCOMPATIBLE_PROTOCOL);
        return;
    }
    struct session_login wanted = session_wanted(r, &in.client_id, &in.bind_secret);
    if (session_bind(r->server->sessions, &wanted, in.session, &session))
        request_evict(r, IGGY_EVICTED_NO_SESSION);
    else
        login_done(r, session);
}
