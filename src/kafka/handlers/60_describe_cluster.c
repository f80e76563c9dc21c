/*
 * DescribeCluster, v0-v2: this server as the only broker of a cluster.
 *
 * v1 asks for brokers or controllers (KIP-919): this port answers for brokers only, else 114; what is neither:
 * 115.
 */
#include "kafka/admin.h"

enum endpoint_type { ENDPOINT_BROKER = 1, ENDPOINT_CONTROLLER = 2 };

static struct describe_cluster_res cluster_refused(int8_t endpoint_type) {
    bool controller = endpoint_type == ENDPOINT_CONTROLLER;
    return (struct describe_cluster_res){
        .error_code = controller ? KERR_MISMATCHED_ENDPOINT_TYPE : KERR_UNSUPPORTED_ENDPOINT_TYPE,
        .error_message = controller
                             ? STR("The request was sent to an endpoint of type BROKER, but we wanted an "
                                   "endpoint of type CONTROLLER")
                             : STR("Unsupported endpoint type"),
        .endpoint_type = ENDPOINT_BROKER,
        .cluster_id = STR(""),
        .controller_id = -1,
        .cluster_authorized_operations = OPERATIONS_NOT_ASKED};
}

void describe_cluster_handle(struct request *r) {
    const struct describe_cluster_req *in = describe_cluster_in(r);
    const struct kafka *k = r->kafka;
    if (in->endpoint_type != ENDPOINT_BROKER) {
        struct describe_cluster_res refused = cluster_refused(in->endpoint_type);
        describe_cluster_reply(r, &refused);
        return;
    }
    struct describe_cluster_res_broker broker = {
        .broker_id = k->node_id, .host = k->advertised_host, .port = k->advertised_port, .rack = STR_NULL};
    struct describe_cluster_res out = {.error_message = STR_NULL,
                                       .endpoint_type = ENDPOINT_BROKER,
                                       .cluster_id = k->cluster_id,
                                       .controller_id = k->node_id,
                                       .brokers = &broker,
                                       .brokers_count = 1,
                                       .cluster_authorized_operations =
                                           in->include_cluster_authorized_operations ? OPERATIONS_OF_CLUSTER
                                                                                     : OPERATIONS_NOT_ASKED};
    describe_cluster_reply(r, &out);
}
