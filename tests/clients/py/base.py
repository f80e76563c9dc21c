"""The driver protocol (../README.md) for client libraries in Python."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from records import from_line, pack, to_line, unpack  # noqa: E402


class Failure(Exception):
    """An error number of Kafka, or a word, with a text."""

    def __init__(self, code, text=""):
        self.code = code
        super().__init__(text)


class Driver:
    """Subclasses have one method a command, `abilities`, and `code_of` that finds the error number in an exception."""

    abilities = ""

    def code_of(self, error):
        return "FAILED"

    def answer(self, fields, read_line):
        command, *arguments = fields
        if command == "hello":
            return self.abilities.split(), []
        if command == "produce":
            topic, codec, acks, idempotent, count = arguments
            records = [from_line(read_line()) for _ in range(int(count))]
            positions = self.produce(topic, records, codec, int(acks), idempotent == "yes")
            return [f"{partition}:{offset}" for partition, offset in positions], []
        if command == "consume":
            topic, partition, offset, count = arguments
            records = self.consume(topic, int(partition), int(offset), int(count))
            return [len(records)], [to_line(record) for record in records]
        if command == "topics":
            return [f"{name}={count}" for name, count in self.topics().items()], []
        if command == "cluster":
            nodes, controller = self.cluster()
            return [nodes, "yes" if controller else "no"], []
        if command == "offset":
            topic, partition, where = arguments
            found = self.offset(topic, int(partition), where if where.isalpha() else int(where))
            return ["-" if found is None else found], []
        if command == "join":
            group, topic, instance, assignor = arguments
            self.join(group, topic, None if instance == "-" else instance, assignor)
            return [], []
        if command == "poll":
            assigned, records = self.poll(*map(int, arguments))
            return [",".join(map(str, sorted(assigned))) or "-", len(records)], [to_line(record) for record in records]
        if command in ("commit", "leave"):
            getattr(self, command)()
            return [], []
        if command == "commit-at":
            group, topic, partition, offset, metadata = arguments
            self.commit_at(group, topic, int(partition), int(offset), unpack(metadata).decode())
            return [], []
        if command == "committed":
            group, topic, partition = arguments
            offset, metadata = self.committed(group, topic, int(partition))
            return ["-" if offset is None else offset, pack((metadata or "").encode())], []
        if command == "alter":
            group, topic, partition, offset = arguments
            self.alter(group, topic, int(partition), int(offset))
            return [], []
        if command == "configure":
            self.configure(*arguments)
            return [], []
        if command == "setting":
            value, of_topic = self.setting(*arguments)
            return [value, "topic" if of_topic else "default"], []
        if command == "list":
            return sorted(f"{topic}:{partition}={offset}" for topic, partition, offset in self.list(arguments[0])), []
        getattr(self, command)(arguments[0], *map(int, arguments[1:]))
        return [], []

    def serve(self):
        def read_line():
            return sys.stdin.readline().rstrip("\n")

        while True:
            text = read_line()
            if not text:
                return
            try:
                answer, lines = self.answer(text.split("\t"), read_line)
                output = "\t".join(["ok", *map(str, answer)])
            except Exception as error:  # every failure is the client's answer
                code = error.code if isinstance(error, Failure) else self.code_of(error)
                output, lines = f"err\t{code}\t{type(error).__name__} {error}".replace("\n", " "), []
            sys.stdout.write("\n".join([output, *lines]) + "\n")
            sys.stdout.flush()
