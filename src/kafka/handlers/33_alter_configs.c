/*
 * AlterConfigs, v0-v2: the settings of a topic as a whole. What isn't named is not set any more (D9-7).
 *
 *   alter_configs_handle -> alter_start (kafka/alter.h) -> alter_configs_on_altered -> answer
 */
#include "kafka/alter.h"

static void alter_configs_on_altered(struct op *op);

/* The entries of one resource. NULL: the request has been closed. */
static struct config_wish *entries_of(struct request *r, const struct alter_configs_req_resource *resource) {
    struct config_wish *entries = request_array(r, struct config_wish, resource->configs_count);
    for (int32_t i = 0; entries && i < resource->configs_count; i++) {
        const struct alter_configs_req_config *config = &resource->configs[i];
        entries[i] = (struct config_wish){config->name, config->value, CONFIG_SET};
    }
    return entries;
}

void alter_configs_handle(struct request *r) {
    const struct alter_configs_req *in = alter_configs_in(r);
    struct alter *a = alter_new(r, in->resources_count);
    if (!a)
        return;
    for (int32_t i = 0; i < in->resources_count; i++) {
        const struct alter_configs_req_resource *resource = &in->resources[i];
        const struct config_wish *entries = entries_of(r, resource);
        if (!entries)
            return;
        a->resources[i] = (struct alter_resource){.name = resource->resource_name,
                                                  .type = resource->resource_type,
                                                  .entries = entries,
                                                  .entries_count = resource->configs_count};
    }
    a->replaces = true;
    a->validate_only = in->validate_only;
    op_init(&a->op, r->loop, alter_configs_on_altered);

    request_waits_for(r, alter_configs_on_altered);
    alter_start(a);
}

static void alter_configs_on_altered(struct op *op) {
    const struct alter *a = container_of(op, struct alter, op);
    struct request *r = a->request;
    struct alter_configs_res out = {.responses_count = a->resources_count};
    out.responses = request_array(r, struct alter_configs_res_resource, a->resources_count);
    if (!out.responses)
        return;
    for (int32_t i = 0; i < a->resources_count; i++)
        out.responses[i] = (struct alter_configs_res_resource){.error_code = a->resources[i].error_code,
                                                               .error_message = a->resources[i].error_message,
                                                               .resource_type = a->resources[i].type,
                                                               .resource_name = a->resources[i].name};
    alter_configs_reply(r, &out);
}
