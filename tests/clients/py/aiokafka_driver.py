"""aiokafka behind the driver protocol: aiokafka_driver.py BOOTSTRAP"""

import asyncio
import logging
import sys
import threading
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import OffsetOutOfRangeError
from base import Driver, Failure
from records import Record

logging.basicConfig(level=logging.CRITICAL)


class AioKafka(Driver):
    abilities = (
        "codec:none codec:gzip codec:snappy codec:lz4 codec:zstd idempotent acks0 time headers empty-header null-header repeat-header null-key empty-key "
        "tombstone empty-value consume commit create delete grow topics cluster offset offset-time group static"
    )

    def __init__(self, bootstrap):
        self.settings = {"bootstrap_servers": bootstrap}
        self.loop = asyncio.new_event_loop()  # goes on between commands: a member sends heartbeats
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.admin = self.run(self._start(lambda: AIOKafkaAdminClient(**self.settings)))

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(asyncio.wait_for(coroutine, 25), self.loop).result()

    async def _start(self, make):
        client = make()
        await client.start()
        return client

    def code_of(self, error):
        if isinstance(error, OffsetOutOfRangeError):
            return 1
        return getattr(error, "errno", None) or type(error).__name__

    def _check(self, response, entries):
        """Admin calls of aiokafka give the bare response: (topic, error, ...) entries."""
        for entry in getattr(response, entries):
            if entry[1]:
                raise Failure(entry[1], str(entry[2]) if len(entry) > 2 else "")

    def create(self, topic, partitions, factor):
        self._check(self.run(self.admin.create_topics([NewTopic(topic, partitions, factor)])), "topic_errors")

    def delete(self, topic):
        self._check(self.run(self.admin.delete_topics([topic])), "topic_error_codes")

    def grow(self, topic, partitions):
        self._check(self.run(self.admin.create_partitions({topic: NewPartitions(partitions)})), "topic_errors")

    def topics(self):
        return {topic["topic"]: len(topic["partitions"]) for topic in self.run(self.admin.describe_topics())}

    def cluster(self):
        cluster = self.run(self.admin.describe_cluster())
        nodes = [broker["node_id"] for broker in cluster["brokers"]]
        return len(nodes), cluster["controller_id"] in nodes

    def offset(self, topic, partition, where):
        return self.run(self._with_reader(self._offset, TopicPartition(topic, partition), where))

    async def _with_reader(self, call, *arguments, group=None):
        """A consumer for one call: one that met an error keeps it for the next call."""
        reader = AIOKafkaConsumer(group_id=group, auto_offset_reset="none", enable_auto_commit=False, fetch_max_wait_ms=200, **self.settings)
        await reader.start()
        try:
            return await call(reader, *arguments)
        finally:
            await reader.stop()

    async def _offset(self, reader, place, where):
        if where == "earliest":
            return (await reader.beginning_offsets([place]))[place]
        if where == "latest":
            return (await reader.end_offsets([place]))[place]
        found = (await reader.offsets_for_times({place: where}))[place]
        return found.offset if found else None

    def produce(self, topic, records, codec, acks, idempotent):
        return self.run(self._produce(topic, records, codec, acks, idempotent))

    async def _produce(self, topic, records, codec, acks, idempotent):
        producer = AIOKafkaProducer(
            compression_type=None if codec == "none" else codec,
            acks="all" if acks == -1 else acks,
            enable_idempotence=idempotent,
            linger_ms=5,
            **self.settings,
        )
        await producer.start()
        try:
            sent = [
                await producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp,
                )
                for record in records
            ]
            done = await asyncio.gather(*sent)
            return [(one.partition, one.offset) if acks else (record.partition, -1) for one, record in zip(done, records)]
        finally:
            await producer.stop()

    def consume(self, topic, partition, offset, count):
        return self.run(self._with_reader(self._consume, TopicPartition(topic, partition), offset, count))

    async def _consume(self, reader, place, offset, count):
        reader.assign([place])
        reader.seek(place, offset)
        found, deadline = [], time.monotonic() + 15
        while len(found) < count and time.monotonic() < deadline:
            messages = await reader.getmany(timeout_ms=500, max_records=count - len(found))
            for message in messages.get(place, []):
                found.append(Record(message.partition, message.key, message.value, tuple(message.headers), message.timestamp, message.offset))
        return found

    def join(self, group, topic, instance, assignor):
        self.topic, self.given, self.rebalances, driver = topic, {}, 0, self

        class Listener(ConsumerRebalanceListener):
            def on_partitions_assigned(self, assigned):
                driver.was_assigned()

            def on_partitions_revoked(self, revoked):
                driver.was_revoked(revoked)

        def make():
            member = AIOKafkaConsumer(
                group_id=group,
                group_instance_id=instance,
                partition_assignment_strategy=[RangePartitionAssignor],
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                session_timeout_ms=self.session(instance),
                heartbeat_interval_ms=500,
                fetch_max_wait_ms=200,
                **self.settings,
            )
            member.subscribe([topic], listener=Listener())
            return member

        self.member = self.run(self._start(make))

    def poll(self, most, seconds, found):
        self.run(self._poll(most, seconds, found))

    async def _poll(self, most, seconds, found):
        deadline = time.monotonic() + seconds
        while len(found) < most and (left := deadline - time.monotonic()) > 0:
            for place, messages in (await self.member.getmany(timeout_ms=int(left * 1000) + 1, max_records=most - len(found))).items():
                for message in messages:
                    headers = tuple(message.headers)
                    found.append(Record(message.partition, message.key, message.value, headers, message.timestamp, message.offset))
                self.given[place.partition] = messages[-1].offset + 1

    def assigned(self):
        return {place.partition for place in self.member.assignment()}

    def commit(self, given):
        self.run(self.member.commit({TopicPartition(self.topic, partition): end for partition, end in given.items()}))

    def leave(self):
        self.run(self.member.stop())

    def commit_at(self, group, topic, partition, offset, metadata):
        self.run(self._with_reader(self._commit, TopicPartition(topic, partition), (offset, metadata), group=group))

    async def _commit(self, reader, place, what):
        reader.assign([place])
        await reader.commit({place: what})

    def committed(self, group, topic, partition):
        return self.run(self._with_reader(self._committed, TopicPartition(topic, partition), group=group)), ""

    async def _committed(self, reader, place):
        reader.assign([place])
        return await reader.committed(place)


AioKafka(sys.argv[1]).serve()
