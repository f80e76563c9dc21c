"""Connections that are slow, silent or many: every one ends by its own deadline, and the others are served meanwhile."""

import socket
import struct
import threading
import time

import pytest
from kwire import SILENT, Conn, batch
from server import Server

IDLE, READ, WRITE = 2, 1, 2


@pytest.fixture(scope="module")
def strict():
    settings = {"IDLE_TIMEOUT_SECS": IDLE, "READ_TIMEOUT_SECS": READ, "WRITE_TIMEOUT_SECS": WRITE}
    with Server(**settings) as running:
        conn = Conn(running.bootstrap)
        assert conn.rq("CreateTopics", 4, {"topics": [{"name": "slow", "n": 1, "rf": 1}]})["topics"][0]["err"] == 0
        conn.close()
        yield running


def seconds_until_closed(conn, dribble=None, every=0.2, limit=8.0):
    """Sends one byte of dribble now and then; when the server closes, the seconds it took."""
    began = time.monotonic()
    for number in range(int(limit / every)):
        if dribble and number < len(dribble):
            conn.raw(dribble[number : number + 1])
        if conn.eof(every) != SILENT:
            return time.monotonic() - began
    raise AssertionError(f"still open after {limit} s")


def near(seconds, deadline):
    """Not early, and at most a second late: the machine may be busy."""
    return deadline - 0.1 <= seconds <= deadline + 1.0


def test_a_silent_connection_ends_at_the_idle_time(strict):  # B-10
    conn = Conn(strict.bootstrap)
    assert near(seconds_until_closed(conn), IDLE)


def test_a_prefix_in_crumbs_does_not_extend_the_idle_time(strict):  # B-10
    conn = Conn(strict.bootstrap)
    assert near(seconds_until_closed(conn, b"\0\0\0", every=0.8), IDLE)


def test_a_body_in_crumbs_ends_at_the_read_time(strict):  # B-11
    conn = Conn(strict.bootstrap)
    conn.raw(struct.pack(">i", 1000))
    assert near(seconds_until_closed(conn, b"\0" * 100), READ)


def test_an_idle_time_begins_anew_with_each_request(strict):
    conn = Conn(strict.bootstrap)
    for _ in range(4):
        time.sleep(IDLE * 0.6)
        assert conn.alive() == "open"
    conn.close()


def test_a_waiting_fetch_is_not_idle(strict):
    conn = Conn(strict.bootstrap, timeout=10)
    began = time.monotonic()
    part = {"p": 0, "off": 0, "max": 1000}
    answer = conn.rq("Fetch", 11, {"wait": (IDLE + 1) * 1000, "min": 1, "topics": [{"name": "slow", "parts": [part]}]})
    assert isinstance(answer, dict), answer
    assert near(time.monotonic() - began, IDLE + 1)
    conn.close()


def test_a_client_that_reads_nothing_ends_at_the_write_time(strict):  # B-12
    conn = Conn(strict.bootstrap, timeout=20)
    data = batch([(None, b"x" * 500_000)])
    for _ in range(10):
        answer = conn.rq("Produce", 7, {"acks": 1, "timeout": 5000, "topics": [{"name": "slow", "parts": [{"p": 0, "rec": data}]}]})
        assert answer["topics"][0]["parts"][0]["err"] == 0
    busy, deadline = strict.descriptors(), time.monotonic() + 5
    conn.close()
    while strict.descriptors() >= busy:
        assert time.monotonic() < deadline, "a closed connection stays"
        time.sleep(0.01)
    before, sockets = strict.rss(), strict.descriptors()
    greedy = []
    for _ in range(10):
        conn = Conn(strict.bootstrap)
        conn.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for _ in range(12):  # 60 MB of answers are asked for
            part = {"p": 0, "off": 0, "max": 8 << 20}
            conn.send("Fetch", 11, {"wait": 0, "min": 1, "max": 8 << 20, "topics": [{"name": "slow", "parts": [part]}]})
        greedy.append(conn)
    time.sleep(1.0)
    assert strict.descriptors() >= sockets + 10
    grown = strict.rss() - before
    assert grown < 150 << 20, f"{grown >> 20} MiB for clients that read nothing"
    witness = Conn(strict.bootstrap)
    assert witness.alive() == "open"
    witness.close()
    time.sleep(WRITE + 0.5)
    assert strict.descriptors() <= sockets, "a connection outlived the write time"
    for conn in greedy:
        conn.close()


def test_the_connection_cap_closes_the_next_and_frees_places(tmp_path):  # B-20
    with Server(str(tmp_path), MAX_CONNECTIONS=20) as server:
        conns = [Conn(server.bootstrap) for _ in range(20)]
        assert all(conn.alive() == "open" for conn in conns)
        for _ in range(5):
            extra = Conn(server.bootstrap)
            assert extra.eof(2) == ""
            extra.close()
        assert all(conn.alive() == "open" for conn in conns)
        conns.pop().close()
        deadline = time.monotonic() + 2
        while True:
            again = Conn(server.bootstrap)
            if again.alive() == "open":
                break
            assert time.monotonic() < deadline, "the freed place is not given"
        again.close()
        for conn in conns:
            conn.close()


def test_a_thousand_idle_connections_cost_little(tmp_path):
    with Server(str(tmp_path)) as server:
        Conn(server.bootstrap).close()
        before = server.rss()
        conns = [Conn(server.bootstrap) for _ in range(1000)]
        assert all(conn.alive() == "open" for conn in conns)
        grown = server.rss() - before
        print(f"{grown / 1000 / 1024:.1f} KiB a connection")
        assert grown < 64 << 20
        began = time.monotonic()
        assert conns[500].alive() == "open"
        assert time.monotonic() - began < 0.5
        for conn in conns:
            conn.close()


def test_frames_that_were_announced_and_never_came_hold_no_memory(tmp_path):  # B-1
    with Server(str(tmp_path), READ_TIMEOUT_SECS=5) as server:
        before = server.rss()
        conns = [Conn(server.bootstrap) for _ in range(100)]
        for conn in conns:
            conn.raw(struct.pack(">i", 8 << 20) + b"\0\3\0\1")
        time.sleep(0.3)
        grown = server.rss() - before
        assert grown < 64 << 20, f"{grown >> 20} MiB for 100 announcements of 8 MiB"
        witness = Conn(server.bootstrap)
        assert witness.alive() == "open"
        for conn in [witness, *conns]:
            conn.close()


def test_over_the_memory_budget_reading_pauses_and_nothing_is_dropped(tmp_path):
    """Ten producers of 4 MB frames, a budget of 24 MiB: all are answered, and memory stays near the budget."""
    data = batch([(None, b"x" * 4_000_000)])
    body = {"acks": 1, "timeout": 20000, "topics": [{"name": "budget", "parts": [{"p": 0, "rec": data}]}]}
    with Server(str(tmp_path), MEMORY_BUDGET="24MiB", READ_TIMEOUT_SECS=30) as server:
        conn = Conn(server.bootstrap)
        assert conn.rq("CreateTopics", 4, {"topics": [{"name": "budget", "n": 1, "rf": 1}]})["topics"][0]["err"] == 0
        offsets, peak = [], [server.rss()]

        def produce():
            conn = Conn(server.bootstrap, timeout=30)
            for _ in range(5):
                answer = conn.rq("Produce", 7, body)
                part = answer["topics"][0]["parts"][0]
                assert part["err"] == 0, part
                offsets.append(part["base"])
                peak.append(server.rss())
            conn.close()

        threads = [threading.Thread(target=produce) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sorted(offsets) == list(range(50))
        print(f"peak {max(peak) >> 20} MiB")
        assert max(peak) < 120 << 20


def test_sigterm_answers_a_waiting_fetch_and_ends_at_once(tmp_path):  # B-50, B-51
    with Server(str(tmp_path)) as server:
        conn = Conn(server.bootstrap, timeout=20)
        assert conn.rq("CreateTopics", 4, {"topics": [{"name": "t", "n": 1, "rf": 1}]})["topics"][0]["err"] == 0
        idle = Conn(server.bootstrap)
        assert idle.alive() == "open"
        part = {"p": 0, "off": 0, "max": 1000}
        conn.send("Fetch", 11, {"wait": 15000, "min": 1, "topics": [{"name": "t", "parts": [part]}]})
        time.sleep(0.3)
        stopped = []
        began = time.monotonic()
        stopper = threading.Thread(target=lambda: stopped.append(server.stop()))
        stopper.start()
        answer = conn.recv(10)
        answered = time.monotonic() - began
        assert isinstance(answer, dict), answer
        assert answer["topics"][0]["parts"][0]["err"] == 0
        assert idle.eof(5) == ""
        assert conn.eof(5) == ""
        stopper.join(20)
        assert stopped == [0], server.log()[-1000:]
        assert time.monotonic() - began < 3, f"answered after {answered:.1f} s, ended after {time.monotonic() - began:.1f} s"


def test_produce_in_flight_at_sigterm_is_answered_or_not_stored_twice(tmp_path):
    """What was answered is there after the next start; nothing else is, but what was under way."""
    with Server(str(tmp_path)) as server:
        conn = Conn(server.bootstrap, timeout=20)
        conn.rq("CreateTopics", 4, {"topics": [{"name": "t", "n": 1, "rf": 1}]})
        sent = 0
        for number in range(30):
            data = batch([(None, b"%d" % number)])
            conn.send("Produce", 7, {"acks": -1, "timeout": 5000, "topics": [{"name": "t", "parts": [{"p": 0, "rec": data}]}]})
            sent += 1
        stopped = []
        stopper = threading.Thread(target=lambda: stopped.append(server.stop()))
        stopper.start()
        answers = 0
        while isinstance(conn.recv(10), dict):
            answers += 1
        conn.close()  # else the server waits for it: B-60
        stopper.join(30)
        assert stopped == [0]
        server.start()
        reader = Conn(server.bootstrap)
        part = {"p": 0, "off": 0, "max": 1 << 20}
        found = reader.rq("Fetch", 11, {"wait": 0, "min": 0, "topics": [{"name": "t", "parts": [part]}]})
        end = found["topics"][0]["parts"][0]["hw"]
        assert answers <= end <= sent, (answers, end, sent)
