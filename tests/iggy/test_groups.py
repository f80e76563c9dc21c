"""Consumer groups: made and deleted, partitions shared between members, offsets of the group."""

from sdk import eventually, message, offsets, payloads


def members(client, stream, topic, group):
    return client.group(stream=stream, topic=topic, group=group)["members"]


def drain(client, stream, topic, group, count=100):
    """Everything that a member is given until two polls in a row bring nothing."""
    found, empty = [], 0
    while empty < 2:
        some = client.poll_group(stream=stream, topic=topic, group=group, count=count, commit=True)
        found += some
        empty = 0 if some else empty + 1
    return found


def test_a_group_is_made_listed_and_deleted(root, stream, topic):
    root.create_group(stream=stream, topic=topic, group="g")
    root.create_group(stream=stream, topic=topic, group="h")
    assert root.groups(stream=stream, topic=topic) == ["g", "h"]
    found = root.group(stream=stream, topic=topic, group="g")
    assert (found["name"], found["members"]) == ("g", [])
    assert root.refusal("create_group", stream=stream, topic=topic, group="g") == 5004
    root.delete_group(stream=stream, topic=topic, group="g")
    assert root.groups(stream=stream, topic=topic) == ["h"]


def test_a_group_that_is_not_there_is_not_found(root, stream, topic):
    assert root.group(stream=stream, topic=topic, group="none") is None
    assert root.refusal("delete_group", stream=stream, topic=topic, group="none") == 5000
    assert root.refusal("join", stream=stream, topic=topic, group="none") == 5000
    assert root.refusal("create_group", stream=stream, topic="nothing", group="g") == 2010


def test_a_lone_member_is_given_every_partition(root, connect, stream, topic):
    root.create_group(stream=stream, topic=topic, group="g")
    for partition in range(3):
        root.send(stream=stream, topic=topic, to={"partition": partition}, messages=[message(f"{partition}-{index}") for index in range(5)])
    member = connect()
    member.join(stream=stream, topic=topic, group="g")
    assert members(root, stream, topic, "g") == [[0, 1, 2]]
    found = drain(member, stream, topic, "g")
    assert sorted(payloads(found)) == sorted(b"%d-%d" % (partition, index) for partition in range(3) for index in range(5))
    assert drain(member, stream, topic, "g") == []


def test_two_members_share_the_partitions_and_each_message_goes_to_one(root, connect, stream, topic):
    root.add_partitions(stream=stream, topic=topic, count=1)
    root.create_group(stream=stream, topic=topic, group="g")
    first, second = connect(), connect()
    for member in (first, second):
        member.join(stream=stream, topic=topic, group="g")
    found = {first: [], second: []}

    def shared():
        for member in found:  # a member that has to give a partition up does so when it polls
            found[member] += member.poll_group(stream=stream, topic=topic, group="g", count=10, commit=True)
        shares = members(root, stream, topic, "g")
        return [len(share) for share in shares] == [2, 2] and sorted(sum(shares, [])) == [0, 1, 2, 3]

    eventually("two partitions each", shared)
    for partition in range(4):
        root.send(stream=stream, topic=topic, to={"partition": partition}, messages=[message(f"{partition}-{index}") for index in range(5)])
    for member in found:
        found[member] += drain(member, stream, topic, "g")
    owned = [sorted({one["partition"] for one in some}) for some in found.values()]
    assert sorted(owned) == members(root, stream, topic, "g")
    everything = [payload for some in found.values() for payload in payloads(some)]
    assert sorted(everything) == sorted(b"%d-%d" % (partition, index) for partition in range(4) for index in range(5))


def test_partitions_of_a_member_that_leaves_go_to_the_others(root, connect, stream, topic):
    root.create_group(stream=stream, topic=topic, group="g")
    first, second = connect(), connect()
    for member in (first, second):
        member.join(stream=stream, topic=topic, group="g")
    assert len(members(root, stream, topic, "g")) == 2
    first.leave(stream=stream, topic=topic, group="g")

    def all_at_second():
        second.poll_group(stream=stream, topic=topic, group="g", count=1, commit=False)
        return members(root, stream, topic, "g") == [[0, 1, 2]]

    eventually("all partitions at the one that stays", all_at_second)
    assert first.refusal("leave", stream=stream, topic=topic, group="g") == 5006


def test_a_member_whose_connection_breaks_is_none_any_more(root, connect, stream, topic):
    root.create_group(stream=stream, topic=topic, group="g")
    member = connect()
    member.join(stream=stream, topic=topic, group="g")
    assert members(root, stream, topic, "g") == [[0, 1, 2]]
    member.kill()
    # A client of 0.12 has some seconds to come back and take its session up again.
    eventually("no member", lambda: members(root, stream, topic, "g") == [], 20)


def test_the_group_goes_on_where_it_stopped(root, connect, stream):
    root.create_topic(stream=stream, topic="one", partitions=1)
    root.create_group(stream=stream, topic="one", group="g")
    root.send(stream=stream, topic="one", to={"partition": 0}, messages=[message(f"m{index}") for index in range(10)])
    first = connect()
    first.join(stream=stream, topic="one", group="g")
    assert offsets(first.poll_group(stream=stream, topic="one", group="g", count=4, commit=True)) == [0, 1, 2, 3]
    first.leave(stream=stream, topic="one", group="g")
    second = connect()
    second.join(stream=stream, topic="one", group="g")
    found = []
    eventually("the rest", lambda: found.extend(second.poll_group(stream=stream, topic="one", group="g", count=10, commit=True)) or len(found) >= 6)
    assert offsets(found) == [4, 5, 6, 7, 8, 9]


def test_partitions_that_are_added_reach_the_members(root, connect, stream, topic):
    root.create_group(stream=stream, topic=topic, group="g")
    member = connect()
    member.join(stream=stream, topic=topic, group="g")
    root.add_partitions(stream=stream, topic=topic, count=2)
    assert members(root, stream, topic, "g") == [[0, 1, 2, 3, 4]]
    root.send(stream=stream, topic=topic, to={"partition": 4}, messages=[message("new")])
    found = []
    eventually("the message", lambda: found.extend(drain(member, stream, topic, "g")) or payloads(found) == [b"new"])
