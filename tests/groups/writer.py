"""Writes 1, 2, 3... to the partitions in turn, whatever happens to the server."""

import threading

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic
from members import PARTITIONS, TOPIC

PAUSE = 0.03  # s


class Writer(threading.Thread):
    """`acknowledged` is (partition, offset) -> number of all that the server has confirmed."""

    def __init__(self, bootstrap):
        super().__init__(daemon=True)
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        for made in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
            made.result(20)
        settings = {"bootstrap.servers": bootstrap, "log_level": 0, "acks": "all", "linger.ms": 5, "message.timeout.ms": 60000, "reconnect.backoff.max.ms": 500}
        self.producer = ck.Producer(settings)
        self.acknowledged, self.failed, self.stopping = {}, [], threading.Event()

    def run(self):
        number = 0
        while not self.stopping.wait(PAUSE):
            number += 1
            self.producer.produce(TOPIC, str(number), partition=number % PARTITIONS, on_delivery=self._delivered)
            self.producer.poll(0)

    def _delivered(self, error, message):
        if error:
            self.failed.append(f"{message.value()}: {error}")
        else:
            self.acknowledged[message.partition(), message.offset()] = int(message.value())

    def stop(self):
        """Returns when everything was confirmed."""
        self.stopping.set()
        self.join()
        assert self.producer.flush(60) == 0 and not self.failed, f"not acknowledged: {self.failed[:3]}"
        return self.acknowledged
