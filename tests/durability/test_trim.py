"""kill -9 while records are deleted under load: a start that was acknowledged never goes back, and nothing behind it is lost.

env: KILL_ROUNDS (10), KILL_SEED, as test_kill.py.
"""

import random
import threading

import pytest
from kwire import Conn
from load import Acknowledged, Producer, create, digest, stored
from server import Server
from test_kill import ROUNDS, SEED

TOPIC = "trim"
PARTITIONS = [(TOPIC, partition) for partition in range(4)]


@pytest.fixture
def server():
    # Small segments, so that starts also lie in sealed ones, and segments go while others are begun.
    with Server(SEGMENT_BYTES="1MiB") as running:
        create(running.bootstrap, TOPIC, len(PARTITIONS))
        yield running


class Deleter(threading.Thread):
    """Deletes records up to random places and to the end, and remembers where logs were said to start."""

    def __init__(self, bootstrap, starts, enough, seed):
        super().__init__(daemon=True)
        self.random, self.starts, self.enough, self.seen = random.Random(seed), starts, enough, 0
        self.conn = Conn(bootstrap, cid="deleter", timeout=20)
        self.asked = {}  # of the request that has no answer yet
        self.complaints = []

    def _round(self):
        ends = self.conn.rq("ListOffsets", 5, {"topics": [{"name": TOPIC, "parts": [{"p": p, "ts": -1} for _, p in PARTITIONS]}]})
        if isinstance(ends, str):
            return False
        ends = {part["p"]: part["off"] for part in ends["topics"][0]["parts"]}
        self.asked = {p: self.random.choice((-1, self.random.randint(self.starts[p], end))) for p, end in ends.items()}
        answer = self.conn.rq("DeleteRecords", 2, {"topics": [{"name": TOPIC, "parts": [{"p": p, "off": off} for p, off in self.asked.items()]}]})
        if isinstance(answer, str):
            return False
        for part in answer["topics"][0]["parts"]:
            asked, least = self.asked[part["p"]], max(self.starts[part["p"]], self.asked[part["p"]])
            if part["err"] or part["low"] < least or (asked >= 0 and part["low"] != least):
                self.complaints.append(f"asked {asked} after {self.starts[part['p']]}: {part}")
            self.starts[part["p"]] = part["low"]
        self.asked = {}
        return True

    def run(self):
        while self._round():
            self.seen += 1
            if self.seen == 5:
                self.enough.set()
        self.conn.close()


def check(bootstrap, starts, asked, acknowledged):
    """Whether the logs start where they were said to, or at what a request without an answer asked for, and hold all that was acknowledged from there on."""
    conn, complaints = Conn(bootstrap, timeout=20), list(acknowledged.errors)
    answer = conn.rq("ListOffsets", 5, {"topics": [{"name": TOPIC, "parts": [{"p": p, "ts": -2} for _, p in PARTITIONS]}]})
    for part in answer["topics"][0]["parts"]:
        p, start = part["p"], part["off"]
        if start < starts[p] or (start > starts[p] and asked.get(p, 0) not in (-1, start)):
            complaints.append(f"partition {p} starts at {start}, acknowledged {starts[p]}, asked {asked.get(p)}")
        known = dict(acknowledged.batches[TOPIC, p])
        for base, records, data in stored(conn, TOPIC, p, start):
            want = known.pop(base, None)
            if want and want != (digest(data), records):
                complaints.append(f"partition {p}: other bytes at {base}")
        complaints += [f"partition {p}: acknowledged batch at {base} is lost" for base, (_, records) in known.items() if base + records > start]
        starts[p] = start
    conn.close()
    return complaints


def test_an_acknowledged_start_survives_kill_9(server):  # D16-3
    print(f"seed {SEED}")
    starts, acknowledged = {p: 0 for _, p in PARTITIONS}, Acknowledged()
    for number in range(max(1, ROUNDS // 2)):
        enough = threading.Event()
        deleter = Deleter(server.bootstrap, starts, enough, SEED + number)
        threads = [Producer(server.bootstrap, PARTITIONS, acknowledged, SEED * 100 + number * 10 + k) for k in range(2)]
        for thread in (*threads, deleter):
            thread.start()
        assert enough.wait(60), deleter.complaints
        enough.clear()
        enough.wait(random.Random(SEED + number).uniform(0, 0.4))  # a kill at any moment of a deletion
        server.kill()
        for thread in (*threads, deleter):
            thread.stopping = True
            thread.join(30)
            assert not thread.is_alive()
        server.start()
        complaints = deleter.complaints + check(server.bootstrap, starts, deleter.asked, acknowledged)
        print(f"round {number}: {deleter.seen} deletions, starts {starts}")
        assert not complaints, f"seed {SEED} round {number}: {complaints[:10]}"
    assert all(start > 0 for start in starts.values())
