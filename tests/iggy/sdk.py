"""An Iggy SDK in a process of its own, spoken to by the line protocol of README.md."""

import json
import os
import queue
import subprocess
import threading
import time

from server import ROOT_PASSWORD, ROOT_USER

HERE = os.path.dirname(os.path.abspath(__file__))
HOME = os.environ.get("PEERS_HOME", os.path.expanduser("~/.cache/iggy-gateway-kafka/peers"))
SDKS = {
    "python-0.11": [f"{HOME}/iggy-py-0.11/bin/python", f"{HERE}/python/driver.py"],
    "python-0.12": [f"{HOME}/iggy-py-0.12/bin/python", f"{HERE}/python/driver.py"],
    "rust-0.12": [f"{HOME}/bin/iggy-judge"],
}
USER = os.environ.get("IGGY_USER", ROOT_USER)
PASSWORD = os.environ.get("IGGY_PASSWORD", ROOT_PASSWORD)
SECONDS = 30  # a driver gives up after 20 by itself


class Refused(Exception):
    """What the SDK reported: `code` is Iggy's number, None when the SDK has none for it."""

    def __init__(self, call, code, text):
        self.code, self.text = code, text
        super().__init__(f"{call}: {code}: {text}")


class Client:
    """One connection. Every call of the line protocol is a method: client.send(stream="s", ...)."""

    def __init__(self, sdk, address, error_log=os.devnull, **how):
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
        with open(error_log, "ab") as errors:
            self.process = subprocess.Popen(SDKS[sdk], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.can = set(self.hello()["can"])
        self.connect(address=address, **how)

    def _read(self):
        for text in self.process.stdout:
            self.lines.put(text)
        self.lines.put(None)

    def begin(self, call, **arguments):
        """Sends a call; end() waits for its answer, so that several clients can be busy at once."""
        self.pending = call
        self.process.stdin.write(json.dumps({"call": call, **arguments}) + "\n")
        self.process.stdin.flush()
        return self

    def end(self, seconds=SECONDS):
        text = self.lines.get(timeout=seconds)
        if text is None:
            raise RuntimeError(f"the driver ended (status {self.process.wait()}) in {self.pending}")
        answer = json.loads(text)
        if "ok" not in answer:
            raise Refused(self.pending, answer["error"], answer["text"])
        return answer["ok"]

    def __getattr__(self, call):
        if call.startswith("_"):
            raise AttributeError(call)
        return lambda **arguments: self.begin(call, **arguments).end()

    def refusal(self, call, **arguments):
        """Iggy's code of the error that the call must end with."""
        try:
            answer = self.begin(call, **arguments).end()
        except Refused as refused:
            return refused.code if refused.code is not None else refused.text
        return f"{call} was not refused but answered {answer}"

    def answers(self):
        """Whether the connection is alive."""
        try:
            self.ping()
            return True
        except Refused:
            return False

    def kill(self):
        """Without a farewell, as a machine that loses its power."""
        self.process.kill()
        self.process.wait()

    def close(self):
        try:
            self.process.stdin.close()
            self.process.wait(5)
        except (OSError, subprocess.TimeoutExpired):
            self.kill()


def message(payload, headers=(), id=None):
    """A message as send and produce take it; headers are (key kind, key, value kind, value), numbers as text, raw bytes as hex."""
    payload = payload if isinstance(payload, bytes) else payload.encode()
    found = {"payload": payload.hex(), "headers": [list(header) for header in headers]}
    return found if id is None else found | {"id": str(id)}


def payloads(messages):
    return [bytes.fromhex(found["payload"]) for found in messages]


def offsets(messages):
    return [found["offset"] for found in messages]


def eventually(what, check, seconds=10.0):
    """For what a server may do a moment after it answered."""
    deadline = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.02)
    return found
