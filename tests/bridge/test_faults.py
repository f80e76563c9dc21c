"""The bridge with a faulty line, or a failing server, behind it: nothing acknowledged is lost, nobody waits past a deadline, no odd codes.

env: FAULTS_SEED (else the one below; a failure prints it), FAULTS_SECONDS (5) under faults for each test, KEEP=DIR keeps the servers' folders.
"""

import os
import random
import tempfile
import time

import pytest
from bridge import GENERATIONS, Bridge
from faults import Faults, Plan
from load import DEADLINE, GRACE, Acks, Asker, Reader, Writer, create, ends_of, judge

SEED = int(os.environ.get("FAULTS_SEED", "1"))
SECONDS = float(os.environ.get("FAULTS_SECONDS", "5"))
PARTITIONS = 3
PLANS = {
    "cuts": Plan(cut_bytes=60_000),
    "delays": Plan(delay=0.05, delay_max=0.3),
    "not taken": Plan(refuse=0.03),
    "view changes": Plan(view_every=1.5, view_long=0.4),
    "outcome unknown": Plan(unknown=0.01, unknown_done=0.02),
    "evictions": Plan(evict=0.01),
    "silence": Plan(silent=0.0005),
    "everything": Plan(cut_bytes=400_000, delay=0.02, refuse=0.01, unknown=0.003, unknown_done=0.003, evict=0.003, view_every=4, silent=0.0001),
}


@pytest.fixture(params=GENERATIONS)
def generation(request):
    return request.param


class Load:
    """Producers with and without idempotence, a consumer, and one who asks for everything else."""

    def __init__(self, bridge, topic, seed):
        create(bridge.bootstrap, topic, PARTITIONS)
        create(bridge.bootstrap, topic + "-raw", 1)
        self.bridge, self.topic, self.acks = bridge, topic, Acks()
        self.writers = [
            Writer(bridge.bootstrap, f"{'once' if once else 'plain'}{number}", topic, PARTITIONS, self.acks, seed, once)
            for number, once in enumerate((True, True, False))
        ]
        self.reader = Reader(bridge.bootstrap, topic, PARTITIONS)
        self.asker = Asker(bridge.bootstrap, topic, seed)
        for thread in (*self.writers, self.reader, self.asker):
            thread.start()

    def end(self):
        """After the faults. Complaints."""
        for thread in (*self.writers, self.asker):
            thread.stopping = True
        complaints = []
        for writer in self.writers:
            writer.join(DEADLINE + GRACE + 5)
            if writer.is_alive() or writer.left:
                complaints.append(f"{writer.name_} still waits for {writer.left} records after its deadline")
            if writer.fatal:
                complaints.append(f"{writer.name_} ended with {writer.fatal}")
        self.asker.join(Asker.SECONDS + 5)
        if self.asker.is_alive():
            complaints.append("the asker hangs")
        complaints += self.asker.complaints + self.asker.check_topics()
        complaints += [f"a record was not delivered: {failure}" for failure in self.acks.failures[:5]]
        missing = self.reader.read_to(ends_of(self.bridge.bootstrap, self.topic, PARTITIONS), DEADLINE)
        complaints += [f"the consumer stopped in partition {partition} at {end} of {want}" for partition, end, want in missing]
        self.reader.stopping = True
        self.reader.join(10)
        return complaints + self.reader.complaints

    def judge(self, once):
        """Complaints about what is stored, read anew."""
        again = Reader(self.bridge.bootstrap, self.topic, PARTITIONS)
        again.start()
        missing = again.read_to(ends_of(self.bridge.bootstrap, self.topic, PARTITIONS), DEADLINE)
        again.stopping = True
        again.join(10)
        names = {writer.name_ for writer in self.writers if writer.idempotent} if once else set()
        complaints = judge(again.records, self.acks, names) + judge(self.reader.records, self.acks, names)
        return complaints + [f"a new consumer gets no further than {one}" for one in missing] + again.complaints


def run(generation, plan, during=None, **settings):
    keep = os.environ.get("KEEP")
    folder = tempfile.mkdtemp(prefix="faults-", dir=keep) if keep else None
    with Bridge(generation, folder, between=lambda address: Faults(address, SEED), **settings) as bridge:
        load = Load(bridge, "numbered", SEED)
        time.sleep(0.3)
        bridge.proxy.begin(plan)
        if during:
            during(bridge)
        else:
            time.sleep(SECONDS)
        bridge.proxy.calm()
        complaints = load.end() + load.judge(once=generation != "0.11")
        slow = {api: round(seconds, 2) for api, seconds in load.asker.slowest.items()}
        codes = {f"{api} {code}": count for (api, code), count in sorted(load.asker.codes.items())}
        print(f"{load.acks.count()} acknowledged; faults {dict(bridge.proxy.counts)}; codes {codes}; slowest {slow}")
        assert load.acks.count() > 0
        assert not complaints, f"FAULTS_SEED={SEED}: " + "; ".join(dict.fromkeys(complaints))
        return bridge.proxy.counts


@pytest.mark.parametrize("name", PLANS)
def test_nothing_acknowledged_is_lost(generation, name):
    counts = run(generation, PLANS[name])
    assert sum(counts.values()) > 0, "no fault happened"


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_server_that_restarts_loses_nothing_acknowledged(generation, how):
    rng = random.Random(f"{SEED}/{how}")

    def restarts(bridge):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            time.sleep(rng.uniform(0.5, 2.0))
            bridge.server.kill() if how == "kill" else bridge.server.stop()
            time.sleep(rng.choice((0.0, 0.3, 1.5)))
            bridge.server.start()

    run(generation, Plan(), restarts)
