"""Settings of topics that are changed while the server runs (D9-7, D9-10), and what they do then."""

import time

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kwire import Conn, batch, batches, fetch, list_offset, mktopic, perr, produce
from server import Server

WAIT_SECS = 60
KEYLESS = {"recs": [(b"k", b"1"), (None, b"2"), (b"", b"3"), (None, b"4")]}
COMPLAINT = "Compacted topic cannot accept message without key in topic partition orders-0"


CODECS = ("uncompressed", "gzip", "snappy", "lz4", "zstd")  # by their numbers in batches


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


def send(bootstrap, codec, topics, values):
    settings = {"compression.type": codec, "enable.idempotence": True, "linger.ms": 20, "log_level": 0}
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap} | settings)
    for topic in topics:
        for value in values:
            producer.produce(topic, value, key=value[:8], partition=0)
    assert producer.flush(WAIT_SECS) == 0


def receive(bootstrap, topics, count):
    """{topic: its first count values}"""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "-", "check.crcs": True, "log_level": 0})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0) for topic in topics])
    values, deadline = {topic: [] for topic in topics}, time.monotonic() + WAIT_SECS
    while any(len(some) < count for some in values.values()) and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message:
            assert not message.error() and message.key() == message.value()[:8]
            values[message.topic()].append(message.value())
    consumer.close()
    return values


def stored_codecs(conn, topic, end):
    """The numbers of the codecs of the topic's batches."""
    codecs, offset = set(), 0
    while offset < end:
        answer = fetch(conn, [(topic, 0, offset)])["topics"][0]["parts"][0]
        assert answer["err"] == 0 and answer["rec"]
        for stored in batches(answer["rec"]):
            codecs.add(stored["attr"] & 7)
            offset = stored["base"] + stored["lod"] + 1
    return codecs


def test_batches_are_stored_in_the_compression_of_their_topic():  # D1-16
    sent = {codec: [b"%-8s number %d of some words, &c." % (codec.encode(), i) * 3 for i in range(20)] for codec in CODECS}
    everything = [value for values in sent.values() for value in values]
    with Server() as server:
        admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0})
        topics = [NewTopic(codec, 1, 1, config={"compression.type": codec}) for codec in CODECS]
        for made in admin.create_topics(topics).values():
            made.result(WAIT_SECS)
        for codec, values in sent.items():
            send(server.bootstrap, codec.replace("uncompressed", "none"), CODECS, values)
        server.kill()
        server.start()
        conn = Conn(server.bootstrap)
        for number, topic in enumerate(CODECS):
            assert stored_codecs(conn, topic, len(everything)) == {number}
        assert receive(server.bootstrap, CODECS, len(everything)) == {topic: everything for topic in CODECS}
        conn.close()


def test_the_compression_of_a_topic_can_be_changed_and_holds_for_the_next_batch():  # D1-16, D9-10
    with Server() as server:
        conn = Conn(server.bootstrap)
        assert mktopic(conn, "orders") == 0
        records = batch(n=10, codec="gzip")
        for codec in ("lz4", "uncompressed", "producer", "zstd"):
            assert alter(conn, "compression.type", 0, codec) == 0
            assert perr(produce(conn, [("orders", 0, records)]))["err"] == 0
        assert alter(conn, "compression.type", 0, "none") == 40
        assert alter(conn, "compression.type", 1, None) == 0
        assert perr(produce(conn, [("orders", 0, records)]))["err"] == 0
        for version in (4, 11):  # zstd goes to old versions too, K3-4
            stored = batches(fetch(conn, [("orders", 0, 0)], v=version)["topics"][0]["parts"][0]["rec"])
            assert [each["attr"] for each in stored] == [3, 0, 1, 4, 1]
            assert len({tuple((r.key, r.val) for r in each["recs"]) for each in stored}) == 1
        conn.close()
