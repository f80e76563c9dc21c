"""A client library in its own process, spoken to by the driver protocol (README.md)."""

import os
import queue
import subprocess
import threading

from records import from_line, pack, to_line, unpack

# Kafka's names of the error numbers that scenarios meet.
ERROR_NAMES = {
    -1: "UNKNOWN_SERVER_ERROR",
    1: "OFFSET_OUT_OF_RANGE",
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    10: "MESSAGE_TOO_LARGE",
    17: "INVALID_TOPIC_EXCEPTION",
    22: "ILLEGAL_GENERATION",
    24: "INVALID_GROUP_ID",
    25: "UNKNOWN_MEMBER_ID",
    27: "REBALANCE_IN_PROGRESS",
    35: "UNSUPPORTED_VERSION",
    36: "TOPIC_ALREADY_EXISTS",
    37: "INVALID_PARTITIONS",
    38: "INVALID_REPLICATION_FACTOR",
    40: "INVALID_CONFIG",
    42: "INVALID_REQUEST",
    82: "FENCED_INSTANCE_ID",
    87: "INVALID_RECORD",
    110: "FENCED_MEMBER_EPOCH",
    111: "UNRELEASED_INSTANCE_ID",
    113: "STALE_MEMBER_EPOCH",
}


class ClientError(Exception):
    """What the client reported: `name` is Kafka's name of the error, or the driver's word for it."""

    def __init__(self, code, text):
        self.name = ERROR_NAMES.get(int(code), f"ERROR_{code}") if code.lstrip("-").isdigit() else code
        super().__init__(f"{self.name}: {text}")


class Driver:
    """One driver process. Methods raise ClientError for what the server refused."""

    def __init__(self, command, error_log):
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(error_log, "ab"), env=environment, text=True, bufsize=1 << 20
        )
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.can = set(self.ask("hello"))

    def _read(self):
        for text in self.process.stdout:
            self.lines.put(text.rstrip("\n"))
        self.lines.put(None)

    def _next(self):
        text = self.lines.get(timeout=60)
        if text is None:
            raise RuntimeError(f"the driver ended (status {self.process.wait()})")
        return text

    def ask(self, *fields, lines=()):
        self.process.stdin.write("\t".join(str(field) for field in fields) + "\n" + "".join(text + "\n" for text in lines))
        self.process.stdin.flush()
        status, *answer = self._next().split("\t")
        if status == "err":
            raise ClientError(answer[0], " ".join(answer[1:]))
        if status != "ok":
            raise RuntimeError(f"not a driver's answer: {status[:200]}")
        return answer

    def create(self, topic, partitions, factor=1):
        self.ask("create", topic, partitions, factor)

    def delete(self, topic):
        self.ask("delete", topic)

    def grow(self, topic, partitions):
        self.ask("grow", topic, partitions)

    def trim(self, topic, partition, offset):
        """Deletes what is before the offset; the low watermark."""
        (low,) = self.ask("trim", topic, partition, offset)
        return int(low)

    def topics(self):
        return {name: int(count) for name, count in (item.rsplit("=", 1) for item in self.ask("topics"))}

    def cluster(self):
        nodes, controller = self.ask("cluster")
        return int(nodes), controller == "yes"

    def produce(self, topic, records, codec="none", acks=-1, idempotent=False):
        lines = [to_line(record) for record in records]
        answer = self.ask("produce", topic, codec, acks, "yes" if idempotent else "no", len(lines), lines=lines)
        return [tuple(int(number) for number in item.split(":")) for item in answer]

    def consume(self, topic, partition, offset, count):
        (found,) = self.ask("consume", topic, partition, offset, count)
        return [from_line(self._next()) for _ in range(int(found))]

    def offset(self, topic, partition, where):
        (found,) = self.ask("offset", topic, partition, where)
        return None if found == "-" else int(found)

    def join(self, group, topic, instance=None, assignor="default"):
        self.ask("join", group, topic, instance or "-", assignor)

    def poll(self, most, milliseconds):
        """(partitions that are assigned, records): the group consumer's."""
        assigned, found = self.ask("poll", most, milliseconds)
        partitions = set() if assigned == "-" else {int(number) for number in assigned.split(",")}
        return partitions, [from_line(self._next()) for _ in range(int(found))]

    def commit(self):
        """Partition -> offset of what it committed."""
        return {int(partition): int(offset) for partition, offset in (item.split(":") for item in self.ask("commit"))}

    def rebalances(self):
        return int(self.ask("rebalances")[0])

    def leave(self):
        self.ask("leave")

    def configure(self, topic, key, how, value="-"):
        self.ask("configure", topic, key, how, value)

    def setting(self, topic, key):
        """(value, whether it was set for the topic)."""
        value, source = self.ask("setting", topic, key)
        return value, source == "topic"

    def commit_at(self, group, topic, partition, offset, metadata=""):
        self.ask("commit-at", group, topic, partition, offset, pack(metadata.encode()))

    def committed(self, group, topic, partition):
        """Offset, None for none, and metadata."""
        offset, metadata = self.ask("committed", group, topic, partition)
        return None if offset == "-" else int(offset), (unpack(metadata) or b"").decode()

    def alter(self, group, topic, partition, offset):
        self.ask("alter", group, topic, partition, offset)

    def list(self, group):
        return self.ask("list", group)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        try:
            self.process.stdin.close()
            self.process.wait(5)
        except (OSError, subprocess.TimeoutExpired):
            self.kill()
