"""Iggy frames that no client sends: each is answered with a code, evicted, ignored as the protocol says, or closes its own connection."""

import gzip
import json
import os
import random
import socket
import struct
import time

import pytest
from iggy_client import CLOSED, COMMANDS, EVERY, HEADER, METADATA, P11, P12, Client, ident, name, of_version, send_body, topic_body
from server import TESTS, Server

SEED = int(os.environ.get("HOSTILE_SEED", time.time_ns() % 1_000_000))
EFFORT = int(os.environ.get("HOSTILE_EFFORT", "1"))
FRAME_MAX = 64 << 20
INVALID_COMMAND, INVALID_FORMAT, NO_FEATURE, UNAUTHENTICATED = 3, 4, 5, 40


def versions(test):
    return pytest.mark.parametrize("version", EVERY, ids=["0.11", "0.12"])(test)


def answers(client, frames, window=32):
    """Sends (frame, number) pairs, a few at a time, and gives {number: outcome}; all must be answered."""
    out = {}
    for at in range(0, len(frames), window):
        some = frames[at : at + window]
        client.send(b"".join(frame for frame, _ in some))
        for _ in some:
            outcome = client.outcome()
            assert outcome != CLOSED, f"closed after {len(out)} of {len(frames)}"
            out[client.answered_number()] = outcome
        assert set(out) >= {number for _, number in some}
    return out


# ---- frames ----


@pytest.mark.parametrize("size", [0, 1, 48, 255, FRAME_MAX + 1, 2**31 - 1, 2**31, 2**32 - 1])
def test_a_size_that_cannot_be_closes_at_once(iggy, size):
    for login in (True, False):
        client = Client(iggy, login=login)
        client.send(client.frame(2, b"", 1, request=1, size=size))
        began = time.monotonic()
        assert client.outcome(3) == CLOSED
        assert time.monotonic() - began < 1.5
        client.close()


def test_every_command_byte_closes_is_ignored_or_answered(iggy):
    for command in range(256):
        client = Client(iggy, login=False)
        client.send(client.frame(2, b"", 1, request=1, command=command))
        client.send(client.frame(2, b"", 1, request=2))
        outcome = client.outcome()
        if command > 29:
            assert outcome == CLOSED, command
        else:
            assert outcome == 0 and client.answered_number() == (1 if command == 5 else 2), command
        client.close()


@versions
def test_every_operation_byte_has_an_answer(iggy, version):
    known = {row[0] for row in COMMANDS.values() if version in row[2]} | {1, 2, 3}
    client = Client(iggy, version)
    for operation in range(256):
        for body in (b"", b"\x09\x09", b"\0" * 40):
            client.send(client.frame(operation, body, 0, request=client.number()))
            outcome = client.outcome()
            if operation == 3 or operation == 1:
                client.close()
                client = Client(iggy, version)
            elif operation not in known or operation == 2:
                assert outcome in (INVALID_COMMAND, INVALID_FORMAT, NO_FEATURE), (operation, outcome)
            else:
                assert outcome not in (0, CLOSED), (operation, outcome)
    client.close()


@versions
def test_every_code_has_an_answer(iggy, version):
    known = {row[1] for row in COMMANDS.values() if version in row[2] and row[0] == 2}
    client = Client(iggy, version)
    codes = set(range(0, 700)) | {2**bit for bit in range(32)} | {2**32 - 1}
    frames = {}
    for code in sorted(codes - {15, 38, 44, 108} - known):  # two are logins of old, one has no answer
        number = client.number()
        frames[number] = code, client.frame(2, b"", code, request=number)
    found = answers(client, [(frame, number) for number, (_, frame) in frames.items()])
    assert {outcome for outcome in found.values()} <= {INVALID_COMMAND, NO_FEATURE}, found
    client.close()
    for code in (38, 44):
        assert Client(iggy, version).ask_code(code) == ("eviction", 15)


@versions
def test_a_header_that_breaks_a_rule_is_refused_and_the_connection_stays(iggy, version):
    client = Client(iggy, version)
    for header in ({"client": 0}, {"session": 0}, {"session": 2**64 - 1}, {"request": 0}, {"request": 2**64 - 1}):
        for command in ("get_me", "send_messages", "create_stream", "join_group"):
            operation, code = COMMANDS[command][:2]
            body = COMMANDS[command][3]
            client.send(client.frame(operation, body, code, **({"request": client.number()} | header)))
            assert client.outcome() not in (CLOSED,), (header, command)
    assert client.alive()
    client.close()


def test_random_bytes_end_no_one(iggy):
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    witness = Client(iggy)
    for _ in range(300 * EFFORT):
        client = Client(iggy, login=False)
        client.send(rng.randbytes(rng.choice((1, 48, 100, 255, 256, 257, 512, 20000))))
        client.close()
    assert witness.alive()
    witness.close()


def test_random_headers_end_no_one(iggy):
    """All but the size and the command byte is random."""
    rng = random.Random(SEED + 2)
    for login in (True, False):
        client = Client(iggy, login=login)
        for _ in range(400 * EFFORT):
            body = rng.randbytes(rng.choice((0, 0, 2, 30)))
            header = bytearray(rng.randbytes(HEADER))
            struct.pack_into("<I", header, 48, HEADER + len(body))
            header[60] = 5
            if rng.random() < 0.7:
                header[176] = rng.choice((1, 2, 3, 128, 132, 139, 148, 150, 160, 161))
            client.send(bytes(header) + body + client.frame(2, b"", 1, request=77))
            while True:  # some have no answer
                outcome = client.outcome()
                if outcome == CLOSED or (outcome == 0 and client.answered_number() == 77):
                    break
            assert outcome == 0
        client.close()


# ---- bodies ----


@versions
def test_every_cut_of_every_body_is_answered(iggy, version):
    client = Client(iggy, version)
    cuts, done = 0, 0
    for command, body in of_version(version):
        frames = [client.build(command, body[:length]) for length in range(len(body))]
        found = answers(client, frames)
        cuts += len(found)
        done += sum(outcome == 0 for outcome in found.values())
        at_once = [outcome for outcome in found.values() if outcome not in (0, INVALID_COMMAND)]
        assert command not in ("poll_messages", "fetch_messages", "join_group") or not at_once, (command, at_once)
    print(f"{cuts} cuts, {done} of them a request as well")
    assert cuts > 800
    client.close()


@versions
def test_bytes_behind_a_body_are_refused(iggy, version):
    client = Client(iggy, version)
    for command, body in of_version(version):
        if command == "send_messages" or command == "ping":
            continue
        frame, number = client.build(command, body + b"\x09\x09")
        outcome = answers(client, [(frame, number)])[number]
        has_options = command in ("create_user", "update_user", "create_stream", "update_stream", "create_topic", "update_topic", "update_resource")
        assert outcome != 0 if has_options else outcome == INVALID_COMMAND, (command, outcome)
    client.close()


@versions
def test_every_cut_of_a_login_is_refused(iggy, version):
    client = Client(iggy, version, login=False)
    body = client.login_body("iggy", "iggy-secret")
    for length in range(len(body)):
        client.send(client.frame(1, body[:length], request=0, session=0, checksum=1 if version == P12 else 0))
        outcome = client.outcome()
        assert outcome in (("eviction", 15), ("eviction", 14), ("eviction", 10)) or (outcome == INVALID_FORMAT and length < 4), (length, outcome)
    client.enter()
    assert client.alive()
    client.close()


@versions
def test_the_body_that_kills_a_real_server_is_refused_on_every_write(tmp_path, version):
    """Protocol 12.2: a real server of August 2026 dies of it, and never starts again."""
    with Server(str(tmp_path), iggy=True) as server:
        client = Client(server, version)
        for command in METADATA + ["send_messages", "store_consumer_offset", "delete_consumer_offset"]:
            if version not in COMMANDS[command][2]:
                continue
            for body in (b"\x09\x09", b"\x09", b"\x02\x00", b"\x01\x03\0\0\0", b"\x00" * 300, b"\xff" * 300):
                outcome = client.ask(command, body)
                assert isinstance(outcome, int) and outcome < 0, (command, body[:4], outcome)
        client.close()
        assert server.stop() == 0
        server.start()
        assert Client(server, version).alive()


@versions
def test_huge_numbers_anywhere_in_a_body_allocate_nothing(iggy, version):
    """Every four bytes of every body become huge once, and every byte 255."""
    client = Client(iggy, version)
    sent = 0
    for command, body in of_version(version):
        frames = []
        checks_passwords = command in ("change_password", "create_user")
        for at in range(0, len(body), 1 + len(body) // (10 if checks_passwords else 60)):
            for huge in (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\xff"):
                changed = body[:at] + huge + body[at + len(huge) :]
                if command == "poll_messages_deferred" or command == "fetch_messages":
                    changed = changed[: len(body)]
                frames.append(client.build(command, changed))
        answers(client, frames)
        sent += len(frames)
    print(f"{sent} requests")
    client.close()


@versions
def test_flipped_bits_anywhere_are_answered(iggy, version):
    rng = random.Random(SEED + 3)
    client = Client(iggy, version)
    for command, body in of_version(version):
        frames = []
        for _ in range(20 * EFFORT if body else 0):
            changed = bytearray(body)
            for _ in range(rng.choice((1, 1, 2, 5))):
                changed[rng.randrange(len(changed))] = rng.randrange(256)
            frames.append(client.build(command, bytes(changed)))
        answers(client, frames)
    client.close()


def test_recorded_frames_with_flipped_bits_end_no_one(iggy):
    """What official SDKs have sent, with a byte of the body changed, in the right session."""
    rng = random.Random(SEED + 4)
    with gzip.open(os.path.join(TESTS, "golden", "iggy.jsonl.gz"), "rt") as rows:
        sent = [row for row in map(json.loads, rows) if row["direction"] == "c2s"]
    clients = {version: Client(iggy, version) for version in EVERY}
    for _ in range(3 * EFFORT):
        for row in sent:
            frame = bytes.fromhex(row["hex"])
            operation, body = frame[176], bytearray(frame[HEADER:])
            (code,) = struct.unpack_from("<I", frame, 196)
            if operation in (1, 3) or (operation == 2 and code in (15, 108)):
                continue
            if body:
                body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
            client = clients[P11 if row["version"] == P11 else P12]
            client.send(client.frame(operation, bytes(body), code, request=client.number()))
            assert client.outcome(15) != CLOSED, row["what"]
    for client in clients.values():
        client.close()


# ---- batches ----


@versions
def test_a_batch_that_is_not_sound_is_refused_and_nothing_is_stored(iggy, version):
    """Protocol 3.7: a real server says nothing at all here."""
    client = Client(iggy, version)
    good = send_body(3)
    place = 4 + struct.unpack_from("<I", good)[0]
    bad = {
        "checksum of the batch": send_body(3, broken="batch"),
        "checksum of a message": send_body(3, broken="message"),
        "count of the target": send_body(3, count=2),
        "no message": send_body(0) if version else b"",
        "no batch": good[:place],
        "half a batch": good[: place + 200],
        "bytes behind it": good + b"\0",
        "two batches": good + good[place:],
        "length too small": good[: place + 32] + struct.pack("<Q", 256) + good[place + 40 :],
        "length too large": good[: place + 32] + struct.pack("<Q", 2**63) + good[place + 40 :],
        "count too large": good[: place + 48] + struct.pack("<I", 2**32 - 1) + good[place + 52 :],
        "reserved bytes": good[: place + 100] + b"\1" + good[place + 101 :],
    }
    end = client.ask("poll_messages", COMMANDS["poll_messages"][3])[4:12]
    for what, body in bad.items():
        outcome = client.ask("send_messages", body)
        assert isinstance(outcome, int) and outcome < 0, (what, outcome)
    assert client.ask("poll_messages", COMMANDS["poll_messages"][3])[4:12] == end
    client.close()


def test_a_frame_of_64_mib_is_taken_and_one_byte_more_is_not(tmp_path):
    with Server(str(tmp_path), iggy=True, READ_TIMEOUT_SECS=30) as server:
        client = Client(server, seconds=60)
        assert isinstance(client.ask("create_stream", name("large")), bytes)
        assert isinstance(client.ask("create_topic", topic_body("t", 1, stream="large")), bytes)
        where = ident("large") + ident("t")
        rest = FRAME_MAX - HEADER - len(send_body(1, where, payload=b""))
        assert isinstance(client.ask("send_messages", send_body(1, where, payload=b"x" * rest)), bytes)
        frame = client.frame(160, send_body(1, where, payload=b"x" * (rest + 1)), request=client.number())
        try:
            client.send(frame)
        except OSError:
            pass
        assert client.outcome() == CLOSED
        client.close()
        assert Client(server).alive()


# ---- names ----

NAMES = [b"/", b"..", b".", b"../../../../tmp/hostile", b"/etc/passwd", b"a/b", b"a\\b", b"\n", b"%s%n", b" ", b"-", b"~", b"a" * 255, "ü".encode() * 127]
NOT_NAMES = [b"", b"\0", b"a\0b", b"\0" * 255]


@versions
def test_no_path_is_made_from_a_name(tmp_path, version):
    """Streams, topics, groups, users and tokens of all kinds of names: in the data folder there are numbers, and nothing outside it."""
    folder = tmp_path / "server"
    folder.mkdir()
    with Server(str(folder), iggy=True) as server:
        client = Client(server, version)
        for raw in NAMES:
            made = client.ask("create_stream", bytes([len(raw)]) + raw)
            assert isinstance(made, bytes), (raw, made)
            where = b"\2" + bytes([len(raw)]) + raw
            assert isinstance(client.ask("create_topic", where + struct.pack("<I", 1) + bytes([len(raw)]) + raw), bytes), raw
            assert isinstance(client.ask("send_messages", send_body(1, where + where)), bytes), raw
            assert isinstance(client.ask("create_group", where + where + bytes([len(raw)]) + raw), bytes), raw
            assert client.ask("join_group", where + where + where) == b""
            assert isinstance(client.ask("poll_messages", b"\1" + where + where + where + b"\1" + b"\0" * 4 + struct.pack("<BQIB", 1, 0, 1, 1)), bytes)
        for raw in NOT_NAMES:
            for command, body in (
                ("create_stream", bytes([len(raw)]) + raw),
                ("create_topic", ident("/") + struct.pack("<I", 1) + bytes([len(raw)]) + raw),
                ("create_group", ident("/") + ident("/") + bytes([len(raw)]) + raw),
                ("create_user", bytes([len(raw)]) + raw + name("secret") + b"\1\0"),
                ("create_token", bytes([len(raw)]) + raw + b"\xff" * 8),
            ):
                outcome = client.ask(command, body)
                assert isinstance(outcome, int) and outcome < 0, (command, raw, outcome)
        client.close()
        allowed = set("0123456789abcdefghijklmnopqrstuvwxyz.-_")
        for path, folders, files in os.walk(server.data):
            for entry in folders + files:
                assert set(entry) <= allowed and len(entry) < 40, f"{path}/{entry}"
                assert "host" not in entry and "pass" not in entry
        assert sorted(os.listdir(folder)) == ["data", "log"] and os.listdir(tmp_path) == ["server"]
        assert not os.path.exists("/tmp/hostile")
        server.stop()
        server.start()
        client = Client(server, version)
        for raw in NAMES:
            where = b"\2" + bytes([len(raw)]) + raw
            assert client.ask("get_topic", where + where)[0:4] == struct.pack("<I", 1), raw


@versions
def test_invalid_utf_8_is_no_name(iggy, version):
    client = Client(iggy, version)
    for raw in (b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80"):
        for command, body in (
            ("create_stream", bytes([len(raw)]) + raw),
            ("create_topic", ident("hostile") + struct.pack("<I", 1) + bytes([len(raw)]) + raw),
            ("create_group", ident("hostile") + ident("target") + bytes([len(raw)]) + raw),
            ("get_stream", b"\2" + bytes([len(raw)]) + raw),
        ):
            outcome = client.ask(command, body)
            assert isinstance(outcome, int) and outcome < 0, (command, raw, outcome)
    client.close()


# ---- pieces ----


@versions
def test_a_frame_may_be_split_anywhere(iggy, version):
    client = Client(iggy, version)
    frame, _ = client.build("get_topic", COMMANDS["get_topic"][3])
    for cut in list(range(1, len(frame), 5)) + [HEADER - 1, HEADER, HEADER + 1]:
        client.send(frame[:cut])
        time.sleep(0.001)
        client.send(frame[cut:])
        assert client.outcome() == 0, cut
    client.close()


def test_every_frame_of_a_session_in_single_bytes_is_served(iggy):
    client = Client(iggy, login=False)
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    frame = client.frame(1, client.login_body("iggy", "iggy-secret"), request=0, session=0)
    for at in range(len(frame)):
        client.send(frame[at : at + 1])
    assert client.outcome() == 0
    client.close()
