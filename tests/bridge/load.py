"""Numbered records through a gateway, and what became of them: every record has a producer, a partition and a number in that partition."""

import random
import threading
import time
from collections import defaultdict

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from kwire import Conn, batch, perr

DEADLINE = 40.0  # seconds: what a producer gives a record, and a consumer waits for one
GRACE = 8.0  # and how much later it must have noticed

# What a bridge may answer when the server behind it fails (BEHAVIOUR.md, D and F): 3 only for what may be gone.
CODES = {
    "Produce": {0, 6, 7},
    "Fetch": {0, 6},
    "ListOffsets": {0, 6, 7},
    "Metadata": {0, 5, 6, 7},
    "CreateTopics": {0, 6, 7, 36},
    "DeleteTopics": {0, 3, 6, 7},
    "DescribeConfigs": {0, 6, 7},
    "CreatePartitions": {0, 6, 7, 37},
    "InitProducerId": {0},
}


class Acks:
    """What was acknowledged: (producer, partition) -> number -> offset; and what failed, with the seconds that took. Each entry has one writer."""

    def __init__(self):
        self.offsets = defaultdict(dict)
        self.failures = []

    def count(self):
        return sum(map(len, self.offsets.values()))


class Writer(threading.Thread):
    """A librdkafka producer. name: of the producer in its records."""

    def __init__(self, bootstrap, name, topic, partitions, acks, seed, idempotent, per_second=400, **config):
        super().__init__(daemon=True)
        self.name_, self.topic, self.partitions, self.acks, self.idempotent = name, topic, partitions, acks, idempotent
        self.random = random.Random(f"{seed}/{name}")
        self.per_second, self.stopping, self.fatal, self.left = per_second, False, None, 0
        self.numbers = [0] * partitions
        settings = {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": idempotent,
            "delivery.timeout.ms": int(DEADLINE * 1000),
            "request.timeout.ms": 5000,
            "socket.timeout.ms": 20000,
            "retry.backoff.ms": 50,
            "retry.backoff.max.ms": 200,
            "reconnect.backoff.max.ms": 500,
            "linger.ms": 5,
            "batch.num.messages": 40,
            "log_level": 0,
            "error_cb": self._on_error,
        }
        self.producer = Producer(settings | config)

    def _on_error(self, error):
        if error.fatal():
            self.fatal = str(error)

    def _send(self):
        partition = self.random.randrange(self.partitions)
        number = self.numbers[partition]
        self.numbers[partition] += 1
        value = f"{self.name_}/{partition}/{number}/" + "x" * self.random.choice((0, 10, 100, 1000))
        began = time.monotonic()

        def delivered(error, message):
            if error:
                self.acks.failures.append((self.name_, partition, number, error.name(), round(time.monotonic() - began, 1)))
            else:
                offset = message.offset()  # None: the server has had it before and doesn't say where
                self.acks.offsets[self.name_, partition][number] = -1 if offset is None else offset

        self.producer.produce(self.topic, value, partition=partition, on_delivery=delivered)

    def run(self):
        try:
            self._run()
        except KafkaException as error:
            self.fatal = self.fatal or str(error)
        self.left = self.producer.flush(DEADLINE + GRACE)

    def _run(self):
        began, sent = time.monotonic(), 0
        while not self.stopping:
            while sent < (time.monotonic() - began) * self.per_second and not self.stopping:
                try:
                    self._send()
                    sent += 1
                except BufferError:
                    break
            self.producer.poll(0.01)


class Reader(threading.Thread):
    """A librdkafka consumer of all partitions from the beginning. What it is given must be without gaps."""

    def __init__(self, bootstrap, topic, partitions, **config):
        super().__init__(daemon=True)
        self.topic, self.partitions, self.stopping = topic, partitions, False
        self.records = [[] for _ in range(partitions)]  # (offset, value)
        self.complaints = []
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 200,
            "fetch.error.backoff.ms": 50,
            "socket.timeout.ms": 30000,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
        self.consumer = Consumer(settings | config)
        self.consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])

    def ends(self):
        """The offset behind the last record of each partition that came."""
        return [records[-1][0] + 1 if records else 0 for records in self.records]

    def _take(self, message):
        if message.error():
            code = message.error().code()
            if code > 0 and code not in (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.REQUEST_TIMED_OUT):
                self.complaints.append(f"the consumer of {self.topic} was told {message.error()}")
            elif code == KafkaError._AUTO_OFFSET_RESET:
                self.complaints.append(f"the consumer of {self.topic}: {message.error()}")
            return
        records = self.records[message.partition()]
        want = records[-1][0] + 1 if records else 0
        if message.offset() != want:
            self.complaints.append(f"partition {message.partition()}: offset {message.offset()} came where {want} is next")
        records.append((message.offset(), message.value().decode().rsplit("/", 1)[0]))

    def run(self):
        while not self.stopping:
            for message in self.consumer.consume(500, 0.1):
                self._take(message)
        self.consumer.close()

    def read_to(self, ends, seconds):
        """Waits until it is there; what is missing then."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and any(end < want for end, want in zip(self.ends(), ends)):
            time.sleep(0.05)
        return [(partition, end, want) for partition, (end, want) in enumerate(zip(self.ends(), ends)) if end < want]


class Asker(threading.Thread):
    """Plain requests of every kind, one at a time. Each must be answered in time, with a code of CODES."""

    SECONDS = 25.0  # the longest that a request may take (D2-30, D3-5, D6-7)

    def __init__(self, bootstrap, topic, seed):
        super().__init__(daemon=True)
        self.bootstrap, self.topic, self.random = bootstrap, topic, random.Random(f"{seed}/asker")
        self.stopping, self.complaints, self.codes, self.slowest = False, [], defaultdict(int), {}
        self.made = 0
        self.there = {}  # topic -> whether it must be there; None: who knows

    def _ask(self, conn, api):
        mine = f"{self.topic}-{self.made}"
        if api == "Produce":
            part = {"p": 0, "rec": batch([(b"", b"asker/0/0/")])}
            answer = conn.rq("Produce", 9, {"acks": -1, "timeout": 4000, "topics": [{"name": self.topic + "-raw", "parts": [part]}]})
            return answer, lambda: [perr(answer)["err"]]
        if api == "Fetch":
            part = {"p": 0, "off": 0, "max": 10000}
            answer = conn.rq("Fetch", 11, {"wait": 100, "min": 1, "max": 10000, "topics": [{"name": self.topic, "parts": [part]}]})
            return answer, lambda: [answer["err"], perr(answer)["err"]]
        if api == "ListOffsets":
            times = self.random.choice((-1, -2, -3, 0))
            answer = conn.rq("ListOffsets", 7, {"topics": [{"name": self.topic, "parts": [{"p": 0, "ts": times}]}]})
            return answer, lambda: [perr(answer)["err"]]
        if api == "Metadata":
            answer = conn.rq("Metadata", 12, {"topics": [{"name": self.topic}]})
            return answer, lambda: [topic["err"] for topic in answer["topics"]]
        if api == "CreateTopics":
            self.made += 1
            answer = conn.rq("CreateTopics", 5, {"topics": [{"name": f"{self.topic}-{self.made}", "n": 1, "rf": 1}], "timeout": 5000})
            return answer, lambda: [topic["err"] for topic in answer["topics"]]
        if api == "DeleteTopics":
            answer = conn.rq("DeleteTopics", 4, {"names": [mine], "timeout": 5000})
            return answer, lambda: [topic["err"] for topic in answer["topics"]]
        if api == "DescribeConfigs":
            answer = conn.rq("DescribeConfigs", 2, {"res": [{"type": 2, "name": self.topic}]})
            return answer, lambda: [one["err"] for one in answer["res"]]
        answer = conn.rq("InitProducerId", 1, {})
        return answer, lambda: [answer["err"]]

    def _note(self, api, code):
        mine = f"{self.topic}-{self.made}"
        if api == "CreateTopics":
            self.there[mine] = True if code == 0 else None
        elif api == "DeleteTopics" and self.made:
            before = self.there.get(mine)
            if code == 3 and before:
                self.complaints.append(f"the topic {mine} was made, and is not there to be deleted")
            self.there[mine] = False if code in (0, 3) else None

    def check_topics(self):
        """Afterwards: what was made is there, what was deleted is not."""
        conn = Conn(self.bootstrap, timeout=30)
        answer = conn.rq("Metadata", 4, {"topics": None})
        conn.close()
        assert isinstance(answer, dict), answer
        listed = {topic["name"] for topic in answer["topics"]}
        return [f"the topic {name} is {'not ' * want}there" for name, want in self.there.items() if want is not None and want != (name in listed)]

    def run(self):
        conn = Conn(self.bootstrap, cid="asker", timeout=self.SECONDS)
        kinds = ["Produce", "Fetch", "ListOffsets", "Metadata", "CreateTopics", "DeleteTopics", "DescribeConfigs", "InitProducerId"]
        while not self.stopping and not self.complaints:
            api = self.random.choice(kinds)
            began = time.monotonic()
            answer, codes = self._ask(conn, api)
            took = time.monotonic() - began
            self.slowest[api] = max(took, self.slowest.get(api, 0.0))
            if isinstance(answer, str):
                self.complaints.append(f"{api}: {answer} after {took:.1f} s")
                break
            for code in codes():
                self._note(api, code)
                self.codes[api, code] += 1
                if code not in CODES[api]:
                    self.complaints.append(f"{api} was answered {code}")
            time.sleep(0.01)
        conn.close()


def create(bootstrap, topic, partitions, seconds=DEADLINE):
    """Until it is there."""
    conn = Conn(bootstrap, timeout=30)
    deadline = time.monotonic() + seconds
    while True:
        answer = conn.rq("CreateTopics", 4, {"topics": [{"name": topic, "n": partitions, "rf": 1}]})
        code = answer["topics"][0]["err"] if isinstance(answer, dict) else answer
        if code in (0, 36):
            break
        assert time.monotonic() < deadline, f"{topic} can't be made: {code}"
        time.sleep(0.1)
    conn.close()


def ends_of(bootstrap, topic, partitions):
    conn = Conn(bootstrap, timeout=30)
    answer = conn.rq("ListOffsets", 5, {"topics": [{"name": topic, "parts": [{"p": p, "ts": -1} for p in range(partitions)]}]})
    conn.close()
    assert isinstance(answer, dict), answer
    found = {part["p"]: (part["err"], part["off"]) for part in answer["topics"][0]["parts"]}
    assert all(code == 0 for code, _ in found.values()), found
    return [found[partition][1] for partition in range(partitions)]


def judge(records, acks, once):
    """Complaints. records: (offset, value) of every partition, whole; once: names of producers whose records must be there once and in order."""
    complaints = []
    seen = defaultdict(list)  # (producer, partition) -> (number, offset) in offset order
    for partition, found in enumerate(records):
        for offset, value in found:
            producer, place, number = value.rsplit("/", 2)
            if int(place) != partition:
                complaints.append(f"{value} stands in partition {partition}")
            seen[producer, partition].append((int(number), offset))
    for (producer, partition), known in sorted(acks.offsets.items()):
        found = defaultdict(set)
        for number, offset in seen[producer, partition]:
            found[number].add(offset)
        lost = [(number, offset) for number, offset in known.items() if number not in found]
        if lost:
            complaints.append(f"{producer}, partition {partition}: {len(lost)} acknowledged records are lost, first with their offsets {lost[:5]}")
        moved = [(number, offset) for number, offset in known.items() if offset >= 0 and number in found and offset not in found[number]]
        if moved:
            complaints.append(f"{producer}, partition {partition}: not at the acknowledged offset: {moved[:5]}")
    for (producer, partition), found in sorted(seen.items()):
        if producer not in once:
            continue
        numbers = [number for number, _ in found]
        if len(set(numbers)) != len(numbers):
            twice = sorted(number for number in set(numbers) if numbers.count(number) > 1)
            complaints.append(f"{producer}, partition {partition}: {len(twice)} records are there twice, first {twice[:5]}")
        elif numbers != sorted(numbers):
            at = next(i for i in range(1, len(numbers)) if numbers[i] < numbers[i - 1])
            complaints.append(f"{producer}, partition {partition}: out of order: {numbers[max(at - 3, 0) : at + 3]}")
    return complaints
