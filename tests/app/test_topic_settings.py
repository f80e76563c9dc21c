"""Settings of topics that are changed while the server runs (D9-7, D9-10), and what they do then."""

import time

import pytest
from kwire import Conn, batch, list_offset, mktopic, perr, produce
from server import Server

WAIT_SECS = 60
KEYLESS = {"recs": [(b"k", b"1"), (None, b"2"), (b"", b"3"), (None, b"4")]}
COMPLAINT = "Compacted topic cannot accept message without key in topic partition orders-0"


def alter(conn, key, verb, value):
    configs = [{"name": key, "op": verb, "value": value}]
    answer = conn.rq("IncrementalAlterConfigs", 1, {"res": [{"type": 2, "name": "orders", "configs": configs}]})
    return answer["res"][0]["err"]


@pytest.mark.parametrize("codec", (None, "gzip"))
def test_a_topic_that_is_to_be_compacted_refuses_records_without_keys_and_names_them(codec):  # D6-3, D6-15
    with Server(ACCEPT_COMPACT="true") as server:
        conn = Conn(server.bootstrap)
        assert mktopic(conn, "orders") == 0
        records = batch(codec=codec, **KEYLESS)
        assert perr(produce(conn, [("orders", 0, records)], v=8))["err"] == 0
        assert alter(conn, "cleanup.policy", 2, "compact") == 0
        assert "topic asks for compaction, which is never done" in server.log()
        refused = perr(produce(conn, [("orders", 0, records)], v=8))
        assert (refused["err"], refused["base"]) == (87, -1)
        assert [(error["i"], error["msg"]) for error in refused["recerr"]] == [(1, COMPLAINT), (3, COMPLAINT)]
        assert perr(produce(conn, [("orders", 0, batch(n=2))], v=8))["base"] == 4  # with keys
        assert alter(conn, "cleanup.policy", 3, "compact") == 0
        assert perr(produce(conn, [("orders", 0, records)], v=8))["base"] == 6
        conn.close()


def test_a_setting_is_there_after_a_crash_and_retention_obeys_it():  # D9-11
    with Server(SEGMENT_BYTES="1MiB") as server:
        conn = Conn(server.bootstrap)
        assert mktopic(conn, "orders") == 0
        records = batch(recs=[(b"k", b"v" * 400_000)], codec=None)
        for _ in range(8):
            assert perr(produce(conn, [("orders", 0, records)]))["err"] == 0
        assert alter(conn, "retention.bytes", 0, "1000000") == 0
        conn.close()
        server.kill()
        server.start()  # retention looks at once then, else each minute
        conn = Conn(server.bootstrap)
        deadline = time.monotonic() + WAIT_SECS
        while (start := list_offset(conn, "orders", 0, -2)["off"]) < 4 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert start == 4  # two batches a segment: the last two segments hold a million bytes
        assert list_offset(conn, "orders", 0, -1)["off"] == 8
        conn.close()
