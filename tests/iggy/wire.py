"""Iggy's protocol 0.11 on a plain socket: frames, batches and calls, written from the protocol's description and not from the server's code."""

import os
import socket
import struct

import xxhash

HEADER = 256
VERSION = 11264  # 0.11.0
xxh3 = xxhash.xxh3_64_intdigest


def xxh32(data):
    return xxhash.xxh32_intdigest(data, 0)


# ---- primitives ----


def name(text):
    data = text.encode() if isinstance(text, str) else text
    return bytes([len(data)]) + data


def ident(value):
    if isinstance(value, int):
        return b"\x01\x04" + struct.pack("<I", value)
    data = value.encode()
    return bytes([2, len(data)]) + data


def consumer(value, kind=1):
    return bytes([kind]) + ident(value)


def maybe_partition(partition):
    return b"\0" * 5 if partition is None else b"\x01" + struct.pack("<I", partition)


def to_partition(partition):
    return b"\x02\x04" + struct.pack("<I", partition)


BALANCED = b"\x01\x00"


def by_key(key):
    return bytes([3, len(key)]) + key


def tlv(pairs):
    out = b""
    for pair in pairs:
        for kind, data in pair:
            out += struct.pack("<BI", kind, len(data)) + data
    return out


def read_tlv(data):
    fields, at = [], 0
    while at < len(data):
        kind, length = struct.unpack_from("<BI", data, at)
        fields.append((kind, bytes(data[at + 5 : at + 5 + length])))
        at += 5 + length
    return list(zip(fields[0::2], fields[1::2]))


# ---- batches ----


def batch(messages, origin, broken=None):
    """messages: (id, origin time in us, payload, user headers as bytes) each. broken: "message" or "batch" has a wrong checksum."""
    frames, sums = b"", b""
    for delta, (identity, time_us, payload, headers) in enumerate(messages):
        rest = identity.to_bytes(16, "little") + struct.pack("<IIIIQ", delta, time_us - origin, len(headers), len(payload), 0) + payload + headers
        checksum = b"\1" * 8 if broken == "message" else struct.pack("<Q", xxh3(rest))
        frames += checksum + rest
        sums += checksum
    length = HEADER + len(frames)
    hashed = struct.pack("<QQQQQI", 0, 0, 0, origin, length, len(messages))
    checksum = xxh3(hashed + sums) ^ (broken == "batch")
    return struct.pack("<QQQQQQI", 0, 0, 0, origin, length, checksum, len(messages)).ljust(HEADER, b"\0") + frames


def read_batches(data):
    """Messages as dicts; batch_ok: the batch's checksum, count and length are right."""
    out, start = [], 0
    while start < len(data):
        partition, base, stored, origin, length, checksum, count = struct.unpack_from("<QQQQQQI", data, start)
        at, sums, messages = start + HEADER, b"", []
        while at < start + length:
            (own,) = struct.unpack_from("<Q", data, at)
            identity = int.from_bytes(data[at + 8 : at + 24], "little")
            delta, time_delta, headers, payload, _ = struct.unpack_from("<IIIIQ", data, at + 24)
            end = at + 48 + payload + headers
            messages.append(
                {
                    "offset": base + delta,
                    "stored": stored,
                    "origin": origin + time_delta,
                    "id": identity,
                    "payload": data[at + 48 : at + 48 + payload],
                    "headers": data[at + 48 + payload : end],
                    "sum_ok": xxh3(data[at + 8 : end]) == own,
                    "delta": delta,
                    "base": base,
                    "count": count,
                }
            )
            sums += data[at : at + 8]
            at = end
        good = xxh3(struct.pack("<QQQQQI", partition, base, stored, origin, length, count) + sums) == checksum
        for message in messages:
            message["batch_ok"] = good and len(messages) == count and at == start + length
        out += messages
        start += length
    return out


# ---- answers ----


def options_block(data, at):
    (length,) = struct.unpack_from("<I", data, at)
    return read_tlv(data[at + 4 : at + 4 + length]), at + 4 + length


def short_text(data, at):
    return data[at + 1 : at + 1 + data[at]].decode(), at + 1 + data[at]


def long_text(data, at):
    (length,) = struct.unpack_from("<I", data, at)
    return data[at + 4 : at + 4 + length].decode(), at + 4 + length


def stream_header(data, at=0):
    number, _, topics, size, messages = struct.unpack_from("<IQIQQ", data, at)
    text, at = short_text(data, at + 32)
    _, at = options_block(data, at)
    return {"id": number, "topics": topics, "size": size, "messages": messages, "name": text}, at


def topic_header(data, at=0):
    number, _, partitions, expiry, _, most, size, messages = struct.unpack_from("<IQIQBQQQ", data, at)
    text, at = short_text(data, at + 49)
    explicit, at = options_block(data, at)
    derived, at = options_block(data, at)
    topic = {"id": number, "partitions": partitions, "expiry": expiry, "max": most, "size": size, "messages": messages, "name": text}
    return topic | {"explicit": explicit, "derived": derived}, at


def partition_list(data, at, count):
    return [struct.unpack_from("<IQIQQQ", data, at + 40 * index) for index in range(count)], at + 40 * count


# ---- connection ----


class Refusal(Exception):
    """how: status, result, eviction or command; code: its number."""

    def __init__(self, how, code):
        self.how, self.code = how, code
        super().__init__(f"{how} {code}")


class Silence(Exception):
    pass


FRAMED = set(range(64, 138)) | set(range(139, 150)) | {161, 162}  # operations whose answer begins with a result section


class Connection:
    def __init__(self, address, seconds=5.0):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client = int.from_bytes(os.urandom(16), "little") | 1
        self.session, self.next, self.seconds = 0, 1, seconds

    def frame(self, operation, body=b"", code=0, request=None, session=None, checksum=0, client=None, command=5, size=None):
        header = bytearray(HEADER)
        struct.pack_into("<I", header, 48, HEADER + len(body) if size is None else size)
        header[60] = command
        header[128:144] = (self.client if client is None else client).to_bytes(16, "little")
        header[144:160] = checksum.to_bytes(16, "little")
        struct.pack_into("<Q", header, 168, request)
        header[176] = operation
        struct.pack_into("<Q", header, 184, self.session if session is None else session)
        struct.pack_into("<I", header, 196, code)
        return bytes(header) + body

    def send(self, data):
        self.socket.sendall(data)

    def receive(self, seconds=None):
        self.socket.settimeout(seconds or self.seconds)
        data, want = b"", HEADER
        try:
            while len(data) < want:
                some = self.socket.recv(want - len(data))
                if not some:
                    raise ConnectionError("closed")
                data += some
                if len(data) == HEADER:
                    (want,) = struct.unpack_from("<I", data, 48)
        except socket.timeout:
            raise Silence() from None
        return data

    @staticmethod
    def decode(frame):
        """The payload; raises Refusal."""
        if frame[60] == 13:
            raise Refusal("eviction", frame[255])
        if frame[60] != 8:
            raise Refusal("command", frame[60])
        (status,) = struct.unpack_from("<I", frame, 216)
        body, operation = frame[HEADER:], frame[208]
        if status:
            if body:
                raise Refusal("status with a body", status)
            raise Refusal("status", status)
        if operation in FRAMED or (operation == 1 and body):
            (entries,) = struct.unpack_from("<I", body)
            if entries:
                raise Refusal("result", struct.unpack_from("<I", body, 8)[0])
            return body[4:]
        return body

    def number(self):
        self.next += 1
        return self.next - 1

    def call(self, operation, body=b"", code=0, seconds=None, **header):
        header.setdefault("request", self.next if operation == 2 else self.number())
        self.send(self.frame(operation, body, code, **header))
        self.last = self.receive(seconds)
        return self.decode(self.last)

    def read(self, code, body=b"", **header):
        return self.call(2, body, code, **header)

    def login(self, user, password, version=VERSION, token=None, **header):
        body = struct.pack("<I", version) + name("probe") + name("1")
        body += (name(token) if token else name(user) + name(password)) + struct.pack("<I", 0)
        answer = self.call(1, body, request=0, session=0, **header)
        self.user, self.session, self.version = struct.unpack_from("<IQI", answer)
        return answer

    def send_messages(self, stream, topic, to, messages, broken=None, **header):
        origin = min(message[1] for message in messages)
        place = ident(stream) + ident(topic) + to + struct.pack("<I", len(messages))
        return self.call(160, struct.pack("<I", len(place)) + place + batch(messages, origin, broken), **header)

    def poll(self, stream, topic, partition, kind=1, value=0, count=10, commit=0, who=None):
        body = (who or consumer(7)) + ident(stream) + ident(topic) + maybe_partition(partition)
        answer = self.read(100, body + struct.pack("<BQIB", kind, value, count, commit))
        partition, current, count = struct.unpack_from("<IQI", answer)
        return partition, current, count, read_batches(answer[16:])

    def store_offset(self, stream, topic, partition, offset, who=None, ack=1):
        place = (who or consumer(7)) + ident(stream) + ident(topic) + maybe_partition(partition)
        return self.call(161, place + struct.pack("<QB", offset, ack))

    def get_offset(self, stream, topic, partition, who=None):
        answer = self.read(120, (who or consumer(7)) + ident(stream) + ident(topic) + maybe_partition(partition))
        return struct.unpack("<IQQ", answer) if answer else None

    def close(self):
        self.socket.close()
