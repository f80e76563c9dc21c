#!/usr/bin/env python3
"""driver.py   the PyPI SDK apache-iggy behind the line protocol of ../README.md

One file for both generations: apache-iggy 0.9.0 (protocol 0.11) and 0.9.1 (0.12). What the SDK has no method for goes through its
send_binary_request, which still uses its session, framing and error handling.
"""

import asyncio
import datetime
import json
import os
import re
import struct
import sys
from importlib.metadata import version

import apache_iggy as iggy

NEW = hasattr(iggy, "TopicOptions")  # 0.9.1: protocol 0.12
SECONDS = 20

# 0.9.0 raises texts without a number. The texts are those of its error type; any other text is reported with the code null.
CODES = [
    (r"^Invalid command", 3),
    (r"^Invalid format", 4),
    (r"^Feature is unavailable", 5),
    (r"^Invalid identifier", 6),
    (r"^Disconnected", 8),
    (r"^Resource with key", 20),
    (r"^Stale client", 30),
    (r"^Unauthenticated", 40),
    (r"^Unauthorized", 41),
    (r"^Invalid credentials", 42),
    (r"^Invalid username", 43),
    (r"^Invalid password", 44),
    (r"^User already exists", 46),
    (r"^User inactive", 47),
    (r"^Cannot delete user", 48),
    (r"^Cannot change permissions", 49),
    (r"^Personal access token: .* already exists", 51),
    (r"^Invalid personal access token$", 53),
    (r"^Stream with ID: \S+ was not found", 1009),
    (r"^Stream with name: .*already exists", 1012),
    (r"^Topic with ID: \S+ for stream with ID: \S+ was not found", 2010),
    (r"^Topic with name: .*already exists", 2013),
    (r"^Too many partitions", 2015),
    (r"^Partition with ID: \S+ .*was not found", 3007),
    (r"^Consumer offset .*not found|^Consumer offset for consumer with ID", 3021),
    (r"^Invalid offset", 4100),
    (r"^Consumer group with ID: \S+ .*was not found", 5000),
    (r"^Consumer group with name: .*already exists", 5004),
    (r"^Consumer group member", 5006),
]
KINDS = {"raw": "Raw", "string": "String", "bool": "Bool", "float32": "Float32", "float64": "Float64"}
KINDS |= {f"int{bits}": f"Int{bits}" for bits in (8, 16, 32, 64, 128)}
KINDS |= {f"uint{bits}": f"UnsignedInt{bits}" for bits in (8, 16, 32, 64, 128)}
NAMES = {variant: kind for kind, variant in KINDS.items()}
STRATEGIES = {"first": "First", "last": "Last", "next": "Next", "offset": "Offset", "timestamp": "Timestamp"}


def identifier(value):
    data = value.encode()
    return bytes([2, len(data)]) + data


def text_of(data):
    return bytes([len(data.encode())]) + data.encode()


def place(consumer, kind, stream, topic, partition):
    return bytes([kind]) + identifier(consumer) + identifier(stream) + identifier(topic) + struct.pack("<BI", 1, partition)


def header_field(base, kind, text):
    if kind == "raw":
        value = bytes.fromhex(text)
    elif kind == "string":
        value = text
    elif kind == "bool":
        value = text == "true"
    else:
        value = float(text) if kind.startswith("float") else int(text)
    return getattr(base, KINDS[kind])(value)


def header_text(field):
    kind, value = NAMES[type(field).__name__], field.value
    if kind == "raw":
        return [kind, bytes(value).hex()]
    return [kind, str(value).lower() if kind == "bool" else str(value)]


def to_message(message):
    headers = {}
    for key_kind, key, value_kind, value in message.get("headers", []):
        headers[header_field(iggy.HeaderKey, key_kind, key)] = header_field(iggy.HeaderValue, value_kind, value)
    identity = message.get("id")
    return iggy.SendMessage(bytes.fromhex(message["payload"]), headers or None, None if identity is None else int(identity))


def from_message(message):
    headers = [[*header_text(key), *header_text(value)] for key, value in (message.user_headers() or {}).items()]
    return {
        "partition": message.partition_id(),
        "offset": message.offset(),
        "id": str(message.id()),
        "payload": bytes(message.payload()).hex(),
        "headers": sorted(headers),
        "timestamp": message.timestamp(),
        "origin": message.origin_timestamp(),
    }


def permissions_of(value):
    if value is None:
        return None
    streams = {}
    for stream, item in value.get("streams", {}).items():
        topics = {int(topic): iggy.TopicPermissions(**flags) for topic, flags in item.get("topics", {}).items()} or None
        flags = {key: flag for key, flag in item.items() if key != "topics"}
        streams[int(stream)] = iggy.StreamPermissions(**flags, topics=topics)
    return iggy.Permissions(iggy.GlobalPermissions(**value.get("global", {})), streams or None)


def permissions_to(value):
    def flags(item):
        return {name: True for name in dir(item) if not name.startswith("_") and getattr(item, name) is True}

    if value is None:
        return None
    streams = {}
    for stream, item in (value.streams or {}).items():
        topics = {str(topic): flags(entry) for topic, entry in (item.topics or {}).items()}
        streams[str(stream)] = flags(item) | ({"topics": topics} if topics else {})
    return {"global": flags(value.global_permissions) if value.global_permissions else {}} | ({"streams": streams} if streams else {})


def partitioning_of(to):
    if to == "balanced":
        return iggy.Partitioning.balanced()
    if "key" in to:
        return iggy.Partitioning.messages_key(bytes.fromhex(to["key"]))
    return iggy.Partitioning.partition_id(to["partition"])


def expiry_of(us):
    return iggy.IggyExpiry.ExpireDuration(datetime.timedelta(microseconds=us))


def strategy_of(how, value):
    variant = getattr(iggy.PollingStrategy, STRATEGIES[how])
    return variant(value=value) if how in ("offset", "timestamp") else variant()


def confirmed(response):
    (one,) = response.confirmations
    return [one.partition_id, one.base_offset]


class Calls:
    """One method for each call of the line protocol; its arguments are the call's."""

    def __init__(self):
        self.client, self.address = None, None

    async def hello(self):
        can = ["purge"] if hasattr(iggy.IggyClient, "purge_topic") else []
        return {"sdk": f"apache-iggy {version('apache-iggy')}", "protocol": "0.12" if NEW else "0.11", "can": can}

    async def connect(self, address, ca=None):
        self.address = address
        by_tls = {"tls_enabled": True, "tls_domain": "localhost", "tls_ca_file": ca}
        self.client = iggy.IggyClient(iggy.TcpConfig(server_address=address, **by_tls) if ca else address)
        await self.client.connect()

    async def login(self, user, password):
        await self.client.login_user(user, password)

    async def login_token(self, token):
        if NEW:
            await self.client.login_with_personal_access_token(token)
            return
        # 0.9.0 logs in with a token only by itself, while it connects.
        login = iggy.AutoLogin.personal_access_token(token)
        self.client = iggy.IggyClient(
            iggy.TcpConfig(server_address=self.address, auto_login=login, reconnection=iggy.TcpReconnectionConfig(enabled=False))
        )
        await self.client.connect()

    async def logout(self):
        await self.client.logout_user()

    async def ping(self):
        await self.client.ping()

    async def stats(self):
        stats = await self.client.get_stats()
        names = ("streams_count", "topics_count", "partitions_count", "messages_count", "clients_count", "consumer_groups_count")
        return {name.removesuffix("_count"): getattr(stats, name) for name in names} | {"pid": stats.process_id}

    async def cluster(self):
        body = await self.client.send_binary_request(12, b"")
        (length,) = struct.unpack_from("<I", body)
        at = 4 + length
        (count,) = struct.unpack_from("<I", body, at)
        at += 4
        nodes = []
        for _ in range(count):
            at += 1 if NEW else 0  # the replica's number
            texts = []
            for _ in range(2):
                (length,) = struct.unpack_from("<I", body, at)
                texts.append(body[at + 4 : at + 4 + length].decode())
                at += 4 + length
            (port,) = struct.unpack_from("<H", body, at)
            nodes.append({"address": f"{texts[1]}:{port}", "leader": body[at + 8] == 0})
            at += 10
        return nodes

    async def me(self):
        body = await self.client.send_binary_request(20, b"")
        client, user = struct.unpack_from("<II", body)
        return {"client": client, "user": user}

    async def options(self, scope):
        return sorted(option.key for option in await self.client.describe_options(scope))

    async def create_stream(self, name):
        await self.client.create_stream(name)

    async def streams(self):
        return sorted(stream.name for stream in await self.client.get_streams())

    async def stream(self, stream):
        found = await self.client.get_stream(stream)
        return found and {"id": found.id, "name": found.name, "topics": sorted(topic.name for topic in found.topics), "messages": found.messages_count}

    async def rename_stream(self, stream, name):
        await self.client.update_stream(stream, name)

    async def purge_stream(self, stream):
        await self.client.purge_stream(stream)

    async def delete_stream(self, stream):
        await self.client.delete_stream(stream)

    async def create_topic(self, stream, topic, partitions, expiry_us=None):
        options = {"partitions_count": partitions} | ({"message_expiry": expiry_of(expiry_us)} if expiry_us else {})
        if NEW:
            await self.client.create_topic(stream, topic, iggy.TopicOptions(**options))
        else:
            await self.client.create_topic(stream, topic, **options)

    async def topics(self, stream):
        return sorted(topic.name for topic in await self.client.get_topics(stream))

    async def topic(self, stream, topic):
        found = await self.client.get_topic(stream, topic)
        if found is None:
            return None
        expiry = found.message_expiry
        partitions = [{"id": one.id, "offset": one.current_offset, "messages": one.messages_count} for one in found.partitions]
        return {
            "id": found.id,
            "name": found.name,
            "messages": found.messages_count,
            "partitions": partitions,
            "expiry_us": round(expiry.duration.total_seconds() * 1_000_000) if hasattr(expiry, "duration") else None,
        }

    async def update_topic(self, stream, topic, name=None, expiry_us=None):
        options = {} if name is None and NEW else {"name": name or topic}
        if expiry_us:
            options["message_expiry"] = expiry_of(expiry_us)
        await self.client.update_topic(stream, topic, **options)

    async def purge_topic(self, stream, topic):
        await self.client.purge_topic(stream, topic)

    async def delete_topic(self, stream, topic):
        await self.client.delete_topic(stream, topic)

    async def add_partitions(self, stream, topic, count):
        await self.client.create_partitions(stream, topic, count)

    async def drop_partitions(self, stream, topic, count):
        await self.client.delete_partitions(stream, topic, count)

    async def drop_segments(self, stream, topic, partition, count):
        body = identifier(stream) + identifier(topic) + struct.pack("<II", partition, count)
        await self.client.send_binary_request(503, body)

    async def send(self, stream, topic, to, messages):
        messages = [to_message(message) for message in messages]
        return confirmed(await self.client.send_messages(stream, topic, partitioning_of(to), messages))

    async def produce(self, stream, topic, to, messages):
        """The high-level producer."""
        producer = await self.client.producer(stream, topic, partitioning=partitioning_of(to), create_stream_if_not_exists=False, create_topic_if_not_exists=False)
        async with producer:
            await producer.send([to_message(message) for message in messages])

    async def poll(self, stream, topic, partition, consumer, how, count, value=0, commit=False):
        found = await self.client.poll_messages(
            stream,
            topic,
            consumer=iggy.Consumer.Single(consumer),
            polling_strategy=strategy_of(how, value),
            count=count,
            auto_commit=commit,
            partition_id=partition,
        )
        return [from_message(message) for message in found]

    async def poll_group(self, stream, topic, group, count, commit):
        found = await self.client.poll_messages(
            stream, topic, consumer=iggy.Consumer.Group(group), polling_strategy=iggy.PollingStrategy.Next(), count=count, auto_commit=commit
        )
        return [from_message(message) for message in found]

    async def consume(self, stream, topic, group, count, on_read=False):
        """The high-level consumer, as a member of a group. A message's offset is stored as it is read, or once it is consumed."""
        commit = iggy.AutoCommit.After(iggy.AutoCommitAfter.ConsumingEachMessage())
        if on_read:
            commit = iggy.AutoCommit.When(iggy.AutoCommitWhen.PollingMessages())
        consumer = await self.client.consumer_group(group, stream, topic, batch_length=10, auto_commit=commit, polling_strategy=iggy.PollingStrategy.Next())
        found, enough = [], asyncio.Event()

        async def take(message):
            found.append(from_message(message))
            if len(found) >= count:
                enough.set()

        await consumer.consume_messages(take, enough)
        return found

    async def store_offset(self, stream, topic, partition, consumer, offset, kind=1):
        await self.client.send_binary_request(121, place(consumer, kind, stream, topic, partition) + struct.pack("<QB", offset, 1))

    async def get_offset(self, stream, topic, partition, consumer, kind=1):
        body = await self.client.send_binary_request(120, place(consumer, kind, stream, topic, partition))
        return struct.unpack("<IQQ", body)[2] if body else None

    async def delete_offset(self, stream, topic, partition, consumer, kind=1):
        await self.client.send_binary_request(122, place(consumer, kind, stream, topic, partition) + b"\x01")

    async def create_group(self, stream, topic, group):
        await self.client.create_consumer_group(stream, topic, group)

    async def groups(self, stream, topic):
        return sorted(group.name for group in await self.client.get_consumer_groups(stream, topic))

    async def group(self, stream, topic, group):
        found = await self.client.get_consumer_group(stream, topic, group)
        return found and {"id": found.id, "name": found.name, "members": sorted(member.partitions for member in found.members)}

    async def delete_group(self, stream, topic, group):
        await self.client.delete_consumer_group(stream, topic, group)

    async def join(self, stream, topic, group):
        await self.client.join_consumer_group(stream, topic, group)

    async def leave(self, stream, topic, group):
        await self.client.leave_consumer_group(stream, topic, group)

    async def create_user(self, name, password, active=True, permissions=None):
        status = iggy.UserStatus.Active if active else iggy.UserStatus.Inactive
        await self.client.create_user(name, password, status, permissions_of(permissions))

    async def users(self):
        return sorted(user.username for user in await self.client.get_users())

    async def user(self, user):
        found = await self.client.get_user(user)
        return found and {
            "id": found.id,
            "name": found.username,
            "active": found.status == iggy.UserStatus.Active,
            "permissions": permissions_to(found.permissions),
        }

    async def update_user(self, user, name=None, active=None):
        status = None if active is None else iggy.UserStatus.Active if active else iggy.UserStatus.Inactive
        await self.client.update_user(user, username=name, status=status)

    async def permit(self, user, permissions):
        await self.client.update_permissions(user, permissions_of(permissions))

    async def change_password(self, user, old, new):
        await self.client.change_password(user, old, new)

    async def delete_user(self, user):
        await self.client.delete_user(user)

    async def create_token(self, name):
        body = await self.client.send_binary_request(42, text_of(name) + b"\xff" * 8)
        return body[1 : 1 + body[0]].decode()

    async def tokens(self):
        body, at, names = await self.client.send_binary_request(41, b""), 0, []
        while at < len(body):
            names.append(body[at + 1 : at + 1 + body[at]].decode())
            at += 1 + body[at] + 8
        return sorted(names)

    async def delete_token(self, name):
        await self.client.send_binary_request(43, text_of(name))


def code_of(error):
    code = getattr(error, "code", None)
    if code is not None:
        return code
    return next((code for pattern, code in CODES if re.search(pattern, str(error))), None)


async def main():
    calls = Calls()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        arguments = json.loads(line)
        try:
            answer = {"ok": await asyncio.wait_for(getattr(calls, arguments.pop("call"))(**arguments), SECONDS)}
        except asyncio.TimeoutError:
            answer = {"error": None, "text": f"no answer within {SECONDS} s"}
        except Exception as error:
            answer = {"error": code_of(error), "text": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    os._exit(0)  # without waiting for what the SDK does in the background


asyncio.run(main())
