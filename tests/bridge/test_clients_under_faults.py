"""Other client libraries than librdkafka, with numbered batches, over a line with every fault: each has its own idea of when to send again.

env: FAULTS_SEED, FAULTS_SECONDS as test_faults.py.
"""

import concurrent.futures
import queue
import time

import clients
import pytest
from bridge import GENERATIONS, Bridge
from driver import ClientError
from faults import Faults
from load import DEADLINE, Acks, Reader, create, ends_of, judge
from records import Record
from test_faults import PLANS, SECONDS, SEED

LIBRARIES = ["java-4.4", "franz-go", "sarama", "kafka-python"]
PARTITIONS = 3
BATCH = 20


def write(library, driver, topic, acks, end):
    """Batches of numbered records until `end`, and one at least; (complaints, batches acknowledged, refusals)."""
    numbers, good, refused = [0] * PARTITIONS, 0, []
    try:
        while time.monotonic() < end or good == 0 and len(refused) < 3:
            partition = (good + len(refused)) % PARTITIONS
            first = numbers[partition]
            numbers[partition] += BATCH
            records = [Record(partition, b"k", f"{library}/{partition}/{number}/".encode()) for number in range(first, first + BATCH)]
            try:
                places = driver.produce(topic, records, idempotent=True)
            except ClientError as error:
                refused.append(str(error))
                continue
            good += 1
            for number, (_, offset) in zip(range(first, first + BATCH), places):
                acks.offsets[library, partition][number] = offset
    except queue.Empty:
        driver.kill()
        return [f"{library} waits for ever"], good, refused
    except RuntimeError as error:
        return [f"{library}: {error}"], good, refused
    driver.close()
    return [], good, refused


@pytest.mark.parametrize("generation", GENERATIONS)
def test_other_libraries_lose_nothing_acknowledged(generation, tmp_path):
    with Bridge(generation, between=lambda address: Faults(address, SEED)) as bridge, concurrent.futures.ThreadPoolExecutor(len(LIBRARIES)) as pool:
        create(bridge.bootstrap, "t", PARTITIONS)
        acks = Acks()
        drivers = dict(zip(LIBRARIES, pool.map(lambda one: clients.start(one, bridge.bootstrap, str(tmp_path)), LIBRARIES)))
        end = time.monotonic() + SECONDS
        bridge.proxy.begin(PLANS["everything"])
        runs = {one: pool.submit(write, one, driver, "t", acks, end) for one, driver in drivers.items()}
        time.sleep(SECONDS)
        bridge.proxy.calm()
        complaints = []
        for library, run in runs.items():
            found, good, refused = run.result()
            print(f"{library}: {good} batches acknowledged, {len(refused)} not: {sorted(set(refused))[:3]}")
            complaints += found
            if good == 0:
                complaints.append(f"nothing of {library} was acknowledged: {refused[:2]}")
        reader = Reader(bridge.bootstrap, "t", PARTITIONS)
        reader.start()
        missing = reader.read_to(ends_of(bridge.bootstrap, "t", PARTITIONS), DEADLINE)
        reader.stopping = True
        reader.join(10)
        complaints += [f"the consumer gets no further than {one}" for one in missing] + reader.complaints
        complaints += judge(reader.records, acks, set(LIBRARIES) if generation != "0.11" else set())
        assert not complaints, f"FAULTS_SEED={SEED}: " + "; ".join(dict.fromkeys(complaints))
