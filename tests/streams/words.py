"""The topics of a WordCount: lines of known words go in, and counts come out."""

import contextlib
import itertools
import threading
import time
from collections import Counter

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 4
WORDS = [f"word{number}" for number in range(20)]
PER_LINE = 5


class Words:
    """`sent` and `counts()` say the same when every word was counted once. The application is named as its topics begin."""

    def __init__(self, bootstrap, application):
        self.bootstrap, self.application = bootstrap, application
        self.input, self.output = f"{application}-lines", f"{application}-result"
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for future in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in (self.input, self.output)]).values():
            future.result(20)
        self.producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True})
        self.reader = self._consumer("reader")
        self.reader.assign([TopicPartition(self.output, partition, 0) for partition in range(PARTITIONS)])
        self.words = itertools.cycle(WORDS)
        self.sent, self.latest = Counter(), {}

    def _consumer(self, group):
        return Consumer({"bootstrap.servers": self.bootstrap, "group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest"})

    def send(self, lines):
        """Returns when they are stored."""
        for number in range(lines):
            words = list(itertools.islice(self.words, PER_LINE))
            self.sent.update(words)
            self.producer.produce(self.input, " ".join(words), partition=number % PARTITIONS)
        assert self.producer.flush(30) == 0

    @contextlib.contextmanager
    def flowing(self):
        """Lines are sent all the time."""
        stop, failed = threading.Event(), []

        def run():
            try:
                while not stop.wait(0.02):
                    self.send(20)
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        assert not failed, failed

    def counts(self):
        """The newest count of each word, or, while more come all the time, of what was read in half a second."""
        until = time.monotonic() + 0.5
        while time.monotonic() < until and (messages := self.reader.consume(1000, 0.1)):
            for message in messages:
                if not message.error():
                    self.latest[message.key().decode()] = int.from_bytes(message.value(), "big")
        return self.latest

    def exact(self):
        return self.counts() == self.sent

    def counted(self):
        """Every word at least as often as it was sent."""
        counts = self.counts()
        return all(counts.get(word, 0) >= times for word, times in self.sent.items())

    def committed(self):
        """Nothing is under way: the application has committed all there is to read."""
        consumer = self._consumer(self.application)
        try:
            topics = (self.input, f"{self.application}-words-repartition")
            partitions = [TopicPartition(topic, partition) for topic in topics for partition in range(PARTITIONS)]
            ends = [consumer.get_watermark_offsets(partition, 10)[1] for partition in partitions]
            return [partition.offset for partition in consumer.committed(partitions, 10)] == ends
        finally:
            consumer.close()
