"""Workers of Kafka Connect, and the files their connectors read and write."""

import contextlib
import json
import os
import threading
import urllib.error
import urllib.request

from java import HOME, Java
from server import free_ports

STANDALONE, DISTRIBUTED = (f"org.apache.kafka.connect.cli.Connect{kind}" for kind in ("Standalone", "Distributed"))
SETTINGS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "offset.flush.interval.ms": 200,
    "plugin.path": f"{HOME}/connect/plugins",
    "plugin.discovery": "service_load",
    "consumer.session.timeout.ms": 6000,
    "consumer.heartbeat.interval.ms": 500,
    "consumer.metadata.max.age.ms": 1000,
}

_ports = set()  # of workers that may not listen yet


def properties(path, settings):
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return str(path)


class Worker(Java):
    """One worker; `api` speaks to its REST interface."""

    def __init__(self, folder, name, main, bootstrap, settings, connectors=()):
        port = free_ports(_ports)
        _ports.add(port)
        self.rest = f"http://127.0.0.1:{port}"
        settings = SETTINGS | {"bootstrap.servers": bootstrap, "listeners": self.rest} | settings
        files = [properties(folder / f"{name}.properties", settings)]
        files += [properties(folder / f"{name}-{each['name']}.properties", each) for each in connectors]
        super().__init__(folder, name, ["connect/libs/*"], main, *files)

    def api(self, path, body=None):
        """What it answers; None while it does not listen, or is busy with a rebalance."""
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(self.rest + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code not in (404, 409, 500, 503):
                raise
        except OSError:
            pass
        return None

    def create(self, connector):
        config = {key: str(value) for key, value in connector.items() if key != "name"}
        self.until("a new connector", lambda: self.api("/connectors", {"name": connector["name"], "config": config}))

    def running(self, *names):
        """Where the tasks of these connectors run, once all do."""
        found = [self.api(f"/connectors/{name}/status") for name in names]
        tasks = [task for each in found if each for task in each["tasks"]]
        good = all(each and each["tasks"] for each in found) and all(task["state"] == "RUNNING" for task in tasks)
        return {task["worker_id"] for task in tasks} if good else None


    def position(self, connector):
        """How far a connector has committed; a source: bytes of its file, a sink: records of its topic."""
        found = (self.api(f"/connectors/{connector}/offsets") or {}).get("offsets")
        return next(iter(found[0]["offset"].values())) if found else None


class Pipe:
    """A file, a source that reads its lines into a topic, and a sink that writes them into another file."""

    def __init__(self, folder, name):
        self.topic, self.input, self.output = f"{name}-lines", folder / f"{name}-in.txt", folder / f"{name}-out.txt"
        self.input.touch()
        self.count = 0
        self.source = {"name": f"{name}-source", "connector.class": "FileStreamSource", "tasks.max": 1, "file": self.input, "topic": self.topic}
        self.source |= {"topic.creation.default.partitions": 1, "topic.creation.default.replication.factor": 1}
        self.sink = {"name": f"{name}-sink", "connector.class": "FileStreamSink", "tasks.max": 1, "file": self.output, "topics": self.topic}
        self.connectors = [self.source, self.sink]
        self.names = [each["name"] for each in self.connectors]

    def write(self, lines):
        with open(self.input, "a", encoding="ascii") as file:
            for _ in range(lines):
                file.write(f"line {self.count}\n")
                self.count += 1

    @contextlib.contextmanager
    def flowing(self):
        """Lines are written all the time."""
        stop = threading.Event()

        def run():
            while not stop.wait(0.02):
                self.write(20)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def lines(self):
        return self.output.read_text().splitlines() if self.output.exists() else []

    def exact(self):
        """All lines came, each once, in their order."""
        return self.lines() == [f"line {number}" for number in range(self.count)]

    def at_least(self):
        """All lines came, some perhaps more than once."""
        return set(self.lines()) >= {f"line {number}" for number in range(self.count)}

    def committed(self, worker):
        """All was read and written, and that was committed: nothing is under way."""
        positions = [worker.position(name) for name in self.names]
        return positions[0] == os.path.getsize(self.input) and (positions[1] or 0) >= self.count
