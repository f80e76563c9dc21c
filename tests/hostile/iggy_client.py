"""Iggy clients that mean harm, and an honest one to see what is left after them. Frames and batches: tests/iggy/wire.py."""

import os
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "iggy"))

from server import ROOT_PASSWORD, ROOT_USER  # noqa: E402
from wire import FRAMED, HEADER, Connection, Refusal, Silence, batch, consumer, ident, maybe_partition, name, tlv, to_partition  # noqa: E402,F401

FRAMED.add(150)  # update_resource, which 0.11 doesn't have

P11, P12 = 0x2C00, 0x3002
SECRET = bytes(range(32))
NEVER = 2**64 - 1
U32 = 2**32 - 1
EVERY = (P11, P12)
CLOSED = "closed"


class Client(Connection):
    """A connection of one version. Numbers of requests never repeat unless they are given."""

    def __init__(self, server, version=P11, login=True, seconds=10.0, user=ROOT_USER, password=ROOT_PASSWORD):
        super().__init__(server.iggy_address, seconds)
        self.version = version
        if login:
            self.enter(user, password)

    def login_body(self, user, password, secret=SECRET):
        head = struct.pack("<I", self.version) + name("hostile") + name("1")
        return head + (secret if self.version >= P12 else b"") + name(user) + name(password) + struct.pack("<I", 0)

    def enter(self, user=ROOT_USER, password=ROOT_PASSWORD, secret=SECRET):
        checksum = 1 if self.version >= P12 else 0
        answer = self.call(1, self.login_body(user, password, secret), request=0, session=0, checksum=checksum)
        self.user, self.session = struct.unpack_from("<IQ", answer)
        return self

    def build(self, command, body, request=None):
        """A frame of a command of COMMANDS, and its number."""
        operation, code = COMMANDS[command][:2]
        request = self.number() if request is None else request
        return self.frame(operation, body, code, request=request), request

    def build_raw(self, operation):
        """A frame without a body."""
        return self.frame(operation, b"", request=self.number())

    def ask(self, command, body=b"", **header):
        """The payload, or the refusal's code as a negative number; an Eviction's reason as ("eviction", reason)."""
        operation, code = COMMANDS[command][:2]
        header.setdefault("request", self.number())
        try:
            return self.call(operation, body, code, **header)
        except Refusal as refused:
            return ("eviction", refused.code) if refused.how == "eviction" else -refused.code

    def ask_code(self, code):
        """The outcome of a bare code."""
        self.send(self.frame(2, b"", code, request=self.number()))
        return self.outcome()

    def outcome(self, seconds=None):
        """The next frame's code (0: done), an Eviction, or CLOSED; a hang fails."""
        try:
            self.last = self.receive(seconds)
            self.decode(self.last)
            return 0
        except Refusal as refused:
            return ("eviction", refused.code) if refused.how == "eviction" else refused.code
        except (ConnectionError, OSError) as error:
            if isinstance(error, TimeoutError):
                raise
            return CLOSED

    def answered_number(self):
        return struct.unpack_from("<Q", self.last, 200)[0]

    def alive(self):
        return self.ask("ping") == b""


# ---- a well-formed body for each command ----

STREAM, TOPIC, GROUP, USER = "hostile", "target", "group", "somebody"
PLACE = ident(STREAM) + ident(TOPIC)
ORIGIN = 1_700_000_000_000_000


def option(key, value):
    return ((2, key.encode()), (2, value.encode()))


def permissions(streams, topics):
    """All that there is of permissions, for as many streams with as many topics each."""
    out = b"\1" * 10 + bytes([streams > 0])
    for stream in range(streams):
        out += struct.pack("<I", stream + 1) + b"\1" * 6 + bytes([topics > 0])
        for topic in range(topics):
            out += struct.pack("<I", topic + 1) + b"\1" * 4 + bytes([topic + 1 < topics])
        out += bytes([stream + 1 < streams])
    return out


def sized(data):
    return struct.pack("<I", len(data)) + data


def send_body(messages=2, where=PLACE, to=to_partition(0), broken=None, payload=b"hello", count=None):
    data = batch([(number + 1, ORIGIN + number, payload, tlv([option("k", "v")])) for number in range(messages)], ORIGIN, broken)
    place = where + to + struct.pack("<I", messages if count is None else count)
    return sized(place) + data


def poll_body(partition=0, kind=1, value=0, count=10, commit=0, who=None, where=PLACE):
    return (who or consumer(7)) + where + maybe_partition(partition) + struct.pack("<BQIB", kind, value, count, commit)


def deferred_body(wait_us=0, minimum=1, most=1 << 20, timeout_us=None, **poll):
    timeout_us = wait_us + 2_000_000 if timeout_us is None else timeout_us
    return poll_body(**poll) + struct.pack("<QIIQ", wait_us, minimum, most, timeout_us)


def fetch_body(partitions=(0,), wait_us=0, minimum=0, count=10, most=1 << 20, commit=0, who=None, where=PLACE, kind=1, declared=None):
    head = (who or consumer(7)) + where + struct.pack("<QQIIIB", wait_us, wait_us + 2_000_000, minimum, count, most, commit)
    head += struct.pack("<I", len(partitions) if declared is None else declared)
    return head + b"".join(struct.pack("<IBQIQQ", partition, kind, 0, 1 << 20, 0, 0) for partition in partitions)


def topic_body(topic=TOPIC, partitions=1, options=b"", stream=STREAM):
    return ident(stream) + struct.pack("<I", partitions) + name(topic) + options


def bind_body(client):
    return struct.pack("<I", client.version) + name("h") + name("1") + client.client.to_bytes(16, "little") + struct.pack("<QQ", client.session, 0) + SECRET


OPTIONS = tlv([option("message_expiry", "7 days"), option("segment_size", "1048576")])
ABOUT_OFFSET = consumer(7) + PLACE + maybe_partition(0)
GROUP_BODY = PLACE + ident(GROUP)
P11_ONLY, P12_ONLY = (P11,), (P12,)

# name: (operation, code, versions, a body). Nothing here takes away what others need: the target's names are those of nothing.
COMMANDS = {
    "ping": (2, 1, EVERY, b""),
    "get_stats": (2, 10, EVERY, b""),
    "get_cluster_metadata": (2, 12, EVERY, b""),
    "describe_options": (2, 13, EVERY, b"\1"),
    "update_resource": (150, 0, P12_ONLY, b"\1" + PLACE + b"\1" + name("max_topic_size") + tlv([option("message_expiry", "7 days")])),
    "get_me": (2, 20, EVERY, b""),
    "get_client": (2, 21, EVERY, struct.pack("<I", 1)),
    "get_clients": (2, 22, EVERY, b""),
    "get_user": (2, 31, EVERY, ident(0)),
    "get_users": (2, 32, EVERY, b""),
    "create_user": (141, 0, EVERY, name(USER) + name("secret") + b"\1\1" + sized(permissions(2, 2))),
    "delete_user": (143, 0, EVERY, ident("no-such-user")),
    "update_user": (142, 0, P11_ONLY, ident(USER) + b"\1" + name(USER) + b"\1\1"),
    "update_permissions": (145, 0, EVERY, ident(USER) + b"\1" + sized(permissions(1, 2))),
    "change_password": (144, 0, EVERY, ident(USER) + name("secret") + name("secret")),
    "get_tokens": (2, 41, EVERY, b""),
    "create_token": (146, 0, EVERY, name("token") + struct.pack("<Q", NEVER)),
    "delete_token": (147, 0, EVERY, name("token")),
    "poll_messages": (2, 100, EVERY, poll_body()),
    "send_messages": (160, 0, EVERY, send_body()),
    "flush_unsaved_buffer": (2, 102, P11_ONLY, PLACE + struct.pack("<IB", 0, 1)),
    "get_partition_route": (2, 105, P12_ONLY, PLACE + struct.pack("<I", 0)),
    "poll_messages_deferred": (2, 106, P12_ONLY, deferred_body()),
    "fetch_messages": (2, 109, P12_ONLY, fetch_body((0, 1))),
    "get_consumer_offset": (2, 120, EVERY, ABOUT_OFFSET),
    "store_consumer_offset": (161, 0, EVERY, ABOUT_OFFSET + struct.pack("<QB", 0, 1)),
    "delete_consumer_offset": (162, 0, EVERY, ABOUT_OFFSET + b"\1"),
    "get_stream": (2, 200, EVERY, ident(STREAM)),
    "get_streams": (2, 201, EVERY, b""),
    "create_stream": (128, 0, EVERY, name("another")),
    "delete_stream": (130, 0, EVERY, ident("no-such-stream")),
    "update_stream": (129, 0, P11_ONLY, ident(STREAM) + name(STREAM)),
    "purge_stream": (131, 0, P11_ONLY, ident("no-such-stream")),
    "get_topic": (2, 300, EVERY, PLACE),
    "get_topics": (2, 301, EVERY, ident(STREAM)),
    "create_topic": (132, 0, EVERY, topic_body("another", 2, OPTIONS)),
    "delete_topic": (134, 0, EVERY, ident(STREAM) + ident("no-such-topic")),
    "update_topic": (133, 0, P11_ONLY, PLACE + name(TOPIC) + tlv([option("message_expiry", "7 days")])),
    "purge_topic": (135, 0, P11_ONLY, ident(STREAM) + ident("no-such-topic")),
    "create_partitions": (136, 0, EVERY, ident(STREAM) + ident("no-such-topic") + struct.pack("<I", 1)),
    "delete_partitions": (137, 0, EVERY, ident(STREAM) + ident("no-such-topic") + struct.pack("<I", 1)),
    "delete_segments": (138, 0, EVERY, PLACE + struct.pack("<II", 0, 1)),
    "get_group": (2, 600, EVERY, GROUP_BODY),
    "get_groups": (2, 601, EVERY, PLACE),
    "create_group": (139, 0, EVERY, PLACE + name(GROUP)),
    "delete_group": (140, 0, EVERY, PLACE + ident("no-such-group")),
    "join_group": (148, 0, EVERY, GROUP_BODY),
    "leave_group": (149, 0, EVERY, GROUP_BODY),
    "sync_group": (2, 606, EVERY, GROUP_BODY),
}
METADATA = [command for command, row in COMMANDS.items() if 128 <= row[0] <= 150]


def of_version(version):
    return [(command, row[3]) for command, row in COMMANDS.items() if version in row[2]]


def prepare(server):
    """The stream and the topic that most bodies name, with a few messages."""
    with_target = Client(server)
    assert with_target.ask("create_stream", name(STREAM)) != CLOSED
    with_target.ask("create_topic", topic_body(partitions=2))
    for _ in range(3):
        assert isinstance(with_target.ask("send_messages", send_body()), bytes)
    with_target.close()


def serve_honestly(server):
    """What a decent client of each version does works as ever."""
    for version in EVERY:
        client = Client(server, version)
        stream = f"honest-{os.getpid()}-{time.monotonic_ns()}"
        where = ident(stream) + ident("t")
        assert isinstance(client.ask("create_stream", name(stream)), bytes)
        assert isinstance(client.ask("create_topic", topic_body("t", 1, stream=stream)), bytes)
        assert isinstance(client.ask("send_messages", send_body(3, where)), bytes)
        answer = client.ask("poll_messages", poll_body(where=where))
        assert isinstance(answer, bytes) and struct.unpack_from("<IQI", answer) == (0, 2, 3)
        assert client.ask("delete_stream", ident(stream)) == b""
        client.close()
