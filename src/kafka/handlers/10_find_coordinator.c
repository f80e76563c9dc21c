/*
 * FindCoordinator, v0-v6: who keeps a group's state. One node, so it is this one, whatever the key.
 *
 * - v4 asks for several keys at once (KIP-699); repeated ones are answered repeatedly, as on Kafka.
 * - Transactions (key type 1) are refused with 53, a code no client retries; share groups and other types with
 *   42 (D11-2).
 */
#include "kafka/request.h"

#define SEVERAL_KEYS_FROM 4

enum key_type { KEY_GROUP = 0, KEY_TRANSACTION = 1 };

static int16_t key_type_error(int8_t type) {
    if (type == KEY_GROUP)
        return KERR_NONE;
    return type == KEY_TRANSACTION ? KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED : KERR_INVALID_REQUEST;
}

/* With success Kafka says NONE up to v3, and nothing from v4 on. */
static struct str key_type_message(const struct request *r, int16_t code) {
    switch (code) {
    case KERR_NONE:
        return r->version < SEVERAL_KEYS_FROM ? STR("NONE") : STR("");
    case KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return STR("Transactions are not supported.");
    default:
        return STR("Only groups have a coordinator here.");
    }
}

void find_coordinator_handle(struct request *r) {
    const struct find_coordinator_req *in = find_coordinator_in(r);
    int16_t code = key_type_error(in->key_type);
    struct find_coordinator_res_coordinator one = {.node_id = code ? -1 : r->kafka->node_id,
                                                   .host = code ? STR("") : r->kafka->advertised_host,
                                                   .port = code ? -1 : r->kafka->advertised_port,
                                                   .error_code = code,
                                                   .error_message = key_type_message(r, code)};
    struct find_coordinator_res out = {.error_code = code,
                                       .error_message = one.error_message,
                                       .node_id = one.node_id,
                                       .host = one.host,
                                       .port = one.port};
    if (r->version >= SEVERAL_KEYS_FROM) {
        int32_t count = in->coordinator_keys.count;
        out.coordinators = request_array(r, struct find_coordinator_res_coordinator, count);
        if (!out.coordinators)
            return;
        out.coordinators_count = count;
        for (int32_t i = 0; i < count; i++) {
            out.coordinators[i] = one;
            out.coordinators[i].key = in->coordinator_keys.items[i];
        }
    }
    find_coordinator_reply(r, &out);
}
