"""Sending and polling: payloads, headers and ids, every place to poll from, offsets."""

import threading
import time

import pytest
from sdk import eventually, message, offsets, payloads

KINDS = [
    ("string", "text", "string", "plain text, größer"),
    ("string", "raw", "raw", "00ff80"),
    ("string", "yes", "bool", "true"),
    ("string", "no", "bool", "false"),
    ("string", "i8", "int8", "-128"),
    ("string", "i16", "int16", "-32768"),
    ("string", "i32", "int32", "-2147483648"),
    ("string", "i64", "int64", "-9223372036854775808"),
    ("string", "i128", "int128", str(-(2**127))),
    ("string", "u8", "uint8", "255"),
    ("string", "u16", "uint16", "65535"),
    ("string", "u32", "uint32", "4294967295"),
    ("string", "u64", "uint64", "18446744073709551615"),
    ("string", "u128", "uint128", str(2**128 - 1)),
    ("string", "f32", "float32", "-0.5"),
    ("string", "f64", "float64", "1.25"),
    ("raw", "fffe", "string", "a key that is no text"),
    ("uint32", "7", "string", "a key that is a number"),
    ("string", "k" * 255, "raw", "61" * 255),
]


def fill(client, stream, topic, count, partition=0, start=0):
    sent = [message(f"m{index}") for index in range(start, start + count)]
    return client.send(stream=stream, topic=topic, to={"partition": partition}, messages=sent)


def read(client, stream, topic, partition=0, **arguments):
    return client.poll(stream=stream, topic=topic, partition=partition, **({"consumer": "c", "how": "first", "count": 100} | arguments))


def test_a_message_comes_back_as_it_was_sent(root, stream, topic):
    before = int(time.time() * 1_000_000)
    sent = [message(b"\x00\xff binary", KINDS, id=2**128 - 1), message("second", id=7), message("third")]
    assert root.send(stream=stream, topic=topic, to={"partition": 1}, messages=sent) == [1, 0]
    found = read(root, stream, topic, 1)
    after = int(time.time() * 1_000_000)
    assert payloads(found) == [b"\x00\xff binary", b"second", b"third"]
    assert [(one["partition"], one["offset"]) for one in found] == [(1, 0), (1, 1), (1, 2)]
    assert [one["id"] for one in found][:2] == [str(2**128 - 1), "7"]
    assert found[0]["headers"] == sorted(list(header) for header in KINDS)
    assert found[1]["headers"] == found[2]["headers"] == []
    for one in found:
        assert before - 1_000_000 <= one["origin"] <= after + 1_000_000
        assert before - 1_000_000 <= one["timestamp"] <= after + 1_000_000


def test_every_send_is_answered_with_its_partition_and_first_offset(root, stream, topic):
    assert [fill(root, stream, topic, count, partition) for count, partition in ((3, 0), (2, 2), (1, 0), (4, 2))] == [[0, 0], [2, 0], [0, 3], [2, 2]]
    assert root.topic(stream=stream, topic=topic)["messages"] == 10


def test_a_large_batch_and_large_messages_come_back_whole(root, stream, topic):
    many = [message(f"{index:04d}" * 25) for index in range(1000)]
    assert root.send(stream=stream, topic=topic, to={"partition": 0}, messages=many) == [0, 0]
    assert payloads(read(root, stream, topic, count=1000)) == [b"%04d" % index * 25 for index in range(1000)]
    large = bytes(range(256)) * 4096 * 4
    root.send(stream=stream, topic=topic, to={"partition": 1}, messages=[message(large), message(large[::-1])])
    # An SDK of 0.12.2 asks for some MiB at a time, so that one poll may bring only the first.
    both = [read(root, stream, topic, 1, how="offset", value=offset, count=1) for offset in (0, 1)]
    assert [payloads(one) for one in both] == [[large], [large[::-1]]]


def test_polls_begin_where_they_say(root, stream, topic):
    for start in range(0, 30, 10):
        fill(root, stream, topic, 10, start=start)
    assert offsets(read(root, stream, topic, how="first", count=4)) == [0, 1, 2, 3]
    assert offsets(read(root, stream, topic, how="offset", value=7, count=5)) == [7, 8, 9, 10, 11]
    assert offsets(read(root, stream, topic, how="offset", value=29, count=5)) == [29]
    assert offsets(read(root, stream, topic, how="offset", value=30, count=5)) == []
    assert offsets(read(root, stream, topic, how="offset", value=3000, count=5)) == []
    assert offsets(read(root, stream, topic, how="last", count=3)) == [27, 28, 29]
    assert offsets(read(root, stream, topic, how="last", count=100)) == list(range(30))
    assert payloads(read(root, stream, topic, how="last", count=1)) == [b"m29"]


def test_a_poll_by_time_begins_with_the_first_batch_stored_at_that_time_or_later(root, stream, topic):
    fill(root, stream, topic, 5)
    eventually("some milliseconds", lambda: read(root, stream, topic, how="last")[0]["timestamp"] < int(time.time() * 1_000_000) - 20_000)
    fill(root, stream, topic, 5, start=5)
    second = read(root, stream, topic, how="offset", value=5)[0]["timestamp"]
    assert offsets(read(root, stream, topic, how="timestamp", value=second)) == [5, 6, 7, 8, 9]
    assert offsets(read(root, stream, topic, how="timestamp", value=second - 10_000)) == [5, 6, 7, 8, 9]
    assert offsets(read(root, stream, topic, how="timestamp", value=second + 1)) == []
    assert offsets(read(root, stream, topic, how="timestamp", value=0)) == list(range(10))
    assert offsets(read(root, stream, topic, how="timestamp", value=second + 3_600_000_000)) == []


def test_an_empty_partition_gives_nothing(root, stream, topic):
    for how in ("first", "last", "next", "offset", "timestamp"):
        assert read(root, stream, topic, how=how) == []


def test_next_goes_on_after_the_stored_offset(root, stream, topic):
    fill(root, stream, topic, 10)
    assert offsets(read(root, stream, topic, how="next", count=3)) == [0, 1, 2]
    root.store_offset(stream=stream, topic=topic, partition=0, consumer="c", offset=6)
    assert offsets(read(root, stream, topic, how="next", count=3)) == [7, 8, 9]
    assert offsets(read(root, stream, topic, how="next", consumer="another", count=2)) == [0, 1]
    root.store_offset(stream=stream, topic=topic, partition=0, consumer="c", offset=9)
    assert read(root, stream, topic, how="next", count=3) == []


def test_auto_commit_stores_the_last_offset_that_was_polled(root, stream, topic):
    fill(root, stream, topic, 10)
    place = {"stream": stream, "topic": topic, "partition": 0, "consumer": "c"}
    for first in (0, 4, 8):
        assert offsets(read(root, stream, topic, how="next", count=4, commit=True)) == list(range(first, min(first + 4, 10)))
        eventually("stored", lambda: root.get_offset(**place) == min(first + 3, 9))
    assert read(root, stream, topic, how="next", count=4, commit=True) == []
    assert root.get_offset(**place) == 9


def test_offsets_are_stored_read_and_deleted(root, stream, topic):
    fill(root, stream, topic, 10, partition=1)
    place = {"stream": stream, "topic": topic, "partition": 1, "consumer": "c"}
    assert root.get_offset(**place) is None
    for offset in (9, 0, 5):  # going back is allowed
        root.store_offset(**place, offset=offset)
        assert root.get_offset(**place) == offset
    assert root.get_offset(**place | {"partition": 0}) is None
    assert root.get_offset(**place | {"consumer": "other"}) is None
    root.delete_offset(**place)
    assert root.get_offset(**place) is None
    assert root.refusal("delete_offset", **place) == 3021


def test_an_offset_beyond_the_end_is_refused(root, stream, topic):
    place = {"stream": stream, "topic": topic, "consumer": "c"}
    assert root.refusal("store_offset", **place, partition=0, offset=0) == 4100
    fill(root, stream, topic, 3)
    assert root.refusal("store_offset", **place, partition=0, offset=3) == 4100
    root.store_offset(**place, partition=0, offset=2)
    assert root.get_offset(**place, partition=0) == 2


@pytest.mark.parametrize("sdk", ["python-0.12", "rust-0.12"], indirect=True)
def test_an_external_group_keeps_any_number_for_an_existing_group(root, stream, topic):
    place = {"stream": stream, "topic": topic, "partition": 2, "consumer": "kafka.cg.g", "kind": 3}
    assert root.get_offset(**place) is None
    assert root.refusal("store_offset", **place, offset=1) == 5003
    root.create_group(stream=stream, topic=topic, group="kafka.cg.g")
    for offset in (0, 2**62, 17):  # no check against the partition, which is empty
        root.store_offset(**place, offset=offset)
        assert root.get_offset(**place) == offset
    root.delete_offset(**place)
    assert root.get_offset(**place) is None
    root.store_offset(**place, offset=5)
    root.delete_group(stream=stream, topic=topic, group="kafka.cg.g")
    root.create_group(stream=stream, topic=topic, group="kafka.cg.g")
    assert root.get_offset(**place) is None


def test_balanced_sends_reach_every_partition_in_turn(root, stream, topic):
    reached = [root.send(stream=stream, topic=topic, to="balanced", messages=[message("x")])[0] for _ in range(6)]
    assert sorted(reached) == [0, 0, 1, 1, 2, 2]


def test_equal_keys_go_to_one_partition(root, stream, topic):
    """XXH32("customer-42") is 0xdb669110, of three partitions the third; "a" is 0x550d7456, the first."""
    for key, partition in (("customer-42", 2), ("a", 0), ("customer-42", 2)):
        assert root.send(stream=stream, topic=topic, to={"key": key.encode().hex()}, messages=[message(key)])[0] == partition


def test_the_high_level_producer_and_consumer_work_together(root, connect, stream, topic):
    sent = [message(f"p{index}", [("string", "n", "uint32", str(index))]) for index in range(20)]
    root.produce(stream=stream, topic=topic, to={"partition": 1}, messages=sent)
    consumer = connect()
    found = consumer.consume(stream=stream, topic=topic, group="readers", count=20)
    assert [(one["partition"], one["offset"], one["payload"]) for one in found] == [(1, index, sent[index]["payload"]) for index in range(20)]
    assert found[19]["headers"] == [["string", "n", "uint32", "19"]]
    group = {"stream": stream, "topic": topic, "partition": 1, "consumer": "readers", "kind": 2}
    eventually("the offset of the last message is stored", lambda: root.get_offset(**group) == 19)


@pytest.mark.parametrize("on_read", [False, True], ids=["commits-after", "commits-on-read"])
def test_a_consumer_that_waits_on_all_partitions_gets_what_comes_to_any(root, connect, stream, topic, on_read):
    consumer = connect()
    consumer.begin("consume", stream=stream, topic=topic, group="readers", count=6, on_read=on_read)
    eventually("a member with all partitions", lambda: (root.group(stream=stream, topic=topic, group="readers") or {}).get("members") == [[0, 1, 2]])
    for partition in (2, 0, 1, 0, 2, 1):
        fill(root, stream, topic, 1, partition)
    found = consumer.end()
    assert sorted((one["partition"], one["offset"]) for one in found) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]


@pytest.mark.parametrize("sdk", ["rust-0.12"], indirect=True)
class TestOnlyTheNewestSdk:
    def test_an_idempotent_producer_writes_once_and_in_order(self, root, stream, topic):
        for start in (0, 3, 6):
            sent = [message(f"i{index}") for index in range(start, start + 3)]
            root.produce(stream=stream, topic=topic, to={"partition": 2}, messages=sent, idempotent=True)
        assert payloads(read(root, stream, topic, 2)) == [b"i%d" % index for index in range(9)]

    def test_one_fetch_reads_all_partitions(self, root, stream, topic):
        for partition in range(3):
            fill(root, stream, topic, 50, partition, start=partition * 100)
        found = root.fetch(stream=stream, topic=topic, consumer="c", partitions=3, count=150)
        for partition in range(3):
            own = [one for one in found if one["partition"] == partition]
            assert offsets(own) == list(range(50))
            assert payloads(own) == [b"m%d" % index for index in range(partition * 100, partition * 100 + 50)]

    def test_a_poll_that_waits_is_answered_when_a_message_comes(self, root, connect, stream, topic):
        waiter = connect()
        began = time.monotonic()
        place = {"stream": stream, "topic": topic, "partition": 0, "consumer": "c", "how": "first", "count": 10}
        waiter.begin("poll", **place, wait_ms=15_000)
        # Without a message it stays silent, with one it is answered long before its time is over.
        threading.Event().wait(0.3)
        assert waiter.lines.empty()
        fill(root, stream, topic, 2)
        assert payloads(waiter.end()) == [b"m0", b"m1"]
        assert time.monotonic() - began < 10

    def test_a_poll_that_waits_in_vain_ends_with_nothing(self, root, stream, topic):
        assert root.poll(stream=stream, topic=topic, partition=0, consumer="c", how="first", count=10, wait_ms=200) == []
