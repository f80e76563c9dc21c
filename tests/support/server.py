"""The servers that tests talk to: our binary on a data folder of its own, and an Apache Kafka broker to compare with."""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BINARY = os.environ.get("IGGY_KAFKA_BIN", os.path.join(os.path.dirname(TESTS), "build", "release", "iggy-gateway-kafka"))


ROOT_USER, ROOT_PASSWORD = "iggy", "iggy-secret"


class Server:
    """Our binary. Settings are given without their prefix: Server(IDLE_TIMEOUT_SECS=1). iggy: it serves Iggy clients as well, and its first
    start makes the root user above. Restart keeps ports and data."""

    def __init__(self, folder=None, data=None, iggy=False, **settings):
        self.folder = folder or tempfile.mkdtemp(prefix="gateway-")
        self.temporary = folder is None
        self.data = data or os.path.join(self.folder, "data")
        self.log_path = os.path.join(self.folder, "log")
        self.settings = {"AUTO_CREATE_TOPICS": "true"} | {key: str(value) for key, value in settings.items()}
        self.process, self.port, self.iggy_port = None, 0, 0
        self.iggy = iggy

    @property
    def bootstrap(self):
        return f"127.0.0.1:{self.port}"

    @property
    def iggy_address(self):
        return f"127.0.0.1:{self.iggy_port}"

    @property
    def pid(self):
        return self.process.pid

    def spawn(self, wrapper=()):
        """Starts it without waiting for it to listen; wrapper is a command that runs it."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("IGGY_KAFKA_")}
        environment |= {"IGGY_KAFKA_" + key: value for key, value in self.settings.items()}
        environment["IGGY_KAFKA_BIND_ADDR"] = f"127.0.0.1:{self.port}"
        if self.settings.get("BACKEND") != "iggy":
            environment["IGGY_KAFKA_DATA_DIR"] = self.data
        if self.settings.get("BACKEND", "embedded") == "embedded" and "BRIDGE_ENABLED" not in self.settings:
            environment.setdefault("IGGY_KAFKA_IGGY_LISTEN_ADDR", "off")  # two servers on one machine must not meet on the standard port
        if self.iggy:
            environment |= {"IGGY_KAFKA_ROOT_USERNAME": ROOT_USER, "IGGY_KAFKA_ROOT_PASSWORD": ROOT_PASSWORD}
            environment["IGGY_KAFKA_IGGY_LISTEN_ADDR"] = self.iggy_address
        self.log_start = os.path.getsize(self.log_path) if os.path.exists(self.log_path) else 0
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([*wrapper, BINARY], env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        return self

    def start(self, wrapper=(), seconds=15):
        """Returns when it listens. A port is free for the first start and stays the same afterwards."""
        self.spawn(wrapper)
        deadline = time.monotonic() + seconds
        self.port = self._listening("Kafka", deadline)
        if self.iggy:
            self.iggy_port = self._listening("Iggy", deadline)
        return self

    def _listening(self, side, deadline):
        while not (found := re.search(rf"listening for {side} clients.*?address\"?[=:]\"?127\.0\.0\.1:(\d+)", self.log())):
            if self.process.poll() is not None:
                raise RuntimeError(f"ended with {self.process.returncode} before it listened: {self.log()[-2000:]}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"does not listen in time: {self.log()[-2000:]}")
            time.sleep(0.005)
        return int(found[1])

    def log(self):
        """What it wrote since its last start."""
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            file.seek(self.log_start)
            return file.read()

    def rss(self):
        """Resident memory in bytes."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmRSS:\s+(\d+) kB", file.read())[1]) * 1024

    def descriptors(self):
        """Open file descriptors, sockets among them."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def kill(self):
        self.process.kill()
        return self.process.wait()

    def stop(self, seconds=40):
        """SIGTERM; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def __enter__(self):
        return self if self.process else self.start()

    def __exit__(self, error, *_):
        """An orderly end, so that a leak or a race that a sanitizer found shows as a status."""
        running = self.process and self.process.poll() is None
        if running and error:
            self.kill()
        elif running:
            status = self.stop()
            assert status == 0, f"ended with {status}: {self.log()[-2000:]}"
        if self.temporary:
            shutil.rmtree(self.folder, ignore_errors=True)


class Kafka:
    """A one-node Apache Kafka, started by tests/peers/kafka-up.sh on free ports."""

    def __init__(self, folder=None):
        self.folder = folder or tempfile.mkdtemp(prefix="kafka-")
        self.temporary = folder is None

    def __enter__(self):
        port = free_ports()
        subprocess.run([os.path.join(TESTS, "peers", "kafka-up.sh"), str(port), self.folder], check=True, stdout=subprocess.DEVNULL)
        self.bootstrap = f"127.0.0.1:{port}"
        return self

    def __exit__(self, *_):
        subprocess.run([os.path.join(TESTS, "peers", "kafka-down.sh"), self.folder, "--wipe"], stdout=subprocess.DEVNULL)
        if self.temporary:
            shutil.rmtree(self.folder, ignore_errors=True)


def free_ports(taken=()):
    """A port below the range that the system hands out, so that nobody gets it meanwhile, with its neighbour free as well; none of those taken."""
    for port in range(20000 + os.getpid() % 5000 * 2, 32000, 2):
        if port in taken:
            continue
        try:
            for candidate in (port, port + 1):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", candidate))
            return port
        except OSError:
            continue
    raise RuntimeError("no free ports")
