"""Offsets of groups that nobody uses run out, after a minute here; those of members stay (D11-67). One server and one minute for all cases."""

import time

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from server import Server

RETENTION_S, CHECK_S = 60, 6
PATIENCE_S = 90  # what a minute and a check may take on a machine that has other things to do
RECORDS = 3


class Groups:
    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self.committed_at, self.members = {}, {}

    def consumer(self, group, protocol="classic"):
        return Consumer({"bootstrap.servers": self.bootstrap, "group.id": group, "group.protocol": protocol, "enable.auto.commit": False,
                         "auto.offset.reset": "earliest"})

    def _commit(self, consumer, group, offsets):
        consumer.commit(offsets=offsets, asynchronous=False)
        self.committed_at[group] = time.monotonic()

    def commit_alone(self, group, topic):
        """As a consumer that was given its partition."""
        consumer = self.consumer(group)
        self._commit(consumer, group, [TopicPartition(topic, 0, 1)])
        consumer.close()

    def read(self, group, topic, protocol="classic"):
        """A member that reads everything and commits that; it stays."""
        consumer = self.members[group] = self.consumer(group, protocol)
        consumer.subscribe([topic])
        read, deadline = 0, time.monotonic() + 30
        while read < RECORDS and time.monotonic() < deadline:
            message = consumer.poll(0.5)
            read += bool(message and not message.error())
        assert read == RECORDS, f"{group} read {read} records"
        self._commit(consumer, group, [TopicPartition(topic, 0, RECORDS)])

    def leave(self, group):
        self.members.pop(group).close()

    def poll(self):
        """All members are alive for a moment more, and commit nothing."""
        for consumer in self.members.values():
            message = consumer.poll(0.1)
            assert not message or not message.error()

    def offsets(self, group):
        """topic -> offset of all that the group has."""
        future = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group]
        return {p.topic: p.offset for p in future.result(20).topic_partitions}

    def listed(self):
        return {group.group_id for group in self.admin.list_consumer_groups().result(20).valid}


@pytest.fixture
def server(tmp_path):
    with Server(str(tmp_path), OFFSETS_RETENTION_MINUTES=1, GROUP_INITIAL_REBALANCE_DELAY_MS=0) as running:
        yield running


def test_offsets_run_out_when_nobody_uses_them_any_more(server):
    producer = Producer({"bootstrap.servers": server.bootstrap})
    for number in range(RECORDS):
        producer.produce("numbers", b"%d" % number, partition=0)
        producer.produce("others", b"%d" % number, partition=0)
    assert producer.flush(20) == 0

    groups = Groups(server.bootstrap)
    groups.commit_alone("before", "numbers")
    server.kill()
    restarted_at = time.monotonic()
    server.start()

    groups.read("alive", "numbers")
    groups.read("alive-too", "numbers", "consumer")
    groups.commit_alone("alone", "numbers")
    groups.read("moved", "numbers")
    groups.leave("moved")
    moved_at = groups.committed_at["moved"]
    groups.read("moved", "others")
    groups.read("left", "numbers")
    left_at = time.monotonic()
    groups.leave("left")

    # Since when each counts, and what is left of it in the end.
    begins = {"before": restarted_at, "alone": groups.committed_at["alone"], "moved": moved_at, "left": left_at}
    ends = {"before": {}, "alone": {}, "moved": {"others": RECORDS}, "left": {}}
    stay = {group: {"numbers": RECORDS} for group in ("alive", "alive-too")}
    gone_at, deadline = {}, left_at + PATIENCE_S
    while len(gone_at) < len(ends) and time.monotonic() < deadline:
        groups.poll()
        for group, end in ends.items():
            if group not in gone_at and groups.offsets(group) == end:
                gone_at[group] = time.monotonic()
        for group, offsets in stay.items():
            assert groups.offsets(group) == offsets, f"{group}, {time.monotonic() - groups.committed_at[group]:.0f} s after its commit"
    lasted = {group: gone_at[group] - begins[group] for group in gone_at}
    assert set(lasted) == set(ends), f"gone after {lasted}, still there: {[(g, groups.offsets(g)) for g in set(ends) - set(lasted)]}"
    for group, seconds in lasted.items():
        assert seconds >= RETENTION_S - 1, f"{group} lasted {seconds:.1f} s"
    assert all(time.monotonic() - groups.committed_at[group] > RETENTION_S for group in stay)
    assert groups.listed() == {"alive", "alive-too", "moved"}
    assert all(f"group={group}" in server.log() or "suppressed" in server.log() for group in ends)
    for group in list(groups.members):
        groups.leave(group)
