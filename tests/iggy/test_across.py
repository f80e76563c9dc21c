"""One log, both sides: what Kafka clients write every SDK reads as docs/MAPPING.md says, and what SDKs write Kafka clients read."""

import importlib.machinery
import importlib.util
import json
import os
import struct
import subprocess
import sys
import time

import pytest
from sdk import PASSWORD, SDKS, USER, Client, eventually, message, offsets, payloads

CLIENTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "clients")
sys.path.insert(0, CLIENTS)
from records import FIRST_MS, STEP_MS, Record, data_set  # noqa: E402

STREAM = "kafka"
KAFKA = ["java-4.4", "librdkafka-current"]


def clients_run():
    """tests/clients/run, which knows how each Kafka client is started."""
    loader = importlib.machinery.SourceFileLoader("clients_run", os.path.join(CLIENTS, "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("clients_run", loader))
    loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def kafka_clients(server, logs):
    run = clients_run()
    started = {client: run.start(client, server.bootstrap, logs) for client in KAFKA}
    yield started
    for driver in started.values():
        driver.close()


@pytest.fixture(params=KAFKA)
def kafka(request, kafka_clients):
    return kafka_clients[request.param]


@pytest.fixture(scope="module")
def sdks(server, logs):
    """All SDKs at once, logged in."""
    clients = {}
    for sdk in SDKS:
        clients[sdk] = Client(sdk, server.iggy_address, f"{logs}/{sdk}.err")
        clients[sdk].login(user=USER, password=PASSWORD)
    yield clients
    for client in clients.values():
        client.close()


# ---- the mapping of docs/MAPPING.md, once more ----

MARK = ["string", "kafka.v", "raw", "01"]


def fits(record):
    """Whether user headers can hold the record's key and headers."""
    names = [name.encode() for name, _ in record.headers]
    if record.key is not None and not 1 <= len(record.key) <= 255:
        return False
    if names != sorted(set(names)) or any(len(name) > 247 for name in names):
        return False
    return all(value is not None and 1 <= len(value) <= 255 for _, value in record.headers)


def envelope(record):
    def sized(data):
        return struct.pack("<I", len(data)) + data

    flags = (record.key is not None) + 2 * (record.value is not None)
    out = bytes([flags]) + sized(record.key or b"") + sized(record.value or b"") + struct.pack("<I", len(record.headers))
    for name, value in record.headers:
        out += sized(name.encode()) + bytes([value is not None]) + sized(value or b"")
    return out


def as_message(record):
    """(payload, user headers) that an SDK must see."""
    if not fits(record):
        return envelope(record), sorted([["string", "kafka.envelope", "raw", "01"], MARK])
    headers = [["string", "kafka.h." + name, "raw", value.hex()] for name, value in record.headers] + [MARK]
    if record.key is not None:
        headers.append(["string", "kafka.key", "raw", record.key.hex()])
    if not record.value:
        headers.append(["string", "kafka.value", "raw", (b"null" if record.value is None else b"empty").hex()])
    return record.value or b"\0", sorted(headers)


def header_bytes(kind, text):
    """A user header's value as a Kafka header's."""
    formats = {"int8": "<b", "uint8": "<B", "int16": "<h", "uint16": "<H", "int32": "<i", "uint32": "<I", "int64": "<q", "uint64": "<Q"}
    if kind == "raw":
        return bytes.fromhex(text)
    if kind == "string":
        return text.encode()
    if kind == "bool":
        return b"\1" if text == "true" else b"\0"
    if kind.startswith("float"):
        return struct.pack("<f" if kind == "float32" else "<d", float(text))
    if kind in formats:
        return struct.pack(formats[kind], int(text))
    return int(text).to_bytes(16, "little", signed=kind == "int128")


ALL_KINDS = [
    ("string", "text", "string", "plain, größer"),
    ("string", "raw", "raw", "00ff80"),
    ("string", "yes", "bool", "true"),
    ("string", "i8", "int8", "-128"),
    ("string", "i16", "int16", "-2"),
    ("string", "i32", "int32", "-5"),
    ("string", "i64", "int64", "-9223372036854775808"),
    ("string", "i128", "int128", "-1"),
    ("string", "u8", "uint8", "255"),
    ("string", "u16", "uint16", "65535"),
    ("string", "u32", "uint32", "7"),
    ("string", "u64", "uint64", "18446744073709551615"),
    ("string", "u128", "uint128", str(2**128 - 1)),
    ("string", "f32", "float32", "-0.5"),
    ("string", "f64", "float64", "1.25"),
]


def sdk_messages(sdk):
    """What every SDK can send: with and without headers, and what only looks as if the gateway had written it."""
    return [
        message(f"{sdk} 0"),
        message(b"\x00\xff\x80" * 50, ALL_KINDS),
        message("not text", [("raw", "fffe", "string", "left out"), ("string", "kept", "string", "v")]),
        message("looks like", [("string", "kafka.key", "raw", "6b"), ("string", "kafka.value", "string", "null")]),
        message("x" * 100_000, [("string", "k" * 200, "raw", "61" * 255)]),
    ]


def expected_headers(sent):
    found = []
    for key_kind, key, value_kind, value in sent["headers"]:
        if key_kind == "string":
            found.append((key, header_bytes(value_kind, value)))
    return sorted(found)


def poll_all(client, topic, partition, count, stream=STREAM):
    found = []
    while len(found) < count:
        at = len(found)
        some = client.poll(stream=stream, topic=topic, partition=partition, consumer="reader", how="offset", value=at, count=count - at)
        assert some, f"only {at} of {count} messages in partition {partition}"
        found += some
    return found


def check_same(record, offset, seen):
    payload, headers = as_message(record)
    assert (seen["offset"], bytes.fromhex(seen["payload"]), seen["headers"]) == (offset, payload, headers)
    if record.timestamp is not None:
        assert seen["origin"] == record.timestamp * 1000


# ---- topics ----


def test_topics_are_the_same_on_both_sides(kafka, root, name):
    kafka.create(name, 3)
    assert name in root.topics(stream=STREAM)
    assert len(root.topic(stream=STREAM, topic=name)["partitions"]) == 3
    root.add_partitions(stream=STREAM, topic=name, count=1)
    eventually("four partitions on the Kafka side", lambda: kafka.topics().get(name) == 4)
    root.create_topic(stream=STREAM, topic=name + "-i", partitions=2)
    eventually("the SDK's topic on the Kafka side", lambda: kafka.topics().get(name + "-i") == 2)
    kafka.delete(name + "-i")
    eventually("gone on the Iggy side", lambda: root.topic(stream=STREAM, topic=name + "-i") is None)
    root.delete_topic(stream=STREAM, topic=name)
    eventually("gone on the Kafka side", lambda: name not in kafka.topics())


def test_topics_of_other_streams_are_not_kafka_topics(kafka_clients, root, stream, name):
    root.create_topic(stream=stream, topic=name + "-elsewhere", partitions=1)
    root.create_topic(stream=STREAM, topic=name, partitions=1)
    kafka = kafka_clients["librdkafka-current"]
    eventually("the topic of the stream kafka", lambda: name in kafka.topics())
    assert name + "-elsewhere" not in kafka.topics()
    root.delete_topic(stream=STREAM, topic=name)


# ---- Kafka clients write ----


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_sdk_polls_what_a_kafka_client_wrote_at_the_same_offsets(kafka, codec, sdks, name):
    kafka.create(name, 3)
    sent = data_set(kafka.can)
    positions = kafka.produce(name, sent, codec)
    expected = {}
    for record, (partition, offset) in zip(sent, positions):
        expected.setdefault(partition, []).append((offset, record))
    assert sorted(expected) == [0, 1, 2]
    for sdk, client in sdks.items():
        for partition, records in expected.items():
            found = poll_all(client, name, partition, len(records))
            for (offset, record), seen in zip(records, found):
                check_same(record, offset, seen)
    kafka.delete(name)


@pytest.mark.parametrize("sdk", ["rust-0.12"], indirect=True)
def test_one_fetch_reads_all_partitions_that_a_kafka_client_wrote(kafka, root, name):
    kafka.create(name, 3)
    sent = data_set(kafka.can)
    kafka.produce(name, sent, "lz4")
    found = root.fetch(stream=STREAM, topic=name, consumer="c", partitions=3, count=len(sent))
    for partition in range(3):
        own = [seen for seen in found if seen["partition"] == partition]
        records = [record for record in sent if record.partition == partition]
        assert len(own) == len(records)
        for offset, (record, seen) in enumerate(zip(records, own)):
            check_same(record, offset, seen)
    kafka.delete(name)


def test_an_idempotent_producers_records_are_there_once(kafka, sdks, name):
    kafka.create(name, 1)
    sent = [Record(0, b"k%d" % index, b"v%d" % index) for index in range(500)]
    kafka.produce(name, sent, "lz4", -1, True)
    for client in sdks.values():
        found = poll_all(client, name, 0, 500)
        assert payloads(found) == [record.value for record in sent]
        assert client.poll(stream=STREAM, topic=name, partition=0, consumer="c", how="offset", value=500, count=1) == []
    kafka.delete(name)


def kcat(server, *options, input=None):
    command = ["kcat", "-b", server.bootstrap, "-m", "10", *options]
    done = subprocess.run(command, input=input, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr[-300:]
    return done.stdout


def test_every_sdk_polls_what_kcat_wrote(server, kafka_clients, sdks, name):
    kafka_clients["librdkafka-current"].create(name, 1)
    kcat(server, "-P", "-t", name, "-K:", "-z", "zstd", "-H", "a=1", "-H", "b=2", input="k:value\n")
    kcat(server, "-P", "-t", name, "-K:", "-Z", input="k:\n")
    kcat(server, "-P", "-t", name, input="alone\n")
    kcat(server, "-P", "-t", name, "-H", "b=2", "-H", "a=1", input="headers out of order\n")
    records = [
        Record(0, b"k", b"value", (("a", b"1"), ("b", b"2"))),
        Record(0, b"k", None),
        Record(0, None, b"alone"),
        Record(0, None, b"headers out of order", (("b", b"2"), ("a", b"1"))),
    ]
    for client in sdks.values():
        for offset, (record, seen) in enumerate(zip(records, poll_all(client, name, 0, 4))):
            check_same(record, offset, seen)
    kafka_clients["librdkafka-current"].delete(name)


# ---- SDKs write ----


def check_record(sent, offset, record):
    assert (record.offset, record.key, record.value) == (offset, None, bytes.fromhex(sent["payload"]))
    assert sorted(record.headers) == expected_headers(sent)


def test_kafka_clients_read_what_every_sdk_sent(kafka, sdks, name):
    kafka.create(name, 1)
    sent, before = [], int(time.time() * 1000)
    for sdk, client in sdks.items():
        messages = sdk_messages(sdk)
        assert client.send(stream=STREAM, topic=name, to={"partition": 0}, messages=messages) == [0, len(sent)]
        sent += messages
    records = kafka.consume(name, 0, 0, len(sent))
    assert len(records) == len(sent)
    for offset, (one, record) in enumerate(zip(sent, records)):
        check_record(one, offset, record)
        assert before - 1000 <= record.timestamp <= time.time() * 1000 + 1000
    middle = kafka.consume(name, 0, 7, 3)
    assert [record.offset for record in middle] == [7, 8, 9]
    kafka.delete(name)


def test_kcat_reads_what_every_sdk_sent(server, kafka_clients, sdks, name):
    kafka_clients["librdkafka-current"].create(name, 1)
    for sdk, client in sdks.items():
        client.send(stream=STREAM, topic=name, to={"partition": 0}, messages=[message(sdk, [("string", "n", "string", sdk)])])
    lines = kcat(server, "-C", "-q", "-e", "-t", name, "-o", "beginning", "-J").splitlines()
    found = [json.loads(text) for text in lines]
    assert [(one["offset"], one["payload"], one["key"], one["headers"]) for one in found] == [
        (offset, sdk, None, ["n", sdk]) for offset, sdk in enumerate(sdks)
    ]
    kafka_clients["librdkafka-current"].delete(name)


def test_messages_in_the_gateways_form_are_records_with_their_keys(kafka, sdks, name):
    """What Apache's own gateway writes into Iggy."""
    kafka.create(name, 1)
    records = [
        Record(0, b"key", b"value", (("a", b"1"), ("b", b"\x00\xff"))),
        Record(0, None, b"no key"),
        Record(0, b"k", None),
        Record(0, b"k", b""),
        Record(0, b"", b"v", (("n", None), ("n", b""))),
    ]
    sent = 0
    for client in sdks.values():
        messages = [message(payload, headers) for payload, headers in map(as_message, records)]
        assert client.send(stream=STREAM, topic=name, to={"partition": 0}, messages=messages) == [0, sent]
        sent += len(records)
    for index, record in enumerate(kafka.consume(name, 0, 0, sent)):
        wanted = records[index % len(records)]
        assert (record.offset, record.key, record.value, record.headers) == (index, wanted.key, wanted.value, wanted.headers)
    kafka.delete(name)


@pytest.mark.parametrize("sdk", ["rust-0.12"], indirect=True)
def test_an_idempotent_sdk_writes_once_into_a_kafka_topic(kafka, root, name):
    kafka.create(name, 1)
    for start in (0, 5):
        messages = [message(f"m{index}") for index in range(start, start + 5)]
        root.produce(stream=STREAM, topic=name, to={"partition": 0}, messages=messages, idempotent=True)
    assert [record.value for record in kafka.consume(name, 0, 0, 10)] == [b"m%d" % index for index in range(10)]
    assert kafka.offset(name, 0, "latest") == 10
    kafka.delete(name)


# ---- both write ----


def test_both_sides_write_in_turn_and_both_read_everything(kafka, sdks, name):
    kafka.create(name, 1)
    sent = []
    for turn in range(12):
        for sdk, client in sdks.items():
            batch = [message(f"{sdk} {turn} {index}", [("string", "turn", "uint32", str(turn))]) for index in range(turn % 3 + 1)]
            assert client.send(stream=STREAM, topic=name, to={"partition": 0}, messages=batch) == [0, len(sent)]
            sent += batch
            records = [Record(0, b"k", b"kafka %d %d" % (turn, index), (("turn", b"%d" % turn),)) for index in range(turn % 4 + 1)]
            positions = kafka.produce(name, records, ["none", "lz4"][turn % 2])
            assert positions == [(0, len(sent) + index) for index in range(len(records))]
            sent += records
    for start in (0, 1, len(sent) // 2, len(sent) - 1):
        found = kafka.consume(name, 0, start, len(sent) - start)
        assert len(found) == len(sent) - start
        for offset, (one, record) in enumerate(zip(sent[start:], found), start):
            if isinstance(one, Record):
                assert (record.offset, record.key, record.value, record.headers) == (offset, one.key, one.value, one.headers)
            else:
                check_record(one, offset, record)
    for client in sdks.values():
        found = poll_all(client, name, 0, len(sent))
        for offset, (one, seen) in enumerate(zip(sent, found)):
            if isinstance(one, Record):
                check_same(one, offset, seen)
            else:
                assert (seen["offset"], seen["payload"], seen["headers"]) == (offset, one["payload"], sorted(one["headers"]))
        for at in (1, len(sent) // 3, len(sent) - 2):
            few = client.poll(stream=STREAM, topic=name, partition=0, consumer="c", how="offset", value=at, count=2)
            assert offsets(few) == [at, at + 1]
            assert few == found[at : at + 2]
        assert client.poll(stream=STREAM, topic=name, partition=0, consumer="c", how="last", count=5) == found[-5:]
    assert kafka.offset(name, 0, "latest") == len(sent)
    kafka.delete(name)


def test_kafka_finds_messages_of_sdks_by_time(kafka, root, name):
    kafka.create(name, 1)
    kafka.produce(name, [Record(0, b"k", b"old %d" % index, (), FIRST_MS + index * STEP_MS) for index in range(5)])
    before = int(time.time() * 1000)
    root.send(stream=STREAM, topic=name, to={"partition": 0}, messages=[message("new 0"), message("new 1")])
    assert kafka.offset(name, 0, FIRST_MS + 3 * STEP_MS) == 3
    assert kafka.offset(name, 0, before - 60_000) == 5
    kafka.delete(name)


def test_records_that_a_kafka_client_deletes_are_gone_for_every_sdk(kafka_clients, sdks, name):
    """The log starts within a batch of a Kafka client, then within one of an SDK, then at its end."""
    kafka = kafka_clients["java-4.4"]
    kafka.create(name, 1)
    kafka.produce(name, [Record(0, b"k", b"%d" % index) for index in range(10)])
    next(iter(sdks.values())).send(stream=STREAM, topic=name, to={"partition": 0}, messages=[message(str(index)) for index in range(10, 13)])
    for start in (4, 11):
        assert kafka.trim(name, 0, start) == start
        for client in sdks.values():
            for how in ({"how": "first"}, {"how": "offset", "value": 0}, {"how": "timestamp", "value": 0}):
                found = client.poll(stream=STREAM, topic=name, partition=0, consumer="c", count=2, **how)
                assert payloads(found) == [b"%d" % offset for offset in offsets(found)] and offsets(found) == [start, start + 1]
        assert [record.value for record in kafka.consume(name, 0, start, 13 - start)] == [b"%d" % offset for offset in range(start, 13)]
    assert kafka.trim(name, 0, -1) == 13
    for client in sdks.values():
        assert client.poll(stream=STREAM, topic=name, partition=0, consumer="c", how="first", count=1) == []
    kafka.delete(name)


@pytest.mark.parametrize("sdk", ["rust-0.12"], indirect=True)
def test_a_poll_that_waits_is_woken_by_a_kafka_producer(kafka, connect, name):
    kafka.create(name, 1)
    waiter = connect()
    began = time.monotonic()
    waiter.begin("poll", stream=STREAM, topic=name, partition=0, consumer="c", how="first", count=10, wait_ms=15_000)
    kafka.produce(name, [Record(0, b"k", b"wake up")])
    assert payloads(waiter.end()) == [b"wake up"]
    assert time.monotonic() - began < 10
    kafka.delete(name)


def test_a_consumer_that_waits_is_woken_by_an_sdk(server, kafka_clients, root, name):
    kafka_clients["librdkafka-current"].create(name, 1)
    root.send(stream=STREAM, topic=name, to={"partition": 0}, messages=[message("first")])
    command = ["kcat", "-b", server.bootstrap, "-C", "-q", "-u", "-t", name, "-o", "beginning", "-c", "2", "-X", "fetch.wait.max.ms=20000"]
    command += ["-X", "socket.timeout.ms=30000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout.readline() == "first\n"
        began = time.monotonic()
        root.send(stream=STREAM, topic=name, to={"partition": 0}, messages=[message("second")])
        assert reader.stdout.readline() == "second\n"
        assert time.monotonic() - began < 10
        assert reader.wait(30) == 0
    kafka_clients["librdkafka-current"].delete(name)
