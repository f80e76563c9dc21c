"""Iggy clients that are slow, silent, many or greedy: every one ends by its own deadline, memory stays bounded, and others are served meanwhile."""

import os
import random
import select
import socket
import struct
import threading
import time

import pytest
from conftest import SANITIZED, settle, sockets
from iggy_client import CLOSED, COMMANDS, EVERY, HEADER, P11, P12, SECRET, Client, Silence, bind_body, consumer, deferred_body, fetch_body, ident, name, poll_body, prepare, send_body, topic_body
from server import ROOT_PASSWORD, ROOT_USER, Server

SEED = int(os.environ.get("HOSTILE_SEED", time.time_ns() % 1_000_000))
READ, WRITE = 2, 3  # of the shared server, seconds
MIB = 1 << 20
SLACK = 400 * MIB if SANITIZED else 0  # what a sanitizer adds to anything
TOO_MANY_DEFERRED = 90
FRAME_MAX = 64 * MIB


def versions(test):
    return pytest.mark.parametrize("version", EVERY, ids=["0.11", "0.12"])(test)


def seconds_until_closed(client, limit=10.0):
    began = time.monotonic()
    assert client.outcome(limit) == CLOSED
    return time.monotonic() - began


def near(seconds, deadline):
    return deadline - 0.1 <= seconds <= deadline + 1.5


def reset(client):
    """An end without a farewell."""
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()


class Peak:
    """The server's greatest resident memory while the block runs."""

    def __init__(self, server):
        self.server, self.before, self.most, self.over = server, server.rss(), 0, threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def _watch(self):
        while not self.over.is_set():
            self.most = max(self.most, self.server.rss())
            time.sleep(0.02)

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    @property
    def grown(self):
        return self.most - self.before


def fill(client, stream, topics=1, partitions=1, size=500_000, count=20):
    """Topics t0, t1, ... with so many messages of a size in each partition."""
    assert isinstance(client.ask("create_stream", name(stream)), bytes)
    for topic in range(topics):
        assert isinstance(client.ask("create_topic", topic_body(f"t{topic}", partitions, stream=stream)), bytes)
        for partition in range(partitions):
            body = send_body(1, ident(stream) + ident(f"t{topic}"), b"\2\4" + struct.pack("<I", partition), payload=b"x" * size)
            for _ in range(count):
                assert isinstance(client.ask("send_messages", body), bytes)


# ---- slow ----


def test_a_body_in_crumbs_ends_at_the_read_time(iggy):
    client = Client(iggy)
    frame, _ = client.build("send_messages", b"x" * 5000)
    client.send(frame[:HEADER])
    began = time.monotonic()
    while time.monotonic() - began < READ + 2:
        try:
            client.send(b"x")
        except OSError:
            break
        if select.select([client.socket], [], [], 0.1)[0]:
            break
    assert near(time.monotonic() - began, READ)
    assert client.outcome(1) == CLOSED
    client.close()


def test_half_a_header_holds_no_memory_and_a_login_ends_it(tmp_path):
    """Without a login a connection may be silent for a minute; with one it is nobody's business."""
    with Server(str(tmp_path), iggy=True) as server:
        clients = [Client(server, login=False) for _ in range(200)]
        before = server.rss()
        for client in clients:
            client.send(b"\0" * 200)
        time.sleep(0.3)
        assert server.rss() - before < 20 * MIB + SLACK
        assert Client(server).alive()
        for client in clients:
            reset(client)


def test_large_frames_before_a_login_are_not_taken(iggy):
    """Whoever has no password can't reserve the memory of those who have."""
    before = sockets(iggy)
    strangers = [Client(iggy, login=False) for _ in range(100)]
    for stranger in strangers:
        stranger.send(stranger.frame(1, b"\0" * 100, request=0, size=FRAME_MAX))
    began = time.monotonic()
    honest = Client(iggy)
    assert isinstance(honest.ask("send_messages", send_body(1, payload=b"x" * 1_000_000)), bytes)
    assert time.monotonic() - began < 1.5, "others waited for memory that strangers have reserved"
    assert all(stranger.outcome(1) == CLOSED for stranger in strangers)
    honest.close()
    for stranger in strangers:
        stranger.close()
    settle(iggy, before)


def test_frames_that_were_announced_and_never_came_hold_no_memory(iggy):
    clients = [Client(iggy) for _ in range(20)]
    with Peak(iggy) as peak:
        for client in clients:
            client.send(client.frame(160, b"\0" * 100, request=client.number(), size=FRAME_MAX))
        assert all(seconds_until_closed(client) < READ + 3 for client in clients)
    assert peak.grown < 30 * MIB + SLACK
    for client in clients:
        client.close()


@versions
def test_a_half_closed_connection_gets_its_answers(iggy, version):
    client = Client(iggy, version)
    frames = b"".join(client.build("get_topic", COMMANDS["get_topic"][3])[0] for _ in range(50))
    client.send(frames)
    client.socket.shutdown(socket.SHUT_WR)
    assert [client.outcome() for _ in range(50)] == [0] * 50
    assert client.outcome() == CLOSED
    client.close()


def test_a_half_closed_connection_gets_the_answer_of_a_poll_that_waited(iggy):
    """Nobody can cancel it any more, so it ends at once."""
    client = Client(iggy, P12)
    frame, _ = client.build("poll_messages_deferred", deferred_body(20_000_000, value=1 << 40))
    client.send(frame)
    time.sleep(0.2)
    client.socket.shutdown(socket.SHUT_WR)
    began = time.monotonic()
    assert client.outcome() == 0
    assert client.outcome() == CLOSED
    assert time.monotonic() - began < 2
    client.close()


def test_a_client_that_reads_nothing_ends_at_the_write_time(tmp_path):
    """And the memory that it held comes back: three times the same ends as high as once."""
    with Server(str(tmp_path), iggy=True, MEMORY_BUDGET="64MiB", WRITE_TIMEOUT_SECS=WRITE) as server:
        root = Client(server)
        fill(root, "unread")
        before, heights = sockets(server), []
        for _ in range(3):
            greedy = [Client(server) for _ in range(10)]
            with Peak(server) as peak:
                for one in greedy:
                    one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    body = poll_body(where=ident("unread") + ident("t0"), count=1000)
                    one.send(b"".join(one.build("poll_messages", body)[0] for _ in range(12)))
                time.sleep(0.5)
                assert sockets(server) >= before + 10
                assert Client(server).alive()
                settle(server, before, 3 * WRITE + 5)
            assert peak.grown < 200 * MIB + SLACK
            heights.append(server.rss())
            for one in greedy:
                one.close()
        print(f"{[height >> 20 for height in heights]} MiB after clients that asked for 10 MB 120 times and read nothing")
        assert heights[2] < heights[0] + 32 * MIB + SLACK
        assert root.alive()
        root.close()


# ---- greedy ----


def push(client, data, seconds):
    """Sends as much as the server takes within so long; how much it was."""
    client.socket.setblocking(False)
    sent, deadline = 0, time.monotonic() + seconds
    while sent < len(data) and time.monotonic() < deadline:
        if select.select([], [client.socket], [], 0.2)[1]:
            try:
                sent += client.socket.send(data[sent : sent + 65536])
            except BlockingIOError:
                continue
            except OSError:
                break
    client.socket.setblocking(True)
    return sent


@pytest.mark.parametrize("command", ["ping", "get_topic", "poll_messages", "send_messages", "create_user", "get_stats", "store_consumer_offset", "join_group"])
def test_ten_thousand_requests_without_reading_are_answered_in_the_end(tmp_path, command):
    """Reading pauses, memory stays bounded, nothing blocks for ever, and all that was sent is answered once it is read."""
    many = {"create_user": 60, "get_stats": 1000}.get(command, 10_000)  # Argon2 takes its time
    with Server(str(tmp_path), iggy=True, MEMORY_BUDGET="64MiB", WRITE_TIMEOUT_SECS=60, READ_TIMEOUT_SECS=60) as server:
        prepare(server)
        client = Client(server, P12, seconds=30)
        client.ask("create_group", COMMANDS["create_group"][3])
        body = COMMANDS[command][3]
        frames, numbers = [], set()
        for _ in range(many):
            frame, number = client.build(command, body)
            frames.append(frame)
            numbers.add(number)
        data = b"".join(frames)
        with Peak(server) as peak:
            sent = push(client, data, 2)
            witness = Client(server, seconds=20)
            assert witness.alive() and isinstance(witness.ask("get_topic", COMMANDS["get_topic"][3]), bytes)
            witness.close()
            sender = threading.Thread(target=client.send, args=(data[sent:],))
            sender.start()
            began = time.monotonic()
            while numbers:
                assert client.outcome(30) != CLOSED, f"closed with {len(numbers)} to go"
                numbers.discard(client.answered_number())
                assert time.monotonic() - began < 60
            sender.join()
        print(f"{command}: {sent >> 10} KiB taken unread, peak {peak.grown >> 20} MiB")
        assert peak.grown < 200 * MIB + SLACK
        client.close()


def test_polls_of_everything_by_many_at_once_stay_within_the_budget(tmp_path):
    """40 clients poll 40 MB each, again and again; half of them read slowly. The budget is 64 MiB."""
    with Server(str(tmp_path), iggy=True, MEMORY_BUDGET="64MiB", WRITE_TIMEOUT_SECS=60) as server:
        root = Client(server, seconds=30)
        fill(root, "all", partitions=4, size=1_000_000, count=10)
        where = ident("all") + ident("t0")
        failures, done = [], []

        def poll(index):
            try:
                client = Client(server, (P11, P12)[index % 2], seconds=60)
                for turn in range(4):
                    if client.version == P12:
                        answer = client.ask("fetch_messages", fetch_body((0, 1, 2, 3), count=1000, most=64 * MIB, where=where))
                    else:
                        answer = client.ask("poll_messages", poll_body(turn, count=1000, where=where))
                    assert isinstance(answer, bytes) and len(answer) > 1_000_000, answer if isinstance(answer, int) else len(answer)
                    done.append(len(answer))
                    time.sleep(index % 2 * 0.05)
                client.close()
            except Exception as error:  # noqa: BLE001
                failures.append(repr(error))

        with Peak(server) as peak:
            threads = [threading.Thread(target=poll, args=(index,)) for index in range(40)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(120)
        print(f"{sum(done) >> 20} MiB polled, peak {peak.grown >> 20} MiB")
        assert not failures, failures[:3]
        assert len(done) == 160
        assert peak.grown < 250 * MIB + SLACK
        assert root.alive()
        root.close()


def test_lists_that_nobody_reads_count_as_memory_too(tmp_path):
    """Answers that are as long as the catalog, asked for by clients that take none of them."""
    with Server(str(tmp_path), iggy=True, MEMORY_BUDGET="64MiB", WRITE_TIMEOUT_SECS=4) as server:
        root = Client(server, seconds=30)
        assert isinstance(root.ask("create_stream", name("many")), bytes)
        frames = [root.build("create_topic", topic_body(f"{number:04}" + "n" * 200, 1, stream="many")) for number in range(1000)]
        for frame, _ in frames:
            root.send(frame)
            assert root.outcome() == 0
        before = sockets(server)
        answer = root.ask("get_topics", ident("many"))
        greedy = [Client(server, seconds=30) for _ in range(8)]
        with Peak(server) as peak:
            for one in greedy:
                one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                push(one, b"".join(one.build("get_topics", ident("many"))[0] for _ in range(250)), 0.1)
            time.sleep(1)
            root.seconds = 15
            assert root.alive()
            settle(server, before, 60)  # who waits for memory is served, and cut 4 s later, when others have been
        print(f"an answer has {len(answer) >> 10} KiB, 2000 were asked for; peak {peak.grown >> 20} MiB")
        assert peak.grown < 250 * MIB + SLACK
        for one in greedy:
            one.close()
        root.close()


# ---- many ----


def test_two_thousand_connections_cost_little_and_all_are_served(tmp_path):
    with Server(str(tmp_path), iggy=True, MAX_CONNECTIONS=3000) as server:
        before = server.rss(), sockets(server)
        clients = [Client(server, login=False) for _ in range(2000)]
        assert all(client.alive() for client in clients)
        grown = server.rss() - before[0]
        print(f"{grown / 2000 / 1024:.1f} KiB a connection")
        assert grown < 40 * MIB + SLACK
        assert Client(server).alive()
        for client in clients:
            reset(client)
        settle(server, before[1] + 1)


def test_the_connection_cap_closes_the_next(tmp_path):
    with Server(str(tmp_path), iggy=True, MAX_CONNECTIONS=20) as server:
        clients = [Client(server, login=False) for _ in range(20)]
        assert all(client.alive() for client in clients)
        extra = Client(server, login=False)
        assert extra.outcome(2) == CLOSED
        for client in clients:
            client.close()


def test_a_flood_of_logins_holds_no_one_up(iggy):
    """200 connections log in with a wrong password over and over for 4 s: each has to wait, but not who is logged in."""
    over, counts, failures = threading.Event(), [0], []
    honest = Client(iggy)
    longest = 0.0
    before = sockets(iggy)
    attackers = [Client(iggy, EVERY[number % 2], login=False, seconds=60) for number in range(200)]

    def flood(some):
        frames = [one.frame(1, one.login_body(ROOT_USER, "wrong-password"), request=0, session=0, checksum=int(one.version == P12)) for one in some]
        try:
            for one, frame in zip(some, frames):
                one.send(frame)
            while not over.is_set():
                ready = select.select([one.socket for one in some], [], [], 0.1)[0]
                for one, frame in zip(some, frames):
                    if one.socket in ready:
                        assert one.outcome() == ("eviction", 9)
                        counts[0] += 1
                        one.send(frame)
        except Exception as error:  # noqa: BLE001
            failures.append(repr(error))

    with Peak(iggy) as peak:
        threads = [threading.Thread(target=flood, args=(attackers[at : at + 50],)) for at in range(0, 200, 50)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        ends = time.monotonic() + 4
        turns = 0
        while time.monotonic() < ends:
            began = time.monotonic()
            assert honest.alive()
            assert isinstance(honest.ask("send_messages", send_body()), bytes)
            assert isinstance(honest.ask("store_consumer_offset", COMMANDS["store_consumer_offset"][3]), bytes)
            assert isinstance(honest.ask("poll_messages", poll_body()), bytes)
            longest = max(longest, time.monotonic() - began)
            turns += 1
        over.set()
        for thread in threads:
            thread.join(30)
    assert not failures, failures[:2]
    print(f"{counts[0]} wrong logins; {turns} honest rounds, the longest took {longest * 1000:.0f} ms; peak {peak.grown >> 20} MiB")
    assert longest < 1.5 and turns > 20
    assert peak.grown < 200 * MIB + SLACK
    for one in attackers:
        reset(one)
    began = time.monotonic()
    late = Client(iggy, seconds=5)
    assert late.alive() and time.monotonic() - began < 2, "logins of clients that have gone are still being checked"
    late.close()
    settle(iggy, before)
    honest.close()


def test_sessions_that_are_left_behind_are_bounded(tmp_path):
    """0.12 sessions outlive their connections: 8192 of them, each with a request to remember; by token, which is quicker than a password."""
    many = 3000 if SANITIZED else 12_000
    with Server(str(tmp_path), iggy=True) as server:
        prepare(server)
        root = Client(server, P12)
        answer = root.ask("create_token", name("token") + b"\xff" * 8)
        token = answer[1 : 1 + answer[0]]
        grown = []
        before = server.rss()
        for turn in range(many):
            if turn % 100 == 0:
                client = Client(server, P12, login=False)
            client.client = (turn + 1) << 64 | 1
            body = struct.pack("<I", P12) + name("h") + name("1") + bytes(32) + name(token) + b"\0" * 4
            answer = client.call(1, body, request=0, session=0, checksum=1)
            client.session = struct.unpack_from("<IQ", answer)[1]
            if turn % 100 == 99:
                assert isinstance(client.ask("store_consumer_offset", COMMANDS["store_consumer_offset"][3]), bytes)
                client.close()
            if turn % (many // 6) == 0:
                grown.append(server.rss() - before)
        print(f"{[some >> 20 for some in grown]} MiB while {many} sessions began")
        assert server.rss() - before < 40 * MIB + SLACK
        assert root.alive()
        root.close()


def test_sessions_without_a_connection_are_bounded(tmp_path):
    """The same, each on a connection of its own that ends."""
    many = 1500 if SANITIZED else 10_000
    with Server(str(tmp_path), iggy=True) as server:
        prepare(server)
        root = Client(server, P12)
        answer = root.ask("create_token", name("token") + b"\xff" * 8)
        token = answer[1 : 1 + answer[0]]
        before = server.rss()
        for turn in range(many):
            client = Client(server, P12, login=False)
            body = struct.pack("<I", P12) + name("h") + name("1") + SECRET + name(token) + b"\0" * 4
            answer = client.call(1, body, request=0, session=0, checksum=1)
            client.session = struct.unpack_from("<IQ", answer)[1]
            assert isinstance(client.ask("store_consumer_offset", COMMANDS["store_consumer_offset"][3]), bytes)
            if turn == 0:
                first = bind_body(client)
            last = bind_body(client)
            reset(client)
        print(f"{(server.rss() - before) >> 20} MiB for {many} sessions")
        assert server.rss() - before < 64 * MIB + SLACK
        thief = Client(server, P12, login=False)
        thief.send(thief.frame(2, first, 15, request=1))
        assert thief.outcome() == (("eviction", 1) if many > 8192 else 0), "the oldest goes when there are too many"
        thief.send(thief.frame(2, last, 15, request=2))
        assert thief.outcome() == 0
        thief.close()
        root.close()


# ---- deferred polls ----


def test_the_65th_poll_that_waits_is_refused_and_all_can_be_cancelled(iggy):
    client = Client(iggy, P12)
    waiting = []
    for index in range(64):
        body = (deferred_body(60_000_000, value=1 << 40), fetch_body((0, 1), 60_000_000, 1, where=ident("hostile") + ident("empty")))[0]
        frame, number = client.build("poll_messages_deferred", body)
        waiting.append(number)
        client.send(frame)
    refused = [client.build("poll_messages_deferred", deferred_body(60_000_000, value=1 << 40)), client.build("fetch_messages", fetch_body((0,), 60_000_000, 1))]
    for frame, number in refused:
        client.send(frame)
        assert client.outcome() == TOO_MANY_DEFERRED and client.answered_number() == number
    assert client.alive()
    for number in (0, 1, 2**64 - 1, waiting[0] + 10_000):  # of nothing
        client.send(client.frame(2, b"", 108, request=number))
    assert client.alive()
    found = set()
    for number in waiting:
        client.send(client.frame(2, b"", 108, request=number))
        assert client.outcome() == 0
        found.add(client.answered_number())
        client.send(client.frame(2, b"", 108, request=number))  # of what has ended
    assert found == set(waiting)
    frame, number = client.build("poll_messages_deferred", deferred_body(1000, value=1 << 40))
    client.send(frame)
    assert client.outcome() == 0 and client.answered_number() == number
    client.close()


@pytest.mark.parametrize("end", ["close", "reset", "logout", "login", "delete"])
def test_polls_that_wait_end_with_whom_they_wait_for(iggy, end):
    before = sockets(iggy)
    root = Client(iggy)
    stream = f"waits-{end}-{time.monotonic_ns()}"
    fill(root, stream, count=1)
    where = ident(stream) + ident("t0")
    clients = [Client(iggy, P12) for _ in range(5)]
    for client in clients:
        for _ in range(30):
            client.send(client.build("poll_messages_deferred", deferred_body(600_000_000, where=where, value=1 << 40))[0])
            client.send(client.build("fetch_messages", fetch_body((0,), 599_000_000, 5, where=where))[0])
        assert client.alive()
    if end == "delete":
        assert root.ask("delete_stream", ident(stream)) == b""
        for client in clients:
            for _ in range(60):
                assert client.outcome(10) != CLOSED
        assert all(client.alive() for client in clients)
    for client in clients:
        if end == "logout":
            client.send(client.build_raw(3))
            time.sleep(0.05)
        elif end == "login":
            client.client += 1
            client.send(client.frame(1, client.login_body(ROOT_USER, ROOT_PASSWORD), request=0, session=0, checksum=1))
            time.sleep(0.05)
        if end == "reset":
            reset(client)
        else:
            client.close()
    root.close()
    settle(iggy, before)


# ---- ends in the middle ----


def test_a_bind_of_somebody_elses_session_is_refused(iggy):
    owner = Client(iggy, P12)
    thief = Client(iggy, P12, login=False)
    body = bind_body(owner)
    for wrong in (body[:-1] + b"\0", body[:-32] + bytes(32)):
        thief.client = owner.client
        thief.send(thief.frame(2, wrong, 15, request=1, session=owner.session))
        assert thief.outcome() == ("eviction", 1)
    assert owner.alive() and isinstance(owner.ask("get_me"), bytes)
    thief.send(thief.frame(2, body, 15, request=1, session=owner.session))
    assert thief.outcome() == 0
    thief.session = owner.session
    assert owner.ask("create_stream", name("x")) == ("eviction", 1)
    thief.close()
    owner.close()


def test_disconnects_in_the_middle_of_everything_leave_nothing(iggy):
    """800 connections, each with some requests of all kinds, cut off at any byte, read in part or not, closed or reset."""
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    for _ in range(150 if SANITIZED else 300):
        version = rng.choice(EVERY)
        client = Client(iggy, version, login=False)
        data = client.frame(1, client.login_body(ROOT_USER, ROOT_PASSWORD), request=0, session=0, checksum=int(version == P12))
        if rng.random() < 0.6:
            client.enter()
            data = b""
        commands = [command for command, row in COMMANDS.items() if version in row[2] and command not in ("create_user", "change_password")]
        for command in rng.choices(commands, k=rng.choice((1, 5, 40))):
            data += client.build(command, COMMANDS[command][3])[0]
        if version == P12:
            data += client.build("poll_messages_deferred", deferred_body(60_000_000, value=1 << 40))[0] * rng.choice((0, 3))
        client.send(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.5 else data)
        if rng.random() < 0.3:
            try:
                client.outcome(0.02)
            except Silence:
                pass
        if rng.random() < 0.5:
            reset(client)
        else:
            client.close()


def test_sigterm_ends_polls_that_wait_and_logins_that_queue(tmp_path):
    with Server(str(tmp_path), iggy=True) as server:
        prepare(server)
        clients = [Client(server, P12) for _ in range(5)]
        for client in clients:
            for _ in range(50):
                client.send(client.build("poll_messages_deferred", deferred_body(600_000_000, value=1 << 40))[0])
        strangers = [Client(server, login=False) for _ in range(100)]
        for stranger in strangers:
            stranger.send(stranger.frame(1, stranger.login_body(ROOT_USER, ROOT_PASSWORD), request=0, session=0))
        time.sleep(0.1)
        began = time.monotonic()
        ended = []
        stopper = threading.Thread(target=lambda: ended.append(server.stop()))
        stopper.start()
        for client in clients:
            assert [client.outcome(10) for _ in range(50)] == [0] * 50
            assert client.outcome(10) == CLOSED
            client.close()
        for stranger in strangers:
            stranger.close()
        stopper.join(30)
        assert ended == [0], server.log()[-2000:]
        assert time.monotonic() - began < 6


# ---- fair ----


def test_a_poll_whose_limit_is_less_than_what_it_waits_for_is_answered_at_once(iggy):
    client = Client(iggy, P12)
    stream = f"limits-{time.monotonic_ns()}"
    fill(client, stream, count=10, size=1000)
    where = ident(stream) + ident("t0")
    for body in (deferred_body(60_000_000, minimum=10, most=344, where=where), deferred_body(60_000_000, minimum=10, most=5000, where=where)):
        began = time.monotonic()
        answer = client.ask("poll_messages_deferred", body)
        assert 0 < struct.unpack_from("<I", answer, 12)[0] < 10
        assert time.monotonic() - began < 1
    began = time.monotonic()
    answer = client.ask("poll_messages_deferred", deferred_body(500_000, minimum=11, count=20, where=where))
    assert struct.unpack_from("<I", answer, 12)[0] == 10
    assert 0.4 < time.monotonic() - began < 2
    client.close()


def test_who_polls_much_and_reads_nothing_leaves_room_for_others(tmp_path):
    with Server(str(tmp_path), iggy=True, MEMORY_BUDGET="64MiB", WRITE_TIMEOUT_SECS=20) as server:
        root = Client(server)
        fill(root, "much")
        body = poll_body(where=ident("much") + ident("t0"), count=1000)
        greedy = [Client(server, EVERY[number % 2]) for number in range(3)]
        with Peak(server) as peak:
            for one in greedy:
                one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.send(b"".join(one.build("poll_messages", body)[0] for _ in range(200)))
            time.sleep(0.5)
            for _ in range(10):
                began = time.monotonic()
                answer = root.ask("poll_messages", body)
                assert struct.unpack_from("<I", answer, 12)[0] > 0
                assert time.monotonic() - began < 1
        assert peak.grown < 100 * MIB + SLACK
        for one in greedy:
            reset(one)
        assert root.alive()
        root.close()
