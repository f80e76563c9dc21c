"""Settings of groups: from the answer on, after kill -9, and for members of group.protocol=consumer (D9-14 to D9-19)."""

import time

from confluent_kafka import Consumer
from kwire import Conn
from server import Server

GROUP = 32
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
SET, TAKE_BACK = 0, 1


def alter(conn, group, *entries):
    configs = [{"name": name, "op": verb, "value": value} for name, verb, value in entries]
    return conn.rq("IncrementalAlterConfigs", 1, {"res": [{"type": GROUP, "name": group, "configs": configs}], "validate": False})["res"][0]["err"]


def described(conn, group):
    """name -> (value, source)"""
    found = conn.rq("DescribeConfigs", 4, {"res": [{"type": GROUP, "name": group}], "syn": False, "doc": False})["res"][0]
    assert found["err"] == 0
    return {config["name"]: (config["value"], config["source"]) for config in found["configs"]}


def beat(conn, group, epoch):
    subscription = {"rebalance": 60000, "topics": ["t"], "owned": []} if epoch == 0 else {}
    return conn.rq("ConsumerGroupHeartbeat", 1, {"group": group, "member": f"member-of-{group}", "epoch": epoch, **subscription})


def state(conn, group):
    return {one["group"]: one["state"] for one in conn.rq("ListGroups", 5, {"states": [], "types": []})["groups"]}[group]


def test_settings_of_groups_hold_from_the_answer_on_and_survive_a_kill():
    with Server() as server:
        conn = Conn(server.bootstrap, timeout=20)
        for number in range(20):
            assert alter(conn, f"g{number}", (SESSION, SET, str(46000 + number)), (HEARTBEAT, SET, "6000")) == 0
            assert described(conn, f"g{number}") == {SESSION: (str(46000 + number), 8), HEARTBEAT: ("6000", 8)}
        assert alter(conn, "g0", (SESSION, TAKE_BACK, None), (HEARTBEAT, TAKE_BACK, None)) == 0
        assert alter(conn, "g1", (SESSION, TAKE_BACK, None), (HEARTBEAT, SET, "7000")) == 0
        server.kill()
        server.start()
        conn = Conn(server.bootstrap, timeout=20)
        assert described(conn, "g0") == {SESSION: ("45000", 5), HEARTBEAT: ("5000", 5)}
        assert described(conn, "g1") == {SESSION: ("45000", 5), HEARTBEAT: ("7000", 8)}
        assert described(conn, "g19") == {SESSION: ("46019", 8), HEARTBEAT: ("6000", 8)}
        assert beat(conn, "g1", 0)["interval"] == 7000


def test_members_follow_their_groups_settings_and_a_deleted_group_leaves_them():
    with Server(GROUP_CONSUMER_SESSION_TIMEOUT_MS=1500, GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS=500) as server:
        conn = Conn(server.bootstrap, timeout=20)
        assert described(conn, "patient") == {SESSION: ("1500", 4), HEARTBEAT: ("500", 4)}
        patient, plain = beat(conn, "patient", 0), beat(conn, "plain", 0)
        assert (patient["err"], patient["interval"], plain["interval"]) == (0, 500, 500)
        assert alter(conn, "patient", (HEARTBEAT, SET, "1500")) == 40  # not below the server's session
        assert alter(conn, "patient", (SESSION, SET, "50000"), (HEARTBEAT, SET, "1500")) == 0
        patient, plain = beat(conn, "patient", patient["epoch"]), beat(conn, "plain", plain["epoch"])
        assert (patient["interval"], plain["interval"]) == (1500, 500)
        deadline = time.monotonic() + 30
        while state(conn, "plain") != "Empty" and time.monotonic() < deadline:
            time.sleep(0.05)
        assert beat(conn, "plain", plain["epoch"])["err"] == 25
        assert beat(conn, "patient", patient["epoch"])["err"] == 0
        assert beat(conn, "patient", -1)["err"] == 0
        assert conn.rq("DeleteGroups", 2, {"groups": ["patient"]})["groups"][0]["err"] == 0
        assert described(conn, "patient") == {SESSION: ("50000", 8), HEARTBEAT: ("1500", 8)}


class Member:
    """A librdkafka consumer, and what it logs."""

    def __init__(self, bootstrap, group):
        self.lines = []
        settings = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": "consumer", "debug": "protocol"}
        self.consumer = Consumer(settings, logger=self)
        self.consumer.subscribe(["t"])

    def log(self, _, text, *arguments):
        self.lines.append(text % arguments)

    @property
    def heartbeats(self):
        return sum("Sent ConsumerGroupHeartbeatRequest" in line for line in self.lines)


def test_a_real_consumer_is_told_its_groups_heartbeat_interval():
    """librdkafka sends a heartbeat when the time is over that it was told: of two groups the one that was told less sends many meanwhile."""
    with Server(GROUP_CONSUMER_SESSION_TIMEOUT_MS=60000, GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS=200) as server:
        conn = Conn(server.bootstrap, timeout=20)
        assert alter(conn, "slow", (HEARTBEAT, SET, "15000")) == 0
        slow, quick = Member(server.bootstrap, "slow"), Member(server.bootstrap, "quick")
        deadline = time.monotonic() + 30
        while (quick.heartbeats < 12 or slow.heartbeats < 1) and time.monotonic() < deadline:
            quick.consumer.poll(0.05)
            slow.consumer.poll(0.05)
        assert quick.heartbeats >= 12
        assert 1 <= slow.heartbeats <= 4
        for member in (slow, quick):
            member.consumer.close()
