"""Running scenarios and reporting them: PASS or FAIL lines and the transcript of what a client observed."""

import os
import queue
import sys
import threading
import time
import traceback

LIMIT_SECONDS = float(os.environ.get("SCENARIO_LIMIT", "45"))
_print_lock = threading.Lock()
# Topics of one run share this suffix, so that runs on one server do not meet.
RUN = "%x" % (int(time.time() * 1000) & 0xFFFFFF)


def line(text):
    with _print_lock:
        print(text, flush=True)


def topic_name(client, scenario):
    return f"c-{client}-{scenario}-{RUN}"


def expect(got, want, what):
    if got != want:
        raise AssertionError(f"{what}: got {str(got)[:160]!r}, want {str(want)[:160]!r}")


def eventually(what, check, seconds=10.0):
    """Servers may publish an admin change a moment after they answered."""
    deadline = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.05)


class Report:
    """The lines of one client. `failed` counts its failures."""

    def __init__(self, client, only=""):
        self.client, self.only, self.failed, self.passed = client, only, 0, 0

    def saw(self, scenario, **facts):
        facts = " ".join(f"{key}={value}" for key, value in facts.items())
        line(f"T {self.client} {scenario} {facts}")

    def fail(self, scenario, started, text):
        self.failed += 1
        line(f"FAIL {self.client} {scenario} {(time.monotonic() - started) * 1000:.0f}ms {text}"[:400].replace("\n", " "))

    def scenario(self, name, run, on_timeout=None):
        """Runs one scenario with a time limit; on_timeout must make its thread end (kill the child it waits for)."""
        if self.only and self.only not in name:
            return
        started = time.monotonic()
        outcome = queue.Queue()

        def body():
            try:
                run()
                outcome.put(None)
            except BaseException as error:
                if os.environ.get("TB"):
                    traceback.print_exc(file=sys.stderr)
                outcome.put(error)

        threading.Thread(target=body, daemon=True).start()
        try:
            error = outcome.get(timeout=LIMIT_SECONDS)
        except queue.Empty:
            self.fail(name, started, f"no end within {LIMIT_SECONDS:.0f} s")
            if on_timeout:
                on_timeout()
            return
        if error is not None:
            self.fail(name, started, f"{type(error).__name__}: {error}")
            return
        self.passed += 1
        line(f"PASS {self.client} {name} {(time.monotonic() - started) * 1000:.0f}ms")
