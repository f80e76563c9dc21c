"""run --members: what 10,000 members of 1,000 groups, that heartbeat every 3 s, cost producers and consumers, and how long a heartbeat takes.

In each repeat all rows are done without members; then they join, all rows are done with them, and they leave. CPU seconds and memory are measured
with nothing beside them.
"""

import os
import statistics
import subprocess
import sys
import time

from bridge import BINARY, ROOT, Bench, Kafka, Row, Server, cpu_seconds
from members_load import EACH, GROUPS, INTERVAL_MS, PROGRAM, SETTINGS, TOPIC, Members  # tests/support, which bridge adds to the path

ALONE_SECONDS = 6
WITHOUT, WITH = "without", "with members"


def rows_of(quick):
    small, large = (500_000, 150_000) if quick else (4_000_000, 1_000_000)
    return [
        Row("produce 100 B, own batches", "produce", 100, small),
        Row("produce 1 KiB x 64", "produce", 1024, large, 64),
        Row("consume 100 B", "consume", 100, small),
        Row("consume 1 KiB", "consume", 1024, large),
    ]


def heartbeats(title, windows):
    def median(key):
        return statistics.median(window[key] for window in windows)

    bad = {key: sum(window[key] for window in windows) for key in ("errors", "rebalances", "lost", "late")}
    times = "  ".join(f"{key} {median(key + '_us') / 1000:8.3f}" for key in ("p50", "p99", "p999", "max"))
    print(f"heartbeats, {title:32} {times} ms   " + " ".join(f"{key}={count:.0f}" for key, count in bad.items()), flush=True)


def alone(options, repeats):
    """Members and nothing else, each time on a new server: what they take of it."""
    windows, cost = [], {"server, CPU us a heartbeat": [], "members, CPU us a heartbeat": [], "server, bytes a member": [], "joining, s": []}
    for _ in range(repeats):
        with Server(**SETTINGS) as server:
            Kafka("", server).kbench("create", TOPIC, EACH)
            memory = server.rss()
            with Members(server.bootstrap, options.protocol) as members:
                members.window()
                cpu = cpu_seconds(server.pid)
                time.sleep(ALONE_SECONDS)
                window = members.window()
                found = ((cpu_seconds(server.pid) - cpu) * 1e6 / window["heartbeats"], window["cpu"] * 1e6 / window["heartbeats"],
                         (server.rss() - memory) / (GROUPS * EACH), members.joined["join_s"])
        windows.append(window)
        for key, value in zip(cost, found):
            cost[key].append(value)
    heartbeats("alone", windows)
    for key, values in cost.items():
        print(f"{key:32} {statistics.median(values):,.1f}", flush=True)


def beside(options, repeats):
    """Producers and consumers with members and without."""
    rows = [row for row in rows_of(options.quick) if not options.only or options.only in row.title]
    windows = {row.title: [] for row in rows}
    with Server(**SETTINGS) as server:
        subjects = {name: Kafka(name, server) for name in (WITHOUT, WITH)}
        bench = Bench(list(subjects.values()), lambda subject, row: WITHOUT, repeats)
        subjects[WITHOUT].kbench("create", TOPIC, EACH)
        bench.once(subjects[WITHOUT], rows[0])  # to warm up
        for _ in range(repeats):
            for row in rows:
                row.found.setdefault(WITHOUT, []).append(bench.once(subjects[WITHOUT], row))
            with Members(server.bootstrap, options.protocol) as members:
                for row in rows:
                    members.window()
                    row.found.setdefault(WITH, []).append(bench.once(subjects[WITH], row))
                    windows[row.title].append(members.window())
    for row in rows:
        for subject in subjects.values():
            bench.show(row, subject)
        heartbeats(row.title, windows[row.title])


def run(options):
    """0: done; 1: a client failed; 2: something is not built."""
    if subprocess.run([f"{ROOT}/tests/peers/setup.sh", "bench"], stdout=sys.stderr, check=False).returncode:
        return 2
    for program in (BINARY, PROGRAM):
        if not os.access(program, os.X_OK):
            print(f"{program} is missing: ./run --build-only makes it", file=sys.stderr)
            return 2
    print(f"{GROUPS * EACH:,} members of {GROUPS:,} {options.protocol} groups, a heartbeat every {INTERVAL_MS / 1000:g} s", flush=True)
    try:
        repeats = 1 if options.quick else options.repeats
        alone(options, repeats)
        beside(options, repeats)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    return 0
