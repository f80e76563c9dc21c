"""run --bridge: what the way through the gateway and an Iggy server costs, as ratios to a peer that runs in turn with it.

All subjects do a row one after the other, on new topics, and then the next repeat begins, so that a machine that is busy for a while is
busy for all of them. CPU seconds are those that the scheduler counted for a process: they hardly change when others use the machine.
"""

import glob
import os
import resource
import statistics
import subprocess
import sys
from dataclasses import dataclass, field

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HOME = os.environ.get("PEERS_HOME", os.path.expanduser("~/.cache/iggy-gateway-kafka/peers"))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from server import BINARY, ROOT_PASSWORD, ROOT_USER, Server  # noqa: E402

STREAM = "kafka"
# librdkafka's defaults, where kbench has others; and the same with batches of so many records.
OWN_BATCHES = ["batch.size=1000000", "queue.buffering.max.messages=100000", "queue.buffering.max.kbytes=1048576"]


def batches_of(count):
    return [*OWN_BATCHES[1:], "batch.size=4000000", f"batch.num.messages={count}"]


def cpu_seconds(pid):
    """Of all threads of a process; 0 when it is elsewhere."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat") if pid else ():
        try:
            with open(path, encoding="ascii") as file:
                total += int(file.read().split()[0])
        except OSError:
            pass  # a thread that has just ended
    return total / 1e9


def client(words, seconds=320):
    """A load generator's line as numbers, with the CPU seconds that it took."""

    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = spent()
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True, timeout=seconds, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: status {done.returncode}: {done.stdout}")
    pairs = (word.partition("=") for word in done.stdout.split())
    return {key: float(value) for key, _, value in pairs if value[:1].isdigit()} | {"client_cpu": spent() - before}


@dataclass
class Row:
    """One thing to measure. batch None: as librdkafka does by itself."""

    title: str
    kind: str  # produce, consume, single, latency
    size: int
    count: int
    batch: int | None = None
    found: dict = field(default_factory=dict)  # subject -> [numbers]

    @property
    def settings(self):
        return OWN_BATCHES if self.batch is None else batches_of(self.batch)


class Kafka:
    """A Kafka-protocol server: the gateway, or our log itself."""

    def __init__(self, name, server, behind=None):
        self.name, self.bootstrap, self.pid, self.behind = name, server.bootstrap, server.pid, behind

    def kbench(self, command, topic, *words):
        return client([f"{HOME}/bin/kbench", command, self.bootstrap, topic, *words])

    def fill(self, topic, row):
        return self.kbench("produce", topic, 1, row.count, row.size, "all", "none", *row.settings)

    def measure(self, row, topic):
        if row.kind == "produce":
            return self.fill(topic, row)
        if row.kind == "consume":
            return self.kbench("consume", topic, 1, row.count)
        if row.kind == "single":
            return self.kbench("single", topic, 1, row.count, row.size, "all")
        return self.kbench("latency", topic, 1, row.count, row.size, "all", 1000)


class Sdk:
    """The Iggy SDK against the Iggy server; `through` is the gateway that makes its topics."""

    def __init__(self, address, user, password, through):
        self.name, self.address, self.pid, self.behind, self.through = "iggy SDK", address, None, through.behind, through
        os.environ |= {"IGGY_USER": user, "IGGY_PASSWORD": password}

    def kbench(self, *words):
        return self.through.kbench(*words)

    def fill(self, topic, row):
        return self.through.fill(topic, row)

    def measure(self, row, topic):
        place = [self.address, STREAM, topic, 0, row.count]
        if row.kind == "consume":
            return client([f"{HOME}/bin/sdk-bench", "consume", *place, 1000])
        return client([f"{HOME}/bin/sdk-bench", "produce", *place, row.size, 1 if row.kind == "single" else row.batch or 1000])


class Bench:
    def __init__(self, subjects, peer_of, repeats):
        self.subjects, self.peer_of, self.repeats, self.number, self.goals = subjects, peer_of, repeats, 0, []

    def once(self, subject, row):
        self.number += 1
        topic = f"bench-{os.getpid()}-{self.number}"
        subject.kbench("create", topic, 1)
        if row.kind == "consume":
            subject.fill(topic, row)
        before = cpu_seconds(subject.pid), cpu_seconds(subject.behind)
        found = subject.measure(row, topic)
        found |= {"cpu": cpu_seconds(subject.pid) - before[0], "behind_cpu": cpu_seconds(subject.behind) - before[1]}
        subject.kbench("delete", topic)
        return found

    def measure(self, row):
        able = [subject for subject in self.subjects if row.kind != "latency" or isinstance(subject, Kafka)]
        for _ in range(self.repeats):
            for subject in able:
                row.found.setdefault(subject.name, []).append(self.once(subject, row))
        for subject in able:
            self.show(row, subject)

    @staticmethod
    def median(row, name, key):
        values = [found.get(key, float("nan")) for found in row.found.get(name, [])]
        return statistics.median(values) if values else float("nan")

    def show(self, row, subject):
        peer = self.peer_of(subject, row)
        timed = row.kind in ("single", "latency")
        key = "p50_us" if timed else "records_s"
        ratios = ""
        if peer and peer != subject.name and row.found.get(peer):
            ratios = f"{self.median(row, subject.name, key) / self.median(row, peer, key):5.2f} of {peer}"
        p50, p99 = (f"{self.median(row, subject.name, at) / 1000:.3f}" for at in ("p50_us", "p99_us"))
        rate, megabytes = (self.median(row, subject.name, at) for at in ("records_s", "mb_s"))
        million = row.count / 1e6
        cpu = [f"{self.median(row, subject.name, at) / million:7.2f}" for at in ("cpu", "behind_cpu", "client_cpu")]
        if not subject.pid:
            cpu[0] = "      -"
        if not subject.behind:
            cpu[1] = "      -"
        text = f"p50 {p50} ms  p99 {p99} ms            " if timed else f"{rate:>10,.0f} records/s {megabytes:>7.1f} MB/s"
        print(f"{row.title:32} {subject.name:14} {text}  {'  '.join(cpu)}   {ratios}", flush=True)


def rows_of(quick):
    small, large, single = (200_000, 50_000, 1000) if quick else (2_000_000, 300_000, 5000)
    return [
        Row("produce 100 B, own batches", "produce", 100, small),
        Row("produce 100 B x 1,000", "produce", 100, small, 1000),
        Row("produce 1 KiB x 1,000", "produce", 1024, large, 1000),
        Row("produce 1 KiB x 64", "produce", 1024, large, 64),
        Row("single message 100 B", "single", 100, single),
        Row("latency at 1,000/s 100 B", "latency", 100, 3 * single),
        Row("consume 100 B", "consume", 100, small),
        Row("consume 1 KiB", "consume", 1024, large),
    ]


def show_goals(bench, rows, gateway):
    """Those of the bridge in front of a real Iggy server."""
    sdk, log = "iggy SDK", "embedded log"
    by_title = {row.title: row for row in rows}

    def say(text, value, good):
        print(f"goal {'reached' if good else 'MISSED '}  {text}: {value}")

    rate = bench.median(rows[0], gateway, "records_s")
    say("one producer, librdkafka's defaults, 100 B: at least 700,000 records/s", f"{rate:,.0f}", rate >= 700_000)
    for title in ("produce 100 B x 1,000", "produce 1 KiB x 1,000", "produce 1 KiB x 64"):
        ratio = bench.median(by_title[title], gateway, "mb_s") / bench.median(by_title[title], sdk, "mb_s")
        say(f"{title}: at least 0.5 of the SDK's MB/s", f"{ratio:.2f}", ratio >= 0.5)
    for key, most in (("p50_us", 150), ("p99_us", 500)):
        row = by_title["single message 100 B"]
        over = bench.median(row, gateway, key) - bench.median(row, sdk, key)
        say(f"a single message, {key[:3]}: at most {most / 1000} ms over the SDK's", f"{over / 1000:.3f} ms", over <= most)
    for title in ("consume 100 B", "consume 1 KiB"):
        ratio = bench.median(by_title[title], gateway, "records_s") / bench.median(by_title[title], log, "records_s")
        say(f"{title}: at least 0.5 of what the embedded log serves", f"{ratio:.2f}", ratio >= 0.5)


def measure_all(bench, rows, only):
    print(f"{'':32} {'':14} {'':34}   CPU seconds per million records")
    print(f"{'':32} {'':14} {'':34}  {'gateway':>7}  {'Iggy':>7}  {'client':>7}   rate or p50")
    chosen = [row for row in rows if not only or only in row.title]
    for row in chosen:
        bench.measure(row)
    return chosen


def through_gateway(address, user, password):
    return Server(BACKEND="iggy", IGGY_ADDR=address, IGGY_USERNAME=user, IGGY_PASSWORD=password, IGGY_STREAM=STREAM)


def before_ours(options):
    """The gateway before our own Iggy listener, in both generations; the peer is our log without either."""
    repeats, rows = 1 if options.quick else options.repeats, rows_of(options.quick)
    settings = {"IGGY_STREAM": STREAM}
    with Server(iggy=True, IGGY_LISTEN_VERSIONS="0.11", **settings) as old, Server(iggy=True, IGGY_LISTEN_VERSIONS="0.12", **settings) as new:
        user = (ROOT_USER, ROOT_PASSWORD)
        with through_gateway(old.iggy_address, *user) as gateway_old, through_gateway(new.iggy_address, *user) as gateway_new:
            subjects = [Kafka("embedded log", new), Kafka("gateway 0.11", gateway_old, old.pid), Kafka("gateway 0.12", gateway_new, new.pid)]
            measure_all(Bench(subjects, lambda subject, row: "embedded log", repeats), rows, options.only)


def before_another(options):
    """The gateway before an Iggy server; the peers are the SDK there, and our log for what an SDK doesn't do as a Kafka client does."""
    repeats, rows = 1 if options.quick else options.repeats, rows_of(options.quick)
    user, password = os.environ.get("IGGY_USER", "iggy"), os.environ.get("IGGY_PASSWORD", "iggy")
    with through_gateway(options.iggy, user, password) as server, Server() as log:
        gateway = Kafka("gateway", server, options.iggy_pid)
        subjects = [Sdk(options.iggy, user, password, gateway), gateway, Kafka("embedded log", log)]
        bench = Bench(subjects, lambda subject, row: "embedded log" if row.kind in ("consume", "latency") else "iggy SDK", repeats)
        measure_all(bench, rows, options.only)
        if not options.only:
            show_goals(bench, rows, gateway.name)


def run(options):
    """0: done; 1: a client failed; 2: something is not built."""
    parts = ["bench", "bench_sdk"] if options.iggy else ["bench"]
    if subprocess.run([f"{ROOT}/tests/peers/setup.sh", *parts], stdout=sys.stderr, check=False).returncode:
        return 2
    if not os.access(BINARY, os.X_OK):
        print(f"{BINARY} is missing: ./run --build-only makes it", file=sys.stderr)
        return 2
    try:
        (before_another if options.iggy else before_ours)(options)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    return 0
