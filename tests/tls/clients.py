"""Kafka clients by TLS. Each has send(values) and receive(count), in one partition of one topic, and raises Refused when the server won't have it, or
it won't have the server."""

import asyncio
import dataclasses
import os
import ssl
import subprocess
import tempfile

import aiokafka
import aiokafka.errors
import confluent_kafka
import kafka
import kafka.errors
from authority import Certificate
from driver import ClientError, Driver
from records import Record

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HOME = os.environ.get("PEERS_HOME", os.path.expanduser("~/.cache/iggy-gateway-kafka/peers"))
SECONDS = 20


class Refused(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Trust:
    """What a client brings along: the file of roots that it trusts, and a certificate of its own or None."""

    ca: str
    own: Certificate | None = None

    def context(self):
        context = ssl.create_default_context(cafile=self.ca)
        if self.own:
            context.load_cert_chain(self.own.cert, self.own.key)
        return context

    def librdkafka(self):
        own = {"ssl.certificate.location": self.own.cert, "ssl.key.location": self.own.key} if self.own else {}
        return {"security.protocol": "ssl", "ssl.ca.location": self.ca} | own

    def java(self):
        own = {"ssl.keystore.type": "PEM", "ssl.keystore.location": self.own.both} if self.own else {}
        return {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": self.ca} | own


class Client:
    """seconds: for how long it tries."""

    def __init__(self, bootstrap, trust, topic, seconds=SECONDS):
        self.bootstrap, self.trust, self.topic, self.seconds = bootstrap, trust, topic, seconds


class Kcat(Client):
    def _run(self, *options, **how):
        settings = [word for item in self.trust.librdkafka().items() for word in ("-X", "=".join(item))]
        command = ["kcat", "-b", self.bootstrap, "-m", str(self.seconds), *settings, "-t", self.topic, *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS * 2, **how)
        if done.returncode:
            raise Refused(done.stderr)
        return done.stdout

    def send(self, values):
        self._run("-L")  # kcat -P itself waits for ever
        self._run("-P", "-X", f"message.timeout.ms={self.seconds * 1000}", input="".join(value + "\n" for value in values))

    def receive(self, count):
        return self._run("-C", "-q", "-e", "-o", "beginning", "-c", str(count)).splitlines()


class Librdkafka(Client):
    """confluent-kafka for Python."""

    def _settings(self, **more):
        said = []
        settings = {"bootstrap.servers": self.bootstrap, "error_cb": said.append} | self.trust.librdkafka()
        return settings | {name.replace("_", "."): value for name, value in more.items()}, said

    def send(self, values):
        settings, said = self._settings(message_max_bytes=10_000_000, linger_ms=50, message_timeout_ms=self.seconds * 1000)
        failed = []
        producer = confluent_kafka.Producer(settings)
        for value in values:
            producer.produce(self.topic, value, on_delivery=lambda error, _: error and failed.append(error))
        producer.flush(SECONDS * 2)
        if failed:
            raise Refused(f"{failed[0]}: {[error.str() for error in said]}")

    def receive(self, count):
        settings, said = self._settings(group_id="none", enable_auto_commit=False, fetch_message_max_bytes=10_000_000)
        consumer = confluent_kafka.Consumer(settings)
        consumer.assign([confluent_kafka.TopicPartition(self.topic, 0, 0)])
        found = consumer.consume(count, self.seconds)
        consumer.close()
        if len(found) < count:
            raise Refused(f"{len(found)} of {count}: {[error.str() for error in said]}")
        return [message.value().decode() for message in found]


class KafkaPython(Client):
    def _settings(self):
        own = {"ssl_certfile": self.trust.own.cert, "ssl_keyfile": self.trust.own.key} if self.trust.own else {}
        limits = {"bootstrap_timeout_ms": self.seconds * 1000}
        return {"bootstrap_servers": self.bootstrap, "security_protocol": "SSL", "ssl_cafile": self.trust.ca} | own | limits

    def send(self, values):
        try:
            producer = kafka.KafkaProducer(max_block_ms=self.seconds * 1000, max_request_size=10_000_000, **self._settings())
            sent = [producer.send(self.topic, value.encode()) for value in values]
            for one in sent:
                one.get(SECONDS)
            producer.close(SECONDS)
        except kafka.errors.KafkaError as error:
            raise Refused(repr(error)) from error

    def receive(self, count):
        settings = {"consumer_timeout_ms": self.seconds * 1000, "max_partition_fetch_bytes": 10_000_000, "enable_auto_commit": False}
        consumer = kafka.KafkaConsumer(**settings, **self._settings())
        consumer.assign([kafka.TopicPartition(self.topic, 0)])
        consumer.seek(kafka.TopicPartition(self.topic, 0), 0)
        found = []
        for message in consumer:
            found.append(message.value.decode())
            if len(found) == count:
                break
        consumer.close()
        return found


class Aiokafka(Client):
    def send(self, values):
        asyncio.run(self._send(values))

    def receive(self, count):
        return asyncio.run(asyncio.wait_for(self._receive(count), self.seconds))

    def _settings(self):
        return {"bootstrap_servers": self.bootstrap, "security_protocol": "SSL", "ssl_context": self.trust.context()}

    async def _send(self, values):
        producer = aiokafka.AIOKafkaProducer(max_request_size=10_000_000, **self._settings())
        try:
            await producer.start()
            for one in [await producer.send(self.topic, value.encode()) for value in values]:
                await asyncio.wait_for(one, SECONDS)
        except aiokafka.errors.KafkaError as error:
            raise Refused(repr(error)) from error
        finally:
            await producer.stop()

    async def _receive(self, count):
        consumer = aiokafka.AIOKafkaConsumer(max_partition_fetch_bytes=10_000_000, **self._settings())
        partition = aiokafka.TopicPartition(self.topic, 0)
        await consumer.start()
        try:
            consumer.assign([partition])
            consumer.seek(partition, 0)
            return [(await consumer.getone()).value.decode() for _ in range(count)]
        finally:
            await consumer.stop()


class Java(Client):
    """Apache Kafka's command line tools."""

    def _run(self, tool, *options, **how):
        with tempfile.NamedTemporaryFile("w", suffix=".properties") as file:
            file.write("".join(f"{name}={value}\n" for name, value in self.trust.java().items()))
            file.write(f"max.block.ms={self.seconds * 1000}\n")
            file.flush()
            command = [f"{TESTS}/peers/kafka-tool.sh", tool, "--bootstrap-server", self.bootstrap, "--command-config", file.name, "--topic", self.topic]
            environment = dict(os.environ, KLL="ERROR")
            done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=SECONDS * 2, env=environment, **how)
        if done.returncode or "SslAuthenticationException" in done.stderr + done.stdout:
            raise Refused(done.stdout + done.stderr)
        return done.stdout

    def send(self, values):
        self._run("kafka-console-producer", input="".join(value + "\n" for value in values))

    def receive(self, count):
        where = ["--partition", "0", "--offset", "earliest", "--max-messages", str(count), "--timeout-ms", str(SECONDS * 1000)]
        return self._run("kafka-console-consumer", *where).splitlines()


class Franz(Client):
    """franz-go, behind the driver protocol of ../clients."""

    def _driver(self):
        own = [f"KAFKA_TLS_CERT={self.trust.own.cert}", f"KAFKA_TLS_KEY={self.trust.own.key}"] if self.trust.own else []
        return Driver(["env", f"KAFKA_TLS_CA={self.trust.ca}", *own, f"{HOME}/bin/go-franz", self.bootstrap], os.devnull)

    def _with_driver(self, what):
        driver = self._driver()
        try:
            return what(driver)
        except ClientError as error:
            raise Refused(str(error)) from error
        finally:
            driver.close()

    def send(self, values):
        self._with_driver(lambda driver: driver.produce(self.topic, [Record(0, None, value.encode()) for value in values]))

    def receive(self, count):
        return [record.value.decode() for record in self._with_driver(lambda driver: driver.consume(self.topic, 0, 0, count))]


CLIENTS = {"kcat": Kcat, "librdkafka": Librdkafka, "kafka-python": KafkaPython, "aiokafka": Aiokafka, "java": Java, "franz-go": Franz}
