"""The stub backend: what a server without storage answers, for every version of every API that it serves.

It is switched on by BACKEND=stub or by BRIDGE_ENABLED=false; every test runs with both.
"""
import os
import struct
import subprocess

import pytest
from kwire import CLOSED, Conn, batch
from server import Server

SERVED = {"Produce": (3, 13), "Fetch": (4, 18), "ListOffsets": (1, 11), "Metadata": (0, 13),
          "OffsetCommit": (2, 9), "OffsetFetch": (1, 9), "FindCoordinator": (0, 6),
          "JoinGroup": (0, 9), "Heartbeat": (0, 4), "LeaveGroup": (0, 5), "SyncGroup": (0, 5), "DescribeGroups": (0, 6), "ListGroups": (0, 5),
          "ApiVersions": (0, 5), "CreateTopics": (2, 7), "DeleteTopics": (1, 6), "DeleteRecords": (0, 2), "InitProducerId": (0, 5),
          "OffsetForLeaderEpoch": (2, 4), "DescribeConfigs": (1, 4), "AlterConfigs": (0, 2), "CreatePartitions": (0, 3),
          "DeleteGroups": (0, 3), "IncrementalAlterConfigs": (0, 1), "OffsetDelete": (0, 0),
          "DescribeCluster": (0, 2), "ConsumerGroupHeartbeat": (0, 1), "ConsumerGroupDescribe": (0, 1),
          "DescribeTopicPartitions": (0, 0)}
INSTANCE = 6
NODE = INSTANCE + 1
ID = "11" * 16
NOT_ASKED = -2147483648
BAD_NAMES = ("", "a b", "..", "x" * 250)


@pytest.fixture(scope="module", params=[{"BACKEND": "stub"}, {"BRIDGE_ENABLED": "false"}], ids=["backend", "bridge"])
def server(request):
    with Server(INSTANCE_ID=INSTANCE, CLUSTER_ID="testing", **request.param) as running:
        yield running


@pytest.fixture
def conn(server):
    connection = Conn(server.bootstrap)
    yield connection
    connection.close()


def versions(api):
    return pytest.mark.parametrize("v", range(SERVED[api][0], SERVED[api][1] + 1))


def was_silent(conn):
    """Answers leave in order, and each is checked for its correlation id: what comes next must be of the next request."""
    return conn.alive() == "open"


def check_broker(conn, broker):
    assert (broker["id"], broker["host"], broker["port"], broker.get("rack")) == (NODE, *conn.addr, None)


# ---- Produce ----


def produce_body(v, records, acks=-1, names=("t", "a b"), **more):
    """Two partitions of each name; ids where the version has them."""
    return more | {"acks": acks, "timeout": 1000, "topics": [
        {"id" if v >= 13 else "name": (f"{i}" * 32 if v >= 13 else name), "parts": [{"p": 0, "rec": records}, {"p": -7, "rec": records}]}
        for i, name in enumerate(names, 1)]}


def produce_codes(answer):
    for topic in answer["topics"]:
        for part in topic["parts"]:
            assert (part["base"], part["lat"], part.get("lso", -1), part.get("recerr", [])) == (-1, -1, -1, [])
    return [part["err"] for topic in answer["topics"] for part in topic["parts"]]


@versions("Produce")
def test_produce_is_6_on_every_partition_whatever_is_in_it(conn, v):  # D1-33; D1-2 is looked at by backends that store
    for acks in (1, -1, 2):
        for records in (batch(), b"", None, b"no batch at all" * 10):
            assert produce_codes(conn.rq("Produce", v, produce_body(v, records, acks))) == [6] * 4
    assert conn.rq("Produce", v, produce_body(v, b"", names=()))["topics"] == []  # D1-20


@versions("Produce")
def test_produce_of_a_transaction_is_35_and_stays_open(conn, v):  # D1-1
    for acks in (1, -1, 2):
        assert produce_codes(conn.rq("Produce", v, produce_body(v, batch(), acks, txid="tx"))) == [35] * 4
    assert produce_codes(conn.rq("Produce", v, produce_body(v, batch(), txid=""))) == [6] * 4
    assert conn.alive() == "open"


@versions("Produce")
def test_produce_with_acks_0_is_silent_and_of_a_transaction_closes(conn, v):  # D1-1, D1-22
    conn.send("Produce", v, produce_body(v, batch(), 0))
    assert was_silent(conn)
    conn.send("Produce", v, produce_body(v, batch(), 0, txid="tx"))
    assert conn.recv() == CLOSED


@pytest.mark.parametrize("v", (0, 1, 2))
def test_old_produce_is_silent_with_acks_0_or_without_any_and_else_closes(server, v):  # B-36
    for body in (struct.pack(">h", 0) + b"rest", struct.pack(">h", 0), b"", b"\0", b"\1"):
        conn = Conn(server.bootstrap)
        conn.send("Produce", v, body)
        assert was_silent(conn), body
        conn.close()
    for acks in (1, -1, 2, 256):
        conn = Conn(server.bootstrap)
        conn.send("Produce", v, struct.pack(">h", acks) + b"rest")
        assert conn.recv() == CLOSED, acks
        conn.close()


# ---- Fetch, ListOffsets, OffsetForLeaderEpoch ----


def fetch_body(v, part=None, name="t", **more):
    topic = {"id": ID} if v >= 13 else {"name": name}
    return {"wait": 20000, "min": 1, "topics": [topic | {"parts": [{"p": p, "off": 0} | (part or {}) for p in (0, 1, -1)]}]} | more


@versions("Fetch")
def test_fetch_is_6_on_every_partition_at_once(conn, v):  # D2
    bodies = [fetch_body(v), fetch_body(v, {"off": -9}), fetch_body(v, {"max": -1}), fetch_body(v, max=-1), fetch_body(v, min=0, wait=0)]
    if v < 13:
        bodies += [fetch_body(v, name=name) for name in BAD_NAMES]
    if v >= 9:
        bodies.append(fetch_body(v, {"cle": 5}))
    for body in bodies:
        answer = conn.rq("Fetch", v, body)
        assert answer.get("err", 0) == 0 and answer.get("sid", 0) == 0
        assert len(answer["topics"]) == 1 and [part["p"] for part in answer["topics"][0]["parts"]] == [0, 1, -1]
        for part in answer["topics"][0]["parts"]:
            assert part["err"] == 6, body
            assert (part["hw"], part["lstable"], part.get("lso", -1), part.get("prr", -1), part["rec"]) == (-1, -1, -1, -1, b"")


@pytest.mark.parametrize("v", range(7, 19))
def test_fetch_knows_no_sessions(conn, v):  # D2-5
    answer = conn.rq("Fetch", v, fetch_body(v, sid=5, sep=1))
    assert (answer["err"], answer["sid"], answer["topics"]) == (70, 0, [])
    assert conn.rq("Fetch", v, fetch_body(v, sid=5, sep=0))["topics"][0]["parts"][0]["err"] == 6


@versions("DeleteRecords")
def test_delete_records_is_6_on_what_may_be_a_topic(conn, v):  # D16-4
    answer = conn.rq("DeleteRecords", v, {"topics": [{"name": name, "parts": [{"p": p, "off": -1} for p in (0, 9)]} for name in ("t", "a b")]})
    assert [(part["err"], part["low"]) for topic in answer["topics"] for part in topic["parts"]] == [(6, -1), (6, -1), (3, -1), (3, -1)]


@versions("ListOffsets")
def test_list_offsets_is_6(conn, v):  # D3-6
    for name in ("t", *BAD_NAMES):
        for time in (-1, -2, 0, 1700000000000):
            parts = conn.rq("ListOffsets", v, {"topics": [{"name": name, "parts": [{"p": p, "ts": time} for p in (0, 9)]}]})["topics"][0]["parts"]
            assert [(part["p"], part["err"], part["off"], part["ts"], part.get("epoch", -1)) for part in parts] == \
                [(0, 6, -1, -1, -1), (9, 6, -1, -1, -1)]


@versions("OffsetForLeaderEpoch")
def test_offset_for_leader_epoch_is_6(conn, v):
    answer = conn.rq("OffsetForLeaderEpoch", v, {"topics": [{"name": "t", "parts": [{"p": 0, "cle": 3, "epoch": 0}]}]})
    assert answer["topics"][0]["parts"] == [{"err": 6, "p": 0, "epoch": -1, "end": -1}]


# ---- Metadata, DescribeCluster, DescribeTopicPartitions ----


@versions("Metadata")
def test_metadata_has_the_broker_and_no_topic(conn, v):  # D4-1, D4-2, D4-8
    names = ("t", "u", *BAD_NAMES)
    answer = conn.rq("Metadata", v, {"topics": [{"name": name} for name in ("t", *names)], "auto": True})
    assert len(answer["brokers"]) == 1
    check_broker(conn, answer["brokers"][0])
    assert (answer.get("controller", NODE), answer.get("cluster", "testing"), answer.get("err", 0)) == (NODE, "testing", 0)
    assert sorted((topic["name"], topic["err"], len(topic["parts"])) for topic in answer["topics"]) == sorted((name, 3, 0) for name in names)
    for everything in ([], None) if v > 0 else ([],):
        answer = conn.rq("Metadata", v, {"topics": everything})
        assert answer["topics"] == [] and len(answer["brokers"]) == 1


@pytest.mark.parametrize("v", (12, 13))
def test_metadata_by_id_is_100(conn, v):  # D4-3
    topic = conn.rq("Metadata", v, {"topics": [{"id": ID, "name": None}]})["topics"][0]
    assert (topic["err"], topic["name"], topic["id"], topic["parts"]) == (100, None, ID, [])


@versions("DescribeCluster")
def test_describe_cluster_is_this_node(conn, v):
    answer = conn.rq("DescribeCluster", v, {})
    assert (answer["err"], answer["msg"], answer["cluster"], answer["controller"], answer["cops"]) == (0, None, "testing", NODE, NOT_ASKED)
    assert len(answer["brokers"]) == 1
    check_broker(conn, answer["brokers"][0])
    assert conn.rq("DescribeCluster", v, {"cops": True})["cops"] > 0
    for kind, code in ((2, 114), (3, 115)) if v >= 1 else ():
        answer = conn.rq("DescribeCluster", v, {"etype": kind})
        assert (answer["err"], answer["brokers"]) == (code, [])


def test_describe_topic_partitions_finds_nothing(conn):  # D4-8
    answer = conn.rq("DescribeTopicPartitions", 0, {"topics": [{"name": name} for name in ("b", "a", "b")]})
    assert [(topic["name"], topic["err"], topic["parts"]) for topic in answer["topics"]] == [("a", 3, []), ("b", 3, [])]
    assert conn.rq("DescribeTopicPartitions", 0, {"topics": []})["topics"] == []


# ---- topics and settings ----


def topic(name, n=1, rf=1, **more):
    return {"name": name, "n": n, "rf": rf} | more


@versions("CreateTopics")
def test_create_topics_is_41_where_it_could_be_made(conn, v):  # D6-2, D6-5, D6-12
    good = [topic("one"), topic("many", 1000), topic("a.b"), topic("standard", -1, -1), topic("kept", configs=[{"name": "retention.ms", "value": "9"}]),
            topic("assigned", -1, -1, assigns=[{"p": 0, "brokers": [NODE]}])]
    bad = {"none": (topic("none", 0), 37), "less": (topic("less", -2), 37), "more": (topic("more", 1001), 37),
           "copies": (topic("copies", 1, 3), 38), "zero": (topic("zero", 1, 0), 38), "a b": (topic("a b"), 17),
           "compact": (topic("compact", configs=[{"name": "cleanup.policy", "value": "compact"}]), 40)}
    wanted = {entry["name"]: 41 for entry in good} | {name: code for name, (_, code) in bad.items()} | {"twice": 42}
    asked = good + [entry for entry, _ in bad.values()] + [topic("twice"), topic("twice")]
    for validate in (False, True):
        answer = conn.rq("CreateTopics", v, {"topics": asked, "validate": validate})
        assert {entry["name"]: entry["err"] for entry in answer["topics"]} == wanted
        for entry in answer["topics"]:
            assert entry["msg"], entry
            assert (entry.get("n", -1), entry.get("rf", -1), entry.get("configs") or []) == (-1, -1, [])
            assert entry.get("id", "00" * 16) == "00" * 16
    answer = conn.rq("CreateTopics", v, {"topics": [topic(f"t{i}") for i in range(101)]})
    assert {entry["err"] for entry in answer["topics"]} == {44}  # D6-6
    assert conn.rq("Metadata", 1, {"topics": None})["topics"] == []


@versions("DeleteTopics")
def test_delete_topics_is_41(conn, v):  # D7-2, D7-5
    names = ("t", "u", "a b", "t")
    answer = conn.rq("DeleteTopics", v, {"topics": [{"name": name} for name in names]} if v >= 6 else {"names": list(names)})
    assert {entry["name"]: entry["err"] for entry in answer["topics"]} == {"t": 42, "u": 41, "a b": 17}
    assert all(entry["msg"] for entry in answer["topics"]) if v >= 5 else all("msg" not in entry for entry in answer["topics"])
    if v >= 6:
        answer = conn.rq("DeleteTopics", v, {"topics": [{"name": None, "id": ID}]})
        assert [(entry["name"], entry["id"], entry["err"]) for entry in answer["topics"]] == [(None, ID, 41)]


@versions("CreatePartitions")
def test_create_partitions_is_41(conn, v):  # D8-1
    for validate in (False, True):
        answer = conn.rq("CreatePartitions", v, {"topics": [{"name": "t", "count": 4}, {"name": "u", "count": 1}], "validate": validate})
        assert [(entry["name"], entry["err"]) for entry in answer["topics"]] == [("t", 41), ("u", 41)]
        assert all(entry["msg"] for entry in answer["topics"])


@versions("DescribeConfigs")
def test_describe_configs_is_41_for_topics_and_shows_the_server(conn, v):  # D9-1, D9-2
    asked = [(2, "t"), (2, "a b"), (4, str(NODE)), (4, "99"), (9, "x"), (2, "t"), (32, "g")]
    answer = conn.rq("DescribeConfigs", v, {"res": [{"type": kind, "name": name} for kind, name in asked]})
    assert [(entry["type"], entry["name"]) for entry in answer["res"]] == asked
    assert [entry["err"] for entry in answer["res"]] == [41, 41, 0, 42, 42, 41, 41]
    assert [bool(entry["configs"]) for entry in answer["res"]] == [False, False, True, False, False, False, False]
    shown = {config["name"]: config["value"] for config in answer["res"][2]["configs"]}
    assert shown["broker.id"] == str(NODE) and shown["delete.topic.enable"] == "false" and "log.segment.bytes" not in shown


@pytest.mark.parametrize("api", ("AlterConfigs", "IncrementalAlterConfigs"))
def test_no_settings_of_topics_are_changed(conn, api):  # D9-1, D9-2
    asked = [(2, "t"), (2, ""), (4, str(NODE)), (4, "99"), (9, "x")]
    configs = [{"name": "retention.ms", "value": "1"} | ({"op": 0} if api == "IncrementalAlterConfigs" else {})]
    for v in (SERVED[api][0], SERVED[api][1]):
        answer = conn.rq(api, v, {"res": [{"type": kind, "name": name, "configs": configs} for kind, name in asked]})
        assert [(entry["type"], entry["name"], entry["err"]) for entry in answer["res"]] == [(*one, err) for one, err in zip(asked, (41, 41, 42, 42, 42))]


# ---- what needs no backend ----


@versions("InitProducerId")
def test_producer_ids_are_given_out_and_no_transactions(conn, v):  # D10-1, D10-2, D10-3
    answers = [conn.rq("InitProducerId", v, {}) for _ in range(3)]
    assert [(answer["err"], answer["epoch"], answer["pid"] >> 47) for answer in answers] == [(0, 0, INSTANCE)] * 3
    assert len({answer["pid"] for answer in answers}) == 3
    refused = conn.rq("InitProducerId", v, {"txid": "tx"})
    assert (refused["err"], refused["pid"], refused["epoch"]) == (35, -1, -1)
    assert conn.alive() == "open"


@versions("FindCoordinator")
def test_this_node_coordinates_groups_and_no_transactions(conn, v):  # D11-1, D11-2
    for kind, code in ((0, 0), (1, 53), (2, 42), (9, 42)) if v >= 1 else ((0, 0),):
        answer = conn.rq("FindCoordinator", v, {"key": "g", "keys": ["g", "h"], "type": kind})
        entries = answer["coords"] if v >= 4 else [answer]
        assert [entry.get("key") for entry in entries] == (["g", "h"] if v >= 4 else [None])
        place = (-1, "", -1) if code else (NODE, *conn.addr)
        assert [(entry["err"], entry["node"], entry["host"], entry["port"]) for entry in entries] == [(code, *place)] * len(entries)


@versions("ApiVersions")
def test_api_versions_lists_what_is_served(conn, v):  # B-30, B-31, B-35, D5-1
    answer = conn.rq("ApiVersions", v, {"name": "probe", "ver": "1"})
    assert answer["err"] == 0 and not any(tag.startswith("~") and answer[tag] and tag != "~fepoch" for tag in answer)
    keys = {"Produce": 0, "Fetch": 1, "ListOffsets": 2, "Metadata": 3, "OffsetCommit": 8, "OffsetFetch": 9, "FindCoordinator": 10, "JoinGroup": 11, "Heartbeat": 12,
            "LeaveGroup": 13, "SyncGroup": 14, "DescribeGroups": 15, "ListGroups": 16, "ApiVersions": 18, "CreateTopics": 19,
            "DeleteTopics": 20, "DeleteRecords": 21, "InitProducerId": 22, "OffsetForLeaderEpoch": 23, "DescribeConfigs": 32, "AlterConfigs": 33, "CreatePartitions": 37,
            "DeleteGroups": 42, "IncrementalAlterConfigs": 44, "OffsetDelete": 47, "DescribeCluster": 60, "ConsumerGroupHeartbeat": 68, "ConsumerGroupDescribe": 69, "DescribeTopicPartitions": 75}
    wanted = [(key, 0 if api == "Produce" else SERVED[api][0], SERVED[api][1]) for api, key in keys.items()]
    assert [(entry["key"], entry["min"], entry["max"]) for entry in answer["keys"]] == wanted


def test_api_versions_of_another_version_is_35_and_stays_open(conn):  # B-32
    for v in (-1, 6, 99):
        answer = conn.rq("ApiVersions", v, b"", flex=v > 0)
        assert answer["err"] == 35 and [entry["key"] for entry in answer["keys"]] == [18]
    assert conn.alive() == "open"


def test_unserved_versions_and_keys_and_cut_bodies_close(server, conn):  # B-33, B-34, B-42
    cases = [(api, edge, b"") for api, (least, most) in SERVED.items() if api not in ("ApiVersions", "Produce") for edge in (least - 1, most + 1)]
    cases += [("Produce", -1, struct.pack(">h", 0)), ("Produce", 14, struct.pack(">h", 0))]
    cases += [(api, 0, b"") for api in ("SaslHandshake", "AlterConfigs")]
    cases += [(api, least, b"\0") for api, (least, _) in SERVED.items() if api not in ("ApiVersions", "DescribeCluster", "ListGroups")]
    for api, v, body in cases:
        other = Conn(server.bootstrap)
        other.send(api, v, body)
        assert other.recv() == CLOSED, (api, v)
        other.close()
    assert conn.alive() == "open"


def test_answers_leave_in_the_order_of_the_requests(conn):  # B-5
    conn.send("Metadata", 1, {"topics": None})
    conn.send("Produce", 7, produce_body(7, b"", 1))
    conn.send("Fetch", 11, fetch_body(11))
    conn.send("InitProducerId", 1, {})
    assert [sorted(conn.recv()) for _ in range(4)] == [["brokers", "controller", "topics"], ["throttle", "topics"],
                                                       ["err", "sid", "throttle", "topics"], ["epoch", "err", "pid", "throttle"]]


def test_kcat_sees_the_broker_and_its_record_is_not_taken(server):
    listing = subprocess.run(["kcat", "-b", server.bootstrap, "-L"], capture_output=True, text=True, timeout=20, check=True).stdout
    assert f"broker {NODE} at {server.bootstrap}" in listing and " 0 topics:" in listing
    command = ["kcat", "-b", server.bootstrap, "-P", "-t", "t", "-X", "message.timeout.ms=1000", "-X", "topic.metadata.propagation.max.ms=500"]
    assert subprocess.run(command, input="hello\n", capture_output=True, text=True, timeout=20, check=False).returncode != 0


@pytest.mark.parametrize("settings", [{"BACKEND": "stub"}, {"BRIDGE_ENABLED": "false"}], ids=["backend", "bridge"])
def test_it_says_what_it_is_keeps_nothing_and_ends_well(settings):  # A-37, B-51
    with Server(**settings) as own:
        assert " backend=stub data_dir=none " in own.log()
        conn = Conn(own.bootstrap)
        assert conn.rq("CreateTopics", 2, {"topics": [topic("t")]})["topics"][0]["err"] == 41
        assert produce_codes(conn.rq("Produce", 7, produce_body(7, batch()))) == [6] * 4
        conn.close()
        assert own.stop() == 0
        assert not os.path.exists(own.data)


def test_settings_that_disagree_stop_the_start():  # A-11
    for settings in ({"BACKEND": "embedded", "BRIDGE_ENABLED": "false"}, {"BACKEND": "stub", "BRIDGE_ENABLED": "true"}):
        own = Server(**settings)
        with pytest.raises(RuntimeError, match="BRIDGE_ENABLED"):
            own.start()
        own.__exit__(None)
