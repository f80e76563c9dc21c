"""The server ends, or is killed, under two members of a group: they join again and go on at their commits. Nothing is skipped, and nothing that was
committed is read again."""

import importlib.machinery
import importlib.util
import pathlib

import pytest
from driver import ClientError
from records import Record
from report import eventually
from scenarios import Members
from server import Server

CLIENTS = pathlib.Path(__file__).resolve().parent.parent / "clients"
PARTITIONS, BEFORE, ALL = 6, 240, 480


def drivers_of(client, bootstrap, logs):
    """A function that starts one more driver process of this client's."""
    loader = importlib.machinery.SourceFileLoader("clients_run", str(CLIENTS / "run"))
    run = importlib.util.module_from_spec(importlib.util.spec_from_loader("clients_run", loader))
    loader.exec_module(run)
    return lambda: run.start(client, bootstrap, logs)


class Patient(Members):
    """The server may be away: then there is nothing to read."""

    def _poll(self, driver):
        try:
            return super()._poll(driver)
        except ClientError:
            return set(), [], False


def produced(writer, topic, numbers):
    records = [Record(number % PARTITIONS, b"k", b"%d" % number) for number in numbers]

    def done():
        try:
            return writer.produce(topic, records)
        except ClientError:
            return None

    eventually("records", done, 20)


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("client", ["confluent-kafka-python", "java-4.4", "java-3.9", "franz-go", "sarama", "kafkajs", "aiokafka", "kafka-python"])
def test_members_go_on_at_their_commits_when_the_server_is_back(client, end, tmp_path):
    with Server(str(tmp_path), GROUP_INITIAL_REBALANCE_DELAY_MS=0) as server:
        writer = drivers_of("confluent-kafka-python", server.bootstrap, tmp_path)()
        writer.create("numbers", PARTITIONS)
        members = Patient(drivers_of(client, server.bootstrap, tmp_path), "readers", "numbers", "default")
        try:
            members.join("a")
            members.join("b")
            members.until("3 partitions each", lambda: sorted(map(len, members.assigned.values())) == [3, 3])
            produced(writer, "numbers", range(BEFORE))
            members.until("a part of the records", lambda: len(members.seen) >= BEFORE // 4)
            getattr(server, end)()
            server.start()
            produced(writer, "numbers", range(BEFORE, ALL))
            members.until("3 partitions each again", lambda: sorted(map(len, members.assigned.values())) == [3, 3])
            members.until("all records", lambda: len(members.seen) == ALL)
            for name in ("a", "b"):
                members.leave(name)
        finally:
            writer.close()
            for driver in members.drivers.values():
                driver.kill()
