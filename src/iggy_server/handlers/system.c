/* The server and who is connected: ping 1, get_stats 10, get_cluster_metadata 12, describe_options 13, get_me 20, get_client 21, get_clients 22. */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "iggy_server/client.h"
#include "iggy_server/host.h"
#include "iggy_server/options.h"
#include "users/users.h"

#define TRANSPORT_TCP 1
#define ROLE_LEADER   0
#define NODE_HEALTHY  0

void ping_handle(struct server_request *r) {
    request_done(r);
}

/* ---- stats ---- */

static void stats_add_topic(struct topic *t, struct iggy_get_stats_res *out) {
    int32_t count = topic_partitions_count(t);
    out->topics_count++;
    out->partitions_count += (uint32_t)count;
    for (int32_t i = 0; i < count; i++) {
        struct partition *p = topic_partition(t, i);
        if (!p || partition_open(p, NULL)) /* deleted meanwhile, or damaged: it counts as empty */
            continue;
        out->segments_count += (uint32_t)partition_segments_count(p);
        out->messages_size_bytes += (uint64_t)partition_size_bytes(p);
        out->messages_count += (uint64_t)(partition_end(p) - partition_start(p));
    }
}

static enum status stats_add_store(struct store *store, struct iggy_get_stats_res *out) {
    struct stream_info *streams;
    struct topic **topics;
    int32_t streams_count, topics_count;
    enum status st = store_streams(store, &streams, &streams_count);
    if (st)
        return st;
    mem_free(streams);
    out->streams_count = (uint32_t)streams_count;
    st = store_topics_in(store, UINT32_MAX, &topics, &topics_count);
    if (st)
        return st;
    for (int32_t i = 0; i < topics_count; i++) {
        stats_add_topic(topics[i], out);
        topic_unref(topics[i]);
    }
    mem_free(topics);
    return ST_OK;
}

/* As Iggy's: 0.9.0 is 9000. */
static uint32_t version_number(const char *text) {
    char *at;
    unsigned long major = strtoul(text, &at, 10);
    unsigned long minor = *at == '.' ? strtoul(at + 1, &at, 10) : 0;
    unsigned long patch = *at == '.' ? strtoul(at + 1, &at, 10) : 0;
    return (uint32_t)(major * 1000000 + minor * 1000 + patch);
}

static void stats_add_host(const struct host *host, struct iggy_get_stats_res *out) {
    out->cpu_usage = host->cpu_percent;
    out->total_cpu_usage = host->total_cpu_percent;
    out->memory_usage_bytes = host->memory_bytes;
    out->total_memory_bytes = host->total_memory_bytes;
    out->available_memory_bytes = host->available_memory_bytes;
    out->read_bytes = host->read_bytes;
    out->written_bytes = host->written_bytes;
    out->hostname = str_of(host->names.nodename);
    out->os_name = str_of(host->names.sysname);
    out->os_version = str_of(host->names.version);
    out->kernel_version = str_of(host->names.release);
    out->threads_count = host->threads_count;
    out->free_disk_bytes = host->free_disk_bytes;
    out->total_disk_bytes = host->total_disk_bytes;
    out->open_files = host->open_files;
    out->open_files_max = host->open_files_max;
}

void get_stats_handle(struct server_request *r) {
    const struct iggy_server *s = r->server;
    uint32_t code = request_allowed(r, ACTION_READ_SERVER, 0, 0);
    if (code) {
        request_refuse(r, code);
        return;
    }
    int64_t run_us = clock_wall_ms() * 1000 - s->started_us;
    struct iggy_get_stats_res res = {.process_id = (uint32_t)getpid(),
                                     .run_time_us = run_us > 0 ? (uint64_t)run_us : 0,
                                     .start_time_us = (uint64_t)s->started_us,
                                     .clients_count = sessions_connected(s->sessions),
                                     .groups_count = groups_count(s->groups),
                                     .server_version = STR(KGW_VERSION),
                                     .server_semver = version_number(KGW_VERSION)};
    enum status st = stats_add_store(s->settings.store, &res);
    if (st) {
        request_refuse(r, code_of_status(st));
        return;
    }
    struct host host;
    host_look(s->settings.data_dir, res.run_time_us, &host);
    stats_add_host(&host, &res);
    request_answer(r, &res);
}

/* ---- the cluster: this node ---- */

/* "IP:port" or "[IPv6]:port" */
static void address_split(char *address, struct str *ip_out, uint16_t *port_out) {
    char *colon = strrchr(address, ':');
    *ip_out = (struct str){address, (int32_t)(colon ? colon - address : (ptrdiff_t)strlen(address))};
    *port_out = colon ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
    if (ip_out->len >= 2 && ip_out->ptr[0] == '[')
        *ip_out = (struct str){ip_out->ptr + 1, ip_out->len - 2};
}

/* Clients compare the leader's address with the one they have connected to, and go there if it is another. */
void get_cluster_metadata_handle(struct server_request *r) {
    char address[CONN_ADDRESS_BYTES] = "?";
    struct iggy_node node = {.name = STR("node-0"), .role = ROLE_LEADER, .status = NODE_HEALTHY};
    if (r->client->conn)
        conn_local(r->client->conn, address);
    address_split(address, &node.ip, &node.tcp_port);
    const struct iggy_get_cluster_metadata_res res = {
        .name = str_of(r->server->settings.cluster_id), .nodes = &node, .nodes_count = 1};
    request_answer(r, &res);
}

/* ---- options ---- */

static struct bytes option_default(struct server_request *r, const struct option *o) {
    if (o->standard == OPTION_STANDARD_TEXT)
        return (struct bytes){(const uint8_t *)o->text.ptr, o->text.len};
    uint8_t *room = arena_take(&r->arena, 8);
    if (!room || o->standard == OPTION_STANDARD_NONE)
        return (struct bytes){room, 0};
    return (struct bytes){room, (int32_t)option_number_bytes(o->kind, o->number, room)};
}

void describe_options_handle(struct server_request *r) {
    uint8_t scope = describe_options_in(r)->scope;
    size_t count;
    const struct option *all = options_all(&count);
    struct iggy_describe_options_res res = {.options =
                                                request_array(r, struct iggy_option_descriptor, count)};
    if (!res.options)
        return;
    for (size_t i = 0; i < count; i++) {
        const struct option *o = &all[i];
        if (o->scope != scope || !option_is_on(o, r->version))
            continue;
        res.options[res.options_count++] =
            (struct iggy_option_descriptor){.key = o->key,
                                            .kind = o->kind,
                                            .flags = o->flags,
                                            .default_value = option_default(r, o),
                                            .description = str_of(o->help)};
    }
    bool is_scope = scope >= IGGY_RESOURCE_TOPIC && scope <= IGGY_RESOURCE_USER;
    if (is_scope)
        request_answer(r, &res);
    else
        request_refuse(r, IGGY_ERR_INVALID_COMMAND);
}

/* ---- clients ---- */

static struct iggy_client_info client_info(const struct session_info *info) {
    return (struct iggy_client_info){.client_id = info->client_number,
                                     .user_id = info->user_id,
                                     .transport = TRANSPORT_TCP,
                                     .address = str_of(info->address)};
}

/* False: the request has been refused. */
static bool client_details(struct server_request *r, const struct session_info *info,
                           struct iggy_client_details *out) {
    *out = (struct iggy_client_details){.client = client_info(info)};
    enum status st =
        groups_of_session(r->server->groups, info->number, &r->arena, &out->groups, &out->groups_count);
    out->client.groups_count = out->groups_count;
    if (st)
        request_refuse(r, code_of_status(st));
    return st == ST_OK;
}

void get_me_handle(struct server_request *r) {
    struct session_info info;
    struct iggy_client_details res;
    if (!sessions_find(r->server->sessions, r->client->number, &info))
        request_refuse(r, IGGY_ERR_UNAUTHENTICATED);
    else if (client_details(r, &info, &res))
        request_answer(r, &res);
}

void get_client_handle(struct server_request *r) {
    struct session_info info;
    struct iggy_get_client_res res = {.found = true};
    uint32_t code = request_allowed(r, ACTION_READ_SERVER, 0, 0);
    if (code)
        request_refuse(r, code);
    else if (!sessions_find(r->server->sessions, get_client_in(r)->client_id, &info))
        request_not_found(r);
    else if (client_details(r, &info, &res.details))
        request_answer(r, &res);
}

void get_clients_handle(struct server_request *r) {
    struct session_info *list;
    uint32_t count, code = request_allowed(r, ACTION_READ_SERVER, 0, 0);
    if (code) {
        request_refuse(r, code);
        return;
    }
    enum status st = sessions_list(r->server->sessions, &r->arena, &list, &count);
    struct iggy_get_clients_res res = {
        .clients = st ? NULL : arena_take_array(&r->arena, struct iggy_client_info, count),
        .clients_count = count};
    for (uint32_t i = 0; res.clients && i < count; i++) {
        struct iggy_client_group *groups;
        res.clients[i] = client_info(&list[i]);
        if (groups_of_session(r->server->groups, list[i].number, &r->arena, &groups,
                              &res.clients[i].groups_count))
            res.clients = NULL;
    }
    if (!res.clients)
        request_refuse(r, IGGY_ERR_TRANSIENT_NOT_ACCEPTED);
    else
        request_answer(r, &res);
}
