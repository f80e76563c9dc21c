"""What every client library is tried with. A scenario asserts what any correct server must do and writes down what it saw."""

import concurrent.futures
import time
from dataclasses import replace

from driver import ClientError
from records import FIRST_MS, STEP_MS, Record, big_record, data_set
from report import eventually, expect, topic_name


def error_of(call, *arguments):
    """The name of the error a call ends with; 'none' when it succeeds."""
    try:
        call(*arguments)
        return "none"
    except ClientError as error:
        return error.name


class Members:
    """The members of one group, each in a process of its own, all polled at once: there are clients that join again when a join ended
    between two polls. What is read is committed at once. No number may be skipped, and none read again below the last commit but one: a member may be told
    where to go on while its last commit is under way."""

    def __init__(self, start, group, topic, assignor):
        self.start, self.group, self.topic, self.assignor = start, group, topic, assignor
        self.drivers, self.assigned, self.seen = {}, {}, set()
        self.committed = {}  # partition -> the last commit but one, the last one

    def join(self, name, instance=None):
        self.drivers[name] = self.start()
        self.drivers[name].join(self.group, self.topic, instance, self.assignor)
        self.assigned[name] = set()

    @staticmethod
    def _poll(driver):
        assigned, records = driver.poll(50, 300)
        try:
            return assigned, records, driver.commit() if records else {}
        except ClientError:
            return assigned, records, {}

    def _round(self):
        with concurrent.futures.ThreadPoolExecutor(len(self.drivers)) as pool:
            polls = {name: pool.submit(self._poll, driver) for name, driver in self.drivers.items()}
        for name, poll in polls.items():
            self.assigned[name], records, committed = poll.result()
            for record in records:
                least, _ = self.committed.get(record.partition, (0, 0))
                expect(record.offset >= least, True, f"partition {record.partition}, committed up to {least}, offset {record.offset} of {name}")
                self.seen.add(int(record.value))
            for partition, end in committed.items():
                _, last = self.committed.get(partition, (0, 0))
                self.committed[partition] = (last, max(last, end))

    def until(self, what, check, always=lambda: True):
        def goes_on():
            self._round()
            expect(always(), True, f"while waiting for {what}")
            return check()

        eventually(what, goes_on, 30)

    def leave(self, name):
        driver = self.drivers.pop(name)
        del self.assigned[name]
        driver.leave()
        driver.close()

    def kill(self, name):
        del self.assigned[name]
        self.drivers.pop(name).kill()


class Scenarios:
    """`admin` is a driver that can create topics for clients that cannot; `reader` one that consumes for those that cannot;
    `start` makes one more driver of the client's."""

    def __init__(self, report, driver, admin, reader, start):
        self.report, self.driver, self.admin, self.reader, self.start = report, driver, admin, reader, start
        self.can = driver.can

    def restarted(self, driver):
        """After a scenario that killed the driver."""
        self.admin, self.reader = (driver if helper is self.driver else helper for helper in (self.admin, self.reader))
        self.driver = driver

    def _topic(self, scenario, partitions=1):
        topic = topic_name(self.report.client, scenario)
        creator = self.driver if "create" in self.can else self.admin
        creator.create(topic, partitions)
        self._await_partitions(topic, partitions)
        # A partition may have no leader yet. A producer that meets this repeats all of its request, and some do so record by record.
        for partition in range(partitions):
            eventually("a leader", lambda: error_of(self.admin.offset, topic, partition, "earliest") == "none")
        return topic

    def _await_partitions(self, topic, partitions):
        lister = self.driver if "topics" in self.can else self.admin
        eventually(f"{partitions} partitions in {topic}", lambda: lister.topics().get(topic) == partitions)

    def _consume(self, topic, partition, offset, count):
        reader = self.driver if "consume" in self.can else self.reader
        return reader.consume(topic, partition, offset, count)

    def _check_equal(self, topic, sent, positions, started_ms):
        """Reads everything from the beginning and compares it, field by field, with what was sent. Returns facts for the transcript."""
        facts = {}
        by_partition = {}
        for record, (partition, offset) in zip(sent, positions):
            expect(partition, record.partition, "partition of the acknowledgement")
            by_partition.setdefault(partition, []).append((record, offset))
        for partition, pairs in sorted(by_partition.items()):
            got = self._consume(topic, partition, 0, len(pairs))
            expect(len(got), len(pairs), f"records in partition {partition}")
            for index, ((record, acknowledged), read) in enumerate(zip(pairs, got)):
                where = f"partition {partition} record {index}"
                expect(read.offset, index, f"offset, {where}")
                if acknowledged >= 0:
                    expect(acknowledged, index, f"acknowledged offset, {where}")
                if record.timestamp is None:
                    expect(started_ms <= read.timestamp <= time.time() * 1000 + 1000, True, f"timestamp {read.timestamp}, {where}")
                    read = replace(read, timestamp=None)
                expect(replace(read, offset=None), record, where)
            facts[f"p{partition}"] = f"{got[0].offset}-{got[-1].offset}"
        return facts

    def _produce_and_compare(self, scenario, codec="none", acks=-1, idempotent=False):
        started_ms = int(time.time() * 1000) - 1000
        topic = self._topic(scenario, 3)
        sent = data_set(self.can)
        positions = self.driver.produce(topic, sent, codec, acks, idempotent)
        expect(len(positions), len(sent), "acknowledgements")
        facts = self._check_equal(topic, sent, positions, started_ms)
        self.report.saw(scenario, records=len(sent), acknowledged=sum(offset >= 0 for _, offset in positions), **facts)

    def create(self):
        topic = self._topic("create", 3)
        facts = {
            "again": error_of(self.driver.create, topic, 3),
            "zero": error_of(self.driver.create, topic + "-z", 0),
            "factor3": error_of(self.driver.create, topic + "-f", 1, 3),
            "badname": error_of(self.driver.create, "not a name", 1),
        }
        for fact, error in facts.items():
            expect(error != "none", True, f"an error for {fact}")
        self.report.saw("create", partitions=3, **facts)

    def cluster(self):
        nodes, controller = self.driver.cluster()
        self.report.saw("cluster", nodes=nodes, controller=controller)
        expect((nodes, controller), (1, True), "cluster")

    def records(self, codec):
        self._produce_and_compare(f"records-{codec}", codec)

    def acks(self, acks):
        self._produce_and_compare(f"acks-{acks}", acks=acks)

    def idempotent(self):
        self._produce_and_compare("idempotent", codec="lz4" if "codec:lz4" in self.can else "none", idempotent=True)

    def big(self):
        """Records of 900 kB: just under what producers allow by default."""
        topic = self._topic("big")
        sent = [big_record(0, 900_000, seed) for seed in range(3)]
        if "null-key" not in self.can:
            sent = [replace(record, key=b"k") for record in sent]
        positions = [position for record in sent for position in self.driver.produce(topic, [record])]
        facts = self._check_equal(topic, sent, positions, int(time.time() * 1000) - 60_000)
        self.report.saw("big", records=len(sent), **facts)

    def _timed_topic(self, scenario, count=100):
        """A topic whose record i of partition 0 has the time FIRST_MS + i * STEP_MS."""
        topic = self._topic(scenario, 2)
        writer = self.driver if "time" in self.can else self.reader
        sent = [Record(0, b"k", b"%d" % i, (), FIRST_MS + i * STEP_MS) for i in range(count)]
        for start in range(0, count, 20):  # several batches
            writer.produce(topic, sent[start : start + 20])
        return topic

    def offsets(self):
        topic = self._timed_topic("offsets")
        offset = self.driver.offset
        facts = {
            "earliest": offset(topic, 0, "earliest"),
            "latest": offset(topic, 0, "latest"),
            "empty_earliest": offset(topic, 1, "earliest"),
            "empty_latest": offset(topic, 1, "latest"),
        }
        expect(list(facts.values()), [0, 100, 0, 0], "earliest and latest")
        if "offset-time" in self.can:
            facts |= {
                "time_exact": offset(topic, 0, FIRST_MS + 50 * STEP_MS),
                "time_between": offset(topic, 0, FIRST_MS + 49 * STEP_MS + 1),
                "time_before": offset(topic, 0, FIRST_MS - 1),
                "time_after": offset(topic, 0, FIRST_MS + 100 * STEP_MS),
                "time_empty": offset(topic, 1, FIRST_MS),
            }
            expect([facts["time_exact"], facts["time_between"], facts["time_before"]], [50, 50, 0], "offsets by time")
            # What a client makes of "no such record" differs (none, -1, or the end); the comparison with Kafka judges it.
            found = self._consume(topic, 0, facts["time_between"], 1)
            expect(found[0].value, b"50", "record found by time")
        if "offset-max" in self.can:
            facts["max"] = offset(topic, 0, "max")
            expect(facts["max"], 99, "offset of the greatest time")
        self.report.saw("offsets", **facts)

    def seek(self):
        topic = self._timed_topic("seek")
        middle = self._consume(topic, 0, 37, 5)
        expect([(record.offset, record.value) for record in middle], [(37 + i, b"%d" % (37 + i)) for i in range(5)], "from the middle")
        last = self._consume(topic, 0, 99, 1)
        expect(last[0].value, b"99", "the last record")
        beyond = error_of(self._consume, topic, 0, 5000, 1)
        expect(beyond != "none", True, "an error beyond the end")
        self.report.saw("seek", middle="37-41", last=last[0].offset, beyond=beyond)

    def commit(self):
        """Offsets of a group that were committed by hand. Metadata comes back only where it is kept: tests/durability looks at that."""
        topic, group = self._topic("commit", 3), topic_name(self.report.client, "commit-group")
        commit, committed = self.driver.commit_at, lambda partition, of=group: self.driver.committed(of, topic, partition)[0]
        facts = {"none": committed(0)}
        for fact, partition, offset in (("first", 0, 5), ("zero", 1, 0), ("beyond", 2, 1 << 40), ("forward", 0, 9), ("back", 0, 3)):
            commit(group, topic, partition, offset, "from here ✓")
            facts[fact] = committed(partition)
            expect(facts[fact], offset, fact)
        facts["other_group"] = committed(0, group + "-2")
        expect([facts["none"], facts["other_group"]], [None, None], "where nothing was committed")
        expect([committed(partition) for partition in range(3)], [3, 0, 1 << 40], "all three at the end")
        self.report.saw("commit", **facts)

    def alter(self):
        """The same by the admin client, as kafka-consumer-groups.sh does."""
        topic, group = self._topic("alter", 3), topic_name(self.report.client, "alter-group")
        facts = {"unknown": ",".join(self.driver.list(group))}
        for partition, offset in ((2, 7), (0, 4), (2, 6)):
            self.driver.alter(group, topic, partition, offset)
        expect(self.driver.list(group), [f"{topic}:0=4", f"{topic}:2=6"], "all offsets of the group")
        if "commit" in self.can:
            expect(self.driver.committed(group, topic, 2)[0], 6, "as a consumer sees it")
        facts["unknown_topic"] = error_of(self.driver.alter, group, topic + "-none", 0, 1)
        facts["unknown_partition"] = error_of(self.driver.alter, group, topic, 9, 1)
        expect("none" in facts.values(), False, "errors for what isn't there")
        self.report.saw("alter", offsets="0=4,2=6", **facts)

    def configure(self):
        """Settings of a topic, one by one and as a whole."""
        topic = self._topic("configure")

        def settled(key, expected):
            """expected None: it isn't set for the topic."""

            def as_expected():
                value, of_topic = self.driver.setting(topic, key)
                return not of_topic if expected is None else (value, of_topic) == (expected, True)

            eventually(f"{key} {expected}", as_expected)

        self.driver.configure(topic, "retention.ms", "set", "80000000")
        settled("retention.ms", "80000000")
        self.driver.configure(topic, "retention.bytes", "set", "5000000000")
        settled("retention.bytes", "5000000000")
        self.driver.configure(topic, "retention.ms", "delete")
        settled("retention.ms", None)
        self.driver.configure(topic, "cleanup.policy", "append", "delete")
        expect(self.driver.setting(topic, "cleanup.policy")[0], "delete", "a list that had it already")
        settled("retention.bytes", "5000000000")
        self.driver.configure(topic, "retention.ms", "replace", "90000000")
        settled("retention.ms", "90000000")
        settled("retention.bytes", None)
        facts = {
            "append": error_of(self.driver.configure, topic, "retention.ms", "append", "1"),
            "unknown": error_of(self.driver.configure, topic, "nonsense", "set", "1"),
            "bad": error_of(self.driver.configure, topic, "retention.ms", "set", "abc"),
            "replace": error_of(self.driver.configure, topic, "nonsense", "replace", "1"),
            "unknown_topic": error_of(self.driver.configure, topic + "-none", "retention.ms", "set", "1"),
        }
        expect("none" in facts.values(), False, "errors for what can't be set")
        settled("retention.ms", "90000000")
        self.report.saw("configure", **facts)

    def grow(self):
        topic = self._topic("grow", 3)
        self.driver.produce(topic, [Record(2, b"k", b"before")])
        self.driver.grow(topic, 5)
        self._await_partitions(topic, 5)
        facts = {"same": error_of(self.driver.grow, topic, 5), "fewer": error_of(self.driver.grow, topic, 2)}
        facts["unknown"] = error_of(self.driver.grow, topic_name(self.report.client, "grow-unknown"), 2)
        for fact, error in facts.items():
            expect(error != "none", True, f"an error for {fact}")
        # The partitions of a running producer may be older than the topic: its client fetches them again.
        new = eventually("a record in the new partition", lambda: self._try_produce(topic, Record(4, b"k", b"after")))
        values = [self._consume(topic, partition, 0, 1)[0].value for partition in (2, 4)]
        expect(values, [b"before", b"after"], "values")
        self.report.saw("grow", partitions=5, offset=new[0][1], **facts)

    def _trimmed(self, topic, partition, offset):
        """The low watermark, or the name of the error."""
        try:
            return self.driver.trim(topic, partition, offset)
        except ClientError as error:
            return error.name

    def trim(self):
        """DeleteRecords: the log starts later, also within what was one batch, and goes on at its end."""
        topic = self._topic("trim", 2)
        self.driver.produce(topic, [Record(0, b"k", b"%d" % number) for number in range(10)])
        lows = [self._trimmed(topic, 0, 4)]
        if lows == [4]:
            expect(self.reader.offset(topic, 0, "earliest"), 4, "the start")
            expect([(record.offset, record.value) for record in self._consume(topic, 0, 4, 6)], [(n, b"%d" % n) for n in range(4, 10)], "records left")
            below = error_of(self._consume, topic, 0, 3, 1)
            lows += [self._trimmed(topic, *where) for where in ((0, 2), (0, 11), (0, -1), (0, 10), (1, -1))]
            expect([self.reader.offset(topic, 0, where) for where in ("earliest", "latest")], [10, 10], "the start of an empty log")
            offset = self.driver.produce(topic, [Record(0, b"k", b"next")])[0][1]
            expect((offset, self._consume(topic, 0, 10, 1)[0].value), (10, b"next"), "the record after all were deleted")
            lows += [f"below:{below}"]
        self.report.saw("trim", lows=",".join(map(str, lows)))

    def _try_produce(self, topic, record):
        try:
            return self.driver.produce(topic, [record])
        except ClientError:
            return None

    def auto_create(self):
        topic = topic_name(self.report.client, "auto")
        positions = eventually("a record in a topic that nobody created", lambda: self._try_produce(topic, Record(0, b"k", b"v")), 20)
        self._await_partitions(topic, 1)
        expect(self._consume(topic, 0, 0, 1)[0].value, b"v", "value")
        self.report.saw("auto-create", partitions=1, offset=positions[0][1])

    def delete(self):
        topic = self._topic("delete", 2)
        self.driver.produce(topic, [Record(0, b"k", b"old")])
        self.driver.delete(topic)
        lister = self.driver if "topics" in self.can else self.admin
        eventually("the topic is gone", lambda: topic not in lister.topics())
        again = error_of(self.driver.delete, topic)
        expect(again != "none", True, "an error for a topic that is gone")
        creator = self.driver if "create" in self.can else self.admin
        creator.create(topic, 1)
        self._await_partitions(topic, 1)
        reborn = eventually("a record in the new topic", lambda: self._try_produce(topic, Record(0, b"k", b"new")))
        expect([record.value for record in self._consume(topic, 0, 0, 1)], [b"new"], "records of the new topic")
        self.report.saw("delete", again=again, reborn_offset=reborn[0][1])

    # ---- consumer groups ----

    def _numbered(self, topic, numbers, partitions=1):
        """Records whose values are these numbers, spread over the partitions."""
        writer = self.driver if "null-key" in self.can else self.reader
        writer.produce(topic, [Record(number % partitions, b"k", b"%d" % number) for number in numbers])

    def group_resume(self):
        """A consumer that comes back goes on at its commit."""
        topic = self._topic("group-resume")
        group = topic + "-g"
        self._numbered(topic, range(20))
        offsets = []
        for most in (7, 6, 20):  # more than there are: until the time is over
            member = self.start()
            member.join(group, topic)
            found = eventually("records", lambda: member.poll(most, 2000)[1], 20)
            while len(found) < most and (more := member.poll(most - len(found), 1000)[1]):
                found += more
            offsets.append([record.offset for record in found])
            member.commit()
            if most == 6:
                member.poll(1, 1000)  # not committed
            member.leave()
            member.close()
        expect(offsets, [list(range(7)), list(range(7, 13)), list(range(13, 20))], "offsets of three lives")
        self.report.saw("group-resume", **{f"life{i}": f"{some[0]}-{some[-1]}" for i, some in enumerate(offsets)})

    def group_split(self, assignor):
        """Two members share six partitions. One leaves: the other goes on at its commits. (Those that are killed: tests/groups.)"""
        scenario = "group-split" if assignor == "default" else f"group-split-{assignor}"
        topic = self._topic(scenario, 6)
        self._numbered(topic, range(120), 6)
        members = Members(self.start, topic + "-g", topic, assignor)
        members.join("a")
        members.join("b")
        members.until("3 partitions each", lambda: sorted(map(len, members.assigned.values())) == [3, 3])
        members.until("all records", lambda: len(members.seen) == 120)
        members.leave("b")
        self._numbered(topic, range(120, 180), 6)
        members.until("6 partitions and all records", lambda: len(members.assigned["a"]) == 6 and len(members.seen) == 180)
        members.leave("a")
        self.report.saw(scenario, split="3+3", after_leave=6, records=len(members.seen))

    def group_static(self):
        """A static member that comes back within its session gets what it had, and nobody else notices."""
        topic = self._topic("group-static", 4)
        self._numbered(topic, range(40), 4)
        members = Members(self.start, topic + "-g", topic, "default")
        members.join("a", "ia")
        members.join("b", "ib")
        members.until("2 partitions each", lambda: sorted(map(len, members.assigned.values())) == [2, 2])
        members.until("all records", lambda: len(members.seen) == 40)
        before = dict(members.assigned)
        members.kill("b")
        members.join("b", "ib")
        members.until("the same partitions", lambda: members.assigned["b"] == before["b"], lambda: members.assigned["a"] == before["a"])
        self._numbered(topic, range(40, 80), 4)
        members.until("all records", lambda: len(members.seen) == 80, lambda: members.assigned["a"] == before["a"])
        members.leave("b")
        members.leave("a")
        self.report.saw("group-static", split="2+2", records=len(members.seen), undisturbed=True)

    def group_consumer(self):
        """group.protocol=consumer (KIP-848): two members share six partitions, one leaves, the other too; the next one goes on."""
        topic = self._topic("group-consumer", 6)
        self._numbered(topic, range(120), 6)
        members = Members(self.start, topic + "-g", topic, "consumer")
        members.join("a")
        members.join("b")
        members.until("3 partitions each", lambda: sorted(map(len, members.assigned.values())) == [3, 3])
        members.until("all records", lambda: len(members.seen) == 120)
        members.leave("b")
        self._numbered(topic, range(120, 180), 6)
        members.until("6 partitions and all records", lambda: len(members.assigned["a"]) == 6 and len(members.seen) == 180)
        members.leave("a")
        self._numbered(topic, range(180, 240), 6)
        members.join("c")
        members.until("what came meanwhile", lambda: len(members.assigned["c"]) == 6 and len(members.seen) == 240)
        members.leave("c")
        self.report.saw("group-consumer", split="3+3", after_leave=6, records=len(members.seen))

    def group_pattern(self):
        """A subscription by pattern (KIP-848): a topic that is made later and matches is read too, another one is not."""
        topic = self._topic("group-pattern")
        self._numbered(topic, range(10))
        member, assigned, seen = self.start(), set(), set()
        member.join(topic + "-g", topic + "(-late.*)?", None, "pattern")

        def has(partitions, numbers):
            nonlocal assigned
            assigned, records = member.poll(50, 300)
            seen.update(int(record.value) for record in records)
            return len(assigned) == partitions and seen == set(range(numbers))

        eventually("the topic there is", lambda: has(1, 10), 40)
        creator = self.driver if "create" in self.can else self.admin
        creator.create(topic + "-other", 5)
        creator.create(topic + "-later", 3)
        self._await_partitions(topic + "-later", 3)
        self._numbered(topic + "-later", range(10, 40), 3)
        eventually("the topic that came", lambda: has(3, 40), 60)
        member.leave()
        member.close()
        wrong = self.start()
        wrong.join(topic + "-wrong", topic + r"(x)\1", None, "pattern")  # which no client refuses itself
        refused = eventually("a refusal", lambda: error_of(wrong.poll, 1, 500).replace("none", ""), 20)
        wrong.close()
        self.report.saw("group-pattern", records=len(seen), assigned=len(assigned), refused=refused)

    def all(self):
        """(name, function) of everything this client can do."""
        can = self.can
        for name in ("create", "cluster"):
            if name in can:
                yield name, getattr(self, name)
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            if f"codec:{codec}" in can:
                yield f"records-{codec}", lambda codec=codec: self.records(codec)
        if "acks0" in can:
            yield "acks-0", lambda: self.acks(0)
            yield "acks-1", lambda: self.acks(1)
        if "idempotent" in can:
            yield "idempotent", self.idempotent
        yield "big", self.big
        if "offset" in can:
            yield "offsets", self.offsets
        if "consume" in can:
            yield "seek", self.seek
        for name in ("commit", "alter", "configure"):
            if name in can:
                yield name, getattr(self, name)
        for name in ("grow", "trim"):
            if name in can:
                yield name, getattr(self, name)
        if "group" in can:
            yield "group-resume", self.group_resume
            yield "group-split", lambda: self.group_split("default")
        if "cooperative" in can:
            yield "group-split-cooperative", lambda: self.group_split("cooperative")
        if "consumer-protocol" in can:
            yield "group-consumer", self.group_consumer
        if "pattern" in can:
            yield "group-pattern", self.group_pattern
        if "static" in can:
            yield "group-static", self.group_static
        yield "auto-create", self.auto_create
        if "delete" in can:
            yield "delete", self.delete
