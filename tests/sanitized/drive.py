"""Everything that clients do to a server, good, broken and rude, all at once, against a binary with sanitizers.

What it answers is other suites' matter. Here it must live: after each phase it answers a newcomer, its log has no report of a sanitizer and its
memory is bounded; while all that still goes on SIGTERM ends it with 0, without a leak; and a start on what it left behind works.
Threads of clients run beside every phase: kcat producers of every codec, kcat consumers, and connections that leave while they wait.
A run depends on its seed (printed; the argument repeats it) and on timing.
"""

import concurrent.futures
import gzip
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "support"), os.path.join(TESTS, "probes")]
import probes  # noqa: E402
from kwire import APIS, CLOSED, COMPRESS, Conn, batch, encode, fetch_body, mktopic, perr, pparts, produce  # noqa: E402
from server import BINARY, Server  # noqa: E402

SERVED = {"Produce": (3, 13), "Fetch": (4, 18), "ListOffsets": (1, 11), "Metadata": (0, 13), "FindCoordinator": (0, 6), "ApiVersions": (0, 5),
          "CreateTopics": (2, 7), "DeleteTopics": (1, 6), "DeleteRecords": (0, 2), "InitProducerId": (0, 5), "OffsetForLeaderEpoch": (2, 4), "DescribeConfigs": (1, 4),
          "AlterConfigs": (0, 2), "CreatePartitions": (0, 3), "IncrementalAlterConfigs": (0, 1), "DescribeCluster": (0, 2), "DescribeTopicPartitions": (0, 0)}
SETTINGS = {"THREADS": 4, "MAX_CONNECTIONS": 400, "READ_TIMEOUT_SECS": 2, "WRITE_TIMEOUT_SECS": 4, "SHUTDOWN_DRAIN_TIMEOUT_SECS": 5,
            "MEMORY_BUDGET": "64MiB", "SEGMENT_BYTES": "1MiB", "RETENTION_BYTES": "4MiB", "DEFAULT_PARTITIONS": 3, "LOG_LEVEL": "debug"}
REPORT = re.compile(r"ERROR: AddressSanitizer|runtime error:|LeakSanitizer|WARNING: ThreadSanitizer|Assertion .* failed")
ERROR = re.compile(r"^\S+ error .*", re.MULTILINE)  # an operator must act: nothing that clients do is a reason
RSS_BYTES_MAX = {"__asan_init": 400 << 20, "__tsan_init": 800 << 20}  # ever, with a budget of 64 MiB; most is the sanitizers' own memory
FRAME_BYTES_MAX = 8 << 20
ANSWER_SECS = 20
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Failure(Exception):
    pass


class Trial:
    """The server under test, and the seeded source of all that is random."""

    def __init__(self, server, seed):
        self.server, self.random = server, random.Random(seed)
        with open(BINARY, "rb") as file:
            content = file.read()
        self.rss_max = max((most for name, most in RSS_BYTES_MAX.items() if name.encode() in content), default=0)
        if not self.rss_max:
            raise Failure(f"{BINARY} has no sanitizer")

    @property
    def bootstrap(self):
        return self.server.bootstrap

    def conn(self, seconds=6.0):
        return Conn(self.bootstrap, timeout=seconds)

    def topic(self, name, partitions=1):
        """It exists afterwards, unless somebody deletes it meanwhile."""
        conn = self.conn(ANSWER_SECS)
        mktopic(conn, name, partitions)
        conn.close()

    def raw(self, *chunks, reset=False, read_bytes=0):
        """One connection that sends chunks, reads a little of what comes soon, and is gone."""
        with socket.create_connection(("127.0.0.1", self.server.port), 5) as client:
            client.settimeout(0.3)
            try:
                for chunk in chunks:
                    client.sendall(chunk)
                if read_bytes:
                    client.recv(read_bytes)
            except OSError:
                pass
            if reset:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def check(self, phase):
        log = self.server.log()
        if REPORT.search(log) or self.server.process.poll() is not None:
            raise Failure(f"{phase}: exit code {self.server.process.poll()}\n{report_of(log)}")
        if ERROR.search(log):
            raise Failure(f"{phase}: {ERROR.search(log)[0]}")
        conn = self.conn(ANSWER_SECS)
        answered = conn.alive(ANSWER_SECS)
        conn.close()
        if answered != "open":
            raise Failure(f"{phase}: a newcomer is {answered}")
        if self.peak() > self.rss_max:
            raise Failure(f"{phase}: {self.peak() >> 20} MiB resident")

    def sockets(self):
        folder = f"/proc/{self.server.pid}/fd"
        count = 0
        for name in os.listdir(folder):
            try:
                count += os.readlink(f"{folder}/{name}").startswith("socket:")
            except FileNotFoundError:
                pass
        return count

    def peak(self):
        """The most memory that was ever resident, in bytes."""
        with open(f"/proc/{self.server.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) * 1024


def report_of(log):
    found = REPORT.search(log)
    return log[max(0, found.start() - 200):found.start() + 8000] if found else log[-3000:]


def together(count, work, *arguments):
    """work(number, *arguments) on so many threads."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        list(pool.map(lambda number: work(number, *arguments), range(count)))


# ---- requests ----


def bodies(api, v, topic):
    """A request of this API that goes all the way through it."""
    named = {"name": topic}
    part = {"p": 0, "rec": batch(n=3)}
    return {
        "Produce": lambda: {"acks": 1, "timeout": 1000, "topics": [named | {"parts": [part, part | {"p": 1}]}]},
        "Fetch": lambda: fetch_body(v, [(topic, 0, 0), (topic, 1, 0)], wait=0, max=4096),
        "ListOffsets": lambda: {"topics": [named | {"parts": [{"p": 0, "ts": time} for time in (-1, -2, 5)]}]},
        "Metadata": lambda: {"topics": [named, {"name": "nobody"}], "auto": False},
        "FindCoordinator": lambda: {"key": "g", "keys": ["g", "h"]},
        "ApiVersions": lambda: {"name": "a", "ver": "1"},
        "CreateTopics": lambda: {"topics": [named | {"n": 2, "rf": 1, "configs": [{"name": "retention.ms", "value": "1000"}]},
                                            {"name": "other", "n": -1, "rf": -1, "assigns": [{"p": 0, "brokers": [1]}]}], "validate": True},
        "DeleteTopics": lambda: {"topics": [{"name": "nobody"}], "names": ["nobody", "no body"]},
        "DeleteRecords": lambda: {"topics": [named | {"parts": [{"p": 0, "off": 1}, {"p": 99, "off": -1}]}]},
        "InitProducerId": lambda: {"txid": "tx"},
        "OffsetForLeaderEpoch": lambda: {"topics": [named | {"parts": [{"p": 0, "cle": 0, "epoch": 0}]}]},
        "DescribeConfigs": lambda: {"res": [{"type": 2, "name": topic}, {"type": 4, "name": "1", "keys": ["broker.id"]}], "syn": True, "doc": True},
        "AlterConfigs": lambda: {"res": [{"type": 2, "name": topic, "configs": [{"name": "flush.ms", "value": "1000"}]}]},
        "IncrementalAlterConfigs": lambda: {"res": [{"type": 2, "name": topic, "configs": [
            {"name": "flush.ms", "op": 1}, {"name": "leader.replication.throttled.replicas", "op": 2, "value": "0:1"}]}]},
        "CreatePartitions": lambda: {"topics": [named | {"count": 9, "assigns": [{"brokers": [1]}]}], "validate": True},
        "DescribeCluster": lambda: {"cops": True},
        "DescribeTopicPartitions": lambda: {"topics": [named, {"name": "nobody"}], "limit": 1, "cursor": {"topic": topic, "p": 0}},
    }[api]()


def by_id(body, v, api, identity):
    """Names become ids where the version has only ids."""
    if v >= 13 and api in ("Produce", "Fetch"):
        for topic in body["topics"]:
            topic.pop("name", None)
            topic["id"] = identity
    return body


def header(api, v, correlation=1):
    key = APIS[api].key
    return struct.pack(">hhih", key, v, correlation, 1) + b"d" + (b"\0" if v >= APIS[api].flex else b"")


def framed(data, length=None):
    return struct.pack(">i", len(data) if length is None else length) + data


def golden_requests():
    """(api, version, body) of every version that is served, as Java writes them."""
    with gzip.open(os.path.join(TESTS, "golden", "kafka.jsonl.gz"), "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [(row["api"], row["version"], bytes.fromhex(row["hex"])) for row in rows
            if row["dir"] == "req" and row["api"] in SERVED and SERVED[row["api"]][0] <= row["version"] <= SERVED[row["api"]][1]]


# ---- clients that run beside the phases ----


class Crowd:
    """Threads that do the same again and again until the end: kcat producers and consumers, and waiters that leave."""

    def __init__(self, trial):
        self.trial, self.ended, self.running, self.lock = trial, False, set(), threading.Lock()
        self.rounds = dict.fromkeys(("produced", "consumed", "killed", "left"), 0)
        self.lines = "".join(f"key-{i}:{'value ' * (i % 60)}{i}\n" for i in range(2000))
        jobs = [lambda codec=codec: self.produce(codec) for codec in CODECS] + [self.consume, self.consume, self.kill_waiting, self.leave_waiting]
        self.threads = [threading.Thread(target=self.repeat, args=(job,), daemon=True) for job in jobs]

    def repeat(self, job):
        while not self.ended:
            try:
                job()
            except (OSError, subprocess.TimeoutExpired):
                pass
            time.sleep(0.2)

    def kcat(self, *arguments, text=None, seconds=30, kill_after=None):
        with subprocess.Popen(["kcat", "-b", self.trial.bootstrap, *arguments], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, text=True) as process:
            with self.lock:
                self.running.add(process)
            try:
                process.communicate(text, timeout=kill_after or seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            with self.lock:
                self.running.discard(process)
            return process.returncode

    def count(self, what, good=True):
        with self.lock:
            self.rounds[what] += bool(good)

    def produce(self, codec):
        acks = random.choice(("all", "1", "0"))
        self.count("produced", self.kcat("-P", "-t", "crowd", "-K:", "-z", codec, "-X", f"acks={acks}", "-X", "message.timeout.ms=20000",
                                         text=self.lines) == 0)

    def consume(self):
        self.count("consumed", self.kcat("-C", "-t", "crowd", "-o", "beginning", "-c", "5000", "-q", "-X", "check.crcs=true") == 0)

    def kill_waiting(self):
        self.count("killed", self.kcat("-C", "-t", "crowd", "-o", "end", "-X", "fetch.wait.max.ms=10000", kill_after=random.uniform(0.1, 0.7)) < 0)

    def leave_waiting(self):
        conn = self.trial.conn()
        for _ in range(random.randrange(1, 20)):
            conn.send("Fetch", 11, fetch_body(11, [("crowd", p, 1 << 40 if p > 2 else 0) for p in range(4)], wait=20000, min=1 << 30))
        time.sleep(random.uniform(0, 0.3))
        conn.close()
        self.count("left")

    def __enter__(self):
        self.trial.topic("crowd", 3)
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        with self.lock:
            for process in self.running:
                process.kill()
        for thread in self.threads:
            thread.join(40)


# ---- phases ----


def all_raw_probes(trial):
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda probe: probes.run_probe(probe, trial.bootstrap), probes.PROBES))


def requests_cut_at_every_byte(trial):
    """Once as a shorter frame, which the decoder sees, and once as a connection that ends inside the frame."""
    trial.topic("cut", 2)
    conn = trial.conn()
    identity = conn.rq("Metadata", 12, {"topics": [{"name": "cut"}]})["topics"][0]["id"]
    conn.close()

    def cut(number):
        for api, (least, most) in list(SERVED.items())[number::4]:
            for v in range(least, most + 1):
                whole = header(api, v) + encode(api, v, by_id(bodies(api, v, "cut"), v, api, identity))
                trial.raw(framed(whole), read_bytes=65536)
                for at in range(len(whole)):
                    trial.raw(framed(whole[:at]))
                    trial.raw(framed(whole)[:at], reset=at % 2 == 0)

    together(4, cut)


def random_bytes(trial):
    seeds = golden_requests()
    ends = time.monotonic() + 8
    sources = [random.Random(trial.random.random()) for _ in range(4)]

    def spoil(source, data):
        """A few bytes turned, and sometimes a piece cut out or doubled."""
        data = bytearray(data)
        for _ in range(source.choice((1, 1, 2, 8))):
            if data:
                data[source.randrange(len(data))] = source.choice((0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)))
        at = source.randrange(len(data) + 1)
        return bytes(data[:at] + data[source.randrange(len(data) + 1):]) if source.random() < 0.3 else bytes(data)

    def send(number):
        source = sources[number]
        while time.monotonic() < ends:
            api, v, body = source.choice(seeds)
            kind = source.randrange(4)
            if kind == 0:
                frame = source.randbytes(source.randrange(1, 200))
            elif kind == 1:
                frame = framed(header(api, v) + source.randbytes(source.randrange(200)))
            elif kind == 2:
                frame = framed(header(api, v) + spoil(source, body))
            else:
                frame = framed(spoil(source, header(api, v) + body))
            trial.raw(frame, *(framed(header("ApiVersions", 0)) for _ in range(source.randrange(3))), read_bytes=100)

    together(4, send)


def clients_that_vanish(trial):
    """In the middle of a request and in the middle of an answer, with many requests under way."""
    trial.topic("vanish", 1)
    conn = trial.conn(ANSWER_SECS)
    for _ in range(2):
        produce(conn, [("vanish", 0, batch([(None, b"v" * (1 << 20))]))], t=ANSWER_SECS)
    conn.close()
    store = framed(header("Produce", 7) + encode("Produce", 7, {"acks": -1, "timeout": 5000, "topics": [
        {"name": "vanish", "parts": [{"p": 0, "rec": batch([(None, b"w" * 30000)], codec=codec)}]}]})) if (codec := "gzip") else b""
    read = framed(header("Fetch", 11) + encode("Fetch", 11, fetch_body(11, [("vanish", 0, 0)], wait=0)))
    wait = framed(header("Fetch", 11) + encode("Fetch", 11, fetch_body(11, [("vanish", 0, 0)], wait=9000, min=1 << 30)))

    def vanish(number):
        source = random.Random(number)
        for _ in range(25):
            mix = b"".join(source.choices((store, read, wait), k=source.randrange(1, 40)))
            trial.raw(mix[:source.randrange(len(mix))], reset=source.random() < 0.5, read_bytes=source.choice((0, 1, 5000, 200000)))

    together(8, vanish)


def rows_full_of_waiting_requests(trial):
    """Nobody is waited for who has left, though reading pauses while so much is unanswered."""
    trial.topic("forever", 1)
    waiting = framed(header("Fetch", 11) + encode("Fetch", 11, fetch_body(11, [("forever", 0, 0)], wait=1 << 30)))
    clients = [trial.conn() for _ in range(150)]
    for number, client in enumerate(clients):
        client.raw(waiting * (16 + number % 10))
    time.sleep(0.5)  # they leave when all is read that will be
    for number, client in enumerate(clients):
        if number % 2:
            client.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    ends = time.monotonic() + ANSWER_SECS
    while trial.sockets() > 100:  # the crowd has its own
        if time.monotonic() > ends:
            raise Failure(f"{trial.sockets()} connections are left of clients that are gone")
        time.sleep(0.1)


def topics_that_come_and_go(trial):
    """Creation, growth, deletion, writing and reading of the same few names by everybody."""
    names = [f"gone-{i}" for i in range(4)]
    ends = time.monotonic() + 6

    def act(number):
        source = random.Random(number)
        conn = trial.conn(10)
        while time.monotonic() < ends:
            name = source.choice(names)
            kind = number % 5
            if kind == 0:
                answer = conn.rq("CreateTopics", 5, {"topics": [{"name": name, "n": source.randrange(1, 4), "rf": 1}]})
                conn.rq("CreatePartitions", 2, {"topics": [{"name": name, "count": source.randrange(2, 6)}]})
            elif kind == 1:
                conn.send("DeleteTopics", 4, {"names": [name]})
                time.sleep(source.uniform(0, 0.05))
                answer = conn.recv()
            elif kind == 2:
                codec = source.choice(list(COMPRESS))
                records = batch([(b"k", b"v" * source.choice((1, 1000, 70000)))], codec=None if codec == "none" else codec)
                answer = produce(conn, [(name, p, records) for p in range(3)], v=9, acks=source.choice((1, -1)))
            elif kind == 3:
                answer = conn.rq("Fetch", 11, fetch_body(11, [(name, p, 0) for p in range(3)], wait=source.choice((0, 50, 3000))))
            else:
                times = [{"p": p, "ts": source.choice((-1, -2, -3, 0, 1 << 41))} for p in range(3)]
                answer = conn.rq("ListOffsets", 7, {"topics": [{"name": name, "parts": times}]})
                conn.rq("DeleteRecords", 2, {"topics": [{"name": name, "parts": [{"p": p, "off": source.choice((-1, 0, 1))} for p in range(3)]}]})
                conn.rq("DescribeConfigs", 3, {"res": [{"type": 2, "name": name}], "syn": True, "doc": True})
                conn.rq("DescribeTopicPartitions", 0, {"topics": []})
                conn.rq("OffsetForLeaderEpoch", 4, {"topics": [{"name": name, "parts": [{"p": 0, "epoch": 0}]}]})
            if isinstance(answer, str):
                conn.close()
                conn = trial.conn(10)
        conn.close()

    together(15, act)


def large_requests_and_answers(trial):
    """Frames of 8 MiB, batches over the limits when they are inflated, and one reader that takes its answer slowly."""
    trial.topic("large", 2)
    fits = batch([(None, b"x" * (FRAME_BYTES_MAX - 400))])

    def write(number):
        conn = trial.conn(30)
        if number == 0:
            answer = produce(conn, [("large", 0, fits)], t=30)
            if isinstance(answer, str) or perr(answer)["err"]:
                raise Failure(f"a frame of 8 MiB was answered {answer}")
        elif number == 1:
            trial.raw(struct.pack(">i", FRAME_BYTES_MAX + 1), read_bytes=1)
            trial.raw(struct.pack(">i", FRAME_BYTES_MAX) + b"y" * 3000000, reset=True)
        else:
            codec = ("gzip", "zstd")[number % 2]
            for size in (7 << 20, 30 << 20):  # a few kilobytes on the wire
                produce(conn, [("large", 1, batch([(None, bytes(size))], codec=codec))], v=9, t=30)
        conn.close()

    together(6, write)
    request = framed(header("Fetch", 11) + encode("Fetch", 11, fetch_body(11, [("large", 0, 0)], wait=0, max=FRAME_BYTES_MAX)))

    def read_slowly(number):
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", trial.server.port))
            client.settimeout(8)
            client.sendall(request * 3)
            ends = time.monotonic() + 5 - number % 2 * 4  # odd ones leave in the middle, even ones are cut off by the write time
            while time.monotonic() < ends and client.recv(4096):
                time.sleep(0.02)

    together(6, read_slowly)


def many_who_wait_for_one_large_batch(trial):
    """A megabyte for each of 250 at once is four times the budget."""
    trial.topic("awaited", 1)
    waiting = [trial.conn(40) for _ in range(250)]
    for conn in waiting:
        conn.send("Fetch", 11, fetch_body(11, [("awaited", 0, 0)], wait=30000, max=1 << 21))
    conn = trial.conn(40)
    produce(conn, [("awaited", 0, batch([(None, b"x" * 1000000)]))], t=40)
    conn.close()
    for number, conn in enumerate(waiting):
        answer = conn.recv() if number % 5 else None  # some leave without a look
        if number % 5 and (isinstance(answer, str) or not perr(answer)["rec"]):
            raise Failure(f"a Fetch that waited was answered {str(answer)[:200]}")
        conn.close()


def five_hundred_partitions(trial):
    conn = trial.conn(60)
    count = 500
    answer = conn.rq("CreateTopics", 5, {"topics": [{"name": "wide", "n": count, "rf": 1}], "timeout": 30000})
    if isinstance(answer, str) or answer["topics"][0]["err"]:
        raise Failure(f"500 partitions were answered {answer}")
    records = batch(n=2)
    for acks in (1, -1):
        stored = produce(conn, [("wide", p, records) for p in range(count)], acks=acks, timeout=20000, t=60)
        wrong = stored if isinstance(stored, str) else [part for part in pparts(stored).values() if part["err"]]
        if wrong:
            raise Failure(f"500 batches in one request were answered {wrong}")
    found = conn.rq("Fetch", 11, fetch_body(11, [("wide", p, 0) for p in range(count)], max=1 << 20), t=60)
    offsets = conn.rq("ListOffsets", 5, {"topics": [{"name": "wide", "parts": [{"p": p, "ts": -1} for p in range(count)]}]}, t=60)
    waiting = trial.conn(60)
    waiting.send("Fetch", 11, fetch_body(11, [("wide", p, 4) for p in range(count)], wait=10000))
    if isinstance(found, str) or isinstance(offsets, str) or {part["off"] for part in pparts(offsets).values()} != {4}:
        raise Failure(f"500 partitions do not end at 4: {offsets}")
    together(4, lambda number: trial.conn().rq("Metadata", 9, {"topics": [{"name": "wide"}]}))
    conn.rq("DeleteTopics", 4, {"names": ["wide"]}, t=60)
    if waiting.recv(20) == "no answer":
        raise Failure("a Fetch that waits for a topic is not answered when the topic goes")
    waiting.close()
    conn.close()


def more_connections_than_allowed(trial):
    clients = []
    try:
        for _ in range(SETTINGS["MAX_CONNECTIONS"] + 50):
            clients.append(socket.create_connection(("127.0.0.1", trial.server.port), 5))
            if len(clients) % 3 == 0:
                clients[-1].sendall(framed(header("Metadata", 1) + b"\xff\xff\xff\xff"))
    except OSError:
        pass
    for client in clients:
        client.close()


PHASES = (requests_cut_at_every_byte, random_bytes, clients_that_vanish, rows_full_of_waiting_requests, topics_that_come_and_go,
          large_requests_and_answers, many_who_wait_for_one_large_batch, five_hundred_partitions, more_connections_than_allowed, all_raw_probes)


def until_it_is_gone(phase, trial):
    try:
        phase(trial)
    except (OSError, Failure):
        pass


def end_by_signal(server, what):
    code = server.stop()
    if code != 0 or REPORT.search(server.log()):
        raise Failure(f"{what}: exit code {code}\n{report_of(server.log())}")


def drive(server, seed):
    trial, began = Trial(server, seed), time.monotonic()
    with Crowd(trial) as crowd:
        for phase in PHASES:
            phase_began = time.monotonic()
            phase(trial)
            trial.check(phase.__name__)
            print(f"{time.monotonic() - began:5.1f} s  {phase.__name__} ({time.monotonic() - phase_began:.1f} s), at most {trial.peak() >> 20} MiB", flush=True)
        if not all(crowd.rounds.values()):
            raise Failure(f"some of the clients beside never came to an end: {crowd.rounds}")
        for phase in (topics_that_come_and_go, clients_that_vanish):
            threading.Thread(target=until_it_is_gone, args=(phase, trial), daemon=True).start()
        time.sleep(1)
        end_by_signal(server, "SIGTERM under load")
        print(f"{time.monotonic() - began:5.1f} s  SIGTERM under load; beside the phases {crowd.rounds}", flush=True)
    server.start(seconds=60)
    trial.check("a start on what is there")
    conn = trial.conn(ANSWER_SECS)
    names = [topic["name"] for topic in conn.rq("Metadata", 1, {"topics": None})["topics"]]
    conn.close()
    if "crowd" not in names:
        raise Failure(f"the topic is gone: {names}")
    read = subprocess.run(["kcat", "-b", server.bootstrap, "-C", "-t", "crowd", "-o", "beginning", "-e", "-q", "-X", "check.crcs=true"],
                          stdout=subprocess.DEVNULL, timeout=60, check=False)
    if read.returncode != 0:
        raise Failure("the records can't be read after a restart")
    end_by_signal(server, "SIGTERM after a restart")
    print(f"{time.monotonic() - began:5.1f} s  restarted, read, ended: passed")


def main(argument):
    seed = int(argument) if argument else int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}", flush=True)
    with Server(**SETTINGS) as server:
        try:
            drive(server, seed)
        except Failure as failure:
            print(f"sanitized: seed {seed}: {failure}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
