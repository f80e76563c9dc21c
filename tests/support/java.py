"""Programs on the JVM that a test starts, watches and kills."""

import os
import subprocess
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HOME = os.environ.get("PEERS_HOME", os.path.expanduser("~/.cache/iggy-gateway-kafka/peers"))
# What starts quickest: these programs run for seconds, many at a time.
OPTIONS = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]


class Java:
    """A process. `output()` is what it printed; what it logged (warnings and errors) stands in the file NAME.log beside."""

    def __init__(self, folder, name, classes, *command):
        log4j = f"-Dlog4j2.configurationFile={TESTS}/peers/kafka/log4j2.properties"
        self.name = name
        self.paths = [os.path.join(str(folder), f"{name}.{kind}") for kind in ("out", "log")]
        path = ":".join(os.path.join(HOME, part) for part in classes)
        with open(self.paths[0], "wb") as out, open(self.paths[1], "wb") as log:
            command = ["java", *OPTIONS, f"-Dkll={os.environ.get('KLL', 'WARN')}", log4j, "-cp", path, *command]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=log)

    def _read(self, path):
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def output(self):
        return self._read(self.paths[0])

    def log(self):
        return self._read(self.paths[1])

    def until(self, what, check, seconds=120):
        """What check returns once it is true. Fails at once when the program has ended."""
        deadline = time.monotonic() + seconds
        while not (value := check()):
            if self.process.poll() is not None:
                raise AssertionError(f"{self.name} ended with {self.process.returncode}, waiting for {what}: {self.log()[-2000:]}")
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.name}: not within {seconds} s: {what}: {self.log()[-2000:]}")
            time.sleep(0.05)
        return value

    def kill(self):
        """SIGKILL."""
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
