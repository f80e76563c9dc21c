/*
 * ApiVersions, v0-v5: what this server serves. Answered before anything else is known of the client.
 *
 * - An unsupported version gets 35 in a version 0 body with the list, and the connection stays (KIP-511, B-32).
 * - v3: a software name or version outside KIP-511's pattern gets 42 and no list, as on Kafka.
 * - v5: a client that believes it talks to another cluster or node is sent back to its bootstrap list (KIP-1242).
 * - No features: nothing here is finalized, and transaction.version must never be listed (B-35).
 */
#include "kafka/request.h"

static bool is_alphanumeric(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* [a-zA-Z0-9] at both ends, and '-' and '.' between. Source: KIP-511. */
static bool software_is_valid(struct str s) {
    if (s.len <= 0 || !is_alphanumeric(s.ptr[0]) || !is_alphanumeric(s.ptr[s.len - 1]))
        return false;
    for (int32_t i = 0; i < s.len; i++)
        if (!is_alphanumeric(s.ptr[i]) && s.ptr[i] != '-' && s.ptr[i] != '.')
            return false;
    return true;
}

static bool is_misrouted(const struct request *r) {
    const struct api_versions_req *in = api_versions_in(r);
    return (in->cluster_id.len >= 0 && !str_equal(in->cluster_id, r->kafka->cluster_id)) ||
           (in->node_id >= 0 && in->node_id != r->kafka->node_id);
}

static int16_t api_versions_error(const struct request *r) {
    const struct api_versions_req *in = api_versions_in(r);
    if (!in)
        return KERR_UNSUPPORTED_VERSION;
    if (r->version >= 3 &&
        (!software_is_valid(in->client_software_name) || !software_is_valid(in->client_software_version)))
        return KERR_INVALID_REQUEST;
    return is_misrouted(r) ? KERR_REBOOTSTRAP_REQUIRED : KERR_NONE;
}

void api_versions_handle(struct request *r) {
    struct api_versions_res out = {.error_code = api_versions_error(r), .finalized_features_epoch = -1};
    if (out.error_code == KERR_NONE || out.error_code == KERR_UNSUPPORTED_VERSION) {
        int32_t count;
        const struct api *rows = api_all(&count);
        out.api_keys = request_array(r, struct api_versions_res_api, count);
        if (!out.api_keys)
            return;
        for (int32_t i = 0; i < count; i++)
            if (api_is_served(&rows[i], r->kafka->settings.backend))
                out.api_keys[out.api_keys_count++] =
                    (struct api_versions_res_api){.api_key = rows[i].key,
                                                  .min_version = rows[i].listed_min,
                                                  .max_version = rows[i].version_max};
    }
    if (out.error_code ==
        KERR_UNSUPPORTED_VERSION) { /* only version 0 can be read by everyone; the list says up to where */
        const struct api *self = api_find(r->api->key);
        out.api_keys[0] = (struct api_versions_res_api){self->key, self->version_min, self->version_max};
        out.api_keys_count = 1;
        request_reply_as(r, 0, &out);
    } else {
        api_versions_reply(r, &out);
    }
}
