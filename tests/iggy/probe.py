#!/usr/bin/env python3
"""probe.py HOST:PORT [USER PASSWORD]   what the Iggy server of August 2026 (protocol 0.11) answers, call by call, asked of any server

Prints one line for each fact; the last says how many hold. exceptions.txt beside it lists the facts that our server answers otherwise,
and what it answers: with them the exit status is 0.
"""

import os
import struct
import sys
import time

from wire import (
    BALANCED,
    Connection,
    Refusal,
    Silence,
    by_key,
    consumer,
    batch,
    ident,
    long_text,
    maybe_partition,
    name,
    options_block,
    partition_list,
    read_tlv,
    short_text,
    stream_header,
    tlv,
    to_partition,
    topic_header,
    xxh3,
    xxh32,
)

HERE = os.path.dirname(os.path.abspath(__file__))
NEVER = 2**64 - 1


def now():
    return int(time.time() * 1e6)


def u32(value):
    return struct.pack("<I", value)


class Probe:
    """Facts one after the other; later ones build on what earlier ones made."""

    def __init__(self, address, user, password):
        self.address, self.user, self.password = address, user, password
        self.facts = {}  # name -> (holds, what was seen)
        self.tag = "%x" % (int(time.time() * 1000) & 0xFFFFFF)
        self.stream, self.topic = "probe-" + self.tag, "orders"
        self.place = ident(self.stream) + ident(self.topic)

    def fact(self, text, holds, seen=""):
        assert text not in self.facts, text
        self.facts[text] = (bool(holds), str(seen))

    def refused(self, text, how, code, call, *arguments, **header):
        """The call must end with this kind of refusal and code; how may be silence or closed."""
        try:
            answer = call(*arguments, **header)
            seen = "no error, %r" % (answer[:40] if isinstance(answer, bytes) else answer,)
            self.fact(text, False, "no error" if isinstance(answer, bytes) else seen)
        except Refusal as refusal:
            self.fact(text, (refusal.how, refusal.code) == (how, code), refusal)
        except Silence:
            self.fact(text, how == "silence", "silence")
        except (ConnectionError, BrokenPipeError):
            self.fact(text, how == "closed", "closed")

    @staticmethod
    def seen(call, *arguments, **header):
        """What the call gives, or how it was refused."""
        try:
            return call(*arguments, **header)
        except Refusal as refusal:
            return refusal

    def connection(self, seconds=5.0):
        return Connection(self.address, seconds)

    def before_login(self):
        c = self.c = self.connection()
        user, password = self.user, self.password
        self.fact("ping before login", c.read(1, request=1) == b"")
        self.refused("read before login: status 40", "status", 40, c.read, 201, request=1)
        self.fact("its commit is 0", struct.unpack_from("<Q", c.last, 184)[0] == 0)
        self.refused("cluster metadata before login: status 40", "status", 40, c.read, 12, request=1)
        self.refused("replicated op before login: eviction 1", "eviction", 1, c.call, 128, name("x"), request=1, session=1)
        self.refused("bad login: eviction 9", "eviction", 9, c.login, user, "wrong-password")
        self.refused("unknown user: eviction 9", "eviction", 9, c.login, "nobody", "whatever")
        self.refused("number 0.12.0 on layouts of 0.11: eviction 14", "eviction", 14, c.login, user, password, version=12 << 10)
        self.refused("number 0.13.0: eviction 14", "eviction", 14, c.login, user, password, version=13 << 10)
        window = struct.unpack_from("<II", c.last, 144)
        self.fact("the window in the eviction is 0.11.0 alone", window == (11264, 11264), "%#x..%#x" % window[::-1])
        self.refused("number 0.10.9: eviction 14", "eviction", 14, c.login, user, password, version=10 << 10 | 9)
        self.refused("malformed login: eviction 15", "eviction", 15, c.call, 1, b"\0\1", request=0, session=0)
        self.refused("legacy login code 38: eviction 15", "eviction", 15, c.read, 38, name(user) + name(password) + b"\0" * 8, request=1)
        c.login(user, password, version=11264 + 900)
        self.fact("login works on the same connection, patch ignored", c.session > 0)
        self.fact("login reply header", c.last[208] == 1 and struct.unpack_from("<I", c.last, 216)[0] == 0)
        self.fact("login reply echoes the client", int.from_bytes(c.last[160:176], "little") == c.client)

    def header_rules(self):
        d = self.connection(1.0)
        d.login(self.user, self.password)
        self.refused("client 0: silence", "silence", 0, d.read, 1, client=0, seconds=0.5)
        self.refused("operation 0: silence", "silence", 0, d.call, 0, b"", request=5, seconds=0.5)
        self.refused("replicated request 0: silence", "silence", 0, d.call, 128, name("zz"), request=0, seconds=0.5)
        self.refused("replicated session 0: silence", "silence", 0, d.call, 128, name("zz"), session=0, seconds=0.5)
        self.refused("command 8: silence", "silence", 0, d.call, 2, b"", 1, command=8, seconds=0.5)
        self.fact("connection lives after ignored frames", d.read(1) == b"")
        self.refused("unknown code: status 3", "status", 3, d.read, 9999)
        self.refused("replicated code sent as a read: status 5", "status", 5, d.read, 202, name("q"))
        self.refused("wrong request_checksum: status 4", "status", 4, d.call, 128, name("q"), checksum=5)
        self.refused("operation 69: silence", "silence", 0, d.call, 69, b"", seconds=0.5)
        self.fact("connection lives after operation 69", d.read(1) == b"")
        d.close()
        for text, header in (
            ("size under 256 closes", {"size": 100}),
            ("size over 64 MiB closes", {"size": 64 * 1024 * 1024 + 1}),
            ("command 99 closes", {"command": 99}),
        ):
            d = self.connection(1.0)
            self.refused(text, "closed", 0, d.call, 2, b"", 1, request=1, **header)
            d.close()

    def streams(self):
        c, stream = self.c, self.stream
        found, _ = stream_header(c.call(128, name(stream), checksum=xxh3(name(stream))))
        self.sid = found["id"]
        self.fact("create_stream", found["name"] == stream and found["topics"] == 0)
        self.fact("reply header of a committed op", c.last[208] == 128)
        self.refused("create_stream again: result 1012", "result", 1012, c.call, 128, name(stream))
        unknown = name("o" + stream) + tlv([((2, b"x"), (2, b"y"))])
        self.refused("stream options refused: status 4041", "status", 4041, c.call, 128, unknown)
        self.fact("get_stream by name", stream_header(c.read(200, ident(stream)))[0]["id"] == self.sid)
        self.fact("get_stream by id", stream_header(c.read(200, ident(self.sid)))[0]["name"] == stream)
        self.fact("get_stream unknown: empty body", c.read(200, ident("nope")) == b"")
        body, at, seen = c.read(201), 0, []
        while at < len(body):
            found, at = stream_header(body, at)
            seen.append(found["name"])
        self.fact("get_streams", stream in seen)
        self.refused("undecodable create_stream: status 3", "status", 3, c.call, 128, b"\xff\x01")

    def topics(self):
        c, stream, topic = self.c, self.stream, self.topic
        number = c.next
        chosen = tlv([((2, b"max_topic_size"), (12, struct.pack("<Q", 2 << 30))), ((2, b"message_expiry"), (2, b"7 days"))])
        request = ident(stream) + u32(3) + name(topic) + chosen
        body = c.call(132, request)
        made, at = topic_header(body)
        partitions, at = partition_list(body, at, made["partitions"])
        self.tid = made["id"]
        self.fact("create_topic", made["name"] == topic and made["partitions"] == 3 and at == len(body))
        self.fact("its reply's operation byte is 64", c.last[208] == 64, c.last[208])
        self.fact("its partitions", [one[0] for one in partitions] == [0, 1, 2])
        self.fact("its options are explicit", sorted(key[1] for key, _ in made["explicit"]) == [b"max_topic_size", b"message_expiry"])
        self.fact("its expiry as text became a number", made["expiry"] == 7 * 86400 * 10**6, made["expiry"])
        first = c.last
        c.send(c.frame(132, request, request=number))
        self.fact("same request number again: the same reply, byte for byte", c.receive() == first)
        one = ident(stream) + u32(1)
        self.refused("create_topic again: result 2013", "result", 2013, c.call, 132, one + name(topic))
        self.refused("create_topic in unknown stream: result 1009", "result", 1009, c.call, 132, ident("nope") + u32(1) + name(topic))
        self.refused("1001 partitions: status 2015", "status", 2015, c.call, 132, ident(stream) + u32(1001) + name("big"))
        for text, code, key, value in (
            ("unknown option: status 4041", 4041, b"retention", (2, b"1")),
            ("bad option value: status 4042", 4042, b"segment_size", (12, struct.pack("<Q", 1000))),
            ("max size below segment: status 1019", 1019, b"max_topic_size", (12, struct.pack("<Q", 1 << 20))),
            ("durability option: status 4041", 4041, b"durability", (2, b"persisted")),
        ):
            self.refused(text, "status", code, c.call, 132, one + name("x" + key.decode()) + tlv([((2, key), value)]))
        self.fact("topic with 0 partitions is legal", topic_header(c.call(132, ident(stream) + u32(0) + name("empty")))[0]["partitions"] == 0)
        self.fact("get_topic", topic_header(c.read(300, self.place))[0]["id"] == self.tid)
        self.fact("get_topic unknown topic: empty", c.read(300, ident(stream) + ident("nope")) == b"")
        self.fact("get_topic unknown stream: empty", c.read(300, ident("nope") + ident(topic)) == b"")
        body = c.read(301, ident(stream))
        (count,), at, names = struct.unpack_from("<I", body), 4, []
        for _ in range(count):
            found, at = topic_header(body, at)
            names.append(found["name"])
        self.fact("get_topics", {"empty", topic} <= set(names) and at == len(body), sorted(names))
        seen = self.seen(c.read, 301, ident("nope"))
        self.fact("get_topics unknown stream: n=0", seen == b"\0\0\0\0", seen)
        body = c.read(13, b"\x01")
        (count,), at, keys = struct.unpack_from("<I", body), 4, []
        for _ in range(count):
            key, at = short_text(body, at)
            keys.append(key)
            (length,) = struct.unpack_from("<I", body, at + 1)  # after the kind: the default value
            _, at = long_text(body, at + 5 + length)
        self.fact("describe_options", at == len(body) and len(keys) == 8, sorted(keys))

    def send(self):
        c, stream, topic = self.c, self.stream, self.topic
        self.headers = tlv(
            [
                ((2, b"content-type"), (2, b"application/json")),
                ((2, b"n"), (6, struct.pack("<i", -5))),
                ((1, b"\0\1"), (15, struct.pack("<d", 1.5))),
            ]
        )
        origin = self.origin = now()
        messages = self.messages = [(11, origin, b"first", self.headers), (0, origin + 10, b"second", b""), (33, origin + 20, b"", self.headers)]

        def placed(to, payload, **header):
            answer = c.send_messages(stream, topic, to, [(1, now(), payload, b"")], **header)
            return struct.unpack_from("<IIIQ", answer, 4)

        answer = c.send_messages(stream, topic, to_partition(0), messages)
        self.fact("send 3", len(answer) == 24 and struct.unpack("<IIIIQ", answer) == (1, self.sid, self.tid, 0, 0))
        self.fact("next base offset", placed(to_partition(0), b"x")[3] == 3)
        self.fact("balanced moves on", placed(BALANCED, b"balanced")[2] != placed(BALANCED, b"balanced")[2])
        for key in (b"a", b"customer-42", b"\xff\x00"):
            self.fact(f"messages key -> xxh32 % 3 ({key})", placed(by_key(key), b"keyed")[2] == xxh32(key) % 3)
        one = messages[:1]
        for text, arguments in (
            ("send to unknown topic: status 20", (stream, "nope", to_partition(0))),
            ("send to unknown stream: status 20", ("nope", topic, to_partition(0))),
            ("send to unknown partition: status 20", (stream, topic, to_partition(9))),
            ("send to topic without partitions: status 20", (stream, "empty", BALANCED)),
        ):
            self.refused(text, "status", 20, c.send_messages, *arguments, one)
        for text, broken in (("bad message checksum: silence", "message"), ("bad batch checksum: silence", "batch")):
            self.refused(text, "silence", 0, c.send_messages, stream, topic, to_partition(1), one, broken=broken, seconds=1)
        place = self.place + to_partition(1) + u32(2)
        body = u32(len(place)) + place + batch(one, origin)
        self.refused("wrong count before the batch: silence", "silence", 0, c.call, 160, body, seconds=1)
        self.fact("connection lives after bad batches", c.read(1) == b"")
        junk = [(1, now(), b"after", b"\x07junk that is not TLV")]
        self.fact("user headers are not looked into", len(c.send_messages(stream, topic, to_partition(1), junk)) == 24)

    def pipelining(self):
        c, sent, offsets = self.c, {}, {0: [], 1: [], 2: []}
        for index in range(200):
            number, partition = c.number(), index % 3
            message = [(1, now(), b"p%d" % index, b"")]
            place = self.place + to_partition(partition) + u32(1)
            sent[number] = partition
            c.send(c.frame(160, u32(len(place)) + place + batch(message, message[0][1]), request=number))
        answered = 0
        try:
            while answered < 200:
                frame = c.receive(5)
                (number,) = struct.unpack_from("<Q", frame, 200)
                offsets[sent[number]].append((number, struct.unpack_from("<IIIQ", c.decode(frame), 4)[3]))
                answered += 1
        except Silence:
            pass
        self.fact("200 sends in flight are answered", answered == 200, answered)
        in_order = all([base for _, base in sorted(one)] == sorted(base for _, base in one) for one in offsets.values())
        self.fact("their order inside each partition is kept", in_order)

    def poll(self):
        c, stream, topic, origin = self.c, self.stream, self.topic, self.origin
        _, current, count, found = c.poll(stream, topic, 0, 1, 0, 3)
        self.fact("poll offset 0 count 3", count == 3 and [one["offset"] for one in found] == [0, 1, 2])
        same = [one["payload"] for one in found] == [b"first", b"second", b""] and [one["id"] for one in found] == [11, 0, 33]
        self.fact("payloads, headers, ids", same and found[0]["headers"] == self.headers)
        times = [one["origin"] for one in found] == [origin, origin + 10, origin + 20]
        self.fact("origin and broker time", times and abs(found[0]["stored"] - origin) < 5e6)
        self.fact("checksums hold", all(one["sum_ok"] and one["batch_ok"] for one in found))
        self.fact("headers decode", len(read_tlv(found[0]["headers"])) == 3)
        _, _, count, found = c.poll(stream, topic, 0, 1, 1, 1)
        one = found[0]
        cut = (count, one["offset"], one["delta"], one["base"], one["count"]) == (1, 1, 1, 0, 1)
        self.fact("cut batch: delta over 0, count clamped, checksum right", cut and one["batch_ok"])
        self.fact("past the end: 0 messages", c.poll(stream, topic, 0, 1, current + 1)[2] == 0)
        self.fact("first", [one["offset"] for one in c.poll(stream, topic, 0, 3, 0, 2)[3]] == [0, 1])
        self.fact("last", [one["offset"] for one in c.poll(stream, topic, 0, 4, 0, 2)[3]] == [current - 1, current])
        self.fact("timestamp in the past: offset 0", [one["offset"] for one in c.poll(stream, topic, 0, 2, origin - 10**9, 1)[3]] == [0])
        self.fact("timestamp in the future: none", c.poll(stream, topic, 0, 2, now() + 10**9, 1)[2] == 0)
        self.fact("count 0: none", c.poll(stream, topic, 0, 1, 0, 0)[2] == 0)
        self.refused("poll unknown partition: status 3007", "status", 3007, c.poll, stream, topic, 9)
        self.refused("poll unknown topic: status 2010", "status", 2010, c.poll, stream, "nope", 0)
        self.refused("poll unknown stream: status 1009", "status", 1009, c.poll, "nope", topic, 0)
        seen = self.seen(c.poll, stream, topic, 1, 1, 0, 1, who=consumer(7, 3))
        self.fact("poll with consumer kind 3: empty reply, partition 0", seen == (0, 0, 0, []), seen)
        self.fact("absent partition = 0", c.poll(stream, topic, None, 1, 0, 1)[0:3:2] == (0, 1))

    def offsets(self):
        c, stream, topic = self.c, self.stream, self.topic
        self.fact("nothing stored: empty body", c.get_offset(stream, topic, 0) is None)
        self.fact("store 2", c.store_offset(stream, topic, 0, 2) == b"" and c.last[208] == 161 and c.last[256:] == b"\0\0\0\0")
        self.fact("get", c.get_offset(stream, topic, 0)[::2] == (0, 2))
        self.fact("next polls stored+1", c.poll(stream, topic, 0, 5, 0, 1)[3][0]["offset"] == 3)
        self.fact("going back is allowed", c.store_offset(stream, topic, 0, 0) == b"" and c.get_offset(stream, topic, 0)[2] == 0)
        self.fact("no-ack store", c.store_offset(stream, topic, 0, 1, ack=0) == b"" and c.get_offset(stream, topic, 0)[2] == 1)
        self.refused("beyond the end: status 4100", "status", 4100, c.store_offset, stream, topic, 0, 10**6)
        c.call(132, ident(stream) + u32(1) + name("fresh"))
        self.refused("empty partition: status 4100", "status", 4100, c.store_offset, stream, "fresh", 0, 0)
        self.fact("empty partition polls as current 0, 0 messages", c.poll(stream, "fresh", 0)[1:3] == (0, 0))
        c.store_offset(stream, topic, 0, 2, who=consumer("alice"))
        self.fact("named consumer = xxh32(name)", c.get_offset(stream, topic, 0, who=consumer(xxh32(b"alice")))[2] == 2)
        self.refused("store unknown topic: status 20", "status", 20, c.store_offset, stream, "nope", 0, 0)
        self.refused("store without partition: status 20", "status", 20, c.store_offset, stream, topic, None, 0)
        kind3 = consumer("g", 3)
        self.refused("store with kind 3: status 20", "status", 20, c.store_offset, stream, topic, 0, 0, who=kind3)
        for text, arguments, who in (
            ("get with kind 3: empty", (stream, topic, 0), kind3),
            ("get unknown topic: empty", (stream, "nope", 0), None),
        ):
            seen = self.seen(c.get_offset, *arguments, who=who)
            self.fact(text, seen is None, seen)
        self.refused("get unknown partition: status 3007", "status", 3007, c.get_offset, stream, topic, 9)

        def delete(who):
            return c.call(162, who + self.place + maybe_partition(0) + b"\x01")

        alice = consumer("alice")
        self.fact("delete offset", delete(alice) == b"" and c.get_offset(stream, topic, 0, who=alice) is None)
        self.refused("delete again: status 3021", "status", 3021, delete, alice)
        c.poll(stream, topic, 0, 1, 0, 2, commit=1, who=consumer(99))
        deadline = time.monotonic() + 5
        while (stored := c.get_offset(stream, topic, 0, who=consumer(99))) is None and time.monotonic() < deadline:
            pass
        self.fact("auto commit stored the last offset", stored and stored[2] == 1)
        self.refused("flush: status 5", "status", 5, c.read, 102, self.place + struct.pack("<IB", 0, 1))

    def changes(self):
        c, stream, topic, place = self.c, self.stream, self.topic, self.place
        expiry = tlv([((2, b"message_expiry"), (12, struct.pack("<Q", 3600 * 10**6)))])
        self.fact("update_topic", c.call(133, place + name(topic) + expiry) == b"")
        found, _ = topic_header(c.read(300, place))
        self.fact("expiry changed, rest kept", found["expiry"] == 3600 * 10**6 and found["max"] == 2 << 30)
        fixed = place + name(topic) + tlv([((2, b"segment_size"), (12, struct.pack("<Q", 1 << 20)))])
        self.refused("update create-only key: status 4041", "status", 4041, c.call, 133, fixed)
        self.refused("update unknown topic: result 2010", "result", 2010, c.call, 133, ident(stream) + ident("nope") + name("x"))
        self.refused("rename onto another topic: result 2013", "result", 2013, c.call, 133, place + name("fresh"))
        self.fact("create_partitions +2", c.call(136, place + u32(2)) == b"")
        self.fact("its operation byte is 65", c.last[208] == 65, c.last[208])
        self.fact("now 5", topic_header(c.read(300, place))[0]["partitions"] == 5)
        self.fact("delete_partitions -1", c.call(137, place + u32(1)) == b"")
        self.fact("now 4", topic_header(c.read(300, place))[0]["partitions"] == 4)
        self.refused("create 0 partitions: status 2015", "status", 2015, c.call, 136, place + u32(0))
        self.fact("delete_segments (nothing sealed)", c.call(138, place + struct.pack("<II", 0, 1)) == b"")

    def users(self):
        c, stream, topic, one = self.c, self.stream, self.topic, self.messages[:1]
        user = "u" + self.tag
        granted = bytes(10) + b"\x01" + u32(self.sid) + bytes(6) + b"\x01" + u32(self.tid) + bytes([0, 0, 1, 0]) + b"\0" + b"\0"
        body = c.call(141, name(user) + name("secret") + b"\x01" + b"\x01" + u32(len(granted)) + granted)
        uid, _, status = struct.unpack_from("<IQB", body)
        ends = body.endswith(b"\x01" + u32(len(granted)) + granted)
        self.fact("create_user", short_text(body, 13)[0] == user and status == 1 and ends)
        self.refused("create_user again: result 46", "result", 46, c.call, 141, name(user) + name("secret") + b"\x01\x00")
        self.refused("short user name: result 43", "result", 43, c.call, 141, name("ab") + name("secret") + b"\x01\x00")
        self.fact("get_user", struct.unpack_from("<I", c.read(31, ident(user)))[0] == uid)
        self.fact("get_user unknown: empty", c.read(31, ident("nobody")) == b"")
        body, at, users = c.read(32), 0, []
        while at < len(body):
            (number,) = struct.unpack_from("<I", body, at)
            text, at = short_text(body, at + 13)
            users.append((number, text))
            _, at = options_block(body, at)
        self.fact("get_users", (uid, user) in users and (0, self.user) in users)
        e = self.connection()
        e.login(user, "secret")
        self.fact("second user logs in", e.user == uid and e.session > c.session)
        self.fact("may poll", e.poll(stream, topic, 0, 1, 0, 1)[2] == 1)
        self.refused("may not send: status 41", "status", 41, e.send_messages, stream, topic, to_partition(0), one)
        self.refused("may not get_topic: status 41", "status", 41, e.read, 300, self.place)
        self.refused("may not list streams: status 41", "status", 41, e.read, 201)
        self.refused("may not create a stream: result 41", "result", 41, e.call, 128, name("mine" + self.tag))
        self.refused("unknown topic before permission: status 20", "status", 20, e.send_messages, stream, "nope", to_partition(0), one)
        self.fact("get_user self", e.read(31, ident(uid)) != b"")
        granted = bytes(9) + b"\x01" + b"\0"
        self.fact("update_permissions", c.call(145, ident(user) + b"\x01" + u32(len(granted)) + granted) == b"")
        self.fact("now may send", len(e.send_messages(stream, topic, to_partition(0), one)) == 24)
        self.refused("now may not poll: status 41", "status", 41, e.poll, stream, topic, 0)
        self.fact("change own password", e.call(144, ident(user) + name("secret") + name("secret2")) == b"")
        self.refused("wrong current password: result 42", "result", 42, e.call, 144, ident(user) + name("bad") + name("secret3"))
        self.tokens()
        self.refused("root permissions: result 49", "result", 49, c.call, 145, ident(0) + b"\0")
        self.refused("delete root: result 48", "result", 48, c.call, 143, ident(0))
        self.fact("delete user", c.call(143, ident(user)) == b"")
        self.refused("delete user again: result 20", "result", 20, c.call, 143, ident(user))
        self.refused("deleted user's open session: status 41", "status", 41, e.send_messages, stream, topic, to_partition(0), one)
        e.close()

    def tokens(self):
        c, called = self.c, name("tok" + self.tag)
        body = c.call(146, called + struct.pack("<Q", NEVER))
        token = body[1 : 1 + body[0]]
        self.fact("create token of 68 characters", len(token) == 68, len(token))
        g = self.connection()
        g.login(None, None, token=token)
        self.fact("token login", g.user == 0)
        g.close()
        g = self.connection()
        self.refused("bad token: eviction 10", "eviction", 10, g.login, None, None, token=b"x" * 40)
        g.close()
        self.fact("list tokens", called in c.read(41))
        self.fact("delete token", c.call(147, called) == b"")
        self.refused("delete token again: result 20", "result", 20, c.call, 147, called)

    def system(self):
        c = self.c
        me = c.read(20)
        number, user, transport = struct.unpack_from("<IIB", me)
        self.fact("get_me", user == 0 and transport == 1)
        self.fact("get_client(me) = get_me", c.read(21, u32(number)) == me)
        self.fact("get_client unknown: empty", c.read(21, u32(4000000000)) == b"")
        body, at, count = c.read(22), 0, 0
        while at < len(body):
            _, at = long_text(body, at + 9)
            at, count = at + 4, count + 1
        self.fact("get_clients", count >= 1 and at == len(body))
        body = c.read(12)
        _, at = long_text(body, 0)
        (count,), at = struct.unpack_from("<I", body, at), at + 4
        for _ in range(count):
            _, at = long_text(body, at)
            _, at = long_text(body, at)
            at += 10
        self.fact("get_cluster_metadata", count == 1 and at == len(body))
        body, at = c.read(10), 108
        for _ in range(5):
            _, at = long_text(body, at)
        _, entries = struct.unpack_from("<II", body, at)
        self.fact("get_stats", at + 8 + 32 * entries + 20 == len(body))

    def groups(self):
        c, stream, topic, place = self.c, self.stream, self.topic, self.place
        body = c.call(139, place + name("grp"))
        _, _, members = struct.unpack_from("<III", body)
        text, at = short_text(body, 12)
        self.fact("create group", members == 0 and text == "grp" and at == len(body))
        self.refused("create group again: result 5004", "result", 5004, c.call, 139, place + name("grp"))
        group, who = place + ident("grp"), consumer("grp", 2)
        self.fact("sync as non member: empty", c.read(606, group) == b"")
        self.fact("group poll by non member: partition -1", c.poll(stream, topic, 0, 5, 0, 1, who=who)[0:3:2] == (0xFFFFFFFF, 0))
        self.fact("join", c.call(148, group) == b"")
        body = c.read(606, group)
        (count,) = struct.unpack_from("<I", body, 8)
        self.fact("sync", struct.unpack_from(f"<{count}I", body, 12) == (0, 1, 2, 3))
        partition, _, count, found = c.poll(stream, topic, 0, 5, 0, 1, who=who)
        self.fact("group poll", (partition, count) == (0, 1) and found[0]["offset"] == 0)
        self.fact("group store", c.store_offset(stream, topic, 0, 0, who=who) == b"")
        self.fact("group offset", c.get_offset(stream, topic, 0, who=who)[2] == 0)
        self.refused("group store without partition: status 20", "status", 20, c.store_offset, stream, topic, None, 0, who=who)
        body = c.read(600, group)
        gid, _, members = struct.unpack_from("<III", body)
        _, at = short_text(body, 12)
        self.fact("get group", members == 1 and struct.unpack_from("<I", body, at + 4)[0] == 4 and at + 24 == len(body))
        self.fact("list groups", struct.unpack_from("<III", c.read(601, place))[2] == 1)
        self.fact("get unknown group: empty", c.read(600, place + ident("zz")) == b"")
        self.refused("get group of unknown topic: status 2010", "status", 2010, c.read, 600, ident(stream) + ident("nope") + ident("grp"))
        me = c.read(20)
        self.fact("get_me shows the membership", struct.unpack_from("<III", me, len(me) - 12) == (self.sid, self.tid, gid))
        self.fact("leave", c.call(149, group) == b"")
        self.refused("leave again: result 5006", "result", 5006, c.call, 149, group)
        self.fact("delete group", c.call(140, group) == b"")
        self.refused("join deleted: result 5000", "result", 5000, c.call, 148, group)

    def numbers(self):
        c, same = self.c, self.place + name(self.topic)
        for _ in range(6):
            c.call(133, same)
        self.refused("number 1 again after many ops: result 59", "result", 59, c.call, 128, name("other" + self.tag), request=1)
        far = c.next + 1000
        self.fact("jump of the number is fine", c.call(133, same, request=far) == b"")
        c.next = far + 1
        self.fact("wrong nonzero session is overwritten (metadata)", c.call(133, same, session=999999) == b"")
        echoed = c.read(1, request=123456789) == b"" and struct.unpack_from("<Q", c.last, 200)[0] == 123456789
        self.fact("numbers of reads are echoed", echoed)

    def end(self):
        c, stream = self.c, self.stream
        self.fact("delete_topic", c.call(134, self.place) == b"")
        self.refused("delete_topic again: result 2010", "result", 2010, c.call, 134, self.place)
        self.fact("delete_stream", c.call(130, ident(stream)) == b"")
        self.refused("delete_stream again: result 1009", "result", 1009, c.call, 130, ident(stream))
        self.fact("logout", c.call(3) == b"" and c.last[208] == 3)
        self.refused("after logout: status 40", "status", 40, c.read, 201)
        c.client, c.session = int.from_bytes(os.urandom(16), "little"), 0
        c.login(self.user, self.password)
        self.fact("login again on the same socket with a new client id", c.session > 0)
        k = self.connection()
        k.client = c.client
        k.login(self.user, self.password)
        self.fact("same client id from a second connection: higher session", k.session > c.session)
        self.refused("first connection after the takeover: eviction 1", "eviction", 1, c.call, 128, name("fenced" + self.tag), request=1, seconds=2)
        k.close()
        c.close()

    def all(self):
        for section in (
            self.before_login,
            self.header_rules,
            self.streams,
            self.topics,
            self.send,
            self.pipelining,
            self.poll,
            self.offsets,
            self.changes,
            self.users,
            self.system,
            self.groups,
            self.numbers,
            self.end,
        ):
            try:
                section()
            except (Refusal, Silence, OSError, struct.error, IndexError, TypeError, AttributeError) as error:
                self.fact(f"all of {section.__name__}", False, f"ended by {type(error).__name__} {error}")
        return self.facts


def exceptions():
    """{fact: (what our server shows, why)}"""
    found = {}
    with open(os.path.join(HERE, "exceptions.txt"), encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                fact, seen, why = (part.strip() for part in line.split("|"))
                found[fact] = (seen, why)
    return found


def judge(facts):
    """Lines about everything that neither holds nor is an exception, and about exceptions that are none."""
    allowed, wrong = exceptions(), []
    for fact, (holds, seen) in facts.items():
        if fact in allowed and holds:
            wrong.append(f"{fact}: holds, but exceptions.txt lists it")
        elif fact in allowed and seen != allowed[fact][0]:
            wrong.append(f"{fact}: seen {seen}, exceptions.txt says {allowed[fact][0]}")
        elif fact not in allowed and not holds:
            wrong.append(f"{fact}: seen {seen or 'something else'}")
    wrong += [f"{fact}: exceptions.txt lists it, but nobody asked" for fact in allowed if fact not in facts]
    return wrong


def main():
    if len(sys.argv) not in (2, 4):
        print(__doc__, file=sys.stderr)
        return 2
    address, user, password = (sys.argv[1:] + ["iggy", "iggy"])[:3]
    facts = Probe(address, user, password).all()
    for fact, (holds, seen) in facts.items():
        print("ok   " if holds else "OTHER", fact, "" if holds else f"-> {seen}")
    wrong = judge(facts)
    print("\n".join(wrong))
    print(f"{sum(holds for holds, _ in facts.values())} of {len(facts)} hold, {len(wrong)} without an exception")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
