/* The listener as a client sees it: framing, logins, what is refused, and what is answered about the server. */
#include <sys/socket.h>
#include <unistd.h>

#include "base/le.h"
#include "base/mem.h"
#include "iggy_server/client.h"
#include "iggy_server/peer_test.h"
#include "testing/test.h"

static const uint32_t versions[] = {IGGY_0_11, IGGY_0_12_0, IGGY_0_12_1, IGGY_0_12_2};

TEST(every_version_logs_in_and_sees_where_it_is) {
    struct rig rig;
    rig_start(&rig, 0, 0);
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        struct peer p;
        struct iggy_login_res login;
        struct iggy_get_cluster_metadata_res cluster;
        peer_open(&p, &rig, versions[i], 10);
        CHECK_EQ(peer_call(&p, IGGY_CMD_ping, NULL, NULL), 0);
        CHECK_EQ(p.body.len, 0);
        peer_log_in(&p);
        peer_decode(&p, IGGY_CMD_login_password, &login);
        CHECK_EQ(login.user_id, 0);
        CHECK(login.session > 0);
        CHECK_EQ(login.protocol, versions[i]);
        CHECK(p.h.reply.commit > 0);
        CHECK_EQ(p.h.reply.operation, 1);
        CHECK_EQ(peer_call(&p, IGGY_CMD_get_cluster_metadata, NULL, &cluster), 0);
        CHECK(str_equal(cluster.name, STR(CLUSTER_ID)));
        CHECK_EQ(cluster.nodes_count, 1);
        CHECK(str_equal(cluster.nodes[0].ip, STR("127.0.0.1")));
        CHECK_EQ(cluster.nodes[0].tcp_port, rig.port);
        CHECK_EQ(cluster.nodes[0].role, 0);
        CHECK_EQ(cluster.nodes[0].status, 0);
        peer_close(&p);
    }
    rig_stop(&rig);
}
