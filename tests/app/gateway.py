"""The gateway's binary as a process: run it to its end, or start it and read its log lines."""
import os
import pathlib
import re
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("IGGY_KAFKA_BIN", str(ROOT / "build/release/iggy-gateway-kafka"))
WAIT_SECS = 20


def environment(variables):
    """Ours without any IGGY_KAFKA_ variable, and these."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("IGGY_KAFKA_") and k != "NOTIFY_SOCKET"}
    return clean | {k if k == "NOTIFY_SOCKET" else "IGGY_KAFKA_" + k: v for k, v in variables.items()}


def without_iggy(options, variables):
    """The variables, and Iggy clients are not listened for unless the test says so: the standard port may be another server's."""
    names = ("--check-config", "--help", "--version", "--backend", "--bridge-enabled", "--iggy-listen-addr")
    elsewhere = variables.get("BACKEND", "embedded") != "embedded" or "BRIDGE_ENABLED" in variables
    if elsewhere or any(option.startswith(names) for option in options):
        return variables
    return {"IGGY_LISTEN_ADDR": "off"} | variables


def run(*options, cwd=None, **variables):
    """Run it to its end; variables by their names without IGGY_KAFKA_."""
    variables = without_iggy(options, variables)
    return subprocess.run([BINARY, *options], env=environment(variables), cwd=cwd, timeout=WAIT_SECS,
                          capture_output=True, text=True, check=False)


class Gateway:
    """A gateway that serves, on a free port; ends with the with block."""

    def __init__(self, folder, *options, **variables):
        command = [BINARY, "--bind-addr=127.0.0.1:0", f"--data-dir={folder}/data", *options]
        variables = without_iggy(options, variables)
        self.process = subprocess.Popen(command, env=environment(variables), cwd=folder, text=True, stderr=subprocess.PIPE)
        self.lines = []
        try:
            self.ready = self.wait_for_line("listening for Kafka clients")
            self.port = int(re.search(r'address"?[=:]"?127\.0\.0\.1:(\d+)', self.ready)[1])
        except BaseException:
            self.__exit__()
            raise

    def wait_for_line(self, text):
        for line in self.process.stderr:
            self.lines.append(line)
            if text in line:
                return line
        raise AssertionError(f"it ended without saying {text!r}: {self.lines}")

    def send_signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        """Its exit code, and all lines it wrote in lines."""
        self.lines += self.process.stderr.readlines()
        return self.process.wait(timeout=WAIT_SECS)

    def stop(self):
        self.send_signal(signal.SIGTERM)
        return self.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()
