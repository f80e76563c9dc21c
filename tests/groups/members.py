"""Groups of real clients: each member is a process of its own, polled by a thread of its own, and commits what it reads at once."""

import threading
import time

import clients
import confluent_kafka as ck
from confluent_kafka.admin import AdminClient
from driver import ClientError
from ledger import Ledger

PARTITIONS = 6
TOPIC = "numbers"
PATIENCE = 90.0  # s; sessions are up to 12
STARTING = threading.Semaphore(2)  # a starting JVM loads a core, and sessions end when members get none
RESTARTS = ("java-3.9", "consumer")  # KAFKA-17674: a partition that is given to it at the wrong moment is read from the start
OVER = {"FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID"}  # what a member does not come back from


class Member(threading.Thread):
    """`assigned` and `rebalances` are as of its last poll; `ended` is why it is no longer polled."""

    def __init__(self, group, name, client, instance):
        super().__init__(name=f"{group.name}/{name}", daemon=True)
        self.group, self.short, self.client, self.instance = group, name, client, instance
        self.assigned, self.rebalances, self.polls = set(), 0, 0
        self.ended, self.driver = None, None
        self.may_join, self.leaving, self.killed = threading.Event(), threading.Event(), threading.Event()

    def run(self):
        try:
            with STARTING:
                self.driver = clients.start(self.client, self.group.bootstrap, self.group.logs)
            self.group.changed()
            self.may_join.wait()
            self.driver.join(self.group.name, TOPIC, self.instance, self.group.assignor)
            while not self.leaving.is_set() and not self.ended:
                self._round()
            if not self.ended:
                self.driver.leave()
                self.ended = "left"
        except Exception as error:
            self.ended = "killed" if self.killed.is_set() else f"{type(error).__name__}: {error}"
            if not self.killed.is_set():
                self.group.complain(f"{self.short} ended: {self.ended}")
        self.assigned = set()
        if self.driver:
            self.driver.kill()
        self.group.changed()

    def _round(self):
        self.group.ledger.polling(self.short)
        try:
            assigned, records = self.driver.poll(50, 250)
        except ClientError as error:
            if error.name in OVER:
                self.ended = error.name
                return
            self.assigned, records, assigned = set(), [], set()
            self.leaving.wait(0.2)  # the server may be away
        self.group.ledger.processed(self.short, records)
        if records:
            self._commit(records)
        self.assigned, self.rebalances = assigned, self.driver.rebalances()
        self.polls += 1
        self.group.changed()

    def _commit(self, records):
        attempt = self.group.ledger.committing(self.short, records)
        try:
            self.group.ledger.committed_all(attempt, self.driver.commit())
        except ClientError as error:
            self.group.ledger.commit_failed(attempt, error.name)
            self.ended = error.name if error.name in OVER else None


class Group:
    """`client` is whose members these are, where a join names no other; assignor as the driver protocol has it."""

    def __init__(self, name, client, assignor, bootstrap, logs):
        self.name, self.client, self.assignor, self.bootstrap, self.logs = name, client, assignor, bootstrap, logs
        self.ledger = Ledger(PARTITIONS, carried=client == "kafkajs")
        self.members, self.past = {}, []
        self.event = threading.Condition()

    def changed(self):
        with self.event:
            self.event.notify_all()

    def complain(self, text):
        self.ledger.complaints.append(text)
        self.changed()

    def join(self, name, client=None, instance=None, now=True):
        """With now=False its process starts and waits for joins()."""
        member = Member(self, name, client or self.client, instance)
        if (member.client, self.assignor) == RESTARTS:
            self.ledger.restarting.add(name)
        self.members[name] = member
        if now:
            member.may_join.set()
        member.start()
        return member

    def ready(self, *members):
        self.until(f"processes of {[member.short for member in members]}", lambda: all(member.driver for member in members))

    def drop(self, name):
        """Its partitions are others' from now on."""
        member = self.members.pop(name)
        self.past.append(member)
        return member

    def leave(self, name):
        member = self.drop(name)
        member.leaving.set()
        self.until(f"{name} left", lambda: member.ended == "left")

    def kill(self, name):
        member = self.drop(name)
        member.killed.set()
        member.driver.process.kill()

    def until(self, what, check, always=lambda: True):
        deadline = time.monotonic() + PATIENCE
        with self.event:
            while True:
                assert not self.ledger.complaints, f"{self.name}: {self.ledger.complaints[:3]}"
                assert always(), f"{self.name}, while waiting for {what}: {self.state()}"
                if check():
                    return
                ended = {name: member.ended for name, member in self.members.items() if member.ended}
                assert not ended, f"{self.name}, while waiting for {what}: {ended}"
                assert time.monotonic() < deadline, f"{self.name}: not within {PATIENCE:.0f} s: {what}; {self.state()}; server: {self.described()}"
                self.event.wait(1)

    def state(self):
        members = {name: (sorted(member.assigned), member.rebalances, member.polls, member.ended) for name, member in self.members.items()}
        return f"members {members}, committed {self.ledger.ends()}, read {self.ledger.counts()}"

    def described(self):
        """What the server says of the group."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        try:
            found = admin.describe_consumer_groups([self.name])[self.name].result(10)
        except ck.KafkaException as error:
            return str(error)
        places = {member.member_id: sorted(place.partition for place in member.assignment.topic_partitions) for member in found.members}
        return f"{found.state.name} {places}"

    def is_shared(self):
        """Every partition has one owner, and no member has two more than another."""
        sets = [member.assigned for member in self.members.values() if member.may_join.is_set()]
        owned, places = [len(one) for one in sets], set().union(*sets)
        return sum(owned) == PARTITIONS == len(places) and max(owned) - min(owned) <= 1

    def shared(self, what, always=lambda: True):
        """Waits until the partitions are shared out, and something was processed from each after that."""
        self.until(f"partitions shared {what}", self.is_shared, always)
        before = self.ledger.counts()
        self.until(f"records {what}", lambda: all(count > before[place] for place, count in self.ledger.counts().items()) and self.is_shared(), always)

    def marks(self):
        return {member: member.rebalances for member in self.members.values()}

    def shared_anew(self, marks, what):
        """As shared(), when each of these members has been given partitions since."""
        self.until(f"all joined {what}", lambda: all(member.rebalances > before for member, before in marks.items()))
        self.shared(what)

    def close(self):
        for member in [*self.members.values(), *self.past]:
            member.killed.set()
            member.may_join.set()
            if member.driver:
                member.driver.kill()
