"""Start-up does not grow with the log: 2 GiB of it, a kill -9, and the first Metadata is answered within a second."""

import time

import pytest
from kwire import Conn, batch
from load import create, fetch
from server import Server

GIB = 1 << 30
VALUE_BYTES = 1_000_000
IN_FLIGHT = 8


def fill(bootstrap, topic, partitions, total_bytes):
    """acks=1, about 1 MB a batch, several requests in flight. Returns partition -> end offset."""
    data = batch([(None, b"x" * VALUE_BYTES)])
    conn = Conn(bootstrap, timeout=60)
    ends, waiting = [0] * partitions, 0
    for number in range(total_bytes // len(data) + 1):
        part = {"p": number % partitions, "rec": data}
        conn.send("Produce", 7, {"acks": 1, "timeout": 20000, "topics": [{"name": topic, "parts": [part]}]})
        waiting += 1
        if waiting == IN_FLIGHT:
            note(conn.recv(), ends)
            waiting -= 1
    for _ in range(waiting):
        note(conn.recv(), ends)
    conn.close()
    return ends


def note(answer, ends):
    part = answer["topics"][0]["parts"][0]
    assert part["err"] == 0 and part["base"] == ends[part["p"]], answer
    ends[part["p"]] += 1


def answered(bootstrap):
    """A Metadata answer, or None when nobody listens yet."""
    try:
        conn = Conn(bootstrap, timeout=5)
    except OSError:
        return None
    answer = conn.rq("Metadata", 1, {"topics": None})
    conn.close()
    return answer if isinstance(answer, dict) else None


@pytest.mark.parametrize("partitions", [1, 8])
def test_metadata_within_a_second_of_a_start_on_2_gib(partitions):
    with Server() as server:
        create(server.bootstrap, "big", partitions)
        began = time.monotonic()
        ends = fill(server.bootstrap, "big", partitions, 2 * GIB)
        filled = time.monotonic() - began
        server.kill()

        began = time.monotonic()
        server.spawn()
        while not (metadata := answered(server.bootstrap)):
            assert time.monotonic() - began < 20, server.log()
            time.sleep(0.002)
        started = time.monotonic() - began
        assert len(metadata["topics"][0]["parts"]) == partitions

        began = time.monotonic()
        conn = Conn(server.bootstrap, timeout=20)
        for partition, end in enumerate(ends):
            first, last = fetch(conn, "big", partition, 0), fetch(conn, "big", partition, end - 1)
            assert (first["err"], last["err"], last["hw"]) == (0, 0, end)
            assert first["rec"] and last["rec"]
        fetched = time.monotonic() - began
        print(f"{partitions} partitions: filled in {filled:.1f} s, first Metadata after {started:.3f} s, {2 * partitions} fetches {fetched:.2f} s")
        assert started < 1.0
        assert fetched < 10
