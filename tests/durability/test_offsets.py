"""kill -9 while groups commit: what was confirmed is there, with its metadata, and nothing newer than what was sent (D12-1, D12-9).

env: KILL_SEED as test_kill.py.
"""

import os
import random
import threading
import time

import pytest
from bridge import GENERATIONS, Bridge
from kwire import Conn
from load import create
from server import Server

SEED = int(os.environ.get("KILL_SEED", time.time_ns() % 1_000_000))
ROUNDS = 4
TOPIC, PARTITIONS = "committed", 20
GROUPS = 4


class Committer(threading.Thread):
    """One group that commits growing offsets of random partitions, several requests in flight."""

    def __init__(self, bootstrap, group, start, seed):
        super().__init__(daemon=True)
        self.random, self.group, self.number = random.Random(seed), group, start
        self.conn = Conn(bootstrap, cid=group, timeout=20)
        self.sent, self.confirmed, self.errors = {}, {}, []
        self.stopping = False

    def _send(self):
        parts = []
        for partition in self.random.sample(range(PARTITIONS), self.random.choice((1, 3, PARTITIONS))):
            self.number += 1
            self.sent[partition] = self.number
            parts.append({"p": partition, "off": self.number, "epoch": 0, "meta": f"{self.group} {self.number}"})
        self.conn.send("OffsetCommit", 7, {"group": self.group, "gen": -1, "member": "", "topics": [{"name": TOPIC, "parts": parts}]})
        return {part["p"]: part["off"] for part in parts}

    def run(self):
        waiting = []
        while not self.stopping or waiting:
            while not self.stopping and len(waiting) < 4:
                waiting.append(self._send())
            answer = self.conn.recv()
            if isinstance(answer, str):
                return  # closed: what was sent is not confirmed
            sent = waiting.pop(0)
            for part in answer["topics"][0]["parts"]:
                if part["err"]:
                    self.errors.append(part["err"])
                else:
                    self.confirmed[part["p"]] = sent[part["p"]]
        self.conn.close()


def fetch_all(bootstrap, group):
    """partition -> (offset, metadata) of all that the group has committed."""
    conn = Conn(bootstrap, timeout=20)
    answer = conn.rq("OffsetFetch", 7, {"group": group, "topics": None, "stable": False})
    conn.close()
    assert isinstance(answer, dict) and answer["err"] == 0, answer
    return {part["p"]: (part["off"], part["meta"]) for topic in answer["topics"] for part in topic["parts"]}


def commit_until(bootstrap, seed, numbers, end):
    """Groups commit for a while; then end() kills something."""
    committers = [Committer(bootstrap, f"group-{i}", numbers[i], seed + i) for i in range(GROUPS)]
    for committer in committers:
        committer.start()
    time.sleep(random.Random(seed).uniform(0.3, 0.8))
    end()
    for committer in committers:
        committer.stopping = True
        committer.join(30)
        assert not committer.is_alive()
        numbers[int(committer.group[6:])] = committer.number
    return committers


def check(bootstrap, committers, metadata):
    for committer in committers:
        found = fetch_all(bootstrap, committer.group)
        for partition, offset in committer.confirmed.items():
            got, meta = found.get(partition, (-1, ""))
            assert offset <= got <= committer.sent[partition], f"seed {SEED}, {committer.group}-{partition}: confirmed {offset}, sent {committer.sent[partition]}, found {got}"
            assert meta == (f"{committer.group} {got}" if metadata else ""), f"seed {SEED}"


def test_confirmed_offsets_survive_kill_9():
    print(f"seed {SEED}")
    with Server() as server:
        create(server.bootstrap, TOPIC, PARTITIONS)
        numbers = [0] * GROUPS
        for number in range(ROUNDS):
            committers = commit_until(server.bootstrap, SEED + number * 10, numbers, server.kill)
            assert all(committer.confirmed and not committer.errors for committer in committers)
            server.start()
            check(server.bootstrap, committers, True)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_confirmed_offsets_survive_the_gateway_and_its_server(generation):
    print(f"seed {SEED}")
    with Bridge(generation) as bridge:
        create(bridge.bootstrap, TOPIC, PARTITIONS)
        numbers = [0] * GROUPS

        def kill_both():
            bridge.gateway.kill()
            bridge.server.kill()

        for number, end in enumerate((bridge.gateway.kill, kill_both)):
            committers = commit_until(bridge.bootstrap, SEED + number * 10, numbers, end)
            assert all(committer.confirmed and not committer.errors for committer in committers)
            if bridge.server.process.poll() is not None:
                bridge.server.start()
            bridge.gateway.start()
            check(bridge.bootstrap, committers, False)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_offsets_wait_for_a_server_that_is_away(generation):
    """A read while the server is away is an error, never no offset; afterwards all is as it was (D12-13)."""
    with Bridge(generation) as bridge:
        create(bridge.bootstrap, TOPIC, PARTITIONS)
        body = {"group": "g", "gen": -1, "member": "", "topics": [{"name": TOPIC, "parts": [{"p": 3, "off": 42, "epoch": 0, "meta": None}]}]}
        conn = Conn(bridge.bootstrap, timeout=20)
        assert conn.rq("OffsetCommit", 7, body)["topics"][0]["parts"][0]["err"] == 0
        bridge.server.kill()
        ask = {"group": "g", "topics": [{"name": TOPIC, "parts": [3]}], "stable": False}
        assert conn.rq("OffsetFetch", 7, ask)["err"] == 14
        assert conn.rq("OffsetFetch", 7, ask | {"topics": None})["err"] == 14
        assert conn.rq("OffsetCommit", 7, body)["topics"][0]["parts"][0]["err"] == 14
        bridge.server.start()
        deadline = time.monotonic() + 20
        while (answer := conn.rq("OffsetFetch", 7, ask))["err"] == 14 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert answer["topics"][0]["parts"][0]["off"] == 42
        conn.close()
