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
    """Subclasses have one method a command, `abilities`, and `code_of` that finds the error number in an exception. Those with a group consumer keep in
    `given` the offset that is to be committed for each partition, without what was taken away since, and in `rebalances` how often they were told of an
    assignment."""

    abilities = ""
    given, rebalances = {}, 0
    late = None  # an error that waits for the next poll, because the last one had records as well

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
            assigned, records = self.poll_all(*map(int, arguments))
            return [",".join(map(str, sorted(assigned))) or "-", len(records)], [to_line(record) for record in records]
        if command == "rebalances":
            return [self.rebalances], []
        if command == "commit":
            given, self.given = self.given, {}
            if given:
                self.commit(given)
            return [f"{partition}:{offset}" for partition, offset in given.items()], []
        if command == "leave":
            self.leave()
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
        if command == "trim":
            topic, partition, offset = arguments
            return [self.trim(topic, int(partition), int(offset))], []
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

    def poll_all(self, most, milliseconds):
        """What the client read before an error is never lost, as it would not be to an application that reads record by record."""
        late, self.late = self.late, None
        if late:
            raise late
        found = []
        try:
            self.poll(most, milliseconds / 1000, found)
        except Exception as error:
            if not found:
                raise
            self.late = error
        return self.assigned(), found

    @staticmethod
    def session(instance):
        return 12000 if instance else 6000  # ms

    def was_assigned(self, *_):
        self.rebalances += 1

    def was_revoked(self, places):
        """Whoever gets them goes on at the last commit, and nothing is committed for it from here."""
        for place in places:
            self.given.pop(place.partition, None)

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
