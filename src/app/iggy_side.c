#include "app/iggy_side.h"

#include <errno.h>
#include <stdio.h>

#include "backend/store/store_backend.h"
#include "base/logging.h"
#include "iggy_server/iggy_server.h"
#include "users/users.h"

/* Places in config.def's choices of IGGY_LISTEN_VERSIONS. */
enum listen_versions { LISTEN_ANY, LISTEN_0_11, LISTEN_0_12 };

static bool is_wanted(const struct config *c) {
    return c->backend == BACKEND_EMBEDDED && strcmp(c->iggy_listen_addr, "off") != 0;
}

/* The one place where a password is shown, since nobody has it otherwise. */
static void show_password(const char *username, char *password) {
    if (password[0])
        fprintf(
            stderr,
            "iggy-gateway-kafka: made the Iggy user %s with the password %s - it is shown this once only\n",
            username, password);
    explicit_bzero(password, strlen(password));
}

static enum status build_users(struct iggy_side *side, const struct config *c, struct store *store) {
    char generated[USERS_PASSWORD_BYTES] = "";
    enum status st = users_open(store, c->root_username, c->root_password, &side->users, generated);
    if (st)
        log_line(LOG_ERROR, "app", "can't open the Iggy users", LTEXT("data_dir", c->data_dir),
                 LTEXT("reason", status_text(st)));
    else
        show_password(c->root_username, generated);
    return st;
}

static enum status build_server(struct iggy_side *side, const struct config *c,
                                const struct iggy_side_parts *parts) {
    const struct iggy_server_settings settings = {
        .bind_address = c->iggy_listen_addr,
        .connections_max = c->max_connections,
        .read_ms = c->read_timeout_secs * 1000,
        .write_ms = c->write_timeout_secs * 1000,
        .version_least = c->iggy_listen_versions == LISTEN_0_12 ? IGGY_0_12_0 : IGGY_0_11,
        .version_newest = c->iggy_listen_versions == LISTEN_0_11 ? IGGY_0_11 : IGGY_NEWEST,
        .cluster_id = store_backend_cluster_id(parts->backend),
        .data_dir = c->data_dir,
        .store = store_backend_store(parts->backend),
        .backend = parts->backend,
        .users = side->users,
        .tls = parts->tls,
        .budget = parts->budget,
        .loops = parts->loops,
        .loops_count = parts->loops_count,
    };
    errno = 0;
    enum status st = iggy_server_new(&settings, &side->server);
    if (st)
        log_line(LOG_ERROR, "app", "can't listen for Iggy clients (IGGY_KAFKA_IGGY_LISTEN_ADDR, or off)",
                 LTEXT("address", c->iggy_listen_addr),
                 LTEXT("reason", st == ST_IO && errno != 0 ? strerror(errno) : status_text(st)));
    return st;
}

enum status iggy_side_build(struct iggy_side *side, const struct config *c,
                            const struct iggy_side_parts *parts) {
    if (!is_wanted(c))
        return ST_OK;
    enum status st = build_users(side, c, store_backend_store(parts->backend));
    return st ? st : build_server(side, c, parts);
}

void iggy_side_open(const struct iggy_side *side, const struct config *c) {
    if (!side->server)
        return;
    char bound[128];
    int host_len = (int)(strrchr(c->iggy_listen_addr, ':') - c->iggy_listen_addr);
    snprintf(bound, sizeof bound, "%.*s:%d", host_len, c->iggy_listen_addr, iggy_server_port(side->server));
    iggy_server_open(side->server);
    log_line(LOG_INFO, "app", "listening for Iggy clients", LTEXT("address", bound),
             LTEXT("tls", c->iggy_listen_tls ? "on" : "off"),
             LTEXT("versions", c->texts[CONFIG_IGGY_LISTEN_VERSIONS]));
}

bool iggy_side_stop(struct iggy_side *side, int64_t drain_ms, struct op *done) {
    if (side->server)
        iggy_server_stop(side->server, drain_ms, done);
    return side->server != NULL;
}

void iggy_side_release(struct iggy_side *side) {
    iggy_server_free(side->server);
    users_close(side->users);
    *side = (struct iggy_side){0};
}
