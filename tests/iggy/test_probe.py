"""The facts of probe.py, and that nothing undecodable harms the server."""

import os
import struct

import pytest
from probe import Probe, judge
from sdk import PASSWORD, USER
from wire import Connection, Refusal, Silence, ident, name

# Operations of 0.11 with a body, and a body that each of them can decode.
STREAM, TOPIC = ident("no-such-stream"), ident("no-such-topic")
U32 = struct.pack("<I", 1)
WRITES = {
    128: name("bad-input"),
    129: STREAM + name("x"),
    130: STREAM,
    131: STREAM,
    132: STREAM + U32 + name("x"),
    133: STREAM + TOPIC + name("x"),
    134: STREAM + TOPIC,
    135: STREAM + TOPIC,
    136: STREAM + TOPIC + U32,
    137: STREAM + TOPIC + U32,
    138: STREAM + TOPIC + U32 + U32,
    139: STREAM + TOPIC + name("g"),
    140: STREAM + TOPIC + ident("g"),
    142: ident("nobody") + b"\0\0",
    143: ident("nobody"),
    144: ident("nobody") + name("old-one") + name("new-one"),
    145: ident("nobody") + b"\0",
    147: name("no-such-token"),
    148: STREAM + TOPIC + ident("g"),
    149: STREAM + TOPIC + ident("g"),
    160: struct.pack("<I", 4) + STREAM,
    161: b"\x01" + ident("c") + STREAM + TOPIC + b"\x01" + U32 + b"\0" * 8 + b"\x01",
    162: b"\x01" + ident("c") + STREAM + TOPIC + b"\x01" + U32 + b"\x01",
}
READS = (1, 10, 11, 12, 13, 14, 15, 20, 21, 22, 31, 32, 41, 100, 102, 103, 104, 105, 106, 107, 108, 109, 120, 123, 200, 201, 300, 301, 600, 601, 606)


def test_the_facts_of_the_august_server_hold_but_for_the_listed_exceptions(server):
    wrong = judge(Probe(server.iggy_address, USER, PASSWORD).all())
    assert not wrong, "\n".join(wrong)


def attempt(server, connections, operation, body, code=0):
    """One request on the open connection, or on a new one when the last request ended it."""
    if not connections:
        connections.append(Connection(server.iggy_address, 1.0))
        connections[0].login(USER, PASSWORD)
    try:
        connections[0].call(operation, body, code, seconds=0.3)
    except (Refusal, Silence):
        pass
    except OSError:
        connections.pop().close()


@pytest.mark.parametrize("operation", sorted(WRITES))
def test_no_undecodable_write_stops_the_server(server, operation):
    """The server of August 2026 ends for good on the body 09 09 for a delete."""
    connections, body = [], WRITES[operation]
    for bad in [b"\x09\x09", b"\xff" * 64, b"\0", b"", body + b"\0" * 7] + [body[:length] for length in range(len(body))]:
        attempt(server, connections, operation, bad)
    alive(server)


def test_no_undecodable_read_stops_the_server(server):
    connections = []
    for code in READS:
        for bad in (b"\x09\x09", b"\xff" * 64, b"\0", b"\x01", b"\x01\x04\0", STREAM[:-1], STREAM + TOPIC[:3]):
            attempt(server, connections, 2, bad, code)
    alive(server)


def test_no_random_frame_stops_the_server(server):
    for _ in range(200):
        connection = Connection(server.iggy_address, 0.05)
        try:
            connection.send(os.urandom(300))
            connection.receive()
        except (OSError, Silence):
            pass
        connection.close()
    alive(server)


def alive(server):
    connection = Connection(server.iggy_address)
    connection.login(USER, PASSWORD)
    assert connection.read(1) == b""
    connection.close()
