"""Producers that remember what was acknowledged, byte by byte, and a reader that compares."""

import hashlib
import random
import struct
import threading
import time
from collections import defaultdict

from kwire import Conn, batch, batches

PRODUCE_VERSION = 9
HEAD_BYTES = 16  # base offset, length and leader epoch of a batch; the first and the last are the server's to write


def digest(data):
    """Of what the producer decides about a batch: everything from the magic byte on."""
    return hashlib.blake2b(data[HEAD_BYTES:], digest_size=12).digest()


class Acknowledged:
    """(topic, partition) -> base offset -> (digest, records), for every batch that the server acknowledged."""

    def __init__(self):
        self.lock = threading.Lock()
        self.batches = defaultdict(dict)
        self.created, self.deleted = set(), set()
        self.errors = []

    def add(self, topic, partition, base, data, records):
        with self.lock:
            known = self.batches[topic, partition]
            if base in known:
                self.errors.append(f"offset {base} of {topic}-{partition} was acknowledged twice")
            known[base] = (digest(data), records)

    def count(self):
        return sum(len(known) for known in self.batches.values())


class Producer(threading.Thread):
    """One connection that sends acks=all batches of random size and compression to random partitions, several requests in flight."""

    def __init__(self, bootstrap, partitions, acknowledged, seed, in_flight=4):
        super().__init__(daemon=True)
        self.random = random.Random(seed)
        self.partitions, self.acknowledged, self.in_flight, self.seed = partitions, acknowledged, in_flight, seed
        self.conn = Conn(bootstrap, cid=f"load-{seed}", timeout=20)
        self.stopping = False
        self.refused = []  # error codes
        self.sent = 0

    def make(self):
        """A batch nobody else sends: every value names its producer and number."""
        records = []
        for _ in range(self.random.choice((1, 1, 2, 5, 20, 60))):
            size = self.random.choice((0, 10, 100, 1000, 8000))
            records.append((b"k%d" % self.sent, b"%s/%d " % (str(self.seed).encode(), self.sent) + self.random.randbytes(size)))
            self.sent += 1
        codec = self.random.choice((None, None, "gzip", "zstd"))
        return batch(records, codec=codec, ts=1_700_000_000_000 + self.sent), len(records)

    def run(self):
        waiting = []
        try:
            while not self.stopping or waiting:
                while not self.stopping and len(waiting) < self.in_flight:
                    waiting.append(self._send())
                answer = self.conn.recv()
                if isinstance(answer, str):
                    return  # closed or silent: what was sent is not acknowledged
                self._note(waiting.pop(0), answer)
        finally:
            self.conn.close()

    def _send(self):
        places = self.random.sample(self.partitions, self.random.choice((1, 1, 3)))
        sent = {place: self.make() for place in places}
        topics = defaultdict(list)
        for (topic, partition), (data, _) in sent.items():
            topics[topic].append({"p": partition, "rec": data})
        body = {"acks": -1, "timeout": 15000, "topics": [{"name": topic, "parts": parts} for topic, parts in topics.items()]}
        self.conn.send("Produce", PRODUCE_VERSION, body)
        return sent

    def _note(self, sent, answer):
        for topic in answer["topics"]:
            for part in topic["parts"]:
                data, records = sent[topic["name"], part["p"]]
                if part["err"]:
                    self.refused.append(part["err"])
                else:
                    self.acknowledged.add(topic["name"], part["p"], part["base"], data, records)


class TopicMaker(threading.Thread):
    """Creates and deletes topics while producers write, and remembers what was answered."""

    def __init__(self, bootstrap, acknowledged, seed):
        super().__init__(daemon=True)
        self.random, self.acknowledged, self.seed, self.stopping = random.Random(seed), acknowledged, seed, False
        self.conn = Conn(bootstrap, cid="topics", timeout=20)

    def run(self):
        known = self.acknowledged
        number = 0
        while not self.stopping:
            name = f"extra-{self.seed}-{number}"
            number += 1
            answer = self.conn.rq("CreateTopics", 4, {"topics": [{"name": name, "n": 2, "rf": 1}]})
            if isinstance(answer, str) or answer["topics"][0]["err"]:
                break
            known.created.add(name)
            if self.random.random() < 0.5:
                known.created.discard(name)  # neither here nor gone until the answer
                answer = self.conn.rq("DeleteTopics", 3, {"names": [name]})
                if isinstance(answer, str) or answer["topics"][0]["err"]:
                    break
                known.deleted.add(name)
            time.sleep(0.02)
        self.conn.close()


def create(bootstrap, topic, partitions):
    conn = Conn(bootstrap)
    answer = conn.rq("CreateTopics", 4, {"topics": [{"name": topic, "n": partitions, "rf": 1}]})
    conn.close()
    assert answer["topics"][0]["err"] == 0, answer


def fetch(conn, topic, partition, offset, wait=0, size=8 << 20):
    """The partition's entry of a Fetch answer; its 'rec' are bytes."""
    part = {"p": partition, "off": offset, "max": size}
    answer = conn.rq("Fetch", 11, {"wait": wait, "min": 0, "max": size, "topics": [{"name": topic, "parts": [part]}]})
    assert isinstance(answer, dict), f"Fetch of {topic}-{partition} at {offset}: {answer}"
    return answer["topics"][0]["parts"][0]


def stored(conn, topic, partition, offset=0):
    """(base offset, records, bytes) of every batch from offset to the end, as a Fetch gives them."""
    while True:
        part = fetch(conn, topic, partition, offset)
        assert part["err"] == 0, f"error {part['err']} in {topic}-{partition} at {offset}"
        data, at = part["rec"], 0
        while at + 61 <= len(data):
            base, length = struct.unpack_from(">qi", data, at)
            if at + 12 + length > len(data):
                break
            (last_delta,) = struct.unpack_from(">i", data, at + 23)
            yield base, last_delta + 1, data[at : at + 12 + length]
            at += 12 + length
            offset = base + last_delta + 1
        if at == 0:
            assert offset == part["hw"], f"{topic}-{partition} gives nothing at {offset}, its end is {part['hw']}"
            return


def compare(bootstrap, acknowledged):
    """Reads everything from offset 0. Returns (batches read, complaints)."""
    conn = Conn(bootstrap, timeout=20)
    complaints, read = list(acknowledged.errors), 0
    for (topic, partition), known in sorted(acknowledged.batches.items()):
        missing, next_offset = dict(known), 0
        for base, records, data in stored(conn, topic, partition):
            read += 1
            if base != next_offset:
                complaints.append(f"{topic}-{partition}: a batch at {base}, expected {next_offset}")
            next_offset = base + records
            want = missing.pop(base, None)
            if want and want != (digest(data), records):
                complaints.append(f"{topic}-{partition}: other bytes at acknowledged offset {base}")
            elif not want and read % 16 == 0:
                batches(data)  # not acknowledged, yet it must be whole
        for base in sorted(missing)[:5]:
            complaints.append(f"{topic}-{partition}: acknowledged batch at {base} is lost (the log ends at {next_offset})")
    listed = {topic["name"] for topic in conn.rq("Metadata", 4, {"topics": None})["topics"]}
    complaints += [f"acknowledged topic {name} is lost" for name in acknowledged.created - listed]
    complaints += [f"deleted topic {name} is back" for name in acknowledged.deleted & listed]
    conn.close()
    return read, complaints
