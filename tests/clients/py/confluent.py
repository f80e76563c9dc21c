"""confluent-kafka (librdkafka) behind the driver protocol: confluent.py BOOTSTRAP"""

import sys
import time

import confluent_kafka as ck
from base import Driver, Failure
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource, NewPartitions, NewTopic, OffsetSpec
from records import Record

SECONDS = 20
FATAL = (ck.KafkaError.FENCED_INSTANCE_ID, 111)


class Confluent(Driver):
    abilities = (
        "codec:none codec:gzip codec:snappy codec:lz4 codec:zstd idempotent acks0 time headers empty-header null-header repeat-header null-key empty-key "
        "tombstone empty-value consume commit create delete grow topics cluster offset offset-time offset-max group cooperative static consumer-protocol pattern alter configure trim"
    )

    def __init__(self, bootstrap):
        self.settings = {"bootstrap.servers": bootstrap, "log_level": 0}
        self.admin = AdminClient(self.settings)

    def code_of(self, error):
        if isinstance(error, ck.KafkaException):
            code = error.args[0].code()
            if code == ck.KafkaError._FATAL:  # the code behind it stands in the text only
                return next((one for one in FATAL if ck.KafkaError(one).str() in error.args[0].str()), "FATAL")
            return code if code >= -1 else error.args[0].name()
        return super().code_of(error)

    def _one(self, futures):
        return list(futures.values())[0].result(SECONDS)

    def create(self, topic, partitions, factor):
        self._one(self.admin.create_topics([NewTopic(topic, partitions, factor)]))

    def delete(self, topic):
        self._one(self.admin.delete_topics([topic]))

    def grow(self, topic, partitions):
        self._one(self.admin.create_partitions([NewPartitions(topic, partitions)]))

    def trim(self, topic, partition, offset):
        return self._one(self.admin.delete_records([ck.TopicPartition(topic, partition, offset)])).low_watermark

    def topics(self):
        return {name: len(topic.partitions) for name, topic in self.admin.list_topics(timeout=SECONDS).topics.items()}

    def cluster(self):
        cluster = self.admin.describe_cluster().result(SECONDS)
        return len(cluster.nodes), cluster.controller.id in [node.id for node in cluster.nodes]

    def offset(self, topic, partition, where):
        specs = {"earliest": OffsetSpec.earliest, "latest": OffsetSpec.latest, "max": OffsetSpec.max_timestamp}
        spec = specs[where]() if where in specs else OffsetSpec.for_timestamp(where)
        found = self._one(self.admin.list_offsets({ck.TopicPartition(topic, partition): spec})).offset
        return found if found >= 0 else None

    def produce(self, topic, records, codec, acks, idempotent):
        settings = {"compression.type": codec, "acks": acks, "linger.ms": 5, "enable.idempotence": idempotent}
        producer = ck.Producer(self.settings | settings)
        positions, errors = {}, []

        def delivered(index, error, message):
            if error:
                errors.append(error)
            else:
                positions[index] = (message.partition(), message.offset() if acks else -1)

        for index, record in enumerate(records):
            producer.produce(
                topic,
                partition=record.partition,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                timestamp=record.timestamp or 0,
                on_delivery=lambda error, message, index=index: delivered(index, error, message),
            )
        if producer.flush(SECONDS):
            raise Failure("UNSENT", "not all records were acknowledged")
        if errors:
            raise ck.KafkaException(errors[0])
        return [positions[index] for index in range(len(records))]

    def consume(self, topic, partition, offset, count):
        consumer = ck.Consumer(
            self.settings | {"group.id": "none", "enable.auto.commit": False, "auto.offset.reset": "error", "fetch.wait.max.ms": 200}
        )
        consumer.assign([ck.TopicPartition(topic, partition, offset)])
        found = self._read(consumer, count, 15)
        consumer.close()
        return found

    def _read(self, consumer, count, seconds, found=None):
        found, deadline = [] if found is None else found, time.monotonic() + seconds
        while len(found) < count and time.monotonic() < deadline:
            message = consumer.poll(min(0.5, max(0, deadline - time.monotonic())))
            if message is None:
                continue
            if message.error():
                raise ck.KafkaException(message.error())
            found.append(
                Record(
                    message.partition(),
                    message.key(),
                    message.value(),
                    tuple(message.headers() or ()),
                    message.timestamp()[1],
                    message.offset(),
                )
            )
        return found

    def join(self, group, topic, instance, assignor):
        own = {
            "group.id": group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 200,
        }
        # The times of the consumer protocol are the server's.
        own |= {"group.protocol": "consumer"} if assignor in ("consumer", "pattern") else {"session.timeout.ms": self.session(instance), "heartbeat.interval.ms": 500}
        if instance:
            own["group.instance.id"] = instance
        if assignor == "cooperative":
            own["partition.assignment.strategy"] = "cooperative-sticky"
        self.member = ck.Consumer(self.settings | own)
        self.topic, self.given, self.rebalances = topic, {}, 0

        def revoked(_, places):
            self.was_revoked(places)

        name = "^" + topic if assignor == "pattern" else topic  # so it tells them apart
        self.member.subscribe([name], on_assign=self.was_assigned, on_revoke=revoked, on_lost=revoked)

    def poll(self, most, seconds, found):
        deadline = time.monotonic() + seconds
        while len(found) < most and (left := deadline - time.monotonic()) > 0:
            before = len(found)
            self._read(self.member, before + 1, left, found)
            if len(found) > before:
                self.given[found[-1].partition] = found[-1].offset + 1

    def assigned(self):
        return {place.partition for place in self.member.assignment()}

    def commit(self, given):
        places = [ck.TopicPartition(self.topic, partition, offset) for partition, offset in given.items()]
        self._found(self.member.commit(offsets=places, asynchronous=False))

    def leave(self):
        self.member.close()

    def _member(self, group, place):
        consumer = ck.Consumer(self.settings | {"group.id": group, "enable.auto.commit": False})
        consumer.assign([place])
        return consumer

    def _found(self, places):
        for place in places:
            if place.error:
                raise ck.KafkaException(place.error)
        return places

    def commit_at(self, group, topic, partition, offset, metadata):
        consumer = self._member(group, ck.TopicPartition(topic, partition))
        try:
            self._found(consumer.commit(offsets=[ck.TopicPartition(topic, partition, offset, metadata)], asynchronous=False))
        finally:
            consumer.close()

    def committed(self, group, topic, partition):
        place = ck.TopicPartition(topic, partition)
        consumer = self._member(group, place)
        try:
            found = self._found(consumer.committed([place], timeout=SECONDS))[0]
            return (found.offset if found.offset >= 0 else None), found.metadata
        finally:
            consumer.close()

    def alter(self, group, topic, partition, offset):
        places = [ck.TopicPartition(topic, partition, offset)]
        done = self._one(self.admin.alter_consumer_group_offsets([ck.ConsumerGroupTopicPartitions(group, places)]))
        self._found(done.topic_partitions)

    def configure(self, topic, key, how, value):
        if how == "replace":
            self._one(self.admin.alter_configs([ConfigResource(ConfigResource.Type.TOPIC, topic, set_config={key: value})]))
            return
        entry = ConfigEntry(key, None if how == "delete" else value, incremental_operation=AlterConfigOpType[how.upper()])
        self._one(self.admin.incremental_alter_configs([ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])]))

    def setting(self, topic, key):
        entry = self._one(self.admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]))[key]
        return entry.value, entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value

    def list(self, group):
        found = self._one(self.admin.list_consumer_group_offsets([ck.ConsumerGroupTopicPartitions(group)]))
        return [(place.topic, place.partition, place.offset) for place in self._found(found.topic_partitions)]


Confluent(sys.argv[1]).serve()
