"""kafka-python behind the driver protocol: kafka_python.py BOOTSTRAP"""

import logging
import sys
import time

import kafka
from base import Driver, Failure
from kafka.admin import NewPartitions, NewTopic
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from records import Record

logging.basicConfig(level=logging.CRITICAL, format="%(asctime)s %(name)s %(message)s")
logging.getLogger("kafka.coordinator").setLevel(logging.INFO)  # what a member did, where one goes wrong
SECONDS = 20
JOINING = 2  # s


class KafkaPython(Driver):
    abilities = (
        "codec:none codec:gzip codec:snappy codec:lz4 codec:zstd idempotent acks0 time headers empty-header repeat-header null-key empty-key "
        "tombstone empty-value consume commit create delete grow topics cluster offset offset-time group cooperative static"
    )

    def __init__(self, bootstrap):
        self.settings = {"bootstrap_servers": bootstrap}
        self.admin = kafka.KafkaAdminClient(**self.settings)
        self.reader = kafka.KafkaConsumer(
            auto_offset_reset="none", enable_auto_commit=False, group_id=None, fetch_max_wait_ms=200, **self.settings
        )

    def code_of(self, error):
        if isinstance(error, kafka.errors.OffsetOutOfRangeError):
            return 1
        return getattr(error, "errno", None) or type(error).__name__

    def create(self, topic, partitions, factor):
        self.admin.create_topics([NewTopic(topic, partitions, factor)])

    def delete(self, topic):
        self.admin.delete_topics([topic])

    def grow(self, topic, partitions):
        self.admin.create_partitions({topic: NewPartitions(partitions)})

    def topics(self):
        return {topic["name"]: len(topic["partitions"]) for topic in self.admin.describe_topics()}

    def cluster(self):
        cluster = self.admin.describe_cluster()
        nodes = [broker.get("node_id", broker.get("broker_id")) for broker in cluster["brokers"]]
        return len(nodes), cluster["controller_id"] in nodes

    def offset(self, topic, partition, where):
        place = kafka.TopicPartition(topic, partition)
        if where == "earliest":
            return self.reader.beginning_offsets([place])[place]
        if where == "latest":
            return self.reader.end_offsets([place])[place]
        found = self.reader.offsets_for_times({place: where})[place]
        return found.offset if found else None

    def produce(self, topic, records, codec, acks, idempotent):
        producer = kafka.KafkaProducer(
            compression_type=None if codec == "none" else codec,
            acks="all" if acks == -1 else acks,
            enable_idempotence=idempotent,
            linger_ms=5,
            **self.settings,
        )
        try:
            sent = [
                producer.send(topic, record.value, record.key, list(record.headers), record.partition, record.timestamp)
                for record in records
            ]
            producer.flush(SECONDS)
            done = [future.get(SECONDS) for future in sent]
            return [(one.partition, one.offset if acks else -1) for one in done]
        finally:
            producer.close()

    def consume(self, topic, partition, offset, count):
        place = kafka.TopicPartition(topic, partition)
        self.reader.assign([place])
        self.reader.seek(place, offset)
        found, deadline = [], time.monotonic() + 15
        while len(found) < count and time.monotonic() < deadline:
            for message in self.reader.poll(timeout_ms=500, max_records=count - len(found)).get(place, []):
                found.append(Record(message.partition, message.key, message.value, tuple(message.headers), message.timestamp, message.offset))
        if len(found) < count and offset > self.reader.end_offsets([place])[place]:
            raise Failure("NOTHING", "no record and no error")
        return found

    def join(self, group, topic, instance, assignor):
        self.member = kafka.KafkaConsumer(
            group_id=group,
            group_instance_id=instance,
            partition_assignment_strategy=[CooperativeStickyAssignor if assignor == "cooperative" else RangePartitionAssignor],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=self.session(instance),
            heartbeat_interval_ms=500,
            fetch_max_wait_ms=200,
            **self.settings,
        )
        self.topic, self.given, self.rebalances, driver = topic, {}, 0, self

        class Listener(kafka.ConsumerRebalanceListener):
            def on_partitions_assigned(self, places):
                driver.was_assigned()

            def on_partitions_revoked(self, places):
                driver.was_revoked(places)

        # A member that learns of the topic only when it has joined joins again, and hangs when that ends between two polls (3.0.12).
        self.member.partitions_for_topic(topic)
        self.member.subscribe([topic], listener=Listener())

    def poll(self, most, seconds, found):
        """One poll, which gives what is there, and time to join: what 3.0.12 does for that goes on behind a poll that ends before, and then the next one
        finds partitions without an offset and begins at the first record, or an assignment is lost, and its member never joins again."""
        for place, messages in self.member.poll(timeout_ms=int(max(seconds, JOINING) * 1000), max_records=most).items():
            for message in messages:
                headers = tuple(message.headers)
                found.append(Record(message.partition, message.key, message.value, headers, message.timestamp, message.offset))
            self.given[place.partition] = messages[-1].offset + 1

    def assigned(self):
        return {place.partition for place in self.member.assignment()}

    def commit(self, given):
        self.member.commit({kafka.TopicPartition(self.topic, place): kafka.OffsetAndMetadata(end, "", -1) for place, end in given.items()})

    def leave(self):
        self.member.close()

    def _member(self, group, place):
        consumer = kafka.KafkaConsumer(group_id=group, enable_auto_commit=False, **self.settings)
        consumer.assign([place])
        return consumer

    def commit_at(self, group, topic, partition, offset, metadata):
        place = kafka.TopicPartition(topic, partition)
        consumer = self._member(group, place)
        try:
            consumer.commit({place: kafka.OffsetAndMetadata(offset, metadata, -1)})
        finally:
            consumer.close()

    def committed(self, group, topic, partition):
        place = kafka.TopicPartition(topic, partition)
        consumer = self._member(group, place)
        try:
            found = consumer.committed(place, metadata=True)
            return (found.offset, found.metadata) if found else (None, "")
        finally:
            consumer.close()


KafkaPython(sys.argv[1]).serve()
