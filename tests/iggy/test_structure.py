"""Streams, topics and partitions: made, listed, changed, deleted, and refused."""

import pytest
from sdk import message, offsets, payloads

HOUR_US = 3_600_000_000


def test_a_stream_is_listed_renamed_and_deleted(root, name):
    root.create_stream(name=name)
    assert name in root.streams()
    found = root.stream(stream=name)
    assert (found["name"], found["topics"], found["messages"]) == (name, [], 0)
    root.rename_stream(stream=name, name=name + "-b")
    assert root.stream(stream=name) is None
    assert root.stream(stream=name + "-b")["id"] == found["id"]
    root.delete_stream(stream=name + "-b")
    assert not {name, name + "-b"} & set(root.streams())


def test_a_topic_is_listed_renamed_and_deleted(root, stream):
    root.create_topic(stream=stream, topic="before", partitions=3)
    root.create_topic(stream=stream, topic="other", partitions=1)
    assert root.topics(stream=stream) == ["before", "other"]
    assert root.stream(stream=stream)["topics"] == ["before", "other"]
    found = root.topic(stream=stream, topic="before")
    assert [partition["id"] for partition in found["partitions"]] == [0, 1, 2]
    assert [partition["messages"] for partition in found["partitions"]] == [0, 0, 0]
    root.update_topic(stream=stream, topic="before", name="after")
    assert root.topic(stream=stream, topic="before") is None
    assert root.topic(stream=stream, topic="after")["id"] == found["id"]
    root.delete_topic(stream=stream, topic="after")
    assert root.topics(stream=stream) == ["other"]


def test_a_renamed_topic_keeps_its_messages(root, stream, topic):
    root.send(stream=stream, topic=topic, to={"partition": 2}, messages=[message("kept")])
    root.update_topic(stream=stream, topic=topic, name="renamed")
    assert payloads(root.poll(stream=stream, topic="renamed", partition=2, consumer="c", how="first", count=10)) == [b"kept"]
    root.send(stream=stream, topic="renamed", to={"partition": 2}, messages=[message("more")])
    assert root.topic(stream=stream, topic="renamed")["messages"] == 2


def test_a_name_that_is_taken_is_refused(root, stream, topic):
    assert root.refusal("create_stream", name=stream) == 1012
    assert root.refusal("create_topic", stream=stream, topic=topic, partitions=1) == 2013
    root.create_topic(stream=stream, topic="u", partitions=1)
    assert root.refusal("update_topic", stream=stream, topic="u", name=topic) == 2013


def test_what_is_not_there_is_not_found(root, stream, topic, name):
    nowhere = name + "-nowhere"
    assert root.stream(stream=nowhere) is None
    assert root.topic(stream=stream, topic="nothing") is None
    assert root.topic(stream=nowhere, topic=topic) is None
    assert root.refusal("delete_stream", stream=nowhere) == 1009
    assert root.refusal("delete_topic", stream=stream, topic="nothing") == 2010
    assert root.refusal("delete_topic", stream=nowhere, topic=topic) == 1009
    assert root.refusal("add_partitions", stream=stream, topic="nothing", count=1) == 2010
    assert root.refusal("rename_stream", stream=nowhere, name="x") == 1009


def test_messages_to_and_from_nowhere_are_refused(root, stream, topic):
    one = [message("x")]
    # 0.12 asks for the partition's route before it sends, and so learns what is missing; 0.11 learns only that something is.
    assert root.refusal("send", stream=stream, topic="nothing", to={"partition": 0}, messages=one) in (20, 2010)
    assert root.refusal("send", stream=stream, topic=topic, to={"partition": 9}, messages=one) in (20, 3007)
    poll = {"consumer": "c", "how": "first", "count": 1}
    assert root.refusal("poll", stream="nowhere-at-all", topic=topic, partition=0, **poll) == 1009
    assert root.refusal("poll", stream=stream, topic="nothing", partition=0, **poll) == 2010
    assert root.refusal("poll", stream=stream, topic=topic, partition=9, **poll) == 3007


def test_partitions_are_added_at_the_end_and_dropped_from_it(root, stream, topic):
    root.add_partitions(stream=stream, topic=topic, count=2)
    assert [partition["id"] for partition in root.topic(stream=stream, topic=topic)["partitions"]] == [0, 1, 2, 3, 4]
    root.send(stream=stream, topic=topic, to={"partition": 4}, messages=[message("last")])
    root.send(stream=stream, topic=topic, to={"partition": 0}, messages=[message("first")])
    root.drop_partitions(stream=stream, topic=topic, count=3)
    found = root.topic(stream=stream, topic=topic)
    assert [(partition["id"], partition["messages"]) for partition in found["partitions"]] == [(0, 1), (1, 0)]
    assert root.refusal("poll", stream=stream, topic=topic, partition=4, consumer="c", how="first", count=1) == 3007


def test_a_dropped_partition_comes_back_empty(root, stream, topic):
    root.send(stream=stream, topic=topic, to={"partition": 2}, messages=[message("old")])
    root.drop_partitions(stream=stream, topic=topic, count=1)
    root.add_partitions(stream=stream, topic=topic, count=1)
    assert root.send(stream=stream, topic=topic, to={"partition": 2}, messages=[message("new")]) == [2, 0]
    assert payloads(root.poll(stream=stream, topic=topic, partition=2, consumer="c", how="first", count=10)) == [b"new"]


def test_more_than_a_thousand_partitions_at_once_are_refused(root, stream, topic):
    assert root.refusal("add_partitions", stream=stream, topic=topic, count=1001) == 2015
    assert root.refusal("create_topic", stream=stream, topic="wide", partitions=1001) == 2015


def test_the_expiry_of_a_topic_is_kept_and_changed(root, stream):
    root.create_topic(stream=stream, topic="e", partitions=1, expiry_us=HOUR_US)
    assert root.topic(stream=stream, topic="e")["expiry_us"] == HOUR_US
    root.update_topic(stream=stream, topic="e", expiry_us=2 * HOUR_US)
    assert root.topic(stream=stream, topic="e")["expiry_us"] == 2 * HOUR_US


def test_a_recreated_topic_is_another_one(root, stream, topic):
    root.send(stream=stream, topic=topic, to={"partition": 0}, messages=[message("old")])
    root.delete_topic(stream=stream, topic=topic)
    root.create_topic(stream=stream, topic=topic, partitions=1)
    assert root.poll(stream=stream, topic=topic, partition=0, consumer="c", how="first", count=10) == []
    assert root.send(stream=stream, topic=topic, to={"partition": 0}, messages=[message("new")]) == [0, 0]


@pytest.mark.parametrize("odd", ["ä-größe", "UPPER", "with space", "n" * 255])
def test_any_text_of_1_to_255_bytes_is_a_name(root, stream, odd):
    root.create_topic(stream=stream, topic=odd, partitions=1)
    assert root.topics(stream=stream) == [odd]
    assert root.send(stream=stream, topic=odd, to={"partition": 0}, messages=[message("x")]) == [0, 0]
    assert root.topic(stream=stream, topic=odd)["messages"] == 1


def test_names_differ_by_case(root, stream):
    root.create_topic(stream=stream, topic="case", partitions=1)
    root.create_topic(stream=stream, topic="CASE", partitions=2)
    assert len(root.topic(stream=stream, topic="CASE")["partitions"]) == 2


def test_a_deleted_stream_takes_its_topics_along(root, stream, topic):
    root.send(stream=stream, topic=topic, to={"partition": 0}, messages=[message("x")])
    root.delete_stream(stream=stream)
    assert root.topic(stream=stream, topic=topic) is None
    root.create_stream(name=stream)
    assert root.topics(stream=stream) == []


@pytest.mark.parametrize("sdk", ["python-0.11"], indirect=True)
def test_purging_keeps_the_topic_and_drops_its_messages(root, stream, topic):
    """Only 0.11 has this command."""
    root.send(stream=stream, topic=topic, to={"partition": 0}, messages=[message("x"), message("y")])
    root.purge_topic(stream=stream, topic=topic)
    assert root.poll(stream=stream, topic=topic, partition=0, consumer="c", how="first", count=10) == []
    assert root.topic(stream=stream, topic=topic)["messages"] == 0
    _, offset = root.send(stream=stream, topic=topic, to={"partition": 0}, messages=[message("z")])
    root.purge_stream(stream=stream)
    assert root.poll(stream=stream, topic=topic, partition=0, consumer="c", how="first", count=10) == []
    _, later = root.send(stream=stream, topic=topic, to={"partition": 0}, messages=[message("again")])
    found = root.poll(stream=stream, topic=topic, partition=0, consumer="c", how="first", count=10)
    assert (payloads(found), offsets(found)) == ([b"again"], [later])


def test_dropping_segments_never_drops_the_newest(root, stream, topic):
    root.send(stream=stream, topic=topic, to={"partition": 0}, messages=[message("x")])
    root.drop_segments(stream=stream, topic=topic, partition=0, count=1)
    assert root.send(stream=stream, topic=topic, to={"partition": 0}, messages=[message("y")]) == [0, 1]
    assert root.refusal("drop_segments", stream=stream, topic=topic, partition=9, count=1) == 3007
